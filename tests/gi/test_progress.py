# test_progress.py: does one see how far a run is?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
import time
import types
import unittest
import unittest.mock

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

FILL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill.c")
DEADLINE = 60  # seconds


@unittest.skipUnless(np, "no NumPy")
class Progress(unittest.TestCase):
    def setUp(self):
        self.fill = Pto.Callable.kernel(FILL)
        self.x = np.zeros(16, "f4")

    def graph(self, orch, x):
        """Four tasks."""
        for i in range(4):
            orch.submit(self.fill, x.update(), float(i))

    def done(self, orch, x):
        """Five, of which the last looks at the element, when all of them are done."""
        self.graph(orch, x)
        orch.get_element(x, 0)

    def test_attribute(self):
        seen = []

        def graph(orch, x):
            seen.append(chip.progress)
            for i in range(3):
                self.done(orch, x)
                seen.append(chip.progress)

        with Pto.Worker(platform="a2a3sim") as chip:
            self.assertIsNone(chip.progress)
            chip.run(graph, self.x)
            self.assertIsNone(chip.progress)
        self.assertIsNone(chip.progress)
        self.assertEqual(seen, [(0, 0, 0), (5, 5, 0), (10, 10, 0), (15, 15, 0)])
        self.assertEqual((seen[1].done, seen[1].submitted, seen[1].failed), (5, 5, 0))

    def test_registration_by_two(self):
        """A handler on the thread of the run does not wait for another thread that registers the same, and needs the run's."""
        def slow(args):
            time.sleep(0.5)
            args[0][0] += 1

        def register():
            begin.wait(DEADLINE)
            begun.set()
            registered.append(host.register(same))

        def note(worker, done, submitted, failed):
            if submitted < 2 or begin.is_set():
                return
            begin.set()
            begun.wait(DEADLINE)
            time.sleep(0.1)  # whoever is first, both go on
            with contextlib.suppress(Pto.BusyError):
                worker.register(same)

        begin, begun, registered = threading.Event(), threading.Event(), []
        out = Pto.Buffer.array(1)
        with Pto.Worker(level=3, sub_workers=2) as host:
            handle, same = host.register(slow), Pto.SubFunction.new("same", lambda args: None)
            host.start()
            thread = threading.Thread(target=register)
            thread.start()
            host.set_progress_interval(20)
            host.connect("run-progress", note)
            host.run(lambda orch, out: [orch.submit_sub(handle, [out.update()]) for i in range(2)] and None, out)
            thread.join()
        self.assertEqual(len(registered), 1)
        self.assertEqual(out[0], 2)

    def test_of_a_host(self):
        seen = []
        out = Pto.Buffer.array(1)

        def graph(orch, out):
            for i in range(3):
                orch.submit_sub(one, [out.update()])
            end = time.monotonic() + DEADLINE
            while (progress := host.progress).done < 3 and time.monotonic() < end:
                seen.append(progress.submitted)
            seen.append(progress)

        def add(args):
            args[0][0] += 1

        with Pto.Worker(level=3, sub_workers=1) as host:
            one = host.register(add)
            host.run(graph, out)
        self.assertEqual((out[0], seen[-1], set(seen[:-1]) - {3}), (3, (3, 3, 0), set()))

    def test_last_line(self):
        """Where nobody sees it grow there is one line, with what all runs have done."""
        said = io.StringIO()
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.run(self.graph, self.x)
            with chip.show_progress(said):
                chip.run(self.graph, self.x)
                asyncio.run(chip.run_async(self.graph, self.x))
            self.assertRegex(said.getvalue(), r"^2 runs: 100 %\|#{20}\| 8 of 8 tasks \[\d+\.\d s, \d+ tasks/s\]\n$")
            said = io.StringIO()
            with chip.show_progress(said):
                pass
            self.assertEqual(said.getvalue(), f"0 runs: 100 %|{'#' * 20}| 0 of 0 tasks [0.0 s]\n")
            said = io.StringIO()
            with contextlib.suppress(Pto.Error), chip.show_progress(said):
                chip.run(lambda orch, x: (self.graph(orch, x), orch.submit(self.fill, x.read())) and None, self.x)
            self.assertIn("1 run: ", said.getvalue())
            self.assertEqual([thread.name for thread in threading.enumerate() if thread.name == "pto-progress"], [])

    def test_tasks_that_fail(self):
        """Are done, and what needed them is, too; both are told."""
        out, other, said = Pto.Buffer.array(1), Pto.Buffer.array(1), io.StringIO()

        def bad(args):
            raise ValueError("bad")

        def graph(orch, out, other):
            orch.submit_sub(good, [other.update()])
            orch.submit_sub(wrong, [out.update()])
            orch.submit_sub(good, [out.update()])
            orch.submit_sub(good, [other.update()])

        with Pto.Worker(level=3, sub_workers=1) as host:
            good, wrong = host.register(lambda args: None), host.register(bad)
            with self.assertRaises(ValueError), host.show_progress(said):
                host.run(graph, out, other)
        self.assertRegex(said.getvalue(), r": 100 %\|#{20}\| 4 of 4 tasks \[.*\], 2 failed\n$")

    def test_on_a_terminal(self):
        """The line is written over while the run lasts, which it does until the line says so much."""
        ours, theirs = pty.openpty()
        said, half = [], threading.Event()

        def read():
            with contextlib.suppress(OSError):
                while data := os.read(ours, 4096):
                    said.append(data.decode())
                    if " 5 of 5 tasks" in "".join(said):
                        half.set()

        def graph(orch, x):
            self.done(orch, x)
            if not half.wait(DEADLINE):
                raise TimeoutError("".join(said))
            self.graph(orch, x)

        reader = threading.Thread(target=read)
        reader.start()
        kind = unittest.mock.patch.dict(os.environ, TERM="xterm")
        with kind, open(theirs, "w") as terminal, Pto.Worker(platform="a2a3sim") as chip:
            with chip.show_progress(terminal, interval=0.01):
                chip.run(graph, self.x)
        reader.join()
        os.close(ours)
        lines = re.split(r"\r(?!\n)", "".join(said))
        self.assertEqual(lines[0], "")
        self.assertTrue(any(" 5 of 5 tasks" in line for line in lines))
        self.assertIn(" 9 of 9 tasks", lines[-1])
        self.assertTrue(lines[-1].endswith("\r\n"))
        self.assertNotIn("\n", "".join(lines[:-1]))
        self.assertRegex(lines[-1], r"^orchestration function: 100 %|^graph: 100 %|^1 run: 100 %")

    def shown_on(self, kind, columns):
        """What a terminal of that kind and width is sent."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with open(theirs, "w") as terminal, Pto.Worker(platform="a2a3sim") as chip, unittest.mock.patch.dict(os.environ, TERM=kind):
            with chip.show_progress(terminal):
                chip.run(self.done, self.x)
            said = os.read(ours, 65536).decode()
        os.close(ours)
        return said

    def test_terminals(self):
        """One that can not write over a line gets the last one alone; a line does not wrap."""
        self.assertRegex(self.shown_on("dumb", 80), r"^[^\r]* 5 of 5 tasks[^\r]*\r\n$")
        narrow = self.shown_on("xterm", 30)
        self.assertTrue(narrow.startswith("\r") and narrow.endswith("\r\n"))
        self.assertEqual({len(line) <= 29 for line in narrow.replace("\n", "").split("\r")}, {True})
        self.assertIn(" 5 of 5 tasks", self.shown_on("xterm", 120))

    def test_in_a_notebook(self):
        """An output of the cell is put in place of itself."""
        shown = []
        handle = types.SimpleNamespace(update=lambda what: shown.append(("update", what)))
        display = types.ModuleType("IPython.display")
        display.HTML = str
        ipython = types.ModuleType("IPython")
        ipython.display, ipython.get_ipython = display, lambda: types.SimpleNamespace(kernel=True)
        modules = {"IPython": ipython, "IPython.display": display}
        for name in modules:
            self.assertNotIn(name, sys.modules)
        sys.modules.update(modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in modules])
        more = threading.Event()
        display.display = lambda what, display_id: shown.append(("display", what)) or more.set() or handle

        def graph(orch, x):
            self.done(orch, x)
            if not more.wait(DEADLINE):
                raise TimeoutError

        with Pto.Worker(platform="a2a3sim") as chip:
            with chip.show_progress(interval=0.01):
                chip.run(graph, self.x)
        self.assertEqual([how for how, _ in shown], ["display"] + ["update"] * (len(shown) - 1))
        self.assertGreater(len(shown), 1)
        self.assertRegex(shown[-1][1], r"^<pre>.*: 100 %\|#{20}\| 5 of 5 tasks .*</pre>$")

    def test_signal(self):
        """Told on the thread that runs, last of all tasks; a handler runs nothing on the worker."""
        told = []

        def note(worker, *counts):
            try:
                worker.run(self.graph, self.x)
            except Pto.BusyError:
                told.append((threading.get_ident(), counts))

        def graph(orch, x):
            end, before = time.monotonic() + DEADLINE, len(told)
            while len(told) < before + 2 and time.monotonic() < end:
                self.done(orch, x)

        for isolate in False, True:
            told.clear()
            with Pto.Worker(platform="a2a3sim", isolate=isolate) as chip:
                self.assertEqual(chip.progress_interval, 100)
                chip.progress_interval = 1
                handler = chip.connect("run-progress", note)
                chip.run(graph, self.x)
                self.assertGreater(len(told), 2)
                self.assertEqual({thread for thread, _ in told}, {threading.get_ident()})
                tasks = chip.statistics.tasks
                self.assertEqual(told[-1][1], (tasks, tasks, 0))
                self.assertEqual([counts for _, counts in told], sorted(counts for _, counts in told))
                del told[:]
                asyncio.run(chip.run_async(graph, self.x))
                self.assertEqual(len({thread for thread, _ in told} | {threading.get_ident()}), 2)
                tasks = chip.statistics.tasks
                self.assertEqual(told[-1][1], (tasks, tasks, 0))
                chip.disconnect(handler)
                del told[:]
                chip.run(self.graph, self.x)
                self.assertEqual(told, [])

    def test_refused(self):
        with Pto.Worker(platform="a2a3sim") as chip:
            for interval in 0, -1, float("nan"):
                with self.assertRaisesRegex(ValueError, "seconds are wanted"):
                    chip.show_progress(interval=interval)


tap.main()
