/* tensor_map.h: which earlier tasks does an access to a tensor depend on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The map holds, for every live region of memory, the task that wrote it last and the tasks that
 * have read it since. Owner: the submitter. No other thread touches it; it has no atomics. Source:
 * seed 000 section 5, seed 002 section 7; WAR: engine notes of the architecture chapter.
 */
#pragma once

#include "region.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define PTO_RINGS 4u

/* A task, for ever: ring << 32 | position in the ring's submission order. */
typedef uint64_t pto_task_id;
#define PTO_TASK_NONE UINT64_MAX
#define PTO_TASK_ID(ring, local) (((uint64_t) (ring) << 32) | (uint32_t) (local))
#define PTO_TASK_RING(id) ((uint32_t) ((id) >> 32))
#define PTO_TASK_LOCAL(id) ((uint32_t) (id))

/* Why one task must wait for another. */
enum
{
  PTO_HAZARD_RAW = 1,
  PTO_HAZARD_WAW = 2,
  PTO_HAZARD_WAR = 4,
  /* Goes with a kind: that the regions overlap was assumed, not proved (region.h, PTO_REGION_WORK).
   */
  PTO_HAZARD_UNSURE = 8
};

struct pto_dep
{
  pto_task_id task;
  uint32_t kinds; /* PTO_HAZARD_* */
};

/* A growing list; memory is kept from submit to submit. May name one task more than once: the
 * engine merges. */
struct pto_deps
{
  struct pto_dep *items;
  uint32_t count;
  uint32_t capacity;
};

/* Appends. false: no memory. */
static inline bool
pto_deps_add (struct pto_deps *deps, pto_task_id task, uint32_t kinds)
{
  if (__builtin_expect (deps->count == deps->capacity, 0))
    {
      uint32_t capacity = deps->capacity > 0 ? deps->capacity * 2 : 64;
      struct pto_dep *items = realloc (deps->items, capacity * sizeof *items);

      if (items == NULL)
        return false;
      deps->items = items;
      deps->capacity = capacity;
    }
  deps->items[deps->count++] = (struct pto_dep){ .task = task, .kinds = kinds };
  return true;
}

/* A few tasks, for ever. */
struct pto_task_set
{
  pto_task_id *items;
  uint32_t count;
  uint32_t capacity;
};

static inline bool
pto_task_set_has (const struct pto_task_set *set, pto_task_id id)
{
  for (uint32_t i = 0; i < set->count; i++)
    if (set->items[i] == id)
      return true;
  return false;
}

struct pto_map;

/* What a map begins with. */
struct pto_map_pool
{
  uint32_t capacity; /* nodes */
  uint32_t used;
};

/* The regions of one buffer, embedded in the buffer's record. Zeroed memory is an empty space; so
 * is what a space held before pto_map_reset(). It must not move or be reused before pto_map_drop()
 * or pto_map_reset(). W, R: the map, but for the creator. */
struct pto_space
{
  uint32_t generation; /* of the map that filled it: another one means empty */
  uint32_t head;       /* its entries, as long as there is no index */
  uint32_t count;
  bool merged;      /* external: into another space, which index_or_heir names */
  bool implied;     /* it has one entry, not made yet: [anchor, end), written by the creator */
  uint64_t anchor;  /* where its tensors begin: the index counts from here */
  uint64_t creator; /* of a buffer: the task that outputs it. W: the engine */
  union
  {
    /* finds entries by where they lie, when there are many; or the space merged into */
    void *index_or_heir;
    uint64_t end;
  };
};

struct pto_map_config
{
  uint32_t pool; /* entries and reader blocks together */
  /* PTO_HAZARD_*: RAW|WAW = the seeds' exact edges (OUTPUT looks nothing up), all = default */
  uint32_t hazards;
  /* The first task of each ring that is not retired yet: an id below is long gone and satisfied.
   * Read at each call. */
  const uint32_t *tails;
  /* Tasks that have failed and are retired: what they wrote is still theirs, nobody may read it.
   * May be NULL. */
  const struct pto_task_set *failed;
};

/* An id below its ring's tail: retired, nothing waits for it any more. Positions wrap at 32 bits.
 */
static inline bool
pto_task_is_retired (const uint32_t *tails, pto_task_id id)
{
  return (int32_t) (PTO_TASK_LOCAL (id) - tails[PTO_TASK_RING (id)]) < 0;
}

/* NULL when memory is not to be had. Set-up is O(used): the pool is mapped, not touched. */
struct pto_map *pto_map_new (const struct pto_map_config *config);
void pto_map_free (struct pto_map *map);
/* Forgets everything (between runs). Costs what was used, not what could have been. */
void pto_map_reset (struct pto_map *map);
void pto_map_set_hazards (struct pto_map *map, uint32_t hazards);

/* The space of memory that the caller owns: spaces whose extents overlap are one. The pointer holds
 * until the first call of this function after an insert: one submit long. NULL: nothing is known of
 * that memory, and there is no room for one more space until tasks retire. A look-up in NULL finds
 * nothing, rightly; an insert is lost. There is room for every entry of the pool, and for the first
 * 4096 spaces that a submit asks for besides. */
struct pto_space *pto_map_external_space (struct pto_map *map, uint64_t addr, uint64_t size);

/* One access of a submit, from its look-up to its insert. */
struct pto_access
{
  struct pto_space *space; /* NULL: nothing is known of that memory, nor recorded */
  uint64_t anchor;
  uint32_t entry; /* of exactly this region, found by the look-up; 0: none */
  uint64_t epoch; /* of the map by then */
  bool fresh;     /* nobody has accessed the space, and it is dropped before the task retires */
  struct pto_region region;
};

/* The tensor is resolved: buffer.addr holds its address. */
static inline void
pto_access_init (struct pto_access *access, struct pto_space *space, const Tensor *tensor)
{
  access->space = space;
  access->anchor = tensor->buffer.addr;
  access->entry = 0;
  access->fresh = false;
  pto_region_init (&access->region, tensor);
}

/* Appends what a task with this access must wait for, by ascending id. Records nothing; frees stale
 * entries that it meets. false: no memory for deps. */
bool pto_map_lookup (struct pto_map *map, struct pto_access *access, PTOParamType type,
                     struct pto_deps *deps);

/* Records the access, looked up before or not. All lookups of a submit come before its first
 * insert. Needs at most PTO_MAP_INSERT_NODES pool nodes, which pto_map_reserve() has assured;
 * without a node the access goes unrecorded. */
#define PTO_MAP_INSERT_NODES 1u
void pto_map_insert (struct pto_map *map, const struct pto_access *access, PTOParamType type,
                     pto_task_id task);

/* Are n nodes free right now? */
static inline bool
pto_map_has_room (const struct pto_map *map, uint32_t n)
{
  const struct pto_map_pool *pool = (const struct pto_map_pool *) map;

  return pool->capacity - pool->used >= n;
}

/* Are n nodes free? Cleans stale entries first where needed. false: the caller waits for retirement
 * and asks again. */
bool pto_map_reserve (struct pto_map *map, uint32_t n);

/* The tails moved by n tasks in all: every 64 of them a batch of stale entries is freed. */
void pto_map_retired (struct pto_map *map, uint32_t n);

/* The buffer is gone: frees all of its entries. */
void pto_map_drop (struct pto_map *map, struct pto_space *space);

/* Nodes in use, and the pool's size. */
uint32_t pto_map_used (const struct pto_map *map);
uint32_t pto_map_capacity (const struct pto_map *map);
