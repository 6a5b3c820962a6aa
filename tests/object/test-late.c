/* test-late.c: what becomes of a registration that comes while something else is under way?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Inside of an orchestration function it is done; it can be given up whatever it waits for.
 */
#include "level-test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum
{
  WORD_COUNT,
  WORD_STARTED,
  WORD_GO,
  WORD_PID,
  WORD_IMPORTS, /* how often a child has imported something */
  WORD_SLOW     /* the first import that waits for WORD_GO, counted from 1; 0: none */
};

typedef struct
{
  LevelTestState state;
  LevelTestBoard board;
  PtoWorker *host;
  PtoCallableHandle *handle; /* registered before the start */
  PtoCallable *late;         /* registered afterwards */
  PtoCallableHandle *late_handle;
  GCancellable *cancellable;
  GMainLoop *loop;
  GError *error;
  gboolean inside_cancelled; /* of the error that registering inside of the function has given */
} Test;

/* --- in the children --- */

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_fetch_add (&level_test_words (args, 0)[WORD_COUNT], 1);
  return TRUE;
}

static gboolean
count_by_ten (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_fetch_add (&level_test_words (args, 0)[WORD_COUNT], 10);
  return TRUE;
}

static gboolean
die (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_store (&level_test_words (args, 0)[WORD_PID], (guint64) getpid ());
  _exit (3);
}

/* Says that it runs, and waits for the word, whether it is cancelled or not. */
static gboolean
wait_for_go (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  atomic_store (&words[WORD_STARTED], 1);
  level_test_wait (&words[WORD_GO], 1);
  return TRUE;
}

static PtoCallable *
import_slowly (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  _Atomic guint64 *words = ((Test *) data)->board.words;
  guint64 nth = atomic_fetch_add (&words[WORD_IMPORTS], 1) + 1;

  if (atomic_load (&words[WORD_SLOW]) != 0 && nth >= atomic_load (&words[WORD_SLOW]))
    level_test_wait (&words[WORD_GO], 1);
  return pto_sub_function_new ("imported", count, NULL, NULL);
}

/* --- the parent --- */

static void
begin (Test *test, guint n_subs, PtoRestart restart)
{
  memset (test, 0, sizeof *test);
  level_test_begin (&test->state);
  level_test_board_init (&test->board);
  test->host = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", n_subs, "restart",
                             restart, NULL);
  pto_worker_set_import_func (test->host, import_slowly, test, NULL);
  test->cancellable = g_cancellable_new ();
}

static void
end (Test *test)
{
  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  g_clear_pointer (&test->late_handle, pto_callable_handle_unref);
  g_clear_object (&test->late);
  g_clear_object (&test->cancellable);
  g_clear_error (&test->error);
  pto_worker_close (test->host);
  g_assert_finalize_object (test->host);
  level_test_board_clear (&test->board);
  level_test_end (&test->state);
}

static void
init (Test *test)
{
  pto_worker_start (test->host, NULL, &test->error);
  g_assert_no_error (test->error);
}

static PtoCallable *
make_import (void)
{
  g_autoptr (GError) error = NULL;
  PtoCallable *callable = pto_imported_function_new (PTO_CALLABLE_SUB, "somewhere:count", &error);

  g_assert_no_error (error);
  return callable;
}

static PtoCallable *
make_symbol (void)
{
  g_autofree char *name = g_strconcat (g_getenv ("PTO_TEST_SUB_FUNCTIONS"), ":count_call", NULL);
  g_autoptr (GError) error = NULL;
  PtoCallable *callable = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, name, &error);

  g_assert_no_error (error);
  return callable;
}

static gboolean
submit (PtoOrchestrator *orchestrator, Test *test, PtoCallableHandle *handle, GError **error)
{
  return level_test_submit (orchestrator, handle, test->board.tensor, PTO_DIRECTION_NO_DEP,
                            WORD_COUNT, -1, error);
}

static gboolean
run_handle (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Test *test = data;

  return submit (orchestrator, test, test->handle, error);
}

static gboolean
run_late (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  Test *test = data;

  return submit (orchestrator, test, test->late_handle, error);
}

static gpointer
run_in_thread (gpointer data)
{
  Test *test = data;

  pto_worker_run (test->host, run_handle, test, NULL, NULL, NULL, &test->error);
  return NULL;
}

static gpointer
init_in_thread (gpointer data)
{
  Test *test = data;

  pto_worker_start (test->host, NULL, &test->error);
  return NULL;
}

/* Cancels when somebody waits who can be woken by that. */
static gpointer
cancel_in_thread (gpointer data)
{
  Test *test = data;
  guint signal = g_signal_lookup ("cancelled", G_TYPE_CANCELLABLE);

  while (!g_signal_has_handler_pending (test->cancellable, signal, 0, FALSE))
    g_usleep (50);
  g_cancellable_cancel (test->cancellable);
  return NULL;
}

/* --- inside of an orchestration function --- */

static gboolean
register_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Test *test = data;

  if (!submit (orchestrator, test, test->handle, error))
    return FALSE;
  test->late_handle = pto_worker_register (test->host, test->late, NULL, error);
  if (test->late_handle == NULL)
    test->inside_cancelled = g_error_matches (*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  return test->late_handle != NULL && submit (orchestrator, test, test->late_handle, error);
}

static void
run_has_ended (GObject *source, GAsyncResult *result, gpointer data)
{
  Test *test = data;

  pto_worker_run_finish (PTO_WORKER (source), result, &test->error);
  g_main_loop_quit (test->loop);
}

/* A function that the children were not born with: they are begun again by the thread that runs the
 * machine, whoever asks. */
static void
test_closure_inside (gconstpointer is_asynchronous)
{
  Test test;

  begin (&test, 2, PTO_RESTART_NEVER);
  test.handle = level_test_register (test.host, "count", count);
  init (&test);
  test.late = pto_sub_function_new ("count-by-ten", count_by_ten, NULL, NULL);
  if (is_asynchronous != NULL)
    {
      test.loop = g_main_loop_new (NULL, FALSE);
      pto_worker_run_async (test.host, register_inside, &test, NULL, NULL, NULL, NULL,
                            run_has_ended, &test);
      g_main_loop_run (test.loop);
      g_main_loop_unref (test.loop);
    }
  else
    pto_worker_run (test.host, register_inside, &test, NULL, NULL, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 11);
  end (&test);
}

static gboolean
register_after_death (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                      gpointer data, GError **error)
{
  Test *test = data;
  pid_t pid;

  if (!submit (orchestrator, test, test->handle, error))
    return FALSE;
  while ((pid = (pid_t) atomic_load (&test->board.words[WORD_PID])) == 0 || kill (pid, 0) == 0
         || errno != ESRCH)
    g_usleep (50);
  test->late_handle = pto_worker_register (test->host, test->late, NULL, error);
  return test->late_handle != NULL;
}

/* The only child is dead, and waits to be begun again. */
static void
test_symbol_inside (void)
{
  Test test;

  begin (&test, 1, PTO_RESTART_ON_FAILURE);
  test.handle = level_test_register (test.host, "die", die);
  test.late = make_symbol ();
  init (&test);
  pto_worker_run (test.host, register_after_death, &test, NULL, NULL, NULL, &test.error);
  g_assert_error (test.error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  g_clear_error (&test.error);
  g_assert_nonnull (test.late_handle);
  pto_worker_run (test.host, run_late, &test, NULL, NULL, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* Cancels when a slow import has begun. */
static gpointer
cancel_when_imported (gpointer data)
{
  Test *test = data;
  _Atomic guint64 *words = test->board.words;

  while (atomic_load (&words[WORD_IMPORTS]) < atomic_load (&words[WORD_SLOW]))
    g_usleep (50);
  g_cancellable_cancel (test->cancellable);
  return NULL;
}

/* The run is cancelled while its function registers: that does not wait on. */
static void
test_run_cancelled_inside (void)
{
  GThread *thread;
  Test test;

  begin (&test, 1, PTO_RESTART_NEVER);
  test.handle = level_test_register (test.host, "count", count);
  test.late = make_import ();
  test.board.words[WORD_SLOW] = 1;
  init (&test);
  thread = g_thread_new ("cancel", cancel_when_imported, &test);
  pto_worker_run (test.host, register_inside, &test, NULL, NULL, test.cancellable, &test.error);
  g_assert_error (test.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_null (test.late_handle);
  g_assert_true (test.inside_cancelled);
  g_thread_join (thread);
  atomic_store (&test.board.words[WORD_GO], 1);
  end (&test);
}

/* --- given up --- */

static void
assert_is_given_up (Test *test)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_worker_register (test->host, test->late, test->cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* While a child is busy with loading it. */
static void
test_cancel_import (void)
{
  GThread *thread;
  Test test;

  begin (&test, 2, PTO_RESTART_NEVER);
  test.late = make_import ();
  test.board.words[WORD_SLOW] = 1;
  init (&test);
  thread = g_thread_new ("cancel", cancel_when_imported, &test);
  assert_is_given_up (&test);
  g_thread_join (thread);
  atomic_store (&test.board.words[WORD_GO], 1);
  /* Nobody has it: both import it now. */
  test.board.words[WORD_IMPORTS] = 0;
  test.late_handle = pto_worker_register (test.host, test.late, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_IMPORTS], >=, 2);
  end (&test);
}

/* While a child that it waits for runs something else. */
static void
test_cancel_busy (gconstpointer is_closure)
{
  GThread *runner;
  GThread *canceller;
  Test test;

  begin (&test, 1, PTO_RESTART_NEVER);
  test.handle = level_test_register (test.host, "wait", wait_for_go);
  init (&test);
  test.late
      = is_closure != NULL ? pto_sub_function_new ("count", count, NULL, NULL) : make_symbol ();
  runner = g_thread_new ("run", run_in_thread, &test);
  level_test_wait (&test.board.words[WORD_STARTED], 1);
  canceller = g_thread_new ("cancel", cancel_in_thread, &test);
  assert_is_given_up (&test);
  g_thread_join (canceller);
  atomic_store (&test.board.words[WORD_GO], 1);
  g_thread_join (runner);
  g_assert_no_error (test.error);
  /* It can be registered afterwards, and works. */
  test.late_handle = pto_worker_register (test.host, test.late, NULL, &test.error);
  g_assert_no_error (test.error);
  pto_worker_run (test.host, run_late, &test, NULL, NULL, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* While a child that was begun again for it starts. */
static void
test_cancel_renew (void)
{
  g_autoptr (PtoCallable) import = make_import ();
  GThread *thread;
  Test test;

  begin (&test, 1, PTO_RESTART_NEVER);
  test.handle = pto_worker_register (test.host, import, NULL, &test.error);
  g_assert_no_error (test.error);
  test.board.words[WORD_SLOW] = 2;
  init (&test);
  test.late = pto_sub_function_new ("count", count, NULL, NULL);
  thread = g_thread_new ("cancel", cancel_when_imported, &test);
  assert_is_given_up (&test);
  g_thread_join (thread);
  atomic_store (&test.board.words[WORD_GO], 1);
  test.late_handle = pto_worker_register (test.host, test.late, NULL, &test.error);
  g_assert_no_error (test.error);
  pto_worker_run (test.host, run_late, &test, NULL, NULL, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* While another thread starts the children, so does a second thread that wants to. */
static void
test_cancel_start (gconstpointer is_init)
{
  g_autoptr (PtoCallable) first = make_import ();
  g_autoptr (GError) error = NULL;
  GThread *starter;
  GThread *canceller;
  Test test;

  begin (&test, 1, PTO_RESTART_NEVER);
  test.handle = pto_worker_register (test.host, first, NULL, &test.error);
  g_assert_no_error (test.error);
  test.board.words[WORD_SLOW] = 1;
  test.late = pto_sub_function_new ("count", count, NULL, NULL);
  starter = g_thread_new ("init", init_in_thread, &test);
  level_test_wait (&test.board.words[WORD_IMPORTS], 1);
  canceller = g_thread_new ("cancel", cancel_in_thread, &test);
  if (is_init == NULL)
    assert_is_given_up (&test);
  else
    {
      g_assert_false (pto_worker_start (test.host, test.cancellable, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    }
  g_thread_join (canceller);
  atomic_store (&test.board.words[WORD_GO], 1);
  g_thread_join (starter);
  g_assert_no_error (test.error);
  test.late_handle = pto_worker_register (test.host, test.late, NULL, &test.error);
  g_assert_no_error (test.error);
  pto_worker_run (test.host, run_late, &test, NULL, NULL, NULL, &test.error);
  g_assert_no_error (test.error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* --- taken back --- */

static gpointer
unregister_and_cancel (gpointer data)
{
  Test *test = data;

  level_test_wait (&test->board.words[WORD_STARTED], 1);
  g_assert_true (pto_worker_unregister (test->host, test->late_handle, NULL));
  g_cancellable_cancel (test->cancellable);
  return NULL;
}

/* A run that is cancelled ends the child that is deaf, and does not wait until it has begun again
 * to tell it what was taken back meanwhile. */
static void
test_cancel_retired (void)
{
  g_autoptr (PtoCallableHandle) import_handle = NULL;
  GThread *thread;
  Test test;

  begin (&test, 1, PTO_RESTART_NEVER);
  test.late = make_import ();
  import_handle = pto_worker_register (test.host, test.late, NULL, &test.error);
  g_assert_no_error (test.error);
  test.handle = level_test_register (test.host, "wait", wait_for_go);
  test.late_handle = level_test_register (test.host, "count", count);
  test.board.words[WORD_SLOW] = 2;
  init (&test);
  thread = g_thread_new ("cancel", unregister_and_cancel, &test);
  pto_worker_run (test.host, run_handle, &test, NULL, NULL, test.cancellable, &test.error);
  g_assert_error (test.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
  atomic_store (&test.board.words[WORD_GO], 1);
  end (&test);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_data_func ("/pto/late/closure-inside", NULL, test_closure_inside);
  g_test_add_data_func ("/pto/late/closure-inside/async", GINT_TO_POINTER (1), test_closure_inside);
  g_test_add_func ("/pto/late/symbol-inside", test_symbol_inside);
  g_test_add_func ("/pto/late/run-cancelled-inside", test_run_cancelled_inside);
  g_test_add_func ("/pto/late/cancel/import", test_cancel_import);
  g_test_add_data_func ("/pto/late/cancel/busy", NULL, test_cancel_busy);
  g_test_add_data_func ("/pto/late/cancel/busy/closure", GINT_TO_POINTER (1), test_cancel_busy);
  g_test_add_func ("/pto/late/cancel/renew", test_cancel_renew);
  g_test_add_data_func ("/pto/late/cancel/start", NULL, test_cancel_start);
  g_test_add_data_func ("/pto/late/cancel/init", GINT_TO_POINTER (1), test_cancel_start);
  g_test_add_func ("/pto/late/cancel/retired", test_cancel_retired);
  return g_test_run ();
}
