/* test-pool-control.c: what are children asked besides tasks, and in which order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include <string.h>

/* --- control requests --- */

static struct pto_control *
control_to_all (enum pto_request request, const void *body, uint64_t bytes)
{
  struct pto_control *control = pto_control_new (request, NULL, body, bytes);

  memset (control->targets, 0xff, sizeof control->targets);
  return control;
}

static void
test_control (void)
{
  struct bench *bench = bench_ready (true);
  struct pto_control *control = control_to_all (PTO_REQUEST_REGISTER, "body", 4);

  submit_to (bench, 0, 0);
  submit_to (bench, 1, 0);
  submit_to (bench, 2, ANY);
  pto_pool_control (bench->own.pool, control);
  settle (bench);
  /* At once where nothing is under way, before the next task otherwise. */
  for (uint32_t c = 0; c < CHILDREN; c++)
    g_assert_cmpuint (request_of (bench, c), ==, c < 2 ? PTO_REQUEST_TASK : PTO_REQUEST_REGISTER);
  g_assert_cmpmem (bench->own.children[2].link.mailbox->body, 4, "body", 4);
  answer (bench, 2);
  answer (bench, 0);
  g_assert_cmpuint (request_of (bench, 0), ==, PTO_REQUEST_REGISTER);
  answer_with (bench, 0, PTO_STATUS_INVALID_ARGS, "no");
  g_assert_cmpuint (task_of (bench, 0), ==, 1);
  /* Nobody else is asked. */
  answer (bench, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  g_assert_cmpuint (pto_word_get (&control->done), ==, 0);
  die (bench, 3);
  g_assert_cmpuint (pto_word_get (&control->done), ==, 1);
  /* The first no is told, and who said yes. */
  g_assert_cmpuint (control->refused, ==, 0);
  g_assert_cmpint (control->status, ==, PTO_STATUS_INVALID_ARGS);
  g_assert_false (control->lost);
  g_assert_cmpstr (control->failure.text, ==, "no");
  g_assert_cmpuint (control->accepted[0], ==, 1u << 2);
  answer (bench, 0);
  revive (bench, 3);
  answer (bench, 3);
  end_run (bench, 3, 0);
  pto_control_unref (control);
  bench_free (bench);
}

/* All have said yes: that is done, and each hears of it before its next task. */
static void
test_commit (void)
{
  struct bench *bench = bench_ready (true);
  struct pto_control *control = control_to_all (PTO_REQUEST_REGISTER, "body", 4);
  struct pto_control *back = control_to_all (PTO_REQUEST_UNREGISTER, NULL, 0);

  submit_to (bench, 0, 0);
  pto_pool_control (bench->own.pool, control);
  settle (bench);
  for (uint32_t c = 1; c < CHILDREN; c++)
    answer (bench, c);
  submit_to (bench, 1, 1);
  submit_to (bench, 2, 1);
  answer (bench, 0);
  g_assert_cmpuint (pto_word_get (&control->done), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (pto_word_get (&control->done), ==, 1);
  g_assert_cmpuint (control->refused, ==, UINT32_MAX);
  g_assert_cmpuint (control->accepted[0], ==, 0xf);
  /* One is at a task, and the one that has died hears nothing: it is begun again with it. */
  die (bench, 3);
  pto_pool_control (bench->own.pool, back);
  settle (bench);
  g_assert_cmpuint (request_of (bench, 0), ==, PTO_REQUEST_COMMIT);
  g_assert_cmpuint (bench->own.children[0].link.mailbox->bytes, ==, 0);
  g_assert_cmpuint (task_of (bench, 1), ==, 1);
  answer (bench, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, PTO_REQUEST_COMMIT);
  answer (bench, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, PTO_REQUEST_UNREGISTER);
  answer (bench, 1);
  g_assert_cmpuint (task_of (bench, 1), ==, 2);
  answer (bench, 1);
  answer (bench, 0);
  answer (bench, 0);
  answer (bench, 2);
  answer (bench, 2);
  g_assert_cmpuint (pto_word_get (&back->done), ==, 1);
  g_assert_cmpuint (control->accepted[0], ==, 0xf);
  revive (bench, 3);
  answer (bench, 3);
  end_run (bench, 3, 0);
  pto_control_unref (control);
  pto_control_unref (back);
  bench_free (bench);
}

/* Who dies between its yes and that of all, has not agreed; who is begun again by request goes on
 * to agree. */
static void
test_death_between (void)
{
  for (int by_request = 0; by_request < 2; by_request++)
    {
      struct bench *bench = bench_ready (true);
      struct pto_control *control = control_to_all (PTO_REQUEST_REGISTER, "body", 4);
      struct pto_control *close = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);

      close->targets[0] = 1u << 2;
      submit_to (bench, 0, 0);
      pto_pool_control (bench->own.pool, control);
      settle (bench);
      answer (bench, 2);
      if (by_request)
        {
          pto_pool_control (bench->own.pool, close);
          settle (bench);
          answer (bench, 2);
        }
      die (bench, 2);
      g_assert_cmpuint (pto_word_get (&control->done), ==, 0);
      answer (bench, 1);
      answer (bench, 3);
      answer (bench, 0);
      g_assert_cmpuint (request_of (bench, 0), ==, by_request ? PTO_REQUEST_REGISTER : 0);
      if (by_request)
        {
          answer (bench, 0);
          for (uint32_t c = 0; c < CHILDREN; c++)
            if (c != 2)
              {
                g_assert_cmpuint (request_of (bench, c), ==, PTO_REQUEST_COMMIT);
                answer (bench, c);
              }
        }
      g_assert_cmpuint (pto_word_get (&control->done), ==, 1);
      g_assert_cmpuint (control->refused, ==, by_request ? UINT32_MAX : 2);
      g_assert_cmpint (control->agreed, ==, !by_request);
      g_assert_cmpint (control->lost, ==, !by_request);
      for (uint32_t c = 0; c < CHILDREN; c++)
        if (c != 2)
          g_assert_cmpuint (request_of (bench, c), ==, 0);
      revive (bench, 2);
      answer (bench, 2);
      end_run (bench, 1, 0);
      pto_control_unref (control);
      pto_control_unref (close);
      bench_free (bench);
    }
}

/* Who has agreed, and refuses what all have, is ended: its next life has it. */
static void
test_breach (void)
{
  struct bench *bench = bench_ready (true);
  struct pto_control *control = control_to_all (PTO_REQUEST_REGISTER, "body", 4);

  pto_pool_control (bench->own.pool, control);
  settle (bench);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  for (uint32_t c = 0; c < CHILDREN; c++)
    if (c == 1)
      answer_with (bench, c, PTO_STATUS_INVALID_ARGS, "no");
    else
      answer (bench, c);
  g_assert_cmpstr (bench->killed[1], ==, "went back on a registration");
  g_assert_cmpuint (control->refused, ==, UINT32_MAX);
  die (bench, 1);
  revive (bench, 1);
  answer (bench, 1);
  end_run (bench, 0, 0);
  pto_control_unref (control);
  bench_free (bench);
}

/* Who is dead has nothing to forget and need not end; who is being begun again may know all, and is
 * asked when it has started. */
static void
test_control_of_the_dead (void)
{
  static const enum pto_request requests[] = { PTO_REQUEST_UNREGISTER, PTO_REQUEST_CLOSE };

  for (uint32_t i = 0; i < G_N_ELEMENTS (requests); i++)
    {
      struct bench *bench = bench_ready (true);
      struct pto_control *dead = pto_control_new (requests[i], NULL, NULL, 0);
      struct pto_control *begun = pto_control_new (requests[i], NULL, NULL, 0);

      dead->targets[0] = begun->targets[0] = 1;
      die (bench, 0);
      pto_pool_control (bench->own.pool, dead);
      settle (bench);
      g_assert_cmpuint (pto_word_get (&dead->done), ==, 1);
      bench->asked = begun;
      revive (bench, 0);
      g_assert_cmpuint (pto_word_get (&begun->done), ==, 0);
      g_assert_cmpuint (request_of (bench, 0), ==, PTO_REQUEST_START);
      answer (bench, 0);
      g_assert_cmpuint (request_of (bench, 0), ==, requests[i]);
      answer (bench, 0);
      g_assert_cmpuint (pto_word_get (&begun->done), ==, 1);
      if (requests[i] == PTO_REQUEST_CLOSE)
        {
          die (bench, 0);
          g_assert_cmpint (pto_child_life (&bench->own.children[0]), ==, PTO_LIFE_LOST);
        }
      end_run (bench, 0, 0);
      pto_control_unref (dead);
      pto_control_unref (begun);
      bench_free (bench);
    }
}

static uint64_t freed;

static void
note_freed (void *body, uint64_t bytes)
{
  freed += bytes;
}

/* Who asked may leave: what was sent lives until the last child has answered. */
static void
test_control_left_alone (void)
{
  struct bench *bench = bench_ready (true);
  struct pto_control *control = control_to_all (PTO_REQUEST_REGISTER, NULL, 100000);

  control->far = true;
  control->body = bench;
  control->free_body = note_freed;
  freed = 0;
  pto_pool_control (bench->own.pool, control);
  atomic_store (&control->cancel, 1);
  pto_control_unref (control);
  settle (bench);
  for (uint32_t c = 0; c < CHILDREN; c++)
    {
      g_assert_cmpuint (freed, ==, 0);
      g_assert_cmpuint (request_of (bench, c), ==, PTO_REQUEST_REGISTER);
      g_assert_cmpint (pto_child_life (&bench->own.children[c]), ==, PTO_LIFE_ASKED);
      answer (bench, c);
    }
  g_assert_cmpuint (freed, ==, 100000);
  /* Nobody takes it any more. */
  pto_pool_control (bench->own.pool, control = control_to_all (PTO_REQUEST_REGISTER, "body", 4));
  pto_control_unref (control);
  settle (bench);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  end_run (bench, 0, 0);
  bench_free (bench);
}

/* The end gives nobody longer than its own time, whatever it was asked before. */
static void
test_last (void)
{
  struct bench *bench = bench_ready (true);
  struct pto_control *close = control_to_all (PTO_REQUEST_CLOSE, NULL, 0);

  end_run (bench, 0, 0);
  die (bench, 0);
  revive (bench, 0);
  take (bench, 0);
  pass_time (bench, 4 * SECOND);
  close->last = true;
  pto_pool_control (bench->own.pool, close);
  settle (bench);
  pass_time (bench, 2 * SECOND);
  g_assert_cmpstr (bench->killed[0], ==, "");
  pass_time (bench, 1);
  g_assert_cmpstr (bench->killed[0], ==, "did not answer for 2 s");
  die (bench, 0);
  for (uint32_t c = 1; c < CHILDREN; c++)
    {
      answer (bench, c);
      die (bench, c);
    }
  g_assert_cmpuint (pto_word_get (&close->done), ==, 1);
  pto_control_unref (close);
  bench_free (bench);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/control", test_control);
  g_test_add_func ("/pto/pool/control-commit", test_commit);
  g_test_add_func ("/pto/pool/control-death-between", test_death_between);
  g_test_add_func ("/pto/pool/control-breach", test_breach);
  g_test_add_func ("/pto/pool/control/of-the-dead", test_control_of_the_dead);
  g_test_add_func ("/pto/pool/control/left-alone", test_control_left_alone);
  g_test_add_func ("/pto/pool/control/last", test_last);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
