/* check-part.c: how does what a kernel touched become ranges that are kept?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include <stdlib.h>
#include <string.h>

/* Ranges of a run that are kept: 1 GiB. */
#define RANGES_MAX (UINT64_C (1) << 26)

/* Relaxed: it only counts; what orders two kernels orders their counts. */
uint64_t
pto_check_tick (struct pto_check *check)
{
  return atomic_fetch_add_explicit (&check->clock, 1, memory_order_relaxed) + 1;
}

void
pto_check_lose (struct pto_check_context *context)
{
  pthread_mutex_lock (&context->check->lock);
  context->check->lost = true;
  pthread_mutex_unlock (&context->check->lock);
}

static void
add_range (struct pto_check_context *context, uint64_t lo, uint64_t n, uint32_t what)
{
  struct pto_check_range *last
      = context->n_ranges > 0 ? &context->ranges[context->n_ranges - 1] : NULL;

  if (last != NULL && last->what == what && last->lo + last->n == lo && last->n + n < UINT32_MAX)
    {
      last->n += (uint32_t) n;
      return;
    }
  if (context->n_ranges == context->ranges_capacity)
    {
      uint32_t capacity = context->ranges_capacity > 0 ? context->ranges_capacity * 2 : 64;
      struct pto_check_range *ranges = realloc (context->ranges, capacity * sizeof *ranges);

      if (ranges == NULL)
        return;
      context->ranges = ranges;
      context->ranges_capacity = capacity;
    }
  while (n > 0)
    {
      uint32_t piece = n < UINT32_MAX ? (uint32_t) n : UINT32_MAX - 1;

      context->ranges[context->n_ranges++] = (struct pto_check_range){ lo, piece, what };
      lo += piece;
      n -= piece;
      if (n > 0)
        {
          add_range (context, lo, n, what);
          return;
        }
    }
}

/* Runs of bits. */
static void
add_runs (struct pto_check_context *context, uint64_t at, uint64_t bits, uint32_t what)
{
  while (bits != 0)
    {
      uint32_t first = (uint32_t) __builtin_ctzll (bits);
      uint64_t rest = ~(bits >> first);
      uint32_t n = rest != 0 ? (uint32_t) __builtin_ctzll (rest) : 64;

      n = n < 64 - first ? n : 64 - first;
      add_range (context, at + first, n, what);
      bits = first + n < 64 ? bits & ~((UINT64_C (1) << (first + n)) - 1) : 0;
    }
}

/* Byte by byte: runs of what is alike. */
static void
add_word (struct pto_check_context *context, const struct pto_check_block *block, uint32_t word,
          uint64_t at)
{
  uint64_t plain_written = block->public.words[word].written | block->twice_written[word];
  uint64_t plain = plain_written | block->public.words[word].read;
  uint64_t written = plain_written | block->atomic_written[word];
  uint64_t atomic = (block->atomic_written[word] | block->atomic_read[word]) & ~plain;
  uint64_t touched = plain | atomic | written;
  uint64_t outside = ~block->inside[word];
  uint64_t first = written & block->public.words[word].read;
  uint64_t left = touched;

  while (left != 0)
    {
      uint32_t from = (uint32_t) __builtin_ctzll (left);
      uint64_t same = touched;
      uint32_t what = 0;
      uint64_t rest;
      uint32_t n;

#define SORT(bits, flag)                                 \
  (same &= ((bits) >> from & 1) != 0 ? (bits) : ~(bits), \
   what |= ((bits) >> from & 1) != 0 ? (flag) : 0u)
      SORT (written, PTO_CHECK_WRITTEN);
      SORT (outside, PTO_CHECK_OUTSIDE);
      SORT (block->wrong[word], PTO_CHECK_WRONG);
      SORT (block->early[word], PTO_CHECK_EARLY);
      SORT (atomic, PTO_CHECK_ATOMIC);
      SORT (block->stale[word], PTO_CHECK_STALE);
      SORT (first, PTO_CHECK_FIRST);
#undef SORT
      rest = ~(same >> from);
      n = rest != 0 ? (uint32_t) __builtin_ctzll (rest) : 64;
      n = n < 64 - from ? n : 64 - from;
      add_range (context, at + from, n, what);
      left = from + n < 64 ? left & ~((UINT64_C (1) << (from + n)) - 1) : 0;
    }
}

static int
compare_blocks (const void *a, const void *b)
{
  const struct pto_check_block *const *x = a;
  const struct pto_check_block *const *y = b;

  return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

static void
collect_blocks (struct pto_check_context *context)
{
  if (context->n_listed > 1)
    qsort (context->listed, context->n_listed, sizeof (struct pto_check_block *), compare_blocks);
  for (uint32_t i = 0; i < context->n_listed; i++)
    {
      const struct pto_check_block *block = context->listed[i];
      uint64_t at = (uint64_t) block->number << PTO2_ACCESS_SHIFT;

      for (uint32_t w = 0; w < PTO_CHECK_WORDS; w++, at += 64)
        {
          uint64_t written = block->public.words[w].written;
          uint64_t read = block->public.words[w].read;

          if (block->unusual || (written != 0 && read != 0))
            add_word (context, block, w, at);
          else
            add_runs (context, at, written | read, written != 0 ? PTO_CHECK_WRITTEN : 0);
        }
    }
}

/* A kernel that says nothing has done what its arguments say. */
static void
collect_declared (struct pto_check_context *context)
{
  for (uint32_t a = 0; a < context->task->n_args; a++)
    {
      const struct pto_check_arg *arg = &context->task->args[a];
      struct pto_check_pieces pieces;
      uint64_t lo;
      uint64_t hi;

      if (arg->type == PTO_PARAM_NO_DEP || arg->type == PTO_PARAM_SCRATCH
          || !pto_check_has_arg (&context->call, arg))
        continue;
      pto_check_pieces_begin (&pieces, &arg->region);
      while (pto_check_pieces_next (&pieces, &lo, &hi))
        add_range (context, lo, hi - lo, arg->type == PTO_PARAM_INPUT ? 0 : PTO_CHECK_WRITTEN);
    }
}

/* From the copies of views to the views. */
static void
find_places (struct pto_check_context *context)
{
  if (context->task->apart == NULL)
    return;
  for (uint32_t r = 0; r < context->n_ranges && context->call.instrumented; r++)
    context->ranges[r].lo = pto_check_find_place (context->task, context->ranges[r].lo);
  for (uint32_t l = 0; l < context->n_looks; l++)
    context->looks[l].address = pto_check_find_place (context->task, context->looks[l].address);
  context->released = pto_check_find_place (context->task, context->released);
}

static void *
copy (struct pto_check_context *context, const void *items, uint32_t n, size_t size)
{
  void *copied = n > 0 ? malloc (n * size) : NULL;

  if (copied != NULL)
    memcpy (copied, items, n * size);
  else if (n > 0)
    pto_check_lose (context);
  return copied;
}

/* Makes a part of the task of what was touched so far. */
void
pto_check_end_part (struct pto_check_context *context)
{
  struct pto_check *check = context->check;
  struct pto_check_part *part;
  size_t bytes;

  if (context->call.instrumented)
    collect_blocks (context);
  else
    collect_declared (context);
  pto_check_settle_looks (context);
  find_places (context);
  bytes = context->n_ranges * sizeof (struct pto_check_range);
  part = malloc (sizeof *part + bytes);
  if (part != NULL)
    {
      *part = (struct pto_check_part){ .before = context->last,
                                       .begin = context->begin,
                                       .end = pto_check_tick (check),
                                       .released = context->released,
                                       .task = context->number,
                                       .kernel = context->call.kernel,
                                       .block = context->call.block,
                                       .member = context->call.member,
                                       .round = context->round,
                                       .declared = !context->call.instrumented,
                                       .writes_all = context->writes_all,
                                       .n = context->n_ranges };
      if (bytes > 0)
        memcpy (part->ranges, context->ranges, bytes);
      part->after = copy (context, context->after, context->n_after, sizeof *part->after);
      part->n_after = part->after != NULL ? context->n_after : 0;
      part->looks = copy (context, context->looks, context->n_looks, sizeof *part->looks);
      part->n_looks = part->looks != NULL ? context->n_looks : 0;
      part->doubts = copy (context, context->doubts, context->n_doubts, sizeof *part->doubts);
      part->n_doubts = part->doubts != NULL ? context->n_doubts : 0;
    }
  pthread_mutex_lock (&check->lock);
  check->n_ranges += context->n_ranges;
  if (part == NULL || check->n_ranges > RANGES_MAX)
    {
      check->lost = true;
      if (part != NULL)
        {
          pto_check_free_part (part);
        }
    }
  else
    {
      context->last = part;

      struct pto_check_task *task = &check->tasks[context->number];

      part->next = task->parts;
      task->parts = part;
    }
  pthread_mutex_unlock (&check->lock);
  context->n_ranges = context->n_doubts = 0;
}

void
pto_check_free_part (struct pto_check_part *part)
{
  free (part->after);
  free (part->looks);
  free (part->doubts);
  free (part);
}

/* What may be touched stays known; what was touched is forgotten. */
void
pto_check_begin_part (struct pto_check_context *context)
{
  for (uint32_t i = 0; i < context->n_listed; i++)
    {
      struct pto_check_block *block = context->listed[i];

      for (uint32_t w = 0; w < PTO_CHECK_WORDS; w++)
        {
          PTO2AccessWord *word = &block->public.words[w];

          word->may_read |= word->written;
          block->told[w] |= word->written | block->atomic_written[w];
          word->read = word->written = 0;
          block->wrong[w] = block->early[w] = block->stale[w] = 0;
          block->twice_written[w] = 0;
          block->atomic_read[w] = block->atomic_written[w] = 0;
        }
      block->is_listed = false;
    }
  context->n_listed = 0;
  /* The next access of each block lists it again. */
  memset (context->public.entries, 0xff, sizeof context->public.entries);
  context->n_after = context->n_looks = context->n_pending = 0;
  context->released = 0;
  context->has_others = false;
  context->begin = pto_check_tick (context->check);
}
