/* spans.h: which ranges of addresses are marked, and as what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A list of ranges, by address and apart, each with a tag that is its owner's. Zeros at first.
 * Thread safety: one thread at a time.
 */
#pragma once

#include "core/bits.h"

#include <stdbool.h>
#include <stdint.h>

struct pto_span
{
  uint64_t begin, end;
  uint64_t tag;
};

struct pto_spans
{
  struct pto_span *list;
  uint32_t n, size;
};

/* The index of the first that ends after the address. */
static inline uint32_t
pto_spans_find (const struct pto_spans *spans, uint64_t address)
{
  return pto_bisect (i, spans->n, spans->list[i].end <= address);
}

/* Each that has a part of the range, by its index. */
#define PTO_SPANS_EACH(i, spans, from, to)            \
  for (uint32_t i = pto_spans_find ((spans), (from)); \
       i < (spans)->n && (spans)->list[i].begin < (to); i++)

static inline uint64_t
pto_span_begin_in (const struct pto_span *span, uint64_t begin)
{
  return span->begin > begin ? span->begin : begin;
}

static inline uint64_t
pto_span_end_in (const struct pto_span *span, uint64_t end)
{
  return span->end < end ? span->end : end;
}

/* Makes room for so many more. Returns false without memory; nothing has changed then. */
bool pto_spans_reserve (struct pto_spans *spans, uint32_t more);
/* No span goes across either end of the range from now on. There is room for two more. */
void pto_spans_cut (struct pto_spans *spans, uint64_t begin, uint64_t end);
void pto_spans_drop (struct pto_spans *spans, uint32_t index);
/* Tags the range, whatever it was, and joins it with what touches it and has the same tag. Returns
 * false without memory; nothing has changed then. */
bool pto_spans_set (struct pto_spans *spans, uint64_t begin, uint64_t end, uint64_t tag);
void pto_spans_clear (struct pto_spans *spans);
