# test_reductions.py: do functions reduce, wherever their chip is, and with whatever combines?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import shutil
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

# args: what it reduces into, what it takes in, how; the types of kernels are numbers of the header.
TAKE = """\
#include "tensor.h"
static void *data (int64_t arg)
{
  const TensorData *t = (const TensorData *) (uintptr_t) arg;

  return (char *) (uintptr_t) t->buffer.addr + t->start_offset * pto_dtype_size (t->dtype);
}
#define TAKE(TYPE) \\
  { \\
    TYPE *to = data (args[0]); \\
    const TYPE *from = data (args[1]); \\
    for (uint64_t i = 0; i < n; i++) \\
      to[i] = args[2] == 0 ? (TYPE) (to[i] + from[i]) : args[2] == 1 ? (TYPE) (to[i] * from[i]) \\
              : (args[2] == 2) == (from[i] < to[i]) ? from[i] : to[i]; \\
  }
void kernel_entry (int64_t *args)
{
  const TensorData *t = (const TensorData *) (uintptr_t) args[1];
  uint64_t n = t->shapes[0];

  pto_relax (args);
  if (t->dtype == PTO_DTYPE_FLOAT32)
    TAKE (float)
  else if (t->dtype == PTO_DTYPE_FLOAT64)
    TAKE (double)
  else if (t->dtype == PTO_DTYPE_INT32)
    TAKE (int32_t)
  else
    TAKE (uint8_t)
}
"""

# The larger absolute value of int32: to, from.
LARGER = """\
#include "tensor.h"
#include <stdlib.h>
void kernel_entry (int64_t *args)
{
  const TensorData *to = (const TensorData *) args[0], *from = (const TensorData *) args[1];
  int32_t *a = (int32_t *) (uintptr_t) to->buffer.addr + to->start_offset;
  const int32_t *b = (const int32_t *) (uintptr_t) from->buffer.addr + from->start_offset;

  for (uint64_t i = 0; i < to->shapes[0]; i++)
    if (abs (b[i]) > abs (a[i]))
      a[i] = b[i];
}
"""

BACKENDS = "par", "det", "threads"
HOWS = "sum", "prod", "min", "max"


@unittest.skipIf(np is None, "no NumPy")
class Reductions(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pto-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        for name, text in ("take.c", TAKE), ("larger.c", LARGER):
            with open(self.path(name), "w") as file:
                file.write(text)

    def path(self, name):
        return os.path.join(self.dir, name)

    def everywhere(self, test):
        for isolate in False, True:
            for backend in BACKENDS:
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", "1")
                    test(worker)

    def test_operators(self):
        take = Pto.Callable.kernel(self.path("take.c"))
        ufuncs = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
        def test(worker):
            for dtype in "f4", "f8", "i4", "u1":
                rng = np.random.default_rng(7)
                given = rng.integers(1, 3, (60, 33)).astype(dtype)
                totals = {how: np.full(33, 2, dtype) for how in HOWS}

                def graph(orch, given, *outs):
                    for i in range(60):
                        for h, how in enumerate(HOWS):
                            row = given.view([1, 33], [i, 0]).reshape([33])
                            orch.submit(take, outs[h].reduce(how), row.read(), h)

                worker.run(graph, given, *totals.values())
                for how in HOWS:
                    expected = ufuncs[how].reduce(given, axis=0, dtype=dtype, initial=np.dtype(dtype).type(2))
                    self.assertEqual(totals[how].tolist(), expected.tolist(), (how, dtype))

        self.everywhere(test)

    def test_kernel(self):
        """With what the program has; a tensor of the runtime, a scope, an element that is read back; names stay right."""
        take = Pto.Callable.kernel(self.path("take.c"))
        larger = Pto.Callable.kernel(self.path("larger.c"), args=2)
        def test(worker):
            given = (np.arange(50 * 8, dtype="i4").reshape(50, 8) * 37) % 101 - 50
            x, ids = np.zeros(8, "i4"), []

            def graph(orch, given, x):
                def row(i):
                    return given.view([1, 8], [i, 0]).reshape([8]).read()
                for i in range(50):
                    ids.append(orch.submit(larger, x.reduce(larger, 0), row(i), after=ids[-1:]))
                ids.append(orch.submit(take, x.update(), row(0), 0))
                made = orch.make_tensor(8, "i4")
                orch.submit_order(made.write())
                for i in range(8):
                    orch.set_element(made, i, value=1)
                with orch.scope():
                    for i in range(9):
                        ids.append(orch.submit(take, made.reduce(Pto.Reduction.SUM), row(1), 0))
                ids.append(orch.submit(take, made.update(), row(2), 0, after=ids))
                self.assertEqual(orch.get_element(made, 3), 1 + 9 * given_array[1, 3] + given_array[2, 3])

            given_array = given
            worker.run(graph, given, x)
            largest = np.take_along_axis(given, np.abs(given).argmax(axis=0)[None], 0)[0]
            self.assertEqual(np.abs(x - given[0]).tolist(), np.abs(largest).tolist())
            names = {task.id: task.name for task in worker.trace.list_tasks()}
            self.assertEqual([names[id] for id in ids], ["larger"] * 50 + ["take"] * 11)
            self.assertEqual({"fill", "larger", "take", "sum"} - set(names.values()), set())

        self.everywhere(test)

    def test_other_kinds(self):
        """Blocks, groups and mixed tasks reduce as one task each."""
        take = Pto.Callable.kernel(self.path("take.c"))
        cube = Pto.Callable.kernel(self.path("take.c"), core="aic")
        def test(worker):
            x, two = np.zeros(4, "f8"), np.full(4, 2, "f8")

            def graph(orch, x, two):
                for i in range(12):
                    orch.submit(take, x.reduce("max"), two.read(), 3, block_dim=5)
                    orch.submit_group([take, cube], x.reduce("max"), two.read(), 3)
                    orch.submit_mixed(cube, take, None, x.reduce("max"), two.read(), 3)

            worker.run(graph, x, two)
            self.assertEqual(x.tolist(), [2] * 4)

        self.everywhere(test)

    def test_capture(self):
        """A graph keeps what is updated in any order, what is reduced, with either kind of kernel, and clusters."""
        take, larger = Pto.Callable.kernel(self.path("take.c")), Pto.Callable.kernel(self.path("larger.c"))

        def graph(orch, given, x, y):
            for i in range(50):
                orch.submit(take, x.commute(), given.read(), 0)
                orch.submit(take, x.reduce("sum") if i % 10 else y.commute(), given.read(), 0)
                orch.submit(larger, y.reduce(larger, 0), given.read())
            cluster = orch.allocate_cluster()
            orch.submit(take, x.update(), given.read(), 0, cluster=cluster)
            orch.free_cluster(cluster)
            orch.submit(larger, x.update(), x.read(), block_dim=2, when=(x, 3))

        def test(worker):
            captured = worker.capture(graph, *(np.zeros(8, "i4") for _ in range(3)))
            for n in range(3):
                given, x, y = np.arange(8, dtype="i4") + n, np.zeros(8, "i4"), np.zeros(8, "i4")
                worker.run(captured, given, x, y)
                plain = np.zeros(8, "i4"), np.zeros(8, "i4")
                worker.run(graph, given, *plain)
                self.assertEqual(x.tolist(), (96 * given).tolist())
                self.assertEqual((x.tolist(), y.tolist()), (plain[0].tolist(), plain[1].tolist()))
            worker.run(captured, given, x, y)
            self.assertEqual(len(list(worker.trace.list_tasks())), captured.n_tasks)

        self.everywhere(test)

    def test_refused(self):
        take = Pto.Callable.kernel(self.path("take.c"))
        three = Pto.Callable.kernel(self.path("take.c"), args=3)
        signed = Pto.Callable.kernel(self.path("larger.c"))
        signed.set_signature([Pto.Direction.INPUT, Pto.Direction.INPUT])
        gone = Pto.Callable.kernel(self.path("larger.c"))
        for isolate in False, True:
            with self.subTest(isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                def graph(orch, x, bools, frozen):
                    for how, words in (
                            ((bools.reduce("sum"),), 'kernel "take": argument 0: the chip has no sum of bool elements'),
                            ((1, x.reduce(three, 0)), 'kernel "take": argument 1 is combined by two tensors.*takes 3 arguments'),
                            ((x.reduce(signed, 0),), 'argument 0 is combined by two tensors.*argument 0 is an input, but an inout is given'),
                            ((x.reduce(gone, 0.5),), "argument 0 is reduced, and what its copies begin with is .*no number of the type int32"),
                            ((x.reduce(gone, "0"),), "what its copies begin with is .*no number of the type int32"),
                            ((frozen.reduce("sum"),), "argument 0 is a reduction, but its memory can only be read"),
                            (((x, Pto.Direction.REDUCTION),), "argument 0 is reduced, but nothing says how")):
                        with self.assertRaisesRegex(GLib.Error, words):
                            orch.submit(take, *how)
                    with self.assertRaisesRegex(GLib.Error, "a task that only orders has nothing to reduce"):
                        orch.submit_order(x.reduce("sum"))
                    with self.assertRaisesRegex(ValueError, "'plus' is nothing that tensors are reduced by"):
                        orch.submit(take, x.reduce("plus"))
                    for how in ("sum", 7), (Pto.Reduction.SUM, 0):
                        with self.assertRaisesRegex(TypeError, f"reduced by sum begins with what changes nothing: {how[1]}, which"):
                            orch.submit(take, x.reduce(*how))
                    with self.assertRaisesRegex(ValueError, "None is nothing that tensors are reduced by"):
                        orch.submit(take, x.reduce(None))
                    with self.assertRaisesRegex(TypeError, "None is no number"):
                        orch.submit(take, x.reduce(gone, initial=None))
                    with self.assertRaisesRegex(TypeError, "None is no number"):
                        orch.fill(x, None)
                    with self.assertRaisesRegex(OverflowError, "does not fit in 64 bits"):
                        orch.submit(take, x.reduce(gone, 2**64))

                frozen = np.zeros(4, "i4")
                frozen.flags.writeable = False
                worker.run(graph, np.zeros(4, "i4"), np.zeros(4, "?"), frozen)

    def test_elsewhere(self):
        x = Pto.Buffer.array(4, "i4")
        with Pto.Worker(level=3, sub_workers=1) as worker:
            def orchestrate(orch, x):
                with self.assertRaisesRegex(GLib.Error, "argument 0 is reduced, which kernels of a chip do: reduce in the"):
                    orch.submit_sub(handle, [x.reduce("sum")])
            handle = worker.register(lambda args: None)
            worker.run(orchestrate, x)

    def test_by_hand(self):
        """What is added by hand reduces, too."""
        take = Pto.Callable.kernel(self.path("take.c"))
        def test(worker):
            graph = Pto.Graph.new()
            given, total = graph.add_argument(4, "i4"), graph.add_argument(4, "i4")
            for _ in range(20):
                graph.add_task(take, total.reduce("sum"), given.read(), 0)
            x, y = np.arange(4, dtype="i4"), np.full(4, 7, "i4")
            worker.run(graph, x, y)
            self.assertEqual(y.tolist(), [7 + 20 * i for i in range(4)])

        self.everywhere(test)


if __name__ == "__main__":
    tap.main()
