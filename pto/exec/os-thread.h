/* os-thread.h: who creates and ends threads of the operating system?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The one place. Threads made here have a name, block every signal except the faults and the
 * interrupt of guarded calls (the process's signals belong to its own threads), and have an
 * alternate signal stack.
 */
#pragma once

#include "fiber.h"

#include <pthread.h>

/* Runs fn(arg) on the given stack, or on one of the system's choice when stack is NULL. */
int pto_os_thread_start (pthread_t *thread, const char *name, const struct pto_stack *stack,
                         void (*fn) (void *arg), void *arg, char *error, size_t error_size);
void pto_os_thread_join (pthread_t thread);

/* Runs fn(arg), foreign code that may end its thread: pthread_exit(), or pthread_cancel() of
 * itself. false: it has; the thread is here all the same, as if fn had been left with longjmp(). On
 * a thread's own stack. */
bool pto_os_thread_survives (void (*fn) (void *arg), void *arg);
