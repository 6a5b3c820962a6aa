# test_remote_serialized.py: do functions that nobody imports come to remote workers where both ends say so, and nowhere else?
# SPDX-License-Identifier: LGPL-2.1-or-later
import functools
import os
import shlex
import stat
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402
from gi.overrides import PtoFunctions, PtoSerialized  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402

FACTOR = 3


class Own:
    def go(self, orch, args, config):
        pass

    def __call__(self, orch, args, config):
        pass


LARGE = b"x" * (3 << 20)
A, B = b"a" * (3 << 19), b"b" * (3 << 19)


def count_down(n):
    return 0 if n == 0 else FACTOR + count_down(n - 1)


def scale(args):
    x, y = args
    y[:] = np.multiply(x, FACTOR) + count_down(4)


def path_of(function):
    return PtoSerialized.dumps(function, PtoFunctions.import_path)


@unittest.skipIf(np is None, "no numpy")
class Serialized(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4)
        self.addCleanup(self.host.close)
        self.x, self.y = Pto.Buffer.array(4, "i8"), Pto.Buffer.array(4, "i8")
        self.x[:] = range(4)
        self.y[:] = 0

    def add(self, **choices):
        return self.host.add_remote_worker("local:", **{"serialized_python": True, **choices})

    def run_one(self, handle, worker=-1):
        self.host.run(lambda orch, x, y: orch.submit_next_level(handle, [x.read(), y.write_existing()], worker=worker), self.x, self.y)
        return list(self.y)

    def test_functions(self):
        """With what they keep, what they name, and what they refer to, before the start and after it."""
        self.add()
        offset, functions = 100, {}

        def inner(value, more=7):
            return value + offset + more

        def first(orch, args, config):
            args[1][:] = [inner(int(value)) + os.getpid() for value in args[0]]

        def second(orch, args, config):
            args[1][:] = np.flip(args[0]) * FACTOR + count_down(2)

        def third(orch, args, config):
            args[1][:] = functions["own"](args[0])
        functions["own"] = lambda x: x + len(functions)
        handle = self.host.register(first)
        there, = {value - i - 107 for i, value in enumerate(self.run_one(handle))}
        self.assertNotIn(there, (0, os.getpid()))
        self.assertEqual(self.run_one(self.host.register(second)), [15, 12, 9, 6])
        self.assertEqual(self.run_one(self.host.register(third, workers=[0])), [1, 2, 3, 4])

    def test_below(self):
        """Those that the remote worker's own workers call, too."""
        remote = self.add(roots=root, sub_workers=1)
        remote.register(scale)

        def submit(orch, args, config):
            orch.submit_sub(orch.worker.lookup("scale"), [args.get_tensor(0).read(), args.get_tensor(1).write_existing()])
        self.assertEqual(self.run_one(self.host.register(submit)), [12, 15, 18, 21])
        # What has a module comes from the directories there, as ever.
        which = self.host.register(remote_steps.which)
        self.host.run(lambda orch, y: orch.submit_next_level(which, [y.write_existing()]), self.y)
        self.assertNotIn(self.y[0], (0, os.getpid()))

    def test_what_is_called_and_is_no_function(self):
        """A part of one; a method, and an object that is called, of a class that has a module there."""
        self.add(roots=root)

        def shift(by, orch, args, config):
            args[1][:] = args[0] + by * FACTOR
        self.assertEqual(self.run_one(self.host.register(functools.partial(shift, 5))), [15, 16, 17, 18])
        kept = remote_steps.Kept(100)
        self.assertEqual(self.run_one(self.host.register(kept.add)), [100, 101, 102, 103])
        self.assertEqual(self.run_one(self.host.register(kept)), [100, 99, 98, 97])
        for wrong, name in (Own().go, "Own.go"), (Own(), "Own object"), (functools.partial(Own().go), "partial"):
            with self.assertRaisesRegex(TypeError, f"{name}.* can not be sent to a remote worker as bytes: Own is a class of this program"):
                self.host.register(wrong)

    def test_what_is_large(self):
        self.add(roots=root)
        near, kept = b"y" * (3 << 20), remote_steps.Kept(b"z" * (3 << 20))

        def far(orch, args, config):
            args[1][:] = len(LARGE)

        def around(orch, args, config):
            args[1][:] = len(near)

        def many(orch, args, config):
            args[1][:] = len(A) + len(B)
        refusal = "can not be sent to a remote worker as bytes: "
        for function, name in (far, "LARGE"), (around, "near"), (kept.add, "self.value"), (functools.partial(far), "LARGE"):
            with self.assertRaisesRegex(ValueError, f"{refusal}{name}, which it uses, alone has more than 2 MiB: give it as a tensor"):
                self.host.register(function)
        with self.assertRaisesRegex(ValueError, f"{refusal}it has more than 2 MiB with all that it carries"):
            self.host.register(many)

    def test_off(self):
        """Not without being asked for, at this end ..."""
        self.add(serialized_python=False, roots=root)
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which local: can not be sent"):
            self.host.register(lambda orch, args, config: None, workers=[0])
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which local: can not be sent"):
            self.run_one(self.host.register(lambda orch, args, config: None))
        # ... nor to somebody who says that it is what is imported.
        path = path_of(lambda orch, args, config: None)
        with self.assertRaisesRegex(GLib.Error, "L4/0/L3/0 takes no functions as bytes: begin pto-remote there with --serialized-python"):
            self.host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, path))

    def test_off_below(self):
        self.add(serialized_python=False, roots=root, sub_workers=1).register(
            Pto.ImportedFunction.new(Pto.CallableKind.SUB, path_of(scale)))
        with self.assertRaisesRegex(GLib.Error, "L4/0/L3/0 takes no functions as bytes"):
            self.host.start()

    def test_off_there(self):
        """... and not at the other one, whatever its environment says."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "pto-remote")
            with open(program, "w") as script:
                script.write("#!/bin/sh\nfor word; do shift; [ \"$word\" = --serialized-python ] || set -- \"$@\" \"$word\"; done\n"
                             f"PTO_REMOTE_SERIALIZED_PYTHON=1 exec {shlex.quote(os.environ['PTO_REMOTE'])} \"$@\"\n")
            os.chmod(program, stat.S_IRWXU)
            self.add(program=program, python=sys.executable)
            refusal = '"<lambda>" is a function of this process, and local: takes none as bytes: begin pto-remote there with --serialized-python'
            with self.assertRaisesRegex(GLib.Error, refusal):
                self.run_one(self.host.register(lambda orch, args, config: None))
            with self.assertRaisesRegex(GLib.Error, refusal):
                self.host.register(lambda orch, args, config: None, workers=[0])

    def test_not_here(self):
        """A worker of this machine imports no bytes."""
        with Pto.Worker(level=3, sub_workers=1) as host:
            with self.assertRaisesRegex(GLib.Error, r'"__serialized_python__:\S{8}\.\.\." can not be imported: functions as bytes are for remote workers'):
                host.register(Pto.ImportedFunction.new(Pto.CallableKind.SUB, path_of(scale)))
                host.start()

    def test_what_can_not(self):
        """It is said when it is registered, by its name, and hinders nobody who is not to have it."""
        self.add()
        self.host.add_worker(Pto.Worker(level=3))

        def keeps(value):
            return lambda orch, args, config: args[1].__setitem__(0, 5 if value else 0)
        for value, why in (Own(), "Own is a class of this program, of no module"), (open(os.devnull), "cannot pickle"):
            with self.subTest(why), self.assertRaisesRegex(TypeError, rf"<lambda> can not be sent to a remote worker as bytes: {why}.*workers="):
                self.host.register(keeps(value))
            self.assertEqual(self.run_one(self.host.register(keeps(value), workers=[1]))[0], 5)
            if not isinstance(value, Own):
                value.close()

    def test_own_subs(self):
        """A SUB function is for SUB workers of this machine, and may keep what it likes."""
        host = Pto.Worker(level=4, sub_workers=1)
        self.addCleanup(host.close)
        host.add_remote_worker("local:", serialized_python=True)
        own = Own()
        own.value = 6
        handle = host.register(lambda args: args[0].__setitem__(0, own.value))
        host.run(lambda orch, y: orch.submit_sub(handle, [y.write_existing()]), self.y)
        self.assertEqual(self.y[0], 6)

    def test_version(self):
        path = path_of(scale)
        for wrong in "AAAA", "____":
            with self.assertRaisesRegex(ImportError, "another version of Python"):
                PtoSerialized.loads(path.replace(path[len(PtoSerialized.MODULE) + 1:][:4], wrong))
        self.assertEqual(path, path_of(scale))  # so its digest is the same
        args = np.arange(2), np.zeros(2, "i8")
        PtoSerialized.loads(path)(args)
        self.assertEqual(list(args[1]), [12, 15])


tap.main()
