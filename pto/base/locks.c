/* locks.c: what guards what belongs to the whole process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "locks.h"

#include "common/text.h"

#include <pthread.h>

static GMutex locks[PTO_N_LOCKS];
static guint forks;    /* W: the only thread of a new process */
static gint n_forking; /* threads that are about to; relaxed would do: a hint */

#define WAY_TRIES 20
#define WAY_PAUSE_US 50

static void
before_fork (void)
{
  g_atomic_int_inc (&n_forking);
  for (guint i = 0; i < PTO_N_LOCKS; i++)
    g_mutex_lock (&locks[i]);
}

static void
unlock_all (void)
{
  for (guint i = 0; i < PTO_N_LOCKS; i++)
    g_mutex_unlock (&locks[i]);
}

static void
after_fork (void)
{
  g_atomic_int_add (&n_forking, -1);
  unlock_all ();
}

static void
begin_copy (void)
{
  forks++;
  g_atomic_int_set (&n_forking, 0);
  unlock_all ();
}

/* A fork takes what was registered last first: these, and then the lock around translations, as
 * each function does that translates under one of them. While the library is loaded: a fork that
 * has begun calls none of what is registered during it. */
__attribute__ ((constructor)) static void
watch_forks (void)
{
  pto_text_bind ();
  pthread_atfork (before_fork, after_fork, begin_copy);
}

void
pto_lock (PtoLock lock)
{
  g_mutex_lock (&locks[lock]);
}

void
pto_lock_after_forks (PtoLock lock)
{
  for (guint i = 0; i < WAY_TRIES && g_atomic_int_get (&n_forking) > 0; i++)
    g_usleep (WAY_PAUSE_US);
  pto_lock (lock);
}

void
pto_unlock (PtoLock lock)
{
  g_mutex_unlock (&locks[lock]);
}

guint
pto_count_forks (void)
{
  return forks;
}
