/* test-pool-left.c: which results are left where they were written, and when are they fetched?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"
#include "../../pto/core/retire.h"
#include "../../pto/core/scope.h"
#include "../../pto/process/pool-private.h"

#include <string.h>

#define BYTES 16u /* of a tensor */

/* All memory of the run is one tensor's, as if a task that is over had output it. */
static void
make_memory (struct bench *bench)
{
  const struct pto_ring *ring = &bench->own.engine->rings[0];
  uint32_t generation;
  struct PTO2Buffer *buffer
      = pto_engine_new_buffer (bench->own.engine, ring->heap.size, &generation);

  g_assert_nonnull (buffer);
  buffer->addr = (uint64_t) (uintptr_t) ring->heap.base;
  buffer->space.creator = PTO_TASK_ID (0, ring->head - 1);
  g_assert_true (pto_task_is_retired (bench->own.engine->tails, buffer->space.creator));
}

/* All are far away, and leave whatever they can. */
static struct bench *
bench_left (void)
{
  struct bench *bench = bench_far ();

  make_memory (bench);
  for (uint32_t c = 0; c < CHILDREN; c++)
    bench->own.children[c].leave_bytes = BYTES;
  return bench;
}

/* Memory of the run, of which each tensor has its own. */
static uint64_t *
memory (const struct bench *bench, uint32_t number)
{
  return (uint64_t *) (uintptr_t) (bench->own.engine->rings[0].heap.base + number * BYTES);
}

/* What submits has one tensor from here on. */
static void
use (struct bench *bench, PTOParamType type, uint64_t *words)
{
  bench->n_tensors = 1;
  bench->types[0] = type;
  bench->words[0] = words;
}

/* How the child is told of the tensor of its task, or of the first that it has. */
static uint32_t
access_of (const struct bench *bench, uint32_t child)
{
  struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;
  const struct pto_call all = {
    .request = PTO_REQUEST_TASKS, .body = mailbox->body, .bytes = mailbox->bytes, .mailbox = mailbox
  };
  struct pto_call one = { 0 };
  uint64_t at = 0;

  if (request_of (bench, child) == PTO_REQUEST_TASKS)
    g_assert_true (pto_call_next_task (&all, &at, &one));
  else
    {
      g_assert_cmpuint (request_of (bench, child), ==, PTO_REQUEST_TASK);
      g_assert_true (pto_args_view_init (&one.args, mailbox->body, mailbox->bytes));
    }
  return one.args.tensors[0].access;
}

/* It is asked for just that. */
static void
assert_fetched (const struct bench *bench, uint32_t child, const uint64_t *words)
{
  const struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;
  const struct pto_left_range *range = (const struct pto_left_range *) mailbox->body;

  g_assert_cmpuint (request_of (bench, child), ==, PTO_REQUEST_FETCH);
  g_assert_cmpuint (mailbox->bytes, ==, sizeof *range);
  g_assert_cmpuint (range->begin, ==, (uint64_t) (uintptr_t) words);
  g_assert_cmpuint (range->end - range->begin, ==, BYTES);
}

/* Child 0 has task 0, which writes it, and task 1, which reads it there; it is with that child, and
 * 1 runs. */
static struct bench *
bench_with_one (void)
{
  struct bench *bench = bench_left ();

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 0, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 1, 0);
  answer (bench, 0);
  g_assert_cmpuint (task_of (bench, 0), ==, 1);
  return bench;
}

/* Entries of the log that are about that memory. */
static uint32_t
count_writes (const struct bench *bench, const uint64_t *words)
{
  struct pto_write write;
  uint64_t at = 0;
  uint32_t n = 0;

  while (pto_writes_next (bench->writes, &at, &write) == PTO_WRITES_ONE)
    n += write.begin == (uint64_t) (uintptr_t) words;
  return n;
}

/* Whoever reads it there does so, and it travels to nobody. */
static void
test_there (void)
{
  struct bench *bench = bench_left ();

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 0, 0);
  g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_WRITE | PTO_WIRE_LEFT);
  use (bench, PTO_PARAM_INOUT, memory (bench, 0));
  submit_to (bench, 1, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 2, 0);
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 0), ==,
                    PTO_WIRE_READ | PTO_WIRE_WRITE | PTO_WIRE_LEFT | PTO_WIRE_KEPT);
  answer (bench, 0);
  g_assert_cmpuint (task_of (bench, 0), ==, 2);
  g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_READ | PTO_WIRE_KEPT);
  answer (bench, 0);
  g_assert_cmpuint (request_of (bench, 0), ==, 0);
  end_run (bench, 3, 0);
  bench_free (bench);
}

/* Of who is submitted later it is not known where he is. It is not over before it is there. */
static void
test_read_by_nobody (void)
{
  struct bench *bench = bench_left ();

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 0, 0);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 1, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 1);
  g_assert_cmpuint (access_of (bench, 1), ==, PTO_WIRE_READ);
  answer (bench, 1);
  end_run (bench, 2, 0);
  bench_free (bench);
}

/* Who is not bound to that child, or is a group, may be elsewhere. */
static void
test_read_elsewhere (void)
{
  static const uint32_t pair[] = { 0, 1 };

  for (uint32_t i = 0; i < 3; i++)
    {
      struct bench *bench = bench_left ();

      use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
      submit_to (bench, 0, 0);
      use (bench, PTO_PARAM_INPUT, memory (bench, 0));
      submit_to (bench, 1, 0);
      if (i == 0)
        submit_to (bench, 2, 1);
      else if (i == 1)
        submit_to (bench, 2, ANY);
      else
        submit (bench, 2, 2, pair);
      answer (bench, 0);
      assert_fetched (bench, 0, memory (bench, 0));
      g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 0);
      answer (bench, 0);
      for (uint32_t n = 0; n < 2; n++)
        for (uint32_t c = 0; c < 2; c++)
          if (request_of (bench, c) != 0)
            {
              g_assert_cmpuint (access_of (bench, c), ==, PTO_WIRE_READ);
              answer (bench, c);
            }
      end_run (bench, 3, 0);
      bench_free (bench);
    }
}

/* Small ones, what is run again when it is lost, and of groups come at once: no task is told to
 * leave them, and nobody is asked for them. */
static void
test_not_left (void)
{
  static const uint32_t pair[] = { 0, 1 };

  for (uint32_t i = 0; i < 3; i++)
    {
      struct bench *bench = bench_left ();
      uint64_t *where = memory (bench, 0);

      use (bench, PTO_PARAM_OUTPUT, where);
      bench->idempotent = i == 0;
      if (i == 1)
        bench->own.children[0].leave_bytes = BYTES + 1;
      if (i == 2)
        submit (bench, 0, 2, pair);
      else
        submit_to (bench, 0, 0);
      g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_WRITE);
      use (bench, PTO_PARAM_INPUT, where);
      submit_to (bench, 1, 0);
      if (i == 2)
        answer (bench, 1);
      answer (bench, 0);
      g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_READ);
      answer (bench, 0);
      end_run (bench, 2, 0);
      bench_free (bench);
    }
}

/* Who may be run once more would find it lost with the child. */
static void
test_read_again (void)
{
  struct bench *bench = bench_left ();

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 0, 0);
  bench->idempotent = true;
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 1, 0);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_READ);
  answer (bench, 0);
  end_run (bench, 2, 0);
  bench_free (bench);
}

/* Child 0 is asked for what is the program's, and nobody for what is of the run. */
static uint64_t words_of_program[2];

static bool
answer_fetch (void *data)
{
  struct bench *bench = data;

  settle (bench);
  assert_fetched (bench, 0, words_of_program);
  answer (bench, 0);
  return false;
}

static bool
die_fetching (void *data)
{
  struct bench *bench = data;

  settle (bench);
  assert_fetched (bench, 0, words_of_program);
  die (bench, 0);
  return false;
}

static bool
is_asked_for_nothing (void *data)
{
  g_assert_not_reached ();
}

static struct bench *
bench_with_program (void)
{
  struct bench *bench = bench_left ();

  for (uint32_t i = 0; i < 2; i++)
    {
      uint64_t *where = i == 0 ? words_of_program : memory (bench, 0);

      use (bench, PTO_PARAM_OUTPUT, where);
      submit_to (bench, 2 * i, 0);
      use (bench, PTO_PARAM_INPUT, where);
      submit_to (bench, 2 * i + 1, 0);
    }
  for (uint32_t i = 0; i < 4 && request_of (bench, 0) != 0; i++)
    answer (bench, 0);
  g_assert_cmpuint (request_of (bench, 0), ==, 0);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 4);
  return bench;
}

static void
test_brought_back (void)
{
  struct bench *bench = bench_with_program ();
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_pool_bring_back (bench->own.pool, answer_fetch, bench, &report), ==, PTO_OK);
  g_assert_cmpuint (request_of (bench, 0), ==, 0);
  /* Once. */
  g_assert_cmpint (pto_pool_bring_back (bench->own.pool, is_asked_for_nothing, bench, &report), ==,
                   PTO_OK);
  end_run (bench, 4, 0);
  bench_free (bench);
}

/* Its tasks have not failed, but what they have written is not there. */
static void
test_brought_back_by_nobody (void)
{
  struct bench *bench = bench_with_program ();
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_pool_bring_back (bench->own.pool, die_fetching, bench, &report), ==,
                   PTO_STATUS_WORKER_LOST);
  g_assert_nonnull (strstr (report.message, "L3/0/sub0 died, and with it results of tasks"));
  g_assert_nonnull (strstr (report.message, "remote-leave"));
  revive (bench, 0);
  answer (bench, 0);
  g_assert_cmpint (pto_pool_bring_back (bench->own.pool, is_asked_for_nothing, bench, &report), ==,
                   PTO_OK);
  end_run (bench, 4, 0);
  bench_free (bench);
}

/* Somebody elsewhere begins when it has come, which is when its child is between two tasks. What
 * the child has besides stays there. */
static void
test_fetched_later (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 2, 1);
  bench->n_tensors = 0;
  submit_to (bench, 3, 0);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  g_assert_cmpuint (task_of (bench, 0), ==, 1);
  answer (bench, 0);
  /* Before the next one. */
  assert_fetched (bench, 0, memory (bench, 0));
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 1), ==, PTO_WIRE_READ);
  g_assert_cmpuint (task_of (bench, 0), ==, 3);
  answer (bench, 0);
  answer (bench, 1);
  end_run (bench, 4, 0);
  bench_free (bench);
}

/* A group begins when all that any of its members needs is here; a member that is where that was
 * is none that has it. */
static void
test_group_there (void)
{
  static const uint32_t pair[] = { 0, 1 };
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit (bench, 2, 2, pair);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_READ);
  g_assert_cmpuint (access_of (bench, 1), ==, PTO_WIRE_READ);
  answer (bench, 0);
  answer (bench, 1);
  end_run (bench, 3, 0);
  bench_free (bench);
}

static void
test_group (void)
{
  static const uint32_t pair[] = { 1, 2 };
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit (bench, 2, 2, pair);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  g_assert_cmpuint (request_of (bench, 2), ==, 0);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  g_assert_cmpuint (request_of (bench, 2), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 1), ==, PTO_WIRE_READ);
  g_assert_cmpuint (access_of (bench, 2), ==, PTO_WIRE_READ);
  answer (bench, 1);
  answer (bench, 2);
  end_run (bench, 3, 0);
  bench_free (bench);
}

/* Who writes over it needs nothing of it, and is given no memory that is written here just then.
 * (WAR is not tracked here: the one who reads it meanwhile has to know.) */
static void
test_overwrite (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 2, 2);
  g_assert_cmpuint (task_of (bench, 2), ==, 2);
  answer (bench, 2);
  /* It is read by nobody: it comes. */
  assert_fetched (bench, 2, memory (bench, 0));
  submit_to (bench, 3, 3);
  g_assert_cmpuint (request_of (bench, 3), ==, 0);
  answer (bench, 2);
  g_assert_cmpuint (task_of (bench, 3), ==, 3);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 4, 3);
  answer (bench, 3);
  g_assert_cmpuint (access_of (bench, 3), ==, PTO_WIRE_READ | PTO_WIRE_KEPT);
  answer (bench, 3);
  answer (bench, 0);
  end_run (bench, 5, 0);
  bench_free (bench);
}

/* Who updates it and has that come at once, has it here as well. */
static void
test_update_comes (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INOUT, memory (bench, 0));
  bench->idempotent = true;
  submit_to (bench, 2, 0);
  answer (bench, 0);
  g_assert_cmpuint (access_of (bench, 0), ==, PTO_WIRE_READ | PTO_WIRE_WRITE | PTO_WIRE_KEPT);
  answer (bench, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 3, 1);
  g_assert_cmpuint (access_of (bench, 1), ==, PTO_WIRE_READ);
  g_assert_cmpuint (request_of (bench, 0), ==, 0);
  answer (bench, 1);
  end_run (bench, 4, 0);
  bench_free (bench);
}

/* Who waits for something goes with nobody; others go on. */
static void
test_alone (void)
{
  struct bench *bench = bench_with_one ();

  bench->n_tensors = 0;
  submit_to (bench, 2, 1);
  answer_tasks (bench, 1, 0, 1000);
  submit_to (bench, 3, 1);
  submit_to (bench, 4, 1);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 5, 1);
  g_assert_cmpuint (task_of (bench, 1), ==, 3);
  answer_tasks (bench, 1, 0, 1000);
  g_assert_cmpuint (request_of (bench, 1), ==, PTO_REQUEST_TASK);
  g_assert_cmpuint (task_of (bench, 1), ==, 4);
  answer_tasks (bench, 1, 0, 1000);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  answer (bench, 0);
  answer (bench, 0);
  g_assert_cmpuint (task_of (bench, 1), ==, 5);
  answer (bench, 1);
  end_run (bench, 6, 0);
  bench_free (bench);
}

/* Who dies before it began with an update of what is elsewhere, or is about to come, has written
 * nothing: nobody is told to forget it, and who runs it next has it. */
static void
test_update_again (void)
{
  for (uint32_t when = 0; when < 3; when++)
    {
      struct bench *bench = bench_with_one ();
      uint32_t n = count_writes (bench, memory (bench, 0));

      use (bench, PTO_PARAM_INOUT, memory (bench, 0));
      submit_to (bench, 2, ANY);
      g_assert_cmpuint (request_of (bench, 1), ==, 0);
      if (when > 0)
        answer (bench, 0);
      if (when > 1)
        answer (bench, 0);
      die (bench, 1);
      g_assert_cmpuint (pto_pool_retried (bench->own.pool), ==, 1);
      g_assert_cmpuint (count_writes (bench, memory (bench, 0)), ==, n);
      if (when == 0)
        answer (bench, 0);
      if (when < 2)
        {
          assert_fetched (bench, 0, memory (bench, 0));
          g_assert_cmpuint (task_of (bench, 2), ==, NEVER_MIND);
          answer (bench, 0);
        }
      /* Whoever is free. */
      g_assert_cmpuint (task_of (bench, when < 2 ? 2 : 0), ==, 2);
      g_assert_cmpuint (access_of (bench, when < 2 ? 2 : 0), ==,
                        PTO_WIRE_READ | PTO_WIRE_WRITE | PTO_WIRE_LEFT);
      answer (bench, when < 2 ? 2 : 0);
      answer (bench, when < 2 ? 2 : 0);
      g_assert_cmpuint (count_writes (bench, memory (bench, 0)), ==, n + 1);
      end_run (bench, 3, 0);
      bench_free (bench);
    }
}

/* The same of one that is not run again, while it comes: the next to write there waits until it
 * has. */
static void
test_update_lost (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INOUT, memory (bench, 0));
  bench->own.children[1].restart = false;
  submit_to (bench, 2, 1);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  die (bench, 1);
  g_assert_cmpint (pto_pool_first_failure (bench->own.pool)->kind, ==, PTO_FAILURE_LOST_BEFORE);
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, 3);
  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  pto_engine_retire_all (bench->own.engine);
  submit_to (bench, 3, 2);
  g_assert_cmpuint (request_of (bench, 2), ==, 0);
  answer (bench, 0);
  g_assert_cmpuint (task_of (bench, 2), ==, 3);
  answer (bench, 2);
  answer (bench, 2);
  end_run (bench, 4, 1);
  bench_free (bench);
}

/* With its child it is gone, for who needs it, until somebody writes it anew. */
static void
test_lost (void)
{
  struct bench *bench = bench_with_one ();
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  answer (bench, 0);
  die (bench, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 2, 1);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LEFT);
  g_assert_cmpuint (first->task, ==, 2);
  g_assert_cmpstr (first->path, ==, "L3/0/sub0");
  g_assert_cmpstr (first->failure.text, ==, "died");
  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 3, 1);
  answer (bench, 1);
  assert_fetched (bench, 1, memory (bench, 0));
  answer (bench, 1);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 4, 2);
  g_assert_cmpuint (task_of (bench, 2), ==, 4);
  answer (bench, 2);
  revive (bench, 0);
  answer (bench, 0);
  end_run (bench, 5, 1);
  bench_free (bench);
}

/* While it comes: who wrote it is lost, as are those that wait for it, and it is not run again. */
static void
test_lost_while_it_comes (void)
{
  struct bench *bench = bench_left ();
  const struct pto_first_failure *first = pto_pool_first_failure (bench->own.pool);

  use (bench, PTO_PARAM_OUTPUT, memory (bench, 0));
  submit_to (bench, 0, 0);
  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 1, 1);
  answer (bench, 0);
  assert_fetched (bench, 0, memory (bench, 0));
  die (bench, 0);
  g_assert_cmpint (first->kind, ==, PTO_FAILURE_LOST);
  g_assert_cmpuint (first->task, ==, 0);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  revive (bench, 0);
  answer (bench, 0);
  end_run (bench, 2, 1);
  bench_free (bench);
}

/* Who does not give it is of no use. */
static void
test_refused (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 2, 1);
  answer (bench, 0);
  answer_with (bench, 0, PTO_STATUS_TASK_FAILED, "no");
  g_assert_cmpstr (bench->killed[0], ==, "did not give what was left with it (no)");
  die (bench, 0);
  g_assert_cmpint (pto_pool_first_failure (bench->own.pool)->kind, ==, PTO_FAILURE_LEFT);
  revive (bench, 0);
  answer (bench, 0);
  end_run (bench, 3, 1);
  bench_free (bench);
}

/* A task that waits for what it needs is none yet for its child: when that is silent by the time
 * that it has come, it waits on. */
static void
test_suspect (void)
{
  struct bench *bench = bench_with_one ();

  use (bench, PTO_PARAM_INPUT, memory (bench, 0));
  submit_to (bench, 2, 1);
  set_silent (bench, 1, true);
  answer (bench, 0);
  answer (bench, 0);
  g_assert_cmpuint (request_of (bench, 1), ==, 0);
  set_silent (bench, 1, false);
  g_assert_cmpuint (task_of (bench, 1), ==, 2);
  answer (bench, 1);
  end_run (bench, 3, 0);
  bench_free (bench);
}

/* Of a run that is not wanted nothing is fetched that was not asked for by then, and what was is
 * not wanted any more. */
static void
test_cancelled (void)
{
  for (uint32_t asked = 0; asked < 2; asked++)
    {
      struct bench *bench = bench_with_one ();

      use (bench, PTO_PARAM_INPUT, memory (bench, 0));
      submit_to (bench, 2, 1);
      if (asked != 0)
        answer (bench, 0);
      cancel (bench, SECOND);
      g_assert_cmpint (pto_child_life (&bench->own.children[0]), ==, PTO_LIFE_ASKED);
      answer_with (bench, 0, PTO_STATUS_CANCELLED, "cancelled");
      g_assert_cmpuint (request_of (bench, 0), ==, 0);
      g_assert_cmpuint (request_of (bench, 1), ==, 0);
      g_assert_cmpstr (bench->killed[0], ==, "");
      end_cancelled (bench, 3);
      pto_pool_forget_left (bench->own.pool, 0, UINT64_MAX);
      g_assert_true (pto_left_is_empty (&bench->own.pool->left));
      bench_free (bench);
    }
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool-left/there", test_there);
  g_test_add_func ("/pto/pool-left/read-by-nobody", test_read_by_nobody);
  g_test_add_func ("/pto/pool-left/read-elsewhere", test_read_elsewhere);
  g_test_add_func ("/pto/pool-left/read-again", test_read_again);
  g_test_add_func ("/pto/pool-left/brought-back", test_brought_back);
  g_test_add_func ("/pto/pool-left/brought-back-by-nobody", test_brought_back_by_nobody);
  g_test_add_func ("/pto/pool-left/not-left", test_not_left);
  g_test_add_func ("/pto/pool-left/fetched-later", test_fetched_later);
  g_test_add_func ("/pto/pool-left/group", test_group);
  g_test_add_func ("/pto/pool-left/group-there", test_group_there);
  g_test_add_func ("/pto/pool-left/alone", test_alone);
  g_test_add_func ("/pto/pool-left/update-comes", test_update_comes);
  g_test_add_func ("/pto/pool-left/overwrite", test_overwrite);
  g_test_add_func ("/pto/pool-left/update-again", test_update_again);
  g_test_add_func ("/pto/pool-left/update-lost", test_update_lost);
  g_test_add_func ("/pto/pool-left/lost", test_lost);
  g_test_add_func ("/pto/pool-left/lost-while-it-comes", test_lost_while_it_comes);
  g_test_add_func ("/pto/pool-left/refused", test_refused);
  g_test_add_func ("/pto/pool-left/suspect", test_suspect);
  g_test_add_func ("/pto/pool-left/cancelled", test_cancelled);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
