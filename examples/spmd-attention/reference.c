/* reference.c: what does the attention get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: blocks, keys, width. What is expected is computed in double.
 */
#include "pto_reference.h"

#include "attention.h"

#include <math.h>
#include <stdlib.h>

/* Numbers between -1 and 1; the state is the seed of the next call. */
static void
fill (float *values, uint64_t count, uint64_t *state)
{
  for (uint64_t i = 0; i < count; i++)
    {
      *state = *state * 6364136223846793005u + 1442695040888963407u;
      values[i] = (float) (*state >> 40) * (2.0f / 16777216.0f) - 1.0f;
    }
}

int
pto_reference_inputs (PTO2Case *c)
{
  uint64_t rows = (uint64_t) c->ops->integer (c, "blocks", 48) * QUERIES;
  uint64_t keys = (uint64_t) c->ops->integer (c, "keys", 128);
  uint64_t width = (uint64_t) c->ops->integer (c, "width", 64);
  uint64_t many[2] = { rows, width };
  uint64_t few[2] = { keys, width };
  uint64_t state = 42;
  float *arrays[4];

  if (rows == 0 || keys == 0 || keys > KEYS_MAX || width == 0)
    return pto_case_fail (c, "there are 1 to 1024 keys, and at least one block, one element wide");
  arrays[0] = (float *) c->ops->array (c, "queries", (DataType) PTO_DTYPE_FLOAT32, 2, many, false);
  arrays[1] = (float *) c->ops->array (c, "keys", (DataType) PTO_DTYPE_FLOAT32, 2, few, false);
  arrays[2] = (float *) c->ops->array (c, "values", (DataType) PTO_DTYPE_FLOAT32, 2, few, false);
  arrays[3] = (float *) c->ops->array (c, "out", (DataType) PTO_DTYPE_FLOAT32, 2, many, true);
  for (int i = 0; i < 4; i++)
    if (arrays[i] == NULL)
      return pto_case_fail (c, "the arrays can not be had");
  fill (arrays[0], rows * width, &state);
  fill (arrays[1], keys * width, &state);
  fill (arrays[2], keys * width, &state);
  return 0;
}

static void
attend (const float *query, const float *keys, const float *values, uint64_t n, uint64_t width,
        double *weights, float *out)
{
  double most = -INFINITY;
  double sum = 0;

  for (uint64_t k = 0; k < n; k++)
    {
      weights[k] = 0;
      for (uint64_t i = 0; i < width; i++)
        weights[k] += (double) query[i] * (double) keys[k * width + i];
      weights[k] /= sqrt ((double) width);
      most = fmax (most, weights[k]);
    }
  for (uint64_t k = 0; k < n; k++)
    sum += weights[k] = exp (weights[k] - most);
  for (uint64_t i = 0; i < width; i++)
    {
      double value = 0;

      for (uint64_t k = 0; k < n; k++)
        value += weights[k] * (double) values[k * width + i];
      out[i] = (float) (value / sum);
    }
}

int
pto_reference_compute (PTO2Case *c)
{
  uint64_t rows = (uint64_t) c->ops->integer (c, "blocks", 48) * QUERIES;
  uint64_t n = (uint64_t) c->ops->integer (c, "keys", 128);
  uint64_t width = (uint64_t) c->ops->integer (c, "width", 64);
  const float *queries = (const float *) c->ops->input (c, "queries");
  const float *keys = (const float *) c->ops->input (c, "keys");
  const float *values = (const float *) c->ops->input (c, "values");
  float *out = (float *) c->ops->expected (c, "out");
  double *weights = (double *) malloc (n * sizeof *weights);

  if (queries == NULL || keys == NULL || values == NULL || out == NULL || weights == NULL)
    {
      free (weights);
      return pto_case_fail (c, "the arrays can not be had");
    }
  for (uint64_t r = 0; r < rows; r++)
    attend (queries + r * width, keys, values, n, width, weights, out + r * width);
  free (weights);
  return 0;
}
