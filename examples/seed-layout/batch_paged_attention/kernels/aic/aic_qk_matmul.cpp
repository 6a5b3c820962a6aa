// aic_qk_matmul.cpp: how well do the queries of several requests match a block of each? q k^T.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../attention.hpp"

using namespace attention;

template <typename T>
static float
dot (const T *x, const T *y, uint64_t n)
{
  float lanes[LANES] = {};
  float sum = 0;
  uint64_t i = 0;

  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++)
      lanes[l] += to_float (x[i + l]) * to_float (y[i + l]);
  for (; i < n; i++)
    sum += to_float (x[i]) * to_float (y[i]);
  for (float lane : lanes)
    sum += lane;
  return sum;
}

template <typename T>
static void
multiply (int64_t *args)
{
  const TensorData *query = tensor (args[0]);
  const TensorData *keys = tensor (args[1]);
  const TensorData *table = tensor (args[2]);
  const int32_t *lengths = data<const int32_t> (tensor (args[3]));
  float *scores = data<float> (tensor (args[4]));
  uint64_t block = uint64_t (args[5]);
  uint64_t first_head = uint64_t (args[6]);
  uint64_t group = uint64_t (args[7]);
  uint64_t tile = query->shapes[1];
  uint64_t block_size = keys->shapes[1];

  for (uint64_t r = 0; r < query->shapes[0]; r++)
    {
      uint64_t tokens = tokens_in_block (lengths[r], block, block_size);

      for (uint64_t h = 0; h < tile; h++, scores += block_size)
        {
          const T *q = data<const T> (query) + r * query->strides[0] + h * query->strides[1];
          uint64_t kv_head = (first_head + h) / group;

          for (uint64_t t = 0; t < tokens; t++)
            {
              uint64_t page = uint64_t (data<const int32_t> (table)[r * table->strides[0] + block]);
              const T *k = data<const T> (keys) + page * keys->strides[0] + t * keys->strides[1]
                           + kv_head * keys->strides[2];

              scores[t] = dot (q, k, query->shapes[2]);
            }
          for (uint64_t t = tokens; t < block_size; t++)
            scores[t] = 0;
        }
    }
}

// args: query [requests, tile, head_dim]; key_cache [blocks, block_size, kv_heads, head_dim];
//       block_table [requests, width]; context_lens [requests]; sij [requests * tile, block_size],
//       written; block; first head of the tile; heads per kv head.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  if (tensor (args[0])->dtype == DataType::FLOAT16)
    multiply<Half> (args);
  else
    multiply<float> (args);
}
