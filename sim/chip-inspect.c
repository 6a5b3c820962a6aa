/* chip-inspect.c: what does a chip do, core by core, as somebody sees it who has no part in its
 * run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a core is given is written by its scheduler while the core does nothing: behind the end of
 * the guarded call before (core: call + 1, then FIN, release; scheduler: acquire), and before that
 * of the next one (release of the register, acquire by the core, then call + 1, release). So who
 * reads an odd number of a call (acquire), then what the core was given, and behind an acquire
 * fence the same number again, has read what that call was given; and while it is, the task is
 * running, so that its slot, its arguments and their descriptions are its own.
 *
 * Since when a call goes on is what the watcher has noted (chip.c), which looks at all of them in
 * each of its ticks: at most a tick less than it is, and nobody's clock is read for it.
 */
#include "chip-inspect.h"

#include "pto/core/deadlock.h"
#include "pto/core/inspect-read.h"
#include "chip-private.h"
#include "kernel-sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8u

const char *
pto_chip_queue_name (uint32_t queue)
{
  return queue == PTO_CORE_TYPE_AIC ? "AIC" : "AIV";
}

/* --- tensors --- */

static bool
is_in_storage (const struct pto_ring *ring, uint64_t at, uint64_t bytes)
{
  uint64_t offset = at - (uint64_t) (uintptr_t) ring->storage.base;

  return at % sizeof (uint64_t) == 0 && offset <= ring->storage.size
         && bytes <= ring->storage.size - offset;
}

static void
read_tensor (uint64_t at, uint32_t argument, struct pto_core_look *look)
{
  TensorData tensor;
  struct pto_look_tensor *told = &look->tensors[look->n_tensors];

  pto_peek_copy (&tensor, (const void *) (uintptr_t) at, sizeof tensor);
  look->n_all_tensors++;
  /* It is its kernel's to spoil. */
  if (look->n_tensors == PTO_LOOK_TENSORS || (uint32_t) tensor.dtype >= PTO_DTYPE_COUNT
      || tensor.ndims > PTO2_TENSOR_MAX_DIMS)
    return;
  *told = (struct pto_look_tensor){
    .argument = argument,
    .ndims = tensor.ndims,
    .dtype = tensor.dtype,
    .address = tensor.buffer.addr + tensor.start_offset * pto_dtype_size (tensor.dtype),
  };
  memcpy (told->shapes, tensor.shapes, sizeof told->shapes);
  look->n_tensors++;
}

/* The arguments of a task that runs; all of them are looked at where they were put, for a kernel
 * may have written to its own list. */
static void
read_arguments (const struct pto_core *core, pto_task_id task, const struct pto_payload *payload,
                struct pto_core_look *look)
{
  const struct pto_engine *engine = core->engine;
  const struct pto_ring *ring = &engine->rings[PTO_TASK_RING (task) % PTO_RINGS];
  uint64_t at = (uint64_t) (uintptr_t) payload;
  uint64_t own, end, shared, shared_end;

  if (!is_in_storage (ring, at, sizeof *payload))
    return;
  look->n_args = pto_peek (&payload->n_args);
  own = at + sizeof *payload + (uint64_t) look->n_args * sizeof (int64_t);
  end = (uint64_t) (uintptr_t) pto_peek (&payload->guards);
  if (look->n_args > PTO_ARGS_MAX || end < own || !is_in_storage (ring, at, end - at))
    {
      look->n_args = 0;
      return;
    }
  shared = (uint64_t) (uintptr_t) pto_peek (&engine->shared.items);
  shared_end = shared + pto_peek (&engine->shared.n) * sizeof (TensorData);
  for (uint32_t i = 0; i < look->n_args; i++)
    {
      uint64_t value = (uint64_t) pto_peek (&payload->args[i]);

      if (value >= own && value < end && (value - own) % sizeof (TensorData) == 0
          && end - value >= sizeof (TensorData))
        read_tensor (value, i, look);
      else if (value >= shared && value < shared_end && (value - shared) % sizeof (TensorData) == 0)
        read_tensor (value, i, look);
    }
}

/* --- cores --- */

/* With the watcher's lock. */
static uint64_t
age_of_call (const struct pto_chip *chip, const struct pto_core *core, uint32_t number,
             uint64_t call, uint64_t now)
{
  const struct pto_engine *engine = core->engine;
  const struct pto_watched_call *seen = &chip->watched[number];
  uint64_t late = now > chip->ticked ? now - chip->ticked : 0;

  if (core->note != NULL)
    {
      uint64_t since = atomic_load_explicit (&core->note->since, memory_order_relaxed);

      return now > since ? now - since : 0;
    }
  /* A record has the time of its dispatch. */
  if (core->trace != NULL && engine->counts_ticks)
    {
      uint64_t ticks = pto_engine_stamp (engine);
      uint64_t dispatched = pto_peek (&core->dispatched);
      struct pto_scale scale = { .from = ticks, .to = now - engine->time_base };

      return ticks > dispatched ? pto_scale (ticks - dispatched, &scale) : 0;
    }
  return seen->call == call ? chip->watch_ns - seen->since + late : 0;
}

/* false: it has gone on meanwhile. */
static bool
read_core (struct pto_chip *chip, const struct pto_core *core, uint32_t number, uint64_t call,
           uint64_t now, struct pto_core_look *look)
{
  const struct pto_dispatch_payload *payload = &core->payload;
  uint32_t waits = atomic_load_explicit (&core->waits, memory_order_relaxed);
  const struct pto_kernel *kernel = pto_peek (&payload->kernel);
  const struct pto_payload *task = pto_peek (&payload->task);
  const struct pto_party *party = pto_peek (&core->party);
  const struct pto_ring *ring;

  look->task = (struct pto_look_task){ .id = pto_peek (&payload->task_id),
                                       .state = PTO_TASK_RUNNING,
                                       .state_name = pto_task_state_name (PTO_TASK_RUNNING) };
  look->block = (uint32_t) (pto_peek (&core->block) & PTO_MAX_BLOCKS);
  look->n_blocks = (uint32_t) (pto_peek (&core->block) >> 28 & PTO_MAX_BLOCKS);
  look->pipe = waits >> 8;
  switch ((enum pto_wait) (waits & 0xff))
    {
    case PTO_WAIT_POP:
      look->doing = PTO_CORE_POPS;
      break;
    case PTO_WAIT_PUSH:
      look->doing = PTO_CORE_PUSHES;
      break;
    case PTO_WAIT_SYNC:
      look->doing = PTO_CORE_MEETS;
      break;
    default:
      look->doing = PTO_CORE_RUNS;
      break;
    }
  ring = &chip->machine.engine.rings[PTO_TASK_RING (look->task.id) % PTO_RINGS];
  if (look->doing == PTO_CORE_MEETS && party != NULL
      && is_in_storage (ring, (uint64_t) (uintptr_t) party, sizeof *party))
    {
      look->n_met = atomic_load_explicit (&party->met, memory_order_relaxed);
      look->n_members = pto_peek (&party->n_members);
    }
  look->n_args = look->n_tensors = look->n_all_tensors = 0;
  read_arguments (core, look->task.id, task, look);
  look->for_ns = age_of_call (chip, core, number, call, now);
  atomic_thread_fence (memory_order_acquire);
  if (atomic_load_explicit (&core->guard.call, memory_order_relaxed) != call)
    return false;
  /* Of the program, which stays while the door is held. */
  snprintf (look->task.kernel, sizeof look->task.kernel, "%s", kernel->name);
  return true;
}

static void
look_at_core (struct pto_chip *chip, uint32_t number, uint64_t now, struct pto_core_look *look)
{
  const struct pto_core *core = &chip->cores[number];

  memcpy (look->name, core->name, sizeof look->name);
  look->type = core->type;
  look->cluster = core->cluster;
  look->scheduler = core->endpoint.scheduler->config.index;
  look->busy_ns = core->busy_before;
  /* Before its engine has begun, there is nothing of it, and the engine is not to be read. */
  if (!chip->counted && chip->timed && chip->machine.door.n_begun == chip->timed_run)
    {
      const struct pto_engine *engine = core->engine;
      struct pto_scale scale = { 0 };

      if (engine->counts_ticks)
        scale = (struct pto_scale){ .from = pto_engine_stamp (engine),
                                    .to = now - engine->time_base };
      look->busy_ns += pto_scale (pto_peek (&core->busy), &scale);
    }
  if (!chip->machine.door.running)
    return;
  look->doing = PTO_CORE_CHANGING;
  for (uint32_t i = 0; i < TRIES; i++)
    {
      /* Acquire: what it was given. */
      uint64_t call = atomic_load_explicit (&core->guard.call, memory_order_acquire);

      if ((call & 1) == 0)
        {
          look->doing = PTO_CORE_IDLE;
          return;
        }
      if (read_core (chip, core, number, call, now, look))
        return;
      look->doing = PTO_CORE_CHANGING;
    }
}

static void
look_at_scheduler (const struct pto_chip *chip, uint32_t number, struct pto_chip_look *look)
{
  const struct pto_aicpu *aicpu = &chip->aicpus[number];
  struct pto_scheduler_look *scheduler = &look->schedulers[number];
  bool shares_thread = chip->params.values[PTO_PARAMETER_BACKEND] != PTO_BACKEND_THREADS;

  memcpy (scheduler->name, aicpu->name, sizeof scheduler->name);
  scheduler->n_cores = aicpu->n_endpoints;
  scheduler->completed
      = atomic_load_explicit (&aicpu->scheduler.words.completed, memory_order_relaxed);
  for (uint32_t c = 0; c < look->n_cores; c++)
    {
      enum pto_core_doing doing = look->cores[c].doing;

      if (look->cores[c].scheduler != number)
        continue;
      scheduler->n_busy += doing != PTO_CORE_IDLE;
      scheduler->is_core = scheduler->is_core || (shares_thread && doing == PTO_CORE_RUNS);
    }
  for (uint32_t q = 0; q < PTO_N_CORE_TYPES; q++)
    scheduler->sleeps
        = scheduler->sleeps
          || (atomic_load_explicit (&chip->machine.engine.hungry[q], memory_order_relaxed) >> number
              & 1)
                 != 0;
}

/* The code of an orchestration that neither calls nor submits anything. */
static void
age_submitter (const struct pto_chip *chip, uint64_t now, uint64_t for_ns,
               struct pto_look_submitter *submitter)
{
  uint64_t late = now > chip->ticked ? now - chip->ticked : 0;

  if (submitter->doing == PTO_DOING_ORCHESTRATION
      && pto_peek (&chip->machine.engine.submitted) == chip->watched_submitted)
    submitter->for_ns = chip->watch_ns - chip->submitted + late;
  /* The run before may have submitted as many. */
  if (submitter->for_ns > for_ns)
    submitter->for_ns = for_ns;
}

/* On a virtual clock everybody has one thread: who is not parked waits for whoever runs on it. */
static void
look_for_turn (const struct pto_chip_look *look, struct pto_look_submitter *submitter)
{
  for (uint32_t c = 0; c < look->n_cores && look->virtual_clock; c++)
    if (look->cores[c].doing == PTO_CORE_RUNS
        && (submitter->doing == PTO_DOING_ORCHESTRATION || submitter->doing == PTO_DOING_CALL))
      {
        submitter->doing = PTO_DOING_TURN;
        submitter->for_ns = look->cores[c].for_ns;
      }
}

/* --- the chip --- */

/* With both locks. */
static struct pto_chip_look *
look_at_chip (struct pto_chip *chip)
{
  struct pto_chip_look *look = calloc (1, sizeof *look);
  uint64_t now = pto_wall_clock ();

  if (look == NULL)
    return NULL;
  look->cores = calloc (chip->n_cores, sizeof *look->cores);
  look->schedulers = calloc (chip->n_schedulers, sizeof *look->schedulers);
  if (look->cores == NULL || look->schedulers == NULL)
    {
      pto_chip_look_free (look);
      return NULL;
    }
  look->virtual_clock = chip->virtual_clock;
  look->timed = chip->timed;
  look->n_clusters = chip->clusters;
  look->n_cores = chip->n_cores;
  look->n_schedulers = chip->n_schedulers;
  for (uint32_t c = 0; c < chip->n_cores; c++)
    look_at_core (chip, c, now, &look->cores[c]);
  for (uint32_t s = 0; s < chip->n_schedulers; s++)
    look_at_scheduler (chip, s, look);
  pto_look (&chip->machine, &look->run);
  age_submitter (chip, now, look->run.for_ns, &look->run.submitter);
  look_for_turn (look, &look->run.submitter);
  return look;
}

struct pto_chip_look *
pto_chip_look (struct pto_chip *chip)
{
  struct pto_chip_look *look = NULL;

  /* Outer first. While a run goes on nobody makes or ends cores; between runs the second lock says
   * whether somebody does. */
  if (!pto_look_begin (&chip->machine))
    return NULL;
  if (pto_look_take (&chip->watch_lock))
    {
      if (chip->machine.engine.exec != NULL && chip->cores != NULL)
        look = look_at_chip (chip);
      pthread_mutex_unlock (&chip->watch_lock);
    }
  pto_look_end (&chip->machine);
  return look;
}

bool
pto_chip_count (struct pto_chip *chip, bool is_inside, struct pto_look_counts *counts)
{
  if (!is_inside)
    return pto_look_count_from_outside (&chip->machine, counts);
  pto_look_count (&chip->machine, counts);
  return true;
}

void
pto_chip_look_free (struct pto_chip_look *look)
{
  if (look == NULL)
    return;
  free (look->cores);
  free (look->schedulers);
  free (look);
}
