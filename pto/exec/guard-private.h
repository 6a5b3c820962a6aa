/* guard-private.h: what do threads and processes owe to guarded calls?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <signal.h>

/* Takes the faults and the interrupt out of a set of signals to block. */
void pto_guard_unblock (sigset_t *set);
/* In the child of a fork, while it has one thread, all signals blocked: nobody uses guarded calls
 * yet, the handlers are those from before them, and the thread is no actor. */
void pto_guard_after_fork (void);
