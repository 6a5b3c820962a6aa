/* tensor-map-space.c: what does a space hold, and when is it given back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor-map-space.h"

/* So many entries are walked as a list; one more builds the index. */
#define LIST_MAX 8u
/* So many entries with strides that the index does not know, and it learns anew. At first. */
#define MISFITS_MAX 16u

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
  entry->node.grouped = false;
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
