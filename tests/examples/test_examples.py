# test_examples.py: does `pto run` get every case of every example right?
# SPDX-License-Identifier: LGPL-2.1-or-later
import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

PTO = sys.argv[1]
EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
README = os.environ["PTO_TEST_README"]
DOC = os.path.join(os.path.dirname(README), "doc")
DOING_NOTHING = dict.fromkeys(("CFLAGS", "CXXFLAGS"),
                              "-include " + shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nothing.h")))


def run(*words, **environment):
    return subprocess.run([PTO, "run", *words], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=200, check=False)


class Examples(unittest.TestCase):
    def result(self, example, *words, **environment):
        done = run(os.path.join(EXAMPLES, example), "--json", *words, **environment)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)
        return json.loads(done.stdout)

    def cases(self):
        for example in sorted(os.listdir(EXAMPLES)):
            manifest = os.path.join(EXAMPLES, example, "pto.ini")
            if not os.path.exists(manifest):
                continue
            cases = configparser.ConfigParser(interpolation=None)
            cases.read(manifest)
            for case in [s[len("case "):] for s in cases.sections() if s.startswith("case ")]:
                yield example, case

    def test_every_case(self):
        for example, case in self.cases():
            with self.subTest(example=example, case=case):
                result = self.result(example, "--case", case)
                self.assertTrue(result["passed"])
                self.assertEqual((result["example"], result["case"]), (example, case))

    def test_every_case_proves_something(self):
        """Kernels that do nothing leave zeros, or what an output held: no case takes that for right."""
        for example, case in self.cases():
            with self.subTest(example=example, case=case):
                done = run(os.path.join(EXAMPLES, example), "--json", "--case", case, **DOING_NOTHING)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"[1-9]\d* of \d+ elements are wrong")

    def test_picture_of_the_readme(self):
        """It is what this build draws, to the byte, and what is said below it is in it."""
        words = ["examples/batch-paged-attention", "--case", "seed", "--backend", "det", "--svg", "doc/attention.svg"]
        with tempfile.TemporaryDirectory() as scratch:
            picture = os.path.join(scratch, "attention.svg")
            result = self.result("batch-paged-attention", *words[1:-1], picture)
            with open(picture, encoding="utf-8") as file:
                drawn = file.read()
        with open(os.path.join(DOC, "attention.svg"), encoding="utf-8") as file:
            self.assertTrue(drawn == file.read(), "doc/attention.svg is of another version: pto run " + " ".join(words))
        with open(README, encoding="utf-8") as file:
            below = re.search(r"!\[.*\]\(doc/attention\.svg\)\s+\*(.*?)\*\n", file.read(), re.DOTALL).group(1)
        shown = re.search(r'class="numbers"[^>]*>(\d+) tasks .* ([\d.]+) µs of virtual time', drawn).groups()
        for number in *shown, "%.1f" % (result["virtual_ns"] / 1000), str(result["peak_live_tasks"]):
            self.assertRegex(below, r"\b%s\b" % re.escape(number))

    def test_accesses(self):
        """Every example touches what it says, and no two of its tasks are in no order that have to be."""
        for example in sorted(os.listdir(EXAMPLES)):
            if os.path.exists(os.path.join(EXAMPLES, example, "pto.ini")):
                with self.subTest(example=example):
                    result = self.result(example, "--backend", "det", "--check=access")
                    self.assertEqual((result["passed"], result["accesses"]), (True, None))

    def test_tasks_and_edges(self):
        for example, case, tasks, edges in (
                ("vector", "five", 5, 6), ("vector", "four", 4, 4), ("bgemm", "tiles-4x4x4", 128, 112),
                ("cholesky", "priorities", 364, 858), ("cholesky", "plain", 364, 858),
                ("histogram", "tiles-200", 297, 448),
                ("paged-attention", "decode", 808, 990), ("batch-paged-attention", "seed", 208, 240)):
            with self.subTest(example=example, case=case):
                result = self.result(example, "--case", case, "--backend", "det")
                self.assertEqual((result["tasks"], result["edges"]), (tasks, edges))

    def test_parts(self):
        """A mixed task: one row in the table, and every kernel of every block a bar of its own name."""
        with tempfile.TemporaryDirectory() as scratch:
            trace, picture = os.path.join(scratch, "t.json"), os.path.join(scratch, "t.svg")
            result = self.result("spmd-attention", "--backend", "det", "--trace", trace, "--svg", picture)
            self.assertEqual((result["tasks"], result["edges"]), (1, 0))
            with open(trace, encoding="utf-8") as file:
                bars = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e.get("cat") == "kernel"]
            self.assertEqual(sorted(e["name"] for e in bars), ["products"] * 48 + ["softmax"] * 96)
            with open(picture, encoding="utf-8") as file:
                text = file.read()
            self.assertIn("products  ×48", text)
            self.assertIn("softmax  ×96", text)
            self.assertEqual(text.count("dispatched "), len(re.findall(r"task (?:products|softmax) [0-9:]+, block [0-9]+ on A", text)))

    def test_too_many_at_once(self):
        done = run(os.path.join(EXAMPLES, "barrier"), "--set", "clusters=7")
        self.assertEqual(done.returncode, 3)
        self.assertIn("barrier_orch.c:", done.stderr)
        self.assertIn("this machine has 14: set clusters to more", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_large(self):
        self.assertGreaterEqual(self.result("batch-paged-attention", "--case", "large")["tasks"], 65536)

    def test_back_ends_agree(self):
        errors = {b: self.result("batch-paged-attention", "--case", "small", "--backend", b)["max_abs_error"]
                  for b in ("par", "det", "threads")}
        self.assertEqual(len(set(errors.values())), 1, errors)

    def test_priorities(self):
        """The chain that everything waits for goes first: the same numbers, sooner."""
        for seed in "1", "2", "3":
            first, plain = (self.result("cholesky", "--case", case, "--backend", "det", "--seed", seed)
                            for case in ("priorities", "plain"))
            self.assertLess(first["virtual_ns"], 0.85 * plain["virtual_ns"])
            self.assertEqual(first["max_abs_error"], plain["max_abs_error"])

    def test_priorities_of_attention(self):
        """The longest chain first: the times that examples/README.md tells, and the same numbers."""
        cases = ("priorities", 1273434), ("plain", 1444059)
        results = [self.result("paged-attention", "--case", case, "--backend", "det") for case, _ in cases]
        self.assertEqual([result["virtual_ns"] for result in results], [ns for _, ns in cases])
        self.assertEqual([(result["tasks"], result["edges"]) for result in results], [(709, 860)] * 2)
        self.assertEqual(len({result["max_abs_error"] for result in results}), 1)
        with open(os.path.join(EXAMPLES, "README.md"), encoding="utf-8") as file:
            text = file.read()
        for _, ns in cases:
            self.assertIn(f"{ns / 1000:.0f} us", text)
        for seed in "2", "3":
            first, plain = (self.result("paged-attention", "--case", case, "--backend", "det", "--seed", seed)["virtual_ns"] for case, _ in cases)
            self.assertLess(first, 0.92 * plain)

    def test_small_window(self):
        """Behaviour 2: 208 tasks through 16 slots, each used about 13 times."""
        result = self.result("batch-paged-attention", "--set", "task-window=16")
        self.assertLessEqual(result["peak_live_tasks"], 15)
        self.assertEqual(result["recycled"], 208 - 16)
        self.assertEqual(result["last_task_alive"], [0, 208, 0, 0])

    def test_rings_that_differ(self):
        """All tasks are in a scope, and so in ring 1."""
        for words, recycled in ((("--set", "task-window=65536,16,4,4"), 208 - 16), (("--set", "task-window=4,512,4,4"), 0)):
            result = self.result("batch-paged-attention", *words, "--set", "heap=1K,64M,1K,1K", "--set", "dep-pool=16,4096,16,16")
            self.assertEqual((result["recycled"], result["last_task_alive"]), (recycled, [0, 208, 0, 0]))
        result = self.result("batch-paged-attention", PTO2_RING_TASK_WINDOW="4,16,4,4")
        self.assertEqual(result["recycled"], 208 - 16)
        for words, said in ((("--set", "task-window=64,4,64,64"), "deadlock in task ring 1: all 3 usable slots (window 4, "),
                            (("--set", "heap=1M,1K,1M,1M"), "heap ring 1"),
                            (("--set", "task-window=4,4"), '"4,4" is 2 numbers: one for all rings wanted, or 4, one for each')):
            done = run(os.path.join(EXAMPLES, "batch-paged-attention"), *words)
            self.assertEqual((done.returncode != 0, len(done.stderr.splitlines())), (True, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_small_rings(self):
        """Behaviour 3: the same numbers as with the defaults."""
        small = self.result("paged-attention", "--set", "task-window=64", "--set", "heap=4M", "--set",
                            "dep-pool=256")
        self.assertEqual(small["max_abs_error"], self.result("paged-attention")["max_abs_error"])

    def test_advice_is_right(self):
        """Behaviour 12: a window that is too small names one that passes."""
        example = os.path.join(EXAMPLES, "batch-paged-attention")
        done = run(example, "--set", "task-window=8")
        self.assertEqual(done.returncode, 3)
        advice = re.search(r"Set task-window to (\d+) or more", done.stderr)
        self.assertIsNotNone(advice, done.stderr)
        self.assertIn("batch_paged_attention_orch.c:", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(run(example, "--set", "task-window=" + advice.group(1)).returncode, 0)

    def test_sequence_lengths(self):
        short = self.result("batch-paged-attention", "--case", "varlen", PA_SEQ_LEN="33,64")
        self.assertLess(short["tasks"], self.result("batch-paged-attention", "--case", "varlen")["tasks"])

    def test_other_geometry(self):
        for words in (("--set", "clusters=1", "--set", "aicpu-threads=2"), ("--platform", "a5sim"),
                      ("--set", "clusters=384")):
            with self.subTest(words=words):
                self.assertTrue(self.result("bgemm", *words)["passed"])

    def test_every_example_on_a5(self):
        for example in sorted(os.listdir(EXAMPLES)):
            if os.path.exists(os.path.join(EXAMPLES, example, "pto.ini")):
                for backend in ("par", "det"):
                    with self.subTest(example=example, backend=backend):
                        result = self.result(example, "--platform", "a5sim", "--backend", backend)
                        self.assertTrue(result["passed"])
                        self.assertEqual(result["platform"], "a5sim")

    def test_chip_of_a_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "chip.ini")
            with open(os.path.join(EXAMPLES, "README.md"), encoding="utf-8") as file:
                shown = re.search(r"```ini\n(\[platform\].*?)```", file.read(), re.DOTALL).group(1)
            with open(path, "w", encoding="utf-8") as file:
                file.write(shown)
            self.assertTrue(self.result("bgemm", "--platform", path, "--backend", "det")["passed"])
            done = run(os.path.join(EXAMPLES, "bgemm"), "--platform", path)
            self.assertIn(f"bgemm on {path}: 12 AIC + 24 AIV, 3 schedulers + 1 orchestrator", done.stdout)
            with open(path, "w", encoding="utf-8") as file:
                file.write("[platform]\nlike=a5sim\nclusters=2\naic-per-cluster=2\naicpu-threads=2\n[costs]\nstart=5000\n")
            slow = self.result("bgemm", "--platform", path, "--backend", "det")
            self.assertTrue(slow["passed"])
            self.assertGreater(slow["virtual_ns"], self.result("bgemm", "--platform", "a5sim", "--backend", "det")["virtual_ns"])
            done = run(os.path.join(EXAMPLES, "bgemm"), "--platform", path)
            self.assertIn(f"bgemm on {path}: 4 AIC + 4 AIV, 1 scheduler + 1 orchestrator", done.stdout)
            with open(path, "a", encoding="utf-8") as file:
                file.write("poll=fast\n")
            done = run(os.path.join(EXAMPLES, "bgemm"), "--platform", path)
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (3, [f"pto: --platform: {path}: [costs]: poll=fast: a number from 0 to 1000000000 wanted"]))

    def test_programs_are_named(self):
        """A directory that holds a program, and one that holds a chip's part of it, are no examples with cases."""
        done = run(os.path.join(EXAMPLES, "two-chips"))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, 1))
        self.assertIn("there is no file pto.ini", done.stderr)
        self.assertIn("/usr/bin/python3 " + os.path.join(EXAMPLES, "two-chips", "two_chips.py"), done.stderr)
        diamond, script = os.path.join(EXAMPLES, "diamond"), os.path.join(EXAMPLES, "scripts", "run_example.py")
        done = run(diamond)
        self.assertEqual((done.returncode, done.stderr),
                         (3, f"pto: {diamond}: no example with cases: there is no file pto.ini, but kernel_config.py and "
                             f"golden.py; start it with python3 {script} -k {diamond}/kernels -g {diamond}/golden.py "
                             "-p a2a3sim\n"))
        by_hand = os.path.join(EXAMPLES, "by-hand")
        done = run(by_hand)
        self.assertEqual((done.returncode, done.stderr),
                         (3, f"pto: {by_hand}: a program, not an example with cases: there is no file pto.ini; compile it with "
                             f"cc {by_hand}/by_hand.c $(pkg-config --cflags --libs pto-1) -lm -o by_hand, and start that\n"))
        done = run(os.path.join(EXAMPLES, "scripts"))
        self.assertEqual((done.returncode, done.stderr),
                         (3, f"pto: {EXAMPLES}/scripts: no example here: there is no file pto.ini\n"))
        done = run(os.path.join(EXAMPLES, "two-chips", "partial-sum"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("the group [example] is missing: a program can use this", done.stderr)

    def test_readme_program(self):
        """The sources that doc/own.md shows compile and compute what it says."""
        with open(os.path.join(DOC, "own.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```(?:c|ini)\n(.*?)```", file.read(), re.DOTALL)
        names = {re.search(r"(\S+\.(?:c|ini)):", block).group(1): block for block in blocks}
        self.assertEqual(sorted(names), ["pto.ini", "scale.c", "sixfold.c", "twice.c"])
        with tempfile.TemporaryDirectory() as directory:
            for name, block in names.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(block)
            done = run(directory, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            result = json.loads(done.stdout)
            self.assertEqual((result["passed"], result["tasks"], result["edges"]), (True, 2, 1))


tap.main()
