/* bench-pto-graph.c: what does it cost to write a graph down, and to launch it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench-pto.h"

#include "../../pto/core/graph-plan.h"

#include <stdio.h>
#include <stdlib.h>

/* Some thousand tasks: fewer than the window has slots, and with fewer edges than the pool has, so
 * that the submitter never waits. */
static const uint32_t sizes[] = { [3] = 150, [4] = 500, [5] = 24, [6] = 256 };

struct job
{
  struct bench_workload workload;
  struct pto_plan *graph;
  struct bench_hold hold;
  uint64_t ns;
};

static bool
run (struct pto_chip *chip, struct job *job, struct pto_plan *capture,
     int (*orchestrate) (PTO2Runtime *rt, void *data), void *data)
{
  Tensor memory = bench_pto_memory (&job->workload);
  struct pto_chip_arg arg = { .word = memory.buffer.addr, .tensor = memory };
  struct pto_run_config config = { .args = &arg, .n_args = 1, .capture = capture };
  struct pto_report report = { 0 };

  if (pto_chip_run (chip, &bench_program, &config, orchestrate, data, NULL, &report) == PTO_OK)
    return true;
  fprintf (stderr, "bench: %s\n", report.message);
  return false;
}

static int
orchestrate_launch (PTO2Runtime *rt, void *data)
{
  struct job *job = data;
  uint64_t begin;

  bench_hold (rt, &job->hold);
  begin = bench_now ();
  pto_chip_launch (rt, job->graph, NULL);
  job->ns = bench_now () - begin;
  bench_let_go (&job->hold);
  return 0;
}

/* figure->number: of the workload. */
static bool
measure (const struct bench_figure *figure, uint32_t reps, bool brief, bool is_capture)
{
  struct pto_chip *chip = bench_chip_new (2, 1, PTO_BACKEND_PAR);
  struct job job = { .graph = NULL };
  char name[3] = { 'W', (char) ('0' + figure->number), '\0' };
  bool ok = chip != NULL;

  bench_workload_init (&job.workload, name, brief);
  if (!brief)
    bench_workload_resize (&job.workload, sizes[figure->number]);
  bench_pto_prepare (&job.workload);
  /* The first one is warm-up. */
  for (uint32_t i = 0; ok && i < reps + 1; i++)
    {
      if (is_capture || i == 0)
        {
          uint64_t begin = bench_now ();

          pto_plan_free (job.graph);
          job.graph = pto_plan_new ();
          ok = job.graph != NULL
               && run (chip, &job, job.graph, bench_pto_orchestrate, &job.workload);
          job.ns = bench_now () - begin;
        }
      if (ok && !is_capture)
        ok = run (chip, &job, NULL, orchestrate_launch, &job);
      if (ok && i > 0)
        bench_print (figure->name, figure->metric, (double) job.ns / job.workload.n_tasks,
                     figure->unit);
    }
  pto_plan_free (job.graph);
  bench_pto_release (&job.workload);
  pto_chip_free (chip);
  return ok;
}

/* --- a decode step --- */

/* The orchestration of examples/decode-step, which is linked in. */
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count);

#define HIDDEN 4096u
#define LAYERS 40u

static void
do_nothing (int64_t *args)
{
  (void) args;
}

static const struct pto_kernel step_kernels[]
    = { { "matmul", do_nothing, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
        { "vector", do_nothing, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } } };
static const struct pto_program step_program = { step_kernels, 2 };

static int
orchestrate_step (PTO2Runtime *rt, void *data)
{
  (void) data;
  pto2_rt_init_tensor_pool (rt);
  return aicpu_orchestration_entry (rt, NULL, 0);
}

static int
launch_step (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

static bool
run_step (struct pto_chip *chip, float *memory, struct pto_plan *capture,
          int (*orchestrate) (PTO2Runtime *rt, void *data), void *data)
{
  static const uint64_t shapes[3][3] = { { HIDDEN }, { LAYERS }, { LAYERS, HIDDEN / 128, 128 } };
  struct pto_chip_arg args[3];
  struct pto_run_config config = { .args = args, .n_args = 3, .capture = capture };
  struct pto_report report = { 0 };

  for (uint32_t i = 0; i < 3; i++)
    {
      args[i] = (struct pto_chip_arg){ .tensor = make_tensor_external (
                                           memory, shapes[i], i < 2 ? 1 : 3, PTO_DTYPE_FLOAT32) };
      args[i].word = args[i].tensor.buffer.addr;
      memory += args[i].tensor.buffer.size / sizeof *memory;
    }
  if (pto_chip_run (chip, &step_program, &config, orchestrate, data, NULL, &report) == PTO_OK)
    return true;
  fprintf (stderr, "bench: %s\n", report.message);
  return false;
}

/* number 1: as a graph that is launched; 0: as an orchestration. */
bool
bench_measure_decode_step (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                           bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  struct pto_plan *graph = pto_plan_new ();
  float *memory = calloc (HIDDEN + LAYERS + LAYERS * HIDDEN, sizeof *memory);
  bool ok = chip != NULL && graph != NULL && memory != NULL
            && run_step (chip, memory, graph, orchestrate_step, NULL);

  for (uint32_t i = 0; ok && i < (brief ? 1 : reps + 1); i++)
    {
      uint64_t begin = bench_now ();

      ok = run_step (chip, memory, NULL, figure->number == 1 ? launch_step : orchestrate_step,
                     graph);
      if (ok && (i > 0 || brief))
        bench_print (figure->name, figure->metric, (double) (bench_now () - begin) / 1e6,
                     figure->unit);
    }
  pto_chip_free (chip);
  pto_plan_free (graph);
  free (memory);
  return ok;
}

bool
bench_measure_capture (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                       bool brief)
{
  (void) workers;
  return measure (figure, reps, brief, true);
}

bool
bench_measure_launch (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                      bool brief)
{
  (void) workers;
  return measure (figure, reps, brief, false);
}
