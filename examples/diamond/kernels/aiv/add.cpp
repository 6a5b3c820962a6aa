// add.cpp: how are two tiles added? out = x + y.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../tile.hpp"

// args: x, y, out.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  Tile x (args[0]);
  Tile y (args[1]);
  Tile out (args[2]);

  for (uint64_t i = 0; i < out.rows; i++)
    for (uint64_t j = 0; j < out.columns; j++)
      out[i][j] = x[i][j] + y[i][j];
}
