# test_remote.py: are remote workers in Python what other workers are?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import shlex
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
from remote_helper import here, np, remote_steps, root  # noqa: E402


@unittest.skipIf(np is None, "no numpy")
class Remote(unittest.TestCase):
    address = "local:"

    def setUp(self):
        self.x, self.y = Pto.Buffer.array(8, "i8"), Pto.Buffer.array(8, "i8")
        self.x[:] = np.arange(8)
        self.host = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE)

    def tearDown(self):
        self.host.close()

    def add(self, **choices):
        remote = self.host.add_remote_worker(self.address, **{"roots": root, "sub_workers": 1, **choices})
        remote.register(remote_steps.double)
        return remote

    def run_one(self, function, *args):
        handle = self.host.register(function)
        self.host.run(lambda orch: orch.submit_next_level(handle, list(args)))

    def test_values(self):
        remote = self.add()
        self.assertEqual(remote.dup_remote_address(), self.address)
        self.assertEqual(remote.dup_path(), "L4/0/L3/0")
        self.run_one(remote_steps.layer, Pto.Tensor.of(self.x).read(), Pto.Tensor.of(self.y).write_existing())
        self.assertEqual(list(self.y), [2 * i for i in range(8)])

    def test_another_process(self):
        self.add()
        self.y[:] = 5
        self.run_one(remote_steps.which, Pto.Tensor.of(self.y).write_existing())
        self.assertNotIn(self.y[0], (0, 5, os.getpid()))
        self.assertEqual(list(self.y[1:]), [5] * 7)  # what it does not write stays
        # Its parent is the bridge, which is ours.
        with open(f"/proc/{self.y[0]}/cmdline", "rb") as line:
            self.assertIn(root.encode(), line.read().split(b"\0"))

    def test_chips(self):
        remote = self.add(devices=2)
        kernel = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(here, "fill.c"))
        chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        chip.add_kernel(0, "fill", kernel)
        remote.register(chip)
        out = Pto.Buffer.array(8, "f4")
        self.run_one(remote_steps.on_chip, Pto.Tensor.of(out).write_existing(), 2.5)
        self.assertEqual(list(out), [2.5] * 8)

    def test_what_is_below_is_begun_again(self):
        """As the worker above says; the far end itself goes on."""
        remote = self.add(devices=1)
        chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        chip.add_kernel(0, "fill", Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(here, "fill.c")))
        remote.register(chip)
        out = Pto.Buffer.array(8, "f4")
        far = set()
        for i in range(3):
            self.run_one(remote_steps.which, Pto.Tensor.of(self.y).write_existing())
            far.add(int(self.y[0]))
            with open(f"/proc/{self.y[0]}/task/{self.y[0]}/children") as children:
                below = [int(pid) for pid in children.read().split()]
            self.assertEqual(len(below), 2)
            for pid in below:
                os.kill(pid, signal.SIGKILL)
            # One that is asked before its death is known is lost.
            for function, *args in ((remote_steps.on_chip, Pto.Tensor.of(out).write_existing(), i + 0.5),
                                    (remote_steps.layer, Pto.Tensor.of(self.x).read(), Pto.Tensor.of(self.y).write_existing())):
                for _ in range(2):
                    try:
                        self.run_one(function, *args)
                        break
                    except Pto.WorkerLostError as error:
                        self.assertRegex(str(error), "L4/0/L3/0/(L2/0|sub0) died .signal 9")
                else:
                    self.fail("it is not begun again")
            self.assertEqual((list(out), list(self.y)), ([i + 0.5] * 8, [2 * k for k in range(8)]))
        self.assertEqual(len(far), 1)

    def test_what_is_below_is_not_begun_again(self):
        """Nobody has said so: what the error says is what helps."""
        self.host = Pto.Worker(level=4)
        self.add()
        self.run_one(remote_steps.which, Pto.Tensor.of(self.y).write_existing())
        with open(f"/proc/{self.y[0]}/task/{self.y[0]}/children") as children:
            os.kill(int(children.read()), signal.SIGKILL)
        for _ in range(2):
            with self.assertRaisesRegex(Pto.WorkerLostError, "restart is never: set restart to on-failure"):
                self.run_one(remote_steps.layer, Pto.Tensor.of(self.x).read(), Pto.Tensor.of(self.y).write_existing())

    def test_function_made_after_the_start(self):
        """It is for others: nobody is begun again for it, and what is kept there is not lost; a task of it says why it can not be there."""
        remote, local = self.add(), Pto.Worker(level=3)
        self.host.add_worker(local)
        self.host.start()
        kept = remote.alloc_buffer(8)
        kept.write(0, GLib.Bytes.new(b"is there"))

        def graph(worker):
            return lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(self.y).write_existing()], worker=worker)
        for i in range(3):
            handle = self.host.register(lambda orch, args, config, i=i: args[0].__setitem__(0, 10 + i))
            self.host.run(graph(local))
            self.assertEqual(self.y[0], 10 + i)
            with self.assertRaisesRegex(GLib.Error, f"a function of this process, made after the start, which {self.address} can not be sent: register"):
                self.host.run(graph(remote))
            if i == 1:
                self.host.unregister(handle)
        self.assertEqual(kept.read(0, 8).get_data(), b"is there")
        self.run_one(remote_steps.which, Pto.Tensor.of(self.y).write_existing())

    def test_many(self):
        """Many small tasks travel together, for one worker by its name, too; each comes to something of its own."""
        for _ in range(2):
            self.add()
        one = self.host.register(remote_steps.note)
        n = 400
        values = Pto.Buffer.array((n, 2), "i8")

        def submit(orch, broken=(), worker=lambda i: -1):
            for i in range(n):
                orch.submit_next_level(one, [Pto.Tensor.of(values[i]).write_existing(), i, i in broken], worker=worker(i))

        for worker in lambda i: -1, lambda i: i % 2, lambda i: -1 if i % 3 else 1:
            values[:] = 0
            self.host.run(lambda orch: submit(orch, worker=worker))
            self.assertEqual(values[:, 0].tolist(), list(range(1, n + 1)))
            there = {tuple(sorted({int(values[i, 1]) for i in range(n) if worker(i) == w})) for w in (0, 1)}
            self.assertTrue(all(len(processes) <= 1 for processes in there))
        # A few that fail harm no other, though they travel with it, and those that have run are there.
        values[:] = 0
        with self.assertRaisesRegex(remote_steps.Unwilling, "no [0-9]+"):
            self.host.run(lambda orch: submit(orch, broken=(50, 51, 300)))
        for i in range(n):
            self.assertEqual(values[i, 0], 0 if i in (50, 51, 300) else i + 1)

    def test_exception(self):
        self.add()
        self.y[:] = 5
        with self.assertRaises(remote_steps.Unwilling) as caught:
            self.run_one(remote_steps.explode, Pto.Tensor.of(self.y).write_existing())
        self.assertIn("no layer", str(caught.exception))
        self.assertIn("L4/0/L3/0 failed", str(caught.exception.__cause__))
        self.assertEqual(caught.exception.args, ("('no layer', 7)",))  # its text: what it was made of stays there
        self.assertEqual(list(self.y), [5] * 8)

    def test_long_exception(self):
        """What does not come along takes no room from what does."""
        self.add()
        with self.assertRaises(remote_steps.Unwilling) as caught:
            self.run_one(remote_steps.explain, Pto.Tensor.of(self.y).write_existing())
        self.assertEqual(str(caught.exception), remote_steps.LONG)

    def test_contents_of_an_exception(self):
        """Of what another machine sends nothing is unpickled, whatever it says that it was."""
        with tempfile.TemporaryDirectory() as directory:
            program, trap = os.path.join(directory, "pto-remote"), os.path.join(directory, "unpickled")
            words = sys.executable, os.path.join(here, "remote_meddler.py"), os.environ["PTO_REMOTE"], trap
            with open(program, "w") as script:
                script.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            os.chmod(program, stat.S_IRWXU)
            self.add(program=program)
            with self.assertRaises(remote_steps.Unwilling) as caught:
                self.run_one(remote_steps.explode, Pto.Tensor.of(self.y).write_existing())
            text, members = caught.exception.args
            self.assertEqual((text, [str(member) for member in members]), ("both", ["one"]))
            self.assertFalse(os.path.exists(trap))

    def test_death(self):
        self.add()
        with self.assertRaisesRegex(GLib.Error, "the remote worker at local: is lost") as caught:
            self.run_one(remote_steps.stop, Pto.Tensor.of(self.y).write_existing())
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST))
        self.run_one(remote_steps.layer, Pto.Tensor.of(self.x).read(), Pto.Tensor.of(self.y).write_existing())
        self.assertEqual(self.y[7], 14)

    def test_roots(self):
        """Nothing is imported from elsewhere, whatever is on the path there."""
        self.add()
        for path, what in ("os:system", "os is in none of the directories"), ("no_such_module:f", "no_such_module is in none"):
            with self.assertRaisesRegex(GLib.Error, f'"{path}" can not be imported: {what}'):
                self.host.start()
                self.host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, path))

    def test_closure(self):
        self.add()
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which local: can not be sent"):
            self.run_one(lambda orch, args, config: None, Pto.Tensor.of(self.y).write_existing())

    def test_elsewhere(self):
        """A function that it can not import is somebody else's to run, and hinders nobody."""
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "remote_elsewhere.py"), "w") as module:
                module.write("import os\ndef which(orch, args, config):\n    args[0][0] = os.getpid()\n")
            sys.path.insert(0, directory)
            self.addCleanup(sys.path.remove, directory)
            import remote_elsewhere
        self.add()
        self.host.add_worker(Pto.Worker(level=3))
        handle = self.host.register(remote_elsewhere.which)

        def submit(worker):
            self.host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(self.y).write_existing()], worker=worker))

        submit(1)
        self.assertNotIn(self.y[0], (0, os.getpid()))
        with self.assertRaisesRegex(GLib.Error, "remote_elsewhere is in none of the directories"):
            submit(0)

    def test_one_there(self):
        """A function and what is imported by its path are one there: it stays for as long as one of them does."""
        self.add()
        handles = [self.host.register(remote_steps.which),
                   self.host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:which"))]
        self.host.start()
        while handles:
            self.y[:] = 5
            self.host.run(lambda orch: orch.submit_next_level(handles[-1], [Pto.Tensor.of(self.y).write_existing()]))
            self.assertNotIn(self.y[0], (0, 5))
            self.host.unregister(handles.pop(0))

    def test_no_room(self):
        """A task too large for the worker's memory fails, and is not in the way of the next."""
        self.add().set_parameter("arena", "2M")
        large = Pto.Buffer.array(1 << 20, "i8")
        with self.assertRaisesRegex(GLib.Error, "has no room for 8388608 bytes of a task's tensors: raise its parameter arena"):
            self.run_one(remote_steps.which, Pto.Tensor.of(large).update())
        self.y[:] = 5
        self.run_one(remote_steps.which, Pto.Tensor.of(self.y).write_existing())
        self.assertNotIn(self.y[0], (0, 5))

    def test_what_is_up_stays_as_it_is(self):
        """What was made of a worker below does not change any more, and nothing is put below it."""
        remote, near = self.add(devices=1), Pto.Worker(level=3, devices=1)
        self.host.add_worker(near)
        remote.set_parameter("arena", "64M")
        self.host.start()
        for worker, name, value in ((remote, "arena", "128M"), (remote, "remote-lease", 0), (remote.get_child(0), "task-window", 64),
                                    (near, "timeout", 1000), (near.get_child(0), "task-window", 64), (near.get_child(0), "schedule", "in-order")):
            path, before = worker.dup_path(), worker.dup_parameter(name)
            above = path.rpartition("/")[0].rpartition("/")[0]
            with self.assertRaises(GLib.Error) as raised:
                worker.set_parameter(name, value)
            self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.BUSY), raised.exception.message)
            self.assertEqual(raised.exception.message, f"parameter {name} of {path} can be set only before {above}, the worker above it, starts: by "
                             "start(), its first run or the first memory (alloc_buffer(), malloc())")
            self.assertEqual(worker.dup_parameter(name), before)
        with self.assertRaises(GLib.Error) as raised:
            near.add_worker(Pto.Worker(level=2))
        self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.BUSY), raised.exception.message)
        self.host.close()
        with self.assertRaises(GLib.Error) as raised:
            remote.set_parameter("arena", "128M")
        self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.CLOSED), raised.exception.message)

    def script(self, text):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "launcher")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def test_start_failures(self):
        """Why, is in the error: what is missing there, or what was said last."""
        elsewhere = {"launcher": [self.script("shift; exec /bin/sh -c \"$*\"\n"), "%h"], "shell": True, "program": os.environ["PTO_REMOTE"]}
        for choices, words in (
                ({"roots": "/nonexistent/root"}, r"pto-remote on \S+: --root /nonexistent/root: No such file or directory"),
                ({"roots": [root, os.path.join(root, "remote_steps.py")]}, "remote_steps.py: Not a directory"),
                ({"python": "/nonexistent/python"}, "--python /nonexistent/python: No such file or directory"),
                ({"python": self.script(f"exec {sys.executable} -S -E -I \"$@\"\n")}, "--python .*: ModuleNotFoundError: No module named 'gi'"),
                ({"python": self.script("echo first >&2; echo this is no Python >&2; exit 3\n")},
                 r'for (local:|own://one) has exited with status 3 before it was ready\. Its last words: "this is no Python"'),
                ({"program": "/nonexistent/pto-remote"}, r"there is no such program|Its last words: \".*/nonexistent/pto-remote: not found\"")):
            for address, more in ("local:", {}), ("own://one", elsewhere):
                with self.subTest(address=address, **choices), Pto.Worker(level=4) as host:
                    host.add_remote_worker(address, **{"roots": root, **more, **choices})
                    with self.assertRaisesRegex(GLib.Error, "L4/0/L3/0.*" + words):
                        host.start()

    def test_greeting(self):
        """Of a shell there that prints before pto-remote speaks: its first line is told, and nothing in it that a terminal obeys."""
        program = self.script("printf 'Welcome to \\033[1mone\\033[m, me!\\r\\nyou have mail\\n'; exec " + os.environ["PTO_REMOTE"] + " \"$@\"\n")
        self.add(program=program)
        with self.assertRaises(GLib.Error) as caught:
            self.host.start()
        self.assertIn(f'L4/0/L3/0 can not be started: before pto-remote speaks at {self.address} something else has printed '
                      '"Welcome to ?[1mone?[m, me!": what a shell there reads at its start (.bashrc, .profile) must print nothing',
                      str(caught.exception))

    def test_refused(self):
        for address in "", "nowhere", "ssh://", "local:8080":
            with self.subTest(address), self.assertRaisesRegex(GLib.Error, "is no address of a remote worker"):
                self.host.add_remote_worker(address)
        with self.assertRaisesRegex(TypeError, "devices"):
            self.host.add_remote_worker("local:", devices="two")
        with self.assertRaisesRegex(GLib.Error, "below one of level 4 or more"):
            Pto.Worker(level=3).add_remote_worker("local:")
        with self.assertRaisesRegex(GLib.Error, 'nothing named "that" is registered on L4/0'):
            self.host.lookup("that")
        with self.assertRaisesRegex(GLib.Error, "L2/0 can not be added: .* a remote one, which has the chips that its option devices says"):
            self.add().add_worker(Pto.Worker(level=2))

    def slow(self, directory, bytes_, seconds):
        """A program that hands on so many bytes to a remote worker in so many seconds each time. At the first large tensor it
        says so."""
        program = os.path.join(directory, "slow")
        with open(program, "w") as script:
            script.write(f"""#!{sys.executable}
import os, subprocess, sys, time
process = subprocess.Popen([{os.environ["PTO_REMOTE"]!r}, *sys.argv[1:]], stdin=subprocess.PIPE)
while data := os.read(0, {bytes_}):
    process.stdin.write(data)
    process.stdin.flush()
    if len(data) == {bytes_}:
        open({os.path.join(directory, "begun")!r}, "w").close()
        time.sleep({seconds})
process.stdin.close()
process.wait()
""")
        os.chmod(program, stat.S_IRWXU)
        return program

    def test_arguments_that_are_wrong_are_named(self):
        for wrong, type_, refusal in (
                ({"devices": -1}, OverflowError, "devices: -1 is not one of 0 to 4294967295"),
                ({"sub_workers": None}, TypeError, "sub_workers: None is not an integer"),
                ({"id": "1"}, TypeError, "id: '1' is not an integer"), ({"platform": 3}, TypeError, "platform: 3 is not a text"),
                ({"python": 3}, TypeError, "python: 3 is not a path"), ({"program": 3}, TypeError, "program: 3 is not a path"),
                ({"certificates": 3}, TypeError, "certificates: 3 is not a path"), ({"shell": 1}, TypeError, "shell: 1 is neither True nor False"),
                ({"trusted_fabric": 3}, TypeError, "trusted_fabric: 3 is not a text"),
                ({"serialized_python": 1}, TypeError, "serialized_python: 1 is neither True nor False")):
            with self.subTest(wrong):
                with self.assertRaisesRegex(type_, refusal):
                    self.host.add_remote_worker("local:", **wrong)
                if wrong.keys().isdisjoint(("id", "certificates", "serialized_python")):
                    with self.assertRaisesRegex(type_, refusal):
                        self.host.add_remote_job(["local:"], **wrong)
        with self.assertRaisesRegex(TypeError, "address: None is not a text"):
            self.host.add_remote_worker(None)
        with self.assertRaisesRegex(TypeError, "add_cluster: file: None is not a path"):
            self.host.add_cluster(None)
        for call in self.host.lookup, self.host.import_buffer:
            with self.assertRaisesRegex(TypeError, f"Worker.{call.__name__}: (name|token): None is not a text"):
                call(None)
        for call, refusal in ((lambda: self.host.add_worker(None), "Worker.add_worker: child: None is no Pto.Worker"),
                              (lambda: self.host.unregister(3), "Worker.unregister: handle: 3 is no Pto.CallableHandle"),
                              (lambda: Pto.Buffer.new(8).copy_to(b"abc"), "Buffer.copy_to: to: b'abc' is no Pto.Buffer")):
            with self.assertRaisesRegex(TypeError, refusal):
                call()
        for tensors in None, "ab", Pto.Tensor.of([1, 2]):
            for name in "allreduce", "broadcast", "barrier":
                with self.assertRaisesRegex(TypeError, f"{name}: .* is not a list of tensors: give one for each worker"):
                    with Pto.Worker(level=3) as host:
                        host.run(lambda orch: getattr(orch, name)(tensors))
        self.assertEqual(self.host.get_n_workers(), 0)

    def test_closed(self):
        self.host.close()
        for add in (lambda: self.host.add_remote_worker("local:"), lambda: self.host.add_remote_job(["local:"]),
                    lambda: self.host.add_worker(Pto.Worker(level=3))):
            with self.assertRaisesRegex(Pto.ClosedError, "L3/0 can not be added: the worker above it is closed"):
                add()

    def test_an_interpreter_that_was_forgotten(self):
        self.host.add_remote_worker("local:")
        self.host.start()
        with self.assertRaisesRegex(GLib.Error, r'"remote_steps:which" can not be imported: .*the options python and roots'):
            self.host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:which"))

    def test_contents(self):
        """A worker that has nothing of what it is to run is sent it, and once."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "program")
            with open(program, "w") as script:
                script.write(f'#!/bin/sh\nXDG_CACHE_HOME={directory} exec {os.environ["PTO_REMOTE"]} "$@"\n')
            os.chmod(program, stat.S_IRWXU)
            chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
            chip.add_kernel(0, "fill", Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(here, "fill.c")))
            times = []
            for _ in range(2):
                host = Pto.Worker(level=4)
                remote = host.add_remote_worker("local:", devices=1, roots=root, python=sys.executable, program=program)
                remote.register(chip)
                out = Pto.Buffer.array(8, "f4")
                handle = host.register(remote_steps.on_chip)
                host.run(lambda orch: orch.submit_next_level(handle, [Pto.Tensor.of(out).write_existing(), 2.5]))
                self.assertEqual(list(out), [2.5] * 8)
                host.close()
                with os.scandir(os.path.join(directory, "libpto")) as entries:
                    times.append({entry.name: entry.stat().st_mtime_ns for entry in entries if entry.name.endswith(".so")})
            self.assertGreaterEqual(len(times[0]), 2)
            self.assertEqual(times[0], times[1])

    def test_slow_is_alive(self):
        """A tensor that takes longer to travel than a task may be silent: each part of it is a sign of life."""
        with tempfile.TemporaryDirectory() as directory:
            Remote.add(self, program=self.slow(directory, 1 << 16, 0.005), python=sys.executable)  # 5 s for all, 0.08 a part
            self.host.set_parameter("task-timeout", "2000")
            large = Pto.Buffer.array(1 << 23, "i8")
            large[-1] = 7
            self.run_one(remote_steps.which, Pto.Tensor.of(large).update())
            self.assertNotEqual(large[0], 0)
            self.assertEqual(large[-1], 7)
            self.host.close()

    def test_cancel_on_the_way(self):
        """What is cancelled while its tensor travels is not sent to the end, and the worker is there for the next."""
        with tempfile.TemporaryDirectory() as directory:
            Remote.add(self, program=self.slow(directory, 1 << 16, 0.001), python=sys.executable)
            which = self.host.register(remote_steps.which)
            small, large = Pto.Tensor.of(self.y).write_existing(), Pto.Tensor.of(Pto.Buffer.array(1 << 26, "i8")).update()
            self.host.run(lambda orch: orch.submit_next_level(which, [small]))
            worker = self.y[0]
            cancellable = Gio.Cancellable()

            def cancel():
                while not os.path.exists(os.path.join(directory, "begun")):
                    time.sleep(0.001)
                cancellable.cancel()

            thread = threading.Thread(target=cancel)
            thread.start()
            with self.assertRaises(GLib.Error) as caught:
                self.host.run(lambda orch: orch.submit_next_level(which, [large]), cancellable=cancellable)
            thread.join()
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
            self.host.run(lambda orch: orch.submit_next_level(which, [small]))
            if self.y[0] != worker:  # on a busy machine a part takes longer than a cancelled run leaves it
                print("# it was too slow, and was ended")
            self.host.close()

    def test_killed(self):
        """Of a program that is killed nothing stays, wherever its workers are."""
        program = (f"import sys; sys.path[:0] = [{here!r}, {root!r}]\nimport gi; gi.require_version('Pto', '1')\n"
                   "from gi.repository import Pto\nimport remote_steps\nroot, y = Pto.Worker(level=4), Pto.Buffer.array(1, 'i8')\n"
                   f"root.add_remote_worker('local:', roots={root!r}, sub_workers=1)\nwhich = root.register(remote_steps.which)\n"
                   "root.run(lambda orch, y: orch.submit_next_level(which, [y.write_existing()]), y)\n"
                   "print(y[0], flush=True)\ninput()\n")
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            worker = process.stdout.readline().strip()
            self.assertTrue(os.path.exists(f"/proc/{worker}"))
            with open(f"/proc/{worker}/task/{worker}/children") as children:
                below = children.read().split()
            self.assertEqual(len(below), 1)
            process.kill()
        for gone in worker, *below:
            while os.path.exists(f"/proc/{gone}"):  # ended by the time limit of the test
                with contextlib.suppress(OSError), open(f"/proc/{gone}/stat") as state:
                    if state.read().rpartition(")")[2].split()[0] == "Z":
                        break
                time.sleep(0.01)


class Launched(Remote):
    """The same through a launcher: a program in place of ssh gives what it is told to a shell, as that would there."""
    address = "ssh://elsewhere"

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        path = os.path.join(cls.directory.name, "ssh")
        with open(path, "w") as script:
            script.write('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n[ "$2" = elsewhere ] || exit 255\nshift 2\nexec sh -c "exec $*"\n')
        os.chmod(path, stat.S_IRWXU)
        os.environ["PATH"] = f"{cls.directory.name}:{os.environ['PATH']}"

    @classmethod
    def tearDownClass(cls):
        os.environ["PATH"] = os.environ["PATH"].partition(":")[2]
        cls.directory.cleanup()

    def add(self, **choices):
        return super().add(**{"program": os.environ["PTO_REMOTE"], "python": sys.executable, **choices})

    def test_death(self):
        self.add()
        with self.assertRaisesRegex(GLib.Error, "the remote worker at ssh://elsewhere is lost"):
            self.run_one(remote_steps.stop, Pto.Tensor.of(self.y).write_existing())

    def test_closure(self):
        self.add()
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which ssh://elsewhere can not be sent"):
            self.run_one(lambda orch, args, config: None, Pto.Tensor.of(self.y).write_existing())

    # Its program is the launcher's to run.
    test_contents = test_slow_is_alive = test_cancel_on_the_way = None

    def hang(self, name, address, **options):
        """Whoever is launched and never answers ends with the start that waits for it."""
        mark = os.path.join(self.directory.name, "mark")
        with open(os.path.join(self.directory.name, name), "w") as script:
            script.write(f"#!/bin/sh\necho $$ > {mark}\nexec sleep 600\n")
        os.chmod(script.name, stat.S_IRWXU)
        self.host.set_parameter("timeout", "1500")
        self.host.add_remote_worker(address, **options)
        with self.assertRaisesRegex(GLib.Error, "did not answer for"):
            self.host.start()
        with open(mark) as file:
            process = file.read().strip()
        while os.path.exists(f"/proc/{process}"):  # ended by the time limit of the test
            with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as state:
                if state.read().rpartition(")")[2].split()[0] == "Z":
                    break
            time.sleep(0.01)

    def test_hanging_launcher(self):
        self.hang("srun", "srun://nobody")

    def test_hanging_program(self):
        self.hang("hanging", "local:", program=os.path.join(self.directory.name, "hanging"))

    def test_unreachable(self):
        self.host.add_remote_worker("ssh://nobody", program=os.environ["PTO_REMOTE"])
        with self.assertRaisesRegex(GLib.Error, '"ssh" for ssh://nobody has exited with status 255 before it was ready'):
            self.host.start()


tap.main()
