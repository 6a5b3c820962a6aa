/* record-submit.c: what does the record of a run say of the submitter's doings?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "record-submit.h"

#include "commutative.h"
#include "core-placement.h"
#include "task-parts.h"
#include "tensor-map.h"

/* Where the orchestration is, as records have it: in the upper bits of an extra. Without a line
 * there is no file. */
static uint64_t
source (struct pto_engine *engine, const char *file, int32_t line)
{
  uint32_t number = line > 0 ? pto_trace_find_file (engine->files, file) : 0;

  return number == 0 ? 0 : (uint64_t) (uint32_t) line << 32 | number << 16;
}

static void
add_dimensions (struct pto_trace_buffer *trace, const TensorData *tensor)
{
  uint32_t n = tensor->ndims < PTO2_TENSOR_MAX_DIMS ? tensor->ndims : PTO2_TENSOR_MAX_DIMS;
  uint64_t wide = 0;

  for (uint32_t d = 0; d < n; d++)
    wide |= (tensor->shapes[d] | tensor->strides[d]) >> 32;
  if (wide != 0)
    for (uint32_t d = 0; d < n; d++)
      pto_trace_add (trace, PTO_TRACE_SHAPE_WIDE, tensor->shapes[d], tensor->strides[d], d, 0);
  else
    for (uint32_t d = 0; d < n; d += 2)
      {
        bool two = d + 1 < n;

        pto_trace_add (trace, PTO_TRACE_SHAPE,
                       tensor->shapes[d] | (two ? tensor->shapes[d + 1] << 32 : 0),
                       tensor->strides[d] | (two ? tensor->strides[d + 1] << 32 : 0), d, 0);
      }
}

const TensorData *
pto_watched_tensor (const struct pto_watched *task, uint32_t argument)
{
  return (const TensorData *) (uintptr_t) task->slot->payload->args[argument];
}

const char *
pto_watched_kernel (const struct pto_watched *task, uint32_t member)
{
  const struct pto_slot *slot = task->slot;

  if (slot->kernel == PTO_KERNEL_NONE)
    return NULL;
  if (slot->queue == PTO_QUEUE_LINE)
    return member < slot->party->n_members
               ? pto_engine_kernel_name (task->engine, slot->party->members[member].need.kernel)
               : NULL;
  return member == 0 ? pto_engine_kernel_name (task->engine, slot->kernel) : NULL;
}

static void
tell_watch (struct pto_engine *engine, const struct pto_slot *slot, const uint8_t *types)
{
  struct pto_watched watched = {
    .id = slot->id, .n_args = slot->payload->n_args, .types = types, .engine = engine, .slot = slot
  };

  watched.file = pto_engine_get_call (engine, &watched.line);
  engine->watch->submitted (engine->watch, &watched);
}

void
pto_observe_args (struct pto_engine *engine, const struct pto_slot *slot, const uint8_t *types)
{
  const struct pto_payload *payload = slot->payload;

  if (!pto_trace_has (engine->trace, PTO_TRACE_LEVEL_FULL))
    return;
  if (engine->watch != NULL)
    tell_watch (engine, slot, types);
  for (uint32_t i = 0; i < payload->n_args; i++)
    {
      const TensorData *tensor = (const TensorData *) (uintptr_t) payload->args[i];

      if (types[i] == PTO_PARAM_SCALAR)
        {
          pto_trace_add (engine->trace, PTO_TRACE_ARG, (uint64_t) payload->args[i], slot->id, i,
                         types[i]);
          continue;
        }
      pto_trace_add (engine->trace, PTO_TRACE_ARG,
                     tensor->buffer.addr + tensor->start_offset * pto_dtype_size (tensor->dtype),
                     slot->id, i,
                     (uint64_t) tensor->ndims << 16 | (uint64_t) tensor->dtype << 8 | types[i]);
      add_dimensions (engine->trace, tensor);
    }
}

/* Where its parts are to be, behind its submit. */
static void
add_parts (struct pto_engine *engine, const struct pto_slot *slot)
{
  const struct pto_party *party = slot->queue == PTO_QUEUE_LINE ? slot->party : NULL;

  pto_trace_add (engine->trace, PTO_TRACE_PARTS, slot->parts->n_blocks, slot->id, 0,
                 party == NULL
                     ? 0
                     : (uint64_t) (party->cohort + 1) << 32 | (uint64_t) party->together << 31
                           | (uint64_t) party->block << 16 | party->n_members);
  for (uint32_t m = 0; party != NULL && m < party->n_members; m++)
    if (party->members[m].need.place != PTO_PLACE_ANY)
      pto_trace_add (engine->trace, PTO_TRACE_PLACE, 0, slot->id, m, party->members[m].need.place);
}

void
pto_observe_submit (struct pto_engine *engine, const struct pto_slot *slot, uint32_t ring,
                    uint32_t n_deps, bool makes)
{
  uint32_t kernel = slot->kernel;
  int32_t line;
  const char *file = pto_engine_get_call (engine, &line);

  for (uint32_t i = 0; engine->witness != NULL && i < n_deps; i++)
    if ((engine->deps.items[i].kinds & ~PTO_DEP_RETAIN) != 0)
      engine->witness->edge (engine->witness->data, slot->id, engine->deps.items[i].task);
  if (engine->trace == NULL)
    return;
  engine->stamp = pto_engine_stamp_own (engine);
  pto_trace_add (engine->trace, PTO_TRACE_SUBMIT, engine->stamp, slot->id,
                 kernel != PTO_KERNEL_NONE ? kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS)
                 : makes                   ? PTO_TRACE_ALLOC
                                           : kernel,
                 source (engine, file, line) | (uint64_t) slot->priority << 28 | ring << 8
                     | pto_slot_kind (slot));
  if (!pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    return;
  for (uint32_t i = 0; i < n_deps; i++)
    if ((engine->deps.items[i].kinds & ~PTO_DEP_RETAIN) != 0)
      pto_trace_add (engine->trace, PTO_TRACE_DEP, engine->stamp, slot->id,
                     engine->deps.items[i].kinds & ~PTO_DEP_RETAIN, engine->deps.items[i].task);
  if (pto_slot_has_parts (slot))
    add_parts (engine, slot);
}

void
pto_observe_claims (struct pto_engine *engine, const struct pto_slot *slot)
{
  struct pto_claims *claims = pto_slot_claims (slot);

  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    for (uint32_t i = 0; i < claims->n; i++)
      pto_trace_add (engine->trace, PTO_TRACE_CLAIM, 0, slot->id, 0,
                     pto_claims_item (claims, i)->token);
}

void
pto_observe_reduce (struct pto_engine *engine, pto_task_id id, uint32_t role, uint32_t set,
                    uint64_t what)
{
  if (id != PTO_TASK_NONE && engine->capture == NULL
      && pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_REDUCE, what, id, role, set);
}

void
pto_observe_link (struct pto_engine *engine, pto_task_id consumer, pto_task_id producer)
{
  if (engine->witness != NULL)
    engine->witness->edge (engine->witness->data, consumer, producer);
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_DEP, pto_engine_stamp_own (engine), consumer,
                   PTO_HAZARD_EXPLICIT, producer);
}

void
pto_observe_ready (struct pto_engine *engine, const struct pto_slot *slot, bool has_waited)
{
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_SCHEDULE))
    pto_trace_add (engine->trace, PTO_TRACE_READY,
                   has_waited ? pto_engine_stamp (engine) : engine->stamp, slot->id, 0, 0);
}

void
pto_observe_retire (struct pto_engine *engine, uint32_t ring, uint32_t first, uint32_t n)
{
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_RETIRE, pto_engine_stamp (engine),
                   PTO_TASK_ID (ring, first), n - 1, 0);
}

void
pto_observe_occupancy (struct pto_engine *engine, uint32_t ring_index)
{
  const struct pto_ring *ring = &engine->rings[ring_index];

  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_FULL))
    pto_trace_add (engine->trace, PTO_TRACE_OCCUPANCY, pto_engine_stamp_own (engine),
                   ring->heap.used - ring->heap.skipped, ring_index,
                   (uint64_t) (ring->edge_head - ring->edge_tail) << 32
                       | pto_map_used (engine->map));
}

void
pto_observe_scope (struct pto_engine *engine, uint32_t depth, bool begins)
{
  const struct pto_scope *scope = &engine->scopes[depth];

  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_SCOPE, pto_engine_stamp (engine), PTO_TASK_NONE, depth,
                   source (engine, scope->file, scope->line) | begins);
}

void
pto_observe_hold (struct pto_engine *engine, uint32_t cohort, bool held)
{
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_HOLD, 0, PTO_TASK_NONE, held, cohort);
}

void
pto_observe_cost (struct pto_engine *engine, uint32_t step, uint64_t ns)
{
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_COST, 0, PTO_TASK_NONE, step, ns);
}
