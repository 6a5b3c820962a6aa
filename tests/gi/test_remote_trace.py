# test_remote_trace.py: is the trace of a tree with remote workers one trace, on one clock?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, remote_steps, root  # noqa: E402
from trace_reader import EPS_US, Json  # noqa: E402

MANY = 4000
# An hour ahead, and a second behind.
CLOCKS = [("--monotonic", "3600"), ("--monotonic", "-1")]


def why_no_other_clock():
    if shutil.which("unshare") is None:
        return "no unshare"
    done = subprocess.run(["unshare", "--time", "--fork", *CLOCKS[0], "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    return done.stderr.strip() or "no namespaces" if done.returncode else None


@unittest.skipIf(np is None, "no numpy")
class Trace(unittest.TestCase):
    def run_traced(self, function, *args, program=None):
        with Pto.Worker(level=4) as host:
            remote = host.add_remote_worker("local:", roots=root, sub_workers=1, devices=1, **({"program": program} if program else {}))
            kernel = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(here, "fill.c"))
            chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
            chip.add_kernel(0, "fill", kernel)
            for what in (remote_steps.double, remote_steps.nap, chip):
                remote.register(what)
            host.set_parameter("trace", "1")
            handle = host.register(function)

            def graph(orch):
                for _ in range(2):
                    orch.submit_next_level(handle, list(args))
            host.run(graph)
            self.assertEqual(host.trace.get_dropped(), 0)
            return Json(self, host.trace)

    def test_together(self):
        """Small tasks that travel together have a begin and an end each, and what they did lies inside."""
        n = 300
        x, y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array((n, 8), "i8")
        x[:] = 3
        with Pto.Worker(level=4) as host:
            for _ in range(2):
                host.add_remote_worker("local:", roots=root, sub_workers=1).register(remote_steps.double)
            host.set_parameter("trace", "1")
            handle = host.register(remote_steps.layer)
            for _ in range(2):  # in the second it is known how long they take
                y[:] = 0
                host.run(lambda orch: [orch.submit_next_level(handle, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y[i]).write_existing()])
                                       for i in range(n)])
                self.assertTrue((y == 6).all())
                self.assertEqual(host.trace.get_dropped(), 0)
            shown = Json(self, host.trace)
        count = 0
        for worker in "L3/0", "L3/1":
            tasks = shown.row("L4/0", worker)
            self.assertEqual({task.name for task in tasks}, {"layer"})
            for before, after in zip(tasks, tasks[1:]):
                self.assertGreaterEqual(after.start, before.end - EPS_US)
            self.check_inside(tasks, shown.row(f"L4/0/{worker}", "sub0"))
            count += len(tasks)
        self.assertEqual(count, n)

    def check_inside(self, outer, inner):
        self.assertEqual(len(inner), len(outer))
        for one, around in zip(inner, outer):
            self.assertGreaterEqual(one.start, around.start - EPS_US)
            self.assertLessEqual(one.end, around.end + EPS_US)

    def check_tree(self, **choices):
        out = Pto.Buffer.array(8, "f4")
        shown = self.run_traced(remote_steps.chip_then_nap, Pto.Tensor.of(out).write_existing(), 2.5, **choices)
        self.assertEqual(list(out), [2.5] * 8)
        tasks = shown.row("L4/0", "L3/0")
        self.assertEqual([task.name for task in tasks], ["chip_then_nap"] * 2)
        # The second begins when the first has ended.
        self.assertGreaterEqual(tasks[1].start, tasks[0].end - EPS_US)
        chips, naps = shown.row("L4/0/L3/0", "L2/0"), shown.row("L4/0/L3/0", "sub0")
        self.assertEqual(([one.name for one in chips], [one.name for one in naps]), (["fill_orch"] * 2, ["nap"] * 2))
        self.check_inside(tasks, chips)
        self.check_inside(tasks, naps)
        self.check_inside(chips, shown.below("L4/0/L3/0/L2/0"))
        for chip, nap in zip(chips, naps):
            self.assertGreaterEqual(nap.start, chip.end - EPS_US)
            # Of a clock that is not ours nothing would be left.
            self.assertGreaterEqual(nap.end - nap.start, 15000)

    def test_tree(self):
        self.check_tree()

    def test_cancelled_while_it_is_fetched(self):
        """The worker stands still when its tasks are done: the run is over, its trace has what is known here, and the worker goes on."""
        x, y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8")
        pids, done = Pto.Buffer.array(2, "i8"), Pto.Buffer.array(1, "i8")

        def stop(args):
            os.kill(int(args[0][0]), signal.SIGSTOP)
            args[1][0] = 1

        with Pto.Worker(level=4, sub_workers=1) as host:
            remote = host.add_remote_worker("local:", roots=root, sub_workers=1)
            remote.set_parameter("remote-lease", 0)
            remote.register(remote_steps.double)
            host.set_parameter("trace", "1")
            which, layer, stop = map(host.register, (remote_steps.which, remote_steps.layer, stop))
            cancellable = Gio.Cancellable()

            def graph(orch, i):
                orch.submit_next_level(layer, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write_existing()])
                pid = Pto.Tensor.of(pids[i:i + 1])
                orch.submit_next_level(which, [pid.write_existing(), Pto.Tensor.of(y).read()])
                if i == 0:
                    orch.submit_sub(stop, [pid.read(), Pto.Tensor.of(done).write_existing()])

            def cancel():
                deadline = time.monotonic() + 60
                # Then it is so with its trace: its tasks were done before that.
                while not done[0] or host.doing["children"][0]["life"] != "busy":
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.001)
                cancellable.cancel()

            thread = threading.Thread(target=cancel)
            thread.start()
            host.run(lambda orch: graph(orch, 0), cancellable=cancellable)
            thread.join()
            without = Json(self, host.trace)
            os.kill(int(pids[0]), signal.SIGCONT)
            host.run(lambda orch: graph(orch, 1))
            whole = Json(self, host.trace)
        self.assertEqual(pids[0], pids[1])
        for shown, n in (without, 0), (whole, 1):
            self.assertEqual([task.name for task in shown.row("L4/0", "L3/0")], ["layer", "which"])
            self.assertEqual(len(shown.row("L4/0/L3/0", "sub0")), n)

    def test_another_clock(self):
        reason = why_no_other_clock()
        if reason is not None:
            self.skipTest(reason)
        for clock in CLOCKS:
            with self.subTest(clock=clock), tempfile.TemporaryDirectory() as directory:
                program = os.path.join(directory, "pto-remote")
                with open(program, "w", encoding="utf-8") as script:
                    script.write(f"#!/bin/sh\nexec unshare --time --fork --kill-child {' '.join(clock)} {os.environ['PTO_REMOTE']} \"$@\"\n")
                os.chmod(program, stat.S_IRWXU)
                self.check_tree(program=program)

    def test_many(self):
        """Its record comes in parts."""
        x, y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8")
        x[:] = range(8)
        shown = self.run_traced(remote_steps.many, Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write_existing(), MANY)
        self.assertEqual(list(y), [2 * i for i in range(8)])
        self.assertEqual(len(shown.row("L4/0/L3/0", "sub0")), 2 * MANY)

    def test_a_run_without(self):
        """Of a run that is not recorded there is nothing, and the next has only its own."""
        x, y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8")
        with Pto.Worker(level=4) as host, tempfile.TemporaryDirectory() as directory:
            remote = host.add_remote_worker("local:", roots=root, sub_workers=1)
            remote.register(remote_steps.double)
            handle = host.register(remote_steps.layer)
            for recorded, n in ((True, 1), (False, 3), (True, 2)):
                def graph(orch):
                    for _ in range(n):
                        orch.submit_next_level(handle, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write_existing()])
                config = Pto.CallConfig.new()
                config.enable_l2_swimlane = int(recorded)
                config.output_prefix = os.path.join(directory, "run")
                host.run(graph, config=config)
                if recorded:
                    self.assertEqual(len(Json(self, host.trace).row("L4/0/L3/0", "sub0")), n)


tap.main()
