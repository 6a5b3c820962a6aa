/* test-pool-again.c: what is run again when it was lost with its child?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"

/* Whoever is next has it; others go on meanwhile, and what was lost is counted. */
static void
test_again (void)
{
  struct bench *bench = bench_ready (true);

  bench->idempotent = true;
  for (uint64_t i = 0; i < 5; i++)
    submit_to (bench, i, ANY);
  assert_tasks (bench, 0, 1, 2, 3);
  take (bench, 1);
  die (bench, 1);
  answer (bench, 3);
  assert_tasks (bench, 0, NEVER_MIND, 2, 4);
  answer (bench, 0);
  assert_tasks (bench, 1, NEVER_MIND, 2, 4);
  /* It was not even begun: all the same. */
  die (bench, 0);
  revive (bench, 1);
  answer (bench, 1);
  assert_tasks (bench, NEVER_MIND, 1, 2, 4);
  for (uint32_t c = 1; c < CHILDREN; c++)
    answer (bench, c);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 2);
  end_run (bench, 5, 0);
  begin_run (bench);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 0);
  end_run (bench, 0, 0);
  bench_free (bench);
}

/* So often, and then it is lost as any other; who is not idempotent is so at once. */
static void
test_again_limit (void)
{
  struct bench *bench = bench_ready (true);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  bench->idempotent = true;
  submit_to (bench, 0, 2);
  for (uint32_t i = 0; i < 2; i++)
    {
      take (bench, 2);
      die (bench, 2);
      g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 0);
      /* It is for that one. */
      assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, NEVER_MIND);
      revive (bench, 2);
      answer (bench, 2);
      assert_tasks (bench, NEVER_MIND, NEVER_MIND, 0, NEVER_MIND);
    }
  take (bench, 2);
  die (bench, 2);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  g_assert_cmpuint (first->n_lost, ==, 2);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 2);
  end_run (bench, 1, 1);
  begin_run (bench);
  bench->idempotent = false;
  submit_to (bench, 0, ANY);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  g_assert_cmpuint (first->n_lost, ==, 0);
  end_run (bench, 1, 1);
  bench_free (bench);
}

/* What had not begun does no harm when it does, whatever it reads and writes, which stays as it is;
 * so often, too. */
static void
test_again_before (void)
{
  static const uint32_t pair[] = { 1, 2 };
  uint64_t words[] = { 1, 2, 3 };
  struct bench *bench = bench_ready (true);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  bench->n_tensors = 2;
  bench->types[0] = PTO_PARAM_INPUT;
  bench->types[1] = PTO_PARAM_OUTPUT;
  bench->words[0] = words;
  bench->words[1] = words + 1;
  submit_to (bench, 0, ANY);
  die (bench, 0);
  assert_tasks (bench, NEVER_MIND, 0, NEVER_MIND, NEVER_MIND);
  die (bench, 1);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, 0, NEVER_MIND);
  g_assert_cmpuint (words[0] + 10 * words[1] + 100 * words[2], ==, 321);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 2);
  die (bench, 2);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST_BEFORE);
  g_assert_cmpuint (first->n_lost, ==, 2);
  end_run (bench, 1, 1);
  for (uint32_t c = 0; c < 3; c++)
    {
      revive (bench, c);
      answer (bench, c);
    }
  /* Members of a group have, for all that is known. */
  begin_run (bench);
  bench->n_tensors = 0;
  submit (bench, 0, 2, pair);
  die (bench, 1);
  answer (bench, 2);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST_BEFORE);
  end_run (bench, 1, 1);
  /* And who wrote over its mailbox may have. */
  begin_run (bench);
  submit_to (bench, 0, 2);
  bench->own.children[2].link.mailbox->reply += 7;
  die (bench, 2);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  end_run (bench, 1, 1);
  bench_free (bench);
}

/* Who does not live again takes with it what was for it alone; what others can do they do, and the
 * last of all takes all. Each time it is told why. */
static void
test_again_gone (void)
{
  struct bench *bench = bench_ready (false);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  bench->idempotent = true;
  submit_to (bench, 0, 1);
  take (bench, 1);
  die (bench, 1);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  end_run (bench, 1, 1);
  begin_run (bench);
  submit_to (bench, 0, ANY);
  die (bench, 0);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, 0, NEVER_MIND);
  die (bench, 2);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, 0);
  answer (bench, 3);
  end_run (bench, 1, 0);
  begin_run (bench);
  submit_to (bench, 0, ANY);
  take (bench, 3);
  die (bench, 3);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 0);
  end_run (bench, 1, 1);
  bench_free (bench);
}

/* What it writes begins as zeros, what it reads is as it was. What it reads and writes, or nobody
 * knows, is not run again. */
static void
test_again_memory (void)
{
  uint64_t in[] = { 1, 2 };
  uint64_t out[] = { 3, 4, 5 };
  struct bench *bench = bench_ready (true);
  static const struct
  {
    PTOParamType type;
    uint32_t shift; /* words that it lies behind out */
    bool again;
  } cases[] = { { PTO_PARAM_INPUT, 0, false }, { PTO_PARAM_INPUT, 1, false },
                { PTO_PARAM_INOUT, 2, false }, { PTO_PARAM_NO_DEP, 2, false },
                { PTO_PARAM_OUTPUT, 2, true }, { PTO_PARAM_INPUT, 2, true } };

  bench->idempotent = true;
  bench->n_tensors = 2;
  bench->types[0] = PTO_PARAM_INPUT;
  bench->types[1] = PTO_PARAM_OUTPUT;
  bench->words[0] = in;
  bench->words[1] = out;
  submit_to (bench, 0, 0);
  take (bench, 0);
  g_assert_cmpuint (out[0], ==, 3);
  die (bench, 0);
  revive (bench, 0);
  answer (bench, 0);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  g_assert_cmpuint (out[0], ==, 0);
  g_assert_cmpuint (out[1], ==, 0);
  g_assert_cmpuint (out[2], ==, 5);
  g_assert_cmpuint (in[0], ==, 1);
  g_assert_cmpuint (in[1], ==, 2);
  answer (bench, 0);
  end_run (bench, 1, 0);
  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      uint64_t words[4] = { 0 };

      begin_run (bench);
      bench->types[0] = cases[i].type;
      bench->words[0] = words + cases[i].shift;
      bench->words[1] = words;
      submit_to (bench, 0, 1);
      take (bench, 1);
      die (bench, 1);
      g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, cases[i].again);
      revive (bench, 1);
      answer (bench, 1);
      if (cases[i].again)
        answer (bench, 1);
      end_run (bench, 1, !cases[i].again);
    }
  bench_free (bench);
}

/* A group is run again as one, when all that were its members have ended, whatever they came to. */
static void
test_again_group (void)
{
  static const uint32_t three[] = { 0, 2, ANY };
  struct bench *bench = bench_ready (true);

  bench->idempotent = true;
  submit (bench, 0, 3, three);
  submit_to (bench, 1, ANY);
  assert_tasks (bench, 0, 0, 0, 1);
  answer (bench, 1);
  take (bench, 2);
  die (bench, 2);
  /* It is asked to stop, and what it says then is nothing that went wrong. */
  g_assert_cmpint (pto_child_life (&bench->own.children[0]), ==, PTO_LIFE_ASKED);
  revive (bench, 2);
  answer (bench, 2);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, 1);
  answer_with (bench, 0, PTO_STATUS_TASK_FAILED, "stopped");
  assert_tasks (bench, 0, 0, 0, 1);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 0);
  /* The next time one of them has heard of the loss before it is known here. */
  answer_with (bench, 0, PTO_STATUS_TASK_FAILED, "no");
  g_assert_cmpint (pto_child_life (&bench->own.children[1]), ==, PTO_LIFE_ASKED);
  die (bench, 1);
  answer_with (bench, 2, PTO_STATUS_TASK_FAILED, "stopped");
  answer (bench, 3);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 2);
  assert_tasks (bench, 0, NEVER_MIND, 0, 0);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, 0);
  for (uint32_t c = 0; c < CHILDREN; c++)
    if (c != 1)
      answer (bench, c);
  end_run (bench, 2, 0);
  revive (bench, 1);
  answer (bench, 1);
  /* One fails, and nobody is lost but whom that ended: it has failed. */
  begin_run (bench);
  submit (bench, 0, 3, three);
  answer_with (bench, 2, PTO_STATUS_TASK_FAILED, "no");
  answer (bench, 1);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, 0);
  for (uint32_t i = 0; i < 1000 && bench->killed[0][0] == '\0'; i++)
    pass_time (bench, 10 * MS);
  g_assert_cmpstr (bench->killed[0], ==, "was asked to stop and did not for 3 s");
  die (bench, 0);
  g_assert_cmpstr (pto_pool_first_failure (bench->own.pool)->failure.text, ==, "no");
  g_assert_cmpuint (PTO_TASK_LOCAL (pto_pool_first_failure (bench->own.pool)->task), ==, 0);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 0);
  end_run (bench, 1, 1);
  revive (bench, 0);
  answer (bench, 0);
  /* Two are lost at one time: it was one time. */
  begin_run (bench);
  submit (bench, 0, 3, three);
  die (bench, 0);
  die (bench, 2);
  answer (bench, 1);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  revive (bench, 0);
  answer (bench, 0);
  revive (bench, 2);
  answer (bench, 2);
  assert_tasks (bench, 0, 0, 0, NEVER_MIND);
  for (uint32_t c = 0; c < 3; c++)
    answer (bench, c);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 1);
  end_run (bench, 1, 0);
  bench_free (bench);
}

/* Of a run that is not wanted nothing is run again: not what is lost after that, nor what waits to
 * be. */
static void
test_again_cancelled (void)
{
  struct bench *bench = bench_ready (true);

  bench->idempotent = true;
  submit_to (bench, 0, 0);
  submit_to (bench, 1, 1);
  die (bench, 0);
  cancel (bench, SECOND);
  die (bench, 1);
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 1);
  end_cancelled (bench, 2);
  bench_free (bench);
}

/* What was lost together is run again one by one: one of them may be to blame. */
static void
test_again_together (void)
{
  struct bench *bench = bench_known (1000);

  bench->idempotent = true;
  submit_to (bench, 3, 0);
  for (uint64_t i = 4; i < 7; i++)
    submit_to (bench, i, 0);
  bench->idempotent = false;
  submit_to (bench, 7, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 4);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 5);
  g_assert_cmpuint (PTO_TASK_LOCAL (pto_pool_first_failure (bench->own.pool)->task), ==, 7);
  revive (bench, 0);
  answer (bench, 0);
  for (uint32_t i = 0; i < 3; i++)
    {
      assert_has (bench, 0, i < 2 ? 5 + i : 4, 1);
      answer_tasks (bench, 0, 0, 1000);
    }
  g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 3);
  end_run (bench, 8, 1);
  bench_free (bench);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/again", test_again);
  g_test_add_func ("/pto/pool/again-limit", test_again_limit);
  g_test_add_func ("/pto/pool/again-before", test_again_before);
  g_test_add_func ("/pto/pool/again-gone", test_again_gone);
  g_test_add_func ("/pto/pool/again-memory", test_again_memory);
  g_test_add_func ("/pto/pool/again-group", test_again_group);
  g_test_add_func ("/pto/pool/again-cancelled", test_again_cancelled);
  g_test_add_func ("/pto/pool/again-together", test_again_together);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
