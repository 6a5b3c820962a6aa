# test_own_threads.py: does what a kernel keeps for each thread belong to its core?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import shutil
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

HEAD = """\
#include "pto_block.h"
#include "tensor.h"
static inline int64_t *cells (int64_t arg)
{
  const TensorData *t = (const TensorData *) arg;

  return (int64_t *) t->buffer.addr + t->start_offset;
}
"""
# Each side keeps something over 2 * TURNS waits, and counts how often it was another's.
TALK = HEAD + """\
enum { TURNS = 60 };
#if KEEPS == 1
static _Thread_local int64_t mine;
#elif KEEPS == 2
#include <errno.h>
#elif KEEPS == 3
#include <pthread.h>
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make (void) { pthread_key_create (&key, 0); }
#endif
void kernel_entry (int64_t *args)
{
  int64_t me = (int64_t) get_block_idx (args) * 2 + SIDE, wrong = 0;
  float v = 1;
#if KEEPS == 3
  pthread_once (&once, make);
#endif
  for (int i = 0; i < TURNS; i++)
    {
      int64_t now = me * 10000 + i + 1;
      (void) now;
#if KEEPS == 1
      mine = now;
#elif KEEPS == 2
      errno = (int) now;
#elif KEEPS == 3
      pthread_setspecific (key, (void *) now);
#endif
      if (SIDE == 0) { TPUSH (args, 0, &v, 4); TPOP (args, 1, &v, 4); }
      else { TPOP (args, 0, &v, 4); TPUSH (args, 1, &v, 4); }
      pto_relax (args);
#if KEEPS == 1
      wrong += mine != now;
#elif KEEPS == 2
      wrong += errno != (int) now;
#elif KEEPS == 3
      wrong += pthread_getspecific (key) != (void *) now;
#endif
    }
  cells (args[0])[me] = wrong + 1000;
}
"""
# What it had counted before, and where: each block says so in two cells of its own.
COUNT = HEAD + """\
#include <sys/syscall.h>
#include <unistd.h>
static _Thread_local int64_t n;
void kernel_entry (int64_t *args)
{
  int64_t *own = cells (args[0]) + 2 * get_block_idx (args);
  own[0] = n++;
  own[1] = syscall (SYS_gettid);
}
"""
# What each core keeps without a thread: a counter, room in a line of its own, and in C++ what is computed at its first use.
# Cells of each block: what it has counted before and behind a barrier, and how much else was wrong.
KEEP = HEAD + """\
#include <string.h>
#ifndef ALIGN
#define ALIGN 128
#endif
#ifdef __cplusplus
#define _Thread_local thread_local
#define _Alignas alignas
#endif
static _Thread_local int64_t n = 40;
static _Thread_local struct { _Alignas (ALIGN) char line[2 * ALIGN + 1]; } room;
#ifdef __cplusplus
static int64_t begin () { static int64_t zero; return zero + 7; }
static thread_local int64_t begun = begin ();
extern "C"
#else
static _Thread_local int64_t begun = 7;
#endif
void kernel_entry (int64_t *args)
{
  int64_t *own = cells (args[0]) + 3 * get_block_idx (args), *mine = &n;
  int64_t wrong = (int64_t) ((uintptr_t) room.line % ALIGN) + (begun - 7 != n - 40);
  for (unsigned i = 0; i < sizeof room.line; i++)
    wrong += n == 40 && room.line[i] != 0;
  begun++;
  memset (room.line, 40 + (int) get_block_idx (args), sizeof room.line);
  own[0] = ++n;
  pto_sync_all (args);
  own[1] = *mine;
  own[2] = wrong + (mine != &n) + (room.line[2 * ALIGN] != 40 + (int) get_block_idx (args));
}
"""
# Its exception waits with it.
THROW = HEAD + """\
static thread_local int64_t n;
extern "C" void kernel_entry (int64_t *args)
{
  int64_t block = get_block_idx (args);
  n++;
  try
    {
      try
        {
          throw block;
        }
      catch (int64_t)
        {
          pto_sync_all (args);
          throw;
        }
    }
  catch (int64_t value)
    {
      cells (args[0])[block] += value + 1;
    }
}
"""
# Exceptions stay with a kernel that keeps nothing for its thread: one it has thrown before it waits, one that a library throws
# while a destructor waits, and none where there was none. Even blocks begin to wait in their handlers, odd ones before.
HANDLE = """\
#include <exception>
#include <stdexcept>
#include <string>
""" + HEAD + """\
struct Waiter
{
  int64_t *args, &wrong;
  int before;
  ~Waiter ()
  {
    pto_relax (args);
    pto_relax (args);
    wrong += std::uncaught_exceptions () != before + 1;
  }
};
static int64_t look ()
{
  return (std::current_exception () != nullptr) + 2 * (std::uncaught_exceptions () != 0);
}
static int64_t turn (int64_t *args, int64_t me)
{
  int64_t wrong = 0;
  if (me % 2 != 0)
    pto_relax (args);
  wrong += 100 * look ();
  try
    {
      try { throw me; }
      catch (int64_t)
        {
          pto_relax (args);
          try { Waiter waiter{ args, wrong, 0 }; std::string ().at ((size_t) me); }
          catch (const std::out_of_range &) { pto_sync_all (args); }
          pto_relax (args);
          throw;
        }
    }
  catch (int64_t value) { wrong += 10000 * (value != me); }
  pto_relax (args);
  return wrong + 100 * look ();
}
extern "C" void kernel_entry (int64_t *args)
{
  int64_t me = get_block_idx (args), wrong = 0;
  for (int i = 0; i < 20; i++)
    wrong += turn (args, me);
  cells (args[0])[me] += wrong + 1000000;
}
"""
# It ends in a handler, while a destructor runs since another exception was thrown.
ENDS = HANDLE.replace("++)\n    wrong +=", "++)\n    if (me == 3) end (args, me); else wrong +=").replace("extern", """\
struct End { int64_t *args; ~End () { pto_relax (args); END; } };
static void end (int64_t *args, int64_t me)
{
  try { throw me; }
  catch (int64_t) { pto_relax (args); End ends{ args }; std::string ().at ((size_t) me); }
}
extern""")
# An orchestration that handles an exception while kernels run, and waits in a destructor since one was thrown.
ORCHESTRATION = """\
#include "pto_orchestration_api.h"
#include <exception>
struct Ends
{
  PTO2Runtime *rt;
  PTOParam *params;
  int *wrong;
  ~Ends ()
  {
    const uint64_t at[1] = { 0 };
    int64_t value;

    pto2_rt_submit_sync_task (rt, 0, PTO2_WORKER_VECTOR, params, 1, 8);
    if (!pto2_rt_get_element (rt, &params[0].tensor, at, &value) || std::uncaught_exceptions () != 1)
      *wrong = 1;
  }
};
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *, int)
{
  return { 1 };
}
extern "C" int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int)
{
  const uint64_t at[1] = { args[0] * 0 };
  Tensor x = pto2_rt_arg_tensor (rt, 0);
  PTOParam params[] = { make_inout_param (x) };
  int64_t value;

  for (int i = 0; i < 8; i++)
    {
      pto2_rt_submit_sync_task (rt, 0, PTO2_WORKER_VECTOR, params, 1, 8);
      try
        {
          try { throw i; }
          catch (int)
            {
              pto2_rt_submit_sync_task (rt, 0, PTO2_WORKER_VECTOR, params, 1, 8);
              int wrong = 0;

              if (i % 2 != 0 && !pto2_rt_get_element (rt, &x, at, &value))
                return 1;
              try { Ends ends = { rt, params, &wrong }; throw 'x'; }
              catch (char) { if (wrong) return 5; }
              throw;
            }
        }
      catch (int caught)
        {
          if (caught != i)
            return 2;
        }
      if (std::current_exception () != nullptr || std::uncaught_exceptions () != 0)
        return 3;
      if (i % 2 == 0 && !pto2_rt_get_element (rt, &x, at, &value))
        return 4;
    }
  return 0;
}
"""
REFUSED = HEAD + """\
static _Thread_local int64_t n;
void kernel_entry (int64_t *args)
{
  float v = 1;
  n += (int64_t) v;
  TPUSH (args, 99, &v, 4);
}
"""
WAITS = REFUSED.replace("TPUSH (args, 99", "TPOP (args, 3")
STRAY = REFUSED.replace("&v, 4", "(void *) 8, 4").replace("99", "0")


@unittest.skipIf(np is None, "no numpy")
class OwnThreads(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-own-threads-")
        self.addCleanup(shutil.rmtree, self.directory)

    def kernel(self, text, core="aiv", flags=""):
        path = os.path.join(self.directory, "kernel.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return Pto.Callable.kernel(path, core=core, args=1, flags=flags)

    def sides(self, text, keeps):
        kernels = []
        for side, core in enumerate(("aic", "aiv")):
            path = os.path.join(self.directory, f"side{side}-{keeps}.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#define SIDE {side}\n#define KEEPS {keeps}\n" + text)
            kernels.append(Pto.Callable.kernel(path, core=core, args=1))
        return kernels

    def workers(self, **parameters):
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(platform="a2a3sim", isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    for name, value in parameters.items():
                        worker.set_parameter(name.replace("_", "-"), value)
                    yield worker

    def test_waits(self):
        """Thread-local variables, errno and thread-specific data are a kernel's own over its waits."""
        for keeps in 1, 2, 3:
            cube, vector = self.sides(TALK, keeps)
            for worker in self.workers():
                x = np.zeros(16, "i8")
                worker.run(lambda orch, x: orch.submit_mixed(cube, vector, None, x.update(), block_dim=8), x)
                np.testing.assert_array_equal(x, 1000)

    def test_cores(self):
        """One thread for each core, from its first task to the end of the worker."""
        count = self.kernel(COUNT)
        for worker in self.workers(clusters=4):
            seen = {}
            for _ in range(3):
                x = np.zeros(2 * 40, "i8")
                worker.run(lambda orch, x: orch.submit(count, x.update(), block_dim=40), x)
                for before, thread in x.reshape(40, 2):
                    seen.setdefault(thread, []).append(before)
            self.assertLessEqual(len(seen), 8)  # vector cores
            for before in seen.values():
                self.assertEqual(sorted(before), list(range(len(before))))

    def test_without_threads(self):
        """Each core has the variables of each object, however that reaches them; only what cannot be kept so has a thread."""
        ways = (("c", "", True), ("c", "-O0", True), ("c", "-Ofast -march=native", True), ("c", "-fno-plt", True), ("cc", "", True),
                ("c", "-mtls-dialect=gnu2", False), ("c", "-ftls-model=initial-exec -DALIGN=8", False), ("c", "-DASKS", False))
        asks = "#ifdef ASKS\n#include <errno.h>\nint *asked (void) { return &errno; }\n#endif\n"
        for suffix, flags, is_kept in ways:
            for worker in self.workers(clusters=4):
                with self.subTest(suffix=suffix, flags=flags):
                    kernels = []
                    for name in "one", "two":
                        path = os.path.join(self.directory, f"{name}{flags}.{suffix}")
                        with open(path, "w", encoding="utf-8") as file:
                            file.write(f'int {name};\n{asks}{KEEP}')
                        kernels.append(Pto.Callable.kernel(path, core="aiv", args=1, flags=flags))
                    for turn in range(3):
                        for kernel in kernels:
                            x = np.zeros(24, "i8")
                            worker.run(lambda orch, x: orch.submit(kernel, x.update(), block_dim=8, sync_start=True), x)
                            np.testing.assert_array_equal(x.reshape(8, 3)[:, :2], 41 + turn)
                            if turn == 0:  # later a core may have another block
                                np.testing.assert_array_equal(x.reshape(8, 3)[:, 2], 0)
                    if not worker.props.isolate and worker.dup_parameter("backend") != "threads" and os.uname().machine == "x86_64":
                        own = [name for task in os.listdir("/proc/self/task")
                               for name in [open(f"/proc/self/task/{task}/comm").read()] if name.startswith("AIV")]
                        self.assertEqual(len(own), 0 if is_kept else 8)

    def test_exceptions(self):
        """Exceptions that wait with their kernels stay with them."""
        path = os.path.join(self.directory, "throw.cc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(THROW)
        throw = Pto.Callable.kernel(path, core="aiv", args=1)
        for worker in self.workers(clusters=4):
            x = np.zeros(8, "i8")
            for _ in range(10):
                worker.run(lambda orch, x: orch.submit(throw, x.update(), block_dim=8, sync_start=True), x)
            np.testing.assert_array_equal(x, 10 * np.arange(1, 9))

    def cxx(self, name, text):
        path = os.path.join(self.directory, f"{name}.cc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_handlers(self):
        """Exceptions are a kernel's own over its waits also where it keeps nothing else, and so are those of an orchestration."""
        handle = Pto.Callable.kernel(self.cxx("handle", HANDLE), core="aiv", args=1)
        chip = Pto.ChipOrchestration.new(self.cxx("orchestration", ORCHESTRATION), None)
        chip.add_kernel(0, "in", Pto.Callable.kernel(self.cxx("in", HANDLE), core="aiv", args=1))
        for worker in self.workers(clusters=4):
            x = np.zeros(8, "i8")
            for _ in range(3):
                worker.run(lambda orch, x: orch.submit(handle, x.update(), block_dim=8, sync_start=True), x)
            np.testing.assert_array_equal(x, 3000000)
            worker.run(worker.register(chip), x)
            np.testing.assert_array_equal(x, 27000000)

    def test_handlers_that_end(self):
        """A kernel that ends in a handler, however it does, leaves its threads no exception."""
        handle = Pto.Callable.kernel(self.cxx("handle", HANDLE), core="aiv", args=1)
        ways = (("volatile int64_t *volatile nowhere = nullptr; *nowhere = 1;", "crashed: Segmentation fault"),
                ('for (;;) __asm__ volatile ("");', "Not there: .*block 3|did not return"), ("__builtin_trap ();", "crashed"))
        for i, (end, words) in enumerate(ways):
            kernel = Pto.Callable.kernel(self.cxx(f"ends{i}", ENDS.replace("END;", end)), core="aiv", args=1)
            for worker in self.workers(clusters=4, timeout=2000 if "return" in words else 60000):
                x = np.zeros(8, "i8")
                with self.assertRaisesRegex(GLib.Error, words):
                    worker.run(lambda orch, x: orch.submit(kernel, x.update(), block_dim=8, sync_start=True), x)
                x[:] = 0
                worker.run(lambda orch, x: orch.submit(handle, x.update(), block_dim=8, sync_start=True), x)
                np.testing.assert_array_equal(x, 1000000)

    def test_together(self):
        """Cores whose kernels are at the barrier at the same time have threads of their own."""
        meet = self.kernel(COUNT.replace("own[0] =", "pto_sync_all (args); own[0] ="))
        for worker in self.workers(clusters=4):
            x = np.zeros(16, "i8")
            worker.run(lambda orch, x: orch.submit(meet, x.update(), block_dim=8, sync_start=True), x)
            self.assertEqual(len(set(x[1::2])), 8)

    def test_order(self):
        """det chooses the same, with such a kernel and with one that keeps nothing."""
        shas = set()
        for keeps in 0, 1, 1, 2:
            cube, vector = self.sides(TALK, keeps)
            for kernel, name in (cube, "cube"), (vector, "vector"):
                kernel.set_name(name)
            with Pto.Worker(platform="a2a3sim") as worker:
                for name, value in (("backend", "det"), ("seed", 5), ("trace", 1)):
                    worker.set_parameter(name, value)
                x = np.zeros(16, "i8")
                worker.run(lambda orch, x: orch.submit_mixed(cube, vector, None, x.update(), block_dim=8), x)
                np.testing.assert_array_equal(x, 1000)
                shas.add(worker.trace.get_sha256())
        self.assertEqual(len(shas), 1)

    def test_refusals(self):
        """What such a kernel asks for and cannot have, or waits for in vain, is said as of any other."""
        for text, words in (REFUSED, "there is no pipe 99"), (WAITS, "TPOP() from pipe 3"), (STRAY, "crashed: Segmentation fault"):
            cube, vector = self.sides(text, 0)
            # Short only where nothing else would end the run: on a busy machine anything may take half a second.
            for worker in self.workers(timeout=1000 if text == WAITS else 60000):
                x = np.zeros(16, "i8")
                for _ in range(1 if text == WAITS else 2):
                    with self.assertRaisesRegex(GLib.Error, words.replace("(", r"\(").replace(")", r"\)")):
                        worker.run(lambda orch, x: orch.submit_mixed(cube, vector, None, x.update(), block_dim=2), x)
                count = self.kernel(COUNT)
                worker.run(lambda orch, x: orch.submit(count, x.update(), block_dim=8), x)
                self.assertTrue(x[1::2].all())

    def test_access(self):
        """Accesses are checked where it runs: its stack is its own, also for pipes."""
        cube, vector = self.sides(TALK, 1)
        wild = self.kernel(COUNT.replace("own[0] = n++", "n++; cells (args[0])[100] = 1; own[0] = n"))
        for worker in self.workers(check="access"):
            x, y = np.zeros(16, "i8"), np.zeros(200, "i8")
            worker.run(lambda orch, x: orch.submit_mixed(cube, vector, None, x.update(), block_dim=8), x)
            np.testing.assert_array_equal(x, 1000)
            with self.assertRaisesRegex(GLib.Error, "wrote to bytes 800 to 807 of the memory of its argument 0") as caught:
                worker.run(lambda orch, y: orch.submit(wild, y[:16].update()), y)
            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.ACCESS), caught.exception)


tap.main()
