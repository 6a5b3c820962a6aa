/* softmax_prepare.c: which weight has each token of one block of each request?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../paged-attention/kernels/attention.h"

/* args: sij [requests * tile, block_size], context_lens [requests]: read;
 *       pij [requests * tile, block_size], mij, lij [requests * tile]: written: weights relative to
 *       the best of the block, 0 after the end of a request; their maximum; their sum;
 *       block: which one of each request; scale: a float in the low 32 bits. */
void
kernel_entry (int64_t *args)
{
  const TensorData *ts = attention_tensor (args[0]);
  const TensorData *tl = attention_tensor (args[1]);
  const float *scores = attention_floats (ts);
  const int32_t *lengths = (const int32_t *) attention_at (tl, 0);
  float *weights = attention_floats (attention_tensor (args[2]));
  float *mij = attention_floats (attention_tensor (args[3]));
  float *lij = attention_floats (attention_tensor (args[4]));
  uint64_t block = (uint64_t) args[5];
  float scale = attention_float_of ((uint32_t) args[6]);
  uint64_t block_size = ts->shapes[1];
  uint64_t tile = ts->shapes[0] / tl->shapes[0];

  for (uint64_t row = 0; row < ts->shapes[0]; row++)
    attention_softmax_row (scores + row * block_size, weights + row * block_size,
                           attention_tokens_in_block (lengths[row / tile], block, block_size),
                           block_size, scale, mij + row, lij + row);
}
