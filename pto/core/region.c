/* region.c: which bytes does a tensor touch, and do two tensors touch a common one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "region.h"

#include "bits.h"

#include <string.h>

/* All arithmetic on strides is on signed 64 bit: regions are far smaller than 2^62 bytes. */

static inline int64_t
floor_div (int64_t a, int64_t b)
{
  int64_t q = a / b;

  return q - (a % b < 0);
}

void
pto_region_init_strided (struct pto_region *region, const Tensor *tensor)
{
  struct pto_region_dim sorted[PTO2_TENSOR_MAX_DIMS];
  struct pto_region_dim merged[PTO2_TENSOR_MAX_DIMS];
  uint64_t size = pto_dtype_size (tensor->dtype);
  uint64_t lo = tensor->buffer.addr + tensor->start_offset * size;
  uint64_t run = size;
  uint64_t last = 0;
  uint32_t n_sorted = 0;
  uint32_t n = 0;

  for (uint32_t i = tensor->ndims; i-- > 0;)
    {
      struct pto_region_dim dim = { tensor->strides[i] * size, tensor->shapes[i] };
      uint32_t at = n_sorted;

      if (dim.count == 0)
        run = 0;
      if (dim.count <= 1 || dim.stride == 0)
        continue;
      for (; at > 0 && sorted[at - 1].stride > dim.stride; at--)
        sorted[at] = sorted[at - 1];
      sorted[at] = dim;
      n_sorted++;
    }
  region->lo = lo;
  region->n_dims = 0;
  region->run = run;
  region->hi = lo;
  if (run == 0)
    return;

  /* From the smallest stride up. A stride within the run only lengthens it; one that is a multiple
   * of the last kept stride and leaves no gap behind it only adds to the last count. Both hold for
   * strides that overlap too. */
  for (uint32_t i = 0; i < n_sorted; i++)
    {
      struct pto_region_dim dim = sorted[i];

      if (n == 0 && dim.stride <= run)
        {
          run += (dim.count - 1) * dim.stride;
          continue;
        }
      if (n > 0 && dim.stride <= merged[n - 1].stride * merged[n - 1].count
          && dim.stride % merged[n - 1].stride == 0)
        {
          merged[n - 1].count += dim.stride / merged[n - 1].stride * (dim.count - 1);
          continue;
        }
      merged[n++] = dim;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      region->dims[n - 1 - i] = merged[i];
      last += merged[i].stride * (merged[i].count - 1);
    }
  region->n_dims = n;
  region->run = run;
  region->hi = lo + last + run;
}

bool
pto_region_equal (const struct pto_region *a, const struct pto_region *b)
{
  return a->lo == b->lo && a->hi == b->hi && a->run == b->run && a->n_dims == b->n_dims
         && memcmp (a->dims, b->dims, a->n_dims * sizeof a->dims[0]) == 0;
}

/* A byte is common where
 *
 *   a.lo + sum of i[k] * a.stride[k] + u  ==  b.lo + sum of j[l] * b.stride[l] + v
 *
 * for some indices and offsets into the runs in their ranges. With one term t * coefficient per
 * different stride (t = i - j where both have it) and w = u - v, that is: sum of t[k] *
 * coefficient[k] + w == b.lo - a.lo. Choosing the terms from the greatest coefficient down leaves
 * few candidates for each, because what the smaller terms can still add up to is bounded. */
struct term
{
  int64_t coefficient;
  int64_t min;
  int64_t max;
  int64_t rest_min; /* what the terms behind this one and w add up to, at least */
  int64_t rest_max; /* and at most */
};

struct equation
{
  struct term terms[2 * PTO2_TENSOR_MAX_DIMS];
  uint32_t n;
  int64_t w_min;
  int64_t w_max;
  int32_t work;
};

/* Are there terms from k on, and a w, that add up to the sum? The remainder modulo the common
 * divisor has to be in w's range: that settles interleaved regions of large counts without a walk.
 */
static bool
divisor_allows (const struct equation *equation, uint32_t k, int64_t sum)
{
  uint64_t divisor = 0;

  for (uint32_t i = k; i < equation->n; i++)
    divisor = greatest_common_divisor ((uint64_t) equation->terms[i].coefficient, divisor);
  return floor_div (sum - equation->w_min, (int64_t) divisor)
         >= -floor_div (equation->w_max - sum, (int64_t) divisor);
}

/* By terms from k on, of which there is one at least. */
static bool
equation_has_solution (struct equation *equation, uint32_t k, int64_t sum)
{
  const struct term *term = &equation->terms[k];
  int64_t first, last;

  first = -floor_div (term->rest_max - sum, term->coefficient);
  last = floor_div (sum - term->rest_min, term->coefficient);
  first = max_of (first, term->min);
  last = min_of (last, term->max);
  if (first > last)
    return false;
  if (k + 1 == equation->n)
    return true;
  if (last - first > 2 && !divisor_allows (equation, k, sum))
    return false;
  for (int64_t t = first; t <= last; t++)
    {
      if (--equation->work < 0)
        return true;
      if (equation_has_solution (equation, k + 1, sum - t * term->coefficient))
        return true;
    }
  return false;
}

bool
pto_region_overlaps (const struct pto_region *a, const struct pto_region *b, bool *unsure)
{
  struct equation equation;
  uint32_t i = 0, j = 0;
  int64_t min, max;
  bool found;

  if (a->hi <= b->lo || b->hi <= a->lo || a->lo == a->hi || b->lo == b->hi)
    return false;
  if (a->n_dims == 0 && b->n_dims == 0)
    return true;
  /* The first run of either in the first run of the other: the common case of a true answer. */
  if (a->lo < b->lo ? b->lo - a->lo < a->run : a->lo - b->lo < b->run)
    return true;

  equation.n = 0;
  equation.work = PTO_REGION_WORK;
  while (i < a->n_dims || j < b->n_dims)
    {
      struct term *term = &equation.terms[equation.n++];
      uint64_t stride_a = i < a->n_dims ? a->dims[i].stride : 0;
      uint64_t stride_b = j < b->n_dims ? b->dims[j].stride : 0;

      term->coefficient = (int64_t) (stride_a > stride_b ? stride_a : stride_b);
      term->min = stride_b >= stride_a ? 1 - (int64_t) b->dims[j++].count : 0;
      term->max = stride_a >= stride_b ? (int64_t) a->dims[i++].count - 1 : 0;
    }
  min = equation.w_min = 1 - (int64_t) b->run;
  max = equation.w_max = (int64_t) a->run - 1;
  for (uint32_t k = equation.n; k-- > 0;)
    {
      struct term *term = &equation.terms[k];

      term->rest_min = min;
      term->rest_max = max;
      min += term->min * term->coefficient;
      max += term->max * term->coefficient;
    }
  found = equation_has_solution (&equation, 0, (int64_t) (b->lo - a->lo));
  if (equation.work < 0)
    *unsure = true;
  return found;
}

/* Is [offset, offset + length), which lies within the span of the region's dimensions from k on,
 * within one run of them? index gets the position of that run, *work what is left of it. */
static bool
find_run (const struct pto_region *region, uint32_t k, uint64_t span, uint64_t offset,
          uint64_t length, uint64_t *index, int32_t *work)
{
  const struct pto_region_dim *dim = &region->dims[k];
  uint64_t first, last;

  if (k == region->n_dims)
    return true;
  span -= dim->stride * (dim->count - 1);
  last = offset / dim->stride;
  if (last >= dim->count)
    last = dim->count - 1;
  first = offset + length > span ? (offset + length - span + dim->stride - 1) / dim->stride : 0;
  for (uint64_t i = last + 1; i-- > first;)
    {
      if (--*work < 0)
        return false;
      if (find_run (region, k + 1, span, offset - i * dim->stride, length, index, work))
        {
          index[k] = i;
          return true;
        }
    }
  return false;
}

bool
pto_region_covers (const struct pto_region *a, const struct pto_region *b)
{
  uint64_t index[PTO2_TENSOR_MAX_DIMS];
  uint64_t room[PTO2_TENSOR_MAX_DIMS];
  uint64_t offset, rest, room_run, runs = 1;
  int32_t work = PTO_REGION_WORK;
  bool fits = true;

  if (b->lo == b->hi)
    return true;
  if (b->lo < a->lo || b->hi > a->hi)
    return false;
  if (a->n_dims == 0)
    return true;
  offset = b->lo - a->lo;
  if (!find_run (a, 0, a->hi - a->lo, offset, b->run, index, &work))
    return false;

  /* Each dimension of b along one of a's, within what a has left there from b's first run on. */
  rest = offset;
  for (uint32_t k = 0; k < a->n_dims; k++)
    {
      room[k] = a->dims[k].count - 1 - index[k];
      rest -= index[k] * a->dims[k].stride;
    }
  room_run = a->run - rest - b->run;
  for (uint32_t l = 0; l < b->n_dims && fits; l++)
    {
      uint64_t stride = b->dims[l].stride;
      uint64_t steps = b->dims[l].count - 1;

      fits = false;
      for (uint32_t k = 0; k < a->n_dims && !fits; k++)
        if (stride >= a->dims[k].stride && stride % a->dims[k].stride == 0
            && stride / a->dims[k].stride * steps <= room[k])
          {
            room[k] -= stride / a->dims[k].stride * steps;
            fits = true;
          }
      if (!fits && stride * steps <= room_run)
        {
          room_run -= stride * steps;
          fits = true;
        }
    }
  if (fits)
    return true;

  /* Other strides: every run of b, the last one first, since it tells most. */
  if (!find_run (a, 0, a->hi - a->lo, b->hi - b->run - a->lo, b->run, index, &work))
    return false;
  for (uint32_t l = 0; l < b->n_dims; l++)
    if (b->dims[l].count > PTO_REGION_WORK || (runs *= b->dims[l].count) > PTO_REGION_WORK)
      return false;
  for (uint64_t n = 0; n < runs; n++)
    {
      uint64_t number = n;

      offset = b->lo - a->lo;
      for (uint32_t l = b->n_dims; l-- > 0;)
        {
          offset += number % b->dims[l].count * b->dims[l].stride;
          number /= b->dims[l].count;
        }
      if (!find_run (a, 0, a->hi - a->lo, offset, b->run, index, &work))
        return false;
    }
  return true;
}
