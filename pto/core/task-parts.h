/* task-parts.h: how far has a task come that is run in parts?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The blocks of a task, and the members of a party (core-placement.h), are parts. A task of blocks
 * that may run anywhere stands in its ready queue like any other: whoever pops it claims the next
 * blocks and puts it back as long as there are more. So only one claims at a time, tasks of blocks
 * take turns with each other and with all others, and whoever is hungry is rung as ever.
 */
#pragma once

#include "exec/pto-atomic.h"
#include "ring.h"

/* Beside the number of a slot's kernel: slot->parts is there. */
#define PTO_KERNEL_PARTS (1u << 30)

struct pto_parts
{
  uint32_t n_blocks;
  /* The first that nobody has claimed. W, R: who has popped the slot, which the queue orders; of a
   * party who has the line's lock. */
  uint32_t next;
  /* Parts that have not ended. W: schedulers (acq_rel: the last one sees what the others did). */
  _Atomic uint32_t left;
  _Atomic uint32_t failed; /* one of them has. Ordered by left */
};

static inline void
pto_parts_init (struct pto_parts *parts, uint32_t n_blocks, uint32_t n_parts)
{
  parts->n_blocks = n_blocks;
  parts->next = 0;
  atomic_init (&parts->left, n_parts);
  atomic_init (&parts->failed, 0);
}

static inline bool
pto_slot_has_parts (const struct pto_slot *slot)
{
  return __builtin_expect (slot->kernel >= PTO_KERNEL_PARTS, 0)
         && (slot->kernel & PTO_KERNEL_PARTS) != 0 && slot->kernel != UINT32_MAX;
}

/* So many have ended. true: these were the last ones, and the task is over, perhaps *failed. */
static inline bool
pto_parts_leave (struct pto_parts *parts, uint32_t n, bool *failed)
{
  if (*failed)
    pto_store_relaxed (&parts->failed, 1);
  if (pto_fetch_sub_acq_rel (&parts->left, n) != n)
    return false;
  *failed = pto_load_relaxed (&parts->failed) != 0;
  return true;
}
