/* check-order.c: which tasks touch the same bytes and are in no order? Which task wrote a byte
 * last?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory is cut where some task's range begins or ends. Each of these cells knows its last writer
 * among the tasks so far, and its readers since. Tasks are gone through in the order of their
 * submits. Each is compared with those only, since all tasks before them come before them. Updates
 * in turns and atomic operations hide no task, since later ones may be in no order with them. Edges
 * order two tasks, and what the orchestration has waited for; time orders nothing.
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
  uint32_t writer;  /* NONE: no task */
  uint32_t writers; /* others that it does not come after, or that update it in turns: links */
  uint32_t readers; /* since: links */
  uint32_t maker;   /* whose new output it is, before anybody has written to it; NONE */
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

  /* The tasks before the one that is looked at, as far back as was asked. */
  uint32_t task;
  uint32_t reached; /* those from here on are marked; NONE: none are */
  uint32_t *marks;  /* of each task: the mark of this search, if it comes before */
  uint32_t mark;
  uint32_t *stack;
  uint32_t n_stack;
  uint32_t waits_done; /* so many of the waits have been followed */
  bool has_turns;      /* it updates something in turns (COMMUTATIVE) */

  struct pto_check_orders *found;
  /* The tasks that the one which is looked at was found with already, by the same marks. */
  uint32_t *told;
};

/* --- which tasks come before a task --- */

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
  return pto_check_find_bound (check->bounds, check->n_bounds, address);
}

static void
tell (struct order *order, uint32_t first, bool first_writes, bool second_writes, uint64_t lo,
      uint64_t hi)
{
  struct pto_check_orders *found = order->found;
  struct pto_check_pair *last = found->n_pairs > 0 && found->n_pairs <= found->max
                                    ? &found->pairs[found->n_pairs - 1]
                                    : NULL;

  if (order->told[first] == order->task)
    {
      if (last != NULL && last->first == first && last->second == order->task && last->hi == lo)
        last->hi = hi;
      return;
    }
  order->told[first] = order->task;
  if (found->n_pairs++ < found->max)
    found->pairs[found->n_pairs - 1]
        = (struct pto_check_pair){ first, order->task, first_writes, second_writes, lo, hi };
}

/* Answers check-waits.c. Forgets what is known about the task that is looked at. */
static bool
precedes (void *data, uint32_t first, uint32_t second)
{
  struct order *order = data;
  uint32_t task = order->task;
  bool is_before;

  if (first >= second)
    return false;
  order->task = second;
  order->reached = NONE;
  order->mark++;
  is_before = comes_before (order, first);
  order->task = task;
  order->reached = NONE;
  order->mark++;
  return is_before;
}

static bool
is_in_range (const struct pto_check_range *range, uint64_t lo, uint64_t hi)
{
  return range->n > 0 && range->lo < hi && lo < range->lo + range->n;
}

/* Both ranges are there: atomic operations of both, or what one kernel waits for. */
static bool
is_harmless_range (struct order *order, struct pto_check_part *first,
                   const struct pto_check_range *first_range, struct pto_check_part *second,
                   const struct pto_check_range *second_range, uint64_t lo, uint64_t hi)
{
  struct pto_check *check = order->check;

  if (((first_range->what | second_range->what) & PTO_CHECK_WRITTEN) == 0
      || (first_range->what & second_range->what & PTO_CHECK_ATOMIC) != 0)
    return true;
  if (!check->has_links && first->n_looks == 0 && second->n_looks == 0)
    return false;
  if ((first_range->what & PTO_CHECK_WRITTEN) == 0 && pto_check_only_looks (check, first, lo, hi))
    return true;
  if ((second_range->what & PTO_CHECK_WRITTEN) == 0 && pto_check_only_looks (check, second, lo, hi))
    return true;
  return pto_check_is_after (check, second, first, precedes, order)
         || pto_check_is_after (check, first, second, precedes, order);
}

/* The two are in no order by their edges: do their kernels wait for each other, or take turns in
 * atomic operations? */
static bool
is_harmless (struct order *order, uint32_t other, uint64_t lo, uint64_t hi)
{
  struct pto_check_task *tasks = order->check->tasks;

  for (struct pto_check_part *a = tasks[other].parts; a != NULL; a = a->next)
    for (uint32_t i = 0; i < a->n; i++)
      {
        if (!is_in_range (&a->ranges[i], lo, hi))
          continue;
        for (struct pto_check_part *b = tasks[order->task].parts; b != NULL; b = b->next)
          for (uint32_t j = 0; j < b->n; j++)
            if (is_in_range (&b->ranges[j], lo, hi)
                && !is_harmless_range (order, a, &a->ranges[i], b, &b->ranges[j], lo, hi))
              return false;
      }
  return true;
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
  if (order->told[other] != order->task && is_harmless (order, other, lo, hi))
    return false;
  tell (order, other, other_writes, writes, lo, hi);
  return true;
}

/* Compares the task with those of a list. Returns those that later tasks are still to be compared
 * with. keeps: all of them, for the task and later ones may be exempt from an order that covers it.
 */
static uint32_t
compare_all (struct order *order, uint32_t list, bool others_write, bool keeps, uint64_t lo,
             uint64_t hi)
{
  uint32_t kept = NONE;

  while (list != NONE)
    {
      uint32_t next = order->links[list].next;

      if (!compare (order, order->links[list].task, others_write, true, lo, hi) || keeps)
        {
          order->links[list].next = kept;
          kept = list;
        }
      else
        {
          order->links[list].next = order->free_links;
          order->free_links = list;
        }
      list = next;
    }
  return kept;
}

/* Is it an update that later ones are in no order with, and need not be? It hides no access before
 * it. */
static bool
is_exempt (const struct order *order, uint64_t address, uint32_t what)
{
  return (what & PTO_CHECK_ATOMIC) != 0
         || (order->has_turns
             && pto_check_find_arg (&order->check->tasks[order->task], address,
                                    1u << PTO_PARAM_COMMUTATIVE)
                    != NULL);
}

/* Does another kernel of the task write there? */
static bool
is_written_by_others (const struct order *order, const struct pto_check_part *own, uint64_t lo,
                      uint64_t hi)
{
  for (const struct pto_check_part *part = order->check->tasks[order->task].parts; part != NULL;
       part = part->next)
    for (uint32_t r = 0; (part->block != own->block || part->member != own->member) && r < part->n;
         r++)
      if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0 && is_in_range (&part->ranges[r], lo, hi))
        return true;
  return false;
}

/* The task reads new memory of another one. */
static void
read_new (struct order *order, const struct pto_check_part *part, uint32_t maker, uint64_t lo,
          uint64_t hi)
{
  struct pto_check_orders *found = order->found;
  struct pto_check_void *last = found->n_voids > 0 && found->n_voids <= found->max
                                    ? &found->voids[found->n_voids - 1]
                                    : NULL;

  if (part->declared || is_written_by_others (order, part, lo, hi))
    return;
  if (last != NULL && last->reader == order->task && last->maker == maker)
    {
      if (last->hi == lo)
        last->hi = hi;
      return;
    }
  if (found->n_voids++ < found->max)
    found->voids[found->n_voids - 1] = (struct pto_check_void){ maker, order->task, lo, hi };
}

static void
touch_cell (struct order *order, const struct pto_check_part *part, uint32_t c, uint32_t what)
{
  struct cell *cell = &order->cells[c];
  uint64_t lo = order->check->bounds[c];
  uint64_t hi = order->check->bounds[c + 1];
  bool keeps;

  if (cell->maker != NONE && cell->maker != order->task
      && ((what & PTO_CHECK_WRITTEN) == 0 || (what & PTO_CHECK_FIRST) != 0))
    read_new (order, part, cell->maker, lo, hi);
  if ((what & PTO_CHECK_WRITTEN) == 0)
    {
      if (cell->writer != NONE)
        compare (order, cell->writer, true, false, lo, hi);
      for (uint32_t l = cell->writers; l != NONE; l = order->links[l].next)
        compare (order, order->links[l].task, true, false, lo, hi);
      if (cell->readers == NONE || order->links[cell->readers].task != order->task)
        push (order, &cell->readers, order->task);
      return;
    }
  cell->maker = NONE;
  keeps = is_exempt (order, lo, what);
  cell->readers = compare_all (order, cell->readers, false, keeps, lo, hi);
  cell->writers = compare_all (order, cell->writers, true, keeps, lo, hi);
  if (cell->writer != NONE && cell->writer != order->task
      && (!compare (order, cell->writer, true, true, lo, hi) || keeps))
    push (order, &cell->writers, cell->writer);
  cell->writer = order->task;
}

static void
touch_range (struct order *order, const struct pto_check_part *part,
             const struct pto_check_range *range)
{
  uint64_t lo = range->lo;
  uint64_t hi = lo + range->n;
  const struct pto_check *check = order->check;

  for (uint32_t c = find_cell (check, lo); c + 1 < check->n_bounds && check->bounds[c] < hi; c++)
    touch_cell (order, part, c, range->what);
}

/* Memory that is new: all tasks that used it before are done. */
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
        order->cells[c].maker = NONE;
        drop (order, &order->cells[c].writers);
        drop (order, &order->cells[c].readers);
      }
}

/* Is the memory of an output that was made for the task? */
static bool
is_new_output (const struct pto_check_task *task, const struct pto_check_arg *arg)
{
  return arg->type == PTO_PARAM_OUTPUT && pto_check_is_new (task, arg);
}

static void
make_outputs (struct order *order, const struct pto_check_task *task)
{
  const struct pto_check *check = order->check;

  for (uint32_t a = 0; a < task->n_args; a++)
    {
      const struct pto_check_arg *arg = &task->args[a];

      if (!is_new_output (task, arg))
        continue;
      for (uint32_t c = find_cell (check, arg->buffer);
           c + 1 < check->n_bounds && check->bounds[c] < arg->buffer + arg->bytes; c++)
        order->cells[c].maker = order->task;
    }
}

/* What the task wrote without saying so. */
static void
find_written (struct order *order, const struct pto_check_task *task)
{
  const struct pto_check *check = order->check;

  for (uint32_t i = 0; i < task->n_found; i++)
    for (uint32_t c = find_cell (check, task->found[i].lo);
         c + 1 < check->n_bounds && check->bounds[c] < task->found[i].hi; c++)
      order->cells[c].maker = NONE;
}

/* --- all tasks --- */

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
  uint64_t most = 2 * check->n_ranges + 2 * (uint64_t) check->n_tasks + 1;
  uint64_t *bounds;

  for (uint32_t t = 0; t < check->n_tasks; t++)
    most += 2 * (uint64_t) check->tasks[t].n_args;
  bounds = malloc (most * sizeof *bounds);
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
      for (uint32_t i = 0; i < task->n_found; i++)
        {
          bounds[n++] = task->found[i].lo;
          bounds[n++] = task->found[i].hi;
        }
      if (task->heap_lo < task->heap_hi)
        {
          bounds[n++] = task->heap_lo;
          bounds[n++] = task->heap_hi;
        }
      for (uint32_t a = 0; a < task->n_args; a++)
        if (is_new_output (task, &task->args[a]))
          {
            bounds[n++] = task->args[a].buffer;
            bounds[n++] = task->args[a].buffer + task->args[a].bytes;
          }
    }
  n = pto_check_sort_bounds (bounds, n);
  if (n > UINT32_MAX)
    {
      free (bounds);
      return false;
    }
  check->bounds = bounds;
  check->n_bounds = (uint32_t) n;
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
    order->cells[c] = (struct cell){ NONE, NONE, NONE, NONE };
  memset (order->told, 0xff, (n + 1) * sizeof *order->told);
  for (uint32_t e = 0; e < order->n_late; e++)
    order->late[e]
        = (struct pto_check_edge){ check->late.items[2 * e], check->late.items[2 * e + 1] };
  qsort (order->late, order->n_late, sizeof *order->late, compare_edges);
  return true;
}

bool
pto_check_find_orders (struct pto_check *check, struct pto_check_orders *orders)
{
  struct order order = { .check = check, .found = orders, .free_links = NONE, .reached = NONE };
  bool ok = set_up (&order);

  for (uint32_t t = 0; ok && t < check->n_tasks; t++)
    {
      const struct pto_check_task *task = &check->tasks[t];

      order.task = t;
      order.reached = NONE;
      order.mark++;
      order.has_turns = false;
      for (uint32_t a = 0; a < task->n_args; a++)
        order.has_turns = order.has_turns || task->args[a].type == PTO_PARAM_COMMUTATIVE;
      renew (&order, task->heap_lo, task->heap_hi);
      make_outputs (&order, task);
      find_written (&order, task);
      for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t r = 0; r < part->n; r++)
          if (part->ranges[r].n > 0)
            touch_range (&order, part, &part->ranges[r]);
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
