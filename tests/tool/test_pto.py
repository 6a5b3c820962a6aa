#!/usr/bin/env python3
# test_pto.py: does the pto program do what a person types, and say clearly what it can not do?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import xml.etree.ElementTree

import pto_test
import report_reader
from pto_test import (EXAMPLES, PROGRAM, REQUIRED_KEYS, COPY_ORCHESTRATION, RAW_EXIT_GROUP, FLOAT32, FLOAT16,
                      INT8, rows, duration, PtoTest)


class Words(PtoTest):
    """What is typed, before anything is built."""

    def test_version(self):
        self.assertRegex(self.passes("--version"), r"^pto \d+\.\d+\.\d+\n$")

    def test_help(self):
        for words in (["help"], ["--help"]):
            text = self.passes(*words)
            self.assertIn("run", text)
            self.assertIn("info", text)
        for words in (["help", "run"], ["run", "--help"]):
            text = self.passes(*words)
            for option in ("--case", "--platform", "--backend", "--seed", "--set", "--repeat",
                           "--trace", "--svg", "--report", "--json"):
                self.assertIn(option, text)

    def test_no_command(self):
        self.fails(2, ["command"])

    def test_unknown_command(self):
        self.fails(2, ['"walk"'], "walk")
        self.fails(2, ['"walk"'], "help", "walk")
        self.fails(2, ['unknown command "rnu" (see pto help); did you mean "run"?'], "rnu")

    def test_unknown_option(self):
        self.fails(2, ["--fast"], "run", "ex", "--fast")
        self.fails(2, ["--fast"], "info", "--fast")
        self.fails(2, ['--bakend; did you mean "--backend"?'], "run", "ex", "--bakend", "det")
        self.fails(2, ['--bakend=det; did you mean "--backend"?'], "run", "ex", "--bakend=det")
        self.fails(2, ['--vresion; did you mean "--version"?'], "--vresion")
        self.fails(2, ['"ex"'], "info", "ex")

    def test_no_directory(self):
        self.fails(2, ["DIR"], "run")

    def test_two_directories(self):
        self.fails(2, ['"two"'], "run", "one", "two")

    def test_bad_numbers(self):
        for value in ("0", "-1", "x", ""):
            self.fails(2, ["--repeat"], "run", "ex", "--repeat", value)
        for value in ("x", "-1", "18446744073709551616"):
            self.fails(2, ["--seed", value], "run", "ex", "--seed", value)

    def test_missing_value(self):
        self.fails(2, ["--case"], "run", "ex", "--case")

    def test_bad_set(self):
        self.example()
        self.fails(2, ["--set", "task-window"], "run", "ex", "--set", "task-window")
        self.fails(2, ["--set", "=3"], "run", "ex", "--set", "=3")
        self.fails(2, ["no-such-knob"], "run", "ex", "--set", "no-such-knob=3")
        self.fails(2, ["task-window", "17"], "run", "ex", "--set", "task-window=17")

    def test_without_effect(self):
        """What is typed is looked at, or refused by name."""
        self.example()
        for words, fragments in (
                (["--seed", "7"], ["--seed", "par", "--backend det"]),
                (["--set", "seed=7", "--backend", "threads"], ["--set seed", "threads"]),
                (["--set", "carriers=1", "--backend", "det"], ["carriers", "det"]),
                (["--set", "jitter=5"], ["jitter", "add --backend det"]),
                (["--set", "utilization=1", "--backend", "det"], ["utilization", "det"]),
                (["--set", "trace-records=64"], ["trace-records", "--trace"]),
                (["--no-isolate", "--set", "arena=1M"], ["arena", "no effect", "level 3"]),
                (["--no-isolate", "--set", "isolate=1"], ["--no-isolate", "--set isolate", "give one"]),
                (["--set", "task-timeout=5"], ["task-timeout", "no effect"]),
                (["--set", "stop-timeout=5"], ["stop-timeout", "no effect"])):
            with self.subTest(words=words):
                self.fails(2, fragments, "run", "ex", *words)
        self.passes("run", "ex", "--set", "seed=7", "--backend", "det", "--set", "trace=1", "--set", "trace-records=64")
        self.passes("run", "ex", "--set", "carriers=1", environment={"PTO_SEED": "7", "PTO_ARENA": "1M"})

    def test_unknown_platform(self):
        self.example()
        self.fails(2, ["a9sim", "a2a3sim"], "run", "ex", "--platform", "a9sim")

    def test_unknown_backend(self):
        self.example()
        self.fails(2, ["warp"], "run", "ex", "--backend", "warp")

    def info(self, **environment):
        return json.loads(self.passes("info", "--json", environment=environment))

    def test_info_json(self):
        info = self.info(CC="true", CXX="false -x")
        description = ("%d clusters of 1 AIC + 2 AIV, %d schedulers + 1 orchestrator, %s counter")
        version = self.passes("--version").split()[1]
        self.assertEqual(list(info), ["version", "platforms", "hardware", "machine", "backends", "parameters"])
        self.assertEqual(info["version"], version)
        self.assertEqual(info["platforms"], [
            {"name": name, "description": description % (clusters, threads - 1, words),
             "clusters": clusters, "aic_per_cluster": 1, "aiv_per_cluster": 2,
             "aicpu_threads": threads, "counter_hz": hz}
            for name, clusters, threads, hz, words in (("a2a3sim", 24, 4, 50000000, "50 MHz"),
                                                       ("a5sim", 36, 5, 1000000000, "1 GHz"))])
        self.assertEqual(info["hardware"], [
            {"name": name, "available": False, "description": "the chips themselves: there is no module for them (doc/hardware.md)"}
            for name in ("a2a3", "a5")])
        system = os.uname()
        self.assertEqual(info["machine"], {
            "system": system.sysname, "release": system.release, "architecture": system.machine,
            "cpus": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"),
            "c_compiler": shutil.which("true"), "cxx_compiler": shutil.which("false") + " -x"})
        self.assertEqual(info["backends"], ["par", "det", "threads"])
        parameters = {parameter["name"]: parameter for parameter in info["parameters"]}
        self.assertEqual(len(parameters), len(info["parameters"]))
        self.assertEqual(parameters["task-window"], {
            "name": "task-window", "variable": "PTO2_RING_TASK_WINDOW", "value": "65536",
            "description": "slots of each task ring, all but one usable; a power of two, or four of them"})
        none = self.info(CC="/nonexistent/compiler", CXX="/nonexistent/compiler")["machine"]
        self.assertEqual((none["c_compiler"], none["cxx_compiler"]), (None, None))

    def test_info(self):
        """The text says what the JSON says, in columns."""
        for compilers in ({"CC": "true", "CXX": "false -x"}, {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}):
            info = self.info(**compilers)
            machine, parameters = info["machine"], info["parameters"]
            columns = [max(len(parameter[key]) for parameter in parameters)
                       for key in ("name", "value", "variable")]
            lines = ["pto " + info["version"], "", "Platforms"]
            for p in info["platforms"]:
                lines.append("  %-14s%d clusters of %d AIC + %d AIV (%d cores), %d schedulers + 1 orchestrator, "
                             "counter %d MHz"
                             % (p["name"], p["clusters"], p["aic_per_cluster"], p["aiv_per_cluster"],
                                p["clusters"] * (p["aic_per_cluster"] + p["aiv_per_cluster"]),
                                p["aicpu_threads"] - 1, p["counter_hz"] / 1e6))
            lines.append("  %-14s%s" % ("a2a3, a5", "the chips themselves: there is no module for them (doc/hardware.md)"))
            words = [("system", "%(system)s %(release)s, %(architecture)s" % machine),
                     ("CPUs", "%(cpus)d usable" % machine), ("memory", ""),
                     ("C compiler", machine["c_compiler"] or "none"),
                     ("C++ compiler", machine["cxx_compiler"] or "none")]
            lines += ["", "This machine"] + ["  %-14s%s" % line for line in words]
            lines += ["", "Compiled in", "  %-14s%s" % ("back ends", ", ".join(info["backends"])), "  GLib", ""]
            lines += ["Parameters (pto run --set NAME=VALUE, or the environment variable)"]
            lines += ["  %-*s  %-*s  %-*s  %s" % (columns[0], p["name"], columns[1], p["value"], columns[2],
                                                  p["variable"], p["description"]) for p in parameters]
            text = self.passes("info", environment=compilers).splitlines()
            # Of these two only what can be known here.
            memory, glib = lines.index("  memory        "), lines.index("  GLib")
            size, unit = re.fullmatch(r"  memory        ([0-9.]+).([KMGT])iB", text[memory]).groups()
            exact = machine["memory_bytes"] / 1024 ** (1 + "KMGT".index(unit))
            self.assertAlmostEqual(float(size), exact, delta=0.051)
            self.assertRegex(text[glib], r"^  GLib          2\.\d+\.\d+$")
            text[memory], text[glib] = "  memory        ", "  GLib"
            self.assertEqual(text, lines)

    def test_info_follows_environment(self):
        environment = {"PTO2_RING_TASK_WINDOW": "128"}
        info = self.info(**environment)
        values = {parameter["name"]: parameter["value"] for parameter in info["parameters"]}
        self.assertEqual(values["task-window"], "128")


class Status(PtoTest):
    """What a script goes by: right, wrong, not what can be meant, not possible."""

    def test_listed(self):
        """130 and 141 are tried where Ctrl-C is, and readers that go (test_pto_output.py)."""
        text = self.passes("help").split("Exit status:\n")[1]
        self.assertEqual(re.findall(r"(?m)^  (\d+) +\S", text), ["0", "1", "2", "3", "130", "141"])
        section = re.search(r"(?ms)^\.SH EXIT STATUS\n(.*?)^\.SH", self.passes("--print-page", "man")).group(1)
        self.assertEqual(re.findall(r"(?m)^\.TP\n\\fB(\d+)\\fR\n", section), ["0", "1", "2", "3", "130", "141"])

    def test_wrong(self):
        self.copy_example(dtype=FLOAT32, got=0, expected=0)
        self.passes("run", "copy")
        self.copy_example(dtype=FLOAT32, got=0, expected=0x3f800000)
        for words in ([], ["--json"], ["--no-isolate"], ["--backend", "det"]):
            self.fails(1, ["5 of 6 elements are wrong"], "run", "copy", *words)
        self.fails(1, ["wrong already"], "explore", "copy")

    def test_wrong_and_more(self):
        """Wrong it stays, whatever else can not be done."""
        self.copy_example(dtype=FLOAT32, got=0, expected=0x3f800000)
        self.fails(1, ["/dev/full"], "run", "copy", "--svg", "/dev/full", lines=2)
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([PROGRAM, "run", "copy"], stdout=full, stderr=subprocess.PIPE, cwd=self.directory,
                                    env=self.environment, timeout=pto_test.DEADLINE, check=False)
        self.assertEqual((result.returncode, result.stderr.count(b"\n")), (1, 2))

    def test_accesses(self):
        self.copy_example(dtype=FLOAT32, got=0, expected=0)
        self.edit("copy/orch.c", "make_input_param (from)", "make_output_param (from)")
        self.passes("run", "copy")
        self.fails(1, ["read bytes"], "run", "copy", "--check=access")

    def test_usage(self):
        self.copy_example(dtype=FLOAT32, got=0, expected=0x3f800000)
        for words in ([], ["walk"], ["run"], ["run", "copy", "--fast"], ["run", "copy", "--set", "task-window=3"],
                      ["run", "copy", "--svg", "x.png"], ["top", "x"], ["help", "walk"], ["--fast", "run", "copy"]):
            self.fails(2, [], *words)

    def test_trouble(self):
        self.fails(3, ["no such directory"], "run", "nowhere")
        self.fails(3, ["nowhere"], "trace", "nowhere")
        self.fails(3, ["no process"], "top", str(2 ** 22 + 5))
        self.copy_example(dtype=FLOAT32, got=0, expected=0x3f800000)
        self.fails(3, ["PTO2_RING_TASK_WINDOW"], "run", "copy", environment={"PTO2_RING_TASK_WINDOW": "17"})
        self.fails(3, ["the compiler failed"], "run", "copy", lines=0, environment={"CC": "false"})
        self.edit("copy/copy.c", "memcpy (", "abort (); memcpy (")
        self.edit("copy/copy.c", "#include <string.h>", "#include <string.h>\n#include <stdlib.h>")
        for words in ([], ["--no-isolate"]):
            self.fails(3, ["(copy)"], "run", "copy", *words)


class Manifest(PtoTest):
    """Every way to write a wrong pto.ini: one line names file and thing, and no file is made."""

    def refuses(self, fragments, lines=1, **words):
        before = sorted(os.listdir(self.directory))
        result = self.fails(3, fragments, "run", "ex", "--trace", "t.json", "--svg", "t.svg",
                            "--report", "t.html", lines=lines, **words)
        self.assertEqual(result.stdout, "")
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def spoil(self, old, new, fragments, names_file=True):
        self.example()
        self.edit("ex/pto.ini", old, new)
        self.refuses([*["ex/pto.ini"] * names_file, *fragments])
        shutil.rmtree(os.path.join(self.directory, "ex"))

    def test_no_directory(self):
        self.refuses(["ex", "no such directory"])
        # A name is not obeyed by the terminal.
        self.assertIn("no?[31m?", self.fails(3, [], "run", "no\x1b[31m\x9b").stderr)

    def test_named_by_its_file(self):
        self.example()
        self.assertIn("PASS", self.passes("run", "ex/pto.ini"))
        self.assertIn("PASS", self.passes("run", os.path.join(self.directory, "ex", "pto.ini")))
        self.fails(3, ["no such directory"], "run", "ex/pto.in")

    def test_slow(self):
        """Less than ten tasks a second are no whole number of them."""
        self.copy_example(dtype=FLOAT32, got=0, expected=0x00000000)
        self.edit("copy/copy.c", "memcpy (", "usleep (200000); memcpy (")
        self.edit("copy/copy.c", "#include <string.h>", "#include <string.h>\n#include <unistd.h>")
        self.assertRegex(self.passes("run", "copy"), r"run time +\d.* m?s, [0-5]\.\d tasks/s")

    def test_no_manifest(self):
        os.mkdir(os.path.join(self.directory, "ex"))
        self.refuses(["ex", "pto.ini"])

    def test_not_text(self):
        os.mkdir(os.path.join(self.directory, "ex"))
        with open(os.path.join(self.directory, "ex/pto.ini"), "wb") as file:
            file.write(b"\x7fELF\x00\xff\xfe")
        self.refuses(["ex/pto.ini", "UTF-8"])

    def test_cost_beyond_the_clock(self):
        """A cost that no clock has room for is refused with file and kernel, and a chain that comes to its end fails."""
        self.example()
        with open(os.path.join(self.directory, "ex/pto.ini"), encoding="utf-8") as file:
            manifest = re.sub(r"(?m)^cost=.*\n", "", file.read())
        for cost in "constant:9e18", "constant:1.8e19", "constant:1e300", "linear:1:1e300", "table:0:1e16":
            self.write("ex/pto.ini", manifest.replace("core=aiv\n", f"core=aiv\ncost={cost}\n"))
            for words in ([], ["--backend", "det"]):
                result = self.fails(3, ["ex/pto.ini: kernel \"", f'"{cost}" is too much: no number of a cost is greater than 1e15 ns'],
                                    "run", "ex", *words)
                self.assertEqual(result.stdout, "")
        self.write("ex/pto.ini", manifest.replace("core=aiv\n", "core=aiv\ncost=linear:1e15:1e15\n"))
        self.fails(3, ["task 0 of ring", "than the virtual clock goes"], "run", "ex", "--backend", "det")
        self.passes("run", "ex")

    def test_not_a_key_file(self):
        self.spoil("[example]", "example:", [])

    def test_missing_group(self):
        self.spoil("[reference]\nsource=reference.c\n", "", ["[reference]", "missing"])
        self.spoil("[orchestration]\nsource=orchestration/vector_orch.c\n", "", ["[orchestration]"])
        self.example()
        self.write("ex/pto.ini", "[orchestration]\nsource=orchestration/vector_orch.c\n")
        self.refuses(["ex/pto.ini", "[example]", "missing"])

    def test_no_kernel(self):
        """A graph may only order."""
        self.copy_example(dtype=INT8, got=0, expected=0)
        self.edit("copy/pto.ini", "[kernel 0]\nname=copy\nsource=copy.c\ncore=aiv\n", "")
        self.edit("copy/orch.c", "pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);",
                  "pto2_rt_submit_order (rt, params, 2, NULL, 0);")
        self.assertEqual(self.gives("copy")["tasks"], 1)
        self.assertIn("kernels       none", self.passes("run", "copy"))

    def test_no_case(self):
        head = ("[example]\nname=x\n[orchestration]\nsource=orchestration/vector_orch.c\n"
                "[reference]\nsource=reference.c\n")
        self.example()
        self.write("ex/pto.ini", head + "[kernel 0]\nname=add\nsource=kernels/add.c\ncore=aiv\n")
        self.refuses(["ex/pto.ini", "[case NAME]"])

    def test_missing_key(self):
        self.spoil("name=vector\n", "", ["[example]", '"name"'])
        self.spoil("source=orchestration/vector_orch.c", "", ["[orchestration]", '"source"'])
        self.spoil("source=reference.c", "", ["[reference]", '"source"'])
        self.spoil("name=add\n", "", ["[kernel 0]", '"name"'])
        self.spoil("source=kernels/add.c\n", "", ["[kernel 0]", '"source"'])
        self.spoil("core=aiv\n", "", ["[kernel 0]", '"core"'])
        self.spoil("name=add\n", "name=\n", ["[kernel 0]", '"name"'])

    def test_unread_key(self):
        """A key of a case gets a suggestion, if that key is not there already and takes the value."""
        self.spoil("rtol=1e-5", "rtoll=1e-5", ['"five"', 'nobody reads rtoll (did you mean "rtol"?): neither a parameter'])
        self.spoil("rtol=1e-5", "rtol=1e-5\nrtoll=1e-5", ["nobody reads rtoll: neither a parameter"])
        self.spoil("rtol=1e-5", "equal_nan=true\ntask_windw=16",
                   ['nobody reads equal_nan (did you mean "equal-nan"?), task_windw (did you mean "task-window"?): neither'])
        self.spoil("elements=16384", "elemnts=16384", ['nobody reads elemnts (did you mean "elements"?): neither'])
        self.spoil("rtol=1e-5", "back-end=fast", ['nobody reads back-end (did you mean "backend"?): neither'])
        self.spoil("rtol=1e-5", "task-timeot=5", ["nobody reads task-timeot: neither"])  # of level 3
        self.spoil("source=", "sorce=", ["sorce", '; did you mean "source"?'])

    def test_set_of_a_case(self):
        """What only a case can say is no parameter."""
        self.example()
        for said, key in (("rtol=1", "rtol"), ("equal-nan=true", "equal-nan"), ("elements=4", "elements")):
            for command in "run", "explore":
                self.fails(2, [f"pto: --set {said}: {key} is no parameter of the runtime; write {said} in [case five] of ex/pto.ini"],
                           command, "ex", "--set", said)
        self.fails(2, ['--set: there is no parameter "rtolx" (pto info lists them)'], "run", "ex", "--set", "rtolx=1")

    def test_unknown_core(self):
        self.spoil("core=aiv", "core=gpu", ["[kernel 0]", "core=gpu", "aic", "aiv"])

    def test_bad_number(self):
        self.spoil("rtol=1e-5", "rtol=small", ['"five"', "rtol=small"])
        self.spoil("atol=1e-5", "atol=-1", ['"five"', "atol=-1"])
        self.spoil("rtol=1e-5", "rtol=nan", ['"five"', "rtol=nan"])
        self.spoil("rtol=1e-5", "rtol=inf", ['"five"', "rtol=inf"])
        self.spoil("rtol=1e-5", "equal-nan=yes", ['"five"', "equal-nan=yes", "true or false"])
        self.spoil("rtol=1e-5", "mismatch-share=1.5", ['"five"', "mismatch-share=1.5", "from 0 to 1"])
        self.spoil("elements=16384", "elements=16384x", ['"five"', "elements=16384x"])
        self.spoil("cost=linear:600:0.05", "cost=linear:many", ['"add"', "linear:many"])

    def test_bad_parameter(self):
        self.spoil("elements=16384", "elements=16384\ntask-window=17", ['"five"', "task-window"])

    def test_unknown_key(self):
        self.spoil("core=aiv", "core=aiv\ncores=2", ["[kernel 0]", '"cores"'])
        self.spoil("name=vector", "name=vector\nauthor=me", ["[example]", '"author"'])
        self.spoil("source=reference.c", "source=reference.c\nlanguage=c",
                   ["[reference]", '"language"'])
        self.spoil("vector_orch.c", "vector_orch.c\nfuncton=x", ["[orchestration]", '"functon"'])

    def test_unknown_group(self):
        self.spoil("[reference]", "[refrence]", ["[reference]"])
        self.spoil("[case four]", "[caze four]", ["[caze four]"])

    def test_duplicates(self):
        self.spoil("[kernel 1]", "[kernel 0]", ["[kernel 0]", "twice"])
        self.spoil("[kernel 1]", "[kernel 00]", ["[kernel 00]", "0", '"add"'])
        self.spoil("[case four]", "[case five]", ["[case five]", "twice"])
        self.spoil("name=add\n", "name=add\nname=sub\n", ['"name"', "twice"])

    def test_line_of_a_duplicate(self):
        """Comments and empty lines count, and are never twice; one key may be in two groups."""
        self.example()
        with open(os.path.join(self.directory, "ex/pto.ini"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        last = lines.index("[reference]") + 1
        for at in (1, lines.index("[kernel 1]"), last):
            for before in (0, 1, 4):
                with self.subTest(at=at, before=before):
                    twice = lines[:]
                    twice[last + 1:last + 1] = ["#source=x", ""] * before + ["  source  = reference.c"]
                    twice[at:at] = ["# a=b"] * before
                    self.write("ex/pto.ini", "\n".join(twice) + "\n")
                    self.refuses(["ex/pto.ini", f"line {last + 2 + 3 * before}: ", '"source"', "twice in [reference]"])
                    twice = lines[:]
                    twice.append("[reference]")
                    twice[at:at] = ["", "# a=b"] * before
                    self.write("ex/pto.ini", "\n".join(twice) + "\n")
                    self.refuses(["ex/pto.ini", f"line {len(twice)}: ", "[reference]", "twice"])

    def test_spelling(self):
        """Blanks, comments, capitals and absolute paths mean what they do elsewhere."""
        self.copy_example(dtype=FLOAT32)
        path = os.path.join(self.directory, "copy/pto.ini")
        self.write("copy/pto.ini", f"""# first

  # second
[example]
name =  copy

[orchestration]
source = {self.directory}/copy/orch.c
[reference]
source= reference.c
[kernel 4095]
name=  never
source=copy.c
core= AIC
[kernel 0]
name = copy
source = copy.c
core = AiV
args =  2
[case  first ]
atol= 0.25
dtype={FLOAT16}
got={0x3e00}
expected={0x3f00}
[case second]
dtype={FLOAT16}
""")
        result = self.gives("copy")
        self.assertEqual((result["example"], result["case"], result["max_abs_error"]), ("copy", "first", 0.25))
        self.assertEqual(self.gives("copy", "--case", "second")["max_abs_error"], 0)
        text = self.passes("run", "copy", "--case", "second")
        self.assertEqual(rows(text)["case"], "second")
        self.assertTrue(rows(text)["kernels"].startswith("copy never ("), text)
        self.edit("copy/pto.ini", "name =  copy", "name=copy\ndefault-case=second")
        self.assertEqual(self.gives("copy")["case"], "second")
        self.edit("copy/pto.ini", "atol= 0.25", "atol=0.2")
        self.fails(1, ['"first"', "to[0, 1]: 1.5 instead of 1.75"], "run", "copy", "--case", "first")
        # The library's limit, in its words.
        for previous, number in (4095, 4096), (4096, 65536), (65536, 4294967295):
            self.edit("copy/pto.ini", f"[kernel {previous}]", f"[kernel {number}]")
            self.fails(3, [path[len(self.directory) + 1:], "copy", f"function id {number} is too large: at most 4095"],
                       "run", "copy")

    def test_reference_with_a_sanitizer(self):
        """Its runtime would end the program where that has begun without it: so it is not loaded."""
        self.copy_example(dtype=FLOAT32)
        api = os.path.join(EXAMPLES, "..", "pto", "api")
        with open(PROGRAM, "rb") as file:
            has_runtime = b"__asan_init" in file.read()
        for flags, says in (["-fsanitize=address"], "LD_PRELOAD="), (["-fsanitize=thread"], "build it without"), ([], None):
            build = subprocess.run(["cc", "-shared", "-fPIC", *flags, "-I", api, "copy/reference.c", "-o", "copy/reference.so"],
                                   cwd=self.directory, capture_output=True, encoding="utf-8", check=False)
            if build.returncode != 0 and flags:
                continue  # the compiler has no such runtime
            for source in "reference.so", "./reference.so":
                with self.subTest(flags=flags, source=source):
                    self.copy_example(dtype=FLOAT32)
                    self.edit("copy/pto.ini", "source=reference.c", "source=" + source)
                    if says is None or (has_runtime and flags == ["-fsanitize=address"]):
                        self.passes("run", "copy")
                    else:
                        for command in ["run"], ["explore", "--budget", "2"]:
                            self.fails(3, ["copy/pto.ini", "[reference]", "reference.so", flags[0], says], *command, "copy")

    def test_with_a_preloaded_sanitizer(self):
        """As the advice on such references says: the programs begin, and a run works."""
        with open(PROGRAM, "rb") as file:
            if b"__asan_init" in (program := file.read()) or b"__tsan_init" in program:
                self.skipTest("the program has a runtime of its own")
        n_found = 0
        self.copy_example(dtype=FLOAT32)
        for name in "asan", "tsan", "ubsan", "lsan":
            file = subprocess.run(["cc", f"-print-file-name=lib{name}.so"], capture_output=True, encoding="utf-8",
                                  check=False).stdout.strip()
            if not os.path.isabs(file):
                continue  # the compiler has no such runtime
            n_found += 1
            env = {**os.environ, "LD_PRELOAD": os.path.realpath(file), "ASAN_OPTIONS": "detect_leaks=0",
                   "LSAN_OPTIONS": "detect_leaks=0"}
            commands = [[PROGRAM, "--version"], [os.environ["PTO_REMOTE"], "--version"]]
            if name == "asan":
                commands.append([PROGRAM, "run", "copy"])
            for command in commands:
                with self.subTest(name=name, command=command):
                    done = subprocess.run(command, cwd=self.directory, env=env, capture_output=True, encoding="utf-8",
                                          timeout=60, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("PASS" if command[1] == "run" else os.path.basename(command[0]), done.stdout)
        if n_found == 0:
            self.skipTest("the compiler has no runtime of a sanitizer")

    def test_bad_function_id(self):
        self.spoil("[kernel 1]", "[kernel one]", ["[kernel one]", "number"])
        self.spoil("[kernel 1]", "[kernel -1]", ["[kernel -1]", "number"])
        self.spoil("[kernel 1]", "[kernel 99999999999]", ["[kernel 99999999999]", "number"])

    def test_missing_file(self):
        self.spoil("kernels/add.c", "kernels/sum.c", ['"add"', "kernels/sum.c", "no such file"])
        self.spoil("vector_orch.c", "graph.c", ["[orchestration]", "orchestration/graph.c"])
        self.spoil("source=reference.c", "source=golden.c", ["[reference]", "golden.c"])
        self.spoil("kernels/add.c", "kernels/add.py", ['"add"', "kernels/add.py"])
        self.example()
        os.mkdir(os.path.join(self.directory, "ex/kernels/dir.c"))
        self.edit("ex/pto.ini", "kernels/add.c", "kernels/dir.c")
        self.refuses(["ex/pto.ini", '"add"', "kernels/dir.c"])

    def test_unknown_case(self):
        self.example()
        self.fails(3, ["ex/pto.ini", '"six"', "five", "four"], "run", "ex", "--case", "six")
        shutil.rmtree(os.path.join(self.directory, "ex"))
        self.spoil("default-case=five", "default-case=six", ["default-case=six", "five", "four"])

    def test_compile_error(self):
        self.example()
        self.write("ex/kernels/add.c", "int kernel_entry (void) { return n; }\n")
        self.refuses(["ex/pto.ini", '"add"', "add.c:1", "n"], lines=0)

    def test_reference_compile_error(self):
        self.example()
        self.write("ex/reference.c", "nonsense\n")
        self.refuses(["ex/pto.ini", "[reference]", "reference.c:1"], lines=0)

    def test_missing_export(self):
        self.example()
        self.write("ex/kernels/add.c", "void kernel (long *args) { (void) args; }\n")
        self.refuses(["ex/pto.ini", '"add"', "kernel_entry"])

    def test_reference_missing_export(self):
        self.example()
        self.write("ex/reference.c", "int nothing;\n")
        self.refuses(["ex/pto.ini", "[reference]", "pto_reference_inputs"])

    def test_not_a_shared_object(self):
        self.example()
        self.write("ex/kernels/add.so", "not one\n")
        self.edit("ex/pto.ini", "kernels/add.c", "kernels/add.so")
        self.refuses(["ex/pto.ini", '"add"', "add.so"])

    def test_reference_fails(self):
        self.example()
        self.edit("ex/reference.c", "c->ops->scalar (c, \"elements\", elements);",
                  "return pto_case_fail (c, \"the moon is full\");")
        self.refuses(["ex/pto.ini", '"five"', "the moon is full"])

    def test_foreign_code_that_does_not_return(self):
        """A reference, an orchestration, a kernel: one line that says which, and status 1."""
        for what, says in (("abort ();", "crashed: Aborted (signal 6)"),
                           ("exit (3);", "called exit(3)")):
            for name, function, where in (
                    ("reference.c", "pto_reference_compute", "reference.c: pto_reference_compute()"),
                    ("orchestration/vector_orch.c", "aicpu_orchestration_entry",
                     "before its first submit it"),
                    ("kernels/add.c", "kernel_entry", "(add) on core AIV")):
                with self.subTest(what=what, name=name):
                    shutil.rmtree(os.path.join(self.directory, "ex"), ignore_errors=True)
                    self.example()
                    path = os.path.join(self.directory, "ex", name)
                    with open(path, encoding="utf-8") as file:
                        head, tail = file.read().split(function, 1)
                    self.write("ex/" + name, "#include <stdlib.h>\n" + head + function
                               + tail.replace("{", "{ " + what, 1))
                    self.refuses(['"five"', where, says])

    def test_reference_leaves_output_out(self):
        self.example()
        self.edit("ex/reference.c", 'float *f = (float *) c->ops->expected (c, "f");',
                  "return 0;\n  float *f = 0;")
        self.refuses(["ex/pto.ini", '"five"', '"f"'])

    def test_reference_doubles_argument(self):
        self.example()
        self.edit("ex/reference.c", '(c, "b",', '(c, "a",')
        self.refuses(["ex/pto.ini", '"five"', '"a"', "twice"])

    def test_orchestration_refuses(self):
        self.example()
        self.edit("ex/pto.ini", "form=5", "form=6")
        result = self.fails(3, ["form 6"], "run", "ex", lines=2)  # its own words come first
        self.assertIn('"five"', result.stderr.splitlines()[1])

    def test_wrong_argument_count(self):
        self.example()
        self.edit("ex/reference.c", '  c->ops->scalar (c, "elements", elements);\n', "")
        self.refuses(["vector", '"five"', "4", "5"])

    def test_places(self):
        """What a call does wrong is told with its place, in C and C++."""
        self.copy_example()
        self.edit("copy/pto.ini", "source=orch.c\n", "source=orch.cc\n")
        head = ('#include "pto_build_graph.h"\n' + COPY_ORCHESTRATION).replace("PTO2OrchestrationConfig aicpu", 'extern "C" PTO2OrchestrationConfig aicpu')
        head = head.replace("int aicpu_orchestration_entry", 'extern "C" int aicpu_orchestration_entry')
        head = head.replace("(PTO2OrchestrationConfig){ .expected_arg_count = 3 }", "PTO2OrchestrationConfig{ 3 }")
        head = head.replace("PTO_DTYPE_UINT8", "(DataType) PTO_DTYPE_UINT8")
        task = "PTO2TaskId t = api.add_task (0, PTO2_WORKER_VECTOR, params, 2);"
        for code, words in (("pto2_rt_scope_end (rt); pto2_rt_scope_end (rt);", "scope_end without a scope_begin at orch.cc:"),
                            ("for (int i = 0; i < 70; i++) pto2_rt_scope_begin (rt);", "by the one opened at orch.cc:"),
                            ("pto2_rt_arg_tensor (rt, 7);", "argument 7 as a tensor at orch.cc:"),
                            ("pto2_rt_submit_task_with_priority (rt, 0, PTO2_WORKER_VECTOR, params, 2, 9);", "submitted at orch.cc:"),
                            (f"AicpuBuildApi api (rt); {task} (void) t;", "added at orch.cc:"),
                            (f"AicpuBuildApi api (rt); {task} api.publish_task (t); api.publish_task (t);", "to be published at orch.cc:"),
                            (f"AicpuBuildApi api (rt); {task} api.add_successor_conditional (t, 77);", "at orch.cc:"),
                            ("AicpuBuildApi api (rt); api.device_malloc (0);", "submitted at orch.cc:")):
            text = head.replace("  PTO2_SCOPE (rt) {", "  " + code + "\n  PTO2_SCOPE (rt) {")
            self.write("copy/orch.cc", text)
            line = text[:text.index(code)].count("\n") + 1
            with self.subTest(code=code):
                self.fails(3, [f"{words}{line}"], "run", "copy")

    def test_unread_key(self):
        for key in ("elemnts=3", "titel=five", "titles=x"):
            self.spoil("elements=16384", "elements=16384\n" + key, ['"five"', key.split("=")[0]])
        self.spoil("elements=16384", "elements=16384\ntask-timeout=5", ['"five"', "task-timeout", "no effect"])

    def test_number_of_arguments(self):
        for value in ("x", "-1", "129", ""):
            self.spoil("args=3", "args=" + value, ["[kernel 0]", "args=" + value])
        for value in (0, 2, 4, 128):
            self.spoil("args=3", f"args={value}", [f"(add) takes {value} arguments, but 3 are given", "vector_orch.c:"],
                       False)


class Run(PtoTest):
    vector = os.path.join(EXAMPLES, "vector")

    def test_vector(self):
        for backend in ("par", "det", "threads"):
            with self.subTest(backend=backend):
                result = self.gives(self.vector, "--backend", backend)
                for key in REQUIRED_KEYS:
                    self.assertIn(key, result)
                self.assertEqual(result["example"], "vector")
                self.assertEqual(result["case"], "five")
                self.assertEqual(result["platform"], "a2a3sim")
                self.assertEqual(result["backend"], backend)
                self.assertEqual(result["tasks"], 5)
                self.assertEqual(result["edges"], 6)
                self.assertIs(result["passed"], True)
                self.assertEqual(result["max_abs_error"], 0)
                self.assertGreater(result["run_seconds"], 0)
                self.assertGreater(result["tasks_per_second"], 0)
                self.assertGreaterEqual(result["peak_live_tasks"], 1)
                self.assertEqual(result["recycled"], 0)
                self.assertEqual((result["aic_cores"], result["aiv_cores"]), (24, 48))

    def test_four(self):
        result = self.gives(self.vector, "--case", "four")
        self.assertEqual((result["tasks"], result["edges"], result["passed"]), (4, 4, True))

    def test_edges_exactly(self):
        """t0-t1, t0-t2, t0-t4, t1-t3, t2-t3, t3-t4 and no other."""
        path = os.path.join(self.directory, "run.json")
        self.passes("run", self.vector, "--trace", path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        submits = [event["args"] for event in events if event.get("cat") == "submit"]
        order = {submit["task"]: i for i, submit in enumerate(submits)}
        edges = {(order[producer], order[submit["task"]]) for submit in submits
                 for producer in submit["waited_for"]}
        self.assertEqual(edges, {(0, 1), (0, 2), (0, 4), (1, 3), (2, 3), (3, 4)})

    def test_det_is_reproducible(self):
        first = self.gives(self.vector, "--backend", "det", "--seed", "7")
        second = self.gives(self.vector, "--backend", "det", "--seed", "7")
        self.assertEqual(first["seed"], 7)
        self.assertGreater(first["virtual_ns"], 0)
        self.assertRegex(first["trace_sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(first["trace_sha256"], second["trace_sha256"])
        self.assertEqual(first["virtual_ns"], second["virtual_ns"])

    def test_det_files_are_equal(self):
        for name in ("a", "b"):
            self.passes("run", self.vector, "--backend", "det", "--trace", name + ".json", "--svg",
                        name + ".svg")
            # Memory is elsewhere each time: that is level 4.
            self.passes("run", self.vector, "--backend", "det", "--report", name + ".html", "--set", "trace-level=3")
        for suffix in (".html", ".json", ".svg"):
            texts = []
            for name in ("a", "b"):
                with open(os.path.join(self.directory, name + suffix), "rb") as file:
                    texts.append(file.read())
            self.assertEqual(texts[0], texts[1], suffix)

    def test_wall_clock_has_no_virtual_time(self):
        result = self.gives(self.vector, "--backend", "par")
        self.assertIsNone(result["virtual_ns"])
        self.assertIsNone(result["trace_sha256"])

    def test_table(self):
        text = self.passes("run", self.vector, "--trace", "run.json", "--svg", "run.svg", "--report", "run.html")
        for fragment in ("vector on a2a3sim", "24 AIC + 48 AIV", "five", "tasks", "edges",
                         "back end", "par", "PASS", "tasks/s", "AIC", "AIV", "recycled",
                         "run.json", "run.svg", "run.html (open in a browser)"):
            self.assertIn(fragment, text)

    def test_dump(self):
        value = self.gives(self.vector, "--dump", "out-", "--dump-filter", "*.0,1:1.1", "--repeat", "3")
        self.assertEqual(value["dump"], "out-dump.json")
        with open(os.path.join(self.directory, "out-dump.json"), encoding="utf-8") as file:
            tensors = json.load(file)["tensors"]
        files = {tensor["file"] for tensor in tensors}
        self.assertEqual(files, {name for name in os.listdir(self.directory) if name.startswith("out-") and name.endswith(".npy")})
        self.assertEqual({tensor["argument"] for tensor in tensors if (tensor["ring"], tensor["position"]) != (1, 1)}, {0})
        self.assertIn(1, {tensor["argument"] for tensor in tensors})
        self.assertRegex(tensors[0]["submitted_at"], r"^vector_orch\.c:[0-9]+$")
        self.assertIn("out-dump.json", self.passes("run", self.vector, "--dump", "out-"))
        self.assertIsNone(self.gives(self.vector)["dump"])
        self.fails(2, ["--dump-filter", "no effect", "--dump PREFIX"], "run", self.vector, "--dump-filter", "a")
        self.fails(2, ["--dump", "begin with"], "run", self.vector, "--dump", "")
        self.fails(3, ["dump_filter", "is no task"], "run", self.vector, "--dump", "out-", "--dump-filter", ".1")

    def test_table_says_what_json_says(self):
        """On det two runs are one and the same."""
        for schedulers, words in ((3, []), (3, ["--seed", "3"]),
                                  (1, ["--set", "clusters=2", "--set", "aicpu-threads=2"]),
                                  (4, ["--case", "four", "--platform", "a5sim"])):
            with self.subTest(words=words):
                words = [self.vector, "--backend", "det", *words]
                value, text = self.gives(*words), self.passes("run", *words)
                table = rows(text)
                self.assertEqual(text.splitlines()[0], f"vector on {value['platform']}: {value['aic_cores']} AIC + "
                                 f"{value['aiv_cores']} AIV, {schedulers} {'scheduler' if schedulers == 1 else 'schedulers'} + 1 orchestrator")
                self.assertRegex(table["case"], f"^{value['case']}: {value['case']} tasks, ")
                self.assertEqual(table["kernels"], "add add_scalar mul (cached)")
                self.assertEqual(table["tasks"], str(value["tasks"]))
                self.assertEqual(table["edges"], str(value["edges"]))
                self.assertEqual(table["back end"], f"det, seed {value['seed']}")
                self.assertEqual(table["result"], "PASS  max error 0")
                self.assertEqual(table["slots"], f"{value['peak_live_tasks']} in use at most, recycled "
                                 f"{value['recycled']} times")
                self.assertEqual(table["chip busy"], f"AIC {100 * value['aic_utilization']:.0f} %  "
                                 f"AIV {100 * value['aiv_utilization']:.0f} %")
                self.assertGreater(value["aiv_utilization"], value["aic_utilization"])
                seconds, off = duration(table["virtual time"])
                self.assertAlmostEqual(seconds, value["virtual_ns"] / 1e9, delta=off)
                run, rate = table["run time"].split(", ")
                seconds, off = duration(run)
                self.assertRegex(rate, r"^\d{1,3}( \d{3})* tasks/s$")
                rate = int(rate[:-len(" tasks/s")].replace(" ", ""))
                self.assertLess(value["tasks"] / (seconds + off), rate + 1)
                self.assertGreater(value["tasks"] / (seconds - off), rate)
                self.assertAlmostEqual(value["run_seconds"] * value["tasks_per_second"], value["tasks"], places=6)
                self.assertEqual(value["trace_dropped"], 0)
                self.assertNotIn("dropped", table)
        self.assertNotIn("virtual time", rows(self.passes("run", self.vector)))

    def test_thousands(self):
        self.example()
        self.edit("ex/orchestration/vector_orch.c", "    submit_add_scalar (rt, c, 1.0f, d);",
                  "    for (int i = 0; i < 1500; i++)\n"
                  "      submit_add_scalar (rt, c, 1.0f, make_tensor (shape, 1, PTO_DTYPE_FLOAT32));\n"
                  "    submit_add_scalar (rt, c, 1.0f, d);")
        table = rows(self.passes("run", "ex", "--backend", "det"))
        self.assertEqual((table["tasks"], table["edges"]), ("1 505", "1 506"))
        self.assertEqual(table["slots"], "1 505 in use at most, recycled 0 times")

    def test_durations(self):
        """In the unit that makes them short, whatever they are."""
        self.copy_example(dtype=FLOAT32)
        self.edit("copy/pto.ini", "core=aiv", "core=aiv\ncost=constant:1")
        last = 1
        for ns, unit in ((1, "us"), (900000, "us"), (1000000, "ms"), (900000000, "ms"), (1000000000, "s"), (10**12, "s")):
            self.edit("copy/pto.ini", f"constant:{last}", f"constant:{ns}")
            last = ns
            text = rows(self.passes("run", "copy", "--backend", "det"))["virtual time"]
            self.assertEqual(text.split(" ")[1], unit)
            seconds, off = duration(text)
            virtual_ns = self.gives("copy", "--backend", "det")["virtual_ns"]
            self.assertGreater(virtual_ns, ns)
            self.assertAlmostEqual(seconds, virtual_ns / 1e9, delta=off)

    def test_table_of_a_failure(self):
        self.copy_example(dtype=FLOAT32, got=0x7fc00000, expected=0x3f800000)
        table = rows(self.fails(1, ["nan instead of 1"], "run", "copy").stdout)
        self.assertEqual((table["case"], table["result"]), ("plain", "FAIL  not a number"))
        self.copy_example(dtype=FLOAT32, got=0x3fc00000, expected=0x3f800000)
        result = self.fails(1, ["1.5 instead of 1"], "run", "copy")
        self.assertEqual(rows(result.stdout)["result"], "FAIL  max error 0.5")
        self.assertEqual([line.strip() for line in result.stdout.splitlines() if "instead of" in line],
                         [f"to[{i // 3}, {i % 3}]: 1.5 instead of 1" for i in range(1, 6)])
        value = json.loads(self.fails(1, ["1.5 instead of 1"], "run", "copy", "--json").stdout)
        self.assertEqual(value["first_bad"], "to[0, 1]: 1.5 instead of 1")

    def test_built_or_cached(self):
        with tempfile.TemporaryDirectory() as cache:
            environment = {"XDG_CACHE_HOME": cache}
            self.assertRegex(rows(self.passes("run", self.vector, environment=environment))["kernels"],
                             r"^add add_scalar mul \(built in \d+\.\d s\)$")
            self.assertEqual(rows(self.passes("run", self.vector, environment=environment))["kernels"],
                             "add add_scalar mul (cached)")

    def test_json_names_files_and_seeds(self):
        value = self.gives(self.vector, "--trace", "a.json", "--svg", "b.svg", "--report", "c.html")
        self.assertEqual([value[key] for key in ("trace", "svg", "report", "trace_dropped")],
                         ["a.json", "b.svg", "c.html", 0])
        value = self.gives(self.vector)
        self.assertEqual([value[key] for key in ("trace", "svg", "report", "first_bad")], [None] * 4)
        self.assertNotIn("trace_dropped", value)
        for seed in (0, 2**63 - 1, 2**63, 2**64 - 1):
            value = self.gives(self.vector, "--backend", "det", "--seed", str(seed))
            self.assertEqual(value["seed"], seed if seed < 2**63 else str(seed))

    def test_files(self):
        self.passes("run", self.vector, "--trace", "run.json", "--svg", "run.svg", "--report", "run.html")
        self.assertEqual(sorted(os.listdir(self.directory)), ["run.html", "run.json", "run.svg"])
        with open(os.path.join(self.directory, "run.html"), encoding="utf-8") as file:
            report = report_reader.Report(file.read())
        self.assertEqual((len(report.tasks), report.title, report.data["clock"]), (5, "vector: five tasks, (a + b + 1)(a + b + 2) + (a + b) = 47", "wall"))
        self.assertEqual({task["kernel"] for task in report.tasks}, {"add", "add_scalar", "mul"})
        # All that can be said of it is recorded: what tasks were given, and where their submits stand.
        for i, task in enumerate(report.tasks):
            file, line = task["source"]
            with open(file, encoding="utf-8") as source:
                self.assertIn("submit", source.readlines()[line - 1])
            tensors = [value for _, _, value in report.arguments[i] if isinstance(value, tuple)]
            self.assertEqual({(name, tuple(strides)) for name, _, strides, _ in tensors}, {("float32", ())})
        self.assertEqual(report.strips["heap", "ring 1"][-1][1], 0)
        with open(os.path.join(self.directory, "run.json"), encoding="utf-8") as file:
            trace = json.load(file)
        kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
        self.assertEqual(len(kernels), 5)
        self.assertEqual(trace["metadata"]["clock"], "wall")
        self.assertEqual(trace["metadata"]["dropped"], 0)
        self.assertEqual({event["name"] for event in kernels}, {"add", "add_scalar", "mul"})
        root = xml.etree.ElementTree.parse(os.path.join(self.directory, "run.svg")).getroot()
        texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
        # A cluster that had work has all of its rows, and the others are one line.
        used = {event["pid"] for event in kernels}
        clusters = sorted(int(event["args"]["name"].split()[1]) for event in trace["traceEvents"]
                          if event["name"] == "process_name" and event["pid"] in used)
        self.assertEqual({text for text in texts if re.fullmatch(r"AI[CV]\d+", text or "")},
                         {"AIC%d" % c for c in clusters} | {"AIV%d" % (2 * c + i) for c in clusters for i in (0, 1)})
        self.assertEqual([text.partition(":")[0] for text in texts if "without work" in (text or "")],
                         ["%d clusters without work" % (24 - len(clusters))])

    def test_unwritable(self):
        missing = os.path.join(self.directory, "nowhere", "run.json")
        self.fails(3, [missing], "run", self.vector, "--trace", missing)
        self.fails(3, [self.directory, "directory"], "run", self.vector, "--svg", self.directory)
        self.assertEqual(os.listdir(self.directory), [])

    def test_repeat(self):
        result = self.gives(self.vector, "--repeat", "3")
        self.assertEqual(result["repeats"], 3)
        self.assertTrue(result["passed"])
        self.assertIn("median of 3", self.passes("run", self.vector, "--repeat", "3"))

    def test_parameters(self):
        result = self.gives(self.vector, "--set", "clusters=2", "--set", "task-window=16", "--set",
                            "aicpu-threads=2")
        self.assertEqual((result["aic_cores"], result["aiv_cores"]), (2, 4))
        self.assertTrue(result["passed"])

    def test_other_platform(self):
        result = self.gives(self.vector, "--platform", "a5sim")
        self.assertEqual((result["platform"], result["passed"]), ("a5sim", True))

    def test_kernel_that_ends_its_process(self):
        """Whatever it does: kernel, task and core are named, status 3, and the next run works."""
        for code, why in (("_exit (3);", "the kernel called _exit(3)"),
                          ("signal (SIGSEGV, SIG_DFL); *bad = 1;", "the kernel crashed: Segmentation fault (signal 11)"),
                          ("abort ();", "the kernel crashed: Aborted (signal 6)"),
                          ("kill (getpid (), SIGKILL); pause ();", "the kernel's process died (signal 9, Killed)"),
                          # Not by the C library's function, which a chip knows.
                          (RAW_EXIT_GROUP, "the kernel's process exited with status 5"),
                          ("pthread_exit (0);", "")):
            self.copy_example(dtype=FLOAT32)
            self.write("copy/copy.c", "#define _GNU_SOURCE\n#include \"tensor.h\"\n#include <pthread.h>\n"
                       "#include <stdlib.h>\n#include <sys/syscall.h>\n"
                       "#include <signal.h>\n#include <unistd.h>\nvolatile int *volatile bad = (volatile int *) 8;\n"
                       "void kernel_entry (int64_t *args) { (void) args; (void) bad; " + code + " }\n")
            result = self.pto("run", "copy")
            self.assertEqual(result.returncode, 3, result.stderr)
            line = result.stderr.splitlines()[-1]
            self.assertRegex(line, r"^pto: .*task 0 of ring \d \(.*\) on core AIV\d+, submitted at \w+\.c:\d+: the kernel")
            self.assertIn(why, line)
            self.assertNotIn("at address 0x0", line)
        self.copy_example(dtype=FLOAT32)
        self.passes("run", "copy")

    def test_no_isolate(self):
        self.copy_example(dtype=FLOAT32)
        for how in ((), ("--no-isolate",), ("--set", "isolate=0"), ("--backend", "det")):
            self.assertEqual(self.gives("copy", *how)["tasks"], 1)
        traces = {self.gives("copy", "--backend", "det", *how)["trace_sha256"] for how in ((), ("--no-isolate",))}
        self.assertEqual(len(traces), 1)

    def test_environment_is_stronger_than_the_case(self):
        self.example()
        self.edit("ex/pto.ini", "elements=16384", "elements=16384\ntask-window=17")
        self.fails(3, ["task-window"], "run", "ex")
        result = self.gives("ex", environment={"PTO2_RING_TASK_WINDOW": "16"})
        self.assertTrue(result["passed"])

    def test_bad_environment(self):
        self.fails(3, ["PTO2_RING_TASK_WINDOW", "17"], "run", self.vector,
                   environment={"PTO2_RING_TASK_WINDOW": "17"})

    def test_wrong_result(self):
        self.example()
        self.edit("ex/reference.c", "five ? sum : 0.0", "five ? sum + (i > 9) : 0.0")
        result = self.fails(1, ["vector", '"five"', "16374 of 16384", "f[10]: 47 instead of 48"],
                            "run", "ex")
        self.assertIn("FAIL  max error 1", result.stdout)
        self.assertIn("f[14]: 47 instead of 48", result.stdout)
        self.assertNotIn("f[15]", result.stdout)
        result = self.fails(1, ["f[10]"], "run", "ex", "--json")
        value = json.loads(result.stdout)
        self.assertIs(value["passed"], False)
        self.assertEqual(value["max_abs_error"], 1)


class Blocks(PtoTest):
    def test_pictures(self):
        """A bar says which block it is, each range of them is dispatched once, and a task of many is one of a path."""
        n, words = 7, ("--backend", "det", "--set", "clusters=1", "--set", "aicpu-threads=2")
        self.copy_example(dtype=INT8, got=0, expected=0)
        self.edit("copy/orch.c", "pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);",
                  f"pto2_rt_submit_block_task (rt, 0, PTO2_WORKER_VECTOR, params, 2, {n});")
        self.passes("run", "copy", *words, "--trace", "run.json", "--svg", "run.svg")
        with open(os.path.join(self.directory, "run.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        bars = [e for e in events if e.get("cat") == "kernel"]
        self.assertEqual(sorted(e["args"]["block"] for e in bars), list(range(n)))
        marks = sorted(e["ts"] for e in events if e.get("name") == "dispatch")
        ranges = {(e["tid"], e["args"]["dispatch_us"]) for e in bars}
        self.assertEqual(marks, sorted(dispatch for _, dispatch in ranges))
        self.assertEqual(len({e["tid"] for e in bars}), 2)
        self.assertTrue(2 <= len(ranges) <= n, ranges)
        for bar in bars:
            self.assertLessEqual(bar["args"]["dispatch_us"], bar["ts"])
        self.assertEqual(len([e for e in events if e.get("name") == "complete"]), 1)
        with open(os.path.join(self.directory, "run.svg"), encoding="utf-8") as file:
            picture = file.read()
        self.assertRegex(picture, r"critical path: [^<]* to submit, then 1 task in ")
        for block in range(n):
            self.assertRegex(picture, rf"task copy 1:0, block {block} on AIV[01]\n")


pto_test.tap.main()
