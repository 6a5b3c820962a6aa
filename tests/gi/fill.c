/* fill.c: how is a tensor filled with one number? out = value, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <string.h>

/* args: out: a contiguous float32 tensor with one dimension; value: a float in the low 32 bits. */
void
kernel_entry (int64_t *args)
{
  const TensorData *out = (const TensorData *) (intptr_t) args[0];
  float *p = (float *) (uintptr_t) out->buffer.addr + out->start_offset;
  uint32_t bits = (uint32_t) args[1];
  float value;

  memcpy (&value, &bits, sizeof value);
  for (uint64_t i = 0; i < out->shapes[0]; i++)
    p[i] = value;
}
