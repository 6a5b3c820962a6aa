// tile.hpp: where are the rows of a tile?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "tensor.h"

// float32 with two dimensions; the elements of a row are contiguous.
struct Tile
{
  explicit Tile (int64_t arg)
      : tensor (reinterpret_cast<const TensorData *> (arg)), rows (tensor->shapes[0]),
        columns (tensor->shapes[1])
  {
  }

  float *
  operator[] (uint64_t row) const
  {
    return reinterpret_cast<float *> (tensor->buffer.addr) + tensor->start_offset
           + row * tensor->strides[0];
  }

  const TensorData *tensor;
  uint64_t rows;
  uint64_t columns;
};
