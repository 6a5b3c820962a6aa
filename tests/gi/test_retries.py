# test_retries.py: which tasks that are lost with their worker are run again, and what is seen of that?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root, until  # noqa: E402

SECONDS = 120


def lose(number, times):
    """Dies as often as that, over all processes."""
    for i in range(times):
        try:
            os.close(os.open(os.path.join(where, f"{number}.{i}"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def step(args):
    """x, y, number, times: y = 2 x, after it was lost with half of that written."""
    x, y, number, times = args
    assert not y.any(), "what was lost is seen"
    y[:len(y) // 2] = 7
    lose(number, times)
    y[:] = 2 * x


def update(args):
    """y, number"""
    lose(args[1], 1)
    args[0][:] += 1


def member(args):
    """y, number, which: the second of two is lost, once, while the first one waits for it."""
    y, number, which = args
    gone = os.path.join(where, f"{number}.0")
    if which == 1:
        lose(number, 1)
    else:
        while not os.path.exists(gone):
            time.sleep(0.001)
        if not os.path.exists(gone + ".seen"):
            os.close(os.open(gone + ".seen", os.O_CREAT))
            while not args.is_cancelled():
                time.sleep(0.001)
            raise RuntimeError("it was asked to stop")
    y[:] = 10 + which


def double(args):
    args[1][:] = 2 * args[0]


@Pto.sub(idempotent=True)
def decorated(y, number):
    lose(number, 1)
    y[:] = 5


@unittest.skipIf(np is None, "no numpy")
class Retries(unittest.TestCase):
    def setUp(self):
        global where
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        where = temporary.name
        self.host = Pto.Worker(level=3, devices=0, sub_workers=2, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.x, self.y, self.z = Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8")
        self.x[:] = range(8)

    def run_step(self, times, number=0, idempotent=True, **choices):
        """And what needs it."""
        handle, after = self.host.register(step, idempotent=idempotent), self.host.register(double)
        self.host.start()
        self.y[:] = self.z[:] = 0

        def graph(orch):
            x, y, z = map(Pto.Tensor.of, (self.x, self.y, self.z))
            orch.submit_sub(handle, [x.read(), y.write(), number, times])
            orch.submit_sub(after, [y.read(), z.write()])
        self.host.run(graph, **choices)
        return self.host.statistics.get_retried()

    def test_again(self):
        """It is run again, over memory in which nothing is; what needs it waits."""
        self.assertEqual(self.run_step(1), 1)
        self.assertEqual(list(self.y), list(range(0, 16, 2)))
        self.assertEqual(list(self.z), list(range(0, 32, 4)))
        self.assertEqual(self.run_step(2, number=1), 2)
        self.assertEqual(self.run_step(0, number=2), 0)
        self.assertEqual(self.host.doing["retried_tasks"], 3)
        self.assertIn('pto_retried_tasks_total{worker="L3/0",number="%d"} 3' % self.host.doing["number"], self.host.dup_metrics())

    def test_limit(self):
        """As often as `retries` says; then it is lost, and what needs it does not run."""
        with self.assertRaisesRegex(GLib.Error, r'died \(signal 9, .*\) while running "step".*; task 0 failed, '
                                    "which was lost before, and run again 2 times, 1 task that needed it did not run") as caught:
            self.run_step(3)
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
        self.assertEqual(self.host.statistics.get_retried(), 2)
        self.assertFalse(self.z.any())

    def test_no_retries(self):
        self.host.set_parameter("retries", 0)
        with self.assertRaisesRegex(GLib.Error, 'while running "step"'):
            self.run_step(1)
        with self.assertRaisesRegex(GLib.Error, "retries"):
            self.host.set_parameter("retries", "often")

    def test_not_said(self):
        """Who is not said to be idempotent runs at most once; the last registration says it."""
        with self.assertRaisesRegex(GLib.Error, 'while running "step"'):
            self.run_step(1, idempotent=None)
        self.assertEqual(self.host.statistics.get_retried(), 0)
        self.assertEqual(self.run_step(1, number=1, idempotent=True), 1)
        with self.assertRaisesRegex(GLib.Error, 'while running "step"'):
            self.run_step(1, number=2, idempotent=False)

    def test_property(self):
        made = Pto.Callable.function(double)
        self.assertFalse(made.get_idempotent())
        said = []
        made.connect("notify::idempotent", lambda *_: said.append(made.props.idempotent))
        made.props.idempotent = True
        made.set_idempotent(True)
        made.set_idempotent(False)
        self.assertEqual(said, [True, False])

    def test_awaited(self):
        async def main():
            return await self.host.register_async(step, idempotent=True)
        self.host.start()
        handle = asyncio.run(main())
        self.host.run(lambda orch: orch.submit_sub(handle, [Pto.Tensor.of(self.x).read(), Pto.Tensor.of(self.y).write(), 0, 1]))
        self.assertEqual(self.host.statistics.get_retried(), 1)

    def test_decorated(self):
        self.host.start()
        self.host.run(lambda orch: decorated(orch, Pto.Tensor.of(self.y).write(), 0))
        self.assertEqual((list(self.y), self.host.statistics.get_retried()), ([5] * 8, 1))

    def test_inout(self):
        """What it reads and writes is not as it was."""
        handle = self.host.register(update, idempotent=True)
        self.host.start()
        for number, tag in enumerate(("update", "write_existing")):
            with self.assertRaisesRegex(GLib.Error, 'while running "update"'):
                self.host.run(lambda orch: orch.submit_sub(handle, [getattr(Pto.Tensor.of(self.y), tag)(), number]))
            self.assertEqual(self.host.statistics.get_retried(), 0)

    def test_group(self):
        """As a whole: who has ended is run again, too."""
        handle = self.host.register(member, idempotent=True)
        self.host.start()

        def graph(orch):
            orch.submit_sub_group(handle, [[Pto.Tensor.of(y).write(), 0, i] for i, y in enumerate((self.y, self.z))])
        self.host.run(graph)
        self.assertEqual((list(self.y), list(self.z)), ([10] * 8, [11] * 8))
        self.assertEqual(self.host.statistics.get_retried(), 1)

    def test_trace(self):
        """Each of its runs is in the record."""
        config = Pto.CallConfig(enable_l2_swimlane=3)
        self.assertEqual(self.run_step(2, config=config), 2)
        runs = [event for event in json.loads(self.host.trace.to_json())["traceEvents"]
                if event.get("cat") == "task" and event["args"]["task"] == "0"]
        self.assertEqual(len(runs), 3)
        for before, after in zip(sorted(runs, key=lambda run: run["ts"]), sorted(runs, key=lambda run: run["ts"])[1:]):
            self.assertGreaterEqual(after["ts"], before["ts"] + before["dur"])

    def test_captured(self):
        """A graph keeps what was said."""
        handle = self.host.register(step, idempotent=True)
        self.host.start()

        def graph(orch, x, y):
            orch.submit_sub(handle, [x.read(), y.write(), 0, 1])
        made = self.host.capture(graph, Pto.Tensor.of(self.x), Pto.Tensor.of(self.y))
        self.host.run(made, self.x, self.y)
        self.assertEqual(self.host.statistics.get_retried(), 1)
        self.assertEqual(list(self.y), list(range(0, 16, 2)))


@unittest.skipIf(np is None, "no numpy")
class Remote(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.y = Pto.Buffer.array(1, "i8")
        for _ in range(2):
            remote = self.host.add_remote_worker("local:", roots=root, python=sys.executable)
            for name, value in ("ping", 20), ("suspect", 100), ("lease", 4000):
                remote.set_parameter(f"remote-{name}", value)
        self.host.set_parameter("stop-timeout", "300")

    def run_with(self, who, how, worker):
        """A task that stands still: somebody is killed, or stopped, in it, and whoever has it next is let go on. Who that was,
        and who it was at first."""
        handle = self.host.register(remote_steps.stand_still, idempotent=True)
        which = self.host.register(remote_steps.which)
        self.host.start()
        self.y[:] = 0
        first = Pto.Buffer.array(2, "i8")

        def ask(orch):
            for i in range(2):
                orch.submit_next_level(which, [Pto.Tensor.of(first)[i:i + 1].write()], worker=i)
        self.host.run(ask)
        done, errors = threading.Event(), []

        def run():
            try:
                self.host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(self.y).write()], worker=worker))
            except GLib.Error as error:
                errors.append(error)
            done.set()
        thread = threading.Thread(target=run)
        thread.start()

        def has():
            return [child for child in self.host.doing["children"] if child.get("kernel") == "stand_still"]
        until(has)
        [child] = has()
        index = int(child["path"].rpartition("/")[2])
        far = int(first[index])

        def stands():
            with open(f"/proc/{far}/stat") as text:
                return text.read().rpartition(")")[2].split()[0] == "T"
        until(stands)
        os.kill({"bridge": child["pid"], "far": far}[who], how)
        until(lambda: done.is_set() or any(child.get("times_lost") == 1 for child in has()))
        # Whoever runs it now, until it has stopped itself and goes on.
        end = time.monotonic() + SECONDS
        while not done.wait(0.01):
            self.assertLess(time.monotonic(), end)
            for child in has():
                # None for a moment, of one that is begun again.
                for far in self.below(child["pid"]) if "pid" in child else ():
                    os.kill(far, signal.SIGCONT)
        thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(self.host.statistics.get_retried(), 1)
        return int(self.y[0]), [int(one) for one in first], index

    def below(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as text:
                found = [int(child) for child in text.read().split()]
        except FileNotFoundError:
            return []
        return found + [child for one in found for child in self.below(one)]

    def test_any(self):
        for who, how in ("bridge", signal.SIGKILL), ("far", signal.SIGKILL), ("bridge", signal.SIGSTOP), ("far", signal.SIGSTOP):
            with self.subTest(who=who, how=how.name):
                pid, before, index = self.run_with(who, how, -1)
                self.assertEqual(pid, before[1 - index])

    def test_named(self):
        for who, how in ("bridge", signal.SIGKILL), ("far", signal.SIGKILL):
            with self.subTest(who=who, how=how.name):
                pid, before, index = self.run_with(who, how, 1)
                self.assertEqual(index, 1)
                self.assertNotIn(pid, (0, *before))


tap.main()
