# test_lies.py: is each lie about what a task touches found, and nothing else, on all back ends, with isolate and without?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Programs are drawn: of each kind one that lies, and its twin that does not, which differ in a number or two. The table of
# kinds in doc/checks.md is what this test finds. PTO_TEST_TIMES=N draws N times as many; the seed is printed (PTO_TEST_SEED).
import contextlib
import os
import platform
import random
import shutil
import tempfile
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

TIMES = int(os.environ.get("PTO_TEST_TIMES", "1"))
SEED = int(os.environ.get("PTO_TEST_SEED", time.time_ns() % 1000000))
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "checks.md")
CHECKED = Pto.CallConfig(enable_access_check=1)

HEAD = """\
#include "tensor.h"
#include "pto_block.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#define T(i) ((const TensorData *) (uintptr_t) args[i])
#define N(i) T (i)->shapes[0]
#define X(i) ((float *) (uintptr_t) T (i)->buffer.addr + T (i)->start_offset)
#define B ((uint64_t) get_block_idx (args))
#define K ((uint64_t) get_block_num (args))
#define EACH(i, from, to) for (uint64_t i = (from), end = (to); i < end; i++)
"""
# What a thread of a kernel does: as many elements as the first one says, which it overwrites as well.
ASIDE = """\
static inline void *
fill (void *data)
{
  float *x = data;
  uint64_t n = (uint64_t) x[0];

  EACH (i, 0, n) x[i] = 1;
  return NULL;
}
"""
CALL = "void\nkernel_entry (int64_t *args)\n{\n%s\n}\n"

FLAG = ("volatile int32_t *flag = (volatile int32_t *) X (1);\n  if (B == 0)\n    {\n      EACH (i, 0, N (0)) X (0)[i] = 1;\n"
        "      __atomic_store_n ((int32_t *) X (1), 1, __ATOMIC_RELEASE);\n    }\n  else\n    %s\n  if (B > 0)\n    X (2)[B] = X (0)[N (0) - 1];")
# What a kernel does; the numbers at the end of its arguments say how far, or whether.
KERNELS = {
    "fill": "EACH (i, 0, N (0) + (uint64_t) args[1]) X (0)[i] = 1;",
    "fill_at": "EACH (i, (uint64_t) args[1], (uint64_t) args[2]) X (0)[i] = 1;",
    "copy": "EACH (i, 0, N (0) + (uint64_t) args[2]) X (1)[i % N (1)] = X (0)[i];",
    "before": "X (1)[0] = X (0)[-args[2]];",
    "spoil": "EACH (i, 0, N (0)) X (1)[i] = X (0)[i];\n  if (args[2]) X (0)[args[3]] = 1;",
    "early": "if (!args[2]) EACH (i, 0, N (1)) X (1)[i] = 0;\n  EACH (i, 0, N (1)) X (1)[i] += X (0)[i];",
    "tile": "EACH (r, 0, N (0)) EACH (c, 0, T (0)->shapes[1] + (uint64_t) args[2])\n"
            "    X (1)[r * T (1)->strides[0] + c % T (1)->shapes[1]] = X (0)[r * T (0)->strides[0] + c];",
    # One task says so, where another argument of the other one begins.
    "await": "volatile int32_t *flag = (volatile int32_t *) X (0);\n  while (*flag == 0) pto_relax (args);\n  X (1)[0] = X (0)[N (0) - 1];",
    "no_await": "X (1)[0] = X (0)[N (0) - 1];",
    "tell": "X (0)[N (0) - 1] = 1;\n  __atomic_store_n ((int32_t *) X (0), 1, __ATOMIC_RELEASE);",
    "add": "EACH (i, 0, N (0)) X (0)[i] += 1;",
    "look": "float s = 0;\n  EACH (i, 0, N (0)) s += X (0)[i];\n  X (1)[0] = s;",
    "behind": "EACH (i, 0, N (0)) X (1)[i] = X (0)[args[2] && i > 0 ? i - 1 : i];",
    "pieces": "uint64_t n = N (0) / K;\n  EACH (i, B * n, (B + 1) * n + (uint64_t) args[1])\n    if (i < N (0)) X (0)[i] = (float) B;",
    "sum": "if (args[1])\n    X (0)[0] += (float) B;\n  else\n    __atomic_fetch_add ((int32_t *) X (0), 1, __ATOMIC_RELAXED);",
    "exchange": "X (0)[B] = (float) B;\n  if (!args[2]) pto_sync_all (args);\n  X (1)[B] = X (0)[(B + 1) % K];",
    "small": "uint64_t size = (uint64_t) args[2];\n  volatile uint8_t *x = (volatile uint8_t *) (uintptr_t) T (0)->buffer.addr;\n"
             "  if (B != (uint64_t) args[4]) EACH (i, B * size, (B + 1) * size) x[i] = 1;\n  if (!args[3]) pto_sync_all (args);\n"
             "  X (1)[B] = x[(B + 1) % K * size];",
    "all": "pto_writes_all (args);\n  EACH (i, N (0) * B / K, N (0) * (B + 1) / K - (uint64_t) args[1]) X (0)[i] = 1;",
    "clear": "__builtin_memset (X (args[2]), 0, 32);",
    "allocate": "float *t = malloc (N (0) * sizeof *t);\n  EACH (i, 0, N (0)) t[i] = X (0)[i];\n"
                "  EACH (i, 0, N (1)) X (1)[i] = t[i % N (0)];\n  free (t);\n  if (args[2]) X (1)[N (1)] = 0;",
    "tells": "pto_writes_all (args);\n  if (getenv (\"PTO_NOTHING\")) printf (\"%g\", exp (X (0)[0]));\n"
             "  EACH (i, 0, N (0) - (uint64_t) args[2]) X (1)[i] = expf (X (0)[i]);\n  if (args[3]) X (1)[N (0) - 1] += 1;",
    # Block 0 writes and says so; the others wait for that, or do not.
    "flag": FLAG % "while (*flag == 0)\n      pto_relax (args);",
    "no_flag": FLAG % "(void) flag;",
    "push": "uint64_t n = N (0);\n  float word = 1;\n  if (args[2]) TPUSH (args, 0, &word, sizeof word);\n  EACH (i, 0, n) X (0)[i] = 1;\n"
            "  if (!args[2]) TPUSH (args, 0, &word, sizeof word);",
    "pop": "float word;\n  TPOP (args, 0, &word, sizeof word);\n  X (1)[0] = X (0)[N (0) - 1] * word;",
    "stream": "EACH (i, 0, N (0)) X (1)[i] = X (0)[i];\n  __builtin_ia32_movntps (X (args[2]), (__attribute__ ((vector_size (16))) float){ 0, 0, 0, 0 });",
}
# Each fills so many elements, and none tells of it.
UNSEEN = {
    "library": "wmemset ((wchar_t *) X (0), 1, (size_t) args[1]);",
    "thread": "pthread_t t;\n  X (0)[0] = (float) args[1];\n  if (pthread_create (&t, NULL, fill, X (0)) == 0) pthread_join (t, NULL);",
    "streams": "EACH (i, 0, (uint64_t) args[1] / 4)\n    __builtin_ia32_movntps (X (0) + 4 * i, (__attribute__ ((vector_size (16))) float){ 1, 1, 1, 1 });",
}
if platform.machine() == "x86_64":
    UNSEEN["assembly"] = ("void *to = X (0);\n  uint64_t n = (uint64_t) args[1];\n"
                          "  __asm__ volatile (\"rep stosl\" : \"+D\" (to), \"+c\" (n) : \"a\" (1) : \"memory\");")
# The same of memory of the program, which they read then.
HIDDEN = {f"{name}_all": f"pto_writes_all (args);\n  {code}\n  float s = 0;\n  EACH (i, 1, N (0)) s += X (0)[i];\n  X (0)[0] = s;" for name, code in UNSEEN.items()}
CXX = {"std_copy": "float b[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };\n  std::copy (b, b + 8, X (args[2]));"}


def aligned(n):
    memory = np.zeros(n + 16, "f4")
    skip = -memory.ctypes.data // 4 % 16
    return memory[skip:skip + n]


class Kinds:
    """Each gives a graph and its arrays, drawn; lies: 0 or 1. They lie beside each other in larger memory."""

    def __init__(self, kernels, draw):
        self.k, self.draw = kernels, draw

    def size(self, low=8, high=200):
        return self.draw.randint(low, high)

    def array(self, n):
        """Part of a larger one, so that what lies beside it is there, and is not known."""
        before = self.draw.randint(8, 40)
        return np.zeros(before + n + 300, "f4")[before:before + n]

    def input_written(self, lies):
        n = self.size()
        return lambda o, x, y: o.submit(self.k["spoil"], x.read(), y.write_existing(), lies, self.draw.randrange(n)), (self.array(n), self.array(n))

    def output_read_first(self, lies):
        n = self.size()
        return lambda o, x, y: o.submit(self.k["early"], x.read(), y.write_existing(), lies), (self.array(n), self.array(n))

    def scratch_read_first(self, lies):
        n = self.size()
        return lambda o, x: o.submit(self.k["early"], x.read(), o.scratch(n), lies), (self.array(n),)

    def outside_of_a_view(self, lies):
        n = self.size(30)
        part = self.draw.randint(4, n - 8)
        more = lies * self.draw.randint(1, n - part)
        return lambda o, x: o.submit(self.k["fill"], x[0:part].write_existing(), more), (self.array(n),)

    def into_the_next_view(self, lies):
        n = self.size(30)
        k = self.draw.randint(8, n - 8)
        first, second = self.draw.choice([(slice(0, k), slice(k, n)), (slice(k, n), slice(0, k))])
        if first.start == 0:
            return lambda o, x: o.submit(self.k["copy"], x[first].read(), x[second].write_existing(), lies * self.draw.randint(1, 8)), (self.array(n),)
        return lambda o, x: o.submit(self.k["before"], x[first].read(), x[second].update(), lies * self.draw.randint(1, 8)), (self.array(n),)

    def into_the_next_tile(self, lies):
        rows, columns = self.draw.randint(2, 9), self.draw.randint(10, 40)
        k = self.draw.randint(4, columns - 4)
        first, second = self.draw.choice([(slice(0, k), slice(k, columns)), (slice(k, columns - 1), slice(0, k))])
        return (lambda o, x: o.submit(self.k["tile"], x[0:rows, first].read(), x[0:rows, second].write_existing(), lies),
                (self.array(rows * columns).reshape(rows, columns),))

    def waits_beside_its_output(self, lies):
        """The twin waits for ever if it looks at a copy."""
        n = self.size()

        def graph(o, x):
            o.submit(self.k["no_await" if lies else "await"], x[0:n].read(), x[n:n + 4].write_existing())
            o.submit(self.k["tell"], x[0:n].no_dep())
        return graph, (self.array(n + 4),)

    def past_an_array_read(self, lies):
        n = self.size()
        more = lies * self.draw.choice([1, 2, 7, 16, 100])
        return lambda o, x, y: o.submit(self.k["copy"], x.read(), y.write_existing(), more), (self.array(n), self.array(n))

    def past_an_array_written(self, lies):
        more = lies * self.draw.choice([1, 3, 16, 200])
        return lambda o, x: o.submit(self.k["fill"], x.write_existing(), more), (self.array(self.size()),)

    def before_an_array_read(self, lies):
        back = lies * self.draw.randint(1, 8)
        return lambda o, x, y: o.submit(self.k["before"], x.read(), y.write_existing(), back), (self.array(self.size()), self.array(4))

    def past_memory_of_the_library(self, lies):
        n = self.size()
        more = lies * self.draw.choice([1, 5, 16])
        return lambda o, x, y: o.submit(self.k["copy"], x.read(), y.write_existing(), more), (Pto.Buffer.array(n, "f4"), self.array(n))

    def past_memory_of_the_runtime(self, lies):
        return self.around_memory_of_the_runtime("copy", lies * self.draw.randint(1, 40))

    def before_memory_of_the_runtime(self, lies):
        return self.around_memory_of_the_runtime("before", lies * self.draw.randint(1, 40))

    def around_memory_of_the_runtime(self, name, more):
        n, depth = self.size(), self.draw.randint(0, 3)

        def graph(o, y):
            with contextlib.ExitStack() as scopes:
                for _ in range(depth):
                    scopes.enter_context(o.scope())
                # What lies on both sides is there.
                first, t, last = (o.tensor(n) for _ in range(3))
                for made in first, t, last:
                    o.submit(self.k["fill"], made.write(), 0)
                o.submit(self.k[name], t.read(), y.write_existing(), more)
        return graph, (self.array(n),)

    def past_an_array_beside_allocated_memory(self, lies):
        n = self.size()
        return lambda o, x, y: o.submit(self.k["allocate"], x.read(), y.write_existing(), lies), (self.array(n), self.array(n))

    def two_tasks_in_no_order(self, lies):
        n, first = self.size(), self.draw.random() < 0.5

        def graph(o, x, y):
            o.submit(self.k["fill"], x.no_dep() if lies and first else x.write_existing(), 0)
            o.submit(self.k["look"], x.no_dep() if lies and not first else x.read(), y.write_existing())
        return graph, (self.array(n), self.array(1))

    def hidden_behind_an_update_in_turns(self, lies):
        n = self.size()

        def graph(o, x, y):
            o.submit(self.k["look"], x.no_dep() if lies else x.read(), y.write_existing())
            o.submit(self.k["copy"], y.read(), x.commute(), 0)
            o.submit(self.k["add"], x.commute())
        return graph, (self.array(n), self.array(1))

    def condition_written_in_no_order(self, lies):
        n = self.size()

        def graph(o, x, y):
            o.submit(self.k["fill"], x.no_dep() if lies else x.write_existing(), 0)
            o.submit(self.k["fill"], y.write_existing(), 0, when=(x, self.draw.randrange(n)))
        return graph, (self.array(n), self.array(n))

    def input_again_as_no_dep(self, lies):
        n = self.size()
        return lambda o, x, y: o.submit(self.k["spoil"], x.read(), y.write_existing(), lies, self.draw.randrange(n), x.no_dep()), (self.array(n), self.array(n))

    def in_place_but_read_later(self, lies):
        return lambda o, x: o.submit(self.k["behind"], x.read(), x.write_existing(), lies), (self.array(self.size()),)

    def blocks_write_the_same(self, lies):
        k = self.draw.randint(2, 12)
        return lambda o, x: o.submit(self.k["pieces"], x.write_existing(), lies * self.draw.randint(1, 3), block_dim=k), (self.array(k * self.draw.randint(4, 20)),)

    def blocks_add_to_one_element(self, lies):
        return lambda o, x: o.submit(self.k["sum"], x.update(), lies, block_dim=self.draw.randint(2, 12)), (self.array(4),)

    def blocks_without_a_meeting(self, lies):
        k = self.draw.randint(2, 12)
        return lambda o, x, y: o.submit(self.k["exchange"], x.update(), y.write_existing(), lies, block_dim=k, sync_start=True), (self.array(k), self.array(k))

    def blocks_share_words(self, lies):
        """Elements of a byte or two; without a meeting, or one of them is not written."""
        k, (size, dtype) = self.draw.randint(2, 12), self.draw.choice([(1, Pto.Dtype.UINT8), (2, Pto.Dtype.INT16)])
        meets = not lies or self.draw.random() < 0.5
        left = self.draw.randrange(k) if lies and meets else -1
        return (lambda o, y: o.submit(self.k["small"], o.tensor(k, dtype).write(), y.write_existing(), size, int(not meets), left, block_dim=k, sync_start=True),
                (self.array(k),))

    def blocks_without_a_flag(self, lies):
        k = self.draw.randint(2, 8)
        return (lambda o, x, f, y: o.submit(self.k["no_flag" if lies else "flag"], x.update(), f.update(), y.update(), block_dim=k, sync_start=True),
                (self.array(self.size()), self.array(1), self.array(k)))

    def kernels_push_too_early(self, lies):
        return (lambda o, x, y: o.submit_mixed(None, self.k["push"], self.k["pop"], x.update(), y.update(), lies, block_dim=1),
                (self.array(self.size()), self.array(1)))

    def members_write_the_same(self, lies):
        n = self.size(16)
        half = self.draw.randint(4, n - 4)
        more = lies * self.draw.randint(1, 4)
        return (lambda o, x: o.submit_group([self.k["fill_at"]] * 2, args_list=[[x.write_existing(), 0, half + more], [x.write_existing(), half, n]]),
                (self.array(n),))

    def output_never_written(self, lies):
        n = self.size()

        def graph(o, y):
            t = o.tensor(n)
            o.submit(self.k["fill_at"], t.write(), 0, n - lies * self.draw.randint(1, n - 1))
            o.submit(self.k["copy"], t.read(), y.write_existing(), 0)
        return graph, (self.array(n),)

    def output_filled_unseen(self, lies):
        n, name = 4 * self.draw.randint(2, 50), self.draw.choice([name for name in UNSEEN if name in self.k])

        def graph(o, y):
            t = o.tensor(n)
            o.submit(self.k[name], t.write(), n - 4 * lies * self.draw.randint(1, n // 4 - 1))
            o.submit(self.k["copy"], t.read(), y.write_existing(), 0)
        return graph, (self.array(n),)

    def existing_filled_unseen(self, lies):
        n, name = 4 * self.draw.randint(2, 50), self.draw.choice([name for name in HIDDEN if name in self.k])
        # The second time each byte holds the value already.
        times = self.draw.randint(1, 2)
        left = 4 * lies * self.draw.randint(1, n // 4 - 1)
        return lambda o, x: [o.submit(self.k[name], x.write_existing(), n - left) for _ in range(times)], (aligned(n),)

    def existing_read_by_a_kernel_that_calls(self, lies):
        n = self.size()
        return lambda o, x, y: o.submit(self.k["tells"], x.read(), y.write_existing(), lies * self.draw.randint(1, n), lies), (self.array(n), self.array(n))

    def not_all_written(self, lies):
        k = self.draw.randint(1, 6)
        return lambda o, x: o.submit(self.k["all"], x.write_existing(), lies, block_dim=k), (self.array(k * self.draw.randint(4, 20)),)

    def copies_of_a_constant_size(self, lies):
        name = self.draw.choice(["clear", "std_copy"])
        return lambda o, x, y: o.submit(self.k[name], x.read(), y.write_existing(), 1 - lies), (self.array(self.size()), self.array(self.size()))

    def streaming_stores(self, lies):
        n = 4 * self.draw.randint(2, 40)
        return lambda o, x, y: o.submit(self.k["stream"], x.read(), y.write_existing(), 1 - lies), (aligned(n), aligned(n))


# In words, as the page has them, and whether such lies are found.
TABLE = (
    ("writes to an INPUT", "input_written", True),
    ("reads an OUTPUT before it has written there", "output_read_first", True),
    ("reads SCRATCH before it has written there", "scratch_read_first", True),
    ("goes outside of its view", "outside_of_a_view", True),
    ("goes from one view into the next one of the same task", "into_the_next_view", True),
    ("goes from one tile into the next column, which another tile has", "into_the_next_tile", True),
    ("does not wait for another task that has a view as NO_DEP", "waits_beside_its_output", True),
    ("reads past an array of the program", "past_an_array_read", True),
    ("writes past an array of the program", "past_an_array_written", True),
    ("reads before an array of the program", "before_an_array_read", True),
    ("reads past memory of the library", "past_memory_of_the_library", True),
    ("reads past memory of the runtime", "past_memory_of_the_runtime", True),
    ("reads before memory of the runtime", "before_memory_of_the_runtime", True),
    ("writes past an array, and allocates memory", "past_an_array_beside_allocated_memory", True),
    ("is in no order with another task", "two_tasks_in_no_order", True),
    ("the same, with an update in turns between", "hidden_behind_an_update_in_turns", True),
    ("has a condition that a task in no order writes", "condition_written_in_no_order", True),
    ("writes to an INPUT that it also has as NO_DEP", "input_again_as_no_dep", True),
    ("reads in place what it has overwritten", "in_place_but_read_later", True),
    ("has blocks that write the same bytes", "blocks_write_the_same", True),
    ("has blocks that add to one element", "blocks_add_to_one_element", True),
    ("has blocks that do not meet between a write and a read", "blocks_without_a_meeting", True),
    ("has blocks that read elements of a byte or two too early", "blocks_share_words", True),
    ("has blocks that do not wait for a flag", "blocks_without_a_flag", True),
    ("has a kernel that pushes before it writes", "kernels_push_too_early", True),
    ("has members that write the same bytes", "members_write_the_same", True),
    ("leaves out bytes of an OUTPUT that another task reads", "output_never_written", True),
    ("leaves out bytes of an OUTPUT that the C library, a thread or streaming stores fill", "output_filled_unseen", True),
    ("leaves out bytes of an array that the C library, a thread or streaming stores fill", "existing_filled_unseen", False),
    ("leaves out bytes of an array, and computes with the C library", "existing_read_by_a_kernel_that_calls", True),
    ("leaves out bytes though it says that it writes all", "not_all_written", True),
    ("copies a constant number of bytes to an INPUT", "copies_of_a_constant_size", True),
    ("writes to an INPUT by a streaming store", "streaming_stores", False),
)


@unittest.skipIf(np is None, "no NumPy")
class Lies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="pto-test-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.kernels = {}
        for codes, suffix, head in (KERNELS, ".c", HEAD), (UNSEEN | HIDDEN, ".c", HEAD + ASIDE), (CXX, ".cc", "#include <algorithm>\n" + HEAD):
            for name, code in codes.items():
                if name.startswith("stream") and platform.machine() != "x86_64":
                    continue
                path = os.path.join(cls.directory, name + suffix)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(head + ('extern "C" ' if suffix == ".cc" else "") + CALL % ("  " + code))
                cls.kernels[name] = Pto.Callable.kernel(path)
        print(f"# seed {SEED}", flush=True)

    def says(self, worker, kind, seed, lies):
        """What a checked run of one program says; None: nothing. The same program on each back end."""
        graph, arrays = getattr(Kinds(self.kernels, random.Random(f"{kind} {seed}")), kind)(lies)
        try:
            worker.run(graph, *arrays, config=CHECKED)
        except GLib.Error as error:
            self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.ACCESS), f"{kind} {seed}: {error.message}")
            return error.message
        return None

    def test_kinds(self):
        """No miss but the listed, no false alarm, also of a chip in a process of its own; and the page says what was found."""
        found, told = {}, {}
        for backend, isolate in [(backend, isolate) for isolate in (False, True) for backend in ("det", "par", "threads")]:
            with Pto.Worker(isolate=isolate) as worker:
                worker.set_parameter("backend", backend)
                for words, kind, _ in TABLE:
                    if kind == "streaming_stores" and "stream" not in self.kernels:
                        continue
                    for seed in range(SEED, SEED + (1 if isolate else 3) * TIMES):
                        self.assertIsNone(self.says(worker, kind, seed, 0), f"{kind} {seed} on {backend}, isolate={isolate} does not lie")
                        message = self.says(worker, kind, seed, 1)
                        found.setdefault(words, set()).add(message is not None)
                        if message is not None:
                            self.assertRegex(message, r"^task \d+ of ring \d \(\w+\), submitted at test_lies.py:\d+", kind)
                            told.setdefault((kind, seed), set()).add(message.split(" has ")[0] if "times in all" in message else message)
        for (kind, seed), messages in told.items():
            self.assertEqual(len(messages), 1, f"{kind} {seed}: back ends differ: {messages}")
        for words, kind, expected in TABLE:
            if words in found:
                self.assertEqual(found[words], {expected}, f"{kind} from seed {SEED} on")
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        table = "| a task | found |\n|---|---|\n" + "".join(f"| {words} | {'each' if expected else 'none'} |\n" for words, _, expected in TABLE)
        self.assertIn(table, page, "doc/checks.md has another table")


tap.main()
