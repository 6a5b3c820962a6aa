#!/usr/bin/env python3
# test_pto_whatif.py: is what a trace says of other settings what happens with them?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every prediction is compared with a run that has those settings, on the virtual clock."""
import json
import os
import xml.etree.ElementTree

import pto_test
from pto_test import EXAMPLES, PtoTest

# doc/traces.md says so.
AS_RECORDED = 0.002
OTHERWISE = 0.02
WITH_WINDOWS = 0.03


class WhatIf(PtoTest):
    def record(self, example, *words):
        path = os.path.join(self.directory, "run.ptotrace")
        self.passes("run", os.path.join(EXAMPLES, example), "--backend", "det", "--trace", path, *words)
        return path

    def elapsed(self, path):
        return json.loads(self.passes("trace", path, "--json"))["elapsed_ns"]

    def ask(self, path, *words):
        return json.loads(self.passes("whatif", path, *words, "--json"))

    def check(self, example, *settings):
        """Of several settings: as options of whatif, parameters of a run, tolerance."""
        path = self.record(example)
        answer = self.ask(path)
        recorded = self.elapsed(path)
        self.assertEqual((answer["recorded_ns"], answer["points"]), (recorded, []))
        self.assertAlmostEqual(answer["as_recorded"]["makespan_ns"] / recorded, 1, delta=AS_RECORDED)
        for options, parameters, tolerance in settings:
            with self.subTest(example=example, options=options):
                point, = self.ask(path, *options)["points"]
                truth = self.elapsed(self.record(example, *(w for p in parameters for w in ("--set", p))))
                self.assertAlmostEqual(point["makespan_ns"] / truth, 1, delta=tolerance)
                self.assertAlmostEqual(point["speedup"], recorded / point["makespan_ns"], places=6)
                bounds = point["bounds"]
                self.assertLessEqual(max(bounds.values()), point["makespan_ns"])
                path = self.record(example)

    def test_batch(self):
        self.check("batch-paged-attention",
                   (["--clusters", "3"], ["clusters=3"], OTHERWISE),
                   (["--clusters", "6"], ["clusters=6"], OTHERWISE),
                   (["--clusters", "12", "--schedulers", "2"], ["clusters=12", "aicpu-threads=3"], OTHERWISE),
                   (["--task-window", "64"], ["task-window=64"], WITH_WINDOWS),
                   (["--task-window", "16"], ["task-window=16"], WITH_WINDOWS))

    def test_bgemm(self):
        self.check("bgemm",
                   (["--clusters", "3"], ["clusters=3"], OTHERWISE),
                   (["--schedulers", "1"], ["aicpu-threads=2"], OTHERWISE),
                   (["--task-window", "16"], ["task-window=16"], WITH_WINDOWS))

    def test_attention(self):
        self.check("paged-attention",
                   (["--clusters", "6"], ["clusters=6"], OTHERWISE),
                   (["--task-window", "64"], ["task-window=64"], WITH_WINDOWS))

    def test_vector(self):
        self.check("vector", (["--clusters", "3"], ["clusters=3"], 0))

    def test_limits(self):
        """Few cores, then many; a kernel that takes no time any more; a ring in which a scope finds no place."""
        path = self.record("batch-paged-attention")
        answer = self.ask(path, "--clusters", "3,24", "--kernel", "QK=1x,0x")
        points = {tuple(point["settings"].values()): point for point in answer["points"]}
        names = list(answer["points"][0]["settings"])
        self.assertEqual(sorted(names), ["clusters", "kernel QK"])
        by = {tuple(point["settings"][name] for name in ("clusters", "kernel QK")): point for point in points.values()}
        self.assertEqual(len(by), 4)
        self.assertEqual((by["3", "1x"]["limit"], by["24", "1x"]["limit"]), ("AIC", "submitter"))
        self.assertLess(by["3", "0x"]["bounds"]["aic_ns"], by["3", "1x"]["bounds"]["aic_ns"])
        self.assertEqual(by["3", "1x"]["bounds"]["aic_ns"], 8 * by["24", "1x"]["bounds"]["aic_ns"])
        self.assertLess(by["3", "0x"]["makespan_ns"], by["3", "1x"]["makespan_ns"])
        point, = self.ask(path, "--kernel", "QK=100us")["points"]
        self.assertGreater(point["bounds"]["critical_path_ns"], 100000)
        point, = self.ask(path, "--task-window", "4")["points"]
        self.assertEqual((point["stuck"], point["limit"]), (True, "task ring 1"))
        self.fails(1, ["task-window"], "run", os.path.join(EXAMPLES, "batch-paged-attention"), "--set", "task-window=4",
                   lines=0)

    def test_text(self):
        path = self.record("batch-paged-attention")
        svg = os.path.join(self.directory, "grid.svg")
        text = self.passes("whatif", path, "--clusters", "3,6,12", "--task-window", "4,64", "--svg", svg)
        self.assertIn("as recorded", text)
        self.assertIn("never ends: task ring 1", text)
        self.assertEqual(len(text.splitlines()), 3 + 6)
        root = xml.etree.ElementTree.parse(svg).getroot()
        words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("as recorded", words)
        self.assertEqual(sum("clusters=" in word for word in words), 6)
        bars = [float(node.get("width")) for node in root.iter("{http://www.w3.org/2000/svg}rect")
                if node.get("fill-opacity")]
        wanted = [point["makespan_ns"] for point in
                  self.ask(path, "--clusters", "3,6,12", "--task-window", "4,64")["points"] if "stuck" not in point]
        self.assertEqual(len(bars), 1 + len(wanted))
        rects = list(root.iter("{http://www.w3.org/2000/svg}rect"))
        keys = {node.get("fill") for node in rects if node.get("height") == "13"}
        self.assertLessEqual({node.get("fill") for node in rects if node.get("fill-opacity")}, keys)
        for bar, makespan in zip(bars[1:], wanted):
            self.assertAlmostEqual(bar / max(bars), makespan / max(wanted), delta=0.001)

    def test_refused(self):
        path = self.record("vector")
        for words, fragment in ((["--clusters", "0"], "--clusters: \"0\" is no number from 1"),
                                (["--clusters", "3,x"], "--clusters: \"x\""), (["--schedulers", ""], "--schedulers"),
                                (["--task-window", "12"], "--task-window: it is a power of two"),
                                (["--kernel", "QK=1x"], "--kernel QK: no task of the run has it"),
                                (["--kernel", "add=soon"], "--kernel add: \"soon\""), (["--kernel", "add"], "--kernel"),
                                (["--kernel", "add=1x", "--kernel", "add=2x"], "--kernel add: it is given twice"),
                                (["--svg", "x.png"], "--svg"), (["--cluster", "3"], "--cluster"),
                                (["again"], "one trace")):
            with self.subTest(words=words):
                self.fails(2, [fragment], "whatif", path, *words)
        self.fails(1, ["nowhere.ptotrace"], "whatif", "nowhere.ptotrace")
        for example, fragment in ("spmd-attention", "several cores at once"), ("histogram", "reduce"):
            self.fails(1, [fragment], "whatif", self.record(example))


pto_test.tap.main()
