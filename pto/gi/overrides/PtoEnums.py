# PtoEnums.py: which values does an enumeration have?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# PyGObject has made its own class of one, with __enum_values__; newer ones make it an enum.IntEnum or enum.IntFlag.
from ..module import get_introspection_module


def values_of(type_):
    """Number -> constant."""
    return getattr(type_, "__enum_values__", None) or {int(value): value for value in type_}


def names_of(type_):
    """The names of its constants, in order."""
    return sorted(getattr(type_, "__members__", None) or (name for name in vars(type_) if isinstance(getattr(type_, name), type_)))


def by_nick(type_):
    """Nick -> constant."""
    return {value.value_nick: value for value in values_of(type_).values()}


def of_property(property_):
    """The enumeration of a property of this library: PyGObject 3.50 gives a structure of C for property_.enum_class."""
    return getattr(get_introspection_module("Pto"), property_.value_type.name.removeprefix("Pto"))
