// scale.hpp: what the kernels share, in a directory that only include_dirs names.
// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tensor.h"

#include <cstring>

static inline __gm__ float *
floats (int64_t argument)
{
  return reinterpret_cast<__gm__ float *> (argument);
}

static inline float
number (int64_t argument)
{
  float value;

  std::memcpy (&value, &argument, sizeof value);
  return value;
}
