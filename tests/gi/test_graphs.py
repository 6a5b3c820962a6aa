# test_graphs.py: are graphs captured, built by hand and launched from Python?
# SPDX-License-Identifier: LGPL-2.1-or-later
import functools
import asyncio
import ctypes
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

# y = x + number, element by element.
ADD = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const float *x = (const float *) (uintptr_t) in->buffer.addr + in->start_offset;
  float *y = (float *) (uintptr_t) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = x[i] + (float) args[2];
}
"""

# x + 1, read long before it is written: who comes between is lost.
COUNT = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) args[0];
  volatile float *y = (volatile float *) (uintptr_t) x->buffer.addr + x->start_offset;

  for (uint64_t i = 0; i < x->shapes[0]; i++)
    {
      float value = y[i];

      for (volatile int k = 0; k < 20000; k++)
        ;
      y[i] = value + 1;
    }
}
"""

# y += x
JOIN = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *to = (const TensorData *) args[0];
  const TensorData *from = (const TensorData *) args[1];

  for (uint64_t i = 0; i < to->shapes[0]; i++)
    ((float *) (uintptr_t) to->buffer.addr)[to->start_offset + i]
      += ((const float *) (uintptr_t) from->buffer.addr)[from->start_offset + i];
}
"""

# y = x + 1 + number
GRAPH = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 3 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor x = pto2_rt_arg_tensor (rt, 0), y = pto2_rt_arg_tensor (rt, 1);
  Tensor made = make_tensor (x.shapes, x.ndims, x.dtype);
  PTOParam first[] = { make_input_param (x), make_output_param (made), make_scalar_param (1) };
  PTOParam second[] = { make_input_param (made), make_output_param (y), make_scalar_param (args[2]) };
  const uint64_t index[1] = { 0 };
  float value;

  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, first, 3);
  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, second, 3);
  if (args[2] == 99)
    pto2_rt_get_element (rt, &y, index, &value);
  return 0;
}
"""


@unittest.skipIf(np is None, "no numpy")
class Graphs(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-graphs-")
        self.addCleanup(shutil.rmtree, self.directory)
        for name, text in ("add.c", ADD), ("graph.c", GRAPH):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.add = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(self.directory, "add.c"), None)

    def each(self):
        for backend, isolate in itertools.product(("par", "det", "threads"), (False, True)):
            with self.subTest(backend=backend, isolate=isolate), \
                    Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                worker.set_parameter("backend", backend)
                worker.set_parameter("trace", "1")
                yield worker

    def function(self, orch, x, y):
        made = orch.tensor(8)
        with orch.scope():
            orch.submit(self.add, x.read(), made.write(), 1)
            orch.submit(self.add, made.view([4], [4]).read(), y.view([4], [4]).write_existing(), 2)
            orch.submit(self.add, made.view([4], [0]).read(), y.view([4], [0]).write_existing(), 2)

    def test_numbers(self):
        """One that is given to a capture is a part of the graph, and is told as what it is."""
        for worker in self.each():
            x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
            graph = worker.capture(lambda orch, x, y, number: orch.submit(self.add, x.read(), y.write_existing(), 1), x, y, 2.5)
            worker.run(graph, x, y, 2.5)
            for given, told in ((-1.25, "the number 2.5, for which it was captured, but -1.25 is given"),
                                (3, r"the number 2.5 \(a float\), for which it was captured, but 3 \(an integer\) is given"),
                                (ctypes.c_double(2.5), r"2.5 \(a float\), for which it was captured, but 2.5 \(a double\)")):
                with self.assertRaisesRegex(GLib.Error, told):
                    worker.run(graph, x, y, given)
            whole = worker.capture(lambda orch, x, number: orch.submit(self.add, x.read(), x.write_existing(), 1), x, -7)
            with self.assertRaisesRegex(GLib.Error, "the number -7, for which it was captured, but 8 is given"):
                worker.run(whole, x, 8)

    def test_elements(self):
        """What a capture can not do is told by the name of the call."""
        x = np.zeros(8, np.float32)
        for worker in self.each():
            with self.assertRaisesRegex(GLib.Error, r"^get_element\(\) reads an element at once, and while a graph is captured"):
                worker.capture(lambda orch, x: orch.get_element(x, 0), x)
            with self.assertRaisesRegex(GLib.Error, r"^set_element\(\) writes an element at once"):
                worker.capture(lambda orch, x: orch.set_element(x, 0, value=1), x)

    def test_function(self):
        for worker in self.each():
            x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
            graph = worker.capture(self.function, x, y)
            self.assertEqual(y.tolist(), [0] * 8)
            self.assertEqual((graph.n_tasks, graph.n_edges, graph.n_arguments), (3, 2, 2))
            self.assertEqual(str(graph), "<Pto.Graph: 3 tasks of 1 kernel, 2 arguments>")
            for i in range(3):
                other, result = np.full(8, i, "f4"), np.zeros(8, "f4")
                worker.run(graph, other, result)
                self.assertEqual(result.tolist(), [i + 3] * 8)
                self.assertEqual(worker.statistics.tasks, 3)
                self.assertEqual([task.name for task in worker.trace.list_tasks()], ["add"] * 3)
            result[:] = 0
            asyncio.run(worker.run_async(graph, x, result))
            self.assertEqual(result.tolist(), (x + 3).tolist())

    def test_callback(self):
        """In GLib's main loop, like any other run."""
        for worker in self.each():
            x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
            graph, loop, ended = worker.capture(self.function, x, y), GLib.MainLoop(), []

            def done(source, result):
                try:
                    ended.append((source.run_finish if len(ended) < 1 else source.run_graph_finish)(result))
                except GLib.Error as error:
                    ended.append(error.message)
                loop.quit()
            worker.run_async(graph, x, y, callback=done)
            loop.run()
            worker.run_async(graph, x, callback=done)
            loop.run()
            self.assertEqual(y.tolist(), (x + 3).tolist())
            self.assertEqual(ended, [True, 'the graph takes 2 arguments, but 1 is given: the next one is 1 ("y")'])

    def test_another_worker(self):
        for worker in self.each():
            x, y = np.ones(8, "f4"), np.zeros(8, "f4")
            graph = worker.capture(self.function, x, y)
        with Pto.Worker(platform="a5sim") as other:
            other.run(graph, x, y)  # builds the kernel there
            self.assertEqual(y.tolist(), [4] * 8)

    def test_registered(self):
        for worker in self.each():
            chip = Pto.ChipOrchestration.new(os.path.join(self.directory, "graph.c"), None)
            chip.add_kernel(0, "plus", self.add)
            handle = worker.register(chip)
            x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
            graph = worker.capture(handle, x, y, 5)
            worker.run(graph, x, y, 5)
            self.assertEqual(y.tolist(), (x + 6).tolist())
            worker.unregister(handle)
            worker.run(graph, y, x, 5)
            self.assertEqual(x.tolist(), (y + 6).tolist())
            with self.assertRaisesRegex(Exception, "argument 2 of the graph is the number 5"):
                worker.run(graph, x, y, 6)
            handle = worker.register(chip)
            with self.assertRaisesRegex(Exception, r"graph.c:18: pto2_rt_get_element\(\) is a part of the run"):
                worker.capture(handle, x, y, 99)

    def test_refused(self):
        for worker in self.each():
            x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
            graph = worker.capture(self.function, x, y)
            with self.assertRaisesRegex(Exception, r'argument 1 \("y"\) of the graph is 8 float32, but 9 float32 is given'):
                worker.run(graph, x, np.zeros(9, "f4"))
            with self.assertRaisesRegex(Exception, r'argument 0 \("x"\) of the graph is 8 float32, but 8 int32 is given'):
                worker.run(graph, x.astype("i4"), y)
            with self.assertRaisesRegex(Exception, r'takes 2 arguments, but 1 is given: the next one is 1 \("y"\)'):
                worker.run(graph, x)
            with self.assertRaisesRegex(Exception, r'arguments 0 \("x"\) and 1 \("y"\) of the graph overlap'):
                worker.run(graph, x, x)
            with self.assertRaisesRegex(Exception, r'argument 1 \("y"\) of the graph is written'):
                worker.run(graph, x, np.frombuffer(bytes(32), "f4"))
            with self.assertRaisesRegex(Exception, "argument 1 lies in memory that is no argument of the run"):
                worker.capture(lambda orch, a: self.function(orch, a, Pto.Tensor.of(y)), x)
            with self.assertRaises(ZeroDivisionError):
                worker.capture(lambda orch, a: 1 / 0, x)
            worker.run(graph, x, y)
            self.assertEqual(y.tolist(), (x + 3).tolist())

    def test_names(self):
        """Arguments are called as parameters are, where that is known; or as somebody says, which a launch tells."""
        for worker in self.each():
            x, y = np.zeros(8, "f4"), np.zeros(8, "f4")
            graphs = [worker.capture(function, x, y) for function in (
                functools.partial(self.function), lambda orch, given, *rest: self.function(orch, given, *rest), lambda *given: self.function(*given))]
            graphs.append(worker.capture(lambda orch, args, config: self.function(orch, args.get_tensor(0), args.get_tensor(1)),
                                         Pto.TaskArgs(Pto.Tensor.of(x).read(), Pto.Tensor.of(y).update())))
            names = [[graph.dup_argument_name(i) for i in range(3)] for graph in graphs]
            self.assertEqual(names, [["x", "y", None], ["given", None, None], [None] * 3, [None] * 3])
            with self.assertRaisesRegex(GLib.Error, "argument 1 of the graph is 8 float32, but 9"):
                worker.run(graphs[3], x, np.zeros(9, "f4"))
            graphs[3].set_argument_name(1, "größe")
            for _ in range(2):
                with self.assertRaisesRegex(GLib.Error, r'argument 1 \("größe"\) of the graph is 8 float32, but 9'):
                    worker.run(graphs[3], x, np.zeros(9, "f4"))
            worker.run(graphs[3], x, y)
            self.assertEqual(y.tolist(), [3] * 8)
            graph = Pto.Graph()
            given, number = graph.add_argument(8, name="given"), graph.add_scalar_argument(name="number")
            graph.add_task(self.add, given.read(), given.update(), 1)
            self.assertEqual((number, [graph.dup_argument_name(i) for i in range(2)]), (1, ["given", "number"]))
            for words, wrong in ((r'argument 0 \("given"\) of the graph is 8 float32, but 4', (x[:4], 1)),
                                 (r'argument 1 \("number"\) of the graph is a number, but a tensor', (x, y)),
                                 (r'2 arguments, but 1 is given: the next one is 1 \("number"\)', (x,))):
                with self.assertRaisesRegex(GLib.Error, words):
                    worker.run(graph, *wrong)
            for index, name, words in ((2, "x", "the graph has no argument 2: it has 2"), (0, "", "argument 0 of the graph: a name has 1 to 100 bytes"),
                                       (1, "x" * 101, "a name has 1 to 100"), (1, "a\nb", "none of them a control character")):
                with self.assertRaisesRegex(GLib.Error, words):
                    graph.set_argument_name(index, name)

    def test_by_hand(self):
        for worker in self.each():
            graph = Pto.Graph()
            x, y = graph.add_argument(8), graph.add_argument([8], "f4")
            number = graph.add_scalar_argument()
            made = graph.tensor(8)
            last = graph.add_task(self.add, made.read(), y.write_existing(), 7)
            first = graph.add_task(self.add, x.read(), made.write(), 1)
            graph.add_successor(first, last)
            graph.bind_scalar(last, 2, number)
            with self.assertRaisesRegex(Exception, r'^test_graphs\.py:\d+: task 2: kernel "add": argument 0 is no tensor of this graph'):
                graph.add_task(self.add, Pto.Tensor.of(np.zeros(3, "f4")).read(), y.write(), 1)
            with self.assertRaisesRegex(Exception, 'kernel "add": 200 arguments; a task takes at most 128'):
                graph.add_task(self.add, *[x.read()] * 200)
            with self.assertRaisesRegex(Exception, "the graph has no task 2: it has 2"):
                graph.add_successor(first, 2)
            for value in 4, 9:
                a, b = np.arange(8, dtype="f4"), np.zeros(8, "f4")
                worker.run(graph, a, b, value)
                self.assertEqual(b.tolist(), (a + 1 + value).tolist())
            with self.assertRaisesRegex(Exception, "the graph is complete"):
                graph.add_task(self.add, x.read(), y.write(), 1)

    def test_updates_by_hand(self):
        """They take turns where they overlap, and nowhere else; what comes before and behind them is said by hand."""
        kernel = os.path.join(self.directory, "count.c")
        with open(kernel, "w", encoding="utf-8") as file:
            file.write(COUNT)
        count = Pto.Callable.kernel(kernel)
        for worker in self.each():
            graph = Pto.Graph()
            x, y, made = graph.add_argument(8), graph.add_argument(4), graph.make_tensor(4)
            first = graph.add_task(self.add, y.read(), made.write(), 0)
            last = graph.add_task(self.add, made.read(), y.write_existing(), 100)
            for i in range(24):
                # Two regions, then one that joins them; in memory of the graph's, too.
                graph.add_task(count, (x.view([3], [0]), x.view([3], [5]), x.view([4], [2]))[i % 3].commute())
                update = graph.add_task(count, made.commute())
                graph.add_successor(first, update)
                graph.add_successor(update, last)
            for _ in range(2):
                a, b = np.zeros(8, "f4"), np.full(4, 7, "f4")
                worker.run(graph, a, b)
                self.assertEqual(a.tolist(), [8, 8, 16, 8, 8, 16, 8, 8])
                self.assertEqual(b.tolist(), [131] * 4)
                times = {}
                for task in worker.trace.list_tasks():
                    times.setdefault(task.name, []).append(task)
                self.assertEqual({name: len(tasks) for name, tasks in times.items()}, {"add": 2, "count": 48})
            with self.assertRaisesRegex(GLib.Error, "the graph is complete"):
                graph.add_task(count, x.commute())

    def test_reductions_by_hand(self):
        """By an operator of the chip, and by a kernel; what comes after one of them sees all that was combined by then."""
        paths = []
        for name, text in ("count.c", COUNT), ("join.c", JOIN):
            paths.append(os.path.join(self.directory, name))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        count, join = [Pto.Callable.kernel(path) for path in paths]
        for worker in self.each():
            graph = Pto.Graph()
            x, y, z = [graph.add_argument(4) for _ in range(3)]
            last = graph.add_task(self.add, x.read(), y.write_existing(), 100)
            for i in range(40):
                graph.add_successor(graph.add_task(count, x.reduce("sum")), last)
                graph.add_task(count, z.reduce(join, 0.0))
            graph.complete()
            self.assertEqual(graph.get_n_tasks(), 81 + 2 * (32 + 31 + 1))
            for _ in range(2):
                a, b, c = np.full(4, 7, "f4"), np.zeros(4, "f4"), np.full(4, 1, "f4")
                worker.run(graph, a, b, c)
                self.assertEqual(a.tolist(), [47] * 4)
                self.assertEqual(b.tolist(), [147] * 4)
                self.assertEqual(c.tolist(), [41] * 4)
                names = [task.name for task in worker.trace.list_tasks()]
                self.assertEqual({name: names.count(name) for name in set(names)},
                                 {"add": 1, "count": 80, "fill": 64, "sum": 32, "join": 32})
        graph = Pto.Graph()
        with self.assertRaisesRegex(GLib.Error, "task 0: kernel .count.: argument 0: .*no .* of"):
            graph.add_task(count, graph.add_argument(4, "bool").reduce("sum"))

    def test_stand_ins(self):
        """What a graph is built of has no memory, wherever that is wanted; nor has a graph at once."""
        sentence = "the tensor stands for an argument of a graph, or for what a task of it outputs, and has no memory of its own"
        graph = Pto.Graph()
        given = graph.add_argument(8), graph.tensor(8), graph.add_argument(8).view([4], [2]), graph.tensor(8).as_read_only()
        for stand_in in given:
            self.assertEqual(stand_in.address, 0)
            with self.assertRaisesRegex(ValueError, "no memory yet"):
                np.asarray(stand_in)
            self.assertIs(type(Pto.TaskArgs(stand_in.read())[0]), type(stand_in))
        for worker in self.each():
            x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
            captured = worker.capture(self.function, x, y)

            def submit(orch, y):
                for stand_in in given:
                    for call, words in (
                            (lambda: orch.submit(self.add, stand_in.read(), y.write_existing(), 1), 'kernel "add": argument 0: '),
                            (lambda: orch.submit(self.add, y.read(), stand_in.write(), 1), 'kernel "add": argument 1: '),
                            (lambda: orch.submit(self.add, y.read(), y.update(), 1, when=stand_in), 'kernel "add": its condition: '),
                            (lambda: orch.submit_order(stand_in.read()), "a task that only orders: argument 0: "),
                            (lambda: orch.fill(stand_in, 1), "a tensor is to be filled: "),
                            (lambda: orch.get_element(stand_in), "")):
                        with self.assertRaisesRegex(GLib.Error, words + sentence):
                            call()
            worker.run(submit, y)
            for call in (lambda: worker.run(captured, given[0], y), lambda: worker.capture(self.function, given[0], y)):
                with self.assertRaisesRegex(GLib.Error, "argument 0: " + sentence):
                    call()
            for shape in 8, [2, 4]:
                with self.assertRaisesRegex(GLib.Error, r"^alloc\(\) gives memory at once, which a graph has only"):
                    worker.capture(lambda orch, x: orch.alloc(shape), x)
            worker.run(captured, x, y)
            self.assertEqual(y.tolist(), (x + 3).tolist())

    def test_circle(self):
        graph = Pto.Graph()
        x = graph.add_argument(8)
        tasks = [graph.add_task(self.add, x.read(), x.write_existing(), 1) for _ in range(3)]
        for task in tasks:
            graph.add_successor(task, tasks[(task + 1) % 3])
        with self.assertRaisesRegex(Exception, r"^test_graphs\.py:\d+: task 0 of the graph comes after itself: 3 of 3"):
            graph.complete()

    def test_output_of_its_own(self):
        graph = Pto.Graph()
        made = graph.tensor(8)
        graph.add_task(self.add, made.read(), made.write(), 1)
        with self.assertRaisesRegex(Exception, r"^test_graphs\.py:\d+: task 0: argument 0 is a tensor that the task itself outputs"):
            graph.complete()

    def test_tasks_are_of_kernels(self):
        graph = Pto.Graph()
        sub = Pto.SubFunction.new("sum", lambda *_: None)
        graph = Pto.Graph()
        with self.assertRaisesRegex(Exception, 'task 0: "sum" is a function for a SUB worker, and a task that is added by hand runs a kernel: capture a function'):
            graph.add_task(sub, graph.add_argument(8).read())


tap.main()
