# report_reader.py: what does the page say that a trace was saved as?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The numbers of the page, put together again as its own script does it, and compared with what the
records say (trace_truth.py)."""
import html
import itertools
import json
import re

TIMES = ("submit", "submitted", "ready", "dispatch", "ack", "start", "end", "complete", "retire")
MARK = '<script type="application/json" id="data">'


def sums(differences):
    return list(itertools.accumulate(differences))


class Report:
    """tasks: a list of dicts, as many as there are entries; edges: (producer or None, its id,
    consumer, kinds)."""

    def __init__(self, text):
        before, rest = text.split(MARK)
        self.text = text
        self.raw, self.after = rest.split("</script>", 1)
        self.title = html.unescape(re.search(r"<title>(.*?)</title>", before, re.S).group(1))
        self.data = json.loads(self.raw)
        self.kernels = [kernel["name"] for kernel in self.data["kernels"]]
        self.tasks = self.read_tasks(self.data["tasks"])
        self.members = {task: range(first, first + n) for task, first, n in zip(
            self.data["member_task"], self.data["member_first"], self.data["member_n"])}
        self.edges = self.read_edges(self.data["edges"])
        self.arguments = self.read_arguments()
        self.strips = {(strip["kind"], strip["name"]): list(zip(sums(strip["time"]), strip["value"]))
                       for strip in self.data["strips"]}

    def read_tasks(self, columns):
        tasks = [{"kernel": self.kernels[kernel], "row": row if row >= 0 else None,
                  "scheduler": scheduler if scheduler >= 0 else None, "failed": bool(flags & 1),
                  "shares": bool(flags & 2), "id": ring << 32 | local}
                 for kernel, row, scheduler, flags, ring, local in zip(
                     columns["kernel"], columns["row"], columns["scheduler"], columns["flags"],
                     columns["ring"], sums(columns["local"]))]
        assert len(tasks) == columns["n"]
        assert all(len(columns[name]) == columns["n"] for name in TIMES)
        blocks = columns.get("block", [-1] * len(tasks))
        priorities = columns.get("priority", [0] * len(tasks))
        last = 0
        sources = [None] * len(tasks)
        if "file" in columns:
            sources = [(self.data["files"][file], line) if file >= 0 else None
                       for file, line in zip(columns["file"], columns["line"])]
        for i, task in enumerate(tasks):
            task["source"] = sources[i]
            task["last"] = i - columns["last"][i] if columns["last"][i] is not None else None
            task["waits"] = [columns[name][i] for name in ("wait_data", "wait_core", "wait_scheduler")]
            task["waited"] = columns["waited"][i] if "waited" in columns else 0
            task["block"] = blocks[i] if blocks[i] >= 0 else None
            task["priority"] = priorities[i]
            base = last
            for name in TIMES:
                task[name] = None
                if columns[name][i] is not None:
                    base = task[name] = base + columns[name][i]
            if task["submit"] is not None:
                last = task["submit"]
        return tasks

    def read_arguments(self):
        """Of each task: (index, tag, value); a value is a number, or (type, shape, strides, address)."""
        columns = self.data.get("arguments")
        if columns is None:
            return {}
        values = [int(word, 16) if dtype < 0 else (columns["dtypes"][dtype], shape, strides, int(word, 16))
                  for word, dtype, shape, strides in zip(*(columns["value_" + name] for name in (
                      "word", "dtype", "shape", "strides")))]
        arguments = {}
        for task, index, tag, value in zip(sums(columns["task"]), columns["index"], columns["tag"],
                                           columns["value"]):
            arguments.setdefault(task, []).append((index, tag, values[value]))
        return arguments

    def read_edges(self, columns):
        gone = iter(columns["gone"])
        edges = []
        for consumer, back, kinds in zip(sums(columns["consumer"]), columns["producer"],
                                         columns["kinds"]):
            producer = consumer - back if back is not None else None
            number = next(gone) if back is None else self.tasks[producer]["id"]
            edges.append((producer, number, consumer, kinds))
        assert len(edges) == columns["n"] and next(gone, None) is None
        return edges


def check(test, truth, text):
    """Of a chip that is below nobody, whose tasks ran once each."""
    report = Report(text)
    data, case = report.data, truth.case
    test.assertEqual(report.title, case.title or "Task graph")
    test.assertEqual({key: data[key] for key in ("title", "clock", "schedulers", "elapsed", "last",
                                                 "recorded", "dropped", "is_level")},
                     {"title": case.title, "clock": "virtual" if case.virtual else "wall",
                      "schedulers": case.schedulers, "elapsed": truth.elapsed, "last": truth.last,
                      "recorded": truth.recorded, "dropped": truth.dropped, "is_level": False})
    names = (["orchestrator"] + ["scheduler %d" % s for s in range(case.schedulers)]
             + [truth.core_name(c) for c in range(case.n_cores)])
    test.assertEqual([(drop["name"], drop["n"]) for drop in data["drops"]],
                     [(name, n) for name, n in zip(names, case.dropped) if n])
    test.assertEqual([(row["name"], row["kind"], row["cluster"], row["busy"], row["parent"], row["depth"])
                      for row in data["rows"]],
                     [(truth.core_name(c), ("AIC", "AIV")[truth.locate(c)[1]], truth.locate(c)[0],
                       truth.busy[c], -1, 0) for c in range(case.n_cores)])
    # A kernel's colour is that of its place among those that ran, as in a picture.
    ran = sorted({task.kernel for task in truth.ran})
    test.assertEqual(report.kernels[:len(ran)], [truth.kernel_name(kernel) for kernel in ran])
    tasks = list(truth.tasks.values())
    said = [{key: value for key, value in task.items() if key not in ("waits", "waited", "source", "last")}
            for task in report.tasks]
    test.same(said, [{
        "kernel": truth.kernel_name(task.kernel), "row": task.core, "scheduler": task.scheduler,
        "failed": bool(task.failed), "shares": False, "id": task.id, "block": None, "priority": task.priority, "submit": task.submit,
        "submitted": task.submit_end, "ready": task.ready, "dispatch": task.dispatch, "ack": task.ack,
        "start": task.start, "end": task.end, "complete": task.complete, "retire": task.retire}
        for task in tasks])
    positions = {task.id: i for i, task in enumerate(tasks)}
    test.same([task["last"] for task in report.tasks], [positions.get(task.last) for task in tasks])
    for task in report.tasks:
        if None not in (task["submit"], task["start"]) and task["submit"] <= task["start"]:
            test.assertEqual(sum(task["waits"]), task["start"] - task["submit"])
            test.assertGreaterEqual(min(task["waits"]), 0)
        else:
            test.assertEqual(task["waits"], [None] * 3)
    test.same(report.edges, [(positions.get(producer), producer, i, kinds)
                             for i, task in enumerate(tasks) for producer, kinds in task.deps.items()])
    test.same([tasks[i].id for i in data["critical"]], [task.id for task in truth.path])
    test.assertEqual([(stall["start"], stall["end"]) for stall in data["stalls"]],
                     [stall[:2] for stall in truth.stalls])
    wanted = {("ready", "AIC"): truth.ready_curve(0), ("ready", "AIV"): truth.ready_curve(1),
              ("scopes", "open scopes"): truth.scope_curve()}
    wanted.update({("live", "ring %d" % r): truth.live_curve(r) for r in range(truth.rings)})
    test.assertEqual(set(report.strips), {key for key, steps in wanted.items() if steps})
    for key, steps in report.strips.items():
        test.same(steps, wanted[key])
