/* element.c: how does a number become an element of a tensor, and an element a number?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "element.h"

#include "api/tensor.h"

#include "base/error.h"
#include "common/text.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Gives the integers that the type holds; FALSE: it is no integer type. */
static gboolean
element_get_limits (PtoDtype dtype, long double *least, long double *most)
{
  static const struct
  {
    PtoDtype dtype;
    long double least, most;
  } limits[] = { { PTO_DTYPE_INT8, G_MININT8, G_MAXINT8 },
                 { PTO_DTYPE_INT16, G_MININT16, G_MAXINT16 },
                 { PTO_DTYPE_INT32, G_MININT32, G_MAXINT32 },
                 { PTO_DTYPE_INT64, G_MININT64, G_MAXINT64 },
                 { PTO_DTYPE_UINT8, 0, G_MAXUINT8 },
                 { PTO_DTYPE_UINT16, 0, G_MAXUINT16 },
                 { PTO_DTYPE_UINT32, 0, G_MAXUINT32 },
                 { PTO_DTYPE_UINT64, 0, G_MAXUINT64 },
                 { PTO_DTYPE_BOOL, 0, 1 },
                 { PTO_DTYPE_INT4, -8, 7 } };

  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    if (limits[i].dtype == dtype)
      {
        *least = limits[i].least;
        *most = limits[i].most;
        return TRUE;
      }
  return FALSE;
}

/* FALSE: it is no number. */
static gboolean
get_number (const GValue *value, long double *number)
{
  switch (G_VALUE_TYPE (value))
    {
    case G_TYPE_BOOLEAN:
      *number = g_value_get_boolean (value);
      return TRUE;
    case G_TYPE_INT:
      *number = g_value_get_int (value);
      return TRUE;
    case G_TYPE_UINT:
      *number = g_value_get_uint (value);
      return TRUE;
    case G_TYPE_LONG:
      *number = g_value_get_long (value);
      return TRUE;
    case G_TYPE_ULONG:
      *number = g_value_get_ulong (value);
      return TRUE;
    case G_TYPE_INT64:
      *number = (long double) g_value_get_int64 (value);
      return TRUE;
    case G_TYPE_UINT64:
      *number = (long double) g_value_get_uint64 (value);
      return TRUE;
    case G_TYPE_FLOAT:
      *number = (long double) g_value_get_float (value);
      return TRUE;
    case G_TYPE_DOUBLE:
      *number = (long double) g_value_get_double (value);
      return TRUE;
    default:
      return FALSE;
    }
}

/* Floating point of at most 16 bits: so many are of the exponent, so many of the fraction. */
typedef struct
{
  PtoDtype dtype;
  int exponent, fraction;
  guint infinity; /* or, where there is none, the largest number + 1, which is none */
  guint none;
} Format;

static const Format formats[] = { { PTO_DTYPE_FLOAT16, 5, 10, 0x7c00, 0x7e00 },
                                  { PTO_DTYPE_BFLOAT16, 8, 7, 0x7f80, 0x7fc0 },
                                  { PTO_DTYPE_FLOAT8_E5M2, 5, 2, 0x7c, 0x7e },
                                  { PTO_DTYPE_FLOAT8_E4M3FN, 4, 3, 0x7f, 0x7f } };

/* The nearest, the even one of two; FALSE: the type has none of that size. */
static gboolean
encode (const Format *format, long double number, guint64 *bits)
{
  guint64 sign
      = signbit (number) ? G_GUINT64_CONSTANT (1) << (format->exponent + format->fraction) : 0;
  int bias = (1 << (format->exponent - 1)) - 1;
  guint64 magnitude;
  int exponent;

  number = fabsl (number);
  if (isnan (number))
    magnitude = format->none;
  else if (isinf (number))
    magnitude = format->infinity;
  else
    {
      frexpl (number, &exponent);
      exponent = number > 0 ? MAX (exponent - 1, 1 - bias) : 1 - bias;
      /* With its leading one, which the exponent is one less for; a carry goes where it belongs. */
      magnitude = (guint64) (exponent + bias - 1) << format->fraction;
      magnitude += (guint64) rintl (ldexpl (number, format->fraction - exponent));
      if (magnitude >= format->infinity)
        return FALSE;
    }
  *bits = sign | magnitude;
  return !(isinf (number) && format->infinity == format->none);
}

gboolean
pto_element_from_value (PtoDtype dtype, const GValue *value, const char *what, guint64 *bits,
                        GError **error)
{
  long double number = 0, least, most;
  gboolean ok = value != NULL && get_number (value, &number);
  float single = (float) number;
  double whole = (double) number;

  *bits = 0;
  if (ok && element_get_limits (dtype, &least, &most))
    {
      gsize size = pto_dtype_get_size (dtype);

      ok = number >= least && number <= most && number == rintl (number);
      if (ok)
        *bits = number < 0 ? (guint64) (gint64) number : (guint64) number;
      if (dtype == PTO_DTYPE_INT4)
        *bits &= 15;
      else if (size < sizeof *bits)
        *bits &= (G_GUINT64_CONSTANT (1) << 8 * size) - 1;
    }
  else if (ok && dtype == PTO_DTYPE_FLOAT32 && isfinite (number) && !isfinite (single))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("%s is %Lg, which float32 can not hold: it ends at %g"), what, number,
                       (double) FLT_MAX);
  else if (ok && dtype == PTO_DTYPE_FLOAT32)
    memcpy (bits, &single, sizeof single);
  else if (ok && dtype == PTO_DTYPE_FLOAT64)
    memcpy (bits, &whole, sizeof whole);
  else if (ok)
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
      if (formats[i].dtype == dtype)
        ok = encode (&formats[i], number, bits);
  if (!ok)
    {
      g_autofree char *text
          = G_IS_VALUE (value) ? g_strdup_value_contents (value) : g_strdup (_ ("not set"));

      pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("%s is %s, which is no number of the type %s"),
                  what, text, pto_dtype_name ((DataType) dtype));
    }
  return ok;
}

/* A double holds all numbers that there are in so few bits. */
static double
decode (const Format *format, guint64 bits)
{
  guint64 sign = G_GUINT64_CONSTANT (1) << (format->exponent + format->fraction);
  guint64 magnitude = bits & (sign - 1);
  guint64 fraction = magnitude & ((G_GUINT64_CONSTANT (1) << format->fraction) - 1);
  int exponent = (int) (magnitude >> format->fraction);
  int bias = (1 << (format->exponent - 1)) - 1;
  double number;

  if (magnitude > format->infinity || magnitude == format->none)
    number = NAN;
  else if (magnitude == format->infinity)
    number = INFINITY;
  else if (exponent == 0)
    number = ldexp ((double) fraction, 1 - bias - format->fraction);
  else
    number = ldexp ((double) (fraction | G_GUINT64_CONSTANT (1) << format->fraction),
                    exponent - bias - format->fraction);
  return (bits & sign) != 0 ? -number : number;
}

/* Of so many bits the uppermost is the sign. */
static gint64
extend (guint64 bits, guint n_bits)
{
  return (gint64) (bits << (64 - n_bits)) >> (64 - n_bits);
}

gboolean
pto_element_to_value (PtoDtype dtype, guint64 bits, GValue *value)
{
  guint n_bits = dtype == PTO_DTYPE_INT4 ? 4 : 8 * (guint) pto_dtype_get_size (dtype);
  long double least, most;
  float single;
  double whole;

  if (dtype == PTO_DTYPE_BOOL)
    g_value_set_boolean (g_value_init (value, G_TYPE_BOOLEAN), (bits & 0xff) != 0);
  else if (element_get_limits (dtype, &least, &most) && least < 0)
    g_value_set_int64 (g_value_init (value, G_TYPE_INT64), extend (bits, n_bits));
  else if (element_get_limits (dtype, &least, &most))
    g_value_set_uint64 (g_value_init (value, G_TYPE_UINT64), bits & G_MAXUINT64 >> (64 - n_bits));
  else if (dtype == PTO_DTYPE_FLOAT32)
    {
      memcpy (&single, &bits, sizeof single);
      g_value_set_double (g_value_init (value, G_TYPE_DOUBLE), (double) single);
    }
  else if (dtype == PTO_DTYPE_FLOAT64)
    {
      memcpy (&whole, &bits, sizeof whole);
      g_value_set_double (g_value_init (value, G_TYPE_DOUBLE), whole);
    }
  else
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
      if (formats[i].dtype == dtype)
        g_value_set_double (g_value_init (value, G_TYPE_DOUBLE), decode (&formats[i], bits));
  return G_VALUE_TYPE (value) != G_TYPE_INVALID;
}
