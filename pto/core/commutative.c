/* commutative.c: who of those that update a region in any order does so next?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "commutative.h"

void
pto_turn_claim (struct pto_slot *slot, const uint32_t tokens[], uint32_t n)
{
  struct pto_claims *claims = pto_slot_claims (slot);

  claims->n = 0;
  claims->queue = slot->queue;
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t token = tokens[i] % PTO_TURNS;
      uint32_t k = 0;

      while (k < claims->n && pto_claims_item (claims, k)->token != token)
        k++;
      if (k == claims->n)
        *pto_claims_item (claims, claims->n++) = (struct pto_claim){ .slot = slot, .token = token };
    }
  slot->queue = PTO_QUEUE_TURN;
}

static void
begin_turn (struct pto_slot *slot, const struct pto_claims *claims)
{
  slot->queue = (uint16_t) claims->queue;
  slot->has_turn = true;
}

/* Under the lock, which brings to who has his turn what those before him at a token did, whose
 * schedulers have left since. */
bool
pto_turn_enter (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_claims *claims = pto_slot_claims (slot);
  bool first;

  pto_engine_lock (engine, &engine->turns.lock);
  claims->missing = 0;
  for (uint32_t i = 0; i < claims->n; i++)
    {
      struct pto_claim *claim = pto_claims_item (claims, i);
      struct pto_claim **last = &engine->turns.last[claim->token];

      claim->behind = NULL;
      if (*last != NULL)
        {
          (*last)->behind = claim;
          claims->missing++;
        }
      *last = claim;
    }
  first = claims->missing == 0;
  if (first)
    begin_turn (slot, claims);
  pto_store_release (&engine->turns.lock, 0);
  return first;
}

struct pto_slot *
pto_turn_leave (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_claims *claims = pto_slot_claims (slot);
  struct pto_slot *followers = NULL;

  pto_engine_lock (engine, &engine->turns.lock);
  slot->has_turn = false;
  for (uint32_t i = claims->n; i-- > 0;)
    {
      struct pto_claim *claim = pto_claims_item (claims, i);
      struct pto_claim *behind = claim->behind;

      if (behind == NULL)
        engine->turns.last[claim->token] = NULL;
      else if (--pto_slot_claims (behind->slot)->missing == 0)
        {
          struct pto_claims *theirs = pto_slot_claims (behind->slot);

          begin_turn (behind->slot, theirs);
          theirs->follower = followers;
          followers = behind->slot;
        }
    }
  pto_store_release (&engine->turns.lock, 0);
  return followers;
}
