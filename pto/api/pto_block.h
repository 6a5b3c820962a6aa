/* pto_block.h: which part of its task is a kernel?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task may be one kernel that runs as many blocks (SPMD), or kernels for the cube core and the
 * vector cores of one cluster (mixed), or blocks of these. Every one gets the same arguments; args,
 * as the kernel got it, says which one it is. Valid C17 and C++17. Thread safety: on the thread
 * that runs the kernel. Source: seed 000 sections 17 and 18.
 */
#pragma once

#include <stdint.h>

#include "pto_limits.h"

/* What stands before args[0]: the block's number, how many there are, and which of the vector cores
 * of its cluster it is. */
#define PTO_BLOCK_WORD(idx, num, sub) \
  ((uint64_t) (idx) | (uint64_t) (num) << 28 | (uint64_t) (sub) << 56)
/* Of an ordinary task. */
#define PTO_BLOCK_ALONE PTO_BLOCK_WORD (0, 1, 0)

/* 0 to get_block_num() - 1. */
static inline uint32_t
get_block_idx (const int64_t *args)
{
  return (uint32_t) ((uint64_t) args[-1] & PTO_MAX_BLOCKS);
}

/* 1 in a task that has no blocks. */
static inline uint32_t
get_block_num (const int64_t *args)
{
  return (uint32_t) ((uint64_t) args[-1] >> 28 & PTO_MAX_BLOCKS);
}

/* 1 in the kernel for the second vector core of a mixed task; otherwise 0. */
static inline uint32_t
get_sub_block_id (const int64_t *args)
{
  return (uint32_t) ((uint64_t) args[-1] >> 56);
}
