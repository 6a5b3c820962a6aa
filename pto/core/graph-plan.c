/* graph-plan.c: which tasks are there, and which of them comes after which, before any is
 * submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "graph-plan.h"

#include "exec/translate.h"
#include "core-placement.h"

#define NOBODY UINT32_MAX

struct pto_plan *
pto_plan_new (void)
{
  return calloc (1, sizeof (struct pto_plan));
}

static void
free_arrays (struct pto_plan *graph)
{
  void *arrays[]
      = { graph->tasks,   graph->places, graph->names,      graph->args,       graph->types,
          graph->deps,    graph->shapes, graph->kernels,    graph->params,     graph->parts,
          graph->members, graph->tokens, graph->extra,      graph->holds,      graph->creators,
          graph->sizes,   graph->edges,  graph->reductions, graph->shape_table };

  for (uint32_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    free (arrays[i]);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    free (graph->rings[r]);
}

void
pto_plan_free (struct pto_plan *graph)
{
  if (graph != NULL)
    free_arrays (graph);
  free (graph);
}

/* --- building --- */

/* Room for item n of an array, which doubles at powers of two. */
static bool
make_room (struct pto_plan *graph, void **items, uint32_t n, size_t size)
{
  uint32_t capacity = n < 16 ? 16 : 2 * n;
  void *grown;

  if (graph->no_memory)
    return false;
  if (n != 0 && (n < 16 || (n & (n - 1)) != 0))
    return true;
  grown = n < UINT32_MAX / 2 ? realloc (*items, capacity * size) : NULL;
  if (grown != NULL)
    *items = grown;
  else
    graph->no_memory = true;
  return grown != NULL;
}

#define MAKE_ROOM(graph, items, n) \
  make_room ((graph), (void **) &(graph)->items, (graph)->n, sizeof *(graph)->items)

uint32_t
pto_plan_add_param (struct pto_plan *graph, const struct pto_plan_param *param)
{
  if (MAKE_ROOM (graph, params, n_params))
    graph->params[graph->n_params++] = *param;
  return graph->n_params - 1;
}

void
pto_plan_add_kept (struct pto_plan *graph, const struct pto_plan_param *param)
{
  uint32_t n = graph->n_params;

  pto_plan_add_param (graph, param);
  graph->n_kept += graph->n_params - n;
}

uint32_t
pto_plan_add_memory (struct pto_plan *graph, uint64_t bytes)
{
  if (make_room (graph, (void **) &graph->creators, graph->n_memory, sizeof *graph->creators)
      && MAKE_ROOM (graph, sizes, n_memory))
    {
      graph->creators[graph->n_memory] = NOBODY;
      graph->sizes[graph->n_memory++] = bytes;
    }
  return graph->n_memory - 1;
}

static uint32_t
find_kernel (struct pto_plan *graph, uint32_t kernel, uint32_t queue)
{
  for (uint32_t i = 0; i < graph->n_kernels; i++)
    if (graph->kernels[i].kernel == kernel && graph->kernels[i].queue == queue)
      return i;
  if (MAKE_ROOM (graph, kernels, n_kernels))
    graph->kernels[graph->n_kernels++] = (struct pto_plan_kernel){ kernel, queue };
  return graph->n_kernels - 1;
}

/* Where that name begins among the graph's; NOBODY: no memory. */
static uint32_t
find_name (struct pto_plan *graph, const char *name)
{
  size_t bytes = strlen (name) + 1;
  uint32_t at = 0;
  char *grown;

  while (at < graph->n_names && strcmp (graph->names + at, name) != 0)
    at += (uint32_t) strlen (graph->names + at) + 1;
  if (at < graph->n_names)
    return at;
  grown = bytes < NOBODY - graph->n_names ? realloc (graph->names, graph->n_names + bytes) : NULL;
  if (grown == NULL)
    {
      graph->no_memory = true;
      return NOBODY;
    }
  memcpy (grown + at, name, bytes);
  graph->names = grown;
  graph->n_names += (uint32_t) bytes;
  return at;
}

bool
pto_plan_name_param (struct pto_plan *graph, uint32_t param, const char *name)
{
  uint32_t at = graph->no_memory ? NOBODY : find_name (graph, name);

  if (at == NOBODY)
    return false;
  graph->params[param].name = at + 1;
  return true;
}

void
pto_plan_set_place (struct pto_plan *graph, const char *file, uint32_t line)
{
  const struct pto_plan_place *before;
  uint32_t name;

  if (graph->no_memory || file == NULL || line == 0)
    return;
  /* Most often that of the task before. */
  before = graph->n_tasks > 1 ? &graph->places[graph->n_tasks - 2] : NULL;
  name = before != NULL && before->line > 0 && strcmp (graph->names + before->name, file) == 0
             ? before->name
             : find_name (graph, file);
  if (name != NOBODY)
    graph->places[graph->n_tasks - 1] = (struct pto_plan_place){ name, line };
}

static void
add_parts (struct pto_plan *graph, const struct pto_submit *submit, struct pto_plan_task *task)
{
  const struct pto_wish *wish = submit->wish;
  struct pto_plan_parts parts = { .n_blocks = submit->n_blocks > 1 ? submit->n_blocks : 1,
                                  .first_member = graph->n_members,
                                  .wish.cohort = PTO_COHORT_NONE };

  if (wish == NULL && parts.n_blocks == 1)
    return;
  if (wish != NULL)
    parts.wish = *wish;
  parts.wish.members = NULL;
  for (uint32_t i = 0; i < parts.wish.n_members; i++)
    {
      struct pto_need need = wish->members[i];

      need.kernel = find_kernel (graph, need.kernel, need.queue);
      if (!MAKE_ROOM (graph, members, n_members))
        return;
      graph->members[graph->n_members++] = need;
    }
  if (!MAKE_ROOM (graph, parts, n_parts))
    return;
  graph->parts[graph->n_parts++] = parts;
  task->parts = graph->n_parts;
}

static void
add_extra (struct pto_plan *graph, const struct pto_submit *submit, struct pto_plan_task *task)
{
  task->first_extra = graph->n_extra;
  task->extra_bytes = submit->extra_bytes;
  for (uint32_t at = 0; at < submit->extra_bytes; at += sizeof *graph->extra)
    {
      uint32_t left = submit->extra_bytes - at;
      uint64_t word = 0;

      if (!MAKE_ROOM (graph, extra, n_extra))
        return;
      memcpy (&word, (const uint8_t *) submit->extra + at, left < sizeof word ? left : sizeof word);
      graph->extra[graph->n_extra++] = word;
    }
}

uint32_t
pto_plan_add_task (struct pto_plan *graph, const struct pto_submit *submit, uint32_t ring)
{
  /* What has members goes into the line, and each of them to places of its kind. */
  uint32_t number = find_kernel (
      graph, submit->kernel, submit->wish != NULL ? submit->wish->members[0].queue : submit->queue);
  struct pto_plan_task task = { .kernel = submit->conditional ? number | PTO_PLAN_IF : number,
                                .first_arg = graph->n_args,
                                .ring = (uint8_t) ring,
                                .terms = submit->terms };

  add_parts (graph, submit, &task);
  add_extra (graph, submit, &task);
  if (make_room (graph, (void **) &graph->places, graph->n_tasks, sizeof *graph->places)
      && MAKE_ROOM (graph, tasks, n_tasks))
    {
      graph->places[graph->n_tasks] = (struct pto_plan_place){ .line = 0 };
      graph->tasks[graph->n_tasks++] = task;
    }
  return graph->n_tasks - 1;
}

void
pto_plan_add_hold (struct pto_plan *graph, uint32_t cohort, bool held)
{
  if (!MAKE_ROOM (graph, holds, n_holds))
    return;
  if (cohort >= graph->n_cohorts)
    graph->n_cohorts = cohort + 1;
  graph->holds[graph->n_holds++] = (struct pto_plan_hold){ graph->n_tasks, cohort, held };
}

void
pto_plan_add_token (struct pto_plan *graph, uint32_t token)
{
  struct pto_plan_task *task = &graph->tasks[graph->n_tasks - 1];

  if (!MAKE_ROOM (graph, tokens, n_tokens))
    return;
  if (task->n_tokens++ == 0)
    task->first_token = graph->n_tokens;
  graph->tokens[graph->n_tokens++] = token;
}

void
pto_plan_merge_tokens (struct pto_plan *graph, uint32_t from, uint32_t to)
{
  for (uint32_t i = 0; i < graph->n_tokens; i++)
    if (graph->tokens[i] == from)
      graph->tokens[i] = to;
  for (uint32_t i = 0; i < graph->n_reductions; i++)
    if (graph->reductions[i].turn == from)
      graph->reductions[i].turn = to;
}

static struct pto_plan_arg *
add_arg (struct pto_plan *graph, enum pto_plan_source source, uint32_t index, uint64_t value,
         PTOParamType type)
{
  struct pto_plan_arg *arg;

  if (!make_room (graph, (void **) &graph->types, graph->n_args, sizeof *graph->types)
      || !MAKE_ROOM (graph, args, n_args))
    return NULL;
  graph->types[graph->n_args] = (uint8_t) type;
  arg = &graph->args[graph->n_args++];
  *arg = (struct pto_plan_arg){ .value = value, .index = index, .what = source };
  graph->tasks[graph->n_tasks - 1].n_args++;
  return arg;
}

void
pto_plan_add_number (struct pto_plan *graph, uint64_t value)
{
  add_arg (graph, PTO_PLAN_NUMBER, 0, value, PTO_PARAM_SCALAR);
}

bool
pto_plan_bind_scalar (struct pto_plan *graph, uint32_t task, uint32_t index, uint32_t param)
{
  struct pto_plan_arg *arg;

  if (index >= graph->tasks[task].n_args)
    return false;
  arg = &graph->args[graph->tasks[task].first_arg + index];
  if (PTO_PLAN_SOURCE (arg->what) > PTO_PLAN_SCALAR)
    return false;
  *arg = (struct pto_plan_arg){ .index = param, .what = PTO_PLAN_SCALAR };
  return true;
}

static uint32_t
hash_shape (const TensorData *shape)
{
  const uint64_t *words = (const uint64_t *) (const void *) shape;
  uint64_t hash = 0;

  for (size_t i = 0; i < sizeof *shape / sizeof *words; i++)
    hash = (hash ^ words[i]) * UINT64_C (0x9e3779b97f4a7c15);
  return (uint32_t) (hash >> 32);
}

static bool
grow_shape_table (struct pto_plan *graph)
{
  uint32_t mask = graph->shape_mask == 0 ? 63 : 2 * graph->shape_mask + 1;
  uint32_t *table = malloc (((size_t) mask + 1) * sizeof *table);

  if (table == NULL)
    return false;
  memset (table, 0xff, ((size_t) mask + 1) * sizeof *table);
  for (uint32_t i = 0; i < graph->n_shapes; i++)
    {
      uint32_t at = hash_shape (&graph->shapes[i]) & mask;

      while (table[at] != NOBODY)
        at = (at + 1) & mask;
      table[at] = i;
    }
  free (graph->shape_table);
  graph->shape_table = table;
  graph->shape_mask = mask;
  return true;
}

/* Most tensors of a graph are of a few shapes: what is stored of each is small then. */
static uint32_t
find_shape (struct pto_plan *graph, const Tensor *tensor)
{
  TensorData shape
      = { .buffer.size = tensor->buffer.size, .ndims = tensor->ndims, .dtype = tensor->dtype };
  uint32_t at;

  for (uint32_t d = 0; d < tensor->ndims; d++)
    {
      shape.shapes[d] = tensor->shapes[d];
      shape.strides[d] = tensor->strides[d];
    }
  if (2 * graph->n_shapes >= graph->shape_mask && !grow_shape_table (graph))
    {
      graph->no_memory = true;
      return 0;
    }
  at = hash_shape (&shape) & graph->shape_mask;
  for (; graph->shape_table[at] != NOBODY; at = (at + 1) & graph->shape_mask)
    if (memcmp (&graph->shapes[graph->shape_table[at]], &shape, sizeof shape) == 0)
      return graph->shape_table[at];
  if (graph->n_shapes == PTO_PLAN_SHAPES_MAX || !MAKE_ROOM (graph, shapes, n_shapes))
    {
      graph->no_memory = true;
      return 0;
    }
  graph->shapes[graph->n_shapes] = shape;
  graph->shape_table[at] = graph->n_shapes;
  return graph->n_shapes++;
}

static void
add_tensor (struct pto_plan *graph, enum pto_plan_source source, uint32_t index, uint64_t offset,
            const Tensor *tensor, bool writes, bool fenced)
{
  struct pto_plan_arg *arg = add_arg (graph, source, index, offset,
                                      source == PTO_PLAN_MADE ? PTO_PARAM_OUTPUT
                                      : writes                ? PTO_PARAM_INOUT
                                                              : PTO_PARAM_INPUT);
  struct pto_plan_task *task = &graph->tasks[graph->n_tasks - 1];

  if (arg == NULL)
    return;
  arg->start = tensor->start_offset;
  arg->what |= find_shape (graph, tensor) << 8 | (fenced ? PTO_PLAN_FENCED : 0);
  task->n_tensors++;
  task->n_fenced += fenced;
}

void
pto_plan_add_tensor (struct pto_plan *graph, uint32_t param, uint64_t offset, const Tensor *tensor,
                     bool writes, bool fenced)
{
  if (writes)
    graph->params[param].written = true;
  add_tensor (graph, PTO_PLAN_TENSOR, param, offset, tensor, writes, fenced);
}

void
pto_plan_add_use (struct pto_plan *graph, uint32_t memory, uint64_t offset, const Tensor *tensor,
                  bool makes, bool writes, bool ordered)
{
  struct pto_plan_task *task = &graph->tasks[graph->n_tasks - 1];
  uint64_t lo, hi;
  bool is_part;
  bool fenced;

  if (graph->no_memory)
    return;
  makes = makes && graph->creators[memory] == NOBODY;
  is_part = makes && (!pto_region_contiguous (tensor, &lo, &hi) || hi - lo != graph->sizes[memory]);
  if (makes)
    {
      graph->creators[memory] = graph->n_tasks - 1;
      task->n_made++;
    }
  /* What lies behind it is written when the task that makes it begins. */
  fenced = graph->creators[memory] != graph->n_tasks - 1;
  add_tensor (graph, makes ? PTO_PLAN_MADE : PTO_PLAN_USED, memory, offset, tensor, writes, fenced);
  if (graph->no_memory)
    return;
  graph->args[graph->n_args - 1].what
      |= (is_part ? PTO_PLAN_PART : 0) | (fenced && !ordered ? PTO_PLAN_PERHAPS : 0);
  task->perhaps |= fenced && !ordered;
}

void
pto_plan_add_unknown (struct pto_plan *graph, const Tensor *tensor)
{
  add_tensor (graph, PTO_PLAN_USED, NOBODY, 0, tensor, true, true);
}

void
pto_plan_set_type (struct pto_plan *graph, uint32_t type)
{
  if (!graph->no_memory)
    graph->types[graph->n_args - 1] = (uint8_t) type;
}

struct pto_plan_reduction *
pto_plan_new_reduction (struct pto_plan *graph)
{
  return MAKE_ROOM (graph, reductions, n_reductions) ? &graph->reductions[graph->n_reductions++]
                                                     : NULL;
}

void
pto_plan_add_edge (struct pto_plan *graph, uint32_t producer, uint32_t consumer, uint32_t kinds)
{
  if (MAKE_ROOM (graph, edges, n_edges))
    graph->edges[graph->n_edges++] = (struct pto_plan_edge){ consumer, producer, kinds };
}

uint32_t
pto_plan_find_param (const struct pto_plan *graph, const Tensor *tensor, uint64_t *offset)
{
  uint64_t first = tensor->buffer.addr + tensor->start_offset * pto_dtype_size (tensor->dtype);
  uint64_t extent = pto_tensor_extent (tensor);

  for (uint32_t i = 0; i < graph->n_params; i++)
    {
      const struct pto_plan_param *param = &graph->params[i];

      if (param->tensor.ndims > 0 && first - param->first <= param->extent
          && extent <= param->extent - (first - param->first))
        {
          *offset = tensor->buffer.addr - param->first;
          return i;
        }
    }
  return NOBODY;
}

/* --- completing --- */

/* Does an argument before that one make its memory? */
static bool
is_made_before (const struct pto_plan *graph, uint32_t task, uint32_t index)
{
  const struct pto_plan_arg *args = &graph->args[graph->tasks[task].first_arg];

  for (uint32_t a = 0; a < index; a++)
    if (PTO_PLAN_SOURCE (args[a].what) == PTO_PLAN_MADE && args[a].index == args[index].index)
      return true;
  return false;
}

/* "graph.c:12: ", or nothing: before what is wrong with a task. */
struct place_words
{
  char text[300];
};

static struct place_words
place_of (const struct pto_plan *graph, uint32_t task)
{
  uint32_t line;
  const char *file = pto_plan_get_place (graph, task, &line);
  struct place_words words = { "" };

  if (file != NULL)
    snprintf (words.text, sizeof words.text, "%.250s:%" PRIu32 ": ", file, line);
  return words;
}

/* Who uses what a task has made comes behind it, and keeps it. */
static enum pto_status
add_uses (struct pto_plan *graph, struct pto_report *report)
{
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t a = 0; a < graph->tasks[t].n_args; a++)
      {
        const struct pto_plan_arg *arg = &graph->args[graph->tasks[t].first_arg + a];
        uint32_t creator;

        /* Who reduces gets a copy, which is not made yet. */
        if (PTO_PLAN_SOURCE (arg->what) != PTO_PLAN_USED || arg->index == NOBODY)
          continue;
        creator = graph->creators[arg->index];
        if (creator == NOBODY)
          return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                                 _ ("%stask %" PRIu32 ": argument %" PRIu32
                                    " is a tensor that no task of the graph outputs: add one that "
                                    "does, or have it be an argument of the graph"),
                                 place_of (graph, t).text, t, a);
        if (creator != t)
          pto_plan_add_edge (graph, creator, t, PTO_DEP_RETAIN);
        else if (!is_made_before (graph, t, a))
          return pto_report_set (
              report, PTO_STATUS_INVALID_ARGS,
              _ ("%stask %" PRIu32 ": argument %" PRIu32
                 " is a tensor that the task itself outputs, by an argument behind "
                 "it: no task has output it before"),
              place_of (graph, t).text, t, a);
      }
  return PTO_OK;
}

/* Numbers of the tasks in an order in which consumers come behind their producers, the lowest
 * first among those that may come next: order[] of old numbers. Edges are sorted by their
 * producers, from first[] on. Gives how many there are: the others are in a circle. */
static uint32_t
sort_tasks (const struct pto_plan *graph, const struct pto_plan_edge *edges, const uint32_t *first,
            uint32_t *waits, uint32_t *heap, uint32_t *order)
{
  uint32_t n_heap = 0;
  uint32_t n = 0;

  memset (waits, 0, graph->n_tasks * sizeof *waits);
  for (uint32_t e = 0; e < graph->n_edges; e++)
    waits[edges[e].consumer]++;
  /* Ascending, so it is a heap. */
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    if (waits[t] == 0)
      heap[n_heap++] = t;
  while (n_heap > 0)
    {
      uint32_t task = heap[0];
      uint32_t last = heap[--n_heap];
      uint32_t at = 0;

      for (uint32_t child = 1; child < n_heap; child = 2 * at + 1)
        {
          child += child + 1 < n_heap && heap[child + 1] < heap[child];
          if (heap[child] >= last)
            break;
          heap[at] = heap[child];
          at = child;
        }
      heap[at] = last;
      order[n++] = task;
      for (uint32_t e = first[task]; e < first[task + 1]; e++)
        {
          uint32_t fresh = edges[e].consumer;

          if (--waits[fresh] > 0)
            continue;
          for (at = n_heap++; at > 0 && heap[(at - 1) / 2] > fresh; at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
          heap[at] = fresh;
        }
    }
  return n;
}

/* Edges by one of their ends, as they came otherwise; first[i] is where those of i begin. */
static void
sort_edges (const struct pto_plan *graph, bool by_consumer, struct pto_plan_edge *sorted,
            uint32_t *first)
{
  memset (first, 0, (graph->n_tasks + 1) * sizeof *first);
  for (uint32_t e = 0; e < graph->n_edges; e++)
    first[by_consumer ? graph->edges[e].consumer : graph->edges[e].producer]++;
  for (uint32_t t = 0, sum = 0; t <= graph->n_tasks; t++)
    {
      uint32_t n = first[t];

      first[t] = sum;
      sum += n;
    }
  for (uint32_t e = 0; e < graph->n_edges; e++)
    sorted[first[by_consumer ? graph->edges[e].consumer : graph->edges[e].producer]++]
        = graph->edges[e];
  for (uint32_t t = graph->n_tasks; t > 0; t--)
    first[t] = first[t - 1];
  first[0] = 0;
}

/* What completing needs for a while: an item for each task, and one more. */
struct workshop
{
  struct pto_plan_edge *edges;
  struct pto_plan_task *tasks;
  struct pto_plan_place *places;
  struct pto_dep *deps;
  uint32_t *first;
  uint32_t *a;
  uint32_t *b;
  uint32_t *c;
};

static bool
open_workshop (const struct pto_plan *graph, struct workshop *shop)
{
  size_t n = (size_t) graph->n_tasks + 1;

  shop->edges = malloc (((size_t) graph->n_edges + 1) * sizeof *shop->edges);
  shop->tasks = malloc (n * sizeof *shop->tasks);
  shop->places = malloc (n * sizeof *shop->places);
  shop->deps = malloc (n * sizeof *shop->deps);
  shop->first = malloc (4 * n * sizeof *shop->first);
  if (shop->edges == NULL || shop->tasks == NULL || shop->places == NULL || shop->deps == NULL
      || shop->first == NULL)
    return false;
  shop->a = shop->first + n;
  shop->b = shop->a + n;
  shop->c = shop->b + n;
  return true;
}

static void
close_workshop (struct workshop *shop)
{
  free (shop->edges);
  free (shop->tasks);
  free (shop->places);
  free (shop->deps);
  free (shop->first);
}

static enum pto_status
order_tasks (struct pto_plan *graph, struct workshop *shop, struct pto_report *report)
{
  uint32_t *order = shop->c;
  uint32_t *number = shop->a;
  uint32_t n;
  bool forward = true;

  for (uint32_t e = 0; e < graph->n_edges; e++)
    forward = forward && graph->edges[e].producer < graph->edges[e].consumer;
  if (forward)
    return PTO_OK;
  sort_edges (graph, false, shop->edges, shop->first);
  n = sort_tasks (graph, shop->edges, shop->first, shop->a, shop->b, order);
  if (n < graph->n_tasks)
    {
      uint32_t left = 0;

      while (shop->a[left] == 0)
        left++;
      return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             _ ("%stask %" PRIu32 " of the graph comes after itself: %" PRIu32
                                " of %" PRIu32 " tasks wait in a circle"),
                             place_of (graph, left).text, left, graph->n_tasks - n, graph->n_tasks);
    }
  memcpy (shop->tasks, graph->tasks, graph->n_tasks * sizeof *graph->tasks);
  memcpy (shop->places, graph->places, graph->n_tasks * sizeof *graph->places);
  for (uint32_t t = 0; t < n; t++)
    {
      graph->tasks[t] = shop->tasks[order[t]];
      graph->places[t] = shop->places[order[t]];
      number[order[t]] = t;
    }
  for (uint32_t e = 0; e < graph->n_edges; e++)
    {
      graph->edges[e].consumer = number[graph->edges[e].consumer];
      graph->edges[e].producer = number[graph->edges[e].producer];
    }
  for (uint32_t m = 0; m < graph->n_memory; m++)
    if (graph->creators[m] != NOBODY)
      graph->creators[m] = number[graph->creators[m]];
  for (uint32_t r = 0; r < graph->n_reductions; r++)
    graph->reductions[r].task = number[graph->reductions[r].task];
  return PTO_OK;
}

/* Tasks that fill and combine what others reduce. */
static enum pto_status
settle (struct pto_plan *graph, struct workshop *shop, struct pto_report *report)
{
  enum pto_status status;

  /* Before numbers change. */
  for (uint32_t r = 0; r < graph->n_reductions; r++)
    if (graph->reductions[r].is_memory && graph->creators[graph->reductions[r].index] == NOBODY)
      return pto_report_set (
          report, PTO_STATUS_INVALID_ARGS,
          _ ("%stask %" PRIu32 " of the graph reduces into a tensor that no task of it "
             "outputs: add one that does, or have it be an argument of the graph"),
          place_of (graph, graph->reductions[r].task).text, graph->reductions[r].task);
  status = order_tasks (graph, shop, report);
  if (status != PTO_OK)
    return status;
  sort_edges (graph, true, shop->edges, shop->first);
  pto_plan_settle (graph, shop->edges, shop->first);
  close_workshop (shop);
  *shop = (struct workshop){ 0 };
  if (!graph->no_memory && !open_workshop (graph, shop))
    graph->no_memory = true;
  return status;
}

static bool
place_tasks (struct pto_plan *graph)
{
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      struct pto_plan_task *task = &graph->tasks[t];

      task->position = graph->n_in_ring[task->ring]++;
      task->last_use = t;
    }
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      graph->rings[r] = malloc (((size_t) graph->n_in_ring[r] + 1) * sizeof *graph->rings[r]);
      if (graph->rings[r] == NULL)
        return false;
    }
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    graph->rings[graph->tasks[t].ring][graph->tasks[t].position] = t;
  return true;
}

static uint32_t
task_of (const struct pto_plan *graph, const struct pto_dep *dep)
{
  return graph->rings[PTO_TASK_RING (dep->task)][PTO_TASK_LOCAL (dep->task)];
}

/* Each producer once, by the name that it has in a launch. */
static bool
place_deps (struct pto_plan *graph, struct workshop *shop)
{
  uint32_t *seen = shop->a; /* the consumer that has named it last ... */
  uint32_t *at = shop->b;   /* ... there */

  graph->deps = malloc (((size_t) graph->n_edges + 1) * sizeof *graph->deps);
  if (graph->deps == NULL)
    return false;
  sort_edges (graph, true, shop->edges, shop->first);
  memset (seen, 0xff, graph->n_tasks * sizeof *seen);
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      struct pto_plan_task *task = &graph->tasks[t];

      task->first_dep = graph->n_deps;
      for (uint32_t e = shop->first[t]; e < shop->first[t + 1]; e++)
        {
          uint32_t producer = shop->edges[e].producer;
          struct pto_plan_task *of = &graph->tasks[producer];

          if ((shop->edges[e].kinds & PTO_DEP_RETAIN) != 0)
            of->last_use = t; /* ascending */
          if (seen[producer] == t)
            {
              graph->deps[at[producer]].kinds |= shop->edges[e].kinds;
              continue;
            }
          seen[producer] = t;
          at[producer] = graph->n_deps;
          graph->deps[graph->n_deps++]
              = (struct pto_dep){ PTO_TASK_ID (of->ring, of->position), shop->edges[e].kinds };
        }
      task->n_deps = graph->n_deps - task->first_dep;
      graph->max_deps = max_of (graph->max_deps, task->n_deps);
      if (task->n_args > graph->max_args + ((task->kernel & PTO_PLAN_IF) != 0))
        graph->max_args = task->n_args - ((task->kernel & PTO_PLAN_IF) != 0);
    }
  return true;
}

static void
find_floors (struct pto_plan *graph)
{
  uint32_t floors[PTO_RINGS] = { 0 };

  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      struct pto_plan_task *task = &graph->tasks[t];
      uint32_t floor = floors[task->ring];

      while (floor < task->position && graph->tasks[graph->rings[task->ring][floor]].last_use < t)
        floor++;
      task->floor = floors[task->ring] = floor;
    }
}

/* Looks at the producers of its producers; in graphs that are meant to run, tasks have some. */
#define LOOKS_MAX 65536u

/* Puts those deps last that only order, and whose producers another one of them waits for; both
 * kinds stay as they came, so that a copy of the graph that is completed anew is the same. */
static void
find_implied (struct pto_plan *graph, struct workshop *shop)
{
  uint32_t *named = shop->a;   /* the last consumer that names the task ... */
  uint32_t *implied = shop->b; /* ... and to which it is implied */

  memset (named, 0xff, graph->n_tasks * sizeof *named);
  memset (implied, 0xff, graph->n_tasks * sizeof *implied);
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      struct pto_plan_task *task = &graph->tasks[t];
      struct pto_dep *deps = &graph->deps[task->first_dep];
      uint32_t looks = 0;
      uint32_t n = task->n_deps;
      uint32_t n_last = 0;

      for (uint32_t d = 0; d < n; d++)
        named[task_of (graph, &deps[d])] = t;
      for (uint32_t d = 0; d < n && looks < LOOKS_MAX; d++)
        {
          const struct pto_plan_task *producer = &graph->tasks[task_of (graph, &deps[d])];

          if ((deps[d].kinds & ~PTO_DEP_RETAIN) == 0)
            continue;
          looks += producer->n_deps;
          for (uint32_t e = 0; e < producer->n_deps; e++)
            {
              const struct pto_dep *before = &graph->deps[producer->first_dep + e];

              if ((before->kinds & ~PTO_DEP_RETAIN) != 0 && named[task_of (graph, before)] == t)
                implied[task_of (graph, before)] = t;
            }
        }
      task->n_needed = 0;
      for (uint32_t d = 0; d < n; d++)
        if ((deps[d].kinds & PTO_DEP_RETAIN) == 0 && implied[task_of (graph, &deps[d])] == t)
          shop->deps[n_last++] = deps[d];
        else
          deps[task->n_needed++] = deps[d];
      memcpy (&deps[task->n_needed], shop->deps, n_last * sizeof *deps);
    }
}

static uint32_t
hash_tensor (const struct pto_plan_arg *arg)
{
  uint64_t hash
      = (arg->value ^ arg->start << 32 ^ arg->start >> 32) * UINT64_C (0x9e3779b97f4a7c15);

  hash = (hash ^ arg->index) * UINT64_C (0x9e3779b97f4a7c15);
  hash = (hash ^ PTO_PLAN_SHAPE (arg->what)) * UINT64_C (0x9e3779b97f4a7c15);
  return (uint32_t) (hash >> 32);
}

static bool
is_same_tensor (const struct pto_plan_arg *a, const struct pto_plan_arg *b)
{
  return a->value == b->value && a->start == b->start && a->index == b->index
         && PTO_PLAN_SHAPE (a->what) == PTO_PLAN_SHAPE (b->what)
         && (PTO_PLAN_SOURCE (a->what) == PTO_PLAN_TENSOR)
                == (PTO_PLAN_SOURCE (b->what) == PTO_PLAN_TENSOR);
}

/* A tensor that was met. */
struct met
{
  uint32_t first; /* the argument that it was then */
  uint32_t number;
};
#define ONCE UINT32_MAX
#define AGAIN (UINT32_MAX - 1)

static struct met *
find_met (const struct pto_plan *graph, struct met *table, uint32_t mask, uint32_t index)
{
  const struct pto_plan_arg *arg = &graph->args[index];
  uint32_t at = hash_tensor (arg) & mask;

  while (table[at].first != NOBODY && !is_same_tensor (&graph->args[table[at].first], arg))
    at = (at + 1) & mask;
  return &table[at];
}

/* Which arguments are the same tensor? Twice: what is met once is no more than it was. */
static bool
share_tensors (struct pto_plan *graph)
{
  uint32_t mask = 15;
  struct met *table;

  while (mask / 2 < graph->n_args)
    mask = 2 * mask + 1;
  table = malloc (((size_t) mask + 1) * sizeof *table);
  if (table == NULL)
    return false;
  memset (table, 0xff, ((size_t) mask + 1) * sizeof *table);
  for (uint32_t i = 0; i < graph->n_args; i++)
    if (PTO_PLAN_SOURCE (graph->args[i].what) >= PTO_PLAN_TENSOR)
      {
        struct met *met = find_met (graph, table, mask, i);

        if (met->first != NOBODY)
          met->number = AGAIN;
        else
          met->first = i;
      }
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t a = 0; a < graph->tasks[t].n_args; a++)
      {
        uint32_t index = graph->tasks[t].first_arg + a;
        struct pto_plan_arg *arg = &graph->args[index];
        struct met *met;

        if (PTO_PLAN_SOURCE (arg->what) < PTO_PLAN_TENSOR)
          continue;
        met = find_met (graph, table, mask, index);
        if (met->number == ONCE)
          continue;
        graph->tasks[t].n_tensors--;
        if (met->number == AGAIN)
          {
            met->first = index;
            met->number = graph->n_shared++;
            arg->what |= PTO_PLAN_FIRST;
          }
        else
          {
            arg->what |= PTO_PLAN_AGAIN;
            arg->start = met->number;
          }
      }
  free (table);
  return true;
}

enum pto_status
pto_plan_complete (struct pto_plan *graph, struct pto_report *report)
{
  struct workshop shop = { 0 };
  enum pto_status status = PTO_OK;
  bool ok = false;

  if (!graph->no_memory)
    status = add_uses (graph, report);
  if (status == PTO_OK && !graph->no_memory && open_workshop (graph, &shop))
    {
      if (graph->n_reductions > 0)
        status = settle (graph, &shop, report);
      if (status == PTO_OK && !graph->no_memory)
        status = order_tasks (graph, &shop, report);
      ok = status == PTO_OK && !graph->no_memory && place_tasks (graph) && place_deps (graph, &shop)
           && share_tensors (graph);
      if (ok)
        {
          find_floors (graph);
          find_implied (graph, &shop);
        }
    }
  close_workshop (&shop);
  if (!ok && status == PTO_OK)
    graph->no_memory = true;
  if (graph->no_memory)
    status = pto_report_set (report, PTO_STATUS_NO_MEMORY,
                             _ ("no memory for a graph of %" PRIu32 " tasks"), graph->n_tasks);
  for (uint32_t d = 0; ok && d < graph->n_deps; d++)
    graph->n_orders += (graph->deps[d].kinds & ~PTO_DEP_RETAIN) != 0;
  graph->complete = ok;
  if (ok)
    {
      free (graph->edges);
      graph->edges = NULL;
      free (graph->shape_table);
      graph->shape_table = NULL;
      free (graph->reductions);
      graph->reductions = NULL;
      graph->n_reductions = 0;
    }
  return status;
}

/* --- what it is launched with --- */

static bool
is_same_shape (const Tensor *a, const Tensor *b)
{
  bool same = a->ndims == b->ndims && a->dtype == b->dtype;

  for (uint32_t d = 0; same && d < a->ndims; d++)
    /* Of one element nobody takes a step. */
    same = a->shapes[d] == b->shapes[d] && (a->strides[d] == b->strides[d] || a->shapes[d] == 1);
  return same;
}

/* "4x16 float32", and what is unusual about its strides. */
static void
describe_shape (const Tensor *tensor, char *text, size_t size)
{
  size_t used = 0;

  for (uint32_t d = 0; d < tensor->ndims && used < size; d++)
    used += (size_t) snprintf (text + used, size - used, "%s%" PRIu64, d > 0 ? "x" : "",
                               tensor->shapes[d]);
  if (used < size)
    used += (size_t) snprintf (text + used, size - used, " %s", pto_dtype_name (tensor->dtype));
  if (pto2_tensor_is_contiguous (tensor))
    return;
  for (uint32_t d = 0; d < tensor->ndims && used < size; d++)
    used += (size_t) snprintf (text + used, size - used, "%s%" PRIu64,
                               d > 0 ? "," : _ (" with steps of "), tensor->strides[d]);
}

/* "2.5"; with what it is, "3 (an integer)", for two that would look alike. */
static void
describe_number (uint64_t kind, uint64_t word, bool say_kind, char *text, size_t size)
{
  static const char *const names[]
      = { N_ (" (an integer)"), N_ (" (an integer)"), N_ (" (a float)"), N_ (" (a double)") };
  float single;
  double number;
  char digits[40];

  memcpy (&single, &word, sizeof single);
  memcpy (&number, &word, sizeof number);
  switch (kind)
    {
    case PTO_PLAN_SIGNED:
      snprintf (digits, sizeof digits, "%" PRId64, (int64_t) word);
      break;
    case PTO_PLAN_FLOAT:
      snprintf (digits, sizeof digits, "%.7g", (double) single);
      if (strtof (digits, NULL) != single)
        snprintf (digits, sizeof digits, "%.9g", (double) single);
      break;
    case PTO_PLAN_DOUBLE:
      snprintf (digits, sizeof digits, "%.15g", number);
      if (strtod (digits, NULL) != number)
        snprintf (digits, sizeof digits, "%.17g", number);
      break;
    default:
      snprintf (digits, sizeof digits, "%" PRIu64, word);
      kind = PTO_PLAN_UNSIGNED;
      break;
    }
  snprintf (text, size, "%s%s", digits, say_kind ? _ (names[kind]) : "");
}

struct pto_plan_words
pto_plan_describe_param (const struct pto_plan *graph, uint32_t param)
{
  const char *name = pto_plan_get_param_name (graph, param);
  struct pto_plan_words words;

  if (name != NULL)
    snprintf (words.text, sizeof words.text, "%" PRIu32 " (\"%s\")", param, name);
  else
    snprintf (words.text, sizeof words.text, "%" PRIu32, param);
  return words;
}

static bool
overlap (uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
  return a < b + b_bytes && b < a + a_bytes;
}

/* What depends on what, and whose a tensor is, was found for arguments that lay so. */
static enum pto_status
check_overlaps (const struct pto_plan *graph, const struct pto_plan_given *given,
                struct pto_report *report)
{
  uint32_t n = pto_plan_n_given (graph);

  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < i; j++)
      {
        const struct pto_plan_param *a = &graph->params[i];
        const struct pto_plan_param *b = &graph->params[j];
        bool before;
        bool now;

        if (a->tensor.ndims == 0 || b->tensor.ndims == 0)
          continue;
        before = overlap (a->first, a->extent, b->first, b->extent);
        now = overlap (given[i].word, a->extent, given[j].word, b->extent);
        if (before && (!now || a->first - b->first != given[i].word - given[j].word))
          return pto_report_set (
              report, PTO_STATUS_INVALID_ARGS,
              _ ("arguments %s and %s of the graph overlapped when it was made, and do not in the same "
                 "way now: give them so, or make a graph for these"),
              pto_plan_describe_param (graph, j).text, pto_plan_describe_param (graph, i).text);
        if (!before && now && (a->written || b->written))
          return pto_report_set (
              report, PTO_STATUS_INVALID_ARGS,
              _ ("arguments %s and %s of the graph overlap, and a task writes there, but they lay "
                 "apart when it was made: give them so, or make a graph for these"),
              pto_plan_describe_param (graph, j).text, pto_plan_describe_param (graph, i).text);
      }
  return PTO_OK;
}

/* Does a task write where the argument lies and memory that is kept as well? */
static bool
may_meet (const struct pto_plan *graph, uint32_t param, uint64_t begin)
{
  const struct pto_plan_param *moved = &graph->params[param];
  uint32_t k = pto_plan_n_given (graph);

  while (k < graph->n_params
         && !((moved->written || graph->params[k].written)
              && overlap (graph->params[k].first, graph->params[k].extent, begin, moved->extent)))
    k++;
  return k < graph->n_params;
}

/* No edge orders tasks that use an argument and tasks that use kept memory, if the two were apart.
 * So an argument that has moved must not lie where tasks use kept memory. */
static enum pto_status
check_kept (const struct pto_plan *graph, const struct pto_plan_given *given, uint32_t param,
            struct pto_report *report)
{
  const struct pto_plan_param *moved = &graph->params[param];

  if (moved->tensor.ndims == 0 || given[param].word == moved->first
      || !may_meet (graph, param, given[param].word))
    return PTO_OK;
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t a = 0; a < graph->tasks[t].n_args; a++)
      {
        const struct pto_plan_arg *arg = &graph->args[graph->tasks[t].first_arg + a];
        const TensorData *shape = &graph->shapes[PTO_PLAN_SHAPE (arg->what)];

        /* AGAIN: the same tensor was looked at where it came first. */
        if (PTO_PLAN_SOURCE (arg->what) != PTO_PLAN_TENSOR || arg->index < pto_plan_n_given (graph)
            || (arg->what & PTO_PLAN_AGAIN) != 0
            || (!moved->written && !graph->params[arg->index].written))
          continue;
        if (overlap (
                graph->params[arg->index].first + arg->value
                    + arg->start * pto_dtype_size ((DataType) shape->dtype),
                pto_extent (shape->ndims, (DataType) shape->dtype, shape->shapes, shape->strides),
                given[param].word, moved->extent))
          return pto_report_set (
              report, PTO_STATUS_INVALID_ARGS,
              _ ("argument %s of the graph overlaps memory that task %" PRIu32
                 " has from its capture, and lay elsewhere then: capture a graph for this argument"),
              pto_plan_describe_param (graph, param).text, t);
      }
  return PTO_OK;
}

enum pto_status
pto_plan_check (const struct pto_plan *graph, const struct pto_plan_given *given, uint32_t n,
                struct pto_report *report)
{
  if (!graph->complete)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS, _ ("the graph is not complete"));
  if (n != pto_plan_n_given (graph))
    {
      bool is_named = n < pto_plan_n_given (graph) && pto_plan_get_param_name (graph, n) != NULL;
      char given_text[60];

      snprintf (given_text, sizeof given_text,
                P_ ("%" PRIu32 " is given", "%" PRIu32 " are given", n), n);
      return pto_report_set (
          report, PTO_STATUS_INVALID_ARGS,
          P_ ("the graph takes %" PRIu32 " argument, but %s%s%s",
              "the graph takes %" PRIu32 " arguments, but %s%s%s", pto_plan_n_given (graph)),
          pto_plan_n_given (graph), given_text, is_named ? _ (": the next one is ") : "",
          is_named ? pto_plan_describe_param (graph, n).text : "");
    }
  for (uint32_t i = 0; i < n; i++)
    {
      const struct pto_plan_param *param = &graph->params[i];
      bool is_tensor = param->tensor.ndims > 0;
      char wanted[160];
      char got[160];

      if (is_tensor != (given[i].tensor != NULL))
        return pto_report_set (
            report, PTO_STATUS_INVALID_ARGS,
            is_tensor ? _ ("argument %s of the graph is a tensor, but a number is given")
                      : _ ("argument %s of the graph is a number, but a tensor is given"),
            pto_plan_describe_param (graph, i).text);
      if (!is_tensor && param->fixed && given[i].word != param->word)
        {
          bool differ = param->kind != given[i].kind
                        && (param->kind > PTO_PLAN_SIGNED || given[i].kind > PTO_PLAN_SIGNED);

          describe_number (param->kind, param->word, differ, wanted, sizeof wanted);
          describe_number (given[i].kind, given[i].word, differ, got, sizeof got);
          return pto_report_set (
              report, PTO_STATUS_INVALID_ARGS,
              _ ("argument %s of the graph is the number %s, for which it was captured, but "
                 "%s is given: capture one for that"),
              pto_plan_describe_param (graph, i).text, wanted, got);
        }
      if (!is_tensor)
        continue;
      if (!is_same_shape (&param->tensor, given[i].tensor))
        {
          describe_shape (&param->tensor, wanted, sizeof wanted);
          describe_shape (given[i].tensor, got, sizeof got);
          return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                                 _ ("argument %s of the graph is %s, but %s is given"),
                                 pto_plan_describe_param (graph, i).text, wanted, got);
        }
      if (param->written && given[i].read_only)
        return pto_report_set (
            report, PTO_STATUS_INVALID_ARGS,
            _ ("argument %s of the graph is written, but its memory can only be read"),
            pto_plan_describe_param (graph, i).text);
    }
  for (uint32_t i = 0; graph->n_kept > 0 && i < n; i++)
    if (check_kept (graph, given, i, report) != PTO_OK)
      return report->status;
  return check_overlaps (graph, given, report);
}
