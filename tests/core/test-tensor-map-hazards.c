/* test-tensor-map-hazards.c: which edges does the TensorMap give?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

/* What each tag gets after each tag, under every set of hazards. */
static void
test_tags (MapFixture *fixture, gconstpointer data)
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
          map_put (fixture, &fixture->matrix, first, ++task);
          map_look (fixture, &fixture->matrix, second);
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
            map_assert_none (fixture);
          else
            map_assert_one (fixture, task, expected);
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
test_readers (MapFixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  map_put (fixture, m, PTO_PARAM_OUTPUT, 1);
  for (pto_task_id task = 2; task < 102; task++)
    {
      map_look (fixture, m, PTO_PARAM_INPUT);
      map_assert_one (fixture, 1, PTO_HAZARD_RAW);
      map_put (fixture, m, PTO_PARAM_INPUT, task);
    }
  map_look (fixture, m, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 101);
  for (uint32_t i = 0; i < 101; i++)
    {
      g_assert_cmphex (fixture->deps.items[i].task, ==, i + 1);
      g_assert_cmphex (fixture->deps.items[i].kinds, ==, i == 0 ? PTO_HAZARD_WAW : PTO_HAZARD_WAR);
    }
  map_put (fixture, m, PTO_PARAM_OUTPUT, 102);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
  map_look (fixture, m, PTO_PARAM_INOUT);
  map_assert_one (fixture, 102, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
}

/* The seeds' edges: no reader is kept, and OUTPUT replaces a writer without waiting for it. */
static void
test_without_war (MapFixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  map_put (fixture, m, PTO_PARAM_OUTPUT, 1);
  map_put (fixture, m, PTO_PARAM_INPUT, 2);
  map_look (fixture, m, PTO_PARAM_OUTPUT);
  map_assert_none (fixture);
  map_look (fixture, m, PTO_PARAM_INOUT);
  map_assert_one (fixture, 1, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  map_put (fixture, m, PTO_PARAM_OUTPUT_EXISTING, 3);
  map_look (fixture, m, PTO_PARAM_INPUT);
  map_assert_one (fixture, 3, PTO_HAZARD_RAW);
}

/* A task that reads and writes one region, named once or twice, does not wait for itself: it looks
 * first. */
static void
test_no_edge_to_itself (MapFixture *fixture, gconstpointer data)
{
  const Tensor *m = &fixture->matrix;

  (void) data;
  for (pto_task_id task = 1; task < 5; task++)
    {
      for (uint32_t k = 0; k < 2; k++)
        {
          map_look (fixture, m, k == 0 ? PTO_PARAM_INPUT : PTO_PARAM_OUTPUT);
          if (task == 1)
            map_assert_none (fixture);
          else
            map_assert_one (fixture, task - 1, k == 0 ? PTO_HAZARD_RAW : PTO_HAZARD_WAW);
        }
      map_put (fixture, m, PTO_PARAM_INPUT, task);
      map_put (fixture, m, PTO_PARAM_OUTPUT, task);
    }
}

static void
test_disjoint_views (MapFixture *fixture, gconstpointer data)
{
  (void) data;
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor tile = map_part (&fixture->matrix, i / 4 * 4, i % 4 * 4, 4, 4);

      map_look (fixture, &tile, PTO_PARAM_INOUT);
      map_assert_none (fixture);
      map_put (fixture, &tile, PTO_PARAM_INOUT, i);
      g_assert_cmpuint (pto_map_used (fixture->map), ==, i + 1);
    }
  for (uint32_t i = 0; i < 16; i++)
    {
      Tensor tile = map_part (&fixture->matrix, i / 4 * 4, i % 4 * 4, 4, 4);
      Tensor turned = pto2_tensor_transpose (&tile, 0, 1);

      map_look (fixture, &tile, PTO_PARAM_INPUT);
      map_assert_one (fixture, i, PTO_HAZARD_RAW);
      map_look (fixture, &turned, PTO_PARAM_INPUT);
      map_assert_one (fixture, i, PTO_HAZARD_RAW);
    }
}

static void
test_partial_overlap (MapFixture *fixture, gconstpointer data)
{
  Tensor left = map_part (&fixture->matrix, 0, 0, 16, 10);
  Tensor right = map_part (&fixture->matrix, 0, 6, 16, 10);
  Tensor first = map_part (&fixture->matrix, 3, 0, 1, 6);
  Tensor last = map_part (&fixture->matrix, 3, 10, 1, 6);

  (void) data;
  map_put (fixture, &left, PTO_PARAM_OUTPUT, 1);
  map_look (fixture, &right, PTO_PARAM_OUTPUT);
  map_assert_one (fixture, 1, PTO_HAZARD_WAW);
  map_put (fixture, &right, PTO_PARAM_OUTPUT, 2);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 2);
  map_look (fixture, &first, PTO_PARAM_INPUT);
  map_assert_one (fixture, 1, PTO_HAZARD_RAW);
  map_look (fixture, &last, PTO_PARAM_INPUT);
  map_assert_one (fixture, 2, PTO_HAZARD_RAW);
  map_look (fixture, &fixture->matrix, PTO_PARAM_INPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
}

static void
test_covering_write (MapFixture *fixture, gconstpointer data)
{
  Tensor left = map_part (&fixture->matrix, 0, 0, 16, 10);
  Tensor tile = map_part (&fixture->matrix, 2, 2, 4, 4);

  (void) data;
  map_put (fixture, &tile, PTO_PARAM_OUTPUT, 1);
  map_put (fixture, &tile, PTO_PARAM_INPUT, 2);
  map_look (fixture, &left, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  map_put (fixture, &left, PTO_PARAM_OUTPUT, 3);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 1);
  map_look (fixture, &tile, PTO_PARAM_INOUT);
  map_assert_one (fixture, 3, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  /* Not by a read. */
  map_put (fixture, &tile, PTO_PARAM_OUTPUT, 4);
  map_put (fixture, &fixture->matrix, PTO_PARAM_INPUT, 5);
  g_assert_cmpuint (pto_map_used (fixture->map), ==, 3);
}

/* What cannot be proved apart is ordered, and the edge says so. */
static void
test_unsure (MapFixture *fixture, gconstpointer data)
{
  Tensor a = map_matrix_at (BASE, 2, 2);
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
  map_put (fixture, &a, PTO_PARAM_INOUT, 1);
  map_put (fixture, &a, PTO_PARAM_INPUT, 2);
  map_look (fixture, &b, PTO_PARAM_INOUT);
  g_assert_cmpuint (fixture->deps.count, ==, 2);
  g_assert_cmphex (fixture->deps.items[0].kinds, ==,
                   PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_UNSURE);
  g_assert_cmphex (fixture->deps.items[1].kinds, ==, PTO_HAZARD_WAR | PTO_HAZARD_UNSURE);
  map_look (fixture, &a, PTO_PARAM_INPUT);
  map_assert_one (fixture, 1, PTO_HAZARD_RAW);
}

/* 4096 readers, none of which is lost. */
static void
test_many_readers (MapFixture *fixture, gconstpointer data)
{
  Tensor row = map_part (&fixture->matrix, 7, 0, 1, 16);

  (void) data;
  for (uint32_t i = 0; i < 5000; i++)
    map_put (fixture, &fixture->matrix, PTO_PARAM_INPUT,
             PTO_TASK_ID (i % PTO_RINGS, i / PTO_RINGS));
  map_look (fixture, &row, PTO_PARAM_OUTPUT);
  g_assert_cmpuint (fixture->deps.count, ==, 5000);
  /* A task that reads twice is one reader. */
  map_put (fixture, &row, PTO_PARAM_INPUT, PTO_TASK_ID (0, 9000));
  map_put (fixture, &row, PTO_PARAM_INPUT, PTO_TASK_ID (0, 9000));
  fixture->deps.count = 0;
  g_assert_true (
      map_lookup (fixture->map, &fixture->space, &row, PTO_PARAM_OUTPUT, &fixture->deps));
  g_assert_cmpuint (fixture->deps.count, ==, 5001);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  map_add ("tensor-map-hazards/tags", test_tags);
  map_add ("tensor-map-hazards/readers", test_readers);
  g_test_add ("/pto/tensor-map-hazards/without-war", MapFixture, GUINT_TO_POINTER (SEEDS),
              map_set_up, test_without_war, map_tear_down);
  map_add ("tensor-map-hazards/no-edge-to-itself", test_no_edge_to_itself);
  map_add ("tensor-map-hazards/disjoint-views", test_disjoint_views);
  map_add ("tensor-map-hazards/partial-overlap", test_partial_overlap);
  map_add ("tensor-map-hazards/covering-write", test_covering_write);
  map_add ("tensor-map-hazards/unsure", test_unsure);
  map_add ("tensor-map-hazards/many-readers", test_many_readers);
  return g_test_run ();
}
