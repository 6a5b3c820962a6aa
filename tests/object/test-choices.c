/* test-choices.c: is a choice that has no effect on a worker's level refused or told, and one that
 * has kept apart?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <glib/gstdio.h>
#include <string.h>

#define N 64

static const char *const of_chips[] = { "backend",
                                        "det",
                                        "seed",
                                        "7",
                                        "ready-queue-shards",
                                        "2",
                                        "aicpu-threads",
                                        "3",
                                        "clusters",
                                        "2",
                                        "carriers",
                                        "1",
                                        "stack",
                                        "64K",
                                        "guard",
                                        "0",
                                        "utilization",
                                        "1",
                                        "isolate",
                                        "1",
                                        "pipe-depth",
                                        "3",
                                        "build-mode",
                                        "0",
                                        "jitter",
                                        "20",
                                        "schedule",
                                        "0:1-last",
                                        "costs",
                                        "cpu",
                                        NULL };
static const char *const of_hosts[] = { "task-timeout",
                                        "5",
                                        "stop-timeout",
                                        "5",
                                        "arena",
                                        "1M",
                                        "remote-ping",
                                        "20",
                                        "remote-suspect",
                                        "50",
                                        "remote-lease",
                                        "90",
                                        "remote-leave",
                                        "8192",
                                        "retries",
                                        "3",
                                        NULL };
static const char *const of_all[]
    = { "task-window", "16",  "heap",           "1M",  "dep-pool", "64", "map-pool",      "64",
        "hazards",     "raw", "timeout",        "100", "trace",    "1",  "trace-records", "64",
        "trace-level", "2",   "blocked-notice", "5",   "rename",   "1",  "check",         "access",
        NULL };

static guint
count_known (PtoWorker *worker, const char *const *pairs, gboolean takes)
{
  guint n = 0;

  for (; pairs[0] != NULL; pairs += 2, n++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *before = pto_worker_dup_parameter (worker, pairs[0], NULL);
      g_autofree char *after = NULL;

      g_assert_cmpint (pto_worker_set_parameter (worker, pairs[0], pairs[1], &error), ==, takes);
      if (takes)
        g_assert_no_error (error);
      else
        {
          g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
          object_test_assert_contains (error->message, pairs[0]);
          object_test_assert_contains (error->message, "no effect");
          after = pto_worker_dup_parameter (worker, pairs[0], NULL);
          g_assert_cmpstr (after, ==, before);
        }
    }
  return n;
}

/* Every parameter is somebody's, and nobody else's. */
static void
test_parameters (void)
{
  g_auto (GStrv) all = pto_worker_list_parameters ();

  for (guint level = 2; level <= 4; level++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoWorker) worker = level == 2 ? pto_worker_new (2, NULL, &error)
                                                : pto_worker_new_host (level, 0, 1, NULL, &error);
      guint n;

      g_assert_no_error (error);
      n = count_known (worker, of_hosts, level > 2);
      n += count_known (worker, of_chips, level == 2) + count_known (worker, of_all, TRUE);
      g_assert_cmpuint (n, ==, g_strv_length (all));
      /* An isolated chip has an arena, too. */
      g_assert_true (pto_worker_set_parameter (worker, "arena", "1M", &error));
      g_assert_false (pto_worker_set_parameter (worker, "no-such", "1", &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "no-such");
    }
}

/* A chip below a host has those of chips. */
static void
test_parameters_below (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = level_test_host (3, 1, 0);

  count_known (pto_worker_get_child (host, 0), of_chips, TRUE);
}

static void
test_properties (void)
{
  static const char *const names[] = { "restart", "child-mode" };

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoWorker) chip = g_object_new (PTO_TYPE_WORKER, names[i], 1, NULL);

      g_assert_false (pto_worker_start (chip, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, names[i]);
    }
}

/* --- configurations --- */

typedef struct
{
  LevelTestState state;
  char *dir;
  char *prefix;
  PtoWorker *host;
  PtoWorker *top; /* NULL: host is run */
  PtoCallableHandle *fill;
  PtoCallableHandle *inner;
  PtoBuffer *buffer;
  PtoTensor *tensor;
  PtoCallConfig *config;
  gboolean passes; /* the function gives its configuration to its tasks, or if it has none this: */
  PtoCallConfig *kept;
  guint n_tasks;
} Test;

static void
begin (Test *test, guint n_chips, PtoChildMode mode)
{
  static const guint64 shape[] = { N };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) fill = NULL;
  g_autoptr (GVariant) ids = NULL;
  GVariantBuilder builder;

  *test = (Test){ .passes = TRUE, .n_tasks = 2 };
  level_test_begin (&test->state);
  test->dir = object_test_make_dir ();
  test->prefix = g_build_filename (test->dir, "run-", NULL);
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("au"));
  for (guint i = 0; i < n_chips; i++)
    g_variant_builder_add (&builder, "u", i);
  test->host = g_object_new (PTO_TYPE_WORKER, "level", 3, "device-ids",
                             g_variant_builder_end (&builder), "child-mode", mode, NULL);
  fill = level_test_fill (test->dir);
  test->fill = pto_worker_register (test->host, fill, NULL, &error);
  g_assert_no_error (error);
  test->buffer = pto_buffer_new (N * 8 * 4, &error);
  g_assert_no_error (error);
  test->tensor = pto_tensor_new_for_buffer (test->buffer, 0, PTO_DTYPE_UINT64, 1, shape, &error);
  g_assert_no_error (error);
  test->config = pto_call_config_new ();
}

static void
end (Test *test)
{
  g_clear_pointer (&test->inner, pto_callable_handle_unref);
  g_clear_pointer (&test->fill, pto_callable_handle_unref);
  pto_tensor_unref (test->tensor);
  pto_buffer_unref (test->buffer);
  pto_call_config_free (test->config);
  g_clear_object (&test->top);
  g_clear_object (&test->host);
  g_free (test->prefix);
  object_test_remove_dir (test->dir);
  level_test_end (&test->state);
}

static gboolean
graph (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data, GError **error)
{
  Test *test = data;

  for (guint i = 0; i < test->n_tasks; i++)
    {
      g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

      pto_task_args_add_tensor (task, test->tensor, PTO_DIRECTION_OUTPUT_EXISTING);
      pto_task_args_add_scalar (task, 7);
      pto_task_args_add_scalar (task, N);
      if (config == NULL)
        config = test->kept;
      if (!pto_orchestrator_submit_next_level (o, test->fill, task, test->passes ? config : NULL,
                                               (int) (i % pto_worker_get_n_workers (test->host)),
                                               error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
has_file (Test *test, const char *name)
{
  g_autofree char *path = g_strconcat (test->prefix, name, NULL);
  g_autofree char *text = NULL;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  object_test_assert_contains (text, "traceEvents");
  g_assert_cmpint (g_unlink (path), ==, 0);
  return TRUE;
}

static guint
count_records (Test *test)
{
  g_autoptr (GDir) dir = g_dir_open (test->dir, 0, NULL);
  const char *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)) != NULL)
    n += g_str_has_prefix (name, "run-");
  return n;
}

/* One configuration for all tasks, as a program writes it: every task has a file of its own. */
static void
test_prefix (gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTrace) trace = NULL;
  Test test;

  begin (&test, 2, GPOINTER_TO_INT (data));
  test.n_tasks = 3;
  pto_call_config_set_enable_l2_swimlane (test.config, 1);
  pto_call_config_set_output_prefix (test.config, test.prefix);
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_records (&test), ==, 4);
  g_assert_true (has_file (&test, "swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker0-swimlane.json"));
  g_assert_true (has_file (&test, "task1-worker1-swimlane.json"));
  g_assert_true (has_file (&test, "task2-worker0-swimlane.json"));
  /* Counted anew in each run, which writes over nothing of an earlier one. */
  test.n_tasks = 1;
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (has_file (&test, "run1-swimlane.json"));
  g_assert_true (has_file (&test, "run1-task0-worker0-swimlane.json"));
  /* Without a file for itself the run has its record all the same. */
  trace = pto_worker_ref_trace (test.host);
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 1);
  end (&test);
}

static gboolean
group_graph (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Test *test = data;
  PtoTaskArgs *members[2];
  gboolean ok;

  for (guint i = 0; i < 2; i++)
    {
      const guint64 shape[] = { N };
      g_autoptr (PtoTensor) part = NULL;

      members[i] = pto_task_args_new ();
      part = pto_tensor_new_for_buffer (test->buffer, (i + 1) * N * 8, PTO_DTYPE_UINT64, 1, shape,
                                        error);
      pto_task_args_add_tensor (members[i], part, PTO_DIRECTION_OUTPUT_EXISTING);
      pto_task_args_add_scalar (members[i], 7);
      pto_task_args_add_scalar (members[i], N);
    }
  ok = pto_orchestrator_submit_next_level_group (o, test->fill, members, 2, config, NULL, 0, error);
  pto_task_args_unref (members[0]);
  pto_task_args_unref (members[1]);
  return ok;
}

static void
test_prefix_group (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  begin (&test, 2, PTO_CHILD_MODE_PROCESS);
  pto_call_config_set_enable_l2_swimlane (test.config, 1);
  pto_call_config_set_output_prefix (test.config, test.prefix);
  pto_worker_run (test.host, group_graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_records (&test), ==, 3);
  g_assert_true (has_file (&test, "swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker0-swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker1-swimlane.json"));
  end (&test);
}

static gboolean
top_graph (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
           GError **error)
{
  Test *test = data;

  return pto_orchestrator_submit_next_level (o, test->inner, NULL, config, -1, error);
}

static void
test_prefix_level4 (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) inner = NULL;
  Test test;

  begin (&test, 1, PTO_CHILD_MODE_PROCESS);
  test.top = pto_worker_new_host (4, 0, 0, NULL, &error);
  g_assert_no_error (error);
  inner = pto_orchestration_function_new ("graph", graph, &test, NULL);
  test.inner = pto_worker_register (test.top, inner, NULL, &error);
  g_assert_no_error (error);
  pto_worker_add_worker (test.top, test.host, &error);
  g_assert_no_error (error);
  pto_call_config_set_enable_l2_swimlane (test.config, 1);
  pto_call_config_set_output_prefix (test.config, test.prefix);
  pto_worker_run (test.top, top_graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_records (&test), ==, 4);
  g_assert_true (has_file (&test, "swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker0-swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker0-task0-worker0-swimlane.json"));
  g_assert_true (has_file (&test, "task0-worker0-task1-worker0-swimlane.json"));
  end (&test);
}

static void
test_no_prefix (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *summary = NULL;
  g_autoptr (PtoTrace) trace = NULL;
  Test test;

  begin (&test, 1, PTO_CHILD_MODE_PROCESS);
  pto_call_config_set_enable_l2_swimlane (test.config, 2);
  test.kept = test.config;
  g_assert_false (pto_worker_run (test.host, graph, &test, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "enable_l2_swimlane = 2");
  object_test_assert_contains (error->message, "output_prefix");
  g_clear_error (&error);
  /* In a run that is recorded it is a part of that. */
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  trace = pto_worker_ref_trace (test.host);
  summary = pto_trace_summarize (trace);
  object_test_assert_contains (summary, "L2/0: 2 runs, 2 tasks inside");
  g_clear_object (&trace);
  end (&test);

  /* A chip in this process can be asked for its record. */
  g_clear_error (&error);
  begin (&test, 1, PTO_CHILD_MODE_THREAD);
  pto_call_config_set_enable_l2_swimlane (test.config, 2);
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  trace = pto_worker_ref_trace (pto_worker_get_child (test.host, 0));
  g_assert_nonnull (trace);
  g_clear_object (&trace);
  end (&test);
}

static gboolean
nothing (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
         GError **error)
{
  return TRUE;
}

/* Of a level that knows no function, and has run nothing. */
static void
test_trace_of_nothing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = level_test_host (3, 0, 1);
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  g_autoptr (PtoTrace) trace = NULL;

  pto_call_config_set_enable_l2_swimlane (config, 1);
  pto_worker_run (host, nothing, NULL, NULL, config, NULL, &error);
  g_assert_no_error (error);
  trace = pto_worker_ref_trace (host);
  g_assert_nonnull (trace);
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 0);
  pto_worker_close (host);
}

/* A configuration that the function keeps to itself. */
static void
test_not_passed_on (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  begin (&test, 1, PTO_CHILD_MODE_PROCESS);
  test.passes = FALSE;
  for (guint i = 0; i < 2; i++)
    {
      static const char *const names[] = { "block_dim", "aicpu_thread_num" };
      g_autofree char *pattern
          = g_strdup_printf ("%s of the run's configuration had no effect on L3*", names[i]);
      g_autoptr (PtoCallConfig) config = pto_call_config_new ();

      if (i == 0)
        pto_call_config_set_block_dim (config, 2);
      else
        pto_call_config_set_aicpu_thread_num (config, 2);
      g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING, pattern);
      pto_worker_run (test.host, graph, &test, NULL, config, NULL, &error);
      g_assert_no_error (error);
      g_test_assert_expected_messages ();
    }
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  test.passes = TRUE;
  pto_call_config_set_block_dim (test.config, 2);
  pto_worker_run (test.host, graph, &test, NULL, test.config, NULL, &error);
  g_assert_no_error (error);
  end (&test);
}

/* What is recorded in another process is seen in the parent's record, or nowhere. */
static void
test_trace_below (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  begin (&test, 1, PTO_CHILD_MODE_PROCESS);
  g_assert_true (
      pto_worker_set_parameter (pto_worker_get_child (test.host, 0), "trace", "1", &error));
  g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING,
                         "trace of L3/0/L2/0 has no effect: it is a part of the trace of L3/0: set "
                         "it there");
  for (guint i = 0; i < 2; i++)
    {
      pto_worker_run (test.host, graph, &test, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_null (pto_worker_ref_trace (test.host));
    }
  g_test_assert_expected_messages ();
  end (&test);

  begin (&test, 1, PTO_CHILD_MODE_THREAD);
  g_assert_true (
      pto_worker_set_parameter (pto_worker_get_child (test.host, 0), "trace", "1", &error));
  pto_worker_run (test.host, graph, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  end (&test);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/pto/choices/parameters", test_parameters);
  g_test_add_func ("/pto/choices/parameters/below", test_parameters_below);
  g_test_add_func ("/pto/choices/properties", test_properties);
  g_test_add_data_func ("/pto/choices/prefix/process", GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS),
                        test_prefix);
  g_test_add_data_func ("/pto/choices/prefix/thread", GINT_TO_POINTER (PTO_CHILD_MODE_THREAD),
                        test_prefix);
  g_test_add_func ("/pto/choices/prefix/group", test_prefix_group);
  g_test_add_func ("/pto/choices/prefix/level4", test_prefix_level4);
  g_test_add_func ("/pto/choices/no-prefix", test_no_prefix);
  g_test_add_func ("/pto/choices/trace-of-nothing", test_trace_of_nothing);
  g_test_add_func ("/pto/choices/not-passed-on", test_not_passed_on);
  g_test_add_func ("/pto/choices/trace-below", test_trace_below);
  return g_test_run ();
}
