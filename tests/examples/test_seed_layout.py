# test_seed_layout.py: does the seeds' runner take the seeds' layout, and do the Python examples work?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import runpy
import shlex
import subprocess
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
RUNNER = os.path.join(EXAMPLES, "scripts", "run_example.py")
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
    return call(RUNNER, "-k", os.path.join(directory, "kernels"), "-g",
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

    def test_every_example_proves_something(self):
        """Kernels that do nothing leave zeros: no golden.py takes them for right."""
        nothing = "-include " + shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nothing.h"))
        found = sorted(directory for directory, _, names in os.walk(EXAMPLES) if "golden.py" in names)
        self.assertGreaterEqual(len(found), 6)
        for directory in found:
            platform = "a5sim" if os.path.basename(directory) == "diamond" else "a2a3sim"
            with self.subTest(os.path.relpath(directory, EXAMPLES)):
                done = call(RUNNER, "-k", os.path.join(directory, "kernels"), "-g", os.path.join(directory, "golden.py"), "-p", platform,
                            CFLAGS=nothing, CXXFLAGS=nothing)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"FAIL \(\d+/\d+ elements matched\)")

    def test_comparison(self):
        """Tolerances, NaN, infinities and wrong elements, each told; pto run's comparison has the same cases in C (test-compare.c)."""
        given = "_plain_inputs = generate_inputs\n\n\ndef generate_inputs(params):\n    all = _plain_inputs(params)\n    all[0][1][5] = np.%s\n    return all"
        cases = (("f[0] = np.nan", "EQUAL_NAN = True", "got 47.0, expected nan"), ("f[0] = np.inf", "RTOL = 1e30", "expected inf"),
                 ("pass", given % "nan", "[5]: got nan, expected nan"), ("pass", "EQUAL_NAN = True\n" + given % "nan", None),
                 ("pass", given % "inf", None), ("f[5] = -np.inf", given % "inf", "[5]: got inf, expected -inf"),
                 ("f[:3] = 46", "", "max error 1, relative 0.022"), ("f[:3] = 46", "MISMATCH_SHARE = 3 / 16384", None),
                 ("f[:4] = 46", "MISMATCH_SHARE = 3 / 16384", "FAIL"), ("f[:3] = 46", "ATOL = 1", None),
                 ("f[:3] = 46", "RTOL = 0.022", None), ("f[:3] = 46", "RTOL = 0.021", "FAIL"),
                 ("f[0] = np.nan", "", "max error nan, relative nan; not finite: 1 elements that differ have NaN, 0 have infinity; "
                                       "the others: max error 0, relative 0\n"),
                 ("f[0], f[1] = np.inf, 46", "MISMATCH_SHARE = 1", None),
                 ("f[0], f[1] = np.inf, 46", "", "max error inf, relative inf; not finite: 0 elements that differ have NaN, 1 have infinity; "
                                                 "the others: max error 1, relative 0.022\n"),
                 ("f[0] = 46", "MISMATCH_SHARE = np.float32(0.5)\nATOL = 0", None))
        refused = ("RTOL = -1", "RTOL = -1: a number that is not negative wanted"), ("ATOL = float('inf')", "ATOL = inf: a number that is not negative, and finite, wanted"), \
                  ("ATOL = float('nan')", "not negative"), ("RTOL = 'x'", "not negative"), ("RTOL = '1e-5'", "RTOL = '1e-5': a number that is not negative wanted"), \
                  ("ATOL = True", "ATOL = True: a number that is not negative wanted"), ("RTOL = [1]", "RTOL = [1]: a number that is not negative wanted"), ("ATOL = None", "ATOL = None"), \
                  ("MISMATCH_SHARE = 1.5", "a number from 0 to 1"), ("MISMATCH_SHARE = True", "MISMATCH_SHARE = True: a number from 0 to 1"), \
                  ("RTOL = 10 ** 400", "a number that is not negative, and finite, wanted"), ("EQUAL_NAN = 1", "True or False wanted")
        with tempfile.TemporaryDirectory() as directory:
            shutil.copytree(os.path.join(LAYOUT, "vector"), directory, dirs_exist_ok=True)
            path = os.path.join(directory, "golden.py")
            with open(path, encoding="utf-8") as file:
                golden = file.read()

            def run(change, said):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"{golden}\n{said}\n_plain = compute_golden\n\n\ndef compute_golden(tensors, params):\n"
                               f"    _plain(tensors, params)\n    f = tensors['f']\n    {change}\n")
                return runner(directory)
            for change, said, wrong in cases:
                with self.subTest(change=change, said=said):
                    done = run(change, said)
                    self.assertEqual(done.returncode, int(wrong is not None), done.stdout + done.stderr)
                    self.assertIn(wrong or "PASS", done.stdout)
                    if "np.inf, 46" in change:
                        self.assertIn("max error inf, relative inf; not finite: 0", done.stdout)
            for said, words in refused:
                with self.subTest(said=said):
                    done = run("pass", said)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(words, done.stderr)

    def test_literal_commands(self):
        """Seed 004, "Running the Example": both commands as they stand there, from the top of the checkout."""
        def command(folder, platform):
            return subprocess.run([sys.executable, "examples/scripts/run_example.py", "-k", f"examples/{folder}/kernels",
                                   "-g", f"examples/{folder}/golden.py", "-p", platform],
                                  cwd=os.path.dirname(EXAMPLES), text=True, capture_output=True, timeout=200, check=False)
        for folder in ("host_build_graph_example", "host_build_graph_sim_example"):
            with self.subTest(folder=folder):
                self.passes(command(folder, "a2a3sim"),
                            "=== Building Runtime: host_build_graph (platform: a2a3sim) ===", "=== Comparing Results ===",
                            "Comparing f: shape=(16384,), dtype=float32", "  f: PASS (16384/16384 elements matched)")
        done = command("host_build_graph_example", "a2a3")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertIn('platform "a2a3" is the chip itself: libpto has no module that drives it', done.stderr)
        self.assertIn("a2a3sim", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(EXAMPLES, "..", "doc", "hardware.md")))

    def test_all_cases(self):
        for example in ("seed-layout/vector", "seed-layout/batch_paged_attention", "diamond"):
            with self.subTest(example=example):
                self.passes(runner(os.path.join(EXAMPLES, example), "--all"))

    def test_diamond(self):
        """On each back end; and it is the graph that it is called after."""
        for backend in "par", "det", "threads":
            with self.subTest(backend=backend):
                self.passes(runner(os.path.join(EXAMPLES, "diamond"), "--backend", backend),
                            "  F: PASS (8192/8192 elements matched)")
        import gi
        import numpy as np
        gi.require_version("Pto", "1")
        from gi.repository import Pto
        directory = os.path.join(EXAMPLES, "diamond", "kernels")
        config, golden = (runpy.run_path(os.path.join(directory, *where)) for where in (["kernel_config.py"], ["..", "golden.py"]))
        graph = Pto.ChipOrchestration.new(os.path.join(directory, config["ORCHESTRATION"]["source"]), None)
        for kernel in config["KERNELS"]:
            graph.add_kernel(kernel["func_id"], kernel["name"], Pto.Callable.kernel(
                os.path.join(directory, kernel["source"]), kernel["core_type"], flags=kernel.get("flags")))
        tensors = dict(golden["generate_inputs"](golden["ALL_CASES"]["diamond"]))
        with Pto.Worker(platform="a2a3sim") as worker:
            worker.set_parameter("trace", 1)
            worker.run(worker.register(graph), *tensors.values())
            tasks, edges = list(worker.trace.list_tasks()), worker.trace.list_edges()
        self.assertEqual([task.name for task in tasks], ["LOG", "SQRT", "MATMUL", "MATMUL", "ADD", "EXP"])
        self.assertEqual({(edge.producer, edge.consumer) for edge in edges},
                         {(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)})
        found = tensors["F"].copy()
        golden["compute_golden"](tensors, golden["ALL_CASES"]["diamond"])
        np.testing.assert_allclose(found, tensors["F"], rtol=1e-4)

    def test_every_example_on_a5(self):
        for folder in ("seed-layout/vector", "seed-layout/batch_paged_attention", "host_build_graph_sim_example", "diamond"):
            with self.subTest(folder=folder):
                directory = os.path.join(EXAMPLES, folder)
                self.passes(call(RUNNER, "-k", os.path.join(directory, "kernels"), "-g",
                                 os.path.join(directory, "golden.py"), "-p", "a5sim"))

    def test_host_build_graph(self):
        """The runtime of a config: its orchestration is captured, then launched."""
        with tempfile.TemporaryDirectory(prefix="pto-seed-layout-") as directory:
            copy = os.path.join(directory, "vector")
            shutil.copytree(os.path.join(LAYOUT, "vector"), copy)
            config = os.path.join(copy, "kernels", "kernel_config.py")
            with open(config, encoding="utf-8") as file:
                text = file.read().replace("tensormap_and_ringbuffer", "host_build_graph")
            self.assertIn("host_build_graph", text)
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend):
                    self.passes(runner(copy, "--case", "four", "--backend", backend),
                                "=== Building Runtime: host_build_graph (platform: a2a3sim) ===",
                                "  f: PASS (16384/16384 elements matched)")

    def test_aicpu_build_graph(self):
        """Built by hand, in both modes; build_mode is refused where it says nothing."""
        with tempfile.TemporaryDirectory(prefix="pto-seed-layout-") as directory:
            for folder in "aicpu_build_graph_example", "host_build_graph_sim_example", "seed-layout":
                shutil.copytree(os.path.join(EXAMPLES, folder), os.path.join(directory, folder))
            copy = os.path.join(directory, "aicpu_build_graph_example")
            config = os.path.join(copy, "kernels", "kernel_config.py")
            with open(config, encoding="utf-8") as file:
                text = file.read()
            self.assertIn('"build_mode": 1', text)
            for mode in 1, 0:
                with open(config, "w", encoding="utf-8") as file:
                    file.write(text.replace('"build_mode": 1', f'"build_mode": {mode}'))
                for backend in "par", "det", "threads":
                    with self.subTest(backend=backend, mode=mode):
                        self.passes(runner(copy, "--backend", backend),
                                    "=== Building Runtime: aicpu_build_graph (platform: a2a3sim) ===",
                                    "  f: PASS (16384/16384 elements matched)")
            for old, new in ('"build_mode": 1', '"build_mode": 2'), ("aicpu_build_graph", "host_build_graph"):
                with open(config, "w", encoding="utf-8") as file:
                    file.write(text.replace(old, new))
                done = runner(copy)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn("only 'aicpu_build_graph' has one, 0 (build, then schedule) or 1 (both at once)", done.stderr)

    def test_det(self):
        self.passes(runner(os.path.join(LAYOUT, "vector"), "--backend", "det", "--seed", "3"))

    def test_case_from_environment(self):
        self.passes(runner(os.path.join(LAYOUT, "batch_paged_attention"), PA_CASE="CaseBatch256"),
                    "  out: PASS (65536/65536 elements matched)")

    def test_lengths_from_environment(self):
        self.passes(runner(os.path.join(LAYOUT, "batch_paged_attention"), "--case", "CaseVarLen",
                           PA_SEQ_LEN="5,17,33"))

    def test_without_environment(self):
        """As doc/seeds.md shows it: nothing but a build directory beside the examples says where the library is."""
        checkout = tempfile.mkdtemp(prefix="pto-checkout-")
        self.addCleanup(shutil.rmtree, checkout)
        shutil.copytree(EXAMPLES, os.path.join(checkout, "examples"))
        os.symlink(os.path.join(EXAMPLES, "..", "pto"), os.path.join(checkout, "pto"))
        os.symlink(os.path.dirname(os.environ["G_TEST_BUILDDIR"]), os.path.join(checkout, "build"))
        clean = {k: v for k, v in os.environ.items()
                 if k not in ("PTO_API_DIR", "GI_TYPELIB_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")}
        vector = os.path.join(checkout, os.path.relpath(LAYOUT, os.path.dirname(EXAMPLES)), "vector")
        program = os.path.join(checkout, os.path.relpath(RUNNER, os.path.dirname(EXAMPLES)))
        done = subprocess.run([sys.executable, program, "-k",
                               os.path.join(vector, "kernels"), "-g", os.path.join(vector, "golden.py"),
                               "-p", "a2a3sim"], env=clean, text=True, capture_output=True, timeout=200,
                              check=False)
        self.passes(done, "  f: PASS (16384/16384 elements matched)")

    def test_unknown_case(self):
        done = runner(os.path.join(LAYOUT, "vector"), "--case", "nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nosuch", done.stderr)

    def test_usage(self):
        self.assertEqual(call(RUNNER).returncode, 2)

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
                ('"block_dim"', '"blok_dim"', "; did you mean 'block_dim'?"),
                ('"function_name"', '"entry": 1, "function_name"', "ORCHESTRATION: unknown key 'entry'"),
                ('{"func_id"', '{"cost": 3, "func_id"', "KERNELS[0]: unknown key 'cost'"),
                ('{"func_id"', '{"args": -1, "func_id"', "KERNELS[0]: args = -1"),
                ('{"func_id"', '{"args": 2, "func_id"', "takes 2 arguments, but 3 are given")):
            with self.subTest(word=word):
                done = self.spoilt(config, old, new)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(word, done.stderr)
                self.assertNotIn("TEST PASSED", done.stdout)

    def written(self, golden, config="", orchestration="", environment=None):
        """The vector example with other files: text, or functions that change them."""
        with tempfile.TemporaryDirectory() as directory:
            copy = os.path.join(directory, "vector")
            shutil.copytree(os.path.join(LAYOUT, "vector"), copy)
            for name, change in (("golden.py", golden), (os.path.join("kernels", "kernel_config.py"), config)):
                path = os.path.join(copy, name)
                with open(path, encoding="utf-8") as stream:
                    text = stream.read()
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(change(text) if callable(change) else text + change)
            for name, text in (orchestration or {}).items():
                path = os.path.join(copy, "kernels", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(text)
            return runner(copy, **(environment or {}))

    def test_plain_numbers(self):
        """Scalars and tensors as Python writes them; without __outputs__ every array is compared."""
        def golden(text):
            text = text.replace('ctypes.c_uint64(size)', "size").replace('ctypes.c_uint64(params["tasks"])', "5")
            text = text.replace("np.full(size, 2.0, dtype=np.float32)", "[2.0] * size")
            return text.replace('__outputs__ = ["f"]\n', "")
        done = self.written(golden)
        self.passes(done, "  a: PASS (16384/16384 elements matched)", "  f: PASS (16384/16384 elements matched)")

    def test_outputs_of_config(self):
        def without(text):
            return text.replace('__outputs__ = ["f"]\n', "")

        def config(name):
            return lambda text: text.replace('"function_name"', f'"outputs": ["{name}"], "function_name"')
        done = self.written(without, config("f"))
        self.passes(done, "  f: PASS (16384/16384 elements matched)")
        self.assertNotIn("Comparing a", done.stdout)
        done = self.written(without, config("g"))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertIn("ORCHESTRATION: outputs names 'g'", done.stderr)

    def test_numbers_arrive(self):
        """Every kind of number, in the 64 bits that the orchestration gets."""
        items = ('("i", -2), ("big", 2**64 - 1), ("t", True), ("f", 2.5), ("n", np.int16(-3)), ("h", np.float32(0.5)), '
                 '("d", ctypes.c_double(2.5)), ("c", ctypes.c_int8(-4)), ("out", [0.0] * 8)')
        golden = ("\ndef generate_inputs(params):\n    params.get('size'), params.get('tasks')\n"
                  f"    return [{items}]\n\n\n"
                  "def compute_golden(tensors, params):\n    tensors['out'][:] = [1.0] * 8\n")
        checks = ["(int64_t) args[0] == -2", "args[1] == UINT64_MAX", "args[2] == 1", "args[3] == 0x40200000",
                  "(int64_t) args[4] == -3", "args[5] == 0x3f000000", "args[6] == 0x4004000000000000",
                  "(int64_t) args[7] == -4"]
        lines = "\n".join(f"  ((float *) args[8])[{i}] = {check};" for i, check in enumerate(checks))
        orchestration = ('#include "pto_orchestration_api.h"\nextern "C" PTO2OrchestrationConfig\n'
                         "aicpu_orchestration_config (uint64_t *, int)\n{\n  return { 9 };\n}\n"
                         'extern "C" int\naicpu_orchestration_entry (PTO2Runtime *, uint64_t *args, int)\n{\n'
                         f"{lines}\n  return 0;\n}}\n")
        done = self.written(lambda text: text.replace('__outputs__ = ["f"]', '__outputs__ = ["out"]') + golden,
                            orchestration={"orchestration/vector_orch.cpp": orchestration})
        self.passes(done, "  out: PASS (8/8 elements matched)")

    def test_refused_values(self):
        for new, word in (('"text"', "'size' is neither an array nor a number: str"),
                          ("2**64", "'size': 18446744073709551616 does not fit in 64 bits"),
                          ("1e99", "'size': float too large"), ("[[1], [2, 3]]", "'size'"), ("['a']", "no list of numbers"),
                          ("[2**24 + 1]", "float32, which can not hold")):
            with self.subTest(word=word):
                done = self.spoilt("golden.py", "ctypes.c_uint64(size)", new)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(word, done.stderr)

    TILES = ('#include "tensor.h"\n#include <pto/pto-inst.hpp>\n#include "limits.hpp"\n'
             'extern "C" __aicore__ void\nkernel_entry (__gm__ int64_t *args)\n{\n'
             "  __gm__ float *p[3];\n"
             "  for (int i = 0; i < 3; i++)\n"
             "    p[i] = (__gm__ float *) ((__gm__ TensorData *) args[i])->buffer.addr;\n"
             "  for (int i = 0; i < COUNT; i += SIDE)\n    {\n"
             "      pto::Tile<float, SIDE> x, y, sum;\n"
             "      pto::TLOAD (x, (const float *) p[0] + i);\n      pto::TLOAD (y, (const float *) p[1] + i);\n"
             "      pto::TADD (sum, x, y);\n      pto::TSTORE (p[2] + i, sum);\n    }\n}\n")

    def test_tile_headers(self):
        """A kernel for a vendor's tile headers, found by PTO_ISA_ROOT; flags for all, for one, from the environment."""
        files = {"aiv/kernel_add.cpp": self.TILES, "include/limits.hpp": "#define COUNT 16384\n"}

        def config(text):
            text = text.replace('"aiv/kernel_add.cpp",', '"aiv/kernel_add.cpp", "flags": ["-USIDE", "-DSIDE=128"],')
            return text + 'BUILD_CONFIG = {"include_dirs": ["include"], "cxxflags": "-DSIDE=none -DFOR_ALL"}\n'

        def own(text):
            return (config(text).replace('"flags": [', '"cxxflags": [').replace('"aiv/kernel_add.cpp",', '"aiv/kernel_add.cpp", "include": "include",')
                    .replace('"include_dirs": ["include"], ', ""))
        root = {"PTO_ISA_ROOT": os.environ["PTO_TEST_TILE_HEADERS"]}
        done = self.written("", config, files, {**root, "CXXFLAGS": "-O3"})
        self.passes(done, "  f: PASS (16384/16384 elements matched)")
        self.passes(self.written("", own, files, root), "  f: PASS (16384/16384 elements matched)")
        done = self.written("", config, files)
        self.assertEqual(done.returncode, 1)
        self.assertIn("set PTO_ISA_ROOT to the directory", done.stderr)
        for old, new, word in (('"include_dirs": ["include"]', '"include_dirs": "include"', "is no list of texts"),
                               ('"include_dirs"', '"include_dir"', "BUILD_CONFIG: unknown key 'include_dir'"),
                               ('"-DSIDE=none', '"\'-D', "BUILD_CONFIG: cxxflags"),
                               ('"flags": [', '"cflags": [', "cflags says nothing of "),
                               ('BUILD_CONFIG = {', 'BUILD_CONFIG = {"include": [], ', "are the same: one of them"),
                               ('["-USIDE"', '["-c"', "the flag -c can not be used")):
            with self.subTest(word=word):
                done = self.written("", lambda text: config(text).replace(old, new), files, root)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(word, done.stderr)

    def test_unread_words(self):
        """They may be the file's own, so they are only told."""
        for file, old, new, word in (
                ("golden.py", "ATOL = ", "ATOLL = ", "nobody reads ATOLL"),
                ("golden.py", "ATOL = ", "ATOLL = ", "; did you mean 'ATOL'?"),
                ("golden.py", '"tasks": 5}', '"elemnts": 3, "tasks": 5}', "nobody reads elemnts\n"),
                (os.path.join("kernels", "kernel_config.py"), "RUNTIME_CONFIG", "RUNTIME_CONFG",
                 "nobody reads RUNTIME_CONFG"),
                ("golden.py", '"tasks": 5}', '"tasks": 5, "elemnts": 3}', "case five: nobody reads elemnts")):
            with self.subTest(word=word):
                done = self.spoilt(file, old, new)
                self.passes(done)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(word, done.stderr)

    def test_set_of_a_golden(self):
        """A tolerance is no parameter, however it is spelt."""
        for key, name in ("rtol", "RTOL"), ("equal-nan", "EQUAL_NAN"), ("MISMATCH_SHARE", "MISMATCH_SHARE"):
            done = runner(os.path.join(LAYOUT, "vector"), "--set", f"{key}=1")
            path = os.path.join(LAYOUT, "vector", "golden.py")
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"run_example.py: --set {key}=1: {key} is no parameter of the worker; write {name} = 1 in {path}\n"))

    def test_no_room(self):
        vector = os.path.join(LAYOUT, "vector")
        command = [sys.executable, RUNNER, "-k", os.path.join(vector, "kernels"), "-g",
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
        """The Python program that README.md shows, with the kernel of doc/own.md."""
        readme = os.environ["PTO_TEST_README"]
        with open(readme, encoding="utf-8") as file:
            program = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
        with open(os.path.join(os.path.dirname(readme), "doc", "own.md"), encoding="utf-8") as file:
            source = next(b for b in re.findall(r"```c\n(.*?)```", file.read(), re.DOTALL) if "scale.c:" in b)
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "scale.c"), "w", encoding="utf-8") as file:
                file.write(source)
            done = subprocess.run([sys.executable, "-c", program], cwd=directory, text=True,
                                  capture_output=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "[6. 6. 6. 6.]\n"), done.stderr)

    def test_overview(self):
        """Those of doc/overview.md: a program, functions for a run, and what is done with a worker."""
        path = os.path.join(os.path.dirname(os.environ["PTO_TEST_README"]), "doc", "overview.md")
        with open(path, encoding="utf-8") as file:
            program, *others = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        for other in others:
            function = re.match(r"def (\w+)\(orch, ([^)]*)\)", other)
            if function is None:
                program += "with Pto.Worker() as chip:\n    " + other.strip().replace("\n", "\n    ") + "\n"
            else:
                names = function[2].split(", ")
                program += f"{other}x, y = (np.ones(1000, np.float32) for _ in 'xy')\n"
                program += f"with Pto.Worker() as chip:\n    chip.run({function[1]}, {', '.join(names)})\nprint(x[0], x[1], y[0])\n"
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([sys.executable, "-c", program], cwd=directory, text=True, capture_output=True, timeout=100,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.exists(os.path.join(directory, "run.html")))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:5], ["6.0 2", "6.0 6.0 5.0", "1024.0 0.0 1.0", "12.0 12.0 9.0", "30.0 30.0 1.0"])
        self.assertRegex(lines[5], r"^[0-9]+ 72$")
        self.assertRegex(lines[6], r"^ +[0-9.]+ us ")


tap.main()
