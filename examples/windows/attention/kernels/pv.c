/* pv.c: what do the weights make of the values? o = p v.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../../paged-attention/kernels/attention.h"

/* args: p [heads, tokens], v [tokens, dim], read; o [heads, dim]: float32, written; whether to
 * compute, or to write one number only. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tp = attention_tensor (args[0]);
  const TensorData *tv = attention_tensor (args[1]);
  const float *weights = attention_floats (tp);
  float *sums = attention_floats (attention_tensor (args[2]));
  uint64_t heads = tp->shapes[0];
  uint64_t tokens = tp->shapes[1];
  uint64_t dim = tv->shapes[1];
  float scratch[ATTENTION_MAX_DIM];

  if (args[3] == 0)
    {
      sums[0] = weights[0] + 1;
      return;
    }
  memset (sums, 0, heads * dim * sizeof *sums);
  for (uint64_t t = 0; t < tokens; t++)
    {
      const float *value = attention_row (tv, t * dim, dim, scratch);

      for (uint64_t h = 0; h < heads; h++)
        attention_accumulate (sums + h * dim, weights[h * tokens + t], value, dim);
    }
}
