/* check-apart.c: which views of a task lie so close together that one cannot be told from the next?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A kernel that goes past a view comes to the next one, if that lies there. It may touch that one,
 * so nothing shows that it meant the first. So such views are kept apart while the task runs: each
 * is a copy with unknown memory around it. What has changed in the copy when the last kernel has
 * returned goes where it belongs. What kernels touched is kept with the addresses of the program.
 *
 * A view stays where it is if another argument has some of its bytes, if several tasks share its
 * description, if others may use it meanwhile (NO_DEP, COMMUTATIVE), if a number that the task gets
 * may be its address, and in memory of the rings.
 *
 * No run waits for ever because of a copy. A task that no edge orders with this one may have the
 * same bytes (NO_DEP, hazards that are off), and also one that is submitted later.
 * - This task does not wait for such a task: a kernel that could see what others write while it
 * runs (atomics, volatile, pto_relax(), calls of unknown functions) talks, and so does a task in a
 *   cluster of the program, whose pipes lead to other tasks. In a task that talks all views stay.
 *   Otherwise kernels wait only for kernels of their own task, which have the same copies.
 * - So each of its kernels returns, if it has a core. The other task may hold that core until it
 *   sees what a kernel of this one wrote. Hence each kernel that returns brings changes back.
 * Nothing is told between the two but at the end of a kernel, so no bytes need an order before
 * that.
 */
#include "check-context.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES UINT64_C (4096)
/* Between views of two buffers that lie next to each other. */
#define CLOSE_BYTES 64u
/* Larger views stay where they are; and so do those of which all kernels together look at more. */
#define APART_BYTES_MAX (UINT64_C (64) << 20)
#define LOOKED_AT_BYTES_MAX (UINT64_C (256) << 20)
/* At once. */
#define COMPARED_BYTES 256u

/* Types of arguments that no other task may write to meanwhile. */
#define APART_TYPES \
  (1u << PTO_PARAM_INPUT | 1u << PTO_PARAM_OUTPUT_EXISTING | 1u << PTO_PARAM_INOUT)

static bool
may_move (const struct pto_check *check, const struct pto_check_arg *arg, uint32_t n_kernels)
{
  const struct pto_engine *engine = check->engine;
  uint64_t shared = (uint64_t) (uintptr_t) engine->shared.items;

  return (APART_TYPES >> arg->type & 1) != 0 && arg->region.lo < arg->region.hi
         && arg->region.hi - arg->region.lo <= APART_BYTES_MAX
         && arg->region.hi - arg->region.lo <= LOOKED_AT_BYTES_MAX / n_kernels
         && arg->data - shared >= engine->shared.n * sizeof (TensorData)
         && !pto_check_is_in_rings (check, arg);
}

static bool
is_within (const struct pto_region *a, const struct pto_region *b, uint64_t bytes)
{
  return a->lo < b->hi + bytes && b->lo < a->hi + bytes;
}

/* Do the two share bytes? */
static bool
overlaps (const struct pto_region *a, const struct pto_region *b)
{
  bool unsure;

  return is_within (a, b, 0) && pto_region_overlaps (a, b, &unsure);
}

/* Does another view of the task lie next to it, or between its pieces, and share none of its bytes?
 */
static bool
has_neighbour (const struct pto_check_task *task, const struct pto_check_arg *arg)
{
  bool has = false;

  for (uint32_t a = 0; a < task->n_args; a++)
    {
      const struct pto_region *other = &task->args[a].region;

      if (&task->args[a] == arg || other->lo == other->hi
          || pto_check_is_condition (task, &task->args[a]))
        continue;
      if (overlaps (other, &arg->region))
        return false;
      has = has
            || (task->args[a].buffer == arg->buffer
                && is_within (other, &arg->region, PTO_CHECK_NEAR_BYTES))
            || is_within (other, &arg->region, CLOSE_BYTES);
    }
  return has;
}

/* Is a number among the task's arguments an address in the memory of one? */
static bool
has_address (const struct pto_check_task *task)
{
  const int64_t *words = (const int64_t *) (uintptr_t) task->words;

  for (uint32_t w = 0; w < task->n_words; w++)
    for (uint32_t a = 0; a < task->n_args; a++)
      if ((uint64_t) words[w] - task->args[a].buffer < task->args[a].bytes)
        return true;
  return false;
}

/* The copy and what is around it hold what the views of the task hold there: a kernel that goes
 * beyond its view reads what it would have read. */
static void
fill (const struct pto_check_task *task, const struct pto_check_arg *arg)
{
  uint64_t from = arg->region.lo - PTO_CHECK_NEAR_BYTES;
  uint64_t to = arg->region.hi + PTO_CHECK_NEAR_BYTES;
  struct pto_check_pieces pieces;
  uint64_t lo;
  uint64_t hi;

  for (uint32_t a = 0; a < task->n_args; a++)
    {
      if (!is_within (&task->args[a].region, &arg->region, PTO_CHECK_NEAR_BYTES))
        continue;
      pto_check_pieces_begin (&pieces, &task->args[a].region);
      while (pto_check_pieces_next (&pieces, &lo, &hi))
        {
          lo = lo > from ? lo : from;
          hi = hi < to ? hi : to;
          if (lo < hi)
            memcpy ((void *) (uintptr_t) (lo + arg->moved), (const void *) (uintptr_t) lo, hi - lo);
        }
    }
}

static void
move (struct pto_check *check, struct pto_check_task *task, struct pto_check_arg *arg)
{
  uint64_t bytes = arg->region.hi - arg->region.lo;
  struct pto_check_apart *apart
      = calloc (1, sizeof *apart + 2 * bytes + 2 * (PTO_CHECK_NEAR_BYTES + PAGE_BYTES));
  uint64_t room;

  if (apart == NULL)
    {
      check->lost = true;
      return;
    }
  /* The copy lies in its page as the view does in that of the program. */
  apart->before = (uint8_t *) (apart + 1);
  room = (uint64_t) (uintptr_t) apart->before + bytes + PTO_CHECK_NEAR_BYTES;
  room = (room + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + arg->region.lo % PAGE_BYTES;
  apart->arg = arg;
  apart->next = task->apart;
  arg->moved = room - arg->region.lo;
  fill (task, arg);
  memcpy (apart->before, (const void *) (uintptr_t) room, bytes);
  ((TensorData *) (uintptr_t) arg->data)->buffer.addr += arg->moved;
  task->apart = apart;
}

void
pto_check_begin_apart (struct pto_check *check, struct pto_check_task *task, uint32_t n_kernels)
{
  if (task->n_args < 2 || has_address (task))
    return;
  for (uint32_t a = 0; a < task->n_args; a++)
    if (may_move (check, &task->args[a], n_kernels)
        && !pto_check_is_condition (task, &task->args[a]) && has_neighbour (task, &task->args[a]))
      move (check, task, &task->args[a]);
}

/* Bytes of one piece of the view. Other kernels of the task may write to the copy meanwhile: what
 * of that is not taken now has changed when they return. */
static void
bring_piece_back (const struct pto_check_apart *apart, uint64_t lo, uint64_t hi)
{
  const uint8_t *copy = (const uint8_t *) (uintptr_t) (lo + apart->arg->moved);
  uint8_t *before = apart->before + (lo - apart->arg->region.lo);
  uint8_t *at = (uint8_t *) (uintptr_t) lo;

  for (uint64_t from = 0; from < hi - lo; from += COMPARED_BYTES)
    {
      uint64_t n = hi - lo - from < COMPARED_BYTES ? hi - lo - from : COMPARED_BYTES;

      if (memcmp (copy + from, before + from, n) == 0)
        continue;
      for (uint64_t i = from; i < from + n; i++)
        {
          uint8_t byte = __atomic_load_n (&copy[i], __ATOMIC_RELAXED);

          if (byte != before[i])
            at[i] = before[i] = byte;
        }
    }
}

static void
bring_back (const struct pto_check_apart *apart)
{
  struct pto_check_pieces pieces;
  uint64_t lo;
  uint64_t hi;

  pto_check_pieces_begin (&pieces, &apart->arg->region);
  while (pto_check_pieces_next (&pieces, &lo, &hi))
    bring_piece_back (apart, lo, hi);
}

void
pto_check_bring_back (const struct pto_check_task *task)
{
  for (const struct pto_check_apart *apart = task->apart; apart != NULL; apart = apart->next)
    bring_back (apart);
}

void
pto_check_end_apart (struct pto_check_task *task)
{
  for (const struct pto_check_apart *apart = task->apart; apart != NULL; apart = apart->next)
    ((TensorData *) (uintptr_t) apart->arg->data)->buffer.addr -= apart->arg->moved;
  pto_check_free_apart (task);
}

void
pto_check_free_apart (struct pto_check_task *task)
{
  while (task->apart != NULL)
    {
      struct pto_check_apart *apart = task->apart;

      task->apart = apart->next;
      apart->arg->moved = 0;
      free (apart);
    }
}

uint64_t
pto_check_find_place (const struct pto_check_task *task, uint64_t address)
{
  for (const struct pto_check_apart *apart = task->apart; apart != NULL; apart = apart->next)
    {
      const struct pto_region *region = &apart->arg->region;
      uint64_t place = address - apart->arg->moved;

      if (place + PTO_CHECK_NEAR_BYTES - region->lo
          < region->hi - region->lo + 2 * (uint64_t) PTO_CHECK_NEAR_BYTES)
        return place;
    }
  return address;
}
