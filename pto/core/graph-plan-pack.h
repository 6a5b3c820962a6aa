/* graph-plan-pack.h: how does a graph go to another process, and come from one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As bytes: what it was built of. The receiver builds and completes it anew, and believes nothing.
 */
#pragma once

#include "graph-plan.h"

/* graph: complete, of so many bytes; and those. */
uint64_t pto_plan_packed_size (const struct pto_plan *graph);
void pto_plan_pack (const struct pto_plan *graph, void *bytes);
/* graph: an empty one, which is complete then, as the one that was packed. It reads each byte once:
 * somebody may write there meanwhile. Fails when they are none of a graph's; then graph can only be
 * freed. */
enum pto_status pto_plan_unpack (struct pto_plan *graph, const void *bytes, uint64_t size,
                                 struct pto_report *report);
