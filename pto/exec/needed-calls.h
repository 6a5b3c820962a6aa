/* needed-calls.h: system calls without which no program with threads goes on.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>

#define PTO_REFUSAL_BYTES 128

/* Returns false if the system refuses a call that the C library needs: the library would crash or
 * wait for ever, and has no way to report the error. text: what to report, in English, since a
 * translation needs such calls. */
bool pto_needed_calls_are_there (char text[PTO_REFUSAL_BYTES]);

/* Returns 0 if the system gives this process a thread, or why not. GLib ends the program where that
 * fails for another reason than a lack of threads or memory. */
int pto_try_thread (void);
