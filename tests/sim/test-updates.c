/* test-updates.c: do tasks that update the same memory in any order, or in copies of their own, do
 * so on a chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../sim/builtin-kernels.h"

#include <stdatomic.h>
#include <string.h>

#define N 256u /* elements */

enum
{
  ADD,   /* args[0][i] += args[1] + i, slowly */
  SUM,   /* args[0] += args[1] */
  RAISE, /* args[0][i] = max (args[0][i], args[1] + i) */
  LARGEST,
  CHECK, /* args[1], a log, knows whether args[0] is as it says */
  PART,  /* of a task that updates the counter at args[0]; args[1] is its number */
  CUBE_PART,
  TAKES_3
};

struct log
{
  float expected[N];
  _Atomic uint32_t right;
  _Atomic uint32_t wrong;
};

static float *
floats (int64_t *args, int index)
{
  return sim_data (args, index);
}

static void
kernel_add (int64_t *args)
{
  float *data = floats (args, 0);

  for (uint32_t i = 0; i < N; i++)
    {
      data[i] += (float) (args[1] + i);
      if (i == N / 2)
        pto_relax (args);
    }
}

static void
kernel_sum (int64_t *args)
{
  for (uint32_t i = 0; i < N; i++)
    floats (args, 0)[i] += floats (args, 1)[i];
}

static void
kernel_raise (int64_t *args)
{
  for (uint32_t i = 0; i < N; i++)
    if ((float) (args[1] + i) > floats (args, 0)[i])
      floats (args, 0)[i] = (float) (args[1] + i);
}

static void
kernel_largest (int64_t *args)
{
  for (uint32_t i = 0; i < N; i++)
    if (floats (args, 1)[i] > floats (args, 0)[i])
      floats (args, 0)[i] = floats (args, 1)[i];
}

static void
kernel_check (int64_t *args)
{
  struct log *log = (struct log *) (uintptr_t) args[1];

  atomic_fetch_add (memcmp (floats (args, 0), log->expected, sizeof log->expected) == 0
                        ? &log->right
                        : &log->wrong,
                    1);
}

/* Whose turn it is, from 1, and how often parts have been here. */
struct counter
{
  _Atomic uint32_t holder;
  _Atomic uint32_t inside;
  _Atomic uint32_t parts;
  _Atomic uint32_t wrong;
};

static void
kernel_part (int64_t *args)
{
  struct counter *counter = sim_data (args, 0);

  if (atomic_fetch_add (&counter->inside, 1) == 0)
    atomic_store (&counter->holder, (uint32_t) args[1]);
  pto_relax (args);
  if (atomic_load (&counter->holder) != (uint32_t) args[1])
    atomic_fetch_add (&counter->wrong, 1);
  atomic_fetch_add (&counter->parts, 1);
  atomic_fetch_sub (&counter->inside, 1);
}

static const struct pto_kernel kernels[] = {
  [ADD] = { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 10000 } },
  [SUM] = { "sum", kernel_sum, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, .n_args_plus_1 = 3 },
  [RAISE] = { "raise", kernel_raise, PTO_CORE_TYPE_AIV, { .base_ns = 10000 } },
  [LARGEST] = { "largest", kernel_largest, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [CHECK] = { "check", kernel_check, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [PART] = { "part", kernel_part, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CUBE_PART] = { "cube_part", kernel_part, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [TAKES_3] = { "takes_3", kernel_sum, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, .n_args_plus_1 = 4 },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static const uint64_t shape[1] = { N };

/* --- reductions --- */

struct reduce
{
  float *total; /* N */
  uint32_t n;   /* tasks */
  enum
  {
    CHAIN,
    COMMUTE,
    REDUCE
  } how;
  bool mixed; /* kinds of tasks that reduce */
  struct log *log;
};

static int
orchestrate_sum (PTO2Runtime *rt, void *data)
{
  struct reduce *reduce = data;
  Tensor total = make_tensor_external (reduce->total, shape, 1, PTO_DTYPE_FLOAT32);
  const float nothing = 0;
  PTOParam params[2];

  params[0] = reduce->how == CHAIN     ? make_inout_param (total)
              : reduce->how == COMMUTE ? make_commutative_param (total)
                                       : make_reduction_param (total, SUM, &nothing);
  for (uint32_t i = 0; i < reduce->n; i++)
    {
      params[1] = make_scalar_param (i);
      if (i % 7 == 3 && reduce->mixed)
        pto2_rt_submit_task_with_priority (rt, ADD, AIV, params, 2, 1);
      else if (i % 7 == 4 && reduce->mixed)
        pto2_rt_submit_task_after (rt, ADD, AIV, params, 2, (PTO2TaskId[]){ 0 }, 1);
      else
        pto2_rt_submit_task (rt, ADD, AIV, params, 2);
    }
  if (reduce->log != NULL)
    {
      params[0] = make_input_param (total);
      params[1] = make_scalar_param ((uint64_t) (uintptr_t) reduce->log);
      pto2_rt_submit_task (rt, CHECK, AIV, params, 2);
    }
  return 0;
}

/* Whole numbers, so that floating point does not mind the order. */
static void
expect_sum (struct log *log, uint32_t n)
{
  for (uint32_t i = 0; i < N; i++)
    log->expected[i] = (float) (i + n * i + n * (n - 1) / 2);
}

static void
test_sum (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct log *log = g_new0 (struct log, 1);
  uint32_t n = SCALE (1000);
  float total[N];
  struct reduce reduce = { .total = total, .n = n, .how = REDUCE, .log = log };
  struct pto_run_stats stats;

  expect_sum (log, n);
  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint32_t i = 0; i < N; i++)
        total[i] = (float) i;
      reduce.mixed = round > 0;
      if (reduce.mixed)
        sim_run (chip, &program, orchestrate_sum, &reduce, &stats);
      else
        sim_record (chip, &program, orchestrate_sum, &reduce, &stats);
      g_assert_cmpmem (total, sizeof total, log->expected, sizeof log->expected);
      g_assert_cmpuint (log->right, ==, round + 1);
      /* A copy for each of 48 cores is filled and combined. */
      g_assert_cmpuint (stats.tasks, ==, n + 2 * (n < 48 ? n : 48) + 1);
      if (!reduce.mixed)
        sim_assert_trace (chip, &stats);
    }
  g_assert_cmpuint (log->wrong, ==, 0);
  g_free (log);
  pto_chip_free (chip);
}

/* In virtual time 1000 tasks of 10 us on 48 cores take hardly more than their 48th part. */
static void
test_time (enum pto_backend backend)
{
  uint64_t ns[3];

  for (uint32_t how = CHAIN; how <= REDUCE; how++)
    {
      struct pto_chip *chip = sim_chip (backend, "seed=1");
      float total[N] = { 0 };
      struct reduce reduce = { .total = total, .n = 960, .how = how };
      struct pto_run_stats stats;

      sim_run (chip, &program, orchestrate_sum, &reduce, &stats);
      ns[how] = stats.elapsed_ns;
      pto_chip_free (chip);
    }
  g_test_message ("chain %" G_GUINT64_FORMAT ", commutative %" G_GUINT64_FORMAT
                  ", reduction %" G_GUINT64_FORMAT " ns",
                  ns[CHAIN], ns[COMMUTE], ns[REDUCE]);
  g_assert_cmpuint (ns[CHAIN], >, 9600000);
  g_assert_cmpuint (ns[COMMUTE], >, 9600000);
  g_assert_cmpuint (ns[REDUCE], <, 9600000 / 10);
}

/* Copies are views' whole and dense; other kernels, other scopes, elements and orders come behind
 * the combining. */
static int
reduce_parts (PTO2Runtime *rt, void *data)
{
  float *total = data; /* 2 N, every other one of which is meant */
  const uint64_t both[2] = { N, 2 };
  const uint64_t column[2] = { N, 1 };
  const uint64_t at[2] = { 0, 1 };
  const uint64_t last[1] = { N - 1 };
  const float nothing = 0;
  const float least = -1e30f;
  Tensor matrix = make_tensor_external (total, both, 2, PTO_DTYPE_FLOAT32);
  Tensor second = pto2_tensor_view (&matrix, column, at);
  Tensor made = pto2_rt_make_tensor (rt, shape, 1, PTO_DTYPE_FLOAT32);
  float seen = 0;

  /* Of the column alone; a kernel gets a dense one. */
  for (uint32_t i = 0; i < 20; i++)
    pto2_rt_submit_task (
        rt, ADD, AIV,
        (PTOParam[]){ make_reduction_param (second, SUM, &nothing), make_scalar_param (1) }, 2);
  pto2_rt_fill (rt, &made, &nothing);
  for (uint32_t i = 0; i < 20; i++)
    pto2_rt_submit_task (
        rt, RAISE, AIV,
        (PTOParam[]){ make_reduction_param (made, LARGEST, &least), make_scalar_param (i) }, 2);
  if (!pto2_rt_get_element (rt, &made, last, &seen) || seen != N - 1 + 19)
    return 1;
  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < 20; i++)
      pto2_rt_submit_task (
          rt, ADD, AIV,
          (PTOParam[]){ make_reduction_param (made, SUM, &nothing), make_scalar_param (1) }, 2);
  }
  return pto2_rt_get_element (rt, &made, last, &seen) && seen == N - 1 + 19 + 20 * N ? 0 : 2;
}

/* SUM's tensors are dense, but for the one that takes in last. */
static void
kernel_sum_strided (int64_t *args)
{
  const TensorData *to = sim_tensor (args, 0);
  const TensorData *from = sim_tensor (args, 1);
  uint64_t stride = to->strides[0];

  for (uint32_t i = 0; i < N; i++)
    floats (args, 0)[i * stride] += floats (args, 1)[i * from->strides[0]];
}

static void
test_parts_of_tensors (enum pto_backend backend)
{
  struct pto_kernel strided[G_N_ELEMENTS (kernels)];
  struct pto_program other = { strided, G_N_ELEMENTS (strided) };
  struct pto_chip *chip = sim_chip (backend, NULL);
  float *total = g_new (float, 2 * N);

  memcpy (strided, kernels, sizeof strided);
  strided[SUM].entry = kernel_sum_strided;
  for (uint32_t i = 0; i < 2 * N; i++)
    total[i] = (float) i;
  sim_run (chip, &other, reduce_parts, total, NULL);
  for (uint32_t i = 0; i < N; i++)
    {
      g_assert_cmpfloat (total[2 * i], ==, (float) (2 * i));
      g_assert_cmpfloat (total[2 * i + 1], ==, (float) (2 * i + 1 + 20 * (i + 1)));
    }
  g_free (total);
  pto_chip_free (chip);
}

/* In a manual scope nobody can name what combines: whoever is there comes after it, also where
 * scopes follow each other, and where a task is added by hand. */
static int
reduce_before_manual (PTO2Runtime *rt, void *data)
{
  struct reduce *reduce = data;
  Tensor totals[2] = { make_tensor_external (reduce->total, shape, 1, PTO_DTYPE_FLOAT32),
                       make_tensor_external (reduce->total + N, shape, 1, PTO_DTYPE_FLOAT32) };
  const float nothing = 0;

  for (uint32_t round = 0; round < 2; round++)
    {
      for (uint32_t i = 0; i < reduce->n; i++)
        for (uint32_t t = round; t < 2; t++)
          pto2_rt_submit_task (rt, ADD, AIV,
                               (PTOParam[]){ make_reduction_param (totals[t], SUM, &nothing),
                                             make_scalar_param (i) },
                               2);
      PTO2_MANUAL_SCOPE (rt)
      {
        PTO2_MANUAL_SCOPE (rt)
        {
          for (uint32_t i = 0; i < 3; i++)
            pto2_rt_submit_task (
                rt, CHECK, AIV,
                (PTOParam[]){ make_input_param (totals[0]),
                              make_scalar_param ((uint64_t) (uintptr_t) reduce->log) },
                2);
        }
      }
    }
  return 0;
}

static void
test_manual (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct log *log = g_new0 (struct log, 1);
  float total[2 * N] = { 0 };
  struct reduce reduce = { .total = total, .n = 100, .log = log };

  for (uint32_t i = 0; i < N; i++)
    {
      total[i] = (float) i;
      log->expected[i] = (float) (i + 100 * i + 4950);
    }
  sim_run (chip, &program, reduce_before_manual, &reduce, NULL);
  g_assert_cmpuint (log->right, ==, 6);
  g_assert_cmpuint (log->wrong, ==, 0);
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpfloat (total[N + i], ==, 2 * (float) (100 * i + 4950));
  g_free (log);
  pto_chip_free (chip);
}

static int
reduce_badly (PTO2Runtime *rt, void *data)
{
  static float total[N];
  const float nothing = 0;
  Tensor tensor = make_tensor_external (total, shape, 1, PTO_DTYPE_FLOAT32);
  uint32_t how = *(uint32_t *) data;
  PTOParam params[] = { make_reduction_param (tensor,
                                              how == 0   ? 99
                                              : how == 1 ? TAKES_3
                                                         : SUM,
                                              &nothing),
                        make_scalar_param (1) };

  if (how == 2)
    pto2_rt_manual_scope_begin (rt);
  return pto2_rt_submit_task (rt, ADD, AIV, params, 2) == PTO2_TASK_NONE ? 0 : 1;
}

static void
test_refused (enum pto_backend backend)
{
  static const char *const words[]
      = { "argument 0: kernel 99 is to combine, but there is none; this program has 0 (add)",
          "argument 0: kernel 7 (takes_3) is to combine, but takes 3 arguments",
          "argument 0: nothing is reduced in a manual scope" };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t how = 0; how < G_N_ELEMENTS (words); how++)
    sim_run_fails (chip, &program, reduce_badly, &how, PTO_STATUS_INVALID_ARGS,
                   "test-updates.c:", words[how], NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* Bit-equal for one seed, whatever the clock on the wall says. */
static void
test_same_bits (enum pto_backend backend)
{
  float results[2][N];

  for (uint32_t run = 0; run < 2; run++)
    {
      struct pto_chip *chip = sim_chip (backend, "seed=7");
      struct reduce reduce = { .total = results[run], .n = 300, .how = REDUCE };

      for (uint32_t i = 0; i < N; i++)
        results[run][i] = 1e8f / (float) (i + 3);
      sim_run (chip, &program, orchestrate_sum, &reduce, NULL);
      pto_chip_free (chip);
    }
  g_assert_cmpmem (results[0], sizeof results[0], results[1], sizeof results[1]);
}

/* --- updates of tasks of several parts --- */

static int
update_in_parts (PTO2Runtime *rt, void *data)
{
  const uint64_t bytes[1] = { sizeof (struct counter) };
  Tensor counter = make_tensor_external (data, bytes, 1, PTO_DTYPE_UINT8);
  PTOParam params[2] = { make_commutative_param (counter) };

  for (uint32_t i = 0; i < SCALE (200); i++)
    {
      params[1] = make_scalar_param (1 + i);
      switch (i % 5)
        {
        case 0:
          pto2_rt_submit_task (rt, PART, AIV, params, 2);
          break;
        case 1:
          pto2_rt_submit_block_task (rt, PART, AIV, params, 2, 5);
          break;
        case 2:
          pto2_rt_submit_mixed_task (rt, CUBE_PART, PART, PART, params, 2, 2);
          break;
        case 3:
          pto2_rt_submit_sync_task (rt, PART, AIV, params, 2, 6);
          break;
        default:
          {
            int32_t cluster = pto2_rt_allocate_cluster (rt);

            pto2_rt_submit_task_clustered (rt, PART, AIV, params, 2, cluster);
            pto2_rt_free_cluster (rt, cluster);
            break;
          }
        }
    }
  return 0;
}

static void
test_parts_of_tasks (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct counter counter = { 0 };

  sim_run (chip, &program, update_in_parts, &counter, NULL);
  g_assert_cmpuint (counter.parts, ==, SCALE (200) / 5 * (1 + 5 + 6 + 6 + 1));
  g_assert_cmpuint (counter.wrong, ==, 0);
  g_assert_cmpuint (counter.inside, ==, 0);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("updates/sum", test_sum);
  sim_add_once ("updates/time", test_time);
  sim_add ("updates/parts-of-tensors", test_parts_of_tensors);
  sim_add ("updates/manual", test_manual);
  sim_add ("updates/refused", test_refused);
  sim_add_once ("updates/same-bits", test_same_bits);
  sim_add ("updates/parts-of-tasks", test_parts_of_tasks);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
