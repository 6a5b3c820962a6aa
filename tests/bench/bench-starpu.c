/* bench-starpu.c: how fast are StarPU's tasks, which depend on each other through data handles?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * CPU workers only, scheduling policy lws (local queues with work stealing), the fastest of those
 * that come with it on tiny tasks. The thread that submits is none of the workers. Handles are
 * registered before the clock starts.
 */
#include "bench-main.h"

#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>

static starpu_data_handle_t *handles;
static char (*buffers)[64];
static bool failed;

static void
work (void *data[], void *argument)
{
  (void) data;
  bench_work ((uint32_t) (uintptr_t) argument);
}

static struct starpu_codelet codelet = {
  .cpu_funcs = { work },
  .cpu_funcs_name = { "work" },
  .nbuffers = STARPU_VARIABLE_NBUFFERS,
};

static bool
start (uint32_t workers)
{
  struct starpu_conf conf;
  int status;

  /* Neither measures the machine's buses nor writes files. */
  setenv ("STARPU_SILENT", "1", 0);
  setenv ("STARPU_CALIBRATE", "0", 0);
  starpu_conf_init (&conf);
  conf.sched_policy_name = "lws";
  conf.ncpus = (int) workers;
  conf.ncuda = 0;
  conf.nopencl = 0;
  status = starpu_init (&conf);
  if (status != 0)
    fprintf (stderr, "bench: starpu_init gives %d\n", status);
  else if (starpu_cpu_worker_get_count () != workers)
    {
      fprintf (stderr, "bench: StarPU has %u workers here, not %u\n",
               starpu_cpu_worker_get_count (), workers);
      starpu_shutdown ();
      status = -1;
    }
  return status == 0;
}

static void
prepare (const struct bench_workload *workload)
{
  buffers = aligned_alloc (64, (size_t) workload->n_buffers * sizeof *buffers);
  handles = calloc (workload->n_buffers, sizeof *handles);
  if (buffers == NULL || handles == NULL)
    abort ();
  for (uint32_t i = 0; i < workload->n_buffers; i++)
    starpu_variable_data_register (&handles[i], STARPU_MAIN_RAM, (uintptr_t) buffers[i],
                                   sizeof *buffers);
}

static void
release (const struct bench_workload *workload)
{
  for (uint32_t i = 0; i < workload->n_buffers; i++)
    starpu_data_unregister_no_coherency (handles[i]);
  free (handles);
  free (buffers);
}

static void
submit (void *data, const struct bench_task *task)
{
  static const enum starpu_data_access_mode modes[] = { STARPU_R, STARPU_W, STARPU_RW };
  struct starpu_task *starpu_task = starpu_task_create ();
  starpu_data_handle_t *its_handles = starpu_task->handles;
  enum starpu_data_access_mode *its_modes = starpu_task->modes;

  (void) data;
  starpu_task->cl = &codelet;
  starpu_task->cl_arg = (void *) (uintptr_t) task->index;
  starpu_task->nbuffers = (int) task->n_accesses;
  if (task->n_accesses > STARPU_NMAXBUFS)
    {
      /* StarPU frees both with the task. */
      its_handles = starpu_task->dyn_handles = malloc (task->n_accesses * sizeof *its_handles);
      its_modes = starpu_task->dyn_modes = malloc (task->n_accesses * sizeof *its_modes);
    }
  for (uint32_t i = 0; i < task->n_accesses; i++)
    {
      its_handles[i] = handles[task->accesses[i].buffer];
      its_modes[i] = modes[task->accesses[i].mode];
    }
  if (starpu_task_submit (starpu_task) != 0)
    failed = true;
}

static uint64_t
run (const struct bench_workload *workload)
{
  uint64_t begin = bench_now ();

  bench_workload_generate (workload, submit, NULL);
  starpu_task_wait_for_all ();
  return failed ? 0 : bench_now () - begin;
}

const struct bench_runtime bench_runtime = {
  .name = "starpu",
  .start = start,
  .prepare = prepare,
  .run = run,
  .release = release,
  .stop = starpu_shutdown,
};
