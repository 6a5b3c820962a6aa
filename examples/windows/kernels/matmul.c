/* matmul.c: how is a batch of tiles multiplied? p[t] = a[t] b[t], float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Four rows of p at a time stay in cache while rows of b pass by; loops over LANES have a constant
 * length, which is what a compiler turns into vector instructions.
 */
#include "tensor.h"

#include <string.h>

enum
{
  LANES = 16,
  ROWS = 4
};

/* p[r] += a[r][k] b[k], of ROWS rows and all k. */
static void
multiply_rows (const float *restrict a, const float *restrict b, float *restrict p, uint64_t n)
{
  memset (p, 0, ROWS * n * sizeof *p);
  for (uint64_t k = 0; k < n; k++)
    for (uint64_t j = 0; j < n; j += LANES)
      for (uint64_t r = 0; r < ROWS; r++)
        for (int l = 0; l < LANES; l++)
          p[r * n + j + l] += a[r * n + k] * b[k * n + j + l];
}

static float *
floats_of (const TensorData *tensor)
{
  return (float *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

/* args: a, b, p [tiles, n, n]: float32, n a multiple of 16, elements of a tile are adjacent;
 * whether to compute, or to write one number only. */
void
kernel_entry (int64_t *args)
{
  const TensorData *ta = (const TensorData *) (intptr_t) args[0];
  const TensorData *tb = (const TensorData *) (intptr_t) args[1];
  const TensorData *tp = (const TensorData *) (intptr_t) args[2];
  uint64_t n = ta->shapes[1];

  if (args[3] == 0)
    {
      *floats_of (tp) = 1;
      return;
    }
  for (uint64_t row = 0; row < ta->shapes[0] * n; row += ROWS)
    multiply_rows (floats_of (ta) + row * n, floats_of (tb) + row / n * n * n,
                   floats_of (tp) + row * n, n);
}
