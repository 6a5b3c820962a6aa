/* backpressure.c: is there room for one more task, and who makes some?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A submit takes a slot, argument storage, output memory and edges of one ring, and nodes of the
 * map. When one is short the submitter retires what it can, waits for tasks that may end, or proves
 * that nothing ever will and fails the run with the setting that would have passed.
 */
#include "backpressure.h"

#include "completion.h"
#include "deadlock.h"
#include "early-release.h"
#include "manual-tasks.h"
#include "retire.h"
#include "run-inline.h"

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
  /* A run that has failed needs no room any more. */
  return pto_engine_wait_for (engine, slot, slot->taken) && !pto_engine_has_failed (engine);
}

/* The oldest task of the ring may be retired once it is done. Can it be done before the submitter
 * lets go of tasks that were added? If not, it never will be: the submitter is about to wait. With
 * build_first it lets them go instead. */
static bool
is_held_up (struct pto_engine *engine, uint32_t ring_index, enum pto_status what)
{
  const struct pto_slot *oldest
      = pto_ring_slot (&engine->rings[ring_index], engine->tails[ring_index]);

  if (PTO_LIKELY (engine->build.n_held == 0))
    return false;
  pto_early_make_way (engine, ring_index, what);
  return pto_added_has_obstacle (engine, oldest);
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
  if (ring_may_move (engine, ring_index) && is_held_up (engine, ring_index, what)
      && pto_engine_prove_unpublished (engine, what, ring_index, needs->n_edges,
                                       ring->edge_head - ring->edge_tail))
    return false;
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

  if (needs->heap > ring->heap.size || needs->n_edges > ring->edge_pool
      || n_nodes > pto_map_capacity (engine->map))
    {
      if (needs->heap > ring->heap.size)
        pto_engine_prove_oversized (engine, PTO_STATUS_HEAP_RING, ring_index, needs->heap);
      else if (needs->n_edges > ring->edge_pool)
        pto_engine_prove_oversized (engine, PTO_STATUS_DEP_POOL, ring_index, needs->n_edges);
      else
        pto_engine_prove_oversized (engine, PTO_STATUS_MAP_OVERFLOW, ring_index, n_nodes);
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
          uint32_t held_up = PTO_RINGS;

          pto_engine_retire_all (engine);
          if (pto_map_reserve (engine->map, n_nodes))
            continue;
          for (; moves < PTO_RINGS; moves++)
            {
              if (!ring_may_move (engine, moves))
                continue;
              if (!is_held_up (engine, moves, what))
                break;
              held_up = held_up < PTO_RINGS ? held_up : moves;
            }
          if (moves == PTO_RINGS && held_up < PTO_RINGS
              && pto_engine_prove_unpublished (engine, what, held_up, n_nodes,
                                               pto_map_used (engine->map)))
            return NULL;
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
