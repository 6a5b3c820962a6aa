/* retire.c: whose slot and memory can be had again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "retire.h"

#include "exec/translate.h"
#include "completion.h"
#include "record-submit.h"

/* Remembers those of n retired tasks that have failed: what they should have written must not be
 * read later on. */
static void
note_failures (struct pto_engine *engine, uint32_t ring, uint32_t first, uint32_t n)
{
  struct pto_task_set *set = &engine->failed;

  for (uint32_t i = 0; i < n; i++)
    {
      if (pto_load_relaxed (&pto_ring_slot (&engine->rings[ring], first + i)->state)
          != PTO_TASK_FAILED)
        continue;
      if (!pto_array_has_room (set->items, set->count, set->capacity))
        {
          pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory to note %u failed tasks"),
                           set->count + 1);
          return;
        }
      set->items[set->count++] = PTO_TASK_ID (ring, first + i);
    }
}

void
pto_engine_note_live (struct pto_engine *engine)
{
  uint64_t live = 0;

  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    live += engine->rings[ring].head - engine->tails[ring];
  if (live > engine->stats.peak_live)
    engine->stats.peak_live = live;
}

void
pto_engine_retire (struct pto_engine *engine, uint32_t ring)
{
  uint32_t before = engine->tails[ring];
  uint32_t edges = engine->rings[ring].edge_tail;
  uint32_t n;

  if (engine->tails[ring] == engine->rings[ring].floor)
    return;
  pto_engine_note_live (engine);
  n = pto_ring_reclaim (&engine->rings[ring], &engine->tails[ring]);

  if (n == 0)
    return;
  /* Its scheduler counted a failure before it stored FAILED, which reclaim has acquired. */
  if (pto_engine_failures (engine) > 0)
    note_failures (engine, ring, before, n);
  if (engine->trace != NULL)
    pto_observe_retire (engine, ring, before, n);
  pto_map_retired (engine->map, n);
  pto_ring_give_back (&engine->rings[ring], before, engine->tails[ring], edges);
  if (engine->trace != NULL)
    pto_observe_occupancy (engine, ring);
}

void
pto_engine_retire_all (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_engine_retire (engine, ring);
}
