/* batch.c: who takes back what a scheduler has taken from a queue, and not begun?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch.h"

#include "engine.h"

bool
pto_shelf_take_slowly (struct pto_shelf *shelf, struct pto_exec *exec, uint64_t position)
{
  /* Acquire: end as the thief has left it; pairs with its release. */
  while (pto_load_acquire (&shelf->thief) != 0)
    pto_yield (exec);
  if (pto_load_relaxed (&shelf->end) > position)
    return true;
  pto_store_relaxed (&shelf->taken, position);
  return false;
}

bool
pto_shelf_is_stuck (struct pto_shelf *shelf, uint64_t now, uint64_t ns)
{
  uint64_t taken = pto_load_relaxed (&shelf->taken);

  if (pto_load_relaxed (&shelf->end) <= taken)
    return false;
  if (pto_load_relaxed (&shelf->seen) == taken)
    return now - pto_load_relaxed (&shelf->seen_at) >= ns;
  /* In this order: somebody who reads the new position with the old time takes it for stuck too
   * early, and no harm is done but to speed. */
  pto_store_relaxed (&shelf->seen_at, now);
  pto_store_relaxed (&shelf->seen, taken);
  return false;
}

uint32_t
pto_shelf_take_back (struct pto_shelf *shelf, struct pto_engine *engine, uint32_t shard)
{
  uint64_t end;
  uint64_t taken;
  uint32_t n = 0;

  if (pto_exchange_acquire (&shelf->thief, 1) != 0)
    return 0;
  /* Acquire, and in this order; see batch.h. */
  if (pto_heavy_fence () && (end = pto_load_acquire (&shelf->end))
      && (taken = pto_load_relaxed (&shelf->taken)) < end)
    {
      for (uint64_t p = taken; p < end; p++, n++)
        pto_engine_push_ready (engine, shelf->slots[p % PTO_POP_MAX], shard);
      pto_store_relaxed (&shelf->end, taken);
    }
  /* Release: end, and that the slots have been read. */
  pto_store_release (&shelf->thief, 0);
  return n;
}
