/* ticker.c: who looks after runs that do not end by themselves?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ticker.h"

#include "exec-private.h"
#include "os-thread.h"

#include <stdatomic.h>
#include <stdlib.h>

/* So long after it was disarmed it still wakes up by itself: arming costs nothing till then. */
#define REST_NS 200000000u

enum
{
  AWAKE = 0,
  PARKED = 1,
  STOP = 2
};

struct pto_ticker
{
  pthread_t thread;
  uint64_t period_ns;
  void (*tick) (void *data);
  void *data;
  /* W: the owner, R: the thread. Its being set and the thread's last look before it parks are
   * seq_cst, as are PARKED and the owner's look for it: either the thread sees the arming or the
   * owner sees PARKED. Other looks are relaxed but for the one before a tick, which acquires what
   * was there when it was armed. */
  _Atomic uint32_t armed;
  /* AWAKE, PARKED, STOP. W: both. The thread waits on it. Relaxed but for PARKED: nothing goes with
   * it. */
  _Atomic uint32_t state;
};

static void
main_loop (void *data)
{
  struct pto_ticker *ticker = data;
  uint64_t rest = 0;

  while (atomic_load_explicit (&ticker->state, memory_order_relaxed) != STOP)
    {
      if (atomic_load_explicit (&ticker->armed, memory_order_relaxed) != 0)
        rest = REST_NS;
      if (rest > 0)
        {
          rest = rest > ticker->period_ns ? rest - ticker->period_ns : 0;
          pto_futex_wait (&ticker->state, AWAKE, pto_clock_ns () + ticker->period_ns);
          /* Acquire: pairs with pto_ticker_arm(). */
          if (atomic_load_explicit (&ticker->armed, memory_order_acquire) != 0
              && atomic_load_explicit (&ticker->state, memory_order_relaxed) != STOP)
            ticker->tick (ticker->data);
        }
      else
        {
          uint32_t awake = AWAKE;

          /* seq_cst: before the look at armed; pairs with pto_ticker_arm(). */
          if (!atomic_compare_exchange_strong_explicit (&ticker->state, &awake, PARKED,
                                                        memory_order_seq_cst, memory_order_relaxed))
            continue;
          /* Armed between the look above and PARKED: the owner may have seen AWAKE and not woken
           * anybody. */
          if (atomic_load_explicit (&ticker->armed, memory_order_seq_cst) == 0)
            pto_futex_wait (&ticker->state, PARKED, PTO_NEVER);
          awake = PARKED;
          atomic_compare_exchange_strong_explicit (&ticker->state, &awake, AWAKE,
                                                   memory_order_relaxed, memory_order_relaxed);
        }
    }
}

struct pto_ticker *
pto_ticker_new (const char *name, uint64_t period_ns, void (*tick) (void *data), void *data,
                char *error, size_t error_size)
{
  struct pto_ticker *ticker = calloc (1, sizeof *ticker);

  if (ticker == NULL)
    return NULL;
  ticker->period_ns = period_ns;
  ticker->tick = tick;
  ticker->data = data;
  if (pto_os_thread_start (&ticker->thread, name, NULL, main_loop, ticker, error, error_size) != 0)
    {
      free (ticker);
      return NULL;
    }
  return ticker;
}

void
pto_ticker_free (struct pto_ticker *ticker)
{
  if (ticker == NULL)
    return;
  atomic_store_explicit (&ticker->state, STOP, memory_order_relaxed);
  pto_futex_wake (&ticker->state);
  pto_os_thread_join (ticker->thread);
  free (ticker);
}

void
pto_ticker_arm (struct pto_ticker *ticker)
{
  uint32_t parked = PARKED;

  /* seq_cst: before the look at state; pairs with main_loop(). */
  atomic_store_explicit (&ticker->armed, 1, memory_order_seq_cst);
  if (atomic_load_explicit (&ticker->state, memory_order_seq_cst) == PARKED
      && atomic_compare_exchange_strong_explicit (&ticker->state, &parked, AWAKE,
                                                  memory_order_relaxed, memory_order_relaxed))
    pto_futex_wake (&ticker->state);
}

void
pto_ticker_disarm (struct pto_ticker *ticker)
{
  /* Relaxed: a tick may be under way, or begin that looked before. */
  atomic_store_explicit (&ticker->armed, 0, memory_order_relaxed);
}
