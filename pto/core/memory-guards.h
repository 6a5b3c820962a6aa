/* memory-guards.h: which memory has guards around it that outlive a task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Buffers that the library makes for a program, and device memory, lie between bytes of a known
 * pattern. A submit asks for the fence around memory that the runtime did not make; the core looks
 * at it before and after the task. The list is the process's, and its children's: it lies in shared
 * memory, so that a child knows the fences of buffers that were made after it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "api/pto_limits.h"

/* Behind a PtoBuffer. */
#define PTO_FENCE_BYTES 64u
#define PTO_FENCE_BYTES_MAX 4096u
/* Live at one time in a process; each is a mapping or a piece of the arena mostly. */
#define PTO_FENCES_MAX PTO_MAX_BUFFERS

/* In pto_fence.guard of memory that a task is given: the guard may not be written yet. If it is not
 * whole before the task, the core does not look at it after the task, and reports nothing. */
#define PTO_FENCE_PERHAPS (UINT64_C (1) << 63)
/* There as well: the memory was given back, and lies aside. Guards are shorter than that. */
#define PTO_FENCE_GONE (UINT64_C (1) << 15)
/* There as well, of other memory: the version of the list in which it was found. If the list has
 * changed, the memory may be gone. */
#define PTO_FENCE_VERSION_SHIFT 16
#define PTO_FENCE_VERSION_MASK ((PTO_FENCE_PERHAPS >> PTO_FENCE_VERSION_SHIFT) - 1)

struct pto_fence
{
  uint64_t address; /* of the memory */
  uint64_t bytes;   /* of it; the guard begins behind */
  uint64_t guard;   /* bytes of the guard, at most PTO_FENCE_BYTES_MAX */
  uint64_t before;  /* bytes of another one, that ends where the memory begins; 0: there is none */
};

/* Copies them one field at a time: they were written so a moment ago, and a load of two of them
 * together would wait until both are in the cache. */
static inline void
pto_fence_copy (struct pto_fence *to, const struct pto_fence *from, uint32_t n)
{
  volatile const uint64_t *word = &from->address;

  for (uint32_t i = 0; i < n; i++, word += sizeof (struct pto_fence) / sizeof *word)
    to[i] = (struct pto_fence){
      .address = word[0], .bytes = word[1], .guard = word[2], .before = word[3]
    };
}

/* Makes the list, so that children that are forked from here on share it. Any thread. false: no
 * memory. */
bool pto_fence_init (void);
/* Writes the guards and notes them. The memory overlaps no other fenced one. Any thread. false: no
 * memory for the list, or PTO_FENCES_MAX of them. */
bool pto_fence_add (const struct pto_fence *fence);
/* Before the memory goes. Any thread; nothing in a process that has not added it. */
void pto_fence_remove (uint64_t address);
/* The memory was given back: from here on it is found with PTO_FENCE_GONE. Otherwise the same. */
void pto_fence_leave (uint64_t address);
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
/* Bytes from the first one overwritten before the memory to its begin; 0: none. */
uint64_t pto_fence_damage_before (const struct pto_fence *fence);
/* Makes both good: the next run is not to be blamed for this one. */
void pto_fence_mend (const struct pto_fence *fence);
/* PTO_FENCE_BYTES_MAX bytes that are a whole guard of any size. */
const uint8_t *pto_fence_whole (void);

/* --- what a guard holds ---
 *
 * Four numbers of 32 bits, which depend on where the guard begins: a, b, c, d. The guard is "a b c
 * d", "d c b a", "c a d b", "b d a c", and from there on the same with others. So what a kernel
 * copies from one guard to another is found, and what it copies further on in the same one, unless
 * it is one number that lands on its like: 7, 9 or 14 further on. Memory with guards is mapped at
 * the same address in all processes that look at it. All bytes are 128 or more, and no two
 * neighbours are alike: no small number, no text and no repeated byte looks like a guard. */
typedef uint32_t pto_fence_lanes __attribute__ ((vector_size (16)));

static inline __attribute__ ((always_inline)) pto_fence_lanes
pto_fence_lanes_of (uint64_t address)
{
  uint32_t mixed = (uint32_t) (address * UINT64_C (0x9e3779b97f4a7c15) >> 32);
  /* All bytes are even, or all are odd. In the constants they take turns. */
  uint32_t salt = (mixed & 0x7e7e7e7eu) + (mixed >> 31) * 0x01010101u;

  return (pto_fence_lanes){ salt, salt, salt, salt }
         ^ (pto_fence_lanes) { 0xb4a9fae5u, 0xd2cb96b7u, 0x8ef1cc9bu, 0xe89db0d1u };
}

#define PTO_FENCE_ROW(l, a, b, c, d) ((pto_fence_lanes){ (l)[a], (l)[b], (l)[c], (l)[d] })

static inline __attribute__ ((always_inline)) void
pto_fence_store (uint64_t address, pto_fence_lanes lanes)
{
  memcpy ((void *) (uintptr_t) address, &lanes, sizeof lanes);
}

static inline __attribute__ ((always_inline)) pto_fence_lanes
pto_fence_load (uint64_t address)
{
  pto_fence_lanes lanes;

  memcpy (&lanes, (const void *) (uintptr_t) address, sizeof lanes);
  return lanes;
}

/* These are about a guard of PTO_FENCE_BYTES, whose lanes are known. They cost a few instructions.
 */
static inline __attribute__ ((always_inline)) void
pto_fence_write_lanes (uint64_t address, pto_fence_lanes l)
{
  pto_fence_store (address, l);
  pto_fence_store (address + 16, PTO_FENCE_ROW (l, 3, 2, 1, 0));
  pto_fence_store (address + 32, PTO_FENCE_ROW (l, 2, 0, 3, 1));
  pto_fence_store (address + 48, PTO_FENCE_ROW (l, 1, 3, 0, 2));
}

/* All zeros: behind its first 16 bytes the guard is as they say. */
static inline __attribute__ ((always_inline)) pto_fence_lanes
pto_fence_difference_behind (uint64_t address, pto_fence_lanes l)
{
  return (pto_fence_load (address + 16) ^ PTO_FENCE_ROW (l, 3, 2, 1, 0))
         | (pto_fence_load (address + 32) ^ PTO_FENCE_ROW (l, 2, 0, 3, 1))
         | (pto_fence_load (address + 48) ^ PTO_FENCE_ROW (l, 1, 3, 0, 2));
}

/* All zeros: the guard is whole. */
static inline __attribute__ ((always_inline)) pto_fence_lanes
pto_fence_difference (uint64_t address, pto_fence_lanes l)
{
  return (pto_fence_load (address) ^ l) | pto_fence_difference_behind (address, l);
}

static inline __attribute__ ((always_inline)) bool
pto_fence_is_zero (pto_fence_lanes lanes)
{
  uint64_t halves[2];

  memcpy (halves, &lanes, sizeof lanes);
  return (halves[0] | halves[1]) == 0;
}

void pto_fence_write_any (uint64_t address, uint64_t bytes);
bool pto_fence_is_whole_any (uint64_t address, uint64_t bytes);

/* Writes the guard that begins at the address. */
static inline __attribute__ ((always_inline)) void
pto_fence_write (uint64_t address, uint64_t bytes)
{
  if (bytes == PTO_FENCE_BYTES)
    pto_fence_write_lanes (address, pto_fence_lanes_of (address));
  else
    pto_fence_write_any (address, bytes);
}
