/* test-progress.c: is who listens told how far a run is, where he is at home, and nobody else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task here ends when a handler was called that has seen it submitted and not done: without an
 * emission while the run waits nothing ends.
 */
#include "object-test.h"

#include <string.h>

#define N_TASKS 3

typedef struct
{
  char *dir;
  PtoBuffer *buffer; /* what a task waits for, and what it has counted */
  PtoTensor *tensor;
  PtoCallable *kernel;

  PtoWorker *worker;
  GThread *thread; /* where handlers are to be called */
  guint n_emitted;
  guint64 done;
  guint64 submitted;
  guint64 failed;
  PtoOrchestrator *orchestrator; /* of the function under way */
  guint n_refused;
  gboolean awaits_refusal; /* no task ends before there was one */
  GMainLoop *loop;
} Fixture;

static const char waiting_kernel[]
    = "#include \"tensor.h\"\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *t = (const TensorData *) args[0];\n"
      "  volatile float *go_on = (volatile float *) t->buffer.addr + t->start_offset;\n"
      "  while (go_on[0] == 0)\n"
      "    pto_relax (args);\n"
      "  go_on[1] += 1;\n"
      "}\n";

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->buffer = pto_buffer_new (2 * sizeof (float), &error);
  g_assert_no_error (error);
  fixture->tensor = object_test_vector (fixture->buffer);
  fixture->kernel = object_test_kernel (fixture->dir, "wait.c", waiting_kernel);
  fixture->thread = g_thread_self ();
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_clear_object (&fixture->worker);
  g_object_unref (fixture->kernel);
  pto_tensor_unref (fixture->tensor);
  pto_buffer_unref (fixture->buffer);
  object_test_remove_dir (fixture->dir);
}

/* What a handler must not do is refused, and ends nothing. */
static void
try_what_can_not_be (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;

  if (fixture->orchestrator != NULL)
    {
      g_assert_false (pto_orchestrator_begin_scope (fixture->orchestrator, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_BUSY);
      /* Also where the main loop calls it that a waiting call lets run. */
      object_test_assert_contains (error->message,
                                   "a handler of run-progress is called in the midst of a call");
      g_clear_error (&error);
      fixture->n_refused++;
    }
}

static void
note (PtoWorker *worker, guint64 done, guint64 submitted, guint64 failed, gpointer data)
{
  Fixture *fixture = data;

  g_assert_true (worker == fixture->worker);
  g_assert_true (g_thread_self () == fixture->thread);
  g_assert_cmpuint (done, <=, submitted);
  g_assert_cmpuint (failed, <=, done);
  g_assert_cmpuint (done, >=, fixture->done);
  g_assert_cmpuint (submitted, >=, fixture->submitted);
  fixture->n_emitted++;
  fixture->done = done;
  fixture->submitted = submitted;
  fixture->failed = failed;
  try_what_can_not_be (fixture);
  if (done == 0 && submitted == N_TASKS && (!fixture->awaits_refusal || fixture->n_refused > 0))
    object_test_floats (fixture->buffer)[0] = 1;
}

static void
make_worker (Fixture *fixture, PtoWorker *worker)
{
  fixture->worker = worker;
  g_assert_cmpuint (pto_worker_get_progress_interval (worker), ==, 100);
  g_object_set (worker, "progress-interval", 1, NULL);
  g_assert_cmpuint (pto_worker_get_progress_interval (worker), ==, 1);
  g_signal_connect (worker, "run-progress", G_CALLBACK (note), fixture);
  /* Each core has a thread there: elsewhere that of the run may be in a kernel, which waits. */
  pto_worker_set_parameter (worker, "backend", "threads", NULL);
}

/* One after the other, as each updates the same. */
static gboolean
submit_kernels (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  fixture->orchestrator = orchestrator;
  pto_task_args_add_tensor (own, fixture->tensor, PTO_DIRECTION_INOUT);
  for (guint i = 0; i < N_TASKS; i++)
    if (!pto_orchestrator_submit (orchestrator, fixture->kernel, own, error))
      return FALSE;
  fixture->orchestrator = NULL;
  return TRUE;
}

static void
check_told (Fixture *fixture, guint64 failed)
{
  guint64 done = 7, submitted = 7, failures = 7;

  g_assert_cmpuint (fixture->n_emitted, >=, 2);
  g_assert_cmpuint (fixture->done, ==, N_TASKS);
  g_assert_cmpuint (fixture->submitted, ==, N_TASKS);
  g_assert_cmpuint (fixture->failed, ==, failed);
  /* There is no run. */
  g_assert_false (pto_worker_get_progress (fixture->worker, &done, &submitted, &failures));
  g_assert_cmpuint (done + submitted + failures, ==, 0);
}

/* On a chip, here and in a process of its own. */
static void
test_chip (Fixture *fixture, gconstpointer isolate)
{
  g_autoptr (GError) error = NULL;

  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, "isolate", GPOINTER_TO_INT (isolate), NULL));
  pto_worker_run (fixture->worker, submit_kernels, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->buffer)[1], ==, N_TASKS);
  check_told (fixture, 0);
}

/* In the midst of calls: then the orchestrator is in use. Each element is waited for. */
static gboolean
ask_until_told (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Fixture *fixture = data;
  gint64 deadline = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  guint64 done, submitted, failed;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  object_test_floats (fixture->buffer)[0] = 1;
  pto_task_args_add_tensor (own, fixture->tensor, PTO_DIRECTION_INOUT);
  fixture->orchestrator = orchestrator;
  while (fixture->n_refused < 2 && g_get_monotonic_time () < deadline)
    if (!pto_orchestrator_submit (orchestrator, fixture->kernel, own, error))
      return FALSE;
  fixture->orchestrator = NULL;
  g_assert_true (pto_worker_get_progress (fixture->worker, &done, &submitted, &failed));
  g_assert_cmpuint (submitted, >=, fixture->submitted);
  g_assert_cmpuint (done, >=, fixture->done);
  return TRUE;
}

static void
test_among_submits (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;

  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, NULL));
  pto_worker_set_parameter (fixture->worker, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_run (fixture->worker, ask_until_told, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fixture->n_refused, ==, 2);
  g_assert_cmpuint (fixture->n_emitted, >=, 3);
  g_assert_cmpuint (fixture->done, ==, fixture->submitted);
}

/* --- among registrations --- */

typedef struct
{
  PtoCallable *first;
  PtoCallable *second;
  guint n_called;
  gboolean is_registering;
} Registrations;

/* It may register, too: whoever called it has no lock. */
static void
register_second (PtoWorker *worker, guint64 done, guint64 submitted, guint64 failed, gpointer data)
{
  Registrations *registrations = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;

  registrations->n_called++;
  if (!registrations->is_registering)
    return;
  handle = pto_worker_register (worker, registrations->second, NULL, &error);
  g_assert_no_error (error);
}

/* The run is asked whether it is wanted, as the registration is not. Both kernels were compiled
 * before. */
static gboolean
register_first (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Registrations *registrations = data;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (PtoCallableHandle) handle = NULL;
  gint64 until = g_get_monotonic_time () + 5000;

  while (g_get_monotonic_time () < until)
    g_usleep (1000);
  g_cancellable_cancel (cancellable);
  registrations->is_registering = TRUE;
  handle = pto_worker_register (pto_orchestrator_get_worker (orchestrator), registrations->first,
                                cancellable, error);
  registrations->is_registering = FALSE;
  return handle != NULL;
}

static void
test_among_registrations (Fixture *fixture, gconstpointer isolate)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) second = object_test_kernel (fixture->dir, "second.c", object_test_fill);
  Registrations registrations = { fixture->kernel, second, 0, FALSE };

  fixture->worker = g_object_new (PTO_TYPE_WORKER, "isolate", GPOINTER_TO_INT (isolate),
                                  "progress-interval", 1, NULL);
  g_signal_connect (fixture->worker, "run-progress", G_CALLBACK (register_second), &registrations);
  pto_worker_run (fixture->worker, register_first, &registrations, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (registrations.n_called, >=, 1);
}

/* --- of a run that goes on by itself --- */

static void
when_done (GObject *source, GAsyncResult *result, gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;

  pto_worker_run_finish (fixture->worker, result, &error);
  g_assert_no_error (error);
  /* The last of it comes before. */
  check_told (fixture, 0);
  g_main_loop_quit (fixture->loop);
}

static gpointer
run_there (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GMainContext) context = g_main_context_new ();
  guint n;

  g_main_context_push_thread_default (context);
  fixture->thread = g_thread_self ();
  fixture->loop = g_main_loop_new (context, FALSE);
  pto_worker_run_async (fixture->worker, submit_kernels, fixture, NULL, NULL, NULL, NULL, when_done,
                        fixture);
  g_main_loop_run (fixture->loop);
  n = fixture->n_emitted;
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpuint (fixture->n_emitted, ==, n);
  g_main_loop_unref (fixture->loop);
  g_main_context_pop_thread_default (context);
  return NULL;
}

/* Whoever has begun it, not who has made the worker, and not the thread of runs. */
static void
test_async (Fixture *fixture, gconstpointer data)
{
  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, NULL));
  g_thread_join (g_thread_new ("other", run_there, fixture));
  g_assert_cmpfloat (object_test_floats (fixture->buffer)[1], ==, N_TASKS);
}

/* The ring has no room for the last task before the first one ends, and that ends when a handler
 * has been called: by the main loop, which the submit lets run. The calls before it may let the
 * loop run as well, while the chip's thread is slow to answer: what is told there is not enough. */
static gboolean
submit_one_more (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  pto_task_args_add_tensor (own, fixture->tensor, PTO_DIRECTION_INOUT);
  for (guint i = 0; i <= N_TASKS; i++)
    {
      gboolean ok = pto_orchestrator_begin_scope (orchestrator, error);

      fixture->orchestrator = i == N_TASKS ? orchestrator : NULL;
      ok = ok && pto_orchestrator_submit (orchestrator, fixture->kernel, own, error);
      fixture->orchestrator = NULL;
      if (!ok || !pto_orchestrator_end_scope (orchestrator, error))
        return FALSE;
    }
  return TRUE;
}

static void
when_done_waiting (GObject *source, GAsyncResult *result, gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;

  pto_worker_run_finish (fixture->worker, result, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fixture->n_refused, >=, 1);
  g_assert_cmpuint (fixture->done, ==, N_TASKS + 1);
  g_main_loop_quit (fixture->loop);
}

static void
test_async_waiting (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, NULL));
  pto_worker_set_parameter (fixture->worker, "task-window", "4", &error);
  g_assert_no_error (error);
  fixture->awaits_refusal = TRUE;
  fixture->loop = g_main_loop_new (NULL, FALSE);
  pto_worker_run_async (fixture->worker, submit_one_more, fixture, NULL, NULL, NULL, NULL,
                        when_done_waiting, fixture);
  g_main_loop_run (fixture->loop);
  g_main_loop_unref (fixture->loop);
  g_assert_cmpfloat (object_test_floats (fixture->buffer)[1], ==, N_TASKS + 1);
}

/* --- of children --- */

static gboolean
wait_for_it (PtoTaskArgs *args, gpointer data, GError **error)
{
  Fixture *fixture = data;
  volatile float *go_on = object_test_floats (fixture->buffer);
  gint64 deadline = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;

  while (go_on[0] == 0 && g_get_monotonic_time () < deadline)
    g_usleep (1000);
  go_on[1] += 1;
  if (go_on[1] < N_TASKS)
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "the last one fails");
  return FALSE;
}

typedef struct
{
  Fixture *fixture;
  PtoCallableHandle *handle;
} Host;

static gboolean
submit_subs (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Host *host = data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  pto_task_args_add_tensor (own, host->fixture->tensor, PTO_DIRECTION_INOUT);
  for (guint i = 0; i < N_TASKS; i++)
    if (!pto_orchestrator_submit_sub (orchestrator, host->handle, own, -1, error))
      return FALSE;
  return TRUE;
}

static void
test_host (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("wait", wait_for_it, fixture, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;
  Host host = { fixture, NULL };

  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 1, NULL));
  host.handle = handle = pto_worker_register (fixture->worker, sub, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_run (fixture->worker, submit_subs, &host, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT);
  check_told (fixture, 1);
}

/* --- of nothing --- */

static gboolean
never_called (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  g_assert_not_reached ();
}

static gboolean
no_tasks (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  return TRUE;
}

/* A run that has not begun is none; one without a task ends all the same, and one after those that
 * had some begins with none. */
static void
test_nothing (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  make_worker (fixture, g_object_new (PTO_TYPE_WORKER, NULL));
  g_assert_false (pto_worker_get_progress (fixture->worker, NULL, NULL, NULL));
  g_cancellable_cancel (cancellable);
  g_assert_false (
      pto_worker_run (fixture->worker, never_called, NULL, NULL, NULL, cancellable, &error));
  g_assert_cmpuint (fixture->n_emitted, ==, 0);
  g_clear_error (&error);

  object_test_floats (fixture->buffer)[0] = 1;
  pto_worker_run (fixture->worker, submit_kernels, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fixture->done, ==, N_TASKS);
  fixture->done = fixture->submitted = fixture->n_emitted = 0;
  pto_worker_run (fixture->worker, no_tasks, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fixture->n_emitted, >=, 1);
  g_assert_cmpuint (fixture->submitted, ==, 0);
}

#define ADD(name, data, function) g_test_add (name, Fixture, data, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/progress/chip", GINT_TO_POINTER (FALSE), test_chip);
  ADD ("/pto/progress/isolated", GINT_TO_POINTER (TRUE), test_chip);
  ADD ("/pto/progress/among-submits/par", "par", test_among_submits);
  ADD ("/pto/progress/among-submits/det", "det", test_among_submits);
  ADD ("/pto/progress/among-submits/threads", "threads", test_among_submits);
  ADD ("/pto/progress/among-registrations", GINT_TO_POINTER (FALSE), test_among_registrations);
  ADD ("/pto/progress/among-registrations/isolated", GINT_TO_POINTER (TRUE),
       test_among_registrations);
  ADD ("/pto/progress/async", NULL, test_async);
  ADD ("/pto/progress/async/waiting", NULL, test_async_waiting);
  ADD ("/pto/progress/host", NULL, test_host);
  ADD ("/pto/progress/nothing", NULL, test_nothing);
  return g_test_run ();
}
