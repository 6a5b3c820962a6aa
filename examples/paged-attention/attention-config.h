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
