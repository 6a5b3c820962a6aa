/* check-region.c: which bytes does a region have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include <string.h>

void
pto_check_pieces_begin (struct pto_check_pieces *pieces, const struct pto_region *region)
{
  pieces->region = region;
  memset (pieces->index, 0, sizeof pieces->index);
  pieces->done = region->hi == region->lo;
}

bool
pto_check_pieces_next (struct pto_check_pieces *pieces, uint64_t *lo, uint64_t *hi)
{
  const struct pto_region *region = pieces->region;
  uint64_t at = region->lo;
  uint32_t d = region->n_dims;

  if (pieces->done)
    return false;
  for (uint32_t i = 0; i < region->n_dims; i++)
    at += pieces->index[i] * region->dims[i].stride;
  *lo = at;
  *hi = at + region->run;
  while (d > 0 && ++pieces->index[d - 1] == region->dims[d - 1].count)
    pieces->index[--d] = 0;
  pieces->done = d == 0;
  return true;
}

/* How many bytes the dimensions from d on reach over, holes and all. */
static uint64_t
reach (const struct pto_region *region, uint32_t d)
{
  uint64_t bytes = region->run;

  for (uint32_t i = d; i < region->n_dims && i < PTO2_TENSOR_MAX_DIMS; i++)
    bytes += (region->dims[i].count - 1) * region->dims[i].stride;
  return bytes;
}

/* From dimension d on, offset bytes behind its begin. */
static bool
has_offset (const struct pto_region *region, uint32_t d, uint64_t offset)
{
  uint64_t rest;
  uint64_t most;

  if (d == region->n_dims || d == PTO2_TENSOR_MAX_DIMS)
    return offset < region->run;
  /* Strides descend, but views whose pieces overlap each other may need another than the last. */
  rest = reach (region, d + 1);
  most = offset / region->dims[d].stride;
  if (most >= region->dims[d].count)
    most = region->dims[d].count - 1;
  for (uint64_t i = most;; i--)
    {
      if (offset - i * region->dims[d].stride >= rest)
        return false;
      if (has_offset (region, d + 1, offset - i * region->dims[d].stride))
        return true;
      if (i == 0)
        return false;
    }
}

static bool
region_has (const struct pto_region *region, uint64_t address)
{
  return address >= region->lo && address < region->hi
         && has_offset (region, 0, address - region->lo);
}

/* From dimension d on, offset bytes behind its begin. */
static uint64_t
get_distance (const struct pto_region *region, uint32_t d, int64_t offset)
{
  uint64_t behind = (uint64_t) offset;
  uint64_t i;
  uint64_t distance;
  uint64_t next = UINT64_MAX;

  if (offset < 0)
    return 0 - behind;
  if (d == region->n_dims || d == PTO2_TENSOR_MAX_DIMS)
    return behind < region->run ? 0 : behind - region->run + 1;
  i = behind / region->dims[d].stride;
  if (i >= region->dims[d].count)
    i = region->dims[d].count - 1;
  distance = get_distance (region, d + 1, (int64_t) (behind - i * region->dims[d].stride));
  if (i + 1 < region->dims[d].count)
    next = get_distance (region, d + 1, (int64_t) (behind - (i + 1) * region->dims[d].stride));
  return distance < next ? distance : next;
}

uint64_t
pto_check_region_distance (const struct pto_region *region, uint64_t address)
{
  return region->lo < region->hi ? get_distance (region, 0, (int64_t) (address - region->lo))
                                 : UINT64_MAX;
}

const struct pto_check_arg *
pto_check_find_arg (const struct pto_check_task *task, uint64_t address, uint32_t types)
{
  for (uint32_t i = 0; i < task->n_args; i++)
    if ((types >> task->args[i].type & 1) != 0 && region_has (&task->args[i].region, address))
      return &task->args[i];
  return NULL;
}

bool
pto_check_is_new (const struct pto_check_task *task, const struct pto_check_arg *arg)
{
  return arg->buffer >= task->heap_lo && arg->buffer + arg->bytes <= task->heap_hi
         && arg->bytes > 0;
}

bool
pto_check_is_condition (const struct pto_check_task *task, const struct pto_check_arg *arg)
{
  return task->kernel != PTO_KERNEL_NONE && (task->kernel & PTO_KERNEL_IF) != 0
         && arg->index + 1u == task->n_words;
}

bool
pto_check_is_in_rings (const struct pto_check *check, const struct pto_check_arg *arg)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_circle *heap = &check->engine->rings[r].heap;

      if (arg->region.lo - (uint64_t) (uintptr_t) heap->base < heap->size)
        return true;
    }
  return false;
}

/* Bits of the bytes from lo to hi that are in the block. */
static void
set_bits (uint64_t bits[PTO_CHECK_WORDS], uint64_t begin, uint64_t lo, uint64_t hi)
{
  uint64_t from = lo > begin ? lo - begin : 0;
  uint64_t to = hi < begin + PTO_CHECK_BLOCK_BYTES ? hi - begin : PTO_CHECK_BLOCK_BYTES;

  while (from < to)
    {
      uint64_t end = (from | 63) + 1 < to ? (from | 63) + 1 : to;
      uint64_t n = end - from;

      bits[from / 64] |= (n == 64 ? UINT64_MAX : ((UINT64_C (1) << n) - 1)) << from % 64;
      from = end;
    }
}

/* The bytes of a region that are in the block, from dimension d on. */
void
pto_check_set_region (uint64_t bits[PTO_CHECK_WORDS], uint64_t begin,
                      const struct pto_region *region, uint32_t d, uint64_t at)
{
  uint64_t rest = reach (region, d + 1);
  uint64_t stride;
  uint64_t first = 0;

  if (d == region->n_dims || d == PTO2_TENSOR_MAX_DIMS)
    {
      if (at < begin + PTO_CHECK_BLOCK_BYTES && at + region->run > begin)
        set_bits (bits, begin, at, at + region->run);
      return;
    }
  stride = region->dims[d].stride;
  if (at + rest <= begin)
    first = (begin - at - rest) / stride + 1;
  for (uint64_t i = first;
       i < region->dims[d].count && at + i * stride < begin + PTO_CHECK_BLOCK_BYTES; i++)
    pto_check_set_region (bits, begin, region, d + 1, at + i * stride);
}
