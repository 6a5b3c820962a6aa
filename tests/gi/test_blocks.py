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
                by_hand = Pto.Graph.new()
                made = by_hand.make_tensor(1000, "i4")
                with self.assertRaisesRegex(GLib.Error, 'kernel "scratch": argument 1: a task that is added by hand has no scratch'):
                    by_hand.add_task(self.scratch, by_hand.add_argument(1, "i4").update(), (made, Pto.Direction.SCRATCH))

    def test_refused(self):
        """One sentence with task, argument and what to do; and the run goes on."""
        x, freed = np.zeros(100, "i4"), []

        def submit(orch, x, **said):
            return orch.submit(self.meet, x.update(), **said)

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
            (lambda orch, x: orch.submit_mixed(self.cube, None, None, x.update(), when=x), TypeError, "when"),
            (lambda orch, x: orch.submit_group([self.meet_cube] * 25, x.update()), GLib.Error,
             'kernel "meet_cube": its task needs 25 AIC cores of the chip at once, which this one has 24 of'),
            (lambda orch, x: orch.submit_group([], x.update()), GLib.Error, "a group has at least one kernel"),
            (lambda orch, x: submit(orch, x, block_dim=4, sync_start=True, when=x), GLib.Error, r"\(sync_start\) has no condition"),
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
