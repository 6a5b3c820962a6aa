/* test-pool.c: which child gets which task, and what follows when it answers or dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"

/* --- placing --- */

/* The lowest idle child first, so that few stay warm; then first come, first served. */
static void
test_any (void)
{
  struct bench *bench = bench_ready (false);

  submit_to (bench, 0, ANY);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_SLOW);
  answer (bench, 0);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_IDLE);
  for (uint64_t i = 1; i < 7; i++)
    submit_to (bench, i, ANY);
  assert_tasks (bench, 1, 2, 3, 4);
  answer (bench, 2);
  assert_tasks (bench, 1, 2, 5, 4);
  answer (bench, 1);
  assert_tasks (bench, 1, 6, 5, 4);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  end_run (bench, 7, 0);
  bench_free (bench);
}

/* Named tasks wait for their child, in their order, and in turn with those for any; others go on.
 */
static void
test_named (void)
{
  struct bench *bench = bench_ready (false);

  submit_to (bench, 0, 1);
  submit_to (bench, 1, 1);
  submit_to (bench, 2, 1);
  submit_to (bench, 3, ANY);
  assert_tasks (bench, 3, 0, NEVER_MIND, NEVER_MIND);
  for (uint64_t i = 4; i < 8; i++)
    submit_to (bench, i, ANY);
  assert_tasks (bench, 3, 0, 4, 5);
  answer (bench, 1);
  assert_tasks (bench, 3, 6, 4, 5);
  answer (bench, 1);
  assert_tasks (bench, 3, 1, 4, 5);
  answer (bench, 1);
  assert_tasks (bench, 3, 7, 4, 5);
  answer (bench, 1);
  assert_tasks (bench, 3, 2, 4, 5);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  end_run (bench, 8, 0);
  bench_free (bench);
}

/* A group waits until all of its children are free, and holds those that are; who comes later waits
 * behind it, or goes elsewhere. A child that somebody has named is for the others first, once. */
static void
test_group (void)
{
  static const uint32_t pair[] = { 0, 2 };
  static const uint32_t others[] = { 2, 3 };
  static const uint32_t anybody[] = { ANY, ANY };
  struct bench *bench = bench_ready (false);

  submit_to (bench, 0, 2);
  submit (bench, 1, 2, pair);
  submit (bench, 2, 2, others);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, 0, NEVER_MIND);
  submit_to (bench, 3, ANY);
  submit_to (bench, 4, ANY);
  /* 0 and 3 are kept. */
  assert_tasks (bench, NEVER_MIND, 3, 0, NEVER_MIND);
  answer (bench, 2);
  assert_tasks (bench, NEVER_MIND, 3, 4, NEVER_MIND);
  answer (bench, 2);
  assert_tasks (bench, 1, 3, 1, NEVER_MIND);
  /* Both must have answered. */
  answer (bench, 2);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 2);
  /* The next group may have 2, for 3 is free as well. */
  assert_tasks (bench, 1, 3, 2, 2);
  answer (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 3);
  assert_tasks (bench, NEVER_MIND, 3, 2, 2);
  /* Any: the first ones that are free. */
  submit_to (bench, 5, 3);
  submit (bench, 6, 2, anybody);
  assert_tasks (bench, NEVER_MIND, 3, 2, 2);
  answer (bench, 1);
  assert_tasks (bench, 6, 6, 2, 2);
  for (int round = 0; round < 2; round++)
    for (uint32_t c = 0; c < CHILDREN; c++)
      if (request_of (bench, c) != 0)
        answer (bench, c);
  end_run (bench, 7, 0);
  bench_free (bench);
}

/* --- answers and deaths --- */

static void
test_failures (void)
{
  struct bench *bench = bench_ready (true);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  submit_to (bench, 0, 0);
  submit_to (bench, 1, 1);
  submit_to (bench, 2, 1);
  submit_to (bench, 3, 2);
  answer_with (bench, 0, PTO_STATUS_TASK_FAILED, "too blue");
  g_assert_cmpuint (first->task, ==, 0);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_ANSWERED);
  g_assert_cmpstr (first->failure.text, ==, "too blue");
  g_assert_cmpstr (first->path, ==, "L3/0/sub0");
  /* An answer that was given before the death counts: the next task of 1 is not posted. */
  atomic_store (&bench->own.children[1].link.mailbox->reply,
                2 * pto_word_get (&bench->own.children[1].link.mailbox->post));
  die (bench, 1);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 2);
  g_assert_cmpuint (first->roots, ==, 1);
  g_assert_cmpuint (bench->lost[1], ==, 1);
  take (bench, 2);
  die (bench, 2);
  g_assert_cmpuint (first->roots, ==, 2);
  /* What names 1 waits for its next life. */
  revive (bench, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, PTO_REQUEST_START);
  answer (bench, 1);
  g_assert_cmpuint (task_of (bench, 1), ==, 2);
  answer (bench, 1);
  end_run (bench, 4, 2);
  revive (bench, 2);
  answer (bench, 2);
  bench_free (bench);
}

/* Who dies before it has taken its request never began with it. */
static void
test_before_it_began (void)
{
  for (int taken = 0; taken < 2; taken++)
    {
      struct bench *bench = bench_ready (false);

      submit_to (bench, 0, 0);
      if (taken != 0)
        take (bench, 0);
      die (bench, 0);
      g_assert_cmpint (pto_pool_first_failure (bench->own.pool)->kind, ==,
                       taken != 0 ? PTO_FAILURE_LOST : PTO_FAILURE_LOST_BEFORE);
      g_assert_cmpstr (pto_pool_first_failure (bench->own.pool)->words, ==, "ouch");
      /* Gone for good: who names it fails at once. */
      submit_to (bench, 1, 0);
      submit_to (bench, 2, ANY);
      g_assert_cmpuint (task_of (bench, 1), ==, 2);
      answer (bench, 1);
      end_run (bench, 3, 2);
      bench_free (bench);
    }
}

/* --- crowds --- */

#define CROWD 100u

static void
gather_crowd (struct bench *bench)
{
  for (uint64_t i = 0; i < CROWD; i++)
    submit_to (bench, i, 0);
}

/* Tasks that wait for one worker leave room for those that wait for others, and keep their order.
 */
static void
test_crowd (void)
{
  struct bench *bench = bench_ready (false);
  uint32_t n = CROWD;

  gather_crowd (bench);
  submit_to (bench, n++, 1);
  submit (bench, n++, 2, (uint32_t[]){ ANY, ANY });
  assert_tasks (bench, 0, CROWD, CROWD + 1, CROWD + 1);
  /* A second and a third crowd: one for all who are busy, and one of groups. */
  for (uint32_t i = 0; i < CROWD; i++)
    submit_to (bench, n++, ANY);
  for (uint32_t i = 0; i < 16; i++)
    submit (bench, n++, 2, (uint32_t[]){ 0, 3 });
  submit_to (bench, n, 1);
  answer (bench, 1);
  g_assert_cmpuint (task_of (bench, 1), ==, CROWD + 2);
  answer (bench, 1);
  g_assert_cmpuint (task_of (bench, 1), ==, n++);
  for (uint64_t i = 0; i < CROWD; answer (bench, 0))
    {
      /* In turn with those for any, as long as there are such. */
      if (task_of (bench, 0) != i)
        {
          g_assert_cmpuint (task_of (bench, 0), ==, CROWD + 2 + i);
          answer (bench, 0);
        }
      g_assert_cmpuint (task_of (bench, 0), ==, i++);
    }
  while (pto_engine_completed (bench->own.engine) < n)
    for (uint32_t c = 0; c < CHILDREN; c++)
      if (request_of (bench, c) != 0)
        answer (bench, c);
  end_run (bench, n, 0);
  bench_free (bench);
}

/* All of a crowd fail when there is nobody left for them, or the run is not wanted. */
static void
test_crowd_fails (void)
{
  for (int cancelled = 0; cancelled < 2; cancelled++)
    {
      struct bench *bench = bench_ready (false);

      gather_crowd (bench);
      if (cancelled)
        {
          cancel (bench, SECOND);
          g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, CROWD - 1);
          answer (bench, 0);
          end_cancelled (bench, CROWD);
        }
      else
        {
          die (bench, 0);
          end_run (bench, CROWD, CROWD);
        }
      begin_run (bench);
      submit_to (bench, 0, 1);
      answer (bench, 1);
      end_run (bench, 1, 0);
      bench_free (bench);
    }
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/any", test_any);
  g_test_add_func ("/pto/pool/named", test_named);
  g_test_add_func ("/pto/pool/group", test_group);
  g_test_add_func ("/pto/pool/failures", test_failures);
  g_test_add_func ("/pto/pool/before-it-began", test_before_it_began);
  g_test_add_func ("/pto/pool/crowd", test_crowd);
  g_test_add_func ("/pto/pool/crowd-fails", test_crowd_fails);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
