/* bench-pto-parts.c: what do tasks of several blocks, clusters and pipes cost?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench-pto.h"

#include <stdlib.h>

#define N_CLUSTERED 10000u
#define N_ENTRIES 100000u

struct job
{
  uint32_t n;
  bool expanded;
};

/* One kernel that runs n times, with an input and an output that all share: as one task, or as
 * seed 000 section 17.2 expands it. */
static int
orchestrate_blocks (PTO2Runtime *rt, void *data)
{
  const struct job *job = data;
  uint64_t n = job->n;

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    Tensor in = pto2_rt_alloc (rt, &n, 1, PTO_DTYPE_FLOAT32);
    Tensor out = pto2_rt_alloc (rt, &n, 1, PTO_DTYPE_FLOAT32);
    PTOParam params[] = { make_input_param (in), make_output_param (out), make_scalar_param (n),
                          make_scalar_param (0) };

    if (!job->expanded)
      pto2_rt_submit_block_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, params, 2, (int32_t) n);
    else
      for (uint64_t b = 0; b < n; b++)
        {
          const uint64_t one = 1;

          params[1] = make_output_param (pto2_tensor_view (&out, &one, &b));
          params[3] = make_scalar_param (b);
          pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, params, 4);
        }
  }
  return 0;
}

static int
orchestrate_mixed (PTO2Runtime *rt, void *data)
{
  const struct job *job = data;

  pto2_rt_submit_mixed_task (rt, BENCH_CUBE, BENCH_VECTOR, BENCH_VECTOR, NULL, 0, (int32_t) job->n);
  return 0;
}

static int
orchestrate_clusters (PTO2Runtime *rt, void *data)
{
  const struct job *job = data;

  for (uint32_t i = 0; i < job->n; i++)
    PTO2_SCOPE (rt)
    {
      int32_t cluster = pto2_rt_allocate_cluster (rt);

      pto2_rt_submit_task_clustered (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, NULL, 0, cluster);
      pto2_rt_free_cluster (rt, cluster);
    }
  return 0;
}

static int
orchestrate_pipe (PTO2Runtime *rt, void *data)
{
  const struct job *job = data;
  PTOParam param = make_scalar_param (job->n);

  pto2_rt_submit_mixed_task (rt, BENCH_PUSH, BENCH_POP, PTO2_KERNEL_NONE, &param, 1, 1);
  return 0;
}

/* of: what the time is divided by. */
static bool
measure (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
         int (*orchestrate) (PTO2Runtime *rt, void *data), struct job *job, uint32_t of)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  bool ok = chip != NULL;

  for (uint32_t i = 0; ok && i < reps + 3; i++)
    {
      uint64_t ns = bench_chip_run (chip, false, orchestrate, job);

      ok = ns > 0;
      if (ok && i >= 3)
        bench_print (figure->name, figure->metric,
                     figure->unit[0] == 'u' ? (double) ns / 1e3 : (double) ns / of, figure->unit);
    }
  pto_chip_free (chip);
  return ok;
}

bool
bench_measure_blocks (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                      bool brief)
{
  struct job job = { .n = brief ? 50 : figure->number };

  return measure (figure, workers, reps, orchestrate_blocks, &job, job.n);
}

bool
bench_measure_expansion (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief)
{
  struct job job = { .n = brief ? 50 : figure->number, .expanded = true };

  return measure (figure, workers, reps, orchestrate_blocks, &job, job.n);
}

bool
bench_measure_mixed (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct job job = { .n = brief ? 50 : figure->number };

  return measure (figure, workers, reps, orchestrate_mixed, &job, job.n);
}

bool
bench_measure_clusters (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                        bool brief)
{
  struct job job = { .n = brief ? 50 : N_CLUSTERED };

  return measure (figure, workers, reps, orchestrate_clusters, &job, job.n);
}

bool
bench_measure_pipe (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct job job = { .n = brief ? 50 : N_ENTRIES };

  return measure (figure, workers, reps, orchestrate_pipe, &job, job.n);
}
