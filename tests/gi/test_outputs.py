# test_outputs.py: does each switch of a configuration write what it says, at every level?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import shutil
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from sources_helper import one_task  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

# args: read, written, what is added; strides count.
ADD = """\
#include "tensor.h"
#define AT(t, TYPE, r, c) ((TYPE *) (uintptr_t) (t)->buffer.addr)[(t)->start_offset + (r) * (t)->strides[0] + (c) * (t)->strides[1]]
void kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (uintptr_t) args[0], *y = (const TensorData *) (uintptr_t) args[1];

  for (uint64_t r = 0; r < x->shapes[0]; r++)
    for (uint64_t c = 0; c < x->shapes[1]; c++)
      if (x->dtype == PTO_DTYPE_FLOAT32)
        AT (y, float, r, c) = AT (x, float, r, c) + (float) args[2];
      else
        AT (y, int16_t, r, c) = (int16_t) (AT (x, int16_t, r, c) + args[2]);
  args[0] = args[1] = 0;
}
"""

# Updates args[0], in whichever order.
BUMP = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (uintptr_t) args[0];

  for (uint64_t i = 0; i < x->shapes[0]; i++)
    ((float *) (uintptr_t) x->buffer.addr)[x->start_offset + i] += (float) args[1];
}
"""

# Its block of args[1] is args[0] + 1.
PART = """\
#include "tensor.h"
#include "pto_block.h"
void kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (uintptr_t) args[0], *y = (const TensorData *) (uintptr_t) args[1];
  uint64_t n = x->shapes[0] / get_block_num (args), first = n * get_block_idx (args);

  for (uint64_t i = first; i < first + n; i++)
    ((float *) (uintptr_t) y->buffer.addr)[i] = ((float *) (uintptr_t) x->buffer.addr)[i] + 1;
}
"""

CRASH = "#include <stdint.h>\nvoid kernel_entry (int64_t *args) { *(volatile int *) (intptr_t) (args[0] & 8) = 1; }\n"


@unittest.skipIf(np is None, "no NumPy")
class Outputs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pto-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.n_prefixes = 0
        for name, text in ("add", ADD), ("bump", BUMP), ("part", PART), ("crash", CRASH), ("chip", one_task(4)):
            with open(os.path.join(self.dir, name + ".c"), "w", encoding="utf-8") as file:
                file.write(text)
            setattr(self, name, os.path.join(self.dir, name + ".c"))
        for name in "add", "bump", "part", "crash":
            setattr(self, name, Pto.Callable.kernel(getattr(self, name)))

    def prefix(self):
        self.n_prefixes += 1
        return os.path.join(self.dir, f"out{self.n_prefixes}-")

    def everywhere(self, test):
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    test(worker)

    def read(self, prefix, name="dump.json"):
        with open(prefix + name, encoding="utf-8") as file:
            return json.load(file)

    def dumped(self, prefix):
        """(kernel, position, argument, when) -> the array; every file is listed, and nothing else is."""
        listed = self.read(prefix)["tensors"]
        directory, base = os.path.split(prefix)
        files = sorted(name for name in os.listdir(directory) if name.startswith(base) and name.endswith(".npy"))
        self.assertEqual(sorted(tensor["file"] for tensor in listed), files)
        found = {}
        for tensor in listed:
            self.assertEqual(tensor["task"], str(tensor["ring"] << 32 | tensor["position"]))
            array = np.load(os.path.join(directory, tensor["file"]))
            self.assertEqual(list(array.shape), tensor["shape"])
            self.assertEqual(str(array.dtype), tensor["dtype"])
            found[tensor["kernel"], tensor["position"], tensor["argument"], tensor["when"]] = array
        return found

    def test_dump(self):
        """What each task read and wrote, though its memory is used again, and its kernel spoils its arguments."""
        def test(worker):
            prefix = self.prefix()
            x, y = np.arange(12, dtype="f4").reshape(3, 4), np.zeros((3, 4), "f4")
            small = np.arange(6, dtype="i2").reshape(2, 3)

            def graph(orch, x, y, small):
                made = orch.make_tensor([3, 4], "f4")
                orch.submit(self.add, x.read(), made.write(), 1)
                orch.submit(self.add, made.view([3, 2], [0, 1]).read(), y.view([3, 2], [0, 1]).write(), 10)
                orch.submit(self.add, made.read(), made.update(), 100)
                orch.submit(self.add, small.read(), small.update(), -9)

            worker.run(graph, x, y, small, config=Pto.CallConfig(enable_dump_tensor=1, output_prefix=prefix))
            given = np.arange(12, dtype="f4").reshape(3, 4)
            expected = {(0, 0, "before"): given, (0, 1, "after"): given + 1,
                        (1, 0, "before"): given[:, 1:3] + 1, (1, 1, "after"): given[:, 1:3] + 11,
                        (2, 0, "before"): given + 1, (2, 1, "before"): given + 1, (2, 1, "after"): given + 101,
                        (3, 0, "before"): np.arange(6, dtype="i2").reshape(2, 3),
                        (3, 1, "before"): np.arange(6, dtype="i2").reshape(2, 3),
                        (3, 1, "after"): np.arange(6, dtype="i2").reshape(2, 3) - 9}
            found = self.dumped(prefix)
            self.assertEqual(set(found), {("add", *key) for key in expected})
            for key, array in expected.items():
                self.assertEqual(found["add", *key].tolist(), array.tolist(), key)
            listed = self.read(prefix)["tensors"]
            self.assertEqual([tensor["position"] for tensor in listed], [0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
            self.assertEqual({tensor["tag"] for tensor in listed}, {"INPUT", "OUTPUT", "INOUT"})

        self.everywhere(test)

    def test_parts(self):
        """Blocks, members and those that update in any order are one task each, before its first part and after its last."""
        def test(worker):
            prefix = self.prefix()
            x, y, total = np.arange(64, dtype="f4"), np.zeros(64, "f4"), np.zeros(64, "f4")

            def graph(orch, x, y, total):
                for _ in range(3):
                    orch.submit(self.part, x.read(), y.update(), block_dim=8)
                    orch.submit(self.part, y.read(), x.update(), block_dim=16)
                for i in range(10):
                    orch.submit(self.bump, total.commute(), i + 1)
                orch.submit_group([self.add, self.add], x.reshape([8, 8]).read(),
                                  y.reshape([8, 8]).write(), 5)

            worker.run(graph, x, y, total, config=Pto.CallConfig(enable_dump_tensor=1, output_prefix=prefix))
            found = self.dumped(prefix)
            given = np.arange(64, dtype="f4")
            for i in range(6):
                self.assertEqual(found["part", i, 0, "before"].tolist(), (given + i).tolist())
                self.assertEqual(found["part", i, 1, "after"].tolist(), (given + i + 1).tolist())
                self.assertEqual(found["part", i, 1, "before"].tolist(), (given + i - 1 if i else 0 * given).tolist())
            starts = []
            for i in range(10):
                before, after = found["bump", 6 + i, 0, "before"], found["bump", 6 + i, 0, "after"]
                self.assertEqual((after - before).tolist(), [i + 1] * 64)
                starts.append((before[0], after[0]))
            # Whatever the order, one begins with what another one left.
            starts.sort()
            self.assertEqual([before for before, _ in starts], [0] + [after for _, after in starts[:-1]])
            self.assertEqual(found["add", 16, 1, "after"].ravel().tolist(), (given + 11).tolist())

        self.everywhere(test)

    def test_filter(self):
        x, y = np.ones((2, 2), "f4"), np.zeros((2, 2), "f4")

        def graph(orch, x, y):
            orch.submit(self.add, x.read(), y.write(), 1)
            orch.submit(self.bump, y.reshape([4]).update(), 2)
            orch.submit(self.add, y.read(), x.write(), 3)

        with Pto.Worker() as worker:
            def files(**choices):
                prefix = self.prefix()
                worker.run(graph, x, y, config=Pto.CallConfig(output_prefix=prefix, **choices))
                return {key[1:] for key in self.dumped(prefix)}
            self.assertEqual(files(enable_dump_tensor=1, dump_filter="add.1"), {(0, 1, "after"), (2, 1, "after")})
            self.assertEqual(files(enable_dump_tensor=2), {(0, 0, "before"), (1, 0, "before"), (2, 0, "before")})
            self.assertEqual(files(enable_dump_tensor=3), {(0, 1, "after"), (1, 0, "after"), (2, 1, "after")})
            self.assertEqual(files(enable_dump_tensor=1, dump_filter="b*, 0:2.1"),
                             {(1, 0, "before"), (1, 0, "after"), (2, 1, "after")})
            self.assertEqual(files(enable_dump_tensor=1, dump_filter="2.0"), {(2, 0, "before")})

    def test_strides(self):
        """Whatever the strides, what is written is what a view shows: many rows, three dimensions, one element each."""
        prefix = self.prefix()
        x = np.arange(200 * 7 * 5, dtype="f4").reshape(200, 7, 5)

        def graph(orch, x):
            for view in x.view([200, 2, 3], [0, 5, 1]), x.view([150, 7, 1], [50, 0, 4]), x.view([1, 1, 1], [199, 6, 4]):
                orch.submit_order(view.read())
                orch.submit(self.nothing, view.read())

        with open(os.path.join(self.dir, "nothing.c"), "w", encoding="utf-8") as file:
            file.write("#include <stdint.h>\nvoid kernel_entry (int64_t *args) {}\n")
        self.nothing = Pto.Callable.kernel(os.path.join(self.dir, "nothing.c"))
        with Pto.Worker() as worker:
            worker.run(graph, x, config=Pto.CallConfig(enable_dump_tensor=1, output_prefix=prefix))
        found = [array for _, array in sorted(self.dumped(prefix).items())]
        expected = [x[:, 5:7, 1:4], x[50:, :, 4:5], x[199:, 6:7, 4:5]]
        self.assertEqual([array.tolist() for array in found], [array.tolist() for array in expected])

    def test_failure(self):
        """What a kernel was given is there when it has crashed."""
        def test(worker):
            prefix = self.prefix()
            x = np.arange(4, dtype="f4")

            def graph(orch, x):
                orch.submit(self.bump, x.update(), 1)
                orch.submit(self.crash, x.update())
                orch.submit(self.bump, x.update(), 1)

            with self.assertRaises(GLib.Error):
                worker.run(graph, x, config=Pto.CallConfig(enable_dump_tensor=1, output_prefix=prefix))
            found = self.dumped(prefix)
            self.assertEqual(found["crash", 1, 0, "before"].tolist(), [1, 2, 3, 4])
            self.assertNotIn(("bump", 2, 0, "before"), found)

        self.everywhere(test)

    def test_refused(self):
        x = np.zeros((1, 1), "f4")

        def graph(orch, x):
            orch.submit(self.add, x.read(), x.update(), 1)

        def refused(words, **choices):
            with Pto.Worker() as worker, self.assertRaisesRegex(GLib.Error, words):
                worker.run(graph, x, config=Pto.CallConfig(**choices))
        refused("enable_dump_tensor = 1 writes files: give an output_prefix", enable_dump_tensor=1)
        refused(r"enable_dump_tensor is 4: it must be 0 \(off\), 1 \(before and after\)", enable_dump_tensor=4)
        refused("enable_pmu is -1: it must be", enable_pmu=-1)
        refused("enable_dep_gen is 2: it must be", enable_dep_gen=2)
        refused("enable_scope_stats is 9: it must be", enable_scope_stats=9)
        refused(r'dump_filter: "\.3" is no task: name a kernel', dump_filter=".3")
        refused("at most 1022 are allowed together", output_prefix="x" * 600, dump_filter="y" * 600)
        refused("tensor dump: .*out1-no/where/dump-0-0-add-arg0-before.npy: No such file or directory",
                enable_dump_tensor=1, output_prefix=self.prefix() + "no/where/")
        refused("No such file or directory", enable_pmu=1, output_prefix=self.prefix() + "no/where/")

    def test_answers(self):
        """Counters, dependencies and scopes are the trace's own answers; counters of a core are all of the run."""
        def test(worker):
            prefix = self.prefix()
            x, y = np.ones((4, 4), "f4"), np.zeros((4, 4), "f4")

            def graph(orch, x, y):
                for _ in range(5):
                    with orch.scope():
                        made = orch.make_tensor([4, 4], "f4")
                        orch.submit(self.add, x.read(), made.write(), 1)
                        orch.submit(self.add, made.read(), y.write(), 1)

            worker.run(graph, x, y, config=Pto.CallConfig(enable_pmu=1, enable_dep_gen=1, enable_scope_stats=1,
                                                          output_prefix=prefix))
            trace = worker.trace
            for name, topic in ("pmu", Pto.TraceTopic.COUNTERS), ("deps", Pto.TraceTopic.DEPS), ("scopes", Pto.TraceTopic.SCOPES):
                self.assertEqual(self.read(prefix, name + ".json"), json.loads(trace.describe_json(topic)))
            with open(prefix + "deps.dot", encoding="utf-8") as file:
                self.assertEqual(file.read(), trace.describe(Pto.TraceTopic.DEPS))
            counters = self.read(prefix, "pmu.json")
            self.assertEqual(len(counters["tasks"]), 10)
            for core in counters["cores"]:
                parts = [core[name + "_ns"] for name in ("busy", "stall", "scheduler", "data", "submitter", "nothing")]
                self.assertEqual(sum(parts), counters["elapsed_ns"], core)
            for name in "runs", "busy_ns", "stall_ns", "bytes_in", "bytes_out":
                self.assertEqual(sum(core[name] for core in counters["cores"]), sum(task[name] for task in counters["tasks"]))
            self.assertEqual([task["bytes_in"] for task in counters["tasks"]], [64] * 10)
            # Both scopes are open at most once at a time, and hold two tasks.
            self.assertEqual([(scope["n"], scope["submits"]) for scope in self.read(prefix, "scopes.json")["scopes"]][1:], [(5, 10)])
            self.assertEqual(sorted(os.listdir(self.dir)), sorted(set(os.listdir(self.dir))))

        self.everywhere(test)

    def test_same_prefix(self):
        """A later run of the process does not write over an earlier one."""
        prefix = self.prefix()
        x = np.zeros((1, 1), "f4")

        def graph(orch, x):
            orch.submit(self.add, x.read(), x.update(), 1)
        for _ in range(3):
            with Pto.Worker() as worker:
                worker.run(graph, x, config=Pto.CallConfig(enable_dump_tensor=3, dump_filter="add.1", enable_pmu=3,
                                                           output_prefix=prefix))
        for i, name in enumerate(("", "run1-", "run2-")):
            self.assertEqual([array.tolist() for key, array in self.dumped(prefix + name).items()], [[[i + 1]]]) \
                if name else self.assertEqual(np.load(prefix + "dump-0-0-add-arg1-after.npy").tolist(), [[1]])
            self.assertEqual(set(self.read(prefix + name, "pmu.json")["tasks"][0]),
                             {"task", "kernel", "core", "runs", "bytes_in", "bytes_out"})

    def test_levels(self):
        """Of a level its own tasks; of a task what the chip, or the worker below, does in it."""
        prefix, own = self.prefix(), self.prefix()
        x, y = Pto.Buffer.array((2, 2), "f4"), Pto.Buffer.array((2, 2), "f4")
        program = Pto.ChipOrchestration.new(self.chip, None)
        program.add_kernel(0, "add", self.add)

        def double(args):
            np.asarray(args[0])[:] *= 2

        with Pto.Worker(level=3, device_ids=[0, 1], sub_workers=1) as worker:
            chip, sub = worker.register(program), worker.register(double)

            def orchestrate(orch, x, y):
                config = Pto.CallConfig(enable_dump_tensor=1, enable_pmu=1, enable_dep_gen=1, enable_scope_stats=1,
                                        output_prefix=own)
                orch.submit_next_level(chip, [x.read(), y.write()], config, worker=1)
                orch.submit_sub(sub, [y.update()])
                with self.assertRaisesRegex(GLib.Error, "enable_dump_tensor = 2 has no effect without an output_prefix"):
                    orch.submit_next_level(chip, [x.read(), y.write()], Pto.CallConfig(enable_dump_tensor=2), worker=1)
            x[:] = 3
            worker.run(orchestrate, x, y, config=Pto.CallConfig(enable_dump_tensor=1, enable_dep_gen=1, output_prefix=prefix))
        self.assertEqual(y.tolist(), [[14] * 2] * 2)
        found = self.dumped(prefix)
        self.assertEqual({key[1:]: array[0, 0] for key, array in found.items()},
                         {(0, 0, "before"): 3, (0, 1, "after"): 7, (1, 0, "before"): 7, (1, 0, "after"): 14})
        found = self.dumped(own + "task0-worker1-")
        self.assertEqual({key: array[0, 0] for key, array in found.items()},
                         {("add", 0, 0, "before"): 3, ("add", 0, 1, "after"): 7})
        self.assertEqual([task["kernel"] for task in self.read(own + "task0-worker1-", "pmu.json")["tasks"]], ["add"])
        self.assertEqual(len(self.read(prefix, "deps.json")["edges"]), 1)
        self.assertTrue(os.path.exists(own + "task0-worker1-deps.dot"))
        self.assertTrue(os.path.exists(own + "task0-worker1-scopes.json"))


if __name__ == "__main__":
    tap.main()
