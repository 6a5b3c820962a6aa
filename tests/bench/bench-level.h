/* bench-level.h: what do the benchmarks of workers with children share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "bench-main.h"

#include <glib.h>

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

/* Of a large tensor there and back, or of a small task's call and its answer. */
struct bench_size
{
  uint64_t there;
  uint64_t back;
};
struct bench_size bench_level_size (bool is_bulk, bool brief);
/* Small tasks of a run. */
uint32_t bench_level_tasks (bool brief);

/* A large tensor to a remote worker of this machine and back (number 0; by UCX: 3 over TCP, 4
 * through shared memory; with TLS: 5), small tasks in a chain (1; with TLS: 6), or independent ones
 * to several workers (2); the same bytes through a connection of that kind (0, 1). */
bool bench_level_remote (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief);
bool bench_level_stream (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief);
/* The same with TLS alone (0, 1). */
bool bench_level_tls (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                      bool brief);
/* pto-remote that listens with TLS, what it takes to be let in there, and its address. */
struct bench_tls *bench_tls_begin (GVariantDict *options, const char **address, GError **error);
void bench_tls_end (struct bench_tls *tls);
/* A call of a small task's size over GDBus alone. */
bool bench_level_control (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                          bool brief);
/* The path of a function that remote workers load, and that does nothing. NULL: error. */
char *bench_level_find_nothing (GError **error);
/* An allreduce of tensors of so many bytes (number) over remote workers of this machine, and a task
 * of each before it: by the ranks of a job of MPI, or in the program. */
#define BENCH_BY_RANKS 1u
bool bench_level_job (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                      bool brief);
