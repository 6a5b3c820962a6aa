# test_async.py: are runs awaited, cancelled and answered for in asyncio and in GLib's main loop?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import contextvars
import functools
import os
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
examples = os.environ.get("PTO_TEST_EXAMPLES", os.path.join(here, "..", "..", "examples"))
spin = Pto.Callable.kernel(os.path.join(here, "spin.c"))
hold = Pto.Callable.kernel(os.path.join(here, "hold.c"))
who = contextvars.ContextVar("who")


def bits(value):
    return int(np.float32(value).view(np.uint32))


def fill(orch, x, value):
    orch.submit(_fill, x.write_existing(), bits(value))


_fill = Pto.Callable.kernel(os.path.join(here, "fill.c"))


def chip(backend="par"):
    worker = Pto.Worker(platform="a2a3sim")
    worker.set_parameter("backend", backend)
    return worker


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@unittest.skipIf(np is None, "no numpy")
class Awaited(unittest.TestCase):
    def setUp(self):
        self.x = np.zeros(8, np.float32)

    def test_worker(self):
        """Started where the block begins, closed where it ends, however that is."""
        async def main():
            async with Pto.Worker(level=3, sub_workers=1) as host:
                states.append(host.get_state())
            states.append(host.get_state())
            with self.assertRaises(KeyError):
                async with chip() as worker:
                    await worker.run_async(fill, self.x, 3)
                    raise KeyError
            states.append(worker.get_state())

        states = []
        run(main())
        self.assertEqual(states, [Pto.WorkerState.READY, Pto.WorkerState.CLOSED, Pto.WorkerState.CLOSED])
        self.assertTrue((self.x == 3).all())

    def test_build(self):
        """Compilers are awaited, several at once; what is wrong is raised."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "wrong.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write("int x = y;\n")
            wrong = Pto.Callable.kernel(path)

            async def build():
                return await asyncio.gather(_fill.build_async(), spin.build_async(), wrong.build_async(),
                                            return_exceptions=True)
            first, second, error = run(build())
        self.assertEqual((first, second), (True, True))
        self.assertTrue(error.matches(Pto.error_quark(), Pto.Error.COMPILE), error)
        self.assertEqual(repr(spin), f'<Pto.Kernel: the kernel "spin" of {os.path.join(here, "spin.c")}>')

    def test_order_is_not_guessed(self):
        """Four values are four arguments of the function, whatever they are."""
        given = []
        with chip() as worker:
            worker.run(lambda *args: given.extend(args[1:]), 1, None, None, None)
            worker.run(lambda *args: given.extend(args[1:]), None, None, None, None)
            self.assertTrue(worker.run(lambda orch, args, config: args is not None, Pto.TaskArgs(), Pto.CallConfig()))
            for order in ((None, Pto.TaskArgs(), None, None), (Pto.TaskArgs(), None, None), (1, Gio.Cancellable())):
                with self.assertRaisesRegex(TypeError, "cancellable= are given by name"):
                    worker.run(lambda *args: None, *order)
        self.assertEqual(given, [1, None, None, None, None, None, None, None])

    def test_result(self):
        for backend in ("par", "det", "threads"):
            with self.subTest(backend), chip(backend) as worker:
                self.x[:] = 0
                self.assertTrue(run(worker.run_async(fill, self.x, 2.5)))  # it is initialized by itself
                self.assertEqual(list(self.x), [2.5] * 8)

    def test_handle(self):
        callable_ = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        callable_.add_kernel(0, "FILL", _fill)

        async def main(worker):
            handle = worker.register(callable_)
            args = Pto.TaskArgs((self.x, Pto.Direction.OUTPUT_EXISTING), 8, bits(3.5))
            await worker.run_async(handle, args)
            self.assertEqual(list(self.x), [3.5] * 8)
            self.x[:] = 0
            await worker.run_callable_async(handle, args)
            self.assertEqual(list(self.x), [3.5] * 8)

        with chip() as worker:
            run(main(worker))

    def test_loop_goes_on(self):
        """The loop does its work meanwhile, and the function is called somewhere else, in its context."""
        seen = []

        async def main(worker):
            event = asyncio.Event()
            loop = asyncio.get_running_loop()

            def graph(orch, x):
                seen.append((threading.get_ident(), who.get()))
                loop.call_soon_threadsafe(event.set)
                fill(orch, x, 1.0)
                ready.wait(60)

            ready = threading.Event()
            who.set("me")
            task = asyncio.create_task(worker.run_async(graph, self.x))
            await event.wait()
            self.assertFalse(task.done())
            ready.set()
            await task

        with chip() as worker:
            run(main(worker))
        self.assertNotEqual(seen[0][0], threading.get_ident())
        self.assertEqual(seen[0][1], "me")
        self.assertEqual(list(self.x), [1.0] * 8)

    def test_several(self):
        """Those of one worker are one after the other, in order; those of two meet."""
        order, barrier = [], threading.Barrier(2, timeout=60)
        arrays = [np.zeros(8, np.float32) for _ in range(8)]

        def numbered(i, orch, x):
            order.append(i)
            fill(orch, x, float(i))

        def meet(orch, x):
            barrier.wait()
            fill(orch, x, 7.0)

        async def main(one, other):
            await asyncio.gather(*(one.run_async(functools.partial(numbered, i), x) for i, x in enumerate(arrays)))
            await asyncio.gather(one.run_async(meet, arrays[0]), other.run_async(meet, arrays[1]))

        with chip() as one, chip() as other:
            run(main(one, other))
        self.assertEqual(order, list(range(8)))
        self.assertEqual([x[0] for x in arrays], [7, 7, 2, 3, 4, 5, 6, 7])

    def test_exceptions(self):
        """They come as they are."""
        error = LookupError("my own")

        def graph(orch):
            raise error

        async def main(worker):
            with self.assertRaises(LookupError) as caught:
                await worker.run_async(graph)
            self.assertIs(caught.exception, error)
            with self.assertRaises(GLib.Error) as caught:
                await worker.run_async(lambda orch, x: fill(orch, x, 1), self.x, config=config)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.INVALID_ARGS))
            await worker.run_async(fill, self.x, 1.0)

        config = Pto.CallConfig()
        config.set_enable_pmu(5)
        with chip() as worker:
            run(main(worker))
        self.assertEqual(self.x[0], 1)

    def test_cancel(self):
        """What is cancelled has ended when that is raised, on every back end; the next one works."""
        def long(orch, x):
            for _ in range(100000):
                orch.submit(spin, x.update(), 1000)

        async def main(worker):
            task = asyncio.create_task(worker.run_async(long, self.x))
            while self.x[0] == 0:
                await asyncio.sleep(0.001)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            completed = worker.dup_statistics().get_completed()
            self.assertLess(completed, 100000)
            self.assertGreater(completed, 0)
            await worker.run_async(fill, self.x, 4.0)
            self.assertEqual(list(self.x), [4.0] * 8)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(worker.run_async(long, self.x), 0.05)
            await worker.run_async(fill, self.x, 5.0)

        for backend in ("par", "threads"):
            with self.subTest(backend), chip(backend) as worker:
                self.x[:] = 0
                run(main(worker))
                self.assertEqual(list(self.x), [5.0] * 8)

    def test_cancel_before_its_turn(self):
        started, go_on, called = threading.Event(), threading.Event(), []

        def first(orch):
            started.set()
            go_on.wait(60)

        async def main(worker):
            one = asyncio.create_task(worker.run_async(first))
            while not started.is_set():
                await asyncio.sleep(0.001)
            other = asyncio.create_task(worker.run_async(lambda orch: called.append(1)))
            await asyncio.sleep(0)
            other.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await other  # although the first still runs
            self.assertFalse(one.done())
            go_on.set()
            await one

        with chip() as worker:
            run(main(worker))
        self.assertEqual(called, [])

    def test_own_cancellable(self):
        cancellable = Gio.Cancellable()
        cancellable.cancel()

        async def main(worker):
            worker.init()
            with self.assertRaises(GLib.Error) as caught:
                await worker.run_async(fill, self.x, 1.0, cancellable=cancellable)
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))

        with chip() as worker:
            run(main(worker))

    def test_with_synchronous_run(self):
        """One on the loop's thread waits for one that is under way."""
        started = threading.Event()

        def slow(orch, x):
            started.set()
            time.sleep(0.02)
            fill(orch, x, 1.0)

        async def main(worker):
            task = asyncio.create_task(worker.run_async(slow, self.x))
            while not started.is_set():
                await asyncio.sleep(0.001)
            other = np.zeros(8, np.float32)
            worker.run(lambda orch, y: fill(orch, y, float(self.x[0]) + 1), other)
            await task
            return other[0]

        with chip() as worker:
            self.assertIn(run(main(worker)), (1.0, 2.0))
        self.assertEqual(self.x[0], 1)

    def test_closed(self):
        async def main():
            with self.assertRaises(GLib.Error) as caught:
                await worker.run_async(fill, self.x, 1.0)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.CLOSED))

        worker = chip()
        run(worker.run_async(fill, self.x, 1.0))
        worker.close()
        run(main())

    def test_leaves_no_thread(self):
        for _ in range(3):
            with chip() as worker:
                run(worker.run_async(fill, self.x, 1.0))
        deadline = time.monotonic() + 60
        while any(thread.name.startswith("pto-runs") for thread in threading.enumerate()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def test_level_3(self):
        error = ValueError("of the child")

        def add(args):
            args[0][:] += 1

        def fail(args):
            raise error

        def hang(args):
            args[0][0] = 9
            while not args.is_cancelled():
                time.sleep(0.001)

        async def main(host, board):
            handles = [host.register(function) for function in (add, fail, hang)]

            def graph(handle):
                return lambda orch, x: orch.submit_sub(handle, [x.update()])

            await host.run_async(graph(handles[0]), board)
            self.assertEqual(list(board), [1] * 4)
            with self.assertRaises(ValueError) as caught:
                await host.run_async(graph(handles[1]), board)
            self.assertEqual(str(caught.exception), "of the child")
            self.assertIn("L3/0/sub", caught.exception.__cause__.message)
            task = asyncio.create_task(host.run_async(graph(handles[2]), board))
            while board[0] != 9:
                await asyncio.sleep(0.001)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await host.run_async(graph(handles[0]), board)
            self.assertEqual(board[1], 2)

        with Pto.Worker(level=3, sub_workers=2) as host:
            run(main(host, Pto.Buffer.array(4)))


@unittest.skipIf(np is None, "no numpy")
class Callbacks(unittest.TestCase):
    """GLib's main loop, without asyncio."""

    def finish(self, start, finish):
        loop, results = GLib.MainLoop(), []

        def done(worker, result):
            try:
                results.append(finish(result))
            except Exception as error:
                results.append(error)
            loop.quit()

        start(done)
        guard = GLib.timeout_add_seconds(60, loop.quit)
        loop.run()
        GLib.source_remove(guard)
        return results[0]

    def test_data(self):
        x, threads = np.zeros(8, np.float32), []

        def graph(orch, y, value):
            threads.append(threading.get_ident())
            fill(orch, y, value)

        with chip() as worker:
            self.assertIs(self.finish(lambda done: worker.run_async(graph, x, 2.0, callback=done), worker.run_finish), True)
        self.assertEqual(list(x), [2.0] * 8)
        self.assertEqual(threads, [threading.get_ident()])

    def test_as_in_c(self):
        x = np.zeros(8, np.float32)
        args = Pto.TaskArgs((x, Pto.Direction.OUTPUT_EXISTING))

        def graph(orch, given, config, *data):
            fill(orch, given.get_tensor(0), 3.0)

        with chip() as worker:
            worker.init()
            self.assertIs(self.finish(lambda done: worker.run_async(func=graph, args=args, config=None, cancellable=None,
                                                                    callback=done), worker.run_finish), True)
        self.assertEqual(list(x), [3.0] * 8)

    def test_handle(self):
        x = np.zeros(8, np.float32)
        args = Pto.TaskArgs((x, Pto.Direction.OUTPUT_EXISTING), 8, bits(3.5))
        callable_ = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        callable_.add_kernel(0, "FILL", _fill)
        with chip() as worker:
            handle = worker.register(callable_)
            self.assertIs(self.finish(lambda done: worker.run_callable_async(handle, args, callback=done),
                                      worker.run_callable_finish), True)
        self.assertEqual(list(x), [3.5] * 8)

    def test_loop_goes_on(self):
        """While a call of the function waits: nothing else lets the kernel return."""
        x, turns = np.zeros(8, np.float32), []

        def turn():
            if not turns:
                return True
            with self.assertRaisesRegex(Pto.Error, "submit from the orchestration function") as caught:
                fill(*turns[0], 1.0)
            turns.append(caught.exception.code == Pto.Error.BUSY)
            x[0] = 5
            return False

        def graph(orch, y):
            orch.submit(hold, y.update())
            turns.append((orch, y))
            turns.append(orch.get_element(y, 0))

        with chip() as worker:
            source = GLib.timeout_add(1, turn)
            self.assertIs(self.finish(lambda done: worker.run_async(graph, x, callback=done), worker.run_finish), True)
            if len(turns) < 3:
                GLib.source_remove(source)
        self.assertEqual(turns[1:], [True, 5.0])

    def test_exceptions(self):
        error = LookupError("my own")

        def graph(orch):
            raise error

        with chip() as worker:
            self.assertIs(self.finish(lambda done: worker.run_async(graph, callback=done), worker.run_finish), error)
        with Pto.Worker(level=3, sub_workers=1) as host:
            self.assertIs(self.finish(lambda done: host.run_async(graph, callback=done), host.run_finish), error)

    def test_cancel(self):
        cancellable = Gio.Cancellable()

        def graph(orch):
            cancellable.cancel()

        with chip() as worker:
            error = self.finish(lambda done: worker.run_async(graph, cancellable=cancellable, callback=done),
                                worker.run_finish)
        self.assertTrue(error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))


def workers():
    for backend in ("par", "det", "threads"):
        yield backend, chip(backend)
    yield "isolated", Pto.Worker(isolate=True)
    yield "level 3", Pto.Worker(level=3, devices=1, sub_workers=1)
    above = Pto.Worker(level=4, sub_workers=1)
    above.add_worker(Pto.Worker(level=3, sub_workers=1))
    yield "level 4", above


def answer(args):
    return None


class Life(unittest.TestCase):
    """Starting, registering and closing are awaited."""

    def test_awaited(self):
        async def main(worker):
            cancelled = Gio.Cancellable()
            cancelled.cancel()
            with self.assertRaises(GLib.Error) as caught:
                await worker.start_async(cancelled)
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
            self.assertEqual(await asyncio.gather(worker.start_async(), worker.start_async()), [True, True])
            self.assertEqual(worker.get_state(), Pto.WorkerState.READY)
            what = _fill if worker.get_level() == 2 else answer
            one, two = await asyncio.gather(worker.register_async(what), worker.register_async(what))
            self.assertIsInstance(one, Pto.CallableHandle)
            if worker.get_level() == 2:
                self.assertTrue(one.equal(two))
            else:
                await worker.run_async(lambda orch: orch.submit_sub(two, []))
            await asyncio.gather(worker.close_async(), worker.close_async())
            self.assertEqual(worker.get_state(), Pto.WorkerState.CLOSED)
            with self.assertRaises(GLib.Error) as caught:
                await worker.start_async()
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.CLOSED))

        for name, worker in workers():
            with self.subTest(name):
                run(main(worker))

    def test_inside(self):
        """What waits for its own worker in that worker's function is refused at once, whatever thread waits, and what can be
        done there is done there."""
        def wait(what):
            return asyncio.run(asyncio.wait_for(what, 60))

        def refused(call, *words):
            with self.assertRaises(GLib.Error) as caught:
                call()
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.BUSY), caught.exception)
            self.assertIn("an orchestration function can not " + " ".join(words), caught.exception.message)

        def inside(orch):
            worker = orch.get_worker()
            handle = wait(worker.register_async(_fill if worker.get_level() == 2 else answer))
            self.assertIsInstance(handle, Pto.CallableHandle)
            self.assertTrue(wait(worker.start_async()))
            for what in (inside, handle, Pto.Graph()):
                refused(lambda: wait(worker.run_async(what)), "use its own worker for another run")
            refused(lambda: worker.run(inside), "use its own worker")
            refused(lambda: wait(asyncio.to_thread(worker.run, inside)), "use its own worker")
            refused(lambda: wait(other.run_async(lambda below: wait(worker.run_async(inside)))), "use its own worker")
            refused(lambda: other.run(lambda below: wait(worker.run_async(inside))), "use its own worker")
            refused(lambda: wait(worker.close_async()), "wait until its own worker is closed")
            refused(lambda: wait(asyncio.to_thread(worker.close)), "wait until its own worker is closed by another thread")
            if worker.get_level() > 2:
                refused(lambda: wait(asyncio.to_thread(worker.register, answer)), "wait for a registration on another thread")
            loop, results = GLib.MainLoop(), []
            worker.run_async(inside, callback=lambda worker, result: (results.append(result), loop.quit()))
            loop.run()
            refused(lambda: worker.run_finish(results[0]), "use its own worker")

        async def main(worker):
            await worker.run_async(inside)
            later = []

            def begin(orch):  # a task of this loop, which goes on when the function has returned
                later.append(loop.create_task(worker.run_async(lambda orch: None)))

            loop = asyncio.get_running_loop()
            worker.run(begin)
            self.assertTrue(await later[0])
            await worker.close_async()

        for name, worker in workers():
            with self.subTest(name), Pto.Worker() as other:
                self.assertTrue(worker.run(inside))
                run(main(worker))

    def test_loop_goes_on(self):
        """The fork is made by a thread of its own, and only when the loop has come round."""
        came = threading.Event()

        async def main(worker):
            job = asyncio.ensure_future(worker.start_async())
            await asyncio.sleep(0)
            came.set()
            self.assertTrue(await job)

        def fork(*_):
            return os.fork() if came.wait(60) else -1

        for name, worker in workers():
            with self.subTest(name), worker:
                came.clear()
                worker.set_fork_func(fork)
                run(main(worker))

    def test_cancelled_registration(self):
        """What nobody is given is taken back."""
        entered, go = threading.Event(), threading.Event()

        async def main(worker):
            job = asyncio.ensure_future(worker.register_async(_fill))
            await asyncio.to_thread(entered.wait, 60)
            job.cancel()
            await asyncio.sleep(0)
            go.set()
            with self.assertRaises(asyncio.CancelledError):
                await job

        register, handles = Pto.Worker.register, []

        def held(worker, what, cancellable=None, **choices):
            handles.append(register(worker, what))
            entered.set()
            go.wait(60)
            return handles[0]

        with Pto.Worker() as worker, unittest.mock.patch.object(Pto.Worker, "register", held):
            run(main(worker))
            self.assertEqual(len(handles), 1)
            with self.assertRaises(GLib.Error) as caught:
                worker.unregister(handles[0])
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.NOT_FOUND))

    def test_callbacks(self):
        """In GLib's main loop, as in C."""
        for name, worker in workers():
            with self.subTest(name):
                loop, results = GLib.MainLoop(), []

                def done(finish):
                    def call(source, result):
                        results.append(finish(result))
                        loop.quit()
                    return call

                what = _fill if worker.get_level() == 2 else answer
                worker.start_async(callback=done(worker.start_finish))
                loop.run()
                worker.register_async(what, callback=done(worker.register_finish))
                loop.run()
                worker.close_async(callback=done(worker.close_finish))
                loop.run()
                self.assertIs(results[0], True)
                self.assertIsInstance(results[1], Pto.CallableHandle)
                self.assertIs(results[2], True)


class Later(unittest.TestCase):
    """What would do its work later, if ever, is refused in words."""

    def assertRefused(self, call, *words):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a coroutine that was never awaited
            with self.assertRaises(TypeError) as caught:
                call()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_functions(self):
        async def coroutine(orch):
            pass

        async def asynchronous_generator(orch):
            yield

        def generator(orch):
            yield

        class Object:
            async def __call__(self, orch):
                pass

        for function, words in ((coroutine, ("coroutine", "async function")), (generator, ("generator",)),
                                (asynchronous_generator, ("asynchronous_generator",)), (Object(), ("Object",)),
                                (functools.partial(coroutine), ("async function",))):
            with self.subTest(function):
                self.assertRefused(lambda: Pto.Callable.function(function), "plain function", *words)
                for level in (2, 3):
                    with Pto.Worker(level=level) as worker:
                        self.assertRefused(lambda: worker.run(function), "plain function", *words)
                        self.assertRefused(lambda: run(worker.run_async(function)), "plain function", *words)
                with Pto.Worker(level=3, sub_workers=1) as host:
                    self.assertRefused(lambda: host.register(function), "plain function", *words)

    def test_results(self):
        async def coroutine():
            pass

        def generator():
            yield

        for later, word in ((coroutine, "coroutine"), (generator, "generator"),
                            (lambda: map(print, [1]), "map"), (lambda: (i for i in [1]), "generator")):
            with self.subTest(word):
                for level in (2, 3):
                    with Pto.Worker(level=level) as worker:
                        self.assertRefused(lambda: worker.run(lambda orch: later()), "has returned", word)
                with Pto.Worker(level=3, sub_workers=1) as host:
                    handle = host.register(lambda: later())
                    self.assertRefused(lambda: host.run(lambda orch: orch.submit_sub(handle)), "has returned", word)


if __name__ == "__main__":
    tap.main()
