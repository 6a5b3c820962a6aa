/* test-control.c: what are children told besides tasks, and what do they know after it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "deeds.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

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
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest, "y",
                                      1, task_runs, rig, &report),
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
      .chips = 1, .subs = 3, .restart = true, .serve = registry, .functions = deeds });
  struct pto_report report = { 0 };

  memset (large, 'y', sizeof large);
  large[sizeof large - 1] = 'e';
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest,
                                      large, sizeof large, NULL, NULL, &report),
                   ==, PTO_OK);
  assert_known (rig, 0, 1 << 5, 1 << 5, 1 << 5);
  /* One says no: the others forget it. */
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), other, "n",
                                      1, NULL, NULL, &report),
                   ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (report.message, ==,
                   "registration on L3/0/sub1 refused: it does not hash; nothing was registered");
  assert_known (rig, 0, 1 << 5, 1 << 5, 1 << 5);
  /* One dies of it. */
  report = (struct pto_report){ 0 };
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), other, "d",
                                      1, NULL, NULL, &report),
                   ==, PTO_STATUS_WORKER_LOST);
  assert_says (report.message, "L3/0/sub1 died (signal 9, Killed) while it registered it");
  assert_known (rig, 0, 1 << 5, 0, 1 << 5);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_UNREGISTER, rig_subs (rig), digest,
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
      &(struct rig_config){ .chips = 1, .subs = 3, .serve = registry, .functions = deeds });
  struct pto_report report = { 0 };
  int pids[4];

  for (uint32_t i = 0; i < 4; i++)
    pids[i] = atomic_load (&rig->board->pids[i]);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest, "h",
                                      1, counter_50_is_set, rig, &report),
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

      pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest, "y", 1, NULL,
                         NULL, &report);
      g_assert_cmpstr (report.message, ==, "");
      pto_level_control (rig->level, PTO_REQUEST_UNREGISTER, rig_subs (rig), digest, NULL, 0, NULL,
                         NULL, &report);
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
      = rig_new (&(struct rig_config){ .subs = 3, .serve = registry, .functions = deeds });
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
  g_assert_cmpint (pto_level_renew (rig->level, rig_subs (rig), NULL, NULL, &report), ==, PTO_OK);
  g_assert_cmpint (pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest, "y",
                                      1, NULL, NULL, &report),
                   ==, PTO_OK);
  one_for_each (rig, NULL);
  /* Cancelled before it has begun: at once, and it may go on. */
  g_assert_cmpint (pto_level_renew (rig->level, rig_subs (rig), always, NULL, &report), ==,
                   PTO_STATUS_CANCELLED);
}

static void
test_register_inside (void)
{
  struct holdings before = holdings_now ();
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 3, .serve = registry, .functions = deeds });

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
  struct rig *rig = rig_new (&(struct rig_config){ .chips = 1, .subs = 3, .functions = deeds });
  struct pto_report report = { 0 };

  rig_run_ok (rig, forty_tasks, NULL);
  for (uint32_t round = 1; round <= 3; round++)
    {
      int pids[4];

      for (uint32_t i = 0; i < 4; i++)
        pids[i] = atomic_load (&rig->board->pids[i]);
      g_assert_cmpint (pto_level_renew (rig->level, rig_subs (rig), NULL, NULL, &report), ==,
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

  pto_level_renew (rig->level, rig_subs (rig), NULL, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  atomic_store (&rig->board->counters[40], 1);
  return NULL;
}

static void
test_renew_while_running (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = deeds });
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
  g_test_add_func ("/pto/control/register", test_register);
  g_test_add_func ("/pto/control/register-cancelled", test_register_cancelled);
  g_test_add_func ("/pto/control/register-while-running", test_register_while_running);
  g_test_add_func ("/pto/control/register-inside", test_register_inside);
  g_test_add_func ("/pto/control/renew", test_renew);
  g_test_add_func ("/pto/control/renew-while-running", test_renew_while_running);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
