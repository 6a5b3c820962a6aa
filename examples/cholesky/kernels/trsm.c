/* trsm.c: which x gives x l^T = a, for the lower triangle l of a tile?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tile.h"

/* args: l; a, becomes x */
void
kernel_entry (int64_t *args)
{
  Tile l = tile_of (args[0]);
  Tile a = tile_of (args[1]);

  for (uint64_t i = 0; i < a.n; i++)
    {
      float *row = row_of (&a, i);

      for (uint64_t j = 0; j < a.n; j++)
        row[j] = (row[j] - dot (row, row_of (&l, j), j)) / row_of (&l, j)[j];
    }
}
