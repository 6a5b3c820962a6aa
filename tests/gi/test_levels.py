# test_levels.py: do levels 3 and 4 read and behave in Python as a Python programmer expects?
# SPDX-License-Identifier: LGPL-2.1-or-later
import builtins
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Gio, Pto  # noqa: E402

import levels_helper  # noqa: E402
import sources_helper  # noqa: E402
from levels_helper import Deep, Diverged, Mismatch, Missing, Refused  # noqa: E402
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
examples = os.environ.get("PTO_TEST_EXAMPLES", os.path.join(here, "..", "..", "examples"))
at_fork = []
os.register_at_fork(after_in_child=lambda: at_fork.append(os.getpid()))


@unittest.skipIf(np is None, "no numpy")
class Levels(unittest.TestCase):
    def setUp(self):
        self.board = Pto.Buffer.array(64, "i8")

    def test_no_standard_output(self):
        """Closed, taken away, or not there from the beginning: what is run goes well."""
        program = ("import sys, os, gi\ngi.require_version('Pto', '1')\nfrom gi.repository import Pto\n"
                   "if sys.argv[1] == 'closed': sys.stdout.close()\n"
                   "if sys.argv[1] == 'none': sys.stdout = None\n"
                   "if sys.argv[1] == 'gone': print('unread'); os.close(1)\n"
                   "def function(args): args[0][0] = 7\n"
                   "y = Pto.Buffer.array(1, 'i8')\n"
                   "with Pto.Worker(level=3, sub_workers=1) as host:\n"
                   "    handle = host.register(function)\n"
                   "    host.run(lambda orch: orch.submit_sub(handle, [Pto.Tensor.of(y).write()]))\n"
                   "print(y[0], file=sys.stderr, flush=True)\n"
                   "os._exit(0)\n")
        for how in "closed", "none", "gone", "shell":
            with self.subTest(how=how):
                done = subprocess.run(["sh", "-c", 'exec "$@" ' + (">&-" if how == "shell" else ""), "sh", sys.executable, "-c", program, how],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, "7\n"))

    def test_section_9(self):
        """Seed 001 section 9, as it is written."""
        Worker, TaskArgs, CallConfig = Pto.Worker, Pto.TaskArgs, Pto.CallConfig
        board = self.board

        def verify_result():
            board[0] += 1
            board[1] = os.getpid()

        l3 = Worker(level=3, num_sub_workers=1)
        l3_sub_handle = l3.register(lambda: verify_result())

        def my_l3_orch(orch, args, config):
            orch.submit_sub(l3_sub_handle)

        w4 = Worker(level=4, num_sub_workers=0)
        l3_handle = w4.register(my_l3_orch)
        w4.add_worker(l3)
        w4.init()

        def my_l4_orch(orch, args, config):
            self.assertIsNone(orch.submit_next_level(l3_handle, TaskArgs(), CallConfig()))

        for i in range(5):
            w4.run(my_l4_orch)
            self.assertEqual(board[0], i + 1)
        self.assertNotIn(board[1], (0, os.getpid()))
        w4.close()

    def test_number_of_arguments(self):
        path = os.path.join(examples, "vector", "kernels", "add_scalar.c")
        add, free = Pto.Callable.kernel(path, args=3), Pto.Callable.kernel(path)
        self.assertEqual((add.get_n_args(), free.get_n_args()), (3, -1))
        with Pto.Worker(platform="a2a3sim") as chip:
            with self.assertRaisesRegex(GLib.Error, '"add_scalar" takes 3 arguments, but 2 are given'):
                chip.run(lambda orch, x: orch.submit(add, x.read(), x.write_existing()), Pto.Buffer.array(16))

    def test_directory(self):
        """What pto.ini says wrong is refused as pto run refuses it: by the same code."""
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(GLib.Error, f"{directory}/pto.ini: there is no such file"):
                Pto.Callable.chip(directory)
            path = pathlib.Path(directory)
            (path / "graph.c").touch()
            (path / "pto.ini").write_text("[orchestration]\nsource=graph.c\nfunction=%f\n")
            with self.assertRaisesRegex(GLib.Error, f'{directory}/pto.ini: .orchestration.: .*"%f" is no name') as caught:
                Pto.Callable.chip(path)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.INVALID_ARGS))

    def test_source_of_an_orchestration(self):
        """What crashes, is missing or calls nobody is named by the file that was given, wherever its object is loaded."""
        head = ('#include "pto_orchestration_api.h"\nPTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n'
                "{\n  return (PTO2OrchestrationConfig){ 0 };\n}\n"
                "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n{\n  ")
        entries = [("raise (11);", r": before its first submit it crashed"),
                   ("pto2_rt_submit_order (rt, NULL, 0, NULL, 0); raise (11);", r":9 it crashed"),
                   ("extern int nobody (void); return nobody ();", r": .*undefined symbol: nobody")]
        with tempfile.TemporaryDirectory() as directory:
            for i, (body, says) in enumerate(entries):
                path = pathlib.Path(directory, f"graph{i}.c")
                path.write_text(f"#include <signal.h>\n{head}{body}\n  return 0;\n}}\n")
                for properties in {}, {"isolate": True}, {"level": 3, "devices": 1}:
                    with self.subTest(says=says, properties=properties), Pto.Worker(**properties) as worker:
                        with self.assertRaisesRegex(GLib.Error, re.escape(str(path)) + r"\)?" + says) as caught:
                            handle = worker.register(Pto.ChipOrchestration.new(str(path), None))
                            if "level" in properties:
                                worker.run(lambda orch: orch.submit_next_level(handle, []))
                            else:
                                worker.run(handle)
                        self.assertNotIn(".so", caught.exception.message)

    def test_children(self):
        """A list to look at; what is closed can not be brought up."""
        top, child = Pto.Worker(level=4), Pto.Worker(level=3, sub_workers=1)
        top.add_worker(child)
        self.assertEqual((len(top.children), list(top.children)), (1, [child]))
        for name in "append", "remove_all", "splice", "insert":
            self.assertFalse(hasattr(top.children, name), name)
        self.assertIs(top.children, top.get_property("children"))
        child.close()
        for _ in range(2):
            with self.assertRaisesRegex(GLib.Error, "L4/0/L3/0 was closed before the worker above it has started") as caught:
                top.start()
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.CLOSED))
        with self.assertRaisesRegex(GLib.Error, "it is closed"):
            Pto.Worker(level=4).add_worker(child)
        top.close()
        self.assertEqual(len(top.children), 0)

    def test_two_chips(self):
        part_path = os.path.join(examples, "two-chips", "partial-sum")
        with Pto.Worker(level=3, devices=2, sub_workers=1) as host:
            part = host.register(Pto.Callable.chip(part_path))
            total = host.register(lambda args: np.add(args[0], args[1], out=args[2]))
            self.assertEqual(part.get_target_namespace(), Pto.TargetNamespace.LOCAL_CHIP)

            def graph(orch, x, out):
                a, b = orch.alloc(x.shape, x.dtype), orch.alloc(1)
                orch.submit_next_level(part, [x.read(), a.view([1], [0]).write()], worker=0)
                orch.submit_next_level(part, [x.read(), b.write()], worker=1)
                orch.submit_sub(total, [a.view([1], [0]).read(), b.read(), out.write_existing()])

            x, out = Pto.Buffer.array(1024), Pto.Buffer.array(1)
            x[:] = 0.25
            self.assertEqual(host.get_state(), Pto.WorkerState.NEW)
            self.assertTrue(host.run(graph, x, out))
            self.assertEqual(out[0], 512)
            self.assertEqual(host.dup_statistics().get_completed(), 3 + 2)  # memory counts, too
            self.assertEqual(host.get_property("path"), "L3/0")
        self.assertEqual(host.get_state(), Pto.WorkerState.CLOSED)

    def test_arguments(self):
        """Tensors as arrays on the same memory, numbers as integers, in both directions."""
        matrix = Pto.Buffer.array((3, 4), "i4")

        def look(args):
            self.board[0] = len(args)
            self.board[1] = args[0].shape == (3, 4) and args[0].dtype == np.int32
            self.board[2] = args[1] == 2**63
            self.board[3] = args[-1]
            self.board[4] = args.tensor_count * 10 + args.scalar_count
            args[0][1, 2] = 12

        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(look)
            host.run(lambda orch, m: orch.submit_sub(handle, [m.update(), 2**63, np.int16(5)]), matrix)
        self.assertEqual(list(self.board[:5]), [3, 1, 1, 5, 12])
        self.assertEqual(matrix[1, 2], 12)
        self.assertEqual(matrix.sum(), 12)

    def test_private_memory(self):
        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(lambda args: None)
            with self.assertRaises(GLib.Error) as caught:
                host.run(lambda orch, x: orch.submit_sub(handle, [x.read()]), np.zeros(4, "f4"))
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.NOT_SHARED))
            self.assertIn("use a buffer", caught.exception.message)

    def test_exception_in_sub(self):
        """Behaviour 40: the exception arrives as what it was, its traceback as text."""
        def wanted_by_the_test(args):
            raise LookupError("there is no such word")

        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(wanted_by_the_test)
            with self.assertRaises(LookupError) as caught:
                host.run(lambda orch: orch.submit_sub(handle))
            line = sys._getframe().f_lineno - 1
            self.assertEqual(str(caught.exception), "there is no such word")
            cause = caught.exception.__cause__
            self.assertEqual(cause.message, f'task 0 ("wanted_by_the_test"), submitted at test_levels.py:{line}, on L3/0/sub0 failed: '
                             "LookupError: there is no such word")
            if hasattr(cause, "add_note"):
                note, = caught.exception.__notes__
                self.assertIn("test_levels.py", note)
                self.assertIn("in wanted_by_the_test", note)
            late = host.register(lambda: self.board.__setitem__(0, 1))
            host.run(lambda orch: orch.submit_sub(late))
        self.assertEqual(self.board[0], 1)

    @unittest.skipIf(not hasattr(builtins, "ExceptionGroup"), "Python before 3.11")
    def test_exception_group(self):
        """A group arrives as one, from two levels below; a type that is not known here as what is known of it."""
        def several(args):
            class Local(Exception):
                pass
            raise ExceptionGroup("all of it", [ValueError("one"), ExceptionGroup("deep", [KeyError("k")]), Local("l"), Mismatch("m", 1, 2)])

        w4, l3 = Pto.Worker(level=4), Pto.Worker(level=3, sub_workers=1)
        sub = l3.register(several)
        below = w4.register(lambda orch, args, config: orch.submit_sub(sub))
        w4.add_worker(l3)
        with w4, self.assertRaises(ExceptionGroup) as caught:
            w4.run(lambda orch: orch.submit_next_level(below))
        group = caught.exception
        self.assertEqual((group.message, len(group.exceptions)), ("all of it", 4))
        self.assertEqual(repr(group.exceptions[0]), "ValueError('one')")
        self.assertEqual((group.exceptions[1].message, repr(group.exceptions[1].exceptions)), ("deep", "(KeyError('k'),)"))
        self.assertIsInstance(group.exceptions[2], RuntimeError)
        self.assertRegex(str(group.exceptions[2]), r"several\.<locals>\.Local: l$")
        self.assertEqual((type(group.exceptions[3]), group.exceptions[3].args), (Mismatch, ("m", 1, 2)))

    def raised_below(self, make):
        """What the parent raises for what two processes below it have raised, of SUB workers and of orchestrations."""
        def sub(args):
            raise make()

        def below(orch, args, config):
            raise make()

        w4, l3 = Pto.Worker(level=4), Pto.Worker(level=3, sub_workers=1)
        sub = l3.register(sub)
        through = w4.register(lambda orch, args, config: orch.submit_sub(sub))
        below = w4.register(below)
        w4.add_worker(l3)
        with w4:
            for handle in through, below:
                try:
                    w4.run(lambda orch: orch.submit_next_level(handle))
                    self.fail("nothing was raised")
                except Exception as exception:
                    yield exception

    def test_exception_whole(self):
        """Of its class, with all its arguments, attributes and notes, however many lines it says."""
        def mismatch():
            exception = Mismatch("y", [1, 2.5, "\u00e9"], {"z": (3,)}, where=b"\0\xff")
            exception.more = complex(1, 2)
            return exception

        for exception in self.raised_below(mismatch):
            self.assertIs(type(exception), Mismatch)
            self.assertEqual(exception.args, ("y", [1, 2.5, "\u00e9"], {"z": (3,)}))
            self.assertEqual((exception.wanted, exception.where, exception.more), ([1, 2.5, "\u00e9"], b"\0\xff", complex(1, 2)))
            self.assertEqual(str(exception), "y: {'z': (3,)},\nbut [1, 2.5, '\u00e9'] is wanted")
            self.assertIn("L4/0/L3/0", exception.__cause__.message)
        for exception in self.raised_below(lambda: FileNotFoundError(2, "nothing there", "/a/b")):
            self.assertEqual((exception.errno, exception.strerror, exception.filename), (2, "nothing there", "/a/b"))
        for exception in self.raised_below(lambda: UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "why")):
            self.assertEqual((exception.object, exception.start, exception.reason), (b"a\xff", 1, "why"))
        for exception in self.raised_below(lambda: ValueError("a line\n" * 100, 7)):  # the text is cut, its arguments are not
            self.assertEqual(exception.args, ("a line\n" * 100, 7))

    def test_exception_with_a_constructor(self):
        """With all attributes that have a pickle, whatever its constructor takes, of a class that is local, and in a group."""
        class Local(Diverged):
            pass

        for exception in self.raised_below(lambda: Diverged(3, 7.5, [1, 2])):
            self.assertIs(type(exception), Diverged)
            self.assertEqual((exception.args, exception.step, exception.value, exception.more), (("diverged at step 3",), 3, 7.5, [1, 2]))
        for exception in self.raised_below(lambda: Diverged(3, 7.5, threading.Lock())):
            self.assertEqual((type(exception), exception.step, exception.value, hasattr(exception, "more")), (Diverged, 3, 7.5, False))
        for exception in self.raised_below(lambda: Local(4, "x")):
            self.assertEqual((type(exception), str(exception), exception.step, exception.value), (Local, "diverged at step 4", 4, "x"))
        for exception in self.raised_below(lambda: Missing(5)):
            self.assertEqual((type(exception), exception.errno, exception.filename, exception.step), (Missing, 2, "/a/5", 5))
        if hasattr(builtins, "ExceptionGroup"):
            for group in self.raised_below(lambda: builtins.ExceptionGroup("all", [Diverged(6, 1), Local(7, 2)])):
                self.assertEqual([(type(each), each.step, each.value) for each in group.exceptions], [(Diverged, 6, 1), (Local, 7, 2)])

    def test_exception_in_part(self):
        """What has no pickle, one that is too long, and one that can not be made here, arrive as their class and text."""
        for exception in self.raised_below(lambda: ValueError("locked", threading.Lock())):
            self.assertIs(type(exception), ValueError)
            self.assertRegex(str(exception), "^\\('locked', <unlocked _thread.lock")
        for exception in self.raised_below(lambda: ValueError("long", bytes(5000))):
            self.assertIs(type(exception), ValueError)
            self.assertTrue(str(exception).startswith("('long', b'"))
        for exception in self.raised_below(lambda: Deep("down")):
            self.assertIs(type(exception), Deep)
            self.assertEqual(str(exception), "down")
        for exception in self.raised_below(lambda: Refused(3)):
            self.assertIsInstance(exception, Refused)
            self.assertEqual(str(exception), "refused 3 times")

    def test_exception_of_no_class_here(self):
        """It is a Pto.Error, and its traceback below is a note of it, as of all others."""
        def local():
            class Local(Exception):
                pass
            return Local("of here")

        for make, said in (local, "Local: of here"), (lambda: SystemExit(3), "SystemExit: 3"), (lambda: GeneratorExit("x"), "GeneratorExit: x"):
            for error in self.raised_below(make):
                self.assertIs(type(error), Pto.Error)
                self.assertIn(said, error.message)
                if hasattr(error, "add_note"):
                    self.assertRegex(error.__notes__[0], "Raised in a child, traceback:\n(.*\n)* .*line")

    def test_exception_s_cause(self):
        """The chain is told with the traceback."""
        def raise_it():
            try:
                raise KeyError("first")
            except KeyError as error:
                raise Mismatch("x", 1, 2) from error

        def chained():
            try:
                raise_it()
            except Mismatch as error:
                return error

        for exception in self.raised_below(chained):
            self.assertIs(type(exception), Mismatch)
            if hasattr(exception, "add_note"):
                note, = exception.__notes__
                self.assertIn("KeyError: 'first'", note)
                self.assertIn("direct cause", note)

    def test_errors_are_glib_s(self):
        """What others print of an error of theirs is none of our business."""
        self.assertEqual(str(GLib.Error("m", "d", 3)), "d: m (3)")

    def test_exception_in_orchestrations(self):
        error = RuntimeError("my own")

        def raise_it(orch, args, config):
            raise error

        with Pto.Worker(level=3) as host:
            try:
                host.run(raise_it)
                self.fail("nothing was raised")
            except RuntimeError as caught:
                self.assertIs(caught, error)
                self.assertIn("in raise_it", "".join(traceback.format_tb(caught.__traceback__)))
        w4, l3 = Pto.Worker(level=4), Pto.Worker(level=3)
        handle = w4.register(raise_it)
        w4.add_worker(l3)
        with w4, self.assertRaises(RuntimeError) as caught:
            w4.run(lambda orch: orch.submit_next_level(handle))
        self.assertIsNot(caught.exception, error)
        self.assertEqual(str(caught.exception), "my own")
        self.assertIn("L4/0/L3/0", caught.exception.__cause__.message)

    def test_cause(self):
        """What an exception was raised from, it still is."""
        def graph(orch):
            raise RuntimeError("above") from LookupError("below")

        with Pto.Worker(level=3) as host, self.assertRaises(RuntimeError) as caught:
            host.run(graph)
        self.assertEqual(repr(caught.exception.__cause__), "LookupError('below')")

    def test_hints(self):
        """What a beginner gets wrong is answered with what to write instead."""
        with self.assertRaisesRegex(TypeError, r'worker\.set_parameter\("task-timeout", "200"\)'):
            Pto.Worker(level=3, task_timeout=200)
        with self.assertRaisesRegex(TypeError, "float32"):
            Pto.Tensor.of(np.zeros(3, complex))
        with Pto.Worker(level=3, sub_workers=1) as host:
            with self.assertRaisesRegex(GLib.Error, "^task-timeout: "):
                host.set_parameter("task-timeout", "long")
            with self.assertRaisesRegex(TypeError, r"worker\.register\(\) it first"):
                host.run(lambda orch: orch.submit_sub(lambda: None))
        with Pto.Worker(level=3, sub_workers=1) as host:
            host.set_parameter("task-timeout", 200)
            self.assertEqual(host.dup_parameter("task-timeout"), "200")
            add = host.register(lambda args: None)
            with self.assertRaisesRegex(TypeError, r"argument 1: .* x\.read\(\)"):
                host.run(lambda orch, x: orch.submit_sub(add, [x.read(), x]), self.board)

    def slow_compiler(self):
        """A directory, and a compiler in CC that takes as many seconds to compile as a file "slow" there says, once it is there."""
        directory = tempfile.TemporaryDirectory(prefix="pto-slow-")
        self.addCleanup(directory.cleanup)
        place = pathlib.Path(directory.name)
        (place / "cc").write_text(f'#!/bin/sh\ncase " $* " in *" -shared "*) if test -e {place}/slow; then : >{place}/began; '
                                  f'sleep "$(cat {place}/slow)"; fi ;; esac\nexec cc "$@"\n')
        (place / "cc").chmod(0o755)
        before = os.environ.get("CC")
        os.environ["CC"] = str(place / "cc")
        self.addCleanup(lambda: os.environ.pop("CC") if before is None else os.environ.__setitem__("CC", before))
        return place

    def kernel_of(self, place, name):
        """Of a source that no cache has."""
        path = place / (name + ".c")
        path.write_text(f'#include "tensor.h"\nconst char *path_of_{name} = "{path}";\nvoid kernel_entry (int64_t *args)\n{{\n'
                        "  const TensorData *to = (const TensorData *) args[1];\n  ((float *) to->buffer.addr)[0] = args[2];\n}\n")
        return Pto.Callable.kernel(str(path))

    def test_compiling_is_a_sign_of_life(self):
        """A kernel that is built inside of a task may take longer than its child may be silent: also two levels below, and in a
        function that builds one."""
        place = self.slow_compiler()
        (place / "graph.c").write_text(sources_helper.one_task(5))
        chips = []
        for level in 3, 4:
            chips.append(Pto.ChipOrchestration.new(str(place / "graph.c"), None))
            chips[-1].add_kernel(0, "five", self.kernel_of(place, f"five{level}"))
        other = self.kernel_of(place, "other")
        checked = Pto.CallConfig(enable_access_check=1)
        x, y = Pto.Buffer.array(1), Pto.Buffer.array(1)
        with Pto.Worker(level=3, devices=1, sub_workers=1) as host:
            host.set_parameter("task-timeout", 500)
            part, build = host.register(chips[0]), host.register(lambda args: other.build(None))
            host.run(lambda orch: None)
            (place / "slow").write_text("2")
            host.run(lambda orch, x, y: orch.submit_next_level(part, [x.read(), y.write_existing()], config=checked), x, y)
            self.assertEqual(y[0], 5)
            host.run(lambda orch: orch.submit_sub(build))
        (place / "slow").unlink()
        y[0] = 0
        l3 = Pto.Worker(level=3, devices=1)
        part = l3.register(chips[1])
        with Pto.Worker(level=4) as w4:
            for worker in l3, w4:
                worker.set_parameter("task-timeout", 500)

            def inner(orch, args, config):
                orch.submit_next_level(part, [args.get_tensor(0).read(), args.get_tensor(1).write_existing()], config=checked)
            handle = w4.register(inner)
            w4.add_worker(l3)
            w4.run(lambda orch: None)
            (place / "slow").write_text("2")
            w4.run(lambda orch, x, y: orch.submit_next_level(handle, [x.read(), y.write_existing()]), x, y)
            self.assertEqual(y[0], 5)

    def test_compiling_is_cancelled(self):
        """With the task that needs it: its child need not be ended for that."""
        place = self.slow_compiler()
        other = self.kernel_of(place, "other")
        with Pto.Worker(level=3, sub_workers=1) as host:
            build = host.register(lambda args: other.build(None))

            def where():
                self.board[0] = os.getpid()
            here = host.register(where)
            host.run(lambda orch: orch.submit_sub(here))
            process = self.board[0]
            (place / "slow").write_text("600")
            cancellable = Gio.Cancellable()

            def cancel():
                deadline = time.monotonic() + 60
                while not (place / "began").exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                cancellable.cancel()
            thread = threading.Thread(target=cancel)
            thread.start()
            with self.assertRaises(GLib.Error) as caught:
                host.run(lambda orch: orch.submit_sub(build), cancellable=cancellable)
            thread.join()
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), caught.exception)
            host.run(lambda orch: orch.submit_sub(here))
            self.assertEqual(self.board[0], process)

    def test_late_registrations(self):
        with Pto.Worker(level=3, sub_workers=2) as host:
            host.init()
            imported = host.register(levels_helper.add_seven)
            self.assertEqual(imported.get_callable().get_source(), Pto.CallableSource.IMPORT)
            closure = host.register(lambda args: args[0].__iadd__(1))
            self.assertEqual(closure.get_callable().get_source(), Pto.CallableSource.CLOSURE)

            def graph(orch, x):
                for handle in (imported, closure):
                    for worker in (0, 1):
                        orch.submit_sub(handle, [x.update()], worker=worker)

            host.run(graph, self.board)
            self.assertEqual(self.board[0], 2 * 7 + 2 * 1)
            missing = Pto.ImportedFunction.new(Pto.CallableKind.SUB, "levels_helper:no_such_name")
            with self.assertRaises(GLib.Error) as caught:
                host.register(missing)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.LOAD))
            self.assertIn("no_such_name", caught.exception.message)

    def test_kinds(self):
        """What a function is follows from what it takes."""
        kinds = Pto.CallableKind
        for function, kind in ((lambda: None, kinds.SUB), (lambda args: None, kinds.SUB),
                               (lambda orch, args, config: None, kinds.ORCHESTRATION)):
            self.assertEqual(Pto.Callable.function(function).get_kind(), kind)
        with self.assertRaises(TypeError):
            Pto.Callable.function(lambda *args: None)
        self.assertEqual(Pto.Callable.function(lambda *args: None, kinds.SUB).get_kind(), kinds.SUB)

    def test_kind_that_was_guessed(self):
        """A SUB function of two parameters is taken for an orchestration: who submits it is told why, and what to do."""
        def total(x, out):
            out[0] = x.sum()

        with Pto.Worker(level=3, sub_workers=1) as host:
            guessed, said = host.register(total), host.register(Pto.Callable.function(lambda orch: None, Pto.CallableKind.ORCHESTRATION))
            for submit in (lambda orch: orch.submit_sub(guessed)), (lambda orch: orch.submit_sub_group(guessed, [[]])):
                with self.assertRaisesRegex(Pto.InvalidArgsError, '"total" is no SUB function.* with 2 parameters.*@Pto.sub.*CallableKind.SUB'):
                    host.run(submit)
            with self.assertRaises(Pto.InvalidArgsError) as caught:
                host.run(lambda orch: orch.submit_sub(said))
            self.assertNotIn("@Pto.sub", caught.exception.message)

    def test_children_that_run(self):
        """What is below a worker that has started has started, too, wherever it is."""
        host = Pto.Worker(level=3, devices=1)
        (child,) = host.children
        self.assertEqual(repr(child), "<Pto.Worker: L3/0/L2/0: a2a3sim, new>")
        with host:
            host.start()
            self.assertEqual(repr(child), "<Pto.Worker: L3/0/L2/0: a2a3sim, ready>")
        self.assertIn("closed", repr(child))

    def test_group(self):
        """Every member waits for all others: they are there at one time."""
        def meet(args):
            args[0][args[1]] = 1
            while not args[0][:3].all() and not args.is_cancelled():
                time.sleep(0.0001)

        with Pto.Worker(level=3, sub_workers=3) as host:
            handle = host.register(meet)
            host.run(lambda orch, x: orch.submit_sub_group(handle, [[x.no_dep(), i] for i in range(3)],
                                                           workers=[2, -1, 0]), self.board)
        self.assertEqual(list(self.board[:3]), [1, 1, 1])

    def test_interrupt(self):
        """Ctrl-C ends a run that waits for a child, and the next run works."""
        def hang(args):
            args[0][0] = 1
            while True:
                time.sleep(1)

        def interrupt():
            while self.board[0] == 0:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(hang)
            fine = host.register(lambda args: args[0].__setitem__(1, 1))
            host.init()
            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
                time.sleep(10)  # where the interpreter gets round to raising it, at the latest
            thread.join()
            host.run(lambda orch, x: orch.submit_sub(fine, [x.update()]), self.board)
        self.assertEqual(self.board[1], 1)

    def test_interrupt_chip(self):
        """Seconds of kernels are left: the main thread may be the one that runs them."""
        source = """
#include "tensor.h"
#include <time.h>
void kernel_entry (int64_t *args)
{
  const TensorData *board = (const TensorData *) args[0];
  int64_t *words = (int64_t *) board->buffer.addr + board->start_offset;
  struct timespec t = { 0, 5000000 };
  __atomic_fetch_add (&words[0], 1, __ATOMIC_SEQ_CST);
  nanosleep (&t, 0);
}
"""
        for backend in "par", "det", "threads":
            with self.subTest(backend), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "step.c")
                with open(path, "w") as file:
                    file.write(source)
                kernel = Pto.Kernel.new(Pto.CoreType.AIV, path, None)
                submitted = threading.Event()
                self.board[:] = 0

                def graph(orch, x, n):
                    for _ in range(n):
                        orch.submit(kernel, [x.no_dep() if backend == "par" else x.update()])
                    submitted.set()

                def interrupt():
                    submitted.wait()
                    while self.board[0] < 5:
                        time.sleep(0.001)
                    os.kill(os.getpid(), signal.SIGINT)

                with Pto.Worker.new_chip("a2a3sim") as chip:
                    chip.set_parameter("backend", backend)
                    thread = threading.Thread(target=interrupt)
                    thread.start()
                    with self.assertRaises(KeyboardInterrupt):
                        chip.run(graph, self.board, 400)
                        time.sleep(10)  # where the interpreter gets round to raising it, at the latest
                    thread.join()
                    self.assertLess(self.board[0], 300)
                    began = self.board[0]
                    chip.run(graph, self.board, 7)
                    self.assertEqual(self.board[0], began + 7)

    def test_interrupt_is_over(self):
        """What tells of a Ctrl-C is slow, and the function was interrupted at once: the next run is not cancelled."""
        class Slow:
            def __init__(self, reader):
                self.reader = reader

            def recv(self, size):
                data = self.reader.recv(size)
                time.sleep(0.1)
                return data

        def interrupted(orch):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

        def interrupt(chip):
            with self.assertRaises(KeyboardInterrupt):
                chip.run(interrupted)

        with Pto.Worker(platform="a2a3sim") as chip:
            chip.run(lambda orch: None)
            interrupts = sys.modules["gi.overrides.PtoInterrupts"]._interrupts[0]
            interrupts.reader = Slow(interrupts.reader)
            try:
                for _ in range(3):
                    interrupt(chip)
                    cancellable = Gio.Cancellable()
                    chip.run(lambda orch: time.sleep(0.3), cancellable=cancellable)
                    self.assertFalse(cancellable.is_cancelled())
            finally:
                interrupts.reader = interrupts.reader.reader

    def test_cancellable(self):
        cancellable = Gio.Cancellable()
        cancellable.cancel()
        with Pto.Worker(level=3, sub_workers=1) as host:
            host.init()
            with self.assertRaises(GLib.Error) as caught:
                host.run(lambda orch: True, cancellable=cancellable)
            self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))

    def test_fork_hooks(self):
        """Children are made by os.fork(), so that the interpreter in them is a whole one."""
        def look(args):
            args[0][0] = at_fork[-1] == os.getpid()
            thread = threading.Thread(target=lambda: args[0].__setitem__(1, 1))
            thread.start()
            thread.join()

        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(look)
            host.run(lambda orch, x: orch.submit_sub(handle, [x.update()]), self.board)
        self.assertEqual(list(self.board[:2]), [1, 1])

    def test_busy_threads(self):
        """Other threads of the program hold the interpreter's lock now and then while children are made."""
        stop = threading.Event()
        threads = [threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                with Pto.Worker(level=3, sub_workers=2) as host:
                    handle = host.register(lambda args: args[0].__iadd__(1))
                    host.run(lambda orch, x: [orch.submit_sub(handle, [x.update()]) for _ in range(4)] and None, self.board)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.board[0], 20)

    def test_printed_once(self):
        """What a program has printed and not flushed, and what a child prints, is there once, also in a pipe, where Python keeps it."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        program = ("import sys, gi; gi.require_version('Pto', '1')\n"
                   "from gi.repository import Pto\n"
                   "import atexit; atexit.register(print, 'at the end')\n"
                   "print('before')\n"
                   "print('and there', end='', file=sys.stderr)\n"
                   "with Pto.Worker(level=3, sub_workers=2) as host:\n"
                   "    handle = host.register(lambda: print('in a child'))\n"
                   "    host.run(lambda orch: orch.submit_sub(handle))\n"
                   "print('after')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, "and there"))
        self.assertEqual(sorted(done.stdout.split("\n")), sorted(["before", "in a child", "after", "at the end", ""]))

    def test_chip(self):
        """Level 2 in the same style: arrays in, graph of their tensors, nothing copied."""
        add = Pto.Callable.kernel(os.path.join(examples, "vector", "kernels", "add.c"))
        a, b, f = (np.full(256, value, "f4") for value in (2, 3, 0))

        def graph(orch, x, y, out):
            with orch.scope():
                c = orch.tensor(x.shape, x.dtype)
                orch.submit(add, x.read(), y.read(), c.write())
                orch.submit(add, c.read(), y.read(), out.write_existing())

        with Pto.Worker(platform="a2a3sim") as chip:
            chip.run(graph, a, b, f)
        self.assertTrue((f == 8).all())


tap.main()
