/* test-tensor-map-pool.c: does the TensorMap let go of what is over, and of nothing else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

#include <malloc.h>

/* A retired writer of a part gives no edge, and hides no live one. */
static void
test_stale (MapFixture *fixture, gconstpointer data)
{
  pto_task_id outer = PTO_TASK_ID (0, 0), inner = PTO_TASK_ID (1, 0), second = PTO_TASK_ID (1, 1);
  Tensor left = map_part (&fixture->matrix, 0, 0, 16, 10);
  Tensor right = map_part (&fixture->matrix, 0, 6, 16, 10);
  Tensor common = map_part (&fixture->matrix, 0, 6, 16, 4);

  (void) data;
  map_put (fixture, &left, PTO_PARAM_OUTPUT, outer);
  map_put (fixture, &right, PTO_PARAM_OUTPUT, inner);
  map_put (fixture, &common, PTO_PARAM_INPUT, second);
  fixture->tails[1] = 1;
  map_look (fixture, &common, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].task, ==, outer);
  g_assert_cmphex (fixture->deps.items[1].task, ==, second);
  /* The look-up met the stale entry and freed it. */
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 2);
  fixture->tails[1] = 2;
  map_look (fixture, &common, PTO_PARAM_INOUT);
  map_assert_one (fixture, outer, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  fixture->tails[0] = 1;
  map_look (fixture, &common, PTO_PARAM_INOUT);
  map_assert_none (fixture);
  /* A writer gone, its reader not: the entry stays for the reader. */
  map_put (fixture, &left, PTO_PARAM_OUTPUT, PTO_TASK_ID (2, 0));
  map_put (fixture, &left, PTO_PARAM_INPUT, PTO_TASK_ID (3, 0));
  fixture->tails[2] = 1;
  map_look (fixture, &right, PTO_PARAM_INPUT);
  map_assert_none (fixture);
  map_look (fixture, &right, PTO_PARAM_OUTPUT);
  map_assert_one (fixture, PTO_TASK_ID (3, 0), PTO_HAZARD_WAR);
}

/* Positions wrap at 32 bits. */
static void
test_positions_wrap (MapFixture *fixture, gconstpointer data)
{
  Tensor row = map_part (&fixture->matrix, 0, 0, 1, 16);
  Tensor next = map_part (&fixture->matrix, 1, 0, 1, 16);

  (void) data;
  fixture->tails[0] = UINT32_MAX;
  map_put (fixture, &row, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, UINT32_MAX));
  map_put (fixture, &next, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, 0));
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  fixture->tails[0] = 0;
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  map_assert_one (fixture, PTO_TASK_ID (0, 0), PTO_HAZARD_RAW);
}

/* A weight that is never written, read for ever: as many nodes as live readers need, with the sweep
 * or without. */
static void
test_weight (void)
{
  const uint32_t live = 1000;
  uint32_t n = RUN_SHORT ? 500000 : 10000000;
  uint32_t most[2] = { 0, 0 };
  MapFixture fixture;
  Tensor row;

  map_set_up_pool (&fixture, 4096, ALL);
  row = map_part (&fixture.matrix, 3, 0, 1, 16);
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t half = i < n / 2 ? 0 : 1;

      map_insert (fixture.map, &fixture.space, &fixture.matrix, PTO_PARAM_INPUT,
                  PTO_TASK_ID (0, i));
      most[half] = MAX (most[half], pto_map_used (fixture.map));
      if (i >= live)
        {
          fixture.tails[0] = i - live + 1;
          if (half == 1)
            pto_map_retired (fixture.map, 1);
        }
    }
  /* 23 to a node, twice as many as live before the retired ones are dropped, and the node that is
   * being filled. */
  g_assert_cmpuint (most[0], <=, 2 * (live / 23 + 1) + 2);
  g_assert_cmpuint (most[1], <=, 2 * (live / 23 + 1) + 2);
  map_look (&fixture, &row, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture.deps.count, ==, live);
  fixture.tails[0] = n;
  for (uint32_t i = 0; i < 8; i++)
    pto_map_retired (fixture.map, 64);
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 0);
  map_tear_down (&fixture, NULL);
}

/* Nobody looks at old views again: the sweep finds them. */
static void
test_sweep (void)
{
  uint32_t most = 0;
  MapFixture fixture;
  Tensor wide;

  map_set_up_pool (&fixture, 65536, ALL);
  wide = map_matrix_at (BASE, 1000, 4096);
  for (uint32_t i = 0; i < 400000; i++)
    {
      Tensor cell = map_part (&wide, i % 1000, i / 1000 * 8, 1, 3 + i % 4);

      g_assert_true (pto_map_reserve (fixture.map, 1));
      map_insert (fixture.map, &fixture.space, &cell,
                  i % 3 == 0 ? PTO_PARAM_INPUT : PTO_PARAM_OUTPUT, PTO_TASK_ID (i % 4, i / 4));
      most = MAX (most, pto_map_used (fixture.map));
      if (i >= 1000)
        {
          fixture.tails[(i - 1000) % 4] = (i - 1000) / 4 + 1;
          pto_map_retired (fixture.map, 1);
        }
    }
  g_test_message ("1000 live entries, %u nodes", most);
  g_assert_cmpuint (most, <=, 2 * 1000 + 3 * 64);
  pto_map_drop (fixture.map, &fixture.space);
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 0);
  map_tear_down (&fixture, NULL);
}

/* An empty pool says no until tasks retire, and everything is right after that. */
static void
test_exhaustion (void)
{
  const uint32_t last = 16 + 3 + 3 * 23;
  MapFixture fixture;

  map_set_up_pool (&fixture, 16, ALL);
  g_assert_true (pto_map_reserve (fixture.map, 16));
  g_assert_false (pto_map_reserve (fixture.map, 17));
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor row = map_part (&fixture.matrix, i, 0, 1, 16);

      g_assert_cmpuint (pto_map_used (fixture.map), ==, i);
      map_put (&fixture, &row, PTO_PARAM_OUTPUT, i);
    }
  g_assert_false (pto_map_reserve (fixture.map, 1));
  g_assert_false (pto_map_reserve (fixture.map, 1));
  g_assert_true (pto_map_reserve (fixture.map, 0));
  fixture.tails[0] = 5;
  g_assert_false (pto_map_reserve (fixture.map, 6));
  g_assert_true (pto_map_reserve (fixture.map, 5));
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 11);
  map_look (&fixture, &fixture.matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture.deps.count, ==, 11);
  g_assert_cmphex (fixture.deps.items[0].task, ==, 5);

  /* Readers of one entry fill the rest: 3 in the entry, 23 in each of 3 nodes, 1 in the last node.
   */
  for (uint32_t i = 0; i <= last - 16; i++)
    {
      g_assert_true (pto_map_reserve (fixture.map, 1));
      map_put (&fixture, &fixture.matrix, PTO_PARAM_INPUT, 16 + i);
    }
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 16);
  g_assert_false (pto_map_reserve (fixture.map, 1));
  fixture.tails[0] = last;
  g_assert_true (pto_map_reserve (fixture.map, 15));
  map_look (&fixture, &fixture.matrix, PTO_PARAM_OUTPUT);
  map_assert_one (&fixture, last, PTO_HAZARD_WAR);
  map_tear_down (&fixture, NULL);
}

/* Nothing of one run is seen in the next, though the spaces were not touched. */
static void
test_reset (MapFixture *fixture, gconstpointer data)
{
  struct pto_space *external;

  (void) data;
  for (uint32_t run = 0; run < 3; run++)
    {
      external = pto_map_external_space (fixture->map, BASE, 1024);
      fixture->deps.count = 0;
      g_assert_true (
          map_lookup (fixture->map, external, &fixture->matrix, PTO_PARAM_INOUT, &fixture->deps));
      map_assert_none (fixture);
      for (uint32_t i = 0; i < 16; i++)
        {
          Tensor row = map_part (&fixture->matrix, i, 0, 1, 16);

          map_look (fixture, &row, PTO_PARAM_INOUT);
          map_assert_none (fixture);
          map_put (fixture, &row, PTO_PARAM_INOUT, i);
          map_insert (fixture->map, external, &row, PTO_PARAM_INOUT, i);
        }
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 32);
      map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      g_assert_cmpuint (fixture->deps.count, ==, 16);
      pto_map_reset (fixture->map);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
      map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      map_assert_none (fixture);
    }
}

/* A map in the place of another one finds nothing in spaces that that has filled; nor does the next
 * one find what this one has. */
static void
test_follow (MapFixture *fixture, gconstpointer data)
{
  struct pto_map_config config = { 64, ALL, fixture->tails };

  (void) data;
  for (uint32_t turn = 0; turn < 3; turn++)
    {
      struct pto_map *map = pto_map_new (&config);

      map_put (fixture, &fixture->matrix, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, 5));
      map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      map_assert_one (fixture, PTO_TASK_ID (0, 5), PTO_HAZARD_RAW);
      g_assert_nonnull (map);
      pto_map_follow (map, fixture->map);
      pto_map_free (fixture->map);
      fixture->map = map;
      map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      map_assert_none (fixture);
      g_assert_cmpuint (pto_map_used (map), ==, 0);
    }
}

/* A buffer that goes takes its entries along, and its record can serve another. */
static void
test_drop (MapFixture *fixture, gconstpointer data)
{
  struct pto_space other = { 0 };
  Tensor elsewhere = map_matrix_at (BASE + 4096, 16, 16);

  (void) data;
  pto_map_drop (fixture->map, &fixture->space);
  map_insert (fixture->map, &other, &elsewhere, PTO_PARAM_OUTPUT, 99);
  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint32_t i = 0; i < 100; i++)
        {
          Tensor row = map_part (&fixture->matrix, i % 16, 0, 1, 16);

          map_put (fixture, &row, i % 16 > 8 ? PTO_PARAM_INPUT : PTO_PARAM_OUTPUT, i);
        }
      map_look (fixture, &fixture->matrix, PTO_PARAM_OUTPUT);
      g_assert_cmpuint (fixture->deps.count, >, 16);
      pto_map_drop (fixture->map, &fixture->space);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
      map_look (fixture, &fixture->matrix, PTO_PARAM_OUTPUT);
      map_assert_none (fixture);
    }
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, &other, &elsewhere, PTO_PARAM_INPUT, &fixture->deps));
  map_assert_one (fixture, 99, PTO_HAZARD_RAW);
}

/* Buffers of many views come and go: what finds the views goes with them. */
static void
test_drop_frees_memory (MapFixture *fixture, gconstpointer data)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void) fixture;
  (void) data;
  g_test_skip ("a sanitizer keeps freed memory");
#else
  size_t before = 0;

  (void) data;
  for (uint32_t round = 0; round < (RUN_SHORT ? 2000u : 100000u); round++)
    {
      for (uint32_t i = 0; i < 12; i++)
        {
          Tensor row = map_part (&fixture->matrix, i, 0, 1, 8);

          map_put (fixture, &row, PTO_PARAM_OUTPUT, round);
        }
      if (round % 2 == 0)
        pto_map_drop (fixture->map, &fixture->space);
      else
        {
          fixture->tails[0] = round + 1;
          map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
        }
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
      if (round == 1000)
        before = mallinfo2 ().uordblks;
    }
  g_assert_cmpuint (mallinfo2 ().uordblks, <=, before + 4096);
#endif
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  map_add ("tensor-map-pool/stale", test_stale);
  map_add ("tensor-map-pool/positions-wrap", test_positions_wrap);
  map_add ("tensor-map-pool/reset", test_reset);
  map_add ("tensor-map-pool/follow", test_follow);
  map_add ("tensor-map-pool/drop", test_drop);
  map_add ("tensor-map-pool/drop-frees-memory", test_drop_frees_memory);
  g_test_add_func ("/pto/tensor-map-pool/exhaustion", test_exhaustion);
  g_test_add_func ("/pto/tensor-map-pool/sweep", test_sweep);
  g_test_add_func ("/pto/tensor-map-pool/weight", test_weight);
  return g_test_run ();
}
