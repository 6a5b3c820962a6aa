/* pool-remote-results.c: which results are left where they were written, and when are they fetched?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is large does not come back with the answer of its task. When that is there, and its
 * consumers are known that were submitted so far, it is left (remote-results.h) if somebody reads
 * it and all who do are bound to that child, and is fetched before the task ends otherwise. A
 * consumer that is submitted later, elsewhere, has it fetched before it begins: whoever needs it is
 * about to be given it, and is held until it has come (pool.c). Members of a group never leave
 * anything, and find all of it here: they may wait for each other, and nobody fetches from a child
 * that is busy.
 *
 * Of memory of the run that is all, since nobody can read it who is no task of it. What is left of
 * the program's memory comes at the end of the run, before the program is told of that.
 *
 * A task that overwrites it needs nothing; it waits only while it is being fetched. All of it is
 * the carrier's.
 */
#include "pool-private.h"

#include "exec/translate.h"

static bool
is_left (const struct pto_pool *pool, const struct pto_child *child, const struct pto_slot *slot,
         uint32_t tensor)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  uint8_t access = pto_level_task_access (task)[tensor];
  struct pto_extent extent;

  if (!child->far || child->leave_bytes == 0 || task->n_members > 1 || task->idempotent
      || (access & (PTO_WIRE_WRITE | PTO_WIRE_STAYS)) != PTO_WIRE_WRITE)
    return false;
  extent = pto_pool_extent (slot, tensor);
  return extent.end - extent.begin >= child->leave_bytes;
}

uint8_t
pto_pool_access (struct pto_pool *pool, const struct pto_child *child, const struct pto_slot *slot,
                 uint32_t tensor)
{
  uint8_t access = pto_level_task_access (pto_pool_task (slot))[tensor];
  struct pto_extent extent;
  uint32_t who;

  if (!child->far || (access & PTO_WIRE_STAYS) != 0)
    return access;
  if (is_left (pool, child, slot, tensor))
    access |= PTO_WIRE_LEFT;
  if ((access & PTO_WIRE_READ) == 0 || pto_left_is_empty (&pool->left))
    return access;
  extent = pto_pool_extent (slot, tensor);
  if (pto_left_find (&pool->left, extent.begin, extent.end, child->index, &who) == PTO_LEFT_THERE)
    access |= PTO_WIRE_KEPT;
  return access;
}

/* --- who needs it --- */

enum pto_left_where
pto_pool_need (struct pto_pool *pool, const struct pto_station *station,
               const struct pto_slot *slot, uint64_t *who, uint32_t *lost)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);
  bool alone = task->n_members == 1;
  enum pto_left_where where = PTO_LEFT_HERE;

  if (pto_left_is_empty (&pool->left))
    return PTO_LEFT_HERE;
  for (uint32_t i = 0; i < task->n_tensors; i++)
    {
      struct pto_extent extent = pto_pool_extent (slot, i);
      enum pto_left_where one;

      if ((access[i] & PTO_WIRE_STAYS) != 0)
        continue;
      if ((access[i] & ~(uint32_t) PTO_WIRE_OWNED) == PTO_WIRE_WRITE)
        {
          if (pto_left_is_asked (&pool->left, extent.begin, extent.end))
            where = PTO_LEFT_SOMEWHERE;
          continue;
        }
      one = pto_left_find (&pool->left, extent.begin, extent.end,
                           alone ? station->child->index : PTO_LEFT_NOBODY, lost);
      if (one == PTO_LEFT_GONE)
        return one;
      if (one != PTO_LEFT_SOMEWHERE)
        continue;
      if (who != NULL)
        pto_left_want (&pool->left, extent.begin, extent.end, who);
      where = PTO_LEFT_SOMEWHERE;
    }
  return where;
}

void
pto_pool_begin_writing (struct pto_pool *pool, const struct pto_station *station,
                        const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);

  if (pto_left_is_empty (&pool->left))
    return;
  for (uint32_t i = 0; i < task->n_tensors; i++)
    if ((access[i] & (PTO_WIRE_WRITE | PTO_WIRE_STAYS)) == PTO_WIRE_WRITE)
      {
        struct pto_extent extent = pto_pool_extent (slot, i);

        pto_left_remove (&pool->left, extent.begin, extent.end, station->child->index);
      }
}

void
pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                      const struct pto_slot *slot, bool failed)
{
  const struct pto_child *child = station->child;
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);

  if (!child->far)
    return;
  for (uint32_t i = 0; i < task->n_tensors; i++)
    {
      struct pto_extent extent;

      if ((access[i] & (PTO_WIRE_WRITE | PTO_WIRE_STAYS)) != PTO_WIRE_WRITE)
        continue;
      extent = pto_pool_extent (slot, i);
      if (failed || !is_left (pool, child, slot, i))
        pto_left_remove (&pool->left, extent.begin, extent.end, PTO_LEFT_NOBODY);
      else if (!pto_left_add (&pool->left, extent.begin, extent.end, child->index))
        pto_child_kill (station->child, PTO_WHY_FAULT,
                        N_ ("left more than there is memory to note"));
    }
}

/* --- is it left? --- */

static bool
is_bound (const struct pto_pool *pool, const struct pto_level_task *task,
          const struct pto_child *child)
{
  uint32_t worker = pto_level_task_members (task)->worker;

  if (task->n_members > 1 || task->kind != child->kind || task->serves != child->level)
    return false;
  if (worker != PTO_WORKER_ANY)
    return pool->numbers[task->kind][worker] == child->index;
  for (uint32_t i = 0; i < pool->n_classes; i++)
    if (pool->classes[i].kind == child->kind && pool->classes[i].level == child->level)
      return pool->classes[i].n_children == 1;
  return false;
}

static bool
reads (const struct pto_slot *slot, struct pto_extent extent)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const uint8_t *access = pto_level_task_access (task);

  for (uint32_t i = 0; i < task->n_tensors; i++)
    {
      struct pto_extent read = pto_pool_extent (slot, i);

      if ((access[i] & ~(uint32_t) PTO_WIRE_OWNED) != PTO_WIRE_WRITE && read.begin < extent.end
          && extent.begin < read.end)
        return true;
    }
  return false;
}

/* Its list of consumers is open, since it has not ended; they are not over before that, and their
 * edges are theirs. Acquire: pairs with the release of push_edge(), behind which a consumer is
 * filled. */
static bool
is_read_there_only (const struct pto_pool *pool, const struct pto_slot *slot,
                    struct pto_extent extent, const struct pto_child *child)
{
  uint32_t ref = atomic_load_explicit (&slot->fanout, memory_order_acquire);
  bool is_read = false;

  while (ref != 0 && ref != PTO_FANOUT_CLOSED && ref != PTO_FANOUT_FAILED)
    {
      const struct pto_edge *edge = pto_engine_edge (pool->engine, ref);
      const struct pto_slot *consumer = pto_engine_slot (pool->engine, edge->consumer);

      ref = edge->next;
      if (consumer->kernel == PTO_KERNEL_NONE || !reads (consumer, extent))
        continue;
      /* Who may be run once more would find it lost with the child. */
      if (!is_bound (pool, pto_pool_task (consumer), child) || pto_pool_task (consumer)->idempotent)
        return false;
      is_read = true;
    }
  return is_read;
}

uint64_t
pto_pool_want_back (struct pto_pool *pool, const struct pto_station *station,
                    const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  uint64_t who[PTO_POOL_WORDS] = { 0 };
  uint64_t bytes = 0;

  for (uint32_t i = 0; i < task->n_tensors; i++)
    if (is_left (pool, station->child, slot, i))
      {
        struct pto_extent extent = pto_pool_extent (slot, i);

        if (is_read_there_only (pool, slot, extent, station->child))
          continue;
        pto_left_want (&pool->left, extent.begin, extent.end, who);
        bytes += extent.end - extent.begin;
      }
  return bytes;
}

bool
pto_pool_fetch (struct pto_pool *pool, struct pto_station *station)
{
  struct pto_child *child = station->child;
  struct pto_left_range *ranges = (struct pto_left_range *) pto_link_body (&child->link);
  uint32_t n;

  /* Who waits for it has failed, or is about to. */
  if (!child->far || pto_left_is_empty (&pool->left) || pto_pool_is_cancelled (pool))
    return false;
  n = pto_left_ask (&pool->left, child->index, ranges, PTO_LINK_BODY / sizeof *ranges);
  if (n == 0)
    return false;
  pto_pool_record_asked (pool, station);
  pto_pool_begin_request (pool, child, PTO_REQUEST_FETCH);
  pto_link_post (
      pool->peers, &child->link,
      &(struct pto_letter){ .request = PTO_REQUEST_FETCH, .bytes = n * (uint32_t) sizeof *ranges });
  return true;
}
