/* test-compare.c: is an output compared as what it is, element by element?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every number of 16 bits, taken apart by hand; borders of tolerance; what is told of the wrong.
 */
#include "config.h"

#include "../../pto/programs/pto/run/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ReferenceArgument
argument_of (guint32 dtype, guint64 n, gpointer expected)
{
  return (ReferenceArgument){ .name = (char *) "out",
                              .dtype = dtype,
                              .n_dims = 1,
                              .shape = { n },
                              .n_elements = n,
                              .expected = expected };
}

static void
compare (const ReferenceArgument *argument, gconstpointer got, double rtol, double atol,
         Comparison *comparison)
{
  reference_compare (argument, got, &(Tolerance){ .rtol = rtol, .atol = atol }, comparison);
  g_assert_true (comparison->passed == (comparison->n_bad == 0));
}

/* The value of got against an expected 0, as it is told: "out[0]: 1.5 instead of 0". */
static void
assert_value (guint32 dtype, gpointer got, gpointer zero, double value)
{
  ReferenceArgument argument = argument_of (dtype, 1, zero);
  Comparison comparison;
  double told;
  char *end;

  compare (&argument, got, 0, 0, &comparison);
  if (value == 0)
    {
      g_assert_cmpuint (comparison.n_bad, ==, 0);
      g_assert_null (comparison.first_bad);
      g_assert_null (comparison.bad_lines);
      return;
    }
  g_assert_cmpuint (comparison.n_bad, ==, 1);
  g_assert_true (g_str_has_prefix (comparison.first_bad, "out[0]: "));
  told = g_ascii_strtod (comparison.first_bad + strlen ("out[0]: "), &end);
  g_assert_cmpstr (end, ==, " instead of 0");
  g_assert_cmpstr (comparison.bad_lines, ==, comparison.first_bad);
  g_assert_cmpuint (comparison.differing.n_nan, ==, isnan (value) != 0);
  g_assert_cmpuint (comparison.differing.n_infinite, ==, isinf (value) != 0);
  if (isnan (value))
    g_assert_true (isnan (told));
  else if (isinf (value))
    g_assert_true (told == value);
  else
    {
      g_assert_cmpfloat (fabs (told - value), <=, 1e-8 * fabs (value));
      g_assert_cmpfloat (comparison.max_abs_error, ==, fabs (value));
    }
  comparison_clear (&comparison);
  g_assert_null (comparison.first_bad);
  g_assert_null (comparison.bad_lines);
}

/* Sign, exponent and fraction of these many bits; the fraction as a sum of halves. */
static double
by_hand (guint bits, guint n_exponent, guint n_fraction)
{
  guint exponent = bits >> n_fraction & ((1u << n_exponent) - 1);
  int bias = (1 << (n_exponent - 1)) - 1;
  double value = exponent > 0 ? 1 : 0;
  double part = 0.5;

  for (guint i = n_fraction; i-- > 0; part /= 2)
    if ((bits >> i & 1) != 0)
      value += part;
  if (exponent == (1u << n_exponent) - 1)
    value = value > 1 ? (double) NAN : (double) INFINITY;
  else
    value *= pow (2, exponent > 0 ? (int) exponent - bias : 1 - bias);
  return bits >> (n_exponent + n_fraction) != 0 ? -value : value;
}

static void
test_narrow_floats (void)
{
  for (guint bits = 0; bits < 65536; bits++)
    {
      guint16 got = (guint16) bits;
      guint16 zero = 0;

      assert_value (PTO_DTYPE_FLOAT16, &got, &zero, by_hand (bits, 5, 10));
      assert_value (PTO_DTYPE_BFLOAT16, &got, &zero, by_hand (bits, 8, 7));
    }
  for (guint bits = 0; bits < 256; bits++)
    {
      guint8 got = (guint8) bits;
      guint8 zero = 0;
      guint exponent = bits >> 3 & 15;
      /* All but the last pattern of the largest exponent are numbers: as with one exponent less,
       * twice. */
      double e4m3fn = exponent < 15 ? by_hand (bits, 4, 3) : 2 * by_hand (bits - 8, 4, 3);

      assert_value (PTO_DTYPE_FLOAT8_E5M2, &got, &zero, by_hand (bits, 5, 2));
      assert_value (PTO_DTYPE_FLOAT8_E4M3FN, &got, &zero,
                    (bits & 127) == 127 ? (double) NAN : e4m3fn);
    }
}

static void
test_types (void)
{
  static const guint64 patterns[] = { 0,          1,
                                      0x7f,       0x80,
                                      0xff,       0x7fff,
                                      0x8000,     0xffff,
                                      0x7fffffff, 0x80000000,
                                      0xffffffff, 0x123456789abcdef0,
                                      G_MAXINT64, (guint64) G_MININT64,
                                      G_MAXUINT64 };

  for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
    {
      guint64 got = patterns[i], zero = 0;
      float single = (float) patterns[i] * 0.75f, none = 0;
      double twice = (double) patterns[i] / 3, nothing = 0;
      gint8 nibble = (gint8) (got & 15);

      assert_value (PTO_DTYPE_FLOAT32, &single, &none, (double) single);
      assert_value (PTO_DTYPE_FLOAT64, &twice, &nothing, twice);
      assert_value (PTO_DTYPE_INT4, &got, &zero, nibble < 8 ? nibble : nibble - 16);
      assert_value (PTO_DTYPE_INT8, &got, &zero, (double) (gint8) got);
      assert_value (PTO_DTYPE_UINT8, &got, &zero, (double) (guint8) got);
      assert_value (PTO_DTYPE_BOOL, &got, &zero, (double) (guint8) got);
      assert_value (PTO_DTYPE_INT16, &got, &zero, (double) (gint16) got);
      assert_value (PTO_DTYPE_UINT16, &got, &zero, (double) (guint16) got);
      assert_value (PTO_DTYPE_INT32, &got, &zero, (double) (gint32) got);
      assert_value (PTO_DTYPE_UINT32, &got, &zero, (double) (guint32) got);
      assert_value (PTO_DTYPE_INT64, &got, &zero, (double) (gint64) got);
      assert_value (PTO_DTYPE_UINT64, &got, &zero, (double) got);
    }
}

/* Distances that no double knows, either way round, and the numbers themselves. */
static void
test_large_integers (void)
{
  static const struct
  {
    guint32 dtype;
    guint64 got, expected;
    double error;
    const char *told;
  } rows[] = {
    { PTO_DTYPE_INT64, (G_GUINT64_CONSTANT (1) << 60) + 1, G_GUINT64_CONSTANT (1) << 60, 1,
      "out[1]: 1152921504606846977 instead of 1152921504606846976" },
    { PTO_DTYPE_INT64, G_GUINT64_CONSTANT (1) << 60, (G_GUINT64_CONSTANT (1) << 60) + 1, 1,
      "out[1]: 1152921504606846976 instead of 1152921504606846977" },
    { PTO_DTYPE_INT64, (guint64) G_MININT64, G_MAXINT64, 18446744073709551615.0,
      "out[1]: -9223372036854775808 instead of 9223372036854775807" },
    { PTO_DTYPE_INT64, G_MAXINT64, (guint64) G_MININT64, 18446744073709551615.0,
      "out[1]: 9223372036854775807 instead of -9223372036854775808" },
    { PTO_DTYPE_UINT64, G_MAXUINT64, G_MAXUINT64 - 1, 1,
      "out[1]: 18446744073709551615 instead of 18446744073709551614" },
    { PTO_DTYPE_UINT64, G_MAXUINT64 - 1, G_MAXUINT64, 1,
      "out[1]: 18446744073709551614 instead of 18446744073709551615" },
    { PTO_DTYPE_UINT64, 0, G_MAXUINT64, 18446744073709551615.0,
      "out[1]: 0 instead of 18446744073709551615" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      /* The second of three: its neighbours are equal, and others. */
      guint64 got[3] = { 7, rows[i].got, 9 }, expected[3] = { 7, rows[i].expected, 9 };
      ReferenceArgument argument = argument_of (rows[i].dtype, 3, expected);
      Comparison comparison;

      compare (&argument, got, 0, 0, &comparison);
      g_assert_cmpuint (comparison.n_bad, ==, 1);
      g_assert_cmpfloat (comparison.max_abs_error, ==, rows[i].error);
      g_assert_cmpstr (comparison.first_bad, ==, rows[i].told);
      comparison_clear (&comparison);
      compare (&argument, got, 0, rows[i].error, &comparison);
      g_assert_cmpuint (comparison.n_bad, ==, 0);
      comparison_clear (&comparison);
    }
}

/* |got - expected| <= atol + rtol * |expected|: on the border is within it. */
static void
test_tolerance (void)
{
  static const struct
  {
    float got, expected;
    double rtol, atol;
    gboolean good;
  } rows[] = {
    { 1, 1, 0, 0, TRUE },        { 1.5f, 1, 0, 0.5, TRUE },     { 1.5f, 1, 0, 0.4999, FALSE },
    { 0.5f, 1, 0, 0.5, TRUE },   { 0.5f, 1, 0, 0.49, FALSE },   { 3, 2, 0.5, 0, TRUE },
    { 3, 2, 0.4999, 0, FALSE },  { -3, -2, 0.5, 0, TRUE },      { -1, -2, 0.5, 0, TRUE },
    { -1, -2, 0.25, 0.5, TRUE }, { -1, -2, 0.25, 0.25, FALSE }, { 2, 3, 0.4, 0, TRUE },
    { 3, 2, 0.4, 0, FALSE },     { 0, 0, 1, 1, TRUE },          { 2, -2, 1, 2, TRUE },
    { 2, -2, 1, 1.99, FALSE },   { 1e-3f, 0, 1, 0, FALSE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      float got = rows[i].got, expected = rows[i].expected;
      ReferenceArgument argument = argument_of (PTO_DTYPE_FLOAT32, 1, &expected);
      Comparison comparison;

      compare (&argument, &got, rows[i].rtol, rows[i].atol, &comparison);
      g_assert_cmpuint (comparison.n_bad, ==, !rows[i].good);
      g_assert_cmpfloat (comparison.max_abs_error, ==, fabs ((double) got - (double) expected));
      g_assert_cmpuint (comparison.differing.n_nan, ==, 0);
      g_assert_cmpuint (comparison.differing.n_infinite, ==, 0);
      comparison_clear (&comparison);
    }
}

/* What is relative is so to the element beside it, not to another: 3 against 2 is half as much. */
static void
test_relative (void)
{
  const guint n_floats = 6; /* the first of them */
  static const gint64 dtypes[][3] = {
    { PTO_DTYPE_FLOAT32, 0x40400000, 0x40000000 },
    { PTO_DTYPE_FLOAT16, 0x4200, 0x4000 },
    { PTO_DTYPE_BFLOAT16, 0x4040, 0x4000 },
    { PTO_DTYPE_FLOAT64, 0x4008000000000000, 0x4000000000000000 },
    { PTO_DTYPE_FLOAT8_E4M3FN, 0x44, 0x40 },
    { PTO_DTYPE_FLOAT8_E5M2, 0x42, 0x40 },
    { PTO_DTYPE_INT4, 3, 2 },
    { PTO_DTYPE_INT4, -3, -2 },
    { PTO_DTYPE_INT8, 3, 2 },
    { PTO_DTYPE_UINT8, 3, 2 },
    { PTO_DTYPE_INT16, 3, 2 },
    { PTO_DTYPE_UINT16, 3, 2 },
    { PTO_DTYPE_INT32, 3, 2 },
    { PTO_DTYPE_UINT32, 3, 2 },
    { PTO_DTYPE_INT64, 3, 2 },
    { PTO_DTYPE_UINT64, 3, 2 },
    { PTO_DTYPE_INT8, -3, -2 },
    { PTO_DTYPE_INT16, -3, -2 },
    { PTO_DTYPE_INT32, -3, -2 },
    { PTO_DTYPE_INT64, -3, -2 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++)
    for (guint at = 0; at < 3; at++)
      {
        guint32 dtype = (guint32) dtypes[i][0];
        guint size = pto_dtype_get_size ((PtoDtype) dtype);
        guint8 got[3 * 8] = { 0 }, expected[3 * 8] = { 0 };
        ReferenceArgument argument = argument_of (dtype, 3, expected);
        Comparison comparison;

        memcpy (got + at * size, &dtypes[i][1], size);
        memcpy (expected + at * size, &dtypes[i][2], size);
        /* Integers allow an absolute error only. */
        compare (&argument, got, 0.5, i < n_floats ? 0 : 1, &comparison);
        g_assert_cmpuint (comparison.n_bad, ==, 0);
        g_assert_cmpfloat (comparison.max_abs_error, ==, 1);
        comparison_clear (&comparison);
        compare (&argument, got, i < n_floats ? 0.49 : 0.5, 0, &comparison);
        g_assert_cmpuint (comparison.n_bad, ==, 1);
        comparison_clear (&comparison);
      }
}

static void
assert_max_error (const Comparison *comparison, float expected)
{
  double told = not_finite_max_error (&comparison->differing, comparison->max_abs_error);

  if (isnan (expected))
    g_assert_true (isnan (told));
  else
    g_assert_cmpfloat (told, ==, (double) expected);
}

/* NaN equals nothing, or only NaN with equal_nan. An infinity equals only itself, whatever the
 * tolerance. */
static void
test_no_numbers (void)
{
  const float values[] = { NAN, INFINITY, -INFINITY, 1 };

  for (guint g = 0; g < G_N_ELEMENTS (values); g++)
    for (guint e = 0; e < G_N_ELEMENTS (values); e++)
      {
        float got[2] = { values[g], 4 }, expected[2] = { values[e], 1 };
        ReferenceArgument argument = argument_of (PTO_DTYPE_FLOAT32, 2, expected);
        Comparison comparison;

        for (gboolean equal_nan = FALSE; equal_nan <= TRUE; equal_nan++)
          {
            gboolean good = g == e && (g > 0 || equal_nan);

            reference_compare (&argument, got,
                               &(Tolerance){ .rtol = 10, .atol = 10, .equal_nan = equal_nan },
                               &comparison);
            g_assert_cmpuint (comparison.n_bad, ==, !good);
            g_assert_true (comparison.passed == good);
            g_assert_cmpuint (comparison.differing.n_nan, ==, !good && (g == 0 || e == 0));
            g_assert_cmpuint (comparison.differing.n_infinite, ==, !good && g > 0 && e > 0);
            /* Only numbers count here. */
            g_assert_cmpfloat (comparison.max_abs_error, ==, 3);
            g_assert_cmpfloat (comparison.max_rel_error, ==, 3);
            assert_max_error (&comparison, good ? 3 : g > 0 && e > 0 ? INFINITY : NAN);
            comparison_clear (&comparison);
          }
      }
}

/* NaN has no sign that is shown, and NaN counts before infinity where both differ. */
static void
test_not_finite_told (void)
{
  float got[4] = { 1, -NAN, INFINITY, -INFINITY };
  float expected[4] = { 1, 2, 1, INFINITY };
  ReferenceArgument argument = argument_of (PTO_DTYPE_FLOAT32, 4, expected);
  NotFinite sum = { 0 };
  Comparison comparison;

  reference_compare (&argument, got, &(Tolerance){ .mismatch_share = 0.75 }, &comparison);
  g_assert_true (comparison.passed);
  g_assert_cmpuint (comparison.n_bad, ==, 3);
  g_assert_cmpuint (comparison.differing.n_nan, ==, 1);
  g_assert_cmpuint (comparison.differing.n_infinite, ==, 2);
  g_assert_cmpfloat (comparison.max_abs_error, ==, 0);
  assert_max_error (&comparison, NAN);
  g_assert_cmpstr (comparison.bad_lines, ==,
                   "out[1]: nan instead of 2\nout[2]: inf instead of 1\n"
                   "out[3]: -inf instead of inf");
  not_finite_add (&sum, &comparison.differing);
  not_finite_add (&sum, &comparison.differing);
  g_assert_cmpuint (sum.n_nan, ==, 2);
  g_assert_cmpuint (sum.n_infinite, ==, 4);
  comparison_clear (&comparison);
}

/* So many of 200 may be wrong, whatever they are; the worst relative difference is told. */
static void
test_share (void)
{
  static const struct
  {
    double share;
    guint most;
  } rows[] = { { 0, 0 }, { 0.0049, 0 }, { 0.005, 1 }, { 0.1, 20 }, { 0.5, 100 }, { 1, 200 } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (guint n_bad = 0; n_bad <= 200; n_bad++)
      {
        float got[200], expected[200];
        ReferenceArgument argument = argument_of (PTO_DTYPE_FLOAT32, 200, expected);
        Comparison comparison;

        for (guint k = 0; k < 200; k++)
          {
            expected[k] = (float) (k + 1);
            got[k] = k < n_bad ? (k == 3 ? NAN : expected[k] - 2) : expected[k];
          }
        reference_compare (&argument, got, &(Tolerance){ .mismatch_share = rows[i].share },
                           &comparison);
        g_assert_cmpuint (comparison.n_bad, ==, n_bad);
        g_assert_true (comparison.passed == (n_bad <= rows[i].most));
        g_assert_cmpfloat (comparison.max_rel_error, ==, n_bad > 0 ? 2 : 0);
        comparison_clear (&comparison);
      }
}

/* How many are wrong, where the first is, and the first five, in rows of the argument's shape. */
static void
test_told (void)
{
  enum
  {
    N = 2 * 3 * 4
  };

  for (guint n_bad = 0; n_bad <= N; n_bad++)
    {
      gint32 got[N], expected[N];
      ReferenceArgument argument = argument_of (PTO_DTYPE_INT32, N, expected);
      g_autoptr (GString) lines = g_string_new (NULL);
      Comparison comparison;

      argument.n_dims = 3;
      memcpy (argument.shape, (guint64[]){ 2, 3, 4 }, 3 * sizeof (guint64));
      for (guint i = 0; i < N; i++)
        {
          expected[i] = (gint32) (1000000 * i);
          /* The last ones are wrong, each by one more. */
          got[i] = expected[i] - (i >= N - n_bad ? (gint32) (i + 1) : 0);
          if (got[i] != expected[i] && i < N - n_bad + 5)
            g_string_append_printf (lines, "%sout[%u, %u, %u]: %d instead of %d",
                                    lines->len > 0 ? "\n" : "", i / 12, i / 4 % 3, i % 4, got[i],
                                    expected[i]);
        }
      compare (&argument, got, 0, 0, &comparison);
      g_assert_cmpuint (comparison.n_bad, ==, n_bad);
      g_assert_cmpfloat (comparison.max_abs_error, ==, n_bad > 0 ? N : 0);
      g_assert_cmpstr (comparison.bad_lines, ==, n_bad > 0 ? lines->str : NULL);
      if (n_bad > 0)
        {
          g_auto (GStrv) line = g_strsplit (lines->str, "\n", -1);

          g_assert_cmpstr (comparison.first_bad, ==, line[0]);
          g_assert_cmpuint (g_strv_length (line), ==, MIN (n_bad, 5));
        }
      else
        g_assert_null (comparison.first_bad);
      comparison_clear (&comparison);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/compare/narrow-floats", test_narrow_floats);
  g_test_add_func ("/pto/compare/types", test_types);
  g_test_add_func ("/pto/compare/large-integers", test_large_integers);
  g_test_add_func ("/pto/compare/tolerance", test_tolerance);
  g_test_add_func ("/pto/compare/relative", test_relative);
  g_test_add_func ("/pto/compare/no-numbers", test_no_numbers);
  g_test_add_func ("/pto/compare/not-finite-told", test_not_finite_told);
  g_test_add_func ("/pto/compare/share", test_share);
  g_test_add_func ("/pto/compare/told", test_told);
  return g_test_run ();
}
