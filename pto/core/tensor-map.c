/* tensor-map.c: which earlier tasks does an access to a tensor depend on?
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
 * Updates that commute are the readers of an entry whose group is open: whoever accesses the region
 * in another way, or another region that overlaps it, comes after all of them, as after writers,
 * and they come after all who were there before the first of them. They remove no entry: the next
 * of them does not come after this one, and needs what that has met.
 *
 * Results are sorted by task, so they tell nothing of how entries are stored: they are the same
 * wherever the buffers lie and whatever else the map holds.
 */
#include "tensor-map.h"

#include "inspect-read.h"
#include "tensor-map-space.h"

#include <string.h>

/* So that four times as many, and some, still count in 32 bits: twice as many externals, whose
 * numbers the grid doubles. */
#define MAX_POOL (UINT32_C (1) << 29)

/* --- implied entries --- */

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

static inline void
space_imply (struct pto_map *map, struct pto_space *space, const struct pto_access *access)
{
  space_begin (map, space);
  space->implied = true;
  space->anchor = access->anchor;
  space->end = access->region.hi;
  map->pool.used++;
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
  pto_entry_new (map, space, &region, true, NULL)->writer = space->creator;
}

/* Before anything is looked for in a space. */
static inline void
space_settle (struct pto_map *map, struct pto_space *space)
{
  if (space_is_implied (map, space))
    space_make_implied (map, space);
}

/* --- look-up --- */

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
 * entry. member: it updates this very region, in any order. */
static inline bool
entry_report (const struct pto_map *map, const struct entry *entry, bool member, uint32_t of_writer,
              uint32_t of_readers, struct pto_deps *deps)
{
  if (__builtin_expect (entry->node.grouped, 0))
    return pto_group_report (map, entry, member, of_writer, of_readers, deps);
  if (of_writer != 0 && is_live (map, entry->writer)
      && !pto_deps_add (deps, entry->writer, of_writer))
    return false;
  return of_readers == 0 || entry->node.count == 0
         || readers_report (map, entry_readers (map, entry), of_readers, deps);
}

/* Where a region lies in the index of the space, and its entry there; NULL: there is no index, or
 * none that reaches so far. */
static inline const struct box *
locate (const struct pto_map *map, const struct pto_space *space, const struct pto_region *region,
        struct box *box, struct entry **entry)
{
  struct index *index = space_index (space);

  *entry = NULL;
  if (index == NULL || !index_reaches (index, region))
    return NULL;
  pto_index_box (index, region, box);
  *entry = pto_index_find (map, index, region, box);
  return box;
}

/* Everything in the space that the access meets. */
static __attribute__ ((noinline)) bool
find_deps (struct pto_map *map, struct pto_space *space, struct pto_access *access, bool commutes,
           uint32_t of_writer, uint32_t of_readers, struct pto_deps *deps)
{
  const struct pto_region *region = &access->region;
  struct box box;
  struct entry *exact;
  struct entry *entry;
  const struct box *where = locate (map, space, region, &box, &exact);
  uint32_t before = deps->count;
  uint32_t others = 0;
  bool unsure = false;
  bool ok = true;

  if (exact == NULL || !exact->node.alone)
    {
      struct walk walk;

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
              pto_entry_remove (map, entry);
              continue;
            }
          else
            others++;
          ok = entry_report (map, entry, commutes && entry == exact,
                             of_writer != 0 ? of_writer | mark : 0,
                             of_readers != 0 ? of_readers | mark : 0, deps);
        }
    }
  if (exact != NULL && exact->node.alone)
    ok = entry_report (map, exact, commutes, of_writer, of_readers, deps);
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

extern inline __attribute__ ((always_inline)) bool
pto_map_lookup (struct pto_map *map, struct pto_access *access, PTOParamType type,
                struct pto_deps *deps)
{
  uint32_t of_writer = map->kinds[type].of_writer;
  uint32_t of_readers = map->kinds[type].of_readers;
  bool commutes = type == PTO_PARAM_COMMUTATIVE;
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
    return find_deps (map, space, access, commutes, of_writer, of_readers, deps);
  entry->node.alone = true;
  access->entry = space->head;
  access->epoch = map->epoch;
  ok = entry_report (map, entry, commutes, of_writer, of_readers, deps);
  if (deps->count > before + 1)
    deps_sort (deps->items + before, deps->count - before);
  return ok;
}

/* --- insert --- */

/* Of an entry that has some. */
static inline pto_task_id
readers_last (const struct pto_map *map, const struct entry *entry)
{
  const struct block *block = &map->slots[entry->block].block;

  return entry->block != 0 ? block->readers[block->node.count - 1]
                           : entry->readers[entry->node.count - 1];
}

static inline void
readers_add (struct pto_map *map, struct entry *entry, pto_task_id task)
{
  if (entry->node.count > 0 && readers_last (map, entry) == task)
    return;
  if (entry->node.count == INLINE_READERS && entry->n_readers >= entry->prune_at
      && (entry->block == 0 || map->slots[entry->block].node.count == BLOCK_READERS))
    pto_readers_prune (map, entry);
  readers_append (map, entry, task);
}

/* Finds or makes the entry of the access, and removes what a write covers. NULL: no node. */
static __attribute__ ((noinline)) struct entry *
find_entry (struct pto_map *map, const struct pto_access *access, bool writes)
{
  struct pto_space *space = space_resolve (map, access->space);
  const struct pto_region *region = &access->region;
  struct box box;
  const struct box *where;
  struct entry *exact;
  struct entry *entry;
  uint32_t others = 0;

  space_settle (map, space);
  if (space_count (map, space) == 0)
    {
      space_begin (map, space);
      space->anchor = access->anchor;
      return pto_entry_new (map, space, region, true, NULL);
    }
  where = locate (map, space, region, &box, &exact);
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
            pto_entry_remove (map, entry);
          else
            {
              entry->node.alone = false;
              others++;
            }
        }
      if (exact != NULL && writes)
        exact->node.alone = others == 0;
    }
  return exact != NULL ? exact : pto_entry_new (map, space, region, others == 0, where);
}

extern inline __attribute__ ((always_inline)) void
pto_map_insert (struct pto_map *map, struct pto_access *access, PTOParamType type, pto_task_id task)
{
  bool writes = map->kinds[type].writes;
  struct entry *entry = NULL;

  map->externals.inserted = true;
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
  if (writes)
    {
      entry->writer = task;
      if ((entry->node.count | entry->node.grouped) > 0)
        readers_clear (map, entry);
      return;
    }
  if (__builtin_expect (type == PTO_PARAM_COMMUTATIVE, 0))
    access->token = pto_group_update (map, entry);
  else if (__builtin_expect (entry->node.grouped, 0))
    pto_group_read (map, entry);
  readers_add (map, entry, task);
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

extern inline __attribute__ ((always_inline)) void
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

/* --- life --- */

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
  map->slots = pto_pages_new (((size_t) map->pool.capacity + 1) * sizeof *map->slots, MAP_PRIVATE);
  if (!pto_externals_init (&map->externals, map->pool.capacity) || map->slots == NULL)
    {
      pto_map_free (map);
      return NULL;
    }
  pto_map_reset (map);
  return map;
}

void
pto_map_free (struct pto_map *map)
{
  if (map == NULL)
    return;
  while (map->indexes != NULL)
    pto_index_free (map, map->indexes);
  pto_pages_free (map->slots, ((size_t) map->pool.capacity + 1) * sizeof *map->slots);
  pto_externals_destroy (&map->externals);
  free (map);
}

void
pto_map_follow (struct pto_map *map, const struct pto_map *before)
{
  map->generation = before->generation;
  pto_map_reset (map);
}

void
pto_map_reset (struct pto_map *map)
{
  while (map->indexes != NULL)
    pto_index_free (map, map->indexes);
  /* Every space is empty from now on. */
  if (++map->generation == 0)
    map->generation = 1;
  map->top = 1;
  map->free = 0;
  map->pool.used = 0;
  map->cursor = 1;
  map->work = 0;
  map->retired = 0;
  map->taken = 0;
  map->tokens = 0;
  map->swept = false;
  pto_externals_reset (&map->externals);
}

void
pto_map_set_tails (struct pto_map *map, const uint32_t *tails)
{
  map->tails = tails;
  map->swept = false;
}

void
pto_map_set_hazards (struct pto_map *map, uint32_t hazards)
{
  uint8_t raw = hazards & PTO_HAZARD_RAW, waw = hazards & PTO_HAZARD_WAW;
  uint8_t war = hazards & PTO_HAZARD_WAR;

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
  map->kinds[PTO_PARAM_COMMUTATIVE] = map->kinds[PTO_PARAM_INOUT];
  map->kinds[PTO_PARAM_COMMUTATIVE].writes = false;
}

uint32_t
pto_map_used (const struct pto_map *map)
{
  return map->pool.used;
}

uint32_t
pto_map_peek_used (const struct pto_map *map)
{
  return pto_peek (&map->pool.used);
}

uint32_t
pto_map_capacity (const struct pto_map *map)
{
  return map->pool.capacity;
}
