/* tensor-map-node.h: what does the TensorMap keep of an access, and in what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * tensor-map.c answers with entries, tensor-map-space.c keeps them, tensor-map-sweep.c gives them
 * back, tensor-map-index.c finds them by where they lie, tensor-map-external.c finds the space of
 * memory that has no record. Everything is the submitter's.
 */
#pragma once

#include "region.h"
#include "space.h"
#include "task.h"

#include <stddef.h>

#define MAX_DIGITS (PTO2_TENSOR_MAX_DIMS + 1)
#define INLINE_READERS 3u
#define BLOCK_READERS 23u

enum node_kind
{
  NODE_FREE,
  NODE_ENTRY,
  NODE_BLOCK,
  NODE_GROUP
};

/* What all nodes begin with. */
struct node
{
  uint32_t next; /* entry: of its list; block: newer readers; free: a free one; 0: none */
  uint8_t kind;
  uint8_t count; /* entry: inline readers; block: readers */
  bool alone;    /* entry: no other entry of the space overlaps it */
  bool grouped;  /* entry: it has a group */
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
  uint32_t group; /* if it has one */
  pto_task_id readers[INLINE_READERS];
};

struct block
{
  struct node node;
  pto_task_id readers[BLOCK_READERS];
};

/* Tasks, as an entry has its readers. */
struct tasks
{
  uint32_t count; /* inline */
  uint32_t block; /* the newest */
  pto_task_id items[INLINE_READERS];
};

/* Of an entry whose region is, or was last, updated in any order. open: the entry's readers are
 * those who update it, and the entry's writer, and these, are what all of them come after: those
 * who updated it before, and those who read it then. Otherwise somebody has read it since: the
 * entry's readers are readers, who come after updaters, and there are no others. */
struct group
{
  struct node node;
  uint32_t token; /* of those who update it now */
  bool open;
  struct tasks updaters;
  struct tasks readers;
};

union slot
{
  struct node node;
  struct entry entry;
  struct block block;
  struct group group;
};

_Static_assert(sizeof (union slot) == 192, "a node is three cache lines");
_Static_assert(offsetof (struct entry, region.dims) == 64, "strides begin the second line");

struct index;
struct external;

/* Memory of the caller: see tensor-map-external.c. */
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
  } kinds[PTO_PARAM_COMMUTATIVE + 1]; /* of access: PTOParamType */
  uint32_t generation;
  union slot *slots; /* [0] is never used */
  uint32_t top;      /* slots from here on were never used */
  uint32_t free;
  uint64_t epoch;   /* changes with every entry that is removed */
  uint32_t cursor;  /* of the sweep */
  int64_t work;     /* that the next sweep is to do, less what the last one did too much */
  uint32_t retired; /* since the last sweep */
  uint32_t taken;   /* nodes taken since the last sweep, less those given back */
  uint32_t tokens;  /* given to groups */
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

/* --- groups; each task's access as an entry's look-up and insert tell of it --- */

/* Appends what an access gets from an entry with a group; member: it updates this very region, in
 * any order. */
bool pto_group_report (const struct pto_map *map, const struct entry *entry, bool member,
                       uint32_t of_writer, uint32_t of_readers, struct pto_deps *deps);
/* The next to be added to the entry's readers updates it. Takes a node. Gives the token. */
uint32_t pto_group_update (struct pto_map *map, struct entry *entry);
/* The next one reads it. */
void pto_group_read (struct pto_map *map, struct entry *entry);
void pto_group_end (struct pto_map *map, struct entry *entry);
bool pto_group_any_live (const struct pto_map *map, const struct entry *entry);

/* --- readers ---
 * The oldest in the entry (so there are none if it holds none), then in blocks. Blocks are a ring,
 * from the oldest to the newest, which the entry names, and round again: so readers are found in
 * the order in which they came. */

/* A piece of them, and which block comes next; 0: none does. */
struct readers
{
  const pto_task_id *items;
  uint32_t n;
  uint32_t next;
  uint32_t newest;
};

static inline struct readers
readers_begin (const struct pto_map *map, const pto_task_id *items, uint32_t n, uint32_t newest)
{
  return (struct readers){ items, n, newest != 0 ? map->slots[newest].node.next : 0, newest };
}

/* Goes on to the next piece. false: that was all. */
static inline bool
readers_next (const struct pto_map *map, struct readers *readers)
{
  const struct block *block = &map->slots[readers->next].block;

  if (readers->next == 0)
    return false;
  readers->items = block->readers;
  readers->n = block->node.count;
  readers->next = readers->next != readers->newest ? block->node.next : 0;
  return true;
}

static inline struct readers
entry_readers (const struct pto_map *map, const struct entry *entry)
{
  return readers_begin (map, entry->readers, entry->node.count, entry->block);
}

/* Appends those that are live. false: no memory for deps. */
static inline bool
readers_report (const struct pto_map *map, struct readers readers, uint32_t kinds,
                struct pto_deps *deps)
{
  do
    for (uint32_t i = 0; i < readers.n; i++)
      if (is_live (map, readers.items[i]) && !pto_deps_add (deps, readers.items[i], kinds))
        return false;
  while (readers_next (map, &readers));
  return true;
}

static inline void
blocks_give (struct pto_map *map, uint32_t newest)
{
  uint32_t number = newest != 0 ? map->slots[newest].node.next : 0;

  while (number != 0)
    {
      uint32_t next = number != newest ? map->slots[number].node.next : 0;

      node_give (map, number);
      number = next;
    }
}

static inline void
readers_clear (struct pto_map *map, struct entry *entry)
{
  blocks_give (map, entry->block);
  entry->block = 0;
  entry->node.count = 0;
  if (__builtin_expect (entry->node.grouped, 0))
    pto_group_end (map, entry);
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
bool pto_readers_any_live (const struct pto_map *map, struct readers readers);

static inline bool
entry_is_stale (const struct pto_map *map, const struct entry *entry)
{
  return !is_live (map, entry->writer)
         && (entry->node.count == 0 || !pto_readers_any_live (map, entry_readers (map, entry)))
         && (!entry->node.grouped || !pto_group_any_live (map, entry));
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

/* NULL: the entries are a list. */
static inline struct index *
space_index (const struct pto_space *space)
{
  return space->index_or_heir;
}
