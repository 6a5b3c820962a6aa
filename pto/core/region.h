/* region.h: which bytes does a tensor touch, and do two tensors touch a common one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A region is a set of bytes: runs of equal length, repeated by up to five strides. It is kept in a
 * canonical form, so that a transposed or reshaped view of the same bytes is the same region:
 * dimensions of one element are gone, those that continue each other are one, the contiguous
 * innermost ones are the run, and the rest is sorted by stride. Element type and order play no
 * part: a dependency is about bytes. Thread safety: any thread, values only. Source: seed 000
 * section 5; "Overlap test cascade" of the engine notes.
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include <stdbool.h>
#include <stdint.h>

/* The steps that one exact test may take before it gives up and answers on the safe side. Views of
 * one tensor, however sliced, transposed or reshaped along its dimensions, need fewer than 64. */
#define PTO_REGION_WORK 4096

struct pto_region_dim
{
  uint64_t stride; /* in bytes; greater than the run */
  uint64_t count;  /* 2 or more */
};

struct pto_region
{
  uint64_t lo;     /* the first byte, absolute */
  uint64_t hi;     /* the byte behind the last one; hi == lo: nothing */
  uint64_t run;    /* the length of each contiguous piece */
  uint32_t n_dims; /* 0: contiguous, and then dims holds nothing */
  struct pto_region_dim dims[PTO2_TENSOR_MAX_DIMS]; /* stride descending */
};

/* pto_region_init() for a tensor that is not contiguous. */
void pto_region_init_strided (struct pto_region *region, const Tensor *tensor);

/* The same canonical form. Where the strides of a region do not overlap each other: the same bytes.
 */
bool pto_region_equal (const struct pto_region *a, const struct pto_region *b);

/* a holds every byte of b. May be false for a true one, when a's own strides overlap each other or
 * when the work exceeds PTO_REGION_WORK; never the other way round. */
bool pto_region_covers (const struct pto_region *a, const struct pto_region *b);

/* a and b have a byte in common. Exact, unless the work exceeds PTO_REGION_WORK: then the answer is
 * true and *unsure is set (it is left alone otherwise). */
bool pto_region_overlaps (const struct pto_region *a, const struct pto_region *b, bool *unsure);

/* Bytes from the first element of a tensor to behind its last one. It has no dimension of 0. */
static inline uint64_t
pto_extent (uint32_t ndims, DataType dtype, const uint64_t *shapes, const uint64_t *strides)
{
  uint64_t elements = 1;

  for (uint32_t d = 0; d < ndims; d++)
    elements += (shapes[d] - 1) * strides[d];
  return elements * (uint64_t) pto_dtype_size (dtype);
}

static inline uint64_t
pto_tensor_extent (const Tensor *tensor)
{
  return pto_extent (tensor->ndims, tensor->dtype, tensor->shapes, tensor->strides);
}

/* The extent of a contiguous tensor; false when it is not contiguous. Inline: most tensors of a
 * submit are. */
static inline bool
pto_region_contiguous (const Tensor *tensor, uint64_t *lo, uint64_t *hi)
{
  uint64_t size = pto_dtype_size (tensor->dtype);
  uint64_t begin = tensor->buffer.addr + tensor->start_offset * size;
  uint64_t numel = 1;

  if (tensor->ndims - 1 >= PTO2_TENSOR_MAX_DIMS)
    numel = 0;
  else
    for (uint32_t i = tensor->ndims; i-- > 0;)
      {
        if (tensor->shapes[i] != 1 && tensor->strides[i] != numel)
          return false;
        numel *= tensor->shapes[i];
      }
  *lo = begin;
  *hi = begin + numel * size;
  return true;
}

/* Fills everything but dims[n_dims...]. The tensor is resolved: buffer.addr holds its address. */
static inline void
pto_region_init (struct pto_region *region, const Tensor *tensor)
{
  if (!pto_region_contiguous (tensor, &region->lo, &region->hi))
    {
      pto_region_init_strided (region, tensor);
      return;
    }
  region->run = region->hi - region->lo;
  region->n_dims = 0;
}
