/* attention.h: what do the attention kernels share? Rows of 16-bit floats, dot products, exp().
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Everything here is plain C that a compiler turns into vector instructions: loops over
 * ATTENTION_LANES have a constant length and independent lanes. Nothing is called from a library.
 */
#pragma once

#include "tensor.h"

#include <float.h>
#include <string.h>

enum
{
  ATTENTION_LANES = 16,
  ATTENTION_MAX_DIM = 512,    /* head_dim */
  ATTENTION_MAX_QUERY = 16384 /* elements of the queries a task keeps at hand */
};

/* The maximum of no score at all: finite, so that differences stay numbers. */
#define ATTENTION_NOTHING (-FLT_MAX)

static inline const TensorData *
attention_tensor (int64_t arg)
{
  return (const TensorData *) (intptr_t) arg;
}

/* The address of the element at `offset` elements after the tensor's first one. */
static inline void *
attention_at (const TensorData *tensor, uint64_t offset)
{
  uint64_t bytes = (tensor->start_offset + offset) * pto_dtype_size (tensor->dtype);

  return (void *) (uintptr_t) (tensor->buffer.addr + bytes);
}

static inline float *
attention_floats (const TensorData *tensor)
{
  return (float *) attention_at (tensor, 0);
}

static inline float
attention_float_of (uint32_t bits)
{
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

static inline uint32_t
attention_bits_of (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

/* IEEE half to float, exact: 2^112 moves the exponent to its place, denormals included. */
static inline float
attention_from_half (uint16_t half)
{
  uint32_t magnitude = (uint32_t) (half & 0x7fff) << 13;
  uint32_t sign = (uint32_t) (half & 0x8000) << 16;
  uint32_t bits = attention_bits_of (attention_float_of (magnitude) * 0x1p112f);

  bits |= magnitude >= 0x0f800000 ? 0x7f800000 : 0; /* infinities and NaN */
  return attention_float_of (bits | sign);
}

/* `n` adjacent elements as floats: in place where they are floats already, else in `scratch`. */
static inline const float *
attention_row (const TensorData *tensor, uint64_t offset, uint64_t n, float *restrict scratch)
{
  const uint16_t *restrict raw = (const uint16_t *) attention_at (tensor, offset);
  uint64_t i = 0;

  if (tensor->dtype == PTO_DTYPE_FLOAT32)
    return (const float *) attention_at (tensor, offset);
  if (tensor->dtype == PTO_DTYPE_FLOAT16)
    {
      for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
        for (int l = 0; l < ATTENTION_LANES; l++)
          scratch[i + l] = attention_from_half (raw[i + l]);
      for (; i < n; i++)
        scratch[i] = attention_from_half (raw[i]);
      return scratch;
    }
  for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      scratch[i + l] = attention_float_of ((uint32_t) raw[i + l] << 16);
  for (; i < n; i++)
    scratch[i] = attention_float_of ((uint32_t) raw[i] << 16);
  return scratch;
}

static inline float
attention_dot (const float *restrict x, const float *restrict y, uint64_t n)
{
  float lanes[ATTENTION_LANES] = { 0 };
  float sum = 0;
  uint64_t i = 0;

  for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      lanes[l] += x[i + l] * y[i + l];
  for (; i < n; i++)
    sum += x[i] * y[i];
  for (int step = ATTENTION_LANES / 2; step > 0; step /= 2)
    for (int l = 0; l < step; l++)
      lanes[l] += lanes[l + step];
  return sum + lanes[0];
}

/* y += factor * x */
static inline void
attention_accumulate (float *restrict y, float factor, const float *restrict x, uint64_t n)
{
  uint64_t i = 0;

  for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      y[i + l] += factor * x[i + l];
  for (; i < n; i++)
    y[i] += factor * x[i];
}

/* exp (x) for x <= 0, to about one unit in the last place; everything below -87 gives exp (-87),
 * which is as good as 0 beside the maximum's 1. Negative floats order like their bits the other way
 * round: clamping the bits leaves no branch. */
static inline float
attention_exp (float x)
{
  uint32_t bits = attention_bits_of (x);
  float clamped = attention_float_of (bits < 0xc2ae0000 ? bits : 0xc2ae0000); /* -87 */
  int32_t power = (int32_t) (clamped * 1.44269504f - 0.5f);
  float r = clamped - (float) power * 0.693359375f + (float) power * 2.12194440e-4f;
  float series = 1.9875691500e-4f;

  series = series * r + 1.3981999507e-3f;
  series = series * r + 8.3334519073e-3f;
  series = series * r + 4.1665795894e-2f;
  series = series * r + 1.6666665459e-1f;
  series = series * r + 5.0000001201e-1f;
  return (series * r * r + r + 1.0f) * attention_float_of ((uint32_t) (power + 127) << 23);
}

/* How many of the block's tokens a request of that length has. */
static inline uint64_t
attention_tokens_in_block (int32_t length, uint64_t block, uint64_t block_size)
{
  uint64_t before = block * block_size;
  uint64_t left = length > 0 && (uint64_t) length > before ? (uint64_t) length - before : 0;

  return left < block_size ? left : block_size;
}

/* The largest of `n` numbers; ATTENTION_NOTHING of none. */
static inline float
attention_max (const float *x, uint64_t n)
{
  float lanes[ATTENTION_LANES];
  float top = ATTENTION_NOTHING;
  uint64_t i = 0;

  for (int l = 0; l < ATTENTION_LANES; l++)
    lanes[l] = ATTENTION_NOTHING;
  for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  for (; i < n; i++)
    top = x[i] > top ? x[i] : top;
  for (int l = 0; l < ATTENTION_LANES; l++)
    top = lanes[l] > top ? lanes[l] : top;
  return top;
}

static inline float
attention_sum (const float *x, uint64_t n)
{
  float lanes[ATTENTION_LANES] = { 0 };
  float sum = 0;
  uint64_t i = 0;

  for (; i + ATTENTION_LANES <= n; i += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      lanes[l] += x[i + l];
  for (; i < n; i++)
    sum += x[i];
  for (int l = 0; l < ATTENTION_LANES; l++)
    sum += lanes[l];
  return sum;
}

/* One row of the softmax over one block: weights of the `valid` first scores, 0 for the others;
 * their maximum and their sum. The scale is positive. */
static inline void
attention_softmax_row (const float *restrict scores, float *restrict weights, uint64_t valid,
                       uint64_t block_size, float scale, float *maximum, float *sum)
{
  float top = valid > 0 ? attention_max (scores, valid) * scale : ATTENTION_NOTHING;
  uint64_t t = 0;

  for (; t + ATTENTION_LANES <= valid; t += ATTENTION_LANES)
    for (int l = 0; l < ATTENTION_LANES; l++)
      weights[t + l] = attention_exp (scores[t + l] * scale - top);
  for (; t < valid; t++)
    weights[t] = attention_exp (scores[t] * scale - top);
  for (; t < block_size; t++)
    weights[t] = 0;
  *maximum = top;
  *sum = attention_sum (weights, valid);
}
