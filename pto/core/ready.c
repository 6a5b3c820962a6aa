/* ready.c: who takes a ready task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ready.h"

#include "exec/translate.h"
#include "commutative.h"
#include "condition.h"
#include "core-placement.h"
#include "forced-order.h"
#include "record-submit.h"

void
pto_engine_restart_ready (struct pto_engine *engine)
{
  /* Who still sees bits of the run before finds empty queues. */
  pto_store_relaxed (&engine->priorities, 0);
  if (engine->config.n_schedulers != 1)
    return;
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
        pto_ready_queue_restart (&engine->ready[queue][shard]);
      for (uint32_t p = 0; p < PTO_MAX_PRIORITY; p++)
        pto_ready_queue_restart (&engine->urgent[queue][p]);
    }
}

bool
pto_engine_use_priority (struct pto_engine *engine, uint32_t kernel, uint32_t priority)
{
  uint32_t priorities = pto_load_relaxed (&engine->priorities);

  if (priority > PTO_MAX_PRIORITY)
    return pto_engine_refuse (engine, kernel, PTO_STATUS_INVALID_ARGS,
                              _ ("there is no priority %" PRId32
                                 ": a task has one of 0, which is what others have, to %d, which "
                                 "goes first"),
                              (int32_t) priority, PTO_MAX_PRIORITY);
  if ((priorities >> priority & 1) != 0)
    return true;
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      struct pto_ready_queue *urgent = &engine->urgent[queue][priority - 1];

      if (urgent->cells == NULL && !pto_ready_queue_init (urgent, engine->ready[queue][0].capacity))
        return pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                                _ ("no address space for a ready queue of %u tasks of priority %u"),
                                engine->ready[queue][0].capacity, priority);
    }
  pto_store_seq_cst (&engine->priorities, priorities | 1u << priority);
  return true;
}

/* Who asks for it does not know for which queue to ring. */
static __attribute__ ((noinline)) void
push_in_turn (struct pto_engine *engine, struct pto_slot *slot, uint32_t shard)
{
  uint32_t queue;

  if (!pto_turn_enter (engine, slot))
    return;
  queue = slot->queue;
  pto_engine_push_ready (engine, slot, shard);
  pto_engine_ring (engine, queue);
}

/* Its condition is known before it waits for places: a task that does not run needs none, and
 * becomes one without a kernel. */
static __attribute__ ((noinline)) bool
is_to_run (struct pto_engine *engine, struct pto_slot *slot)
{
  bool failed;

  if (pto_load_relaxed (&slot->poison) == PTO_TASK_NONE && !pto_engine_has_failed (engine)
      && !pto_condition_is_off (engine, slot, &failed))
    return true;
  pto_place_leave_out (engine, slot);
  return false;
}

void
pto_engine_push_ready (struct pto_engine *engine, struct pto_slot *slot, uint32_t shard)
{
  pto_store_relaxed (&slot->state, PTO_TASK_READY);
  if (__builtin_expect (slot->queue >= PTO_QUEUE_LINE, 0))
    {
      if (slot->queue == PTO_QUEUE_TURN)
        {
          push_in_turn (engine, slot, shard);
          return;
        }
      if (slot->queue == PTO_QUEUE_ORDER)
        {
          pto_order_hold (engine, slot);
          return;
        }
      if ((slot->kernel & PTO_KERNEL_IF) != 0 && !is_to_run (engine, slot))
        {
          uint32_t queue = slot->queue;

          pto_engine_push_ready (engine, slot, shard);
          pto_engine_ring (engine, queue);
          return;
        }
      if (pto_load_relaxed (&slot->poison) == PTO_TASK_NONE)
        pto_observe_begin (engine, slot);
      pto_place_enter (engine, slot);
      return;
    }
  /* There is a cell for every slot there is, so a full queue is one whose oldest tasks are being
   * popped: by another thread, for a pop does not wait in between. */
  while (!pto_ready_queue_push (slot->priority == 0
                                    ? &engine->ready[slot->queue][shard % engine->config.n_shards]
                                    : &engine->urgent[slot->queue][slot->priority - 1],
                                pto_engine_slot_ref (engine, slot)))
    pto_yield (engine->exec);
}

static __attribute__ ((noinline)) uint32_t
pop_urgent (struct pto_engine *engine, uint32_t queue, uint32_t priorities, uint32_t *refs,
            uint32_t max)
{
  uint32_t n = 0;

  for (uint32_t p = PTO_MAX_PRIORITY; p > 0 && n == 0; p--)
    if ((priorities >> p & 1) != 0)
      n = pto_ready_queue_pop (&engine->urgent[queue][p - 1], refs, max);
  return n;
}

uint32_t
pto_engine_pop_ready (struct pto_engine *engine, uint32_t queue, uint32_t shard,
                      struct pto_slot **slots, uint32_t max)
{
  uint32_t priorities = pto_load_acquire (&engine->priorities);
  uint32_t refs[PTO_POP_MAX];
  uint32_t n = 0;

  if (__builtin_expect (priorities != 0, 0))
    n = pop_urgent (engine, queue, priorities, refs, max);
  for (uint32_t i = 0; i < engine->config.n_shards && n == 0; i++)
    n = pto_ready_queue_pop (&engine->ready[queue][(shard + i) % engine->config.n_shards], refs,
                             max);
  for (uint32_t i = 0; i < n; i++)
    slots[i] = pto_engine_slot (engine, refs[i]);
  return n;
}

bool
pto_engine_has_ready (struct pto_engine *engine, uint32_t queue)
{
  for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
    if (pto_ready_queue_has_items (&engine->ready[queue][shard]))
      return true;
  return pto_engine_has_urgent (engine, queue, 0);
}

uint64_t
pto_engine_count_ready (const struct pto_engine *engine, uint32_t queue)
{
  uint64_t n = 0;

  for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
    n += pto_ready_queue_count (&engine->ready[queue][shard]);
  return n;
}

bool
pto_engine_has_urgent (struct pto_engine *engine, uint32_t queue, uint32_t priority)
{
  uint32_t priorities = pto_load_seq_cst (&engine->priorities);

  if (__builtin_expect (priorities == 0, 1))
    return false;
  for (uint32_t p = PTO_MAX_PRIORITY; p > priority; p--)
    if ((priorities >> p & 1) != 0 && pto_ready_queue_has_items (&engine->urgent[queue][p - 1]))
      return true;
  return false;
}

bool
pto_engine_go_on (struct pto_engine *engine, bool must)
{
  struct pto_slot *slot = pto_order_next (engine, must);
  uint32_t queue;

  if (slot == NULL)
    return false;
  queue = slot->queue;
  /* So that no two begin at one time, whatever they cost. */
  pto_charge (engine->exec, 1);
  pto_engine_push_ready (engine, slot, 0);
  pto_engine_ring (engine, queue);
  return true;
}

void
pto_engine_ring (struct pto_engine *engine, uint32_t queue)
{
  /* The push and these looks are seq_cst, and so are the announcement of hunger and the last look
   * at the queues behind it: one of the two sees the other. */
  if (pto_load_seq_cst (&engine->lingering) == 0)
    pto_engine_wake_hungry (engine, queue);
}

void
pto_engine_wake_hungry (struct pto_engine *engine, uint32_t queue)
{
  uint64_t hungry = pto_load_seq_cst (&engine->hungry[queue]);

  while (hungry != 0)
    {
      /* In turn, so that work goes round. W: whoever rings; a lost update only changes whose turn
       * it is. */
      uint32_t turn = pto_load_relaxed (&engine->turn) % 64;
      uint64_t later = hungry >> turn << turn;
      uint32_t index = (uint32_t) __builtin_ctzll (later != 0 ? later : hungry);
      uint64_t bit = UINT64_C (1) << index;

      if ((pto_fetch_and_seq_cst (&engine->hungry[queue], ~bit) & bit) != 0)
        {
          pto_store_relaxed (&engine->turn, index + 1);
          pto_engine_wake (engine, index);
          return;
        }
      hungry &= ~bit;
    }
}

void
pto_engine_ring_all (struct pto_engine *engine)
{
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (pto_engine_has_ready (engine, queue))
      pto_engine_ring (engine, queue);
}

uint64_t
pto_engine_backlog (const struct pto_engine *engine)
{
  uint64_t n = 0;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
      n += pto_ready_queue_count (&engine->ready[queue][shard]);
  for (uint32_t queue = 0;
       pto_load_relaxed (&engine->priorities) != 0 && queue < engine->config.n_queues; queue++)
    for (uint32_t p = 0; p < PTO_MAX_PRIORITY; p++)
      n += pto_ready_queue_count (&engine->urgent[queue][p]);
  return n;
}
