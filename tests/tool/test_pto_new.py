#!/usr/bin/env python3
# test_pto_new.py: is what `pto new` writes the example of doc/own.md, and does it run?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import resource
import subprocess

import pto_test
from pto_test import DEADLINE, HERE, PROGRAM, PtoTest

PAGE = os.path.join(HERE, "..", "..", "doc", "own.md")
NAMES = ["pto.ini", "scale.c", "sixfold.c", "twice.c"]


class New(PtoTest):
    def files(self, directory="one"):
        found = {}
        for name in os.listdir(os.path.join(self.directory, directory)):
            with open(os.path.join(self.directory, directory, name), encoding="utf-8") as file:
                found[name] = file.read()
        return found

    def test_readme(self):
        """Each file as it stands there, and no other."""
        self.assertEqual(self.passes("new", "one"), f"one: scale.c twice.c sixfold.c pto.ini\nRun it: {PROGRAM} run one\n")
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        files = self.files()
        self.assertEqual(sorted(files), NAMES)
        for name, text in files.items():
            language = "ini" if name.endswith(".ini") else "c"
            self.assertEqual(page.count(f"\n```{language}\n{text}```\n"), 1, name)
            self.assertIn(name, text.splitlines()[0])

    def test_runs(self):
        self.passes("new", "one")
        result = self.gives("one")
        self.assertEqual((result["example"], result["passed"], result["max_abs_error"], result["tasks"], result["edges"]),
                         ("sixfold", True, 0, 2, 1))
        self.assertRegex(self.passes("run", "one", "--check=access"), r"(?m)^  accesses      as declared$")

    def test_empty(self):
        """One that is there, with a name that a shell would take apart."""
        os.mkdir(os.path.join(self.directory, "a b"))
        self.assertEqual(self.passes("new", "a b").splitlines()[1], f"Run it: {PROGRAM} run 'a b'")
        self.assertEqual(sorted(self.files("a b")), NAMES)

    def test_installed(self):
        """By its name where a shell finds it."""
        path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
        self.assertEqual(self.pto("new", "one", environment={"PATH": path}).stdout.splitlines()[1], "Run it: pto run one")

    def test_not_empty(self):
        """What is there stays, hidden files too."""
        os.mkdir(os.path.join(self.directory, "one"))
        self.write("one/.hidden", "mine")
        self.fails(3, ["one: it is not empty"], "new", "one")
        self.assertEqual(self.files(), {".hidden": "mine"})
        self.passes("new", "two")
        self.write("two/scale.c", "mine")
        self.fails(3, ["two: it is not empty"], "new", "two")
        self.assertEqual(self.files("two")["scale.c"], "mine")

    def test_no_directory(self):
        self.write("file", "mine")
        self.fails(3, ["file: it is no directory"], "new", "file")
        self.fails(3, ["no/where: can not be made: No such file or directory"], "new", "no/where")
        self.fails(2, ["pto new DIR"], "new")
        self.fails(2, ["pto new DIR"], "new", "")
        self.fails(2, ['"two"'], "new", "one", "two")
        self.assertEqual(os.listdir(self.directory), ["file"])

    def test_all_or_none(self):
        """The second file does not fit."""
        def prepare():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        with open(PAGE, encoding="utf-8") as file:
            sizes = {re.search(r"(\S+\.c):", text).group(1): len(text)
                     for text in re.findall(r"(?ms)^```c\n(.*?)^```$", file.read())}
        limit = sizes["scale.c"] + 1
        self.assertGreater(sizes["twice.c"], limit)
        os.mkdir(os.path.join(self.directory, "empty"))
        for directory in ("one", "empty"):
            result = subprocess.run([PROGRAM, "new", directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                    cwd=self.directory, env=self.environment, timeout=DEADLINE, preexec_fn=prepare, check=False)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (3, "", 1))
            self.assertIn("twice.c", result.stderr)
        self.assertEqual((os.listdir(self.directory), self.files("empty")), (["empty"], {}))


pto_test.tap.main()
