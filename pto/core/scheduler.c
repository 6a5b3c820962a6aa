/* scheduler.c: which ready task goes where, and what follows when it is done?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "scheduler.h"

#include "commutative.h"
#include "completion.h"
#include "condition.h"
#include "ready.h"
#include "record-submit.h"

/* Successors that one endpoint may take over directly before the queue is looked at again, so that
 * nobody starves. */
#define RUN_THROUGH_MAX 64u
/* Tasks of one pass, and about how long it may take where tasks run within it: then the submitter
 * is told and leftovers are offered to others. The clock is read once in so many tasks. */
#define PASS_TASKS 64u
#define PASS_NS 8000u
#define PASS_LOOK 8u
/* Tasks taken from the queue together should not take longer than this, nor blocks of one task, of
 * which there are no more than so many, and fewer towards the end of the task. */
#define BATCH_NS 4000u
#define BLOCKS_MAX 32u
#define BLOCKS_MIN 4u
/* Tasks that stand so long behind one that runs are for somebody who is idle. */
#ifndef SHELF_NS /* at once where every step is explored */
#define SHELF_NS 10000u
#endif
/* Yields, and looks at the queues among them, before a scheduler without work announces hunger: a
 * ring across CPUs costs the submitter as much as a submit. All together some 15 us. Looks are 2 us
 * apart: tasks are then taken in batches, and the submitter's cache lines stay with it meanwhile.
 */
#ifndef LINGER_YIELDS /* fewer where every step is explored */
#define LINGER_YIELDS 2048u
#define LINGER_LOOK 64u
#endif

bool
pto_scheduler_init (struct pto_scheduler *scheduler, struct pto_engine *engine,
                    const struct pto_scheduler_config *config)
{
  memset (scheduler, 0, sizeof *scheduler);
  if (config->n_endpoints > PTO_ENDPOINTS_MAX)
    return false;
  scheduler->engine = engine;
  scheduler->config = *config;
  pto_word_init (&scheduler->words.bell, 0, false);
  if (!pto_places_init (&scheduler->places, engine, config->index, config->endpoints,
                        config->n_endpoints))
    {
      pto_scheduler_destroy (scheduler);
      return false;
    }
  for (uint32_t i = 0; i < config->n_endpoints; i++)
    config->endpoints[i]->scheduler = scheduler;
  engine->schedulers[config->index] = scheduler;
  engine->words[config->index] = &scheduler->words;
  return true;
}

void
pto_scheduler_destroy (struct pto_scheduler *scheduler)
{
  pto_places_destroy (&scheduler->places, scheduler->engine);
}

void
pto_scheduler_stop (struct pto_scheduler *scheduler)
{
  /* Release: endpoints are closed behind all that was done before; pairs with
   * pto_scheduler_main(). */
  pto_store_release (&scheduler->words.stop, 1);
  pto_engine_wake (scheduler->engine, scheduler->config.index);
}

void
pto_scheduler_signal (struct pto_scheduler *scheduler, uint32_t index)
{
  _Atomic uint64_t *word = &scheduler->signalled[index / 64];
  uint64_t bit = UINT64_C (1) << (index % 64);
  uint64_t before;

  /* Release: whoever sees the bit sees the outcome; pairs with the acquire in take_signals(). Where
   * endpoints never run beside their scheduler a plain read-modify-write does. */
  if (scheduler->config.concurrent)
    before = pto_fetch_or_release (word, bit);
  else
    {
      before = pto_load_relaxed (word);
      pto_store_release (word, before | bit);
    }
  /* Somebody rang already and the scheduler has not looked since: it will see this bit, too. */
  if (before == 0)
    pto_engine_wake (scheduler->engine, scheduler->config.index);
}

/* Virtual time of its own. */
static inline void
scheduler_charge (struct pto_scheduler *scheduler, uint64_t ns)
{
  struct pto_exec *exec = scheduler->engine->exec;

  if (!((const struct pto_exec_head *) exec)->virtual_clock || ns == 0)
    return;
  scheduler->charged += ns;
  pto_charge_virtual (exec, ns);
}

static uint64_t
take_signals (struct pto_scheduler *scheduler, uint32_t word)
{
  uint64_t bits = pto_load_relaxed (&scheduler->signalled[word]);

  if (bits == 0)
    return 0;
  if (scheduler->config.concurrent)
    return pto_exchange_acquire (&scheduler->signalled[word], 0);
  pto_store_relaxed (&scheduler->signalled[word], 0);
  return bits;
}

static void
push (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  pto_engine_push_ready (scheduler->engine, slot, scheduler->config.index);
  scheduler->pushed++;
}

/* Others may update now what it has updated. */
static __attribute__ ((noinline)) void
pass_on_turns (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  struct pto_slot *next;

  for (slot = pto_turn_leave (scheduler->engine, slot); slot != NULL; slot = next)
    {
      next = pto_slot_claims (slot)->follower;
      push (scheduler, slot);
    }
}

/* A task is over: tells its consumers, gives back what it retained, and lets go of the slot. Gives
 * one successor that became ready for the given queue, if there is one; the others are pushed. */
static struct pto_slot *
complete (struct pto_scheduler *scheduler, struct pto_slot *slot, bool failed, uint32_t queue)
{
  struct pto_engine *engine = scheduler->engine;
  struct pto_slot *next = NULL;
  uint64_t cause = PTO_TASK_NONE;
  uint32_t closed;
  uint32_t edge_ref;
  uint32_t released = 0;

  if (failed)
    {
      pto_store_relaxed (&scheduler->words.failed, pto_load_relaxed (&scheduler->words.failed) + 1);
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
  closed = failed ? PTO_FANOUT_FAILED : PTO_FANOUT_CLOSED;
  if (scheduler->alone)
    {
      edge_ref = 0;
      pto_store_release (&slot->fanout, closed);
    }
  else
    edge_ref = pto_exchange_acq_rel (&slot->fanout, closed);
  while (edge_ref != 0)
    {
      const struct pto_edge *edge = pto_engine_edge (engine, edge_ref);
      struct pto_slot *consumer = pto_engine_slot (engine, edge->consumer);

      /* The edge belongs to the consumer: not to be read once the consumer may run. */
      edge_ref = edge->next;
      if (failed)
        {
          uint64_t none = PTO_TASK_NONE;

          /* Relaxed: the consumer runs behind the decrement below. */
          pto_cas_relaxed (&consumer->poison, &none, cause);
        }
      released++;
      /* Acquire and release: whoever takes it to 0 has seen what every producer wrote. */
      if (pto_fetch_sub_acq_rel (&consumer->fanin, 1) != 1)
        continue;
      /* Not the time of the completion: the consumer may have come later. */
      if (pto_trace_has (scheduler->trace, PTO_TRACE_LEVEL_SCHEDULE))
        {
          pto_trace_add (scheduler->trace, PTO_TRACE_READY, pto_engine_stamp (engine), consumer->id,
                         1, slot->id);
          /* It may run next. */
          scheduler->behind = false;
        }
      if (PTO_UNLIKELY (consumer->kernel == PTO_KERNEL_NONE))
        {
          consumer->behind = scheduler->passing;
          scheduler->passing = consumer;
        }
      else if (next == NULL && !pto_slot_has_parts (consumer)
               && (consumer->queue == queue
                   || (scheduler->config.attends
                       && !pto_idle_is_empty (&scheduler->places.idle[consumer->queue]))))
        {
          pto_store_relaxed (&consumer->state, PTO_TASK_READY);
          next = consumer;
        }
      else
        push (scheduler, consumer);
    }
  if (PTO_UNLIKELY (slot->has_turn))
    pass_on_turns (scheduler, slot);
  if (released > 0)
    scheduler_charge (scheduler, (uint64_t) released * scheduler->config.fanout_cost);
  pto_engine_release_producers (engine, slot, scheduler->alone);
  /* Last touch of the slot: the submitter may take it again from here on. */
  pto_store_release (&slot->state, failed ? PTO_TASK_FAILED : PTO_TASK_COMPLETED);
  return next;
}

/* A task that is over without having run: poisoned, after a fatal error, one that only orders, or
 * one that is off. */
static inline bool
passes_by (struct pto_scheduler *scheduler, struct pto_slot *slot, bool *failed)
{
  *failed = pto_load_relaxed (&slot->poison) != PTO_TASK_NONE
            || pto_engine_has_failed (scheduler->engine);
  if (*failed || PTO_LIKELY (slot->kernel < PTO_KERNEL_IF))
    return *failed;
  if (slot->kernel == PTO_KERNEL_NONE)
    return true;
  /* Of blocks the first one says so for all. */
  return !(pto_slot_has_parts (slot) && slot->parts->next > 0)
         && pto_condition_is_off (scheduler->engine, slot, failed);
}

/* Does somebody wait for a place of its kind who is to run before it? */
static inline bool
is_outranked (struct pto_engine *engine, const struct pto_slot *slot)
{
  return PTO_UNLIKELY (pto_load_relaxed (&engine->priorities) >> slot->priority > 1)
         && pto_engine_has_urgent (engine, slot->queue, slot->priority);
}

/* A task is over, and with it those that follow and pass by. Gives the next one for that queue. */
static struct pto_slot *
settle (struct pto_scheduler *scheduler, struct pto_slot *slot, bool failed, uint32_t queue)
{
  struct pto_slot *next = NULL;

  for (;;)
    {
      slot = complete (scheduler, slot, failed, queue);
      scheduler->finished++;
      /* Single writer. Release pairs with the acquire in pto_engine_completed(). */
      pto_store_release (&scheduler->words.completed,
                         pto_load_relaxed (&scheduler->words.completed) + 1);
      if (slot != NULL)
        {
          if (passes_by (scheduler, slot, &failed))
            continue;
          if (next == NULL)
            next = slot;
          else
            push (scheduler, slot);
        }
      slot = scheduler->passing;
      if (PTO_LIKELY (slot == NULL))
        break;
      scheduler->passing = slot->behind;
      passes_by (scheduler, slot, &failed);
    }
  if (next == NULL || !is_outranked (scheduler->engine, next))
    return next;
  push (scheduler, next);
  return NULL;
}

/* A task from the queue that passes by, all of it or the blocks that nobody has claimed. Gives the
 * next one for that queue. */
static struct pto_slot *
let_pass (struct pto_scheduler *scheduler, struct pto_slot *slot, bool failed, uint32_t queue)
{
  if (pto_slot_has_parts (slot))
    {
      struct pto_parts *parts = slot->parts;
      uint32_t n = parts->n_blocks - parts->next;

      parts->next = parts->n_blocks;
      if (!pto_parts_leave (parts, n, &failed))
        return NULL;
    }
  return settle (scheduler, slot, failed, queue);
}

/* What ran on an endpoint has ended. false: other parts of its task have not. */
static __attribute__ ((noinline)) bool
leave_parts (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, struct pto_slot *slot,
             bool *failed)
{
  /* Each takes as long as a task, and shows that the run goes on. */
  scheduler->finished += endpoint->n_blocks - 1;
  pto_store_relaxed (&scheduler->words.parts,
                     pto_load_relaxed (&scheduler->words.parts) + endpoint->n_blocks);
  if (slot->queue == PTO_QUEUE_LINE)
    return pto_party_leave (scheduler->engine, &scheduler->places, endpoint, slot, failed);
  return pto_parts_leave (slot->parts, endpoint->n_blocks, failed);
}

/* Nobody was told that it has ended: what comes after it waits. */
static __attribute__ ((noinline)) void
run_again (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  scheduler->finished++;
  if (slot->queue != PTO_QUEUE_LINE)
    push (scheduler, slot);
  else
    pto_place_enter_anew (scheduler->engine, slot);
}

/* What ran on an endpoint, which may run another task by now, is over. Gives a successor that is to
 * run next: a third of a round through the queue, and its data are here. */
static struct pto_slot *
finish (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, struct pto_slot *slot,
        const struct pto_outcome *outcome)
{
  bool failed = outcome->failed;
  struct pto_slot *next;

  if (PTO_UNLIKELY (pto_slot_has_parts (slot)) && !leave_parts (scheduler, endpoint, slot, &failed))
    {
      scheduler->finished++;
      return NULL;
    }
  if (PTO_UNLIKELY (outcome->again))
    {
      run_again (scheduler, slot);
      return NULL;
    }
  if (pto_trace_has (scheduler->trace, PTO_TRACE_LEVEL_SCHEDULE))
    {
      pto_trace_add (scheduler->trace, PTO_TRACE_COMPLETE,
                     /* Of parts another one may have ended later, and been seen earlier. */
                     outcome->time != 0 && !pto_slot_has_parts (slot)
                         ? outcome->time
                         : pto_engine_stamp (scheduler->engine),
                     slot->id, endpoint->number, failed);
      pto_observe_end (scheduler->engine, slot, failed);
    }
  next = settle (scheduler, slot, failed, endpoint->queue);
  if (next != NULL
      && (scheduler->run_through++ >= RUN_THROUGH_MAX
          /* Or one chain of tasks after another keeps this place from who waits for it. */
          || scheduler->called))
    {
      push (scheduler, next);
      next = NULL;
    }
  return next;
}

/* Before a kernel runs here, which may take long: others may have what was made ready. */
static void
offer_pushed (struct pto_scheduler *scheduler)
{
  if (scheduler->pushed == 0)
    return;
  scheduler->pushed = 0;
  pto_engine_ring_all (scheduler->engine);
}

/* The idle endpoints for a task; NULL: there is none, and the task is queued. */
static inline struct pto_idle_ring *
find_idle (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  struct pto_idle_ring *idle = &scheduler->places.idle[slot->queue];

  if (!pto_idle_is_empty (idle))
    return idle;
  push (scheduler, slot);
  return NULL;
}

/* How many tasks to take at one time, of those that there are: what can be run soon, so that others
 * find some, too. */
static uint32_t
batch_size (struct pto_scheduler *scheduler, uint32_t n)
{
  uint64_t each;

  /* Of a batch nobody looks back whether somebody more urgent has come meanwhile. */
  if (!scheduler->config.attends || pto_load_relaxed (&scheduler->engine->priorities) != 0)
    return 1;
  each = pto_load_relaxed (&scheduler->engine->task_ns);
  /* 0: not known yet. */
  if (each == 0 || each >= BATCH_NS)
    return 1;
  return each * n <= BATCH_NS ? n : BATCH_NS / each;
}

/* The next blocks of a task from the queue are that endpoint's, and the task goes back to the queue
 * with the others. */
static __attribute__ ((noinline)) void
claim_blocks (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  struct pto_parts *parts = slot->parts;
  uint32_t left = parts->n_blocks - parts->next;
  /* Less and less towards the end, so that a block that takes long keeps few from the others. */
  uint32_t share = left / scheduler->engine->config.n_schedulers;

  /* The others are in the queue behind this. */
  if (parts->next == 0)
    pto_observe_begin (scheduler->engine, slot);
  endpoint->block = parts->next;
  share = share > BLOCKS_MAX ? BLOCKS_MAX : share < BLOCKS_MIN ? BLOCKS_MIN : share;
  endpoint->n_blocks = batch_size (scheduler, left < share ? left : share);
  parts->next += endpoint->n_blocks;
  if (parts->next == parts->n_blocks)
    return;
  push (scheduler, slot);
}

static inline void
start (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  endpoint->running = slot;
  if (PTO_UNLIKELY (pto_slot_has_parts (slot)) && slot->queue != PTO_QUEUE_LINE)
    claim_blocks (scheduler, endpoint, slot);
  pto_store_relaxed (&slot->state, PTO_TASK_RUNNING);
  scheduler_charge (scheduler, scheduler->config.dispatch_cost);
}

/* Runs a task on the first of the idle endpoints, which shares the scheduler's carrier, and which
 * leaves them only if the task waits for something. Gives a successor that is to run next. */
static inline struct pto_slot *
run_on_first (struct pto_scheduler *scheduler, struct pto_idle_ring *idle, struct pto_slot *slot)
{
  struct pto_endpoint *endpoint = scheduler->config.endpoints[pto_idle_first (idle)];
  struct pto_outcome outcome;

  start (scheduler, endpoint, slot);
  offer_pushed (scheduler);
  endpoint->attended = true;
  endpoint->ops->dispatch (endpoint, slot);
  endpoint->attended = false;
  /* Of all else that an outcome has nothing is asked here. */
  outcome.again = false;
  if (!endpoint->ops->poll (endpoint, &outcome))
    {
      /* Its signal comes later. */
      pto_idle_pop (idle);
      scheduler->busy++;
      return NULL;
    }
  endpoint->running = NULL;
  slot = finish (scheduler, endpoint, slot, &outcome);
  /* What follows may take long. Relaxed: the end of the pass looks again. */
  if (slot != NULL && pto_load_relaxed (&scheduler->engine->waiting) != 0)
    pto_engine_tell_submitter (scheduler->engine);
  return slot;
}

/* Runs a task, and what follows from it, where endpoints share the scheduler's carrier. What runs
 * within the pass stays on one endpoint, whose memory is warm. */
static void
attend (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  while (slot != NULL)
    {
      struct pto_idle_ring *idle = find_idle (scheduler, slot);

      if (idle == NULL)
        return;
      slot = run_on_first (scheduler, idle, slot);
    }
}

/* Hands a task to an idle endpoint. */
static void
hand_out (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  struct pto_idle_ring *idle;
  struct pto_endpoint *endpoint;

  if (scheduler->config.attends)
    {
      attend (scheduler, slot);
      return;
    }
  idle = slot != NULL ? find_idle (scheduler, slot) : NULL;
  if (idle == NULL)
    return;
  endpoint = scheduler->config.endpoints[pto_idle_pop (idle)];
  scheduler->busy++;
  start (scheduler, endpoint, slot);
  endpoint->ops->dispatch (endpoint, slot);
}

/* Idle from now on, where it is not attended. */
static void
make_idle (struct pto_scheduler *scheduler, const struct pto_endpoint *endpoint)
{
  struct pto_idle_ring *idle = &scheduler->places.idle[endpoint->queue];

  if (scheduler->config.sorted)
    pto_idle_insert (idle, endpoint->index);
  else
    pto_idle_push (idle, endpoint->index);
}

/* An endpoint that was kept: its member begins, or it is idle again. */
static void
begin_granted (struct pto_scheduler *scheduler, struct pto_berth *berth)
{
  struct pto_endpoint *endpoint = berth->endpoint;
  struct pto_idle_ring *idle = &scheduler->places.idle[endpoint->queue];
  struct pto_slot *slot = berth->granted;

  berth->kept = false;
  if (slot == NULL)
    {
      if (!endpoint->away)
        make_idle (scheduler, endpoint);
    }
  else if (scheduler->config.attends)
    {
      pto_idle_push_back (idle, endpoint->index);
      attend (scheduler, run_on_first (scheduler, idle, slot));
    }
  else
    {
      scheduler->busy++;
      start (scheduler, endpoint, slot);
      endpoint->ops->dispatch (endpoint, slot);
    }
}

/* Who waits for places here. Gives how much there was to do. */
static uint32_t
answer_call (struct pto_scheduler *scheduler, bool patient)
{
  struct pto_calling calling;
  uint32_t n = 0;

  scheduler->called = pto_load_relaxed (&scheduler->words.called) != 0;
  if (PTO_LIKELY (!scheduler->called))
    return 0;
  do
    {
      pto_place_look (scheduler->engine, &scheduler->places, patient, &calling);
      while (calling.granted != NULL)
        {
          struct pto_berth *berth = calling.granted;

          calling.granted = berth->next_granted;
          begin_granted (scheduler, berth);
          n++;
        }
      if (calling.over != NULL)
        {
          if (calling.gone != NULL)
            calling.gone->ops->refuse (calling.gone, calling.over);
          hand_out (scheduler,
                    settle (scheduler, calling.over, true, pto_slot_kind (calling.over)));
          n++;
        }
    }
  while (calling.ended);
  return n;
}

bool
pto_scheduler_run (struct pto_scheduler *scheduler, struct pto_slot *slot)
{
  struct pto_idle_ring *idle = &scheduler->places.idle[slot->queue];
  bool ran = true;
  bool failed;

  scheduler->finished = 0;
  scheduler->run_through = 0;
  scheduler->alone = true;
  /* Blocks are for everybody, and a party for its places. */
  if (pto_slot_has_parts (slot))
    ran = false;
  else if (passes_by (scheduler, slot, &failed))
    settle (scheduler, slot, failed, slot->queue);
  else if (!pto_idle_is_empty (idle))
    {
      /* Work goes round, but not so fast that memory is always cold. */
      if (++scheduler->turn % PASS_TASKS == 0)
        pto_idle_push (idle, pto_idle_pop (idle));
      attend (scheduler, slot);
    }
  else
    ran = false;
  scheduler->alone = false;
  return ran;
}

struct pto_slot *
pto_scheduler_take_more (struct pto_endpoint *endpoint, uint32_t n,
                         bool (*fits) (void *data, const struct pto_slot *slot), void *data)
{
  struct pto_scheduler *scheduler = endpoint->scheduler;
  struct pto_engine *engine = scheduler->engine;
  struct pto_slot *slot = endpoint->running;
  uint32_t n_places = engine->line.n_left[endpoint->queue];
  bool is_wanted;
  bool failed;

  /* Of a group the others wait for each other. */
  if ((pto_slot_has_parts (slot)
       && (slot->queue != PTO_QUEUE_LINE || slot->party->n_members * slot->parts->n_blocks > 1))
      || endpoint->away || pto_engine_has_failed (engine)
      || pto_load_relaxed (&engine->priorities) != 0)
    return NULL;
  slot = NULL;
  is_wanted = false;
  if (pto_load_relaxed (&scheduler->words.called) != 0)
    slot = pto_place_take_named (engine, &scheduler->places.berths[endpoint->index], fits, data,
                                 &is_wanted);
  if (slot != NULL)
    {
      /* As granted. */
      endpoint->member = 0;
      endpoint->block = 0;
      endpoint->n_blocks = 1;
    }
  else if (is_wanted)
    return NULL;
  else
    {
      if (n_places == 0 || n * (n_places - 1) >= pto_engine_count_ready (engine, endpoint->queue)
          || pto_engine_pop_ready (engine, endpoint->queue, scheduler->config.index, &slot, 1) == 0)
        return NULL;
      if (pto_slot_has_parts (slot) || passes_by (scheduler, slot, &failed) || !fits (data, slot))
        {
          push (scheduler, slot);
          return NULL;
        }
    }
  pto_store_relaxed (&slot->state, PTO_TASK_RUNNING);
  scheduler_charge (scheduler, scheduler->config.dispatch_cost);
  return slot;
}

/* An endpoint that is far away has ended a task: can it be given one from its queue, before what
 * followed from that is known? Only the plain case: all others take their turn in dispatch(). */
static bool
refill (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint, const struct pto_slot *last)
{
  struct pto_engine *engine = scheduler->engine;
  struct pto_slot *slot;
  bool failed;

  if (!scheduler->config.far || endpoint->away || pto_slot_has_parts (last)
      || !pto_engine_has_ready (engine, endpoint->queue) || pto_engine_has_failed (engine)
      || pto_load_relaxed (&scheduler->words.called) != 0
      || pto_load_relaxed (&engine->priorities) != 0
      || pto_engine_pop_ready (engine, endpoint->queue, scheduler->config.index, &slot, 1) == 0)
    return false;
  if (pto_slot_has_parts (slot) || passes_by (scheduler, slot, &failed))
    {
      push (scheduler, slot);
      return false;
    }
  start (scheduler, endpoint, slot);
  endpoint->ops->dispatch (endpoint, slot);
  return true;
}

/* What an endpoint was given besides has ended, too. */
static __attribute__ ((noinline)) void
finish_others (struct pto_scheduler *scheduler, struct pto_endpoint *endpoint,
               struct pto_slot *const *others, const struct pto_outcome *outcome)
{
  for (uint32_t i = 0; i < outcome->n_others; i++)
    {
      struct pto_outcome other = { .failed = (outcome->others_failed >> i & 1) != 0,
                                   .again = (outcome->others_again >> i & 1) != 0 };

      /* A plain task and one that names the place may be together. */
      endpoint->n_blocks = 1;
      hand_out (scheduler, finish (scheduler, endpoint, others[i], &other));
    }
}

/* Phase 1: endpoints that have signalled. */
static void
collect (struct pto_scheduler *scheduler)
{
  uint32_t n_words = (scheduler->config.n_endpoints + 63) / 64;

  for (uint32_t word = 0; word < n_words; word++)
    for (uint64_t bits = take_signals (scheduler, word); bits != 0; bits &= bits - 1)
      {
        uint32_t index = word * 64 + (uint32_t) __builtin_ctzll (bits);
        struct pto_endpoint *endpoint = scheduler->config.endpoints[index];
        struct pto_outcome outcome = { .failed = false };

        scheduler_charge (scheduler, scheduler->config.poll_cost);
        if (endpoint->running != NULL && endpoint->ops->poll (endpoint, &outcome))
          {
            struct pto_slot *slot = endpoint->running;
            struct pto_slot *next;
            struct pto_slot *others[PTO_TOGETHER_MAX];

            /* What it is given next has others of its own. */
            for (uint32_t i = 0; i < outcome.n_others; i++)
              others[i] = outcome.others[i];
            if (!outcome.failed && refill (scheduler, endpoint, slot))
              {
                finish_others (scheduler, endpoint, others, &outcome);
                hand_out (scheduler, finish (scheduler, endpoint, slot, &outcome));
                continue;
              }
            endpoint->running = NULL;
            endpoint->between = true;
            finish_others (scheduler, endpoint, others, &outcome);
            next = finish (scheduler, endpoint, slot, &outcome);
            endpoint->between = false;
            if (next != NULL && !scheduler->config.attends && !endpoint->away)
              {
                start (scheduler, endpoint, next);
                endpoint->ops->dispatch (endpoint, next);
                continue;
              }
            scheduler->busy--;
            /* So that it is the next, while its memory is warm; the others in turn. */
            if (scheduler->config.attends)
              pto_idle_push_back (&scheduler->places.idle[endpoint->queue], index);
            else if (!endpoint->away)
              make_idle (scheduler, endpoint);
            hand_out (scheduler, next);
          }
      }
}

static void
note_cost (struct pto_scheduler *scheduler, uint64_t spent)
{
  struct pto_engine *engine = scheduler->engine;

  uint32_t n = scheduler->finished;

  if (n == 0)
    return;
  /* A few tasks are not judged by what it costs to come to them. */
  pto_store_relaxed (&engine->task_ns, spent / (n > PASS_LOOK ? n : PASS_LOOK) + 1);
}

/* The task after the next one comes while the next one runs: its slot, and what a core reads of the
 * one before it. */
static inline void
look_ahead (struct pto_slot *const *slots, uint32_t i, uint32_t n)
{
  if (i + 1 < n)
    {
      const char *payload = (const char *) slots[i + 1]->payload;

      __builtin_prefetch (payload);
      __builtin_prefetch (payload + 64);
      __builtin_prefetch (payload + 128);
    }
  if (i + 2 < n)
    __builtin_prefetch (slots[i + 2], 1);
}

/* Phase 2: idle endpoints get ready tasks; after a failure of the run all of these pass by, and
 * wait for nobody. Gives the number of tasks taken from the queues. */
static uint32_t
dispatch (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  bool attends = scheduler->config.attends;
  uint32_t max = batch_size (scheduler, PTO_POP_MAX);
  uint32_t look = PASS_LOOK;
  uint64_t begin = 0;
  uint32_t n = 0;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    {
      struct pto_idle_ring *idle = &scheduler->places.idle[queue];

      if (attends && !pto_idle_is_empty (idle))
        pto_idle_push (idle, pto_idle_pop (idle));
      /* Asked each time: what is popped may be of the next run by then, and waits for places. */
      while (!pto_idle_is_empty (idle) || pto_engine_has_failed (engine))
        {
          struct pto_slot **slots = scheduler->shelf.slots;
          uint32_t popped
              = pto_engine_pop_ready (engine, queue, scheduler->config.index, slots, max);

          if (popped == 0)
            break;
          if (n == 0 && attends)
            begin = pto_now (engine->exec);
          n += popped;
          /* It may take long, and what is left behind it was announced to nobody: it was pushed
           * while this scheduler lingered (before its first pop) or looked for it. */
          if (attends && (n == popped || max == 1))
            pto_engine_ring_all (engine);
          if (popped > 1)
            pto_shelf_open (&scheduler->shelf, popped);
          for (uint32_t i = 0;
               i < popped && (i == 0 || pto_shelf_take (&scheduler->shelf, engine->exec)); i++)
            {
              struct pto_slot *slot = slots[i];
              bool failed;

              if (attends)
                look_ahead (slots, i, popped);
              scheduler->run_through = 0;
              scheduler->behind = attends && i > 0;
              if (passes_by (scheduler, slot, &failed))
                slot = let_pass (scheduler, slot, failed, queue);
              hand_out (scheduler, slot);
            }
          scheduler->behind = false;
          if (attends && scheduler->finished >= look)
            {
              uint64_t spent = pto_now (engine->exec) - begin;

              if (scheduler->finished >= PASS_TASKS || spent >= PASS_NS)
                {
                  note_cost (scheduler, spent);
                  return n;
                }
              look = scheduler->finished + PASS_LOOK;
            }
        }
    }
  if (attends && n > 0)
    note_cost (scheduler, pto_now (engine->exec) - begin);
  return n;
}

/* Says for which queues this scheduler has an idle endpoint. seq_cst, as the looks that follow; see
 * pto_engine_ring(). */
static void
announce_hunger (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  uint64_t bit = UINT64_C (1) << scheduler->config.index;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    if (!pto_idle_is_empty (&scheduler->places.idle[queue])
        /* Only this scheduler sets it; others that clear it ring afterwards. */
        && (pto_load_relaxed (&engine->hungry[queue]) & bit) == 0)
      pto_fetch_or_seq_cst (&engine->hungry[queue], bit);
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
    if (pto_engine_has_ready (engine, queue))
      {
        if (pto_idle_is_empty (&scheduler->places.idle[queue]))
          pto_engine_ring (engine, queue);
        else
          mine = true;
      }
  return mine;
}

/* Patience is for others who are there. */
static bool
has_others (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  bool found = false;

  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    found = found || pto_engine_has_ready (engine, queue);
  return found;
}

/* *called: places have been given to who waits for them, and may be free for the next by now. */
static bool
pass (struct pto_scheduler *scheduler, bool *called)
{
  uint32_t n_called;
  uint32_t n_taken;
  bool patient;

  scheduler->pushed = 0;
  scheduler->finished = 0;
  collect (scheduler);
  patient = pto_load_relaxed (&scheduler->words.called) != 0 && has_others (scheduler);
  n_called = answer_call (scheduler, patient);
  n_taken = dispatch (scheduler);
  /* Who was impatient before has seen all that there is, or comes again. */
  if (patient || !scheduler->called)
    n_called += answer_call (scheduler, false);
  *called = n_called > 0;
  n_taken += n_called;
  if (scheduler->finished > 0)
    pto_engine_tell_submitter (scheduler->engine);
  /* What is left over is for somebody else. */
  if (scheduler->pushed > 0 || n_taken > 0)
    pto_engine_ring_all (scheduler->engine);
  return scheduler->finished > 0 || n_taken > 0;
}

/* Nothing is in the queues: is there something that stands behind a task that takes long? */
static bool
take_back (struct pto_scheduler *scheduler)
{
  struct pto_engine *engine = scheduler->engine;
  uint64_t now = pto_now (engine->exec);
  uint32_t n = 0;

  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    if (i != scheduler->config.index
        && pto_shelf_is_stuck (&engine->schedulers[i]->shelf, now, SHELF_NS))
      n += pto_shelf_take_back (&engine->schedulers[i]->shelf, engine, scheduler->config.index);
  if (n > 0)
    pto_engine_ring_all (engine);
  return n > 0;
}

/* Is there something soon? Only where a spin of a few us costs nobody else: endpoints share this
 * carrier and have nothing to do. */
static bool
linger (struct pto_scheduler *scheduler, uint32_t seen)
{
  struct pto_engine *engine = scheduler->engine;
  bool found = false;

  if (take_back (scheduler))
    return true;
  /* Relaxed: who does not see it yet rings those that are hungry, as ever. */
  pto_fetch_add_relaxed (&engine->lingering, 1);
  for (uint32_t i = 0; i < LINGER_YIELDS && !found; i++)
    {
      if (i % LINGER_LOOK == 0)
        {
          found = pto_word_get (&scheduler->words.bell) != seen;
          for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
            found = found
                    || (!pto_idle_is_empty (&scheduler->places.idle[queue])
                        && pto_engine_has_ready (engine, queue));
        }
      pto_yield (engine->exec);
    }
  /* seq_cst: before the look at the queues behind announce_hunger(); pairs with
   * pto_engine_ring(). */
  pto_fetch_add_seq_cst (&engine->lingering, (uint32_t) -1);
  return found || take_back (scheduler);
}

/* One that the submitter visits does not look by itself: visits are many, and each look takes the
 * shelf's line from who works. */
static bool
is_called_back (struct pto_scheduler *scheduler)
{
  _Atomic uint32_t *stuck = &scheduler->engine->stuck;

  /* Relaxed, both: one that is late, or comes twice, only looks in vain. */
  if (PTO_LIKELY (pto_load_relaxed (stuck) == 0))
    return false;
  pto_store_relaxed (stuck, 0);
  return take_back (scheduler);
}

void
pto_scheduler_main (void *data)
{
  struct pto_scheduler *scheduler = data;
  struct pto_engine *engine = scheduler->engine;

  for (;;)
    {
      uint32_t seen = pto_word_get (&scheduler->words.bell);
      bool called;

      /* The submitter that carries this scheduler has something else to do after a pass; what is
       * left over was offered to others. Who waits for places here can be offered to nobody. */
      if (pass (scheduler, &called) && (called || !pto_exec_is_visited (engine->exec)))
        continue;
      if (scheduler->busy == 0 && pto_load_acquire (&scheduler->words.stop) != 0)
        break;
      if (scheduler->config.attends && scheduler->busy == 0
          && (pto_exec_is_visited (engine->exec) ? is_called_back (scheduler)
                                                 : linger (scheduler, seen)))
        continue;
      announce_hunger (scheduler);
      if (pto_exec_is_visited (engine->exec) || !has_missed_something (scheduler))
        pto_park (engine->exec, &scheduler->words.bell, seen, PTO_NEVER);
      withdraw_hunger (scheduler);
    }
  for (uint32_t i = 0; i < scheduler->config.n_endpoints; i++)
    scheduler->config.endpoints[i]->ops->close (scheduler->config.endpoints[i]);
}

void
pto_scheduler_watch (struct pto_engine *engine)
{
  uint64_t now;
  bool stuck = false;

  /* Others have no shelves. Nor may this thread read a virtual clock, which is its owners' alone.
   */
  if (!engine->schedulers[0]->config.attends)
    return;
  now = pto_now (engine->exec);
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    stuck = stuck || pto_shelf_is_stuck (&engine->schedulers[i]->shelf, now, SHELF_NS);
  if (!stuck)
    return;
  pto_store_relaxed (&engine->stuck, 1);
  for (uint32_t queue = 0; queue < engine->config.n_queues; queue++)
    pto_engine_wake_hungry (engine, queue);
}

void
pto_scheduler_give_back (struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  struct pto_scheduler *scheduler = endpoint->scheduler;

  /* Who watches was told of one in the line when it came first. */
  if (slot->queue == PTO_QUEUE_LINE)
    pto_place_enter_anew (scheduler->engine, slot);
  else
    pto_engine_push_ready (scheduler->engine, slot, scheduler->config.index);
  pto_engine_wake (scheduler->engine, scheduler->config.index);
}

void
pto_scheduler_withdraw (struct pto_endpoint *endpoint)
{
  struct pto_scheduler *scheduler = endpoint->scheduler;

  if (endpoint->away)
    return;
  endpoint->away = true;
  if (endpoint->running == NULL && !endpoint->between)
    pto_place_withdraw (scheduler->engine, &scheduler->places.berths[endpoint->index]);
}

void
pto_scheduler_put_back (struct pto_endpoint *endpoint)
{
  struct pto_scheduler *scheduler = endpoint->scheduler;

  if (!endpoint->away)
    return;
  endpoint->away = false;
  /* Otherwise its scheduler does so when it comes to it. */
  if (endpoint->running == NULL && !endpoint->between
      && !scheduler->places.berths[endpoint->index].kept)
    make_idle (scheduler, endpoint);
  pto_engine_wake (scheduler->engine, scheduler->config.index);
}

void
pto_scheduler_forget (struct pto_endpoint *endpoint)
{
  struct pto_scheduler *scheduler = endpoint->scheduler;

  if (pto_place_forget (scheduler->engine, &scheduler->places.berths[endpoint->index]))
    pto_scheduler_put_back (endpoint);
  else
    pto_engine_wake (scheduler->engine, scheduler->config.index);
}
