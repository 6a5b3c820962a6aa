# test_remote_staying.py: does a tensor that stays at a worker stay there, and is what is lost told?
# SPDX-License-Identifier: LGPL-2.1-or-later
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402

N = 1 << 19  # of two bytes: more than travels in a message, with another one


def copy(args):
    args[1][:] = args[0]


@unittest.skipIf(np is None, "no numpy")
class Staying(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        for _ in range(2):
            self.host.add_remote_worker("local:", roots=root)
        self.fill, self.add, self.copy, self.stop = (
            self.host.register(f) for f in (remote_steps.fill, remote_steps.add_in_place, remote_steps.copy, remote_steps.stop))
        self.sub_copy = self.host.register(copy)

    def tearDown(self):
        self.host.close()

    def count(self):
        run = self.host.dup_statistics()
        return run.get_bytes_sent(), run.get_bytes_received()

    def test_nothing_of_it_travels(self):
        out = Pto.Buffer.array((2, 4), "i2")

        def graph(orch, out):
            for i in range(2):
                x = orch.make_tensor_at(i, N, "i2")
                self.assertEqual(x.get_worker(), i)
                self.assertEqual(x[4:].get_worker(), i)
                orch.submit_next_level(self.fill, [x.write(), 3 + i], worker=i)
                orch.submit_next_level(self.add, [x.update(), 10], worker=i)
                orch.submit_next_level(self.add, [x[2:4].update(), 100], worker=i)
                orch.submit_next_level(self.copy, [x[:4].read(), out[i].write_existing()], worker=i)

        self.host.run(graph, out)
        self.assertEqual(out.tolist(), [[13, 13, 113, 113], [14, 14, 114, 114]])
        self.assertEqual(self.count(), (16, 16))  # out, both ways

    def test_it_is_not_thrown_away_for_room(self):
        for i in range(2):
            self.host.get_child(i).set_parameter("arena", str(16 << 20))
        out = Pto.Buffer.array(4, "i2")
        others = [Pto.Buffer.array(N, "i2") for _ in range(16)]

        def graph(orch, out, *others):
            x = orch.make_tensor_at(0, N, "i2")
            orch.submit_next_level(self.fill, [x.write(), 7], worker=0)
            for other in others:  # 16 MiB
                orch.submit_next_level(self.fill, [other.write_existing(), 1], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), out.write_existing()], worker=0)

        self.host.run(graph, out, *others)
        self.assertEqual(out.tolist(), [7] * 4)

    def test_where_one_was_others_are_left(self):
        """In the next run: what is left in its place comes like anything else."""
        out = Pto.Buffer.array((2, 4), "i2")

        def stay(orch, out):
            x = orch.make_tensor_at(0, N, "i2")
            orch.submit_next_level(self.fill, [x.write(), 7], worker=0)
            orch.submit_next_level(self.copy, [x[:4].read(), out.write_existing()], worker=0)

        def leave(orch, out):
            y, z = orch.make_tensor(N, "i2"), orch.make_tensor(N, "i2")
            orch.submit_next_level(self.fill, [y.write(), 5], worker=0)
            orch.submit_next_level(self.add, [y.update(), 10], worker=0)
            orch.submit_next_level(self.copy, [y.read(), z.write()], worker=1)
            orch.submit_next_level(self.copy, [z[-4:].read(), out.write_existing()], worker=1)

        for _ in range(3):
            out[:] = 0
            self.host.run(stay, out[0])
            self.host.run(leave, out[1])
            self.assertEqual(out.tolist(), [[7] * 4, [15] * 4])

    def test_a_worker_is_named_by_itself(self):
        out, far, other = Pto.Buffer.array(4, "i2"), list(self.host.get_children()), Pto.Worker(level=3)

        def graph(orch, out):
            x = orch.make_tensor_at(far[1], N, "i2")
            self.assertEqual(x.get_worker(), 1)
            orch.submit_next_level(self.fill, [x.write(), 7], worker=far[1])
            orch.submit_next_level_group(self.copy, [[x[:4].read(), out.write_existing()]], workers=[far[1]])
            for call in (lambda: orch.make_tensor_at(other, N), lambda: orch.submit_next_level(self.fill, [x.write(), 7], worker=other),
                         lambda: orch.submit_next_level_group(self.fill, [[x.write(), 7]], workers=[other])):
                with self.assertRaisesRegex(ValueError, "L3/0 is not below L4/0"):
                    call()

        self.host.run(graph, out)
        self.assertEqual(out.tolist(), [7] * 4)
        other.close()

    def test_it_is_for_its_worker(self):
        out = Pto.Buffer.array(4, "i2")
        texts = []

        def graph(orch, out):
            x = orch.make_tensor_at(1, 4, "i2")
            for submit in (lambda: orch.submit_next_level(self.fill, [x.write(), 1], worker=0),
                           lambda: orch.submit_next_level(self.fill, [x.write(), 1]),
                           lambda: orch.submit_sub(self.sub_copy, [out.read(), x.write()]),
                           lambda: orch.allreduce([x]),
                           lambda: orch.make_tensor_at(2, 4, "i2"),
                           lambda: orch.make_tensor_at(-1, 4, "i2")):
                with self.assertRaises(GLib.Error) as raised:
                    submit()
                texts.append(raised.exception.message)
            orch.submit_next_level(self.fill, [x.write(), 1], worker=1)

        self.host.run(graph, out)
        for text in texts[:3]:
            self.assertIn("stays at worker 1 (make_tensor_at)", text)
        self.assertEqual(texts[4:], [f"a tensor can not stay at worker {i}: L4/0 has no such worker, the ids of its workers are 0, 1" for i in (2, -1)])

    def test_the_first_task_is_given_all_of_it(self):
        out = Pto.Buffer.array(4, "i2")

        def graph(orch, out):
            x = orch.make_tensor_at(1, N, "i2")
            for part in x[:4], x[4:].reshape([2, (N - 4) // 2]):
                with self.assertRaises(Pto.InvalidArgsError) as caught:
                    orch.submit_next_level(self.fill, [part.write(), 1], worker=1)
                self.assertIn(f'task of "fill": argument 0 is {2 * part.get_n_elements()} of the {2 * N} bytes of a tensor that stays at '
                              "worker 1 (make_tensor_at), of which no task has written anything yet", caught.exception.message)
            orch.submit_next_level(self.fill, [x.reshape([2, N // 2]).write(), 1], worker=1)
            orch.submit_next_level(self.fill, [x[1:3].write(), 2], worker=1)
            orch.submit_next_level(self.copy, [x[:4].read(), out.write_existing()], worker=1)

        for _ in range(2):  # in each run anew
            self.host.run(graph, out)
            self.assertEqual(out.tolist(), [1, 2, 2, 1])

    def test_what_was_lost_with_its_worker(self):
        """The next life of the worker has nothing of it."""
        out = Pto.Buffer.array(4, "i2")
        token = Pto.Buffer.array(4, "i2")

        def graph(orch, out, token):
            x = orch.make_tensor_at(0, 4, "i2")
            orch.submit_next_level(self.fill, [x.write(), 1], worker=0)
            orch.submit_next_level(self.stop, [token.write_existing()], worker=0)
            orch.submit_next_level(self.copy, [x.read(), out.write_existing()], worker=0)

        out[:] = 5
        with self.assertRaises(GLib.Error) as raised:
            self.host.run(graph, out, token)
        self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
        self.assertEqual(out.tolist(), [5] * 4)  # not what memory holds that was begun anew

    def test_a_graph(self):
        out = Pto.Buffer.array(4, "i2")

        def graph(orch, out):
            x = orch.make_tensor_at(1, 4, "i2")
            orch.submit_next_level(self.fill, [x.write(), 9], worker=1)
            orch.submit_next_level(self.copy, [x.read(), out.write_existing()], worker=1)

        captured = self.host.capture(graph, out)
        for _ in range(2):
            out[:] = 0
            self.host.run(captured, out)
            self.assertEqual(out.tolist(), [9] * 4)
            self.assertEqual(self.count(), (8, 8))


tap.main()
