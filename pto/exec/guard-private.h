/* guard-private.h: what do threads and processes owe to guarded calls?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto_exec.h"

#include <signal.h>

struct pto_thread;

/* What pto_guard_registers_call() gives beside 0: returned. */
enum
{
  PTO_UNWOUND_BY_JUMP = 1, /* given up */
  PTO_UNWOUND_BY_EXCEPTION = 2,
  PTO_UNWOUND_BY_FORCE = 3 /* the thread ends */
};

/* Where of the registers it leaves what unwound. */
#define PTO_GUARD_EXCEPTION 22
#ifdef __x86_64__
/* Where it finds the control words of the caller; 0: they are to be saved. */
#define PTO_GUARD_WORDS 8
#endif
int pto_guard_registers_call (void **registers, void (*fn) (int64_t *), int64_t *args);

/* A number that changes when signal masks and alternate stacks are to be looked at again: a thread
 * that has another one does so before its next guarded call. W: pto_guard_refresh(); R: every
 * guarded call, relaxed: nothing is passed on by it. */
extern _Atomic uint32_t pto_guard_epoch;

/* The thread's id, signal mask and alternate stack are as guarded calls need them. Gives the mask
 * from before. */
sigset_t pto_thread_prepare (struct pto_thread *thread);
/* The signals that faults and the interrupt come as. */
void pto_guard_signals (sigset_t *set);
/* Takes the faults and the interrupt out of a set of signals to block. */
void pto_guard_unblock (sigset_t *set);
/* In the child of a fork, while it has one thread, all signals blocked: nobody uses guarded calls
 * yet, the handlers are those from before them, and the thread is no actor. */
void pto_guard_after_fork (void);

/* Called by foreign code: gives the guarded call that it is in up, with what as the reason. Returns
 * when there is none. */
void pto_guard_leave (const char *what);
/* Is the calling thread in a guarded call? */
bool pto_guard_is_inside (void);
/* In the child of a fork that foreign code made, while its guard is paused: the process ends when
 * the call does. What the code does until then is its own affair, also a crash. */
void pto_guard_end_with_call (struct pto_guard *guard);

/* What it takes to ask an exception what it says. */
struct pto_unwound
{
  void *exception;
  void *(*begin_catch) (void *exception);
  void (*end_catch) (void);
  const void *(*current_type) (void);
  char *(*demangle) (const char *name, char *buffer, size_t *size, int *status);
  const void *base; /* std::type_info of std::exception */
  char *text;
  size_t size;
};
typedef void (*pto_guard_describer) (int64_t *unwound);

/* Gives the foreign code that writes what the exception says into text and lets go of it, or NULL
 * when text says all that is known. */
pto_guard_describer pto_guard_describe (void *exception, struct pto_unwound *unwound, char *text,
                                        size_t size);
