/* remote-results.c: which memory has been written and is nowhere but with the child that wrote it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "remote-results.h"

#include <string.h>

void
pto_left_init (struct pto_left *left)
{
  memset (left, 0, sizeof *left);
  pthread_mutex_init (&left->lock, NULL);
}

void
pto_left_destroy (struct pto_left *left)
{
  pthread_mutex_destroy (&left->lock);
  pto_spans_clear (&left->spans);
}

/* --- under the lock --- */

static enum pto_left_state
state_of (const struct pto_span *span)
{
  return (enum pto_left_state) (span->tag & 3);
}

static void
set_state (struct pto_span *span, enum pto_left_state state)
{
  span->tag = (span->tag & ~UINT64_C (3)) | state;
}

static void
unlock (struct pto_left *left)
{
  atomic_store_explicit (&left->n, left->spans.n, memory_order_relaxed);
  pthread_mutex_unlock (&left->lock);
}

/* --- the carrier's --- */

bool
pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child)
{
  bool ok;

  pthread_mutex_lock (&left->lock);
  /* None of it is on its way: who wrote it has waited for that. */
  ok = pto_spans_set (&left->spans, begin, end, (uint64_t) child << 2 | PTO_LEFT_LEFT);
  unlock (left);
  return ok;
}

/* Where there is no room for a cut, all of a span is as good as lost: nobody takes what is not here
 * for what belongs there. */
bool
pto_left_remove (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t but)
{
  bool comes = false, fits;

  if (begin >= end || pto_left_is_empty (left))
    return false;
  pthread_mutex_lock (&left->lock);
  fits = pto_spans_reserve (&left->spans, 2);
  if (fits)
    pto_spans_cut (&left->spans, begin, end);
  for (uint32_t i = pto_spans_find (&left->spans, begin);
       i < left->spans.n && left->spans.list[i].begin < end;)
    {
      struct pto_span *span = &left->spans.list[i];
      bool is_asked = state_of (span) == PTO_LEFT_ASKED;

      comes = comes || is_asked;
      if (pto_left_child (span) == but || is_asked)
        i++;
      else if (fits || (span->begin >= begin && span->end <= end))
        pto_spans_drop (&left->spans, i);
      else
        set_state (&left->spans.list[i++], PTO_LEFT_LOST);
    }
  unlock (left);
  return comes;
}

enum pto_left_where
pto_left_find (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child, uint32_t *who)
{
  enum pto_left_where where = PTO_LEFT_HERE;
  uint64_t there = 0;

  if (begin >= end || pto_left_is_empty (left))
    return PTO_LEFT_HERE;
  pthread_mutex_lock (&left->lock);
  PTO_SPANS_EACH (i, &left->spans, begin, end)
  {
    const struct pto_span *span = &left->spans.list[i];

    if (state_of (span) == PTO_LEFT_LOST)
      {
        where = PTO_LEFT_GONE;
        *who = pto_left_child (span);
        break;
      }
    where = PTO_LEFT_SOMEWHERE;
    if (pto_left_child (span) == child)
      there += pto_span_end_in (span, end) - pto_span_begin_in (span, begin);
  }
  unlock (left);
  return where == PTO_LEFT_SOMEWHERE && there == end - begin ? PTO_LEFT_THERE : where;
}

/* Is some of the range in one of those states, a bit each? */
static bool
has_state (struct pto_left *left, uint64_t begin, uint64_t end, unsigned states)
{
  bool found = false;

  if (begin >= end || pto_left_is_empty (left))
    return false;
  pthread_mutex_lock (&left->lock);
  PTO_SPANS_EACH (i, &left->spans, begin, end)
  found = found || (states >> state_of (&left->spans.list[i]) & 1) != 0;
  unlock (left);
  return found;
}

bool
pto_left_is_asked (struct pto_left *left, uint64_t begin, uint64_t end)
{
  return has_state (left, begin, end, 1u << PTO_LEFT_ASKED);
}

bool
pto_left_is_awaited (struct pto_left *left)
{
  return has_state (left, 0, UINT64_MAX, 1u << PTO_LEFT_WANTED | 1u << PTO_LEFT_ASKED);
}

void
pto_left_want (struct pto_left *left, uint64_t begin, uint64_t end, uint64_t *who)
{
  if (begin >= end || pto_left_is_empty (left))
    return;
  pthread_mutex_lock (&left->lock);
  if (pto_spans_reserve (&left->spans, 2))
    pto_spans_cut (&left->spans, begin, end);
  PTO_SPANS_EACH (i, &left->spans, begin, end)
  {
    struct pto_span *span = &left->spans.list[i];

    if (state_of (span) == PTO_LEFT_LOST)
      continue;
    if (state_of (span) == PTO_LEFT_LEFT)
      set_state (span, PTO_LEFT_WANTED);
    who[pto_left_child (span) / 64] |= UINT64_C (1) << (pto_left_child (span) % 64);
  }
  unlock (left);
}

/* All that a child has in the one state is in the other. ranges: is told of max of them; NULL: of
 * none. Returns how many. */
static uint32_t
turn (struct pto_left *left, uint32_t child, enum pto_left_state from, enum pto_left_state to,
      struct pto_left_range *ranges, uint32_t max)
{
  uint32_t n = 0;

  if (pto_left_is_empty (left))
    return 0;
  pthread_mutex_lock (&left->lock);
  for (uint32_t i = 0; i < left->spans.n && n < max; i++)
    {
      struct pto_span *span = &left->spans.list[i];

      if (pto_left_child (span) != child || state_of (span) != from)
        continue;
      set_state (span, to);
      if (ranges != NULL)
        ranges[n] = (struct pto_left_range){ span->begin, span->end };
      n++;
    }
  unlock (left);
  return n;
}

void
pto_left_want_all (struct pto_left *left, uint32_t child)
{
  turn (left, child, PTO_LEFT_LEFT, PTO_LEFT_WANTED, NULL, UINT32_MAX);
}

uint32_t
pto_left_ask (struct pto_left *left, uint32_t child, struct pto_left_range *ranges, uint32_t max)
{
  return turn (left, child, PTO_LEFT_WANTED, PTO_LEFT_ASKED, ranges, max);
}

void
pto_left_come (struct pto_left *left, uint32_t child)
{
  pthread_mutex_lock (&left->lock);
  for (uint32_t i = left->spans.n; i-- > 0;)
    if (pto_left_child (&left->spans.list[i]) == child
        && state_of (&left->spans.list[i]) == PTO_LEFT_ASKED)
      pto_spans_drop (&left->spans, i);
  unlock (left);
}

void
pto_left_lose (struct pto_left *left, uint32_t child)
{
  for (enum pto_left_state from = PTO_LEFT_LEFT; from < PTO_LEFT_LOST; from++)
    turn (left, child, from, PTO_LEFT_LOST, NULL, UINT32_MAX);
}
