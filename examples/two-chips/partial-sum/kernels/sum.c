/* sum.c: what is the sum of a tensor's elements? out[0] = x[0] + x[1] + ..., float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: x, contiguous; out, one element. */
void
kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (intptr_t) args[0];
  const TensorData *out = (const TensorData *) (intptr_t) args[1];
  const float *p = (const float *) (uintptr_t) x->buffer.addr + x->start_offset;
  double sum = 0;

  for (uint64_t i = 0; i < x->shapes[0]; i++)
    sum += p[i];
  ((float *) (uintptr_t) out->buffer.addr)[out->start_offset] = (float) sum;
}
