/* pto-trace-whatif-private.h: what is a recorded graph that is run again on paper?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "pto-trace-private.h"

G_BEGIN_DECLS

#define PTO_REPLAY_UNLIMITED G_MAXUINT32

/* A kernel's run in a task: as a rule the only one. */
typedef struct
{
  guint32 task;
  guint32 kernel;
  guint32 type; /* of core */
  guint64 ns;   /* as recorded */
} PtoReplayRun;

typedef struct
{
  guint64 gap; /* what the orchestration did before the submit */
  guint32 first_run;
  guint32 n_runs; /* 0: it only orders */
  guint32 first_out;
  guint32 first_user;
  guint32 n_producers;
  guint32 ring;
  guint32 scope;  /* 1 + number of the innermost; 0: none */
  guint32 awaits; /* the submitter waits until this one is complete; PTO_TRACE_NOWHERE */
  guint32 what;   /* and what for: PTO_STALL_* << 8 | ring */
} PtoReplayTask;

/* What the orchestrator did, in order: a task's submit, or the end of a scope (~number). */
typedef struct
{
  PtoReplayTask *tasks;
  guint n_tasks;
  PtoReplayRun *runs;
  guint n_runs;
  guint32 *out; /* consumers, by producer; tasks[n_tasks] is there for the last end */
  guint n_out;
  guint32 *users;      /* of the memory that a task makes, by task: they keep its slot */
  guint32 *scope_ends; /* of scopes: tasks that were submitted before it ended */
  guint n_scopes;
  guint n_kernels;
  guint32 windows[PTO_RINGS]; /* as recorded; PTO_REPLAY_UNLIMITED: nobody ever waited for one */
  guint n_commuting;          /* edges that keep commuting tasks in the recorded order */
  /* What things cost that are no kernel, as recorded. */
  guint64 dispatch;
  guint64 poll;
  guint64 fanout;
  guint64 start;
  guint64 finish;
} PtoReplay;

typedef struct
{
  guint clusters;
  guint schedulers;
  guint32 windows[PTO_RINGS];
  const double *factors; /* by kernel: of its recorded time */
  const guint64 *times;  /* by kernel: instead of it; PTO_TRACE_NEVER: none */
} PtoReplaySettings;

typedef struct
{
  guint64 makespan;
  guint64 critical_path; /* kernels only */
  guint64 work[PTO_N_CORE_TYPES];
  guint64 submitter;
  guint64 scheduler; /* of the one that had most to do */
  guint64 stalled[PTO_RINGS];
  guint64 awaited; /* for other than the task rings */
  guint32 awaited_what;
  gboolean is_stuck; /* the submitter waits for a ring for ever */
  guint32 stuck_ring;
} PtoReplayResult;

/* NULL with an error of G_IO_ERROR: it can not be replayed. */
PtoReplay *pto_replay_new (PtoTrace *trace, GError **error);
void pto_replay_free (PtoReplay *replay);
void pto_replay_run (const PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
                     PtoReplayResult *result);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoReplay, pto_replay_free)

G_END_DECLS
