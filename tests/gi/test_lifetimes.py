# test_lifetimes.py: does memory of the runtime stay, and order tasks, however it is named, at each level?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import itertools
import os
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

N = 1000

# A task that does not wait for it reads something else.
SLOW = """\
#include "tensor.h"
#include <unistd.h>
void kernel_entry (int64_t *args)
{
  const TensorData *t = (const TensorData *) args[0];
  float *x = (float *) (uintptr_t) t->buffer.addr + t->start_offset;

  usleep (20000);
  for (uint64_t i = 0; i < t->shapes[0]; i++)
    x[i] = args[1];
}
"""

# args[0] is the argument 2 when the program has opened the gate.
GATE = """\
#include "tensor.h"
#include "pto_block.h"
void kernel_entry (int64_t *args)
{
  const TensorData *t = (const TensorData *) args[0], *gate = (const TensorData *) args[1];

  while (__atomic_load_n ((int *) (uintptr_t) gate->buffer.addr, __ATOMIC_ACQUIRE) == 0)
    pto_relax (args);
  for (uint64_t i = 0; i < t->shapes[0]; i++)
    ((float *) (uintptr_t) t->buffer.addr)[i] = args[2];
}
"""

COPY = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *from = (const TensorData *) args[0], *to = (const TensorData *) args[1];

  ((float *) (uintptr_t) to->buffer.addr)[to->start_offset] = ((float *) (uintptr_t) from->buffer.addr)[from->start_offset];
}
"""

CHIPS = list(itertools.product((False, True), ("par", "det", "threads"), ("none", "access")))


def slow(args):
    time.sleep(0.05)
    args[0][:] = args[1]


def copy(args):
    args[1][0] = args[0][0]


def name_by_address(tensor, begin, n):
    return Pto.Tensor.new_external(tensor.get_address() + 4 * begin, Pto.Dtype.FLOAT32, [n])


@unittest.skipIf(np is None, "no numpy")
class Lifetimes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        for name, text in ("slow", SLOW), ("copy", COPY), ("gate", GATE):
            path = os.path.join(cls.directory.name, name + ".c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            setattr(cls, name, Pto.Callable.kernel(path, "aiv"))

    def on_chips(self):
        for isolate, backend, check in CHIPS:
            if isolate and check != "none":
                continue
            with self.subTest(isolate=isolate, backend=backend, check=check), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                worker.set_parameter("backend", backend)
                worker.set_parameter("check", check)
                yield worker

    def test_output_deeper_on_a_chip(self):
        """Made before the scopes, output in them, read behind them; names of tasks are right all the same."""
        def graph(orch, y):
            kept = [orch.tensor(N) for _ in range(6)]
            for k, tensor in enumerate(kept):
                with contextlib.ExitStack() as scopes:
                    for _ in range(k):
                        scopes.enter_context(orch.scope())
                    task = orch.submit(self.slow, tensor.write(), k + 1)
                    orch.submit(self.copy, tensor.no_dep(), y[k:k + 1].write_existing(), after=task)
            for k, tensor in enumerate(kept):
                orch.submit(self.copy, tensor.read(), y[6 + k:7 + k].write_existing())

        for worker in self.on_chips():
            y = np.zeros(12, "f4")
            worker.run(graph, y)
            self.assertEqual(y.tolist(), [1, 2, 3, 4, 5, 6] * 2)
            captured = worker.capture(graph, y)
            for _ in range(2):
                y[:] = 0
                worker.run(captured, y)
                self.assertEqual(y.tolist(), [1, 2, 3, 4, 5, 6] * 2)

    def test_given_back_before_it_is_used(self):
        """Device memory that a run gives back while its tasks use it is theirs until the run has ended, and the program's no more."""
        for worker in self.on_chips():
            worker.start()
            gate, y = Pto.Buffer.array(1, "i4"), np.zeros(2, "f4")
            given = []

            def graph(orch, closed, y):
                gate[0] = 0
                address = worker.malloc(4 * N)
                given.append(address)
                made = Pto.Tensor.new_external(address, Pto.Dtype.FLOAT32, [N])
                orch.submit(self.gate, made.write_existing(), closed.no_dep(), 7)
                orch.submit(self.copy, made.read(), y[0:1].write_existing())
                orch.submit(self.copy, name_by_address(made, N - 1, 1).read(), y[1:2].write_existing())
                self.assertTrue(worker.free(address))
                with self.assertRaisesRegex(GLib.Error, "is not the address of a device buffer"):
                    worker.free(address)
                with self.assertRaisesRegex(GLib.Error, "lies in no device buffer"):
                    worker.copy_from(address, 4)
                again = worker.malloc(4 * N)
                given.append(again)
                self.assertNotEqual(again, address)
                worker.copy_to(again, GLib.Bytes.new(bytes(4 * N)))
                gate[0] = 1

            for _ in range(3):
                y[:] = 0
                worker.run(graph, gate, y)
                self.assertEqual(y.tolist(), [7, 7])
                self.assertEqual(worker.copy_from(given[-1], 4 * N).get_data(), bytes(4 * N))
                self.assertTrue(worker.free(given[-1]))
                for address in given:
                    with self.assertRaisesRegex(GLib.Error, "is not the address of a device buffer"):
                        worker.free(address)
                given.clear()

    def test_given_back_before_the_run(self):
        """A task that is given such device memory is named, and does not run; by its own submit and in a graph. Newer memory lies elsewhere."""
        def graph(orch, made, y):
            orch.submit(self.copy, made[N - 1:N].read(), y.write_existing())

        def at(address):
            return Pto.Tensor.new_external(address, Pto.Dtype.FLOAT32, [N])

        # A large one keeps its addresses alone.
        for worker in self.on_chips():
            worker.start()
            for size in 4 * N, 24 << 20:
                self.use_what_was_freed(worker, graph, at, size)

    def use_what_was_freed(self, worker, graph, at, size):
        y, address = np.zeros(1, "f4"), worker.malloc(size)
        worker.copy_to(address, GLib.Bytes.new(np.full(N, 3, "f4").tobytes()))
        captured = worker.capture(graph, at(address), y)
        for run in graph, captured:
            worker.run(run, at(address), y)
            self.assertEqual(y.tolist(), [3])
        self.assertTrue(worker.free(address))
        y[:] = 0
        for run in graph, captured:
            with self.assertRaisesRegex(GLib.Error, rf"^task 0 of ring 0 \(copy\) on core .*: the buffer of {size} bytes of argument 0 .* was freed before the task had run") as caught:
                worker.run(run, at(address), y)
            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.INVALID_ARGS))
            self.assertEqual(y.tolist(), [0])
        again = worker.malloc(size)
        self.assertNotEqual(again, address)
        worker.run(graph, at(again), y)
        self.assertTrue(worker.free(again))

    def test_past_what_was_given_back(self):
        """Its guard is looked at all the same."""
        for worker in self.on_chips():
            worker.start()

            def graph(orch):
                address = worker.malloc(4 * N)
                orch.submit(self.slow, Pto.Tensor.new_external(address, Pto.Dtype.FLOAT32, [N + 1]).no_dep(), 7)
                worker.free(address)

            with self.assertRaisesRegex(GLib.Error, r"task 0 of ring 0 \(slow\).* wrote at least 4 bytes past the buffer of 4000 bytes"):
                worker.run(graph)

    def test_steps_on_a_chip(self):
        """Two tensors take turns; what each step needs besides goes with its scope."""
        def graph(orch, y):
            old, new = orch.tensor(N), orch.tensor(N)
            orch.submit(self.slow, old.write(), 7)
            for _ in range(40):
                with orch.scope():
                    between = orch.tensor(N)
                    orch.submit(self.copy, old.read(), between.write())
                    orch.submit(self.copy, between.read(), new.write())
                old, new = new, old
            orch.submit(self.copy, old.read(), y.write_existing())

        for worker in self.on_chips():
            y = np.zeros(1, "f4")
            worker.set_parameter("task-window", "16")
            worker.run(graph, y)
            self.assertEqual(y[0], 7)

    def test_address_on_a_chip(self):
        def graph(orch, y):
            made = orch.alloc(N)
            orch.submit(self.slow, made.update(), 7)
            for k, (begin, n) in enumerate(((0, N), (0, 10), (500, 500), (N - 1, 1))):
                orch.submit(self.copy, name_by_address(made, begin, n).read(), y[k:k + 1].write_existing())
            orch.submit(self.slow, name_by_address(made, 500, 500).update(), 8)
            for k, begin in enumerate((0, 500)):
                orch.submit(self.copy, made.view([1], [begin]).read(), y[4 + k:5 + k].write_existing())

        for worker in self.on_chips():
            y = np.zeros(6, "f4")
            worker.run(graph, y)
            self.assertEqual(y.tolist(), [7, 7, 7, 7, 7, 8])

    def test_address_refused(self):
        def beyond(orch):
            made = orch.alloc(N)
            orch.submit(self.slow, name_by_address(made, 500, N).write_existing(), 7)

        def gone(orch):
            with orch.scope():
                named = name_by_address(orch.alloc(N), 0, N)
            orch.submit(self.slow, named.write_existing(), 7)

        for graph, says in (beyond, "reaches beyond the tensor"), (gone, "memory of the runtime that no tensor has"):
            for worker in self.on_chips():
                with self.assertRaisesRegex(GLib.Error, says):
                    worker.run(graph)

    def on_levels(self):
        with Pto.Worker(level=3, sub_workers=4) as worker:
            handles = [worker.register(function) for function in (slow, copy)]
            yield worker, handles, lambda orch, handle, args: orch.submit_sub(handle, args)
        # One for each function, so that they can run at one time.
        with Pto.Worker(level=4, sub_workers=0) as worker:
            below = [Pto.Worker(level=3, sub_workers=1) for _ in range(2)]
            inner = [three.register(function) for three, function in zip(below, (slow, copy))]
            handles = [worker.register(lambda orch, args, config, handle=handle: orch.submit_sub(handle, args)) for handle in inner]
            for three in below:
                worker.add_worker(three)
            yield worker, handles, lambda orch, handle, args: orch.submit_next_level(handle, args, worker=handles.index(handle))

    def test_levels(self):
        def graph(orch, y):
            made, kept = orch.alloc(N), orch.tensor(N)
            submit(orch, handles[0], [made.update(), 7])
            for k, (begin, n) in enumerate(((0, N), (500, 500))):
                submit(orch, handles[1], [name_by_address(made, begin, n).read(), y[k:k + 1].write_existing()])
            with orch.scope():
                with orch.scope():
                    submit(orch, handles[0], [kept.write(), 9])
            for _ in range(4):
                with orch.scope():
                    submit(orch, handles[0], [orch.tensor(N).write(), 3])
            submit(orch, handles[1], [kept.read(), y[2:3].write_existing()])

        def gone(orch):
            with orch.scope():
                named = name_by_address(orch.alloc(N), 0, N)
            submit(orch, handles[0], [named.update(), 7])

        for worker, handles, submit in self.on_levels():
            with self.subTest(level=worker.level):
                y = Pto.Buffer.array(3)
                worker.start()
                worker.run(graph, y)
                self.assertEqual(list(y), [7, 7, 9])
                with self.assertRaisesRegex(GLib.Error, "memory of the runtime that no tensor has"):
                    worker.run(gone)


if __name__ == "__main__":
    tap.main()
