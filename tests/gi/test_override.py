# test_override.py: is somebody told whose language has found the library, but not its override?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the directory of the library's sources, gjs or nothing. What is installed is looked at by the test of that.
import os
import subprocess
import sys
import unittest

import tap

source, gjs = sys.argv[1:3]
PYTHON = 'import gi\ngi.require_version("Pto", "1")\nfrom gi.repository import Pto\n'
MISSING = "has found libpto, but not its override"


def say(command, **variables):
    """What a program writes to standard error, with no override but those that the variables name."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GJS_PATH")}
    done = subprocess.run(command, env={**env, **variables}, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{command} gave {done.returncode}: {done.stderr}")
    return done.stderr


class Override(unittest.TestCase):
    def test_python(self):
        """At the first type that a program touches, whichever it is, and once."""
        for name in ("Buffer", "CallConfig", "Callable", "TaskArgs", "Tensor", "Worker"):
            text = say([sys.executable, "-c", PYTHON + f"Pto.{name}"])
            self.assertEqual(text.count(MISSING), 1, (name, text))
            self.assertIn("gi/overrides/Pto.py", text)
            self.assertIn("PYTHONPATH", text)
        text = say([sys.executable, "-c", PYTHON + 'Pto.Buffer.new(8)\nPto.TaskArgs.new()\nPto.Worker.new_chip(None)'])
        self.assertEqual(text.count(MISSING), 1, text)

    def test_python_with_it(self):
        program = PYTHON + 'Pto.Callable.kernel\nwith Pto.Worker(platform="a2a3sim") as chip:\n    chip.init()'
        self.assertEqual(say([sys.executable, "-c", program], PYTHONPATH=source), "")

    def test_program_that_is_not_introspected(self):
        """Python is there, and PyGObject, but not for this library."""
        program = ("import ctypes\nfrom gi.repository import Gio\npto = ctypes.CDLL('libpto-1.so.0')\n"
                   "assert pto.pto_worker_get_type() and pto.pto_buffer_get_type()")
        self.assertEqual(say([sys.executable, "-c", program]), "")

    def test_javascript(self):
        if not gjs:
            self.skipTest("no gjs")
        text = say([gjs, "-c", "const {Pto} = imports.gi; Pto.Buffer.new(8); Pto.TaskArgs.new()"])
        self.assertEqual(text.count(MISSING), 1, text)
        self.assertIn("gjs-1.0/overrides/Pto.js", text)
        self.assertIn("XDG_DATA_DIRS", text)
        self.assertEqual(say([gjs, "-c", "imports.gi.Pto.Buffer.new(8)"], GJS_PATH=os.path.join(source, "gi")), "")


tap.main()
