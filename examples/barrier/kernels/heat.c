/* heat.c: what does a block of the rod do? In each step every cell becomes the mean of its
 * neighbours and itself; the ends stay.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step reads one of two rows and writes the other. Blocks read their neighbours' cells, so nobody
 * begins a step before all have ended the one before.
 */
#include "tensor.h"

/* args: the two rows [2, cells], float32, the first is the beginning; the number of steps; what
 * comes out [cells]. */
void
kernel_entry (int64_t *args)
{
  const TensorData *both = (const TensorData *) (uintptr_t) args[0];
  const TensorData *result = (const TensorData *) (uintptr_t) args[2];
  uint64_t n = both->shapes[1];
  uint64_t begin = n * get_block_idx (args) / get_block_num (args);
  uint64_t end = n * (get_block_idx (args) + 1) / get_block_num (args);
  float *rows = (float *) (uintptr_t) both->buffer.addr + both->start_offset;
  float *out = (float *) (uintptr_t) result->buffer.addr + result->start_offset;

  for (int64_t step = 0; step < args[1]; step++)
    {
      const float *from = rows + (uint64_t) (step % 2) * n;
      float *to = rows + (uint64_t) (1 - step % 2) * n;

      for (uint64_t i = begin; i < end; i++)
        to[i] = i == 0 || i == n - 1 ? from[i] : (from[i - 1] + from[i] + from[i + 1]) / 3;
      pto_sync_all (args);
    }
  for (uint64_t i = begin; i < end; i++)
    out[i] = rows[(uint64_t) (args[1] % 2) * n + i];
}
