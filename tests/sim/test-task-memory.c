/* test-task-memory.c: what can an orchestration say of the memory that a task gets?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tasks-test.h"

#include "../../sim/builtin-kernels.h"

#include <string.h>

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

  sim_run (chip, &tasks_program, use_memory, &heap, NULL);
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpint (heap.sum[i], ==, (int32_t) (48 + i / 4 + i % 4 + 100));
  heap.damage = true;
  heap.rounds = 1;
  sim_run_fails (chip, &tasks_program, use_memory, &heap, PTO_STATUS_OUT_OF_BOUNDS, "(beyond)",
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

  sim_run_fails (chip, &tasks_program, alloc_badly, &how, PTO_STATUS_HEAP_RING, "heap", NULL);
  how = 1;
  sim_run_fails (chip, &tasks_program, alloc_badly, &how, PTO_STATUS_INVALID_ARGS, "no kernel",
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

  sim_run (chip, &tasks_program, use_scratch, &scratch, &stats);
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

      sim_run_fails (chip, &tasks_program, use_scratch_badly, &bad, expected[i].status,
                     expected[i].words, NULL);
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

  sim_run (chip, &tasks_program, reuse, &over, &stats);
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

  sim_trace_each (sim_record (chip, &tasks_program, fill_all, filled, &stats), PTO_TRACE_SUBMIT,
                  see_fill, &n);
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

  sim_run_fails (chip, &tasks_program, fill_badly, &how, PTO_STATUS_INVALID_ARGS, "(fill)",
                 "argument 0", "at least one element", NULL);
  how = 1;
  sim_run_fails (chip, &tasks_program, fill_badly, &how, PTO_STATUS_INVALID_ARGS, "(fill)",
                 "after pto2_rt_orchestration_done()", NULL);
  pto_chip_free (chip);
}

/* In a manual scope nothing but names: of those that fill the same memory, too. */
struct named
{
  int32_t values[BLOCK];
  int32_t last[BLOCK];
  int32_t seen;
};

static int
leave_early (PTO2Runtime *rt, struct named *named, PTO2TaskId *last)
{
  static const uint64_t block[1] = { BLOCK };
  static const uint64_t where[1] = { BLOCK - 1 };
  const int32_t numbers[] = { 40, 41, 42 };
  Tensor values = make_tensor_external (named->values, block, 1, PTO_DTYPE_INT32);

  PTO2_MANUAL_SCOPE (rt)
  {
    Tensor made = pto2_rt_alloc (rt, block, 1, PTO_DTYPE_INT32);
    Tensor element = pto2_tensor_view (&made, one, where);
    PTOParam sum[] = { make_output_param (cell (&named->seen)), make_scalar_param (1),
                       make_input_param (element) };
    PTO2TaskId ids[2];

    if (made.buffer.addr == 0)
      return 1;
    memset ((void *) (uintptr_t) made.buffer.addr, 1, sizeof named->values);
    ids[0] = pto2_rt_fill (rt, &made, &numbers[0]);
    ids[1] = pto2_rt_fill_after (rt, &made, &numbers[1], &ids[0], 1);
    pto2_rt_submit_task_after (rt, SUM, AIV, sum, 3, &ids[1], 1);
    ids[0] = pto2_rt_fill (rt, &values, &numbers[0]);
    *last = pto2_rt_fill_after (rt, &values, &numbers[2], ids, 2);
    /* The guard ends the scope. */
    return 0;
  }
  return 1;
}

static int
fill_by_name (PTO2Runtime *rt, void *data)
{
  static const uint64_t block[1] = { BLOCK };
  struct named *named = data;
  Tensor tensor = make_tensor_external (named->last, block, 1, PTO_DTYPE_INT32);
  const int32_t number = 43;
  PTO2TaskId last;

  if (leave_early (rt, named, &last) != 0)
    return 1;
  /* An ordinary one, which would be refused in a manual one. */
  PTO2_SCOPE (rt)
  {
    pto2_rt_fill (rt, &tensor, &last);
    pto2_rt_fill_after (rt, &tensor, &number, &last, 1);
  }
  return 0;
}

static void
test_fill_by_name (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct named *named = g_new0 (struct named, 1);
  struct pto_run_stats stats;

  sim_record (chip, &tasks_program, fill_by_name, named, &stats);
  g_assert_cmpint (named->seen, ==, 41);
  for (uint32_t i = 0; i < BLOCK; i++)
    {
      g_assert_cmpint (named->values[i], ==, 42);
      g_assert_cmpint (named->last[i], ==, 43);
    }
  g_assert_cmpuint (stats.tasks, ==, 8);
  /* The names; and the last two, which fill the same. Who is done with is no producer. */
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (stats.edges, ==, 6);
  else
    g_assert_cmpuint (stats.edges, <=, 6);
  g_free (named);
  pto_chip_free (chip);
}

static int
scope_inside (PTO2Runtime *rt, void *data)
{
  PTO2_MANUAL_SCOPE (rt)
  {
    Tensor made = pto2_rt_alloc (rt, one, 1, PTO_DTYPE_INT32);

    PTO2_SCOPE (rt)
    {
      pto2_rt_fill (rt, &made, &(int32_t){ 1 });
    }
  }
  return 0;
}

static int
fill_after_nobody (PTO2Runtime *rt, void *data)
{
  int32_t value = 0;
  Tensor tensor = cell (&value);
  PTO2TaskId nobody = 77;

  pto2_rt_fill_after (rt, &tensor, &value, &nobody, 1);
  return 0;
}

static void
test_bad_names (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  sim_run_fails (chip, &tasks_program, fill_after_nobody, NULL, PTO_STATUS_INVALID_ARGS,
                 "task 0 (fill), submitted at test-task-memory.c:", "it comes after task 77", NULL);
  sim_run_fails (chip, &tasks_program, scope_inside, NULL, PTO_STATUS_INVALID_ARGS,
                 "the manual one opened at test-task-memory.c:", "open a manual one there, too",
                 NULL);
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
      sim_run (chip, &tasks_program, read_and_write, elements, NULL);
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

  sim_run (chip, &tasks_program, count_up, cells, NULL);
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

  sim_run_fails (chip, &tasks_program, read_badly, &how, PTO_STATUS_INVALID_ARGS, "no memory yet",
                 NULL);
  how = 1;
  sim_run_fails (chip, &tasks_program, read_badly, &how, PTO_STATUS_INVALID_ARGS,
                 "pto2_rt_get_element() names element 4 of dimension 0, which has 1",
                 "test-task-memory.c:", NULL);
  how = 3;
  sim_run_fails (chip, &tasks_program, read_badly, &how, PTO_STATUS_INVALID_ARGS,
                 "pto2_rt_set_element() names element 4", NULL);
#ifndef SIM_SANITIZED
  how = 2;
  sim_run_fails (chip, &tasks_program, read_badly, &how, PTO_STATUS_KERNEL_FAULT, "crash", NULL);
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
      sim_run (chip, &tasks_program, foreign_point, &f, NULL);
      g_assert_cmpint (f.status, ==, PTO_STATUS_KERNEL_FAULT);
      g_assert_nonnull (strstr (f.why, "signal 11"));
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}
#endif
static void
add_tests (void)
{
  sim_add ("task-memory/alloc", test_alloc);
  sim_add ("task-memory/bad-alloc", test_bad_alloc);
  sim_add ("task-memory/scratch", test_scratch);
  sim_add ("task-memory/bad-scratch", test_bad_scratch);
  sim_add ("task-memory/rename", test_rename);
  sim_add ("task-memory/fill", test_fill);
  sim_add ("task-memory/bad-fill", test_bad_fill);
  sim_add ("task-memory/fill-by-name", test_fill_by_name);
  sim_add ("task-memory/bad-names", test_bad_names);
  sim_add ("task-memory/elements", test_elements);
  sim_add ("task-memory/many-elements", test_many_elements);
  sim_add ("task-memory/bad-elements", test_bad_elements);
#ifndef SIM_SANITIZED
  sim_add ("task-memory/nowhere", test_nowhere);
#endif
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
