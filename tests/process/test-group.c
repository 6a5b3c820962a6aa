/* test-group.c: is a group one task whose members run at one time on different workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * That members run at the same time is proved without a clock: each waits until all have come.
 */
#include "level-test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum
{
  MEET,     /* scalars: gate | size << 8, member */
  COUNT,    /* scalar: counter */
  FAIL_ONE, /* scalars: member that fails, member; the others listen */
  DIE_ONE,  /* scalars: member that dies, member; the others listen */
  READ,     /* tensor; scalars: counter to add its first word to */
  MARK,     /* tensor; scalars: -, member: writes member + 1 at its place */
  DEAF_ONE, /* scalars: member that fails, member; the others hear nothing */
  PASS      /* scalar: gate */
};

static uint32_t
meet (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t what = call_scalar (call, 0);

  gate_meet (rig->board, what & 0xff, (uint32_t) (what >> 8));
  rig->board->words[1000 + call_scalar (call, 1)] = (uint64_t) getpid ();
  return 0;
}

static uint32_t
count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], 1);
  return 0;
}

static uint32_t
listen_to (const struct pto_call *call, struct pto_failure *failure)
{
  while (!pto_call_is_cancelled (call))
    g_usleep (200);
  return call_fail (failure, PTO_STATUS_CANCELLED, "stopped");
}

static uint32_t
fail_one (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  if (call_scalar (call, 0) != call_scalar (call, 1))
    return listen_to (call, failure);
  return call_fail (failure, PTO_STATUS_TASK_FAILED, "this one");
}

static uint32_t
die_one (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  if (call_scalar (call, 0) == call_scalar (call, 1))
    raise (SIGKILL);
  return listen_to (call, failure);
}

static uint32_t
read_word (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], call_data (call, 0)[0]);
  return 0;
}

static uint32_t
mark (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  call_data (call, 0)[call_scalar (call, 1)] = call_scalar (call, 1) + 1;
  return 0;
}

static uint32_t
deaf_one (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  if (call_scalar (call, 0) == call_scalar (call, 1))
    return call_fail (failure, PTO_STATUS_TASK_FAILED, "this one");
  for (;;)
    pause ();
  return 0;
}

static uint32_t
pass (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  gate_pass (rig->board, (uint32_t) call_scalar (call, 0));
  return 0;
}

static const rig_function functions[]
    = { meet, count, fail_one, die_one, read_word, mark, deaf_one, pass };

static uint64_t
counter (const struct rig *rig, uint32_t index)
{
  return atomic_load (&rig->board->counters[index]);
}

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

/* --- members run at the same time --- */

static void
groups_of_four (struct rig *rig, void *data)
{
  for (uint32_t gate = 0; gate < 30; gate++)
    {
      rig_group (rig, MEET, 4, NULL, NULL, gate | 4 << 8);
      /* In between, so that groups are not alone. */
      for (int i = 0; i < 7; i++)
        SUB (rig, COUNT, i % 2 == 0 ? ANY : (uint32_t) i % 4, scalar (0));
    }
}

static void
test_same_time (gconstpointer threads)
{
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 4, .threads = GPOINTER_TO_INT (threads) != 0, .functions = functions });

  rig_run_ok (rig, groups_of_four, NULL);
  g_assert_cmpuint (rig->stats.tasks, ==, 30 * 8);
  g_assert_cmpuint (counter (rig, 0), ==, 30 * 7);
  if (!rig->config.threads)
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < a; b++)
        g_assert_cmpuint (rig->board->words[1000 + a], !=, rig->board->words[1000 + b]);
  rig_free (rig);
}

/* Named members go where they are named, in whatever order; groups that overlap do not wait for
 * each other. */
static void
overlapping_groups (struct rig *rig, void *data)
{
  static const uint32_t pairs[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 }, { 2, 1 }, { 1, 0 }, { 0, 2 } };

  for (uint32_t gate = 0; gate < 60; gate++)
    rig_group (rig, MEET, 2, pairs[gate % G_N_ELEMENTS (pairs)], NULL, gate | 2 << 8);
}

static void
test_overlap (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = functions });

  rig_run_ok (rig, overlapping_groups, NULL);
  g_assert_cmpuint (rig->stats.tasks, ==, 60);
  rig_free (rig);
}

/* Nor do those that have nobody in common. */
static void
groups_apart (struct rig *rig, void *data)
{
  static const uint32_t pairs[][2] = { { 0, 1 }, { 2, 3 } };

  SUB (rig, PASS, 0, scalar (0));
  for (uint32_t i = 0; i < 20; i++)
    rig_group (rig, COUNT, 2, pairs[i % 2], NULL, i % 2);
  board_wait (rig->board, 1, 20);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  gate_open (rig->board, 0);
}

static void
test_apart (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 4, .functions = functions });

  rig_run_ok (rig, groups_apart, NULL);
  g_assert_cmpuint (counter (rig, 0), ==, 20);
  rig_free (rig);
}

static void
one_named_group (struct rig *rig, void *data)
{
  static const uint32_t workers[] = { 2, 0, ANY };

  rig_group (rig, MEET, 3, workers, NULL, 0 | 3 << 8);
}

static void
test_named (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = functions });

  rig_run_ok (rig, one_named_group, NULL);
  g_assert_cmpuint (rig->board->words[1000], ==, (uint64_t) atomic_load (&rig->board->pids[2]));
  g_assert_cmpuint (rig->board->words[1001], ==, (uint64_t) atomic_load (&rig->board->pids[0]));
  g_assert_cmpuint (rig->board->words[1002], ==, (uint64_t) atomic_load (&rig->board->pids[1]));
  rig_free (rig);
}

/* --- one task: dependencies --- */

static void
group_between (struct rig *rig, void *data)
{
  Tensor tensor = rig_words (rig, 0, 8);
  PTOParam inout = make_inout_param (tensor);

  SUB (rig, MARK, ANY, make_output_existing_param (tensor), scalar (0), scalar (6));
  rig_group (rig, MARK, 3, NULL, &inout, 0);
  /* Reads what member 0 wrote. */
  SUB (rig, READ, ANY, make_input_param (tensor), scalar (3));
}

static void
test_dependencies (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = functions });

  for (uint64_t run = 1; run <= 20; run++)
    {
      memset (rig->board->words, 0, 64);
      rig_run_ok (rig, group_between, NULL);
      g_assert_cmpuint (counter (rig, 3), ==, run);
      g_assert_cmpuint (rig->board->words[1], ==, 2);
      g_assert_cmpuint (rig->board->words[2], ==, 3);
      g_assert_cmpuint (rig->board->words[6], ==, 7);
      /* Members that name one tensor do not wait for each other. */
      g_assert_cmpuint (rig->stats.tasks, ==, 3);
      g_assert_cmpuint (rig->stats.edges, ==, 2);
    }
  rig_free (rig);
}

/* --- failures --- */

struct failing
{
  uint32_t function;
  uint32_t member;
};

static void
failing_group (struct rig *rig, void *data)
{
  const struct failing *failing = data;
  Tensor tensor = rig_words (rig, 0, 8);
  PTOParam output = make_output_existing_param (tensor);
  static const uint32_t workers[] = { 0, 1, 2 };

  rig_group (rig, failing->function, 3, workers, &output, failing->member);
  SUB (rig, READ, ANY, make_input_param (tensor), scalar (3));
  for (int i = 0; i < 9; i++)
    SUB (rig, COUNT, i % 4, scalar (1));
}

static void
work (struct rig *rig, void *data)
{
  for (int i = 0; i < 8; i++)
    SUB (rig, COUNT, i % 4, scalar (2));
  rig_group (rig, COUNT, 4, NULL, NULL, 2);
}

static void
test_member_fails (void)
{
  struct holdings before = holdings_now ();
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 4, .restart = true, .functions = functions });

  for (uint32_t run = 0; run < 12; run++)
    {
      struct failing failing = { run % 2 == 0 ? FAIL_ONE : DIE_ONE, run % 3 };
      char *who = g_strdup_printf ("L3/0/sub%u", failing.member);

      g_assert_cmpint (rig_run (rig, failing_group, &failing), ==,
                       run % 2 == 0 ? PTO_STATUS_TASK_FAILED : PTO_STATUS_WORKER_LOST);
      assert_says (rig->report.message, who);
      assert_says (rig->report.message,
                   run % 2 == 0 ? "failed: this one" : "died (signal 9, Killed) while running");
      g_assert_cmpuint (rig->stats.failed, ==, 2);
      g_assert_cmpuint (rig->stats.poisoned, ==, 1);
      g_assert_cmpuint (counter (rig, 3), ==, 0);
      g_assert_cmpuint (counter (rig, 1), ==, 9 * (run + 1));
      rig_run_ok (rig, work, NULL);
      g_free (who);
    }
  /* Those that listened were not killed. */
  g_assert_cmpuint (rig->stats.restarts, ==, 6);
  rig_free (rig);
  holdings_assert (&before);
}

/* Members that do not listen are ended, and named in no message. */
static void
test_deaf_members (void)
{
  static const char *const parameters[] = { "timeout", "200", NULL };
  struct failing failing = { DEAF_ONE, 1 };
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 4, .parameters = parameters, .functions = functions });

  g_assert_cmpint (rig_run (rig, failing_group, &failing), ==, PTO_STATUS_TASK_FAILED);
  assert_says (rig->report.message, "on L3/0/sub1 failed: this one");
  rig_run_ok (rig, work, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 2);
  rig_free (rig);
}

/* A worker that is gone for good takes the groups with it that wait for it. */
static void
kill_then_groups (struct rig *rig, void *data)
{
  struct failing failing = { DIE_ONE, 0 };
  static const uint32_t first_two[] = { 0, 1 };
  static const uint32_t last_two[] = { 1, 2 };

  rig_group (rig, DIE_ONE, 1, first_two, NULL, failing.member);
  rig_group (rig, COUNT, 2, first_two, NULL, 4);
  rig_group (rig, COUNT, 2, last_two, NULL, 5);
  rig_group (rig, COUNT, 3, NULL, NULL, 6);
}

static void
test_worker_gone (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 3, .functions = functions });

  for (uint64_t run = 1; run <= 2; run++)
    {
      g_assert_cmpint (rig_run (rig, kill_then_groups, NULL), ==, PTO_STATUS_WORKER_LOST);
      g_assert_cmpuint (rig->stats.failed, ==, 3);
      g_assert_cmpuint (rig->stats.poisoned, ==, 0);
      g_assert_cmpuint (counter (rig, 4), ==, 0);
      g_assert_cmpuint (counter (rig, 5), ==, 2 * run);
      g_assert_cmpuint (counter (rig, 6), ==, 0);
    }
  rig_free (rig);
}

/* --- what is refused --- */

static void
refused (struct rig *rig, void *data)
{
  static const uint32_t twice[] = { 1, 0, 1 };
  static const uint32_t unknown[] = { 1, 7 };
  PTOParam params[1] = { scalar (0) };

  g_assert_cmpint (rig_try_group (rig, COUNT, 5, NULL, NULL, 0), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (rig->report.message, ==,
                   "a group of 5 needs 5 workers at one time; L3/0 has 4 SUB workers");
  g_assert_cmpint (rig_try_group (rig, COUNT, 3, twice, NULL, 0), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpstr (rig->report.message, ==,
                   "worker 1 is named twice in a group: its members run at the same time");
  g_assert_cmpint (rig_try_group (rig, COUNT, 2, unknown, NULL, 0), ==, PTO_STATUS_NOT_FOUND);
  g_assert_cmpstr (rig->report.message, ==, "L3/0 has no SUB worker 7: they are 0 to 3");
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_NEXT, 3, 0, params, 1), ==,
                   PTO_STATUS_NOT_FOUND);
  g_assert_cmpstr (rig->report.message, ==, "\"f1\" is for workers of level 3, and L3/0 has none");
  /* The run goes on. */
  SUB (rig, COUNT, ANY, scalar (0));
}

static void
test_refused (void)
{
  struct rig *rig = rig_new (&(struct rig_config){ .chips = 2, .subs = 4, .functions = functions });

  rig_run_ok (rig, refused, NULL);
  g_assert_cmpuint (rig->stats.tasks, ==, 1);
  g_assert_cmpuint (counter (rig, 0), ==, 1);
  rig_free (rig);
}

static void
add_tests (void)
{
  g_test_add_data_func ("/pto/group/same-time/processes", GINT_TO_POINTER (0), test_same_time);
  g_test_add_data_func ("/pto/group/same-time/threads", GINT_TO_POINTER (1), test_same_time);
  g_test_add_func ("/pto/group/overlap", test_overlap);
  g_test_add_func ("/pto/group/apart", test_apart);
  g_test_add_func ("/pto/group/named", test_named);
  g_test_add_func ("/pto/group/dependencies", test_dependencies);
  g_test_add_func ("/pto/group/member-fails", test_member_fails);
  g_test_add_func ("/pto/group/deaf-members", test_deaf_members);
  g_test_add_func ("/pto/group/worker-gone", test_worker_gone);
  g_test_add_func ("/pto/group/refused", test_refused);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
