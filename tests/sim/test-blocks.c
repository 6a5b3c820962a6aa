/* test-blocks.c: do tasks of several blocks, and of several kernels, run as often and where they
 * are to?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/task.h"

#include <string.h>

#define MOST 2048u
#define CLUSTERS 24u
#define CORES (3 * CLUSTERS)

/* What every kernel writes down, for its block and its core: cube, first vector, second vector. */
struct log
{
  _Atomic uint32_t ran[3][MOST];
  _Atomic uint32_t wrong;
};

enum
{
  CUBE,    /* args[0]: a log, args[1]: how many blocks there are to be */
  VECTOR,  /* the same; its sub-block is 0 or 1 */
  TWICE,   /* element i of block i, of args[0]: becomes 2 i + args[1] */
  TWICE_1, /* the same for element args[2] */
  SUM,     /* args[1][0] = the sum of args[0], all of it */
  BEYOND,  /* block 3 writes behind args[0] */
  CRASH,   /* block 5 does */
  SLOW,    /* as VECTOR, longer */
  SLEEPY,  /* takes 25 ms */
  OTHERS,  /* args[0] is a log; as many arguments as there may be; asks for the others */
  FIRST,   /* args[0][0] = args[1] */
  COPY,    /* args[1][0] = args[0][0], later */
  LONG,    /* on a vector core */
  SHORT,   /* on a cube core */
  TAKES_2  /* two arguments, says its manifest */
};

static void
note (int64_t *args, uint32_t row)
{
  struct log *log = (struct log *) (uintptr_t) args[0];
  uint32_t idx = get_block_idx (args);

  if (idx >= get_block_num (args) || get_block_num (args) != (uint32_t) args[1] || idx >= MOST)
    atomic_fetch_add (&log->wrong, 1);
  else
    atomic_fetch_add (&log->ran[row][idx], 1);
}

static void
kernel_cube (int64_t *args)
{
  note (args, 0);
}

static void
kernel_vector (int64_t *args)
{
  note (args, 1 + get_sub_block_id (args));
}

static int32_t *
data_of (int64_t arg)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) arg;

  return (int32_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

static void
kernel_twice (int64_t *args)
{
  uint32_t i = get_block_idx (args);

  data_of (args[0])[i] = 2 * (int32_t) i + (int32_t) args[1];
}

static void
kernel_twice_1 (int64_t *args)
{
  data_of (args[0])[args[2]] = 2 * (int32_t) args[2] + (int32_t) args[1];
}

static void
kernel_sum (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];
  int32_t sum = 0;

  for (uint64_t i = 0; i < tensor->shapes[0]; i++)
    sum += data_of (args[0])[i];
  data_of (args[1])[0] = sum;
}

/* Other blocks that end have the bytes looked at meanwhile. */
static NOT_SANITIZED void
kernel_beyond (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];
  volatile char *end = (char *) (uintptr_t) tensor->buffer.addr + tensor->buffer.size;

  for (int i = 0; i < 5 && get_block_idx (args) == 3; i++)
    end[i] = 7;
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = NULL;

  if (get_block_idx (args) == 5)
    *nowhere = 1;
}

static void
kernel_sleepy (int64_t *args)
{
  const struct timespec ten_ms = { .tv_nsec = 10000000 };

  /* Nothing else is done by it, so it takes no processor from other tests. */
  nanosleep (&ten_ms, NULL);
}

static void
kernel_others (int64_t *args)
{
  struct log *log = (struct log *) (uintptr_t) args[0];

  pto_relax (args);
  atomic_fetch_add (&log->ran[1][get_block_idx (args)], 1);
}

static void
kernel_first (int64_t *args)
{
  data_of (args[0])[0] = (int32_t) args[1];
}

static void
kernel_copy (int64_t *args)
{
  int32_t value = data_of (args[0])[0];

  sim_spend_ns (200000);
  data_of (args[1])[0] = value;
}

static void
kernel_nothing (int64_t *args)
{
}

static const struct pto_kernel kernels[] = {
  [CUBE] = { "cube", kernel_cube, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [VECTOR] = { "vector", kernel_vector, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [TWICE] = { "twice", kernel_twice, PTO_CORE_TYPE_AIV, { .base_ns = 1000, .ns_per_byte = 1 } },
  [TWICE_1] = { "twice_1", kernel_twice_1, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SUM] = { "sum", kernel_sum, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [BEYOND] = { "beyond", kernel_beyond, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SLOW] = { "slow", kernel_vector, PTO_CORE_TYPE_AIV, { .base_ns = 50000 } },
  [SLEEPY] = { "sleepy", kernel_sleepy, PTO_CORE_TYPE_AIV, { .base_ns = 10000000 } },
  [OTHERS] = { "others", kernel_others, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [FIRST] = { "first", kernel_first, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [COPY] = { "copy", kernel_copy, PTO_CORE_TYPE_AIV, { .base_ns = 200000 } },
  [LONG] = { "long", kernel_nothing, PTO_CORE_TYPE_AIV, { .base_ns = 8000000 } },
  [SHORT] = { "short", kernel_nothing, PTO_CORE_TYPE_AIC, { .base_ns = 500000 } },
  [TAKES_2] = { "takes_2", kernel_twice, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, 3 },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static Tensor
cells (int32_t *values, uint64_t n)
{
  return make_tensor_external (values, &n, 1, PTO_DTYPE_INT32);
}

/* --- one kernel --- */

struct plan
{
  int32_t dims[8];
  uint32_t n;
  bool sync;
  int32_t shape[3]; /* mixed; all 0: it is not */
  struct log *logs;
};

static int
submit_plan (PTO2Runtime *rt, void *data)
{
  struct plan *plan = data;
  bool mixed = plan->shape[0] != plan->shape[1] || plan->shape[1] != plan->shape[2];

  for (uint32_t i = 0; i < plan->n; i++)
    {
      PTOParam params[] = { make_scalar_param ((uint64_t) (uintptr_t) &plan->logs[i]),
                            make_scalar_param ((uint64_t) plan->dims[i]) };
      PTO2Submit submit = pto2_make_submit (mixed ? PTO2_KERNEL_NONE : VECTOR, AIV, params, 2);

      submit.block_dim = plan->dims[i];
      submit.sync_start = plan->sync;
      submit.mixed = mixed ? plan->shape : NULL;
      if (pto2_rt_submit (rt, &submit) == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

static void
expect_all (const struct log *log, uint32_t row, uint32_t n)
{
  g_assert_cmpuint (log->wrong, ==, 0);
  for (uint32_t b = 0; b < MOST; b++)
    g_assert_cmpuint (log->ran[row][b], ==, b < n ? 1 : 0);
}

/* Every block once, whatever their number, in one slot. */
static void
test_every_block (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct plan plan = { .dims = { 1, 4, 16, 24, 48, 96, 1000 }, .n = 7 };
  struct pto_run_stats stats;

  plan.logs = g_new0 (struct log, plan.n);
  for (uint32_t round = 0; round < 20; round++)
    {
      memset (plan.logs, 0, plan.n * sizeof *plan.logs);
      sim_run (chip, &program, submit_plan, &plan, &stats);
      for (uint32_t i = 0; i < plan.n; i++)
        expect_all (&plan.logs[i], 1, (uint32_t) plan.dims[i]);
      g_assert_cmpuint (stats.tasks, ==, plan.n);
      g_assert_cmpuint (stats.completed, ==, plan.n);
      g_assert_cmpuint (stats.failed, ==, 0);
    }
  g_free (plan.logs);
  pto_chip_free (chip);
}

struct run
{
  uint64_t task;
  uint64_t first_start;
  uint64_t last_start;
  uint64_t last_end;
  uint32_t n;
  uint32_t n_complete;
  uint64_t cores[3]; /* a bit each */
};

struct runs
{
  struct run of[16];
  const struct pto_trace *trace;
};

static void
see_run (const struct pto_trace_record *record, void *data)
{
  struct run *run = &((struct runs *) data)->of[PTO_TASK_LOCAL (record->task) % 16];

  run->first_start = run->n == 0 ? record->time : MIN (run->first_start, record->time);
  run->last_start = MAX (run->last_start, record->time);
  run->last_end = MAX (run->last_end, record->extra);
  run->cores[record->detail / 64] |= UINT64_C (1) << (record->detail % 64);
  run->n++;
}

static void
see_complete (const struct pto_trace_record *record, void *data)
{
  ((struct runs *) data)->of[PTO_TASK_LOCAL (record->task) % 16].n_complete++;
}

static void
read_runs (const struct pto_trace *trace, struct runs *runs)
{
  memset (runs, 0, sizeof *runs);
  sim_trace_each (trace, PTO_TRACE_RUN, see_run, runs);
  sim_trace_each (trace, PTO_TRACE_COMPLETE, see_complete, runs);
}

static uint32_t
n_cores (const struct run *run)
{
  return (uint32_t) (__builtin_popcountll (run->cores[0]) + __builtin_popcountll (run->cores[1])
                     + __builtin_popcountll (run->cores[2]));
}

/* Two tasks of many blocks run at the same time; each block has a bar of its own in the trace, and
 * the task is complete once. On the virtual clock they use all cores, in waves. */
static void
test_interleave (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct plan plan = { .dims = { 1000, 1000 }, .n = 2 };
  struct runs runs;

  plan.logs = g_new0 (struct log, plan.n);
  read_runs (sim_record (chip, &program, submit_plan, &plan, NULL), &runs);
  for (uint32_t i = 0; i < 2; i++)
    {
      expect_all (&plan.logs[i], 1, 1000);
      g_assert_cmpuint (runs.of[i].n, ==, 1000);
      g_assert_cmpuint (runs.of[i].n_complete, ==, 1);
    }
  if (backend == PTO_BACKEND_DET)
    {
      g_assert_cmpuint (runs.of[1].first_start, <, runs.of[0].last_start);
      g_assert_cmpuint (runs.of[0].first_start, <, runs.of[1].last_start);
      g_assert_cmpuint (n_cores (&runs.of[0]), >=, 24);
      /* 2000 blocks of 1 us on 48 cores; 3 schedulers need 0.3 us for each. */
      g_assert_cmpuint (runs.of[1].last_end, >, 2000 / 48 * 1000);
      g_assert_cmpuint (runs.of[1].last_end, <, 2000 / 3 * 400);
    }
  g_free (plan.logs);
  pto_chip_free (chip);
}

struct doubled
{
  bool expanded;
  uint32_t n;
  int32_t values[MOST];
  int32_t sum;
};

/* Blocks, or the tasks that they stand for; and one that comes after them by its tensor. */
static int
submit_doubled (PTO2Runtime *rt, void *data)
{
  struct doubled *doubled = data;
  uint64_t n = doubled->n;
  Tensor mine = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_INT32);
  Tensor out = cells (doubled->values, n);
  PTOParam first[] = { make_output_param (mine), make_scalar_param (7), make_scalar_param (0) };
  PTOParam params[] = { make_inout_param (out), make_scalar_param (1), make_scalar_param (0) };
  PTOParam sum[] = { make_input_param (out), make_output_param (cells (&doubled->sum, 1)) };

  pto2_rt_submit_block_task (rt, TWICE, AIV, first, 2, doubled->n);
  if (!doubled->expanded)
    pto2_rt_submit_block_task (rt, TWICE, AIV, params, 2, doubled->n);
  else
    for (uint32_t b = 0; b < n; b++)
      {
        params[2] = make_scalar_param (b);
        params[0] = pto2_make_param (PTO_PARAM_NO_DEP, &out);
        pto2_rt_submit_task (rt, TWICE_1, AIV, params, 3);
      }
  if (doubled->expanded)
    return 0;
  pto2_rt_submit_task (rt, SUM, AIV, sum, 2);
  sum[0] = make_input_param (mine);
  sum[1] = make_inout_param (cells (&doubled->sum, 1));
  return 0;
}

static void
test_same_bits (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct doubled *blocks = g_new0 (struct doubled, 1);
  struct doubled *tasks = g_new0 (struct doubled, 1);
  struct pto_run_stats stats;

  blocks->n = tasks->n = 1000;
  tasks->expanded = true;
  sim_run (chip, &program, submit_doubled, blocks, &stats);
  g_assert_cmpuint (stats.tasks, ==, 3);
  g_assert_cmpuint (stats.edges, ==, 1);
  sim_run (chip, &program, submit_doubled, tasks, &stats);
  g_assert_cmpuint (stats.tasks, ==, 1001);
  g_assert_cmpmem (blocks->values, sizeof blocks->values, tasks->values, sizeof tasks->values);
  for (uint32_t i = 0; i < 1000; i++)
    g_assert_cmpint (blocks->values[i], ==, 2 * (int32_t) i + 1);
  g_assert_cmpint (blocks->sum, ==, 1000 * 1000);
  g_free (blocks);
  g_free (tasks);
  pto_chip_free (chip);
}

/* An ordinary task is block 0 of 1. */
static int
submit_ordinary (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_scalar_param ((uint64_t) (uintptr_t) data), make_scalar_param (1) };

  for (uint32_t i = 0; i < 3; i++)
    pto2_rt_submit_task (rt, VECTOR, AIV, params, 2);
  return 0;
}

static void
test_ordinary (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct log *log = g_new0 (struct log, 1);

  sim_run (chip, &program, submit_ordinary, log, NULL);
  g_assert_cmpuint (log->wrong, ==, 0);
  g_assert_cmpuint (log->ran[1][0], ==, 3);
  g_free (log);
  pto_chip_free (chip);
}

/* Blocks that end are progress, however long all of them take. */
static int
submit_sleepy (PTO2Runtime *rt, void *data)
{
  pto2_rt_submit_block_task (rt, SLEEPY, AIV, NULL, 0, 1800);
  return 0;
}

static void
test_long (enum pto_backend backend)
{
  /* On two cores 9 s: more than the eight time-outs after which a run is given up, and a kernel a
   * hundred times less than one, on a busy machine, too. */
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2 timeout=1000");

  sim_run (chip, &program, submit_sleepy, NULL, NULL);
  pto_chip_free (chip);
}

/* As many arguments as there may be, and a condition; what stands before the arguments stays. */
static int
submit_full (PTO2Runtime *rt, void *data)
{
  static int32_t on = 1;
  const uint64_t index[1] = { 0 };
  PTOParam params[PTO_MAX_KERNEL_ARGS];
  Tensor flag = cells (&on, 1);
  PTO2Submit submit = pto2_make_submit (OTHERS, AIV, params, PTO_MAX_KERNEL_ARGS);

  for (uint32_t i = 0; i < PTO_MAX_KERNEL_ARGS; i++)
    params[i] = make_scalar_param ((uint64_t) (uintptr_t) data);
  submit.block_dim = 100;
  submit.condition = &flag;
  submit.condition_index = index;
  pto2_rt_submit (rt, &submit);
  /* On the same cores. */
  submit.condition = NULL;
  submit.condition_index = NULL;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_full (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
  struct log *log = g_new0 (struct log, 1);

  sim_run (chip, &program, submit_full, log, NULL);
  for (uint32_t b = 0; b < 100; b++)
    g_assert_cmpuint (log->ran[1][b], ==, 2);
  g_free (log);
  pto_chip_free (chip);
}

/* An output of a task that does not run leaves what was there, also where outputs are renamed. */
static int
submit_off (PTO2Runtime *rt, void *data)
{
  static int32_t off;
  const uint64_t one = 1;
  const uint64_t index[1] = { 0 };
  Tensor flag = cells (&off, 1);
  Tensor h = pto2_rt_make_tensor (rt, &one, 1, PTO_DTYPE_INT32);
  int32_t *seen = data;
  PTOParam first[] = { make_output_param (h), make_scalar_param (7) };
  PTOParam copy[] = { make_input_param (h), make_output_param (cells (&seen[0], 1)) };

  pto2_rt_submit_task (rt, FIRST, AIV, first, 2);
  pto2_rt_submit_task (rt, COPY, AIV, copy, 2);
  first[0] = make_output_param (h);
  first[1] = make_scalar_param (9);
  pto2_rt_submit_task_if (rt, FIRST, AIV, first, 2, &flag, index);
  copy[0] = make_input_param (h);
  copy[1] = make_output_param (cells (&seen[1], 1));
  pto2_rt_submit_task (rt, COPY, AIV, copy, 2);
  first[0] = make_output_param (h);
  pto2_rt_submit_order (rt, first, 1, NULL, 0);
  copy[0] = make_input_param (h);
  copy[1] = make_output_param (cells (&seen[2], 1));
  pto2_rt_submit_task (rt, COPY, AIV, copy, 2);
  return 0;
}

static void
test_off (enum pto_backend backend)
{
  for (uint32_t renames = 0; renames < 2; renames++)
    {
      struct pto_chip *chip = sim_chip (backend, renames != 0 ? "rename=1" : NULL);
      int32_t seen[3] = { 0 };

      sim_run (chip, &program, submit_off, seen, NULL);
      for (uint32_t i = 0; i < 3; i++)
        g_assert_cmpint (seen[i], ==, 7);
      pto_chip_free (chip);
    }
}

/* --- what goes wrong --- */

static int
submit_beyond (PTO2Runtime *rt, void *data)
{
  uint64_t n = 16;
  PTOParam param = make_output_param (pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_INT32));

  pto2_rt_submit_block_task (rt, BEYOND, AIV, &param, 1, 64);
  return 0;
}

static void
test_beyond (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t i = 0; i < 5; i++)
    sim_run_fails (chip, &program, submit_beyond, NULL, PTO_STATUS_OUT_OF_BOUNDS, "beyond",
                   "5 bytes past argument 0", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

#ifndef SIM_SANITIZED
static int
submit_crash (PTO2Runtime *rt, void *data)
{
  struct doubled *doubled = data;
  PTOParam param = make_output_param (cells (doubled->values, 16));
  PTOParam sum[] = { make_input_param (cells (doubled->values, 16)),
                     make_output_param (cells (&doubled->sum, 1)) };

  pto2_rt_submit_block_task (rt, CRASH, AIV, &param, 1, 1000);
  pto2_rt_submit_block_task (rt, SUM, AIV, sum, 2, 10);
  return 0;
}

static void
test_crash (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct doubled *doubled = g_new0 (struct doubled, 1);

  for (uint32_t i = 0; i < 20; i++)
    {
      doubled->sum = 77;
      sim_run_fails (chip, &program, submit_crash, doubled, PTO_STATUS_KERNEL_FAULT, "crash",
                     "block 5 of 1000", "Segmentation fault", NULL);
      g_assert_cmpint (doubled->sum, ==, 77);
    }
  sim_assert_well (chip);
  g_free (doubled);
  pto_chip_free (chip);
}
#endif

struct bad
{
  int32_t kernel;
  int32_t type;
  int32_t n_params;
  int32_t block_dim;
  bool sync;
  const int32_t *mixed;
  bool in_cluster;
  int32_t cluster;
};

static int
submit_bad (PTO2Runtime *rt, void *data)
{
  const struct bad *bad = data;
  PTOParam params[4] = { make_scalar_param (0), make_scalar_param (0), make_scalar_param (0),
                         make_scalar_param (0) };
  PTO2Submit submit = pto2_make_submit (bad->kernel, bad->type, params, bad->n_params);

  submit.block_dim = bad->block_dim;
  submit.sync_start = bad->sync;
  submit.mixed = bad->mixed;
  submit.in_cluster = bad->in_cluster;
  submit.cluster_id = bad->cluster;
  g_assert_cmpuint (pto2_rt_submit (rt, &submit), ==, PTO2_TASK_NONE);
  return 0;
}

/* Each is refused with the place of the submit and what is wrong. */
static void
test_refused (enum pto_backend backend)
{
  static const int32_t none[3] = { -1, -1, -1 };
  static const int32_t swapped[3] = { VECTOR, -1, -1 };
  static const int32_t unknown[3] = { CUBE, 99, -1 };
  static const int32_t counted[3] = { CUBE, TAKES_2, -1 };
  static const int32_t good[3] = { CUBE, VECTOR, VECTOR };
  static const struct
  {
    struct bad bad;
    enum pto_status status;
    const char *says;
  } cases[] = {
    { { VECTOR, AIV, 2, -1 }, PTO_STATUS_INVALID_ARGS, "1 to 268435455 blocks" },
    { { VECTOR, AIV, 2, 0x10000000 }, PTO_STATUS_INVALID_ARGS, "1 to 268435455 blocks" },
    { { VECTOR, AIC, 2, 4 }, PTO_STATUS_INVALID_ARGS, "runs on AIV (vector)" },
    { { PTO2_KERNEL_NONE, AIV, 2, 4 }, PTO_STATUS_INVALID_ARGS, "no kernel has no blocks" },
    { { TAKES_2, AIV, 3, 4 }, PTO_STATUS_INVALID_ARGS, "takes 2 arguments, but 3 are given" },
    { { PTO2_KERNEL_NONE, 0, 2, 4, false, none },
      PTO_STATUS_INVALID_ARGS,
      "a kernel for the AIC or for an AIV" },
    { { PTO2_KERNEL_NONE, 0, 2, 4, false, swapped },
      PTO_STATUS_INVALID_ARGS,
      "it was submitted to AIC (cube)" },
    { { PTO2_KERNEL_NONE, 0, 2, 4, false, unknown },
      PTO_STATUS_INVALID_ARGS,
      "there is no kernel 99" },
    { { PTO2_KERNEL_NONE, 0, 3, 4, false, counted }, PTO_STATUS_INVALID_ARGS, "takes 2 arguments" },
    { { VECTOR, AIV, 2, 49, true }, PTO_STATUS_SYNC_START, "this machine has 48: set clusters" },
    { { VECTOR, AIV, 2, 73, true },
      PTO_STATUS_SYNC_START,
      "this machine has 48: set clusters to more, at least 37" },
    { { VECTOR, AIV, 2, 3073, true },
      PTO_STATUS_SYNC_START,
      "such a chip has at most 3072 cores: submit fewer blocks" },
    { { PTO2_KERNEL_NONE, 0, 2, 25, true, good },
      PTO_STATUS_SYNC_START,
      "places for 24: set clusters" },
    { { VECTOR, AIV, 2, 1, false, NULL, true, 2 },
      PTO_STATUS_INVALID_ARGS,
      "cluster 2 is not allocated" },
    { { VECTOR, AIV, 2, 0, false, good }, PTO_STATUS_INVALID_ARGS, "it has kernel 1 beside those" },
    { { 0, AIC, 2, 4, false, good }, PTO_STATUS_INVALID_ARGS, "it has kernel 0 beside those" },
    { { VECTOR, AIV, 2, 0, false, NULL, false, 2 },
      PTO_STATUS_INVALID_ARGS,
      "it has cluster_id 2, but in_cluster is 0" },
  };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    sim_run_fails (chip, &program, submit_bad, (void *) &cases[i].bad, cases[i].status, "task 0",
                   "test-blocks.c:", cases[i].says, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static int
submit_crowd (PTO2Runtime *rt, void *data)
{
  PTOParam params[2] = { make_scalar_param (0), make_scalar_param (0) };
  PTO2Submit submit = pto2_make_submit (VECTOR, AIV, params, 2);

  submit.block_dim = *(const int32_t *) data;
  submit.sync_start = 1;
  submit.in_cluster = 1;
  submit.cluster_id = pto2_rt_allocate_cluster (rt);
  g_assert_cmpuint (pto2_rt_submit (rt, &submit), ==, PTO2_TASK_NONE);
  return 0;
}

/* More clusters would be no help to who is for one of them. */
static void
test_crowded_cluster (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int32_t three = 3;
  int32_t many = 100;

  sim_run_fails (chip, &program, submit_crowd, &three, PTO_STATUS_SYNC_START,
                 "its cluster has places for 2: choose a platform with larger clusters", NULL);
  sim_run_fails (chip, &program, submit_crowd, &many, PTO_STATUS_SYNC_START,
                 "a cluster has 3 cores: submit fewer blocks", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* A group says nothing else of its blocks. */
static int
submit_bad_group (PTO2Runtime *rt, void *data)
{
  static const int32_t all[3] = { CUBE, VECTOR, VECTOR };
  static const int32_t unknown[2] = { VECTOR, 99 };
  static const int32_t cubes[25] = { CUBE };
  static const int32_t counted[2] = { VECTOR, TAKES_2 };
  static int32_t on = 1;
  PTOParam params[3] = { make_scalar_param (0), make_scalar_param (0), make_scalar_param (0) };
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, 3);
  Tensor flag = cells (&on, 1);
  int how = *(int *) data;

  submit.group = how == 1 ? unknown : how == 2 ? cubes : how == 3 ? counted : all;
  submit.n_group = how == 2 ? 25 : how == 0 || how > 3 ? 3 : 2;
  submit.kernel_id = how == 8 ? CUBE : PTO2_KERNEL_NONE;
  submit.block_dim = how == 4 ? 2 : 0;
  submit.mixed = how == 5 ? all : NULL;
  submit.in_cluster = how == 6;
  submit.condition = how == 7 ? &flag : NULL;
  if (how == 0)
    submit.group = NULL;
  g_assert_cmpuint (pto2_rt_submit (rt, &submit), ==, PTO2_TASK_NONE);
  return 0;
}

static void
test_bad_group (enum pto_backend backend)
{
  static const struct
  {
    enum pto_status status;
    const char *says;
  } cases[] = { { PTO_STATUS_INVALID_ARGS, "a group of 3 kernels at" },
                { PTO_STATUS_INVALID_ARGS, "there is no kernel 99" },
                { PTO_STATUS_SYNC_START, "25 members need AIC at once; this machine has 24" },
                { PTO_STATUS_INVALID_ARGS, "takes 2 arguments, but 3 are given" },
                { PTO_STATUS_INVALID_ARGS, "no block_dim, no mixed kernels and no cluster" },
                { PTO_STATUS_INVALID_ARGS, "no block_dim, no mixed kernels and no cluster" },
                { PTO_STATUS_INVALID_ARGS, "no block_dim, no mixed kernels and no cluster" },
                { PTO_STATUS_INVALID_ARGS, "a task with a condition has an index" },
                { PTO_STATUS_INVALID_ARGS, "it has no kernel_id" } };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int i = 0; i < (int) G_N_ELEMENTS (cases); i++)
    sim_run_fails (chip, &program, submit_bad_group, &i, cases[i].status, "task 0", cases[i].says,
                   NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- kernels of one cluster --- */

static const int32_t shapes[][3]
    = { { CUBE, -1, -1 },     { -1, VECTOR, -1 },   { -1, -1, VECTOR },      { -1, VECTOR, VECTOR },
        { CUBE, VECTOR, -1 }, { CUBE, -1, VECTOR }, { CUBE, VECTOR, VECTOR } };

/* Of each shape: right sub-blocks, one completion, all blocks; and where they ran. */
static void
test_mixed (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (uint32_t sync = 0; sync < 2; sync++)
      {
        struct plan plan = { .dims = { 1, 5, sync != 0 ? 24 : 200 }, .n = 3, .sync = sync != 0 };
        struct pto_run_stats stats;
        struct runs runs;
        uint32_t members = 0;

        memcpy (plan.shape, shapes[s], sizeof plan.shape);
        for (uint32_t i = 0; i < 3; i++)
          members += shapes[s][i] >= 0;
        plan.logs = g_new0 (struct log, plan.n);
        read_runs (sim_record (chip, &program, submit_plan, &plan, &stats), &runs);
        g_assert_cmpuint (stats.tasks, ==, 3);
        for (uint32_t i = 0; i < plan.n; i++)
          {
            for (uint32_t row = 0; row < 3; row++)
              expect_all (&plan.logs[i], row, shapes[s][row] >= 0 ? (uint32_t) plan.dims[i] : 0);
            g_assert_cmpuint (runs.of[i].n, ==, members * (uint32_t) plan.dims[i]);
            g_assert_cmpuint (runs.of[i].n_complete, ==, 1);
          }
        /* One block is in one cluster: cores are numbered cluster by cluster. */
        if (members > 1)
          {
            uint32_t first = runs.of[0].cores[0] != 0
                                 ? (uint32_t) __builtin_ctzll (runs.of[0].cores[0])
                                 : 64 + (uint32_t) __builtin_ctzll (runs.of[0].cores[1]);
            uint32_t last = runs.of[0].cores[1] != 0
                                ? 127 - (uint32_t) __builtin_clzll (runs.of[0].cores[1])
                                : 63 - (uint32_t) __builtin_clzll (runs.of[0].cores[0]);

            g_assert_cmpuint (n_cores (&runs.of[0]), ==, members);
            g_assert_cmpuint (first / 3, ==, last / 3);
          }
        g_free (plan.logs);
      }
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* All kinds at once, many rounds: everybody comes to an end. */
static int
submit_everything (PTO2Runtime *rt, void *data)
{
  struct log *logs = data;

  for (uint32_t i = 0; i < 60; i++)
    {
      uint32_t dim = 1 + i * 7 % 20;
      PTOParam params[]
          = { make_scalar_param ((uint64_t) (uintptr_t) &logs[i]), make_scalar_param (dim) };
      PTO2Submit submit = pto2_make_submit (i % 2 == 0 ? PTO2_KERNEL_NONE : VECTOR, AIV, params, 2);
      int32_t cluster = i % 5 == 4 ? pto2_rt_allocate_cluster (rt) : -1;

      submit.block_dim = (int32_t) dim;
      submit.sync_start = i % 3 == 0 && cluster < 0;
      submit.mixed = i % 2 == 0 ? shapes[i % G_N_ELEMENTS (shapes)] : NULL;
      submit.in_cluster = cluster >= 0;
      submit.cluster_id = cluster;
      pto2_rt_submit (rt, &submit);
      if (cluster >= 0)
        pto2_rt_free_cluster (rt, cluster);
    }
  return 0;
}

static void
test_everything (enum pto_backend backend)
{
  struct log *logs = g_new0 (struct log, 60);

  for (uint32_t round = 0; round < SCALE (200) + 5; round++)
    {
      g_autofree char *settings = g_strdup_printf ("seed=%u clusters=%u aicpu-threads=%u",
                                                   round + 1, 20 + round % 5, 2 + round % 3);
      struct pto_chip *chip = sim_chip (backend, settings);

      struct pto_run_stats stats;

      memset (logs, 0, 60 * sizeof *logs);
      if (round % 5 == 0)
        {
          sim_record (chip, &program, submit_everything, logs, &stats);
          sim_assert_trace (chip, &stats);
        }
      else
        sim_run (chip, &program, submit_everything, logs, NULL);
      for (uint32_t i = 0; i < 60; i++)
        for (uint32_t row = 0; row < 3; row++)
          {
            const int32_t *shape = shapes[i % G_N_ELEMENTS (shapes)];
            bool runs = i % 2 == 0 ? shape[row] >= 0 : row == 1;

            expect_all (&logs[i], row, runs ? 1 + i * 7 % 20 : 0);
          }
      pto_chip_free (chip);
    }
  g_free (logs);
}

/* Who has chosen a cluster, and has nothing of it yet, leaves it to one of a higher priority. */
static int
submit_outranked (PTO2Runtime *rt, void *data)
{
  const int32_t vectors[3] = { PTO2_KERNEL_NONE, VECTOR, VECTOR };
  const int32_t all[3] = { CUBE, VECTOR, VECTOR };
  bool ranked = *(bool *) data;
  static struct log log;
  PTOParam params[] = { make_scalar_param ((uint64_t) (uintptr_t) &log), make_scalar_param (1) };
  int32_t cluster = pto2_rt_allocate_cluster (rt);
  PTO2TaskId first;
  PTO2Submit submit;

  pto2_rt_submit_task (rt, SLOW, AIV, params, 2);
  pto2_rt_submit_task (rt, LONG, AIV, NULL, 0);
  first = pto2_rt_submit_task (rt, SHORT, AIC, NULL, 0);
  pto2_rt_submit_task (rt, SHORT, AIC, NULL, 0);
  submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, 2);
  submit.mixed = vectors;
  pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (SHORT, AIC, NULL, 0);
  submit.block_dim = 2;
  submit.sync_start = 1;
  submit.priority = ranked ? 3 : 0;
  submit.after = &first;
  submit.n_after = 1;
  pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, 2);
  submit.mixed = all;
  submit.in_cluster = 1;
  submit.cluster_id = cluster;
  submit.priority = ranked ? 2 : 0;
  submit.after = &first;
  submit.n_after = 1;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_outranked (enum pto_backend backend)
{
  struct pto_platform platform = *pto_platform_find ("a2a3sim");

  platform.clusters = 1;
  platform.aic_per_cluster = 2;
  platform.aiv_per_cluster = 2;
  platform.aicpu_threads = 2;
  for (uint32_t seed = 1; seed <= 20; seed++)
    for (uint32_t i = 0; i < 2; i++)
      {
        g_autofree char *settings = g_strdup_printf ("seed=%u", seed);
        struct pto_chip *chip = sim_chip_on (&platform, backend, settings);
        bool ranked = i != 0;

        sim_run (chip, &program, submit_outranked, &ranked, NULL);
        pto_chip_free (chip);
      }
}

/* --- clusters --- */

struct held
{
  struct log logs[64];
  int32_t ids[64];
  uint32_t n;
  bool sleeps; /* free them with the scope */
};

/* More groups than clusters: the next waits until one is free. */
static int
submit_groups (PTO2Runtime *rt, void *data)
{
  struct held *held = data;

  for (uint32_t g = 0; g < held->n; g++)
    PTO2_SCOPE (rt)
    {
      PTOParam params[]
          = { make_scalar_param ((uint64_t) (uintptr_t) &held->logs[g]), make_scalar_param (1) };

      held->ids[g] = pto2_rt_allocate_cluster (rt);
      for (uint32_t k = 0; k < 4; k++)
        pto2_rt_submit_task_clustered (rt, k % 2 == 0 ? SLOW : CUBE, k % 2 == 0 ? AIV : AIC, params,
                                       2, held->ids[g]);
      if (!held->sleeps)
        pto2_rt_free_cluster (rt, held->ids[g]);
    }
  return 0;
}

static void
see_place (const struct pto_trace_record *record, void *data)
{
  const struct held *held = data;
  /* Every group is 4 tasks. */
  uint32_t group = PTO_TASK_LOCAL (record->task) / 4;

  g_assert_cmpint ((int32_t) (record->detail / 3), ==, held->ids[group]);
}

struct span
{
  uint64_t begin[64];
  uint64_t end[64];
};

static void
see_span (const struct pto_trace_record *record, void *data)
{
  struct span *span = data;
  uint32_t group = PTO_TASK_LOCAL (record->task) / 4;

  span->begin[group] = MIN (span->begin[group], record->time);
  span->end[group] = MAX (span->end[group], record->extra);
}

static void
test_groups (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=5 aicpu-threads=3");
  struct held *held = g_new0 (struct held, 1);

  for (uint32_t round = 0; round < 40; round++)
    {
      const struct pto_trace *trace;
      struct pto_run_stats stats;
      struct span span;

      memset (held, 0, sizeof *held);
      memset (span.begin, 0xff, sizeof span.begin);
      memset (span.end, 0, sizeof span.end);
      held->n = 64;
      held->sleeps = round % 2 == 0;
      trace = sim_record (chip, &program, submit_groups, held, &stats);
      sim_assert_trace (chip, &stats);
      sim_trace_each (trace, PTO_TRACE_RUN, see_place, held);
      sim_trace_each (trace, PTO_TRACE_RUN, see_span, &span);
      for (uint32_t g = 0; g < held->n; g++)
        {
          g_assert_cmpint (held->ids[g], >=, 0);
          g_assert_cmpint (held->ids[g], <, 5);
          g_assert_cmpuint (held->logs[g].ran[0][0], ==, 2);
          g_assert_cmpuint (held->logs[g].ran[1][0], ==, 2);
          /* Nobody else had it meanwhile. */
          for (uint32_t other = 0; other < g; other++)
            if (held->ids[other] == held->ids[g])
              g_assert_cmpuint (span.end[other], <=, span.begin[g]);
        }
      if (backend == PTO_BACKEND_DET)
        g_assert_cmpuint (stats.stalls, >, 0);
    }
  g_free (held);
  pto_chip_free (chip);
}

/* Who is held is stepped over. */
static int
take_in_turn (PTO2Runtime *rt, void *data)
{
  for (int32_t i = 0; i < 12; i++)
    {
      int32_t id = pto2_rt_allocate_cluster (rt);

      g_assert_cmpint (id, ==, i % 5);
      pto2_rt_free_cluster (rt, id);
    }
  g_assert_cmpint (pto2_rt_allocate_cluster (rt), ==, 2);
  for (int32_t i = 0; i < 12; i++)
    {
      static const int32_t others[] = { 3, 4, 0, 1 };
      int32_t id = pto2_rt_allocate_cluster (rt);

      g_assert_cmpint (id, ==, others[i % 4]);
      pto2_rt_free_cluster (rt, id);
    }
  return 0;
}

/* Work goes round; and a run begins where the machine does, so that it can be repeated. */
static void
test_in_turn (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=5 aicpu-threads=3");

  for (uint32_t i = 0; i < 2; i++)
    sim_run (chip, &program, take_in_turn, NULL, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static int
hold_all (PTO2Runtime *rt, void *data)
{
  int32_t *n = data;

  for (*n = 0; pto2_rt_allocate_cluster (rt) >= 0; ++*n)
    ;
  return 0;
}

static int
free_twice (PTO2Runtime *rt, void *data)
{
  int32_t id = pto2_rt_allocate_cluster (rt);

  pto2_rt_free_cluster (rt, id);
  pto2_rt_free_cluster (rt, id);
  return 0;
}

static int
submit_late (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_scalar_param (0), make_scalar_param (0) };
  int32_t id = -1;

  PTO2_SCOPE (rt)
  {
    id = pto2_rt_allocate_cluster (rt);
  }
  g_assert_cmpuint (pto2_rt_submit_task_clustered (rt, VECTOR, AIV, params, 2, id), ==,
                    PTO2_TASK_NONE);
  return 0;
}

static int
free_unknown (PTO2Runtime *rt, void *data)
{
  pto2_rt_free_cluster (rt, *(int32_t *) data);
  return 0;
}

static void
test_not_held (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=5 aicpu-threads=3");
  int32_t unknown[] = { -1, 5, INT32_MAX };
  int32_t n;

  for (uint32_t i = 0; i < 3; i++)
    {
      sim_run_fails (chip, &program, hold_all, &n, PTO_STATUS_SCOPE_DEADLOCK, "no cluster is free",
                     "all 5 are held by open scopes (the first at test-blocks.c:",
                     "set clusters to more", NULL);
      g_assert_cmpint (n, ==, 5);
      sim_run_fails (chip, &program, free_twice, NULL, PTO_STATUS_INVALID_ARGS, "cluster 0",
                     "is freed, but it is not allocated", NULL);
      sim_run_fails (chip, &program, submit_late, NULL, PTO_STATUS_INVALID_ARGS, "cluster 0",
                     "is not allocated", NULL);
      sim_run_fails (chip, &program, free_unknown, &unknown[i], PTO_STATUS_INVALID_ARGS,
                     "is freed, but it is not allocated", NULL);
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static int
ask_cores (PTO2Runtime *rt, void *data)
{
  int32_t cores[4] = { -1, -1, -1, -1 };

  g_assert_cmpint (pto2_rt_cluster_count (rt), ==, 5);
  g_assert_cmpint (pto2_rt_cluster_cores (rt, 3, AIC, cores, 4), ==, 1);
  g_assert_cmpint (cores[0], ==, 3);
  g_assert_cmpint (cores[1], ==, -1);
  g_assert_cmpint (pto2_rt_cluster_cores (rt, 3, AIV, cores, 4), ==, 2);
  g_assert_cmpint (cores[0], ==, 6);
  g_assert_cmpint (cores[1], ==, 7);
  cores[1] = -1;
  g_assert_cmpint (pto2_rt_cluster_cores (rt, 3, AIV, cores, 1), ==, 2);
  g_assert_cmpint (cores[1], ==, -1);
  g_assert_cmpint (pto2_rt_cluster_cores (rt, 5, AIV, NULL, 0), ==, -1);
  g_assert_cmpint (pto2_rt_cluster_cores (rt, -1, AIV, NULL, 0), ==, -1);
  g_assert_cmpint (pto2_rt_cluster_cores (rt, 0, 2, NULL, 0), ==, -1);
  return 0;
}

/* A task for cluster -1 is for any, also where all are taken. */
static int
submit_anywhere (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_output_existing_param (cells (data, 1)), make_scalar_param (9) };

  while (pto2_rt_cluster_count (rt) > pto2_rt_allocate_cluster (rt) + 1)
    ;
  pto2_rt_submit_task_clustered (rt, FIRST, AIV, params, 2, -1);
  params[0] = make_output_existing_param (cells ((int32_t *) data + 1, 1));
  pto2_rt_submit_task_clustered (rt, FIRST, AIV, params, 2, 1);
  return 0;
}

static void
test_any_cluster (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=3");
  int32_t values[2] = { 0, 0 };

  sim_run (chip, &program, submit_anywhere, values, NULL);
  g_assert_cmpint (values[0], ==, 9);
  g_assert_cmpint (values[1], ==, 9);
  pto_chip_free (chip);
}

static void
test_cores (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=5 aicpu-threads=3");

  sim_run (chip, &program, ask_cores, NULL, NULL);
  pto_chip_free (chip);
}

static void
add (void)
{
  sim_add ("blocks/every-block", test_every_block);
  sim_add ("blocks/interleave", test_interleave);
  sim_add ("blocks/same-bits", test_same_bits);
  sim_add ("blocks/ordinary", test_ordinary);
  sim_add ("blocks/long", test_long);
  sim_add ("blocks/full", test_full);
  sim_add ("blocks/off", test_off);
  sim_add ("blocks/outranked", test_outranked);
  sim_add ("blocks/beyond", test_beyond);
#ifndef SIM_SANITIZED
  sim_add ("blocks/crash", test_crash);
#endif
  sim_add ("blocks/refused", test_refused);
  sim_add ("blocks/crowded-cluster", test_crowded_cluster);
  sim_add ("blocks/bad-group", test_bad_group);
  sim_add ("blocks/mixed", test_mixed);
  sim_add ("blocks/everything", test_everything);
  sim_add ("blocks/groups", test_groups);
  sim_add ("blocks/in-turn", test_in_turn);
  sim_add ("blocks/not-held", test_not_held);
  sim_add ("blocks/any-cluster", test_any_cluster);
  sim_add_once ("blocks/cores", test_cores);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
