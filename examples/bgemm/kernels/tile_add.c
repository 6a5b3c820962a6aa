/* tile_add.c: how is a product added to its tile of C? c += p, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: c [m, n], updated; p [m, n]: float32, rows may be strided, columns are adjacent. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tc = (const TensorData *) (intptr_t) args[0];
  const TensorData *tp = (const TensorData *) (intptr_t) args[1];
  float *c = (float *) (uintptr_t) tc->buffer.addr + tc->start_offset;
  const float *p = (const float *) (uintptr_t) tp->buffer.addr + tp->start_offset;

  for (uint64_t i = 0; i < tc->shapes[0]; i++)
    {
      float *restrict row = c + i * tc->strides[0];
      const float *restrict addend = p + i * tp->strides[0];

      for (uint64_t j = 0; j < tc->shapes[1]; j++)
        row[j] += addend[j];
    }
}
