# test_remote_ends.py: how do remote workers begin and end together, and what is heard of each?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, lives, np, remote_steps, root, said, until  # noqa: E402


@unittest.skipIf(np is None, "no numpy")
class Ends(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.host = Pto.Worker(level=4)
        self.addCleanup(self.host.close)

    def test_words(self):
        """Who prints what is seen at its line, of workers, and of what is below them. A line that comes in pieces is told in pieces, as
        they come: another worker's may come between, so here one prints at a time."""
        for i in range(2):
            host = Pto.Worker(level=4)
            self.addCleanup(host.close)
            for _ in range(2):
                host.add_remote_worker("local:", roots=root, python=sys.executable, sub_workers=1).register(remote_steps.say)
            handle = host.register(remote_steps.say_all)
            host.start()
            with said() as lines:
                host.run(lambda orch, handle=handle, i=i: orch.submit_next_level(handle, [i], worker=i))
                host.close()
            lines = [re.sub(r"\*\* Message: [\d:.]+: ", "", line) for line in lines]  # of GLib
            self.assertEqual(lines, [f"L4/0/L3/{i}: {line}" for line in (f"orchestration {i}", "", f"logged {i}", f"function {i}")])

    def script(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def test_late(self):
        """All are launched at one time, and have one deadline: whoever is late is named, with the address, and nobody stays."""
        self.script("ssh", f"#!/bin/sh\necho $$ > {self.directory}/$(echo $4).pid\ncase $4 in late*) exec sleep 600;; esac\nshift 4\neval \"exec $*\"\n")
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.directory}:{path}"
        self.host.set_parameter("timeout", 1000)
        hosts = ["good1", "late1", "good2", "late2", "late3", "good3"]
        for name in hosts:
            self.host.add_remote_worker(f"ssh://{name}", program=os.environ["PTO_REMOTE"])
        with self.assertRaisesRegex(GLib.Error, r"^L4/0/L3/(1 \(ssh://late1|3 \(ssh://late2|4 \(ssh://late3)\) can not be started: "
                                    "it was ended: did not answer for 2 s"):
            self.host.start()
        pids = []
        for name in hosts:
            with open(os.path.join(self.directory, f"{name}.pid")) as file:
                pids.append(int(file.read()))
        until(lambda: not any(map(lives, pids)))


# Hands on what comes, until enough has gone to the far end: then nobody there reads.
STOPPING_GATE = """#!{python}
import os, select, socket, subprocess, sys
near, far = socket.socket(fileno=os.dup(0)), socket.socketpair()
subprocess.Popen([{remote!r}, *sys.argv[1:]], stdin=far[1], stdout=far[1])
far[1].close()
sent = 0
while True:
    for end in select.select([near, far[0]], [], [])[0]:
        data = end.recv(65536)
        if not data:
            sys.exit()
        (far[0] if end is near else near).sendall(data)
        sent += len(data) if end is near else 0
        if sent > 4 << 20:
            open({mark!r}, "w").close()
            select.select([], [], [])
"""
PYTHON = """
import sys
sys.path[:0] = [{root!r}]
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto
import remote_steps
host, x = Pto.Worker(level=4), Pto.Buffer.array({n}, "i8")
host.add_remote_worker("local:", roots={root!r}, python=sys.executable, program={program!r}, sub_workers=1)
far = host.register(remote_steps.hold_for_ever)
host.run(lambda orch, x: orch.submit_next_level(far, [x.read()]), x)
"""
MEMORY = """
import sys
import gi
gi.require_version("Pto", "1")
from gi.repository import GLib, Pto
host = Pto.Worker(level=4)
remote = host.add_remote_worker("local:", program={program!r})
data = GLib.Bytes.new(bytes(8 << 20))
x, number = remote.alloc_buffer(8 << 20), remote.malloc(8 << 20)
{use}
"""
JAVASCRIPT = """
imports.gi.versions.Pto = '1';
const {{GLib, Pto}} = imports.gi;
const host = new Pto.Worker({{level: 4}});
host.add_remote_worker('local:', new GLib.Variant('a{{sv}}', {{
    roots: new GLib.Variant('as', [{root!r}]), python: new GLib.Variant('s', {python!r}), program: new GLib.Variant('s', {program!r}),
    'sub-workers': new GLib.Variant('u', 1)}}));
const far = host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, 'remote_steps:hold_for_ever'), null);
const x = Pto.Tensor.new_for_buffer(Pto.Buffer.new(8 * {n}), 0, Pto.Dtype.INT64, [{n}]);
host.run(orch => orch.submit_next_level(far, [x.read()]), x);
"""


def of_mark(mark):
    """Processes that have it in their environment: all that came of a program."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
            if mark.encode() in environment.read() and lives(pid):
                found.append(int(pid))
    return found


@unittest.skipIf(np is None, "no numpy")
class Interrupted(unittest.TestCase):
    """One Ctrl-C, to those whose terminal it is, ends all there is anywhere, whatever the far end does."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.mark = os.path.join(self.directory, "mark")

    def script(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def programs(self):
        """What is launched, how large the tensor is, and how many processes there are at least when it is there."""
        yield "kernel", os.environ["PTO_REMOTE"], 1, 4
        yield "bulk", self.script("gate", STOPPING_GATE.format(python=sys.executable, remote=os.environ["PTO_REMOTE"], mark=self.mark)), 2 << 20, 5
        yield "start", self.script("hangs", f"#!/bin/sh\n: > {self.mark}\nexec sleep 600\n"), 1, 3

    def interrupt(self, words, least, status):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.mark)
        environment = {**os.environ, "PTO_TEST_MARK": self.mark, "GJS_PATH": os.path.join(here, "..", "..", "pto", "gi")}
        with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            try:
                until(lambda: os.path.exists(self.mark) or process.poll() is not None)
                self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else None)
                # A process that is in exec() has no environment for a moment.
                until(lambda: len(of_mark(self.mark)) >= least)
                begin = time.monotonic()
                os.killpg(process.pid, signal.SIGINT)
                until(lambda: process.poll() is not None)
                ended = time.monotonic()
                until(lambda: not of_mark(self.mark))
                print(f"# {1000 * (ended - begin):.0f} ms, and all are gone after {1000 * (time.monotonic() - begin):.0f} ms")
                self.assertEqual(process.returncode, status)
                return process.stderr.read()
            finally:
                for pid in of_mark(self.mark):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def test_python(self):
        for what, program, n, least in self.programs():
            with self.subTest(what=what):
                said = self.interrupt([sys.executable, "-c", PYTHON.format(root=root, program=program, n=n)], least, -signal.SIGINT)
                self.assertIn("KeyboardInterrupt", said)

    def test_memory(self):
        """Of the far end, which is written outside of runs and inside of an orchestration."""
        gate = self.script("gate", STOPPING_GATE.format(python=sys.executable, remote=os.environ["PTO_REMOTE"], mark=self.mark))
        for use in ("x.write(0, data)", "remote.copy_to(number, data)", "host.run(lambda orch: x.write(0, data))"):
            with self.subTest(use=use):
                said = self.interrupt([sys.executable, "-c", MEMORY.format(program=gate, use=use)], 4, -signal.SIGINT)
                self.assertIn("KeyboardInterrupt", said)

    @unittest.skipIf(shutil.which("gjs") is None, "no gjs")
    def test_javascript(self):
        for what, program, n, least in self.programs():
            with self.subTest(what=what):
                path = self.script("program.js", JAVASCRIPT.format(root=root, program=program, n=n, python=sys.executable))
                self.interrupt(["gjs", path], least, -signal.SIGINT)

    def test_c(self):
        """As a program does that has the signal cancel its run."""
        for what, program, n, least in self.programs():
            with self.subTest(what=what):
                said = self.interrupt([os.environ["PTO_TEST_INTERRUPTED"], root, sys.executable, program, str(n)], least, 130)
                self.assertIn("cancelled", said)


tap.main()
