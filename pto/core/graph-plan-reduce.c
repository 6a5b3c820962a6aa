/* graph-plan-reduce.c: how do tasks of a graph that is built by hand reduce?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As submitted ones do (reduce.h): those that reduce into one tensor in one way are a set, each
 * updates a copy, a copy is the output of a task that fills it, and the copies are combined in
 * pairs, the last of them with the tensor. When that is done is what the order of the tasks says,
 * since nothing is looked up: before whatever comes after one of the set, and is not of it.
 */
#include "graph-plan.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX
/* Of a set: on how many places a launch runs is not known, and each copy is filled and combined. */
#define COPIES_MAX 32u
#define COPIES_BYTES (UINT64_C (16) << 20)

struct copy
{
  uint32_t memory;
  uint32_t token;
  uint32_t fill;    /* the task */
  uint32_t combine; /* the last one that took something in; NOBODY: none has yet */
  uint32_t newest;  /* of the reductions into it */
};

struct set
{
  const struct pto_plan_reduction *form; /* of the first of its tasks */
  Tensor handle;                         /* of a copy */
  uint32_t n_joined;
  uint32_t n_copies;
  uint32_t max_copies;
  uint32_t last; /* the task that combines with the tensor; NOBODY: the set is open */
  struct copy copies[COPIES_MAX];
};

/* Tasks that are added while it goes on have numbers from n_tasks on. */
struct settling
{
  struct pto_plan *graph;
  const struct pto_plan_edge *edges;
  const uint32_t *first;
  uint32_t n_tasks;
  uint32_t *of_task; /* where the reductions of a task begin */
  struct set **sets;
  uint32_t n_sets;
  uint32_t *open; /* of sets */
  uint32_t n_open;
};

static Tensor
copy_of (const Tensor *tensor)
{
  Tensor copy = *tensor;

  pto2_tensor_set_shape (&copy, tensor->shapes, tensor->ndims, tensor->dtype);
  copy.start_offset = 0;
  copy.buffer.size = pto2_tensor_numel (tensor) * pto_dtype_size (tensor->dtype);
  return copy;
}

void
pto_plan_add_reduction (struct pto_plan *graph, const struct pto_plan_reduction *reduction)
{
  struct pto_plan_reduction *added = pto_plan_new_reduction (graph);
  Tensor copy = copy_of (&reduction->tensor);

  if (added == NULL)
    return;
  *added = *reduction;
  added->task = graph->n_tasks - 1;
  added->arg = graph->n_args;
  added->token_at = graph->n_tokens;
  pto_plan_add_token (graph, reduction->token);
  pto_plan_add_unknown (graph, &copy);
  pto_plan_set_type (graph, PTO_PARAM_COMMUTATIVE);
}

static bool
is_same (const struct pto_plan_reduction *a, const struct pto_plan_reduction *b)
{
  const Tensor *one = &a->tensor;
  const Tensor *other = &b->tensor;

  return one->buffer.addr == other->buffer.addr && one->start_offset == other->start_offset
         && a->combine == b->combine && a->combine_queue == b->combine_queue
         && a->initial == b->initial && one->dtype == other->dtype && one->ndims == other->ndims
         && memcmp (one->shapes, other->shapes, one->ndims * sizeof *one->shapes) == 0
         && memcmp (one->strides, other->strides, one->ndims * sizeof *one->strides) == 0;
}

/* --- tasks that fill and combine --- */

/* It is where the first task is that reduces. */
static uint32_t
add_helper (struct pto_plan *graph, const struct pto_plan_reduction *form, uint32_t kernel,
            uint32_t queue)
{
  uint32_t task
      = pto_plan_add_task (graph, &(struct pto_submit){ .kernel = kernel, .queue = queue }, 0);

  if (!graph->no_memory)
    graph->places[task] = graph->places[form->task];
  return task;
}

/* A task that was added last uses the copy, after all who have. */
static void
use (struct settling *all, struct copy *copy)
{
  struct pto_plan *graph = all->graph;
  uint32_t task = graph->n_tasks - 1;

  pto_plan_add_edge (graph, copy->fill, task, PTO_HAZARD_EXPLICIT | PTO_DEP_RETAIN);
  if (copy->combine != NOBODY)
    pto_plan_add_edge (graph, copy->combine, task, PTO_HAZARD_EXPLICIT);
  else
    for (uint32_t r = copy->newest; r != NOBODY; r = graph->reductions[r].before)
      pto_plan_add_edge (graph, graph->reductions[r].task, task, PTO_HAZARD_EXPLICIT);
}

/* In pairs, as those of tasks that are submitted. */
static void
close_set (struct settling *all, struct set *set)
{
  struct pto_plan *graph = all->graph;
  const struct pto_plan_reduction *form = set->form;

  for (uint32_t step = 1; step < set->n_copies; step *= 2)
    for (uint32_t i = 0; i + step < set->n_copies; i += 2 * step)
      {
        struct copy *to = &set->copies[i];
        struct copy *from = &set->copies[i + step];
        uint32_t task = add_helper (graph, form, form->combine, form->combine_queue);

        pto_plan_add_use (graph, to->memory, 0, &set->handle, false, true, true);
        pto_plan_add_use (graph, from->memory, 0, &set->handle, false, false, true);
        use (all, to);
        use (all, from);
        to->combine = task;
      }
  set->last = add_helper (graph, form, form->combine, form->combine_queue);
  pto_plan_add_token (graph, form->turn);
  if (form->is_memory)
    {
      pto_plan_add_use (graph, form->index, 0, &form->tensor, false, true, true);
      pto_plan_add_edge (graph, graph->creators[form->index], set->last, PTO_DEP_RETAIN);
    }
  else
    pto_plan_add_tensor (graph, form->index, form->offset, &form->tensor, true, true);
  pto_plan_set_type (graph, PTO_PARAM_COMMUTATIVE);
  pto_plan_add_use (graph, set->copies[0].memory, 0, &set->handle, false, false, true);
  use (all, &set->copies[0]);
}

static void
add_copy (struct settling *all, struct set *set, uint32_t token)
{
  struct pto_plan *graph = all->graph;
  struct copy *copy = &set->copies[set->n_copies++];

  copy->memory = pto_plan_add_memory (graph, set->handle.buffer.size);
  copy->token = token;
  copy->combine = copy->newest = NOBODY;
  copy->fill = add_helper (graph, set->form, set->form->fill, set->form->fill_queue);
  pto_plan_add_use (graph, copy->memory, 0, &set->handle, true, false, true);
  pto_plan_add_number (graph, set->form->initial);
}

/* --- in the order of the tasks --- */

/* false: no memory. */
static bool
join (struct settling *all, uint32_t index)
{
  struct pto_plan *graph = all->graph;
  struct pto_plan_reduction *reduction = &graph->reductions[index];
  struct set *set = NULL;
  struct copy *copy;

  for (uint32_t i = 0; i < all->n_open && set == NULL; i++)
    if (is_same (all->sets[all->open[i]]->form, reduction))
      {
        set = all->sets[all->open[i]];
        reduction->set = all->open[i];
      }
  if (set == NULL)
    {
      uint64_t room;

      set = calloc (1, sizeof *set);
      if (set == NULL)
        return false;
      set->form = reduction;
      set->handle = copy_of (&reduction->tensor);
      set->last = NOBODY;
      room = COPIES_BYTES / set->handle.buffer.size;
      set->max_copies = room < 1 ? 1 : room < COPIES_MAX ? (uint32_t) room : COPIES_MAX;
      reduction->set = all->n_sets;
      all->open[all->n_open++] = all->n_sets;
      all->sets[all->n_sets++] = set;
    }
  if (set->n_copies < set->max_copies)
    add_copy (all, set, reduction->token);
  copy = &set->copies[set->n_joined++ % set->n_copies];
  if (graph->no_memory)
    return false;
  graph->args[reduction->arg].index = copy->memory;
  graph->tokens[reduction->token_at] = copy->token;
  reduction->before = copy->newest;
  copy->newest = index;
  pto_plan_add_edge (graph, copy->fill, reduction->task, PTO_HAZARD_EXPLICIT | PTO_DEP_RETAIN);
  return !graph->no_memory;
}

/* Does the task reduce as that one has? */
static bool
goes_on (const struct settling *all, uint32_t task, const struct pto_plan_reduction *with)
{
  for (uint32_t r = all->of_task[task]; r < all->of_task[task + 1]; r++)
    if (is_same (&all->graph->reductions[r], with))
      return true;
  return false;
}

/* What one reduces that the task comes after is combined before it, unless it goes on with that. */
static void
come_after (struct settling *all, uint32_t task, uint32_t producer)
{
  struct pto_plan *graph = all->graph;

  for (uint32_t r = all->of_task[producer]; r < all->of_task[producer + 1]; r++)
    {
      uint32_t number = graph->reductions[r].set;
      struct set *set = all->sets[number];

      if (set->last == NOBODY && goes_on (all, task, &graph->reductions[r]))
        continue;
      if (set->last == NOBODY)
        {
          uint32_t at = 0;

          while (all->open[at] != number)
            at++;
          all->open[at] = all->open[--all->n_open];
          close_set (all, set);
        }
      pto_plan_add_edge (graph, set->last, task, PTO_HAZARD_EXPLICIT);
    }
}

static int
compare_tasks (const void *a, const void *b)
{
  const struct pto_plan_reduction *one = a;
  const struct pto_plan_reduction *other = b;

  return one->task != other->task ? (one->task < other->task ? -1 : 1)
                                  : (one->arg > other->arg) - (one->arg < other->arg);
}

static bool
go_through (struct settling *all)
{
  struct pto_plan *graph = all->graph;

  for (uint32_t t = 0, r = 0; t <= all->n_tasks; t++)
    {
      while (r < graph->n_reductions && graph->reductions[r].task < t)
        r++;
      all->of_task[t] = r;
    }
  for (uint32_t t = 0; t < all->n_tasks; t++)
    {
      for (uint32_t e = all->first[t]; e < all->first[t + 1]; e++)
        if ((all->edges[e].kinds & ~PTO_DEP_RETAIN) != 0)
          come_after (all, t, all->edges[e].producer);
      for (uint32_t r = all->of_task[t]; r < all->of_task[t + 1]; r++)
        if (!join (all, r))
          return false;
    }
  for (uint32_t i = 0; i < all->n_open; i++)
    close_set (all, all->sets[all->open[i]]);
  return true;
}

void
pto_plan_settle (struct pto_plan *graph, const struct pto_plan_edge *by_consumer,
                 const uint32_t *first)
{
  struct settling all
      = { .graph = graph, .edges = by_consumer, .first = first, .n_tasks = graph->n_tasks };

  qsort (graph->reductions, graph->n_reductions, sizeof *graph->reductions, compare_tasks);
  all.of_task = malloc (((size_t) graph->n_tasks + 1) * sizeof *all.of_task);
  all.sets = malloc (graph->n_reductions * sizeof (struct set *));
  all.open = malloc (graph->n_reductions * sizeof *all.open);
  if (all.of_task == NULL || all.sets == NULL || all.open == NULL || !go_through (&all))
    graph->no_memory = true;
  for (uint32_t i = 0; i < all.n_sets; i++)
    free (all.sets[i]);
  free (all.sets);
  free (all.open);
  free (all.of_task);
}
