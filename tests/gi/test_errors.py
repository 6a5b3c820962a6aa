# test_errors.py: is what a call raises of the class of its code, and does all that was written before still catch it?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import copy
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

CORE = "{http://www.gtk.org/introspection/core/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
HERE = os.path.dirname(os.path.abspath(__file__))
FILL = os.path.join(HERE, "fill.c")


def fail(args):
    raise Pto.TamperedError("first line\nsecond line: \u00e9")


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.namespace = ElementTree.parse(os.environ["PTO_TEST_GIR"]).getroot().find(CORE + "namespace")

    def test_a_class_for_each_code(self):
        enumeration = self.namespace.find(f"{CORE}enumeration[@name='Error']")
        members = {member.get("name").upper(): member for member in enumeration.findall(CORE + "member")}
        self.assertGreater(len(members), 30)
        classes = {type_.CODE: type_ for type_ in (*Pto.Error.__subclasses__(), *Pto.Deadlock.__subclasses__())}
        self.assertEqual(len(classes), len(members))
        for name, member in members.items():
            code = getattr(Pto.Error, name)
            self.assertEqual(int(code), int(member.get("value")))
            type_ = classes[code]
            self.assertIs(getattr(Pto, type_.__name__), type_)
            said = " ".join(member.find(CORE + "doc").text.split())
            self.assertEqual(type_.__doc__.lower(), said.lower() + ".")
        self.assertIs(classes[Pto.Error.SCOPE_DEADLOCK], Pto.Deadlock)
        self.assertEqual({type_.__name__ for type_ in Pto.Deadlock.__subclasses__()},
                         {"DepPoolError", "HeapRingError", "TaskRingError"})
        self.assertIs(classes[Pto.Error.COMPILE], Pto.CompileError)
        self.assertIs(classes[Pto.Error.KERNEL_FAULT], Pto.KernelFaultError)

    def test_what_is_raised(self):
        with self.assertRaises(Pto.NotFoundError) as caught:
            Pto.Callable.kernel("/nowhere/x.c").build()
        error = caught.exception
        self.assertIsInstance(error, Pto.Error)
        self.assertIsInstance(error, GLib.Error)
        self.assertEqual((error.domain, error.code, error.message),
                         ("pto-error-quark", 204, "/nowhere/x.c: there is no such file"))
        self.assertTrue(error.matches(Pto.error_quark(), Pto.Error.NOT_FOUND))
        self.assertFalse(error.matches(Pto.error_quark(), Pto.Error.BUSY))
        self.assertEqual(str(error), "pto-error-quark: /nowhere/x.c: there is no such file (204)")
        self.assertEqual(repr(error), "Pto.NotFoundError('/nowhere/x.c: there is no such file')")
        try:
            Pto.Platform.lookup("nope")
        except GLib.Error as old:
            self.assertIs(type(old), Pto.NotFoundError)
        with self.assertRaises(Pto.NotFoundError):
            Pto.platform_lookup("nope")  # of no type
        with self.assertRaises(Pto.NotFoundError):
            Pto.Worker.new_chip("nope")  # a constructor

    def test_several_lines(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "bad.c")
            with open(path, "w") as file:
                file.write("void kernel_entry (long *args) { first (); \n second }\n")
            with self.assertRaises(Pto.CompileError) as caught:
                Pto.Callable.kernel(path).build()
        self.assertGreater(caught.exception.message.count("\n"), 1)
        self.assertIn("second", caught.exception.message)

    @unittest.skipUnless(np, "no NumPy")
    def test_runs(self):
        fill = Pto.Callable.kernel(FILL)

        def busy(orch):
            chip.run(busy)

        def stuck(orch, x):
            for _ in range(100):
                orch.submit(fill, x.update(), 1.0)

        def own(orch):
            raise mine

        x = Pto.Buffer.array(16)
        mine = Pto.ExplicitError("mine")
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.set_parameter("task-window", 16)
            with self.assertRaises(Pto.BusyError) as caught:
                chip.run(busy)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.BUSY))
            with self.assertRaises(Pto.ExplicitError) as caught:
                chip.run(own)
            self.assertIs(caught.exception, mine)
            with self.assertRaises(Pto.Deadlock) as caught:
                chip.run(stuck, x)
            self.assertIs(type(caught.exception), Pto.TaskRingError)
            with self.assertRaises(Pto.Deadlock):
                asyncio.run(chip.run_async(stuck, x))
            loop, raised = GLib.MainLoop(), []

            def done(worker, result):
                try:
                    worker.run_finish(result)
                except GLib.Error as error:
                    raised.append(error)
                loop.quit()

            chip.run_async(stuck, x, callback=done)
            loop.run()
            self.assertEqual([type(error) for error in raised], [Pto.TaskRingError])
        with self.assertRaises(Pto.ClosedError):
            chip.run(own)

    def test_of_children(self):
        with Pto.Worker(level=3, sub_workers=1) as host:
            sub = host.register(fail)
            with self.assertRaises(Pto.TamperedError) as caught:
                host.run(lambda orch: orch.submit_sub(sub))
        self.assertIn("first line\nsecond line: \u00e9", caught.exception.message)

    def test_every_function_that_throws(self):
        """None of them is PyGObject's own, which would raise a plain GLib.Error."""
        seen = 0
        for element in self.namespace.iter():
            if element.get("throws") != "1" or element.get("introspectable") == "0" or element.get("moved-to"):
                continue
            if element.tag in (CORE + "callback", CORE + "virtual-method"):
                continue
            owner = next((kind for kind in self.namespace if element in list(kind)), None)
            of = Pto if owner is None else getattr(Pto, owner.get("name"))
            if element.get("shadowed-by") is None:
                function = getattr(of, element.get("shadows", element.get("name")))
                self.assertFalse(hasattr(function, "can_throw_gerror"), element.get(C + "identifier"))
                seen += 1
        self.assertGreater(seen, 60)

    def test_other_domains(self):
        """GLib.Error is everybody's: it stays as it was."""
        with self.assertRaises(GLib.Error) as caught:
            Gio.File.new_for_path("/nowhere/x").load_contents(None)
        self.assertIs(type(caught.exception), GLib.Error)
        with self.assertRaises(GLib.Error) as caught:
            Pto.Trace.new_from_file("/nowhere/x")
        self.assertIs(type(caught.exception), GLib.Error)
        program = """if True:
            from gi.repository import GLib
            before = dict(vars(GLib.Error)), GLib.Error
            import gi
            gi.require_version("Pto", "1")
            from gi.repository import Pto
            Pto.Worker
            assert (dict(vars(GLib.Error)), GLib.Error) == before"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_codes_as_before(self):
        self.assertEqual(Pto.Error.BUSY, 206)
        self.assertEqual(Pto.Error.BUSY.value_nick, "busy")
        self.assertEqual(Pto.Error.quark(), Pto.error_quark())
        self.assertIs(type(Pto.Error(206)), type(Pto.Error.BUSY))
        self.assertEqual(Pto.Error(206), Pto.Error.BUSY)
        self.assertIn(206, Pto.Error.__enum_values__)

    def test_pickled_and_copied(self):
        with self.assertRaises(Pto.NotFoundError) as caught:
            Pto.Platform.lookup("no\nplatform")
        cases = [caught.exception, Pto.BusyError("two\nlines"), Pto.Error("a number of its own", code=9999)]
        for error in cases:
            for same in copy.copy(error), copy.deepcopy(error), error.copy(), pickle.loads(pickle.dumps(error)):
                self.assertIsNot(same, error)
                self.assertIs(type(same), type(error))
                self.assertEqual((same.message, same.domain, same.code), (error.message, error.domain, error.code))
        self.assertEqual(cases[2].code, 9999)
        program = ("import gi, pickle, sys\ngi.require_version('Pto', '1')\n"
                   "error = pickle.load(sys.stdin.buffer)\nprint(type(error).__name__, error.code, repr(error.message))")
        told = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(cases[1]), check=True, timeout=60,
                              capture_output=True)
        self.assertEqual(told.stdout.decode(), "BusyError 206 'two\\nlines'\n")


tap.main()
