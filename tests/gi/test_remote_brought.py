# test_remote_brought.py: is what was left of the program's own memory there when a run has ended?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import random
import signal
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402
from trace_reader import Json, check_moved  # noqa: E402

N = 1 << 16  # int16: 128 KiB, from 64 on it is left
SEEDS = 40
DEADLINE = 60


def copy(args):
    args[1][:] = args[0]


def add_in_place(args):
    args[0][:] += args[1]


@unittest.skipIf(np is None, "no numpy")
class Brought(unittest.TestCase):
    def begin(self, n=2, **parameters):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.host.set_parameter("trace", "1")
        self.remotes = [self.host.add_remote_worker("local:", roots=root) for _ in range(n)]
        for remote in self.remotes:
            for name, value in parameters.items():
                remote.set_parameter(name.replace("_", "-"), value)
        self.fill, self.add, self.copy, self.which, self.stop = (
            self.host.register(f) for f in (remote_steps.fill, remote_steps.add_in_place, remote_steps.copy, remote_steps.which, remote_steps.stop))
        self.again = self.host.register(remote_steps.copy_again, idempotent=True)
        self.sub_copy, self.sub_add = self.host.register(copy), self.host.register(add_in_place)

    # Nothing at worker 0 begins before all is submitted.
    def gated(self, function):
        with tempfile.TemporaryDirectory() as directory:
            mark = os.path.join(directory, "mark")
            os.environ["PTO_TEST_MARK"] = mark
            self.addCleanup(os.environ.pop, "PTO_TEST_MARK", None)
            self.begin()
            wait = self.host.register(remote_steps.wait_for_mark)

            def graph(orch):
                orch.submit_next_level(wait, [orch.make_tensor(1, "i8").write()], worker=0)
                function(orch)
                open(mark, "w").close()

            for _ in range(3):
                if os.path.exists(mark):
                    os.unlink(mark)
                yield graph

    def test_a_chain_of_updates_comes_once(self):
        x = Pto.Buffer.array(N, "i2")

        def chain(orch):
            for _ in range(20):
                orch.submit_next_level(self.add, [Pto.Tensor.of(x).update(), 10], worker=0)

        for graph in self.gated(chain):
            x[:] = range(-N // 2, N // 2)
            wanted = x + np.int16(200)
            self.host.run(graph)
            self.assertTrue((x == wanted).all())
            self.assertEqual(check_moved(self, self.host), (2 * N, 2 * N + 8, 19 * 2 * N))

    def test_what_is_read_there_comes_at_the_end(self):
        """By the end of the run, whose record has that."""
        x, y = Pto.Buffer.array(N, "i2"), Pto.Buffer.array((2, 8), "i2")

        def chain(orch):
            orch.submit_next_level(self.fill, [Pto.Tensor.of(x).write(), 3], worker=0)
            for i in range(2):
                orch.submit_next_level(self.copy, [Pto.Tensor.of(x[:8]).read(), Pto.Tensor.of(y[i]).write()], worker=0)

        for graph in self.gated(chain):
            x[:], y[:] = 0, 0
            self.host.run(graph)
            self.assertTrue((x == 3).all())
            self.assertEqual(y.tolist(), [[3] * 8] * 2)
            self.assertEqual(check_moved(self, self.host), (0, 2 * N + 32 + 8, 32))
            last = max(Json(self, self.host.trace).row("L4/0", "L3/0: tensors"), key=lambda one: one.end)
            self.assertEqual((last.name, last.args), ("received", {"bytes": 2 * N}))
            self.assertGreaterEqual(last.start, max(task.end for task in Json(self, self.host.trace).row("L4/0", "L3/0")))

    def test_who_may_be_run_again_finds_it_here(self):
        x, y = Pto.Buffer.array(N, "i2"), Pto.Buffer.array(N, "i2")

        def chain(orch):
            orch.submit_next_level(self.fill, [Pto.Tensor.of(x).write(), 3], worker=0)
            orch.submit_next_level(self.again, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()], worker=0)

        for graph in self.gated(chain):
            x[:], y[:] = 0, 0
            self.host.run(graph)
            self.assertTrue((x == 3).all() and (y == 3).all())
            first = min((one for one in Json(self, self.host.trace).row("L4/0", "L3/0: tensors") if one.args["bytes"] == 2 * N),
                        key=lambda one: one.start)
            self.assertEqual(first.name, "received")
            self.assertEqual(first.args["task"], "1")
            again, = [task for task in Json(self, self.host.trace).row("L4/0", "L3/0") if task.name == "copy_again"]
            self.assertLessEqual(first.end, again.start)

    # Graphs of overlapping views of arrays; all that is written is left where it can be.
    def random_run(self, seed, words):
        dice = random.Random(seed)
        n = 64
        x = [Pto.Buffer.array(n * words, "i2") for _ in range(3)]
        whole = np.zeros((3, n * words), "i2")
        for i in range(3):
            whole[i] = x[i][:] = np.arange(n * words) * (i + 1)
        plan = []
        for _ in range(dice.randrange(4, 30)):
            t, where = dice.randrange(3), dice.choice((0, 0, 0, 1, 2, None))
            a, b = sorted(dice.sample(range(n + 1), 2))
            plan.append((dice.choice(("add", "add", "copy", "over")), t, dice.choice([k for k in range(3) if k != t]), slice(a * words, b * words),
                         where, dice.randrange(1, 9)))

        def graph(orch):
            for what, t, other, part, where, number in plan:
                to = Pto.Tensor.of(x[t][part])
                if what == "add":
                    submit, task = [to.update(), number], self.sub_add if where == 2 else self.add
                else:
                    submit = [Pto.Tensor.of(x[other][part]).read(), to.write() if what == "over" else to.write_existing()]
                    task = self.sub_copy if where == 2 else self.copy
                if where == 2:
                    orch.submit_sub(task, submit)
                else:
                    orch.submit_next_level(task, submit, **({} if where is None else {"worker": where}))

        for what, t, other, part, where, number in plan:
            whole[t, part] = whole[t, part] + np.int16(number) if what == "add" else whole[other, part]
        self.host.run(graph)
        for i in range(3):
            self.assertEqual(x[i].tolist(), whole[i].tolist(), (seed, plan))
        check_moved(self, self.host)

    def test_random_graphs(self):
        self.begin(remote_leave="1")
        for seed in range(SEEDS):
            self.random_run(seed, 1)

    def test_random_graphs_of_one_worker(self):
        """Everything is bound to it."""
        self.begin(remote_leave="1", n=1)
        for seed in range(SEEDS):
            dice = random.Random(seed)
            x = Pto.Buffer.array(64, "i2")
            x[:] = range(64)
            wanted = np.arange(64, dtype="i2")
            plan = []
            for _ in range(dice.randrange(1, 20)):
                a, b = sorted(dice.sample(range(65), 2))
                plan.append((slice(a, b), dice.randrange(1, 9)))
            self.host.run(lambda orch: [orch.submit_next_level(self.add, [Pto.Tensor.of(x[part]).update(), number]) for part, number in plan])
            for part, number in plan:
                wanted[part] += number
            self.assertEqual(x.tolist(), wanted.tolist(), (seed, plan))
            check_moved(self, self.host)

    def test_random_graphs_without_room(self):
        self.begin(remote_leave="1", arena="1M")
        for seed in range(SEEDS):
            self.random_run(seed, 1024)

    def test_a_task_that_fails_takes_nothing_along(self):
        x = Pto.Buffer.array(N, "i2")

        def chain(orch):
            for _ in range(5):
                orch.submit_next_level(self.add, [Pto.Tensor.of(x).update(), 10], worker=0)
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x[:4]).read(), orch.make_tensor(4, "i2").write()], worker=0)
            orch.submit_next_level(self.stop, [orch.make_tensor(4, "i2").write()], worker=1)

        for graph in self.gated(chain):
            x[:] = 0
            with self.assertRaises(GLib.Error) as caught:
                self.host.run(graph)
            self.assertIn("stop", caught.exception.message)
            self.assertTrue((x == 50).all())

    def test_lost_with_its_worker(self):
        """All tasks were done when it died: still the run says what is not there."""
        self.begin()
        self.host.set_parameter("timeout", "60000")
        x, pid = Pto.Buffer.array(N, "i2"), Pto.Buffer.array(2, "i8")
        pid[:] = 0

        def graph(orch):
            y = orch.make_tensor(4, "i2")
            orch.submit_next_level(self.fill, [Pto.Tensor.of(x).write(), 3], worker=0)
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x[:4]).read(), y.write()], worker=0)
            orch.submit_next_level(self.which, [Pto.Tensor.of(pid[:1]).write_existing(), y.read()], worker=0)
            deadline = time.monotonic() + DEADLINE
            while not pid[0]:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.001)
            os.kill(int(pid[0]), signal.SIGKILL)

        for _ in range(2):
            x[:], pid[:] = 0, 0
            try:
                self.host.run(graph)
            except GLib.Error as error:
                self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error)
                self.assertRegex(error.message, "L4/0/L3/0 .*and with it results of tasks that had been left there.*remote-leave")
            else:
                # What reads it was submitted too late for that.
                self.assertTrue((x == 3).all())
        # The next life has nothing of that.
        x[:] = 0
        self.host.run(lambda orch: [orch.submit_next_level(self.add, [Pto.Tensor.of(x).update(), 10], worker=0) for _ in range(3)])
        self.assertTrue((x == 30).all())

    def test_cancelled_while_it_is_brought(self):
        """By who does not answer: the run ends, and the worker goes on when it does."""
        self.begin(remote_lease="0")
        x, pid = Pto.Buffer.array(N, "i2"), Pto.Buffer.array(1, "i8")
        cancellable = Gio.Cancellable()

        def graph(orch):
            y = orch.make_tensor(4, "i2")
            orch.submit_next_level(self.fill, [Pto.Tensor.of(x).write(), 3], worker=0)
            orch.submit_next_level(self.copy, [Pto.Tensor.of(x[:4]).read(), y.write()], worker=0)
            orch.submit_next_level(self.which, [Pto.Tensor.of(pid).write_existing(), y.read()], worker=0)
            deadline = time.monotonic() + DEADLINE
            while not pid[0]:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.001)
            os.kill(int(pid[0]), signal.SIGSTOP)
            thread.start()

        def cancel():
            deadline = time.monotonic() + DEADLINE
            while self.host.doing["children"][0]["life"] != "busy" and time.monotonic() < deadline:
                time.sleep(0.001)
            cancellable.cancel()

        x[:], pid[:] = 0, 0
        thread = threading.Thread(target=cancel)
        try:
            with self.assertRaises(GLib.Error) as caught:
                self.host.run(graph, cancellable=cancellable)
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), caught.exception)
        finally:
            thread.join()
            os.kill(int(pid[0]), signal.SIGCONT)
        x[:] = 0
        self.host.run(lambda orch: [orch.submit_next_level(self.add, [Pto.Tensor.of(x).update(), 10], worker=0) for _ in range(3)])
        self.assertTrue((x == 30).all())


tap.main()
