# test_collectives.py: do workers of one level exchange tensors as it is said, whoever they are?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np  # noqa: E402

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
OPERATIONS = ("sum", "prod", "min", "max")


def add_one(args):
    np.asarray(args[0])[...] += 1


def fail(args):
    raise ValueError("not today")


def wait_until_cancelled(args):
    np.asarray(args[0])[...] = 1
    while not args.is_cancelled():
        time.sleep(0.001)


def below(orch, args, config):
    """Of a worker of level 3: its own collective, of parts of its tensor."""
    x = args.get_tensor(0)
    n = x.get_shape()[0]
    halves = [x.view([n // 2], [i * (n // 2)]) for i in range(2)]
    orch.allreduce(halves)


def expect(arrays, operation):
    """The tree of the documentation."""
    parts = [array.copy() for array in arrays]
    combine = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[operation]
    distance = 1
    while distance < len(parts):
        for i in range(0, len(parts) - distance, 2 * distance):
            parts[i] = combine(parts[i], parts[i + distance])
        distance *= 2
    return parts[0]


def bits_of_bfloat(floats):
    """The nearest, the even one of two."""
    bits = floats.astype("f4").view("u4")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("u2")


def floats_of_bfloat(bits):
    return (bits.astype("u4") << 16).view("f4")


@unittest.skipUnless(np, "no NumPy")
class Collectives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = Pto.Worker(level=3, sub_workers=2)
        cls.add_one, cls.failing = cls.worker.register(add_one), cls.worker.register(fail)

    @classmethod
    def tearDownClass(cls):
        cls.worker.close()

    def fill(self, shape, dtype, n, seed=1):
        dice = np.random.default_rng(seed)
        arrays = [Pto.Buffer.array(shape, dtype) for _ in range(n)]
        for array in arrays:
            array[...] = dice.integers(0, 100, shape) if np.dtype(dtype).kind in "iu" else dice.standard_normal(shape)
        return arrays

    def test_operations_and_types(self):
        for dtype in DTYPES:
            for operation in OPERATIONS:
                for n in (1, 2, 3, 4, 7):
                    with self.subTest(dtype=dtype, operation=operation, n=n):
                        arrays = self.fill((5, 7), dtype, n)
                        with np.errstate(all="ignore"):
                            wanted = expect(arrays, operation)
                        self.worker.run(lambda orch, *all: orch.allreduce(all, operation), *arrays)
                        for array in arrays:
                            self.assertEqual(array.tobytes(), wanted.tobytes())

    def test_bfloat(self):
        buffers = [Pto.Buffer.new(2 * 40) for _ in range(3)]
        tensors = [Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.BFLOAT16, [40]) for buffer in buffers]
        bits = bits_of_bfloat(np.random.default_rng(3).standard_normal((3, 40)))
        views = [np.asarray(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.UINT16, [40])) for buffer in buffers]
        for view, values in zip(views, bits):
            view[:] = values
        self.worker.run(lambda orch: orch.allreduce(tensors))
        first = bits_of_bfloat(floats_of_bfloat(bits[0]) + floats_of_bfloat(bits[1]))
        wanted = bits_of_bfloat(floats_of_bfloat(first) + floats_of_bfloat(bits[2]))
        for view in views:
            self.assertEqual(view.tolist(), wanted.tolist())

    def test_large(self):
        """More than a chunk, and no multiple of one: the bits are those of the tree."""
        arrays = self.fill(100003, "f4", 5)
        wanted = expect(arrays, "sum")
        self.worker.run(lambda orch, *all: orch.allreduce(all), *arrays)
        self.assertEqual([array.tobytes() == wanted.tobytes() for array in arrays], [True] * 5)

    def test_broadcast(self):
        for root in 0, 2:
            arrays = self.fill((4, 3), "i4", 4, root)
            wanted = arrays[root].tolist()
            self.worker.run(lambda orch, *all: orch.broadcast(all, root), *arrays)
            self.assertEqual([array.tolist() for array in arrays], [wanted] * 4)

    def test_alltoall(self):
        for n in 1, 2, 3:
            given = self.fill((2 * n, 5), "i8", n)
            taken = self.fill((2 * n, 5), "i8", n, 2)
            self.worker.run(lambda orch: orch.alltoall(given, taken))
            for i in range(n):
                self.assertEqual(taken[i].tolist(), np.concatenate([array[2 * i:2 * i + 2] for array in given]).tolist())

    def test_views(self):
        whole = self.fill((6, 8), "f4", 1)[0]
        before = whole.copy()
        rows = whole[0:2], whole[4:6]
        self.worker.run(lambda orch: orch.allreduce(rows))
        self.assertEqual(whole[0:2].tobytes(), (before[0:2] + before[4:6]).tobytes())
        self.assertEqual(whole[4:6].tobytes(), whole[0:2].tobytes())
        self.assertEqual(whole[2:4].tobytes(), before[2:4].tobytes())

    def test_dependencies(self):
        """It waits for who has written, and who reads waits for it; memory of the runtime, too."""
        x = self.fill(8, "i4", 3)
        before = [array.copy() for array in x]
        out = self.fill(8, "i4", 2)

        def graph(orch):
            made = [orch.make_tensor(8, "i4") for _ in range(2)]
            for array in x:
                orch.submit_sub(self.add_one, [Pto.Tensor.of(array).update()])
            orch.allreduce(x)
            orch.barrier(x)
            orch.submit_sub(self.add_one, [Pto.Tensor.of(x[1]).update()])
            orch.broadcast([x[1], *made])
            orch.allreduce(made)
            for source, target in zip(made, out):
                orch.broadcast([source, target])

        self.worker.run(graph)
        total = sum(before) + 3
        self.assertEqual(x[0].tolist(), total.tolist())
        self.assertEqual(x[1].tolist(), (total + 1).tolist())
        for target in out:
            self.assertEqual(target.tolist(), (2 * (total + 1)).tolist())

    def test_captured(self):
        x = self.fill(8, "i4", 2)
        total = sum(x)
        graph = self.worker.capture(lambda orch, a, b: orch.allreduce([a, b]), *x)
        self.worker.run(graph, *x)
        self.assertEqual([array.tolist() for array in x], [total.tolist()] * 2)
        y = self.fill(8, "i4", 2, 9)
        total = sum(y)
        self.worker.run(graph, *y)
        self.assertEqual([array.tolist() for array in y], [total.tolist()] * 2)

    def test_trace(self):
        x = self.fill(8, "i4", 2)
        with Pto.Worker(level=3, sub_workers=1) as worker:
            worker.set_parameter("trace", "1")
            worker.run(lambda orch, *all: (orch.allreduce(all), orch.broadcast(all)), *x)
            trace = worker.ref_trace()
        self.assertEqual((trace.get_n_tasks(), trace.get_n_edges()), (2, 1))
        for name in "pto_allreduce", "pto_broadcast":
            self.assertIn(name, trace.summarize())

    def test_failure(self):
        """Of one who was to write one of them: nothing is combined, and who needs it is not run."""
        x = self.fill(8, "i4", 3)
        before = [array.copy() for array in x]

        def graph(orch):
            orch.submit_sub(self.failing, [Pto.Tensor.of(x[1]).update()])
            orch.allreduce(x)
            orch.submit_sub(self.add_one, [Pto.Tensor.of(x[2]).update()])

        with self.assertRaisesRegex(ValueError, "not today"):
            self.worker.run(graph)
        self.assertEqual([x[0].tolist(), x[2].tolist()], [before[0].tolist(), before[2].tolist()])
        self.worker.run(lambda orch: orch.allreduce(x))

    def test_cancelled(self):
        """What it waits for is asked to end, and nothing is combined."""
        x = self.fill(8, "i4", 2)
        before = [array.copy() for array in x]
        begun = Pto.Buffer.array(1, "i4")
        cancellable = Gio.Cancellable()

        def watch():
            while not begun[0]:
                time.sleep(0.001)
            cancellable.cancel()

        def graph(orch):
            orch.submit_sub(wait, [Pto.Tensor.of(begun).update(), Pto.Tensor.of(x[1]).update()])
            orch.allreduce(x)

        with Pto.Worker(level=3, sub_workers=1) as worker:
            wait = worker.register(wait_until_cancelled)
            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            with self.assertRaises(GLib.Error) as caught:
                worker.run(graph, cancellable=cancellable)
            self.assertIn("cancel", str(caught.exception).lower())
        self.assertEqual([array.tolist() for array in x], [array.tolist() for array in before])

    def test_refused(self):
        x = self.fill((6, 2), "i4", 3)
        other = self.fill((6, 3), "i4", 1)[0]
        bits = Pto.Tensor.new_for_buffer(Pto.Buffer.new(16), 0, Pto.Dtype.BOOL, [16])
        for call, said in ((lambda orch: orch.allreduce([]), "allreduce: there are no tensors"),
                           (lambda orch: orch.allreduce([x[0], other]), "tensor 1 has another shape or type than tensor 0"),
                           (lambda orch: orch.allreduce([x[0], x[1], x[0][0:6]]), "tensors 0 and 2 overlap"),
                           (lambda orch: orch.allreduce([x[0][:, 0:1], x[1][:, 0:1]]), "tensor 0 is not contiguous"),
                           (lambda orch: orch.allreduce([bits]), "no operation 0 for elements of bool"),
                           (lambda orch: orch.broadcast(x, 3), "root is 3, and there are 3 tensors"),
                           (lambda orch: orch.alltoall(x[:2], x[2:]), "2 tensors to read and 1 to write"),
                           (lambda orch: orch.alltoall(x[:2], x[1:]), "tensors 1 and 2 overlap"),
                           (lambda orch: orch.alltoall([x[0][0:5]] + [x[1][0:5]], [x[2][0:5]] + [self.fill((5, 2), "i4", 1)[0]]), "no multiple of the 2"),
                           (lambda orch: orch.barrier([]), "barrier: there are no tensors")):
            with self.subTest(said):
                with self.assertRaises(GLib.Error) as caught:
                    self.worker.run(call)
                self.assertIn(said, str(caught.exception))

    def test_no_sub_worker(self):
        x = self.fill(8, "i4", 2)
        with Pto.Worker(level=3, sub_workers=0) as worker:
            with self.assertRaises(GLib.Error) as caught:
                worker.run(lambda orch: orch.allreduce(x))
        self.assertIn("allreduce runs in a SUB worker, and L3/0 has none: give it one (n-sub-workers)", str(caught.exception))

    def test_chip(self):
        """A barrier is for every level; what runs in a SUB worker is not."""
        x = self.fill(8, "i4", 2)
        with Pto.Worker() as chip:
            chip.run(lambda orch, *all: orch.barrier(all), *x)
            self.assertEqual(chip.statistics.tasks, 1)
            with self.assertRaises(GLib.Error) as caught:
                chip.run(lambda orch, *all: orch.allreduce(all), *x)
        self.assertIn("allreduce is for tensors of workers, from level 3 up", str(caught.exception))

    def test_many(self):
        """As many as the documentation says, and no more; those that are too many, in two steps."""
        x = self.fill(2, "i4", 300)
        total = sum(x)

        def graph(orch):
            with self.assertRaises(GLib.Error) as caught:
                orch.allreduce(x[:256])
            self.assertIn('the arguments of "pto_allreduce" take', str(caught.exception))
            orch.allreduce(x[:255])
            orch.allreduce(x[254:])
            orch.broadcast([x[254], *x[:254]])

        self.worker.run(graph)
        self.assertEqual([array.tolist() for array in x], [total.tolist()] * 300)

    def test_tree(self):
        """Workers of workers, with collectives of their own, and over what they have written."""
        x = self.fill(8, "i4", 2)
        half = [array[:4] + array[4:] for array in x]
        total = np.tile(half[0] + half[1], 2)
        with Pto.Worker(level=4, sub_workers=1) as root:
            for _ in range(2):
                root.add_worker(Pto.Worker(level=3, sub_workers=1))
            handle = root.register(below)

            def graph(orch, *all):
                for i, tensor in enumerate(all):
                    orch.submit_next_level(handle, [tensor.update()], worker=i)
                orch.allreduce(all)

            root.run(graph, *x)
        self.assertEqual([array.tolist() for array in x], [total.tolist()] * 2)

    def test_remote(self):
        """The same of workers that share no memory."""
        import remote_collectives

        x = self.fill(8, "i4", 2)
        half = [array[:4] + array[4:] for array in x]
        total = np.tile(half[0] + half[1], 2)
        with Pto.Worker(level=4, sub_workers=1) as root:
            for _ in range(2):
                root.add_remote_worker("local:", sub_workers=1, roots=os.path.dirname(remote_collectives.__file__))
            handle = root.register(remote_collectives.below)

            def graph(orch, *all):
                for i, tensor in enumerate(all):
                    orch.submit_next_level(handle, [tensor.update()], worker=i)
                orch.allreduce(all)

            root.run(graph, *x)
        self.assertEqual([array.tolist() for array in x], [total.tolist()] * 2)


tap.main()
