/* reference.c: what do the chains of products get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: batches, depth, inputs, tiles, size, compute. Chains that have the same inputs
 * have the same sum, which is computed once.
 */
#include "../reference.h"

#include <string.h>

typedef struct
{
  uint64_t batches, depth, inputs, tiles, size, count;
  bool compute;
} Problem;

static Problem
problem_of (PTO2Case *c)
{
  Problem problem;

  problem.batches = (uint64_t) c->ops->integer (c, "batches", 1);
  problem.depth = (uint64_t) c->ops->integer (c, "depth", 1);
  problem.inputs = (uint64_t) c->ops->integer (c, "inputs", 1);
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
  float *sums = window_array (c, "c", problem.batches, problem.tiles, problem.size, true);
  uint64_t state = 42;

  if (a == NULL || b == NULL || sums == NULL)
    return pto_case_fail (c, "the tiles a, b and c can not be had");
  window_fill (a, problem.inputs * problem.count, &state);
  window_fill (b, problem.inputs * problem.count, &state);
  c->ops->scalar (c, "batches", problem.batches);
  c->ops->scalar (c, "depth", problem.depth);
  c->ops->scalar (c, "inputs", problem.inputs);
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
  float *expected = (float *) c->ops->expected (c, "c");

  if (a == NULL || b == NULL || expected == NULL)
    return pto_case_fail (c, "the tiles a, b and c can not be had");
  /* Each product writes a 1: whether all came, not what they compute. */
  for (uint64_t i = 0; !problem.compute && i < problem.batches; i++)
    expected[i * problem.count] = (float) problem.depth;
  for (uint64_t i = 0; problem.compute && i < problem.batches; i++)
    {
      float *sums = expected + i * problem.count;
      uint64_t first = i * problem.depth % problem.inputs;
      uint64_t same = 0;

      while (same * problem.depth % problem.inputs != first)
        same++;
      if (same < i)
        {
          memcpy (sums, expected + same * problem.count, problem.count * sizeof *sums);
          continue;
        }
      for (uint64_t k = 0; k < problem.depth; k++)
        {
          uint64_t input = (first + k) % problem.inputs;

          window_multiply (a + input * problem.count, b + input * problem.count, sums,
                           problem.tiles, problem.size);
        }
    }
  return 0;
}
