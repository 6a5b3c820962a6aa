/* still.h: does nobody run who has nothing to do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

/* Waits for a stretch of STILL_MS in which no thread of n processes, but the caller, gets a
 * processor at all: however busy or slow the machine is, who has gone to sleep brings that about,
 * and who looks for work now and then never does. Ends the test where that does not come in
 * STILL_PATIENCE_S, and names the threads that go on. Where the kernel does not tell, or a
 * sanitizer has a thread of its own that wakes up, the test is marked as skipped.
 *
 * Returns: FALSE where nobody can tell. */
gboolean still_wait (const pid_t *processes, gsize n);

#define STILL_MS 500
#define STILL_PATIENCE_S 60
