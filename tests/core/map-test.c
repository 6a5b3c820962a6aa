/* map-test.c: what do the tests of the TensorMap share? One map, one space and a matrix in it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

#include <stdlib.h>
#include <string.h>

void
map_set_up_pool (MapFixture *fixture, uint32_t pool, uint32_t hazards)
{
  struct pto_map_config config = { pool, hazards, fixture->tails };

  memset (fixture->tails, 0, sizeof fixture->tails);
  memset (&fixture->space, 0, sizeof fixture->space);
  memset (&fixture->deps, 0, sizeof fixture->deps);
  fixture->map = pto_map_new (&config);
  g_assert_nonnull (fixture->map);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
  g_assert_cmpuint (pto_map_capacity (fixture->map), ==, pool);
  fixture->matrix = map_matrix_at (BASE, 16, 16);
}

void
map_set_up (MapFixture *fixture, gconstpointer data)
{
  map_set_up_pool (fixture, 4096, data != NULL ? GPOINTER_TO_UINT (data) : ALL);
}

void
map_tear_down (MapFixture *fixture, gconstpointer data)
{
  (void) data;
  pto_map_free (fixture->map);
  free (fixture->deps.items);
}

void
map_add (const char *path, void (*test) (MapFixture *fixture, gconstpointer data))
{
  char *full = g_strdup_printf ("/pto/%s", path);

  g_test_add (full, MapFixture, NULL, map_set_up, test, map_tear_down);
  g_free (full);
}

Tensor
map_matrix_at (uint64_t addr, uint64_t rows, uint64_t columns)
{
  uint64_t shape[2] = { rows, columns };

  return oracle_make (addr, shape, 2, PTO_DTYPE_FLOAT32);
}

Tensor
map_part (const Tensor *tensor, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
  uint64_t shape[2] = { rows, columns };
  uint64_t offset[2] = { row, column };
  Tensor view = pto2_tensor_view (tensor, shape, offset);

  g_assert_cmpuint (view.status, ==, PTO2_TENSOR_OK);
  return view;
}

bool
map_lookup (struct pto_map *map, struct pto_space *space, const Tensor *tensor, PTOParamType type,
            struct pto_deps *deps)
{
  struct pto_access access;

  pto_access_init (&access, space, tensor);
  return pto_map_lookup (map, &access, type, deps);
}

void
map_insert (struct pto_map *map, struct pto_space *space, const Tensor *tensor, PTOParamType type,
            pto_task_id task)
{
  struct pto_access access;

  pto_access_init (&access, space, tensor);
  pto_map_insert (map, &access, type, task);
}

void
map_look (MapFixture *fixture, const Tensor *tensor, PTOParamType type)
{
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, &fixture->space, tensor, type, &fixture->deps));
  oracle_normalize (&fixture->deps, NULL);
}

void
map_put (MapFixture *fixture, const Tensor *tensor, PTOParamType type, pto_task_id task)
{
  g_assert_true (pto_map_reserve (fixture->map, PTO_MAP_INSERT_NODES));
  map_insert (fixture->map, &fixture->space, tensor, type, task);
}
