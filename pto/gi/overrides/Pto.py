# Pto.py: what does Python expect of the library beyond what its introspection data gives?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arrays as tensors, functions as callables, exceptions, os.fork and Ctrl-C. What works through plain PyGObject works
# here, too, but for the order of what run() is given.
import collections
import collections.abc
import concurrent.futures
import contextlib
import contextvars
import ctypes
import functools
import html
import inspect
import itertools
import math
import numbers
import operator
import os
import pkgutil
import shlex
import signal
import socket
import sys
import threading
import types
import weakref

from gi.overrides import override
from gi.repository import Gio, GLib, GObject

from ..module import get_introspection_module

GLib.quark_from_string("pto-python-override")  # or the library says, at the first type, that this file was not found
Pto = get_introspection_module("Pto")
from . import PtoChecks as _checks  # noqa: E402, it asks for types
from . import PtoExceptions as _exceptions  # noqa: E402, so does it

__all__ = []
ERROR = "pto-error-quark"
_NOT_PROGRAMS = (os.path.dirname(__file__) + os.sep, contextlib.__file__)  # of whose lines nobody is told


def _export(type_):
    type_ = override(type_)
    __all__.append(type_.__name__)
    return type_


# --- memory and arguments ---

def _dtype(what):
    """Pto.Dtype of anything that NumPy takes for a type: their names agree, those of ml_dtypes too. A name goes without
    NumPy, which has none for some of them."""
    if isinstance(what, Pto.Dtype):
        return what
    if isinstance(what, str):
        name = what.upper().replace("-", "_")
        found = getattr(Pto.Dtype, {"FLOAT8_E4M3": "FLOAT8_E4M3FN"}.get(name, name), None)
        if isinstance(found, Pto.Dtype):
            return found
    import numpy
    try:
        dtype = numpy.dtype(what if what is not None else "none")
    except TypeError:
        raise TypeError(f"dtype: {what!r} is no type of elements: one of Pto.Dtype or of NumPy, or a name, is wanted") from None
    found = getattr(Pto.Dtype, dtype.name.upper(), None)
    if not isinstance(found, Pto.Dtype) or not dtype.isnative:
        raise TypeError(f"there is no tensor of {what}: float64, float32, float16, bool or an integer type wanted")
    return found


_AS_BITS = {"bfloat16": "uint16", "float8-e4m3fn": "uint8", "float8-e5m2": "uint8", "int4": "uint8"}  # without ml_dtypes


class _Owner(GObject.Object):
    """What a tensor keeps of Python's: its attribute lives as long as the memory can be reached."""


def _array_of_list(what):
    """Numbers without a type are float32, as everywhere here; None for what is no list."""
    import numpy
    if not isinstance(what, (list, tuple, range)):
        return None
    given = numpy.asarray(what)
    if given.dtype.kind not in "iuf":
        return given
    with numpy.errstate(over="ignore"):
        array = given.astype(numpy.float32)
    if given.dtype.kind == "f" and not (numpy.isfinite(array) | ~numpy.isfinite(given)).all():
        raise ValueError("a list becomes float32, which can not hold numbers as large as these: give an array of float64")
    if given.dtype.kind != "f" and not (array.astype(object) == given.astype(object)).all():
        raise ValueError("a list becomes float32, which can not hold these integers: give an array of the type you mean")
    return array


def _array(what):
    """A NumPy array of what is given, and whether writing there reaches it: not a list, nor what can only be read."""
    import numpy
    array = _array_of_list(what)
    if array is not None:
        return array, False
    array = numpy.asarray(what)
    reaches = isinstance(what, numpy.ndarray) or numpy.asarray(what).ctypes.data == array.ctypes.data
    return array, reaches and array.flags.writeable


def _array_interface(shape, typestr, address, strides=None, read_only=False):
    return {"version": 3, "shape": shape, "typestr": typestr, "data": (address, read_only), "strides": strides}


@_export
class Buffer(Pto.Buffer):
    __array_interface__ = property(lambda self: _array_interface((self.get_size(),), "|u1", self.get_address()))

    @staticmethod
    def array(shape, dtype="f4"):
        """A NumPy array of zeros that child processes see, too."""
        import numpy
        dtype = numpy.dtype(dtype)
        shape = tuple(map(operator.index, shape)) if isinstance(shape, collections.abc.Iterable) else (operator.index(shape),)
        size = math.prod(shape) * dtype.itemsize  # without overflow
        if min(shape, default=0) < 0 or size >= 2**63:
            raise ValueError(f"there is no array of the shape {shape}: its extents are at least 0, its bytes below 2**63")
        return numpy.asarray(Buffer.new(max(size, 1)))[:size].view(dtype).reshape(shape)


def _tagged(direction):
    return lambda self: (self, direction)


@_export
class Tensor(Pto.Tensor):
    """In a list of arguments x.read() is an input, x.write() an output, x.update() both; x.write_existing() goes to
    memory that is there, x.commute() updates in any order with others that do, x.reduce("sum") at the same time as others
    that do, x.no_dep() orders nothing."""

    def reduce(self, how, initial=...):
        """The task reduces into a copy, at the same time as others that do so in the same way; the copies are combined when
        something else uses the tensor: how is "sum", "prod", "min" or "max", or a kernel that takes two tensors, the second
        into the first, with what an element of a copy begins with, or 0."""
        return self, Pto.Direction.REDUCTION, how if isinstance(how, Pto.Callable) else _operator(how), initial

    read, write, update = map(_tagged, (Pto.Direction.INPUT, Pto.Direction.OUTPUT, Pto.Direction.INOUT))
    write_existing, no_dep, commute = map(_tagged, (Pto.Direction.OUTPUT_EXISTING, Pto.Direction.NO_DEP,
                                                    Pto.Direction.COMMUTATIVE))
    shape = property(lambda self: tuple(self.get_shape()))
    dtype = property(lambda self: self.get_dtype())

    @staticmethod
    def of(what):
        """A tensor of a tensor, a buffer or anything like a NumPy array, which it keeps. A list, and what can only be
        read, is an input only."""
        if isinstance(what, Pto.Tensor):
            return what
        if what is None or isinstance(what, (numbers.Number, str, Pto.Callable)):
            raise TypeError(f"{what!r} is no tensor: a tensor, an array or a list of numbers is wanted")
        array, writable = _array(what)
        owner = _Owner()
        owner.memory = array
        if array.flags.c_contiguous or array.size == 0:
            tensor = Tensor.new_for_object(array.ctypes.data, _dtype(array.dtype), list(array.shape), owner)
        else:
            tensor = Tensor._strided(array, owner)
        return tensor if writable else tensor.as_read_only()

    @staticmethod
    def _strided(array, owner):
        """A view of all that lies between its first and its last element."""
        steps = [stride if n > 1 else array.itemsize for n, stride in zip(array.shape, array.strides)]
        if any(step <= 0 or step % array.itemsize for step in steps):
            raise ValueError("an array whose elements lie backwards, at one place or at distances that are no multiple of their "
                             "size is no tensor: numpy.ascontiguousarray() makes a copy that is")
        steps = [step // array.itemsize for step in steps]
        span = 1 + sum((n - 1) * step for n, step in zip(array.shape, steps))
        whole = Tensor.new_for_object(array.ctypes.data, _dtype(array.dtype), [span], owner)
        return whole.as_strided(list(array.shape), steps, 0)

    @property
    def __array_interface__(self):
        import numpy
        if self.get_address() == 0:
            raise ValueError("this tensor has no memory yet: a task outputs it, or it stands for a tensor of a graph's launch")
        nick = self.dtype.value_nick
        dtype = numpy.dtype(_AS_BITS.get(nick, nick))
        strides = tuple(stride * dtype.itemsize for stride in self.get_strides())
        return _array_interface(self.shape, dtype.str, self.get_address(), strides, self.is_read_only())


def _operator(how):
    if isinstance(how, Pto.Reduction):
        return how
    names = ("sum", "prod", "min", "max")
    if how not in names:
        raise ValueError(f'{how!r} is nothing that tensors are reduced by: "sum", "prod", "min", "max", or a kernel')
    return Pto.Reduction(names.index(how))


def _value(value):
    """A number as C takes any: an integer is one, a fraction a double."""
    if value is None:
        raise TypeError("None is no number, as the elements of a tensor are")
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if not -2**63 <= value < 2**64:
            raise OverflowError(f"{value} does not fit in 64 bits")
        return GObject.Value(GObject.TYPE_UINT64 if value >= 2**63 else GObject.TYPE_INT64, int(value))
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value


TaskArgsView = collections.namedtuple("TaskArgsView", "tensor_count scalar_count tensors scalars")
# Of what is looked at before.
_add_scalar, _add_scalar_signed, _add_tensor = Pto.TaskArgs.add_scalar, Pto.TaskArgs.add_scalar_signed, Pto.TaskArgs.add_tensor
_REDUCTION = Pto.Direction.REDUCTION
_UNSIGNED = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64)
_SIGNED = (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64)


@_export
class TaskArgs(Pto.TaskArgs):
    """Tensors, then numbers. As a sequence: NumPy arrays (tensors without NumPy), then numbers as they were given.

    An integer is signed, or unsigned above 2**63 - 1; a float is a number that kernels get as a C float, and functions
    as it is. ctypes.c_double(x), c_float, c_int64, c_uint64 say which of the four is meant."""

    def __new__(cls, *args):
        self = Pto.TaskArgs.new()
        for i, arg in enumerate(args):
            if isinstance(arg, tuple):
                self.add_tensor(*arg)
            elif isinstance(arg, Pto.Tensor):
                raise TypeError(f"argument {i}: what is done with the tensor? x.read(), x.write(), x.update(), "
                                "x.write_existing(), x.commute(), x.reduce(\"sum\") or x.no_dep()")
            else:
                try:
                    self.add_scalar(arg)
                except (TypeError, OverflowError) as error:
                    raise type(error)(f"argument {i}: {error}") from None
        return self

    def __init__(self, *args):
        pass

    def add_tensor(self, tensor, direction=Pto.Direction.INPUT, how=None, initial=...):
        if type(direction) is not Pto.Direction:
            direction = _checks.member(Pto.Direction, direction, "TaskArgs.add_tensor: direction")
        if direction != _REDUCTION or how is None:
            _add_tensor(self, Tensor.of(tensor), direction)
        elif isinstance(how, Pto.Callable):
            Pto.TaskArgs.add_reduction_kernel(self, Tensor.of(tensor), how, _value(0 if initial is ... else initial))
        elif initial is not ...:
            raise TypeError(f"a copy that is reduced by {_operator(how).value_nick} begins with what changes nothing: "
                            f"{initial!r}, which says something else, is for a kernel")
        else:
            Pto.TaskArgs.add_reduction(self, Tensor.of(tensor), _operator(how))

    def add_reduction(self, tensor, how, initial=...):
        """As x.reduce()."""
        self.add_tensor(*Tensor.of(tensor).reduce(how, initial))

    def add_scalar(self, value):
        if isinstance(value, ctypes.c_double):
            self.add_scalar_double(value.value)
        elif isinstance(value, ctypes.c_float):
            self.add_scalar_float(value.value)
        elif isinstance(value, _UNSIGNED):
            _add_scalar(self, value.value)
        elif isinstance(value, _SIGNED):
            _add_scalar_signed(self, value.value)
        elif isinstance(value, numbers.Integral) or type(value).__name__ == "bool_":  # NumPy's is no number
            value, unsigned = int(value), getattr(getattr(value, "dtype", None), "kind", "") == "u"
            if not -2**63 <= value < 2**64:
                raise OverflowError(f"{value} does not fit in 64 bits")
            if unsigned or value >= 2**63:
                _add_scalar(self, value)
            else:
                _add_scalar_signed(self, value)
        elif isinstance(value, numbers.Real):
            self.add_scalar_float(float(value))
        else:
            raise TypeError(f"{type(value).__name__} is neither a number nor a tensor with what is done with it, x.read()")

    def __len__(self):
        return self.get_n_args()

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"argument {index} of {len(self)}")
        index %= len(self)
        if self.get_direction(index) == Pto.Direction.SCALAR:
            return self.get_scalar_value(index)
        tensor = self.get_tensor(index)
        with contextlib.suppress(ImportError, ValueError):  # no NumPy, no memory
            import numpy
            return numpy.asarray(tensor)
        return tensor

    tensor_count = property(lambda self: self.get_n_tensors())
    scalar_count = property(lambda self: self.get_n_scalars())
    tensors = property(lambda self: [self.get_tensor(i) for i in range(self.tensor_count)])
    scalars = property(lambda self: [self.get_scalar(i) for i in range(self.tensor_count, len(self))])

    def tag(self, index):
        """What is done with a tensor."""
        if not 0 <= index < self.tensor_count:
            raise IndexError(f"tag: tensor {index} of {self.tensor_count}")
        return self.get_direction(index)

    def view(self):
        """What they hold, without the tags."""
        return TaskArgsView(self.tensor_count, self.scalar_count, self.tensors, self.scalars)


def _given(what):
    """An argument of a run: arrays are tensors; numbers, text, None and what is tagged stay what they are."""
    kept = (numbers.Number, str, ctypes.c_float, ctypes.c_double, *_UNSIGNED, *_SIGNED)
    is_tagged = isinstance(what, tuple) and len(what) in (2, 4) and isinstance(what[0], Pto.Tensor)
    is_kept = is_tagged or what is None or isinstance(what, kept) or type(what).__name__ == "bool_"  # NumPy's is no number
    return what if is_kept else Tensor.of(what)


def _untagged(what):
    """An argument of a whole orchestration, which may do with it whatever can be done, unless it is tagged as an input."""
    if isinstance(what, tuple) and what[1] == Pto.Direction.INPUT:
        return what[0].as_read_only(), what[1]
    if not isinstance(what, Pto.Tensor):
        return what
    return what, Pto.Direction.INPUT if what.is_read_only() else Pto.Direction.INOUT


def _args(what):
    return what if what is None or isinstance(what, Pto.TaskArgs) else TaskArgs(*what)


def _tasks(after):
    tasks = list(after) if isinstance(after, collections.abc.Iterable) else [after]
    for task in tasks:
        if not hasattr(task, "__index__") or isinstance(task, bool) or operator.index(task) < 0:
            raise TypeError(f"after: {task!r} is not an integer that submit() gives: one is wanted, a list of them, or []")
    return tasks


def _terms(what, after, when=None):
    """The arguments of a submit with what else it says of its task."""
    after = _tasks(after)
    if not after and when is None:
        return _args(what)
    if isinstance(what, Pto.TaskArgs):
        raise TypeError("a TaskArgs says itself what its task comes after: add_after(), set_condition()")
    args = TaskArgs(*(what or ()))
    for task in after:
        args.add_after(task)
    if when is not None:
        tensor, *index = when if isinstance(when, tuple) else (when,)
        tensor = Tensor.of(tensor)
        args.set_condition(tensor, index or [0] * tensor.get_n_dims())
    return args


def _kernel(what, where):
    if not isinstance(what, Pto.Callable):
        raise TypeError(f"{where}: {what!r} is no kernel: Pto.Callable.kernel(path) makes one")
    return what


def _several(kernel, what, after, when=None, block_dim=None, sync_start=False, cluster=None):
    """The same with how often the kernel runs, and where."""
    args = _terms(what, after, when)
    if block_dim is None and cluster is None and sync_start is False:
        return args
    task = f'kernel "{getattr(kernel, "name", kernel)}"'
    if not isinstance(sync_start, bool):
        raise TypeError(f"{task}: sync_start is {sync_start!r}: True or False is wanted; block_dim says how many blocks there are")
    if isinstance(what, Pto.TaskArgs):
        raise TypeError("a TaskArgs says itself what its task is: set_block_dim(), set_sync_start(), set_cluster()")
    args = args or TaskArgs()
    for name, value, wanted in (("block_dim", block_dim, f"a whole number, 1 to {Pto.MAX_BLOCKS}"),
                                ("cluster", cluster, "a number that allocate_cluster() gave")):
        try:
            if value is not None:
                getattr(args, "set_" + name)(value)
        except (TypeError, OverflowError):
            raise TypeError(f"{task}: {name} is {value!r}: {wanted}, is wanted") from None
    args.set_sync_start(sync_start)
    return args


def _only(args):
    """Arguments one by one, as a list or as a TaskArgs."""
    return args[0] if len(args) == 1 and isinstance(args[0], (list, Pto.TaskArgs)) else args


def _members(args_list, after):
    """A group is one task: what one of its members says of that is said of all."""
    members = list(args_list)
    return [_terms(args, after if i == 0 else ()) for i, args in enumerate(members)]


@_export
class CallConfig(Pto.CallConfig):
    def __new__(cls, **choices):
        self = Pto.CallConfig.new()
        for name, value in choices.items():
            setattr(self, name, value)
        return self

    def __init__(self, **choices):
        pass


# --- functions ---

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
    raise TypeError(f'"{name}" {what}, which does nothing by itself: an orchestration or SUB function is a plain function '
                    "that does its work before it returns, without async def, await and yield")


def _check_function(function):
    for plain in (function, getattr(type(function), "__call__", None)):
        if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
            _refuse_later(function, "is an async function: calling it gives a coroutine")
        if inspect.isgeneratorfunction(plain):
            _refuse_later(function, "is a generator function: calling it gives a generator")


def _check_result(function, result):
    if isinstance(result, _LATER):
        if inspect.iscoroutine(result):
            result.close()  # or it would be said that nobody has awaited it
        _refuse_later(function, f"has returned a {type(result).__name__}")
    return result is not False


def _as_callback(function, choose, state=None, all_of_them=False):
    """Gives it as many of the chosen arguments as it takes; only False means that it has failed."""
    _check_function(function)
    count = None if all_of_them else _count(function)

    def call(*args):
        is_orchestration = isinstance(args[0], Pto.Orchestrator)
        token = _inside.set(_inside.get() + ((weakref.ref(args[0]), threading.get_ident()),) * is_orchestration)
        try:
            if state is not None:
                state.in_function = True
            return _check_result(function, function(*choose(args)[:count]))
        except BaseException as exception:
            if state is not None:
                state.raised = exception
            raise _exceptions.error_of(exception) from None
        finally:
            if state is not None:
                state.in_function = False
            _inside.reset(token)
            sys.stdout.flush()
    return call


_inside = contextvars.ContextVar("pto-inside", default=())  # orchestrators whose functions are under way, and their threads


def _is_inside(worker, on_other_thread=False):
    """In a function of its own, which does not return before what it waits for: also from another worker's function, or a
    thread, that it waits for."""
    return any((orchestrator := ref()) is not None and orchestrator.is_valid() and orchestrator.get_worker() == worker
               and (not on_other_thread or thread != threading.get_ident())
               for ref, thread in _inside.get())


def _check_outside(worker, what="use its own worker for another run", **choices):
    if _is_inside(worker, **choices):
        raise GLib.Error(f"an orchestration function can not {what}", ERROR, int(Pto.Error.BUSY))


def _import(kind, path, *_):
    try:
        return Callable.function(pkgutil.resolve_name(path), kind)
    except Exception as exception:
        raise GLib.Error(f'"{path}" can not be imported: {exception}', ERROR, int(Pto.Error.LOAD)) from None


def _import_path(function):
    """module:qualname, when that finds the same function in a process that begins anew."""
    path = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', '')}"
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        return path if not path.startswith("__main__:") and pkgutil.resolve_name(path) is function else None


def _words(what):
    """A list of words of one text, or of a list."""
    return shlex.split(what) if isinstance(what, str) else list(what)


def _paths(what):
    """A list of directories of one, or of a list."""
    return [os.fspath(path) for path in ([what] if isinstance(what, (str, bytes, os.PathLike)) else what)]


@_export
class Callable(Pto.Callable):
    def build_async(self, cancellable=None, callback=None):
        """Like build(), in asyncio: await kernel.build_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _await_alone(cancellable := cancellable or Gio.Cancellable(), self.build, cancellable)
        return Pto.Callable.build_async(self, cancellable, lambda it, result, *_: callback(it, result))

    @staticmethod
    def kernel(path, core="aiv", args=-1, include_dirs=None, flags=None):
        """Of a source or an object; args=3 says how many arguments it takes, and a submit with others is refused. A source
        is compiled with include_dirs, a list or one, and flags, a list of words or one text."""
        cores = {"aic": Pto.CoreType.AIC, "aiv": Pto.CoreType.AIV}
        core = cores.get(core.lower()) if isinstance(core, str) else core
        if core not in cores.values():
            raise ValueError(f"{path}: there is no such type of core: it is \"aic\" or \"aiv\"")
        self = Pto.Kernel.new(core, path, None)
        self.set_n_args(args)
        if include_dirs:
            self.set_include_dirs(include_dirs)
        if flags:
            self.set_compiler_flags(flags)
        return self

    def set_include_dirs(self, dirs):
        """A list of directories, or one."""
        Pto.Callable.set_include_dirs(self, _paths(dirs))

    def set_compiler_flags(self, flags):
        """A list of words, or one text that is split into words as a shell does."""
        Pto.Callable.set_compiler_flags(self, _words(flags))

    @staticmethod
    def chip(directory):
        """Of the orchestration and the kernels that a directory's pto.ini names."""
        return Pto.ChipOrchestration.new_for_directory(os.fspath(directory))

    @staticmethod
    def function(function, kind=None):
        """Of a Python function: an orchestration takes (orch, args, config), a SUB function (args) or nothing."""
        kinds, count = Pto.CallableKind, _count(function)
        if kind is None and count is None:
            raise TypeError("a function with *args can be both: Pto.Callable.function(it, Pto.CallableKind.SUB)")
        name = _exceptions.text_of(getattr(function, "__name__", type(function).__name__))
        if kind == kinds.SUB or (kind is None and count <= 1):
            return Pto.SubFunction.new(name, _as_callback(function, lambda given: given[:1]))
        return Pto.OrchestrationFunction.new(name, _as_callback(function, lambda given: given[:3]))


# --- orchestrations ---

def _handle(what):
    if isinstance(what, Pto.CallableHandle):
        return what
    raise TypeError(f"{what!r} is not registered: worker.register() it first, and submit the handle which that returns")


def _make(self, make, shape, dtype):
    """Both orders: (dtype, shape) as in C, (shape, dtype) as in NumPy."""
    if isinstance(shape, Pto.Dtype):
        shape, dtype = dtype, shape
    if not isinstance(shape, collections.abc.Iterable):
        shape = [_checks.integer(shape, "shape", 1, 2**64 - 1)]
    return make(self, _dtype(dtype), list(shape))


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


@_export
class Orchestrator(Pto.Orchestrator):
    """Arguments are a TaskArgs, or a list: x.read(), y.write(), numbers. What is refused is raised. after=[number,
    ...] are tasks that this one comes after, whatever its tensors are: what submit() and submit_order() give, or last_task
    (seed 001 has the others give None)."""

    last_task = property(lambda self: _Task(self.get_last_task()))
    _needs_place = functools.cached_property(Pto.Orchestrator.needs_place)  # asked once: a call costs much of a submit

    def set_priority(self, priority):
        if not 0 <= _checks.integer(priority, "Pto.Orchestrator.set_priority: priority") < 2**32:
            raise ValueError(f"there is no priority {priority}: a task has one of 0 to {Pto.MAX_PRIORITY}, which goes first")
        Pto.Orchestrator.set_priority(self, priority)

    def submit(self, kernel, *args, after=(), when=None, block_dim=None, sync_start=False, cluster=None, priority=None):
        """when=x or when=(x, 3): the kernel runs only where that element of x, or its first, is not 0 by then. block_dim=48:
        it runs so often, as one task; sync_start=True: all blocks begin at once. cluster=c: on the cores of that cluster.
        priority=3: that of this task alone, instead of orch.priority."""
        if self._needs_place:
            _note_place(self)
        _kernel(kernel, "submit")
        args = _several(kernel, _only(args), after, when, block_dim, sync_start, cluster)
        if priority is None:
            Pto.Orchestrator.submit(self, kernel, args)
            return self.last_task
        before = self.get_priority()
        self.set_priority(priority)
        try:
            Pto.Orchestrator.submit(self, kernel, args)
        finally:
            self.set_priority(before)
        return self.last_task

    def submit_mixed(self, aic, aiv0, aiv1, *args, after=(), block_dim=None, sync_start=False, cluster=None):
        """Kernels, or None, for the cube core and the vector cores of one cluster, which begin at once."""
        if self._needs_place:
            _note_place(self)
        for name, kernel in ("aic", aic), ("aiv0", aiv0), ("aiv1", aiv1):
            if kernel is not None:
                _kernel(kernel, f"submit_mixed: {name}")
        args = _several(aic or aiv0 or aiv1, _only(args), after, None, block_dim, sync_start, cluster)
        Pto.Orchestrator.submit_mixed(self, aic, aiv0, aiv1, args)
        return self.last_task

    def submit_group(self, kernels, *args, after=()):
        """Kernels that begin at once on different cores, wherever they are: on a chip what submit_sub_group() is above."""
        if self._needs_place:
            _note_place(self)
        if isinstance(kernels, (str, Pto.Callable)) or not isinstance(kernels, collections.abc.Iterable):
            raise TypeError(f"submit_group: kernels: {kernels!r} is not a list of kernels")
        kernels = [_kernel(kernel, f"submit_group: kernel {i}") for i, kernel in enumerate(kernels)]
        Pto.Orchestrator.submit_group(self, kernels, _terms(_only(args), after))
        return self.last_task

    def submit_order(self, *args, after=()):
        """A task that runs nothing: it comes after others, and others come after it."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.submit_order(self, _terms(args, after))
        return self.last_task

    def submit_next_level(self, handle, args=None, config=None, worker=-1, after=()):
        _note_place(self)
        Pto.Orchestrator.submit_next_level(self, _handle(handle), _terms(args, after), config, worker)

    def submit_next_level_group(self, handle, args_list, config=None, workers=None, after=()):
        _note_place(self)
        Pto.Orchestrator.submit_next_level_group(self, _handle(handle), _members(args_list, after), config, workers)

    def submit_sub(self, handle, args=None, worker=-1, after=()):
        _note_place(self)
        Pto.Orchestrator.submit_sub(self, _handle(handle), _terms(args, after), worker)

    def submit_sub_group(self, handle, args_list, workers=None, after=()):
        _note_place(self)
        Pto.Orchestrator.submit_sub_group(self, _handle(handle), _members(args_list, after), workers)

    def alloc(self, shape, dtype="f4"):
        if self._needs_place:
            _note_place(self)
        return _make(self, Pto.Orchestrator.alloc, shape, dtype)

    def make_tensor(self, shape, dtype="f4"):
        return _make(self, Pto.Orchestrator.make_tensor, shape, dtype)

    tensor = make_tensor

    def get_element(self, tensor, *index):
        """The number at that place, or the first one, once the tasks that write it are done."""
        if self._needs_place:
            _note_place(self)
        tensor = Tensor.of(tensor)
        return Pto.Orchestrator.get_element(self, tensor, index or [0] * tensor.get_n_dims())

    def set_element(self, tensor, *index, value):
        """Once the tasks that write or read it are done."""
        if self._needs_place:
            _note_place(self)
        tensor = Tensor.of(tensor)
        Pto.Orchestrator.set_element(self, tensor, index or [0] * tensor.get_n_dims(), _value(value))

    def scratch(self, shape, dtype="f4"):
        """An argument: memory for this task alone."""
        return _make(self, lambda _, dtype, shape: Tensor.new(dtype, shape), shape, dtype), Pto.Direction.SCRATCH

    def fill(self, tensor, value, after=()):
        """A task that gives each element that value: its number."""
        if self._needs_place:
            _note_place(self)
        Pto.Orchestrator.fill_after(self, Tensor.of(tensor), _value(value), _tasks(after))
        return self.last_task

    def allocate_cluster(self):
        if self._needs_place:
            _note_place(self)
        return Pto.Orchestrator.allocate_cluster(self)

    def begin_scope(self):
        _note_place(self)
        Pto.Orchestrator.begin_scope(self)

    def begin_manual_scope(self):
        _note_place(self)
        Pto.Orchestrator.begin_manual_scope(self)

    def scope(self):
        return self._scope(self.begin_scope)

    def manual_scope(self):
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

    def with_scope(self, function):
        return self._with(self.scope, function)

    def with_manual_scope(self, function):
        return self._with(self.manual_scope, function)

    def _with(self, scope, function):
        _check_function(function)
        with scope():
            result = function(self)
            if not _check_result(function, result):
                raise RuntimeError("the function of a scope has returned False")
        return result


# --- graphs that are built first ---

_place_in_graph = Pto.Graph.set_place


@_export
class Graph(Pto.Graph):
    """Captured by worker.capture(), or built by hand; run by worker.run(graph, x, y). Arguments of tasks are a TaskArgs, or
    x.read(), y.write(), numbers."""

    def add_argument(self, shape, dtype="f4"):
        return _make(self, Pto.Graph.add_argument, shape, dtype)

    def make_tensor(self, shape, dtype="f4"):
        return _make(self, Pto.Graph.make_tensor, shape, dtype)

    tensor = make_tensor

    def add_task(self, kernel, *args):
        _note_place(self, _place_in_graph)
        return Pto.Graph.add_task(self, _kernel(kernel, "Graph.add_task"), _args(_only(args)))


# --- workers ---

def _topic(what):
    """Of its name, as in `pto trace`, too."""
    if not isinstance(what, str):
        return what
    names = {Pto.TraceTopic(i).value_nick: Pto.TraceTopic(i) for i in Pto.TraceTopic.__enum_values__}
    if what not in names:
        raise ValueError(f'{what!r} is nothing that a trace is asked: {", ".join(names)}')
    return names[what]


def _label(task):
    """What names a task in a trace: 17, "17", "1:17", "7/1:17", or an id of JSON."""
    if isinstance(task, Pto.TraceTask):
        return task.dup_label()
    return task if isinstance(task, str) else str(_checks.integer(task, "a task"))


@_export
class Trace(Pto.Trace):
    @staticmethod
    def new_from_file(path):
        return Pto.Trace.new_from_file(os.fspath(path))

    def save(self, path):
        Pto.Trace.save(self, os.fspath(path))

    def save_html(self, path):
        Pto.Trace.save_html(self, os.fspath(path))

    def save_json(self, path):
        Pto.Trace.save_json(self, os.fspath(path))

    def save_perfetto(self, path):
        Pto.Trace.save_perfetto(self, os.fspath(path))

    def save_svg(self, path):
        Pto.Trace.save_svg(self, os.fspath(path))

    def describe(self, topic):
        """Of Pto.TraceTopic, or by its name: "critical-path"."""
        return Pto.Trace.describe(self, _topic(topic))

    def describe_json(self, topic):
        return Pto.Trace.describe_json(self, _topic(topic))

    def explain(self, task):
        """Why a task started when it did: one of list_tasks(), its number or id, "1:17" of ring 1, "7/1:17" inside of task 7."""
        return Pto.Trace.explain(self, _label(task))

    def explain_json(self, task):
        return Pto.Trace.explain_json(self, _label(task))

    explain_task, explain_task_json = explain, explain_json

    def _repr_html_(self):
        """The report, in a frame: what a notebook shows of a trace. It can not reach the page around it."""
        return ('<iframe sandbox="allow-scripts" title="Trace of a run" loading="lazy" style="width:100%;height:560px;'
                f'border:1px solid #8884;border-radius:8px" srcdoc="{html.escape(self.to_html())}"></iframe>')


class _Interrupts:
    """Ctrl-C while the main thread is in C: Python's handler runs later, its wake-up descriptor is written at once."""
    cancellable, state, noted = None, None, False

    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.settled = threading.Event()
        threading.Thread(target=self.watch, name="pto-interrupts", daemon=True).start()

    def watch(self):
        while data := self.reader.recv(64):
            cancellable = self.cancellable
            if signal.SIGINT in data and cancellable is not None:
                cancellable.cancel()
            if 0 in data:
                self.settled.set()

    def settle(self):
        """What was written is read, so that it does not cancel the next run."""
        self.settled.clear()
        with contextlib.suppress(BlockingIOError):
            self.writer.send(b"\0")
            self.settled.wait()

    def note(self, _, frame):
        """Raised in Python code, noted elsewhere: there is nobody to raise it to between here and C, nor while PyGObject
        makes an exception of an error."""
        self.noted = True
        if self.state.in_function and (frame is None or frame.f_globals.get("__name__") != "gi._error"):
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def watched(self, cancellable, state):
        self.cancellable, self.state, self.noted = cancellable, state, False
        signal.signal(signal.SIGINT, self.note)
        before = signal.set_wakeup_fd(self.writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        except GLib.Error as error:
            if not self.noted:
                raise
            raise KeyboardInterrupt from error
        finally:
            signal.set_wakeup_fd(before)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.cancellable = self.state = None
            if self.noted:
                self.settle()
        if self.noted:
            raise KeyboardInterrupt


_interrupts = []  # one, once it is needed


def _forget_interrupts():
    """A child process has neither the thread nor the wish: Ctrl-C is its parent's to handle."""
    if _interrupts:
        _interrupts.clear()
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget_interrupts)


def _interruptible(cancellable, state):
    """For a run whose callback keeps the state."""
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        return contextlib.nullcontext()
    if not _interrupts:
        _interrupts.append(_Interrupts())
    return _interrupts[0].watched(cancellable, state)


# --- what is awaited ---

_runners = weakref.WeakKeyDictionary()  # worker -> the process that made it, an executor with one thread


def _runner(worker):
    """Runs of one worker are one after the other, those of several at once. Threads are not forked."""
    if _runners.get(worker, (0,))[0] != os.getpid():
        _runners[worker] = os.getpid(), concurrent.futures.ThreadPoolExecutor(1, "pto-runs")
    return _runners[worker][1]


async def _await_run(worker, what, rest, config, cancellable):
    _check_outside(worker)
    if worker.get_state() == Pto.WorkerState.NEW:
        worker.start(cancellable)  # here, not on the thread: forks are best made before there are more
    call = functools.partial(worker.run, what, *rest, config=config, cancellable=cancellable)
    return await _await(_runner(worker), cancellable, call)


async def _await_alone(cancellable, call, *args, undo=None):
    """On a thread of its own: beside what else is under way."""
    runner = concurrent.futures.ThreadPoolExecutor(1, "pto-" + call.__name__)
    try:
        return await _await(runner, cancellable, functools.partial(call, *args), undo)
    finally:
        runner.shutdown(wait=False)


async def _await_close(worker):
    _check_outside(worker, "wait until its own worker is closed: worker.close() ends the run, and the worker when the "
                           "function has returned")
    return await _await_alone(None, worker.close)


async def _await_registration(worker, what, cancellable):
    if _is_inside(worker):
        return worker.register(what, cancellable)  # which may need this thread
    return await _await_alone(cancellable, worker.register, what, cancellable, undo=worker.unregister)


async def _await(runner, cancellable, call, undo=None):
    """undo(result) if it came to one all the same, and nobody is given it."""
    import asyncio
    job = runner.submit(contextvars.copy_context().run, call)
    future = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if cancellable is not None:
            cancellable.cancel()
        job.cancel()  # if it has not begun
        while not future.done():  # whoever is told that it has ended may use the arrays again
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        if not future.cancelled() and future.exception() is None and undo is not None:
            undo(future.result())
        raise


def _fork(*_):
    """In the child the forking thread is the only one, and its state must stay: when it is C's, this call would end it on
    its return, and CPython can not make a first one twice."""
    process = os.fork()
    if process == 0:
        ctypes.pythonapi.PyGILState_Ensure()
    return process


# An interpreter forks itself and imports by itself.
Pto.Worker.set_default_fork_func(_fork)
Pto.Worker.set_default_import_func(_import)


NEXT_LEVEL, SUB = "next-level", "sub"  # what a worker below is, as the seeds say it


@_export
class Worker(Pto.Worker):
    def __init__(self, devices=None, **properties):
        """Properties by their names; devices=2 and sub_workers=1 are numbers of chips and of SUB workers."""
        ids = properties.pop("device_ids", devices if devices is None else range(_checks.integer(devices, "devices")))
        if isinstance(devices, int) and not 0 <= devices <= Pto.MAX_CHILDREN:
            raise ValueError(f"devices={devices}: there are 0 to {Pto.MAX_CHILDREN}")
        if ids is not None:
            properties["device_ids"] = GLib.Variant("au", _checks.integers(ids, "device_ids"))
        for name in ("sub_workers", "num_sub_workers"):
            if name in properties:
                properties["n_sub_workers"] = properties.pop(name)
        for name, value in properties.items():
            if name != "isolate" and (parameter := name.replace("_", "-")) in Pto.Worker.list_parameters():
                value = int(value) if isinstance(value, bool) else value
                raise TypeError(f'{name} is a parameter: after this, worker.set_parameter("{parameter}", "{value}")')
        for name, value in properties.items():
            property_ = Pto.Worker.find_property(name)
            if property_ is not None and property_.value_type == GObject.TYPE_UINT:
                properties[name] = _checks.integer(value, name)
            elif property_ is not None and property_.value_type == GObject.TYPE_BOOLEAN and not isinstance(value, bool):
                raise TypeError(f"{name}: {value!r} is neither True nor False")
        super().__init__(**properties)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, cancellable=None):
        cancellable = cancellable or Gio.Cancellable()
        with _interruptible(cancellable, types.SimpleNamespace(in_function=False)):
            return Pto.Worker.start(self, cancellable)

    init = start  # as the seeds call it

    def add_worker(self, *what):
        """add_worker(worker), or, as the seeds call it, add_worker(NEXT_LEVEL, worker)."""
        if len(what) not in (1, 2) or (len(what) == 2 and what[0] != NEXT_LEVEL):
            raise TypeError("add_worker(worker) and add_worker(NEXT_LEVEL, worker) put a worker of a lower level below this one; "
                            "SUB workers are said when it is made: Worker(level=3, num_sub_workers=1)")
        worker = getattr(what[-1], "worker", what[-1])
        return Pto.Worker.add_worker(self, worker)

    def start_async(self, cancellable=None, callback=None):
        """Like start(), in asyncio: await worker.start_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _await_alone(cancellable := cancellable or Gio.Cancellable(), self.start, cancellable)
        return Pto.Worker.start_async(self, cancellable, lambda worker, result, *_: callback(worker, result))

    def close_async(self, callback=None):
        """Like close(), in asyncio: await worker.close_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _await_close(self)
        return Pto.Worker.close_async(self, lambda worker, result, *_: callback(worker, result))

    @staticmethod
    def _callable(what):
        if isinstance(what, Pto.Callable):
            return what
        made = Callable.function(what)
        made.set_import_path(_import_path(what))
        return made

    def register_async(self, what, cancellable=None, callback=None):
        """Like register(), in asyncio: await worker.register_async(it). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _await_registration(self, what, cancellable or Gio.Cancellable())
        return Pto.Worker.register_async(self, self._callable(what), cancellable,
                                         lambda worker, result, *_: callback(worker, result))

    def register(self, what, cancellable=None):
        if self.get_level() > 2:  # children are told by the thread of the run
            _check_outside(self, "wait for a registration on another thread: register it in the function itself",
                           on_other_thread=True)
        what = self._callable(what)
        cancellable = cancellable or Gio.Cancellable()
        with _interruptible(cancellable, types.SimpleNamespace(in_function=False)):
            return Pto.Worker.register(self, what, cancellable)

    def set_parameter(self, name, value):
        """Numbers, switches and texts; one of rings may be four numbers, one for each."""
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        return Pto.Worker.set_parameter(self, name, str(int(value) if isinstance(value, bool) else value))

    def _plan(self, what, rest, config, cancellable, state, is_capture=False):
        """What is to be run, as a function of a callback or None, its arguments, configuration and cancellable."""
        args, data = None, ()
        if len(rest) in (1, 2) and all(r is None or isinstance(r, t) for r, t in zip(rest, (Pto.TaskArgs, Pto.CallConfig))):
            args, config = rest[0], rest[1] if len(rest) > 1 else config
        elif any(isinstance(r, (Pto.TaskArgs, Pto.CallConfig, Gio.Cancellable)) for r in rest):
            raise TypeError("after what is run come its arguments, or one TaskArgs and perhaps a CallConfig; config= and "
                            "cancellable= are given by name")
        else:
            data = tuple(map(_given, rest))
            if data and (is_capture or isinstance(what, (Pto.CallableHandle, Pto.Graph))):
                args = TaskArgs(*map(_untagged, data))
        cancellable = cancellable or Gio.Cancellable()
        if isinstance(what, (Pto.CallableHandle, Pto.Graph)):
            return None, args, config, cancellable
        if not callable(what):
            raise TypeError(f"{what!r} can not be run: a function can, the handle of what is registered, or a graph")
        return (_as_callback(what, lambda given: (given[0], *data) if data else given[:3], state, bool(data)),
                args, config, cancellable)

    def _run(self, of_function, of_other, what, rest, config, cancellable, **choices):
        _check_outside(self)
        state = types.SimpleNamespace(raised=None, in_function=False)
        call, args, config, cancellable = self._plan(what, rest, config, cancellable, state, **choices)
        try:
            with _interruptible(cancellable, state):
                if call is None:
                    return of_other(self, what, args, config, cancellable)
                return of_function(self, call, None, args, config, cancellable)
        except GLib.Error as caught:
            error = _exceptions.original(caught, state)
        raise error  # out here, so that its own cause stays what it was

    def run(self, what, *rest, config=None, cancellable=None):
        """run(graph, x, y, ...) calls graph(orch, x, y, ...) with tensors of the arrays; run(graph, task_args, config)
        calls graph(orch, task_args, config). run(handle, x, y, ...) runs what is registered, which may write to the arrays
        that can be written, or to those tagged as in x.read(), y.write_existing(). Exceptions come as they are."""
        other = Pto.Worker.run_graph if isinstance(what, Pto.Graph) else Pto.Worker.run_callable
        return self._run(Pto.Worker.run, other, what, rest, config, cancellable)

    def capture(self, what, *rest, config=None, cancellable=None):
        """The graph that run(what, x, y, ...) would submit: run(it, x, y, ...) submits it again, with other arrays of the
        same shapes. Nothing is run. Tensors that are submitted lie in these arrays, or are made by the runtime."""
        return self._run(Pto.Worker.capture, Pto.Worker.capture_callable, what, rest, config, cancellable, is_capture=True)

    def run_async(self, what=None, *rest, config=None, cancellable=None, callback=None, func=None, args=None):
        """Like run(), in asyncio: await worker.run_async(graph, x, y). The graph's function is called on a thread of the
        worker's own. With a callback, in GLib's main loop, like pto_worker_run_async(): both are called there."""
        what = func if what is None else what
        rest = rest or ((args, config) if args is not None else ())
        if callback is None:
            return _await_run(self, what, rest, config, cancellable or Gio.Cancellable())
        state = types.SimpleNamespace(raised=None, in_function=False)
        call, args, config, cancellable = self._plan(what, rest, config, cancellable, state)

        finish = (Pto.Worker.run_graph_finish if isinstance(what, Pto.Graph)
                  else Pto.Worker.run_callable_finish if call is None else Pto.Worker.run_finish)

        def done(worker, result, *_):
            result.pto_state, result.pto_finish = state, finish
            callback(worker, result)

        common = {"args": args, "config": config, "cancellable": cancellable, "callback": done}
        if isinstance(what, Pto.Graph):
            return Pto.Worker.run_graph_async(self, graph=what, **common)
        if call is None:
            return Pto.Worker.run_callable_async(self, handle=what, **common)
        return Pto.Worker.run_async(self, func=call, **common)

    def run_callable_async(self, handle, *rest, **choices):
        return self.run_async(handle, *rest, **choices)

    def run_finish(self, result):
        """Of every run that run_async() has begun, whatever was run."""
        try:
            return getattr(result, "pto_finish", Pto.Worker.run_finish)(self, result)
        except GLib.Error as caught:
            error = _exceptions.original(caught, getattr(result, "pto_state", types.SimpleNamespace(raised=None)))
        raise error

    run_callable_finish = run_graph_finish = run_finish

    def close(self):
        _check_outside(self, "wait until its own worker is closed by another thread: worker.close() in the function itself "
                             "ends the run, and the worker when that has returned", on_other_thread=True)
        Pto.Worker.close(self)
        if (runner := _runners.pop(self, None)) is not None:
            runner[1].shutdown(wait=False)


_checks.complete()

from . import PtoSeeds as seeds  # noqa: E402, it needs all of the above

__all__.append("seeds")
