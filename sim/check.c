/* check.c: what is kept of a run whose accesses are checked?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Kernels whose names are kept; those beyond are the chip's own. */
#define NAMES_MAX 65536u

/* Counts the process's runs, so that a point of another chip or of an earlier run is known as such.
 */
static _Atomic uint64_t n_runs;

bool
pto_check_append (struct pto_check_numbers *numbers, uint32_t value)
{
  if (numbers->n == numbers->capacity)
    {
      uint32_t capacity = numbers->capacity > 0 ? numbers->capacity * 2 : 1024;
      uint32_t *items = realloc (numbers->items, capacity * sizeof *items);

      if (items == NULL)
        return false;
      numbers->items = items;
      numbers->capacity = capacity;
    }
  numbers->items[numbers->n++] = value;
  return true;
}

uint32_t
pto_check_number (const struct pto_check *check, pto_task_id id)
{
  uint32_t local = PTO_TASK_LOCAL (id);

  if (PTO_TASK_RING (id) >= PTO_RINGS || local >= PTO_CHECK_TASKS_MAX)
    return PTO_CHECK_NONE;
  return check->numbers[PTO_TASK_RING (id)][local] - 1;
}

static void *
reserve (size_t bytes)
{
  void *memory = mmap (NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return memory != MAP_FAILED ? memory : NULL;
}

static void
release (void *memory, size_t bytes)
{
  if (memory != NULL)
    munmap (memory, bytes);
}

struct pto_check *
pto_check_new (struct pto_engine *engine)
{
  struct pto_check *check = calloc (1, sizeof *check);
  bool ok;

  if (check == NULL)
    return NULL;
  check->engine = engine;
  pthread_mutex_init (&check->lock, NULL);
  check->tasks = reserve (PTO_CHECK_TASKS_MAX * sizeof *check->tasks);
  ok = check->tasks != NULL;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      check->numbers[r] = reserve (PTO_CHECK_TASKS_MAX * sizeof *check->numbers[r]);
      ok = ok && check->numbers[r] != NULL;
    }
  if (!ok)
    {
      pto_check_free (check);
      return NULL;
    }
  pto_check_witness_runs (check);
  return check;
}

void
pto_check_begin_run (struct pto_check *check)
{
  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      struct pto_check_part *part = check->tasks[t].parts;

      while (part != NULL)
        {
          struct pto_check_part *next = part->next;

          pto_check_free_part (part);
          part = next;
        }
      pto_check_free_apart (&check->tasks[t]);
      free (check->tasks[t].filled);
      free (check->tasks[t].found);
      check->numbers[PTO_TASK_RING (check->tasks[t].id)][PTO_TASK_LOCAL (check->tasks[t].id)] = 0;
    }
  atomic_store_explicit (&check->clock, 0, memory_order_relaxed);
  check->run = atomic_fetch_add_explicit (&n_runs, 1, memory_order_relaxed) + 1;
  check->sure.n = 0;
  check->n_owned = 0;
  check->has_links = false;
  check->mark = 0;
  check->searched = NULL;
  while (check->chunk != NULL)
    {
      void *before = *(void **) check->chunk;

      free (check->chunk);
      check->chunk = before;
    }
  for (uint32_t i = 0; i < check->files.n; i++)
    free (check->files.names[i]);
  memset (&check->files, 0, sizeof check->files);
  for (uint32_t k = 0; k < check->n_names; k++)
    free (check->names[k]);
  free (check->names);
  check->names = NULL;
  check->n_names = 0;
  check->n_tasks = 0;
  check->n_unseen = check->n_ranges = 0;
  check->past.n = check->edges.n = check->late.n = check->waits.n = check->wait_tasks.n = 0;
  check->lost = false;
  free (check->bounds);
  free (check->last);
  check->bounds = NULL;
  check->last = NULL;
  check->n_bounds = 0;
}

static void
keep_name (struct pto_check *check, uint32_t kernel)
{
  if (kernel >= NAMES_MAX)
    return;
  if (kernel >= check->n_names)
    {
      char **names = realloc (check->names, (kernel + 1) * sizeof (char *));

      if (names == NULL)
        return;
      memset (names + check->n_names, 0, (kernel + 1 - check->n_names) * sizeof (char *));
      check->names = names;
      check->n_names = kernel + 1;
    }
  if (check->names[kernel] == NULL)
    check->names[kernel] = strdup (pto_engine_kernel_name (check->engine, kernel));
}

static int
compare_parts (const void *a, const void *b)
{
  const struct pto_check_part *x = *(struct pto_check_part *const *) a;
  const struct pto_check_part *y = *(struct pto_check_part *const *) b;

  if (x->block != y->block)
    return x->block < y->block ? -1 : 1;
  if (x->member != y->member)
    return x->member < y->member ? -1 : 1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* In an order that says nothing of time. */
static void
sort_parts (struct pto_check *check, struct pto_check_task *task)
{
  struct pto_check_part **parts;
  struct pto_check_part **at = &task->parts;
  uint32_t n = 0;

  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    n++;
  if (n < 2)
    return;
  parts = malloc (n * sizeof (struct pto_check_part *));
  if (parts == NULL)
    {
      check->lost = true;
      return;
    }
  n = 0;
  for (struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    parts[n++] = part;
  qsort (parts, n, sizeof (struct pto_check_part *), compare_parts);
  for (uint32_t i = 0; i < n; i++)
    {
      *at = parts[i];
      at = &parts[i]->next;
    }
  *at = NULL;
  free (parts);
}

void
pto_check_end_run (struct pto_check *check)
{
  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      struct pto_check_task *task = &check->tasks[t];

      if (task->kernel != PTO_KERNEL_NONE)
        keep_name (check, task->kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS));
      sort_parts (check, task);
      for (const struct pto_check_part *part = task->parts; task->has_kernels && part != NULL;
           part = part->next)
        keep_name (check, part->kernel);
    }
}

void
pto_check_free (struct pto_check *check)
{
  if (check == NULL)
    return;
  pto_check_begin_run (check);
  if (check->engine->witness == &check->witness)
    check->engine->witness = NULL;
  release (check->tasks, PTO_CHECK_TASKS_MAX * sizeof *check->tasks);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    release (check->numbers[r], PTO_CHECK_TASKS_MAX * sizeof *check->numbers[r]);
  pto_check_free_contexts (check);
  free (check->past.items);
  free (check->edges.items);
  free (check->late.items);
  free (check->waits.items);
  free (check->wait_tasks.items);
  free (check->sure.items);
  free (check->owned);
  pthread_mutex_destroy (&check->lock);
  free (check);
}
