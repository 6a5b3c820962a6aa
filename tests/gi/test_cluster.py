# test_cluster.py: do tasks run on the workers of a cluster file, where `pto cluster` has them listen?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, lives, np, remote_steps, root, until  # noqa: E402

SECONDS = 60
REMOTE, PROGRAM = os.environ["PTO_REMOTE"], os.environ["PTO_TEST_PROGRAM"]
JAVASCRIPT = """
const {Pto} = imports.gi;
const root = Pto.Worker.new_host(4, 0, 0, null);
const added = root.add_cluster('c.ini');
print(added.map(worker => `${worker.dup_remote_address()} ${worker.dup_parameter('remote-lease')}`).join(', '));
print(root.add_cluster(Pto.ClusterFile.new('c.ini')).length, root.get_n_workers());
root.start(null);
root.close();
try {
    root.add_cluster('d.ini');
} catch (error) {
    print(error.message);
}
"""


@unittest.skipIf(np is None, "no numpy")
class Cluster(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.file = os.path.join(self.directory, "c.ini")
        # Not that of the library: the language of what is printed is English, and its state its own.
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", XDG_RUNTIME_DIR=self.directory, XDG_STATE_HOME=self.directory)

    def pto(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=SECONDS, cwd=self.directory, env=self.environment)

    def up(self, text):
        with open(self.file, "w") as file:
            file.write(f"[default]\npython={sys.executable}\nroots={root}\nsub-workers=1\n" + text)
        result = self.pto("cluster", "up", "c.ini")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.addCleanup(self.pto, "cluster", "down", "c.ini")

    def status(self):
        return json.loads(self.pto("cluster", "status", "--json", "c.ini").stdout)

    def run_all(self, host, function):
        """One task on each of them: what it writes."""
        y = Pto.Buffer.array((host.get_n_workers(), 8), "i8")
        handle = host.register(function)

        def graph(orch):
            for i in range(host.get_n_workers()):
                orch.submit_next_level(handle, [Pto.Tensor.of(y[i]).write_existing()], worker=i)
        host.run(graph)
        return [int(row[0]) for row in y]

    def test_tasks(self):
        """On workers of every kind, through both kinds of sockets; functions are imported there."""
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        self.assertEqual(self.pto("remote", "certificates", "certificates", "127.0.0.1").returncode, 0)
        self.up(f"""\
[cluster]
certificates=certificates/parent
[launcher own]
command=/bin/sh;-c;exec "$@";%h
[worker here]
listen=unix:here
workers=2
[worker loop]
listen=tls://127.0.0.1:{port}
certificates=certificates/127.0.0.1
[worker each]
[worker own]
hosts=one
launcher=own
program={REMOTE}
""")
        host = Pto.Worker(level=4)
        self.addCleanup(host.close)
        added = host.add_cluster(self.file)
        self.assertEqual([worker.dup_remote_address() for worker in added],
                         [f"unix:{self.directory}/here"] * 2 + [f"tls://127.0.0.1:{port}", "local:", "own://one"])
        for worker in added:
            worker.register(remote_steps.double)
        x, y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array((5, 8), "i8")
        x[:] = np.arange(8)
        layer = host.register(remote_steps.layer)

        def graph(orch):
            for i in range(5):
                orch.submit_next_level(layer, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y[i]).write_existing()], worker=i)
        host.run(graph)
        self.assertEqual(y.tolist(), [[2 * k for k in range(8)]] * 5)

        pids = self.run_all(host, remote_steps.tell)
        self.assertEqual(len(set(pids)), 5)
        # How many are there, each listener says once in a second.
        until(lambda: [(place["sessions"], place["begun"]) for place in self.status()["places"]] == [(2, 2), (1, 1), (0, 0), (0, 0)])
        with open(self.status()["log"]) as log:
            text = log.read()
        for i, (name, pid) in enumerate(zip(("here", "here", "loop"), pids)):
            self.assertRegex(text, re.compile(rf"^\d+-\d+-\d+ \d+:\d+:\d+ {name}: L4/0/L3/{i}: this is {pid}$", re.MULTILINE))
        self.assertEqual(text.count("this is "), 3)
        host.close()
        until(lambda: [(place["sessions"], place["begun"]) for place in self.status()["places"]] == [(0, 2), (0, 1), (0, 0), (0, 0)])

    def test_killed_keeper(self):
        """Who runs tasks where it listens is told; what is below them ends."""
        self.up("[worker here]\nlisten=unix:here\nworkers=2\n")
        host = Pto.Worker(level=4)
        self.addCleanup(host.close)
        host.add_cluster(Pto.ClusterFile.new(self.file))
        pids = self.run_all(host, remote_steps.which)
        found = self.status()
        os.kill(found["keeper"], signal.SIGKILL)
        until(lambda: not any(lives(pid) for pid in [*pids, found["places"][0]["pid"]]))
        self.assertFalse(os.path.exists(os.path.join(self.directory, "here")))
        with self.assertRaises(GLib.Error) as caught:
            self.run_all(host, remote_steps.which)
        self.assertEqual(caught.exception.code, Pto.Error.WORKER_LOST)

    def test_no_place(self):
        """One that is not there is an error, and not a word of GLib's."""
        path = os.path.join(self.directory, "places.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[worker one]\n")
        cluster = Pto.ClusterFile.new(path)
        for told in cluster.dup_name, cluster.dup_address, cluster.dup_command:
            for place in 1, 9:
                with self.assertRaises(IndexError):
                    told(place)
        self.assertEqual(cluster.dup_name(0), "one")

    def test_not_up(self):
        with open(self.file, "w") as file:
            file.write("[worker here]\nlisten=unix:here\n")
        with Pto.Worker(level=4) as host:
            host.add_cluster(self.file)
            with self.assertRaisesRegex(GLib.Error, "nobody is reached at unix:.*/here"):
                host.start()

    def test_wrong(self):
        """Nothing is added then."""
        with open(self.file, "w") as file:
            file.write("[worker a]\n[worker b]\nlaunch=ssh\n")
        with Pto.Worker(level=4) as host:
            with self.assertRaisesRegex(GLib.Error, r'c\.ini: \[worker b\]: unknown key "launch" \(known: hosts, launcher, '):
                host.add_cluster(self.file)
            with self.assertRaises(GLib.Error) as caught:
                host.add_cluster(self.file + "x")
            self.assertEqual(caught.exception.code, Pto.Error.NOT_FOUND)
            with self.assertRaises(TypeError):
                host.add_cluster(7)
            self.assertEqual(host.get_n_workers(), 0)

    def test_places(self):
        with open(self.file, "w") as file:
            file.write("[cluster]\ndeadline=5\n[worker a]\nhosts=one;two\n[worker b]\nlisten=unix:b\nworkers=3\n")
        cluster = Pto.ClusterFile.new(self.file)
        self.assertEqual((cluster.get_deadline(), cluster.get_n_places()), (5, 3))
        self.assertIn(f"{self.file}: 5 workers", repr(cluster))
        self.assertEqual([cluster.dup_name(i) for i in range(3)], ["a/one", "a/two", "b"])
        self.assertEqual([cluster.dup_address(i) for i in range(3)], ["ssh://one", "ssh://two", f"unix:{self.directory}/b"])
        self.assertEqual(cluster.dup_command(0), [])
        self.assertEqual(cluster.dup_command(2), [REMOTE, f"--listen=unix:{self.directory}/b", "--attached"])

    @unittest.skipIf(shutil.which("gjs") is None, "no gjs")
    def test_javascript(self):
        self.up("remote-lease=9000\n[worker a]\nlisten=unix:a\nworkers=2\n[worker b]\nremote-lease=8000\n")
        result = subprocess.run(["gjs", "-c", JAVASCRIPT], capture_output=True, text=True, timeout=SECONDS, cwd=self.directory,
                                env=dict(self.environment, GJS_PATH=os.path.join(here, "..", "..", "pto", "gi")))
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout.splitlines(), [
            f"unix:{self.directory}/a 9000, unix:{self.directory}/a 9000, local: 8000", "3 6", "d.ini: there is no such file"])
        until(lambda: [(place["sessions"], place["begun"]) for place in self.status()["places"]] == [(0, 4), (0, 0)])


tap.main()
