/* exec-threads.c: what if every actor is a thread of the operating system? For TSan, debuggers and
 * cross-checks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A parked actor sleeps in the kernel on the word's value; word->parked tells wakers to go there.
 * Domains mean nothing.
 */
#include "exec-private.h"
#include "os-thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

struct threads
{
  struct pto_exec base;
  struct pto_actor *ended; /* threads to be joined; under base.lock */
};

static inline struct threads *
threads_of (struct pto_exec *exec)
{
  return (struct threads *) exec;
}

static int
threads_init (struct pto_exec *exec, char *error, size_t error_size)
{
  long least = sysconf (_SC_THREAD_STACK_MIN); /* 128 KiB on aarch64 */

  (void) error;
  (void) error_size;
  if (least > 0 && exec->config.stack_size < (size_t) least)
    exec->config.stack_size = (size_t) least;
  return 0;
}

static void
threads_reap (struct pto_exec *exec)
{
  struct threads *threads = threads_of (exec);
  struct pto_actor *list;

  pthread_mutex_lock (&exec->lock);
  list = threads->ended;
  threads->ended = NULL;
  pthread_mutex_unlock (&exec->lock);
  while (list != NULL)
    {
      struct pto_actor *actor = list;

      list = actor->next;
      actor->next = NULL;
      pto_os_thread_join (actor->thread);
      pto_actor_recycle (actor);
    }
}

static void
threads_main (void *arg)
{
  struct pto_actor *self = arg;
  struct pto_exec *exec = self->exec;

  pto_thread_self ()->current = self;
  self->fn (self->arg);
  pto_thread_self ()->current = NULL;
  pthread_mutex_lock (&exec->lock);
  self->next = threads_of (exec)->ended;
  threads_of (exec)->ended = self;
  pthread_mutex_unlock (&exec->lock);
  pto_actor_gone (exec);
}

static int
threads_start (struct pto_actor *actor, char *error, size_t error_size)
{
  return pto_os_thread_start (&actor->thread, actor->name, &actor->stack, threads_main, actor,
                              error, error_size);
}

static void
threads_enter (struct pto_exec *exec, struct pto_thread *thread)
{
  (void) exec;
  (void) thread;
}

static void
threads_leave (struct pto_exec *exec)
{
  (void) exec;
}

static void
threads_yield (struct pto_actor *self)
{
  (void) self;
  sched_yield ();
}

static bool
threads_help (struct pto_exec *exec)
{
  threads_yield (&exec->guest);
  return false;
}

static uint64_t
threads_now (struct pto_exec *exec)
{
  (void) exec;
  return pto_clock_ns ();
}

static enum pto_park_result
threads_park (struct pto_actor *self, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  int error;

  (void) self;
  if (pto_word_get (word) != expected)
    return PTO_PARK_WOKEN;
  /* Sequentially consistent: pairs with the fence in threads_unpark(). Either the waker sees this,
   * or the kernel, which looks at the value after it, sees the waker's. */
  atomic_exchange_explicit (&word->parked, 1, memory_order_seq_cst);
  /* What foreign code left of the thread's signal state is looked at while there is time. */
  pto_thread_self ()->epoch = 0;
  error = pto_futex_wait (&word->value, expected, deadline);
  /* Relaxed: a waker that still sees it set wakes nobody, which is harmless. */
  atomic_store_explicit (&word->parked, 0, memory_order_relaxed);
  if (error == ETIMEDOUT && pto_word_get (word) == expected)
    return PTO_PARK_TIMEOUT;
  /* Woken, changed before the sleep, or a signal (an interrupt of a guarded call): look again. */
  return PTO_PARK_WOKEN;
}

static void
threads_unpark (struct pto_exec *exec, struct pto_word *word)
{
  (void) exec;
  /* Pairs with the exchange in threads_park(): value stored before, parked read after. */
  pto_full_fence ();
  if (atomic_load_explicit (&word->parked, memory_order_relaxed) != 0)
    pto_futex_wake (&word->value);
}

static void
threads_clear (struct pto_exec *exec)
{
  threads_reap (exec);
}

const struct pto_backend_ops pto_threads_ops = {
  .size = sizeof (struct threads),
  .init = threads_init,
  .clear = threads_clear,
  .start = threads_start,
  .reap = threads_reap,
  .enter = threads_enter,
  .leave = threads_leave,
  .help = threads_help,
  .now = threads_now,
  .yield = threads_yield,
  .park = threads_park,
  .unpark = threads_unpark,
};
