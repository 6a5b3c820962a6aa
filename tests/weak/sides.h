/* sides.h: what stands for the threads of a program whose back end is explored, and for their
 * kernel?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A side is an actor of the explorer's executor that plays a thread or a process: it has a place of
 * its own in the engine, sleeps on futexes that are played here, and sees a clock that only goes on
 * when somebody looks at it. The explored sources are compiled with the names of these functions.
 */
#pragma once

#include "../../pto/exec/exec-private.h"

#define SIDES_MAX 8u
#define SIDES_STEP_NS 1000000u

struct side
{
  struct pto_thread place;
  void (*fn) (void *arg);
  void *arg;
  bool ended;
  struct pto_word alarm; /* of the explorer's executor: sleeps on it in the kernel */
  _Atomic uint32_t *futex;
  uint64_t deadline;
  bool expired;
};

extern struct side sides[SIDES_MAX];
extern uint32_t n_sides;
extern uint64_t sides_clock;

/* Adds one, which begins as soon as the explorer's executor runs. */
struct side *sides_start (void (*fn) (void *arg), void *arg);
/* The one that runs; the program itself, which is none of them, between schedules. */
struct side *sides_current (void);
/* For explorer_start(): 0 is the program itself. */
uint32_t sides_self (void);
/* The kernel's timer: so much time has passed for whoever sleeps with a deadline. */
void sides_pass (uint64_t ns);

/* Runs a scenario along every path with at most bound preemptions and stale_bound old values. begin
 * starts the sides; end looks at what became of them when none can go on, and tidies up. The
 * explorer has at_least so many paths. */
struct sides_paths
{
  uint32_t bound, stale_bound;
  uint64_t at_least;
  void (*begin) (const void *scenario);
  void (*end) (const void *scenario);
};
void sides_explore (const struct sides_paths *paths, const void *scenario);

struct pto_thread *explorer_thread_self (void);
int explorer_os_thread_start (pthread_t *thread, const char *name, const struct pto_stack *stack,
                              void (*fn) (void *arg), void *arg, char *error, size_t error_size);
void explorer_os_thread_join (pthread_t thread);
int explorer_futex_wait (_Atomic uint32_t *word, uint32_t expected, uint64_t deadline);
void explorer_futex_wake (_Atomic uint32_t *word);
uint64_t explorer_clock_ns (void);
int explorer_sched_yield (void);

#ifdef PTO_WEAK
#include "weak.h"

/* Of words.c: the test's own steps on words of what is explored are the machine's, too. */
uint32_t weak_word_get (const struct pto_word *word);
void weak_word_set (struct pto_exec *exec, struct pto_word *word, uint32_t value);
uint32_t weak_load (const _Atomic uint32_t *value);
void weak_add (_Atomic uint32_t *value, uint32_t n);
#else
#define weak_release(thing)
#define weak_acquire(thing)
#define weak_word_get pto_word_get
#define weak_word_set pto_word_set
#define weak_load pto_load_acquire
#define weak_add pto_fetch_add_acq_rel
#endif
