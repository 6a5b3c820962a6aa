/* test-family.c: do workers of levels 3 and 4 hold what is promised of their processes as a family:
 * who is ended when a run is cancelled, who is left when the parent is killed, whose locks does a
 * child get?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../object/level-test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 100
/* CPU time of what never ends, should nobody end it. */
#define HANG_S 30

/* L4/0 with L3/0 and L3/1 below it, each with two SUB workers. Numbers of processes: 0 to 3 the SUB
 * workers, 4 and 5 the workers of level 3. */
enum
{
  N_PROCESSES = 6,
  FIRST_WORKER = 4,
  WORD_HANGS = 0,
  WORD_PIDS = 16
};

typedef struct
{
  LevelTestBoard board;
  PtoWorker *top;
  PtoWorker *l3[2];
  PtoCallableHandle *note[2];
  PtoCallableHandle *hang[2];
  PtoCallableHandle *walk[2];
  int hangs; /* process 0 does not come back in the next run */
} Family;

static void
note_pid (_Atomic guint64 *words, guint64 number)
{
  atomic_store (&words[WORD_PIDS + number], (guint64) getpid ());
}

static gboolean
note (PtoTaskArgs *args, gpointer data, GError **error)
{
  note_pid (level_test_words (args, 0), pto_task_args_get_scalar (args, 1));
  return TRUE;
}

/* For ever, and it takes no signal. */
static gboolean
hang (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  volatile gboolean on = TRUE;
  sigset_t all;

  setrlimit (RLIMIT_CPU, &(struct rlimit){ HANG_S, HANG_S });
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, NULL);
  note_pid (words, pto_task_args_get_scalar (args, 1));
  atomic_fetch_add (&words[WORD_HANGS], 1);
  while (on)
    ;
  return TRUE;
}

/* What hangs begins when all else has ended: who is ended with it, then, does not depend on how
 * fast the others are. */
static PtoDirection
order (gboolean hangs)
{
  return hangs ? PTO_DIRECTION_INOUT : PTO_DIRECTION_NO_DEP;
}

static gboolean
walk (Family *family, guint id, PtoOrchestrator *orchestrator, PtoTaskArgs *args, GError **error)
{
  PtoTensor *board = pto_task_args_get_tensor (args, 0);
  gboolean hangs = id == 0 && pto_task_args_get_scalar (args, 1) == 1;

  note_pid (level_test_words (args, 0), FIRST_WORKER + id);
  for (int i = 1; i >= 0; i--)
    if (!level_test_submit (orchestrator, hangs && i == 0 ? family->hang[id] : family->note[id],
                            board, order (hangs), 2 * id + (guint) i, i, error))
      return FALSE;
  return TRUE;
}

static gboolean
walk_0 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  return walk (data, 0, orchestrator, args, error);
}

static gboolean
walk_1 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  return walk (data, 1, orchestrator, args, error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Family *family = data;

  for (int i = 1; i >= 0; i--)
    if (!level_test_submit (orchestrator, family->walk[i], family->board.tensor,
                            order (family->hangs != 0), (guint64) family->hangs, i, error))
      return FALSE;
  return TRUE;
}

static void
family_init (Family *family)
{
  g_autoptr (GError) error = NULL;

  memset (family, 0, sizeof *family);
  level_test_board_init (&family->board);
  family->top = level_test_host (4, 0, 0);
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoCallable) callable = pto_orchestration_function_new (
          i == 0 ? "walk-0" : "walk-1", i == 0 ? walk_0 : walk_1, family, NULL);

      family->l3[i] = level_test_host (3, 0, 2);
      family->note[i] = level_test_register (family->l3[i], "note", note);
      family->hang[i] = level_test_register (family->l3[i], "hang", hang);
      family->walk[i] = pto_worker_register (family->top, callable, NULL, &error);
      g_assert_no_error (error);
      pto_worker_add_worker (family->top, family->l3[i], &error);
      g_assert_no_error (error);
    }
}

static void
family_clear (Family *family)
{
  pto_worker_close (family->top);
  for (guint i = 0; i < 2; i++)
    {
      pto_callable_handle_unref (family->note[i]);
      pto_callable_handle_unref (family->hang[i]);
      pto_callable_handle_unref (family->walk[i]);
      g_object_unref (family->l3[i]);
    }
  g_assert_finalize_object (family->top);
  level_test_board_clear (&family->board);
}

static void
run_well (Family *family, guint64 pids[N_PROCESSES])
{
  g_autoptr (GError) error = NULL;

  family->hangs = 0;
  pto_worker_run (family->top, graph, family, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_PROCESSES; i++)
    pids[i] = atomic_load (&family->board.words[WORD_PIDS + i]);
}

/* --- cancelling --- */

typedef struct
{
  Family *family;
  GCancellable *cancellable;
} Canceller;

static gpointer
cancel_when_it_hangs (gpointer data)
{
  Canceller *canceller = data;

  level_test_wait (&canceller->family->board.words[WORD_HANGS], 1);
  g_cancellable_cancel (canceller->cancellable);
  return NULL;
}

/* Who has lost its parent may be a zombie for as long as nobody waits for it. */
static void
wait_gone (guint64 pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%" G_GUINT64_FORMAT "/stat", pid);

  for (;;)
    {
      g_autofree char *stat = NULL;

      if (!g_file_get_contents (path, &stat, NULL, NULL) || strstr (stat, ") Z ") != NULL)
        return;
      g_usleep (200);
    }
}

/* A child of a child never comes back: it is ended. Who has nothing to do with it lives, and who is
 * above it as well, unless it was too slow to end its own. */
static void
test_cancel_grandchild (void)
{
  LevelTestState state;
  Family family;

  level_test_begin (&state);
  family_init (&family);
  for (guint round = 0; round < 3; round++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GError) error = NULL;
      guint64 before[N_PROCESSES], after[N_PROCESSES];
      Canceller canceller = { &family, cancellable };
      GThread *thread;
      guint64 hung;

      run_well (&family, before);
      family.hangs = 1;
      atomic_store (&family.board.words[WORD_HANGS], 0);
      thread = g_thread_new ("cancel", cancel_when_it_hangs, &canceller);
      g_assert_false (pto_worker_run (family.top, graph, &family, NULL, NULL, cancellable, &error));
      g_thread_join (thread);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      hung = atomic_load (&family.board.words[WORD_PIDS]);
      g_assert_cmpuint (hung, ==, before[0]);
      wait_gone (hung);
      run_well (&family, after);
      g_assert_cmpuint (after[0], !=, before[0]);
      for (guint i = 2; i < N_PROCESSES; i++)
        if (i != FIRST_WORKER)
          g_assert_cmpuint (after[i], ==, before[i]);
      if (after[FIRST_WORKER] == before[FIRST_WORKER])
        g_assert_cmpuint (after[1], ==, before[1]);
      else
        g_test_message ("L3/0 was ended as well");
    }
  family_clear (&family);
  level_test_end (&state);
}

/* --- the parent is killed --- */

typedef struct
{
  _Atomic guint64 *hangs;
  _Atomic guint64 *shared;
} Watcher;

static gpointer
tell_that_it_hangs (gpointer data)
{
  Watcher *watcher = data;

  level_test_wait (watcher->hangs, 1);
  atomic_store (watcher->shared, 1);
  return NULL;
}

static void
run_until_killed (_Atomic guint64 *shared)
{
  guint64 pids[N_PROCESSES];
  Family family;
  Watcher watcher = { .shared = shared };

  family_init (&family);
  run_well (&family, pids);
  family.hangs = 1;
  watcher.hangs = &family.board.words[WORD_HANGS];
  g_thread_unref (g_thread_new ("watch", tell_that_it_hangs, &watcher));
  pto_worker_run (family.top, graph, &family, NULL, NULL, NULL, NULL);
}

/* Nobody stays, also not the grandchild that runs for ever and takes no signal. */
static void
test_killed (void)
{
  _Atomic guint64 *shared
      = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  guint n_gone = 0;
  int alive[2];
  char byte;
  pid_t pid;

  g_assert_true ((void *) shared != MAP_FAILED);
  g_assert_cmpint (pipe (alive), ==, 0);
  prctl (PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  pid = fork ();
  if (pid == 0)
    {
      close (alive[0]);
      run_until_killed (shared);
      _exit (1);
    }
  g_assert_cmpint (pid, >, 0);
  close (alive[1]);
  level_test_wait (shared, 1);
  g_assert_cmpint (kill (pid, SIGKILL), ==, 0);
  /* The end of the file: nobody holds the other end any more. */
  g_assert_cmpint (read (alive[0], &byte, 1), ==, 0);
  while (waitpid (-1, NULL, 0) > 0)
    n_gone++;
  g_assert_cmpuint (n_gone, ==, 1 + N_PROCESSES);
  prctl (PR_SET_CHILD_SUBREAPER, 0ul, 0ul, 0ul, 0ul);
  close (alive[0]);
  g_assert_cmpint (munmap ((void *) shared, 4096), ==, 0);
}

/* --- a thread that has forked ends --- */

typedef struct
{
  Family family;
  guint64 pids[N_PROCESSES];
  pid_t thread;
} Begun;

static gpointer
begin_in_thread (gpointer data)
{
  Begun *begun = data;

  begun->thread = gettid ();
  family_init (&begun->family);
  run_well (&begun->family, begun->pids);
  return NULL;
}

/* Its children live on, and their children. */
static void
test_forking_thread_ends (void)
{
  g_autofree char *path = NULL;
  guint64 pids[N_PROCESSES];
  LevelTestState state;
  Begun begun = { 0 };

  level_test_begin (&state);
  g_thread_join (g_thread_new ("begin", begin_in_thread, &begun));
  /* When the kernel has forgotten it, it has handed on its children, and they have been told. */
  path = g_strdup_printf ("/proc/self/task/%d", (int) begun.thread);
  while (g_file_test (path, G_FILE_TEST_EXISTS))
    g_usleep (50);
  for (guint round = 0; round < 3; round++)
    {
      run_well (&begun.family, pids);
      g_assert_cmpmem (pids, sizeof pids, begun.pids, sizeof pids);
    }
  family_clear (&begun.family);
  level_test_end (&state);
}

/* --- locks --- */

static gint busy;

/* Holds GLib's locks, and those of malloc, as often as it can. */
static gpointer
allocate (gpointer data)
{
  guint32 random = GPOINTER_TO_UINT (data);
  gpointer blocks[200];

  while (g_atomic_int_get (&busy))
    {
      gsize size = 16 + ((random = random * 1664525 + 1013904223) >> 22);

      /* More than a thread has in stock. */
      for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
        blocks[i] = g_slice_alloc (size);
      for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
        g_slice_free1 (size, blocks[i]);
      g_free (g_malloc (100 * size));
      g_object_unref (g_cancellable_new ());
    }
  return NULL;
}

static gboolean
one_of_each (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Family *family = data;

  for (guint i = 0; i < 2; i++)
    if (!level_test_submit (orchestrator, family->note[0], family->board.tensor,
                            PTO_DIRECTION_NO_DEP, i, (int) i, error))
      return FALSE;
  return TRUE;
}

static guint
number (const char *variable, guint fallback)
{
  const char *text = g_getenv (variable);

  return text != NULL ? (guint) g_ascii_strtoull (text, NULL, 10) : fallback;
}

/* A child may be born with any of them held: nobody hears of it. */
static void
test_busy_allocator (void)
{
  guint rounds = number ("PTO_TEST_ROUNDS", 10) * number ("PTO_TEST_TIMES", 1);
  GThread *thread;
  LevelTestState state;

  level_test_begin (&state);
  g_atomic_int_set (&busy, 1);
  thread = g_thread_new ("allocate", allocate, GUINT_TO_POINTER ((guint) g_test_rand_int ()));
  for (guint round = 0; round < rounds; round++)
    {
      g_autoptr (GError) error = NULL;
      Family family = { 0 };

      level_test_board_init (&family.board);
      family.top = level_test_host (3, 0, 2);
      family.note[0] = level_test_register (family.top, "note", note);
      pto_worker_run (family.top, one_of_each, &family, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (family.board.words[WORD_PIDS], !=, family.board.words[WORD_PIDS + 1]);
      pto_worker_close (family.top);
      pto_callable_handle_unref (family.note[0]);
      g_assert_finalize_object (family.top);
      level_test_board_clear (&family.board);
    }
  g_atomic_int_set (&busy, 0);
  g_thread_join (thread);
  level_test_end (&state);
}

/* --- an error that says 0 --- */

static gboolean
fail_with_zero (PtoTaskArgs *args, gpointer data, GError **error)
{
  g_set_error_literal (error, PTO_ERROR, 0, "nothing is well");
  return FALSE;
}

static gboolean
zero_and_note (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Family *family = data;

  return level_test_submit (orchestrator, family->hang[0], family->board.tensor,
                            PTO_DIRECTION_INOUT, 0, -1, error)
         && level_test_submit (orchestrator, family->note[0], family->board.tensor,
                               PTO_DIRECTION_INOUT, 0, -1, error);
}

/* A binding can make it: the task has failed all the same, and who needs it does not run. */
static void
test_error_zero (void)
{
  g_autoptr (GError) error = NULL;
  Family family = { 0 };
  LevelTestState state;

  level_test_begin (&state);
  level_test_board_init (&family.board);
  family.top = level_test_host (3, 0, 1);
  family.note[0] = level_test_register (family.top, "note", note);
  family.hang[0] = level_test_register (family.top, "fail", fail_with_zero);
  g_assert_false (pto_worker_run (family.top, zero_and_note, &family, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TASK_FAILED);
  g_assert_nonnull (strstr (error->message, "nothing is well"));
  g_assert_cmpuint (family.board.words[WORD_PIDS], ==, 0);
  pto_worker_close (family.top);
  pto_callable_handle_unref (family.note[0]);
  pto_callable_handle_unref (family.hang[0]);
  g_assert_finalize_object (family.top);
  level_test_board_clear (&family.board);
  level_test_end (&state);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (DEADLINE_S);
  if (g_getenv ("PTO_TEST_ROUNDS") == NULL)
    {
      g_test_add_func ("/pto/family/error-zero", test_error_zero);
      g_test_add_func ("/pto/family/cancel-grandchild", test_cancel_grandchild);
      g_test_add_func ("/pto/family/killed", test_killed);
      g_test_add_func ("/pto/family/forking-thread-ends", test_forking_thread_ends);
    }
  else
    alarm (20 * DEADLINE_S);
  g_test_add_func ("/pto/family/busy-allocator", test_busy_allocator);
  return g_test_run ();
}
