# PtoExceptions.py: what becomes of an exception of Python's on its way through C?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# It is thrown as a Pto.Exception, with its type, its members, where it was raised, and its pickle, and made anew of that where
# it comes out: in this process, or in the parent of a child. An attribute without a pickle is left out. An exception that
# cannot be pickled, or whose pickle is too long, arrives as its class with its text.
import ast
import contextlib
import io
import pickle
import traceback

from gi.repository import GLib

from ..module import get_introspection_module
from .PtoErrors import Error
from .PtoText import _

Pto = get_introspection_module("Pto")
EXCEPTION = GLib.quark_to_string(Pto.Exception.quark())
_MARK = b"Python pickle\0"  # before one
_MOST = 65536
_CUT = 300  # bytes, less than what is left of a text


def text_of(what):
    """As it can stand in an error: UTF-8 without a 0, also when it can not even be printed."""
    try:
        text = str(what)
    except Exception:
        text = _("<{type} that can not be printed>").format(type=type(what).__name__)
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _full_name(type_):
    return type_.__qualname__ if type_.__module__ == "builtins" else f"{type_.__module__}.{type_.__qualname__}"


class _Limited(io.BytesIO):
    """What is more does not fit where it goes; and a pickle of everything that hangs on an exception may be very much."""

    def write(self, data):
        if self.tell() + len(data) > _MOST:
            raise OverflowError
        return super().write(data)


def _make(type_, *args):
    """An exception with these arguments, without the constructor of its class, which may want others."""
    base = next(base for base in type_.__mro__ if not base.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE: a class of Python's
    exception = base.__new__(type_, *args)
    base.__init__(exception, *args)
    return exception


def _find_class(name):
    """The exception class of that name, which may be local to a function."""
    return [type_ for type_ in _subclasses(Exception) if _full_name(type_) == name][-1]


def _has_pickle(what):
    try:
        pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    except Exception:  # whatever is inside says why not, each in its way
        return False
    return True


class _Pickler(pickle.Pickler):
    """Exceptions as _make() makes them, unless their class says how; in_part: with the attributes that have a pickle. A class
    that is local may not be there where it is made, which is no reason to lose the others of a group."""

    def __init__(self, file, in_part, is_group):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._in_part, self._is_group = in_part, is_group

    def reducer_override(self, what):
        if isinstance(what, type) and issubclass(what, Exception) and "<locals>" in what.__qualname__ and not self._is_group:
            return _find_class, (_full_name(what),)
        if not isinstance(what, Exception) or isinstance(what, GLib.Error):
            return NotImplemented
        made = what.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if not isinstance(made, tuple) or made[0] is not type(what):
            return NotImplemented
        more = made[2:]
        if self._in_part and more and isinstance(more[0], dict):
            more = {name: value for name, value in more[0].items() if _has_pickle(value)}, *more[1:]
        return _make, (type(what), *made[1]), *more


def _contents(exception):
    """Its pickle; None: it has none, or a long one."""
    for in_part in False, True:
        file = _Limited(_MARK)
        file.seek(len(_MARK))
        with contextlib.suppress(Exception):
            _Pickler(file, in_part, hasattr(exception, "exceptions")).dump(exception)
            return file.getvalue()
    return None


def _trace(exception):
    """Where it was raised, and of what."""
    has_cause = exception.__cause__ is not None or (exception.__context__ is not None and not exception.__suppress_context__)
    lines = (traceback.format_exception(type(exception), exception, exception.__traceback__) if has_cause
             else traceback.format_tb(exception.__traceback__))
    trace = "".join(lines).rstrip()
    return text_of(trace) if trace else None


def _of(exception, with_contents):
    """Pto.Exception of a Python exception, and of the members of its group. These have contents where it has none."""
    contents = _contents(exception) if with_contents else None
    members = [_of(member, with_contents and contents is None) for member in getattr(exception, "exceptions", ())]
    message = exception.message if members else exception
    what = _full_name(type(exception)), text_of(message), _trace(exception), members
    return Pto.Exception.new_with_contents(*what, contents) if contents is not None else Pto.Exception.new(*what)


def _line(exception):
    """What an error says for an exception."""
    return exception.message if isinstance(exception, GLib.Error) else f"{_full_name(type(exception))}: {text_of(exception)}"


def error_of(exception, is_kept):
    """What stands for an exception on its way through C. Whoever has kept it does not want its pickle."""
    if isinstance(exception, GLib.Error):
        return exception
    _of(exception, not is_kept).throw()
    return GLib.Error(_line(exception), EXCEPTION, 0)


def _subclasses(type_):
    for subclass in type_.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _make_exception(type_, text):
    """One that says the text: by its constructor, or, if that wants something else, without it."""
    for make in (lambda: type_(text), lambda: type_(ast.literal_eval(text))):  # the second: KeyError
        with contextlib.suppress(Exception):
            exception = make()
            if type(exception) is type_ and str(exception) == text:
                return exception
    namespace = {"__str__": lambda self: text, "__module__": type_.__module__, "__qualname__": type_.__qualname__}
    with contextlib.suppress(Exception):
        same = type(type_.__name__, (type_,), namespace)
        exception = same.__new__(same)
        exception.args = (text,)
        return exception
    return None


def _add_note(exception, was):
    if was.get_trace() is not None and hasattr(exception, "add_note"):
        exception.add_note(_("Raised in a child, traceback:\n{trace}").format(trace=was.get_trace()))


def _add_notes(exception, was):
    _add_note(exception, was)
    for i, member in enumerate(getattr(exception, "exceptions", ())):
        if i < was.get_n_members():
            _add_notes(member, was.get_member(i))


def _says(exception, was):
    """A pickle calls the class with what Exception was given, and that may make another text of it. A long one was cut."""
    text, told = text_of(getattr(exception, "message", exception) if was.get_n_members() else exception), was.get_message()
    return text == told or (len(told.encode()) > _CUT and text.startswith(told.rstrip("\ufffd")))


def _unpickled(was):
    """The exception itself, with its class, arguments and attributes, as the library has it of a process that this one has
    forked, and of no other (Pto.Exception.get_contents()); None: it has none, or its class can not be made here."""
    data = was.get_contents()
    if data is None or not data.startswith(_MARK):
        return None
    try:
        exception = pickle.loads(memoryview(data)[len(_MARK):])
    except Exception:
        return None
    if not isinstance(exception, Exception) or _full_name(type(exception)) != was.get_type_name() or not _says(exception, was):
        return None
    _add_notes(exception, was)
    return exception


def _exception(was):
    """A Python exception of a Pto.Exception; None if its type is not known here."""
    exception = _unpickled(was)
    if exception is not None:
        return exception
    name, members = was.get_type_name(), [was.get_member(i) for i in range(was.get_n_members())]
    types_ = [type_ for type_ in (Exception, *_subclasses(Exception)) if _full_name(type_) == name]
    if not types_:
        return None
    exception = None
    if members:
        made = [_exception(m) or RuntimeError(f"{m.get_type_name()}: {m.get_message()}") for m in members]
        with contextlib.suppress(Exception):
            exception = types_[-1](was.get_message(), made)
    exception = exception or _make_exception(types_[-1], was.get_message())
    if exception is not None:
        _add_note(exception, was)
    return exception


def original(error, state):
    """What a run raises for its error: the exception that its callback has kept in its state, or what is known of it."""
    raised, state.raised = state.raised, None
    was = Pto.Exception.get_last() if error.domain == EXCEPTION else None
    if raised is not None and error.message == _line(raised):
        return raised
    exception = _exception(was) if was is not None else None
    if exception is None and was is not None:
        error.__class__ = Error
        _add_note(error, was)
    if exception is None:
        return error
    exception.__cause__ = error
    return exception
