/* reference.c: what does the vector example get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: elements, form (5 or 4 tasks).
 */
#include "pto_reference.h"

int
pto_reference_inputs (PTO2Case *c)
{
  uint64_t elements = (uint64_t) c->ops->integer (c, "elements", 16384);
  uint64_t shape[1] = { elements };
  float *a = (float *) c->ops->array (c, "a", (DataType) PTO_DTYPE_FLOAT32, 1, shape, false);
  float *b = (float *) c->ops->array (c, "b", (DataType) PTO_DTYPE_FLOAT32, 1, shape, false);
  float *f = (float *) c->ops->array (c, "f", (DataType) PTO_DTYPE_FLOAT32, 1, shape, true);

  if (a == NULL || b == NULL || f == NULL)
    return pto_case_fail (c, "the arrays a, b and f can not be had");
  for (uint64_t i = 0; i < elements; i++)
    {
      a[i] = 2.0f;
      b[i] = 3.0f;
    }
  c->ops->scalar (c, "elements", elements);
  c->ops->scalar (c, "form", (uint64_t) c->ops->integer (c, "form", 5));
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  uint64_t elements = (uint64_t) c->ops->integer (c, "elements", 16384);
  bool five = c->ops->integer (c, "form", 5) == 5;
  const float *a = (const float *) c->ops->input (c, "a");
  const float *b = (const float *) c->ops->input (c, "b");
  float *f = (float *) c->ops->expected (c, "f");

  if (a == NULL || b == NULL || f == NULL)
    return pto_case_fail (c, "the arrays a, b and f can not be had");
  for (uint64_t i = 0; i < elements; i++)
    {
      double sum = (double) a[i] + (double) b[i];

      f[i] = (float) ((sum + 1.0) * (sum + 2.0) + (five ? sum : 0.0));
    }
  return 0;
}
