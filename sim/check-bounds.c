/* check-bounds.c: where is memory cut, so that all bytes of a piece are touched alike?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check.h"

#include <stdlib.h>

static int
compare_bounds (const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *) a;
  uint64_t y = *(const uint64_t *) b;

  return x < y ? -1 : x > y;
}

uint64_t
pto_check_sort_bounds (uint64_t *bounds, uint64_t n)
{
  uint64_t kept = 0;

  if (n > 1)
    qsort (bounds, n, sizeof *bounds, compare_bounds);
  for (uint64_t i = 0; i < n; i++)
    if (kept == 0 || bounds[kept - 1] != bounds[i])
      bounds[kept++] = bounds[i];
  return kept;
}

uint32_t
pto_check_find_bound (const uint64_t *bounds, uint32_t n, uint64_t address)
{
  uint32_t lo = 0;
  uint32_t hi = n;

  while (hi - lo > 1)
    {
      uint32_t middle = lo + (hi - lo) / 2;

      if (bounds[middle] <= address)
        lo = middle;
      else
        hi = middle;
    }
  return lo;
}
