/* reference.h: what do the references of the windows share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto_reference.h"

static inline float *
window_array (PTO2Case *c, const char *name, uint64_t batches, uint64_t tiles, uint64_t size,
              bool output)
{
  uint64_t shape[3] = { batches * tiles, size, size };

  return (float *) c->ops->array (c, name, (DataType) PTO_DTYPE_FLOAT32, 3, shape, output);
}

/* Numbers between -1 and 1; the state is the seed of the next call. */
static inline void
window_fill (float *values, uint64_t count, uint64_t *state)
{
  for (uint64_t i = 0; i < count; i++)
    {
      *state = *state * 6364136223846793005u + 1442695040888963407u;
      values[i] = (float) (*state >> 40) * (2.0f / 16777216.0f) - 1.0f;
    }
}

/* sums[t] += a[t] b[t], each element in double. */
static inline void
window_multiply (const float *a, const float *b, float *sums, uint64_t tiles, uint64_t size)
{
  for (uint64_t row = 0; row < tiles * size; row++)
    for (uint64_t j = 0; j < size; j++)
      {
        const float *tile = b + row / size * size * size;
        double sum = sums[row * size + j];

        for (uint64_t k = 0; k < size; k++)
          sum += (double) a[row * size + k] * (double) tile[k * size + j];
        sums[row * size + j] = (float) sum;
      }
}
