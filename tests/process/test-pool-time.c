/* test-pool-time.c: how long is a child given, who is ended, and who is begun again how often?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"

/* --- dying again and again --- */

static void
live_again (struct bench *bench)
{
  revive (bench, 0);
  answer (bench, 0);
}

/* Counted is who dies by itself without having done anything. */
static void
test_deaths (void)
{
  struct bench *bench = bench_ready (true);
  const struct pto_child *child = &bench->own.children[0];

  for (uint32_t i = 1; i < 4; i++)
    {
      die (bench, 0);
      g_assert_cmpuint (child->deaths, ==, i);
      live_again (bench);
    }
  submit_to (bench, 0, 0);
  answer (bench, 0);
  g_assert_cmpuint (child->deaths, ==, 0);
  die (bench, 0);
  live_again (bench);
  /* With a task: there are not so many of them. */
  submit_to (bench, 1, 0);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpuint (child->deaths, ==, 0);
  live_again (bench);
  end_run (bench, 2, 1);
  bench_free (bench);
}

/* --- a child that writes where it should not --- */

static void
test_written_over (void)
{
  struct bench *bench = bench_ready (true);

  submit_to (bench, 0, 0);
  submit_to (bench, 1, 1);
  atomic_store (&bench->own.children[0].link.mailbox->reply, 0xa5a5a5a5);
  pto_hub_mark (bench->own.exec, bench->own.hub, 0);
  settle (bench);
  g_assert_cmpstr (bench->killed[0], ==, "wrote over its mailbox");
  /* Nobody says so: it is found all the same. */
  atomic_store (&bench->own.children[1].link.mailbox->post.value, 77);
  pass_time (bench, MS);
  g_assert_cmpstr (bench->killed[1], ==, "wrote over its mailbox");
  die (bench, 0);
  die (bench, 1);
  end_run (bench, 2, 2);
  live_again (bench);
  begin_run (bench);
  submit_to (bench, 0, 0);
  g_assert_cmpuint (task_of (bench, 0), ==, 0);
  answer (bench, 0);
  end_run (bench, 1, 0);
  bench_free (bench);
}

/* --- time --- */

static void
test_limits (void)
{
  struct bench *bench = bench_new (true);

  /* START: five seconds, unless there are signs of life. */
  take (bench, 0);
  take (bench, 3);
  answer (bench, 1);
  answer_with (bench, 2, PTO_STATUS_NO_MEMORY, "no room");
  g_assert_cmpstr (bench->refused[2], ==, "no room");
  g_assert_cmpstr (bench->killed[2], ==, "could not start");
  die (bench, 2);
  pass_time (bench, 4 * SECOND);
  atomic_fetch_add (&bench->own.children[3].link.mailbox->beat, 1);
  pass_time (bench, 2 * SECOND);
  g_assert_cmpstr (bench->killed[0], ==, "did not answer for 5 s");
  g_assert_cmpstr (bench->killed[3], ==, "");
  g_assert_cmpuint (pto_pool_beats (bench->own.pool), ==, 1);
  die (bench, 0);
  answer (bench, 3);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_IDLE);
  begin_run (bench);
  /* A task: ten. */
  submit_to (bench, 0, 1);
  submit_to (bench, 1, 3);
  take (bench, 1);
  pass_time (bench, 9 * SECOND);
  answer (bench, 3);
  pass_time (bench, 2 * SECOND);
  g_assert_cmpstr (bench->killed[1], ==, "gave no sign of life for task-timeout = 10 s");
  die (bench, 1);
  /* One that stands still: one second in a row. */
  submit_to (bench, 2, 3);
  take (bench, 3);
  pto_child_found_stopped (&bench->own.children[3], true);
  pass_time (bench, SECOND);
  pto_child_found_stopped (&bench->own.children[3], false);
  pass_time (bench, SECOND);
  pto_child_found_stopped (&bench->own.children[3], true);
  pass_time (bench, SECOND);
  g_assert_cmpstr (bench->killed[3], ==, "");
  pass_time (bench, 1);
  g_assert_cmpstr (bench->killed[3], ==, "stopped for 1 s");
  die (bench, 3);
  end_run (bench, 3, 2);
  bench_free (bench);
}

/* Lives in a row that a lock may end, and how long one has to take START: the last, as long as
 * START may take. */
#define CAUGHT_LIVES 32

static uint64_t
come_up_ms (uint32_t life)
{
  static const uint64_t limits[] = { 50, 100, 200, 400 };

  return life < CAUGHT_LIVES ? limits[life / 8] : 5000;
}

static const char *
not_come_up (uint32_t life)
{
  static const char *const words[] = { "did not come up for 50 ms", "did not come up for 100 ms",
                                       "did not come up for 200 ms", "did not come up for 400 ms" };

  return life < CAUGHT_LIVES ? words[life / 8]
                             : "did not come up: 33 times caught by a lock that another thread "
                               "held when it was forked, the last time for 5 s";
}

/* START that is not taken: a lock has caught the child, which is to live again, many times. What
 * it does when it has taken START may take long. */
static void
test_caught (void)
{
  struct bench *bench = bench_new (true);
  struct pto_child *child = &bench->own.children[0];

  for (uint32_t c = 1; c < CHILDREN; c++)
    take (bench, c);
  /* One that has been up since then counts for nothing. */
  pass_time (bench, 51 * MS);
  g_assert_cmpstr (bench->killed[0], ==, not_come_up (0));
  bench->killed[0][0] = '\0';
  die (bench, 0);
  live_again (bench);
  die (bench, 0);
  for (uint32_t life = 0; life <= CAUGHT_LIVES; life++)
    {
      revive (bench, 0);
      pass_time (bench, come_up_ms (life) * MS);
      g_assert_cmpstr (bench->killed[0], ==, "");
      if (life == 0)
        {
          /* Who stands still is no case of locks. */
          pto_child_found_stopped (child, true);
          pass_time (bench, 100 * MS);
          pto_child_found_stopped (child, false);
          g_assert_cmpstr (bench->killed[0], ==, "");
        }
      pass_time (bench, MS);
      g_assert_cmpstr (bench->killed[0], ==, not_come_up (life));
      g_assert_cmpint (child->why, ==, life < CAUGHT_LIVES ? PTO_WHY_CAUGHT : PTO_WHY_FAULT);
      for (uint32_t c = 1; c < CHILDREN; c++)
        {
          g_assert_cmpstr (bench->killed[c], ==, "");
          atomic_fetch_add (&bench->own.children[c].link.mailbox->beat, 1);
        }
      bench->killed[0][0] = '\0';
      die (bench, 0);
      g_assert_cmpuint (child->failed_starts, ==, life < CAUGHT_LIVES ? 0 : 1);
    }
  /* It has been up in between: from the beginning. */
  revive (bench, 0);
  take (bench, 0);
  pass_time (bench, 4 * SECOND);
  answer (bench, 0);
  for (uint32_t c = 1; c < CHILDREN; c++)
    answer (bench, c);
  begin_run (bench);
  submit_to (bench, 0, 0);
  take (bench, 0);
  die (bench, 0);
  revive (bench, 0);
  pass_time (bench, 51 * MS);
  g_assert_cmpstr (bench->killed[0], ==, not_come_up (0));
  /* Just then it does; it is given nothing before its end. */
  take (bench, 0);
  answer (bench, 0);
  submit_to (bench, 1, 0);
  g_assert_cmpuint (request_of (bench, 0), ==, 0);
  g_assert_cmpint (child->why, ==, PTO_WHY_CAUGHT);
  g_assert_cmpint (pto_child_life (child), ==, PTO_LIFE_KILLED);
  die (bench, 0);
  revive (bench, 0);
  answer (bench, 0);
  g_assert_cmpuint (task_of (bench, 0), ==, 1);
  answer (bench, 0);
  end_run (bench, 2, 1);
  bench_free (bench);
}

/* Who has never been up is not begun again for ever: the level does not come up. */
static void
test_never_up (void)
{
  struct bench *bench = bench_new (true);
  struct pto_child *child = &bench->own.children[0];

  for (uint32_t c = 1; c < CHILDREN; c++)
    answer (bench, c);
  for (uint32_t life = 0; life <= CAUGHT_LIVES; life++)
    {
      if (life > 0)
        revive (bench, 0);
      g_assert_null (pto_pool_start_failed (bench->own.pool));
      pass_time (bench, (come_up_ms (life) + 1) * MS);
      bench->killed[0][0] = '\0';
      die (bench, 0);
    }
  g_assert_cmpint (pto_child_life (child), ==, PTO_LIFE_GONE);
  g_assert_true (pto_pool_start_failed (bench->own.pool) == child);
  g_assert_cmpuint (pto_pool_starting (bench->own.pool), ==, 0);
  g_assert_false (pto_pool_has_lost (bench->own.pool));
  bench_free (bench);
}

/* Nobody waits any more: tasks that wait fail, the others have so long. */
static void
test_cancel (void)
{
  struct bench *bench = bench_ready (true);

  for (uint64_t i = 0; i < 8; i++)
    submit_to (bench, i, i < 2 ? (uint32_t) i : 1);
  cancel (bench, 2 * SECOND);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 6);
  g_assert_true (pto_pool_is_cancelled (bench->own.pool));
  g_assert_cmpint (bench->pace, ==, PTO_PACE_FAST);
  g_assert_cmpuint (atomic_load (&bench->own.children[1].link.mailbox->cancel), ==,
                    pto_word_get (&bench->own.children[1].link.mailbox->post));
  pass_time (bench, SECOND);
  /* In more of a hurry than before. */
  pto_pool_cancel (bench->own.pool, 30 * MS);
  settle (bench);
  pass_time (bench, 10 * MS);
  answer (bench, 0);
  /* One that has begun long before counts no more than this. */
  pass_time (bench, 10 * MS - 1);
  g_assert_cmpstr (bench->killed[1], ==, "");
  pass_time (bench, SECOND);
  g_assert_cmpstr (bench->killed[1], ==, "was asked to stop and did not for 30 ms");
  die (bench, 1);
  end_cancelled (bench, 8);
  /* The next run is not. */
  begin_run (bench);
  g_assert_false (pto_pool_is_cancelled (bench->own.pool));
  revive (bench, 1);
  answer (bench, 1);
  for (uint64_t i = 0; i < 5; i++)
    submit_to (bench, i, ANY);
  assert_tasks (bench, 0, 1, 2, 3);
  answer (bench, 0);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  end_run (bench, 5, 0);
  bench_free (bench);
}

/* More patience than the word holds is as much as it holds. */
static void
test_long_patience (void)
{
  struct bench *bench = bench_ready (false);

  submit_to (bench, 0, 0);
  /* 2^32 us, and a tenth of a second. */
  cancel (bench, (UINT64_C (1) << 32) * 1000 + 100 * MS);
  for (int i = 0; i < 50; i++)
    pass_time (bench, 20 * MS);
  g_assert_cmpstr (bench->killed[0], ==, "");
  answer (bench, 0);
  end_cancelled (bench, 1);
  bench_free (bench);
}

/* A worker has children to end before it comes back itself: it is given 30 ms more. */
static void
test_cancel_worker (void)
{
  struct bench *bench = bench_ready (true);

  submit_to (bench, 0, 0);
  submit_to (bench, 1, 1);
  bench->own.children[1].level = 3;
  cancel (bench, 30 * MS);
  for (uint32_t c = 0; c < 2; c++)
    g_assert_cmpuint (atomic_load (&bench->own.children[c].link.mailbox->cancel), ==,
                      pto_word_get (&bench->own.children[c].link.mailbox->post));
  for (int i = 0; i < 3; i++)
    pass_time (bench, 10 * MS);
  g_assert_cmpstr (bench->killed[0], ==, "was asked to stop and did not for 30 ms");
  for (int i = 0; i < 2; i++)
    pass_time (bench, 10 * MS);
  g_assert_cmpstr (bench->killed[1], ==, "");
  pass_time (bench, 10 * MS);
  g_assert_cmpstr (bench->killed[1], ==, "was asked to stop and did not for 60 ms");
  die (bench, 0);
  die (bench, 1);
  end_cancelled (bench, 2);
  bench_free (bench);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/deaths", test_deaths);
  g_test_add_func ("/pto/pool/written-over", test_written_over);
  g_test_add_func ("/pto/pool/long-patience", test_long_patience);
  g_test_add_func ("/pto/pool/limits", test_limits);
  g_test_add_func ("/pto/pool/caught", test_caught);
  g_test_add_func ("/pto/pool/never-up", test_never_up);
  g_test_add_func ("/pto/pool/cancel", test_cancel);
  g_test_add_func ("/pto/pool/cancel-worker", test_cancel_worker);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
