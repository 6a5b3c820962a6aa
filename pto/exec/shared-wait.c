/* shared-wait.c: how does a ring reach a sleeper in another process, and cost nothing when nobody
 * sleeps?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every wait here is the same store-then-look pattern on both sides: the waiter says that it sleeps
 * and then looks at the value, the waker changes the value and then looks for sleepers. All four
 * are sequentially consistent, so at least one of them sees the other's store. The kernel's own
 * look at the value in FUTEX_WAIT is the waiter's last one.
 */
#include "shared-wait.h"

#include "exec-private.h"
#include "pto-atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Pauses between two looks at the clock. */
#define SPIN_LOOKS 32

/* 0, or errno as futex(2) says. Not private: the kernel finds the waiters of all processes that map
 * the page. */
static int
futex_wait_shared (_Atomic uint32_t *value, uint32_t expected, uint64_t deadline)
{
  struct timespec t, *limit = NULL;

  if (deadline != PTO_NEVER)
    {
      t.tv_sec = (time_t) (deadline / 1000000000u);
      t.tv_nsec = (long) (deadline % 1000000000u);
      limit = &t;
    }
  if (syscall (SYS_futex, value, FUTEX_WAIT_BITSET, expected, limit, NULL, FUTEX_BITSET_MATCH_ANY)
      == 0)
    return 0;
  return errno;
}

static void
futex_wake_shared (_Atomic uint32_t *value)
{
  syscall (SYS_futex, value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* True as soon as the value is not the expected one. */
static bool
spin (const struct pto_word *word, uint32_t expected, uint64_t end)
{
  do
    for (int i = 0; i < SPIN_LOOKS; i++)
      {
        /* Acquire: what came before the change. */
        if (pto_load_acquire (&word->value) != expected)
          return true;
        pto_pause ();
      }
  while (pto_clock_ns () < end);
  return false;
}

enum pto_park_result
pto_shared_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected, uint64_t spin_ns,
                 uint64_t deadline)
{
  int error;

  if (exec != NULL)
    return pto_park (exec, word, expected, deadline);
  if (pto_load_acquire (&word->value) != expected)
    return PTO_PARK_WOKEN;
  if (spin_ns > 0)
    {
      uint64_t end = pto_clock_ns () + spin_ns;

      if (spin (word, expected, end < deadline ? end : deadline))
        return PTO_PARK_WOKEN;
      /* A caller that only looks makes no system call. */
      if (deadline <= end)
        return PTO_PARK_TIMEOUT;
    }
  /* seq_cst: pairs with the fence in pto_shared_set(). Either the waker sees this, or the kernel,
   * which looks at the value after it, sees the waker's. */
  pto_exchange_seq_cst (&word->parked, 1);
  error = futex_wait_shared (&word->value, expected, deadline);
  /* Relaxed: a waker that still sees it set wakes nobody, which is harmless. */
  pto_store_relaxed (&word->parked, 0);
  if (error == ETIMEDOUT && pto_load_acquire (&word->value) == expected)
    return PTO_PARK_TIMEOUT;
  return PTO_PARK_WOKEN;
}

void
pto_shared_set (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  pto_store_release (&word->value, value);
  pto_explore_point ();
  /* Pairs with the exchange in pto_shared_park(): value stored before, parked read after. */
  pto_full_fence ();
  if (pto_load_relaxed (&word->parked) != 0)
    futex_wake_shared (&word->value);
  if (exec != NULL)
    pto_unpark (exec, word);
}

/* --- the bell --- */

/* What the system calls the eventfd; -1: it is none, or has no name. */
static int32_t
id_of_event (int event)
{
  static const char key[] = "eventfd-id:";
  char path[40], text[512] = "";
  const char *found;
  int fd;

  snprintf (path, sizeof path, "/proc/self/fdinfo/%d", event);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  if (read (fd, text, sizeof text - 1) < 0)
    text[0] = '\0';
  close (fd);
  found = strstr (text, key);
  return found != NULL ? (int32_t) strtol (found + sizeof key - 1, NULL, 10) : -1;
}

void
pto_bell_init (struct pto_bell *bell, int32_t event)
{
  pto_word_init (&bell->word, 0, false);
  atomic_init (&bell->asleep, 0);
  bell->event = event;
  bell->event_id = id_of_event (event);
}

/* A function that runs in a child may have closed what it does not know, and opened files since. */
static bool
is_event (const struct pto_bell *bell)
{
  return bell->event_id < 0 || id_of_event (bell->event) == bell->event_id;
}

void
pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell)
{
  uint32_t asleep;

  /* seq_cst: before the look at asleep; pairs with the listeners, who set their bit and then look
   * at the value. Releases what the ring is about. */
  pto_fetch_add_seq_cst (&bell->word.value, 1);
  asleep = pto_load_seq_cst (&bell->asleep);
  if ((asleep & PTO_BELL_LISTENS) != 0)
    {
      if ((asleep & PTO_BELL_SLEEPS) != 0)
        futex_wake_shared (&bell->word.value);
    }
  else if ((asleep & PTO_BELL_KEEPER) != 0 && is_event (bell))
    /* Fails only when it is full of rings that nobody has read: then it is readable. */
    eventfd_write (bell->event, 1);
  if (exec != NULL)
    pto_unpark (exec, &bell->word);
}

void
pto_bell_sleep (struct pto_bell *bell, uint32_t seen, uint64_t deadline)
{
  /* seq_cst: before the kernel's look at the value; pairs with pto_bell_ring(). */
  pto_fetch_or_seq_cst (&bell->asleep, PTO_BELL_SLEEPS);
  futex_wait_shared (&bell->word.value, seen, deadline);
  /* Relaxed: who still sees the bit wakes nobody. */
  pto_fetch_and_relaxed (&bell->asleep, ~(uint32_t) PTO_BELL_SLEEPS);
}

void
pto_bell_quiet (int event)
{
  eventfd_t rings;

  eventfd_read (event, &rings);
}
