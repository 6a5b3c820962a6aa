# test_fork.py: do workers work in processes that Python made, in whatever way?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import struct
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

elements = 16
fill = Pto.Callable.kernel(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill.c"))


def chip(backend="par", value=3.0):
    """What a chip of this process's own makes of it."""
    signal.alarm(60)  # instead of hanging
    buffer = Pto.Buffer.new(4 * elements)
    out = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements])
    with Pto.Worker(platform="a2a3sim") as worker:
        worker.set_parameter("backend", backend)
        number = struct.unpack("=i", struct.pack("=f", value))[0]
        worker.run(lambda orch, x: orch.submit(fill, x.write_existing(), number), out)
    return set(struct.unpack(f"{elements}f", buffer.ref_bytes().get_data()))


def chip_below(backend):
    """The same in a child of this child."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return chip(backend) | pool.apply(chip, [backend, 4.0])


def host(depth):
    """A SUB function that uses a chip, or a worker of level 3 whose SUB function does."""
    signal.alarm(60)
    board = Pto.Buffer.new(8)
    number = Pto.Tensor.new_for_buffer(board, 0, Pto.Dtype.INT64, [1])

    def sub(args):
        found = chip() if depth == 0 else host(depth - 1)
        args[0][0] = int(sum(found))

    with Pto.Worker(level=3, sub_workers=1) as worker:
        handle = worker.register(sub)
        worker.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), number)
    return {float(struct.unpack("=q", board.ref_bytes().get_data())[0])}


class Fork(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = Pto.Worker(platform="a2a3sim")
        cls.worker.init()
        assert chip() == {3.0}

    def tearDown(self):
        signal.alarm(0)

    def test_multiprocessing(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method), multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(chip, ("par", "det", "threads")), [{3.0}] * 3)

    def test_child_of_a_child(self):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            self.assertEqual(list(pool.map(chip_below, ("par", "det"))), [{3.0, 4.0}] * 2)

    @unittest.skipIf(numpy is None, "no numpy")
    def test_levels(self):
        self.assertEqual(host(0), {3.0})
        self.assertEqual(host(1), {3.0})
        with multiprocessing.get_context("fork").Pool(1) as pool:
            self.assertEqual(pool.apply(host, [1]), {3.0})

    def test_inside_an_orchestration(self):
        """The copy of an orchestrator is refused, the one that was copied goes on."""
        def graph(orch):
            pid = os.fork()
            if pid == 0:
                refused = 0
                try:
                    signal.alarm(60)
                    for call in orch.submit_order, orch.begin_scope, lambda: setattr(orch, "priority", 1), lambda: orch.tensor(1):
                        try:
                            call()
                        except GLib.Error as error:
                            refused += error.matches(Pto.error_quark(), Pto.Error.BUSY) and "in another process" in error.message
                finally:
                    os._exit(refused)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)
            orch.submit_order()

        for properties in {"isolate": False}, {"isolate": True}, {"level": 3, "sub_workers": 1}:
            with self.subTest(properties=properties), Pto.Worker(platform="a2a3sim", **properties) as worker:
                worker.run(graph)
                self.assertEqual(worker.statistics.tasks, 1)

    def test_return_in_a_copy(self):
        """A copy in which the function returns, or raises, ends and says why; the one that was copied goes on."""
        def copy(end, status=1, *words_of_its_own):
            words, own = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                os.dup2(own, 2)
                return end()
            os.close(own)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), status)
            with open(words, encoding="utf-8") as said:
                text = said.read()
            for expected in words_of_its_own or [" returned in a copy of the process, which fork() has made: "]:
                self.assertIn(expected, text)
            return pid

        def raises():
            raise ValueError("its own words")

        def copies():
            return all((copy(lambda: None), copy(raises, 1, "Traceback ", "in raises", "ValueError: its own words", " returned in a copy "),
                        copy(lambda: sys.exit(5), 5, ""), copy(sys.exit, 0, ""), copy(lambda: sys.exit("gone"), 1, "gone\n")))

        def graph(orch):
            orch.submit_order()
            return copy(orch.submit_order) and copies() and orch.submit_order()

        def sub(args):
            if copies():
                args[0][0] = 7

        for properties in {"isolate": False}, {"isolate": True}, {"level": 3, "sub_workers": 1}:
            with self.subTest(properties=properties), Pto.Worker(platform="a2a3sim", **properties) as worker:
                worker.run(graph)
                self.assertEqual(worker.statistics.tasks, 2)
                asyncio.run(asyncio.wait_for(worker.run_async(graph), 60))
                self.assertEqual(worker.statistics.tasks, 2)
        board = Pto.Buffer.new(8)
        number = Pto.Tensor.new_for_buffer(board, 0, Pto.Dtype.INT64, [1])
        with Pto.Worker(level=3, sub_workers=1) as worker:
            handle = worker.register(sub)
            worker.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), number)
        self.assertEqual(struct.unpack("=q", board.ref_bytes().get_data()), (7,))

    def test_interrupt(self):
        """Ctrl-C ends a compiler, which is in a process group of its own."""
        with tempfile.TemporaryDirectory() as dir:
            flag, compiler = os.path.join(dir, "flag"), os.path.join(dir, "slow-cc")
            with open(compiler, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho $$ > {flag}.new\nmv {flag}.new {flag}\nexec sleep 1000\n")
            os.chmod(compiler, 0o700)

            def interrupt():
                while not os.path.exists(flag):
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with unittest.mock.patch.dict(os.environ, CC=compiler), self.assertRaises(KeyboardInterrupt):
                self.worker.register(fill)
                time.sleep(10)  # where the interpreter gets round to raising it, at the latest
            thread.join()
            with open(flag, encoding="utf-8") as file:
                pid = int(file.read())
            with self.assertRaises(ProcessLookupError):
                while True:
                    os.kill(pid, 0)
                    time.sleep(0.001)

    def test_children_ignored(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.assertEqual(chip(), {3.0})
        finally:
            signal.signal(signal.SIGCHLD, before)


if __name__ == "__main__":
    tap.main()
