/* scheduler.h: which ready task goes where, and what follows when it is done?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A scheduler owns endpoints: whatever a ready task can be handed to. It runs as one actor of one
 * domain; its endpoints' actors, if they are of this process, live in the same domain, except on
 * the threads back end. Several schedulers share the engine's ready queues.
 */
#pragma once

#include "batch.h"
#include "core-placement.h"

/* What became of a task. */
struct pto_outcome
{
  bool failed;   /* the endpoint has told pto_engine_fail() why, if the run is to end */
  bool again;    /* failed, and nothing is to be seen of that: it is ready as it was before. Of a
                  * party the last member to end says so for all */
  uint64_t time; /* pto_engine_stamp() of its end, if that is known; otherwise 0 */
  /* Of an endpoint that was given several (pto_scheduler_take_more()): the others, which have ended
   * with it, and a bit for each of them that has failed. Valid until the next dispatch. */
  struct pto_slot *const *others;
  uint64_t others_failed;
  uint64_t others_again;
  uint32_t n_others;
};

struct pto_scheduler_config
{
  uint32_t index;
  uint32_t n_endpoints;
  struct pto_endpoint **endpoints;
  bool concurrent; /* endpoints run on threads of their own: signals need atomics */
  bool attends;    /* endpoints share the scheduler's carrier: each task is run when dispatched */
  bool sorted;     /* of idle endpoints the lowest is next, so that the others stay asleep */
  bool far;        /* telling an endpoint takes long: who has ended is told before all else */
  /* det: virtual time of the scheduler's own steps */
  uint32_t dispatch_cost;
  uint32_t poll_cost;
  uint32_t fanout_cost;
};

struct pto_scheduler
{
  struct pto_engine *engine;
  struct pto_scheduler_config config;
  struct pto_places places;
  uint32_t busy; /* endpoints with a task */
  /* What is dispatched was taken from a queue together with a task that has run here since: what
   * others have recorded of it lies behind by far. */
  bool behind;
  uint32_t run_through;     /* successors handed on without a look at the queue, in a row */
  uint32_t pushed;          /* successors pushed in this pass */
  uint32_t finished;        /* tasks completed in this pass */
  uint32_t turn;            /* tasks run for the submitter */
  struct pto_slot *passing; /* tasks without a kernel that it has still to complete */
  bool called;              /* as its word said in this pass */
  bool alone;               /* the submitter runs a task that nobody else knows of yet */
  struct pto_trace_buffer *trace;
  uint64_t charged; /* ns of virtual time that it has spent */

  /* Bit e: endpoint e has signalled. W: endpoints (release), R: the scheduler (acquire by
   * exchange). */
  alignas (64) _Atomic uint64_t signalled[PTO_PLACE_WORDS];
  alignas (64) struct pto_scheduler_words words;
  /* What it runs itself, where it attends to its endpoints. */
  alignas (64) struct pto_shelf shelf;
};

#define PTO_ENDPOINTS_MAX (PTO_PLACE_WORDS * 64u)

/* Memory of the caller; endpoints' scheduler and index are filled in. */
bool pto_scheduler_init (struct pto_scheduler *scheduler, struct pto_engine *engine,
                         const struct pto_scheduler_config *config);
void pto_scheduler_destroy (struct pto_scheduler *scheduler);
/* The actor: runs until pto_scheduler_stop(), then closes its endpoints and returns. */
void pto_scheduler_main (void *scheduler);
void pto_scheduler_stop (struct pto_scheduler *scheduler);
/* The submitter, who has claimed the scheduler's domain, runs a task right here; its state is
 * COMPLETED or FAILED then, unless it waits for something. false: no endpoint is idle, and nothing
 * was done. */
bool pto_scheduler_run (struct pto_scheduler *scheduler, struct pto_slot *slot);
/* Called now and then by a thread that is nobody's actor: where tasks stand behind one that takes
 * long, somebody idle is woken to take them. */
void pto_scheduler_watch (struct pto_engine *engine);
/* For dispatch() of an endpoint that can be given several tasks at a time, and that is far
 * (pto_scheduler_config): another one that is ready and may run there, and that fits() says yes to.
 * NULL: there is none, or it is for others: of what is ready each place of a kind has its share.
 * n: so many it has by now. They end with the one that was dispatched (struct pto_outcome). Does
 * not switch to another actor. */
struct pto_slot *pto_scheduler_take_more (struct pto_endpoint *endpoint, uint32_t n,
                                          bool (*fits) (void *data, const struct pto_slot *slot),
                                          void *data);
/* Such a one, which has not begun and will not there, is ready again, for whoever has a place. By
 * who carries the scheduler while that is parked; may switch to another actor. */
void pto_scheduler_give_back (struct pto_endpoint *endpoint, struct pto_slot *slot);
/* An endpoint's task is done. Called by the endpoint's actor. */
void pto_scheduler_signal (struct pto_scheduler *scheduler, uint32_t index);

/* Endpoints that come and go, by who carries the scheduler while that is parked. Withdrawn is given
 * nothing from now on; what it runs ends as usual. Tasks that need it wait until it is put back.
 * One that is away from the start is so with away set before pto_scheduler_init(). */
void pto_scheduler_withdraw (struct pto_endpoint *endpoint);
void pto_scheduler_put_back (struct pto_endpoint *endpoint);
/* It was withdrawn and is gone for good: the parties that need it are refused. The last one of its
 * kind is put back, to be given, and to fail, all that comes for its kind. */
void pto_scheduler_forget (struct pto_endpoint *endpoint);
