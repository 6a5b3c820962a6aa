# PtoErrors.py: of which class is an error that a call raises?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One class for each code of Pto's domain, below Pto.Error, which is a GLib.Error and has the codes as Pto.Error.BUSY. Those
# of rings in which nothing can be freed are below Pto.Deadlock, whose own code is that of an open scope. What PyGObject raises is given its class on its way out of a call: GLib.Error itself stays what it is in every other library.
from __future__ import annotations

import difflib
import functools
import inspect
import re

from gi._gi import Direction
from gi.repository import GLib

from ..module import get_introspection_module
from .PtoEnums import values_of
from .PtoText import _

_codes = get_introspection_module("Pto").Error
DOMAIN = "pto-error-quark"

_DOCS = {  # as pto-error.h has them
    "SCOPE_DEADLOCK": "tasks of an open scope hold every slot of a task ring",
    "HEAP_RING": "a heap ring can not give a task its outputs",
    "TASK_RING": "a task ring has no free slot",
    "DEP_POOL": "a dependency pool is used up",
    "INVALID_ARGS": "an argument of a task, a parameter or a call is refused",
    "SYNC_START": "a synchronised start can not be had",
    "TENSOR_WAIT": "waiting for a tensor came to nothing",
    "EXPLICIT": "the orchestration itself failed the run",
    "SCOPE_OVERFLOW": "scopes are nested too deeply or not balanced",
    "MAP_OVERFLOW": "the TensorMap is used up",
    "SCHEDULER_TIMEOUT": "nothing has made progress for the time set by the parameter `timeout`",
    "KERNEL_FAULT": "a kernel or an orchestration crashed, threw an exception or ended its thread or the process",
    "KERNEL_HANG": "a kernel or an orchestration did not return in time",
    "OUT_OF_BOUNDS": "a kernel wrote past one of its outputs",
    "READY_QUEUE": "a ready queue failed",
    "NO_MEMORY": "memory is not to be had",
    "SYSTEM": "the operating system refused something",
    "ACCESS": "in a run whose accesses are checked: a task touched bytes that its arguments do not let it touch, or two tasks "
              "in no order touched the same ones",
    "COMPILE": "the compiler refused a source, or can not be run",
    "LOAD": "a shared object can not be loaded, or does not export what it must",
    "CLOSED": "the worker is closed, or the run of an orchestrator is over",
    "NOT_FOUND": "there is nothing of that name, number or path",
    "NOT_SUPPORTED": "what was asked for does not exist or has no effect in this version",
    "BUSY": "the worker is in use in a way that this call could wait for without end",
    "WRONG_THREAD": "an orchestrator was used on another thread than its orchestration function's",
    "RUN_FAILED": "the run has failed already; its first error is reported by the call that runs it",
    "TASK_FAILED": "the function of a task failed and gave no error of its own",
    "WORKER_LOST": "a child died, was stopped or did not answer",
    "TAMPERED": "contents do not hash to what they claim",
    "NOT_SHARED": "a tensor lies where children would see a copy, or nothing",
    "INTERNAL": "the runtime gave a code that this library does not know",
}


class Error(GLib.Error):
    """What a call of Pto raises for an error of its own domain: one of the classes below this one, each for one code.

    message says what happened and what to do about it, and is what str() gives; code and domain are those of the GLib.Error that it is, too. The codes
    are Pto.Error.BUSY and so on; Pto.Error(206) is the code with that number."""

    __module__ = "gi.repository.Pto"
    __enum_values__ = values_of(_codes)

    def __new__(cls, message="", *more, **named):
        return _codes(message) if type(message) is int else super().__new__(cls, message, *more, **named)

    def __init__(self, message: str = "", domain: str = DOMAIN, code: int | None = None) -> None:
        super().__init__(message, domain, int(type(self).CODE if code is None else code))

    def __str__(self) -> str:
        return self.message

    def __repr__(self):
        return f"Pto.{type(self).__name__}({self.message!r})"

    def copy(self: _Self) -> _Self:
        """The same error once more."""
        return type(self)(self.message, self.domain, self.code)


Error.quark = staticmethod(_codes.quark)
Error.CODE = _codes.INTERNAL  # of a number that is none of these


def _name(code):
    """Pto.CompileError of COMPILE; a deadlock is called what it is."""
    return "Deadlock" if code == "SCOPE_DEADLOCK" else code.title().replace("_", "") + "Error"


_DEADLOCKS = "HEAP_RING", "TASK_RING", "DEP_POOL"  # in which ring nothing can be freed


def _make():
    deadlock = None
    for number, code in sorted(Error.__enum_values__.items()):  # the first is the deadlock
        constant = code.value_nick.upper().replace("-", "_")
        setattr(Error, constant, code)
        doc = _DOCS.get(constant, constant)
        name = _name(constant)
        made = type(name, (deadlock if constant in _DEADLOCKS else Error,),
                    {"__module__": Error.__module__, "__doc__": doc[0].upper() + doc[1:] + ".", "CODE": code})
        deadlock = made if constant == "SCOPE_DEADLOCK" else deadlock
        yield number, made


_classes = dict(_make())
classes = (Error, *_classes.values())
globals().update({type_.__name__: type_ for type_ in classes})


def classify(error):
    """Gives an error of Pto's domain that PyGObject has made the class of its code; others stay what they are."""
    if error.domain == DOMAIN and type(error) is GLib.Error:
        error.__class__ = _classes.get(error.code, Error)
    return error


def find_nearest(word, words):
    """Which of these words was meant by one that is none of them, or None."""
    fold = {each.lower().replace("-", "_"): each for each in words if not each.startswith("_")}
    found = difflib.get_close_matches(word.lower().replace("-", "_"), fold, 1, 0.7)
    return fold[found[0]] if found else None


def nearest(word, words):
    """"; did you mean ...?" for a word that is none of these, or nothing. The words are those that can be taken in its place."""
    found = find_nearest(word, words)
    return "" if found is None else _('; did you mean "{word}"?').format(word=found)


def _suggest(error, names, args, named):
    """Adds which of these names was meant to the error of a call that has not begun, since it has no argument of the name given.
    Names are in the order of arguments: those that are given already were not meant. Python 3.13 does so itself for functions in Python."""
    found = re.search(r"got an unexpected keyword argument '(\w+)'$", str(error)) if error.__traceback__.tb_next is None else None
    if found is not None:
        error.args = (error.args[0] + nearest(found[1], [name for name in names()[len(args):] if name not in named]),)


def _names(function):
    """What Python calls the arguments of a function in Python."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds]


def _names_of_library(function):
    """What PyGObject calls the arguments of a function of the library: lengths and what is given back have no name there."""
    arguments = function.get_arguments()
    types = [each.get_type() for each in arguments]
    hidden = {type_.get_array_length() for type_ in types if type_.get_tag_as_string() == "array"}
    return ["self"] * function.is_method() + [each.get_name() for i, each in enumerate(arguments)
                                              if i not in hidden and each.get_direction() != Direction.OUT]


def with_suggestions(function):
    """The function in Python, whose callers are told which argument they have misspelt."""
    @functools.wraps(function)
    def call(*args, **named):
        try:
            return function(*args, **named)
        except TypeError as error:
            _suggest(error, lambda: _names(function), args, named)
            raise
    return call


def suggest_in(type_):
    """Gives the functions that the class itself has in Python suggestions."""
    for name, value in list(vars(type_).items()):
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if not inspect.isfunction(plain) or (name.startswith("_") and name != "__init__"):
            continue
        if plain.__code__.co_argcount + plain.__code__.co_kwonlyargcount > int(not isinstance(value, staticmethod)):
            setattr(type_, name, with_suggestions(plain) if plain is value else type(value)(with_suggestions(plain)))
    return type_


def with_classes(function):
    """The function of the library, whose errors are of their classes."""
    def call(*args, **named):
        try:
            return function(*args, **named)
        except GLib.Error as error:
            classify(error)
            raise
        except TypeError as error:
            _suggest(error, lambda: _names_of_library(function), args, named)
            raise
    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__name__, function.__doc__
    return call
