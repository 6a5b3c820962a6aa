#!/usr/bin/env python3
# test_trace_truth.py: do pictures, reports, JSON and summary of a trace show what its records say, by value?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_trace_truth.py TRACE-CASES: prints TAP. Records by hand and of runs on every back end; what
they say is worked out in trace_truth.py, what the library shows is read with parsers."""
import base64
import collections
import json
import os
import random
import subprocess
import sys
import unittest
from decimal import Decimal

import perfetto_reader
import report_reader
from svg_reader import Svg
from trace_truth import (ACK, COMPLETE, DEP, DISPATCH, EXPLICIT, NO_TASK, RAW, READY, RETIRE, RUN, SCOPE,
                         STALL, SUBMIT, UNSURE, WAR, WAW, Case, Truth, hazard_name, stall_name,
                         summary, task_label)

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "trace-cases"
DEADLINE = 240
SEED = int(os.environ.get("PTO_TEST_SEED", "20261121"))
NO_KERNEL = 2 ** 32 - 1


def ask(texts):
    """What the library says of each case."""
    result = subprocess.run([PROGRAM], input="\n".join(texts) + "\n", stdout=subprocess.PIPE,
                            encoding="utf-8", timeout=DEADLINE, check=True)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers


# --- cases ---

def random_case(seed):
    """A schedule with ties everywhere, of which some records may be missing."""
    r = random.Random(seed)
    schedulers, clusters = r.choice([(1, 1), (2, 2), (3, 5), (1, 3), (3, 24)])
    aic, aiv = r.choice([(1, 2), (1, 2), (2, 1), (0, 3), (1, 0)])
    n_cores = clusters * (aic + aiv)
    epoch = r.choice([0, 5000, 10 ** 15])
    unit = r.choice([1, 10, 10, 333, 10 ** 6])
    lossy = r.random() < 0.4
    orchestrator, of_schedulers, cores = [], [[] for _ in range(schedulers)], [[] for _ in range(n_cores)]
    free = [0] * n_cores
    now, depth, done, local = 0, 0, [], collections.Counter()

    def put(buffer, time, task, kind, detail, extra):
        if not lossy or r.random() < 0.9:
            buffer.append((epoch + time, task, kind, detail, extra))

    for i in range(r.choice([0, 1, 5, 30, 60])):
        if r.random() < 0.15:
            depth += 1
            put(orchestrator, now, NO_TASK, SCOPE, depth, 1)
        if depth and r.random() < 0.15:
            put(orchestrator, now, NO_TASK, SCOPE, depth, 0)
            depth -= 1
        if r.random() < 0.1:
            wait = r.choice([0, 1, 4]) * unit
            put(orchestrator, now, NO_TASK, STALL, r.randrange(4) | r.randrange(5) << 8,
                epoch + now + wait)
            now += wait
        now += r.choice([0, 0, 1, 2, 40]) * unit
        ring = min(depth, 3)
        task = ring << 32 | local[ring]
        local[ring] += 1
        kernel = r.choice([0, 0, 1, 2, 2, 3, 9, 10, NO_KERNEL])
        core_type = 0 if aic and (not aiv or r.random() < 0.4) else 1
        priority = r.choice([0, 0, 0, 1, 3])
        put(orchestrator, now, task, SUBMIT, kernel, priority << 28 | ring << 8 | core_type)
        producers = r.sample(done, min(len(done), r.choice([0, 1, 1, 2, 3, 9])))
        ready = now
        for producer, end in producers:
            for _ in range(r.choice([1, 1, 2])):
                put(orchestrator, now + r.choice([0, 3]), task, DEP,
                    r.choice([RAW, WAW, WAR, EXPLICIT, RAW | WAW, RAW | UNSURE, WAR | EXPLICIT]),
                    producer)
            ready = max(ready, end)
        last = max(producers, key=lambda p: p[1], default=None)
        waits = last is not None and last[1] > now
        put(r.choice([orchestrator] + of_schedulers), ready, task, READY, int(waits), last[0] if waits else 0)
        if kernel != NO_KERNEL:
            core = r.choice([c for c in range(n_cores) if (c % (aic + aiv) >= aic) == core_type])
            start = max(ready, free[core]) + r.choice([0, 0, 1]) * unit
            end = start + r.choice([0, 1, 1, 2, 5, 30]) * unit
            free[core] = end
            by = of_schedulers[core // (aic + aiv) % schedulers]
            put(by if r.random() < 0.9 else orchestrator, max(ready, start - 2), task, DISPATCH,
                core, i)
            put(cores[core], start, task, ACK, core, i)
            put(cores[core], start, task, RUN, core, epoch + end)
            put(by, end + r.choice([0, 1]) * unit, task, COMPLETE, core, int(r.random() < 0.1))
        else:
            end = ready
            put(of_schedulers[0], end, task, COMPLETE, 0, 0)
        done.append((task, end))
        if r.random() < 0.8:
            put(orchestrator, max(now, end), task, RETIRE, 0, 0)
    if len(done) > 2:  # several at once, some of which are not there
        first = r.randrange(len(done) - 1)
        put(orchestrator, max(end for _, end in done[first:]), done[first][0], RETIRE,
            r.randrange(1, len(done) - first), 0)
    names = ["mul", "add & <sub>", None, "a kernel \"with\" a very long \\ name — too long", "e", "f", "g", "h",
             "i", "two\nlines"]
    if lossy:
        orchestrator.insert(0, (epoch, NO_TASK, SCOPE, 2, 0))  # where it was opened is missing
        orchestrator.append((epoch + 7, 4 << 32 | 1, SUBMIT, 0, 4 << 8 | 1))  # no such ring
        cores[0].append((epoch + 7, 5, RUN, n_cores, epoch + 9))  # no such core
        cores[0].append((epoch + 7, 5, RUN, 0, epoch + 6))        # backwards
        cores[0].append((epoch + 7, 5, 11, 0, epoch + 6))         # of a kind to come
        cores[0].append((epoch + 7, 6, DISPATCH, 0, 1))           # no scheduler
    return Case((schedulers, clusters, aic, aiv, r.randrange(2)),
                [orchestrator] + of_schedulers + cores,
                names if r.random() < 0.9 else [],
                r.choice(["random %d" % seed, "random <%d> & \"more\"" % seed]),
                [r.choice([0, 0, 3]) if lossy else 0 for _ in range(1 + schedulers + n_cores)])


def kernels_case():
    """More kernels than colours and hatchings, on one row, wide enough for letters."""
    case = Case((1, 1, 0, 1, 1), [[], [], []], ["kernel-%d" % k for k in range(70)], "kernels")
    for k in range(70):
        for i in range(1 + k % 3):
            task = len(case.buffers[0])
            case.buffers[0].append((task, task, SUBMIT, k, 1))
            case.buffers[1].append((100 + task * 100, task, DISPATCH, 0, 1))
            case.buffers[2].append((100 + task * 100, task, RUN, 0, 190 + task * 100))
            case.buffers[1].append((200 + task * 100, task, COMPLETE, 0, 0))
    return case


def columns_case():
    """Something begins or ends in every column of pixels, in each ring and for both core types."""
    buffers = [[] for _ in range(1 + 1 + 2)]
    for i in range(2400):
        ring, now = i % 4, i * 10
        task = ring << 32 | i // 4
        core = i % 2
        buffers[0].append((now, task, SUBMIT, 0, ring << 8 | core))
        if i % 7 < 4:
            buffers[0].append((now + (i * 5) % 300, task, READY, 0, 0))
            buffers[1].append((now + (i * 5) % 300 + (i * 13) % 90, task, DISPATCH, core, 0))
        if i % 5:
            buffers[0].append((now + (i * 37) % 700, task, RETIRE, 0, 0))
        if i % 3 == 0:
            buffers[0].append((now, NO_TASK, SCOPE, 1, 1))
        if i % 3 == 2 and i % 4:
            buffers[0].append((now + 4, NO_TASK, SCOPE, 1, 0))
    return Case((1, 1, 1, 1, 0), buffers, ["k"], "columns")


def big_case():
    """9360 runs on 72 cores, more than are drawn one by one."""
    r = random.Random(SEED)
    buffers = [[] for _ in range(1 + 3 + 72)]
    for core in range(72):
        now = r.randrange(1000)
        for i in range(130):
            task = core * 130 + i
            end = now + r.choice([50, 200, 400, 3000])
            buffers[0].append((task * 2, task, SUBMIT, i % 5, int(core % 3 > 0)))
            buffers[1 + core % 3].append((now, task, DISPATCH, core, 0))
            buffers[4 + core].append((now, task, RUN, core, end))
            buffers[1 + core % 3].append((end, task, COMPLETE, core, 0))
            now = end + r.choice([0, 1, 30, 300, 2000])
    return Case((3, 24, 1, 2, 0), buffers, ["QK", "SF", "PV", "UP", "HUB"], "big")


def chain_case():
    """One path through so many tasks that its lines are drawn paler."""
    buffers = [[], []] + [[] for _ in range(3)]
    for i in range(300):
        buffers[0].append((i, i, SUBMIT, 0, 1))
        if i > 0:
            buffers[0].append((i, i, DEP, RAW, i - 1))
        buffers[2 + i % 3].append((1000 + 100 * i, i, RUN, i % 3, 1090 + 100 * i))
    return Case((1, 1, 0, 3, 1), buffers, ["k"], "chain")


def bare_case():
    """Nothing but runs: neither when they were submitted nor when they were ready is known."""
    return Case((1, 1, 0, 2, 1), [[], [], [(10, 0, RUN, 0, 40), (50, 1, RUN, 0, 90), (90, 4, RUN, 0, 95)],
                                  [(20, 2, RUN, 1, 60), (70, 3, RUN, 1, 80)]], ["k"], "bare")


def tiny_cases():
    """One run of so many ns: every scale of the axis and of the numbers in words."""
    for length in (0, 1, 7, 12, 13, 14, 99, 999, 1000, 1001, 9994, 9995, 9996, 9999, 10000, 99949, 99950,
                   99999, 100000, 999499, 999500, 999999, 1000000, 12345678, 10 ** 9, 10 ** 12 + 7):
        yield Case((1, 1, 1, 1, length % 2),
                   [[(50, 0, SUBMIT, 0, 0), (50, 1, SUBMIT, 1, 1)],
                    [(50, 0, DISPATCH, 0, 1), (50, 1, DISPATCH, 1, 1)],
                    [(50, 0, RUN, 0, 50 + length)], [(50, 1, RUN, 1, 50)]],
                   ["k" * 28, "m" * 29], "")


def pull_case():
    """Waits close together: drawn as one box, or not."""
    stalls = [(0, 1), (2, 5), (5, 9), (300, 310), (311, 600), (601, 602), (603, 604), (606, 615),
              (900, 900)]
    records = [(s, NO_TASK, STALL, i % 3 << 8 | i % 4, e) for i, (s, e) in enumerate(stalls)]
    records += [(10 * i, i, SUBMIT, 0, 1) for i in range(9)] + [(1600, 0, RETIRE, 0, 0)]
    runs = [(s, i, RUN, 0, e) for i, (s, e) in enumerate(
        [(0, 1), (1, 2), (2, 3), (3, 3), (4, 9), (9, 10), (12, 13), (100, 101), (102, 102)])]
    return Case((1, 1, 0, 1, 0), [records, [], runs], ["k"], "pull")


# --- runs ---

def random_program(seed, n):
    """Lines for trace-cases, and the accesses of each task: cells read, cells written."""
    r = random.Random(seed)
    lines, accesses, opened = [], [], [0]  # tasks in each open scope: fewer than a window has slots
    for _ in range(n):
        while len(opened) > 1 and (r.random() < 0.1 or sum(opened[3:]) > 20 or opened[-1] > 20):
            closed = opened.pop()
            if len(opened) > 3:  # in the same ring: retired in order
                opened[-1] += closed
            lines.append("scope 0")
        if len(opened) < 5 and r.random() < 0.15 or opened == [20]:
            opened.append(0)
            lines.append("scope 1")
        depth = len(opened) - 1
        opened[-1] += 1
        kernel = r.randrange(3)
        cells = r.sample(range(24), r.choice([0, 1, 2, 3]))
        words = [r.choice("rrwb") + str(cell) for cell in cells]
        accesses.append((kernel, [int(w[1:]) for w in words if w[0] in "rb"],
                         [int(w[1:]) for w in words if w[0] in "wb"], min(depth, 3)))
        lines.append(" ".join(["task %d %d %d" % (kernel, int(kernel > 0), r.choice([0, 100, 5000]))]
                              + words))
    lines += ["scope 0"] * (len(opened) - 1) + ["end"]
    return lines, accesses


def all_edges(accesses):
    """Of each task: producer -> kinds, by position."""
    writer, readers, edges = {}, collections.defaultdict(list), []
    for i, (_, reads, writes, _) in enumerate(accesses):
        found = collections.Counter()
        for cell in reads:
            if cell in writer:
                found[writer[cell]] |= RAW
        for cell in writes:
            if cell in writer:
                found[writer[cell]] |= WAW
            for reader in readers[cell]:
                if reader != i:
                    found[reader] |= WAR
        for cell in reads:
            readers[cell].append(i)
        for cell in writes:
            writer[cell], readers[cell] = i, []
        edges.append(dict(found))
    return edges


class TraceTruthTest(unittest.TestCase):
    maxDiff = 4000

    def same(self, got, wanted):
        """Of long lists only what differs first is told: the difference of all takes minutes."""
        for pair in zip(got, wanted):
            if pair[0] != pair[1]:
                self.assertEqual(*pair)
        self.assertEqual(len(got), len(wanted))

    def check(self, case, answer, counter_hz=50000000):
        truth = Truth(case)
        self.check_numbers(truth, answer, counter_hz)
        if len(truth.tasks) < 1000:
            self.check_json(truth, answer)
        perfetto_reader.check(self, truth, base64.b64decode(answer["perfetto"]), answer["sha256"],
                              "seen" in answer)
        self.assertEqual(answer["summary"], summary(truth))
        Svg(self, truth, answer["svg"]).check()
        report_reader.check(self, truth, answer["html"])
        return truth

    def check_numbers(self, truth, answer, counter_hz):
        said = {key: answer[key] for key in ("virtual", "recorded", "dropped", "tasks", "edges",
                                             "elapsed", "critical_ns", "critical", "cores", "title")}
        critical = said.pop("critical")
        self.same(critical, [t.id for t in truth.path])
        self.assertEqual(said, {
            "virtual": truth.case.virtual, "recorded": truth.recorded, "dropped": truth.dropped,
            "tasks": len(truth.tasks), "edges": truth.edges, "elapsed": truth.elapsed,
            "critical_ns": truth.path[-1].end - truth.path[0].start if truth.path else 0,
            "title": truth.case.title,
            "cores": [[truth.core_name(c), truth.utilization(c)]
                      for c in range(truth.case.n_cores)]})
        if counter_hz:
            self.assertEqual(answer["sha256"], truth.sha256(counter_hz))

    def check_json(self, truth, answer):
        document = json.loads(answer["json"], parse_float=Decimal)
        case = truth.case
        self.assertEqual(document["displayTimeUnit"], "ns")
        self.assertEqual(document["metadata"], {
            "title": case.title, "clock": "virtual" if case.virtual else "wall",
            "recorded": truth.recorded, "dropped": truth.dropped, "tasks": len(truth.tasks),
            "edges": truth.edges, "sha256": answer["sha256"]})
        rows, events = self.read_rows(document["traceEvents"])
        self.assertEqual(sorted(rows.values(), key=lambda row: row[2:]),
                         self.expected_rows(truth))
        names = {key: row[1] for key, row in rows.items()}
        by_kind = collections.defaultdict(list)
        for event in events:
            where = (event.pop("pid"), event.pop("tid"))
            if event["ph"] != "C":  # a counter belongs to a process
                event["row"] = names[where]
            by_kind[event["ph"], event.get("cat")].append(event)
        expected = self.expected_events(truth)
        self.assertEqual(set(by_kind), {kind for kind, events in expected.items() if events})
        for kind, wanted in expected.items():
            self.same(by_kind[kind], wanted)
        self.check_arrows(truth, by_kind)

    def read_rows(self, events):
        """(pid, tid) -> (process, thread, order of the process, order of the thread)"""
        names, rest = {}, []
        for event in events:
            if event["ph"] != "M":
                rest.append(event)
                continue
            self.assertEqual(set(event), {"ph", "pid", "tid", "name", "args"})
            what, which = event["name"].split("_", 1)
            where = (what, event["pid"], event["tid"] if what == "thread" else 0)
            self.assertEqual(list(event["args"]), [which], "one argument, named as the event")
            self.assertNotIn(which, names.setdefault(where, {}))
            names[where][which] = event["args"][which]
        rows = {(pid, tid): (names["process", pid, 0]["name"], name["name"],
                             names["process", pid, 0]["sort_index"], name["sort_index"])
                for (what, pid, tid), name in names.items() if what == "thread"}
        self.assertEqual(len({tid for _, tid in rows}), len(rows), "a thread's number is its own")
        return rows, rest

    @staticmethod
    def expected_rows(truth):
        case = truth.case
        rows = [("AICPU", "orchestrator", 0, 0)]
        if truth.stalls:
            rows.append(("AICPU", "orchestrator: stalls", 0, 1))
        rows += [("AICPU", "scheduler %d" % s, 0, 2 + s) for s in range(case.schedulers)]
        rows += [("cluster %d" % truth.locate(c)[0], truth.core_name(c), 1 + truth.locate(c)[0], c)
                 for c in range(case.n_cores)]
        return rows

    @staticmethod
    def expected_events(truth):
        expected = collections.defaultdict(list)

        def micro(ns):
            return Decimal(ns) / 1000

        def slice_(kind, row, start, end, name, args):
            expected["X", kind].append({"ph": "X", "cat": kind, "row": row, "name": name,
                                        "ts": micro(start), "dur": micro(end - start), "args": args})

        def who(task):
            return {"task": task_label(task.id), "ring": task.id >> 32,
                    "kernel": truth.kernel_name(task.kernel), **({"priority": task.priority} if task.priority else {}),
                    "waited_for": [task_label(p) for p in task.deps]}

        for start, end, depth in truth.scopes:
            slice_("scope", "orchestrator", start, end, "scope", {"depth": depth})
        for start, end, what in truth.stalls:
            slice_("stall", "orchestrator: stalls", start, end, "wait for " + stall_name(what),
                   {"ring": what & 0xff})
        for task in truth.tasks.values():
            if task.submit is not None:
                slice_("submit", "orchestrator", task.submit, max(task.submit, task.submit_end),
                       truth.kernel_name(task.kernel), who(task))
            for name, time in (("dispatch", task.dispatch), ("complete", task.complete)):
                if task.scheduler is not None and time is not None:
                    expected["i", "scheduler"].append(
                        {"ph": "i", "s": "t", "cat": "scheduler", "name": name, "ts": micro(time),
                         "row": "scheduler %d" % task.scheduler, "args": {"task": task_label(task.id)}})
        for core, runs in enumerate(truth.runs):
            for task in runs:
                args = who(task)
                for key in ("submit", "ready", "dispatch", "complete", "retire"):
                    if getattr(task, key) is not None:
                        args[key + "_us"] = micro(getattr(task, key))
                args.update(critical=task.critical, failed=task.failed)
                slice_("kernel", truth.core_name(core), task.start, task.end,
                       truth.kernel_name(task.kernel), args)
        number = 0
        for task in truth.tasks.values():
            for producer, kinds in task.deps.items():
                producer = truth.tasks.get(producer)
                if task.core is None or producer is None or producer.core is None:
                    continue
                number += 1
                both = {"id": number, "cat": "dep", "name": hazard_name(kinds)}
                expected["s", "dep"].append(dict(
                    both, ph="s", row=truth.core_name(producer.core),
                    ts=micro(max(producer.end - 1, producer.start))))
                expected["f", "dep"].append(dict(
                    both, ph="f", bp="e", row=truth.core_name(task.core), ts=micro(task.start)))
        counters = [("ready AIC tasks", "tasks", truth.ready_curve(0)),
                    ("ready AIV tasks", "tasks", truth.ready_curve(1))]
        counters += [("live tasks, ring %d" % r, "tasks", truth.live_curve(r))
                     for r in range(truth.rings)]
        counters.append(("open scopes", "scopes", truth.scope_curve()))
        for name, key, steps in counters:
            expected["C", None] += [{"ph": "C", "name": name, "ts": micro(time), "args": {key: value}}
                                    for time, value in steps]
        return expected

    def check_arrows(self, truth, by_kind):
        """Whatever the rule: an arrow hangs on the slice that it leaves and on the one it enters."""
        slices = collections.defaultdict(list)
        for event in by_kind["X", "kernel"]:
            slices[event["row"]].append((event["ts"], event["ts"] + event["dur"]))
        for event in by_kind["s", "dep"] + by_kind["f", "dep"]:
            self.assertTrue(any(begin <= event["ts"] < end or begin == end == event["ts"]
                                for begin, end in slices[event["row"]]), event)

    # --- the tests ---

    def check_all(self, cases):
        cases = list(cases)
        for case, answer in zip(cases, ask(["\n".join(case.lines()) for case in cases])):
            with self.subTest(title=case.title):
                self.check(case, answer)

    def test_random(self):
        self.check_all(random_case(seed) for seed in range(SEED, SEED + 40))

    def test_kernels(self):
        self.check_all([kernels_case()])

    def test_big(self):
        self.check_all([big_case()])

    def test_chain(self):
        self.check_all([chain_case(), bare_case()])

    def test_columns(self):
        self.check_all([columns_case()])

    def test_lengths(self):
        self.check_all(tiny_cases())

    def test_close_together(self):
        self.check_all([pull_case()])

    def test_order_of_causes(self):
        """Producer and core end together: the producer is what the program says. Of two producers
        the first."""
        def case(core_of, ends):
            records = [(0, i, SUBMIT, 0, 1) for i in range(4)]
            records += [(0, 3, DEP, RAW, 0), (0, 3, DEP, WAR, 1), (0, 3, DEP, WAW, 0)]
            runs = [(10, i, RUN, core, 10 + end) for i, (core, end) in
                    enumerate(zip(core_of, ends))] + [(500, 3, RUN, 2, 600)]
            return Case((1, 1, 0, 3, 1), [records, []] + [[r for r in runs if r[3] == c]
                                                          for c in range(3)], ["k"], "causes")
        cases = [case((0, 1, 2), ends) for ends in
                 ((90, 90, 90), (80, 90, 90), (90, 80, 90), (80, 80, 90), (90, 90, 80))]
        answers = ask(["\n".join(c.lines()) for c in cases])
        self.assertEqual([a["critical"] for a in answers],
                         [[0, 3], [1, 3], [0, 3], [2, 3], [0, 3]])
        for c, answer in zip(cases, answers):
            self.check(c, answer)

    def run_program(self, backend, seed):
        lines, accesses = random_program(seed, 150)
        answer, = ask(["\n".join(["run %s %d 32 5" % (backend, seed)] + lines)])
        buffers = [[(time, task % 2 ** 64, kind, detail, extra % 2 ** 64)
                    for time, task, kind, detail, extra in buffer] for buffer in answer["buffers"]]
        case = Case(answer["topology"], buffers, ["mul", "add", "sub"], "a run")
        self.assertEqual(case.virtual, int(backend == "det"))
        self.assertEqual(case.clusters, 5)
        truth = self.check(case, answer, counter_hz=0)
        self.check_against_kernels(truth, answer["seen"], accesses)

    def check_against_kernels(self, truth, seen, accesses):
        """The records say what the kernels saw, and the edges that the arguments make."""
        local, ids = collections.Counter(), []
        for kernel, _, _, ring in accesses:
            ids.append(ring << 32 | local[ring])
            local[ring] += 1
        self.assertEqual(list(truth.tasks), ids)
        edges = all_edges(accesses)
        for i, number in enumerate(ids):
            task = truth.tasks[number]
            self.assertEqual(seen[i][:2], [1, accesses[i][0]])
            self.assertEqual((task.kernel, task.core_type), (accesses[i][0], int(accesses[i][0] > 0)))
            self.assertEqual(truth.locate(task.core)[1], task.core_type)
            self.assertFalse(task.failed)
            wanted = {ids[p]: kinds for p, kinds in edges[i].items()}
            for producer, kinds in wanted.items():
                before = truth.tasks[producer]
                self.assertLessEqual(before.end, task.start)
                self.assertLess(seen[ids.index(producer)][3], seen[i][2])
                if producer not in task.deps:
                    self.assertIsNotNone(before.retire)
                    self.assertLessEqual(before.retire, task.submit)
            self.assertLessEqual(set(task.deps.items()), set(wanted.items()))
            times = [task.submit, task.ready, task.dispatch, task.start, task.end, task.complete]
            self.assertEqual(times, sorted(times))
        # On one core the order of the records is the order in which kernels ran.
        for runs in truth.runs:
            order = [seen[ids.index(t.id)][2] for t in runs]
            self.assertEqual(order, sorted(order))
        self.assertGreater(truth.edges, 0)

    def test_run_det(self):
        for seed in range(3):
            self.run_program("det", seed)

    def test_run_par(self):
        for seed in range(3):
            self.run_program("par", seed)

    def test_run_threads(self):
        for seed in range(3):
            self.run_program("threads", seed)


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
    import tap
    tap.main()
