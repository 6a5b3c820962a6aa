/* tile.h: where is a tile's element?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tensor.h"

/* A square tile of float32, rows strided, columns adjacent. */
typedef struct Tile
{
  float *first;
  uint64_t stride;
  uint64_t n;
} Tile;

static inline Tile
tile_of (int64_t arg)
{
  const TensorData *t = (const TensorData *) (intptr_t) arg;
  Tile tile
      = { (float *) (uintptr_t) t->buffer.addr + t->start_offset, t->strides[0], t->shapes[0] };

  return tile;
}

static inline float *
row_of (const Tile *tile, uint64_t i)
{
  return tile->first + i * tile->stride;
}

static inline float
dot (const float *a, const float *b, uint64_t n)
{
  float sum = 0;

  for (uint64_t k = 0; k < n; k++)
    sum += a[k] * b[k];
  return sum;
}
