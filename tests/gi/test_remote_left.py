# test_remote_left.py: do results that are left at a worker come to whoever needs them, and only to those?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import random
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402
from trace_reader import check_moved  # noqa: E402

N = 1 << 16  # int16: 128 KiB, from 64 on it is left
SEEDS = 40


def copy(args):
    args[1][:] = args[0]


def add_in_place(args):
    args[0][:] += args[1]


@unittest.skipIf(np is None, "no numpy")
class Left(unittest.TestCase):
    def begin(self, **parameters):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.host.set_parameter("trace", "1")
        for _ in range(2):
            remote = self.host.add_remote_worker("local:", roots=root)
            for name, value in parameters.items():
                remote.set_parameter(name.replace("_", "-"), value)
        self.fill, self.add, self.copy, self.stop = (
            self.host.register(f) for f in (remote_steps.fill, remote_steps.add_in_place, remote_steps.copy, remote_steps.stop))
        self.sub_copy, self.sub_add = self.host.register(copy), self.host.register(add_in_place)

    def count(self):
        check_moved(self, self.host)
        run = self.host.dup_statistics()
        return run.get_bytes_sent(), run.get_bytes_received()

    # Nothing at worker 0 begins before all is submitted.
    def submitted_at_once(self, function):
        with tempfile.TemporaryDirectory() as directory:
            mark = os.path.join(directory, "mark")
            os.environ["PTO_TEST_MARK"] = mark
            self.addCleanup(os.environ.pop, "PTO_TEST_MARK", None)
            self.begin()
            wait = self.host.register(remote_steps.wait_for_mark)

            def graph(orch, *args):
                orch.submit_next_level(wait, [orch.make_tensor(1, "i8").write()], worker=0)
                function(orch, *args)
                open(mark, "w").close()

            for _ in range(3):
                if os.path.exists(mark):
                    os.unlink(mark)
                yield graph

    def test_what_is_read_where_it_is_does_not_travel(self):
        out = Pto.Buffer.array((1, 4), "i2")

        def graph(orch, out):
            x, y = orch.make_tensor(N, "i2"), orch.make_tensor(N, "i2")
            orch.submit_next_level(self.fill, [x.write(), 1], worker=0)
            orch.submit_next_level(self.copy, [x.read(), y.write()], worker=0)
            for _ in range(4):
                orch.submit_next_level(self.add, [y.update(), 10], worker=0)
            orch.submit_next_level(self.copy, [y[:4].read(), out[0].write_existing()], worker=0)

        for gated in self.submitted_at_once(graph):
            out[:] = 0
            self.host.run(gated, out)
            self.assertEqual(out.tolist(), [[41] * 4])
            self.assertEqual(self.count(), (8, 16))

    def test_it_travels_once(self):
        """To who reads it elsewhere, whatever else is done with it where it is."""
        out = Pto.Buffer.array((2, 4), "i2")

        def graph(orch, out):
            x = orch.make_tensor(N, "i2")
            orch.submit_next_level(self.fill, [x.write(), 1], worker=0)
            for _ in range(4):
                orch.submit_next_level(self.add, [x.update(), 10], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), out[0].write_existing()], worker=0)
            orch.submit_next_level(self.copy, [x[8:12].read(), out[1].write_existing()], worker=1)

        for gated in self.submitted_at_once(graph):
            out[:] = 0
            self.host.run(gated, out)
            self.assertEqual(out.tolist(), [[41] * 4] * 2)
            self.assertEqual(self.count()[1], 24 + 2 * N)

    def test_who_needs_it_elsewhere_is_given_it(self):
        self.begin()
        out = Pto.Buffer.array((3, 4), "i2")

        def graph(orch, out):
            x = orch.make_tensor(N, "i2")
            orch.submit_next_level(self.fill, [x.write(), 3], worker=0)
            for _ in range(4):
                orch.submit_next_level(self.add, [x.update(), 10], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), out[0].write_existing()], worker=0)
            orch.submit_next_level(self.copy, [x[8:12].read(), out[1].write_existing()], worker=1)
            orch.submit_sub(self.sub_copy, [x[:4].read(), out[2].write_existing()])

        for _ in range(5):
            out[:] = 0
            self.host.run(graph, out)
            self.assertEqual(out.tolist(), [[43] * 4] * 3)

    def test_what_is_read_overlaps_what_is_written(self):
        """Of one task: then both are one piece of memory there, which what was left is not."""
        out = Pto.Buffer.array((2, 4), "i2")

        def graph(orch, out):
            x = orch.make_tensor(2 * N, "i2")
            orch.submit_next_level(self.fill, [x[:N].write(), 7], worker=0)
            orch.submit_next_level(self.copy, [x[:N].read(), x[N // 2:N // 2 + N].write()], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), out[0].write_existing()], worker=0)
            orch.submit_next_level(self.copy, [x[N:N + 4].read(), out[1].write_existing()], worker=0)

        for gated in self.submitted_at_once(graph):
            out[:] = 0
            self.host.run(gated, out)
            self.assertEqual(out.tolist(), [[7] * 4] * 2)
            self.assertEqual(self.count()[1], 24 + 2 * N)

    # Graphs of overlapping views, whose numbers are those that a plain run has; all that is written is left.
    def random_run(self, seed, words):
        dice = random.Random(seed)
        n = 64
        out = Pto.Buffer.array((3, n), "i2")
        out[:] = 0
        plan = []
        for _ in range(dice.randrange(4, 30)):
            t, where = dice.randrange(3), dice.choice((0, 0, 1, 2, None))
            a, b = sorted(dice.sample(range(n + 1), 2))
            what = dice.choice(("add", "add", "copy", "over"))
            other = dice.choice([k for k in range(3) if k != t])
            number = dice.randrange(1, 9)
            plan.append((what, t, other, a, b, where, number))

        def graph(orch, out):
            x = [orch.make_tensor(n * words, "i2") for _ in range(3)]
            for i in range(3):
                orch.submit_next_level(self.fill, [x[i].write(), 0], worker=i % 2)
            for what, t, other, a, b, where, number in plan:
                to = x[t][a * words:b * words]
                if what == "add":
                    submit = [to.update(), number]
                    task = self.sub_add if where == 2 else self.add
                else:
                    submit = [x[other][a * words:b * words].read(), to.write() if what == "over" else to.write_existing()]
                    task = self.sub_copy if where == 2 else self.copy
                if where == 2:
                    orch.submit_sub(task, submit)
                elif where is None:
                    orch.submit_next_level(task, submit)
                else:
                    orch.submit_next_level(task, submit, worker=where)
            for i in range(3):
                orch.submit_sub(self.sub_copy, [x[i][(words - 1) * n:words * n].read(), out[i].write_existing()])

        whole = np.zeros((3, n * words), "i2")
        for what, t, other, a, b, where, number in plan:
            part = slice(a * words, b * words)
            if what == "add":
                whole[t, part] += number
            else:
                whole[t, part] = whole[other, part]
        self.host.run(graph, out)
        wanted = whole[:, (words - 1) * n:words * n]
        self.assertEqual(out.tolist(), wanted.tolist(), (seed, plan))
        check_moved(self, self.host)

    def test_random_graphs(self):
        self.begin(remote_leave="1")
        for seed in range(SEEDS):
            self.random_run(seed, 1)

    def test_random_graphs_without_room(self):
        self.begin(remote_leave="1", arena="1M")
        for seed in range(SEEDS):
            self.random_run(seed, 1024)

    def test_more_than_there_is_room_for(self):
        self.begin(arena="1M")
        n = 16
        out = Pto.Buffer.array((n, 4), "i2")

        def graph(orch, out):
            x = [orch.make_tensor(N, "i2") for _ in range(n)]
            for i in range(n):
                orch.submit_next_level(self.fill, [x[i].write(), i], worker=0)
            for i in range(n):
                orch.submit_next_level(self.add, [x[i].update(), 100], worker=0)
            for i in range(n):
                orch.submit_next_level(self.copy, [x[i][:4].read(), out[i].write_existing()], worker=0)

        for _ in range(3):
            out[:] = 0
            self.host.run(graph, out)
            self.assertEqual(out.tolist(), [[100 + i] * 4 for i in range(n)])

    def test_what_is_lost_with_its_worker(self):
        self.begin(remote_leave="1")
        out = Pto.Buffer.array((2, 4), "i2")

        def graph(orch, out):
            x = orch.make_tensor(N, "i2")
            y = orch.make_tensor(4, "i2")
            orch.submit_next_level(self.fill, [x.write(), 3], worker=0)
            for _ in range(4):
                orch.submit_next_level(self.add, [x.update(), 10], worker=0)
            orch.submit_next_level(self.stop, [x.update()], worker=0)
            orch.submit_next_level(self.fill, [y.write(), 5], worker=1)
            orch.submit_next_level(self.copy, [y.read(), out[0].write_existing()], worker=1)
            orch.submit_next_level(self.copy, [x[:4].read(), out[1].write_existing()], worker=1)

        out[:] = 0
        with self.assertRaises(GLib.Error) as caught:
            self.host.run(graph, out)
        self.assertTrue(caught.exception.matches(Pto.Error.quark() if hasattr(Pto.Error, "quark") else Pto.error_quark(), Pto.Error.WORKER_LOST), caught.exception)
        self.assertEqual(out[0].tolist(), [5] * 4)
        self.assertEqual(out[1].tolist(), [0] * 4)


if __name__ == "__main__":
    tap.main()
