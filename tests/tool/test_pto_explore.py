#!/usr/bin/env python3
# test_pto_explore.py: does `pto explore` find the order that changes a result, and say the shortest schedule that shows it?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_pto_explore.py PROGRAM: prints TAP. PTO_TEST_EXAMPLES names the directory of the examples."""
import json
import os

import pto_test
from pto_test import PtoTest, rows

CELLS = 16
FLOAT64 = 12

INI = """\
[example]
name=graph
{parameters}
[orchestration]
source=orch.c
{kernels}
[reference]
source=reference.c

[case plain]
rtol={rtol}
expected={expected}
"""
KERNEL_INI = """
[kernel {number}]
name={name}
source={name}.c
core=aiv
cost=linear:1000:0
"""
KERNEL = """\
#include "tensor.h"
static double *cell (int64_t arg)
{{
  const TensorData *t = (const TensorData *) (uintptr_t) arg;
  return (double *) (uintptr_t) t->buffer.addr + t->start_offset;
}}
/* Where it writes, how many it reads, a number, what it reads. */
void kernel_entry (int64_t *args)
{{
  double *out = cell (args[0]);
  double sum = 0;
  int zeros = 0;
  for (int i = 0; i < args[1]; i++)
    {{
      double in = *cell (args[3 + i]);
      sum += in;
      zeros += in == 0;
    }}
  (void) zeros;
  {code}
}}
"""
KERNELS = {
    "put": "*out = sum + (double) args[2];",
    "mix": "*out = 2 * *out + sum + (double) args[2];",
    "add": "*out += (double) args[2] / 10;",
    "both": "*out = zeros == args[1];",  # are all of them 0?
    "trip": "if (zeros > 0) *(volatile int *) 0 = 1; *out = sum;",
    "count": "static int n; *out = n++;",
}
ORCHESTRATION = """\
#include "pto_orchestration_api.h"
static Tensor cells;
static Tensor cell (uint64_t i)
{{
  uint64_t one[1] = {{ 1 }};
  return pto2_tensor_view (&cells, one, &i);
}}
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{{
  return (PTO2OrchestrationConfig){{ .expected_arg_count = 1 }};
}}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{{
  uint64_t shape[1] = {{ {n_cells} }};
  cells = make_tensor_external ((void *) (uintptr_t) args[0], shape, 1, PTO_DTYPE_FLOAT64);
{submits}
  return 0;
}}
"""
REFERENCE = """\
#include "pto_reference.h"
#include <stdlib.h>
int pto_reference_inputs (PTO2Case *c)
{{
  uint64_t shape[1] = {{ {n_cells} }};
  return c->ops->array (c, "cells", {dtype}, 1, shape, true) != NULL ? 0 : pto_case_fail (c, "no array");
}}
int pto_reference_compute (PTO2Case *c)
{{
  double *cells = c->ops->expected (c, "cells");
  char *at = (char *) c->ops->text (c, "expected");
  for (int i = 0; i < {n_cells}; i++)
    cells[i] = strtod (at, &at);
  return 0;
}}
"""


class Task:
    """out: (tag, cell); ins: the same of what is read."""

    def __init__(self, kernel, out, *ins, number=1):
        self.kernel, self.out, self.ins, self.number = kernel, out, ins, number

    def submit(self):
        words = [f"make_{tag}_param (cell ({cell}))" for tag, cell in (self.out, *self.ins)]
        words[1:1] = [f"make_scalar_param ({len(self.ins)})", f"make_scalar_param ({self.number})"]
        return (f"  {{ PTOParam params[] = {{ {', '.join(words)} }};\n"
                f"    pto2_rt_submit_task (rt, {list(KERNELS).index(self.kernel)}, PTO2_WORKER_VECTOR, params, {len(words)}); }}\n")

    def run(self, cells):
        ins = [cells[cell] for _, cell in self.ins]
        at = self.out[1]
        cells[at] = {"put": lambda: sum(ins) + self.number, "mix": lambda: 2 * cells[at] + sum(ins) + self.number,
                     "add": lambda: cells[at] + self.number / 10, "both": lambda: float(all(i == 0 for i in ins)),
                     "trip": lambda: sum(ins), "count": lambda: 0.0}[self.kernel]()


def put(cell, *ins, tag="output_existing", **more):
    return Task("put", (tag, cell), *[i if isinstance(i, tuple) else ("input", i) for i in ins], **more)


def hidden(cell):
    """An argument that says nothing of what is read."""
    return ("no_dep", cell)


class Explore(PtoTest):
    def graph(self, tasks, expected=None, rtol="0", parameters=""):
        cells = [0.0] * CELLS
        for task in tasks:
            task.run(cells)
        os.makedirs(os.path.join(self.directory, "g"), exist_ok=True)
        self.write("g/pto.ini", INI.format(
            kernels="".join(KERNEL_INI.format(number=i, name=name) for i, name in enumerate(KERNELS)), rtol=rtol,
            parameters=parameters, expected=" ".join(repr(float(c)) for c in (expected or cells))))
        for name, code in KERNELS.items():
            self.write(f"g/{name}.c", KERNEL.format(code=code))
        self.write("g/orch.c", ORCHESTRATION.format(n_cells=CELLS, submits="".join(task.submit() for task in tasks)))
        self.write("g/reference.c", REFERENCE.format(n_cells=CELLS, dtype=FLOAT64))

    def line_of_submit(self, number):
        with open(os.path.join(self.directory, "g/orch.c"), encoding="utf-8") as file:
            return [i for i, line in enumerate(file, 1) if "pto2_rt_submit_task" in line][number]

    def explore(self, *words, status=0):
        result = self.pto("explore", "g", "--json", *words)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), status)
        return json.loads(result.stdout)

    def finds(self, *words, schedule, pairs):
        """One schedule, and who is in no order; what was found otherwise is given."""
        value = self.explore(*words, status=1)
        changed = value["changed"]
        self.assertEqual((changed["schedule"], changed["shrunk"]), (schedule, True))
        self.assertEqual([(pair["first"]["task"], pair["second"]["task"]) for pair in changed["unordered"]], pairs)
        return changed

    # What is right.

    def test_honest(self):
        """Nothing is found, and it is said what was tried."""
        self.graph([put(i, number=i) for i in range(4)] + [put(4, 0, 1), put(5, 2, 3), put(6, 4, 5), put(0, number=9)])
        value = self.explore("--budget", "120")
        self.assertEqual(value["schedules"], {"random": 30, "one_delay": 7, "one_delay_of": 7, "two_delays": 56, "two_delays_of": 56,
                                              "rounded": 0, "shrinking": 0, "out_of_time": False})
        self.assertEqual([value[k] for k in ("changed", "passed", "tasks", "seed", "budget")], [None, True, 8, 1, 120])
        table = rows(self.passes("explore", "g", "--budget", "120"))
        self.assertEqual(table["schedules"], "30 with random priorities, 7 of 7 with one task held back, 56 of 56 with two")
        self.assertEqual(table["result"], "the same bits each time")
        self.assertEqual(table["covered"], "every two tasks that are in no order, in both orders")
        self.assertTrue(table["not covered"].startswith("orders that take three"))

    def test_budget(self):
        """What was not tried is said."""
        self.graph([put(i % CELLS, number=i) for i in range(40)])
        value = self.explore("--budget", "20")
        self.assertEqual([value["schedules"][k] for k in ("random", "one_delay", "one_delay_of", "two_delays")], [5, 15, 39, 0])
        table = rows(self.passes("explore", "g", "--budget", "20"))
        self.assertIn("24 other tasks held back (out of budget: --budget)", table["not covered"])
        self.assertNotIn("covered", table)
        table = rows(self.passes("explore", "g", "--budget", "100"))
        self.assertIn("1524 other pairs of tasks held back (out of budget: --budget)", table["not covered"])
        self.assertEqual(table["covered"], "every two tasks that are in no order, in both orders")

    def test_examples(self):
        """Every example of level 2 gives the same in other orders."""
        for name in ("vector", "barrier", "batch-paged-attention", "bgemm", "cholesky", "histogram", "paged-attention", "spmd-attention"):
            with self.subTest(example=name):
                self.assertIn("  in order      PASS", self.passes("explore", os.path.join(pto_test.EXAMPLES, name), "--budget", "16",
                                                                  "--time", "20"))

    # What is wrong.

    def lie(self):
        """Of 40 tasks one reads what another one writes, and does not say so. On a chip it is never too early."""
        tasks = [put(i % 12, (i + 5) % 12, number=i) for i in range(40)]
        tasks[6] = put(14, number=77)
        tasks[31] = put(15, hidden(14))
        self.graph(tasks)

    def test_found(self):
        """It is found, shrunk to one delay, and replayed from that: the same bits, whatever the settings."""
        self.lie()
        for backend in ("det", "par"):
            self.assertTrue(self.gives("g", "--backend", backend)["passed"])
        changed = self.finds(schedule="0:6-after-0:31", pairs=[("0:6", "0:31")])
        self.assertEqual((changed["output"], changed["element"], changed["failed"]), ("cells", 15, False))
        self.assertEqual(changed["difference"], "cells[15]: 1 instead of 78")
        for which, number in (("first", 6), ("second", 31)):
            culprit = changed["unordered"][0][which]
            self.assertEqual(culprit["kernel"], "put")
            self.assertTrue(culprit["submitted_at"].endswith(f"orch.c:{self.line_of_submit(number)}"), culprit)
        self.assertIn("in no order and touch the same bytes", changed["advice"])
        self.assertIn("give argument 3 of task 31 of ring 0 as INPUT", changed["advice"])
        for settings in ((), ("--set", "clusters=1", "--set", "aicpu-threads=2"), ("--seed", "9", "--set", "jitter=200"), ("--no-isolate",)):
            with self.subTest(settings=settings):
                result = self.pto("run", "g", "--schedule", changed["schedule"], "--json", *settings)
                value = json.loads(result.stdout)
                self.assertEqual((result.returncode, value["passed"], value["schedule"]), (1, False, "0:6-after-0:31"))
                self.assertEqual(value["first_bad"], "cells[15]: 1 instead of 78")

    def test_deterministic(self):
        """The same words for the same seed, and what was found at first may be another one for another seed."""
        self.lie()
        first = self.pto("explore", "g", "--seed", "3")
        self.assertEqual((first.returncode, first.stdout), (1, self.pto("explore", "g", "--seed", "3").stdout))
        self.assertEqual(first.stderr, 'pto: graph: case "plain": the result depends on the order of its tasks: --schedule '
                                       '0:6-after-0:31: cells[15]: 1 instead of 78\n')
        table = rows(first.stdout)
        self.assertEqual(table["changed"], "cells[15]: 1 instead of 78")
        self.assertTrue(table["schedule"].startswith("0:6-after-0:31  (from "), table)
        self.assertEqual(table["in no order"], f"task 6 of ring 0 (put), submitted at orch.c:{self.line_of_submit(6)}")
        self.finds("--seed", "4", schedule="0:6-after-0:31", pairs=[("0:6", "0:31")])
        self.finds("--no-isolate", "--budget", "60", schedule="0:6-after-0:31", pairs=[("0:6", "0:31")])

    def test_held_with_another(self):
        """The task that is late because of the one that is held is the one that is named, and the first that comes too early."""
        self.graph([put(0), put(1, 0), put(2, 1, number=50), put(3), put(4), put(5, hidden(2)), put(6, hidden(2)), put(7)])
        self.finds(schedule="0:2-after-0:5", pairs=[("0:2", "0:5")])

    def test_written_twice(self):
        """Also two that write, and one that reads before."""
        self.graph([put(3, number=4), put(0, tag="no_dep", number=1), put(1), put(0, tag="no_dep", number=2)])
        self.finds(schedule="0:1-after-0:3", pairs=[("0:1", "0:3")])
        self.graph([put(1, hidden(0), number=1), put(2), put(0, number=5)])
        self.finds(schedule="0:0-after-0:2", pairs=[("0:0", "0:2")])

    def test_two_delays(self):
        """What takes two tasks to be late is found with two, and neither is left out."""
        self.graph([put(0), put(1), put(2), put(3), Task("both", ("output_existing", 15), hidden(0), hidden(2))])
        changed = self.finds(schedule="0:0-after-0:4,0:2-after-0:4", pairs=[("0:0", "0:4"), ("0:2", "0:4")])
        self.assertEqual(changed["difference"], "cells[15]: 1 instead of 0")

    def test_crash(self):
        """A run that fails in some order is found, too; the worker goes on."""
        self.graph([put(0), put(1), Task("trip", ("output_existing", 2), hidden(0)), put(3)])
        for words in ((), ("--no-isolate",)):
            with self.subTest(words=words):
                changed = self.finds(*words, schedule="0:0-after-0:2", pairs=[("0:0", "0:2")])
                self.assertTrue(changed["failed"])
                self.assertIn("task 2 of ring 0 (trip)", changed["difference"])
                self.assertIsNone(changed["output"])
        self.fails(3, ["task 2 of ring 0 (trip)"], "run", "g", "--schedule", changed["schedule"])

    # Each class of hazards.

    def test_hazards(self):
        """Which classes a graph needs, of graphs that need one each."""
        filler = [put(8), put(9)]
        graphs = {
            "raw": ([put(0, number=3), *filler, put(1, 0)], "without-raw,0:0-after-0:3"),
            "waw": ([put(0, number=3), *filler, put(0, number=4)], "without-waw,0:0-after-0:3"),
            "war": ([put(1, 0, number=3), *filler, put(0, number=4)], "without-war,0:0-after-0:3"),
        }
        for needed, (tasks, schedule) in graphs.items():
            with self.subTest(needed=needed):
                self.graph(tasks)
                value = self.explore("--hazards", "each", "--budget", "40")
                self.assertIsNone(value["changed"])
                self.assertEqual(list(value["without"]), ["raw", "waw", "war"])
                for name, found in value["without"].items():
                    if name == needed:
                        self.assertEqual(found["changed"]["schedule"], schedule)
                        self.assertEqual([(p["first"]["task"], p["second"]["task"]) for p in found["changed"]["unordered"]], [("0:0", "0:3")])
                    else:
                        self.assertIsNone(found["changed"])
                        self.assertEqual((found["schedules"]["one_delay"], found["schedules"]["one_delay_of"]), (3, 3))
                result = self.pto("run", "g", "--schedule", schedule, "--json")
                self.assertEqual((result.returncode, json.loads(result.stdout)["passed"]), (1, False))
        table = self.passes("explore", "g", "--hazards", "waw,war", "--budget", "40")
        self.assertIn("  without waw   no other result in ", table)
        self.assertIn(f"  without war   cells[1]: 7 instead of 3  ({schedule})\n", table)
        self.assertIn("it orders task 0 of ring 0 (put), submitted at orch.c:", table)
        self.assertNotIn("without raw", table)

    def test_hazards_of_a_race(self):
        """Where the result depends on the order anyway no class is tried, which is said."""
        self.lie()
        value = self.explore("--hazards", "each", status=1)
        self.assertIsNotNone(value["changed"])
        self.assertEqual(value["without"], {})
        self.assertTrue(value["without_not_tried"].startswith("not tried: the result depends on the order"), value)
        result = self.pto("explore", "g", "--hazards", "waw")
        self.assertEqual((result.returncode, rows(result.stdout)["hazards"]), (1, value["without_not_tried"]))
        self.assertNotIn("hazards", rows(self.pto("explore", "g").stdout))
        self.graph([put(0), put(1)])
        self.assertIsNone(self.explore("--hazards", "each", "--budget", "20")["without_not_tried"])

    # Bits, and what is near enough.

    def test_rounding(self):
        """Updates in any order may round; with --exact they may not."""
        self.graph([Task("add", ("commutative", 0), number=n) for n in (1, 10 ** 15, 3, 7, 10 ** 14 + 1)], rtol="1e-9")
        value = self.explore("--budget", "60")
        self.assertIsNone(value["changed"])
        self.assertGreater(value["schedules"]["rounded"], 0)
        self.assertIn("gave other bits, within the tolerance", rows(self.passes("explore", "g", "--budget", "60"))["rounding"])
        changed = self.explore("--budget", "60", "--exact", status=1)["changed"]
        self.assertEqual((changed["output"], changed["element"], len(changed["unordered"])), ("cells", 0, 1))
        self.assertEqual(self.explore("--schedule", changed["schedule"])["rounded"], True)
        self.assertEqual(self.explore("--schedule", changed["schedule"], "--exact", status=1)["changes"], True)

    def test_wrong_already(self):
        self.graph([put(0), put(1)], expected=[1.0, 2.0] + [0.0] * (CELLS - 2))
        value = self.explore("--budget", "20", status=1)
        self.assertEqual((value["passed"], value["first_bad"], value["changed"]), (False, "cells[1]: 1 instead of 2", None))
        self.fails(1, ["in the order of its submits it is wrong already: cells[1]: 1 instead of 2"], "explore", "g", "--budget", "20")

    def test_not_deterministic(self):
        self.graph([put(0), Task("count", ("output_existing", 1))])
        self.fails(1, ['graph: case "plain": two runs in the order of its submits differ', "cells[1]: 1 instead of 0"], "explore", "g")

    # Replaying.

    def test_replay(self):
        self.lie()
        value = self.explore("--schedule", "0:6-after-0:31", status=1)
        self.assertEqual((value["changes"], value["rounded"], value["failed"], value["difference"]),
                         (True, False, False, "cells[15]: 1 instead of 78"))
        self.assertEqual(rows(self.passes("explore", "g", "--schedule", "0:6-after-0:30"))["result"], "the same bits")
        self.fails(1, ["with the schedule 0:6-last the result is another one: cells[15]: 1 instead of 78"], "explore", "g",
                   "--schedule", "0:6-last")
        self.fails(3, ["schedule: there was no task 0:40 in this run: ring 0 had 40"], "explore", "g", "--schedule", "0:40-last")
        table = rows(self.passes("run", "g", "--schedule", "random-12,without-waw", "--set", "jitter=5"))
        self.assertEqual((table["schedule"], table["back end"]), ("random-12,without-waw", "det, seed 1"))

    def test_garbled(self):
        """One line that quotes what is wrong, before anything is built."""
        for command in ("run", "explore"):
            for text, words in (("0:6-after", ['"0:6-after"', "-after-TASK or -last"]), ("6-last", ['"6-last"', "RING:POSITION"]),
                                ("0:1-last,", ['"0:1-last,": nothing stands at one side of a comma']), ("random-1,0:1-last", ["one or the other"]), ("0:1\n-last", ['"0:1'])):
                with self.subTest(command=command, text=text):
                    self.fails(2, ["--schedule: schedule: ", *words], command, os.path.join(pto_test.EXAMPLES, "vector"), "--schedule", text,
                               lines=0 if "\n" in text else 1)
            self.fails(2, ["--schedule: a schedule wanted"], command, os.path.join(pto_test.EXAMPLES, "vector"), "--schedule", "")
        for words in (("--backend", "par"), ("--backend", "threads"), ("--set", "backend=par")):
            self.fails(2, ["--schedule needs the back end det, not"], "run", os.path.join(pto_test.EXAMPLES, "vector"), "--schedule",
                       "in-order", *words)
        self.fails(2, ["--set schedule needs the back end det, not par"], "run", os.path.join(pto_test.EXAMPLES, "vector"), "--set",
                   "schedule=in-order")

    def test_options(self):
        vector = os.path.join(pto_test.EXAMPLES, "vector")
        for words, fragments in (
                ((), ["which example? pto explore DIR"]),
                ((vector, "other"), ['one directory at a time, not "other" too']),
                ((vector, "--budget", "0"), ["--budget 0: a number from 1"]),
                ((vector, "--time", "x"), ["--time x: a number from 1"]),
                ((vector, "--seed", "-1"), ["--seed -1: a number"]),
                ((vector, "--hazards", "rar"), ["--hazards rar: each wanted, or some of raw,waw,war"]),
                ((vector, "--hazards", ""), ["--hazards : each wanted"]),
                ((vector, "--schedule", "in-order", "--budget", "3"), ["no effect beside it"]),
                ((vector, "--set", "backend=par"), ["--set backend: pto explore sets it itself"]),
                ((vector, "--set", "schedule=in-order"), ["give --schedule"]),
                ((vector, "--set", "check=access"), ["--set check"]),
                ((vector, "--set", "isolate=0", "--no-isolate"), ["--no-isolate", "give one"]),
                ((vector, "--set", "windows=3"), ["windows"]),
                ((vector, "--platform", "a9sim"), ["a9sim"]),
                ((vector, "--no-such"), ["--no-such"])):
            with self.subTest(words=words):
                self.fails(2, fragments, "explore", *words)
        self.fails(3, ["nowhere"], "explore", "nowhere")
        self.assertIn("--budget=NUMBER", self.passes("help", "explore"))
        self.assertIn("  explore   tell whether its result depends on", self.passes("help"))


pto_test.tap.main()
