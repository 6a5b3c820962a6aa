/* test-tasks.c: what can an orchestration say of a task besides its kernel and its tensors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tasks-test.h"

#include "../../pto/core/task.h"
#include "../../sim/builtin-kernels.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* --- named producers --- */

struct pairs
{
  int32_t cells[N];
  int32_t seen[N];
  PTO2TaskId ids[N];
  bool late; /* by then the producers have retired */
};

/* The map does not know of these accesses: only the names order. */
static int
name_each (PTO2Runtime *rt, void *data)
{
  struct pairs *pairs = data;

  for (uint32_t i = 0; i < N; i++)
    PTO2_SCOPE (rt)
    {
      pairs->ids[i]
          = SUBMIT (rt, i % 3 == 0 ? SLOW : STORE, make_no_dep_param (cell (&pairs->cells[i])),
                    make_scalar_param (i + 1));
    }
  for (uint32_t i = 0; i < N; i++)
    PTO2_SCOPE (rt)
    {
      PTO2TaskId after[3] = { pairs->ids[i], pairs->ids[(i + 1) % N], pairs->ids[i] };
      PTOParam params[4] = { make_output_param (cell (&pairs->seen[i])), make_scalar_param (2),
                             make_no_dep_param (cell (&pairs->cells[i])),
                             make_no_dep_param (cell (&pairs->cells[(i + 1) % N])) };

      if (pto2_rt_submit_task_after (rt, SUM, AIV, params, 4, after, 3) == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

static void
test_after (enum pto_backend backend)
{
  static const char *const windows[] = { NULL, "task-window=16" };

  for (uint32_t w = 0; w < 2; w++)
    {
      struct pto_chip *chip = sim_chip (backend, windows[w]);
      struct pairs *pairs = g_new0 (struct pairs, 1);
      struct pto_run_stats stats;

      for (uint32_t round = 0; round < 10; round++)
        {
          memset (pairs, 0, sizeof *pairs);
          sim_run (chip, &tasks_program, name_each, pairs, &stats);
          g_assert_cmpuint (stats.tasks, ==, 2 * N);
          /* One that has retired is waited for no more. */
          g_assert_cmpuint (stats.edges, <=, 2 * N);
          if (w == 0 && backend == PTO_BACKEND_DET)
            g_assert_cmpuint (stats.edges, ==, 2 * N);
          for (uint32_t i = 0; i < N; i++)
            {
              g_assert_cmpint (pairs->seen[i], ==, (int) (i + 1 + (i + 1) % N + 1));
              for (uint32_t k = 0; k < i; k++)
                g_assert_cmpuint (pairs->ids[i], !=, pairs->ids[k]);
            }
        }
      g_free (pairs);
      pto_chip_free (chip);
    }
}

static int
name_nobody (PTO2Runtime *rt, void *data)
{
  PTO2TaskId after[2] = { 0, 7 };
  static int32_t value; /* the first task may run after this has returned */
  PTOParam params[2] = { make_output_param (cell (&value)), make_scalar_param (1) };

  pto2_rt_submit_task (rt, STORE, AIV, params, 2);
  if (pto2_rt_submit_task_after (rt, STORE, AIV, params, 2, after, *(int32_t *) data)
      != PTO2_TASK_NONE)
    return 1;
  return 0;
}

static void
test_after_nobody (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int32_t n = 2;

  sim_run_fails (chip, &tasks_program, name_nobody, &n, PTO_STATUS_INVALID_ARGS,
                 "task 1 (store), submitted at test-tasks.c:", "after task 7 (number 1 of",
                 "is no task of this run", NULL);
  n = -1;
  sim_run_fails (chip, &tasks_program, name_nobody, &n, PTO_STATUS_INVALID_ARGS,
                 "test-tasks.c:", "comes after -1 tasks", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- tasks without a kernel --- */

struct funnel
{
  int32_t cells[N];
  int32_t sums[N];
  int32_t token;
  uint32_t chain;
};

/* Everybody behind the token sees all cells, which nobody else orders. */
static int
meet (PTO2Runtime *rt, void *data)
{
  struct funnel *funnel = data;
  PTOParam params[N + 1];
  Tensor token = cell (&funnel->token);

  for (uint32_t i = 0; i < N; i++)
    SUBMIT (rt, i % 16 == 0 ? SLOW : STORE, make_output_param (cell (&funnel->cells[i])),
            make_scalar_param (i));
  for (uint32_t i = 0; i < N; i++)
    params[i] = make_input_param (cell (&funnel->cells[i]));
  params[N] = make_output_param (token);
  pto2_rt_submit_order (rt, params, N + 1, NULL, 0);
  for (uint32_t i = 0; i < funnel->chain; i++)
    {
      PTOParam link = make_inout_param (token);

      pto2_rt_submit_order (rt, &link, 1, NULL, 0);
    }
  for (uint32_t i = 0; i < N; i++)
    {
      PTOParam sum[N + 3] = { make_output_param (cell (&funnel->sums[i])), make_scalar_param (N) };

      for (uint32_t k = 0; k < N; k++)
        sum[2 + k] = make_no_dep_param (cell (&funnel->cells[k]));
      sum[N + 2] = make_input_param (token);
      pto2_rt_submit_task (rt, SUM, AIV, sum, N + 3);
    }
  return 0;
}

static void
test_order_only (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct funnel *funnel = g_new0 (struct funnel, 1);

  for (uint32_t round = 0; round < 20; round++)
    {
      struct pto_run_stats stats;

      memset (funnel, 0, sizeof *funnel);
      /* As long as that a recursion would need more than a scheduler's stack. */
      funnel->chain = round == 0 ? 20000 : round % 3;
      sim_run (chip, &tasks_program, meet, funnel, &stats);
      g_assert_cmpuint (stats.tasks, ==, 2 * N + 1 + funnel->chain);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      for (uint32_t i = 0; i < N; i++)
        g_assert_cmpint (funnel->sums[i], ==, N * (N - 1) / 2);
    }
  g_free (funnel);
  pto_chip_free (chip);
}

static int
pass_busy_cores (PTO2Runtime *rt, void *data)
{
  int32_t *cells = data;

  for (uint32_t i = 0; i < 2; i++)
    pto2_rt_submit_task (rt, CUBE, AIC, NULL, 0);
  SUBMIT (rt, STORE, make_output_param (cell (&cells[0])), make_scalar_param (5));
  pto2_rt_submit_order (
      rt, (PTOParam[]){ make_input_param (cell (&cells[0])), make_output_param (cell (&cells[1])) },
      2, NULL, 0);
  SUBMIT (rt, SUM, make_output_param (cell (&cells[2])), make_scalar_param (1),
          make_no_dep_param (cell (&cells[0])), make_input_param (cell (&cells[1])));
  return 0;
}

static void
note_last_vector (const struct pto_trace_record *record, void *data)
{
  uint64_t *end = data;

  if (PTO_TASK_LOCAL (record->task) >= 2 && record->extra > *end)
    *end = record->extra;
}

/* It waits for no core: all cubes are busy for 1 ms. */
static void
test_order_only_waits_for_no_core (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
  int32_t cells[3] = { 0 };
  uint64_t end = 0;

  sim_trace_each (sim_record (chip, &tasks_program, pass_busy_cores, cells, NULL), PTO_TRACE_RUN,
                  note_last_vector, &end);
  g_assert_cmpint (cells[2], ==, 5);
  g_assert_cmpuint (end, >, 2000);
  g_assert_cmpuint (end, <, 1000000);
  pto_chip_free (chip);
}

/* --- conditions --- */

struct choices
{
  uint8_t flags[N][16]; /* of some element type */
  int32_t set[N];
  int32_t cells[N];
  int32_t after[N];
  DataType dtype;
};

static const double values[] = { 0, 1, -1, -0.0 };

static void
put (uint8_t *at, DataType dtype, double value)
{
  static const uint16_t halves[] = { 0, 0x3c00, 0xbc00, 0x8000 };
  static const uint16_t brains[] = { 0, 0x3f80, 0xbf80, 0x8000 };
  static const uint8_t e4m3fn[] = { 0, 0x38, 0xb8, 0x80 };
  static const uint8_t e5m2[] = { 0, 0x3c, 0xbc, 0x80 };
  /* Of the byte the upper half says nothing. */
  static const uint8_t nibbles[] = { 0xf0, 0x08, 0x01, 0x50 };
  uint32_t which = value == 1 ? 1 : value == -1 ? 2 : value == 0 && signbit (value) ? 3 : 0;
  float single = (float) value;
  uint64_t integer = value > 0   ? UINT64_C (1) << (8 * pto_dtype_size (dtype) - 1)
                     : value < 0 ? 1
                                 : 0;

  if (dtype == PTO_DTYPE_FLOAT32)
    memcpy (at, &single, 4);
  else if (dtype == PTO_DTYPE_FLOAT16)
    memcpy (at, &halves[which], 2);
  else if (dtype == PTO_DTYPE_BFLOAT16)
    memcpy (at, &brains[which], 2);
  else if (dtype == PTO_DTYPE_FLOAT64)
    memcpy (at, &value, 8);
  else if (dtype == PTO_DTYPE_FLOAT8_E4M3FN)
    *at = e4m3fn[which];
  else if (dtype == PTO_DTYPE_FLOAT8_E5M2)
    *at = e5m2[which];
  else if (dtype == PTO_DTYPE_INT4)
    *at = nibbles[which];
  else
    memcpy (at, &integer, pto_dtype_size (dtype));
}

/* The flag of each is one element of a row of three, in the middle; what lies beside it says the
 * opposite. Where the type is int32 a task writes it. */
static int
choose (PTO2Runtime *rt, void *data)
{
  struct choices *choices = data;
  static const uint64_t shape[2] = { 1, 3 }, index[2] = { 0, 1 };

  for (uint32_t i = 0; i < N; i++)
    {
      uint32_t size = pto_dtype_size (choices->dtype);
      bool by_task = choices->dtype == PTO_DTYPE_INT32;
      double value = values[i % 4];
      Tensor flag,
          row = make_tensor_external (size > 4 ? choices->flags[i] - size : choices->flags[i],
                                      shape, 2, choices->dtype);

      /* Of eight bytes only two fit: the one before is not looked at. */
      flag = row;
      if (by_task)
        SUBMIT (rt, SLOW, make_output_param (cell ((int32_t *) (void *) (choices->flags[i] + 4))),
                make_signed_param ((int64_t) value));
      else
        put (choices->flags[i] + (size > 4 ? 0 : size), choices->dtype, value);
      pto2_rt_submit_task_if (
          rt, ADD, AIV,
          (PTOParam[]){ make_inout_param (cell (&choices->cells[i])), make_scalar_param (10) }, 2,
          &flag, index);
      /* The first kernel of all. */
      pto2_rt_submit_task_if (
          rt, STORE, AIV,
          (PTOParam[]){ make_inout_param (cell (&choices->set[i])), make_scalar_param (7) }, 2,
          &flag, index);
      SUBMIT (rt, SUM, make_output_param (cell (&choices->after[i])), make_scalar_param (1),
              make_input_param (cell (&choices->cells[i])));
    }
  return 0;
}

static void
test_condition (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct choices *choices = g_new0 (struct choices, 1);

  for (DataType dtype = 0; dtype < PTO_DTYPE_COUNT; dtype++)
    {
      struct pto_run_stats stats;

      memset (choices, 0, sizeof *choices);
      choices->dtype = dtype;
      for (uint32_t i = 0; i < N; i++)
        {
          memset (choices->flags[i], i % 2 == 0 ? 0xff : 0, sizeof choices->flags[i]);
          choices->cells[i] = (int32_t) i;
        }
      sim_run (chip, &tasks_program, choose, choices, &stats);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      for (uint32_t i = 0; i < N; i++)
        {
          bool is_on = i % 4 == 1 || i % 4 == 2;
          int32_t expected = (int32_t) i + (is_on ? 10 : 0);

          g_assert_cmpint (choices->set[i], ==, is_on ? 7 : 0);
          g_assert_cmpint (choices->cells[i], ==, expected);
          g_assert_cmpint (choices->after[i], ==, expected);
        }
    }
  g_free (choices);
  pto_chip_free (chip);
}

static int
choose_badly (PTO2Runtime *rt, void *data)
{
  int32_t how = *(int32_t *) data;
  static const uint64_t beyond[1] = { 1 };
  int32_t value = 0;
  Tensor flag = cell (&value);
  PTOParam params[2] = { make_output_param (cell (&value)), make_scalar_param (1) };

  return pto2_rt_submit_task_if (rt, how == 0 ? PTO2_KERNEL_NONE : STORE, AIV, params, 2,
                                 how == 3 ? NULL : &flag,
                                 how == 1   ? beyond
                                 : how == 2 ? NULL
                                            : first)
         != PTO2_TASK_NONE;
}

static int
submit_own_kernel (PTO2Runtime *rt, void *data)
{
  return pto2_rt_submit_task (rt, PTO2_KERNEL_FILL, AIV, NULL, 0) != PTO2_TASK_NONE;
}

/* A condition is no argument, and no kernel of the program is not an unknown one. */
static int
choose_unwritten (PTO2Runtime *rt, void *data)
{
  static int32_t value;
  Tensor flag = pto2_rt_make_tensor (rt, one, 1, PTO_DTYPE_INT32);
  PTOParam params[2] = { make_output_param (cell (&value)), make_scalar_param (1) };

  return pto2_rt_submit_task_if (rt, STORE, AIV, params, 2, &flag, first) != PTO2_TASK_NONE;
}

static void
test_words (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  sim_run_fails (chip, &tasks_program, choose_unwritten, NULL, PTO_STATUS_INVALID_ARGS,
                 "its condition: the tensor has no memory yet", NULL);
  sim_run_fails (chip, &tasks_program, submit_own_kernel, NULL, PTO_STATUS_INVALID_ARGS,
                 "PTO2_KERNEL_FILL is the chip's own kernel: use pto2_rt_fill()", NULL);
  pto_chip_free (chip);
}

static void
test_bad_condition (enum pto_backend backend)
{
  static const char *const words[]
      = { "has a kernel of the program", "names element 1 of dimension 0, which has 1",
          "has an index", "has a tensor of which" };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int32_t how = 0; how < 4; how++)
    sim_run_fails (chip, &tasks_program, choose_badly, &how, PTO_STATUS_INVALID_ARGS,
                   "test-tasks.c:", words[how], NULL);
  pto_chip_free (chip);
}

/* Its memory is gone when it is to be looked at: whoever comes before has taken it away. */
static int
choose_nowhere (PTO2Runtime *rt, void *data)
{
  static int32_t value;
  int32_t **page = data;
  int32_t *flag = *page
      = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Tensor tensor = cell (flag);
  PTOParam params[2] = { make_inout_param (cell (&value)), make_scalar_param (1) };

  SUBMIT (rt, UNMAP, make_output_param (cell (&value)),
          make_scalar_param ((uint64_t) (uintptr_t) flag));
  pto2_rt_submit_task_if (rt, ADD, AIV, params, 2, &tensor, first);
  atomic_store (&tasks_submitted, true);
  return 0;
}

static void
test_condition_is_gone (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int32_t *page;

  atomic_store (&tasks_submitted, backend == PTO_BACKEND_DET);
  sim_run_fails (chip, &tasks_program, choose_nowhere, &page, PTO_STATUS_KERNEL_FAULT,
                 "task 1 of ring 0 (add)", "its condition lies in memory that is not there", NULL);
  munmap (page, 4096);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* What would make the memory is left out, so that no guard lies behind it: those who are given it
 * are not blamed. The first run leaves other bytes there. */
static int
use_what_is_not_made (PTO2Runtime *rt, void *data)
{
  int32_t *cells = data;
  static const uint64_t wide[1] = { N };
  Tensor flag = cell (&cells[0]);
  Tensor made = pto2_rt_make_tensor (rt, one, 1, PTO_DTYPE_INT32);

  PTO2_SCOPE (rt)
  {
    int32_t value = 7;
    Tensor before = pto2_rt_make_tensor (rt, wide, 1, PTO_DTYPE_INT32);

    pto2_rt_fill (rt, &before, &value);
  }
  pto2_rt_submit_task_if (rt, STORE, AIV,
                          (PTOParam[]){ make_output_param (made), make_scalar_param (5) }, 2, &flag,
                          first);
  SUBMIT (rt, SUM, make_output_param (cell (&cells[1])), make_scalar_param (1),
          make_input_param (made));
  SUBMIT (rt, STORE, make_inout_param (made), make_scalar_param (6));
  SUBMIT (rt, SUM, make_output_param (cell (&cells[2])), make_scalar_param (1),
          make_input_param (made));
  return 0;
}

static void
test_condition_makes_nothing (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int32_t round = 0; round < 4; round++)
    {
      int32_t cells[3] = { round % 2 };

      sim_run (chip, &tasks_program, use_what_is_not_made, cells, NULL);
      if (round % 2 != 0)
        g_assert_cmpint (cells[1], ==, 5);
      g_assert_cmpint (cells[2], ==, 6);
    }
  pto_chip_free (chip);
}

/* As many arguments as there may be, with guards, and a condition. */
static int
submit_all_guarded (PTO2Runtime *rt, void *data)
{
  const uint64_t *addresses = data;
  PTOParam params[PTO_MAX_KERNEL_ARGS];
  Tensor flag = cell ((int32_t *) (uintptr_t) addresses[PTO_MAX_KERNEL_ARGS]);
  PTO2Submit submit = pto2_make_submit (CUBE, AIC, params, PTO_MAX_KERNEL_ARGS);

  for (uint32_t i = 0; i < PTO_MAX_KERNEL_ARGS; i++)
    params[i] = make_input_param (cell ((int32_t *) (uintptr_t) addresses[i]));
  submit.condition = &flag;
  submit.condition_index = first;
  submit.block_dim = 4;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_condition_behind_all_arguments (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_stats stats;
  uint64_t addresses[PTO_MAX_KERNEL_ARGS + 1];
  struct pto_report report = { 0 };

  for (uint32_t i = 0; i <= PTO_MAX_KERNEL_ARGS; i++)
    {
      addresses[i] = pto_device_memory_malloc (pto_chip_memory (chip), sizeof (int32_t), &report);
      g_assert_cmpuint (addresses[i], !=, 0);
      *(int32_t *) (uintptr_t) addresses[i] = 1;
    }
  sim_run (chip, &tasks_program, submit_all_guarded, addresses, &stats);
  g_assert_cmpuint (stats.completed, ==, 1);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- manual scopes --- */

struct manual
{
  int32_t value;
  int32_t result;
  int32_t cells[N];
  bool nested;
};

static int
order_by_hand (PTO2Runtime *rt, void *data)
{
  struct manual *manual = data;
  Tensor value = cell (&manual->value);
  PTO2TaskId last = PTO2_TASK_NONE;
  PTOParam params[2] = { make_inout_param (value), make_scalar_param (1) };

  /* Each reads what the one before it has written: only names say so. */
  PTO2_MANUAL_SCOPE (rt)
  {
    Tensor made = pto2_rt_make_tensor (rt, one, 1, PTO_DTYPE_INT32);

    for (uint32_t i = 0; i < N; i++)
      last = last == PTO2_TASK_NONE ? pto2_rt_submit_task (rt, SLOW, AIV, params, 2)
                                    : pto2_rt_submit_task_after (rt, ADD, AIV, params, 2, &last, 1);
    /* These touch what they do, and wait for nothing. */
    for (uint32_t i = 1; i < N; i++)
      SUBMIT (rt, STORE, make_no_dep_param (cell (&manual->cells[i])), make_scalar_param (i),
              make_input_param (value));
    /* Memory of the runtime stays. */
    last = pto2_rt_submit_task_after (
        rt, SUM, AIV,
        (PTOParam[]){ make_output_param (made), make_scalar_param (1), make_input_param (value) },
        3, &last, 1);
    PTO2_MANUAL_SCOPE (rt)
    {
      last = pto2_rt_submit_task_after (rt, SUM, AIV,
                                        (PTOParam[]){ make_output_param (cell (&manual->result)),
                                                      make_scalar_param (1),
                                                      make_input_param (made) },
                                        3, &last, 1);
    }
    if (manual->nested)
      PTO2_SCOPE (rt)
      {
        pto2_rt_submit_task (rt, ADD, AIV, params, 2);
      }
  }
  return 0;
}

static int
order_again (PTO2Runtime *rt, void *data)
{
  struct manual *manual = data;

  order_by_hand (rt, data);
  /* Found again behind it. */
  SUBMIT (rt, STORE, make_output_param (cell (&manual->cells[0])), make_scalar_param (100));
  SUBMIT (rt, ADD, make_inout_param (cell (&manual->cells[0])), make_scalar_param (1));
  return 0;
}

/* Elements are read once everybody is done: nobody knows who writes them. */
static int
read_in_and_behind (PTO2Runtime *rt, void *data)
{
  struct manual *manual = data;
  Tensor value = cell (&manual->value);
  PTOParam params[2] = { make_output_param (value), make_scalar_param (11) };
  int32_t seen = 0;

  pto2_rt_submit_task (rt, SLOW, AIV, params, 2);
  PTO2_MANUAL_SCOPE (rt)
  {
    if (!pto2_rt_get_element (rt, &value, first, &seen) || seen != 11)
      return 1;
    params[1] = make_scalar_param (12);
    pto2_rt_submit_task (rt, SLOW, AIV, params, 2);
  }
  if (!pto2_rt_get_element (rt, &value, first, &seen) || seen != 12)
    return 2;
  return 0;
}

static void
test_manual_elements (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t round = 0; round < 10; round++)
    {
      struct manual manual = { 0 };

      sim_run (chip, &tasks_program, read_in_and_behind, &manual, NULL);
    }
  pto_chip_free (chip);
}

static void
test_manual (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct manual manual;
  struct pto_run_stats stats;

  for (uint32_t round = 0; round < 10; round++)
    {
      memset (&manual, 0, sizeof manual);
      sim_run (chip, &tasks_program, order_again, &manual, &stats);
      g_assert_cmpint (manual.value, ==, N);
      g_assert_cmpint (manual.result, ==, N);
      for (uint32_t i = 1; i < N; i++)
        g_assert_cmpint (manual.cells[i], ==, (int32_t) i);
      g_assert_cmpint (manual.cells[0], ==, 101);
      if (backend == PTO_BACKEND_DET)
        g_assert_cmpuint (stats.edges, ==, N - 1 + 2 + 1);
    }
  manual.nested = true;
  sim_run_fails (
      chip, &tasks_program, order_by_hand, &manual, PTO_STATUS_INVALID_ARGS,
      "the scope opened at test-tasks.c:", "the manual one opened at test-tasks.c:", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("tasks/after", test_after);
  sim_add ("tasks/after-nobody", test_after_nobody);
  sim_add ("tasks/order-only", test_order_only);
  sim_add_once ("tasks/order-only-waits-for-no-core", test_order_only_waits_for_no_core);
  sim_add ("tasks/condition", test_condition);
  sim_add ("tasks/bad-condition", test_bad_condition);
  sim_add ("tasks/words", test_words);
  sim_add ("tasks/condition-is-gone", test_condition_is_gone);
  sim_add ("tasks/condition-makes-nothing", test_condition_makes_nothing);
  sim_add ("tasks/condition-behind-all-arguments", test_condition_behind_all_arguments);
  sim_add ("tasks/manual", test_manual);
  sim_add ("tasks/manual-elements", test_manual_elements);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
