/* test-tensor-map-implied.c: is an output that has no entry yet found like one that has?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

/* The way of an output that is made for its task. */
static void
put_fresh (MapFixture *fixture, const Tensor *tensor, pto_task_id task)
{
  struct pto_access access;

  pto_access_init (&access, &fixture->space, tensor);
  access.fresh = true;
  fixture->space.creator = task;
  pto_map_insert (fixture->map, &access, PTO_PARAM_OUTPUT, task);
}

/* It counts as the node that it may come to need, and is given back when it is dropped. */
static void
test_counts (MapFixture *fixture, gconstpointer data)
{
  (void) data;
  for (uint32_t i = 0; i < 100; i++)
    {
      put_fresh (fixture, &fixture->matrix, PTO_TASK_ID (0, i));
      g_assert_true (fixture->space.implied);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
      pto_map_drop (fixture->map, &fixture->space);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
    }
  put_fresh (fixture, &fixture->matrix, PTO_TASK_ID (0, 100));
  pto_map_reset (fixture->map);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  map_assert_none (fixture);
}

static void
test_found_whole (MapFixture *fixture, gconstpointer data)
{
  (void) data;
  put_fresh (fixture, &fixture->matrix, PTO_TASK_ID (0, 5));
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 5), PTO_HAZARD_RAW);
  g_assert_false (fixture->space.implied);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
  map_put (fixture, &fixture->matrix, PTO_PARAM_INPUT, PTO_TASK_ID (0, 6));
  map_look (fixture, &fixture->matrix, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].task, ==, PTO_TASK_ID (0, 5));
  g_assert_cmphex (fixture->deps.items[1].task, ==, PTO_TASK_ID (0, 6));
}

/* A part is looked up, and a part is written without a look-up: the rest stays the creator's. */
static void
test_found_in_part (MapFixture *fixture, gconstpointer data)
{
  Tensor top = map_part (&fixture->matrix, 0, 0, 4, 16);
  Tensor column = map_part (&fixture->matrix, 0, 3, 16, 1);
  Tensor bottom = map_part (&fixture->matrix, 8, 0, 8, 16);

  (void) data;
  put_fresh (fixture, &fixture->matrix, PTO_TASK_ID (0, 5));
  map_put (fixture, &top, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, 6));
  g_assert_false (fixture->space.implied);
  map_look (fixture, &bottom, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 5), PTO_HAZARD_RAW);
  map_look (fixture, &column, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].task, ==, PTO_TASK_ID (0, 5));
  g_assert_cmphex (fixture->deps.items[1].task, ==, PTO_TASK_ID (0, 6));
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 2);
}

/* What does not begin with its buffer, or has gaps, gets its entry at once. */
static void
test_parts_have_entries (MapFixture *fixture, gconstpointer data)
{
  Tensor bottom = map_part (&fixture->matrix, 8, 0, 8, 16);
  Tensor column = map_part (&fixture->matrix, 0, 0, 16, 1);

  (void) data;
  put_fresh (fixture, &bottom, PTO_TASK_ID (0, 5));
  g_assert_false (fixture->space.implied);
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 5), PTO_HAZARD_RAW);
  pto_map_drop (fixture->map, &fixture->space);
  put_fresh (fixture, &column, PTO_TASK_ID (0, 6));
  g_assert_false (fixture->space.implied);
  map_look (fixture, &column, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 6), PTO_HAZARD_RAW);
}

/* The first rows of a buffer, and then the others. */
static void
test_begins_its_buffer (MapFixture *fixture, gconstpointer data)
{
  Tensor top = map_part (&fixture->matrix, 0, 0, 4, 16);
  Tensor bottom = map_part (&fixture->matrix, 4, 0, 12, 16);

  (void) data;
  put_fresh (fixture, &top, PTO_TASK_ID (0, 5));
  g_assert_true (fixture->space.implied);
  map_look (fixture, &bottom, PTO_PARAM_INPUT);
  map_assert_none (fixture);
  map_look (fixture, &top, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 5), PTO_HAZARD_RAW);
}

/* A full pool still holds the entry of everything that is implied. */
static void
test_full_pool (void)
{
  enum
  {
    N = 64
  };
  struct pto_space spaces[N];
  MapFixture fixture;

  memset (spaces, 0, sizeof spaces);
  map_set_up_pool (&fixture, N, ALL);
  for (uint32_t i = 0; i < N; i++)
    {
      Tensor tensor = map_matrix_at (BASE * (i + 2), 16, 16);
      struct pto_access access;

      pto_access_init (&access, &spaces[i], &tensor);
      access.fresh = true;
      spaces[i].creator = PTO_TASK_ID (0, i);
      g_assert_true (pto_map_has_room (fixture.map, 1));
      pto_map_insert (fixture.map, &access, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, i));
    }
  g_assert_false (pto_map_has_room (fixture.map, 1));
  for (uint32_t i = 0; i < N; i++)
    {
      Tensor tensor = map_matrix_at (BASE * (i + 2), 16, 16);

      fixture.deps.count = 0;
      g_assert_true (map_lookup (fixture.map, &spaces[i], &tensor, PTO_PARAM_INPUT, &fixture.deps));
      map_assert_one (&fixture, PTO_TASK_ID (0, i), PTO_HAZARD_RAW);
    }
  g_assert_cmpuint (pto_map_used (fixture.map), ==, N);
  map_tear_down (&fixture, NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  map_add ("tensor-map-implied/counts", test_counts);
  map_add ("tensor-map-implied/found-whole", test_found_whole);
  map_add ("tensor-map-implied/found-in-part", test_found_in_part);
  map_add ("tensor-map-implied/parts-have-entries", test_parts_have_entries);
  map_add ("tensor-map-implied/begins-its-buffer", test_begins_its_buffer);
  g_test_add_func ("/pto/tensor-map-implied/full-pool", test_full_pool);
  return g_test_run ();
}
