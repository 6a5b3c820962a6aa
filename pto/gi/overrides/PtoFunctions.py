# PtoFunctions.py: how does the library call what Python has?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Functions as callbacks and callables, and which of them may not wait for what, as they are waited for themselves.
from __future__ import annotations

import collections.abc
import contextlib
import contextvars
import inspect
import itertools
import os
import pkgutil
import shlex
import sys
import threading
import weakref

from gi.repository import GObject

from ..module import get_introspection_module
from . import PtoChecks as _checks
from . import PtoExceptions as _exceptions
from .PtoErrors import BusyError
from .PtoText import N_, _

Pto = get_introspection_module("Pto")


def _count(function):
    """How many positional arguments it is given; None for any number. A default other than None stays: i in
    lambda orch, i=i: ... is the function's own."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    given = itertools.takewhile(lambda p: p.default is inspect.Parameter.empty or p.default is None, parameters)
    return sum(p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in given)


_LATER = (collections.abc.Awaitable, collections.abc.Generator, collections.abc.AsyncIterator, map, filter, zip)


def _refuse_later(function, what):
    name = getattr(function, "__name__", type(function).__name__)
    raise TypeError(_("\"{name}\" {what}, which does nothing by itself: an orchestration or SUB function is a plain function "
                      "that does its work before it returns, without async def, await and yield").format(name=name, what=what))


def check_function(function):
    for plain in (function, getattr(type(function), "__call__", None)):
        if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
            _refuse_later(function, _("is an async function: calling it gives a coroutine"))
        if inspect.isgeneratorfunction(plain):
            _refuse_later(function, _("is a generator function: calling it gives a generator"))


def check_result(function, result):
    if isinstance(result, _LATER):
        if inspect.iscoroutine(result):
            result.close()  # or it would be said that nobody has awaited it
        _refuse_later(function, _("has returned a {type}").format(type=type(result).__name__))
    return result is not False


def _tell_in_copy(exception):
    """Tells what the function raised in a process that it has forked: its caller is in the other process."""
    if not isinstance(exception, SystemExit):
        sys.excepthook(type(exception), exception, exception.__traceback__)
        return
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if exception.code is not None and not isinstance(exception.code, int):
            print(exception.code, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1 if exception.code is not None and not isinstance(exception.code, int) else (exception.code or 0) & 0xFF)


def as_callback(function, choose, state=None, all_of_them=False):
    """Gives it as many of the chosen arguments as it takes; only False means that it has failed."""
    check_function(function)
    count = None if all_of_them else _count(function)

    def call(*args):
        is_orchestration = isinstance(args[0], Pto.Orchestrator)
        process = os.getpid()
        token = _inside.set(_inside.get() + ((weakref.ref(args[0]), threading.get_ident()),) * is_orchestration)
        try:
            if state is not None:
                state.in_function = True
            return check_result(function, function(*choose(args)[:count]))
        except BaseException as exception:
            if os.getpid() != process:
                _tell_in_copy(exception)
            if state is not None:
                state.raised = exception
            raise _exceptions.error_of(exception, state is not None) from None
        finally:
            if state is not None:
                state.in_function = False
            _inside.reset(token)
            with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
                sys.stdout.flush()
    return call


_inside = contextvars.ContextVar("pto-inside", default=())  # orchestrators whose functions are under way, and their threads


def is_inside(worker, on_other_thread=False):
    """In a function of its own, which does not return before what it waits for: also from another worker's function, or a
    thread, that it waits for."""
    return any((orchestrator := ref()) is not None and orchestrator.is_valid() and orchestrator.get_worker() == worker
               and (not on_other_thread or thread != threading.get_ident())
               for ref, thread in _inside.get())


def check_outside(worker, refusal=N_("an orchestration function can not use its own worker for another run"), **choices):
    if is_inside(worker, **choices):
        raise BusyError(_(refusal))


def import_path(function):
    """module:qualname, when that finds the same function in a process that begins anew."""
    path = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', '')}"
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        return path if not path.startswith("__main__:") and pkgutil.resolve_name(path) is function else None


def words(what):
    """A list of words of one text, or of a list; None: none."""
    return shlex.split(what) if isinstance(what, str) else what or ()


def paths(what):
    """A list of directories of one, or of a list; None: none."""
    return [os.fspath(path) for path in ([what] if isinstance(what, (str, bytes, os.PathLike)) else what or ())]


def tell_kind(handle, error):
    """What a submit to SUB workers of what was taken for an orchestration is refused with says why."""
    count = getattr(handle.get_callable(), "_taken_with", None)
    if count is not None and error.code == Pto.Error.INVALID_ARGS:
        error.message = _("{why}; it was taken for an orchestration, which is what a function with {n} parameters is: @Pto.sub before it, or "
                          "Pto.Callable.function(it, Pto.CallableKind.SUB), says that SUB workers call it").format(
                              why=error.message, n=count)
        error.args = (error.message, *error.args[1:])


class Callable(Pto.Callable):
    """What can be run: a kernel, the orchestration of a chip, a function. Pto.Callable.kernel(path), chip(directory) and
    function(it) make one."""

    @staticmethod
    def kernel(path: _Path, core: str | CoreType = "aiv", args: int = -1, include_dirs: _Path | Iterable[_Path] | None = None,
               flags: str | Iterable[str] | None = None) -> Kernel:
        """Of a source or an object; args=3 says how many arguments it takes, and a submit with others is refused. A source
        is compiled with include_dirs, a list or one, and flags, a list of words or one text."""
        cores = {"aic": Pto.CoreType.AIC, "aiv": Pto.CoreType.AIV}
        core = cores.get(core.lower()) if isinstance(core, str) else core
        if core not in cores.values():
            raise ValueError(_("{path}: there is no such type of core: it is \"aic\" or \"aiv\"").format(path=path))
        self = Pto.Kernel.new(core, _checks.path(path, "Callable.kernel: path"), None)
        self.set_n_args(args)
        if include_dirs:
            self.set_include_dirs(include_dirs)
        if flags:
            self.set_compiler_flags(flags)
        return self

    @staticmethod
    def chip(directory: _Path) -> ChipOrchestration:
        """Of the orchestration and the kernels that a directory's pto.ini names."""
        return Pto.ChipOrchestration.new_for_directory(_checks.path(directory, "Callable.chip: directory"))

    @staticmethod
    def function(function: _Function, kind: CallableKind | None = None) -> Callable:
        """Of a Python function: an orchestration takes (orch, args, config), a SUB function (args) or nothing."""
        kinds, count = Pto.CallableKind, _count(function)
        if kind is None and count is None:
            raise TypeError(_("a function with *args can be both: Pto.Callable.function(it, Pto.CallableKind.SUB)"))
        name = _exceptions.text_of(getattr(function, "__name__", type(function).__name__))
        if kind == kinds.SUB or (kind is None and count <= 1):
            return Pto.SubFunction.new(name, as_callback(function, lambda given: given[:1]))
        made = Pto.OrchestrationFunction.new(name, as_callback(function, lambda given: given[:3]))
        if kind is None:
            GObject.Object.__setattr__(made, "_taken_with", count)  # for tell_kind()
        return made
