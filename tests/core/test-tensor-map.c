/* test-tensor-map.c: does the TensorMap find every hazard, and no other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/tensor_map.h"

#include "oracle.h"

#include <glib.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C (0x10000)
#define ALL (PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR)
#define SEEDS (PTO_HAZARD_RAW | PTO_HAZARD_WAW)
/* PTO_TEST_SHORT: for valgrind, where everything takes fifty times as long. */
#define RUN_SHORT (g_getenv ("PTO_TEST_SHORT") != NULL)

/* One map, one space, tasks numbered in the order of their submits. */
typedef struct
{
  uint32_t tails[PTO_RINGS];
  struct pto_map *map;
  struct pto_space space;
  struct pto_deps deps;
  Tensor matrix; /* 16 x 16 float32 */
} Fixture;

static Tensor
matrix_at (uint64_t addr, uint64_t rows, uint64_t columns)
{
  uint64_t shape[2] = { rows, columns };

  return oracle_make (addr, shape, 2, PTO_DTYPE_FLOAT32);
}

static Tensor
part (const Tensor *tensor, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
  uint64_t shape[2] = { rows, columns };
  uint64_t offset[2] = { row, column };
  Tensor view = pto2_tensor_view (tensor, shape, offset);

  g_assert_cmpuint (view.status, ==, PTO2_TENSOR_OK);
  return view;
}

static void
set_up_pool (Fixture *fixture, uint32_t pool, uint32_t hazards)
{
  struct pto_map_config config = { pool, hazards, fixture->tails };

  memset (fixture->tails, 0, sizeof fixture->tails);
  memset (&fixture->space, 0, sizeof fixture->space);
  memset (&fixture->deps, 0, sizeof fixture->deps);
  fixture->map = pto_map_new (&config);
  g_assert_nonnull (fixture->map);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
  g_assert_cmpuint (pto_map_capacity (fixture->map), ==, pool);
  fixture->matrix = matrix_at (BASE, 16, 16);
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  set_up_pool (fixture, 4096, data != NULL ? GPOINTER_TO_UINT (data) : ALL);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  (void) data;
  pto_map_free (fixture->map);
  free (fixture->deps.items);
}

/* One access by itself. */
static bool
map_lookup (struct pto_map *map, struct pto_space *space, const Tensor *tensor, PTOParamType type,
            struct pto_deps *deps)
{
  struct pto_access access;

  pto_access_init (&access, space, tensor);
  return pto_map_lookup (map, &access, type, deps);
}

static void
map_insert (struct pto_map *map, struct pto_space *space, const Tensor *tensor, PTOParamType type,
            pto_task_id task)
{
  struct pto_access access;

  pto_access_init (&access, space, tensor);
  pto_map_insert (map, &access, type, task);
}

static void
look (Fixture *fixture, const Tensor *tensor, PTOParamType type)
{
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, &fixture->space, tensor, type, &fixture->deps));
  oracle_normalize (&fixture->deps, NULL);
}

static void
put (Fixture *fixture, const Tensor *tensor, PTOParamType type, pto_task_id task)
{
  g_assert_true (pto_map_reserve (fixture->map, PTO_MAP_INSERT_NODES));
  map_insert (fixture->map, &fixture->space, tensor, type, task);
}

#define assert_none(fixture) g_assert_cmpuint ((fixture)->deps.count, ==, 0)
#define assert_one(fixture, task_, kinds_)                          \
  G_STMT_START                                                      \
  {                                                                 \
    g_assert_cmpuint ((fixture)->deps.count, ==, 1);                \
    g_assert_cmphex ((fixture)->deps.items[0].task, ==, (task_));   \
    g_assert_cmphex ((fixture)->deps.items[0].kinds, ==, (kinds_)); \
  }                                                                 \
  G_STMT_END

/* What each tag gets after each tag, under every set of hazards. */
static void
test_tags (Fixture *fixture, gconstpointer data)
{
  static const PTOParamType tags[]
      = { PTO_PARAM_INPUT,           PTO_PARAM_OUTPUT, PTO_PARAM_INOUT,
          PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_NO_DEP, PTO_PARAM_SCALAR };
  pto_task_id task = 0;

  (void) data;
  for (uint32_t hazards = 0; hazards <= ALL; hazards++)
    for (uint32_t i = 0; i < G_N_ELEMENTS (tags); i++)
      for (uint32_t j = 0; j < G_N_ELEMENTS (tags); j++)
        {
          PTOParamType first = tags[i], second = tags[j];
          bool output = second == PTO_PARAM_OUTPUT || second == PTO_PARAM_OUTPUT_EXISTING;
          uint32_t expected = 0;

          pto_map_reset (fixture->map);
          pto_map_set_hazards (fixture->map, hazards);
          put (fixture, &fixture->matrix, first, ++task);
          look (fixture, &fixture->matrix, second);
          if (first == PTO_PARAM_INPUT && (second == PTO_PARAM_INOUT || output))
            expected = hazards & PTO_HAZARD_WAR;
          else if (first == PTO_PARAM_INOUT || first == PTO_PARAM_OUTPUT
                   || first == PTO_PARAM_OUTPUT_EXISTING)
            {
              if (second == PTO_PARAM_INPUT)
                expected = hazards & PTO_HAZARD_RAW;
              else if (second == PTO_PARAM_INOUT)
                expected = hazards & SEEDS;
              else if (output && (hazards & PTO_HAZARD_WAR) != 0)
                expected = hazards & PTO_HAZARD_WAW;
            }
          if (expected == 0)
            assert_none (fixture);
          else
            assert_one (fixture, task, expected);
          if (first == PTO_PARAM_NO_DEP || first == PTO_PARAM_SCALAR
              || (first == PTO_PARAM_INPUT && (hazards & PTO_HAZARD_WAR) == 0))
            g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
          else
            g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
        }
}

/* Written, read, written: the second writer waits for the readers since the first, and ends the
 * list. */
static void
test_readers (Fixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  put (fixture, m, PTO_PARAM_OUTPUT, 1);
  for (pto_task_id task = 2; task < 102; task++)
    {
      look (fixture, m, PTO_PARAM_INPUT);
      assert_one (fixture, 1, PTO_HAZARD_RAW);
      put (fixture, m, PTO_PARAM_INPUT, task);
    }
  look (fixture, m, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 101);
  for (uint32_t i = 0; i < 101; i++)
    {
      g_assert_cmphex (fixture->deps.items[i].task, ==, i + 1);
      g_assert_cmphex (fixture->deps.items[i].kinds, ==, i == 0 ? PTO_HAZARD_WAW : PTO_HAZARD_WAR);
    }
  put (fixture, m, PTO_PARAM_OUTPUT, 102);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
  look (fixture, m, PTO_PARAM_INOUT);
  assert_one (fixture, 102, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
}

/* The seeds' edges: no reader is kept, and OUTPUT replaces a writer without waiting for it. */
static void
test_without_war (Fixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  put (fixture, m, PTO_PARAM_OUTPUT, 1);
  put (fixture, m, PTO_PARAM_INPUT, 2);
  look (fixture, m, PTO_PARAM_OUTPUT);
  assert_none (fixture);
  look (fixture, m, PTO_PARAM_INOUT);
  assert_one (fixture, 1, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  put (fixture, m, PTO_PARAM_OUTPUT_EXISTING, 3);
  look (fixture, m, PTO_PARAM_INPUT);
  assert_one (fixture, 3, PTO_HAZARD_RAW);
}

/* A task that reads and writes one region, named once or twice, does not wait for itself: it looks
 * first. */
static void
test_no_edge_to_itself (Fixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  for (pto_task_id task = 1; task < 5; task++)
    {
      for (uint32_t k = 0; k < 2; k++)
        {
          look (fixture, m, k == 0 ? PTO_PARAM_INPUT : PTO_PARAM_OUTPUT);
          if (task == 1)
            assert_none (fixture);
          else
            assert_one (fixture, task - 1, k == 0 ? PTO_HAZARD_RAW : PTO_HAZARD_WAW);
        }
      put (fixture, m, PTO_PARAM_INPUT, task);
      put (fixture, m, PTO_PARAM_OUTPUT, task);
    }
}

static void
test_disjoint_views (Fixture *fixture, gconstpointer data)
{
  (void) data;
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor tile = part (&fixture->matrix, i / 4 * 4, i % 4 * 4, 4, 4);

      look (fixture, &tile, PTO_PARAM_INOUT);
      assert_none (fixture);
      put (fixture, &tile, PTO_PARAM_INOUT, i);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, i + 1);
    }
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor tile = part (&fixture->matrix, i / 4 * 4, i % 4 * 4, 4, 4);
      Tensor turned = pto2_tensor_transpose (&tile, 0, 1);

      look (fixture, &tile, PTO_PARAM_INPUT);
      assert_one (fixture, i, PTO_HAZARD_RAW);
      look (fixture, &turned, PTO_PARAM_INPUT);
      assert_one (fixture, i, PTO_HAZARD_RAW);
    }
}

static void
test_partial_overlap (Fixture *fixture, gconstpointer data)
{
  Tensor left = part (&fixture->matrix, 0, 0, 16, 10);
  Tensor right = part (&fixture->matrix, 0, 6, 16, 10);
  Tensor first = part (&fixture->matrix, 3, 0, 1, 6);
  Tensor last = part (&fixture->matrix, 3, 10, 1, 6);

  (void) data;
  put (fixture, &left, PTO_PARAM_OUTPUT, 1);
  look (fixture, &right, PTO_PARAM_OUTPUT);
  assert_one (fixture, 1, PTO_HAZARD_WAW);
  put (fixture, &right, PTO_PARAM_OUTPUT, 2);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 2);
  look (fixture, &first, PTO_PARAM_INPUT);
  assert_one (fixture, 1, PTO_HAZARD_RAW);
  look (fixture, &last, PTO_PARAM_INPUT);
  assert_one (fixture, 2, PTO_HAZARD_RAW);
  look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
}

static void
test_covering_write (Fixture *fixture, gconstpointer data)
{
  Tensor left = part (&fixture->matrix, 0, 0, 16, 10);
  Tensor tile = part (&fixture->matrix, 2, 2, 4, 4);

  (void) data;
  put (fixture, &tile, PTO_PARAM_OUTPUT, 1);
  put (fixture, &tile, PTO_PARAM_INPUT, 2);
  look (fixture, &left, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  put (fixture, &left, PTO_PARAM_OUTPUT, 3);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
  look (fixture, &tile, PTO_PARAM_INOUT);
  assert_one (fixture, 3, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  /* Not by a read. */
  put (fixture, &tile, PTO_PARAM_OUTPUT, 4);
  put (fixture, &fixture->matrix, PTO_PARAM_INPUT, 5);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 3);
}

/* A retired writer of a part gives no edge, and hides no live one. */
static void
test_stale (Fixture *fixture, gconstpointer data)
{
  pto_task_id outer = PTO_TASK_ID (0, 0), inner = PTO_TASK_ID (1, 0), second = PTO_TASK_ID (1, 1);
  Tensor left = part (&fixture->matrix, 0, 0, 16, 10);
  Tensor right = part (&fixture->matrix, 0, 6, 16, 10);
  Tensor common = part (&fixture->matrix, 0, 6, 16, 4);

  (void) data;
  put (fixture, &left, PTO_PARAM_OUTPUT, outer);
  put (fixture, &right, PTO_PARAM_OUTPUT, inner);
  put (fixture, &common, PTO_PARAM_INPUT, second);
  fixture->tails[1] = 1;
  look (fixture, &common, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].task, ==, outer);
  g_assert_cmphex (fixture->deps.items[1].task, ==, second);
  /* The look-up met the stale entry and freed it. */
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 2);
  fixture->tails[1] = 2;
  look (fixture, &common, PTO_PARAM_INOUT);
  assert_one (fixture, outer, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  fixture->tails[0] = 1;
  look (fixture, &common, PTO_PARAM_INOUT);
  assert_none (fixture);
  /* A writer gone, its reader not: the entry stays for the reader. */
  put (fixture, &left, PTO_PARAM_OUTPUT, PTO_TASK_ID (2, 0));
  put (fixture, &left, PTO_PARAM_INPUT, PTO_TASK_ID (3, 0));
  fixture->tails[2] = 1;
  look (fixture, &right, PTO_PARAM_INPUT);
  assert_none (fixture);
  look (fixture, &right, PTO_PARAM_OUTPUT);
  assert_one (fixture, PTO_TASK_ID (3, 0), PTO_HAZARD_WAR);
}

/* Positions wrap at 32 bits. */
static void
test_positions_wrap (Fixture *fixture, gconstpointer data)
{
  Tensor row = part (&fixture->matrix, 0, 0, 1, 16);
  Tensor next = part (&fixture->matrix, 1, 0, 1, 16);

  (void) data;
  fixture->tails[0] = UINT32_MAX;
  put (fixture, &row, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, UINT32_MAX));
  put (fixture, &next, PTO_PARAM_OUTPUT, PTO_TASK_ID (0, 0));
  look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  fixture->tails[0] = 0;
  look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  assert_one (fixture, PTO_TASK_ID (0, 0), PTO_HAZARD_RAW);
}

/* What cannot be proved apart is ordered, and the edge says so. */
static void
test_unsure (Fixture *fixture, gconstpointer data)
{
  Tensor a = matrix_at (BASE, 2, 2);
  Tensor b;

  (void) data;
  a.dtype = PTO_DTYPE_INT8;
  a.ndims = 3;
  for (uint32_t i = 0; i < 3; i++)
    a.shapes[i] = 1000;
  a.strides[0] = 1000003 * 2;
  a.strides[1] = 1000033 * 2;
  a.strides[2] = 1000037 * 2;
  b = a;
  b.ndims = 4;
  b.start_offset = 300000001;
  b.strides[0] = 1000039 * 2;
  b.strides[1] = 1000081 * 2;
  b.strides[2] = 1000099 * 2;
  b.shapes[3] = 2;
  b.strides[3] = 300000007;
  put (fixture, &a, PTO_PARAM_INOUT, 1);
  put (fixture, &a, PTO_PARAM_INPUT, 2);
  look (fixture, &b, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].kinds, ==,
                   PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_UNSURE);
  g_assert_cmphex (fixture->deps.items[1].kinds, ==, PTO_HAZARD_WAR | PTO_HAZARD_UNSURE);
  look (fixture, &a, PTO_PARAM_INPUT);
  assert_one (fixture, 1, PTO_HAZARD_RAW);
}

/* 4096 readers, none of which is lost. */
static void
test_many_readers (Fixture *fixture, gconstpointer data)
{
  Tensor row = part (&fixture->matrix, 7, 0, 1, 16);

  (void) data;
  for (uint32_t i = 0; i < 5000; i++)
    put (fixture, &fixture->matrix, PTO_PARAM_INPUT, PTO_TASK_ID (i % PTO_RINGS, i / PTO_RINGS));
  look (fixture, &row, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 5000);
  /* A task that reads twice is one reader. */
  put (fixture, &row, PTO_PARAM_INPUT, PTO_TASK_ID (0, 9000));
  put (fixture, &row, PTO_PARAM_INPUT, PTO_TASK_ID (0, 9000));
  fixture->deps.count = 0;
  g_assert_true (
      map_lookup (fixture->map, &fixture->space, &row, PTO_PARAM_OUTPUT, &fixture->deps));
  g_assert_cmpuint (fixture->deps.count, ==, 5001);
}

/* A weight that is never written, read for ever: as many nodes as live readers need, with the sweep
 * or without. */
static void
test_weight (void)
{
  const uint32_t live = 1000;
  uint32_t n = RUN_SHORT ? 500000 : 10000000;
  uint32_t most[2] = { 0, 0 };
  Fixture fixture;
  Tensor row;

  set_up_pool (&fixture, 4096, ALL);
  row = part (&fixture.matrix, 3, 0, 1, 16);
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
  look (&fixture, &row, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture.deps.count, ==, live);
  fixture.tails[0] = n;
  for (uint32_t i = 0; i < 8; i++)
    pto_map_retired (fixture.map, 64);
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 0);
  tear_down (&fixture, NULL);
}

/* Nobody looks at old views again: the sweep finds them. */
static void
test_sweep (void)
{
  uint32_t most = 0;
  Fixture fixture;
  Tensor wide;

  set_up_pool (&fixture, 65536, ALL);
  wide = matrix_at (BASE, 1000, 4096);
  for (uint32_t i = 0; i < 400000; i++)
    {
      Tensor cell = part (&wide, i % 1000, i / 1000 * 8, 1, 3 + i % 4);

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
  tear_down (&fixture, NULL);
}

/* An empty pool says no until tasks retire, and everything is right after that. */
static void
test_exhaustion (void)
{
  const uint32_t last = 16 + 3 + 3 * 23;
  Fixture fixture;

  set_up_pool (&fixture, 16, ALL);
  g_assert_true (pto_map_reserve (fixture.map, 16));
  g_assert_false (pto_map_reserve (fixture.map, 17));
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor row = part (&fixture.matrix, i, 0, 1, 16);

      g_assert_cmpuint (pto_map_used (fixture.map), ==, i);
      put (&fixture, &row, PTO_PARAM_OUTPUT, i);
    }
  g_assert_false (pto_map_reserve (fixture.map, 1));
  g_assert_false (pto_map_reserve (fixture.map, 1));
  g_assert_true (pto_map_reserve (fixture.map, 0));
  fixture.tails[0] = 5;
  g_assert_false (pto_map_reserve (fixture.map, 6));
  g_assert_true (pto_map_reserve (fixture.map, 5));
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 11);
  look (&fixture, &fixture.matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture.deps.count, ==, 11);
  g_assert_cmphex (fixture.deps.items[0].task, ==, 5);

  /* Readers of one entry fill the rest: 3 in the entry, 23 in each of 3 nodes, 1 in the last node.
   */
  for (uint32_t i = 0; i <= last - 16; i++)
    {
      g_assert_true (pto_map_reserve (fixture.map, 1));
      put (&fixture, &fixture.matrix, PTO_PARAM_INPUT, 16 + i);
    }
  g_assert_cmpuint (pto_map_used (fixture.map), ==, 16);
  g_assert_false (pto_map_reserve (fixture.map, 1));
  fixture.tails[0] = last;
  g_assert_true (pto_map_reserve (fixture.map, 15));
  look (&fixture, &fixture.matrix, PTO_PARAM_OUTPUT);
  assert_one (&fixture, last, PTO_HAZARD_WAR);
  tear_down (&fixture, NULL);
}

/* Nothing of one run is seen in the next, though the spaces were not touched. */
static void
test_reset (Fixture *fixture, gconstpointer data)
{
  struct pto_space *external;

  (void) data;
  for (uint32_t run = 0; run < 3; run++)
    {
      external = pto_map_external_space (fixture->map, BASE, 1024);
      fixture->deps.count = 0;
      g_assert_true (
          map_lookup (fixture->map, external, &fixture->matrix, PTO_PARAM_INOUT, &fixture->deps));
      assert_none (fixture);
      for (uint32_t i = 0; i < 16; i++)
        {
          Tensor row = part (&fixture->matrix, i, 0, 1, 16);

          look (fixture, &row, PTO_PARAM_INOUT);
          assert_none (fixture);
          put (fixture, &row, PTO_PARAM_INOUT, i);
          map_insert (fixture->map, external, &row, PTO_PARAM_INOUT, i);
        }
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 32);
      look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      g_assert_cmpuint (fixture->deps.count, ==, 16);
      pto_map_reset (fixture->map);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
      look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
      assert_none (fixture);
    }
}

/* A buffer that goes takes its entries along, and its record can serve another. */
static void
test_drop (Fixture *fixture, gconstpointer data)
{
  struct pto_space other = { 0 };
  Tensor elsewhere = matrix_at (BASE + 4096, 16, 16);

  (void) data;
  pto_map_drop (fixture->map, &fixture->space);
  map_insert (fixture->map, &other, &elsewhere, PTO_PARAM_OUTPUT, 99);
  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint32_t i = 0; i < 100; i++)
        {
          Tensor row = part (&fixture->matrix, i % 16, 0, 1, 16);

          put (fixture, &row, i % 16 > 8 ? PTO_PARAM_INPUT : PTO_PARAM_OUTPUT, i);
        }
      look (fixture, &fixture->matrix, PTO_PARAM_OUTPUT);
      g_assert_cmpuint (fixture->deps.count, >, 16);
      pto_map_drop (fixture->map, &fixture->space);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
      look (fixture, &fixture->matrix, PTO_PARAM_OUTPUT);
      assert_none (fixture);
    }
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, &other, &elsewhere, PTO_PARAM_INPUT, &fixture->deps));
  assert_one (fixture, 99, PTO_HAZARD_RAW);
}

/* Buffers of many views come and go: what finds the views goes with them. */
static void
test_drop_frees_memory (Fixture *fixture, gconstpointer data)
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
          Tensor row = part (&fixture->matrix, i, 0, 1, 8);

          put (fixture, &row, PTO_PARAM_OUTPUT, round);
        }
      if (round % 2 == 0)
        pto_map_drop (fixture->map, &fixture->space);
      else
        {
          fixture->tails[0] = round + 1;
          look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
        }
      g_assert_cmpuint (pto_map_used (fixture->map), ==, 0);
      if (round == 1000)
        before = mallinfo2 ().uordblks;
    }
  g_assert_cmpuint (mallinfo2 ().uordblks, <=, before + 4096);
#endif
}

/* Two tensors of the caller's over one memory that begin at different addresses. */
static void
test_external_merge (Fixture *fixture, gconstpointer data)
{
  Tensor a = matrix_at (BASE, 4, 16), b = matrix_at (BASE + 1024, 4, 16),
         c = matrix_at (BASE + 128, 16, 16);
  Tensor apart = matrix_at (BASE + 1280 + 256, 4, 16);
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
  assert_one (fixture, 1, PTO_HAZARD_RAW);
  fixture->deps.count = 0;
  g_assert_true (map_lookup (fixture->map, sd, &apart, PTO_PARAM_INOUT, &fixture->deps));
  assert_none (fixture);
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

/* New memory for ever: spaces whose tasks are gone make room. */
static void
test_external_bounded (void)
{
  Fixture fixture;
  uint32_t n = 200000;

  set_up_pool (&fixture, 64, ALL);
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor tensor = matrix_at (BASE + (uint64_t) i * 4096, 1 + i % 8, 16);
      struct pto_space *space;

      g_assert_true (pto_map_reserve (fixture.map, 1));
      space = pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
      g_assert_nonnull (space);
      map_insert (fixture.map, space, &tensor, PTO_PARAM_OUTPUT, i);
      if (i >= 40)
        {
          Tensor old = matrix_at (BASE + (uint64_t) (i - 39) * 4096, 1, 16);

          fixture.tails[0] = i - 39;
          pto_map_retired (fixture.map, 1);
          space = pto_map_external_space (fixture.map, old.buffer.addr, old.buffer.size);
          fixture.deps.count = 0;
          g_assert_true (map_lookup (fixture.map, space, &old, PTO_PARAM_INPUT, &fixture.deps));
          assert_one (&fixture, i - 39, PTO_HAZARD_RAW);
        }
    }
  tear_down (&fixture, NULL);
}

/* More memory than there is room for: no, until tasks retire. What this submit asked for is never
 * given up. */
static void
test_external_exhaustion (void)
{
  struct pto_space *spaces[8192];
  uint32_t n = 0;
  Fixture fixture;

  set_up_pool (&fixture, 8, ALL);
  while (n < G_N_ELEMENTS (spaces)
         && (spaces[n] = pto_map_external_space (fixture.map, BASE + 64 * n, 64)) != NULL)
    n++;
  g_assert_cmpuint (n, >=, 4096);
  g_assert_cmpuint (n, <, G_N_ELEMENTS (spaces));
  g_assert_true (map_lookup (fixture.map, NULL, &fixture.matrix, PTO_PARAM_INOUT, &fixture.deps));
  assert_none (&fixture);
  for (uint32_t i = 0; i < 8; i++)
    {
      Tensor tensor = matrix_at (BASE + 64 * i, 1, 16);

      g_assert_true (spaces[i] == pto_map_external_space (fixture.map, BASE + 64 * i, 64));
      map_insert (fixture.map, spaces[i], &tensor, PTO_PARAM_OUTPUT, i);
    }
  /* The next submit: the empty ones go. */
  g_assert_nonnull (pto_map_external_space (fixture.map, BASE + 64 * n, 64));
  for (uint32_t i = 0; i < 8; i++)
    g_assert_true (spaces[i] == pto_map_external_space (fixture.map, BASE + 64 * i, 64));
  tear_down (&fixture, NULL);
}

/* Random programs. A task accesses up to 3 tensors; tasks complete in any order that the oracle
 * allows and retire in order on each of the rings.
 *
 * Two things must hold. The entries: what is found is what the rules of the map, told by bytes and
 * without any index, say, less what has retired. And the order: with every hazard on, the order of
 * tasks that follows from the edges is the order that follows from bytes alone (each byte's last
 * writer and its readers since). More edges are found than by bytes, because an entry overwritten
 * in part stays whole, but they are implied: the byte that both tasks touch has seen every write in
 * between, each ordered after the one before. A task that was complete at the submit needs no order
 * any more, and may have it. */
#define MAX_TASKS 64u

struct program
{
  uint32_t n_tasks;
  uint32_t pool;
  uint32_t hazards;
  enum oracle_shapes shapes;
  bool external;   /* every tensor is the caller's own memory */
  uint32_t retire; /* percent of submits after which tasks complete */
};

struct access
{
  Tensor tensor;
  PTOParamType type;
  struct oracle_bytes bytes;
  struct pto_access access;
};

static void
run_program (const struct program *program, struct oracle_random *random)
{
  static uint64_t byte_readers[ORACLE_BYTES];
  static int32_t byte_writer[ORACLE_BYTES];
  uint64_t found_order[MAX_TASKS], true_order[MAX_TASKS];
  pto_task_id ids[MAX_TASKS];
  uint32_t next_local[PTO_RINGS] = { 0 };
  struct oracle_map oracle = { .hazards = program->hazards };
  struct pto_deps expected = { 0 };
  uint64_t complete = 0;
  Fixture fixture;

  set_up_pool (&fixture, program->pool, program->hazards);
  memset (byte_readers, 0, sizeof byte_readers);
  memset (byte_writer, -1, sizeof byte_writer);
  for (uint32_t t = 0; t < program->n_tasks; t++)
    {
      uint32_t ring = oracle_below (random, PTO_RINGS);
      uint32_t n = 1 + oracle_below (random, 3);
      struct access accesses[3];
      uint64_t found = 0, direct = 0;

      ids[t] = PTO_TASK_ID (ring, next_local[ring]++);
      g_assert_true (pto_map_reserve (fixture.map, n * PTO_MAP_INSERT_NODES));
      for (uint32_t i = 0; i < n; i++)
        {
          struct access *access = &accesses[i];

          access->tensor = oracle_tensor (random, BASE, program->shapes);
          access->type = oracle_below (random, 5);
          g_assert_true (oracle_touch (&access->bytes, &access->tensor, BASE));
        }
      fixture.deps.count = 0;
      expected.count = 0;
      for (uint32_t i = 0; i < n; i++)
        {
          struct pto_space *space
              = program->external ? pto_map_external_space (
                    fixture.map, accesses[i].tensor.buffer.addr, accesses[i].tensor.buffer.size)
                                  : &fixture.space;

          g_assert_nonnull (space);
          pto_access_init (&accesses[i].access, space, &accesses[i].tensor);
          g_assert_true (
              pto_map_lookup (fixture.map, &accesses[i].access, accesses[i].type, &fixture.deps));
          oracle_map_lookup (&oracle, &accesses[i].bytes, accesses[i].type, &expected);
          for (uint32_t b = 0; b < ORACLE_BYTES; b++)
            if ((accesses[i].bytes.words[b / 64] >> b % 64 & 1) != 0
                && accesses[i].type != PTO_PARAM_NO_DEP)
              {
                if (byte_writer[b] >= 0)
                  direct |= UINT64_C (1) << byte_writer[b];
                if (accesses[i].type != PTO_PARAM_INPUT)
                  direct |= byte_readers[b];
              }
        }
      oracle_normalize (&fixture.deps, NULL);
      oracle_normalize (&expected, fixture.tails);
      for (uint32_t i = 0; i < fixture.deps.count; i++)
        {
          uint32_t d = 0;

          g_assert_false (pto_task_is_retired (fixture.tails, fixture.deps.items[i].task));
          while (d < t && ids[d] != fixture.deps.items[i].task)
            d++;
          g_assert_cmpuint (d, <, t);
          found |= UINT64_C (1) << d;
        }
      /* Strides that overlap themselves may hide that a write covers an entry: then edges are left
       * that the order implies. */
      if (program->shapes != ORACLE_ANY)
        {
          g_assert_cmpuint (fixture.deps.count, ==, expected.count);
          for (uint32_t i = 0; i < expected.count; i++)
            {
              g_assert_cmphex (fixture.deps.items[i].task, ==, expected.items[i].task);
              g_assert_cmphex (fixture.deps.items[i].kinds, ==, expected.items[i].kinds);
            }
        }
      else
        for (uint32_t i = 0, j = 0; i < expected.count; i++, j++)
          {
            while (j < fixture.deps.count && fixture.deps.items[j].task != expected.items[i].task)
              j++;
            g_assert_cmpuint (j, <, fixture.deps.count);
            g_assert_cmphex (fixture.deps.items[j].kinds & expected.items[i].kinds, ==,
                             expected.items[i].kinds);
          }
      found_order[t] = found;
      true_order[t] = direct;
      for (uint32_t d = 0; d < t; d++)
        {
          if ((found >> d & 1) != 0)
            found_order[t] |= found_order[d];
          if ((direct >> d & 1) != 0)
            true_order[t] |= true_order[d];
        }
      if (program->hazards == ALL)
        {
          g_assert_cmphex (found_order[t] & ~true_order[t], ==, 0);
          g_assert_cmphex (true_order[t] & ~found_order[t] & ~complete, ==, 0);
        }

      for (uint32_t i = 0; i < n; i++)
        {
          pto_map_insert (fixture.map, &accesses[i].access, accesses[i].type, ids[t]);
          oracle_map_insert (&oracle, &accesses[i].bytes, accesses[i].type, ids[t]);
          for (uint32_t b = 0; b < ORACLE_BYTES; b++)
            if ((accesses[i].bytes.words[b / 64] >> b % 64 & 1) == 0
                || accesses[i].type == PTO_PARAM_NO_DEP)
              continue;
            else if (accesses[i].type == PTO_PARAM_INPUT)
              byte_readers[b] |= UINT64_C (1) << t;
            else
              {
                byte_writer[b] = (int32_t) t;
                byte_readers[b] = 0;
              }
        }
      for (uint32_t d = 0; d <= t && oracle_below (random, 100) < program->retire; d++)
        if ((true_order[d] & ~complete) == 0 && (found_order[d] & ~complete) == 0
            && oracle_below (random, 3) > 0)
          complete |= UINT64_C (1) << d;
      for (uint32_t d = 0; d <= t; d++)
        if ((complete >> d & 1) != 0
            && fixture.tails[PTO_TASK_RING (ids[d])] == PTO_TASK_LOCAL (ids[d]))
          {
            fixture.tails[PTO_TASK_RING (ids[d])]++;
            pto_map_retired (fixture.map, 1 + oracle_below (random, 40));
          }
    }
  oracle_map_clear (&oracle);
  free (expected.items);
  tear_down (&fixture, NULL);
}

static void
run_programs (uint32_t hazards, enum oracle_shapes shapes, bool external)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = g_test_slow () ? 30000 : RUN_SHORT ? 100 : 1500;

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < n; i++)
    {
      struct program program
          = { 2 + oracle_below (&random, MAX_TASKS - 1),   1024, hazards, shapes, external,
              i % 2 == 0 ? 0 : oracle_below (&random, 101) };

      run_program (&program, &random);
    }
}

static void
test_random_views (void)
{
  run_programs (ALL, ORACLE_VIEWS, false);
}

static void
test_random_external (void)
{
  run_programs (ALL, ORACLE_EXTERNAL, true);
}

static void
test_random_strides (void)
{
  run_programs (ALL, ORACLE_ANY, false);
  run_programs (ALL, ORACLE_ANY, true);
}

static void
test_random_seeds_edges (void)
{
  run_programs (SEEDS, ORACLE_VIEWS, false);
  run_programs (SEEDS, ORACLE_EXTERNAL, true);
}

/* 10^5 pairs of views: an edge where a byte is common and a write is among the two, and none else.
 */
static void
test_random_pairs (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = RUN_SHORT ? 5000 : 100000;
  Fixture fixture;

  g_test_message ("seed %u", seed);
  set_up_pool (&fixture, 64, ALL);
  for (uint32_t i = 0; i < n; i++)
    {
      enum oracle_shapes shapes = oracle_below (&random, 3);
      Tensor a = oracle_tensor (&random, BASE, shapes);
      Tensor b = oracle_tensor (&random, BASE, shapes);
      PTOParamType type_a = oracle_below (&random, 4), type_b = oracle_below (&random, 4);
      bool writes = type_a != PTO_PARAM_INPUT || type_b != PTO_PARAM_INPUT;
      struct oracle_bytes x, y;
      struct pto_space *space_a = &fixture.space, *space_b = &fixture.space;

      g_assert_true (oracle_touch (&x, &a, BASE));
      g_assert_true (oracle_touch (&y, &b, BASE));
      if (i % 2 == 0)
        {
          space_a = pto_map_external_space (fixture.map, a.buffer.addr, a.buffer.size);
          space_b = pto_map_external_space (fixture.map, b.buffer.addr, b.buffer.size);
        }
      map_insert (fixture.map, space_a, &a, type_a, i);
      fixture.deps.count = 0;
      g_assert_true (map_lookup (fixture.map, space_b, &b, type_b, &fixture.deps));
      g_assert_cmpuint (fixture.deps.count, ==, writes && oracle_overlap (&x, &y) ? 1 : 0);
      if (fixture.deps.count != 0)
        g_assert_cmphex (fixture.deps.items[0].task, ==, i);
      map_insert (fixture.map, space_b, &b, type_b, PTO_TASK_ID (1, i));
      if (shapes != ORACLE_ANY)
        g_assert_cmpuint (
            pto_map_used (fixture.map), ==,
            oracle_same (&x, &y) || (type_b != PTO_PARAM_INPUT && oracle_covers (&y, &x)) ? 1 : 2);
      if (i % 16 == 0)
        pto_map_reset (fixture.map);
      else
        {
          pto_map_drop (fixture.map, space_a);
          pto_map_drop (fixture.map, space_b);
        }
      g_assert_cmpuint (pto_map_used (fixture.map), ==, 0);
    }
  tear_down (&fixture, NULL);
}

/* Thousands of tasks on hundreds of small views of one tensor: the index grows, learns, and is
 * cleaned under way. */
static void
run_crowd (struct oracle_random *random, uint32_t kind)
{
  uint64_t shape[4] = { 8, 4, 8, 4 };
  struct oracle_map oracle = { .hazards = ALL };
  struct pto_deps expected = { 0 };
  uint32_t n = RUN_SHORT ? 300 : 3000, lag = 1 + oracle_below (random, 400);
  uint32_t pool = 2048, most = 0;
  Fixture fixture;
  Tensor whole;

  set_up_pool (&fixture, pool, ALL);
  whole = oracle_make (BASE, shape, 4, PTO_DTYPE_INT8);
  for (uint32_t t = 0; t < n; t++)
    {
      uint64_t extent[4], offset[4];
      Tensor tensor = whole;
      struct pto_space *space = &fixture.space;
      PTOParamType type = oracle_below (random, 4);
      struct oracle_bytes bytes;

      for (uint32_t i = 0; i < 4; i++)
        {
          uint32_t most_here = kind == 0   ? 2
                               : kind == 1 ? (i % 2 == 0 ? 2 : 4)
                                           : (uint32_t) shape[i];

          extent[i] = 1 + oracle_below (random, most_here);
          offset[i] = oracle_below (random, (uint32_t) (shape[i] - extent[i]) + 1);
        }
      if (kind == 3 && oracle_below (random, 8) != 0)
        {
          uint64_t from = oracle_below (random, 1000);
          uint64_t row[1] = { 1 + oracle_below (random, 20) };

          tensor = oracle_make (BASE + from, row, 1, PTO_DTYPE_INT8);
        }
      else
        tensor = pto2_tensor_view (&tensor, extent, offset);
      if (kind == 4)
        {
          /* Begins anywhere, so that the index has to reach below its origin. */
          uint64_t rows[2] = { 1 + oracle_below (random, 6), 1 + oracle_below (random, 5) };
          uint64_t from = oracle_below (random, 900);

          tensor = oracle_make (BASE + from, rows, 2, PTO_DTYPE_INT8);
          tensor.strides[0] = 20;
          tensor.buffer.size = (rows[0] - 1) * 20 + rows[1];
          space = pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
          g_assert_nonnull (space);
        }
      if (kind == 4 && !oracle_touch (&bytes, &tensor, BASE))
        continue;
      g_assert_true (oracle_touch (&bytes, &tensor, BASE));
      g_assert_true (pto_map_reserve (fixture.map, 1));
      fixture.deps.count = 0;
      expected.count = 0;
      g_assert_true (map_lookup (fixture.map, space, &tensor, type, &fixture.deps));
      oracle_map_lookup (&oracle, &bytes, type, &expected);
      for (uint32_t i = 1; i < fixture.deps.count; i++)
        g_assert_cmphex (fixture.deps.items[i - 1].task, <=, fixture.deps.items[i].task);
      oracle_normalize (&fixture.deps, NULL);
      oracle_normalize (&expected, fixture.tails);
      g_assert_cmpuint (fixture.deps.count, ==, expected.count);
      for (uint32_t i = 0; i < expected.count; i++)
        {
          g_assert_cmphex (fixture.deps.items[i].task, ==, expected.items[i].task);
          g_assert_cmphex (fixture.deps.items[i].kinds, ==, expected.items[i].kinds);
        }
      map_insert (fixture.map, space, &tensor, type, PTO_TASK_ID (0, t));
      oracle_map_insert (&oracle, &bytes, type, PTO_TASK_ID (0, t));
      most = MAX (most, pto_map_used (fixture.map));
      if (t >= lag)
        {
          fixture.tails[0] = t - lag + 1;
          pto_map_retired (fixture.map, 1);
        }
    }
  g_assert_cmpuint (most, <=, 2 * lag + 3 * 64);
  oracle_map_clear (&oracle);
  free (expected.items);
  tear_down (&fixture, NULL);
}

static void
test_random_crowd (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = g_test_slow () ? 200 : RUN_SHORT ? 1 : 4;

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t kind = 0; kind < 5; kind++)
      run_crowd (&random, kind);
}

/* One program at two places, among other buffers: the same results in the same order. */
static void
record_order (uint64_t base, uint64_t other_base, uint32_t seed, GArray *order)
{
  struct oracle_random random = { seed };
  struct oracle_random noise = { base ^ other_base };
  Fixture fixture;

  set_up_pool (&fixture, 4096, ALL);
  for (uint32_t t = 0; t < 400; t++)
    {
      Tensor tensor = oracle_tensor (&random, base, ORACLE_EXTERNAL);
      PTOParamType type = oracle_below (&random, 4);
      bool own = oracle_below (&random, 2) == 0;
      struct pto_space *space
          = own ? &fixture.space
                : pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
      Tensor unrelated
          = oracle_tensor (&noise, other_base + 4096 * oracle_below (&noise, 50), ORACLE_EXTERNAL);

      fixture.deps.count = 0;
      g_assert_true (map_lookup (fixture.map, space, &tensor, type, &fixture.deps));
      g_array_append_vals (order, fixture.deps.items, fixture.deps.count);
      map_insert (fixture.map, space, &tensor, type, PTO_TASK_ID (0, t));
      space = pto_map_external_space (fixture.map, unrelated.buffer.addr, unrelated.buffer.size);
      map_insert (fixture.map, space, &unrelated, PTO_PARAM_INOUT, PTO_TASK_ID (1, t));
      if (t > 100)
        fixture.tails[0] = t - 100;
    }
  tear_down (&fixture, NULL);
}

static void
test_determinism (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < 10; i++)
    {
      GArray *a = g_array_new (FALSE, FALSE, sizeof (struct pto_dep));
      GArray *b = g_array_new (FALSE, FALSE, sizeof (struct pto_dep));

      record_order (BASE, UINT64_C (0x800000), seed + i, a);
      record_order (UINT64_C (0x7f1234567040), UINT64_C (0x7f0000000000), seed + i, b);
      g_assert_cmpuint (a->len, >, 0);
      g_assert_cmpuint (a->len, ==, b->len);
      for (uint32_t k = 0; k < a->len; k++)
        {
          g_assert_cmphex (g_array_index (a, struct pto_dep, k).task, ==,
                           g_array_index (b, struct pto_dep, k).task);
          g_assert_cmphex (g_array_index (a, struct pto_dep, k).kinds, ==,
                           g_array_index (b, struct pto_dep, k).kinds);
        }
      g_array_unref (a);
      g_array_unref (b);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define FIXED(path, test) \
  g_test_add ("/pto/tensor-map/" path, Fixture, NULL, set_up, test, tear_down)
  FIXED ("tags", test_tags);
  FIXED ("readers", test_readers);
  g_test_add ("/pto/tensor-map/without-war", Fixture, GUINT_TO_POINTER (SEEDS), set_up,
              test_without_war, tear_down);
  FIXED ("no-edge-to-itself", test_no_edge_to_itself);
  FIXED ("disjoint-views", test_disjoint_views);
  FIXED ("partial-overlap", test_partial_overlap);
  FIXED ("covering-write", test_covering_write);
  FIXED ("stale", test_stale);
  FIXED ("positions-wrap", test_positions_wrap);
  FIXED ("unsure", test_unsure);
  FIXED ("many-readers", test_many_readers);
  FIXED ("reset", test_reset);
  FIXED ("drop", test_drop);
  FIXED ("drop-frees-memory", test_drop_frees_memory);
  FIXED ("external-merge", test_external_merge);
  g_test_add_func ("/pto/tensor-map/external-bounded", test_external_bounded);
  g_test_add_func ("/pto/tensor-map/external-exhaustion", test_external_exhaustion);
  g_test_add_func ("/pto/tensor-map/exhaustion", test_exhaustion);
  g_test_add_func ("/pto/tensor-map/sweep", test_sweep);
  g_test_add_func ("/pto/tensor-map/weight", test_weight);
  g_test_add_func ("/pto/tensor-map/random-pairs", test_random_pairs);
  g_test_add_func ("/pto/tensor-map/random-views", test_random_views);
  g_test_add_func ("/pto/tensor-map/random-external", test_random_external);
  g_test_add_func ("/pto/tensor-map/random-strides", test_random_strides);
  g_test_add_func ("/pto/tensor-map/random-seeds-edges", test_random_seeds_edges);
  g_test_add_func ("/pto/tensor-map/random-crowd", test_random_crowd);
  g_test_add_func ("/pto/tensor-map/determinism", test_determinism);
  return g_test_run ();
}
