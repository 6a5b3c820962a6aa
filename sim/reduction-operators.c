/* reduction-operators.c: which operators does a chip have of its own, for what tasks reduce?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "reduction-operators.h"

#include <math.h>
#include <string.h>

/* n elements; from one to the next so many bytes. */
typedef void (*combine_func) (uint8_t *to, uint64_t to_step, const uint8_t *from,
                              uint64_t from_step, uint64_t n);

/* --- float16 and bfloat16: as float, and the nearest of it, the even one of two --- */

static float
float_of_bits (uint32_t bits)
{
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

static uint32_t
bits_of_float (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static float
float_of_half (uint16_t half)
{
  uint32_t sign = (half & UINT32_C (0x8000)) << 16;
  uint32_t magnitude = half & UINT32_C (0x7fff);

  if (magnitude >= 0x7c00)
    return float_of_bits (sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400)
    return float_of_bits (sign | ((magnitude << 13) + 0x38000000));
  return float_of_bits (sign | bits_of_float ((float) magnitude * 0x1p-24f));
}

static uint16_t
half_of_float (float value)
{
  uint32_t bits = bits_of_float (value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;

  if (magnitude > 0x7f800000)
    return (uint16_t) (sign | 0x7e00);
  if (magnitude >= 0x47800000) /* 65536 */
    return (uint16_t) (sign | 0x7c00);
  /* Below the least normal one: a float of 0.5 has steps of 2^-24, as these have. */
  if (magnitude < 0x38800000)
    return (uint16_t) (sign | (bits_of_float (float_of_bits (magnitude) + 0.5f) - 0x3f000000));
  return (uint16_t) (sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}

static float
float_of_bfloat (uint16_t bits)
{
  return float_of_bits ((uint32_t) bits << 16);
}

static uint16_t
bfloat_of_float (float value)
{
  uint32_t bits = bits_of_float (value);

  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t) (bits >> 16 | 0x40);
  return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --- operators --- */

#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
/* What is no number stays. */
#define LESS_FLOAT(a, b) (isnan (a) || (a) < (b) ? (a) : (b))
#define MORE_FLOAT(a, b) (isnan (a) || (a) > (b) ? (a) : (b))

/* Elements may lie anywhere, so they are copied. */
#define DEFINE(name, type, wide, widen, narrow, operation)                                  \
  static void name (uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, \
                    uint64_t n)                                                             \
  {                                                                                         \
    for (; n > 0; n--, to += to_step, from += from_step)                                    \
      {                                                                                     \
        type mine, theirs;                                                                  \
        wide a, b;                                                                          \
                                                                                            \
        memcpy (&mine, to, sizeof mine);                                                    \
        memcpy (&theirs, from, sizeof theirs);                                              \
        a = widen (mine);                                                                   \
        b = widen (theirs);                                                                 \
        mine = narrow (operation (a, b));                                                   \
        memcpy (to, &mine, sizeof mine);                                                    \
      }                                                                                     \
  }

#define DEFINE_FLOAT(name, type, wide, widen, narrow)        \
  DEFINE (sum_##name, type, wide, widen, narrow, SUM)        \
  DEFINE (prod_##name, type, wide, widen, narrow, PROD)      \
  DEFINE (min_##name, type, wide, widen, narrow, LESS_FLOAT) \
  DEFINE (max_##name, type, wide, widen, narrow, MORE_FLOAT)

/* Without a sign, where nothing overflows. */
#define DEFINE_INTEGER(type)                                             \
  DEFINE (sum_##type, type##_t, uint64_t, (uint64_t), (type##_t), SUM)   \
  DEFINE (prod_##type, type##_t, uint64_t, (uint64_t), (type##_t), PROD) \
  DEFINE (min_##type, type##_t, type##_t, (type##_t), (type##_t), LESS)  \
  DEFINE (max_##type, type##_t, type##_t, (type##_t), (type##_t), MORE)

DEFINE_FLOAT (float32, float, float, (float), (float) )
DEFINE_FLOAT (float64, double, double, (double), (double) )
DEFINE_FLOAT (float16, uint16_t, float, float_of_half, half_of_float)
DEFINE_FLOAT (bfloat16, uint16_t, float, float_of_bfloat, bfloat_of_float)
DEFINE_INTEGER (int8)
DEFINE_INTEGER (int16)
DEFINE_INTEGER (int32)
DEFINE_INTEGER (int64)
DEFINE_INTEGER (uint8)
DEFINE_INTEGER (uint16)
DEFINE_INTEGER (uint32)
DEFINE_INTEGER (uint64)

#define OPERATORS(name)                             \
  {                                                 \
    sum_##name, prod_##name, min_##name, max_##name \
  }

static const combine_func funcs[PTO_DTYPE_COUNT][PTO_N_OPERATORS] = {
  [PTO_DTYPE_FLOAT32] = OPERATORS (float32), [PTO_DTYPE_FLOAT64] = OPERATORS (float64),
  [PTO_DTYPE_FLOAT16] = OPERATORS (float16), [PTO_DTYPE_BFLOAT16] = OPERATORS (bfloat16),
  [PTO_DTYPE_INT8] = OPERATORS (int8),       [PTO_DTYPE_INT16] = OPERATORS (int16),
  [PTO_DTYPE_INT32] = OPERATORS (int32),     [PTO_DTYPE_INT64] = OPERATORS (int64),
  [PTO_DTYPE_UINT8] = OPERATORS (uint8),     [PTO_DTYPE_UINT16] = OPERATORS (uint16),
  [PTO_DTYPE_UINT32] = OPERATORS (uint32),   [PTO_DTYPE_UINT64] = OPERATORS (uint64),
};

bool
pto_combine_knows (enum pto_operator operation, DataType dtype)
{
  return dtype < PTO_DTYPE_COUNT && funcs[dtype][operation] != NULL;
}

static void
combine (combine_func func, const TensorData *to, const TensorData *from, uint32_t dimension,
         uint8_t *target, const uint8_t *source, uint32_t size)
{
  uint64_t n = to->shapes[dimension];
  uint64_t to_step = to->strides[dimension] * size;
  uint64_t from_step = from->strides[dimension] * size;

  /* No tensor has more, as compilers are to know. */
  if (dimension + 1 == to->ndims || dimension + 1 == PTO2_TENSOR_MAX_DIMS)
    func (target, to_step, source, from_step, n);
  else
    for (; n > 0; n--, target += to_step, source += from_step)
      combine (func, to, from, dimension + 1, target, source, size);
}

static uint8_t *
first_of (const TensorData *tensor, uint32_t size)
{
  return (uint8_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset * size;
}

void
pto_combine (enum pto_operator operation, const TensorData *to, const TensorData *from)
{
  uint32_t size = pto_dtype_size (to->dtype);

  combine (funcs[to->dtype][operation], to, from, 0, first_of (to, size), first_of (from, size),
           size);
}
