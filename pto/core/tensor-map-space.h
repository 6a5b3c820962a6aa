/* tensor-map-space.h: which entries does a space have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tensor-map-index.h"

/* --- spaces ---
 * Entries are a list, or many of them in an index. A space without entries has no index, but while
 * it is walked. */

/* 0 for an empty space, whatever it held under another generation. */
static inline uint32_t
space_count (const struct pto_map *map, const struct pto_space *space)
{
  return space->generation == map->generation ? space->count : 0;
}

static inline struct pto_space *
space_resolve (const struct pto_map *map, struct pto_space *space)
{
  while (space->merged && space->generation == map->generation)
    space = space->index_or_heir;
  return space;
}

static inline void
space_trim (struct pto_map *map, struct pto_space *space)
{
  if (space->count == 0 && space_index (space) != NULL)
    {
      pto_index_free (map, space_index (space));
      space->index_or_heir = NULL;
    }
}

/* Adds an entry. box: where it lies in the space's index, if that is known. */
void pto_space_link (struct pto_map *map, struct pto_space *space, struct entry *entry,
                     const struct box *box);
/* Takes every entry of a space out of its list or index; they are chained through cell_next. */
uint32_t pto_space_gather (struct pto_map *map, struct pto_space *space);

/* A new entry that nobody has written or read. box as above. NULL: no node. */
struct entry *pto_entry_new (struct pto_map *map, struct pto_space *space,
                             const struct pto_region *region, bool alone, const struct box *box);
/* Its space is to be trimmed, after the walk. */
void pto_entry_remove (struct pto_map *map, struct entry *entry);

/* Most outputs are written once, by the task that they are made for, and many are never looked up:
 * for those no entry is made. Its node is counted all the same, so there is one when somebody
 * comes. */

static inline bool
space_is_implied (const struct pto_map *map, const struct pto_space *space)
{
  return space->implied && space->generation == map->generation;
}

static inline void
space_forget_implied (struct pto_map *map, struct pto_space *space)
{
  space->implied = false;
  space->index_or_heir = NULL;
  map->pool.used--;
}
