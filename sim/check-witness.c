/* check-witness.c: what do the tasks of a checked run declare, and what do they come after?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include <stdlib.h>
#include <string.h>

#define ARGS_CHUNK ((size_t) 1 << 20)

static struct pto_check_arg *
take_args (struct pto_check *check, uint32_t n)
{
  size_t bytes = n * sizeof (struct pto_check_arg);
  struct pto_check_arg *args;

  if (check->chunk == NULL || check->chunk_used + bytes > check->chunk_size)
    {
      size_t size = bytes > ARGS_CHUNK / 2 ? bytes + ARGS_CHUNK : ARGS_CHUNK;
      void **chunk = malloc (size);

      if (chunk == NULL)
        return NULL;
      *chunk = check->chunk;
      check->chunk = chunk;
      check->chunk_size = size;
      check->chunk_used = 64;
    }
  args = (struct pto_check_arg *) ((uint8_t *) check->chunk + check->chunk_used);
  check->chunk_used += bytes;
  return args;
}

static void
describe_args (struct pto_check *check, struct pto_check_task *task, const struct pto_slot *slot,
               const uint8_t *types)
{
  const struct pto_payload *payload = slot->payload;
  const TensorData *tensor;
  uint32_t at = 0;
  uint32_t n = 0;
  uint32_t n_own;

  pto_payload_tensors (payload, &n_own);
  while (pto_payload_next_tensor (payload, &check->engine->shared, &at) != NULL)
    n++;
  task->args = take_args (check, n);
  if (task->args == NULL)
    {
      check->lost = true;
      return;
    }
  task->words = (uint64_t) (uintptr_t) payload->args;
  task->n_words = payload->n_args;
  at = 0;
  while ((tensor = pto_payload_next_tensor (payload, &check->engine->shared, &at)) != NULL)
    {
      struct pto_check_arg *arg = &task->args[task->n_args++];
      /* One that several arguments are, which a launch describes once, comes for each of them. */
      uint32_t index = at > n_own ? at - n_own - 1 : 0;

      while (index < payload->n_args && payload->args[index] != (int64_t) (uintptr_t) tensor)
        index++;
      *arg = (struct pto_check_arg){ .buffer = tensor->buffer.addr,
                                     .bytes = tensor->buffer.size,
                                     .data = (uint64_t) (uintptr_t) tensor,
                                     .dtype = (uint8_t) tensor->dtype,
                                     .index = (uint16_t) index,
                                     .type = PTO_PARAM_NO_DEP };
      /* Only what a kernel sees of it is read. */
      pto_region_init (&arg->region, (const Tensor *) tensor);
      if (index < payload->n_args)
        arg->type = types[index];
    }
}

/* Adds what no kernel does. It comes before what the task's kernels do. */
static void
add_part (struct pto_check *check, struct pto_check_task *task, uint64_t address, uint32_t bytes,
          uint32_t what)
{
  struct pto_check_part *part = malloc (sizeof *part + sizeof part->ranges[0]);

  pthread_mutex_lock (&check->lock);
  if (part == NULL)
    check->lost = true;
  else
    {
      *part = (struct pto_check_part){
        .next = task->parts, .task = (uint32_t) (task - check->tasks), .by_runtime = true, .n = 1
      };
      part->ranges[0] = (struct pto_check_range){ address, bytes, what };
      task->parts = part;
      check->n_ranges++;
    }
  pthread_mutex_unlock (&check->lock);
}

/* The condition is read when the task is ready. */
static void
add_condition (struct pto_check *check, struct pto_check_task *task, const struct pto_slot *slot)
{
  const struct pto_payload *payload = slot->payload;
  const TensorData *tensor = (const TensorData *) (uintptr_t) payload->args[payload->n_args - 1];
  uint32_t size = pto_dtype_size (tensor->dtype);

  add_part (check, task, tensor->buffer.addr + tensor->start_offset * size, size, 0);
}

void
pto_check_element (struct pto_check *check, pto_task_id id, const void *data, uint32_t bytes,
                   bool writes)
{
  uint32_t number = pto_check_number (check, id);

  if (number != PTO_CHECK_NONE)
    add_part (check, &check->tasks[number], (uint64_t) (uintptr_t) data, bytes,
              writes ? PTO_CHECK_WRITTEN : 0);
}

static void
witness_task (void *data, const struct pto_slot *slot, const uint8_t *types, bool linked)
{
  struct pto_check *check = data;
  struct pto_engine *engine = check->engine;
  uint32_t ring = PTO_TASK_RING (slot->id);
  const PTO2Runtime *runtime = engine->runtime;
  struct pto_check_task *task;

  if (check->n_tasks == PTO_CHECK_TASKS_MAX || PTO_TASK_LOCAL (slot->id) >= PTO_CHECK_TASKS_MAX)
    {
      check->n_unseen++;
      check->past.n = 0;
      return;
    }
  task = &check->tasks[check->n_tasks];
  *task = (struct pto_check_task){ .id = slot->id,
                                   .kernel = slot->kernel,
                                   .first_edge = check->edges.n,
                                   .n_waits = check->waits.n,
                                   .by_hand = engine->tracked == 0,
                                   .is_linked = linked };
  if (runtime != NULL && runtime->line > 0)
    {
      task->line = runtime->line;
      task->file = pto_trace_find_file (&check->files, runtime->file);
    }
  if (slot->heap_bytes > 0)
    {
      const struct pto_circle *heap = &engine->rings[ring].heap;
      uint64_t end = (uint64_t) (uintptr_t) heap->base + slot->heap_end;

      task->heap_hi = end;
      task->heap_lo = slot->heap_bytes < slot->heap_end ? end - slot->heap_bytes
                                                        : (uint64_t) (uintptr_t) heap->base;
    }
  describe_args (check, task, slot, types);
  if (slot->kernel != PTO_KERNEL_NONE && (slot->kernel & PTO_KERNEL_IF) != 0)
    add_condition (check, task, slot);
  for (uint32_t i = 0; i < check->past.n; i++)
    check->lost = !pto_check_append (&check->edges, check->past.items[i]) || check->lost;
  task->n_edges = check->past.n;
  check->past.n = 0;
  /* Behind the rest: a core finds the task by it. The ready queue orders it. */
  check->numbers[ring][PTO_TASK_LOCAL (slot->id)] = ++check->n_tasks;
}

static void
witness_edge (void *data, pto_task_id consumer, pto_task_id producer)
{
  struct pto_check *check = data;
  uint32_t to = consumer != PTO_TASK_NONE ? pto_check_number (check, consumer) : 0;
  uint32_t from = pto_check_number (check, producer);
  bool ok;

  if (from == PTO_CHECK_NONE || to == PTO_CHECK_NONE)
    return;
  if (consumer == PTO_TASK_NONE)
    ok = pto_check_append (&check->past, from);
  else if (to + 1 == check->n_tasks)
    {
      ok = pto_check_append (&check->edges, from);
      check->tasks[to].n_edges += ok;
    }
  else
    ok = pto_check_append (&check->late, to) && pto_check_append (&check->late, from);
  check->lost = !ok || check->lost;
}

static void
witness_wait (void *data, pto_task_id id)
{
  struct pto_check *check = data;
  uint32_t number = id != PTO_TASK_NONE ? pto_check_number (check, id) : PTO_CHECK_NONE;

  if (id != PTO_TASK_NONE && number == PTO_CHECK_NONE)
    return;
  if (!pto_check_append (&check->waits, number)
      || !pto_check_append (&check->wait_tasks, check->n_tasks))
    check->lost = true;
}

void
pto_check_witness_runs (struct pto_check *check)
{
  check->witness = (struct pto_witness){ check, witness_task, witness_edge, witness_wait };
  check->engine->witness = &check->witness;
}
