/* sent-signals.h: what becomes of a signal that guarded code has sent its own thread?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct pto_guard;

/* Writes "raise(SIGTERM)". */
void pto_sent_describe (const char *function, int signo, char *what, size_t size);
/* Returns whether the signal would end the program by now. */
bool pto_sent_ends_program (int signo);
/* Takes a signal that is pending for the calling thread. Gives back one that is for the process,
 * which comes after those for the thread. Returns false if none was for the thread. */
bool pto_sent_take_one (int signo);
/* At the end of a guarded call: takes the signals that it has sent its thread while they were
 * blocked. Returns true if one of them ends a program and fails is set; guard->text says which. The
 * thread. */
bool pto_sent_take (struct pto_guard *guard, bool fails);
