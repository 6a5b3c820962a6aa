/* syrk.c: what is left of a tile on the diagonal? c -= a a^T, at the diagonal and below.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tile.h"

/* args: a; c, updated */
void
kernel_entry (int64_t *args)
{
  Tile a = tile_of (args[0]);
  Tile c = tile_of (args[1]);

  for (uint64_t i = 0; i < c.n; i++)
    for (uint64_t j = 0; j <= i; j++)
      row_of (&c, i)[j] -= dot (row_of (&a, i), row_of (&a, j), a.n);
}
