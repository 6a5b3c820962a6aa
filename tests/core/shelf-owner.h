/* shelf-owner.h: a scheduler that takes tasks from its shelf, for test-shelf-explore.c.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/core/engine.h"
#include "../../pto/core/batch.h"

/* One batch; gives how many of it were begun. */
uint32_t shelf_owner_run (struct pto_shelf *shelf, struct pto_slot *slots, uint32_t n,
                          void (*begun) (struct pto_slot *slot));
