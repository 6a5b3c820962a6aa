# test_python.py: can the library be used from Python through plain PyGObject?
# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
import os
import struct
import sys
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Gio, Pto  # noqa: E402

import tap  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
fill_source = os.path.join(here, "fill.c")
fill_orchestration = os.path.join(here, "fill_orch.c")
elements = 16


def bits(value):
    return struct.unpack("I", struct.pack("f", value))[0]


class WorkerTest(unittest.TestCase):
    def setUp(self):
        self.fill = Pto.Kernel.new(Pto.CoreType.AIV, fill_source, None)
        self.worker = Pto.Worker.new_chip("a2a3sim")
        self.worker.start(None)
        self.buffer = Pto.Buffer.new(4 * elements)
        self.out = Pto.Tensor.new_for_buffer(self.buffer, 0, Pto.Dtype.FLOAT32, [elements])

    def tearDown(self):
        self.worker.close()

    def values(self):
        data = (ctypes.c_float * elements).from_address(self.buffer.get_address())
        return list(data)

    def fill_args(self, tensor, value):
        args = Pto.TaskArgs.new()
        args.add_tensor(tensor, Pto.Direction.OUTPUT_EXISTING)
        args.add_scalar_float(value)
        return args

    def graph(self, orch, args, config, *data):
        half = self.out.view([elements // 2], [0])
        orch.begin_scope()
        orch.submit(self.fill, self.fill_args(self.out, 1.0))
        orch.submit(self.fill, self.fill_args(half, 2.0))
        orch.end_scope()
        return True

    def test_function(self):
        self.worker.run(self.graph, None, None, None, None)
        self.assertEqual(self.values(), [2.0] * 8 + [1.0] * 8)
        statistics = self.worker.dup_statistics()
        self.assertEqual(statistics.get_tasks(), 2)
        self.assertEqual(statistics.get_n_cores(Pto.CoreType.AIV), 48)

    def test_user_data(self):
        seen = []
        self.worker.run(lambda orch, args, config, data: seen.append(data) or True, 42, None, None, None)
        self.assertEqual(seen, [42])

    def test_arguments(self):
        def graph(orch, args, config, *data):
            self.assertEqual(args.get_scalar(0), 2**64 - 1)
            self.assertEqual(config.get_block_dim(), 4)
            self.assertEqual(orch.get_worker(), self.worker)
            return True

        args = Pto.TaskArgs.new()
        args.add_scalar(2**64 - 1)
        config = Pto.CallConfig.new()
        config.set_block_dim(4)
        self.assertTrue(self.worker.run(graph, None, args, config, None))

    def test_runtime_tensor(self):
        add = Pto.Kernel.new(Pto.CoreType.AIV, fill_source, None)

        def graph(orch, args, config, *data):
            tensor = orch.make_tensor(Pto.Dtype.FLOAT32, [elements])
            task = Pto.TaskArgs.new()
            task.add_tensor(tensor, Pto.Direction.OUTPUT)
            task.add_scalar_float(1.0)
            self.assertEqual(tensor.get_shape(), [elements])
            return orch.submit(add, task)

        self.assertTrue(self.worker.run(graph, None, None, None, None))

    def test_callable(self):
        chip = Pto.ChipOrchestration.new(fill_orchestration, None)
        chip.add_kernel(0, "FILL", self.fill)
        progress = []
        self.worker.connect("progress", lambda worker, *what: progress.append(what))
        handle = self.worker.register(chip, None)
        self.assertEqual([p[:2] for p in progress], [(1, 2), (2, 2)])
        self.assertEqual({p[2] for p in progress}, {'orchestration "fill_orch"', 'kernel "FILL"'})
        args = Pto.TaskArgs.new()
        args.add_tensor(self.out, Pto.Direction.OUTPUT_EXISTING)
        args.add_scalar(elements)
        args.add_scalar(bits(3.5))
        self.worker.run_callable(handle, args, None, None)
        self.assertEqual(self.values(), [3.5] * elements)
        self.worker.unregister(handle)
        with self.assertRaises(GLib.Error) as caught:
            self.worker.run_callable(handle, args, None, None)
        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.NOT_FOUND))

    def test_errors(self):
        with self.assertRaises(GLib.Error) as caught:
            Pto.Worker.new(1, None)
        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.NOT_SUPPORTED))
        self.assertIn("level 1", caught.exception.message)
        config = Pto.CallConfig.new()
        config.set_enable_pmu(5)
        with self.assertRaises(GLib.Error) as caught:
            self.worker.run(self.graph, None, None, config, None)
        self.assertIn("enable_pmu", caught.exception.message)

    def test_error_from_function(self):
        def graph(orch, args, config, *data):
            raise GLib.Error.new_literal(Gio.io_error_quark(), "my own words", Gio.IOErrorEnum.NOT_EMPTY)

        with self.assertRaises(GLib.Error) as caught:
            self.worker.run(graph, None, None, None, None)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.NOT_EMPTY))
        self.worker.run(self.graph, None, None, None, None)

    def test_exception_from_function(self):
        def graph(orch, args, config, *data):
            raise ValueError("wanted by the test")

        stderr, hook = os.dup(2), sys.excepthook
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        try:
            with self.assertRaises(GLib.Error) as caught:
                self.worker.run(graph, None, None, None, None)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            os.close(null)
            sys.excepthook = hook
        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.EXPLICIT))
        self.worker.run(self.graph, None, None, None, None)

    def test_orchestrator_after_run(self):
        kept = []
        self.worker.run(lambda orch, *rest: kept.append(orch) or True, None, None, None, None)
        with self.assertRaises(GLib.Error) as caught:
            kept[0].begin_scope()
        self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.CLOSED))

    def test_asynchronous(self):
        loop = GLib.MainLoop()
        results = []
        main_thread = threading.get_ident()

        def graph(orch, args, config, *data):
            self.assertEqual(threading.get_ident(), main_thread)
            return self.graph(orch, args, config)

        def done(worker, result, *data):
            try:
                results.append(worker.run_finish(result))
            except GLib.Error as error:
                results.append(error)
            loop.quit()

        self.worker.run_async(func=graph, args=None, config=None, cancellable=None, callback=done)
        GLib.timeout_add_seconds(60, loop.quit)
        loop.run()
        self.assertEqual(results, [True])
        self.assertEqual(self.values(), [2.0] * 8 + [1.0] * 8)

    def test_bytes(self):
        self.worker.run(self.graph, None, None, None, None)
        data = self.buffer.ref_bytes().get_data()
        self.assertEqual(struct.unpack("16f", data), (2.0,) * 8 + (1.0,) * 8)
        address = self.worker.malloc(64)
        self.worker.copy_to(address, GLib.Bytes.new(b"0123456789"))
        self.assertEqual(self.worker.copy_from(address, 4).get_data(), b"0123")
        self.worker.free(address)

    def test_lists(self):
        self.assertIn("a2a3sim", Pto.Platform.list_names())
        self.assertIn("task-window", Pto.Worker.list_parameters())
        self.assertEqual(Pto.Dtype.get_size(Pto.Dtype.INT64), 8)
        self.fill.set_signature([Pto.Direction.OUTPUT, Pto.Direction.SCALAR])
        self.assertEqual(list(self.fill.get_signature()), [Pto.Direction.OUTPUT, Pto.Direction.SCALAR])

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        array = numpy.zeros(elements, numpy.float32)
        tensor = Pto.Tensor.new_external(array.ctypes.data, Pto.Dtype.FLOAT32, array.shape)
        self.worker.run(lambda orch, *rest: orch.submit(self.fill, self.fill_args(tensor, 8.0)), None, None, None, None)
        self.assertTrue((array == 8.0).all())


tap.main()
