/* oracle.h: what must the TensorMap answer? Regions as one flag per byte, entries as a plain list.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/core/tensor-map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_BYTES 1024u /* the arena that all tensors of one test lie in */
#define ORACLE_WORDS (ORACLE_BYTES / 64)

/* A generator of its own, so that a seed gives the same test everywhere. */
struct oracle_random
{
  uint64_t state;
};

uint64_t oracle_random (struct oracle_random *random);
/* 0 to n - 1. */
uint32_t oracle_below (struct oracle_random *random, uint32_t n);

/* A contiguous tensor. Every field has a value, the dimensions that there are not included. */
Tensor oracle_make (uint64_t addr, const uint64_t shapes[], uint32_t n_dims, DataType dtype);

/* One flag for each byte of the arena. */
struct oracle_bytes
{
  uint64_t words[ORACLE_WORDS];
};

/* The bytes of a tensor; false when it leaves the arena that begins at base. */
bool oracle_touch (struct oracle_bytes *bytes, const Tensor *tensor, uint64_t base);
bool oracle_overlap (const struct oracle_bytes *a, const struct oracle_bytes *b);
bool oracle_covers (const struct oracle_bytes *a, const struct oracle_bytes *b);
bool oracle_same (const struct oracle_bytes *a, const struct oracle_bytes *b);

enum oracle_shapes
{
  ORACLE_VIEWS,    /* views, transposes and reshapes of one whole-arena tensor at a time */
  ORACLE_EXTERNAL, /* the same on tensors that begin anywhere in the arena */
  ORACLE_ANY       /* arbitrary strides too, overlapping ones among them */
};

/* A random tensor within the arena at base. Its buffer is where it was made: addr and size tell. */
Tensor oracle_tensor (struct oracle_random *random, uint64_t base, enum oracle_shapes shapes);

/* The map's rules without any index, pool or cleaning. */
struct oracle_entry
{
  struct oracle_bytes bytes;
  pto_task_id writer;
  pto_task_id *readers;
  uint32_t n_readers;
  /* Of updates in any order. open: the writer and those before are what all updaters come after. */
  bool open;
  pto_task_id *updaters;
  uint32_t n_updaters;
  struct pto_deps before; /* with whether they read (WAR) or wrote (RAW | WAW) */
};

struct oracle_map
{
  struct oracle_entry *entries;
  uint32_t n;
  uint32_t hazards;
};

void oracle_map_clear (struct oracle_map *map);
/* Appends to deps whatever the access depends on, retired or not. */
void oracle_map_lookup (const struct oracle_map *map, const struct oracle_bytes *bytes,
                        PTOParamType type, struct pto_deps *deps);
void oracle_map_insert (struct oracle_map *map, const struct oracle_bytes *bytes, PTOParamType type,
                        pto_task_id task);

/* Sorts by task, merges the kinds of one task, leaves out what is retired (tails may be NULL). */
void oracle_normalize (struct pto_deps *deps, const uint32_t *tails);
