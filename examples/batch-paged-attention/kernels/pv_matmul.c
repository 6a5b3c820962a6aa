/* pv_matmul.c: what do the weights of several requests make of a block of values of each?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../paged-attention/kernels/attention.h"

/* args: pij [requests * tile, block_size]; value_cache [blocks, block_size, kv_heads, head_dim];
 *       block_table [requests, table_width]; context_lens [requests];
 *       oi_new [requests * tile, head_dim]: float32, written, 0 for a request that ended before the
 * block; block: which one of each request; first_head: of the tile; group: heads per kv head. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tp = attention_tensor (args[0]);
  const TensorData *tv = attention_tensor (args[1]);
  const TensorData *tt = attention_tensor (args[2]);
  const TensorData *tl = attention_tensor (args[3]);
  const TensorData *to = attention_tensor (args[4]);
  const float *weights = attention_floats (tp);
  const int32_t *table = (const int32_t *) attention_at (tt, 0);
  const int32_t *lengths = (const int32_t *) attention_at (tl, 0);
  float *sums = attention_floats (to);
  uint64_t block = (uint64_t) args[5];
  uint64_t first_head = (uint64_t) args[6];
  uint64_t group = (uint64_t) args[7];
  uint64_t requests = tl->shapes[0];
  uint64_t tile = tp->shapes[0] / requests;
  uint64_t dim = to->shapes[1];
  uint64_t block_size = tv->shapes[1];
  float scratch[ATTENTION_MAX_DIM];

  memset (sums, 0, to->shapes[0] * dim * sizeof *sums);
  for (uint64_t r = 0; r < requests; r++, weights += tile * block_size, sums += tile * dim)
    {
      uint64_t tokens = attention_tokens_in_block (lengths[r], block, block_size);
      uint64_t first;

      if (tokens == 0)
        continue;
      first = (uint64_t) table[r * tt->strides[0] + block] * tv->strides[0];
      for (uint64_t t = 0; t < tokens; t++)
        {
          const float *value = NULL;
          uint64_t kv_head = UINT64_MAX;

          for (uint64_t h = 0; h < tile; h++)
            {
              if (value == NULL || kv_head != (first_head + h) / group)
                {
                  kv_head = (first_head + h) / group;
                  value = attention_row (tv, first + t * tv->strides[1] + kv_head * tv->strides[2],
                                         dim, scratch);
                }
              attention_accumulate (sums + h * dim, weights[h * block_size + t], value, dim);
            }
        }
    }
}
