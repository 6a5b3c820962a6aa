# test_remote_peer.py: does pto-remote live with, or end decently after, whatever comes?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The other end is played here: messages of D-Bus, made by GIO, on its standard input and output.
import contextlib
import hashlib
import os
import random
import struct
import subprocess
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402, F401, it says which library is meant

import tap  # noqa: E402
from remote_protocol import PROTOCOL  # noqa: E402

INTERFACE = "org.libpto.Remote1"
READ, WRITE = 1, 2
INT64 = 6
NONE = GLib.Variant("a{sv}", {})


def pad(data):
    return data + bytes(-len(data) % 8)


def pack_task(pieces=(), tensors=(), digest=b"\1" * 32, config=bytes(30), scalars=(), kinds=b"", identity=0):
    """One of a Run (pto/remote/wire/task-format.h)."""
    data = struct.pack("<32sQ6I", digest, identity, len(config), len(pieces), len(tensors), len(scalars), len(kinds), 0) + pad(config)
    for block, offset, size, access, spans in pieces:
        data += struct.pack("<3Q2I", block, offset, size, access, len(spans))
        for at, contents in spans:
            data += struct.pack("<2Q", at, len(contents)) + pad(contents)
    for piece, offset, dtype, shape in tensors:
        data += struct.pack("<Q8I", offset, *(list(shape) + [0] * 5)[:5], len(shape), dtype, piece)
    return data + struct.pack(f"<{len(scalars)}Q", *scalars) + pad(kinds)


def pack_run(*tasks, begun=(), dropped=(), record=0, n_tasks=None):
    return (struct.pack("<4I", len(tasks) if n_tasks is None else n_tasks, len(dropped), len(begun), record)
            + struct.pack(f"<{len(dropped)}Q", *dropped) + b"".join(struct.pack("<2Q", *block) for block in begun) + b"".join(tasks))


def unpack_done(data, *written):
    """What became of each task: status, text, and the contents of what was written, so many bytes of each."""
    at = 16
    n, ns = struct.unpack_from("<2Q", data)
    assert n == len(written)
    last = 0
    for sizes in written:
        began, ended, status, code, domain, text, detail, has_written = struct.unpack_from("<2QIi4I", data, at)
        assert last <= began <= ended <= ns, (last, began, ended, ns)
        last = ended
        at += 40
        parts = []
        for size in (domain, text, detail, *(sizes if has_written else ())):
            parts.append(data[at:at + size])
            at += size + -size % 8
        yield status, parts[1].decode(), parts[3:] if has_written else None
    assert at == len(data)


class Peer:
    def __init__(self, *arguments):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([os.environ["PTO_REMOTE"], *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.serial = 0

    def blob(self, method, signature="()", *values, reply=True):
        self.serial += 1
        message = Gio.DBusMessage.new_method_call(None, "/", INTERFACE, method)
        message.set_serial(self.serial)
        if signature != "()":
            message.set_body(GLib.Variant(signature, values))
        if not reply:
            message.set_flags(Gio.DBusMessageFlags.NO_REPLY_EXPECTED)
        return bytes(message.to_blob(Gio.DBusCapabilityFlags.NONE))

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self):
        head = self.process.stdout.read(16)
        if len(head) < 16:
            return None
        length = Gio.DBusMessage.bytes_needed(head)
        return Gio.DBusMessage.new_from_blob(head + self.process.stdout.read(length - 16), Gio.DBusCapabilityFlags.NONE)

    def put(self, block, offset, data, reply=False):
        """A part and what it says of itself."""
        return self.blob("Put", "(ttt)", block, offset, len(data), reply=reply) + data

    def get(self, block, offset, size):
        assert self.call("Get", "(ttt)", block, offset, size) == (size,)
        return self.process.stdout.read(size)

    def call(self, *what):
        """The body of its answer, or the text of a refusal."""
        return self.ask(self.blob(*what))

    def ask(self, data):
        self.send(data)
        reply = self.receive()
        assert reply is not None, "the connection has ended"
        assert reply.get_reply_serial() == self.serial
        body = reply.get_body().unpack() if reply.get_body() is not None else ()
        return body[0] if reply.get_message_type() == Gio.DBusMessageType.ERROR else body

    def hello(self, **options):
        return self.call("Hello", "(ussa{sv})", PROTOCOL, "a session", "L4/0/L3/5", options)

    def end(self):
        """Its exit status, and what it said."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        status = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()
        self.errors.close()
        return status, said


class RemotePeer(unittest.TestCase):
    def begin(self, **options):
        peer = Peer()
        answer = peer.hello(**options)
        self.assertEqual(answer[0], PROTOCOL)
        self.assertEqual(answer[3], peer.process.pid)
        return peer

    def test_close(self):
        peer = self.begin()
        self.assertEqual(peer.call("Close"), ())
        self.assertEqual(peer.end(), (0, ""))

    def test_gone(self):
        """Who is not there any more needs no worker."""
        self.assertEqual(self.begin().end(), (69, ""))

    def test_other_version(self):
        peer = Peer()
        self.assertEqual(peer.call("Hello", "(ussa{sv})", PROTOCOL + 1, "s", "p", {})[0], PROTOCOL)
        # It is no worker then, whatever else it is asked.
        with contextlib.suppress(BrokenPipeError):
            peer.send(peer.blob("Run", "(ay)", pack_run(pack_task())) + peer.blob("Close"))
        self.assertIsNone(peer.receive())
        self.assertEqual(peer.end(), (0, ""))

    def test_options(self):
        for options, what in ({"level": GLib.Variant("u", 2)}, "level 2 is no host"), \
                             ({"sub-workers": GLib.Variant("u", 1 << 30)}, "are too many"), \
                             ({"platform": GLib.Variant("s", "moon")}, "moon"), \
                             ({"parameters": GLib.Variant("a{ss}", {"arena": "-3"})}, "arena"), \
                             ({"parameters": GLib.Variant("a{ss}", {"nothing": "3"})}, 'no parameter "nothing"'):
            with self.subTest(what):
                peer = Peer()
                self.assertIn(what, peer.hello(**options))
                status, said = peer.end()
                self.assertEqual(status, 69)
                self.assertIn(what, said)

    def test_no_messages(self):
        """Garbage, a length that nobody has room for, methods and types that there are not: one line, and an end."""
        peer = Peer()
        blob = bytearray(peer.blob("Progress"))
        huge = bytearray(blob)
        huge[4:8] = struct.pack("<I", 5 << 20)
        for what, said in (b"\0" * 64, "what came is no message"), (bytes(huge), "it is too long"), \
                          (peer.blob("Nothing"), 'a message "Nothing" () is none of'), \
                          (peer.blob("Put", "(ss)", "a", "b"), 'a message "Put" (ss) is none of'), \
                          (peer.blob("Hello", "(s)", "a"), "is none of"):
            for after_hello in False, True:
                with self.subTest(said=said, after_hello=after_hello):
                    other = self.begin() if after_hello else Peer()
                    other.send(what)
                    self.assertIsNone(other.receive())
                    status, words = other.end()
                    self.assertEqual(status, 69)
                    self.assertIn(said, words)
                    self.assertEqual(words.count("\n"), 1)
        peer.end()

    def test_order(self):
        peer = Peer()
        peer.send(peer.blob("Run", "(ay)", pack_run(pack_task())))
        self.assertIsNone(peer.receive())
        self.assertIn("Hello comes first", peer.end()[1])
        peer = self.begin()
        self.assertIn("comes first, and once", peer.hello())
        peer.end()

    def run_nothing(self, peer, begun=(), pieces=(), tensors=(), dropped=(), **task):
        return peer.call("Run", "(ay)", pack_run(pack_task(pieces, tensors, **task), begun=begun, dropped=dropped))

    def test_memory(self):
        """What is said of memory has to be true."""
        peer = self.begin()
        eight = bytes(range(8))
        whole = [(1, 0, 8, READ, [(0, eight)])]
        for begun, pieces, tensors, what in (
                ([], whole, [], "of memory number 1 are not there"),
                ([(1, 8)], [(1, 0, 16, READ, [])], [], "of memory number 1 are not there"),
                ([(1, 8)], [(1, 1 << 63, 8, READ, [])], [], "of memory number 1 are not there"),
                ([(1, 8)], [(1, 0, 8, READ, [(1, eight)])], [], "of memory number 1 are not there"),
                ([(1, 8)], [(1, 0, 8, READ, [((1 << 64) - 1, eight)])], [], "of memory number 1 are not there"),
                ([(1, 8)], whole, [(1, 0, INT64, [1])], "are not memory of the task"),
                ([(1, 8)], whole, [(0, 1, INT64, [1])], "are not memory of the task"),
                ([(1, 8)], whole, [(0, 1 << 63, INT64, [1])], "are not memory of the task"),
                ([(1, 8)], whole, [(0, 0, INT64, [1 << 31, 1 << 31, 1 << 31])], "are not memory of the task"),
                ([(1, 8)], whole, [(0, 0, 99, [1])], "argument 0 is no tensor"),
                ([(1, 8)], whole, [(0, 0, INT64, [1] * 6)], "argument 0 is no tensor"),
                ([(1, 8), (1, 8)], [], [], "memory number 1 is there already"),
                ([(1, 8), (2, 1 << 62)], [], [], "has no room for"),
                ([(n, 8) for n in range(1, 5000)], [], [], "more than 4096")):
            with self.subTest(what, begun=begun[:3], pieces=pieces):
                self.assertIn(what, self.run_nothing(peer, begun, pieces, tensors, dropped=[1]))
        # All of what is begun, or none.
        self.assertIn("of memory number 1 are not there", peer.call("Get", "(ttt)", 1, 0, 8))
        self.assertIn("as many kinds as scalars", self.run_nothing(peer, kinds=b"\0\0", scalars=[1]))
        self.assertIn("are not there", peer.ask(peer.put(3, 0, b"x", reply=True)))
        self.assertEqual(peer.call("Begin", "(ata(tt))", [77], [(5, 8)]), ())  # of what is not there it is nothing
        self.assertEqual(peer.ask(peer.put(5, 4, b"abcd", reply=True)), ())
        self.assertIn("are not there", peer.ask(peer.put(5, 5, b"abcd", reply=True)))
        self.assertIn("are not there", peer.ask(peer.put(5, (1 << 64) - 1, b"abcd", reply=True)))
        self.assertEqual(peer.get(5, 0, 8), b"\0\0\0\0abcd")
        self.assertIn("are not there", peer.call("Get", "(ttt)", 5, 0, 1 << 40))
        # Both ranges of a copy have to be there, or nothing is copied; they may overlap.
        self.assertEqual(peer.call("Begin", "(ata(tt))", [], [(8, 16)]), ())
        self.assertEqual(peer.call("Copy", "(ttttt)", 5, 4, 8, 1, 4), ())
        self.assertEqual(peer.call("Copy", "(ttttt)", 8, 1, 8, 3, 4), ())
        self.assertEqual(peer.call("Copy", "(ttttt)", 5, 8, 8, 16, 0), ())
        for of in ((4, 0, 8, 0, 1), (5, 0, 4, 0, 1), (5, 1, 8, 0, 8), (8, 0, 5, 1, 8), (5, (1 << 64) - 1, 8, 0, 2), (5, 0, 8, (1 << 64) - 1, 2),
                   (8, 0, 8, 0, (1 << 64) - 1)):
            self.assertIn("are not there", peer.call("Copy", "(ttttt)", *of))
        self.assertEqual(peer.get(8, 0, 16), b"\0ababcd" + bytes(9))
        # What was put wrongly keeps the next task from beginning, and no other.
        peer.send(peer.put(7, 0, b"abcd"))
        self.assertIn("memory number 7 are not there", self.run_nothing(peer, [(6, 8)], [(6, 0, 8, READ, [(0, eight)])]))
        # And memory is there for what is well; it stays, and what is only written begins as zeros.
        done, = self.run_nothing(peer, [], [(5, 0, 4, WRITE, []), (5, 4, 4, READ, [(5, b"B")])])
        (status, text, written), = unpack_done(bytes(done), ())
        self.assertIn("nothing with the digest 0101", text)
        self.assertNotEqual(status, 0)
        self.assertIsNone(written)
        self.assertEqual(peer.get(5, 0, 8), b"\0\0\0\0aBcd")
        self.assertEqual(peer.call("Begin", "(ata(tt))", [5], []), ())
        self.assertIn("memory number 5 are not there", peer.call("Get", "(ttt)", 5, 0, 1))
        self.assertEqual(peer.call("Close"), ())
        self.assertEqual(peer.end(), (0, ""))

    def test_several(self):
        """Each comes to something of its own, in order; one that is cut ends the message, and is refused."""
        peer = self.begin()
        tasks = [pack_task([(1, 8 * i, 8, READ | WRITE, [(8 * i, bytes([i] * 8))])], [(0, 0, INT64, [1])], digest=bytes([i] * 32))
                 for i in range(5)]
        done, = peer.call("Run", "(ay)", pack_run(*tasks, begun=[(1, 40)]))
        for i, (status, text, written) in enumerate(unpack_done(bytes(done), *[[8]] * 5)):
            self.assertIn(f"nothing with the digest 0{i}0{i}", text)
            self.assertNotEqual(status, 0)
            self.assertIsNone(written)
        self.assertEqual(peer.get(1, 0, 40), b"".join(bytes([i] * 8) for i in range(5)))
        whole = pack_run(*tasks)
        for size in range(0, len(whole), 4):
            self.assertIn("only a part has arrived", peer.call("Run", "(ay)", whole[:size]), size)
        self.assertIn("only a part has arrived", peer.call("Run", "(ay)", pack_run(*tasks, n_tasks=6)))
        for at in range(0, len(whole), 4):  # a count or a size of nearly all that there can be
            peer.call("Run", "(ay)", whole[:at] + b"\xf0\xff\xff\xff" + whole[at + 4:])
        self.assertEqual(len(peer.call("Run", "(ay)", pack_run())[0]), 16)
        self.assertEqual(peer.call("Recall"), (1,))  # and so nothing is recalled that there is
        self.assertEqual(list(unpack_done(bytes(peer.call("Run", "(ay)", whole)[0]), *[[8]] * 5))[0][0] != 0, True)
        self.assertEqual(peer.call("Close"), ())
        self.assertEqual(peer.end(), (0, ""))

    def test_long_part(self):
        """More than may follow a message: where the next one begins is not believed, and it ends."""
        peer = self.begin()
        peer.send(peer.blob("Put", "(ttt)", 0, 0, (1 << 20) + 1))
        self.assertIsNone(peer.receive())
        status, said = peer.end()
        self.assertEqual(status, 69)
        self.assertIn("no more than 1048576 follow a message", said)

    def test_contents(self):
        """What is sent has to be what it is said to be; what is registered, too."""
        peer = self.begin()
        data = os.urandom(1000)
        digest = hashlib.sha256(data).digest()
        self.assertEqual(peer.call("Has", "(aay)", [digest, b"short"]), ([False, False],))
        self.assertIn("do not hash", peer.call("Content", "(ayayb)", digest, b"other", True))
        self.assertIn("a digest has", peer.call("Content", "(ayayb)", b"", b"", True))
        self.assertEqual(peer.call("Content", "(ayayb)", digest, data[:400], False), ())
        self.assertIn("parts of two", peer.call("Content", "(ayayb)", b"\1" * 32, data[400:], True))
        self.assertEqual(peer.call("Content", "(ayayb)", digest, data[400:], True), ())
        self.assertEqual(peer.call("Has", "(aay)", [digest]), ([True],))
        for descriptor in b"", b"PTO1", b"PTO1" + b"\0" * 8, b"PTO1" + os.urandom(60), b"PTO1\1\1\1\0\1\0\0\0\4\0\0\0\40\0\0\0" + digest:
            for sources in b"", b"\0\0\0\0", b"\1\0\0\0\3\0\0\0abc":
                with self.subTest(descriptor=descriptor[:20], sources=sources):
                    answer = peer.call("Register", "(ayayaybau)", hashlib.sha256(descriptor).digest(), descriptor, sources, False, [])
                    self.assertIsInstance(answer, str)
        # What was not registered is not committed, and not in the way of anything.
        self.assertRegex(peer.call("Commit", "(aay)", [digest]), f"nothing with the digest {digest.hex()} is registered on L4/0/L3/5")
        self.assertIn("a digest has", peer.call("Commit", "(aay)", [b"short"]))
        self.assertEqual(peer.call("Commit", "(aay)", []), ())
        self.assertEqual(peer.call("Unregister", "(ay)", digest), ())
        self.assertEqual(peer.call("Close"), ())
        self.assertEqual(peer.end(), (0, ""))

    def test_fuzz(self):
        """Bits of good messages turned over: an answer or a decent end, and never a crash."""
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        for _ in range(12):
            peer = self.begin()
            for _ in range(40):
                eight = dice.randbytes(8)
                data = bytearray(dice.choice([
                    peer.blob("Run", "(ay)", pack_run(
                        *[pack_task([(1, 0, 8, READ | WRITE, [(0, eight)])], [(0, 0, INT64, [1])], scalars=[7], kinds=b"\0",
                                    identity=1)] * dice.randrange(3), begun=[(1, 8)], dropped=[1], record=dice.randrange(3))),
                    peer.blob("Clock"), peer.blob("Trace", "(t)", dice.choice([0, 8, 1 << 63])),
                    peer.blob("Begin", "(ata(tt))", [1], [(1, 8), (2, 4096)]), peer.put(1, 0, eight, reply=True),
                    peer.blob("Get", "(ttt)", 1, 0, 8), peer.blob("Copy", "(ttttt)", 1, 0, 1, 1, 7), peer.blob("Has", "(aay)", [eight * 4]),
                    peer.blob("Register", "(ayayaybau)", eight * 4, eight, eight, True, [dice.randrange(1 << 32)]),
                    peer.blob("Commit", "(aay)", [eight * 4]), peer.blob("Unregister", "(ay)", eight * 4), peer.blob("Progress"), peer.blob("Cancel")]))
                for _ in range(dice.randrange(3)):
                    data[dice.randrange(16, len(data))] ^= 1 << dice.randrange(8)
                with contextlib.suppress(BrokenPipeError):
                    peer.send(data)
            with contextlib.suppress(BrokenPipeError):
                peer.send(peer.blob("Close"))
            peer.process.stdout.read()
            self.assertIn(peer.end()[0], (0, 69))

    def test_terminal(self):
        """Who types its name is told what it is for."""
        ours, theirs = os.openpty()
        done = subprocess.run([os.environ["PTO_REMOTE"]], stdin=theirs, capture_output=True, text=True)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(done.returncode, 64)
        self.assertIn("this program is launched by a worker of level 4", done.stderr)


tap.main()
