/* room.c: is there room for one more task, and who makes some?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A submit takes a slot, argument storage, output memory and edges of one ring, and nodes of the
 * map. When one is short the submitter retires what it can, waits for tasks that may end, or proves
 * that nothing ever will and fails the run with the setting that would have passed.
 */
#include "room.h"

#include "../exec/pto_atomic.h"
#include "../exec/text.h"
#include "bits.h"
#include "deadlock.h"
#include "direct.h"
#include "progress.h"
#include "retire.h"

#include <inttypes.h>

/* What stands in the way of taking a slot now: PTO_OK for nothing. */
static enum pto_status
obstacle (const struct pto_engine *engine, const struct pto_ring *ring, uint32_t ring_index,
          uint32_t n_edges, uint32_t n_nodes)
{
  if (ring->head - engine->tails[ring_index] >= ring->window - 1)
    return PTO_STATUS_TASK_RING;
  if (ring->edge_pool - (ring->edge_head - ring->edge_tail) < n_edges)
    return PTO_STATUS_DEP_POOL;
  if (!pto_map_reserve (engine->map, n_nodes))
    return PTO_STATUS_MAP_OVERFLOW;
  return PTO_OK;
}

static bool
ring_may_move (const struct pto_engine *engine, uint32_t ring)
{
  return (int32_t) (engine->rings[ring].floor - engine->tails[ring]) > 0;
}

static bool
wait_for (struct pto_engine *engine, struct pto_slot *slot)
{
  if (pto_engine_slot_is_done (slot, slot->taken))
    return true;
  pto_engine_leave_direct (engine);
  return pto_engine_wait_for (engine, slot, slot->taken);
}

/* Waits until tasks of a ring can be retired, a good piece of them if there are many, so that the
 * submitter is not woken for every one. */
static bool
wait_for_ring (struct pto_engine *engine, uint32_t ring_index, enum pto_status what, uint64_t need)
{
  struct pto_blocked *blocked = &engine->blocked;
  struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t movable = ring->floor - engine->tails[ring_index];
  /* Where tasks are ordered by hand one may wait for somebody who is not let go before this wait is
   * over, and those before it make room. */
  uint32_t most = engine->by_hand ? 1 : ring->window / 4;
  uint32_t piece = most < movable ? most : movable;
  struct pto_slot *target = pto_ring_slot (ring, engine->tails[ring_index] + piece - 1);
  uint64_t start
      = pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH) ? pto_engine_stamp (engine) : 0;
  bool ok;

  blocked->what = what;
  blocked->ring = ring_index;
  blocked->need = need;
  blocked->since = blocked->notice_ns != PTO_NEVER ? pto_now (engine->exec) : 0;
  blocked->told_at
      = blocked->notice_ns != PTO_NEVER ? blocked->since + blocked->notice_ns : PTO_NEVER;
  ok = wait_for (engine, target);
  engine->stats.stalls++;
  ok = ok && wait_for (engine, pto_ring_slot (ring, engine->tails[ring_index]));
  blocked->told_at = PTO_NEVER;
  blocked->what = PTO_OK;
  if (!ok)
    pto_engine_report_stuck (engine, what, ring_index);
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    {
      uint32_t kind = what == PTO_STATUS_TASK_RING   ? PTO_STALL_TASK
                      : what == PTO_STATUS_HEAP_RING ? PTO_STALL_HEAP
                      : what == PTO_STATUS_DEP_POOL  ? PTO_STALL_DEP
                                                     : PTO_STALL_MAP;

      pto_trace_add (engine->trace, PTO_TRACE_STALL, start, PTO_TASK_NONE, ring_index | kind << 8,
                     pto_engine_stamp (engine));
    }
  return ok;
}

/* Of that ring something is short. false: it can not be had, and the run has failed. */
static bool
free_some (struct pto_engine *engine, uint32_t ring_index, enum pto_status what,
           const struct pto_needs *needs)
{
  const struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t tail = engine->tails[ring_index];

  pto_engine_retire (engine, ring_index);
  if (tail != engine->tails[ring_index])
    return true;
  if (ring_may_move (engine, ring_index))
    return wait_for_ring (engine, ring_index, what,
                          what == PTO_STATUS_HEAP_RING  ? needs->heap
                          : what == PTO_STATUS_DEP_POOL ? needs->n_edges
                                                        : needs->storage);
  pto_engine_prove_deadlock (engine, what, ring_index, needs->n_edges,
                             ring->edge_head - ring->edge_tail);
  return false;
}

bool
pto_engine_make_edge_room (struct pto_engine *engine, uint32_t ring_index)
{
  const struct pto_ring *ring = &engine->rings[ring_index];
  struct pto_needs needs = { .n_edges = 1, .ring = ring_index };

  while (ring->edge_pool - (ring->edge_head - ring->edge_tail) < 1)
    if (!free_some (engine, ring_index, PTO_STATUS_DEP_POOL, &needs))
      return false;
  return !pto_engine_has_failed (engine);
}

struct pto_slot *
pto_engine_make_room (struct pto_engine *engine, uint32_t ring_index, const struct pto_needs *needs,
                      uint64_t *heap_offset, uint64_t *storage_offset)
{
  struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t n_nodes = pto_needs_nodes (needs);

  if (needs->heap > ring->heap.size)
    {
      engine->deadlock.what = PTO_STATUS_HEAP_RING;
      engine->deadlock.ring = ring_index;
      engine->deadlock.oversized = needs->heap;
      pto_engine_fail (engine, PTO_STATUS_HEAP_RING,
                       _ ("task %" PRIu64 " is too large for heap ring %u"), engine->submitted,
                       ring_index);
      return NULL;
    }
  if (needs->n_edges > ring->edge_pool)
    {
      pto_engine_fail (
          engine, PTO_STATUS_DEP_POOL,
          _ ("task %" PRIu64
             " depends on %u tasks, dependency pool %u has %u edges: set dep-pool to %u or more"),
          engine->submitted, needs->n_edges, ring_index, ring->edge_pool,
          power_of_two_at_least (needs->n_edges));
      return NULL;
    }
  if (n_nodes > pto_map_capacity (engine->map))
    {
      pto_engine_fail (
          engine, PTO_STATUS_MAP_OVERFLOW,
          _ ("task %" PRIu64
             " needs %u nodes of the TensorMap, which has %u: set map-pool to %u or more"),
          engine->submitted, n_nodes, pto_map_capacity (engine->map),
          power_of_two_at_least (n_nodes));
      return NULL;
    }
  for (;;)
    {
      enum pto_status what = obstacle (engine, ring, ring_index, needs->n_edges, n_nodes);

      if (what == PTO_OK)
        {
          struct pto_slot *slot = pto_ring_slot (ring, ring->head);
          bool compact = ring->floor == ring->head;
          uint64_t heap_taken;
          uint64_t storage_taken;

          *storage_offset
              = pto_circle_alloc (&ring->storage, needs->storage, compact, &storage_taken);
          *heap_offset = 0;
          if (*storage_offset != PTO_CIRCLE_FULL)
            {
              *heap_offset = pto_circle_alloc (&ring->heap, needs->heap, compact, &heap_taken);
              if (*heap_offset != PTO_CIRCLE_FULL)
                {
                  slot->heap_end = ring->heap.head;
                  slot->heap_bytes = heap_taken;
                  slot->storage_end = ring->storage.head;
                  slot->storage_bytes = storage_taken;
                  return slot;
                }
              pto_circle_undo (&ring->storage, *storage_offset, needs->storage, storage_taken);
            }
          /* Argument storage counts as the task ring's: it grows with the same knob. */
          what = *heap_offset == PTO_CIRCLE_FULL ? PTO_STATUS_HEAP_RING : PTO_STATUS_TASK_RING;
        }
      if (what == PTO_STATUS_MAP_OVERFLOW)
        {
          uint32_t moves = 0;

          pto_engine_retire_all (engine);
          if (pto_map_reserve (engine->map, n_nodes))
            continue;
          while (moves < PTO_RINGS && !ring_may_move (engine, moves))
            moves++;
          if (moves == PTO_RINGS)
            {
              /* The nodes belong to tasks of any ring: the one that holds the most is named. */
              uint32_t holder = ring_index;

              for (uint32_t i = 0; i < PTO_RINGS; i++)
                if (engine->rings[i].head - engine->tails[i]
                    > engine->rings[holder].head - engine->tails[holder])
                  holder = i;
              pto_engine_prove_deadlock (engine, what, holder, n_nodes, pto_map_used (engine->map));
              return NULL;
            }
          if (!wait_for_ring (engine, moves, what, n_nodes))
            return NULL;
        }
      else
        {
          if (!free_some (engine, ring_index, what, needs))
            return NULL;
        }
      if (pto_engine_has_failed (engine))
        return NULL;
    }
}
