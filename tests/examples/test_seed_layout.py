# test_seed_layout.py: does the seeds' runner take the seeds' layout, and do the Python examples work?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import subprocess
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
LAYOUT = os.path.join(EXAMPLES, "seed-layout")

try:
    import numpy  # noqa: F401
    HAVE_NUMPY = True
except ImportError:
    HAVE_NUMPY = False


def call(*words, **environment):
    return subprocess.run([sys.executable, *words], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=200, check=False)


def runner(directory, *words, **environment):
    return call(os.path.join(EXAMPLES, "run_example.py"), "-k", os.path.join(directory, "kernels"), "-g",
                os.path.join(directory, "golden.py"), "-p", "a2a3sim", *words, **environment)


@unittest.skipUnless(HAVE_NUMPY, "no NumPy")
class SeedLayout(unittest.TestCase):
    def passes(self, done, *lines):
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in (*lines, "TEST PASSED"):
            self.assertIn(line, done.stdout.splitlines())

    def test_vector(self):
        self.passes(runner(os.path.join(LAYOUT, "vector")),
                    "=== Building Runtime: tensormap_and_ringbuffer (platform: a2a3sim) ===",
                    "=== Comparing Results ===", "Comparing f: shape=(16384,), dtype=float32",
                    "  f: PASS (16384/16384 elements matched)")

    def test_all_cases(self):
        for example in ("vector", "batch_paged_attention"):
            with self.subTest(example=example):
                self.passes(runner(os.path.join(LAYOUT, example), "--all"))

    def test_det(self):
        self.passes(runner(os.path.join(LAYOUT, "vector"), "--backend", "det", "--seed", "3"))

    def test_case_from_environment(self):
        self.passes(runner(os.path.join(LAYOUT, "batch_paged_attention"), PA_CASE="CaseBatch256"),
                    "  out: PASS (65536/65536 elements matched)")

    def test_lengths_from_environment(self):
        self.passes(runner(os.path.join(LAYOUT, "batch_paged_attention"), "--case", "CaseVarLen",
                           PA_SEQ_LEN="5,17,33"))

    def test_without_environment(self):
        """As README.md shows it: nothing but a build directory beside the examples says where the library is."""
        build = os.path.join(EXAMPLES, "..", "build")
        if not os.path.exists(os.path.join(build, "pto", "Pto-1.typelib")):
            self.skipTest("the build directory is not ./build")
        clean = {k: v for k, v in os.environ.items()
                 if k not in ("PTO_API_DIR", "GI_TYPELIB_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")}
        vector = os.path.join(LAYOUT, "vector")
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "run_example.py"), "-k",
                               os.path.join(vector, "kernels"), "-g", os.path.join(vector, "golden.py"),
                               "-p", "a2a3sim"], env=clean, text=True, capture_output=True, timeout=200,
                              check=False)
        self.passes(done, "  f: PASS (16384/16384 elements matched)")

    def test_unknown_case(self):
        done = runner(os.path.join(LAYOUT, "vector"), "--case", "nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nosuch", done.stderr)

    def test_usage(self):
        self.assertEqual(call(os.path.join(EXAMPLES, "run_example.py")).returncode, 2)

    def spoilt(self, file, old, new):
        """The vector example with one text of one of its files replaced."""
        with tempfile.TemporaryDirectory() as directory:
            copy = os.path.join(directory, "vector")
            shutil.copytree(os.path.join(LAYOUT, "vector"), copy)
            with open(os.path.join(copy, file), encoding="utf-8") as stream:
                text = stream.read()
            self.assertIn(old, text)
            with open(os.path.join(copy, file), "w", encoding="utf-8") as stream:
                stream.write(text.replace(old, new, 1))
            return runner(copy)

    def test_unknown_words(self):
        config = os.path.join("kernels", "kernel_config.py")
        for old, new, word in (
                ('"tensormap_and_ringbuffer"', '"nonsense"', "runtime = 'nonsense'"),
                ('"runtime"', '"runtim"', "RUNTIME_CONFIG: unknown key 'runtim'"),
                ('"block_dim"', '"blok_dim"', "RUNTIME_CONFIG: unknown key 'blok_dim'"),
                ('"function_name"', '"entry": 1, "function_name"', "ORCHESTRATION: unknown key 'entry'"),
                ('{"func_id"', '{"cost": 3, "func_id"', "KERNELS[0]: unknown key 'cost'"),
                ('{"func_id"', '{"args": -1, "func_id"', "KERNELS[0]: args = -1"),
                ('{"func_id"', '{"args": 2, "func_id"', "takes 2 arguments, but 3 are given")):
            with self.subTest(word=word):
                done = self.spoilt(config, old, new)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertNotIn("TEST PASSED", done.stdout)

    def test_unread_words(self):
        """They may be the file's own, so they are only told."""
        for file, old, new, word in (
                ("golden.py", "ATOL = ", "ATOLL = ", "nobody reads ATOLL"),
                (os.path.join("kernels", "kernel_config.py"), "RUNTIME_CONFIG", "RUNTIME_CONFG",
                 "nobody reads RUNTIME_CONFG"),
                ("golden.py", '"tasks": 5}', '"tasks": 5, "elemnts": 3}', "case five: nobody reads elemnts")):
            with self.subTest(word=word):
                done = self.spoilt(file, old, new)
                self.passes(done)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(word, done.stderr)

    def test_no_room(self):
        vector = os.path.join(LAYOUT, "vector")
        command = [sys.executable, os.path.join(EXAMPLES, "run_example.py"), "-k", os.path.join(vector, "kernels"), "-g",
                   os.path.join(vector, "golden.py")]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=200, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "run_example.py: standard output: No space left on device\n"))

    def test_mismatch(self):
        with tempfile.TemporaryDirectory() as directory:
            copy = os.path.join(directory, "vector")
            shutil.copytree(os.path.join(LAYOUT, "vector"), copy)
            golden = os.path.join(copy, "golden.py")
            with open(golden, encoding="utf-8") as file:
                text = file.read()
            with open(golden, "w", encoding="utf-8") as file:
                file.write(text + "\n_right = compute_golden\n\n\ndef compute_golden(tensors, params):\n"
                           "    _right(tensors, params)\n    tensors[\"f\"][7] += 1\n")
            done = runner(copy)
        self.assertEqual(done.returncode, 1)
        self.assertIn("16383/16384", done.stdout)
        self.assertRegex(done.stdout, r"7\b.*47.*48")
        self.assertNotIn("TEST PASSED", done.stdout)


class Python(unittest.TestCase):
    def test_hello(self):
        done = call(os.path.join(EXAMPLES, "hello.py"))
        self.assertEqual((done.returncode, done.stdout), (0, "2 + 3 + 3 = 8.0\n"), done.stderr)

    def test_view(self):
        """What the viewer finds in the lists is what the summary says."""
        done = call(os.path.join(EXAMPLES, "view.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len([line for line in lines if re.fullmatch(r" +AIV\d \|[a -]{60}\| +\d+ %", line)]), 4)
        self.assertTrue(any(line.startswith("7 tasks, 6 edges, ") for line in lines))
        for name in ("3 AIC", "6 AIV"):
            said = [line for line in lines if line.startswith(name + " busy ")]
            self.assertEqual(len(said), 2)
            self.assertEqual(said[0], said[1])

    def test_readme(self):
        """The Python program that README.md shows."""
        with open(os.environ["PTO_TEST_README"], encoding="utf-8") as file:
            text = file.read()
        program = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
        source = next(b for b in re.findall(r"```c\n(.*?)```", text, re.DOTALL) if "scale.c:" in b)
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "scale.c"), "w", encoding="utf-8") as file:
                file.write(source)
            done = subprocess.run([sys.executable, "-c", program], cwd=directory, text=True,
                                  capture_output=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "[6. 6. 6. 6.]\n"), done.stderr)


tap.main()
