#!/usr/bin/env python3
# test_pto_check.py: does `pto run --check=access` find who touched what it must not, and who wrote what is wrong?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_pto_check.py PROGRAM: prints TAP. PTO_TEST_EXAMPLES names the directory of the examples."""
import json
import os
import unittest

import pto_test
from pto_test import PtoTest, rows

ORCHESTRATION = "ex/orchestration/vector_orch.c"
KERNEL = "ex/kernels/add.c"
BACK_ENDS = ("par", "det", "threads")


class Check(PtoTest):
    def line_of(self, path, text):
        with open(os.path.join(self.directory, path), encoding="utf-8") as file:
            return next(i for i, line in enumerate(file, 1) if text in line)

    def spoil(self, code):
        """The kernel that adds does something at its end, too."""
        self.example()
        self.edit(KERNEL, "    r[i] = p[i] + q[i];\n", "    r[i] = p[i] + q[i];\n  " + code + "\n")

    def test_as_declared(self):
        for backend in BACK_ENDS:
            with self.subTest(backend=backend):
                table = rows(self.passes("run", os.path.join(pto_test.EXAMPLES, "vector"), "--check=access", "-b", backend))
                self.assertEqual(table["accesses"], "as declared")
        value = self.gives(os.path.join(pto_test.EXAMPLES, "vector"), "--check", "access")
        self.assertEqual((value["passed"], value["accesses"], value["first_bad_writer"]), (True, None, None))
        self.assertNotIn("accesses", self.gives(os.path.join(pto_test.EXAMPLES, "vector")))
        self.assertNotIn("accesses", self.gives(os.path.join(pto_test.EXAMPLES, "vector"), "--check", "none"))

    def test_lies(self):
        """Each names task, kernel, the line of the submit, argument, bytes, and what to do; the run's numbers are there."""
        for code, words in (
                ("((float *) p)[7] += 1;", ("wrote to bytes 28 to 31 of its argument 0 (INPUT, float32, from element 7)",
                                            ": give it as INOUT")),
                ("((char *) q)[65535] = 1;", ("wrote to byte 65535 of its argument 1 (INPUT, float32, from element 16383)",)),
                ("memset ((void *) q, 0, 8);", ("wrote to bytes 0 to 7 of its argument 1 (INPUT",))):
            for backend in BACK_ENDS:
                with self.subTest(code=code, backend=backend):
                    self.spoil(code)
                    place = f"ex/{ORCHESTRATION[3:]}:{self.line_of(ORCHESTRATION, 'pto2_rt_submit_task')}"
                    result = self.fails(1, ("task 0 of ring 1 (add), submitted at ", place, *words), "run", "ex",
                                        "--check=access", "-b", backend, lines=0)
                    table = rows(result.stdout)
                    self.assertEqual((table["tasks"], table["accesses"]), ("5", "not as declared"))
                    self.assertTrue(result.stderr.splitlines()[1].startswith("task 4 of ring 1 (add), submitted at "))
                    pto_test.shutil.rmtree(os.path.join(self.directory, "ex"))

    def test_output_read(self):
        self.spoil("")
        self.edit(KERNEL, "r[i] = p[i] + q[i];", "r[i] = p[i] + q[i] + 0 * r[n - 1 - i];")
        self.edit(KERNEL, "float *restrict r", "volatile float *r")
        result = self.fails(1, ("16384 of 16384 elements are wrong", "f[0]: nan instead of 47"), "run", "ex", "--check=access", lines=0)
        self.assertIn("task 0 of ring 1 (add), submitted at ", result.stderr.splitlines()[1])
        self.assertIn("read bytes 32768 to 65535 of its argument 2 (OUTPUT, float32, from element 8192) before it had written there",
                      result.stderr.splitlines()[1])

    def test_isolated(self):
        """Also of a chip in a process of its own, where only the last writer is not known."""
        self.spoil("((float *) p)[7] += 1;")
        result = self.fails(1, ("wrote to bytes 28 to 31 of its argument 0 (INPUT",), "run", "ex", "--check=access", "--set",
                            "isolate=1", lines=0)
        self.assertEqual(rows(result.stdout)["accesses"], "not as declared")

    def test_unordered(self):
        """A pair that no edge orders, on each back end, with what would order it."""
        self.example()
        with open(os.path.join(self.directory, ORCHESTRATION), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("make_input_param (", text)
        self.write(ORCHESTRATION, text.replace("make_input_param (", "make_no_dep_param ("))
        for backend in BACK_ENDS:
            with self.subTest(backend=backend):
                result = self.pto("run", "ex", "--check=access", "-b", backend)
                self.assertEqual(result.returncode, 1, result.stderr)
                for words in ("are in no order and touch the same bytes: the first writes bytes 0 to 65535 of its argument",
                              "(OUTPUT, float32, from element 0), the second reads", "(NO_DEP, float32, from element 0): give "
                              "argument ", " as INPUT"):
                    self.assertIn(words, result.stderr)

    def test_first_wrong_byte(self):
        """The task that wrote the first wrong element last."""
        self.spoil("if (n > 100 && p[0] > 20) r[99] += 1;")
        for backend in BACK_ENDS:
            with self.subTest(backend=backend):
                result = self.fails(1, ("f[99]: 48 instead of 47",), "run", "ex", "--check=access", "-b", backend, "--json")
                value = json.loads(result.stdout)
                self.assertIsNone(value["accesses"])
                self.assertRegex(value["first_bad_writer"],
                                 r"^task 4 of ring 1 \(add\), submitted at .*/vector_orch\.c:\d+, as byte 396 of its "
                                 r"argument 2 \(OUTPUT\w*, float32, from element 99\)$")
        table = rows(self.fails(1, (), "run", "ex", "--check=access").stdout)
        self.assertTrue(table["written by"].startswith("task 4 of ring 1 (add)"))

    def test_nobody_wrote(self):
        """Elements without a writer, elements written in part, and elements with an unknown writer."""
        self.example()
        self.edit(KERNEL, "r[i] = p[i] + q[i];", "if (i != 99 || p[0] < 20) r[i] = p[i] + q[i];")
        for backend in BACK_ENDS:
            result = self.fails(1, ("f[99]: ", " instead of 47"), "run", "ex", "--check=access", "-b", backend)
            self.assertEqual(rows(result.stdout)["written by"], "no task of the run")
        self.assertIsNone(json.loads(self.fails(1, (), "run", "ex", "--check=access", "--json").stdout)["first_bad_writer"])
        result = self.fails(1, (), "run", "ex", "--check=access", "--set", "isolate=1")
        self.assertEqual(rows(result.stdout)["written by"], "not known of a process of its own: --no-isolate")
        self.edit(KERNEL, "if (i != 99 || p[0] < 20) r[i] = p[i] + q[i];",
                  "if (i != 99 || p[0] < 20) r[i] = p[i] + q[i]; else ((volatile char *) (r + i))[3] = 0x70;")
        result = self.fails(1, ("f[99]: ", " instead of 47"), "run", "ex", "--check=access")
        self.assertRegex(rows(result.stdout)["written by"], r"^task 4 of ring 1 \(add\), submitted at .* as byte 399 of its argument 2")

    def test_built_before(self):
        """A kernel that somebody has compiled is taken at its word, and that is said."""
        self.example()
        pto_test.subprocess.run(["cc", "-shared", "-fPIC", "-I", os.environ["PTO_API_DIR"], "-o",
                                 os.path.join(self.directory, "ex/kernels/add.so"), os.path.join(self.directory, KERNEL)],
                                check=True)
        self.edit("ex/pto.ini", "source=kernels/add.c", "source=kernels/add.so")
        result = self.pto("run", "ex", "--check=access")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("it was not compiled to be checked: it is taken to touch what its arguments say", result.stderr + result.stdout)

    def test_past_memory(self):
        """A guard that a kernel has hurt: the run goes on, and the verdict is that of the check, whether it sees the kernel or not."""
        self.spoil("r[n] = 1;")
        source = os.path.join(self.directory, KERNEL)
        for built in False, True:
            if built:
                pto_test.subprocess.run(["cc", "-shared", "-fPIC", "-I", os.environ["PTO_API_DIR"], "-o", source[:-1] + "so", source],
                                        check=True)
                self.edit("ex/pto.ini", "source=kernels/add.c", "source=kernels/add.so")
            for more in (), ("--set", "isolate=1"):
                for backend in BACK_ENDS:
                    with self.subTest(built=built, more=more, backend=backend):
                        result = self.pto("run", "ex", "--check=access", "-b", backend, *more)
                        self.assertEqual(result.returncode, 1, result.stderr)
                        self.assertRegex(result.stderr, r"(?m)^(pto: .*: )?task \d of ring 1 \(add\) on core AIV.*wrote at least 4 bytes past")
                        self.assertEqual("wrote to bytes 65536 to 65539 of the memory of its argument 2" in result.stderr, not built, result.stderr)
                        table = rows(result.stdout)
                        self.assertEqual((table["tasks"], table["accesses"]), ("5", "not as declared"))
        # Without the check the run ends there.
        self.fails(3, ("(add) on core AIV", "wrote at least 4 bytes past"), "run", "ex")

    def test_usage(self):
        self.fails(2, ("--check: ", "none or access"), "run", os.path.join(pto_test.EXAMPLES, "vector"), "--check=memory")


pto_test.tap.main()
