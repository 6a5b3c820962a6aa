/* tensor-map-sweep.c: when is what nobody can ask for any more given back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor-map-sweep.h"

#include "tensor-map-space.h"

#include <string.h>

/* Retirements between two sweeps. */
#define SWEEP_EVERY 64u

/* Looks at the node under the cursor. Gives the work that was, in nodes. */
static uint32_t
sweep_node (struct pto_map *map)
{
  union slot *slot = &map->slots[map->cursor];
  uint32_t work = 1;

  if (slot->node.kind == NODE_ENTRY)
    {
      struct entry *entry = &slot->entry;
      struct pto_space *space = entry->space;

      if (entry->block != 0)
        {
          work += entry->n_readers / 4;
          pto_readers_prune (map, entry);
        }
      if (entry_is_stale (map, entry))
        {
          pto_entry_remove (map, entry);
          space_trim (map, space);
        }
    }
  return work;
}

/* Everything, unless nothing has retired since that was done last. */
void
pto_map_sweep_all (struct pto_map *map)
{
  if (map->swept && memcmp (map->swept_tails, map->tails, sizeof map->swept_tails) == 0)
    return;
  memcpy (map->swept_tails, map->tails, sizeof map->swept_tails);
  map->swept = true;
  for (map->cursor = 1; map->cursor < map->top; map->cursor++)
    sweep_node (map);
}

void
pto_map_retired (struct pto_map *map, uint32_t n)
{
  map->retired += n;
  if (map->retired < SWEEP_EVERY)
    return;
  /* Twice as fast as nodes are taken: while the cursor goes round once, the pool grows by half at
   * most. Long lists of readers are work done in advance. */
  map->work += 2 * (int64_t) map->taken + map->retired;
  if (map->work > (int64_t) map->top - 1)
    map->work = (int64_t) map->top - 1;
  map->retired = 0;
  map->taken = 0;
  while (map->work > 0)
    {
      if (map->cursor >= map->top)
        map->cursor = 1;
      map->work -= sweep_node (map);
      map->cursor++;
    }
}

bool
pto_map_reserve (struct pto_map *map, uint32_t n)
{
  if (pto_map_has_room (map, n))
    return true;
  if (n > map->pool.capacity)
    return false;
  pto_map_sweep_all (map);
  return pto_map_has_room (map, n);
}
