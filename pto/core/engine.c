/* engine.c: how does a submitted task become a finished one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine.h"

#include "engine-private.h"

#include "../exec/pto_atomic.h"
#include "scheduler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_INTERVAL 64u /* submits between two looks at the tails (seed 000 section 5.4) */
#define BUFFERS_PER_CHUNK 256u
#define CANCEL_POLL_NS 50000000u
/* Whoever runs tasks ends those that hang after one timeout. So many without any progress mean that
 * nobody does: the run is given up with tasks still out. Generous, for machines that are
 * overloaded. */
#define LOST_FACTOR 8u
#define RETAIN 0x100u /* beside PTO_HAZARD_* in a dep: the producer's memory is used */

static uint32_t
ring_of_depth (uint32_t depth)
{
  return depth < PTO_RINGS - 1 ? depth : PTO_RINGS - 1;
}

/* --- making and ending --- */

enum pto_status
pto_engine_init (struct pto_engine *engine, struct pto_exec *exec,
                 const struct pto_engine_config *config, struct pto_report *report)
{
  struct pto_map_config map_config = { .pool = config->map_pool, .hazards = config->hazards };
  uint32_t capacity = power_of_two_at_least ((uint64_t) config->ring.window * PTO_RINGS);

  memset (engine, 0, sizeof *engine);
  engine->exec = exec;
  engine->config = *config;
  pto_word_init (&engine->progress, 0, false);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    if (!pto_ring_init (&engine->rings[ring], &config->ring))
      {
        pto_engine_destroy (engine);
        return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                               "no address space for ring %u: task-window %u, heap %" PRIu64
                               " bytes",
                               ring, config->ring.window, config->ring.heap);
      }
  /* Room for every slot there is: a push can not find a queue full. */
  for (uint32_t queue = 0; queue < config->n_queues; queue++)
    for (uint32_t shard = 0; shard < config->n_shards; shard++)
      if (!pto_ready_queue_init (&engine->ready[queue][shard], capacity))
        {
          pto_engine_destroy (engine);
          return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                                 "no address space for a ready queue of %u tasks", capacity);
        }
  map_config.tails = engine->tails;
  map_config.failed = &engine->failed;
  engine->map = pto_map_new (&map_config);
  if (engine->map == NULL)
    {
      pto_engine_destroy (engine);
      return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                             "no memory for a TensorMap of %u nodes (map-pool)", config->map_pool);
    }
  return PTO_OK;
}

void
pto_engine_destroy (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_ring_destroy (&engine->rings[ring]);
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
      pto_ready_queue_destroy (&engine->ready[queue][shard]);
  if (engine->map != NULL)
    pto_map_free (engine->map);
  engine->map = NULL;
  for (uint32_t i = 0; i < engine->n_buffer_chunks; i++)
    free (engine->buffer_chunks[i]);
  free (engine->buffer_chunks);
  free (engine->deps.items);
  free (engine->failed.items);
  engine->buffer_chunks = NULL;
  engine->deps.items = NULL;
  engine->failed.items = NULL;
}

/* --- errors --- */

void
pto_engine_fail (struct pto_engine *engine, enum pto_status status, const char *format, ...)
{
  uint32_t open = 0;
  va_list args;

  /* One writer of the message, ever; readers look at it after they have seen fatal (release below,
   * acquire there). */
  if (!pto_cas_acq_rel (&engine->report_lock, &open, 1))
    return;
  va_start (args, format);
  pto_report_setv (&engine->report, status, format, args);
  va_end (args);
  pto_store_release (&engine->fatal, (uint32_t) status);
}

enum pto_task_state
pto_engine_task_state (const struct pto_engine *engine, pto_task_id id)
{
  const struct pto_ring *ring = &engine->rings[PTO_TASK_RING (id)];

  if (pto_task_is_retired (engine->tails, id))
    return PTO_TASK_CONSUMED;
  if ((int32_t) (PTO_TASK_LOCAL (id) - ring->head) >= 0)
    return PTO_TASK_FREE;
  return (enum pto_task_state) pto_load_acquire (&pto_ring_slot (ring, PTO_TASK_LOCAL (id))->state);
}

/* --- ready queues --- */

void
pto_engine_push_ready (struct pto_engine *engine, struct pto_slot *slot, uint32_t shard)
{
  pto_store_relaxed (&slot->state, PTO_TASK_READY);
  if (!pto_ready_queue_push (&engine->ready[slot->queue][shard % engine->config.n_shards],
                             pto_engine_slot_ref (engine, slot)))
    pto_engine_fail (engine, PTO_STATUS_READY_QUEUE, "ready queue %s is full",
                     engine->config.queue_names[slot->queue]);
}

struct pto_slot *
pto_engine_pop_ready (struct pto_engine *engine, uint32_t queue, uint32_t shard)
{
  uint32_t ref;

  for (uint32_t i = 0; i < engine->config.n_shards; i++)
    if (pto_ready_queue_pop (&engine->ready[queue][(shard + i) % engine->config.n_shards], &ref))
      return pto_engine_slot (engine, ref);
  return NULL;
}

void
pto_engine_ring (struct pto_engine *engine, uint32_t queue)
{
  uint64_t hungry;

  /* Between the push and the look at who is hungry; pairs with the fence in pto_scheduler_main()
   * between the announcement and the last look at the queues: one of the two sees the other. */
  pto_fence_seq_cst ();
  if (pto_load_relaxed (&engine->lingering) != 0)
    return;
  hungry = pto_load_relaxed (&engine->hungry[queue]);
  while (hungry != 0)
    {
      /* In turn, so that work goes round. W: whoever rings; a lost update only changes whose turn
       * it is. */
      uint32_t turn = pto_load_relaxed (&engine->turn) % 64;
      uint64_t later = hungry >> turn << turn;
      uint32_t index = (uint32_t) __builtin_ctzll (later != 0 ? later : hungry);
      uint64_t bit = UINT64_C (1) << index;

      if ((pto_fetch_and_seq_cst (&engine->hungry[queue], ~bit) & bit) != 0)
        {
          pto_store_relaxed (&engine->turn, index + 1);
          pto_scheduler_wake (engine->schedulers[index]);
          return;
        }
      hungry &= ~bit;
    }
}

/* --- waiting for schedulers --- */

uint64_t
pto_engine_completed (const struct pto_engine *engine)
{
  uint64_t sum = 0;

  /* Acquire pairs with the release in the scheduler's publish(). */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    sum += pto_load_acquire (&engine->schedulers[i]->completed);
  return sum;
}

static bool
slot_is_done (struct pto_slot *slot, uint32_t taken)
{
  return pto_load_acquire (&slot->state) >= PTO_TASK_COMPLETED
         && pto_load_acquire (&slot->released) == taken;
}

/* Any thread. Fields may be of a wait that began just now: then its submitter looks itself, after
 * its fence. */
static bool
wait_is_over (struct pto_engine *engine)
{
  struct pto_slot *slot = pto_load_relaxed (&engine->wait_slot);

  if (slot != NULL)
    return slot_is_done (slot, pto_load_relaxed (&engine->wait_taken));
  return pto_engine_completed (engine) >= pto_load_relaxed (&engine->wait_total);
}

void
pto_engine_tell_submitter (struct pto_engine *engine)
{
  /* Between the completion and the look at waiting; pairs with the fence in wait_for(). */
  pto_fence_seq_cst ();
  if (pto_load_acquire (&engine->waiting) == 0 || !wait_is_over (engine))
    return;
  pto_fetch_add_acq_rel (&engine->progress.value, 1);
  pto_unpark (engine->exec, &engine->progress);
}

/* The submitter waits until a slot is done or, without one, until everything is. false: that will
 * not happen, the run has failed for good. */
static bool
wait_for (struct pto_engine *engine, struct pto_slot *slot)
{
  bool virtual_clock = pto_exec_backend (engine->exec) == PTO_BACKEND_DET;
  uint64_t mark = pto_engine_completed (engine);
  uint64_t limit = virtual_clock ? PTO_NEVER
                                 : pto_now (engine->exec) + LOST_FACTOR * engine->config.timeout_ns;
  bool over = true;

  pto_store_relaxed (&engine->wait_slot, slot);
  pto_store_relaxed (&engine->wait_taken, slot != NULL ? slot->taken : 0);
  pto_store_relaxed (&engine->wait_total, engine->submitted);
  pto_store_release (&engine->waiting, 1);
  for (;;)
    {
      uint32_t seen = pto_word_get (&engine->progress);
      uint64_t deadline = limit;

      /* Pairs with the fence in pto_engine_tell_submitter(). */
      pto_fence_seq_cst ();
      if (wait_is_over (engine))
        break;
      if (engine->cancelled != NULL && !pto_engine_has_failed (engine))
        {
          if (engine->cancelled (engine->cancelled_data))
            pto_engine_fail (engine, PTO_STATUS_CANCELLED, "the run was cancelled");
          else if (!virtual_clock)
            deadline = pto_now (engine->exec) + CANCEL_POLL_NS;
        }
      switch (pto_park (engine->exec, &engine->progress, seen, deadline))
        {
        case PTO_PARK_WOKEN:
          break;
        case PTO_PARK_TIMEOUT:
          if (pto_now (engine->exec) < limit)
            break;
          if (mark == pto_engine_completed (engine))
            over = false;
          mark = pto_engine_completed (engine);
          limit = pto_now (engine->exec) + LOST_FACTOR * engine->config.timeout_ns;
          break;
        case PTO_PARK_DEADLOCK:
          over = wait_is_over (engine);
          if (!over)
            pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                             "deadlock: %" PRIu64 " of %" PRIu64
                             " tasks are done and nothing can run any more",
                             pto_engine_completed (engine), engine->submitted);
          break;
        }
      if (!over)
        {
          pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                           "no task finished for %" PRIu64 " ms (timeout %" PRIu64 " ms): %" PRIu64
                           " of %" PRIu64 " tasks are done",
                           LOST_FACTOR * engine->config.timeout_ns / 1000000,
                           engine->config.timeout_ns / 1000000, pto_engine_completed (engine),
                           engine->submitted);
          break;
        }
    }
  pto_store_relaxed (&engine->waiting, 0);
  return over;
}

/* --- retiring --- */

static uint64_t
failures (const struct pto_engine *engine)
{
  uint64_t sum = 0;

  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    sum += pto_load_relaxed (&engine->schedulers[i]->failed);
  return sum;
}

/* Remembers those of n retired tasks that have failed: what they should have written must not be
 * read later on. */
static void
note_failures (struct pto_engine *engine, uint32_t ring, uint32_t first, uint32_t n)
{
  struct pto_task_set *set = &engine->failed;

  for (uint32_t i = 0; i < n; i++)
    {
      if (pto_load_relaxed (&pto_ring_slot (&engine->rings[ring], first + i)->state)
          != PTO_TASK_FAILED)
        continue;
      if (set->count == set->capacity)
        {
          uint32_t capacity = set->capacity > 0 ? set->capacity * 2 : 16;
          pto_task_id *items = realloc (set->items, capacity * sizeof *items);

          if (items == NULL)
            {
              pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, "no memory to note %u failed tasks",
                               capacity);
              return;
            }
          set->items = items;
          set->capacity = capacity;
        }
      set->items[set->count++] = PTO_TASK_ID (ring, first + i);
    }
}

static void
retire (struct pto_engine *engine, uint32_t ring)
{
  uint32_t before = engine->tails[ring];
  uint32_t n = pto_ring_reclaim (&engine->rings[ring], &engine->tails[ring]);

  if (n == 0)
    return;
  engine->live -= n;
  /* Its scheduler counted a failure before it stored FAILED, which reclaim has acquired. */
  if (failures (engine) > 0)
    note_failures (engine, ring, before, n);
  if (engine->trace != NULL)
    {
      uint64_t now = pto_now (engine->exec) - engine->time_base;

      for (uint32_t i = 0; i < n; i++)
        pto_trace_add (engine->trace, PTO_TRACE_RETIRE, now, PTO_TASK_ID (ring, before + i), 0, 0);
    }
  pto_map_retired (engine->map, n);
}

static void
retire_all (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    retire (engine, ring);
}

/* --- scopes --- */

void
pto_engine_scope_begin (struct pto_engine *engine, const char *file, int32_t line)
{
  struct pto_scope *scope;

  if (engine->depth >= PTO_SCOPE_MAX)
    {
      /* Counted, so that the ends that follow find their begins. */
      engine->depth++;
      pto_engine_fail (engine, PTO_STATUS_SCOPE_OVERFLOW, "scopes are nested more than %u deep",
                       PTO_SCOPE_MAX);
      return;
    }
  scope = &engine->scopes[engine->depth++];
  scope->n_tasks = 0;
  scope->heap_bytes = 0;
  scope->storage_bytes = 0;
  scope->first = engine->rings[ring_of_depth (engine->depth - 1)].head;
  scope->buffers = engine->n_buffers;
  scope->file = file;
  scope->line = line;
  if (engine->trace != NULL)
    pto_trace_add (engine->trace, PTO_TRACE_SCOPE, pto_now (engine->exec) - engine->time_base,
                   PTO_TASK_NONE, engine->depth - 1, 1);
}

static struct PTO2Buffer *
buffer_at (struct pto_engine *engine, uint32_t index)
{
  return &engine->buffer_chunks[index / BUFFERS_PER_CHUNK][index % BUFFERS_PER_CHUNK];
}

static void
drop_buffers (struct pto_engine *engine, uint32_t keep)
{
  while (engine->n_buffers > keep)
    {
      struct PTO2Buffer *buffer = buffer_at (engine, --engine->n_buffers);

      buffer->generation++;
      pto_map_drop (engine->map, &buffer->space);
    }
}

/* Does an open scope that shares the last ring with this one keep a task in front of this one's? */
static bool
is_held_from_outside (const struct pto_engine *engine, uint32_t depth)
{
  for (uint32_t outer = PTO_RINGS - 1; outer < depth; outer++)
    if (engine->scopes[outer].n_tasks > 0)
      return true;
  return false;
}

/* The scope's own reference is not a count in its tasks but the ring's floor: tasks from there on
 * stay. */
static void
close_scope (struct pto_engine *engine)
{
  uint32_t depth = --engine->depth;
  uint32_t ring = ring_of_depth (depth);
  struct pto_scope *scope = &engine->scopes[depth];

  if (is_held_from_outside (engine, depth))
    {
      engine->scopes[depth - 1].n_tasks += scope->n_tasks;
      engine->scopes[depth - 1].heap_bytes += scope->heap_bytes;
      engine->scopes[depth - 1].storage_bytes += scope->storage_bytes;
    }
  else
    {
      engine->demand.held[ring] -= scope->n_tasks;
      engine->demand.heap[ring] -= scope->heap_bytes;
      engine->demand.storage[ring] -= scope->storage_bytes;
    }
  if (depth < PTO_RINGS)
    engine->rings[ring].floor = engine->rings[ring].head;
  else
    /* Scopes that share the last ring: this one's tasks go when every task before them may. */
    for (uint32_t outer = depth - 1;
         outer >= PTO_RINGS - 1 && engine->scopes[outer].first == scope->first; outer--)
      {
        engine->scopes[outer].first = engine->rings[ring].head;
        if (outer == PTO_RINGS - 1)
          engine->rings[ring].floor = engine->rings[ring].head;
      }
  drop_buffers (engine, scope->buffers);
  if (engine->trace != NULL)
    pto_trace_add (engine->trace, PTO_TRACE_SCOPE, pto_now (engine->exec) - engine->time_base,
                   PTO_TASK_NONE, depth, 0);
}

void
pto_engine_scope_end (struct pto_engine *engine)
{
  if (engine->depth > PTO_SCOPE_MAX)
    engine->depth--;
  else if (engine->depth <= 1)
    pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS, "scope_end without a scope_begin");
  else
    close_scope (engine);
}

struct PTO2Buffer *
pto_engine_new_buffer (struct pto_engine *engine, uint64_t bytes, uint32_t *generation)
{
  struct PTO2Buffer *buffer;

  if (engine->n_buffers == engine->n_buffer_chunks * BUFFERS_PER_CHUNK)
    {
      struct PTO2Buffer **chunks = realloc (
          engine->buffer_chunks, (engine->n_buffer_chunks + 1) * sizeof *engine->buffer_chunks);

      if (chunks != NULL)
        {
          engine->buffer_chunks = chunks;
          chunks[engine->n_buffer_chunks] = calloc (BUFFERS_PER_CHUNK, sizeof **chunks);
        }
      if (chunks == NULL || chunks[engine->n_buffer_chunks] == NULL)
        {
          pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, "no memory for buffer %u",
                           engine->n_buffers);
          *generation = 0;
          return NULL;
        }
      engine->n_buffer_chunks++;
    }
  buffer = buffer_at (engine, engine->n_buffers++);
  buffer->addr = 0;
  buffer->bytes = bytes;
  buffer->creator = PTO_TASK_NONE;
  *generation = buffer->generation;
  return buffer;
}

/* --- submit --- */

_Static_assert(offsetof (Tensor, strides) == offsetof (TensorData, strides)
                   && offsetof (Tensor, storage) == sizeof (TensorData),
               "a Tensor begins with a TensorData");

struct sizes
{
  uint64_t heap; /* bytes, aligned outputs and their guards */
  uint64_t storage;
  uint32_t n_tensors;
  uint32_t n_outputs; /* allocated here */
};

static uint64_t
output_bytes (const struct pto_engine *engine, const Tensor *tensor)
{
  return align_up (tensor->buffer.size + engine->config.guard_bytes, PTO_HEAP_ALIGN);
}

static uint64_t
storage_bytes (uint32_t n_params, uint32_t n_tensors, uint32_t n_outputs)
{
  return align_up (sizeof (struct pto_payload) + n_params * sizeof (int64_t)
                       + n_tensors * sizeof (TensorData) + n_outputs * sizeof (uint64_t),
                   STORAGE_ALIGN);
}

static bool
refuse (struct pto_engine *engine, const struct pto_submit *submit, uint32_t index, const char *why)
{
  pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS, "task %" PRIu64 " (%s): argument %u: %s",
                   engine->submitted, pto_engine_kernel_name (engine, submit->kernel), index, why);
  return false;
}

static const char *
tensor_status_text (uint32_t status)
{
  switch (status)
    {
    case PTO2_TENSOR_BAD_SHAPE:
      return "a tensor has 1 to 5 dimensions of at least one element and a known type";
    case PTO2_TENSOR_OUT_OF_BOUNDS:
      return "the view reaches beyond its tensor";
    case PTO2_TENSOR_BAD_RESHAPE:
      return "reshape() needs a contiguous tensor and the same number of elements";
    case PTO2_TENSOR_BAD_TRANSPOSE:
      return "transpose() names a dimension that the tensor does not have";
    case PTO2_TENSOR_NO_POOL:
      return "make_tensor() was called outside of an orchestration";
    default:
      return "the tensor is not initialized";
    }
}

/* Gives every tensor its address, and counts what the task needs. */
static bool
resolve (struct pto_engine *engine, const struct pto_submit *submit, struct sizes *sizes)
{
  memset (sizes, 0, sizeof *sizes);
  if (submit->n_params > PTO_ARGS_MAX)
    {
      pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                       "task %" PRIu64 " (%s): %u arguments; a task takes at most %u",
                       engine->submitted, pto_engine_kernel_name (engine, submit->kernel),
                       submit->n_params, PTO_ARGS_MAX);
      return false;
    }
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      PTOParam *param = &submit->params[i];
      Tensor *tensor = &param->tensor;
      struct PTO2Buffer *buffer;

      if (param->type == PTO_PARAM_SCALAR)
        continue;
      if ((uint32_t) param->type > PTO_PARAM_SCALAR)
        return refuse (engine, submit, i, "unknown kind of parameter");
      if (tensor->status != PTO2_TENSOR_OK)
        return refuse (engine, submit, i, tensor_status_text (tensor->status));
      buffer = tensor->storage;
      sizes->n_tensors++;
      if (buffer == NULL)
        {
          if (tensor->buffer.addr != 0)
            continue;
        }
      else
        {
          if (buffer->generation != tensor->generation)
            return refuse (engine, submit, i, "the tensor was made in a scope that has ended");
          if (buffer->creator != PTO_TASK_NONE
              && (int32_t) (PTO_TASK_LOCAL (buffer->creator)
                            - engine->rings[PTO_TASK_RING (buffer->creator)].floor)
                     < 0)
            return refuse (
                engine, submit, i,
                "the tensor was output in a scope that has ended: its memory is gone; submit the task that "
                "outputs it in the scope that uses it");
          tensor->buffer.addr = buffer->addr;
          if (buffer->addr != 0)
            continue;
        }
      if (param->type != PTO_PARAM_OUTPUT)
        return refuse (engine, submit, i, "the tensor has no memory yet: no task has output it");
      if (buffer != NULL && tensor->buffer.size != buffer->bytes)
        tensor->buffer.size = buffer->bytes;
      sizes->n_outputs++;
      sizes->heap += output_bytes (engine, tensor);
    }
  sizes->storage = storage_bytes (submit->n_params, sizes->n_tensors, sizes->n_outputs);
  return true;
}

static bool
add_dep (struct pto_deps *deps, pto_task_id task, uint32_t kinds)
{
  if (deps->count == deps->capacity)
    {
      uint32_t capacity = deps->capacity > 0 ? deps->capacity * 2 : 64;
      struct pto_dep *items = realloc (deps->items, capacity * sizeof *items);

      if (items == NULL)
        return false;
      deps->items = items;
      deps->capacity = capacity;
    }
  deps->items[deps->count++] = (struct pto_dep){ .task = task, .kinds = kinds };
  return true;
}

/* Everything the task must wait for or whose memory it uses, each producer once. */
static bool
find_dependencies (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct pto_deps *deps = &engine->deps;
  uint64_t number = ++engine->serial;
  uint32_t n = 0;

  deps->count = 0;
  engine->poisoned_by = PTO_TASK_NONE;
  /* All spaces are known before the first lookup: an external buffer may join those of others. They
   * hold until the inserts of this submit. */
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      const Tensor *tensor = &submit->params[i].tensor;

      if (submit->params[i].type >= PTO_PARAM_NO_DEP)
        continue;
      if (tensor->storage != NULL)
        engine->spaces[i] = &tensor->storage->space;
      else if (tensor->buffer.addr != 0)
        engine->spaces[i]
            = pto_map_external_space (engine->map, tensor->buffer.addr, tensor->buffer.size);
      else
        engine->spaces[i] = NULL; /* an output without a handle: nobody else can name it */
    }
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      const PTOParam *param = &submit->params[i];
      const Tensor *tensor = &param->tensor;
      bool ok = true;

      if (param->type == PTO_PARAM_SCALAR || tensor->buffer.addr == 0)
        continue;
      if (param->type < PTO_PARAM_NO_DEP)
        ok = pto_map_lookup (engine->map, engine->spaces[i], tensor, param->type, deps);
      if (ok && tensor->storage != NULL)
        ok = add_dep (deps, tensor->storage->creator, RETAIN);
      if (!ok)
        {
          pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                           "no memory for the %u dependencies of a task", deps->count);
          return false;
        }
    }
  for (uint32_t i = 0; i < deps->count; i++)
    {
      struct pto_dep dep = deps->items[i];
      struct pto_slot *producer
          = pto_ring_slot (&engine->rings[PTO_TASK_RING (dep.task)], PTO_TASK_LOCAL (dep.task));

      /* Only failed tasks are found after they have retired; the slot is somebody else's by now. */
      if (pto_task_is_retired (engine->tails, dep.task))
        {
          if ((dep.kinds & PTO_HAZARD_RAW) != 0)
            engine->poisoned_by = dep.task;
          continue;
        }
      if (producer->mark == number)
        {
          deps->items[producer->mark_edge].kinds |= dep.kinds;
          continue;
        }
      producer->mark = number;
      producer->mark_edge = n;
      deps->items[n++] = dep;
    }
  deps->count = n;
  return true;
}

/* What stands in the way of taking a slot now: PTO_OK for nothing. */
static enum pto_status
obstacle (const struct pto_engine *engine, const struct pto_ring *ring, uint32_t ring_index,
          uint32_t n_edges, uint32_t n_nodes)
{
  if (ring->head - engine->tails[ring_index] >= ring->window - 1)
    return PTO_STATUS_TASK_RING;
  if (ring->edge_pool - (ring->edge_head - ring->edge_tail) < n_edges)
    return PTO_STATUS_DEP_POOL;
  if (n_nodes > 0 && !pto_map_reserve (engine->map, n_nodes))
    return PTO_STATUS_MAP_OVERFLOW;
  return PTO_OK;
}

static bool
ring_may_move (const struct pto_engine *engine, uint32_t ring)
{
  return (int32_t) (engine->rings[ring].floor - engine->tails[ring]) > 0;
}

/* Waits until tasks of a ring can be retired, a good piece of them if there are many, so that the
 * submitter is not woken for every one. */
static bool
wait_for_ring (struct pto_engine *engine, uint32_t ring_index, enum pto_status what)
{
  struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t movable = ring->floor - engine->tails[ring_index];
  uint32_t piece = ring->window / 4 < movable ? ring->window / 4 : movable;
  struct pto_slot *target = pto_ring_slot (ring, engine->tails[ring_index] + piece - 1);
  uint64_t start = engine->trace != NULL ? pto_now (engine->exec) : 0;
  bool ok = wait_for (engine, target);

  engine->stats.stalls++;
  if (ok
      && !slot_is_done (pto_ring_slot (ring, engine->tails[ring_index]),
                        pto_ring_slot (ring, engine->tails[ring_index])->taken))
    ok = wait_for (engine, pto_ring_slot (ring, engine->tails[ring_index]));
  if (engine->trace != NULL)
    {
      uint32_t kind = what == PTO_STATUS_TASK_RING   ? 0
                      : what == PTO_STATUS_HEAP_RING ? 1
                      : what == PTO_STATUS_DEP_POOL  ? 2
                                                     : 3;

      pto_trace_add (engine->trace, PTO_TRACE_STALL, start - engine->time_base, PTO_TASK_NONE,
                     ring_index | kind << 8, pto_now (engine->exec) - engine->time_base);
    }
  return ok;
}

/* Takes slot, output memory, argument storage and edges together, or waits, or fails the run. Gives
 * the slot. */
static struct pto_slot *
acquire (struct pto_engine *engine, uint32_t ring_index, const struct sizes *sizes,
         uint32_t n_edges, uint64_t *heap_offset, uint64_t *storage_offset)
{
  struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t n_nodes = sizes->n_tensors * PTO_MAP_INSERT_NODES;

  if (sizes->heap > ring->heap.size)
    {
      engine->deadlock = PTO_STATUS_HEAP_RING;
      engine->deadlock_ring = ring_index;
      engine->oversized = sizes->heap;
      pto_engine_fail (engine, PTO_STATUS_HEAP_RING,
                       "task %" PRIu64 " is too large for heap ring %u", engine->submitted,
                       ring_index);
      return NULL;
    }
  if (n_edges > ring->edge_pool)
    {
      pto_engine_fail (
          engine, PTO_STATUS_DEP_POOL,
          "task %" PRIu64
          " depends on %u tasks, dependency pool %u has %u edges: set dep-pool to %u or more",
          engine->submitted, n_edges, ring_index, ring->edge_pool, power_of_two_at_least (n_edges));
      return NULL;
    }
  if (n_nodes > pto_map_capacity (engine->map))
    {
      pto_engine_fail (engine, PTO_STATUS_MAP_OVERFLOW,
                       "task %" PRIu64
                       " needs %u nodes of the TensorMap, which has %u: set map-pool to %u or more",
                       engine->submitted, n_nodes, pto_map_capacity (engine->map),
                       power_of_two_at_least (n_nodes));
      return NULL;
    }
  for (;;)
    {
      enum pto_status what = obstacle (engine, ring, ring_index, n_edges, n_nodes);

      if (what == PTO_OK)
        {
          struct pto_slot *slot = pto_ring_slot (ring, ring->head);
          bool compact = ring->floor == ring->head;
          uint64_t heap_taken;
          uint64_t storage_taken;

          *storage_offset
              = pto_circle_alloc (&ring->storage, sizes->storage, compact, &storage_taken);
          *heap_offset = 0;
          if (*storage_offset != PTO_CIRCLE_FULL)
            {
              *heap_offset = pto_circle_alloc (&ring->heap, sizes->heap, compact, &heap_taken);
              if (*heap_offset != PTO_CIRCLE_FULL)
                {
                  slot->heap_end = ring->heap.head;
                  slot->heap_bytes = heap_taken;
                  slot->storage_end = ring->storage.head;
                  slot->storage_bytes = storage_taken;
                  return slot;
                }
              pto_circle_undo (&ring->storage, *storage_offset, sizes->storage, storage_taken);
            }
          /* Argument storage counts as the task ring's: it grows with the same knob. */
          what = *heap_offset == PTO_CIRCLE_FULL ? PTO_STATUS_HEAP_RING : PTO_STATUS_TASK_RING;
        }
      if (what == PTO_STATUS_MAP_OVERFLOW)
        {
          uint32_t moves = 0;

          retire_all (engine);
          if (pto_map_reserve (engine->map, n_nodes))
            continue;
          while (moves < PTO_RINGS && !ring_may_move (engine, moves))
            moves++;
          if (moves == PTO_RINGS)
            {
              /* The nodes belong to tasks of any ring: the one that holds the most is named. */
              uint32_t holder = ring_index;

              for (uint32_t i = 0; i < PTO_RINGS; i++)
                if (engine->rings[i].head - engine->tails[i]
                    > engine->rings[holder].head - engine->tails[holder])
                  holder = i;
              pto_engine_prove_deadlock (engine, what, holder, n_nodes, pto_map_used (engine->map));
              return NULL;
            }
          if (!wait_for_ring (engine, moves, what))
            return NULL;
          retire (engine, moves);
        }
      else
        {
          uint32_t tail = engine->tails[ring_index];

          retire (engine, ring_index);
          if (tail != engine->tails[ring_index])
            continue;
          if (!ring_may_move (engine, ring_index))
            {
              pto_engine_prove_deadlock (engine, what, ring_index, n_edges,
                                         ring->edge_head - ring->edge_tail);
              return NULL;
            }
          if (!wait_for_ring (engine, ring_index, what))
            return NULL;
          retire (engine, ring_index);
        }
      if (pto_engine_has_failed (engine))
        return NULL;
    }
}

/* Writes arguments and output addresses; nobody else can see the slot yet. */
static void
fill_payload (struct pto_engine *engine, struct pto_slot *slot, const struct pto_submit *submit,
              const struct sizes *sizes, uint8_t *storage, uint8_t *heap)
{
  struct pto_payload *payload = (struct pto_payload *) storage;
  TensorData *tensors;

  payload->n_args = submit->n_params;
  payload->n_guards = 0;
  payload->args = (int64_t *) (payload + 1);
  tensors = (TensorData *) (payload->args + submit->n_params);
  payload->guards = (uint64_t *) (tensors + sizes->n_tensors);
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      PTOParam *param = &submit->params[i];
      Tensor *tensor = &param->tensor;

      if (param->type == PTO_PARAM_SCALAR)
        {
          payload->args[i] = (int64_t) param->scalar;
          continue;
        }
      /* The same buffer may be named twice as an output: the first gave it its address. */
      if (tensor->buffer.addr == 0 && tensor->storage != NULL)
        tensor->buffer.addr = tensor->storage->addr;
      if (tensor->buffer.addr == 0)
        {
          tensor->buffer.addr = (uint64_t) (uintptr_t) heap;
          if (engine->config.guard_bytes > 0)
            payload->guards[payload->n_guards++] = tensor->buffer.addr + tensor->buffer.size;
          heap += output_bytes (engine, tensor);
          if (tensor->storage != NULL)
            {
              tensor->storage->addr = tensor->buffer.addr;
              tensor->storage->creator = slot->id;
            }
        }
      /* A Tensor begins with what a kernel sees of it; dimensions beyond ndims are copied as they
       * are. */
      memcpy (tensors, tensor, sizeof *tensors);
      payload->args[i] = (int64_t) (uintptr_t) tensors++;
    }
  slot->payload = payload;
}

/* Pushes an edge on the producer's fan-out list. false: the producer is done already. */
static bool
push_edge (struct pto_slot *consumer, struct pto_slot *producer, struct pto_edge *edge,
           uint32_t edge_ref)
{
  uint32_t head = pto_load_acquire (&producer->fanout);

  for (;;)
    {
      if (head == PTO_FANOUT_CLOSED)
        return false;
      if (head == PTO_FANOUT_FAILED)
        {
          /* Acquire of the FAILED mark: the cause was written before it. */
          pto_store_relaxed (&consumer->poison, pto_load_relaxed (&producer->poison));
          return false;
        }
      edge->next = head;
      /* Release: the edge and the consumer's fan-in are there before the list names them; pairs
       * with complete(). */
      if (pto_cas_acq_rel (&producer->fanout, &head, edge_ref))
        return true;
    }
}

/* Links the task to its producers; those that retain take the front of its edges. Gives how many it
 * must wait for that were done already. */
static uint32_t
wire (struct pto_engine *engine, struct pto_ring *ring, uint32_t ring_index, struct pto_slot *slot,
      uint32_t n_edges)
{
  pto_slot_ref ref = PTO_SLOT_REF (ring_index, PTO_TASK_LOCAL (slot->id) & ring->mask);
  uint32_t front = slot->first_edge;
  uint32_t back = slot->first_edge + n_edges;
  uint32_t done = 0;

  for (uint32_t i = 0; i < engine->deps.count; i++)
    {
      struct pto_dep dep = engine->deps.items[i];
      struct pto_slot *producer;
      struct pto_edge *edge;
      uint32_t index;

      if ((dep.kinds & ~RETAIN) != 0)
        {
          engine->stats.edges++;
          if (engine->trace != NULL)
            pto_trace_add (engine->trace, PTO_TRACE_DEP, pto_now (engine->exec) - engine->time_base,
                           slot->id, dep.kinds & ~RETAIN, dep.task);
        }
      /* Retired while this submit waited for room. */
      if (pto_task_is_retired (engine->tails, dep.task))
        {
          if (engine->failed.count > 0 && pto_task_set_has (&engine->failed, dep.task))
            pto_store_relaxed (&slot->poison, dep.task);
          done += (dep.kinds & ~RETAIN) != 0;
          continue;
        }
      producer
          = pto_ring_slot (&engine->rings[PTO_TASK_RING (dep.task)], PTO_TASK_LOCAL (dep.task));
      index = ((dep.kinds & RETAIN) != 0 ? front++ : --back) & (ring->edge_pool - 1);
      edge = &ring->edges[index];
      edge->consumer = ref;
      edge->producer
          = PTO_SLOT_REF (PTO_TASK_RING (dep.task),
                          PTO_TASK_LOCAL (dep.task) & engine->rings[PTO_TASK_RING (dep.task)].mask);
      edge->flags = (dep.kinds & RETAIN) != 0 ? PTO_EDGE_RETAIN : 0;
      /* Only the submitter takes references and only the submitter retires: no race. */
      if ((dep.kinds & RETAIN) != 0)
        producer->taken++;
      if ((dep.kinds & ~RETAIN) == 0)
        continue;
      edge->flags |= PTO_EDGE_WAIT;
      if (!push_edge (slot, producer, edge, PTO_EDGE_REF (ring_index, index)))
        done++;
    }
  slot->n_retained = front - slot->first_edge;
  return done;
}

static void
insert_accesses (struct pto_engine *engine, const struct pto_submit *submit, pto_task_id id)
{
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      const PTOParam *param = &submit->params[i];

      if (param->type < PTO_PARAM_NO_DEP && engine->spaces[i] != NULL)
        pto_map_insert (engine->map, engine->spaces[i], &param->tensor, param->type, id);
    }
}

/* After a deadlock nothing is submitted any more, but what would have been is counted. */
static void
count_demand (struct pto_engine *engine, uint32_t ring, const struct sizes *sizes)
{
  struct pto_demand *demand = &engine->demand;
  struct pto_scope *scope = &engine->scopes[engine->depth - 1];

  scope->n_tasks++;
  scope->heap_bytes += sizes->heap;
  demand->held[ring]++;
  demand->heap[ring] += sizes->heap;
  scope->storage_bytes += sizes->storage;
  demand->storage[ring] += sizes->storage;
  if (demand->storage[ring] > demand->peak_storage[ring])
    demand->peak_storage[ring] = demand->storage[ring];
  if (sizes->storage > demand->largest_storage[ring])
    demand->largest_storage[ring] = sizes->storage;
  if (demand->held[ring] > demand->peak_held[ring])
    demand->peak_held[ring] = demand->held[ring];
  if (demand->heap[ring] > demand->peak_heap[ring])
    demand->peak_heap[ring] = demand->heap[ring];
  if (sizes->heap > demand->largest[ring])
    demand->largest[ring] = sizes->heap;
}

/* Sizes of a submit that only counts: its tensors are known by their shapes alone. */
static void
count_submit (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct sizes sizes = { 0 };

  if (engine->depth > PTO_SCOPE_MAX)
    return;
  for (uint32_t i = 0; i < submit->n_params; i++)
    {
      Tensor *tensor = &submit->params[i].tensor;

      sizes.n_tensors += submit->params[i].type != PTO_PARAM_SCALAR;
      if (submit->params[i].type == PTO_PARAM_OUTPUT && tensor->status == PTO2_TENSOR_OK
          && tensor->storage != NULL && tensor->storage->generation == tensor->generation
          && tensor->storage->addr == 0)
        {
          tensor->storage->addr = 1; /* counted once */
          sizes.heap += output_bytes (engine, tensor);
          sizes.n_outputs++;
        }
    }
  sizes.storage = storage_bytes (submit->n_params, sizes.n_tensors, sizes.n_outputs);
  count_demand (engine, ring_of_depth (engine->depth - 1), &sizes);
}

void
pto_engine_submit (struct pto_engine *engine, const struct pto_submit *submit)
{
  uint32_t ring_index;
  struct pto_ring *ring;
  struct pto_slot *slot;
  struct sizes sizes;
  uint64_t heap_offset;
  uint64_t storage_offset;
  uint32_t n_edges;
  uint32_t n_wait = 0;
  uint32_t done = 0;

  if (pto_engine_has_failed (engine))
    {
      if (engine->deadlock != PTO_OK)
        count_submit (engine, submit);
      return;
    }
  ring_index = ring_of_depth (engine->depth - 1);
  ring = &engine->rings[ring_index];
  if (!resolve (engine, submit, &sizes))
    return;
  pto_charge (engine->exec, engine->config.submit_cost
                                + (uint64_t) sizes.n_tensors * engine->config.argument_cost);
  if (++engine->unswept >= SWEEP_INTERVAL)
    {
      engine->unswept = 0;
      retire_all (engine);
      if (engine->cancelled != NULL && engine->cancelled (engine->cancelled_data))
        {
          pto_engine_fail (engine, PTO_STATUS_CANCELLED, "the run was cancelled");
          return;
        }
    }
  if (!find_dependencies (engine, submit))
    return;
  n_edges = engine->deps.count;
  count_demand (engine, ring_index, &sizes);
  slot = acquire (engine, ring_index, &sizes, n_edges, &heap_offset, &storage_offset);
  if (slot == NULL)
    return;

  for (uint32_t i = 0; i < n_edges; i++)
    n_wait += (engine->deps.items[i].kinds & ~RETAIN) != 0;
  slot->id = PTO_TASK_ID (ring_index, ring->head);
  slot->kernel = submit->kernel;
  slot->queue = submit->queue;
  slot->first_edge = ring->edge_head;
  slot->n_edges = n_edges;
  slot->n_retained = 0;
  slot->taken = 0;
  pto_store_relaxed (&slot->fanout, 0);
  pto_store_relaxed (&slot->fanin, (int32_t) n_wait + 1);
  pto_store_relaxed (&slot->released, 0);
  pto_store_relaxed (&slot->poison, engine->poisoned_by);
  pto_store_relaxed (&slot->state, PTO_TASK_PENDING);
  fill_payload (engine, slot, submit, &sizes, ring->storage.base + storage_offset,
                ring->heap.base + heap_offset);

  if (engine->trace != NULL)
    pto_trace_add (engine->trace, PTO_TRACE_SUBMIT, pto_now (engine->exec) - engine->time_base,
                   slot->id, submit->kernel, ring_index << 8 | submit->queue);
  ring->edge_head += n_edges;
  if (ring->edge_head - ring->edge_tail > ring->edge_peak)
    ring->edge_peak = ring->edge_head - ring->edge_tail;
  engine->stats.recycled += ring->head >= ring->window;
  engine->stats.ring_tasks[ring_index]++;
  engine->stats.tasks++;
  ring->head++;
  engine->submitted++;
  engine->live++;
  if (engine->live > engine->stats.peak_live)
    engine->stats.peak_live = engine->live;
  if (n_edges > 0)
    done = wire (engine, ring, ring_index, slot, n_edges);
  insert_accesses (engine, submit, slot->id);
  pto_ring_publish (ring);

  /* The submit's own count goes last: only now can the task become ready. Acquire: what producers
   * that were counted down by schedulers wrote; release: the slot, for whoever pops it. */
  if (n_wait == 0 || pto_fetch_sub_acq_rel (&slot->fanin, (int32_t) done + 1) == (int32_t) done + 1)
    {
      if (engine->trace != NULL)
        pto_trace_add (engine->trace, PTO_TRACE_READY, pto_now (engine->exec) - engine->time_base,
                       slot->id, 0, 0);
      pto_engine_push_ready (engine, slot, engine->next_shard++);
      pto_engine_ring (engine, slot->queue);
    }
}

/* --- a run --- */

void
pto_engine_begin (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_ring_reset (&engine->rings[ring], &engine->tails[ring]);
  pto_map_reset (engine->map);
  memset (&engine->stats, 0, sizeof engine->stats);
  memset (&engine->demand, 0, sizeof engine->demand);
  engine->submitted = 0;
  engine->unswept = 0;
  engine->live = 0;
  engine->next_shard = 0;
  engine->deadlock = PTO_OK;
  engine->oversized = 0;
  engine->depth = 0;
  engine->failed.count = 0;
  engine->report.status = PTO_OK;
  engine->time_base = pto_now (engine->exec);
  /* Schedulers are idle: all tasks of the run before are complete, and a scheduler's count is its
   * last write of a batch. The bell that brings the next task orders these stores. */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    {
      pto_store_relaxed (&engine->schedulers[i]->completed, 0);
      pto_store_relaxed (&engine->schedulers[i]->failed, 0);
    }
  pto_store_relaxed (&engine->fatal, 0);
  pto_store_release (&engine->report_lock, 0);
  pto_engine_scope_begin (engine, NULL, 0);
}

enum pto_status
pto_engine_end (struct pto_engine *engine, struct pto_report *report)
{
  if (engine->depth > PTO_SCOPE_MAX)
    engine->depth = PTO_SCOPE_MAX;
  while (engine->depth > 0)
    close_scope (engine);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_store_release (&engine->rings[ring].shared->orchestrator_done, 1);
  if (wait_for (engine, NULL))
    retire_all (engine);
  /* Another error may have come first: then its words stay. */
  if (engine->deadlock != PTO_OK && engine->report.status == engine->deadlock)
    pto_engine_report_deadlock (engine);
  if (pto_engine_has_failed (engine) && report != NULL)
    pto_report_set (report, engine->report.status, "%s", engine->report.message);
  return pto_engine_has_failed (engine) ? engine->report.status : PTO_OK;
}
