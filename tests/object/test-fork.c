/* test-fork.c: may a program fork, and do with its children what it likes, and use workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A forked child has one thread, whatever the parent had. Children end by alarm() when they hang.
 */
#include "level-test.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 60

typedef struct
{
  char *dir;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  alarm (2 * DEADLINE_S);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  alarm (0);
  object_test_remove_dir (fixture->dir);
}

typedef struct
{
  PtoCallable *kernel;
  PtoTensor *f;
  guint64 value;
} Graph;

static gboolean
submit_fill (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
             gpointer user_data, GError **error)
{
  Graph *graph = user_data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  pto_task_args_add_tensor (own, graph->f, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (own, graph->value);
  return pto_orchestrator_submit (orchestrator, graph->kernel, own, error);
}

/* A kernel that nobody has compiled yet. */
static PtoCallable *
fresh_kernel (const char *dir)
{
  g_autofree char *text = g_strdup_printf ("const unsigned long long unique_%08x%08x = 1;\n%s",
                                           g_random_int (), g_random_int (), object_test_fill);

  return object_test_kernel (dir, "fill.c", text);
}

/* Registers, runs, and looks at what comes of it. */
static gboolean
runs (PtoWorker *worker, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (1000 * sizeof (float), NULL);
  g_autoptr (PtoTensor) f = object_test_vector (buffer);
  union
  {
    float number;
    guint32 bits;
  } value = { .number = 42 };
  Graph graph = { kernel, f, value.bits };

  if (!pto_worker_run (worker, submit_fill, &graph, NULL, NULL, NULL, &error))
    g_printerr ("%s\n", error->message);
  return error == NULL && object_test_floats (buffer)[0] == 42
         && object_test_floats (buffer)[999] == 42;
}

static PtoWorker *
new_chip (const char *backend)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  g_assert_true (pto_worker_set_parameter (worker, "backend", backend, &error));
  g_assert_true (pto_worker_start (worker, NULL, &error));
  return worker;
}

/* A worker of its own, from beginning to end. */
static gboolean
works (const char *dir, const char *backend)
{
  g_autoptr (PtoWorker) worker = new_chip (backend);
  g_autoptr (PtoCallable) kernel = fresh_kernel (dir);

  return runs (worker, kernel) && runs (worker, kernel);
}

static void
expect_exit (pid_t pid, int expected)
{
  int status;

  g_assert_cmpint (pid, >, 0);
  while (waitpid (pid, &status, 0) < 0)
    g_assert_cmpint (errno, ==, EINTR);
  g_assert_cmpint (status, ==, expected << 8);
}

static void
test_after_first_worker (Fixture *fixture, gconstpointer data)
{
  const char *backend = data;
  g_autoptr (PtoWorker) first = new_chip (backend);
  g_autoptr (PtoCallable) kernel = fresh_kernel (fixture->dir);
  pid_t pid;

  g_assert_true (runs (first, kernel));
  for (guint i = 0; i < 3; i++)
    {
      pid = fork ();
      if (pid == 0)
        {
          g_autoptr (GError) error = NULL;

          alarm (DEADLINE_S);
          /* What was built before, and what is not built yet. */
          {
            g_autoptr (PtoWorker) own = new_chip (backend);

            if (!runs (own, kernel) || !works (fixture->dir, backend))
              _exit (1);
          }
          pid = fork ();
          if (pid == 0)
            {
              alarm (DEADLINE_S);
              _exit (works (fixture->dir, backend) ? 7 : 2);
            }
          expect_exit (pid, 7);
          /* The parent's is refused, in words. */
          if (pto_worker_start (first, NULL, &error)
              || !g_error_matches (error, PTO_ERROR, PTO_ERROR_BUSY))
            _exit (3);
          _exit (works (fixture->dir, backend) ? 7 : 4);
        }
      expect_exit (pid, 7);
      g_assert_true (runs (first, kernel));
    }
}

/* Whatever is asked of the copy. */
static guint
count_refused (PtoOrchestrator *orchestrator)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) tensor = NULL;
  GError *errors[6] = { NULL };
  guint n = 0;

  pto_orchestrator_submit_order (orchestrator, args, &errors[0]);
  pto_orchestrator_begin_scope (orchestrator, &errors[1]);
  pto_orchestrator_end_scope (orchestrator, &errors[2]);
  pto_orchestrator_set_priority (orchestrator, 1, &errors[3]);
  tensor = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_INT8, 1, (guint64[]){ 1 },
                                         &errors[4]);
  tensor = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_INT8, 1, (guint64[]){ 1 }, &errors[5]);
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++)
    n += g_error_matches (errors[i], PTO_ERROR, PTO_ERROR_BUSY)
         && strstr (errors[i]->message, "is in another process") != NULL;
  return n + (tensor == NULL && !pto_orchestrator_is_valid (orchestrator));
}

/* Returns TRUE in a copy of the process, whose standard error the process itself reads. */
static gboolean
become_copy (int *words)
{
  int ends[2];
  pid_t pid;

  g_assert_cmpint (pipe (ends), ==, 0);
  pid = fork ();
  if (pid == 0)
    {
      alarm (DEADLINE_S);
      dup2 (ends[1], STDERR_FILENO);
      return TRUE;
    }
  close (ends[1]);
  *words = ends[0];
  expect_exit (pid, 1);
  return FALSE;
}

/* The copy has ended, and has said that it returned in a copy, after what else it had to say. */
static void
expect_words (int words, const char *before)
{
  char text[512] = "";
  ssize_t n = read (words, text, sizeof text - 1);

  close (words);
  g_assert_cmpint (n, >, 0);
  text[n] = '\0';
  object_test_assert_contains (text, " returned in a copy of the process, which fork() has made");
  g_assert_true (g_str_has_prefix (text, before));
}

static gboolean
fork_and_return (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer user_data, GError **error)
{
  int words;

  for (guint i = 0; i < 4; i++)
    {
      g_assert_true (pto_orchestrator_submit_order (orchestrator, NULL, error));
      if (!become_copy (&words))
        expect_words (words, i == 3 ? "pto: the orchestration: its own words\n" : "pto: the orch");
      else if (i == 3)
        {
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "its own words");
          return FALSE;
        }
      else if (i == 0)
        return TRUE;
      else if (i == 1)
        return pto_orchestrator_submit_order (orchestrator, NULL, error);
      else
        return FALSE;
    }
  return TRUE;
}

static gboolean
fork_and_submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer user_data, GError **error)
{
  Fixture *fixture = user_data;
  pid_t pid = fork ();

  if (pid == 0)
    {
      alarm (DEADLINE_S);
      if (count_refused (orchestrator) != 7)
        _exit (3);
      _exit (works (fixture->dir, "par") ? 7 : 1);
    }
  expect_exit (pid, 7);
  return pto_orchestrator_submit_order (orchestrator, NULL, error);
}

static void
test_in_orchestration (Fixture *fixture, gconstpointer data)
{
  static const char *const backends[] = { "par", "det", "threads", "isolate", "level 3" };

  for (guint i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoWorker) worker = NULL;

      if (i < 3)
        worker = new_chip (backends[i]);
      else if (i == 3)
        worker = g_object_new (PTO_TYPE_WORKER, "isolate", TRUE, NULL);
      else
        worker = level_test_host (3, 0, 1);
      g_assert_true (pto_worker_run (worker, fork_and_submit, fixture, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      g_assert_true (pto_worker_run (worker, fork_and_return, NULL, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      g_assert_true (pto_worker_run (worker, fork_and_submit, fixture, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
    }
}

/* --- SUB functions --- */

static gboolean
use_chip (PtoTaskArgs *args, gpointer data, GError **error)
{
  const char *const *backend = (const char *const[]){ "par", "det", "threads", NULL };

  for (; *backend != NULL; backend++)
    if (!works (data, *backend))
      return FALSE;
  level_test_words (args, 0)[0]++;
  return TRUE;
}

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  level_test_words (args, 0)[0]++;
  return TRUE;
}

typedef struct
{
  PtoCallableHandle *handle;
  PtoTensor *tensor;
} SubGraph;

static gboolean
submit_sub (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  SubGraph *graph = user_data;

  return level_test_submit (orchestrator, graph->handle, graph->tensor, PTO_DIRECTION_INOUT, 0, -1,
                            error);
}

/* func, in a SUB worker of a worker of level 3. */
static gboolean
run_sub (PtoSubFunc func, gpointer data, GError **error)
{
  g_autoptr (PtoWorker) host = level_test_host (3, 0, 1);
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("test", func, data, NULL);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (host, callable, NULL, error);
  LevelTestBoard board;
  SubGraph graph = { handle, NULL };
  gboolean ok;

  level_test_board_init (&board);
  graph.tensor = board.tensor;
  ok = handle != NULL && pto_worker_run (host, submit_sub, &graph, NULL, NULL, NULL, error)
       && board.words[0] == 1;
  level_test_board_clear (&board);
  pto_worker_close (host);
  return ok;
}

static gboolean
return_in_copy (PtoTaskArgs *args, gpointer data, GError **error)
{
  int words;

  if (become_copy (&words))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "its own words");
      return FALSE;
    }
  expect_words (words, "pto: test: its own words\n");
  level_test_words (args, 0)[0]++;
  return TRUE;
}

static gboolean
use_host (PtoTaskArgs *args, gpointer data, GError **error)
{
  /* Children of a child, and those have chips. */
  if (!run_sub (count, data, error) || !run_sub (use_chip, data, error))
    return FALSE;
  level_test_words (args, 0)[0]++;
  return TRUE;
}

/* The parent has children of its own, and goes on with them. */
static void
test_after_first_host (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = level_test_host (3, 1, 1);
  g_autoptr (PtoCallableHandle) handle = level_test_register (host, "count", count);
  LevelTestBoard board;
  SubGraph graph = { handle, NULL };

  level_test_board_init (&board);
  graph.tensor = board.tensor;
  for (guint i = 0; i < 3; i++)
    {
      pid_t pid;

      g_assert_true (pto_worker_run (host, submit_sub, &graph, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      pid = fork ();
      if (pid == 0)
        {
          alarm (DEADLINE_S);
          _exit (works (fixture->dir, "par") && run_sub (use_chip, fixture->dir, NULL) ? 7 : 1);
        }
      expect_exit (pid, 7);
      g_assert_cmpuint (board.words[0], ==, i + 1);
    }
  pto_worker_close (host);
  level_test_board_clear (&board);
}

static void
test_in_sub (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (works (fixture->dir, "par"));
  g_assert_true (run_sub (use_chip, fixture->dir, &error));
  g_assert_no_error (error);
  g_assert_true (run_sub (return_in_copy, fixture->dir, &error));
  g_assert_no_error (error);
  g_assert_true (run_sub (use_host, fixture->dir, &error));
  g_assert_no_error (error);
}

/* A child that a function forks hears the terminal, which the function itself leaves to the root.
 */
static gboolean
interrupt_copy (PtoTaskArgs *args, gpointer data, GError **error)
{
  const struct rlimit none = { 0, 0 };

  for (guint i = 0; i < 2; i++)
    {
      int signo = i == 0 ? SIGINT : SIGQUIT, status;
      pid_t pid;

      raise (signo);
      pid = fork ();
      if (pid == 0)
        {
          setrlimit (RLIMIT_CORE, &none);
          raise (signo);
          _exit (0);
        }
      g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
      g_assert_true (WIFSIGNALED (status));
      g_assert_cmpint (WTERMSIG (status), ==, signo);
    }
  level_test_words (args, 0)[0]++;
  return TRUE;
}

static void
test_interrupt_in_sub (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (run_sub (interrupt_copy, NULL, &error));
  g_assert_no_error (error);
}

/* --- what the program does with its children --- */

static void
reap (int signo)
{
  int saved = errno;

  while (waitpid (-1, NULL, WNOHANG) > 0)
    ;
  errno = saved;
}

static void
test_children_not_waited_for (Fixture *fixture, gconstpointer data)
{
  struct sigaction action = { .sa_handler = SIG_IGN }, before;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) bad = object_test_kernel (fixture->dir, "bad.c", "no C at all\n");
  g_autoptr (PtoWorker) worker = new_chip ("par");

  for (guint i = 0; i < 2; i++)
    {
      sigaction (SIGCHLD, &action, &before);
      g_assert_true (works (fixture->dir, "par"));
      /* Good is told from bad. */
      g_assert_null (pto_worker_register (worker, bad, NULL, &error));
      sigaction (SIGCHLD, &before, NULL);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
      object_test_assert_contains (error->message, "bad.c:1");
      g_clear_error (&error);
      action.sa_handler = reap;
    }
}

/* --- compilers that do not end --- */

typedef struct
{
  char *flag;
  GCancellable *cancellable;
} Cancel;

static gpointer
cancel_when_there (gpointer data)
{
  Cancel *cancel = data;

  while (!g_file_test (cancel->flag, G_FILE_TEST_EXISTS))
    g_usleep (1000);
  g_cancellable_cancel (cancel->cancellable);
  return NULL;
}

/* Asked for its version, preprocessing, compiling: it ends with all that it has begun. */
static void
test_cancel (Fixture *fixture, gconstpointer data)
{
  /* The last: of a kernel that a run is the first to submit. */
  static const char *const phases[] = { "*--version*", "*-E*", "*-shared*", "*-shared*" };
  g_autofree char *before = g_strdup (g_getenv ("CC"));

  for (guint i = 0; i < G_N_ELEMENTS (phases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autofree char *name = g_strdup_printf ("flag%u", i);
      g_autofree char *flag = g_build_filename (fixture->dir, name, NULL);
      g_autofree char *script = g_strdup_printf ("#!/bin/sh\n"
                                                 "case \"$*\" in\n"
                                                 "%s) sleep 1000 & echo $! > '%s.new'\n"
                                                 "  mv '%s.new' '%s'; wait ;;\n"
                                                 "*) exec cc \"$@\" ;;\n"
                                                 "esac\n",
                                                 phases[i], flag, flag, flag);
      g_autofree char *compiler_name = g_strdup_printf ("slow-cc%u", i);
      g_autofree char *compiler = object_test_write (fixture->dir, compiler_name, script);
      g_autoptr (PtoCallable) kernel = fresh_kernel (fixture->dir);
      g_autoptr (PtoWorker) worker = new_chip ("par");
      g_autofree char *text = NULL;
      Cancel cancel = { flag, cancellable };
      GThread *thread;
      pid_t pid;

      g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
      g_setenv ("CC", compiler, TRUE);
      thread = g_thread_new ("cancel", cancel_when_there, &cancel);
      if (i < 3)
        g_assert_null (pto_worker_register (worker, kernel, cancellable, &error));
      else
        {
          g_autoptr (PtoBuffer) buffer = pto_buffer_new (1000 * sizeof (float), NULL);
          g_autoptr (PtoTensor) f = object_test_vector (buffer);
          Graph graph = { kernel, f, 0 };

          g_assert_false (
              pto_worker_run (worker, submit_fill, &graph, NULL, NULL, cancellable, &error));
        }
      g_thread_join (thread);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_true (g_file_get_contents (flag, &text, NULL, NULL));
      pid = (pid_t) g_ascii_strtoll (text, NULL, 10);
      g_assert_cmpint (pid, >, 0);
      for (;;)
        {
          g_autofree char *path = g_strdup_printf ("/proc/%d/stat", (int) pid);
          g_autofree char *stat = NULL;

          if (!g_file_get_contents (path, &stat, NULL, NULL) || strstr (stat, ") Z ") != NULL)
            break;
          g_usleep (1000);
        }
    }
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
}

/* However few are left, it works or says why not. */
static void
test_no_descriptors (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoWorker) worker = new_chip ("par");
  struct rlimit before;
  gboolean has_worked = FALSE;
  gboolean has_failed = FALSE;

  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &before), ==, 0);
  for (rlim_t n = 4; n < 40; n++)
    {
      struct rlimit limit = { n, before.rlim_max };
      g_autoptr (GError) error = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (PtoCallable) kernel = fresh_kernel (fixture->dir);
      g_autoptr (PtoCallableHandle) handle = NULL;

      g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &limit), ==, 0);
      handle = pto_worker_register (worker, kernel, cancellable, &error);
      g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &before), ==, 0);
      has_worked = has_worked || handle != NULL;
      has_failed = has_failed || handle == NULL;
      g_assert_true ((handle == NULL) == (error != NULL));
      if (error != NULL)
        g_assert_true (error->domain == PTO_ERROR
                       && (error->code == PTO_ERROR_COMPILE || error->code == PTO_ERROR_SYSTEM
                           || error->code == PTO_ERROR_LOAD || error->code == PTO_ERROR_NOT_FOUND));
    }
  g_assert_true (has_worked);
  g_assert_true (has_failed);
}

/* One that says nothing when it ends. */
static void
test_silent_compiler (Fixture *fixture, gconstpointer data)
{
  static const struct
  {
    const char *script;
    const char *says;
  } cases[] = { { "#!/bin/sh\nexit 5\n", "failed with status 5" },
                { "#!/bin/sh\nkill -KILL $$\n", "signal 9" },
                { "#!/nonexistent/such/interpreter\n", "can not be run" },
                { "#!/bin/sh\nexit 0\n", "no preprocessed source" },
                { "#!/bin/sh\ncase \" $* \" in *\" -E \"*) exec cc \"$@\" ;; esac\n",
                  "no shared object" } };
  g_autofree char *before = g_strdup (g_getenv ("CC"));

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *name = g_strdup_printf ("odd-cc%u", i);
      g_autofree char *compiler = object_test_write (fixture->dir, name, cases[i].script);
      g_autoptr (PtoCallable) kernel = fresh_kernel (fixture->dir);
      g_autoptr (PtoWorker) worker = new_chip ("par");

      g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
      g_setenv ("CC", compiler, TRUE);
      g_assert_null (pto_worker_register (worker, kernel, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
      object_test_assert_contains (error->message, cases[i].says);
    }
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
}

/* --- whom a fork waits for --- */

static gint is_forking; /* atomic */
static gint asker_id;   /* atomic; a thread's */

/* About to fork: what watches forks since later has been asked already, what watches them for
 * longer has not. Until here whoever asks goes as far as he can. */
static void
wait_for_asker (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/stat", g_atomic_int_get (&asker_id));
  gboolean sleeps = FALSE;

  g_atomic_int_set (&is_forking, TRUE);
  while (!sleeps)
    {
      g_autofree char *stat = NULL;

      sleeps = !g_file_get_contents (path, &stat, NULL, NULL) || strstr (stat, ") S ") != NULL;
      g_usleep (100);
    }
}

/* It takes the lock of answers, and under that the one of what they are translated with. */
static gpointer
ask (gpointer data)
{
  g_atomic_int_set (&asker_id, (gint) syscall (SYS_gettid));
  while (!g_atomic_int_get (&is_forking))
    ;
  return pto_worker_ask_process (0, PTO_ANSWER_FORMAT_TEXT, NULL, NULL);
}

/* In a program that has named a function, and said nothing yet. */
static void
fork_while_asked (void)
{
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("test", count, NULL, NULL);
  g_autofree char *said = NULL;
  g_autofree char *answer = NULL;
  GThread *asker;
  pid_t pid;

  alarm (DEADLINE_S);
  pthread_atfork (wait_for_asker, NULL, NULL);
  said = pto_dup_translation ("", NULL, 0);
  asker = g_thread_new ("asker", ask, NULL);
  while (g_atomic_int_get (&asker_id) == 0)
    g_thread_yield ();
  pid = fork ();
  if (pid == 0)
    {
      alarm (DEADLINE_S);
      answer = pto_worker_ask_process (0, PTO_ANSWER_FORMAT_TEXT, NULL, NULL);
      _exit (answer != NULL ? 7 : 1);
    }
  answer = g_thread_join (asker);
  g_assert_nonnull (answer);
  expect_exit (pid, 7);
}

static void
test_while_asked (void)
{
  if (g_test_subprocess ())
    {
      fork_while_asked ();
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
}

#define ADD(name, data, function) g_test_add (name, Fixture, data, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/fork/after-first-worker/par", "par", test_after_first_worker);
  ADD ("/pto/fork/after-first-worker/det", "det", test_after_first_worker);
  ADD ("/pto/fork/after-first-worker/threads", "threads", test_after_first_worker);
  ADD ("/pto/fork/in-orchestration", NULL, test_in_orchestration);
  ADD ("/pto/fork/after-first-host", NULL, test_after_first_host);
  ADD ("/pto/fork/in-sub", NULL, test_in_sub);
  ADD ("/pto/fork/interrupt-in-sub", NULL, test_interrupt_in_sub);
  ADD ("/pto/fork/children-not-waited-for", NULL, test_children_not_waited_for);
  ADD ("/pto/fork/cancel", NULL, test_cancel);
  ADD ("/pto/fork/no-descriptors", NULL, test_no_descriptors);
  ADD ("/pto/fork/silent-compiler", NULL, test_silent_compiler);
  g_test_add_func ("/pto/fork/while-asked", test_while_asked);
  return g_test_run ();
}
