# PtoDocstrings.py: what does help() say of what the library has?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What its manual says, behind what PyGObject makes of the introspection data. It is made at build; a checkout that is not built has none.
import gi.docstring

try:
    from .PtoDocs import TEXTS
except ImportError:
    TEXTS = {}


def take(generate):
    """A generator of docstrings for all namespaces, that knows more of this one."""
    def doc(info):
        made = generate(info)
        if info.get_namespace() != "Pto":
            return made
        text = TEXTS.get(info.get_symbol() if hasattr(info, "get_symbol") else info.get_name())
        return made if not text else f"{made}\n\n{text}" if made else text
    return doc


gi.docstring.set_doc_string_generator(take(gi.docstring.get_doc_string_generator()))
