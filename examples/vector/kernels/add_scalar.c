/* add_scalar.c: how is one number added to a tensor? out = x + value, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <string.h>

/* args: x, out: contiguous float32 tensors of one size; value: a float in the low 32 bits. */
void
kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) (intptr_t) args[0];
  const TensorData *out = (const TensorData *) (intptr_t) args[1];
  uint32_t bits = (uint32_t) args[2];
  const float *restrict p = (const float *) (uintptr_t) x->buffer.addr + x->start_offset;
  float *restrict r = (float *) (uintptr_t) out->buffer.addr + out->start_offset;
  uint64_t n = out->shapes[0];
  float value;

  memcpy (&value, &bits, sizeof value);
  for (uint64_t i = 0; i < n; i++)
    r[i] = p[i] + value;
}
