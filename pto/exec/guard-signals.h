/* guard-signals.h: which signals are for guarded calls, and on which stack does a thread take them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pto_thread;

/* A number that changes when signal masks and alternate stacks are to be looked at again: a thread
 * that has another one does so before its next guarded call. W: pto_guard_refresh(); R: every
 * guarded call, relaxed: nothing is passed on by it. */
extern _Atomic uint32_t pto_guard_epoch __attribute__ ((visibility ("hidden")));

/* The alternate stack that was made for the thread, from now on the caller's, so that the thread
 * has it to its very end; NULL: none was. To be unmapped when the thread has ended. */
void *pto_thread_keep_alternate (struct pto_thread *thread);
void pto_thread_unmap_alternate (void *alternate);
/* How many signals faults come as. */
#define PTO_GUARD_FAULTS 7u
/* The signal of the interrupt. */
int pto_guard_interrupt_number (void);
/* Returns one of a fault, or, of PTO_GUARD_FAULTS, that of the interrupt. */
int pto_guard_get_signal (size_t index);
/* The signals that faults and the interrupt come as. */
void pto_guard_signals (sigset_t *set);
/* Takes the faults and the interrupt out of a set of signals to block. */
void pto_guard_unblock (sigset_t *set);
