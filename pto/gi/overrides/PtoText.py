# PtoText.py: how does a message of the override come into the reader's language?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As those of the library do, from its catalogue, where an error is made and nowhere else. What a text is about is put in behind the
# look-up, by format(): no catalogue has what an f-string makes.
import reprlib

from ..module import get_introspection_module

Pto = get_introspection_module("Pto")

# A message names what was given: of what is long its begin does that.
_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = _short.maxdeque = _short.maxarray = 12
_short.maxlong = 60
_short.maxother = 300
_LONGEST = 80


def shown(value):
    """What a value is called in a message."""
    if isinstance(value, (str, bytes, bytearray)) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}..."
    return repr(value) if isinstance(value, str) else _short.repr(value)


def N_(text):
    """Marks a constant, which is translated where it is used."""
    return text


def _(text):
    return Pto.dup_translation(text, None, 1)


def P_(one, many, n):
    """Of a count: in how many forms it is said is the language's affair."""
    return Pto.dup_translation(one, many, n)
