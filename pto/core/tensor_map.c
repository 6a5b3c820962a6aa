/* tensor_map.c: which earlier tasks does an access to a tensor depend on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A space holds entries. An entry is an exact region, the task that wrote it last (or none), and
 * the tasks that have read exactly this region since. A write removes the entries that it covers:
 * whatever meets them later meets the write too, and the write waits for all of them. An entry that
 * is covered in part stays, and still gives edges for its overwritten part: these are implied by
 * the order of the write, so they cost an edge and never order what was not ordered. (Without WAR
 * an OUTPUT waits for nothing, and there the edge is all the order there is.)
 *
 * Few entries are a list. Many are found through an index: a grid over coordinates. The strides
 * that the entries of a space use are learned; they divide an offset into digits (rows and columns,
 * of any number of dimensions), in which a view is a box. Entries whose boxes have the same
 * extents, rounded up to powers of two, form a class, and each class has its own grid with cells of
 * just that extent, in one hash table of the space. So an entry is in one cell, and a look-up
 * visits a few cells of every class, or all of a class where that is fewer.
 *
 * Results are sorted by task, so they tell nothing of how entries are stored: they are the same
 * wherever the buffers lie and whatever else the map holds.
 */
#include "tensor_map.h"

#include "region.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* So many entries are walked as a list; one more builds the index. */
#define LIST_MAX 8u
#define MAX_DIGITS (PTO2_TENSOR_MAX_DIMS + 1)
#define INLINE_READERS 3u
#define BLOCK_READERS 23u
/* The class that takes any box. */
#define CATCH_ALL 0u
/* So that twice as many, and some, still count in 32 bits. */
#define MAX_POOL (UINT32_C (1) << 30)
#define SUBMIT_EXTERNALS 4096u
/* Of external memory: cells of the grid are not smaller than 2 to the power of this. */
#define LEVEL_MIN 6u
#define NO_LEVEL 64u   /* not in the grid */
#define GRID_MASK 255u /* at first */
/* Retirements between two sweeps. */
#define SWEEP_EVERY 64u

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
  uint32_t unused;
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
_Static_assert(sizeof (struct pto_space) <= 64, "a space is embedded in every buffer record");

/* Where a region lies, in the digits of an index. A bounding box: regions that do not follow the
 * learned strides are larger in it, never smaller. */
struct box
{
  uint64_t start[MAX_DIGITS];
  uint64_t size[MAX_DIGITS];
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
  uint32_t last_class;
  uint32_t mask; /* of the buckets */
  uint32_t *buckets;
  uint32_t misfits; /* entries with a stride that is no radix, since the radices were chosen */
  uint32_t max_misfits;
};

/* External memory: a space with an extent. */
struct external
{
  struct pto_space space;
  uint64_t lo;
  uint64_t hi;
  uint32_t stamp;   /* the submit that asked for it last */
  uint32_t next[2]; /* in the two cells of the grid it may lie in; [0]: of the free list */
  uint8_t level;    /* the cells it lies in are 2^level bytes, and it is no longer */
  bool used;
};

struct pto_map
{
  struct pto_map_pool pool;
  const uint32_t *tails;
  const struct pto_task_set *failed;
  uint32_t hazards;
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
  uint32_t cursor;  /* of the sweep */
  int64_t work;     /* that the next sweep is to do, less what the last one did too much */
  uint32_t retired; /* since the last sweep */
  uint32_t taken;   /* nodes taken since the last sweep, less those given back */
  uint64_t epoch;   /* changes with every entry that is removed */
  bool swept;       /* everything, at these tails: */
  uint32_t swept_tails[PTO_RINGS];
  struct index *indexes;

  struct external *externals; /* [0] is never used */
  uint32_t max_externals;
  uint32_t externals_top;
  uint32_t externals_free;
  uint32_t n_externals;
  uint32_t *grid; /* buckets: number of an external * 2 + which of its cells; 0: the end */
  uint32_t grid_mask;
  uint64_t levels; /* bit l: some external is of level l */
  uint32_t of_level[64];
  uint32_t stamp;
  bool inserted;  /* since the last look at an external space: the next look is of another submit */
  uint32_t level; /* where an extent was found last */
  uint32_t collect_at; /* so many externals are worth a search for dead spaces */
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

/* Nodes */

static uint32_t
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

static void
node_give (struct pto_map *map, uint32_t number)
{
  map->slots[number].node.kind = NODE_FREE;
  map->slots[number].node.next = map->free;
  map->free = number;
  map->pool.used--;
  map->taken -= map->taken > 0;
}

/* Readers: the oldest in the entry (so there are none if it holds none), then in blocks. Blocks are
 * a ring, from the oldest to the newest, which the entry names, and round again: so readers are
 * found in the order in which they came. */

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

static void
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

static void
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

/* Drops retired readers. Each block is given back before its readers are put where there is room,
 * so this takes no node that it has not given. */
static void
readers_prune (struct pto_map *map, struct entry *entry)
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

static inline pto_task_id
readers_last (const struct pto_map *map, const struct entry *entry)
{
  const struct block *block = &map->slots[entry->block].block;

  if (entry->block != 0)
    return block->readers[block->node.count - 1];
  return entry->node.count > 0 ? entry->readers[entry->node.count - 1] : PTO_TASK_NONE;
}

static void
readers_add (struct pto_map *map, struct entry *entry, pto_task_id task)
{
  if (entry->node.count > 0 && readers_last (map, entry) == task)
    return;
  if (entry->node.count == INLINE_READERS && entry->n_readers >= entry->prune_at
      && (entry->block == 0 || map->slots[entry->block].node.count == BLOCK_READERS))
    readers_prune (map, entry);
  readers_append (map, entry, task);
}

static bool
readers_any_live (const struct pto_map *map, const struct entry *entry)
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

static inline bool
entry_is_stale (const struct pto_map *map, const struct entry *entry)
{
  return !is_live (map, entry->writer)
         && (entry->node.count == 0 || !readers_any_live (map, entry));
}

/* The index */

static inline uint32_t
log2_ceiling (uint64_t n)
{
  return n <= 1 ? 0 : 64 - (uint32_t) __builtin_clzll (n - 1);
}

/* Most offsets fit 32 bits, where division is several times cheaper. */
static inline void
divide (uint64_t n, uint64_t by, uint64_t *quotient, uint64_t *rest)
{
  if (((n | by) >> 32) == 0)
    {
      *quotient = (uint32_t) n / (uint32_t) by;
      *rest = (uint32_t) n % (uint32_t) by;
    }
  else
    {
      *quotient = n / by;
      *rest = n % by;
    }
}

static void
index_box (const struct index *index, const struct pto_region *region, struct box *box)
{
  uint64_t reach[MAX_DIGITS] = { 0 };
  uint64_t rest = region->lo - index->origin;
  uint32_t last = index->n_digits - 1;

  for (uint32_t i = 0; i < last; i++)
    divide (rest, index->radix[i], &box->start[i], &rest);
  box->start[last] = rest;
  reach[last] = region->run - 1;
  for (uint32_t k = 0, i = 0; k < region->n_dims; k++)
    {
      uint64_t stride = region->dims[k].stride;

      while (index->radix[i] > stride)
        i++;
      if (index->radix[i] == stride)
        reach[i] += region->dims[k].count - 1;
      else
        {
          uint32_t fits = i;

          while (stride % index->radix[fits] != 0)
            fits++;
          reach[fits] += stride / index->radix[fits] * (region->dims[k].count - 1);
        }
    }
  /* A digit that counts over carries into the one above, and then may have any value itself. */
  for (uint32_t i = last; i > 0; i--)
    {
      uint64_t end = box->start[i] + reach[i];

      if (end >= index->ratio[i])
        {
          reach[i - 1] += end / index->ratio[i];
          box->start[i] = 0;
          box->size[i] = index->ratio[i];
        }
      else
        box->size[i] = reach[i] + 1;
    }
  box->size[0] = reach[0] + 1;
}

static uint64_t
box_class_key (const struct index *index, const struct box *box)
{
  uint64_t key = 0;

  for (uint32_t i = 0; i < index->n_digits; i++)
    key |= (uint64_t) log2_ceiling (box->size[i]) << (6 * i);
  return key;
}

/* index->n_classes when there is none. */
static inline uint32_t
index_find_class (const struct index *index, uint64_t key)
{
  if (index->last_class < index->n_classes && index->classes[index->last_class].key == key)
    return index->last_class;
  for (uint32_t i = 0; i < index->n_classes; i++)
    if (index->classes[i].key == key)
      return i;
  return index->n_classes;
}

static inline uint32_t
cell_hash (uint32_t class_number, const uint64_t *cell, uint32_t n)
{
  uint64_t hash = (class_number + 1) * UINT64_C (0x9e3779b97f4a7c15);

  for (uint32_t i = 0; i < n; i++)
    {
      hash = (hash ^ cell[i]) * UINT64_C (0xd6e8feb86659fd93);
      hash ^= hash >> 32;
    }
  return (uint32_t) hash;
}

static inline uint32_t
box_cell_hash (const struct index *index, uint32_t class_number, const struct box *box)
{
  const struct class *class = &index->classes[class_number];
  uint64_t cell[MAX_DIGITS];

  for (uint32_t i = 0; i < index->n_digits; i++)
    cell[i] = box->start[i] >> class->shift[i];
  return cell_hash (class_number, cell, index->n_digits);
}

static void
index_free (struct pto_map *map, struct index *index)
{
  if (index->prev != NULL)
    index->prev->next = index->next;
  else
    map->indexes = index->next;
  if (index->next != NULL)
    index->next->prev = index->prev;
  free (index->classes);
  free (index->buckets);
  free (index);
}

/* The class of boxes of that size; the catch-all when there is no memory for one more. */
static uint32_t
index_need_class (struct index *index, const struct box *box)
{
  uint64_t key = box_class_key (index, box);
  uint32_t number = index_find_class (index, key);
  struct class *class;

  if (number < index->n_classes)
    return number;
  if (number == index->max_classes)
    {
      struct class *classes = realloc (index->classes, 2 * (size_t) number * sizeof *classes);

      if (classes == NULL)
        return CATCH_ALL;
      index->classes = classes;
      index->max_classes = 2 * number;
    }
  index->n_classes++;
  class = &index->classes[number];
  memset (class, 0, sizeof *class);
  class->key = key;
  for (uint32_t i = 0; i < index->n_digits; i++)
    class->shift[i] = (uint8_t) log2_ceiling (box->size[i]);
  return number;
}

/* Puts an entry into its class and cell. */
static void
index_add (struct pto_map *map, struct index *index, struct entry *entry, const struct box *box)
{
  uint32_t number = number_of (map, entry);
  uint32_t class_number = index_need_class (index, box);
  struct class *class = &index->classes[class_number];
  uint32_t *bucket;

  index->last_class = class_number;
  for (uint32_t i = 0; i < index->n_digits; i++)
    {
      uint64_t end = box->start[i] + box->size[i] - 1;

      if (box->start[i] >> class->shift[i] != end >> class->shift[i])
        class->straddle |= (uint8_t) (1u << i);
    }
  entry->class_number = class_number;
  entry->cell_hash = box_cell_hash (index, class_number, box);
  bucket = &index->buckets[entry->cell_hash & index->mask];
  entry->cell_next = *bucket;
  *bucket = number;
  entry->prev = 0;
  entry->node.next = class->head;
  if (class->head != 0)
    entry_at (map, class->head)->prev = number;
  class->head = number;
  class->count++;
}

static bool
index_has_strides (const struct index *index, const struct pto_region *region)
{
  for (uint32_t k = 0, i = 0; k < region->n_dims; k++)
    {
      while (index->radix[i] > region->dims[k].stride)
        i++;
      if (index->radix[i] != region->dims[k].stride)
        return false;
    }
  return true;
}

/* Chooses the radices by what strides the entries have: the most frequent first, then those that
 * fit in between. all is a chain through cell_next. */
static void
index_learn (const struct pto_map *map, struct index *index, uint32_t all)
{
  struct
  {
    uint64_t stride;
    uint32_t votes;
  } strides[16];
  uint32_t n = 0, n_radices = 0;

  for (uint32_t i = all; i != 0; i = entry_at (map, i)->cell_next)
    {
      const struct pto_region *region = &entry_at (map, i)->region;

      for (uint32_t k = 0; k < region->n_dims; k++)
        {
          uint32_t s = 0;

          while (s < n && strides[s].stride != region->dims[k].stride)
            s++;
          if (s == sizeof strides / sizeof strides[0])
            continue;
          if (s == n)
            {
              strides[n].stride = region->dims[k].stride;
              strides[n++].votes = 0;
            }
          strides[s].votes++;
        }
    }
  while (n_radices < PTO2_TENSOR_MAX_DIMS)
    {
      uint32_t best = n, at = 0;

      for (uint32_t s = 0; s < n; s++)
        if (strides[s].votes > 0 && (best == n || strides[s].votes > strides[best].votes))
          best = s;
      if (best == n)
        break;
      strides[best].votes = 0;
      while (at < n_radices && index->radix[at] > strides[best].stride)
        at++;
      if ((at > 0 && index->radix[at - 1] % strides[best].stride != 0)
          || (at < n_radices && strides[best].stride % index->radix[at] != 0))
        continue;
      memmove (&index->radix[at + 1], &index->radix[at], (n_radices - at) * sizeof index->radix[0]);
      index->radix[at] = strides[best].stride;
      n_radices++;
    }
  /* A stride is greater than its run, so 1 is never among them. */
  index->radix[n_radices] = 1;
  index->n_digits = n_radices + 1;
  for (uint32_t i = 1; i < index->n_digits; i++)
    index->ratio[i] = index->radix[i - 1] / index->radix[i];
}

static struct index *
index_new (struct pto_map *map, uint32_t n_entries, uint32_t max_misfits)
{
  struct index *index = calloc (1, sizeof *index);
  uint32_t n_buckets = 32;

  if (index == NULL)
    return NULL;
  while (n_buckets < 2 * n_entries)
    n_buckets *= 2;
  index->max_classes = 4;
  index->classes = calloc (index->max_classes, sizeof *index->classes);
  index->buckets = calloc (n_buckets, sizeof *index->buckets);
  if (index->buckets == NULL || index->classes == NULL)
    {
      free (index->buckets);
      free (index->classes);
      free (index);
      return NULL;
    }
  index->mask = n_buckets - 1;
  index->max_misfits = max_misfits;
  /* The catch-all: all boxes are in its one cell. */
  index->n_classes = 1;
  index->classes[CATCH_ALL].key = UINT64_MAX;
  memset (index->classes[CATCH_ALL].shift, 63, MAX_DIGITS);
  index->next = map->indexes;
  if (map->indexes != NULL)
    map->indexes->prev = index;
  map->indexes = index;
  return index;
}

/* Spaces */

/* Takes every entry of a space out of its list or index; they are chained through cell_next. */
static uint32_t
space_gather (struct pto_map *map, struct pto_space *space)
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
    index_free (map, index);
  space->index_or_heir = NULL;
  space->head = 0;
  return all;
}

static void
list_add (struct pto_map *map, struct pto_space *space, struct entry *entry)
{
  uint32_t number = number_of (map, entry);

  entry->prev = 0;
  entry->node.next = space->head;
  if (space->head != 0)
    entry_at (map, space->head)->prev = number;
  space->head = number;
}

/* Indexes a space with one more entry anew. Without memory for an index it becomes a list: slower,
 * and right. */
static void
space_reindex (struct pto_map *map, struct pto_space *space, struct entry *more)
{
  struct index *index = space_index (space);
  uint32_t max_misfits = index != NULL ? index->max_misfits : 16;
  bool relearn = index != NULL && index->misfits > max_misfits;
  uint32_t all = space_gather (map, space);
  uint64_t below = 0;

  more->cell_next = all;
  all = number_of (map, more);
  /* Where the strides keep contradicting each other, learning again helps less and less. */
  index = index_new (map, space->count + 1, relearn ? 2 * max_misfits : max_misfits);
  space->index_or_heir = index;
  if (index != NULL)
    {
      index_learn (map, index, all);
      for (uint32_t i = all; i != 0; i = entry_at (map, i)->cell_next)
        if ((int64_t) (space->anchor - entry_at (map, i)->region.lo) > (int64_t) below)
          below = space->anchor - entry_at (map, i)->region.lo;
      /* Whole rows below the anchor, so that the digits begin where the tensors do. */
      below += index->radix[0] - 1;
      index->origin = space->anchor - (below - below % index->radix[0]);
    }
  while (all != 0)
    {
      struct entry *entry = entry_at (map, all);
      struct box box;

      all = entry->cell_next;
      if (index == NULL)
        {
          list_add (map, space, entry);
          continue;
        }
      index_box (index, &entry->region, &box);
      index_add (map, index, entry, &box);
    }
}

static inline bool
index_reaches (const struct index *index, const struct pto_region *region)
{
  return (int64_t) (region->lo - index->origin) >= 0;
}

/* box: where the entry lies, when the space had an index that reaches it. */
static void
space_link (struct pto_map *map, struct pto_space *space, struct entry *entry,
            const struct box *box)
{
  struct index *index = space_index (space);

  entry->space = space;
  if (index == NULL)
    {
      if (space->count < LIST_MAX)
        list_add (map, space, entry);
      else
        space_reindex (map, space, entry);
    }
  else
    {
      if (!index_has_strides (index, &entry->region))
        index->misfits++;
      if (space->count > index->mask || !index_reaches (index, &entry->region)
          || index->misfits > index->max_misfits)
        space_reindex (map, space, entry);
      else
        index_add (map, index, entry, box);
    }
  space->count++;
}

static void
space_unlink (struct pto_map *map, struct pto_space *space, struct entry *entry)
{
  struct index *index = space_index (space);
  uint32_t number = number_of (map, entry);
  uint32_t *head = index != NULL ? &index->classes[entry->class_number].head : &space->head;

  map->epoch++;
  if (entry->prev != 0)
    entry_at (map, entry->prev)->node.next = entry->node.next;
  else
    *head = entry->node.next;
  if (entry->node.next != 0)
    entry_at (map, entry->node.next)->prev = entry->prev;
  if (index != NULL)
    {
      uint32_t *link = &index->buckets[entry->cell_hash & index->mask];

      while (*link != number)
        link = &entry_at (map, *link)->cell_next;
      *link = entry->cell_next;
      index->classes[entry->class_number].count--;
    }
  space->count--;
}

/* An index without entries is given up; not while it is walked. */
static inline void
space_trim (struct pto_map *map, struct pto_space *space)
{
  if (space->count == 0 && space_index (space) != NULL)
    {
      index_free (map, space_index (space));
      space->index_or_heir = NULL;
      space->head = 0;
    }
}

static void
entry_remove (struct pto_map *map, struct entry *entry)
{
  space_unlink (map, entry->space, entry);
  readers_clear (map, entry);
  node_give (map, number_of (map, entry));
}

/* The walk over the entries of a space that overlap a region. The entry that it gave last may be
 * removed. */
struct walk
{
  struct pto_map *map;
  const struct pto_region *region;
  const struct index *index; /* NULL: a list, or all classes as lists */
  const struct box *box;
  uint32_t next;
  uint32_t class_number; /* the one after the current one */
  uint32_t hash;
  bool in_cells;
  uint64_t first[MAX_DIGITS];
  uint64_t last[MAX_DIGITS];
  uint64_t cell[MAX_DIGITS];
};

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

static void
walk_enter_cell (struct walk *walk)
{
  walk->hash = cell_hash (walk->class_number - 1, walk->cell, walk->index->n_digits);
  walk->next = walk->index->buckets[walk->hash & walk->index->mask];
}

/* The next cell or class. */
static bool
walk_more (struct walk *walk)
{
  const struct index *index = walk->index;

  if (walk->in_cells)
    {
      for (uint32_t i = index->n_digits; i-- > 0;)
        {
          if (walk->cell[i]++ < walk->last[i])
            {
              walk_enter_cell (walk);
              return true;
            }
          walk->cell[i] = walk->first[i];
        }
      walk->in_cells = false;
    }
  if (index == NULL)
    return false;
  while (walk->class_number < index->n_classes)
    {
      const struct class *class = &index->classes[walk->class_number++];
      uint64_t cells = 1;

      if (class->count == 0)
        continue;
      for (uint32_t i = 0; i < index->n_digits && cells < class->count && walk->box != NULL; i++)
        {
          walk->first[i] = walk->box->start[i] >> class->shift[i];
          walk->last[i] = (walk->box->start[i] + walk->box->size[i] - 1) >> class->shift[i];
          if (walk->first[i] > 0 && (class->straddle >> i & 1) != 0)
            walk->first[i]--;
          walk->cell[i] = walk->first[i];
          cells = walk->last[i] - walk->first[i] >= class->count
                      ? class->count
                      : cells * (walk->last[i] - walk->first[i] + 1);
        }
      if (cells < class->count && walk->box != NULL)
        {
          walk->in_cells = true;
          walk_enter_cell (walk);
        }
      else
        walk->next = class->head;
      return true;
    }
  return false;
}

static inline struct entry *
walk_next (struct walk *walk, bool *unsure)
{
  const struct pto_region *region = walk->region;

  for (;;)
    {
      while (walk->next != 0)
        {
          struct entry *entry = entry_at (walk->map, walk->next);

          if (walk->in_cells)
            {
              walk->next = entry->cell_next;
              if (entry->cell_hash != walk->hash || entry->class_number != walk->class_number - 1)
                continue;
            }
          else
            walk->next = entry->node.next;
          if (entry->region.hi <= region->lo || region->hi <= entry->region.lo)
            continue;
          if ((entry->region.n_dims | region->n_dims) == 0
              || pto_region_overlaps (&entry->region, region, unsure))
            return entry;
        }
      if (!walk_more (walk))
        return NULL;
    }
}

/* The entry of exactly that region in an index. */
static struct entry *
index_find (const struct pto_map *map, struct index *index, const struct pto_region *region,
            const struct box *box)
{
  uint32_t class_number = index_find_class (index, box_class_key (index, box));
  uint32_t hash;

  if (class_number == index->n_classes)
    class_number = CATCH_ALL;
  hash = box_cell_hash (index, class_number, box);
  for (uint32_t i = index->buckets[hash & index->mask]; i != 0; i = entry_at (map, i)->cell_next)
    {
      struct entry *entry = entry_at (map, i);

      if (entry->cell_hash == hash && pto_region_equal (&entry->region, region))
        {
          index->last_class = class_number;
          return entry;
        }
    }
  return NULL;
}

/* Entries */

static struct entry *
entry_new (struct pto_map *map, struct pto_space *space, const struct pto_region *region,
           bool alone, const struct box *box)
{
  uint32_t number = node_take (map, NODE_ENTRY);
  struct entry *entry;

  if (number == 0)
    return NULL;
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
  space_link (map, space, entry, box);
  return entry;
}

static inline void
space_begin (const struct pto_map *map, struct pto_space *space)
{
  if (space->generation == map->generation)
    return;
  space->generation = map->generation;
  space->head = 0;
  space->count = 0;
  space->merged = false;
  space->implied = false;
  space->index_or_heir = NULL;
}

/* Most outputs are written once, by the task that they are made for, and many are never looked up:
 * for those no entry is made. Its node is counted all the same, so there is one when somebody
 * comes. */

static inline bool
space_is_implied (const struct pto_map *map, const struct pto_space *space)
{
  return space->implied && space->generation == map->generation;
}

static inline void
space_imply (struct pto_map *map, struct pto_space *space, const struct pto_access *access)
{
  space_begin (map, space);
  space_trim (map, space);
  space->implied = true;
  space->anchor = access->anchor;
  space->end = access->region.hi;
  map->pool.used++;
}

static inline void
space_forget_implied (struct pto_map *map, struct pto_space *space)
{
  space->implied = false;
  space->index_or_heir = NULL;
  map->pool.used--;
}

static __attribute__ ((noinline)) void
space_make_implied (struct pto_map *map, struct pto_space *space)
{
  struct pto_region region = {
    .lo = space->anchor,
    .hi = space->end,
    .run = space->end - space->anchor,
  };

  space_forget_implied (map, space);
  entry_new (map, space, &region, true, NULL)->writer = space->creator;
}

/* Before anything is looked for in a space. */
static inline void
space_settle (struct pto_map *map, struct pto_space *space)
{
  if (space_is_implied (map, space))
    space_make_implied (map, space);
}

/* Look-up */

static bool
deps_append (struct pto_deps *deps, pto_task_id task, uint32_t kinds)
{
  if (deps->count == deps->capacity)
    {
      uint32_t capacity = deps->capacity == 0 ? 16 : 2 * deps->capacity;
      struct pto_dep *items = realloc (deps->items, (size_t) capacity * sizeof *items);

      if (items == NULL)
        return false;
      deps->items = items;
      deps->capacity = capacity;
    }
  deps->items[deps->count].task = task;
  deps->items[deps->count].kinds = kinds;
  deps->count++;
  return true;
}

static inline bool
dep_is_before (const struct pto_dep *a, const struct pto_dep *b)
{
  return a->task < b->task || (a->task == b->task && a->kinds < b->kinds);
}

/* By task: then the order tells nothing of how the entries were found, nor of what else the map
 * holds. */
static void
deps_sort (struct pto_dep *items, uint32_t n)
{
  static const uint32_t gaps[]
      = { 3937489, 1750009, 777781, 345679, 153635, 68281, 30347, 13487, 5993, 2663,
          1182,    525,     233,    103,    45,     20,    9,     4,     1 };
  uint32_t up = 1, down = 1;

  while (up < n && !dep_is_before (&items[up], &items[up - 1]))
    up++;
  if (up >= n)
    return;
  /* Entries are found newest first. */
  while (down < n && !dep_is_before (&items[down - 1], &items[down]))
    down++;
  if (down == n)
    {
      for (uint32_t i = 0; i < n / 2; i++)
        {
          struct pto_dep dep = items[i];

          items[i] = items[n - 1 - i];
          items[n - 1 - i] = dep;
        }
      return;
    }
  for (uint32_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++)
    for (uint32_t i = gaps[g]; i < n; i++)
      {
        struct pto_dep dep = items[i];
        uint32_t at = i;

        for (; at >= gaps[g] && dep_is_before (&dep, &items[at - gaps[g]]); at -= gaps[g])
          items[at] = items[at - gaps[g]];
        items[at] = dep;
      }
}

/* What an access that waits for writers and readers for these reasons (0: does not) gets from an
 * entry. */
static inline bool
entry_report (const struct pto_map *map, const struct entry *entry, uint32_t of_writer,
              uint32_t of_readers, struct pto_deps *deps)
{
  if (of_writer != 0 && is_live (map, entry->writer)
      && !deps_append (deps, entry->writer, of_writer))
    return false;
  if (of_readers == 0 || entry->node.count == 0)
    return true;
  for (uint32_t i = 0; i < entry->node.count; i++)
    if (is_live (map, entry->readers[i]) && !deps_append (deps, entry->readers[i], of_readers))
      return false;
  for (uint32_t number = readers_first_block (map, entry); number != 0;
       number = readers_next_block (map, entry, number))
    {
      const struct block *block = &map->slots[number].block;

      for (uint32_t i = 0; i < block->node.count; i++)
        if (is_live (map, block->readers[i]) && !deps_append (deps, block->readers[i], of_readers))
          return false;
    }
  return true;
}

/* Everything in the space that the access meets. */
static __attribute__ ((noinline)) bool
find_deps (struct pto_map *map, struct pto_space *space, struct pto_access *access,
           uint32_t of_writer, uint32_t of_readers, struct pto_deps *deps)
{
  const struct pto_region *region = &access->region;
  struct box box;
  const struct box *where = NULL;
  struct index *index = space_index (space);
  struct entry *exact = NULL;
  struct entry *entry;
  struct walk walk;
  uint32_t before = deps->count;
  uint32_t others = 0;
  bool unsure = false;
  bool ok = true;

  if (index != NULL && index_reaches (index, region))
    {
      index_box (index, region, &box);
      where = &box;
      exact = index_find (map, index, region, &box);
    }
  if (exact == NULL || !exact->node.alone)
    {
      walk_begin (&walk, map, space, region, where);
      while (ok && (entry = walk_next (&walk, &unsure)) != NULL)
        {
          uint32_t mark = unsure ? PTO_HAZARD_UNSURE : 0;

          unsure = false;
          if (entry == exact || (exact == NULL && pto_region_equal (&entry->region, region)))
            {
              exact = entry;
              if (exact->node.alone)
                break;
            }
          else if (entry_is_stale (map, entry))
            {
              /* The entry of this very region stays: the insert that follows takes it. */
              entry_remove (map, entry);
              continue;
            }
          else
            others++;
          ok = entry_report (map, entry, of_writer != 0 ? of_writer | mark : 0,
                             of_readers != 0 ? of_readers | mark : 0, deps);
        }
    }
  if (exact != NULL && exact->node.alone)
    ok = entry_report (map, exact, of_writer, of_readers, deps);
  else if (ok && exact != NULL)
    exact->node.alone = others == 0;
  if (exact != NULL)
    {
      access->entry = number_of (map, exact);
      access->epoch = map->epoch;
    }
  space_trim (map, space);
  if (deps->count > before + 1)
    deps_sort (deps->items + before, deps->count - before);
  return ok;
}

/* The space's only entry, if it is of exactly this region: most buffers are accessed whole. */
static inline struct entry *
only_entry (const struct pto_map *map, const struct pto_space *space,
            const struct pto_region *region)
{
  struct entry *entry = entry_at (map, space->head);

  return space->count == 1 && space_index (space) == NULL && entry->region.lo == region->lo
                 && entry->region.hi == region->hi && (entry->region.n_dims | region->n_dims) == 0
             ? entry
             : NULL;
}

bool
pto_map_lookup (struct pto_map *map, struct pto_access *access, PTOParamType type,
                struct pto_deps *deps)
{
  uint32_t of_writer = map->kinds[type].of_writer;
  uint32_t of_readers = map->kinds[type].of_readers;
  uint32_t before = deps->count;
  struct pto_space *space;
  struct entry *entry;
  bool ok;

  access->entry = 0;
  if ((of_writer | of_readers) == 0 || access->space == NULL)
    return true;
  space = space_resolve (map, access->space);
  space_settle (map, space);
  if (space_count (map, space) == 0 || access->region.lo == access->region.hi)
    return true;
  entry = only_entry (map, space, &access->region);
  if (entry == NULL)
    return find_deps (map, space, access, of_writer, of_readers, deps);
  entry->node.alone = true;
  access->entry = space->head;
  access->epoch = map->epoch;
  ok = entry_report (map, entry, of_writer, of_readers, deps);
  if (deps->count > before + 1)
    deps_sort (deps->items + before, deps->count - before);
  return ok;
}

/* Insert */

/* Finds or makes the entry of the access, and removes what a write covers. NULL: no node. */
static __attribute__ ((noinline)) struct entry *
find_entry (struct pto_map *map, const struct pto_access *access, bool writes)
{
  struct pto_space *space = space_resolve (map, access->space);
  const struct pto_region *region = &access->region;
  struct box box;
  const struct box *where = NULL;
  struct index *index;
  struct entry *exact = NULL;
  struct entry *entry;
  uint32_t others = 0;

  space_settle (map, space);
  if (space_count (map, space) == 0)
    {
      space_begin (map, space);
      space_trim (map, space);
      space->anchor = access->anchor;
      return entry_new (map, space, region, true, NULL);
    }
  index = space_index (space);
  if (index != NULL && index_reaches (index, region))
    {
      index_box (index, region, &box);
      where = &box;
      exact = index_find (map, index, region, &box);
    }
  if (exact == NULL || (writes && !exact->node.alone))
    {
      struct walk walk;
      bool unsure;

      walk_begin (&walk, map, space, region, where);
      while ((entry = walk_next (&walk, &unsure)) != NULL)
        {
          if (entry == exact || (exact == NULL && pto_region_equal (&entry->region, region)))
            {
              exact = entry;
              if (!writes || entry->node.alone)
                break;
            }
          else if ((writes && pto_region_covers (region, &entry->region))
                   || entry_is_stale (map, entry))
            entry_remove (map, entry);
          else
            {
              entry->node.alone = false;
              others++;
            }
        }
      if (exact != NULL && writes)
        exact->node.alone = others == 0;
    }
  return exact != NULL ? exact : entry_new (map, space, region, others == 0, where);
}

void
pto_map_insert (struct pto_map *map, const struct pto_access *access, PTOParamType type,
                pto_task_id task)
{
  bool writes = map->kinds[type].writes;
  struct entry *entry = NULL;

  map->inserted = true;
  if (!map->kinds[type].recorded || access->space == NULL || access->region.lo == access->region.hi)
    return;
  if (access->fresh && writes && access->region.n_dims == 0 && access->region.lo == access->anchor)
    {
      space_imply (map, access->space, access);
      return;
    }
  /* As the look-up found it, if nothing was removed since. A write that meets others has them to
   * remove. */
  if (access->entry != 0 && access->epoch == map->epoch)
    {
      entry = entry_at (map, access->entry);
      if (writes && !entry->node.alone)
        entry = NULL;
    }
  if (entry == NULL)
    entry = find_entry (map, access, writes);
  if (entry == NULL)
    return;
  if (!writes)
    readers_add (map, entry, task);
  else
    {
      entry->writer = task;
      if (entry->node.count > 0)
        readers_clear (map, entry);
    }
}

/* Cleaning */

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
          readers_prune (map, entry);
        }
      if (entry_is_stale (map, entry))
        {
          entry_remove (map, entry);
          space_trim (map, space);
        }
    }
  return work;
}

/* Everything, unless nothing has retired since that was done last. */
static void
sweep_all (struct pto_map *map)
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
  if (map->pool.capacity - map->pool.used >= n)
    return true;
  if (n > map->pool.capacity)
    return false;
  sweep_all (map);
  return map->pool.capacity - map->pool.used >= n;
}

static void
space_clear (struct pto_map *map, struct pto_space *space)
{
  uint32_t number = space_gather (map, space);

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
    entry_remove (map, entry_at (map, space->head));
  else if (space_count (map, space) > 0)
    space_clear (map, space);
}

/* External memory: disjoint extents, found through a grid by where they lie. Each extent is of a
 * level, its length rounded up to a power of two, and lies in one or two cells of that size; a cell
 * meets three extents of its level at most. */

static inline struct external *
external_at (const struct pto_map *map, uint32_t number)
{
  return &map->externals[number];
}

static inline uint32_t *
grid_bucket (const struct pto_map *map, uint32_t level, uint64_t cell)
{
  /* Neighbours share a line of buckets: programs go through memory in order. */
  uint64_t hash = (cell / 16 * 64 + level) * UINT64_C (0x9e3779b97f4a7c15);

  return &map->grid[(uint32_t) (hash >> 32 ^ cell % 16) & map->grid_mask];
}

static inline uint32_t
grid_cells (const struct external *external)
{
  return 1 + (external->lo >> external->level != (external->hi - 1) >> external->level);
}

static void
grid_link (struct pto_map *map, uint32_t number)
{
  struct external *external = external_at (map, number);

  for (uint32_t c = 0; c < grid_cells (external); c++)
    {
      uint32_t *bucket = grid_bucket (map, external->level, (external->lo >> external->level) + c);

      external->next[c] = *bucket;
      *bucket = 2 * number + c;
    }
}

/* Without memory chains grow longer. */
static void
grid_grow (struct pto_map *map)
{
  uint32_t mask = 4 * map->grid_mask + 3;
  uint32_t *grid = calloc ((size_t) mask + 1, sizeof *grid);

  if (grid == NULL)
    return;
  free (map->grid);
  map->grid = grid;
  map->grid_mask = mask;
  for (uint32_t number = 1; number < map->externals_top; number++)
    if (external_at (map, number)->used && !external_at (map, number)->space.merged
        && external_at (map, number)->level != NO_LEVEL)
      grid_link (map, number);
}

static void
grid_insert (struct pto_map *map, uint32_t number)
{
  struct external *external = external_at (map, number);
  uint32_t level = log2_ceiling (external->hi - external->lo);

  external->level = (uint8_t) (level < LEVEL_MIN ? LEVEL_MIN : level > 63 ? 63 : level);
  map->levels |= UINT64_C (1) << external->level;
  map->of_level[external->level]++;
  grid_link (map, number);
  if (map->n_externals > map->grid_mask)
    grid_grow (map);
}

static void
grid_remove (struct pto_map *map, uint32_t number)
{
  struct external *external = external_at (map, number);

  for (uint32_t c = 0; c < grid_cells (external); c++)
    {
      uint32_t *link = grid_bucket (map, external->level, (external->lo >> external->level) + c);

      while (*link != 2 * number + c)
        link = &external_at (map, *link / 2)->next[*link % 2];
      *link = external->next[c];
    }
  if (--map->of_level[external->level] == 0)
    map->levels &= ~(UINT64_C (1) << external->level);
  external->level = NO_LEVEL;
}

/* An extent that has a byte in [lo, hi); 0: none. */
static uint32_t
grid_find (const struct pto_map *map, uint64_t lo, uint64_t hi)
{
  for (uint64_t levels = map->levels; levels != 0; levels &= levels - 1)
    {
      uint32_t level = (uint32_t) __builtin_ctzll (levels);
      uint64_t first = lo >> level;
      uint64_t last = (hi - 1) >> level;

      if (last - first < map->of_level[level])
        {
          for (uint64_t cell = first; cell <= last; cell++)
            for (uint32_t at = *grid_bucket (map, level, cell); at != 0;
                 at = external_at (map, at / 2)->next[at % 2])
              {
                const struct external *external = external_at (map, at / 2);

                if (external->lo < hi && lo < external->hi)
                  return at / 2;
              }
        }
      else
        for (uint32_t number = 1; number < map->externals_top; number++)
          {
            const struct external *external = external_at (map, number);

            if (external->used && external->level == level && external->lo < hi
                && lo < external->hi)
              return number;
          }
    }
  return 0;
}

static void
external_free (struct pto_map *map, uint32_t number)
{
  struct external *external = external_at (map, number);

  external->used = false;
  external->level = NO_LEVEL;
  external->next[0] = map->externals_free;
  map->externals_free = number;
  map->n_externals--;
}

/* Gives up the spaces without entries that the current submit did not ask for. */
static void
externals_collect (struct pto_map *map)
{
  for (uint32_t number = 1; number < map->externals_top; number++)
    {
      struct external *external = external_at (map, number);
      struct pto_space *space = &external->space;

      if (!external->used || external->stamp == map->stamp)
        continue;
      if (!space->merged && space->index_or_heir == NULL)
        for (uint32_t i = space->head, next; i != 0; i = next)
          {
            next = entry_at (map, i)->node.next;
            if (entry_is_stale (map, entry_at (map, i)))
              entry_remove (map, entry_at (map, i));
          }
      if (!space->merged && space->count > 0)
        continue;
      if (!space->merged)
        {
          space_trim (map, space);
          grid_remove (map, number);
        }
      external_free (map, number);
    }
  map->collect_at = 64 + map->n_externals + map->externals_top / 2;
}

static uint32_t
external_new (struct pto_map *map)
{
  uint32_t number = map->externals_free;
  struct external *external;

  if (number == 0 && map->externals_top > map->max_externals)
    {
      sweep_all (map);
      externals_collect (map);
      number = map->externals_free;
    }
  if (number != 0)
    map->externals_free = external_at (map, number)->next[0];
  else if (map->externals_top <= map->max_externals)
    {
      number = map->externals_top++;
      __builtin_prefetch (&map->externals[number + 4], 1);
    }
  else
    return 0;
  external = external_at (map, number);
  memset (external, 0, sizeof *external);
  external->used = true;
  external->space.generation = map->generation;
  external->stamp = map->stamp;
  external->level = NO_LEVEL;
  map->n_externals++;
  return number;
}

static void
external_merge (struct pto_map *map, struct pto_space *from, struct pto_space *into)
{
  uint32_t number = space_gather (map, from);

  while (number != 0)
    {
      struct entry *entry = entry_at (map, number);
      struct index *index = space_index (into);
      struct box box;

      number = entry->cell_next;
      if (index != NULL && index_reaches (index, &entry->region))
        index_box (index, &entry->region, &box);
      space_link (map, into, entry, &box);
    }
  from->count = 0;
  from->merged = true;
  from->index_or_heir = into;
}

static __attribute__ ((noinline)) struct pto_space *
external_space_slow (struct pto_map *map, uint64_t addr, uint64_t hi)
{
  struct external *external;
  uint32_t number;

  if (map->n_externals >= map->collect_at)
    externals_collect (map);
  number = grid_find (map, addr, hi);
  external = external_at (map, number);
  if (number != 0 && external->lo <= addr && hi <= external->hi)
    {
      map->level = external->level;
      external->stamp = map->stamp;
      return &external->space;
    }
  if (number == 0)
    {
      number = external_new (map);
      if (number == 0)
        return NULL;
      external = external_at (map, number);
      external->lo = addr;
      external->hi = hi;
    }
  else
    {
      uint64_t lo = addr;
      uint32_t other = number;

      number = 0;
      do
        {
          grid_remove (map, other);
          /* Accesses of this submit may name it until their inserts. */
          external_at (map, other)->stamp = map->stamp;
          lo = external_at (map, other)->lo < lo ? external_at (map, other)->lo : lo;
          hi = external_at (map, other)->hi > hi ? external_at (map, other)->hi : hi;
          if (number != 0)
            {
              struct pto_space *a = &external_at (map, number)->space;
              struct pto_space *b = &external_at (map, other)->space;

              if (a->count < b->count)
                number = other;
              external_merge (map, number == other ? a : b, number == other ? b : a);
            }
          else
            number = other;
        }
      while ((other = grid_find (map, lo, hi)) != 0);
      external = external_at (map, number);
      external->lo = lo;
      external->hi = hi;
    }
  grid_insert (map, number);
  external->stamp = map->stamp;
  map->level = external->level;
  return &external->space;
}

struct pto_space *
pto_map_external_space (struct pto_map *map, uint64_t addr, uint64_t size)
{
  uint64_t hi = addr + (size > 0 ? size : 1);

  if (hi < addr)
    hi = UINT64_MAX;
  if (map->inserted)
    {
      map->inserted = false;
      map->stamp++;
    }
  for (uint32_t at = *grid_bucket (map, map->level, addr >> map->level); at != 0;
       at = external_at (map, at / 2)->next[at % 2])
    {
      struct external *external = external_at (map, at / 2);

      if (external->lo <= addr && hi <= external->hi)
        {
          external->stamp = map->stamp;
          return &external->space;
        }
    }
  return external_space_slow (map, addr, hi);
}

/* Life */

static void *
map_pages (size_t size)
{
  void *pages = mmap (NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return pages != MAP_FAILED ? pages : NULL;
}

/* Empty, at the beginning of a generation. */
static void
map_begin (struct pto_map *map)
{
  if (++map->generation == 0)
    map->generation = 1;
  map->top = 1;
  map->free = 0;
  map->pool.used = 0;
  map->cursor = 1;
  map->work = 0;
  map->retired = 0;
  map->taken = 0;
  map->swept = false;
  map->externals_top = 1;
  map->externals_free = 0;
  map->n_externals = 0;
  map->levels = 0;
  memset (map->of_level, 0, sizeof map->of_level);
  map->inserted = false;
  map->level = LEVEL_MIN;
  map->collect_at = 64;
}

struct pto_map *
pto_map_new (const struct pto_map_config *config)
{
  struct pto_map *map = calloc (1, sizeof *map);

  if (map == NULL)
    return NULL;
  map->tails = config->tails;
  map->failed = config->failed;
  pto_map_set_hazards (map, config->hazards);
  map->pool.capacity = config->pool < MAX_POOL ? config->pool : MAX_POOL;
  /* Room for the spaces with entries, and for those that one submit looks at. */
  map->max_externals = SUBMIT_EXTERNALS + 2 * map->pool.capacity;
  map->slots = map_pages (((size_t) map->pool.capacity + 1) * sizeof *map->slots);
  map->externals = map_pages (((size_t) map->max_externals + 1) * sizeof *map->externals);
  map->grid_mask = GRID_MASK;
  map->grid = calloc ((size_t) map->grid_mask + 1, sizeof *map->grid);
  if (map->slots == NULL || map->externals == NULL || map->grid == NULL)
    {
      pto_map_free (map);
      return NULL;
    }
  map_begin (map);
  return map;
}

void
pto_map_free (struct pto_map *map)
{
  if (map == NULL)
    return;
  while (map->indexes != NULL)
    index_free (map, map->indexes);
  if (map->slots != NULL)
    munmap (map->slots, ((size_t) map->pool.capacity + 1) * sizeof *map->slots);
  if (map->externals != NULL)
    munmap (map->externals, ((size_t) map->max_externals + 1) * sizeof *map->externals);
  free (map->grid);
  free (map);
}

void
pto_map_reset (struct pto_map *map)
{
  while (map->indexes != NULL)
    index_free (map, map->indexes);
  if (map->levels != 0)
    memset (map->grid, 0, ((size_t) map->grid_mask + 1) * sizeof *map->grid);
  map_begin (map);
}

void
pto_map_set_hazards (struct pto_map *map, uint32_t hazards)
{
  uint8_t raw = hazards & PTO_HAZARD_RAW, waw = hazards & PTO_HAZARD_WAW;
  uint8_t war = hazards & PTO_HAZARD_WAR;

  map->hazards = hazards;
  memset (map->kinds, 0, sizeof map->kinds);
  map->kinds[PTO_PARAM_INPUT].of_writer = raw;
  map->kinds[PTO_PARAM_INPUT].recorded = war != 0;
  map->kinds[PTO_PARAM_INOUT].of_writer = raw | waw;
  map->kinds[PTO_PARAM_INOUT].of_readers = war;
  /* The seeds' table: without WAR an output waits for nothing. */
  map->kinds[PTO_PARAM_OUTPUT].of_writer = war != 0 ? waw : 0;
  map->kinds[PTO_PARAM_OUTPUT].of_readers = war;
  map->kinds[PTO_PARAM_INOUT].recorded = map->kinds[PTO_PARAM_INOUT].writes = true;
  map->kinds[PTO_PARAM_OUTPUT].recorded = map->kinds[PTO_PARAM_OUTPUT].writes = true;
  map->kinds[PTO_PARAM_OUTPUT_EXISTING] = map->kinds[PTO_PARAM_OUTPUT];
}

uint32_t
pto_map_used (const struct pto_map *map)
{
  return map->pool.used;
}

uint32_t
pto_map_capacity (const struct pto_map *map)
{
  return map->pool.capacity;
}
