/* reference.c: what does attention get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: requests, caches, heads, tokens, head-dim, compute. Requests of the same cache
 * have the same queries, and their result is computed once.
 */
#include "../reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  uint64_t requests, caches, heads, tokens, dim;
  bool compute;
} Problem;

static Problem
problem_of (PTO2Case *c)
{
  Problem problem;

  problem.requests = (uint64_t) c->ops->integer (c, "requests", 1);
  problem.caches = (uint64_t) c->ops->integer (c, "caches", 1);
  problem.heads = (uint64_t) c->ops->integer (c, "heads", 1);
  problem.tokens = (uint64_t) c->ops->integer (c, "tokens", 16);
  problem.dim = (uint64_t) c->ops->integer (c, "head-dim", 16);
  problem.compute = c->ops->integer (c, "compute", 1) != 0;
  return problem;
}

static float
float_of (uint16_t bits)
{
  uint32_t wide = (uint32_t) bits << 16;
  float value;

  memcpy (&value, &wide, sizeof value);
  return value;
}

/* Numbers between -1 and 1, as far as bfloat16 tells them apart. */
static uint16_t *
make_array (PTO2Case *c, const char *name, uint64_t count, uint64_t rows, uint64_t dim,
            uint64_t *state)
{
  uint64_t shape[3] = { count, rows, dim };
  uint16_t *values
      = (uint16_t *) c->ops->array (c, name, (DataType) PTO_DTYPE_BFLOAT16, 3, shape, false);

  for (uint64_t i = 0; values != NULL && i < count * rows * dim; i++)
    {
      float value;
      uint32_t bits;

      window_fill (&value, 1, state);
      memcpy (&bits, &value, sizeof bits);
      values[i] = (uint16_t) (bits >> 16);
    }
  return values;
}

int
pto_reference_inputs (PTO2Case *c)
{
  Problem problem = problem_of (c);
  uint64_t shape[3] = { problem.requests, problem.heads, problem.dim };
  float scale = 1 / sqrtf ((float) problem.dim);
  uint64_t state = 42;
  uint32_t bits;

  if (make_array (c, "query", problem.caches, problem.heads, problem.dim, &state) == NULL
      || make_array (c, "keys", problem.caches, problem.tokens, problem.dim, &state) == NULL
      || make_array (c, "values", problem.caches, problem.tokens, problem.dim, &state) == NULL
      || c->ops->array (c, "out", (DataType) PTO_DTYPE_FLOAT32, 3, shape, true) == NULL)
    return pto_case_fail (c, "the caches can not be had");
  memcpy (&bits, &scale, sizeof bits);
  c->ops->scalar (c, "requests", problem.requests);
  c->ops->scalar (c, "caches", problem.caches);
  c->ops->scalar (c, "heads", problem.heads);
  c->ops->scalar (c, "tokens", problem.tokens);
  c->ops->scalar (c, "head-dim", problem.dim);
  c->ops->scalar (c, "scale", bits);
  c->ops->scalar (c, "compute", problem.compute);
  return 0;
}

/* Of one head: out = softmax (q k^T / sqrt (dim)) v. */
static void
attend (const Problem *problem, const uint16_t *q, const uint16_t *k, const uint16_t *v,
        double *weights, float *out)
{
  double best = -INFINITY;
  double sum = 0;

  for (uint64_t t = 0; t < problem->tokens; t++)
    {
      double score = 0;

      for (uint64_t d = 0; d < problem->dim; d++)
        score += (double) float_of (q[d]) * (double) float_of (k[t * problem->dim + d]);
      weights[t] = score / sqrt ((double) problem->dim);
      best = weights[t] > best ? weights[t] : best;
    }
  for (uint64_t t = 0; t < problem->tokens; t++)
    {
      weights[t] = exp (weights[t] - best);
      sum += weights[t];
    }
  for (uint64_t d = 0; d < problem->dim; d++)
    {
      double value = 0;

      for (uint64_t t = 0; t < problem->tokens; t++)
        value += weights[t] * (double) float_of (v[t * problem->dim + d]);
      out[d] = (float) (value / sum);
    }
}

int
pto_reference_compute (PTO2Case *c)
{
  Problem problem = problem_of (c);
  const uint16_t *query = (const uint16_t *) c->ops->input (c, "query");
  const uint16_t *keys = (const uint16_t *) c->ops->input (c, "keys");
  const uint16_t *values = (const uint16_t *) c->ops->input (c, "values");
  float *expected = (float *) c->ops->expected (c, "out");
  uint64_t width = problem.heads * problem.dim;
  uint64_t cache = problem.tokens * problem.dim;
  double *weights;

  if (query == NULL || keys == NULL || values == NULL || expected == NULL)
    return pto_case_fail (c, "the caches can not be had");
  weights = (double *) malloc (problem.tokens * sizeof *weights);
  if (weights == NULL)
    return pto_case_fail (c, "no memory for the weights of a head");
  /* A 1 of the scores, and what comes to it: whether all came, not what they compute. */
  for (uint64_t r = 0; !problem.compute && r < problem.requests; r++)
    expected[r * width] = 2 + 2 + 3;
  for (uint64_t r = 0; problem.compute && r < problem.requests; r++)
    for (uint64_t h = 0; h < problem.heads; h++)
      {
        uint64_t own = r % problem.caches;
        uint64_t at = h * problem.dim;

        if (own < r)
          memcpy (expected + r * width + at, expected + own * width + at,
                  problem.dim * sizeof *expected);
        else
          attend (&problem, query + own * width + at, keys + own * cache, values + own * cache,
                  weights, expected + r * width + at);
      }
  free (weights);
  return 0;
}
