// mul.cpp: x, y, out, number of elements.
// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scale.hpp"

extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  for (int64_t i = 0; i < args[3]; i++)
    floats (args[2])[i] = floats (args[0])[i] * floats (args[1])[i];
}
