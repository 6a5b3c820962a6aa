/* completion.h: what is done, and who waits for it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* Tasks completed so far in this run, by all schedulers; a progress mark. */
uint64_t pto_engine_completed (const struct pto_engine *engine);
/* Grows with everything that gets on: blocks of a task, too. */
uint64_t pto_engine_progress (const struct pto_engine *engine);
static inline bool
pto_engine_is_lost (const struct pto_engine *engine)
{
  return pto_engine_completed (engine) < engine->submitted;
}

/* Tasks of this run that did not run to their end. */
uint64_t pto_engine_failures (const struct pto_engine *engine);
/* Completed, and so many references given back; or however many. */
#define PTO_TAKEN_ANY UINT32_MAX
bool pto_engine_slot_is_done (struct pto_slot *slot, uint32_t taken);
/* A task is over: gives back what it retained, so that its producers' memory may go. Release pairs
 * with the acquire in pto_ring_reclaim(). alone: no other thread gives anything back. */
static inline void
pto_engine_release_producers (struct pto_engine *engine, const struct pto_slot *slot, bool alone)
{
  const struct pto_ring *ring = &engine->rings[PTO_TASK_RING (slot->id)];

  for (uint32_t i = 0; i < slot->n_retained; i++)
    {
      const struct pto_edge *edge = &ring->edges[(slot->first_edge + i) & (ring->edge_pool - 1)];
      struct pto_slot *producer = pto_engine_slot (engine, edge->producer);

      if (alone)
        pto_store_relaxed (&producer->released, pto_load_relaxed (&producer->released) + 1);
      else
        pto_fetch_add_acq_rel (&producer->released, 1);
    }
}

/* The submitter: all that it has submitted so far has run, or never will, and what that has written
 * is seen. */
bool pto_engine_is_through (struct pto_engine *engine);
/* The submitter, not in direct mode: waits until a slot is done or, without one, until everything
 * is. false: the executor has proved that this will not happen, and the run has failed; or patience
 * is at its end, which is the caller's to report. */
bool pto_engine_wait_for (struct pto_engine *engine, struct pto_slot *slot, uint32_t taken);
/* With an order: all that can run before the next submit has run, one task after the other. The
 * submitter. */
void pto_engine_run_all (struct pto_engine *engine);
/* Wakes the submitter if it waits and what it waits for is there. After a batch of completions. */
void pto_engine_tell_submitter (struct pto_engine *engine);
