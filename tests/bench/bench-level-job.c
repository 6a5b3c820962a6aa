/* bench-level-job.c: what does an allreduce over remote workers take, by the ranks of a job and in
 * the program?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In a step each of several local workers has a task with its tensor, and then all are added up: by
 * MPI where they are, or here, so that each of them comes here and goes back.
 */
#include "bench-level.h"

#include <pto/pto.h>
#include <stdio.h>
#include <unistd.h>

#define N_RANKS 4
#define N_STEPS 21u
#define N_BRIEF 3u
#define N_RUNS 5u
#define N_BRIEF_RUNS 1u

/* The rank's own program comes with pto-remote, and needs mpirun. */
static bool
can_begin (void)
{
  g_autofree char *mpirun = g_find_program_in_path ("mpirun");
  const char *remote = g_getenv ("PTO_REMOTE");
  g_autofree char *directory = remote != NULL ? g_path_get_dirname (remote) : NULL;
  g_autofree char *rank = directory != NULL ? g_build_filename (directory, "pto-mpi-rank", NULL)
                                            : g_find_program_in_path ("pto-mpi-rank");

  if (mpirun == NULL)
    return bench_skip ("no mpirun: install openmpi-bin");
  if (rank == NULL || access (rank, X_OK) != 0)
    return bench_skip ("this libpto was built without MPI: install libopenmpi-dev");
  if (geteuid () == 0
      && (g_getenv ("OMPI_ALLOW_RUN_AS_ROOT") == NULL
          || g_getenv ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == NULL))
    return bench_skip ("Open MPI refuses root: set OMPI_ALLOW_RUN_AS_ROOT=1 and "
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  return true;
}

typedef struct
{
  PtoWorker *root;
  PtoCallableHandle *nothing;
  bool by_ranks;
  guint64 n; /* elements of each tensor */
  guint n_steps;
} Job;

/* Of a rank: by its worker, which reads and writes all of it. */
static gboolean
submit_task (PtoOrchestrator *orchestrator, const Job *job, PtoTensor *tensor, int rank,
             PtoDirection direction, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, tensor, direction);
  return pto_orchestrator_submit_next_level (orchestrator, job->nothing, args, NULL, rank, error);
}

static gboolean
submit_steps (PtoOrchestrator *orchestrator, const Job *job, PtoTensor *const *tensors,
              GError **error)
{
  for (int rank = 0; rank < N_RANKS; rank++)
    if (!submit_task (orchestrator, job, tensors[rank], rank,
                      job->by_ranks ? PTO_DIRECTION_OUTPUT : PTO_DIRECTION_OUTPUT_EXISTING, error))
      return FALSE;
  for (guint step = 0; step < job->n_steps; step++)
    {
      for (int rank = 0; rank < N_RANKS; rank++)
        if (!submit_task (orchestrator, job, tensors[rank], rank, PTO_DIRECTION_INOUT, error))
          return FALSE;
      if (!pto_orchestrator_allreduce (orchestrator, tensors, N_RANKS, PTO_REDUCTION_SUM, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
submit_all (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  const Job *job = user_data;
  PtoTensor *tensors[N_RANKS] = { NULL };
  gboolean ok = TRUE;

  for (int rank = 0; ok && rank < N_RANKS; rank++)
    {
      tensors[rank]
          = job->by_ranks
                ? pto_orchestrator_make_tensor_at (orchestrator, rank, PTO_DTYPE_FLOAT32, 1,
                                                   &job->n, error)
                : pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, &job->n, error);
      ok = tensors[rank] != NULL;
    }
  ok = ok && submit_steps (orchestrator, job, tensors, error);
  for (guint rank = 0; rank < N_RANKS; rank++)
    g_clear_pointer (&tensors[rank], pto_tensor_unref);
  return ok;
}

/* Median ns of runs with so many steps; 0 on error. */
static double
time_runs (Job *job, guint n_steps, guint n_runs, GError **error)
{
  double ns[N_RUNS];

  job->n_steps = n_steps;
  for (guint r = 0; r < n_runs; r++)
    {
      guint64 begin = bench_now ();

      if (!pto_worker_run (job->root, submit_all, job, NULL, NULL, NULL, error))
        return 0;
      ns[r] = (double) (bench_now () - begin);
    }
  return bench_median (ns, n_runs);
}

static gboolean
measure (const struct bench_figure *figure, Job *job, uint32_t reps, bool brief, GError **error)
{
  guint n_steps = brief ? N_BRIEF : N_STEPS;
  guint n_runs = brief ? N_BRIEF_RUNS : N_RUNS;
  g_autofree char *symbol = bench_level_find_nothing (error);
  g_autoptr (PtoCallable) callable
      = symbol != NULL
            ? pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, error)
            : NULL;

  job->nothing = callable != NULL ? pto_worker_register (job->root, callable, NULL, error) : NULL;
  /* The first has mpirun begin what is beside the workers. */
  if (job->nothing == NULL || time_runs (job, 1, 1, error) == 0)
    return FALSE;
  for (uint32_t i = 0; i < reps; i++)
    {
      double one = time_runs (job, 1, n_runs, error);
      double all = one > 0 ? time_runs (job, n_steps, n_runs, error) : 0;

      if (all == 0)
        return FALSE;
      bench_print (figure->name, figure->metric, (all - one) / (n_steps - 1) / 1e6, figure->unit);
    }
  return TRUE;
}

bool
bench_level_job (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  static const char *const addresses[N_RANKS + 1] = { "local:", "local:", "local:", "local:" };
  g_autoptr (GError) error = NULL;
  g_autofree PtoWorker **ranks = NULL;
  Job job = { .by_ranks = (figure->number & BENCH_BY_RANKS) != 0,
              .n = (figure->number & ~BENCH_BY_RANKS) / sizeof (float) };
  bool ok = true;

  if (job.by_ranks && !can_begin ())
    return true;
  job.root = g_object_new (PTO_TYPE_WORKER, "level", 4, "n-sub-workers", 1, NULL);
  if (job.by_ranks)
    ok = (ranks = pto_worker_add_remote_job (job.root, addresses, NULL, &error)) != NULL;
  for (guint i = 0; ok && !job.by_ranks && i < N_RANKS; i++)
    ok = pto_worker_add_remote_worker (job.root, addresses[i], NULL, &error) != NULL;
  ok = ok && measure (figure, &job, reps, brief, &error);
  if (!ok)
    fprintf (stderr, "bench: %s: %s\n", figure->name, error->message);
  g_clear_pointer (&job.nothing, pto_callable_handle_unref);
  pto_worker_close (job.root);
  g_object_unref (job.root);
  return ok;
}
