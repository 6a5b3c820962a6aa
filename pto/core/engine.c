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

#define BUFFERS_PER_CHUNK 256u
#define CANCEL_POLL_NS 10000000u

/* --- making and ending --- */

enum pto_status
pto_engine_init (struct pto_engine *engine, struct pto_exec *exec,
                 const struct pto_engine_config *config, struct pto_report *report)
{
  struct pto_map_config map_config = { .pool = config->map_pool, .hazards = config->hazards };
  uint32_t capacity = power_of_two_at_least ((uint64_t) config->ring.window * PTO_RINGS);

  memset (engine, 0, sizeof *engine);
  atomic_init (&engine->verdict, PTO_VERDICT_CLOSED);
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
  uint32_t open = PTO_VERDICT_OPEN;
  va_list args;

  /* One writer of the message, ever; it is read after FAILED (release below, acquire in
   * close_verdict()). Relaxed: who fails a run has come to know of it. */
  if (!pto_cas_relaxed (&engine->verdict, &open, PTO_VERDICT_FAILING))
    return;
  va_start (args, format);
  pto_report_setv (&engine->report, status, format, args);
  va_end (args);
  /* Relaxed: says that the run has failed, and nothing else. */
  pto_store_relaxed (&engine->fatal, (uint32_t) status);
  pto_store_release (&engine->verdict, PTO_VERDICT_FAILED);
}

bool
pto_engine_cancel (struct pto_engine *engine)
{
  struct pto_guard *guard = pto_guard_pause ();
  uint32_t verdict = PTO_VERDICT_OPEN;

  /* Between what makes engine->cancelled say true and the look for a run; pairs with the fence in
   * pto_engine_begin(): either this sees the run, or the run sees that. */
  pto_fence_seq_cst ();
  /* Acquire: pairs with the release in pto_engine_begin(). */
  if (pto_cas_acquire (&engine->verdict, &verdict, PTO_VERDICT_FAILING))
    {
      pto_report_set (&engine->report, PTO_STATUS_CANCELLED, "the run was cancelled");
      pto_store_relaxed (&engine->fatal, PTO_STATUS_CANCELLED);
      pto_fetch_add_relaxed (&engine->progress.value, 1);
      pto_unpark (engine->exec, &engine->progress);
      /* Last: the run does not end before, and with it perhaps the executor. */
      pto_store_release (&engine->verdict, PTO_VERDICT_FAILED);
      verdict = PTO_VERDICT_FAILED;
    }
  pto_guard_resume (guard);
  return verdict != PTO_VERDICT_CLOSED;
}

bool
pto_engine_ask_cancelled (struct pto_engine *engine)
{
  if (engine->cancelled == NULL || pto_engine_has_failed (engine)
      || !engine->cancelled (engine->cancelled_data))
    return false;
  pto_engine_fail (engine, PTO_STATUS_CANCELLED, "the run was cancelled");
  return true;
}

/* The run ends: from here on nobody fails it. True if nobody has. */
static bool
close_verdict (struct pto_engine *engine)
{
  uint32_t verdict = PTO_VERDICT_OPEN;

  if (pto_cas_relaxed (&engine->verdict, &verdict, PTO_VERDICT_CLOSED))
    return true;
  /* Acquire: the report, and whoever wrote it is done with this engine. */
  while (pto_load_acquire (&engine->verdict) == PTO_VERDICT_FAILING)
    pto_yield (engine->exec);
  return false;
}

uint64_t
pto_engine_recycled (const struct pto_engine *engine)
{
  uint64_t n = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    if (engine->rings[r].head > engine->rings[r].window)
      n += engine->rings[r].head - engine->rings[r].window;
  return n;
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
  /* There is a cell for every slot there is, so a full queue is one whose oldest tasks are being
   * popped: by another thread, for a pop does not wait in between. */
  while (!pto_ready_queue_push (&engine->ready[slot->queue][shard % engine->config.n_shards],
                                pto_engine_slot_ref (engine, slot)))
    pto_yield (engine->exec);
}

uint32_t
pto_engine_pop_ready (struct pto_engine *engine, uint32_t queue, uint32_t shard,
                      struct pto_slot **slots, uint32_t max)
{
  uint32_t refs[PTO_POP_MAX];
  uint32_t n = 0;

  for (uint32_t i = 0; i < engine->config.n_shards && n == 0; i++)
    n = pto_ready_queue_pop (&engine->ready[queue][(shard + i) % engine->config.n_shards], refs,
                             max);
  for (uint32_t i = 0; i < n; i++)
    slots[i] = pto_engine_slot (engine, refs[i]);
  return n;
}

bool
pto_engine_has_ready (struct pto_engine *engine, uint32_t queue)
{
  for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
    if (pto_ready_queue_has_items (&engine->ready[queue][shard]))
      return true;
  return false;
}

void
pto_engine_ring (struct pto_engine *engine, uint32_t queue)
{
  uint64_t hungry;

  /* The push and these looks are seq_cst, and so are the announcement of hunger and the last look
   * at the queues behind it: one of the two sees the other. */
  if (pto_load_seq_cst (&engine->lingering) != 0)
    return;
  hungry = pto_load_seq_cst (&engine->hungry[queue]);
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

void
pto_engine_ring_all (struct pto_engine *engine)
{
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (pto_engine_has_ready (engine, queue))
      pto_engine_ring (engine, queue);
}

bool
pto_engine_carry (struct pto_engine *engine)
{
  uint32_t n = engine->config.n_schedulers;

  for (uint32_t i = 0; i < n; i++)
    {
      struct pto_scheduler *scheduler = engine->schedulers[engine->carry];

      if (pto_exec_carry (engine->exec, engine->carry, &scheduler->bell))
        {
          /* It has gone to wait however much it left: others, or itself elsewhere, must know. */
          pto_engine_ring_all (engine);
          return true;
        }
      engine->carry = engine->carry + 1 < n ? engine->carry + 1 : 0;
    }
  return false;
}

uint64_t
pto_engine_backlog (const struct pto_engine *engine)
{
  uint64_t n = 0;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
      n += pto_ready_queue_count (&engine->ready[queue][shard]);
  return n;
}

/* --- waiting for schedulers --- */

uint64_t
pto_engine_completed (const struct pto_engine *engine)
{
  uint64_t sum = 0;

  /* Acquire pairs with the release in scheduler.c's settle(). */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    sum += pto_load_acquire (&engine->schedulers[i]->completed);
  return sum;
}

/* Relaxed: whoever retires the slot acquires what its task did, in pto_ring_reclaim(). */
bool
pto_engine_slot_is_done (struct pto_slot *slot, uint32_t taken)
{
  return pto_load_relaxed (&slot->state) >= PTO_TASK_COMPLETED
         && pto_load_relaxed (&slot->released) == taken;
}

/* Any thread. Fields may be of a wait that began just now: then its submitter looks itself, after
 * its fence. */
static bool
wait_is_over (struct pto_engine *engine)
{
  struct pto_slot *slot = pto_load_relaxed (&engine->wait_slot);

  if (slot != NULL)
    return pto_engine_slot_is_done (slot, pto_load_relaxed (&engine->wait_taken));
  return pto_engine_completed (engine) >= pto_load_relaxed (&engine->wait_total);
}

void
pto_engine_tell_submitter (struct pto_engine *engine)
{
  /* Between the completion and the look at waiting; pairs with the fence in wait_for(). */
  pto_fence_seq_cst ();
  if (pto_load_relaxed (&engine->waiting) == 0 || !wait_is_over (engine))
    return;
  /* Relaxed: what is over is read from the slots and counts. */
  pto_fetch_add_relaxed (&engine->progress.value, 1);
  pto_unpark (engine->exec, &engine->progress);
}

/* Grows with everything that gets on. */
static uint64_t
progress (const struct pto_engine *engine)
{
  uint64_t n = pto_engine_completed (engine);

  return engine->config.beats != NULL ? n + engine->config.beats (engine->config.beats_data) : n;
}

bool
pto_engine_wait_for (struct pto_engine *engine, struct pto_slot *slot)
{
  bool virtual_clock = pto_exec_backend (engine->exec) == PTO_BACKEND_DET;
  uint64_t patience
      = slot != NULL ? engine->config.ring_patience_ns : engine->config.end_patience_ns;
  bool forever = virtual_clock || patience == PTO_NEVER;
  uint64_t mark = progress (engine);
  uint64_t limit = forever ? PTO_NEVER : pto_now (engine->exec) + patience;
  bool ok = true;

  pto_store_relaxed (&engine->wait_slot, slot);
  pto_store_relaxed (&engine->wait_taken, slot != NULL ? slot->taken : 0);
  pto_store_relaxed (&engine->wait_total, engine->submitted);
  if (engine->direct)
    {
      if (wait_is_over (engine))
        return true;
      pto_engine_leave_direct (engine);
    }
  pto_store_relaxed (&engine->waiting, 1);
  for (;;)
    {
      uint32_t seen = pto_word_get (&engine->progress);
      uint64_t deadline = limit;
      uint64_t now;

      /* Pairs with the fence in pto_engine_tell_submitter(): waiting and what is waited for come
       * before it, and the look after. */
      pto_fence_seq_cst ();
      if (wait_is_over (engine))
        break;
      if (!pto_engine_ask_cancelled (engine) && engine->cancelled != NULL && !virtual_clock
          && !pto_engine_has_failed (engine))
        deadline = pto_now (engine->exec) + CANCEL_POLL_NS;
      switch (pto_park (engine->exec, &engine->progress, seen, deadline))
        {
        case PTO_PARK_WOKEN:
          break;
        case PTO_PARK_TIMEOUT:
          if (pto_now (engine->exec) < limit)
            break;
          now = progress (engine);
          ok = now != mark;
          mark = now;
          limit = pto_now (engine->exec) + patience;
          break;
        case PTO_PARK_DEADLOCK:
          ok = wait_is_over (engine);
          if (!ok)
            pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                             "deadlock: %" PRIu64 " of %" PRIu64
                             " tasks are done and nothing can run any more",
                             pto_engine_completed (engine), engine->submitted);
          break;
        }
      if (!ok)
        break;
    }
  pto_store_relaxed (&engine->waiting, 0);
  return ok;
}

/* --- retiring --- */

uint64_t
pto_engine_failures (const struct pto_engine *engine)
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

/* Tasks only go when they are retired: looked at before each time, the peak is exact. */
static void
note_live (struct pto_engine *engine)
{
  uint64_t live = 0;

  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    live += engine->rings[ring].head - engine->tails[ring];
  if (live > engine->stats.peak_live)
    engine->stats.peak_live = live;
}

void
pto_engine_retire (struct pto_engine *engine, uint32_t ring)
{
  uint32_t before = engine->tails[ring];
  uint32_t n;

  if (engine->tails[ring] == engine->rings[ring].floor)
    return;
  note_live (engine);
  n = pto_ring_reclaim (&engine->rings[ring], &engine->tails[ring]);

  if (n == 0)
    return;
  /* Its scheduler counted a failure before it stored FAILED, which reclaim has acquired. */
  if (pto_engine_failures (engine) > 0)
    note_failures (engine, ring, before, n);
  if (engine->trace != NULL)
    {
      uint64_t now = pto_engine_stamp (engine);

      for (uint32_t i = 0; i < n; i++)
        pto_trace_add (engine->trace, PTO_TRACE_RETIRE, now, PTO_TASK_ID (ring, before + i), 0, 0);
    }
  pto_map_retired (engine->map, n);
}

void
pto_engine_retire_all (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_engine_retire (engine, ring);
}

/* --- scopes --- */

void
pto_engine_scope_begin (struct pto_engine *engine, const char *file, int32_t line)
{
  struct pto_scope *scope;
  uint32_t ring;

  if (engine->depth >= PTO_SCOPE_MAX)
    {
      /* Counted, so that the ends that follow find their begins. */
      engine->depth++;
      pto_engine_fail (engine, PTO_STATUS_SCOPE_OVERFLOW, "scopes are nested more than %u deep",
                       PTO_SCOPE_MAX);
      return;
    }
  scope = &engine->scopes[engine->depth++];
  ring = pto_engine_ring_of_depth (engine->depth - 1);
  scope->held = engine->demand[ring].held;
  scope->first = engine->rings[ring].head;
  scope->buffers = engine->n_buffers;
  scope->file = file;
  scope->line = line;
  if (engine->trace != NULL)
    pto_trace_add (engine->trace, PTO_TRACE_SCOPE, pto_engine_stamp (engine), PTO_TASK_NONE,
                   engine->depth - 1, 1);
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

/* The scope's own reference is not a count in its tasks but the ring's floor: tasks from there on
 * stay. */
static void
close_scope (struct pto_engine *engine)
{
  uint32_t depth = --engine->depth;
  uint32_t ring = pto_engine_ring_of_depth (depth);
  struct pto_scope *scope = &engine->scopes[depth];

  /* Otherwise a scope around it that shares the ring keeps a task in front of this one's. */
  if (scope->held == 0)
    {
      pto_engine_note_peaks (engine);
      engine->demand[ring].held = 0;
      engine->demand[ring].heap = 0;
      engine->demand[ring].storage = 0;
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
    pto_trace_add (engine->trace, PTO_TRACE_SCOPE, pto_engine_stamp (engine), PTO_TASK_NONE, depth,
                   0);
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
  buffer->depth = engine->depth;
  buffer->space.creator = PTO_TASK_NONE;
  *generation = buffer->generation;
  return buffer;
}

/* --- a run --- */

void
pto_engine_begin (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_ring_reset (&engine->rings[ring], &engine->tails[ring]);
  pto_map_reset (engine->map);
  memset (&engine->stats, 0, sizeof engine->stats);
  memset (engine->demand, 0, sizeof engine->demand);
  engine->submitted = 0;
  engine->unshared = 0;
  engine->next_shard = 0;
  memset (&engine->deadlock, 0, sizeof engine->deadlock);
  /* A machine of another geometry has fewer. */
  if (engine->carry >= engine->config.n_schedulers)
    engine->carry = 0;
  engine->depth = 0;
  engine->failed.count = 0;
  engine->report.status = PTO_OK;
  engine->direct_limit = pto_engine_direct_limit ();
  engine->unswept = engine->resume ? UINT32_MAX - 1 : 0;
  engine->counts_ticks = pto_exec_backend (engine->exec) != PTO_BACKEND_DET;
  engine->time_base = pto_now (engine->exec);
  engine->tick_base = pto_ticks_ordered ();
  /* Schedulers are idle: all tasks of the run before are complete, and a scheduler's count is its
   * last write of a batch. The bell that brings the next task orders these stores. */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    {
      pto_store_relaxed (&engine->schedulers[i]->completed, 0);
      pto_store_relaxed (&engine->schedulers[i]->failed, 0);
    }
  pto_store_relaxed (&engine->fatal, 0);
  pto_store_release (&engine->verdict, PTO_VERDICT_OPEN);
  /* Before the look; pairs with the fence in pto_engine_cancel(). */
  pto_fence_seq_cst ();
  pto_engine_ask_cancelled (engine);
  pto_engine_scope_begin (engine, NULL, 0);
}

enum pto_status
pto_engine_end (struct pto_engine *engine, struct pto_report *report)
{
  note_live (engine);
  if (engine->depth > PTO_SCOPE_MAX)
    engine->depth = PTO_SCOPE_MAX;
  while (engine->depth > 0)
    close_scope (engine);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_store_release (&engine->rings[ring].shared->orchestrator_done, 1);
  pto_engine_leave_direct (engine);
  if (pto_engine_wait_for (engine, NULL))
    {
      pto_engine_retire_all (engine);
      pto_engine_ask_cancelled (engine);
    }
  else
    pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                     "no task finished for %" PRIu64 " ms (timeout %" PRIu64 " ms): %" PRIu64
                     " of %" PRIu64 " tasks are done",
                     engine->config.end_patience_ns / 1000000, engine->config.timeout_ns / 1000000,
                     pto_engine_completed (engine), engine->submitted);
  engine->run_ticks = pto_engine_stamp (engine);
  engine->run_ns = pto_now (engine->exec) - engine->time_base;
  if (close_verdict (engine))
    return PTO_OK;
  /* Another error may have come first: then its words stay. */
  if (engine->deadlock.what != PTO_OK && engine->report.status == engine->deadlock.what)
    pto_engine_report_deadlock (engine);
  if (report != NULL)
    pto_report_set (report, engine->report.status, "%s", engine->report.message);
  return engine->report.status;
}
