/* pv_matmul.c: what do the weights of a block make of its values? oi_new = p v.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "attention.h"

/* args: pij [tile, block_size], read; v [1, tokens, 1, head_dim], a view of the value cache that
 *       ends with the request; oi_new [tile, head_dim]: float32, written. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tp = attention_tensor (args[0]);
  const TensorData *tv = attention_tensor (args[1]);
  const TensorData *to = attention_tensor (args[2]);
  const float *weights = attention_floats (tp);
  float *sums = attention_floats (to);
  uint64_t tile = tp->shapes[0];
  uint64_t block_size = tp->shapes[1];
  uint64_t dim = to->shapes[1];
  float scratch[ATTENTION_MAX_DIM];

  memset (sums, 0, tile * dim * sizeof *sums);
  for (uint64_t t = 0; t < tv->shapes[1]; t++)
    {
      const float *value = attention_row (tv, t * tv->strides[1], dim, scratch);

      for (uint64_t h = 0; h < tile; h++)
        attention_accumulate (sums + h * dim, weights[h * block_size + t], value, dim);
    }
}
