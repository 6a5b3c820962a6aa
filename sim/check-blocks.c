/* check-blocks.c: which kernels of one task touch the same bytes, with no meeting between?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Blocks and members of a task run in any order, or at the same time. Memory is cut into cells, as
 * in check-order.c, but only what at least one of the kernels writes. The parts of the task are
 * gone through in an order that respects meetings. Each cell knows its last writer and the readers
 * since. Each part is compared with these.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A range of a part. */
struct access
{
  uint64_t lo;
  uint64_t hi;
  uint32_t part;
  uint32_t what;
};

struct link
{
  uint32_t access;
  uint32_t next; /* NONE: the last */
};

struct cell
{
  uint32_t writers; /* links */
  uint32_t readers; /* links; since the last write */
  bool is_written;
};

/* A task that is looked at. The arrays stay from task to task. */
struct crowd
{
  struct pto_check *check;
  uint32_t task;
  struct pto_check_part **parts;
  uint32_t n_parts;
  uint32_t parts_capacity;
  struct access *accesses;
  uint32_t n_accesses;
  uint32_t accesses_capacity;
  uint64_t *bounds; /* ascending */
  uint32_t n_bounds;
  uint32_t bounds_capacity;
  struct cell *cells;
  uint32_t cells_capacity;
  struct link *links;
  uint32_t n_links;
  uint32_t links_capacity;
  bool lost;

  struct pto_check_clash *clashes;
  uint32_t max;
  uint64_t n;
  uint64_t first; /* n before this task */
};

/* Makes room for one more. */
static bool
grow (struct crowd *crowd, void *items, uint32_t n, uint32_t *capacity, size_t size)
{
  void **at = items;
  uint32_t more = *capacity > 0 ? *capacity * 2 : 256;
  void *grown;

  if (n < *capacity)
    return true;
  grown = realloc (*at, more * size);
  if (grown == NULL)
    {
      crowd->lost = true;
      return false;
    }
  *at = grown;
  *capacity = more;
  return true;
}

static bool
is_same_kernel (const struct pto_check_part *a, const struct pto_check_part *b)
{
  return a->block == b->block && a->member == b->member;
}

/* Does the first, which was gone through before, come before the second? */
static bool
comes_before (struct crowd *crowd, const struct pto_check_part *first,
              struct pto_check_part *second)
{
  return is_same_kernel (first, second) || first->round < second->round
         || pto_check_is_after (crowd->check, second, first, NULL, NULL);
}

/* A read that only waits for the write. */
static bool
is_look (const struct crowd *crowd, const struct access *access, uint64_t lo, uint64_t hi)
{
  return (access->what & PTO_CHECK_WRITTEN) == 0
         && pto_check_only_looks (crowd->check, crowd->parts[access->part], lo, hi);
}

static int
compare_parts (const void *a, const void *b)
{
  const struct pto_check_part *x = *(const struct pto_check_part *const *) a;
  const struct pto_check_part *y = *(const struct pto_check_part *const *) b;

  if (x->round != y->round)
    return x->round < y->round ? -1 : 1;
  /* Where kernels wait for each other otherwise, what one of them comes after goes first. */
  if (x->is_linked || y->is_linked)
    return x->begin < y->begin ? -1 : x->begin > y->begin;
  if (x->block != y->block)
    return x->block < y->block ? -1 : 1;
  if (x->member != y->member)
    return x->member < y->member ? -1 : 1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* --- which bytes matter --- */

static void
add_access (struct crowd *crowd, uint32_t part, const struct pto_check_range *range)
{
  if (grow (crowd, &crowd->accesses, crowd->n_accesses, &crowd->accesses_capacity,
            sizeof *crowd->accesses))
    crowd->accesses[crowd->n_accesses++]
        = (struct access){ range->lo, range->lo + range->n, part, range->what };
}

static void
add_bound (struct crowd *crowd, uint64_t address)
{
  if (grow (crowd, &crowd->bounds, crowd->n_bounds, &crowd->bounds_capacity, sizeof *crowd->bounds))
    crowd->bounds[crowd->n_bounds++] = address;
}

/* Only bounds of writes are made, so that what all kernels read costs one look. */
static void
collect (struct crowd *crowd, const struct pto_check_task *task)
{
  crowd->n_parts = crowd->n_accesses = crowd->n_bounds = crowd->n_links = 0;
  for (struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    if (!part->declared && !part->by_runtime && part->n > 0
        && grow (crowd, &crowd->parts, crowd->n_parts, &crowd->parts_capacity,
                 sizeof (struct pto_check_part *)))
      crowd->parts[crowd->n_parts++] = part;
  if (crowd->n_parts > 1)
    qsort (crowd->parts, crowd->n_parts, sizeof (struct pto_check_part *), compare_parts);
  for (uint32_t p = 0; p < crowd->n_parts; p++)
    for (uint32_t r = 0; r < crowd->parts[p]->n; r++)
      {
        const struct pto_check_range *range = &crowd->parts[p]->ranges[r];

        if (range->n == 0)
          continue;
        add_access (crowd, p, range);
        if ((range->what & PTO_CHECK_WRITTEN) == 0)
          continue;
        add_bound (crowd, range->lo);
        add_bound (crowd, range->lo + range->n);
      }
  crowd->n_bounds = (uint32_t) pto_check_sort_bounds (crowd->bounds, crowd->n_bounds);
}

/* --- cells --- */

static void
push (struct crowd *crowd, uint32_t *list, uint32_t access)
{
  if (!grow (crowd, &crowd->links, crowd->n_links, &crowd->links_capacity, sizeof *crowd->links))
    return;
  crowd->links[crowd->n_links] = (struct link){ access, *list };
  *list = crowd->n_links++;
}

static void
tell_in_order (struct crowd *crowd, const struct access *first, const struct access *second,
               uint64_t lo, uint64_t hi)
{
  const struct pto_check_task *task = &crowd->check->tasks[crowd->task];
  bool first_writes = (first->what & PTO_CHECK_WRITTEN) != 0;
  bool second_writes = (second->what & PTO_CHECK_WRITTEN) != 0;
  const struct pto_check_arg *arg = pto_check_find_arg (task, lo, UINT32_MAX);

  lo = first->lo > lo ? first->lo : lo;
  lo = second->lo > lo ? second->lo : lo;
  hi = first->hi < hi ? first->hi : hi;
  hi = second->hi < hi ? second->hi : hi;
  for (uint64_t c = crowd->first; c < crowd->n && c < crowd->max; c++)
    {
      struct pto_check_clash *clash = &crowd->clashes[c];

      if (clash->first_writes != first_writes || clash->second_writes != second_writes
          || pto_check_find_arg (task, clash->lo, UINT32_MAX) != arg)
        continue;
      if (!is_same_kernel (clash->first, crowd->parts[first->part])
          || !is_same_kernel (clash->second, crowd->parts[second->part]))
        clash->more++;
      else if (clash->hi == lo)
        clash->hi = hi;
      return;
    }
  if (crowd->n++ < crowd->max)
    crowd->clashes[crowd->n - 1] = (struct pto_check_clash){ .task = crowd->task,
                                                             .first = crowd->parts[first->part],
                                                             .second = crowd->parts[second->part],
                                                             .first_writes = first_writes,
                                                             .second_writes = second_writes,
                                                             .lo = lo,
                                                             .hi = hi };
}

static bool
is_earlier_kernel (const struct pto_check_part *a, const struct pto_check_part *b)
{
  return a->block < b->block || (a->block == b->block && a->member < b->member);
}

static void
tell (struct crowd *crowd, const struct access *first, const struct access *second, uint64_t lo,
      uint64_t hi)
{
  /* Told in an order that says nothing of time. */
  if (is_earlier_kernel (crowd->parts[second->part], crowd->parts[first->part]))
    tell_in_order (crowd, second, first, lo, hi);
  else
    tell_in_order (crowd, first, second, lo, hi);
}

/* Compares an access with earlier ones. Returns those that it does not make superfluous. */
static uint32_t
compare (struct crowd *crowd, uint32_t list, uint32_t number, uint64_t lo, uint64_t hi)
{
  const struct access *access = &crowd->accesses[number];
  bool writes = (access->what & PTO_CHECK_WRITTEN) != 0;
  bool is_atomic = (access->what & PTO_CHECK_ATOMIC) != 0;
  uint32_t kept = NONE;

  while (list != NONE)
    {
      const struct access *other = &crowd->accesses[crowd->links[list].access];
      uint32_t next = crowd->links[list].next;
      bool overlaps = other->lo < access->hi && access->lo < other->hi;

      if (overlaps && !(is_atomic && (other->what & PTO_CHECK_ATOMIC) != 0)
          && !comes_before (crowd, crowd->parts[other->part], crowd->parts[access->part])
          && !is_look (crowd, other, lo > other->lo ? lo : other->lo,
                       hi < other->hi ? hi : other->hi)
          && !is_look (crowd, access, lo > access->lo ? lo : access->lo,
                       hi < access->hi ? hi : access->hi))
        tell (crowd, other, access, lo, hi);
      if (!writes || is_atomic)
        {
          crowd->links[list].next = kept;
          kept = list;
        }
      list = next;
    }
  return kept;
}

static void
touch_cell (struct crowd *crowd, uint32_t c, uint32_t number)
{
  struct cell *cell = &crowd->cells[c];
  const struct access *access = &crowd->accesses[number];
  bool writes = (access->what & PTO_CHECK_WRITTEN) != 0;
  uint64_t lo = crowd->bounds[c];
  uint64_t hi = crowd->bounds[c + 1];

  cell->writers = compare (crowd, cell->writers, number, lo, hi);
  if (writes)
    cell->readers = compare (crowd, cell->readers, number, lo, hi);
  push (crowd, writes ? &cell->writers : &cell->readers, number);
}

/* Touches the cells of an access. Writes fill each of theirs. */
static void
touch_cells (struct crowd *crowd, uint32_t number, bool marks)
{
  const struct access *access = &crowd->accesses[number];

  for (uint32_t c = pto_check_find_bound (crowd->bounds, crowd->n_bounds, access->lo);
       c + 1 < crowd->n_bounds && crowd->bounds[c] < access->hi; c++)
    if (marks)
      crowd->cells[c].is_written = true;
    else if (crowd->cells[c].is_written && crowd->bounds[c + 1] > access->lo)
      touch_cell (crowd, c, number);
}

static bool
has_several_kernels (const struct pto_check_task *task)
{
  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    if (!is_same_kernel (part, task->parts))
      return true;
  return false;
}

static void
look_at_task (struct crowd *crowd, uint32_t number)
{
  const struct pto_check_task *task = &crowd->check->tasks[number];

  if (!has_several_kernels (task))
    return;
  crowd->task = number;
  crowd->first = crowd->n;
  collect (crowd, task);
  while (crowd->cells_capacity < crowd->n_bounds && !crowd->lost)
    grow (crowd, &crowd->cells, crowd->cells_capacity, &crowd->cells_capacity,
          sizeof *crowd->cells);
  if (crowd->lost || crowd->n_bounds < 2)
    return;
  for (uint32_t c = 0; c < crowd->n_bounds; c++)
    crowd->cells[c] = (struct cell){ NONE, NONE, false };
  for (uint32_t a = 0; a < crowd->n_accesses; a++)
    if ((crowd->accesses[a].what & PTO_CHECK_WRITTEN) != 0)
      touch_cells (crowd, a, true);
  for (uint32_t a = 0; a < crowd->n_accesses && !crowd->lost; a++)
    touch_cells (crowd, a, false);
}

bool
pto_check_find_clashes (struct pto_check *check, struct pto_check_clash *clashes, uint32_t max,
                        uint64_t *n)
{
  struct crowd crowd = { .check = check, .clashes = clashes, .max = max };

  for (uint32_t t = 0; t < check->n_tasks && !crowd.lost; t++)
    if (check->tasks[t].n_blocks > 1 || check->tasks[t].has_kernels)
      look_at_task (&crowd, t);
  free (crowd.parts);
  free (crowd.accesses);
  free (crowd.bounds);
  free (crowd.cells);
  free (crowd.links);
  *n = crowd.n;
  return !crowd.lost;
}
