/* test-failure.c: what follows when a task fails, or its worker dies, stands still or is not wanted
 * any more?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include "../../pto/process/mailbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum
{
  COUNT,   /* any tensors; scalar: counter */
  FAIL,    /* the same, and fails */
  DIE,     /* any tensors; scalar: how */
  HANG,    /* any tensors; scalar: counter; for ever, deaf */
  LISTEN,  /* the same, until it is asked to stop */
  BEAT,    /* scalar: how often, and how long in between, in ms */
  GATE,    /* scalar: gate */
  SCRIBBLE /* scalar: descriptor for the bell */
};

/* How to die. */
enum
{
  BY_KILL,
  BY_SEGV,
  BY_ABORT,
  BY_EXIT,
  BY_STOP,
  N_WAYS
};

static uint32_t
count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], 1);
  return 0;
}

static uint32_t
fail (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  return call_fail (failure, PTO_STATUS_TASK_FAILED, "ValueError: it is too blue");
}

static uint32_t
die (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  static const char words[] = "first\nthe sky is falling\n";

  g_assert_cmpint (write (STDERR_FILENO, words, sizeof words - 1), ==, sizeof words - 1);
  switch (call_scalar (call, 0))
    {
    case BY_KILL:
      raise (SIGKILL);
      break;
    case BY_SEGV:
      /* A sanitizer has a handler, and more to say. */
      signal (SIGSEGV, SIG_DFL);
      raise (SIGSEGV);
      break;
    case BY_ABORT:
      abort ();
    case BY_EXIT:
      exit (3);
    case BY_STOP:
      raise (SIGSTOP);
      break;
    }
  return 0;
}

static uint32_t
hang (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  for (;;)
    pause ();
  return 0;
}

static uint32_t
listen_to (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  count (rig, call, failure);
  while (!pto_call_is_cancelled (call))
    g_usleep (200);
  return call_fail (failure, PTO_STATUS_CANCELLED, "stopped");
}

static uint32_t
beat (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  for (uint64_t i = 0; i < call_scalar (call, 0); i++)
    {
      g_usleep (call_scalar (call, 1) * 1000);
      pto_call_beat (call);
    }
  return 0;
}

static uint32_t
gate (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  gate_pass (rig->board, (uint32_t) call_scalar (call, 0));
  return 0;
}

/* The first child's. */
static uint32_t
scribble (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  struct pto_hub *hub = (struct pto_hub *) ((char *) call->mailbox - 4096);

  hub->bell.event = (int32_t) call_scalar (call, 0);
  return 0;
}

static const rig_function functions[] = { count, fail, die, hang, listen_to, beat, gate, scribble };

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

static uint64_t
counter (const struct rig *rig, uint32_t index)
{
  return atomic_load (&rig->board->counters[index]);
}

static void
forty_tasks (struct rig *rig, void *data)
{
  for (int i = 0; i < 40; i++)
    SUB (rig, COUNT, ANY, scalar (9));
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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = functions });

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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = functions });

  g_assert_cmpint (rig_run (rig, two_roots, NULL), ==, PTO_STATUS_TASK_FAILED);
  g_assert_cmpuint (rig->stats.failed, ==, 2);
  g_assert_cmpuint (rig->stats.poisoned, ==, 0);
  assert_says (rig->report.message, "(\"f1\") on L3/0/sub0 failed: ValueError");
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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = functions });

  g_assert_cmpint (rig_run (rig, failing_orchestration, NULL), ==, PTO_STATUS_EXPLICIT);
  assert_says (rig->report.message, "the orchestration returned 7");
  g_assert_cmpuint (counter (rig, 1), ==, 0);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 0);
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
      .subs = 2, .restart = true, .parameters = parameters, .functions = functions });

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

/* With restart a task that names the dead waits for its next life. */
static void
die_then_work (struct rig *rig, void *data)
{
  SUB (rig, DIE, 0, scalar (BY_KILL));
  for (int i = 0; i < 10; i++)
    SUB (rig, COUNT, 0, scalar (0));
}

static void
test_restart (void)
{
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 1, .restart = true, .functions = functions });
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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = functions });

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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2, .functions = functions });

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
      = rig_new (&(struct rig_config){ .subs = 2, .restart = true, .functions = functions });

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
      .subs = 2, .restart = true, .parameters = parameters, .functions = functions });

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
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 1, .parameters = parameters, .functions = functions });

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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = functions });

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
      struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = functions });
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
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 2, .parameters = parameters, .functions = functions });
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

/* --- starting --- */

static uint32_t
refuse_start (struct rig *rig, uint32_t index, const struct pto_call *call,
              struct pto_failure *failure)
{
  if (call->request != PTO_REQUEST_START || index != 2)
    return 0;
  pto_failure_set (failure, PTO_STATUS_NO_MEMORY, NULL, "no address space for ring 0");
  return PTO_STATUS_NO_MEMORY;
}

static uint32_t
die_at_start (struct rig *rig, uint32_t index, const struct pto_call *call,
              struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && index == 2)
    _exit (4);
  return 0;
}

static uint32_t
hang_at_start (struct rig *rig, uint32_t index, const struct pto_call *call,
               struct pto_failure *failure)
{
  while (call->request == PTO_REQUEST_START && index == 2)
    pause ();
  return 0;
}

static bool
always (void *data)
{
  return true;
}

static void
test_start (void)
{
  static const char *const parameters[] = { "timeout", "200", NULL };
  struct holdings before = holdings_now ();
  struct rig_config config = { .chips = 1, .subs = 4, .functions = functions, .restart = true };
  struct pto_report report = { 0 };

  config.serve = refuse_start;
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_NO_MEMORY);
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: no address space for ring 0");
  holdings_assert (&before);
  config.threads = true;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: no address space for ring 0");
  holdings_assert (&before);
  config.threads = false;

  config.serve = die_at_start;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: it exited with status 4");
  holdings_assert (&before);

  config.serve = hang_at_start;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, always, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_CANCELLED);
  holdings_assert (&before);
  config.parameters = parameters;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpstr (report.message, ==,
                   "L3/0/sub1 can not be started: it was ended: did not answer for 200 ms");
  holdings_assert (&before);
}

#ifndef __SANITIZE_THREAD__
/* The nth thread from now on can not be made; 0: all can. */
static int threads_left;

int
pthread_create (pthread_t *thread, const pthread_attr_t *attr, void *(*func) (void *data),
                void *data)
{
  int (*real) (pthread_t *, const pthread_attr_t *, void *(*) (void *), void *)
      = (int (*) (pthread_t *, const pthread_attr_t *, void *(*) (void *), void *)) dlsym (
          RTLD_NEXT, "pthread_create");

  return threads_left > 0 && --threads_left == 0 ? EAGAIN : real (thread, attr, func, data);
}

/* The keeper, or a child: nobody waits for one that is not there. */
static void
test_no_thread (void)
{
  struct holdings before = holdings_now ();

  for (int n = 1; n <= 4; n++)
    {
      struct pto_report report = { 0 };

      threads_left = n;
      g_assert_null (
          rig_try (&(struct rig_config){ .subs = 3, .threads = true, .functions = functions }, NULL,
                   NULL, &report));
      g_assert_cmpint (threads_left, ==, 0);
      g_assert_cmpint (report.status, ==, PTO_STATUS_SYSTEM);
      assert_says (report.message, "L3/0 can not be started: ");
      holdings_assert (&before);
    }
}
#endif

/* --- caught by a lock --- */

/* A lock that somebody in the parent holds at some of the forks, and that each child needs first.
 */
static struct
{
  GMutex lock;
  uint32_t caught; /* bits of forks that find it held */
  uint32_t forks;
} trap;

static pid_t
fork_into_trap (void *data)
{
  bool held = trap.forks < 32 && (trap.caught >> trap.forks & 1) != 0;
  pid_t pid;

  trap.forks++;
  if (held)
    g_mutex_lock (&trap.lock);
  pid = fork ();
  if (held && pid != 0)
    g_mutex_unlock (&trap.lock);
  return pid;
}

static void
step_into_trap (struct rig *rig, uint32_t index)
{
  g_mutex_lock (&trap.lock);
  g_mutex_unlock (&trap.lock);
}

static void
set_trap (uint32_t caught)
{
  trap.caught = caught;
  trap.forks = 0;
}

static const struct rig_config trapped = { .chips = 1,
                                           .subs = 3,
                                           .functions = functions,
                                           .fork = fork_into_trap,
                                           .probe = step_into_trap };

/* At the start, whatever restart says: it works, and nobody hears of it. */
static void
test_caught_at_start (void)
{
  /* Forks that are caught, and how many there are: 4 children, each caught one is forked again. */
  static const struct
  {
    uint32_t caught, forks;
  } cases[] = { { 0, 4 }, { 0x2, 5 }, { 0xf, 8 }, { 0x1e, 8 } };
  struct holdings before = holdings_now ();

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      struct rig *rig;

      set_trap (cases[i].caught);
      rig = rig_new (&trapped);
      g_assert_cmpuint (trap.forks, ==, cases[i].forks);
      rig_run_ok (rig, forty_tasks, NULL);
      g_assert_cmpuint (rig->stats.restarts, ==, 0);
      g_assert_cmpuint (trap.forks, ==, cases[i].forks);
      rig_free (rig);
      holdings_assert (&before);
    }
}

/* Seven times is bad luck, eight times is reported. */
static void
test_caught_again_and_again (void)
{
  static const char *const parameters[] = { "timeout", "200", NULL };
  struct holdings before = holdings_now ();
  struct rig_config config = trapped;
  struct pto_report report = { 0 };
  struct rig *rig;

  config.parameters = parameters;
  config.chips = 0;
  config.subs = 1;
  set_trap (0x7f);
  rig = rig_new (&config);
  g_assert_cmpuint (trap.forks, ==, 8);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);
  holdings_assert (&before);

  set_trap (UINT32_MAX);
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpuint (trap.forks, ==, 8);
  g_assert_cmpint (report.status, ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpstr (
      report.message, ==,
      "L3/0/sub0 can not be started: it was ended: did not come up: eight times caught "
      "by a lock that another thread held when it was forked, the last time for "
      "200 ms");
  holdings_assert (&before);

  /* Who does not wait is not kept waiting. */
  set_trap (UINT32_MAX);
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, always, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_CANCELLED);
  holdings_assert (&before);
}

/* When a child is begun again, in a run and between runs. */
static void
test_caught_at_restart (void)
{
  struct holdings before = holdings_now ();
  struct rig_config config = trapped;
  struct pto_report report = { 0 };
  struct rig *rig;

  config.chips = 0;
  config.subs = 1;
  config.restart = true;
  set_trap (0x6);
  rig = rig_new (&config);
  /* The second life and the third are caught. */
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (trap.forks, ==, 4);
  g_assert_cmpuint (counter (rig, 0), >, 0);
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  set_trap (0x1);
  g_assert_cmpint (pto_level_renew (rig->level, PTO_CHILD_SUB, 0, NULL, NULL, &report), ==, PTO_OK);
  g_assert_cmpuint (trap.forks, ==, 2);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 2);
  rig_free (rig);
  holdings_assert (&before);
}

/* Starts well once, never again: it is given up, and nothing hangs. */
static uint32_t
start_once (struct rig *rig, uint32_t index, const struct pto_call *call,
            struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && atomic_fetch_add (&rig->board->counters[20], 1) > 0)
    _exit (5);
  return 0;
}

static void
test_start_again_fails (void)
{
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 1, .restart = true, .serve = start_once, .functions = functions });

  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  g_assert_cmpuint (counter (rig, 20), ==, 4);
  g_assert_cmpint (rig_run (rig, forty_tasks, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message, "has nobody to run it: L3/0/sub0 exited with status 5 before");
  rig_free (rig);
}

/* --- children that can not be begun at once --- */

static struct
{
  uint32_t from, n; /* the first of the forks that fail, and how many */
  uint32_t tries;
} shortage;

static pid_t
fork_in_shortage (void *data)
{
  uint32_t number = shortage.tries++;

  if (number < shortage.from || number >= shortage.from + shortage.n)
    return fork ();
  errno = EAGAIN;
  return -1;
}

/* A while without processes costs the task its time, and not more. Where there are none for good it
 * fails. */
static void
test_no_process (void)
{
  struct holdings before = holdings_now ();
  struct rig_config config
      = { .subs = 1, .restart = true, .functions = functions, .fork = fork_in_shortage };
  struct rig *rig;

  shortage.from = 1;
  shortage.n = 5;
  shortage.tries = 0;
  rig = rig_new (&config);
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), >, 0);
  g_assert_cmpuint (shortage.tries, ==, 7);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);

  shortage.n = UINT32_MAX - 1;
  shortage.tries = 0;
  rig = rig_new (&config);
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  g_assert_cmpuint (shortage.tries, ==, 11);
  g_assert_cmpint (rig_run (rig, forty_tasks, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message, "could not be begun again");
  rig_free (rig);
  holdings_assert (&before);
}

static uint32_t
note_life (struct rig *rig, uint32_t index, const struct pto_call *call,
           struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && index == 0)
    {
      rig->board->words[0] = (uint64_t) (uintptr_t) call->mailbox;
      atomic_fetch_add (&rig->board->counters[20], 1);
    }
  return 0;
}

/* Each comes up, and dies when nobody waits for anything of it. */
static void
nine_lives (struct rig *rig, void *data)
{
  for (uint64_t life = 1; life <= 9; life++)
    {
      struct pto_mailbox *mailbox;

      while (counter (rig, 20) < life)
        {
          pto2_rt_scope_begin (rig->rt);
          SUB (rig, COUNT, 1, scalar (0));
          pto2_rt_scope_end (rig->rt);
        }
      mailbox = (struct pto_mailbox *) (uintptr_t) rig->board->words[0];
      while (atomic_load (&mailbox->reply) != 2 * pto_word_get (&mailbox->post))
        g_usleep (100);
      if (life < 9)
        kill (atomic_load (&rig->board->pids[0]), SIGKILL);
    }
}

/* It is not forked as often as it dies. */
static void
test_come_and_go (void)
{
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 2, .restart = true, .serve = note_life, .functions = functions });
  uint64_t begin = pto_wall_clock ();

  rig_run_ok (rig, nine_lives, NULL);
  /* The first at once, the others after 10, 20, 40, 80, 160, 320 and 640 ms at least. */
  g_assert_cmpuint (pto_wall_clock () - begin, >=, 1270 * MS);
  rig_free (rig);
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
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 1, .functions = functions });
  eventfd_t rings = 0;

  rig_run_ok (rig, write_over_bell, &own);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);
  g_assert_cmpint (fcntl (own, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint (eventfd_read (own, &rings), ==, -1);
  close (own);
}

/* --- registering --- */

static void
hang_here (struct rig *rig, uint32_t number)
{
  atomic_fetch_add (&rig->board->counters[number], 1);
  for (;;)
    pause ();
}

static void
one_for_each (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 3; i++)
    SUB (rig, COUNT, i, scalar (0));
}

static bool
task_runs (void *data)
{
  return atomic_load (&((struct rig *) data)->board->reached[7]) > 0;
}

/* The task ends when the registration that waits for it has been given up. */
static void
register_in_vain (struct rig *rig, void *data)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 6 };
  struct pto_report report = { 0 };

  SUB (rig, GATE, 1, scalar (7));
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, digest,
                                      "y", 1, task_runs, rig, &report),
                   ==, PTO_STATUS_CANCELLED);
  gate_open (rig->board, 7);
}

/* What each child knows: a bit a digest. */
static uint32_t
registry (struct rig *rig, uint32_t index, const struct pto_call *call, struct pto_failure *failure)
{
  _Atomic uint64_t *known = &rig->board->counters[30 + index];

  if (call->request == PTO_REQUEST_START)
    atomic_store (known, 0);
  if (call->request == PTO_REQUEST_REGISTER)
    {
      if (call->bytes > 0 && index == 2 && call->body[0] == 'n')
        return call_fail (failure, PTO_STATUS_INVALID_ARGS, "it does not hash");
      if (call->bytes > 0 && index == 2 && call->body[0] == 'h')
        hang_here (rig, 50);
      if (call->bytes > 0 && index == 2 && call->body[0] == 'd')
        raise (SIGKILL);
      /* Far or near: all of it is there. */
      if (call->bytes > 1 && call->body[call->bytes - 1] != 'e')
        return call_fail (failure, PTO_STATUS_INVALID_ARGS, "the end is missing");
      atomic_fetch_or (known, UINT64_C (1) << call->digest[0]);
    }
  if (call->request == PTO_REQUEST_UNREGISTER)
    atomic_fetch_and (known, ~(UINT64_C (1) << call->digest[0]));
  return 0;
}

/* Who is asked to forget has done so when it has run a task. */
static void
assert_known (struct rig *rig, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
  rig_run_ok (rig, one_for_each, NULL);
  g_assert_cmpuint (counter (rig, 30), ==, a);
  g_assert_cmpuint (counter (rig, 31), ==, b);
  g_assert_cmpuint (counter (rig, 32), ==, c);
  g_assert_cmpuint (counter (rig, 33), ==, d);
}

static void
test_register (void)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 5 };
  static const uint8_t other[PTO_DIGEST_BYTES] = { 6 };
  static char large[1000000];
  struct rig *rig = rig_new (&(struct rig_config){
      .chips = 1, .subs = 3, .restart = true, .serve = registry, .functions = functions });
  struct pto_report report = { 0 };

  memset (large, 'y', sizeof large);
  large[sizeof large - 1] = 'e';
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, digest,
                                      large, sizeof large, NULL, NULL, &report),
                   ==, PTO_OK);
  assert_known (rig, 0, 1 << 5, 1 << 5, 1 << 5);
  /* One says no: the others forget it. */
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, other,
                                      "n", 1, NULL, NULL, &report),
                   ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (report.message, ==,
                   "registration on L3/0/sub1 refused: it does not hash; nothing was registered");
  assert_known (rig, 0, 1 << 5, 1 << 5, 1 << 5);
  /* One dies of it. */
  report = (struct pto_report){ 0 };
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, other,
                                      "d", 1, NULL, NULL, &report),
                   ==, PTO_STATUS_WORKER_LOST);
  assert_says (report.message, "L3/0/sub1 died (signal 9, Killed) while it registered it");
  assert_known (rig, 0, 1 << 5, 0, 1 << 5);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_UNREGISTER, PTO_CHILD_SUB, 0, digest,
                                      NULL, 0, NULL, NULL, &report),
                   ==, PTO_OK);
  assert_known (rig, 0, 0, 0, 0);
  rig_free (rig);
}

static bool
counter_50_is_set (void *data)
{
  return counter (data, 50) > 0;
}

/* A child hangs in it, or comes to it never. */
static void
test_register_cancelled (void)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 5 };
  struct holdings before = holdings_now ();
  struct rig *rig = rig_new (
      &(struct rig_config){ .chips = 1, .subs = 3, .serve = registry, .functions = functions });
  struct pto_report report = { 0 };
  int pids[4];

  for (uint32_t i = 0; i < 4; i++)
    pids[i] = atomic_load (&rig->board->pids[i]);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, digest,
                                      "h", 1, counter_50_is_set, rig, &report),
                   ==, PTO_STATUS_CANCELLED);
  g_assert_cmpstr (report.message, ==, "the registration was cancelled");
  /* The others have forgotten it, and live; who has hung is another. */
  assert_known (rig, 0, 0, 0, 0);
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  for (uint32_t i = 0; i < 4; i++)
    g_assert_cmpint (atomic_load (&rig->board->pids[i]) == pids[i], ==, i != 2);

  /* It waits behind a task. */
  rig_run_ok (rig, register_in_vain, NULL);
  assert_known (rig, 0, 0, 0, 0);
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  rig_free (rig);
  holdings_assert (&before);
}

/* While a run is under way: between the tasks of each child. */
static gpointer
register_often (gpointer data)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 5 };
  struct rig *rig = data;

  for (int i = 0; i < 50; i++)
    {
      struct pto_report report = { 0 };

      pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, digest, "y", 1, NULL,
                         NULL, &report);
      g_assert_cmpstr (report.message, ==, "");
      pto_level_control (rig->level, PTO_REQUEST_UNREGISTER, PTO_CHILD_SUB, 0, digest, NULL, 0,
                         NULL, NULL, &report);
      g_assert_cmpstr (report.message, ==, "");
    }
  atomic_store (&rig->board->counters[40], 1);
  return NULL;
}

static void
until_registered (struct rig *rig, void *data)
{
  while (counter (rig, 40) == 0)
    {
      pto2_rt_scope_begin (rig->rt);
      for (int i = 0; i < 10; i++)
        SUB (rig, COUNT, i % 2 == 0 ? ANY : 0, scalar (0));
      pto2_rt_scope_end (rig->rt);
    }
}

static void
test_register_while_running (void)
{
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 3, .serve = registry, .functions = functions });
  GThread *thread = g_thread_new ("register", register_often, rig);

  rig_run_ok (rig, until_registered, NULL);
  g_thread_join (thread);
  g_assert_cmpuint (counter (rig, 0), ==, rig->stats.tasks);
  assert_known (rig, 0, 0, 0, 0);
  rig_free (rig);
}

/* Inside of a run, by who runs: the one that begins children again. */
static void
register_inside (struct rig *rig, void *data)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 5 };
  struct pto_report report = { 0 };

  SUB (rig, COUNT, 1, scalar (0));
  g_assert_cmpint (pto_level_renew (rig->level, PTO_CHILD_SUB, 0, NULL, NULL, &report), ==, PTO_OK);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, PTO_CHILD_SUB, 0, digest,
                                      "y", 1, NULL, NULL, &report),
                   ==, PTO_OK);
  one_for_each (rig, NULL);
  /* Cancelled before it has begun: at once, and it may go on. */
  g_assert_cmpint (pto_level_renew (rig->level, PTO_CHILD_SUB, 0, always, NULL, &report), ==,
                   PTO_STATUS_CANCELLED);
}

static void
test_register_inside (void)
{
  struct holdings before = holdings_now ();
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 3, .serve = registry, .functions = functions });

  rig_run_ok (rig, register_inside, NULL);
  g_assert_cmpuint (rig->stats.restarts, >=, 3);
  g_assert_cmpuint (counter (rig, 0), ==, 4);
  rig_run_ok (rig, one_for_each, NULL);
  rig_free (rig);
  holdings_assert (&before);
}

/* --- renewing --- */

static void
test_renew (void)
{
  struct holdings before = holdings_now ();
  struct rig *rig = rig_new (&(struct rig_config){ .chips = 1, .subs = 3, .functions = functions });
  struct pto_report report = { 0 };

  rig_run_ok (rig, forty_tasks, NULL);
  for (uint32_t round = 1; round <= 3; round++)
    {
      int pids[4];

      for (uint32_t i = 0; i < 4; i++)
        pids[i] = atomic_load (&rig->board->pids[i]);
      g_assert_cmpint (pto_level_renew (rig->level, PTO_CHILD_SUB, 0, NULL, NULL, &report), ==,
                       PTO_OK);
      for (uint32_t i = 0; i < 4; i++)
        g_assert_cmpint (atomic_load (&rig->board->pids[i]) == pids[i], ==, i == 0);
      rig_run_ok (rig, forty_tasks, NULL);
      g_assert_cmpuint (rig->stats.restarts, ==, 3 * round);
    }
  rig_free (rig);
  holdings_assert (&before);
}

static gpointer
renew (gpointer data)
{
  struct rig *rig = data;
  struct pto_report report = { 0 };

  pto_level_renew (rig->level, PTO_CHILD_SUB, 0, NULL, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  atomic_store (&rig->board->counters[40], 1);
  return NULL;
}

static void
test_renew_while_running (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = functions });
  GThread *thread = g_thread_new ("renew", renew, rig);

  rig_run_ok (rig, until_registered, NULL);
  g_thread_join (thread);
  g_assert_cmpuint (counter (rig, 0), ==, rig->stats.tasks);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 3);
  rig_free (rig);
}

static void
add_tests (void)
{
  static const char *const ways[N_WAYS] = { "kill", "segv", "abort", "exit", "stop" };

  g_test_add_func ("/pto/failure/task", test_task_fails);
  g_test_add_func ("/pto/failure/first-error", test_first_error);
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
  g_test_add_func ("/pto/failure/start", test_start);
#ifndef __SANITIZE_THREAD__
  g_test_add_func ("/pto/failure/no-thread", test_no_thread);
  g_test_add_func ("/pto/failure/ended-threads", test_ended_threads);
#endif
  g_test_add_func ("/pto/failure/start-again", test_start_again_fails);
  g_test_add_func ("/pto/failure/caught/start", test_caught_at_start);
  g_test_add_func ("/pto/failure/caught/again-and-again", test_caught_again_and_again);
  g_test_add_func ("/pto/failure/caught/restart", test_caught_at_restart);
  g_test_add_func ("/pto/failure/no-process", test_no_process);
  g_test_add_func ("/pto/failure/come-and-go", test_come_and_go);
  g_test_add_func ("/pto/failure/written-over", test_written_over);
  g_test_add_func ("/pto/failure/register", test_register);
  g_test_add_func ("/pto/failure/register-cancelled", test_register_cancelled);
  g_test_add_func ("/pto/failure/register-while-running", test_register_while_running);
  g_test_add_func ("/pto/failure/register-inside", test_register_inside);
  g_test_add_func ("/pto/failure/renew", test_renew);
  g_test_add_func ("/pto/failure/renew-while-running", test_renew_while_running);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
