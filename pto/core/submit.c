/* submit.c: what happens to one task between the orchestration's call and the schedulers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The submitter's hot path: one pass over the parameters gives addresses and finds what the task
 * depends on, one writes the arguments, one records the accesses. Everything it touches is its own,
 * but for the producers' fan-out lists and the ready queue.
 */
#include "submit.h"

#include "exec/translate.h"
#include "backpressure.h"
#include "commutative.h"
#include "completion.h"
#include "forced-order.h"
#include "graph-capture.h"
#include "manual-tasks.h"
#include "outer-scope.h"
#include "ready.h"
#include "record-submit.h"
#include "rename.h"
#include "retire.h"
#include "run-inline.h"
#include "unwritten-memory.h"

#define SWEEP_INTERVAL 64u /* submits between two looks at the tails (seed 000 section 5.4) */

_Static_assert(offsetof (Tensor, strides) == offsetof (TensorData, strides)
                   && offsetof (Tensor, storage) == sizeof (TensorData),
               "a Tensor begins with a TensorData");

static inline uint64_t
storage_bytes (const struct pto_submit *submit, const struct pto_needs *needs)
{
  return pto_engine_storage_bytes (
      submit->n_params, needs->n_tensors, needs->n_guards, needs->n_fences,
      (uint32_t) needs->claims + submit->extra_bytes + submit->parts_bytes);
}

/* --- what the task is and depends on --- */

__attribute__ ((cold)) bool
pto_engine_refuse_argument (struct pto_engine *engine, const struct pto_submit *submit,
                            uint32_t index, const char *why)
{
  const struct pto_wish *wish = submit->wish;

  for (uint32_t m = 0; wish != NULL && m < wish->n_members; m++)
    {
      const struct pto_need *member = &wish->members[m];

      /* One that has arguments of its own. */
      if (member->n_args_plus_1 == 0 || index - member->first_arg >= member->n_args_plus_1 - 1u)
        continue;
      return pto_engine_refuse (engine, member->kernel, PTO_STATUS_INVALID_ARGS,
                                _ ("member %u of a group: argument %u: %s"), m,
                                index - member->first_arg, why);
    }
  return pto_engine_refuse (engine, submit->kernel, PTO_STATUS_INVALID_ARGS, _ ("argument %u: %s"),
                            index, why);
}

static __attribute__ ((cold)) bool
refuse (struct pto_engine *engine, const struct pto_submit *submit, const PTOParam *param,
        const char *why)
{
  ptrdiff_t index = param - submit->params;

  if (submit->conditional && index + 1 == submit->n_params)
    return pto_engine_refuse (engine, submit->kernel, PTO_STATUS_INVALID_ARGS,
                              _ ("its condition: %s"), why);
  return pto_engine_refuse_argument (engine, submit, (uint32_t) index, why);
}

/* Where is the tensor now? Gives why it is nowhere, or NULL; its address is 0 if it is still to be
 * made. */
static inline const char *
locate (Tensor *tensor)
{
  const struct PTO2Buffer *buffer = tensor->storage;

  if (PTO_UNLIKELY (tensor->status != PTO2_TENSOR_OK))
    return tensor->status == PTO2_TENSOR_BAD_SHAPE && pto_dtype_size (tensor->dtype) == 0
               ? _ ("the dtype of the tensor is none")
               : pto_tensor_status_text (tensor->status);
  if (buffer == NULL)
    return NULL;
  if (PTO_UNLIKELY (buffer->generation != tensor->generation))
    return _ ("the tensor was made in a scope that has ended: to keep a tensor longer, make it "
              "before the scope");
  tensor->buffer.addr = buffer->addr;
  return NULL;
}

/* A kind of parameter that is not usual: is it none, or can it not be? NULL: neither. */
static __attribute__ ((noinline)) const char *
refuse_unusual (const struct pto_engine *engine, const PTOParam *param)
{
  const Tensor *tensor = &param->tensor;

  if (param->type == PTO_PARAM_COMMUTATIVE)
    return engine->tracked != 0
               ? NULL
               : _ ("updates do not take turns in a manual scope, where nothing is "
                    "looked up: name whom the task comes after, or submit it in an "
                    "ordinary scope");
  if (param->type != PTO_PARAM_SCRATCH)
    return _ ("unknown kind of parameter");
  return tensor->storage == NULL && tensor->buffer.addr == 0
             ? NULL
             : _ ("scratch memory is the task's alone, and this tensor has memory, or a handle: "
                  "make_scratch_param() makes it of a shape");
}

/* An upper bound for the words of a deadlock: who made a buffer's memory is one more task to depend
 * upon, unless the last writer made it anew. Which writers do depends on time. */
static void
count_creators (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct pto_demand *demand = &engine->demand[pto_engine_ring_of_depth (engine->depth - 1)];

  for (uint32_t i = 0; i < submit->n_params; i++)
    demand->now[PTO_GOOD_EDGES]
        += submit->params[i].type != PTO_PARAM_SCALAR && submit->params[i].tensor.storage != NULL;
}

/* Their records begin anew, as if nobody had output them yet. Who uses the old contents keeps them.
 */
static __attribute__ ((noinline)) void
rename_outputs (struct pto_engine *engine, const struct pto_submit *submit)
{
  uint64_t heap = 0;

  /* Who may write nothing leaves the contents. */
  if (submit->conditional || submit->kernel == PTO_KERNEL_NONE)
    return;
  for (PTOParam *param = submit->params; param < submit->params + submit->n_params; param++)
    {
      Tensor *tensor = &param->tensor;

      if (param->type != PTO_PARAM_OUTPUT || engine->tracked == 0 || locate (tensor) != NULL
          || tensor->storage == NULL || tensor->buffer.addr == 0
          || !pto_rename_may (engine, submit->params, submit->n_params, param, heap))
        continue;
      heap += pto_engine_output_bytes (engine, tensor->buffer.size);
      pto_map_drop (engine->map, &tensor->storage->space);
      tensor->storage->addr = 0;
      tensor->storage->space.creator = PTO_TASK_NONE;
    }
}

/* What has been reduced is combined first, by tasks that are submitted here; what was combined
 * before a manual scope is the first thing that the submit depends on. */
static __attribute__ ((noinline)) void
look_before (struct pto_engine *engine, const struct pto_submit *submit)
{
  if ((engine->before & PTO_BEFORE_SETS) != 0)
    engine->reducer->settle (engine, submit);
  if ((engine->before & PTO_BEFORE_RENAME) != 0)
    {
      count_creators (engine, submit);
      if (engine->deadlock.what == PTO_OK)
        rename_outputs (engine, submit);
    }
  engine->deps.count = 0;
  if ((engine->before & PTO_BEFORE_COMBINED) == 0)
    return;
  if (pto_task_is_retired (engine->tails, engine->combined)
      && !(engine->failed.count > 0 && pto_task_set_has (&engine->failed, engine->combined)))
    engine->before &= ~(uint32_t) PTO_BEFORE_COMBINED;
  else if (engine->tracked == 0
           && !pto_deps_add (&engine->deps, engine->combined, PTO_HAZARD_EXPLICIT))
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for a dependency of a task"));
}

const char *
pto_engine_locate (Tensor *tensor)
{
  return locate (tensor);
}

static void count_submit (struct pto_engine *engine, const struct pto_submit *submit);

/* Is an unmade output of a scope outside of the current one? Its memory would go with the scope
 * inside, as its task does. A graph's memory goes when its last user is done. */
static inline bool
is_of_outside (const struct pto_engine *engine, const struct PTO2Buffer *buffer)
{
  return buffer != NULL && buffer->depth != engine->depth && engine->capture == NULL;
}

/* Makes the memory of outputs of scopes outside: for each of them a task there, which only orders.
 * false: the run has failed. */
static __attribute__ ((noinline)) bool
make_outside (struct pto_engine *engine, const struct pto_submit *submit)
{
  bool adding = engine->adding;
  bool counts = engine->deadlock.what != PTO_OK;

  engine->adding = false;
  for (uint32_t i = 0; i < submit->n_params && (counts || !pto_engine_has_failed (engine)); i++)
    {
      PTOParam output = submit->params[i];
      uint32_t depth;

      if (output.type != PTO_PARAM_OUTPUT || locate (&output.tensor) != NULL
          || output.tensor.buffer.addr != 0 || !is_of_outside (engine, output.tensor.storage))
        continue;
      depth = pto_engine_step_out (engine, output.tensor.storage->depth);
      pto_engine_submit (engine, &(struct pto_submit){ .kernel = PTO_KERNEL_NONE,
                                                       .queue = submit->wish != NULL
                                                                    ? submit->wish->members[0].queue
                                                                    : submit->queue,
                                                       .params = &output,
                                                       .n_params = 1 });
      engine->depth = depth;
    }
  engine->adding = adding;
  if (adding)
    pto_added_note (engine);
  if (!counts && engine->deadlock.what != PTO_OK)
    count_submit (engine, submit);
  return counts || !pto_engine_has_failed (engine);
}

/* Returns the record of the memory in which a tensor without a handle lies; NULL without words: it
 * is the caller's. */
static __attribute__ ((noinline)) struct PTO2Buffer *
find_owner (struct pto_engine *engine, const Tensor *tensor, const char **why)
{
  struct pto_region region;
  struct PTO2Buffer *buffer;
  bool is_ours = false;

  for (uint32_t ring = 0; ring < PTO_RINGS && !is_ours; ring++)
    {
      const struct pto_circle *heap = &engine->rings[ring].heap;

      is_ours = tensor->buffer.addr - (uint64_t) (uintptr_t) heap->base < heap->size;
    }
  if (!is_ours)
    return NULL;
  pto_region_init (&region, tensor);
  buffer = pto_engine_find_buffer (engine, region.lo);
  if (buffer == NULL)
    *why = _ ("the tensor is named by an address in memory of the runtime that no tensor has: use "
              "a tensor's handle, in its scope");
  else if (region.hi - buffer->addr > buffer->bytes)
    *why = _ ("the tensor is named by an address in memory of the runtime, and reaches beyond the "
              "tensor there: use that tensor's handle, or fewer elements");
  return buffer;
}

/* Gives every tensor its address, and lists what the task must wait for or whose memory it uses.
 * Tensors of the caller come to their spaces one by one: one that joins two spaces was of neither
 * of those that tensors before it asked for, or they would be one already. plain: false says that
 * it takes another look. */
static inline __attribute__ ((always_inline)) bool
examine (struct pto_engine *engine, const struct pto_submit *submit, struct pto_needs *needs,
         bool plain)
{
  struct pto_deps *deps = &engine->deps;
  struct pto_access *access;
  const PTOParam *end = submit->params + submit->n_params;
  uint32_t n_tensors;
  uint32_t n_outputs;
  uint32_t kinds;
  uint64_t heap;
  bool ok = true;

again:
  access = engine->accesses;
  n_tensors = n_outputs = 0;
  kinds = PTO_PARAM_INPUT;
  heap = 0;
  deps->count = 0;
  if (!plain && PTO_UNLIKELY (engine->before != 0))
    look_before (engine, submit);
  needs->n_updates = 0;
  needs->claims = 0;
  for (PTOParam *param = submit->params; param < end; param++, access++)
    {
      Tensor *tensor = &param->tensor;
      struct PTO2Buffer *buffer;
      struct pto_space *space;
      const char *why;

      if (param->type == PTO_PARAM_SCALAR)
        continue;
      if (PTO_UNLIKELY ((uint32_t) param->type > PTO_PARAM_SCALAR))
        {
          if (plain)
            return false;
          engine->reduces = param->type == PTO_PARAM_REDUCTION;
          if (engine->reduces)
            return false;
          why = refuse_unusual (engine, param);
          if (why != NULL)
            return refuse (engine, submit, param, why);
          access->token = 0;
          needs->n_updates += param->type == PTO_PARAM_COMMUTATIVE;
          needs->claims = pto_claims_size (needs->n_updates);
        }
      why = locate (tensor);
      if (PTO_UNLIKELY (why != NULL))
        return !plain && refuse (engine, submit, param, why);
      buffer = tensor->storage;
      n_tensors++;
      if (tensor->buffer.addr == 0)
        {
          if (PTO_UNLIKELY (param->type != PTO_PARAM_OUTPUT && param->type != PTO_PARAM_SCRATCH))
            return !plain
                   && refuse (engine, submit, param,
                              _ ("the tensor has no memory yet: no task has output it"));
          if (PTO_UNLIKELY (is_of_outside (engine, buffer)))
            {
              if (plain || !make_outside (engine, submit))
                return false;
              goto again;
            }
          if (buffer != NULL)
            tensor->buffer.size = buffer->bytes;
          n_outputs++;
          heap += pto_engine_output_bytes (engine, tensor->buffer.size);
          continue;
        }
      if (buffer == NULL
          && PTO_UNLIKELY (tensor->buffer.addr - engine->heaps_begin < engine->heaps_size))
        {
          buffer = find_owner (engine, tensor, &why);
          if (PTO_UNLIKELY (why != NULL))
            return !plain && refuse (engine, submit, param, why);
        }
      kinds |= (uint32_t) param->type;
      if ((uint32_t) param->type < engine->tracked
          || (!plain && PTO_UNLIKELY (param->type == PTO_PARAM_COMMUTATIVE)))
        {
          space = buffer != NULL ? &buffer->space
                                 : pto_map_external_space (engine->map, tensor->buffer.addr,
                                                           tensor->buffer.size);
          pto_access_init (access, space, tensor);
          ok = pto_map_lookup (engine->map, access, param->type, deps);
        }
      if (buffer != NULL)
        {
          if (deps->count > 0 && deps->items[deps->count - 1].task == buffer->space.creator)
            deps->items[deps->count - 1].kinds |= PTO_DEP_RETAIN;
          else
            ok = ok && pto_deps_add (deps, buffer->space.creator, PTO_DEP_RETAIN);
        }
      if (PTO_UNLIKELY (!ok))
        return pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                                _ ("no memory for the %u dependencies of a task"), deps->count);
    }
  needs->n_tensors = n_tensors;
  needs->heap = heap;
  needs->n_outputs = n_outputs;
  needs->kinds = kinds;
  return true;
}

/* What the submit names itself, behind what its tensors have found. A position that the ring has
 * not reached was never given; one that a run before this one has given is not told apart. */
static __attribute__ ((noinline)) bool
name_producers (struct pto_engine *engine, const struct pto_submit *submit)
{
  for (uint32_t i = 0; i < submit->n_producers; i++)
    {
      pto_task_id id = submit->producers[i];

      if (PTO_TASK_RING (id) >= PTO_RINGS
          || (int32_t) (PTO_TASK_LOCAL (id) - engine->rings[PTO_TASK_RING (id)].head) >= 0)
        return pto_engine_refuse (
            engine, submit->kernel, PTO_STATUS_INVALID_ARGS,
            _ ("it comes after task %" PRIu64
               " (number %u of those that it names), which is no task of this run: "
               "name a task by what its submit gave"),
            id, i);
      if (pto_task_is_retired (engine->tails, id))
        {
          pto_observe_past (engine, id, PTO_HAZARD_EXPLICIT);
          if (pto_task_set_has (&engine->failed, id))
            engine->poisoned_by = id;
        }
      else if (!pto_deps_add (&engine->deps, id, PTO_HAZARD_EXPLICIT))
        return pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                                _ ("no memory for the %u dependencies of a task"),
                                engine->deps.count);
    }
  return true;
}

/* Each producer once. Gives how many of them the task waits for, and whose memory it retains. */
static inline __attribute__ ((always_inline)) uint32_t
merge_dependencies (struct pto_engine *engine, uint32_t *n_retained)
{
  struct pto_dep *deps = engine->deps.items;
  uint32_t count = engine->deps.count;
  uint64_t number;
  uint32_t n = 0;
  uint32_t retained = 0;
  uint32_t only = 0; /* of these: without a wait */

  *n_retained = 0;
  if (count == 0)
    return 0;
  number = ++engine->serial;
  for (uint32_t i = 0; i < count; i++)
    {
      struct pto_dep dep = deps[i];
      struct pto_slot *producer
          = pto_ring_slot (&engine->rings[PTO_TASK_RING (dep.task)], PTO_TASK_LOCAL (dep.task));

      /* Only failed tasks are found after they have retired, or all where somebody watches; the
       * slot is somebody else's by now. */
      if (PTO_UNLIKELY (pto_task_is_retired (engine->tails, dep.task)))
        {
          pto_observe_past (engine, dep.task, dep.kinds);
          if ((dep.kinds & PTO_HAZARD_RAW) != 0 && pto_task_set_has (&engine->failed, dep.task))
            engine->poisoned_by = dep.task;
          continue;
        }
      if (producer->mark == number)
        {
          uint32_t before = deps[producer->mark_edge].kinds;

          only -= before == PTO_DEP_RETAIN && dep.kinds != PTO_DEP_RETAIN;
          retained += (dep.kinds & ~before) / PTO_DEP_RETAIN;
          deps[producer->mark_edge].kinds = before | dep.kinds;
          continue;
        }
      producer->mark = number;
      producer->mark_edge = n;
      if (dep.kinds >= PTO_DEP_RETAIN)
        {
          retained++;
          only += dep.kinds == PTO_DEP_RETAIN;
        }
      if (PTO_UNLIKELY (n != i))
        deps[n] = dep;
      n++;
    }
  engine->deps.count = n;
  *n_retained = retained;
  return n - only;
}

/* --- the slot --- */

static void
write_guard (const struct pto_engine *engine, uint64_t address)
{
  pto_fence_write (address, engine->config.guard_bytes);
}

/* Writes arguments and output addresses, and records the accesses; nobody else can see the slot
 * yet.
 */
static inline __attribute__ ((always_inline)) void
fill_payload (struct pto_engine *engine, struct pto_slot *slot, const struct pto_submit *submit,
              const struct pto_needs *needs, uint8_t *storage, uint8_t *heap, bool plain)
{
  struct pto_payload *payload = (struct pto_payload *) storage;
  uint32_t n_params = submit->n_params;
  int64_t *args = payload->args;
  TensorData *tensors = (TensorData *) (args + n_params);
  uint64_t *guards = (uint64_t *) (tensors + needs->n_tensors);
  bool others = needs->n_guards > needs->n_outputs;
  struct pto_access *access = engine->accesses;
  const PTOParam *end = submit->params + n_params;
  int64_t *arg = args;
  uint32_t n_guards = 0;

  for (PTOParam *param = submit->params; param < end; param++, access++)
    {
      Tensor *tensor = &param->tensor;
      uint64_t *made;

      if (param->type == PTO_PARAM_SCALAR)
        {
          *arg++ = (int64_t) param->scalar;
          continue;
        }
      made = NULL;
      if (tensor->buffer.addr == 0)
        {
          struct PTO2Buffer *buffer = tensor->storage;
          bool fresh = false;

          /* The same buffer may be named twice as an output: the first gave it its address. */
          if (buffer != NULL && buffer->addr != 0)
            tensor->buffer.addr = buffer->addr;
          else
            {
              tensor->buffer.addr = (uint64_t) (uintptr_t) heap;
              if (engine->config.guard_bytes > 0)
                {
                  made = &guards[n_guards++];
                  *made = tensor->buffer.addr + tensor->buffer.size;
                  /* Written before the kernel runs, which is soon. */
                  __builtin_prefetch ((const void *) (uintptr_t) *made, 1);
                }
              heap += pto_engine_output_bytes (engine, tensor->buffer.size);
              if (buffer != NULL)
                {
                  buffer->addr = tensor->buffer.addr;
                  buffer->space.creator = slot->id;
                  fresh = buffer->depth == engine->depth;
                }
            }
          /* Without a handle nobody else can name it. */
          pto_access_init (access, buffer != NULL ? &buffer->space : NULL, tensor);
          access->fresh = fresh;
          /* Who writes to the rest of it does not wait for this task. What is captured or counted
           * has no memory. */
          if (PTO_UNLIKELY (access->region.run != tensor->buffer.size) && made != NULL
              && engine->capture == NULL && engine->deadlock.what == PTO_OK)
            {
              write_guard (engine, *made);
              *made |= PTO_GUARD_WRITTEN;
            }
        }
      /* A Tensor begins with what a kernel sees of it; dimensions beyond ndims are copied as they
       * are. */
      memcpy (tensors, tensor, sizeof *tensors);
      *arg++ = (int64_t) (uintptr_t) tensors++;
      if ((uint32_t) param->type < engine->tracked
          || (!plain && PTO_UNLIKELY (param->type == PTO_PARAM_COMMUTATIVE)))
        {
          pto_map_insert (engine->map, access, param->type, slot->id);
          if (made == NULL && others && tensor->storage != NULL)
            guards[n_guards++]
                = (tensor->storage->addr + tensor->storage->bytes) | PTO_GUARD_OTHERS;
        }
      else if (!plain && PTO_UNLIKELY (param->type == PTO_PARAM_SCRATCH))
        tensor->buffer.addr = 0; /* of this task only; the next submit of it makes another one */
    }
  payload->n_args = n_params;
  payload->n_guards = (uint16_t) n_guards;
  payload->n_fences = (uint16_t) needs->n_fences;
  payload->guards = guards;
  payload->terms = submit->terms;
  payload->file = NULL;
  payload->line = 0;
  if (engine->runtime != NULL && PTO_LIKELY (engine->runtime->line > 0))
    {
      payload->file = engine->runtime->file;
      payload->line = (uint32_t) engine->runtime->line;
    }
  payload->services = engine->config.services;
  payload->block = PTO_BLOCK_ALONE;
  if (PTO_UNLIKELY (needs->n_fences > 0))
    pto_fence_copy ((struct pto_fence *) (guards + n_guards), engine->fences, needs->n_fences);
  if (!plain && submit->extra_bytes > 0)
    memcpy (pto_payload_extra (payload), submit->extra, submit->extra_bytes);
  slot->payload = payload;
}

/* Pushes an edge on the producer's fan-out list. false: the producer is done already. */
static inline bool
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

/* The same where nobody else knows the producer yet. */
static inline void
push_edge_held (struct pto_slot *producer, struct pto_edge *edge, uint32_t edge_ref)
{
  edge->next = pto_load_relaxed (&producer->fanout);
  pto_store_relaxed (&producer->fanout, edge_ref);
}

/* Links the task to its producers; those that retain take the front of its edges. Gives how many it
 * must wait for that were done already. all_done: they are, and only retaining is left. */
static inline __attribute__ ((always_inline)) uint32_t
wire (struct pto_engine *engine, struct pto_ring *ring, uint32_t ring_index, struct pto_slot *slot,
      uint32_t n_edges, bool all_done, struct pto_links *links)
{
  pto_slot_ref ref = PTO_SLOT_REF (ring_index, PTO_TASK_LOCAL (slot->id) & ring->mask);
  uint32_t front = slot->first_edge;
  uint32_t back = slot->first_edge + n_edges;
  uint32_t done = 0;

  for (uint32_t i = 0; i < links->n_deps; i++)
    {
      struct pto_dep dep = links->deps[i];
      const struct pto_ring *of = &engine->rings[PTO_TASK_RING (dep.task)];
      bool waits = (dep.kinds & ~PTO_DEP_RETAIN) != 0 && !all_done;
      struct pto_slot *producer;
      struct pto_edge *edge;
      uint32_t index;

      if (all_done && (dep.kinds & PTO_DEP_RETAIN) == 0)
        continue;
      if (links->base != NULL)
        {
          uint32_t of_ring = PTO_TASK_RING (dep.task);

          dep.task = PTO_TASK_ID (of_ring, PTO_TASK_LOCAL (dep.task) + links->base[of_ring]);
          links->n_kept += !waits;
        }

      /* Retired while this submit waited for room. */
      if (PTO_UNLIKELY (pto_task_is_retired (engine->tails, dep.task)))
        {
          if (engine->failed.count > 0 && pto_task_set_has (&engine->failed, dep.task))
            pto_store_relaxed (&slot->poison, dep.task);
          done += waits;
          continue;
        }
      producer = pto_ring_slot (of, PTO_TASK_LOCAL (dep.task));
      if ((dep.kinds & PTO_DEP_RETAIN) != 0)
        {
          index = front++ & (ring->edge_pool - 1);
          /* Only the submitter takes references and only the submitter retires: no race. */
          producer->taken++;
        }
      else
        index = --back & (ring->edge_pool - 1);
      edge = &ring->edges[index];
      edge->consumer = ref;
      edge->producer
          = PTO_SLOT_REF (PTO_TASK_RING (dep.task), PTO_TASK_LOCAL (dep.task) & of->mask);
      edge->flags
          = ((dep.kinds & PTO_DEP_RETAIN) != 0 ? PTO_EDGE_RETAIN : 0) | (waits ? PTO_EDGE_WAIT : 0);
      if (links->held != NULL && waits
          && (int32_t) (PTO_TASK_LOCAL (dep.task) - links->held[PTO_TASK_RING (dep.task)]) >= 0)
        {
          push_edge_held (producer, edge, PTO_EDGE_REF (ring_index, index));
          links->n_held++;
        }
      else if (waits && !push_edge (slot, producer, edge, PTO_EDGE_REF (ring_index, index)))
        done++;
    }
  slot->n_retained = front - slot->first_edge;
  return done;
}

/* --- tasks without a kernel --- */

/* What is found behind its outputs is written now where nobody runs the task, or where several do:
 * one that begins must not mend what another has spoiled. */
static void
write_guards (const struct pto_engine *engine, const struct pto_payload *payload)
{
  for (uint32_t g = 0; g < payload->n_guards; g++)
    if ((payload->guards[g] & PTO_GUARD_OTHERS) == 0)
      write_guard (engine, payload->guards[g] & ~PTO_GUARD_FLAGS);
}

/* Their memory is there at once, and whoever has submitted the task may know where. */
static void
pin_outputs (const struct pto_submit *submit)
{
  for (uint32_t i = 0; i < submit->n_params; i++)
    if (submit->params[i].type == PTO_PARAM_OUTPUT && submit->params[i].tensor.storage != NULL)
      submit->params[i].tensor.storage->space.pinned = true;
}

/* It waits for nothing, and is over at once. Nobody else knows the slot. false: it is poisoned, or
 * some task names it as its producer by now: both are told where it is scheduled. */
static bool
pass (struct pto_engine *engine, struct pto_slot *slot)
{
  if (pto_load_relaxed (&slot->poison) != PTO_TASK_NONE || pto_load_relaxed (&slot->fanout) != 0)
    return false;
  pto_engine_release_producers (engine, slot, false);
  pto_store_relaxed (&slot->fanout, PTO_FANOUT_CLOSED);
  pto_store_release (&slot->state, PTO_TASK_COMPLETED);
  pto_store_relaxed (&engine->passed, pto_load_relaxed (&engine->passed) + 1);
  return true;
}

/* What is mostly there: room for everything, without retiring or turning. NULL: it takes more. */
static inline __attribute__ ((always_inline)) struct pto_slot *
take_room (struct pto_engine *engine, struct pto_ring *ring, uint32_t ring_index,
           const struct pto_needs *needs, uint64_t *heap_offset, uint64_t *storage_offset)
{
  bool compact = ring->floor == ring->head;
  struct pto_slot *slot;

  if (PTO_UNLIKELY (
          ring->head - engine->tails[ring_index] >= ring->window - 1
          || ring->edge_pool - (ring->edge_head - ring->edge_tail) < needs->n_edges
          || !pto_map_has_room (engine->map, pto_needs_nodes (needs))
          || !pto_circle_has_room (&ring->storage, needs->storage, compact)
          || (needs->heap > 0 && !pto_circle_has_room (&ring->heap, needs->heap, compact))))
    return NULL;
  slot = pto_ring_slot (ring, ring->head);
  *storage_offset = pto_circle_take (&ring->storage, needs->storage);
  *heap_offset = needs->heap > 0 ? pto_circle_take (&ring->heap, needs->heap) : 0;
  slot->heap_end = ring->heap.head;
  slot->heap_bytes = needs->heap;
  slot->storage_end = ring->storage.head;
  slot->storage_bytes = needs->storage;
  return slot;
}

/* The next submits' lines come while the caller does something else: whoever ran what was there
 * before has them, or nobody has had them for long. */
static inline void
expect_submits (const struct pto_ring *ring, uint64_t storage)
{
  const char *slot = (const char *) pto_ring_slot (ring, ring->head + 1);
  const uint8_t *arguments = ring->storage.base + ring->storage.head + storage;

  __builtin_prefetch (slot, 1);
  __builtin_prefetch (slot + 64, 1);
  __builtin_prefetch (arguments, 1);
  __builtin_prefetch (arguments + 64, 1);
  __builtin_prefetch (arguments + 128, 1);
}

/* --- tasks with parts --- */

/* Room for that much that goes with a task which nobody gets, kept until the next. */
static uint8_t *
get_scratch (struct pto_engine *engine, uint64_t bytes)
{
  if (bytes > engine->scratch_bytes)
    {
      void *grown = realloc (engine->scratch, bytes);

      if (grown == NULL)
        {
          pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                           _ ("no memory for the %" PRIu64 " bytes of a task's parts"), bytes);
          return NULL;
        }
      engine->scratch = grown;
      engine->scratch_bytes = bytes;
    }
  return engine->scratch;
}

/* Does it need one place of a kind, whichever it is? */
static bool
is_plain (const struct pto_wish *wish)
{
  return wish == NULL
         || (wish->n_members == 1 && wish->members[0].place == PTO_PLACE_ANY
             && wish->members[0].sub == 0 && wish->cohort == PTO_COHORT_NONE);
}

/* The same submit with room for its parts. One that is like any other task becomes one. */
static __attribute__ ((noinline)) pto_task_id
submit_parts (struct pto_engine *engine, const struct pto_submit *submit)
{
  const struct pto_wish *wish = submit->wish;
  struct pto_submit full = *submit;

  full.n_blocks = submit->n_blocks > 1 ? submit->n_blocks : 1;
  if (submit->kernel != PTO_KERNEL_NONE && wish != NULL)
    {
      full.kernel = wish->n_members > 0 ? wish->members[0].kernel : submit->kernel;
      if (!pto_place_admit (engine, full.kernel, wish, full.n_blocks))
        return PTO_TASK_NONE;
      full.queue = wish->members[0].queue;
    }
  if (submit->kernel == PTO_KERNEL_NONE || is_plain (wish))
    full.wish = NULL;
  if (submit->kernel == PTO_KERNEL_NONE || (full.wish == NULL && full.n_blocks == 1))
    full.n_blocks = 0;
  else
    full.parts_bytes
        = pto_parts_bytes (full.extra_bytes, full.wish != NULL ? full.wish->n_members : 0);
  /* What is written down has its parts laid out when it is launched. */
  if (full.wish != NULL && engine->capture == NULL)
    full.queue = PTO_QUEUE_LINE;
  return pto_engine_submit (engine, &full);
}

void
pto_engine_add_parts (struct pto_engine *engine, struct pto_slot *slot, uint32_t extra_bytes,
                      const struct pto_wish *wish, uint32_t n_blocks)
{
  slot->kernel |= PTO_KERNEL_PARTS;
  slot->parts = (struct pto_parts *) ((uint8_t *) pto_payload_extra (slot->payload)
                                      + align_up (extra_bytes, alignof (struct pto_party)));
  if (wish != NULL)
    pto_party_init (slot->party, wish, n_blocks);
  else
    pto_parts_init (slot->parts, n_blocks, n_blocks);
  /* Relaxed: the count goes down behind the slot's being ready. */
  if (wish != NULL && wish->together && wish->cohort != PTO_COHORT_NONE)
    pto_fetch_add_relaxed (&engine->line.cohorts[wish->cohort].open, 1);
  write_guards (engine, slot->payload);
}

/* --- counting, for the words of a deadlock --- */

static inline void
count_demand (struct pto_engine *engine, const struct pto_needs *needs, uint32_t n_edges)
{
  struct pto_demand *demand = &engine->demand[needs->ring];

  demand->now[PTO_GOOD_TASKS]++;
  demand->now[PTO_GOOD_HEAP] += needs->heap;
  demand->now[PTO_GOOD_STORAGE] += needs->storage;
  demand->now[PTO_GOOD_EDGES] += n_edges;
  demand->now[PTO_GOOD_NODES] += pto_needs_nodes (needs);
  if (needs->heap > demand->largest[PTO_GOOD_HEAP])
    demand->largest[PTO_GOOD_HEAP] = needs->heap;
  if (needs->storage > demand->largest[PTO_GOOD_STORAGE])
    demand->largest[PTO_GOOD_STORAGE] = needs->storage;
}

static __attribute__ ((noinline, cold)) pto_task_id
submit_reducing (struct pto_engine *engine, const struct pto_submit *submit)
{
  engine->reduces = false;
  return engine->reducer->submit (engine, submit);
}

static int
compare_deps (const void *a, const void *b)
{
  const struct pto_dep *one = a;
  const struct pto_dep *other = b;

  return (one->task > other->task) - (one->task < other->task);
}

/* How many tasks there are in the list. */
static __attribute__ ((cold)) uint32_t
count_producers (struct pto_deps *deps)
{
  uint32_t n = 0;

  if (deps->count > 0)
    qsort (deps->items, deps->count, sizeof *deps->items, compare_deps);
  for (uint32_t i = 0; i < deps->count; i++)
    n += i == 0 || deps->items[i].task != deps->items[i - 1].task;
  return n;
}

/* Fills a task that nobody gets, so that its accesses are recorded. heap: where its outputs would
 * be. false: no memory. */
static __attribute__ ((noinline)) bool
fill_nowhere (struct pto_engine *engine, const struct pto_submit *submit, struct pto_needs *needs,
              pto_task_id id, uint64_t heap)
{
  struct pto_slot slot = { .id = id };
  /* Nobody reads what it is filled with. */
  struct pto_submit bare = *submit;
  uint8_t *storage;

  bare.extra_bytes = bare.parts_bytes = 0;
  needs->n_fences = 0;
  storage = get_scratch (engine, storage_bytes (&bare, needs));
  if (storage != NULL)
    fill_payload (engine, &slot, &bare, needs, storage, (uint8_t *) (uintptr_t) heap, false);
  return storage != NULL;
}

/* Tasks of scopes that have ended are kept as long as the map has room: the next run may find them.
 */
static bool
reserve_counted (struct pto_engine *engine, uint32_t n)
{
  if (pto_map_reserve (engine->map, n))
    return true;
  engine->deadlock.exact = false;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    engine->counted_tails[r] = engine->demand[r].let_go > 0
                                   ? engine->rings[r].head + engine->demand[r].let_go
                                   : engine->tails[r];
  pto_map_set_tails (engine->map, engine->counted_tails);
  return pto_map_reserve (engine->map, n);
}

/* Records the accesses of a task, which has been counted, if a deadlock has kept it from being
 * submitted: so tasks after it find what they depend on. Addresses of what it would have made begin
 * at 1. */
static __attribute__ ((cold)) void
count_accesses (struct pto_engine *engine, const struct pto_submit *submit, struct pto_needs *needs)
{
  uint32_t ring = needs->ring;
  pto_task_id task;

  if (engine->deadlock.what == PTO_OK)
    return;
  task = PTO_TASK_ID (ring, engine->rings[ring].head + engine->demand[ring].counted++);
  if (reserve_counted (engine, pto_needs_nodes (needs))
      && fill_nowhere (engine, submit, needs, task, 1))
    return;
  engine->deadlock.incomplete = true;
  for (const PTOParam *param = submit->params; param < submit->params + submit->n_params; param++)
    if (param->type == PTO_PARAM_OUTPUT && param->tensor.storage != NULL
        && param->tensor.storage->addr == 0)
      param->tensor.storage->addr = 1;
}

/* After a deadlock nothing is submitted any more, but what would have been is counted. */
static __attribute__ ((cold)) void
count_submit (struct pto_engine *engine, const struct pto_submit *submit)
{
  struct pto_needs needs = { .ring = pto_engine_ring_of_depth (engine->depth - 1) };

  if (engine->depth > PTO_SCOPE_MAX || submit->n_params > PTO_ARGS_MAX)
    return;
  if (!examine (engine, submit, &needs, false))
    {
      if (engine->reduces)
        submit_reducing (engine, submit);
      return;
    }
  needs.n_guards = engine->guards_ordered ? needs.n_tensors : needs.n_outputs;
  needs.n_fences = pto_engine_note_fences (engine, submit->params, submit->n_params);
  needs.storage = storage_bytes (submit, &needs);
  count_demand (engine, &needs, count_producers (&engine->deps) + submit->n_producers);
  count_accesses (engine, submit, &needs);
}

/* --- the call --- */

static __attribute__ ((noinline)) bool
sweep (struct pto_engine *engine)
{
  engine->unswept = 0;
  if (PTO_LIKELY (engine->capture == NULL))
    pto_engine_retire_all (engine);
  if (engine->resume)
    pto_engine_resume_direct (engine);
  return !pto_engine_ask_cancelled (engine);
}

/* A slot with its memory and edges, as nobody has seen it yet. NULL: the run has failed, or there
 * is no room just now and it is not to wait. */
static inline __attribute__ ((always_inline)) struct pto_slot *
take_slot (struct pto_engine *engine, const struct pto_needs *needs, uint32_t kernel,
           uint32_t queue, uint32_t priority, uint32_t n_wait, bool wait, struct pto_room *room)
{
  struct pto_ring *ring = &engine->rings[needs->ring];
  uint64_t heap_offset;
  uint64_t storage_offset;
  struct pto_slot *slot
      = take_room (engine, ring, needs->ring, needs, &heap_offset, &storage_offset);

  if (slot == NULL && wait)
    slot = pto_engine_make_room (engine, needs->ring, needs, &heap_offset, &storage_offset);
  if (slot == NULL)
    return NULL;
  slot->id = PTO_TASK_ID (needs->ring, ring->head);
  slot->kernel = kernel;
  slot->queue = (uint16_t) queue;
  slot->priority = (uint8_t) priority;
  slot->first_edge = ring->edge_head;
  slot->n_edges = needs->n_edges;
  slot->n_retained = 0;
  slot->taken = 0;
  pto_store_relaxed (&slot->fanout, 0);
  pto_store_relaxed (&slot->fanin, (int32_t) n_wait + 1);
  pto_store_relaxed (&slot->released, 0);
  pto_store_relaxed (&slot->poison, engine->poisoned_by);
  pto_store_relaxed (&slot->state, PTO_TASK_PENDING);
  room->storage = ring->storage.base + storage_offset + needs->claims;
  room->heap = ring->heap.base + heap_offset;
  return slot;
}

/* The tokens of the submit's updates that commute, whose accesses are recorded. */
static __attribute__ ((noinline)) void
claim (struct pto_engine *engine, struct pto_slot *slot, const struct pto_submit *submit)
{
  uint32_t tokens[PTO_ARGS_MAX];
  uint32_t n = 0;

  for (uint32_t i = 0; i < submit->n_params; i++)
    if (submit->params[i].type == PTO_PARAM_COMMUTATIVE)
      tokens[n++] = engine->accesses[i].token;
  pto_turn_claim (slot, tokens, n);
  if (engine->observed)
    pto_observe_claims (engine, slot);
}

/* The slot is filled: it is wired to its producers. Gives how many of those were done already. */
static inline __attribute__ ((always_inline)) uint32_t
link_slot (struct pto_engine *engine, struct pto_slot *slot, const struct pto_needs *needs,
           uint32_t n_wait, bool direct, struct pto_links *links, bool plain)
{
  struct pto_ring *ring = &engine->rings[needs->ring];
  uint32_t kernel = slot->kernel;
  uint32_t done = 0;

  if (!plain && PTO_UNLIKELY (kernel == PTO_KERNEL_NONE))
    write_guards (engine, slot->payload);
  if (!plain && PTO_UNLIKELY (engine->observed))
    pto_observe_submit (engine, slot, needs->ring, links->n_deps, needs->heap > 0);
  ring->edge_head += needs->n_edges;
  ring->head++;
  engine->submitted++;
  if (links->n_deps > 0)
    {
      if (needs->n_edges > 0)
        done = wire (engine, ring, needs->ring, slot, needs->n_edges, direct, links);
      engine->stats.edges += n_wait - links->n_kept;
    }
  pto_ring_publish (ring);
  if (!plain && PTO_UNLIKELY (engine->observed))
    pto_observe_occupancy (engine, needs->ring);
  return done;
}

/* It is somebody else's from here on, at the latest when its last producer is done. queue: as the
 * submit names it; that of the slot may change. */
static inline __attribute__ ((always_inline)) void
let_go (struct pto_engine *engine, struct pto_slot *slot, uint32_t queue, uint32_t n_wait,
        uint32_t done, bool direct, bool plain)
{
  if (direct)
    {
      if (!plain && PTO_UNLIKELY (engine->observed))
        pto_observe_ready (engine, slot, false);
      pto_engine_run_direct (engine, slot);
      return;
    }
  /* The submit's own count goes last: only now can the task become ready. Acquire: what producers
   * that were counted down by schedulers wrote; release: the slot, for whoever pops it. */
  if (n_wait == 0 || pto_fetch_sub_acq_rel (&slot->fanin, (int32_t) done + 1) == (int32_t) done + 1)
    {
      if (!plain && PTO_UNLIKELY (engine->observed))
        pto_observe_ready (engine, slot, done < n_wait);
      if (plain || PTO_LIKELY (slot->kernel != PTO_KERNEL_NONE) || !pass (engine, slot))
        {
          pto_engine_push_ready (engine, slot, engine->next_shard++);
          pto_engine_ring (engine, queue);
        }
    }
}

struct pto_slot *
pto_engine_take_slot (struct pto_engine *engine, const struct pto_needs *needs, uint32_t kernel,
                      uint32_t queue, uint32_t priority, uint32_t n_wait, bool wait,
                      struct pto_room *room)
{
  return take_slot (engine, needs, kernel, queue, priority, n_wait, wait, room);
}

uint32_t
pto_engine_link_slot (struct pto_engine *engine, struct pto_slot *slot,
                      const struct pto_needs *needs, uint32_t n_wait, bool direct,
                      struct pto_links *links)
{
  uint32_t done = link_slot (engine, slot, needs, n_wait, direct, links, false);

  expect_submits (&engine->rings[needs->ring], needs->storage);
  return done;
}

uint32_t
pto_engine_link_planned (struct pto_engine *engine, struct pto_slot *slot,
                         const struct pto_needs *needs, struct pto_links *links)
{
  uint32_t done;

  if (PTO_UNLIKELY (slot->kernel == PTO_KERNEL_NONE))
    write_guards (engine, slot->payload);
  done = link_slot (engine, slot, needs, needs->n_edges, false, links, true);
  expect_submits (&engine->rings[needs->ring], needs->storage);
  return done;
}

void
pto_engine_let_go (struct pto_engine *engine, struct pto_slot *slot, uint32_t queue,
                   uint32_t n_wait, uint32_t done, bool direct)
{
  let_go (engine, slot, queue, n_wait, done, direct, false);
}

bool
pto_engine_link_more (struct pto_engine *engine, struct pto_slot *slot, pto_task_id producer)
{
  uint32_t ring_index = PTO_TASK_RING (slot->id);
  struct pto_ring *ring = &engine->rings[ring_index];
  const struct pto_ring *of = &engine->rings[PTO_TASK_RING (producer)];
  uint32_t index = ring->edge_head++ & (ring->edge_pool - 1);
  struct pto_edge *edge = &ring->edges[index];

  /* Given back with the last task of the ring, which the consumer does not outlive. */
  pto_ring_slot (ring, ring->head - 1)->n_edges++;
  edge->consumer = PTO_SLOT_REF (ring_index, PTO_TASK_LOCAL (slot->id) & ring->mask);
  edge->producer = PTO_SLOT_REF (PTO_TASK_RING (producer), PTO_TASK_LOCAL (producer) & of->mask);
  edge->flags = PTO_EDGE_WAIT;
  engine->stats.edges++;
  if (engine->observed)
    pto_observe_link (engine, slot->id, producer);
  /* Relaxed: before the push, whose release orders it; it is not 0, whoever counts down. */
  pto_fetch_add_relaxed (&slot->fanin, 1);
  if (push_edge (slot, pto_ring_slot (of, PTO_TASK_LOCAL (producer)), edge,
                 PTO_EDGE_REF (ring_index, index)))
    return true;
  /* Acquire: as in let_go(). Nobody knows the edge. */
  pto_fetch_sub_acq_rel (&slot->fanin, 1);
  ring->edge_head--;
  pto_ring_slot (ring, ring->head - 1)->n_edges--;
  return false;
}

/* Nothing is run: the task is written down, as it would have been filled. */
static __attribute__ ((noinline)) pto_task_id
record (struct pto_engine *engine, const struct pto_submit *submit, struct pto_needs *needs)
{
  struct pto_ring *ring = &engine->rings[needs->ring];
  pto_task_id id = PTO_TASK_ID (needs->ring, ring->head);
  uint64_t heap = pto_capture_reserve (engine->capture, needs->heap);

  if (!pto_map_reserve (engine->map, needs->n_tensors * PTO_MAP_INSERT_NODES))
    {
      pto_engine_fail (engine, PTO_STATUS_MAP_OVERFLOW,
                       _ ("task %" PRIu64 " of a graph that is captured: the TensorMap is full"),
                       engine->submitted);
      return PTO_TASK_NONE;
    }
  needs->n_guards = needs->n_outputs;
  if (!fill_nowhere (engine, submit, needs, id, heap)
      || !pto_capture_task (engine, submit, heap, needs->heap))
    return PTO_TASK_NONE;
  ring->head++;
  engine->submitted++;
  return id;
}

bool
pto_engine_may_submit (struct pto_engine *engine)
{
  return ++engine->unswept < SWEEP_INTERVAL || sweep (engine);
}

static __attribute__ ((noinline)) void
observe_args (struct pto_engine *engine, const struct pto_slot *slot,
              const struct pto_submit *submit)
{
  uint8_t types[PTO_ARGS_MAX];

  for (uint32_t i = 0; i < submit->n_params; i++)
    types[i] = (uint8_t) submit->params[i].type;
  if (engine->fills)
    pto_unwritten_fill (engine, slot);
  if (engine->witness != NULL)
    engine->witness->task (engine->witness->data, slot, types, false);
  pto_observe_args (engine, slot, types);
}

/* The submit itself. plain: nothing of it is unusual, as is known where this is inlined, and
 * nothing of the engine is; false says that something is. */
static inline __attribute__ ((always_inline)) bool
submit_task (struct pto_engine *engine, const struct pto_submit *submit, bool plain,
             pto_task_id *id)
{
  struct pto_needs needs;
  struct pto_room room;
  struct pto_links links;
  struct pto_slot *slot;
  uint32_t n_wait;
  uint32_t n_retained;
  uint32_t done;
  bool direct;

  *id = PTO_TASK_NONE;
  if (++engine->unswept >= SWEEP_INTERVAL && !sweep (engine))
    return true;
  needs.ring = pto_engine_ring_of_depth (engine->depth - 1);
  if (!examine (engine, submit, &needs, plain))
    {
      if (plain)
        return false;
      if (engine->reduces)
        *id = submit_reducing (engine, submit);
      return true;
    }
  /* What stays is not complete before what is submitted next. */
  if (!plain && PTO_UNLIKELY (engine->adding))
    pto_engine_leave_direct (engine);
  direct = engine->direct;
  engine->poisoned_by = PTO_TASK_NONE;
  if (!plain && PTO_UNLIKELY (submit->n_producers > 0) && !name_producers (engine, submit))
    return true;
  if (!plain && PTO_UNLIKELY (engine->capture != NULL))
    {
      *id = record (engine, submit, &needs);
      return true;
    }
  pto_charge (engine->exec, engine->config.submit_cost
                                + (uint64_t) needs.n_tensors * engine->config.argument_cost);
  if (!plain && PTO_UNLIKELY (engine->order != NULL))
    pto_order_leave_out (engine->order, &engine->deps);
  n_wait = merge_dependencies (engine, &n_retained);
  /* Memory of the runtime is retained by whoever uses it. */
  needs.n_guards = n_retained > 0 && engine->guards_ordered ? needs.n_tensors : needs.n_outputs;
  needs.n_fences = 0;
  if (needs.n_tensors > 0
      && (pto_fence_any ()
          || (n_retained > 0
              && ((needs.kinds & PTO_PARAM_NO_DEP) != 0 || engine->tracked == 0
                  || !engine->guards_ordered))))
    needs.n_fences = pto_engine_note_fences (engine, submit->params, submit->n_params);
  needs.storage = storage_bytes (submit, &needs);
  needs.n_edges = direct ? n_retained : engine->deps.count;
  /* Also those that a task which the submitter runs itself does not take: the next run may let
   * another thread run it. */
  count_demand (engine, &needs, engine->deps.count);
  slot = take_slot (engine, &needs,
                    !plain && submit->conditional ? submit->kernel | PTO_KERNEL_IF : submit->kernel,
                    submit->queue, submit->terms.priority, n_wait, true, &room);
  if (slot == NULL)
    {
      count_accesses (engine, submit, &needs);
      return true;
    }
  fill_payload (engine, slot, submit, &needs, room.storage, room.heap, plain);
  if (!plain && PTO_UNLIKELY (submit->parts_bytes > 0))
    pto_engine_add_parts (engine, slot, submit->extra_bytes, submit->wish, submit->n_blocks);
  if (!plain && PTO_UNLIKELY (engine->observed))
    observe_args (engine, slot, submit);
  if (!plain && PTO_UNLIKELY (submit->kernel == PTO_KERNEL_NONE))
    pin_outputs (submit);
  *id = slot->id;
  links = (struct pto_links){ .deps = engine->deps.items, .n_deps = engine->deps.count };
  done = link_slot (engine, slot, &needs, n_wait, direct, &links, plain);
  if (!plain && PTO_UNLIKELY (needs.n_updates > 0) && submit->kernel != PTO_KERNEL_NONE)
    claim (engine, slot, submit);
  if (!plain && PTO_UNLIKELY (engine->order != NULL) && submit->kernel != PTO_KERNEL_NONE)
    pto_order_take (engine, slot);
  if (!plain && PTO_UNLIKELY (engine->adding))
    {
      /* Acquire: as in let_go(). What remains is never 0. */
      pto_fetch_sub_acq_rel (&slot->fanin, (int32_t) done);
      return true;
    }
  let_go (engine, slot, submit->queue, n_wait, done, direct, plain);
  if (!direct)
    {
      expect_submits (&engine->rings[needs.ring], needs.storage);
      pto_engine_share (engine);
    }
  if (!plain && PTO_UNLIKELY (engine->order != NULL))
    pto_engine_run_all (engine);
  return true;
}

pto_task_id
pto_engine_submit (struct pto_engine *engine, const struct pto_submit *submit)
{
  pto_task_id id;

  if (PTO_UNLIKELY (submit->wish != NULL || submit->n_blocks > 1) && submit->parts_bytes == 0)
    return submit_parts (engine, submit);
  if (PTO_UNLIKELY (pto_engine_has_failed (engine)))
    {
      if (engine->deadlock.what != PTO_OK)
        count_submit (engine, submit);
      return PTO_TASK_NONE;
    }
  if (PTO_UNLIKELY (submit->n_params > PTO_ARGS_MAX))
    {
      pto_engine_refuse (engine, submit->kernel, PTO_STATUS_INVALID_ARGS,
                         _ ("%u arguments; a task takes at most %u"), submit->n_params,
                         PTO_ARGS_MAX);
      return PTO_TASK_NONE;
    }
  if (PTO_UNLIKELY (submit->terms.priority != 0)
      && !pto_engine_use_priority (engine, submit->kernel, submit->terms.priority))
    return PTO_TASK_NONE;
  submit_task (engine, submit, false, &id);
  return id;
}

static __attribute__ ((noinline)) pto_task_id
submit_unusual (struct pto_engine *engine, uint32_t kernel, uint32_t queue, PTOParam *params,
                uint32_t n_params)
{
  const struct pto_submit task
      = { .kernel = kernel, .queue = queue, .params = params, .n_params = n_params };

  return pto_engine_submit (engine, &task);
}

pto_task_id
pto_engine_submit_plain (struct pto_engine *engine, uint32_t kernel, uint32_t queue,
                         PTOParam *params, uint32_t n_params)
{
  /* It does not leave this function: what it does not say costs nothing. */
  const struct pto_submit task
      = { .kernel = kernel, .queue = queue, .params = params, .n_params = n_params };
  pto_task_id id;

  if (PTO_UNLIKELY (pto_engine_has_failed (engine) || engine->capture != NULL || engine->adding
                    || engine->before != 0 || engine->observed || n_params > PTO_ARGS_MAX)
      || PTO_UNLIKELY (!submit_task (engine, &task, true, &id)))
    return submit_unusual (engine, kernel, queue, params, n_params);
  return id;
}
