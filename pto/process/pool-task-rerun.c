/* pool-task-rerun.c: which task that was lost with its worker is run once more, and what of it is
 * seen?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One that had not begun; and one whose callable was said to be idempotent, which reads nothing
 * that it writes, so that it finds what it found before, and all that it leaves is what its last
 * run has written. It has not ended: what comes after it goes on to wait, and nobody reads or
 * writes its memory meanwhile. The engine makes it ready as it was before, when all of its members
 * have ended (struct pto_outcome), so any worker takes it that could have at first.
 *
 * Members of a group hear of each other's end before we do, and may fail for that. So what one of
 * them says went wrong is held until all have ended: when one of them is lost by itself, the group
 * is, and what the others said is nothing.
 *
 * All of it is the carrier's, as are the words of the task (service.h) that say how far this is:
 *
 *     member dies: lost ---- the last member ends: anew ---- a member is dispatched: neither
 */
#include "pool-private.h"

#include <stdlib.h>
#include <string.h>

/* Does it find what it found before? Not what was passed on without a word, nor what was nowhere
 * but at the worker. */
static bool
can_be_repeated (const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);

  for (uint32_t i = 0; i < task->n_tensors; i++)
    {
      struct pto_extent written = pto_pool_extent (slot, i);

      if (access[i] == PTO_WIRE_READ)
        continue;
      if (access[i] != PTO_WIRE_WRITE)
        return false;
      for (uint32_t k = 0; k < task->n_tensors; k++)
        {
          struct pto_extent read = pto_pool_extent (slot, k);

          if (access[k] == PTO_WIRE_READ && read.begin < written.end && written.begin < read.end)
            return false;
        }
    }
  return true;
}

static bool
stays (const struct pto_pool *pool, const struct pto_child *child, const struct pto_child *dead)
{
  return child != dead
             ? pto_child_life (child) != PTO_LIFE_GONE
             : pto_child_lives_again (child, pto_pool_is_to_close (pool, child), pool->closing);
}

/* Is there anybody left to run it? Or why it was lost would not be told. */
static bool
finds_workers (const struct pto_pool *pool, const struct pto_slot *slot,
               const struct pto_child *dead)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const struct pto_member *members = pto_level_task_members (task);
  uint32_t left = 0;

  for (uint32_t i = 0; i < pool->config.n_children; i++)
    {
      const struct pto_child *child = &pool->config.children[i];

      if (child->kind == dead->kind && child->level == dead->level)
        left += stays (pool, child, dead);
    }
  for (uint32_t m = 0; m < task->n_members; m++)
    if (members[m].worker != PTO_WORKER_ANY
        && !stays (pool, &pool->config.children[pool->numbers[task->kind][members[m].worker]],
                   dead))
      return false;
  return left >= task->n_members;
}

/* Is nothing of it left that could write here any more? Who speaks for somebody far away was all
 * there is of them here; processes of its own, a worker of this machine may leave behind for a
 * moment. */
static bool
leaves_nobody (const struct pto_child *child)
{
  return child->far || child->level <= 2;
}

/* If it was lost now, with a worker that leaves nobody? */
static bool
may_run_again (const struct pto_pool *pool, const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);

  return task->n_lost < pool->config.retries && !pto_pool_is_cancelled (pool)
         && !pto_engine_has_failed (pool->engine);
}

/* What has begun may have done something. */
static bool
does_no_harm (const struct pto_slot *slot)
{
  return pto_pool_task (slot)->idempotent && can_be_repeated (slot);
}

static struct pto_held_failure **
find_held (struct pto_pool *pool, const struct pto_slot *slot)
{
  struct pto_held_failure **link = &pool->held;

  while (*link != NULL && (*link)->slot != slot)
    link = &(*link)->next;
  return link;
}

static void
drop_held (struct pto_held_failure **link)
{
  struct pto_held_failure *held = *link;

  *link = held->next;
  free (held);
}

bool
pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot, const struct pto_child *child,
                     bool has_begun)
{
  struct pto_level_task *task = pto_pool_task (slot);
  struct pto_held_failure **held = find_held (pool, slot);

  /* Another member was lost before. */
  if (task->lost)
    return true;
  if (!may_run_again (pool, slot) || !finds_workers (pool, slot, child))
    return false;
  /* Members of a group have begun, whatever this one has. */
  if ((has_begun || task->n_members > 1) && !(does_no_harm (slot) && leaves_nobody (child)))
    return false;
  /* A member that was ended since it went on when another had failed was not lost by itself. */
  if (task->failed && (*held == NULL || child->why == PTO_WHY_UNWANTED))
    return false;
  if (*held != NULL)
    drop_held (held);
  task->failed = false;
  task->lost = true;
  task->n_lost++;
  pool->retried++;
  return true;
}

struct pto_first_failure *
pto_pool_hold_failure (struct pto_pool *pool, const struct pto_slot *slot)
{
  struct pto_held_failure *held;

  if (pto_pool_task (slot)->n_members == 1 || !may_run_again (pool, slot) || !does_no_harm (slot))
    return NULL;
  held = calloc (1, sizeof *held);
  if (held == NULL)
    return NULL;
  held->slot = slot;
  held->next = pool->held;
  pool->held = held;
  return &held->what;
}

void
pto_pool_settle_failure (struct pto_pool *pool, const struct pto_slot *slot)
{
  struct pto_held_failure **held = find_held (pool, slot);

  if (*held == NULL)
    return;
  pto_pool_tell_failure (pool, &(*held)->what);
  drop_held (held);
}

void
pto_pool_clean (const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);

  /* It had not begun. */
  if (!can_be_repeated (slot))
    return;
  for (uint32_t i = 0; i < task->n_tensors; i++)
    if (access[i] == PTO_WIRE_WRITE)
      {
        struct pto_extent written = pto_pool_extent (slot, i);

        memset ((void *) (uintptr_t) written.begin, 0, written.end - written.begin);
      }
}
