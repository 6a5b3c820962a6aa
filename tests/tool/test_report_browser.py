#!/usr/bin/env python3
# test_report_browser.py: does a report show in a browser what it holds, and do mouse and keys work?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_report_browser.py REPORT-CASES: prints TAP. Chromium does what a person does; what is to be
seen is read from the page's numbers by report_reader.py."""
import html
import os
import re
import subprocess
import sys
import tempfile
import unittest

import browser
from report_reader import Report

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "report-cases"
DEADLINE = 120
PAPER, DARK_PAPER = [255, 255, 255], [17, 22, 28]

# Pixels of a copy of a canvas, alpha left out: what is shown is not to be read.
PIXELS = """
const [name, x, y, height] = arguments;
const canvas = document.getElementById (name);
const copy = document.createElement ("canvas");
copy.height = height;
const c = copy.getContext ("2d", { willReadFrequently: true });
c.drawImage (canvas, -Math.round (x), -Math.round (y));
const bytes = c.getImageData (0, 0, 1, height).data;
return Array.from ({ length: height }, (_, k) => Array.from (bytes.slice (4 * k, 4 * k + 3)));
"""


def rgb(colour):
    return [int(colour[k:k + 2], 16) for k in (1, 3, 5)]


def nanoseconds(text):
    number, unit = re.fullmatch(r"\+?([\d.\u2009\u2212]+)\u2009(ns|\u00b5s|ms|s)", text).groups()
    return round(float(number.replace("\u2009", "")) * {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}[unit])


@unittest.skipIf(browser.missing(), "there is no %s: install chromium and chromium-driver" % browser.missing())
class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        subprocess.run([PROGRAM, cls.directory.name], check=True, timeout=DEADLINE)
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.directory.cleanup()

    def setUp(self):
        self.look("light")

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def look(self, scheme="light", media=""):
        self.browser.command("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def open(self, name):
        """The page in the browser, and what it is to show."""
        self.browser.open(self.path(name + ".html"))
        self.browser.settle()
        self.assertEqual(self.ask("document.documentElement.dataset.state"), "ready")
        with open(self.path(name + ".html"), encoding="utf-8", newline="") as file:
            report = Report(file.read())
        self.stage = self.ask("(box => [box.left, box.top]) (document.getElementById ('timeline').getBoundingClientRect ())")
        return report

    def ask(self, expression, *arguments):
        return self.browser.run("return %s;" % expression, *arguments)

    def press(self, *keys):
        self.browser.press(*keys)

    def focus(self):
        self.browser.run("document.getElementById ('timeline').focus ();")

    def spot(self, entry):
        """Where its bar is in the canvas."""
        return self.ask("report.spot (arguments[0])", entry)

    def pixel(self, x, y, canvas="timeline"):
        return self.browser.run(PIXELS, canvas, x, y, 1)[0]

    def text(self, selector):
        return self.ask("document.querySelector (arguments[0]).innerText", selector)

    def texts(self, selector):
        return self.ask("Array.from (document.querySelectorAll (arguments[0]), node => node.innerText)", selector)

    def click_entry(self, entry):
        spot = self.spot(entry)
        self.browser.click(self.stage[0] + (spot["x0"] + spot["x1"]) / 2, self.stage[1] + spot["y"])

    def view(self):
        return self.ask("report.view")

    def colour(self, report, entry):
        kernel = report.data["tasks"]["kernel"][entry]
        return rgb(report.data["kernels"][kernel]["colour"])

    # --- what travels ---

    def test_moved(self):
        """Half bars on the row of the worker, sent above and received below, where the pointer says what they are."""
        self.open("moved")
        bar = self.spot(0)
        scale = (bar["x1"] - bar["x0"]) / 20

        def place(us):
            return bar["x0"] + (us - 30) * scale
        upper, lower = bar["y"] - 4, bar["y"] + 4
        sent, received = rgb("#3b6ea8"), rgb("#b86f00")
        for us, colours in ((12, (sent, None)), (28, (sent, None)), (52, (None, received)), (58, (None, received)), (70, (None, None)),
                            (90, (None, received))):
            for y, colour in zip((upper, lower), colours):
                found = self.pixel(place(us), y)
                if colour is None:
                    self.assertNotIn(found, (sent, received), us)
                else:
                    self.assertEqual(found, colour, us)
        for us, y, said in ((20, upper, ["3.0\u2009MiB sent to L3/0", "in 20.00\u2009\u00b5s for step 0"]),
                            (55, lower, ["2.0\u2009KiB received from L3/0", "in 10.00\u2009\u00b5s for step 0"]),
                            (90, lower, ["7\u00a0bytes received from L3/0", "in 20.00\u2009\u00b5s"])):
            self.browser.hover(self.stage[0] + place(us), self.stage[1] + y)
            self.assertEqual(self.text("#tip").split("\n"), said)
        for us, y in ((20, lower), (55, upper), (70, upper)):
            self.browser.hover(self.stage[0] + place(us), self.stage[1] + y)
            self.assertTrue(self.ask("document.getElementById ('tip').hidden"), us)
        self.click_entry(0)
        panel = self.text("#panel-task").split("\n")
        at = panel.index("Tensors")
        self.assertEqual([line.split("\t") for line in panel[at + 1:at + 4]],
                         [["sent", "3.0\u2009MiB", "to where it ran"], ["received", "2.0\u2009KiB", "from there"],
                          ["not sent again", "512\u00a0bytes", "was there already"]])
        self.assertIn("tensors sent, received", self.text("#legend").replace("\n", ""))

    # --- the picture ---

    def test_every_page_opens(self):
        for name in ("empty", "dropped", "blocks", "given", "moved", "tree", "small", "evil"):
            report = self.open(name)
            self.assertEqual(self.ask("report.n"), len(report.tasks))
            self.assertEqual(self.browser.errors(), [], name)
            for tab in ("kernels", "path", "run", "task"):
                self.browser.run("document.getElementById ('tab-' + arguments[0]).click ();", tab)
                self.assertNotIn("NaN", self.text("#panel-" + tab))
                self.assertNotIn("undefined", self.text("#panel-" + tab))
            self.focus()
            self.press("g")
            self.press("g")

    def test_bars_have_colours_and_places(self):
        report = self.open("small")
        self.focus()
        self.press("c")
        seen = 0
        for row in range(len(report.data["rows"])):
            entries = sorted((i for i, task in enumerate(report.tasks) if task["row"] == row),
                             key=lambda i: report.tasks[i]["start"])
            for entry in entries[:1] + entries[-1:]:
                spot = self.spot(entry)
                width = self.ask("document.getElementById ('timeline').width")
                scale = (width - 16 - 152) / report.data["last"]
                task = report.tasks[entry]
                self.assertAlmostEqual(spot["x0"], 152 + task["start"] * scale, delta=0.01)
                self.assertAlmostEqual(spot["x1"], 152 + task["end"] * scale, delta=0.01)
                colour = self.colour(report, entry)
                self.assertEqual(self.pixel((spot["x0"] + spot["x1"]) / 2, spot["y"] - 12), colour)
                self.assertEqual(self.pixel(spot["x0"] + 1, spot["y"] - 12), colour)
                if entry == entries[0] and task["start"] * scale > 4:
                    self.assertNotEqual(self.pixel(spot["x0"] - 2, spot["y"] - 12), colour)
                if entry == entries[-1] and task["end"] < report.data["last"]:
                    self.assertNotEqual(self.pixel(spot["x1"] + 2, spot["y"] - 12), colour)
                seen += 1
        self.assertGreaterEqual(seen, 9)

    def test_critical_path_is_outlined(self):
        report = self.open("small")
        red = rgb("#c8102e")
        entry = report.data["critical"][2]
        spot = self.spot(entry)
        around = [self.pixel(spot["x0"] + dx, spot["y"] - 5) for dx in (-1, 0, 1)]
        self.assertTrue(any(max(abs(a - b) for a, b in zip(pixel, red)) < 90 for pixel in around), around)
        self.focus()
        self.press("c")
        self.assertEqual(self.ask("document.getElementById ('critical').getAttribute ('aria-pressed')"), "false")
        around = [self.pixel(spot["x0"] + dx, spot["y"] - 5) for dx in (-1, 0, 1)]
        self.assertFalse(any(max(abs(a - b) for a, b in zip(pixel, red)) < 90 for pixel in around), around)

    def test_wheel_zooms_at_the_pointer(self):
        self.open("small")
        before = self.view()
        x = 152 + 300
        width = self.ask("document.getElementById ('timeline').width") - 16 - 152
        middle = before["t0"] + 300 / width * (before["t1"] - before["t0"])
        self.browser.wheel(self.stage[0] + x, self.stage[1] + 200, -300)
        after = self.view()
        self.assertLess(after["t1"] - after["t0"], 0.6 * (before["t1"] - before["t0"]))
        self.assertAlmostEqual(after["t0"] + 300 / width * (after["t1"] - after["t0"]), middle,
                               delta=(after["t1"] - after["t0"]) / width)
        # Dragging takes what is under the pointer along.
        self.browser.drag(self.stage[0] + x, self.stage[1] + 200, self.stage[0] + x - 100, self.stage[1] + 200)
        moved = self.view()
        self.assertAlmostEqual(moved["t0"] - after["t0"], 100 / width * (after["t1"] - after["t0"]),
                               delta=(after["t1"] - after["t0"]) / width)
        self.browser.run("document.getElementById ('fit').click ();")
        self.browser.settle()
        self.assertEqual([self.view()[key] for key in ("t0", "t1")], [before["t0"], before["t1"]])

    def test_large(self):
        report = self.open("large")
        print("# 100 000 tasks: first picture after %.0f ms, the whole run again in %.1f ms"
              % (self.ask("report.firstPicture"), self.ask("Math.min (...Array.from ({ length: 9 }, report.redraw))")))
        # All are narrower than a pixel. Where cores were busy that is to be seen, and what they ran most.
        busy, idle = (self.ask("report.rowY (arguments[0])", row) for row in (0, 20))
        self.assertEqual(report.data["rows"][20]["busy"], 0)
        for x in (300, 500, 700):
            blue = self.pixel(x, busy)
            self.assertGreater(blue[2] - blue[0], 60, blue)
            self.assertIn(self.pixel(x, idle), (PAPER, rgb("#f5f7f9"), rgb("#e4e8ec")))
        entry = 50007
        self.browser.run("document.getElementById ('search').focus ();")
        self.browser.write(str(report.tasks[entry]["id"] % 2 ** 32))
        self.press("Enter")
        self.assertEqual(self.ask("report.selected"), entry)
        self.focus()
        self.press("f")
        spot = self.spot(entry)
        self.assertGreater(spot["x1"] - spot["x0"], 60)
        self.press("Escape")
        self.press("c")
        self.assertEqual(self.pixel(spot["x0"] + 4, spot["y"]), self.colour(report, entry))

    def test_columns_are_as_high_as_they_were_busy(self):
        """What is narrower than a pixel fills the share of it that it took, from the ground up."""
        report = self.open("short")
        self.focus()
        self.press("c")
        colours = {kernel["name"]: rgb(kernel["colour"]) for kernel in report.data["kernels"]}
        for row, share, kernel in (0, 0.08, "long"), (1, 0.4, "brief"), (2, 0.9, "brief"):
            self.assertAlmostEqual(report.data["rows"][row]["busy"] / report.data["elapsed"], share, delta=0.001)
            top, height = self.ask("report.rowBox (arguments[0])", row)
            self.assertGreater(height, 30)
            top, height = top + 1.5, height - 3
            for x in range(160, 1000, 83):
                pixels = self.browser.run(PIXELS, "timeline", x, round(top), round(height))
                strong = [max(abs(a - b) for a, b in zip(pixel, colours[kernel])) < 40 for pixel in pixels]
                pale = [max(pixel) > 215 and pixel != list(PAPER) for pixel in pixels]
                ground = len(strong) - 1 - int(share * len(strong))
                # In eighths of the row, and as far as a column is not quite like the others.
                if share > 0.1:
                    self.assertTrue(all(strong[ground + 6:-1]), (row, x, pixels))
                self.assertFalse(any(strong[:max(ground - 6, 0)]), (row, x, pixels))
                self.assertTrue(all(pale[1:max(ground - 6, 1)]), (row, x, pixels))
        # The chart above it is not full either: 1.38 of three cores.
        pixels = self.browser.run(PIXELS, "timeline", 600, 6, 36)
        coloured = sum(any(max(abs(a - b) for a, b in zip(pixel, colour)) < 60 for colour in colours.values())
                       for pixel in pixels)
        self.assertAlmostEqual(coloured, 36 / 1.08 * 1.38 / 3, delta=2.5)

    def test_clusters_without_work(self):
        report = self.open("few")
        used = {task["row"] // 3 for task in report.tasks if task["row"] >= 0}
        self.assertTrue(1 <= len(used) < 20)
        rows = [row for row in range(72) if row // 3 in used]
        text = f"{24 - len(used)}\u00a0clusters without work"
        self.assertEqual(self.ask("report.shown ()"), rows)
        fold = self.ask("report.fold ()")
        self.assertEqual(fold["text"], text)
        # It lies below the last row, and is to be seen.
        top, height = self.ask("report.rowBox (arguments[0])", rows[-1])
        self.assertGreater(fold["y"] - 9, top + height)
        dark = self.browser.run("""
            const [y] = arguments;
            const bytes = document.getElementById ("timeline").getContext ("2d").getImageData (12, Math.round (y) - 6, 150, 12).data;
            return bytes.filter ((value, k) => k % 4 === 0 && value < 150).length;""", fold["y"])
        self.assertGreater(dark, 100)
        # A click there shows them, and again not; so does a key.
        self.browser.click(self.stage[0] + 40, self.stage[1] + fold["y"])
        self.assertEqual(self.ask("report.shown ()"), list(range(72)))
        self.assertEqual(self.ask("report.fold ()")["text"], text + ", shown")
        self.focus()
        self.press("e")
        self.assertEqual(self.ask("report.shown ()"), rows)
        self.press("e", "e")
        self.assertEqual(self.ask("report.shown ()"), rows)
        # Where all have work there is nothing to fold.
        self.open("small")
        self.assertIsNone(self.ask("report.fold ()"))

    # --- a task ---

    def test_selected_task(self):
        report = self.open("small")
        entry = next(i for i, task in enumerate(report.tasks) if task["kernel"] == "UP" and i > 20)
        task = report.tasks[entry]
        self.click_entry(entry)
        self.assertEqual(self.ask("report.selected"), entry)
        self.assertIn("UP", self.text("#panel-task h2"))
        self.assertIn(str(task["id"] % 2 ** 32), self.text("#panel-task h2"))
        self.assertIn(report.data["rows"][task["row"]]["name"], self.text("#panel-task .where"))
        shown = self.ask("Object.fromEntries (Array.from (document.querySelectorAll ('[data-time]'),"
                         " row => [row.dataset.time, row.querySelector ('td').innerText]))")
        self.assertEqual({name: nanoseconds(text) for name, text in shown.items()},
                         {name: task[name] for name in ("submit", "ready", "dispatch", "ack", "start", "end",
                                                        "complete", "retire")})
        producers = [edge[0] for edge in report.edges if edge[2] == entry]
        consumers = [edge[2] for edge in report.edges if edge[0] == entry]
        self.assertEqual(len(producers), 3)
        late = max(producers, key=lambda p: report.tasks[p]["complete"])
        self.assertEqual(self.ask("report.about (arguments[0]).late", entry), late)
        lists = self.ask("Array.from (document.querySelectorAll ('#panel-task ul'), list => Array.from"
                         " (list.querySelectorAll ('[data-entry]'), item => Number (item.dataset.entry)))")
        self.assertEqual(lists[0][0], late)
        self.assertEqual(sorted(lists[0]), sorted(producers))
        if consumers:
            self.assertEqual(sorted(lists[1]), sorted(consumers))
        self.assertEqual(self.ask("document.querySelector ('#panel-task .badge.late')"
                                  ".closest ('[data-entry]').dataset.entry"), str(late))
        self.assertEqual(task["last"], late)
        # What it waited for, from its submit to its start.
        self.assertEqual(sum(task["waits"]), task["start"] - task["submit"])
        waits = self.ask("report.about (arguments[0]).waits", entry)
        self.assertEqual([waits[key] for key in ("data", "core", "scheduler", "run", "notice", "slot")],
                         [*task["waits"], task["end"] - task["start"], task["complete"] - task["end"],
                          task["retire"] - task["complete"]])
        shown = dict(zip(self.texts("#panel-task .bars th"), self.texts("#panel-task .bars .number")))
        self.assertAlmostEqual(nanoseconds(shown["waited for data"]), task["waits"][0], delta=5)
        # Others are paler, it is not; its last producer is outlined in the colour of its arrow.
        self.assertEqual(self.pixel(self.spot(entry)["x0"] + 4, self.spot(entry)["y"] - 10), self.colour(report, entry))
        other = next(i for i, t in enumerate(report.tasks) if i not in producers + consumers + [entry])
        self.assertNotEqual(self.pixel(self.spot(other)["x0"] + 3, self.spot(other)["y"] - 12), self.colour(report, other))
        # A producer in the list is a way to it.
        self.browser.run("document.querySelector ('#panel-task ul [data-entry]').click ();")
        self.assertEqual(self.ask("report.selected"), late)

    def test_what_a_task_was_given(self):
        self.open("given")
        self.click_entry(1)
        self.assertEqual(self.ask("Array.from (document.querySelectorAll ('.arguments tr'), row => Array.from (row.cells, cell => cell.innerText))"),
                         [["0", "INPUT", "float32 [4, 4] by [8, 1]", "0xffff800012345000"],
                          ["1", "INOUT", "float32 [4, 8]", "0xffff800012345000"]])
        self.assertEqual(self.texts("#panel-task .where"),
                         ["on AIV0, priority 2, by scheduler 0", "submitted at <graph>.c:13", "in the scope of <graph>.c:7"])
        self.assertIn("RAW WAW, argument 1, 128\u00a0bytes", self.text("#panel-task .tasks"))
        self.click_entry(0)
        self.assertEqual(self.texts(".arguments tr:nth-child(2) td"), ["scalar", "-5", ""])
        self.browser.run("document.getElementById ('tab-run').click ();")
        self.assertRegex(self.text("#panel-run"), r"heap\s+8\.0\u2009KiB\s+dependency pool\s+1\s+tensor map\s+3")

    def test_blocks_are_one_task(self):
        report = self.open("blocks")
        self.click_entry(2)
        self.assertEqual(self.ask("report.selected"), 2)
        self.assertIn("block 0", self.text("#panel-task .where"))
        self.assertEqual(self.ask("Array.from (document.querySelectorAll ('#panel-task ul'), list => Array.from"
                                  " (list.querySelectorAll ('[data-entry]'), item => Number (item.dataset.entry)))"),
                         [[1], [0, 3]])
        shown = dict(zip(self.texts("#panel-task .bars th"), self.texts("#panel-task .bars .number")))
        self.assertEqual((shown["ran"], shown["waited for other kernels"]), ("70\u2009ns", "30\u2009ns"))
        self.assertIn("failed", self.text("#panel-task .badges"))
        self.assertEqual(report.members[0], range(2, 4))

    # --- keys ---

    def test_keys(self):
        report = self.open("small")
        self.focus()
        whole = self.view()
        self.press("w")
        near = self.view()
        self.assertAlmostEqual(near["t1"] - near["t0"], 0.6 * (whole["t1"] - whole["t0"]), places=3)
        self.press("d")
        self.assertGreater(self.view()["t0"], near["t0"])
        self.press("a", "a")
        self.assertLess(self.view()["t0"], near["t0"])
        self.press("ArrowRight")
        self.assertEqual(self.ask("report.selected"), -1)
        self.press("s", "s", "0")
        self.assertEqual([self.view()[key] for key in ("t0", "t1")], [whole["t0"], whole["t1"]])
        self.press("Enter")
        first = self.ask("report.selected")
        self.assertGreaterEqual(first, 0)
        row = sorted((i for i, task in enumerate(report.tasks) if task["row"] == report.tasks[first]["row"]),
                     key=lambda i: report.tasks[i]["start"])
        self.press("ArrowRight")
        self.assertEqual(self.ask("report.selected"), row[row.index(first) + 1])
        self.press("ArrowLeft", "ArrowLeft")
        self.assertEqual(self.ask("report.selected"), row[row.index(first) - 1])
        self.press("ArrowDown")
        self.assertEqual(report.tasks[self.ask("report.selected")]["row"], report.tasks[first]["row"] + 1)
        self.press("ArrowUp")
        self.assertEqual(report.tasks[self.ask("report.selected")]["row"], report.tasks[first]["row"])
        self.press("Escape")
        self.assertEqual(self.ask("report.selected"), -1)
        self.press("?")
        self.assertTrue(self.ask("document.getElementById ('help').open"))
        self.press("Escape")
        self.assertFalse(self.ask("document.getElementById ('help').open"))
        # What has the keyboard is seen to have it, and everything can have it and says what it is.
        self.press("Tab")
        self.assertNotEqual(self.ask("getComputedStyle (document.activeElement).outlineStyle"), "none")
        self.assertEqual(self.ask("Array.from (document.querySelectorAll ('button, input, canvas[tabindex], svg[tabindex]')).filter"
                                  " (node => !(node.getAttribute ('aria-label') || node.textContent.trim ())).length"), 0)

    def test_search(self):
        report = self.open("small")
        self.focus()
        self.press("/")
        self.browser.write("sf")
        wanted = sorted((i for i, task in enumerate(report.tasks) if task["kernel"] == "SF"),
                        key=lambda i: report.tasks[i]["start"])
        self.assertEqual(self.ask("report.found"), wanted)
        self.assertEqual(self.text("#hits"), str(len(wanted)))
        other = next(i for i, task in enumerate(report.tasks) if task["kernel"] == "PV")
        for entry, is_found in ((wanted[0], True), (other, False)):
            spot = self.spot(entry)
            self.assertEqual(self.pixel(spot["x0"] + 4, spot["y"] - 11) == self.colour(report, entry), is_found)
        self.press("Enter", "Enter")
        self.assertEqual(self.ask("report.selected"), wanted[1])
        self.browser.run("document.getElementById ('search').value = ''; document.getElementById ('search').focus ();")
        for text, numbers in (("1:17", [17]), ("17 of ring 1", [17]), ("0:17", []), ("up 12", [12]), ("qk 12", []),
                              ("up 1:12", [12]), ("up 0:12", [])):
            self.browser.run("const field = document.getElementById ('search'); field.value = arguments[0];"
                             "field.dispatchEvent (new Event ('input'));", text)
            self.assertEqual([report.tasks[i]["id"] % 2 ** 32 for i in self.ask("report.found")], numbers, text)
        self.press("Escape")
        self.press("Escape")
        self.assertEqual(self.text("#hits"), "")

    # --- beside the picture ---

    def test_kernels(self):
        report = self.open("small")
        self.browser.run("document.getElementById ('tab-kernels').click ();")
        took = {}
        for task in report.tasks:
            took.setdefault(task["kernel"], []).append(task["end"] - task["start"])
        total = sum(sum(times) for times in took.values())

        def read():
            return self.ask("Array.from (document.querySelectorAll ('#kernels tbody tr'), row => Array.from (row.cells, cell => cell.innerText.trim ()))")
        order = sorted(took, key=lambda name: -sum(took[name]))
        lines = read()
        self.assertEqual([line[0] for line in lines], order)
        for line in lines:
            times = took[line[0]]
            self.assertEqual(line[1], str(len(times)))
            for text, value in zip(line[2:6], (sum(times), sum(times) / len(times), min(times), max(times))):
                self.assertAlmostEqual(nanoseconds(text), value, delta=value * 0.001)
            self.assertEqual(line[6], "%.*f\u2009%%" % (100 * sum(times) / total < 9.95, 100 * sum(times) / total))
        self.browser.run("document.querySelector ('[data-by=min]').click ();")
        self.assertEqual([line[0] for line in read()], sorted(took, key=lambda name: -min(took[name])))
        self.browser.run("document.querySelector ('[data-by=min]').click ();")
        self.assertEqual([line[0] for line in read()], sorted(took, key=lambda name: min(took[name])))
        self.assertEqual(self.ask("document.querySelector ('[data-by=min]').parentNode.ariaSort"), "ascending")

    def test_critical_path(self):
        report = self.open("small")
        self.browser.run("document.getElementById ('tab-path').click ();")
        lines = self.ask("Array.from (document.querySelectorAll ('#path tbody tr'), row => [Number (row.dataset.row), row.cells[1].innerText, row.cells[2].innerText])")
        self.assertEqual([line[0] for line in lines], report.data["critical"])
        for entry, began, ran in lines:
            task = report.tasks[entry]
            self.assertEqual(nanoseconds(began), task["start"])
            self.assertAlmostEqual(nanoseconds(ran), task["end"] - task["start"], delta=5)
        shares = [nanoseconds(text) for text in self.texts("#panel-path .shares td:nth-of-type(1)")]
        path = [report.tasks[entry] for entry in report.data["critical"]]
        self.assertAlmostEqual(sum(shares), path[-1]["end"], delta=60)
        self.assertAlmostEqual(shares[1], sum(task["end"] - task["start"] for task in path), delta=30)

    def test_graph(self):
        report = self.open("small")
        self.focus()
        self.press("g")
        nodes = self.ask("Array.from (document.querySelectorAll ('.node'), node => Number (node.dataset.entry))")
        self.assertEqual(sorted(nodes), list(range(len(report.tasks))))
        self.assertEqual(self.ask("document.querySelectorAll ('.edge').length"), len(report.edges))
        # Producers are to the left.
        places = self.ask("Object.fromEntries (Array.from (document.querySelectorAll ('.node'), node =>"
                          " [node.dataset.entry, node.getBoundingClientRect ().left]))")
        for producer, _, consumer, _ in report.edges:
            self.assertLess(places[str(producer)], places[str(consumer)])
        self.browser.run("document.querySelector ('[data-entry=\"15\"].node').focus ();")
        self.press("Enter")
        self.assertEqual(self.ask("report.selected"), 15)
        self.assertIn("chosen", self.ask("document.querySelector ('[data-entry=\"15\"].node').getAttribute ('class')"))
        late = self.ask("report.about (15).late")
        self.assertIn("late", self.ask("document.querySelector ('[data-entry=\"' + arguments[0] + '\"].node').getAttribute ('class')", late))
        self.press("g")
        self.assertFalse(self.ask("document.getElementById ('timeline').hidden"))

    def test_dropped(self):
        self.open("dropped")
        self.assertIn("20", self.text("#figures .bad"))
        self.browser.run("document.getElementById ('tab-run').click ();")
        self.assertRegex(self.text("#panel-run"), r"of orchestrator\s+20")

    def test_tree(self):
        report = self.open("tree")
        inner = next(i for i, task in enumerate(report.tasks) if task["row"] == 1)
        self.assertEqual(self.ask("report.spot (arguments[0]).y", inner) > self.spot(0)["y"], True)
        # Folded away, what is inside stands where its worker is.
        self.browser.click(self.stage[0] + 20, self.stage[1] + self.spot(0)["y"])
        self.assertEqual(self.spot(inner)["y"], self.spot(0)["y"])
        self.click_entry(0)
        self.browser.run("document.querySelector ('#panel-task .inside button').click ();")
        self.browser.settle()
        selected = self.ask("report.selected")
        self.assertEqual(report.tasks[selected]["start"], min(task["start"] for task in report.tasks[6:84]))
        self.assertGreater(self.spot(selected)["y"], self.spot(0)["y"])
        self.assertLess(self.view()["t1"] - self.view()["t0"], 0.3 * report.data["last"])

    # --- how it looks ---

    def test_light_and_dark(self):
        self.open("small")
        background = "getComputedStyle (document.body).backgroundColor"
        self.assertEqual(self.ask(background), "rgb(255, 255, 255)")
        self.assertEqual(self.pixel(4, 4), PAPER)
        self.look("dark")
        self.browser.settle()
        self.assertEqual(self.ask(background), "rgb(17, 22, 28)")
        self.assertEqual(self.pixel(4, 4), DARK_PAPER)
        self.browser.run("document.getElementById ('theme').click ();")
        self.browser.settle()
        self.assertEqual(self.ask(background), "rgb(255, 255, 255)")
        self.assertEqual(self.pixel(4, 4), PAPER)

    def test_names_are_text(self):
        report = self.open("evil")
        self.assertEqual(self.ask("document.title"), " ".join(report.title.split()))
        self.assertEqual(self.ask("document.querySelector ('h1').textContent"), report.title)
        self.assertEqual(self.ask("document.querySelectorAll ('img').length"), 0)
        self.assertEqual(self.ask("document.querySelectorAll ('b').length") , self.ask("document.querySelectorAll ('.task b').length"))
        self.assertEqual(self.ask("Array.from (document.querySelectorAll ('.key .name'), node => node.textContent)"),
                         report.kernels)
        self.browser.run("document.querySelectorAll ('.key')[2].click ();")
        self.assertEqual(self.ask("report.found.length"), 6)
        spot = self.spot(1)
        self.browser.hover(self.stage[0] + spot["x0"] + 5, self.stage[1] + spot["y"])
        self.assertIn(report.tasks[1]["kernel"], self.text("#tip"))

    def test_print(self):
        report = self.open("small")
        self.look("dark", "print")
        self.focus()
        self.press("w", "w")
        self.browser.run("window.dispatchEvent (new Event ('beforeprint'));")
        # All of the run, twice as fine as it is laid out, whatever the screen shows.
        width = self.ask("document.getElementById ('paper').width")
        self.assertEqual(self.pixel(2, 2, "paper"), PAPER)
        height = self.ask("document.getElementById ('paper').height")
        for entry in (0, max(range(len(report.tasks)), key=lambda i: report.tasks[i]["end"])):
            task = report.tasks[entry]
            x = 2 * (152 + (task["start"] + task["end"]) / 2 / report.data["last"] * (width / 2 - 16 - 152)) + 8
            self.assertIn(self.colour(report, entry), self.browser.run(PIXELS, "paper", x, 160, height - 160))
        self.assertEqual(self.ask("getComputedStyle (document.getElementById ('stage')).display"), "none")
        self.assertEqual(self.texts("#panel-path h3"), [])
        self.assertGreater(len(self.text("#kernels")), 40)
        self.look("light")

    def test_in_a_frame(self):
        """As a notebook shows it."""
        with open(self.path("small.html"), encoding="utf-8") as file:
            page = file.read()
        with open(self.path("frame.html"), "w", encoding="utf-8") as file:
            file.write('<!DOCTYPE html><iframe sandbox="allow-scripts" style="width:1000px;height:480px" '
                       'srcdoc="%s"></iframe>' % html.escape(page))
        self.browser.open(self.path("frame.html"))
        self.browser.enter_frame("iframe")
        self.browser.settle()
        self.assertEqual(self.ask("report.n"), 52)
        self.assertEqual(self.ask("document.title"), "attention, small")
        self.browser.leave_frame()


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
    import tap
    tap.main()
