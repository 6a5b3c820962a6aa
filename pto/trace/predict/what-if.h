/* what-if.h: what is a recorded graph that is run again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "sim/chip-given-times.h"

#include "core/submission.h"

#include "trace/model/trace.h"

G_BEGIN_DECLS

#define PTO_REPLAY_UNLIMITED G_MAXUINT32

/* A kernel's run in a task: as a rule the only one. Blocks are there in their order, of each its
 * members. */
typedef struct
{
  guint32 task;
  guint32 kernel;
  guint32 type;   /* of core */
  guint64 ns;     /* as recorded, without waits for other kernels */
  guint64 waited; /* ns of such, where it is not known for whom */
} PtoReplayRun;

enum
{
  PTO_REPLAY_PARTS = 1 << 0,   /* it has parts */
  PTO_REPLAY_CLAIMS = 1 << 1,  /* it waits for its turn */
  PTO_REPLAY_OFF = 1 << 2,     /* its condition was 0: its run is none */
  PTO_REPLAY_LEFT_OUT = 1 << 3 /* it is not submitted: of a copy that a reduction does not have */
};

typedef struct
{
  guint64 gap; /* what the orchestration did before the submit */
  guint32 first_run;
  guint32 n_runs; /* 0: it only orders */
  guint32 scope;  /* 1 + number of the innermost; 0: none */
  guint32 awaits; /* the submitter waits until this one is complete; PTO_TRACE_NOWHERE */
  guint32 what;   /* and what for: PTO_STALL_* << 8 | ring */
  guint32 parts;  /* in PtoReplay.parts */
  struct pto_terms terms;
  guint8 ring;
  guint8 flags; /* PTO_REPLAY_* */
} PtoReplayTask;

/* Where the parts of a task are to be; see pto/core/placement-request.h. */
typedef struct
{
  guint32 task;
  guint32 n_blocks;
  guint32 n_members; /* of each; 0: blocks run wherever there is room */
  guint32 block;     /* members of those blocks that begin at once */
  guint32 hold;      /* in this cluster of the orchestration's own; PTO_TRACE_NOWHERE: in any */
  guint32 first_member;
  gboolean together; /* members of a block are in one cluster */
} PtoReplayParts;

/* A task, and one that comes after it or uses its memory, or a token. */
typedef struct
{
  guint32 task;
  guint32 other;
} PtoReplayPair;

/* A cluster is the orchestration's own, or not any more. */
typedef struct
{
  guint32 before; /* the submit of that task */
  guint32 hold;   /* which of those that it had */
  gboolean held;
} PtoReplayHold;

typedef struct pto_given_meeting PtoReplayMeeting;
typedef struct pto_given_meet PtoReplayMeet;
typedef struct _PtoReplayEngine PtoReplayEngine;

/* Tasks that reduce into the same memory: as many copies as there may be, and who fills, updates
 * and combines them. How many there are depends on the chip. */
typedef struct
{
  GArray *fills;    /* guint32: tasks, by copy */
  GArray *updates;  /* guint32: tasks, which have the copies in turn */
  GArray *combines; /* guint32: tasks, in pairs, and last with what is reduced into */
  GArray *tokens;   /* guint32: of each update as recorded */
  guint32 n_copies; /* as recorded */
  guint32 room;     /* copies that there is memory for */
  guint32 type;     /* of core that updates */
  guint32 first_token;
} PtoReplaySet;

/* What the orchestrator did, in order: a task's submit, or the end of a scope (~number). */
typedef struct
{
  PtoReplayTask *tasks;
  guint n_tasks;
  PtoReplayRun *runs;
  guint n_runs;
  guint n_edges;   /* of the record */
  GArray *edges;   /* PtoReplayPair: producer, consumer; by consumer; none among tasks of one set */
  GPtrArray *sets; /* PtoReplaySet */
  GArray *users;   /* PtoReplayPair: who makes memory, who uses it, and so keeps the slot */
  guint32 *scope_ends; /* of scopes: tasks that were submitted before it ended */
  guint n_scopes;
  guint n_kernels;
  guint32 windows[PTO_RINGS]; /* as recorded; PTO_REPLAY_UNLIMITED: nobody ever waited for one */
  /* Of tasks of several parts, by task; names: of each of their members the place that it names, or
   * PTO_TRACE_NOWHERE. */
  GArray *parts;    /* PtoReplayParts */
  GArray *names;    /* guint32 */
  GArray *holds;    /* PtoReplayHold, in their order */
  guint n_held;     /* clusters, one after the other */
  GArray *meetings; /* PtoReplayMeeting */
  GArray *meets;    /* PtoReplayMeet, by meeting */
  /* meets by run: those of run r are meets[run_meets[first_meet[r]]] and so on. NULL: none. */
  guint32 *run_meets;
  guint32 *first_meet;
  GArray *claims; /* PtoReplayPair: a task that waits for its turn, and for which; by task */
  guint n_tokens;
  guint n_commuting; /* tasks */
  /* What things cost that are no kernel, as recorded. */
  guint64 costs[PTO_TRACE_N_COSTS];
  PtoReplayEngine *engine; /* what it is run again on; made by the first run */
} PtoReplay;

typedef struct
{
  guint clusters;
  guint schedulers;
  guint32 windows[PTO_RINGS];
  const double *factors; /* by kernel: of its recorded time */
  const guint64 *times;  /* by kernel: instead of it; PTO_TRACE_NEVER: none */
  guint draw;            /* by which what happens at one moment is put in order; 0: as it comes */
} PtoReplaySettings;

typedef enum
{
  PTO_REPLAY_ENDS,
  PTO_REPLAY_NO_ROOM,     /* the submitter waits for a ring for ever */
  PTO_REPLAY_NO_CLUSTERS, /* it waits for a cluster for ever */
  PTO_REPLAY_NO_CORES     /* a task needs more at once than there are, or one that is not there */
} PtoReplayEnd;

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
  PtoReplayEnd end;
  guint32 stuck_ring;
} PtoReplayResult;

static inline PtoReplayPair *
pto_replay_pair (const GArray *pairs, guint i)
{
  return &g_array_index (pairs, PtoReplayPair, i);
}

static inline void
pto_replay_add_pair (GArray *pairs, guint32 task, guint32 other)
{
  PtoReplayPair pair = { task, other };

  g_array_append_val (pairs, pair);
}

static inline const PtoReplayParts *
pto_replay_parts (const PtoReplay *replay, const PtoReplayTask *task)
{
  return &g_array_index (replay->parts, PtoReplayParts, task->parts);
}

/* Fails with G_IO_ERROR_INVALID_ARGUMENT: what is wrong with a setting. Returns FALSE. */
gboolean pto_trace_refuse_setting (GError **error, const char *setting, const char *why);

/* Of each type, on that many clusters. */
void pto_replay_count_cores (PtoTrace *trace, guint clusters, guint *n_cores);

/* NULL with an error of G_IO_ERROR: it can not be replayed. */
PtoReplay *pto_replay_new (PtoTrace *trace, GError **error);
void pto_replay_free (PtoReplay *replay);
void pto_replay_engine_free (PtoReplayEngine *engine);
/* FALSE: there is no memory for it, or no thread. */
gboolean pto_replay_run (PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
                         PtoReplayResult *result, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoReplay, pto_replay_free)

G_END_DECLS
