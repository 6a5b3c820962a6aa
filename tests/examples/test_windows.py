# test_windows.py: does the virtual clock tell the windows of a chip as doc/time.md says?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

PTO = os.path.abspath(sys.argv[1])
WINDOWS = os.path.join(os.environ["PTO_TEST_EXAMPLES"], "windows")
DOC = os.environ["PTO_TEST_TIME"]
sys.path.insert(0, WINDOWS)
import fit  # noqa: E402

ROW = re.compile(r"^\| ([a-z, ]+) \| (\d+) \| ([\d.]+) \| " + r" \| ".join([r"([\d.]+) \| (\(?[-+][\d.]+ %\)?)"] * 3) + r" \|$")


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = fit.Model(PTO)
        with open(DOC, encoding="utf-8") as file:
            cls.doc = file.read()

    def run_window(self, name, case, *words):
        return json.loads(self.model.call("run", os.path.join(WINDOWS, name), "--case", case, "--json", *words))

    def test_computed(self):
        """The kernels compute what their references say, on every back end, and how many tasks there are."""
        for name, small, tasks, edges in (("bgemm", 48, 1000, 750), ("alternating", 48, 1000, 0), ("attention", 24, 1024, 1024)):
            with self.subTest(window=name):
                for backend in ("par", "det", "threads"):
                    result = self.run_window(name, "small", "--backend", backend)
                    self.assertEqual((result["passed"], result["tasks"]), (True, small))
                result = self.run_window(name, "window", "--backend", "par")
                self.assertEqual((result["passed"], result["tasks"]), (True, tasks))
                result = self.run_window(name, "clock", "--backend", "det")
                self.assertEqual((result["passed"], result["tasks"], result["edges"]), (True, tasks, edges))
                result = self.run_window(name, "small", "--backend", "det", "--check=access")
                self.assertEqual((result["passed"], result["accesses"]), (True, None))

    def test_every_case_proves_something(self):
        """Kernels that do nothing leave zeros: no case takes them for right."""
        nothing = "-include " + shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nothing.h"))
        for name in fit.MEASURED:
            for case in "small", "window", "clock":
                with self.subTest(window=name, case=case):
                    done = subprocess.run([PTO, "run", os.path.join(WINDOWS, name), "--case", case, "--json"], text=True, check=False,
                                          capture_output=True, timeout=200, env={**os.environ, "CFLAGS": nothing})
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr, r"[1-9]\d* of \d+ elements are wrong")

    def test_clock_is_the_window(self):
        """That kernels do not compute changes nothing on the clock; and manifests have what was fitted on attention."""
        self.assertEqual(self.run_window("bgemm", "clock", "--backend", "det")["virtual_ns"],
                         self.run_window("bgemm", "window", "--backend", "det")["virtual_ns"])
        row, = [row for row in self.rows() if row[0] == "attention"]
        for name, us in zip(fit.MEASURED, row[3]):
            self.assertEqual(f"{self.run_window(name, 'clock', '--backend', 'det')['virtual_ns'] / 1000:.1f}", us)

    def rows(self):
        """Fitted on, submit (ns), a byte (ns), us, errors: of the document's table."""
        found = []
        for line in self.doc.splitlines():
            match = ROW.match(line)
            if match:
                words = match.groups()
                found.append((words[0], int(words[1]), round(float(words[2]) / 1000, 6), words[3::2], words[4::2]))
        return found

    def test_document(self):
        """Every number of the table is what the clock says, and each fit is one."""
        rows = self.rows()
        self.assertEqual(len(rows), 7)
        for fitted, submit, byte, us, errors in rows:
            names = [] if fitted == "nothing" else fitted.split(", ")
            for i, (name, measured) in enumerate(fit.MEASURED.items()):
                with self.subTest(fitted=fitted, window=name):
                    value = self.model.window(name, submit=submit, byte=byte)
                    self.assertEqual(f"{value:.1f}", us[i])
                    text = f"{(float(us[i]) / measured - 1) * 100:+.1f} %"
                    self.assertEqual(errors[i], f"({text})" if name in names else text)
                    if names == [name] or (name in names and fit.TELLS[name] == "byte"):
                        self.assertAlmostEqual(value / measured, 1, delta=0.002)  # it was fitted
        attention, = [row for row in rows if row[0] == "attention"]
        for error in attention[4]:
            self.assertLess(abs(float(error.strip("()% "))), 10)

    def test_measured(self):
        """What was measured stands in the document as in the program."""
        for name, us in fit.MEASURED.items():
            self.assertRegex(self.doc, rf"\| `{name}` \| [^|]+ \| {us} us \|")


tap.main()
