/* test-record.c: how much of a run is recorded, and is it true?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two kernels in three tasks: one writes two rows of a matrix, two read one row each and write on;
 * the second of these waits for both others.
 */
#include "sim-test.h"

#include <string.h>

#define ROWS 2
#define COLUMNS 16

static void
write_rows (int64_t *args)
{
  const TensorData *to = (const TensorData *) (uintptr_t) args[0];
  float *x = (float *) (uintptr_t) to->buffer.addr + to->start_offset;

  for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
    x[i] = (float) args[1];
}

static void
copy_row (int64_t *args)
{
  const TensorData *from = (const TensorData *) (uintptr_t) args[0];
  const TensorData *to = (const TensorData *) (uintptr_t) args[1];
  const float *x = (const float *) (uintptr_t) from->buffer.addr + from->start_offset;
  float *y = (float *) (uintptr_t) to->buffer.addr + to->start_offset;

  for (uint64_t i = 0; i < COLUMNS; i++)
    y[i] += x[i];
}

static const struct pto_kernel kernels[]
    = { { "write_rows", write_rows, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        { "copy_row", copy_row, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } } };
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct lines
{
  float sum[COLUMNS];
  uint32_t scope;
  uint32_t submits[3];
};

static int
three_tasks (PTO2Runtime *rt, void *data)
{
  struct lines *lines = data;
  uint64_t shape[] = { ROWS, COLUMNS };
  uint64_t row[] = { 1, COLUMNS };
  uint64_t n[] = { COLUMNS };

  /* clang-format off: each call is on the line that it says */
  lines->scope = __LINE__ + 1;
  PTO2_SCOPE (rt)
  {
    Tensor rows = pto2_rt_make_tensor (rt, shape, 2, (DataType) PTO_DTYPE_FLOAT32);
    Tensor sum = make_tensor_external (lines->sum, n, 1, PTO_DTYPE_FLOAT32);
    PTOParam write[] = { make_output_param (rows), make_scalar_param (7) };

    lines->submits[0] = __LINE__ + 1;
    pto2_rt_submit_task (rt, 0, AIC, write, 2);
    for (uint64_t r = 0; r < ROWS; r++)
      {
        uint64_t at[] = { r, 0 };
        Tensor view = pto2_tensor_view (&rows, row, at);
        PTOParam copy[] = { make_input_param (view), make_inout_param (sum) };

        lines->submits[1] = lines->submits[2] = __LINE__ + 1;
        pto2_rt_submit_task (rt, 1, AIV, copy, 2);
      }
  }
  /* clang-format on */
  return 0;
}

struct counts
{
  uint32_t kinds[64];
};

static const struct pto_trace *
record (struct pto_chip *chip, uint32_t level, struct lines *lines, struct counts *counts)
{
  struct pto_run_config config = { .record = level };
  struct pto_report report = { 0 };
  const struct pto_trace *trace;

  memset (lines, 0, sizeof *lines);
  memset (counts, 0, sizeof *counts);
  g_assert_cmpint (pto_chip_run (chip, &program, &config, three_tasks, lines, NULL, &report), ==,
                   PTO_OK);
  for (uint32_t i = 0; i < COLUMNS; i++)
    g_assert_cmpfloat (lines->sum[i], ==, 14);
  trace = pto_chip_trace (chip);
  g_assert_nonnull (trace);
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    {
      g_assert_cmpuint (trace->buffers[b].dropped, ==, 0);
      for (uint64_t i = 0; i < trace->buffers[b].count; i++)
        {
          g_assert_cmpuint (trace->buffers[b].records[i].kind, <, 64);
          counts->kinds[trace->buffers[b].records[i].kind]
              += pto_trace_n_tasks (&trace->buffers[b].records[i]);
        }
    }
  return trace;
}

/* Each level has what those below it have, so much of it, and nothing else. */
static void
test_levels (enum pto_backend backend)
{
  const struct
  {
    uint32_t level;
    uint32_t kind;
    uint32_t n;
  } rows[] = { { 1, PTO_TRACE_SUBMIT, 3 },
               { 1, PTO_TRACE_RUN, 3 },
               { 2, PTO_TRACE_READY, 3 },
               { 2, PTO_TRACE_DISPATCH, 3 },
               { 2, PTO_TRACE_ACK, 3 },
               { 2, PTO_TRACE_COMPLETE, 3 },
               { 3, PTO_TRACE_DEP, 3 },
               { 3, PTO_TRACE_RETIRE, 3 },
               { 3, PTO_TRACE_SCOPE, 4 },
               { 4, PTO_TRACE_ARG, 6 },
               { 4, PTO_TRACE_SHAPE, 5 },
               { 4, PTO_TRACE_OCCUPANCY, 0 },
               { 3, PTO_TRACE_COST, backend == PTO_BACKEND_DET ? PTO_TRACE_N_COSTS : 0 } };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t level = 1; level <= 4; level++)
    {
      struct pto_trace_topology topology;
      struct counts counts;
      struct lines lines;

      record (chip, level, &lines, &counts);
      pto_chip_trace_topology (chip, &topology);
      g_assert_cmpuint (topology.recorded, ==, level);
      for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
        {
          uint32_t *n = &counts.kinds[rows[i].kind];

          g_test_message ("level %u, kind %u: %u", level, rows[i].kind, *n);
          /* After each submit, and so often as tasks were retired. */
          if (rows[i].kind == PTO_TRACE_OCCUPANCY && level == 4)
            g_assert_cmpuint (*n, >, 3);
          else
            g_assert_cmpuint (*n, ==, level >= rows[i].level ? rows[i].n : 0);
          *n = 0;
        }
      for (guint kind = 0; kind < G_N_ELEMENTS (counts.kinds); kind++)
        g_assert_cmpuint (counts.kinds[kind], ==, 0);
    }
  pto_chip_free (chip);
}

/* What the parameters say holds where the run says nothing. */
static void
test_parameter (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "trace=1 trace-level=2");
  struct counts counts;
  struct lines lines;

  record (chip, 0, &lines, &counts);
  g_assert_cmpuint (counts.kinds[PTO_TRACE_ACK], ==, 3);
  g_assert_cmpuint (counts.kinds[PTO_TRACE_DEP], ==, 0);
  record (chip, 4, &lines, &counts);
  g_assert_cmpuint (counts.kinds[PTO_TRACE_ARG], ==, 6);
  pto_chip_free (chip);
}

/* Where each submit and each scope stands. */
static void
test_lines (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct counts counts;
  struct lines lines;
  const struct pto_trace *trace = record (chip, PTO_TRACE_LEVEL_GRAPH, &lines, &counts);
  const struct pto_trace_buffer *buffer = &trace->buffers[0];
  uint32_t n_submits = 0, n_scopes = 0;

  g_assert_cmpuint (trace->files.n, ==, 1);
  g_assert_true (g_str_has_suffix (trace->files.names[0], "test-record.c"));
  for (uint64_t i = 0; i < buffer->count; i++)
    {
      const struct pto_trace_record *at = &buffer->records[i];

      if (at->kind == PTO_TRACE_SUBMIT)
        {
          g_assert_cmpuint (PTO_TRACE_FILE (at->extra), ==, 1);
          g_assert_cmpuint (PTO_TRACE_LINE (at->extra), ==, lines.submits[n_submits++]);
        }
      else if (at->kind == PTO_TRACE_SCOPE && at->detail == 1)
        {
          n_scopes++;
          g_assert_cmpuint (PTO_TRACE_FILE (at->extra), ==, 1);
          g_assert_cmpuint (PTO_TRACE_LINE (at->extra), ==, lines.scope);
        }
    }
  g_assert_cmpuint (n_submits, ==, 3);
  g_assert_cmpuint (n_scopes, ==, 2);
  pto_chip_free (chip);
}

/* Arguments stand before their task: kind, type, shape, strides, and where they are. */
static void
test_arguments (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct counts counts;
  struct lines lines;
  const struct pto_trace *trace = record (chip, PTO_TRACE_LEVEL_FULL, &lines, &counts);
  const struct pto_trace_buffer *buffer = &trace->buffers[0];
  const struct pto_trace_record *args[6];
  uint32_t n = 0;

  for (uint64_t i = 0; i < buffer->count; i++)
    if (buffer->records[i].kind == PTO_TRACE_ARG)
      args[n++] = &buffer->records[i];
  g_assert_cmpuint (n, ==, 6);

  g_assert_cmpuint (PTO_TRACE_ARG_TYPE (args[0]->extra), ==, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (PTO_TRACE_ARG_DTYPE (args[0]->extra), ==, PTO_DTYPE_FLOAT32);
  g_assert_cmpuint (PTO_TRACE_ARG_NDIMS (args[0]->extra), ==, 2);
  g_assert_cmpuint (args[0][1].kind, ==, PTO_TRACE_SHAPE);
  g_assert_cmpuint (args[0][1].time, ==, (uint64_t) COLUMNS << 32 | ROWS);
  g_assert_cmpuint (args[0][1].task, ==, (uint64_t) 1 << 32 | COLUMNS);
  g_assert_cmpuint (PTO_TRACE_ARG_TYPE (args[1]->extra), ==, PTO_PARAM_SCALAR);
  g_assert_cmpuint (args[1]->time, ==, 7);
  g_assert_cmpuint (args[1]->detail, ==, 1);
  g_assert_cmpuint (args[1]->task, ==, args[0]->task);
  for (uint32_t r = 0; r < ROWS; r++)
    {
      const struct pto_trace_record *row = args[2 + 2 * r];
      const struct pto_trace_record *sum = args[3 + 2 * r];

      g_assert_cmpuint (PTO_TRACE_ARG_TYPE (row->extra), ==, PTO_PARAM_INPUT);
      g_assert_cmpuint (row->time, ==, args[0]->time + r * COLUMNS * sizeof (float));
      g_assert_cmpuint (row[1].time, ==, (uint64_t) COLUMNS << 32 | 1);
      g_assert_cmpuint (PTO_TRACE_ARG_TYPE (sum->extra), ==, PTO_PARAM_INOUT);
      g_assert_cmpuint (sum->time, ==, (uint64_t) (uintptr_t) lines.sum);
      g_assert_cmpuint (PTO_TRACE_ARG_NDIMS (sum->extra), ==, 1);
      g_assert_cmpuint (sum[1].time, ==, COLUMNS);
      g_assert_cmpuint (sum[1].task, ==, 1);
      g_assert_cmpuint (sum->task, ==, row->task);
    }
  pto_chip_free (chip);
}

/* Who is named as the last producer is one, and the task was ready when that was complete. */
static void
test_last_producer (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct counts counts;
  struct lines lines;
  const struct pto_trace *trace = record (chip, PTO_TRACE_LEVEL_GRAPH, &lines, &counts);
  uint64_t ids[3];
  uint32_t n = 0, n_ready = 0;

  for (uint64_t i = 0; i < trace->buffers[0].count; i++)
    if (trace->buffers[0].records[i].kind == PTO_TRACE_SUBMIT)
      ids[n++] = trace->buffers[0].records[i].task;
  g_assert_cmpuint (n, ==, 3);
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      {
        const struct pto_trace_record *at = &trace->buffers[b].records[i];

        if (at->kind != PTO_TRACE_READY)
          continue;
        n_ready++;
        g_assert_cmpuint (at->detail, <=, at->task != ids[0]);
        /* On the virtual clock nothing is over when it is submitted: a kernel takes longer. */
        if (backend == PTO_BACKEND_DET)
          g_assert_cmpuint (at->detail, ==, at->task != ids[0]);
        if (at->detail == 1)
          g_assert_cmpuint (at->extra, ==, at->task == ids[1] ? ids[0] : ids[1]);
      }
  g_assert_cmpuint (n_ready, ==, 3);
  pto_chip_free (chip);
}

/* What is in use when all is done is nothing; a heap had the matrix, and edges were taken. */
static void
test_occupancy (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct counts counts;
  struct lines lines;
  const struct pto_trace *trace = record (chip, PTO_TRACE_LEVEL_FULL, &lines, &counts);
  const struct pto_trace_record *last = NULL;
  uint64_t heap = 0;

  for (uint64_t i = 0; i < trace->buffers[0].count; i++)
    {
      const struct pto_trace_record *at = &trace->buffers[0].records[i];

      if (at->kind != PTO_TRACE_OCCUPANCY)
        continue;
      g_assert_cmpuint (at->detail, ==, 1); /* the ring of a scope in a run's own */
      heap = MAX (heap, at->task);
      last = at;
    }
  g_assert_nonnull (last);
  g_assert_cmpuint (heap, >=, ROWS * COLUMNS * sizeof (float));
  g_assert_cmpuint (last->task, ==, 0);
  g_assert_cmpuint (last->extra >> 32, ==, 0);
  pto_chip_free (chip);
}

/* --- what a submit asks for --- */

static void
nothing (int64_t *args)
{
  (void) args;
}

static const struct pto_kernel idle_kernels[]
    = { { "cube", nothing, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        { "vector", nothing, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } } };
static const struct pto_program idle_program = { idle_kernels, G_N_ELEMENTS (idle_kernels) };

enum
{
  WISH_BLOCKS,
  WISH_MIXED,
  WISH_GROUP,
  WISH_CLUSTER,
  WISH_TURN,
  WISH_TURN_TOO,
  WISH_REDUCE,
  WISH_REDUCE_TOO,
  N_WISHES
};

struct wishes
{
  float memory[2];
  pto_task_id tasks[N_WISHES];
};

static int
wish (PTO2Runtime *rt, void *data)
{
  static const int32_t mixed[3] = { 0, 1, PTO2_KERNEL_NONE };
  static const int32_t group[2] = { 1, 1 };
  static const int32_t cores[2] = { -1, 5 };
  struct wishes *wishes = data;
  uint64_t n[] = { 1 };
  Tensor one = make_tensor_external (&wishes->memory[0], n, 1, PTO_DTYPE_FLOAT32);
  Tensor two = make_tensor_external (&wishes->memory[1], n, 1, PTO_DTYPE_FLOAT32);
  PTO2Submit submit = pto2_make_submit (1, AIV, NULL, 0);
  PTOParam param;

  submit.block_dim = 4;
  wishes->tasks[WISH_BLOCKS] = pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, NULL, 0);
  submit.mixed = mixed;
  submit.block_dim = 3;
  submit.sync_start = 1;
  wishes->tasks[WISH_MIXED] = pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, NULL, 0);
  submit.group = group;
  submit.n_group = 2;
  submit.group_cores = cores;
  wishes->tasks[WISH_GROUP] = pto2_rt_submit (rt, &submit);
  submit = pto2_make_submit (0, AIC, NULL, 0);
  submit.in_cluster = 1;
  submit.cluster_id = pto2_rt_allocate_cluster (rt);
  wishes->tasks[WISH_CLUSTER] = pto2_rt_submit (rt, &submit);
  pto2_rt_free_cluster (rt, submit.cluster_id);
  for (uint32_t i = 0; i < 2; i++)
    {
      param = make_commutative_param (one);
      submit = pto2_make_submit (1, AIV, &param, 1);
      wishes->tasks[WISH_TURN + i] = pto2_rt_submit (rt, &submit);
    }
  for (uint32_t i = 0; i < 2; i++)
    {
      param = make_reduction_param (two, PTO2_KERNEL_SUM, NULL);
      submit = pto2_make_submit (1, AIV, &param, 1);
      wishes->tasks[WISH_REDUCE + i] = pto2_rt_submit (rt, &submit);
    }
  return 0;
}

/* Where its parts are to be, whose turn it waits for, by which set it reduces. */
static void
test_wishes (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4");
  struct pto_run_config config = { .record = PTO_TRACE_LEVEL_GRAPH };
  struct pto_report report = { 0 };
  struct wishes wishes = { { 0 }, { 0 } };
  const struct pto_trace_buffer *buffer;
  uint64_t tokens[2] = { 0 };
  uint32_t n_parts = 0, n_places = 0, n_turns = 0, n_holds = 0;
  uint32_t n_reduces[3] = { 0 };

  g_assert_cmpint (pto_chip_run (chip, &idle_program, &config, wish, &wishes, NULL, &report), ==,
                   PTO_OK);
  buffer = &pto_chip_trace (chip)->buffers[0];
  for (uint64_t i = 0; i < buffer->count; i++)
    {
      const struct pto_trace_record *at = &buffer->records[i];
      uint32_t members = PTO_TRACE_PARTS_MEMBERS (at->extra);

      switch (at->kind)
        {
        case PTO_TRACE_PARTS:
          g_assert_cmpuint (at->task, ==, wishes.tasks[n_parts]);
          g_assert_cmpuint (at->time, ==, n_parts == WISH_BLOCKS ? 4 : 1);
          g_assert_cmpuint (members, ==,
                            n_parts == WISH_BLOCKS  ? 0
                            : n_parts == WISH_MIXED ? 6
                            : n_parts == WISH_GROUP ? 2
                                                    : 1);
          if (members > 0)
            g_assert_cmpuint (PTO_TRACE_PARTS_BLOCK (at->extra), ==, n_parts == WISH_MIXED ? 2 : 1);
          g_assert_cmpint (PTO_TRACE_PARTS_TOGETHER (at->extra), ==,
                           n_parts == WISH_MIXED || n_parts == WISH_CLUSTER);
          g_assert_cmpuint (PTO_TRACE_PARTS_COHORT (at->extra), ==,
                            n_parts == WISH_CLUSTER ? 0 : UINT32_MAX);
          n_parts++;
          break;
        case PTO_TRACE_PLACE:
          /* AIV 5 is the second one of cluster 2. */
          g_assert_cmpuint (at->task, ==, wishes.tasks[WISH_GROUP]);
          g_assert_cmpuint (at->detail, ==, 1);
          g_assert_cmpuint (at->extra, ==, 2 * 3 + 2);
          n_places++;
          break;
        case PTO_TRACE_HOLD:
          g_assert_cmpuint (at->detail, ==, n_holds == 0);
          g_assert_cmpuint (at->extra, ==, 0);
          n_holds++;
          break;
        case PTO_TRACE_CLAIM:
          if (at->task == wishes.tasks[WISH_TURN] || at->task == wishes.tasks[WISH_TURN_TOO])
            {
              g_assert_cmpuint (at->task, ==, wishes.tasks[WISH_TURN + n_turns]);
              tokens[n_turns++] = at->extra;
            }
          break;
        case PTO_TRACE_REDUCE:
          g_assert_cmpuint (at->detail, <, 3);
          g_assert_cmpuint (at->extra, ==, 0);
          if (at->detail == PTO_TRACE_REDUCE_UPDATE)
            g_assert_cmpuint (at->task, ==, wishes.tasks[WISH_REDUCE + n_reduces[at->detail]]);
          if (at->detail == PTO_TRACE_REDUCE_FILL)
            g_assert_cmpuint (at->time, >=, 2);
          n_reduces[at->detail]++;
          break;
        default:
          break;
        }
    }
  g_assert_cmpuint (n_parts, ==, 4);
  g_assert_cmpuint (n_places, ==, 1);
  g_assert_cmpuint (n_holds, ==, 2);
  g_assert_cmpuint (n_turns, ==, 2);
  g_assert_cmpuint (tokens[0], ==, tokens[1]);
  for (uint32_t role = 0; role < 3; role++)
    g_assert_cmpuint (n_reduces[role], ==, 2);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("record/levels", test_levels);
  sim_add ("record/parameter", test_parameter);
  sim_add ("record/lines", test_lines);
  sim_add ("record/arguments", test_arguments);
  sim_add ("record/last-producer", test_last_producer);
  sim_add ("record/occupancy", test_occupancy);
  sim_add ("record/wishes", test_wishes);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
