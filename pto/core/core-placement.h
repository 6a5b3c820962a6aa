/* core-placement.h: where do the members of a task run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A place is an endpoint. It has a kind, which is the ready queue that it serves, a number, and
 * perhaps a cohort: places that are neighbours of each other and belong to one scheduler. Most
 * tasks need one place of a kind, whichever is idle: they know nothing of this file. A task with a
 * party says more: one place by its number, several at once, or several of one cohort at once.
 *
 * Such a task does not go to a ready queue when it is ready (pto_place_enter()). One that names all
 * of its places, of one kind, waits at each of them. The others stand in line: in the lane of their
 * kind, or in the one of those that need several kinds; of the line's lanes, or, if they are for
 * one cohort, of that cohort's; first come, first served, after those of higher priority. Idle
 * places are kept by who is first where it waits, as long as nobody who came before needs that kind
 * there as well; so two tasks never wait for each other's. Who needs one place only keeps none.
 * Whoever gives the last one sends all members off, each through its own scheduler; a task of
 * several blocks stays until the last block is sent off. Everything here is under one lock:
 * schedulers come for it only while
 * somebody waits, which each knows by a word of its own.
 *
 * Places come and go (pto_place_withdraw()). Tasks wait for one that is away; they are told of one
 * that is gone for good.
 */
#pragma once

#include "engine.h"
#include "placement-request.h"

/* Beside the kinds of places: what a slot with a party has instead of a ready queue. */
#define PTO_QUEUE_LINE PTO_QUEUES_MAX
#define PTO_LANE_MIXED PTO_QUEUES_MAX
#define PTO_LANE_NONE UINT32_MAX
#define PTO_PLACE_WORDS 48u /* of a bit for each place of a scheduler: one may have all of them */

struct pto_endpoint;
struct pto_outcome;
struct pto_places;
struct pto_scheduler;

struct pto_endpoint_ops
{
  /* Hands the task over; its end is signalled with pto_scheduler_signal(). Called only while the
   * endpoint is idle. */
  void (*dispatch) (struct pto_endpoint *endpoint, struct pto_slot *slot);
  /* After a signal: true when the task is done, with its outcome. */
  bool (*poll) (struct pto_endpoint *endpoint, struct pto_outcome *outcome);
  /* The scheduler ends: tell the endpoint's actor to end. */
  void (*close) (struct pto_endpoint *endpoint);
  /* A task with a party can not run any more, since this place is gone for good: it fails. NULL
   * where places do not go. */
  void (*refuse) (struct pto_endpoint *endpoint, struct pto_slot *slot);
};

struct pto_endpoint
{
  const struct pto_endpoint_ops *ops;
  struct pto_scheduler *scheduler;
  struct pto_slot *running; /* W, R: the scheduler */
  uint32_t index;           /* among the scheduler's */
  uint32_t queue;           /* which ready queue it serves */
  uint32_t number;          /* of the whole chip, for traces and messages; no two have the same */
  uint32_t cohort;          /* PTO_COHORT_NONE: of none */
  /* Which member of the task runs here; 0 if that has no party. W: who grants the place, and the
   * scheduler; R: the endpoint, while it runs. */
  uint32_t member;
  /* Of a task with parts the first of its blocks that run here, and how many; a part of a party is
   * of one block. W, R: as member. */
  uint32_t block;
  uint32_t n_blocks;
  /* The scheduler waits for the end of what it dispatches: no signal. W: the scheduler; R: the
   * endpoint's actor, which shares its carrier. */
  bool attended;
  /* Not to be had: it is with whoever has withdrawn it. W: the scheduler's carrier. */
  bool away;
  /* Its task is over, and its scheduler, which may yield meanwhile, has not put it anywhere yet. W:
   * the scheduler; R: its carrier. */
  bool between;
};

/* What core-placement.c knows of an endpoint: apart, for what runs tasks does not look at it. */
struct pto_berth
{
  struct pto_endpoint *endpoint;
  struct pto_places *of;
  struct pto_berth *neighbour; /* of its cohort; ends with NULL */
  /* W, R: the scheduler. Kept for somebody: the endpoint is not among the idle ones. */
  bool kept;
  /* Under the line's lock. Never comes back. */
  bool gone;
  /* What was granted, or NULL: nothing, it is idle again; and the next one that its scheduler is to
   * be told of. */
  struct pto_slot *granted;
  struct pto_berth *next_granted;
  /* Whom it is kept for, and those who wait for just this one. */
  struct pto_party_member *keeper;
  struct pto_party_member *first;
  struct pto_party_member *last;
};

struct pto_party_member
{
  struct pto_need need;
  uint32_t number; /* of the party's */
  /* Under the line's lock, while the task waits. */
  struct pto_berth *kept;
  struct pto_party_member *next; /* at the place of its name */
  struct pto_party_member *previous;
};

/* Do its members run? The first of them that begins decides it for all. */
enum pto_party_course
{
  PTO_PARTY_UNDECIDED,
  PTO_PARTY_RUNS,
  PTO_PARTY_PASSES_BY
};

/* The same in the task's storage, and how far it has come. */
struct pto_party
{
  struct pto_parts parts; /* first */
  /* Under the line's lock: whose it is, who is behind it in its lane, who goes before whom: a
   * higher priority, then who has entered before. */
  struct pto_slot *slot;
  struct pto_slot *next;
  uint64_t turn;
  uint32_t n_kept;
  uint32_t lane; /* PTO_LANE_NONE: it waits at its places */
  /* enum pto_party_course. W: members, by compare-exchange; relaxed, it says nothing of other
   * memory. */
  _Atomic uint32_t course;
  /* The endpoints': members that have met, and how often all have. */
  _Atomic uint32_t met;
  _Atomic uint32_t round;
  bool together;
  uint32_t cohort;
  uint32_t n_members;
  uint32_t block;                /* members of each of those that begin at once */
  uint32_t n_of[PTO_QUEUES_MAX]; /* together: of one block; otherwise of all */
  struct pto_party_member members[];
};

/* Idle endpoints of one kind, first in, first out, so that work goes round. */
struct pto_idle_ring
{
  uint32_t *items;
  uint32_t capacity; /* a power of two */
  uint32_t head;
  uint32_t tail;
};

/* One scheduler's. */
struct pto_places
{
  uint32_t index; /* of the scheduler */
  uint32_t n_endpoints;
  struct pto_endpoint **endpoints;
  struct pto_berth *berths; /* of each */
  /* For parties, and for who waits for his turn, there are two that are always empty. */
  struct pto_idle_ring idle[PTO_QUEUES_MAX + 2];
  /* A bit each. Has run a member since others were last asked for. */
  uint64_t lately[PTO_PLACE_WORDS];
  /* Under the line's lock. Kept endpoints that are to begin, or to be idle again; and a bit for
   * each that somebody waits for by name. */
  struct pto_berth *granted;
  uint32_t n_named;
  uint64_t named[PTO_PLACE_WORDS];
  uint32_t n_bound; /* lanes of its cohorts that somebody is in */
};

static inline bool
pto_idle_is_empty (const struct pto_idle_ring *idle)
{
  return idle->head == idle->tail;
}

static inline void
pto_idle_push (struct pto_idle_ring *idle, uint32_t index)
{
  idle->items[idle->head++ & (idle->capacity - 1)] = index;
}

static inline uint32_t
pto_idle_first (const struct pto_idle_ring *idle)
{
  return idle->items[idle->tail & (idle->capacity - 1)];
}

static inline uint32_t
pto_idle_pop (struct pto_idle_ring *idle)
{
  return idle->items[idle->tail++ & (idle->capacity - 1)];
}

static inline void
pto_idle_push_back (struct pto_idle_ring *idle, uint32_t index)
{
  idle->items[--idle->tail & (idle->capacity - 1)] = index;
}

/* Of a ring that is sorted: the lowest is the next. */
static inline void
pto_idle_insert (struct pto_idle_ring *idle, uint32_t index)
{
  uint32_t mask = idle->capacity - 1;
  uint32_t i = --idle->tail;

  for (; i + 1 != idle->head && idle->items[(i + 1) & mask] < index; i++)
    idle->items[i & mask] = idle->items[(i + 1) & mask];
  idle->items[i & mask] = index;
}

/* The endpoints of a scheduler, all of them idle but for those that are away; between runs. places
 * is zeroed. false: no memory.
 */
bool pto_places_init (struct pto_places *places, struct pto_engine *engine, uint32_t index,
                      struct pto_endpoint **endpoints, uint32_t n_endpoints);
void pto_places_destroy (struct pto_places *places, struct pto_engine *engine);

/* Can there ever be such places? false: no, and the run has failed. */
bool pto_place_admit (struct pto_engine *engine, uint32_t kernel, const struct pto_wish *wish,
                      uint32_t n_blocks);
/* Bytes behind so many others of a task with parts; n_members 0: of one kernel. */
static inline uint32_t
pto_parts_bytes (uint32_t before, uint32_t n_members)
{
  uint64_t bytes = n_members > 0
                       ? sizeof (struct pto_party) + n_members * sizeof (struct pto_party_member)
                       : sizeof (struct pto_parts);

  return (uint32_t) (align_up (before, alignof (struct pto_party)) - before + bytes);
}
void pto_party_init (struct pto_party *party, const struct pto_wish *wish, uint32_t n_blocks);

/* A task with a party is ready: it waits, and whoever has places for it is rung. Whoever has made
 * it ready must not look at it any more. */
void pto_place_enter (struct pto_engine *engine, struct pto_slot *slot);

/* Instead: it does not run, and is as one without a kernel from now on, in the queue of its kind.
 */
void pto_place_leave_out (struct pto_engine *engine, struct pto_slot *slot);

/* A place that does not run anything is to be had no more: not by ready tasks, not by who keeps it.
 * One that runs something is so when that has ended. Called with no grant of this scheduler's
 * outstanding, by its carrier, who puts it back among the idle ones. */
void pto_place_withdraw (struct pto_engine *engine, struct pto_berth *berth);
/* It will never come back, and is of no cohort; whoever needs it is over. true: it was the last one
 * of its kind. */
bool pto_place_forget (struct pto_engine *engine, struct pto_berth *berth);

/* What a scheduler is to do next: begin what its places, linked by next_granted, have been
 * granted; and settle a task that is over without having run, or NULL, since a place is gone, or
 * NULL. Called by the scheduler, with no endpoint in its hands, when its words say so. patient:
 * places whose last task was a member are for others first. */
struct pto_calling
{
  struct pto_berth *granted;
  struct pto_slot *over;
  struct pto_endpoint *gone;
  bool ended; /* somebody waits no more, and others were not looked at */
};
void pto_place_look (struct pto_engine *engine, struct pto_places *places, bool patient,
                     struct pto_calling *calling);

/* A task that waits for that place, by its name and for no other, and has come before all others of
 * the kind: it is on its way there from now on, as if it had been granted. NULL: there is none, or
 * fits() says no to it; *is_wanted: then somebody waits for whom this place may be. Called by its
 * scheduler, with the place in its hands; never switches to another actor. */
struct pto_slot *pto_place_take_named (struct pto_engine *engine, struct pto_berth *berth,
                                       bool (*fits) (void *data, const struct pto_slot *slot),
                                       void *data, bool *is_wanted);

/* A member is about to begin: do they run? Not if the run has failed before the first of them
 * began. All of them do, or none, so that nobody waits for one who does not come. */
bool pto_party_begins (struct pto_engine *engine, struct pto_party *party);

/* A member has ended there. true: it was the last one, and the task is over, perhaps *failed. */
bool pto_party_leave (struct pto_engine *engine, struct pto_places *places,
                      struct pto_endpoint *endpoint, struct pto_slot *slot, bool *failed);

/* All members of a task have ended, and it is to be run once more: it enters as it did at first.
 * Not of one whose members are together. */
void pto_place_enter_anew (struct pto_engine *engine, struct pto_slot *slot);

/* Which of the task's blocks is it that runs there first, and how many are there? */
static inline uint32_t
pto_endpoint_block (const struct pto_endpoint *endpoint, const struct pto_party *party)
{
  return party == NULL ? endpoint->block
                       : (endpoint->block * party->n_members + endpoint->member) / party->block;
}
static inline uint32_t
pto_parts_blocks (const struct pto_parts *parts, const struct pto_party *party)
{
  return party == NULL ? parts->n_blocks : parts->n_blocks * (party->n_members / party->block);
}

/* Which kernel, and which kind of place, a member of the task is for. */
static inline uint32_t
pto_slot_kernel (const struct pto_slot *slot, uint32_t member)
{
  return __builtin_expect (slot->queue == PTO_QUEUE_LINE, 0)
             ? slot->party->members[member].need.kernel
             : slot->kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS);
}
static inline uint32_t
pto_slot_kind (const struct pto_slot *slot)
{
  return slot->queue == PTO_QUEUE_LINE ? slot->party->members[0].need.queue : slot->queue;
}
