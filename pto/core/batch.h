/* batch.h: what has a scheduler taken from a queue, and not begun?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A scheduler that runs its tasks itself takes several short ones at a time. If one of them takes
 * long after all, the others stand on its shelf while cores elsewhere are idle: a scheduler that
 * has nothing to do puts them back into the queue.
 *
 * Positions count on and on; those of one batch begin at a multiple of its size, so that slot i of
 * a batch stands at slots[i]. The owner takes one with a store and a load, which is all that it may
 * cost; the rest is up to the thief:
 *
 *   owner   taken = p + 1, light fence, thief?   0: p is the owner's, unless end says p or less
 *   thief   thief = 1, heavy fence, end?, taken? those from taken to end are the thief's: end =
 *           taken, and thief = 0 (release)
 *
 * A heavy fence is one in every thread of the process (membarrier(2)), so of the two at least one
 * sees the other: either the thief sees that p was taken, or the owner sees the thief, waits until
 * it is done, and reads end behind it. The thief reads end before taken, and the owner stores taken
 * before end when it opens a batch: the first of a batch, which it does not ask for, is never the
 * thief's. Slots are written while nobody can steal (taken is end or more, and a thief that read
 * otherwise holds up the owner before that).
 */
#pragma once

#include "exec/heavy-fence.h"
#include "exec/pto-exec.h"
#include "ready.h"

#define PTO_SHELF_NEVER UINT64_MAX

struct pto_shelf
{
  struct pto_slot *slots[PTO_POP_MAX];
  /* W: the owner (release: the slots), the thief (before its release of thief); R: both. */
  _Atomic uint64_t end;
  /* W: the owner; R: thieves behind the heavy fence, and those who look whether it moves. */
  _Atomic uint64_t taken;
  /* 1: somebody takes back. W: thieves (acquire by exchange, release); R: the owner (acquire). */
  _Atomic uint32_t thief;
  /* Where somebody saw it stand, and since when. W, R: whoever looks; a hint, relaxed. */
  _Atomic uint64_t seen;
  _Atomic uint64_t seen_at;
};

/* The owner has filled slots[0] to slots[n - 1], and begins with the first. */
static inline void
pto_shelf_open (struct pto_shelf *shelf, uint32_t n)
{
  uint64_t first = (pto_load_relaxed (&shelf->taken) + PTO_POP_MAX - 1) / PTO_POP_MAX * PTO_POP_MAX;

  pto_store_relaxed (&shelf->taken, first + 1);
  /* Release: slots and taken; pairs with the thief's load. */
  pto_store_release (&shelf->end, first + n);
}

bool pto_shelf_take_slowly (struct pto_shelf *shelf, struct pto_exec *exec, uint64_t position);

/* May the owner begin the next one? false: somebody has taken back what was left. */
static inline bool
pto_shelf_take (struct pto_shelf *shelf, struct pto_exec *exec)
{
  uint64_t position = pto_load_relaxed (&shelf->taken);

  pto_store_relaxed (&shelf->taken, position + 1);
  pto_light_fence ();
  /* Acquire: end as a thief that is gone has left it. */
  if (__builtin_expect (pto_load_acquire (&shelf->thief) == 0, 1)
      && __builtin_expect (pto_load_relaxed (&shelf->end) > position, 1))
    return true;
  return pto_shelf_take_slowly (shelf, exec, position);
}

/* Does something stand there that has not moved for so long? Any thread. */
bool pto_shelf_is_stuck (struct pto_shelf *shelf, uint64_t now, uint64_t ns);
/* Puts back into the queues what is left. An actor of the engine that is not the shelf's owner;
 * gives how many there were. */
uint32_t pto_shelf_take_back (struct pto_shelf *shelf, struct pto_engine *engine, uint32_t shard);
