/* inspect.h: what does a run do, and what does it wait for, as somebody sees it who has no part in
 * it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nobody who runs does anything for it: what there is to see is what they tell each other anyway.
 * So it works also when all of them hang, and costs nothing while nobody looks. What is read is of
 * one moment word by word, not as a whole: two rows of one look may be some microseconds apart. But
 * no row is made of two tasks:
 *
 * A slot is read between two looks at its ring's last_task_alive. Whoever writes it anew has
 * retired the task before, and has stored last_task_alive behind that, before a release fence
 * (pto_ring_reclaim()); so who has read a word of the new task finds, behind an acquire fence, that
 * the old one is retired, and drops it. Its edges are given back with it, and hold until then.
 *
 * What the submitter waits for is read between two looks at wait_since (engine.h).
 *
 * What a core runs is read between two looks at the number of its guarded call
 * (sim/chip-inspect.c), what a child runs between two at the number of its request
 * (process/level-inspect.c). What a run is given, kernels and their names, stays while the door is
 * held (run-machine.h).
 */
#pragma once

#include "runtime.h"
#include "task.h"

#include <pthread.h>
#include <stddef.h>

struct pto_engine;
struct pto_machine;

#define PTO_LOOK_NAME 96u
/* Of each ring, from the oldest on: so many tasks that are not over are counted by what they do,
 * and so many of those that wait are told of, each with so many of those that it waits for. */
#define PTO_LOOK_SLOTS (1u << 16)
#define PTO_LOOK_TASKS 16u
#define PTO_LOOK_CAUSES 8u
#define PTO_LOOK_QUEUES 16u

enum pto_doing
{
  PTO_DOING_NOTHING,       /* no run is under way */
  PTO_DOING_ORCHESTRATION, /* the code of the orchestration */
  PTO_DOING_CALL,          /* a call of the runtime */
  PTO_DOING_TASK,          /* it runs what it submits itself, at once */
  PTO_DOING_TURN,          /* waits until the only thread that there is comes out of a kernel */
  PTO_DOING_ROOM,          /* waits for room */
  PTO_DOING_COHORT,        /* waits for a cohort */
  PTO_DOING_AWAIT,         /* waits for one task */
  PTO_DOING_AWAIT_ALL,     /* waits for all that was submitted, and goes on then */
  PTO_DOING_END,           /* waits for all that was submitted: that was all */
  PTO_N_DOINGS
};

struct pto_look_task
{
  pto_task_id id;
  uint32_t state;         /* enum pto_task_state */
  const char *state_name; /* "running"; a literal */
  char kernel[PTO_LOOK_NAME];
};

struct pto_look_waiting
{
  struct pto_look_task task;
  uint32_t queue;    /* kind of places that it is for; PTO_LOOK_QUEUES: several at once */
  uint32_t n_places; /* then: so many ... */
  uint32_t n_kept;   /* ... of which it has so many */
  uint32_t priority;
  uint32_t n_producers; /* that it still waits for; of those: */
  uint32_t n_causes;
  struct pto_look_task causes[PTO_LOOK_CAUSES];
};

struct pto_look_ring
{
  uint32_t window;
  uint32_t first; /* the oldest task that is not retired, and the next one */
  uint32_t next;
  uint32_t edge_pool;
  uint32_t edges;
  uint64_t heap;
  uint64_t heap_used;
  uint64_t heap_peak; /* of this run */
  uint64_t storage;
  uint64_t storage_used;
};

struct pto_look_submitter
{
  enum pto_doing doing;
  uint64_t for_ns;              /* at least; 0: that is not known */
  struct pto_shortage shortage; /* ROOM, COHORT */
  uint32_t ring;                /* ROOM */
  struct pto_look_task task;    /* ROOM: the ring's oldest; AWAIT */
};

struct pto_look
{
  bool running; /* the numbers below are of a run that is under way, otherwise of the last one */
  bool captures;
  enum pto_status failed; /* PTO_OK: it has not */
  uint64_t for_ns;        /* since its begin */
  struct pto_machine_totals totals;
  uint64_t submitted;
  uint64_t completed; /* of those */
  uint64_t failures;  /* of those */
  uint64_t edges;
  uint64_t stalls;
  uint64_t peak_live;
  uint64_t n_pending;
  uint64_t n_ready;
  uint64_t n_running;
  uint64_t n_unseen; /* not over, and not looked at: rings hold more than PTO_LOOK_SLOTS */
  uint32_t map_used;
  uint32_t map_capacity;
  uint32_t n_queues;
  uint64_t queued[PTO_LOOK_QUEUES]; /* ready tasks of each kind, about */
  struct pto_look_ring rings[PTO_RINGS];
  struct pto_look_submitter submitter;
  uint32_t n_waiting;
  struct pto_look_waiting waiting[PTO_RINGS * PTO_LOOK_TASKS]; /* oldest of each ring first */
};

/* Nobody who looks waits for long: who has the lock may be stopped. false: it can not be had. */
bool pto_look_take (pthread_mutex_t *lock);
/* Holds the door: no run begins or ends until it is let go of. false: it can not be had within
 * 100 ms, for somebody else looks, or is stopped in it. Any thread that is none of a run. */
bool pto_look_begin (struct pto_machine *machine);
void pto_look_end (struct pto_machine *machine);
/* In between; the engine's executor is there. Large: not on a small stack. */
void pto_look (struct pto_machine *machine, struct pto_look *look);

/* How far a run is. */
struct pto_look_counts
{
  uint64_t submitted;
  uint64_t completed;
  uint64_t failures; /* of those */
};

/* Of who has a part in the run under way. */
void pto_look_count (const struct pto_machine *machine, struct pto_look_counts *counts);
/* Of anybody else. false: there is no run, or the door is not to be had. */
bool pto_look_count_from_outside (struct pto_machine *machine, struct pto_look_counts *counts);

/* A task of that id, which is not retired: what it is and does. false: it is. */
bool pto_look_at_task (const struct pto_engine *engine, pto_task_id id, struct pto_look_task *task);
