/* map-space.c: what does a space hold, and when is it given back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-private.h"

#include <string.h>

/* So many entries are walked as a list; one more builds the index. */
#define LIST_MAX 8u
/* So many entries with strides that the index does not know, and it learns anew. At first. */
#define MISFITS_MAX 16u
/* Retirements between two sweeps. */
#define SWEEP_EVERY 64u

/* --- readers --- */

/* Each block is given back before its readers are put where there is room,
 * so this takes no node that it has not given. */
void
pto_readers_prune (struct pto_map *map, struct entry *entry)
{
  uint32_t number = readers_first_block (map, entry);
  uint32_t newest = entry->block;
  uint32_t kept = 0;

  for (uint32_t i = 0; i < entry->node.count; i++)
    if (is_live (map, entry->readers[i]))
      entry->readers[kept++] = entry->readers[i];
  entry->node.count = (uint8_t) kept;
  entry->n_readers = kept;
  entry->block = 0;
  while (number != 0)
    {
      struct block block = map->slots[number].block;

      node_give (map, number);
      for (uint32_t i = 0; i < block.node.count; i++)
        if (is_live (map, block.readers[i]))
          readers_append (map, entry, block.readers[i]);
      number = number != newest ? block.node.next : 0;
    }
  /* Looked at again when there are twice as many: each reader is looked at twice on average. */
  entry->prune_at = entry->n_readers > INLINE_READERS ? 2 * entry->n_readers : INLINE_READERS;
}

bool
pto_readers_any_live (const struct pto_map *map, const struct entry *entry)
{
  for (uint32_t i = 0; i < entry->node.count; i++)
    if (is_live (map, entry->readers[i]))
      return true;
  for (uint32_t number = readers_first_block (map, entry); number != 0;
       number = readers_next_block (map, entry, number))
    {
      const struct block *block = &map->slots[number].block;

      for (uint32_t i = 0; i < block->node.count; i++)
        if (is_live (map, block->readers[i]))
          return true;
    }
  return false;
}

/* --- entries --- */

uint32_t
pto_space_gather (struct pto_map *map, struct pto_space *space)
{
  struct index *index = space_index (space);
  uint32_t n_lists = index != NULL ? index->n_classes : 1;
  uint32_t all = 0;

  for (uint32_t c = 0; c < n_lists; c++)
    for (uint32_t i = index != NULL ? index->classes[c].head : space->head; i != 0;
         i = entry_at (map, i)->node.next)
      {
        entry_at (map, i)->cell_next = all;
        all = i;
      }
  if (index != NULL)
    pto_index_free (map, index);
  space->index_or_heir = NULL;
  space->head = 0;
  return all;
}

/* Indexes a space with one more entry anew. Without memory for an index it becomes a list: slower,
 * and right. */
static void
space_reindex (struct pto_map *map, struct pto_space *space, struct entry *more)
{
  struct index *index = space_index (space);
  uint32_t max_misfits = index != NULL ? index->max_misfits : MISFITS_MAX;
  uint32_t all;

  /* Where the strides keep contradicting each other, learning again helps less and less. */
  if (index != NULL && index->misfits > max_misfits)
    max_misfits *= 2;
  all = pto_space_gather (map, space);
  more->cell_next = all;
  all = number_of (map, more);
  index = pto_index_new (map, all, space->count + 1, space->anchor, max_misfits);
  space->index_or_heir = index;
  if (index != NULL)
    return;
  for (uint32_t next; all != 0; all = next)
    {
      next = entry_at (map, all)->cell_next;
      list_add (map, &space->head, entry_at (map, all));
    }
}

void
pto_space_link (struct pto_map *map, struct pto_space *space, struct entry *entry,
                const struct box *box)
{
  struct index *index = space_index (space);
  struct box own;

  entry->space = space;
  if (index == NULL)
    {
      if (space->count < LIST_MAX)
        list_add (map, &space->head, entry);
      else
        space_reindex (map, space, entry);
    }
  else if (!index_reaches (index, &entry->region))
    space_reindex (map, space, entry);
  else
    {
      if (box == NULL)
        {
          pto_index_box (index, &entry->region, &own);
          box = &own;
        }
      index->misfits += !box->fits;
      if (space->count > index->mask || index->misfits > index->max_misfits)
        space_reindex (map, space, entry);
      else
        pto_index_add (map, index, entry, box);
    }
  space->count++;
}

struct entry *
pto_entry_new (struct pto_map *map, struct pto_space *space, const struct pto_region *region,
               bool alone, const struct box *box)
{
  uint32_t number = node_take (map, NODE_ENTRY);
  struct entry *entry;

  if (number == 0)
    {
      space_trim (map, space);
      return NULL;
    }
  entry = entry_at (map, number);
  entry->node.count = 0;
  entry->node.alone = alone;
  entry->writer = PTO_TASK_NONE;
  entry->block = 0;
  entry->region.lo = region->lo;
  entry->region.hi = region->hi;
  entry->region.run = region->run;
  entry->region.n_dims = region->n_dims;
  for (uint32_t i = 0; i < region->n_dims; i++)
    entry->region.dims[i] = region->dims[i];
  pto_space_link (map, space, entry, box);
  return entry;
}

void
pto_entry_remove (struct pto_map *map, struct entry *entry)
{
  struct pto_space *space = entry->space;

  if (space_index (space) != NULL)
    pto_index_remove (map, space_index (space), entry);
  else
    list_remove (map, &space->head, entry);
  space->count--;
  map->epoch++;
  readers_clear (map, entry);
  node_give (map, number_of (map, entry));
}

/* --- giving back --- */

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

static void
space_clear (struct pto_map *map, struct pto_space *space)
{
  uint32_t number = pto_space_gather (map, space);

  map->epoch++;
  while (number != 0)
    {
      struct entry *entry = entry_at (map, number);
      uint32_t next = entry->cell_next;

      readers_clear (map, entry);
      node_give (map, number);
      number = next;
    }
  space->count = 0;
}

void
pto_map_drop (struct pto_map *map, struct pto_space *space)
{
  space = space_resolve (map, space);
  if (space_is_implied (map, space))
    space_forget_implied (map, space);
  else if (space_count (map, space) == 1 && space_index (space) == NULL)
    pto_entry_remove (map, entry_at (map, space->head));
  else if (space_count (map, space) > 0)
    space_clear (map, space);
}
