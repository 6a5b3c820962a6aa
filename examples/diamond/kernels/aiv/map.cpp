// map.cpp: what is a function of each element? out = FUNCTION (x), which a flag names.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "../tile.hpp"

#include <cmath>

// args: x, out.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  Tile x (args[0]);
  Tile out (args[1]);

  for (uint64_t i = 0; i < out.rows; i++)
    for (uint64_t j = 0; j < out.columns; j++)
      out[i][j] = FUNCTION (x[i][j]);
}
