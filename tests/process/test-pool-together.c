/* test-pool-together.c: which tasks go together to a child that speaks for somebody far away?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/memory-observer.h"
#include "../../pto/core/completion.h"

#include <string.h>

/* Who speaks for somebody far away is given what is ready, but leaves their share to others; what
 * follows comes together with what has come meanwhile. */
static void
test_together (void)
{
  struct bench *bench = bench_known (1000);
  uint64_t n = 3;

  /* One after the other as they come: all children have one, and 12 wait. */
  for (uint32_t i = 0; i < CHILDREN + 12; i++)
    submit_to (bench, n++, ANY);
  assert_tasks (bench, 3, 4, 5, 6);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 7, 3); /* of 12: 9 are left */
  answer_tasks (bench, 1, 0, 1000);
  assert_has (bench, 1, 10, 3);
  /* It says now for the first time how long one takes. */
  answer_tasks (bench, 3, 0, 1000);
  assert_has (bench, 3, 13, 2);
  answer_tasks (bench, 2, 0, 1000);
  assert_has (bench, 2, 15, 1);
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t c = 0; c < CHILDREN; c++)
      if (request_of (bench, c) != 0)
        answer_tasks (bench, c, 0, 1000);
  end_run (bench, n, 0);
  bench_free (bench);
}

/* Those that are for one child by its name are its own. */
static void
test_together_named (void)
{
  static const uint32_t pair[] = { 0, 1 };
  struct bench *bench = bench_known (1000);

  submit_to (bench, 3, 0);
  for (uint64_t i = 4; i < 9; i++)
    submit_to (bench, i, 0);
  /* Who waits for another place is not in the way of what is for anybody. */
  for (uint64_t i = 11; i < 14; i++)
    submit_to (bench, i, ANY);
  assert_tasks (bench, 3, 11, 12, 13);
  for (uint64_t i = 14; i < 20; i++)
    submit_to (bench, i, ANY);
  answer_tasks (bench, 2, 0, 1000);
  assert_has (bench, 2, 14, 2);
  for (uint32_t c = 1; c < CHILDREN; c++)
    while (request_of (bench, c) != 0)
      answer_tasks (bench, c, 0, 1000);
  submit (bench, 9, 2, pair);
  submit_to (bench, 10, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 5); /* not the group, nor who comes behind it */
  assert_has (bench, 1, 0, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 9, 1);
  assert_has (bench, 1, 9, 1);
  answer_tasks (bench, 1, 0, 1000);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 10, 1);
  answer_tasks (bench, 0, 0, 1000);
  end_run (bench, 20, 0);
  bench_free (bench);
}

/* Each comes to what it comes to. The first that has failed is the one that is told of. */
static void
test_together_failed (void)
{
  struct bench *bench = bench_known (1000);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  for (uint64_t i = 3; i < 8; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 4);
  answer_tasks (bench, 0, 6, 1000);
  g_assert_cmpuint (PTO_TASK_LOCAL (first->task), ==, 5);
  g_assert_cmpstr (first->failure.text, ==, "no");
  end_run (bench, 8, 2);
  /* A child that fails and does not say which: all. */
  begin_run (bench);
  for (uint64_t i = 0; i < 4; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 1, 3);
  answer_with (bench, 0, PTO_STATUS_TASK_FAILED, "all");
  end_run (bench, 4, 3);
  /* Bits beyond those that it has are nobody's. */
  begin_run (bench);
  for (uint64_t i = 0; i < 4; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  answer_tasks (bench, 0, 0xf0 | 4, 1000);
  end_run (bench, 4, 1);
  bench_free (bench);
}

/* With the child all of them are lost; the others go on, also there. */
static void
test_together_lost (void)
{
  struct bench *bench = bench_known (1000);
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  for (uint64_t i = 3; i < 8; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 4);
  submit_to (bench, 8, 0);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  g_assert_cmpuint (PTO_TASK_LOCAL (first->task), ==, 4);
  revive (bench, 0);
  answer (bench, 0);
  assert_has (bench, 0, 8, 1);
  answer_tasks (bench, 0, 0, 1000);
  end_run (bench, 9, 4);
  /* But where it had taken none of them they have not begun, and are for whoever is next. */
  begin_run (bench);
  for (uint64_t i = 0; i < 4; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 1, 3);
  die (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 1);
  revive (bench, 0);
  answer (bench, 0);
  for (uint32_t i = 0; i < 3; i++)
    {
      assert_has (bench, 0, i < 2 ? 2 + i : 1, 1);
      answer_tasks (bench, 0, 0, 1000);
    }
  end_run (bench, 4, 0);
  bench_free (bench);
}

/* What takes long goes alone: others may be idle before it is done. One that did is enough; many
 * that do not make up for it. */
static void
test_together_long (void)
{
  struct bench *bench = bench_known (1000);
  uint64_t n = 3;
  uint64_t numbers[PTO_TOGETHER_MAX];
  uint32_t n_tasks;

  submit_to (bench, n++, 0);
  for (uint32_t i = 0; i < 60; i++)
    submit_to (bench, n++, 0);
  answer_tasks (bench, 0, 0, 1000000);
  assert_has (bench, 0, 4, 1);
  for (uint32_t rounds = 0; (n_tasks = tasks_of (bench, 0, numbers)) == 1; rounds++)
    {
      g_assert_cmpuint (rounds, <, 20);
      answer_tasks (bench, 0, 0, 1000);
    }
  g_assert_cmpuint (n_tasks, ==, 2);
  while (tasks_of (bench, 0, numbers) > 0)
    answer_tasks (bench, 0, 0, 1000);
  end_run (bench, n, 0);
  bench_free (bench);
}

/* As pto_call_keep_tasks(), but for the bell. */
static void
keep (struct bench *bench, uint32_t child, uint32_t n)
{
  struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;

  atomic_store (&mailbox->kept, (uint64_t) pto_word_get (&mailbox->post) << 32 | n);
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

/* What stands behind a task that takes long after all is for others, in its order. */
static void
test_together_returned (void)
{
  struct bench *bench = bench_known (1000);
  uint64_t n = 3;

  for (uint32_t i = 0; i < CHILDREN + 12; i++)
    submit_to (bench, n++, ANY);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 7, 3);
  for (uint32_t c = 1; c < CHILDREN; c++)
    while (request_of (bench, c) != 0)
      answer_tasks (bench, c, 0, 1000);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n - 3);
  keep (bench, 0, 1);
  assert_has (bench, 0, 7, 1 + 2); /* it is asked for what it was asked for */
  assert_has (bench, 1, 8, 1);
  assert_has (bench, 2, 9, 1);
  /* The others' end says nothing of this one, nor does its failure of them. */
  answer_tasks (bench, 1, 0, 1000);
  answer_tasks (bench, 2, 0, 1000);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n - 1);
  answer_tasks (bench, 0, 7, 1000000);
  end_run (bench, n, 1);
  /* What an earlier request said is not of this one. */
  begin_run (bench);
  for (uint64_t i = 0; i < 4; i++)
    submit_to (bench, i, 1);
  answer_tasks (bench, 1, 0, 1000);
  assert_has (bench, 1, 1, 3);
  keep (bench, 1, 2);
  answer_tasks (bench, 1, 0, 1000);
  /* Named: it can be nobody else's, and comes again. */
  assert_has (bench, 1, 3, 1);
  answer_tasks (bench, 1, 0, 1000);
  for (uint64_t i = 4; i < 8; i++)
    submit_to (bench, i, 1);
  answer_tasks (bench, 1, 0, 1000);
  assert_has (bench, 1, 5, 3);
  answer_tasks (bench, 1, 0, 1000);
  end_run (bench, 8, 0);
  bench_free (bench);
}

/* It says so, and answers before anybody looks; it says so, and dies; it says that it keeps none.
 */
static void
test_together_returned_late (void)
{
  struct bench *bench = bench_known (1000);
  struct pto_mailbox *mailbox = bench->own.children[0].link.mailbox;

  for (uint64_t i = 3; i < 8; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 4);
  atomic_store (&mailbox->kept, (uint64_t) pto_word_get (&mailbox->post) << 32 | 2);
  answer_tasks (bench, 0, 0, 1000);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 6);
  assert_has (bench, 0, 6, 2);
  atomic_store (&mailbox->kept, (uint64_t) pto_word_get (&mailbox->post) << 32 | 1);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 7);
  revive (bench, 0);
  answer (bench, 0);
  assert_has (bench, 0, 7, 1);
  submit_to (bench, 8, 0);
  submit_to (bench, 9, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 8, 2);
  keep (bench, 0, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 9, 1);
  answer_tasks (bench, 0, 0, 1000);
  end_run (bench, 10, 1);
  bench_free (bench);
}

/* Whose child shares our memory has one at a time. */
static void
test_together_not (void)
{
  struct bench *bench = bench_known (1000);

  bench->own.children[0].far = false;
  for (uint64_t i = 3; i < 6; i++)
    submit_to (bench, i, 0);
  for (uint64_t i = 3; i < 6; i++)
    {
      assert_has (bench, 0, i, 1);
      answer_tasks (bench, 0, 0, 1000);
    }
  end_run (bench, 6, 0);
  bench_free (bench);
}

/* Records of one kind: their task, and two stamps of each. */
static uint32_t
list_records (const struct pto_trace_buffer *buffer, enum pto_trace_kind kind,
              const struct pto_trace_record *records[], uint32_t max)
{
  uint32_t n = 0;

  for (uint64_t i = 0; i < buffer->count; i++)
    if (buffer->records[i].kind == kind)
      {
        g_assert_cmpuint (n, <, max);
        records[n++] = &buffer->records[i];
      }
  return n;
}

/* Of those that go together each has a begin and an end, as the child says them, one after the
 * other and between post and answer; what was given back is dispatched where it is run. */
static void
test_together_recorded (void)
{
  struct bench *bench = bench_known (1000);
  struct pto_trace *trace = pto_trace_new (CHILDREN + 1, 64);
  struct pto_trace_buffer *scheduler = &trace->buffers[CHILDREN];
  const struct pto_trace_record *records[64];
  struct pto_call call = { .mailbox = bench->own.children[0].link.mailbox };
  struct pto_stamps stamps[4] = { 0 };
  uint64_t posted;

  for (uint32_t i = 0; i <= CHILDREN; i++)
    trace->buffers[i].level = PTO_TRACE_LEVEL_SCHEDULE;
  end_run (bench, 3, 0);
  pto_pool_record (bench->own.pool, scheduler, trace->buffers, 9);
  begin_run (bench);
  for (uint64_t i = 0; i < 6; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 1, 5);
  g_assert_cmpuint (call.mailbox->record, ==, 9);
  posted = bench->own.engine->tick_base;
  /* Virtual time stands still here: what the child says is cut to what can be. */
  stamps[0] = (struct pto_stamps){ .began = posted, .ended = posted + 7 };
  stamps[2] = (struct pto_stamps){ .began = UINT64_MAX, .ended = UINT64_MAX };
  stamps[3] = (struct pto_stamps){ .began = posted + 9, .ended = posted + 3 };
  for (uint32_t i = 0; i < 4; i++)
    pto_call_tell_stamps (&call, i, &stamps[i]);
  keep (bench, 0, 4);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 5, 1);
  answer_tasks (bench, 0, 0, 1000);
  g_assert_cmpuint (list_records (&trace->buffers[0], PTO_TRACE_RUN, records, 64), ==, 6);
  for (uint32_t i = 0; i < 6; i++)
    {
      g_assert_cmpuint (PTO_TASK_LOCAL (records[i]->task), ==, i);
      g_assert_cmpuint (records[i]->time, <=, records[i]->extra);
      if (i > 0)
        g_assert_cmpuint (records[i - 1]->extra, <=, records[i]->time);
      g_assert_cmpuint (records[i]->extra, <=, pto_engine_stamp (bench->own.engine));
    }
  g_assert_cmpuint (list_records (&trace->buffers[0], PTO_TRACE_ACK, records, 64), ==, 6);
  g_assert_cmpuint (list_records (scheduler, PTO_TRACE_DISPATCH, records, 64), ==, 6);
  for (uint32_t i = 0; i < 6; i++)
    g_assert_cmpuint (PTO_TASK_LOCAL (records[i]->task), ==, i);
  /* Lost together: that they were dispatched is known, and no more. */
  submit_to (bench, 6, 0);
  for (uint64_t i = 7; i < 10; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 7, 3);
  take (bench, 0);
  die (bench, 0);
  g_assert_cmpuint (list_records (&trace->buffers[0], PTO_TRACE_RUN, records, 64), ==, 7);
  g_assert_cmpuint (list_records (scheduler, PTO_TRACE_DISPATCH, records, 64), ==, 10);
  pto_pool_record (bench->own.pool, NULL, NULL, 0);
  revive (bench, 0);
  answer (bench, 0);
  end_run (bench, 10, 3);
  pto_trace_free (trace);
  bench_free (bench);
}

/* Whoever watches a run is told of each task once before its first part begins, and once when it is
 * over: also of those that go together, of what is given back, and of what is run again. */
static uint32_t n_begins[32], n_ends[32];

static void
watch_submitted (struct pto_watch *watch, const struct pto_watched *task)
{
}

static void
watch_begins (struct pto_watch *watch, pto_task_id task)
{
  n_begins[PTO_TASK_LOCAL (task)]++;
}

static void
watch_ended (struct pto_watch *watch, pto_task_id task, bool failed)
{
  n_ends[PTO_TASK_LOCAL (task)]++;
}

static void
test_together_watched (void)
{
  struct bench *bench = bench_known (1000);
  struct pto_trace *trace = pto_trace_new (CHILDREN + 2, 256);
  struct pto_watch watch = { watch_submitted, watch_begins, watch_ended };
  struct pto_trace_buffer *scheduler = &trace->buffers[CHILDREN];
  bool wrong = false;

  for (uint32_t i = 0; i <= CHILDREN; i++)
    trace->buffers[i].level = PTO_TRACE_LEVEL_FULL;
  end_run (bench, 3, 0);
  pto_pool_record (bench->own.pool, scheduler, trace->buffers, 9);
  bench->own.scheduler->trace = scheduler;
  bench->own.engine->watch = &watch;
  memset (n_begins, 0, sizeof n_begins);
  memset (n_ends, 0, sizeof n_ends);
  begin_run (bench);
  /* Any: 0 to 3 one each, 4 to 15 in the queue. */
  for (uint64_t i = 0; i < CHILDREN + 12; i++)
    submit_to (bench, i, ANY);
  answer_tasks (bench, 0, 0, 1000);
  assert_has (bench, 0, 4, 3);
  keep (bench, 0, 1);
  for (uint32_t rounds = 0; rounds < 20; rounds++)
    for (uint32_t c = 0; c < CHILDREN; c++)
      if (request_of (bench, c) != 0)
        answer_tasks (bench, c, 0, 1000);
  /* Named ones. */
  for (uint64_t i = CHILDREN + 12; i < CHILDREN + 18; i++)
    submit_to (bench, i, 0);
  answer_tasks (bench, 0, 0, 1000);
  keep (bench, 0, 2);
  for (uint32_t rounds = 0; rounds < 20; rounds++)
    if (request_of (bench, 0) != 0)
      answer_tasks (bench, 0, 0, 1000);
  for (uint32_t i = 0; i < CHILDREN + 18; i++)
    {
      if (n_begins[i] != 1 || n_ends[i] != 1)
        {
          g_printerr ("task %u: begins %u, ends %u\n", i, n_begins[i], n_ends[i]);
          wrong = true;
        }
    }
  g_assert_false (wrong);
  pto_pool_record (bench->own.pool, NULL, NULL, 0);
  bench->own.engine->watch = NULL;
  bench->own.scheduler->trace = NULL;
  end_run (bench, CHILDREN + 18, 0);
  pto_trace_free (trace);
  bench_free (bench);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/together", test_together);
  g_test_add_func ("/pto/pool/together-named", test_together_named);
  g_test_add_func ("/pto/pool/together-failed", test_together_failed);
  g_test_add_func ("/pto/pool/together-lost", test_together_lost);
  g_test_add_func ("/pto/pool/together-long", test_together_long);
  g_test_add_func ("/pto/pool/together-not", test_together_not);
  g_test_add_func ("/pto/pool/together-recorded", test_together_recorded);
  g_test_add_func ("/pto/pool/together-watched", test_together_watched);
  g_test_add_func ("/pto/pool/together-returned", test_together_returned);
  g_test_add_func ("/pto/pool/together-returned-late", test_together_returned_late);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
