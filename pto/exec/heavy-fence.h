/* heavy-fence.h: fences of which one side is free.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two that order as sequentially consistent fences do where one of them is heavy: of stores before
 * and loads behind, in two threads, at least one load sees the other's store. Light ones cost
 * nothing where the system can put a fence into every thread of the process for the heavy one
 * (membarrier(2)).
 */
#pragma once

#include "pto-atomic.h"

#include <stdbool.h>

#if defined(PTO_EXPLORE) || defined(PTO_WEAK)
#define pto_light_fence() pto_fence_seq_cst ()
#define pto_heavy_fence() (pto_fence_seq_cst (), true)
#else
extern bool pto_heavy_fence_reaches_all;
#define pto_light_fence()                                                                         \
  (__builtin_expect (pto_heavy_fence_reaches_all, 1) ? atomic_signal_fence (memory_order_seq_cst) \
                                                     : atomic_thread_fence (memory_order_seq_cst))
/* false: it could not be done this time. */
bool pto_heavy_fence (void);
#endif
