# test_remote_asking.py: does a program with remote workers say which they are, where they are, and what they do?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, root, until  # noqa: E402

SECONDS = 60
REMOTE, PROGRAM = os.environ["PTO_REMOTE"], os.environ["PTO_TEST_PROGRAM"]
# A program like any other, that is asked from outside: its address, and then its own number when its remote worker is about to start.
WAITS = """
import os, sys
sys.path.insert(0, os.environ["PTO_TEST_ROOT"])
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto
import remote_steps
host = Pto.Worker(level=4)
host.add_remote_worker("local:", roots=os.environ["PTO_TEST_ROOT"])
handle, y = host.register(remote_steps.wait_for_mark), Pto.Buffer.array(8, "i8")
print(os.getpid(), flush=True)
host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(y).write_existing()]))
host.close()
print(y[0])
"""


@unittest.skipIf(np is None, "no numpy")
class RemoteAsking(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.mark = os.path.join(self.directory, "mark")
        os.environ["PTO_TEST_MARK"] = self.mark
        self.addCleanup(os.environ.pop, "PTO_TEST_MARK")

    def go_on(self):
        open(self.mark, "w").close()

    def ask(self, pid, how="--once"):
        return subprocess.run([PROGRAM, "top", how, str(pid)], capture_output=True, text=True, timeout=SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8", LANGUAGE=""))

    def start(self, before=(), **environment):
        process = subprocess.Popen([*before, sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, PTO_TEST_ROOT=root, PTO_ANSWER="1", **environment))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, SECONDS)
        self.addCleanup(self.go_on)
        return process, int(process.stdout.readline())

    def row(self, pid, is_wanted):
        """Of its only remote worker, when it is as is wanted."""
        def look():
            answer = self.ask(pid, "--json")
            rows = json.loads(answer.stdout)["workers"] if answer.returncode == 0 else []
            return rows and rows[0]["children"] and is_wanted(rows[0]["children"][0]) and rows[0]["children"][0]
        return until(look)

    def test_address(self):
        """In text, in JSON and on the screen: where it is, which process it is there, and what that does itself."""
        process, pid = self.start()
        row = self.row(pid, lambda row: row.get("task") and row.get("for_ns") and row.get("below", [{}])[0].get("run"))
        self.assertEqual((row["path"], row["address"], row["life"]), ("L4/0/L3/0", "local:", "busy"))
        self.assertNotIn(row["far_pid"], (0, row["pid"], pid))
        self.assertNotIn("silent", row)
        self.assertEqual([worker["path"] for worker in row["below"]], ["L4/0/L3/0"])
        self.assertEqual(row["below"][0]["run"]["submitter"]["doing"], "orchestration")
        self.assertRegex(self.ask(pid).stdout, r"(?m)^  L3/0        runs task 0 \(wait_for_mark\), for [0-9.]+ m?s "
                         rf"\(remote: local:, process {row['far_pid']} there\)\n    L4/0/L3/0: ")
        self.assertRegex(self.ask(row["far_pid"]).stdout, r"(?m)^L4/0/L3/0: ")

        us, its = pty.openpty()
        top = subprocess.Popen([PROGRAM, "top", str(pid)], stdin=its, stdout=its, stderr=its, env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
        os.close(its)
        seen = b""
        while b"local:" not in seen:
            seen += os.read(us, 4096)
        os.write(us, b"q")
        self.assertEqual(top.wait(SECONDS), 0)
        os.close(us)
        self.go_on()
        self.assertEqual(process.stdout.read(), f"{row['far_pid']}\n")

    def test_start(self):
        """While it starts, which may take long: nobody is there yet who could answer in its place."""
        program, begun = (os.path.join(self.directory, name) for name in ("slow", "begun"))
        with open(program, "w") as script:
            script.write(f'#!/bin/sh\nuntil [ -e {begun} ]; do sleep 0.01; done\nexec {REMOTE} "$@"\n')
        os.chmod(program, 0o700)
        process, pid = self.start(PTO_REMOTE=program)
        self.addCleanup(lambda: open(begun, "w").close())
        row = self.row(pid, lambda row: row["life"] == "starting" and row.get("for_ns"))
        self.assertEqual((row["request"], row["address"]), ("start", "local:"))
        self.assertNotIn("far_pid", row)
        self.assertRegex(self.ask(pid).stdout, r"(?m)^L4/0: no run is under way\n  L3/0        is asked for its start, for [0-9.]+ m?s "
                         r"\(remote: local:\)$")
        open(begun, "w").close()
        self.row(pid, lambda row: row.get("task"))

    def test_start_that_fails(self):
        """Whoever asks meanwhile harms nobody."""
        host = Pto.Worker(level=4)
        self.addCleanup(host.close)
        for name in "false", "true", "/nonexistent/such/program":
            host.add_remote_worker("local:", program=name)
        over = threading.Event()

        def ask():
            while not over.is_set():
                json.loads(host.describe_state_json())
        thread = threading.Thread(target=ask)
        thread.start()
        for _ in range(5):
            with self.assertRaises(GLib.Error):
                host.start()
        over.set()
        thread.join()
        self.assertEqual(json.loads(host.describe_state_json())["workers"], [])

    def test_family(self):
        """Who is one process away from the one that answers is told which that is: what has begun it, and the one that speaks for the
        remote worker."""
        process, pid = self.start(before=("sh", "-c", '"$@" & wait', "sh"))
        row = self.row(pid, lambda row: row.get("task"))
        self.assertNotEqual(process.pid, pid)
        for other, words in (process.pid, "which it has begun"), (row["pid"], "which has begun it"):
            answer = self.ask(other)
            self.assertEqual((answer.returncode, answer.stdout), (3, ""))
            self.assertEqual(answer.stderr, f"pto: process {other} does not listen: ask process {pid}, {words}\n")

    def test_stranger(self):
        """The number of a process there may be that of another program here: what that says is not shown in its place."""
        stranger = Pto.Worker(level=4)
        self.addCleanup(stranger.close)
        stranger.start()
        program = os.path.join(self.directory, "liar")
        with open(program, "w") as script:
            script.write(f"#!/bin/sh\nexec {sys.executable} {os.path.join(here, 'remote_liar.py')} {os.getpid()} {REMOTE} \"$@\"\n")
        os.chmod(program, 0o700)
        Pto.answer_start()
        self.addCleanup(Pto.answer_stop)
        _, pid = self.start(PTO_REMOTE=program)
        row = self.row(pid, lambda row: row.get("task"))
        self.assertEqual(row["far_pid"], os.getpid())
        self.assertNotIn("below", row)


tap.main()
