# test_remote_kills.py: whoever of a remote worker's processes dies, at whatever step: is all right that ends well, and does nobody stay?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import itertools
import os
import stat
import sys
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import lives, np, remote_steps, root  # noqa: E402

SECONDS = 120
N = (2 << 20) // 8 + 5  # more than travels with a task, and no multiple of its parts
# Between the bridge and pto-remote. It does once what the plan says: when a call of that method comes by, it kills who is named,
# before it hands that on, after it, or when half of the next that comes back is handed on.
GATE = """#!{python}
import os, select, signal, socket, subprocess, sys
near, far = socket.socket(fileno=os.dup(0)), socket.socketpair()
process = subprocess.Popen([{remote!r}, *sys.argv[1:]], stdin=far[1], stdout=far[1])
far[1].close()

def below(pid):
    with open(f"/proc/{{pid}}/task/{{pid}}/children") as text:
        return [int(child) for child in text.read().split()]

def kill(who):
    os.rename({plan!r}, {plan!r} + ".done")
    for pid in dict(bridge=[os.getppid()], relay=[os.getpid()], far=[process.pid], below=below(process.pid))[who]:
        os.kill(pid, signal.SIGKILL)

def read_plan():
    try:
        with open({plan!r}) as text:
            return text.read().split()
    except FileNotFoundError:
        return None, "none", None

waits = False
while True:
    for end in select.select([near, far[0]], [], [])[0]:
        data = end.recv(65536)
        if not data:
            sys.exit()
        who, method, when = read_plan()
        other = far[0] if end is near else near
        comes = end is near and b"\\3\\1s\\0" + len(method).to_bytes(4, "little") + method.encode() + b"\\0" in data
        if comes and when == "before":
            kill(who)
        if end is far[0] and waits:
            waits = False
            other.sendall(data[:len(data) // 2])
            data = data[len(data) // 2:]
            kill(who)
        try:
            other.sendall(data)
        except OSError:
            sys.exit()
        if comes and when == "after":
            kill(who)
        waits = waits or (comes and when == "answer")
"""


def of_mark(mark):
    """Processes below this one that have it in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
            if mark.encode() in environment.read() and int(pid) != os.getpid() and lives(pid):
                found.append(int(pid))
    return found


@unittest.skipIf(np is None, "no numpy")
class Kills(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.plan = os.path.join(temporary.name, "plan")
        os.environ["PTO_TEST_MARK"] = self.plan
        self.addCleanup(os.environ.pop, "PTO_TEST_MARK")
        self.gate = os.path.join(temporary.name, "gate")
        with open(self.gate, "w") as file:
            file.write(GATE.format(python=sys.executable, remote=os.environ["PTO_REMOTE"], plan=self.plan))
        os.chmod(self.gate, stat.S_IRWXU)
        self.x, self.y = Pto.Buffer.array(N, "i8"), Pto.Buffer.array(N, "i8")
        self.x[:] = range(N)

    @contextlib.contextmanager
    def host(self):
        """Of which nothing is there when it is closed."""
        host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        host.add_remote_worker("local:", roots=root, python=sys.executable, program=self.gate, sub_workers=1)
        try:
            yield host
        finally:
            host.close()
        self.assertEqual(self.left(), [])

    def left(self):
        end = time.monotonic() + SECONDS
        while (found := of_mark(self.plan)) and time.monotonic() < end:
            time.sleep(0.005)
        return found

    def write_plan(self, *words):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.plan + ".done")
        with open(self.plan + ".new", "w") as file:
            file.write(" ".join(words))
        os.rename(self.plan + ".new", self.plan)

    def assert_done(self):
        self.assertTrue(os.path.exists(self.plan + ".done"), "that step never came")

    def copy(self, host, handle, **choices):
        self.y[:] = 7
        host.run(lambda orch, x, y: orch.submit_next_level(handle, [x.read(), y.write()]), self.x, self.y, **choices)
        self.assertTrue((self.x[:] == self.y[:]).all())
        return host.statistics.get_retried()

    def test_start(self):
        """Who dies while it is launched is told of by the start, with its place, and takes all with it."""
        for who, when in itertools.product(("bridge", "relay", "far"), ("before", "after", "answer")):
            with self.subTest(who=who, when=when), self.host() as host:
                self.write_plan(who, "Hello", when)
                with self.assertRaisesRegex(GLib.Error, "^L4/0/L3/0 ") as caught:
                    host.start()
                self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), caught.exception.message)
                self.assert_done()
                self.assertEqual(self.left(), [])

    def test_steps(self):
        """A task that may be is run again, and its result is right; each next one is, too."""
        for who in "bridge", "relay", "far", "below":
            with self.host() as host:
                handle = host.register(remote_steps.copy, idempotent=True)
                host.start()
                for method, when in ("Put", "before"), ("Put", "after"), ("Run", "before"), ("Run", "after"), ("Run", "answer"), \
                                    ("Get", "before"), ("Get", "after"), ("Get", "answer"):
                    with self.subTest(who=who, method=method, when=when):
                        self.write_plan(who, method, when)
                        retried = self.copy(host, handle)
                        self.assert_done()
                        # What the far end had answered by then is on its way.
                        self.assertIn(retried, {"bridge": {1}, "relay": {1}, "far": {0, 1}, "below": {0}}[who])
                        self.assertEqual(self.copy(host, handle), 0)

    def test_at_most_once(self):
        """Of all others the run says who was lost, and the next one is right."""
        with self.host() as host:
            handle = host.register(remote_steps.copy)
            host.start()
            for who, (method, when) in itertools.product(("bridge", "relay"), (("Put", "after"), ("Run", "after"), ("Get", "answer"))):
                with self.subTest(who=who, method=method, when=when):
                    self.write_plan(who, method, when)
                    with self.assertRaisesRegex(GLib.Error, "L4/0/L3/0 (died|exited)") as caught:
                        self.copy(host, handle)
                    self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), caught.exception.message)
                    self.assert_done()
                    self.assertEqual(self.copy(host, handle), 0)

    def test_record(self):
        """A run that is recorded ends well without a part of its record."""
        config = Pto.CallConfig(enable_l2_swimlane=1)
        with self.host() as host:
            handle = host.register(remote_steps.copy, idempotent=True)
            host.start()
            for who, when in itertools.product(("bridge", "relay", "far"), ("before", "answer")):
                with self.subTest(who=who, when=when):
                    self.write_plan(who, "Trace", when)
                    self.copy(host, handle, config=config)
                    self.assert_done()
                    self.assertGreaterEqual(host.trace.get_n_tasks(), 1)
                    self.copy(host, handle)

    def test_registration(self):
        """Either all have it, or it is refused by name; what was there before is there in the next life."""
        functions = iter((remote_steps.which, remote_steps.note, remote_steps.mix, remote_steps.fill, remote_steps.explode, remote_steps.explain))
        with self.host() as host:
            handle = host.register(remote_steps.copy, idempotent=True)
            host.start()
            for who, method in itertools.product(("bridge", "relay", "far"), ("Register", "Commit")):
                with self.subTest(who=who, method=method):
                    self.write_plan(who, method, "after")
                    try:
                        host.register(next(functions))
                    except GLib.Error as error:
                        self.assertIn("L4/0/L3/0", error.message)
                    self.copy(host, handle)
                    self.assert_done()

    def test_close(self):
        for who, when in itertools.product(("bridge", "relay", "far", "below"), ("before", "after")):
            with self.subTest(who=who, when=when), self.host() as host:
                handle = host.register(remote_steps.copy)
                host.start()
                self.copy(host, handle)
                self.write_plan(who, "Close", when)
                host.close()
                self.assert_done()


tap.main()
