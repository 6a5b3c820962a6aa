# test_pto_cluster.py: does `pto cluster` begin all or none, say how they are, and leave nothing behind?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hosts are this machine: their launchers are scripts that run here what a host would be asked to."""
import json
import os
import signal
import socket
import stat
import subprocess
import time
import unittest

from pto_test import PROGRAM, PtoTest, tap

REMOTE = os.environ["PTO_REMOTE"]
SECONDS = 60
# What ssh does with its words: a shell there reads those behind the host. Of others the program is the first that is a path.
SSH = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift 2\nexec /bin/sh -c "$*"\n'
OTHER = '#!/bin/sh\nwhile [ "${1#/}" = "$1" ]; do shift; done\nexec "$@"\n'


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as text:
            return text.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Cluster(PtoTest):
    def setUp(self):
        super().setUp()
        self.running, self.kept = (os.path.join(self.directory, name) for name in ("run", "kept"))
        os.mkdir(self.running, 0o700)
        os.mkdir(os.path.join(self.directory, "bin"))
        for name, text in (("ssh", SSH), ("srun", OTHER), ("mpirun", OTHER)):
            self.script(f"bin/{name}", text)
        self.environment = dict(self.environment, XDG_RUNTIME_DIR=self.running, XDG_STATE_HOME=self.kept, PTO_REMOTE=REMOTE,
                                PATH=os.path.join(self.directory, "bin") + os.pathsep + os.environ["PATH"])
        self.addCleanup(self.end)

    def end(self):
        """Nothing is left, whatever a test has done; a test that is to find that by itself asks before."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def script(self, path, text):
        self.write(path, text)
        os.chmod(os.path.join(self.directory, path), 0o755)

    def wait(self, what):
        until = time.monotonic() + SECONDS
        while not (found := what()):
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)
        return found

    def processes(self):
        """All of this test: what was begun by its keepers has its environment."""
        word, found = f"XDG_RUNTIME_DIR={self.running}".encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as text:
                    if word in text.read().split(b"\0") and lives(pid):
                        found.append(int(pid))
            except (OSError, ValueError):
                pass
        return found

    def assert_nothing_left(self):
        self.wait(lambda: self.processes() == [])
        self.assertEqual(os.listdir(os.path.join(self.running, "pto-cluster")), [])
        self.assertEqual([name for name in os.listdir(self.directory) if name.endswith(".socket")], [])

    def status(self, file="c.ini"):
        result = self.pto("cluster", "status", "--json", file)
        return json.loads(result.stdout) if result.stdout else None

    def place(self, name):
        return next(place for place in self.status()["places"] if place["name"] == name)

    def log(self):
        directory = os.path.join(self.kept, "pto-cluster")
        with open(os.path.join(directory, *os.listdir(directory))) as text:
            return text.read()

    def certificates(self):
        self.passes("remote", "certificates", "certificates", "127.0.0.1")

    def test_everything(self):
        """By every launcher, at both kinds of addresses, and those that are none of its own."""
        self.certificates()
        port = [free_port() for _ in range(4)]
        self.write("c.ini", f"""\
[cluster]
certificates=certificates/parent
[default]
program={REMOTE}
certificates={self.directory}/certificates/%h
[launcher own]
command=/bin/sh;-c;shift && exec "$@";%h;%h
[worker here]
listen=unix:here.socket
[worker loop]
listen=tls://127.0.0.1:{port[0]}
certificates=certificates/127.0.0.1
allow=parent
[worker far]
hosts=127.0.0.1
listen=tls://%h:{port[1]}
[worker task]
hosts=127.0.0.1
launcher=srun
listen=tls://%h:{port[2]}
[worker rank]
hosts=127.0.0.1
launcher=mpirun
listen=tls://%h:{port[3]}
[worker own]
hosts=here
launcher=own
[worker there]
hosts=far
connect=tls://%h:7000
[job fit]
hosts=one;two
workers=2
[job alone]
""")
        names = ["here", "loop", "far/127.0.0.1", "task/127.0.0.1", "rank/127.0.0.1", "own/here", "there/far", "fit/one", "fit/two", "alone"]
        addresses = [f"unix:{self.directory}/here.socket", *(f"tls://127.0.0.1:{n}" for n in port), "own://here", "tls://far:7000",
                     "ssh://one", "ssh://two", "local:"]
        said = self.passes("cluster", "up", "c.ini").splitlines()
        self.assertEqual([line.split()[0] for line in said], names + ["log"])
        self.assertEqual([line.split()[1] for line in said[:-1]], ["ready"] * 5 + ["on-demand", "elsewhere"] + ["on-demand"] * 3)
        self.assertEqual([line.split("  ")[-1] for line in said[-4:-1]],
                         ["ranks 0 to 1 of the job fit", "ranks 2 to 3 of the job fit", "rank 0 of the job alone"])

        found = self.status()
        self.assertEqual(found["file"], "c.ini")
        self.assertEqual(found["log"], said[-1].split()[1])
        self.assertTrue(os.path.isfile(found["log"]))
        self.assertTrue(lives(found["keeper"]))
        self.assertEqual([place["name"] for place in found["places"]], names)
        self.assertEqual([place["address"] for place in found["places"]], addresses)
        for place in found["places"][:5]:
            self.assertEqual({name: place[name] for name in ("state", "generation", "host", "sessions", "begun")},
                             {"state": "ready", "generation": 1, "host": socket.gethostname(), "sessions": 0, "begun": 0})
            with open(f"/proc/{place['pid']}/cmdline") as text:
                self.assertIn(f"--listen={place['address']}", text.read().split("\0"))
        for place, state in zip(found["places"][5:7], ("on-demand", "elsewhere")):
            self.assertEqual((place["state"], place["generation"], place["pid"]), (state, 0, 0))
        self.assertEqual([tuple(place.get(name) for name in ("workers", "job", "rank")) for place in found["places"][6:]],
                         [(1, None, None), (2, "fit", 0), (2, "fit", 2), (1, "alone", 0)])
        rows = self.passes("cluster", "status", "c.ini").splitlines()
        self.assertRegex(rows[0], f"^  here +ready +unix:{self.directory}/here.socket  process {found['places'][0]['pid']} on ")
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.running, "pto-cluster")).st_mode), 0o700)

        self.assertEqual(self.passes("cluster", "down", "c.ini"), "")
        self.assert_nothing_left()
        self.assertIn("here: pto-remote listens at unix:", self.log())

    def test_twice(self):
        """By whatever name; and again when it was down."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        os.mkdir(os.path.join(self.directory, "link"))
        os.symlink(os.path.join("..", "c.ini"), os.path.join(self.directory, "link", "other.ini"))
        self.fails(1, ["c.ini is not up: pto cluster up c.ini"], "cluster", "down", "c.ini")
        self.fails(1, ["c.ini is not up: pto cluster up c.ini"], "cluster", "status", "c.ini")
        self.passes("cluster", "up", "c.ini")
        keeper = self.status()["keeper"]
        self.fails(3, ["link/other.ini is up already, or comes up"], "cluster", "up", "link/other.ini")
        self.assertEqual(self.status("link/other.ini")["keeper"], keeper)
        # What the file says does not matter any more, nor whether it is there.
        self.write("c.ini", "x")
        self.assertEqual(self.status()["keeper"], keeper)
        os.unlink(os.path.join(self.directory, "c.ini"))
        self.passes("cluster", "down", "c.ini")
        self.assert_nothing_left()
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        for _ in range(5):
            self.passes("cluster", "up", "link/other.ini")
            self.assertEqual(self.place("a")["address"], f"unix:{self.directory}/a.socket")
            self.passes("cluster", "down", "c.ini")
        self.fails(1, ["c.ini is not up"], "cluster", "down", "c.ini")
        self.assert_nothing_left()

    def test_unwritten(self):
        """The cluster is up if, and only if, the exit status is 0."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n[worker b]\nlisten=unix:b.socket\n")
        for check in self.cut, self.full, self.unopened:
            with self.subTest(check=check.__name__):
                check("cluster", "up", "c.ini")
                self.assert_nothing_left()
                self.fails(1, ["c.ini is not up"], "cluster", "status", "c.ini")
        # A reader that ends after the first line has had all.
        said = subprocess.run(["bash", "-c", 'set -o pipefail; "$@" | head -n 1', "bash", PROGRAM, "cluster", "up", "c.ini"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.directory, env=self.environment,
                              timeout=SECONDS, check=True)
        self.assertRegex(said.stdout, r"\A  a +ready .*\n\Z")
        self.assertEqual(self.place("b")["state"], "ready")
        for words in ["status"], ["status", "--json"]:
            for check in self.cut, self.full, self.unopened:
                with self.subTest(words=words, check=check.__name__):
                    check("cluster", *words, "c.ini")
        self.assertEqual(self.place("b")["state"], "ready")
        self.passes("cluster", "down", "c.ini")
        self.assert_nothing_left()

    def test_remote_unwritten(self):
        """pto-remote --listen ends when it cannot print its address."""
        for words in ["--version"], ["--help"], ["-h"], ["--listen", f"unix:{self.directory}/one.socket"]:
            for check in self.cut, self.full, self.unopened:
                with self.subTest(words=words, check=check.__name__):
                    how = {} if check == self.cut else {"status": os.EX_IOERR, "name": "pto-remote"}
                    check(*words, program=REMOTE, **how)
                    self.assertFalse(os.path.exists(os.path.join(self.directory, "one.socket")))

    def test_wrong(self):
        self.fails(2, ["what is to be done? pto cluster up FILE"], "cluster")
        self.fails(2, ["which cluster? pto cluster up FILE"], "cluster", "up")
        self.fails(2, ['"begin" can not be done: there are up, status and down'], "cluster", "begin", "c.ini")
        self.fails(2, ['one file at a time, not "d.ini" too'], "cluster", "status", "c.ini", "d.ini")
        self.fails(3, ["c.ini: there is no such file"], "cluster", "up", "c.ini")
        self.write("c.ini", "[worker a]\nlisten=tls://here:1\ncertificates=none\n")
        self.fails(3, ["c.ini: [worker a]: certificates=", "/none: ca.pem: No such file"], "cluster", "up", "c.ini")
        self.fails(1, ["c.ini is not up"], "cluster", "status", "c.ini")

    def test_one_that_fails(self):
        """Then all that have begun end; the error names the host and has its words."""
        self.certificates()
        port = free_port()
        self.script("bin/ssh", "#!/bin/sh\necho no route to it >&2\nexit 255\n")
        head = f"[cluster]\ncertificates=certificates/parent\n[worker a]\nlisten=unix:a.socket\n[worker b]\nhosts=gone\nlisten=tls://%h:{port}\n"
        self.write("c.ini", head + "certificates=/x\n")
        self.fails(3, ['c.ini: b/gone: "ssh" has exited with status 255: no route to it'], "cluster", "up", "c.ini")
        self.assert_nothing_left()
        self.write("c.ini", head + "certificates=/x\nlauncher=srun\n")
        os.unlink(os.path.join(self.directory, "bin", "srun"))
        self.environment["PATH"] = os.path.join(self.directory, "bin")
        self.fails(3, ['c.ini: b/gone: "srun" can not be launched: there is no such program'], "cluster", "up", "c.ini")
        self.assert_nothing_left()
        # Certificates that are not there, there.
        self.environment["PATH"] += os.pathsep + os.environ["PATH"]
        self.script("bin/ssh", SSH)
        self.write("c.ini", head.replace("gone", "127.0.0.1") + f"certificates=/nonexistent/nowhere\nprogram={REMOTE}\n")
        self.fails(3, ["c.ini: b/127.0.0.1: ", "pto-remote: ", "/nonexistent/nowhere"], "cluster", "up", "c.ini")
        self.assert_nothing_left()
        # Nobody would import functions, or from nowhere.
        self.script("nopython", "#!/bin/sh\necho not in the mood >&2\nexit 1\n")
        for key, words in (("python=/nonexistent/python", ["--python /nonexistent/python: there is no such program"]),
                           (f"python={self.directory}/nopython", ["/nopython can not import libpto: not in the mood"])):
            self.write("c.ini", f"[worker a]\nlisten=unix:a.socket\n[worker c]\nlisten=unix:c.socket\n{key}\n")
            self.fails(3, ["c.ini: c: ", *words], "cluster", "up", "c.ini")
            self.assert_nothing_left()
        self.write("c.ini", head.replace("gone", "127.0.0.1") + f"certificates={self.directory}/certificates/%h\nprogram={REMOTE}\nroots=/nonexistent/root\n")
        self.fails(3, ["c.ini: b/127.0.0.1: ", "--root /nonexistent/root: No such file or directory"], "cluster", "up", "c.ini")
        self.assert_nothing_left()
        # Somebody is there already.
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(os.path.join(self.directory, "taken"))
            taken.listen()
            self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n[worker c]\nlisten=unix:taken\n")
            self.fails(3, ["c.ini: c: ", "in use"], "cluster", "up", "c.ini")
        self.assert_nothing_left()

    def test_certificates(self):
        """By which nobody would get in, though all listen."""
        self.certificates()
        self.passes("remote", "certificates", "certificates", "localhost")
        self.passes("remote", "certificates", "others", "127.0.0.1")
        here = os.path.realpath(self.directory)
        for submitter, listener, words in (
                ("certificates/127.0.0.1", "certificates/127.0.0.1", f"c.ini: {here}/certificates/127.0.0.1/cert.pem is not for one who submits"),
                ("certificates/parent", "certificates/parent", f"c.ini: a: {here}/certificates/parent/cert.pem is not for one who listens"),
                ("certificates/parent", "others/127.0.0.1",
                 f"c.ini: a: {here}/others/127.0.0.1/cert.pem has expired, or is not of the authority of {here}/certificates/parent/ca.pem"),
                ("certificates/parent", "certificates/localhost", f"c.ini: a: {here}/certificates/localhost/cert.pem is not for the host 127.0.0.1")):
            self.write("c.ini", f"[cluster]\ncertificates={submitter}\n[worker a]\nlisten=tls://127.0.0.1:{free_port()}\ncertificates={listener}\n")
            self.fails(3, [words], "cluster", "up", "c.ini")
            self.assert_nothing_left()

    def test_elsewhere(self):
        """Who looks where it is not is told where that was."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        self.passes("cluster", "up", "c.ini")
        other = os.path.join(self.directory, "other")
        os.mkdir(other, 0o700)
        for action in "status", "down":
            self.fails(1, [f"c.ini is not up: pto cluster up c.ini. (There is no {other}/pto-cluster/", ".socket, which is below XDG_RUNTIME_DIR: "],
                       "cluster", action, "c.ini", environment={"XDG_RUNTIME_DIR": other})
        result = self.fails(1, ["d.ini is not up, and there is no such file: neither ", f"/d.ini nor {self.running}/pto-cluster/"], "cluster", "status", "d.ini")
        self.assertIn(os.path.realpath(os.path.join(self.directory, "d.ini")), result.stderr)
        self.passes("cluster", "down", "c.ini")

    def test_carriage_returns(self):
        """As on a terminal: what stands behind the last of a line is the line."""
        self.certificates()
        self.script("bin/ssh", "#!/bin/sh\nprintf 'loading 10%%\\rloading 99%%\\r\\nno route\\r\\n' >&2\nexit 255\n")
        self.write("c.ini", "[cluster]\ncertificates=certificates/parent\n[worker b]\nhosts=gone\nlisten=tls://%h:1\ncertificates=/x\n")
        self.fails(3, ['"ssh" has exited with status 255: no route'], "cluster", "up", "c.ini")
        self.assertRegex(self.log(), r"(?m)^\S+ \S+ b/gone: loading 99%\n\S+ \S+ b/gone: no route$")
        self.assertNotIn("?", self.log())

    def test_deadline(self):
        """One for all: who is late takes the others with it."""
        self.script("bin/ssh", "#!/bin/sh\nexec sleep 1000\n")
        self.certificates()
        self.write("c.ini", "[cluster]\ndeadline=1\ncertificates=certificates/parent\n[worker a]\nlisten=unix:a.socket\n"
                   "[worker b]\nhosts=one;two\nlisten=tls://%h:1\ncertificates=x\n")
        self.fails(3, ["c.ini: b/one, b/two: nobody listens there after 1 s ([cluster]: deadline)"], "cluster", "up", "c.ini")
        self.assert_nothing_left()

    def begin_late(self):
        """One that comes up and waits for a host."""
        self.script("bin/ssh", "#!/bin/sh\nexec sleep 1000\n")
        self.certificates()
        self.write("c.ini", "[cluster]\ncertificates=certificates/parent\n[worker a]\nlisten=unix:a.socket\n"
                   "[worker b]\nhosts=one\nlisten=tls://%h:1\ncertificates=x\n")
        process = subprocess.Popen([PROGRAM, "cluster", "up", "c.ini"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.directory, env=self.environment)
        self.addCleanup(process.communicate)
        self.wait(lambda: (found := self.status()) and [place["state"] for place in found["places"]] == ["ready", "joining"])
        return process

    def test_interrupted(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(number):
                process = self.begin_late()
                result = self.pto("cluster", "status", "c.ini")
                self.assertEqual((result.returncode, result.stderr), (1, "pto: c.ini: 1 place is not ready\n"))
                process.send_signal(number)
                self.assertEqual(process.wait(SECONDS), status)
                self.assert_nothing_left()

    def test_down_before_up(self):
        process = self.begin_late()
        self.passes("cluster", "down", "c.ini")
        self.assertEqual(process.wait(SECONDS), 3)
        self.assertEqual(process.stderr.read(), "pto: c.ini: it was ended\n")
        self.assert_nothing_left()

    def test_many(self):
        """More than there are descriptors for at first; what is begun has no more than others."""
        self.write("c.ini", "".join(f"[worker w{i}]\nlisten=unix:{i}.socket\n" for i in range(12)))
        result = subprocess.run(["/bin/sh", "-c", 'ulimit -S -n 40 && exec "$@"', "sh", PROGRAM, "cluster", "up", "c.ini"], capture_output=True,
                                stdin=subprocess.DEVNULL, text=True, cwd=self.directory, env=self.environment, timeout=SECONDS)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found = self.status()
        self.assertEqual([place["state"] for place in found["places"]], ["ready"] * 12)
        self.assertGreater(len(os.listdir(f"/proc/{found['keeper']}/fd")), 40)
        with open(f"/proc/{found['places'][11]['pid']}/limits") as text:
            self.assertRegex(text.read(), r"\nMax open files +40 ")
        self.passes("cluster", "down", "c.ini")
        self.assert_nothing_left()

    def test_killed_keeper(self):
        """All that it has begun ends by itself; what is left of it is in nobody's way."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n[worker b]\nlisten=unix:b.socket\n")
        for down in True, False:
            self.passes("cluster", "up", "c.ini")
            found = self.status()
            os.kill(found["keeper"], signal.SIGKILL)
            self.wait(lambda: self.processes() == [])
            self.fails(1, ["c.ini is not up any more: the process that kept it has ended, and nobody said down; nobody listens at ", ".socket, and its log is ", ".log"],
                       "cluster", "status", "c.ini")
            if down:
                self.fails(1, ["c.ini is not up any more"], "cluster", "down", "c.ini")
                self.assert_nothing_left()
                self.fails(1, ["c.ini is not up: "], "cluster", "down", "c.ini")
        self.passes("cluster", "up", "c.ini")
        self.passes("cluster", "down", "c.ini")
        self.assert_nothing_left()

    def test_ended_keeper(self):
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        self.passes("cluster", "up", "c.ini")
        keeper = self.status()["keeper"]
        os.kill(keeper, signal.SIGSTOP)
        self.fails(3, ["c.ini: the process that keeps it does not answer at ", ".socket: "], "cluster", "status", "c.ini")
        os.kill(keeper, signal.SIGCONT)
        os.kill(keeper, signal.SIGTERM)
        self.assert_nothing_left()

    def test_at_one_time(self):
        """Of several who begin it one does, and the others find that; whoever ends it does so for all who ask."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")

        def all_at_once(what):
            processes = [subprocess.Popen([PROGRAM, "cluster", what, "c.ini"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True, cwd=self.directory, env=self.environment) for _ in range(6)]
            return [(process.communicate(timeout=SECONDS)[1], process.returncode) for process in processes]
        for _ in range(3):
            said = all_at_once("up")
            self.assertEqual(sorted(said), [("", 0)] + [("pto: c.ini is up already, or comes up\n", 3)] * 5)
            said = all_at_once("down")
            self.assertIn(("", 0), said)
            self.assertLessEqual({text.partition(" not up")[0] for text, status in said if status != 0}, {"pto: c.ini is"})
            self.assert_nothing_left()

    def test_lost_and_suspect(self):
        """Who was lost is begun again, with another generation; who is silent is suspect until it answers."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n[worker b]\nlisten=unix:b.socket\n")
        self.passes("cluster", "up", "c.ini")
        before, other = self.place("a")["pid"], self.place("b")
        os.kill(before, signal.SIGKILL)
        after = self.wait(lambda: (found := self.place("a"))["state"] == "ready" and found["generation"] == 2 and found)
        self.assertNotIn(after["pid"], (0, before))
        self.assertEqual(self.place("b"), other)
        self.assertIn('a: lost: "', self.log())
        os.kill(after["pid"], signal.SIGSTOP)
        self.wait(lambda: self.place("a")["state"] == "suspect")
        self.fails(1, ["c.ini: 1 place is not ready"], "cluster", "status", "c.ini")
        os.kill(after["pid"], signal.SIGCONT)
        self.wait(lambda: self.place("a")["state"] == "ready")
        self.assertEqual(self.place("a")["pid"], after["pid"])
        self.assertIn("a: answers again", self.log())
        # One that stands still is ended, too.
        os.kill(after["pid"], signal.SIGSTOP)
        self.passes("cluster", "down", "c.ini")
        self.assert_nothing_left()

    def attached(self, seconds):
        """One that listens and is held by its standard input, here."""
        one = subprocess.Popen([REMOTE, "--listen", f"unix:{self.directory}/one.socket", "--attached", f"--timeout={seconds}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(one.wait, SECONDS)
        self.assertEqual(one.stdout.readline(), f"pto-remote listens at unix:{self.directory}/one.socket\n")
        return one

    def assert_ended(self, one, said):
        self.assertEqual(one.wait(SECONDS), 0)
        self.assertEqual(one.communicate()[1], said)
        self.assertFalse(os.path.exists(os.path.join(self.directory, "one.socket")))

    def test_attached(self):
        one = self.attached(10000)
        one.stdin.write("how are you?\n\n")
        one.stdin.flush()
        self.assertEqual([one.stdout.readline() for _ in range(2)], [f"status {one.pid} {socket.gethostname()} 0 0\n"] * 2)
        one.stdin.close()
        one.stdin = None
        self.assert_ended(one, "")

    def test_lease(self):
        """It ends when nothing is heard of who has begun it, though nothing says that that has ended."""
        self.assert_ended(self.attached(1), "pto-remote: nothing was heard for 1 s of who has begun this (--timeout)\n")

    def test_strange_directory(self):
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        for above, name in (self.running, "XDG_RUNTIME_DIR"), (self.kept, "XDG_STATE_HOME"):
            os.makedirs(above, 0o700, exist_ok=True)
            path = os.path.join(above, "pto-cluster")
            with self.subTest(name):
                os.makedirs(path, 0o700, exist_ok=True)
                os.chmod(path, 0o750)
                self.fails(3, [path, "others may look in (mode 750): chmod 700"], "cluster", "up", "c.ini")
                os.chmod(path, 0o700)
                if os.geteuid() == 0:
                    os.chown(path, 65534, 65534)
                    self.fails(3, [path, "this is the directory of user 65534, and not of user 0"], "cluster", "status", "c.ini")
                os.rmdir(path)
                os.mkdir(path + "-elsewhere", 0o700)
                os.symlink(path + "-elsewhere", path)
                self.fails(3, [path, "this has to be a directory, and no link to one"], "cluster", "up", "c.ini")
                os.unlink(path)
                self.write(path, "")
                self.fails(3, [path, ": "], "cluster", "down", "c.ini")
                os.unlink(path)
                self.assertEqual(os.listdir(path + "-elsewhere"), [])
        long = os.path.join(self.directory, "long" * 30)
        os.mkdir(long, 0o700)
        self.fails(3, [long, "is too long for the name of a socket: XDG_RUNTIME_DIR has to be a shorter one"], "cluster", "up", "c.ini",
                   environment={"XDG_RUNTIME_DIR": long})

    def test_links(self):
        """Nothing is written or locked through a link that somebody has put there."""
        self.write("c.ini", "[worker a]\nlisten=unix:a.socket\n")
        self.passes("cluster", "up", "c.ini")
        log = self.status()["log"]
        self.passes("cluster", "down", "c.ini")
        self.write("mine", "mine")
        for path in log, os.path.join(self.running, "pto-cluster", os.path.basename(log).replace(".log", ".lock")):
            if os.path.exists(path):
                os.unlink(path)
            os.symlink(os.path.join(self.directory, "mine"), path)
            self.fails(3, [path, ": it is a link"], "cluster", "up", "c.ini")
            os.unlink(path)
        with open(os.path.join(self.directory, "mine")) as text:
            self.assertEqual(text.read(), "mine")
        self.assertEqual(self.processes(), [])


tap.main()
