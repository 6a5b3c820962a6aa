// aiv_hub.cpp: where does an online softmax begin? Nothing summed, nothing seen.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../attention.hpp"

using namespace attention;

// args: oi [rows, head_dim], li [rows], mi [rows]: written.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  const TensorData *oi = tensor (args[0]);
  float *sums = data<float> (oi);
  float *li = data<float> (tensor (args[1]));
  float *mi = data<float> (tensor (args[2]));

  for (uint64_t i = 0; i < oi->shapes[0] * oi->shapes[1]; i++)
    sums[i] = 0;
  for (uint64_t row = 0; row < oi->shapes[0]; row++)
    {
      li[row] = 0;
      mi[row] = NOTHING;
    }
}
