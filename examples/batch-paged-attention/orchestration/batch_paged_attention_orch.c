/* batch_paged_attention_orch.c: which tasks compute attention for many requests, several to a task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Requests go in chunks of in_core_batch; each chunk has a
 * scope, a HUB task that makes its accumulators, and for every block of its longest request the
 * tasks QK, SF, PV and UP. Kernels look up block table and lengths themselves; a request that is
 * shorter than its chunk's longest one is masked in the blocks it does not have.
 */
#include "../../paged-attention/attention-config.h"

#include "pto_orchestration_api.h"

typedef struct Attention
{
  const int64_t *config;
  const int32_t *lengths;
  Tensor query, key_cache, value_cache, block_table, context_lens, out;
} Attention;

static uint64_t
blocks_of_longest (const Attention *attention, uint64_t first, uint64_t count)
{
  uint64_t block_size = (uint64_t) attention->config[CONFIG_BLOCK_SIZE];
  uint64_t longest = 0;

  for (uint64_t i = first; i < first + count; i++)
    if (attention->lengths[i] > 0 && (uint64_t) attention->lengths[i] > longest)
      longest = (uint64_t) attention->lengths[i];
  return (longest + block_size - 1) / block_size;
}

/* The chunk of `count` requests from `first` on, and the tile of heads that begins with `head`. */
static void
submit_chunk (PTO2Runtime *rt, const Attention *attention, uint64_t first, uint64_t count,
              uint64_t head)
{
  const int64_t *config = attention->config;
  uint64_t tile = (uint64_t) config[CONFIG_TILE];
  uint64_t dim = (uint64_t) config[CONFIG_HEAD_DIM];
  uint64_t block_size = (uint64_t) config[CONFIG_BLOCK_SIZE];
  uint64_t group = (uint64_t) (config[CONFIG_HEADS] / config[CONFIG_KV_HEADS]);
  uint64_t scale = (uint32_t) config[CONFIG_SCALE];
  uint64_t blocks = blocks_of_longest (attention, first, count);
  uint64_t rows[1] = { count * tile };
  uint64_t accumulator[2] = { count * tile, dim };
  uint64_t scores[2] = { count * tile, block_size };
  uint64_t part[3] = { count, tile, dim };
  uint64_t part_offset[3] = { first, head, 0 };
  uint64_t table_part[2] = { count, (uint64_t) config[CONFIG_TABLE_WIDTH] };
  uint64_t table_offset[2] = { first, 0 };
  Tensor query = pto2_tensor_view (&attention->query, part, part_offset);
  Tensor out = pto2_tensor_view (&attention->out, part, part_offset);
  Tensor table = pto2_tensor_view (&attention->block_table, table_part, table_offset);
  Tensor lengths = pto2_tensor_view (&attention->context_lens, &count, &first);
  Tensor oi = make_tensor (accumulator, 2, PTO_DTYPE_FLOAT32);
  Tensor li = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
  Tensor mi = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
  PTOParam hub[] = { make_output_param (oi), make_output_param (li), make_output_param (mi) };

  pto2_rt_submit_task_with_priority (rt, KERNEL_HUB, PTO2_WORKER_VECTOR, hub, 3,
                                     attention_priority (config, blocks));
  for (uint64_t block = 0; block < blocks; block++)
    {
      Tensor sij = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor pij = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor mij = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor lij = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor oi_new = make_tensor (accumulator, 2, PTO_DTYPE_FLOAT32);
      int32_t priority = attention_priority (config, blocks - block);
      bool last = block + 1 == blocks;
      PTOParam qk[] = { make_input_param (query), make_input_param (attention->key_cache),
                        make_input_param (table), make_input_param (lengths),
                        make_output_param (sij),  make_scalar_param (block),
                        make_scalar_param (head), make_scalar_param (group) };
      PTOParam sf[]
          = { make_input_param (sij),   make_input_param (lengths), make_output_param (pij),
              make_output_param (mij),  make_output_param (lij),    make_scalar_param (block),
              make_scalar_param (scale) };
      PTOParam pv[] = { make_input_param (pij),     make_input_param (attention->value_cache),
                        make_input_param (table),   make_input_param (lengths),
                        make_output_param (oi_new), make_scalar_param (block),
                        make_scalar_param (head),   make_scalar_param (group) };
      PTOParam up[] = { make_input_param (mij),
                        make_input_param (lij),
                        make_input_param (oi_new),
                        make_inout_param (mi),
                        make_inout_param (li),
                        make_inout_param (oi),
                        last ? make_output_param (out) : make_no_dep_param (out),
                        make_scalar_param (last) };

      pto2_rt_submit_task_with_priority (rt, KERNEL_QK, PTO2_WORKER_CUBE, qk, 8, priority);
      pto2_rt_submit_task_with_priority (rt, KERNEL_SF, PTO2_WORKER_VECTOR, sf, 7, priority);
      pto2_rt_submit_task_with_priority (rt, KERNEL_PV, PTO2_WORKER_CUBE, pv, 8, priority);
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
  uint64_t in_core_batch = (uint64_t) config[CONFIG_IN_CORE_BATCH];
  uint64_t query_shape[3] = { batch, heads, dim };
  uint64_t cache_shape[4]
      = { (uint64_t) config[CONFIG_BLOCKS], (uint64_t) config[CONFIG_BLOCK_SIZE],
          (uint64_t) config[CONFIG_KV_HEADS], dim };
  uint64_t table_shape[2] = { batch, (uint64_t) config[CONFIG_TABLE_WIDTH] };
  DataType dtype = (DataType) config[CONFIG_DTYPE];
  Attention attention = {
    .config = config,
    .lengths = (const int32_t *) (uintptr_t) args[ARG_CONTEXT_LENS],
    .query = make_tensor_external ((void *) (uintptr_t) args[ARG_QUERY], query_shape, 3, dtype),
    .key_cache
    = make_tensor_external ((void *) (uintptr_t) args[ARG_KEY_CACHE], cache_shape, 4, dtype),
    .value_cache
    = make_tensor_external ((void *) (uintptr_t) args[ARG_VALUE_CACHE], cache_shape, 4, dtype),
    .block_table = make_tensor_external ((void *) (uintptr_t) args[ARG_BLOCK_TABLE], table_shape, 2,
                                         PTO_DTYPE_INT32),
    .context_lens = make_tensor_external ((void *) (uintptr_t) args[ARG_CONTEXT_LENS], &batch, 1,
                                          PTO_DTYPE_INT32),
    .out
    = make_tensor_external ((void *) (uintptr_t) args[ARG_OUT], query_shape, 3, PTO_DTYPE_FLOAT32),
  };

  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);

  for (uint64_t head = 0; head < heads; head += tile)
    for (uint64_t first = 0; first < batch; first += in_core_batch)
      PTO2_SCOPE (rt)
      {
        uint64_t left = batch - first;

        submit_chunk (rt, &attention, first, left < in_core_batch ? left : in_core_batch, head);
      }
  return 0;
}
