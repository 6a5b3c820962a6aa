/* chip-given-times.h: how does a run go whose times are all known before?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A graph is launched on det at the pace of the orchestration that submitted it, with kernels that
 * take their time and do nothing. The engine decides which core runs what, and when.
 */
#pragma once

#include "chip.h"

#define PTO_GIVEN_NONE UINT32_MAX

/* Kernels that wait for each other: when all have begun it is known when they go on. */
struct pto_given_meeting
{
  uint32_t first; /* in meets */
  uint32_t n;
};

struct pto_given_meet
{
  uint32_t run;
  uint32_t meeting;
  bool waits;      /* the others do not wait, and are waited for */
  uint64_t waited; /* when its time was taken */
  uint64_t before; /* the last of them began so long after this one */
};

/* A meeting in the run under way. */
struct pto_given_wait
{
  uint32_t absent; /* kernels that have not begun */
  uint64_t last;   /* when the last of them began */
};

struct pto_core;

/* A run of a kernel that meets others. */
struct pto_given_begin
{
  uint64_t time;
  struct pto_core *core;
};

struct pto_given_task
{
  uint64_t gap;       /* what the orchestration does before the submit */
  uint32_t first_run; /* of its parts, block by block, of each its members */
  uint32_t awaits;    /* the submitter waits until this task is over; PTO_GIVEN_NONE */
  uint32_t why;       /* it does so, in the caller's words */
};

struct pto_given
{
  const struct pto_plan *graph; /* of kernels 0, on AICs, and 1, on AIVs */
  const struct pto_given_task *tasks;
  const uint64_t *run_ns;
  uint32_t clusters;
  uint32_t schedulers;
  uint64_t seed;
  /* The meets of run r are meets[run_meets[first_meet[r]]] and so on. n_meetings 0: there are none,
   * and all of these are not read. */
  const struct pto_given_meeting *meetings;
  const struct pto_given_meet *meets;
  const uint32_t *run_meets;
  const uint32_t *first_meet;
  uint32_t n_meetings;
  struct pto_given_begin *begins; /* by run; filled in here */
  struct pto_given_wait *waits;   /* by meeting; likewise */

  /* --- what came of it --- */
  uint64_t makespan;           /* until the last kernel was over */
  uint64_t submitter;          /* ns of all gaps */
  uint64_t scheduler;          /* ns of the scheduler that had most to do */
  uint64_t stalled[PTO_RINGS]; /* ns that the submitter waited for room */
  uint64_t stalled_clusters;
  uint64_t awaited;
  uint32_t why;       /* of the last such wait */
  uint32_t last_ring; /* of the last task that was submitted, or found no room */

  /* While it goes on. */
  struct pto_chip *chip;
  uint64_t until; /* the end of what the orchestration did last */
  uint32_t base[PTO_RINGS];
  uint32_t n_holds; /* of the graph's, before the last submit */
};

/* A chip on det, which has the graph's rings. */
enum pto_status pto_given_run (struct pto_chip *chip, struct pto_given *given,
                               struct pto_report *report);
