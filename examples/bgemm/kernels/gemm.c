/* gemm.c: how are two tiles multiplied? p = a b, float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A part of a row of p stays in registers while k runs; loops over LANES have a constant length,
 * which is what a compiler turns into vector instructions.
 */
#include "tensor.h"

enum
{
  LANES = 16
};

static inline void
row_part (const float *restrict a, const float *restrict b, uint64_t b_stride, float *restrict p,
          uint64_t depth)
{
  float sums[LANES] = { 0 };

  for (uint64_t k = 0; k < depth; k++)
    for (int l = 0; l < LANES; l++)
      sums[l] += a[k] * b[k * b_stride + l];
  for (int l = 0; l < LANES; l++)
    p[l] = sums[l];
}

static inline float
one_element (const float *a, const float *b, uint64_t b_stride, uint64_t depth)
{
  float sum = 0;

  for (uint64_t k = 0; k < depth; k++)
    sum += a[k] * b[k * b_stride];
  return sum;
}

/* args: a [m, k], b [k, n], p [m, n]: float32, rows may be strided, columns are adjacent. */
void
kernel_entry (int64_t *args)
{
  const TensorData *ta = (const TensorData *) (intptr_t) args[0];
  const TensorData *tb = (const TensorData *) (intptr_t) args[1];
  const TensorData *tp = (const TensorData *) (intptr_t) args[2];
  const float *a = (const float *) (uintptr_t) ta->buffer.addr + ta->start_offset;
  const float *b = (const float *) (uintptr_t) tb->buffer.addr + tb->start_offset;
  float *p = (float *) (uintptr_t) tp->buffer.addr + tp->start_offset;
  uint64_t rows = tp->shapes[0];
  uint64_t columns = tp->shapes[1];
  uint64_t depth = ta->shapes[1];
  uint64_t whole = columns - columns % LANES;

  for (uint64_t i = 0; i < rows; i++)
    {
      const float *a_row = a + i * ta->strides[0];
      float *p_row = p + i * tp->strides[0];

      for (uint64_t j = 0; j < whole; j += LANES)
        row_part (a_row, b + j, tb->strides[0], p_row + j, depth);
      for (uint64_t j = whole; j < columns; j++)
        p_row[j] = one_element (a_row, b + j, tb->strides[0], depth);
    }
}
