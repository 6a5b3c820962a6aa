# PtoTensors.py: how is memory of Python the library's, and the other way round?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arrays and what is like them are tensors, tensors and buffers are arrays. Nothing is copied.
from __future__ import annotations

import collections.abc
import math
import numbers
import operator

from gi.repository import GObject

from ..module import get_introspection_module
from . import PtoDlpack as _dlpack
from .PtoText import _, shown

Pto = get_introspection_module("Pto")


def dtype_of(what):
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
        raise TypeError(_("dtype: {what} is no type of elements: one of Pto.Dtype or of NumPy, or a name, is wanted").format(
            what=shown(what))) from None
    found = getattr(Pto.Dtype, dtype.name.upper(), None)
    if not isinstance(found, Pto.Dtype) or not dtype.isnative:
        raise TypeError(_("there is no tensor of {what}: float64, float32, float16, bool or an integer type wanted").format(what=what))
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
        raise ValueError(_("a list becomes float32, which can not hold numbers as large as these: give an array of float64"))
    if given.dtype.kind != "f" and not (array.astype(object) == given.astype(object)).all():
        raise ValueError(_("a list becomes float32, which can not hold these integers: give an array of the type you mean"))
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


class Buffer(Pto.Buffer):
    """Memory that child processes see, too. numpy.asarray(buffer) is its bytes."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.is_remote():
            raise ValueError(_("this is memory of a remote worker, and is not here: read() and write() copy"))
        return _array_interface((self.get_size(),), "|u1", self.get_address())

    def ref_bytes(self) -> GLib.Bytes:
        """The memory itself, without copying: it changes as the buffer does, and is kept."""
        if self.is_remote():
            raise ValueError(_("this is memory of a remote worker, and is not here: read() and write() copy"))
        return super().ref_bytes()

    def copy_to(self, to: Buffer, offset: int = 0, to_offset: int = 0, size: int | None = None) -> bool:
        """Copies bytes to another buffer, wherever both are; without a size, all from there on."""
        return super().copy_to(to, offset, to_offset, self.get_size() - offset if size is None else size)

    def export(self, offset: int = 0, size: int | None = None) -> str:
        """A token for a part of memory of a remote worker, whose import_buffer() makes a buffer of it; without a size, all
        from there on."""
        return super().export(offset, self.get_size() - offset if size is None else size)

    @staticmethod
    def array(shape: _Shape, dtype: _DtypeLike = "f4") -> Any:
        """A NumPy array of zeros that child processes see, too."""
        import numpy
        dtype = numpy.dtype(dtype)
        shape = tuple(map(operator.index, shape)) if isinstance(shape, collections.abc.Iterable) else (operator.index(shape),)
        size = math.prod(shape) * dtype.itemsize  # without overflow
        if min(shape, default=0) < 0 or size >= 2**63:
            raise ValueError(_("there is no array of the shape {shape}: its extents are at least 0, its bytes below 2**63").format(shape=shape))
        return numpy.asarray(Buffer.new(max(size, 1)))[:size].view(dtype).reshape(shape)


class Tensor(Pto.Tensor):
    """In a list of arguments x.read() is an input, x.write() an output, x.update() both; x.write_existing() goes to
    memory that is there, x.commute() updates in any order with others that do, x.reduce("sum") at the same time as others
    that do, x.no_dep() orders nothing."""

    def read(self) -> _Tagged:
        """An argument that its task reads."""
        return self, Pto.Direction.INPUT

    def write(self) -> _Tagged:
        """An argument that its task writes; where it has no memory yet, the runtime gives it some."""
        return self, Pto.Direction.OUTPUT

    def update(self) -> _Tagged:
        """An argument that its task reads, then writes."""
        return self, Pto.Direction.INOUT

    def write_existing(self) -> _Tagged:
        """An argument that its task writes, in the memory that it has."""
        return self, Pto.Direction.OUTPUT_EXISTING

    def no_dep(self) -> _Tagged:
        """An argument that orders nothing."""
        return self, Pto.Direction.NO_DEP

    def commute(self) -> _Tagged:
        """An argument that its task updates, one task at a time, in any order with others that do."""
        return self, Pto.Direction.COMMUTATIVE

    def reduce(self, how: str | Reduction | Callable, initial: float = ...) -> _Reduced:
        """The task reduces into a copy, at the same time as others that do so in the same way; the copies are combined when
        something else uses the tensor: how is "sum", "prod", "min" or "max", or a kernel that takes two tensors, the second
        into the first, with what an element of a copy begins with, or 0."""
        return self, Pto.Direction.REDUCTION, how if isinstance(how, Pto.Callable) else operator_of(how), initial

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, in elements."""
        return tuple(self.get_shape())

    @property
    def dtype(self) -> Dtype:
        """The type of its elements."""
        return self.get_dtype()

    def __getitem__(self, index: _Index) -> Tensor:
        """A part, which shares the tensor's memory: x[0:512], x[:, 3], x[..., ::2], x[-1]. Steps, and numbers in place of a
        slice, need a tensor, or a part, without gaps."""
        return _part(self, index)

    __iter__ = None  # or Python would take it for a list of its rows

    def __dlpack__(self, *, stream: None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """For numpy.from_dlpack(x), torch.from_dlpack(x) and their like: what they make shares its memory, and keeps it."""
        import numpy
        if stream is not None or (dl_device is not None and tuple(dl_device) != (_dlpack.CPU, 0)):
            raise BufferError(_("the memory of a tensor is that of the host: it has no stream, and no other device"))
        try:
            array = numpy.asarray(self)
        except ValueError as error:
            raise BufferError(str(error)) from None
        return _dlpack.capsule_of(array.copy() if copy else array, self.dtype.value_nick)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host."""
        return _dlpack.CPU, 0

    @staticmethod
    def from_dlpack(what: Any) -> Tensor:
        """A tensor over the memory of what has __dlpack__(), such as a tensor of PyTorch's, which it keeps. bfloat16 and float8
        are what they are."""
        address, nick, shape, strides, capsule = _dlpack.of(what)
        owner = _Owner()
        owner.memory = capsule
        return _over(address, dtype_of(nick), shape, strides, owner)

    @staticmethod
    def of(what: _ArrayLike) -> Tensor:
        """A tensor of a tensor, a buffer, anything like a NumPy array or what has __dlpack__(), which it keeps. A list, and what
        can only be read, is an input only."""
        if isinstance(what, Pto.Tensor):
            return what
        if isinstance(what, Pto.Buffer) and what.is_remote():
            return Tensor.new_for_buffer(what, 0, Pto.Dtype.UINT8, [what.get_size()])
        if hasattr(what, "__dlpack__") and not hasattr(what, "__array_interface__"):
            return Tensor.from_dlpack(what)
        if what is None or isinstance(what, (numbers.Number, str, Pto.Callable)):
            raise TypeError(_("{what} is no tensor: a tensor, an array or a list of numbers is wanted").format(what=shown(what)))
        array, writable = _array(what)
        if array.ndim > Pto.TENSOR_MAX_DIMS:
            raise ValueError(_("an array of {n} dimensions is no tensor, which has at most {most}: numpy.reshape() makes fewer of "
                               "them").format(n=array.ndim, most=Pto.TENSOR_MAX_DIMS))
        owner = _Owner()
        owner.memory = array
        strides = [0 if stride % array.itemsize else stride // array.itemsize for stride in array.strides]
        tensor = _over(array.ctypes.data, dtype_of(array.dtype), list(array.shape), strides, owner)
        return tensor if writable else tensor.as_read_only()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        import numpy
        if self.get_address() == 0:
            raise ValueError(_("this tensor has no memory yet: a task outputs it, or it stands for a tensor of a graph's launch"))
        if self.is_remote():
            raise ValueError(_("this is memory of a remote worker, and is not here: read() and write() copy"))
        nick = self.dtype.value_nick
        dtype = numpy.dtype(_AS_BITS.get(nick, nick))
        strides = tuple(stride * dtype.itemsize for stride in self.get_strides())
        return _array_interface(self.shape, dtype.str, self.get_address(), strides, self.is_read_only())


def _over(address, dtype, shape, strides, owner):
    """A tensor over memory that the owner keeps: all of it, or a view of all that lies between its first and its last element."""
    steps = [stride if n > 1 else 1 for n, stride in zip(shape, strides)]
    dense = all(step == math.prod(shape[i + 1:]) for i, (n, step) in enumerate(zip(shape, steps)) if n > 1)
    if dense or 0 in shape:
        return Tensor.new_for_object(address, dtype, shape, owner)
    if any(step <= 0 for step in steps):
        raise ValueError(_("an array whose elements lie backwards, at one place or at distances that are no multiple of their "
                           "size is no tensor: numpy.ascontiguousarray() makes a copy that is"))
    span = 1 + sum((n - 1) * step for n, step in zip(shape, steps))
    whole = Tensor.new_for_object(address, dtype, [span], owner)
    return whole.as_strided(shape, steps, 0)


def _slices(index, shape):
    """For each dimension its first element, how many, the step, and whether the dimension stays."""
    index = list(index) if isinstance(index, tuple) else [index]
    n_dots = sum(item is Ellipsis for item in index)
    if n_dots > 1 or len(index) - n_dots > len(shape):
        raise IndexError(_("too many indices for a tensor of {n} dimensions: {given}").format(n=len(shape), given=len(index)))
    if n_dots == 0:
        index.append(Ellipsis)
    dots = next(i for i, item in enumerate(index) if item is Ellipsis)
    index[dots:dots + 1] = [slice(None)] * (len(shape) - len(index) + 1)
    for i, (item, n) in enumerate(zip(index, shape)):
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            if step < 0:
                raise ValueError(_("dimension {i}: a step of {step}: a tensor's elements lie forwards").format(i=i, step=step))
            if stop <= start:
                raise ValueError(_("dimension {i}: {start}:{stop} of {n} is empty, which no tensor is").format(
                    i=i, start=start, stop=stop, n=n))
            yield start, (stop - start + step - 1) // step, step, True
        elif hasattr(item, "__index__") and not isinstance(item, bool):
            at = operator.index(item)
            if not -n <= at < n:
                raise IndexError(_("dimension {i}: there is no {at} of {n}").format(i=i, at=at, n=n))
            yield at % n, 1, 1, False
        else:
            raise TypeError(_("dimension {i}: {item} is neither a number nor a slice, as parts of a tensor are said").format(
                i=i, item=shown(item)))


def _part(tensor, index):
    parts = list(_slices(index, tensor.shape))
    starts = [start for start, _, _, _ in parts]
    around = tensor.view([(n - 1) * step + 1 for _, n, step, _ in parts], starts)
    if all(step == 1 and stays for _, _, step, stays in parts):
        return around
    shape = [n for _, n, _, stays in parts if stays]
    if not shape:
        raise TypeError(_("one element is no tensor: orch.get_element() reads it, and a slice of length 1 is a tensor of one, x[3, 4:5]"))
    distances = tensor.get_strides()
    strides = [distance * step for distance, (_, _, step, stays) in zip(distances, parts) if stays]
    if around.is_contiguous():
        return around.as_strided(shape, strides, 0)
    if tensor.is_contiguous():
        return tensor.as_strided(shape, strides, sum(start * distance for start, distance in zip(starts, distances)))
    raise ValueError(_("this part of {tensor}, which has gaps itself, can not be had: take it of the whole tensor, or without steps "
                       "and with slices of length 1 in place of numbers").format(tensor=tensor.to_string()))


def operator_of(how):
    if isinstance(how, Pto.Reduction):
        return how
    names = ("sum", "prod", "min", "max")
    if how not in names:
        raise ValueError(_("{how} is nothing that tensors are reduced by: \"sum\", \"prod\", \"min\", \"max\", or a kernel").format(
            how=shown(how)))
    return Pto.Reduction(names.index(how))


def value_of(value):
    """A number as C takes any: an integer is one, a fraction a double."""
    if value is None:
        raise TypeError(_("None is no number, as the elements of a tensor are"))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if not -2**63 <= value < 2**64:
            raise OverflowError(_("{value} does not fit in 64 bits").format(value=value))
        return GObject.Value(GObject.TYPE_UINT64 if value >= 2**63 else GObject.TYPE_INT64, int(value))
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value
