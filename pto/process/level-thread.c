/* level-thread.c: who looks after a level's children while nobody runs anything?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-thread.h"

#include "exec/os-thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#define MS UINT64_C (1000000)
#define TICK_SLOW_NS (100 * MS)
#define TICK_FAST_NS (10 * MS)
#define TICK_MIN_NS (5 * MS)
/* Looks in the shortest of the time limits. */
#define TICKS 4u

static uint64_t
least (uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

bool
pto_keeper_init (struct pto_keeper *keeper, const struct pto_child_limits *limits)
{
  uint32_t n = keeper->family->n_children;
  uint64_t shortest = least (TICK_SLOW_NS * TICKS,
                             least (limits->task_ns, least (limits->stop_ns, limits->start_ns)));

  keeper->tick_ns = shortest / TICKS > TICK_MIN_NS ? shortest / TICKS : TICK_MIN_NS;
  atomic_init (&keeper->pace, n > 0 ? PTO_PACE_SLOW : PTO_PACE_IDLE);
  atomic_init (&keeper->resting, PTO_PACE_SLOW);
  keeper->watched = calloc (1 + 2 * (size_t) n, sizeof *keeper->watched);
  return keeper->watched != NULL;
}

void
pto_keeper_clear (struct pto_keeper *keeper)
{
  free (keeper->watched);
}

void
pto_keeper_set_pace (void *data, enum pto_pace pace)
{
  struct pto_keeper *keeper = data;

  if (pace == PTO_PACE_IDLE)
    {
      /* Relaxed: who sees it late ticks once more. */
      pto_store_relaxed (&keeper->pace, (uint32_t) pace);
      return;
    }
  pto_store_seq_cst (&keeper->pace, (uint32_t) pace);
  if (pto_load_seq_cst (&keeper->resting) < (uint32_t) pace)
    eventfd_write (keeper->event, 1);
}

static void
keeper_main (void *data)
{
  struct pto_keeper *keeper = data;
  uint64_t ticked = pto_wall_clock ();
  uint32_t settled = PTO_PACE_SLOW;

  while (pto_load_acquire (&keeper->stop) == 0)
    {
      /* Relaxed: the look behind resting is the one that counts. */
      uint32_t pace = pto_load_relaxed (&keeper->pace);
      uint64_t now = pto_wall_clock ();
      uint64_t period;

      if (pace > settled)
        {
          /* What was before is nothing that anybody has been waiting for. */
          ticked = now;
          settled = pace;
        }
      period = settled == PTO_PACE_FAST ? TICK_FAST_NS : keeper->tick_ns;
      if (now - ticked >= period)
        {
          if (pace != PTO_PACE_IDLE)
            {
              pto_family_look_who_is_stopped (keeper->family);
              /* Twice the period at most: a machine, or a process, that did not run did not wait.
               */
              pto_pool_tick (keeper->pool, least (now - ticked, 2 * period));
            }
          ticked = now;
          /* Only after a period in which nothing was asked of it: arming is one store till then. */
          settled = pace;
          period = settled == PTO_PACE_FAST ? TICK_FAST_NS : keeper->tick_ns;
        }
      pto_store_seq_cst (&keeper->resting, settled);
      pto_exec_keep (keeper->exec);
      keeper->watched[0] = (struct pollfd){ .fd = keeper->event, .events = POLLIN };
      pto_family_watch (keeper->family, keeper->watched + 1);
      /* Once more: the event that came with it may have been read by now. */
      if (pto_load_seq_cst (&keeper->pace) > settled || pto_load_acquire (&keeper->stop) != 0)
        continue;
      poll (keeper->watched, 1 + 2 * (nfds_t) keeper->family->n_children,
            settled == PTO_PACE_IDLE ? -1 : (int) ((ticked + period - now) / MS + 1));
      pto_family_look (keeper->family, keeper->watched + 1, &keeper->words);
    }
}

int
pto_keeper_start (struct pto_keeper *keeper, char *error, size_t error_size)
{
  int result;

  /* Where it is refused the keeper would hear of nothing. */
  if (poll (NULL, 0, 0) < 0 && errno != EINTR)
    {
      snprintf (error, error_size, "poll: %s", strerror (errno));
      return -1;
    }
  result = pto_os_thread_start (&keeper->thread, "pto-keeper", NULL, keeper_main, keeper, error,
                                error_size);
  keeper->has_thread = result == 0;
  return result;
}

void
pto_keeper_stop (struct pto_keeper *keeper)
{
  if (!keeper->has_thread)
    return;
  pto_store_release (&keeper->stop, 1);
  eventfd_write (keeper->event, 1);
  pto_os_thread_join (keeper->thread);
  keeper->has_thread = false;
}
