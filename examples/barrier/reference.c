/* reference.c: what does the rod begin with, and what is it after the last step?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: cells, steps, blocks.
 */
#include "pto_reference.h"

#include <stdlib.h>

int
pto_reference_inputs (PTO2Case *c)
{
  uint64_t cells = (uint64_t) c->ops->integer (c, "cells", 4096);
  uint64_t rows_shape[2] = { 2, cells };
  float *rows
      = (float *) c->ops->array (c, "rows", (DataType) PTO_DTYPE_FLOAT32, 2, rows_shape, false);
  float *out = (float *) c->ops->array (c, "out", (DataType) PTO_DTYPE_FLOAT32, 1, &cells, true);

  if (rows == NULL || out == NULL)
    return pto_case_fail (c, "the arrays can not be had");
  for (uint64_t i = 0; i < cells; i++)
    rows[i] = (float) (i * 37 % 101) / 10;
  c->ops->scalar (c, "steps", (uint64_t) c->ops->integer (c, "steps", 100));
  c->ops->scalar (c, "blocks", (uint64_t) c->ops->integer (c, "blocks", 16));
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  uint64_t n = (uint64_t) c->ops->integer (c, "cells", 4096);
  int64_t steps = c->ops->integer (c, "steps", 100);
  const float *rows = (const float *) c->ops->input (c, "rows");
  float *out = (float *) c->ops->expected (c, "out");
  double *now = (double *) malloc (2 * n * sizeof *now);
  double *next;

  if (rows == NULL || out == NULL || now == NULL)
    {
      free (now);
      return pto_case_fail (c, "the arrays can not be had");
    }
  next = now + n;
  for (uint64_t i = 0; i < n; i++)
    now[i] = (double) rows[i];
  for (int64_t step = 0; step < steps; step++)
    {
      next[0] = now[0];
      next[n - 1] = now[n - 1];
      for (uint64_t i = 1; i + 1 < n; i++)
        next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
      for (uint64_t i = 0; i < n; i++)
        now[i] = next[i];
    }
  for (uint64_t i = 0; i < n; i++)
    out[i] = (float) now[i];
  free (now);
  return 0;
}
