/* test-build.c: do graphs that are built by hand, while the chip runs, do what they say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/api/pto_build_graph.h"
#include "../../pto/core/graph-plan.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define N 2000u
#define EDGES 4u

enum
{
  SUM,    /* data[args[0]] = 1 + the sum of those at args[2], ..., n of them: args[1] */
  NOTE,   /* is counted */
  DOUBLE, /* args[1] = 2 args[0] */
  HOLD,   /* until it may end */
  CRASH
};

static uint64_t data[N];
static _Atomic uint32_t n_noted;
static _Atomic bool may_end;

static void
kernel_sum (int64_t *args)
{
  uint64_t sum = 1;

  for (int64_t i = 0; i < args[1]; i++)
    sum += data[args[2 + i]];
  data[args[0]] = sum;
}

static void
kernel_note (int64_t *args)
{
  (void) args;
  atomic_fetch_add (&n_noted, 1);
}

static void
kernel_double (int64_t *args)
{
  const float *from = sim_data (args, 0);
  float *to = sim_data (args, 1);

  for (uint64_t i = 0; i < sim_tensor (args, 0)->shapes[0]; i++)
    to[i] = 2 * from[i];
}

static void
kernel_hold (int64_t *args)
{
  (void) args;
  while (!atomic_load (&may_end))
    sched_yield ();
}

#ifndef SIM_SANITIZED
NOT_SANITIZED static void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = (volatile int *) (uintptr_t) 8;

  (void) args;
  *nowhere = 1;
}
#else
#define kernel_crash kernel_note
#endif

static const struct pto_kernel kernels[] = {
  [SUM] = { "sum", kernel_sum, PTO_CORE_TYPE_AIC, { .base_ns = 100 } },
  [NOTE] = { "note", kernel_note, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [DOUBLE] = { "double", kernel_double, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [HOLD] = { "hold", kernel_hold, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static struct pto_chip *
chip_of (enum pto_backend backend, const char *settings)
{
  atomic_store (&n_noted, 0);
  /* On det no kernel ends before its time. */
  atomic_store (&may_end, backend == PTO_BACKEND_DET);
  memset (data, 0, sizeof data);
  return sim_chip (backend, settings);
}

static PTO2TaskId
add_note (PTO2Runtime *rt)
{
  return pto2_rt_add_task (rt, NOTE, AIV, NULL, 0);
}

/* --- graphs --- */

/* A random graph: each task comes after some of those before it. */
struct graph
{
  uint32_t n;
  uint32_t from[N][EDGES];
  uint32_t n_from[N];
  uint64_t expected[N];
  PTO2TaskId ids[N];
  bool late; /* all is published in the end, last first */
};

static struct graph *
graph_new (uint32_t n, bool late)
{
  struct graph *graph = g_new0 (struct graph, 1);

  graph->n = n;
  graph->late = late;
  for (uint32_t i = 0; i < n; i++)
    {
      graph->n_from[i] = i == 0 ? 0 : (uint32_t) g_test_rand_int_range (0, EDGES + 1);
      graph->expected[i] = 1;
      for (uint32_t e = 0; e < graph->n_from[i]; e++)
        {
          uint32_t reach = i < 40 ? i : 40;

          graph->from[i][e] = i - 1 - (uint32_t) g_test_rand_int_range (0, (int) reach);
          /* Bits, so that nothing overflows unseen. */
          graph->expected[i] += graph->expected[graph->from[i][e]];
        }
    }
  return graph;
}

static int
build (PTO2Runtime *rt, void *given)
{
  struct graph *graph = given;

  for (uint32_t i = 0; i < graph->n; i++)
    {
      PTOParam params[2 + EDGES] = { make_scalar_param (i), make_scalar_param (graph->n_from[i]) };

      for (uint32_t e = 0; e < graph->n_from[i]; e++)
        params[2 + e] = make_scalar_param (graph->from[i][e]);
      graph->ids[i] = pto2_rt_add_task (rt, SUM, AIC, params, 2 + (int32_t) graph->n_from[i]);
      for (uint32_t e = 0; e < graph->n_from[i]; e++)
        pto2_rt_add_successor_conditional (rt, graph->ids[graph->from[i][e]], graph->ids[i]);
      if (!graph->late)
        pto2_rt_publish_task (rt, graph->ids[i]);
    }
  for (uint32_t i = graph->n; i-- > 0 && graph->late;)
    pto2_rt_publish_task (rt, graph->ids[i]);
  return 0;
}

static void
test_graphs (enum pto_backend backend)
{
  static const char *const settings[]
      = { "build-mode=1", "build-mode=0", "build-mode=1 clusters=1 aicpu-threads=2" };

  for (uint32_t round = 0; round < 12; round++)
    {
      struct pto_chip *chip = chip_of (backend, settings[round / 2 % 3]);
      struct graph *graph = graph_new (SCALE (N), round % 2 == 1);
      struct pto_run_stats stats;

      sim_run (chip, &program, build, graph, &stats);
      g_assert_cmpuint (stats.tasks, ==, graph->n);
      for (uint32_t i = 0; i < graph->n; i++)
        g_assert_cmpuint (data[i], ==, graph->expected[i]);
      g_free (graph);
      sim_assert_well (chip);
      pto_chip_free (chip);
    }
}

/* Each edge that is named is in the trace, also where nothing was left to wait for. */
static void
test_trace (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  struct graph *graph = graph_new (50, false);
  struct pto_run_stats stats;
  const struct pto_trace *trace;
  uint32_t n = 0;

  for (uint32_t i = 0; i < graph->n; i++)
    n += graph->n_from[i];
  trace = sim_record (chip, &program, build, graph, &stats);
  g_assert_cmpuint (sim_trace_count (trace, PTO_TRACE_DEP), <=, n);
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (sim_trace_count (trace, PTO_TRACE_DEP), >, 0);
  sim_assert_trace (chip, &stats);
  g_free (graph);
  pto_chip_free (chip);
}

/* --- when they run --- */

/* Who is not published does not run, whoever else does. */
static int
publish_one (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId waits = add_note (rt);
  PTO2TaskId runs = add_note (rt);
  PTO2TaskId after = add_note (rt);

  pto2_rt_add_successor_conditional (rt, waits, after);
  pto2_rt_publish_task (rt, after);
  pto2_rt_publish_task (rt, runs);
  /* On det there are no others while this runs. */
  while (pto_actor_name () == NULL && atomic_load (&n_noted) == 0)
    sched_yield ();
  for (uint32_t i = 0; i < 1000; i++)
    sched_yield ();
  if (atomic_load (&n_noted) > 1)
    return 1;
  pto2_rt_publish_task (rt, waits);
  return 0;
}

static void
test_publish (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);

  if (backend != PTO_BACKEND_DET)
    {
      sim_run (chip, &program, publish_one, NULL, NULL);
      g_assert_cmpuint (n_noted, ==, 3);
    }
  pto_chip_free (chip);
}

/* build-mode 0: nothing runs while its scope is open; what is submitted otherwise does. */
static int
build_first (PTO2Runtime *rt, void *given)
{
  uint32_t *seen = given;

  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < 5; i++)
      pto2_rt_publish_task (rt, add_note (rt));
    for (uint32_t i = 0; i < 1000; i++)
      sched_yield ();
    seen[0] = atomic_load (&n_noted);
  }
  for (uint32_t i = 0; i < 5; i++)
    pto2_rt_publish_task (rt, add_note (rt));
  for (uint32_t i = 0; i < 1000; i++)
    sched_yield ();
  seen[1] = atomic_load (&n_noted);
  return 0;
}

static void
test_build_first (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, "build-mode=0");
  uint32_t seen[2];

  sim_run (chip, &program, build_first, seen, NULL);
  g_assert_cmpuint (seen[0], ==, 0);
  g_assert_cmpuint (seen[1], <=, 5);
  g_assert_cmpuint (n_noted, ==, 10);
  pto_chip_free (chip);
}

/* Behind a task that is done there is nothing to wait for; it may be of either kind. */
static int
conditional (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  static const uint64_t first[1] = { 0 };
  bool *waits = given;
  Tensor x = pto2_rt_alloc (rt, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor y = pto2_rt_alloc (rt, shape, 1, PTO_DTYPE_FLOAT32);
  float value = 1;
  PTO2TaskId done;
  PTO2TaskId held;
  PTO2TaskId last;

  pto2_rt_fill (rt, &x, &value);
  {
    PTOParam params[] = { make_input_param (x), make_inout_param (y) };

    done = pto2_rt_submit_task (rt, DOUBLE, AIV, params, 2);
  }
  if (!pto2_rt_get_element (rt, &y, first, &value) || value != 2)
    return 1;
  held = pto2_rt_submit_task (rt, HOLD, AIV, NULL, 0);
  last = add_note (rt);
  waits[0] = pto2_rt_add_successor_conditional (rt, done, last);
  waits[1] = pto2_rt_add_successor_conditional (rt, held, last);
  pto2_rt_publish_task (rt, last);
  atomic_store (&may_end, true);
  return 0;
}

static void
test_conditional (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  bool waits[2] = { true, false };

  sim_run (chip, &program, conditional, waits, NULL);
  g_assert_false (waits[0]);
  g_assert_true (waits[1]);
  g_assert_cmpuint (n_noted, ==, 1);
  pto_chip_free (chip);
}

/* --- memory --- */

/* [1] = 8 [0], by way of memory that a task outputs and of the device's. */
static int
by_way_of_memory (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 64 };
  float *memory = given;
  Tensor x = make_tensor_external (memory, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor y = make_tensor_external (memory + 64, shape, 1, PTO_DTYPE_FLOAT32);
  void *device = pto2_rt_device_malloc (rt, 256);
  Tensor b;
  PTO2TaskId ids[3];

  if (device == NULL || (uintptr_t) device % 64 != 0)
    return 1;
  b = make_tensor_external (device, shape, 1, PTO_DTYPE_FLOAT32);
  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    Tensor a = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
    PTOParam one[] = { make_input_param (x), make_output_param (a) };
    PTOParam two[] = { make_input_param (a), make_output_existing_param (b) };
    PTOParam three[] = { make_input_param (b), make_output_existing_param (y) };

    ids[0] = pto2_rt_add_task (rt, DOUBLE, AIV, one, 2);
    two[0] = make_input_param (a);
    ids[1] = pto2_rt_add_task (rt, DOUBLE, AIV, two, 2);
    ids[2] = pto2_rt_add_task (rt, DOUBLE, AIV, three, 2);
    for (uint32_t i = 0; i < 2; i++)
      pto2_rt_add_successor_conditional (rt, ids[i], ids[i + 1]);
    for (uint32_t i = 3; i-- > 0;)
      pto2_rt_publish_task (rt, ids[i]);
  }
  return 0;
}

static void
test_memory (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  float memory[128];

  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint32_t i = 0; i < 128; i++)
        memory[i] = i < 64 ? (float) (i + round) : -1;
      sim_run (chip, &program, by_way_of_memory, memory, NULL);
      for (uint32_t i = 0; i < 64; i++)
        g_assert_cmpfloat (memory[64 + i], ==, 8 * (float) (i + round));
    }
  pto_chip_free (chip);
}

/* What a kernel writes behind memory of the device is seen; the next run has none of it. */
static int
write_behind (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 64 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor y = make_tensor_external (pto2_rt_device_malloc (rt, 252), shape, 1, PTO_DTYPE_FLOAT32);
  PTOParam params[] = { make_input_param (x), make_output_existing_param (y) };

  pto2_rt_publish_task (rt, pto2_rt_add_task (rt, DOUBLE, AIV, params, 2));
  return 0;
}

static int
ask_for_nothing (PTO2Runtime *rt, void *unused)
{
  return pto2_rt_device_malloc (rt, 0) != NULL;
}

static int
ask_for_too_much (PTO2Runtime *rt, void *unused)
{
  return pto2_rt_device_malloc (rt, UINT64_C (1) << 62) != NULL;
}

static void
test_memory_refusals (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  float memory[128] = { 0 };

  sim_run_fails (chip, &program, write_behind, memory, PTO_STATUS_OUT_OF_BOUNDS, "double", NULL);
  sim_run_fails (chip, &program, ask_for_nothing, NULL, PTO_STATUS_INVALID_ARGS,
                 "pto2_rt_device_malloc(), submitted at test-build.c:", "0 bytes", NULL);
  sim_run_fails (chip, &program, ask_for_too_much, NULL, PTO_STATUS_NO_MEMORY,
                 "4611686018427387904 bytes", NULL);
  sim_run (chip, &program, by_way_of_memory, memory, NULL);
  pto_chip_free (chip);
}

/* --- other kinds of tasks --- */

static int
all_kinds (PTO2Runtime *rt, void *unused)
{
  static const int32_t mixed[3] = { PTO2_KERNEL_NONE, NOTE, NOTE };
  PTO2Submit submit = pto2_make_submit (NOTE, AIV, NULL, 0);
  PTO2TaskId ids[4];

  submit.unpublished = 1;
  submit.block_dim = 10;
  ids[0] = pto2_rt_submit (rt, &submit);
  submit.block_dim = 3;
  submit.mixed = mixed;
  submit.kernel_id = PTO2_KERNEL_NONE;
  ids[1] = pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (NOTE, AIV, NULL, 0);
  submit.unpublished = 1;
  submit.priority = 2;
  ids[2] = pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, NULL, 0);
  submit.unpublished = 1;
  ids[3] = pto2_rt_submit (rt, &submit);
  for (uint32_t i = 0; i < 3; i++)
    pto2_rt_add_successor_conditional (rt, ids[i], ids[3]);
  for (uint32_t i = 0; i < 4; i++)
    pto2_rt_publish_task (rt, ids[i]);
  return 0;
}

static void
test_kinds (enum pto_backend backend)
{
  static const char *const settings[] = { NULL, "build-mode=0" };

  for (uint32_t i = 0; i < 2; i++)
    {
      struct pto_chip *chip = chip_of (backend, settings[i]);
      struct pto_run_stats stats;

      sim_run (chip, &program, all_kinds, NULL, &stats);
      g_assert_cmpuint (stats.tasks, ==, 4);
      g_assert_cmpuint (n_noted, ==, 10 + 6 + 1);
      pto_chip_free (chip);
    }
}

/* --- captured --- */

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

/* What is built by hand is written down like any other. */
static void
test_capture (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  struct pto_plan *plan = pto_plan_new ();
  struct pto_run_config config = { .capture = plan };
  struct pto_report report = { 0 };
  struct graph *graph = graph_new (100, true);
  struct pto_run_stats stats;
  uint32_t n = 0;

  for (uint32_t i = 0; i < graph->n; i++)
    for (uint32_t e = 0; e < graph->n_from[i]; e++)
      {
        bool twice = false;

        for (uint32_t f = 0; f < e; f++)
          twice = twice || graph->from[i][f] == graph->from[i][e];
        n += !twice;
      }
  pto_chip_run (chip, &program, &config, build, graph, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (plan->n_tasks, ==, graph->n);
  g_assert_cmpuint (plan->n_orders, ==, n);
  g_assert_cmpuint (data[0], ==, 0);
  for (uint32_t round = 0; round < 3; round++)
    {
      memset (data, 0, sizeof data);
      sim_run (chip, &program, launch, plan, &stats);
      for (uint32_t i = 0; i < graph->n; i++)
        g_assert_cmpuint (data[i], ==, graph->expected[i]);
    }
  pto_plan_free (plan);
  g_free (graph);
  /* Memory of one run is no part of it. */
  plan = pto_plan_new ();
  config.capture = plan;
  pto_chip_run (chip, &program, &config, by_way_of_memory, NULL, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "pto2_rt_device_malloc() is there for one run",
                   "test-build.c:", NULL);
  pto_plan_free (plan);
  pto_chip_free (chip);
}

/* --- what is wrong --- */

static int
forget_one (PTO2Runtime *rt, void *unused)
{
  pto2_rt_publish_task (rt, add_note (rt));
  PTO2_SCOPE (rt)
  {
    add_note (rt);
  }
  return 0;
}

static int
publish_twice (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId id = add_note (rt);

  pto2_rt_publish_task (rt, id);
  pto2_rt_publish_task (rt, id);
  return 0;
}

static int
publish_other (PTO2Runtime *rt, void *unused)
{
  pto2_rt_publish_task (rt, pto2_rt_submit_task (rt, NOTE, AIV, NULL, 0));
  return 0;
}

static int
publish_none (PTO2Runtime *rt, void *unused)
{
  pto2_rt_publish_task (rt, PTO2_TASK_NONE);
  return 0;
}

static int
too_late (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId a = add_note (rt);
  PTO2TaskId b = add_note (rt);

  pto2_rt_publish_task (rt, b);
  pto2_rt_add_successor_conditional (rt, a, b);
  pto2_rt_publish_task (rt, a);
  return 0;
}

static int
backward (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId a = add_note (rt);
  PTO2TaskId b = add_note (rt);

  pto2_rt_add_successor_conditional (rt, a, b);
  pto2_rt_add_successor_conditional (rt, b, a);
  return 0;
}

static int
after_itself (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId a = add_note (rt);

  pto2_rt_add_successor_conditional (rt, a, a);
  return 0;
}

/* Also from another scope's ring. */
static int
backward_in_a_scope (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId a = add_note (rt);

  PTO2_SCOPE (rt)
  {
    PTO2TaskId b = add_note (rt);

    pto2_rt_add_successor_conditional (rt, b, a);
  }
  return 0;
}

static int
unknown_predecessor (PTO2Runtime *rt, void *unused)
{
  pto2_rt_add_successor_conditional (rt, 77, add_note (rt));
  return 0;
}

static int
ask_while_it_waits (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  static const uint64_t first[1] = { 0 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  PTO2TaskId id = add_note (rt);
  float value;

  pto2_rt_get_element (rt, &x, first, &value);
  pto2_rt_publish_task (rt, id);
  return 0;
}

static int
ask_in_vain (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  static const uint64_t first[1] = { 0 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  float value;

  pto2_rt_publish_task (rt, add_note (rt));
  pto2_rt_get_element (rt, &x, first, &value);
  return 0;
}

static int
after_nobody (PTO2Runtime *rt, void *unused)
{
  pto2_rt_add_successor_conditional (rt, 0, PTO2_TASK_NONE);
  return 0;
}

static void
test_refusals (enum pto_backend backend)
{
  static const struct
  {
    SimOrchestration orchestrate;
    const char *words[2];
  } cases[] = {
    { forget_one,
      { "task 1 (note), added at test-build.c:", "not published when its scope ends" } },
    { publish_twice, { "at test-build.c:", "it is published already" } },
    { publish_other, { "at test-build.c:", "no task that was added" } },
    { publish_none, { "at test-build.c:", "no task that was added" } },
    { too_late, { "at test-build.c:", "published already, and may run" } },
    { backward, { "at test-build.c:", "was added behind its successor" } },
    { backward_in_a_scope, { "at test-build.c:", "was added behind its successor" } },
    { after_itself, { "at test-build.c:", "or is the same" } },
    { unknown_predecessor, { "at test-build.c:", "the predecessor is no task of this run" } },
    { after_nobody, { "at test-build.c:", "the successor is no task that was added" } },
    { ask_while_it_waits,
      { "waits for all tasks, but task 0 (note), added at test-build.c:", "is not published" } },
  };
  struct pto_chip *chip = chip_of (backend, NULL);
  float memory[4] = { 0 };

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    sim_run_fails (chip, &program, cases[i].orchestrate, memory, PTO_STATUS_INVALID_ARGS,
                   cases[i].words[0], cases[i].words[1], NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
  chip = chip_of (backend, "build-mode=0");
  sim_run_fails (chip, &program, ask_in_vain, memory, PTO_STATUS_INVALID_ARGS,
                 "before its scope ends (build-mode is 0)", NULL);
  pto_chip_free (chip);
}

/* What is short is named; what only waits to be published is not waited for. */
static int
many_edges (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId first[20];
  PTO2TaskId last;

  for (uint32_t i = 0; i < 20; i++)
    first[i] = add_note (rt);
  last = add_note (rt);
  for (uint32_t i = 0; i < 20; i++)
    pto2_rt_add_successor_conditional (rt, first[i], last);
  return 0;
}

static int
many_tasks (PTO2Runtime *rt, void *unused)
{
  for (uint32_t i = 0; i < 20; i++)
    pto2_rt_publish_task (rt, add_note (rt));
  return 0;
}

/* The ring of a scope fills up with what comes after a task that is not published. */
static int
wait_for_unpublished (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId key = add_note (rt);

  for (uint32_t i = 0; i < 40; i++)
    PTO2_SCOPE (rt)
    {
      PTO2TaskId id = add_note (rt);

      pto2_rt_add_successor_conditional (rt, key, id);
      pto2_rt_publish_task (rt, id);
    }
  pto2_rt_publish_task (rt, key);
  return 0;
}

static void
test_scarce (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, "dep-pool=16");

  sim_run_fails (chip, &program, many_edges, NULL, PTO_STATUS_DEP_POOL, "dep-pool", NULL);
  pto_chip_free (chip);
  chip = chip_of (backend, "task-window=16 build-mode=0");
  sim_run_fails (
      chip, &program, many_tasks, NULL, PTO_STATUS_TASK_RING,
      "Oldest task 0 of ring 0 (note) is waiting for the end of its scope (build-mode is 0)",
      "Set task-window to 32 or more", "holds at most 20 tasks", NULL);
  pto_chip_free (chip);
  chip = chip_of (backend, "task-window=32 build-mode=0");
  sim_run (chip, &program, many_tasks, NULL, NULL);
  g_assert_cmpuint (n_noted, ==, 20);
  pto_chip_free (chip);
  chip = chip_of (backend, "task-window=16 timeout=300");
  sim_run_fails (chip, &program, wait_for_unpublished, NULL, PTO_STATUS_TASK_RING,
                 "deadlock in task ring 1",
                 "because task 0 (note), added at test-build.c:", "is not published",
                 "Set task-window to 64 or more", "holds at most 40 tasks in that ring", NULL);
  pto_chip_free (chip);
  chip = chip_of (backend, "task-window=64");
  sim_run (chip, &program, wait_for_unpublished, NULL, NULL);
  g_assert_cmpuint (n_noted, ==, 41);
  pto_chip_free (chip);
}

/* A task is added and published last, or first; what comes after it fills something. */
enum
{
  FILL_TASKS,
  FILL_HEAP,
  FILL_EDGES,
  FILL_MAP,
  FILL_CLUSTERS,
  N_FILLS
};

struct filling
{
  uint32_t what;
  bool early;    /* published before the others */
  uint32_t deep; /* scopes around all of it */
};

static const char *const fill_settings[N_FILLS]
    = { "task-window=16", "heap=16K", "dep-pool=64", "map-pool=64", "clusters=2 aicpu-threads=2" };
static const char *const fill_knobs[N_FILLS]
    = { "task-window", "heap", "dep-pool", "map-pool", "clusters" };

#define N_FOLLOWERS 200

static void
fill_something (PTO2Runtime *rt, const struct filling *filling)
{
  PTO2TaskId key = add_note (rt);
  PTO2TaskId after[2] = { key, key };

  if (filling->early)
    pto2_rt_publish_task (rt, key);
  for (uint64_t i = 0; i < N_FOLLOWERS; i++)
    PTO2_SCOPE (rt)
    {
      uint64_t shape[1] = { filling->what == FILL_HEAP ? 512 : 1 };
      Tensor made = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
      Tensor other = make_tensor_external (&data[i], shape, 1, PTO_DTYPE_UINT32);
      PTOParam param
          = filling->what == FILL_HEAP ? make_output_param (made) : make_inout_param (other);
      PTO2Submit submit = pto2_make_submit (NOTE, AIV, &param, 0);
      int32_t cluster = -1;

      submit.after = after;
      submit.n_after = filling->what == FILL_EDGES ? 2 : 1;
      submit.n_params = filling->what == FILL_HEAP || filling->what == FILL_MAP ? 1 : 0;
      if (filling->what == FILL_CLUSTERS)
        {
          cluster = pto2_rt_allocate_cluster (rt);
          submit.in_cluster = 1;
          submit.cluster_id = cluster;
        }
      after[1] = pto2_rt_submit (rt, &submit);
      if (cluster >= 0)
        pto2_rt_free_cluster (rt, cluster);
    }
  if (!filling->early)
    pto2_rt_publish_task (rt, key);
}

static int
fill_up (PTO2Runtime *rt, void *given)
{
  const struct filling *filling = given;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < filling->deep; i++)
    pto2_rt_scope_begin (rt);
  fill_something (rt, filling);
  for (uint32_t i = 0; i < filling->deep; i++)
    pto2_rt_scope_end (rt);
  return 0;
}

/* Nothing can run any more: every back end proves it, without waiting, and the setting that it
 * names is enough. */
static void
test_fill_up (enum pto_backend backend)
{
  for (uint32_t what = 0; what < N_FILLS; what++)
    for (uint32_t deep = 0; deep < 5; deep += 2)
      {
        struct filling filling = { .what = what, .deep = deep };
        g_autofree char *knob = g_strdup_printf ("et %s to ", fill_knobs[what]);
        g_autofree char *enough = NULL;
        struct pto_chip *chip = chip_of (backend, fill_settings[what]);
        struct pto_report report = { 0 };
        enum pto_status status
            = pto_chip_run (chip, &program, NULL, fill_up, &filling, NULL, &report);
        const char *found;

        pto_chip_free (chip);
        g_test_message ("%s", report.message);
        g_assert_nonnull (strstr (report.message, "is not published"));
        /* At the end it shares its ring with what comes after it, and its open scope keeps it. */
        if (deep < 4)
          g_assert_nonnull (strstr (report.message, "task 0 (note), added at test-build.c:"));
        if (what == FILL_CLUSTERS)
          {
            g_assert_cmpint (status, ==, PTO_STATUS_SCOPE_DEADLOCK);
            continue;
          }
        found = strstr (report.message, knob);
        g_assert_nonnull (found);
        enough = g_strdup_printf ("%s=%" G_GUINT64_FORMAT, fill_knobs[what],
                                  g_ascii_strtoull (found + strlen (knob), NULL, 10));
        chip = chip_of (backend, enough);
        sim_run (chip, &program, fill_up, &filling, NULL);
        g_assert_cmpuint (n_noted, ==, N_FOLLOWERS + 1);
        pto_chip_free (chip);
      }
}

/* With build-mode 0 the end of the scope publishes: the program is not to blame, and passes. */
static void
test_fill_up_build_first (enum pto_backend backend)
{
  for (uint32_t what = 0; what < N_FILLS; what++)
    for (uint32_t early = 0; early < 2; early++)
      for (uint32_t deep = 0; deep < 3; deep += 2)
        {
          struct filling filling = { .what = what, .early = early == 1, .deep = deep };
          g_autofree char *settings = g_strdup_printf ("%s build-mode=0", fill_settings[what]);
          struct pto_chip *chip = chip_of (backend, settings);

          sim_run (chip, &program, fill_up, &filling, NULL);
          g_assert_cmpuint (n_noted, ==, N_FOLLOWERS + 1);
          pto_chip_free (chip);
        }
}

/* Several chains, each begun by a task that was added: what is in the way is let go, and no more.
 */
static int
fill_up_behind_one (PTO2Runtime *rt, void *given)
{
  uint32_t *seen = given;
  PTO2TaskId keys[3];

  for (uint32_t i = 0; i < 3; i++)
    keys[i] = add_note (rt);
  for (uint32_t i = 0; i < 40; i++)
    PTO2_SCOPE (rt)
    {
      PTO2Submit submit = pto2_make_submit (NOTE, AIV, NULL, 0);

      submit.after = &keys[1];
      submit.n_after = 1;
      pto2_rt_submit (rt, &submit);
    }
  seen[0] = atomic_load (&n_noted);
  /* It has waited, and may be told what it comes after; the one that has run may not. */
  pto2_rt_add_successor_conditional (rt, keys[1], keys[2]);
  if (seen[1] != 0)
    pto2_rt_add_successor_conditional (rt, keys[0], keys[1]);
  for (uint32_t i = 0; i < 3; i++)
    pto2_rt_publish_task (rt, keys[i]);
  return 0;
}

static void
test_fill_up_lets_one_go (enum pto_backend backend)
{
  uint32_t seen[2] = { 0, 0 };
  struct pto_chip *chip = chip_of (backend, "task-window=16 build-mode=0");

  sim_run (chip, &program, fill_up_behind_one, seen, NULL);
  /* At least what made room for the last one. */
  g_assert_cmpuint (seen[0], >=, 1 + 40 - 15);
  g_assert_cmpuint (seen[0], <=, 1 + 40);
  g_assert_cmpuint (n_noted, ==, 3 + 40);
  seen[1] = 1;
  sim_run_fails (chip, &program, fill_up_behind_one, seen, PTO_STATUS_TASK_RING,
                 "task 1 (note), added at test-build.c:",
                 "got another predecessor at test-build.c:", "build-mode is 0",
                 "set task-window to 32 or more", NULL);
  pto_chip_free (chip);
}

/* A chain of held tasks, and tasks that come after its last one and fill a ring: all of the chain
 * is in their way. */
#define N_CHAIN 10000u
#define CHAIN_WINDOW 64u
#define LET_GO_AT_ONCE 256u

struct chain
{
  bool cancel;
  _Atomic pthread_t thread; /* the submitter's; the watching thread asks as well */
  bool is_full;             /* of that thread alone */
};

static int
fill_up_chain (PTO2Runtime *rt, void *given)
{
  static PTO2TaskId tasks[N_CHAIN];
  struct chain *chain = given;

  atomic_store_explicit (&chain->thread, pthread_self (), memory_order_relaxed);
  for (uint32_t i = 0; i < N_CHAIN; i++)
    {
      tasks[i] = add_note (rt);
      if (i > 0)
        pto2_rt_add_successor_conditional (rt, tasks[i - 1], tasks[i]);
    }
  for (uint32_t i = 0; i < N_CHAIN; i++)
    pto2_rt_publish_task (rt, tasks[i]);
  for (uint32_t i = 0; i < 2 * CHAIN_WINDOW; i++)
    PTO2_SCOPE (rt)
    {
      PTO2Submit submit = pto2_make_submit (NOTE, AIV, NULL, 0);

      chain->is_full = i >= CHAIN_WINDOW - 1;
      submit.after = &tasks[N_CHAIN - 1];
      submit.n_after = 1;
      pto2_rt_submit (rt, &submit);
    }
  return 0;
}

/* As soon as the submitter asks within the submit that finds no room. */
static bool
is_chain_cancelled (void *given)
{
  struct chain *chain = given;

  return chain->cancel
         && atomic_load_explicit (&chain->thread, memory_order_relaxed) == pthread_self ()
         && chain->is_full;
}

static void
test_fill_up_chain (enum pto_backend backend)
{
  for (uint32_t cancel = 0; cancel < 2; cancel++)
    {
      struct chain chain = { .cancel = cancel == 1 };
      struct pto_run_config config = { .cancelled = is_chain_cancelled, .cancelled_data = &chain };
      struct pto_chip *chip = chip_of (backend, "task-window=16384,64,64,64 build-mode=0");
      struct pto_report report = { 0 };
      enum pto_status status
          = pto_chip_run (chip, &program, &config, fill_up_chain, &chain, NULL, &report);

      g_test_message ("%s", report.message);
      g_assert_cmpint (status, ==, cancel ? PTO_STATUS_CANCELLED : PTO_OK);
      if (cancel)
        g_assert_cmpuint (n_noted, <=, LET_GO_AT_ONCE);
      else
        g_assert_cmpuint (n_noted, ==, N_CHAIN + 2 * CHAIN_WINDOW);
      pto_chip_free (chip);
    }
}

/* Behind a task that is done no edge stays taken. */
static int
many_to_one_that_is_done (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  static const uint64_t first[1] = { 0 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  PTOParam params[] = { make_input_param (x), make_inout_param (x) };
  PTO2TaskId done = pto2_rt_submit_task (rt, DOUBLE, AIV, params, 2);
  PTO2TaskId task;
  float value;

  pto2_rt_get_element (rt, &x, first, &value);
  task = add_note (rt);
  for (uint32_t i = 0; i < 200; i++)
    if (pto2_rt_add_successor_conditional (rt, done, task))
      return 1;
  pto2_rt_publish_task (rt, task);
  return 0;
}

/* Of a scope that has ended one task comes after somebody who is published later; the one before
 * it makes room. */
static int
room_before_it (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId key = add_note (rt);

  PTO2_SCOPE (rt)
  {
    PTO2TaskId id;

    pto2_rt_publish_task (rt, add_note (rt));
    id = add_note (rt);
    pto2_rt_add_successor_conditional (rt, key, id);
    pto2_rt_publish_task (rt, id);
  }
  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < 6; i++)
      pto2_rt_publish_task (rt, add_note (rt));
  }
  pto2_rt_publish_task (rt, key);
  return 0;
}

static void
test_room (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, "dep-pool=64");
  float memory[4] = { 1 };

  sim_run (chip, &program, many_to_one_that_is_done, memory, NULL);
  g_assert_cmpuint (n_noted, ==, 1);
  pto_chip_free (chip);
  chip = chip_of (backend, "task-window=8 timeout=300");
  sim_run (chip, &program, room_before_it, NULL, NULL);
  g_assert_cmpuint (n_noted, ==, 9);
  pto_chip_free (chip);
}

/* What combines can not be named, and needs not be. */
static int
add_while_reducing (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  float zero = 0;
  PTOParam param = make_reduction_param (x, DOUBLE, &zero);

  pto2_rt_submit_task (rt, NOTE, AIV, &param, 1);
  pto2_rt_publish_task (rt, add_note (rt));
  return 0;
}

static void
count_explicit (const struct pto_trace_record *record, void *n)
{
  *(uint32_t *) n += record->detail == PTO_HAZARD_EXPLICIT;
}

/* One that reads what is combined may be named all the same. */
static int
add_behind_a_reduction (PTO2Runtime *rt, void *given)
{
  static const uint64_t shape[1] = { 4 };
  Tensor x = make_tensor_external (given, shape, 1, PTO_DTYPE_FLOAT32);
  float zero = 0;
  PTOParam param = make_reduction_param (x, DOUBLE, &zero);
  PTOParam input = make_input_param (x);
  PTO2TaskId task;
  PTO2TaskId order;

  pto2_rt_submit_task (rt, NOTE, AIV, &param, 1);
  order = pto2_rt_submit_order (rt, &input, 1, NULL, 0);
  task = add_note (rt);
  pto2_rt_add_successor_conditional (rt, order, task);
  pto2_rt_publish_task (rt, task);
  return 0;
}

static void
test_reducing (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);
  float memory[4] = { 0 };
  uint32_t n = 0;

  sim_trace_each (sim_record (chip, &program, add_while_reducing, memory, NULL), PTO_TRACE_DEP,
                  count_explicit, &n);
  g_assert_cmpuint (n, ==, 1);
  sim_run (chip, &program, add_behind_a_reduction, memory, NULL);
  pto_chip_free (chip);
}

/* Two clusters: one is held, the other was let go of with a task in it that is not published, one
 * that comes after that, and others that go on for a while. */
static int
wait_for_cluster_of_unpublished (PTO2Runtime *rt, void *way)
{
  uint32_t how = *(uint32_t *) way;
  int32_t held = pto2_rt_allocate_cluster (rt);
  int32_t freed = pto2_rt_allocate_cluster (rt);
  PTO2Submit submit = pto2_make_submit (NOTE, AIV, NULL, 0);
  PTO2TaskId added;

  submit.in_cluster = 1;
  submit.cluster_id = freed;
  submit.unpublished = 1;
  added = pto2_rt_submit (rt, &submit);
  submit.unpublished = 0;
  submit.after = &added;
  submit.n_after = 1;
  pto2_rt_submit (rt, &submit);
  for (uint32_t i = 0; i < 50; i++)
    pto2_rt_submit_task (rt, NOTE, AIV, NULL, 0);
  if (how == 1)
    pto2_rt_publish_task (rt, added);
  if (how == 2)
    {
      pto2_rt_free_cluster (rt, held);
      if (pto2_rt_allocate_cluster (rt) != held)
        return 1;
    }
  pto2_rt_free_cluster (rt, freed);
  if (pto2_rt_allocate_cluster (rt) < 0)
    return 0;
  if (how != 1)
    return 2;
  return 0;
}

static void
test_cluster_of_unpublished (enum pto_backend backend)
{
  for (uint32_t how = 0; how < 3; how++)
    {
      struct pto_chip *chip
          = chip_of (backend, "clusters=2 aicpu-threads=2 timeout=200000 build-mode=1");

      if (how == 1)
        sim_run (chip, &program, wait_for_cluster_of_unpublished, &how, NULL);
      else
        sim_run_fails (chip, &program, wait_for_cluster_of_unpublished, &how,
                       PTO_STATUS_SCOPE_DEADLOCK,
                       "no cluster is free, and none will be: 2 tasks are left", "task 0 (note)",
                       "is not published", NULL);
      pto_chip_free (chip);
    }
}

#ifndef SIM_SANITIZED
/* Who comes after a task that failed does not run, also where it is named later. */
static int
fail_first (PTO2Runtime *rt, void *unused)
{
  PTO2TaskId crash = pto2_rt_add_task (rt, CRASH, AIV, NULL, 0);
  PTO2TaskId after = add_note (rt);

  pto2_rt_publish_task (rt, crash);
  for (uint32_t i = 0; i < 1000; i++)
    sched_yield ();
  pto2_rt_add_successor_conditional (rt, crash, after);
  pto2_rt_publish_task (rt, after);
  return 0;
}

static void
test_failure (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend, NULL);

  for (uint32_t i = 0; i < 20; i++)
    sim_run_fails (chip, &program, fail_first, NULL, PTO_STATUS_KERNEL_FAULT, "crash", NULL);
  g_assert_cmpuint (n_noted, ==, 0);
  sim_assert_well (chip);
  pto_chip_free (chip);
}
#endif

static void
add_tests (void)
{
  sim_add ("build/graphs", test_graphs);
  sim_add ("build/trace", test_trace);
  sim_add ("build/publish", test_publish);
  sim_add ("build/build-first", test_build_first);
  sim_add ("build/fill-up", test_fill_up);
  sim_add ("build/fill-up-build-first", test_fill_up_build_first);
  sim_add ("build/fill-up-lets-one-go", test_fill_up_lets_one_go);
  sim_add ("build/fill-up-chain", test_fill_up_chain);
  sim_add ("build/conditional", test_conditional);
  sim_add ("build/memory", test_memory);
  sim_add ("build/memory-refusals", test_memory_refusals);
  sim_add ("build/kinds", test_kinds);
  sim_add ("build/capture", test_capture);
  sim_add ("build/refusals", test_refusals);
  sim_add ("build/scarce", test_scarce);
  sim_add ("build/room", test_room);
  sim_add ("build/reducing", test_reducing);
  sim_add ("build/cluster-of-unpublished", test_cluster_of_unpublished);
#ifndef SIM_SANITIZED
  sim_add ("build/failure", test_failure);
#endif
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
