/* pto-lock.c: what guards what belongs to the whole process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-lock-private.h"

#include <pthread.h>

static GMutex locks[PTO_N_LOCKS];
static pthread_once_t is_watching = PTHREAD_ONCE_INIT;
static guint forks; /* W: the only thread of a new process */

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
begin_copy (void)
{
  forks++;
  after_fork ();
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, after_fork, begin_copy);
}

void
pto_lock (PtoLock lock)
{
  pthread_once (&is_watching, watch_forks);
  g_mutex_lock (&locks[lock]);
}

void
pto_unlock (PtoLock lock)
{
  g_mutex_unlock (&locks[lock]);
}

guint
pto_count_forks (void)
{
  pthread_once (&is_watching, watch_forks);
  return forks;
}
