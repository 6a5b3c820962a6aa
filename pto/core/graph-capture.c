/* graph-capture.c: how does what an orchestration submits become a graph?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "graph-capture.h"

#include "exec/translate.h"
#include "backpressure.h"
#include "core-placement.h"
#include "submission.h"

#include <sys/mman.h>

/* Where it is full, addresses come again: nothing is told apart by them. */
#define REGION_BYTES (UINT64_C (1) << 36)
/* Nodes of the TensorMap: address space, and what is used of it. */
#define MAP_NODES (1u << 24)

bool
pto_capture_begin (struct pto_engine *engine, struct pto_capture *capture)
{
  struct pto_map_config config = { .pool = MAP_NODES,
                                   .hazards = engine->config.hazards,
                                   .tails = engine->tails,
                                   .failed = &engine->failed };
  struct pto_map *map;

  if (engine->config.rename)
    return pto_engine_fail (
        engine, PTO_STATUS_INVALID_ARGS,
        _ ("a graph can not be captured where outputs are renamed: set rename to 0"));
  map = pto_map_new (&config);
  capture->region
      = mmap (NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == NULL || capture->region == MAP_FAILED)
    {
      if (capture->region != MAP_FAILED)
        munmap (capture->region, REGION_BYTES);
      pto_map_free (map);
      return pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                              _ ("no address space to capture a graph"));
    }
  capture->graph->captured = true;
  capture->map = engine->map;
  engine->map = map;
  engine->capture = capture;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    capture->first[r] = engine->rings[r].head;
  return true;
}

void
pto_capture_end (struct pto_engine *engine)
{
  struct pto_capture *capture = engine->capture;

  pto_map_free (engine->map);
  engine->map = capture->map;
  engine->capture = NULL;
  engine->submitted = 0;
  memset (&engine->stats, 0, sizeof engine->stats);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      engine->rings[r].head = capture->first[r];
      engine->rings[r].floor = capture->first[r];
      free (capture->tasks[r]);
    }
  free (capture->addresses);
  munmap (capture->region, REGION_BYTES);
}

bool
pto_capture_has (const struct pto_capture *capture, uint64_t address)
{
  return address - (uint64_t) (uintptr_t) capture->region < REGION_BYTES;
}

uint64_t
pto_capture_reserve (struct pto_capture *capture, uint64_t bytes)
{
  if (bytes > REGION_BYTES - capture->used)
    capture->used = 0;
  capture->used += bytes < REGION_BYTES ? bytes : 0;
  return (uint64_t) (uintptr_t) capture->region + capture->used
         - (bytes < REGION_BYTES ? bytes : 0);
}

/* Why that tensor of the caller's is no part of a graph; NULL: it is one. */
static const char *
judge (const struct pto_capture *capture, const Tensor *tensor)
{
  uint64_t offset;

  if (pto_capture_has (capture, tensor->buffer.addr))
    return _ (
        "is made of an address in memory of the runtime, which changes with every launch: make "
        "it with view(), reshape() or transpose() of the tensor that it is a part of");
  if (pto_plan_find_param (capture->graph, tensor, &offset) == UINT32_MAX)
    return _ (
        "lies in memory that is no argument of the run: a graph that is launched again can not "
        "know it; give it to the run as an argument");
  return NULL;
}

/* A number that points into memory of the graph would point there for ever. */
static bool
is_address (const struct pto_capture *capture, uint64_t word)
{
  const struct pto_plan *graph = capture->graph;

  if (pto_capture_has (capture, word))
    return true;
  for (uint32_t i = 0; i < pto_plan_n_given (graph); i++)
    if (graph->params[i].tensor.ndims > 0
        && word - graph->params[i].first < graph->params[i].extent)
      return true;
  return false;
}

static bool
refuse (struct pto_capture *capture, uint32_t index, const char *why)
{
  char text[512];

  snprintf (text, sizeof text, _ ("argument %" PRIu32 " %s"), index, why);
  capture->refuse (capture->data, text);
  return false;
}

static uint32_t
task_of (const struct pto_capture *capture, pto_task_id id)
{
  uint32_t ring = PTO_TASK_RING (id);

  return capture->tasks[ring][PTO_TASK_LOCAL (id) - capture->first[ring]];
}

/* Which memory of the graph a record of the runtime stands for. */
static uint32_t
find_memory (const struct pto_capture *capture, const struct PTO2Buffer *buffer)
{
  const struct pto_plan *graph = capture->graph;
  const struct pto_plan_task *creator = &graph->tasks[task_of (capture, buffer->space.creator)];

  for (uint32_t a = 0; a < creator->n_args; a++)
    {
      const struct pto_plan_arg *arg = &graph->args[creator->first_arg + a];

      if (PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_MADE
          && capture->addresses[arg->index] == buffer->addr)
        return arg->index;
    }
  return UINT32_MAX; /* not reached: whoever created it has it among its arguments */
}

/* false: no memory. */
static bool
add_made (struct pto_engine *engine, const Tensor *tensor, uint64_t address)
{
  struct pto_capture *capture = engine->capture;
  uint32_t memory = pto_plan_add_memory (capture->graph, tensor->buffer.size);

  if (!pto_array_has_room (capture->addresses, capture->n_addresses, capture->max_addresses)
      || capture->graph->no_memory)
    return false;
  capture->addresses[capture->n_addresses++] = address;
  pto_plan_add_use (capture->graph, memory, 0, tensor, true, false, true);
  return true;
}

static bool
add_param (struct pto_engine *engine, const PTOParam *param, uint64_t *made)
{
  struct pto_capture *capture = engine->capture;
  const Tensor *tensor = &param->tensor;
  bool writes = param->type != PTO_PARAM_INPUT && param->type != PTO_PARAM_NO_DEP;
  uint64_t offset;

  if (param->type == PTO_PARAM_SCALAR)
    pto_plan_add_number (capture->graph, param->scalar);
  else if ((param->type == PTO_PARAM_OUTPUT && tensor->buffer.addr == *made)
           || param->type == PTO_PARAM_SCRATCH)
    {
      uint64_t address = *made;

      *made += pto_engine_output_bytes (engine, tensor->buffer.size);
      if (!add_made (engine, tensor, address))
        return false;
    }
  else if (tensor->storage != NULL)
    pto_plan_add_use (capture->graph, find_memory (capture, tensor->storage), 0, tensor, false,
                      writes, pto_engine_finds_guard (engine, param->type));
  else
    {
      uint32_t index = pto_plan_find_param (capture->graph, tensor, &offset);

      pto_plan_add_tensor (capture->graph, index, offset, tensor, writes, true);
    }
  pto_plan_set_type (capture->graph, param->type);
  return true;
}

bool
pto_capture_task (struct pto_engine *engine, const struct pto_submit *submit, uint64_t heap,
                  uint64_t bytes)
{
  struct pto_capture *capture = engine->capture;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);
  uint64_t made = heap;
  const char *file;
  int32_t line;
  uint32_t task;
  bool ok = true;

  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      const PTOParam *param = &submit->params[i];
      const char *why = NULL;

      if (param->type == PTO_PARAM_SCALAR && is_address (capture, param->scalar))
        why = _ (
            "is a number that points into memory of the graph, which changes with every launch: "
            "give the tensor");
      else if (param->type != PTO_PARAM_SCALAR && param->type != PTO_PARAM_SCRATCH
               && param->tensor.storage == NULL && param->tensor.buffer.addr - heap >= bytes)
        why = judge (capture, &param->tensor);
      if (why != NULL)
        return refuse (capture, i, why);
    }
  task = pto_plan_add_task (capture->graph, submit, ring);
  file = pto_engine_get_call (engine, &line);
  pto_plan_set_place (capture->graph, file, (uint32_t) line);
  for (uint32_t i = 0; i < submit->n_params && submit->kernel != PTO_KERNEL_NONE; i++)
    if (submit->params[i].type == PTO_PARAM_COMMUTATIVE)
      pto_plan_add_token (capture->graph, engine->accesses[i].token);
  ok = pto_array_has_room (capture->tasks[ring], capture->n_in_ring[ring],
                           capture->max_in_ring[ring])
       && !capture->graph->no_memory;
  if (ok)
    capture->tasks[ring][capture->n_in_ring[ring]++] = task;
  for (uint32_t i = 0; i < submit->n_params && ok; i++)
    ok = add_param (engine, &submit->params[i], &made);
  for (uint32_t i = 0; i < engine->deps.count && ok; i++)
    if ((engine->deps.items[i].kinds & ~PTO_DEP_RETAIN) != 0)
      pto_plan_add_edge (capture->graph, task_of (capture, engine->deps.items[i].task), task,
                         engine->deps.items[i].kinds & ~PTO_DEP_RETAIN);
  if (!ok)
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for a graph of %" PRIu32 " tasks"),
                     capture->graph->n_tasks);
  return ok;
}

void
pto_capture_order (const struct pto_capture *capture, pto_task_id producer, pto_task_id consumer)
{
  pto_plan_add_edge (capture->graph, task_of (capture, producer), task_of (capture, consumer),
                     PTO_HAZARD_EXPLICIT);
}
