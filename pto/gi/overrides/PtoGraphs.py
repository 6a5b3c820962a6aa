# PtoGraphs.py: how does Python say what a graph is?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# To an orchestrator while it runs, or to a graph that is built first.
from __future__ import annotations

import collections.abc
import contextlib
import functools
import os
import sys

from gi.repository import GLib

from ..module import get_introspection_module
from . import PtoArguments as _arguments
from . import PtoChecks as _checks
from . import PtoFunctions as _functions
from .PtoTensors import Tensor, dtype_of, operator_of, value_of
from .PtoText import _, shown

Pto = get_introspection_module("Pto")
_NOT_PROGRAMS = (os.path.dirname(__file__) + os.sep, contextlib.__file__)  # of whose lines nobody is told


def _handle(what, orchestrator):
    if isinstance(what, Pto.CallableHandle):
        return what
    if hasattr(what, "handle_for"):
        return what.handle_for(orchestrator.get_worker())
    raise TypeError(_("{what} is not registered: worker.register() it first, and submit the handle which that returns").format(
        what=shown(what)))


def _kernel_and_args(self, kernel, args, where):
    """Of a kernel, or of a function that stands for one and says what is done with the arguments."""
    args = _arguments.only(args)
    if isinstance(kernel, Pto.Callable) or not hasattr(kernel, "kernel_for"):  # in this order: to look for what is not there takes long
        return _arguments.kernel_of(kernel, where), args
    return kernel.kernel_for(self), args if isinstance(args, Pto.TaskArgs) else kernel.arguments(*args)


def _make(self, make, shape, dtype):
    """Both orders: (dtype, shape) as in C, (shape, dtype) as in NumPy."""
    if isinstance(shape, Pto.Dtype):
        shape, dtype = dtype, shape
    if not isinstance(shape, collections.abc.Iterable):
        shape = [_checks.integer(shape, "shape", 1, 2**64 - 1)]
    return make(self, dtype_of(dtype), list(shape))


def _id(orchestrator, worker):
    """Of a worker below it, which may be named by its id or itself."""
    if not isinstance(worker, Pto.Worker):
        return worker
    above = orchestrator.get_worker()
    if worker not in list(above.get_children()):
        raise ValueError(_("{worker} is not below {above}: workers= names some that are").format(
            worker=worker.dup_path(), above=above.dup_path()))
    return worker.get_id()


def _index(tensor, index):
    if len(index) == 1 and isinstance(index[0], (list, tuple)):
        return index[0]
    return index or [0] * tensor.get_n_dims()


def _tensors(where, tensors):
    if isinstance(tensors, (str, bytes, Pto.Tensor)) or not isinstance(tensors, collections.abc.Iterable):
        raise TypeError(_("{where}: {what} is not a list of tensors: give one for each worker").format(where=where, what=shown(tensors)))
    return [Tensor.of(tensor) for tensor in tensors]


class _Task(int):
    """What a submit gives; also where it is 0, for who goes on only if there is one. -1 is none."""
    def __bool__(self):
        return self >= 0


def _note_place(of, set_place=Pto.Orchestrator.set_place):
    """Of the program that submits, or adds a task to a graph: records and errors name it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_PROGRAMS):
        frame = frame.f_back
    set_place(of, frame.f_code.co_filename, frame.f_lineno)

class Orchestrator(Pto.Orchestrator):
    """Arguments are a TaskArgs, or a list: x.read(), y.write(), numbers. What is refused is raised. after=[number,
    ...] are tasks that this one comes after, whatever its tensors are: what submit() and submit_order() give, or last_task
    (seed 001 has the others give None)."""

    @property
    def last_task(self) -> int:
        """What the last submit gave: -1 before there is one."""
        return _Task(self.get_last_task())

    _needs_place = functools.cached_property(Pto.Orchestrator.needs_place)  # asked once: a call costs much of a submit

    def set_priority(self, priority: int) -> None:
        """Of what is submitted from here on: 0 to Pto.MAX_PRIORITY, which goes first."""
        if not 0 <= _checks.integer(priority, "Pto.Orchestrator.set_priority: priority") < 2**32:
            raise ValueError(_("there is no priority {priority}: a task has one of 0 to {most}, which goes first").format(
                priority=priority, most=Pto.MAX_PRIORITY))
        Pto.Orchestrator.set_priority(self, priority)

    @contextlib.contextmanager
    def _of_priority(self, priority):
        """Of one submit, instead of orch.priority."""
        if priority is None:
            yield
            return
        before = self.get_priority()
        self.set_priority(priority)
        try:
            yield
        finally:
            self.set_priority(before)

    def submit(self, kernel: Callable | KernelFunction, *args: _Argument | _Arguments, after: _After = (), when: _Condition | None = None,
               block_dim: int | None = None, sync_start: bool = False, cluster: int | None = None,
               priority: int | None = None) -> int:
        """when=x or when=(x, 3): the kernel runs only where that element of x, or its first, is not 0 by then. block_dim=48:
        it runs so often, as one task; sync_start=True: all blocks begin at once. cluster=c: on the cores of that cluster.
        priority=3: that of this task alone, instead of orch.priority."""
        if self._needs_place:
            _note_place(self)
        kernel, args = _kernel_and_args(self, kernel, args, "submit")
        args = _arguments.several(kernel, args, after, when, block_dim, sync_start, cluster)
        if priority is None:
            Pto.Orchestrator.submit(self, kernel, args)
        else:
            with self._of_priority(priority):
                Pto.Orchestrator.submit(self, kernel, args)
        return self.last_task

    def submit_mixed(self, aic: Callable | None, aiv0: Callable | None, aiv1: Callable | None, *args: _Argument | _Arguments,
                     after: _After = (), when: _Condition | None = None, block_dim: int | None = None, sync_start: bool = False,
                     cluster: int | None = None, priority: int | None = None) -> int:
        """Kernels, or None, for the cube core and the vector cores of one cluster, which begin at once."""
        if self._needs_place:
            _note_place(self)
        for name, kernel in ("aic", aic), ("aiv0", aiv0), ("aiv1", aiv1):
            if kernel is not None:
                _arguments.kernel_of(kernel, f"submit_mixed: {name}")
        args = _arguments.several(aic or aiv0 or aiv1, _arguments.only(args), after, when, block_dim, sync_start, cluster)
        with self._of_priority(priority):
            Pto.Orchestrator.submit_mixed(self, aic, aiv0, aiv1, args)
        return self.last_task

    def submit_group(self, kernels: Iterable[Callable], *args: _Argument | _Arguments, after: _After = (), when: _Condition | None = None,
                     args_list: Iterable[_Arguments] | None = None, cores: Iterable[str | int | None] | None = None,
                     priority: int | None = None) -> int:
        """Kernels that begin at once on different cores, wherever they are: on a chip what submit_sub_group() is above. All
        get the same arguments, or each has its own: args_list=[[x.read()], [y.update(), 3]]. cores=["AIV3", 7, None] says
        which core each is for, by its name, or its number among those of its type; None, or -1: any."""
        if self._needs_place:
            _note_place(self)
        if isinstance(kernels, (str, Pto.Callable)) or not isinstance(kernels, collections.abc.Iterable):
            raise TypeError(_("submit_group: kernels: {what} is not a list of kernels").format(what=shown(kernels)))
        kernels = [_arguments.kernel_of(kernel, f"submit_group: kernel {i}") for i, kernel in enumerate(kernels)]
        if args_list is None and cores is None:
            call = functools.partial(Pto.Orchestrator.submit_group, self, kernels, _arguments.terms(_arguments.only(args), after, when))
        elif args_list is not None and args:
            raise TypeError(_("submit_group: args_list has the arguments of each member, and there are some beside it: one or the other"))
        else:
            lists = [_arguments.only(args)] * len(kernels) if args_list is None else args_list
            call = functools.partial(Pto.Orchestrator.submit_group_members, self, kernels, _arguments.members(lists, after, when), _arguments.cores_of(kernels, cores))
        with self._of_priority(priority):
            call()
        return self.last_task

    def submit_order(self, *args: _Argument, after: _After = ()) -> int:
        """A task that runs nothing: it comes after others, and others come after it."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.submit_order(self, _arguments.terms(args, after))
        return self.last_task

    def submit_next_level(self, handle: CallableHandle, args: _Arguments | None = None, config: CallConfig | None = None,
                          worker: int | Worker = -1, after: _After = ()) -> None:
        """A task that a worker below runs, a chip or a host: that one, by its id or itself, or any that is idle."""
        _note_place(self)
        Pto.Orchestrator.submit_next_level(self, _handle(handle, self), _arguments.terms(args, after), config, _id(self, worker))

    def submit_next_level_group(self, handle: CallableHandle, args_list: Iterable[_Arguments], config: CallConfig | None = None,
                                workers: Sequence[int | Worker] | None = None, after: _After = ()) -> None:
        """One task that several workers below run at the same time, each with its own arguments."""
        _note_place(self)
        if isinstance(workers, (list, tuple)):
            workers = [_id(self, worker) for worker in workers]
        Pto.Orchestrator.submit_next_level_group(self, _handle(handle, self), _arguments.members(args_list, after), config, workers)

    def submit_sub(self, handle: CallableHandle | SubWorkerFunction, args: _Arguments | None = None, worker: int = -1, after: _After = ()) -> None:
        """A function that a SUB worker calls: the one of that number, or any that is idle."""
        _note_place(self)
        handle = _handle(handle, self)
        try:
            Pto.Orchestrator.submit_sub(self, handle, _arguments.terms(args, after), worker)
        except GLib.Error as error:
            _functions.tell_kind(handle, error)
            raise

    def submit_sub_group(self, handle: CallableHandle | SubWorkerFunction, args_list: Iterable[_Arguments], workers: Sequence[int] | None = None,
                         after: _After = ()) -> None:
        """One task: a function that several SUB workers call at the same time, each with its own arguments."""
        _note_place(self)
        handle = _handle(handle, self)
        try:
            Pto.Orchestrator.submit_sub_group(self, handle, _arguments.members(args_list, after), workers)
        except GLib.Error as error:
            _functions.tell_kind(handle, error)
            raise

    def allreduce(self, tensors: Iterable[_ArrayLike], operation: Reduction | str = "sum") -> int:
        """A task that gives each of them the sum of all, or "prod", "min", "max", element by element."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.allreduce(self, _tensors("allreduce", tensors), operator_of(operation))
        return self.last_task

    def broadcast(self, tensors: Iterable[_ArrayLike], root: int = 0) -> int:
        """A task that copies the one of that number into all others."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.broadcast(self, _tensors("broadcast", tensors), _checks.integer(root, "broadcast: root", 0, 2**32 - 1))
        return self.last_task

    def alltoall(self, from_: Iterable[_ArrayLike], to: Iterable[_ArrayLike]) -> int:
        """A task that puts part i of from_[j] into part j of to[i]: parts are those of the first dimension."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.alltoall(self, _tensors("alltoall: from_", from_), _tensors("alltoall: to", to))
        return self.last_task

    def barrier(self, tensors: Iterable[_ArrayLike]) -> int:
        """A task that runs nothing: who uses one of them later comes after all who have used any of them."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.barrier(self, _tensors("barrier", tensors))
        return self.last_task

    def alloc(self, shape: _Shape, dtype: _DtypeLike = "f4") -> Tensor:
        """A tensor with memory of the runtime that is there at once."""
        if self._needs_place:
            _note_place(self)
        return _make(self, Pto.Orchestrator.alloc, shape, dtype)

    def make_tensor(self, shape: _Shape, dtype: _DtypeLike = "f4") -> Tensor:
        """A tensor that gets memory of a ring when a task outputs it."""
        return _make(self, Pto.Orchestrator.make_tensor, shape, dtype)

    tensor = make_tensor

    def make_tensor_at(self, worker: int | Worker, shape: _Shape, dtype: _DtypeLike = "f4") -> Tensor:
        """A tensor that stays at that worker, by its id or itself: only its tasks use it."""
        worker = _id(self, worker)
        return _make(self, lambda orch, *words: Pto.Orchestrator.make_tensor_at(orch, worker, *words), shape, dtype)

    def get_element(self, tensor: _ArrayLike, *index: int | Sequence[int]) -> float:
        """The number at that place, as numbers or as a list, or the first one, once the tasks that write it are done."""
        if self._needs_place:
            _note_place(self)
        tensor = Tensor.of(tensor)
        return Pto.Orchestrator.get_element(self, tensor, _index(tensor, index))

    def set_element(self, tensor: _ArrayLike, *index: int | Sequence[int], value: _Number) -> None:
        """Once the tasks that write or read it are done."""
        if self._needs_place:
            _note_place(self)
        tensor = Tensor.of(tensor)
        Pto.Orchestrator.set_element(self, tensor, _index(tensor, index), value_of(value))

    def scratch(self, shape: _Shape, dtype: _DtypeLike = "f4") -> _Tagged:
        """An argument: memory for this task alone."""
        return _make(self, lambda _, dtype, shape: Tensor.new(dtype, shape), shape, dtype), Pto.Direction.SCRATCH

    def fill(self, tensor: _ArrayLike, value: _Number, after: _After = ()) -> int:
        """A task that gives each element that value: its number."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.fill_after(self, Tensor.of(tensor), value_of(value), _arguments.tasks_of(after))
        return self.last_task

    def allocate_cluster(self) -> int:
        """A cluster of cores that only tasks with cluster= of it use, until it is freed or the scope ends."""
        if self._needs_place:
            _note_place(self)
        return Pto.Orchestrator.allocate_cluster(self)

    def begin_scope(self) -> None:
        """What `with orch.scope():` does at its begin."""
        _note_place(self)
        Pto.Orchestrator.begin_scope(self)

    def begin_manual_scope(self) -> None:
        """What `with orch.manual_scope():` does at its begin."""
        _note_place(self)
        Pto.Orchestrator.begin_manual_scope(self)

    def scope(self) -> AbstractContextManager[Orchestrator]:
        """with orch.scope(): memory of its tasks is given back when they, and those that use it, are done."""
        return self._scope(self.begin_scope)

    def manual_scope(self) -> AbstractContextManager[Orchestrator]:
        """Its tasks come after those that they name, after=, and after no others."""
        return self._scope(self.begin_manual_scope)

    @contextlib.contextmanager
    def _scope(self, begin):
        begin()
        try:
            yield self
        except BaseException:
            with contextlib.suppress(GLib.Error):  # what was raised says why
                self.end_scope()
            raise
        self.end_scope()

    def with_scope(self, function: _ScopeFunction[_T]) -> _T:
        """Calls function(orch) in a scope, and gives what it returns."""
        return self._with(self.scope, function)

    def with_manual_scope(self, function: _ScopeFunction[_T]) -> _T:
        """The same in a manual scope."""
        return self._with(self.manual_scope, function)

    def _with(self, scope, function):
        _functions.check_function(function)
        with scope():
            result = function(self)
            if not _functions.check_result(function, result):
                raise RuntimeError(_("the function of a scope has returned False"))
        return result


_place_in_graph = Pto.Graph.set_place


class Graph(Pto.Graph):
    """Captured by worker.capture(), or built by hand; run by worker.run(graph, x, y). Arguments of tasks are a TaskArgs, or
    x.read(), y.write(), numbers."""

    def add_argument(self, shape: _Shape, dtype: _DtypeLike = "f4", name: str | None = None) -> Tensor:
        """A tensor that each launch gives."""
        return self._named(name, _make(self, Pto.Graph.add_argument, shape, dtype))

    def add_scalar_argument(self, name: str | None = None) -> int:
        """A number that each launch gives: which argument it is, for bind_scalar()."""
        return self._named(name, Pto.Graph.add_scalar_argument(self))

    def _named(self, name, argument):
        if name is not None:
            self.set_argument_name(self.get_n_arguments() - 1, name)
        return argument

    def make_tensor(self, shape: _Shape, dtype: _DtypeLike = "f4") -> Tensor:
        """A tensor that gets memory of a ring when a task of a launch outputs it."""
        return _make(self, Pto.Graph.make_tensor, shape, dtype)

    tensor = make_tensor

    @contextlib.contextmanager
    def _of_priority(self, priority):
        """Of one task, instead of graph.priority."""
        before = self.get_priority()
        if priority is not None:
            self.set_priority(_checks.integer(priority, "priority"))
        try:
            yield
        finally:
            self.set_priority(before)

    def add_task(self, kernel: Callable | KernelFunction, *args: _Argument | _Arguments, when: _Condition | None = None, block_dim: int | None = None,
                 sync_start: bool = False, priority: int | None = None) -> int:
        """As orch.submit(), but that add_successor() says what it comes after."""
        _note_place(self, _place_in_graph)
        kernel, args = _kernel_and_args(self, kernel, args, "Graph.add_task")
        args = _arguments.several(kernel, args, (), when, block_dim, sync_start)
        if priority is None:
            return Pto.Graph.add_task(self, kernel, args)
        with self._of_priority(priority):
            return Pto.Graph.add_task(self, kernel, args)

    def add_mixed(self, aic: Callable | None, aiv0: Callable | None, aiv1: Callable | None, *args: _Argument | _Arguments,
                  when: _Condition | None = None, block_dim: int | None = None, sync_start: bool = False, priority: int | None = None) -> int:
        """As orch.submit_mixed()."""
        _note_place(self, _place_in_graph)
        for name, kernel in ("aic", aic), ("aiv0", aiv0), ("aiv1", aiv1):
            if kernel is not None:
                _arguments.kernel_of(kernel, f"Graph.add_mixed: {name}")
        with self._of_priority(priority):
            return Pto.Graph.add_mixed(self, aic, aiv0, aiv1, _arguments.several(aic or aiv0 or aiv1, _arguments.only(args), (), when, block_dim, sync_start))

    def add_group(self, kernels: Iterable[Callable], args_list: Iterable[_Arguments], when: _Condition | None = None, priority: int | None = None) -> int:
        """Kernels that begin at once on different cores, each with its own list of arguments."""
        _note_place(self, _place_in_graph)
        kernels = [_arguments.kernel_of(kernel, f"Graph.add_group: kernel {i}") for i, kernel in enumerate(kernels)]
        with self._of_priority(priority):
            return Pto.Graph.add_group(self, kernels, _arguments.members(args_list, (), when))

    def add_order(self, *args: _Argument | _Arguments) -> int:
        """A task that runs nothing."""
        _note_place(self, _place_in_graph)
        return Pto.Graph.add_order(self, _arguments.args_of(_arguments.only(args)))

    @staticmethod
    def scratch(shape: _Shape, dtype: _DtypeLike = "f4") -> _Tagged:
        """An argument: memory for one task alone."""
        return _make(None, lambda _, dtype, shape: Tensor.new(dtype, shape), shape, dtype), Pto.Direction.SCRATCH
