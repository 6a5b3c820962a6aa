# test_remote_ends.py: how do remote workers begin and end together, and what is heard of each?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import re
import stat
import sys
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "remote-root")
sys.path.insert(0, root)
import remote_steps  # noqa: E402

SECONDS = 120


def until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.005)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as text:
            return text.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def said():
    """What comes to standard error meanwhile."""
    text = []
    with tempfile.TemporaryFile("w+") as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            text.extend(file.read().splitlines())


@unittest.skipIf(np is None, "no numpy")
class Ends(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.host = Pto.Worker(level=4)
        self.addCleanup(self.host.close)

    def test_words(self):
        """Who prints what is seen at its line, of workers, and of what is below them."""
        for _ in range(2):
            remote = self.host.add_remote_worker("local:", roots=root, python=sys.executable, sub_workers=1)
            remote.register(remote_steps.say)
        handle = self.host.register(remote_steps.say_all)
        self.host.start()
        with said() as lines:
            self.host.run(lambda orch: [orch.submit_next_level(handle, [i], worker=i) for i in range(2)])
            self.host.close()
        lines = [re.sub(r"\*\* Message: [\d:.]+: ", "", line) for line in lines]  # of GLib
        for i in range(2):
            self.assertEqual([line for line in lines if line.startswith(f"L4/0/L3/{i}: ")],
                             [f"L4/0/L3/{i}: {line}" for line in (f"orchestration {i}", "", f"logged {i}", f"function {i}")], lines)
        self.assertEqual(len(lines), 8, lines)

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
        with self.assertRaisesRegex(GLib.Error, r"^pto-error-quark: L4/0/L3/(1 \(ssh://late1|3 \(ssh://late2|4 \(ssh://late3)\) can not be started: "
                                    "it was ended: did not answer for 2 s"):
            self.host.start()
        pids = []
        for name in hosts:
            with open(os.path.join(self.directory, f"{name}.pid")) as file:
                pids.append(int(file.read()))
        until(lambda: not any(map(lives, pids)))


tap.main()
