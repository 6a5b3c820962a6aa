// aiv_online_update.cpp: how does a block's share join what earlier blocks gave?
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../attention.hpp"

using namespace attention;

// args: mij [rows], lij [rows], oi_new [rows, head_dim]: the block's, read;
//       mi [rows], li [rows], oi [rows, head_dim]: updated;
//       out [requests, tile, head_dim]: written when `last`; last: 0 or 1.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  const float *mij = data<const float> (tensor (args[0]));
  const float *lij = data<const float> (tensor (args[1]));
  const TensorData *oi_new = tensor (args[2]);
  const float *block = data<const float> (oi_new);
  float *mi = data<float> (tensor (args[3]));
  float *li = data<float> (tensor (args[4]));
  float *oi = data<float> (tensor (args[5]));
  const TensorData *out = tensor (args[6]);
  bool last = args[7] != 0;
  uint64_t dim = oi_new->shapes[1];
  uint64_t tile = out->shapes[1];

  for (uint64_t row = 0; row < oi_new->shapes[0]; row++, block += dim, oi += dim)
    {
      float top = mij[row] > mi[row] ? mij[row] : mi[row];
      float old_factor = exp_below_zero (mi[row] - top);
      float new_factor = exp_below_zero (mij[row] - top);

      mi[row] = top;
      li[row] = old_factor * li[row] + new_factor * lij[row];
      for (uint64_t d = 0; d < dim; d++)
        oi[d] = old_factor * oi[d] + new_factor * block[d];
      if (last)
        {
          float *result
              = data<float> (out) + row / tile * out->strides[0] + row % tile * out->strides[1];

          for (uint64_t d = 0; d < dim; d++)
            result[d] = oi[d] / li[row];
        }
    }
}
