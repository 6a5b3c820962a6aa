/* locks.h: what guards what belongs to the whole process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A fork waits for all of them, whatever other threads are about, so that in its copy what they
 * guard is whole and they can be taken. So each is held for a moment, never across a call of
 * foreign code, of the loader or of another program. But for the first nothing is locked under one
 * except what translations are under (common/text.c), which is innermost.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  PTO_LOCK_ANSWERING, /* an answer is made, read or printed; other locks are taken under it */
  PTO_LOCK_ANSWER,    /* does this process answer? */
  PTO_LOCK_CACHE,     /* the directory of a process that can write to no other */
  PTO_LOCK_CLOSURES,  /* closures by their bytes */
  PTO_LOCK_COMPILERS, /* what compilers say of themselves */
  PTO_LOCK_DEFAULTS,  /* how workers fork and import that were not told */
  PTO_LOCK_KERNELS,   /* which there are, and what they are compiled with */
  PTO_LOCK_MACHINES,  /* who can be asked what he does */
  PTO_LOCK_MODULES,   /* loaded shared objects */
  PTO_LOCK_SOURCES,   /* what callables were compiled from */
  PTO_LOCK_TASKS,     /* work for other threads */
  PTO_N_LOCKS
} PtoLock;

void pto_lock (PtoLock lock);
void pto_unlock (PtoLock lock);
/* For who takes it again and again: a fork that waits is let through first, for a moment. */
void pto_lock_after_forks (PtoLock lock);

/* How many forks made this process of the one that asked first: who has another number than before
 * is in a copy. Where the process was asked for would be a system call. */
guint pto_count_forks (void);

G_END_DECLS
