/* reference.c: which values are counted, and how many are there of each?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: values (how many), tile.
 */
#include "pto_reference.h"

#define KINDS 256u

int
pto_reference_inputs (PTO2Case *c)
{
  uint64_t n = (uint64_t) c->ops->integer (c, "values", 819200);
  uint64_t kinds = KINDS;
  uint8_t *values
      = (uint8_t *) c->ops->array (c, "values", (DataType) PTO_DTYPE_UINT8, 1, &n, false);

  if (values == NULL
      || c->ops->array (c, "counts", (DataType) PTO_DTYPE_INT32, 1, &kinds, true) == NULL)
    return pto_case_fail (c, "the arrays can not be had");
  for (uint64_t i = 0; i < n; i++)
    values[i] = (uint8_t) (i * i % 251);
  c->ops->scalar (c, "tile", (uint64_t) c->ops->integer (c, "tile", 4096));
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  uint64_t n = (uint64_t) c->ops->integer (c, "values", 819200);
  const uint8_t *values = (const uint8_t *) c->ops->input (c, "values");
  int32_t *counts = (int32_t *) c->ops->expected (c, "counts");

  if (values == NULL || counts == NULL)
    return pto_case_fail (c, "the arrays can not be had");
  for (uint64_t i = 0; i < KINDS; i++)
    counts[i] = 0;
  for (uint64_t i = 0; i < n; i++)
    counts[values[i]]++;
  return 0;
}
