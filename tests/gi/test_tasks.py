# test_tasks.py: does an orchestration say what a task is, wherever its chip is?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import shutil
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

ADD = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *t = (const TensorData *) args[0];

  *(int32_t *) (uintptr_t) t->buffer.addr += (int32_t) args[1];
}
"""

# Six tasks: one named by the next, which runs nothing, two on conditions of which one holds, a
# piece of memory, and one that the value is read behind.
GRAPH = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  PTO2OrchestrationConfig config = { 2 };

  return config;
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  const uint64_t one[1] = { 1 }, first[1] = { 0 };
  Tensor x = make_tensor_external ((void *) (uintptr_t) args[0], one, 1, PTO_DTYPE_INT32);
  Tensor y = make_tensor_external ((void *) (uintptr_t) args[1], one, 1, PTO_DTYPE_INT32);
  Tensor off = pto2_rt_alloc (rt, one, 1, PTO_DTYPE_INT32);
  PTOParam three[2] = { make_inout_param (x), make_scalar_param (3) };
  PTOParam four[2] = { make_inout_param (y), make_scalar_param (4) };
  int32_t value = 0;
  PTO2TaskId id;

  if (off.buffer.addr == 0)
    return 1;
  *(int32_t *) (uintptr_t) off.buffer.addr = 0;
  id = pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, three, 2);
  pto2_rt_submit_order (rt, NULL, 0, &id, 1);
  pto2_rt_submit_task_if (rt, 0, PTO2_WORKER_VECTOR, four, 2, &off, first);
  pto2_rt_submit_task_if (rt, 0, PTO2_WORKER_VECTOR, four, 2, &x, first);
  if (!pto2_rt_get_element (rt, &y, first, &value) || value != 4)
    return 2;
  return 0;
}
"""


@unittest.skipIf(np is None, "no numpy")
class Tasks(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-tasks-")
        self.addCleanup(shutil.rmtree, self.directory)
        for suffix in "c", "cpp":
            self.write("graph." + suffix, GRAPH if suffix == "c" else GRAPH.replace("PTO_DTYPE_", "DataType::").replace(
                "PTO2OrchestrationConfig aicpu", 'extern "C" PTO2OrchestrationConfig aicpu').replace("int aicpu", 'extern "C" int aicpu'))
        self.write("add.c", ADD)

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def path(self, name):
        return os.path.join(self.directory, name)

    def graph(self, suffix="c"):
        graph = Pto.ChipOrchestration.new(self.path("graph." + suffix), None)
        graph.add_kernel(0, "add", Pto.Kernel.new(Pto.CoreType.AIV, self.path("add.c"), None))
        return graph

    def check(self, trace):
        tasks, edges = list(trace.list_tasks())[-6:], list(trace.list_edges())[-5:]
        first = len(list(trace.list_tasks())) - 6
        self.assertEqual([task.name for task in tasks], ["no kernel", "add", "no kernel", "add", "add", "no kernel"])
        self.assertEqual([task.core >= 0 for task in tasks], [False, True, False, False, True, False])
        self.assertEqual(str(tasks[2]), f"<Pto.TraceTask: task {tasks[2].id:#x} (no kernel), which ran nothing>")
        self.assertFalse(any(task.has_failed() for task in tasks))
        self.assertEqual({(edge.producer - first, edge.consumer - first): int(edge.hazards) for edge in edges},
                         {(1, 2): Pto.Hazards.EXPLICIT, (0, 3): Pto.Hazards.RAW, (1, 4): Pto.Hazards.RAW,
                          (3, 4): Pto.Hazards.RAW | Pto.Hazards.WAW, (4, 5): Pto.Hazards.RAW})
        self.assertLessEqual(tasks[1].end_ns, tasks[4].start_ns)

    def test_chip(self):
        for isolate in False, True:
            for backend in "par", "det", "threads":
                for suffix in "c", "cpp":
                    with self.subTest(backend=backend, isolate=isolate, suffix=suffix), \
                            Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                        x, y = np.zeros(1, "i4"), np.zeros(1, "i4")
                        worker.set_parameter("backend", backend)
                        worker.set_parameter("trace", "1")
                        worker.run(worker.register(self.graph(suffix)), x, y)
                        self.assertEqual((x[0], y[0]), (3, 4))
                        self.assertEqual(worker.statistics.tasks, 6)
                        self.check(worker.trace)

    def test_below(self):
        for backend in "par", "det", "threads":
            with self.subTest(backend=backend), Pto.Worker(level=3, platform="a2a3sim", device_ids=[0]) as worker:
                a, b = (Pto.Buffer.array(1, "i4") for _ in range(2))
                x, y = Pto.Tensor.of(a), Pto.Tensor.of(b)
                a[:] = b[:] = 0
                worker.get_child(0).set_parameter("backend", backend)
                worker.set_parameter("trace", "1")
                graph = worker.register(self.graph())
                worker.run(lambda orch: orch.submit_next_level(graph, [x.update(), y.update()]))
                self.assertEqual((a[0], b[0]), (3, 4))
                self.check(worker.trace)

    def by_priority(self, order, submit):
        """Two tasks keep the cores or the worker busy until the others are submitted."""
        priorities = [i * 5 // 2 % (Pto.MAX_PRIORITY + 1) for i in range(12)]

        def graph(orch):
            self.assertEqual(orch.priority, 0)
            with self.assertRaisesRegex(GLib.Error, "there is no priority 4"):
                orch.priority = Pto.MAX_PRIORITY + 1
            submit(orch, -1)
            submit(orch, -1)
            for i, priority in enumerate(priorities):
                orch.priority = priority
                submit(orch, i)
            self.assertEqual(orch.priority, priorities[-1])
        order.extend(sorted(range(12), key=lambda i: (-priorities[i], i)))
        return graph

    def test_priorities(self):
        for isolate in False, True:
            with self.subTest(isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                x, order = np.zeros(1, "i4"), []
                add = Pto.Kernel.new(Pto.CoreType.AIC, self.path("add.c"), None)
                add.set_cost("constant:1000000")
                for name, value in ("backend", "det"), ("clusters", 1), ("aicpu-threads", 2), ("trace", 1):
                    worker.set_parameter(name, value)
                worker.run(self.by_priority(order, lambda orch, i: orch.submit(add, Pto.Tensor.of(x).no_dep(), 1)))
                starts = [task.start_ns for task in worker.trace.list_tasks()][2:]
                self.assertEqual(sorted(range(12), key=lambda i: starts[i]), order)
                self.assertEqual(x[0], 14)

    def test_priorities_of_levels(self):
        """A function of a SUB worker, and one on a worker below."""
        for level in 3, 4:
            with self.subTest(level=level):
                board, order = Pto.Buffer.array(32, "i8"), []

                def note(i):
                    while board[0] == 0:
                        time.sleep(0.001)
                    board[1] += 1
                    board[1 + board[1]] = i

                worker = Pto.Worker(level=level, num_sub_workers=1 if level == 3 else 0)
                if level == 4:
                    worker.add_worker(Pto.Worker(level=3, num_sub_workers=0))
                    handle = worker.register(lambda orch, args, config: note(args[0]))
                    graph = self.by_priority(order, lambda orch, i: orch.submit_next_level(handle, [i]))
                else:
                    handle = worker.register(lambda args: note(args[0]))
                    graph = self.by_priority(order, lambda orch, i: orch.submit_sub(handle, [i]))

                def whole(orch):
                    graph(orch)
                    board[0] = 1
                with worker:
                    worker.run(whole)
                self.assertEqual([i for i in board[2:2 + 14] if i >= 0], order)

    def test_commutative(self):
        """No order among them, and one at a time; who reads comes after all."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    x, y = np.zeros(1, "i4"), np.zeros(1, "i4")
                    a, b = Pto.Tensor.of(x), Pto.Tensor.of(y)
                    add = Pto.Kernel.new(Pto.CoreType.AIV, self.path("add.c"), None)
                    worker.set_parameter("backend", backend)

                    def graph(orch):
                        for i in range(20):
                            orch.submit(add, a.commute(), i)
                        orch.submit(add, b.update(), 1, a.read())
                    worker.run(graph)
                    self.assertEqual((x[0], y[0]), (190, 1))
                    if backend == "det":
                        self.assertEqual(worker.statistics.edges, 20)


tap.main()
