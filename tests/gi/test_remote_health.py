# test_remote_health.py: is a remote worker that is silent told from one that is gone?
# SPDX-License-Identifier: LGPL-2.1-or-later
import itertools
import os
import signal
import stat
import sys
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import lives, np, remote_steps, root, said, until  # noqa: E402

SECONDS = 120
# What a test never waits for.
LONG = 600000
GATE = """#!{python}
import os, select, signal, socket, subprocess, sys
near, far = socket.socket(fileno=os.dup(0)), socket.socketpair()
subprocess.Popen([{remote!r}, *sys.argv[1:]], stdin=far[1], stdout=far[1])
far[1].close()
open({pid!r}, "w").write(str(os.getpid()))
while True:
    for end in select.select([near, far[0]], [], [])[0]:
        data = end.recv(65536)
        if not data:
            sys.exit()
        (far[0] if end is near else near).sendall(data)
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as text:
        return [int(child) for child in text.read().split()]


@unittest.skipIf(np is None, "no numpy")
class Health(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.y = Pto.Buffer.array(1, "i8")

    def add(self, suspect=LONG, lease=LONG, ping=20, **choices):
        remote = self.host.add_remote_worker("local:", roots=root, python=sys.executable, sub_workers=1, **choices)
        for name, value in ("ping", ping), ("suspect", suspect), ("lease", lease):
            remote.set_parameter(f"remote-{name}", value)
        return remote

    def run_on(self, worker, function=remote_steps.which, **choices):
        """What it writes; its process."""
        handle = self.host.register(function)
        self.y[:] = 0
        self.host.start()
        self.lives = self.child(worker)["lives"]  # who was caught by a lock at its birth has had more than one
        self.host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(self.y).write_existing()], worker=worker), **choices)
        return int(self.y[0])

    def child(self, worker=0):
        return self.host.doing["children"][worker]

    def is_suspect(self, worker=0):
        return self.child(worker).get("is_suspect", False)

    def wait_for_loss(self, bridge):
        """Until its parent knows, too."""
        until(lambda: self.child().get("pid") != bridge)

    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: lives(pid) and os.kill(pid, signal.SIGCONT))

    def in_background(self, function, **choices):
        """run_on() in a thread: what it gives, or the error."""
        found = []

        def run():
            try:
                found.append(self.run_on(0, function, **choices))
            except GLib.Error as error:
                found.append(error)
        thread = threading.Thread(target=run)
        thread.start()

        def join():
            thread.join(SECONDS)
            return found[0]
        return join

    def test_idle(self):
        """One that stands still gets no task, others do; when it goes on it does again, and is the same."""
        for _ in range(2):
            self.add(suspect=400)
        with said() as told:
            far = [self.run_on(worker) for worker in range(2)]
            self.assertFalse(self.is_suspect())
            self.stop(far[0])
            until(self.is_suspect)
            self.assertEqual(self.child()["life"], "idle")
            self.assertFalse(self.is_suspect(1))
            which = self.host.register(remote_steps.which)
            ys = [Pto.Buffer.array(1, "i8") for _ in range(6)]

            def graph(orch):
                for y in ys:
                    orch.submit_next_level(which, [Pto.Tensor.of(y).write_existing()])
            self.host.run(graph)
            self.assertEqual({int(y[0]) for y in ys}, {far[1]})
            for text, what in (self.host.describe_state(), "nothing is heard of it: it gets no task"), \
                              (self.host.dup_metrics(), 'pto_children{worker="L4/0",number="%d",state="away"} 1' % self.host.doing["number"]):
                self.assertIn(what, text)
            join = self.in_background(remote_steps.which)
            os.kill(far[0], signal.SIGCONT)
            self.assertEqual(join(), far[0])
            until(lambda: not self.is_suspect())
        self.assertEqual((self.child()["lives"], self.child()["silences"], self.child(1)["silences"]), (self.lives, 1, 0))
        self.assertIn('pto_remote_silences_total{worker="L4/0",number="%d",child="L4/0/L3/0"} 1' % self.host.doing["number"],
                      self.host.dup_metrics())
        self.assertEqual(len(told), 2, told)
        self.assertRegex(told[0], r"^L4/0/L3/0: local:: nothing is heard of it for \d+ ms \(remote-suspect\): it gets no new task$")
        self.assertRegex(told[1], r"^L4/0/L3/0: local:: it is heard of again, after \d+ ms$")

    def test_in_task(self):
        """A task under way goes on when its worker does."""
        self.add(suspect=100)
        far = self.run_on(0)
        join = self.in_background(remote_steps.stand_still)
        until(lambda: self.is_suspect())
        self.assertEqual((self.child()["life"], self.child()["kernel"]), ("busy", "stand_still"))
        os.kill(far, signal.SIGCONT)
        self.assertEqual(join(), far)
        self.assertEqual(self.child()["lives"], self.lives)

    def test_lease(self):
        """Who stands still for too long is lost: its task, what needs it, and nothing else; then there is another one."""
        self.add(suspect=50, lease=1000)
        self.add()
        far = self.run_on(0)
        [sub] = children(far)
        still, which, double = [self.host.register(what) for what in (remote_steps.stand_still, remote_steps.which, remote_steps.fill)]
        lost, needs, other = [Pto.Buffer.array(1, "i8") for _ in range(3)]

        def graph(orch):
            orch.submit_next_level(still, [Pto.Tensor.of(lost).write_existing()], worker=0)
            orch.submit_next_level(double, [Pto.Tensor.of(lost).update(), 3], worker=1)
            orch.submit_next_level(which, [Pto.Tensor.of(other).write_existing()], worker=1)
        with self.assertRaisesRegex(GLib.Error, r"local: is lost: nothing was heard of it for \d+ ms \(remote-lease\)") as caught:
            self.host.run(graph)
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
        self.assertEqual((lost[0], needs[0]), (0, 0))
        self.assertEqual(int(other[0]), self.run_on(1))
        until(lambda: not lives(far) and not lives(sub))
        self.assertNotIn(self.run_on(0), (0, far))

    def test_long_kernel(self):
        """Who computes is not silent, whatever holds its interpreter."""
        self.add(suspect=1000)
        far = self.run_on(0)
        self.assertEqual(self.run_on(0, remote_steps.hold), far)
        self.assertEqual(self.child()["silences"], 0)

    def test_parent_stands_still(self):
        """A worker of whose parent nothing is heard ends, with all below it; the parent finds that when it goes on."""
        self.add(lease=1000)
        far = self.run_on(0)
        below = children(far)
        bridge = self.child()["pid"]
        with said() as told:
            self.stop(bridge)
            until(lambda: not any(lives(pid) for pid in (far, *below)))
            os.kill(bridge, signal.SIGCONT)
            self.wait_for_loss(bridge)
            self.assertNotIn(self.run_on(0), (0, far))
        self.assertTrue(any("nothing was heard of the parent of L4/0/L3/0 for" in line for line in told), told)

    def test_both_stand_still(self):
        """Nobody counts the time in which it did not run itself."""
        self.add(lease=1000)
        far = self.run_on(0)
        bridge = self.child()["pid"]
        self.stop(bridge)
        self.stop(far)
        os.kill(bridge, signal.SIGCONT)
        until(lambda: not lives(far))
        self.wait_for_loss(bridge)
        self.assertNotIn(self.run_on(0), (0, far))

    def gate(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        program, pid = os.path.join(temporary.name, "gate"), os.path.join(temporary.name, "pid")
        with open(program, "w") as script:
            script.write(GATE.format(python=sys.executable, remote=os.environ["PTO_REMOTE"], pid=pid))
        os.chmod(program, stat.S_IRWXU)
        return program, pid

    def test_cut(self):
        """A link that is cut without a word, and comes back."""
        program, pid = self.gate()
        self.add(suspect=400, program=program)
        far = self.run_on(0)
        with open(pid) as text:
            gate = int(text.read())
        for _ in range(3):
            self.stop(gate)
            until(self.is_suspect)
            join = self.in_background(remote_steps.which)
            os.kill(gate, signal.SIGCONT)
            self.assertEqual(join(), far)
        self.assertEqual(self.child()["silences"], 3)

    def test_cut_for_good(self):
        """Both ends give each other up."""
        program, pid = self.gate()
        self.add(suspect=100, lease=1000, program=program)
        far = self.run_on(0)
        bridge = self.child()["pid"]
        with open(pid) as text:
            self.stop(int(text.read()))
        until(lambda: not lives(far))
        self.wait_for_loss(bridge)
        self.assertNotIn(self.run_on(0), (0, far))

    def test_cancelled(self):
        """Who is cancelled does not wait for somebody who stands still, and leaves nobody."""
        self.add(suspect=100)
        far = self.run_on(0)
        below = children(far)
        cancellable = Gio.Cancellable()
        join = self.in_background(remote_steps.stand_still, cancellable=cancellable)
        until(self.is_suspect)
        cancellable.cancel()
        self.assertTrue(join().matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        until(lambda: not any(lives(pid) for pid in (far, *below)))
        self.assertNotIn(self.run_on(0), (0, far))

    def test_matrix(self):
        """Whoever dies, or stands still, between tasks or in one: the task is lost with a cause, and only it, and nobody stays."""
        self.add(suspect=50, lease=1000)
        self.host.set_parameter("stop-timeout", "300")
        for who, how, in_task in itertools.product(("bridge", "far"), (signal.SIGKILL, signal.SIGSTOP), (False, True)):
            with self.subTest(who=who, how=how.name, in_task=in_task):
                far = self.run_on(0)
                pids = {"bridge": self.child()["pid"], "far": far}
                below = children(far)
                join = None
                if in_task:
                    join = self.in_background(remote_steps.hold)
                    until(lambda: self.child().get("kernel") == "hold")
                os.kill(pids[who], how)
                if how == signal.SIGSTOP and who == "bridge" and not in_task:
                    # Nobody looks at it while nobody needs it: its far end does.
                    until(lambda: not lives(far))
                    os.kill(pids[who], signal.SIGCONT)
                until(lambda: not any(lives(pid) for pid in (*pids.values(), *below)))
                self.wait_for_loss(pids["bridge"])
                if join is not None:
                    error = join()
                    # Who stood still before it took the task has not begun it: the next one runs it.
                    if who == "bridge" and not isinstance(error, GLib.Error):
                        self.assertNotIn(error, (0, far))
                        continue
                    self.assertIsInstance(error, GLib.Error)
                    self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error.message)
                self.assertNotIn(self.run_on(0), (0, far))


tap.main()
