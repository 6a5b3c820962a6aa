# pto_test.py: how is the pto program tried?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_*.py PROGRAM: prints TAP. PTO_TEST_EXAMPLES names the directory of the examples."""
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402,F401

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "pto"
if os.sep in PROGRAM:
    PROGRAM = os.path.abspath(PROGRAM)
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.abspath(os.environ.get("PTO_TEST_EXAMPLES")
                           or os.path.join(HERE, "..", "..", "examples"))
DEADLINE = 240  # seconds; a machine under load compiles slowly

REQUIRED_KEYS = [
    "example", "case", "platform", "backend", "seed", "tasks", "edges", "passed",
    "max_abs_error", "run_seconds", "tasks_per_second", "virtual_ns", "trace_sha256",
    "peak_live_tasks", "recycled",
]

# One task that copies bytes; the reference makes arrays of any type: comparing can be tested.
COPY_INI = """\
[example]
name=copy

[orchestration]
source=orch.c

[kernel 0]
name=copy
source=copy.c
core=aiv

[reference]
source=reference.c

[case plain]
{case}
"""
COPY_KERNEL = """\
#include "tensor.h"
#include <string.h>
void kernel_entry (int64_t *args)
{
  const TensorData *from = (const TensorData *) (uintptr_t) args[0];
  const TensorData *to = (const TensorData *) (uintptr_t) args[1];
  memcpy ((char *) (uintptr_t) to->buffer.addr + to->start_offset,
          (const char *) (uintptr_t) from->buffer.addr + from->start_offset, from->shapes[0]);
}
"""
COPY_ORCHESTRATION = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = 3 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  uint64_t shape[1] = { args[2] };
  Tensor from = make_tensor_external ((void *) (uintptr_t) args[0], shape, 1, PTO_DTYPE_UINT8);
  Tensor to = make_tensor_external ((void *) (uintptr_t) args[1], shape, 1, PTO_DTYPE_UINT8);
  PTOParam params[] = { make_input_param (from), make_output_param (to) };
  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt) { pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2); }
  return 0;
}
"""
RAW_EXIT_GROUP = """
#if defined(__x86_64__)
  long number = SYS_exit_group;
  __asm__ volatile ("syscall" : "+a"(number) : "D"(5L) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__ ("x8") = SYS_exit_group, x0 __asm__ ("x0") = 5;
  __asm__ volatile ("svc 0" : "+r"(x0) : "r"(x8) : "memory");
#else
  _exit (5);
#endif
"""
# got and expected are the bits of all elements but the first, which is 0 on both sides.
COPY_REFERENCE = """\
#include "pto_reference.h"
#include <string.h>
enum { N = 6 };
static void fill (PTO2Case *c, const char *key, unsigned char *data, uint32_t size)
{
  uint64_t bits = (uint64_t) c->ops->integer (c, key, 0);
  for (int i = 1; i < N; i++)
    memcpy (data + (size_t) i * size, &bits, size);
}
int pto_reference_inputs (PTO2Case *c)
{
  uint32_t dtype = (uint32_t) c->ops->integer (c, "dtype", 0);
  uint64_t shape[2] = { 2, 3 };
  void *from = c->ops->array (c, "from", (DataType) dtype, 2, shape, false);
  void *to = c->ops->array (c, "to", (DataType) dtype, 2, shape, true);
  if (from == NULL || to == NULL)
    return pto_case_fail (c, "no arrays");
  fill (c, "got", from, pto_dtype_size ((DataType) dtype));
  c->ops->scalar (c, "bytes", N * pto_dtype_size ((DataType) dtype));
  return 0;
}
int pto_reference_compute (PTO2Case *c)
{
  uint32_t dtype = (uint32_t) c->ops->integer (c, "dtype", 0);
  fill (c, "expected", c->ops->expected (c, "to"), pto_dtype_size ((DataType) dtype));
  return 0;
}
"""
FLOAT32, FLOAT16, BFLOAT16, INT8, INT64, UINT64 = 0, 1, 2, 3, 6, 10


def rows(table):
    """What stands behind each name of a run's table."""
    return {line[2:16].strip(): line[16:] for line in table.splitlines()[1:] if line[2:3] != " "}


def duration(text):
    """Seconds of "1.2 us", "3.45 ms", "6.789 s", and how far off they may be."""
    number, unit = text.split(" ")
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]
    return float(number) * scale, 0.51 * 10 ** -len(number.split(".")[1]) * scale


class PtoTest(unittest.TestCase):
    # Does it look into the cache, or write there? Others find what other tests have compiled.
    has_own_cache = False

    @classmethod
    def setUpClass(cls):
        cls.cache = os.environ["XDG_CACHE_HOME"]
        if cls.has_own_cache:
            cls.cache = tempfile.mkdtemp(prefix="pto-test-cache-")
            cls.addClassCleanup(shutil.rmtree, cls.cache, ignore_errors=True)
        cls.environment = dict(os.environ, LC_ALL="C", XDG_CACHE_HOME=cls.cache)
        for name in list(cls.environment):
            if name.startswith("PTO2_") or name in ("PTO_BACKEND", "PTO_SEED", "PTO_TRACE"):
                del cls.environment[name]

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-test-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def pto(self, *words, environment=None):
        return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", cwd=self.directory,
                              env=dict(self.environment, **(environment or {})), timeout=DEADLINE)

    def passes(self, *words, environment=None):
        result = self.pto(*words, environment=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def start(self, stdout, *words, program=PROGRAM, environment=None, prepare=None):
        """To another standard output. What it has begun has its mark."""
        self.mark = f"PTO_TEST_MARK={uuid.uuid4()}"
        return subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8",
                              cwd=self.directory, timeout=DEADLINE, preexec_fn=prepare, restore_signals=prepare is None,
                              env=dict(self.environment, **(environment or {}), **dict([self.mark.split("=")])))

    def assert_all_ended(self):
        """Nothing lives of what start() ran and of what that has begun."""
        deadline = time.monotonic() + DEADLINE
        while found := [pid for pid in filter(str.isdigit, os.listdir("/proc")) if self.is_marked(pid)]:
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.001)

    def is_marked(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return self.mark.encode() in file.read().split(b"\0")
        except OSError:
            return False

    def cut(self, *words, **options):
        """Into a pipe whose reader has gone: SIGPIPE ends it, without a word."""
        reader, writer = os.pipe()
        os.close(reader)
        try:
            result = self.start(writer, *words, **options)
        finally:
            os.close(writer)
        self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, ""))
        self.assert_all_ended()

    def unwritten(self, result, code, status=3, name="pto"):
        """One sentence says why."""
        self.assertRegex(result.stderr, rf"\A{name}: standard output cannot be written: {re.escape(os.strerror(code))}\n\Z")
        self.assertEqual(result.returncode, status)
        self.assert_all_ended()

    def full(self, *words, program=PROGRAM, **options):
        """Into a file that has no room."""
        with open("/dev/full", "w", encoding="utf-8") as file:
            self.unwritten(self.start(file, *words, program=program), errno.ENOSPC, **options)

    def unopened(self, *words, program=PROGRAM, **options):
        """Without a standard output: no other file takes its place."""
        self.unwritten(self.start(None, "-c", 'exec "$@" >&-', "sh", program, *words, program="/bin/sh"), errno.EBADF, **options)

    def gives(self, *words, environment=None):
        return json.loads(self.passes("run", *words, "--json", environment=environment))

    def fails(self, status, fragments, *words, lines=1, environment=None):
        """Exit status, fragments in the first line of standard error, how many lines (0: any)."""
        result = self.pto(*words, environment=environment)
        self.assertEqual(result.returncode, status, result.stderr)
        text = result.stderr.splitlines()
        self.assertTrue(text, "nothing on standard error")
        self.assertTrue(text[0].startswith("pto: "), text[0])
        for fragment in fragments:
            self.assertIn(fragment, text[0])
        if lines:
            self.assertEqual(len(text), lines, result.stderr)
        return result

    def example(self, name="vector"):
        """A copy of an example, to be spoilt."""
        path = os.path.join(self.directory, "ex")
        shutil.copytree(os.path.join(EXAMPLES, name), path)
        return path

    def write(self, path, text):
        with open(os.path.join(self.directory, path), "w", encoding="utf-8") as file:
            file.write(text)

    def edit(self, path, old, new):
        path = os.path.join(self.directory, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))

    def copy_example(self, **keys):
        os.makedirs(os.path.join(self.directory, "copy"), exist_ok=True)
        case = "\n".join(f"{key}={value}" for key, value in keys.items())
        self.write("copy/pto.ini", COPY_INI.format(case=case))
        self.write("copy/orch.c", COPY_ORCHESTRATION)
        self.write("copy/copy.c", COPY_KERNEL)
        self.write("copy/reference.c", COPY_REFERENCE)
