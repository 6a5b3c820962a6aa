/* runtime.h: what is told of a run by whoever has it, from inside of its orchestration and when it
 * is over?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"
#include "status.h"
#include "task.h"

/* What a run did, in numbers. All of it is counted anyway: a run without a reader pays nothing. */
struct pto_run_stats
{
  uint64_t tasks; /* submitted */
  uint64_t completed;
  uint64_t failed;          /* of the completed */
  uint64_t edges;           /* distinct (producer, consumer) pairs that order */
  uint64_t run_ns;          /* wall clock, submit of the first task to the end */
  uint64_t virtual_ns;      /* det: the virtual clock over the run; otherwise 0 */
  uint64_t elapsed_ns;      /* virtual on det, wall otherwise */
  uint64_t peak_live_tasks; /* most slots taken at one time, all rings */
  uint64_t recycled;        /* submits that took a slot used before in this run */
  uint64_t last_task_alive[PTO_RINGS];
  uint64_t ring_tasks[PTO_RINGS];
  uint64_t heap_peak[PTO_RINGS]; /* bytes */
  uint64_t stalls;               /* times the submitter had to wait for a ring */

  /* --- of a chip: by core type --- */
  uint64_t busy_ns[2];   /* sum of kernel time, against elapsed_ns; needs utilization or det */
  uint64_t waited_ns[2]; /* no part of that: kernels waited for others of their task or cluster */
  uint32_t cores[2];
  /* Calls of foreign code that were cut off, since the run before: a lock that such code held is
   * held. One that threw was not cut off. */
  uint64_t cut_off;
  uint64_t loaded_objects; /* of kernels and orchestrations, by the process so far */

  /* --- of a level --- */
  uint64_t poisoned; /* of the failed: never ran */
  uint32_t restarts; /* of children, since the start */
  uint64_t retried;  /* how often tasks were lost with their worker and run again */
  /* Contents of tensors, to workers that share no memory, and from there; and those that were there
   * already, and so were not sent again. */
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t bytes_saved;
};

/* What all runs of a machine have done that are over. */
struct pto_machine_totals
{
  uint64_t runs;
  _Atomic uint64_t failed_runs; /* also by what is found of a run that is over; relaxed: a count */
  uint64_t submitted;
  uint64_t completed;
  uint64_t failed;
  uint64_t edges;
  uint64_t stalls;
  uint64_t peak_live;
  uint64_t heap_peak[PTO_RINGS];
  uint64_t run_ns;
};

/* A run that was counted has failed after all: it ended well, but what was found of it afterwards
 * is an error. Of the machine's totals, also where it is no more. */
void pto_machine_count_failed (struct pto_machine_totals *totals);

/* --- on the orchestration's thread, of chips and levels; run-machine.c --- */

/* Has the run failed already? Any thread, but for that it is about the run under way. */
bool pto_runtime_has_failed (PTO2Runtime *rt);
/* For an orchestration that hears of it: why, in words that stay until it is over; NULL: that is
 * not known yet. */
const char *pto_runtime_tell_failure (PTO2Runtime *rt);
/* Fails it, first error wins. */
void pto_runtime_fail (PTO2Runtime *rt, enum pto_status status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Heaps of a machine that is to be freed, for somebody who still looks at what lay in them: an
 * address and a size of each ring, to be unmapped by whoever took them. */
struct pto_heaps
{
  struct
  {
    void *base; /* NULL: none */
    uint64_t size;
  } rings[PTO_N_RINGS];
};
