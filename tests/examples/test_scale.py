# test_scale.py: does the chapter on scale show what its model gives, and is that what a formula and the library's own clock say?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

EXAMPLES = os.environ["PTO_TEST_EXAMPLES"]
DOC = os.path.join(EXAMPLES, "..", "doc")
SCRIPT = os.path.join(EXAMPLES, "scale", "scale.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
sys.dont_write_bytecode = True
import scale  # noqa: E402

try:
    import gi
    gi.require_version("Pto", "1")
    from gi.repository import Pto
except (ImportError, ValueError):
    Pto = None


def nothing(args):
    pass


class Scale(unittest.TestCase):
    def test_chapter(self):
        """The table and the chart are those of the program, to the value."""
        with open(os.path.join(DOC, "scale.md"), encoding="utf-8") as file:
            chapter = file.read()
        with tempfile.TemporaryDirectory() as directory:
            chart = os.path.join(directory, "scale.svg")
            out = subprocess.run([sys.executable, SCRIPT, "--svg", chart], capture_output=True, text=True, timeout=100, check=True).stdout
            self.assertIn(out, chapter)
            with open(chart, encoding="utf-8") as made, open(os.path.join(DOC, "scale.svg"), encoding="utf-8") as shown:
                self.assertEqual(made.read(), shown.read())
        # The other tables are of other numbers.
        for words, rows in (["--bridge", "5"], ("half",)), (["--size", "1048576"], ("half", "10000 us")):
            out = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, timeout=100, check=True).stdout
            for row in rows:
                cells = next(line for line in out.splitlines() if line.startswith(f"| {row}")).split("|")[2:5]
                for cell in cells:
                    self.assertIn(cell.strip(), chapter)

    def test_formula(self):
        """Exactly, where all tasks are as long; within 4 % where they are 5 % longer or shorter."""
        for jitter, error in (0, 1e-9), (0.05, 0.04):
            costs = scale.Costs(jitter=jitter)
            for tree in scale.TREES.values():
                for task in scale.TASKS_US:
                    part, count = scale.simulate(tree, task, costs, 2)
                    self.assertEqual(count, 2 * 1000 * scale.CHIPS * costs.per_chip)
                    self.assertLess(abs(part / scale.on_paper(tree, task, costs, 2) - 1), error, (tree, task))

    def test_by_hand(self):
        """One host, chips that are never waited for: the trip, the first eight submits, two tasks of each."""
        costs = scale.Costs(submit=1, trip=10, bridge=0, size=0, per_chip=2, jitter=0)
        part, count = scale.simulate((1,), 100, costs, 1)
        self.assertEqual(count, 16)
        self.assertAlmostEqual(part, 16 * 100 / (8 * (1 + 10 + 8 + 200)))

    def test_saturation(self):
        """One submitter with as many hosts as it can keep busy is as good as alone with one; with twice as many it gives half."""
        costs = scale.Costs(jitter=0)
        most = int(scale.hosts_at_most(100, costs))
        alone, full, twice = (scale.on_paper((n,), 100, costs, 100000) for n in (1, most, 2 * most))
        # To what a host more or less makes.
        self.assertAlmostEqual(full / alone, 1, delta=1 / most)
        self.assertAlmostEqual(twice / alone, 0.5, delta=1 / most)
        self.assertLess(abs(scale.simulate((2 * most,), 100, costs, 3)[0] / scale.on_paper((2 * most,), 100, costs, 3) - 1), 1e-9)

    @unittest.skipUnless(Pto, "no Python with gi")
    def test_library(self):
        """A host's task on the library's own virtual clock, with SUB functions for chips: to the nanosecond."""
        costs = scale.Costs(submit=1, trip=1e-9, bridge=0, size=0, per_chip=4, jitter=0)
        with Pto.Worker(level=3, sub_workers=scale.CHIPS) as host:
            host.set_parameter("trace", "1")
            host.set_parameter("trace-level", "4")
            function = host.register(nothing)
            host.run(lambda orch: [orch.submit_sub(function, [], worker=chip) for _ in range(costs.per_chip) for chip in range(scale.CHIPS)])
            trace = host.ref_trace()
        for task in 2, 20, 300:
            step = trace.simulate(["submit=1us", f"function=nothing=constant:{task * 1000}"])
            self.assertEqual(step.get_elapsed_ns(), round(1000 * scale.host_time(task, costs)))

    def test_refused(self):
        for words in ["--bandwidth", "0"], ["--per-chip", "0"], ["--jitter", "1"], ["--cores", "0"], ["--size", "-1"]:
            done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(re.findall("error: ", done.stderr)), 1)


tap.main()
