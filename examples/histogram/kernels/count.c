/* count.c: how often is each value in a tile?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

/* args: the tile, uint8; the counts of 256 values, int32, which it adds to. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tile = (const TensorData *) (uintptr_t) args[0];
  const TensorData *counts = (const TensorData *) (uintptr_t) args[1];
  const uint8_t *values = (const uint8_t *) (uintptr_t) tile->buffer.addr + tile->start_offset;
  int32_t *count = (int32_t *) (uintptr_t) counts->buffer.addr + counts->start_offset;

  for (uint64_t i = 0; i < tile->shapes[0]; i++)
    count[values[i]]++;
}
