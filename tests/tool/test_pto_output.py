#!/usr/bin/env python3
# test_pto_output.py: where does what the pto program says go, what ends it, and how does it compare?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import errno
import importlib
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import pto_test
from pto_test import (PROGRAM, EXAMPLES, DEADLINE, COPY_KERNEL, FLOAT32, FLOAT16, BFLOAT16, INT8,
                      INT64, UINT64, PtoTest, rows)


class Output(PtoTest):
    """What can not be written is one sentence and a status, never a part of a file and never silence."""

    LIMIT = 65536  # no object that a run loads is longer, and both exports of the larger example are

    def setUp(self):
        super().setUp()
        self.vector = os.path.join(EXAMPLES, "vector")
        self.large = os.path.join(EXAMPLES, "paged-attention")

    def ends(self, stdout, *words, limit=None, **options):
        def prepare():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              encoding="utf-8", cwd=self.directory, env=self.environment, timeout=DEADLINE,
                              preexec_fn=prepare, **options)

    def refused(self, result, *fragments):
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("pto: "), result.stderr)
        for fragment in fragments:
            self.assertIn(fragment, result.stderr)

    def words(self):
        return (["--version"], ["help"], ["help", "run"], ["run", "--help"], ["info"], ["info", "--json"],
                ["run", self.vector], ["run", self.vector, "--json"])

    def test_full(self):
        for words in self.words():
            with self.subTest(words=words), open("/dev/full", "w", encoding="utf-8") as full:
                self.refused(self.ends(full, *words), "standard output", os.strerror(errno.ENOSPC))

    def test_limit(self):
        self.passes("run", self.vector)  # the cache is filled without a limit
        for words in (["info"], ["run", self.vector, "--no-isolate"]):
            with self.subTest(words=words), open(os.path.join(self.directory, "out"), "w", encoding="utf-8") as file:
                os.lseek(file.fileno(), self.LIMIT - 100, os.SEEK_SET)
                self.refused(self.ends(file, *words, limit=self.LIMIT), "standard output", os.strerror(errno.EFBIG))

    def test_pipe(self):
        for words in self.words():
            with self.subTest(words=words):
                self.cut(*words)

    def test_every_command(self):
        """Each that prints, whatever it prints to: a pipe without a reader, a full disk, nothing. The tests of bench, cluster and top do so, too."""
        record = os.path.join(self.directory, "run.ptotrace")
        self.passes("run", self.vector, "--backend", "det", "--trace", record)
        tried = [["run", self.vector, "--no-isolate"], ["run", self.vector, "--backend", "det", "--json"], ["info", "--json"],
                 ["explore", self.vector, "--budget", "4"], ["explore", self.vector, "--budget", "4", "--json"],
                 ["calibrate", "--dry-run", record], ["calibrate", "--dry-run", "--json", record], ["help", "trace"],
                 ["trace", record], ["trace", record, "--json"], ["trace", record, "deps"], ["trace", record, "why", "1:1"],
                 ["trace", record, "diff", record], ["whatif", record, "--clusters", "3,6"],
                 ["whatif", record, "--clusters", "3,6", "--json"], ["new", "fresh"]]
        if self.pto("doctor").returncode == 0:  # else it reports what is missing, too
            tried += [["doctor"], ["doctor", "--json"]]
        if self.pto("remote", "certificates", "some", "127.0.0.1").returncode == 0:  # built with TLS
            tried.append(["remote", "certificates", "other", "127.0.0.1"])
        for words in tried:
            for check in self.cut, self.full, self.unopened:
                with self.subTest(words=words, check=check.__name__):
                    check(*words)
                for name in "fresh", "other":
                    shutil.rmtree(os.path.join(self.directory, name), ignore_errors=True)
        commands = re.findall(r"^  (\w+) ", self.passes("help").split("\nOptions:")[0], re.M)
        elsewhere = {"bench", "cluster", "top", "doctor", "remote"}
        self.assertEqual({words[0] for words in tried} | elsewhere, set(commands))

    def test_shell(self):
        """What a shell makes of that; and with what a parent may have done to SIGPIPE."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        result = self.start(writer, "-c", '"$@"; echo $? >&2', "sh", PROGRAM, "run", self.vector, program="/bin/sh")
        self.assertEqual(result.stderr.splitlines()[-1], "141")
        self.assertNotIn("pto:", result.stderr)
        self.assert_all_ended()
        self.cut("run", self.vector, prepare=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        self.cut("help", prepare=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE]))

    def test_pipe_and_files(self):
        """Files are written all the same, and each as a whole."""
        names = {"run.json": ["--trace"], "run.svg": ["--svg"], "run.html": ["--report"], "run.txt": ["--metrics"]}
        words = [word for name, option in names.items() for word in (*option, name)]
        for more in [], ["--json"], ["--no-isolate"]:
            with self.subTest(more=more):
                self.passes("run", self.vector, "--backend", "det", *words, *more)
                whole = {name: os.path.getsize(os.path.join(self.directory, name)) for name in os.listdir(self.directory)}
                self.assertEqual(set(whole), set(names))
                for name in names:
                    os.unlink(os.path.join(self.directory, name))
                self.cut("run", self.vector, "--backend", "det", *words, *more)
                self.assertEqual(set(os.listdir(self.directory)), set(names))
                with open(os.path.join(self.directory, "run.json"), encoding="utf-8") as file:
                    json.load(file)
                for name, end in (("run.svg", "</svg>"), ("run.html", "</html>"), ("run.txt", "# EOF")):
                    with open(os.path.join(self.directory, name), encoding="utf-8") as file:
                        self.assertTrue(file.read().rstrip().endswith(end), name)

    def test_pipe_by_name(self):
        """A file that is standard output by another name."""
        record = os.path.join(self.directory, "run.ptotrace")
        self.passes("run", self.vector, "--backend", "det", "--trace", record)
        for words in (["run", self.vector, "--trace", "/dev/stdout", "--svg", "/dev/stdout"],
                      ["run", self.vector, "--metrics", "/proc/self/fd/1"], ["whatif", record, "--svg", "/dev/stdout"]):
            with self.subTest(words=words):
                self.cut(*words)
        # Another pipe without a reader is an error.
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        result = self.ends(subprocess.PIPE, "run", self.vector, "--svg", f"/dev/fd/{writer}", pass_fds=[writer])
        self.refused(result, f"/dev/fd/{writer}", os.strerror(errno.EPIPE))

    def test_pipe_and_kernels(self):
        """A kernel may print: it does not crash. Without a reader a wrong result is not reported either."""
        for options in [], ["--no-isolate"], ["--no-isolate", "--backend", "det"]:
            for expected in 0, 1:
                with self.subTest(options=options, expected=expected):
                    self.copy_example(dtype=INT8, got=0, expected=expected)
                    self.edit("copy/copy.c", "#include", "#include <stdio.h>\n#include")
                    self.edit("copy/copy.c", "memcpy (", 'for (int i = 0; i < 3000; i++) puts ("spoken");\n  memcpy (')
                    self.cut("run", "copy", *options)
                    self.assertEqual(os.listdir(self.directory), ["copy"])

    def test_json_and_kernels(self):
        """What kernels, orchestrations and references print, by whichever name of the stream, is not in it."""
        for words in (["run"], ["run", "--no-isolate"], ["run", "--no-isolate", "--backend", "det"],
                      ["run", "--backend", "threads", "--repeat", "2"], ["explore", "--budget", "4"]):
            with self.subTest(words=words):
                self.copy_example(dtype=INT8, got=0, expected=0)
                for name, before in ("copy", "memcpy ("), ("orch", "uint64_t shape"), ("reference", "uint32_t dtype"):
                    self.edit(f"copy/{name}.c", "#include", "#include <stdio.h>\n#include <unistd.h>\n#include")
                    self.edit(f"copy/{name}.c", before,
                              f'puts ("spoken by {name}"); if (write (1, "written\\n", 8) != 8) puts (""); {before}')
                result = self.pto(words[0], "copy", *words[1:], "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(json.loads(result.stdout))
                for fragment in "spoken by copy", "spoken by orch", "spoken by reference", "written":
                    self.assertIn(fragment, result.stderr)
        # Without it they print where they print.
        result = self.pto("run", "copy", "--no-isolate")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("spoken by copy", result.stdout)

    def test_closed(self):
        """What is opened meanwhile must not become standard output."""
        script = 'exec "$@" --svg run.svg --trace run.json >&-'
        result = subprocess.run(["sh", "-c", script, "sh", PROGRAM, "run", self.vector], stderr=subprocess.PIPE,
                                encoding="utf-8", cwd=self.directory, env=self.environment, timeout=DEADLINE)
        self.refused(result, "standard output", os.strerror(errno.EBADF))
        with open(os.path.join(self.directory, "run.json"), encoding="utf-8") as file:
            json.load(file)

    def test_files(self):
        self.passes("run", self.large)
        for option, name in (("--svg", "run.svg"), ("--trace", "run.json"), ("--report", "run.html")):
            path = os.path.join(self.directory, name)
            with self.subTest(option=option):
                result = self.ends(subprocess.PIPE, "run", self.vector, option, "/dev/full")
                self.refused(result, "/dev/full", os.strerror(errno.ENOSPC))
                self.assertIn("PASS", result.stdout)  # what was measured is not lost
                self.assertNotIn("/dev/full", result.stdout)
                result = self.ends(subprocess.PIPE, "run", self.vector, "--json", option, "/dev/full")
                self.refused(result, "/dev/full", os.strerror(errno.ENOSPC))
                measured = json.loads(result.stdout)
                self.assertEqual((measured["passed"], measured[option[2:]]), (True, None))
                for old in (None, "old"):
                    if old is not None:
                        self.write(name, old)
                    self.refused(self.ends(subprocess.PIPE, "run", self.large, "--no-isolate", "--backend", "det", option, name,
                                           limit=self.LIMIT), name, os.strerror(errno.EFBIG))
                    self.assertEqual(os.listdir(self.directory), [] if old is None else [name])
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "old")
                os.unlink(path)

    def test_limits(self):
        """What the system does not give is not the manifest's fault."""
        with tempfile.TemporaryDirectory() as cache:
            for limit, words in (("-n 21", "can not be run: Too many open files"), ("-v 300000", "set arena to less")):
                def limited(*words):
                    return subprocess.run(["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", PROGRAM, *words],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8",
                                          timeout=DEADLINE, env=dict(self.environment, XDG_CACHE_HOME=cache))

                # A sanitizer needs more address space than that to begin with.
                if limited("--version").returncode != 0:
                    continue
                result = limited("run", self.vector)
                self.refused(result, words)
                self.assertTrue(result.stderr.startswith('pto: vector: case "'), result.stderr)

    def test_several(self):
        """All that is lost is told, a line each, and what can be saved is."""
        result = self.ends(subprocess.PIPE, "run", self.vector, "--trace", "/dev/full", "--svg", "/dev/full")
        self.assertEqual(result.returncode, 3)
        self.assertEqual([line.startswith("pto: /dev/full: ") for line in result.stderr.splitlines()], [True, True])
        result = self.ends(subprocess.PIPE, "run", self.vector, "--trace", "/dev/full", "--svg", "run.svg")
        self.refused(result, "/dev/full")
        self.assertIn("run.svg", result.stdout)
        self.assertEqual(os.listdir(self.directory), ["run.svg"])
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = self.ends(full, "run", self.vector, "--trace", "/dev/full")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(["standard output" in line for line in result.stderr.splitlines()], [False, True])

    def test_cache(self):
        """An object that does not fit is the compiler's error, and nothing of it stays."""
        with tempfile.TemporaryDirectory() as cache:
            self.environment = dict(self.environment, XDG_CACHE_HOME=cache)
            result = self.ends(subprocess.PIPE, "run", self.vector, limit=1000)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(os.strerror(errno.EFBIG), result.stderr)
            self.assertEqual([name for _, _, names in os.walk(cache) for name in names if name.endswith(".so")], [])

    def test_kind(self):
        for words in (["run", "ex", "--svg", "a.png"], ["run", "ex", "--svg", "a.json"], ["run", "ex", "--svg", "a"],
                      ["run", "ex", "--trace", "a.svg"], ["run", "ex", "--trace", ""], ["run", "ex", "--report", "a.htm"], ["bench", "--svg", "a.png"],
                      ["bench", "--markdown", "a.txt"], ["bench", "--markdown", ""]):
            self.fails(2, [" ".join(words[-2:]).strip()], *words)
        self.passes("run", self.vector, "--svg", "A.SVG", "--trace", "/dev/null")
        self.assertEqual(os.listdir(self.directory), ["A.SVG"])


class Interrupt(PtoTest):
    """Ctrl-C, whatever is under way: one line, status 130, and nobody stays."""

    def ends(self, *words, environment=None):
        """Once the flag is there."""
        flag = os.path.join(self.directory, "flag")
        process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8", cwd=self.directory, start_new_session=True,
                                   env=dict(self.environment, **(environment or {})))
        end = time.monotonic() + DEADLINE
        while not os.path.exists(flag) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=DEADLINE)
        self.assertEqual((process.returncode, out, error), (130, "", "pto: cancelled\n"))
        with open(flag, encoding="utf-8") as file:
            pid = int(file.read())
        while time.monotonic() < end:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.001)
        self.fail(f"process {pid} is still there")

    def flags(self, old, new=""):
        """An edit: code that says in whose process it is, and never returns."""
        flag = os.path.join(self.directory, "flag")
        return old, (f'FILE *flag = fopen ("{flag}.new", "w");\n  fprintf (flag, "%d", (int) getpid ());\n  fclose (flag);\n'
                     f'  rename ("{flag}.new", "{flag}");\n  for (volatile int i = 0;;) i++;\n  {new}')

    def test_run(self):
        head = "#include <stdio.h>\n#include <unistd.h>\n"
        for name, place in (("copy.c", "memcpy ("), ("orch.c", "pto2_rt_init_tensor_pool (rt);"), ("reference.c", "uint32_t dtype")):
            for options in [], ["--no-isolate"], ["--no-isolate", "--backend", "det"]:
                with self.subTest(name=name, options=options):
                    self.copy_example(dtype=INT8, got=0, expected=0)
                    self.edit("copy/" + name, *self.flags(place, place))
                    self.edit("copy/" + name, "#include", head + "#include")
                    self.ends("run", "copy", *options)
                    os.unlink(os.path.join(self.directory, "flag"))

    def test_copy(self):
        """A process that an example forks dies of it, and cancels nothing."""
        head = "#include <signal.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        fork = ("int status = 0;\n  pid_t pid = fork ();\n  if (pid == 0)\n    {\n      raise (SIGINT);\n      _exit (0);\n    }\n"
                "  if (waitpid (pid, &status, 0) != pid || !WIFSIGNALED (status) || WTERMSIG (status) != SIGINT)\n    abort ();\n  ")
        for name, place in (("copy.c", "memcpy ("), ("orch.c", "pto2_rt_init_tensor_pool (rt);"), ("reference.c", "uint32_t dtype")):
            for options in [], ["--no-isolate"], ["--no-isolate", "--backend", "det"]:
                with self.subTest(name=name, options=options):
                    self.copy_example(dtype=INT8, got=0, expected=0)
                    self.edit("copy/" + name, place, fork + place)
                    self.edit("copy/" + name, "#include", head + "#include")
                    self.passes("run", "copy", *options)

    def test_compiler(self):
        self.copy_example(dtype=INT8, got=0, expected=0)
        self.write("copy/copy.c", COPY_KERNEL + "/* that nobody has compiled */\nint here;\n")
        flag = os.path.join(self.directory, "flag")
        self.write("slow-cc", f"#!/bin/sh\necho $$ > {flag}.new\nmv {flag}.new {flag}\nexec sleep 1000\n")
        os.chmod(os.path.join(self.directory, "slow-cc"), 0o700)
        self.ends("run", "copy", environment={"CC": os.path.join(self.directory, "slow-cc")})

    def test_ignored(self):
        """As a shell starts what is in the background."""
        result = subprocess.run(["sh", "-c", 'trap "" INT; "$@" & pid=$!; kill -INT $pid; wait $pid', "sh", PROGRAM, "run",
                                 os.path.join(EXAMPLES, "vector")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8", cwd=self.directory, env=self.environment, timeout=DEADLINE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class Compare(PtoTest):
    """What counts as equal, for each type."""

    def good(self, dtype, got, expected, **keys):
        self.copy_example(dtype=dtype, got=got, expected=expected, **keys)
        return self.gives("copy")

    def bad(self, fragments, dtype, got, expected, **keys):
        self.copy_example(dtype=dtype, got=got, expected=expected, **keys)
        result = self.fails(1, ["copy", '"plain"', "5 of 6", "to[0, 1]: ", *fragments],
                            "run", "copy", "--json")
        return json.loads(result.stdout)

    def test_float32(self):
        one, near = 0x3f800000, 0x3f800001
        self.assertEqual(self.good(FLOAT32, one, one)["max_abs_error"], 0)
        self.bad([], FLOAT32, near, one)
        self.good(FLOAT32, near, one, rtol="2e-7")
        self.good(FLOAT32, near, one, atol="2e-7")

    def test_float16(self):
        one_and_a_half, two, smallest = 0x3e00, 0x4000, 0x0001
        result = self.bad(["1.5 instead of 2"], FLOAT16, one_and_a_half, two)
        self.assertEqual(result["max_abs_error"], 0.5)
        self.good(FLOAT16, one_and_a_half, two, rtol="0.25")
        self.assertEqual(self.bad([], FLOAT16, smallest, 0)["max_abs_error"], 2.0 ** -24)

    def test_bfloat16(self):
        self.bad(["1.5 instead of 2"], BFLOAT16, 0x3fc0, 0x4000)
        self.bad(["-1 instead of 1"], BFLOAT16, 0xbf80, 0x3f80)

    def test_not_a_number(self):
        nan, one = 0x7fc00000, 0x3f800000
        self.good(FLOAT32, nan, nan, **{"equal-nan": "true"})
        for keys in {}, {"equal-nan": "false"}:
            self.assertIsNone(self.bad(["nan instead of nan"], FLOAT32, nan, nan, rtol=1, **keys)["max_abs_error"])
        for got, expected in (nan, one), (one, nan):
            self.bad(["nan"], FLOAT32, got, expected, **{"equal-nan": "true"})
        self.assertIsNone(self.bad(["nan"], FLOAT32, nan, one, rtol=1)["max_abs_error"])
        self.bad(["nan"], FLOAT32, one, nan, rtol=1)
        self.bad(["nan"], FLOAT16, 0x7e00, 0x3c00, rtol=1)

    def test_infinity(self):
        infinity, minus, one = 0x7f800000, 0xff800000, 0x3f800000
        self.good(FLOAT32, infinity, infinity)
        self.bad(["-inf instead of inf"], FLOAT32, minus, infinity, rtol=1)
        self.bad(["inf"], FLOAT32, infinity, one, rtol=1)

    def test_not_finite_is_told(self):
        """What differs and is not finite is in the largest error and in a count, whether the output passes or not."""
        nan, infinity, minus, one = 0x7fc00000, 0x7f800000, 0xff800000, 0x3f800000
        counts = "elements that differ: {} of NaN, {} of infinity; max error of the others: 0"
        for got, expected, kind, n_nan, n_infinite in (
                (nan, one, "nan", 5, 0), (infinity, one, "inf", 0, 5), (one, minus, "inf", 0, 5),
                (minus, infinity, "inf", 0, 5), (infinity, nan, "nan", 5, 0)):
            for share, passed in ((1, True), (0.5, False)):
                with self.subTest(got=got, expected=expected, share=share):
                    self.copy_example(dtype=FLOAT32, got=got, expected=expected, **{"mismatch-share": share})
                    done = self.pto("run", "copy", "--json")
                    value = json.loads(done.stdout)
                    self.assertEqual((done.returncode, value["passed"]), (0 if passed else 1, passed))
                    self.assertEqual([value[key] for key in ("max_abs_error", "max_rel_error", "mismatches_nan", "mismatches_infinite",
                                                             "mismatches_allowed")], [None, None, n_nan, n_infinite, 5 if passed else 0])
                    table = rows(self.pto("run", "copy", "--repeat", "2").stdout)
                    fails = "FAIL  not a number" if kind == "nan" else "FAIL  max error inf"
                    self.assertEqual(table["result"], f"PASS  max error {kind}" if passed else fails)
                    self.assertEqual(table["not finite"], counts.format(n_nan, n_infinite))
                    self.assertEqual(table["relative"], f"max error {kind} of what is expected")
                    self.assertEqual(table.get("allowed"), "wrong elements: 5 (mismatch-share=1)" if passed else None)
        value = self.good(FLOAT32, infinity, infinity)
        self.assertEqual([value[key] for key in ("max_abs_error", "mismatches_nan", "mismatches_infinite")], [0, 0, 0])
        self.copy_example(dtype=FLOAT32, got=nan, expected=one, **{"mismatch-share": 1})
        self.assertIn("PASS  max error nan\n", self.passes("explore", "copy", "--budget", "1"))

    def test_integers(self):
        self.assertEqual(self.bad(["-1 instead of 1"], INT8, 255, 1)["max_abs_error"], 2)
        # Apart by 1, and no double knows.
        self.assertEqual(self.bad([], INT64, 2**60 + 1, 2**60)["max_abs_error"], 1)
        self.assertEqual(self.bad([], UINT64, 2**62 + 1, 2**62)["max_abs_error"], 1)
        self.good(INT64, 2**60 + 1, 2**60, atol=1)

    # Type, got, expected, rtol, atol, whether it passes.
    RULES = [
        (INT64, 1_000_001, 1_000_000, "1", "0", False), (INT64, 1_000_001, 1_000_000, "1e-5", "1e-5", False),
        (INT64, 1_000_001, 1_000_000, "0", "1", True), (INT64, 1_000_002, 1_000_000, "1", "1", False),
        (UINT64, 0, 2**64 - 1, "1", "1", False), (UINT64, 2**63 + 1, 2**63, "0", "1", True),
        (INT64, 2**60 + 2, 2**60, "0", "1", False), (INT8, 100, 101, "0.5", "0", False), (INT8, 0x80, 0x7f, "0", "254", False),
        (INT8, 0x80, 0x7f, "0", "255", True), (FLOAT32, 0x3f800001, 0x3f800000, "2e-7", "0", True),
        (FLOAT32, 0x3f800001, 0x3f800000, "1e-8", "1e-8", False),
    ]

    def test_both_ways_agree(self):
        """The rule of pto.ini is that of golden.py."""
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        scripts = os.path.join(EXAMPLES, "scripts")
        sys.path.insert(0, scripts)
        self.addCleanup(sys.path.remove, scripts)
        run_example = importlib.import_module("run_example")
        types = {INT8: numpy.int8, INT64: numpy.int64, UINT64: numpy.uint64, FLOAT32: numpy.float32}
        for dtype, got, expected, rtol, atol, passes in self.RULES:
            with self.subTest(dtype=types[dtype], got=got, expected=expected, rtol=rtol, atol=atol):
                (self.good if passes else lambda *words, **keys: self.bad([], *words, **keys))(
                    dtype, *(bits - 2**64 if bits >= 2**63 else bits for bits in (got, expected)), rtol=rtol, atol=atol)
                size = numpy.dtype(types[dtype]).itemsize
                actual, wanted = (numpy.frombuffer(bits.to_bytes(size, "little") * 6, types[dtype]) for bits in (got, expected))
                golden = SimpleNamespace(rtol=float(rtol), atol=float(atol), equal_nan=False, mismatch_share=0)
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    self.assertEqual(run_example.compare(numpy, golden, "to", actual, actual, wanted), passes)
                if not passes and dtype != FLOAT32:  # the exact distance, which no double has of some
                    self.assertIn(f"    max error {abs(int(actual[0]) - int(wanted[0])):.2g}, relative ", printed.getvalue())


pto_test.tap.main()
