# test_remote_tls.py: who is let in where pto-remote listens, and does whoever is not harm anybody?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import random
import re
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import lives, np, remote_steps, root  # noqa: E402
from remote_protocol import PROTOCOL  # noqa: E402

SECONDS = 60
REMOTE, PROGRAM = os.environ["PTO_REMOTE"], os.environ["PTO_TEST_PROGRAM"]


class Listener:
    """pto-remote --listen, and what it says."""

    def __init__(self, address, *arguments, before=()):
        self.process = subprocess.Popen([*before, REMOTE, "--listen", address, "--root", root, "--python", sys.executable, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().rpartition(" ")[2]
        self.said, self.more = [], threading.Condition()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stderr:
            with self.more:
                self.said.append(line.rstrip("\n"))
                self.more.notify_all()

    def wait(self, text):
        """The line that has it."""
        with self.more:
            found = self.more.wait_for(lambda: [line for line in self.said if text in line], SECONDS)
        assert found, f"{text} is not in {self.said}"
        return found[0]

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        self.thread.join(SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


@unittest.skipIf(np is None, "no numpy")
class Listening(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name

    def listen(self, address, *arguments):
        listener = Listener(address, *arguments)
        self.addCleanup(listener.end)
        return listener

    def run_one(self, address, function=remote_steps.which, **choices):
        """One task there: what it writes."""
        y = Pto.Buffer.array(8, "i8")
        host = Pto.Worker(level=4)
        try:
            host.add_remote_worker(address, **choices)
            handle = host.register(function)
            host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(y).write_existing()]))
        finally:
            host.close()
        return y[0]

    def test_unix(self):
        path = os.path.join(self.directory, "socket")
        listener = Listener(f"unix:{path}")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        first, second = self.run_one(f"unix:{path}"), self.run_one(f"unix:{path}")
        self.assertNotEqual(first, second)
        # One is there already: the other says so, and leaves it alone.
        other = subprocess.run([REMOTE, "--listen", f"unix:{path}"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(other.returncode, 69)
        self.assertIn("in use", other.stderr)
        self.assertTrue(self.run_one(f"unix:{path}"))
        # Its end is that of all that it has begun.
        held = socket.socket(socket.AF_UNIX)
        self.addCleanup(held.close)
        held.connect(path)
        self.assertEqual(listener.end(), 0)
        self.assertEqual(held.recv(1), b"")
        self.assertFalse(os.path.exists(path))
        with self.assertRaisesRegex(GLib.Error, "nobody is reached at unix:.*--listen"):
            self.run_one(f"unix:{path}")

    def test_words(self):
        """Each line has the path of the worker before it; one that nobody ends is told, too. Who listens does not wait for readers."""
        path = os.path.join(self.directory, "socket")
        listener = self.listen(f"unix:{path}")
        pid = self.run_one(f"unix:{path}", remote_steps.tell)
        self.assertEqual(listener.wait(f"this is {pid}"), f"L4/0/L3/0: this is {pid}")
        self.run_one(f"unix:{path}", remote_steps.mutter)
        self.assertEqual(listener.wait("without an end"), "L4/0/L3/0: without an end")
        deaf = subprocess.Popen([REMOTE, "--listen", f"unix:{path}2", "--root", root, "--python", sys.executable],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(deaf.wait, SECONDS)
        self.addCleanup(deaf.kill)
        deaf.stdout.readline()
        self.run_one(f"unix:{path}2", remote_steps.chatter)
        self.assertEqual(self.run_one(f"unix:{path}2", remote_steps.which) > 0, True)
        deaf.send_signal(signal.SIGTERM)
        said = deaf.communicate(timeout=SECONDS)[1]
        self.assertLess(said.count("chatter"), 10000)
        self.assertTrue(said.startswith("L4/0/L3/0: chatter 0\n"), said[:100])
        self.assertEqual(deaf.returncode, 0)

    def test_stale(self):
        """What is left of a socket is replaced; a file is not."""
        path = os.path.join(self.directory, "socket")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        self.listen(f"unix:{path}")
        self.assertTrue(self.run_one(f"unix:{path}"))
        with open(path + "2", "w") as file:
            file.write("mine")
        other = subprocess.run([REMOTE, "--listen", f"unix:{path}2"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(other.returncode, 69)
        self.assertTrue(os.path.exists(path + "2"))

    @unittest.skipIf(os.geteuid() != 0, "only root can be somebody else")
    def test_strange_user(self):
        """Who it is, is what the kernel says, whatever the modes of files are: of who connects and of who listens."""
        path = os.path.join(self.directory, "socket")
        listener = self.listen(f"unix:{path}")
        os.chmod(self.directory, 0o711)
        os.chmod(path, 0o666)
        words = [shutil.which("python3", path="/usr/bin"), "-c", "import socket, sys\none = socket.socket(socket.AF_UNIX)\n"
                 "one.connect(sys.argv[1])\nsys.exit(one.recv(1) != b'')", path]
        self.assertEqual(subprocess.run(words, user=65534, timeout=SECONDS).returncode, 0)
        self.assertIn("of user 65534: only user 0 and root may connect", listener.wait("is dropped"))
        self.assertTrue(self.run_one(f"unix:{path}"))
        os.chmod(self.directory, 0o777)
        trap = os.path.join(self.directory, "trap")
        words[2] = ("import socket, sys\none = socket.socket(socket.AF_UNIX)\none.bind(sys.argv[1])\none.listen()\n"
                    "print(1, flush=True)\nsys.exit(one.accept()[0].recv(1) != b'')")
        with subprocess.Popen([*words[:3], trap], user=65534, stdout=subprocess.PIPE) as stranger:
            stranger.stdout.readline()
            with self.assertRaisesRegex(GLib.Error, "is user 65534, and neither"):
                self.run_one(f"unix:{trap}")
            self.assertEqual(stranger.wait(SECONDS), 0)  # and was told nothing

    def test_sessions(self):
        path = os.path.join(self.directory, "socket")
        listener = self.listen(f"unix:{path}", "--max-sessions=1")
        with socket.socket(socket.AF_UNIX) as held, socket.socket(socket.AF_UNIX) as other:
            held.connect(path)
            other.settimeout(SECONDS)
            other.connect(path)
            refusal = b""
            while more := other.recv(4096):
                refusal += more
            refusal = Gio.DBusMessage.new_from_blob(refusal, Gio.DBusCapabilityFlags.NONE)
            self.assertEqual((refusal.get_reply_serial(), refusal.get_error_name()), (1, "org.libpto.Remote1.Refused"))
            with self.assertRaisesRegex(GLib.Error, r"L4/0/L3/0 \(unix:.*\) can not be started: pto-remote on .*: there are as many sessions as --max-sessions"):
                self.run_one(f"unix:{path}")
        listener.wait("--max-sessions")

    def test_fuzz(self):
        """Bits of messages turned over, by the thousand: the session answers or ends, and its listener goes on."""
        path = os.path.join(self.directory, "socket")
        listener = self.listen(f"unix:{path}")
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        kinds = [("Progress", None, ()), ("Clock", None, ()), ("Cancel", None, ()), ("Trace", "(t)", (8,)), ("Begin", "(at)", ([8, 4096],)),
                 ("Put", "(utay)", (0, 0, b"12345678")), ("Get", "(utt)", (0, 0, 8)), ("Has", "(aay)", ([b"1" * 32],))]
        for _ in range(40):
            data = bytearray()
            for serial, (method, kind, values) in enumerate([("Hello", "(ussa{sv})", (PROTOCOL, "s", "L4/0/L3/5", {}))]
                                                            + dice.choices(kinds, k=50), 1):
                message = Gio.DBusMessage.new_method_call(None, "/", "org.libpto.Remote1", method)
                message.set_serial(serial)
                if kind is not None:
                    message.set_body(GLib.Variant(kind, values))
                blob = bytearray(message.to_blob(Gio.DBusCapabilityFlags.NONE))
                if serial > 1 and dice.randrange(8) == 0:
                    blob[dice.randrange(len(blob))] ^= 1 << dice.randrange(8)
                data += blob
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(SECONDS)
                one.connect(path)
                with contextlib.suppress(ConnectionError):
                    one.sendall(data)
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(65536):
                        pass
        self.assertIsNone(listener.process.poll())
        self.assertTrue(self.run_one(f"unix:{path}"))

    def test_usage(self):
        for arguments, what in ((["--listen", "tls://127.0.0.1:0"], "--certificates"),
                                (["--listen", "tcp://127.0.0.1:0"], "those are tls://host:port and unix:/path"),
                                (["--listen", "unix:relative"], "its path is relative"),
                                (["--listen", "unix:/" + "x" * 200], "its path has 201 bytes, that of a socket has at most 107"),
                                (["--listen", "tls://127.0.0.1:0", "--certificates", self.directory], "ca.pem"),
                                (["--listen", "unix:/nonexistent/x", "--max-sessions=0"], "1 or more"),
                                (["--listen", "tls://127.0.0.1:99999"], '"99999" is no port: 0 to 65535 are'),
                                (["--listen", "unix:/nonexistent/x", "--root=/nonexistent/root"], "--root /nonexistent/root: No such file or directory"),
                                (["--listen", "unix:/nonexistent/x", "--serialized-python"], "--serialized-python wants an interpreter"),
                                (["--listen", "unix:/nonexistent/x", "--certificates=c"], "--certificates is for tls://host:port, and not for unix:/nonexistent/x"),
                                (["--listen", "unix:/nonexistent/x", "--allow=me"], "--allow is for tls://host:port, and not for unix:/nonexistent/x"),
                                (["listen", "unix:/nonexistent/x"], '"listen" is no option'),
                                (["--connect", "tls://127.0.0.1:1"], "--certificates")):
            with self.subTest(arguments):
                done = subprocess.run([REMOTE, *arguments], capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(what, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_interpreter(self):
        """Nobody listens for whom no function would be imported."""
        def script(name, text):
            path = os.path.join(self.directory, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod(path, 0o700)
            return path
        for program, more, what in ((os.path.join(self.directory, "none"), [], "there is no such program"),
                                    (script("bare", f"exec {sys.executable} -S -E -I \"$@\"\n"), [], "can not import libpto: ModuleNotFoundError: No module named 'gi'"),
                                    (script("other", "exit 1\n"), [], "can not import libpto"),
                                    (script("slow", "exec sleep 600\n"), ["--timeout=1"], "it has not imported libpto within 1 s (--timeout)")):
            with self.subTest(program):
                done = subprocess.run([REMOTE, "--listen", f"unix:{self.directory}/socket", "--python", program, *more],
                                      capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual((done.returncode, done.stdout), (69, ""), done.stderr)
                self.assertRegex(done.stderr, f"^pto-remote: --python {re.escape(program)}:? {re.escape(what)}\n$")
        done = subprocess.run([REMOTE, "--version"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, f"pto-remote {Pto.get_major_version()}.{Pto.get_minor_version()}.{Pto.get_micro_version()}\n"))

    def assert_causes(self, address, **choices):
        """What ails a listener that began well is in the error of who connects, and not only on its standard error."""
        steps, python = (os.path.join(self.directory, name) for name in ("steps", "python"))
        os.mkdir(steps)
        with open(python, "w") as file:
            file.write(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
        os.chmod(python, 0o700)
        listener = self.listen(address, "--root", steps, "--python", python, *choices.pop("arguments", ()))
        self.assertTrue(self.run_one(listener.address, **choices))
        os.rmdir(steps)
        with self.assertRaisesRegex(GLib.Error, rf"L4/0/L3/0 \({re.escape(listener.address)}\) can not be started: pto-remote on .*: --root {steps}: No such file"):
            self.run_one(listener.address, **choices)
        os.mkdir(steps)
        with open(python, "w") as file:
            file.write(f"#!/bin/sh\nexec {sys.executable} -S -E -I \"$@\"\n")
        with self.assertRaisesRegex(GLib.Error, "--python .*: ModuleNotFoundError: No module named 'gi'"):
            self.run_one(listener.address, **choices)
        os.unlink(python)
        with self.assertRaisesRegex(GLib.Error, f"--python {python}: No such file"):
            self.run_one(listener.address, **choices)

    def test_causes(self):
        self.assert_causes(f"unix:{self.directory}/socket")

    def test_no_interpreter(self):
        path = os.path.join(self.directory, "socket")
        process = subprocess.Popen([REMOTE, "--listen", f"unix:{path}"], stdout=subprocess.PIPE)
        self.addCleanup(process.wait, SECONDS)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.terminate)
        process.stdout.readline()
        for address in f"unix:{path}", "local:":
            with self.assertRaisesRegex(GLib.Error, '"remote_steps:which" can not be imported: pto-remote on .* was begun without an interpreter \\(--python and --root, the options python and roots\\)'):
                self.run_one(address)

    def test_serialized(self):
        """Its interpreter is that of who listens, and who connects names none."""
        listener = self.listen(f"unix:{self.directory}/socket", "--serialized-python")
        number = 7
        self.assertEqual(self.run_one(listener.address, lambda orch, args, config: args[0].__setitem__(0, number), serialized_python=True), 7)
        with Pto.Worker(level=4) as host, self.assertRaisesRegex(GLib.Error, "the option roots is not for unix:"):
            host.add_remote_worker(listener.address, roots=root)

    def test_another_service(self):
        """That speaks first, or not at all."""
        path = os.path.join(self.directory, "socket")

        def answer(server):
            for words in b"220 one.example ESMTP\r\n", b"":
                one, _ = server.accept()
                with one:
                    one.sendall(words)
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(4096):
                        pass
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            thread = threading.Thread(target=answer, args=(server,))
            thread.start()
            with self.assertRaisesRegex(GLib.Error, rf'who listens at unix:{path} is no pto-remote: it says "220 one.example ESMTP"'):
                self.run_one(f"unix:{path}")
            with self.assertRaisesRegex(GLib.Error, rf'unix:{path} has hung up before it was ready'):
                self.run_one(f"unix:{path}")
            thread.join(SECONDS)

    def test_options(self):
        host = Pto.Worker(level=4)
        for address, choices, what in (("tls://one:1", {}, "in the option certificates"),
                                       ("tls://one", {"certificates": "c"}, "is no address"),
                                       ("tls://-one:1", {"certificates": "c"}, "is no address"),
                                       ("tls://one:1", {"certificates": "c", "roots": "."}, "is not for tls://one:1"),
                                       ("unix:/nonexistent/x", {"python": "python3"}, "is not for unix:/nonexistent/x"),
                                       ("unix:/nonexistent/x", {"certificates": "c"}, "is for tls://host:port"),
                                       ("unix:x", {}, "is no address"), ("local:", {"certificates": "c"}, "is for tls://")):
            with self.subTest(address), self.assertRaisesRegex(GLib.Error, what):
                host.add_remote_worker(address, **choices)
        host.close()


def has_tls():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([PROGRAM, "remote", "certificates", directory], capture_output=True, text=True, timeout=SECONDS)
    return "built without TLS" not in done.stderr


@unittest.skipUnless(has_tls(), "built without TLS")
class Tls(Listening):
    """All of these with one listener, which outlives whoever is refused."""

    test_fuzz = test_unix = test_stale = test_strange_user = test_sessions = test_words = test_usage = test_options = test_interpreter = test_another_service = test_no_interpreter = test_serialized = None

    @classmethod
    def setUpClass(cls):
        cls.all = tempfile.TemporaryDirectory()
        cls.cluster = os.path.join(cls.all.name, "cluster")
        for words in (["localhost", "127.0.0.1"], ["--parent=eve"]):
            subprocess.run([PROGRAM, "remote", "certificates", cls.cluster, *words], check=True, timeout=SECONDS,
                           stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.all.cleanup()

    def of(self, name):
        return os.path.join(self.cluster, name)

    def begin(self, *arguments, name="127.0.0.1"):
        return self.listen("tls://127.0.0.1:0", "--certificates", self.of(name), *arguments)

    def sign(self, subject, purpose, names="DNS:localhost", days=1, authority=None):
        """A directory with a certificate of that authority."""
        out = tempfile.mkdtemp(dir=self.directory)
        authority = authority or self.of("authority")
        with open(os.path.join(out, "ext"), "w") as file:
            file.write(f"extendedKeyUsage={purpose}\nsubjectAltName={names}\n")
        for words in (["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "req.pem",
                       "-subj", subject],
                      ["x509", "-req", "-in", "req.pem", "-CA", f"{authority}/ca.pem", "-CAkey", f"{authority}/key.pem", "-set_serial", "7",
                       "-days", str(days), "-extfile", "ext", "-out", "cert.pem"]):
            subprocess.run(["openssl", *words], cwd=out, check=True, capture_output=True, timeout=SECONDS)
        os.chmod(os.path.join(out, "key.pem"), 0o600)
        shutil.copy(self.of("authority/ca.pem"), os.path.join(out, "ca.pem"))
        return out

    def relay(self, listener, certificates, host="127.0.0.1", before=()):
        """Its relay, and the other end of its standard input and output."""
        ours, theirs = socket.socketpair()
        ours.settimeout(SECONDS)
        process = subprocess.Popen([*before, REMOTE, "--connect", f"tls://{host}:{listener.port}", "--certificates", certificates],
                                   stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.addCleanup(ours.close)
        return process, ours

    def assert_refused(self, listener, certificates, status, said, heard=None, host="127.0.0.1"):
        process, ours = self.relay(listener, certificates, host)
        self.assertEqual(ours.recv(1), b"")
        words = process.communicate(timeout=SECONDS)[1]
        self.assertEqual(process.returncode, status, words)
        self.assertIn(said, words)
        self.assertEqual(words.count("\n"), 1)
        if heard is not None:
            self.assertIn("is dropped: ", listener.wait(heard))

    def hello(self, ours):
        message = Gio.DBusMessage.new_method_call(None, "/", "org.libpto.Remote1", "Hello")
        message.set_serial(1)
        message.set_body(GLib.Variant("(ussa{sv})", (PROTOCOL, "a session", "L4/0/L3/5", {})))
        ours.sendall(bytes(message.to_blob(Gio.DBusCapabilityFlags.NONE)))
        head = b""
        while len(head) < 16:
            more = ours.recv(16 - len(head))
            self.assertTrue(more)
            head += more
        body = b""
        while len(body) < Gio.DBusMessage.bytes_needed(head) - 16:
            body += ours.recv(Gio.DBusMessage.bytes_needed(head) - 16 - len(body))
        reply = Gio.DBusMessage.new_from_blob(head + body, Gio.DBusCapabilityFlags.NONE)
        return reply.get_body().unpack()[3]

    def test_modes(self):
        for directory, _, files in os.walk(self.cluster):
            self.assertEqual(stat.S_IMODE(os.stat(directory).st_mode), 0o700)
            if "key.pem" in files:
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(directory, "key.pem")).st_mode), 0o600)
        self.assertTrue(os.path.exists(self.of("eve/cert.pem")))
        loose = os.path.join(self.directory, "loose")
        shutil.copytree(self.of("127.0.0.1"), loose)
        os.chmod(os.path.join(loose, "key.pem"), 0o640)
        done = subprocess.run([REMOTE, "--listen", "tls://127.0.0.1:0", "--certificates", loose], capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.returncode, 64)
        self.assertIn("chmod 600", done.stderr)

    def test_kept(self):
        """Certificates that are there stay; new ones are of the same authority."""
        with open(self.of("parent/cert.pem")) as file:
            before = file.read()
        subprocess.run([PROGRAM, "remote", "certificates", self.cluster, "other"], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
        with open(self.of("parent/cert.pem")) as file:
            self.assertEqual(file.read(), before)
        subprocess.run(["openssl", "verify", "-CAfile", self.of("authority/ca.pem"), self.of("other/cert.pem")], check=True,
                       stdout=subprocess.DEVNULL, timeout=SECONDS)
        for name in "..", "a/b", "authority", "x" * 65:
            done = subprocess.run([PROGRAM, "remote", "certificates", self.cluster, name], capture_output=True, timeout=SECONDS)
            self.assertEqual(done.returncode, 2, name)

    def test_not_kept(self):
        """What is there and is of no use is not told as if it were."""
        cluster = os.path.join(self.directory, "cluster")

        def make(*words):
            done = subprocess.run([PROGRAM, "remote", "certificates", *words], capture_output=True, text=True, timeout=SECONDS,
                                  env=dict(os.environ, LC_ALL="C.UTF-8"))
            return done.returncode, done.stderr
        self.assertEqual(make(cluster, "one"), (0, ""))
        self.assertEqual(make(cluster, "parent")[0], 2)
        self.assertIn("/parent is there already, and is not for one who listens", make(cluster, "parent")[1])
        self.assertIn("/one is there already, and is not for one who submits", make(cluster, "--parent=one")[1])
        for name in "authority", "one":
            self.assertIn(f"{cluster}/{name} is one of the directories that were made", make(f"{cluster}/{name}", "two")[1])
        for days in 0, -1, 36501:
            self.assertEqual(make(cluster, f"--days={days}", "two"), (2, f"pto: --days={days}: a number from 1 to 36500 is wanted\n"))
        shutil.copy(os.path.join(self.sign("/OU=worker/CN=one", "serverAuth", days=-1, authority=f"{cluster}/authority"), "cert.pem"), f"{cluster}/one")
        self.assertRegex(make(cluster, "one")[1], rf"^pto: {cluster}/one/cert.pem: .*expired.* Who removes its directory gets another\n$")
        shutil.copy(self.of("localhost/cert.pem"), f"{cluster}/one")
        self.assertRegex(make(cluster, "one")[1], rf"^pto: {cluster}/one/cert.pem: The certificate is NOT trusted\. .*issuer is unknown")
        open(f"{cluster}/authority/key.pem", "w").close()
        self.assertIn(f"{cluster}/authority/key.pem: ", make(cluster, "two")[1])

    def test_task(self):
        listener = self.begin()
        address = f"tls://127.0.0.1:{listener.port}"
        self.assertNotEqual(self.run_one(address, certificates=self.of("parent")), 0)
        listener.wait('"parent" at 127.0.0.1')

    def test_bulk(self):
        """More than all buffers hold, both ways at once."""
        listener = self.begin()
        y, x = (Pto.Buffer.array(1 << 19, "i8") for _ in range(2))
        x[:] = np.arange(1 << 19)
        host = Pto.Worker(level=4)
        self.addCleanup(host.close)
        host.add_remote_worker(listener.address, certificates=self.of("parent"), sub_workers=1).register(remote_steps.double)
        handle = host.register(remote_steps.layer)
        for _ in range(3):
            y[:] = 0
            host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write_existing()]))
            self.assertTrue((y == 2 * x).all())

    def test_memory(self):
        """What a program has there is copied from one worker to another, and named by a token, which is of no use to the next program."""
        listener = self.begin()
        size = (3 << 20) + 5
        data = np.random.default_rng(3).integers(0, 256, size, "u1").tobytes()
        tokens = []
        for _ in range(2):
            host = Pto.Worker(level=4)
            self.addCleanup(host.close)
            one, other = (host.add_remote_worker(listener.address, certificates=self.of("parent")) for _ in range(2))
            a, b = one.alloc_buffer(size), other.alloc_buffer(size)
            a.write(0, GLib.Bytes.new(data))
            a.copy_to(b)
            b.copy_to(b, 0, 1, size - 1)
            self.assertEqual(b.read(0, size).get_data(), data[:1] + data[:-1])
            tokens.append(a.export(1, 7))
            self.assertEqual(one.import_buffer(tokens[-1]).read(0, 7).get_data(), data[1:8])
            with self.assertRaisesRegex(GLib.Error, "memory of L4/0/L3/0, which L4/0/L3/1 does not share"):
                other.import_buffer(tokens[-1])
            for token in tokens[:-1]:
                with self.assertRaisesRegex(GLib.Error, "memory of L4/0/L3/0 of another program, or of another tree of this one"):
                    one.import_buffer(token)

    def test_refused(self):
        """By whoever is connected to: who they are, what for, by whom they were signed, and until when."""
        listener = self.begin()
        stranger = tempfile.mkdtemp(dir=self.directory)
        subprocess.run([PROGRAM, "remote", "certificates", stranger, "127.0.0.1"], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
        unknown = self.sign("/OU=parent/CN=mallory", "clientAuth", authority=os.path.join(stranger, "authority"))
        self.assert_refused(listener, unknown, 77, "the other end refuses", "issuer is unknown")
        self.assert_refused(listener, self.of("localhost"), 77, "the other end refuses", "its certificate: ")
        worker = self.sign("/OU=worker/CN=mallory", "clientAuth")
        self.assert_refused(listener, worker, 77, "the other end refuses", '"mallory" has the role "worker", not "parent"')
        nobody = self.sign("/CN=nobody", "clientAuth")
        self.assert_refused(listener, nobody, 77, "the other end refuses", '"nobody" has the role ""')
        expired = self.sign("/OU=parent/CN=old", "clientAuth", days=-1)
        self.assert_refused(listener, expired, 64, "it has expired")
        self.assertTrue(self.run_one(listener.address, certificates=self.of("parent")))
        self.assertEqual(len([line for line in listener.said if "is dropped" in line]), 4, listener.said)

    def test_wrong_name(self):
        """By who connects: this is another machine, or one that only submits."""
        listener = self.begin(name="localhost")
        self.assert_refused(listener, self.of("parent"), 77, "its certificate: ")
        with self.serve(self.sign("/OU=parent/CN=mallory", "serverAuth", names="IP:127.0.0.1")) as listener:
            self.assert_refused(listener, self.of("parent"), 77, '"mallory" has the role "parent", not "worker"')

    @contextlib.contextmanager
    def serve(self, certificates):
        """Somebody who listens with certificates that pto-remote would not."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{certificates}/cert.pem", f"{certificates}/key.pem")
        context.load_verify_locations(self.of("authority/ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED

        def accept(server):
            one, _ = server.accept()
            with contextlib.suppress(OSError), one, context.wrap_socket(one, server_side=True) as other:
                other.recv(1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=accept, args=(server,))
            thread.start()
            yield types.SimpleNamespace(port=server.getsockname()[1])
            thread.join(SECONDS)

    def test_causes(self):
        self.assert_causes("tls://127.0.0.1:0", arguments=("--certificates", self.of("127.0.0.1")), certificates=self.of("parent"))

    def test_full(self):
        listener = self.begin("--max-sessions=1")
        host = Pto.Worker(level=4)
        self.addCleanup(host.close)
        host.add_remote_worker(listener.address, certificates=self.of("parent"))
        host.start()
        with self.assertRaisesRegex(GLib.Error, "can not be started: pto-remote on .*: there are as many sessions as --max-sessions says"):
            self.run_one(listener.address, certificates=self.of("parent"))

    def test_own_certificates(self):
        """Which are not what this end wants: who listens does not begin, and who connects has it in the error."""
        stranger = tempfile.mkdtemp(dir=self.directory)
        subprocess.run([PROGRAM, "remote", "certificates", stranger, "127.0.0.1"], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
        mixed = os.path.join(stranger, "mixed")
        shutil.copytree(os.path.join(stranger, "127.0.0.1"), mixed)
        shutil.copy(self.of("authority/ca.pem"), mixed)
        for certificates, what in ((self.of("parent"), '/parent/cert.pem: it has the role "parent", and who listens has the role "worker"'),
                                   (mixed, "/mixed/cert.pem: by the ca.pem beside it: The certificate is NOT trusted"),
                                   (self.cluster, "--certificates names one of the directories in it")):
            done = subprocess.run([REMOTE, "--listen", "tls://127.0.0.1:0", "--certificates", certificates], capture_output=True, text=True,
                                  timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertIn(what, done.stderr)
        listener = self.begin()
        for certificates, what in ((self.of("localhost"), '/localhost/cert.pem: it has the role "worker", and who connects has the role "parent"'),
                                   (os.path.join(stranger, "parent"), "its certificate: The certificate is NOT trusted"),
                                   (self.cluster, "--certificates names one of the directories in it")):
            with self.assertRaisesRegex(GLib.Error, rf'has exited with status \d+ before it was ready\. Its last words: "pto-remote: tls://127.*{what}'):
                self.run_one(listener.address, certificates=certificates)

    def test_allow(self):
        listener = self.begin("--allow=eve")
        self.assert_refused(listener, self.of("parent"), 77, "the other end refuses", '"parent" is none of those that --allow names')
        self.assertTrue(self.run_one(listener.address, certificates=self.of("eve")))

    def connect(self, listener, certificates=None, newest=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.of("authority/ca.pem"))
        if certificates is not None:
            context.load_cert_chain(f"{certificates}/cert.pem", f"{certificates}/key.pem")
        if newest is not None:
            context.maximum_version = newest
        return context.wrap_socket(socket.create_connection(("127.0.0.1", listener.port), SECONDS))

    def test_strangers(self):
        """No certificate, an older TLS, one that has expired, garbage before and after: one line each."""
        listener = self.begin()
        with self.assertRaises(ssl.SSLError), self.connect(listener) as one:
            one.recv(1)
        listener.wait("it has shown no certificate")
        with self.assertRaises(ssl.SSLError):
            self.connect(listener, self.of("parent"), ssl.TLSVersion.TLSv1_2)
        with self.assertRaisesRegex(ssl.SSLError, "expired"), \
                self.connect(listener, self.sign("/OU=parent/CN=old", "clientAuth", days=-1)) as one:
            one.recv(1)
        listener.wait("expired")
        before = len(listener.said)
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        for _ in range(30):
            with socket.create_connection(("127.0.0.1", listener.port), SECONDS) as one, contextlib.suppress(OSError):
                # Some of them look like the first record of a handshake.
                one.sendall(dice.choice([b"", b"\x16\x03\x01\x00\x20\x01\x00\x00\x1c"]) + dice.randbytes(dice.randrange(200)))
                one.shutdown(socket.SHUT_WR)
                while one.recv(4096):
                    pass
        with listener.more:
            self.assertTrue(listener.more.wait_for(lambda: len(listener.said) >= before + 30, SECONDS))
        with self.connect(listener, self.of("parent")) as one, contextlib.suppress(OSError):
            one.sendall(dice.randbytes(4096))
            self.assertEqual(one.recv(1), b"")
        listener.wait("what came is no message")
        self.assertTrue(self.run_one(listener.address, certificates=self.of("parent")))
        self.assertEqual(len([line for line in listener.said if "is dropped" in line]), 33, listener.said)

    def test_wrong_messages(self):
        """Messages as they should be, and none that should come: each is refused, or ends its connection with one line at most."""
        listener = self.begin()
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        numbers = 0, 1, 7, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 64) - 1
        blobs = b"", b"\1" * 32, b"\0" * 48, bytes(range(256))
        right = {"Hello": "(ussa{sv})", "Has": "(aay)", "Content": "(ayayb)", "Register": "(ayayaybau)", "Commit": "(aay)", "Unregister": "(ay)",
                 "Begin": "(ata(tt))", "Put": "(ttt)", "Run": "(ay)", "Recall": "()", "Get": "(ttt)", "Copy": "(ttttt)", "Trace": "(t)", "Clock": "()",
                 "Cancel": "()", "Progress": "()", "Nothing": "()"}

        def value(kind):
            if kind.startswith("a{"):
                return {dice.choice(("level", "devices", "x")): GLib.Variant(*dice.choice((("u", 3), ("s", ""), ("t", numbers[-1]))))
                        for _ in range(dice.randrange(3))}
            if kind == "ay":
                return dice.choice(blobs)
            if kind.startswith("a"):
                return [value(kind[1:]) for _ in range(dice.randrange(3))]
            if kind.startswith("("):
                return tuple(value(part) for part in parts(kind[1:-1]))
            return {"u": lambda: dice.choice(numbers) & 0xffffffff, "t": lambda: dice.choice(numbers), "s": lambda: dice.choice(("", "x", "L4")),
                    "b": lambda: dice.random() < 0.5}[kind]()

        def parts(kinds):
            while kinds:
                end = next(end for end in range(1, len(kinds) + 1) if GLib.variant_type_string_is_valid(kinds[:end]))
                yield kinds[:end]
                kinds = kinds[end:]

        def message(serial, method, signature):
            made = Gio.DBusMessage.new_method_call(None, "/", dice.choice(("org.libpto.Remote1",) * 5 + ("org.libpto.Remote2",)), method)
            made.set_serial(serial)
            if signature != "()":
                made.set_body(GLib.Variant(signature, value(signature)))
            return bytes(made.to_blob(Gio.DBusCapabilityFlags.NONE))

        for _ in range(12):
            sent = []
            if dice.random() < 0.7:
                hello = Gio.DBusMessage.new_method_call(None, "/", "org.libpto.Remote1", "Hello")
                hello.set_serial(1)
                hello.set_body(GLib.Variant("(ussa{sv})", (PROTOCOL, "a session", "L4/0/L3/5", {})))
                sent.append(bytes(hello.to_blob(Gio.DBusCapabilityFlags.NONE)))
            for serial in range(2, 2 + dice.randrange(30)):
                method, signature = dice.choice(list(right.items()))
                if dice.random() < 0.3:
                    signature = dice.choice(list(right.values()))
                sent.append(message(serial, method, signature))
            with self.connect(listener, self.of("parent")) as one, contextlib.suppress(OSError):
                one.sendall(b"".join(sent))
                one.unwrap()
                while one.recv(65536):
                    pass
        self.assertTrue(self.run_one(listener.address, certificates=self.of("parent")))
        self.assertLessEqual(len([line for line in listener.said if "is dropped" in line]), 12, listener.said)
        self.assertIsNone(listener.process.poll())

    def test_half_open(self):
        """Who says nothing is waited for so long, and others come in when they have gone."""
        listener = self.begin("--timeout=1", "--max-handshakes=2")
        silent = [socket.create_connection(("127.0.0.1", listener.port), SECONDS) for _ in range(3)]
        for one in silent:
            self.addCleanup(one.close)
        self.assertTrue(self.run_one(listener.address, certificates=self.of("parent")))
        listener.wait("--max-handshakes")
        listener.wait("no end of the handshake within 1 s")

    def test_ends(self):
        """The end of a session, of who submits, of its relay, of the listener: what hangs on them ends, and nobody else."""
        listener = self.begin()
        first, ours = self.relay(listener, self.of("parent"))
        other, others = self.relay(listener, self.of("parent"))
        session, another = self.hello(ours), self.hello(others)
        os.kill(session, signal.SIGKILL)
        self.assertEqual(ours.recv(1), b"")
        first.communicate(timeout=SECONDS)
        self.assertTrue(lives(another))
        third, thirds = self.relay(listener, self.of("parent"))
        gone = self.hello(thirds)
        pidfd = os.pidfd_open(gone)
        self.addCleanup(os.close, pidfd)
        third.kill()
        third.communicate(timeout=SECONDS)
        self.wait_end(pidfd)
        fourth, fourths = self.relay(listener, self.of("parent"))
        gone = self.hello(fourths)
        fourth_fd = os.pidfd_open(gone)
        self.addCleanup(os.close, fourth_fd)
        fourths.close()
        self.wait_end(fourth_fd)
        fourth.communicate(timeout=SECONDS)
        self.assertTrue(lives(another))
        listener.process.send_signal(signal.SIGTERM)
        self.assertEqual(listener.process.wait(SECONDS), 0)
        self.assertFalse(lives(another))  # before the listener
        self.assertEqual(others.recv(1), b"")
        other.communicate(timeout=SECONDS)

    def wait_end(self, pidfd):
        self.assertEqual(select.select([pidfd], [], [], SECONDS)[0], [pidfd])


NAMES = [f"pto{os.getpid()}{end}" for end in "ab"]


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=SECONDS)


def why_no_namespaces():
    if shutil.which("ip") is None:
        return "no ip (install iproute2)"
    done = ip("netns", "add", NAMES[0], check=False)
    if done.returncode == 0:  # nor can they be entered where / is no file system of its own
        done = ip("-n", NAMES[0], "link", "show", check=False)
    ip("netns", "del", NAMES[0], check=False)
    return done.stderr.strip() if done.returncode != 0 else None


@unittest.skipIf(why_no_namespaces() is not None, f"network namespaces: {why_no_namespaces()}")
class Links(Tls):
    """Two machines, as far as the network knows, and the link between them."""

    for name in [name for name in dir(Tls) if name.startswith("test_")]:
        locals()[name] = None

    def setUp(self):
        super().setUp()
        for name in NAMES:
            ip("netns", "add", name)
            self.addCleanup(ip, "netns", "del", name)
        ip("link", "add", "veth", "netns", NAMES[0], "type", "veth", "peer", "veth", "netns", NAMES[1])
        for name, number in zip(NAMES, ("10.99.0.1/24", "10.99.0.2/24")):
            ip("-n", name, "address", "add", number, "dev", "veth")
            ip("-n", name, "link", "set", "veth", "up")
        subprocess.run([PROGRAM, "remote", "certificates", self.cluster, "10.99.0.1"], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)

    def link(self, state):
        ip("-n", NAMES[0], "link", "set", "veth", state)

    def begin(self, *arguments):
        before = ["ip", "netns", "exec", NAMES[0]]
        return self.listen("tls://10.99.0.1:0", "--certificates", self.of("10.99.0.1"), *arguments, before=before)

    def listen(self, address, *arguments, before):
        listener = Listener(address, *arguments, before=before)
        self.addCleanup(listener.end)
        return listener

    def relay(self, listener):
        return super().relay(listener, self.of("parent"), "10.99.0.1", before=["ip", "netns", "exec", NAMES[1]])

    def test_up_again(self):
        """What was sent meanwhile arrives: nobody has ended."""
        process, ours = self.relay(self.begin())
        self.hello(ours)
        self.link("down")
        message = Gio.DBusMessage.new_method_call(None, "/", "org.libpto.Remote1", "Progress")
        message.set_serial(2)
        ours.sendall(bytes(message.to_blob(Gio.DBusCapabilityFlags.NONE)))
        self.link("up")
        head = ours.recv(16, socket.MSG_WAITALL)
        reply = Gio.DBusMessage.new_from_blob(head + ours.recv(Gio.DBusMessage.bytes_needed(head) - 16, socket.MSG_WAITALL),
                                              Gio.DBusCapabilityFlags.NONE)
        self.assertEqual(reply.get_reply_serial(), 2)
        ours.close()
        process.communicate(timeout=SECONDS)

    def shape(self):
        """Both directions: 20 Mbit/s, and 20 ms where the kernel knows how to delay."""
        for name in NAMES:
            for words in ("netem", "delay", "20ms", "rate", "20mbit"), ("tbf", "rate", "20mbit", "burst", "32kbit", "latency", "400ms"):
                done = subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "veth", "root", *words],
                                      capture_output=True, text=True, timeout=SECONDS)
                if done.returncode == 0:
                    break
                print(f"# tc {words[0]}: {done.stderr.strip()}")
            else:
                self.skipTest(f"tc: {done.stderr.strip()}")

    @unittest.skipIf(np is None, "no numpy")
    @unittest.skipIf(shutil.which("tc") is None, "no tc (install iproute2)")
    def test_slow(self):
        """Over a link that is slow and far, what is computed is right, and nobody is lost; when it is cut, what may be is run again."""
        listener = self.begin()
        self.shape()
        program = os.path.join(self.directory, "there")
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\nexec ip netns exec {NAMES[1]} {REMOTE} \"$@\"\n")
        os.chmod(program, 0o700)
        host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(host.close)
        far = host.add_remote_worker(f"tls://10.99.0.1:{listener.port}", certificates=self.of("parent"), program=program)
        host.add_remote_worker("local:", roots=root, python=sys.executable)
        for name, value in ("ping", 100), ("suspect", 1000), ("lease", 8000):
            far.set_parameter(f"remote-{name}", value)
        copy = host.register(remote_steps.copy, idempotent=True)
        host.start()
        x, y = (Pto.Buffer.array(3 << 16, "i8") for _ in range(2))  # 1.5 MiB: more than half a second each way
        x[:] = range(len(x))
        host.run(lambda orch: orch.submit_next_level(copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(y).write()], worker=0))
        self.assertTrue((x == y).all())
        self.assertEqual((host.doing["children"][0]["lives"], host.statistics.get_retried()), (1, 0))
        y[:] = 7
        z = Pto.Buffer.array(len(x), "i8")
        run = threading.Thread(target=lambda: host.run(
            lambda orch: [orch.submit_next_level(copy, [Pto.Tensor.of(x).read(), Pto.Tensor.of(part).write()]) for part in (y, z)]))
        before = host.doing["children"][0]["bytes_sent"]
        run.start()
        end = time.monotonic() + SECONDS
        while host.doing["children"][0]["bytes_sent"] == before and host.doing["children"][0].get("kernel") != "copy":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        self.link("down")
        run.join(SECONDS)
        self.assertFalse(run.is_alive())
        self.assertTrue((x == y).all() and (x == z).all())
        self.assertEqual(host.statistics.get_retried(), 1)

    def test_silent(self):
        """A machine that is not there any more has no worker after the time, and says nothing of it."""
        listener = self.begin("--timeout=1")
        process, ours = self.relay(listener)
        session = self.hello(ours)
        pidfd = os.pidfd_open(session)
        self.addCleanup(os.close, pidfd)
        self.link("down")
        self.wait_end(pidfd)
        self.assertIn("the connection is lost", listener.wait("is dropped"))
        self.assertIsNone(process.poll())  # its own time is longer
        ours.close()
        process.kill()
        process.communicate(timeout=SECONDS)


tap.main()
