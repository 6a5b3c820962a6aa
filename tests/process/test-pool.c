/* test-pool.c: which child gets which task, when, and what is done about those that do not answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On det, and the test is the children: it looks into their mailboxes, answers by hand, declares
 * them dead and lets time pass. Everything else parks in between, so nothing depends on chance.
 */
#include "level-test.h"
#include "pool-test.h"

#include "../../pto/core/watch.h"

#include "../../pto/core/progress.h"
#include "../../pto/core/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN 4u
#define NEVER_MIND 99u /* a number that no child has */

struct bench
{
  struct pool_test own;
  enum pto_pace pace;
  char killed[CHILDREN][160];
  uint32_t lost[CHILDREN];
  char refused[CHILDREN][64];
  struct pto_control *asked; /* while a child is made; NULL: nothing */
  struct pto_writes *writes;
  /* Of what is submitted: to run it once more does no harm, it has these tensors of two words. */
  bool idempotent;
  uint32_t n_tensors;
  PTOParamType types[2];
  uint64_t *words[2];
};

static void
describe (const struct pto_child *child, char *text, size_t size, char *words, size_t words_size)
{
  snprintf (text, size, "died");
  if (words != NULL)
    snprintf (words, words_size, "ouch");
}

static void
kill_child (struct pto_child *child, const char *why)
{
  struct bench *bench = child->data;

  g_assert_cmpstr (bench->killed[child->index], ==, "");
  snprintf (bench->killed[child->index], sizeof bench->killed[0], "%s", why);
}

static void
refused (struct pto_child *child, const struct pto_failure *failure)
{
  struct bench *bench = child->data;

  snprintf (bench->refused[child->index], sizeof bench->refused[0], "%.60s", failure->text);
}

static void
changed (struct pto_child *child)
{
  struct bench *bench = child->data;

  bench->lost[child->index] += !pto_child_is_there (child);
}

static void
settle (struct bench *bench)
{
  while (pto_exec_help (bench->own.exec))
    ;
}

static bool
begin (struct pto_child *child)
{
  struct bench *bench = child->data;

  g_assert_cmpint (pto_child_life (child), ==, PTO_LIFE_BEGINNING);
  if (bench->asked != NULL)
    pto_pool_control (bench->own.pool, bench->asked);
  settle (bench);
  return true;
}

static const struct pto_child_ops child_ops = { .describe = describe,
                                                .kill = kill_child,
                                                .refused = refused,
                                                .changed = changed,
                                                .begin = begin };

static void
set_pace (void *data, enum pto_pace pace)
{
  struct bench *bench = data;

  g_assert_cmpint (pace, !=, bench->pace);
  bench->pace = pace;
}

static void
answer_with (struct bench *bench, uint32_t child, uint32_t status, const char *text)
{
  struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[child].link);

  g_assert_false (pto_link_is_idle (&bench->own.children[child].link));
  mailbox->status = status;
  if (status != 0)
    pto_failure_set (&mailbox->failure, (int32_t) status, NULL, "%s", text);
  atomic_store (&mailbox->reply, 2 * pto_word_get (&mailbox->post));
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

static void
answer (struct bench *bench, uint32_t child)
{
  answer_with (bench, child, 0, NULL);
}

static void
take (struct bench *bench, uint32_t child)
{
  struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[child].link);

  atomic_store (&mailbox->reply, 2 * pto_word_get (&mailbox->post) - 1);
}

static void
die (struct bench *bench, uint32_t child)
{
  pto_child_found_dead (&bench->own.children[child]);
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

static void
revive (struct bench *bench, uint32_t child)
{
  g_assert_cmpint (pto_child_life (&bench->own.children[child]), ==, PTO_LIFE_LOST);
  pto_pool_begin_again (bench->own.pool, &bench->own.children[child]);
  settle (bench);
}

static void
pass_time (struct bench *bench, uint64_t ns)
{
  pto_pool_tick (bench->own.pool, ns);
  settle (bench);
}

/* The request that the child, if it is there, has to answer; 0: none. */
static uint32_t
request_of (const struct bench *bench, uint32_t child)
{
  const struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[child].link);

  return !pto_child_is_there (&bench->own.children[child])
                 || pto_link_is_idle (&bench->own.children[child].link)
             ? 0
             : mailbox->request;
}

/* The numbers of the tasks that the child has; gives how many. */
static uint32_t
tasks_of (const struct bench *bench, uint32_t child, uint64_t numbers[PTO_TOGETHER_MAX])
{
  struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[child].link);
  const struct pto_call all = {
    .request = PTO_REQUEST_TASKS, .body = mailbox->body, .bytes = mailbox->bytes, .mailbox = mailbox
  };
  struct pto_call one = { 0 };
  uint32_t request = request_of (bench, child);
  uint64_t at = 0;
  uint32_t n = 0;

  if (request == PTO_REQUEST_TASK)
    {
      g_assert_true (pto_args_view_init (&one.args, mailbox->body, mailbox->bytes));
      numbers[n++] = one.args.scalars[0];
    }
  else if (request == PTO_REQUEST_TASKS)
    {
      while (pto_call_next_task (&all, &at, &one))
        {
          g_assert_cmpuint (n, <, PTO_TOGETHER_MAX);
          g_assert_cmpint (one.request, ==, PTO_REQUEST_TASK);
          numbers[n++] = one.args.scalars[0];
        }
      g_assert_cmpuint (at, ==, all.bytes);
      g_assert_cmpuint (n, >, 1);
    }
  return n;
}

/* That of the first, or NEVER_MIND. */
static uint64_t
task_of (const struct bench *bench, uint32_t child)
{
  uint64_t numbers[PTO_TOGETHER_MAX];

  return tasks_of (bench, child, numbers) > 0 ? numbers[0] : NEVER_MIND;
}

static void
assert_tasks (const struct bench *bench, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
  g_assert_cmpuint (task_of (bench, 0), ==, a);
  g_assert_cmpuint (task_of (bench, 1), ==, b);
  g_assert_cmpuint (task_of (bench, 2), ==, c);
  g_assert_cmpuint (task_of (bench, 3), ==, d);
}

static struct bench *
bench_new (bool again)
{
  struct bench *bench = g_new0 (struct bench, 1);
  struct pto_pool_config config = {
    .writes = bench->writes = pto_writes_new (),
    .pace = set_pace,
    .data = bench,
    .limits
    = { .task_ns = 10 * SECOND, .start_ns = 5 * SECOND, .close_ns = 2 * SECOND, .stop_ns = SECOND },
    .group_ns = 3 * SECOND,
    .retries = 2,
  };
  char error[256] = "";

  pool_test_init (&bench->own, 1, 0, 256, 256, CHILDREN, &child_ops, bench, again);
  for (uint32_t c = 0; c < CHILDREN; c++)
    pto_child_post_start (&bench->own.children[c]);
  bench->pace = PTO_PACE_SLOW;
  pool_test_add_pool (&bench->own, &config);
  g_assert_cmpuint (bench->own.scheduler->config.n_endpoints, ==, CHILDREN + 1);
  pto_exec_enter (bench->own.exec);
  pto_exec_spawn (bench->own.exec, 0, "scheduler", pto_scheduler_main, bench->own.scheduler, error,
                  sizeof error);
  pto_exec_spawn (bench->own.exec, 0, "pump", pto_pool_pump, bench->own.pool, error, sizeof error);
  settle (bench);
  g_assert_cmpuint (pto_pool_starting (bench->own.pool), ==, CHILDREN);
  return bench;
}

static void
begin_run (struct bench *bench)
{
  pto_pool_begin_run (bench->own.pool);
  pto_engine_begin (bench->own.engine);
}

/* Started, and a run has begun. */
static struct bench *
bench_ready (bool again)
{
  struct bench *bench = bench_new (again);

  for (uint32_t c = 0; c < CHILDREN; c++)
    answer (bench, c);
  g_assert_cmpuint (pto_pool_starting (bench->own.pool), ==, 0);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_IDLE);
  begin_run (bench);
  return bench;
}

/* All tasks are done: ends the run. */
static void
end_run (struct bench *bench, uint64_t n_tasks, uint64_t roots)
{
  struct pto_report report = { 0 };

  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n_tasks);
  g_assert_cmpint (pto_engine_end (bench->own.engine, &report), ==, PTO_OK);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, roots);
}

/* It is not wanted any more: as a level says it. */
static void
cancel (struct bench *bench, uint64_t patience)
{
  pto_engine_cancel (bench->own.engine);
  pto_pool_cancel (bench->own.pool, patience);
  settle (bench);
}

static void
end_cancelled (struct bench *bench, uint64_t n_tasks)
{
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n_tasks);
  g_assert_cmpint (pto_engine_end (bench->own.engine, NULL), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, 0);
}

static void
bench_free (struct bench *bench)
{
  pto_pool_stop (bench->own.pool);
  pto_scheduler_stop (bench->own.scheduler);
  pto_exec_join (bench->own.exec);
  g_assert_cmpuint (pto_exec_live (bench->own.exec), ==, 0);
  g_assert_cmpint (bench->pace, ==, PTO_PACE_IDLE);
  pto_exec_leave (bench->own.exec);
  pool_test_clear (&bench->own);
  pto_writes_free (bench->writes);
  g_free (bench);
}

/* Tasks are numbered by the test. */
static void
submit (struct bench *bench, uint64_t number, uint32_t n, const uint32_t *workers)
{
  static const uint8_t digest[PTO_DIGEST_BYTES];
  uint8_t extra[PTO_LEVEL_TASK_BYTES (sizeof (struct pto_call_config))
                + CHILDREN * sizeof (struct pto_member) + 2] __attribute__ ((aligned (8)));
  static const uint64_t shape[] = { 2 };
  static const uint8_t access[] = { [PTO_PARAM_INPUT] = PTO_WIRE_READ,
                                    [PTO_PARAM_OUTPUT] = PTO_WIRE_WRITE,
                                    [PTO_PARAM_INOUT] = PTO_WIRE_READ | PTO_WIRE_WRITE,
                                    [PTO_PARAM_NO_DEP] = 0 };
  struct pto_level_task *to = (struct pto_level_task *) extra;
  struct pto_member *members;
  PTOParam params[3];
  struct pto_report report = { 0 };
  struct pto_need needs[CHILDREN];
  struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .n_members = n, .members = needs };

  memset (extra, 0, sizeof extra);
  to->digest = digest;
  to->name = "task";
  to->n_members = n;
  to->kind = PTO_CHILD_SUB;
  to->idempotent = bench->idempotent;
  to->n_tensors = bench->n_tensors;
  to->config_bytes = offsetof (struct pto_call_config, output_prefix) + 1;
  members = (struct pto_member *) (extra + PTO_LEVEL_TASK_BYTES (to->config_bytes));
  for (uint32_t m = 0; m < n; m++)
    members[m] = (struct pto_member){ .n_tensors = (uint16_t) bench->n_tensors,
                                      .n_scalars = 1,
                                      .worker = workers[m] };
  for (uint32_t i = 0; i < bench->n_tensors; i++)
    {
      Tensor tensor = make_tensor_external (bench->words[i], shape, 1, PTO_DTYPE_UINT64);

      params[i] = pto2_make_param (bench->types[i], &tensor);
      ((uint8_t *) (members + n))[i] = access[bench->types[i]];
    }
  params[bench->n_tensors] = make_scalar_param (number);
  g_assert_cmpint (pto_pool_place (bench->own.pool, to, members, 16, 0, needs, &report), ==,
                   PTO_OK);
  pto_engine_submit (bench->own.engine, &(struct pto_submit){ .params = params,
                                                              .n_params = bench->n_tensors + 1,
                                                              .extra = extra,
                                                              .extra_bytes = sizeof extra,
                                                              .wish = &wish });
  settle (bench);
}

static void
submit_to (struct bench *bench, uint64_t number, uint32_t worker)
{
  submit (bench, number, 1, &worker);
}

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
  atomic_store (&pto_mailbox_of (&bench->own.children[1].link)->reply,
                2 * pto_word_get (&pto_mailbox_of (&bench->own.children[1].link)->post));
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
  g_assert_cmpmem (pto_mailbox_of (&bench->own.children[2].link)->body, 4, "body", 4);
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
  g_assert_cmpuint (pto_mailbox_of (&bench->own.children[0].link)->bytes, ==, 0);
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
  atomic_store (&pto_mailbox_of (&bench->own.children[0].link)->reply, 0xa5a5a5a5);
  pto_hub_mark (bench->own.exec, bench->own.hub, 0);
  settle (bench);
  g_assert_cmpstr (bench->killed[0], ==, "wrote over its mailbox");
  /* Nobody says so: it is found all the same. */
  atomic_store (&pto_mailbox_of (&bench->own.children[1].link)->post.value, 77);
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
  atomic_fetch_add (&pto_mailbox_of (&bench->own.children[3].link)->beat, 1);
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
          atomic_fetch_add (&pto_mailbox_of (&bench->own.children[c].link)->beat, 1);
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
  g_assert_cmpuint (atomic_load (&pto_mailbox_of (&bench->own.children[1].link)->cancel), ==,
                    pto_word_get (&pto_mailbox_of (&bench->own.children[1].link)->post));
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
    g_assert_cmpuint (atomic_load (&pto_mailbox_of (&bench->own.children[c].link)->cancel), ==,
                      pto_word_get (&pto_mailbox_of (&bench->own.children[c].link)->post));
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

/* --- a child that speaks for somebody of whom nothing is heard --- */

static void
set_silent (struct bench *bench, uint32_t child, bool silent)
{
  struct pto_call call = { .mailbox = pto_mailbox_of (&bench->own.children[child].link),
                           .hub = bench->own.hub,
                           .index = child };

  pto_call_set_silent (&call, silent);
  /* Once more for those who are no process: they are rung by whoever runs them. */
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

static struct bench *
bench_far (void)
{
  struct bench *bench = bench_ready (true);

  for (uint32_t c = 0; c < CHILDREN; c++)
    bench->own.children[c].far = true;
  return bench;
}

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

/* As a bridge says it. */
static void
answer_tasks (struct bench *bench, uint32_t child, uint64_t failed, uint64_t busy)
{
  const struct pto_call call = { .mailbox = pto_mailbox_of (&bench->own.children[child].link) };

  pto_call_tell_tasks (&call, failed, busy);
  answer_with (bench, child, failed != 0 ? PTO_STATUS_TASK_FAILED : 0, "no");
}

static void
assert_has (const struct bench *bench, uint32_t child, uint64_t first, uint32_t n)
{
  uint64_t numbers[PTO_TOGETHER_MAX];

  g_assert_cmpuint (tasks_of (bench, child, numbers), ==, n);
  for (uint32_t i = 0; i < n; i++)
    g_assert_cmpuint (numbers[i], ==, first + i);
}

/* What tasks take there is known, of all but the last child: tasks 0 to 2 have been run. */
static struct bench *
bench_known (uint64_t busy)
{
  struct bench *bench = bench_far ();

  for (uint32_t c = 0; c < CHILDREN - 1; c++)
    {
      submit_to (bench, c, c);
      assert_has (bench, c, c, 1);
      answer_tasks (bench, c, 0, busy);
    }
  return bench;
}

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

/* --- what is run again --- */

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
  pto_mailbox_of (&bench->own.children[2].link)->reply += 7;
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
  struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[child].link);

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
  struct pto_mailbox *mailbox = pto_mailbox_of (&bench->own.children[0].link);

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
  struct pto_call call = { .mailbox = pto_mailbox_of (&bench->own.children[0].link) };
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

static void
count_moved (struct bench *bench, uint32_t child, uint64_t sent, uint64_t received, uint64_t saved)
{
  struct pto_traffic *traffic = pto_writes_traffic (bench->writes, child);

  atomic_fetch_add (&traffic->sent, sent);
  atomic_fetch_add (&traffic->received, received);
  atomic_fetch_add (&traffic->saved, saved);
}

/* "0 sent 5 (6), - received 7 (0)": task, bytes, and what was there, of all transfers of a child.
 */
static void
assert_transfers (const struct pto_trace_buffer *buffer, const char *wanted)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (uint64_t i = 0; i < buffer->count; i++)
    {
      const struct pto_trace_record *record = &buffer->records[i];
      bool back = (record->detail & PTO_TRACE_TRANSFER_BACK) != 0;

      if (record->kind != PTO_TRACE_TRANSFER)
        continue;
      g_assert_cmpuint (record->time, <=, record->extra);
      g_assert_cmpuint (i + 1, <, buffer->count);
      g_assert_cmpuint (record[1].kind, ==, PTO_TRACE_BYTES);
      g_string_append (text, text->len > 0 ? ", " : "");
      if (record->task == PTO_TASK_NONE)
        g_string_append_c (text, '-');
      else
        g_string_append_printf (text, "%u", PTO_TASK_LOCAL (record->task));
      g_string_append_printf (text, " %s %" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT ")",
                              back ? "received" : "sent", record[1].time, record[1].extra);
    }
  g_assert_cmpstr (text->str, ==, wanted);
}

/* A run has what its children have counted in it, and its record has just that: of each task what
 * is said of it, as far as it was counted, and the rest of none. */
static void
test_traffic (void)
{
  struct bench *bench = bench_known (1000);
  struct pto_trace *trace = pto_trace_new (CHILDREN + 1, 64);
  struct pto_call call = { .mailbox = pto_mailbox_of (&bench->own.children[0].link) };
  struct pto_stamps stamps = { 0 };
  struct pto_moved moved;

  for (uint32_t i = 0; i <= CHILDREN; i++)
    trace->buffers[i].level = PTO_TRACE_LEVEL_RUNS;
  /* Before the run, and in one that is not recorded. */
  count_moved (bench, 0, 1000, 2000, 3000);
  end_run (bench, 3, 0);
  moved = pto_pool_end_run (bench->own.pool);
  g_assert_cmpuint (moved.sent, ==, 1000);
  g_assert_cmpuint (moved.received, ==, 2000);
  g_assert_cmpuint (moved.saved, ==, 3000);
  pto_pool_record (bench->own.pool, &trace->buffers[CHILDREN], trace->buffers, 9);
  count_moved (bench, 1, 1, 1, 1);
  begin_run (bench);

  /* Two tasks of one message, and what was moved besides. */
  submit_to (bench, 0, 0);
  submit_to (bench, 1, 0);
  submit_to (bench, 2, 0);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = 10, .saved = 20, .received = 30 };
  pto_call_tell_stamps (&call, 0, &stamps);
  count_moved (bench, 0, 10, 30, 20);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "0 sent 10 (20), 0 received 30 (0)");
  assert_has (bench, 0, 1, 2);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = 1, .received = 2, .sent_from = UINT64_MAX, .sent_to = 1 };
  pto_call_tell_stamps (&call, 0, &stamps);
  stamps = (struct pto_stamps){ .saved = 4 };
  pto_call_tell_stamps (&call, 1, &stamps);
  count_moved (bench, 0, 1, 2 + 5, 4);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "0 sent 10 (20), 0 received 30 (0), 1 sent 1 (0), "
                                        "1 received 2 (0), 2 sent 0 (4), - received 5 (0)");

  /* A child that says more than it has counted, one that says nothing, and one that dies. */
  trace->buffers[0].count = 0;
  submit_to (bench, 3, 0);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = UINT64_MAX, .saved = 8, .received = 9 };
  pto_call_tell_stamps (&call, 0, &stamps);
  count_moved (bench, 0, 7, 3, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "3 sent 7 (0), 3 received 3 (0)");
  trace->buffers[0].count = 0;
  submit_to (bench, 4, 0);
  call.mailbox->n_stamps = UINT64_MAX;
  memset (call.mailbox->body, 0, sizeof call.mailbox->body);
  count_moved (bench, 0, 6, 0, 1);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "- sent 6 (1)");
  trace->buffers[0].count = 0;
  submit_to (bench, 5, 0);
  take (bench, 0);
  count_moved (bench, 0, 11, 0, 0);
  die (bench, 0);
  assert_transfers (&trace->buffers[0], "- sent 11 (0)");
  revive (bench, 0);
  answer (bench, 0);

  /* What is counted when all tasks are over is of the run, as long as that has not ended. */
  trace->buffers[0].count = 0;
  end_run (bench, 6, 1);
  count_moved (bench, 1, 0, 100, 0);
  moved = pto_pool_end_run (bench->own.pool);
  assert_transfers (&trace->buffers[1], "- received 100 (0)");
  g_assert_cmpuint (moved.sent, ==, 10 + 1 + 7 + 6 + 11);
  g_assert_cmpuint (moved.received, ==, 30 + 2 + 5 + 3 + 100);
  g_assert_cmpuint (moved.saved, ==, 20 + 4 + 1);
  for (uint32_t i = 0; i <= CHILDREN; i++)
    g_assert_cmpuint (trace->buffers[i].dropped, ==, 0);
  pto_pool_record (bench->own.pool, NULL, NULL, 0);
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
  g_test_add_func ("/pto/pool/any", test_any);
  g_test_add_func ("/pto/pool/named", test_named);
  g_test_add_func ("/pto/pool/group", test_group);
  g_test_add_func ("/pto/pool/failures", test_failures);
  g_test_add_func ("/pto/pool/before-it-began", test_before_it_began);
  g_test_add_func ("/pto/pool/crowd", test_crowd);
  g_test_add_func ("/pto/pool/crowd-fails", test_crowd_fails);
  g_test_add_func ("/pto/pool/control", test_control);
  g_test_add_func ("/pto/pool/control-commit", test_commit);
  g_test_add_func ("/pto/pool/control-death-between", test_death_between);
  g_test_add_func ("/pto/pool/control-breach", test_breach);
  g_test_add_func ("/pto/pool/control/of-the-dead", test_control_of_the_dead);
  g_test_add_func ("/pto/pool/control/left-alone", test_control_left_alone);
  g_test_add_func ("/pto/pool/control/last", test_last);
  g_test_add_func ("/pto/pool/deaths", test_deaths);
  g_test_add_func ("/pto/pool/written-over", test_written_over);
  g_test_add_func ("/pto/pool/long-patience", test_long_patience);
  g_test_add_func ("/pto/pool/limits", test_limits);
  g_test_add_func ("/pto/pool/caught", test_caught);
  g_test_add_func ("/pto/pool/never-up", test_never_up);
  g_test_add_func ("/pto/pool/together", test_together);
  g_test_add_func ("/pto/pool/together-named", test_together_named);
  g_test_add_func ("/pto/pool/together-failed", test_together_failed);
  g_test_add_func ("/pto/pool/together-lost", test_together_lost);
  g_test_add_func ("/pto/pool/again", test_again);
  g_test_add_func ("/pto/pool/again-limit", test_again_limit);
  g_test_add_func ("/pto/pool/again-before", test_again_before);
  g_test_add_func ("/pto/pool/again-gone", test_again_gone);
  g_test_add_func ("/pto/pool/again-memory", test_again_memory);
  g_test_add_func ("/pto/pool/again-group", test_again_group);
  g_test_add_func ("/pto/pool/again-cancelled", test_again_cancelled);
  g_test_add_func ("/pto/pool/again-together", test_again_together);
  g_test_add_func ("/pto/pool/together-long", test_together_long);
  g_test_add_func ("/pto/pool/together-not", test_together_not);
  g_test_add_func ("/pto/pool/together-recorded", test_together_recorded);
  g_test_add_func ("/pto/pool/traffic", test_traffic);
  g_test_add_func ("/pto/pool/together-watched", test_together_watched);
  g_test_add_func ("/pto/pool/together-returned", test_together_returned);
  g_test_add_func ("/pto/pool/together-returned-late", test_together_returned_late);
  g_test_add_func ("/pto/pool/cancel", test_cancel);
  g_test_add_func ("/pto/pool/cancel-worker", test_cancel_worker);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
