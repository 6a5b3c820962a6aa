/* foreign.h: what is done to shared objects that hold foreign code?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of an object that dlopen() gave: what its code calls to end its thread or the process, or to
 * change how signals are handled, comes to the engine, which makes a fault of it or leaves out what
 * guarded calls rest on. Outside of guarded calls these do what they always do. Any thread, before
 * the code runs. */
void pto_foreign_adopt (void *module);
/* After a run: signal dispositions that foreign code has changed are put back. Any thread. */
void pto_foreign_put_back (void);
/* Calls foreign code of this thread outside of any run: signal mask and dispositions are as before
 * when it is over. false: it did not return; why says what it did, to go on "it ...". Any thread.
 */
bool pto_foreign_call (void (*fn) (void *data), void *data, char *why, size_t size);
/* Calls code of the program itself: an exception of C++ or the end of the thread does not leave it;
 * all else it does is its own affair. false: it did not return; why says what it did, to go on
 * "it ...". Any thread. */
bool pto_foreign_catch (void (*fn) (void *data), void *data, char *why, size_t size);
