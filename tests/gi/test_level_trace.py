# test_level_trace.py: does the trace of a level show who did what, when and after whom, down to the cores?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SUB functions are witnesses: they write down when they were there, by the clock of the system. JSON and SVG are read
with parsers, and compared with what the program knows of its own graph."""
import collections
import json
import os
import re
import struct
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from trace_reader import EPS_US, Json, Slice  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "tool"))
import perfetto_reader  # noqa: E402

N = 64
ROUNDS = 4
# The processor's counter, by which a run is recorded, and the system's clock may drift apart.
SLACK_US = 1000.0
KILLER = """
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
void kernel_entry (int64_t *args) { kill (getpid (), SIGKILL); }
"""

def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


@unittest.skipIf(np is None, "no numpy")
class Trace(unittest.TestCase):
    def setUp(self):
        self.board = Pto.Buffer.array(1024, "i8")
        self.parts = Pto.Buffer.array([ROUNDS, 2, N], "f4")

    def chip_callable(self, path=os.path.join(here, "fill.c")):
        chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        chip.set_name("part")
        chip.add_kernel(0, "fill", Pto.Callable.kernel(path))
        return chip

    def host(self, backend, mode="process", **more):
        host = Pto.Worker(level=3, devices=2, sub_workers=2, child_mode=mode, **more)
        for i in range(2):
            chip = host.get_child(i)
            chip.set_parameter("backend", backend)
            chip.set_parameter("clusters", "2")
            chip.set_parameter("aicpu-threads", "2")
        host.set_parameter("trace", "1")
        return host

    def witness(self):
        board = self.board

        def witness(args):
            number = args[-1]
            board[3 * number] = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            time.sleep(0.0005)
            board[3 * number + 1] = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            board[3 * number + 2] = os.getpid()
        return witness

    def check_nested(self, outer, inner, n_each):
        """Each n of the inner slices lie in one of the outer, in order."""
        self.assertEqual(len(inner), n_each * len(outer))
        for i, one in enumerate(inner):
            self.assertGreaterEqual(one.start, outer[i // n_each].start - EPS_US)
            self.assertLessEqual(one.end, outer[i // n_each].end + EPS_US)

    def check_rounds(self, backend, mode):
        with self.host(backend, mode) as host:
            part, sub = host.register(self.chip_callable()), host.register(self.witness())

            def graph(orch, parts):
                for r in range(ROUNDS):
                    views = [parts.view([1, 1, N], [r, c, 0]) for c in range(2)]
                    for c in range(2):
                        orch.submit_next_level(part, [views[c].write_existing(), N, bits(r + c)], worker=c)
                    orch.submit_sub(sub, [views[0].read(), views[1].read(), r], worker=r % 2)

            self.assertIsNone(host.ref_trace())
            host.run(graph, self.parts)
            trace = host.ref_trace()
        self.assertIsNone(host.ref_trace())
        for r in range(ROUNDS):
            for c in range(2):
                self.assertTrue((self.parts[r, c] == r + c).all())

        # numbers
        self.assertEqual((trace.get_n_tasks(), trace.get_n_edges()), (3 * ROUNDS, 2 * ROUNDS))
        self.assertEqual([trace.dup_core_name(c) for c in range(trace.get_n_cores())],
                         ["L2/0", "L2/1", "sub0", "sub1"])
        self.assertFalse(trace.is_virtual())
        self.assertEqual(trace.get_dropped(), 0)
        path = trace.dup_critical_path()
        self.assertTrue(path and set(path) <= set(range(3 * ROUNDS)))

        # compared with itself, down to what the chips did
        diff = json.loads(trace.compare_json(trace))
        self.assertTrue(diff["same"])
        self.assertTrue(trace.compare(trace).endswith("nothing differs\n"))
        self.assertEqual([(worker["worker"], worker["runs"]["before"]) for worker in diff["workers"]],
                         [("L3/0/L2/0", ROUNDS), ("L3/0/L2/1", ROUNDS)])

        # JSON
        shown = Json(self, trace)
        self.check_perfetto(trace, shown)
        self.assertEqual(shown.root["metadata"]["tasks"], 3 * ROUNDS)
        self.assertEqual(shown.root["metadata"]["recorded"], trace.get_recorded())
        self.assertEqual(shown.root["metadata"]["sha256"], trace.get_sha256())
        rows = [shown.row("L3/0", name) for name in ("L2/0", "L2/1", "sub0", "sub1")]
        for c in range(2):
            self.assertEqual([s.args["task"] for s in rows[c]], [str(3 * r + c) for r in range(ROUNDS)])
            self.assertEqual({s.name for s in rows[c]}, {"part"})
            self.assertEqual({tuple(s.args["waited_for"]) for s in rows[c]}, {()})
        subs = sorted(rows[2] + rows[3], key=lambda s: int(s.args["task"]))
        self.assertEqual([s.args["task"] for s in subs], [str(3 * r + 2) for r in range(ROUNDS)])
        self.assertEqual([s.args["waited_for"] for s in subs],
                         [[str(3 * r), str(3 * r + 1)] for r in range(ROUNDS)])
        self.assertEqual([s.row[1] for s in subs], [f"sub{r % 2}" for r in range(ROUNDS)])
        for r, sub in enumerate(subs):
            for c in range(2):
                self.assertGreaterEqual(sub.start, rows[c][r].end - EPS_US)
        for row in rows:
            for before, after in zip(row, row[1:]):
                self.assertGreaterEqual(after.start, before.end - EPS_US)
            for s in row:
                self.assertLessEqual(s.args["submit_us"], s.args["ready_us"])
                self.assertLessEqual(s.args["ready_us"], s.args["dispatch_us"])
                self.assertLessEqual(s.args["dispatch_us"], s.start)
                self.assertLessEqual(s.end, s.args["complete_us"] + EPS_US)
                self.assertFalse(s.args["failed"])
        busy = [sum(s.end - s.start for s in row) for row in rows]
        for c in range(4):
            self.assertAlmostEqual(trace.get_core_utilization(c), busy[c] * 1000 / trace.get_elapsed_ns(), 3)
        raw = [flow for flow in shown.flows.values() if flow[0]["name"] == "RAW"]
        self.assertEqual(len(raw), 2 * ROUNDS)

        # witnesses: a slice holds its own, so between two slices is no more than between their witnesses
        for i, one in enumerate(subs):
            begin, end, pid = self.board[3 * i:3 * i + 3] / 1000
            self.assertGreaterEqual(one.end - one.start + SLACK_US, end - begin)
            for k, other in enumerate(subs):
                gap = (self.board[3 * k] - self.board[3 * i + 1]) / 1000
                self.assertLessEqual(other.start - one.end, gap + SLACK_US)

        # inside of the chips
        for c in range(2):
            inside = shown.below(f"L3/0/L2/{c}")
            self.check_nested(rows[c], inside, 1)
            self.assertEqual({s.name for s in inside}, {"fill"})
            orchestrators = [s for s in shown.row(f"L3/0/L2/{c} AICPU", "orchestrator") if s.name == "fill"]
            self.check_nested(rows[c], orchestrators, 1)
        self.check_lists(trace, shown)
        self.check_summary(trace, [f"{ROUNDS} runs, {ROUNDS} tasks inside"] * 2)
        self.check_svg(trace, backend)

    def check_perfetto(self, trace, shown):
        """Perfetto's own format shows what JSON does: the same slices on the same rows, and those inside of others."""
        data = trace.to_perfetto().get_data()
        other = perfetto_reader.Trace(data)
        processes, threads = {}, {}
        for event in shown.root["traceEvents"]:
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                threads[event["pid"], event["tid"]] = event["args"]["name"]
        slices = [((processes[e["pid"]], threads[e["pid"], e["tid"]]), e["name"], round(e["ts"] * 1000),
                   round((e["ts"] + e["dur"]) * 1000)) for e in shown.root["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sorted((item.row, item.name, item.start, item.end) for item in other.slices), sorted(slices))
        self.assertTrue(any(row[0].startswith("L3/0/L2/0 cluster") for row, *_ in slices))
        self.assertEqual(len(other.flows), sum(e["ph"] == "f" for e in shown.root["traceEvents"]))
        self.assertEqual(set(other.clocks), {3, 6})

    def check_lists(self, trace, shown):
        """What the lists say is what JSON says, over the whole tree and on one clock."""
        tasks, edges, cores = map(list, (trace.list_tasks(), trace.list_edges(), trace.list_cores()))
        self.assertEqual([task.id for task in tasks[:trace.get_n_tasks()]], list(range(trace.get_n_tasks())))
        self.assertEqual([(core.path, core.name, core.kind.value_nick) for core in cores[:4]],
                         [("L3/0", "L2/0", "worker"), ("L3/0", "L2/1", "worker"), ("L3/0", "sub0", "sub-worker"),
                          ("L3/0", "sub1", "sub-worker")])
        self.assertEqual({(core.path, core.cluster) for core in cores},
                         {("L3/0", -1)} | {(f"L3/0/L2/{c}", cluster) for c in range(2) for cluster in range(2)})
        self.assertEqual({(task.path, task.level, task.name) for task in tasks},
                         {("L3/0", 3, "part"), ("L3/0", 3, "witness"), ("L3/0/L2/0", 2, "fill"), ("L3/0/L2/1", 2, "fill")})
        rows = collections.defaultdict(list)
        for task in tasks:
            core = cores[task.core]
            self.assertEqual(core.path, task.path)
            rows[(core.path if core.cluster < 0 else f"{core.path} cluster {core.cluster}"), core.name].append(
                (task.start_ns, task.end_ns, task.name, str(task.id)))
            self.assertEqual([(member.id, member.core) for member in task.list_members()], [(task.id, task.core)])
            self.assertTrue(0 <= task.submit_ns <= task.start_ns <= task.end_ns)
            self.assertFalse(task.has_failed())
            self.assertEqual(str(task), f"<Pto.TraceTask: task {task.label} ({task.name}), which ran for "
                                        f"{task.end_ns - task.start_ns} ns>")
            why = json.loads(trace.explain_json(task.label))
            self.assertEqual((why["task"], why["kernel"], why.get("path", "L3/0")), (str(task.id), task.name, task.path))
            self.assertEqual(trace.explain(task), trace.explain(task.label))
            self.assertEqual(task.label, "/".join(filter(None, [why.get("inside_of"), str(task.id)])))
        self.assertEqual(len({task.label for task in tasks}), len(tasks))
        for row, slices in rows.items():
            self.assertEqual(sorted(slices), sorted(
                (round(s.start * 1000), round(s.end * 1000), s.name, s.args["task"]) for s in shown.row(*row)))
        self.assertEqual(len(edges), 2 * ROUNDS)
        for edge in edges:
            producer, consumer = tasks[edge.producer], tasks[edge.consumer]
            self.assertEqual((producer.name, consumer.name), ("part", "witness"))
            self.assertEqual(edge.producer_id, producer.id)
            self.assertTrue(edge.hazards & Pto.Hazards.RAW)
            self.assertRegex(str(edge), rf"^<Pto.TraceEdge: task {edge.consumer} waits for {producer.id:#x} \(RAW[A-Z, ]*\)>$")
            self.assertLessEqual(producer.end_ns, consumer.start_ns)
        for c in range(4):
            self.assertAlmostEqual(trace.get_core_utilization(c), cores[c].busy_ns / trace.get_elapsed_ns(), 12)
        for c, core in enumerate(cores):
            self.assertEqual(str(core), f"<Pto.TraceCore: {core.path} {core.name}, busy for {core.busy_ns} ns>")
            self.assertEqual(core.busy_ns, sum(task.end_ns - task.start_ns for task in tasks if task.core == c))

    def check_summary(self, trace, workers):
        lines = trace.summarize().splitlines()
        self.assertEqual(lines[1].split(" us")[0].split(", ")[:2],
                         [f"{trace.get_n_tasks()} tasks", f"{trace.get_n_edges()} edges"])
        self.assertRegex(lines[2], r"^2 workers busy \d+ %$")
        self.assertRegex(lines[3], r"^2 SUB workers busy \d+ %$")
        for i, text in enumerate(workers):
            self.assertEqual(len([line for line in lines if line.startswith(f"L2/{i}: {text}, cores busy ")]), 1)
        self.assertFalse([line for line in lines if "dropped" in line or "left out" in line or "own:" in line])

    def check_svg(self, trace, backend):
        text = trace.to_svg()
        root = xml.etree.ElementTree.fromstring(text.encode())
        space = "{http://www.w3.org/2000/svg}"
        labels = [node for node in root.iter(space + "text")]
        rows = {node.text: float(node.get("y")) for node in labels
                if "row" in (node.get("class") or "") and node.get("font-size") != "7"}
        self.assertLess(rows["L2/0"], rows["L2/1"])
        self.assertLess(rows["L2/1"], rows["sub0"])
        self.assertLess(rows["sub0"], rows["sub1"])
        inner = [(node.text, float(node.get("y"))) for node in labels if node.get("font-size") == "7"]
        self.assertTrue(inner)
        for name, y in inner:
            self.assertRegex(name, "^AIV[0-3]$")
            self.assertTrue(rows["L2/0"] < y < rows["sub0"])
        titles = collections.Counter()
        bars = collections.defaultdict(list)
        for node in root.iter(space + "rect"):
            title = node.find(space + "title")
            if title is None:
                continue
            found = re.match(r"task (\w+) (\d+) on (\w+(?:/\w+)?)", title.text)
            if found:
                bars[found[1]].append((float(node.get("x")), float(node.get("width")), int(found[2]), found[3]))
            titles["virtual"] += "of its virtual time" in title.text
        self.assertEqual(titles["virtual"] > 0, backend == "det")
        self.assertEqual("chips with a virtual clock" in text, backend == "det")
        legend = {node.text.split("  ")[0]: node.text.split("\u00d7")[-1] for node in labels
                  if node.get("class") == "legend" and "\u00d7" in node.text}
        self.assertEqual(legend, {"part": str(2 * ROUNDS), "witness": str(ROUNDS), "fill": str(2 * ROUNDS)})

    def test_rows(self):
        for backend in ("par", "det", "threads"):
            for mode in ("process", "thread"):
                with self.subTest(backend=backend, mode=mode):
                    self.check_rounds(backend, mode)

    def test_level_four(self):
        """A chip inside of a task inside of a task."""
        for backend in ("par", "det", "threads"):
            with self.subTest(backend=backend), Pto.Worker(level=4, sub_workers=1) as top:
                host = Pto.Worker(level=3, devices=1, sub_workers=1)
                host.get_child(0).set_parameter("backend", backend)
                host.get_child(0).set_parameter("clusters", "1")
                host.get_child(0).set_parameter("aicpu-threads", "2")
                top.add_worker(host)
                top.set_parameter("trace", "1")
                part, below = host.register(self.chip_callable()), host.register(self.witness())
                sub = top.register(self.witness())

                def inner(orch, args, config):
                    view = args.get_tensor(0).view([1, 1, N], [0, 0, 0])
                    for i in range(3):
                        orch.submit_next_level(part, [view.write_existing(), N, bits(i)])
                    orch.submit_sub(below, [view.read(), 0])

                middle = top.register(inner)

                def graph(orch, parts):
                    for i in range(2):
                        orch.submit_next_level(middle, [parts.update()])
                    orch.submit_sub(sub, [parts.read(), 1])

                top.run(graph, self.parts)
                trace = top.ref_trace()
                shown = Json(self, trace)
                self.assertEqual((trace.get_n_tasks(), trace.get_n_edges()), (3, 2))
                self.assertEqual([trace.dup_core_name(c) for c in range(2)], ["L3/0", "sub0"])
                outer = shown.row("L4/0", "L3/0")
                self.assertEqual([(s.name, s.args["task"]) for s in outer], [("inner", "0"), ("inner", "1")])
                chips = shown.row("L4/0/L3/0", "L2/0")
                self.check_nested(outer, chips, 3)
                self.assertEqual([s.args["waited_for"] for s in chips], 2 * [[], ["0"], ["1"]])
                self.check_nested(outer, shown.row("L4/0/L3/0", "sub0"), 1)
                self.check_nested(chips, shown.below("L4/0/L3/0/L2/0"), 1)
                self.assertEqual(trace.get_recorded(), shown.root["metadata"]["recorded"])
                self.assertRegex(trace.summarize(), r"(?m)^L3/0: 2 runs, 8 tasks inside, children busy \d+ %$")
                labels = [node.text for node in xml.etree.ElementTree.fromstring(trace.to_svg().encode()).iter(
                    "{http://www.w3.org/2000/svg}text")]
                for label in ("L3/0", "L2/0", "AIV0", "sub0"):
                    self.assertIn(label, labels)

    def test_group(self):
        """One task, a slice on the row of each of its members."""
        with self.host("par") as host:
            sub = host.register(self.witness())

            def graph(orch, parts):
                orch.submit_sub_group(sub, [[parts.no_dep(), 0], [parts.no_dep(), 1]])
                orch.submit_sub(sub, [parts.no_dep(), 2], worker=1)

            host.run(graph, self.parts)
            trace = host.ref_trace()
        self.assertEqual((trace.get_n_tasks(), trace.get_n_edges()), (2, 0))
        shown = Json(self, trace)
        rows = [shown.row("L3/0", f"sub{c}") for c in range(2)]
        self.assertEqual([[s.args["task"] for s in row] for row in rows], [["0"], ["0", "1"]])
        self.assertRegex(trace.summarize(), r"  witness +3 runs")
        group, alone = trace.list_tasks()
        self.assertEqual(sorted((member.core, member.start_ns, member.end_ns) for member in group.list_members()),
                         [(2 + c, round(rows[c][0].start * 1000), round(rows[c][0].end * 1000)) for c in range(2)])
        self.assertEqual({member.submit_ns for member in group.list_members()}, {group.submit_ns})
        self.assertEqual(group.end_ns, max(member.end_ns for member in group.list_members()))
        self.assertEqual(alone.list_members()[0].core, 3)
        for row in rows:
            self.assertGreaterEqual(row[0].end - row[0].start + SLACK_US, 500)

    def test_lost(self):
        """A chip that dies takes its own records along, which is told; its row stays."""
        with tempfile.TemporaryDirectory() as place:
            killer = os.path.join(place, "killer.c")
            with open(killer, "w") as file:
                file.write(KILLER)
            with self.host("par") as host:
                part, sub = host.register(self.chip_callable()), host.register(self.witness())
                deadly = host.register(self.chip_callable(killer))

                def graph(orch, parts):
                    view = parts.view([1, 1, N], [0, 0, 0])
                    orch.submit_next_level(part, [view.write_existing(), N, 0], worker=0)
                    orch.submit_next_level(deadly, [view.write_existing(), N, 0], worker=0)
                    orch.submit_sub(sub, [view.read(), 0])
                    orch.submit_next_level(part, [parts.view([1, 1, N], [1, 0, 0]).write_existing(), N, 0], worker=1)

                with self.assertRaisesRegex(GLib.Error, r"L3/0/L2/0 died \(signal 9"):
                    host.run(graph, self.parts)
                trace = host.ref_trace()
            shown = Json(self, trace)
            self.assertEqual([(s.args["task"], s.args["failed"]) for s in shown.row("L3/0", "L2/0")],
                             [("0", False), ("1", True)])
            self.assertEqual([s.args["task"] for s in shown.row("L3/0", "L2/1")], ["3"])
            self.assertEqual(shown.row("L3/0", "sub0") + shown.row("L3/0", "sub1"), [])
            self.assertEqual(shown.below("L3/0/L2/0"), [])
            self.check_nested(shown.row("L3/0", "L2/1"), shown.below("L3/0/L2/1"), 1)
            self.assertIn("2 runs of workers without a record of their own", trace.summarize())

    def test_cancelled(self):
        """What workers did in a cancelled run is not asked for; the rows are there, and the next run has all again."""
        with self.host("par") as host:
            part = host.register(self.chip_callable())
            board = self.board

            def hang(args):
                board[0] = 1
                while not args.is_cancelled():
                    time.sleep(0.001)

            sub = host.register(hang)
            cancellable = Gio.Cancellable()

            def cancel():
                while board[0] == 0:
                    time.sleep(0.001)
                cancellable.cancel()

            def graph(orch, parts):
                view = parts.view([1, 1, N], [0, 0, 0])
                orch.submit_next_level(part, [view.write_existing(), N, 0], worker=1)
                if board[0] == 0:
                    orch.submit_sub(sub, [view.read()], worker=0)

            thread = threading.Thread(target=cancel)
            thread.start()
            with self.assertRaises(GLib.Error):
                host.run(graph, self.parts, cancellable=cancellable)
            thread.join()
            for n_inside in (0, 1):
                trace = host.ref_trace()
                shown = Json(self, trace)
                self.assertEqual([s.args["task"] for s in shown.row("L3/0", "L2/1")], ["0"])
                self.assertEqual([s.args["task"] for s in shown.row("L3/0", "sub0")], ["1"] * (1 - n_inside))
                self.assertEqual(len(shown.below("L3/0/L2/1")), n_inside)
                self.assertEqual("1 run of workers without a record of its own" in trace.summarize(), n_inside == 0)
                host.run(graph, self.parts)

    def test_bounded(self):
        """What the runs of a worker leave is bounded; runs that do not fit are counted."""
        runs = 200
        with self.host("par") as host:
            host.get_child(0).set_parameter("trace-records", "16")
            part = host.register(self.chip_callable())

            def graph(orch, parts):
                view = parts.view([1, 1, N], [0, 0, 0])
                for i in range(runs):
                    orch.submit_next_level(part, [view.write_existing(), N, 0], worker=0)

            for again in range(2):
                host.run(graph, self.parts)
                trace = host.ref_trace()
                summary = trace.summarize()
                kept = int(re.search(r"(?m)^L2/0: (\d+) runs", summary)[1])
                left = re.search(r"(?m)^(\d+) runs of workers left out, with (\d+) records", summary)
                self.assertEqual(kept + int(left[1]), runs)
                self.assertTrue(0 < kept < runs)
                self.assertEqual(int(left[2]), trace.get_dropped())
                self.assertNotIn("without a record", summary)
                shown = Json(self, trace)
                self.assertEqual(len(shown.below("L3/0/L2/0")), kept)
                self.assertEqual(len(shown.row("L3/0", "L2/0")), runs)

    def test_no_room(self):
        """What workers have to tell goes through the arena: a record that does not fit there is named, and the others
        are told. Nothing of it stays there."""
        said = []
        handler = GLib.log_set_handler("Pto", GLib.LogLevelFlags.LEVEL_WARNING,
                                       lambda domain, level, text, data: said.append(text), None)
        self.addCleanup(GLib.log_remove_handler, "Pto", handler)
        with self.host("par") as host:
            host.set_parameter("arena", "1M")
            part = host.register(self.chip_callable())

            def graph(orch, parts):
                for c in range(2):
                    view = parts.view([1, 1, N], [0, c, 0])
                    orch.submit_next_level(part, [view.write_existing(), N, 0], worker=c)

            def inside():
                host.run(graph, self.parts)
                trace = host.ref_trace()
                shown = Json(self, trace)
                n = [len(shown.below(f"L3/0/L2/{c}")) for c in range(2)]
                self.assertEqual(2 - sum(n), int((re.search(r"(\d+) runs? of workers without a record",
                                                            trace.summarize()) or "00")[1]))
                return n

            self.assertEqual(inside(), [1, 1])
            # A buffer takes a page more than its bytes and 64 do: so the arena is full, and has room for a page with a smaller
            # buffer in the place of a large one.
            for size in 1, 4096:
                large = [Pto.Buffer.new(4096) for _ in range(3)]
                filled = [Pto.Buffer.new(n) for n in [size] + 200 * [1]]
                filled = [buffer for buffer in filled if buffer.get_fd() == large[0].get_fd()]
                self.assertTrue(8 < len(filled) < 200)
                said.clear()
                self.assertEqual(inside(), [0, 0])
                if len(said) == 1:
                    break
                del large, filled
            # A page for the table of the answers, and one for each answer.
            for expected, lost in (([0, 0], None), ([0, 0], (0, 1)), ([1, 0], (1,)), ([1, 1], ())):
                if lost is not None:
                    large.pop()
                    filled.append(Pto.Buffer.new(1))
                    self.assertEqual(filled[-1].get_fd(), filled[0].get_fd())
                for again in range(3):
                    said.clear()
                    self.assertEqual(inside(), expected)
                    if lost is None:
                        self.assertEqual(said, ["no room to ask workers for their traces: set arena to more"])
                        continue
                    self.assertEqual(len(said), len(lost))
                    for text, c in zip(said, lost):
                        self.assertRegex(text, rf"^no room for a trace of \d+ bytes of L2/{c}: set arena to more$")

    def test_swimlane_shows_its_level(self):
        """Arguments of tasks and what rings hold are in the file of level 4, and of no other."""
        full = {"heap, ring 0", "dependency pool, ring 0", "TensorMap"}
        add = os.path.join(os.environ["PTO_TEST_EXAMPLES"], "vector", "kernels", "add.c")

        def shown(worker, graph, arrays, level):
            with tempfile.TemporaryDirectory() as place:
                config = Pto.CallConfig(enable_l2_swimlane=level, output_prefix=os.path.join(place, "run-"))
                worker.run(graph, *arrays, config=config)
                with open(os.path.join(place, "run-swimlane.json"), encoding="utf-8") as file:
                    events = json.load(file)["traceEvents"]
            arguments = [event["args"]["arguments"] for event in events if "arguments" in event.get("args", {})]
            return arguments, full & {event["name"] for event in events if event["ph"] == "C"}

        def check(worker, graph, arrays, words):
            for level in 1, 2, 3, 4:
                with self.subTest(level=level):
                    arguments, counters = shown(worker, graph, arrays, level)
                    self.assertEqual(counters, full if level == 4 else set())
                    self.assertEqual(bool(arguments), level == 4)
                    for line, word in zip(arguments[0] if arguments else [], words):
                        self.assertIn(word, line)

        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(isolate=isolate, backend=backend), Pto.Worker(isolate=isolate) as chip:
                    chip.set_parameter("backend", backend)
                    kernel = Pto.Callable.kernel(add)

                    def graph(orch, x):
                        made = orch.tensor(16)
                        orch.submit(kernel, x.read(), x.read(), made.write())
                        orch.submit(kernel, made.read(), x.read(), x.update())
                    check(chip, graph, [np.ones(16, np.float32)], ["0: input float32 [16] strides [1] at 0x", "1: input float32", "2: output float32 [16]"])
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle, y = worker.register(lambda args: None), Pto.Buffer.array(16)
            check(worker, lambda orch, y: orch.submit_sub(handle, [orch.tensor(16).write(), y.update(), 7]), [y],
                  ["0: output float32 [16]", "1: inout float32 [16]", "2: 7"])

    def test_configuration(self):
        """A swimlane of the run itself records it, and writes where the configuration says."""
        with tempfile.TemporaryDirectory() as place, Pto.Worker(level=3, sub_workers=1) as host:
            sub = host.register(self.witness())
            config = Pto.CallConfig(enable_l2_swimlane=1, output_prefix=os.path.join(place, "run-"))

            def graph(orch, args, config):
                orch.submit_sub(sub, [0])

            host.run(graph, None, config)
            self.assertEqual(os.listdir(place), ["run-swimlane.json"])
            with open(os.path.join(place, "run-swimlane.json")) as file:
                self.assertEqual(file.read(), host.ref_trace().to_json())
            self.assertEqual(host.ref_trace().get_n_tasks(), 1)
            host.run(graph)
            self.assertIsNone(host.ref_trace())


tap.main()
