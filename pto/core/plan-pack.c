/* plan-pack.c: how does a graph go to another process, and come from one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan-pack.h"

#include "../exec/text.h"
#include "bits.h"
#include "engine.h"
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* What stands for memory of a graph while it is built is smaller. */
#define MEMORY_MAX (UINT64_C (1) << 48)

/* Then the arrays, in the order of list_arrays(), each from a multiple of 8 on. */
struct head
{
  uint64_t bytes;
  uint32_t n_tasks;
  uint32_t n_args;
  uint32_t n_edges;
  uint32_t n_shapes;
  uint32_t n_kernels;
  uint32_t n_params;
  uint32_t n_parts;
  uint32_t n_members;
  uint32_t n_memory;
  uint32_t n_tokens;
  uint32_t n_holds;
  uint32_t n_cohorts;
  uint64_t n_names; /* bytes */
  uint64_t captured;
};
_Static_assert(sizeof (struct head) % 8 == 0, "the first array begins behind it");

struct array
{
  void **items;
  uint64_t bytes;
};

#define N_ARRAYS 14u

static void
list_arrays (struct pto_plan *graph, const struct head *head, struct array arrays[N_ARRAYS])
{
  const struct array list[N_ARRAYS] = {
    { (void **) &graph->edges, (uint64_t) head->n_edges * sizeof *graph->edges },
    { (void **) &graph->tasks, (uint64_t) head->n_tasks * sizeof *graph->tasks },
    { (void **) &graph->places, (uint64_t) head->n_tasks * sizeof *graph->places },
    { (void **) &graph->names, head->n_names },
    { (void **) &graph->args, (uint64_t) head->n_args * sizeof *graph->args },
    { (void **) &graph->types, (uint64_t) head->n_args * sizeof *graph->types },
    { (void **) &graph->shapes, (uint64_t) head->n_shapes * sizeof *graph->shapes },
    { (void **) &graph->kernels, (uint64_t) head->n_kernels * sizeof *graph->kernels },
    { (void **) &graph->params, (uint64_t) head->n_params * sizeof *graph->params },
    { (void **) &graph->parts, (uint64_t) head->n_parts * sizeof *graph->parts },
    { (void **) &graph->members, (uint64_t) head->n_members * sizeof *graph->members },
    { (void **) &graph->sizes, (uint64_t) head->n_memory * sizeof *graph->sizes },
    { (void **) &graph->tokens, (uint64_t) head->n_tokens * sizeof *graph->tokens },
    { (void **) &graph->holds, (uint64_t) head->n_holds * sizeof *graph->holds },
  };

  memcpy (arrays, list, sizeof list);
}

static uint64_t
count_bytes (const struct array arrays[N_ARRAYS])
{
  uint64_t bytes = sizeof (struct head);

  for (uint32_t i = 0; i < N_ARRAYS; i++)
    bytes += align_up (arrays[i].bytes, 8);
  return bytes;
}

/* --- packing --- */

static void
make_head (const struct pto_plan *graph, struct head *head, struct array arrays[N_ARRAYS])
{
  *head = (struct head){ .n_tasks = graph->n_tasks,
                         .n_args = graph->n_args,
                         .n_edges = graph->n_orders,
                         .n_shapes = graph->n_shapes,
                         .n_kernels = graph->n_kernels,
                         .n_params = graph->n_params,
                         .n_parts = graph->n_parts,
                         .n_members = graph->n_members,
                         .n_memory = graph->n_memory,
                         .n_tokens = graph->n_tokens,
                         .n_holds = graph->n_holds,
                         .n_cohorts = graph->n_cohorts,
                         .n_names = graph->n_names,
                         .captured = graph->captured };
  /* They are only read. */
  list_arrays ((struct pto_plan *) graph, head, arrays);
  head->bytes = count_bytes (arrays);
}

uint64_t
pto_plan_packed_size (const struct pto_plan *graph)
{
  struct array arrays[N_ARRAYS];
  struct head head;

  make_head (graph, &head, arrays);
  return head.bytes;
}

/* What was named; that who uses memory comes behind who makes it is found again. */
static void
pack_edges (const struct pto_plan *graph, struct pto_plan_edge *edges)
{
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t d = 0; d < graph->tasks[t].n_deps; d++)
      {
        const struct pto_dep *dep = &graph->deps[graph->tasks[t].first_dep + d];
        uint32_t kinds = dep->kinds & ~PTO_DEP_RETAIN;

        if (kinds != 0)
          *edges++ = (struct pto_plan_edge){
            t, graph->rings[PTO_TASK_RING (dep->task)][PTO_TASK_LOCAL (dep->task)], kinds
          };
      }
}

void
pto_plan_pack (const struct pto_plan *graph, void *bytes)
{
  struct array arrays[N_ARRAYS];
  struct head head;
  uint8_t *at = (uint8_t *) bytes + sizeof head;

  make_head (graph, &head, arrays);
  memcpy (bytes, &head, sizeof head);
  pack_edges (graph, (struct pto_plan_edge *) (void *) at);
  for (uint32_t i = 0; i < N_ARRAYS; i++)
    {
      if (i > 0 && arrays[i].bytes > 0)
        memcpy (at, *arrays[i].items, arrays[i].bytes);
      at += align_up (arrays[i].bytes, 8);
    }
}

/* --- unpacking: nothing is believed, for a child may have been spoilt by what it ran --- */

static bool
is_bool (const bool *from_bytes)
{
  uint8_t byte;

  memcpy (&byte, from_bytes, sizeof byte);
  return byte <= 1;
}

/* From the first element of the tensor behind its last one; false: there is no such tensor. */
static bool
measure (uint32_t ndims, DataType dtype, const uint64_t *shapes, const uint64_t *strides,
         uint64_t *extent)
{
  uint64_t elements = 1;

  if (ndims < 1 || ndims > PTO2_TENSOR_MAX_DIMS || pto_dtype_size (dtype) == 0)
    return false;
  for (uint32_t d = 0; d < ndims; d++)
    if (shapes[d] == 0 || shapes[d] > MEMORY_MAX || strides[d] > MEMORY_MAX
        || __builtin_mul_overflow (shapes[d] - 1, strides[d], extent)
        || __builtin_add_overflow (elements, *extent, &elements) || elements > MEMORY_MAX)
      return false;
  *extent = elements * pto_dtype_size (dtype);
  return true;
}

static bool
check_tables (const struct pto_plan *graph)
{
  bool ok = true;
  uint64_t extent;

  for (uint32_t i = 0; i < graph->n_params && ok; i++)
    {
      const struct pto_plan_param *param = &graph->params[i];
      const Tensor *tensor = &param->tensor;

      ok = is_bool (&param->fixed) && is_bool (&param->written) && param->name <= graph->n_names
           && (tensor->ndims == 0
               || (measure (tensor->ndims, tensor->dtype, tensor->shapes, tensor->strides, &extent)
                   && extent == param->extent));
    }
  for (uint32_t i = 0; i < graph->n_shapes && ok; i++)
    ok = measure (graph->shapes[i].ndims, (DataType) graph->shapes[i].dtype,
                  graph->shapes[i].shapes, graph->shapes[i].strides, &extent);
  for (uint32_t i = 0; i < graph->n_memory && ok; i++)
    ok = graph->sizes[i] <= MEMORY_MAX;
  for (uint32_t i = 0; i < graph->n_kernels && ok; i++)
    ok = graph->kernels[i].queue < PTO_QUEUES_MAX;
  for (uint32_t i = 0; i < graph->n_members && ok; i++)
    ok = graph->members[i].kernel < graph->n_kernels
         && graph->kernels[graph->members[i].kernel].kernel != PTO_KERNEL_NONE
         && graph->members[i].queue == graph->kernels[graph->members[i].kernel].queue;
  for (uint32_t i = 0; i < graph->n_parts && ok; i++)
    {
      const struct pto_plan_parts *parts = &graph->parts[i];

      ok = is_bool (&parts->together) && parts->n_blocks > 0
           && parts->first_member <= graph->n_members
           && parts->n_members <= graph->n_members - parts->first_member
           && parts->n_members % (parts->n_at_once > 1 ? parts->n_at_once : 1) == 0
           && (parts->cohort == PTO_COHORT_NONE || parts->cohort < graph->n_cohorts);
    }
  for (uint32_t i = 0; i < graph->n_edges && ok; i++)
    ok = graph->edges[i].consumer < graph->n_tasks && graph->edges[i].producer < graph->n_tasks
         && graph->edges[i].consumer != graph->edges[i].producer && graph->edges[i].kinds != 0
         && graph->edges[i].kinds < PTO_DEP_RETAIN
         /* Cohorts are held in the order that the tasks have. */
         && (graph->n_holds == 0 || graph->edges[i].producer < graph->edges[i].consumer);
  for (uint32_t i = 0; i < graph->n_holds && ok; i++)
    ok = is_bool (&graph->holds[i].held);
  ok = ok && (graph->n_names == 0 || graph->names[graph->n_names - 1] == '\0');
  for (uint32_t t = 0; t < graph->n_tasks && ok; t++)
    ok = graph->places[t].line == 0 || graph->places[t].name < graph->n_names;
  return ok;
}

/* Does the tensor lie in that much memory? */
static bool
fits (const struct pto_plan *graph, const struct pto_plan_arg *arg, uint64_t room)
{
  const TensorData *shape = &graph->shapes[PTO_PLAN_SHAPE (arg->what)];
  uint64_t extent;
  uint64_t first;

  if (!measure (shape->ndims, (DataType) shape->dtype, shape->shapes, shape->strides, &extent)
      || arg->start > MEMORY_MAX)
    return false;
  /* What it is a view of may begin before the argument does. */
  first = arg->value + arg->start * pto_dtype_size ((DataType) shape->dtype);
  return first <= room && extent <= room - first;
}

static bool
check_arg (struct pto_plan *graph, uint32_t task, const struct pto_plan_arg *arg)
{
  enum pto_plan_source source = PTO_PLAN_SOURCE (arg->what);
  bool is_tensor = source >= PTO_PLAN_TENSOR;
  uint32_t type = graph->types[arg - graph->args];

  if (type > PTO_PARAM_REDUCTION || is_tensor == (type == PTO_PARAM_SCALAR))
    return false;
  if (source > PTO_PLAN_MADE || (is_tensor && PTO_PLAN_SHAPE (arg->what) >= graph->n_shapes)
      || ((arg->what & PTO_PLAN_FENCED) != 0 && source != PTO_PLAN_TENSOR
          && (source != PTO_PLAN_USED || arg->index >= graph->n_memory
              || graph->creators[arg->index] == task)))
    return false;
  switch (source)
    {
    case PTO_PLAN_SCALAR:
      return arg->index < graph->n_params && graph->params[arg->index].tensor.ndims == 0;
    case PTO_PLAN_TENSOR:
      return arg->index < graph->n_params && graph->params[arg->index].tensor.ndims > 0
             && fits (graph, arg, graph->params[arg->index].extent);
    case PTO_PLAN_MADE:
      if (arg->index >= graph->n_memory || graph->creators[arg->index] != UINT32_MAX)
        return false;
      graph->creators[arg->index] = task;
      return fits (graph, arg, graph->sizes[arg->index]);
    case PTO_PLAN_USED:
      /* Whoever makes it comes first. */
      return arg->index < graph->n_memory && graph->creators[arg->index] != UINT32_MAX
             && fits (graph, arg, graph->sizes[arg->index]);
    default:
      return true;
    }
}

/* What is known of a graph while its tasks are looked at one by one. */
struct looks
{
  uint64_t *starts; /* of tensors that several arguments are, in the order in which they are met */
  uint32_t n_starts;
  uint32_t n_holds; /* done by now */
  bool *held;       /* cohorts */
  bool *taken;      /* arguments, by a task */
};

static bool
open_looks (struct looks *looks, const struct head *head)
{
  *looks = (struct looks){ .starts = malloc (((size_t) head->n_args + 1) * sizeof *looks->starts),
                           .held = calloc ((size_t) head->n_cohorts + 1, sizeof *looks->held),
                           .taken = calloc ((size_t) head->n_args + 1, sizeof *looks->taken) };
  return looks->starts != NULL && looks->held != NULL && looks->taken != NULL;
}

static void
close_looks (struct looks *looks)
{
  free (looks->starts);
  free (looks->held);
  free (looks->taken);
}

/* What completing has made of a tensor that several arguments are. */
static bool
tell_apart (struct looks *looks, struct pto_plan_arg *arg)
{
  uint32_t what = arg->what;

  arg->what = what & ~(PTO_PLAN_FIRST | PTO_PLAN_AGAIN);
  if ((what & PTO_PLAN_FIRST) != 0)
    looks->starts[looks->n_starts++] = arg->start;
  else if ((what & PTO_PLAN_AGAIN) != 0)
    {
      if (arg->start >= looks->n_starts)
        return false;
      arg->start = looks->starts[arg->start];
    }
  return true;
}

/* Members with arguments of their own have such as the task has. */
static bool
check_members (const struct pto_plan *graph, const struct pto_plan_task *task)
{
  const struct pto_plan_parts *parts;
  bool ok = true;

  if (task->parts == 0)
    return true;
  parts = &graph->parts[task->parts - 1];
  for (uint32_t m = 0; m < parts->n_members && ok; m++)
    {
      const struct pto_need *need = &graph->members[parts->first_member + m];

      ok = need->n_args_plus_1 == 0 || need->first_arg + need->n_args_plus_1 - 1u <= task->n_args;
    }
  return ok;
}

static bool
check_task (struct pto_plan *graph, uint32_t number, struct looks *looks)
{
  struct pto_plan_task *task = &graph->tasks[number];
  uint32_t n_made = 0;
  uint32_t n_tensors = 0;
  uint32_t n_fenced = 0;

  if ((task->kernel & ~PTO_PLAN_IF) >= graph->n_kernels || task->ring >= PTO_RINGS
      || task->priority > PTO_MAX_PRIORITY || task->parts > graph->n_parts
      || task->first_arg > graph->n_args || task->n_args > graph->n_args - task->first_arg
      || task->n_args > PTO_ARGS_MAX || task->extra_bytes > 0 || task->first_token > graph->n_tokens
      || task->n_tokens > graph->n_tokens - task->first_token || task->n_tokens > task->n_args)
    return false;
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      struct pto_plan_arg *arg = &graph->args[task->first_arg + a];

      /* Of one task each, so that there are no more than there is room for. */
      if (looks->taken[task->first_arg + a] || !tell_apart (looks, arg)
          || !check_arg (graph, number, arg))
        return false;
      looks->taken[task->first_arg + a] = true;
      n_made += PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_MADE;
      n_tensors += PTO_PLAN_SOURCE (arg->what) >= PTO_PLAN_TENSOR;
      n_fenced += (arg->what & PTO_PLAN_FENCED) != 0;
    }
  /* The last argument of a conditional task is looked at. */
  if ((task->kernel & PTO_PLAN_IF) != 0
      && (task->n_args == 0
          || PTO_PLAN_SOURCE (graph->args[task->first_arg + task->n_args - 1].what)
                 < PTO_PLAN_TENSOR))
    return false;
  task->n_tensors = (uint16_t) n_tensors;
  return n_made == task->n_made && n_fenced == task->n_fenced && check_members (graph, task);
}

/* What is held or let go of before the task. */
static bool
check_holds (const struct pto_plan *graph, uint32_t task, struct looks *looks)
{
  for (; looks->n_holds < graph->n_holds && graph->holds[looks->n_holds].task == task;
       looks->n_holds++)
    {
      const struct pto_plan_hold *hold = &graph->holds[looks->n_holds];

      if (hold->cohort >= graph->n_cohorts || looks->held[hold->cohort] == hold->held)
        return false;
      looks->held[hold->cohort] = hold->held;
    }
  return true;
}

static bool
check_tasks (struct pto_plan *graph, struct looks *looks)
{
  bool ok = true;

  for (uint32_t t = 0; t < graph->n_tasks && ok; t++)
    {
      uint32_t parts = graph->tasks[t].parts;

      ok = check_holds (graph, t, looks) && check_task (graph, t, looks)
           && (parts == 0 || graph->parts[parts - 1].cohort == PTO_COHORT_NONE
               || looks->held[graph->parts[parts - 1].cohort]);
    }
  return ok && check_holds (graph, graph->n_tasks, looks) && looks->n_holds == graph->n_holds;
}

/* false: no memory. */
static bool
take_arrays (struct pto_plan *graph, const struct head *head, struct array arrays[N_ARRAYS],
             const uint8_t *bytes)
{
  bool ok = true;

  for (uint32_t i = 0; i < N_ARRAYS; i++)
    {
      uint64_t room = arrays[i].bytes;

      /* Completing adds some, as if the array had grown by itself. */
      if (arrays[i].items == (void **) &graph->edges)
        room = (uint64_t) power_of_two_at_least (head->n_edges > 16 ? head->n_edges : 16)
               * sizeof *graph->edges;
      *arrays[i].items = malloc (room + 1);
      if (*arrays[i].items == NULL)
        ok = false;
      else
        memcpy (*arrays[i].items, bytes, arrays[i].bytes);
      bytes += align_up (arrays[i].bytes, 8);
    }
  graph->n_tasks = head->n_tasks;
  graph->n_args = head->n_args;
  graph->n_edges = head->n_edges;
  graph->n_shapes = head->n_shapes;
  graph->n_kernels = head->n_kernels;
  graph->n_params = head->n_params;
  graph->n_parts = head->n_parts;
  graph->n_members = head->n_members;
  graph->n_memory = head->n_memory;
  graph->n_tokens = head->n_tokens;
  graph->n_holds = head->n_holds;
  graph->n_cohorts = head->n_cohorts;
  graph->n_names = (uint32_t) head->n_names;
  graph->captured = head->captured != 0;
  graph->creators = malloc (((size_t) graph->n_memory + 1) * sizeof *graph->creators);
  if (graph->creators == NULL)
    return false;
  memset (graph->creators, 0xff, graph->n_memory * sizeof *graph->creators);
  return ok;
}

enum pto_status
pto_plan_unpack (struct pto_plan *graph, const void *bytes, uint64_t size,
                 struct pto_report *report)
{
  struct array arrays[N_ARRAYS];
  struct head head = { .bytes = 0 };
  struct looks looks = { 0 };
  bool ok = size >= sizeof head;

  if (ok)
    memcpy (&head, bytes, sizeof head);
  list_arrays (graph, &head, arrays);
  ok = ok && head.n_names < UINT32_MAX && head.bytes == size && count_bytes (arrays) == size
       && head.n_cohorts <= head.n_holds;
  if (ok
      && (!open_looks (&looks, &head)
          || !take_arrays (graph, &head, arrays, (const uint8_t *) bytes + sizeof head)))
    {
      close_looks (&looks);
      return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for a graph of %u tasks"),
                             head.n_tasks);
    }
  ok = ok && check_tables (graph) && check_tasks (graph, &looks);
  close_looks (&looks);
  if (!ok)
    return pto_report_set (report, PTO_STATUS_TAMPERED,
                           _ ("a graph of which only a part has arrived, or something else"));
  return pto_plan_complete (graph, report);
}
