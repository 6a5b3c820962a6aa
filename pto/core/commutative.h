/* commutative.h: who of those that update a region in any order does so next?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Updates that commute do not come after each other, but only one task at a time runs that updates
 * a region. The map gives those of one region the same token. A task that has nothing to wait for
 * any more stands behind the others at each of its tokens; it goes to where ready tasks wait when
 * it is the first one at all of them, and leaves when it is over. It waits without a core.
 * Everybody comes to all of his tokens in one moment, under one lock, so those who wait for each
 * other's are in one order at all of them, and nobody waits for ever.
 */
#pragma once

#include "engine.h"

/* What a slot has instead of a ready queue until it has its turn. */
#define PTO_QUEUE_TURN (PTO_QUEUES_MAX + 1)

struct pto_claim
{
  struct pto_slot *slot;
  struct pto_claim *behind; /* under the lock */
  uint64_t token;
};

/* In a task's storage, right before its payload; the claims are before this, the last one first. */
struct pto_claims
{
  uint32_t n;
  uint32_t missing;          /* under the lock: tokens at which somebody is before it */
  uint64_t queue;            /* where it waits then */
  struct pto_slot *follower; /* of those who have their turn through one who left: the next */
};

/* Bytes before the payload of a task with so many updates that commute. */
static inline uint64_t
pto_claims_size (uint32_t n)
{
  uint64_t bytes = sizeof (struct pto_claims) + n * sizeof (struct pto_claim);

  return n > 0 ? (bytes + PTO_STORAGE_ALIGN - 1) / PTO_STORAGE_ALIGN * PTO_STORAGE_ALIGN : 0;
}

static inline struct pto_claims *
pto_slot_claims (const struct pto_slot *slot)
{
  return (struct pto_claims *) slot->payload - 1;
}

static inline struct pto_claim *
pto_claims_item (struct pto_claims *claims, uint32_t i)
{
  return (struct pto_claim *) claims - 1 - i;
}

/* The slot, which is linked and not let go, waits for its turn at these tokens, of
 * which some may be the same. */
void pto_turn_claim (struct pto_slot *slot, const uint32_t tokens[], uint32_t n);
/* A task with claims has nothing else to wait for: its queue is its own then. false: it is not its
 * turn, and who asks must not look at it any more. */
bool pto_turn_enter (struct pto_engine *engine, struct pto_slot *slot);
/* It is over. Gives those whose turn it is by now, linked by followers; their queues are their own.
 */
struct pto_slot *pto_turn_leave (struct pto_engine *engine, struct pto_slot *slot);
