/* bench-level.h: what do the benchmarks of workers with children share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "bench-main.h"

/* Lets a child that is about to sleep do so, and its CPU behind it: some look for work for a while
 * before they sleep themselves. The own CPU stays awake. */
static inline void
bench_level_settle (void)
{
  uint64_t end = bench_now () + 2000000;

  while (bench_now () < end)
    ;
}

/* number: 0, both sides stay awake; 1, the child sleeps when it is asked. */
bool bench_level_mailbox (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                          bool brief);

/* A large tensor to a remote worker of this machine and back (number 0; by UCX: 3 over TCP, 4
 * through shared memory), small tasks in a chain (1), or independent ones to several workers (2);
 * the same bytes through a connection of that kind (0, 1). */
bool bench_level_remote (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief);
bool bench_level_stream (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief);
/* A call of a small task's size over GDBus alone. */
bool bench_level_control (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                          bool brief);
