// aic_pv_matmul.cpp: what do the weights of several requests make of a block of values of each?
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../attention.hpp"

using namespace attention;

template <typename T>
static void
multiply (int64_t *args)
{
  const TensorData *probabilities = tensor (args[0]);
  const TensorData *values = tensor (args[1]);
  const TensorData *table = tensor (args[2]);
  const TensorData *lengths = tensor (args[3]);
  const TensorData *result = tensor (args[4]);
  const float *weights = data<const float> (probabilities);
  float *sums = data<float> (result);
  uint64_t block = uint64_t (args[5]);
  uint64_t first_head = uint64_t (args[6]);
  uint64_t group = uint64_t (args[7]);
  uint64_t requests = lengths->shapes[0];
  uint64_t tile = probabilities->shapes[0] / requests;
  uint64_t dim = result->shapes[1];
  uint64_t block_size = values->shapes[1];

  for (uint64_t r = 0; r < requests; r++)
    {
      uint64_t tokens = tokens_in_block (data<const int32_t> (lengths)[r], block, block_size);

      for (uint64_t h = 0; h < tile; h++, weights += block_size, sums += dim)
        {
          uint64_t kv_head = (first_head + h) / group;

          for (uint64_t d = 0; d < dim; d++)
            sums[d] = 0;
          for (uint64_t t = 0; t < tokens; t++)
            {
              uint64_t page = uint64_t (data<const int32_t> (table)[r * table->strides[0] + block]);
              const T *v = data<const T> (values) + page * values->strides[0]
                           + t * values->strides[1] + kv_head * values->strides[2];

              for (uint64_t d = 0; d < dim; d++)
                sums[d] += weights[t] * to_float (v[d]);
            }
        }
    }
}

// args: pij [requests * tile, block_size]; value_cache [blocks, block_size, kv_heads, head_dim];
//       block_table [requests, width]; context_lens [requests]; oi_new [requests * tile, head_dim],
//       written; block; first head of the tile; heads per kv head.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  if (tensor (args[1])->dtype == DataType::FLOAT16)
    multiply<Half> (args);
  else
    multiply<float> (args);
}
