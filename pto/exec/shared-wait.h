/* shared-wait.h: how do processes wait for each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A struct pto_word in memory that several processes map at one address, and the bell that a parent
 * listens to. Every function takes the executor whose actor the caller is, or NULL for a thread
 * that is no actor (a child's main thread, a thread child). Waiting with an executor is pto_park(),
 * so that the same protocol runs on det; without one it is a bounded spin and a futex that is not
 * private. Whoever wakes reaches both kinds: the futex of another process by parked, and, when an
 * executor is given, the actor of that executor.
 *
 * A process that dies here leaves nothing behind: no lock, no count of waiters that only it could
 * take back (parked is a flag that the next waiter sets again).
 */
#pragma once

#include "pto-exec.h"

#include <stdalign.h>

/* A waker that finds parked set calls the kernel. W: the waiter, seq_cst before its last look at
 * value; R: the waker, after a seq_cst fence behind its store of value. */

/* Waits while word's value is expected: spins for at most spin_ns (0: not at all), then sleeps.
 * deadline in pto_wall_clock() time (with an executor: pto_now()), or PTO_NEVER. One waiter a word.
 * WOKEN may come early (a signal): look again. */
enum pto_park_result pto_shared_park (struct pto_exec *exec, struct pto_word *word,
                                      uint32_t expected, uint64_t spin_ns, uint64_t deadline);
/* Store-release, then wakes the waiter if it sleeps. */
void pto_shared_set (struct pto_exec *exec, struct pto_word *word, uint32_t value);

/* Who of the listening process hears a ring. Each bit has one writer, which sets it (seq_cst)
 * before its last look at word.value; ringers read it after their change of value. */
enum
{
  /* the keeper's poll(), which sees event; it is woken when the guest does not listen. W: keeper */
  PTO_BELL_KEEPER = 1,
  PTO_BELL_LISTENS = 2, /* the guest waits and looks at word.value by itself. W: guest */
  PTO_BELL_SLEEPS = 4   /* and sleeps: a futex on word.value. W: guest */
};

/* One in each process that has children, in memory that it shares with them. */
struct pto_bell
{
  /* +1 a ring. W: anybody (seq_cst: before the look at asleep); R: the listening process, which
   * sets its bit in asleep first and looks here last. */
  alignas (64) struct pto_word word;
  _Atomic uint32_t asleep; /* PTO_BELL_... */
  /* eventfd that does not block; the same number in every child, close-on-exec; -1 where nobody
   * polls. For ringers: children can write here, the listening process has its own copy. */
  int32_t event;
  int32_t event_id; /* as the system counts them, by which it is known again; -1: it is not told */
};

void pto_bell_init (struct pto_bell *bell, int32_t event);
/* Any process, any thread. exec: the executor of det when the listener is an actor of it; NULL
 * otherwise. Costs one atomic add and one load when nobody sleeps. Who dies between the two has
 * rung and woken nobody: whoever finds it dead rings again. The same when the caller's process has
 * closed the event, or made another file of its number: then nothing is written to that. */
void pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell);

/* --- the listening process (exec-host.c) --- */

/* The guest sleeps while word.value is seen, which it read before its last look around; LISTENS is
 * set. May return early. */
void pto_bell_sleep (struct pto_bell *bell, uint32_t seen, uint64_t deadline);
/* Reads the event empty, so that poll() waits for the next ring. */
void pto_bell_quiet (int event);
