/* potrf.c: which lower triangle, times its transpose, is a tile? What is above the diagonal stays.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tile.h"

#include <math.h>

/* args: a, updated */
void
kernel_entry (int64_t *args)
{
  Tile a = tile_of (args[0]);

  for (uint64_t i = 0; i < a.n; i++)
    {
      float *row = row_of (&a, i);

      for (uint64_t j = 0; j < i; j++)
        row[j] = (row[j] - dot (row, row_of (&a, j), j)) / row_of (&a, j)[j];
      row[i] = sqrtf (row[i] - dot (row, row, i));
    }
}
