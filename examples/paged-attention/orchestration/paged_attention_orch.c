/* paged_attention_orch.c: which tasks compute attention over a paged cache, one request at a time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every request and every tile of query heads is a chain of its own: HUB makes empty accumulators,
 * then each block of the context goes through QK (scores), SF (weights), PV (weighted values) and
 * UP, which folds the block into the accumulators. The chain is nothing but INOUT on oi, li and mi.
 * The orchestration reads the block table; kernels get the block they need as a view of the cache,
 * cut where the request ends.
 */
#include "../attention-config.h"

#include "pto_orchestration_api.h"

typedef struct Attention
{
  const int64_t *config;
  const int32_t *block_table;
  const int32_t *context_lens;
  Tensor query, key_cache, value_cache, out;
  uint64_t scale;
} Attention;

/* The first `tokens` tokens of a block, for one kv head. */
static Tensor
block_view (const Attention *attention, const Tensor *cache, int32_t block, uint64_t tokens,
            uint64_t kv_head)
{
  uint64_t shape[4] = { 1, tokens, 1, (uint64_t) attention->config[CONFIG_HEAD_DIM] };
  uint64_t offset[4] = { (uint64_t) block, 0, kv_head, 0 };

  return pto2_tensor_view (cache, shape, offset);
}

/* One tile of heads of one request. */
static void
submit_chain (PTO2Runtime *rt, const Attention *attention, uint64_t request, uint64_t first_head)
{
  const int64_t *config = attention->config;
  uint64_t tile = (uint64_t) config[CONFIG_TILE];
  uint64_t dim = (uint64_t) config[CONFIG_HEAD_DIM];
  uint64_t block_size = (uint64_t) config[CONFIG_BLOCK_SIZE];
  uint64_t group = (uint64_t) (config[CONFIG_HEADS] / config[CONFIG_KV_HEADS]);
  uint64_t length = (uint64_t) attention->context_lens[request];
  const int32_t *table = attention->block_table + request * (uint64_t) config[CONFIG_TABLE_WIDTH];
  uint64_t rows[1] = { tile };
  uint64_t accumulator[2] = { tile, dim };
  uint64_t scores[2] = { tile, block_size };
  uint64_t part[3] = { 1, tile, dim };
  uint64_t part_offset[3] = { request, first_head, 0 };
  Tensor q = pto2_tensor_view (&attention->query, part, part_offset);
  Tensor out = pto2_tensor_view (&attention->out, part, part_offset);
  Tensor oi = make_tensor (accumulator, 2, PTO_DTYPE_FLOAT32);
  Tensor li = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
  Tensor mi = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
  PTOParam hub[] = { make_output_param (oi), make_output_param (li), make_output_param (mi) };

  pto2_rt_submit_task_with_priority (
      rt, KERNEL_HUB, PTO2_WORKER_VECTOR, hub, 3,
      attention_priority (config, (length + block_size - 1) / block_size));
  for (uint64_t block = 0; block * block_size < length; block++)
    {
      uint64_t left = length - block * block_size;
      uint64_t tokens = left < block_size ? left : block_size;
      uint64_t kv_head = first_head / group;
      Tensor k = block_view (attention, &attention->key_cache, table[block], tokens, kv_head);
      Tensor v = block_view (attention, &attention->value_cache, table[block], tokens, kv_head);
      Tensor sij = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor pij = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor mij = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor lij = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor oi_new = make_tensor (accumulator, 2, PTO_DTYPE_FLOAT32);
      int32_t priority = attention_priority (config, (left + block_size - 1) / block_size);
      bool last = tokens == left;
      PTOParam qk[] = { make_input_param (q), make_input_param (k), make_output_param (sij) };
      PTOParam sf[] = { make_input_param (sij),     make_output_param (pij),
                        make_output_param (mij),    make_output_param (lij),
                        make_scalar_param (tokens), make_scalar_param (attention->scale) };
      PTOParam pv[] = { make_input_param (pij), make_input_param (v), make_output_param (oi_new) };
      PTOParam up[] = { make_input_param (mij),
                        make_input_param (lij),
                        make_input_param (oi_new),
                        make_inout_param (mi),
                        make_inout_param (li),
                        make_inout_param (oi),
                        last ? make_output_param (out) : make_no_dep_param (out),
                        make_scalar_param (last) };

      pto2_rt_submit_task_with_priority (rt, KERNEL_QK, PTO2_WORKER_CUBE, qk, 3, priority);
      pto2_rt_submit_task_with_priority (rt, KERNEL_SF, PTO2_WORKER_VECTOR, sf, 6, priority);
      pto2_rt_submit_task_with_priority (rt, KERNEL_PV, PTO2_WORKER_CUBE, pv, 3, priority);
      pto2_rt_submit_task_with_priority (rt, KERNEL_UP, PTO2_WORKER_VECTOR, up, 8, priority);
    }
}

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = ARG_COUNT };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  const int64_t *config = (const int64_t *) (uintptr_t) args[ARG_CONFIG];
  uint64_t batch = (uint64_t) config[CONFIG_BATCH];
  uint64_t heads = (uint64_t) config[CONFIG_HEADS];
  uint64_t tile = (uint64_t) config[CONFIG_TILE];
  uint64_t dim = (uint64_t) config[CONFIG_HEAD_DIM];
  uint64_t query_shape[3] = { batch, heads, dim };
  uint64_t cache_shape[4]
      = { (uint64_t) config[CONFIG_BLOCKS], (uint64_t) config[CONFIG_BLOCK_SIZE],
          (uint64_t) config[CONFIG_KV_HEADS], dim };
  DataType dtype = (DataType) config[CONFIG_DTYPE];
  Attention attention = {
    .config = config,
    .block_table = (const int32_t *) (uintptr_t) args[ARG_BLOCK_TABLE],
    .context_lens = (const int32_t *) (uintptr_t) args[ARG_CONTEXT_LENS],
    .query = make_tensor_external ((void *) (uintptr_t) args[ARG_QUERY], query_shape, 3, dtype),
    .key_cache
    = make_tensor_external ((void *) (uintptr_t) args[ARG_KEY_CACHE], cache_shape, 4, dtype),
    .value_cache
    = make_tensor_external ((void *) (uintptr_t) args[ARG_VALUE_CACHE], cache_shape, 4, dtype),
    .out
    = make_tensor_external ((void *) (uintptr_t) args[ARG_OUT], query_shape, 3, PTO_DTYPE_FLOAT32),
    .scale = (uint32_t) config[CONFIG_SCALE],
  };

  (void) arg_count;
  if ((heads / (uint64_t) config[CONFIG_KV_HEADS]) % tile != 0)
    {
      LOG_ERROR (rt, "paged-attention: a tile of %llu heads spans more than one kv head",
                 (unsigned long long) tile);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  for (uint64_t request = 0; request < batch; request++)
    for (uint64_t head = 0; head < heads; head += tile)
      PTO2_SCOPE (rt)
      {
        submit_chain (rt, &attention, request, head);
      }
  return 0;
}
