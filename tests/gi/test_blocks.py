# test_blocks.py: does a function say which kernels run together, how often and where?
# SPDX-License-Identifier: LGPL-2.1-or-later
import itertools
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

HEAD = """\
#include "pto_block.h"
#include "tensor.h"
static int32_t *cells (int64_t arg)
{
  const TensorData *t = (const TensorData *) arg;

  return (int32_t *) t->buffer.addr + t->start_offset;
}
void kernel_entry (int64_t *args)
"""
MEET = """\
{ int32_t sum = 0;
  cells (args[0])[get_block_idx (args)] = 1;
  pto_sync_all (args);
  for (uint32_t i = 0; i < get_block_num (args); i++)
    sum += cells (args[0])[i];
  pto_sync_all (args);
  cells (args[0])[get_block_idx (args)] = sum + %d; }
"""
NOTE = """\
{ cells (args[0])[3 * get_block_idx (args) + %d]++;
  cells (args[1])[get_block_idx (args)] = (int32_t) get_block_num (args); }
"""
KERNELS = {  # name: type of core, text
    "block": ("aiv", "{ cells (args[0])[get_block_idx (args)] += 10 * (int32_t) get_block_num (args) + (int32_t) args[1]; }\n"),
    "cube": ("aic", NOTE % 0),
    "vector": ("aiv", NOTE.replace("%d", "1 + get_sub_block_id (args)")),
    "meet": ("aiv", MEET % 0),
    "meet_cube": ("aic", MEET % 100),
    "nothing": ("aiv", "{ }\n"),
    "nothing_cube": ("aic", "{ }\n"),
    "trap": ("aiv", "{ __builtin_trap (); }\n"),
    "push": ("aic", "{ int32_t five = 5; TPUSH (args, 0, &five, 4); }\n"),
    "pop": ("aiv", "{ int32_t five = 0; TPOP (args, 0, &five, 4); cells (args[0])[get_block_idx (args)] += five; }\n"),
    "scratch": ("aiv", """\
{ int32_t sum = 0;
  for (int32_t i = 0; i < 1000; i++)
    cells (args[1])[i] = i;
  for (int32_t i = 0; i < 1000; i++)
    sum += cells (args[1])[i];
  cells (args[0])[0] += sum; }
"""),
    "copy": ("aiv", "{ cells (args[1])[get_block_idx (args)] += cells (args[0])[get_block_idx (args)]; }\n"),
    "add": ("aiv", "{ cells (args[0])[0] += (int32_t) args[1]; }\n"),
    "past": ("aiv", "{ cells (args[1])[1] = (int32_t) args[0]; }\n"),
    # Of a group whose members have arguments of their own.
    "own": ("aiv", "{ cells (args[1])[0] = cells (args[0])[0] + 1000 * (int32_t) get_block_idx (args)"
                   " + 100 * (int32_t) get_block_num (args) + (int32_t) args[2]; }\n"),
    "own_cube": ("aic", "{ cells (args[0])[0] = 10000 * (int32_t) get_block_idx (args) + (int32_t) args[1]; }\n"),
}


# One element that tasks of many blocks write and read, and the orchestration between them.
ELEMENT = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 2 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  const uint64_t last[1] = { 99 };
  Tensor x = pto2_rt_arg_tensor (rt, 0), y = pto2_rt_arg_tensor (rt, 1);
  PTOParam write[] = { make_inout_param (x), make_scalar_param (7) };
  PTOParam copy[] = { make_input_param (x), make_inout_param (y) };
  int32_t value = 0;

  for (int32_t round = 1; round <= 5; round++)
    {
      pto2_rt_submit_block_task (rt, 0, PTO2_WORKER_VECTOR, write, 2, 100);
      if (!pto2_rt_get_element (rt, &x, last, &value) || value != 1007)
        return round;
      pto2_rt_submit_block_task (rt, 1, PTO2_WORKER_VECTOR, copy, 2, 100);
      value = 0;
      if (!pto2_rt_set_element (rt, &x, last, &value))
        return round;
    }
  return 0;
}
"""


# The same group as below.
GROUP = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 3 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  const uint64_t one[1] = { 1 }, at[3][1] = { { 0 }, { 1 }, { 2 } };
  Tensor x = pto2_rt_arg_tensor (rt, 0), y = pto2_rt_arg_tensor (rt, 1), z = pto2_rt_arg_tensor (rt, 2);
  Tensor made;
  PTOParam first[3];
  const int32_t kernels[] = { 0, 1, 0 }, n_params[] = { 3, 2, 3 }, cores[] = { 5, 2, -1 };

  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (one, 1, PTO_DTYPE_INT32);
  first[0] = make_input_param (pto2_tensor_view (&x, one, at[0]));
  first[1] = make_output_param (made);
  first[2] = make_scalar_param (5);
  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, first, 3);
  PTOParam params[] = { make_input_param (made), make_output_param (pto2_tensor_view (&y, one, at[0])), make_scalar_param (1),
                        make_output_param (pto2_tensor_view (&y, one, at[1])), make_scalar_param (7),
                        make_input_param (pto2_tensor_view (&x, one, at[2])), make_output_param (pto2_tensor_view (&y, one, at[2])),
                        make_scalar_param (3) };
  pto2_rt_submit_group_members (rt, kernels, 3, params, n_params, cores);
  for (int i = 0; i < 3; i++)
    {
      PTOParam copy[] = { make_input_param (pto2_tensor_view (&y, one, at[i])), make_inout_param (z) };
      pto2_rt_submit_task (rt, 2, PTO2_WORKER_VECTOR, copy, 2);
    }
  return 0;
}
"""


@unittest.skipIf(np is None, "no numpy")
class Blocks(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-blocks-")
        self.addCleanup(shutil.rmtree, self.directory)
        for name, (core, text) in KERNELS.items():
            path = os.path.join(self.directory, name + ".c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(HEAD + text)
            setattr(self, name, Pto.Callable.kernel(path, core))

    def workers(self, **parameters):
        """One on each back end, with its chip in this process and in another one."""
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    for name, value in parameters.items():
                        worker.set_parameter(name.replace("_", "-"), value)
                    yield worker

    def test_order_and_conditions(self):
        """Behaviour 20, of tasks with blocks: those that only order, and those that run or do not."""
        for worker in self.workers():
            x, flags = np.zeros(100, "i4"), np.array([0, 1], "i4")

            def graph(orch, x, flags):
                first = orch.submit(self.block, x.update(), 1, block_dim=100)
                orch.submit(self.block, x.no_dep(), 5, block_dim=100, when=(flags, 0))
                between = orch.submit_order(after=first)
                orch.submit(self.block, x.no_dep(), 2, block_dim=100, when=(flags, 1), after=between)
            worker.run(graph, x, flags)
            np.testing.assert_array_equal(x, 2003)

    def test_without_arguments(self):
        """What else a submit says of its task is kept where the kernel is given nothing."""
        for worker in self.workers(trace=1):
            flag = np.zeros(1, "i4")

            def graph(orch, flag):
                first = orch.submit(self.nothing)
                orch.submit(self.nothing, after=first, block_dim=2)
                orch.submit(self.nothing, after=first, cluster=orch.allocate_cluster())
                orch.submit(self.nothing, after=first, block_dim=2, sync_start=True)
                orch.submit_mixed(self.nothing_cube, self.nothing, None, after=first, block_dim=2)
                orch.submit(self.trap, when=flag, block_dim=4)
                orch.submit(self.trap, when=flag, block_dim=4, sync_start=True)
                orch.submit(self.trap, when=flag, cluster=orch.allocate_cluster())
            worker.run(graph, flag)
            producers = [edge.producer for edge in worker.trace.list_edges()]
            self.assertEqual(producers, [producers[0]] * 4)

    def test_conditions_of_several(self):
        """A condition holds for each kind of task, in a run, in a graph that is captured, and in one that is built by hand."""
        def graph(orch, x, flags):
            for when in 0, 1:
                orch.submit(self.block, x.update(), 1, block_dim=4, sync_start=True, when=(flags, when))
                orch.submit(self.block, x.update(), 2, cluster=orch.allocate_cluster(), when=(flags, when))
                orch.submit_mixed(None, self.block, None, x.update(), 100, when=(flags, when))
                orch.submit_group([self.block] * 3, x.update(), 1000, when=(flags, when))
                orch.submit_group([self.block], args_list=[[x.update(), 2000]], when=(flags, when))

        by_hand = Pto.Graph()
        a, b = by_hand.add_argument(4, "i4"), by_hand.add_argument(2, "i4")
        tasks = []
        for when in 0, 1:
            tasks.append(by_hand.add_task(self.block, a.update(), 1, block_dim=4, sync_start=True, when=(b, when)))
            tasks.append(by_hand.add_mixed(None, self.block, None, a.update(), 100, when=(b, when)))
            tasks.append(by_hand.add_group([self.block] * 3, [[a.update(), 1000]] * 3, when=(b, when)))
        for first, second in zip(tasks, tasks[1:]):
            by_hand.add_successor(first, second)
        wanted = np.array([41 + 12 + 110 + 1030 + 2010, 41 + 1030, 41 + 1030, 41])
        for worker in self.workers():
            x, flags = np.zeros(4, "i4"), np.array([0, 1], "i4")
            worker.run(graph, x, flags)
            np.testing.assert_array_equal(x, wanted)
            worker.run(worker.capture(graph, x, flags), x, flags)
            np.testing.assert_array_equal(x, 2 * wanted)
            x[:] = 0
            worker.run(by_hand, x, flags)
            np.testing.assert_array_equal(x, wanted - [12 + 2010, 0, 0, 0])

    def test_element(self):
        """Behaviour 21: the orchestration reads what all blocks have written, and writes when all have read."""
        path = os.path.join(self.directory, "element.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ELEMENT)
        graph = Pto.ChipOrchestration.new(path, None)
        graph.add_kernel(0, "block", self.block)
        graph.add_kernel(1, "copy", self.copy)
        for worker in self.workers():
            x, y = np.zeros(100, "i4"), np.zeros(100, "i4")
            worker.run(worker.register(graph), x, y)
            self.assertEqual((x[0], x[99], y[0], y[99]), (5 * 1007, 0, 15 * 1007, 5 * 1007))

    def test_every_block(self):
        """Behaviour 23: each once, also where there are more than cores, and two such tasks."""
        for worker in self.workers():
            for n in 1, 4, 16, 24, 48, 96, 1000:
                x, y = np.zeros(1001, "i4"), np.zeros(1001, "i4")

                def graph(orch, x, y):
                    orch.submit(self.block, x.update(), 7, block_dim=n)
                    orch.submit(self.block, [y.update(), 8], block_dim=np.int64(n))
                worker.run(graph, x, y)
                for values, number in (x, 7), (y, 8):
                    np.testing.assert_array_equal(values[:n], 10 * n + number)
                    np.testing.assert_array_equal(values[n:], 0)
                self.assertEqual(worker.statistics.tasks, 2)

    def test_mixed(self):
        """Behaviour 22: kernels of one cluster, right sub-block ids, one completion; blocks of them."""
        shapes = [(self.cube, None, None), (None, self.vector, None), (None, None, self.vector), (None, self.vector, self.vector),
                  (self.cube, self.vector, None), (self.cube, None, self.vector), (self.cube, self.vector, self.vector)]
        for worker in self.workers(trace=1):
            for shape in shapes:
                for n, sync in (1, False), (24, True), (60, False):
                    x, y = np.zeros((60, 3), "i4"), np.zeros(60, "i4")
                    worker.run(lambda orch, x, y: orch.submit_mixed(*shape, x.update(), y.update(), block_dim=n, sync_start=sync), x, y)
                    np.testing.assert_array_equal(x[:n], [[kernel is not None for kernel in shape]] * n)
                    self.assertEqual((x[n:].any(), y[n:].any(), set(y[:n])), (False, False, {n}))
                    self.assertEqual(len(list(worker.trace.list_tasks())), 1)

    def test_pipes(self):
        """Kernels of a mixed task and of an allocated cluster talk through its pipes."""
        for worker in self.workers():
            x = np.zeros(30, "i4")

            def graph(orch, x):
                orch.submit_mixed(self.push, self.pop, None, x.update(), block_dim=30)
                cluster = orch.allocate_cluster()
                orch.submit(self.push, cluster=cluster)
                orch.submit_mixed(None, None, self.pop, x.update(), cluster=cluster)
                orch.free_cluster(cluster)
            worker.run(graph, x)
            np.testing.assert_array_equal(x, [10] + [5] * 29)

    def test_at_once(self):
        """Behaviour 24: blocks that begin at once meet, as do the members of a group, among other tasks."""
        for worker in self.workers():
            x, y, z, sum_ = np.zeros(48, "i4"), np.zeros(72, "i4"), np.zeros(5, "i4"), np.zeros(1, "i4")

            def graph(orch, x, y, z, sum_):
                for i in range(18):
                    orch.submit(self.add, sum_.update(), i)
                    if i == 6:
                        orch.submit(self.meet, x.write_existing(), block_dim=48, sync_start=True)
                    if i == 9:
                        orch.submit_group([self.meet_cube, self.meet, self.meet] * 24, y.write_existing())
                orch.submit_group((self.meet, self.meet_cube, self.meet), z.write_existing())
            worker.run(graph, x, y, z, sum_)
            np.testing.assert_array_equal(x, 48)
            np.testing.assert_array_equal(y, [172, 72, 72] * 24)
            np.testing.assert_array_equal(z, [3, 103, 3, 0, 0])
            self.assertEqual((sum_[0], worker.statistics.tasks), (153, 21))

    def members(self, orch, x, y, z):
        x, y = ([what.view([1], [i]) for i in range(3)] for what in (x, y))
        made = orch.tensor(1, "i4")
        orch.submit(self.own, x[0].read(), made.write(), 5)
        orch.submit_group([self.own, self.own_cube, self.own], cores=["AIV5", 2, None], priority=2, args_list=[
            [made.read(), y[0].write_existing(), 1], [y[1].write_existing(), 7], [x[2].read(), y[2].write_existing(), 3]])
        self.assertEqual(orch.priority, 0)
        for part in y:
            orch.submit(self.copy, part.read(), z.update())

    def check_members(self, worker, x, y, z, priority=2):
        expected = [x[0] + 105 + 301, 10007, x[2] + 2303]
        self.assertEqual((y.tolist(), z.tolist()), (expected, [sum(expected)]))
        trace = worker.trace
        tasks, cores = trace.list_tasks(), [core.name for core in trace.list_cores()]
        group = tasks[1]
        ran = {cores[part.core] for part in group.list_members()}
        self.assertEqual((len(ran), {"AIV5", "AIC2"} <= ran, group.priority), (3, True, priority))
        self.assertEqual(sorted((edge.producer, edge.consumer) for edge in trace.list_edges()), [(0, 1), (1, 2), (1, 3), (1, 4), (2, 3), (3, 4)])

    def test_members(self):
        """A group of which each member has arguments of its own, and some their cores; it is one task."""
        source = os.path.join(self.directory, "group.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(GROUP)
        for worker in self.workers(trace=1):
            x, y, z = np.array([4, 5, 6], "i4"), np.zeros(3, "i4"), np.zeros(1, "i4")
            worker.run(self.members, x, y, z)
            self.check_members(worker, x, y, z)
            graph = worker.capture(self.members, x, y, z)
            for _ in range(2):
                x, y, z = x + 1, np.zeros(3, "i4"), np.zeros(1, "i4")
                worker.run(graph, x, y, z)
                self.check_members(worker, x, y, z)
            chip = Pto.ChipOrchestration.new(source, None)
            for i, name in enumerate(("own", "own_cube", "copy")):
                chip.add_kernel(i, name, getattr(self, name))
            handle = worker.register(chip)
            for what in handle, worker.capture(handle, x, y, z):
                x, y, z = x + 1, np.zeros(3, "i4"), np.zeros(1, "i4")
                worker.run(what, x, y, z)
                self.check_members(worker, x, y, z, 0)
            # All get the same arguments; cores are named all the same, and each kernel's virtual time is that of its own arguments.
            y = np.zeros(3, "i4")
            worker.run(lambda orch, y: orch.submit_group([self.meet] * 3, y.write_existing(), cores=[47, "AIV0", 3]), y)
            self.assertEqual(y.tolist(), [3] * 3)
            names = [core.name for core in worker.trace.list_cores()]
            task, = worker.trace.list_tasks()
            self.assertEqual({names[part.core] for part in task.list_members()}, {"AIV47", "AIV0", "AIV3"})
        with Pto.Worker(platform="a2a3sim") as small:
            small.set_parameter("clusters", 2)
            small.set_parameter("aicpu-threads", 2)
            with self.assertRaisesRegex(GLib.Error, "task 1.*: member 0 is for place 8, which is no AIV of this machine"):
                small.run(graph, x, np.zeros(3, "i4"), z)

    def test_arguments_of_members(self):
        """An error in a member's argument names the member, its kernel and its own argument."""
        for worker in self.workers():
            x = np.zeros(4, "i4")

            def graph(orch, x):
                orch.submit_group([self.own, self.add, self.own], args_list=[
                    [x.read(), x.view([1], [0]).write_existing(), 1], [orch.tensor(1, "i4").update(), 3], [x.read(), x.view([1], [1]).write_existing(), 1]])
            with self.assertRaisesRegex(GLib.Error, r"\(add\).*: member 1 of a group: argument 0: the tensor has no memory yet"):
                worker.run(graph, x)

            def strays(orch, x):
                y = orch.tensor(1, "i4")
                orch.submit_group([self.own, self.past], args_list=[[x.read(), x.view([1], [0]).write_existing(), 1], [3, y.write()]])
            with self.assertRaisesRegex(GLib.Error, r"\(past\).*: the kernel wrote at least 4 bytes past argument 1 \(declared int32 \[1\]\)"):
                worker.run(strays, x)

    def test_advice_for_members(self):
        """Members of a group begin at once: nothing advises them sync_start, which a group refuses."""
        for worker in self.workers(check="access"):
            x = np.zeros(4, "i4")
            with self.assertRaisesRegex(GLib.Error, r"no order and touch the same bytes.* meet between the two \(pto_sync_all\(\)\)"):
                worker.run(lambda orch, x: orch.submit_group([self.add, self.add], x.view([1], [0]).update(), 1), x)
            with self.assertRaisesRegex(GLib.Error, r"meet between the two \(pto_sync_all\(\), sync_start\)"):
                worker.run(lambda orch, x: orch.submit(self.add, x.view([1], [0]).update(), 1, block_dim=2), x)

    def test_cost_of_members(self):
        """In virtual time a member costs what its own arguments are."""
        own = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(self.directory, "own.c"), None)
        own.set_cost("linear:0:10")
        times = []
        for length in 100, 300:
            with Pto.Worker(platform="a2a3sim") as worker:
                worker.set_parameter("backend", "det")
                worker.set_parameter("trace", 1)
                x, y = np.zeros((2, 1000), "i4"), np.zeros(2, "i4")
                worker.run(lambda orch, x, y: orch.submit_group([own, own], args_list=[
                    [x.view([1, n], [i, 0]).read(), y.view([1], [i]).write_existing(), 0] for i, n in enumerate((100, length))]), x, y)
                task, = worker.trace.list_tasks()
                times.append(sorted(part.end_ns - part.start_ns for part in task.list_members()))
        self.assertEqual(times, [[4040, 4040], [4040, 12040]])

    def test_clusters(self):
        """Behaviour 25: who is for a cluster runs there; one is waited for, or will never be free."""
        for worker in self.workers(clusters=4, aicpu_threads=3, trace=1):
            x = np.zeros(1, "i4")

            def graph(orch, x):
                self.assertEqual(orch.n_clusters, 4)
                self.assertEqual([orch.dup_cluster_cores(3, core) for core in (Pto.CoreType.AIC, Pto.CoreType.AIV)], [[3], [6, 7]])
                used = []
                for i in range(20):
                    used.append(orch.allocate_cluster())
                    task = orch.submit(self.add, x.update(), 1, cluster=used[-1])
                    placed[task] = {f"AIV{core}" for core in orch.dup_cluster_cores(used[-1], Pto.CoreType.AIV)}
                    orch.free_cluster(used[-1])
                self.assertEqual(set(used), {0, 1, 2, 3})
                for _ in range(2):
                    with orch.scope():
                        self.assertEqual({orch.allocate_cluster() for _ in range(4)}, {0, 1, 2, 3})
            placed = {}
            worker.run(graph, x)
            self.assertEqual(x[0], 20)
            tasks, cores = list(worker.trace.list_tasks()), list(worker.trace.list_cores())
            for task in tasks:
                self.assertIn(cores[task.core].name.rsplit("/")[-1], placed[task.id])

            def all_of_them(orch):
                for i in range(5):
                    orch.allocate_cluster()
            with self.assertRaisesRegex(GLib.Error, "no cluster is free, and none will be: all 4 are held"):
                worker.run(all_of_them)

    def test_scratch(self):
        for worker in self.workers():
            x = np.zeros(4, "i4")

            def graph(orch, x):
                for i in range(40):
                    orch.submit(self.scratch, x.view([1], [i % 4]).update(), orch.scratch(1000, "i4"))
            worker.run(graph, x)
            np.testing.assert_array_equal(x, 10 * 499500)

    def test_capture(self):
        """A graph keeps what a function says of its kernels."""
        for backend, isolate in itertools.product(("par", "det", "threads"), (False, True)):
            with self.subTest(backend=backend, isolate=isolate), \
                    Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                worker.set_parameter("backend", backend)

                def function(orch, x, y, z):
                    orch.submit(self.block, x.update(), 1, block_dim=100)
                    orch.submit(self.meet, y.update(), block_dim=48, sync_start=True)
                    orch.submit_group([self.meet_cube, self.meet], z.update())
                    orch.submit_mixed(self.push, self.pop, None, x.update(), block_dim=10)
                    orch.submit(self.scratch, z.update(), orch.scratch(1000, "i4"))
                arrays = [np.zeros(100, "i4") for _ in range(3)]
                graph = worker.capture(function, *arrays)
                self.assertEqual([array.any() for array in arrays], [False] * 3)
                for _ in range(2):
                    x, y, z = arrays = [np.zeros(100, "i4") for _ in range(3)]
                    worker.run(graph, *arrays)
                    np.testing.assert_array_equal(x, [1006] * 10 + [1001] * 90)
                    np.testing.assert_array_equal(y, [48] * 48 + [0] * 52)
                    self.assertEqual(list(z[:3]), [102 + 499500, 2, 0])

    def test_by_hand(self):
        """What a capture keeps of several kernels, of scratch memory, conditions, orders and priorities, a graph by hand has, too."""
        graph = Pto.Graph()
        x, y, z, flags = (graph.add_argument(n, "i4", name) for n, name in ((100, "x"), (48, "y"), (8, "z"), (2, "flags")))
        made = graph.make_tensor(1, "i4")
        block = graph.add_task(self.block, x.update(), 1, block_dim=100)
        graph.add_task(self.meet, y.update(), block_dim=48, sync_start=True, priority=3)
        mixed = graph.add_mixed(self.push, self.pop, None, x.update(), block_dim=10)
        alloc = graph.add_order(made.write())
        group = graph.add_group([self.own, self.own_cube], [
            [z.view([1], [0]).read(), z.view([1], [1]).write_existing(), 5], [made.write_existing(), 8]], priority=1)
        last = graph.add_task(self.copy, made.read(), z.view([1], [2]).update())
        scratch = graph.add_task(self.scratch, z.view([1], [3]).update(), graph.scratch(1000, "i4"))
        graph.priority = 2
        skipped = graph.add_task(self.add, z.view([1], [4]).update(), 7, when=(flags, 0))
        taken = graph.add_task(self.add, z.view([1], [4]).update(), 9, when=(flags, 1), block_dim=3)
        self.assertEqual([block, mixed, alloc, group, last, scratch, skipped, taken], [0, 2, 3, 4, 5, 6, 7, 8])
        for before, after in ((block, mixed), (alloc, group), (group, last), (skipped, taken)):
            graph.add_successor(before, after)
        for worker in self.workers(trace=1):
            for _ in range(2):
                a, b, c = np.zeros(100, "i4"), np.zeros(48, "i4"), np.array([3] + [0] * 7, "i4")
                worker.run(graph, a, b, c, np.array([0, 1], "i4"))
                np.testing.assert_array_equal(a, [1006] * 10 + [1001] * 90)
                np.testing.assert_array_equal(b, 48)
                self.assertEqual(c.tolist(), [3, 208, 10008, 499500, 27, 0, 0, 0])
                tasks = list(worker.trace.list_tasks())
                self.assertEqual([task.priority for task in tasks], [0, 3, 0, 0, 1, 0, 0, 2, 2])
                self.assertEqual(tasks[3].name, "alloc")

        def terms(**choices):
            args = Pto.TaskArgs(x.update(), 1)
            for name, value in choices.items():
                getattr(args, name)(value)
            return args
        graph = Pto.Graph()
        x = graph.add_argument(4, "i4")
        foreign = Pto.Tensor.of(np.zeros(4, "i4"))
        for words, call in (
                (r'^test_blocks\.py:\d+: task 0: kernel "scratch": argument 1 is scratch memory, which each launch makes',
                 lambda: graph.add_task(self.scratch, x.update(), (foreign, Pto.Direction.SCRATCH))),
                ("its condition is no tensor of this graph", lambda: graph.add_task(self.add, x.update(), 1, when=foreign)),
                ("an element that its tensor does not have", lambda: graph.add_task(self.add, x.update(), 1, when=(x, 4))),
                ("the arguments are for a cluster: in a graph nobody allocates one", lambda: graph.add_task(self.add, terms(set_cluster=1))),
                (r"which tasks it comes after: only a submit has that, and add_successor\(\)", lambda: graph.add_task(self.add, terms(add_after=1))),
                ("block_dim is 0: a task has 1 to", lambda: graph.add_task(self.block, x.update(), 1, block_dim=0)),
                ("there is no priority 4", lambda: graph.add_task(self.add, x.update(), 1, priority=4)),
                ('kernel "vector" is for the AIV, but it is given as aic', lambda: graph.add_mixed(self.vector, None, None, x.update(), x.update())),
                ("a mixed task has at least one kernel", lambda: graph.add_mixed(None, None, None)),
                ("a group has 1 kernels and 2 lists", lambda: graph.add_group([self.add], [[x.update(), 1]] * 2)),
                ('member 1 of a group: kernel "add": argument 0 is no tensor', lambda: graph.add_group([self.add] * 2, [[x.update(), 1], [foreign.update(), 1]])),
                ("of a group, whose kernels are its blocks", lambda: graph.add_group([self.add], [terms(set_block_dim=2)])),
                ("argument 0 of 1 is nothing that it uses", lambda: graph.add_order(5))):
            with self.subTest(words), self.assertRaisesRegex(GLib.Error, words):
                call()
        self.assertEqual(graph.get_n_tasks(), 0)
        graph.add_task(self.meet, x.update(), block_dim=49, sync_start=True)
        with Pto.Worker(platform="a2a3sim") as worker, self.assertRaisesRegex(GLib.Error, r"test_blocks\.py:\d+: .*49 members need AIV at once; this machine has 48"):
            worker.run(graph, np.zeros(4, "i4"))

    def test_refused(self):
        """One sentence with task, argument and what to do; and the run goes on."""
        x, freed = np.zeros(100, "i4"), []

        def submit(orch, x, **said):
            return orch.submit(self.meet, x.update(), **said)

        def conditional(x):
            args = Pto.TaskArgs(x.update())
            args.set_condition(x, [0])
            return args

        def in_freed(orch, x):
            freed.append(orch.allocate_cluster())
            orch.free_cluster(freed[-1])
            submit(orch, x, cluster=freed[-1])

        def scope_over(orch, x):
            with orch.scope():
                cluster = orch.allocate_cluster()
            submit(orch, x, cluster=cluster)

        wanted = 'kernel "meet": block_dim is {}: a whole number, 1 to 268435455, is wanted'
        cases = [(lambda orch, x, n=n: submit(orch, x, block_dim=n), TypeError, wanted.format(n)) for n in (2.0, True, False, 2**40)]
        cases += [
            (lambda orch, x: submit(orch, x, block_dim="4"), TypeError, wanted.format("'4'")),
            (lambda orch, x: submit(orch, x, block_dim=0), GLib.Error, 'kernel "meet": block_dim is 0: a task has 1 to 268435455 blocks'),
            (lambda orch, x: submit(orch, x, block_dim=-3), GLib.Error, "block_dim is -3: a task has 1 to"),
            (lambda orch, x: submit(orch, x, block_dim=4, sync_start=4), TypeError, 'kernel "meet": sync_start is 4: True or False'),
            (lambda orch, x: submit(orch, x, block_dim=49, sync_start=True), GLib.Error,
             'kernel "meet": block_dim is 49, and with sync_start all blocks begin at once, but this chip has cores for 48: submit fewer'),
            (lambda orch, x: orch.submit_mixed(self.cube, self.vector, None, x.update(), x.update(), block_dim=25, sync_start=True),
             GLib.Error, 'kernel "cube": block_dim is 25, .* cores for 24'),
            (lambda orch, x: orch.submit_mixed(self.vector, self.cube, None, x.update()), GLib.Error,
             'kernel "vector" is for the AIV, but it is given as aic of a mixed task'),
            (lambda orch, x: orch.submit_mixed(None, None, None, x.update()), GLib.Error, "a mixed task has at least one kernel"),
            (lambda orch, x: orch.submit_group([self.meet_cube] * 25, x.update()), GLib.Error,
             'kernel "meet_cube": its task needs 25 AIC cores of the chip at once, which this one has 24 of'),
            (lambda orch, x: orch.submit_group([], x.update()), GLib.Error, "a group has at least one kernel"),
            (lambda orch, x: orch.submit_group([self.meet, self.meet], args_list=[[x.update()]]), GLib.Error,
             "a group has 2 kernels, 1 lists of arguments and 0 cores: it needs a kernel, a list for each"),
            (lambda orch, x: orch.submit_group([self.meet] * 2, x.update(), cores=[3]), GLib.Error, "2 lists of arguments and 1 cores"),
            (lambda orch, x: orch.submit_group([self.meet] * 2, x.update(), cores=[1, 48]), GLib.Error,
             r'member 1 of a group \(kernel "meet"\) is for AIV48; this chip has AIV0 to AIV47'),
            (lambda orch, x: orch.submit_group([self.meet_cube, self.meet, self.meet], x.update(), cores=[3, 3, 3]), GLib.Error,
             "members 1 and 2 of a group are both for AIV3, and begin at once"),
            (lambda orch, x: orch.submit_group([self.meet_cube], x.update(), cores=["AIV3"]), ValueError, "member 0 is for 'AIV3': a core of its kernel's type"),
            (lambda orch, x: orch.submit_group([self.meet], x.update(), args_list=[[x.update()]]), TypeError, "one or the other"),
            (lambda orch, x: orch.submit_group([self.meet] * 2, args_list=[[x.update()], [Pto.Tensor.of(np.zeros(2, "i4")).as_read_only().update()]]),
             GLib.Error, r'member 1 of a group: kernel "meet": argument 0 '),
            (lambda orch, x: orch.submit_group([self.meet] * 2, args_list=[[x.read()] * 100, [x.read()] * 100]), GLib.Error,
             "the members of a group have 200 arguments together; a task takes at most 128"),
            (lambda orch, x: orch.submit_group([self.meet] * 2, args_list=[conditional(x), conditional(x)]), GLib.Error,
             "the arguments of two members have a condition: a group runs as a whole"),
            (lambda orch, x: submit(orch, x, cluster=99), GLib.Error, 'kernel "meet": cluster 99 is not allocated in this run'),
            (lambda orch, x: submit(orch, x, cluster=1.5), TypeError, 'kernel "meet": cluster is 1.5: a number that allocate_cluster'),
            (in_freed, GLib.Error, "cluster . is not allocated in this run"),
            (scope_over, GLib.Error, "cluster . is not allocated in this run"),
            (lambda orch, x: submit(orch, x, cluster=freed[0]), GLib.Error, "is not allocated in this run"),  # of the run before
            (lambda orch, x: orch.free_cluster(freed[0]), GLib.Error, "is freed, but it is not allocated in this run"),
            (lambda orch, x: orch.free_cluster(0.0), TypeError, "integer"),
            (lambda orch, x: orch.dup_cluster_cores(24, Pto.CoreType.AIC), GLib.Error, "there is no cluster 24: this chip has 24"),
            (lambda orch, x: orch.submit(self.scratch, x.update(), (x, Pto.Direction.SCRATCH)), GLib.Error,
             'kernel "scratch": argument 1 is scratch memory, .* a type and a shape only'),
            (lambda orch, x: orch.submit(self.meet, Pto.TaskArgs(x.update()), block_dim=4), TypeError, "a TaskArgs says itself"),
            (lambda orch, x: orch.submit_sub_group(None, []), TypeError, "is not registered"),
        ]
        for worker in self.workers():
            for refused, error, words in cases:
                def graph(orch, x):
                    orch.submit(self.block, x.update(), 3, block_dim=4)
                    with self.assertRaisesRegex(error, words):
                        refused(orch, x)
                    orch.submit(self.block, x.update(), 4, block_dim=4)
                with self.subTest(words=words):
                    x[:] = 0
                    worker.run(graph, x)
                    np.testing.assert_array_equal(x, [87] * 4 + [0] * 96)
                    self.assertEqual(worker.statistics.tasks, 2)

    def test_levels(self):
        """What is for chips is refused above them with what is there instead; scratch memory is there."""
        with Pto.Worker(level=3, sub_workers=2) as worker:
            def scratch(args):
                args[1][:] = np.arange(1000)
                args[0][0] += args[1].sum()

            handle, total = worker.register(scratch), Pto.Buffer.array(1, "i8")

            def graph(orch, total):
                for _ in range(10):
                    orch.submit_sub(handle, [total.update(), orch.scratch(1000, "i8")])
                for submit in (lambda: orch.submit(self.block, total.update(), block_dim=4), lambda: orch.submit_mixed(self.cube, None, None),
                               lambda: orch.submit_group([self.cube]), orch.allocate_cluster, lambda: orch.free_cluster(0)):
                    with self.assertRaisesRegex(GLib.Error, "a task of level 3 runs a registered callable: use submit_next_level or submit_sub"):
                        submit()
                args = Pto.TaskArgs(total.update())
                args.set_block_dim(4)
                with self.assertRaisesRegex(GLib.Error, 'task of "scratch": the arguments have a block_dim, which is for kernels'):
                    orch.submit_sub(handle, args)
                self.assertEqual(orch.n_clusters, 0)
            worker.run(graph, total)
            self.assertEqual(total[0], 4995000)
        with Pto.Worker(platform="a2a3sim") as worker, Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(lambda args: None)
            with self.assertRaisesRegex(GLib.Error, "use submit, or submit_group for several at once"):
                worker.run(lambda orch: orch.submit_sub_group(handle, [[], []]))


tap.main()
