/* tensor-map-external.c: which space is memory of the caller?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Disjoint extents, found through a grid by where they lie. Each extent is of a level, its length
 * rounded up to a power of two, and lies in one or two cells of that size; a cell meets three
 * extents of its level at most. An extent that joins others takes one of their spaces; the rest are
 * empty and name it, for accesses of the same submit.
 */
#include "tensor-map-external.h"

#include "tensor-map-space.h"
#include "tensor-map-sweep.h"

#include <string.h>

/* Spaces that one submit may ask for beside those with entries. */
#define SUBMIT_EXTERNALS 4096u
/* Cells of the grid are not smaller than 2 to the power of this. */
#define LEVEL_MIN 6u
#define NO_LEVEL 64u   /* not in the grid */
#define GRID_MASK 255u /* at first */
#define COLLECT_MIN 64u

/* A space with an extent. */
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

static inline struct external *
external_at (const struct externals *externals, uint32_t number)
{
  return &externals->items[number];
}

static inline uint32_t *
grid_bucket (const struct externals *externals, uint32_t level, uint64_t cell)
{
  /* Neighbours share a line of buckets: programs go through memory in order. */
  uint64_t hash = (cell / 16 * 64 + level) * UINT64_C (0x9e3779b97f4a7c15);

  return &externals->grid[(uint32_t) (hash >> 32 ^ cell % 16) & externals->grid_mask];
}

static inline uint32_t
grid_cells (const struct external *external)
{
  return 1 + (external->lo >> external->level != (external->hi - 1) >> external->level);
}

static void
grid_link (struct externals *externals, uint32_t number)
{
  struct external *external = external_at (externals, number);

  for (uint32_t c = 0; c < grid_cells (external); c++)
    {
      uint32_t *bucket
          = grid_bucket (externals, external->level, (external->lo >> external->level) + c);

      external->next[c] = *bucket;
      *bucket = 2 * number + c;
    }
}

/* Without memory chains grow longer. */
static void
grid_grow (struct externals *externals)
{
  uint32_t mask = 4 * externals->grid_mask + 3;
  uint32_t *grid = calloc ((size_t) mask + 1, sizeof *grid);

  if (grid == NULL)
    return;
  free (externals->grid);
  externals->grid = grid;
  externals->grid_mask = mask;
  for (uint32_t number = 1; number < externals->top; number++)
    if (external_at (externals, number)->level != NO_LEVEL)
      grid_link (externals, number);
}

static void
grid_insert (struct externals *externals, uint32_t number)
{
  struct external *external = external_at (externals, number);
  uint32_t level = log2_ceiling (external->hi - external->lo);

  external->level = (uint8_t) (level < LEVEL_MIN ? LEVEL_MIN : level > 63 ? 63 : level);
  externals->levels |= UINT64_C (1) << external->level;
  externals->of_level[external->level]++;
  grid_link (externals, number);
  if (externals->count > externals->grid_mask)
    grid_grow (externals);
}

static void
grid_remove (struct externals *externals, uint32_t number)
{
  struct external *external = external_at (externals, number);

  for (uint32_t c = 0; c < grid_cells (external); c++)
    {
      uint32_t *link
          = grid_bucket (externals, external->level, (external->lo >> external->level) + c);

      while (*link != 2 * number + c)
        link = &external_at (externals, *link / 2)->next[*link % 2];
      *link = external->next[c];
    }
  if (--externals->of_level[external->level] == 0)
    externals->levels &= ~(UINT64_C (1) << external->level);
  external->level = NO_LEVEL;
}

/* An extent that has a byte in [lo, hi); 0: none. */
static uint32_t
grid_find (const struct externals *externals, uint64_t lo, uint64_t hi)
{
  for (uint64_t levels = externals->levels; levels != 0; levels &= levels - 1)
    {
      uint32_t level = (uint32_t) __builtin_ctzll (levels);
      uint64_t first = lo >> level;
      uint64_t last = (hi - 1) >> level;

      if (last - first < externals->of_level[level])
        {
          for (uint64_t cell = first; cell <= last; cell++)
            for (uint32_t at = *grid_bucket (externals, level, cell); at != 0;
                 at = external_at (externals, at / 2)->next[at % 2])
              {
                const struct external *external = external_at (externals, at / 2);

                if (external->lo < hi && lo < external->hi)
                  return at / 2;
              }
        }
      else
        for (uint32_t number = 1; number < externals->top; number++)
          {
            const struct external *external = external_at (externals, number);

            if (external->level == level && external->lo < hi && lo < external->hi)
              return number;
          }
    }
  return 0;
}

/* It is in no cell. */
static void
external_free (struct externals *externals, uint32_t number)
{
  struct external *external = external_at (externals, number);

  external->used = false;
  external->next[0] = externals->free;
  externals->free = number;
  externals->count--;
}

/* Gives up the spaces without entries that the current submit did not ask for. */
static void
externals_collect (struct pto_map *map)
{
  struct externals *externals = &map->externals;

  for (uint32_t number = 1; number < externals->top; number++)
    {
      struct external *external = external_at (externals, number);
      struct pto_space *space = &external->space;

      if (!external->used || external->stamp == externals->stamp)
        continue;
      if (!space->merged)
        {
          if (space_index (space) == NULL)
            for (uint32_t i = space->head, next; i != 0; i = next)
              {
                next = entry_at (map, i)->node.next;
                if (entry_is_stale (map, entry_at (map, i)))
                  pto_entry_remove (map, entry_at (map, i));
              }
          if (space->count > 0)
            continue;
          grid_remove (externals, number);
        }
      external_free (externals, number);
    }
  externals->collect_at = COLLECT_MIN + externals->count + externals->top / 2;
}

/* 0: no room. */
static uint32_t
external_new (struct pto_map *map, uint64_t lo, uint64_t hi)
{
  struct externals *externals = &map->externals;
  struct external *external;
  uint32_t number;

  if (externals->free == 0 && externals->top > externals->max)
    {
      pto_map_sweep_all (map);
      externals_collect (map);
    }
  number = externals->free;
  if (number != 0)
    externals->free = external_at (externals, number)->next[0];
  else if (externals->top <= externals->max)
    {
      number = externals->top++;
      __builtin_prefetch (&externals->items[number + 4], 1);
    }
  else
    return 0;
  external = external_at (externals, number);
  memset (external, 0, sizeof *external);
  external->used = true;
  external->space.generation = map->generation;
  external->stamp = externals->stamp;
  external->lo = lo;
  external->hi = hi;
  externals->count++;
  return number;
}

static void
external_merge (struct pto_map *map, struct pto_space *from, struct pto_space *into)
{
  uint32_t number = pto_space_gather (map, from);

  while (number != 0)
    {
      struct entry *entry = entry_at (map, number);

      number = entry->cell_next;
      pto_space_link (map, into, entry, NULL);
    }
  from->count = 0;
  from->merged = true;
  from->index_or_heir = into;
}

/* Makes one of all extents that have a byte in [lo, hi), which the first of them has, and gives it
 * these, too. */
static uint32_t
externals_join (struct pto_map *map, uint32_t first, uint64_t lo, uint64_t hi)
{
  struct externals *externals = &map->externals;
  uint32_t number = first;

  for (uint32_t other = first; other != 0; other = grid_find (externals, lo, hi))
    {
      struct external *external = external_at (externals, other);

      grid_remove (externals, other);
      /* Accesses of this submit may name it until their inserts. */
      external->stamp = externals->stamp;
      lo = external->lo < lo ? external->lo : lo;
      hi = external->hi > hi ? external->hi : hi;
      if (other == number)
        continue;
      /* The smaller one moves. */
      if (external_at (externals, number)->space.count < external->space.count)
        {
          external_merge (map, &external_at (externals, number)->space, &external->space);
          number = other;
        }
      else
        external_merge (map, &external->space, &external_at (externals, number)->space);
    }
  external_at (externals, number)->lo = lo;
  external_at (externals, number)->hi = hi;
  return number;
}

static __attribute__ ((noinline)) struct pto_space *
external_space_slow (struct pto_map *map, uint64_t addr, uint64_t hi)
{
  struct externals *externals = &map->externals;
  struct external *external;
  uint32_t number;

  if (externals->count >= externals->collect_at)
    externals_collect (map);
  number = grid_find (externals, addr, hi);
  external = external_at (externals, number);
  if (number != 0 && external->lo <= addr && hi <= external->hi)
    external->stamp = externals->stamp;
  else
    {
      number = number != 0 ? externals_join (map, number, addr, hi) : external_new (map, addr, hi);
      if (number == 0)
        return NULL;
      grid_insert (externals, number);
      external = external_at (externals, number);
    }
  externals->level = external->level;
  return &external->space;
}

struct pto_space *
pto_map_external_space (struct pto_map *map, uint64_t addr, uint64_t size)
{
  struct externals *externals = &map->externals;
  uint64_t hi = addr + (size > 0 ? size : 1);

  if (hi < addr)
    hi = UINT64_MAX;
  if (externals->inserted)
    {
      externals->inserted = false;
      externals->stamp++;
    }
  for (uint32_t at = *grid_bucket (externals, externals->level, addr >> externals->level); at != 0;
       at = external_at (externals, at / 2)->next[at % 2])
    {
      struct external *external = external_at (externals, at / 2);

      if (external->lo <= addr && hi <= external->hi)
        {
          external->stamp = externals->stamp;
          return &external->space;
        }
    }
  return external_space_slow (map, addr, hi);
}

bool
pto_externals_init (struct externals *externals, uint32_t n_entries)
{
  externals->max = SUBMIT_EXTERNALS + 2 * n_entries;
  externals->items
      = pto_pages_new (((size_t) externals->max + 1) * sizeof *externals->items, MAP_PRIVATE);
  externals->grid_mask = GRID_MASK;
  externals->grid = calloc ((size_t) externals->grid_mask + 1, sizeof *externals->grid);
  return externals->items != NULL && externals->grid != NULL;
}

void
pto_externals_destroy (struct externals *externals)
{
  pto_pages_free (externals->items, ((size_t) externals->max + 1) * sizeof *externals->items);
  free (externals->grid);
}

void
pto_externals_reset (struct externals *externals)
{
  if (externals->levels != 0)
    memset (externals->grid, 0, ((size_t) externals->grid_mask + 1) * sizeof *externals->grid);
  externals->top = 1;
  externals->free = 0;
  externals->count = 0;
  externals->levels = 0;
  memset (externals->of_level, 0, sizeof externals->of_level);
  externals->inserted = false;
  externals->level = LEVEL_MIN;
  externals->collect_at = COLLECT_MIN;
}
