# test_bench.py: does `pto bench` run its programs in turns and tell all that they found, and what is missing?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_bench.py PROGRAM: prints TAP. The programs of the runtimes are stand-ins, so that figures are known."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
DEADLINE = 120

# Values are 3, 1, 2 and again; what each is called with stands in the log.
STAND_IN = f"""#!{sys.executable}
import json, os, sys
here, name = os.path.split(sys.argv[0])
name = name[len("bench-"):]
options = dict(zip(sys.argv[1:9:2], sys.argv[2:9:2]))
workload, metric = options["--workload"], options["--metric"]
if workload == os.environ.get("SKIP"):
    print("nobody has it here", file=sys.stderr)
    sys.exit(77)
with open(os.path.join(here, "log"), "a") as log:
    log.write(f"{{name}} {{workload}} {{metric}} {{'unproved' if '--no-check' in sys.argv else 'proved'}}\\n")
if name + " " + workload in os.environ.get("FAIL", "").split(","):
    sys.exit("it does not feel well")
if name + " " + workload in os.environ.get("NO_METG", "").split(",") and metric == "metg50_us":
    sys.exit(0)
unit = {{"ns_per_task": "ns", "metg50_us": "us"}}[metric]
if not workload.startswith("W"):
    metric, unit = "time", "ms"
for i in range(int(options["--reps"])):
    print(json.dumps(dict(workload=workload, metric=metric, value=[3, 1, 2][i % 3], unit=unit)))
"""


class Bench(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="pto-bench-")
        for name in ("pto", "level", "libgomp", "gthreadpool"):
            path = self.path("bench-" + name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(STAND_IN)
            os.chmod(path, 0o755)

    def tearDown(self):
        self.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def bench(self, *words, status=0, **env):
        result = subprocess.run([PROGRAM, "bench", *words], capture_output=True, text=True, timeout=DEADLINE,
                                env=dict(os.environ, PTO_BENCH_DIR=self.directory.name, **env))
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def rows(self, *words, **env):
        return json.loads(self.bench("--json", "--quick", *words, **env).stdout)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_rows(self):
        rows = self.rows("--only", "W1,chain_72,start_1_8")
        for row in rows:
            self.assertEqual(sorted(row), ["max", "median", "metric", "min", "runtime", "unit", "workers", "workload"])
        self.assertEqual([(row["workload"], row["runtime"], row["metric"], row["unit"], row["workers"]) for row in rows],
                         [("W1", name, metric, unit, 2) for metric, unit in (("ns_per_task", "ns"), ("metg50_us", "us"))
                          for name in ("pto", "libgomp", "gthreadpool")]
                         + [("chain_72", "pto", "time", "ms", 2), ("start_1_8", "pto", "time", "ms", 8)])
        # 3 1 3 1 3 1, and 3 1 2 3 1
        self.assertEqual([rows[0][key] for key in ("median", "min", "max")], [2, 1, 3])
        self.assertEqual([rows[-1][key] for key in ("median", "min", "max")], [2, 1, 3])

    def test_turns(self):
        self.rows("--only", "W2")
        turn = ["pto W2", "libgomp W2", "gthreadpool W2"]
        self.assertEqual(self.read("log").splitlines(),
                         [f"{word} ns_per_task {proof}" for proof in ("proved", "unproved", "unproved") for word in turn]
                         + [f"{word} metg50_us unproved" for word in turn])

    def test_absent(self):
        result = self.bench("--json", "--quick", "--only", "W1")
        for name in ("libomp", "starpu", "tbb-flow", "tbb-group"):
            self.assertIn(f"left out: {name}: was not built", result.stderr)
        self.assertIn("left out: starpu: was not built", self.bench("--quick", "--only", "W1").stdout)

    def test_failing_peer(self):
        result = self.bench("--json", "--quick", "--only", "W1,W2,W3", FAIL="libgomp W2")
        names = [row["workload"] for row in json.loads(result.stdout) if row["runtime"] == "libgomp"]
        self.assertEqual(names, ["W1"])
        self.assertIn("left out: libgomp: W2: it does not feel well\n", result.stderr)

    def test_failing_figure(self):
        result = self.bench("--json", "--quick", "--only", "floor_72,det,sub_task,parent_killed",
                            FAIL="pto floor_72,level sub_task", status=3)
        self.assertEqual([row["workload"] for row in json.loads(result.stdout)], ["det", "parent_killed"])
        self.assertIn("left out: level: sub_task: it does not feel well\n", result.stderr)

    def test_figure_that_is_not_there(self):
        result = self.bench("--json", "--quick", "--only", "stream_bulk,remote_bulk_tcp", SKIP="remote_bulk_tcp")
        self.assertEqual([row["workload"] for row in json.loads(result.stdout)], ["stream_bulk"])
        self.assertIn("left out: level: remote_bulk_tcp: nobody has it here\n", result.stderr)

    def test_no_metg(self):
        arguments = ["--only", "W1,W3", "--svg", self.path("chart.svg"), "--markdown", self.path("table.md")]
        reason = "libgomp: W3: no task is long enough to keep half of the workers' time"
        for words in ([], ["--quick"]):
            result = self.bench(*words, *arguments, NO_METG="libgomp W3")
            self.assertEqual(result.stdout.count("left out: " + reason), 1)
            self.assertEqual(self.read("table.md").count(reason), 1)
        root = xml.etree.ElementTree.parse(self.path("chart.svg")).getroot()
        space = {"svg": "http://www.w3.org/2000/svg"}
        marks = [group for group in root.findall("svg:g", space)
                 if group.find("svg:rect", space).get("class") == "gap"]
        self.assertEqual([mark.find("svg:title", space).text for mark in marks], [reason])

    def test_parts(self):
        text = self.bench("--quick", "--only", "idle,mailbox_awake", "--markdown", self.path("table.md")).stdout
        self.assertRegex(text, r"(?s)^pto\n.*  idle .*\npto, workers with children.*\n  mailbox_awake ")
        self.assertRegex(self.read("table.md"),
                         r"(?s)\*\*This runtime on its own\*\*.*\| idle \|.*\*\*Workers with children.*\| mailbox_awake \|")

    def test_unknown(self):
        for only in ("W7", "W1,", ""):
            self.assertIn("--only: there is no", self.bench("--only", only, status=2).stderr)

    def test_nothing_there(self):
        os.unlink(self.path("bench-pto"))
        self.assertIn("there is no bench-pto", self.bench("--quick", status=3).stderr)

    def test_no_reader(self):
        """SIGPIPE ends it, without a word; the files are whole."""
        for words in ((), ("--json",)):
            reader, writer = os.pipe()
            os.close(reader)
            result = subprocess.run([PROGRAM, "bench", "--quick", "--only", "W1", "--markdown", self.path("rest.md"), "--svg", self.path("rest.svg"), *words],
                                    stdout=writer, stderr=subprocess.PIPE, text=True, timeout=DEADLINE,
                                    env=dict(os.environ, PTO_BENCH_DIR=self.directory.name))
            os.close(writer)
            self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, ""))
            xml.etree.ElementTree.parse(self.path("rest.svg"))
            self.assertRegex(self.read("rest.md"), r"(?s)\AMeasured on: .*\n\| pto \| 2.00 .*\n\Z")
            os.unlink(self.path("rest.svg"))
            os.unlink(self.path("rest.md"))

    def test_no_room(self):
        for words in ((), ("--json",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([PROGRAM, "bench", "--quick", "--only", "chain_72", *words], stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=DEADLINE,
                                        env=dict(os.environ, PTO_BENCH_DIR=self.directory.name))
            self.assertEqual(result.returncode, 3)
            self.assertIn("standard output cannot be written", result.stderr.splitlines()[-1])
        for option in ("--svg", "--markdown"):
            result = self.bench("--quick", "--only", "W1", option, "/dev/full", status=3)
            self.assertIn("/dev/full: can not be written", result.stderr)
            self.assertFalse(os.path.isfile("/dev/full"))
        result = self.bench("--quick", "--only", "W1", "--svg", "/dev/full", "--markdown", self.path("rest.md"),
                            status=3)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("**", self.read("rest.md"))


sys.argv[1:] = []
tap.main()
