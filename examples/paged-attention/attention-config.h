/* attention-config.h: what do reference and orchestrations of the attention examples agree on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The arguments, in order, and their shapes:
 *
 *   query         [batch, heads, head_dim]                          the type of the caches
 *   key_cache     [blocks, block_size, kv_heads, head_dim]          float32, float16 or bfloat16
 *   value_cache   as key_cache
 *   block_table   [batch, table_width]   int32                      the block that holds tokens
 *                                                                   j * block_size and up; -1: none
 *   context_lens  [batch]                int32                      tokens of each request
 *   out           [batch, heads, head_dim]   float32
 *   config        [CONFIG_COUNT]         int64                      the numbers below
 */
#pragma once

#include "pto_limits.h"

#include <stdint.h>

enum
{
  ARG_QUERY,
  ARG_KEY_CACHE,
  ARG_VALUE_CACHE,
  ARG_BLOCK_TABLE,
  ARG_CONTEXT_LENS,
  ARG_OUT,
  ARG_CONFIG,
  ARG_COUNT
};

enum
{
  CONFIG_BATCH,
  CONFIG_HEADS,
  CONFIG_KV_HEADS, /* heads / kv_heads consecutive query heads share one */
  CONFIG_HEAD_DIM,
  CONFIG_BLOCK_SIZE,
  CONFIG_BLOCKS,        /* in each cache */
  CONFIG_TABLE_WIDTH,   /* blocks a request may have */
  CONFIG_TILE,          /* query heads per task */
  CONFIG_IN_CORE_BATCH, /* requests per task, batch-paged-attention only */
  CONFIG_DTYPE,         /* PTO_DTYPE_* of query and caches */
  CONFIG_SCALE,         /* a float in the low 32 bits: 1 / sqrt (head_dim) */
  CONFIG_PRIORITIES,    /* 1: what has the longest way to go comes first; 0: what came first does */
  CONFIG_COUNT
};

/* func_id of each kernel. */
enum
{
  KERNEL_QK = 0,
  KERNEL_SF = 1,
  KERNEL_PV = 2,
  KERNEL_UP = 3,
  KERNEL_HUB = 5
};

/* Of the tasks of a block, when so many of its chain are left: the chains end at about the same
 * time if the longest goes first, so a level is a quarter of the longest that there may be. */
static inline int32_t
attention_priority (const int64_t *config, uint64_t blocks_left)
{
  uint64_t longest = (uint64_t) config[CONFIG_TABLE_WIDTH];

  if (config[CONFIG_PRIORITIES] == 0 || blocks_left == 0)
    return 0;
  return (int32_t) ((blocks_left - 1) * (PTO_MAX_PRIORITY + 1) / longest);
}
