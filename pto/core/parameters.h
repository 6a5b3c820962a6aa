/* parameters.h: the knobs of a worker, by name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_limits.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTO_MAX_CLUSTERS 1024u
#define PTO_GUARD_DEFAULT 64u /* bytes behind every output */

enum pto_param
{
  PTO_PARAMETER_BACKEND,       /* par | det | threads (enum pto_backend) */
  PTO_PARAMETER_SEED,          /* of the det back end */
  PTO_PARAMETER_TASK_WINDOW,   /* slots of each task ring; power of two, >= 4 */
  PTO_PARAMETER_HEAP,          /* bytes of each heap ring; >= 1024 */
  PTO_PARAMETER_DEP_POOL,      /* edges of each dependency pool; >= 16 */
  PTO_PARAMETER_MAP_POOL,      /* nodes of the TensorMap; >= 16 */
  PTO_PARAMETER_HAZARDS,       /* "raw,waw,war" (PTO_HAZARD_* bits) */
  PTO_PARAMETER_READY_SHARDS,  /* ready queue shards per core type */
  PTO_PARAMETER_AICPU_THREADS, /* schedulers + 1 orchestrator; 0 = the platform's */
  PTO_PARAMETER_CLUSTERS,      /* 0 = the platform's */
  PTO_PARAMETER_CARRIERS,      /* par: threads beside the caller; 0 = CPUs - 1 */
  PTO_PARAMETER_TIMEOUT,       /* ms without any progress before a run is given up */
  PTO_PARAMETER_STACK,         /* bytes of a core's stack */
  /* bytes behind every output that a kernel must not write; 0 = unguarded */
  PTO_PARAMETER_GUARD,
  PTO_PARAMETER_TRACE,          /* record the run */
  PTO_PARAMETER_TRACE_LEVEL,    /* how much of it: enum pto_trace_level */
  PTO_PARAMETER_TRACE_RECORDS,  /* capacity of one trace buffer */
  PTO_PARAMETER_UTILIZATION,    /* time every kernel, for the busy times of the statistics */
  PTO_PARAMETER_TASK_TIMEOUT,   /* levels: ms of one task without a sign of life; 0 = no limit */
  PTO_PARAMETER_STOP_TIMEOUT,   /* levels: ms that a child may stand stopped; 0 = no limit */
  PTO_PARAMETER_ISOLATE,        /* the chip is a process of its own */
  PTO_PARAMETER_ARENA,          /* levels: bytes of address space for memory made after the start */
  PTO_PARAMETER_PIPE_DEPTH,     /* entries of a pipe between the cores of a cluster */
  PTO_PARAMETER_BLOCKED_NOTICE, /* ms of waiting for room until it is told; 0 = never */
  PTO_PARAMETER_RENAME,         /* outputs over contents that are still used get new memory */
  PTO_PARAMETER_BUILD_MODE,     /* 0: added tasks wait for the end of their scope */
  PTO_PARAMETER_JITTER,         /* det: kernels take up to so many percent longer */
  PTO_PARAMETER_CHECK,          /* none | access (enum pto_check_kind) */
  /* 1: runs have a schedule (forced-order-text.h), whose text whoever sets it has to keep; 0: they
   * have not
   */
  PTO_PARAMETER_SCHEDULE,
  PTO_PARAMETER_COSTS,          /* det: own | chip | cpu | virtual (enum pto_costs_of) */
  PTO_PARAMETER_REMOTE_PING,    /* remote workers: ms of silence after which one is asked */
  PTO_PARAMETER_REMOTE_SUSPECT, /* ms without an answer until it gets no task; 0 = never */
  PTO_PARAMETER_REMOTE_LEASE,   /* ms until it is lost, and its other end has ended; 0 = never */
  /* bytes from which on what a task writes is left there until it is needed here */
  PTO_PARAMETER_REMOTE_LEAVE,
  PTO_PARAMETER_RETRIES, /* levels: how often a lost task that may be is run again */
  PTO_N_PARAMETERS
};

/* What of a run is checked beside its errors. */
enum pto_check_kind
{
  PTO_CHECK_NOTHING,
  PTO_CHECK_ACCESS /* what kernels touch */
};

/* Whose times kernels take on the virtual clock: what they say themselves, or what was measured on
 * a clock (PtoClock, one behind). */
enum pto_costs_of
{
  PTO_COSTS_OWN,
  PTO_COSTS_OF_CHIP,
  PTO_COSTS_OF_CPU,
  PTO_COSTS_OF_VIRTUAL
};

/* Those that every ring has of its own. */
#define PTO_N_RING_PARAMETERS (PTO_PARAMETER_DEP_POOL - PTO_PARAMETER_TASK_WINDOW + 1)

struct pto_params
{
  uint32_t level;                    /* of the worker; from pto_params_init() */
  uint64_t values[PTO_N_PARAMETERS]; /* where rings differ, the largest */
  /* From PTO_PARAMETER_TASK_WINDOW on; 0: rings do not differ. */
  uint64_t of_rings[PTO_N_RING_PARAMETERS][PTO_N_RINGS];
};

/* The defaults of a worker of that level: from 3 on rings and pools are as large as the numbers of
 * their parts allow, so that memory ends first. */
void pto_params_init (struct pto_params *params, uint32_t level);
/* Takes the seeds' environment variables (PTO2_RING_TASK_WINDOW, ...) and PTO_<NAME>. A bad value
 * is an error. */
enum pto_status pto_params_from_environment (struct pto_params *params, struct pto_report *report);
/* Writes "; did you mean ...?" for a name that no parameter has, or nothing. level: only parameters
 * that have an effect on workers of that level; 0: any. */
const char *pto_params_ask (const char *name, uint32_t level, char *text, size_t size);
/* "task-window", "16". What every ring has of its own may be as many numbers as there are rings,
 * apart by commas. Sizes may end in K, M, G (powers of 1024). Names the knob and its range when
 * refused. */
enum pto_status pto_params_set (struct pto_params *params, const char *name, const char *value,
                                struct pto_report *report);
/* Was something else said for each ring? Of one that rings do not have: no. */
bool pto_params_differ (const struct pto_params *params, enum pto_param param);
/* What a parameter is for one ring; of one that rings do not have, the same for all. */
uint64_t pto_params_of_ring (const struct pto_params *params, enum pto_param param, uint32_t ring);
/* How much of a run is recorded when nobody says otherwise: 0, nothing. */
static inline uint32_t
pto_params_recording (const struct pto_params *params)
{
  return params->values[PTO_PARAMETER_TRACE] != 0
             ? (uint32_t) params->values[PTO_PARAMETER_TRACE_LEVEL]
             : 0;
}
/* The value as text, but for a schedule's, which is not kept here; false when there is no such
 * parameter. */
bool pto_params_get (const struct pto_params *params, const char *name, char *text, size_t size);
/* The name of what was chosen, of one that has choices; otherwise NULL. */
const char *pto_params_choice (const struct pto_params *params, enum pto_param param);
/* For listings: name, environment variable (or NULL) and one line of description of parameter i <
 * PTO_N_PARAMETERS. */
const char *pto_param_name (enum pto_param param);
/* The most that it can be set to. */
uint64_t pto_param_most (enum pto_param param);
const char *pto_param_variable (enum pto_param param);
const char *pto_param_description (enum pto_param param);
/* Why a worker of that level does not look at it; NULL: it does. The environment is for all levels
 * together, so nothing that is taken from there is wrong. */
const char *pto_param_no_effect (enum pto_param param, uint32_t level);
