/* test-level-graph.c: can a program capture what it gives to workers below, and launch it anywhere?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>

#define N 4u

/* The second = 2 * the first + a number. */
static gboolean
twice (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *from = level_test_words (args, 0);
  _Atomic guint64 *to = level_test_words (args, 1);

  for (guint i = 0; i < N; i++)
    atomic_store (&to[i], 2 * atomic_load (&from[i]) + pto_task_args_get_scalar (args, 2));
  return TRUE;
}

typedef struct
{
  PtoCallable *twice;
  PtoCallable *fill; /* of a chip: all elements are the number */
  PtoCallableHandle *sub;
  PtoCallableHandle *chip;
  PtoBuffer *buffers[2];
  PtoTensor *tensors[2];
  PtoTaskArgs *args;
  char *dir;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->twice = pto_sub_function_new ("twice", twice, NULL, NULL);
  fixture->fill = level_test_fill (fixture->dir);
  fixture->args = pto_task_args_new ();
  for (guint i = 0; i < 2; i++)
    {
      fixture->buffers[i] = pto_buffer_new (N * sizeof (guint64), &error);
      g_assert_no_error (error);
      fixture->tensors[i]
          = pto_tensor_new_for_buffer (fixture->buffers[i], 0, PTO_DTYPE_UINT64, 1, shape, &error);
      g_assert_no_error (error);
      pto_task_args_add_tensor (fixture->args, fixture->tensors[i],
                                i == 0 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_OUTPUT_EXISTING);
    }
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_clear_pointer (&fixture->sub, pto_callable_handle_unref);
  g_clear_pointer (&fixture->chip, pto_callable_handle_unref);
  for (guint i = 0; i < 2; i++)
    {
      pto_tensor_unref (fixture->tensors[i]);
      pto_buffer_unref (fixture->buffers[i]);
    }
  pto_task_args_unref (fixture->args);
  g_object_unref (fixture->twice);
  g_object_unref (fixture->fill);
  object_test_remove_dir (fixture->dir);
}

static PtoWorker *
new_host (Fixture *fixture, PtoChildMode mode)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 2, "child-mode",
                                  mode, "device-ids", g_variant_new_parsed ("[uint32 0]"), NULL);

  g_clear_pointer (&fixture->sub, pto_callable_handle_unref);
  g_clear_pointer (&fixture->chip, pto_callable_handle_unref);
  fixture->chip = pto_worker_register (host, fixture->fill, NULL, &error);
  g_assert_no_error (error);
  fixture->sub = pto_worker_register (host, fixture->twice, NULL, &error);
  g_assert_no_error (error);
  return host;
}

static gboolean
submit_twice (PtoOrchestrator *orchestrator, PtoCallableHandle *handle, PtoTensor *from,
              PtoTensor *to, PtoDirection direction, guint64 number, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, from, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, to, direction);
  pto_task_args_add_scalar (args, number);
  return pto_orchestrator_submit_sub (orchestrator, handle, args, -1, error);
}

/* [1] = 2 * (2 * [0] + 1) + 7, of which a chip has filled the 7 */
static gboolean
submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Fixture *fixture = data;
  const guint64 shape[1] = { N };
  g_autoptr (PtoTensor) made
      = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_UINT64, 1, shape, error);
  g_autoptr (PtoTensor) room
      = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_UINT64, 1, shape, error);

  g_assert_nonnull (made);
  g_assert_nonnull (room);
  return submit_twice (orchestrator, fixture->sub, pto_task_args_get_tensor (args, 0), made,
                       PTO_DIRECTION_OUTPUT, 1, error)
         && level_test_submit (orchestrator, fixture->chip, room, PTO_DIRECTION_OUTPUT_EXISTING, 7,
                               -1, error)
         && submit_twice (orchestrator, fixture->sub, made, room, PTO_DIRECTION_INOUT, 7, error)
         && submit_twice (orchestrator, fixture->sub, room, pto_task_args_get_tensor (args, 1),
                          PTO_DIRECTION_OUTPUT_EXISTING, 0, error);
}

static guint64
expect (guint64 value)
{
  return 2 * (2 * (2 * value + 1) + 7);
}

static PtoGraph *
capture (Fixture *fixture, PtoChildMode mode)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = new_host (fixture, mode);
  PtoGraph *graph = pto_worker_capture (host, submit, fixture, fixture->args, NULL, NULL, &error);

  g_assert_no_error (error);
  /* It needs neither the worker nor what was registered there. */
  pto_worker_close (host);
  g_assert_finalize_object (host);
  return graph;
}

static guint64 *
get_words (PtoBuffer *buffer)
{
  return (guint64 *) (guintptr) pto_buffer_get_address (buffer);
}

static void
test_launched (Fixture *fixture, gconstpointer data)
{
  PtoChildMode mode = (PtoChildMode) GPOINTER_TO_INT (data);
  LevelTestState state;
  g_autoptr (GError) error = NULL;
  PtoGraph *graph;
  PtoWorker *host;
  g_autofree char *text = NULL;

  level_test_begin (&state);
  graph = capture (fixture, mode);
  text = pto_graph_to_string (graph);
  g_assert_cmpstr (text, ==, "5 tasks of 2 callables, 2 arguments");
  host = new_host (fixture, mode);
  pto_worker_set_parameter (host, "trace", "1", &error);
  for (guint i = 0; i < 100; i++)
    {
      g_autoptr (PtoRunStatistics) statistics = NULL;
      g_autoptr (PtoTrace) trace = NULL;

      for (guint k = 0; k < N; k++)
        get_words (fixture->buffers[0])[k] = i + k;
      g_assert_true (pto_worker_run_graph (host, graph, fixture->args, NULL, NULL, &error));
      g_assert_no_error (error);
      for (guint k = 0; k < N; k++)
        g_assert_cmpuint (get_words (fixture->buffers[1])[k], ==, expect (i + k));
      statistics = pto_worker_dup_statistics (host);
      g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 5);
      trace = pto_worker_ref_trace (host);
      g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 5);
    }
  pto_worker_close (host);
  g_assert_finalize_object (host);
  g_assert_finalize_object (graph);
  level_test_end (&state);
}

static void
on_launched (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (pto_worker_run_graph_finish (PTO_WORKER (source), result, &error));
  g_assert_no_error (error);
  ++*(guint *) data;
}

static void
test_async (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoGraph) graph = capture (fixture, PTO_CHILD_MODE_PROCESS);
  PtoWorker *host = new_host (fixture, PTO_CHILD_MODE_PROCESS);
  guint done = 0;

  get_words (fixture->buffers[0])[2] = 9;
  for (guint i = 0; i < 3; i++)
    pto_worker_run_graph_async (host, graph, fixture->args, NULL, NULL, on_launched, &done);
  while (done < 3)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (get_words (fixture->buffers[1])[2], ==, expect (9));
  pto_worker_close (host);
  g_object_unref (host);
}

static void
test_cancelled (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoGraph) graph = capture (fixture, PTO_CHILD_MODE_PROCESS);
  PtoWorker *host = new_host (fixture, PTO_CHILD_MODE_PROCESS);

  level_test_cancel_graph (host, graph, fixture->args, submit, fixture);
  pto_worker_close (host);
  g_object_unref (host);
}

static gboolean
submit_kept (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Fixture *fixture = data;
  const guint64 shape[1] = { N };
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (N * sizeof (guint64), error);
  g_autoptr (PtoTensor) other
      = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_UINT64, 1, shape, error);

  return submit_twice (orchestrator, fixture->sub, other, pto_task_args_get_tensor (args, 1),
                       PTO_DIRECTION_OUTPUT_EXISTING, 1, error);
}

static void
assert_refused (GError **error, PtoError code, const char *words)
{
  g_assert_error (*error, PTO_ERROR, (int) code);
  object_test_assert_contains ((*error)->message, words);
  g_clear_error (error);
}

static void
test_refused (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = capture (fixture, PTO_CHILD_MODE_PROCESS);
  g_autoptr (PtoGraph) by_hand = pto_graph_new ();
  PtoWorker *host = new_host (fixture, PTO_CHILD_MODE_PROCESS);
  PtoWorker *chip = object_test_worker ();
  g_autoptr (PtoGraph) none = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autofree guint64 *private = g_new0 (guint64, N);
  const guint64 shape[1] = { N };
  g_autoptr (PtoTensor) unseen
      = pto_tensor_new_external ((guint64) (guintptr) private, PTO_DTYPE_UINT64, 1, shape);

  none = pto_worker_capture (host, submit_kept, fixture, fixture->args, NULL, NULL, &error);
  g_assert_null (none);
  assert_refused (&error, PTO_ERROR_INVALID_ARGS,
                  "task 0 (\"twice\"): argument 0 lies in memory that is no argument of the run");
  g_assert_cmpint (pto_graph_add_task (by_hand, fixture->twice, NULL, &error), ==, -1);
  assert_refused (&error, PTO_ERROR_INVALID_ARGS,
                  "task 0: \"twice\" is a function for a SUB worker, and a task that is added by "
                  "hand runs a kernel");
  g_assert_false (pto_worker_run_graph (chip, graph, fixture->args, NULL, NULL, &error));
  assert_refused (&error, PTO_ERROR_NOT_SUPPORTED, "the tasks of this graph are for workers");
  g_assert_false (pto_worker_run_graph (host, graph, NULL, NULL, NULL, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "takes 2 arguments, but 0 are given");
  pto_task_args_add_tensor (args, fixture->tensors[0], PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, unseen, PTO_DIRECTION_OUTPUT_EXISTING);
  g_assert_false (pto_worker_run_graph (host, graph, args, NULL, NULL, &error));
  assert_refused (&error, PTO_ERROR_NOT_SHARED, "graph: argument 1 lies in private memory");
  g_assert_true (pto_worker_unregister (host, fixture->chip, &error));
  g_assert_false (pto_worker_run_graph (host, graph, fixture->args, NULL, NULL, &error));
  assert_refused (&error, PTO_ERROR_NOT_FOUND, "is not registered on L3/0: register it there");
  pto_callable_handle_unref (fixture->chip);
  fixture->chip = pto_worker_register (host, fixture->fill, NULL, &error);
  g_assert_true (pto_worker_run_graph (host, graph, fixture->args, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (get_words (fixture->buffers[1])[0], ==,
                    expect (get_words (fixture->buffers[0])[0]));
  pto_worker_close (host);
  g_object_unref (host);
  pto_worker_close (chip);
  g_object_unref (chip);

  /* By the name that it had. */
  host = level_test_host (3, 0, 2);
  pto_callable_handle_unref (fixture->sub);
  fixture->sub = pto_worker_register (host, fixture->twice, NULL, &error);
  pto_callable_handle_unref (fixture->chip);
  fixture->chip = pto_worker_register (host, fixture->fill, NULL, &error);
  g_assert_no_error (error);
  pto_callable_set_name (fixture->fill, "another");
  g_assert_false (pto_worker_run_graph (host, graph, fixture->args, NULL, NULL, &error));
  assert_refused (&error, PTO_ERROR_NOT_FOUND,
                  "task 2 of the graph: \"fill_orch\" is for chips, and L3/0 has none");
  pto_worker_close (host);
  g_object_unref (host);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/pto/level-graph/launched/processes", Fixture,
              GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS), set_up, test_launched, tear_down);
  g_test_add ("/pto/level-graph/launched/threads", Fixture, GINT_TO_POINTER (PTO_CHILD_MODE_THREAD),
              set_up, test_launched, tear_down);
  g_test_add ("/pto/level-graph/async", Fixture, NULL, set_up, test_async, tear_down);
  g_test_add ("/pto/level-graph/cancelled", Fixture, NULL, set_up, test_cancelled, tear_down);
  g_test_add ("/pto/level-graph/refused", Fixture, NULL, set_up, test_refused, tear_down);
  return g_test_run ();
}
