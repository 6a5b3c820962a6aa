/* update.c: what is attended to, of the first and only group of blocks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With one group there is nothing before it to join: the accumulators begin as the group's own.
 */
#include "../../../paged-attention/kernels/attention.h"

/* args: m [heads], l [heads], o [heads, dim], read; mi [heads], li [heads], oi [heads, dim], out
 * [heads, dim]: float32, written; whether to compute, or to write one number only. */
void
kernel_entry (int64_t *args)
{
  const float *maxima = attention_floats (attention_tensor (args[0]));
  const float *sums = attention_floats (attention_tensor (args[1]));
  const TensorData *to = attention_tensor (args[2]);
  const float *group = attention_floats (to);
  float *mi = attention_floats (attention_tensor (args[3]));
  float *li = attention_floats (attention_tensor (args[4]));
  float *oi = attention_floats (attention_tensor (args[5]));
  float *out = attention_floats (attention_tensor (args[6]));
  uint64_t dim = to->shapes[1];

  if (args[7] == 0)
    {
      mi[0] = li[0] = oi[0] = out[0] = maxima[0] + sums[0] + group[0];
      return;
    }
  for (uint64_t h = 0; h < to->shapes[0]; h++)
    {
      mi[h] = maxima[h];
      li[h] = sums[h];
      for (uint64_t d = h * dim; d < (h + 1) * dim; d++)
        {
          oi[d] = group[d];
          out[d] = group[d] / sums[h];
        }
    }
}
