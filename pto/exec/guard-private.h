/* guard-private.h: what do threads owe to guarded calls?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <signal.h>

/* Takes the faults and the interrupt out of a set of signals to block. */
void pto_guard_unblock (sigset_t *set);
