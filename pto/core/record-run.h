/* record-run.h: is a run recorded, by whom, and what do the numbers of its clock mean?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What every machine does alike, a chip or a level: buffers for its actors, kept from run to run,
 * and the clock of the run, tied at both ends to one that all processes of this machine share.
 * Whoever observes finds its buffer, or NULL, which is all that a run without a record costs it.
 */
#pragma once

#include "status.h"
#include "trace.h"

struct pto_engine;

/* What a trace needs beside its records. Buffer 0 is the orchestrator's, then come n_schedulers,
 * then n_cores: cores of a chip, or children of a level, of which the first n_workers are workers
 * and the others SUB workers. */
struct pto_trace_topology
{
  uint32_t n_schedulers;
  uint32_t n_cores;
  uint32_t n_clusters;      /* of a chip */
  uint32_t aic_per_cluster; /* core c of a cluster: first its AICs, then its AIVs */
  uint32_t aiv_per_cluster;
  uint32_t level; /* 3 and up: a level; otherwise a chip */
  uint32_t n_workers;
  uint32_t recorded; /* enum pto_trace_level */
  bool virtual_clock;
  uint64_t counter_hz;
  /* The run took run_ns of its own clock, which was 0 at begin_ns of CLOCK_MONOTONIC and run_ns at
   * end_ns. On a wall clock the two are one. */
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t run_ns;
};

/* Zeroed: nothing was recorded. */
struct pto_recorder
{
  struct pto_trace *trace; /* of the last run that was recorded, or to be reused */
  bool active;             /* the run under way, or the last one */
  struct pto_scale scale;  /* of its times */
  uint64_t begin_ns;       /* as in the topology */
  uint64_t end_ns;
  uint64_t run_ns;
};

/* Between runs: how much of the next one is recorded (enum pto_trace_level; 0: nothing). capacity:
 * records of each actor. */
enum pto_status pto_recorder_choose (struct pto_recorder *recorder, uint32_t level,
                                     uint32_t n_actors, uint64_t capacity,
                                     struct pto_report *report);
/* Where an actor records: NULL, nowhere. */
static inline struct pto_trace_buffer *
pto_recorder_buffer (const struct pto_recorder *recorder, uint32_t actor)
{
  return recorder->active ? &recorder->trace->buffers[actor] : NULL;
}
/* Just behind pto_engine_begin() and pto_engine_end(). */
void pto_recorder_begin (struct pto_recorder *recorder, const struct pto_engine *engine);
void pto_recorder_end (struct pto_recorder *recorder, const struct pto_engine *engine);
/* The last run's, times in ns since its begin; NULL: it was not recorded. Valid until the next. */
const struct pto_trace *pto_recorder_trace (struct pto_recorder *recorder);
/* Fills in what the clock means. */
void pto_recorder_tell_clock (const struct pto_recorder *recorder,
                              struct pto_trace_topology *topology);
void pto_recorder_clear (struct pto_recorder *recorder);
