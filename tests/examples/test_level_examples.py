# test_level_examples.py: do the examples that are programs of their own compute what their references say, in each language?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

PROGRAMS = {os.path.basename(path): path for path in sys.argv[1:]}
EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
ROOT = os.path.dirname(os.environ["PTO_TEST_README"])
PYTHON = os.environ["PTO_TEST_PYTHON"]
GJS = os.environ["PTO_TEST_GJS"]
DECODE_STEP = (r"40 layers, 21840 tasks, \d+ edges, captured once, launched 100 times: [\d.]+ ms a step, [\d.]+ as an "
               "orchestration")

DOING_NOTHING = dict.fromkeys(("CFLAGS", "CXXFLAGS"),
                              "-include " + shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nothing.h")))


class LevelExamples(unittest.TestCase):
    has_kernels = True

    def passes(self, pattern, *words):
        """And does not where kernels do nothing."""
        if self.has_kernels:
            idle = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **DOING_NOTHING})
            self.assertEqual((idle.returncode, idle.stderr), (1, ""), idle.stdout)
            self.assertRegex(idle.stdout, ": FAIL\n$")
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, "^" + pattern + ": PASS\n$")
        return done.stdout

    def script(self, path, pattern, *words):
        if PYTHON == "":
            self.skipTest("no Python with gi")
        if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no numpy")
        return self.passes(pattern, PYTHON, os.path.join(EXAMPLES, path), *words)

    def javascript(self, path, pattern):
        if GJS == "":
            self.skipTest("no gjs")
        return self.passes(pattern, GJS, "-m", os.path.join(EXAMPLES, path))

    def program(self, name, pattern, *words):
        if "example-" + name not in PROGRAMS:
            self.skipTest(f"{name} was not built: no compiler of its language")
        return self.passes(pattern, PROGRAMS["example-" + name], *(path[0] if path[0].startswith("--") else os.path.join(EXAMPLES, *path) for path in words))

    def test_two_chips_c(self):
        self.program("two-chips", r"two chips and a SUB worker: [\d.]+, expected [\d.]+", ("two-chips", "partial-sum"))

    def test_two_chips_python(self):
        self.script("two-chips/two_chips.py", r"two chips and a SUB worker: [\d.]+, expected [\d.]+")

    def test_group_c(self):
        self.has_kernels = False
        self.program("group", "running sums by a group of 4: the last of 4096 is 4093")

    def test_group_python(self):
        self.has_kernels = False
        self.script("group/group.py", "running sums by a group of 4: the last of 4096 is 4093")

    def test_tensor_parallel_c(self):
        out = self.program("tensor-parallel", r"3 layers on 2 chips, 9 tasks, greatest error \S+",
                           ("tensor-parallel", "feed-forward"), ("bgemm", "kernels", "gemm.c"))
        self.assertLess(float(re.search(r"error (\S+):", out).group(1)), 1e-4)

    def test_tensor_parallel_python(self):
        out = self.script("tensor-parallel/tensor_parallel.py", r"3 layers on 2 chips, 9 tasks, greatest error \S+")
        self.assertLess(float(re.search(r"error (\S+):", out).group(1)), 1e-4)

    def test_simulated(self):
        """The step on one virtual clock, as the program in Python and `pto trace` tell it."""
        with tempfile.TemporaryDirectory() as directory:
            record, step = (os.path.join(directory, name) for name in ("record.ptotrace", "step.ptotrace"))
            out = self.script("tensor-parallel/simulated.py", r"3 layers on 8 chips in one process, greatest error \S+; "
                              r"on one virtual clock: [\d.]+ us", "--record", record)
            settings = ["link-latency=2us", "link-bandwidth=56GB/s", "function=allreduce=linear:5000:0.02"]
            words = [os.environ["PTO_TEST_PROGRAM"], "trace", record, "simulate"]
            answer = subprocess.run([*words, step, *settings, "--json"], capture_output=True, text=True, timeout=100, check=True)
            elapsed = json.loads(answer.stdout)["elapsed_ns"]
            self.assertIn(f"clock: {elapsed / 1000:.3f} us:", out)
            again = subprocess.run([words[0], "trace", step, "--json"], capture_output=True, text=True, timeout=100, check=True)
            self.assertEqual(again.stdout, answer.stdout)
            for wrong, status, part in ((["link-latency=2"], 2, "simulate: link-latency=2: a time wanted"), ([], 3, 'function "allreduce"')):
                failed = subprocess.run([*words, step + "2.ptotrace", *wrong], capture_output=True, text=True, timeout=100, check=False)
                self.assertEqual((failed.returncode, failed.stderr.count("\n")), (status, 1))
                self.assertIn(part, failed.stderr)
                self.assertFalse(os.path.exists(step + "2.ptotrace"))

    def test_recursion_c(self):
        self.has_kernels = False
        self.program("recursion", "L4 -> L3 -> SUB: the function ran 1 time, in another process")

    def test_recursion_python(self):
        self.has_kernels = False
        self.script("recursion/recursion.py", "L4 -> L3 -> SUB: the function ran 1 time, in another process")

    def test_data_parallel(self):
        pattern = r"30 steps on 2 remote workers with 2 chips each: the mean squared error is \S+"
        for language, run in ("C", lambda: self.program("data-parallel", pattern, ("data-parallel", "gradient"), (os.environ["PTO_TEST_SHARD"],))), \
                ("Python", lambda: self.script("data-parallel/data_parallel.py", pattern)):
            with self.subTest(language):
                self.assertLess(float(re.search(r"error is (\S+):", run()).group(1)), 1e-6)

    def test_data_parallel_by_a_job(self):
        """Gradients are added up by MPI, at two addresses and as a file says."""
        self.has_kernels = False  # test_data_parallel() has looked
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun: install openmpi-bin")
        if not os.path.exists(os.path.join(os.path.dirname(os.environ["PTO_REMOTE"]), "pto-mpi-rank")):
            self.skipTest("this libpto was built without MPI: install libopenmpi-dev")
        pattern = r"30 steps on 2 ranks of a job with 2 chips each: the mean squared error is \S+"
        with tempfile.TemporaryDirectory() as directory, mock.patch.dict(os.environ, {
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": directory,
                "PATH": directory + os.pathsep + os.environ["PATH"]}):  # who tests may be root
            if PYTHON:
                os.symlink(PYTHON, os.path.join(directory, "python3"))  # the one that is in PATH need not be one with gi
            for language, run in (
                    ("C", lambda: self.program("data-parallel", pattern, ("--job",), ("data-parallel", "gradient"), (os.environ["PTO_TEST_SHARD"],))),
                    ("Python", lambda: self.script("data-parallel/data_parallel.py", pattern, "--job")),
                    ("a file", lambda: self.script("data-parallel/data_parallel.py", pattern, "--job", os.path.join(EXAMPLES, "data-parallel", "job.ini")))):
                self.assertLess(float(re.search(r"error is (\S+):", run()).group(1)), 1e-6, language)

    @unittest.skipUnless(PYTHON, "no Python with gi: who listens has none to import steps with")
    def test_cluster_file(self):
        """The workers are where a file says, begun by `pto cluster up`."""
        self.has_kernels = False  # what `pto cluster up` began compiles them
        with tempfile.TemporaryDirectory() as directory:
            file, bin_directory = os.path.join(directory, "example", "cluster.ini"), os.path.join(directory, "bin")
            shutil.copytree(os.path.join(EXAMPLES, "data-parallel"), os.path.dirname(file))
            os.mkdir(bin_directory)
            os.symlink(PYTHON, os.path.join(bin_directory, "python3"))  # the one that is in PATH need not be one with gi
            environment = dict(os.environ, XDG_RUNTIME_DIR=directory, XDG_STATE_HOME=directory,
                               PATH=bin_directory + os.pathsep + os.environ["PATH"])

            def cluster(what):
                subprocess.run([os.environ["PTO_TEST_PROGRAM"], "cluster", what, file], timeout=100, check=True, env=environment,
                               stdout=subprocess.DEVNULL)
            cluster("up")
            try:
                pattern = r"30 steps on 2 remote workers with 2 chips each: the mean squared error is \S+"
                self.program("data-parallel", pattern, ("data-parallel", "gradient"), (os.environ["PTO_TEST_SHARD"],), (file,))
                self.script("data-parallel/data_parallel.py", pattern, file)
            finally:
                cluster("down")
            self.assertFalse(os.path.exists(os.path.join(os.path.dirname(file), "shard.socket")))

    def test_remote_attention(self):
        pattern = r"2 layers of 4 heads on 2 remote workers with 2 chips each, greatest error \S+"
        for language, run in ("C", lambda: self.program("remote-attention", pattern, ("remote-attention", "heads"), ("bgemm", "kernels", "gemm.c"),
                                                        (os.environ["PTO_TEST_HEADS"],))), \
                ("Python", lambda: self.script("remote-attention/remote_attention.py", pattern)):
            with self.subTest(language):
                self.assertLess(float(re.search(r"error (\S+):", run()).group(1)), 1e-4)

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

    def test_vector_vala(self):
        self.program("vector-vala", "16384 elements, 5 tasks, 6 edges", ("vector", "kernels"))

    def test_vector_cplusplus(self):
        self.program("vector-cplusplus", "16384 elements, 5 tasks, 6 edges", ("vector", "kernels"))

    def test_javascript_chapter(self):
        """The program that doc/javascript.md begins with, with the kernel of doc/own.md."""
        if GJS == "":
            self.skipTest("no gjs")
        with tempfile.TemporaryDirectory() as directory:
            for name, page, pattern in (("scale.c", "own.md", r"```c\n(/\* scale\.c.*?)```"), ("six.js", "javascript.md", r"```js\n(.*?)```")):
                with open(os.path.join(ROOT, "doc", page), encoding="utf-8") as text, open(os.path.join(directory, name), "w", encoding="utf-8") as out:
                    out.write(re.search(pattern, text.read(), re.DOTALL).group(1))
            done = subprocess.run([GJS, "-m", "six.js"], capture_output=True, text=True, timeout=100, check=False, cwd=directory)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "6,6,6,6\n", ""))

    def test_vector_javascript(self):
        self.javascript("vector/vector.js", "16384 elements, 5 tasks, 6 edges")

    def test_attention_javascript(self):
        out = self.javascript("paged-attention/paged_attention.js", r"4 requests, 16 heads, 128 tasks, greatest error \S+")
        self.assertLess(float(re.search(r"error (\S+):", out).group(1)), 1e-5)

    def test_two_chips_javascript(self):
        self.javascript("two-chips/two_chips.js", r"two chips: 32610\.\d+, expected 32610\.880")

    def test_readme(self):
        """The program for several chips that doc/levels.md begins with."""
        if PYTHON == "":
            self.skipTest("no Python with gi")
        with open(os.path.join(ROOT, "doc", "levels.md"), encoding="utf-8") as file:
            program = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)[1]
        done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=100, check=False,
                              cwd=ROOT)
        self.assertEqual((done.returncode, done.stdout), (0, "1024.0\n"), done.stderr)

    def test_what_is_missing_is_named(self):
        done = subprocess.run([PROGRAMS["example-two-chips"], "/nonexistent/nowhere"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/nowhere", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)


tap.main()
