# PtoExceptions.py: what becomes of an exception of Python's on its way through C?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# It is thrown as a Pto.Exception, with its type, its members and where it was raised, and made anew of that where it comes
# out: in this process, or in the parent of a child.
import ast
import contextlib
import traceback

from gi.repository import GLib

from ..module import get_introspection_module

Pto = get_introspection_module("Pto")
EXCEPTION = GLib.quark_to_string(Pto.Exception.quark())


def text_of(what):
    """As it can stand in an error: UTF-8 without a 0, also when it can not even be printed."""
    try:
        text = str(what)
    except Exception:
        text = f"<{type(what).__name__} that can not be printed>"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _full_name(type_):
    return type_.__qualname__ if type_.__module__ == "builtins" else f"{type_.__module__}.{type_.__qualname__}"


def _of(exception):
    """Pto.Exception of a Python exception, and of the members of its group."""
    members = [_of(member) for member in getattr(exception, "exceptions", ())]
    trace = "".join(traceback.format_tb(exception.__traceback__)).rstrip()
    message = exception.message if members else exception
    return Pto.Exception.new(_full_name(type(exception)), text_of(message), text_of(trace) if trace else None, members)


def _line(exception):
    """What an error says for an exception."""
    return exception.message if isinstance(exception, GLib.Error) else f"{_full_name(type(exception))}: {text_of(exception)}"


def error_of(exception):
    """What stands for an exception on its way through C."""
    if isinstance(exception, GLib.Error):
        return exception
    _of(exception).throw()
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


def _exception(was):
    """A Python exception of a Pto.Exception; None if its type is not known here."""
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
    if exception is not None and was.get_trace() is not None and hasattr(exception, "add_note"):
        exception.add_note(f"Raised in a child, traceback:\n{was.get_trace()}")
    return exception


def original(error, state):
    """What a run raises for its error: the exception that its callback has kept in its state, or what is known of it."""
    raised, state.raised = state.raised, None
    was = Pto.Exception.get_last() if error.domain == EXCEPTION else None
    if raised is not None and error.message == _line(raised):
        return raised
    exception = _exception(was) if was is not None else None
    if exception is None:
        return error
    exception.__cause__ = error
    return exception
