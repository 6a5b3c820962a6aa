# gir_text.py: what the manual says, as text that is read where it stands.
# SPDX-License-Identifier: LGPL-2.1-or-later
import re


def plain(text):
    """Without the marks of links, constants and parameters."""
    text = re.sub(r"\[\w+@([\w.:-]+)\]", r"\1", text)
    text = re.sub(r"%(\w+)", lambda m: {"NULL": "None", "TRUE": "True", "FALSE": "False"}.get(m[1], m[1]), text)
    return re.sub(r"(?<!\w)@(\w+)", r"\1", text)
