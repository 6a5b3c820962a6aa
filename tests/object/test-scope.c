/* test-scope.c: does a scope end however what is in it is left?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

typedef struct
{
  const char *name;
  guint level;
  gboolean isolate;
  const char *backend; /* NULL: its own */
} Place;

typedef struct
{
  PtoWorker *worker;
  char *dir;
  PtoCallable *fill;         /* of a chip */
  PtoCallableHandle *handle; /* of a level */
  PtoBuffer *buffer;
  PtoTensor *tensor;
} Fixture;

static gboolean
do_nothing (PtoTaskArgs *args, gpointer data, GError **error)
{
  return TRUE;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  const Place *place = data;
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->buffer = pto_buffer_new (4 * sizeof (float), &error);
  g_assert_no_error (error);
  fixture->tensor = object_test_vector (fixture->buffer);
  fixture->worker = g_object_new (PTO_TYPE_WORKER, "level", place->level, "isolate", place->isolate,
                                  "n-sub-workers", place->level > 2 ? 1 : 0, NULL);
  if (place->backend != NULL)
    pto_worker_set_parameter (fixture->worker, "backend", place->backend, &error);
  g_assert_no_error (error);
  if (place->level > 2)
    fixture->handle = level_test_register (fixture->worker, "nothing", do_nothing);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  pto_worker_close (fixture->worker);
  g_object_unref (fixture->worker);
  g_clear_pointer (&fixture->handle, pto_callable_handle_unref);
  g_object_unref (fixture->fill);
  pto_tensor_unref (fixture->tensor);
  pto_buffer_unref (fixture->buffer);
  object_test_remove_dir (fixture->dir);
}

static gboolean
submit (PtoOrchestrator *orchestrator, Fixture *fixture, GError **error)
{
  if (fixture->handle != NULL)
    return level_test_submit (orchestrator, fixture->handle, fixture->tensor, PTO_DIRECTION_INPUT,
                              0, -1, error);
  return pto_orchestrator_submit_full (orchestrator, fixture->fill, error,
                                       PTO_OUT_EXISTING (fixture->tensor), PTO_SCALAR_FLOAT (1),
                                       NULL);
}

static gboolean
two_and_one_deeper (PtoOrchestrator *orchestrator, gpointer data, GError **error)
{
  return submit (orchestrator, data, error) && submit (orchestrator, data, error)
         && pto_orchestrator_begin_scope (orchestrator, error)
         && submit (orchestrator, data, error);
}

static gboolean
fail_deep_inside (PtoOrchestrator *orchestrator, gpointer data, GError **error)
{
  if (!submit (orchestrator, data, error) || !pto_orchestrator_begin_scope (orchestrator, error))
    return FALSE;
  g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "my own words");
  return FALSE;
}

static gboolean
in_guard (PtoOrchestrator *orchestrator, Fixture *fixture, GError **error)
{
  g_autoptr (PtoScopeGuard) guard = pto_scope_guard_new (orchestrator, error);

  return guard != NULL && submit (orchestrator, fixture, error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Fixture *fixture = data;
  g_autoptr (GError) own = NULL;

  if (!submit (orchestrator, fixture, error)
      || !pto_orchestrator_with_scope (orchestrator, two_and_one_deeper, fixture, error)
      || !submit (orchestrator, fixture, error) || !in_guard (orchestrator, fixture, error)
      || !submit (orchestrator, fixture, error))
    return FALSE;
  g_assert_false (pto_orchestrator_with_scope (orchestrator, fail_deep_inside, fixture, &own));
  g_assert_error (own, G_FILE_ERROR, G_FILE_ERROR_PIPE);
  return submit (orchestrator, fixture, error);
}

/* A task is in the ring of its depth: so what was open at each submit is seen. */
static void
test_depths (Fixture *fixture, gconstpointer data)
{
  const guint64 expected[PTO_N_RINGS] = { 4, 4, 1, 0 };
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  statistics = pto_worker_dup_statistics (fixture->worker);
  for (guint ring = 0; ring < PTO_N_RINGS; ring++)
    g_assert_cmpuint (pto_run_statistics_get_last_task_alive (statistics, ring), ==,
                      expected[ring]);
}

static gboolean
fail_in_scope (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  return pto_orchestrator_with_scope (orchestrator, fail_deep_inside, data, error);
}

/* The run says what the function has said, and nothing of scopes. */
static void
test_error (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (
      pto_worker_run (fixture->worker, fail_in_scope, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_PIPE);
  g_assert_cmpstr (error->message, ==, "my own words");
  g_clear_error (&error);
  pto_worker_run (fixture->worker, graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

/* Left in the middle: the guard ends the scope. */
static gboolean
in_manual_guard (PtoOrchestrator *orchestrator, Fixture *fixture, GError **error)
{
  static const guint64 shape[1] = { 4 };
  g_auto (GValue) value = G_VALUE_INIT;
  g_autoptr (PtoTensor) made = NULL;
  g_autoptr (PtoScopeGuard) guard = pto_manual_scope_guard_new (orchestrator, error);
  g_autoptr (GError) own = NULL;
  guint64 last;

  if (guard == NULL)
    return FALSE;
  made = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, shape, error);
  if (made == NULL)
    return FALSE;
  /* There at once. */
  g_assert_cmpuint (pto_tensor_get_address (made), !=, 0);
  g_value_init (&value, G_TYPE_DOUBLE);
  g_value_set_double (&value, 5);
  if (fixture->handle != NULL)
    {
      g_assert_false (pto_orchestrator_fill (orchestrator, made, &value, &own));
      g_assert_error (own, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
      return TRUE;
    }
  if (!pto_orchestrator_fill (orchestrator, made, &value, error)
      || !pto_orchestrator_fill (orchestrator, fixture->tensor, &value, error))
    return FALSE;
  last = (guint64) pto_orchestrator_get_last_task (orchestrator);
  g_value_set_double (&value, 6);
  return pto_orchestrator_fill_after (orchestrator, fixture->tensor, &value, &last, 1, error);
}

static gboolean
manual_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  /* An ordinary scope behind it, which would be refused inside of it. */
  return in_manual_guard (orchestrator, data, error) && in_guard (orchestrator, data, error);
}

static void
test_manual (Fixture *fixture, gconstpointer data)
{
  const guint64 expected[PTO_N_RINGS] = { 0, fixture->handle != NULL ? 2 : 5, 0, 0 };
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, manual_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  statistics = pto_worker_dup_statistics (fixture->worker);
  for (guint ring = 0; ring < PTO_N_RINGS; ring++)
    g_assert_cmpuint (pto_run_statistics_get_last_task_alive (statistics, ring), ==,
                      expected[ring]);
}

int
main (int argc, char **argv)
{
  static const Place places[]
      = { { "par", 2, FALSE, "par" },         { "det", 2, FALSE, "det" },
          { "threads", 2, FALSE, "threads" }, { "isolated", 2, TRUE, NULL },
          { "level-3", 3, FALSE, NULL },      { "level-4", 4, FALSE, NULL } };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    {
      g_autofree char *depths = g_strdup_printf ("/pto/scope/%s/depths", places[i].name);
      g_autofree char *error = g_strdup_printf ("/pto/scope/%s/error", places[i].name);
      g_autofree char *manual = g_strdup_printf ("/pto/scope/%s/manual", places[i].name);

      g_test_add (depths, Fixture, &places[i], set_up, test_depths, tear_down);
      g_test_add (error, Fixture, &places[i], set_up, test_error, tear_down);
      g_test_add (manual, Fixture, &places[i], set_up, test_manual, tear_down);
    }
  return g_test_run ();
}
