// matmul.cpp: what is the product of a tile and a matrix? out = x w.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../tile.hpp"

// args: x, w, out.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  Tile x (args[0]);
  Tile w (args[1]);
  Tile out (args[2]);

  for (uint64_t i = 0; i < out.rows; i++)
    {
      float *sums = out[i];

      for (uint64_t j = 0; j < out.columns; j++)
        sums[j] = 0;
      for (uint64_t k = 0; k < x.columns; k++)
        for (uint64_t j = 0; j < out.columns; j++)
          sums[j] += x[i][k] * w[k][j];
    }
}
