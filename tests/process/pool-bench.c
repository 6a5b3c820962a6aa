/* pool-bench.c: a pool on the det back end whose children are answered by hand.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/completion.h"
#include "../../pto/core/run.h"

#include <stdio.h>
#include <string.h>

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

void
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

void
answer_with (struct bench *bench, uint32_t child, uint32_t status, const char *text)
{
  struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;

  g_assert_false (pto_link_is_idle (&bench->own.children[child].link));
  mailbox->status = status;
  if (status != 0)
    pto_failure_set (&mailbox->failure, (int32_t) status, NULL, "%s", text);
  atomic_store (&mailbox->reply, 2 * pto_word_get (&mailbox->post));
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

void
answer (struct bench *bench, uint32_t child)
{
  answer_with (bench, child, 0, NULL);
}

void
take (struct bench *bench, uint32_t child)
{
  struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;

  atomic_store (&mailbox->reply, 2 * pto_word_get (&mailbox->post) - 1);
}

void
die (struct bench *bench, uint32_t child)
{
  pto_child_found_dead (&bench->own.children[child]);
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

void
revive (struct bench *bench, uint32_t child)
{
  g_assert_cmpint (pto_child_life (&bench->own.children[child]), ==, PTO_LIFE_LOST);
  pto_pool_begin_again (bench->own.pool, &bench->own.children[child]);
  settle (bench);
}

void
pass_time (struct bench *bench, uint64_t ns)
{
  pto_pool_tick (bench->own.pool, ns);
  settle (bench);
}

uint32_t
request_of (const struct bench *bench, uint32_t child)
{
  const struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;

  return !pto_child_is_there (&bench->own.children[child])
                 || pto_link_is_idle (&bench->own.children[child].link)
             ? 0
             : mailbox->request;
}

uint32_t
tasks_of (const struct bench *bench, uint32_t child, uint64_t numbers[PTO_TOGETHER_MAX])
{
  struct pto_mailbox *mailbox = bench->own.children[child].link.mailbox;
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

uint64_t
task_of (const struct bench *bench, uint32_t child)
{
  uint64_t numbers[PTO_TOGETHER_MAX];

  return tasks_of (bench, child, numbers) > 0 ? numbers[0] : NEVER_MIND;
}

void
assert_tasks (const struct bench *bench, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
  g_assert_cmpuint (task_of (bench, 0), ==, a);
  g_assert_cmpuint (task_of (bench, 1), ==, b);
  g_assert_cmpuint (task_of (bench, 2), ==, c);
  g_assert_cmpuint (task_of (bench, 3), ==, d);
}

struct bench *
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

void
begin_run (struct bench *bench)
{
  pto_pool_begin_run (bench->own.pool);
  pto_engine_begin (bench->own.engine);
  pto_pool_begin_traffic (bench->own.pool);
}

struct bench *
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

void
end_run (struct bench *bench, uint64_t n_tasks, uint64_t roots)
{
  struct pto_report report = { 0 };

  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n_tasks);
  g_assert_cmpint (pto_engine_end (bench->own.engine, &report), ==, PTO_OK);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, roots);
}

void
cancel (struct bench *bench, uint64_t patience)
{
  pto_engine_cancel (bench->own.engine);
  pto_pool_cancel (bench->own.pool, patience);
  settle (bench);
}

void
end_cancelled (struct bench *bench, uint64_t n_tasks)
{
  g_assert_cmpuint (pto_engine_completed (bench->own.engine), ==, n_tasks);
  g_assert_cmpint (pto_engine_end (bench->own.engine, NULL), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (pto_pool_first_failure (bench->own.pool)->roots, ==, 0);
}

void
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

void
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

void
submit_to (struct bench *bench, uint64_t number, uint32_t worker)
{
  submit (bench, number, 1, &worker);
}

void
set_silent (struct bench *bench, uint32_t child, bool silent)
{
  struct pto_call call = { .mailbox = bench->own.children[child].link.mailbox,
                           .hub = bench->own.hub,
                           .index = child };

  pto_call_set_silent (&call, silent);
  /* Once more for those who are no process: they are rung by whoever runs them. */
  pto_hub_mark (bench->own.exec, bench->own.hub, child);
  settle (bench);
}

struct bench *
bench_far (void)
{
  struct bench *bench = bench_ready (true);

  for (uint32_t c = 0; c < CHILDREN; c++)
    bench->own.children[c].far = true;
  return bench;
}

void
answer_tasks (struct bench *bench, uint32_t child, uint64_t failed, uint64_t busy)
{
  const struct pto_call call = { .mailbox = bench->own.children[child].link.mailbox };

  pto_call_tell_tasks (&call, failed, busy);
  answer_with (bench, child, failed != 0 ? PTO_STATUS_TASK_FAILED : 0, "no");
}

void
assert_has (const struct bench *bench, uint32_t child, uint64_t first, uint32_t n)
{
  uint64_t numbers[PTO_TOGETHER_MAX];

  g_assert_cmpuint (tasks_of (bench, child, numbers), ==, n);
  for (uint32_t i = 0; i < n; i++)
    g_assert_cmpuint (numbers[i], ==, first + i);
}

struct bench *
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
