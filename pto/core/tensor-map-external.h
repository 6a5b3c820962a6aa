/* tensor-map-external.h: which space is memory of the caller in?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "space.h"

struct externals;

/* The space of memory that the caller owns: spaces whose extents overlap are one. The pointer holds
 * until the first call of this function after an insert: one submit long. NULL: nothing is known of
 * that memory, and there is no room for one more space until tasks retire. A look-up in NULL finds
 * nothing, rightly; an insert is lost. There is room for every entry of the pool, and for the first
 * 4096 spaces that a submit asks for besides. */
struct pto_space *pto_map_external_space (struct pto_map *map, uint64_t addr, uint64_t size);

/* Room for the spaces of so many entries. false: no memory. */
bool pto_externals_init (struct externals *externals, uint32_t n_entries);
void pto_externals_destroy (struct externals *externals);
/* Between runs: there are none. */
void pto_externals_reset (struct externals *externals);
