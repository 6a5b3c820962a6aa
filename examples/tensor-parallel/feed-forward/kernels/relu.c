/* relu.c: what is left of a tensor without its negative elements? x = max (x, 0), float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: x, [m, n], rows may be strided, columns are adjacent. */
void
kernel_entry (int64_t *args)
{
  const TensorData *t = (const TensorData *) (intptr_t) args[0];
  float *x = (float *) (uintptr_t) t->buffer.addr + t->start_offset;

  for (uint64_t i = 0; i < t->shapes[0]; i++)
    for (uint64_t j = 0; j < t->shapes[1]; j++)
      if (x[i * t->strides[0] + j] < 0)
        x[i * t->strides[0] + j] = 0;
}
