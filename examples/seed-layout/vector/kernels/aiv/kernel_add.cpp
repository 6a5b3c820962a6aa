// kernel_add.cpp: how are two tensors added? out = x + y, float32.
//
// SPDX-License-Identifier: LGPL-2.1-or-later

#include "tensor.h"

// args: x, y, out: contiguous float32 tensors of one size.
extern "C" __aicore__ void
kernel_entry (__gm__ int64_t *args)
{
  auto *x = reinterpret_cast<__gm__ TensorData *> (args[0]);
  auto *y = reinterpret_cast<__gm__ TensorData *> (args[1]);
  auto *out = reinterpret_cast<__gm__ TensorData *> (args[2]);
  auto *p = reinterpret_cast<__gm__ const float *> (x->buffer.addr) + x->start_offset;
  auto *q = reinterpret_cast<__gm__ const float *> (y->buffer.addr) + y->start_offset;
  auto *r = reinterpret_cast<__gm__ float *> (out->buffer.addr) + out->start_offset;

  for (uint64_t i = 0; i < out->shapes[0]; i++)
    r[i] = p[i] + q[i];
}
