#!/usr/bin/env python3
# test_pto_whatif.py: is what a trace says of other settings what happens with them?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every prediction is compared with runs that have those settings, on the virtual clock."""
import json
import os
import random
import struct
import xml.etree.ElementTree

import pto_test
import whatif_cases
from pto_test import EXAMPLES, PtoTest

# doc/traces.md says so.
AS_RECORDED = 0.001
OTHERWISE = 0.005
WITH_WINDOWS = 0
# What happens at one moment happens in an order that each run draws.
IN_PARTS = 0.04
AS_RECORDED_IN_PARTS = 0.004
SEEDS = 20


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

    def test_priorities(self):
        self.check("cholesky", (["--clusters", "3"], ["clusters=3"], OTHERWISE),
                   (["--clusters", "12"], ["clusters=12"], OTHERWISE))

    def test_parts(self):
        """Blocks, mixed tasks with pipes, starts at once with barriers, groups, tasks in clusters of their own, turns,
        conditions; each kind by itself and all together."""
        parts = whatif_cases.write(self.directory)
        for case in whatif_cases.CASES:
            path = self.record(parts, "--case", case)
            answer = self.ask(path)
            recorded = self.elapsed(path)
            self.assertAlmostEqual(answer["as_recorded"]["makespan_ns"] / recorded, 1, delta=AS_RECORDED_IN_PARTS,
                                   msg=case)
            path = os.path.join(self.directory, "parts.ptotrace")
            os.rename(os.path.join(self.directory, "run.ptotrace"), path)
            for clusters, threads in ((4, 2), (9, 3), (16, 4)):
                with self.subTest(case=case, clusters=clusters):
                    point, = self.ask(path, "--clusters", str(clusters), "--schedulers", str(threads - 1))["points"]
                    # Kernels that wait for each other make of a draw another run: the mean of three.
                    truth = sum(self.elapsed(self.record(parts, "--case", case, "--seed", str(seed),
                                                         "--set", f"clusters={clusters}",
                                                         "--set", f"aicpu-threads={threads}"))
                                for seed in (1, 2, 3)) / 3
                    self.assertAlmostEqual(point["makespan_ns"] / truth, 1, delta=IN_PARTS)

    def test_random(self):
        """Random graphs of all kinds of tasks but those whose kernels wait for each other, on random chips: as they ran,
        to the nanosecond, and on other chips."""
        for seed in range(SEEDS):
            draws = random.Random(seed)
            clusters, threads = draws.choice((3, 4, 6, 8)), draws.choice((2, 3, 4))
            parts = whatif_cases.write_random(self.directory, seed, clusters, threads)
            path = os.path.join(self.directory, "random.ptotrace")
            os.rename(self.record(parts), path)
            clusters, threads = draws.choice((4, 9, 12, 16)), draws.choice((2, 3, 4))
            answer = self.ask(path, "--clusters", str(clusters), "--schedulers", str(threads - 1))
            point, = answer["points"]
            truth = self.elapsed(self.record(parts, "--set", f"clusters={clusters}", "--set",
                                             f"aicpu-threads={threads}"))
            with self.subTest(seed=seed):
                self.assertEqual(answer["as_recorded"]["makespan_ns"], answer["recorded_ns"])
                self.assertEqual(point["makespan_ns"], truth)

    def test_attention_in_blocks(self):
        self.check("spmd-attention", (["--clusters", "3"], ["clusters=3"], OTHERWISE),
                   (["--clusters", "12"], ["clusters=12"], OTHERWISE),
                   (["--clusters", "24", "--schedulers", "1"], ["aicpu-threads=2"], OTHERWISE))

    def test_barrier(self):
        """The kernels of one task wait for each other: it takes as long as the last of them comes later. With too few
        cores it does not begin."""
        self.check("barrier", (["--clusters", "12"], ["clusters=12"], 0), (["--schedulers", "1"], ["aicpu-threads=2"], 0))
        path = self.record("barrier")
        point, = self.ask(path, "--clusters", "3")["points"]
        self.assertEqual((point["stuck"], point["limit"]), (True, "cores"))
        self.assertIn("never ends: there are too few cores for a task", self.passes("whatif", path, "--clusters", "3"))
        self.fails(3, ["16 members need AIV at once; this machine has 6: set clusters to more, at least 8"],
                   "run", os.path.join(EXAMPLES, "barrier"), "--set", "clusters=3", lines=0)

    def test_reductions(self):
        """There are as many copies as cores for those who reduce."""
        self.check("histogram", (["--clusters", "3"], ["clusters=3"], OTHERWISE),
                   (["--clusters", "6"], ["clusters=6"], OTHERWISE), (["--clusters", "12"], ["clusters=12"], OTHERWISE),
                   (["--clusters", "36"], ["clusters=36"], OTHERWISE))
        # A larger chip has more copies, and the scope that was open to the end of the record holds them all.
        path = os.path.join(self.directory, "histogram.ptotrace")
        os.rename(self.record("histogram"), path)
        for clusters, window in ((24, 256), (24, 512)):
            point, = self.ask(path, "--clusters", str(clusters), "--task-window", str(window))["points"]
            settings = ["--set", f"clusters={clusters}", "--set", f"task-window={window}"]
            with self.subTest(clusters=clusters, window=window):
                if window == 512:
                    truth = self.elapsed(self.record("histogram", *settings))
                    self.assertAlmostEqual(point["makespan_ns"] / truth, 1, delta=WITH_WINDOWS)
                else:
                    self.assertEqual((point["stuck"], point["limit"]), (True, "task ring 0"))
                    self.fails(3, ["task-window"], "run", os.path.join(EXAMPLES, "histogram"), *settings, lines=0)

    def test_older(self):
        """A record of a version that did not say where parts are to be, and what things cost."""
        def without(path, kinds):
            with open(path, "rb") as file:
                data = bytearray(file.read())
            body = data[32:]
            n_buffers, _, _, n_records = struct.unpack_from("<4Q", body, 13 * 8)
            at = 20 * 8 + 8 * (n_buffers + 1) + 8 * n_buffers
            for i in range(at, at + 32 * n_records, 32):
                kind, = struct.unpack_from("<I", body, i + 16)
                if kind in kinds:
                    # No record of that time, which nobody knows.
                    struct.pack_into("<I", body, i + 16, 63)
            total = 0xcbf29ce484222325
            for word, in struct.iter_unpack("<Q", body):
                total = (total ^ word) * 0x100000001b3 % (1 << 64)
            struct.pack_into("<Q", data, 24, total)
            with open(path, "wb") as file:
                file.write(data[:32] + body)
            return path
        path = without(self.record("batch-paged-attention"), range(35, 63))
        recorded = self.elapsed(path)
        self.assertAlmostEqual(self.ask(path)["as_recorded"]["makespan_ns"] / recorded, 1, delta=AS_RECORDED)
        path = without(self.record("spmd-attention"), range(35, 63))
        self.fails(3, ["tasks of it run in several parts, and the record is of a version that did not say where"],
                   "whatif", path)

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
        self.fails(3, ["task-window"], "run", os.path.join(EXAMPLES, "batch-paged-attention"), "--set", "task-window=4",
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
        self.fails(3, ["nowhere.ptotrace"], "whatif", "nowhere.ptotrace")
        self.fails(3, ["dependencies were not recorded"], "whatif", self.record("vector", "--set", "trace-level=2"))


pto_test.tap.main()
