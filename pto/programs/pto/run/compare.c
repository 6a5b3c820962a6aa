/* compare.c: is an output what the reference expects?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * |got - expected| <= atol + rtol * |expected|, element by element, in double; rtol is for floats
 * only. Integers of 64 bits that do not fit a double are equal or differ by their exact distance.
 * NaN equals NaN if the case says so (equal-nan), and nothing else. Infinity equals infinity of the
 * same sign, and nothing else.
 */
#include "config.h"

#include "reference.h"

#include <glib/gi18n.h>
#include <math.h>
#include <string.h>

#define SHOWN 5

/* Without infinities: one pattern of each sign is no number. */
static double
e4m3fn_to_double (guint8 bits)
{
  guint exponent = bits >> 3 & 15;
  double fraction = bits & 7;
  double value;

  if ((bits & 127) == 127)
    value = (double) NAN;
  else if (exponent == 0)
    value = ldexp (fraction, -9);
  else
    value = ldexp (fraction + 8.0, (int) exponent - 10);
  return bits >> 7 != 0 ? -value : value;
}

static double
half_to_double (guint16 half)
{
  guint exponent = half >> 10 & 31;
  double fraction = half & 1023;
  double value;

  if (exponent == 31)
    value = fraction != 0 ? (double) NAN : (double) INFINITY;
  else if (exponent == 0)
    value = ldexp (fraction, -24);
  else
    value = ldexp (fraction + 1024.0, (int) exponent - 25);
  return half >> 15 != 0 ? -value : value;
}

static double
brain_to_double (guint16 brain)
{
  guint32 bits = (guint32) brain << 16;
  float value;

  memcpy (&value, &bits, sizeof value);
  return (double) value;
}

static double
element (guint32 dtype, gconstpointer data, guint64 i)
{
  switch (dtype)
    {
    case PTO_DTYPE_FLOAT32:
      return (double) ((const float *) data)[i];
    case PTO_DTYPE_FLOAT16:
      return half_to_double (((const guint16 *) data)[i]);
    case PTO_DTYPE_BFLOAT16:
      return brain_to_double (((const guint16 *) data)[i]);
    case PTO_DTYPE_INT8:
      return (double) ((const gint8 *) data)[i];
    case PTO_DTYPE_INT16:
      return (double) ((const gint16 *) data)[i];
    case PTO_DTYPE_INT32:
      return (double) ((const gint32 *) data)[i];
    case PTO_DTYPE_INT64:
      return (double) ((const gint64 *) data)[i];
    case PTO_DTYPE_UINT16:
      return (double) ((const guint16 *) data)[i];
    case PTO_DTYPE_UINT32:
      return (double) ((const guint32 *) data)[i];
    case PTO_DTYPE_UINT64:
      return (double) ((const guint64 *) data)[i];
    case PTO_DTYPE_FLOAT64:
      return ((const double *) data)[i];
    case PTO_DTYPE_FLOAT8_E4M3FN:
      return e4m3fn_to_double (((const guint8 *) data)[i]);
    case PTO_DTYPE_FLOAT8_E5M2: /* the upper half of a half */
      return half_to_double ((guint16) (((const guint8 *) data)[i] << 8));
    case PTO_DTYPE_INT4:
      return (double) ((((const guint8 *) data)[i] & 15) ^ 8) - 8;
    default: /* uint8 and bool */
      return (double) ((const guint8 *) data)[i];
    }
}

static double
distance (guint32 dtype, gconstpointer got, gconstpointer expected, guint64 i)
{
  if (dtype == PTO_DTYPE_INT64)
    {
      gint64 x = ((const gint64 *) got)[i];
      gint64 y = ((const gint64 *) expected)[i];

      return x > y ? (double) ((guint64) x - (guint64) y) : (double) ((guint64) y - (guint64) x);
    }
  if (dtype == PTO_DTYPE_UINT64)
    {
      guint64 x = ((const guint64 *) got)[i];
      guint64 y = ((const guint64 *) expected)[i];

      return x > y ? (double) (x - y) : (double) (y - x);
    }
  return fabs (element (dtype, got, i) - element (dtype, expected, i));
}

/* An integer whole: of 64 bits a double does not know every one. */
static void
append_element (GString *text, guint32 dtype, gconstpointer data, guint64 i)
{
  if (dtype == PTO_DTYPE_INT64)
    g_string_append_printf (text, "%" G_GINT64_FORMAT, ((const gint64 *) data)[i]);
  else if (dtype == PTO_DTYPE_UINT64)
    g_string_append_printf (text, "%" G_GUINT64_FORMAT, ((const guint64 *) data)[i]);
  else
    {
      double value = element (dtype, data, i);

      /* printf() shows the sign of NaN, which says nothing. */
      g_string_append_printf (text,
                              dtype == PTO_DTYPE_FLOAT64   ? "%.17g"
                              : pto_dtype_is_float (dtype) ? "%.9g"
                                                           : "%.0f",
                              isnan (value) ? (double) NAN : value);
    }
}

char *
reference_describe (const ReferenceArgument *argument, gconstpointer got, gconstpointer expected,
                    guint64 index)
{
  GString *text = g_string_new (argument->name);
  guint64 position[PTO2_TENSOR_MAX_DIMS];
  guint64 rest = index;

  for (guint d = argument->n_dims; d-- > 0;)
    {
      position[d] = rest % argument->shape[d];
      rest /= argument->shape[d];
    }
  for (guint d = 0; d < argument->n_dims; d++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "[", position[d]);
  g_string_append (text, "]: ");
  append_element (text, argument->dtype, got, index);
  g_string_append (text, _ (" instead of "));
  append_element (text, argument->dtype, expected, index);
  return g_string_free (text, FALSE);
}

void
reference_compare (const ReferenceArgument *argument, gconstpointer data,
                   const Tolerance *tolerance, Comparison *comparison)
{
  g_autoptr (GString) lines = g_string_new (NULL);
  /* A share of a large integer would let a wrong one pass. */
  double rtol = pto_dtype_is_float (argument->dtype) ? tolerance->rtol : 0;

  memset (comparison, 0, sizeof *comparison);
  for (guint64 i = 0; i < argument->n_elements; i++)
    {
      double expected = element (argument->dtype, argument->expected, i);
      double got = element (argument->dtype, data, i);
      gboolean good;

      if (isfinite (got) && isfinite (expected))
        {
          double error = distance (argument->dtype, data, argument->expected, i);

          comparison->max_abs_error = MAX (comparison->max_abs_error, error);
          if (expected != 0)
            comparison->max_rel_error = MAX (comparison->max_rel_error, error / fabs (expected));
          good = error <= tolerance->atol + rtol * fabs (expected);
        }
      else
        {
          gboolean is_nan = isnan (got) || isnan (expected);

          good = is_nan ? tolerance->equal_nan && isnan (got) && isnan (expected) : got == expected;
          comparison->differing.n_nan += !good && is_nan;
          comparison->differing.n_infinite += !good && !is_nan;
        }
      if (good)
        continue;
      if (comparison->n_bad++ < SHOWN)
        {
          g_autofree char *line = reference_describe (argument, data, argument->expected, i);

          g_string_append_printf (lines, "%s%s", lines->len > 0 ? "\n" : "", line);
          if (comparison->n_bad == 1)
            {
              comparison->first_index = i;
              comparison->first_bad = g_steal_pointer (&line);
            }
        }
    }
  comparison->passed
      = (double) comparison->n_bad <= tolerance->mismatch_share * (double) argument->n_elements;
  if (comparison->n_bad > 0)
    comparison->bad_lines = g_strdup (lines->str);
}

void
not_finite_add (NotFinite *sum, const NotFinite *more)
{
  sum->n_nan += more->n_nan;
  sum->n_infinite += more->n_infinite;
}

double
not_finite_max_error (const NotFinite *differing, double max_error)
{
  if (differing->n_nan > 0)
    return (double) NAN;
  return differing->n_infinite > 0 ? (double) INFINITY : max_error;
}

void
comparison_clear (Comparison *comparison)
{
  g_clear_pointer (&comparison->first_bad, g_free);
  g_clear_pointer (&comparison->bad_lines, g_free);
}
