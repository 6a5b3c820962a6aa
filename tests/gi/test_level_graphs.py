# test_level_graphs.py: are orchestrations of workers above chips captured, and launched with other arguments?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import os
import random
import shutil
import signal
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Gio, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

N = 8
CHIP = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 3 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  PTOParam params[] = { make_input_param (pto2_rt_arg_tensor (rt, 0)), make_inout_param (pto2_rt_arg_tensor (rt, 1)),
                        make_scalar_param (args[2]) };

  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 3);
  return 0;
}
"""
# As mix() below.
KERNEL = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const int64_t *x = (const int64_t *) (uintptr_t) in->buffer.addr + in->start_offset;
  int64_t *y = (int64_t *) (uintptr_t) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = (3 * x[i] + y[i] + args[2]) % 1000003;
}
"""


def double(args):
    np.asarray(args[1])[:] = 2 * np.asarray(args[0]) + args[2]


def mix(args):
    x, y = np.asarray(args[0]), np.asarray(args[1])
    y[:] = (3 * x + y + args[2]) % 1000003


def copy(args):
    np.asarray(args[1])[:] = (5 * np.asarray(args[0]) + args[2]) % 1000003


def fail(args):
    raise LookupError(f"there is no {args[0]}")


def new(value=0, n=N):
    array = Pto.Buffer.array(n, "i8")
    array[:] = value
    return array


@unittest.skipIf(np is None, "no numpy")
class LevelGraphs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="pto-level-graphs-")
        for name, text in ("chip.c", CHIP), ("mix.c", KERNEL):
            with open(os.path.join(cls.directory, name), "w", encoding="utf-8") as file:
                file.write(text)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def chip(self):
        chip = Pto.ChipOrchestration.new(os.path.join(self.directory, "chip.c"), None)
        chip.set_name("chip")
        chip.add_kernel(0, "mix", Pto.Callable.kernel(os.path.join(self.directory, "mix.c")))
        return chip

    def refused(self, words, call, *args, **more):
        with self.assertRaisesRegex(Exception, words):
            call(*args, **more)

    def test_two_tasks(self):
        """The same numbers, statistics and names, a hundred times, with other arguments."""
        with Pto.Worker(level=3, sub_workers=2) as worker:
            worker.set_parameter("trace", 1)
            handle = worker.register(double)

            def function(orch, x, y):
                made = orch.tensor(N, "i8")
                orch.submit_sub(handle, [x.read(), made.write(), 1])
                orch.submit_sub(handle, [made.read(), y.write_existing(), 2])
            x, y = new(range(N)), new()
            graph = worker.capture(function, x, y)
            self.assertEqual(y.tolist(), [0] * N)
            self.assertEqual(worker.statistics.tasks, 0)
            self.assertEqual(str(graph), "<Pto.Graph: 2 tasks of 1 callable, 2 arguments>")
            self.assertEqual((graph.n_tasks, graph.n_edges, graph.n_arguments), (2, 1, 2))
            worker.run(function, x, y)
            self.assertEqual(y.tolist(), [4 * i + 4 for i in range(N)])
            for i in range(100):
                other, result = (new(), new()) if i % 10 == 0 else (other, result)
                other[:] = i
                worker.run(graph, other, result)
                self.assertEqual(result.tolist(), [4 * i + 4] * N)
                self.assertEqual(worker.statistics.tasks, 2)
                self.assertEqual([task.name for task in worker.trace.list_tasks()], ["double"] * 2)
                self.assertEqual(worker.trace.get_n_edges(), 1)
            result[:] = 0
            asyncio.run(worker.run_async(graph, x, result))
            self.assertEqual(result.tolist(), y.tolist())

    def test_registered(self):
        """What is registered is captured like a function, and its graph outlives the registration."""
        with Pto.Worker(level=3, sub_workers=1) as worker:
            what = Pto.Callable.function(double)
            handle = worker.register(what)

            def function(orch, args, config):
                orch.submit_sub(handle, [Pto.Tensor.of(args[0]).read(), Pto.Tensor.of(args[1]).write_existing(), 3])
            orchestration = worker.register(function)
            x, y = new(4), new()
            graph = worker.capture(orchestration, x, y)
            worker.unregister(orchestration)
            worker.run(graph, x, y)
            self.assertEqual(y.tolist(), [11] * N)
            worker.unregister(handle)
            for _ in range(2):
                self.refused('the graph has tasks of "double", which is not registered on L3/0: register it there before the launch, the '
                             'same callable', worker.run, graph, x, y)
                worker.register(double)  # another one
            worker.register(what)
            x[:] = 5
            worker.run(graph, x, y)
            self.assertEqual(y.tolist(), [13] * N)

    # --- everything that a task can be ---

    def kinds(self, orch, x, y, part):
        """Chips and SUB workers, named ones and groups, orders, numbers, choices, memory of the run."""
        config = Pto.CallConfig()
        config.block_dim = 1
        halves = [(a.view([N // 2], [0]), a.view([N // 2], [N // 2])) for a in (x, y)]
        made, room = orch.tensor(N, "i8"), orch.alloc(N, "i8")
        orch.submit_sub(part.copy, [x.read(), made.write(), 1])
        orch.submit_sub(part.copy, [x.read(), room.write_existing(), 2], worker=1)
        first = orch.last_task
        with orch.scope():
            inner = orch.tensor(N, "i8")
            orch.submit_sub(part.copy, [made.read(), inner.write(), 3])
            orch.priority = 2
            orch.submit_next_level(part.chip, [inner.read(), y.update(), 4], config)
            orch.submit_next_level(part.chip, [room.read(), y.update(), 5], worker=1)
            orch.priority = 0
        order = orch.submit_order(y.read(), after=first)
        orch.submit_sub_group(part.mix, [[halves[0][k].read(), halves[1][k].update(), 6 + k] for k in range(2)], workers=[1, 0])
        orch.submit_next_level_group(part.chip, [[halves[0][k].read(), halves[1][k].update(), 8 + k] for k in range(2)])
        orch.submit_sub(part.mix, [made.read(), y.commute(), 10])
        orch.submit_sub(part.mix, [room.read(), y.commute(), 11])
        with orch.manual_scope():
            orch.submit_sub(part.mix, [x.read(), y.update(), 12], after=[orch.last_task, orch.last_task - 1])
            orch.submit_sub(part.mix, [x.read(), y.update(), 13], after=[orch.last_task, order])

    def expected(self, x):
        made, room = (5 * x + 1) % 1000003, (5 * x + 2) % 1000003
        y = (3 * ((5 * made + 3) % 1000003) + 4) % 1000003
        y = (3 * room + y + 5) % 1000003
        k = np.repeat([0, 1], N // 2)
        for add in (3 * x + 6 + k, 3 * x + 8 + k, 3 * made + 10, 3 * room + 11, 3 * x + 12, 3 * x + 13):
            y = (y + add) % 1000003
        return y

    def test_kinds(self):
        for mode, trace in ("process", 1), ("thread", 0):
            with self.subTest(mode=mode), Pto.Worker(level=3, devices=2, sub_workers=2, child_mode=mode) as worker:
                worker.set_parameter("trace", trace)
                part = type("Part", (), {})
                part.copy, part.mix, part.chip = map(worker.register, (copy, mix, self.chip()))
                x, y = new(range(N)), new()
                worker.run(lambda orch, x, y: self.kinds(orch, x, y, part), x, y)
                self.assertEqual(y.tolist(), self.expected(x).tolist())
                names = sorted(task.name for task in worker.trace.list_tasks()) if trace else []
                edges = worker.trace.get_n_edges() if trace else 0
                tasks = worker.statistics.tasks
                graph = worker.capture(lambda orch, x, y: self.kinds(orch, x, y, part), x, y)
                self.assertEqual(graph.n_tasks, tasks)
                for i in range(5):
                    other, result = new(np.arange(N) + i), new()
                    worker.run(graph, other, result)
                    self.assertEqual(result.tolist(), self.expected(other).tolist())
                    self.assertEqual(worker.statistics.tasks, tasks)
                    if trace:
                        self.assertEqual(sorted(task.name for task in worker.trace.list_tasks()), names)
                        self.assertEqual(worker.trace.get_n_edges(), edges)

    def test_level_four(self):
        """A capture keeps what is submitted below, not what becomes of it there."""
        seen = new()

        def below(orch, args, config):
            seen[0] += 1
            for n in range(2):
                orch.submit_sub(inner, [Pto.Tensor.of(args[0]).read(), Pto.Tensor.of(args[1]).update(), int(args[2]) + n])
        l3 = Pto.Worker(level=3, sub_workers=1)
        inner = l3.register(mix)
        with Pto.Worker(level=4, sub_workers=1) as worker:
            worker.set_parameter("trace", 1)
            whats = [Pto.Callable.function(what) for what in (below, double)]
            handle, own = map(worker.register, whats)
            worker.add_worker(l3)

            def function(orch, x, y):
                made = orch.tensor(N, "i8")
                orch.submit_sub(own, [x.read(), made.write(), 1])
                orch.submit_next_level(handle, [made.read(), y.update(), 7])
            x, y = new(range(N)), new()
            graph = worker.capture(function, x, y)
            self.assertEqual((seen[0], graph.n_tasks), (0, 2))
            for i in range(10):
                x[:], y[:] = np.arange(N) * i, 0
                worker.run(graph, x, y)
                self.assertEqual(y.tolist(), (6 * (2 * x + 1) + 15).tolist())
                self.assertEqual(seen[0], i + 1)
                self.assertEqual([task.name for task in worker.trace.list_tasks()], ["double", "below", "mix", "mix"])

            # Here there is a worker of level 3; where there is none, it says so, and nothing has run.
            with Pto.Worker(level=3, sub_workers=1) as other:
                for what in whats:
                    other.register(what)
                y[:] = 0
                self.refused('task 1 of the graph: "below" is for workers of level 3, and L3/0 has none', other.run, graph, x, y)
                self.assertEqual((y.tolist(), other.statistics.tasks), ([0] * N, 0))

    def test_other_kinds(self):
        """Workers have other kinds of workers below them, so that what they call these is something else."""
        what = Pto.Callable.function(double)

        def function(orch, x, y):
            made = orch.tensor(N, "i8")
            orch.submit_sub(self.handle, [x.read(), made.write(), 1])
            orch.submit_order(made.read())
            orch.submit_sub(self.handle, [made.read(), y.write_existing(), 2], worker=0)
        workers = [Pto.Worker(level=3, sub_workers=1), Pto.Worker(level=3, devices=1, sub_workers=1),
                   Pto.Worker(level=3, devices=2, sub_workers=2), Pto.Worker(level=4, sub_workers=1)]
        workers[3].add_worker(Pto.Worker(level=3, sub_workers=1))
        handles, graphs = [worker.register(what) for worker in workers], []
        for worker, self.handle in zip(workers, handles):
            graphs.append(worker.capture(function, new(), new()))
        for worker in workers:
            for i, graph in enumerate(graphs):
                x, y = new(i), new()
                worker.run(graph, x, y)
                self.assertEqual(y.tolist(), [4 * i + 4] * N)
        for worker in workers:
            worker.close()

    def test_other_workers(self):
        """Two at once, with numbers of their own for what they have; and those who can not."""
        with Pto.Worker(level=3, devices=2, sub_workers=2) as worker, Pto.Worker(level=3, devices=2, sub_workers=3) as other:
            part, (one, two) = type("Part", (), {}), map(Pto.Callable.function, (copy, mix))
            part.copy, part.mix, part.chip = map(worker.register, (one, two, self.chip()))
            for what in fail, self.chip(), two, double, one:
                other.register(what)
            graph = worker.capture(lambda orch, x, y: self.kinds(orch, x, y, part), new(), new())

            def launch(worker, results):
                for i in range(10):
                    x, y = new(i), new()
                    worker.run(graph, x, y)
                    results.append(y.tolist() == self.expected(x).tolist())
            results = [], []
            threads = [threading.Thread(target=launch, args=(w, r)) for w, r in zip((worker, other), results)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(results, ([True] * 10, [True] * 10))
        x, y = new(), new()
        with Pto.Worker(level=3, devices=1, sub_workers=2) as small:
            for what in self.chip(), one, two:
                small.register(what)
            self.refused(r"task \d+ of the graph: L3/0 has no worker 1: there is only number 0", small.run, graph, x, y)
        with Pto.Worker(level=3, devices=2, sub_workers=1) as small:
            for what in self.chip(), one, two:
                small.register(what)
            self.refused("task 2 of the graph: L3/0 has no SUB worker 1: there is only number 0", small.run, graph, x, y)
        with Pto.Worker(level=3, sub_workers=2) as small:
            for what in self.chip(), one, two:
                small.register(what)
            self.refused('"chip" is for chips, and L3/0 has none', small.run, graph, x, y)
        self.assertEqual(y.tolist(), [0] * N)
        for isolate in False, True:
            with Pto.Worker(platform="a2a3sim", isolate=isolate) as chip:
                self.refused(r'the tasks of this graph are for workers \("copy" is a function for a SUB worker\), and L2/0 is a chip',
                             chip.run, graph, x, y)

    # --- what is refused ---

    def test_arguments(self):
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle = worker.register(double)
            graph = worker.capture(lambda orch, x, y, n: orch.submit_sub(handle, [x.read(), y.write_existing(), n]), new(), new(), 3)
            x, y = new(1), new()
            for words, given in ((r'takes 3 arguments, but 2 are given: the next one is 2 \("n"\)', (x, y)),
                                 (r'argument 0 \("x"\) of the graph is 8 int64, but 4 int64 is given', (new(0, 4), y, 3)),
                                 (r'argument 1 \("y"\) of the graph is 8 int64, but 8 float64 is given', (x, Pto.Buffer.array(N, "f8"), 3)),
                                 (r'argument 2 \("n"\) of the graph is the number 3, for which it was captured, but 4 is given', (x, y, 4)),
                                 (r'argument 1 \("y"\) of the graph is a tensor, but a number is given', (x, 1, 3)),
                                 (r'arguments 0 \("x"\) and 1 \("y"\) of the graph overlap, and a task writes there', (x, x, 3)),
                                 (r"graph: argument 1 lies in private memory \(0x[0-9a-f]+\): a child process would see a copy",
                                  (x, np.zeros(N, "i8"), 3)),
                                 ("graph: argument 0 lies in private memory", (np.zeros(N, "i8"), y, 3)),
                                 (r'argument 1 \("y"\) of the graph is written, but its memory can only be read', (x, Pto.Tensor.of(y).read(), 3))):
                with self.subTest(words):
                    self.refused(words, worker.run, graph, *given)
                    self.assertEqual((y.tolist(), worker.statistics.tasks), ([0] * N, 0))
            worker.run(graph, x, y, 3)
            self.assertEqual(y.tolist(), [5] * N)

    def test_seen_by_threads(self):
        """Of memory that only processes do not see a graph is launched where workers are threads."""
        with Pto.Worker(level=3, devices=1, child_mode="thread") as worker, Pto.Worker(level=3, devices=1) as other:
            handle = worker.register(self.chip())
            other.register(self.chip())
            x, y = np.arange(N), np.zeros(N, "i8")
            graph = worker.capture(lambda orch, x, y: orch.submit_next_level(handle, [x.read(), y.update(), 1]), x, y)
            for given in (x, y), (new(range(N)), y):
                y[:] = 0
                worker.run(graph, *given)
                self.assertEqual(y.tolist(), [3 * i + 1 for i in range(N)])
            y[:] = 0
            self.refused("graph: argument 0 lies in private memory", other.run, graph, x, new())
            self.refused("graph: argument 1 lies in private memory", other.run, graph, new(), y)
            self.assertEqual(y.tolist(), [0] * N)

    def test_not_kept(self):
        """What a capture can not keep ends it, says which task, and the worker goes on."""
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle, other = worker.register(double), new()
            x, y = new(1), new()

            def submit(*first):
                def function(orch, x, y):
                    for args in first:
                        orch.submit_sub(handle, args(orch, x, y))
                    orch.submit_sub(handle, [x.read(), y.write_existing(), 1])
                return function
            of = Pto.Tensor.of
            for words, function in (
                    (r'task 0 \("double"\): argument 0 lies in memory that is no argument of the run: a graph that is launched again '
                     "can not know it", submit(lambda orch, x, y: [of(other).read(), y.write_existing(), 1])),
                    (r'task 1 \("double"\): argument 2 is a number that points into memory of the graph',
                     submit(lambda orch, x, y: [x.read(), y.write_existing(), 1], lambda orch, x, y: [x.read(), y.write_existing(), x.get_address()])),
                    ("lies in private memory", submit(lambda orch, x, y: [of(np.zeros(N, "i8")).read(), y.write_existing(), 1])),
                    ("no task has output it", submit(lambda orch, x, y: [orch.tensor(N, "i8").read(), y.write_existing(), 1])),
                    ("task 0, which only orders: argument 0 lies in memory that is no argument",
                     lambda orch, x, y: orch.submit_order(of(other).read())),
                    ("this tensor has no memory yet", lambda orch, x, y: np.asarray(orch.alloc(N, "i8"))),
                    ("enough", lambda orch, x, y: [][orch.submit_order(x.read())] if False else (_ for _ in ()).throw(ValueError("enough")))):
                with self.subTest(words):
                    self.refused(words, worker.capture, function, x, y)
            graph = worker.capture(submit(), x, y)
            worker.run(graph, x, y)
            self.assertEqual(y.tolist(), [3] * N)

    def test_swimlane(self):
        """A record that nobody would see is refused where it is launched, as where it is submitted."""
        with Pto.Worker(level=3, devices=1) as worker:
            handle, config = worker.register(self.chip()), Pto.CallConfig()
            config.enable_l2_swimlane = 1
            function = lambda orch, x, y: orch.submit_next_level(handle, [x.read(), y.update(), 1], config)  # noqa: E731
            x, y = new(1), new()
            own = Pto.CallConfig()
            own.enable_l2_swimlane = 1
            self.refused("enable_l2_swimlane = 1 has no effect", worker.capture, function, x, y)
            graph = worker.capture(function, x, y, config=own)
            self.refused('task of "chip": enable_l2_swimlane = 1 has no effect', worker.run, graph, x, y)
            worker.run(graph, x, y, config=own)
            self.assertEqual(y.tolist(), [4] * N)

            # To files, one for each task, of the same names.
            config.output_prefix = os.path.join(self.directory, "lane-")
            function = lambda orch, x, y: [orch.submit_next_level(handle, [x.read(), y.update(), 1], config) for _ in range(2)]  # noqa: E731
            written = []
            for what in function, worker.capture(function, x, y):
                worker.run(what, x, y)
                written.append(sorted(name for name in os.listdir(self.directory) if name.startswith("lane-")))
                for name in written[-1]:
                    os.remove(os.path.join(self.directory, name))
            self.assertEqual(written, [["lane-task0-worker0-swimlane.json", "lane-task1-worker0-swimlane.json"]] * 2)

    # --- a launch is a run ---

    def test_failures(self):
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle, good = worker.register(fail), worker.register(double)

            def function(orch, x, y):
                orch.submit_sub(good, [x.read(), y.write_existing(), 1])
                orch.submit_sub(handle, [y.update()])
                orch.submit_sub(good, [y.read(), x.write_existing(), 1])
            x, y = new(1), new()
            graph = worker.capture(lambda orch, x, y: orch.submit_sub(good, [x.read(), y.write_existing(), 1]), x, y)
            failing = worker.capture(lambda orch, x, y: (function(orch, x, y)), x, y)
            for i in range(5):
                y[:] = 0
                with self.assertRaisesRegex(LookupError, "there is no") as caught:
                    worker.run(failing, x, y)
                notes = str(caught.exception.__cause__ or caught.exception) + "".join(getattr(caught.exception, "__notes__", []))
                self.assertRegex(notes, r'task 1|"fail"|there is no')
                self.assertEqual((x.tolist(), y.tolist()), ([1] * N, [3] * N))
                self.assertEqual(worker.statistics.tasks, 3)
                worker.run(graph, x, y)

    def test_killed(self):
        """A child that dies in a launch fails it, with its path; the next launch has another one."""
        marks = new()

        def die(args):
            marks[0] += 1
            if args[1] == marks[1]:
                os.kill(os.getpid(), signal.SIGKILL)
            np.asarray(args[0])[:] += 1
        with Pto.Worker(level=3, sub_workers=1, restart=Pto.Restart.ON_FAILURE) as worker:
            handle, x = worker.register(die), new()

            def function(orch, x):
                for n in range(20):
                    orch.submit_sub(handle, [x.update(), n])
            marks[1] = 99
            graph = worker.capture(function, x)
            for i in range(3):
                x[:], marks[1] = 0, i * 6
                self.refused(r'L3/0/sub0 .* while running "die", submitted at test_level_graphs.py:\d+; task %d failed' % (i * 6), worker.run, graph, x)
                self.assertEqual(x.tolist(), [i * 6] * N)
                x[:], marks[1] = 0, 99
                worker.run(graph, x)
                self.assertEqual(x.tolist(), [20] * N)

    def test_cancelled(self):
        marks = new()

        def wait(args):
            marks[0] = 1
            while marks[1] == 0 and not args.is_cancelled():
                pass
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle, x = worker.register(wait), new()
            graph = worker.capture(lambda orch, x: [orch.submit_sub(handle, [x.update()]) for _ in range(100)], x)
            for _ in range(3):
                marks[:] = 0
                cancellable = Gio.Cancellable()

                def cancel():
                    while marks[0] == 0:
                        pass
                    cancellable.cancel()
                thread = threading.Thread(target=cancel)
                thread.start()
                with self.assertRaises(GLib.Error) as caught:
                    worker.run(graph, x, cancellable=cancellable)
                thread.join()
                self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), caught.exception)
            marks[1] = 1
            worker.run(graph, x)
            self.assertEqual(worker.statistics.completed, 100)

    # --- any program ---

    def draw(self, rng):
        """Some steps: what is done with which of the arrays, by whom. Numbers only, so that it is the same each time."""
        steps = []
        for _ in range(rng.randrange(10, 60)):
            what = rng.choice(("sub", "sub", "sub", "chip", "group", "order", "make", "alloc", "open", "close"))
            part = [rng.choice(((0, N), (0, N // 2), (N // 2, N // 2), (2, 4))) for _ in range(2)]
            steps.append((what, rng.randrange(100), rng.randrange(100), part[0][0], part[1], rng.randrange(-1, 2), rng.randrange(1000),
                          rng.randrange(3), rng.randrange(20)))
        return steps

    def play(self, orch, part, steps, arrays):
        known, depth, ids = [list(arrays)], 0, []
        for what, a, b, begin, (to, length), worker, number, priority, before in steps:
            tensors = [t for scope in known for t in scope]
            begin = min(begin, N - length)
            x, y = tensors[a % len(tensors)].view([length], [begin]), tensors[b % len(tensors)].view([length], [to])
            after = ids[-before:][:1] if before > 15 and ids else ()
            orch.priority = priority
            if what == "sub":
                orch.submit_sub(part.mix, [x.read(), y.update(), number], worker=worker, after=after)
            elif what == "chip":
                orch.submit_next_level(part.chip, [x.read(), y.update(), number], worker=worker, after=after)
            elif what == "group":
                z = tensors[b % len(tensors)]
                orch.submit_sub_group(part.mix, [[tensors[a % len(tensors)].view([4], [4 * k]).read(), z.view([4], [4 * k]).update(), number + k]
                                                 for k in range(2)])
            elif what == "order":
                orch.submit_order(x.read(), after=after)
            elif what in ("make", "alloc"):
                made = orch.tensor(N, "i8") if what == "make" else orch.alloc(N, "i8")
                source = tensors[a % len(tensors)]
                orch.submit_sub(part.copy, [source.read(), made.write() if what == "make" else made.write_existing(), number])
                known[-1].append(made)
            elif what == "open" and depth < 5:
                orch.begin_scope()
                known.append([])
                depth += 1
                continue
            elif what == "close" and depth > 0:
                orch.end_scope()
                known.pop()
                depth -= 1
                continue
            else:
                continue
            ids.append(orch.last_task)
        for _ in range(depth):
            orch.end_scope()

    def test_random(self):
        """A program and its graph leave the same bits."""
        seed = int(os.environ.get("PTO_TEST_SEED", random.randrange(1 << 30)))
        print("# seed", seed)
        rng = random.Random(seed)
        with Pto.Worker(level=3, devices=2, sub_workers=2) as worker:
            part = type("Part", (), {})
            part.copy, part.mix, part.chip = map(worker.register, (copy, mix, self.chip()))
            for _ in range(20):
                steps = self.draw(rng)
                function = lambda orch, *arrays: self.play(orch, part, steps, arrays)  # noqa: E731
                arrays = [new() for _ in range(4)]
                graph = worker.capture(function, *arrays)
                for _ in range(3):
                    values = [[rng.randrange(1000003) for _ in range(N)] for _ in range(4)]
                    ways = []
                    for what in function, graph:
                        for array, value in zip(arrays, values):
                            array[:] = value
                        worker.run(what, *arrays)
                        ways.append([array.tolist() for array in arrays])
                        ways.append(worker.statistics.tasks)
                        arrays = [new() for _ in range(4)]
                    self.assertEqual(ways[:2], ways[2:], steps)


tap.main()
