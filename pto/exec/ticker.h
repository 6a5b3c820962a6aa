/* ticker.h: who looks after runs that do not end by themselves?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A thread that calls a function every period while it is armed, on the wall clock whatever the
 * back end: a kernel that never returns stops the virtual clock, too. Not armed, it parks and uses
 * no CPU. Arming costs one store as long as the thread has not parked, which it does one period
 * after the last disarming.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pto_ticker;

/* NULL with a sentence in error. */
struct pto_ticker *pto_ticker_new (const char *name, uint64_t period_ns, void (*tick) (void *data),
                                   void *data, char *error, size_t error_size);
/* Waits until a tick that is under way has returned. */
void pto_ticker_free (struct pto_ticker *ticker);
/* Any thread; one owner arms and disarms. */
void pto_ticker_arm (struct pto_ticker *ticker);
void pto_ticker_disarm (struct pto_ticker *ticker);
