/* test-graph.c: can an orchestration be captured on a chip, and launched again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/graph-plan-pack.h"
#include "../../pto/core/graph-plan.h"

#include <string.h>

#define N 64u

/* out = in + number */
static void
add (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0];
  const TensorData *out = (const TensorData *) args[1];
  const float *x = (const float *) in->buffer.addr + in->start_offset;
  float *y = (float *) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = x[i] + (float) args[2];
}

/* A block's part of out = in + 1 */
static void
add_part (int64_t *args)
{
  const float *x = sim_data (args, 0);
  float *y = sim_data (args, 1);

  for (uint64_t i = get_block_idx (args); i < N; i += get_block_num (args))
    y[i] = x[i] + 1;
}

/* out = (in + number) + 1, by way of memory of its own */
static void
add_twice (int64_t *args)
{
  const float *x = sim_data (args, 0);
  float *own = sim_data (args, 1);
  float *y = sim_data (args, 2);

  for (uint64_t i = 0; i < N; i++)
    own[i] = x[i] + (float) args[3];
  for (uint64_t i = 0; i < N; i++)
    y[i] = own[i] + 1;
}

/* Three of a block: 100 on the cube core, 101 and 102 on the vector cores. */
static void
stamp_cube (int64_t *args)
{
  ((float *) sim_data (args, 0))[3 * get_block_idx (args)] = 100;
}

static void
stamp_vector (int64_t *args)
{
  uint32_t sub = get_sub_block_id (args);

  ((float *) sim_data (args, 0))[3 * get_block_idx (args) + 1 + sub] = (float) (101 + sub);
}

/* Behind a barrier: what all blocks have written before it. */
static void
meet (int64_t *args)
{
  float *out = sim_data (args, 0);
  float sum = 0;

  out[40 + get_block_idx (args)] = 1;
  pto_sync_all (args);
  for (uint32_t i = 0; i < get_block_num (args); i++)
    sum += out[40 + i];
  out[50 + get_block_idx (args)] = sum;
}

/* Writes a float behind the argument that its last one names. */
static void
overrun (int64_t *args)
{
  int64_t which = args[2];

  ((float *) sim_data (args, (int) which))[((const TensorData *) args[which])->shapes[0]] = 7;
}

/* Updates args[1] by args[0] + args[2], in a while in which nobody else may. */
static void
gather (int64_t *args)
{
  const float *x = sim_data (args, 0);
  float *y = sim_data (args, 1);
  float before[N];

  memcpy (before, y, sizeof before);
  pto_relax (args);
  for (uint64_t i = 0; i < N; i++)
    y[i] = before[i] + x[i] + (float) args[2];
}

static void
take_in (int64_t *args)
{
  for (uint64_t i = 0; i < N; i++)
    ((float *) sim_data (args, 0))[i] += ((float *) sim_data (args, 1))[i];
}

static void
late (int64_t *args)
{
  sim_spend_ns (3000000);
  ((float *) sim_data (args, 0))[0] = 1;
}

enum
{
  GATHER = 9,
  GATHER_CUBE,
  TAKE_IN,
  LATE
};

static const struct pto_kernel kernels[]
    = { { "add", add, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "add on a cube", add, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        { "add a part", add_part, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "add twice", add_twice, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "stamp of a cube", stamp_cube, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        { "stamp", stamp_vector, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "meet", meet, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "add by bytes", add, PTO_CORE_TYPE_AIV, { PTO_COST_LINEAR, .ns_per_byte = 1000 } },
        { "overrun", overrun, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        [GATHER] = { "gather", gather, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        [GATHER_CUBE] = { "gather on a cube", gather, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        [TAKE_IN] = { "take in", take_in, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        [LATE] = { "late", late, PTO_CORE_TYPE_AIC, { .base_ns = 3000000 } } };
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static void
submit (PTO2Runtime *rt, int32_t kernel, Tensor in, Tensor out, bool made, uint64_t number)
{
  PTOParam params[]
      = { make_input_param (in), made ? make_output_param (out) : make_output_existing_param (out),
          make_scalar_param (number) };

  pto2_rt_submit_task (rt, kernel, kernel == 0 ? AIV : AIC, params, 3);
}

/* The arguments of a run: as many blocks of floats, and a number. */
struct given
{
  float memory[3][N];
  struct pto_chip_arg args[4];
};

static void
fill (struct given *given, float first)
{
  static const uint64_t shape[1] = { N };

  memset (given, 0, sizeof *given);
  for (uint32_t b = 0; b < 3; b++)
    {
      given->args[b].tensor = make_tensor_external (given->memory[b], shape, 1, PTO_DTYPE_FLOAT32);
      given->args[b].word = given->args[b].tensor.buffer.addr;
    }
  given->args[3].word = 3;
  for (uint32_t i = 0; i < N; i++)
    given->memory[0][i] = first + (float) i;
}

static enum pto_status
run (struct pto_chip *chip, struct given *given, struct pto_plan *capture, bool trace,
     SimOrchestration orchestrate, void *data, struct pto_run_stats *stats,
     struct pto_report *report)
{
  struct pto_run_config config = { .args = given->args,
                                   .n_args = 4,
                                   .capture = capture,
                                   .record = trace ? PTO_TRACE_LEVEL_GRAPH : 0 };

  *report = (struct pto_report){ 0 };
  return pto_chip_run (chip, &program, &config, orchestrate, data, stats, report);
}

/* [1] = [0] + 1 + 2 + 4 by way of memory of the runtime, half of it on a cube; [2] is filled, and
 * where its first element is not 0 it gets what [1] has. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  static const uint64_t half[1] = { N / 2 };
  static const uint64_t first[1] = { 0 };
  static const uint64_t second[1] = { N / 2 };
  static const float one = 1;
  Tensor args[3];
  Tensor a;
  Tensor b;

  for (int32_t i = 0; i < 3; i++)
    args[i] = pto2_rt_arg_tensor (rt, i);
  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    a = make_tensor (args[0].shapes, 1, PTO_DTYPE_FLOAT32);
    b = pto2_rt_alloc (rt, args[0].shapes, 1, PTO_DTYPE_FLOAT32);
    submit (rt, 0, args[0], a, true, 1);
    submit (rt, 0, pto2_tensor_view (&a, half, first), pto2_tensor_view (&b, half, first), false,
            2);
    submit (rt, 1, pto2_tensor_view (&a, half, second), pto2_tensor_view (&b, half, second), false,
            2);
    submit (rt, 0, b, args[1], false, 4);
  }
  pto2_rt_fill (rt, &args[2], &one);
  {
    PTOParam params[]
        = { make_input_param (args[1]), make_inout_param (args[2]), make_scalar_param (0) };

    pto2_rt_submit_task_if (rt, 0, AIV, params, 3, &args[2], first);
  }
  return 0;
}

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

/* [1] = [0] + 1 + 2 + 1 by blocks and scratch memory, [2] what parts of two other tasks leave
 * there.
 */
static int
orchestrate_parts (PTO2Runtime *rt, void *data)
{
  Tensor args[3];
  Tensor made;

  for (int32_t i = 0; i < 3; i++)
    args[i] = pto2_rt_arg_tensor (rt, i);
  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (args[0].shapes, 1, PTO_DTYPE_FLOAT32);
  {
    PTOParam params[] = { make_input_param (args[0]), make_output_param (made) };

    pto2_rt_submit_block_task (rt, 2, AIV, params, 2, 10);
  }
  {
    PTOParam params[] = { make_input_param (made), make_scratch_param (made.shapes, 1, made.dtype),
                          make_output_existing_param (args[1]), make_scalar_param (2) };

    pto2_rt_submit_task (rt, 3, AIV, params, 4);
  }
  {
    PTOParam params[] = { make_inout_param (args[2]) };

    pto2_rt_submit_mixed_task (rt, 4, 5, 5, params, 1, 10);
    pto2_rt_submit_sync_task (rt, 6, AIV, params, 1, 5);
  }
  return 0;
}

static void
test_parts (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3");
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate_parts, NULL, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (graph->n_tasks, ==, 4);
  g_assert_cmpfloat (given->memory[2][0], ==, 0);
  for (uint32_t round = 0; round < 40; round++)
    {
      fill (given, (float) round);
      run (chip, given, NULL, round % 4 == 0, launch, graph, &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (stats.tasks, ==, 4);
      for (uint32_t i = 0; i < N; i++)
        {
          g_assert_cmpfloat (given->memory[1][i], ==, (float) (round + i + 4));
          g_assert_cmpfloat (given->memory[2][i], ==,
                             i < 30              ? (float) (100 + i % 3)
                             : i >= 40 && i < 45 ? 1
                             : i >= 50 && i < 55 ? 5
                                                 : 0);
        }
    }
  pto_chip_free (chip);
  /* Places are looked for where it is launched. */
  chip = sim_chip (backend, "clusters=2 aicpu-threads=2");
  fill (given, 0);
  run (chip, given, NULL, false, launch, graph, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_SYNC_START, "meet", "submitted at test-graph.c:", "clusters",
                   NULL);
  g_assert_cmpfloat (given->memory[2][50], ==, 0);
  pto_chip_free (chip);
  g_free (given);
  pto_plan_free (graph);
}

/* Where each task was submitted, by the record of the last run. */
static void
find_places (struct pto_chip *chip, uint32_t lines[16], uint32_t *n)
{
  const struct pto_trace *trace = pto_chip_trace (chip);

  *n = 0;
  g_assert_nonnull (trace);
  for (uint64_t i = 0; i < trace->buffers[0].count; i++)
    {
      const struct pto_trace_record *record = &trace->buffers[0].records[i];

      if (record->kind != PTO_TRACE_SUBMIT)
        continue;
      g_assert_cmpuint (*n, <, 16);
      g_assert_cmpuint (PTO_TRACE_FILE (record->extra), ==, 1);
      lines[(*n)++] = PTO_TRACE_LINE (record->extra);
    }
  g_assert_cmpuint (trace->files.n, ==, 1);
  g_assert_true (g_str_has_suffix (trace->files.names[0], "test-graph.c"));
}

/* A launch says where the orchestration has submitted its tasks, as a run of it does; and so does a
 * copy that went to another process. */
static void
test_places (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3");
  struct pto_plan *graph = pto_plan_new ();
  struct pto_plan *copy = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  uint64_t size;
  g_autofree void *packed = NULL;
  uint32_t lines[2][16];
  uint32_t n[2];
  struct pto_run_stats stats;
  struct pto_report report;

  fill (given, 0);
  run (chip, given, NULL, true, orchestrate_parts, NULL, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  find_places (chip, lines[0], &n[0]);
  g_assert_cmpuint (n[0], ==, 4);
  for (uint32_t i = 1; i < n[0]; i++)
    g_assert_cmpuint (lines[0][i - 1], <, lines[0][i]);
  run (chip, given, graph, false, orchestrate_parts, NULL, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  size = pto_plan_packed_size (graph);
  packed = g_malloc0 (size);
  pto_plan_pack (graph, packed);
  g_assert_cmpint (pto_plan_unpack (copy, packed, size, &report), ==, PTO_OK);
  for (uint32_t i = 0; i < 4; i++)
    {
      run (chip, given, NULL, i > 0, launch, i % 2 == 0 ? graph : copy, &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      if (i == 0)
        continue;
      find_places (chip, lines[1], &n[1]);
      g_assert_cmpmem (lines[1], n[1] * sizeof lines[1][0], lines[0], n[0] * sizeof lines[0][0]);
    }
  pto_chip_free (chip);
  pto_plan_free (graph);
  pto_plan_free (copy);
  g_free (given);
}

/* --- memory that one task makes, and another one is done with before that begins --- */

static int
orchestrate_late (PTO2Runtime *rt, void *data)
{
  static const uint64_t half[1] = { N / 2 };
  static const uint64_t one[1] = { 1 };
  static const uint64_t at[2][1] = { { 0 }, { N / 2 } };
  Tensor from = pto2_rt_arg_tensor (rt, 0);
  Tensor made, cell;
  PTO2TaskId slow;

  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (from.shapes, 1, PTO_DTYPE_FLOAT32);
  cell = make_tensor (one, 1, PTO_DTYPE_FLOAT32);
  {
    PTOParam params[] = { make_output_param (cell) };

    slow = pto2_rt_submit_task (rt, LATE, AIC, params, 1);
  }
  for (uint32_t h = 0; h < 2; h++)
    {
      PTOParam params[]
          = { make_input_param (pto2_tensor_view (&from, half, at[h])),
              make_output_param (pto2_tensor_view (&made, half, at[h])), make_scalar_param (2) };

      pto2_rt_submit_task_after (rt, 0, AIV, params, 3, &slow, h == 0);
    }
  submit (rt, 0, made, pto2_rt_arg_tensor (rt, 1), false, 4);
  return 0;
}

/* Behind the memory nothing is amiss, whoever comes first. */
static void
test_late_maker (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new0 (struct given, 1);
  struct pto_report report;

  for (uint32_t round = 0; round < 3; round++)
    {
      fill (given, (float) round);
      run (chip, given, round == 1 ? graph : NULL, false, round < 2 ? orchestrate_late : launch,
           graph, NULL, &report);
      g_assert_cmpstr (report.message, ==, "");
      for (uint32_t i = 0; round != 1 && i < N; i++)
        g_assert_cmpfloat (given->memory[1][i], ==, (float) (round + i + 6));
    }
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
}

/* --- tensors that several tasks have --- */

/* Quarters of [0] and [1] over and over, which differ in where they begin alone, and the whole. */
static int
orchestrate_same (PTO2Runtime *rt, void *data)
{
  static const uint64_t quarter[1] = { N / 4 };
  Tensor args[2] = { pto2_rt_arg_tensor (rt, 0), pto2_rt_arg_tensor (rt, 1) };

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < 40; i++)
    {
      uint64_t first[1] = { i % 4 * N / 4 };
      Tensor from = pto2_tensor_view (&args[i / 4 % 2], quarter, first);
      Tensor to = pto2_tensor_view (&args[1 - i / 4 % 2], quarter, first);
      PTOParam params[]
          = { make_input_param (from), make_output_existing_param (to), make_scalar_param (i % 4) };

      pto2_rt_submit_task (rt, 7, AIV, params, 3);
    }
  submit (rt, 0, args[0], args[1], false, 5);
  /* What has the memory of another task, twice; and what nobody else has. */
  {
    Tensor made = make_tensor (args[0].shapes, 1, PTO_DTYPE_FLOAT32);
    Tensor alone = make_tensor (args[0].shapes, 1, PTO_DTYPE_FLOAT32);

    submit (rt, 0, args[1], made, true, 6);
    submit (rt, 0, made, args[0], false, 7);
    submit (rt, 0, made, alone, true, 8);
    if (data != NULL)
      {
        uint32_t which = *(const uint32_t *) data;
        PTOParam params[]
            = { make_input_param (args[0]), make_input_param (args[0]), make_scalar_param (which) };

        params[which] = make_output_existing_param (made);
        pto2_rt_submit_task (rt, 8, AIV, params, 3);
      }
  }
  return 0;
}

/* A launch describes each of them once: kernels see, the virtual clock counts and messages name the
 * same as in a run. */
static void
test_same_tensors (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;
  uint64_t plain_ns = 0;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate_same, NULL, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  /* Eight quarters, two wholes, and what was made for two. */
  g_assert_cmpuint (graph->n_shared, ==, 11);
  g_assert_cmpuint (graph->tasks[0].n_tensors, ==, 0);
  g_assert_cmpuint (graph->tasks[43].n_tensors, ==, 1);
  for (uint32_t round = 0; round < 10; round++)
    {
      bool plain = round % 5 == 0;

      fill (given, (float) round);
      run (chip, given, NULL, round == 4, plain ? orchestrate_same : launch, plain ? NULL : graph,
           &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (stats.tasks, ==, 44);
      for (uint32_t i = 0; i < N; i++)
        {
          uint32_t first = round + i + 10 * (i / (N / 4));

          g_assert_cmpfloat (given->memory[0][i], ==, (float) (first + 18));
          g_assert_cmpfloat (given->memory[1][i], ==, (float) (first + 5));
        }
      if (plain)
        plain_ns = stats.virtual_ns;
      /* But for what submitting takes. */
      else if (backend == PTO_BACKEND_DET)
        g_assert_cmpfloat_with_epsilon ((double) stats.virtual_ns, (double) plain_ns,
                                        0.02 * (double) plain_ns);
    }
  for (uint32_t which = 0; which < 2; which++)
    {
      pto_plan_free (graph);
      graph = pto_plan_new ();
      run (chip, given, graph, false, orchestrate_same, &which, &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      for (uint32_t round = 0; round < 2; round++)
        {
          run (chip, given, NULL, false, round == 0 ? orchestrate_same : launch,
               round == 0 ? &which : (gpointer) graph, &stats, &report);
          sim_assert_says (&report, PTO_STATUS_OUT_OF_BOUNDS, "overrun",
                           "wrote at least 4 bytes past ",
                           which == 0 ? "argument 0 (declared float32 [64])"
                                      : "argument 1 (declared float32 [64])",
                           NULL);
        }
    }
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
}

static void
test_same_numbers (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  struct pto_chip *other = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *captured = g_new (struct given, 1);
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;

  fill (captured, 0);
  g_assert_cmpint (run (chip, captured, graph, false, orchestrate, NULL, &stats, &report), ==,
                   PTO_OK);
  g_assert_cmpuint (stats.tasks, ==, 0);
  g_assert_cmpuint (graph->n_tasks, ==, 7);
  g_assert_cmpfloat (captured->memory[1][0], ==, 0); /* nothing ran */
  for (uint32_t i = 0; i < 20; i++)
    {
      struct pto_chip *on = i % 2 == 0 ? chip : other;

      fill (given, (float) i * 100);
      run (on, given, NULL, i >= 18, launch, graph, &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (stats.tasks, ==, 7);
      g_assert_cmpuint (stats.completed, ==, 7);
      for (uint32_t e = 0; e < N; e++)
        {
          g_assert_cmpfloat (given->memory[1][e], ==, (float) (i * 100 + e + 7));
          g_assert_cmpfloat (given->memory[2][e], ==, (float) (i * 100 + e + 7));
        }
      if (i >= 18)
        {
          g_assert_cmpuint (sim_trace_count (pto_chip_trace (on), PTO_TRACE_SUBMIT), ==, 7);
          /* All but the one without a kernel. */
          g_assert_cmpuint (sim_trace_count (pto_chip_trace (on), PTO_TRACE_RUN), ==, 6);
        }
    }
  /* What it was captured from can still be run. */
  fill (given, 5);
  g_assert_cmpint (run (chip, given, NULL, false, orchestrate, NULL, &stats, &report), ==, PTO_OK);
  g_assert_cmpfloat (given->memory[1][0], ==, 12);
  pto_plan_free (graph);
  g_free (captured);
  g_free (given);
  pto_chip_free (chip);
  pto_chip_free (other);
}

/* --- priorities --- */

#define RANKED 4u

/* So many tasks that wait for nothing, each before those that were submitted before it. */
static int
orchestrate_ranked (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[1] = { N / RANKED };
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor out = pto2_rt_arg_tensor (rt, 1);

  for (uint64_t i = 0; i < RANKED; i++)
    {
      uint64_t at[1] = { i * shape[0] };
      PTOParam params[] = { make_input_param (pto2_tensor_view (&in, shape, at)),
                            make_output_existing_param (pto2_tensor_view (&out, shape, at)),
                            make_scalar_param (i) };

      pto2_rt_submit_task_with_priority (rt, 0, AIV, params, 3, (int32_t) i);
    }
  return 0;
}

/* Each launch keeps them, also the first with priorities on a chip. */
static void
test_priorities (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_chip *other = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate_ranked, NULL, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  for (uint32_t i = 0; i < RANKED; i++)
    g_assert_cmpuint (graph->tasks[i].terms.priority, ==, i);
  for (uint32_t n = 0; n < 4; n++)
    {
      fill (given, (float) n);
      run (n % 2 == 0 ? other : chip, given, NULL, false, launch, graph, &stats, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (stats.completed, ==, RANKED);
      for (uint32_t e = 0; e < N; e++)
        g_assert_cmpfloat (given->memory[1][e], ==, (float) (n + e + e / (N / RANKED)));
    }
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
  pto_chip_free (other);
}

/* --- what can not be captured --- */

static int line; /* of the call that is refused */

static int
orchestrate_get (PTO2Runtime *rt, void *data)
{
  static const uint64_t index[1] = { 0 };
  Tensor tensor = pto2_rt_arg_tensor (rt, 0);
  float value = 0;

  line = __LINE__ + 1;
  g_assert_false (pto2_rt_get_element (rt, &tensor, index, &value));
  return 0;
}

static int
orchestrate_set (PTO2Runtime *rt, void *data)
{
  static const uint64_t index[1] = { 0 };
  Tensor tensor = pto2_rt_arg_tensor (rt, 0);
  float value = 0;

  line = __LINE__ + 1;
  g_assert_false (pto2_rt_set_element (rt, &tensor, index, &value));
  return 0;
}

static int
orchestrate_foreign (PTO2Runtime *rt, void *data)
{
  static float memory[N];
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor tensor = make_tensor_external (memory, in.shapes, 1, PTO_DTYPE_FLOAT32);
  PTOParam params[]
      = { make_input_param (in), make_output_existing_param (tensor), make_scalar_param (0) };

  line = __LINE__ + 1;
  pto2_rt_submit_task (rt, 0, AIV, params, 3);
  return 0;
}

/* One task outputs a tensor by two of its arguments. */
static int
orchestrate_twice (PTO2Runtime *rt, void *data)
{
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor made;

  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (in.shapes, 1, PTO_DTYPE_FLOAT32);
  {
    PTOParam params[] = { make_input_param (in), make_output_param (made), make_scalar_param (2),
                          make_output_param (made) };

    pto2_rt_submit_task (rt, 0, AIV, params, 4);
  }
  submit (rt, 0, made, pto2_rt_arg_tensor (rt, 1), false, 1);
  return 0;
}

static void
test_output_twice (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_report report;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate_twice, NULL, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  for (uint32_t round = 0; round < 5; round++)
    {
      fill (given, (float) round);
      run (chip, given, NULL, false, launch, graph, NULL, &report);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpfloat (given->memory[1][N - 1], ==, (float) (round + N - 1 + 3));
    }
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
}

/* Deeper scopes of a run before this one are not looked at: their names may be gone. */
static int
deep_scopes (PTO2Runtime *rt, void *name)
{
  for (int32_t i = 0; i < 3; i++)
    pto2_rt_scope_begin_at (rt, name, i);
  for (int32_t i = 0; i < 3; i++)
    pto2_rt_scope_end (rt);
  return 0;
}

static int
deep_tasks (PTO2Runtime *rt, void *data)
{
  Tensor made[8];

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    PTO2_SCOPE (rt)
    {
      for (uint32_t i = 0; i < 8; i++)
        {
          made[i] = make_tensor (pto2_rt_arg_tensor (rt, 0).shapes, 1, PTO_DTYPE_FLOAT32);
          submit (rt, 0, pto2_rt_arg_tensor (rt, 0), made[i], true, i);
        }
      for (uint32_t i = 0; i < 8; i++)
        submit (rt, 0, made[i], pto2_rt_arg_tensor (rt, 1), false, 0);
    }
  }
  return 0;
}

static void
test_deadlock_behind_deep_scopes (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=4");
  struct pto_chip *other = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_report report;
  char *name = g_strdup ("gone.c");

  fill (given, 0);
  run (other, given, graph, false, deep_tasks, NULL, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  run (chip, given, NULL, false, deep_scopes, name, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_free (name);
  run (chip, given, NULL, false, launch, graph, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_TASK_RING, "deadlock in task ring 2", "held by the graph",
                   NULL);
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (other);
  pto_chip_free (chip);
}

static void
test_refused (enum pto_backend backend)
{
  static const struct
  {
    SimOrchestration orchestrate;
    const char *says;
  } cases[] = { { orchestrate_get, "pto2_rt_get_element() is a part of the run" },
                { orchestrate_set, "pto2_rt_set_element() is a part of the run" },
                { orchestrate_foreign, "argument 1 lies in memory that is no argument" } };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct given *given = g_new (struct given, 1);
  struct pto_report report;

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      struct pto_plan *graph = pto_plan_new ();
      char *place;

      fill (given, 0);
      run (chip, given, graph, false, cases[i].orchestrate, NULL, NULL, &report);
      place = g_strdup_printf ("test-graph.c:%d", line);
      sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, cases[i].says, place, NULL);
      g_free (place);
      pto_plan_free (graph);
    }
  sim_assert_well (chip);
  g_free (given);
  pto_chip_free (chip);
}

/* --- updates --- */

#define UPDATES 60u

static void
update (PTO2Runtime *rt, uint32_t i, Tensor in, PTOParam how)
{
  PTOParam params[] = { make_input_param (in), how, make_scalar_param (i) };

  pto2_rt_submit_task_with_priority (rt, i % 3 == 0 ? GATHER_CUBE : GATHER, i % 3 == 0 ? AIC : AIV,
                                     params, 3, (int32_t) (i % 7 == 0));
}

/* [1] = 60 [0] + 1770; [2] = [1] + 1 + what 60 tasks reduce, half of it by a kernel of the program;
 * then [1] = [2] + 2; and memory of the runtime, updated by blocks that come one after the other.
 */
static int
orchestrate_updates (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[1] = { N };
  const float nothing = 0;
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor out = pto2_rt_arg_tensor (rt, 1);
  Tensor other = pto2_rt_arg_tensor (rt, 2);

  PTO2_SCOPE (rt)
  {
    Tensor made = pto2_rt_make_tensor (rt, shape, 1, PTO_DTYPE_FLOAT32);

    pto2_rt_fill (rt, &made, &nothing);
    for (uint32_t i = 0; i < UPDATES; i++)
      update (rt, i, in, make_commutative_param (made));
    submit (rt, 0, made, out, false, 0);
  }
  submit (rt, 0, out, other, false, 1);
  for (uint32_t i = 0; i < UPDATES / 2; i++)
    update (rt, i, in, make_reduction_param (other, PTO2_KERNEL_SUM, NULL));
  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < UPDATES / 2; i++)
      update (rt, i, in, make_reduction_param (other, TAKE_IN, &nothing));
  }
  submit (rt, 1, other, out, false, 2);
  for (uint32_t i = 0; i < UPDATES; i++)
    update (rt, i, in, make_commutative_param (out));
  return 0;
}

static void
expect_updates (const struct given *given)
{
  for (uint32_t i = 0; i < N; i++)
    {
      float x = given->memory[0][i];
      float other = UPDATES * x + 1770 + 1 + UPDATES * x + 2 * 435;

      g_assert_cmpfloat (given->memory[2][i], ==, other);
      g_assert_cmpfloat (given->memory[1][i], ==, other + 2 + UPDATES * x + 1770);
    }
}

/* One at a time in any order, and in copies, in a launch as in a run. */
static void
test_updates (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_chip *small = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;
  uint64_t edges;

  fill (given, 1);
  g_assert_cmpint (run (chip, given, NULL, false, orchestrate_updates, NULL, &stats, &report), ==,
                   PTO_OK);
  expect_updates (given);
  edges = stats.edges;
  fill (given, 2);
  g_assert_cmpint (run (chip, given, graph, false, orchestrate_updates, NULL, NULL, &report), ==,
                   PTO_OK);
  g_assert_cmpfloat (given->memory[1][0], ==, 0);
  g_assert_true (graph->complete);
  g_assert_cmpuint (graph->n_tasks, ==, stats.tasks);
  /* Of a run those are not counted whose producers have gone. */
  g_assert_cmpuint (graph->n_orders, >=, edges);
  for (uint32_t round = 0; round < 4; round++)
    {
      struct pto_chip *on = round < 3 ? chip : small;

      fill (given, (float) round);
      g_assert_cmpint (run (on, given, NULL, round % 2 == 1, launch, graph, &stats, &report), ==,
                       PTO_OK);
      expect_updates (given);
      g_assert_cmpuint (stats.tasks, ==, graph->n_tasks);
      if (round % 2 == 1)
        sim_assert_trace (on, &stats);
    }
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (small);
  pto_chip_free (chip);
}

/* --- clusters --- */

/* What a vector core is sent by the cube core of its cluster, which 20 others use, too. */
static int
orchestrate_clusters (PTO2Runtime *rt, void *data)
{
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor out = pto2_rt_arg_tensor (rt, 1);
  Tensor other = pto2_rt_arg_tensor (rt, 2);

  PTO2_SCOPE (rt)
  {
    int32_t kept = pto2_rt_allocate_cluster (rt);

    for (uint32_t i = 0; i < 20; i++)
      {
        PTOParam params[] = { make_input_param (in), make_commutative_param (i % 2 ? out : other),
                              make_scalar_param (i) };
        int32_t cluster = pto2_rt_allocate_cluster (rt);

        if (cluster < 0 || cluster == kept)
          return 1;
        pto2_rt_submit_task_clustered (rt, i % 3 == 0 ? GATHER_CUBE : GATHER,
                                       i % 3 == 0 ? AIC : AIV, params, 3,
                                       i % 5 == 4 ? kept : cluster);
        pto2_rt_free_cluster (rt, cluster);
      }
  }
  submit (rt, 0, other, out, false, 1);
  return 0;
}

static void
test_clusters (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_chip *two = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct pto_chip *one = sim_chip (backend, "clusters=1 aicpu-threads=2");
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;

  fill (given, 1);
  g_assert_cmpint (run (chip, given, graph, false, orchestrate_clusters, NULL, NULL, &report), ==,
                   PTO_OK);
  g_assert_cmpuint (graph->n_tasks, ==, 21);
  g_assert_cmpuint (graph->n_holds, ==, 42);
  for (uint32_t round = 0; round < 4; round++)
    {
      fill (given, (float) round);
      g_assert_cmpint (
          run (round < 2 ? chip : two, given, NULL, round % 2 == 1, launch, graph, &stats, &report),
          ==, PTO_OK);
      g_assert_cmpuint (stats.completed, ==, 21);
      if (round % 2 == 1)
        g_assert_cmpuint (sim_trace_count (pto_chip_trace (round < 2 ? chip : two), PTO_TRACE_RUN),
                          ==, 20 + 1);
      for (uint32_t i = 0; i < N; i++)
        {
          g_assert_cmpfloat (given->memory[2][i], ==, 10 * given->memory[0][i] + 90);
          g_assert_cmpfloat (given->memory[1][i], ==, 10 * given->memory[0][i] + 91);
        }
    }
  fill (given, 1);
  run (one, given, NULL, false, launch, graph, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_SCOPE_DEADLOCK, "no cluster is free, and none will be",
                   NULL);
  sim_assert_well (one);
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (one);
  pto_chip_free (two);
  pto_chip_free (chip);
}

/* Which outputs are renamed is known when they are submitted, so it is the chip that is refused. */
static void
test_renaming_refused (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "rename=1");
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_report report;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate, NULL, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "set rename to 0", NULL);
  sim_assert_well (chip);
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
}

/* Memory of a task is not there while it is captured: whoever writes there is told so. */
#ifndef SIM_SANITIZED
static NOT_SANITIZED void
write_there (int64_t *address)
{
  *(volatile float *) (uintptr_t) *address = 1;
}

static int
orchestrate_write (PTO2Runtime *rt, void *chip)
{
  Tensor in = pto2_rt_arg_tensor (rt, 0);
  Tensor made = pto2_rt_alloc (rt, in.shapes, 1, PTO_DTYPE_FLOAT32);
  int64_t address = (int64_t) made.buffer.addr;
  char why[512];

  g_assert_cmpint (address, !=, 0);
  g_assert_cmpint (pto_chip_call (chip, write_there, &address, why, sizeof why), !=, PTO_OK);
  g_assert_nonnull (strstr (why, "while it is captured there is none"));
  return 0;
}
#endif

static void
test_memory_is_not_there (enum pto_backend backend)
{
#ifdef SIM_SANITIZED
  g_test_skip ("a fault on purpose");
#else
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_report report;

  fill (given, 0);
  run (chip, given, graph, false, orchestrate_write, chip, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
#endif
}

/* More arguments than a kernel can have, in a graph that another process may have made. */
static void
test_launch_of_many_arguments (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t n = PTO_MAX_KERNEL_ARGS; n <= PTO_MAX_ARGS; n += PTO_MAX_ARGS - PTO_MAX_KERNEL_ARGS)
    {
      struct pto_plan *graph = pto_plan_new ();
      struct pto_plan *copy = pto_plan_new ();
      struct pto_report report = { 0 };
      g_autofree void *packed = NULL;
      uint64_t size;

      for (uint32_t i = 0; i < n; i++)
        {
          if (i == 0)
            pto_plan_add_task (
                graph,
                &(struct pto_submit){ .kernel = PTO_KERNEL_NONE, .queue = PTO_CORE_TYPE_AIV }, 0);
          pto_plan_add_number (graph, i);
        }
      g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_OK);
      size = pto_plan_packed_size (graph);
      packed = g_malloc0 (size);
      pto_plan_pack (graph, packed);
      g_assert_cmpint (pto_plan_unpack (copy, packed, size, &report), ==, PTO_OK);
      if (n == PTO_MAX_KERNEL_ARGS)
        sim_run (chip, &program, launch, copy, NULL);
      else
        sim_run_fails (chip, &program, launch, copy, PTO_STATUS_INVALID_ARGS,
                       "the graph has a task of 1024 arguments: a kernel can have 128 at most",
                       NULL);
      sim_assert_well (chip);
      pto_plan_free (graph);
      pto_plan_free (copy);
    }
  pto_chip_free (chip);
}

static void
test_launch_refused (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_plan *graph = pto_plan_new ();
  struct given *given = g_new (struct given, 1);
  struct pto_run_stats stats;
  struct pto_report report;

  fill (given, 0);
  g_assert_cmpint (run (chip, given, graph, false, orchestrate, NULL, NULL, &report), ==, PTO_OK);
  given->args[1].tensor.shapes[0] = N / 2;
  run (chip, given, NULL, false, launch, graph, &stats, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS,
                   "argument 1 of the graph is 64 float32, but 32 float32 is given", NULL);
  g_assert_cmpuint (stats.tasks, ==, 0);
  /* As many elements, in one dimension more. */
  fill (given, 0);
  given->args[1].tensor.ndims = 2;
  given->args[1].tensor.shapes[1] = given->args[1].tensor.strides[1] = 1;
  run (chip, given, NULL, false, launch, graph, &stats, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS,
                   "argument 1 of the graph is 64 float32, but 64x1 float32 is given", NULL);
  fill (given, 0);
  given->args[1].read_only = 4 * N;
  run (chip, given, NULL, false, launch, graph, &stats, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "argument 1 of the graph is written", NULL);
  fill (given, 0);
  given->args[3].word = 4;
  run (chip, given, NULL, false, launch, graph, &stats, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "argument 3 of the graph is the number 3",
                   NULL);
  /* As a graph of another process may say: of kernels, of none, and of what fills. */
  fill (given, 0);
  for (uint32_t k = 0; k < graph->n_kernels; k++)
    {
      uint32_t queue = graph->kernels[k].queue;

      graph->kernels[k].queue = 9;
      run (chip, given, NULL, false, launch, graph, &stats, &report);
      sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "does not have", NULL);
      graph->kernels[k].queue = queue;
    }
  sim_assert_well (chip);
  pto_plan_free (graph);
  g_free (given);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("graph/same-numbers", test_same_numbers);
  sim_add ("graph/priorities", test_priorities);
  sim_add ("graph/parts", test_parts);
  sim_add ("graph/places", test_places);
  sim_add ("graph/late-maker", test_late_maker);
  sim_add ("graph/same-tensors", test_same_tensors);
  sim_add ("graph/output-twice", test_output_twice);
  sim_add ("graph/deadlock-behind-deep-scopes", test_deadlock_behind_deep_scopes);
  sim_add ("graph/refused", test_refused);
  sim_add ("graph/updates", test_updates);
  sim_add ("graph/clusters", test_clusters);
  sim_add ("graph/renaming-refused", test_renaming_refused);
  sim_add ("graph/memory-is-not-there", test_memory_is_not_there);
  sim_add ("graph/launch-refused", test_launch_refused);
  sim_add ("graph/launch-of-many-arguments", test_launch_of_many_arguments);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
