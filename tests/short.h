/* short.h: how much less is done where everything takes long?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * PTO_TEST_SHORT is set in an emulator and under valgrind: programs take 10 to 50 times as long
 * there.
 */
#pragma once

#include <glib.h>

#define RUN_SHORT (g_getenv ("PTO_TEST_SHORT") != NULL)
/* For repetitions. */
#define SCALE_SHORT(n) (RUN_SHORT ? (n) / 20 : (n))
/* Are there as many threads as before? In an emulator a joined thread is listed for a while, so it
 * may have been counted before. */
#define SAME_THREADS(now, before) (RUN_SHORT ? (now) <= (before) : (now) == (before))
