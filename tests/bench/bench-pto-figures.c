/* bench-pto-figures.c: what do a run, a submit, a dependency, a core, a trace and idleness cost,
 * each on its own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench-cpu.h"
#include "bench-pto.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N_TASKS 10000u      /* of the figures that have one number of tasks */
#define N_SUBMITS 20000u    /* fewer than the window has slots, */
#define N_ARGUMENTS 48000u  /* and fewer than the TensorMap has nodes: the submitter never waits */
#define CHUNK 500u          /* submits timed together: their median forgets interruptions */
#define N_FAMILIAR 64u      /* buffers that tasks take turns on */
#define HOLD_NS 2000000000u /* a held carrier must hold by then */
#define CORES_PER_CLUSTER 3u

static void *
buffers_new (uint32_t n)
{
  void *buffers = aligned_alloc (BENCH_BUFFER, (size_t) n * BENCH_BUFFER);

  if (buffers == NULL)
    abort ();
  return buffers;
}

/* What an orchestration here is told, and what it tells. */
struct job
{
  uint32_t n_tasks;
  uint32_t number;
  char *buffers;
  struct bench_hold hold;
  double chunk_ns[N_SUBMITS / CHUNK];
  uint64_t chunk_begin;
  uint64_t start_bytes; /* resident */
  uint64_t early_bytes; /* after a tenth */
  uint64_t late_bytes;
};

static int
orchestrate_nothing (PTO2Runtime *rt, void *data)
{
  (void) rt;
  (void) data;
  return 0;
}

/* One output each, nothing in common. */
static int
orchestrate_independent (PTO2Runtime *rt, void *data)
{
  struct job *job = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < job->n_tasks;)
    PTO2_SCOPE (rt)
    {
      for (uint32_t piece = 0; piece < BENCH_PIECE && i < job->n_tasks; piece++, i++)
        {
          PTOParam param = make_output_param (bench_tensor_made ());

          pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, &param, 1);
        }
    }
  return 0;
}

/* Each updates what the one before it has updated. */
static int
orchestrate_chain (PTO2Runtime *rt, void *data)
{
  struct job *job = data;

  for (uint32_t i = 0; i < job->n_tasks;)
    PTO2_SCOPE (rt)
    {
      for (uint32_t piece = 0; piece < BENCH_PIECE && i < job->n_tasks; piece++, i++)
        {
          PTOParam param = make_inout_param (bench_tensor (job->buffers));

          pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, &param, 1);
        }
    }
  return 0;
}

/* What a measured run gives, in the figure's unit. */
static double
in_unit (const struct bench_figure *figure, uint64_t ns, uint32_t n_tasks)
{
  switch (figure->unit[0])
    {
    case 'u':
      return (double) ns / 1e3;
    case 'm':
      return (double) ns / 1e6;
    default:
      return (double) ns / n_tasks;
    }
}

static bool
measure_runs (const struct bench_figure *figure, struct pto_chip *chip, uint32_t reps,
              int (*orchestrate) (PTO2Runtime *rt, void *data), struct job *job)
{
  bool ok = chip != NULL && bench_chip_run (chip, false, orchestrate, job) > 0;

  for (uint32_t i = 0; ok && i < reps; i++)
    {
      uint64_t ns = bench_chip_run (chip, false, orchestrate, job);

      ok = ns > 0;
      if (ok)
        bench_print (figure->name, figure->metric, in_unit (figure, ns, job->n_tasks),
                     figure->unit);
    }
  return ok;
}

/* A warm run of an empty orchestration: the carriers are awake from the run before. */
static bool
measure_floor (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = 1 };
  bool ok = chip != NULL;

  for (uint32_t i = 0; ok && i < (brief ? 1u : 20u); i++)
    ok = bench_chip_run (chip, false, orchestrate_nothing, &job) > 0;
  ok = ok && measure_runs (figure, chip, reps, orchestrate_nothing, &job);
  pto_chip_free (chip);
  return ok;
}

/* number: cores. */
static bool
measure_independent (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip
      = bench_chip_new (workers, figure->number / CORES_PER_CLUSTER, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = brief ? 500 : N_TASKS, .buffers = buffers_new (N_TASKS) };
  bool ok = measure_runs (figure, chip, reps, orchestrate_independent, &job);

  pto_chip_free (chip);
  free (job.buffers);
  return ok;
}

static bool
measure_chain (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip
      = bench_chip_new (workers, figure->number / CORES_PER_CLUSTER, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = brief ? 500 : N_TASKS, .buffers = buffers_new (1) };
  bool ok = measure_runs (figure, chip, reps, orchestrate_chain, &job);

  pto_chip_free (chip);
  free (job.buffers);
  return ok;
}

void
bench_hold (PTO2Runtime *rt, struct bench_hold *hold)
{
  PTOParam param = make_scalar_param ((uint64_t) (uintptr_t) hold);
  uint64_t deadline = bench_now () + HOLD_NS;

  atomic_store (&hold->holds, false);
  atomic_store (&hold->go, false);
  pto2_rt_submit_task (rt, BENCH_HOLD, PTO2_WORKER_VECTOR, &param, 1);
  while (!atomic_load_explicit (&hold->holds, memory_order_acquire) && bench_now () < deadline)
    bench_spin (100);
}

void
bench_let_go (struct bench_hold *hold)
{
  atomic_store_explicit (&hold->go, true, memory_order_release);
}

/* After each submit, i of them before it; the first begins the clock. */
static inline void
count_submit (struct job *job, uint32_t i)
{
  uint64_t now;

  if ((i + 1) % CHUNK != 0)
    return;
  now = bench_now ();
  job->chunk_ns[i / CHUNK] = (double) (now - job->chunk_begin);
  job->chunk_begin = now;
}

/* number tensor arguments: one output, which no other task has, and inputs that nobody writes. */
static int
orchestrate_submits (PTO2Runtime *rt, void *data)
{
  struct job *job = data;
  PTOParam params[16];
  char *outputs = job->buffers + N_FAMILIAR * BENCH_BUFFER;
  uint32_t n = job->number;

  for (uint32_t i = 0; i + 1 < n; i++)
    params[i] = make_input_param (bench_tensor (job->buffers + i * BENCH_BUFFER));
  params[n - 1] = make_output_param (bench_tensor (outputs));
  bench_hold (rt, &job->hold);
  job->chunk_begin = bench_now ();
  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < job->n_tasks; i++)
      {
        params[n - 1].tensor.buffer.addr
            = (uint64_t) (uintptr_t) (outputs + (size_t) i * BENCH_BUFFER);
        pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, params, (int32_t) n);
        count_submit (job, i);
      }
  }
  bench_let_go (&job->hold);
  return 0;
}

/* One argument, a view of a buffer that has number disjoint views, each with a task that updates it
 * and is not done. */
static int
orchestrate_views (PTO2Runtime *rt, void *data)
{
  struct job *job = data;
  uint64_t n = job->number;
  uint64_t shape[1] = { n * (BENCH_BUFFER / 4) };
  Tensor whole = make_tensor_external (job->buffers, shape, 1, PTO_DTYPE_FLOAT32);
  PTOParam param;

  bench_hold (rt, &job->hold);
  PTO2_SCOPE (rt)
  {
    uint64_t extent[1] = { BENCH_BUFFER / 4 };
    uint64_t offset[1] = { 0 };

    param = make_inout_param (pto2_tensor_view (&whole, extent, offset));
    for (uint64_t i = 0; i < n + job->n_tasks; i++)
      {
        if (i == n)
          job->chunk_begin = bench_now ();
        param.tensor.start_offset = i % n * (BENCH_BUFFER / 4);
        pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, &param, 1);
        if (i >= n)
          count_submit (job, (uint32_t) (i - n));
      }
  }
  bench_let_go (&job->hold);
  return 0;
}

static uint32_t
minimum (uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static bool
measure_submit (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief,
                int (*orchestrate) (PTO2Runtime *rt, void *data), uint32_t n_arguments,
                uint32_t n_buffers)
{
  /* One carrier and one scheduler, for one can be held: the submitter can not run tasks, either. */
  struct pto_chip *chip = bench_chip_new (2, 1, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = brief ? CHUNK : minimum (N_SUBMITS, N_ARGUMENTS / n_arguments),
                     .number = figure->number,
                     .buffers = buffers_new (n_buffers) };
  bool ok = chip != NULL;

  (void) workers;
  for (uint32_t i = 0; ok && i < reps + 1; i++)
    {
      ok = bench_chip_run (chip, false, orchestrate, &job) > 0;
      if (ok && i > 0)
        bench_print (figure->name, figure->metric,
                     bench_median (job.chunk_ns, job.n_tasks / CHUNK) / CHUNK, figure->unit);
    }
  pto_chip_free (chip);
  free (job.buffers);
  return ok;
}

static bool
measure_submit_arguments (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                          bool brief)
{
  return measure_submit (figure, workers, reps, brief, orchestrate_submits, figure->number,
                         N_FAMILIAR + N_SUBMITS);
}

static bool
measure_submit_views (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                      bool brief)
{
  return measure_submit (figure, workers, reps, brief, orchestrate_views, 1, figure->number);
}

static uint64_t
resident_bytes (void)
{
  unsigned long long size, resident;
  FILE *file = fopen ("/proc/self/statm", "re");
  int n = 0;

  if (file != NULL)
    {
      n = fscanf (file, "%llu %llu", &size, &resident);
      fclose (file);
    }
  return n == 2 ? resident * (uint64_t) sysconf (_SC_PAGESIZE) : 0;
}

/* Each task outputs a tensor that the runtime allocates and updates one of the caller's, as kernels
 * in a loop do. */
static int
orchestrate_many (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[1] = { BENCH_BUFFER / 4 };
  struct job *job = data;
  uint32_t i = 0;

  pto2_rt_init_tensor_pool (rt);
  while (i < job->n_tasks)
    {
      PTO2_SCOPE (rt)
      {
        for (uint32_t piece = 0; piece < BENCH_PIECE && i < job->n_tasks; piece++, i++)
          {
            PTOParam params[2] = {
              make_output_param (make_tensor (shape, 1, PTO_DTYPE_FLOAT32)),
              make_inout_param (bench_tensor (job->buffers + i % N_FAMILIAR * BENCH_BUFFER)),
            };

            pto2_rt_submit_task (rt, BENCH_VECTOR, PTO2_WORKER_VECTOR, params, 2);
            if (i == job->n_tasks / 10)
              job->early_bytes = resident_bytes ();
          }
      }
    }
  job->late_bytes = resident_bytes ();
  return 0;
}

/* Resident bytes after so many tasks, above those before the chip was made and (growth) above those
 * after a tenth. */
static bool
measure_memory (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct job job = { .n_tasks = brief ? 100000 : 10000000, .buffers = buffers_new (N_FAMILIAR) };
  bool ok = true;

  job.start_bytes = resident_bytes ();
  for (uint32_t i = 0; ok && i < reps; i++)
    {
      struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);

      ok = chip != NULL && bench_chip_run (chip, false, orchestrate_many, &job) > 0;
      if (ok)
        {
          bench_print (figure->name, figure->metric,
                       (double) job.late_bytes - (double) job.start_bytes, figure->unit);
          bench_print (figure->name, "growth", (double) job.late_bytes - (double) job.early_bytes,
                       figure->unit);
        }
      pto_chip_free (chip);
    }
  free (job.buffers);
  return ok;
}

/* CPU time of the workers of a chip that has worked, once they have gone to sleep. */
static bool
measure_idle (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = 1000, .buffers = buffers_new (N_TASKS) };
  bool ok = chip != NULL && bench_chip_run (chip, false, orchestrate_independent, &job) > 0;

  usleep (BENCH_SETTLE_US);
  for (uint32_t i = 0; ok && i < reps; i++)
    {
      uint64_t before = 0, after = 0;

      ok = bench_add_cpu_ns (getpid (), &before);
      usleep (brief ? BENCH_IDLE_US / 50 : BENCH_IDLE_US);
      ok = ok && bench_add_cpu_ns (getpid (), &after);
      if (ok)
        bench_print (figure->name, figure->metric, (double) (after - before) / 1e6, figure->unit);
    }
  pto_chip_free (chip);
  free (job.buffers);
  return ok;
}

/* Tasks a second of W6 on the virtual clock: one thread does everything, every step of the chip has
 * its price. */
static bool
measure_det (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_DET);
  struct bench_workload workload;
  bool ok = chip != NULL;

  bench_workload_init (&workload, "W6", brief);
  bench_pto_prepare (&workload);
  for (uint32_t i = 0; ok && i < reps + 1; i++)
    {
      uint64_t ns = bench_chip_run (chip, false, bench_pto_orchestrate, &workload);

      ok = ns > 0;
      if (ok && i > 0)
        bench_print (figure->name, figure->metric, workload.n_tasks * 1e9 / (double) ns,
                     figure->unit);
    }
  bench_pto_release (&workload);
  pto_chip_free (chip);
  return ok;
}

/* How much longer 1 us tasks take in all when they are recorded, in percent. Runs with and without
 * take turns. */
static bool
measure_trace (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  struct pto_chip *chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  struct job job = { .n_tasks = brief ? 500 : 2 * N_TASKS, .buffers = buffers_new (2 * N_TASKS) };
  bool ok = chip != NULL;

  bench_body.loops = bench_loops (1000);
  for (uint32_t i = 0; ok && i < reps + 1; i++)
    {
      uint64_t without = bench_chip_run (chip, false, orchestrate_independent, &job);
      uint64_t with = bench_chip_run (chip, true, orchestrate_independent, &job);

      ok = without > 0 && with > 0;
      if (ok && i > 0)
        bench_print (figure->name, figure->metric, ((double) with / (double) without - 1) * 100,
                     figure->unit);
    }
  bench_body.loops = 0;
  pto_chip_free (chip);
  free (job.buffers);
  return ok;
}

const struct bench_figure bench_pto_figures[] = {
  { "floor_72", "time", "us", 72, measure_floor },
  { "independent_72", "time", "ms", 72, measure_independent },
  { "chain_72", "time", "ms", 72, measure_chain },
  { "chain_1152", "time", "ms", 1152, measure_chain },
  { "cores_3", "ns_per_task", "ns", 3, measure_independent },
  { "cores_24", "ns_per_task", "ns", 24, measure_independent },
  { "cores_72", "ns_per_task", "ns", 72, measure_independent },
  { "cores_288", "ns_per_task", "ns", 288, measure_independent },
  { "cores_1152", "ns_per_task", "ns", 1152, measure_independent },
  { "submit_arg1", "time", "ns", 1, measure_submit_arguments },
  { "submit_arg2", "time", "ns", 2, measure_submit_arguments },
  { "submit_arg4", "time", "ns", 4, measure_submit_arguments },
  { "submit_arg8", "time", "ns", 8, measure_submit_arguments },
  { "submit_views1", "time", "ns", 1, measure_submit_views },
  { "submit_views16", "time", "ns", 16, measure_submit_views },
  { "submit_views1024", "time", "ns", 1024, measure_submit_views },
  { "blocks_1", "time", "us", 1, bench_measure_blocks },
  { "blocks_100", "time", "us", 100, bench_measure_blocks },
  { "blocks_1000", "time", "us", 1000, bench_measure_blocks },
  { "expansion_1", "time", "us", 1, bench_measure_expansion },
  { "expansion_100", "time", "us", 100, bench_measure_expansion },
  { "expansion_1000", "time", "us", 1000, bench_measure_expansion },
  { "mixed_1000", "time", "us", 1000, bench_measure_mixed },
  { "cluster", "time", "ns", 0, bench_measure_clusters },
  { "pipe_entry", "time", "ns", 0, bench_measure_pipe },
  { "updates_chain", "time", "ms", BENCH_CHAIN, bench_measure_updates },
  { "updates_commutative", "time", "ms", BENCH_COMMUTE, bench_measure_updates },
  { "updates_reduction", "time", "ms", BENCH_REDUCE, bench_measure_updates },
  { "virtual_chain", "time", "ms", BENCH_CHAIN, bench_measure_virtual_updates },
  { "virtual_commutative", "time", "ms", BENCH_COMMUTE, bench_measure_virtual_updates },
  { "virtual_reduction", "time", "ms", BENCH_REDUCE, bench_measure_virtual_updates },
  { "capture_W6", "ns_per_task", "ns", 6, bench_measure_capture },
  { "launch_W3", "ns_per_task", "ns", 3, bench_measure_launch },
  { "launch_W4", "ns_per_task", "ns", 4, bench_measure_launch },
  { "launch_W5", "ns_per_task", "ns", 5, bench_measure_launch },
  { "launch_W6", "ns_per_task", "ns", 6, bench_measure_launch },
  { "decode_step", "time", "ms", 1, bench_measure_decode_step },
  { "decode_step_plain", "time", "ms", 0, bench_measure_decode_step },
  { "memory_10m", "resident", "bytes", 0, measure_memory },
  { "idle", "cpu_time", "ms", 0, measure_idle },
  { "det", "tasks_per_second", "", 0, measure_det },
  { "trace_overhead", "percent", "", 0, measure_trace },
  { 0 },
};
