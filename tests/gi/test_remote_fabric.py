# test_remote_fabric.py: do large tensors go by UCX where both ends trust the fabric, and only there?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import lives, np, remote_steps, root, until  # noqa: E402

SECONDS = 120
REMOTE, PROGRAM, MODULES = (os.environ[name] for name in ("PTO_REMOTE", "PTO_TEST_PROGRAM", "PTO_MODULE_DIR"))
N = (20 << 20) // 8 + 3  # two parts, and a smaller one
# A pto-remote that sees what comes to it. Of each message of a part or for one it notes the name; the one that is named by the
# first word is where the second happens.
WATCH = """#!{python}
import os, re, signal, subprocess, sys, time
sys.excepthook = lambda *what: None  # an end that is gone
process = subprocess.Popen([{remote!r}, *sys.argv[1:]], stdin=subprocess.PIPE)
places, action, directory = {places!r}, {action!r}, {directory!r}
open(directory + "/pids", "a").write(f"{{os.getppid()}} {{process.pid}}\\n")
seen, n = open(directory + "/seen", "a"), 0
while data := os.read(0, 65536):
    found = re.findall(rb"\\0(Put|Get)\\0", data)
    n += len(data)
    for name in found:
        seen.write(name.decode() + "\\n")
    seen.flush()
    here = places[0].encode() in found and open(directory + "/seen").read().split().count(places[0]) == places[1]
    if here and action == "hold":
        open(directory + "/held", "w").close()
        while not os.path.exists(directory + "/go"):
            time.sleep(0.001)
    process.stdin.write(data)
    process.stdin.flush()
    if here and action in ("far", "near"):
        os.kill(process.pid if action == "far" else os.getppid(), signal.SIGKILL)
open(directory + "/bytes", "w").write(str(n))
process.stdin.close()
process.wait()
"""


def has_module(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return "pto-ucx.so" in maps.read()


def segments_of(pids):
    """Shared memory that one of them has made, and that is still there."""
    with open("/proc/sysvipc/shm") as table:
        names = table.readline().split()
        return [line for line in table if line.split()[names.index("cpid")] in pids]


class Case(unittest.TestCase):
    transport = "tcp"
    address = "local:"

    def setUp(self):
        if self.transport == "tcp" and not os.path.isdir("/sys/class/net"):
            self.skipTest("no /sys/class/net: UCX finds no network")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.set_variable("UCX_TLS", self.transport)
        self.host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(self.host.close)
        self.a, self.b, self.out = (Pto.Buffer.array(N, "i8") for _ in range(3))
        self.y = Pto.Buffer.array(1, "i8")

    def set_variable(self, name, value):
        before = os.environ.get(name)
        self.addCleanup(lambda: os.environ.pop(name) if before is None else os.environ.__setitem__(name, before))
        os.environ[name] = value

    def listen(self, address, *arguments):
        process = subprocess.Popen([REMOTE, "--listen", address, "--root", root, "--python", sys.executable, *arguments],
                                   stdout=subprocess.PIPE, text=True)

        def end():
            process.terminate()
            process.wait(SECONDS)
            process.stdout.close()
        self.addCleanup(end)
        return process.stdout.readline().strip().rpartition(" ")[2]

    def add(self, **choices):
        choices = {"trusted_fabric": "ucx", **choices}
        if self.address.startswith("unix:"):
            address = self.listen("unix:" + os.path.join(self.directory, "socket"), "--trusted-fabric", "ucx")
        elif self.address.startswith("tls:"):
            cluster = os.path.join(self.directory, "cluster")
            subprocess.run([PROGRAM, "remote", "certificates", cluster, "127.0.0.1"], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
            address = self.listen("tls://127.0.0.1:0", "--certificates", f"{cluster}/127.0.0.1", "--trusted-fabric=ucx")
            choices["certificates"] = f"{cluster}/parent"
        else:
            address, choices = self.address, {"roots": root, **choices}
        return self.host.add_remote_worker(address, **choices)

    def watch(self, places=("", 0), action=""):
        program = os.path.join(self.directory, "program")
        with open(program, "w") as script:
            script.write(WATCH.format(python=sys.executable, remote=REMOTE, places=places, action=action, directory=self.directory))
        os.chmod(program, stat.S_IRWXU)
        return program

    def note(self, name):
        with open(os.path.join(self.directory, name)) as text:
            return text.read().split()

    def mix(self, factor=2, **choices):
        """Much goes there and comes back, and it is what it has to be."""
        self.a[:], self.b[:], self.out[:] = np.arange(N) * factor, 3, np.arange(N) % 7
        expected = (self.out * 3 + int(self.a.sum()) * 2 + int(self.b.sum())) % 1009
        handle = self.host.register(remote_steps.mix)
        tensors = [Pto.Tensor.of(self.a).read(), Pto.Tensor.of(self.b).read(), Pto.Tensor.of(self.out).update(), 2]
        self.host.run(lambda orch: orch.submit_next_level(handle, tensors), **choices)
        self.assertTrue((self.out == expected).all())

    def which(self):
        handle = self.host.register(remote_steps.which)
        self.host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(self.y).write_existing()]))
        return int(self.y[0])

    def bridge(self):
        return self.host.doing["children"][0]["pid"]


@unittest.skipUnless(os.path.exists(os.path.join(MODULES, "pto-ucx.so")), "built without UCX (libucx-dev)")
@unittest.skipIf(np is None, "no numpy")
class Tcp(Case):
    def test_values(self):
        for address in "local:", "unix:", "tls:":
            with self.subTest(address):
                self.address = address
                self.host = Pto.Worker(level=4)
                self.add()
                for factor in 2, 3:
                    self.mix(factor)
                self.assertTrue(has_module(self.bridge()))
                self.assertTrue(has_module(self.which()))
                self.host.close()

    def test_past_the_connection(self):
        """What is large does not go over the connection, and its parts are said there."""
        self.add(program=self.watch())
        self.mix()
        self.host.close()
        self.assertEqual(self.note("seen"), ["Put"] * 9 + ["Get"])
        self.assertLess(int(self.note("bytes")[0]), 100000)
        self.assertEqual(segments_of(self.note("pids")), [])

    def test_copies(self):
        """Of memory that the program has there, from one worker to another."""
        self.add()
        self.add()
        size = 9 << 20
        a, b = (remote.alloc_buffer(size) for remote in self.host.get_children())
        data = np.random.default_rng(5).integers(0, 256, size, "u1").tobytes()
        a.write(0, GLib.Bytes.new(data))
        a.copy_to(b, 3, 0, size - 3)
        self.assertEqual(b.read(0, size).get_data(), data[3:] + bytes(3))
        self.host.close()

    def killed(self, place, action):
        self.add(program=self.watch(place, action))
        with self.assertRaises(GLib.Error) as caught:
            self.mix()
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), caught.exception.message)
        # Both ends are gone, with nothing of theirs, and the next life is as good as the first was.
        bridge, far = (int(pid) for pid in self.note("pids")[:2])
        until(lambda: not lives(bridge) and not lives(far))
        self.mix()
        self.assertNotEqual(self.which(), far)
        self.host.close()
        self.assertEqual(segments_of(self.note("pids")), [])

    def test_far_end_dies_in_a_part(self):
        self.killed(("Put", 2), "far")

    def test_near_end_dies_in_a_part(self):
        self.killed(("Put", 2), "near")

    def test_far_end_dies_as_it_sends(self):
        self.killed(("Get", 1), "far")

    def test_near_end_dies_as_it_takes(self):
        self.killed(("Get", 1), "near")

    def test_cancel(self):
        """Between two parts it is left off; the worker is there for the next."""
        self.add(program=self.watch(("Put", 2), "hold"))
        worker = self.which()
        cancellable = Gio.Cancellable()

        def cancel():
            until(lambda: os.path.exists(os.path.join(self.directory, "held")))
            cancellable.cancel()
            open(os.path.join(self.directory, "go"), "w").close()

        thread = threading.Thread(target=cancel)
        thread.start()
        with self.assertRaises(GLib.Error) as caught:
            self.mix(cancellable=cancellable)
        thread.join()
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        self.assertLess(len(self.note("seen")), 9)
        if self.which() != worker:  # on a busy machine a part takes longer than a cancelled run leaves it
            print("# it was too slow, and was ended")
        self.mix()

    def test_what_is_below_is_not_begun_again(self):
        """Whoever was forked then would have a part in UCX."""
        remote = self.add(sub_workers=1)
        remote.register(remote_steps.double)
        layer, x = self.host.register(remote_steps.layer), Pto.Buffer.array(8, "i8")
        worker = self.which()
        with open(f"/proc/{worker}/task/{worker}/children") as children:
            os.kill(int(children.read()), signal.SIGKILL)
        for _ in range(2):
            with self.assertRaisesRegex(Pto.WorkerLostError, "L4/0/L3/0/sub0 (died .signal 9|.*before)"):
                self.host.run(lambda orch: orch.submit_next_level(layer, [Pto.Tensor.of(x).read(), Pto.Tensor.of(x).write_existing()]))
        self.assertEqual(self.which(), worker)

    def test_idle(self):
        """Whoever waits sleeps: its threads are not run again and again."""
        self.add()
        self.mix()

        def count():
            n = 0
            for pid in self.bridge(), worker:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/comm") as name:
                        if name.read().strip() != "pto-ucx":
                            continue
                    with open(f"/proc/{pid}/task/{task}/status") as status:
                        n += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
                    found.add(pid)
            return n
        worker, found = self.which(), set()

        def is_still():
            before = count()
            time.sleep(1)
            return count() == before
        until(is_still)
        self.assertEqual(len(found), 2)


class Shm(Tcp):
    transport = "shm"

    def test_other_end_stands_still(self):
        """Whoever waits for room, of which nobody tells, sleeps after a while."""
        self.add()
        self.mix()
        worker, bridge = self.which(), self.bridge()

        def count():
            for task in os.listdir(f"/proc/{bridge}/task"):
                with open(f"/proc/{bridge}/task/{task}/stat") as stat:
                    name, rest = stat.read().rsplit(")", 1)
                if name.endswith("(pto-ucx"):
                    return sum(map(int, rest.split()[11:13]))

        for _ in range(5):
            thread = threading.Thread(target=self.mix)
            thread.start()
            until(lambda: self.host.doing["children"][0]["life"] == "busy")
            os.kill(worker, signal.SIGSTOP)
            before = count()
            time.sleep(0.5)
            spent = count() - before
            os.kill(worker, signal.SIGCONT)
            thread.join()
            self.assertLess(spent, 0.25 * os.sysconf("SC_CLK_TCK"))


@unittest.skipIf(np is None, "no numpy")
class Refused(Case):
    transport = "shm"

    def test_unknown(self):
        with self.assertRaisesRegex(GLib.Error, '"verbs" is no engine of a trusted fabric .trusted-fabric.: there is ucx'):
            self.host.add_remote_worker("local:", trusted_fabric="verbs")
        done = subprocess.run([REMOTE, "--listen", "unix:/nonexistent/nowhere", "--trusted-fabric=verbs"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, "there is ucx" in done.stderr), (64, True))

    def test_no_module(self):
        self.set_variable("PTO_MODULE_DIR", self.directory)
        self.add()
        with self.assertRaisesRegex(GLib.Error, r"the trusted fabric \(ucx\) can not be used here: .*pto-ucx.so"):
            self.host.start()

    @unittest.skipUnless(os.path.exists(os.path.join(MODULES, "pto-ucx.so")), "built without UCX (libucx-dev)")
    def test_one_end_only(self):
        address = self.listen("unix:" + os.path.join(self.directory, "socket"))
        # Nobody who launched it can say it in its place.
        self.host.add_remote_worker(address, trusted_fabric="ucx")
        with self.assertRaisesRegex(GLib.Error, "is trusted by one end only: pto-remote was begun without --trusted-fabric=ucx"):
            self.host.start()

    def test_other_end_only(self):
        """Where the program does not ask for it nothing is loaded: the connection does."""
        self.address = "unix:"
        self.add(trusted_fabric=None)
        self.mix()
        self.assertFalse(has_module(self.bridge()))
        self.assertFalse(has_module(self.which()))
        self.host.close()


if __name__ == "__main__":
    tap.main()
