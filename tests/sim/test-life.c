/* test-life.c: what does a chip cost while it lives, idle, at work and in company?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"
#include "still.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define WORDS 64

struct sums
{
  uint64_t words[WORDS];
  uint32_t n;
};

/* args: word, value. Not commutative. */
static void
kernel_step (int64_t *args)
{
  uint64_t *word = sim_data (args, 0);

  *word = *word * 31 + (uint64_t) args[1];
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = (volatile int *) (uintptr_t) 8;

  *nowhere = 1;
}

static void
kernel_none (int64_t *args)
{
}

static const struct pto_kernel kernels[] = {
  { "step", kernel_step, PTO_CORE_TYPE_AIV, { .base_ns = 2000 } },
  { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  { "matrix-step", kernel_step, PTO_CORE_TYPE_AIC, { .base_ns = 2000 } },
  { "none", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = 2000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* 64 chains side by side, in scopes of 50 tasks, with a buffer each. */
static int
chains (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 }, many[] = { 100 };
  struct sums *s = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < s->n;)
    PTO2_SCOPE (rt)
    {
      for (uint32_t k = 0; k < 50 && i < s->n; k++, i++)
        {
          Tensor word = make_tensor_external (&s->words[i % WORDS], one, 1, PTO_DTYPE_UINT64);
          PTOParam params[] = { make_inout_param (word), make_scalar_param (i),
                                make_output_param (make_tensor (many, 1, PTO_DTYPE_FLOAT32)) };
          int32_t kernel = i % 3 == 0 ? 2 : 0;

          pto2_rt_submit_task (rt, kernel, (int32_t) kernels[kernel].core_type, params, 3);
        }
    }
  return 0;
}

static bool
sums_are_right (const struct sums *s)
{
  uint64_t expected[WORDS] = { 0 };

  for (uint32_t i = 0; i < s->n; i++)
    expected[i % WORDS] = expected[i % WORDS] * 31 + i;
  return memcmp (expected, s->words, sizeof expected) == 0;
}

static void
run_chains (struct pto_chip *chip, uint32_t n, struct pto_run_stats *stats)
{
  struct sums s = { .n = n };

  sim_run (chip, &program, chains, &s, stats);
  g_assert_true (sums_are_right (&s));
}

/* As many cores as there may be, of one scheduler and of some whose parts are not equal; a thread
 * each would be a load for the machine and show nothing else. */
static void
test_largest (enum pto_backend backend)
{
  static const char *const settings[]
      = { "clusters=1024", "clusters=1024 aicpu-threads=2", "clusters=1023 aicpu-threads=5" };

  if (backend == PTO_BACKEND_THREADS)
    {
      g_test_skip ("a thread for each of 3072 cores");
      return;
    }
  for (uint32_t i = RUN_SHORT ? G_N_ELEMENTS (settings) - 1 : 0; i < G_N_ELEMENTS (settings); i++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[i]);
      struct pto_run_stats stats;

      run_chains (chip, 5000, &stats);
      g_assert_cmpuint (stats.completed, ==, 5000);
      pto_chip_free (chip);
    }
}

/* --- A15 --- */

static int
give_up (PTO2Runtime *rt, void *data)
{
  chains (rt, data);
  return 1;
}

static int
crash (PTO2Runtime *rt, void *data)
{
  pto2_rt_submit_task (rt, 1, AIV, NULL, 0);
  return chains (rt, data);
}

static int
deadlock (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 100; i++)
    pto2_rt_submit_task (rt, 3, AIV, NULL, 0);
  return 0;
}

/* Runs of all kinds, good and bad. */
static void
some_run (struct pto_chip *chip, uint32_t number)
{
  struct pto_run_config record = { .record = PTO_TRACE_LEVEL_GRAPH };
  struct pto_report report = { 0 };
  struct sums s = { .n = 40 };
  enum pto_status status;

  switch (number % 8)
    {
    case 1:
      status = pto_chip_run (chip, &program, NULL, give_up, &s, NULL, &report);
      g_assert_cmpint (status, ==, PTO_STATUS_EXPLICIT);
      break;
    case 3:
#ifdef SIM_SANITIZED
      (void) crash;
#else
      status = pto_chip_run (chip, &program, NULL, crash, &s, NULL, &report);
      g_assert_cmpint (status, ==, PTO_STATUS_KERNEL_FAULT);
#endif
      break;
    case 5:
      status = pto_chip_run (chip, &program, NULL, deadlock, NULL, NULL, &report);
      g_assert_cmpint (status, ==, PTO_STATUS_TASK_RING);
      break;
    case 7:
      status = pto_chip_run (chip, &program, &record, chains, &s, NULL, &report);
      g_assert_cmpint (status, ==, PTO_OK);
      g_assert_true (sums_are_right (&s));
      break;
    default:
      run_chains (chip, 40, NULL);
      break;
    }
}

static void
test_thousand_runs (enum pto_backend backend)
{
  struct pto_chip *chip
      = sim_chip (backend, "task-window=64 heap=1M clusters=4 trace-records=1000");
  unsigned int threads, descriptors, mappings;
  uint64_t resident;

  /* What grows once has grown by then: the ring was round, every core has had every kind of run. */
  for (uint32_t i = 0; i < 200; i++)
    some_run (chip, i);
  threads = sim_count_threads ();
  descriptors = sim_count_descriptors ();
  mappings = sim_count_mappings ();
  resident = sim_resident_bytes ();
  for (uint32_t i = 0; i < SCALE (1000); i++)
    some_run (chip, i);
  sim_assert_threads (threads);
  g_assert_cmpuint (sim_count_descriptors (), ==, descriptors);
  /* A thread that runs its first kernel late maps its signal stack late: two lines each, once. */
  g_assert_cmpuint (sim_count_mappings (), <=, mappings + 2 * threads);
#ifndef SIM_SANITIZED
  g_assert_cmpint ((gint64) (sim_resident_bytes () - resident), <, 512 * 1024);
#else
  (void) resident;
#endif
  pto_chip_free (chip);
}

/* Making and freeing chips leaves nothing behind. */
static void
test_chips_come_and_go (enum pto_backend backend)
{
  unsigned int threads = 0, descriptors = 0, mappings = 0;
  uint64_t resident = 0;

  for (uint32_t i = 0; i < SCALE (200) + 10; i++)
    {
      struct pto_chip *chip = sim_chip (backend, "clusters=4");

      run_chains (chip, 100, NULL);
      pto_chip_free (chip);
      if (i != 9)
        continue;
      threads = sim_count_threads ();
      descriptors = sim_count_descriptors ();
      mappings = sim_count_mappings ();
      resident = sim_resident_bytes ();
    }
  sim_assert_threads (threads);
  g_assert_cmpuint (sim_count_descriptors (), ==, descriptors);
#ifndef SIM_SANITIZED
  g_assert_cmpuint (sim_count_mappings (), <=, mappings + 2);
  /* An emulator's own memory counts too, and grows with each new thread. */
  if (!RUN_SHORT)
    g_assert_cmpint ((gint64) (sim_resident_bytes () - resident), <, 1024 * 1024);
#else
  (void) mappings;
  (void) resident;
#endif
}

/* Nor do machines, one of them in the place of another: not a table of theirs. */
static void
test_machines_come_and_go (enum pto_backend backend)
{
#ifdef SIM_SANITIZED
  g_test_skip ("its allocator does not count");
#else
  struct pto_chip *chip = sim_chip (backend, "clusters=4");
  size_t before = 0;

  for (uint32_t i = 0; i <= 300; i++)
    {
      struct pto_run_config config = { .block_dim = i % 4 + 1, .aicpu_threads = i % 2 + 2 };
      struct pto_report report = { 0 };
      struct sums s = { .n = 10 };

      g_assert_cmpint (pto_chip_run (chip, &program, &config, chains, &s, NULL, &report), ==,
                       PTO_OK);
      /* What the threads' caches of the allocator hold has settled by then. */
      if (i == 100)
        before = mallinfo2 ().uordblks;
    }
  g_test_message ("%" G_GSSIZE_FORMAT " bytes", (gssize) (mallinfo2 ().uordblks - before));
  /* The smallest table of 200 machines. */
  g_assert_cmpint ((gssize) (mallinfo2 ().uordblks - before), <, 200 * 24);
  pto_chip_free (chip);
#endif
}

/* --- B18 --- */

static void
test_idle_uses_no_cpu (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  pid_t own = getpid ();

  for (int i = 0; i < 2; i++)
    {
      still_wait (&own, 1);
      run_chains (chip, 1000, NULL);
    }
  still_wait (&own, 1);
  pto_chip_free (chip);
}

static void
test_all_cores_work (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int i = 0; i < 3; i++)
    {
      struct pto_run_stats stats;

      run_chains (chip, SCALE (20000), &stats);
      g_assert_cmpuint (stats.tasks, ==, SCALE (20000));
    }
  pto_chip_free (chip);
}

struct company
{
  struct pto_chip *chip;
  struct sums sums[5];
  int wrong;
};

static void *
run_in_company (void *data)
{
  struct company *c = data;

  for (int i = 0; i < 5; i++)
    {
      struct pto_report report = { 0 };

      c->sums[i].n = 200 + SCALE (1800);
      c->wrong
          += pto_chip_run (c->chip, &program, NULL, chains, &c->sums[i], NULL, &report) != PTO_OK;
      c->wrong += !sums_are_right (&c->sums[i]);
    }
  return NULL;
}

static void
test_eight_chips (enum pto_backend backend)
{
  struct company *company = g_new0 (struct company, 8);
  pthread_t threads[8];

  for (int i = 0; i < 8; i++)
    company[i].chip = sim_chip (backend, NULL);
  for (int i = 0; i < 8; i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, run_in_company, &company[i]), ==, 0);
  for (int i = 0; i < 8; i++)
    {
      pthread_join (threads[i], NULL);
      g_assert_cmpint (company[i].wrong, ==, 0);
    }
  for (int i = 0; i < 8; i++)
    pto_chip_free (company[i].chip);
  g_free (company);
}

/* One chip, a thread after the other. */
static void
test_thread_after_thread (enum pto_backend backend)
{
  struct company *company = g_new0 (struct company, 1);

  company->chip = sim_chip (backend, "clusters=4");
  for (int i = 0; i < 4; i++)
    {
      pthread_t thread;

      memset (company->sums, 0, sizeof company->sums);
      g_assert_cmpint (pthread_create (&thread, NULL, run_in_company, company), ==, 0);
      pthread_join (thread, NULL);
      g_assert_cmpint (company->wrong, ==, 0);
      run_chains (company->chip, 100, NULL);
    }
  pto_chip_free (company->chip);
  g_free (company);
}

static void
test_1152_cores (enum pto_backend backend)
{
  struct pto_run_stats stats;
  struct pto_chip *chip;

  if (backend == PTO_BACKEND_THREADS)
    {
      g_test_skip ("a thread a core would be too many");
      return;
    }
  chip = sim_chip (backend, "clusters=384 stack=64K");
  for (int i = 0; i < 3; i++)
    run_chains (chip, SCALE (20000), &stats);
  g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, 384);
  g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 768);
  pto_chip_free (chip);
}

/* Each core has its turn: tasks that depend on nothing, more than there are cores. */
static int
independent (PTO2Runtime *rt, void *data)
{
  static uint64_t word;
  static const uint64_t one[] = { 1 };

  for (uint32_t i = 0; i < *(uint32_t *) data; i++)
    {
      Tensor t = make_tensor_external (&word, one, 1, PTO_DTYPE_UINT64);
      PTOParam params[] = { make_inout_param (t), make_scalar_param (0) };

      params[0].type = PTO_PARAM_NO_DEP;
      pto2_rt_submit_task (rt, 0, AIV, params, 2);
    }
  return 0;
}

static void
test_1152_cores_all_used (enum pto_backend backend)
{
  /* 2 us a kernel and half a us a submit would keep a few cores busy: long kernels, then. */
  static const struct pto_kernel long_kernels[]
      = { { "long", kernel_step, PTO_CORE_TYPE_AIV, { .base_ns = 1e7 } } };
  static const struct pto_program long_program = { long_kernels, 1 };
  struct pto_chip *chip = sim_chip (backend, "clusters=384 stack=64K");
  struct pto_trace_topology topology;
  struct pto_run_stats stats;
  const struct pto_trace *trace;
  uint32_t n = 2 * 768;

  trace = sim_record (chip, &long_program, independent, &n, &stats);
  pto_chip_trace_topology (chip, &topology);
  g_assert_cmpuint (topology.n_cores, ==, 1152);
  for (uint32_t c = 0; c < topology.n_cores; c++)
    g_assert_cmpuint (trace->buffers[1 + topology.n_schedulers + c].count, ==, c % 3 == 0 ? 0 : 4);
  sim_assert_trace (chip, &stats);
  pto_chip_free (chip);
}

/* --- geometry of a run --- */

static void
test_geometry (enum pto_backend backend)
{
  static const struct
  {
    uint32_t block_dim, threads;   /* asked for */
    uint32_t clusters, schedulers; /* got */
  } rows[]
      = { { 0, 0, 24, 3 }, { 1, 0, 1, 1 }, { 4, 0, 4, 3 },  { 24, 0, 24, 3 }, { 24, 2, 24, 1 },
          { 4, 5, 4, 4 },  { 2, 4, 2, 2 }, { 0, 6, 24, 5 }, { 1, 2, 1, 1 },   { 0, 0, 24, 3 } };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int round = 0; round < 3; round++)
    for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
      for (int trace = 0; trace < 2; trace++)
        {
          struct pto_run_config config = { .block_dim = rows[i].block_dim,
                                           .aicpu_threads = rows[i].threads,
                                           .record = trace != 0 ? PTO_TRACE_LEVEL_GRAPH : 0 };
          struct pto_trace_topology topology;
          struct pto_report report = { 0 };
          struct pto_run_stats stats;
          struct sums s = { .n = 200 };

          g_assert_cmpint (pto_chip_run (chip, &program, &config, chains, &s, &stats, &report), ==,
                           PTO_OK);
          g_assert_cmpstr (report.message, ==, "");
          g_assert_true (sums_are_right (&s));
          g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, rows[i].clusters);
          g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 2 * rows[i].clusters);
          pto_chip_trace_topology (chip, &topology);
          g_assert_cmpuint (topology.n_clusters, ==, rows[i].clusters);
          g_assert_cmpuint (topology.n_schedulers, ==, rows[i].schedulers);
          if (trace != 0)
            sim_assert_trace (chip, &stats);
        }
  pto_chip_free (chip);
}

/* What signals do is the program's again when the last chip is gone, also one that came to nothing.
 */
static void
test_signals (enum pto_backend backend)
{
  static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
  struct sigaction before[G_N_ELEMENTS (signals)];

  for (gsize i = 0; i < G_N_ELEMENTS (signals); i++)
    g_assert_cmpint (sigaction (signals[i], NULL, &before[i]), ==, 0);
  for (int round = 0; round < 2; round++)
    {
      struct pto_chip *chip = NULL;
      struct pto_report report = { 0 };
      struct pto_params params;

      if (round == 0)
        chip = sim_chip (backend, NULL);
      else
        {
          pto_params_init (&params, 2);
          params.values[PTO_PARAMETER_BACKEND] = backend;
          params.values[PTO_PARAMETER_CLUSTERS] = 1;
          params.values[PTO_PARAMETER_AICPU_THREADS] = 4;
          g_assert_null (pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report));
        }
      for (gsize i = 0; i < G_N_ELEMENTS (signals); i++)
        {
          struct sigaction now;

          g_assert_cmpint (sigaction (signals[i], NULL, &now), ==, 0);
          if (chip != NULL)
            g_assert_true (now.sa_sigaction != before[i].sa_sigaction);
        }
      pto_chip_free (chip);
      for (gsize i = 0; i < G_N_ELEMENTS (signals); i++)
        {
          struct sigaction now;

          g_assert_cmpint (sigaction (signals[i], NULL, &now), ==, 0);
          g_assert_true (now.sa_sigaction == before[i].sa_sigaction);
        }
    }
}

static void
add_tests (void)
{
  sim_add ("life/signals", test_signals);
  sim_add ("life/thousand-runs", test_thousand_runs);
  sim_add ("life/chips-come-and-go", test_chips_come_and_go);
  sim_add ("life/machines-come-and-go", test_machines_come_and_go);
  sim_add ("life/idle-uses-no-cpu", test_idle_uses_no_cpu);
  sim_add ("life/all-cores-work", test_all_cores_work);
  sim_add ("life/eight-chips", test_eight_chips);
  sim_add ("life/thread-after-thread", test_thread_after_thread);
  sim_add ("life/1152-cores", test_1152_cores);
  sim_add_once ("life/1152-cores-all-used", test_1152_cores_all_used);
  sim_add ("life/largest", test_largest);
  sim_add ("life/geometry", test_geometry);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
