# test_remote_moved.py: does a trace say what of tensors travelled to remote workers and back, and when?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, remote_steps, root  # noqa: E402
from trace_reader import Json, check_moved  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "tool"))
import perfetto_reader  # noqa: E402

MIB = 1 << 20


@unittest.skipIf(np is None, "no numpy")
class Moved(unittest.TestCase):
    def begin(self, n=1, trace="1"):
        self.host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.remotes = [self.host.add_remote_worker("local:", roots=root) for _ in range(n)]
        self.host.set_parameter("trace", trace)
        self.copy, self.fill, self.add, self.stop = (
            self.host.register(f) for f in (remote_steps.copy, remote_steps.fill, remote_steps.add_in_place, remote_steps.stop))

    def test_a_task(self):
        self.begin()
        x, y = Pto.Buffer.array(100, "i8"), Pto.Buffer.array(100, "i8")

        def graph(orch):
            for _ in range(2):
                orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()])

        self.host.run(graph)
        self.assertEqual(check_moved(self, self.host), (800, 1600, 800))
        tasks = list(self.host.trace.list_tasks())
        self.assertEqual([(task.get_bytes_sent(), task.get_bytes_received(), task.get_bytes_saved()) for task in tasks],
                         [(800, 800, 0), (0, 800, 800)])
        # In Perfetto's own format, too.
        seen = perfetto_reader.Trace(self.host.trace.to_perfetto().get_data())
        self.assertEqual([(item.row, item.name, item.args) for item in sorted(seen.of("transfer"), key=lambda item: item.start)],
                         [(("L4/0", "L3/0: tensors"), "sent", {"task": "0", "bytes": 800, "saved": 0}),
                          (("L4/0", "L3/0: tensors"), "received", {"task": "0", "bytes": 800}),
                          (("L4/0", "L3/0: tensors"), "sent", {"task": "1", "bytes": 0, "saved": 800}),
                          (("L4/0", "L3/0: tensors"), "received", {"task": "1", "bytes": 800})])
        for name, value in ("bytes sent", 800), ("bytes received", 1600), ("bytes saved", 800):
            self.assertEqual(seen.counters["L4/0", name][-1][1], value)
            self.assertEqual([uuid[3] for uuid in seen.tracks.values() if uuid[1] == name], [perfetto_reader.UNIT_BYTES])

    def test_together(self):
        """Of a message that carries several tasks each has its own."""
        self.begin(2)
        n = 300
        x, y = Pto.Buffer.array((n, 8), "i8"), Pto.Buffer.array((n, 8), "i8")
        x[:] = np.arange(8 * n).reshape(n, 8)
        for _ in range(2):  # in the second it is known how long they take
            y[:] = 0
            self.host.run(lambda orch: [orch.submit_next_level(self.copy, [Pto.Tensor.of(x[i]).read(), Pto.Tensor.of(y[i]).write()])
                                        for i in range(n)])
            self.assertTrue((x == y).all())
            sent, received, saved = check_moved(self, self.host)
            tasks = [(task.get_bytes_sent(), task.get_bytes_received()) for task in self.host.trace.list_tasks()]
            self.assertEqual(tasks, [(64, 64)] * n)
            # A task that a worker had not begun goes to the other one when that has nothing to do; its tensor travels again.
            self.assertEqual((sent % 64, received, saved), (0, 64 * n, 0))
            self.assertIn(sent, range(64 * n, 2 * 64 * n))

    def test_large(self):
        """What is too large for a message takes its time before the task begins, and after it has ended."""
        self.begin()
        x, y = Pto.Buffer.array(8 * MIB, "u1"), Pto.Buffer.array(8 * MIB, "u1")
        self.host.run(lambda orch: orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()]))
        self.assertEqual(check_moved(self, self.host), (8 * MIB, 8 * MIB, 0))
        task, = self.host.trace.list_tasks()
        self.assertEqual((task.get_bytes_sent(), task.get_bytes_received()), (8 * MIB, 8 * MIB))
        sent, received = Json(self, self.host.trace).row("L4/0", "L3/0: tensors")
        task, = Json(self, self.host.trace).row("L4/0", "L3/0")
        self.assertLess(sent.start, sent.end)
        self.assertLess(received.start, received.end)
        self.assertEqual((sent.name, received.name), ("sent", "received"))
        self.assertGreaterEqual(task.start, sent.start)

    def test_simulated(self):
        """On a clock on which a link takes what it is said to take."""
        self.begin()
        self.host.set_parameter("trace-level", "4")
        x, y = Pto.Buffer.array(MIB, "u1"), Pto.Buffer.array(MIB, "u1")

        def graph(orch):
            for _ in range(2):
                orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()])

        self.host.run(graph)
        trace = self.host.trace.simulate(["link-latency=2us", "link-bandwidth=1GB/s", "function=*=constant:5000"])
        self.assertEqual((trace.get_bytes_sent(), trace.get_bytes_received(), trace.get_bytes_saved()), (MIB, 2 * MIB, MIB))
        tasks = list(trace.list_tasks())
        link = 2000 + MIB
        shown = Json(self, trace)
        self.assertEqual([(one.name, round(1000 * one.start), round(1000 * one.end)) for one in shown.row("L4/0", "L3/0: tensors")],
                         [(name, begin, begin + link) for task in tasks
                          for name, begin in (("sent", task.get_start_ns()), ("received", task.get_end_ns() - link))])
        self.assertEqual([task.get_end_ns() - task.get_start_ns() for task in tasks], [2 * link, 2 * link])

    def test_group(self):
        self.begin(2)
        x, y = Pto.Buffer.array((2, 100), "i8"), Pto.Buffer.array((2, 100), "i8")
        self.host.run(lambda orch: orch.submit_next_level_group(
            self.copy, [[Pto.Tensor.of(x[i, :50 + 50 * i]).read(), Pto.Tensor.of(y[i, :50 + 50 * i]).write()] for i in range(2)]))
        self.assertEqual(check_moved(self, self.host), (1200, 1200, 0))
        task, = self.host.trace.list_tasks()
        members = {member.get_core(): member for member in task.list_members()}
        self.assertEqual(sorted(member.get_bytes_sent() for member in members.values()), [400, 800])
        for core in self.host.trace.list_cores():
            self.assertEqual(core.get_bytes_sent(), members[core.get_index()].get_bytes_sent())

    def test_left_and_fetched(self):
        """What had stayed, and comes for somebody else, is no task's."""
        self.begin(2)
        out = Pto.Buffer.array(4, "i2")
        n = MIB

        def graph(orch):
            x = orch.make_tensor(n, "i2")
            orch.submit_next_level(self.fill, [x.write(), 3], worker=0)
            for _ in range(4):
                orch.submit_next_level(self.add, [x.update(), 10], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), Pto.Tensor.of(out).write()], worker=1)

        for _ in range(3):
            self.host.run(graph)
            self.assertEqual(out.tolist(), [43] * 4)
            sent, received, _ = check_moved(self, self.host)
            self.assertEqual(sent, 8)
            self.assertGreaterEqual(received, 2 * n + 8)
            shown = Json(self, self.host.trace)
            self.assertEqual([one for one in shown.row("L4/0", "L3/0: tensors") if one.name == "sent" and one.args["bytes"]], [])

    def test_what_the_program_copies(self):
        """While a run is under way it is of the run, and of no task; what is copied between two runs is of none."""
        self.begin()
        there = self.remotes[0].alloc_buffer(4096)
        there.write(0, bytes(4096))

        def graph(orch):
            there.write(0, bytes(100))
            self.assertEqual(len(there.read(0, 50)), 50)

        self.host.run(graph)
        self.assertEqual(check_moved(self, self.host), (100, 50, 0))
        self.assertTrue(all("task" not in one.args for one in Json(self, self.host.trace).row("L4/0", "L3/0: tensors")))
        there.write(0, bytes(4096))
        self.host.run(lambda orch: None)
        self.assertEqual(check_moved(self, self.host), (0, 0, 0))

    def test_lost(self):
        """A task that its worker dies with was sent what it reads; the next life is sent all again."""
        self.begin()
        x, y = Pto.Buffer.array(1000, "u1"), Pto.Buffer.array(1000, "u1")

        def graph(orch):
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()])
            orch.submit_next_level(self.stop, [Pto.Tensor.of(x).read()])
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()])

        with self.assertRaises(GLib.Error) as caught:
            self.host.run(graph)
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), caught.exception)
        sent, received, saved = check_moved(self, self.host)
        self.assertGreaterEqual(sent, 1000)
        self.assertEqual((sent + saved) % 1000, 0)
        self.assertLessEqual(received, 2000)

    def test_runs_that_are_not_recorded(self):
        """Each run has its own, whatever went before it."""
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.begin(trace="0")
        x, y = Pto.Buffer.array(10, "u1"), Pto.Buffer.array(10, "u1")

        def graph(orch):
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()])

        for recorded in True, False, True:
            config = Pto.CallConfig.new()
            config.enable_l2_swimlane = int(recorded)
            config.output_prefix = os.path.join(self.directory.name, "run")
            self.host.run(graph, config=config)
            self.assertEqual((self.host.statistics.get_bytes_sent(), self.host.statistics.get_bytes_received()), (10, 10))
            if recorded:
                self.assertEqual(check_moved(self, self.host), (10, 10, 0))


tap.main()
