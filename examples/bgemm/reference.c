/* reference.c: what does the tiled product get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: tiles-m, tiles-n, tiles-k, tile. C begins with numbers of its own, which stay
 * part of the sum. What is expected is computed in double, row by row, without tiles.
 */
#include "pto_reference.h"

#include <stdlib.h>

typedef struct Problem
{
  uint64_t tiles_m, tiles_n, tiles_k, tile;
  uint64_t m, n, k;
} Problem;

static Problem
problem_of (PTO2Case *c)
{
  Problem problem;

  problem.tiles_m = (uint64_t) c->ops->integer (c, "tiles-m", 4);
  problem.tiles_n = (uint64_t) c->ops->integer (c, "tiles-n", 4);
  problem.tiles_k = (uint64_t) c->ops->integer (c, "tiles-k", 4);
  problem.tile = (uint64_t) c->ops->integer (c, "tile", 64);
  problem.m = problem.tiles_m * problem.tile;
  problem.n = problem.tiles_n * problem.tile;
  problem.k = problem.tiles_k * problem.tile;
  return problem;
}

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
  Problem problem = problem_of (c);
  uint64_t a_shape[2] = { problem.m, problem.k };
  uint64_t b_shape[2] = { problem.k, problem.n };
  uint64_t c_shape[2] = { problem.m, problem.n };
  uint64_t state = 42;
  float *a_data, *b_data, *c_data;

  a_data = (float *) c->ops->array (c, "a", (DataType) PTO_DTYPE_FLOAT32, 2, a_shape, false);
  b_data = (float *) c->ops->array (c, "b", (DataType) PTO_DTYPE_FLOAT32, 2, b_shape, false);
  c_data = (float *) c->ops->array (c, "c", (DataType) PTO_DTYPE_FLOAT32, 2, c_shape, true);
  if (a_data == NULL || b_data == NULL || c_data == NULL)
    return pto_case_fail (c, "the matrices a, b and c can not be had");
  fill (a_data, problem.m * problem.k, &state);
  fill (b_data, problem.k * problem.n, &state);
  fill (c_data, problem.m * problem.n, &state);
  c->ops->scalar (c, "tiles-m", problem.tiles_m);
  c->ops->scalar (c, "tiles-n", problem.tiles_n);
  c->ops->scalar (c, "tiles-k", problem.tiles_k);
  c->ops->scalar (c, "tile", problem.tile);
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  Problem problem = problem_of (c);
  const float *a_data = (const float *) c->ops->input (c, "a");
  const float *b_data = (const float *) c->ops->input (c, "b");
  const float *c_data = (const float *) c->ops->input (c, "c");
  float *expected = (float *) c->ops->expected (c, "c");
  double *row;

  if (a_data == NULL || b_data == NULL || c_data == NULL || expected == NULL)
    return pto_case_fail (c, "the matrices a, b and c can not be had");
  row = (double *) malloc (problem.n * sizeof *row);
  if (row == NULL)
    return pto_case_fail (c, "no memory for a row");
  for (uint64_t i = 0; i < problem.m; i++)
    {
      for (uint64_t j = 0; j < problem.n; j++)
        row[j] = c_data[i * problem.n + j];
      for (uint64_t k = 0; k < problem.k; k++)
        for (uint64_t j = 0; j < problem.n; j++)
          row[j] += (double) a_data[i * problem.k + k] * (double) b_data[k * problem.n + j];
      for (uint64_t j = 0; j < problem.n; j++)
        expected[i * problem.n + j] = (float) row[j];
    }
  free (row);
  return 0;
}
