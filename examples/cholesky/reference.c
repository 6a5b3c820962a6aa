/* reference.c: which matrix is factorized, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: tiles, tile, priorities. Positive definite since the diagonal outweighs the rest.
 * What is expected is computed in double, without tiles; above the diagonal nothing changes.
 */
#include "pto_reference.h"

#include <math.h>
#include <stdlib.h>

static uint64_t
size_of (PTO2Case *c)
{
  return (uint64_t) c->ops->integer (c, "tiles", 12) * (uint64_t) c->ops->integer (c, "tile", 32);
}

int
pto_reference_inputs (PTO2Case *c)
{
  uint64_t n = size_of (c);
  uint64_t shape[2] = { n, n };
  uint64_t state = 42;
  float *a = (float *) c->ops->array (c, "a", (DataType) PTO_DTYPE_FLOAT32, 2, shape, true);

  if (a == NULL)
    return pto_case_fail (c, "the matrix a can not be had");
  for (uint64_t i = 0; i < n; i++)
    for (uint64_t j = 0; j <= i; j++)
      {
        state = state * 6364136223846793005u + 1442695040888963407u;
        a[i * n + j] = (float) (state >> 40) * (2.0f / 16777216.0f) - 1.0f;
        if (i == j)
          a[i * n + j] += (float) n;
        a[j * n + i] = a[i * n + j];
      }
  c->ops->scalar (c, "tile", (uint64_t) c->ops->integer (c, "tile", 32));
  c->ops->scalar (c, "priorities", (uint64_t) c->ops->integer (c, "priorities", 1));
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  uint64_t n = size_of (c);
  const float *a = (const float *) c->ops->input (c, "a");
  float *expected = (float *) c->ops->expected (c, "a");
  double *l;

  if (a == NULL || expected == NULL)
    return pto_case_fail (c, "the matrix a can not be had");
  l = (double *) malloc (n * n * sizeof *l);
  if (l == NULL)
    return pto_case_fail (c, "no memory for the factor");
  for (uint64_t i = 0; i < n; i++)
    {
      for (uint64_t j = 0; j <= i; j++)
        {
          double sum = a[i * n + j];

          for (uint64_t k = 0; k < j; k++)
            sum -= l[i * n + k] * l[j * n + k];
          l[i * n + j] = i == j ? sqrt (sum) : sum / l[j * n + j];
          expected[i * n + j] = (float) l[i * n + j];
        }
      for (uint64_t j = i + 1; j < n; j++)
        expected[i * n + j] = a[i * n + j];
    }
  free (l);
  return 0;
}
