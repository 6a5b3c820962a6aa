/* shelf-owner.c: a scheduler that takes tasks from its shelf, for test-shelf-explore.c.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Compiled with the instrumentation of weak.h, as the shelf is.
 */
#include "shelf-owner.h"

uint32_t
shelf_owner_run (struct pto_shelf *shelf, struct pto_slot *slots, uint32_t n,
                 void (*begun) (struct pto_slot *slot))
{
  uint32_t i = 0;

  for (uint32_t k = 0; k < n; k++)
    shelf->slots[k] = &slots[k];
  pto_shelf_open (shelf, n);
  do
    begun (shelf->slots[i]);
  while (++i < n && pto_shelf_take (shelf, NULL));
  return i;
}
