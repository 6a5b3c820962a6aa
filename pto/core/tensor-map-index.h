/* tensor-map-index.h: which entries of a large space overlap a region?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tensor-map-node.h"

/* Where a region lies, in the digits of an index. A bounding box: regions that do not follow the
 * learned strides are larger in it, never smaller. */
struct box
{
  uint64_t start[MAX_DIGITS];
  uint64_t size[MAX_DIGITS];
  bool fits; /* all strides of the region are radices */
};

/* Entries with boxes of about one size. */
struct class
{
  uint64_t key; /* the shifts, 6 bits each */
  uint32_t head;
  uint32_t count;
  uint8_t shift[MAX_DIGITS]; /* a cell is 2^shift wide; no entry is wider */
  uint8_t straddle;          /* bit per digit: some entry reaches into the next cell */
};

struct index
{
  struct index *next; /* all indexes of the map, to free them on reset */
  struct index *prev;
  uint32_t n_digits;
  uint64_t radix[MAX_DIGITS]; /* descending, each divides the one before; the last is 1 */
  uint64_t ratio[MAX_DIGITS]; /* radix[i - 1] / radix[i], what a digit counts to; not of [0] */
  uint64_t origin;
  struct class *classes;
  uint32_t n_classes;
  uint32_t max_classes;
  uint32_t last_class; /* used last: likely the next one's, too */
  uint32_t mask;       /* of the buckets */
  uint32_t *buckets;
  uint32_t misfits; /* entries with a stride that is no radix, since the radices were chosen */
  uint32_t max_misfits;
};

/* all: its entries, a chain through cell_next, broken up if there is an index. NULL: no memory. */
struct index *pto_index_new (struct pto_map *map, uint32_t all, uint32_t n_entries, uint64_t anchor,
                             uint32_t max_misfits);
void pto_index_free (struct pto_map *map, struct index *index);
/* Where a region lies that the index reaches. */
void pto_index_box (const struct index *index, const struct pto_region *region, struct box *box);
/* Puts an entry into its class and cell. */
void pto_index_add (struct pto_map *map, struct index *index, struct entry *entry,
                    const struct box *box);
void pto_index_remove (struct pto_map *map, struct index *index, struct entry *entry);
/* The entry of exactly that region; NULL: there is none. */
struct entry *pto_index_find (const struct pto_map *map, struct index *index,
                              const struct pto_region *region, const struct box *box);

/* Digits count from the origin up. */
static inline bool
index_reaches (const struct index *index, const struct pto_region *region)
{
  return (int64_t) (region->lo - index->origin) >= 0;
}

/* --- the walk over the entries of a space that overlap a region --- */

/* The entry that it gave last may be removed. */
struct walk
{
  struct pto_map *map;
  const struct pto_region *region;
  const struct index *index; /* NULL: a list */
  const struct box *box;     /* NULL: not known, all classes are lists */
  uint32_t next;
  uint32_t class_number; /* the one after the current one */
  uint32_t hash;
  bool in_cells;
  uint64_t first[MAX_DIGITS];
  uint64_t last[MAX_DIGITS];
  uint64_t cell[MAX_DIGITS];
};

/* walk_next() where there is an index. */
struct entry *pto_walk_next_indexed (struct walk *walk, bool *unsure);

static inline void
walk_begin (struct walk *walk, struct pto_map *map, struct pto_space *space,
            const struct pto_region *region, const struct box *box)
{
  walk->map = map;
  walk->region = region;
  walk->index = space_index (space);
  walk->box = box;
  walk->next = walk->index == NULL ? space->head : 0;
  walk->class_number = 0;
  walk->in_cells = false;
}

static inline bool
walk_meets (const struct walk *walk, const struct entry *entry, bool *unsure)
{
  const struct pto_region *region = walk->region;

  return entry->region.hi > region->lo && region->hi > entry->region.lo
         && ((entry->region.n_dims | region->n_dims) == 0
             || pto_region_overlaps (&entry->region, region, unsure));
}

/* NULL: that was all. */
static inline struct entry *
walk_next (struct walk *walk, bool *unsure)
{
  if (walk->index != NULL)
    return pto_walk_next_indexed (walk, unsure);
  while (walk->next != 0)
    {
      struct entry *entry = entry_at (walk->map, walk->next);

      walk->next = entry->node.next;
      if (walk_meets (walk, entry, unsure))
        return entry;
    }
  return NULL;
}
