/* online_update.c: how does a block's share join what earlier blocks gave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Maximum m, sum l and weighted sum o of all blocks so far meet those of one block. Both sides are
 * scaled to the larger maximum; a side that saw no token has l = 0 and o = 0 and adds nothing.
 */
#include "attention.h"

/* args: mij [rows], lij [rows], oi_new [rows, head_dim]: the block's, read;
 *       mi [rows], li [rows], oi [rows, head_dim]: updated;
 *       out [requests, heads, head_dim]: float32, written when `last`; last: 0 or 1. */
void
kernel_entry (int64_t *args)
{
  const float *mij = attention_floats (attention_tensor (args[0]));
  const float *lij = attention_floats (attention_tensor (args[1]));
  const TensorData *tnew = attention_tensor (args[2]);
  float *mi = attention_floats (attention_tensor (args[3]));
  float *li = attention_floats (attention_tensor (args[4]));
  float *oi = attention_floats (attention_tensor (args[5]));
  const TensorData *tout = attention_tensor (args[6]);
  bool last = args[7] != 0;
  uint64_t rows = tnew->shapes[0];
  uint64_t dim = tnew->shapes[1];
  uint64_t heads = tout->shapes[1];

  for (uint64_t r = 0; r < rows; r++)
    {
      float top = mij[r] > mi[r] ? mij[r] : mi[r];
      float old_factor = attention_exp (mi[r] - top);
      float new_factor = attention_exp (mij[r] - top);
      float sum = old_factor * li[r] + new_factor * lij[r];
      const float *restrict block = attention_floats (tnew) + r * dim;
      float *restrict row = oi + r * dim;
      uint64_t d = 0;

      mi[r] = top;
      li[r] = sum;
      for (; d + ATTENTION_LANES <= dim; d += ATTENTION_LANES)
        for (int l = 0; l < ATTENTION_LANES; l++)
          row[d + l] = old_factor * row[d + l] + new_factor * block[d + l];
      for (; d < dim; d++)
        row[d] = old_factor * row[d] + new_factor * block[d];
      if (last)
        {
          uint64_t offset = r / heads * tout->strides[0] + r % heads * tout->strides[1];
          float *restrict out = (float *) attention_at (tout, offset);
          float inverse = sum > 0 ? 1.0f / sum : 0;

          for (d = 0; d < dim; d++)
            out[d] = row[d] * inverse;
        }
    }
}
