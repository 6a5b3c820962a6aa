/* add.c: what is the sum of two vectors? b = b + a, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: a; b, contiguous, of the same shape. */
void
kernel_entry (int64_t *args)
{
  const TensorData *a = (const TensorData *) (intptr_t) args[0];
  const TensorData *b = (const TensorData *) (intptr_t) args[1];
  const float *from = (const float *) (uintptr_t) a->buffer.addr + a->start_offset;
  float *to = (float *) (uintptr_t) b->buffer.addr + b->start_offset;

  for (uint64_t i = 0; i < a->shapes[0]; i++)
    to[i] += from[i];
}
