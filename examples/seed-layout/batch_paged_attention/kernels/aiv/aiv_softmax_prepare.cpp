// aiv_softmax_prepare.cpp: which weight has each token of one block of each request?
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../attention.hpp"

using namespace attention;

// args: sij [requests * tile, block_size]; context_lens [requests]; pij like sij, mij and lij
//       [requests * tile]: written: weights, maximum, sum; block; scale: a float in the low 32
//       bits.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  const TensorData *sij = tensor (args[0]);
  const TensorData *lengths = tensor (args[1]);
  const float *scores = data<const float> (sij);
  float *weights = data<float> (tensor (args[2]));
  float *mij = data<float> (tensor (args[3]));
  float *lij = data<float> (tensor (args[4]));
  uint64_t block = uint64_t (args[5]);
  float scale = float_of (uint32_t (args[6]));
  uint64_t block_size = sij->shapes[1];
  uint64_t tile = sij->shapes[0] / lengths->shapes[0];

  for (uint64_t row = 0; row < sij->shapes[0]; row++, scores += block_size, weights += block_size)
    {
      int32_t length = data<const int32_t> (lengths)[row / tile];
      uint64_t tokens = tokens_in_block (length, block, block_size);
      float top = NOTHING;
      float sum = 0;

      for (uint64_t t = 0; t < tokens; t++)
        top = scores[t] * scale > top ? scores[t] * scale : top;
      for (uint64_t t = 0; t < tokens; t++)
        {
          weights[t] = exp_below_zero (scores[t] * scale - top);
          sum += weights[t];
        }
      for (uint64_t t = tokens; t < block_size; t++)
        weights[t] = 0;
      mij[row] = top;
      lij[row] = sum;
    }
}
