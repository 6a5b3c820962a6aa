/* bench-pto-updates.c: what do tasks take that add to one tensor: in a chain, in any order, and
 * each in a copy?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench-pto.h"

#define N_TASKS 1000u
#define BODY_NS 10000u

struct job
{
  uint32_t how;
  uint32_t n;
  char *total;
};

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  const struct job *job = data;
  Tensor total = bench_tensor (job->total);
  const float nothing = 0;
  PTOParam param = job->how == BENCH_CHAIN ? make_inout_param (total)
                   : job->how == BENCH_COMMUTE
                       ? make_commutative_param (total)
                       : make_reduction_param (total, BENCH_TAKE_IN, &nothing);

  for (uint32_t i = 0; i < job->n; i++)
    pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, &param, 1);
  return 0;
}

/* On the wall, with bodies of 10 us. */
bool
bench_measure_updates (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                       bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  char total[BENCH_BUFFER] = "";
  struct job job = { .how = figure->number, .n = brief ? 50 : N_TASKS, .total = total };
  bool ok = chip != NULL;

  bench_body.loops = bench_loops (BODY_NS);
  for (uint32_t i = 0; ok && i < reps + 1; i++)
    {
      uint64_t ns = bench_chip_run (chip, false, orchestrate, &job);

      ok = ns > 0;
      if (ok && i > 0)
        bench_print (figure->name, figure->metric, (double) ns / 1e6, figure->unit);
    }
  bench_body.loops = 0;
  pto_chip_free (chip);
  return ok;
}

/* On the virtual clock, with kernels of 1 us on 48 cores. */
bool
bench_measure_virtual_updates (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                               bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_DET);
  char total[BENCH_BUFFER] = "";
  struct job job = { .how = figure->number, .n = brief ? 50 : N_TASKS, .total = total };
  struct pto_run_config config = { .record = 0 };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  bool ok = chip != NULL;

  /* The same each time. */
  (void) reps;
  if (ok
      && pto_chip_run (chip, &bench_program, &config, orchestrate, &job, &stats, &report) != PTO_OK)
    {
      fprintf (stderr, "bench: %s\n", report.message);
      ok = false;
    }
  if (ok)
    bench_print (figure->name, figure->metric, (double) stats.virtual_ns / 1e6, figure->unit);
  pto_chip_free (chip);
  return ok;
}
