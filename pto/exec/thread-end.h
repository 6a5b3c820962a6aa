/* thread-end.h: what if a destructor of foreign code crashes or hangs while its thread ends?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Destructors of thread-local objects and of thread-specific data are called by the C library when
 * the function of the thread has returned, outside of all guarded calls. A fault there ends the
 * thread alone, by a system call: the destructors that are left do not run.
 */
#pragma once

#include "pto-exec.h"

#include <pthread.h>
#include <signal.h>

#define PTO_THREAD_END_CALLERS 16u

struct pto_thread;

/* Of one thread. W: the thread until it has ended; R: the joiner after that, which the kernel
 * orders. wanted: W: the joiner; R: the thread's handler; relaxed, since the handler of the signal
 * that is sent after it sees it, and nothing else goes with it. */
struct pto_thread_end
{
  _Atomic uint32_t wanted; /* 0; 1: is to end; 2: also inside the allocator or the loader */
  struct pto_fault fault;  /* PTO_FAULT_NONE: it has ended by itself */
  uint32_t n_callers;
  uintptr_t callers[PTO_THREAD_END_CALLERS]; /* the code that was cut off, innermost first */
  char text[64];                             /* what it called, of PTO_FAULT_ENDED */
  void *alternate;                           /* its alternate stack, which the joiner unmaps */
};

/* By the thread, last: from here on a fault or an interrupt ends it. */
void pto_thread_end_begin (struct pto_thread_end *end);
/* Waits for its end. After patience ns it is interrupted, after as long again also inside the
 * allocator or the loader. *waited: ns that threads have been waited for in vain, of all that end
 * together. false: it does not hear that either, and is left alone with what it uses. */
bool pto_thread_end_join (pthread_t thread, int tid, struct pto_thread_end *end, uint64_t patience,
                          uint64_t *waited);
/* The file of the code that was cut off, and where it begins in memory. NULL: not known. */
const char *pto_thread_end_find_file (const struct pto_thread_end *end, const void **base);

/* --- for guarded-call.c --- */

/* By the handler of a fault or the interrupt, in a thread that has begun to end. Returns where the
 * thread is not to end yet. */
void pto_thread_end_signal (struct pto_thread *thread, bool is_interrupt, int signo,
                            const siginfo_t *info, uintptr_t pc, uintptr_t sp);
/* As pto_guard_leave(): the thread ends here. */
_Noreturn void pto_thread_end_leave (struct pto_thread *thread, const char *what);
