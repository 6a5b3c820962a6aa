/* test-worker.c: does a worker run what it is given, run after run, and what becomes of it in the
 * end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "worker-test.h"

#include <glib/gstdio.h>
#include <string.h>

static void
test_function (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  guint64 ring_tasks = 0;

  g_assert_null (pto_worker_dup_statistics (fixture->worker));
  g_assert_null (pto_worker_ref_trace (fixture->worker));
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);

  statistics = pto_worker_dup_statistics (fixture->worker);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 2);
  g_assert_cmpuint (pto_run_statistics_get_completed (statistics), ==, 2);
  g_assert_cmpuint (pto_run_statistics_get_failed (statistics), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC), ==, 24);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV), ==, 48);
  g_assert_cmpfloat (pto_run_statistics_get_utilization (statistics, PTO_CORE_AIV), <=, 1);
  for (guint ring = 0; ring < PTO_N_RINGS; ring++)
    ring_tasks += pto_run_statistics_get_ring_tasks (statistics, ring);
  g_assert_cmpuint (ring_tasks, <=, 2);
  /* What there is not has none: an answer, not a mistake of the program. */
  g_assert_cmpuint (pto_run_statistics_get_ring_tasks (statistics, PTO_N_RINGS), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_last_task_alive (statistics, PTO_N_RINGS), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_heap_peak (statistics, G_MAXUINT), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (statistics, (PtoCoreType) 2), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_busy_ns (statistics, (PtoCoreType) 2), ==, 0);
  g_assert_cmpfloat (pto_run_statistics_get_utilization (statistics, (PtoCoreType) -1), ==, 0);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
}

static void
test_submit_args (PtoOrchestrator *orchestrator, WorkerTest *fixture, PtoTaskArgs *args)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (PtoTensor) half
      = pto_tensor_view (f, 1, (const guint64[]){ 500 }, (const guint64[]){ 500 }, &error);

  g_assert_no_error (error);
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, f, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, 3);
  g_assert_true (pto_orchestrator_submit (orchestrator, fixture->fill, args, &error));
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, half, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, 4);
  g_assert_true (pto_orchestrator_submit (orchestrator, fixture->fill, args, &error));
  g_assert_no_error (error);
}

static gboolean
graph_with_args (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  g_assert_cmpuint (pto_task_args_get_scalar (args, 0), ==, 99);
  g_assert_cmpint (pto_call_config_get_block_dim (config), ==, 2);
  test_submit_args (orchestrator, data, own);
  return TRUE;
}

static void
test_builder (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();

  pto_task_args_add_scalar (args, 99);
  pto_call_config_set_block_dim (config, 2);
  pto_worker_run (fixture->worker, graph_with_args, fixture, args, config, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[499], ==, 3);
  g_assert_cmpfloat (object_test_floats (fixture->f)[500], ==, 4);
}

/* The same handle on memory that the runtime allocates, in many runs. */
static gboolean
chain (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (PtoTensor) a = object_test_vector (fixture->a);
  PtoTensor *temporary = pto_task_args_get_tensor (args, 0);

  return pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (a), PTO_IN (a),
                                       PTO_OUT (temporary), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (temporary),
                                          PTO_IN (a), PTO_OUT_EXISTING (f), NULL);
}

static void
test_tensor_in_many_runs (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) temporary
      = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 1000 });

  pto_task_args_add_tensor (args, temporary, PTO_DIRECTION_NO_DEP);
  for (guint run = 0; run < 3; run++)
    {
      pto_worker_run (fixture->worker, chain, fixture, args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (fixture->f)[7], ==, 21);
      object_test_floats (fixture->f)[7] = 0;
    }
}

static gboolean
tensor_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (GError) local = NULL;
  g_autoptr (PtoTensor) bad = NULL;
  g_autoptr (PtoTensor) c = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1,
                                                          (const guint64[]){ 1000 }, error);

  if (c == NULL)
    return FALSE;
  bad = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 0 },
                                      &local);
  g_assert_null (bad);
  g_assert_error (local, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  return pto_orchestrator_submit_full (orchestrator, fixture->fill, error, PTO_OUT (c),
                                       PTO_SCALAR (0x40000000), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (c), PTO_IN (c),
                                          PTO_OUT_EXISTING (f), NULL);
}

static void
test_orchestrator_tensor (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, tensor_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[999], ==, 4);
}

/* --- the orchestrator's life --- */

typedef struct
{
  WorkerTest *fixture;
  PtoOrchestrator *kept;
  GError *from_thread;
  GError *from_run;
} Kept;

static gpointer
use_elsewhere (gpointer data)
{
  Kept *kept = data;

  g_assert_false (pto_orchestrator_begin_scope (kept->kept, &kept->from_thread));
  return NULL;
}

static gboolean
keep (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  Kept *kept = data;

  kept->kept = g_object_ref (orchestrator);
  g_thread_join (g_thread_new ("elsewhere", use_elsewhere, kept));
  g_assert_false (pto_worker_run (kept->fixture->worker, worker_test_graph, kept->fixture, NULL,
                                  NULL, NULL, &kept->from_run));
  return TRUE;
}

static void
test_orchestrator_kept (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  Kept kept = { .fixture = fixture };

  pto_worker_run (fixture->worker, keep, &kept, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_error (kept.from_thread, PTO_ERROR, PTO_ERROR_WRONG_THREAD);
  g_assert_error (kept.from_run, PTO_ERROR, PTO_ERROR_BUSY);
  g_assert_false (pto_orchestrator_is_valid (kept.kept));
  g_assert_null (pto_orchestrator_get_worker (kept.kept));

  g_assert_false (pto_orchestrator_begin_scope (kept.kept, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_false (pto_orchestrator_end_scope (kept.kept, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_false (pto_orchestrator_submit (kept.kept, fixture->fill, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_null (
      pto_orchestrator_make_tensor (kept.kept, PTO_DTYPE_BOOL, 1, (const guint64[]){ 1 }, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_error_free (kept.from_thread);
  g_error_free (kept.from_run);
  g_object_unref (kept.kept);
}

static gboolean
use_memory (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  PtoWorker *worker = pto_orchestrator_get_worker (orchestrator);
  guint64 address = pto_worker_malloc (worker, 64, error);

  return address != 0 && pto_worker_free (worker, address, error);
}

static gboolean
close_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  pto_worker_close (pto_orchestrator_get_worker (orchestrator));
  return TRUE;
}

static void
test_close_inside (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, use_memory, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_run (fixture->worker, close_inside, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_CLOSED);
}

static gboolean
cancel_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  g_cancellable_cancel (data);
  return TRUE;
}

static void
test_cancelled (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  g_assert_false (pto_worker_run (fixture->worker, cancel_inside, cancellable, NULL, NULL,
                                  cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL,
                                  cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (pto_worker_start (fixture->worker, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
}

static void
test_closed (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (fixture->worker, fixture->fill, NULL, NULL);

  pto_worker_close (fixture->worker);
  pto_worker_close (fixture->worker);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_CLOSED);
  g_assert_false (
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_false (pto_worker_start (fixture->worker, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_null (pto_worker_register (fixture->worker, fixture->fill, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_false (pto_worker_unregister (fixture->worker, handle, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_cmpuint (pto_worker_malloc (fixture->worker, 64, &error), ==, 0);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_false (pto_worker_set_parameter (fixture->worker, "seed", "1", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
}

/* --- construction and parameters --- */

static void
count_notify (GObject *object, GParamSpec *pspec, gpointer data)
{
  ++*(guint *) data;
}

static void
test_life (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "device-id", 3, NULL);
  g_autofree char *platform = NULL;
  guint level;
  guint device;
  guint changes = 0;
  PtoWorkerState state;

  g_signal_connect (worker, "notify::state", G_CALLBACK (count_notify), &changes);
  g_object_get (worker, "level", &level, "platform", &platform, "device-id", &device, "state",
                &state, NULL);
  g_assert_cmpuint (level, ==, 2);
  g_assert_cmpstr (platform, ==, "a2a3sim");
  g_assert_cmpuint (device, ==, 3);
  g_assert_cmpint (state, ==, PTO_WORKER_STATE_NEW);
  g_assert_cmpuint (pto_worker_get_level (worker), ==, 2);
  g_assert_cmpstr (pto_worker_get_platform (worker), ==, "a2a3sim");
  g_assert_cmpuint (pto_worker_get_device_id (worker), ==, 3);

  /* Whatever becomes of the run, it starts the worker. */
  g_assert_false (
      pto_worker_run (worker, worker_test_fail_silently, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT);
  g_clear_error (&error);
  g_assert_cmpint (pto_worker_get_state (worker), ==, PTO_WORKER_STATE_READY);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (pto_worker_start (worker, NULL, &error));
  g_assert_cmpint (pto_worker_get_state (worker), ==, PTO_WORKER_STATE_READY);
  g_assert_cmpuint (changes, ==, 1);
  pto_worker_close (worker);
  g_assert_cmpuint (changes, ==, 2);
}

static void
test_construction_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = NULL;

  g_assert_null (pto_worker_new (1, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "level 1");
  object_test_assert_contains (error->message, "2 is one chip");
  g_clear_error (&error);
  g_assert_null (pto_worker_new_chip ("a9sim", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  worker = g_object_new (PTO_TYPE_WORKER, "platform", "a9sim", "level", 2, NULL);
  g_assert_false (pto_worker_start (worker, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
}

static void
test_parameters (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new (2, "a2a3sim", &error);
  g_auto (GStrv) names = pto_worker_list_parameters ();
  g_autofree char *value = NULL;

  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (names), >=, 10);
  for (guint i = 0; names[i] != NULL; i++)
    {
      g_autofree char *each = pto_worker_dup_parameter (worker, names[i], &error);

      g_assert_no_error (error);
      g_assert_nonnull (each);
      g_assert_nonnull (pto_worker_describe_parameter (names[i]));
    }
  g_assert_true (pto_worker_set_parameter (worker, "task-window", "16", &error));
  value = pto_worker_dup_parameter (worker, "task-window", &error);
  g_assert_cmpstr (value, ==, "16");
  g_assert_cmpstr (pto_worker_get_parameter_variable ("task-window"), ==, "PTO2_RING_TASK_WINDOW");
  g_assert_null (pto_worker_describe_parameter ("nothing"));
  g_assert_null (pto_worker_get_parameter_variable ("nothing"));
  g_assert_true (pto_worker_set_parameter (worker, "backend", "det", &error));
  g_assert_cmpint (pto_worker_get_backend (worker), ==, PTO_BACKEND_DET);

  g_assert_false (pto_worker_set_parameter (worker, "task-window", "17", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "task-window");
  g_clear_error (&error);
  g_assert_false (pto_worker_set_parameter (worker, "nothing", "1", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_worker_dup_parameter (worker, "nothing", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "task-window");
  g_clear_error (&error);

  g_assert_true (pto_worker_start (worker, NULL, &error));
  g_assert_false (pto_worker_set_parameter (worker, "task-window", "32", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_false (pto_worker_set_parameter (worker, "nothing", "1", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static void
test_environment (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = NULL;
  g_autoptr (PtoWorker) unready = NULL;
  g_autofree char *value = NULL;

  g_setenv ("PTO2_RING_TASK_WINDOW", "64", TRUE);
  worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  value = pto_worker_dup_parameter (worker, "task-window", &error);
  g_assert_cmpstr (value, ==, "64");
  g_setenv ("PTO2_RING_TASK_WINDOW", "sixty", TRUE);
  g_assert_null (pto_worker_new_chip (NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  unready = g_object_new (PTO_TYPE_WORKER, NULL);
  g_assert_false (pto_worker_start (unready, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_unsetenv ("PTO2_RING_TASK_WINDOW");
}

/* --- device memory --- */

static void
test_memory (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) sent = g_bytes_new_static ("0123456789", 10);
  g_autoptr (GBytes) received = NULL;
  char text[11] = "";
  guint64 address = pto_worker_malloc (fixture->worker, 10, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (address % 64, ==, 0);
  g_assert_true (pto_worker_copy_to (fixture->worker, address, sent, &error));
  received = pto_worker_copy_from (fixture->worker, address, 10, &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (received, sent));
  g_assert_true (pto_worker_copy_to_address (fixture->worker, address + 3,
                                             (guint64) (guintptr) "abc", 3, &error));
  g_assert_true (pto_worker_copy_from_address (fixture->worker, (guint64) (guintptr) text, address,
                                               10, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, "012abc6789");

  g_assert_null (pto_worker_copy_from (fixture->worker, address + 1, 4096, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_false (pto_worker_free (fixture->worker, address + 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_true (pto_worker_free (fixture->worker, address, &error));
  g_assert_no_error (error);
  g_assert_false (pto_worker_free (fixture->worker, address, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_cmpuint (pto_worker_malloc (fixture->worker, G_MAXINT64, &error), ==, 0);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY);
}

/* --- records --- */

static void
test_swimlane (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (PtoTrace) again = NULL;
  g_autofree char *prefix = g_build_filename (fixture->dir, "run-", NULL);
  g_autofree char *path = g_strconcat (prefix, "swimlane.json", NULL);
  g_autofree char *text = NULL;

  pto_call_config_set_enable_l2_swimlane (config, 1);
  pto_call_config_set_output_prefix (config, prefix);
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, config, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  object_test_assert_contains (text, "traceEvents");
  trace = pto_worker_ref_trace (fixture->worker);
  again = pto_worker_ref_trace (fixture->worker);
  g_assert_true (PTO_IS_TRACE (trace));
  g_assert_true (trace == again);

  pto_call_config_set_output_prefix (config, "/nonexistent/nowhere/at/all/");
  g_assert_false (
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, config, NULL, &error));
  g_assert_nonnull (error);
  object_test_assert_contains (error->message, "/nonexistent/nowhere/at/all/");
  g_clear_error (&error);

  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
}

/* --- endurance --- */

static guint
count_entries (const char *dir)
{
  g_autoptr (GDir) entries = g_dir_open (dir, 0, NULL);
  guint n = 0;

  g_assert_nonnull (entries);
  while (g_dir_read_name (entries) != NULL)
    n++;
  return n;
}

static guint
count_mappings (void)
{
  g_autofree char *text = NULL;
  guint n = 0;

  g_assert_true (g_file_get_contents ("/proc/self/maps", &text, NULL, NULL));
  for (const char *p = text; *p != '\0'; p++)
    n += *p == '\n';
  return n;
}

static void
test_thousand_runs (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  guint descriptors = 0;
  guint threads = 0;
  guint mappings = 0;

  g_assert_no_error (error);
  for (guint run = 0; run < 1000; run++)
    {
      if (run == 100)
        {
          descriptors = count_entries ("/proc/self/fd");
          threads = count_entries ("/proc/self/task");
          mappings = count_mappings ();
        }
      if (run % 2 == 0)
        pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
      else
        pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, &error);
      g_assert_no_error (error);
    }
  /* What the compilation before had open may be closed late, by a thread of GLib. */
  g_assert_cmpuint (count_entries ("/proc/self/fd"), <=, descriptors);
  g_assert_cmpuint (count_entries ("/proc/self/task"), <=, threads);
#ifndef __SANITIZE_THREAD__ /* which maps what it notes */
  /* The heap may grow by a piece, whatever the number of runs. */
  g_assert_cmpuint (count_mappings (), <=, mappings + 4);
#else
  (void) mappings;
#endif
}

static void
test_repeated_registrations (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  guint mappings = 0;

  for (guint i = 0; i < 20; i++)
    {
      g_autoptr (PtoCallableHandle) handle
          = pto_worker_register (fixture->worker, fixture->fill, NULL, &error);

      g_assert_no_error (error);
      g_assert_true (pto_worker_unregister (fixture->worker, handle, &error));
      if (i == 4)
        mappings = count_mappings ();
    }
  g_assert_cmpuint (count_mappings (), <=, mappings + 4);
}

/* Fill it with a number, with what args says beside that. Gives what the task is called. */
static guint64
submit_fill (WorkerTest *fixture, PtoOrchestrator *orchestrator, PtoTaskArgs *args,
             PtoBuffer *buffer, double value)
{
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
  g_autoptr (GError) error = NULL;

  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, value);
  pto_orchestrator_submit (orchestrator, fixture->fill, args, &error);
  g_assert_no_error (error);
  pto_task_args_reset (args);
  return (guint64) pto_orchestrator_get_last_task (orchestrator);
}

static gboolean
submit_with_terms (PtoOrchestrator *orchestrator, PtoTaskArgs *given, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) condition = object_test_vector (fixture->a);
  guint64 id;

  g_assert_cmpint (pto_orchestrator_get_last_task (orchestrator), ==, -1);
  id = submit_fill (fixture, orchestrator, args, fixture->f, 5);
  g_assert_cmphex (id, ==, 0);
  pto_task_args_add_after (args, id);
  if (!pto_orchestrator_submit_order (orchestrator, args, error))
    return FALSE;
  g_assert_cmpint (pto_orchestrator_get_last_task (orchestrator), ==, 1);
  pto_task_args_reset (args);
  /* The first element is 0, the second 1. */
  pto_task_args_add_after (args, 1);
  pto_task_args_set_condition (args, condition, 1, (const guint64[]){ 0 });
  submit_fill (fixture, orchestrator, args, fixture->f, 6);
  if (!pto_orchestrator_begin_scope (orchestrator, error))
    return FALSE;
  pto_task_args_set_condition (args, condition, 1, (const guint64[]){ 1 });
  id = submit_fill (fixture, orchestrator, args, fixture->b, 7);
  g_assert_cmphex (id, ==, G_GUINT64_CONSTANT (1) << 32);
  return pto_orchestrator_end_scope (orchestrator, error);
}

static void
test_terms (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, submit_with_terms, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[999], ==, 5);
  g_assert_cmpfloat (object_test_floats (fixture->b)[999], ==, 7);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/worker/life", test_life);
  g_test_add_func ("/pto/worker/construction-refused", test_construction_refused);
  g_test_add_func ("/pto/worker/parameters", test_parameters);
  g_test_add_func ("/pto/worker/environment", test_environment);
  WORKER_TEST_ADD ("/pto/worker/function", test_function);
  WORKER_TEST_ADD ("/pto/worker/terms", test_terms);
  WORKER_TEST_ADD ("/pto/worker/builder", test_builder);
  WORKER_TEST_ADD ("/pto/worker/tensor-in-many-runs", test_tensor_in_many_runs);
  WORKER_TEST_ADD ("/pto/worker/orchestrator-tensor", test_orchestrator_tensor);
  WORKER_TEST_ADD ("/pto/worker/orchestrator-kept", test_orchestrator_kept);
  WORKER_TEST_ADD ("/pto/worker/close-inside", test_close_inside);
  WORKER_TEST_ADD ("/pto/worker/cancelled", test_cancelled);
  WORKER_TEST_ADD ("/pto/worker/closed", test_closed);
  WORKER_TEST_ADD ("/pto/worker/memory", test_memory);
  WORKER_TEST_ADD ("/pto/worker/swimlane", test_swimlane);
  WORKER_TEST_ADD ("/pto/worker/thousand-runs", test_thousand_runs);
  WORKER_TEST_ADD ("/pto/worker/repeated-registrations", test_repeated_registrations);
  return g_test_run ();
}
