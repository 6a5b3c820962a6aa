/* test-async.c: do asynchronous runs end where and when they should?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <string.h>

/* Does not return before the main loop has written to its tensor. */
static const char hold[] = "#include \"tensor.h\"\n"
                           "#include <sched.h>\n"
                           "void kernel_entry (int64_t *args)\n"
                           "{\n"
                           "  const TensorData *f = (const TensorData *) args[0];\n"
                           "  volatile float *r = (float *) f->buffer.addr + f->start_offset;\n"
                           "  while (r[0] == 0)\n"
                           "    sched_yield ();\n"
                           "}\n";

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *fill;
  PtoBuffer *f;
  GMainContext *context;
  GThread *thread; /* where functions, callbacks and destroy notifications belong */
  guint begun;
  guint destroyed;
  guint finished;
  GError *error; /* of the run that finished last */
  gboolean timed_out;
  GCancellable *cancellable;

  /* For a function that waits. */
  PtoCallable *hold;
  PtoBuffer *held;
  PtoOrchestrator *waiting; /* while it is called */
  guint turns;              /* of the main loop meanwhile */
  gboolean cancels;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->context = g_main_context_new ();
  g_main_context_push_thread_default (fixture->context);
  fixture->dir = object_test_make_dir ();
  fixture->worker = object_test_worker ();
  fixture->fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->f = pto_buffer_new (1000 * sizeof (float), NULL);
  fixture->thread = g_thread_self ();
  fixture->cancellable = g_cancellable_new ();
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  while (g_main_context_iteration (fixture->context, FALSE))
    ;
  if (fixture->worker != NULL)
    {
      g_object_add_weak_pointer (G_OBJECT (fixture->worker), (gpointer *) &fixture->worker);
      g_object_unref (fixture->worker);
      g_assert_null (fixture->worker);
    }
  g_object_unref (fixture->fill);
  g_object_unref (fixture->cancellable);
  pto_buffer_unref (fixture->f);
  g_clear_error (&fixture->error);
  object_test_remove_dir (fixture->dir);
  g_main_context_pop_thread_default (fixture->context);
  g_main_context_unref (fixture->context);
}

static gboolean
time_out (gpointer data)
{
  Fixture *fixture = data;

  fixture->timed_out = TRUE;
  return G_SOURCE_REMOVE;
}

/* Until so many runs have finished. */
static void
wait_for (Fixture *fixture, guint n)
{
  GSource *source = g_timeout_source_new_seconds (60);

  g_source_set_callback (source, time_out, fixture, NULL);
  g_source_attach (source, fixture->context);
  while (fixture->finished < n && !fixture->timed_out)
    g_main_context_iteration (fixture->context, TRUE);
  g_source_destroy (source);
  g_source_unref (source);
  g_assert_false (fixture->timed_out);
}

static void
finished (GObject *object, GAsyncResult *result, gpointer data)
{
  Fixture *fixture = data;

  g_assert_true (g_thread_self () == fixture->thread);
  g_clear_error (&fixture->error);
  pto_worker_run_finish (PTO_WORKER (object), result, &fixture->error);
  fixture->finished++;
}

static void
callable_finished (GObject *object, GAsyncResult *result, gpointer data)
{
  Fixture *fixture = data;

  g_assert_true (g_thread_self () == fixture->thread);
  g_clear_error (&fixture->error);
  pto_worker_run_callable_finish (PTO_WORKER (object), result, &fixture->error);
  fixture->finished++;
}

static void
destroyed (gpointer data)
{
  Fixture *fixture = data;

  g_assert_true (g_thread_self () == fixture->thread);
  fixture->destroyed++;
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (PtoTensor) c = NULL;
  guint64 address;

  g_assert_true (g_thread_self () == fixture->thread);
  fixture->begun++;
  if (!pto_orchestrator_begin_scope (orchestrator, error))
    return FALSE;
  c = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 10 },
                                    error);
  if (c == NULL)
    return FALSE;
  for (guint i = 0; i < 100; i++)
    if (!pto_orchestrator_submit_full (orchestrator, fixture->fill, error, PTO_OUT_EXISTING (f),
                                       PTO_SCALAR (pto_task_args_get_scalar (args, 0)), NULL))
      return FALSE;
  /* Device memory can be used in between. */
  address = pto_worker_malloc (pto_orchestrator_get_worker (orchestrator), 64, error);
  if (address == 0 || !pto_worker_free (pto_orchestrator_get_worker (orchestrator), address, error))
    return FALSE;
  return pto_orchestrator_end_scope (orchestrator, error);
}

static PtoTaskArgs *
scalar_args (float value)
{
  PtoTaskArgs *args = pto_task_args_new ();

  pto_task_args_add_scalar_float (args, value);
  return args;
}

static void
start (Fixture *fixture, PtoOrchestrationFunc func, float value)
{
  g_autoptr (PtoTaskArgs) args = scalar_args (value);

  pto_worker_run_async (fixture->worker, func, fixture, destroyed, args, NULL, fixture->cancellable,
                        finished, fixture);
  /* The run has its own copy. */
  pto_task_args_reset (args);
}

static void
test_function (Fixture *fixture, gconstpointer data)
{
  start (fixture, graph, 5);
  g_assert_cmpuint (fixture->begun, ==, 0);
  wait_for (fixture, 1);
  g_assert_no_error (fixture->error);
  g_assert_cmpuint (fixture->begun, ==, 1);
  g_assert_cmpuint (fixture->destroyed, ==, 1);
  g_assert_cmpfloat (object_test_floats (fixture->f)[999], ==, 5);
}

static void
test_several (Fixture *fixture, gconstpointer data)
{
  for (guint i = 0; i < 10; i++)
    start (fixture, graph, (float) i);
  wait_for (fixture, 10);
  g_assert_no_error (fixture->error);
  g_assert_cmpuint (fixture->destroyed, ==, 10);
  g_assert_cmpfloat (object_test_floats (fixture->f)[0], ==, 9);
}

static PtoCallableHandle *
register_chip (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "orch.c", object_test_orchestration);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
  PtoCallableHandle *handle;

  g_assert_no_error (error);
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL,
                                                    fixture->fill, &error));
  handle = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_assert_no_error (error);
  return handle;
}

static void
test_callable (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallableHandle) handle = register_chip (fixture);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);

  pto_task_args_add_tensor (args, f, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, 1000);
  pto_worker_run_callable_async (fixture->worker, handle, args, NULL, NULL, callable_finished,
                                 fixture);
  wait_for (fixture, 1);
  g_assert_no_error (fixture->error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[999], ==, 7);

  /* Wrong arguments are told in the same way. */
  pto_task_args_add_scalar (args, 1);
  pto_worker_run_callable_async (fixture->worker, handle, args, NULL, NULL, callable_finished,
                                 fixture);
  wait_for (fixture, 2);
  g_assert_error (fixture->error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static gboolean
fail (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_AGAIN, "my own words");
  return FALSE;
}

static void
test_function_fails (Fixture *fixture, gconstpointer data)
{
  start (fixture, fail, 0);
  wait_for (fixture, 1);
  g_assert_error (fixture->error, G_FILE_ERROR, G_FILE_ERROR_AGAIN);
  start (fixture, graph, 6);
  wait_for (fixture, 2);
  g_assert_no_error (fixture->error);
}

static void
test_cancelled_before (Fixture *fixture, gconstpointer data)
{
  start (fixture, graph, 5);
  g_cancellable_cancel (fixture->cancellable);
  wait_for (fixture, 1);
  g_assert_error (fixture->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (fixture->begun, ==, 0);
  g_assert_cmpuint (fixture->destroyed, ==, 1);
}

static gboolean
cancel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Fixture *fixture = data;

  g_cancellable_cancel (fixture->cancellable);
  g_assert_false (graph (orchestrator, args, config, data, error));
  g_assert_error (*error, PTO_ERROR, PTO_ERROR_RUN_FAILED);
  return FALSE;
}

/* The run's own error wins over the one that it caused in the function. */
static void
test_cancelled_inside (Fixture *fixture, gconstpointer data)
{
  g_assert_true (pto_worker_get_state (fixture->worker) == PTO_WORKER_STATE_READY);
  start (fixture, cancel, 5);
  wait_for (fixture, 1);
  g_assert_error (fixture->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* The ring of a scope is full until the main loop lets the kernel at its begin return. */
static gboolean
wait_for_loop (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) held = object_test_vector (fixture->held);
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  gboolean ok = TRUE;

  fixture->begun++;
  fixture->waiting = orchestrator;
  for (guint i = 0; i < 200 && ok; i++)
    ok = pto_orchestrator_begin_scope (orchestrator, error)
         && (i == 0 ? pto_orchestrator_submit_full (orchestrator, fixture->hold, error,
                                                    PTO_INOUT (held), NULL)
                    : pto_orchestrator_submit_full (
                        orchestrator, fixture->fill, error, PTO_OUT_EXISTING (f),
                        PTO_SCALAR (pto_task_args_get_scalar (args, 0)), NULL))
         && pto_orchestrator_end_scope (orchestrator, error);
  fixture->waiting = NULL;
  return ok;
}

/* In the main loop, every millisecond. */
static gboolean
take_turn (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (PtoTensor) f = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (g_thread_self () == fixture->thread);
  if (fixture->waiting == NULL)
    return G_SOURCE_CONTINUE;
  fixture->turns++;
  /* The function's call is under way. */
  f = object_test_vector (fixture->f);
  g_assert_false (pto_orchestrator_begin_scope (fixture->waiting, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
  g_clear_error (&error);
  /* What waits for the function is refused, as before. */
  g_assert_false (pto_worker_run (fixture->worker, graph, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
  if (fixture->turns < 3)
    return G_SOURCE_CONTINUE;
  /* Another run comes after it. */
  start (fixture, graph, 7);
  if (fixture->cancels)
    g_cancellable_cancel (fixture->cancellable);
  object_test_floats (fixture->held)[0] = 1;
  return G_SOURCE_REMOVE;
}

static void
run_while_loop_goes_on (Fixture *fixture, gboolean cancels)
{
  g_autoptr (GError) error = NULL;
  GSource *source = g_timeout_source_new (1);

  g_object_unref (fixture->worker);
  fixture->worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_worker_set_parameter (fixture->worker, "task-window", "128", &error));
  fixture->cancels = cancels;
  fixture->hold = object_test_kernel (fixture->dir, "hold.c", hold);
  fixture->held = pto_buffer_new (64, NULL);
  g_source_set_callback (source, take_turn, fixture, NULL);
  g_source_attach (source, fixture->context);
  start (fixture, wait_for_loop, 5);
  wait_for (fixture, 2);
  g_source_destroy (source);
  g_source_unref (source);
  g_assert_cmpuint (fixture->turns, ==, 3);
  g_assert_cmpuint (fixture->destroyed, ==, 2);
  g_object_unref (fixture->hold);
  pto_buffer_unref (fixture->held);
}

/* Nothing else lets the kernel return, so a loop that stands would end in the timeout. */
static void
test_loop_goes_on (Fixture *fixture, gconstpointer data)
{
  run_while_loop_goes_on (fixture, FALSE);
  g_assert_no_error (fixture->error);
  g_assert_cmpuint (fixture->begun, ==, 2);
  g_assert_cmpfloat (object_test_floats (fixture->f)[0], ==, 7);
}

/* A button that cancels works while the function waits; it is the next run's, too. */
static void
test_loop_cancels (Fixture *fixture, gconstpointer data)
{
  run_while_loop_goes_on (fixture, TRUE);
  g_assert_error (fixture->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (fixture->begun, ==, 1);
}

static void
test_synchronous_run_refused (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 deadline = g_get_monotonic_time () + 60 * G_TIME_SPAN_SECOND;
  gboolean refused = FALSE;

  start (fixture, graph, 5);
  /* The function waits for this context, which is not iterated: no synchronous run may wait for it.
   * Until the worker's thread has taken the chip one can still come first. */
  while (!refused && g_get_monotonic_time () < deadline)
    {
      guint64 address = pto_worker_malloc (fixture->worker, 64, &error);

      if (address != 0)
        g_assert_true (pto_worker_free (fixture->worker, address, NULL)
                       || pto_worker_get_state (fixture->worker) == PTO_WORKER_STATE_READY);
      else
        {
          g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
          refused = TRUE;
        }
    }
  g_assert_true (refused);
  wait_for (fixture, 1);
  g_assert_no_error (fixture->error);
}

static void
test_closed (Fixture *fixture, gconstpointer data)
{
  for (guint i = 0; i < 3; i++)
    start (fixture, graph, 5);
  /* The first waits for this context, the others for the first. */
  pto_worker_close (fixture->worker);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_CLOSED);
  wait_for (fixture, 3);
  g_assert_error (fixture->error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpuint (fixture->destroyed, ==, 3);
  g_assert_cmpuint (fixture->begun, ==, 0);
  start (fixture, graph, 5);
  wait_for (fixture, 4);
  g_assert_error (fixture->error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpuint (fixture->destroyed, ==, 4);
}

static gboolean
close_worker (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Fixture *fixture = data;

  pto_worker_close (fixture->worker);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_READY);
  return TRUE;
}

static void
test_closed_inside (Fixture *fixture, gconstpointer data)
{
  start (fixture, close_worker, 5);
  wait_for (fixture, 1);
  g_assert_error (fixture->error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_CLOSED);
}

/* A run keeps its worker; the worker goes with the last run. */
static void
test_last_reference (Fixture *fixture, gconstpointer data)
{
  PtoWorker *worker = fixture->worker;

  start (fixture, graph, 5);
  g_object_add_weak_pointer (G_OBJECT (worker), (gpointer *) &fixture->worker);
  g_object_unref (worker);
  g_assert_nonnull (fixture->worker);
  wait_for (fixture, 1);
  g_assert_no_error (fixture->error);
  g_assert_cmpuint (fixture->destroyed, ==, 1);
  while (g_main_context_iteration (fixture->context, FALSE))
    ;
  g_assert_null (fixture->worker);
}

static gpointer
run_synchronously (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;
  guint64 address = pto_worker_malloc (fixture->worker, 64, &error);

  g_assert_no_error (error);
  g_assert_true (pto_worker_free (fixture->worker, address, &error));
  return NULL;
}

/* Threads take turns. */
static void
test_threads (Fixture *fixture, gconstpointer data)
{
  GThread *threads[8];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("memory", run_synchronously, fixture);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/async/function", test_function);
  ADD ("/pto/async/several", test_several);
  ADD ("/pto/async/callable", test_callable);
  ADD ("/pto/async/function-fails", test_function_fails);
  ADD ("/pto/async/cancelled-before", test_cancelled_before);
  ADD ("/pto/async/cancelled-inside", test_cancelled_inside);
  ADD ("/pto/async/loop-goes-on", test_loop_goes_on);
  ADD ("/pto/async/loop-cancels", test_loop_cancels);
  ADD ("/pto/async/synchronous-run-refused", test_synchronous_run_refused);
  ADD ("/pto/async/closed", test_closed);
  ADD ("/pto/async/closed-inside", test_closed_inside);
  ADD ("/pto/async/last-reference", test_last_reference);
  ADD ("/pto/async/threads", test_threads);
  return g_test_run ();
}
