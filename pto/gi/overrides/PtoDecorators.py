# PtoDecorators.py: how does a function of Python stand for a kernel, or for what SUB workers call?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A function that is decorated submits a task when an orchestration function calls it. What workers know of it is theirs to keep: it is
# registered where it is wanted, and a kernel is made anew where its source, or a header of that, has changed.
from __future__ import annotations

import contextlib
import functools
import os
import pkgutil
import weakref

from ..module import get_introspection_module
from . import PtoArguments as _arguments
from .PtoFunctions import Callable
from .PtoText import _, shown

Pto = get_introspection_module("Pto")
_SUBMITS = "after", "when", "block_dim", "sync_start", "cluster", "priority"  # what a submit is told by name


class KernelFunction:
    """A function that Pto.kernel() decorates: scale(orch, x, y) submits its kernel with what the function gives of x and y."""

    def __init__(self, function: _Function, path: _Path, core: str | CoreType = "aiv", **choices: Any) -> None:
        functools.update_wrapper(self, function)
        file = function.__code__.co_filename
        beside = os.path.join(os.path.dirname(os.path.abspath(file)), path) if os.path.exists(file) else path
        self._path, self._core, self._choices = (beside if os.path.exists(beside) else os.fspath(path)), core, choices
        self._made = None

    def __repr__(self) -> str:
        return f"<Pto.KernelFunction {self.__name__} of {self._path}>"

    def __call__(self, orch: Orchestrator | Graph, *args: Any, **named: Any) -> int:
        """Submits a task, or adds one to a graph: after=, when=, block_dim= and so on are those of submit()."""
        if not isinstance(orch, (Pto.Orchestrator, Pto.Graph)):
            raise TypeError(_("{name}: {orch} is no orchestrator: in an orchestration function {name}(orch, ...) submits a task").format(
                name=self.__name__, orch=shown(orch)))
        submits = {name: named.pop(name) for name in _SUBMITS if name in named}
        submit = orch.submit if isinstance(orch, Pto.Orchestrator) else orch.add_task
        return submit(self.kernel_for(orch), self.arguments(*args, **named), **submits)

    def arguments(self, *args: Any, **named: Any) -> list[Any]:
        """What the function gives for these arguments: those of the task."""
        given = self.__wrapped__(*map(_arguments.given, args), **{name: _arguments.given(value) for name, value in named.items()})
        if not isinstance(given, (tuple, list)) or (len(given) == 2 and isinstance(given[1], Pto.Direction)):
            raise TypeError(_("{name}: the function of a kernel gives the arguments of its task, in their order, such as "
                              "[x.read(), y.write(), 2]: it has given {given}").format(name=self.__name__, given=shown(given)))
        return list(given)

    @property
    def kernel(self) -> Kernel:
        """The kernel, of the source, and of the headers that it includes, as they are now."""
        if self._made is None or self._made.is_edited():
            self._made = Callable.kernel(self._path, self._core, **self._choices)
        return self._made

    def kernel_for(self, run: Orchestrator | Graph) -> Kernel:
        """The same for all of a run: its files are looked at once."""
        known = vars(run).setdefault("_kernels", {})
        if self not in known:
            known[self] = self.kernel
        return known[self]


def kernel(path: _Path, core: str | CoreType = "aiv", args: int = -1, include_dirs: _Path | Iterable[_Path] | None = None,
           flags: str | Iterable[str] | None = None) -> _Call[[_Function], KernelFunction]:
    """@Pto.kernel("scale.c") has a function stand for a kernel: it is given what its caller has, and gives the arguments of the task,
    [x.read(), y.write(), factor]. The source lies beside the file that has the function, or where the program runs; when it, or a
    header that it includes, has changed, the next run builds it anew. Otherwise as Pto.Callable.kernel()."""
    if callable(path):
        raise TypeError(_('the source of the kernel is missing: @Pto.kernel("scale.c")'))
    return lambda function: KernelFunction(function, path, core, args=args, include_dirs=include_dirs, flags=flags)


_subs = weakref.WeakSet()


class SubWorkerFunction:
    """A function that Pto.sub() decorates: total(orch, x.read(), y.write()) has a SUB worker call it with the arrays. Called with
    something else than an orchestrator it is what it was."""

    def __init__(self, function: _Function, idempotent: bool = False) -> None:
        functools.update_wrapper(self, function)
        self._idempotent = idempotent
        _subs.add(self)

    def __repr__(self) -> str:
        return f"<Pto.SubWorkerFunction {self.__name__}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Submits a task where the first argument is an orchestrator: after= and worker= are those of submit_sub()."""
        if args and isinstance(args[0], Pto.Orchestrator):
            orch, *args = args
            return orch.submit_sub(self, args, **named)
        return self.__wrapped__(*args, **named)

    def callable(self) -> SubFunction:
        """What is registered: it calls the function with the arguments of a task one by one."""
        function = self.__wrapped__

        @functools.wraps(function)
        def call(args):
            return function(*args)
        del call.__wrapped__  # whose parameters are not those of this one
        made = Callable.function(call, Pto.CallableKind.SUB)
        made.set_idempotent(self._idempotent)
        path = f"{function.__module__}:{function.__qualname__}"
        with contextlib.suppress(ImportError, AttributeError, ValueError):
            made.set_import_path(path if function.__module__ != "__main__" and pkgutil.resolve_name(path) is self else None)
        return made

    def handle_for(self, worker: Worker) -> CallableHandle:
        """Of the worker that it is submitted on, where it is registered by now or at once."""
        known = vars(worker).setdefault("_subs", {})
        if self not in known:
            known[self] = worker.register(self.callable())
        return known[self]


def sub(function: _Function | None = None, *, idempotent: bool = False) -> SubWorkerFunction | _Call[[_Function], SubWorkerFunction]:
    """@Pto.sub has a function run on SUB workers: in an orchestration function total(orch, x.read(), y.write()) submits it. Workers
    that start later know it; it is called with an array for each tensor, and with the numbers. @Pto.sub(idempotent=True): it is
    run again where it was lost (Pto.Callable.set_idempotent())."""
    if function is None:
        return lambda function: sub(function, idempotent=idempotent)
    if not callable(function):
        raise TypeError(_("{what} is no function: @Pto.sub stands before one").format(what=shown(function)))
    return SubWorkerFunction(function, idempotent)


def register_subs(worker):
    """Before processes are made: what is known by then goes along."""
    if worker.get_level() > 2 and worker.get_state() == Pto.WorkerState.NEW:
        is_remote = worker.dup_remote_address() is not None
        for function in list(_subs):
            # What can not be sent there is not for its tasks: modules that those import have their own.
            if not is_remote or function.callable().get_import_path() is not None:
                function.handle_for(worker)
        for child in worker.get_children():
            register_subs(child)
