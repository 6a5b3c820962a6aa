# test_signals.py: are the handlers of signals called while a run lasts?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

# Ends when the second word is set, which a handler does.
SOURCE = """
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *board = (const TensorData *) args[0];
  int64_t *words = (int64_t *) board->buffer.addr + board->start_offset;
  __atomic_store_n (&words[0], 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n (&words[1], __ATOMIC_SEQ_CST) == 0)
    ;
}
"""
SECONDS = 120
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGALRM


class Mine(Exception):
    pass


@contextlib.contextmanager
def handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def sent(number, is_time):
    """As soon as it is time, once."""
    def send():
        while not is_time():
            time.sleep(0.001)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def wait(args):
    args[0][0] = 1
    while args[0][1] == 0:
        time.sleep(0.001)


class TestSignals(unittest.TestCase):
    def setUp(self):
        self.board = Pto.Buffer.array(4, "i8")

    @contextlib.contextmanager
    def workers(self, **parameters):
        """Of every kind one, with what waits until the handler has set the second word."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wait.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(SOURCE)
            kernel = Pto.Callable.kernel(path)

            def of_chip(name, **properties):
                chip = Pto.Worker(**properties)
                if "isolate" not in properties:
                    chip.set_parameter("backend", name)
                for parameter, value in parameters.items():
                    chip.set_parameter(parameter, value)
                return name, chip, lambda orch, x: orch.submit(kernel, x.update()) and None

            def of_host():
                host = Pto.Worker(level=3, sub_workers=1)
                handle = host.register(wait)
                return "level 3", host, lambda orch, x: orch.submit_sub(handle, [x.update()])

            def each():
                for make in (lambda: of_chip("par"), lambda: of_chip("det"), lambda: of_chip("isolated", isolate=True), of_host):
                    name, worker, graph = make()
                    print("#", name)
                    with worker:
                        self.board[:] = 0
                        worker.start()
                        yield worker, graph
            yield each()

    def test_handler_returns(self):
        """What the run waits for is what the handler does."""
        def handler(number, frame):
            heard.append(number)
            self.board[1] = 1

        heard = []
        with self.workers() as workers:
            for worker, graph in workers:
                for number in SIGNALS:
                    self.board[:], heard[:] = 0, []
                    with handled(number, handler):
                        with sent(number, lambda: self.board[0]):
                            self.assertTrue(worker.run(graph, self.board))
                        self.assertIs(signal.getsignal(number), handler)
                    self.assertEqual(heard, [number])

    def test_handler_raises(self):
        """The run is cancelled and left with what it raises; the next one works."""
        def handler(number, frame):
            raise Mine(number)

        with self.workers(timeout=2000) as workers:
            for number, (worker, graph) in zip((signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGTERM), workers):
                with handled(number, handler), sent(number, lambda: self.board[0]):
                    with self.assertRaises(Mine) as caught:
                        worker.run(graph, self.board)
                self.assertEqual(caught.exception.args, (number,))
                self.assertIsInstance(caught.exception.__cause__, GLib.Error, "what the run has ended with")
                self.board[1] = 1
                self.assertTrue(worker.run(graph, self.board))

    def test_exit(self):
        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(wait)
            host.start()
            with handled(signal.SIGTERM, lambda *_: sys.exit(9)), sent(signal.SIGTERM, lambda: self.board[0]):
                with self.assertRaises(SystemExit) as caught:
                    host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
            self.assertEqual(caught.exception.code, 9)

    def test_in_function(self):
        """In Python it is called there, once, by the main thread; what it raises goes through the function."""
        def graph(orch):
            os.kill(os.getpid(), signal.SIGTERM)
            deadline = time.monotonic() + 10
            while not heard and time.monotonic() < deadline:
                pass

        def raising(orch):
            try:
                graph(orch)
            except Mine:
                left.append(1)
                raise

        def handler(*_):
            heard.append(threading.current_thread())

        def mine(*_):
            raise Mine

        heard, left = [], []
        with Pto.Worker() as chip:
            with handled(signal.SIGTERM, handler):
                self.assertTrue(chip.run(graph))
            self.assertEqual(heard, [threading.main_thread()])
            heard.clear()
            with handled(signal.SIGTERM, mine), self.assertRaises(Mine):
                chip.run(raising)
            self.assertEqual(left, [1])
            self.assertTrue(chip.run(lambda orch: None))

    def test_handler_of_function(self):
        """One that the function sets stays."""
        def graph(orch):
            signal.signal(signal.SIGTERM, handler)

        def handler(*_):
            pass

        with handled(signal.SIGTERM, lambda *_: None), Pto.Worker() as chip:
            chip.run(graph)
            self.assertIs(signal.getsignal(signal.SIGTERM), handler)

    def test_pipe(self):
        """A program whose output has no reader ends as Python does, with all children. The library leaves SIGPIPE as it is."""
        program = """if True:
            import signal, sys
            import gi
            gi.require_version("Pto", "1")
            from gi.repository import Pto
            how = {"ignored": signal.SIG_IGN, "default": signal.SIG_DFL, "handled": lambda number, frame: None}[sys.argv[1]]
            if sys.argv[1] != "ignored":  # Python does that itself
                signal.signal(signal.SIGPIPE, how)
            host = Pto.Worker(level=3, sub_workers=2)
            handle = host.register(lambda args: print("spoken", flush=True))
            host.start()
            chip = Pto.Worker(isolate=True)
            chip.run(lambda orch: print("here"))
            try:
                host.run(lambda orch: orch.submit_sub(handle, []) and None)
            except Exception as error:
                print("caught", file=sys.stderr)
            assert signal.getsignal(signal.SIGPIPE) is how
            sys.stdout.flush()
            print("left", file=sys.stderr)
        """
        for how, status in ("ignored", 1), ("handled", 1), ("default", -signal.SIGPIPE):
            with self.subTest(how=how), tempfile.TemporaryFile("w+") as said:
                reader, writer = os.pipe()
                os.close(reader)
                line, end = os.pipe()
                process = subprocess.Popen([sys.executable, "-c", program, how], stdout=writer, stderr=said, pass_fds=[end])
                os.close(writer)
                os.close(end)
                self.assertEqual(process.wait(SECONDS), status)
                # All that it has begun has the other end, too.
                self.assertEqual((select.select([line], [], [], SECONDS)[0], os.read(line, 1)), ([line], b""))
                os.close(line)
                said.seek(0)
                text = said.read()
                self.assertEqual(("BrokenPipeError" in text, "left" in text), (status == 1, False), text)

    def test_signal_of_function(self):
        """Whom the function has told to be called is called, and nobody else: the run goes on."""
        def graph(orch):
            for number in SIGNALS:
                signal.signal(number, lambda number, frame: heard.append(number))
                os.kill(os.getpid(), number)
            sys.modules["gi.overrides.PtoInterrupts"]._interrupts[0].settle()  # all of them are read

        def old(*_):
            heard.append("old")

        heard = []
        with handled(signal.SIGINT, old), handled(signal.SIGTERM, signal.SIG_DFL), handled(signal.SIGALRM, signal.SIG_IGN):
            with Pto.Worker() as chip:
                self.assertTrue(chip.run(graph))
        self.assertEqual(heard, list(SIGNALS))

    def test_second_at_the_end(self):
        """The first is still being handled when the run is over, and the second raises there: the next run hears of signals."""
        def slow(*_):
            if threading.current_thread() is threading.main_thread():  # it is not in C yet
                threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGALRM)).start()
                return
            self.board[1] = 1
            while signal.getsignal(signal.SIGTERM) is not raising:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGTERM)
            caught.wait(60)

        def raising(*_):
            raise Mine

        def give_up():
            self.board[1] = 2

        caught = threading.Event()
        with Pto.Worker(level=3, sub_workers=1) as host, handled(signal.SIGALRM, slow), handled(signal.SIGTERM, raising):
            handle = host.register(wait)
            host.start()
            for number in signal.SIGALRM, signal.SIGTERM:
                self.board[:] = 0
                late = threading.Timer(30, give_up)
                late.start()
                with sent(number, lambda: self.board[0]), self.assertRaises(Mine):
                    host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
                late.cancel()
                late.join()
                caught.set()
                self.assertEqual(self.board[1], number == signal.SIGALRM)
                self.assertEqual([signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGTERM)], [slow, raising])

    def test_inner_run(self):
        """In the function of another one, whose function has it raised."""
        def graph(orch):
            try:
                host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
            except Mine as mine:
                caught.append(mine)

        def handler(*_):
            raise Mine

        caught = []
        with Pto.Worker() as chip, Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(wait)
            host.start()
            with handled(signal.SIGTERM, handler), sent(signal.SIGTERM, lambda: self.board[0]):
                self.assertTrue(chip.run(graph))
            self.assertEqual(len(caught), 1)

    def test_registration(self):
        """A compiler that never ends."""
        with tempfile.TemporaryDirectory() as folder:
            flag, compiler, source = (os.path.join(folder, name) for name in ("flag", "slow-cc", "wait.c"))
            with open(source, "w", encoding="utf-8") as file:
                file.write(SOURCE + f"/* {os.getpid()} {time.time()} */")
            with open(compiler, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n: > {flag}\nexec sleep 1000\n")
            os.chmod(compiler, 0o700)

            def handler(*_):
                raise Mine

            kernel = Pto.Callable.kernel(source)
            with Pto.Worker() as chip, unittest.mock.patch.dict(os.environ, CC=compiler):
                for call in (lambda: chip.register(kernel)), (lambda: kernel.build()):
                    if os.path.exists(flag):
                        os.remove(flag)
                    with handled(signal.SIGTERM, handler), sent(signal.SIGTERM, lambda: os.path.exists(flag)):
                        with self.assertRaises(Mine):
                            call()

    def test_event_loop(self):
        """A loop has its descriptor again, and is told of what has come meanwhile."""
        async def main():
            loop, heard = asyncio.get_running_loop(), asyncio.Event()
            loop.add_signal_handler(signal.SIGTERM, heard.set)
            before = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(before)
            with Pto.Worker() as chip:
                chip.run(lambda orch: os.kill(os.getpid(), signal.SIGTERM))
            self.assertEqual(signal.set_wakeup_fd(before), before)
            await asyncio.wait_for(heard.wait(), 60)
            loop.remove_signal_handler(signal.SIGTERM)

        asyncio.run(main())

    def test_other_thread(self):
        """Not there: Python's own way is the main thread's."""
        with handled(signal.SIGTERM, lambda *_: None), Pto.Worker() as chip:
            seen = []
            thread = threading.Thread(target=lambda: chip.run(lambda orch: seen.append(signal.getsignal(signal.SIGTERM).__name__)))
            thread.start()
            thread.join()
            self.assertEqual(seen, ["<lambda>"])

    def test_child(self):
        """A process that is forked meanwhile has the handlers that there were."""
        def handler(*_):
            pass

        def look(args):
            args[0][2] = signal.getsignal(signal.SIGTERM) is handler

        with handled(signal.SIGTERM, handler), Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(look)
            host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
        self.assertEqual(self.board[2], 1)

    def test_own_child(self):
        """One that the function itself forks is as without the library: Ctrl-C interrupts or ends it."""
        def status():
            process = os.fork()
            if process == 0:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    os._exit(1)
                except KeyboardInterrupt:
                    os._exit(2)
                except Mine:
                    os._exit(3)
                finally:
                    os._exit(4)
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

        def mine(*_):
            raise Mine

        def look(args):
            args[0][0] = status()

        handlers = (signal.default_int_handler, 2), (signal.SIG_DFL, -signal.SIGINT), (signal.SIG_IGN, 1), (mine, 3)
        for handler, expected in handlers:
            for name, properties in ("par", {}), ("isolated", {"isolate": True}), ("level 3", {"level": 3, "sub_workers": 1}):
                with self.subTest(handler=handler, name=name), handled(signal.SIGINT, handler):
                    self.assertEqual(status(), expected, "without the library")
                    with Pto.Worker(**properties) as worker:
                        worker.run(lambda orch: self.board.__setitem__(0, status()))
                        self.assertEqual(self.board[0], expected)
                        self.assertIs(signal.getsignal(signal.SIGINT), handler)
            with self.subTest(handler=handler, name="SUB"), handled(signal.SIGINT, handler), Pto.Worker(level=3, sub_workers=1) as host:
                handle = host.register(look)
                host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
                self.assertEqual(self.board[0], expected)

    def test_descriptor_of_child(self):
        """Where an event loop listens, in a child that the program forks; nothing in one of the library's."""
        def descriptor():
            found = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(found)
            return found

        def status():
            process = os.fork()
            if process == 0:
                os._exit(descriptor() & 0xFF)
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

        def look(args):
            args[0][1] = descriptor()

        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer)
        try:
            with Pto.Worker(level=3, sub_workers=1) as host:
                handle = host.register(look)

                def graph(orch, x):
                    self.board[0] = status()
                    orch.submit_sub(handle, [x.update()])
                host.run(graph, self.board)
                self.assertEqual(list(self.board[:2]), [writer, -1])
                self.assertEqual(status(), writer, "between runs")
        finally:
            signal.set_wakeup_fd(before)
            os.close(reader)
            os.close(writer)


tap.main()
