/* remote-results.c: which memory has been written and is nowhere but with the child that wrote it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "remote-results.h"

#include "core/bits.h"

#include <stdlib.h>
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
  free (left->spans);
}

/* --- under the lock --- */

static uint32_t
count (const struct pto_left *left)
{
  return atomic_load_explicit (&left->n, memory_order_relaxed);
}

static void
set_count (struct pto_left *left, uint32_t n)
{
  atomic_store_explicit (&left->n, n, memory_order_relaxed);
}

/* The first that ends behind the address. */
static uint32_t
find (const struct pto_left *left, uint64_t address)
{
  return pto_bisect (i, count (left), left->spans[i].end <= address);
}

static bool
reserve (struct pto_left *left, uint32_t more)
{
  uint32_t n = count (left) + more;
  struct pto_left_span *spans;

  if (n <= left->capacity)
    return true;
  n = n < 64 ? 64 : 2 * n;
  spans = realloc (left->spans, n * sizeof *spans);
  if (spans == NULL)
    return false;
  left->spans = spans;
  left->capacity = n;
  return true;
}

static void
insert (struct pto_left *left, uint32_t at, struct pto_left_span span)
{
  uint32_t n = count (left);

  memmove (&left->spans[at + 1], &left->spans[at], (n - at) * sizeof span);
  left->spans[at] = span;
  set_count (left, n + 1);
}

static void
drop (struct pto_left *left, uint32_t at)
{
  uint32_t n = count (left) - 1;

  memmove (&left->spans[at], &left->spans[at + 1], (n - at) * sizeof *left->spans);
  set_count (left, n);
}

/* No span goes across that address from now on. There is room for one more. */
static void
cut (struct pto_left *left, uint64_t address)
{
  uint32_t at = find (left, address);

  if (at < count (left) && left->spans[at].begin < address)
    {
      struct pto_left_span rest = left->spans[at];

      rest.begin = address;
      left->spans[at].end = address;
      insert (left, at + 1, rest);
    }
}

/* Are both one? */
static bool
fit (const struct pto_left_span *span, const struct pto_left_span *next)
{
  return span->end == next->begin && span->child == next->child && span->state == next->state;
}

static void
join (struct pto_left *left, uint32_t at)
{
  if (at + 1 >= count (left) || !fit (&left->spans[at], &left->spans[at + 1]))
    return;
  left->spans[at].end = left->spans[at + 1].end;
  drop (left, at + 1);
}

/* Where there is no room for a cut, all of a span is as good as lost: nobody takes what is not here
 * for what belongs there. What is on its way stays until it has come. Gives whether some of it is.
 */
static bool
clear (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t but)
{
  bool fits = reserve (left, 2);
  bool comes = false;

  if (fits)
    {
      cut (left, begin);
      cut (left, end);
    }
  for (uint32_t at = find (left, begin); at < count (left) && left->spans[at].begin < end;)
    {
      struct pto_left_span *span = &left->spans[at];

      if (span->child == but || span->state == PTO_LEFT_ASKED)
        {
          comes = comes || span->state == PTO_LEFT_ASKED;
          at++;
        }
      else if (fits || (span->begin >= begin && span->end <= end))
        drop (left, at);
      else
        left->spans[at++].state = PTO_LEFT_LOST;
    }
  return comes;
}

/* --- the carrier's --- */

bool
pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child)
{
  uint32_t at;
  bool ok;

  pthread_mutex_lock (&left->lock);
  ok = reserve (left, 3);
  if (ok && begin < end)
    {
      /* None of it is on its way: who wrote it has waited for that. */
      clear (left, begin, end, PTO_LEFT_NOBODY);
      at = find (left, begin);
      insert (left, at,
              (struct pto_left_span){
                  .begin = begin, .end = end, .child = child, .state = PTO_LEFT_LEFT });
      join (left, at);
      if (at > 0)
        join (left, at - 1);
    }
  pthread_mutex_unlock (&left->lock);
  return ok;
}

bool
pto_left_remove (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t but)
{
  bool comes;

  if (begin >= end || pto_left_is_empty (left))
    return false;
  pthread_mutex_lock (&left->lock);
  comes = clear (left, begin, end, but);
  pthread_mutex_unlock (&left->lock);
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
  for (uint32_t at = find (left, begin); at < count (left) && left->spans[at].begin < end; at++)
    {
      const struct pto_left_span *span = &left->spans[at];
      uint64_t from = span->begin > begin ? span->begin : begin;
      uint64_t to = span->end < end ? span->end : end;

      if (span->state == PTO_LEFT_LOST)
        {
          where = PTO_LEFT_GONE;
          *who = span->child;
          break;
        }
      where = PTO_LEFT_SOMEWHERE;
      if (span->child == child)
        there += to - from;
    }
  pthread_mutex_unlock (&left->lock);
  return where == PTO_LEFT_SOMEWHERE && there == end - begin ? PTO_LEFT_THERE : where;
}

bool
pto_left_is_asked (struct pto_left *left, uint64_t begin, uint64_t end)
{
  bool asked = false;

  if (begin >= end || pto_left_is_empty (left))
    return false;
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = find (left, begin); !asked && at < count (left) && left->spans[at].begin < end;
       at++)
    asked = left->spans[at].state == PTO_LEFT_ASKED;
  pthread_mutex_unlock (&left->lock);
  return asked;
}

bool
pto_left_is_awaited (struct pto_left *left)
{
  bool awaited = false;

  if (pto_left_is_empty (left))
    return false;
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = 0; !awaited && at < count (left); at++)
    awaited = left->spans[at].state == PTO_LEFT_WANTED || left->spans[at].state == PTO_LEFT_ASKED;
  pthread_mutex_unlock (&left->lock);
  return awaited;
}

void
pto_left_want (struct pto_left *left, uint64_t begin, uint64_t end, uint64_t *who)
{
  if (begin >= end || pto_left_is_empty (left))
    return;
  pthread_mutex_lock (&left->lock);
  if (reserve (left, 2))
    {
      cut (left, begin);
      cut (left, end);
    }
  for (uint32_t at = find (left, begin); at < count (left) && left->spans[at].begin < end; at++)
    {
      struct pto_left_span *span = &left->spans[at];

      if (span->state == PTO_LEFT_LOST)
        continue;
      if (span->state == PTO_LEFT_LEFT)
        span->state = PTO_LEFT_WANTED;
      who[span->child / 64] |= UINT64_C (1) << (span->child % 64);
    }
  pthread_mutex_unlock (&left->lock);
}

void
pto_left_want_all (struct pto_left *left, uint32_t child)
{
  if (pto_left_is_empty (left))
    return;
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = 0; at < count (left); at++)
    if (left->spans[at].child == child && left->spans[at].state == PTO_LEFT_LEFT)
      left->spans[at].state = PTO_LEFT_WANTED;
  pthread_mutex_unlock (&left->lock);
}

uint32_t
pto_left_ask (struct pto_left *left, uint32_t child, struct pto_left_range *ranges, uint32_t max)
{
  uint32_t n = 0;

  if (pto_left_is_empty (left))
    return 0;
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = 0; at < count (left) && n < max; at++)
    {
      struct pto_left_span *span = &left->spans[at];

      if (span->child != child || span->state != PTO_LEFT_WANTED)
        continue;
      span->state = PTO_LEFT_ASKED;
      ranges[n++] = (struct pto_left_range){ span->begin, span->end };
    }
  pthread_mutex_unlock (&left->lock);
  return n;
}

void
pto_left_come (struct pto_left *left, uint32_t child)
{
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = 0; at < count (left);)
    if (left->spans[at].child == child && left->spans[at].state == PTO_LEFT_ASKED)
      drop (left, at);
    else
      at++;
  pthread_mutex_unlock (&left->lock);
}

void
pto_left_lose (struct pto_left *left, uint32_t child)
{
  if (pto_left_is_empty (left))
    return;
  pthread_mutex_lock (&left->lock);
  for (uint32_t at = 0; at < count (left); at++)
    if (left->spans[at].child == child)
      left->spans[at].state = PTO_LEFT_LOST;
  pthread_mutex_unlock (&left->lock);
}
