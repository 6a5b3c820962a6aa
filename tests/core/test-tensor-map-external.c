/* test-tensor-map-external.c: is memory of the caller that overlaps one space?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

#include "../../pto/core/tensor-map-node.h"

/* Two tensors of the caller's over one memory that begin at different addresses. */
static void
test_external_merge (MapFixture *fixture, gconstpointer data)
{
  Tensor a = map_matrix_at (BASE, 4, 16), b = map_matrix_at (BASE + 1024, 4, 16),
         c = map_matrix_at (BASE + 128, 16, 16);
  Tensor apart = map_matrix_at (BASE + 1280 + 256, 4, 16);
  struct pto_space *sa = pto_map_external_space (fixture->map, a.buffer.addr, a.buffer.size);
  struct pto_space *sb = pto_map_external_space (fixture->map, b.buffer.addr, b.buffer.size);
  struct pto_space *sc, *sd;

  (void) data;
  g_assert_true (sa != sb);
  map_insert (fixture->map, sa, &a, PTO_PARAM_OUTPUT, 1);
  map_insert (fixture->map, sb, &b, PTO_PARAM_OUTPUT, 2);

  /* All spaces of a submit are asked for before it looks anything up: those that were merged
   * meanwhile still serve. */
  sa = pto_map_external_space (fixture->map, a.buffer.addr, a.buffer.size);
  sb = pto_map_external_space (fixture->map, b.buffer.addr, b.buffer.size);
  sd = pto_map_external_space (fixture->map, apart.buffer.addr, apart.buffer.size);
  sc = pto_map_external_space (fixture->map, c.buffer.addr, c.buffer.size);
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, sc, &c, PTO_PARAM_INPUT, &fixture->deps));
  oracle_normalize (&fixture->deps, NULL);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, sa, &a, PTO_PARAM_INPUT, &fixture->deps));
  map_assert_one (fixture, 1, PTO_HAZARD_RAW);
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, sd, &apart, PTO_PARAM_INOUT, &fixture->deps));
  map_assert_none (fixture);
  map_insert (fixture->map, sb, &b, PTO_PARAM_INOUT, 3);
  map_insert (fixture->map, sc, &c, PTO_PARAM_INPUT, 3);

  sa = pto_map_external_space (fixture->map, a.buffer.addr, a.buffer.size);
  g_assert_true (sa == pto_map_external_space (fixture->map, b.buffer.addr, b.buffer.size));
  g_assert_true (sa == pto_map_external_space (fixture->map, c.buffer.addr, c.buffer.size));
  g_assert_true (sa != pto_map_external_space (fixture->map, apart.buffer.addr, apart.buffer.size));
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, sa, &a, PTO_PARAM_OUTPUT, &fixture->deps));
  oracle_normalize (&fixture->deps, NULL);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].kinds, ==, PTO_HAZARD_WAW);
  g_assert_cmphex (fixture->deps.items[1].kinds, ==, PTO_HAZARD_WAR);

  /* The same address with a greater size reaches further. */
  g_assert_true (pto_map_external_space (fixture->map, BASE, 2048)
                 == pto_map_external_space (fixture->map, apart.buffer.addr, 4));
  /* Side by side is not together. */
  g_assert_true (pto_map_external_space (fixture->map, BASE + 2048, 64)
                 != pto_map_external_space (fixture->map, BASE, 64));
}

/* One look-up of a submit that writes nothing down yet. */
static void
look_at (MapFixture *fixture, struct pto_access *access, uint64_t addr, uint64_t size,
         PTOParamType type)
{
  Tensor tensor = oracle_make (addr, &size, 1, PTO_DTYPE_UINT8);
  struct pto_space *space = pto_map_external_space (fixture->map, addr, size);

  g_assert_nonnull (space);
  pto_access_init (access, space, &tensor);
  fixture->deps.count = 0;
  g_assert_true (pto_map_lookup (fixture->map, access, type, &fixture->deps));
  oracle_normalize (&fixture->deps, NULL);
}

/* A space asked for, which is merged into one that is merged into a third within the same submit:
 * none of them is given up before the inserts, however many more the submit asks for. The one in
 * the middle is of an earlier submit. */
static void
test_external_merge_twice (MapFixture *fixture, gconstpointer data)
{
  enum
  {
    OTHERS = 1000
  };
  static struct pto_access accesses[2 + OTHERS];
  const uint64_t first = BASE, middle = BASE + 1024, last = BASE + 2048, far = BASE + (1u << 24);
  struct pto_access halves[2];

  (void) data;
  /* The one with more entries takes those of the other: 0, 1 and 2 of them. */
  look_at (fixture, &halves[0], middle, 128, PTO_PARAM_OUTPUT_EXISTING);
  pto_map_insert (fixture->map, &halves[0], PTO_PARAM_OUTPUT_EXISTING, 1);
  g_assert_nonnull (pto_map_external_space (fixture->map, last, 256));
  for (uint32_t i = 0; i < 2; i++)
    look_at (fixture, &halves[i], last + i * 128, 64, PTO_PARAM_OUTPUT_EXISTING);
  for (uint32_t i = 0; i < 2; i++)
    pto_map_insert (fixture->map, &halves[i], PTO_PARAM_OUTPUT_EXISTING, 2);

  look_at (fixture, &accesses[0], first, 64, PTO_PARAM_OUTPUT_EXISTING);
  map_assert_none (fixture);
  look_at (fixture, &accesses[1], first, 4096, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  for (uint32_t i = 0; i < OTHERS; i++)
    {
      look_at (fixture, &accesses[2 + i], far + 4096 * i, 64, PTO_PARAM_INPUT);
      map_assert_none (fixture);
    }
  for (uint32_t i = 0; i < G_N_ELEMENTS (accesses); i++)
    pto_map_insert (fixture->map, &accesses[i],
                    i == 0 ? PTO_PARAM_OUTPUT_EXISTING : PTO_PARAM_INPUT, 3);

  look_at (fixture, &accesses[0], first, 64, PTO_PARAM_INPUT);
  map_assert_one (fixture, 3, PTO_HAZARD_RAW);
  look_at (fixture, &accesses[0], first, 4096, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 3);
  for (uint32_t i = 0; i < OTHERS; i++)
    {
      look_at (fixture, &accesses[2 + i], far + 4096 * i, 64, PTO_PARAM_OUTPUT);
      map_assert_one (fixture, 3, PTO_HAZARD_WAR);
    }
}

/* New memory for ever: spaces whose tasks are gone make room. */
static void
test_external_bounded (void)
{
  MapFixture fixture;
  uint32_t n = 200000;
  uint32_t cells;

  map_set_up_pool (&fixture, 64, ALL);
  cells = fixture.map->externals.grid_mask;
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor tensor = map_matrix_at (BASE + (uint64_t) i * 4096, 1 + i % 8, 16);
      struct pto_space *space;

      g_assert_true (pto_map_reserve (fixture.map, 1));
      space = pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
      g_assert_nonnull (space);
      map_insert (fixture.map, space, &tensor, PTO_PARAM_OUTPUT, i);
      if (i >= 40)
        {
          Tensor old = map_matrix_at (BASE + (uint64_t) (i - 39) * 4096, 1, 16);

          fixture.tails[0] = i - 39;
          pto_map_retired (fixture.map, 1);
          space = pto_map_external_space (fixture.map, old.buffer.addr, old.buffer.size);
          fixture.deps.count = 0;
          g_assert_true (map_lookup (fixture.map, space, &old, PTO_PARAM_INPUT, &fixture.deps));
          map_assert_one (&fixture, i - 39, PTO_HAZARD_RAW);
        }
    }
  /* Those that are there are few, and so are their cells. */
  g_assert_cmpuint (fixture.map->externals.count, <, n / 100);
  g_assert_cmpuint (fixture.map->externals.grid_mask, ==, cells);
  map_tear_down (&fixture, NULL);
}

/* More memory than there is room for: no, until tasks retire. What this submit asked for is never
 * given up. */
static void
test_external_exhaustion (void)
{
  struct pto_space *spaces[8192];
  uint32_t n = 0;
  MapFixture fixture;

  map_set_up_pool (&fixture, 8, ALL);
  while (n < G_N_ELEMENTS (spaces)
         && (spaces[n] = pto_map_external_space (fixture.map, BASE + 64 * n, 64)) != NULL)
    n++;
  g_assert_cmpuint (n, >=, 4096);
  g_assert_cmpuint (n, <, G_N_ELEMENTS (spaces));
  g_assert_true (map_lookup (fixture.map, NULL, &fixture.matrix, PTO_PARAM_INOUT, &fixture.deps));
  map_assert_none (&fixture);
  for (uint32_t i = 0; i < 8; i++)
    {
      Tensor tensor = map_matrix_at (BASE + 64 * i, 1, 16);

      g_assert_true (spaces[i] == pto_map_external_space (fixture.map, BASE + 64 * i, 64));
      map_insert (fixture.map, spaces[i], &tensor, PTO_PARAM_OUTPUT, i);
    }
  /* The next submit: the empty ones go. */
  g_assert_nonnull (pto_map_external_space (fixture.map, BASE + 64 * n, 64));
  for (uint32_t i = 0; i < 8; i++)
    g_assert_true (spaces[i] == pto_map_external_space (fixture.map, BASE + 64 * i, 64));
  map_tear_down (&fixture, NULL);
}

/* Runs that come and go, each with a few arrays of its caller: none leaves a trace. */
static void
test_external_reset (MapFixture *fixture, gconstpointer data)
{
  uint32_t cells = fixture->map->externals.grid_mask;

  (void) data;
  for (uint64_t round = 0; round < 2 * (uint64_t) cells; round++)
    {
      for (uint64_t i = 0; i < 3; i++)
        g_assert_nonnull (
            pto_map_external_space (fixture->map, BASE + (3 * round + i) * 4096, 4096));
      g_assert_cmpuint (fixture->map->externals.count, ==, 3);
      pto_map_reset (fixture->map);
      g_assert_cmpuint (fixture->map->externals.count, ==, 0);
    }
  g_assert_cmpuint (fixture->map->externals.grid_mask, ==, cells);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  map_add ("tensor-map-external/merge", test_external_merge);
  map_add ("tensor-map-external/merge-twice", test_external_merge_twice);
  map_add ("tensor-map-external/reset", test_external_reset);
  g_test_add_func ("/pto/tensor-map-external/bounded", test_external_bounded);
  g_test_add_func ("/pto/tensor-map-external/exhaustion", test_external_exhaustion);
  return g_test_run ();
}
