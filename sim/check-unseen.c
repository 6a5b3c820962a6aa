/* check-unseen.c: what did a task write, though no kernel has told of it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A kernel does not tell of streaming stores, of what the C library writes for it, and of what its
 * threads write. Memory of the rings is filled before its task runs (core/unwritten-memory.h).
 * Bytes that held the fill when a task began, and hold something else when it has ended, have been
 * written. They count as written where the question is whether a byte was written at all. They are
 * no accesses, since another task may have written them at the same time.
 *
 * A value may contain a byte like the fill. So a piece of memory is written if one of its bytes
 * has changed. Bytes that a kernel has told of do not count.
 */
#include "pto/core/unwritten-memory.h"
#include "check-context.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a piece; elements that are larger are one. */
#define PIECE_BYTES 4u
#define WORD_BYTES UINT64_C (64)

/* A kernel may write there, and it may be filled. */
static bool
is_looked_at (const struct pto_check *check, const struct pto_check_arg *arg)
{
  return arg->type != PTO_PARAM_INPUT && arg->region.lo < arg->region.hi
         && pto_check_is_in_rings (check, arg);
}

/* Words of 64 bytes, with a bit a byte, from the one on in which the region begins. */
static uint64_t
count_words (const struct pto_check_arg *arg)
{
  return (arg->region.hi - 1) / WORD_BYTES - arg->region.lo / WORD_BYTES + 1;
}

/* Bits of the bytes at a word that are from lo to hi. */
static uint64_t
clip (uint64_t at, uint64_t lo, uint64_t hi)
{
  uint64_t bits = UINT64_MAX;

  if (lo >= at + WORD_BYTES || hi <= at)
    return 0;
  if (lo > at)
    bits &= UINT64_MAX << (lo - at);
  if (hi < at + WORD_BYTES)
    bits &= UINT64_MAX >> (at + WORD_BYTES - hi);
  return bits;
}

/* Bits of the bytes of the argument at a word that hold what it was filled with. */
static uint64_t
find_filled (const struct pto_check_arg *arg, uint64_t at)
{
  const uint8_t *bytes = (const uint8_t *) (uintptr_t) at;
  uint8_t fill = pto_unwritten_byte ((DataType) arg->dtype);
  uint64_t filled = 0;

  for (uint32_t i = 0; i < WORD_BYTES; i += 8)
    {
      const uint64_t ones = UINT64_C (0x0101010101010101);
      uint64_t differ;

      memcpy (&differ, bytes + i, sizeof differ);
      differ ^= ones * fill;
      /* Mostly no byte is 0. */
      if (((differ - ones) & ~differ & ones << 7) == 0)
        continue;
      for (uint32_t j = i; j < i + 8; j++)
        filled |= (uint64_t) (bytes[j] == fill) << j;
    }
  return filled & clip (at, arg->region.lo, arg->region.hi);
}

uint64_t
pto_check_spread (uint64_t bits, uint8_t dtype)
{
  uint32_t size = pto_dtype_size (dtype);
  uint32_t n = size > PIECE_BYTES ? size : PIECE_BYTES;
  uint64_t piece = (UINT64_C (1) << n) - 1;
  uint64_t whole = 0;

  for (uint32_t i = 0; bits != 0 && i < WORD_BYTES; i += n, piece <<= n)
    whole |= (bits & piece) != 0 ? piece : 0;
  return whole;
}

void
pto_check_begin_unseen (struct pto_check *check, struct pto_check_task *task)
{
  uint64_t n = 0;
  uint64_t any = 0;
  uint64_t *word;

  for (uint32_t a = 0; a < task->n_args; a++)
    if (is_looked_at (check, &task->args[a]) && !pto_check_is_new (task, &task->args[a]))
      n += count_words (&task->args[a]);
  if (n == 0)
    return;
  word = task->filled = malloc (n * sizeof *task->filled);
  if (task->filled == NULL)
    {
      check->lost = true;
      return;
    }
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      const struct pto_check_arg *arg = &task->args[a];
      uint64_t at = arg->region.lo & ~(WORD_BYTES - 1);

      for (; is_looked_at (check, arg) && !pto_check_is_new (task, arg) && at < arg->region.hi;
           at += WORD_BYTES)
        any |= *word++ = find_filled (arg, at);
    }
  if (any != 0)
    return;
  free (task->filled);
  task->filled = NULL;
}

/* Returns bits of the bytes of an argument at a word that the task has written without telling.
 * filled: the words of the argument, of when the task began; NULL: it is new. told: bytes that a
 * kernel has told of writing. Adds to *changed those that have changed themselves. */
static uint64_t
find_changed (const struct pto_check_arg *arg, uint64_t at, const uint64_t *filled, uint64_t told,
              uint64_t *changed)
{
  uint64_t bits = clip (at, arg->region.lo, arg->region.hi) & ~told;
  uint64_t own;

  if (filled != NULL)
    bits &= filled[at / WORD_BYTES - arg->region.lo / WORD_BYTES];
  if (bits == 0)
    return 0;
  own = bits & ~find_filled (arg, at);
  *changed |= own;
  return bits & pto_check_spread (own, arg->dtype);
}

/* Finds the argument's words. Returns false if nothing of it can be found. */
static bool
find_words (const struct pto_check *check, const struct pto_check_task *task,
            const struct pto_check_arg *arg, const uint64_t **next, const uint64_t **words)
{
  *words = NULL;
  if (!is_looked_at (check, arg))
    return false;
  if (pto_check_is_new (task, arg))
    return true;
  *words = *next;
  *next += *next != NULL ? count_words (arg) : 0;
  return *words != NULL;
}

uint64_t
pto_check_find_unseen (const struct pto_check *check, const struct pto_check_task *task,
                       uint64_t at, uint64_t told, uint64_t *changed)
{
  const uint64_t *next = task->filled;
  const uint64_t *words;
  uint64_t found = 0;

  *changed = 0;

  for (uint32_t a = 0; a < task->n_args; a++)
    if (find_words (check, task, &task->args[a], &next, &words)
        && clip (at, task->args[a].region.lo, task->args[a].region.hi) != 0)
      found |= find_changed (&task->args[a], at, words, told, changed);
  return found;
}

/* Marks what the kernels of the task have told of writing in the argument. Returns false if that is
 * all of it. */
static bool
mark_told (const struct pto_check_task *task, const struct pto_check_arg *arg, uint64_t *told)
{
  uint64_t first = arg->region.lo / WORD_BYTES;

  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    for (uint32_t r = 0; r < part->n; r++)
      {
        const struct pto_check_range *range = &part->ranges[r];
        uint64_t lo = range->lo > arg->region.lo ? range->lo : arg->region.lo;
        uint64_t hi = range->lo + range->n;

        hi = hi < arg->region.hi ? hi : arg->region.hi;
        if ((range->what & PTO_CHECK_WRITTEN) == 0 || lo >= hi)
          continue;
        if (hi - lo == arg->region.hi - arg->region.lo)
          return false;
        for (uint64_t w = lo / WORD_BYTES; w <= (hi - 1) / WORD_BYTES; w++)
          told[w - first] |= clip (w * WORD_BYTES, lo, hi);
      }
  return true;
}

static void
add_found (struct pto_check *check, struct pto_check_task *task, uint64_t lo, uint64_t hi)
{
  struct pto_check_piece *last = task->n_found > 0 ? &task->found[task->n_found - 1] : NULL;

  if (last != NULL && last->hi == lo)
    {
      last->hi = hi;
      return;
    }
  /* A power of two is full. */
  if ((task->n_found & (task->n_found - 1)) == 0)
    {
      struct pto_check_piece *found
          = realloc (task->found, (task->n_found > 0 ? task->n_found * 2 : 1) * sizeof *found);

      if (found == NULL)
        {
          check->lost = true;
          return;
        }
      task->found = found;
    }
  task->found[task->n_found++] = (struct pto_check_piece){ lo, hi };
}

static void
find_in (struct pto_check *check, struct pto_check_task *task, const struct pto_check_arg *arg,
         const uint64_t *words)
{
  uint64_t first = arg->region.lo & ~(WORD_BYTES - 1);
  uint64_t n = count_words (arg);
  uint64_t *told = calloc (n, sizeof *told);

  check->lost = check->lost || told == NULL;
  if (told != NULL && mark_told (task, arg, told))
    for (uint64_t w = 0; w < n; w++)
      {
        uint64_t at = first + w * WORD_BYTES;
        uint64_t changed = 0;
        uint64_t bits = find_changed (arg, at, words, told[w], &changed);

        while (bits != 0)
          {
            uint32_t from = (uint32_t) __builtin_ctzll (bits);
            uint64_t rest = ~(bits >> from);
            uint32_t to = from + (rest != 0 ? (uint32_t) __builtin_ctzll (rest) : 64);

            to = to < 64 ? to : 64;
            add_found (check, task, at + from, at + to);
            bits = to < 64 ? bits & (UINT64_MAX << to) : 0;
          }
      }
  free (told);
}

void
pto_check_end_unseen (struct pto_check *check, struct pto_check_task *task)
{
  const uint64_t *next = task->filled;
  const uint64_t *words;

  for (uint32_t a = 0; a < task->n_args; a++)
    if (find_words (check, task, &task->args[a], &next, &words))
      find_in (check, task, &task->args[a], words);
  check->n_ranges += task->n_found;
  free (task->filled);
  task->filled = NULL;
}
