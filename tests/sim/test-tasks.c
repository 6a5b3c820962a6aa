/* test-tasks.c: what can an orchestration say of a task besides its kernel and its tensors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/task.h"
#include "../../sim/builtin.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define N 64u

enum
{
  STORE,  /* args[0][0] = args[1] */
  SLOW,   /* the same, later */
  ADD,    /* args[0][0] += args[1] */
  SUM,    /* args[0][0] = the sum of args[1 ..] [0], of which there are args[n - 1] */
  COPY,   /* args[1] = args[0], slowly */
  BEYOND, /* writes behind args[0] */
  CRASH,
  UNMAP,  /* the page at args[1] */
  CUBE,   /* nothing, long */
  SPREAD, /* args[2] into all of args[0], which it reads back after a while: args[1][0] += the sum
           */
};

static int32_t *
data_of (int64_t arg)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) arg;

  return (int32_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

static void
kernel_store (int64_t *args)
{
  *data_of (args[0]) = (int32_t) args[1];
}

static void
kernel_slow (int64_t *args)
{
  sim_spend_ns (200000);
  kernel_store (args);
}

static void
kernel_add (int64_t *args)
{
  *data_of (args[0]) += (int32_t) args[1];
}

static void
kernel_sum (int64_t *args)
{
  int32_t sum = 0;

  for (int64_t i = 0; i < args[1]; i++)
    sum += *data_of (args[2 + i]);
  *data_of (args[0]) = sum;
}

static void
kernel_copy (int64_t *args)
{
  int32_t value = *data_of (args[0]);

  sim_spend_ns (200000);
  *data_of (args[1]) = value;
}

static void
kernel_beyond (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];

  memset ((void *) (uintptr_t) tensor->buffer.addr, 7, tensor->buffer.size + 3);
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = NULL;

  *nowhere = 1;
}

/* The submit that comes after it looks at the page, too. On det it has done so by then. */
static _Atomic bool is_submitted;

static void
kernel_unmap (int64_t *args)
{
  while (!atomic_load (&is_submitted))
    sched_yield ();
  munmap ((void *) (uintptr_t) args[1], 4096);
}

static void
kernel_nothing (int64_t *args)
{
}

static void
kernel_spread (int64_t *args)
{
  const TensorData *scratch = (const TensorData *) (uintptr_t) args[0];
  int32_t *numbers = data_of (args[0]);
  int32_t sum = 0;

  for (uint64_t i = 0; i < scratch->shapes[0]; i++)
    numbers[i] = (int32_t) args[2];
  sched_yield ();
  for (uint64_t i = 0; i < scratch->shapes[0]; i++)
    sum += numbers[i];
  *data_of (args[1]) += sum;
}

static const struct pto_kernel kernels[] = {
  [STORE] = { "store", kernel_store, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SLOW] = { "slow", kernel_slow, PTO_CORE_TYPE_AIV, { .base_ns = 200000 } },
  [ADD] = { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SUM] = { "sum", kernel_sum, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [COPY] = { "copy", kernel_copy, PTO_CORE_TYPE_AIV, { .base_ns = 200000 } },
  [BEYOND] = { "beyond", kernel_beyond, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [UNMAP] = { "unmap", kernel_unmap, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SPREAD] = { "spread", kernel_spread, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CUBE] = { "cube", kernel_nothing, PTO_CORE_TYPE_AIC, { .base_ns = 1e6 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static const uint64_t one[1] = { 1 };
static const uint64_t first[1] = { 0 };

static Tensor
cell (int32_t *value)
{
  return make_tensor_external (value, one, 1, PTO_DTYPE_INT32);
}

#define SUBMIT(rt, kernel, ...)                                            \
  pto2_rt_submit_task ((rt), (kernel), AIV, ((PTOParam[]){ __VA_ARGS__ }), \
                       (int32_t) (sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam)))

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
          sim_run (chip, &program, name_each, pairs, &stats);
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
  int32_t value = 0;
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

  sim_run_fails (chip, &program, name_nobody, &n, PTO_STATUS_INVALID_ARGS,
                 "task 1 (store), submitted at test-tasks.c:", "producer 1, 0x7",
                 "is no task of this run", NULL);
  n = -1;
  sim_run_fails (chip, &program, name_nobody, &n, PTO_STATUS_INVALID_ARGS,
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
      sim_run (chip, &program, meet, funnel, &stats);
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

  sim_trace_each (sim_record (chip, &program, pass_busy_cores, cells, NULL), PTO_TRACE_RUN,
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
      sim_run (chip, &program, choose, choices, &stats);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      for (uint32_t i = 0; i < N; i++)
        {
          int32_t expected = (int32_t) i + (i % 4 == 1 || i % 4 == 2 ? 10 : 0);

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

static void
test_bad_condition (enum pto_backend backend)
{
  static const char *const words[]
      = { "has a kernel of the program", "names element 1 of dimension 0, which has 1",
          "has an index", "has a tensor of which" };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int32_t how = 0; how < 4; how++)
    sim_run_fails (chip, &program, choose_badly, &how, PTO_STATUS_INVALID_ARGS,
                   "test-tasks.c:", words[how], NULL);
  pto_chip_free (chip);
}

/* Its memory is gone when it is to be looked at: whoever comes before has taken it away. */
static int
choose_nowhere (PTO2Runtime *rt, void *data)
{
  static int32_t value;
  int32_t *flag = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Tensor tensor = cell (flag);
  PTOParam params[2] = { make_inout_param (cell (&value)), make_scalar_param (1) };

  SUBMIT (rt, UNMAP, make_output_param (cell (&value)),
          make_scalar_param ((uint64_t) (uintptr_t) flag));
  pto2_rt_submit_task_if (rt, ADD, AIV, params, 2, &tensor, first);
  atomic_store (&is_submitted, true);
  return 0;
}

static void
test_condition_is_gone (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  atomic_store (&is_submitted, backend == PTO_BACKEND_DET);
  sim_run_fails (chip, &program, choose_nowhere, NULL, PTO_STATUS_KERNEL_FAULT,
                 "task 1 of ring 0 (add)", "its condition lies in memory that is not there", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- memory that is there at once --- */

struct heap
{
  int32_t sum[N];
  bool damage;
  uint32_t rounds;
};

static int
use_memory (PTO2Runtime *rt, void *data)
{
  struct heap *heap = data;

  for (uint32_t i = 0; i < heap->rounds; i++)
    PTO2_SCOPE (rt)
    {
      const uint64_t shape[1] = { 1 << 18 };
      Tensor tensor = pto2_rt_alloc (rt, shape, 1, PTO_DTYPE_INT32);
      int32_t *memory = (int32_t *) (uintptr_t) tensor.buffer.addr;

      if (memory == NULL || tensor.buffer.addr % 1024 != 0)
        return 1;
      for (uint32_t k = 0; k < 4; k++)
        memory[k << 16] = (int32_t) (i + k);
      for (uint32_t k = 0; k < 4; k++)
        {
          const uint64_t offset[1] = { k << 16 };
          Tensor view = pto2_tensor_view (&tensor, one, offset);

          SUBMIT (rt, ADD, make_inout_param (view), make_scalar_param (100));
          SUBMIT (rt, SUM, make_inout_param (cell (&heap->sum[(4 * i + k) % N])),
                  make_scalar_param (1), make_input_param (view));
        }
      if (heap->damage)
        SUBMIT (rt, BEYOND, make_output_param (tensor));
    }
  return 0;
}

/* More than the heap holds goes through it. */
static void
test_alloc (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "heap=4M");
  struct heap heap = { .rounds = 64 };

  sim_run (chip, &program, use_memory, &heap, NULL);
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpint (heap.sum[i], ==, (int32_t) (48 + i / 4 + i % 4 + 100));
  heap.damage = true;
  heap.rounds = 1;
  sim_run_fails (chip, &program, use_memory, &heap, PTO_STATUS_OUT_OF_BOUNDS, "(beyond)",
                 "3 bytes past", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static int
alloc_badly (PTO2Runtime *rt, void *data)
{
  const uint64_t shape[1] = { 1 << 22 };
  Tensor tensor = pto2_rt_alloc (rt, *(int *) data == 0 ? shape : first, 1, PTO_DTYPE_INT32);

  return tensor.buffer.addr != 0;
}

static void
test_bad_alloc (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "heap=4M");
  int how = 0;

  sim_run_fails (chip, &program, alloc_badly, &how, PTO_STATUS_HEAP_RING, "heap", NULL);
  how = 1;
  sim_run_fails (chip, &program, alloc_badly, &how, PTO_STATUS_INVALID_ARGS, "no kernel",
                 "argument 0", "at least one element", NULL);
  pto_chip_free (chip);
}

/* --- memory of one task --- */

struct scratch
{
  int32_t cells[4];
  uint32_t n;
  uint64_t numbers; /* of each task's memory */
};

/* One parameter for all of them. */
static int
use_scratch (PTO2Runtime *rt, void *data)
{
  struct scratch *scratch = data;
  uint64_t shape[1] = { scratch->numbers };
  PTOParam params[3] = { make_scratch_param (shape, 1, PTO_DTYPE_INT32) };

  for (uint32_t i = 0; i < scratch->n; i++)
    PTO2_SCOPE (rt)
    {
      params[1] = make_inout_param (cell (&scratch->cells[i % 4]));
      params[2] = make_scalar_param (i % 7);
      pto2_rt_submit_task (rt, SPREAD, AIV, params, 3);
      if (params[0].tensor.buffer.addr != 0)
        return 1;
    }
  return 0;
}

/* Many times what the ring has goes through it, each task sees its own, and nobody waits for
 * anybody because of it. */
static void
test_scratch (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "heap=4M");
  struct scratch scratch = { .n = 64, .numbers = 1 << 18 };
  struct pto_run_stats stats;
  int32_t expected[4] = { 0 };

  sim_run (chip, &program, use_scratch, &scratch, &stats);
  for (uint32_t i = 0; i < scratch.n; i++)
    expected[i % 4] += (int32_t) (scratch.numbers * (i % 7));
  for (uint32_t i = 0; i < 4; i++)
    g_assert_cmpint (scratch.cells[i], ==, expected[i]);
  g_assert_cmpuint (stats.edges, <=, scratch.n - 4);
  g_assert_cmpuint (stats.heap_peak[1], >=, 1 << 20);
  g_assert_cmpuint (stats.heap_peak[1], <=, 4 << 20);
  pto_chip_free (chip);
}

struct bad_scratch
{
  int how;
  int32_t value;
};

static int
use_scratch_badly (PTO2Runtime *rt, void *data)
{
  struct bad_scratch *bad = data;
  static const uint64_t none[1] = { 0 }, much[1] = { 1 << 22 }, some[1] = { 8 };
  Tensor handle = pto2_rt_make_tensor (rt, some, 1, PTO_DTYPE_INT32);
  Tensor own = cell (&bad->value);
  PTOParam params[3] = { make_scratch_param (bad->how == 0   ? none
                                             : bad->how == 1 ? much
                                                             : some,
                                             1, PTO_DTYPE_INT32),
                         make_inout_param (cell (&bad->value)), make_scalar_param (1) };

  if (bad->how == 2)
    params[0] = pto2_make_param (PTO_PARAM_SCRATCH, &handle);
  else if (bad->how == 3)
    params[0] = pto2_make_param (PTO_PARAM_SCRATCH, &own);
  if (bad->how == 4)
    pto2_rt_submit_task (rt, BEYOND, AIV, params, 1);
  else if (pto2_rt_submit_task (rt, SPREAD, AIV, params, 3) != PTO2_TASK_NONE)
    return 1;
  return 0;
}

static void
test_bad_scratch (enum pto_backend backend)
{
  static const struct
  {
    enum pto_status status;
    const char *words;
  } expected[] = { { PTO_STATUS_INVALID_ARGS, "at least one element" },
                   { PTO_STATUS_HEAP_RING, "et heap to " },
                   { PTO_STATUS_INVALID_ARGS, "argument 0: scratch memory is the task's alone" },
                   { PTO_STATUS_INVALID_ARGS, "argument 0: scratch memory is the task's alone" },
                   { PTO_STATUS_OUT_OF_BOUNDS, "beyond" } };
  struct pto_chip *chip = sim_chip (backend, "heap=4M");

  for (uint32_t i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      struct bad_scratch bad = { .how = (int) i };

      sim_run_fails (chip, &program, use_scratch_badly, &bad, expected[i].status, expected[i].words,
                     NULL);
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- outputs over contents that are still used --- */

#define REUSES 8u

enum
{
  OVER_ALL,   /* make_tensor() */
  OVER_KNOWN, /* pto2_rt_alloc(): somebody may know where it is */
  OVER_INNER, /* from a scope inside: the new memory would not live as long */
  OVER_PART,  /* of one that is longer */
  OVER_HALF   /* read by the same task, which writes it */
};

struct reuse
{
  uint32_t how;
  int32_t cells[REUSES];
};

/* One handle, written and read again and again. */
static int
reuse (PTO2Runtime *rt, void *data)
{
  static const uint64_t two[1] = { 2 };
  struct reuse *reuse = data;
  Tensor whole
      = reuse->how == OVER_KNOWN
            ? pto2_rt_alloc (rt, one, 1, PTO_DTYPE_INT32)
            : pto2_rt_make_tensor (rt, reuse->how == OVER_PART ? two : one, 1, PTO_DTYPE_INT32);
  Tensor part = pto2_tensor_view (&whole, one, first);

  if (reuse->how == OVER_PART)
    SUBMIT (rt, STORE, make_output_param (whole), make_scalar_param (0));
  for (uint32_t i = 0; i < REUSES; i++)
    {
      PTOParam params[3]
          = { make_output_param (part), make_scalar_param (i + 1), make_input_param (part) };

      if (reuse->how == OVER_INNER && i > 0)
        pto2_rt_scope_begin (rt);
      pto2_rt_submit_task (rt, STORE, AIV, params, reuse->how == OVER_HALF && i > 0 ? 3 : 2);
      if (reuse->how == OVER_INNER && i > 0)
        pto2_rt_scope_end (rt);
      SUBMIT (rt, COPY, make_input_param (part), make_output_param (cell (&reuse->cells[i])));
    }
  return 0;
}

static uint64_t
run_reuse (enum pto_backend backend, const char *settings, uint32_t how, uint64_t edges)
{
  struct pto_chip *chip = sim_chip (backend, settings);
  struct reuse over = { .how = how };
  struct pto_run_stats stats;

  sim_run (chip, &program, reuse, &over, &stats);
  for (uint32_t i = 0; i < REUSES; i++)
    g_assert_cmpint (over.cells[i], ==, (int32_t) i + 1);
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (stats.edges, ==, edges);
  pto_chip_free (chip);
  return stats.virtual_ns;
}

static void
test_rename (enum pto_backend backend)
{
  uint64_t all = REUSES + 2 * (REUSES - 1);
  uint64_t before = run_reuse (backend, NULL, OVER_ALL, all);
  uint64_t after = run_reuse (backend, "rename=1", OVER_ALL, REUSES);

  if (backend == PTO_BACKEND_DET)
    {
      /* One slow reader after the other, or all at once. */
      g_assert_cmpuint (before, >, REUSES * 200000);
      g_assert_cmpuint (after, <, 2 * 200000);
    }
  /* Of 16 pieces of memory half may be taken; of 8 four. */
  run_reuse (backend, "rename=1 heap=16K", OVER_ALL, REUSES);
  run_reuse (backend, "rename=1 heap=8K", OVER_ALL, REUSES + 2 * (REUSES - 4));
  run_reuse (backend, "rename=1", OVER_INNER, all);
  run_reuse (backend, "rename=1", OVER_HALF, all);
  run_reuse (backend, "rename=1", OVER_KNOWN, all + 1);
  run_reuse (backend, "rename=1", OVER_PART, all + 2 * REUSES);
}

/* --- values for whole tensors --- */

#define BLOCK 257u

struct filled
{
  uint8_t bytes[PTO_DTYPE_COUNT][BLOCK * 8];
  int16_t part[6][7][5];
  int32_t sum[3];
  bool read_only;
};

static const uint64_t a_value = UINT64_C (0x8877665544332211);

static int
fill_all (PTO2Runtime *rt, void *data)
{
  static const uint64_t whole[3] = { 6, 7, 5 }, some[3] = { 2, 3, 4 }, at[3] = { 1, 2, 1 };
  static const uint64_t block[1] = { BLOCK };
  struct filled *filled = data;
  Tensor part = make_tensor_external (filled->part, whole, 3, PTO_DTYPE_INT16);
  Tensor view = pto2_tensor_view (&part, some, at);
  Tensor turned = pto2_tensor_transpose (&view, 0, 2);
  Tensor made = pto2_rt_make_tensor (rt, block, 1, PTO_DTYPE_INT32);
  const int16_t minus = -2;
  const int32_t begin = 40;

  for (DataType dtype = 0; dtype < PTO_DTYPE_COUNT; dtype++)
    {
      Tensor tensor = make_tensor_external (filled->bytes[dtype], block, 1, dtype);

      pto2_rt_fill (rt, &tensor, &a_value);
    }
  pto2_rt_fill (rt, &turned, &minus);
  /* An output with an initial value. */
  pto2_rt_fill (rt, &made, &begin);
  for (uint32_t i = 0; i < 3; i++)
    {
      const uint64_t where[1] = { i * (BLOCK / 2) };
      Tensor element = pto2_tensor_view (&made, one, where);

      SUBMIT (rt, ADD, make_inout_param (element), make_scalar_param (i));
      SUBMIT (rt, SUM, make_output_param (cell (&filled->sum[i])), make_scalar_param (1),
              make_input_param (element));
    }
  return 0;
}

static void
see_fill (const struct pto_trace_record *record, void *data)
{
  uint32_t *n = data;

  *n += record->detail == PTO_KERNEL_FILL;
}

static void
test_fill (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct filled *filled = g_new0 (struct filled, 1);
  struct pto_run_stats stats;
  uint32_t n = 0;

  sim_trace_each (sim_record (chip, &program, fill_all, filled, &stats), PTO_TRACE_SUBMIT, see_fill,
                  &n);
  g_assert_cmpuint (n, ==, PTO_DTYPE_COUNT + 2);
  g_assert_cmpuint (stats.tasks, ==, n + 6);
  for (DataType dtype = 0; dtype < PTO_DTYPE_COUNT; dtype++)
    for (uint32_t i = 0; i < BLOCK * 8; i++)
      g_assert_cmpuint (filled->bytes[dtype][i], ==,
                        i < BLOCK * pto_dtype_size (dtype)
                            ? (uint8_t) (a_value >> (8 * (i % pto_dtype_size (dtype))))
                            : 0);
  for (uint32_t i = 0; i < 6; i++)
    for (uint32_t j = 0; j < 7; j++)
      for (uint32_t k = 0; k < 5; k++)
        g_assert_cmpint (filled->part[i][j][k], ==,
                         i >= 1 && i < 3 && j >= 2 && j < 5 && k >= 1 ? -2 : 0);
  for (uint32_t i = 0; i < 3; i++)
    g_assert_cmpint (filled->sum[i], ==, (int32_t) (40 + i));
  g_free (filled);
  pto_chip_free (chip);
}

static int
fill_badly (PTO2Runtime *rt, void *data)
{
  static const uint64_t none[1] = { 0 };
  int32_t value = 0;
  Tensor tensor
      = make_tensor_external (&value, *(int *) data == 0 ? none : one, 1, PTO_DTYPE_INT32);

  if (*(int *) data == 1)
    pto2_rt_orchestration_done (rt);
  return pto2_rt_fill (rt, &tensor, &value) != PTO2_TASK_NONE;
}

static void
test_bad_fill (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int how = 0;

  sim_run_fails (chip, &program, fill_badly, &how, PTO_STATUS_INVALID_ARGS, "(fill)", "argument 0",
                 "at least one element", NULL);
  how = 1;
  sim_run_fails (chip, &program, fill_badly, &how, PTO_STATUS_INVALID_ARGS, "(fill)",
                 "after pto2_rt_orchestration_done()", NULL);
  pto_chip_free (chip);
}

/* --- elements, from the orchestration --- */

struct elements
{
  int32_t matrix[3][4];
  int32_t copies[N];
  uint32_t loops;
};

static int
read_and_write (PTO2Runtime *rt, void *data)
{
  struct elements *elements = data;
  static const uint64_t shape[2] = { 3, 4 };
  static const uint64_t at[2] = { 2, 1 };
  Tensor matrix = make_tensor_external (elements->matrix, shape, 2, PTO_DTYPE_INT32);
  Tensor turned = pto2_tensor_transpose (&matrix, 0, 1);
  Tensor element = cell (&elements->matrix[2][1]);
  Tensor made = pto2_rt_make_tensor (rt, shape, 2, PTO_DTYPE_INT32);
  int32_t value = -1;

  /* Waits for who writes it. */
  SUBMIT (rt, SLOW, make_output_param (element), make_scalar_param (3));
  while (pto2_rt_get_element (rt, &matrix, at, &value) && value < 20)
    {
      SUBMIT (rt, ADD, make_inout_param (element), make_scalar_param (4));
      elements->loops++;
    }
  if (value != 23)
    return 1;
  /* Waits for who reads it. */
  for (int32_t i = 0; i < 8; i++)
    {
      static const uint64_t turned_at[2] = { 1, 2 };

      SUBMIT (rt, COPY, make_input_param (element),
              make_output_param (cell (&elements->copies[i])));
      if (!pto2_rt_set_element (rt, &turned, turned_at, &i))
        return 2;
    }
  /* Of the runtime's memory. */
  SUBMIT (rt, STORE, make_output_param (made), make_scalar_param (77));
  if (!pto2_rt_get_element (rt, &made, (const uint64_t[]){ 0, 0 }, &value) || value != 77)
    return 3;
  value = 78;
  pto2_rt_set_element (rt, &made, (const uint64_t[]){ 0, 0 }, &value);
  SUBMIT (rt, SUM, make_output_param (cell (&elements->copies[N - 1])), make_scalar_param (1),
          make_input_param (made));
  return 0;
}

static void
test_elements (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct elements *elements = g_new (struct elements, 1);

  for (uint32_t round = 0; round < SCALE (40) + 2; round++)
    {
      memset (elements, 0, sizeof *elements);
      sim_run (chip, &program, read_and_write, elements, NULL);
      g_assert_cmpuint (elements->loops, ==, 5);
      g_assert_cmpint (elements->copies[0], ==, 23);
      for (int32_t i = 1; i < 8; i++)
        g_assert_cmpint (elements->copies[i], ==, i - 1);
      g_assert_cmpint (elements->matrix[2][1], ==, 7);
      g_assert_cmpint (elements->copies[N - 1], ==, 78);
    }
  g_free (elements);
  pto_chip_free (chip);
}

/* As often as one likes, in one scope, whatever the window. */
static int
count_up (PTO2Runtime *rt, void *data)
{
  int32_t *cells = data;
  Tensor own = cell (&cells[1]);
  int32_t value = 0;

  SUBMIT (rt, SLOW, make_output_param (cell (&cells[0])), make_scalar_param (7));
  for (int32_t i = 0; i < 100; i++)
    {
      Tensor tensor = cell (&cells[i % 2]);

      if (!pto2_rt_get_element (rt, &tensor, first, &value))
        return 1;
      value++;
      if (!pto2_rt_set_element (rt, &own, first, &value))
        return 2;
    }
  SUBMIT (rt, ADD, make_inout_param (own), make_scalar_param (1000));
  return 0;
}

static void
test_many_elements (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  int32_t cells[2] = { 0 };

  sim_run (chip, &program, count_up, cells, NULL);
  g_assert_cmpint (cells[0], ==, 7);
  g_assert_cmpint (cells[1], ==, 1009);
  pto_chip_free (chip);
}

static int
read_badly (PTO2Runtime *rt, void *data)
{
  int how = *(int *) data;
  int32_t value = 5;
  Tensor tensor = cell (&value);
  Tensor made = pto2_rt_make_tensor (rt, one, 1, PTO_DTYPE_INT32);
  static const uint64_t beyond[1] = { 4 };
  bool ok;

  if (how == 2)
    SUBMIT (rt, CRASH, make_inout_param (tensor));
  ok = how == 3 ? pto2_rt_set_element (rt, &tensor, beyond, &value)
                : pto2_rt_get_element (rt, how == 0 ? &made : &tensor, how == 1 ? beyond : first,
                                       &value);
  return ok || value != 5;
}

static void
test_bad_elements (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int how = 0;

  sim_run_fails (chip, &program, read_badly, &how, PTO_STATUS_INVALID_ARGS, "no memory yet", NULL);
  how = 1;
  sim_run_fails (chip, &program, read_badly, &how, PTO_STATUS_INVALID_ARGS,
                 "pto2_rt_get_element() names element 4 of dimension 0, which has 1",
                 "test-tasks.c:", NULL);
  how = 3;
  sim_run_fails (chip, &program, read_badly, &how, PTO_STATUS_INVALID_ARGS,
                 "pto2_rt_set_element() names element 4", NULL);
#ifndef SIM_SANITIZED
  how = 2;
  sim_run_fails (chip, &program, read_badly, &how, PTO_STATUS_KERNEL_FAULT, "crash", NULL);
#endif
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- what foreign code points at is not there --- */

#ifndef SIM_SANITIZED
struct foreign
{
  struct pto_chip *chip;
  PTO2Runtime *rt;
  void *nowhere;
  uint32_t how;
  enum pto_status status;
  char why[256];
};

static void
point_nowhere (int64_t *args)
{
  const struct foreign *f = (const struct foreign *) (uintptr_t) args[0];
  static int32_t value = 1;
  Tensor tensor = cell (&value);
  Tensor nowhere = cell (f->nowhere);
  PTOParam params[2] = { make_output_param (tensor), make_scalar_param (1) };

  switch (f->how)
    {
    case 0:
      pto2_rt_submit_task_after (f->rt, STORE, AIV, params, 2, f->nowhere, 1);
      break;
    case 1:
      pto2_rt_submit_task_if (f->rt, STORE, AIV, params, 2, &tensor, f->nowhere);
      break;
    case 2:
      pto2_rt_submit_task_if (f->rt, STORE, AIV, params, 2, &nowhere, first);
      break;
    case 3:
      pto2_rt_get_element (f->rt, &tensor, f->nowhere, &value);
      break;
    case 4:
      pto2_rt_get_element (f->rt, &nowhere, first, &value);
      break;
    default:
      pto2_rt_set_element (f->rt, &nowhere, first, &value);
      break;
    }
}

static int
foreign_point (PTO2Runtime *rt, void *data)
{
  struct foreign *f = data;
  int64_t args[] = { (int64_t) (uintptr_t) f };

  f->rt = rt;
  f->status = pto_chip_call (f->chip, point_nowhere, args, f->why, sizeof f->why);
  return 0;
}

/* It is its own fault, whoever looks there on its behalf. */
static void
test_nowhere (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t how = 0; how < 6; how++)
    {
      struct foreign f = { .chip = chip, .nowhere = (void *) (uintptr_t) 64, .how = how };

      g_test_message ("case %u", how);
      sim_run (chip, &program, foreign_point, &f, NULL);
      g_assert_cmpint (f.status, ==, PTO_STATUS_KERNEL_FAULT);
      g_assert_nonnull (strstr (f.why, "signal 11"));
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}
#endif

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

      sim_run (chip, &program, read_in_and_behind, &manual, NULL);
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
      sim_run (chip, &program, order_again, &manual, &stats);
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
      chip, &program, order_by_hand, &manual, PTO_STATUS_INVALID_ARGS,
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
  sim_add ("tasks/condition-is-gone", test_condition_is_gone);
  sim_add ("tasks/alloc", test_alloc);
  sim_add ("tasks/bad-alloc", test_bad_alloc);
  sim_add ("tasks/scratch", test_scratch);
  sim_add ("tasks/bad-scratch", test_bad_scratch);
  sim_add ("tasks/rename", test_rename);
  sim_add ("tasks/fill", test_fill);
  sim_add ("tasks/bad-fill", test_bad_fill);
  sim_add ("tasks/elements", test_elements);
  sim_add ("tasks/many-elements", test_many_elements);
  sim_add ("tasks/bad-elements", test_bad_elements);
#ifndef SIM_SANITIZED
  sim_add ("tasks/nowhere", test_nowhere);
#endif
  sim_add ("tasks/manual", test_manual);
  sim_add ("tasks/manual-elements", test_manual_elements);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
