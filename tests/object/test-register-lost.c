/* test-register-lost.c: does an orchestration get on that registers what another thread is telling
 * a child which is lost?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Only the thread of the run begins children again while it is under way. Nothing here depends on
 * who is faster: each step is waited for.
 */
#include "level-test.h"

#include "../../pto/callable/callable-handle.h"
#include "../../pto/machine/machine-level.h"
#include "../../pto/callable/registration.h"
#include "../../pto/worker/worker.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 60u

enum
{
  WORD_COUNT,
  WORD_PID
};

typedef struct
{
  LevelTestBoard board;
  PtoWorker *host;
  PtoCallable *callable;
  PtoCallableHandle *handle; /* on SUB worker 0 */
  GThread *thread;
  gboolean is_extended; /* by the thread */
} Test;

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_fetch_add (&level_test_words (args, 0)[WORD_COUNT], 1);
  return TRUE;
}

static gboolean
tell_pid (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_store (&level_test_words (args, 0)[WORD_PID], (guint64) getpid ());
  return TRUE;
}

static gboolean
find_pid (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  Test *test = data;
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("tell-pid", tell_pid, NULL, NULL);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (test->host, callable, NULL, error);

  return handle != NULL
         && level_test_submit (orchestrator, handle, test->board.tensor, PTO_DIRECTION_NO_DEP, 0, 1,
                               error);
}

static gboolean
is_lost (Test *test)
{
  g_autofree char *state = pto_worker_describe_state_json (test->host);

  return strstr (state, "\"lost\"") != NULL;
}

static gpointer
extend (gpointer data)
{
  Test *test = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register_on (test->host, test->callable, (const int[]){ 1 }, 1, NULL, &error);

  g_assert_no_error (error);
  test->is_extended = pto_callable_handle_equal (handle, test->handle);
  return NULL;
}

/* Is the other thread telling that it is for SUB worker 1, too? It is until that has begun again.
 */
static gboolean
is_telling (Test *test)
{
  PtoTargets targets;

  return pto_machine_level_find_targets ((LevelMachine *) test->host->node.machine,
                                         pto_callable_handle_peek (test->handle), &targets)
             != NULL
         && pto_targets_have (&targets, 1);
}

static gboolean
register_too (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Test *test = data;
  g_autoptr (PtoCallableHandle) handle = NULL;

  g_assert_cmpint (kill ((pid_t) test->board.words[WORD_PID], SIGKILL), ==, 0);
  while (!is_lost (test))
    g_thread_yield ();
  test->thread = g_thread_new ("extend", extend, test);
  while (!is_telling (test))
    g_thread_yield ();
  g_assert_true (is_lost (test));
  handle = pto_worker_register_on (test->host, test->callable, (const int[]){ 0 }, 1, NULL, error);
  if (handle == NULL)
    return FALSE;
  for (int i = 0; i < 2; i++)
    if (!level_test_submit (orchestrator, handle, test->board.tensor, PTO_DIRECTION_NO_DEP, 0, i,
                            error))
      return FALSE;
  return TRUE;
}

static void
run (Test *test, PtoOrchestrationFunc function)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (test->host, function, test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
test_both (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Test test = { 0 };

  alarm (DEADLINE_S);
  level_test_begin (&state);
  level_test_board_init (&test.board);
  test.host = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 2, "restart",
                            PTO_RESTART_ON_FAILURE, NULL);
  test.callable = pto_sub_function_new ("count", count, NULL, NULL);
  test.handle
      = pto_worker_register_on (test.host, test.callable, (const int[]){ 0 }, 1, NULL, &error);
  g_assert_no_error (error);
  run (&test, find_pid);
  run (&test, register_too);
  g_thread_join (test.thread);
  g_assert_true (test.is_extended);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 2);
  g_object_unref (test.callable);
  pto_callable_handle_unref (test.handle);
  pto_worker_close (test.host);
  g_assert_finalize_object (test.host);
  level_test_board_clear (&test.board);
  level_test_end (&state);
  alarm (0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/register-lost/both", test_both);
  return g_test_run ();
}
