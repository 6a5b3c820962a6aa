/* det-witness.c: is what the pool says of tasks and children so, and does it say so once?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each of its words goes through here, in a program that is linked with the wraps of meson.build;
 * the end of a task is final.
 */
#include "det-test.h"

#include <string.h>

static struct task *
task_of (const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_payload_extra (slot->payload);

  return &test.tasks[slot->payload->args[task->n_tensors]];
}

void __real_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                                  const struct pto_slot *slot, bool failed);
void __wrap_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                                  const struct pto_slot *slot, bool failed);
void
__wrap_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                             const struct pto_slot *slot, bool failed)
{
  struct task *task = task_of (slot);

  /* What it has left may be lost as it comes here. */
  if (task->is_over && !(failed && test.profile.leaves > 0))
    fail_seed ("task %u ends twice", (uint32_t) (task - test.tasks));
  task->is_over = true;
  for (uint32_t a = 0; !failed && a < task->n_args; a++)
    if (task->args[a].use != USE_READ)
      memset (&gone[task->args[a].first], 0, task->args[a].n * sizeof gone[0]);
  if (!failed && !task->has_worked && !test.profile.damages)
    fail_seed ("task %u is said to have ended well", (uint32_t) (task - test.tasks));
  if (failed != task->has_failed)
    fail_seed ("task %u is said to have failed in one place only", (uint32_t) (task - test.tasks));
  __real_pto_pool_end_writing (pool, station, slot, failed);
}

void __real_pto_left_lose (struct pto_left *left, uint32_t child);
void __wrap_pto_left_lose (struct pto_left *left, uint32_t child);
void
__wrap_pto_left_lose (struct pto_left *left, uint32_t child)
{
  for (uint32_t i = 0; i < left->spans.n; i++)
    {
      const struct pto_span *span = &left->spans.list[i];

      if (pto_left_child (span) != child)
        continue;
      if (!is_ever_touched (child) && !test.is_cancelled)
        fail_seed ("what child %u has is lost, and nothing was done to it", child);
      for (uint64_t at = span->begin; at < span->end; at += sizeof board[0])
        gone[(uint64_t *) (uintptr_t) at - board] = true;
      total.gone++;
    }
  __real_pto_left_lose (left, child);
}

bool __real_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child);
bool __wrap_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child);
bool
__wrap_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child)
{
  total.left++;
  return __real_pto_left_add (left, begin, end, child);
}

void __real_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                                   enum pto_failure_kind kind, const struct pto_child *child);
void __wrap_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                                   enum pto_failure_kind kind, const struct pto_child *child);
void
__wrap_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                              enum pto_failure_kind kind, const struct pto_child *child)
{
  struct task *task = task_of (slot);
  struct life *life = test.current[child->index];

  task->has_failed = true;
  task->kind = kind;
  task->may_be_lost = kind == PTO_FAILURE_LEFT ? is_ever_touched (child->index) : life->is_touched;
  test.n_failed++;
  __real_pto_pool_note_failure (pool, slot, kind, child);
}

void __real_pto_call_set_silent (const struct pto_call *call, bool silent);
void __wrap_pto_call_set_silent (const struct pto_call *call, bool silent);
void
__wrap_pto_call_set_silent (const struct pto_call *call, bool silent)
{
  if ((atomic_load (&call->mailbox->silent) != 0) == silent)
    fail_seed ("that nothing is heard, or something is, is said twice");
  __real_pto_call_set_silent (call, silent);
}

bool __real_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                                 const struct pto_child *child, bool has_begun);
bool __wrap_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                                 const struct pto_child *child, bool has_begun);
bool
__wrap_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                            const struct pto_child *child, bool has_begun)
{
  struct task *task = task_of (slot);
  bool is_again;

  if (!has_begun && task->n_begun > task->n_again)
    fail_seed ("a task that has begun there is said not to have");
  is_again = __real_pto_pool_runs_again (pool, slot, child, has_begun);
  task->n_again += is_again && has_begun;
  total.again += is_again;
  if (is_again)
    task->has_worked = false;
  return is_again;
}

void __real_pto_link_post (struct pto_exec *exec, struct pto_link *link,
                           const struct pto_letter *letter);
void __wrap_pto_link_post (struct pto_exec *exec, struct pto_link *link,
                           const struct pto_letter *letter);
void
__wrap_pto_link_post (struct pto_exec *exec, struct pto_link *link, const struct pto_letter *letter)
{
  const struct ends_config *ends = &test.profile.ends;
  bool is_task = letter->request == PTO_REQUEST_TASK || letter->request == PTO_REQUEST_TASKS;

  if (is_task && pto_link_is_silent (link))
    fail_seed ("who is suspect is given a task");
  for (uint32_t c = 0; is_task && c < test.profile.n_remotes; c++)
    {
      const struct life *life = test.current[c];

      /* Two looks until it is asked, and two until that was too long ago. */
      if (&test.own.children[c].link == link && life->frozen_at != 0
          && world_now () - life->frozen_at > 2 * (ends->ping + ends->suspect) * MS)
        fail_seed ("who was silent for long is given a task");
      if (&test.own.children[c].link == link && !process_is_dead (life->process)
          && link_has_hung_up (life->link, 5 * MS) && world_now () - life->thawed_at > 5 * MS)
        fail_seed ("who speaks for nobody any more is given a task");
    }
  __real_pto_link_post (exec, link, letter);
}
