# test_remote_copies.py: are copies that remote workers keep as good as what they are copies of?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Random graphs of tasks on overlapping views, by two remote workers and a function here, against the same in numpy.
import os
import random
import stat
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402

N = 48

# Says which life Hello tells of, and is pto-remote.
LISTENER = f"""#!{sys.executable}
import contextlib, os, subprocess, sys
from gi.repository import Gio
head = sys.stdin.buffer.read(16)
blob = head + sys.stdin.buffer.read(Gio.DBusMessage.bytes_needed(head) - 16)
options = Gio.DBusMessage.new_from_blob(blob, Gio.DBusCapabilityFlags.NONE).get_body().unpack()[3]
with open(os.environ["PTO_TEST_LIVES"], "a") as lives:
    print(options["id"], options["generation"], options["features"], file=lives)
with (contextlib.suppress(BrokenPipeError),
      subprocess.Popen([os.environ["PTO_REMOTE"], *sys.argv[1:]], stdin=subprocess.PIPE) as process):
    process.stdin.write(blob)
    process.stdin.flush()
    while data := os.read(0, 1 << 16):
        process.stdin.write(data)
        process.stdin.flush()
"""


def mix(args):
    remote_steps.mix(None, args, None)


@unittest.skipIf(np is None, "no numpy")
class RemoteCopies(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        for _ in range(2):
            self.host.add_remote_worker("local:", roots=root)
        self.far, self.fill, self.spoil = (self.host.register(f) for f in (remote_steps.mix, remote_steps.fill, remote_steps.mix_then_fail))
        self.stop = self.host.register(remote_steps.stop)
        self.here = self.host.register(mix)
        self.x = Pto.Buffer.array(N, "i8")
        self.t = Pto.Tensor.of(self.x)

    def tearDown(self):
        self.host.close()

    def view(self, dice):
        """A range: an element, some, or most."""
        n = dice.choice([1, 1, 2, 7, N // 2])
        begin = dice.randrange(N - n + 1)
        return slice(begin, begin + n)

    def steps(self, dice, n):
        """Who, which views are read and written over, and a number."""
        found = []
        while len(found) < n:
            a, b, out = (self.view(dice) for _ in range(3))
            # Of what a task reads and another argument of it writes, the order is its own.
            if all(v.stop <= out.start or out.stop <= v.start for v in (a, b)):
                found.append((dice.randrange(3), a, b, out, dice.randrange(-5, 5)))
        return found

    def submit(self, orch, who, a, b, out, scale):
        args = [self.t[a].read(), self.t[b].read(), self.t[out].write_existing(), scale]
        if who == 2:
            orch.submit_sub(self.here, args)
        elif scale == 0:
            orch.submit_next_level(self.fill, [self.t[out].write(), 9], worker=who)
        else:
            orch.submit_next_level(self.far, args, worker=who)

    def plain(self, x, who, a, b, out, scale):
        if who != 2 and scale == 0:
            x[out] = 9
        else:
            remote_steps.mix(None, (x[a], x[b], x[out], scale), None)

    def test_random(self):
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        saved = 0
        for _ in range(25):
            steps = self.steps(dice, 40)
            for i in range(0, N, dice.randrange(1, N)):
                self.x[i] = dice.randrange(100)
            expected = np.array(self.x)
            for step in steps:
                self.plain(expected, *step)
            self.host.run(lambda orch, steps=steps: [self.submit(orch, *step) for step in steps] and None)
            self.assertEqual(list(self.x), list(expected))
            statistics = self.host.dup_statistics()
            saved += statistics.get_bytes_saved()
            self.assertGreater(statistics.get_bytes_sent(), 0)
        self.assertGreater(saved, 0)

    def test_random_deaths(self):
        """A worker dies in the middle: what needs what it lost does not run, and all else is as if nothing had been."""
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        for _ in range(12):
            steps = [(*step[:4], step[4] or 1) for step in self.steps(dice, 30)]
            dies = dice.randrange(len(steps))
            self.x[:] = [dice.randrange(100) for _ in range(N)]
            # Who would write what a task that did not run was to read comes after that, too.
            expected, lost, unread = np.array(self.x), np.zeros(N, bool), np.zeros(N, bool)
            for i, (who, a, b, out, scale) in enumerate(steps):
                if i == dies:
                    lost[out] = True
                elif lost[a].any() or lost[b].any() or lost[out].any() or unread[out].any():
                    lost[out] = unread[a] = unread[b] = True
                else:
                    self.plain(expected, who, a, b, out, scale)

            def graph(orch, steps=steps, dies=dies):
                for i, step in enumerate(steps):
                    if i == dies:
                        orch.submit_next_level(self.stop, [self.t[step[3]].write_existing()], worker=step[0] % 2)
                    else:
                        self.submit(orch, *step)

            with self.assertRaises(GLib.Error) as caught:
                self.host.run(graph)
            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
            self.assertEqual(list(self.x[~lost]), list(expected[~lost]))

    def test_failure(self):
        """What a failed task has written there is nobody's, neither here nor there."""
        self.x[:] = np.arange(N)
        seen = Pto.Buffer.array(N, "i8")

        def graph(orch):
            self.submit(orch, 0, slice(0, 4), slice(4, 8), slice(8, 12), 1)
            orch.submit_next_level(self.spoil, [self.t[0:4].read(), self.t[4:8].read(), self.t[12:16].write_existing(), 1], worker=0)

        for _ in range(2):
            with self.assertRaises(remote_steps.Unwilling):
                self.host.run(graph)
            self.assertEqual(list(self.x[12:16]), [12, 13, 14, 15])
        self.host.run(lambda orch: orch.submit_next_level(
            self.far, [self.t[12:16].read(), self.t[0:4].read(), Pto.Tensor.of(seen)[0:4].write_existing(), 1], worker=0))
        self.assertEqual(list(seen[0:4]), [12 + 13 + 14 + 15 + 6] * 4)

    def test_death(self):
        """Copies die with the worker that had them: the next one is sent all it needs."""
        self.x[:] = np.arange(N)
        step = 0, slice(0, 4), slice(4, 8), slice(8, 12), 1

        def graph(orch):
            for _ in range(2):
                self.submit(orch, *step)
            orch.submit_next_level(self.stop, [self.t[8:12].write_existing()], worker=0)

        for _ in range(3):
            expected = np.array(self.x)
            for _ in range(2):
                self.plain(expected, *step)
            with self.assertRaises(GLib.Error) as caught:
                self.host.run(graph)
            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
            self.assertEqual(list(self.x), list(expected))
            self.assertEqual(self.host.dup_statistics().get_bytes_saved(), 16 * 8)  # what ends it reads, too

    def test_lives(self):
        """Hello says which worker it is, and which life of it."""
        with tempfile.TemporaryDirectory() as directory:
            program, lives = os.path.join(directory, "listener"), os.path.join(directory, "lives")
            with open(program, "w") as script:
                script.write(LISTENER)
            os.chmod(program, stat.S_IRWXU)
            os.environ["PTO_TEST_LIVES"] = lives
            self.addCleanup(os.environ.pop, "PTO_TEST_LIVES")
            self.host.add_remote_worker("local:", roots=root, program=program)
            for _ in range(2):
                with self.assertRaises(GLib.Error):
                    self.host.run(lambda orch: orch.submit_next_level(self.stop, [self.t[0:4].write_existing()], worker=2))
            self.host.run(lambda orch: orch.submit_next_level(self.fill, [self.t[0:4].write(), 3], worker=2))
            self.assertEqual(list(self.x[0:4]), [3] * 4)
            with open(lives) as told:
                self.assertEqual(told.read().splitlines(), [f"2 {n} []" for n in (1, 2, 3)])
            self.host.close()

    def test_memory_of_the_run(self):
        """Memory that a run allocates is given again: what was there before is not what is there now."""
        seen = Pto.Buffer.array((40, 4), "i8")

        def graph(orch):
            for i in range(40):
                with orch.scope():
                    memory = orch.alloc([4], "i8")
                    np.asarray(memory)[:] = i
                    orch.submit_next_level(
                        self.far, [memory.read(), memory.read(), Pto.Tensor.of(seen)[i].write_existing(), 1], worker=i % 2)

        self.host.run(graph)
        self.assertEqual([list(row) for row in seen], [[8 * i] * 4 for i in range(40)])


tap.main()
