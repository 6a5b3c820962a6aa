/* pto-types.h: which types and enumerations does every part of the library share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

#include "api/pto_limits.h"

#include "pto-macros.h"

G_BEGIN_DECLS

typedef struct _PtoBuffer PtoBuffer;
typedef struct _PtoCallConfig PtoCallConfig;
typedef struct _PtoCallable PtoCallable;
typedef struct _PtoCallableHandle PtoCallableHandle;
typedef struct _PtoGraph PtoGraph;
typedef struct _PtoOrchestrator PtoOrchestrator;
typedef struct _PtoPlatform PtoPlatform;
typedef struct _PtoRunStatistics PtoRunStatistics;
typedef struct _PtoTaskArgs PtoTaskArgs;
typedef struct _PtoTensor PtoTensor;
typedef struct _PtoTrace PtoTrace;
typedef struct _PtoWorker PtoWorker;

/**
 * PtoCoreType:
 * @PTO_CORE_AIC: a cube core: matrix multiplication
 * @PTO_CORE_AIV: a vector core
 *
 * Where a kernel runs. The values are those of the orchestration interface.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_CORE_AIC = 0,
  PTO_CORE_AIV = 1
} PtoCoreType;

/**
 * PtoBackend:
 * @PTO_BACKEND_PAR: fibers on a few threads, wall clock: for speed
 * @PTO_BACKEND_DET: one thread, seeded choices, virtual clock: for reproducible runs
 * @PTO_BACKEND_THREADS: one thread per simulated core: for debuggers
 *
 * How a worker executes its simulated chip; chosen by the parameter `backend`.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_BACKEND_PAR = 0,
  PTO_BACKEND_DET = 1,
  PTO_BACKEND_THREADS = 2
} PtoBackend;

/**
 * PtoDirection:
 * @PTO_DIRECTION_INPUT: a tensor that the task reads
 * @PTO_DIRECTION_OUTPUT: a tensor that the task writes; allocated at submit when it has no address
 * yet
 * @PTO_DIRECTION_INOUT: a tensor that the task reads, then writes
 * @PTO_DIRECTION_OUTPUT_EXISTING: a tensor in existing memory that the task writes
 * @PTO_DIRECTION_NO_DEP: a tensor that is passed on and takes no part in dependencies
 * @PTO_DIRECTION_SCALAR: no tensor: a number, passed by value
 * @PTO_DIRECTION_COMMUTATIVE: a tensor that the task updates, one task at a time, in any order with
 * others that say so of exactly this part of memory
 * @PTO_DIRECTION_SCRATCH: memory for the task alone, of the type and shape of a tensor that has
 * none; its blocks have one piece together, with whatever that held
 * @PTO_DIRECTION_REDUCTION: a tensor that the task reduces into, at the same time as others that do
 * so in the same way: each updates a copy ([method@Pto.TaskArgs.add_reduction])
 *
 * The tag of a task's argument. The runtime finds the dependencies between tasks from the tags.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_DIRECTION_INPUT = 0,
  PTO_DIRECTION_OUTPUT = 1,
  PTO_DIRECTION_INOUT = 2,
  PTO_DIRECTION_OUTPUT_EXISTING = 3,
  PTO_DIRECTION_NO_DEP = 4,
  PTO_DIRECTION_SCALAR = 5,
  PTO_DIRECTION_COMMUTATIVE = 6,
  PTO_DIRECTION_SCRATCH = 7,
  PTO_DIRECTION_REDUCTION = 8
} PtoDirection;

/**
 * PtoReduction:
 * @PTO_REDUCTION_SUM: what is added; integers wrap around
 * @PTO_REDUCTION_PROD: what is multiplied; integers wrap around
 * @PTO_REDUCTION_MIN: the smallest; what is no number stays none
 * @PTO_REDUCTION_MAX: the largest; what is no number stays none
 *
 * An operator that every chip has for what tasks reduce, element by element: of integers and of
 * float64, float32, float16 and bfloat16.
 *
 * Source: the operators of MPI and OpenMP.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_REDUCTION_SUM = 0,
  PTO_REDUCTION_PROD = 1,
  PTO_REDUCTION_MIN = 2,
  PTO_REDUCTION_MAX = 3
} PtoReduction;

/**
 * PtoScalarKind:
 * @PTO_SCALAR_KIND_UNSIGNED: an integer of 64 bits without a sign
 * @PTO_SCALAR_KIND_SIGNED: an integer of 64 bits with a sign
 * @PTO_SCALAR_KIND_FLOAT: a number that kernels, and orchestrations in shared objects, get as the
 * bits of a `float`; functions get the number as it was given
 * @PTO_SCALAR_KIND_DOUBLE: a number that all get as a `double`
 *
 * What a scalar argument is.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_SCALAR_KIND_UNSIGNED = 0,
  PTO_SCALAR_KIND_SIGNED = 1,
  PTO_SCALAR_KIND_FLOAT = 2,
  PTO_SCALAR_KIND_DOUBLE = 3
} PtoScalarKind;

/**
 * PtoCallableKind:
 * @PTO_CALLABLE_KERNEL: a kernel: a function that runs on a core
 * @PTO_CALLABLE_CHIP: an orchestration with the kernels that it submits, for a chip
 * @PTO_CALLABLE_SUB: a function of its arguments, for a SUB worker
 * @PTO_CALLABLE_ORCHESTRATION: a function that submits tasks, for a worker of level 3 or up
 *
 * What a [class@Pto.Callable] is.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_CALLABLE_KERNEL = 0,
  PTO_CALLABLE_CHIP = 1,
  PTO_CALLABLE_SUB = 2,
  PTO_CALLABLE_ORCHESTRATION = 3
} PtoCallableKind;

/**
 * PtoCallableSource:
 * @PTO_CALLABLE_SOURCE_OBJECT: shared objects, built from sources or given as they are
 * @PTO_CALLABLE_SOURCE_SYMBOL: a function of a library, `library:symbol`
 * @PTO_CALLABLE_SOURCE_CLOSURE: a function of this process; children have it if they were forked
 * later
 * @PTO_CALLABLE_SOURCE_IMPORT: a function that an interpreter imports, `module:qualname`
 *
 * Where a [class@Pto.Callable] comes from.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_CALLABLE_SOURCE_OBJECT = 0,
  PTO_CALLABLE_SOURCE_SYMBOL = 1,
  PTO_CALLABLE_SOURCE_CLOSURE = 2,
  PTO_CALLABLE_SOURCE_IMPORT = 3
} PtoCallableSource;

/**
 * PtoTargetNamespace:
 * @PTO_TARGET_LOCAL_CHIP: chips of this host
 * @PTO_TARGET_LOCAL_PYTHON: SUB workers and workers of level 3 and up of this host
 * @PTO_TARGET_REMOTE_TASK_DISPATCHER: workers that share no memory with this process
 *
 * Who resolves the digest of a registered callable. Source: seed 001 section 2.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_TARGET_LOCAL_CHIP = 0,
  PTO_TARGET_LOCAL_PYTHON = 1,
  PTO_TARGET_REMOTE_TASK_DISPATCHER = 2
} PtoTargetNamespace;

/**
 * PtoChildMode:
 * @PTO_CHILD_MODE_PROCESS: each child is a process: it can crash or hang alone
 * @PTO_CHILD_MODE_THREAD: each child is a thread of this process
 *
 * How the children of a worker run.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_CHILD_MODE_PROCESS = 0,
  PTO_CHILD_MODE_THREAD = 1
} PtoChildMode;

/**
 * PtoRestart:
 * @PTO_RESTART_NEVER: a child that has died stays away until the worker is closed
 * @PTO_RESTART_ON_FAILURE: it is started again; the task it had has failed all the same
 *
 * What follows when a child process has died. A child that was ended because its run was cancelled
 * is always started again.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_RESTART_NEVER = 0,
  PTO_RESTART_ON_FAILURE = 1
} PtoRestart;

/**
 * PtoWorkerState:
 * @PTO_WORKER_STATE_NEW: parameters can be set, nothing has been started
 * @PTO_WORKER_STATE_READY: started, ready to run
 * @PTO_WORKER_STATE_CLOSED: closed; only its properties can be read
 *
 * The life of a [class@Pto.Worker].
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_WORKER_STATE_NEW = 0,
  PTO_WORKER_STATE_READY = 1,
  PTO_WORKER_STATE_CLOSED = 2
} PtoWorkerState;

/* The enumerators are defined once, by the header that kernels include and that knows no GLib. What
 * follows is for the tools that read this file: they do not follow includes. */
#ifndef __GI_SCANNER__
#include "api/tensor.h"
typedef enum pto_dtype PtoDtype;
#else
/**
 * PtoDtype:
 * @PTO_DTYPE_FLOAT32: 32-bit floating point
 * @PTO_DTYPE_FLOAT16: 16-bit floating point
 * @PTO_DTYPE_BFLOAT16: the upper half of a 32-bit floating point number
 * @PTO_DTYPE_INT8: signed, 8 bits
 * @PTO_DTYPE_INT16: signed, 16 bits
 * @PTO_DTYPE_INT32: signed, 32 bits
 * @PTO_DTYPE_INT64: signed, 64 bits
 * @PTO_DTYPE_UINT8: unsigned, 8 bits
 * @PTO_DTYPE_UINT16: unsigned, 16 bits
 * @PTO_DTYPE_UINT32: unsigned, 32 bits
 * @PTO_DTYPE_UINT64: unsigned, 64 bits
 * @PTO_DTYPE_BOOL: a truth value in one byte
 * @PTO_DTYPE_FLOAT64: 64-bit floating point
 * @PTO_DTYPE_FLOAT8_E4M3FN: 8-bit floating point, 4 bits of exponent, without infinities
 * @PTO_DTYPE_FLOAT8_E5M2: 8-bit floating point, 5 bits of exponent
 * @PTO_DTYPE_INT4: signed, 4 bits, in the lower half of a byte of its own; two in one byte are
 * elements of `UINT8` to libpto
 *
 * The type of a tensor's elements.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_DTYPE_FLOAT32 = 0,
  PTO_DTYPE_FLOAT16 = 1,
  PTO_DTYPE_BFLOAT16 = 2,
  PTO_DTYPE_INT8 = 3,
  PTO_DTYPE_INT16 = 4,
  PTO_DTYPE_INT32 = 5,
  PTO_DTYPE_INT64 = 6,
  PTO_DTYPE_UINT8 = 7,
  PTO_DTYPE_UINT16 = 8,
  PTO_DTYPE_UINT32 = 9,
  PTO_DTYPE_UINT64 = 10,
  PTO_DTYPE_BOOL = 11,
  PTO_DTYPE_FLOAT64 = 12,
  PTO_DTYPE_FLOAT8_E4M3FN = 13,
  PTO_DTYPE_FLOAT8_E5M2 = 14,
  PTO_DTYPE_INT4 = 15
} PtoDtype;
#endif

PTO_AVAILABLE_IN_0_1
guint pto_dtype_get_size (PtoDtype dtype);

G_END_DECLS
