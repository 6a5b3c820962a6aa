/* scheduler.c: which ready task goes where, and what follows when it is done?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "scheduler.h"

#include "../exec/pto_atomic.h"

#include <stdlib.h>
#include <string.h>

/* Successors that one endpoint may take over directly before the queue is looked at again, so that
 * nobody starves. */
#define RUN_THROUGH_MAX 64u
/* Endpoints that share a carrier get work for about this long, so that other carriers find some,
 * too. */
#define LIMIT_NS 8000u
#define LIMIT_START 4u
#define LIMIT_TASKS 16u
/* Yields, and looks at the queues among them, before a scheduler without work announces hunger: a
 * ring across CPUs costs the submitter as much as a submit. All together some 15 us. Looks are 2 us
 * apart: tasks are then taken in batches, and the submitter's cache lines stay with it meanwhile.
 */
#define LINGER_YIELDS 2048u
#define LINGER_LOOK 256u

bool
pto_scheduler_init (struct pto_scheduler *scheduler, struct pto_engine *engine,
                    const struct pto_scheduler_config *config)
{
  uint32_t capacity = 1;

  memset (scheduler, 0, sizeof *scheduler);
  if (config->n_endpoints > PTO_ENDPOINTS_MAX)
    return false;
  scheduler->engine = engine;
  scheduler->config = *config;
  scheduler->limit = config->limited ? LIMIT_START : UINT32_MAX;
  pto_word_init (&scheduler->bell, 0, false);
  while (capacity < config->n_endpoints)
    capacity *= 2;
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      scheduler->idle[queue].capacity = capacity;
      scheduler->idle[queue].items = calloc (capacity, sizeof (uint32_t));
      if (scheduler->idle[queue].items == NULL)
        {
          pto_scheduler_destroy (scheduler);
          return false;
        }
    }
  for (uint32_t i = 0; i < config->n_endpoints; i++)
    {
      struct pto_endpoint *endpoint = config->endpoints[i];
      struct pto_idle_ring *idle = &scheduler->idle[endpoint->queue];

      endpoint->scheduler = scheduler;
      endpoint->index = i;
      endpoint->running = NULL;
      idle->items[idle->head++] = i;
      scheduler->serves |= 1u << endpoint->queue;
    }
  engine->schedulers[config->index] = scheduler;
  return true;
}

void
pto_scheduler_destroy (struct pto_scheduler *scheduler)
{
  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    {
      free (scheduler->idle[queue].items);
      scheduler->idle[queue].items = NULL;
    }
}

static bool
idle_is_empty (const struct pto_idle_ring *idle)
{
  return idle->head == idle->tail;
}

static void
idle_push (struct pto_idle_ring *idle, uint32_t index)
{
  idle->items[idle->head++ & (idle->capacity - 1)] = index;
}

static uint32_t
idle_pop (struct pto_idle_ring *idle)
{
  return idle->items[idle->tail++ & (idle->capacity - 1)];
}

void
pto_scheduler_wake (struct pto_scheduler *scheduler)
{
  pto_fetch_add_acq_rel (&scheduler->bell.value, 1);
  pto_unpark (scheduler->engine->exec, &scheduler->bell);
}

void
pto_scheduler_stop (struct pto_scheduler *scheduler)
{
  pto_store_release (&scheduler->stop, 1);
  pto_scheduler_wake (scheduler);
}

void
pto_scheduler_signal (struct pto_scheduler *scheduler, uint32_t index)
{
  _Atomic uint64_t *word = &scheduler->signalled[index / 64];
  uint64_t bit = UINT64_C (1) << (index % 64);
  uint64_t before;

  /* Release pairs with the acquire in take_signals(). Where endpoints never run beside their
   * scheduler a plain read-modify-write does. */
  if (scheduler->config.concurrent)
    before = atomic_fetch_or_explicit (word, bit, memory_order_acq_rel);
  else
    {
      before = pto_load_relaxed (word);
      pto_store_release (word, before | bit);
    }
  /* Somebody rang already and the scheduler has not looked since: it will see this bit, too. */
  if (before == 0)
    pto_scheduler_wake (scheduler);
}

static uint64_t
take_signals (struct pto_scheduler *scheduler, uint32_t word)
{
  uint64_t bits = pto_load_relaxed (&scheduler->signalled[word]);

  if (bits == 0)
    return 0;
  if (scheduler->config.concurrent)
    return pto_exchange_acq_rel (&scheduler->signalled[word], 0);
  pto_store_relaxed (&scheduler->signalled[word], 0);
  return bits;
}

static uint64_t
trace_time (struct pto_scheduler *scheduler)
{
  return pto_now (scheduler->engine->exec) - scheduler->engine->time_base;
}

/* A task is over: tells its consumers, gives back what it retained, and lets go of the slot. Gives
 * one successor that became ready for the given queue, if there is one; the others are pushed. */
static struct pto_slot *
complete (struct pto_scheduler *scheduler, struct pto_slot *slot, bool failed, uint32_t queue)
{
  struct pto_engine *engine = scheduler->engine;
  struct pto_ring *ring = &engine->rings[PTO_TASK_RING (slot->id)];
  struct pto_slot *next = NULL;
  uint64_t cause = PTO_TASK_NONE;
  uint32_t edge_ref;
  uint32_t released = 0;

  if (failed)
    {
      pto_store_relaxed (&scheduler->failed, pto_load_relaxed (&scheduler->failed) + 1);
      cause = pto_load_relaxed (&slot->poison);
      if (cause == PTO_TASK_NONE)
        {
          cause = slot->id;
          /* Read by a submit that meets FAILED (ordered by the exchange below). */
          pto_store_relaxed (&slot->poison, cause);
        }
    }
  /* Release: consumers wired from now on see what the task wrote. Acquire: the edges pushed so far
   * are ours to read. */
  edge_ref = pto_exchange_acq_rel (&slot->fanout, failed ? PTO_FANOUT_FAILED : PTO_FANOUT_CLOSED);
  while (edge_ref != 0)
    {
      const struct pto_edge *edge = pto_engine_edge (engine, edge_ref);
      struct pto_slot *consumer = pto_engine_slot (engine, edge->consumer);

      /* The edge belongs to the consumer: not to be read once the consumer may run. */
      edge_ref = edge->next;
      if (failed)
        {
          uint64_t none = PTO_TASK_NONE;

          pto_cas_acq_rel (&consumer->poison, &none, cause);
        }
      released++;
      /* Acquire and release: whoever takes it to 0 has seen what every producer wrote. */
      if (pto_fetch_sub_acq_rel (&consumer->fanin, 1) != 1)
        continue;
      if (scheduler->trace != NULL)
        pto_trace_add (scheduler->trace, PTO_TRACE_READY, trace_time (scheduler), consumer->id, 0,
                       0);
      if (next == NULL && consumer->queue == queue)
        {
          pto_store_relaxed (&consumer->state, PTO_TASK_READY);
          next = consumer;
        }
      else
        {
          pto_engine_push_ready (engine, consumer, scheduler->config.index);
          scheduler->pushed++;
        }
    }
  if (released > 0)
    pto_charge (engine->exec, (uint64_t) released * scheduler->config.fanout_cost);
  /* Its reading is over: producers' memory may go. Release pairs with the acquire in
   * pto_ring_reclaim(). */
  for (uint32_t i = 0; i < slot->n_retained; i++)
    {
      const struct pto_edge *edge = &ring->edges[(slot->first_edge + i) & (ring->edge_pool - 1)];

      pto_fetch_add_acq_rel (&pto_engine_slot (engine, edge->producer)->released, 1);
    }
  /* Last touch of the slot: the submitter may take it again from here on. */
  pto_store_release (&slot->state, failed ? PTO_TASK_FAILED : PTO_TASK_COMPLETED);
  return next;
}

/* A task that is over without having run: poisoned, after a fatal error, or one that only orders.
 */
static bool
passes_by (struct pto_scheduler *scheduler, struct pto_slot *slot, bool *failed)
{
  *failed = pto_load_relaxed (&slot->poison) != PTO_TASK_NONE
            || pto_engine_has_failed (scheduler->engine);
  return *failed || slot->kernel == PTO_KERNEL_NONE;
}

static void
hand_out (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  endpoint->running = slot;
  scheduler->busy++;
  pto_store_relaxed (&slot->state, PTO_TASK_RUNNING);
  pto_charge (scheduler->engine->exec, scheduler->config.dispatch_cost);
  endpoint->ops->dispatch (endpoint, slot);
}

/* Phase 1: endpoints that have signalled. Gives the number of tasks completed. */
static uint32_t
collect (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  uint32_t n_words = (scheduler->config.n_endpoints + 63) / 64;
  uint32_t n = 0;

  for (uint32_t word = 0; word < n_words; word++)
    for (uint64_t bits = take_signals (scheduler, word); bits != 0; bits &= bits - 1)
      {
        uint32_t index = word * 64 + (uint32_t) __builtin_ctzll (bits);
        struct pto_endpoint *endpoint = scheduler->config.endpoints[index];
        struct pto_outcome outcome = { .failed = false };
        struct pto_slot *slot = endpoint->running;
        struct pto_slot *next;
        bool failed;

        pto_charge (engine->exec, scheduler->config.poll_cost);
        if (slot == NULL || !endpoint->ops->poll (endpoint, &outcome))
          continue;
        if (scheduler->trace != NULL)
          pto_trace_add (scheduler->trace, PTO_TRACE_COMPLETE, trace_time (scheduler), slot->id,
                         endpoint->number, outcome.failed);
        endpoint->running = NULL;
        scheduler->busy--;
        n++;
        next = complete (scheduler, slot, outcome.failed, endpoint->queue);
        while (next != NULL && passes_by (scheduler, next, &failed))
          {
            n++;
            next = complete (scheduler, next, failed, endpoint->queue);
          }
        /* A successor that fits runs where its producer ran: a third of a round through the queue.
         */
        if (next != NULL && scheduler->run_through < RUN_THROUGH_MAX)
          {
            scheduler->run_through++;
            hand_out (scheduler, endpoint, next);
            continue;
          }
        if (next != NULL)
          {
            pto_engine_push_ready (engine, next, scheduler->config.index);
            scheduler->pushed++;
          }
        idle_push (&scheduler->idle[endpoint->queue], index);
      }
  return n;
}

/* Phase 2: idle endpoints get ready tasks. Gives the number of tasks taken from the queues; those
 * that are over without running are counted in *n_completed. */
static uint32_t
dispatch (struct pto_scheduler *scheduler, uint32_t *n_completed)
{
  struct pto_engine *engine = scheduler->engine;
  uint32_t n = 0;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      struct pto_idle_ring *idle = &scheduler->idle[queue];

      while (!idle_is_empty (idle) && scheduler->busy < scheduler->limit)
        {
          struct pto_slot *slot = pto_engine_pop_ready (engine, queue, scheduler->config.index);
          bool failed;

          if (slot == NULL)
            break;
          n++;
          scheduler->run_through = 0;
          if (passes_by (scheduler, slot, &failed))
            {
              while (slot != NULL && passes_by (scheduler, slot, &failed))
                {
                  (*n_completed)++;
                  slot = complete (scheduler, slot, failed, queue);
                }
              if (slot == NULL)
                continue;
            }
          hand_out (scheduler, scheduler->config.endpoints[idle_pop (idle)], slot);
        }
    }
  return n;
}

/* How many endpoints of one carrier may have work: long tasks are left for other carriers to find.
 */
static void
set_limit (struct pto_scheduler *scheduler, uint32_t n_completed)
{
  uint64_t now;
  uint64_t each;

  scheduler->finished += n_completed;
  if (!scheduler->config.limited || scheduler->finished < LIMIT_TASKS)
    return;
  now = pto_now (scheduler->engine->exec);
  each = (now - scheduler->limit_time) / scheduler->finished + 1;
  scheduler->limit_time = now;
  scheduler->finished = 0;
  scheduler->limit = each >= LIMIT_NS ? 1 : (uint32_t) (LIMIT_NS / each);
}

static void
publish (struct pto_scheduler *scheduler, uint32_t n_completed)
{
  if (n_completed == 0)
    return;
  /* Single writer. Release pairs with the acquire in pto_engine_completed(). */
  pto_store_release (&scheduler->completed, pto_load_relaxed (&scheduler->completed) + n_completed);
  pto_engine_tell_submitter (scheduler->engine);
}

static bool
queue_has_items (const struct pto_scheduler *scheduler, uint32_t queue)
{
  struct pto_engine *engine = scheduler->engine;

  for (uint32_t shard = 0; shard < engine->config.n_shards; shard++)
    if (pto_ready_queue_has_items (&engine->ready[queue][shard]))
      return true;
  return false;
}

/* Says for which queues this scheduler has an idle endpoint. */
static void
announce_hunger (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  uint64_t bit = UINT64_C (1) << scheduler->config.index;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (!idle_is_empty (&scheduler->idle[queue])
        /* Only this scheduler sets it; others that clear it ring afterwards. */
        && (pto_load_relaxed (&engine->hungry[queue]) & bit) == 0)
      pto_fetch_or_seq_cst (&engine->hungry[queue], bit);
  /* Between the announcement and the looks that follow; pairs with the fence in pto_engine_ring().
   */
  pto_fence_seq_cst ();
}

/* A bit stands only as long as its scheduler waits for the bell: one that is at work, or whose
 * carrier is, would be rung while others could come at once. */
static void
withdraw_hunger (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  uint64_t bit = UINT64_C (1) << scheduler->config.index;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if ((pto_load_relaxed (&engine->hungry[queue]) & bit) != 0)
      pto_fetch_and_seq_cst (&engine->hungry[queue], ~bit);
}

/* After a look in vain: is there something for this scheduler after all? What is for others is
 * passed on to them, for they may have been passed over when this one was rung. */
static bool
has_missed_something (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  bool mine = false;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (queue_has_items (scheduler, queue))
      {
        if (idle_is_empty (&scheduler->idle[queue]) || scheduler->busy >= scheduler->limit)
          pto_engine_ring (engine, queue);
        else
          mine = true;
      }
  return mine;
}

static bool
pass (struct pto_scheduler *scheduler)
{
  uint32_t n_completed;
  uint32_t n_passed_by = 0;
  uint32_t n_taken;

  scheduler->pushed = 0;
  n_completed = collect (scheduler);
  n_taken = dispatch (scheduler, &n_passed_by);
  n_completed += n_passed_by;
  set_limit (scheduler, n_completed);
  publish (scheduler, n_completed);
  /* What is left over is for somebody else. */
  if (scheduler->pushed > 0 || n_taken > 0)
    for (uint32_t queue = 0; queue < scheduler->engine->config.n_queues; queue++)
      if (queue_has_items (scheduler, queue))
        pto_engine_ring (scheduler->engine, queue);
  return n_completed > 0 || n_taken > 0;
}

/* Is there something soon? Only where a spin of a few us costs nobody else: endpoints share this
 * carrier and have nothing to do. */
static bool
linger (struct pto_scheduler *scheduler, uint32_t seen)
{
  struct pto_engine *engine = scheduler->engine;
  bool found = false;

  atomic_fetch_add_explicit (&engine->lingering, 1, memory_order_seq_cst);
  for (uint32_t i = 0; i < LINGER_YIELDS && !found; i++)
    {
      if (i % LINGER_LOOK == 0)
        {
          found = pto_word_get (&scheduler->bell) != seen;
          for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
            found = found
                    || (!idle_is_empty (&scheduler->idle[queue])
                        && queue_has_items (scheduler, queue));
        }
      pto_yield (engine->exec);
    }
  atomic_fetch_sub_explicit (&engine->lingering, 1, memory_order_seq_cst);
  return found;
}

void
pto_scheduler_main (void *data)
{
  struct pto_scheduler *scheduler = data;
  struct pto_engine *engine = scheduler->engine;

  for (;;)
    {
      uint32_t seen = pto_word_get (&scheduler->bell);

      if (pass (scheduler) && !(scheduler->config.limited && scheduler->busy > 0))
        continue;
      if (scheduler->busy == 0 && pto_load_acquire (&scheduler->stop) != 0)
        break;
      if (scheduler->config.limited && scheduler->busy == 0 && linger (scheduler, seen))
        continue;
      /* With tasks on the way on this very carrier nothing could be done sooner than their signals
       * come. */
      if (!scheduler->config.limited || scheduler->busy == 0)
        announce_hunger (scheduler);
      if (!has_missed_something (scheduler))
        pto_park (engine->exec, &scheduler->bell, seen, PTO_NEVER);
      withdraw_hunger (scheduler);
    }
  for (uint32_t i = 0; i < scheduler->config.n_endpoints; i++)
    scheduler->config.endpoints[i]->ops->close (scheduler->config.endpoints[i]);
}
