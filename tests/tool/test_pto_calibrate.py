#!/usr/bin/env python3
# test_pto_calibrate.py: is what was measured of kernels what they take on the virtual clock?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import shutil
import subprocess

import pto_test
from pto_test import EXAMPLES, PROGRAM, PtoTest

BGEMM = os.path.join(EXAMPLES, "bgemm")
VECTOR = os.path.join(EXAMPLES, "vector")
ATTENTION = os.path.join(EXAMPLES, "batch-paged-attention")


class Calibrate(PtoTest):
    has_own_cache = True

    def setUp(self):
        super().setUp()
        history = os.path.join(self.cache, "libpto", "costs.json")
        if os.path.exists(history):
            os.remove(history)

    def record(self, example, *words, backend="det"):
        path = os.path.join(self.directory, "run.ptotrace")
        self.passes("run", example, "--backend", backend, "--trace", path, *words)
        return path

    def known(self, *words):
        """Of each kernel and clock what is told of it."""
        return {(kernel["kernel"], kernel["clock"]): kernel
                for kernel in json.loads(self.passes("calibrate", *words, "--json"))["kernels"]}

    def virtual(self, example, *words):
        return self.gives(example, "--backend", "det", *words)["virtual_ns"]

    # --- traces ---

    def test_recovers_what_a_run_assumed(self):
        """Two sizes of tiles give the line that the manifest has, but for the ns that a clock has not."""
        paths = [self.record(BGEMM), os.path.join(self.directory, "small.ptotrace")]
        self.passes("run", BGEMM, "--case", "small", "--backend", "det", "--trace", paths[1])
        known = self.known(*paths)
        self.assertEqual(sorted(known), [("add", "virtual"), ("gemm", "virtual")])
        gemm, add = known["gemm", "virtual"], known["add", "virtual"]
        # 3 and 2 tiles of 64 x 64 and 20 x 20 floats
        self.assertEqual([(size["bytes"], size["samples"], size["median_ns"]) for size in gemm["sizes"]],
                         [(4800, 12, 1044), (49152, 64, 2374)])
        self.assertEqual([(size["bytes"], size["samples"], size["median_ns"]) for size in add["sizes"]],
                         [(3200, 12, 728), (32768, 64, 1910)])
        for kernel, base, slope in ((gemm, 900, 0.03), (add, 600, 0.04)):
            self.assertEqual(kernel["model"], "linear")
            self.assertAlmostEqual(kernel["base_ns"], base, delta=1)
            self.assertAlmostEqual(kernel["ns_per_byte"], slope, delta=0.0001)
            self.assertLess(kernel["median_error"], 0.001)
        # A run with what was learned takes as long, but for a ns of a task.
        own = self.virtual(BGEMM)
        self.assertAlmostEqual(self.virtual(BGEMM, "--costs", "virtual"), own, delta=0.002 * own)

    def test_processor(self):
        """Times of this processor are times of their own, and a run can be as long as they say."""
        path = self.record(ATTENTION, "--case", "small", backend="par")
        known = self.known(path)
        self.assertEqual({clock for _, clock in known}, {"cpu"})
        self.assertEqual({kernel for kernel, _ in known}, {"QK", "SF", "PV", "UP", "HUB"})
        for kernel in known.values():
            self.assertGreater(kernel["samples"], 0)
        own = self.virtual(ATTENTION, "--case", "small")
        learned = self.virtual(ATTENTION, "--case", "small", "--costs", "cpu")
        self.assertNotEqual(learned, own)
        self.assertEqual(self.virtual(ATTENTION, "--case", "small", "--costs", "cpu"), learned)
        # det's own times are not among them
        self.passes("calibrate", self.record(ATTENTION, "--case", "small"))
        self.assertEqual(self.virtual(ATTENTION, "--case", "small", "--costs", "cpu"), learned)

    def test_blocks(self):
        """Of a task in blocks each has its part of the bytes."""
        known = self.known(self.record(os.path.join(EXAMPLES, "spmd-attention"), "--case", "small"))
        self.assertTrue(known)
        for kernel in known.values():
            self.assertEqual(len(kernel["sizes"]), 1)
            self.assertGreater(kernel["sizes"][0]["bytes"], 0)

    def test_without_sizes(self):
        path = self.record(VECTOR, "--set", "trace-level=1")
        for kernel in self.known(path).values():
            self.assertEqual(kernel["model"], "constant")
            self.assertNotIn("bytes", kernel["sizes"][0])
        self.assertIn("(sizes were not recorded)", self.passes("calibrate"))

    def test_several_traces_count(self):
        path = self.record(VECTOR)
        once = self.known(path)
        other = os.path.join(self.directory, "other.ptotrace")
        self.passes("run", VECTOR, "--backend", "det", "--seed", "2", "--trace", other)
        both = self.known(other)
        for key, kernel in once.items():
            self.assertEqual(both[key]["samples"], 2 * kernel["samples"])
            self.assertEqual(both[key]["cost"], kernel["cost"])

    def test_counted_once(self):
        """A record counts once, by whatever name, in one call or later, which is said; what was forgotten counts anew."""
        path = self.record(VECTOR)
        table = self.table("kernel,us\nk,1\n")
        copy = os.path.join(self.directory, "copy.ptotrace")
        shutil.copy(path, copy)
        said = "its times were counted before, and are not counted again"
        result = self.pto("calibrate", path, copy, table, "--json")
        self.assertEqual((result.returncode, result.stderr), (0, f"pto: {copy}: {said}\n"))
        once = json.loads(result.stdout)
        result = self.pto("calibrate", table, path, "--json")
        self.assertEqual((result.returncode, result.stderr), (0, f"pto: {table}: {said}\npto: {path}: {said}\n"))
        self.assertEqual(json.loads(result.stdout), once)
        # Of the trace two kernels are left, and one is new.
        self.assertNotIn("add", [kernel for kernel, _ in self.known("--forget", "add")])
        self.assertEqual(self.passes("calibrate", path, "--json"), json.dumps(once, indent=2).replace('": ', '" : ') + "\n")
        self.assertEqual(json.loads(self.passes("calibrate", "--forget-all", path, table, "--json")), once)
        self.passes("calibrate", self.table("kernel,us\nk,2\n", "other.csv"))

    # --- tables ---

    def table(self, text, name="times.csv"):
        self.write(name, text)
        return os.path.join(self.directory, name)

    def test_table(self):
        """A run with a table takes what it says, whatever the manifest does."""
        path = self.table("# of a chip\nkernel,bytes,us\ngemm,4800,1.48\ngemm,49152,5.9152\r\n\n"
                          "add, 32768 ,\"2\"\n")
        known = self.known(path)
        self.assertEqual((known["gemm", "chip"]["cost"], known["add", "chip"]["cost"]),
                         ("linear:1000:0.1", "constant:2000"))
        trace = self.record(BGEMM, "--costs", "chip")
        for key, kernel in self.known("--dry-run", trace).items():
            self.assertEqual(kernel["sizes"][0]["median_ns"], {"gemm": 5915, "add": 2000}[key[0]])

    def test_shapes(self):
        rows = [{"kernel": "a", "shape": "float32[128x128] bfloat16[2x3x4]", "ns": 5},
                {"kernel": "b", "shape": "int8[7]", "ms": 0.25}, {"kernel": "c", "us": "1e-1"}]
        for text in (json.dumps(rows), json.dumps({"times": rows}, indent=1)):
            known = self.known("--dry-run", self.table(text, "times.json"))
            self.assertEqual({key[0]: kernel["sizes"] for key, kernel in known.items()}, {
                "a": [{"bytes": 65536 + 48, "median_ns": 5, "samples": 1}],
                "b": [{"bytes": 7, "median_ns": 250000, "samples": 1}], "c": [{"median_ns": 100, "samples": 1}]})
        csv = self.table('kernel,shape,ns,ms\na,float32[128x128] bfloat16[2x3x4],5,\nb,int8[7],,0.25\n')
        self.assertEqual(self.known("--dry-run", csv)["a", "chip"]["sizes"][0]["bytes"], 65536 + 48)

    def test_control_characters(self):
        """A name does nothing to the terminal that it is shown on."""
        path = self.table("kernel,ns\na\x1b[31m\u009bb,5\n")
        self.assertIn("\na?[31m?b  chip ", self.passes("calibrate", "--dry-run", path))
        self.assertEqual(list(self.known("--dry-run", path)), [("a\x1b[31m\u009bb", "chip")])
        self.assertNotRegex(self.passes("calibrate", "--dry-run", "--json", path), "[\x1b\u009b]")

    def test_byte_order_mark(self):
        for name, text in ("times.csv", "\ufeffkernel,us\nk,1\n"), ("times.json", '\ufeff[{"kernel": "k", "us": 1}]'):
            self.assertEqual(list(self.known("--dry-run", self.table(text, name))), [("k", "chip")])

    def test_bad_tables(self):
        for text, line, why in (
                ("kernel,us,colour\n", 1, 'unknown column "colour" (known: kernel, bytes or shape, and us, ns or ms)'),
                ("kernel,us,us\n", 1, 'two columns "us"'),
                ("us\n1\n", 1, 'no column "kernel"'),
                ("kernel,bytes\nk,1\n", 1, "no column of times"),
                ("kernel,us\nk,1\nk\n", 3, "1 field, but there are 2 columns"),
                ("kernel,us\nk,1,2\n", 2, "3 fields, but there are 2 columns"),
                ("kernel,us\n\n,1\n", 3, "it names no kernel"),
                ("kernel,us\nk,fast\n", 2, 'us "fast": a time above 0 wanted'),
                ("kernel,us\nk,0\n", 2, 'us "0": a time above 0 wanted'),
                ("kernel,us\nk,-1\n", 2, 'us "-1": a time above 0 wanted'),
                ("kernel,us\nk,nan\n", 2, 'us "nan": a time above 0 wanted'),
                ("kernel,us\nk,0x10\n", 2, 'us "0x10": a time above 0 wanted'),
                ("kernel,us\nk,inf\n", 2, 'us "inf": a time above 0 wanted'),
                ("kernel,us\nk,1e300\n", 2, 'us "1e300": it is longer than 1e15 ns (11 days)'),
                ("kernel,ns\nk,1.1e15\n", 2, 'ns "1.1e15": it is longer than 1e15 ns'),
                ("kernel,us\nk,\x1b[31m\n", 2, 'us "?[31m": a time above 0 wanted'),
                ("kernel,us\nk,\n", 2, 'kernel "k": no time: one of us, ns and ms wanted'),
                ("kernel,us,ns\nk,1,1000\n", 2, "more than one time"),
                ("kernel,bytes,us\nk,1.5,1\n", 2, 'bytes "1.5": a number of bytes wanted'),
                ("kernel,bytes,us\nk,-1,1\n", 2, 'bytes "-1"'),
                ("kernel,bytes,shape,us\nk,1,int8[1],1\n", 2, "bytes and a shape"),
                ("kernel,shape,us\nk,float33[1],1\n", 2, '"float33[1]" is no tensor'),
                ("kernel,shape,us\nk,int8[],1\n", 2, '"int8[]" is no tensor'),
                ("kernel,shape,us\nk,int8[0],1\n", 2, '"int8[0]" is no tensor'),
                ("kernel,shape,us\nk,int8[99999999999x99999999999],1\n", 2, "is no tensor"),
                ('kernel,us\n"k,1\n', 2, "a quote that is not closed"),
                ("", 0, "there is no time in it"), ("kernel,us\n", 0, "there is no time in it")):
            with self.subTest(text=text):
                path = self.table(text)
                self.fails(3, [f"{path}:{line}: " if line else f"{path}: ", why], "calibrate", path)
        for text, line, why in (
                ('[\n {"kernel": "k", "us": 1},\n {"kernel": "k",\n  "us": "x"}\n]', 4, 'us "x"'),
                ('[\n {"kernel": "k", "us": 1},\n {"kernel": "k", "hue": 1}\n]', 3, 'unknown member "hue"'),
                ('[\n {"kernel": "k", "us": [1]}\n]', 2, '"us": a text or a number wanted'),
                ('[\n {"kernel": "k" "us": 1}\n]', 2, "it is not JSON"), ("{}", 1, "an array of objects wanted"),
                ("[1]", 1, "element 0 is no object"), ("[]", 0, "there is no time in it")):
            with self.subTest(text=text):
                path = self.table(text, "times.json")
                self.fails(3, [f"{path}:{line}: " if line else f"{path}: ", why], "calibrate", path)
        self.assertEqual(self.known(), {})

    def test_bad_files(self):
        missing = os.path.join(self.directory, "missing")
        for name in (".csv", ".json", ".ptotrace"):
            self.fails(3, [f"pto: {missing}{name}: can not be read: No such file or directory"], "calibrate", missing + name)
            os.mkdir(missing + name)
            self.fails(3, [f"pto: {missing}{name}: can not be read: Is a directory"], "calibrate", missing + name)
        good = self.table("kernel,us\nk,1\n")
        bad = self.table("kernel,us\nk,x\n", "bad.csv")
        self.fails(3, ["bad.csv:2: "], "calibrate", good, bad)
        self.assertEqual(self.known(), {})  # all or nothing
        self.fails(3, ["times.ptotrace"], "calibrate", self.table("kernel,us\n", "times.ptotrace"))

    # --- the command ---

    def test_options(self):
        good = self.table("kernel,us\nk,1\nl,2\n")
        self.fails(2, ["--dry-run: of which files?"], "calibrate", "--dry-run")
        self.fails(2, ["contradict each other"], "calibrate", "--dry-run", "--forget-all", good)
        self.assertIn("k       chip     constant      1         1    0.0 %  1000.0 ns",
                      self.passes("calibrate", "--dry-run", good).splitlines()[1] + "\n")
        self.assertEqual(self.known(), {})
        self.assertEqual(len(self.known(good)), 2)
        self.fails(3, ['no times of a kernel "m"'], "calibrate", "--forget", "m")
        self.assertEqual(list(self.known("--forget", "k")), [("l", "chip")])
        self.assertEqual(self.known("--forget-all", good)["l", "chip"]["samples"], 1)
        self.assertEqual(self.known("--forget-all"), {})

    def test_run(self):
        self.fails(2, ["--costs has no effect on the back end par: add --backend det"],
                   "run", VECTOR, "--costs", "cpu")
        self.fails(2, ["--set costs has no effect on the back end par"], "run", VECTOR, "--set", "costs=cpu")
        self.fails(2, ["--costs", "own, chip, cpu or virtual"], "run", VECTOR, "--backend", "det", "--costs", "tpu")
        own = self.virtual(VECTOR)
        self.assertEqual(self.virtual(VECTOR, "--costs", "own"), own)
        # What is not known is told, once a kernel, and is as the manifest says.
        self.passes("calibrate", self.table("kernel,us\nno-such,1\n"))
        result = self.pto("run", VECTOR, "--backend", "det", "--costs", "chip", "--json")
        self.assertEqual(json.loads(result.stdout)["virtual_ns"], own)
        kernels = json.loads(self.passes("calibrate", "--dry-run", self.record(VECTOR), "--json"))["kernels"]
        for kernel in kernels:
            self.assertEqual(result.stderr.count(f'kernel "{kernel["kernel"]}": no time of it is known on the clock "chip"'), 1)
        with open(os.path.join(self.cache, "libpto", "costs.json"), "w", encoding="utf-8") as file:
            file.write("{")
        self.fails(3, ["costs.json: no history of kernels' times: it is not JSON"],
                   "run", VECTOR, "--backend", "det", "--costs", "chip")
        self.assertEqual(self.virtual(VECTOR), own)  # who does not ask does not read it

    def test_at_once(self):
        """Programs that calibrate at the same time lose nothing."""
        tables = [self.table(f"kernel,us\nk,{i}\n", f"{i}.csv") for i in range(1, 9)]
        programs = [subprocess.Popen([PROGRAM, "calibrate", table], env=self.environment, stdout=subprocess.DEVNULL)
                    for table in tables]
        self.assertEqual([program.wait(timeout=60) for program in programs], [0] * 8)
        self.assertEqual(self.known()["k", "chip"]["samples"], 8)




pto_test.tap.main()
