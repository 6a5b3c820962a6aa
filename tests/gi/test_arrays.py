# test_arrays.py: are parts of tensors what they are in NumPy, and do other libraries share their memory?
# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
import gc
import os
import tempfile
import unittest
import weakref

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None

# Each element of args[1] is ten times that of args[0], wherever they lie; of one dimension.
TEN = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0], *out = (const TensorData *) args[1];
  const double *x = (const double *) in->buffer.addr + in->start_offset;
  double *y = (double *) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i * out->strides[0]] = 10 * x[i * in->strides[0]];
}
"""


class DLTensor(ctypes.Structure):
    """As dlpack.h has it."""
    _fields_ = [("data", ctypes.c_uint64), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def inside(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DLTensor.from_address(get(capsule, b"dltensor"))


class Foreign:
    """A tensor of a library that has nothing but DLPack."""

    def __init__(self, what, device=(1, 0), change=None):
        self.what, self.device, self.change = what, device, change

    def __dlpack__(self, stream=None):
        capsule = self.what.__dlpack__()
        if self.change is not None:
            self.change(inside(capsule))
        return capsule

    def __dlpack_device__(self):
        return self.device


class Memory:
    """That of an array, of which one can see that it is gone."""

    def __init__(self):
        self.memory = (ctypes.c_double * 8)()
        self.__array_interface__ = {"version": 3, "shape": (8,), "typestr": "<f8", "data": (ctypes.addressof(self.memory), False)}


@unittest.skipUnless(np, "no NumPy")
class Parts(unittest.TestCase):
    def test_as_numpy_has_them(self):
        whole = np.arange(4 * 6 * 5, dtype="f8").reshape(4, 6, 5)
        x = Pto.Tensor.of(whole)
        every = np.s_[:]
        for index in (0, -1, np.s_[1:3], np.s_[:2], np.s_[-2:], np.s_[::2], np.s_[1::2], np.s_[:, 3], np.s_[:, :, 2], np.s_[..., 2],
                      np.s_[1, 2], np.s_[1, :, 2], np.s_[:, 1:5:3], np.s_[2:, ::2, ::2], np.s_[..., 1:3], np.s_[1, ..., 1:3], every,
                      np.s_[1:3, 2:4, 1:2], np.s_[3, 5, 4:5], np.s_[1:100], np.int64(2), np.s_[...], np.s_[1:4:2, -1]):
            part = x[index]
            self.assertIs(type(part), Pto.Tensor)
            self.assertEqual(part.shape, whole[index].shape, index)
            self.assertTrue(np.shares_memory(np.asarray(part), whole))
            self.assertTrue((np.asarray(part) == whole[index]).all(), index)
        line = Pto.Tensor.of(np.arange(1024.0))
        self.assertTrue((np.asarray(line[0:512]) == np.arange(512.0)).all())
        self.assertTrue((np.asarray(line[512:][::4][1:]) == np.arange(512.0, 1024)[::4][1:]).all())  # a part of a part

    def test_parts_with_gaps(self):
        """Of such a part there are parts as long as no step is taken over its gaps."""
        whole = np.arange(48.0).reshape(6, 8)
        columns = Pto.Tensor.of(whole)[:, 2:6]
        self.assertTrue((np.asarray(columns[1:3, 1:]) == whole[1:3, 3:6]).all())
        self.assertTrue((np.asarray(columns[4]) == whole[4, 2:6]).all())
        self.assertTrue((np.asarray(columns[4, ::2]) == whole[4, 2:6:2]).all())
        for index in (np.s_[::2], np.s_[:, 0], np.s_[:, ::2]):
            with self.assertRaisesRegex(ValueError, r"which has gaps itself.*without steps and with slices of length 1"):
                columns[index]
        self.assertTrue(Pto.Tensor.of(whole).as_read_only()[1:, 0].is_read_only())

    def test_refused(self):
        x = Pto.Tensor.of(np.zeros((4, 6)))
        for index, error, text in (
                (4, IndexError, "dimension 0: there is no 4 of 4"), (np.s_[:, -7], IndexError, "dimension 1: there is no -7 of 6"),
                (np.s_[1, 2], TypeError, r"get_element\(\)"), (np.s_[::-1], ValueError, "a step of -1"),
                (np.s_[2:2], ValueError, "2:2 of 4 is empty"), (np.s_[9:], ValueError, "empty"), (np.s_[0, 0, 0], IndexError, "too many"),
                (np.s_[..., 0, ...], IndexError, "too many"), ("a", TypeError, "neither a number nor a slice"),
                (None, TypeError, "neither"), (True, TypeError, "neither"), ([0, 1], TypeError, "neither"), (1.0, TypeError, "neither")):
            with self.assertRaisesRegex(error, text):
                x[index]
        with self.assertRaises(TypeError):
            x[0:2] = 1
        with self.assertRaises(TypeError):
            list(x)

    def test_tasks(self):
        """Tasks on parts that share elements come after each other, others do not; memory of the runtime has parts, too."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "ten.c")
            with open(path, "w") as file:
                file.write(TEN)
            ten = Pto.Callable.kernel(path)
            x, y = np.arange(32.0).reshape(4, 8), np.zeros((4, 8))

            def graph(orch, x, y):
                between = orch.tensor(8, "f8")
                orch.submit(ten, x[1].read(), between.write())
                orch.submit(ten, between[0:4].read(), y[:, 3].write_existing())  # after the first
                orch.submit(ten, x[:, 7].read(), y[:, 2].write_existing())
                orch.submit(ten, x[0, ::2].read(), y[:, 2].write_existing())  # after the third

            with Pto.Worker(platform="a2a3sim") as chip:
                chip.run(graph, x, y)
                self.assertEqual(chip.statistics.edges, 2)
        wanted = np.zeros((4, 8))
        wanted[:, 3], wanted[:, 2] = 100 * x[1, 0:4], 10 * x[0, ::2]
        self.assertEqual(y.tolist(), wanted.tolist())


@unittest.skipUnless(np, "no NumPy")
class Dlpack(unittest.TestCase):
    def test_to_numpy(self):
        for name in ("float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
            whole = np.arange(24).astype(name).reshape(4, 6)
            x = Pto.Tensor.of(whole)
            for part, wanted in (x, whole), (x[1:3, ::2], whole[1:3, ::2]), (x[:, 5], whole[:, 5]):
                got = np.from_dlpack(part)
                self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
                self.assertTrue((got == wanted).all())
                self.assertTrue(np.shares_memory(got, whole))
        self.assertEqual(tuple(x.__dlpack_device__()), (1, 0))

    def test_what_the_capsule_says(self):
        """Also of types that NumPy has not, or does not give away."""
        for dtype, code, bits in ((Pto.Dtype.FLOAT32, 2, 32), (Pto.Dtype.BFLOAT16, 4, 16), (Pto.Dtype.BOOL, 6, 8),
                                  (Pto.Dtype.FLOAT8_E4M3FN, 10, 8), (Pto.Dtype.FLOAT8_E5M2, 12, 8), (Pto.Dtype.INT64, 0, 64)):
            x = Pto.Tensor.new_for_buffer(Pto.Buffer.new(256), 64, dtype, [3, 4])
            capsule = x.__dlpack__()
            said = inside(capsule)
            self.assertEqual((said.code, said.bits, said.lanes, said.ndim, list(said.device)), (code, bits, 1, 2, [1, 0]))
            self.assertEqual((said.data + said.byte_offset, said.shape[:2]), (x.get_address(), [3, 4]))
            self.assertTrue(not said.strides or said.strides[:2] == [4, 1])
            same = Pto.Tensor.from_dlpack(Foreign(x))
            self.assertEqual((same.dtype, same.shape, same.get_address()), (dtype, (3, 4), x.get_address()))
            del capsule

    def test_from_numpy(self):
        whole = np.arange(24.0).reshape(4, 6)
        for array in whole, whole[1:, ::2], whole.T, whole[:, 3]:
            x = Pto.Tensor.from_dlpack(array)
            self.assertEqual(x.shape, array.shape)
            self.assertFalse(x.is_read_only())
            self.assertTrue((np.asarray(x) == array).all())
            np.asarray(x)[...] += 1
        self.assertEqual(whole[2, 2], 2 * 6 + 2 + 3)
        self.assertEqual(Pto.Tensor.of(Foreign(whole)).get_address(), whole.ctypes.data)

    def test_runs(self):
        """An array of a library that has nothing but DLPack is an argument of a run."""
        memory = np.zeros(8, "f4")
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.run(lambda orch, x: orch.fill(x[0:4], 3), Foreign(memory))
        self.assertEqual(memory.tolist(), [3] * 4 + [0] * 4)

    def test_lives_as_long(self):
        gone = []

        def watched():
            memory = Memory()
            weakref.finalize(memory, gone.append, True)
            return np.asarray(memory)

        got = np.from_dlpack(Pto.Tensor.of(watched()))
        gc.collect()
        self.assertEqual(gone, [])
        self.assertEqual(got[0], 0)
        del got
        gc.collect()
        self.assertEqual(gone, [True])
        capsule = Pto.Tensor.of(watched()).__dlpack__()  # which nobody takes
        gc.collect()
        self.assertEqual(gone, [True])
        del capsule
        gc.collect()
        self.assertEqual(gone, [True] * 2)
        part = Pto.Tensor.from_dlpack(watched())[2:4]
        gc.collect()
        self.assertEqual(gone, [True] * 2)
        np.asarray(part)[0] = 1
        del part
        gc.collect()
        self.assertEqual(gone, [True] * 3)

    def test_refused(self):
        x = Pto.Tensor.of(np.zeros(4))
        with self.assertRaisesRegex(BufferError, "can only be read"):
            x.as_read_only().__dlpack__()
        with self.assertRaisesRegex(BufferError, "no memory yet"):
            Pto.Tensor.new(Pto.Dtype.FLOAT32, [4]).__dlpack__()
        with self.assertRaisesRegex(BufferError, "int4"):
            Pto.Tensor.new_for_buffer(Pto.Buffer.new(8), 0, Pto.Dtype.INT4, [4]).__dlpack__()
        with self.assertRaisesRegex(BufferError, "no other device"):
            x.__dlpack__(dl_device=(2, 0))
        with self.assertRaisesRegex(BufferError, "on a device .*type 2.*cpu"):
            Pto.Tensor.from_dlpack(Foreign(x, device=(2, 0)))
        with self.assertRaisesRegex(BufferError, "type 5 of 64 bits"):
            Pto.Tensor.from_dlpack(np.zeros(4, "c8"))
        with self.assertRaisesRegex(BufferError, "2 lanes"):
            Pto.Tensor.from_dlpack(Foreign(x, change=lambda said: setattr(said, "lanes", 2)))
        with self.assertRaisesRegex(ValueError, "ascontiguousarray"):
            Pto.Tensor.from_dlpack(np.zeros(4)[::-1])
        frozen = np.zeros(4)
        frozen.flags.writeable = False
        with self.assertRaises(BufferError):
            Pto.Tensor.from_dlpack(frozen)
        with self.assertRaises(AttributeError):
            Pto.Tensor.from_dlpack([1, 2])
        self.assertNotEqual(inside(x.__dlpack__(copy=True)).data, x.get_address())

    @unittest.skipUnless(torch, "no PyTorch")
    def test_torch(self):
        for name in ("float32", "bfloat16", "int64", "float8_e4m3fn", "float8_e5m2"):
            if not hasattr(torch, name):
                continue
            given = torch.zeros(8, dtype=getattr(torch, name))
            try:
                given.__dlpack__()
            except Exception:
                continue  # a version that does not give these away
            x = Pto.Tensor.of(given)
            self.assertEqual(x.dtype.value_nick.replace("-", "_"), name)
            self.assertEqual(x.get_address(), given.data_ptr())
            self.assertEqual(torch.from_dlpack(x).data_ptr(), given.data_ptr())


tap.main()
