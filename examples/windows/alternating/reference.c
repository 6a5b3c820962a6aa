/* reference.c: what do the products and sums get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: batches, inputs, tiles, size, compute. Those of the same inputs are computed
 * once.
 */
#include "../reference.h"

#include <string.h>

typedef struct
{
  uint64_t batches, inputs, outputs, tiles, size, count;
  bool compute;
} Problem;

static Problem
problem_of (PTO2Case *c)
{
  Problem problem;

  problem.batches = (uint64_t) c->ops->integer (c, "batches", 1);
  problem.inputs = (uint64_t) c->ops->integer (c, "inputs", 1);
  problem.outputs = (uint64_t) c->ops->integer (c, "outputs", 1);
  problem.tiles = (uint64_t) c->ops->integer (c, "tiles", 1);
  problem.size = (uint64_t) c->ops->integer (c, "size", 16);
  problem.compute = c->ops->integer (c, "compute", 1) != 0;
  problem.count = problem.tiles * problem.size * problem.size;
  return problem;
}

int
pto_reference_inputs (PTO2Case *c)
{
  Problem problem = problem_of (c);
  float *a = window_array (c, "a", problem.inputs, problem.tiles, problem.size, false);
  float *b = window_array (c, "b", problem.inputs, problem.tiles, problem.size, false);
  uint64_t state = 42;

  if (a == NULL || b == NULL
      || window_array (c, "products", problem.outputs, problem.tiles, problem.size, true) == NULL
      || window_array (c, "sums", problem.outputs, problem.tiles, problem.size, true) == NULL)
    return pto_case_fail (c, "the tiles can not be had");
  window_fill (a, problem.inputs * problem.count, &state);
  window_fill (b, problem.inputs * problem.count, &state);
  c->ops->scalar (c, "batches", problem.batches);
  c->ops->scalar (c, "inputs", problem.inputs);
  c->ops->scalar (c, "outputs", problem.outputs);
  c->ops->scalar (c, "tiles", problem.tiles);
  c->ops->scalar (c, "size", problem.size);
  c->ops->scalar (c, "compute", problem.compute);
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  Problem problem = problem_of (c);
  const float *a = (const float *) c->ops->input (c, "a");
  const float *b = (const float *) c->ops->input (c, "b");
  float *products = (float *) c->ops->expected (c, "products");
  float *sums = (float *) c->ops->expected (c, "sums");

  if (a == NULL || b == NULL || products == NULL || sums == NULL)
    return pto_case_fail (c, "the tiles can not be had");
  /* Each kernel writes one number: whether all came, not what they compute. */
  for (uint64_t i = 0; !problem.compute && i < problem.outputs; i++)
    {
      uint64_t first = i % problem.inputs * problem.count;

      products[i * problem.count] = 1;
      sums[i * problem.count] = a[first] + b[first];
    }
  for (uint64_t i = 0; problem.compute && i < problem.outputs; i++)
    {
      uint64_t input = i % problem.inputs;
      const float *own_a = a + input * problem.count;
      const float *own_b = b + input * problem.count;

      if (input < i)
        memcpy (products + i * problem.count, products + input * problem.count,
                problem.count * sizeof *products);
      else
        window_multiply (own_a, own_b, products + i * problem.count, problem.tiles, problem.size);
      for (uint64_t e = 0; e < problem.count; e++)
        sums[i * problem.count + e] = own_a[e] + own_b[e];
    }
  return 0;
}
