/* accumulate.c: how is a batch of products added to what is there? c += p, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

static float *
floats_of (const TensorData *tensor)
{
  return (float *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

/* args: c, updated; p: [tiles, n, n], float32, elements are adjacent; whether to compute, or
 * to write one number only. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tc = (const TensorData *) (intptr_t) args[0];
  float *restrict c = floats_of (tc);
  const float *restrict p = floats_of ((const TensorData *) (intptr_t) args[1]);
  uint64_t count = tc->shapes[0] * tc->shapes[1] * tc->shapes[2];

  if (args[2] == 0)
    count = 1;
  for (uint64_t i = 0; i < count; i++)
    c[i] += p[i];
}
