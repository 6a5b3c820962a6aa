/* task.h: what is a task called, and why must one wait for another?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_limits.h"
#include "arrays.h"

#define PTO_RINGS PTO_N_RINGS

/* A task, for ever: ring << 32 | position in the ring's submission order. */
typedef uint64_t pto_task_id;
#define PTO_TASK_NONE UINT64_MAX
#define PTO_TASK_ID(ring, local) (((uint64_t) (ring) << 32) | (uint32_t) (local))
#define PTO_TASK_RING(id) ((uint32_t) ((id) >> 32))
#define PTO_TASK_LOCAL(id) ((uint32_t) (id))

/* Instead of a kernel: a task that only orders. */
#define PTO_KERNEL_NONE UINT32_MAX
/* No endpoint is given more tasks at a time. */
#define PTO_TOGETHER_MAX 64u

/* Why one task must wait for another. */
enum
{
  PTO_HAZARD_RAW = 1,
  PTO_HAZARD_WAW = 2,
  PTO_HAZARD_WAR = 4,
  /* Goes with a kind: that the regions overlap was assumed, not proved (region.h, PTO_REGION_WORK).
   */
  PTO_HAZARD_UNSURE = 8,
  /* No hazard at all: the submit names the producer. */
  PTO_HAZARD_EXPLICIT = 16
};

/* Beside PTO_HAZARD_* in a dep: the producer's memory is used. */
#define PTO_DEP_RETAIN 0x100u

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
  if (!pto_array_has_room (deps->items, deps->count, deps->capacity))
    return false;
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

/* An id below its ring's tail: retired, nothing waits for it any more. Positions wrap at 32 bits.
 */
static inline bool
pto_task_is_retired (const uint32_t *tails, pto_task_id id)
{
  return (int32_t) (PTO_TASK_LOCAL (id) - tails[PTO_TASK_RING (id)]) < 0;
}
