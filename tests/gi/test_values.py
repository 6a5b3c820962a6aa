# test_values.py: do arrays live long enough in Python, and do numbers, attributes and exceptions stay what they are?
# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
import enum
import gc
import html
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import weakref

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, GObject, Pto  # noqa: E402

import levels_helper  # noqa: E402
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

directory = tempfile.TemporaryDirectory()


def kernel(name, body):
    path = os.path.join(directory.name, name + ".c")
    with open(path, "w", encoding="utf-8") as file:
        file.write('#include "tensor.h"\nvoid kernel_entry (int64_t *args)\n{\n' + body + "}\n")
    return Pto.Callable.kernel(path)


ADDRESSES = """
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const float *x = (const float *) in->buffer.addr + in->start_offset;
  float *y = (float *) out->buffer.addr + out->start_offset;
"""
scale = kernel("scale", ADDRESSES + """
  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = pto_scalar_float (args[2]) * x[i];
""")
words = kernel("words", """
  int64_t *y = (int64_t *) ((const TensorData *) args[0])->buffer.addr;
  y[0] = args[1];
  y[1] = args[2];
  y[2] = (int64_t) (pto_scalar_float (args[3]) * 1000);
  y[3] = (int64_t) (pto_scalar_double (args[4]) * 1000);
""")
move = kernel("move", """
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const double *x = (const double *) in->buffer.addr + in->start_offset;
  double *y = (double *) out->buffer.addr + out->start_offset;
  for (uint64_t i = 0; i < in->shapes[0]; i++)
    for (uint64_t j = 0; j < in->shapes[1]; j++)
      y[i * out->strides[0] + j * out->strides[1]] = 10 * x[i * in->strides[0] + j * in->strides[1]];
""")
backends = ("par", "det", "threads")


def chip(backend="par"):
    worker = Pto.Worker(platform="a2a3sim")
    worker.set_parameter("backend", backend)
    return worker


class Costs(unittest.TestCase):
    def test_times(self):
        """Times become a cost that a kernel takes; of a run's record, too, and each clock for itself."""
        costs = Pto.Costs.new()
        costs.add_time("move", "chip", 1000, 1500.5)
        costs.add_time("move", Pto.Clock.CHIP, 3000, 2500.5)
        self.assertEqual(costs.dup_cost("move", "chip"), "linear:1000.5:0.5")
        self.assertIsNone(costs.dup_cost("move", "cpu"))
        self.assertEqual(costs.list_kernels(), ["move"])
        self.assertIn("1000.5 ns + 0.5 ns/byte", costs.describe())
        move.set_cost(costs.dup_cost("move", "chip"))
        self.assertEqual(move.get_cost(), "linear:1000.5:0.5")
        with self.assertRaisesRegex(ValueError, "'tpu' is no clock: chip, cpu, virtual"):
            costs.dup_cost("move", "tpu")
        with self.assertRaises(GLib.Error) as caught:
            costs.add_time("move", "chip", 1, 0)
        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.INVALID_ARGS))
        with tempfile.TemporaryDirectory() as place:
            table = pathlib.Path(place, "times.csv")
            table.write_text("kernel,us\nk,2.5\n", encoding="utf-8")
            costs.add_file(table)
            self.assertEqual(costs.dup_cost("k", "chip"), "constant:2500")

    @unittest.skipIf(np is None, "no numpy")
    def test_trace(self):
        with chip("det") as worker:
            worker.set_parameter("trace", "1")
            worker.set_parameter("trace-level", "4")
            scale.set_cost("linear:500:2")
            x = np.ones(16, np.float32)
            y = np.zeros(16, np.float32)
            worker.run(lambda orch, x, y: orch.submit(scale, x.read(), y.write(), 2.0), x, y)
            costs = Pto.Costs.new()
            costs.add_trace(worker.ref_trace())
        self.assertEqual(costs.dup_cost("scale", "virtual"), "constant:756")  # 500 + 2 * 128 bytes
        self.assertIsNone(costs.dup_cost("scale", "cpu"))


@unittest.skipIf(np is None, "no numpy")
class Flags(unittest.TestCase):
    def test_kernel(self):
        """What a kernel is compiled with is what runs."""
        path = os.path.join(directory.name, "flagged.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write('#include "tensor.h"\n#include <from-there.h>\nvoid kernel_entry (int64_t *args)\n{\n'
                       '  *(int64_t *) ((const TensorData *) args[0])->buffer.addr = HERE + FROM_THERE;\n}\n')
        there = os.path.join(directory.name, "there")
        os.mkdir(there)
        with open(os.path.join(there, "from-there.h"), "w", encoding="utf-8") as file:
            file.write("#define FROM_THERE 40\n")
        out = np.zeros(1, np.int64)
        for number, flags in ((2, ["-DHERE=2"]), (3, "-D 'HERE=(1 + 2)'")):
            flagged = Pto.Callable.kernel(path, args=1, include_dirs=[there], flags=flags)
            self.assertEqual(flagged.include_dirs, [there])
            with chip() as worker:
                worker.run(lambda orch, x: orch.submit(flagged, x.write_existing()), out)
            self.assertEqual(out[0], 40 + number)
        flagged.compiler_flags = ["-DHERE=9"]
        self.assertEqual(flagged.get_compiler_flags(), ["-DHERE=9"])
        with self.assertRaisesRegex(GLib.Error, '"flagged": the flag -c can not be used'):
            flagged.set_compiler_flags(["-c"])


class Chips(unittest.TestCase):
    def test_platform_of_a_file(self):
        path = os.path.join(directory.name, "chip.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[platform]\nclusters=5\naiv-per-cluster=3\n")
        with Pto.Worker(platform=path) as worker:
            worker.run(lambda orch: None)
            statistics = worker.dup_statistics()
            self.assertEqual([statistics.get_n_cores(t) for t in (Pto.CoreType.AIC, Pto.CoreType.AIV)], [5, 15])
            self.assertEqual(worker.platform, path)
        with open(path, "a", encoding="utf-8") as file:
            file.write("cluster=5\n")
        with self.assertRaisesRegex(GLib.Error, 'chip.ini: .platform.: unknown key "cluster"'):
            Pto.Worker(platform=path).start()

    def test_rings_that_differ(self):
        worker = Pto.Worker(platform="a2a3sim")
        worker.set_parameter("heap", "1K,64M,1K,1K")
        self.assertEqual(worker.dup_parameter("heap"), "1024,67108864,1024,1024")
        with self.assertRaisesRegex(GLib.Error, "one for all rings wanted, or 4, one for each"):
            worker.set_parameter("heap", "1K,64M")
        worker.set_parameter("task-window", [16, 32, 64, 128])
        self.assertEqual(worker.dup_parameter("task-window"), "16,32,64,128")
        with self.assertRaisesRegex(GLib.Error, "one for all rings wanted, or 4, one for each"):
            worker.set_parameter("task-window", (16, 32))
        for name, value in ("task-window", [16]), ("task-window", (16,)), ("backend", ["det"]):
            with self.assertRaises(TypeError) as caught:
                worker.set_parameter(name, value)
            self.assertEqual(str(caught.exception), f"the parameter {name}: {value!r}: one value is wanted, or of rings a list of 4 sizes, one for each")
        self.assertEqual(worker.dup_parameter("task-window"), "16,32,64,128")

    def test_parameters_are_texts_or_numbers(self):
        worker = Pto.Worker(platform="a2a3sim")
        for name, value, words in (("schedule", None, "None is no text"), ("schedule", 5, "5 is no text"),
                                   ("clusters", None, "None is no number, switch or text"), ("backend", b"det", "b'det' is no")):
            with self.assertRaisesRegex(TypeError, f"the parameter {name}: {words}"):
                worker.set_parameter(name, value)
        worker.set_parameter("schedule", "in-order")
        worker.set_parameter("clusters", np.int32(3))
        worker.set_parameter("trace", True)
        self.assertEqual([worker.dup_parameter(name) for name in ("schedule", "clusters", "trace")], ["in-order", "3", "1"])

    def test_parameters_come_first(self):
        for use in lambda worker: worker.alloc_buffer(64), lambda worker: worker.malloc(64), lambda worker: worker.start():
            worker = Pto.Worker(platform="a2a3sim")
            use(worker)
            with self.assertRaisesRegex(GLib.Error, r"clusters can be set only before .*device memory \(alloc_buffer\(\)"):
                worker.set_parameter("clusters", 3)
            worker.close()


class Gone:
    """Something with memory that NumPy can look at, and that tells when it goes."""
    def __init__(self, values):
        self.memory = np.array(values, "f4")
        self.__array_interface__ = self.memory.__array_interface__


class TwoWords(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Base(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")


@unittest.skipIf(np is None, "no numpy")
class Memory(unittest.TestCase):
    def test_repr(self):
        """What a value is, in one line."""
        buffer = Pto.Buffer.new(4096)
        tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [2, 3])
        self.assertEqual(repr(tensor), "<Pto.Tensor: float32 [2, 3]>")
        self.assertEqual(repr(buffer), f"<Pto.Buffer: 4096 bytes of shared memory at {buffer.address:#x}>")
        args = Pto.TaskArgs(tensor.read(), tensor.write_existing(), -2, 2**63, 2.5)
        self.assertEqual(repr(args), "<Pto.TaskArgs: an input float32 [2, 3], an existing output float32 [2, 3], -2, "
                                     "9223372036854775808, 2.5>")
        self.assertEqual(str(Pto.TaskArgs()), "<Pto.TaskArgs: no arguments>")
        self.assertEqual(repr(Pto.CallConfig()), "<Pto.CallConfig: nothing chosen>")
        self.assertEqual(repr(Pto.CallConfig(block_dim=4, aicpu_thread_num=3)),
                         "<Pto.CallConfig: block_dim=4 aicpu_thread_num=3>")
        with chip("det") as worker:
            worker.set_parameter("trace", 1)
            x = np.ones(4, "f4")
            worker.run(lambda orch, x: orch.submit(scale, x.read(), x.write_existing(), 2.0), x)
            self.assertRegex(repr(worker.dup_statistics()), r"^<Pto.RunStatistics: 1 task, 0 edges, 0 failed, \d+ ns>$")
            self.assertRegex(repr(worker.ref_trace()), r"^<Pto.Trace: .*1 task, 0 edges, \d+ ns on the virtual clock>$")
            self.assertRegex(repr(worker.alloc_buffer(1)), "^<Pto.Buffer: 1 byte of device memory at 0x")
            self.assertEqual([repr(some) for some in (worker.trace.list_tasks(), worker.trace.list_edges(), worker.trace.list_cores())],
                             ["<1 of Pto.TraceTask>", "<0 of Pto.TraceEdge>", "<72 of Pto.TraceCore>"])
            self.assertEqual(repr(worker.children), "<0 of Pto.Worker>")
        self.assertEqual(repr(Pto.Platform.lookup("a2a3sim")), "<Pto.Platform: a2a3sim: 24 AIC and 48 AIV cores in 24 clusters, 4 AICPU threads>")

    def test_limits(self):
        """A limit can be asked for, and is one: one more is refused by its number."""
        self.assertEqual((Pto.MAX_CHILDREN, Pto.N_RINGS, Pto.TENSOR_MAX_DIMS), (256, 4, 5))
        with self.assertRaisesRegex(GLib.Error, str(Pto.MAX_LEVEL)):
            Pto.Worker(level=Pto.MAX_LEVEL + 1).init()

    def test_constructors(self):
        """What a type is called with is checked as its new() does."""
        for size in 0, 1 << 60:
            with self.assertRaises(Pto.Error):
                Pto.Buffer(size)
        for size in 1.9, True, "1":
            with self.assertRaisesRegex(TypeError, "Buffer.new: size: "):
                Pto.Buffer(size)
        self.assertEqual(Pto.Buffer(size=16).get_size(), 16)
        with self.assertRaisesRegex(TypeError, "Tensor.new: "):
            Pto.Tensor(Pto.Dtype.FLOAT32, [1.5])
        self.assertIs(type(Pto.Tensor(Pto.Dtype.FLOAT32, [3])), Pto.Tensor)

    def test_paths(self):
        """Whatever Python takes for one."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source, saved = folder / "nothing.c", folder / "run.json"
            source.write_text("void kernel_entry (long *args) { (void) args; }\n")
            for kernel in Pto.Callable.kernel(source), Pto.Kernel.new(Pto.CoreType.AIV, source, None):
                self.assertIn(str(source), kernel.to_string())
            self.assertTrue(os.path.exists(Pto.compile_shared_object(source, None)))
            with Pto.Worker(platform=pathlib.PurePath("a2a3sim")) as chip:
                config = Pto.CallConfig(output_prefix=folder / "dump")
                self.assertEqual(config.output_prefix, str(folder / "dump"))
                chip.set_parameter("trace", True)
                chip.run(lambda orch: orch.submit(kernel) and None)
                chip.trace.save(saved)
            self.assertTrue(saved.exists())
        for call in (lambda: Pto.Callable.kernel(3), lambda: Pto.Callable.chip(3), lambda: Pto.compile_shared_object(3, None),
                     lambda: Pto.Kernel.new(Pto.CoreType.AIV, 3, None)):
            with self.assertRaisesRegex(TypeError, ": 3 is not a path"):
                call()

    def test_properties(self):
        """Every one is an attribute; choices also by their nicks, and what is none is told which there are."""
        for type_ in vars(Pto).values():
            if isinstance(type_, type) and issubclass(type_, GObject.Object):
                for property_ in type_.list_properties():
                    self.assertTrue(hasattr(type_, property_.name.replace("-", "_")), property_)
        host = Pto.Worker(level=3, device_ids=[3, 1], restart="on-failure", child_mode="thread")
        self.assertEqual((host.device_ids, host.restart, host.child_mode), ([3, 1], Pto.Restart.ON_FAILURE, Pto.ChildMode.THREAD))
        self.assertEqual(Pto.Worker(level=3, restart="on_failure").restart, Pto.Restart.ON_FAILURE)
        self.assertEqual(list(Pto.Worker().device_ids), [])
        for properties, said in (({"restart": "junk"}, "restart: 'junk' is none of never, on-failure"),
                                 ({"child_mode": "junk"}, "child_mode: 'junk' is none of process, thread"),
                                 ({"restart": 7}, "restart: 7 is none of Pto.Restart: NEVER, ON_FAILURE")):
            with self.assertRaisesRegex(TypeError, said):
                Pto.Worker(level=3, **properties)
        with self.assertRaisesRegex(OverflowError, "level: -1 is not one of 0 to "):
            Pto.Worker(level=-1)

    def test_elements(self):
        """A place is numbers, or a list of them."""
        found = []

        def graph(orch, x):
            orch.set_element(x, [1, 1], value=7)
            orch.set_element(x, 0, 1, value=8)
            found.extend([orch.get_element(x, 1, 1), orch.get_element(x, (0, 1)), orch.get_element(x)])

        with Pto.Worker() as chip:
            chip.run(graph, np.ones((2, 2), "f4"))
        self.assertEqual(found, [7, 8, 1])

    def test_device_memory(self):
        """An array over device memory keeps it; with the last of what can reach it, it is given back."""
        with chip() as worker:
            worker.init()
            buffer = worker.alloc_buffer(16)
            address, array = buffer.address, np.asarray(buffer).view("f4")
            self.assertIs(buffer.worker, worker)
            del buffer
            worker.run(lambda orch, x: orch.submit(scale, Pto.Tensor.of([1, 2, 3, 4]).read(), x.write_existing(), 2.0), array)
            self.assertEqual(array.tolist(), [2, 4, 6, 8])
            with self.assertRaisesRegex(GLib.Error, "belongs to a buffer"):
                worker.free(address)
            self.assertEqual(worker.copy_from(address, 16), array.tobytes())
            del array
            gc.collect()
            with self.assertRaisesRegex(GLib.Error, "lies in no device buffer"):
                worker.copy_from(address, 1)
            last = worker.alloc_buffer(4)
            last.write(0, GLib.Bytes.new(b"left"))
        self.assertEqual(np.asarray(last).tobytes(), b"left")
        with self.assertRaisesRegex(GLib.Error, "the worker is closed"):
            last.read(0, 4)
        with self.assertRaisesRegex(GLib.Error, "the worker is closed: parameter clusters can be set on a new one"):
            worker.set_parameter("clusters", 2)

    def test_bytes(self):
        """What is meant as bytes is given and comes as bytes, and as GLib.Bytes where somebody has those."""
        buffer = Pto.Buffer.new(8)
        for data in (b"01234567", bytearray(b"12345678"), memoryview(b"23456789"), np.arange(4, dtype="u2"),
                     GLib.Bytes.new(b"abcdefgh"), memoryview(b"0_1_2_3_4_5_6_7_")[::2]):
            buffer.write(0, data)
            wanted = data.get_data() if isinstance(data, GLib.Bytes) else data.tobytes() if hasattr(data, "tobytes") else bytes(data)
            read = buffer.read(0, 8)
            self.assertIsInstance(read, bytes)
            self.assertEqual(read, wanted)
            self.assertEqual((read.get_data(), read.get_size()), (wanted, 8))  # as before
        buffer.write(2, buffer.read(0, 4)[2:])
        self.assertEqual(buffer.read(0, 4), b"0123"[:2] + b"23")
        self.assertEqual(buffer.read(8, 0), b"")
        for wrong in "01234567", 5, [1, 2], None:
            with self.assertRaisesRegex(TypeError, r"Buffer\.write: bytes: .* is not bytes"):
                buffer.write(0, wrong)
        with self.assertRaisesRegex(TypeError, r"'text' is not bytes: b'text' is"):
            buffer.write(0, "text")
        self.assertIsInstance(buffer.bytes, GLib.Bytes)  # the memory itself
        args = Pto.TaskArgs(1, 2.5)
        blob = args.to_blob()
        self.assertIsInstance(blob, bytes)
        self.assertEqual(Pto.TaskArgs.new_from_blob(blob).to_blob(), blob)
        with self.assertRaises(Pto.Error):
            Pto.TaskArgs.new_from_blob(blob[:-1])
        tensor = Pto.Tensor.new_for_bytes(b"\0\0\x80?", 0, Pto.Dtype.FLOAT32, [1])
        self.assertEqual(tuple(tensor.shape), (1,))

    def test_tensor_keeps_array(self):
        given = Gone([1, 2, 3, 4])
        gone = weakref.ref(given)
        tensor = Pto.Tensor.of(given)
        del given
        view = tensor.view([2], [2])
        del tensor
        args = Pto.TaskArgs(view.read())
        del view
        gc.collect()
        array = args[0]
        self.assertEqual(list(array), [3, 4])
        del args
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(list(array), [3, 4])
        del array
        gc.collect()
        self.assertIsNone(gone())

    def test_run_keeps_array(self):
        for backend in backends:
            with chip(backend) as worker:
                y, gone = np.zeros((50, 1000), "f4"), []

                def graph(orch):
                    for i in range(len(y)):
                        given = Gone(np.full(1000, i))
                        gone.append(weakref.ref(given))
                        orch.submit(scale, Pto.Tensor.of(given).read(), Pto.Tensor.of(y[i]).write_existing(), 2.5)
                    del given
                    gc.collect()
                    self.assertTrue(all(g() is not None for g in gone))

                worker.run(graph)
                gc.collect()
                self.assertTrue(all(g() is None for g in gone))
                self.assertTrue((y == 2.5 * np.arange(len(y))[:, None]).all())

    def test_range(self):
        """Like a list: its numbers have no type."""
        self.assertEqual(list(np.asarray(Pto.Tensor.of(range(1, 4)))), [1, 2, 3])
        self.assertEqual(Pto.Tensor.of(range(3)).dtype, Pto.Dtype.FLOAT32)

    def test_element_types(self):
        for name in ("float64", "float32", "float16", "bool", "int8", "uint64"):
            tensor = Pto.Tensor.of(np.ones(3, name))
            self.assertEqual(tensor.dtype.value_nick, name)
            self.assertEqual(np.asarray(tensor).dtype, np.dtype(name))
        for dtype, bits in ((Pto.Dtype.BFLOAT16, "uint16"), (Pto.Dtype.FLOAT8_E4M3FN, "uint8"),
                            (Pto.Dtype.FLOAT8_E5M2, "uint8"), (Pto.Dtype.INT4, "uint8")):
            tensor = Pto.Tensor.new_for_buffer(Pto.Buffer.new(64), 0, dtype, [4])
            self.assertEqual(np.asarray(tensor).dtype, np.dtype(bits))
            self.assertEqual(tensor.n_bytes, 4 * np.dtype(bits).itemsize)

    def test_names_of_types(self):
        """Those that NumPy has not, too."""
        dtype, seen = Pto.Dtype, []
        names = {"int4": dtype.INT4, "float8_e4m3": dtype.FLOAT8_E4M3FN, "float8_e4m3fn": dtype.FLOAT8_E4M3FN,
                 "float8-e5m2": dtype.FLOAT8_E5M2, "bfloat16": dtype.BFLOAT16, "Float32": dtype.FLOAT32, "f2": dtype.FLOAT16}

        def graph(orch):
            seen.extend((orch.tensor(4, name).dtype, orch.tensor([4], dtype=name).dtype) for name in names)
            with self.assertRaises(TypeError):
                orch.tensor(4, "nonsense")

        with chip() as worker:
            worker.run(graph)
        self.assertEqual(seen, [(found, found) for found in names.values()])

    def test_strided(self):
        """Columns, every other element, other orders: what is there, is there; dependencies are those of the elements."""
        for backend in backends:
            whole = np.arange(48.0).reshape(6, 8)
            out = np.zeros((8, 6))
            last = np.zeros((6, 8))

            def graph(orch, evens, turned, result, all_of_it, copy):
                orch.submit(move, evens.read(), turned.write_existing())
                orch.submit(move, result.read(), evens.write_existing())  # what was read, is written
                orch.submit(move, all_of_it.read(), copy.write_existing())

            with chip(backend) as worker:
                worker.run(graph, whole[::2, 1::3], out.T[1:4, 2:8:2], out.T[1:4, 2:8:2], whole, last)
                wanted = np.arange(48.0).reshape(6, 8)
                taken = 10 * wanted[::2, 1::3]
                self.assertTrue((out.T[1:4, 2:8:2] == taken).all())
                self.assertEqual(np.count_nonzero(out), taken.size)
                wanted[::2, 1::3] = 10 * taken
                self.assertTrue((whole == wanted).all())
                self.assertTrue((last == 10 * wanted).all())
                self.assertEqual(worker.dup_statistics().edges, 2)
        view = Pto.Tensor.of(whole[::2, 1::3])
        self.assertEqual((view.shape, list(view.strides)), ((3, 3), [16, 3]))
        self.assertTrue(np.shares_memory(np.asarray(view), whole))
        self.assertTrue((np.asarray(view) == whole[::2, 1::3]).all())
        for array in (whole[::-1], np.broadcast_to(whole[:1], (3, 8)), np.zeros(4, "i1,f8")["f1"]):
            with self.assertRaisesRegex(ValueError, "ascontiguousarray"):
                Pto.Tensor.of(array)
        with self.assertRaisesRegex(GLib.Error, "at one place"):
            Pto.Tensor.of(np.lib.stride_tricks.as_strided(whole, (4, 4), (16, 8)))
        frozen = whole[:, ::2]
        frozen.flags.writeable = False
        self.assertTrue(Pto.Tensor.of(frozen).is_read_only())

    def test_too_many_dimensions(self):
        for make in Pto.Tensor.of, Pto.seeds.make_ct:
            self.assertEqual(make(np.ones((1,) * 5, "f4")).shape, (1,) * 5)
            for array in (np.ones((1,) * 9, "f4"), np.ones((2,) * 12, "f4")[:, ::2]):
                with self.assertRaisesRegex(ValueError, f"an array of {array.ndim} dimensions is no tensor, which has at most 5"):
                    make(array)

    def test_shapes_of_buffers(self):
        for shape, expected in ((3, (3,)), ((), ()), ([2, np.int64(3)], (2, 3)), ((0, 5), (0, 5))):
            self.assertEqual(Pto.Buffer.array(shape).shape, expected)
        for shape in (-3, (2, -3), (-2, -3), 2**62, (2**32, 2**32)):
            with self.assertRaisesRegex(ValueError, "there is no array of the shape"):
                Pto.Buffer.array(shape)

    def test_lists(self):
        with chip() as worker:
            for n in (1000, 40000):
                y = np.zeros(n, "f4")
                worker.run(lambda orch, x, y: orch.submit(scale, x.read(), y.write_existing(), 2.0), list(range(n)), y)
                self.assertTrue((y == 2 * np.arange(n)).all())
            worker.run(lambda orch, x, y: orch.submit(scale, x.read(), y.write_existing(), 2.0), (0.5, 0.25), y)
            self.assertEqual(list(y[:2]), [1, 0.5])
            with self.assertRaises(ValueError):
                Pto.Tensor.of([2**24 + 1])

    def test_read_only(self):
        closed = np.zeros(4, "f4")
        closed.flags.writeable = False
        source = b"0123456789abcdef"
        for backend in backends:
            with chip(backend) as worker:
                for out in (closed, np.frombuffer(source, "f4"), [0.0] * 4, (0.0,) * 4):
                    for tag in ("write", "update", "write_existing"):
                        with self.assertRaises(GLib.Error) as caught:
                            worker.run(lambda orch, x, y: orch.submit(scale, x.read(), getattr(y, tag)(), 2.0),
                                       np.ones(4, "f4"), out)
                        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.INVALID_ARGS))
                        self.assertIn('kernel "scale": argument 1 is ', caught.exception.message)
                        self.assertIn("its memory can only be read", caught.exception.message)
                y = np.zeros(4, "f4")
                worker.run(lambda orch, x, y: orch.submit(scale, x.read(), y.write_existing(), 2.0),
                           np.frombuffer(np.ones(4, "f4").tobytes(), "f4"), y)
                self.assertEqual(list(y), [2] * 4)
        self.assertEqual(source, b"0123456789abcdef")
        self.assertFalse(np.asarray(Pto.Tensor.of(closed)).flags.writeable)

    def test_registered_run(self):
        """With arrays, with a list as an input, and with what can only be read as an output."""
        here = os.path.dirname(os.path.abspath(__file__))
        orchestration = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        orchestration.add_kernel(0, "FILL", Pto.Callable.kernel(os.path.join(here, "fill.c")))
        with chip() as worker:
            worker.init()
            handle = worker.register(orchestration)
            y = np.zeros(16, "f4")
            worker.run(handle, y, 16, 3.5)
            self.assertEqual(list(y), [3.5] * 16)
            args = Pto.TaskArgs(Pto.Tensor.of(y).write_existing(), 16, 4.5)
            worker.run(handle, args)
            self.assertEqual(list(y), [4.5] * 16)
            closed = np.zeros(16, "f4")
            closed.flags.writeable = False
            for out in (closed, [0.0] * 16):
                with self.assertRaises(GLib.Error) as caught:
                    worker.run(handle, out, 16, 3.5)
                self.assertIn("can only be read", caught.exception.message)
            self.assertEqual(list(closed), [0] * 16)

    def test_registered_runs(self):
        """Arrays, tagged or not, and numbers of every kind, at every level."""
        here = os.path.dirname(os.path.abspath(__file__))
        orchestration = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        orchestration.add_kernel(0, "FILL", Pto.Callable.kernel(os.path.join(here, "fill.c")))
        for backend in (*backends, "isolated"):
            with self.subTest(backend), (Pto.Worker(isolate=True) if backend == "isolated" else chip(backend)) as worker:
                handle, y = worker.register(orchestration), np.zeros(16, "f4")
                worker.run(handle, y, ctypes.c_uint64(16), ctypes.c_float(3.5))
                self.assertEqual(list(y), [3.5] * 16)
                worker.run(handle, Pto.Tensor.of(y).write_existing(), np.int64(8), 4.5)
                self.assertEqual(list(y), [4.5] * 8 + [3.5] * 8)
                with self.assertRaisesRegex(GLib.Error, "its memory can only be read"):
                    worker.run(handle, Pto.Tensor.of(y).read(), 16, 7.5)
                self.assertEqual(list(y), [4.5] * 8 + [3.5] * 8)
                self.assertEqual(repr(handle), f"<Pto.CallableHandle: {orchestration.to_string()}, {handle.digest[:12]}>")

        def below(args):
            np.add(args[0], args[2], out=args[1])

        def graph(orch, args):
            orch.submit_sub(handle, [args.get_tensor(0).read(), args.get_tensor(1).write_existing(), args[2]])

        for level in (3, 4):
            with self.subTest(level), Pto.Worker(level=level, sub_workers=1) as worker:
                handle = worker.register(below)
                whole = worker.register(Pto.Callable.function(graph, Pto.CallableKind.ORCHESTRATION))
                x, y = Pto.Buffer.array(4), Pto.Buffer.array(4)
                x[:] = range(4)
                worker.run(whole, x, y, 2)
                self.assertEqual(list(y), [2, 3, 4, 5])
                worker.run(whole, Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write_existing(), ctypes.c_double(0.5))
                self.assertEqual(list(y), [0.5, 1.5, 2.5, 3.5])
                self.assertIn('the orchestration "graph" of this process', repr(whole))

    @unittest.skipUnless(np, "needs NumPy")
    def test_shapes_at_a_chip(self):
        """The orchestration is given arrays, and no number of elements or type beside them."""
        path = os.path.join(directory.name, "shapes_orch.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write("""#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ 2 };
}
extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *, int)
{
  Tensor x = pto2_rt_arg_tensor (rt, 0);
  uint64_t flat[] = { x.numel () };
  PTOParam params[] = { make_input_param (x.reshape (flat, 1)),
                        make_output_existing_param (pto2_rt_arg_tensor (rt, 1)),
                        make_scalar_param ((uint64_t) x.dtype) };

  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 3);
  return 0;
}
""")
        chip = Pto.ChipOrchestration.new(path, None)
        chip.add_kernel(0, "say", kernel("say", """
  const TensorData *x = (const TensorData *) args[0];
  int64_t *y = (int64_t *) ((const TensorData *) args[1])->buffer.addr;
  y[0] = x->ndims; y[1] = x->shapes[0]; y[2] = args[2];
"""))
        said = np.zeros(3, np.int64)
        for backend, isolate in (("par", False), ("det", False), ("threads", False), ("par", True)):
            with self.subTest(backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                worker.set_parameter("backend", backend)
                said[:] = 0
                worker.run(worker.register(chip), np.zeros((2, 3, 5), np.int16), said)
                self.assertEqual(said.tolist(), [1, 30, int(Pto.Dtype.INT16)])

    def test_after_close(self):
        kept = []
        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(lambda args: args[0].fill(7))

            def graph(orch):
                tensor = orch.alloc(4)
                kept.extend((np.asarray(tensor), tensor))
                orch.submit_sub(handle, [tensor.write_existing()])
            host.run(graph)
            shared = Pto.Buffer.array(4)
        del host
        gc.collect()
        self.assertEqual(list(kept[0]), [7] * 4)
        self.assertEqual(list(np.asarray(kept[1])), [7] * 4)
        shared[:] = 1
        self.assertEqual(list(shared), [1] * 4)


@unittest.skipIf(np is None, "no numpy")
class Numbers(unittest.TestCase):
    def test_at_a_kernel(self):
        for backend in backends:
            with chip(backend) as worker:
                y = np.zeros(4, "i8")
                worker.run(lambda orch, y: orch.submit(words, y.write_existing(), -2, 2**64 - 2, 2.5,
                                                       ctypes.c_double(-0.125)), y)
                self.assertEqual(list(y), [-2, -2, 2500, -125])
                with self.assertRaises(GLib.Error) as caught:
                    worker.run(lambda orch, y: orch.submit(words, y.write_existing(), 0, 0, 1e39, 0.0), y)
                self.assertIn('kernel "words": argument 3: 1e+39 is too large for a float', caught.exception.message)

    def test_at_a_function(self):
        given = [2.5, 0.1, -2, 2**63 - 1, 2**63, 2**64 - 1, -2**63, 1e300, float("inf"), np.float64(0.1), np.int8(-3),
                 np.uint64(5), True, np.bool_(True), ctypes.c_double(0.1), ctypes.c_int64(-5), ctypes.c_uint64(2**64 - 5)]
        expected = [g.value if hasattr(g, "value") else g for g in given]
        seen = Pto.Buffer.array(1, "i8")

        def look(args):
            got = [args[i] for i in range(len(args) - 1)]
            args[-1]
            if got != expected or any(isinstance(a, float) != isinstance(b, (float, np.floating))
                                      for a, b in zip(got, expected)):
                raise AssertionError(repr(got))
            seen[0] = 1

        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(look)
            host.run(lambda orch: orch.submit_sub(handle, given + [0]))
        self.assertEqual(seen[0], 1)

    def test_kinds(self):
        kinds = Pto.ScalarKind
        args = Pto.TaskArgs(5, 2**63, 2.5, np.uint8(5), ctypes.c_double(1), ctypes.c_float(1), ctypes.c_uint32(1))
        self.assertEqual([args.get_scalar_kind(i) for i in range(len(args))],
                         [kinds.SIGNED, kinds.UNSIGNED, kinds.FLOAT, kinds.UNSIGNED, kinds.DOUBLE, kinds.FLOAT,
                          kinds.UNSIGNED])
        self.assertEqual(args.get_scalar(2), int(np.float32(2.5).view("u4")))
        for wrong in (2**64, -2**63 - 1):
            with self.assertRaisesRegex(OverflowError, "argument 1: "):
                Pto.TaskArgs(1, wrong)
        for wrong in ("text", 1j, None):
            with self.assertRaisesRegex(TypeError, "argument 0: "):
                Pto.TaskArgs(wrong)


class Attributes(unittest.TestCase):
    def test_fields(self):
        config = Pto.CallConfig(block_dim=3)
        config.enable_pmu = 4
        config.output_prefix = "here/"
        self.assertEqual((config.block_dim, config.get_enable_pmu(), config.get_output_prefix()), (3, 4, "here/"))
        with chip() as worker:
            worker.init()
            with self.assertRaises(GLib.Error) as caught:
                worker.run(lambda orch: None, config=config)
            self.assertIn("here/pmu.json", caught.exception.message)
            self.assertEqual(worker.level, 2)

    def test_unknown(self):
        with chip() as worker:
            worker.init()
            worker.run(lambda orch: None)
            for thing in (worker, worker.dup_statistics(), Pto.CallConfig(), Pto.TaskArgs(), Pto.Buffer.new(8), scale,
                          Pto.Tensor.new(Pto.Dtype.INT8, [1]), Pto.Platform.lookup("a2a3sim")):
                for name in ("nonsense", "enable_pmm", "get_type", "_private"):
                    with self.assertRaises(AttributeError, msg=(thing, name)) as caught:
                        setattr(thing, name, 1)
                    self.assertIn(name, str(caught.exception))
        with self.assertRaises(AttributeError):
            Pto.CallConfig(nonsense=1)
        with self.assertRaises(AttributeError):
            Pto.CallConfig().set_block_dim = 3
        with self.assertRaises(AttributeError):
            worker.level = 4
        with self.assertRaises(TypeError):
            Pto.Worker(nonsense=1)

    def test_choices(self):
        """Every enumeration among the properties, by its constants, their numbers and their names; no other value."""
        properties = [(name, Pto.Worker.find_property(name)) for name in ("child_mode", "restart")]
        self.assertEqual([property_.name.replace("-", "_") for property_ in Pto.Worker.list_properties()
                          if property_.value_type.is_a(GObject.TYPE_ENUM) and property_.flags & GObject.ParamFlags.WRITABLE],
                         [name for name, _ in properties])
        for name, property_ in properties:
            type_ = getattr(Pto, property_.value_type.name.removeprefix("Pto"))
            for number in range(2):
                value = type_(number)
                for given in (value, number, value.value_nick, value.value_nick.replace("-", "_")):
                    worker = Pto.Worker(level=3, **{name: given})
                    self.assertEqual((worker.get_property(name.replace("_", "-")), type(getattr(worker, name))), (value, type_))
            for given in ("nonsense", 77, None, 1.0, True):
                with self.assertRaisesRegex(TypeError, f"{name}: .* is none of "):
                    Pto.Worker(level=3, **{name: given})

    def test_enumerations_of_python(self):
        """What newer versions of PyGObject make of an enumeration."""
        from gi.overrides import PtoChecks, PtoEnums
        self.assertEqual(PtoEnums.names_of(Pto.ChildMode), ["PROCESS", "THREAD"])
        nick = property(lambda self: self.name.lower().replace("_", "-"))
        for base in enum.IntEnum, enum.IntFlag:
            Mode = base("Mode", {"OF_A_PROCESS": 1, "THREAD": 2})
            Mode.value_nick = nick
            for given in (Mode.THREAD, 2, "thread"):
                self.assertIs(PtoChecks.choice(Mode, given, "mode"), Mode.THREAD)
            self.assertIs(PtoChecks.choice(Mode, "of_a_process", "mode"), Mode.OF_A_PROCESS)
            with self.assertRaisesRegex(TypeError, "mode: 7 is none of Pto.Mode: OF_A_PROCESS, THREAD$"):
                PtoChecks.member(Mode, 7, "mode")
            with self.assertRaisesRegex(TypeError, "mode: 'no' is none of of-a-process, thread$"):
                PtoChecks.choice(Mode, "no", "mode")

    def test_index(self):
        with chip() as worker:
            worker.set_parameter("trace", 1)
            worker.init()
            worker.run(lambda orch: None)
            statistics, trace, args = worker.dup_statistics(), worker.ref_trace(), Pto.TaskArgs(1, 2)
            calls = [(getattr(args, "get_" + name), 1) for name in ("direction", "tensor", "scalar", "scalar_kind",
                                                                    "scalar_double", "scalar_value")]
            calls += [(getattr(statistics, "get_" + name), 3) for name in ("last_task_alive", "ring_tasks", "heap_peak")]
            calls += [(getattr(statistics, "get_" + name), 1) for name in ("busy_ns", "n_cores", "utilization")]
            calls += [(getattr(trace, name), trace.get_n_cores() - 1) for name in ("dup_core_name", "get_core_utilization")]
            for call, last in calls:
                call(last)
                for index in (last + 1, -1, 2**40):
                    with self.assertRaises(IndexError):
                        call(index)


class Words(unittest.TestCase):
    """What things say of themselves."""

    def test_repr(self):
        seen = []
        with chip() as worker:
            self.assertEqual(repr(worker), "<Pto.Worker: L2/0: a2a3sim, new>")
            worker.run(lambda orch: seen.append((orch, repr(orch))))
            self.assertEqual(repr(worker), "<Pto.Worker: L2/0: a2a3sim, ready>")
            self.assertEqual(seen[0][1], "<Pto.Orchestrator: of a run of L2/0>")
            self.assertEqual(str(seen[0][0]), "<Pto.Orchestrator: of a run that is over>")
        self.assertEqual(repr(worker), "<Pto.Worker: L2/0: a2a3sim, closed>")
        with Pto.Worker(isolate=True) as worker:
            self.assertEqual(repr(worker), "<Pto.Worker: L2/0: a2a3sim, a process of its own, new>")
        with Pto.Worker(level=4, sub_workers=2) as above:
            below = Pto.Worker(level=3, devices=2, sub_workers=1)
            above.add_worker(below)
            self.assertEqual(repr(above), "<Pto.Worker: L4/0: a2a3sim, 1 worker and 2 SUB workers below, new>")
            self.assertEqual(repr(below), "<Pto.Worker: L4/0/L3/0: a2a3sim, 2 workers and 1 SUB worker below, new>")
            self.assertEqual(list(above.children), [below])
            self.assertEqual([child.path for child in below.children], ["L4/0/L3/0/L2/0", "L4/0/L3/0/L2/1"])
        self.assertEqual(list(above.children), [])

    def test_empty_configuration(self):
        """It is as none, on every platform and whatever the worker's parameters are."""
        def graph(orch):
            for _ in range(100):
                orch.submit(scale, Pto.Tensor.of([1.0] * 4).read(), orch.tensor(4).write(), 2.0)

        for platform, threads in (("a2a3sim", 0), ("a2a3sim", 2), ("a5sim", 0)):
            texts = []
            for choices in (None, {}, {"aicpu_thread_num": 0}, {"aicpu_thread_num": 2}):
                with Pto.Worker(platform=platform) as worker:
                    for name, value in (("backend", "det"), ("trace", 1), ("aicpu-threads", threads)):
                        if value:
                            worker.set_parameter(name, value)
                    worker.run(graph, config=None if choices is None else Pto.CallConfig(**choices))
                    texts.append(worker.trace.to_json())
            self.assertEqual(texts[0], texts[1], platform)
            self.assertEqual(texts[0], texts[2], platform)
            self.assertEqual(texts[0] == texts[3], threads == 2, platform)


    def test_report(self):
        """A notebook shows it in a frame, from which nothing gets out."""
        with Pto.Worker() as worker:
            worker.set_parameter("trace", 1)
            worker.run(lambda orch: orch.submit(scale, Pto.Tensor.of([1.0] * 4).read(), orch.tensor(4).write(), 2.0))
            trace = worker.trace
        frame = trace._repr_html_()
        self.assertRegex(frame, r'^<iframe sandbox="allow-scripts" [^<>]* srcdoc="[^"<>]*"></iframe>$')
        self.assertEqual(html.unescape(frame.split('srcdoc="')[1].split('"')[0]), trace.to_html())
        self.assertEqual(trace._repr_svg_(), trace.to_svg())
        self.assertEqual(ElementTree.fromstring(trace._repr_svg_()).tag, "{http://www.w3.org/2000/svg}svg")
        with tempfile.TemporaryDirectory() as place:
            for save in (trace.save, trace.save_html):
                save(os.path.join(place, "run.html"))
                with open(os.path.join(place, "run.html"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), trace.to_html())


class Functions(unittest.TestCase):
    def test_defaults(self):
        """A default is the function's own: what loops bind by it arrives. None says that it may be given."""
        seen = []
        args, config = Pto.TaskArgs(7), Pto.CallConfig(block_dim=2)
        with chip() as worker:
            for i in range(3):
                worker.run(lambda orch, i=i: seen.append(i), args, config)
            worker.run(lambda orch, given, i=3: seen.append((given[0], i)), args, config)
            worker.run(lambda orch, given=None, choices=None: seen.append((given[0], choices.block_dim)), args, config)
            worker.run(lambda orch, *rest: seen.append(len(rest)), args, config)
            worker.run(lambda orch, x, y, i=4: seen.append((x, y, i)), 1, 2)
            worker.run(lambda orch, x, y, i=4: seen.append((x, y, i)), 1, 2, 3)
            worker.run(lambda orch, *, i=5: seen.append(i))
        self.assertEqual(seen, [0, 1, 2, (7, 3), (7, 2), 2, (1, 2, 4), (1, 2, 3), 5])
        board = Pto.Buffer.array(4, "i8")
        with Pto.Worker(level=3, sub_workers=1) as host:
            for i in range(3):
                add = host.register(lambda args, i=i: args[0].__setitem__(i, i + 1))
                self.assertEqual(add.get_kind(), Pto.CallableKind.SUB)
                host.run(lambda orch, x: orch.submit_sub(add, [x.update()]), board)
        self.assertEqual(list(board), [1, 2, 3, 0])

    def test_data_is_not_dropped(self):
        with chip() as worker:
            for graph in lambda orch: None, lambda orch, x: None:
                with self.assertRaisesRegex(TypeError, "positional argument"):
                    worker.run(graph, 1, 2)

    def test_what_is_none(self):
        with chip() as worker:
            for what in None, 3, scale:
                with self.assertRaisesRegex(TypeError, "can not be run: a function can, the handle of what is registered, or a graph"):
                    worker.run(what)
        with self.assertRaisesRegex(ValueError, "devices=-1"):
            Pto.Worker(level=3, devices=-1)
        with self.assertRaisesRegex(ValueError, f"devices=1000000: there are 0 to {Pto.MAX_CHILDREN}"):
            Pto.Worker(level=3, devices=10 ** 6)

    def test_kinds_of_cores(self):
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill.c")
        for core in "aic", "AIV", Pto.CoreType.AIV:
            expected = Pto.CoreType.AIV if core != "aic" else Pto.CoreType.AIC
            self.assertEqual(Pto.Callable.kernel(here, core=core).get_core_type(), expected)
        for core in "aix", "from_name", 1.5, None:
            with self.assertRaisesRegex(ValueError, 'fill.c: there is no such type of core: it is "aic" or "aiv"'):
                Pto.Callable.kernel(here, core=core)
        self.assertEqual(repr(Pto.Kernel()), "<Pto.Kernel: the kernel that was not made by a constructor>")

    def test_whole_numbers_of_bytes(self):
        with Pto.Worker(platform="a2a3sim") as worker:
            for call in worker.alloc_buffer, worker.malloc:
                with self.assertRaises(TypeError):
                    call(10.7)
            self.assertEqual(worker.alloc_buffer(10).get_size(), 10)

    def test_inexact(self):
        """PyGObject makes 1 of 1.5 and of True, true of "no", and splits a text into letters where a list is wanted."""
        x, config, args = Pto.Tensor.new(Pto.Dtype.INT8, [4]), Pto.CallConfig(), Pto.TaskArgs()
        kernel = Pto.Callable.kernel(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill.c"))
        for wrong in 1.5, True, "1", np.float32(2) if np is not None else 2.0:
            for call in (lambda: args.add_after(wrong), lambda: args.set_condition(x, [wrong]), lambda: x.view([wrong], [0]),
                         lambda: x.view([1], [wrong]), lambda: x.reshape([wrong]), lambda: x.as_strided([1], [1], wrong),
                         lambda: x.transpose(0, wrong), lambda: Pto.Buffer.new(wrong), lambda: Pto.Tensor.new(Pto.Dtype.INT8, [wrong]),
                         lambda: kernel.set_n_args(wrong), lambda: setattr(kernel, "n_args", wrong),
                         lambda: Pto.CallConfig(block_dim=wrong), lambda: setattr(config, "aicpu_thread_num", wrong),
                         lambda: Pto.Worker(level=wrong), lambda: Pto.Worker(level=3, devices=wrong),
                         lambda: Pto.Worker(level=3, sub_workers=wrong), lambda: Pto.Worker(level=3, device_ids=[wrong]),
                         lambda: Pto.Worker.new_host(level=3, n_devices=wrong, n_sub_workers=0, platform=None)):
                with self.assertRaisesRegex(TypeError, f"{wrong!r} is not an integer".replace("(", r"\(").replace(")", r"\)")):
                    call()
        # Of what is long a message has the begin.
        for wrong, part in ((bytes(5000), r"b'(\\x00){80}'\.\.\."), ("x" * 5000, "'x{80}'\\.\\.\\."),
                            (list(range(5000)), r"\[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, \.\.\.\]")):
            with self.assertRaisesRegex(TypeError, f": {part} is not an integer$"):
                Pto.Buffer.new(wrong)
        for call in (lambda: args.set_condition(x, "12"), lambda: x.reshape(2), lambda: Pto.Worker(level=3, device_ids="12")):
            with self.assertRaisesRegex(TypeError, "is not a list of integers"):
                call()
        for wrong in "no", [], 1:
            with self.assertRaisesRegex(TypeError, "isolate: .* is neither True nor False"):
                Pto.Worker(isolate=wrong)
        with self.assertRaisesRegex(TypeError, "1.5 is not an integer"):
            config.enable_pmu = 1.5
        config.enable_pmu = True
        self.assertEqual(config.enable_pmu, 1)

        def graph(orch):
            for wrong in 1.5, True:
                for call in (lambda: setattr(orch, "priority", wrong), lambda: orch.set_priority(wrong), lambda: orch.tensor([wrong]),
                             lambda: orch.submit_order(after=[wrong]), lambda: orch.submit(kernel, after=[wrong]),
                             lambda: orch.submit(kernel, when=(x, wrong))):
                    with self.assertRaisesRegex(TypeError, f"{wrong} is not an integer"):
                        call()
            self.assertEqual((orch.priority, orch.worker.get_state()), (0, Pto.WorkerState.READY))

        for backend in backends:
            with chip(backend) as worker:
                worker.run(graph)

    def test_one_text(self):
        """One directory, not its letters; one text is split as a shell does."""
        here = pathlib.Path(__file__).resolve().parent
        kernel = Pto.Callable.kernel(str(here / "fill.c"), include_dirs=str(here), flags="-O1 '-DA=b c'")
        for dirs in str(here), here, [here], [str(here)]:
            kernel.set_include_dirs(["/"])
            kernel.include_dirs = dirs
            self.assertEqual(kernel.include_dirs, [str(here)])
        self.assertEqual(kernel.compiler_flags, ["-O1", "-DA=b c"])
        kernel.compiler_flags = "-O2 -g"
        self.assertEqual(kernel.compiler_flags, ["-O2", "-g"])
        with self.assertRaisesRegex(GLib.Error, "/nonexistent/none: there is no such directory"):
            Pto.Callable.kernel(str(here / "fill.c"), include_dirs="/nonexistent/none")

    def test_methods_of_callables(self):
        """What is compiled has methods for that; functions have not, nor have they attributes of that name."""
        here = pathlib.Path(__file__).resolve().parent
        compiled = Pto.Callable.kernel(str(here / "fill.c")), Pto.ChipOrchestration.new(str(here / "fill_orch.c"), None)
        functions = (Pto.Callable.function(lambda args: None), Pto.Callable.function(lambda orch, args, config: None),
                     Pto.ImportedFunction.new(Pto.CallableKind.SUB, "a:b"))
        for name in ("build", "build_async", "build_finish", "set_include_dirs", "get_include_dirs", "include_dirs",
                     "set_compiler_flags", "get_compiler_flags", "compiler_flags"):
            self.assertEqual([hasattr(it, name) for it in compiled + functions], [True] * 2 + [False] * 3, name)
        for name in "name", "kind", "path", "source", "to_string", "set_name":
            self.assertTrue(all(hasattr(it, name) for it in compiled + functions), name)
        self.assertEqual([getattr(it, "symbol", "none") for it in compiled + functions],
                         ["kernel_entry", "aicpu_orchestration_entry", "none", "none", None])
        self.assertEqual([isinstance(it, Pto.DeviceCode) for it in compiled + functions], [True] * 2 + [False] * 3)
        for it in functions:
            with self.assertRaisesRegex(AttributeError, "include_dirs"):
                it.include_dirs = str(here)

    def test_members_of_exceptions(self):
        group = Pto.Exception.new("Group", "all of them", None, [Pto.Exception.new("KeyError", "two", None, [])])
        self.assertEqual((str(group), str(group.get_member(0))), ("<Pto.Exception: Group: all of them>", "<Pto.Exception: KeyError: two>"))
        for index in 1, -1:
            with self.assertRaises(IndexError):
                group.get_member(index)

    def test_parameters_are_no_properties(self):
        """What the sentence says to do instead works as it stands."""
        for name, value in (("trace", True), ("task_window", 64), ("backend", "det")):
            with self.assertRaisesRegex(TypeError, f"^{name} is a parameter: after this, ") as caught:
                Pto.Worker(platform="a2a3sim", **{name: value})
            worker = Pto.Worker(platform="a2a3sim")
            exec(str(caught.exception).split("after this, ")[1])
            self.assertEqual(worker.dup_parameter(name.replace("_", "-")), str(int(value) if value is True else value))


class Exceptions(unittest.TestCase):
    def test_constructors(self):
        class Local(Exception):
            def __init__(self, *, key):
                super().__init__(key)

        def unprintable(args):
            class Unprintable(Exception):
                def __str__(self):
                    raise RuntimeError
            raise Unprintable

        def raiser(make):
            def raise_it(args):
                raise make()
            return raise_it

        made = (lambda: UnicodeDecodeError("utf-8", b"x", 0, 1, "why not"), lambda: TwoWords(1, 2), lambda: Base(3),
                lambda: KeyError("x"), lambda: OSError(2, "No such file"), lambda: Local(key="of here"),
                lambda: ValueError("two\nlines"), lambda: ValueError(), lambda: Exception("of no kind"), lambda: levels_helper.Refused(3))
        with Pto.Worker(level=3, sub_workers=1) as host:
            for make in made:
                handle = host.register(raiser(make))
                with self.assertRaises(type(make())) as caught:
                    host.run(lambda orch: orch.submit_sub(handle))
                self.assertEqual(str(caught.exception), str(make()))
            handle = host.register(unprintable)
            with self.assertRaises(GLib.Error) as caught:
                host.run(lambda orch: orch.submit_sub(handle))
            self.assertIn("Unprintable", caught.exception.message)

    def test_scope_that_is_left(self):
        """An exception leaves scopes, too; who catches it goes on outside of them."""
        def graph(orch, y):
            with self.assertRaises(TwoWords), orch.scope():
                orch.submit(scale, y.read(), y.update(), 1)
                raise TwoWords("two", "words")
            with self.assertRaises(TwoWords):
                orch.with_scope(left)
            self.assertEqual(orch.with_scope(lambda inner: inner is orch), True)
            def later(inner):
                yield inner
            self.assertRaisesRegex(TypeError, "generator function", orch.with_scope, later)
            self.assertRaisesRegex(RuntimeError, "has returned False", orch.with_scope, lambda inner: False)
            orch.submit(scale, y.read(), y.update(), 1)

        def left(orch):
            with orch.scope():
                raise TwoWords("two", "words")

        for backend in backends:
            with self.subTest(backend), chip(backend) as worker:
                worker.run(graph, np.ones(4, "f4"))
                self.assertEqual([worker.statistics.get_last_task_alive(ring) for ring in range(3)], [1, 1, 0])

    def test_text_that_is_not_utf8(self):
        def bad(args):
            raise ValueError("bad \udc80 and \0 text")

        bad.__name__ = "bad\udc80"
        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(bad)
            with self.assertRaises(ValueError) as caught:
                host.run(lambda orch: orch.submit_sub(handle))
            self.assertEqual(str(caught.exception), "bad \udc80 and \0 text")
            self.assertIn("bad \\udc80 and \\0 text", caught.exception.__cause__.message)
        with chip() as worker:
            with self.assertRaises(ValueError) as caught:
                worker.run(bad)
            self.assertIn("bad \udc80", str(caught.exception))

    def test_names_that_are_not_utf8(self):
        """Of files, what a compiler says of them, and what a child writes."""
        place = os.fsdecode(os.fsencode(directory.name) + b"/bad\xff")
        os.makedirs(place, exist_ok=True)

        def written(name, data):
            path = os.fsencode(place) + b"/" + name
            with open(path, "wb") as file:
                file.write(data)
            return os.fsdecode(path)

        broken = written(b"broken\xfe.c", b"void kernel_entry (long *args) { \xff n; }\n")
        crash = written(b"crash\xfe.c", b"void kernel_entry (long *args) { __builtin_trap (); }\n")
        no_object = written(b"none\xfe.so", b"no object")
        missing = os.path.join(place, "missing.c")

        def last_words(args):
            os.write(2, b"bad\xff words\n")
            os._exit(3)

        with chip() as worker, Pto.Worker(level=3, sub_workers=1) as host:
            worker.init()
            handle = host.register(last_words)
            stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            try:
                for call in (lambda: Pto.Callable.kernel(missing),
                             lambda: worker.register(Pto.Callable.kernel(broken)),
                             lambda: worker.register(Pto.Callable.kernel(no_object)),
                             lambda: worker.run(lambda orch: orch.submit(Pto.Callable.kernel(crash))),
                             lambda: worker.run(lambda orch: None, config=Pto.CallConfig(
                                 enable_l2_swimlane=1, output_prefix=os.path.join(place, "no", "where"))),
                             lambda: worker.ref_trace().save(os.path.join(place, "trace.what")),
                             lambda: host.run(lambda orch: orch.submit_sub(handle))):
                    with self.assertRaises(GLib.Error) as caught:
                        call()
                    self.assertRegex(caught.exception.message, "bad[\ufffd?]|crash\ufffd")
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
                os.close(null)

    def test_too_many(self):
        for how in ({"sub_workers": 257}, {"sub_workers": 1, "devices": 256}):
            with self.assertRaises(GLib.Error) as caught:
                Pto.Worker(level=3, **how).init()
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.INVALID_ARGS))
            self.assertIn("are too many: a worker has at most 256 below it", caught.exception.message)
            self.assertNotIn("\n", caught.exception.message)


sys.modules.setdefault("test_values", sys.modules["__main__"])
tap.main()
