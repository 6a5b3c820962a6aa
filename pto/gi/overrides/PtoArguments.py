# PtoArguments.py: what is given to a task, or to a run?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Lists of Python are the TaskArgs that the library takes, and what a submit says of its task goes along in them.
from __future__ import annotations

import collections
import collections.abc
import contextlib
import ctypes
import numbers
import operator

from ..module import get_introspection_module
from . import PtoChecks as _checks
from .PtoTensors import Tensor, operator_of, value_of
from .PtoText import N_, _, shown

Pto = get_introspection_module("Pto")

TaskArgsView = collections.namedtuple("TaskArgsView", "tensor_count scalar_count tensors scalars")
# Of what is looked at before.
_add_scalar, _add_scalar_signed, _add_tensor = Pto.TaskArgs.add_scalar, Pto.TaskArgs.add_scalar_signed, Pto.TaskArgs.add_tensor
_REDUCTION = Pto.Direction.REDUCTION
_UNSIGNED = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64)
_SIGNED = (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64)


def _is_numpy_bool(value: Any) -> bool:
    """NumPy's truth values are no numbers of Python's. Their type is bool_ in NumPy 1 and bool in NumPy 2."""
    return type(value).__module__ == "numpy" and type(value).__name__ in ("bool_", "bool")


class TaskArgs(Pto.TaskArgs):
    """Tensors, then numbers. As a sequence: NumPy arrays (tensors without NumPy), then numbers as they were given.

    An integer is signed, or unsigned above 2**63 - 1; a float is a number that kernels get as a C float, and functions
    as it is. ctypes.c_double(x), c_float, c_int64, c_uint64 say which of the four is meant."""

    def __new__(cls, *args: _Argument) -> TaskArgs:
        self = Pto.TaskArgs.new()
        for i, arg in enumerate(args):
            if isinstance(arg, tuple):
                self.add_tensor(*arg)
            elif isinstance(arg, Pto.Tensor):
                raise TypeError(_("argument {i}: what is done with the tensor? x.read(), x.write(), x.update(), "
                                  "x.write_existing(), x.commute(), x.reduce(\"sum\") or x.no_dep()").format(i=i))
            else:
                try:
                    self.add_scalar(arg)
                except (TypeError, OverflowError) as error:
                    raise type(error)(_("argument {i}: {why}").format(i=i, why=error)) from None
        return self

    def __init__(self, *args: _Argument) -> None:
        pass

    def add_tensor(self, tensor: _ArrayLike, direction: Direction = Pto.Direction.INPUT, how: str | Reduction | Callable | None = None,
                   initial: float = ...) -> None:
        """What is done with it is a Direction; with REDUCTION, how and initial are those of Tensor.reduce()."""
        if type(direction) is not Pto.Direction:
            direction = _checks.member(Pto.Direction, direction, "TaskArgs.add_tensor: direction")
        if direction != _REDUCTION or how is None:
            _add_tensor(self, Tensor.of(tensor), direction)
        elif isinstance(how, Pto.Callable):
            Pto.TaskArgs.add_reduction_kernel(self, Tensor.of(tensor), how, value_of(0 if initial is ... else initial))
        elif initial is not ...:
            raise TypeError(_("a copy that is reduced by {operator} begins with what changes nothing: {initial}, which says "
                              "something else, is for a kernel").format(operator=operator_of(how).value_nick, initial=shown(initial)))
        else:
            Pto.TaskArgs.add_reduction(self, Tensor.of(tensor), operator_of(how))

    def add_reduction(self, tensor: _ArrayLike, how: str | Reduction | Callable, initial: float = ...) -> None:
        """As x.reduce()."""
        self.add_tensor(*Tensor.of(tensor).reduce(how, initial))

    def add_scalar(self, value: _Number) -> None:
        """A number: an integer, a float, or one of ctypes where it matters which."""
        if isinstance(value, ctypes.c_double):
            self.add_scalar_double(value.value)
        elif isinstance(value, ctypes.c_float):
            self.add_scalar_float(value.value)
        elif isinstance(value, _UNSIGNED):
            _add_scalar(self, value.value)
        elif isinstance(value, _SIGNED):
            _add_scalar_signed(self, value.value)
        elif isinstance(value, numbers.Integral) or _is_numpy_bool(value):
            value, unsigned = int(value), getattr(getattr(value, "dtype", None), "kind", "") == "u"
            if not -2**63 <= value < 2**64:
                raise OverflowError(_("{value} does not fit in 64 bits").format(value=value))
            if unsigned or value >= 2**63:
                _add_scalar(self, value)
            else:
                _add_scalar_signed(self, value)
        elif isinstance(value, numbers.Real):
            self.add_scalar_float(float(value))
        else:
            raise TypeError(_("{type} is neither a number nor a tensor with what is done with it, x.read()").format(
                type=type(value).__name__))

    def __len__(self) -> int:
        return self.get_n_args()

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(_("argument {i} of {n}").format(i=index, n=len(self)))
        index %= len(self)
        if self.get_direction(index) == Pto.Direction.SCALAR:
            return self.get_scalar_value(index)
        tensor = self.get_tensor(index)
        with contextlib.suppress(ImportError, ValueError):  # no NumPy, no memory
            import numpy
            return numpy.asarray(tensor)
        return tensor

    @property
    def tensor_count(self) -> int:
        """How many tensors there are; they come first."""
        return self.get_n_tensors()

    @property
    def scalar_count(self) -> int:
        """How many numbers there are, behind the tensors."""
        return self.get_n_scalars()

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors."""
        return [self.get_tensor(i) for i in range(self.tensor_count)]

    @property
    def scalars(self) -> list[int]:
        """The words of the numbers, as kernels get them."""
        return [self.get_scalar(i) for i in range(self.tensor_count, len(self))]

    def tag(self, index: int) -> Direction:
        """What is done with a tensor."""
        if not 0 <= index < self.tensor_count:
            raise IndexError(_("tag: tensor {i} of {n}").format(i=index, n=self.tensor_count))
        return self.get_direction(index)

    def view(self) -> _TaskArgsView:
        """What they hold, without the tags."""
        return TaskArgsView(self.tensor_count, self.scalar_count, self.tensors, self.scalars)


def given(what):
    """An argument of a run: arrays are tensors; numbers, text, None and what is tagged stay what they are."""
    kept = (numbers.Number, str, ctypes.c_float, ctypes.c_double, *_UNSIGNED, *_SIGNED)
    is_tagged = isinstance(what, tuple) and len(what) in (2, 4) and isinstance(what[0], Pto.Tensor)
    is_kept = is_tagged or what is None or isinstance(what, kept) or _is_numpy_bool(what)
    return what if is_kept else Tensor.of(what)


def untagged(what):
    """An argument of a whole orchestration, which may do with it whatever can be done, unless it is tagged as an input."""
    if isinstance(what, tuple) and what[1] == Pto.Direction.INPUT:
        return what[0].as_read_only(), what[1]
    if not isinstance(what, Pto.Tensor):
        return what
    return what, Pto.Direction.INPUT if what.is_read_only() else Pto.Direction.INOUT


def args_of(what):
    return what if what is None or isinstance(what, Pto.TaskArgs) else TaskArgs(*what)


def tasks_of(after):
    tasks = list(after) if isinstance(after, collections.abc.Iterable) else [after]
    for task in tasks:
        if not hasattr(task, "__index__") or isinstance(task, bool) or operator.index(task) < 0:
            raise TypeError(_("after: {task} is not an integer that submit() gives: one is wanted, a list of them, or []").format(
                task=shown(task)))
    return tasks


def terms(what, after, when=None):
    """The arguments of a submit with what else it says of its task."""
    after = tasks_of(after)
    if not after and when is None:
        return args_of(what)
    if isinstance(what, Pto.TaskArgs):
        raise TypeError(_("a TaskArgs says itself what its task comes after: add_after(), set_condition()"))
    args = TaskArgs(*(what or ()))
    for task in after:
        args.add_after(task)
    if when is not None:
        tensor, *index = when if isinstance(when, tuple) else (when,)
        tensor = Tensor.of(tensor)
        args.set_condition(tensor, index or [0] * tensor.get_n_dims())
    return args


def kernel_of(what, where):
    if not isinstance(what, Pto.Callable):
        if hasattr(what, "kernel_for"):
            raise TypeError(_("{where}: {what} stands for a kernel in submit() and add_task(): its .kernel is one").format(
                where=where, what=shown(what)))
        raise TypeError(_("{where}: {what} is no kernel: Pto.Callable.kernel(path) makes one").format(where=where, what=shown(what)))
    return what


_NO_BLOCKS = N_('kernel "{kernel}": block_dim is {value}: a whole number, 1 to {most}, is wanted')
_NO_CLUSTER = N_('kernel "{kernel}": cluster is {value}: a number that allocate_cluster() gave, is wanted')


def several(kernel, what, after, when=None, block_dim=None, sync_start=False, cluster=None):
    """The same with how often the kernel runs, and where."""
    args = terms(what, after, when)
    if block_dim is None and cluster is None and sync_start is False:
        return args
    if not isinstance(sync_start, bool):
        raise TypeError(_("kernel \"{kernel}\": sync_start is {value}: True or False is wanted; block_dim says how many blocks "
                          "there are").format(kernel=getattr(kernel, "name", kernel), value=shown(sync_start)))
    if isinstance(what, Pto.TaskArgs):
        raise TypeError(_("a TaskArgs says itself what its task is: set_block_dim(), set_sync_start(), set_cluster()"))
    args = TaskArgs() if args is None else args
    for name, value, refusal in ("block_dim", block_dim, _NO_BLOCKS), ("cluster", cluster, _NO_CLUSTER):
        try:
            if value is not None:
                getattr(args, "set_" + name)(value)
        except (TypeError, OverflowError):
            raise TypeError(_(refusal).format(kernel=getattr(kernel, "name", kernel), value=shown(value), most=Pto.MAX_BLOCKS)) from None
    args.set_sync_start(sync_start)
    return args


def only(args):
    """Arguments one by one, as a list or as a TaskArgs."""
    return args[0] if len(args) == 1 and isinstance(args[0], (list, Pto.TaskArgs)) else args


def members(args_list, after, when=None):
    """A group is one task: what one of its members says of that is said of all."""
    members = list(args_list)
    return [terms(args, after, when) if i == 0 else terms(args, ()) for i, args in enumerate(members)]


def cores_of(kernels, cores):
    """Numbers of cores, each among those of its type, of the names that a trace has, or of numbers."""
    if cores is None:
        return None
    numbers = []
    for i, core in enumerate(cores):
        if isinstance(core, str):
            type_ = kernels[i].get_core_type().value_nick.upper() if i < len(kernels) else ""
            if not core.startswith(type_) or not core[3:].isdecimal():
                raise ValueError(_("submit_group: cores: member {i} is for {core}: a core of its kernel's type is wanted, {type}0 or a "
                                   "number").format(i=i, core=shown(core), type=type_))
            core = int(core[3:])
        numbers.append(-1 if core is None else _checks.integer(core, "submit_group: cores"))
    return numbers


class CallConfig(Pto.CallConfig):
    """Choices by their names; CallConfig(3, 4), as the seeds write it, is block_dim and aicpu_thread_num."""

    def __new__(cls, *first: int, **choices: _Choices) -> CallConfig:
        names = ("block_dim", "aicpu_thread_num")
        if len(first) > len(names):
            raise TypeError(_("CallConfig: {n} values without a name: there are {first} and {second}, all others have one").format(
                n=len(first), first=names[0], second=names[1]))
        if (twice := [name for name in names[:len(first)] if name in choices]):
            raise TypeError(_("CallConfig: {name} is there twice").format(name=twice[0]))
        self = Pto.CallConfig.new()
        for name, value in (*zip(names, first), *choices.items()):
            setattr(self, name, value)
        return self

    def __init__(self, *first: int, **choices: _Choices) -> None:
        pass
