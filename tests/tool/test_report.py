#!/usr/bin/env python3
# test_report.py: does a report hold what it was made of, and only as text?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_report.py REPORT-CASES: prints TAP. What single tasks were is compared with their records in
test_trace_truth.py; here are trees, blocks, names, colours and sizes."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from report_reader import Report

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "report-cases"
DEADLINE = 120
EVIL = ["</script><b>bold</b>", "\"quoted\\\"", "<img src=x onerror=document.title='broken'>",
        "{{data}}\n\t\u2028", "&lt;&amp;\u00a0\U0001f98a"]
EVIL_TITLE = "</title><script>document.title='broken'</script>{{style.css}}"


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        subprocess.run([PROGRAM, cls.directory.name], check=True, timeout=DEADLINE)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def read(self, name):
        with open(os.path.join(self.directory.name, name), encoding="utf-8", newline="") as file:
            return file.read()

    def report(self, name):
        return Report(self.read(name + ".html"))

    def test_names_are_text(self):
        evil, small = self.report("evil"), self.report("small")
        self.assertEqual(evil.kernels, EVIL)
        self.assertEqual(evil.data["title"], EVIL_TITLE)
        self.assertEqual(evil.title, EVIL_TITLE)
        self.assertNotIn("<", evil.raw)
        for mark in ("<script", "</script", "<style", "<img", "<b>", "{{"):
            # The title is there three times, and one kernel has such a name.
            self.assertEqual(evil.text.count(mark), small.text.count(mark) + 4 * (mark == "{{"), mark)
        # Twice as title, in the head and above the page, and nowhere else.
        self.assertEqual(evil.text.count("&lt;/title&gt;"), 2)

    def test_needs_nothing_else(self):
        """No address of anything, and a browser that is told to load nothing."""
        text = self.report("small").text
        self.assertIn("default-src 'none'", text)
        self.assertEqual(set(re.findall(r"https?://[^\"' ]*", text)), {"http://www.w3.org/2000/svg"})
        self.assertFalse(re.search(r"\b(src|href)=|@import|\bfetch\b|XMLHttpRequest|\bimport\s*\(", text))

    def test_colours_are_those_of_the_picture(self):
        for name in ("small", "tree"):
            report = self.report(name)
            picture = self.read(name + ".svg")
            fills = {int(k): colour for k, colour in re.findall(
                r'<pattern id="p(\d+)".*?<rect width="6" height="6" fill="(#[0-9a-f]{6})"/>', picture)}
            shown = {}
            for node in xml.etree.ElementTree.fromstring(picture.encode()).iter():
                words = (node.get("class") or "").split()
                title = node.find("{http://www.w3.org/2000/svg}title")
                if words and re.fullmatch(r"k\d+", words[0]) and title is not None:
                    found = re.match(r"task (\S+) [\d:]+(?:,| on )", title.text)
                    shown[found.group(1)] = fills[int(words[0][1:])]
            self.assertEqual({kernel["name"]: kernel["colour"] for kernel in report.data["kernels"]}, shown)
            self.assertGreaterEqual(len(shown), 5)

    def test_short_tasks_in_a_picture(self):
        """32 000 runs in a few thousand bars: each row as full as its core was busy, and of the kernels that ran."""
        self.report("short")
        space = "{http://www.w3.org/2000/svg}"
        rows = {}
        for group in xml.etree.ElementTree.fromstring(self.read("short.svg").encode()).iter(space + "g"):
            shade, *parts = [{key: float(node.get(key)) for key in ("x", "y", "width", "height")}
                             | {"class": node.get("class")} for node in group.iter(space + "rect")]
            self.assertEqual(shade["class"], "joined")
            row = rows.setdefault(shade["y"], {"joined": 0, "k0": 0, "k1": 0})
            row["joined"] += shade["width"] * shade["height"]
            for part in parts:
                row[part["class"]] += part["width"] * part["height"]
        shares = [[row[kernel] / row["joined"] for kernel in ("k0", "k1")] for _, row in sorted(rows.items())]
        for got, wanted in zip(shares, ((0.02, 0.06), (0.4, 0), (0.9, 0)), strict=True):
            for a, b in zip(got, wanted):
                self.assertAlmostEqual(a, b, delta=0.02)
        self.assertIn("many short tasks: as high as busy", self.read("short.svg"))
        self.assertNotIn("many short tasks", self.read("small.svg"))

    def test_tree(self):
        report = self.report("tree")
        rows = report.data["rows"]
        names = [(row["depth"], row["parent"], row["path"], row["name"]) for row in rows]
        inside = ["AIC0", "AIV0", "AIV1", "AIC1", "AIV2"]
        self.assertEqual(names, [(0, -1, "L3/0", "L2/0")] + [(1, 0, "L3/0/L2/0", name) for name in inside]
                         + [(0, -1, "L3/0", "L2/1")] + [(1, 6, "L3/0/L2/1", name) for name in inside]
                         + [(0, -1, "L3/0", "sub0")])
        self.assertEqual([row["kind"] for row in rows], ["worker", "AIC", "AIV", "AIV", "AIC", "AIV"] * 2
                         + ["SUB worker"])
        sections = report.data["sections"]
        self.assertEqual([section["task"] for section in sections], [-1, 0, 1, 3, 4])
        self.assertEqual([section["parent"] for section in sections], [0, 0, 0, 0, 0])
        self.assertEqual([section["path"] for section in sections],
                         ["L3/0"] + ["L3/0/L2/0", "L3/0/L2/1"] * 2)
        self.assertEqual([section["tasks"] for section in sections], [6] + [78] * 4)
        self.assertEqual([section["first"] for section in sections], [0, 6, 84, 162, 240])
        self.assertEqual([section["virtual"] for section in sections], [False] + [True] * 4)
        # 1 us after its begin the level's first record is time 0; a chip's run began with its task's
        # record, took 320 us, and its own clock says how those are shared out.
        chips = [report.tasks[section["first"]:section["first"] + 78] for section in sections[1:]]
        for section, tasks, begin in zip(sections[1:], chips, (19000, 19000, 419000, 419000)):
            self.assertEqual((section["begin"], section["took"]), (begin, 320000))
            last = max(task["end"] for task in tasks)
            self.assertEqual(last, begin + 320000)
            first = min(task["submit"] for task in tasks)
            self.assertEqual(first, begin + 1000000 * 320000 // section["own"])
            outer = report.tasks[section["task"]]
            self.assertLessEqual(outer["start"], first)
            self.assertLessEqual(last, outer["end"])
        for a, b in zip(chips[0], chips[2]):
            self.assertEqual(a["start"] + 400000, b["start"])
            self.assertEqual(a["row"], b["row"])
        # Edges stay within a run.
        self.assertEqual(len(report.edges), 4 + 4 * 90)
        self.assertEqual([edge[:3] for edge in report.edges[:4]], [(0, 0, 2), (1, 1, 2), (3, 3, 5), (4, 4, 5)])
        for producer, _, consumer, _ in report.edges[4:]:
            self.assertEqual((producer - 6) // 78, (consumer - 6) // 78)

    def test_blocks(self):
        report = self.report("blocks")
        self.assertEqual([{key: task[key] for key in ("id", "block", "row", "start", "end", "dispatch",
                                                      "shares", "kernel")} for task in report.tasks],
                         [{"id": 0, "block": 2, "row": 1, "start": 210, "end": 370, "dispatch": 30,
                           "shares": True, "kernel": "spread"},
                          {"id": 1, "block": None, "row": None, "start": None, "end": None,
                           "dispatch": None, "shares": False, "kernel": "no kernel"},
                          {"id": 0, "block": 0, "row": 0, "start": 50, "end": 150, "dispatch": 20,
                           "shares": False, "kernel": "spread"},
                          {"id": 0, "block": 1, "row": 1, "start": 60, "end": 200, "dispatch": 30,
                           "shares": False, "kernel": "spread"}])
        self.assertEqual(report.members, {0: range(2, 4)})
        self.assertEqual(report.edges, [(0, 0, 1, 16)])
        self.assertEqual([task["failed"] for task in report.tasks], [True, False, True, True])
        self.assertEqual(report.data["elapsed"], 370)
        self.assertEqual(report.data["rows"][1]["busy"], 300)
        # The first block waited for another kernel for 30 ns of its 100: its core was not busy then.
        self.assertEqual([task["waited"] for task in report.tasks], [0, 0, 30, 0])
        self.assertEqual(report.data["rows"][0]["busy"], 70)

    def test_given(self):
        """What tasks were given, where their submits and scopes stand, and what rings held."""
        report = self.report("given")
        address, whole = 0xffff800012345000, ("float32", [4, 8], [], 0xffff800012345000)
        self.assertEqual(report.arguments, {
            0: [(0, 1, whole), (1, 5, 2 ** 64 - 5)],
            1: [(0, 0, ("float32", [4, 4], [8, 1], address)), (1, 2, whole)]})
        self.assertEqual([task["source"] for task in report.tasks],
                         [("/somewhere/<graph>.c", 12), ("/somewhere/<graph>.c", 13)])
        self.assertEqual([task["last"] for task in report.tasks], [None, 0])
        # For data until the first one has ended, then for the scheduler.
        self.assertEqual([task["waits"] for task in report.tasks], [[0, 0, 50], [800, 0, 50]])
        edges = report.data["edges"]
        self.assertEqual([edges[name] for name in ("consumer_argument", "producer_argument", "from", "bytes")],
                         [[1], [0], [0], [128]])
        self.assertEqual({name: report.data["scopes"][name] for name in ("n", "start", "length", "depth", "file", "line")},
                         {"n": 1, "start": [0], "length": [300], "depth": [1], "file": [0], "line": [7]})
        self.assertEqual(report.strips["heap", "ring 1"], [(100, 4096), (200, 8192), (2000, 0)])
        self.assertEqual(report.strips["pool", "ring 1"], [(100, 0), (200, 1), (2000, 0)])
        self.assertEqual(report.strips["map", "nodes"], [(100, 1), (200, 3)])

    def test_waits(self):
        """Of each task they are the time from its submit to its start, also where a chip's clock is another one."""
        for name in ("small", "large", "tree"):
            report = self.report(name)
            for task in report.tasks:
                if task["submit"] is not None and task["start"] is not None:
                    self.assertAlmostEqual(sum(task["waits"]), task["start"] - task["submit"], delta=3)
        self.assertGreater(sum(task["waits"][1] for task in self.report("small").tasks), 0)

    def test_dropped(self):
        report = self.report("dropped")
        self.assertEqual(report.data["dropped"], 20)
        self.assertEqual(report.data["drops"], [{"n": 20, "name": "orchestrator"}])
        self.assertTrue(any(task["submit"] is None for task in report.tasks))

    def test_empty(self):
        report = self.report("empty")
        self.assertEqual((report.title, report.tasks, report.edges, report.data["rows"]),
                         ("Task graph", [], [], []))

    def test_size(self):
        report = self.report("large")
        self.assertEqual(len(report.tasks), 100009)
        self.assertEqual(len(report.edges), 7693 * 15)
        size = len(report.text.encode())
        print("# 100 000 tasks: %.1f MB" % (size / 1e6))
        self.assertLess(size, 20e6)

    def test_is_deterministic(self):
        with tempfile.TemporaryDirectory() as again:
            subprocess.run([PROGRAM, again, "tree", "evil", "small"], check=True, timeout=DEADLINE)
            for name in ("tree.html", "evil.html", "small.html"):
                with open(os.path.join(again, name), encoding="utf-8", newline="") as file:
                    self.assertEqual(file.read(), self.read(name))


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
    import tap
    tap.main()
