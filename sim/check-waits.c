/* check-waits.c: which parts of kernels come after each other since one waited for the other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipes say it while kernels run. A kernel that looks at memory until another one has written there
 * comes after all parts that wrote there and began before it looked last: whether it had to wait is
 * a matter of luck, and says nothing. A read is surely such a look if the kernel comes back to it
 * after pto_relax(). The same place in the code is one for all kernels of the run. Where
 * no kernel of the object had to wait, reads near pto_relax() are taken to be looks.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* Code that near looks and sure ones share. */
#define OBJECT_BYTES 4096u

/* A look, to be found by its address. */
struct entry
{
  uint64_t address;
  struct pto_check_part *part;
  const struct pto_check_look *look;
};

static bool
is_same_kernel (const struct pto_check_part *a, const struct pto_check_part *b)
{
  return a->task == b->task && a->block == b->block && a->member == b->member;
}

/* Whether the kernel only waits there, as far as the run shows. */
static bool
waits_is_look (const struct pto_check *check, const struct pto_check_look *look)
{
  bool is_near = false;

  if (look->is_atomic || look->is_sure)
    return true;
  for (uint32_t i = 0; i < check->sure.n; i += 2)
    {
      uintptr_t pc = (uintptr_t) check->sure.items[i + 1] << 32 | check->sure.items[i];

      if (pc == look->pc)
        return true;
      is_near = is_near || pc + OBJECT_BYTES - look->pc < UINT64_C (2) * OBJECT_BYTES;
    }
  return !is_near;
}

bool
pto_check_only_looks (const struct pto_check *check, const struct pto_check_part *part, uint64_t lo,
                      uint64_t hi)
{
  for (uint32_t l = 0; l < part->n_looks; l++)
    {
      const struct pto_check_look *look = &part->looks[l];

      if (!look->is_atomic && look->address <= lo && hi <= look->address + look->n
          && waits_is_look (check, look))
        return true;
    }
  return false;
}

/* --- edges --- */

static bool
add_after (struct pto_check_part *part, struct pto_check_part *other)
{
  struct pto_check_part **after;

  for (uint32_t i = 0; i < part->n_after; i++)
    if (part->after[i] == other)
      return true;
  after = realloc (part->after, (part->n_after + 1) * sizeof (struct pto_check_part *));
  if (after == NULL)
    return false;
  part->after = after;
  part->after[part->n_after++] = other;
  return true;
}

static int
compare_entries (const void *a, const void *b)
{
  const struct entry *x = a;
  const struct entry *y = b;

  return x->address < y->address ? -1 : x->address > y->address;
}

/* The first that is not below the address. */
static uint32_t
find_entry (const struct entry *entries, uint32_t n, uint64_t address)
{
  uint32_t lo = 0;
  uint32_t hi = n;

  while (lo < hi)
    {
      uint32_t middle = lo + (hi - lo) / 2;

      if (entries[middle].address < address)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo;
}

static bool
link_writer (const struct entry *entries, uint32_t n, struct pto_check_part *writer,
             const struct pto_check_range *range)
{
  for (uint32_t e = find_entry (entries, n, range->lo);
       e < n && entries[e].address < range->lo + range->n; e++)
    {
      const struct pto_check_look *look = entries[e].look;
      uint64_t since = writer->released == look->address ? writer->end : writer->begin;

      if (since < look->time && !is_same_kernel (writer, entries[e].part)
          && !add_after (entries[e].part, writer))
        return false;
    }
  return true;
}

static uint32_t
list_looks (const struct pto_check *check, struct entry *entries)
{
  uint32_t n = 0;

  for (uint32_t t = 0; t < check->n_tasks; t++)
    for (struct pto_check_part *part = check->tasks[t].parts; part != NULL; part = part->next)
      for (uint32_t l = 0; l < part->n_looks; l++)
        if (waits_is_look (check, &part->looks[l]))
          {
            if (entries != NULL)
              entries[n] = (struct entry){ part->looks[l].address, part, &part->looks[l] };
            n++;
          }
  return n;
}

static bool
link_looks (struct pto_check *check)
{
  uint32_t n = list_looks (check, NULL);
  struct entry *entries;
  bool ok = true;

  if (n == 0)
    return true;
  entries = malloc (n * sizeof *entries);
  if (entries == NULL)
    return false;
  list_looks (check, entries);
  qsort (entries, n, sizeof *entries, compare_entries);
  for (uint32_t t = 0; t < check->n_tasks && ok; t++)
    for (struct pto_check_part *part = check->tasks[t].parts; part != NULL; part = part->next)
      for (uint32_t r = 0; r < part->n && ok; r++)
        if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0)
          ok = link_writer (entries, n, part, &part->ranges[r]);
  free (entries);
  return ok;
}

bool
pto_check_find_waits (struct pto_check *check)
{
  bool ok = link_looks (check);

  /* Earlier parts of the same kernel come first in the list. */
  for (uint32_t t = 0; t < check->n_tasks; t++)
    for (struct pto_check_part *part = check->tasks[t].parts; part != NULL; part = part->next)
      {
        part->mark = 0;
        part->is_linked = part->n_after > 0 || (part->before != NULL && part->before->is_linked);
        check->has_links = check->has_links || part->is_linked;
      }
  return ok;
}

/* --- what comes after what --- */

struct search
{
  struct pto_check *check;
  struct pto_check_part **stack;
  uint32_t n;
  uint32_t capacity;
  bool lost;
};

static void
visit (struct search *search, struct pto_check_part *part)
{
  if (part == NULL || part->mark == search->check->mark)
    return;
  part->mark = search->check->mark;
  if (search->n == search->capacity)
    {
      uint32_t capacity = search->capacity > 0 ? search->capacity * 2 : 64;
      struct pto_check_part **stack
          = realloc (search->stack, capacity * sizeof (struct pto_check_part *));

      if (stack == NULL)
        {
          search->lost = true;
          return;
        }
      search->stack = stack;
      search->capacity = capacity;
    }
  search->stack[search->n++] = part;
}

/* Meetings: all that the others of the task did before them. */
static void
visit_rounds (struct search *search, const struct pto_check_part *part)
{
  if (part->round == 0 || (part->before != NULL && part->before->round == part->round))
    return;
  for (struct pto_check_part *other = search->check->tasks[part->task].parts; other != NULL;
       other = other->next)
    if (other->round < part->round)
      visit (search, other);
}

/* Tasks that the part's comes after by edges, where kernels waited for others. */
static void
visit_tasks (struct search *search, const struct pto_check_part *part,
             bool (*precedes) (void *data, uint32_t first, uint32_t second), void *data)
{
  for (uint32_t t = 0; t < part->task; t++)
    {
      struct pto_check_part *other = search->check->tasks[t].parts;

      while (other != NULL && !other->is_linked)
        other = other->next;
      if (other != NULL && other->mark != search->check->mark && precedes (data, t, part->task))
        for (other = search->check->tasks[t].parts; other != NULL; other = other->next)
          visit (search, other);
    }
}

bool
pto_check_is_after (struct pto_check *check, struct pto_check_part *part,
                    const struct pto_check_part *other,
                    bool (*precedes) (void *data, uint32_t first, uint32_t second), void *data)
{
  struct search search = { .check = check };
  bool is_after = false;

  if (!check->has_links || (precedes == NULL && !part->is_linked))
    return false;
  /* Questions about one task are often about the same part in a row. */
  if (precedes == NULL && part->mark == check->mark && check->mark > 0 && check->searched == part)
    return other->mark == check->mark;
  check->mark++;
  check->searched = precedes == NULL ? part : NULL;
  visit (&search, part);
  while (search.n > 0 && !is_after)
    {
      struct pto_check_part *at = search.stack[--search.n];

      visit (&search, at->before);
      for (uint32_t i = 0; i < at->n_after; i++)
        visit (&search, at->after[i]);
      visit_rounds (&search, at);
      if (precedes == NULL)
        continue;
      is_after = at == other || precedes (data, other->task, at->task);
      if (!is_after)
        visit_tasks (&search, at, precedes, data);
    }
  free (search.stack);
  return is_after || search.lost || (precedes == NULL && other->mark == check->mark);
}
