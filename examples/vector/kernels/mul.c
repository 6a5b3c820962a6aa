/* mul.c: how are two tensors multiplied? out = x * y element by element, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: x, y, out: contiguous float32 tensors of one size. */
void
kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (intptr_t) args[0];
  const TensorData *y = (const TensorData *) (intptr_t) args[1];
  const TensorData *out = (const TensorData *) (intptr_t) args[2];
  const float *restrict p = (const float *) (uintptr_t) x->buffer.addr + x->start_offset;
  const float *restrict q = (const float *) (uintptr_t) y->buffer.addr + y->start_offset;
  float *restrict r = (float *) (uintptr_t) out->buffer.addr + out->start_offset;
  uint64_t n = out->shapes[0];

  for (uint64_t i = 0; i < n; i++)
    r[i] = p[i] * q[i];
}
