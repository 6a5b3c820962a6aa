# test_tasks.py: does an orchestration say what a task is, wherever its chip is?
# SPDX-License-Identifier: LGPL-2.1-or-later
import itertools
import json
import math
import os
import shutil
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

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

COPY = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *from = (const TensorData *) args[0], *to = (const TensorData *) args[1];

  *(int32_t *) (uintptr_t) to->buffer.addr += *(int32_t *) (uintptr_t) from->buffer.addr;
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
        self.write("copy.c", COPY)

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
        self.assertEqual([task.name for task in tasks], ["alloc", "add", "no kernel", "add", "add", "no kernel"])
        self.assertEqual([task.core >= 0 for task in tasks], [False, True, False, False, True, False])
        self.assertEqual(str(tasks[2]), f"<Pto.TraceTask: task {tasks[2].label} (no kernel), which ran nothing>")
        self.assertRegex(tasks[2].label, r"^(\d+/)?2$")
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

    PRIORITIES = [0, 0] + [i * 5 // 2 % (Pto.MAX_PRIORITY + 1) for i in range(12)]

    def by_priority(self, order, submit):
        """Two tasks keep the cores or the worker busy until the others are submitted."""
        priorities = self.PRIORITIES[2:]

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
        def current(orch, add, x):
            orch.submit(add, x.no_dep(), 1)

        def named(orch, add, x):
            priority, orch.priority = orch.priority, 0
            orch.submit(add, x.no_dep(), 1, priority=priority)
            with self.assertRaisesRegex(GLib.Error, "there is no priority 4"):
                orch.submit(add, x.no_dep(), 1, priority=Pto.MAX_PRIORITY + 1)
            with self.assertRaisesRegex(GLib.Error, "argument 0 is scratch memory"):
                orch.submit(add, (x, Pto.Direction.SCRATCH), 1, priority=1)
            self.assertEqual(orch.priority, 0)
            orch.priority = priority

        for isolate, submit in itertools.product((False, True), (current, named)):
            with self.subTest(isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                x, order = np.zeros(1, "i4"), []
                add = Pto.Kernel.new(Pto.CoreType.AIC, self.path("add.c"), None)
                add.set_cost("constant:1000000")
                for name, value in ("backend", "det"), ("clusters", 1), ("aicpu-threads", 2), ("trace", 1):
                    worker.set_parameter(name, value)
                worker.run(self.by_priority(order, lambda orch, _: submit(orch, add, Pto.Tensor.of(x))))
                starts = [task.start_ns for task in worker.trace.list_tasks()][2:]
                self.assertEqual(sorted(range(12), key=lambda i: starts[i]), order)
                self.assertEqual([task.priority for task in worker.trace.list_tasks()], self.PRIORITIES)
                self.assertIn(", priority 2)", worker.trace.explain(3))
                self.assertEqual(x[0], 14)

    def test_schedule(self):
        """The order of its tasks is a parameter of the worker, which can be set between runs, too."""
        for isolate in False, True:
            with self.subTest(isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                x, y = np.zeros(1, "i4"), np.ones(1, "i4")
                copy = Pto.Kernel.new(Pto.CoreType.AIV, self.path("copy.c"), None)
                worker.set_parameter("backend", "det")

                def graph(orch):
                    """Each adds the other one to its own: the numbers are the order."""
                    orch.submit(copy, Pto.Tensor.of(x).no_dep(), Pto.Tensor.of(y).no_dep())
                    orch.submit(copy, Pto.Tensor.of(y).no_dep(), Pto.Tensor.of(x).no_dep())
                for schedule, values in ("0:0-after-0:1", (1, 2)), ("in-order", (1, 1)), ("0:0-last", (1, 2)), ("without-raw", (1, 1)):
                    worker.set_parameter("schedule", schedule)
                    self.assertEqual(worker.dup_parameter("schedule"), schedule)
                    x[0], y[0] = 0, 1
                    worker.run(graph)
                    self.assertEqual((x[0], y[0]), values)
                with self.assertRaisesRegex(GLib.Error, 'schedule: "0:0-behind-0:1": behind the task -after-TASK or -last wanted'):
                    worker.set_parameter("schedule", "0:0-behind-0:1")
        with Pto.Worker(platform="a2a3sim") as worker:
            worker.set_parameter("backend", "threads")
            with self.assertRaisesRegex(GLib.Error, "schedule needs the back end det.*threads"):
                worker.set_parameter("schedule", "in-order")
                worker.run(lambda orch: None)

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
                worker.set_parameter("trace", 1)
                with worker:
                    worker.run(whole)
                    trace = worker.trace
                self.assertEqual([i for i in board[2:2 + 14] if i >= 0], order)
                self.assertEqual([task.priority for task in trace.list_tasks() if task.level == level], self.PRIORITIES)

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

    def submit(self, orch, x, y):
        """The same from a function, in scopes; gives what the submits gave."""
        add = Pto.Callable.kernel(self.path("add.c"))
        off = orch.make_tensor(1, "i4")
        ids = [orch.submit_order(off.write())]
        ids.append(orch.submit(add, x.update(), 3))
        with orch.scope():
            ids.append(orch.submit_order(after=ids[1]))
            with orch.scope():
                ids.append(orch.submit(add, y.update(), 4, when=(x, 0), after=[ids[2]]))
        ids.append(orch.submit(add, y.update(), 5, when=x))
        self.assertEqual(orch.last_task, ids[-1])
        self.assertTrue(all(ids))  # the first is 0
        return ids

    def test_function(self):
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), \
                        Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    x, y, ids = np.zeros(1, "i4"), np.zeros(1, "i4"), []
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", "1")

                    def graph(orch, x, y):
                        self.assertEqual((orch.last_task, bool(orch.last_task)), (-1, False))
                        ids.extend(self.submit(orch, x, y))

                    worker.run(graph, x, y)
                    self.assertEqual((x[0], y[0]), (3, 9))
                    tasks = {task.id: task for task in worker.trace.list_tasks()}
                    self.assertEqual([tasks[id].name for id in ids], ["alloc", "add", "no kernel", "add", "add"])
                    self.assertEqual(len(tasks), 5)
                    order = [task.id for task in worker.trace.list_tasks()]
                    named = {(order[edge.producer], order[edge.consumer]) for edge in worker.trace.list_edges()
                             if edge.hazards & Pto.Hazards.EXPLICIT}
                    self.assertEqual(named, {(ids[1], ids[2]), (ids[2], ids[3])})

    def test_element(self):
        """Reading waits for who writes, writing for who reads, too; what tasks are called stays right behind it."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    add, copy = Pto.Callable.kernel(self.path("add.c")), Pto.Callable.kernel(self.path("copy.c"))
                    x, y, ids = np.zeros(2, "i4"), np.zeros(1, "i4"), []
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", "1")

                    def graph(orch, x, y):
                        for i in range(1, 6):
                            ids.append(orch.submit(add, x.update(), 10))
                            self.assertEqual(orch.get_element(x), 10)
                            with orch.scope():
                                ids.append(orch.submit(copy, x.read(), y.update(), after=ids[-1]))
                                orch.set_element(x, 0, value=0)
                                ids.append(orch.submit(copy, x.read(), y.update()))
                            self.assertEqual(orch.get_element(y, 0), 10 * i)
                        made = orch.make_tensor(1, "f4")
                        orch.submit_order(made.write())
                        orch.set_element(made, value=2.5)
                        self.assertEqual(orch.get_element(made), 2.5)
                        self.kinds(orch)

                    worker.run(graph, x, y)
                    self.assertEqual((x[0], y[0]), (0, 50))
                    names = {task.id: task.name for task in worker.trace.list_tasks()}
                    self.assertEqual([names[id] for id in ids], ["add", "copy", "copy"] * 5)

    def test_alloc(self):
        """Memory that is there at once, in which the function writes; it stays mapped as long as somebody looks at it.

        It is a task of a ring wherever the chip is: the same tasks, names and numbers.
        """
        for backend in "par", "det", "threads":
            runs = []
            for isolate in False, True:
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    add, copy = Pto.Callable.kernel(self.path("add.c")), Pto.Callable.kernel(self.path("copy.c"))
                    x, views, ids = np.zeros(1, "i4"), [], []
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", 1)
                    # After the child was begun: heaps of other sizes.
                    worker.register(add)
                    worker.set_parameter("heap", "64K")

                    def graph(orch, x):
                        for i in range(5):
                            with orch.scope():
                                made = orch.alloc((2, 3), "i4")
                                self.assertEqual(made.get_address() % 1024, 0)
                                view = np.asarray(made)
                                view[:] = 100 * i
                                orch.submit(add, made.update(), 7)
                                ids.append(orch.last_task)
                                orch.submit(copy, made.read(), x.update())
                                self.assertEqual(orch.get_element(made, 0, 0), 100 * i + 7)
                                self.assertEqual(orch.get_element(made, 1, 2), 100 * i)
                                views.append(view)
                        with self.assertRaisesRegex(GLib.Error, "dimensions"):
                            orch.alloc((), "i4")

                    worker.run(graph, x)
                    self.assertEqual(x[0], 1000 + 5 * 7)
                    numbers, tasks = worker.dup_statistics(), worker.trace.list_tasks()
                    names = {task.id: task.name for task in tasks}
                    self.assertEqual([names[id] for id in ids], ["add"] * 5)
                    # alloc, add, copy, and a task that is waited for by each of two elements.
                    self.assertEqual(numbers.get_tasks(), 5 * 5)
                    # Of each scope 1024 bytes, until somebody looks whether they can be had again.
                    self.assertIn(numbers.get_heap_peak(1), range(1024, 5 * 1024 + 1, 1024))
                    runs.append((numbers.get_tasks(), numbers.get_completed(), sorted((task.id, task.name) for task in tasks),
                                 numbers.get_edges() if backend == "det" else 0))
                worker.close()
                self.assertEqual([view.sum().dtype.kind for view in views], ["i"] * 5)
            self.assertEqual(runs[0], runs[1])

    def test_wrong_arguments(self):
        """One sentence that names the argument and what it may be, whatever is wrong with it; the run goes on."""
        kernel = Pto.Callable.kernel(self.path("add.c"))
        x = np.zeros(8, "f4")

        def graph(orch, x):
            args, graph = Pto.TaskArgs(), Pto.Graph()
            for type_, text, calls in (
                    (ValueError, r"there is no priority (-1|4294967296): a task has one of 0 to 3",
                     (lambda: orch.set_priority(-1), lambda: orch.submit(kernel, priority=-1), lambda: orch.set_priority(2**32))),
                    (TypeError, r"priority: (1\.5|'1'|None|True) is not an integer",
                     [lambda wrong=wrong: setattr(orch, "priority", wrong) for wrong in (1.5, "1", None, True)]),
                    (OverflowError, r"^TaskArgs\.add_after: task: (-1|18446744073709551616) is not one of 0 to 18446744073709551615$",
                     (lambda: args.add_after(-1), lambda: args.add_after(2**64))),
                    (OverflowError, r"^(TaskArgs\.set_cluster|Orchestrator\.free_cluster): cluster: 2147483648 is not one of -2147483648 to",
                     (lambda: args.set_cluster(2**31), lambda: orch.free_cluster(2**31))),
                    (TypeError, r"^\w+\.(add_after|set_cluster|set_block_dim|free_cluster): \w+: None is not an integer$",
                     (lambda: args.add_after(None), lambda: args.set_cluster(None), lambda: args.set_block_dim(None),
                      lambda: orch.free_cluster(None))),
                    (OverflowError, r"(shape|index): -1 is not one of [01] to 18446744073709551615$",
                     (lambda: orch.alloc(-1), lambda: orch.alloc((4, -1)), lambda: orch.tensor(-1), lambda: graph.add_argument(-1),
                      lambda: orch.get_element(x, -1), lambda: orch.set_element(x, -1, value=1),
                      lambda: orch.submit(kernel, when=(x, -1)), lambda: orch.scratch(-1))),
                    (TypeError, r"shape: (1\.5|None) is not an integer$", (lambda: orch.alloc(1.5), lambda: graph.add_argument(None))),
                    (TypeError, r"^dtype: .* is no type of elements", [lambda wrong=wrong: orch.alloc(4, wrong) for wrong in (-1, "x", None)]),
                    (TypeError, r"^TaskArgs\.add_tensor: direction: .* is none of Pto\.Direction: COMMUTATIVE, INOUT,",
                     [lambda wrong=wrong: args.add_tensor(x, wrong) for wrong in (-1, 99, 2**64, True, "1", None, 1.5)]),
                    (TypeError, r"^Orchestrator\.dup_cluster_cores: core_type: .* is none of Pto\.CoreType: AIC, AIV$",
                     [lambda wrong=wrong: orch.dup_cluster_cores(0, wrong) for wrong in (-1, 2, True, "1", None)]),
                    (TypeError, r"^TaskArgs\.set_sync_start: sync_start: (1|'1'|None) is neither True nor False$",
                     [lambda wrong=wrong: args.set_sync_start(wrong) for wrong in (1, "1", None)]),
                    (TypeError, r"^(submit|submit_mixed: aiv1|submit_group: kernel 1|Graph\.add_task): 5 is no kernel",
                     (lambda: orch.submit(5), lambda: orch.submit_mixed(None, None, 5), lambda: orch.submit_group([kernel, 5]),
                      lambda: graph.add_task(5))),
                    (TypeError, r"^submit_group: kernels: .* is not a list of kernels$",
                     (lambda: orch.submit_group(5), lambda: orch.submit_group(kernel), lambda: orch.submit_group("ab"))),
                    (TypeError, r"^(-1|None|'x') is no tensor: a tensor, an array or a list of numbers is wanted$",
                     (lambda: orch.fill(-1, 1), lambda: orch.fill(None, 1), lambda: orch.submit(kernel, when="x"))),
                    (GLib.Error, "kernel \"add\": its condition names element 8 of dimension 0, which has 8",
                     (lambda: orch.submit(kernel, when=(x, 8)),))):
                for call in calls:
                    with self.assertRaisesRegex(type_, text) as caught:
                        call()
                    self.assertNotIn("\n", str(caught.exception))
            orch.fill(x, 2)

        for isolate in False, True:
            with Pto.Worker(isolate=isolate) as worker:
                worker.run(graph, x)
                self.assertEqual(x.sum(), 16)

    def test_fill_after(self):
        """By its name only, in a manual scope; by both in another one."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", 1)
                    x, y, ids = np.zeros(1000, "f4"), np.zeros(10, "i4"), []

                    def graph(orch, x, y):
                        with orch.manual_scope():
                            ids.append(orch.fill(x, 1))
                            ids.append(orch.fill(x, 2, after=ids[0]))
                            ids.append(orch.fill(x, 3, after=[ids[1], ids[0]]))
                        ids.append(orch.fill(y, 4, after=ids[2:]))
                        ids.append(orch.fill(y, 5))
                        for wrong in -1, 1.5, "x":
                            with self.assertRaisesRegex(TypeError, "after: "):
                                orch.fill(y, 6, after=wrong)

                    worker.run(graph, x, y)
                    self.assertEqual((x.min(), x.max(), y.min(), y.max()), (3, 3, 5, 5))
                    order = [ids.index(task.id) for task in worker.trace.list_tasks()]
                    places = {(order[edge.producer], order[edge.consumer]) for edge in worker.trace.list_edges()}
                    self.assertIn((2, 3), places)
                    self.assertIn((3, 4), places)
                    self.assertLessEqual(places, {(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)})
                    if backend == "det":
                        self.assertEqual(len(places), 5)

    def test_fill(self):
        """A value of every type, in what has memory and in what gets some."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    cases = [(dtype, value) for dtype, value in (
                        ("f2", -1.5), ("f2", 65504), ("f2", 5.960464477539063e-08), ("f2", 0), ("f2", float("inf")), ("f4", 2.5), ("f8", 1e300),
                        ("i1", -3), ("i2", -300), ("i4", 2**31 - 1), ("i8", -2**63), ("u1", 255), ("u2", 65535), ("u4", 2**32 - 1),
                        ("u8", 2**64 - 1), ("?", True))]
                    arrays = [np.zeros((3, 5), dtype) for dtype, _ in cases]
                    bits = [(Pto.Dtype.BFLOAT16, "u2", 1.5, 0x3fc0), (Pto.Dtype.BFLOAT16, "u2", -1e30, 0xf14a),
                            (Pto.Dtype.FLOAT8_E4M3FN, "u1", 1.5, 0x3c), (Pto.Dtype.FLOAT8_E4M3FN, "u1", -448, 0xfe),
                            (Pto.Dtype.FLOAT8_E5M2, "u1", 0.25, 0x34), (Pto.Dtype.INT4, "u1", -1, 0x0f)]
                    raw = [Pto.Buffer.array(6, dtype) for _, dtype, _, _ in bits]

                    def graph(orch, *arrays):
                        for array, (_, value) in zip(arrays, cases):
                            orch.fill(array.view([2, 3], [1, 1]), value)
                        for array, (dtype, _, value, _) in zip(raw, bits):
                            orch.fill(Pto.Tensor.new_external(array.ctypes.data, dtype, [6]), value)
                        made = orch.make_tensor((2, 2), "i4")
                        task = orch.fill(made, 41)
                        orch.submit(add, made.update(), 1)
                        self.assertGreater(orch.last_task, task)
                        self.assertEqual((orch.get_element(made, 0, 0), orch.get_element(made, 1, 1)), (42, 41))
                        frozen = np.zeros(1)
                        frozen.flags.writeable = False
                        for what, value, words in ((made, 0.5, "what a tensor is filled with is .* no number of the type int32"),
                                                   (arrays[0], 65520, "no number of the type float16"),
                                                   (made, "1", "no number of the type int32"),
                                                   (frozen, 1, "can not be filled whose memory can only be read")):
                            with self.assertRaisesRegex(GLib.Error, words):
                                orch.fill(what, value)

                    add = Pto.Callable.kernel(self.path("add.c"))
                    worker.run(graph, *arrays)
                    for array, (dtype, value) in zip(arrays, cases):
                        expected = np.zeros((3, 5), dtype)
                        expected[1:, 1:4] = value
                        self.assertEqual(array.tolist(), expected.tolist(), dtype)
                    for array, (dtype, _, _, expected) in zip(raw, bits):
                        self.assertEqual(array.tolist(), [expected] * 6, dtype)

    def test_manual_scope(self):
        """Tasks come after those that they name only; on chips everywhere, and above them."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    add, copy = Pto.Callable.kernel(self.path("add.c")), Pto.Callable.kernel(self.path("copy.c"))
                    x, y = np.zeros(1, "i4"), np.zeros(1, "i4")
                    worker.set_parameter("backend", backend)
                    worker.set_parameter("trace", "1")

                    def graph(orch, x, y):
                        with orch.manual_scope():
                            ids.append(orch.submit(add, x.update(), 5))
                            ids.append(orch.submit(copy, x.read(), y.update(), after=ids[0]))
                            orch.submit_order(x.read(), y.read())
                            ids.append(orch.with_manual_scope(lambda orch: orch.submit(add, x.update(), 2, after=ids[1])))
                        ids[2] = orch.last_task
                        orch.submit(copy, y.read(), x.update(), after=ids)

                    ids = []
                    worker.run(graph, x, y)
                    self.assertEqual((x[0], y[0]), (12, 5))
                    order = [task.id for task in worker.trace.list_tasks()]
                    edges = {(order[edge.producer], order[edge.consumer]) for edge in worker.trace.list_edges()
                             if edge.hazards == Pto.Hazards.EXPLICIT}
                    self.assertEqual(len(edges), len(list(worker.trace.list_edges())))
                    self.assertLess({(ids[0], ids[1]), (ids[1], ids[2])}, edges)

                    def inside(orch):
                        with orch.manual_scope(), orch.scope():
                            pass
                    with self.assertRaisesRegex(GLib.Error, r"the scope opened at test_tasks\.py:\d+ finds dependencies, but "
                                                           r"lies in the manual one opened at test_tasks\.py:\d+, whose"):
                        worker.run(inside)
        with Pto.Worker(level=3, sub_workers=2) as worker:
            def above(orch, x):
                with orch.manual_scope():
                    orch.submit_sub(handle, [x.update()])
                    first = orch.last_task
                    orch.submit_order(x.update())
                    orch.submit_sub(handle, [x.update()], after=first)
                with self.assertRaisesRegex(GLib.Error, "clusters are for chips"):
                    orch.fill(x, 1)

            def double(args):
                args[0][:] = 2 * args[0] + 1
            handle = worker.register(double)
            shared = Pto.Buffer.array(2, "i4")
            worker.run(above, shared)
            self.assertEqual(shared.tolist(), [3, 3])

    def kinds(self, orch):
        for dtype, values, beyond in (("u1", (0, 255), (256, -1)), ("i1", (-128, 127), (128,)), ("i2", (-7,), (40000,)),
                                      ("u2", (65535,), (-1,)), ("i4", (-2**31, 2**31 - 1), (2**31, 2.5)), ("u4", (2**32 - 1,), (2**32,)),
                                      ("i8", (-2**63, 2**63 - 1), (2**63,)), ("u8", (2**64 - 1, np.uint64(3)), (-1, 0.5)),
                                      ("f4", (0.5, 3, -2**20, 2.0**127, float("inf")), (1e300, -3.5e38)), ("f8", (1e300, np.float32(0.25)), ()), ("?", (True, False, 1), (2,))):
            array = np.zeros((2, 3), dtype)
            tensor = Pto.Tensor.of(array)
            for value in values:
                orch.set_element(tensor, 1, 2, value=value)
                self.assertEqual(orch.get_element(tensor, 1, 2), value)
                self.assertEqual(orch.get_element(tensor), 0)
            for value in (*beyond, "7", None):
                with self.subTest(dtype=dtype, value=value), self.assertRaises((GLib.Error, TypeError)):
                    orch.set_element(tensor, value=value)
        for refused, words in ((lambda: orch.get_element(tensor, 2, 0), "there is no element 2 in dimension 0 of the tensor, which has 2"),
                               (lambda: orch.get_element(tensor, 0), "by 1 number, but the tensor has 2 dimensions"),
                               (lambda: orch.set_element(tensor, value=2), "is 2, which is no number of the type bool"),
                               (lambda: orch.set_element(np.zeros(1, "f4"), value=-1e300), r"is -1e\+300, which float32 can not hold"),
                               (lambda: orch.set_element([1, 2], value=1), "its tensor can only be read")):
            with self.assertRaisesRegex(GLib.Error, words):
                refused()

    def test_element_of_any_type(self):
        """Each number that a type has is written and read as it is; what it can not hold becomes the nearest, or is refused."""
        def small(bits, exponent, fraction, infinities):  # a float of at most 16 bits
            sign, magnitude = bits >> (exponent + fraction), bits & (1 << (exponent + fraction)) - 1
            e, f, bias = magnitude >> fraction, magnitude & (1 << fraction) - 1, (1 << (exponent - 1)) - 1
            if e == (1 << exponent) - 1 and (infinities or f == (1 << fraction) - 1):
                number = math.nan if f or not infinities else math.inf
            else:
                number = math.ldexp(f, 1 - bias - fraction) if e == 0 else math.ldexp(f + (1 << fraction), e - bias - fraction)
            return -number if sign else number

        formats = {"float16": (5, 10, True), "bfloat16": (8, 7, True), "float8_e4m3fn": (4, 3, False), "float8_e5m2": (5, 2, True)}

        def graph(orch):
            for dtype, (exponent, fraction, infinities) in formats.items():
                raw = np.zeros(1, "u2" if dtype.endswith("16") else "u1")
                tensor = Pto.Tensor.new_for_object(raw.ctypes.data, getattr(Pto.Dtype, dtype.upper()), [1], Gio.Cancellable())
                n_bits = 1 + exponent + fraction
                for bits in range(0, 1 << n_bits, 1 if n_bits == 8 else 61):
                    orch.set_element(raw, value=bits)
                    number, expected = orch.get_element(tensor), small(bits, exponent, fraction, infinities)
                    self.assertEqual(repr(number), repr(expected) if expected == expected else "nan", (dtype, bits))
                    orch.set_element(raw, value=0)
                    orch.set_element(tensor, value=number)
                    if number == number:
                        self.assertEqual(orch.get_element(raw), bits, dtype)
                orch.set_element(tensor, value=1 + 2.0 ** -(fraction + 2))
                self.assertEqual(orch.get_element(tensor), 1)  # the nearest
                with self.assertRaisesRegex(GLib.Error, "no number of the type"):
                    orch.set_element(tensor, value=1e39)
            nibble = orch.alloc(2, "int4")
            for value in range(-8, 8):
                orch.set_element(nibble, 1, value=value)
                self.assertEqual((orch.get_element(nibble, 1), type(orch.get_element(nibble, 1))), (value, int))
            with self.assertRaisesRegex(GLib.Error, "is 8, which is no number of the type int4"):
                orch.set_element(nibble, value=8)
            for dtype, value in (("float16", -1.5), ("bfloat16", 3), ("float8_e5m2", 0.25), ("int4", -3)):  # of tasks, too
                tensor = orch.tensor(4, dtype)
                orch.fill(tensor, value)
                self.assertEqual(orch.get_element(tensor, 3), value)
        for isolate in False, True:
            with self.subTest(isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                worker.run(graph)

    def test_element_in_trace(self):
        """The submitter's wait for an element is one of its waits, in numbers, in the record and in the picture."""
        def graph(orch, x, waits):
            orch.submit(Pto.Callable.kernel(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill.c")), x.write_existing(), 0)
            return orch.get_element(x, 3) == 0 if waits else None

        for isolate in (False, True):
            for waits in (False, True):
                with self.subTest(isolate=isolate, waits=waits), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", "det")
                    worker.set_parameter("trace", True)
                    worker.run(graph, np.ones(8, np.float32), waits)
                    events = json.loads(worker.trace.to_json())["traceEvents"]
                    found = [event["dur"] for event in events if event.get("cat") == "stall"]
                    self.assertEqual(len(found), int(waits))
                    self.assertTrue(all(duration > 0 for duration in found))
                    self.assertEqual([event["name"] for event in events if event.get("cat") == "stall"],
                                     ["wait for an element"] * waits)
                    self.assertEqual(worker.statistics.stalls, int(waits))
                    self.assertEqual("the submitter waits for an element" in worker.trace.to_svg(), waits)

    def test_element_on_levels(self):
        with Pto.Worker(level=3, sub_workers=1) as worker:
            def graph(orch, x):
                for refused in (lambda: orch.get_element(x), lambda: orch.set_element(x, value=1)):
                    with self.assertRaisesRegex(GLib.Error, "of level 3 does not wait .* let a SUB function"):
                        refused()
            worker.run(graph, Pto.Buffer.array(1))

    def test_off(self):
        """Where the element is 0 the kernel does not run, and whoever comes after it does."""
        for isolate in False, True:
            with self.subTest(isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                add = Pto.Callable.kernel(self.path("add.c"))
                flags, x = np.array([[1, 0, 2]], "i4"), np.zeros(1, "i4")

                def graph(orch, flags, x):
                    for i in range(3):
                        orch.submit(add, x.update(), 10 ** i, when=(flags, 0, i))
                    orch.submit(add, x.update(), 5000)

                worker.run(graph, flags, x)
                self.assertEqual(x[0], 5101)

    def test_refused(self):
        add = Pto.Callable.kernel(self.path("add.c"))
        x = np.zeros(1, "i4")
        terms = Pto.TaskArgs(Pto.Tensor.of(x).update(), 1)
        terms.add_after(0)

        def beyond(orch, x):
            orch.submit(add, x.update(), 1, when=(x, 1))

        def dimensions(orch, x):
            orch.submit(add, x.update(), 1, when=(x, 0, 0))

        def nobody(orch, x):
            orch.submit(add, x.update(), 1, after=7)

        def numbers(orch, x):
            orch.submit_order(7)

        def told(orch, x):
            with self.assertRaisesRegex(GLib.Error, r"the run has failed: task \d+ \(\S+\): it comes after task 99 "):
                while True:  # a chip in another process says so later
                    orch.submit(add, x.update(), 1, after=99)
            raise KeyError("what the function makes of it is not why")

        def twice(orch, x):
            orch.submit(add, Pto.TaskArgs(x.update(), 1), after=0)

        def nonsense(orch, x):
            for after in None, 1.5, [-1], -1, True, "0", orch.last_task:
                with self.assertRaisesRegex(TypeError, "after: .* is not an integer that submit.. gives"):
                    orch.submit(add, x.update(), 1, after=after)
            for priority, error in ((-1, ValueError), (1.5, TypeError), (None, TypeError)):
                with self.assertRaisesRegex(error, f"{priority}( is not an integer|: a task has one of 0 to)"):
                    orch.priority = priority

        for isolate in False, True:
            with Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                worker.run(nonsense, x)
                for graph, words in [(beyond, "names element 1 of dimension 0, which has 1"),
                                     (dimensions, "by 2 numbers, but the tensor has 1 dimensions"),
                                     (nobody, r"after task 7 \(number 0 of those that it names\), which is no task of this run"), (told, "it comes after task 99 "), (numbers, "has no numbers"),
                                     (twice, "a TaskArgs says itself")]:
                    with self.subTest(graph=graph.__name__, isolate=isolate), self.assertRaisesRegex(Exception, words):
                        worker.run(graph, x)
                with self.assertRaisesRegex(Exception, "only a submit has that"):
                    worker.run_callable(worker.register(self.graph()), terms, None)

    def test_of_another_run(self):
        """A tensor of another run says so where it is read, on each machine, and may be output anew."""
        self.write("other.c", ADD)
        add = Pto.Callable.kernel(self.path("other.c"), core="aiv", args=2)
        kept = []

        def make(orch, x):
            kept.append(orch.tensor(4, "i4"))
            orch.submit(add, kept[0].write(), 1)
            kept.append(orch.alloc(4, "i4"))
            kept.append(kept[0].view([2], [1]))

        with Pto.Worker() as one, Pto.Worker() as other, Pto.Worker(level=3, num_sub_workers=1) as above:
            x = np.zeros(4, "i4")
            one.run(make, x)
            pass_on = above.register(lambda args: None)
            for worker in one, other:
                for words, function in (
                        ('kernel "other": argument 0: ', lambda orch, x: orch.submit(add, kept[0].read(), 1)),
                        ('kernel "other": argument 0: ', lambda orch, x: orch.submit(add, kept[2].update(), 1)),
                        ('kernel "other": argument 0: ', lambda orch, x: orch.submit(add, kept[1].write_existing(), 1)),
                        ("its condition: ", lambda orch, x: orch.submit(add, x.update(), 1, when=kept[0])),
                        ("", lambda orch, x: orch.get_element(kept[0], [0]))):
                    with self.assertRaisesRegex(GLib.Error, words + "the tensor is one of another run"):
                        worker.run(function, x)
                worker.run(lambda orch, x: (orch.submit(add, kept[0].write(), 1), orch.submit(add, kept[0].update(), 2)), x)
            with self.assertRaisesRegex(GLib.Error, "argument 0: the tensor is one of another run"):
                above.run(lambda orch, x: orch.submit_sub(pass_on, [kept[0].read()]), x)
            with self.assertRaisesRegex(GLib.Error, "no task has output it"):
                one.run(lambda orch, x: orch.submit(add, orch.tensor(4, "i4").read(), 1), x)

    def test_many_names(self):
        """Where the chip is in another process a submit names only so many."""
        add = Pto.Callable.kernel(self.path("add.c"))
        x = np.zeros(1, "i4")
        for isolate in False, True:
            for n in 1024, 1025:
                with self.subTest(isolate=isolate, n=n), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    def graph(orch, x):
                        orch.submit(add, x.update(), 1, after=[orch.submit_order()] * n)

                    if isolate and n > 1024:
                        with self.assertRaisesRegex(Exception, "after 1025 that it names"):
                            worker.run(graph, x)
                    else:
                        worker.run(graph, x)
        self.assertEqual(x[0], 3)

    def test_levels(self):
        """After those that it names, whatever it works on: at level 3 and at level 4, of any kind."""
        for level in 3, 4:
            with self.subTest(level=level), \
                    Pto.Worker(level=level, platform="a2a3sim", device_ids=[0] if level == 3 else [], sub_workers=3) as worker:
                first, second = Pto.Buffer.array(1, "i4"), Pto.Buffer.array(1, "i4")
                first[0] = second[0] = 0

                def slow(args):
                    time.sleep(0.2)
                    args[0][0] = 7

                def copy(args):
                    args[0][0] = args[1][0]

                slow, copy = worker.register(slow), worker.register(copy)
                ids = []

                def graph(orch, x, y):
                    self.assertEqual(orch.last_task, -1)
                    pair = [(y, Pto.Direction.NO_DEP), (x, Pto.Direction.NO_DEP)]  # its tensors order nothing
                    orch.submit_sub(slow, [x.write_existing()])
                    ids.append(orch.last_task)
                    ids.append(orch.submit_order(after=ids[-1:]))
                    orch.submit_sub(copy, pair, after=ids[-1])
                    ids.append(orch.last_task)
                    self.assertIsNone(orch.submit_sub_group(copy, [pair] * 2, after=[ids[-1]]))
                    ids.append(orch.last_task)

                worker.set_parameter("trace", "1")
                worker.run(graph, first, second)
                self.assertEqual((first[0], second[0]), (7, 7))
                order = [task.id for task in worker.trace.list_tasks()]
                self.assertEqual(order, ids)
                self.assertEqual([(edge.producer, edge.consumer) for edge in worker.trace.list_edges()], [(0, 1), (1, 2), (2, 3)])

                def conditional(orch, x, y):
                    args = Pto.TaskArgs(x.update())
                    args.set_condition(x, [0])
                    orch.submit_sub(copy, args)

                with self.assertRaisesRegex(Exception, "a condition is for kernels, on a chip"):
                    worker.run(conditional, first, second)


tap.main()
