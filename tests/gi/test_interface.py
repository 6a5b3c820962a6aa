# test_interface.py: is the same interface in the library, in its introspection data and in its headers?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: library, GIR, source directory of the library, build directory. The scanner drops what it can not parse and
# says so on standard error only, with status 0.
import os
import re
import subprocess
import sys
import tempfile
import unittest

import tap

library, gir, source, build = sys.argv[1:5]


class Interface(unittest.TestCase):
    def test_symbols_are_described(self):
        output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in output.splitlines()}
        with open(gir, encoding="utf-8") as file:
            text = file.read()
        functions = re.findall(r"<(?:function|method|constructor)\s[^>]*?c:identifier=\"(\w+)\"", text)
        types = re.findall(r"glib:get-type=\"(\w+)\"", text)
        self.assertEqual(exported, set(functions) | set(types))
        self.assertGreater(len(exported), 100)

    def test_types_are_described(self):
        with open(gir, encoding="utf-8") as file:
            text = file.read()
        described = set(re.findall(r"c:type=\"(Pto\w+)\"", text))
        for name in sorted(os.listdir(source)):
            if not re.fullmatch(r"pto-[a-z-]+\.h", name) or name.endswith("-private.h"):
                continue
            with open(os.path.join(source, name), encoding="utf-8") as file:
                header = file.read()
            declared = re.findall(r"^} (Pto\w+);", header, re.M) + re.findall(r"^typedef struct \w+ (Pto\w+);", header, re.M)
            for type_name in declared:
                self.assertIn(type_name, described, name)

    def test_scanner_is_silent(self):
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "pto/Pto-1.gir"], check=True,
                                  capture_output=True, text=True).stdout
        command = [line for line in commands.splitlines() if "g-ir-scanner" in line][-1]
        with tempfile.TemporaryDirectory() as directory:
            command = command.replace("--output pto/Pto-1.gir", "--output " + os.path.join(directory, "Pto-1.gir"))
            self.assertIn(directory, command)
            result = subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("syntax error", result.stderr)
        self.assertNotIn("Warning", result.stderr)


tap.main()
