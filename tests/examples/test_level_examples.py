# test_level_examples.py: do the programs of levels 3 and 4 compute what their references say, in C and in Python?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

PROGRAMS = {os.path.basename(path): path for path in sys.argv[1:]}
EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
PYTHON = os.environ["PTO_TEST_PYTHON"]
DECODE_STEP = (r"40 layers, 21840 tasks, \d+ edges, captured once, launched 100 times: [\d.]+ ms a step, [\d.]+ as an "
               "orchestration")


class LevelExamples(unittest.TestCase):
    def passes(self, pattern, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, "^" + pattern + ": PASS\n$")
        return done.stdout

    def script(self, path, pattern):
        if PYTHON == "":
            self.skipTest("no Python with gi")
        if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no numpy")
        return self.passes(pattern, PYTHON, os.path.join(EXAMPLES, path))

    def program(self, name, pattern, *words):
        return self.passes(pattern, PROGRAMS["example-" + name], *(os.path.join(EXAMPLES, *path) for path in words))

    def test_two_chips_c(self):
        self.program("two-chips", r"two chips and a SUB worker: [\d.]+, expected [\d.]+", ("two-chips", "partial-sum"))

    def test_two_chips_python(self):
        self.script("two-chips/two_chips.py", r"two chips and a SUB worker: [\d.]+, expected [\d.]+")

    def test_group_c(self):
        self.program("group", "running sums by a group of 4: the last of 4096 is 4093")

    def test_group_python(self):
        self.script("group/group.py", "running sums by a group of 4: the last of 4096 is 4093")

    def test_tensor_parallel_c(self):
        out = self.program("tensor-parallel", r"3 layers on 2 chips, 9 tasks, greatest error \S+",
                           ("tensor-parallel", "feed-forward"), ("bgemm", "kernels", "gemm.c"))
        self.assertLess(float(re.search(r"error (\S+):", out).group(1)), 1e-4)

    def test_tensor_parallel_python(self):
        out = self.script("tensor-parallel/tensor_parallel.py", r"3 layers on 2 chips, 9 tasks, greatest error \S+")
        self.assertLess(float(re.search(r"error (\S+):", out).group(1)), 1e-4)

    def test_recursion_c(self):
        self.program("recursion", "L4 -> L3 -> SUB: the function ran 1 time, in another process")

    def test_recursion_python(self):
        self.script("recursion/recursion.py", "L4 -> L3 -> SUB: the function ran 1 time, in another process")

    def test_worked_example_c(self):
        self.program("worked-example", "c = a . b on chip 0, 3 clusters of it", ("worked-example", "add"),
                     ("vector", "kernels", "add.c"))

    def test_worked_example_python(self):
        self.script("worked-example/worked_example.py", "c = a . b on chip 0, 3 clusters of it")

    def test_decode_step_c(self):
        self.program("decode-step", DECODE_STEP, ("decode-step", "step"))

    def test_decode_step_python(self):
        self.script("decode-step/decode_step.py", DECODE_STEP)

    def test_by_hand(self):
        self.program("by-hand", "4 tasks, 4 edges, built by hand, launched 3 times", ("vector", "kernels"))

    def test_readme(self):
        """The program for several chips that README.md shows."""
        if PYTHON == "":
            self.skipTest("no Python with gi")
        readme = os.environ["PTO_TEST_README"]
        with open(readme, encoding="utf-8") as file:
            program = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)[1]
        done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=100, check=False,
                              cwd=os.path.dirname(readme))
        self.assertEqual((done.returncode, done.stdout), (0, "1024.0\n"), done.stderr)

    def test_what_is_missing_is_named(self):
        done = subprocess.run([PROGRAMS["example-two-chips"], "/nowhere"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)


tap.main()
