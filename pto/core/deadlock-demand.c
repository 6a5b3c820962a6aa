/* deadlock-demand.c: what would a run have needed that cannot go on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "deadlock-demand.h"

void
pto_engine_note_peaks (struct pto_engine *engine)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      struct pto_demand *demand = &engine->demand[r];

      if (demand->held + demand->late_held > demand->peak_held)
        demand->peak_held = demand->held + demand->late_held;
      if (demand->heap + demand->late_heap > demand->peak_heap)
        demand->peak_heap = demand->heap + demand->late_heap;
      if (demand->storage + demand->late_storage > demand->peak_storage)
        demand->peak_storage = demand->storage + demand->late_storage;
      if (demand->edges + demand->late_edges > demand->peak_edges)
        demand->peak_edges = demand->edges + demand->late_edges;
      if (demand->nodes > demand->peak_nodes)
        demand->peak_nodes = demand->nodes;
    }
}

void
pto_engine_count_late (struct pto_engine *engine)
{
  engine->deadlock.unpublished = engine->config.build_first ? 0 : engine->build.n_held;
  for (uint32_t r = 0; r < PTO_RINGS && engine->deadlock.unpublished > 0; r++)
    {
      const struct pto_ring *ring = &engine->rings[r];
      struct pto_demand *demand = &engine->demand[r];

      if ((int32_t) (ring->floor - engine->tails[r]) > 0)
        demand->late_edges
            = (ring->floor != ring->head ? pto_ring_slot (ring, ring->floor)->first_edge
                                         : ring->edge_head)
              - ring->edge_tail;
      for (uint32_t local = engine->tails[r]; (int32_t) (ring->floor - local) > 0; local++)
        {
          const struct pto_slot *slot = pto_ring_slot (ring, local);

          demand->late_held++;
          demand->late_heap += slot->heap_bytes;
          demand->late_storage += slot->storage_bytes;
        }
    }
}

void
pto_engine_count_add (struct pto_engine *engine)
{
  engine->deadlock.unpublished += !engine->config.build_first;
}

void
pto_engine_count_publish (struct pto_engine *engine)
{
  if (engine->deadlock.unpublished == 0 || --engine->deadlock.unpublished > 0)
    return;
  /* From here on what has been submitted can run, and what scopes held that have ended goes. */
  pto_engine_note_peaks (engine);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      engine->demand[r].late_held = 0;
      engine->demand[r].late_heap = 0;
      engine->demand[r].late_storage = 0;
      engine->demand[r].late_edges = 0;
    }
}

void
pto_engine_count_scope_end (struct pto_engine *engine, uint32_t ring)
{
  struct pto_demand *demand = &engine->demand[ring];

  pto_engine_note_peaks (engine);
  if (engine->deadlock.unpublished > 0)
    {
      demand->late_held += demand->held;
      demand->late_heap += demand->heap;
      demand->late_storage += demand->storage;
      demand->late_edges += demand->edges;
    }
  else
    {
      demand->nodes = 0;
      demand->let_go = demand->counted;
    }
  demand->held = 0;
  demand->heap = 0;
  demand->storage = 0;
  demand->edges = 0;
}
