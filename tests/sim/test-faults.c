/* test-faults.c: who survives a kernel that crashes, hangs or writes where it must not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Not under sanitizers: they take faults for their own.
 */
#include "sim-test.h"

#include "../../pto/core/graph-plan.h"
#include "../../sim/chip-private.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t runs;

/* --- kernels --- */

static NOT_SANITIZED void
kernel_segv (int64_t *args)
{
  volatile int *volatile nowhere = (volatile int *) (uintptr_t) 8;

  *nowhere = 1;
}

static NOT_SANITIZED void
kernel_fpe (int64_t *args)
{
#ifdef __x86_64__
  volatile int seven = 7, zero = 0;

  seven = seven / zero;
#else
  raise (SIGFPE);
#endif
}

static NOT_SANITIZED void
kernel_abort (int64_t *args)
{
  abort ();
}

static NOT_SANITIZED void
kernel_ill (int64_t *args)
{
  __builtin_trap ();
}

static NOT_SANITIZED int
recurse (volatile char *above)
{
  volatile char here[512];

  here[0] = above[0];
  return (here[0] == 0 ? recurse (here) : 0) + here[0];
}

static NOT_SANITIZED void
kernel_overflow (int64_t *args)
{
  volatile char here[1] = { 0 };

  atomic_store (&runs, (uint64_t) recurse (here));
}

/* Frames as large as kernels of tiles have them, not probed, as of a kernel that somebody built:
 * what is written lies at the far end, behind whatever lies below the stack. */
#define WIDE(name, bytes)                                   \
  static NOT_SANITIZED NOT_PROBED void name (int64_t *args) \
  {                                                         \
    volatile char tile[bytes];                              \
                                                            \
    for (uint64_t i = 0; i < (1u << 16); i++)               \
      tile[i] = (char) i;                                   \
    atomic_fetch_add (&runs, (uint64_t) (tile[0] != 0));    \
  }
#if defined(__GNUC__) && !defined(__clang__)
#define NOT_PROBED __attribute__ ((optimize ("no-stack-clash-protection")))
#else
#define NOT_PROBED
#endif
WIDE (kernel_wide_tile, 560 * 600 * sizeof (float))
WIDE (kernel_wide_2, (2u << 20) - 4096)
WIDE (kernel_wide_8, 8u << 20)
WIDE (kernel_wide_60, 60u << 20)

static NOT_SANITIZED void
kernel_hang (int64_t *args)
{
  volatile bool for_ever = true;

  while (for_ever)
    ;
}

/* --- in the allocator or the loader when they are ended --- */

static void *volatile kept;

static NOT_SANITIZED void
kernel_churn (int64_t *args)
{
  for (;;)
    {
      kept = malloc (3000);
      free (kept);
    }
}

static NOT_SANITIZED void
kernel_grow (int64_t *args)
{
  char *p = NULL;

  for (size_t n = 1;; n = n % (8u << 20) + 4096)
    {
      kept = p = realloc (p, n);
      if (p == NULL)
        abort ();
    }
}

static NOT_SANITIZED void
kernel_zeros (int64_t *args)
{
  for (;;)
    {
      kept = calloc (1, 100000);
      free (kept);
    }
}

static NOT_SANITIZED void
kernel_load (int64_t *args)
{
  for (;;)
    {
      kept = dlopen ("libm.so.6", RTLD_NOW);
      dlclose (kept);
    }
}

static NOT_SANITIZED ssize_t
write_for_ever (void *cookie, const char *text, size_t n)
{
  volatile bool for_ever = true;

  while (for_ever)
    ;
  return 0;
}

/* Writes from within the allocator, which holds no lock meanwhile. */
static NOT_SANITIZED void
kernel_stuck (int64_t *args)
{
  FILE *file = fopencookie (NULL, "w", (cookie_io_functions_t){ .write = write_for_ever });

  setvbuf (file, NULL, _IONBF, 0);
  malloc_info (0, file);
}

/* Does not hear the signal that is to end it; gone when the test lets it go. */
static _Atomic bool let_go;
static NOT_SANITIZED void
kernel_deaf (int64_t *args)
{
  sigset_t all;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, NULL);
  while (!atomic_load (&let_go))
    ;
  atomic_fetch_add (&runs, 1);
}

/* args: tensor, bytes behind its end */
static NOT_SANITIZED void
kernel_past (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 0);
  volatile uint8_t *data = sim_data (args, 0);

  for (uint64_t i = 0; i < t->buffer.size + (uint64_t) args[1]; i++)
    data[i] = 0x5a;
}

/* args: tensor, where behind its end one byte is flipped */
static NOT_SANITIZED void
kernel_flip (int64_t *args)
{
  volatile uint8_t *data = sim_data (args, 0);

  data[sim_tensor (args, 0)->buffer.size + (uint64_t) args[1] - 1] ^= 1;
}

/* args: which of the outputs that follow, bytes behind its end, the value of all of them (256: the
 * last one is flipped), outputs */
static NOT_SANITIZED void
kernel_one (int64_t *args)
{
  int output = 3 + (int) args[0];
  volatile uint8_t *end
      = (uint8_t *) sim_data (args, output) + sim_tensor (args, output)->buffer.size;

  if (args[2] == 256)
    end[args[1] - 1] ^= 1;
  else
    for (int64_t i = 0; i < args[1]; i++)
      end[i] = (uint8_t) args[2];
}

/* args: address */
static NOT_SANITIZED void
kernel_wild (int64_t *args)
{
  *(volatile uint8_t *) (uintptr_t) args[0] ^= 1;
}

/* args: tensor, ns */
static void
kernel_slow (int64_t *args)
{
  sim_spend_ns ((uint64_t) args[1]);
  atomic_fetch_add (&runs, 1);
}

static void
kernel_count (int64_t *args)
{
  atomic_fetch_add (&runs, 1);
}

enum
{
  SEGV,
  FPE,
  ABORT,
  ILL,
  OVERFLOW,
  WIDE_TILE,
  WIDE_2,
  WIDE_8,
  WIDE_60,
  HANG,
  DEAF,
  PAST,
  FLIP,
  ONE,
  WILD,
  SLOW,
  CHURN,
  GROW,
  ZEROS,
  LOAD,
  STUCK,
  COUNT
};

static const struct pto_kernel kernels[] = {
  [SEGV] = { "segv", kernel_segv, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [FPE] = { "fpe", kernel_fpe, PTO_CORE_TYPE_AIC, { .base_ns = 100 } },
  [ABORT] = { "abort", kernel_abort, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [ILL] = { "ill", kernel_ill, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [OVERFLOW] = { "overflow", kernel_overflow, PTO_CORE_TYPE_AIC, { .base_ns = 100 } },
  [WIDE_TILE] = { "tile", kernel_wide_tile, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [WIDE_2] = { "wide2", kernel_wide_2, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [WIDE_8] = { "wide8", kernel_wide_8, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [WIDE_60] = { "wide60", kernel_wide_60, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [HANG] = { "hang", kernel_hang, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [DEAF] = { "deaf", kernel_deaf, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [PAST] = { "past", kernel_past, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [FLIP] = { "flip", kernel_flip, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [ONE] = { "one", kernel_one, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [WILD] = { "wild", kernel_wild, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [SLOW] = { "slow", kernel_slow, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [CHURN] = { "churn", kernel_churn, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [GROW] = { "grow", kernel_grow, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [ZEROS] = { "zeros", kernel_zeros, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [LOAD] = { "load", kernel_load, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [STUCK] = { "stuck", kernel_stuck, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [COUNT] = { "count", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static bool
skipped (void)
{
#ifdef SIM_SANITIZED
  g_test_skip ("kernels that crash on purpose");
  return true;
#else
  return false;
#endif
}

/* --- orchestrations --- */

static const uint64_t shape[] = { 3, 5 };

/* Two good tasks, then the kernel: it is task 2 of ring 1. */
static int
third_task (PTO2Runtime *rt, void *data)
{
  int32_t kernel = *(int32_t *) data;

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    for (int i = 0; i < 3; i++)
      {
        PTOParam params[] = { make_output_param (make_tensor (shape, 2, PTO_DTYPE_INT16)) };

        if (i < 2)
          pto2_rt_submit_task (rt, COUNT, AIV, params, 1);
        else
          pto2_rt_submit_task (rt, kernel, (int32_t) kernels[kernel].core_type, params, 1);
      }
  }
  return 0;
}

struct stray
{
  int32_t kernel;
  uint64_t bytes;
};

/* The second output of its task. */
static int
stray (PTO2Runtime *rt, void *data)
{
  const struct stray *s = data;

  pto2_rt_init_tensor_pool (rt);
  {
    PTOParam params[] = { make_output_param (make_tensor (shape, 2, PTO_DTYPE_INT16)),
                          make_scalar_param (s->bytes),
                          make_output_param (make_tensor (shape, 1, PTO_DTYPE_UINT64)) };

    pto2_rt_submit_task (rt, s->kernel, AIV, params, 3);
  }
  return 0;
}

#define OUTPUTS 4u

struct one
{
  uint64_t which;
  uint64_t bytes;
  uint64_t value;
};

static int
one_of_outputs (PTO2Runtime *rt, void *data)
{
  const struct one *o = data;
  PTOParam params[3 + OUTPUTS] = { make_scalar_param (o->which), make_scalar_param (o->bytes),
                                   make_scalar_param (o->value) };

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < OUTPUTS; i++)
    params[3 + i] = make_output_param (make_tensor (shape, 2, PTO_DTYPE_INT16));
  pto2_rt_submit_task (rt, ONE, AIV, params, 3 + OUTPUTS);
  return 0;
}

/* Memory of the runtime that another task has made; NO_DEP is for those that look after it
 * themselves. */
static int
later_stray (PTO2Runtime *rt, void *data)
{
  const struct stray *s = data;
  Tensor t;

  pto2_rt_init_tensor_pool (rt);
  t = make_tensor (shape, 2, PTO_DTYPE_INT16);
  {
    PTOParam first[] = { make_output_param (t) };
    PTOParam second[] = { make_inout_param (t), make_scalar_param (s->bytes) };

    pto2_rt_submit_task (rt, COUNT, AIV, first, 1);
    pto2_rt_submit_task (rt, s->kernel, AIV, second, 2);
    pto2_rt_submit_task (rt, COUNT, AIV, second, 1);
  }
  return 0;
}

struct device_stray
{
  struct stray stray;
  uint64_t addresses[2];
  uint32_t n;
};

static int
device_stray (PTO2Runtime *rt, void *data)
{
  const struct device_stray *s = data;
  static const uint64_t bytes[] = { 100 };

  for (uint32_t i = 0; i < s->n; i++)
    {
      Tensor t
          = make_tensor_external ((void *) (uintptr_t) s->addresses[i], bytes, 1, PTO_DTYPE_UINT8);
      PTOParam params[] = { make_inout_param (t), make_scalar_param (s->stray.bytes) };

      pto2_rt_submit_task (rt, s->stray.kernel, AIV, params, 2);
    }
  return 0;
}

/* A task that has the memory as what it says writes past it, then one that updates it. */
struct read_stray
{
  uint64_t address;
  uint32_t type;
  bool is_made; /* by the runtime */
  bool strays;
  int64_t at;   /* the byte that is written, from 1 after the end */
  bool is_wild; /* the memory is the runtime's, and a task that does not have it writes past it */
};

/* The one that writes comes after the one that makes the memory, and before the others. */
static int
wild_stray (PTO2Runtime *rt)
{
  Tensor t, u;
  PTOParam makes[2], strays[2], reads[2];

  pto2_rt_init_tensor_pool (rt);
  t = make_tensor (shape, 2, PTO_DTYPE_INT16);
  u = make_tensor (shape, 2, PTO_DTYPE_INT16);
  makes[0] = make_output_param (t);
  makes[1] = make_output_param (u);
  pto2_rt_submit_task (rt, COUNT, AIV, makes, 2);
  strays[0] = make_scalar_param (makes[0].tensor.buffer.addr + 30 + 2);
  strays[1] = make_inout_param (u);
  pto2_rt_submit_task (rt, WILD, AIV, strays, 2);
  reads[0] = make_input_param (t);
  reads[1] = make_input_param (u);
  pto2_rt_submit_task (rt, COUNT, AIV, reads, 2);
  return 0;
}

static int
read_stray (PTO2Runtime *rt, void *data)
{
  const struct read_stray *s = data;
  static const uint64_t bytes[] = { 100 };
  Tensor t = make_tensor_external ((void *) (uintptr_t) s->address, bytes, 1, PTO_DTYPE_UINT8);
  PTOParam first[]
      = { make_input_param (t), make_scalar_param ((uint64_t) s->at), make_input_param (t) };
  PTOParam second[] = { make_inout_param (t), make_scalar_param (0) };

  if (s->is_wild)
    return wild_stray (rt);
  if (s->is_made)
    {
      PTOParam params[2];

      pto2_rt_init_tensor_pool (rt);
      t = make_tensor (shape, 2, PTO_DTYPE_INT16);
      params[0] = make_output_param (t);
      first[0] = make_input_param (t);
      second[0] = make_inout_param (t);
      /* So that what is given as NO_DEP is there. */
      t = make_tensor (shape, 1, PTO_DTYPE_INT16);
      params[1] = make_output_param (t);
      first[2] = make_input_param (t);
      pto2_rt_submit_task (rt, COUNT, AIV, params, 2);
    }
  first[0].type = (PTOParamType) s->type;
  pto2_rt_submit_task (rt, s->strays ? FLIP : COUNT, AIV, first,
                       s->is_made  ? 3
                       : s->strays ? 2
                                   : 1);
  pto2_rt_submit_task (rt, COUNT, AIV, second, 1);
  return 0;
}

/* Tasks that only read the memory begin before the one that writes past it, and end after it. */
static int
stray_beside_readers (PTO2Runtime *rt, void *data)
{
  const struct read_stray *s = data;
  Tensor t;
  PTOParam makes[1], reads[2], strays[2];

  pto2_rt_init_tensor_pool (rt);
  t = make_tensor (shape, 2, PTO_DTYPE_INT16);
  makes[0] = make_output_param (t);
  pto2_rt_submit_task (rt, COUNT, AIV, makes, 1);
  reads[0] = strays[0] = make_input_param (t);
  reads[1] = make_scalar_param (0);
  strays[1] = make_scalar_param ((uint64_t) s->at);
  for (int i = 0; i < 3; i++)
    pto2_rt_submit_task (rt, COUNT, AIV, reads, 2);
  pto2_rt_submit_task (rt, FLIP, AIV, strays, 2);
  for (int i = 0; i < 3; i++)
    pto2_rt_submit_task (rt, COUNT, AIV, reads, 2);
  return 0;
}

struct wild
{
  uint64_t address;
  int result;
};

/* A task that does not say where it writes. */
static int
wild (PTO2Runtime *rt, void *data)
{
  const struct wild *w = data;
  PTOParam params[] = { make_scalar_param (w->address) };

  pto2_rt_submit_task (rt, WILD, AIV, params, 1);
  return w->result;
}

struct chain
{
  uint32_t n;
  uint64_t ns;
  bool beside_a_long_one;
  uint64_t word, other;
};

static int
chain (PTO2Runtime *rt, void *data)
{
  struct chain *c = data;
  static const uint64_t one[] = { 1 };

  if (c->beside_a_long_one)
    {
      PTOParam params[]
          = { make_inout_param (make_tensor_external (&c->other, one, 1, PTO_DTYPE_UINT64)),
              make_scalar_param (c->n * c->ns) };

      pto2_rt_submit_task (rt, SLOW, AIV, params, 2);
    }
  for (uint32_t i = 0; i < c->n; i++)
    {
      PTOParam params[]
          = { make_inout_param (make_tensor_external (&c->word, one, 1, PTO_DTYPE_UINT64)),
              make_scalar_param (c->ns) };

      pto2_rt_submit_task (rt, SLOW, AIV, params, 2);
    }
  return 0;
}

/* --- tests --- */

/* The message begins with where it happened: a core of the right kind. */
static void
fails (struct pto_chip *chip, int32_t kernel, enum pto_status status, const char *says)
{
  char *task = g_strdup_printf ("task 2 of ring 1 (%s) on core %s", kernels[kernel].name,
                                kernels[kernel].core_type == PTO_CORE_TYPE_AIC ? "AIC" : "AIV");

  sim_run_fails (chip, &program, third_task, &kernel, status, task, says, NULL);
  sim_assert_well (chip);
  g_free (task);
}

static void
test_crashes (enum pto_backend backend)
{
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  struct pto_chip *chip;
  sigset_t before, after;
  int32_t kernel = SEGV;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  pthread_sigmask (SIG_SETMASK, NULL, &before);
  for (int i = 0; i < 3; i++)
    {
      fails (chip, SEGV, PTO_STATUS_KERNEL_FAULT, "Segmentation fault (signal 11) at address 0x8");
      fails (chip, FPE, PTO_STATUS_KERNEL_FAULT, "(signal 8)");
      fails (chip, ABORT, PTO_STATUS_KERNEL_FAULT, "(signal 6)");
#ifdef __x86_64__
      fails (chip, ILL, PTO_STATUS_KERNEL_FAULT, "(signal 4)");
#endif
    }
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, third_task, &kernel, &stats, &report), ==,
                   PTO_STATUS_KERNEL_FAULT);
  g_assert_cmpuint (stats.cut_off, ==, 1);
  kernel = COUNT;
  sim_run (chip, &program, third_task, &kernel, &stats);
  g_assert_cmpuint (stats.cut_off, ==, 0);
  pthread_sigmask (SIG_SETMASK, NULL, &after);
  for (int signo = 1; signo < SIGRTMIN; signo++)
    g_assert_cmpint (sigismember (&after, signo), ==, sigismember (&before, signo));
  pto_chip_free (chip);
}

static void
test_stack_overflow (enum pto_backend backend)
{
  static const char *const settings[] = { "stack=64K", "stack=1M" };

  if (skipped ())
    return;
  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[i]);

      for (int n = 0; n < 3; n++)
        fails (chip, OVERFLOW, PTO_STATUS_KERNEL_FAULT,
               i == 0 ? "needs more than the core's stack of 65536 bytes: set stack to more"
                      : "stack of 1048576 bytes");
      pto_chip_free (chip);
    }
}

static void
test_wide_frames (enum pto_backend backend)
{
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  for (int32_t kernel = WIDE_TILE; kernel <= WIDE_60; kernel++)
    for (int n = 0; n < 3; n++)
      fails (chip, kernel, PTO_STATUS_KERNEL_FAULT,
             "needs more than the core's stack of 1048576 bytes: set stack to more");
  pto_chip_free (chip);
  /* With which it passes. */
  chip = sim_chip (backend, "stack=3M");
  for (int32_t kernel = WIDE_TILE; kernel <= WIDE_2; kernel++)
    sim_run (chip, &program, third_task, &kernel, NULL);
  pto_chip_free (chip);
}

static void
test_hang (enum pto_backend backend)
{
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, "timeout=400");
  for (int i = 0; i < 2; i++)
    fails (chip, HANG, PTO_STATUS_KERNEL_HANG,
           "did not return and no other task finished for 400 ms: set timeout to more if it needs "
           "longer, and call pto_relax() in a loop that waits for another kernel");
  pto_chip_free (chip);
}

/* No lock is held: these take all that there are. */
static void
use_allocator_and_loader (void)
{
  void *object = dlopen ("libm.so.6", RTLD_NOW);

  g_assert_nonnull (object);
  dlclose (object);
  malloc_trim (0);
}

/* It comes out between two calls, and is ended there. */
static void
test_hang_in_allocator (enum pto_backend backend)
{
  struct pto_chip *chip;

  if (skipped ())
    return;
  /* On a busy machine one call may take as long as a short limit. */
  chip = sim_chip (backend, "timeout=500");
  for (int32_t kernel = CHURN; kernel <= LOAD; kernel++)
    for (uint32_t i = 0; i < 2; i++)
      {
        fails (chip, kernel, PTO_STATUS_KERNEL_HANG,
               "did not return and no other task finished for 500 ms");
        use_allocator_and_loader ();
      }
  pto_chip_free (chip);
}

/* It does not, and is ended there all the same: then a lock may stay held. */
static void
test_stuck_in_allocator (enum pto_backend backend)
{
  struct pto_report report = { 0 };
  struct pto_chip *chip;
  int32_t kernel = STUCK;

  if (skipped ())
    return;
  chip = sim_chip (backend, "timeout=200");
  sim_run_fails (chip, &program, third_task, &kernel, PTO_STATUS_KERNEL_HANG, "(stuck) on core AIV",
                 "was ended inside malloc(), fork() or the loader",
                 "this process is not safe to go on in", NULL);
  kernel = COUNT;
  sim_run_fails (chip, &program, third_task, &kernel, PTO_STATUS_SYSTEM,
                 "ended inside malloc(), fork() or the loader", "not safe to go on in", NULL);
  g_assert_null (pto_chip_renew (chip, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_SYSTEM);
  pto_chip_free (chip);
}

/* On every core at once. */
static int
all_hang (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 8; i++)
    pto2_rt_submit_task (rt, HANG, AIV, NULL, 0);
  return 0;
}

static void
test_all_hang (enum pto_backend backend)
{
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, "timeout=800 clusters=2 aicpu-threads=3");
  for (int i = 0; i < 2; i++)
    {
      sim_run_fails (chip, &program, all_hang, NULL, PTO_STATUS_KERNEL_HANG, "(hang) on core AIV",
                     NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* Chip of one cluster: the core that a fault hit is the one that works on. */
static void
test_same_core_works_on (enum pto_backend backend)
{
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, "clusters=1 aicpu-threads=2 timeout=400");
  for (int i = 0; i < 5; i++)
    {
      fails (chip, SEGV, PTO_STATUS_KERNEL_FAULT, "AIV");
      fails (chip, FPE, PTO_STATUS_KERNEL_FAULT, "AIC0");
      fails (chip, OVERFLOW, PTO_STATUS_KERNEL_FAULT, "AIC0");
    }
  fails (chip, HANG, PTO_STATUS_KERNEL_HANG, "AIV");
  pto_chip_free (chip);
}

static void
test_write_past_output (enum pto_backend backend)
{
  static const struct
  {
    struct stray stray;
    const char *says;
  } rows[] = {
    { { PAST, 1 }, "the kernel wrote at least 1 byte past argument 0 (declared int16 [3, 5])" },
    { { PAST, 64 }, "the kernel wrote at least 64 bytes past argument 0 (declared int16 [3, 5])" },
    { { FLIP, 1 }, "the kernel wrote at least 1 byte past argument 0" },
    { { FLIP, 37 }, "the kernel wrote at least 37 bytes past argument 0" },
    { { FLIP, 64 }, "the kernel wrote at least 64 bytes past argument 0" },
  };
  struct pto_chip *chip;
  struct stray none = { PAST, 0 };

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      struct stray s = rows[i].stray;

      sim_run_fails (chip, &program, stray, &s, PTO_STATUS_OUT_OF_BOUNDS, "task 0 of ring 0 (",
                     kernels[s.kernel].name, ") on core AIV", rows[i].says, NULL);
      sim_run (chip, &program, stray, &none, NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* Every output, every length of the guard, every byte of it; and whatever is written twice or more
 * often. */
static void
test_write_past_each_output (enum pto_backend backend)
{
  static const uint64_t guards[] = { 8, 24, 64, 304 };

  if (skipped ())
    return;
  for (gsize g = 0; g < G_N_ELEMENTS (guards); g++)
    {
      g_autofree char *settings = g_strdup_printf ("guard=%u", (guint) guards[g]);
      struct pto_chip *chip = sim_chip (backend, settings);
      const uint64_t bytes[] = { 1, guards[g] / 2 + 1, guards[g] };

      for (uint32_t which = 0; which < OUTPUTS; which++)
        for (gsize i = 0; i < G_N_ELEMENTS (bytes); i++)
          {
            struct one o = { which, bytes[i], 256 };
            g_autofree char *says
                = g_strdup_printf ("the kernel wrote at least %u byte%s past argument %u (declared",
                                   (guint) o.bytes, o.bytes == 1 ? "" : "s", 3 + which);

            sim_run_fails (chip, &program, one_of_outputs, &o, PTO_STATUS_OUT_OF_BOUNDS,
                           "task 0 of ring 0 (one)", says, NULL);
          }
      for (uint64_t value = 0; value < 256; value++)
        {
          struct one o = { value % OUTPUTS, 2, value };

          sim_run_fails (chip, &program, one_of_outputs, &o, PTO_STATUS_OUT_OF_BOUNDS, "past",
                         NULL);
        }
      sim_assert_well (chip);
      pto_chip_free (chip);
    }
}

static void
test_write_past_update (enum pto_backend backend)
{
  static const uint64_t bytes[] = { 1, 40, 64 };
  struct stray none = { PAST, 0 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (bytes); i++)
    {
      struct stray s = { FLIP, bytes[i] };
      g_autofree char *says = g_strdup_printf (
          "wrote at least %u byte%s past the buffer of 30 bytes of argument 0 (declared int16 [3, 5])",
          (guint) bytes[i], bytes[i] == 1 ? "" : "s");

      sim_run_fails (chip, &program, later_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
                     "task 1 of ring 0 (flip) on core AIV", says, NULL);
      sim_run (chip, &program, later_stray, &none, NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

static void
test_write_past_device_buffer (enum pto_backend backend)
{
  struct device_stray s = { .n = 1 };
  struct pto_report report = { 0 };
  struct pto_chip *chip;
  struct wild w;
  char *address;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  s.addresses[0] = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  s.addresses[1] = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  s.stray.kernel = PAST;
  sim_run (chip, &program, device_stray, &s, NULL);
  s.stray = (struct stray){ FLIP, 1 };
  sim_run_fails (
      chip, &program, device_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
      "task 0 of ring 0 (flip) on core AIV",
      "the kernel, or one beside it, wrote at least 1 byte past the buffer of 100 bytes of "
      "argument 0 (declared uint8 [100])",
      NULL);
  sim_assert_well (chip);
  s.stray = (struct stray){ FLIP, 64 };
  sim_run_fails (chip, &program, device_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
                 "wrote at least 64 bytes past", NULL);
  sim_assert_well (chip);
  /* Nobody has said so: it is found at the end of the run. */
  w = (struct wild){ .address = s.addresses[0] - 64 };
  sim_run_fails (
      chip, &program, wild, &w, PTO_STATUS_OUT_OF_BOUNDS,
      "a kernel of this run wrote at least 64 bytes before the device buffer of 100 bytes at 0x",
      NULL);
  sim_assert_well (chip);
  for (uint32_t i = 0; i < 2; i++)
    {
      w = (struct wild){ .address = s.addresses[i] + 100 + 63 * i };
      address = g_strdup_printf (
          "a kernel of this run wrote at least %u byte%s past the device buffer of "
          "100 bytes at 0x%" G_GINT64_MODIFIER "x",
          1 + 63 * i, i == 0 ? "" : "s", s.addresses[i]);
      sim_run_fails (chip, &program, wild, &w, PTO_STATUS_OUT_OF_BOUNDS, address, NULL);
      g_free (address);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

/* The run fails, and so does a launch of its graph; then all is well. */
static void
stray_both_ways (struct pto_chip *chip, struct pto_run_config *config, struct read_stray *s,
                 const char *who, const char *says)
{
  struct pto_report report = { 0 };
  struct pto_plan *graph = pto_plan_new ();

  s->strays = true;
  sim_run_fails (chip, &program, read_stray, s, PTO_STATUS_OUT_OF_BOUNDS, who, says, NULL);
  config->capture = graph;
  g_assert_cmpint (pto_chip_run (chip, &program, config, read_stray, s, NULL, &report), ==, PTO_OK);
  config->capture = NULL;
  g_assert_cmpint (pto_chip_run (chip, &program, config, launch, graph, NULL, &report), ==,
                   PTO_STATUS_OUT_OF_BOUNDS);
  sim_assert_says (&report, PTO_STATUS_OUT_OF_BOUNDS, "(flip) on core AIV", says, NULL);
  pto_plan_free (graph);
  s->strays = false;
  sim_run (chip, &program, read_stray, s, NULL);
}

/* The same for memory that the runtime makes. */
static void
write_around_made (enum pto_backend backend, int64_t at, const char *says)
{
  static const uint32_t types[]
      = { PTO_PARAM_INPUT, PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_NO_DEP };
  struct read_stray s = { .is_made = true, .at = at };
  struct pto_run_config config = { 0 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    {
      s.type = types[i];
      stray_both_ways (chip, &config, &s, "task 1 of ring 0 (flip) on core AIV", says);
    }
  pto_chip_free (chip);
}

static void
test_write_past_made_input (enum pto_backend backend)
{
  write_around_made (
      backend, 3,
      "the kernel, or one beside it, wrote at least 3 bytes past the buffer of 30 bytes of "
      "argument 0 (declared int16 [3, 5])");
}

/* Whatever the task says that it does there, it is named, and no later one; in a graph likewise. */
static void
write_around (enum pto_backend backend, int64_t at, const char *says)
{
  static const uint32_t types[] = { PTO_PARAM_INPUT, PTO_PARAM_NO_DEP, PTO_PARAM_INOUT };
  static const uint64_t bytes[] = { 100 };
  struct read_stray s = { .at = at };
  struct pto_report report = { 0 };
  struct pto_chip_arg args[1];
  struct pto_run_config config = { .args = args, .n_args = 1 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  s.address = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  args[0] = (struct pto_chip_arg){ .word = s.address,
                                   .tensor = make_tensor_external ((void *) (uintptr_t) s.address,
                                                                   bytes, 1, PTO_DTYPE_UINT8) };
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    {
      s.type = types[i];
      stray_both_ways (chip, &config, &s, "task 0 of ring 0 (flip) on core AIV", says);
    }
  pto_chip_free (chip);
}

static void
test_write_past_input (enum pto_backend backend)
{
  write_around (
      backend, 3,
      "the kernel, or one beside it, wrote at least 3 bytes past the buffer of 100 bytes of "
      "argument 0 (declared uint8 [100])");
}

static void
test_write_before_input (enum pto_backend backend)
{
  write_around (
      backend, -102,
      "the kernel, or one beside it, wrote at least 3 bytes before the buffer of 100 bytes of "
      "argument 0 (declared uint8 [100])");
}

/* Time passes for a task when its kernel has run: by then the cores have looked. */
static void
test_write_beside_readers (enum pto_backend backend)
{
  struct read_stray s = { .at = 3 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  sim_run_fails (chip, &program, stray_beside_readers, &s, PTO_STATUS_OUT_OF_BOUNDS,
                 backend == PTO_BACKEND_DET ? "task 4 of ring 0 (flip) on core AIV" : "task ",
                 "the kernel, or one beside it, wrote at least 3 bytes past the buffer of 30 bytes",
                 NULL);
  pto_chip_free (chip);
}

/* A guard that was hurt before a task ran is not put down to that task, nor to the next run. */
static void
test_hurt_before (enum pto_backend backend)
{
  struct read_stray s = { .type = PTO_PARAM_INPUT };
  struct pto_report report = { 0 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  s.address = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  /* As the program may. */
  ((uint8_t *) (uintptr_t) s.address)[101] ^= 1;
  sim_run_fails (
      chip, &program, read_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
      "task 0 of ring 0 (count) on core AIV",
      "before it ran, at least 2 bytes past the buffer of 100 bytes of argument 0 (declared uint8 "
      "[100]) had been overwritten, by the program or by a kernel that may not write to "
      "it: check=access names the kernel",
      NULL);
  sim_run (chip, &program, read_stray, &s, NULL);
  ((uint8_t *) (uintptr_t) s.address)[-63] ^= 1;
  sim_run_fails (
      chip, &program, read_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
      "task 0 of ring 0 (count) on core AIV",
      "before it ran, at least 63 bytes before the buffer of 100 bytes of argument 0 (declared "
      "uint8 [100]) had been overwritten, by the program or by a kernel that may not "
      "write to it: check=access names the kernel",
      NULL);
  sim_run (chip, &program, read_stray, &s, NULL);
  /* Memory of the runtime: the task that reads it is not blamed, and does not know whether the
   * guard was ever there. */
  s.is_wild = true;
  sim_run (chip, &program, read_stray, &s, NULL);
  s.is_wild = false;
  s.is_made = true;
  sim_run (chip, &program, read_stray, &s, NULL);
  pto_chip_free (chip);
}

/* A run is blamed for its own writes only: two buffers hurt at once, or a run that failed anyway.
 */
static void
test_damage_does_not_outlive_run (enum pto_backend backend)
{
  struct device_stray s = { .n = 2, .stray = { FLIP, 3 } };
  struct wild w;
  struct pto_report report = { 0 };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  s.addresses[0] = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  s.addresses[1] = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
  sim_run_fails (chip, &program, device_stray, &s, PTO_STATUS_OUT_OF_BOUNDS,
                 "wrote at least 3 bytes past the buffer", NULL);
  sim_assert_well (chip);
  w = (struct wild){ .address = s.addresses[1] + 100, .result = 1 };
  sim_run_fails (chip, &program, wild, &w, PTO_STATUS_EXPLICIT, "returned 1", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* Each shorter than the timeout, all together longer. */
static void
test_slow_is_no_hang (enum pto_backend backend)
{
  struct chain c = { .n = 30, .ns = 30000000 };
  struct pto_chip *chip = sim_chip (backend, "timeout=800");

  atomic_store (&runs, 0);
  sim_run (chip, &program, chain, &c, NULL);
  g_assert_cmpuint (atomic_load (&runs), ==, 30);
  pto_chip_free (chip);
}

/* Longer than the timeout, while others finish: only without any progress is a run given up. */
static void
test_long_beside_others (enum pto_backend unused)
{
  struct chain c = { .n = 30, .ns = 30000000, .beside_a_long_one = true };
  struct pto_chip *chip = sim_chip (PTO_BACKEND_THREADS, "timeout=500");

  atomic_store (&runs, 0);
  sim_run (chip, &program, chain, &c, NULL);
  g_assert_cmpuint (atomic_load (&runs), ==, 31);
  pto_chip_free (chip);
}

/* Many chips, many faults at once: what one fault does stays with its chip. */
static void *
crash_again_and_again (void *data)
{
  struct pto_chip *chip = data;
  static int32_t all[] = { SEGV, FPE, ABORT, OVERFLOW };
  gsize wrong = 0;

  for (int i = 0; i < 40; i++)
    {
      struct pto_report report = { 0 };

      wrong += pto_chip_run (chip, &program, NULL, third_task, &all[i % 4], NULL, &report)
               != PTO_STATUS_KERNEL_FAULT;
      wrong += strstr (report.message, kernels[all[i % 4]].name) == NULL;
    }
  return GSIZE_TO_POINTER (wrong);
}

static void
test_chips_crash_apart (enum pto_backend backend)
{
  struct pto_chip *chips[4];
  pthread_t threads[4];

  if (skipped ())
    return;
  for (int i = 0; i < 4; i++)
    chips[i] = sim_chip (backend, "clusters=2 aicpu-threads=2");
  for (int i = 0; i < 4; i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, crash_again_and_again, chips[i]), ==, 0);
  for (int i = 0; i < 4; i++)
    {
      void *wrong;

      pthread_join (threads[i], &wrong);
      g_assert_cmpuint (GPOINTER_TO_SIZE (wrong), ==, 0);
      sim_assert_well (chips[i]);
      pto_chip_free (chips[i]);
    }
}

/* What a chip can not end it loses, and goes on as a new one with the same device memory. */
static void
test_lost_chip (enum pto_backend unused)
{
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  struct pto_chip *chip, *fresh;
  int32_t kernel = DEAF;
  uint64_t address;
  int value = 17;

  if (skipped ())
    return;
  chip = sim_chip (PTO_BACKEND_THREADS, "timeout=50 clusters=2 aicpu-threads=2");
  for (int i = 0; i < 2; i++)
    {
      atomic_store (&let_go, false);
      atomic_store (&runs, 0);
      address = pto_device_memory_malloc (pto_chip_memory (chip), sizeof value, &report);
      g_assert_cmpint (pto_device_memory_copy_to (pto_chip_memory (chip), address, &value,
                                                  sizeof value, &report),
                       ==, PTO_OK);
      g_assert_false (pto_chip_is_lost (chip));
      g_assert_cmpint (pto_chip_run (chip, &program, NULL, third_task, &kernel, &stats, &report),
                       !=, PTO_OK);
      g_assert_true (pto_chip_is_lost (chip));
      /* Its figures say that not all is done. */
      g_assert_cmpuint (stats.tasks, ==, 3);
      g_assert_cmpuint (stats.completed, <, 3);
      g_assert_cmpuint (stats.ring_tasks[1], ==, 3);
      g_assert_cmpuint (stats.last_task_alive[1], <=, 2);
      /* The program may be gone from now on: whoever still runs has another one. */
      for (uint32_t c = 0; c < chip->n_cores; c++)
        g_assert_cmpstr (chip->cores[c].payload.kernel->name, ==, "?");
      report.status = PTO_OK;
      g_assert_cmpint (pto_chip_run (chip, &program, NULL, third_task, &kernel, NULL, &report), ==,
                       PTO_STATUS_SYSTEM);
      memset (&report, 0, sizeof report);
      fresh = pto_chip_renew (chip, &report);
      g_assert_nonnull (fresh);
      pto_chip_free (chip);
      chip = fresh;
      sim_assert_well (chip);
      /* The other goes on in what is left of the old one, and harms nobody. */
      atomic_store (&let_go, true);
      while (atomic_load (&runs) < 3)
        sched_yield ();
      value = 0;
      g_assert_cmpint (pto_device_memory_copy_from (pto_chip_memory (chip), &value, address,
                                                    sizeof value, &report),
                       ==, PTO_OK);
      g_assert_cmpint (value, ==, 17);
      g_assert_cmpint (pto_device_memory_free (pto_chip_memory (chip), address, &report), ==,
                       PTO_OK);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* --- submits of an orchestration that is foreign code --- */

struct foreign
{
  struct pto_chip *chip;
  PTO2Runtime *rt;
  PTOParam *params;
  int32_t n_params;
  enum pto_status status;
  char why[256];
};

static void
submit_as_foreign (int64_t *args)
{
  const struct foreign *f = (const struct foreign *) (uintptr_t) args[0];

  pto2_rt_submit_task (f->rt, COUNT, AIV, f->params, f->n_params);
}

static int
foreign_submit (PTO2Runtime *rt, void *data)
{
  struct foreign *f = data;
  int64_t args[] = { (int64_t) (uintptr_t) f };

  f->rt = rt;
  f->status = pto_chip_call (f->chip, submit_as_foreign, args, f->why, sizeof f->why);
  return 0;
}

/* Parameters that are nowhere are the orchestration's own fault, none at all a refused task or one
 * without parameters. */
static void
test_parameters_of_foreign_code (enum pto_backend backend)
{
  PTOParam good[] = { make_scalar_param (1), make_scalar_param (2) };
  const struct
  {
    PTOParam *params;
    int32_t n_params;
    enum pto_status call;
    const char *says; /* of the run; NULL: it is good */
  } rows[] = {
    { NULL, 0, PTO_OK, NULL },
    { good, 2, PTO_OK, NULL },
    { good, 0, PTO_OK, NULL },
    { NULL, 3, PTO_OK, "(count): 3 parameters at (nil)" },
    { good, -1, PTO_OK, "(count): -1 parameters" },
    { (PTOParam *) (uintptr_t) 8, 0, PTO_OK, NULL },
    { (PTOParam *) (uintptr_t) 8, 2, PTO_STATUS_KERNEL_FAULT, NULL },
  };
  struct pto_chip *chip;

  if (skipped ())
    return;
  chip = sim_chip (backend, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      struct foreign f = { chip, NULL, rows[i].params, rows[i].n_params, PTO_OK, "" };
      struct pto_run_stats stats;

      if (rows[i].says != NULL)
        sim_run_fails (chip, &program, foreign_submit, &f, PTO_STATUS_INVALID_ARGS, rows[i].says,
                       NULL);
      else
        {
          sim_run (chip, &program, foreign_submit, &f, &stats);
          g_assert_cmpuint (stats.tasks, ==, rows[i].call == PTO_OK);
        }
      g_assert_cmpint (f.status, ==, rows[i].call);
      if (f.status != PTO_OK)
        g_assert_nonnull (strstr (f.why, "signal 11"));
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("faults/crashes", test_crashes);
  sim_add ("faults/stack-overflow", test_stack_overflow);
  sim_add ("faults/parameters-of-foreign-code", test_parameters_of_foreign_code);
  sim_add ("faults/wide-frames", test_wide_frames);
  sim_add ("faults/hang", test_hang);
  sim_add ("faults/all-hang", test_all_hang);
  sim_add ("faults/hang-in-allocator", test_hang_in_allocator);
  sim_add ("faults/stuck-in-allocator", test_stuck_in_allocator);
  sim_add ("faults/same-core-works-on", test_same_core_works_on);
  sim_add ("faults/write-past-output", test_write_past_output);
  sim_add ("faults/write-past-each-output", test_write_past_each_output);
  sim_add ("faults/write-past-update", test_write_past_update);
  sim_add ("faults/write-past-device-buffer", test_write_past_device_buffer);
  sim_add ("faults/write-past-input", test_write_past_input);
  sim_add ("faults/write-before-input", test_write_before_input);
  sim_add ("faults/write-past-made-input", test_write_past_made_input);
  sim_add ("faults/write-beside-readers", test_write_beside_readers);
  sim_add ("faults/hurt-before", test_hurt_before);
  sim_add ("faults/damage-does-not-outlive-run", test_damage_does_not_outlive_run);
  sim_add ("faults/slow-is-no-hang", test_slow_is_no_hang);
  sim_add_once ("faults/long-beside-others", test_long_beside_others);
  sim_add_once ("faults/lost-chip", test_lost_chip);
  sim_add ("faults/chips-crash-apart", test_chips_crash_apart);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
