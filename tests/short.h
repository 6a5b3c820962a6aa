/* short.h: how much less is done where everything takes long?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * PTO_TEST_SHORT is set in an emulator, under valgrind and with a sanitizer: programs take 5 to 50
 * times as long there.
 */
#pragma once

#include <glib.h>

/* The one thread of the back end det has nothing for the thread sanitizer to see. */
#ifdef __SANITIZE_THREAD__
#define SHOWS_NOTHING(backend) ((backend) == PTO_BACKEND_DET)
#else
#define SHOWS_NOTHING(backend) false
#endif

#define RUN_SHORT (g_getenv ("PTO_TEST_SHORT") != NULL)
/* For repetitions. */
#define SCALE_SHORT(n) (RUN_SHORT ? (n) / 20 : (n))
/* Are there as many threads as before? In an emulator a joined thread is listed for a while, so it
 * may have been counted before. */
#define SAME_THREADS(now, before) (RUN_SHORT ? (now) <= (before) : (now) == (before))
