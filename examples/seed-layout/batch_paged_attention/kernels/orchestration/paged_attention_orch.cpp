// paged_attention_orch.cpp: which tasks compute attention for many requests, 16 to a task?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// For every tile of heads and every chunk of requests: AIV_HUB makes accumulators, then each block
// goes through QK, SF, PV and UP. Nothing but the INOUT of UP on oi, li and mi orders the blocks.

#include "pto_orchestration_api.h"

#define FUNC_QK_MATMUL 0
#define FUNC_SOFTMAX_PREPARE 1
#define FUNC_PV_MATMUL 2
#define FUNC_ONLINE_UPDATE 3
#define FUNC_AIV_HUB 5

static constexpr uint64_t IN_CORE_BATCH = 16;
static constexpr uint64_t Q_TILE = 16;

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ 7 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int)
{
  pto2_rt_init_tensor_pool (rt);

  const int32_t *lengths = (const int32_t *) args[4];
  const int64_t *config = (const int64_t *) args[6];
  uint64_t batch = (uint64_t) config[0];
  uint64_t num_heads = (uint64_t) config[1];
  uint64_t kv_heads = (uint64_t) config[2];
  uint64_t head_dim = (uint64_t) config[3];
  uint64_t block_size = (uint64_t) config[4];
  uint64_t num_blocks = (uint64_t) config[5];
  uint64_t table_width = (uint64_t) config[6];
  uint64_t scale = (uint64_t) config[7];
  DataType dtype = (DataType) config[8];
  uint64_t group = num_heads / kv_heads;
  uint64_t q_loop = (num_heads + Q_TILE - 1) / Q_TILE;

  uint64_t query_shapes[3] = { batch, num_heads, head_dim };
  uint64_t cache_shapes[4] = { num_blocks, block_size, kv_heads, head_dim };
  uint64_t table_shapes[2] = { batch, table_width };
  uint64_t lens_shapes[1] = { batch };
  Tensor query = make_tensor_external ((void *) args[0], query_shapes, 3, dtype);
  Tensor key_cache = make_tensor_external ((void *) args[1], cache_shapes, 4, dtype);
  Tensor value_cache = make_tensor_external ((void *) args[2], cache_shapes, 4, dtype);
  Tensor block_table = make_tensor_external ((void *) args[3], table_shapes, 2, DataType::INT32);
  Tensor context_lens = make_tensor_external ((void *) args[4], lens_shapes, 1, DataType::INT32);
  Tensor out = make_tensor_external ((void *) args[5], query_shapes, 3, DataType::FLOAT32);

  LOG_INFO (rt, "batch paged attention: batch %llu, %llu heads of %llu", (unsigned long long) batch,
            (unsigned long long) num_heads, (unsigned long long) head_dim);
  for (uint64_t q_idx = 0; q_idx < q_loop; q_idx++)
    {
      uint64_t first_head = q_idx * Q_TILE;
      uint64_t q_tile = num_heads - first_head < Q_TILE ? num_heads - first_head : Q_TILE;

      for (uint64_t batch_start = 0; batch_start < batch; batch_start += IN_CORE_BATCH)
        {
          uint64_t left = batch - batch_start;
          uint64_t chunk = left < IN_CORE_BATCH ? left : IN_CORE_BATCH;
          uint64_t max_bn = 0;

          for (uint64_t i = batch_start; i < batch_start + chunk; i++)
            {
              uint64_t blocks = ((uint64_t) lengths[i] + block_size - 1) / block_size;

              max_bn = blocks > max_bn ? blocks : max_bn;
            }

          PTO2_SCOPE (rt)
          {
            uint64_t part_shapes[3] = { chunk, q_tile, head_dim };
            uint64_t part_offsets[3] = { batch_start, first_head, 0 };
            uint64_t table_part[2] = { chunk, table_width };
            uint64_t table_offsets[2] = { batch_start, 0 };
            uint64_t oi_shapes[2] = { chunk * q_tile, head_dim };
            uint64_t sij_shapes[2] = { chunk * q_tile, block_size };
            uint64_t row_shapes[1] = { chunk * q_tile };
            Tensor qi = query.view (part_shapes, part_offsets);
            Tensor out_part = out.view (part_shapes, part_offsets);
            Tensor table = block_table.view (table_part, table_offsets);
            Tensor lens = context_lens.view (&chunk, &batch_start);
            Tensor oi = make_tensor (oi_shapes, 2, DataType::FLOAT32);
            Tensor li = make_tensor (row_shapes, 1, DataType::FLOAT32);
            Tensor mi = make_tensor (row_shapes, 1, DataType::FLOAT32);

            PTOParam params_hub[] = {
              make_output_param (oi),
              make_output_param (li),
              make_output_param (mi),
            };
            pto2_rt_submit_task (rt, FUNC_AIV_HUB, PTO2_WORKER_VECTOR, params_hub, 3);

            for (uint64_t bn = 0; bn < max_bn; bn++)
              {
                Tensor sij = make_tensor (sij_shapes, 2, DataType::FLOAT32);
                Tensor pij = make_tensor (sij_shapes, 2, DataType::FLOAT32);
                Tensor mij = make_tensor (row_shapes, 1, DataType::FLOAT32);
                Tensor lij = make_tensor (row_shapes, 1, DataType::FLOAT32);
                Tensor oi_new = make_tensor (oi_shapes, 2, DataType::FLOAT32);

                PTOParam params_qk[] = {
                  make_input_param (qi),          make_input_param (key_cache),
                  make_input_param (table),       make_input_param (lens),
                  make_output_param (sij),        make_scalar_param (bn),
                  make_scalar_param (first_head), make_scalar_param (group),
                };
                pto2_rt_submit_task (rt, FUNC_QK_MATMUL, PTO2_WORKER_CUBE, params_qk, 8);

                PTOParam params_sf[] = {
                  make_input_param (sij),    make_input_param (lens), make_output_param (pij),
                  make_output_param (mij),   make_output_param (lij), make_scalar_param (bn),
                  make_scalar_param (scale),
                };
                pto2_rt_submit_task (rt, FUNC_SOFTMAX_PREPARE, PTO2_WORKER_VECTOR, params_sf, 7);

                PTOParam params_pv[] = {
                  make_input_param (pij),         make_input_param (value_cache),
                  make_input_param (table),       make_input_param (lens),
                  make_output_param (oi_new),     make_scalar_param (bn),
                  make_scalar_param (first_head), make_scalar_param (group),
                };
                pto2_rt_submit_task (rt, FUNC_PV_MATMUL, PTO2_WORKER_CUBE, params_pv, 8);

                PTOParam params_up[] = {
                  make_input_param (mij),      make_input_param (lij),
                  make_input_param (oi_new),   make_inout_param (mi),
                  make_inout_param (li),       make_inout_param (oi),
                  make_inout_param (out_part), make_scalar_param (bn + 1 == max_bn),
                };
                pto2_rt_submit_task (rt, FUNC_ONLINE_UPDATE, PTO2_WORKER_VECTOR, params_up, 8);
              }
          }
        }
    }
  return 0;
}
