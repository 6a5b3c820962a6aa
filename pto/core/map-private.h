/* map-private.h: what the files of the TensorMap share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * tensor_map.c answers with entries, map-space.c keeps them, map-index.c finds them by where they
 * lie, map-external.c finds the space of memory that has no record. Everything is the submitter's.
 */
#pragma once

#include "tensor_map.h"

#include <stddef.h>

#define MAX_DIGITS (PTO2_TENSOR_MAX_DIMS + 1)
#define INLINE_READERS 3u
#define BLOCK_READERS 23u

enum node_kind
{
  NODE_FREE,
  NODE_ENTRY,
  NODE_BLOCK
};

/* What all nodes begin with. */
struct node
{
  uint32_t next; /* entry: of its list; block: newer readers; free: a free one; 0: none */
  uint8_t kind;
  uint8_t count; /* entry: inline readers; block: readers */
  bool alone;    /* entry: no other entry of the space overlaps it */
};

/* Three cache lines. Who accesses whole buffers touches the first, and the last if there are
 * readers; the second is for strides. */
struct entry
{
  struct node node;
  pto_task_id writer;
  struct pto_space *space;
  uint32_t prev;
  uint32_t block; /* the newest block of readers */
  struct pto_region region;
  /* --- meaningless without readers --- */
  uint32_t n_readers; /* inline and in blocks */
  uint32_t prune_at;  /* so many readers are worth a look for retired ones */
  /* --- of an index --- */
  uint32_t cell_next;
  uint32_t cell_hash;
  uint32_t class_number;
  pto_task_id readers[INLINE_READERS];
};

struct block
{
  struct node node;
  pto_task_id readers[BLOCK_READERS];
};

union slot
{
  struct node node;
  struct entry entry;
  struct block block;
};

_Static_assert(sizeof (union slot) == 192, "a node is three cache lines");
_Static_assert(offsetof (struct entry, region.dims) == 64, "strides begin the second line");

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

struct external;

/* Memory of the caller: see map-external.c. */
struct externals
{
  struct external *items; /* [0] is never used */
  uint32_t max;
  uint32_t top; /* items from here on were never used */
  uint32_t free;
  uint32_t count;
  uint32_t *grid; /* buckets: number of an external * 2 + which of its cells; 0: the end */
  uint32_t grid_mask;
  uint64_t levels; /* bit l: some external is of level l */
  uint32_t of_level[64];
  uint32_t stamp;      /* of the current submit */
  bool inserted;       /* since the last question: the next one is of another submit */
  uint32_t level;      /* where an extent was found last */
  uint32_t collect_at; /* so many externals are worth a search for dead spaces */
};

struct pto_map
{
  struct pto_map_pool pool;
  const uint32_t *tails;
  const struct pto_task_set *failed;
  struct
  {
    uint8_t of_writer; /* what the access waits for, and why: PTO_HAZARD_* */
    uint8_t of_readers;
    bool recorded;
    bool writes;
  } kinds[PTO_PARAM_SCALAR + 1]; /* of access: PTOParamType */
  uint32_t generation;
  union slot *slots; /* [0] is never used */
  uint32_t top;      /* slots from here on were never used */
  uint32_t free;
  uint64_t epoch;   /* changes with every entry that is removed */
  uint32_t cursor;  /* of the sweep */
  int64_t work;     /* that the next sweep is to do, less what the last one did too much */
  uint32_t retired; /* since the last sweep */
  uint32_t taken;   /* nodes taken since the last sweep, less those given back */
  bool swept;       /* everything, at these tails: */
  uint32_t swept_tails[PTO_RINGS];
  struct index *indexes;
  struct externals externals;
};

static inline bool
is_live (const struct pto_map *map, pto_task_id task)
{
  if (task == PTO_TASK_NONE)
    return false;
  return !pto_task_is_retired (map->tails, task)
         || (map->failed != NULL && map->failed->count > 0 && pto_task_set_has (map->failed, task));
}

static inline struct entry *
entry_at (const struct pto_map *map, uint32_t number)
{
  return &map->slots[number].entry;
}

static inline uint32_t
number_of (const struct pto_map *map, const struct entry *entry)
{
  return (uint32_t) ((const union slot *) entry - map->slots);
}

static inline uint32_t
log2_ceiling (uint64_t n)
{
  return n <= 1 ? 0 : 64 - (uint32_t) __builtin_clzll (n - 1);
}

/* Zeroed pages, committed when touched; NULL: no address space. */
void *pto_map_pages (size_t size);

/* --- nodes --- */

/* 0: there is none. */
static inline uint32_t
node_take (struct pto_map *map, enum node_kind kind)
{
  uint32_t number = map->free;

  if (number != 0)
    map->free = map->slots[number].node.next;
  else if (map->top <= map->pool.capacity)
    {
      number = map->top++;
      /* Never used in this run: it would have to come from far. */
      __builtin_prefetch (&map->slots[number + 4], 1);
    }
  else
    return 0;
  map->pool.used++;
  map->taken++;
  map->slots[number].node.kind = (uint8_t) kind;
  return number;
}

static inline void
node_give (struct pto_map *map, uint32_t number)
{
  map->slots[number].node.kind = NODE_FREE;
  map->slots[number].node.next = map->free;
  map->free = number;
  map->pool.used--;
  map->taken -= map->taken > 0;
}

/* --- readers ---
 * The oldest in the entry (so there are none if it holds none), then in blocks. Blocks are a ring,
 * from the oldest to the newest, which the entry names, and round again: so readers are found in
 * the order in which they came. */

static inline uint32_t
readers_first_block (const struct pto_map *map, const struct entry *entry)
{
  return entry->block != 0 ? map->slots[entry->block].node.next : 0;
}

static inline uint32_t
readers_next_block (const struct pto_map *map, const struct entry *entry, uint32_t number)
{
  return number != entry->block ? map->slots[number].node.next : 0;
}

static inline void
readers_clear (struct pto_map *map, struct entry *entry)
{
  uint32_t number = readers_first_block (map, entry);

  while (number != 0)
    {
      uint32_t next = readers_next_block (map, entry, number);

      node_give (map, number);
      number = next;
    }
  entry->block = 0;
  entry->node.count = 0;
}

/* Without a node the reader goes unrecorded. */
static inline void
readers_append (struct pto_map *map, struct entry *entry, pto_task_id task)
{
  struct block *block;

  if (entry->node.count == 0)
    {
      entry->n_readers = 0;
      entry->prune_at = INLINE_READERS;
    }
  if (entry->node.count < INLINE_READERS)
    {
      entry->readers[entry->node.count++] = task;
      entry->n_readers++;
      return;
    }
  block = &map->slots[entry->block].block;
  if (entry->block == 0 || block->node.count == BLOCK_READERS)
    {
      uint32_t number = node_take (map, NODE_BLOCK);

      if (number == 0)
        return;
      if (entry->block == 0)
        map->slots[number].node.next = number;
      else
        {
          map->slots[number].node.next = block->node.next;
          block->node.next = number;
        }
      block = &map->slots[number].block;
      block->node.count = 0;
      entry->block = number;
    }
  block->readers[block->node.count++] = task;
  entry->n_readers++;
}

/* Drops retired readers. */
void pto_readers_prune (struct pto_map *map, struct entry *entry);
bool pto_readers_any_live (const struct pto_map *map, const struct entry *entry);

static inline bool
entry_is_stale (const struct pto_map *map, const struct entry *entry)
{
  return !is_live (map, entry->writer)
         && (entry->node.count == 0 || !pto_readers_any_live (map, entry));
}

/* --- lists of entries --- */

static inline void
list_add (struct pto_map *map, uint32_t *head, struct entry *entry)
{
  uint32_t number = number_of (map, entry);

  entry->prev = 0;
  entry->node.next = *head;
  if (*head != 0)
    entry_at (map, *head)->prev = number;
  *head = number;
}

static inline void
list_remove (struct pto_map *map, uint32_t *head, struct entry *entry)
{
  if (entry->prev != 0)
    entry_at (map, entry->prev)->node.next = entry->node.next;
  else
    *head = entry->node.next;
  if (entry->node.next != 0)
    entry_at (map, entry->node.next)->prev = entry->prev;
}

/* --- index --- */

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

/* --- spaces ---
 * Entries are a list, or many of them in an index. A space without entries has no index, but while
 * it is walked. */

/* 0 for an empty space, whatever it held under another generation. */
static inline uint32_t
space_count (const struct pto_map *map, const struct pto_space *space)
{
  return space->generation == map->generation ? space->count : 0;
}

static inline struct index *
space_index (const struct pto_space *space)
{
  return space->index_or_heir;
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

/* Removes all stale entries there are. */
void pto_map_sweep_all (struct pto_map *map);

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

/* --- external memory --- */

/* Room for the spaces of so many entries. false: no memory. */
bool pto_externals_init (struct externals *externals, uint32_t n_entries);
void pto_externals_destroy (struct externals *externals);
/* Between runs: there are none. */
void pto_externals_reset (struct externals *externals);
