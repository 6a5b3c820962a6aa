// kernel_add_scalar.cpp: how is one number added to a tensor? out = x + value, float32.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "tensor.h"

#include <cstring>

// args: x, out: contiguous float32 tensors of one size; value: a float in the low 32 bits.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  auto *x = reinterpret_cast<__gm__ TensorData *> (args[0]);
  auto *out = reinterpret_cast<__gm__ TensorData *> (args[1]);
  auto *p = reinterpret_cast<__gm__ const float *> (x->buffer.addr) + x->start_offset;
  auto *r = reinterpret_cast<__gm__ float *> (out->buffer.addr) + out->start_offset;
  auto bits = static_cast<uint32_t> (args[2]);
  float value;

  std::memcpy (&value, &bits, sizeof value);
  for (uint64_t i = 0; i < out->shapes[0]; i++)
    r[i] = p[i] + value;
}
