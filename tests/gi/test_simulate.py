# test_simulate.py: is a tree of workers on one virtual clock where it would be by hand?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import sys
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(here, "..", "..", "examples", "tensor-parallel")
N = 16  # floats: 64 bytes


def nothing(args):
    pass


@unittest.skipIf(np is None, "no numpy")
class Functions(unittest.TestCase):
    """Tasks of SUB workers only: a clock that is easily kept by hand."""

    def record(self, graph, subs=2, functions=("f", "g"), parameters=()):
        with Pto.Worker(level=3, sub_workers=subs, child_mode=Pto.ChildMode.THREAD) as host:
            for name, value in (("trace", "1"), ("trace-level", "4"), *parameters):
                host.set_parameter(name, value)
            handles = [host.register(Pto.SubFunction.new(name, lambda *_: True)) for name in functions]
            arrays = [np.zeros(N, np.float32) for _ in range(12)]
            host.run(lambda orch: graph(orch, handles, [Pto.Tensor.of(array) for array in arrays]))
            self.arrays = arrays
            return host.ref_trace()

    def times(self, trace):
        return [(task.get_core(), task.get_start_ns(), task.get_end_ns()) for task in trace.list_tasks()]

    def test_order(self):
        """A chain, and one beside it: a worker takes what is ready first, and a task waits for all that it reads."""
        def graph(orch, handles, a):
            f, g = handles
            orch.submit_sub(f, [a[0].write()], worker=0)                      # 0: 0 to 1000
            orch.submit_sub(g, [a[1].write()], worker=1)                      # 1: 0 to 564
            orch.submit_sub(g, [a[2].write()], worker=0)                      # 2: 1000 to 1564
            orch.submit_sub(f, [a[0].read(), a[1].update()], worker=1)        # 3: 1000 to 2000
            orch.submit_sub(g, [a[1].read(), a[2].read()], worker=0)          # 4: 2000 to 2628 (128 bytes)
            orch.submit_sub(f, [a[0].write()], worker=1)                      # 5: behind 3, which reads: 2000 to 3000

        trace = self.record(graph)
        simulated = trace.simulate(["function=f=constant:1000", "function=g=linear:500:1"])
        self.assertEqual(self.times(simulated), [(0, 0, 1000), (1, 0, 564), (0, 1000, 1564), (1, 1000, 2000),
                                                 (0, 2000, 2628), (1, 2000, 3000)])
        self.assertTrue(simulated.is_virtual())
        self.assertFalse(trace.is_virtual())
        self.assertEqual(simulated.get_elapsed_ns(), 3000)
        self.assertEqual(simulated.simulate(["function=*=constant:1"]).get_elapsed_ns(), 3)  # it can be asked again

    def test_submits(self):
        """Each submit takes its time, and a task does not begin before its own is over."""
        def graph(orch, handles, a):
            for i in range(3):
                orch.submit_sub(handles[0], [a[i].write()], worker=i % 2)

        trace = self.record(graph)
        simulated = trace.simulate(["function=*=constant:250", "submit=0.1us"])
        self.assertEqual(self.times(simulated), [(0, 100, 350), (1, 200, 450), (0, 350, 600)])
        self.assertEqual([task.get_submit_ns() for task in simulated.list_tasks()], [100, 200, 300])

    def test_retired(self):
        """A producer that had retired has no edge in the record; who reads what it wrote comes after it all the same."""
        def graph(orch, handles, a):
            f, g = handles
            with orch.scope():
                orch.submit_sub(f, [a[0].write()], worker=0)
            for i in range(8):
                with orch.scope():
                    orch.submit_sub(g, [a[1 + i].write()], worker=1)
            with orch.scope():
                orch.submit_sub(g, [a[0].read(), a[10].write()], worker=1)

        trace = self.record(graph, parameters=[("task-window", "4")])
        edges = [edge for edge in trace.list_edges() if edge.get_consumer() & 0xffffffff == 9]
        self.assertEqual(edges, [])  # that is what this is about
        simulated = trace.simulate(["function=f=constant:100000", "function=g=constant:10"])
        last = list(simulated.list_tasks())[-1]
        self.assertEqual((last.get_start_ns(), last.get_end_ns()), (100000, 100010))

    def test_tiles(self):
        """Rows of one array are others: no task waits for another one's; who reads all of it waits for all."""
        def graph(orch, handles, a):
            for i in range(4):
                orch.submit_sub(handles[0], [Pto.Tensor.of(self.whole[2 * i:2 * i + 2]).update()], worker=i)
            orch.submit_sub(handles[0], [Pto.Tensor.of(self.whole).read()], worker=0)

        self.whole = np.zeros((8, 16), np.float32)
        simulated = self.record(graph, subs=4).simulate(["function=f=constant:10"])
        self.assertEqual([start for _, start, _ in self.times(simulated)], [0, 0, 0, 0, 10])

    def test_group(self):
        """Members begin together, with equal parts of what the task has; it is over with the last of them."""
        def graph(orch, handles, a):
            f, g = handles
            orch.submit_sub(f, [a[0].write()], worker=0)
            orch.submit_sub_group(g, [[a[1].write()], [a[2].write()]], workers=[0, 1])
            orch.submit_sub(f, [a[2].read()], worker=1)

        simulated = self.record(graph).simulate(["function=f=constant:70", "function=g=linear:0:1"])
        tasks = list(simulated.list_tasks())
        members = [(member.get_core(), member.get_start_ns(), member.get_end_ns()) for member in tasks[1].list_members()]
        self.assertEqual(sorted(members), [(0, 70, 134), (1, 70, 134)])
        self.assertEqual((tasks[2].get_start_ns(), tasks[2].get_end_ns()), (134, 204))

    def test_levels(self):
        """A worker of level 3 below one of level 4 is gone through first, and lies where its task is: all on one clock."""
        def lower(orch, args, config):
            for _ in range(3):
                orch.submit_sub(sub, [], worker=0)

        def upper(orch, args, config):
            for _ in range(2):
                orch.submit_next_level(below, Pto.TaskArgs())

        level3 = Pto.Worker(level=3, sub_workers=1)
        sub = level3.register(Pto.SubFunction.new("f", lambda *_: True))
        with Pto.Worker(level=4) as level4:
            below = level4.register(lower)
            level4.add_worker(level3)
            level4.set_parameter("trace", "1")
            level4.set_parameter("trace-level", "4")
            level4.run(upper)
            trace = level4.ref_trace()
        simulated = trace.simulate(["link-latency=50ns", "function=f=constant:100"])
        self.assertEqual(simulated.get_elapsed_ns(), 2 * (50 + 3 * 100 + 50))
        spans = sorted((event["ts"], event["dur"]) for event in json.loads(simulated.to_json())["traceEvents"]
                       if event["ph"] == "X" and event["name"].startswith("f") and event["dur"] > 0)
        expected = [(start + i * 100, 100) for start in (50, 450) for i in range(3)]
        self.assertEqual([(round(ts * 1000), round(dur * 1000)) for ts, dur in spans], expected)

    def test_settings(self):
        trace = self.record(lambda orch, handles, a: orch.submit_sub(handles[0], [a[0].write()]))
        for setting, part in (("speed=1", "speed=1: unknown (known: link-latency, link-bandwidth, function, submit)"),
                              ("link-latency", "unknown"), ("link-latency=2", "a time wanted: 2us or 2000ns"),
                              ("link-latency=-2us", "a time wanted"), ("link-bandwidth=0GB/s", "a bandwidth above 0 wanted"),
                              ("link-bandwidth=5", "a bandwidth above 0 wanted"), ("submit=fast", "a time wanted: 870ns or 0.87us"),
                              ("function=f", "function=NAME=COST wanted"), ("function=f=fast", "a cost wanted"),
                              ("function=f=measure", "a cost wanted"),
                              # More than a clock has.
                              ("function=*=constant:1e300", '"constant:1e300" is too much: no number of a cost is greater than 1e15 ns'),
                              ("function=f=linear:1:1.1e15", "is too much"), ("function=f=table:1:5,2:1e16", "is too much"),
                              ("link-latency=1e13us", "no more than 1e15 ns"), ("submit=1e400ns", "no more than 1e15 ns"),
                              ("link-bandwidth=1e-300GB/s", "no less than 1e-15GB/s"),
                              # What did not run.
                              ("function=nosuch=constant:5", "function=nosuch: no such function ran (there are: f)")):
            with self.subTest(setting=setting):
                with self.assertRaises(GLib.Error) as caught:
                    trace.simulate([setting])
                self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.INVALID_ARGUMENT))
                self.assertIn(part, caught.exception.message)
        self.refuses(trace, 'L3/0: what the function "f" takes is not known: set function=f=COST', ["submit=1ns"])
        self.assertEqual(trace.simulate(["function=*=constant:5", "function=f=constant:7"]).get_elapsed_ns(), 7)

    def test_end_of_clock(self):
        """Sums that are longer than the clock are refused with the task that would pass its end, and never turn over."""
        def graph(orch, handles, a):
            for i in range(6):
                orch.submit_sub(handles[0], [a[0].update()], worker=0)

        trace = self.record(graph)
        self.assertEqual(trace.simulate(["function=*=constant:7e14"]).get_elapsed_ns(), 42 * 10**14)
        for settings in (["function=*=constant:1e15"], ["function=*=linear:1:1e15"], ["function=*=constant:1", "submit=1e15ns"]):
            with self.subTest(settings=settings):
                self.refuses(trace, "would be over later than the virtual clock goes, to 4503599627370496 ns (52 days)", settings)
        self.refuses(trace, "L3/0: task 4 would be over later", ["function=*=constant:1e15"])

    def test_texts(self):
        """One text is no list of them."""
        trace = self.record(lambda orch, handles, a: orch.submit_sub(handles[0], [a[0].write()]))
        for call in (trace.simulate, trace.predict, trace.predict_json):
            with self.assertRaisesRegex(TypeError, "settings: 'submit=1ns' is no list of texts"):
                call("submit=1ns")
            with self.assertRaisesRegex(TypeError, "settings: 5 is no list of texts"):
                call(5)

    def refuses(self, trace, part, settings=()):
        with self.assertRaises(GLib.Error) as caught:
            trace.simulate(list(settings))
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.NOT_SUPPORTED), caught.exception)
        self.assertIn(part, caught.exception.message)

    def test_refused(self):
        graph = lambda orch, handles, a: orch.submit_sub(handles[0], [a[0].write()])  # noqa: E731
        self.refuses(self.record(graph, parameters=[("trace-level", "3")]), "arguments were not recorded: set trace-level to 4")
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.set_parameter("trace", "1")
            chip.run(lambda orch: orch.submit_order())
            self.refuses(chip.ref_trace(), "it is the trace of a chip")


@unittest.skipIf(np is None, "no numpy")
class Chips(unittest.TestCase):
    """The example: a tensor-parallel step on eight chips in this process."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, EXAMPLE)
        import simulated
        cls.example = simulated
        cls.error, cls.trace = simulated.step()
        cls.simulated = cls.trace.simulate(simulated.SETTINGS)

    def alone(self):
        """What a layer takes on a chip that is alone, by its own clock."""
        e = self.example
        part = e.hidden // e.chips
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.set_parameter("backend", "det")
            layer = chip.register(Pto.Callable.chip(os.path.join(EXAMPLE, "feed-forward")))
            arrays = [np.zeros(shape, np.float32) for shape in ((e.rows, e.width), (e.width, part), (part, e.width), (e.rows, e.width))]
            x, w, v, y = (Pto.Tensor.of(array) for array in arrays)
            chip.run(layer, x.read(), w.read(), v.read(), y.write())
            return chip.dup_statistics().get_virtual_ns()

    def test_by_hand(self):
        e = self.example
        self.assertLess(self.error, 1e-3)
        work = self.alone()
        x = e.rows * e.width * 4
        weights = 2 * e.width * (e.hidden // e.chips) * 4
        into = int(e.LATENCY_NS + (x + weights) / e.GB_PER_S)
        back = int(e.LATENCY_NS + x / e.GB_PER_S)
        reduce = int(5000 + 0.02 * e.chips * x)
        self.assertEqual((into, back, reduce), (3389, 2219, 6966))
        self.assertEqual(self.simulated.get_elapsed_ns(), e.layers * (into + work + back + reduce))
        with open(os.path.join(here, "..", "..", "doc", "time.md"), encoding="utf-8") as file:
            doc = file.read()
        self.assertIn(f"3 x (3.389 + {work / 1000:.3f} + 2.219 + 6.966) = {self.simulated.get_elapsed_ns() / 1000:.3f} us", doc)

    def test_again(self):
        """Another run of real threads is the same on the virtual clock, to the ns."""
        _, trace = self.example.step()
        again = trace.simulate(self.example.SETTINGS)
        self.assertEqual([(task.get_core(), task.get_start_ns(), task.get_end_ns()) for task in again.list_tasks()],
                         [(task.get_core(), task.get_start_ns(), task.get_end_ns()) for task in self.simulated.list_tasks()])

    def test_one_clock(self):
        """What a chip did lies between its links, on the clock of all, and takes there what it took."""
        e = self.example
        page = json.loads(self.simulated.to_json())
        names = {(event["pid"], event["tid"] if event["name"] == "thread_name" else 0): event["args"]["name"]
                 for event in page["traceEvents"] if event["ph"] == "M" and event["name"].endswith("_name")}
        slices = [event for event in page["traceEvents"] if event["ph"] == "X"]
        tasks = list(self.simulated.list_tasks())
        work = self.alone() / 1000
        for chip in range(e.chips):
            inside = [event for event in slices if f"L2/{chip}" in names[event["pid"], 0] and "gemm" in event["name"]]
            self.assertTrue(inside)
            spans = [(task.get_start_ns() / 1000 + 3.389, task.get_end_ns() / 1000 - 2.219) for task in tasks if task.get_core() == chip]
            self.assertEqual(len(spans), e.layers)
            for start, end in spans:
                self.assertAlmostEqual(end - start, work, places=3)
            for event in inside:
                self.assertTrue(any(start - 0.002 <= event["ts"] and event["ts"] + event["dur"] <= end + 0.002 for start, end in spans), event)

    def test_links(self):
        """Without links and functions the chips are left; a link of half the latency saves that, twice a layer."""
        e = self.example
        free = self.trace.simulate(["function=*=constant:0"])
        self.assertEqual(free.get_elapsed_ns(), e.layers * self.alone())
        latency = self.trace.simulate(["function=*=constant:0", "link-latency=1us"])
        self.assertEqual(latency.get_elapsed_ns() - free.get_elapsed_ns(), e.layers * 2000)

    def test_saved(self):
        """It is a trace as any other: saved, read again, asked."""
        path = os.path.join(GLib.get_tmp_dir(), f"pto-simulated-{os.getpid()}.ptotrace")
        self.simulated.save(path)
        try:
            again = Pto.Trace.new_from_file(path)
        finally:
            os.remove(path)
        self.assertEqual(again.get_elapsed_ns(), self.simulated.get_elapsed_ns())
        self.assertTrue(again.is_virtual())
        self.assertIn("allreduce", again.describe("critical-path"))

    def test_real_time(self):
        """A chip that ran in real time is refused by name."""
        with Pto.Worker(level=3, devices=1, child_mode=Pto.ChildMode.THREAD) as host:
            host.set_parameter("trace", "1")
            host.set_parameter("trace-level", "4")
            layer = host.register(Pto.Callable.chip(os.path.join(EXAMPLE, "feed-forward")))
            arrays = [np.zeros(shape, np.float32) for shape in ((8, 16), (16, 16), (16, 16), (8, 16))]
            x, w, v, y = (Pto.Tensor.of(array) for array in arrays)
            host.run(lambda orch: orch.submit_next_level(layer, [x.read(), w.read(), v.read(), y.write()]))
            with self.assertRaises(GLib.Error) as caught:
                host.ref_trace().simulate()
        self.assertIn("L2/0 ran task 0 in real time: set its parameter backend to det", caught.exception.message)


tap.main()
