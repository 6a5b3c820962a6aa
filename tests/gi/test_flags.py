# test_flags.py: for which machine is a source compiled, and with what else that Python says?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import subprocess
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

# A compiler to which "native" is what a file says, and which writes down how it is called.
COMPILER = """#!/bin/sh
here=${0%/*}
echo "$*" >> "$here/log"
case "$*" in
*-dM*) test -s "$here/machine" && cat "$here/machine"; exit ;;
esac
for word; do
  shift
  case "$word" in -march=native|-mcpu=native) ;; *) set -- "$@" "$word" ;; esac
done
exec cc "$@"
"""
KERNEL = "void kernel_entry (long *args) { }\n"
BUILD = """
import gi, sys
gi.require_version("Pto", "1")
from gi.repository import Pto
Pto.Callable.kernel(sys.argv[1], flags=sys.argv[2]).build()
"""


class Flags(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.kernel = self.write("k.c", KERNEL)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def build_elsewhere(self, machine, flags, **environment):
        """On a machine of that kind, which shares compiler and cache with the others: how it was compiled, None if it was not."""
        self.write("machine", machine)
        self.write("log", "")
        clean = {name: value for name, value in os.environ.items() if name not in ("CFLAGS", "CXXFLAGS")}
        subprocess.run([sys.executable, "-c", BUILD, self.kernel, flags], check=True, timeout=100,
                       env={**clean, "CC": self.compiler, "XDG_CACHE_HOME": self.directory, **environment})
        with open(self.path("log"), encoding="utf-8") as file:
            compiled = [line.split() for line in file if "-shared" in line]
        self.assertLessEqual(len(compiled), 1)
        return compiled[0] if compiled else None

    def test_machine(self):
        """Code is for this machine unless another one is named; on another one it is built anew."""
        self.compiler = self.write("cc", COMPILER)
        os.chmod(self.compiler, 0o700)
        small, large, unknown = "#define SMALL 1\n", "#define LARGE 1\n", ""
        words = self.build_elsewhere(small, "")
        self.assertEqual(words[:3] + [word for word in words if "=native" in word],
                         ["-std=gnu17", "-O2", "-ffp-contract=off", "-march=native"])
        self.assertIsNone(self.build_elsewhere(small, ""))
        self.assertIn("-march=native", self.build_elsewhere(large, ""))
        self.assertIsNone(self.build_elsewhere(small, ""))
        self.assertIsNone(self.build_elsewhere(large, ""))
        # What is named is the same everywhere, whoever names it.
        words = self.build_elsewhere(small, "-march=x86-64")
        self.assertNotIn("-march=native", words)
        self.assertIsNone(self.build_elsewhere(large, "-march=x86-64"))
        self.assertIsNone(self.build_elsewhere(large, "", CFLAGS="-march=x86-64"))
        self.assertNotIn("-march=native", self.build_elsewhere(large, "", CC=self.compiler + " -march=x86-64"))
        # The other word for it.
        self.assertNotIn("-march=native", self.build_elsewhere(small, "-mcpu=native"))
        self.assertIn("-mcpu=native", self.build_elsewhere(large, "-mcpu=native"))
        self.assertIsNone(self.build_elsewhere(small, "-mcpu=native"))
        # A compiler that does not know it is not asked for it; where somebody else does, nothing is kept.
        words = self.build_elsewhere(unknown, "")
        self.assertFalse([word for word in words if "native" in word])
        self.assertIsNone(self.build_elsewhere(unknown, ""))
        for _ in range(2):
            self.assertIn("-mcpu=native", self.build_elsewhere(unknown, "-mcpu=native"))

    def test_flags_are_part_of_the_key(self):
        self.compiler = self.write("cc", COMPILER)
        os.chmod(self.compiler, 0o700)
        machine = "#define SMALL 1\n"
        self.assertIsNotNone(self.build_elsewhere(machine, ""))
        for flags, environment in (("-O3", {}), ("", {"CFLAGS": "-O1"}), ("-ffp-contract=fast", {})):
            words = self.build_elsewhere(machine, flags, **environment)
            self.assertGreater(words.index(flags or "-O1"), words.index("-ffp-contract=off"))  # the later one holds
            self.assertIsNone(self.build_elsewhere(machine, flags, **environment))
        self.assertIsNone(self.build_elsewhere(machine, ""))

    def test_attributes(self):
        """Texts and lists, which raise what a property in C can only warn of."""
        kernel = Pto.Callable.kernel(self.kernel)
        self.assertIsNone(kernel.compiler_flags or None)
        kernel.compiler_flags = "-O3 '-DTEXT=\"a b\"'"
        self.assertEqual(kernel.compiler_flags, ["-O3", '-DTEXT="a b"'])
        kernel.include_dirs = self.directory
        self.assertEqual(kernel.include_dirs, [self.directory])
        with self.assertRaisesRegex(Pto.InvalidArgsError, "the flag -c can not be used"):
            kernel.compiler_flags = ["-c"]
        with self.assertRaisesRegex(Pto.NotFoundError, "no such directory to include from"):
            kernel.include_dirs = [self.path("nowhere")]
        self.assertEqual((kernel.compiler_flags, kernel.include_dirs), (["-O3", '-DTEXT="a b"'], [self.directory]))
        kernel.compiler_flags = None
        kernel.include_dirs = []
        self.assertFalse(kernel.compiler_flags or kernel.include_dirs)


tap.main()
