/* bench-pto.c: how fast is this library's runtime, as users get it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The simulated chip a2a3sim with its defaults: 72 cores, 3 schedulers, the orchestration on the
 * calling thread, back end par, all hazards. The workload is an orchestration like any other:
 * PTO2_SCOPE around pieces of it; what only its own tasks see (the outputs of W1, everything
 * between the tasks of a group of W6) is made by the runtime, the rest is memory that the caller
 * owns. Two workers are the caller and one carrier.
 */
#include "bench-pto.h"

#include <stdio.h>
#include <stdlib.h>

static struct pto_chip *chip;
static char (*buffers)[BENCH_BUFFER];
/* What tasks output, where the runtime makes it: kept as a program would keep it, for the group
 * that is being submitted. */
static struct made
{
  uint32_t buffer;
  Tensor tensor;
} * made;                   /* NULL: all memory is the caller's */
static uint32_t n_made;     /* buffers of a group */
static uint32_t first_made; /* buffer of the group that is being submitted */
static uint32_t piece;      /* tasks of one scope; whole groups */

static void
do_work (int64_t *args)
{
  (void) args;
  if (bench_body.loops > 0)
    bench_spin (bench_body.loops);
}

static void
do_check (int64_t *args)
{
  bench_check_execute (bench_body.check, (uint32_t) args[0]);
}

static void
do_hold (int64_t *args)
{
  struct bench_hold *hold = (struct bench_hold *) (uintptr_t) args[0];

  atomic_store_explicit (&hold->holds, true, memory_order_release);
  while (!atomic_load_explicit (&hold->go, memory_order_acquire))
    bench_spin (100);
}

static void
do_push (int64_t *args)
{
  char entry[BENCH_BUFFER] = "";

  for (int64_t i = 0; i < args[0]; i++)
    TPUSH (args, 0, entry, sizeof entry);
}

static void
do_pop (int64_t *args)
{
  char entry[BENCH_BUFFER];

  for (int64_t i = 0; i < args[0]; i++)
    TPOP (args, 0, entry, sizeof entry);
}

/* The cost is that of a small kernel: it matters on the virtual clock only. */
static const struct pto_kernel kernels[BENCH_N_KERNELS] = {
  [BENCH_VECTOR] = { "vector", do_work, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [BENCH_CUBE] = { "cube", do_work, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [BENCH_CHECK_VECTOR] = { "check_vector", do_check, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [BENCH_CHECK_CUBE] = { "check_cube", do_check, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [BENCH_PUSH] = { "push", do_push, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [BENCH_POP] = { "pop", do_pop, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [BENCH_HOLD] = { "hold", do_hold, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [BENCH_TAKE_IN] = { "take_in", do_work, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
const struct pto_program bench_program = { kernels, BENCH_N_KERNELS };

struct pto_chip *
bench_chip_new (uint32_t workers, uint32_t clusters, enum pto_backend backend)
{
  struct pto_report report = { 0 };
  struct pto_params params;
  struct pto_chip *on;

  if (workers < 2)
    {
      fprintf (stderr, "bench: pto has the caller and at least one carrier: 2 workers or more\n");
      return NULL;
    }
  pto_params_init (&params, 2);
  params.values[PTO_PARAMETER_BACKEND] = backend;
  params.values[PTO_PARAMETER_CARRIERS] = workers - 1;
  params.values[PTO_PARAMETER_CLUSTERS] = clusters;
  /* A scheduler needs a cluster. */
  if (clusters > 0 && clusters < pto_platform_find ("a2a3sim")->aicpu_threads - 1)
    params.values[PTO_PARAMETER_AICPU_THREADS] = clusters + 1;
  on = pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report);
  if (on == NULL)
    fprintf (stderr, "bench: %s\n", report.message);
  return on;
}

uint64_t
bench_chip_run (struct pto_chip *on, bool trace, int (*orchestrate) (PTO2Runtime *rt, void *data),
                void *data)
{
  struct pto_run_config config = { .record = trace ? PTO_TRACE_LEVEL_GRAPH : 0 };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  uint64_t begin = bench_now ();
  uint64_t ns;

  if (pto_chip_run (on, &bench_program, &config, orchestrate, data, &stats, &report) != PTO_OK)
    {
      fprintf (stderr, "bench: %s\n", report.message);
      return 0;
    }
  ns = bench_now () - begin;
  return ns > 0 ? ns : 1;
}

static bool
start (uint32_t workers)
{
  chip = bench_chip_new (workers, 0, PTO_BACKEND_PAR);
  return chip != NULL;
}

void
bench_pto_prepare (const struct bench_workload *workload)
{
  bool makes = workload->id == 1 || workload->id == 6;
  uint32_t group = makes ? workload->n_tasks / workload->size : 1;

  buffers = aligned_alloc (BENCH_BUFFER, (size_t) workload->n_buffers * sizeof *buffers);
  n_made = workload->n_buffers / workload->size;
  made = makes ? calloc (n_made, sizeof *made) : NULL;
  piece = BENCH_PIECE / group * group;
  if (buffers == NULL || (makes && made == NULL))
    abort ();
}

void
bench_pto_release (const struct bench_workload *workload)
{
  (void) workload;
  free (buffers);
  free (made);
  buffers = NULL;
  made = NULL;
}

Tensor
bench_pto_memory (const struct bench_workload *workload)
{
  uint64_t shape[1] = { (uint64_t) workload->n_buffers * (BENCH_BUFFER / 4) };

  return make_tensor_external (buffers, shape, 1, PTO_DTYPE_FLOAT32);
}

static void
stop (void)
{
  pto_chip_free (chip);
  chip = NULL;
}

/* The buffer's tensor as a program would have it at hand. */
static inline Tensor
find_tensor (const struct bench_access *access)
{
  struct made *kept;
  Tensor tensor;

  if (made == NULL)
    return bench_tensor (buffers[access->buffer]);
  if (access->buffer >= first_made + n_made)
    first_made += n_made;
  kept = &made[access->buffer - first_made];
  if (access->mode == BENCH_OUT)
    {
      tensor = bench_tensor_made ();
      kept->tensor = tensor;
      kept->buffer = access->buffer;
      return tensor;
    }
  if (kept->buffer == access->buffer && kept->tensor.storage != NULL)
    return kept->tensor;
  return bench_tensor (buffers[access->buffer]);
}

static void
submit (void *data, const struct bench_task *task)
{
  PTO2Runtime *rt = data;
  PTOParam params[1 + BENCH_MAX_ACCESSES];
  int32_t kernel = task->cube ? BENCH_CUBE : BENCH_VECTOR;
  int32_t n = 0;

  if (task->index % piece == 0)
    {
      if (task->index > 0)
        pto2_rt_scope_end (rt);
      pto2_rt_scope_begin (rt);
    }
  if (bench_body.check != NULL)
    {
      kernel = task->cube ? BENCH_CHECK_CUBE : BENCH_CHECK_VECTOR;
      params[n++] = make_scalar_param (task->index);
    }
  for (uint32_t i = 0; i < task->n_accesses; i++)
    {
      Tensor tensor = find_tensor (&task->accesses[i]);

      switch (task->accesses[i].mode)
        {
        case BENCH_IN:
          params[n++] = make_input_param (tensor);
          break;
        case BENCH_OUT:
          params[n++] = make_output_param (tensor);
          break;
        default:
          params[n++] = make_inout_param (tensor);
          break;
        }
    }
  pto2_rt_submit_task (rt, kernel, task->cube ? PTO2_WORKER_CUBE : PTO2_WORKER_VECTOR, params, n);
}

int
bench_pto_orchestrate (PTO2Runtime *rt, void *workload)
{
  pto2_rt_init_tensor_pool (rt);
  first_made = 0;
  bench_workload_generate (workload, submit, rt);
  pto2_rt_scope_end (rt);
  return 0;
}

static uint64_t
run (const struct bench_workload *workload)
{
  return bench_chip_run (chip, false, bench_pto_orchestrate, (void *) workload);
}

const struct bench_runtime bench_runtime = {
  .name = "pto",
  .start = start,
  .prepare = bench_pto_prepare,
  .run = run,
  .release = bench_pto_release,
  .stop = stop,
  .figures = bench_pto_figures,
};
