# test_places.py: does it say where in the program a task is submitted?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In records and errors of runs, of graphs that are captured or built by hand, and of scopes: on chips, in processes of their
own too, and above them."""
import contextlib
import inspect
import itertools
import json
import os
import pathlib
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

NAME = os.path.basename(__file__)
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


def nothing(args):
    pass


def line_of(function, part):
    """Of the only line of it that holds that."""
    lines, first = inspect.getsourcelines(function)
    found = [first + i for i, line in enumerate(lines) if part in line]
    assert len(found) == 1, (part, found)
    return f"{NAME}:{found[0]}"


def submitted(trace):
    """Where, by task, in the order of their submits."""
    tasks = trace.list_tasks()
    return [json.loads(trace.explain_task_json(tasks.get_item(i).id)).get("submitted_at") for i in range(tasks.get_n_items())]


def opened(trace):
    scopes = json.loads(trace.describe_json(Pto.TraceTopic.SCOPES))["scopes"]
    return [scope.get("opened_at") for scope in scopes]


@unittest.skipIf(np is None, "no numpy")
class Places(unittest.TestCase):
    def setUp(self):
        directory = tempfile.mkdtemp(prefix="pto-places-")
        self.addCleanup(shutil.rmtree, directory)
        with open(os.path.join(directory, "add.c"), "w", encoding="utf-8") as file:
            file.write(ADD)
        self.add = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(directory, "add.c"), None)
        self.x, self.y = np.zeros(8, np.float32), np.zeros(8, np.float32)

    @contextlib.contextmanager
    def chip(self, backend="det", isolate=False, trace=True):
        with Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
            worker.set_parameter("backend", backend)
            worker.set_parameter("trace", trace)
            yield worker

    def each(self):
        for backend, isolate in itertools.product(("par", "det", "threads"), (False, True)):
            with self.subTest(backend=backend, isolate=isolate), self.chip(backend, isolate) as worker:
                yield worker

    def function(self, orch, x, y):
        with orch.scope():
            made = orch.tensor(8)
            orch.submit(self.add, x.read(), made.write(), 1)
            for i in range(2):
                orch.submit(self.add, [made.view([4], [4 * i]).read(), y.view([4], [4 * i]).write_existing(), 2])
        orch.submit_order(y.read())

    def expected(self):
        first, both, order = (line_of(self.function, part) for part in ("made.write()", "made.view(", "submit_order"))
        return [first, both, both, order]

    def test_chip(self):
        for worker in self.each():
            worker.run(self.function, self.x, self.y)
            self.assertEqual(self.y.tolist(), [3] * 8)
            self.assertEqual(submitted(worker.trace), self.expected())
            self.assertIn(line_of(self.function, "orch.scope()"), opened(worker.trace))
            graph = worker.capture(self.function, self.x, self.y)
            for _ in range(2):
                worker.run(graph, self.x, self.y)
                self.assertEqual(submitted(worker.trace), self.expected())

    def test_recorded_later(self):
        """A graph is captured by one worker, where nothing is recorded, and launched by another one."""
        with self.chip(trace=False) as worker:
            worker.run(self.function, self.x, self.y)
            graph = worker.capture(self.function, self.x, self.y)
        for worker in self.each():
            worker.run(graph, self.x, self.y)
            self.assertEqual(submitted(worker.trace), self.expected())

    def other(self, orch, x, y):
        made = orch.alloc(8)
        np.asarray(made)[:] = 1
        orch.fill(y, 7)
        orch.get_element(y, 0)
        orch.submit_group([self.add, self.add], made.read(), y.write_existing(), 2)
        orch.submit_mixed(None, self.add, None, made.read(), y.write_existing(), 3)
        with orch.manual_scope():
            orch.submit(self.add, made.read(), y.write_existing(), 4, priority=2)
        orch.with_scope(lambda orch: orch.submit(self.add, made.read(), y.write_existing(), 5))

    def test_other_calls(self):
        for worker in self.each():
            worker.run(self.other, self.x, self.y)
            places = submitted(worker.trace)
            self.assertEqual(sorted(places), sorted(line_of(self.other, part) for part in (
                "orch.alloc", "orch.fill", "orch.get_element", "submit_group", "submit_mixed", "priority=2", "orch.with_scope")))
            self.assertEqual(sorted(filter(None, opened(worker.trace))),
                             sorted(line_of(self.other, part) for part in ("orch.manual_scope", "orch.with_scope")))

    def test_alloc(self):
        """Is told as what it is: memory."""
        with self.chip() as worker:
            worker.run(self.other, self.x, self.y)
            tasks = list(worker.trace.list_tasks())
            self.assertEqual([task.name for task in tasks[:3]], ["alloc", "fill", "no kernel"])
            why = json.loads(worker.trace.explain_json(tasks[0]))
            self.assertEqual((why["kernel"], why["runs_nothing"], "start_ns" in why), ("alloc", True, False))
            self.assertRegex(worker.trace.explain(tasks[0]),
                             rf"^task 0 \(alloc\), submitted at {line_of(self.other, 'orch.alloc')}\nruns nothing(: complete at [\d.]+ us)?\n")
            self.assertNotIn("runs_nothing", json.loads(worker.trace.explain_json(tasks[1])))

    def by_hand(self):
        graph = Pto.Graph()
        x, y = graph.add_argument(8), graph.add_argument(8)
        made = graph.make_tensor(8)
        last = graph.add_task(self.add, made.read(), y.write_existing(), 2)
        first = graph.add_task(self.add, x.read(), made.write(), 1)
        graph.add_successor(first, last)
        return graph

    def test_by_hand(self):
        """A launch submits producers first, whatever their numbers are."""
        graph = self.by_hand()
        for worker in self.each():
            worker.run(graph, self.x, self.y)
            self.assertEqual(self.y.tolist(), [3] * 8)
            self.assertEqual(submitted(worker.trace), [line_of(self.by_hand, "made.write()"), line_of(self.by_hand, "made.read()")])

    def reducing(self):
        graph = Pto.Graph()
        x, total = graph.add_argument(8), graph.add_argument(8)
        for _ in range(2):
            graph.add_task(self.join, total.reduce("sum"), x.read())
        return graph

    def test_reduced_by_hand(self):
        """Tasks that fill and combine copies are where those are that reduce."""
        self.join = Pto.Kernel.new(Pto.CoreType.AIV, self.add.get_path(), None)
        with self.chip() as worker:
            worker.run(self.reducing(), self.x, self.y)
            places = submitted(worker.trace)
            self.assertGreater(len(places), 2)
            self.assertEqual(set(places), {line_of(self.reducing, "add_task")})

    def full(self, orch, x):
        with orch.scope():
            for _ in range(100):
                orch.submit_order(x.read())

    def test_errors(self):
        """Of a scope, also where nothing is recorded."""
        for isolate in False, True:
            with self.subTest(isolate=isolate), self.chip(isolate=isolate, trace=False) as worker:
                worker.set_parameter("task-window", 16)
                with self.assertRaisesRegex(GLib.Error, f"the scope opened at {line_of(self.full, 'orch.scope()')}, which is"):
                    worker.run(self.full, self.x)

    def lost(self, orch, x):
        orch.submit_order(x.read())
        orch.submit_order(x.read(), after=[77])

    def test_refused(self):
        for worker in self.each():
            with self.assertRaisesRegex(GLib.Error, rf"task 1 \(no kernel\), submitted at {line_of(self.lost, 'after=')}: it comes after task 77"):
                worker.run(self.lost, self.x)

    def level(self, orch, x):
        with orch.scope():
            orch.submit_sub(self.handle, [x.update()])
            orch.submit_order(x.read())
        orch.submit_sub_group(self.handle, [[x.update()], []])
        np.asarray(orch.alloc(8))[:] = 1

    def test_level(self):
        expected = [line_of(self.level, part) for part in ("submit_sub(", "submit_order", "submit_sub_group", "orch.alloc")]
        with Pto.Worker(level=3, sub_workers=2) as host:
            host.set_parameter("trace", "1")
            self.handle = host.register(nothing)
            x = Pto.Buffer.array(8)
            host.run(self.level, x)
            self.assertEqual(submitted(host.trace), expected)
            self.assertIn(line_of(self.level, "orch.scope()"), opened(host.trace))
            graph = host.capture(self.level_graph, x)
            host.run(graph, x)
            self.assertEqual(submitted(host.trace), [line_of(self.level_graph, part) for part in ("submit_sub(", "submit_order")])

    def level_graph(self, orch, x):
        orch.submit_sub(self.handle, [x.update()])
        orch.submit_order(x.read())


ORDERS = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 1 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  PTO2_SCOPE (rt)
  {
    for (uint64_t i = 0; i <= args[0]; i++)
      pto2_rt_submit_order (rt, NULL, 0, NULL, 0);
  }
  return 0;
}
"""


class Questions(unittest.TestCase):
    """What names a task can be asked."""
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pto-questions-"))
        self.addCleanup(shutil.rmtree, self.directory)
        (self.directory / "orders.c").write_text(ORDERS, encoding="utf-8")

    def recorded(self):
        with Pto.Worker(level=3, devices=2) as host:
            host.set_parameter("trace", "1")
            handle = host.register(Pto.ChipOrchestration.new(str(self.directory / "orders.c"), None))

            def graph(orch):
                orch.submit_next_level(handle, [0])
                orch.submit_next_level_group(handle, [[1], [2]], workers=[0, 1])
            host.run(graph)
            return host.trace

    def test_labels(self):
        trace = self.recorded()
        path = self.directory / "run.ptotrace"
        trace.save(path)
        for trace in trace, Pto.Trace.new_from_file(path):
            tasks = list(trace.list_tasks())
            inner = ["0/1:0", "1.0/1:0", "1.0/1:1", "1.1/1:0", "1.1/1:1", "1.1/1:2"]
            self.assertEqual(sorted(task.label for task in tasks), sorted(["0", "1", *inner]))
            for task in tasks:
                why = json.loads(trace.explain_json(task.label))
                self.assertEqual((why["task"], why["kernel"]), (str(task.id), task.name))
                self.assertEqual((why.get("path", "L3/0"), why.get("inside_of")), (task.path, task.label.rpartition("/")[0] or None))
            last = next(task for task in tasks if task.label == "1.1/1:2")
            self.assertIn(f"\ninside of task 1.1, on {last.path}: times are those of its run there\n", trace.explain(last))
            for name, told in (("1/1:0", r"task 1: 2 workers recorded what happened inside of it: say which of 1\.0 \(L2/\d\), 1\.1"),
                               ("1.2/1:0", r"task 1: 2 workers recorded"), ("0/0/0", "task 0: no|task 0: the trace has nothing"),
                               ("0/0", r"task 0: no such task is in the trace, which has 1; there is 1:0"), ("", '"" is no task'),
                               ("0/", '"0/" is no task'), ("4:0", '"4:0" is no task'), ("0x1", '"0x1" is no task')):
                with self.assertRaisesRegex(GLib.Error, told):
                    trace.explain(name)

    def test_numbers(self):
        trace = self.recorded()
        for task in 1, "1", "0:1":
            self.assertEqual(trace.explain_task(task), trace.explain("1"))
            self.assertEqual(json.loads(trace.explain_task_json(task))["task"], "1")
        for task in 1.5, None, True:
            with self.assertRaises(TypeError):
                trace.explain_task(task)
        with self.assertRaisesRegex(GLib.Error, '"-1" is no task'):
            trace.explain_task(-1)

    def test_topics(self):
        trace = self.recorded()
        self.assertEqual(trace.describe("critical-path"), trace.describe(Pto.TraceTopic.CRITICAL_PATH))
        self.assertEqual(trace.describe_json("overhead"), trace.describe_json(Pto.TraceTopic.OVERHEAD))
        with self.assertRaisesRegex(ValueError, "'path' is nothing that a trace is asked: summary, critical-path, "):
            trace.describe("path")

    def test_empty(self):
        """Of a trace that nobody has recorded all is said, too."""
        Pto.Trace().save(self.directory / "empty.ptotrace")
        trace = Pto.Trace.new_from_file(self.directory / "empty.ptotrace")
        self.assertEqual(trace.summarize(), Pto.Trace().summarize())
        self.assertEqual(list(trace.list_tasks()), [])
        with self.assertRaisesRegex(GLib.Error, "task 0: no such task is in the trace, which has 0"):
            trace.explain(0)

    def test_paths(self):
        trace = self.recorded()
        for save, name in ((trace.save, "a.svg"), (trace.save_svg, "b"), (trace.save_json, "c"), (trace.save_html, "d"), (trace.save_perfetto, "e")):
            save(self.directory / name)
            self.assertGreater((self.directory / name).stat().st_size, 100)


if __name__ == "__main__":
    tap.main()
