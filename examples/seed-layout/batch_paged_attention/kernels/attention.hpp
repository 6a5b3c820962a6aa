// attention.hpp: what do the attention kernels share? Access to tensors, 16-bit floats, exp().
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#pragma once

#include "tensor.h"

#include <cfloat>
#include <cstring>

namespace attention
{

// The maximum of no score at all: finite, so that differences stay numbers.
constexpr float NOTHING = -FLT_MAX;

// Independent sums that a compiler keeps in vector registers.
constexpr int LANES = 16;

// A half as it lies in memory.
struct Half
{
  uint16_t bits;
};

inline const TensorData *
tensor (int64_t arg)
{
  return reinterpret_cast<const TensorData *> (arg);
}

template <typename T>
inline T *
data (const TensorData *tensor)
{
  return reinterpret_cast<T *> (tensor->buffer.addr) + tensor->start_offset;
}

inline float
float_of (uint32_t bits)
{
  float value;

  std::memcpy (&value, &bits, sizeof value);
  return value;
}

inline float
to_float (float value)
{
  return value;
}

// Exact; 2^112 moves the exponent to its place, denormals included. The caches hold finite numbers.
inline float
to_float (Half value)
{
  float magnitude = float_of (uint32_t (value.bits & 0x7fff) << 13) * 0x1p112f;

  return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// exp (x) for x <= 0; everything below -87 gives exp (-87), as good as 0 beside the maximum's 1.
inline float
exp_below_zero (float x)
{
  float clamped = x > -87.0f ? x : -87.0f;
  int32_t power = int32_t (clamped * 1.44269504f - 0.5f);
  float r = clamped - float (power) * 0.693359375f + float (power) * 2.12194440e-4f;
  float series = 1.9875691500e-4f;

  series = series * r + 1.3981999507e-3f;
  series = series * r + 8.3334519073e-3f;
  series = series * r + 4.1665795894e-2f;
  series = series * r + 1.6666665459e-1f;
  series = series * r + 5.0000001201e-1f;
  return (series * r * r + r + 1.0f) * float_of (uint32_t (power + 127) << 23);
}

// How many of the block's tokens a request of that length has.
inline uint64_t
tokens_in_block (int32_t length, uint64_t block, uint64_t block_size)
{
  uint64_t before = block * block_size;
  uint64_t left = length > 0 && uint64_t (length) > before ? uint64_t (length) - before : 0;

  return left < block_size ? left : block_size;
}

} // namespace attention
