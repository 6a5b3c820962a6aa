/* gemm.c: what is left of a tile below the diagonal? c -= a b^T
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tile.h"

/* args: a; b; c, updated */
void
kernel_entry (int64_t *args)
{
  Tile a = tile_of (args[0]);
  Tile b = tile_of (args[1]);
  Tile c = tile_of (args[2]);

  for (uint64_t i = 0; i < c.n; i++)
    for (uint64_t j = 0; j < c.n; j++)
      row_of (&c, i)[j] -= dot (row_of (&a, i), row_of (&b, j), a.n);
}
