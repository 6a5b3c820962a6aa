# test_remote_memory.py: has a program memory of a remote worker, across runs, and is what is lost told?
# SPDX-License-Identifier: LGPL-2.1-or-later
import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, remote_steps, root  # noqa: E402


I16 = Pto.Dtype.INT16
MIB = 1 << 20


def over(buffer, n, offset=0):
    return Pto.Tensor.new_for_buffer(buffer, offset, I16, [n])


def copy(args):
    args[1][:] = args[0]


def data(n, seed=3):
    return ((np.arange(n, dtype="i8") ** 2 + seed) % 251).astype("u1").tobytes()


@unittest.skipIf(np is None, "no numpy")
class Memory(unittest.TestCase):
    addresses = ("local:", "local:")
    options = {"roots": root}

    def setUp(self):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        self.remotes = [self.host.add_remote_worker(address, roots=root) for address in self.addresses]
        self.fill, self.add, self.copy, self.stop, self.which = (
            self.host.register(f) for f in (remote_steps.fill, remote_steps.add_in_place, remote_steps.copy, remote_steps.stop,
                                            remote_steps.which))
        self.sub_copy = self.host.register(copy)

    def tearDown(self):
        self.host.close()

    def fails(self, code, call, *words):
        with self.assertRaises(GLib.Error) as raised:
            call()
        text = raised.exception.message
        self.assertTrue(raised.exception.matches(Pto.Error.quark(), code), text)
        for word in words:
            self.assertIn(word, text)

    def count(self):
        run = self.host.dup_statistics()
        return run.get_bytes_sent(), run.get_bytes_received(), run.get_bytes_saved()

    def pids(self):
        out = Pto.Buffer.array((2, 1), "i4")

        def graph(orch, out):
            for i in range(2):
                orch.submit_next_level(self.which, [out[i].write_existing()], worker=i)

        self.host.run(graph, out)
        return [int(pid) for pid in out[:, 0]]

    def kill(self, i):
        """The far end is ended, and the next life of its worker has begun when this returns."""
        before = self.pids()
        os.kill(before[i], signal.SIGKILL)
        deadline = GLib.get_monotonic_time() + 60 * 10**6
        while True:
            try:
                now = self.pids()
            except GLib.Error as error:
                self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error.message)
            else:
                if now[i] != before[i]:
                    return
            self.assertLess(GLib.get_monotonic_time(), deadline)

    def test_it_holds_what_was_written(self):
        for size in (1, 4096, MIB + 1, 5 * MIB + 3):  # in one part and in several
            buffer = self.remotes[0].alloc_buffer(size)
            self.assertEqual((buffer.get_size(), buffer.get_worker(), buffer.is_remote(), buffer.get_fd()),
                             (size, self.remotes[0], True, -1))
            self.assertEqual(buffer.read(0, size).get_data(), bytes(size))
            buffer.write(0, GLib.Bytes.new(data(size)))
            self.assertEqual(buffer.read(0, size).get_data(), data(size))
            self.assertEqual(buffer.read(size // 2, size - size // 2).get_data(), data(size)[size // 2:])
        self.assertIn("bytes of remote memory at 0x", buffer.to_string())

    def test_nothing_of_it_travels_in_any_run(self):
        n = MIB
        x = [remote.alloc_buffer(2 * n) for remote in self.remotes]
        out = Pto.Buffer.array((2, 4), "i2")

        def first(orch, *x):
            for i in range(2):
                orch.submit_next_level(self.fill, [over(self.x[i], n).write(), 3 + i], worker=i)

        def then(orch, out):
            for i in range(2):
                t = over(self.x[i], n)
                orch.submit_next_level(self.add, [t.update(), 10], worker=i)
                orch.submit_next_level(self.add, [t[2:4].update(), 100], worker=i)
                orch.submit_next_level(self.copy, [t[:4].read(), out[i].write_existing()], worker=i)

        self.x = x
        self.host.run(first)
        self.assertEqual(self.count(), (0, 0, 0))
        for _ in range(2):
            self.host.run(then, out)
            self.assertEqual(self.count()[:2], (16, 16))  # out, both ways
            self.assertEqual(self.count()[2], 2 * (2 * n + 4 + 8))  # what add, add and copy have read
        self.assertEqual(out.tolist(), [[23, 23, 223, 223], [24, 24, 224, 224]])
        self.assertEqual(np.frombuffer(x[1].read(2 * n - 4, 4).get_data(), "i2").tolist(), [24, 24])

    def traffic(self):
        """Bytes sent and received by each remote worker so far, memory of the program included."""
        text = self.host.dup_metrics()
        return [[int(float(re.search(rf'pto_remote_{what}_bytes_total{{[^}}]*"L4/0/L3/{i}"[^}}]*}} (\S+)', text)[1])) for what in ("sent", "received")]
                for i in range(2)]

    def test_copies(self):
        size = 5 * MIB + 3  # in several parts
        a, b = (remote.alloc_buffer(size) for remote in self.remotes)
        here, chip = Pto.Buffer.new(size), Pto.Worker()
        there = chip.alloc_buffer(size)
        np.asarray(here)[:] = np.frombuffer(data(size), "u1")
        before = self.traffic()
        self.assertTrue(here.copy_to(a))
        self.assertEqual(self.traffic(), [[before[0][0] + size, before[0][1]], before[1]])
        a.copy_to(b)
        self.assertEqual(self.traffic(), [[before[0][0] + size, before[0][1] + size], [before[1][0] + size, before[1][1]]])
        b.copy_to(there)
        np.asarray(here)[:] = 0
        there.copy_to(here)
        self.assertEqual(np.asarray(here).tobytes(), data(size))
        # A part of it, and nothing beside it.
        b.write(0, GLib.Bytes.new(bytes(size)))
        a.copy_to(b, 7, 2 * MIB - 1, 3 * MIB)
        self.assertEqual(b.read(0, size).get_data(), bytes(2 * MIB - 1) + data(size)[7:7 + 3 * MIB] + bytes(4))
        a.copy_to(b, size, size)
        b.copy_to(a, 5, 9, 0)
        self.assertEqual(a.read(0, size).get_data(), data(size))
        chip.close()

    def test_copies_by_way_of_little(self):
        """Whether there is room for one part, or two, or just a smaller one."""
        for arena in MIB, 4 * MIB, 6 * MIB, 8 * MIB:
            with self.subTest(arena):
                host = Pto.Worker(level=4)
                host.set_parameter("arena", arena)
                remotes = [host.add_remote_worker(address, **self.options) for address in self.addresses]
                for remote in remotes:
                    remote.set_parameter("arena", 32 * MIB)
                a, b = (remote.alloc_buffer(14 * MIB + 5) for remote in remotes)
                contents = np.random.default_rng(arena).integers(0, 256, 14 * MIB + 5, "u1").tobytes()
                a.write(0, GLib.Bytes.new(contents))
                a.copy_to(b)
                self.assertTrue(b.read(0, 14 * MIB + 5).get_data() == contents)
                host.close()

    def test_a_copy_at_one_worker(self):
        """Nothing travels, and what overlaps is as if it were copied at once."""
        size = 3 * MIB + 1
        a, b = (self.remotes[0].alloc_buffer(size) for _ in range(2))
        a.write(0, GLib.Bytes.new(data(size)))
        before = self.traffic()
        a.copy_to(b, 1, 0, size - 1)
        b.copy_to(b, 0, 100, size - 100)
        a.copy_to(a, 4096, 0)
        self.assertEqual(self.traffic(), before)
        moved = data(size)[1:] + b"\0"
        self.assertEqual(b.read(0, size).get_data(), moved[:100] + moved[:-100])
        self.assertEqual(a.read(0, size).get_data(), data(size)[4096:] + data(size)[-4096:])

    def test_copies_that_can_not_be(self):
        a, b = (remote.alloc_buffer(64) for remote in self.remotes)
        a.write(0, GLib.Bytes.new(data(64)))
        b.write(0, GLib.Bytes.new(data(64, 9)))
        for call in (lambda: a.copy_to(b, 60, 0, 5), lambda: a.copy_to(b, 0, 60, 5), lambda: a.copy_to(b, 2**64 - 1, 0, 1),
                     lambda: a.copy_to(Pto.Buffer.new(63)), lambda: Pto.Buffer.new(65).copy_to(a), lambda: a.copy_to(b, 0, 1, 2**64 - 1)):
            self.fails(Pto.Error.INVALID_ARGS, call, "reach beyond a buffer of")
        self.assertEqual(b.read(0, 64).get_data(), data(64, 9))
        self.kill(0)
        earlier = "is of life 1 of L4/0/L3/0, which was lost, and all of its memory with it; this is its life 2"
        for call in lambda: a.copy_to(b), lambda: b.copy_to(a), lambda: a.copy_to(a), lambda: a.copy_to(Pto.Buffer.new(64)):
            self.fails(Pto.Error.WORKER_LOST, call, earlier)
        self.assertEqual(b.read(0, 64).get_data(), data(64, 9))
        again = self.remotes[0].alloc_buffer(64)
        b.copy_to(again)
        self.assertEqual(again.read(0, 64).get_data(), data(64, 9))
        self.host.close()
        self.fails(Pto.Error.CLOSED, lambda: b.copy_to(again), "closed")

    def test_copies_inside_an_orchestration(self):
        """They go in between its tasks."""
        a, b = (remote.alloc_buffer(8) for remote in self.remotes)
        out = Pto.Buffer.array(4, "i2")

        def graph(orch, out):
            a.write(0, GLib.Bytes.new(np.arange(4, dtype="i2").tobytes()))
            a.copy_to(b)
            orch.submit_next_level(self.add, [over(b, 4).update(), 10], worker=1)
            orch.submit_next_level(self.copy, [over(b, 4).read(), out.write_existing()], worker=1)

        self.host.run(graph, out)
        self.assertEqual(out.tolist(), [10, 11, 12, 13])

    def test_copies_between_trees(self):
        other = Pto.Worker(level=4)
        a, b = self.remotes[0].alloc_buffer(3 * MIB), other.add_remote_worker("local:", roots=root).alloc_buffer(3 * MIB)
        a.write(0, GLib.Bytes.new(data(3 * MIB)))
        a.copy_to(b)
        self.assertEqual(b.read(0, 3 * MIB).get_data(), data(3 * MIB))
        other.close()

    def test_tokens(self):
        """A buffer of a token is the same memory, in both directions, for tasks too, and nothing travels for it."""
        worker = self.remotes[0]
        a = worker.alloc_buffer(4096)
        a.write(0, GLib.Bytes.new(data(4096)))
        before = self.traffic()
        token, part = a.export(), a.export(64, 16)
        self.assertRegex(token, r"^memory1:[0-9a-f]{32}:L4/0/L3/0:1:[0-9]+:0:4096:[0-9a-f]{32}$")
        self.assertEqual(token, a.export(0, 4096))
        b, c = worker.import_buffer(token), worker.import_buffer(part)
        d = worker.import_buffer(c.export(4))  # a part of a part
        self.assertEqual(self.traffic(), before)
        self.assertEqual([(x.get_size(), x.get_address() - a.get_address(), x.is_remote(), x.get_worker() == worker) for x in (b, c, d)],
                         [(4096, 0, True, True), (16, 64, True, True), (12, 68, True, True)])
        self.assertEqual((b.read(0, 4096).get_data(), c.read(0, 16).get_data(), d.read(0, 12).get_data()),
                         (data(4096), data(4096)[64:80], data(4096)[68:80]))
        c.write(2, GLib.Bytes.new(b"XY"))
        self.assertEqual(a.read(64, 6).get_data(), data(4096)[64:66] + b"XY" + data(4096)[68:70])
        self.fails(Pto.Error.INVALID_ARGS, lambda: c.read(0, 17), "reach beyond a buffer of 16 bytes")
        self.fails(Pto.Error.INVALID_ARGS, lambda: c.export(0, 17), "reach beyond a buffer of 16 bytes")
        out = Pto.Buffer.array(8, "i2")

        def graph(orch, out):
            orch.submit_next_level(self.fill, [over(a, 2048).write(), 1], worker=0)
            orch.submit_next_level(self.add, [over(c, 8).update(), 10], worker=0)
            orch.submit_next_level(self.copy, [over(b, 8, 66).read(), out.write_existing()], worker=0)

        for _ in range(8):
            self.host.run(graph, out)  # they depend on each other
            self.assertEqual(out.tolist(), [11] * 7 + [1])
            self.assertEqual(self.count()[1], 16)

    def test_the_last_of_them_gives_it_back(self):
        worker = self.remotes[0]
        worker.set_parameter("arena", str(8 * MIB))
        first = worker.alloc_buffer(5 * MIB)
        first.write(9, GLib.Bytes.new(b"here"))
        token = first.export(8, 8)
        second = worker.import_buffer(token)
        del first
        gc.collect()
        self.fails(Pto.Error.NO_MEMORY, lambda: worker.alloc_buffer(5 * MIB), "no room")
        self.assertEqual(second.read(1, 4).get_data(), b"here")
        third = over(worker.import_buffer(token), 4)  # a tensor has it, too
        del second
        gc.collect()
        self.fails(Pto.Error.NO_MEMORY, lambda: worker.alloc_buffer(5 * MIB), "no room")
        fourth = worker.import_buffer(token)
        del third, fourth
        gc.collect()
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.import_buffer(token), "memory of L4/0/L3/0 that was given back")
        again = worker.alloc_buffer(5 * MIB)  # in its place, and the token is not of this
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.import_buffer(token), "memory of L4/0/L3/0 that was given back")
        self.assertEqual(again.read(0, 16).get_data(), bytes(16))
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.free(again.get_address()), "belongs to a buffer")

    def test_what_is_no_token(self):
        worker = self.remotes[0]
        a = worker.alloc_buffer(4096)
        unknown = worker.import_buffer
        for text in "", "memory1", "x" * 600, "memory1:" + ":" * 6 + "0" * 31, "\u00e9" * 99, a.export() + "0", a.export()[:-1], "memory2" + a.export()[7:]:
            self.fails(Pto.Error.INVALID_ARGS, lambda: unknown(text), "is no token of a buffer: Buffer.export() gives one")
        good = a.export(0, 64).split(":")
        other = self.remotes[1].alloc_buffer(4096).export(0, 64).split(":")
        seal = "its seal does not fit"
        # Each of its words, and words of another token.
        for i, word, error in ((2, "L4/0/L3/1", seal), (3, "2", seal), (3, str((1 << 32) + 1), seal), (4, "77", seal), (5, "4096", seal),
                               (6, "65", seal), (6, str((1 << 64) - 1), seal), (7, other[7], seal), (7, "0" * 32, seal), (7, good[7].upper(), seal),
                               (1, "0" * 32, "of another program, or of another tree of this one")):
            changed = [*good[:i], word, *good[i + 1:]]
            self.fails(Pto.Error.INVALID_ARGS, lambda: unknown(":".join(changed)), error)
        for i in range(len(a.export())):
            text = bytearray(a.export(), "ascii")
            text[i] ^= 1
            with self.assertRaises(GLib.Error) as raised:
                unknown(text.decode())
            self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.INVALID_ARGS))
        self.assertEqual(unknown(":".join(good)).get_size(), 64)
        # What can not be exported, or imported.
        for part in (1, 4096), (4096, 1), (1 << 63, 1 << 63), (4097, 0):
            self.fails(Pto.Error.INVALID_ARGS, lambda: a.export(*part), "reach beyond a buffer of")
        self.fails(Pto.Error.INVALID_ARGS, lambda: a.export(4096), "0 bytes of a buffer can not be exported")
        self.fails(Pto.Error.NOT_SUPPORTED, lambda: Pto.Buffer.new(64).export(), "is no memory of a remote worker")
        chip = Pto.Worker()
        self.fails(Pto.Error.NOT_SUPPORTED, lambda: chip.alloc_buffer(64).export(), "device memory of L2/0, which is no remote worker")
        for local in self.host, chip:
            self.fails(Pto.Error.NOT_SUPPORTED, lambda: local.import_buffer(a.export()), "is no remote worker, and has no memory that could be imported")
        chip.close()

    def test_a_token_of_somebody_else(self):
        a = self.remotes[0].alloc_buffer(64)
        self.fails(Pto.Error.INVALID_ARGS, lambda: self.remotes[1].import_buffer(a.export()),
                   "memory of L4/0/L3/0, which L4/0/L3/1 does not share", "Buffer.copy_to() into memory of L4/0/L3/1 (Worker.alloc_buffer())")
        elsewhere = "memory of L4/0/L3/0 of another program, or of another tree of this one, which L4/0/L3/0 has not"
        other = Pto.Worker(level=4)
        remote = other.add_remote_worker(self.addresses[0], **self.options)
        self.fails(Pto.Error.INVALID_ARGS, lambda: remote.import_buffer(a.export()), elsewhere)  # which has exported nothing
        b = remote.alloc_buffer(64)
        for importer, token in (remote, a.export()), (self.remotes[0], b.export()):
            self.fails(Pto.Error.INVALID_ARGS, lambda: importer.import_buffer(token), elsewhere)
        other.close()
        # Another program, at the same address.
        code = ("import os, sys, gi; gi.require_version('Pto', '1'); from gi.repository import Pto\n"
                "host = Pto.Worker(level=4); remote = host.add_remote_worker(sys.argv[1])\n"
                "a = remote.alloc_buffer(64); print(a.export())\n"
                "try: remote.import_buffer(sys.argv[2])\n"
                "except Exception as error: print(error.message)\n"
                "host.close()")
        done = subprocess.run([sys.executable, "-c", code, self.addresses[0], a.export()],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        token, error = done.stdout.splitlines()
        self.assertIn(elsewhere, error)
        self.fails(Pto.Error.INVALID_ARGS, lambda: self.remotes[0].import_buffer(token), elsewhere)

    def test_a_token_of_an_earlier_life(self):
        a, b = (remote.alloc_buffer(64) for remote in self.remotes)
        tokens = [a.export(), self.remotes[0].alloc_buffer(64).export()]  # of the second there is no buffer
        kept = b.export()
        self.kill(0)
        for token in tokens:
            self.fails(Pto.Error.WORKER_LOST, lambda: self.remotes[0].import_buffer(token),
                       "the token is of memory of life 1 of L4/0/L3/0, which was lost, and all of its memory with it; this is its life 2")
        self.fails(Pto.Error.WORKER_LOST, lambda: a.export(), "is of life 1 of L4/0/L3/0, which was lost", "this is its life 2")
        self.assertEqual(self.remotes[1].import_buffer(kept).get_size(), 64)  # of the other nothing was lost
        again = self.remotes[0].alloc_buffer(64)
        self.assertIn(":L4/0/L3/0:2:", again.export())
        self.assertEqual(self.remotes[0].import_buffer(again.export()).read(0, 64).get_data(), bytes(64))

    def test_a_token_of_a_worker_that_is_gone(self):
        """The worker is lost, and not begun again: there is nobody who has it."""
        other = Pto.Worker(level=4)
        remote = other.add_remote_worker(self.addresses[0], **self.options)
        stop = other.register(remote_steps.stop)
        a = remote.alloc_buffer(64)
        token, out = a.export(), Pto.Buffer.array(4, "i2")
        self.fails(Pto.Error.WORKER_LOST, lambda: other.run(lambda orch, out: orch.submit_next_level(stop, [out.write_existing()]) and None, out))
        for call in lambda: remote.import_buffer(token), lambda: a.export(), lambda: a.copy_to(a, 0, 1, 8):
            self.fails(Pto.Error.WORKER_LOST, call, "L4/0/L3/0")
        other.close()

    def test_tokens_inside_an_orchestration(self):
        a = self.remotes[0].alloc_buffer(8)
        out = Pto.Buffer.array(4, "i2")

        def graph(orch, out):
            b = self.remotes[0].import_buffer(a.export(2, 4))
            orch.submit_next_level(self.add, [over(b, 2).update(), 10], worker=0)
            orch.submit_next_level(self.copy, [over(a, 4).read(), out.write_existing()], worker=0)

        self.host.run(graph, out)
        self.assertEqual(out.tolist(), [0, 10, 10, 0])

    def test_tokens_in_many_threads(self):
        """While some import, and let go, others do."""
        worker = self.remotes[0]
        errors = []

        def use(token):
            try:
                for i in range(50):
                    b = worker.import_buffer(token)
                    b.write(i, GLib.Bytes.new(b"x"))
                    del b
            except GLib.Error as error:
                errors.append(error.message)

        a = worker.alloc_buffer(64)
        threads = [threading.Thread(target=use, args=(a.export(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(a.read(0, 64).get_data(), b"x" * 50 + bytes(14))

    def test_numbers(self):
        worker, other = self.remotes
        a = worker.malloc(4096)
        self.assertTrue(worker.copy_to(a + 16, GLib.Bytes.new(b"abcd")))
        self.assertEqual(worker.copy_from(a + 15, 6).get_data(), b"\0abcd\0")
        out = Pto.Buffer.array(2, "i2")

        def graph(orch, out):
            tensor = Pto.Tensor.new_external(a + 16, I16, [2])
            self.assertTrue(tensor.is_remote())
            orch.submit_next_level(self.copy, [tensor.read(), out.write_existing()], worker=0)

        def written(orch):
            orch.submit_next_level(self.fill, [Pto.Tensor.new_external(a + 32, I16, [2]).write(), 7], worker=0)

        self.host.run(graph, out)
        self.assertEqual(out.tobytes(), b"abcd")
        self.host.run(written)

        def given_back(orch, out):
            b = worker.malloc(4)
            orch.submit_next_level(self.fill, [Pto.Tensor.new_external(b, I16, [2]).write(), 9], worker=0)
            orch.submit_next_level(self.copy, [Pto.Tensor.new_external(b, I16, [2]).read(), out.write_existing()], worker=0)
            self.assertTrue(worker.free(b))
            self.fails(Pto.Error.INVALID_ARGS, lambda: worker.free(b), "was given back")
            self.assertNotEqual(worker.malloc(4), b)

        self.host.run(given_back, out)
        self.assertEqual(out.tolist(), [9, 9])
        self.assertEqual(worker.copy_from(a + 30, 8).get_data(), b"\0\0\7\0\7\0\0\0")
        self.fails(Pto.Error.INVALID_ARGS, lambda: other.copy_from(a, 4), "is memory of L4/0/L3/0, not of L4/0/L3/1")
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.copy_from(a, 4097), "4097 bytes from", "do not lie in memory of L4/0/L3/0")
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.copy_to(a + 4096, GLib.Bytes.new(b"x")), "do not lie in memory")
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.free(a + 64), "is not what malloc() of L4/0/L3/0 gave")
        self.assertTrue(worker.free(a))
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.free(a), "was given back")
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.copy_from(a, 1), "do not lie in memory")
        for use in lambda: self.host.run(graph, out), lambda: self.host.run(written):
            self.fails(Pto.Error.INVALID_ARGS, use, "argument 0 is no memory of a remote worker below L4/0", "was given back")
        buffer = worker.alloc_buffer(64)
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.free(buffer.get_address()), "belongs to a buffer")
        self.fails(Pto.Error.INVALID_ARGS, lambda: buffer.read(60, 5), "reach beyond a buffer of 64 bytes")
        self.fails(Pto.Error.INVALID_ARGS, lambda: buffer.write(65, GLib.Bytes.new(b"")), "reach beyond")

    def test_an_address_of_a_buffer_there_is_none_here(self):
        """Who looks at such memory in this process would fault."""
        x, number = self.remotes[0].alloc_buffer(64), self.remotes[1].malloc(64)
        refusal = "is memory of a remote worker, and not of this process"
        for host in x.get_address(), x.get_address() - 4, x.get_address() + 60:
            self.fails(Pto.Error.INVALID_ARGS, lambda: self.remotes[1].copy_to_address(number, host, 8), refusal)
            self.fails(Pto.Error.INVALID_ARGS, lambda: self.remotes[1].copy_from_address(host, number, 8), refusal)
        with Pto.Worker(platform="a2a3sim") as chip:
            device = chip.malloc(8)
            self.fails(Pto.Error.INVALID_ARGS, lambda: chip.copy_to_address(device, x.get_address(), 8), refusal)
        self.assertTrue(self.remotes[1].copy_to_address(number, x.get_address(), 0))
        self.remotes[1].free(number)

    def test_sizes(self):
        worker = self.remotes[0]
        worker.set_parameter("arena", str(8 * MIB))
        self.fails(Pto.Error.INVALID_ARGS, lambda: worker.alloc_buffer(0), "at least 1 is wanted")
        for size in (8 * MIB + 1, 1 << 62, (1 << 64) - 1):
            self.fails(Pto.Error.NO_MEMORY, lambda: worker.alloc_buffer(size),
                       f"L4/0/L3/0 has no room for {size} bytes: raise its parameter arena, which is {8 * MIB} bytes")
        large = worker.alloc_buffer(6 * MIB)
        self.fails(Pto.Error.NO_MEMORY, lambda: worker.alloc_buffer(3 * MIB), "L4/0/L3/0", "raise its parameter arena")
        large.write(0, GLib.Bytes.new(b"all is well"))
        self.assertEqual(large.read(0, 11).get_data(), b"all is well")
        self.fails(Pto.Error.NOT_SUPPORTED, lambda: self.host.alloc_buffer(64), "a worker of level 4 has no device memory")

    def test_what_tasks_left_makes_room(self):
        worker = self.remotes[0]
        worker.set_parameter("arena", str(8 * MIB))
        out = Pto.Buffer.array(3 * MIB // 2, "i2")

        def graph(orch, out):
            orch.submit_next_level(self.fill, [out.write_existing(), 5], worker=0)

        self.host.run(graph, out)
        large = worker.alloc_buffer(7 * MIB)
        self.assertEqual(large.read(7 * MIB - 1, 1).get_data(), b"\0")

    def test_it_is_given_back_with_its_buffer(self):
        worker = self.remotes[0]
        worker.set_parameter("arena", str(8 * MIB))
        for _ in range(8):
            buffer = worker.alloc_buffer(5 * MIB)
            tensor = over(buffer, 8)
            del buffer
            gc.collect()
            self.fails(Pto.Error.NO_MEMORY, lambda: worker.alloc_buffer(5 * MIB), "no room")  # the tensor has it
            del tensor
            gc.collect()

    def test_it_is_for_its_worker(self):
        x = self.remotes[1].alloc_buffer(8)
        out = Pto.Buffer.array(4, "i2")
        texts = []

        def graph(orch, out):
            t = over(x, 4)
            for submit in (lambda: orch.submit_next_level(self.fill, [t.write(), 1], worker=0),
                           lambda: orch.submit_next_level(self.fill, [t.write(), 1]),
                           lambda: orch.submit_sub(self.sub_copy, [out.read(), t.write()])):
                with self.assertRaises(GLib.Error) as raised:
                    submit()
                texts.append(raised.exception.message)
            orch.submit_next_level(self.fill, [t.write(), 9], worker=1)

        self.host.run(graph, out)
        for text in texts:
            self.assertIn("memory of L4/0/L3/1, which no other worker sees: name worker 1 for the task", text)
        self.assertEqual(np.frombuffer(x.read(0, 8).get_data(), "i2").tolist(), [9] * 4)
        for what in (x, over(x, 4)):
            with self.assertRaisesRegex(ValueError, "memory of a remote worker, and is not here"):
                np.asarray(what)
        with self.assertRaisesRegex(ValueError, "memory of a remote worker, and is not here"):
            x.ref_bytes()
        self.fails(Pto.Error.INVALID_ARGS, lambda: over(x, 4).ref_bytes(), "memory of a remote worker, and is not here")

    def test_not_of_another_tree(self):
        other = Pto.Worker(level=4)
        other.add_remote_worker("local:", roots=root)
        fill = other.register(remote_steps.fill)
        x = self.remotes[0].alloc_buffer(8)

        def graph(orch):
            orch.submit_next_level(fill, [over(x, 4).write(), 1], worker=0)

        self.fails(Pto.Error.INVALID_ARGS, lambda: other.run(graph), "argument 0 is no memory of a remote worker below", "a worker elsewhere")
        other.close()

    def test_an_earlier_life(self):
        x = self.remotes[0].alloc_buffer(8)
        y = self.remotes[1].alloc_buffer(8)
        y.write(0, GLib.Bytes.new(data(8)))
        self.kill(0)
        earlier = "is of life 1 of L4/0/L3/0, which was lost, and all of its memory with it; this is its life 2"
        self.fails(Pto.Error.WORKER_LOST, lambda: x.read(0, 8), earlier)
        self.fails(Pto.Error.WORKER_LOST, lambda: x.write(0, GLib.Bytes.new(b"x")), earlier)

        def graph(orch):
            orch.submit_next_level(self.fill, [over(x, 4).write(), 1], worker=0)

        self.fails(Pto.Error.WORKER_LOST, lambda: self.host.run(graph), earlier)
        self.assertEqual(y.read(0, 8).get_data(), data(8))  # of the other nothing was lost
        del x
        gc.collect()
        again = self.remotes[0].alloc_buffer(8)
        self.assertEqual(again.read(0, 8).get_data(), bytes(8))

    def test_it_dies_with_the_task_before(self):
        """A task that was submitted to a life that is over is told so by the next one."""
        x = self.remotes[0].alloc_buffer(8)
        x.write(0, GLib.Bytes.new(data(8)))
        token, out = Pto.Buffer.array(4, "i2"), Pto.Buffer.array(4, "i2")
        out[:] = 5

        def graph(orch, token, out):
            orch.submit_next_level(self.stop, [token.write_existing()], worker=0)
            orch.submit_next_level(self.fill, [over(x, 4).write(), 1], worker=0)
            orch.submit_next_level(self.copy, [over(x, 4).read(), out.write_existing()], worker=0)

        self.fails(Pto.Error.WORKER_LOST, lambda: self.host.run(graph, token, out))
        self.assertEqual(out.tolist(), [5] * 4)
        self.fails(Pto.Error.WORKER_LOST, lambda: x.read(0, 8), "life 1 of L4/0/L3/0")

    def test_it_dies_in_the_midst(self):
        """Of each use: the far end stands still, so none is over before it is ended."""
        self.die(lambda x: x.write(0, GLib.Bytes.new(bytes(24 * MIB))), lambda x: x.read(0, 24 * MIB), lambda x: self.remotes[0].alloc_buffer(8),
                 last_may_come_later=True)

    def test_it_dies_in_the_midst_of_a_copy(self):
        other = self.remotes[1].alloc_buffer(24 * MIB)
        other.write(0, GLib.Bytes.new(b"\5" * (24 * MIB)))
        self.die(lambda x: other.copy_to(x), lambda x: x.copy_to(x, 0, 1, 8), lambda x: x.copy_to(other))
        self.assertEqual(other.read(0, 24 * MIB).get_data(), b"\5" * (24 * MIB))  # nothing has come

    def die(self, *uses, last_may_come_later=False):
        """In the midst of each of them; the last may have come to the next life."""
        for number, use in enumerate(uses):
            x = self.remotes[0].alloc_buffer(24 * MIB)
            pid = self.pids()[0]
            errors = []

            def call():
                try:
                    use(x)
                except GLib.Error as error:
                    errors.append(error)

            os.kill(pid, signal.SIGSTOP)
            thread = threading.Thread(target=call)
            thread.start()
            os.kill(pid, signal.SIGKILL)
            thread.join(60)
            self.assertFalse(thread.is_alive())
            # Who asks for memory may have come to the next life: that has some.
            self.assertEqual([error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST) for error in errors], [True] * len(errors))
            self.assertTrue(errors or (last_may_come_later and use is uses[-1]))
            deadline = GLib.get_monotonic_time() + 60 * 10**6
            while True:
                try:
                    self.assertNotEqual(self.pids()[0], pid)
                    break
                except GLib.Error as error:
                    self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error.message)
                self.assertLess(GLib.get_monotonic_time(), deadline)
            self.fails(Pto.Error.WORKER_LOST, lambda: x.read(0, 8), f"is of life {number + 1} of L4/0/L3/0", f"this is its life {number + 2}")

    def until_it_is(self, life):
        deadline = GLib.get_monotonic_time() + 60 * 10**6
        while self.host.doing["children"][0]["life"] != life:
            self.assertLess(GLib.get_monotonic_time(), deadline)
            GLib.usleep(1000)

    def far_end_stands_still(self, pid):
        """Until the test is over, and nobody gives it up. What is busy from here on is so with what comes."""
        self.until_it_is("idle")
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))

    def cancelled(self, use):
        """What is raised when the cancellable of the thread is cancelled in the midst of it."""
        cancellable, errors = Gio.Cancellable(), []

        def call():
            cancellable.push_current()
            try:
                use()
            except GLib.Error as error:
                errors.append(error)
            finally:
                cancellable.pop_current()

        thread = threading.Thread(target=call)
        thread.start()
        self.until_it_is("busy")
        cancellable.cancel()
        thread.join(60)
        self.assertFalse(thread.is_alive())
        error, = errors
        self.assertTrue(error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error.message)
        # Of a copy between two, who is waited for just then.
        self.assertRegex(error.message, "L4/0/L3/[01]")

    def test_cancelled(self):
        """Whatever the far end does; what it had it has, and what it was asked for is given back."""
        self.remotes[0].set_parameter("remote-lease", 0)
        self.remotes[0].set_parameter("remote-suspect", 0)
        self.remotes[0].set_parameter("arena", 72 * MIB)
        x = self.remotes[0].alloc_buffer(24 * MIB)
        x.write(0, GLib.Bytes.new(data(8)))
        other = self.remotes[1].alloc_buffer(8 * MIB)
        number = self.remotes[0].malloc(4 * MIB)
        pid = self.pids()[0]
        for use in (lambda: x.read(0, 24 * MIB), lambda: x.write(8, GLib.Bytes.new(bytes(16 * MIB))), lambda: self.remotes[0].alloc_buffer(32 * MIB),
                    lambda: self.remotes[0].malloc(32 * MIB), lambda: self.remotes[0].copy_from(number, 64),
                    lambda: self.remotes[0].copy_to(number, GLib.Bytes.new(bytes(4 * MIB))), lambda: x.copy_to(x, 0, MIB, 8),
                    lambda: x.copy_to(other, size=8 * MIB), lambda: other.copy_to(x, 0, 2 * MIB)):
            self.far_end_stands_still(pid)
            self.cancelled(use)
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(x.read(0, 16).get_data(), data(8) + bytes(8))
        self.assertEqual(self.remotes[0].alloc_buffer(32 * MIB).read(32 * MIB - 4, 4).get_data(), bytes(4))
        self.assertEqual(self.pids()[0], pid)

    def test_cancelled_inside_an_orchestration(self):
        self.remotes[0].set_parameter("remote-lease", 0)
        x = self.remotes[0].alloc_buffer(8)
        pid = self.pids()[0]
        cancellable, errors = Gio.Cancellable(), []

        def graph(orch):
            try:
                x.read(0, 8)
            except GLib.Error as error:
                errors.append(error)
                raise

        def cancel():
            self.until_it_is("busy")
            cancellable.cancel()

        self.far_end_stands_still(pid)
        thread = threading.Thread(target=cancel)
        thread.start()
        with self.assertRaises(GLib.Error) as raised:
            self.host.run(graph, cancellable=cancellable)
        thread.join(60)
        for error in (raised.exception, *errors):
            self.assertTrue(error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error.message)
        self.assertEqual(len(errors), 1)
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(x.read(0, 8).get_data(), bytes(8))

    def test_closed_in_the_midst(self):
        """The close does not wait for the far end, and neither does who has used its memory."""
        self.remotes[0].set_parameter("remote-lease", 0)
        x = self.remotes[0].alloc_buffer(8)
        errors = []

        def call():
            try:
                x.read(0, 8)
            except GLib.Error as error:
                errors.append(error)

        self.far_end_stands_still(self.pids()[0])
        thread = threading.Thread(target=call)
        thread.start()
        self.until_it_is("busy")
        self.host.close()
        thread.join(60)
        error, = errors
        self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.CLOSED), error.message)

    def test_inside_an_orchestration(self):
        out = Pto.Buffer.array(4, "i2")

        def graph(orch, out):
            x = self.remotes[0].alloc_buffer(8)
            x.write(0, GLib.Bytes.new(np.arange(4, dtype="i2").tobytes()))
            self.assertEqual(np.frombuffer(x.read(0, 8).get_data(), "i2").tolist(), [0, 1, 2, 3])
            orch.submit_next_level(self.add, [over(x, 4).update(), 10], worker=0)
            orch.submit_next_level(self.copy, [over(x, 4).read(), out.write_existing()], worker=0)

        self.host.run(graph, out)
        self.assertEqual(out.tolist(), [10, 11, 12, 13])

    def test_a_graph(self):
        """It is given such memory or any other, whichever it was captured with; nothing travels."""
        x, y = self.remotes[1].alloc_buffer(8), self.remotes[0].alloc_buffer(8)
        here = Pto.Buffer.array(4, "i2")

        def graph(orch, x):
            orch.submit_next_level(self.add, [x.update(), 1], worker=1)

        for first in here, over(x, 4):
            captured = self.host.capture(graph, first)
            self.host.run(captured, over(x, 4))
            self.assertEqual(self.count(), (0, 0, 8))
            self.host.run(captured, here)
            self.assertEqual(self.count(), (8, 8, 0))
            self.fails(Pto.Error.INVALID_ARGS, lambda: self.host.run(captured, over(y, 4)),
                       'task 0 of the graph ("add_in_place"): argument 0 ("x") of the graph is memory of L4/0/L3/0, which no other worker sees')
        self.assertEqual((here.tolist(), np.frombuffer(x.read(0, 8).get_data(), "i2").tolist()), ([2] * 4, [2] * 4))
        chip = Pto.Worker()
        graph = Pto.Graph()
        graph.add_task(Pto.Callable.kernel(os.path.join(os.path.dirname(__file__), "fill.c"), "aiv"), graph.add_argument([4], "i2").write_existing(), 4)
        self.fails(Pto.Error.INVALID_ARGS, lambda: chip.run(graph, over(x, 4)),
                   "argument 0 is memory of a remote worker, which is for tasks of that worker, not for chips here")
        chip.close()

    def test_chips_here(self):
        x = self.remotes[0].alloc_buffer(64)
        chip = Pto.Worker()
        with self.assertRaises(GLib.Error) as raised:
            chip.run(chip.register(Pto.Callable.chip(os.path.join(os.environ["PTO_TEST_EXAMPLES"], "data-parallel", "gradient"))), *[over(x, 4)] * 4)
        self.assertIn("argument 0 is memory of a remote worker, which is for tasks of that worker, not for chips here", raised.exception.message)
        # An orchestration function is given it, and its elements are there, not here.
        for look in lambda orch, it: orch.get_element(it, [0]), lambda orch, it: orch.set_element(it, [0], value=1):
            with self.assertRaises(GLib.Error) as raised:
                chip.run(look, over(x, 4))
            self.assertIn("the tensor is memory of a remote worker, which nobody sees here", raised.exception.message)
        chip.close()

    def test_an_id_that_was_given(self):
        other = Pto.Worker(level=4)
        remotes = [other.add_remote_worker("local:", roots=root, id=id) for id in (7, 3)]
        fill = other.register(remote_steps.fill)
        x = remotes[1].alloc_buffer(8)

        def graph(orch):
            self.fails(Pto.Error.INVALID_ARGS, lambda: orch.submit_next_level(fill, [over(x, 4).write(), 1], worker=7),
                       "/L3/3, which no other worker sees: name worker 3 for the task")
            orch.submit_next_level(fill, [over(x, 4).write(), 4], worker=3)

        other.run(graph)
        self.assertEqual(np.frombuffer(x.read(0, 8).get_data(), "i2").tolist(), [4] * 4)
        del x
        other.close()

    def test_no_dependency(self):
        """A tag that says nothing of what is read or written is enough: nothing has to be copied."""
        x = self.remotes[0].alloc_buffer(8)

        def graph(orch):
            orch.submit_next_level(self.add, [over(x, 4).no_dep(), 2], worker=0)

        for _ in range(2):
            self.host.run(graph)
        self.assertEqual(np.frombuffer(x.read(0, 8).get_data(), "i2").tolist(), [4] * 4)

    def test_closed(self):
        x = self.remotes[0].alloc_buffer(8)
        a = self.remotes[0].malloc(8)
        token = x.export()
        y = self.remotes[0].import_buffer(token)
        self.host.close()
        for call in (lambda: x.read(0, 8), lambda: y.read(0, 8), lambda: x.export(), lambda: self.remotes[0].import_buffer(token), lambda: x.write(0, GLib.Bytes.new(b"x")), lambda: self.remotes[0].free(a),
                     lambda: self.remotes[0].alloc_buffer(8)):
            self.fails(Pto.Error.CLOSED, call, "closed")
        self.assertTrue(x.is_remote())

    def test_nobody_above(self):
        alone = Pto.Worker(level=4).add_remote_worker("local:", roots=root)
        self.fails(Pto.Error.CLOSED, lambda: alone.alloc_buffer(64), "is gone: keep that as long as this one")

    def test_a_fork(self):
        x = self.remotes[0].alloc_buffer(8)
        x.write(0, GLib.Bytes.new(data(8)))
        token = x.export()
        y = self.remotes[0].import_buffer(token)
        child = os.fork()
        if child == 0:
            try:
                for call in (lambda: x.read(0, 8), lambda: y.read(0, 8), lambda: x.export(), lambda: self.remotes[0].import_buffer(token),
                             lambda: x.copy_to(y), lambda: x.copy_to(Pto.Buffer.new(8))):
                    self.fails(Pto.Error.BUSY, call, "this one is a copy of it")
                del x, y, call
                gc.collect()
                os._exit(0)
            except BaseException as error:
                print("#", error, flush=True)
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        del x
        gc.collect()
        self.assertEqual(y.read(0, 8).get_data(), data(8))


class MemoryByUnix(Memory):
    """The same, where somebody listens."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        path = os.path.join(self.directory.name, "socket")
        self.listener = subprocess.Popen([os.environ["PTO_REMOTE"], "--listen", f"unix:{path}", "--root", root,
                                          "--python", sys.executable], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end)
        deadline = GLib.get_monotonic_time() + 60 * 10**6
        while not os.path.exists(path):
            self.assertLess(GLib.get_monotonic_time(), deadline)
            self.assertIsNone(self.listener.poll())
            GLib.usleep(1000)
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        self.options = {}
        self.addresses = (f"unix:{path}",) * 2
        self.remotes = [self.host.add_remote_worker(address) for address in self.addresses]
        self.fill, self.add, self.copy, self.stop, self.which = (
            self.host.register(f) for f in (remote_steps.fill, remote_steps.add_in_place, remote_steps.copy, remote_steps.stop,
                                            remote_steps.which))
        self.sub_copy = self.host.register(copy)

    def end(self):
        self.listener.terminate()
        self.listener.stdin.close()
        self.listener.wait(60)


tap.main()
