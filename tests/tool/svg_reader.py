# svg_reader.py: does a picture of a trace show what the records say, measured on the picture?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rows are found by their labels, the scale by the labels of the axis, kernels by colour and
hatching in the legend. Positions have two decimals."""
import re
import xml.etree.ElementTree
from collections import Counter

from trace_truth import four_digits, grouped, stall_name, task_label, us

NS = "{http://www.w3.org/2000/svg}"
EPS = 0.0151  # two numbers of two decimals each
HALF_SIZE = 0.2  # a font's size is a whole number, its place is not
MARGIN = 28
MAX_BARS = 6000


class Element:
    def __init__(self, node):
        self.tag = node.tag[len(NS):]
        self.node = node
        self.kinds = (node.get("class") or "").split()
        for key in ("x", "y", "width", "height"):
            setattr(self, key, float(node.get(key)) if node.get(key) else None)
        self.size = float(node.get("font-size") or 0)
        title = node.find(NS + "title")
        self.title = title.text if title is not None else None
        self.text = node.text or ""
        self.path = node.get("d")

    @property
    def middle(self):
        return self.y + self.height / 2

    @property
    def right(self):
        return self.x + self.width

    @property
    def bottom(self):
        return self.y + self.height


def text_width(text, size):
    return len(text) * size * 0.58


def commands(path):
    """("M", x, y), ("V", y), ... in absolute and relative letters."""
    for letter, rest in re.findall(r"([MLHVZhvm])([^MLHVZhvm]*)", path):
        yield (letter,) + tuple(float(n) for n in re.findall(r"-?\d*\.?\d+", rest))


class Svg:
    def __init__(self, test, truth, text):
        self.t = test
        self.truth = truth
        self.case = truth.case
        self.root = xml.etree.ElementTree.fromstring(text.encode())
        self.all = [Element(node) for node in self.root.iter()
                    if node.tag.startswith(NS) and node.tag != NS + "title"]
        defs = self.root.find(NS + "defs")
        inside = {id(n) for n in defs.iter()}
        clumps = {id(n) for g in self.root.iter(NS + "g") for n in g if n.tag == NS + "rect"}
        self.elements = [e for e in self.all
                         if id(e.node) not in inside and id(e.node) not in clumps
                         and e.tag in ("rect", "text", "path", "g")]
        self.style = self.root.find(NS + "style").text

    def near(self, a, b, what="", eps=EPS):
        if abs(a - b) > eps:
            self.t.fail("%s: %s is not %s" % (what, a, b))

    def of(self, tag, kind):
        return [e for e in self.elements if e.tag == tag and kind in e.kinds]

    def label(self, kind, text):
        found = [e for e in self.of("text", kind) if e.text == text]
        self.t.assertEqual(len(found), 1, "%s %r" % (kind, text))
        return found[0]

    def has_row(self, core):
        """Clusters in which nothing ran are one line."""
        cluster = self.truth.locate(core)[0]
        return any(runs for c, runs in enumerate(self.truth.runs) if self.truth.locate(c)[0] == cluster)

    def x_of(self, time):
        return self.left + time * self.scale

    def centre(self, core):
        return self.centres[core]

    def check(self):
        self.shown = [c for c in range(self.case.n_cores) if self.has_row(c)]
        self.find_frame()
        self.check_document()
        self.check_styles()
        self.check_header()
        self.check_legend()
        self.check_rows()
        self.check_axis()
        self.check_control()
        self.check_bars()
        self.check_busy()
        self.check_critical_path()
        self.check_charts()

    # --- the sheet ---

    def find_frame(self):
        frames = self.of("path", "frame")
        self.t.assertEqual(len(frames), 3)
        (_, self.left, _), (_, self.right) = commands(frames[0].path)
        self.scale = (self.right - self.left) / max(self.truth.last, 1)
        self.width = float(self.root.get("width"))
        self.height = float(self.root.get("height"))
        self.t.assertGreater(self.right - self.left, self.width * 0.8)

    def check_document(self):
        t, title = self.t, self.case.title or "Task graph"
        t.assertEqual(self.root.get("viewBox"), "0 0 %d %d" % (self.width, self.height))
        t.assertEqual(self.root.find(NS + "title").text, title)
        t.assertEqual(self.label("title", title).x, MARGIN)
        paper = self.elements[0]
        t.assertEqual((paper.tag, paper.width, paper.height, paper.node.get("fill")),
                      ("rect", self.width, self.height, "#fff"))
        for e in self.elements[1:]:
            if e.y is not None:
                t.assertTrue(0 <= e.x <= self.width and 0 <= e.y <= self.height, e.node.attrib)
            if e.tag == "rect":
                t.assertTrue(e.right <= self.width and e.bottom <= self.height, e.node.attrib)
            t.assertTrue(e.tag == "g" or e.kinds or e is paper, e.node.attrib)
        for kind in {k for e in self.elements for k in e.kinds if not re.match("[kt][0-9]", k)}:
            t.assertIn("\n.%s{" % kind, self.style)
        none = [e for e in self.of("text", "numbers") if "No task" in e.text]
        t.assertEqual(len(none), int(not self.truth.tasks))
        for e in none:  # between the labels of the axis
            t.assertTrue(all(abs(e.y - label.y) > 11 for label in self.of("text", "axis")))
        clock = "virtual clock, µs" if self.case.virtual else "wall clock, µs"
        t.assertGreater(self.label("note", clock).y, max(self.bottoms(), default=0))
        # From top to bottom.
        lines = [self.label("title", title).y, self.of("text", "numbers")[0].y,
                 min(e.y for e in self.of("text", "legend")),
                 max(e.y for e in self.of("text", "legend")),
                 min(e.y for e in self.of("text", "axis")),
                 self.row_label("orchestrator").y]
        lines += [self.row_label(self.truth.core_name(c)).y for c in self.shown]
        lines += [e.bottom for e in self.of("rect", "fold")]
        lines += [max(e.y for e in self.of("text", "axis"))]
        lines += [self.label("head", n).y for n in ("ready tasks", "live tasks", "open scopes")]
        t.assertEqual(lines, sorted(lines))

    def bottoms(self):
        return [e.bottom for e in self.of("rect", "track")]

    def row_label(self, text):
        found = [e for e in self.of("text", "row") if e.text == text]
        self.t.assertEqual(len(found), 1, text)
        return found[0]

    def check_styles(self):
        """Looks of kernels: a colour and a hatching, different for each."""
        t = self.t
        self.looks = {}
        colours = dict(re.findall(r"\.(k\d+)\{fill:url\(#(p\d+)\)\}", self.style))
        patterns = {p.get("id"): p for p in self.root.find(NS + "defs")}
        letters = dict(re.findall(r"\.t(\d+)\{stroke:(#\w+)\}", self.style))
        critical, outline = re.search(r"\.critical\{stroke:(#\w+);stroke-width:([\d.]+)", self.style).groups()
        # The path often ends at a task that failed: its outline does not cover the mark.
        failed = re.search(r"\.failed\{stroke:(#\w+);stroke-width:([\d.]+);stroke-dasharray:\d", self.style).groups()
        t.assertNotEqual(failed[0], critical)
        t.assertGreater(float(failed[1]), 2 * float(outline))
        for kind, pattern in colours.items():
            pattern = patterns[pattern]
            path = pattern.find(NS + "path")
            colour = pattern.find(NS + "rect").get("fill")
            t.assertEqual(pattern.find(NS + "rect").get("width"), pattern.get("width"))
            t.assertEqual(letters[kind[1:]], colour, "letters stand on their bar's colour")
            t.assertNotEqual(colour, critical)
            self.looks[kind] = (colour, path.get("d") if path is not None else None)
            if path is not None:
                t.assertTrue(path.get("stroke"))
        n = len({task.kernel for task in self.truth.ran})
        t.assertEqual(len(self.looks), n)
        t.assertEqual(len(set(self.looks.values())), min(n, 64))
        for period in (8,):  # neighbours differ in both
            looks = [self.looks["k%d" % i] for i in range(n)]
            for i in range(n - 1):
                t.assertNotEqual(looks[i][0], looks[i + 1][0])
                t.assertNotEqual(looks[i][1], looks[i + 1][1])
            t.assertEqual(len({look[0] for look in looks}), min(n, period))
        greys = re.findall(r"\.r\d\{fill:(#\w+)\}", self.style)
        t.assertEqual(len(set(greys)), 4)
        aic = re.search(r"\.aic\{([^}]*)\}", self.style).group(1)
        aiv = re.search(r"\.aiv\{([^}]*)\}", self.style).group(1)
        t.assertIn("fill:#", aic)
        t.assertIn("stroke-dasharray", aiv)
        t.assertEqual(re.search(r"\.chain\{stroke:(#\w+)", self.style).group(1), critical)

    def check_header(self):
        truth, case = self.truth, self.case
        n_tasks, n_edges = len(truth.tasks), truth.edges
        parts = ["%s task%s" % (grouped(n_tasks), "" if n_tasks == 1 else "s"),
                 "%s edge%s" % (grouped(n_edges), "" if n_edges == 1 else "s"),
                 "%s of %s time" % (four_digits(truth.elapsed),
                                    "virtual" if case.virtual else "wall")]
        for kind, name in enumerate(("AIC", "AIV")):
            n = len(truth.type_cores(kind))
            if n:
                parts.append("%d %s busy %.0f %%" % (n, name, 100.0 * truth.type_utilization(kind)))
        if truth.path:
            begin = truth.path[0].submit
            parts.append("critical path: %s, then %s task%s in %s" % (
                four_digits(begin) + " to submit" if begin is not None else "its begin was not recorded", grouped(len(truth.path)),
                "s" if len(truth.path) > 1 else "",
                four_digits(truth.path[-1].end - truth.path[0].start)))
        if truth.failed:
            parts.append("%d failed" % truth.failed)
        if truth.dropped:
            parts.append("%s records dropped" % grouped(truth.dropped))
        self.t.assertEqual(self.of("text", "numbers")[0].text, "  ·  ".join(parts))

    def check_legend(self):
        t = self.t
        ran = Counter(task.kernel for task in self.truth.ran)
        self.kernel_of = {"k%d" % i: kernel for i, kernel in enumerate(sorted(ran))}
        wanted = []
        for kind, kernel in self.kernel_of.items():
            name = self.truth.kernel_name(kernel)
            name = name if len(name) <= 28 else name[:27] + "…"
            wanted.append((kind, "%s  ×%s" % (name, grouped(ran[kernel]))))
        wanted += [("critical", "critical path")]
        if self.truth.failed:
            wanted.append(("failed", "failed"))
        if any(e.tag == "g" for e in self.elements):
            wanted.append(("joined", "many short tasks: as high as busy"))
        wanted.append(("dispatch", "scheduler: dispatch above, complete below"))
        if self.truth.stalls:
            wanted.append(("stall", "submitter waits"))
        labels = self.of("text", "legend")
        t.assertEqual([e.text for e in labels], [text for _, text in wanted])
        before = None
        self.legend = set()
        for label, (kind, text) in zip(labels, wanted):
            at = self.elements.index(label)
            top = label.y - 11
            if kind == "dispatch":
                dispatch, complete = self.elements[at - 2:at]
                t.assertEqual((dispatch.kinds, complete.kinds), (["dispatch"], ["complete"]))
                (_, x, y), (_, down), *_ = commands(dispatch.path)
                (_, x2, y2), (_, down2), *_ = commands(complete.path)
                t.assertTrue(label.x - 30 <= x <= x2 < label.x)
                self.near(y, top)
                self.near(y2 + down2, top + 13)
                t.assertLessEqual(y + down, y2)
                self.legend |= {dispatch, complete}
                middle = (x + x2 + 10) / 2
                key = label.x - 30
            else:
                mark = self.elements[at - 1]
                if kind == "joined":  # with what fills it
                    self.legend.add(mark)
                    t.assertEqual((mark.kinds, mark.bottom), (["k0"], top + 13))
                    t.assertLess(mark.height, 6)
                    mark = self.elements[at - 2]
                t.assertEqual((mark.tag, mark.kinds), ("rect", [kind]))
                t.assertTrue(top <= mark.y and mark.bottom <= top + 13 + EPS)
                t.assertTrue(label.x - 30 <= mark.x and mark.right <= label.x - 5)
                t.assertGreaterEqual(mark.width, 20)
                self.near(mark.middle, top + 6.5, "sample in its line")
                self.legend.add(mark)
                middle = mark.x + mark.width / 2
                key = label.x - 30
            self.near(middle, key + 12, "a sample, and as far from it the label")
            if before is None:
                t.assertEqual(key, MARGIN)
            elif before[0] == label.y:
                self.near(key, before[1] + 18, "one key beside the other", 2 * EPS)
            else:
                t.assertEqual(key, MARGIN)
                self.near(label.y, before[0] + 22, "one line of keys below the other")
            end = label.x + text_width(text, 12.5)
            t.assertTrue(end <= self.width - MARGIN + 8 or key <= MARGIN + 8, text)
            before = (label.y, end)
        # A line is used as long as it has room.
        lines = sorted({e.y for e in labels})
        for line in lines[1:]:
            last = [e for e in labels if e.y < line][-1]
            first = next(e for e in labels if e.y == line)
            used = last.x + text_width(last.text, 12.5)
            t.assertGreater(used + 18 + 30 + text_width(first.text, 12.5) + 18,
                            self.width - MARGIN)

    # --- rows ---

    def check_rows(self):
        t, n = self.t, len(self.shown)
        self.centres, heights = {}, []
        tracks = self.of("rect", "track")
        t.assertEqual(len(tracks), n)
        for c, track in zip(self.shown, tracks):
            label = self.row_label(self.truth.core_name(c))
            t.assertTrue(label.x < self.left and label.size >= 8)
            self.centres[c] = track.middle
            self.near(label.y - label.size * 0.36, self.centres[c], "label", HALF_SIZE)
        self.check_fold()
        # Distances between rows tell their height: cores of a cluster touch.
        pairs = [(self.centres[d] - self.centres[c],
                  self.truth.locate(c)[0] == self.truth.locate(d)[0]) for c, d in zip(self.shown, self.shown[1:])]
        within = {round(d, 1) for d, same in pairs if same}
        between = {round(d, 1) for d, same in pairs if not same}
        t.assertLessEqual(len(within), 1)
        t.assertLessEqual(len(between), 1)
        bars = self.bars()
        outlines = [e for e in self.of("rect", "critical") if e not in self.legend]
        heights = {round(e.height + 2, 1) for e in bars if e.tag == "rect"} \
            | {round(e.height + 1, 1) for e in outlines if e.y > self.row_label("orchestrator").y}
        t.assertLessEqual(len(heights), 1)
        self.row = (list(heights) or list(within) or [min(between, default=28) - 4])[0]
        t.assertEqual(self.row, 24 if n <= 6 else 18 if n <= 24 else 13 if n <= 48 else 11.5)
        t.assertLessEqual(within, {self.row})
        for gap in between:
            t.assertTrue(self.row + 2 <= gap <= self.row + 8, "clusters stand apart")
        clusters = [e for e in self.of("text", "cluster") if "without work" not in e.text]
        used = sorted({self.truth.locate(c)[0] for c in self.shown})
        t.assertEqual([e.text for e in clusters], ["cluster %d" % c for c in used])
        bands = self.of("rect", "band")[1:]
        t.assertEqual(len(bands), (len(used) + 1) // 2)
        for i, label in enumerate(clusters):
            mine = [self.centres[c] for c in self.shown if self.truth.locate(c)[0] == used[i]]
            self.near(label.y - 3.5, (mine[0] + mine[-1]) / 2, "cluster")
            if i % 2 == 0:
                band = bands[i // 2]
                self.near(band.middle, (mine[0] + mine[-1]) / 2, "band")
                t.assertTrue(mine[-1] - mine[0] + self.row <= band.height
                             <= mine[-1] - mine[0] + self.row + 8)
                t.assertTrue(band.x <= label.x and band.right > self.right)
        boxes = [(self.centres[c] - self.row / 2, self.centres[c] + self.row / 2) for c in self.shown]
        boxes += [(e.y, e.bottom) for e in self.of("rect", "fold")]
        self.rows_top, self.rows_bottom = boxes[0][0], boxes[-1][1]

    def check_fold(self):
        """How many clusters have no rows, and which, in one line below those that have."""
        t = self.t
        folded = sorted({self.truth.locate(c)[0] for c in range(self.case.n_cores)}
                        - {self.truth.locate(c)[0] for c in self.shown})
        boxes = self.of("rect", "fold")
        t.assertEqual(len(boxes), int(bool(folded)))
        if not folded:
            t.assertEqual([e for e in self.of("text", "cluster") if "work" in e.text], [])
            return
        spans = []
        for cluster in folded:
            if spans and spans[-1][1] == cluster - 1:
                spans[-1][1] = cluster
            else:
                spans.append([cluster, cluster])
        label = self.label("cluster", "%d cluster%s without work: %s" % (
            len(folded), "" if len(folded) == 1 else "s",
            ", ".join("%d" % a if a == b else "%d–%d" % (a, b) for a, b in spans)))
        self.near(label.y - 3.5, boxes[0].middle, "fold")
        t.assertTrue(boxes[0].x <= label.x and label.x + text_width(label.text, 10) < boxes[0].right)
        t.assertGreaterEqual(boxes[0].y, max(self.bottoms(), default=0))

    def check_axis(self):
        t, last = self.t, max(self.truth.last, 1)
        labels = self.of("text", "axis")
        lines = sorted({e.y for e in labels})
        t.assertEqual(len(lines), 2)
        grid = [c for c in commands(self.of("path", "grid")[0].path)]
        marks = [c for c in grid if c[0] == "M"]
        top = {c[2] for c in marks}
        bottom = {c[1] for c in grid if c[0] == "V"}
        t.assertEqual((len(top), len(bottom)), (1, 1))
        t.assertTrue(lines[0] < min(top) < self.rows_top < self.rows_bottom <= max(bottom) < lines[1])
        t.assertEqual([(e.y, e.text) for e in self.of("text", "note")][:1],
                      [(lines[1], "%s clock, µs" % ("virtual" if self.case.virtual else "wall"))])
        for line in lines:
            ticks = [e for e in labels if e.y == line]
            times = [int(round(float(e.text.replace("\u2009", "")) * 1000)) for e in ticks]
            t.assertEqual([c[1] for c in marks], [e.x for e in ticks])
            t.assertEqual(times[0], 0)
            distance = times[1] - times[0] if len(times) > 1 else last + 1
            t.assertEqual(times, list(range(0, last + 1, distance)))
            t.assertTrue(str(distance).rstrip("0") in ("1", "2", "5") or len(times) == 1)
            t.assertTrue(len(times) <= 14 and (len(times) >= 5 or last < 5), times)
            decimals = {len(e.text.partition(".")[2]) for e in ticks}
            t.assertEqual(len(decimals), 1)
            t.assertEqual(decimals, {next(d for d in range(4) if distance % 10 ** (3 - d) == 0)})
            for e, time in zip(ticks, times):
                self.near(e.x, self.left + time / last * (self.right - self.left), "axis")

    # --- control threads ---

    def check_control(self):
        t, truth = self.t, self.truth
        names = ["orchestrator"] + ["scheduler %d" % s for s in range(self.case.schedulers)]
        labels = [self.row_label(name) for name in names]
        tops = [e.y - 11 for e in labels]
        height = tops[1] - tops[0]
        t.assertEqual([round(b - a, 2) for a, b in zip(tops, tops[1:])],
                      [round(height, 2)] * (len(tops) - 1))
        t.assertLessEqual(tops[-1] + height, self.rows_top)
        band = self.of("rect", "band")[0]
        t.assertTrue(band.x < labels[0].x and band.y == tops[0]
                     and abs(band.bottom - tops[-1] - height) < EPS
                     and abs(band.right - self.right) < EPS)
        self.orchestrator = (tops[0], tops[0] + height)
        self.check_stalls()
        submits = [task.submit for task in truth.tasks.values() if task.submit is not None]
        drawn = self.of("path", "submit")
        t.assertEqual(len(drawn), int(bool(submits)))
        for e in drawn:
            self.check_ticks(e, submits, tops[0] + 2, tops[0] + height - 2)
        paths = {kind: [e for e in self.of("path", kind) if e not in self.legend]
                 for kind in ("dispatch", "complete")}
        separators = [list(commands(e.path)) for e in self.of("path", "grid")[1:1 + self.case.schedulers]]
        t.assertEqual(separators, [[("M", self.left, top), ("h", self.right - self.left)]
                                   for top in tops[1:]])
        for s in range(self.case.schedulers):
            mine = [task for task in truth.tasks.values() if task.scheduler == s]
            for kind, times, low, high in (
                    ("dispatch", [x.dispatch for x in mine], 0, height / 2),
                    ("complete", [x.complete for x in mine], height / 2, height)):
                times = [x for x in times if x is not None]
                top = tops[1 + s]
                here = [e for e in paths[kind] if top <= next(commands(e.path))[2] < top + height]
                t.assertEqual(len(here), int(bool(times)))
                for e in here:
                    self.check_ticks(e, times, top + low, top + high)
        t.assertEqual(sum(map(len, paths.values())), sum(
            len({(task.scheduler, kind)
                 for task in truth.tasks.values() if task.scheduler is not None
                 and getattr(task, kind) is not None}) for kind in paths))

    def check_ticks(self, element, times, low, high):
        """One height, in their part of the row; every time has its tick, or one just before it."""
        t, drawn = self.t, []
        parts = list(commands(element.path))
        for (m, x, y), (v, down) in zip(parts[::2], parts[1::2]):
            t.assertEqual((m, v), ("M", "v"))
            t.assertTrue(low <= y + EPS and y + down <= high + EPS and down >= 4, (low, y, high))
            drawn.append(x)
        t.assertEqual(drawn, sorted(drawn))
        for a, b in zip(drawn, drawn[1:]):
            t.assertGreaterEqual(b - a, 0.5 - EPS)
        wanted = sorted(self.x_of(x) for x in times)
        self.near(drawn[0], wanted[0], "first tick")
        at = 0
        for x in wanted:
            while at + 1 < len(drawn) and drawn[at + 1] <= x + EPS:
                at += 1
            t.assertTrue(-EPS <= x - drawn[at] <= 0.5 + EPS, "%s has no tick" % x)
        at = 0
        for x in drawn:
            while at < len(wanted) and wanted[at] < x - EPS:
                at += 1
            self.near(wanted[min(at, len(wanted) - 1)], x, "a tick for nothing")

    def check_stalls(self):
        t, stalls = self.t, self.truth.stalls
        boxes = [e for e in self.of("rect", "stall") if e not in self.legend]
        at = 0
        for box in boxes:
            first, _, times = box.title.partition("\n")
            many = re.fullmatch(r"the submitter waits (\d+) times", first)
            n = int(many.group(1)) if many else 1
            mine = stalls[at:at + n]
            begin, end = mine[0][0], max(s[1] for s in mine)
            if n == 1:
                t.assertFalse(many)
                t.assertEqual(first, "the submitter waits for " + stall_name(mine[0][2]))
            t.assertEqual(times, four_digits(begin) + " to " + four_digits(end)
                          + (self.of_it(mine, lambda s: s[:2]) if n > 1 else ""))
            self.near(box.x, self.x_of(begin), "stall")
            self.near(box.width, max((end - begin) * self.scale, 0.6), "stall")
            t.assertTrue(self.orchestrator[0] < box.y and box.bottom < self.orchestrator[1])
            # One that stands for many is as high as they took a share of it.
            waited = sum(s[1] - s[0] for s in mine)
            share = 1 if n == 1 else min(max(waited * self.scale / box.width, 0.1), 1)
            self.near(box.height, share * 12, "stall", 0.1)
            self.near(box.bottom, self.orchestrator[1] - 2, "a stall stands on the ground")
            reach = 0
            for i, s in enumerate(mine):
                if i > 0:
                    t.assertLessEqual(self.x_of(s[0]) - self.x_of(reach), 0.7 + EPS)
                    t.assertLessEqual(self.x_of(s[1]) - self.x_of(begin), 12 + EPS)
                reach = max(reach, s[1])
            at += n
            if at < len(stalls):  # and no two boxes where one would do
                t.assertTrue(self.x_of(stalls[at][0]) - self.x_of(end) > 0.7 - EPS
                             or self.x_of(stalls[at][1]) - self.x_of(begin) > 12 - EPS)
        t.assertEqual(at, len(stalls))

    # --- bars ---

    def bars(self):
        return [e for e in self.elements
                if e.tag == "g" or (e.tag == "rect" and e.kinds and re.match(r"k\d", e.kinds[0])
                                    and e.title is not None)]

    def core_at(self, y):
        core = min(self.shown, key=lambda c: abs(self.centres[c] - y))
        self.near(y, self.centres[core], "a bar between rows", 0.02)
        return core

    def check_bars(self):
        t, truth = self.t, self.truth
        left = [list(runs) for runs in truth.runs]
        position = {id(e.node): i for i, e in enumerate(self.elements)}
        bars = self.bars()
        t.assertLessEqual(len(bars), MAX_BARS)
        widest, drawn = 0, []
        for e in bars:
            if e.tag == "rect":
                core = self.core_at(e.middle)
                drawn.append((core, [left[core].pop(0)]))
                self.check_bar(e, core, drawn[-1][1][0], self.elements[position[id(e.node)] + 1:][:1])
            else:
                rects = [Element(n) for n in e.node if n.tag == NS + "rect"]
                core = self.core_at(rects[0].middle)
                n = int(re.match(r"(\d+) tasks:", e.title).group(1))
                mine, left[core] = left[core][:n], left[core][n:]
                t.assertEqual(len(mine), n)
                t.assertGreater(n, 1)
                self.check_clump(e, rects, mine)
                widest = max(widest, *((x.end - x.start) * self.scale for x in mine))
                drawn.append((core, mine))
                if len(truth.ran) <= MAX_BARS:
                    t.assertLessEqual((mine[-1].end - mine[0].start) * self.scale, 4 + EPS)
                    for a, b in zip(mine, mine[1:]):
                        t.assertLessEqual((b.start - a.end) * self.scale, 2 + EPS)
        t.assertEqual([runs for runs in left if runs], [], "every run is drawn once, on its row")
        if len(truth.ran) <= MAX_BARS:
            t.assertLess(widest, 1)
        else:
            t.assertGreater(widest, 1)
            t.assertGreater(len(bars), MAX_BARS / 4)
        # What is narrow and close is one bar.
        limit = max(widest, 1) if len(truth.ran) > MAX_BARS else 1
        for (core, a), (other, b) in zip(drawn, drawn[1:]):
            if core != other or max(x.end - x.start for x in a + b) * self.scale >= limit - EPS:
                continue
            t.assertTrue(self.x_of(b[0].start) - self.x_of(a[-1].end) > max(limit / 2, 2) - EPS
                         or self.x_of(b[0].end) - self.x_of(a[0].start) > max(2 * limit, 4) - EPS)

    def check_bar(self, e, core, task, following):
        t = self.t
        kind = e.kinds[0]
        t.assertEqual(self.kernel_of[kind], task.kernel)
        t.assertEqual(e.kinds[1:], ["failed"] if task.failed else [])
        t.assertEqual(e.title, self.story(task, core))
        width = (task.end - task.start) * self.scale
        self.near(e.x, self.x_of(task.start), "bar")
        self.near(e.width, width - 0.5 if width > 3 else max(width, 0.5), "bar")
        self.near(e.height, self.row - 2, "bar")
        # Letters: as many as fit.
        size = min(max(self.row - 3.5, 8), 11)
        name = self.truth.kernel_name(task.kernel)
        letters = "%s %s" % (name, task_label(task.id))
        if text_width(letters, size) + 8 > width:
            letters = name if text_width(name, size) + 5 <= width else name[:1]
        fits = text_width(letters, size) + 3 <= width
        written = [f for f in following if f.tag == "text" and "in" in f.kinds]
        t.assertEqual([f.text for f in written], [letters] if fits else [])
        for f in written:
            t.assertEqual(f.kinds, ["in", "t" + kind[1:]])
            self.near(f.x, self.x_of(task.start) + width / 2, "letters")
            self.near(f.y - size * 0.36, self.centres[core], "letters")
            t.assertEqual(f.size, int(size))

    def check_clump(self, e, rects, mine):
        t = self.t
        width = max((mine[-1].end - mine[0].start) * self.scale, 0.5)
        took = sum(x.end - x.start for x in mine)
        kernels = sorted({x.kernel for x in mine})
        words = ["%d %s" % (sum(x.kernel == k for x in mine), self.truth.kernel_name(k))
                 for k in kernels]
        t.assertEqual(e.title, "%d tasks: %s\n%s to %s µs%s" % (
            len(mine), " ".join(words), us(mine[0].start), us(mine[-1].end),
            self.of_it(mine, lambda x: (x.start, x.end))))
        # A shade as high as the row; on its ground what ran, as high as its share of the time.
        shade, *rects = rects
        t.assertEqual(shade.kinds, ["joined"])
        self.near(shade.height, self.row - 2, "shade")
        t.assertEqual([self.kernel_of[r.kinds[0]] for r in rects], kernels)
        for r in [shade] + rects:
            self.near(r.x, self.x_of(mine[0].start), "clump")
            self.near(r.width, width, "clump")
        filled = min(max(took * self.scale / width, 1 / shade.height), 1) * shade.height
        weights = [max(sum(x.end - x.start for x in mine if x.kernel == kernel), 1) for kernel in kernels]
        ground = shade.bottom
        for r, weight in zip(rects, weights):
            self.near(r.bottom, ground, "clump", 0.03)
            self.near(r.height, weight / sum(weights) * filled, "clump", 0.05)
            ground = r.y

    @staticmethod
    def of_it(mine, when):
        """", 8 % of it": what several took of the time from the first to the last."""
        begin, end = min(when(x)[0] for x in mine), max(when(x)[1] for x in mine)
        if end <= begin:
            return ""
        return ", %.0f %% of it" % min(100.0 * sum(when(x)[1] - when(x)[0] for x in mine) / (end - begin), 100)

    def story(self, task, core):
        truth = self.truth
        text = "task %s %s%s on %s%s\nruns %s to %s µs (%s)" % (
            truth.kernel_name(task.kernel), task_label(task.id),
            ", priority %d" % task.priority if task.priority else "", truth.core_name(core),
            ", failed" if task.failed else "", us(task.start), us(task.end),
            four_digits(task.end - task.start))
        if task.submit is not None:
            text += "\nsubmitted " + us(task.submit)
        if task.ready is not None:
            text += ", ready " + us(task.ready)
        if task.dispatch is not None:
            text += ", dispatched " + us(task.dispatch)
        waits = []
        for producer in list(task.deps)[:6]:
            waits.append(task_label(producer))
            known = truth.tasks.get(producer)
            if known is not None and known.submit is not None:
                waits[-1] = truth.kernel_name(known.kernel) + " " + waits[-1]
        if waits:
            text += "\nwaited for " + ", ".join(waits)
        if len(task.deps) > 6:
            text += " and %d more" % (len(task.deps) - 6)
        return text

    def check_busy(self):
        t, truth = self.t, self.truth
        tracks, bars = self.of("rect", "track"), self.of("rect", "busy")
        shares = [e for e in self.of("text", "row") if e.text.endswith(" %")]
        t.assertEqual((len(tracks), len(bars), len(shares)), (len(self.shown),) * 3)
        for c, track, bar, share in zip(self.shown, tracks, bars, shares):
            busy = min(truth.utilization(c), 1)
            t.assertTrue(track.x > self.right and track.width > 30)
            self.near(bar.x, track.x, "busy")
            self.near(bar.middle, self.centres[c], "busy")
            self.near(bar.height, track.height, "busy")
            self.near(bar.width, track.width * busy, "busy of core %d" % c)
            t.assertEqual(share.text, "%.0f %%" % (100.0 * busy))
            self.near(share.y - share.size * 0.36, self.centres[c], "share", HALF_SIZE)
            t.assertGreater(share.x - text_width(share.text, share.size), track.right - 3)
        if self.shown:
            head = self.label("right", "busy")
            t.assertTrue(head.x == shares[0].x and head.y < self.rows_top)

    def check_critical_path(self):
        t, path = self.t, self.truth.path
        outlines = [e for e in self.of("rect", "critical") if e not in self.legend]
        chains = self.of("path", "chain")
        is_known = bool(path) and path[0].submit is not None
        wanted = []
        if is_known:
            submit = self.x_of(path[0].submit)
            first = outlines.pop(0)
            self.near(first.x, self.left, "submitter")
            self.near(first.width, max(submit - self.left, 0.3), "submitter")
            # Inside of the row, with as much above as stays below.
            t.assertGreater(first.y, self.orchestrator[0])
            self.near(first.y - self.orchestrator[0] + 1, self.orchestrator[1] - first.bottom, "submitter")
            t.assertGreater(first.height, 8)
            wanted.append((submit, self.orchestrator[1] - 2, self.centres[path[0].core],
                           self.x_of(path[0].start)))
        last = None
        for task in path:
            begin, end = self.x_of(task.start), self.x_of(task.end)
            if last is not None and last[0] == task.core and end - last[1] < 1:
                continue
            e = outlines.pop(0)
            self.near(e.middle, self.centres[task.core], "outline", 0.02)
            self.near(e.x, begin, "outline")
            self.near(e.width, max(end - begin - 0.5, 0.3), "outline")
            last = (task.core, end)
        t.assertEqual(outlines, [])

        for before, task in zip(path, path[1:]):
            if before.core != task.core:
                wanted.append((self.x_of(before.end), self.centres[before.core],
                               self.centres[task.core], self.x_of(task.start)))
        t.assertEqual(len(chains), int(bool(wanted)))
        if not wanted:
            return
        lines = list(commands(chains[0].path))
        t.assertEqual([c[0] for c in lines], ["M", "V", "H"] * len(wanted))
        for i, (x, y, down, along) in enumerate(wanted):
            got = lines[3 * i][1:] + lines[3 * i + 1][1:] + lines[3 * i + 2][1:]
            for a, b in zip(got, (x, y, down, along)):
                self.near(a, b, "chain")
        opacity = float(chains[0].node.get("opacity"))
        self.near(opacity, min(max(120.0 / len(path), 0.2), 0.8), "opacity")

    # --- charts ---

    def columns(self, steps):
        """The highest value in each column of pixels, with what it begins with."""
        n = int(self.right - self.left)
        columns, value, at = [0] * n, 0, 0
        for time, new in steps:
            column = min(int(self.x_of(time) - self.left), n - 1)
            while at < column:
                columns[at] = max(columns[at], value)
                at += 1
            columns[column] = max(columns[column], value, new)
            value = new
        for i in range(at, n):
            columns[i] = max(columns[i], value)
        return columns

    def outline(self, path, ground):
        """High and low edge of a filled chart, in pixels above the ground, column by column."""
        n = int(self.right - self.left)
        parts = list(commands(path))
        self.t.assertEqual((parts[0][0], parts[-1][0]), ("M", "Z"))
        high, low = [None] * n, [None] * n
        x, y = parts[0][1:]
        self.near(x, self.left, "chart")
        edge = high
        for letter, *value in parts[1:-1]:
            if letter == "V":
                y = value[0]
                continue
            self.t.assertEqual(letter, "H")
            a, b = sorted((round(x - self.left), round(value[0] - self.left)))
            for i in range(a, b):
                self.t.assertIsNone(edge[i])
                edge[i] = ground - y
            x = value[0]
            if b == n and edge is high and x >= self.right - EPS:
                edge = low
        # The last line back is closed by Z.
        closing = ground - y
        low = [closing if v is None else v for v in low]
        self.t.assertNotIn(None, high)
        return high, low

    def check_chart(self, number, name, note, curves):
        """curves: (class, low or None, high), bottom up."""
        t = self.t
        frame = self.of("path", "frame")[number]
        (_, left, ground), (_, right) = commands(frame.path)
        top = next(commands(self.of("path", "grid")[-3 + number].path))[2]
        t.assertEqual(list(commands(self.of("path", "grid")[-3 + number].path)),
                      [("M", self.left, top), ("H", self.right)])
        t.assertEqual((left, right), (self.left, self.right))
        head = self.label("head", name)
        t.assertTrue(top <= head.y <= ground and head.x < self.left)
        below = self.label("note", note)
        t.assertTrue(head.y < below.y <= ground + 2)
        t.assertLess(below.x + text_width(note, 11), self.left, "what stands beside a chart is not below it")
        most = max((max(high) for _, _, high in curves), default=0)
        values = self.of("text", "value")[2 * number:2 * number + 2]
        t.assertEqual([e.text for e in values], [grouped(most), "0"])
        t.assertLess(values[0].x + text_width(values[0].text, 10), self.width - MARGIN, "beside the chart, in the sheet")
        t.assertTrue(abs(values[0].y - 4 - top) < 1 and abs(values[1].y - 3 - ground) < 1)
        t.assertTrue(all(e.x > self.right for e in values))
        unit = (ground - top) / max(most, 1)
        t.assertGreater(ground - top, 30)
        paths = [e for e in self.elements if e.tag == "path" and e.path.endswith("Z")
                 and top - 1 <= next(commands(e.path))[2] <= ground + 1]
        t.assertEqual([e.kinds for e in paths], [[kind] for kind, _, _ in curves])
        for e, (kind, low, high) in zip(paths, curves):
            drawn_high, drawn_low = self.outline(e.path, ground)
            self.check_edge(drawn_high, high, unit, kind + " high")
            self.check_edge(drawn_low, low or [0] * len(high), unit, kind + " low")
        return top, ground

    def check_edge(self, drawn, wanted, unit, what):
        if len(drawn) != len(wanted) or any(abs(a - b * unit) > 2 * EPS
                                            for a, b in zip(drawn, wanted)):
            wrong = [i for i, (a, b) in enumerate(zip(drawn, wanted)) if abs(a - b * unit) > 2 * EPS]
            self.t.fail("%s: column %d is %s, not %d of %s px"
                        % (what, wrong[0], drawn[wrong[0]], wanted[wrong[0]], unit))

    def check_key(self, kind, text, top, ground):
        """A key of the chart: a swatch and what it means."""
        keys = [e for e in self.of("rect", kind) if top <= e.y <= ground + 4]
        self.t.assertEqual(len(keys), 1)
        label = self.elements[self.elements.index(keys[0]) + 1]
        self.t.assertEqual((label.tag, label.kinds, label.text), ("text", ["note"], text))
        self.t.assertTrue(keys[0].right <= label.x <= keys[0].right + 6)
        self.t.assertTrue(keys[0].y < label.y and abs(keys[0].bottom - label.y) < 1)
        return keys[0].x, label.x + text_width(text, 11), keys[0].y

    def check_charts(self):
        t, truth = self.t, self.truth
        aic, aiv = self.columns(truth.ready_curve(0)), self.columns(truth.ready_curve(1))
        top, ground = self.check_chart(0, "ready tasks", "not dispatched",
                                       [("aic", None, aic), ("aiv", None, aiv)])
        keys = [self.check_key("aic", "AIC", top, ground), self.check_key("aiv", "AIV", top, ground)]
        curves, low, rings = [], [0] * len(aic), []
        for ring in range(4):
            steps = truth.live_curve(ring)
            if steps:
                high = [a + b for a, b in zip(low, self.columns(steps))]
                curves.append(("r%d" % ring, low, high))
                rings.append(ring)
                low = high
        top, ground = self.check_chart(1, "live tasks", "slots, by ring", curves)
        keys += [self.check_key("r%d" % r, str(r), top, ground) for r in rings]
        for a, b in zip(keys, keys[1:]):
            t.assertTrue(a[1] <= b[0] and a[2] == b[2] or b[0] == keys[0][0], "keys stand side by side")
        depth = self.columns(truth.scope_curve())
        self.check_chart(2, "open scopes", "how deep", [("depth", None, depth)])
