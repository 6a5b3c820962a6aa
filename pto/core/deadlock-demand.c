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

      for (uint32_t i = 0; i < PTO_N_GOODS; i++)
        demand->peak[i] = max_of (demand->peak[i], demand->now[i] + demand->late[i]);
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
        demand->late[PTO_GOOD_EDGES]
            = (ring->floor != ring->head ? pto_ring_slot (ring, ring->floor)->first_edge
                                         : ring->edge_head)
              - ring->edge_tail;
      for (uint32_t local = engine->tails[r]; (int32_t) (ring->floor - local) > 0; local++)
        {
          const struct pto_slot *slot = pto_ring_slot (ring, local);

          demand->late[PTO_GOOD_TASKS]++;
          demand->late[PTO_GOOD_HEAP] += slot->heap_bytes;
          demand->late[PTO_GOOD_STORAGE] += slot->storage_bytes;
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
    memset (engine->demand[r].late, 0, sizeof engine->demand[r].late);
}

void
pto_engine_count_scope_end (struct pto_engine *engine, uint32_t ring)
{
  struct pto_demand *demand = &engine->demand[ring];
  bool stays = engine->deadlock.unpublished > 0;

  pto_engine_note_peaks (engine);
  for (uint32_t i = 0; i < PTO_N_GOODS; i++)
    {
      if (i == PTO_GOOD_NODES && stays)
        continue;
      if (stays)
        demand->late[i] += demand->now[i];
      demand->now[i] = 0;
    }
  if (!stays)
    demand->let_go = demand->counted;
}
