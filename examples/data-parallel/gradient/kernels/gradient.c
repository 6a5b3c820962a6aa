/* gradient.c: how does the squared error of a linear model change with its weights?
 * g = transpose (x) (x w - y), float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

static float *
elements (const TensorData *tensor)
{
  return (float *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

/* args: x (rows, columns), y (rows), w (columns), g (columns); all contiguous. */
void
kernel_entry (int64_t *args)
{
  const TensorData *shape = (const TensorData *) (intptr_t) args[0];
  const float *x = elements (shape);
  const float *y = elements ((const TensorData *) (intptr_t) args[1]);
  const float *w = elements ((const TensorData *) (intptr_t) args[2]);
  float *g = elements ((const TensorData *) (intptr_t) args[3]);
  uint64_t columns = shape->shapes[1];

  for (uint64_t c = 0; c < columns; c++)
    g[c] = 0;
  for (uint64_t r = 0; r < shape->shapes[0]; r++)
    {
      float residual = -y[r];

      for (uint64_t c = 0; c < columns; c++)
        residual += x[r * columns + c] * w[c];
      for (uint64_t c = 0; c < columns; c++)
        g[c] += x[r * columns + c] * residual;
    }
}
