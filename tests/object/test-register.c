/* test-register.c: do all children have what is registered, or none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

enum
{
  WORD_COUNT,
  WORD_STARTED,
  WORD_GO,
  WORD_SUBMITTED,
  WORD_IMPORTS, /* how often a child has imported something */
  WORD_REFUSED, /* the import that is to fail, counted from 1; 0: none */
  WORD_PIDS = 16
};

typedef struct
{
  LevelTestState state;
  LevelTestBoard board;
  PtoWorker *host;
  PtoCallableHandle *handle;
  PtoCallableHandle *wait;
  gboolean all; /* one task for each SUB worker */
} Test;

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

/* Says that it runs, and waits for the word. */
static gboolean
wait_for_go (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  atomic_store (&words[WORD_STARTED], 1);
  return level_test_wait_in_task (args, &words[WORD_GO], 1);
}

static void
begin (Test *test, guint n_subs)
{
  memset (test, 0, sizeof *test);
  level_test_begin (&test->state);
  level_test_board_init (&test->board);
  test->host = level_test_host (3, 0, n_subs);
}

static void
end (Test *test)
{
  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  g_clear_pointer (&test->wait, pto_callable_handle_unref);
  pto_worker_close (test->host);
  g_assert_finalize_object (test->host);
  level_test_board_clear (&test->board);
  level_test_end (&test->state);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Test *test = data;
  guint n = test->all ? pto_worker_get_n_sub_workers (test->host) : 1;

  for (guint i = 0; i < n; i++)
    if (!level_test_submit (orchestrator, test->handle, test->board.tensor, PTO_DIRECTION_NO_DEP,
                            WORD_COUNT, (int) i, error))
      return FALSE;
  return TRUE;
}

static void
run_well (Test *test)
{
  g_autoptr (GError) error = NULL;
  gboolean ok = pto_worker_run (test->host, graph, test, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (ok);
}

static void
init (Test *test)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (pto_worker_start (test->host, NULL, &error));
  g_assert_no_error (error);
}

/* --- before and after the start, counted --- */

static void
test_counted (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("count", count, NULL, NULL);
  g_autoptr (PtoCallableHandle) again = NULL;
  Test test;

  begin (&test, 2);
  test.all = TRUE;
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  init (&test);
  again = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_callable_handle_equal (test.handle, again));
  g_assert_cmpint (pto_callable_handle_get_target_namespace (again), ==, PTO_TARGET_LOCAL_PYTHON);
  run_well (&test);
  g_assert_true (pto_worker_unregister (test.host, again, &error));
  run_well (&test);
  g_assert_true (pto_worker_unregister (test.host, again, &error));
  g_assert_no_error (error);
  g_assert_false (pto_worker_run (test.host, graph, &test, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (pto_worker_unregister (test.host, again, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);

  /* The same function, once more. */
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 2 + 2 + 2);
  end (&test);
}

/* A function made after the children: they are forked again, and keep what they had. */
static void
test_late_closure (gconstpointer mode)
{
  Test test;

  begin (&test, 0);
  g_object_unref (test.host);
  test.host = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 2, "child-mode",
                            GPOINTER_TO_INT (mode), NULL);
  test.all = TRUE;
  test.handle = level_test_register (test.host, "count", count);
  init (&test);
  run_well (&test);
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = level_test_register (test.host, "count-by-ten", count_by_ten);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 2 + 20);
  end (&test);
}

static void
test_symbol (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strconcat (g_getenv ("PTO_TEST_SUB_FUNCTIONS"), ":count_call", NULL);
  g_autofree char *missing = g_strconcat (g_getenv ("PTO_TEST_SUB_FUNCTIONS"), ":no_such", NULL);
  g_autoptr (PtoCallable) callable = NULL;
  g_autoptr (PtoCallable) wrong = NULL;
  Test test;

  begin (&test, 2);
  callable = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, name, &error);
  g_assert_no_error (error);
  wrong = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, missing, &error);
  g_assert_no_error (error);
  init (&test);
  /* After the start: it is sent, and refused where it can not be had. */
  g_assert_null (pto_worker_register (test.host, wrong, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "L3/0/sub");
  object_test_assert_contains (error->message, "no_such");
  g_clear_error (&error);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);

  /* Before the start: the start fails, with the child's place, and can be repeated. */
  begin (&test, 2);
  test.handle = pto_worker_register (test.host, wrong, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_start (test.host, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "L3/0/sub");
  object_test_assert_contains (error->message, "no_such");
  g_clear_error (&error);
  g_assert_true (pto_worker_unregister (test.host, test.handle, &error));
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  init (&test);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* --- contents that are not what they were --- */

static char *
copy_functions (const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  char *path = g_build_filename (dir, "copy.so", NULL);
  gsize size;

  g_file_get_contents (g_getenv ("PTO_TEST_SUB_FUNCTIONS"), &contents, &size, &error);
  g_assert_no_error (error);
  g_file_set_contents (path, contents, (gssize) size, &error);
  g_assert_no_error (error);
  return path;
}

static void
append_byte (const char *path)
{
  FILE *file = g_fopen (path, "ab");

  g_assert_nonnull (file);
  g_assert_cmpint (fputc ('x', file), ==, 'x');
  g_assert_cmpint (fclose (file), ==, 0);
}

static void
test_tampered (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *path = copy_functions (dir);
  g_autofree char *name = g_strconcat (path, ":count_call", NULL);
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, name, &error);
  Test test;

  g_assert_no_error (error);
  begin (&test, 2);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  append_byte (path);
  g_assert_false (pto_worker_start (test.host, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TAMPERED);
  object_test_assert_contains (error->message, "L3/0/sub");
  object_test_assert_contains (error->message, "copy.so");
  end (&test);
  object_test_remove_dir (dir);
}

/* Another file of the same name, as a build makes it. */
static void
replace_version (const char *path)
{
  static const char text[] = "sub-functions version 1";
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  char *found;
  gsize size;

  g_file_get_contents (path, &contents, &size, &error);
  g_assert_no_error (error);
  found = memmem (contents, size, text, strlen (text));
  g_assert_nonnull (found);
  found[strlen (text) - 1] = '2';
  g_file_set_contents (path, contents, (gssize) size, &error);
  g_assert_no_error (error);
}

/* A library is built anew while children have the old one: they do not run that for the new one. */
static void
test_replaced (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *path = copy_functions (dir);
  g_autofree char *name = g_strconcat (path, ":count_call", NULL);
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, name, &error);
  Test test;

  g_assert_no_error (error);
  begin (&test, 1);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  replace_version (path);
  g_assert_null (pto_worker_register (test.host, callable, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "L3/0/sub0");
  object_test_assert_contains (error->message, "copy.so as it was before it was changed");
  g_clear_error (&error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 2);

  g_assert_true (pto_worker_unregister (test.host, test.handle, &error));
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 4);
  end (&test);
  object_test_remove_dir (dir);
}

/* --- all or nothing --- */

/* In a child: counts on the board, refuses when it is told to. */
static PtoCallable *
import_count (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  Test *test = data;
  guint64 nth = atomic_fetch_add (&test->board.words[WORD_IMPORTS], 1) + 1;

  g_assert_cmpstr (path, ==, "somewhere:count");
  if (nth == atomic_load (&test->board.words[WORD_REFUSED]))
    {
      g_autoptr (PtoException) why = pto_exception_new ("Refusal", "today", NULL, NULL, 0);

      /* Of another domain, and of one whose errors have something inside. */
      pto_exception_throw (why);
      g_set_error_literal (error, PTO_EXCEPTION, 0, "not on this day");
      return NULL;
    }
  return pto_sub_function_new ("count", count, NULL, NULL);
}

static void
test_all_or_nothing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new (PTO_CALLABLE_SUB, "somewhere:count", &error);
  Test test;

  g_assert_no_error (error);
  begin (&test, 4);
  pto_worker_set_import_func (test.host, import_count, &test, NULL);
  init (&test);
  /* The third child that is asked refuses; the others have it and must not keep it. */
  test.board.words[WORD_REFUSED] = 3;
  g_assert_null (pto_worker_register (test.host, callable, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, "L3/0/sub");
  object_test_assert_contains (error->message, "not on this day");
  g_clear_error (&error);

  /* So all four import it the next time. */
  test.board.words[WORD_REFUSED] = 0;
  test.board.words[WORD_IMPORTS] = 0;
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (test.board.words[WORD_IMPORTS], ==, 4);
  test.all = TRUE;
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 4);
  end (&test);
}

static void
note_dropped (gpointer data)
{
  (*(guint *) data)++;
}

/* A function that can be imported, too: children that are forked later have it, those that are
 * there import it, by the way that the process was told, and go on as they are. */
static void
test_import_path (void)
{
  static Test test; /* the default's, which stays */
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) first = pto_sub_function_new ("count", count, NULL, NULL);
  g_autoptr (PtoCallable) second = pto_sub_function_new ("count", count_by_ten, NULL, NULL);
  g_autoptr (PtoCallableHandle) again = NULL;
  guint dropped = 0;

  begin (&test, 2);
  test.all = TRUE;
  pto_worker_set_default_import_func (import_count, &test, NULL);
  pto_worker_set_default_import_func (import_count, &dropped, note_dropped);
  g_assert_cmpuint (dropped, ==, 1);
  g_assert_false (
      pto_sub_function_set_import_path (PTO_SUB_FUNCTION (first), "no path at all", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "write module:qualname");
  g_clear_error (&error);
  g_assert_null (pto_sub_function_get_import_path (PTO_SUB_FUNCTION (first)));
  g_assert_true (
      pto_sub_function_set_import_path (PTO_SUB_FUNCTION (first), "somewhere:count", &error));
  g_assert_cmpstr (pto_sub_function_get_import_path (PTO_SUB_FUNCTION (first)), ==,
                   "somewhere:count");
  g_assert_true (
      pto_sub_function_set_import_path (PTO_SUB_FUNCTION (second), "somewhere:count", &error));

  test.handle = pto_worker_register (test.host, first, NULL, &error);
  g_assert_no_error (error);
  init (&test);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 2);
  g_assert_cmpuint (test.board.words[WORD_IMPORTS], ==, 0);
  /* They have it. */
  again = pto_worker_register (test.host, first, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_callable_handle_equal (test.handle, again));

  /* What is imported is what is called, which counts by one. */
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = pto_worker_register (test.host, second, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_get_source (pto_callable_handle_get_callable (test.handle)), ==,
                   PTO_CALLABLE_SOURCE_IMPORT);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 4);
  g_assert_cmpuint (test.board.words[WORD_IMPORTS], ==, 2);

  /* Without a path it is itself. */
  pto_sub_function_set_import_path (PTO_SUB_FUNCTION (second), NULL, &error);
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = pto_worker_register (test.host, second, NULL, &error);
  g_assert_no_error (error);
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 24);
  g_assert_cmpuint (test.board.words[WORD_IMPORTS], ==, 2);
  end (&test);
}

static void
test_not_accepted (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) import
      = pto_imported_function_new (PTO_CALLABLE_SUB, "somewhere:count", &error);
  g_autoptr (PtoCallable) kernel = NULL;
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("count", count, NULL, NULL);
  g_autoptr (PtoWorker) chip = NULL;
  char *dir = object_test_make_dir ();
  Test test;

  begin (&test, 1);
  chip = object_test_worker ();
  kernel = object_test_kernel (dir, "fill.c", object_test_fill);
  g_assert_null (pto_worker_register (test.host, kernel, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "is a kernel, and a worker of level 3 has no cores");
  g_clear_error (&error);
  g_assert_null (pto_worker_register (chip, sub, NULL, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  init (&test);
  g_assert_null (pto_worker_register (test.host, import, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "somewhere:count");
  g_clear_object (&chip);
  end (&test);
  object_test_remove_dir (dir);
}

/* --- while it runs --- */

static gboolean
busy_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Test *test = data;
  gboolean ok = level_test_submit (orchestrator, test->wait, test->board.tensor,
                                   PTO_DIRECTION_NO_DEP, 0, 0, error)
                && level_test_submit (orchestrator, test->handle, test->board.tensor,
                                      PTO_DIRECTION_NO_DEP, 0, 0, error);

  atomic_store (&test->board.words[WORD_SUBMITTED], 1);
  return ok;
}

typedef struct
{
  Test *test;
  PtoCallable *callable;
  PtoCallableHandle *handle;
  GError *error;
} Registering;

/* While a task is under way: the last registration of one that waits is taken back, and another
 * callable comes, which the busy child takes when the task is done. */
static gpointer
register_meanwhile (gpointer data)
{
  Registering *registering = data;
  Test *test = registering->test;

  level_test_wait (&test->board.words[WORD_STARTED], 1);
  level_test_wait (&test->board.words[WORD_SUBMITTED], 1);
  g_assert_true (pto_worker_unregister (test->host, test->handle, NULL));
  atomic_store (&test->board.words[WORD_GO], 1);
  registering->handle
      = pto_worker_register (test->host, registering->callable, NULL, &registering->error);
  return NULL;
}

static void
test_while_running (gconstpointer is_closure)
{
  g_autofree char *name = g_strconcat (g_getenv ("PTO_TEST_SUB_FUNCTIONS"), ":count_call", NULL);
  Test test;
  Registering registering = { .test = &test };
  g_autoptr (GError) error = NULL;
  GThread *thread;

  begin (&test, 2);
  test.handle = level_test_register (test.host, "count", count);
  test.wait = level_test_register (test.host, "wait", wait_for_go);
  init (&test);
  registering.callable
      = is_closure != NULL ? pto_sub_function_new ("count-by-ten", count_by_ten, NULL, NULL)
                           : pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, name, &error);
  g_assert_no_error (error);
  thread = g_thread_new ("register", register_meanwhile, &registering);
  pto_worker_run (test.host, busy_graph, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_thread_join (thread);
  g_assert_no_error (registering.error);
  g_assert_nonnull (registering.handle);
  /* The task that was submitted before the end of its registration has run. */
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);

  g_assert_false (pto_worker_run (test.host, graph, &test, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_pointer (&test.handle, pto_callable_handle_unref);
  test.handle = registering.handle;
  test.all = TRUE;
  run_well (&test);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, is_closure != NULL ? 21 : 3);
  g_object_unref (registering.callable);
  end (&test);
}

/* An orchestration of its own worker, in the three ways it can be named; and that a chip's is none.
 */
static gboolean
own_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
           GError **error)
{
  return graph (orchestrator, args, config, data, error);
}

static void
test_own_orchestration (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = NULL;
  g_autoptr (PtoCallable) fill = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoCallableHandle) chip = NULL;
  char *dir = object_test_make_dir ();
  Test test;

  begin (&test, 1);
  callable = pto_orchestration_function_new ("own", own_graph, &test, NULL);
  fill = level_test_fill (dir);
  test.handle = level_test_register (test.host, "count", count);
  handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  chip = pto_worker_register (test.host, fill, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_handle_get_target_namespace (chip), ==, PTO_TARGET_LOCAL_CHIP);
  g_assert_true (pto_worker_run_callable (test.host, handle, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  g_assert_false (pto_worker_run_callable (test.host, chip, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "is for chips: submit it with submit_next_level");
  g_clear_error (&error);
  g_assert_false (pto_worker_run_callable (test.host, test.handle, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  end (&test);
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/pto/register/counted", test_counted);
  g_test_add_data_func ("/pto/register/late-closure/process",
                        GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS), test_late_closure);
  g_test_add_data_func ("/pto/register/late-closure/thread",
                        GINT_TO_POINTER (PTO_CHILD_MODE_THREAD), test_late_closure);
  g_test_add_func ("/pto/register/symbol", test_symbol);
  g_test_add_func ("/pto/register/tampered", test_tampered);
  g_test_add_func ("/pto/register/replaced", test_replaced);
  g_test_add_func ("/pto/register/all-or-nothing", test_all_or_nothing);
  g_test_add_func ("/pto/register/not-accepted", test_not_accepted);
  g_test_add_data_func ("/pto/register/while-running/symbol", NULL, test_while_running);
  g_test_add_data_func ("/pto/register/while-running/closure", GINT_TO_POINTER (1),
                        test_while_running);
  g_test_add_func ("/pto/register/own-orchestration", test_own_orchestration);
  /* Last: what it tells the process stays. */
  g_test_add_func ("/pto/register/import-path", test_import_path);
  return g_test_run ();
}
