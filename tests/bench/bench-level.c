/* bench-level.c: what do a run, a start, idleness and an end of a worker with children cost?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * No other runtime has the same, so there are figures only. Each is measured in a program of its
 * own: what is forked has nothing of the figures before.
 */
#include "bench-cpu.h"
#include "bench-level.h"

#include <errno.h>
#include <poll.h>
#include <pto/pto.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 1001u
#define N_RUNS 21u
#define MAX_CHILDREN 64u
#define GONE_MS 10000 /* who is left then will stay */

static bool
refuse (const struct bench_figure *figure, const char *why)
{
  fprintf (stderr, "bench: %s: %s\n", figure->name, why);
  return false;
}

/* --- runs --- */

/* What is told of `run` of n SUB tasks that do nothing with one tensor, for one SUB worker. */
enum sub_figure
{
  SUB_TASK,         /* of independent ones, each */
  SUB_TASK_CHAIN,   /* of a chain, each */
  SUB_LAUNCH,       /* of independent ones that are launched as a graph, each */
  SUB_LAUNCH_CHAIN, /* the same, of a chain */
  SUB_FIXED,        /* what a run takes besides, right after another run */
  SUB_FIXED_PARKED, /* the same, the child asleep */
};

typedef struct
{
  PtoWorker *host;
  PtoCallableHandle *handle;
  PtoTaskArgs *args;
  gboolean is_launched;
  guint n_tasks;
} Graph;

static gboolean
nothing (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  return TRUE;
}

static gboolean
submit_all (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  const Graph *graph = user_data;

  for (guint i = 0; i < graph->n_tasks; i++)
    if (!pto_orchestrator_submit_sub (orchestrator, graph->handle, graph->args, -1, error))
      return FALSE;
  return TRUE;
}

/* Median us of runs with so many tasks; 0 on error. */
static double
time_runs (Graph *graph, guint n_tasks, gboolean rest, guint n_runs, GError **error)
{
  g_autoptr (PtoGraph) captured = NULL;
  double us[N_RUNS];

  graph->n_tasks = n_tasks;
  if (graph->is_launched
      && (captured
          = pto_worker_capture (graph->host, submit_all, graph, graph->args, NULL, NULL, error))
             == NULL)
    return 0;
  for (guint i = 0; i < n_runs; i++)
    {
      guint64 begin;

      if (rest)
        bench_level_settle ();
      begin = bench_now ();
      if (captured != NULL
              ? !pto_worker_run_graph (graph->host, captured, graph->args, NULL, NULL, error)
              : !pto_worker_run (graph->host, submit_all, graph, NULL, NULL, NULL, error))
        return 0;
      us[i] = (double) (bench_now () - begin) / 1e3;
    }
  return bench_median (us, n_runs);
}

static gboolean
measure_runs (const struct bench_figure *figure, Graph *graph, guint reps, guint n_runs,
              GError **error)
{
  if (time_runs (graph, MANY, FALSE, 1, error) == 0)
    return FALSE;
  for (guint i = 0; i < reps; i++)
    {
      double one = time_runs (graph, 1, FALSE, n_runs, error);
      double many = one > 0 ? time_runs (graph, MANY, FALSE, n_runs, error) : 0;
      double task = (many - one) / (MANY - 1);

      if (many == 0)
        return FALSE;
      if (figure->number == SUB_FIXED_PARKED
          && (one = time_runs (graph, 1, TRUE, n_runs, error)) == 0)
        return FALSE;
      bench_print (figure->name, figure->metric, figure->number >= SUB_FIXED ? one - task : task,
                   figure->unit);
    }
  return TRUE;
}

static bool
measure_sub (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 0, 1, NULL, &error);
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("nothing", nothing, NULL, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoTensor) tensor = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  gboolean is_chain = figure->number == SUB_TASK_CHAIN || figure->number == SUB_LAUNCH_CHAIN;
  gboolean is_launched = figure->number == SUB_LAUNCH || figure->number == SUB_LAUNCH_CHAIN;

  if (host == NULL || (buffer = pto_buffer_new (4096, &error)) == NULL
      || (tensor
          = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, (guint64[]){ 16 }, &error))
             == NULL
      || (handle = pto_worker_register (host, callable, NULL, &error)) == NULL)
    return refuse (figure, error->message);
  pto_task_args_add_tensor (args, tensor, is_chain ? PTO_DIRECTION_INOUT : PTO_DIRECTION_INPUT);
  if (!measure_runs (figure, &(Graph){ host, handle, args, is_launched, 0 }, reps,
                     brief ? 3 : N_RUNS, &error))
    return refuse (figure, error->message);
  pto_worker_close (host);
  return true;
}

/* --- start --- */

/* Until the whole tree is up; number children, with chips or without. */
static bool
measure_start (const struct bench_figure *figure, uint32_t reps, bool chips)
{
  for (uint32_t i = 0; i < reps; i++)
    {
      g_autoptr (GError) error = NULL;
      guint64 begin = bench_now ();
      g_autoptr (PtoWorker) host = pto_worker_new_host (3, chips ? figure->number : 0,
                                                        chips ? 0 : figure->number, NULL, &error);

      if (host == NULL || !pto_worker_start (host, NULL, &error))
        return refuse (figure, error->message);
      bench_print (figure->name, figure->metric, (double) (bench_now () - begin) / 1e6,
                   figure->unit);
      pto_worker_close (host);
    }
  return true;
}

static bool
measure_start_subs (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  return measure_start (figure, reps, false);
}

static bool
measure_start_chips (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  return measure_start (figure, reps, true);
}

/* --- what children are there, and what do they do? --- */

/* The children of a process; how many. */
static guint
list_children (pid_t parent, pid_t children[MAX_CHILDREN])
{
  g_autoptr (GDir) processes = g_dir_open ("/proc", 0, NULL);
  const char *id;
  guint n = 0;

  while (processes != NULL && (id = g_dir_read_name (processes)) != NULL)
    {
      g_autofree char *path = g_build_filename ("/proc", id, "stat", NULL);
      g_autofree char *text = NULL;
      const char *rest;
      char state;
      int its_parent;

      if (!g_ascii_isdigit (id[0]) || !g_file_get_contents (path, &text, NULL, NULL))
        continue;
      rest = strrchr (text, ')');
      if (rest != NULL && sscanf (rest, ") %c %d", &state, &its_parent) == 2 && its_parent == parent
          && n < MAX_CHILDREN)
        children[n++] = atoi (id);
    }
  return n;
}

/* CPU time of number children and of their parent's other threads, nothing to do for them. */
static bool
measure_idle (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 0, figure->number, NULL, &error);
  pid_t processes[MAX_CHILDREN + 1];
  bool ok = true;
  guint n;

  if (host == NULL || !pto_worker_start (host, NULL, &error))
    return refuse (figure, error->message);
  n = list_children (getpid (), processes);
  if (n != figure->number)
    return refuse (figure, "its children are not to be found in /proc");
  processes[n++] = getpid ();
  g_usleep (BENCH_SETTLE_US);
  for (uint32_t i = 0; ok && i < reps; i++)
    {
      uint64_t before = 0, after = 0;

      for (guint k = 0; k < n; k++)
        ok = ok && bench_add_cpu_ns (processes[k], &before);
      g_usleep (brief ? BENCH_IDLE_US / 50 : BENCH_IDLE_US);
      for (guint k = 0; k < n; k++)
        ok = ok && bench_add_cpu_ns (processes[k], &after);
      if (ok)
        bench_print (figure->name, figure->metric, (double) (after - before) / 1e3, figure->unit);
    }
  pto_worker_close (host);
  return ok;
}

/* --- end --- */

/* Brings up a worker with children in a process of its own; -1: it did not come up. */
static pid_t
begin_tree (guint n_children)
{
  int ready[2];
  char byte;
  pid_t pid;

  /* What is not written yet would be written twice. */
  fflush (stdout);
  if (pipe (ready) != 0)
    return -1;
  pid = fork ();
  if (pid == 0)
    {
      g_autoptr (GError) error = NULL;
      PtoWorker *host = pto_worker_new_host (3, 0, n_children, NULL, &error);

      if (host == NULL || !pto_worker_start (host, NULL, &error))
        fprintf (stderr, "bench: %s\n", error->message);
      else if (write (ready[1], "", 1) == 1)
        for (;;)
          pause ();
      _exit (1);
    }
  close (ready[1]);
  if (pid > 0 && read (ready[0], &byte, 1) != 1)
    {
      waitpid (pid, NULL, 0);
      pid = -1;
    }
  close (ready[0]);
  return pid;
}

static gboolean
wait_until_gone (const int *pidfds, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      struct pollfd end = { .fd = pidfds[i], .events = POLLIN };
      int status;

      do
        status = poll (&end, 1, GONE_MS);
      while (status < 0 && errno == EINTR);
      if (status != 1)
        return FALSE;
    }
  return TRUE;
}

/* From the signal that a parent can not catch until the last of its number children is gone. */
static bool
measure_killed (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  bool ok = true;

  for (uint32_t i = 0; ok && i < reps; i++)
    {
      pid_t parent = begin_tree (figure->number);
      pid_t children[MAX_CHILDREN];
      int pidfds[MAX_CHILDREN];
      guint64 begin;
      guint n;

      if (parent < 0)
        return refuse (figure, "the tree did not come up");
      n = list_children (parent, children);
      for (guint k = 0; k < n; k++)
        pidfds[k] = (int) syscall (SYS_pidfd_open, children[k], 0);
      begin = bench_now ();
      kill (parent, SIGKILL);
      ok = wait_until_gone (pidfds, n);
      if (ok && n == figure->number)
        bench_print (figure->name, figure->metric, (double) (bench_now () - begin) / 1e6,
                     figure->unit);
      else
        ok = refuse (figure, n == figure->number ? "a child is left"
                                                 : "its children are not to be found in /proc");
      for (guint k = 0; k < n; k++)
        {
          syscall (SYS_pidfd_send_signal, pidfds[k], SIGKILL, NULL, 0);
          close (pidfds[k]);
        }
      waitpid (parent, NULL, 0);
    }
  return ok;
}

static const struct bench_figure figures[] = {
  { "mailbox_awake", "time", "us", 0, bench_level_mailbox },
  { "mailbox_parked", "time", "us", 1, bench_level_mailbox },
  { "sub_fixed", "time", "us", SUB_FIXED, measure_sub },
  { "sub_fixed_parked", "time", "us", SUB_FIXED_PARKED, measure_sub },
  { "sub_task", "time", "us", SUB_TASK, measure_sub },
  { "sub_task_chain", "time", "us", SUB_TASK_CHAIN, measure_sub },
  { "sub_launch", "time", "us", SUB_LAUNCH, measure_sub },
  { "sub_launch_chain", "time", "us", SUB_LAUNCH_CHAIN, measure_sub },
  { "children_64_idle", "cpu_time", "us", 64, measure_idle },
  { "remote_bulk", "speed", "MB/s", 0, bench_level_remote },
  { "stream_bulk", "speed", "MB/s", 0, bench_level_stream },
  { "remote_bulk_tcp", "speed", "MB/s", 3, bench_level_remote },
  { "remote_bulk_shm", "speed", "MB/s", 4, bench_level_remote },
  { "remote_bulk_tls", "speed", "MB/s", 5, bench_level_remote },
  { "tls_bulk", "speed", "MB/s", 0, bench_level_tls },
  { "remote_task", "time", "us", 1, bench_level_remote },
  { "remote_control", "time", "us", 1, bench_level_control },
  { "remote_raw", "time", "us", 1, bench_level_stream },
  { "remote_task_tls", "time", "us", 6, bench_level_remote },
  { "tls_raw", "time", "us", 1, bench_level_tls },
  { "remote_batch", "tasks_per_second", "", 2, bench_level_remote },
  { "job_allreduce_4k", "time", "ms", BENCH_BY_RANKS | 4u << 10, bench_level_job },
  { "remote_allreduce_4k", "time", "ms", 4u << 10, bench_level_job },
  { "job_allreduce_64k", "time", "ms", BENCH_BY_RANKS | 64u << 10, bench_level_job },
  { "remote_allreduce_64k", "time", "ms", 64u << 10, bench_level_job },
  { "job_allreduce_1m", "time", "ms", BENCH_BY_RANKS | 1u << 20, bench_level_job },
  { "remote_allreduce_1m", "time", "ms", 1u << 20, bench_level_job },
  { "job_allreduce_16m", "time", "ms", BENCH_BY_RANKS | 16u << 20, bench_level_job },
  { "remote_allreduce_16m", "time", "ms", 16u << 20, bench_level_job },
  { "start_1_8", "time", "ms", 8, measure_start_subs },
  { "start_1_8_chips", "time", "ms", 8, measure_start_chips },
  { "parent_killed", "time", "ms", 8, measure_killed },
  { 0 },
};

const struct bench_runtime bench_runtime = { .name = "level", .figures = figures };
