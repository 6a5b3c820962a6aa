#!/usr/bin/env python3
# test_pto_trace.py: what does the pto program say of a trace that it has saved?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import shutil
import subprocess

import perfetto_reader
import pto_test
from pto_test import EXAMPLES, PtoTest


def label(number):
    """An id of JSON, as pictures and exports have it."""
    ring, local = divmod(int(number), 2 ** 32)
    return "%d:%d" % (ring, local) if ring else str(local)


class Trace(PtoTest):
    """A run on the virtual clock: the answers are about the same numbers as the run's own."""

    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.directory, "run.ptotrace")
        self.run_ = self.gives(os.path.join(EXAMPLES, "batch-paged-attention"), "--case", "seed", "--backend", "det",
                               "--trace", self.file)

    def ask(self, *words):
        return json.loads(self.passes("trace", self.file, *words, "--json"))

    def refused(self, status, words, *fragments):
        result = self.pto("trace", *words)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        for fragment in fragments:
            self.assertIn(fragment, result.stderr)

    def test_questions(self):
        summary = self.ask()
        self.assertEqual(summary, self.ask("summary"))
        self.assertEqual(summary["tasks"], self.run_["tasks"])
        self.assertEqual(summary["edges"], self.run_["edges"])
        self.assertEqual(summary["trace_level"], 4)
        self.assertEqual(summary["dropped"], 0)
        self.assertEqual(sum(kernel["runs"] for kernel in summary["kernels"]), self.run_["tasks"])
        path = self.ask("critical-path")
        self.assertEqual(path["kernels_ns"] + sum(path["waits"].values()), summary["elapsed_ns"])
        self.assertEqual(path["kernels_ns"], sum(task["end_ns"] - task["start_ns"] for task in path["path"]))
        for before, task in zip(path["path"], path["path"][1:]):
            self.assertEqual(task["after"], before["task"])
            self.assertEqual(sum(task["waits"].values()), task["start_ns"] - before["end_ns"])
        overhead = self.ask("overhead")
        self.assertEqual({kernel["kernel"] for kernel in overhead["kernels"]}, {"QK", "SF", "PV", "UP", "HUB"})
        self.assertEqual(overhead["busy_ns"], sum(kernel["busy_ns"] for kernel in summary["kernels"]))
        task = path["path"][-1]["task"]
        why = self.ask("why", task)
        self.assertEqual(why, self.ask("why", f"{int(task) >> 32}:{int(task) & 0xffffffff}"))
        self.assertEqual(sum(why["waits"].values()), why["start_ns"] - why["submit_ns"])
        self.assertEqual([p["task"] for p in why["producers"] if p.get("last")], [path["path"][-2]["task"]])
        self.assertRegex(why["submitted_at"], r"batch_paged_attention_orch\.c:\d+$")
        self.assertTrue(all(p["bytes"] > 0 for p in why["producers"]))

    def test_labels(self):
        """A task that is in another ring only is named."""
        n = self.run_["tasks"]
        self.refused(3, [self.file, "why", str(n - 1)], f"task {n - 1}: no such task is in the trace, which has {n}; there is 1:{n - 1}")
        self.refused(3, [self.file, "why", "1/2"], "task 1: the trace has nothing that a worker recorded inside of it")
        self.refused(2, [self.file, "why", "1:2:3"], 'why: "1:2:3" is no task: it is a number, 17, one of a ring, 1:17, of which there are')

    def test_scopes(self):
        """The sizes that would do, do: a run with them waits no more than one with plenty."""
        answer = self.ask("scopes")
        scope = answer["scopes"][1]
        self.assertRegex(scope["opened_at"], r"batch_paged_attention_orch\.c:\d+$")
        self.assertEqual((scope["n"], scope["submits"]), (16, self.run_["tasks"]))
        ring = answer["rings"][1]
        self.assertEqual(ring["tasks"], self.run_["peak_live_tasks"])
        sizes = [word for name, key in (("task-window", "task_window"), ("dep-pool", "dep_pool"))
                 for word in ("--set", f"{name}={ring[key]}")]
        again = self.gives(os.path.join(EXAMPLES, "batch-paged-attention"), "--case", "seed", "--backend", "det", *sizes)
        self.assertEqual(again["virtual_ns"], self.run_["virtual_ns"])

    def test_deps(self):
        deps = self.ask("deps")
        self.assertEqual((len(deps["tasks"]), len(deps["edges"])), (self.run_["tasks"], self.run_["edges"]))
        self.assertEqual(len({task["scope"] for task in deps["tasks"]}), 16)
        text = self.passes("trace", self.file, "deps")
        self.assertEqual(text.count(" -> "), self.run_["edges"])
        self.assertEqual(text.count("subgraph"), 16)

    def test_diff(self):
        """Of fewer clusters: the same graph, and the path explains all of the difference."""
        other = os.path.join(self.directory, "other.ptotrace")
        self.gives(os.path.join(EXAMPLES, "batch-paged-attention"), "--case", "seed", "--backend", "det",
                   "--set", "clusters=3", "--trace", other)
        diff, back = self.ask("diff", other), json.loads(self.passes("trace", other, "diff", self.file, "--json"))
        elapsed = [json.loads(self.passes("trace", path, "--json"))["elapsed_ns"] for path in (self.file, other)]
        self.assertFalse(diff["same"])
        self.assertEqual(diff["elapsed_ns"],
                         {"before": elapsed[0], "after": elapsed[1], "change": elapsed[1] - elapsed[0]})
        self.assertEqual(diff["matched"], self.run_["tasks"])
        self.assertEqual((diff["only_before"]["n"], diff["only_after"]["n"], diff["rewired"]["n"]), (0, 0, 0))
        path = diff["critical_path"]
        self.assertEqual(path["change_ns"], elapsed[1] - elapsed[0])
        self.assertEqual(sum(kernel["change_ns"] for kernel in path["kernels"]), elapsed[1] - elapsed[0])
        for row in path["kernels"] + [path]:
            self.assertEqual(row["kernels_ns"]["change"] + sum(wait["change"] for wait in row["waits"].values()),
                             row["change_ns"])
        before = self.ask("critical-path")
        self.assertEqual({name: wait["before"] for name, wait in path["waits"].items()}, before["waits"])
        self.assertEqual({kernel["kernel"] for kernel in diff["kernels"]}, {"QK", "SF", "PV", "UP", "HUB"})
        self.assertEqual(back["critical_path"]["change_ns"], elapsed[0] - elapsed[1])
        self.assertTrue(self.ask("diff", self.file)["same"])
        self.assertIn("nothing differs\n", self.passes("trace", self.file, "diff", self.file))
        self.assertIn("us longer", self.passes("trace", self.file, "diff", other))

    def test_text(self):
        self.assertIn("critical path", self.passes("trace", self.file))
        self.assertIn("us for data\n", self.passes("trace", self.file, "why", "1:17"))
        self.assertIn("made ready by task", self.passes("trace", self.file, "why", "1:17"))
        self.assertIn("for scheduler", self.passes("trace", self.file, "overhead"))
        self.assertIn("critical-path", self.passes("help", "trace"))

    def test_export(self):
        for name, words in ("run.svg", "<svg"), ("run.json", "displayTimeUnit"), ("again.ptotrace", "PTOTRACE"):
            path = os.path.join(self.directory, name)
            self.passes("trace", self.file, "export", path)
            with open(path, "rb") as file:
                self.assertIn(words.encode(), file.read(200))
        with open(self.file, "rb") as first, open(os.path.join(self.directory, "again.ptotrace"), "rb") as again:
            self.assertEqual(first.read(), again.read())

    def test_names_agree(self):
        """A task has one name, in the picture, in the JSON and for the question why."""
        picture, events = (os.path.join(self.directory, name) for name in ("names.svg", "names.json"))
        for path in picture, events:
            self.passes("trace", self.file, "export", path)
        with open(events, encoding="utf-8") as file:
            runs = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
        with open(picture, encoding="utf-8") as file:
            text = file.read()
        told = {(name, task): waits for name, task, waits in
                re.findall(r"<title>task (\w+) (\S+) on \w+\n[^<]*?(?:\nwaited for ([^<]*))?</title>", text)}
        self.assertEqual(set(told), {(run["name"], run["args"]["task"]) for run in runs})
        for run in runs:
            waits = told[run["name"], run["args"]["task"]]
            self.assertEqual([wait.split()[-1] for wait in waits.split(", ") if wait], run["args"]["waited_for"])
        letters = set(re.findall(r">(\w+ \d+:\d+)</text>", text))
        self.assertGreater(len(letters), 20)
        self.assertLessEqual(letters, {" ".join(name) for name in told})
        name, task = sorted(told)[0]
        self.assertTrue(self.passes("trace", self.file, "why", task).startswith(
            "task %s of ring %s (%s on " % (*task.split(":")[::-1], name)))

    def test_not_over_itself(self):
        """What is read is not written over, by whatever name."""
        link, hard = (os.path.join(self.directory, name) for name in ("link.ptotrace", "hard.svg"))
        os.symlink(self.file, link)
        os.link(self.file, hard)
        with open(self.file, "rb") as file:
            before = file.read()
        for words in (["simulate", self.file], ["simulate", link, "submit=1ns"], ["export", link], ["export", hard],
                      ["export", "--perfetto", self.file], ["simulate", os.path.join(self.directory, ".", "run.ptotrace")]):
            path = [word for word in words if os.sep in word][0]
            self.refused(2, [self.file, *words], f"pto: {words[0]} {path}: it would be written over {self.file}, which is in use here")
        self.fails(2, [f"--svg {hard}: it would be written over {self.file}"], "whatif", self.file, "--clusters", "2", "--svg", hard)
        with open(self.file, "rb") as file:
            self.assertEqual(file.read(), before)
        self.refused(2, [self.file, "simulate", "s.foo"], "pto: simulate s.foo: it writes .ptotrace files: the name must end so")
        self.refused(3, ["nowhere.ptotrace"], "pto: nowhere.ptotrace: can not be read: No such file or directory")
        self.refused(3, [self.directory], f"pto: {self.directory}: can not be read: Is a directory")

    def test_outputs_of_a_run(self):
        """None is written over another one, nor over the example."""
        example = self.example()
        link = os.path.join(self.directory, "link.svg")
        self.write("p.json", "")
        os.symlink("p.json", link)
        for words, part in ((["--metrics", f"{example}/pto.ini"], f"--metrics {example}/pto.ini: it would be written over {example}/pto.ini"),
                            (["--trace", "t.json", "--metrics", "./t.json"], "--metrics ./t.json: it would be written over t.json"),
                            (["--trace", "p.json", "--svg", "link.svg"], "--svg link.svg: it would be written over p.json")):
            self.fails(2, [part], "run", example, *words)

    def test_perfetto(self):
        """All of level 4: arguments, lines, what rings held; by any of the names."""
        files = []
        for words in ["run.perfetto-trace"], ["run.pftrace"], ["--perfetto", "run.bin"]:
            self.passes("trace", self.file, "export", *words[:-1], os.path.join(self.directory, words[-1]))
            with open(os.path.join(self.directory, words[-1]), "rb") as file:
                files.append(file.read())
        self.assertEqual(files[1:], files[:1] * 2)
        trace = perfetto_reader.Trace(files[0])
        deps = self.ask("deps")
        self.assertEqual(len(trace.of("run")), self.run_["tasks"])
        self.assertEqual(sorted((begin.args["task"], end.args["task"]) for begin, end in trace.flows.values()),
                         sorted((label(edge["from"]), label(edge["to"])) for edge in deps["edges"]))
        for ring in self.ask("scopes")["rings"]:
            name = f"ring {ring['ring']}"
            for counter, key in (("heap", "heap_bytes"), ("dependency pool", "dep_entries")):
                steps = trace.counters["AICPU", f"{counter}, {name}"]
                self.assertEqual(max((value for _, value in steps), default=0), ring[key], counter)
        why = self.ask("why", "1:17")
        run, = [item for item in trace.of("run") if item.args["task"] == "1:17"]
        submit, = [item for item in trace.of("submit") if item.args["task"] == "1:17"]
        self.assertEqual((run.name, run.row[1], run.start, run.end),
                         (why["kernel"], why["core"], why["start_ns"], why["end_ns"]))
        self.assertEqual(run.args["submitted_at"], why["submitted_at"])
        self.assertEqual((submit.start, submit.depth), (why["submit_ns"], 2))  # in two scopes
        self.assertEqual(run.args["arguments"], submit.args["arguments"])
        for i, argument in enumerate(run.args["arguments"]):
            self.assertRegex(argument, rf"^{i}: (\d+|[a-z ]+ \w+ \[\d+(, \d+)*\] strides \[\d+(, \d+)*\] at 0x[0-9a-f]+)$")
        protoc = shutil.which("protoc")
        if protoc is not None:  # another reader of the wire format, where there is one
            subprocess.run([protoc, "--decode_raw"], input=files[0], stdout=subprocess.DEVNULL, check=True)

    def test_refused(self):
        self.refused(2, [], "a trace is missing")
        self.refused(3, ["nowhere.ptotrace"], "nowhere.ptotrace")
        self.refused(3, [__file__], "not a trace")
        self.refused(2, [self.file, "nonsense"], "nonsense")
        self.refused(2, [self.file, "why"], "the task is missing")
        self.refused(3, [self.file, "why", "123456"], "no such task", str(self.run_["tasks"]))
        for word in "x", "-1", "9:1", "1:", ":1", "1:4294967296", "18446744073709551616":
            self.refused(2, [self.file, "why", "--", word], word)
        self.refused(3, [self.file, "export", os.path.join(self.directory, "run.txt")], ".ptotrace")
        self.refused(2, [self.file, "export"], "file to write is missing")
        self.refused(2, [self.file, "summary", "--perfetto"], "--perfetto", "summary")
        self.refused(2, [self.file, "diff"], "other trace is missing")
        self.refused(3, [self.file, "diff", "nowhere.ptotrace"], "nowhere.ptotrace")
        self.refused(2, [self.file, "diff", self.file, "again"], "again")
        self.refused(2, [self.file, "summary", "again"], "again")
        with open(self.file, "rb") as file:
            start = file.read(1000)
        with open(self.file, "wb") as file:
            file.write(start)
        self.refused(3, [self.file], self.file, "cut off", "968")


pto_test.tap.main()
