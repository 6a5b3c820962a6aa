/* tensor-map-sweep.h: when is what nobody can ask for any more given back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "space.h"

/* Removes all stale entries there are. */
void pto_map_sweep_all (struct pto_map *map);

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
