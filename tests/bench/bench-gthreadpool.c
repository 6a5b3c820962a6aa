/* bench-gthreadpool.c: how far does one come with nothing but GThreadPool?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Told the edges, which were found before the clock started. The last predecessor of a task pushes
 * it: every task goes through the pool. The thread that waits is none of the workers.
 */
#include "bench-main.h"

#include <glib.h>

static GThreadPool *pool;
static struct bench_graph *graph;
static int *waits_for;
static int left; /* tasks that are not done; atomic */
static GMutex lock;
static GCond done; /* left became 0, under lock */

static void
work (gpointer data, gpointer unused)
{
  guint32 index = GPOINTER_TO_UINT (data) - 1; /* a pool takes no NULL */

  bench_work (index);
  for (guint32 e = graph->first_successor[index]; e < graph->first_successor[index + 1]; e++)
    if (g_atomic_int_dec_and_test (&waits_for[graph->successors[e]]))
      g_thread_pool_push (pool, GUINT_TO_POINTER (graph->successors[e] + 1), NULL);
  if (g_atomic_int_dec_and_test (&left))
    {
      g_mutex_lock (&lock);
      g_cond_signal (&done);
      g_mutex_unlock (&lock);
    }
}

static bool
start (uint32_t workers)
{
  g_autoptr (GError) error = NULL;

  pool = g_thread_pool_new (work, NULL, (int) workers, TRUE, &error);
  if (pool == NULL)
    g_printerr ("bench: %s\n", error->message);
  return pool != NULL;
}

static void
prepare (const struct bench_workload *workload)
{
  graph = bench_graph_new (workload);
  waits_for = g_new (int, graph->n_tasks);
}

static void
release (const struct bench_workload *workload)
{
  g_clear_pointer (&waits_for, g_free);
  g_clear_pointer (&graph, bench_graph_free);
}

static void
stop (void)
{
  g_thread_pool_free (pool, FALSE, TRUE);
  pool = NULL;
}

static uint64_t
run (const struct bench_workload *workload)
{
  guint64 begin = bench_now ();

  g_atomic_int_set (&left, (int) graph->n_tasks);
  for (guint32 i = 0; i < graph->n_tasks; i++)
    waits_for[i] = (int) graph->n_predecessors[i];
  for (guint32 i = 0; i < graph->n_tasks; i++)
    if (graph->n_predecessors[i] == 0)
      g_thread_pool_push (pool, GUINT_TO_POINTER (i + 1), NULL);
  g_mutex_lock (&lock);
  while (g_atomic_int_get (&left) > 0)
    g_cond_wait (&done, &lock);
  g_mutex_unlock (&lock);
  return bench_now () - begin;
}

const struct bench_runtime bench_runtime = {
  .name = "gthreadpool",
  .start = start,
  .prepare = prepare,
  .run = run,
  .release = release,
  .stop = stop,
};
