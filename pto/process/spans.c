/* spans.c: which ranges of addresses are marked, and as what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

bool
pto_spans_reserve (struct pto_spans *spans, uint32_t more)
{
  uint32_t size = 2 * (spans->n + more) + 16;
  struct pto_span *list;

  if (spans->n + more <= spans->size)
    return true;
  list = realloc (spans->list, size * sizeof *list);
  if (list == NULL)
    return false;
  spans->list = list;
  spans->size = size;
  return true;
}

/* In place of those from first on and before last. */
static void
replace (struct pto_spans *spans, uint32_t first, uint32_t last, struct pto_span span)
{
  memmove (&spans->list[first + 1], &spans->list[last], (spans->n - last) * sizeof span);
  spans->list[first] = span;
  spans->n = spans->n + 1 - (last - first);
}

static void
cut (struct pto_spans *spans, uint64_t address)
{
  uint32_t at = pto_spans_find (spans, address);
  struct pto_span rest;

  if (at == spans->n || spans->list[at].begin >= address)
    return;
  rest = spans->list[at];
  rest.begin = spans->list[at].end = address;
  replace (spans, at + 1, at + 1, rest);
}

void
pto_spans_cut (struct pto_spans *spans, uint64_t begin, uint64_t end)
{
  cut (spans, begin);
  cut (spans, end);
}

void
pto_spans_drop (struct pto_spans *spans, uint32_t index)
{
  spans->n--;
  memmove (&spans->list[index], &spans->list[index + 1], (spans->n - index) * sizeof *spans->list);
}

bool
pto_spans_set (struct pto_spans *spans, uint64_t begin, uint64_t end, uint64_t tag)
{
  struct pto_span span = { begin, end, tag };
  uint32_t first = pto_spans_find (spans, begin), last;

  if (begin >= end
      || (first < spans->n && spans->list[first].begin <= begin && spans->list[first].end >= end
          && spans->list[first].tag == tag))
    return true;
  if (!pto_spans_reserve (spans, 2))
    return false;
  pto_spans_cut (spans, begin, end);
  first = pto_spans_find (spans, begin);
  for (last = first; last < spans->n && spans->list[last].end <= end; last++)
    ;
  if (first > 0 && spans->list[first - 1].end == begin && spans->list[first - 1].tag == tag)
    span.begin = spans->list[--first].begin;
  if (last < spans->n && spans->list[last].begin == end && spans->list[last].tag == tag)
    span.end = spans->list[last++].end;
  replace (spans, first, last, span);
  return true;
}

void
pto_spans_clear (struct pto_spans *spans)
{
  free (spans->list);
  *spans = (struct pto_spans){ 0 };
}
