# PtoChecks.py: which values does Python give the library, and which attributes do its types have?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What is no number, choice or attribute is refused by its name; PyGObject rounds, wraps around, or takes what has no effect.
import collections.abc
import functools
import operator
import os

from gi._gi import Boxed, Direction, EnumInfo, ObjectInfo, StructInfo
from gi.repository import GLib, GObject

from ..module import get_introspection_module
from .PtoEnums import by_nick, names_of, values_of
from .PtoErrors import nearest, with_classes
from .PtoInterrupts import interruptible_use
from .PtoText import _, shown

Pto = get_introspection_module("Pto")


def integer(value, where, least=None, most=None, switch=False):
    """10 of 10.7, as PyGObject has it, is nobody's wish, nor 1 of True where there is no switch."""
    if not hasattr(value, "__index__") or (isinstance(value, bool) and not switch):
        raise TypeError(_("{where}: {value} is not an integer").format(where=where, value=shown(value)))
    value = operator.index(value)
    if most is not None and not least <= value <= most:
        raise OverflowError(_("{where}: {value} is not one of {least} to {most}").format(where=where, value=value, least=least, most=most))
    return value


def integers(values, where, *range_):
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(_("{where}: {value} is not a list of integers").format(where=where, value=shown(values)))
    return [integer(value, where, *range_) for value in values]


def member(type_, value, where):
    """PyGObject takes one for what is none. The number of one stands for it, as in C."""
    if type(value) is int and value in values_of(type_):
        return type_(value)
    if not isinstance(value, type_):
        raise TypeError(_("{where}: {value} is none of Pto.{type}: {members}").format(
            where=where, value=shown(value), type=type_.__name__, members=", ".join(names_of(type_))))
    return value


def switch(value, where):
    if not isinstance(value, bool):
        raise TypeError(_("{where}: {value} is neither True nor False").format(where=where, value=shown(value)))
    return value


def choice(type_, value, where):
    """Also by its nick."""
    nicks = by_nick(type_)
    if isinstance(value, str) and value.replace("_", "-") in nicks:
        return nicks[value.replace("_", "-")]
    if isinstance(value, str):
        raise TypeError(_("{where}: {value} is none of {names}").format(where=where, value=shown(value), names=", ".join(nicks)))
    return member(type_, value, where)


def path(value, where):
    """Whatever Python takes for one."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(_("{where}: {value} is not a path").format(where=where, value=shown(value)))
    return os.fspath(value)


def text(value, where):
    if not isinstance(value, str):
        raise TypeError(_("{where}: {value} is not a text").format(where=where, value=shown(value)))
    return value


def texts(values, where):
    """PyGObject takes a text for a list of its letters, and None for the end of a list."""
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(_("{where}: {value} is not a list of texts").format(where=where, value=shown(values)))
    return [text(value, where) for value in values]


def paths(values, where):
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(_("{where}: {value} is not a list of paths").format(where=where, value=shown(values)))
    return [path(value, where) for value in values]


class _Bytes(bytes):
    """What the library gives as bytes: bytes, which can be asked as GLib.Bytes can be, for programs that were written for those."""

    def get_data(self):
        return bytes(self)

    def get_size(self):
        return len(self)


def _as_bytes(value, where):
    """Of bytes, or of whatever gives its memory as such: a bytearray, a memoryview, an array."""
    if isinstance(value, GLib.Bytes):
        return value
    try:
        view = memoryview(value)
    except TypeError:
        if isinstance(value, str) and len(value) < 40:
            raise TypeError(_("{where}: {value} is not bytes: {encoded} is").format(
                where=where, value=shown(value), encoded=shown(value.encode()))) from None
        raise TypeError(_("{where}: {value} is not bytes").format(where=where, value=shown(value))) from None
    return GLib.Bytes.new(value if type(value) is bytes else view.tobytes())


def _giving_bytes(function):
    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def call(*args, **named):
        result = function(*args, **named)
        return None if result is None else _Bytes(result.get_data() or b"")
    return call


def _is_bytes(type_):
    return (type_.get_tag_as_string() == "interface" and type_.get_interface().get_namespace() == "GLib"
            and type_.get_interface().get_name() == "Bytes")


def _getters(type_):
    """Methods without arguments that give something, by what they give: get_x, or dup_x and ref_x of what is made for it."""
    for name, method in list(vars(type_).items()):
        if name.startswith(("get_", "dup_", "ref_")) and hasattr(method, "get_arguments") and method.is_method():
            if all(argument.get_direction() == Direction.OUT for argument in method.get_arguments()):
                yield name[4:], name


def _is_settable(member):
    """Any property has __set__(), which refuses where it can only be read."""
    return hasattr(member, "__set__") and not (isinstance(member, property) and member.fset is None)


def _checked(type_, set_attribute):
    def __setattr__(self, name, value):
        """Only what there is: a name that is misspelt would be accepted and have no effect."""
        if not hasattr(getattr(type(self), name, None), "__set__"):
            refusal = _("{type}.{name} is no attribute that can be set") if hasattr(type(self), name) else _("{type}.{name} does not exist")
            there = [] if hasattr(type(self), name) else [each for each in dir(type(self)) if _is_settable(getattr(type(self), each))]
            # Without name and obj, of which Python 3.12 makes a question of its own.
            raise AttributeError(refusal.format(type=type(self).__name__, name=name) + nearest(name, there))
        set_attribute(self, name, value)
    type_.__setattr__ = __setattr__


def _bounded(type_, name, bound):
    plain = getattr(type_, name)

    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    def method(self, index):
        if not 0 <= index < bound(self):
            raise IndexError(_("{where}: {i} of {n}").format(where=name, i=int(index), n=bound(self)))
        return plain(self, index)
    setattr(type_, name, method)


def _checked_arguments(function, is_named=True):
    """Which of the arguments that Python gives are numbers, choices and so on, as (place, name, check, may it be None?). is_named: also
    of those that are objects, which PyGObject refuses by their numbers."""
    arguments = function.get_arguments()
    types_ = [argument.get_type() for argument in arguments]
    hidden = {type_.get_array_length() for type_ in types_ if type_.get_tag_as_string() == "array"}
    given = [i for i, argument in enumerate(arguments) if i not in hidden and argument.get_direction() == Direction.IN]
    for place, i in enumerate(given):
        tag, name = types_[i].get_tag_as_string(), arguments[i].get_name()
        of_array = types_[i].get_param_type(0).get_tag_as_string() if tag == "array" else None
        if tag in _INTEGERS:
            yield place, name, functools.partial(_ranged, *_INTEGERS[tag]), arguments[i].may_be_null()
        elif of_array in _INTEGERS:
            yield place, name, functools.partial(_all_ranged, *_INTEGERS[of_array]), arguments[i].may_be_null()
        elif of_array in ("utf8", "filename"):
            yield place, name, texts if of_array == "utf8" else paths, arguments[i].may_be_null()
        elif tag == "gboolean":
            yield place, name, switch, False
        elif tag == "utf8":
            yield place, name, text, arguments[i].may_be_null()
        elif tag == "filename":
            yield place, name, path, arguments[i].may_be_null()
        elif _is_bytes(types_[i]):
            yield place, name, _as_bytes, arguments[i].may_be_null()
        elif tag == "interface" and isinstance(types_[i].get_interface(), (ObjectInfo, StructInfo)) and is_named:
            type_ = getattr(Pto, types_[i].get_interface().get_name(), None)
            if isinstance(type_, type) and types_[i].get_interface().get_namespace() == "Pto":
                yield place, name, functools.partial(_instance, type_), arguments[i].may_be_null()
        elif tag == "interface" and isinstance(types_[i].get_interface(), EnumInfo):
            type_ = getattr(Pto, types_[i].get_interface().get_name(), None)
            if type_ is not None and types_[i].get_interface().get_namespace() == "Pto":
                yield place, name, functools.partial(member, type_), False


def _instance(type_, value, where):
    if not isinstance(value, type_):
        raise TypeError(_("{where}: {value} is no Pto.{type}").format(where=where, value=shown(value), type=type_.__name__))
    return value


def _ranged(least, most, value, where):
    return integer(value, where, least, most)


def _all_ranged(least, most, values, where):
    return integers(values, where, least, most)


_INTEGERS = {f"{sign}int{bits}": (0, 2**bits - 1) if "u" in sign else (-2**(bits - 1), 2**(bits - 1) - 1)
             for sign in ("g", "gu", "", "u") for bits in (8, 16, 32, 64)}


def _making(new):
    def make(cls, *args, **named):
        return new(*args, **named)
    return make


_FREQUENT = "Graph", "Orchestrator", "TaskArgs"  # whose objects the override looks at itself, or a submit would cost more


def _exact(type_, name, function):
    """What it is given is checked, and what it raises is of its class."""
    checked = list(_checked_arguments(function, type_.__name__ not in _FREQUENT))
    first = int(function.is_method())
    if function.can_throw_gerror():
        classed = with_classes(getattr(type_, name))
        setattr(type_, name, classed if first else staticmethod(classed))
    if _is_bytes(function.get_return_type()) and name != "ref_bytes":  # which is a view of the memory, not a copy
        giving = _giving_bytes(getattr(type_, name))
        setattr(type_, name, giving if first else staticmethod(giving))
    if not checked:
        return
    if name.startswith("set_enable_"):
        checked = [(place, word, functools.partial(integer, switch=True), rest) for place, word, _, rest in checked]
    method = _checking(getattr(type_, name), checked, f"{type_.__name__}.{name}", first)
    setattr(type_, name, method if first else staticmethod(method))


def _checking(plain, checked, where, first=0):
    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    def method(*args, **named):
        args = list(args)
        for place, word, check, may_be_none in checked:
            if place + first < len(args) and not (may_be_none and args[place + first] is None):
                args[place + first] = check(args[place + first], f"{where}: {word}")
            elif word in named and not (may_be_none and named[word] is None):
                named[word] = check(named[word], f"{where}: {word}")
        return plain(*args, **named)
    return method


def _setter(name):
    return lambda self, value: getattr(self, name)(value)


def _told(type_, name):
    """A list, of a type that has no name here, is told as what it is a list of."""
    plain = getattr(type_, name)

    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    def method(self):
        result = plain(self)
        if type(result).__repr__ is not _list_repr:
            type(result).__repr__ = _list_repr
        return result
    setattr(type_, name, method)


def _interruptible(type_, name, waits=lambda self: True):
    """It may wait for a run, or for a worker far away."""
    plain = getattr(type_, name)

    @functools.wraps(plain, assigned=("__name__", "__doc__"))
    def method(self, *args, **named):
        if not waits(self):
            return plain(self, *args, **named)
        with interruptible_use():
            return plain(self, *args, **named)
    setattr(type_, name, method)


def _list_repr(self):
    return f"<{self.get_n_items()} of {self.get_item_type().name.replace('Pto', 'Pto.', 1)}>"


def complete():
    """Gives every type of the library attributes for its getters and setters, and refuses all others. The functions of no type
    whose errors are to be of their classes come as what is to be exported, by their names."""
    functions = {}
    for name in dir(Pto):
        type_ = getattr(Pto, name, None)
        if hasattr(type_, "get_arguments") and type_.can_throw_gerror():
            classed, checked = with_classes(type_), list(_checked_arguments(type_))
            functions[name] = _checking(classed, checked, name) if checked else classed
        if not isinstance(type_, type) or not issubclass(type_, (GObject.Object, Boxed)):
            continue
        fields = list(_getters(type_))
        for member, function in list(vars(type_).items()):
            if hasattr(function, "get_arguments"):
                _exact(type_, member, function)
        if hasattr(type_.__new__, "get_arguments"):  # PyGObject calls what it knows as new(), without all this
            type_.__new__ = _making(type_.new)
        for field, get in fields:
            if not hasattr(type_, field):
                get = getattr(type_, get)
                setattr(type_, field, property(get, _setter("set_" + field) if hasattr(type_, "set_" + field) else None))
        if hasattr(type_, "to_string"):
            type_.__repr__ = type_.__str__ = lambda self: f"<Pto.{type(self).__name__}: {self.to_string()}>"
        _checked(type_, type_.__setattr__)
    for name in ("alloc_buffer", "copy_from", "copy_from_address", "copy_to", "copy_to_address", "import_buffer", "malloc"):
        _interruptible(Pto.Worker, name)
    for name in ("export", "read", "write"):
        _interruptible(Pto.Buffer, name, lambda self: self.get_worker() is not None)
    _interruptible(Pto.Buffer, "copy_to")  # either of both may be far away
    _told(Pto.Worker, "get_children")
    Pto.Worker.children = property(Pto.Worker.get_children)
    for name in ("list_cores", "list_edges", "list_tasks"):
        _told(Pto.Trace, name)
    for name in ("direction", "tensor", "scalar", "scalar_kind", "scalar_double", "scalar_value"):
        _bounded(Pto.TaskArgs, "get_" + name, Pto.TaskArgs.get_n_args)
    for name in ("last_task_alive", "ring_tasks", "heap_peak"):
        _bounded(Pto.RunStatistics, "get_" + name, lambda self: Pto.N_RINGS)
    for name in ("busy_ns", "waited_ns", "n_cores", "utilization"):
        _bounded(Pto.RunStatistics, "get_" + name, lambda self: 2)  # types of cores
    _bounded(Pto.Exception, "get_member", Pto.Exception.get_n_members)
    for name in ("dup_core_name", "get_core_utilization"):
        _bounded(Pto.Trace, name, Pto.Trace.get_n_cores)
    for name in ("dup_name", "dup_address", "dup_command"):
        _bounded(Pto.ClusterFile, name, Pto.ClusterFile.get_n_places)
    return functions
