/* bench-cpu.h: how much CPU time did the threads of a process use?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Long enough for threads that have nothing to do to go to sleep. */
#define BENCH_SETTLE_US 200000u
/* For so long they are watched. */
#define BENCH_IDLE_US 500000u

/* Adds the CPU time of all its threads but the caller's, which is busy asking. false: the kernel
 * does not tell, and standard error says so. */
bool bench_add_cpu_ns (pid_t pid, uint64_t *ns);
