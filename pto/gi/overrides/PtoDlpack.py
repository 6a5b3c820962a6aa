# PtoDlpack.py: how do other libraries of arrays see a tensor's memory, and it theirs?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# By DLPack, a C structure in a capsule, which keeps the memory. Source: dmlc.github.io/dlpack, versions 0.8 to 1.1.
from __future__ import annotations

import ctypes

from .PtoText import _

CPU = 1
_REACHED = (CPU, 3, 11)  # memory of the host, also that which is pinned for a GPU
_TYPES = {f"{name}{bits}": (code, bits) for code, name, sizes in ((0, "int", (8, 16, 32, 64)), (1, "uint", (8, 16, 32, 64)),
                                                                   (2, "float", (16, 32, 64)), (4, "bfloat", (16,)))
          for bits in sizes}
_TYPES.update({"bool": (6, 8), "float8-e4m3fn": (10, 8), "float8-e5m2": (12, 8)})
_NICKS = {type_: nick for nick, type_ in _TYPES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor, with which the managed one in a capsule begins."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _in(capsule):
    return _Tensor.from_address(_get_pointer(capsule, b"dltensor"))


def capsule_of(array, nick):
    """Of an array, which the capsule keeps, and whose elements are as wide as those of that type, if not of it."""
    if nick not in _TYPES:
        raise BufferError(_("DLPack has no {type} that has a byte of its own, as the elements of this tensor do").format(type=nick))
    if not array.flags.writeable:
        raise BufferError(_("this tensor can only be read, which DLPack does not say: numpy.asarray() gives an array that does"))
    capsule = array.view(f"u{array.itemsize}").__dlpack__()
    tensor = _in(capsule)
    tensor.code, tensor.bits = _TYPES[nick]
    return capsule


def of(what):
    """The address, type, shape and strides in elements of what has __dlpack__(), and the capsule that keeps its memory."""
    device = what.__dlpack_device__()[0]
    if device not in _REACHED:
        raise BufferError(_("{what}: its memory is on a device (DLPack's type {type}), which simulated chips do not reach: a copy in "
                            "the memory of the host is wanted, such as x.cpu()").format(what=type(what).__name__, type=int(device)))
    capsule = what.__dlpack__()
    tensor = _in(capsule)
    nick = _NICKS.get((tensor.code, tensor.bits))
    if nick is None or tensor.lanes != 1:
        raise BufferError(_("{what}: there is no tensor of its elements (DLPack's type {type} of {bits} bits, {lanes} lanes)").format(
            what=type(what).__name__, type=tensor.code, bits=tensor.bits, lanes=tensor.lanes))
    shape = tensor.shape[:tensor.ndim]
    strides = tensor.strides[:tensor.ndim] if tensor.strides else None
    if strides is None:
        strides = [1] * len(shape)
        for i in range(len(shape) - 1, 0, -1):
            strides[i - 1] = strides[i] * shape[i]
    return (tensor.data or 0) + tensor.byte_offset, nick, shape, strides, capsule
