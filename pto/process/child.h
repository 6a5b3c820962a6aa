/* child.h: what is a child doing, and who says what it does next?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One word tells it, enum pto_life. Each of its values belongs to one thread, which alone writes
 * the next one; two words beside it are what others tell that thread: what the keeper has found,
 * and, in the link, what the child answers.
 *
 *                       post                       cancel
 *     STARTING     IDLE ------> BUSY -----------------------> ASKED
 *        |          ^            |    answer                    |
 *        |          '------------+<-----------------------------'
 *        '---answer-^            |
 *        :                       | CLOSE is answered
 *        :                       v
 *        :                     ENDING
 *        :                       : it does not end
 *        '...> KILLED <..........'      (dotted: also from BUSY and ASKED, a limit is reached)
 *
 *     found dead, from all of these:   LOST, if it is to live again, or GONE
 *
 *     LOST --begin--> BEGINNING --fork--> BEGUN --look--> STARTING
 *
 * The carrier (the thread that runs scheduler and pump) owns STARTING to KILLED, and BEGUN; the
 * guest (who runs, or whoever stands in for it: level.h) LOST and BEGINNING; GONE nobody. It goes
 * from one to the other twice: LOST is a release of the carrier that pairs with the guest's
 * acquire, BEGUN one of the guest that pairs with the carrier's. All other writes are relaxed: only
 * the writer acts upon them.
 *
 * Beside all of this stands whether it is SUSPECT: a child that speaks for somebody far away says
 * that it does not hear of them (pto_child_is_suspect()). An IDLE one is given no task then, a BUSY
 * one goes on, and when they are heard of again all is as before. That it goes on for too long is
 * the child's to find, which ends then: LOST.
 *
 * A child knows neither what it is made of (struct pto_child_ops: a process, a thread, an actor of
 * a test) nor what it is asked for.
 */
#pragma once

#include "exec/pto-atomic.h"
#include "link.h"

enum pto_life
{
  /* --- the carrier's --- */
  PTO_LIFE_STARTING, /* START is posted */
  PTO_LIFE_IDLE,     /* waits for a request */
  PTO_LIFE_BUSY,     /* has one */
  PTO_LIFE_ASKED,    /* has one that is not wanted any more, and knows so */
  PTO_LIFE_ENDING,   /* has answered CLOSE; it ends by itself */
  PTO_LIFE_KILLED,   /* and is as good as dead; an answer that it has given still counts */
  PTO_LIFE_BEGUN,    /* is there again, START is posted; the carrier has not looked yet */
  /* --- the guest's --- */
  PTO_LIFE_LOST,      /* dead, to be begun again */
  PTO_LIFE_BEGINNING, /* from here on the new one may know, by birth, all that its parent does */
  /* --- */
  PTO_LIFE_GONE /* dead for good */
};

/* Why a life ends. The first reason counts. */
enum pto_why
{
  PTO_WHY_NOTHING,  /* it does not, or by itself */
  PTO_WHY_CLOSED,   /* it was asked to close, and has */
  PTO_WHY_REFUSED,  /* it has answered START with a no */
  PTO_WHY_CAUGHT,   /* it did not take START: a lock was held when it was forked. It lives again */
  PTO_WHY_UNWANTED, /* what it did was not wanted any more, and it did not stop. It lives again */
  PTO_WHY_FAULT     /* it did not answer, or wrote where it should not */
};

/* What the keeper has found. */
enum pto_found
{
  PTO_FOUND_NOTHING,
  PTO_FOUND_STOPPED, /* by a signal */
  PTO_FOUND_DEAD
};

struct pto_child;

struct pto_child_ops
{
  /* Why it is dead, for the message: "died (signal 9, Killed)"; and the last it said, perhaps "".
   * words may be NULL. Carrier. */
  void (*describe) (const struct pto_child *child, char *text, size_t size, char *words,
                    size_t words_size);
  /* Ends a child that can not be waited for; its death is found like any other. Not called for
   * threads. Carrier. */
  void (*kill) (struct pto_child *child, const char *why);
  /* START was answered with a no; it will be killed. Carrier. */
  void (*refused) (struct pto_child *child, const struct pto_failure *failure);
  /* It has started, or is LOST or GONE by now. Carrier. */
  void (*changed) (struct pto_child *child);
  /* Makes it anew, in its place; START is posted. false: it could not, which describe() tells from
   * now on. Guest, native stack. */
  bool (*begin) (struct pto_child *child);
};

struct pto_child
{
  struct pto_link link;
  const struct pto_child_ops *ops;
  void *data;      /* the ops' */
  uint32_t index;  /* of all children: bit in the hub, number in traces */
  uint32_t number; /* of its kind: the stable worker id */
  enum pto_child_kind kind;
  uint32_t level;       /* NEXT: 2 a chip, 3 and up a worker; SUB: 0 */
  bool thread;          /* can not be killed, and is not begun again */
  bool restart;         /* is begun again if it dies by itself */
  uint64_t leave_bytes; /* far: of what size on what is written is left there */
  bool far;             /* speaks for another process, of which it says whether anything is heard */
  char path[96];

  /* enum pto_life. W: its owner; R: anybody. Orders: above. */
  _Atomic uint32_t life;
  /* enum pto_found. W: keeper, DEAD with release, after what describe() reads and before the bit
   * and the ring; the guest, of what is not there yet. R: carrier, acquire, before its look at the
   * mailbox: an answer that was given is seen before the death. */
  _Atomic uint32_t found;
  /* Number of the life that is there, or was last; from 1. W: guest, release, behind BEGINNING; R:
   * anybody, acquire: a request that follows is one of BEGINNING or later. */
  _Atomic uint32_t lives;
  /* The last of them that has started; 0: none. W: carrier, release; R: anybody, acquire. */
  _Atomic uint32_t started;

  /* --- the carrier's; the guest reads them where it owns the child --- */
  uint32_t request; /* enum pto_request that is not answered; 0: none */
  enum pto_why why;
  uint64_t patience;      /* ASKED: what is left of the time to stop ... */
  uint64_t asked_ns;      /* ... and what it was at first */
  uint64_t since;         /* pool time of the request, or of its last sign of life */
  uint64_t asked_at;      /* of the request; for who looks from outside */
  uint64_t stopped_ns;    /* pool time for which it was found stopped, in a row */
  uint32_t beat;          /* signs of life by then */
  uint32_t failed_starts; /* in a row */
  uint32_t times_caught;  /* in a row, and not among those */
  /* In a row, by itself, without a task that was answered or went down with it. */
  uint32_t deaths;
  uint64_t begin_at; /* LOST: not begun again before; clock of the executor */
  char reason[256];  /* for which it was killed */

  /* --- the guest's, while it owns the child; the carrier reads them behind BEGUN --- */
  uint64_t begun_at;
  bool unborn; /* it could not be made */
};

/* Time that a child is given, in pool time (pto_pool_tick()). PTO_NEVER: no limit. */
struct pto_child_limits
{
  uint64_t task_ns;  /* one task without a sign of life */
  uint64_t start_ns; /* START of a child of level 2 or less; twice for level 3, and so on. REGISTER
                      * as well */
  uint64_t close_ns; /* CLOSE, and the end after it */
  uint64_t stop_ns;  /* a stopped child that has a request */
};

/* Mailbox, ops, data and the fields up to path are filled in, all others are 0: it is STARTING, and
 * START is posted before it is looked at. */
/* A child that has not taken START after so long has been caught by a lock, or was given no CPU: it
 * is forked again, as often as PTO_CHILD_CAUGHT_MAX. times: so often it was before; it is given
 * longer then. */
#define PTO_CHILD_CAUGHT_MAX 32u
uint64_t pto_child_caught_limit (uint32_t times);

void pto_child_init (struct pto_child *child);

static inline enum pto_life
pto_child_life (const struct pto_child *child)
{
  return (enum pto_life) pto_load_relaxed (&child->life);
}

/* --- carrier --- */

static inline void
pto_child_set_life (struct pto_child *child, enum pto_life life)
{
  pto_store_relaxed (&child->life, (uint32_t) life);
}

/* As far as is known it is there. */
static inline bool
pto_child_is_there (const struct pto_child *child)
{
  return pto_child_life (child) <= PTO_LIFE_KILLED;
}

static inline bool
pto_child_is_idle (const struct pto_child *child)
{
  return pto_child_life (child) == PTO_LIFE_IDLE;
}

/* It gets no task, and nothing else is done about it: who it speaks for is silent, and may be heard
 * of again. Nobody else is believed. Any thread; the carrier learns by the child's bit that it is
 * to look. */
static inline bool
pto_child_is_suspect (const struct pto_child *child)
{
  return child->far && pto_link_is_silent (&child->link);
}

/* Is its answer, or its end, awaited? */
static inline bool
pto_child_is_under_way (const struct pto_child *child)
{
  enum pto_life life = pto_child_life (child);

  return life <= PTO_LIFE_KILLED && life != PTO_LIFE_IDLE;
}

/* It has a request now; time: the pool's. */
static inline void
pto_child_ask (struct pto_child *child, enum pto_request request, uint64_t time)
{
  child->request = request;
  child->since = child->asked_at = time;
  child->stopped_ns = 0;
  child->beat = pto_link_beat (&child->link);
  pto_child_set_life (child, request == PTO_REQUEST_START ? PTO_LIFE_STARTING : PTO_LIFE_BUSY);
}

/* And has answered it; CLOSE: pto_child_closed(). */
static inline void
pto_child_answered (struct pto_child *child)
{
  child->request = 0;
  if (pto_child_life (child) != PTO_LIFE_KILLED)
    pto_child_set_life (child, PTO_LIFE_IDLE);
}

/* START: with yes or no. */
void pto_child_started (struct pto_child *child);
void pto_child_refused (struct pto_child *child, const struct pto_failure *failure);
/* CLOSE: a process ends now; a thread's end is somebody else's to await. */
void pto_child_closed (struct pto_child *child, uint64_t time);
/* Asks for an end of the request, and gives it so long; workers a little more. */
void pto_child_cancel (struct pto_child *child, uint64_t patience_ns);
void pto_child_kill (struct pto_child *child, enum pto_why why, const char *reason);
/* BEGUN: looks at it as at any other from now on. false: it is not BEGUN. */
bool pto_child_take_over (struct pto_child *child, uint64_t time);
/* Found dead? Acquire: what it has answered is seen after that. */
bool pto_child_is_dead (const struct pto_child *child);
/* Found dead, or about to be: will there be another life, as far as is known? again, closing: as
 * below. */
bool pto_child_lives_again (const struct pto_child *child, bool again, bool closing);
/* It is LOST or GONE from here on. now: clock of the executor. again: it was asked to close, or is
 * about to be, for a new life; closing: nobody is begun again any more; with_task: it had one. */
void pto_child_bury (struct pto_child *child, uint64_t now, bool again, bool closing,
                     bool with_task);
/* ns of pool time have passed, it is time now; who is late is killed. Under way only. */
void pto_child_look_after (struct pto_child *child, const struct pto_child_limits *limits,
                           bool closing, uint64_t time, uint64_t ns);

/* --- guest --- */

/* Is it to be begun again by now? */
bool pto_child_is_due (const struct pto_child *child, uint64_t now);
/* LOST. Who could not be begun dies at once, and takes the way of all the dead. */
void pto_child_begin_again (struct pto_child *child, uint64_t now);
/* For the first time, and at every other: it is asked to start. */
void pto_child_post_start (struct pto_child *child);

/* --- keeper; what it finds of one that it does not see any more is not told --- */

void pto_child_found_stopped (struct pto_child *child, bool stopped);
void pto_child_found_dead (struct pto_child *child);

/* --- any thread --- */

/* Has it begun a life after the given one that has started, or will it have none? */
bool pto_child_has_started_since (const struct pto_child *child, uint32_t life);
bool pto_child_is_gone (const struct pto_child *child);
