/* pool-private.h: what do the files of a pool share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * pool.c is the conversation with the children, pool-task.c says what a task is to them and what of
 * its failure is told, pool-task-rerun.c which of those that are lost are run once more,
 * pool-remote-results.c what of their results stays where it is, pool-traffic.c what travels,
 * pool-control.c asks them for other things. All of it is the carrier's, but for what pool.h says
 * is somebody else's.
 */
#pragma once

#include "pool.h"
#include "remote-results.h"

#define PTO_POOL_WORDS (PTO_CHILDREN_MAX / 64)

/* A child as a place for tasks. It is away while the child can not be given one. */
struct pto_station
{
  struct pto_endpoint endpoint; /* first */
  struct pto_pool *pool;
  struct pto_child *child;
  bool over; /* what was dispatched has ended ... */
  bool failed;
  uint32_t n_lost; /* what it has was lost so often before */
  /* Of a child that speaks for somebody far away: what it has besides endpoint.running, and which
   * of that has failed; what a task takes there, 0: not known, and the way there and back; when
   * they were posted. ns; by the executor's clock, which the carrier may read. */
  struct pto_slot *others[PTO_TOGETHER_MAX];
  uint32_t n_others;
  uint64_t others_failed;
  uint64_t others_again; /* they are run again */
  uint64_t each_ns;
  uint64_t way_ns;
  uint64_t sent_at;
  uint64_t posted; /* a recorded task: when, as the trace counts */
  /* Under the lock of the pool's traffic: what it was asked last, and when that was; what it had
   * counted when the run began, and what of that is in the run's record, or in its sums. */
  uint64_t asked;
  struct pto_moved moved_before;
  struct pto_moved moved;
  /* What it has is not posted yet: some of what it needs is elsewhere, or about to come here. */
  bool held;
  /* What it had is answered: which have failed, and which end when what they wrote has come. */
  bool fetches;
  uint64_t answered_failed;
  uint64_t awaited;
  uint64_t comes[PTO_TOGETHER_MAX]; /* bytes of each that are on their way, as far as is known */
  char lost_text[160];         /* how its last life ended, if it took with it what was left there */
  struct pto_control *control; /* what it is asked besides; NULL: nothing */
};

/* Children that can stand in for each other: a ready queue each. */
struct pto_class
{
  enum pto_child_kind kind;
  uint32_t level;
  uint32_t n_children;
};

/* What a member of a group says went wrong, until all of them have ended. */
struct pto_held_failure
{
  struct pto_held_failure *next;
  const struct pto_slot *slot;
  struct pto_first_failure what;
};

struct pto_pool
{
  struct pto_engine *engine;
  struct pto_exec *exec;
  /* Of children that are actors of exec as well; NULL: they are processes, or threads of their own.
   */
  struct pto_exec *peers;
  struct pto_pool_config config;

  /* --- immutable --- */
  uint32_t n_classes;
  struct pto_class *classes;
  uint16_t *numbers[PTO_N_CHILD_KINDS]; /* index of each worker */
  uint32_t n_numbers[PTO_N_CHILD_KINDS];
  struct pto_endpoint **endpoints; /* one of each child, and nobody's */
  /* Of tasks that only order, should the engine not pass them by at once: always idle, so that they
   * wait for no child. */
  struct pto_endpoint nobody;

  /* --- the carrier's --- */
  struct pto_station *stations; /* of each child */
  uint32_t n_under_way;         /* children whose answer, or end, is awaited */
  uint64_t time;                /* sum of the ticks */
  uint64_t cancel_seen;         /* what has been acted upon */
  enum pto_pace pace;
  struct pto_control *controls; /* not done, oldest first; a reference each */
  bool closing;
  struct pto_trace_buffer *dispatches; /* of a run that is recorded; NULL: it is not */
  struct pto_trace_buffer *runs;       /* of each child */
  bool checks;                         /* what children do is checked (call-format.h) */
  uint32_t record;                     /* what the children are told; 0: nothing is recorded */
  struct pto_first_failure first;
  struct pto_held_failure *held;
  struct pto_left left;
  struct
  {
    pthread_mutex_t lock;
    /* W: guest, R: carrier, both under the lock. */
    bool counts; /* a run is under way */
    bool is_recorded;
  } traffic;
  uint64_t retried; /* W: carrier; and by the run's begin, W: the guest */
  uint64_t retried_before;

  /* --- between threads --- */
  /* Newest control request. W: anybody by compare-exchange, release; R: the pump, exchange acquire.
   */
  alignas (64) _Atomic (struct pto_control *) incoming;
  /* Number of the run << 32 | patience in us + 1; without patience: the run goes on. W: anybody by
   * compare-exchange, the guest between runs; R: carrier, anybody. Relaxed: it says nothing of
   * other memory; the ring behind it, and the ready queue behind a run's begin, bring it along. */
  _Atomic uint64_t cancel;
  /* ns not yet added to time. W: ticks by addition, the pump by exchange. */
  _Atomic uint64_t ticked;
  _Atomic uint32_t stop;
  /* W: carrier, the guest that begins a child again; R: the guest. Relaxed: all are inside of the
   * executor, whose token orders them. */
  _Atomic uint32_t starting;
  /* Index + 1 of the first child that could not start; 0: none. As starting; W: carrier. */
  _Atomic uint32_t start_failed;
  /* Children that are LOST: a hint; who begins one before it is counted lets it wrap for a moment.
   * W: carrier adds, guest subtracts; R: anybody. */
  _Atomic uint32_t n_lost;
  uint32_t restarts; /* lives, but for those that a lock had caught; the guest's */
  /* Changes when a child has started, or was lost, or has ended: the guest may park on it. */
  struct pto_word news;
};

static inline bool
pto_pool_has_bit (const uint64_t *bits, uint32_t index)
{
  return (bits[index / 64] >> (index % 64) & 1) != 0;
}

static inline void
pto_pool_set_bit (uint64_t *bits, uint32_t index, bool value)
{
  uint64_t bit = UINT64_C (1) << (index % 64);

  bits[index / 64] = value ? bits[index / 64] | bit : bits[index / 64] & ~bit;
}

/* Of a slot that is no task which only orders. */
static inline struct pto_level_task *
pto_pool_task (const struct pto_slot *slot)
{
  return pto_payload_extra (slot->payload);
}

/* The tasks that it has: endpoint.running, then the others. */
static inline struct pto_slot *
pto_station_slot (const struct pto_station *station, uint32_t i)
{
  return i == 0 ? station->endpoint.running : station->others[i - 1];
}

struct pto_extent
{
  uint64_t begin, end;
};

/* --- pool.c --- */

/* It is asked something now, which is in its link. */
void pto_pool_begin_request (struct pto_pool *pool, struct pto_child *child,
                             enum pto_request request);
/* Asks for an end of what the child does. */
void pto_pool_cancel_child (struct pto_pool *pool, struct pto_child *child, uint64_t patience);
/* What the child can be given has changed: it is asked what it has to be, or its place is to be had
 * by tasks, or is not. */
void pto_pool_feed (struct pto_pool *pool, struct pto_station *station);
/* Nobody is given longer than a CLOSE any more, from now on. */
void pto_pool_begin_to_close (struct pto_pool *pool);
/* Any thread. */
void pto_pool_ring (struct pto_pool *pool);

/* --- pool-task.c --- */

/* Writes digest and body of the station's task into its link, and what goes with it; then the same
 * of up to max others that are ready and find room. */
void pto_pool_write_tasks (struct pto_pool *pool, struct pto_station *station, uint32_t max,
                           struct pto_letter *letter);
/* A recorded task: it is posted now. */
void pto_pool_record_post (struct pto_pool *pool, struct pto_station *station);
/* The member that it has had is over: answered, or lost with it. */
void pto_pool_record_member (struct pto_pool *pool, struct pto_station *station, bool answered);
/* Of one of all its members' tensors: addresses. */
struct pto_extent pto_pool_extent (const struct pto_slot *slot, uint32_t tensor);
/* What such a task of the station has written, or may have. Before whatever comes after it begins.
 */
void pto_pool_note_writes (struct pto_pool *pool, const struct pto_station *station,
                           const struct pto_slot *slot);
/* A task fails by itself, with that child; the first of them is remembered. */
void pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                            enum pto_failure_kind kind, const struct pto_child *child);
/* It is so, whoever has held it. */
void pto_pool_tell_failure (struct pto_pool *pool, const struct pto_first_failure *what);

/* What a child says of when something was; it was between those, whatever it says. */
uint64_t pto_pool_stamp_between (const struct pto_pool *pool, uint64_t ticks, uint64_t least,
                                 uint64_t most);

/* --- pool-traffic.c --- */

/* It is asked something for which something may travel. */
void pto_pool_record_asked (struct pto_pool *pool, struct pto_station *station);
/* A recorded task of it is over, of which it says that. */
void pto_pool_record_traffic (struct pto_pool *pool, struct pto_station *station,
                              const struct pto_slot *slot, const struct pto_stamps *stamps,
                              uint64_t now);
/* Some of what it was asked for has come: of the tasks that wait for that, or of none. */
void pto_pool_record_fetched (struct pto_pool *pool, struct pto_station *station);
/* And all that it was asked: what it has moved besides. Nothing if nothing is recorded. */
void pto_pool_record_rest (struct pto_pool *pool, struct pto_station *station);

/* --- pool-task-rerun.c --- */

/* The child is dead, and with it its member of that task. true: the task is run once more when all
 * of its members have ended, and has not failed. Before the child is buried. */
bool pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                          const struct pto_child *child, bool has_begun);
/* A member says what went wrong. Where that may come of another's loss: where to put it until all
 * have ended; otherwise NULL. */
struct pto_first_failure *pto_pool_hold_failure (struct pto_pool *pool,
                                                 const struct pto_slot *slot);
/* All of its members have ended. */
void pto_pool_settle_failure (struct pto_pool *pool, const struct pto_slot *slot);
/* And now they have: what they have written is not to be seen by who runs it next. */
void pto_pool_clean (const struct pto_slot *slot);

/* --- pool-remote-results.c --- */

/* enum pto_wire_access of that tensor, as that child is told. */
uint8_t pto_pool_access (struct pto_pool *pool, const struct pto_child *child,
                         const struct pto_slot *slot, uint32_t tensor);
/* Is what a task of the station needs where it needs it? If it is not, and who is not NULL, it is
 * wanted here from now on, of those whose bits are added to that. GONE: *lost had it. */
enum pto_left_where pto_pool_need (struct pto_pool *pool, const struct pto_station *station,
                                   const struct pto_slot *slot, uint64_t *who, uint32_t *lost);
/* Such a task is posted, or has ended. */
void pto_pool_begin_writing (struct pto_pool *pool, const struct pto_station *station,
                             const struct pto_slot *slot);
void pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                           const struct pto_slot *slot, bool failed);
/* It has ended well: how many bytes of what it has left are wanted here at once? They are, from now
 * on. */
uint64_t pto_pool_want_back (struct pto_pool *pool, const struct pto_station *station,
                             const struct pto_slot *slot);
/* Asks the child, which is idle, for what of it is wanted; false: nothing is. */
bool pto_pool_fetch (struct pto_pool *pool, struct pto_station *station);

/* --- pool-control.c --- */

/* The first request that the child has not been asked; NULL: none. */
struct pto_control *pto_pool_next_control (const struct pto_pool *pool,
                                           const struct pto_child *child);
void pto_pool_post_control (struct pto_pool *pool, struct pto_station *station,
                            struct pto_control *control);
void pto_pool_answer_control (struct pto_pool *pool, struct pto_station *station, bool yes,
                              bool lost);
/* The child is dead by now: who need not wait for its next life does not, and what it has agreed to
 * is not agreed. */
void pto_pool_drop_dead (struct pto_pool *pool, const struct pto_child *child);
/* Is it about to be asked to close? */
bool pto_pool_is_to_close (const struct pto_pool *pool, const struct pto_child *child);
/* New requests, and those that are not wanted any more. */
void pto_pool_take_controls (struct pto_pool *pool);
void pto_pool_free_controls (struct pto_pool *pool);
