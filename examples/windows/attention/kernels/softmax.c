/* softmax.c: which weight has each token, relative to the best?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../../paged-attention/kernels/attention.h"

/* args: s [heads, tokens], read; p [heads, tokens], m [heads], l [heads], written: weights, maximum
 * and sum of the weights; scale: a float in the low 32 bits; whether to compute, or to write
 * one number only. */
void
kernel_entry (int64_t *args)
{
  const TensorData *ts = attention_tensor (args[0]);
  const float *scores = attention_floats (ts);
  float *weights = attention_floats (attention_tensor (args[1]));
  float *maxima = attention_floats (attention_tensor (args[2]));
  float *sums = attention_floats (attention_tensor (args[3]));
  float scale = attention_float_of ((uint32_t) args[4]);
  uint64_t tokens = ts->shapes[1];

  if (args[5] == 0)
    {
      weights[0] = maxima[0] = sums[0] = scores[0] + 1;
      return;
    }
  for (uint64_t h = 0; h < ts->shapes[0]; h++)
    attention_softmax_row (scores + h * tokens, weights + h * tokens, tokens, tokens, scale,
                           maxima + h, sums + h);
}
