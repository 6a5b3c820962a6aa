/* test-region.c: do canonical regions tell the bytes of tensors apart?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/region.h"

#include "oracle.h"

#include <glib.h>
#include <string.h>

#define BASE UINT64_C (0x10000)

static Tensor
whole (uint64_t rows, uint64_t columns, DataType dtype)
{
  uint64_t shape[2] = { rows, columns };

  return oracle_make (BASE, shape, 2, dtype);
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

static struct pto_region
region_of (const Tensor *tensor)
{
  struct pto_region region;

  pto_region_init (&region, tensor);
  return region;
}

static bool
overlap (const Tensor *a, const Tensor *b)
{
  struct pto_region x = region_of (a);
  struct pto_region y = region_of (b);
  bool unsure = false;
  bool found = pto_region_overlaps (&x, &y, &unsure);

  g_assert_false (unsure);
  g_assert_cmpint (pto_region_overlaps (&y, &x, &unsure), ==, found);
  g_assert_false (unsure);
  return found;
}

static bool
covers (const Tensor *a, const Tensor *b)
{
  struct pto_region x = region_of (a);
  struct pto_region y = region_of (b);

  return pto_region_covers (&x, &y);
}

static void
test_canonical (void)
{
  Tensor matrix = whole (8, 6, PTO_DTYPE_FLOAT32);
  Tensor transposed = pto2_tensor_transpose (&matrix, 0, 1);
  Tensor tile = part (&matrix, 2, 1, 3, 4);
  Tensor column = part (&matrix, 0, 2, 8, 1);
  Tensor rows = part (&matrix, 2, 0, 3, 6);
  struct pto_region region = region_of (&transposed);

  g_assert_cmpuint (region.n_dims, ==, 0);
  g_assert_cmphex (region.lo, ==, BASE);
  g_assert_cmphex (region.hi, ==, BASE + 8 * 6 * 4);

  region = region_of (&rows);
  g_assert_cmpuint (region.n_dims, ==, 0);
  g_assert_cmphex (region.lo, ==, BASE + 2 * 24);
  g_assert_cmphex (region.hi, ==, BASE + 5 * 24);

  region = region_of (&tile);
  g_assert_cmpuint (region.n_dims, ==, 1);
  g_assert_cmpuint (region.run, ==, 16);
  g_assert_cmpuint (region.dims[0].stride, ==, 24);
  g_assert_cmpuint (region.dims[0].count, ==, 3);
  g_assert_cmphex (region.hi, ==, BASE + 4 * 24 + 5 * 4);

  region = region_of (&column);
  g_assert_cmpuint (region.n_dims, ==, 1);
  g_assert_cmpuint (region.run, ==, 4);
  g_assert_cmpuint (region.dims[0].count, ==, 8);
}

static void
test_equal (void)
{
  uint64_t cube[3] = { 4, 2, 6 };
  Tensor matrix = whole (8, 6, PTO_DTYPE_FLOAT32);
  Tensor bytes = whole (16, 12, PTO_DTYPE_INT8);
  Tensor halves = whole (16, 6, PTO_DTYPE_FLOAT16);
  Tensor reshaped = pto2_tensor_reshape (&matrix, cube, 3);
  Tensor tile = part (&matrix, 2, 1, 3, 4);
  Tensor turned = pto2_tensor_transpose (&tile, 0, 1);
  Tensor turned_first = pto2_tensor_transpose (&matrix, 0, 1);
  Tensor other = part (&matrix, 2, 1, 3, 3);
  struct pto_region a = region_of (&matrix);
  struct pto_region b = region_of (&reshaped);
  struct pto_region c = region_of (&bytes);
  struct pto_region d;

  g_assert_true (pto_region_equal (&a, &b));
  g_assert_true (pto_region_equal (&a, &c));
  c = region_of (&halves);
  g_assert_true (pto_region_equal (&a, &c));

  a = region_of (&tile);
  b = region_of (&turned);
  turned_first = part (&turned_first, 1, 2, 4, 3);
  c = region_of (&turned_first);
  d = region_of (&other);
  g_assert_true (pto_region_equal (&a, &b));
  g_assert_true (pto_region_equal (&a, &c));
  g_assert_false (pto_region_equal (&a, &d));
}

static void
test_tiles_are_disjoint (void)
{
  Tensor matrix = whole (12, 12, PTO_DTYPE_FLOAT16);

  for (uint32_t i = 0; i < 16; i++)
    for (uint32_t j = 0; j < 16; j++)
      {
        Tensor a = part (&matrix, i / 4 * 3, i % 4 * 3, 3, 3);
        Tensor b = part (&matrix, j / 4 * 3, j % 4 * 3, 3, 3);

        b = pto2_tensor_transpose (&b, 0, 1);
        g_assert_cmpint (overlap (&a, &b), ==, i == j);
        g_assert_cmpint (covers (&a, &b), ==, i == j);
      }
}

static void
test_covers (void)
{
  Tensor matrix = whole (12, 12, PTO_DTYPE_FLOAT16);
  Tensor tile = part (&matrix, 2, 2, 8, 8);
  Tensor inner = part (&matrix, 3, 4, 5, 5);
  Tensor beyond = part (&matrix, 3, 4, 5, 7);
  Tensor run = part (&matrix, 4, 3, 1, 4);
  Tensor column = part (&matrix, 2, 9, 8, 1);

  g_assert_true (covers (&matrix, &tile));
  g_assert_true (covers (&tile, &inner));
  g_assert_true (covers (&tile, &run));
  g_assert_true (covers (&tile, &column));
  g_assert_true (covers (&tile, &tile));
  g_assert_false (covers (&tile, &beyond));
  g_assert_false (covers (&inner, &tile));
  g_assert_false (covers (&tile, &matrix));
}

/* A region is what its tensor says, and nothing of what was there before. */
static void
test_made_anew (void)
{
  uint64_t shape[2] = { 4, 6 };
  Tensor tensors[4];

  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
    tensors[i] = oracle_make (BASE, shape, 2, PTO_DTYPE_INT8);
  tensors[1].strides[0] = 100;
  tensors[2].strides[1] = 3;
  tensors[3].strides[0] = 100;
  tensors[3].shapes[1] = 0;
  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
    {
      struct pto_region regions[2];

      for (guint k = 0; k < 2; k++)
        {
          memset (&regions[k], k == 0 ? 0 : 0xff, sizeof regions[k]);
          pto_region_init (&regions[k], &tensors[i]);
        }
      g_assert_cmpuint (regions[0].n_dims, ==, regions[1].n_dims);
      g_assert_cmpuint (regions[0].lo, ==, regions[1].lo);
      g_assert_cmpuint (regions[0].hi, ==, regions[1].hi);
      g_assert_cmpuint (regions[0].run, ==, regions[1].run);
      for (uint32_t d = 0; d < regions[0].n_dims; d++)
        {
          g_assert_cmpuint (regions[0].dims[d].count, ==, regions[1].dims[d].count);
          g_assert_cmpuint (regions[0].dims[d].stride, ==, regions[1].dims[d].stride);
        }
    }
}

/* More runs than anybody would walk, and the last ones just inside. */
static void
test_covers_tall (void)
{
  Tensor matrix = whole (3 * PTO_REGION_WORK, 64, PTO_DTYPE_INT8);
  Tensor wider = part (&matrix, 0, 0, 2 * PTO_REGION_WORK, 48);
  Tensor narrow = part (&matrix, 0, 16, 2 * PTO_REGION_WORK, 32);
  Tensor beyond = part (&matrix, 1, 16, 2 * PTO_REGION_WORK, 32);
  Tensor aside = part (&matrix, 0, 17, 2 * PTO_REGION_WORK, 32);

  g_assert_true (covers (&matrix, &wider));
  g_assert_true (covers (&wider, &narrow));
  g_assert_false (covers (&wider, &beyond));
  g_assert_false (covers (&wider, &aside));
  g_assert_false (covers (&narrow, &wider));
}

/* Two dimensions of one region along one of the other: both take of its room. */
static void
test_covers_along_one_dimension (void)
{
  uint64_t shape[3] = { 3, 6, 4 };
  Tensor a = oracle_make (BASE, shape, 3, PTO_DTYPE_INT8);
  Tensor b = a;

  a.strides[0] = 1000;
  a.strides[1] = 20;
  b.shapes[0] = 2;
  b.strides[0] = 60;
  b.shapes[1] = 2;
  b.strides[1] = 40;
  g_assert_true (covers (&a, &b));
  b.shapes[1] = 3;
  b.strides[0] = 100;
  b.strides[1] = 20;
  g_assert_false (covers (&a, &b));
}

/* And along its innermost, in which the bytes lie one after the other: 5 * 2, 2 * 2 and 1 are 15.
 */
static void
test_covers_within_a_run (void)
{
  uint64_t shape[2] = { 4, 15 };
  uint64_t parts[3] = { 3, 3, 1 };
  Tensor a = oracle_make (BASE, shape, 2, PTO_DTYPE_INT8);
  Tensor b = oracle_make (BASE, parts, 3, PTO_DTYPE_INT8);

  a.strides[0] = 1000;
  b.strides[0] = 5;
  b.strides[1] = 2;
  g_assert_true (covers (&a, &b));
  a.shapes[1] = 14;
  g_assert_false (covers (&a, &b));
}

/* A tensor of nothing: the API refuses it, a region of it is empty. */
static void
test_empty (void)
{
  Tensor matrix = whole (12, 12, PTO_DTYPE_FLOAT16);
  Tensor empty = matrix;
  Tensor column = part (&matrix, 0, 0, 12, 1);

  empty.shapes[1] = 0;
  g_assert_false (overlap (&empty, &matrix));
  g_assert_true (covers (&matrix, &empty));
  column.shapes[0] = 0;
  g_assert_false (overlap (&column, &matrix));
  empty.ndims = 0;
  g_assert_false (overlap (&empty, &matrix));
}

/* Regions of many gigabytes: the answer takes no walk and no overflow. */
static void
test_huge (void)
{
  Tensor matrix = whole (UINT64_C (1) << 22, UINT64_C (1) << 20, PTO_DTYPE_INT64);
  Tensor even = part (&matrix, 0, 0, UINT64_C (1) << 22, UINT64_C (1) << 19);
  Tensor odd = part (&matrix, 0, UINT64_C (1) << 19, UINT64_C (1) << 22, UINT64_C (1) << 19);
  Tensor last = part (&matrix, (UINT64_C (1) << 22) - 1, (UINT64_C (1) << 20) - 1, 1, 1);

  g_assert_false (overlap (&even, &odd));
  g_assert_false (overlap (&even, &last));
  g_assert_true (overlap (&odd, &last));
  g_assert_true (covers (&odd, &last));
  g_assert_false (covers (&even, &last));
}

/* Other strides, interleaved for ever: decided by divisibility, not by trying. */
static void
test_interleaved (void)
{
  uint64_t shape[1] = { 1 << 20 };
  Tensor a = oracle_make (BASE, shape, 1, PTO_DTYPE_INT8);
  Tensor b = a;

  a.strides[0] = 6;
  b.strides[0] = 9;
  b.start_offset = 1;
  g_assert_false (overlap (&a, &b));
  b.start_offset = 3;
  g_assert_true (overlap (&a, &b));
}

/* Strides without a common divisor in many dimensions: too much work, so the safe answer, and it
 * says so. */
static void
test_work_is_bounded (void)
{
  Tensor a = whole (2, 2, PTO_DTYPE_INT8);
  Tensor b;
  struct pto_region x, y;
  bool unsure = false;

  a.ndims = 3;
  for (uint32_t i = 0; i < 3; i++)
    a.shapes[i] = 1000;
  a.strides[0] = 1000003 * 2;
  a.strides[1] = 1000033 * 2;
  a.strides[2] = 1000037 * 2;
  b = a;
  b.start_offset = 300000001;
  b.strides[0] = 1000039 * 2;
  b.strides[1] = 1000081 * 2;
  b.strides[2] = 1000099 * 2;
  x = region_of (&a);
  y = region_of (&b);
  /* Odd against even: divisibility tells. */
  g_assert_false (pto_region_overlaps (&x, &y, &unsure));
  g_assert_false (unsure);
  /* One dimension apart from the others hides it. */
  b.ndims = 4;
  b.shapes[3] = 2;
  b.strides[3] = 300000007;
  y = region_of (&b);
  g_assert_true (pto_region_overlaps (&x, &y, &unsure));
  g_assert_true (unsure);
}

static void
test_random (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = g_test_slow () ? 1000000 : 100000;
  uint32_t overlaps = 0, covered = 0, missed = 0;

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < n; i++)
    {
      enum oracle_shapes shapes = oracle_below (&random, 3);
      Tensor a = oracle_tensor (&random, BASE, shapes);
      Tensor b = oracle_tensor (&random, BASE, shapes);
      struct oracle_bytes x, y;
      struct pto_region r = region_of (&a);
      struct pto_region s = region_of (&b);

      g_assert_true (oracle_touch (&x, &a, BASE));
      g_assert_true (oracle_touch (&y, &b, BASE));
      g_assert_cmpint (overlap (&a, &b), ==, oracle_overlap (&x, &y));
      overlaps += oracle_overlap (&x, &y);
      if (pto_region_equal (&r, &s))
        g_assert_true (oracle_same (&x, &y));
      if (pto_region_covers (&r, &s))
        g_assert_true (oracle_covers (&x, &y));
      if (oracle_covers (&x, &y))
        {
          covered++;
          missed += !pto_region_covers (&r, &s);
        }
      if (shapes != ORACLE_ANY)
        {
          g_assert_cmpint (pto_region_covers (&r, &s), ==, oracle_covers (&x, &y));
          g_assert_cmpint (pto_region_equal (&r, &s), ==, oracle_same (&x, &y));
        }
    }
  g_test_message ("%u pairs, %u overlap, %u cover, of these %u not recognized", n, overlaps,
                  covered, missed);
  g_assert_cmpuint (overlaps, >, n / 10);
  g_assert_cmpuint (covered, >, n / 100);
  g_assert_cmpuint (missed, <, covered / 100);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/region/canonical", test_canonical);
  g_test_add_func ("/pto/region/equal", test_equal);
  g_test_add_func ("/pto/region/tiles-are-disjoint", test_tiles_are_disjoint);
  g_test_add_func ("/pto/region/covers", test_covers);
  g_test_add_func ("/pto/region/covers-within-a-run", test_covers_within_a_run);
  g_test_add_func ("/pto/region/made-anew", test_made_anew);
  g_test_add_func ("/pto/region/covers-tall", test_covers_tall);
  g_test_add_func ("/pto/region/covers-along-one-dimension", test_covers_along_one_dimension);
  g_test_add_func ("/pto/region/empty", test_empty);
  g_test_add_func ("/pto/region/huge", test_huge);
  g_test_add_func ("/pto/region/interleaved", test_interleaved);
  g_test_add_func ("/pto/region/work-is-bounded", test_work_is_bounded);
  g_test_add_func ("/pto/region/random", test_random);
  return g_test_run ();
}
