/* test-workloads.c: are W1 to W6 the graphs they are said to be, and does the order check see a
 * wrong order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "workloads.h"

#include <glib.h>

static void
test_sizes (void)
{
  static const guint32 tasks[BENCH_WORKLOADS] = { 100000, 100000, 66000, 32000, 11480, 8448 };

  for (guint i = 0; i < BENCH_WORKLOADS; i++)
    {
      g_autofree char *name = g_strdup_printf ("W%u", i + 1);
      struct bench_workload workload;

      g_assert_true (bench_workload_init (&workload, name, FALSE));
      g_assert_cmpuint (workload.n_tasks, ==, tasks[i]);
    }
}

static void
test_unknown (void)
{
  struct bench_workload workload;

  g_assert_false (bench_workload_init (&workload, "W0", FALSE));
  g_assert_false (bench_workload_init (&workload, "W7", FALSE));
  g_assert_false (bench_workload_init (&workload, "W11", FALSE));
}

static void
look_at_task (gpointer data, const struct bench_task *task)
{
  const struct bench_workload *workload = ((gpointer *) data)[0];
  guint32 *n = ((gpointer *) data)[1];

  g_assert_cmpuint (task->index, ==, *n);
  (*n)++;
  g_assert_cmpuint (task->n_accesses, <=, BENCH_MAX_ACCESSES);
  for (guint i = 0; i < task->n_accesses; i++)
    {
      g_assert_cmpuint (task->accesses[i].buffer, <, workload->n_buffers);
      g_assert_true ((task->accesses[i].mode == BENCH_IN) == (i < task->n_inputs));
      for (guint k = 0; k < i; k++)
        g_assert_cmpuint (task->accesses[k].buffer, !=, task->accesses[i].buffer);
    }
}

static void
test_streams (void)
{
  for (guint i = 1; i <= BENCH_WORKLOADS; i++)
    {
      g_autofree char *name = g_strdup_printf ("W%u", i);
      struct bench_workload workload;
      guint32 n = 0;
      gpointer data[2] = { &workload, &n };

      bench_workload_init (&workload, name, TRUE);
      bench_workload_generate (&workload, look_at_task, data);
      g_assert_cmpuint (n, ==, workload.n_tasks);
    }
}

static void
test_depths (void)
{
  /* A round of W3 is a producer, readers, and a reducer that the next producer need not wait for; a
   * column of W5 is potrf, trsm and an update; a group of W6 is HUB and QK, SF, PV of which 8 go on
   * at a time, then the UPs in a row. */
  static const guint32 depths[BENCH_WORKLOADS] = { 1, 2000, 2 * 12 + 1, 60, 3 * 10 - 2, 4 + 7 };

  for (guint i = 0; i < BENCH_WORKLOADS; i++)
    {
      g_autofree char *name = g_strdup_printf ("W%u", i + 1);
      struct bench_workload workload;
      struct bench_graph *graph;

      bench_workload_init (&workload, name, TRUE);
      graph = bench_graph_new (&workload);
      g_assert_cmpuint (graph->depth, ==, depths[i]);
      bench_graph_free (graph);
    }
}

/* Runs all tasks one after the other, two of them exchanged. */
static gboolean
passes (const char *name, guint32 first, guint32 second)
{
  struct bench_workload workload;
  struct bench_check *check;
  char message[300];
  gboolean passed;

  bench_workload_init (&workload, name, TRUE);
  check = bench_check_new (&workload);
  for (guint32 i = 0; i < workload.n_tasks; i++)
    bench_check_execute (check, i == first ? second : i == second ? first : i);
  passed = bench_check_passed (check, message, sizeof message);
  bench_check_free (check);
  return passed;
}

static void
test_order (void)
{
  for (guint i = 1; i <= BENCH_WORKLOADS; i++)
    {
      g_autofree char *name = g_strdup_printf ("W%u", i);

      g_assert_true (passes (name, 0, 0));
    }
}

static void
test_independent_order (void)
{
  g_assert_true (passes ("W1", 3, 1000));
  g_assert_true (passes ("W3", 1, 64));
}

static void
test_read_before_write (void)
{
  g_assert_false (passes ("W3", 0, 1));
}

static void
test_write_before_read (void)
{
  /* The last reader of a round and the producer of the next. */
  g_assert_false (passes ("W3", 64, 66));
}

static void
test_write_before_write (void)
{
  g_assert_false (passes ("W2", 7, 8));
}

static void
test_missing_task (void)
{
  struct bench_workload workload;
  struct bench_check *check;
  char message[300];

  bench_workload_init (&workload, "W1", TRUE);
  check = bench_check_new (&workload);
  for (guint32 i = 1; i < workload.n_tasks; i++)
    bench_check_execute (check, i);
  g_assert_false (bench_check_passed (check, message, sizeof message));
  g_assert_cmpstr (message, ==, "1999 of 2000 tasks ran");
  bench_check_free (check);
}

static void
test_task_twice (void)
{
  struct bench_workload workload;
  struct bench_check *check;
  char message[300];

  bench_workload_init (&workload, "W6", TRUE);
  check = bench_check_new (&workload);
  for (guint32 i = 0; i < workload.n_tasks; i++)
    bench_check_execute (check, i);
  bench_check_execute (check, workload.n_tasks - 1);
  g_assert_false (bench_check_passed (check, message, sizeof message));
  bench_check_free (check);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bench/workloads/sizes", test_sizes);
  g_test_add_func ("/bench/workloads/unknown", test_unknown);
  g_test_add_func ("/bench/workloads/streams", test_streams);
  g_test_add_func ("/bench/workloads/depths", test_depths);
  g_test_add_func ("/bench/check/sequential", test_order);
  g_test_add_func ("/bench/check/independent", test_independent_order);
  g_test_add_func ("/bench/check/read-before-write", test_read_before_write);
  g_test_add_func ("/bench/check/write-before-read", test_write_before_read);
  g_test_add_func ("/bench/check/write-before-write", test_write_before_write);
  g_test_add_func ("/bench/check/missing-task", test_missing_task);
  g_test_add_func ("/bench/check/task-twice", test_task_twice);
  return g_test_run ();
}
