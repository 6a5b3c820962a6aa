/* own-thread.h: how does foreign code keep its thread-local memory while its actor goes from thread
 * to thread?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A fiber goes on on another thread after each wait (par), or shares its thread with all others
 * (det). Code that keeps something for each thread, other than variables that need no thread
 * (libc-hooks.h), is called on a thread that belongs to its actor alone. The thread that carries
 * the actor waits meanwhile, so nothing runs at the same time that would not run without it, and on
 * det nothing is chosen in another order. What such code asks of the engine is done by the actor,
 * where it is.
 */
#pragma once

#include "pto-exec.h"

struct pto_own_thread;

/* name: of the thread, kept. stack: bytes. NULL: a sentence is in error. */
struct pto_own_thread *pto_own_thread_new (const char *name, size_t stack, char *error,
                                           size_t error_size);
/* Before the first call whose number may be one that was used before. Not while it is called. */
void pto_own_thread_renew (struct pto_own_thread *own);
/* Keeps a copy of the name of the object that has the code, which is called next. Not while it is
 * called. */
void pto_own_thread_note (struct pto_own_thread *own, const void *code, const char *name);
/* Has it end, which calls the destructors of what foreign code keeps there. Not while it is called;
 * before pto_own_thread_free(). */
void pto_own_thread_end (struct pto_own_thread *own);
/* Waits for that, as pto_thread_end_join(). PTO_FAULT_NONE: the destructors are over. Otherwise why
 * says what one of them did; *is_left: the thread could not be ended, and stays. */
struct pto_fault pto_own_thread_free (struct pto_own_thread *own, uint64_t patience,
                                      uint64_t *waited, bool *is_left, char *why, size_t size);
/* Called by an actor within guarded, a call that is paused: calls fn(args) there, in a guarded call
 * of the same run that has the same number. NULL: it returned; otherwise what it did, and what
 * pto_guard_end() takes as the text. */
const struct pto_fault *pto_own_thread_call (struct pto_own_thread *own,
                                             const struct pto_guard *guarded,
                                             void (*fn) (int64_t *), int64_t *args,
                                             const char **text);
/* Called by code that is called there: has its actor call fn(data), which may wait. Where that call
 * is given up, so is the one that this is called in. */
void pto_own_thread_ask (struct pto_own_thread *own, void (*fn) (int64_t *), int64_t *data);
/* Is this the thread? */
bool pto_own_thread_is_here (const struct pto_own_thread *own);
int pto_own_thread_id (const struct pto_own_thread *own);
/* As pto_guard_interrupt(), of the call with that number, and pto_guard_is_put_off(); with force
 * also inside the allocator. Any thread. */
void pto_own_thread_interrupt (struct pto_own_thread *own, uint64_t call, bool force);
bool pto_own_thread_is_put_off (struct pto_own_thread *own, uint64_t call);
