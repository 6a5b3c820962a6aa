/* test-pool-suspect.c: what is a child given that speaks for somebody of whom nothing is heard?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"

/* It gets no task, whether one is for it alone, for anybody, or for several, and nothing is done to
 * it. Heard of again it is as it was. */
static void
test_suspect (void)
{
  static const uint32_t pair[] = { 0, 1 };
  struct bench *bench = bench_far ();

  set_silent (bench, 0, true);
  submit_to (bench, 0, 0);
  submit_to (bench, 1, ANY);
  submit (bench, 2, 2, pair);
  assert_tasks (bench, NEVER_MIND, 1, NEVER_MIND, NEVER_MIND);
  answer (bench, 1);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_IDLE);
  pass_time (bench, 100 * SECOND);
  g_assert_cmpstr (bench->killed[0], ==, "");
  g_assert_true (pto_child_is_idle (&bench->own.children[0]));
  set_silent (bench, 0, false);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  answer (bench, 0);
  assert_tasks (bench, 2, 2, NEVER_MIND, NEVER_MIND);
  answer (bench, 0);
  answer (bench, 1);
  end_run (bench, 3, 0);
  bench_free (bench);
}

/* The task that it has goes on, and its answer counts; the next one waits. */
static void
test_suspect_busy (void)
{
  struct bench *bench = bench_far ();

  submit_to (bench, 0, 0);
  submit_to (bench, 1, 0);
  set_silent (bench, 0, true);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  answer (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 1);
  assert_tasks (bench, NEVER_MIND, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  set_silent (bench, 0, false);
  assert_tasks (bench, 1, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  set_silent (bench, 0, true);
  set_silent (bench, 0, false);
  answer (bench, 0);
  end_run (bench, 2, 0);
  bench_free (bench);
}

/* Its next life is another one; and of a child that speaks for itself nothing of this is believed.
 */
static void
test_suspect_dies (void)
{
  struct bench *bench = bench_far ();

  set_silent (bench, 0, true);
  die (bench, 0);
  submit_to (bench, 0, 0);
  revive (bench, 0);
  g_assert_false (pto_child_is_suspect (&bench->own.children[0]));
  answer (bench, 0);
  assert_tasks (bench, 0, NEVER_MIND, NEVER_MIND, NEVER_MIND);
  bench->own.children[1].far = false;
  set_silent (bench, 1, true);
  submit_to (bench, 1, 1);
  assert_tasks (bench, 0, 1, NEVER_MIND, NEVER_MIND);
  answer (bench, 0);
  answer (bench, 1);
  end_run (bench, 2, 0);
  bench_free (bench);
}

#define SEEDS 2000u
#define STEPS 60u

static bool
is_to_be_had (const struct bench *bench, uint32_t child)
{
  return pto_child_is_idle (&bench->own.children[child])
         && !pto_child_is_suspect (&bench->own.children[child]);
}

/* Silences, answers and deaths in any order: nobody silent is given a task, no task waits while
 * somebody could be given it, and each runs once, also if somebody had it before who has died. */
static void
play_silences (uint32_t seed)
{
  GRand *dice = g_rand_new_with_seed (seed);
  struct bench *bench = bench_far ();
  uint64_t n_submitted = 0;
  uint64_t n_lost = 0;
  uint8_t n_given_back[STEPS] = { 0 };

  for (uint32_t step = 0; step < STEPS; step++)
    {
      uint32_t c = (uint32_t) g_rand_int_range (dice, 0, CHILDREN);
      bool may_be_given[CHILDREN];
      uint64_t before[CHILDREN];
      uint64_t numbers[PTO_TOGETHER_MAX];
      uint64_t under_way = 0;

      for (uint32_t i = 0; i < CHILDREN; i++)
        {
          before[i] = task_of (bench, i);
          may_be_given[i] = !pto_child_is_suspect (&bench->own.children[i]);
        }
      switch (g_rand_int_range (dice, 0, 6))
        {
        case 0:
        case 1:
          submit_to (bench, n_submitted++, ANY);
          break;
        case 2:
          set_silent (bench, c, true);
          break;
        case 3:
          set_silent (bench, c, false);
          may_be_given[c] = true;
          break;
        case 4:
          if (request_of (bench, c) != 0)
            answer (bench, c);
          break;
        default:
          if (!pto_child_is_there (&bench->own.children[c]))
            revive (bench, c);
          /* Three in a row that do not start are given up. */
          else if (request_of (bench, c) != PTO_REQUEST_START)
            {
              uint32_t n = tasks_of (bench, c, numbers);
              bool has_begun = n > 0 && g_rand_boolean (dice);

              if (has_begun)
                take (bench, c);
              /* Of retries there are two. */
              for (uint32_t i = 0; i < n; i++)
                n_lost += has_begun || n_given_back[numbers[i]]++ == 2;
              die (bench, c);
            }
        }
      for (uint32_t i = 0; i < CHILDREN; i++)
        {
          uint64_t now = task_of (bench, i);

          if (!pto_child_is_there (&bench->own.children[i]))
            continue;
          under_way += tasks_of (bench, i, numbers);
          if (now != NEVER_MIND && now != before[i])
            g_assert_true (may_be_given[i]);
        }
      for (uint32_t i = 0; i < CHILDREN; i++)
        if (is_to_be_had (bench, i))
          g_assert_cmpuint (pto_engine_completed (bench->own.engine) + under_way, ==, n_submitted);
    }
  for (uint32_t c = 0; c < CHILDREN; c++)
    {
      if (!pto_child_is_there (&bench->own.children[c]))
        revive (bench, c);
      set_silent (bench, c, false);
    }
  for (bool more = true; more;)
    {
      more = false;
      for (uint32_t c = 0; c < CHILDREN; c++)
        if (request_of (bench, c) != 0)
          {
            answer (bench, c);
            more = true;
          }
    }
  end_run (bench, n_submitted, n_lost);
  bench_free (bench);
  g_rand_free (dice);
}

static void
test_silences (void)
{
  uint32_t first = g_test_rand_int ();

  for (uint32_t i = 0; i < SEEDS; i++)
    {
      g_test_message ("seed %u", first + i);
      play_silences (first + i);
    }
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/suspect", test_suspect);
  g_test_add_func ("/pto/pool/suspect/busy", test_suspect_busy);
  g_test_add_func ("/pto/pool/suspect/dies", test_suspect_dies);
  g_test_add_func ("/pto/pool/suspect/seeds", test_silences);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
