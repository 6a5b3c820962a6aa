/* pto-error.h: how is a failure told to the caller?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/**
 * PTO_ERROR:
 *
 * The domain of the library's errors; codes are in [error@Pto.Error].
 *
 * Since: 0.1
 */
#define PTO_ERROR (pto_error_quark ())

/**
 * PtoError:
 * @PTO_ERROR_SCOPE_DEADLOCK: tasks of an open scope hold every slot of a task ring
 * @PTO_ERROR_HEAP_RING: a heap ring can not give a task its outputs
 * @PTO_ERROR_TASK_RING: a task ring has no free slot
 * @PTO_ERROR_DEP_POOL: a dependency pool is used up
 * @PTO_ERROR_INVALID_ARGS: an argument of a task, a parameter or a call is refused
 * @PTO_ERROR_SYNC_START: a synchronised start can not be had
 * @PTO_ERROR_TENSOR_WAIT: waiting for a tensor came to nothing
 * @PTO_ERROR_EXPLICIT: the orchestration itself failed the run
 * @PTO_ERROR_SCOPE_OVERFLOW: scopes are nested too deeply or not balanced
 * @PTO_ERROR_MAP_OVERFLOW: the TensorMap is used up
 * @PTO_ERROR_SCHEDULER_TIMEOUT: nothing has made progress for the time set by the parameter
 * `timeout`
 * @PTO_ERROR_KERNEL_FAULT: a kernel or an orchestration crashed, threw an exception or ended its
 * thread or the process
 * @PTO_ERROR_KERNEL_HANG: a kernel or an orchestration did not return in time
 * @PTO_ERROR_OUT_OF_BOUNDS: a kernel wrote past one of its outputs
 * @PTO_ERROR_READY_QUEUE: a ready queue failed
 * @PTO_ERROR_NO_MEMORY: memory is not to be had
 * @PTO_ERROR_SYSTEM: the operating system refused something
 * @PTO_ERROR_ACCESS: in a run whose accesses are checked: a task touched bytes that its arguments
 * do not let it touch, or two tasks in no order touched the same ones
 * @PTO_ERROR_COMPILE: the compiler refused a source, or can not be run
 * @PTO_ERROR_LOAD: a shared object can not be loaded, or does not export what it must
 * @PTO_ERROR_CLOSED: the worker is closed, or the run of an orchestrator is over
 * @PTO_ERROR_NOT_FOUND: there is nothing of that name, number or path
 * @PTO_ERROR_NOT_SUPPORTED: what was asked for does not exist or has no effect in this version
 * @PTO_ERROR_BUSY: the worker is in use in a way that this call could wait for without end
 * @PTO_ERROR_WRONG_THREAD: an orchestrator was used on another thread than its orchestration
 * function's
 * @PTO_ERROR_RUN_FAILED: the run has failed already; its first error is reported by the call that
 * runs it
 * @PTO_ERROR_TASK_FAILED: the function of a task failed and gave no error of its own
 * @PTO_ERROR_WORKER_LOST: a child died, was stopped or did not answer
 * @PTO_ERROR_TAMPERED: contents do not hash to what they claim
 * @PTO_ERROR_NOT_SHARED: a tensor lies where children would see a copy, or nothing
 * @PTO_ERROR_INTERNAL: the runtime gave a code that this library does not know
 *
 * What went wrong. Codes up to 108 are those of the runtime itself. What was cancelled fails with
 * %G_IO_ERROR_CANCELLED everywhere.
 *
 * A message is one sentence that says what happened, to which file, task or ring, and which knob to
 * turn; only %PTO_ERROR_COMPILE is followed by the compiler's own text on further lines, and
 * %PTO_ERROR_ACCESS by what else was found.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_ERROR_SCOPE_DEADLOCK = 1,
  PTO_ERROR_HEAP_RING = 2,
  PTO_ERROR_TASK_RING = 3,
  PTO_ERROR_DEP_POOL = 4,
  PTO_ERROR_INVALID_ARGS = 5,
  PTO_ERROR_SYNC_START = 7,
  PTO_ERROR_TENSOR_WAIT = 8,
  PTO_ERROR_EXPLICIT = 9,
  PTO_ERROR_SCOPE_OVERFLOW = 10,
  PTO_ERROR_MAP_OVERFLOW = 11,
  PTO_ERROR_SCHEDULER_TIMEOUT = 100,
  PTO_ERROR_KERNEL_FAULT = 101,
  PTO_ERROR_KERNEL_HANG = 102,
  PTO_ERROR_OUT_OF_BOUNDS = 103,
  PTO_ERROR_READY_QUEUE = 104,
  PTO_ERROR_NO_MEMORY = 105,
  PTO_ERROR_SYSTEM = 107,
  PTO_ERROR_ACCESS = 108,
  PTO_ERROR_COMPILE = 200,
  PTO_ERROR_LOAD = 201,
  PTO_ERROR_CLOSED = 202,
  PTO_ERROR_NOT_FOUND = 204,
  PTO_ERROR_NOT_SUPPORTED = 205,
  PTO_ERROR_BUSY = 206,
  PTO_ERROR_WRONG_THREAD = 207,
  PTO_ERROR_RUN_FAILED = 208,
  PTO_ERROR_INTERNAL = 209,
  PTO_ERROR_TASK_FAILED = 210,
  PTO_ERROR_WORKER_LOST = 211,
  PTO_ERROR_TAMPERED = 212,
  PTO_ERROR_NOT_SHARED = 213
} PtoError;

PTO_AVAILABLE_IN_0_1
GQuark pto_error_quark (void);

G_END_DECLS
