/* attend.c: what do some queries get of all values? o = softmax (q transpose (k) / sqrt (width)) v,
 * float32.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <math.h>

#define KEYS_MAX 256u

static float *
elements (const TensorData *tensor)
{
  return (float *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

/* args: q (rows, width), k (keys, width), v (keys, width), o (rows, width); all contiguous. */
void
kernel_entry (int64_t *args)
{
  const TensorData *shape = (const TensorData *) (intptr_t) args[0];
  const TensorData *others = (const TensorData *) (intptr_t) args[1];
  const float *q = elements (shape);
  const float *k = elements (others);
  const float *v = elements ((const TensorData *) (intptr_t) args[2]);
  float *o = elements ((const TensorData *) (intptr_t) args[3]);
  uint64_t width = shape->shapes[1];
  uint64_t keys = others->shapes[0];
  float weights[KEYS_MAX];

  for (uint64_t r = 0; r < shape->shapes[0]; r++)
    {
      float greatest = -INFINITY;
      float sum = 0;

      for (uint64_t i = 0; i < keys; i++)
        {
          weights[i] = 0;
          for (uint64_t c = 0; c < width; c++)
            weights[i] += q[r * width + c] * k[i * width + c];
          weights[i] /= sqrtf ((float) width);
          greatest = fmaxf (greatest, weights[i]);
        }
      for (uint64_t i = 0; i < keys; i++)
        sum += weights[i] = expf (weights[i] - greatest);
      for (uint64_t c = 0; c < width; c++)
        {
          float value = 0;

          for (uint64_t i = 0; i < keys; i++)
            value += weights[i] * v[i * width + c];
          o[r * width + c] = value / sum;
        }
    }
}
