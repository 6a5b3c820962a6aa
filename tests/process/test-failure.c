/* test-failure.c: what follows when a task fails, or its worker dies, stands still or is not
 * wanted any more?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "deeds.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- a task that fails by itself --- */

/* 0 fails; 1, 2 and 3 need it, directly or not; 4 to 43 do not. */
static void
failing_root (struct rig *rig, void *data)
{
  Tensor a = rig_words (rig, 0, 8);
  Tensor b = rig_words (rig, 8, 8);
  Tensor c = rig_words (rig, 16, 8);
  Tensor d = rig_tensor (rig, 8);

  SUB (rig, FAIL, 0, make_output_existing_param (a), scalar (0));
  SUB (rig, COUNT, ANY, make_input_param (a), make_output_existing_param (b), scalar (1));
  SUB (rig, COUNT, ANY, make_input_param (b), make_output_existing_param (c), scalar (1));
  SUB (rig, COUNT, ANY, make_input_param (c), make_output_param (d), scalar (1));
  forty_tasks (rig, NULL);
}

static void
test_task_fails (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = deeds });

  for (uint64_t run = 1; run <= 3; run++)
    {
      g_assert_cmpint (rig_run (rig, failing_root, NULL), ==, PTO_STATUS_TASK_FAILED);
      g_assert_cmpstr (rig->report.message, ==,
                       "task 0 (\"f1\") on L3/0/sub0 failed: ValueError: it is too blue");
      g_assert_cmpstr (rig->failure.text, ==, rig->report.message);
      g_assert_cmpstr (rig->failure.domain, ==, "pto-error-quark");
      g_assert_cmpint (rig->failure.code, ==, PTO_STATUS_TASK_FAILED);
      g_assert_cmpuint (rig->stats.tasks, ==, 44);
      g_assert_cmpuint (rig->stats.failed, ==, 4);
      g_assert_cmpuint (rig->stats.poisoned, ==, 3);
      g_assert_cmpuint (counter (rig, 0), ==, run);
      g_assert_cmpuint (counter (rig, 1), ==, 0);
      g_assert_cmpuint (counter (rig, 9), ==, 40 * (2 * run - 1));
      /* The next run begins clean. */
      rig_run_ok (rig, forty_tasks, NULL);
    }
  g_assert_cmpuint (rig->stats.restarts, ==, 0);
  rig_free (rig);
}

/* The first of several is told. */
static void
two_roots (struct rig *rig, void *data)
{
  Tensor a = rig_words (rig, 0, 8);

  SUB (rig, COUNT, 0, make_output_existing_param (a), scalar (0));
  SUB (rig, FAIL, 0, make_inout_param (a), scalar (1));
  SUB (rig, FAIL, 0, scalar (2));
}

static void
test_first_error (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });

  g_assert_cmpint (rig_run (rig, two_roots, NULL), ==, PTO_STATUS_TASK_FAILED);
  g_assert_cmpuint (rig->stats.failed, ==, 2);
  g_assert_cmpuint (rig->stats.poisoned, ==, 0);
  assert_says (rig->report.message, "(\"f1\") on L3/0/sub0 failed: ValueError");
  rig_free (rig);
}

/* Its number is one of the ring that its scope has. */
static void
root_in_a_scope (struct rig *rig, void *data)
{
  SUB (rig, COUNT, 0, scalar (0));
  pto2_rt_scope_begin (rig->rt);
  SUB (rig, COUNT, 0, scalar (0));
  SUB (rig, COUNT, 0, scalar (0));
  SUB (rig, FAIL, 0, scalar (1));
  pto2_rt_scope_end (rig->rt);
}

static void
test_error_in_a_scope (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });

  g_assert_cmpint (rig_run (rig, root_in_a_scope, NULL), ==, PTO_STATUS_TASK_FAILED);
  assert_says (rig->report.message, "task 2 of ring 1 (\"f1\") on L3/0/sub0 failed: ValueError");
  rig_free (rig);
}

/* The orchestration's own failure is the run's, whatever its tasks did. */
static void
failing_orchestration (struct rig *rig, void *data)
{
  SUB (rig, LISTEN, 0, scalar (0));
  SUB (rig, COUNT, 0, scalar (1));
  board_wait (rig->board, 0, 1);
  rig->result = 7;
}

static void
test_orchestration_fails (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });

  g_assert_cmpint (rig_run (rig, failing_orchestration, NULL), ==, PTO_STATUS_EXPLICIT);
  assert_says (rig->report.message, "the orchestration returned 7");
  g_assert_cmpuint (counter (rig, 1), ==, 0);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 0);
  rig_free (rig);
}

/* --- threads that end --- */

static uint32_t
end_thread (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  if (call_scalar (call, 0) == 0)
    {
      pthread_cancel (pthread_self ());
      pthread_testcancel ();
    }
  pthread_exit (NULL);
}

static void
one_ends_its_thread (struct rig *rig, void *data)
{
  SUB (rig, 1, 0, scalar (GPOINTER_TO_UINT (data)));
  SUB (rig, 0, 0, scalar (2));
  SUB (rig, 0, 1, scalar (2));
}

static int
end_graph (struct rig *rig)
{
  pthread_exit (NULL);
}

static void
ends_itself (struct rig *rig, void *data)
{
  SUB (rig, 0, 0, scalar (3));
  end_graph (rig);
}

/* The task fails and says why; its worker goes on. So does who runs, if the orchestration does it.
 */
static void
test_ended_threads (void)
{
  static const rig_function ending[] = { count, end_thread };
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 2, .threads = true, .functions = ending });

  /* A thread is cancelled once, and may end often. */
  for (guint round = 0; round < 6; round++)
    {
      g_assert_cmpint (rig_run (rig, one_ends_its_thread, GUINT_TO_POINTER (round > 0)), ==,
                       PTO_STATUS_TASK_FAILED);
      assert_says (rig->report.message, "task 0 (\"f1\") on L3/0/sub0 failed: it ended its thread "
                                        "(pthread_exit), which is the worker's");
      g_assert_cmpuint (rig->stats.completed, ==, 3);
      g_assert_cmpuint (rig->stats.failed, ==, 1);
      g_assert_cmpuint (counter (rig, round > 0), ==, round > 0 ? round : 1);
      g_assert_cmpuint (counter (rig, 2), ==, 2 * round + 2);
    }
  for (guint i = 1; i < 3; i++)
    {
      g_assert_cmpint (rig_run (rig, ends_itself, NULL), ==, PTO_STATUS_EXPLICIT);
      assert_says (rig->report.message, "the orchestration ended its thread (pthread_exit)");
    }
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (counter (rig, 9), ==, 40);
  rig_free (rig);
}

/* --- deaths --- */

static const char *const deaths[N_WAYS]
    = { "died (signal 9, Killed)", "died (signal 11, Segmentation fault)",
        "died (signal 6, Aborted)", "exited with status 3", "was ended: stopped for 100 ms" };

/* Task 0 dies on sub0; three need it, forty do not. */
static void
dying_root (struct rig *rig, void *data)
{
  Tensor a = rig_words (rig, 0, 8);

  SUB (rig, DIE, 0, make_output_existing_param (a), scalar ((uint64_t) GPOINTER_TO_INT (data)));
  for (int i = 0; i < 3; i++)
    SUB (rig, COUNT, ANY, make_input_param (a), scalar (1));
  forty_tasks (rig, NULL);
}

static void
test_death (gconstpointer way)
{
  static const char *const parameters[] = { "stop-timeout", "100", NULL };
  struct holdings before = holdings_now ();
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 2, .restart = true, .parameters = parameters, .functions = deeds });

  for (uint64_t run = 1; run <= 3; run++)
    {
      char *expected = g_strdup_printf (
          "L3/0/sub0 %s while running \"f2\"; task 0 failed, 3 tasks that needed it did not run, 40 "
          "others finished. Its last words: \"the sky is falling\"",
          deaths[GPOINTER_TO_INT (way)]);

      g_assert_cmpint (rig_run (rig, dying_root, (void *) way), ==, PTO_STATUS_WORKER_LOST);
      g_assert_cmpstr (rig->report.message, ==, expected);
      g_assert_cmpint (rig->failure.code, ==, PTO_STATUS_WORKER_LOST);
      g_assert_cmpuint (rig->stats.failed, ==, 4);
      g_assert_cmpuint (rig->stats.poisoned, ==, 3);
      g_assert_cmpuint (counter (rig, 1), ==, 0);
      g_assert_cmpuint (counter (rig, 9), ==, 40 * run);
      g_free (expected);
    }
  rig_free (rig);
  holdings_assert (&before);
}

static void
test_restart (void)
{
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 1, .restart = true, .functions = deeds });
  int pid = atomic_load (&rig->board->pids[0]);

  for (uint64_t run = 1; run <= 4; run++)
    {
      g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
      g_assert_cmpuint (counter (rig, 0), ==, 10 * run);
      g_assert_cmpuint (rig->stats.failed, ==, 1);
      g_assert_cmpuint (rig->stats.restarts, ==, run);
      g_assert_cmpint (atomic_load (&rig->board->pids[0]), !=, pid);
      pid = atomic_load (&rig->board->pids[0]);
    }
  rig_free (rig);
}

/* Without it such tasks fail at once, and so they do in later runs; others go on. */
static void
work (struct rig *rig, void *data)
{
  SUB (rig, COUNT, 1, scalar (0));
  SUB (rig, COUNT, ANY, scalar (0));
}

static void
name_the_dead (struct rig *rig, void *data)
{
  SUB (rig, COUNT, 0, scalar (0));
  SUB (rig, COUNT, ANY, scalar (0));
}

static void
test_no_restart (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = deeds });

  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  g_assert_cmpuint (rig->stats.failed, ==, 11);
  g_assert_cmpuint (rig->stats.poisoned, ==, 0);
  g_assert_cmpstr (
      rig->report.message, ==,
      "L3/0/sub0 died (signal 9, Killed) while running \"f2\"; task 0 failed, as did 10 more, 0 "
      "others finished. Its last words: \"the sky is falling\" (restart is never: set restart to "
      "on-failure to start it again)");
  rig_run_ok (rig, work, NULL);
  g_assert_cmpuint (counter (rig, 0), ==, 2);
  g_assert_cmpint (rig_run (rig, name_the_dead, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message,
               "task 0 (\"f0\") has nobody to run it: L3/0/sub0 died (signal 9, "
               "Killed) before; task 0 failed, 1 other finished");
  g_assert_cmpuint (counter (rig, 0), ==, 3);
  rig_free (rig);
}

/* Nobody is left at all. */
static void
two_deaths (struct rig *rig, void *data)
{
  SUB (rig, DIE, 0, scalar (BY_KILL));
  SUB (rig, DIE, 1, scalar (BY_EXIT));
  for (int i = 0; i < 100; i++)
    SUB (rig, COUNT, ANY, scalar (0));
}

static void
nothing (struct rig *rig, void *data)
{
}

static void
test_nobody_left (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = deeds });

  g_assert_cmpint (rig_run (rig, two_deaths, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpint (rig_run (rig, forty_tasks, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (rig->stats.failed, ==, 40);
  rig_run_ok (rig, nothing, NULL);
  rig_free (rig);
}

/* Between runs, when nobody waits. */
static void
test_idle_death (void)
{
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 2, .restart = true, .functions = deeds });

  rig_run_ok (rig, forty_tasks, NULL);
  kill (atomic_load (&rig->board->pids[0]), SIGKILL);
  /* Its place may be taken by a new one before the task is posted, or not. */
  for (int run = 0; run < 20; run++)
    {
      enum pto_status status = rig_run (rig, name_the_dead, NULL);

      if (status == PTO_OK)
        continue;
      g_assert_cmpint (status, ==, PTO_STATUS_WORKER_LOST);
      assert_says (rig->report.message, "L3/0/sub0 died (signal 9, Killed) before it began with ");
      g_assert_cmpuint (rig->stats.failed, ==, 1);
    }
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);
}

/* --- time --- */

static void
hang_on_one (struct rig *rig, void *data)
{
  SUB (rig, HANG, 0, scalar (0));
  SUB (rig, COUNT, 1, scalar (1));
}

static void
test_task_timeout (void)
{
  static const char *const parameters[] = { "task-timeout", "100", NULL };
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 2, .restart = true, .parameters = parameters, .functions = deeds });

  g_assert_cmpint (rig_run (rig, hang_on_one, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (
      rig->report.message,
      "L3/0/sub0 was ended: gave no sign of life for task-timeout = 100 ms while running \"f3\"; task 0 "
      "failed, 1 other finished");
  g_assert_cmpuint (counter (rig, 1), ==, 1);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);
}

/* Who gives signs of life may take as long as it wants. */
static void
beat_slowly (struct rig *rig, void *data)
{
  SUB (rig, BEAT, 0, scalar (40), scalar (20));
}

static void
test_beats (void)
{
  static const char *const parameters[] = { "task-timeout", "400", NULL };
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 1, .parameters = parameters, .functions = deeds });

  rig_run_ok (rig, beat_slowly, NULL);
  rig_free (rig);
}

/* --- cancel --- */

/* Not wanted any more once a task runs. */
static bool
counter_is_set (void *data)
{
  const struct rig *rig = data;

  return counter (rig, 0) > 0;
}

static void
deaf_task (struct rig *rig, void *data)
{
  SUB (rig, HANG, 0, scalar (0));
  for (int i = 0; i < 30; i++)
    SUB (rig, COUNT, 0, scalar (1));
}

static void
listening_task (struct rig *rig, void *data)
{
  PTOParam first = scalar (0);
  PTOParam other = scalar (1);

  /* The cancel may come in between, and be the answer. */
  rig_try_submit (rig, LISTEN, PTO_CHILD_SUB, 0, 0, &first, 1);
  for (int i = 0; i < 30; i++)
    rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, 0, &other, 1);
}

static void
test_cancel (void)
{
  struct holdings before = holdings_now ();
  /* restart is never: who was ended because its run was cancelled is begun again all the same. */
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });

  for (uint32_t run = 1; run <= 3; run++)
    {
      rig->cancelled = counter_is_set;
      rig->cancelled_data = rig;
      atomic_store (&rig->board->counters[0], 0);
      g_assert_cmpint (rig_run (rig, deaf_task, NULL), ==, PTO_STATUS_CANCELLED);
      g_assert_cmpstr (rig->report.message, ==, "the run was cancelled");
      g_assert_cmpuint (counter (rig, 1), ==, 0);
      rig->cancelled = NULL;
      rig_run_ok (rig, forty_tasks, NULL);
      g_assert_cmpuint (rig->stats.restarts, ==, run);
    }
  rig_free (rig);
  holdings_assert (&before);
}

static gpointer
cancel_level (gpointer data)
{
  struct rig *rig = data;

  board_wait (rig->board, 0, 1);
  pto_level_cancel (rig->level);
  return NULL;
}

/* By another thread, and who listens is not killed: but for one that no CPU was left to in the time
 * that it has, on a machine that does much else. So one try of several must show it. */
static void
test_cancel_listener (void)
{
  uint32_t restarts = 1;

  for (int i = 0; i < 10 && restarts > 0; i++)
    {
      struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });
      GThread *thread = g_thread_new ("cancel", cancel_level, rig);

      g_assert_cmpint (rig_run (rig, listening_task, NULL), ==, PTO_STATUS_CANCELLED);
      g_assert_cmpuint (counter (rig, 1), ==, 0);
      g_thread_join (thread);
      /* Nothing happens when there is no run. */
      pto_level_cancel (rig->level);
      rig_run_ok (rig, forty_tasks, NULL);
      restarts = rig->stats.restarts;
      rig_free (rig);
    }
  g_assert_cmpuint (restarts, ==, 0);
}

/* While submit waits for a ring that is full of what never comes back. */
static void
fill_the_ring (struct rig *rig, void *data)
{
  SUB (rig, COUNT, 1, scalar (2));
  for (int i = 0; i < 3; i++)
    {
      Tensor tensor;

      pto2_rt_scope_begin (rig->rt);
      tensor = rig_tensor (rig, 4096);
      if (rig_try_submit (rig, HANG, PTO_CHILD_SUB, 0, 0,
                          (PTOParam[]){ pto2_make_param (PTO_PARAM_OUTPUT, &tensor), scalar (0) },
                          2)
          != PTO_OK)
        atomic_fetch_add (&rig->board->counters[3], 1);
      pto2_rt_scope_end (rig->rt);
    }
}

static void
test_cancel_full_ring (void)
{
  /* Room for one of the three. */
  static const char *const parameters[] = { "heap", "65536", NULL };
  struct holdings before = holdings_now ();
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 2, .parameters = parameters, .functions = deeds });
  int pids[2];

  rig_run_ok (rig, forty_tasks, NULL);
  for (uint32_t i = 0; i < 2; i++)
    pids[i] = atomic_load (&rig->board->pids[i]);
  atomic_store (&rig->board->counters[0], 0);
  rig->cancelled = counter_is_set;
  rig->cancelled_data = rig;
  g_assert_cmpint (rig_run (rig, fill_the_ring, NULL), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (counter (rig, 3), >, 0);
  g_assert_cmpuint (rig->stats.stalls, >, 0);
  rig->cancelled = NULL;
  /* Who has hung was ended, nobody else. */
  rig_run_ok (rig, name_the_dead, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  g_assert_cmpint (atomic_load (&rig->board->pids[0]), !=, pids[0]);
  g_assert_cmpint (atomic_load (&rig->board->pids[1]), ==, pids[1]);
  rig_free (rig);
  holdings_assert (&before);
}

/* --- a child that writes over what all share --- */

static void
write_over_bell (struct rig *rig, void *data)
{
  SUB (rig, SCRIBBLE, 0, scalar ((uint64_t) * (int *) data));
}

/* The parent closes and writes what is its own. */
static void
test_written_over (void)
{
  int own = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = deeds });
  eventfd_t rings = 0;

  rig_run_ok (rig, write_over_bell, &own);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);
  g_assert_cmpint (fcntl (own, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint (eventfd_read (own, &rings), ==, -1);
  close (own);
}

static void
add_tests (void)
{
  static const char *const ways[N_WAYS] = { "kill", "segv", "abort", "exit", "stop" };

  g_test_add_func ("/pto/failure/task", test_task_fails);
  g_test_add_func ("/pto/failure/first-error", test_first_error);
  g_test_add_func ("/pto/failure/error-in-a-scope", test_error_in_a_scope);
  g_test_add_func ("/pto/failure/orchestration", test_orchestration_fails);
  for (int way = 0; way < N_WAYS; way++)
    {
      char *path = g_strdup_printf ("/pto/failure/death/%s", ways[way]);

      g_test_add_data_func (path, GINT_TO_POINTER (way), test_death);
      g_free (path);
    }
  g_test_add_func ("/pto/failure/restart", test_restart);
  g_test_add_func ("/pto/failure/no-restart", test_no_restart);
  g_test_add_func ("/pto/failure/nobody-left", test_nobody_left);
  g_test_add_func ("/pto/failure/idle-death", test_idle_death);
  g_test_add_func ("/pto/failure/task-timeout", test_task_timeout);
  g_test_add_func ("/pto/failure/beats", test_beats);
  g_test_add_func ("/pto/failure/cancel", test_cancel);
  g_test_add_func ("/pto/failure/cancel-full-ring", test_cancel_full_ring);
  g_test_add_func ("/pto/failure/cancel-listener", test_cancel_listener);
  g_test_add_func ("/pto/failure/ended-threads", test_ended_threads);
  g_test_add_func ("/pto/failure/written-over", test_written_over);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
