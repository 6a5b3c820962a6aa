/* softmax_prepare.c: which weight has each token of a block, relative to the block's best?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "attention.h"

/* args: sij [tile, block_size], read; pij [tile, block_size], mij [tile], lij [tile]: written:
 *       weights, maximum, sum of the weights; tokens: how many columns count; scale: a float in
 *       the low 32 bits. */
void
kernel_entry (int64_t *args)
{
  const TensorData *ts = attention_tensor (args[0]);
  const float *scores = attention_floats (ts);
  float *weights = attention_floats (attention_tensor (args[1]));
  float *mij = attention_floats (attention_tensor (args[2]));
  float *lij = attention_floats (attention_tensor (args[3]));
  uint64_t tokens = (uint64_t) args[4];
  float scale = attention_float_of ((uint32_t) args[5]);
  uint64_t block_size = ts->shapes[1];

  for (uint64_t h = 0; h < ts->shapes[0]; h++)
    attention_softmax_row (scores + h * block_size, weights + h * block_size, tokens, block_size,
                           scale, mij + h, lij + h);
}
