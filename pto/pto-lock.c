/* pto-lock.c: what guards what belongs to the whole process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-lock-private.h"

#include <pthread.h>

static GMutex locks[PTO_N_LOCKS];

static void
before_fork (void)
{
  for (guint i = 0; i < PTO_N_LOCKS; i++)
    g_mutex_lock (&locks[i]);
}

static void
after_fork (void)
{
  for (guint i = 0; i < PTO_N_LOCKS; i++)
    g_mutex_unlock (&locks[i]);
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, after_fork, after_fork);
}

void
pto_lock (PtoLock lock)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, watch_forks);
  g_mutex_lock (&locks[lock]);
}

void
pto_unlock (PtoLock lock)
{
  g_mutex_unlock (&locks[lock]);
}
