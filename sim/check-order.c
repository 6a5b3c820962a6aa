/* check-order.c: which tasks touch the same bytes and are in no order? Who has written what last?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory is cut where some task's range begins or ends. Each of these cells knows who of the tasks
 * so far has written it last, and who has read it since; tasks are gone through in the order of
 * their submits, and each is compared with those only, since whoever was there before them comes
 * before them. That a task comes after another one is a matter of edges, and of what the
 * orchestration has waited for, never of time.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define NONE PTO_CHECK_NONE

/* One of several, in a pool. */
struct link
{
  uint32_t task;
  uint32_t next; /* NONE: the last */
};

struct cell
{
  uint32_t writer;  /* NONE: nobody */
  uint32_t writers; /* others, which update it in any order: links */
  uint32_t readers; /* since: links */
};

struct order
{
  struct pto_check *check;
  struct cell *cells;
  uint32_t n_cells;
  struct link *links;
  uint32_t n_links;
  uint32_t links_capacity;
  uint32_t free_links;
  bool lost;

  /* Producers that were named late, by consumer. */
  struct pto_check_edge *late;
  uint32_t n_late;

  /* Who comes before the task that is looked at, as far back as was asked. */
  uint32_t task;
  uint32_t reached; /* those from here on are marked; NONE: none are */
  uint32_t *marks;  /* of each task: the mark of this search, if it comes before */
  uint32_t mark;
  uint32_t *stack;
  uint32_t n_stack;
  uint32_t waits_done; /* so many of the waits have been followed */

  struct pto_check_pair *pairs;
  uint32_t max;
  uint64_t n;
  /* Of the task that is looked at: whom it was found with already, by the same marks. */
  uint32_t *told;
};

/* --- who comes before whom --- */

static void
mark (struct order *order, uint32_t task)
{
  if (task < order->reached || order->marks[task] == order->mark)
    return;
  order->marks[task] = order->mark;
  order->stack[order->n_stack++] = task;
}

/* Where its producers begin among the late ones. */
static uint32_t
find_late (const struct order *order, uint32_t consumer)
{
  uint32_t lo = 0;
  uint32_t hi = order->n_late;

  while (lo < hi)
    {
      uint32_t middle = lo + (hi - lo) / 2;

      if (order->late[middle].consumer < consumer)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo;
}

static void
follow (struct order *order, uint32_t number)
{
  const struct pto_check *check = order->check;
  const struct pto_check_task *task = &check->tasks[number];

  for (uint32_t e = 0; e < task->n_edges; e++)
    mark (order, check->edges.items[task->first_edge + e]);
  for (uint32_t e = find_late (order, number);
       e < order->n_late && order->late[e].consumer == number; e++)
    mark (order, order->late[e].producer);
  for (; order->waits_done < task->n_waits; order->waits_done++)
    {
      uint32_t before = check->waits.items[order->waits_done];

      if (before != NONE)
        mark (order, before);
      else
        for (uint32_t t = order->reached; t < check->wait_tasks.items[order->waits_done]; t++)
          order->marks[t] = order->mark;
    }
}

/* Marks all that come before the task, down to a number. */
static void
search (struct order *order, uint32_t down_to)
{
  order->reached = down_to;
  order->mark++;
  order->waits_done = 0;
  order->n_stack = 0;
  follow (order, order->task);
  while (order->n_stack > 0)
    follow (order, order->stack[--order->n_stack]);
}

static bool
comes_before (struct order *order, uint32_t task)
{
  const struct pto_check *check = order->check;
  const struct pto_check_task *own = &check->tasks[order->task];

  /* Mostly it is one of these. */
  if (order->reached == NONE)
    for (uint32_t e = 0; e < own->n_edges; e++)
      if (check->edges.items[own->first_edge + e] == task)
        return true;
  if (task < order->reached)
    {
      /* Further than was asked, so that not each question is a search. */
      uint32_t span = order->task - task;

      search (order, span < task ? task - span : 0);
    }
  return order->marks[task] == order->mark;
}

/* Both update the byte in any order, one at a time. */
static bool
take_turns (const struct order *order, uint32_t a, uint32_t b, uint64_t address)
{
  const uint32_t types = 1u << PTO_PARAM_COMMUTATIVE;

  return pto_check_find_arg (&order->check->tasks[a], address, types) != NULL
         && pto_check_find_arg (&order->check->tasks[b], address, types) != NULL;
}

/* --- cells --- */

static void
push (struct order *order, uint32_t *list, uint32_t task)
{
  uint32_t number = order->free_links;

  if (number != NONE)
    order->free_links = order->links[number].next;
  else
    {
      if (order->n_links == order->links_capacity)
        {
          uint32_t capacity = order->links_capacity > 0 ? order->links_capacity * 2 : 4096;
          struct link *links = realloc (order->links, capacity * sizeof *links);

          if (links == NULL)
            {
              order->lost = true;
              return;
            }
          order->links = links;
          order->links_capacity = capacity;
        }
      number = order->n_links++;
    }
  order->links[number] = (struct link){ task, *list };
  *list = number;
}

static void
drop (struct order *order, uint32_t *list)
{
  while (*list != NONE)
    {
      uint32_t next = order->links[*list].next;

      order->links[*list].next = order->free_links;
      order->free_links = *list;
      *list = next;
    }
}

static uint32_t
find_cell (const struct pto_check *check, uint64_t address)
{
  uint32_t lo = 0;
  uint32_t hi = check->n_bounds;

  /* The last bound that is not behind it. */
  while (hi - lo > 1)
    {
      uint32_t middle = lo + (hi - lo) / 2;

      if (check->bounds[middle] <= address)
        lo = middle;
      else
        hi = middle;
    }
  return lo;
}

static void
tell (struct order *order, uint32_t first, bool first_writes, bool second_writes, uint64_t lo,
      uint64_t hi)
{
  struct pto_check_pair *last
      = order->n > 0 && order->n <= order->max ? &order->pairs[order->n - 1] : NULL;

  if (order->told[first] == order->task)
    {
      if (last != NULL && last->first == first && last->second == order->task && last->hi == lo)
        last->hi = hi;
      return;
    }
  order->told[first] = order->task;
  if (order->n++ < order->max)
    order->pairs[order->n - 1]
        = (struct pto_check_pair){ first, order->task, first_writes, second_writes, lo, hi };
}

/* The task, which is looked at, touches the cell. Gives whether the other one comes before it, or
 * does as good as that from here on: what was told once is not told again. */
static bool
compare (struct order *order, uint32_t other, bool other_writes, bool writes, uint64_t lo,
         uint64_t hi)
{
  if (other == order->task || comes_before (order, other))
    return true;
  if (other_writes && writes && take_turns (order, other, order->task, lo))
    return false;
  tell (order, other, other_writes, writes, lo, hi);
  return true;
}

static void
touch_cell (struct order *order, uint32_t c, bool writes)
{
  struct cell *cell = &order->cells[c];
  uint64_t lo = order->check->bounds[c];
  uint64_t hi = order->check->bounds[c + 1];
  uint32_t kept = NONE;

  if (!writes)
    {
      if (cell->writer != NONE)
        compare (order, cell->writer, true, false, lo, hi);
      for (uint32_t l = cell->writers; l != NONE; l = order->links[l].next)
        compare (order, order->links[l].task, true, false, lo, hi);
      if (cell->readers == NONE || order->links[cell->readers].task != order->task)
        push (order, &cell->readers, order->task);
      return;
    }
  for (uint32_t l = cell->readers; l != NONE; l = order->links[l].next)
    compare (order, order->links[l].task, false, true, lo, hi);
  if (cell->writer != NONE && !compare (order, cell->writer, true, true, lo, hi))
    push (order, &kept, cell->writer);
  for (uint32_t l = cell->writers; l != NONE; l = order->links[l].next)
    if (!compare (order, order->links[l].task, true, true, lo, hi))
      push (order, &kept, order->links[l].task);
  drop (order, &cell->readers);
  drop (order, &cell->writers);
  cell->writers = kept;
  cell->writer = order->task;
}

static void
touch_range (struct order *order, uint64_t lo, uint64_t hi, bool writes)
{
  const struct pto_check *check = order->check;

  for (uint32_t c = find_cell (check, lo); c + 1 < check->n_bounds && check->bounds[c] < hi; c++)
    touch_cell (order, c, writes);
}

/* Memory that is new: whoever used it before is done. */
static void
renew (struct order *order, uint64_t lo, uint64_t hi)
{
  const struct pto_check *check = order->check;

  if (lo == hi || check->n_bounds < 2)
    return;
  for (uint32_t c = find_cell (check, lo); c + 1 < check->n_bounds && check->bounds[c] < hi; c++)
    if (check->bounds[c] >= lo)
      {
        order->cells[c].writer = NONE;
        drop (order, &order->cells[c].writers);
        drop (order, &order->cells[c].readers);
      }
}

/* --- all tasks --- */

static int
compare_u64 (const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *) a;
  uint64_t y = *(const uint64_t *) b;

  return x < y ? -1 : x > y;
}

static int
compare_edges (const void *a, const void *b)
{
  const struct pto_check_edge *x = a;
  const struct pto_check_edge *y = b;

  return x->consumer < y->consumer ? -1 : x->consumer > y->consumer;
}

static bool
make_bounds (struct pto_check *check)
{
  uint64_t n = 0;
  uint64_t *bounds
      = malloc ((2 * check->n_ranges + 2 * (uint64_t) check->n_tasks + 1) * sizeof *bounds);
  uint32_t kept = 0;

  if (bounds == NULL)
    return false;
  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      const struct pto_check_task *task = &check->tasks[t];

      for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t r = 0; r < part->n; r++)
          if (part->ranges[r].n > 0)
            {
              bounds[n++] = part->ranges[r].lo;
              bounds[n++] = part->ranges[r].lo + part->ranges[r].n;
            }
      if (task->heap_lo < task->heap_hi)
        {
          bounds[n++] = task->heap_lo;
          bounds[n++] = task->heap_hi;
        }
    }
  qsort (bounds, n, sizeof *bounds, compare_u64);
  for (uint64_t i = 0; i < n; i++)
    if (kept == 0 || bounds[kept - 1] != bounds[i])
      {
        if (kept == UINT32_MAX)
          {
            free (bounds);
            return false;
          }
        bounds[kept++] = bounds[i];
      }
  check->bounds = bounds;
  check->n_bounds = kept;
  return true;
}

static bool
set_up (struct order *order)
{
  struct pto_check *check = order->check;
  uint32_t n = check->n_tasks;

  if (!make_bounds (check))
    return false;
  order->n_cells = check->n_bounds;
  order->cells = malloc ((order->n_cells + 1) * sizeof *order->cells);
  order->marks = calloc (n + 1, sizeof *order->marks);
  order->stack = malloc ((n + 1) * sizeof *order->stack);
  order->told = malloc ((n + 1) * sizeof *order->told);
  order->n_late = check->late.n / 2;
  order->late = malloc ((order->n_late + 1) * sizeof *order->late);
  if (order->cells == NULL || order->marks == NULL || order->stack == NULL || order->told == NULL
      || order->late == NULL)
    return false;
  for (uint32_t c = 0; c < order->n_cells; c++)
    order->cells[c] = (struct cell){ NONE, NONE, NONE };
  memset (order->told, 0xff, (n + 1) * sizeof *order->told);
  for (uint32_t e = 0; e < order->n_late; e++)
    order->late[e]
        = (struct pto_check_edge){ check->late.items[2 * e], check->late.items[2 * e + 1] };
  qsort (order->late, order->n_late, sizeof *order->late, compare_edges);
  return true;
}

bool
pto_check_find_pairs (struct pto_check *check, struct pto_check_pair *pairs, uint32_t max,
                      uint64_t *n)
{
  struct order order
      = { .check = check, .pairs = pairs, .max = max, .free_links = NONE, .reached = NONE };
  bool ok = set_up (&order);

  for (uint32_t t = 0; ok && t < check->n_tasks; t++)
    {
      const struct pto_check_task *task = &check->tasks[t];

      order.task = t;
      order.reached = NONE;
      order.mark++;
      renew (&order, task->heap_lo, task->heap_hi);
      for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t r = 0; r < part->n; r++)
          if (part->ranges[r].n > 0)
            touch_range (&order, part->ranges[r].lo, part->ranges[r].lo + part->ranges[r].n,
                         (part->ranges[r].what & PTO_CHECK_WRITTEN) != 0);
    }
  ok = ok && !order.lost;
  check->last = ok ? malloc ((order.n_cells + 1) * sizeof *check->last) : NULL;
  for (uint32_t c = 0; check->last != NULL && c < order.n_cells; c++)
    check->last[c] = order.cells[c].writer;
  free (order.cells);
  free (order.links);
  free (order.late);
  free (order.marks);
  free (order.stack);
  free (order.told);
  *n = order.n;
  return ok && check->last != NULL;
}

uint32_t
pto_check_last_writer (const struct pto_check *check, uint64_t address)
{
  uint32_t cell;

  if (check->last == NULL || check->n_bounds < 2 || address < check->bounds[0]
      || address >= check->bounds[check->n_bounds - 1])
    return NONE;
  cell = find_cell (check, address);
  return check->last[cell];
}
