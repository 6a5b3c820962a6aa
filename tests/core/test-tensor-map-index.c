/* test-tensor-map-index.c: does an index learn how the tensors of its space lie?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is found does not depend on it, only how many entries are looked at.
 */
#include "map-test.h"

#include "../../pto/core/tensor-map-node.h"

#include "../../pto/core/tensor-map-index.h"

#define ROWS 64u
#define TILE 8u

/* Tiles of a matrix: rows are one radix, what is left of a row the other. */
static void
test_tiles (MapFixture *fixture, gconstpointer data)
{
  Tensor matrix = map_matrix_at (BASE, ROWS, ROWS);
  const struct index *index;
  uint32_t task = 0, n = 0;

  for (uint32_t row = 0; row < ROWS; row += TILE)
    for (uint32_t column = 0; column < ROWS; column += TILE)
      {
        Tensor tile = map_part (&matrix, row, column, TILE, TILE);

        map_put (fixture, &tile, PTO_PARAM_OUTPUT_EXISTING, PTO_TASK_ID (0, task++));
      }
  index = fixture->map->indexes;
  g_assert_nonnull (index);
  g_assert_null (index->next);
  g_assert_cmpuint (index->n_digits, ==, 2);
  g_assert_cmpuint (index->radix[0], ==, ROWS * sizeof (float));
  g_assert_cmpuint (index->radix[1], ==, 1);
  g_assert_cmpuint (index->misfits, ==, 0);
  for (uint32_t i = 0; i < index->n_classes; i++)
    n += index->classes[i].count;
  g_assert_cmpuint (n, ==, ROWS / TILE * (ROWS / TILE));
  for (uint32_t i = 0; i < task; i++)
    {
      Tensor tile = map_part (&matrix, i / TILE * TILE, i % TILE * TILE, TILE, TILE);

      map_look (fixture, &tile, PTO_PARAM_INPUT);
      map_assert_one (fixture, PTO_TASK_ID (0, i), PTO_HAZARD_RAW);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  map_add ("tensor-map-index/tiles", test_tiles);
  return g_test_run ();
}
