/* fence.h: which memory has a guard behind it that outlives a task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Buffers that the library makes for a program, and device memory, end in bytes of a known pattern.
 * Whoever submits asks for the fence behind an output that the runtime did not make; whoever ran a
 * task that writes there looks at it. The list is the process's, and its children's: it lies in
 * shared memory, so that a child knows the fences of buffers that were made after it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../api/pto_limits.h"

/* Behind a PtoBuffer. */
#define PTO_FENCE_BYTES 64u
#define PTO_FENCE_BYTES_MAX 4096u
/* Live at one time in a process; each is a mapping or a piece of the arena mostly. */
#define PTO_FENCES_MAX PTO_MAX_BUFFERS

struct pto_fence
{
  uint64_t address; /* of the memory */
  uint64_t bytes;   /* of it; the guard begins behind */
  uint64_t guard;   /* bytes of the guard, at most PTO_FENCE_BYTES_MAX */
};

/* Copies them one field at a time: they were written so a moment ago, and a load of two of them
 * together would wait until both are in the cache. */
static inline void
pto_fence_copy (struct pto_fence *to, const struct pto_fence *from, uint32_t n)
{
  volatile const uint64_t *word = &from->address;

  for (uint32_t i = 0; i < n; i++, word += sizeof (struct pto_fence) / sizeof *word)
    to[i] = (struct pto_fence){ .address = word[0], .bytes = word[1], .guard = word[2] };
}

/* Makes the list, so that children that are forked from here on share it. Any thread. false: no
 * memory. */
bool pto_fence_init (void);
/* Writes the guard and notes it. The memory overlaps no other fenced one. Any thread. false: no
 * memory for the list, or PTO_FENCES_MAX of them. */
bool pto_fence_add (const struct pto_fence *fence);
/* Before the memory goes. Any thread; nothing in a process that has not added it. */
void pto_fence_remove (uint64_t address);
/* Finds the fenced memory that an address lies in. Any thread, also beside add and remove. version
 * changes whenever the list does: what was found is true as long as it stands. */
bool pto_fence_find (uint64_t address, struct pto_fence *fence);
uint64_t pto_fence_version (void);
/* Lists that this process knows: its own and its ancestors'. W: under a lock, release; R: anybody,
 * acquire, unless only whether there is one counts. */
extern _Atomic uint32_t pto_fence_lists;
/* false: nothing in this process was ever fenced. */
static inline bool
pto_fence_any (void)
{
  return atomic_load_explicit (&pto_fence_lists, memory_order_relaxed) != 0;
}
/* Bytes from the end of the memory to the last one overwritten; 0: none. */
uint64_t pto_fence_damage (const struct pto_fence *fence);
/* Makes it good: the next run is not to be blamed for this one. */
void pto_fence_mend (const struct pto_fence *fence);
/* PTO_FENCE_BYTES_MAX bytes: no float, no small integer, no address, and no two neighbours alike.
 */
const uint8_t *pto_fence_pattern (void);
