/* tensor-map.h: which earlier tasks does an access to a tensor depend on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The map holds, for every live region of memory, the task that wrote it last and the tasks that
 * have read it since. Owner: the submitter. No other thread touches it; it has no atomics. Source:
 * seed 000 section 5, seed 002 section 7; doc/inside-engine.md says what each kind of access waits
 * for.
 */
#pragma once

#include "region.h"
#include "space.h"
#include "task.h"
#include "tensor-map-external.h"
#include "tensor-map-sweep.h"

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

/* NULL when memory is not to be had. Set-up is O(used): the pool is mapped, not touched. */
struct pto_map *pto_map_new (const struct pto_map_config *config);
void pto_map_free (struct pto_map *map);
/* In the place of the other one, which is freed: spaces that that one has filled are empty here. */
void pto_map_follow (struct pto_map *map, const struct pto_map *before);
/* Forgets everything (between runs). Costs what was used, not what could have been. */
void pto_map_reset (struct pto_map *map);
void pto_map_set_hazards (struct pto_map *map, uint32_t hazards);
/* From now on these say which tasks are retired. */
void pto_map_set_tails (struct pto_map *map, const uint32_t *tails);

/* One access of a submit, from its look-up to its insert. */
struct pto_access
{
  struct pto_space *space; /* NULL: nothing is known of that memory, nor recorded */
  uint64_t anchor;
  uint32_t entry; /* of exactly this region, found by the look-up; 0: none */
  uint64_t epoch; /* of the map by then */
  uint32_t
      token;  /* of an update that commutes, once it is recorded: who has the same takes turns */
  bool fresh; /* nobody has accessed the space, and it is dropped before the task retires */
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
/* As many more of one that commutes. */
#define PTO_MAP_GROUP_NODES 1u
void pto_map_insert (struct pto_map *map, struct pto_access *access, PTOParamType type,
                     pto_task_id task);

/* The buffer is gone: frees all of its entries. */
void pto_map_drop (struct pto_map *map, struct pto_space *space);

/* Nodes in use, and the pool's size. */
uint32_t pto_map_used (const struct pto_map *map);
/* The same for somebody who has no part in the run (inspect-read.h). */
uint32_t pto_map_peek_used (const struct pto_map *map);
uint32_t pto_map_capacity (const struct pto_map *map);
