/* space.h: what does a record of memory keep of its regions?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
  bool pinned;      /* of a buffer: somebody knows its address. W: the engine */
  uint64_t anchor;  /* where its tensors begin: the index counts from here */
  uint64_t creator; /* of a buffer: the task that outputs it. W: the engine */
  union
  {
    /* finds entries by where they lie, when there are many; or the space merged into */
    void *index_or_heir;
    uint64_t end;
  };
};
