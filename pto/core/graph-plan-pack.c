/* graph-plan-pack.c: how does a graph go to another process, and come from one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "graph-plan-pack.h"

#include "exec/translate.h"
#include "core-placement.h"
#include "engine.h"
#include "pack.h"

/* What stands for memory of a graph while it is built is smaller. */
#define MEMORY_MAX (UINT64_C (1) << 48)
/* "PTOG", and which form this is. */
#define MAGIC UINT32_C (0x474f5450)
#define VERSION 1u

/* --- the form: a head, then arrays, each from a multiple of 8 on --- */

static void
pack_dimensions (struct pto_pack *pack, TensorData *tensor)
{
  PTO_PACK (pack, tensor->buffer.size);
  PTO_PACK (pack, tensor->ndims);
  PTO_PACK (pack, tensor->dtype);
  PTO_PACK (pack, tensor->shapes);
  PTO_PACK (pack, tensor->strides);
}

/* What completing finds again is not there. */
static void
pack_task (struct pto_pack *pack, void *item)
{
  struct pto_plan_task *task = item;

  PTO_PACK (pack, task->kernel);
  PTO_PACK (pack, task->first_arg);
  PTO_PACK (pack, task->n_args);
  PTO_PACK (pack, task->n_made);
  PTO_PACK (pack, task->n_fenced);
  PTO_PACK (pack, task->n_tokens);
  PTO_PACK (pack, task->first_token);
  PTO_PACK (pack, task->parts);
  PTO_PACK (pack, task->extra_bytes);
  PTO_PACK (pack, task->ring);
  PTO_PACK (pack, task->perhaps);
  pto_pack_terms (pack, &task->terms);
}

static void
pack_shape (struct pto_pack *pack, void *item)
{
  pack_dimensions (pack, item);
}

static void
pack_param (struct pto_pack *pack, void *item)
{
  struct pto_plan_param *param = item;

  /* A Tensor begins as a TensorData. */
  pack_dimensions (pack, (TensorData *) &param->tensor);
  PTO_PACK (pack, param->tensor.buffer.addr);
  PTO_PACK (pack, param->tensor.start_offset);
  PTO_PACK (pack, param->kind);
  PTO_PACK (pack, param->word);
  PTO_PACK (pack, param->first);
  PTO_PACK (pack, param->extent);
  PTO_PACK (pack, param->name);
  pto_pack_flag (pack, &param->fixed);
  pto_pack_flag (pack, &param->written);
  pto_pack_flag (pack, &param->owned);
}

static void
pack_parts (struct pto_pack *pack, void *item)
{
  struct pto_plan_parts *parts = item;

  PTO_PACK (pack, parts->n_blocks);
  PTO_PACK (pack, parts->wish.n_at_once);
  PTO_PACK (pack, parts->first_member);
  PTO_PACK (pack, parts->wish.n_members);
  PTO_PACK (pack, parts->wish.cohort);
  pto_pack_flag (pack, &parts->wish.together);
}

static void
pack_hold (struct pto_pack *pack, void *item)
{
  struct pto_plan_hold *hold = item;

  PTO_PACK (pack, hold->task);
  PTO_PACK (pack, hold->cohort);
  pto_pack_flag (pack, &hold->held);
}

#define ARRAY(graph, items, n, pack)                                     \
  {                                                                      \
    (void **) &(graph)->items, &(graph)->n, sizeof *(graph)->items, pack \
  }

struct array
{
  void **items;
  uint32_t *n;
  size_t size; /* of one in memory */
  /* NULL: numbers with nothing between them, which lie as they are declared. */
  void (*pack) (struct pto_pack *pack, void *item);
};
_Static_assert(sizeof (struct pto_plan_edge) == 12, "three numbers");
_Static_assert(sizeof (struct pto_plan_place) == 8, "two numbers");
_Static_assert(sizeof (struct pto_plan_kernel) == 8, "two numbers");
_Static_assert(sizeof (struct pto_plan_arg) == 24, "four numbers");
_Static_assert(sizeof (struct pto_need) == 20, "six numbers");
#define N_ARRAYS 14u

static void
list_arrays (struct pto_plan *graph, struct array arrays[N_ARRAYS])
{
  const struct array list[N_ARRAYS] = {
    ARRAY (graph, edges, n_edges, NULL),         ARRAY (graph, tasks, n_tasks, pack_task),
    ARRAY (graph, places, n_tasks, NULL),        ARRAY (graph, names, n_names, NULL),
    ARRAY (graph, args, n_args, NULL),           ARRAY (graph, types, n_args, NULL),
    ARRAY (graph, shapes, n_shapes, pack_shape), ARRAY (graph, kernels, n_kernels, NULL),
    ARRAY (graph, params, n_params, pack_param), ARRAY (graph, parts, n_parts, pack_parts),
    ARRAY (graph, members, n_members, NULL),     ARRAY (graph, sizes, n_memory, NULL),
    ARRAY (graph, tokens, n_tokens, NULL),       ARRAY (graph, holds, n_holds, pack_hold),
  };

  memcpy (arrays, list, sizeof list);
}

/* Returns which form it is. */
static uint32_t
pack_head (struct pto_pack *pack, struct pto_plan *graph, const struct array arrays[N_ARRAYS])
{
  uint32_t magic = MAGIC;
  uint32_t version = VERSION;

  PTO_PACK (pack, magic);
  PTO_PACK (pack, version);
  if (magic != MAGIC || version != VERSION)
    pto_pack_refuse (pack);
  for (uint32_t i = 0; i < N_ARRAYS; i++)
    PTO_PACK (pack, *arrays[i].n);
  PTO_PACK (pack, graph->n_cohorts);
  pto_pack_flag (pack, &graph->captured);
  pto_pack_align (pack);
  return magic == MAGIC ? version : 0;
}

static void
pack_items (struct pto_pack *pack, const struct array *array)
{
  if (array->pack == NULL)
    pto_pack_value (pack, *array->items, *array->n * array->size);
  for (uint32_t k = 0; array->pack != NULL && k < *array->n && !pack->bad; k++)
    array->pack (pack, (uint8_t *) *array->items + k * array->size);
  pto_pack_align (pack);
}

/* --- packing --- */

/* What was named; that who uses memory comes behind who makes it is found again. */
static void
pack_edges (struct pto_pack *pack, const struct pto_plan *graph)
{
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t d = 0; d < graph->tasks[t].n_deps; d++)
      {
        const struct pto_dep *dep = &graph->deps[graph->tasks[t].first_dep + d];
        struct pto_plan_edge edge
            = { t, graph->rings[PTO_TASK_RING (dep->task)][PTO_TASK_LOCAL (dep->task)],
                dep->kinds & ~PTO_DEP_RETAIN };

        if (edge.kinds != 0)
          PTO_PACK (pack, edge);
      }
  pto_pack_align (pack);
}

static void
pack_graph (struct pto_pack *pack, const struct pto_plan *graph)
{
  /* It is only read. */
  struct pto_plan copy = *graph;
  struct array arrays[N_ARRAYS];

  copy.n_edges = graph->n_orders;
  list_arrays (&copy, arrays);
  pack_head (pack, &copy, arrays);
  pack_edges (pack, graph);
  for (uint32_t i = 1; i < N_ARRAYS; i++)
    pack_items (pack, &arrays[i]);
}

uint64_t
pto_plan_packed_size (const struct pto_plan *graph)
{
  struct pto_pack pack = pto_pack_count ();

  pack_graph (&pack, graph);
  return pack.at;
}

void
pto_plan_pack (const struct pto_plan *graph, void *bytes)
{
  struct pto_pack pack = pto_pack_write (bytes, pto_plan_packed_size (graph));

  pack_graph (&pack, graph);
}

/* --- unpacking: nothing is believed, for a child may have been spoilt by what it ran --- */

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

      ok = param->name <= graph->n_names
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

      ok = parts->n_blocks > 0 && parts->first_member <= graph->n_members
           && parts->wish.n_members <= graph->n_members - parts->first_member
           && parts->wish.n_members % (parts->wish.n_at_once > 1 ? parts->wish.n_at_once : 1) == 0
           && (parts->wish.cohort == PTO_COHORT_NONE || parts->wish.cohort < graph->n_cohorts);
    }
  for (uint32_t i = 0; i < graph->n_edges && ok; i++)
    ok = graph->edges[i].consumer < graph->n_tasks && graph->edges[i].producer < graph->n_tasks
         && graph->edges[i].consumer != graph->edges[i].producer && graph->edges[i].kinds != 0
         && graph->edges[i].kinds < PTO_DEP_RETAIN
         /* Cohorts are held in the order that the tasks have. */
         && (graph->n_holds == 0 || graph->edges[i].producer < graph->edges[i].consumer);
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
open_looks (struct looks *looks, const struct pto_plan *graph)
{
  *looks = (struct looks){ .starts = malloc (((size_t) graph->n_args + 1) * sizeof *looks->starts),
                           .held = calloc ((size_t) graph->n_cohorts + 1, sizeof *looks->held),
                           .taken = calloc ((size_t) graph->n_args + 1, sizeof *looks->taken) };
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
  for (uint32_t m = 0; m < parts->wish.n_members && ok; m++)
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
  uint32_t perhaps = 0;

  if ((task->kernel & ~PTO_PLAN_IF) >= graph->n_kernels || task->ring >= PTO_RINGS
      || task->terms.priority > PTO_MAX_PRIORITY || task->parts > graph->n_parts
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
      perhaps
          |= PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_USED && (arg->what & PTO_PLAN_PERHAPS) != 0;
    }
  /* The last argument of a conditional task is looked at. */
  if ((task->kernel & PTO_PLAN_IF) != 0
      && (task->n_args == 0
          || PTO_PLAN_SOURCE (graph->args[task->first_arg + task->n_args - 1].what)
                 < PTO_PLAN_TENSOR))
    return false;
  task->n_tensors = (uint16_t) n_tensors;
  return n_made == task->n_made && n_fenced == task->n_fenced && perhaps == task->perhaps
         && check_members (graph, task);
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
           && (parts == 0 || graph->parts[parts - 1].wish.cohort == PTO_COHORT_NONE
               || looks->held[graph->parts[parts - 1].wish.cohort]);
    }
  return ok && check_holds (graph, graph->n_tasks, looks) && looks->n_holds == graph->n_holds;
}

/* Are there so many? Each takes as many bytes. */
static bool
has_items (const struct pto_pack *pack, const struct array *array)
{
  union
  {
    struct pto_plan_param largest;
    uint64_t words[sizeof (struct pto_plan_param) / sizeof (uint64_t)];
  } none = { .words = { 0 } };
  struct pto_pack one = pto_pack_count ();

  if (array->pack != NULL)
    array->pack (&one, &none);
  return *array->n <= (pack->size - pack->at) / (array->pack != NULL ? one.at : array->size);
}

static enum pto_status
fail_for_memory (const struct pto_plan *graph, struct pto_report *report)
{
  return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for a graph of %u tasks"),
                         graph->n_tasks);
}

/* false: no memory. Items that are not there make the pack bad. */
static bool
take_items (struct pto_pack *pack, const struct array *array, uint32_t room)
{
  if (pack->bad || !has_items (pack, array))
    {
      pto_pack_refuse (pack);
      *array->n = 0;
      return true;
    }
  *array->items = calloc ((size_t) (room > *array->n ? room : *array->n) + 1, array->size);
  if (*array->items == NULL)
    return false;
  pack_items (pack, array);
  return true;
}

enum pto_status
pto_plan_unpack (struct pto_plan *graph, const void *bytes, uint64_t size,
                 struct pto_report *report)
{
  struct pto_pack pack = pto_pack_read (bytes, size);
  struct array arrays[N_ARRAYS];
  struct looks looks = { 0 };
  uint32_t version;
  bool ok;

  list_arrays (graph, arrays);
  version = pack_head (&pack, graph, arrays);
  if (version != 0 && version != VERSION)
    return pto_report_set (report, PTO_STATUS_TAMPERED,
                           _ ("a graph in form %u, of another libpto: this one reads form %u"),
                           version, VERSION);
  for (uint32_t i = 0; i < N_ARRAYS; i++)
    /* Completing adds some edges, as if the array had grown by itself. */
    if (!take_items (&pack, &arrays[i],
                     i == 0 ? power_of_two_at_least (graph->n_edges > 16 ? graph->n_edges : 16)
                            : 0))
      return fail_for_memory (graph, report);
  ok = !pack.bad && pack.at == size && graph->n_cohorts <= graph->n_holds;
  if (ok)
    {
      graph->creators = malloc (((size_t) graph->n_memory + 1) * sizeof *graph->creators);
      if (graph->creators == NULL || !open_looks (&looks, graph))
        {
          close_looks (&looks);
          return fail_for_memory (graph, report);
        }
      memset (graph->creators, 0xff, graph->n_memory * sizeof *graph->creators);
    }
  ok = ok && check_tables (graph) && check_tasks (graph, &looks);
  close_looks (&looks);
  if (!ok)
    return pto_report_set (report, PTO_STATUS_TAMPERED,
                           _ ("a graph of which only a part has arrived, or something else"));
  return pto_plan_complete (graph, report);
}
