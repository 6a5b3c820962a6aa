/* pto-trace-replay-places-private.h: which cores are there, and who waits for which of them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. What pto/core/place.c does for schedulers, on paper: the order in which tasks of
 * several parts get their cores is the same.
 */
#pragma once

#include "pto-trace-whatif-private.h"

G_BEGIN_DECLS

#define PTO_REPLAY_IDLE G_MAXUINT32
#define PTO_REPLAY_NONE G_MAXUINT32

/* Of cores, each of which is there once at most: going round. */
typedef struct
{
  guint32 *items;
  guint head;
  guint tail;
} PtoReplayQueue;

typedef struct _PtoReplayLine PtoReplayLine;

typedef struct
{
  guint n_clusters;
  guint n_schedulers;
  guint n_cores;
  guint per_cluster;
  guint32 *first; /* core, of schedulers; and the end */
  guint32 *core_scheduler;
  guint32 *core_type;
  guint32 *core_run; /* PTO_REPLAY_IDLE */
  PtoReplayQueue (*idle)[PTO_N_CORE_TYPES];
  PtoReplayLine *line; /* NULL: no task asks for more than a core of a type */
} PtoReplayPlaces;

void pto_replay_places_init (PtoReplayPlaces *places, const PtoReplay *replay, PtoTrace *trace,
                             const PtoReplaySettings *settings);
void pto_replay_places_clear (PtoReplayPlaces *places);

static inline gboolean
pto_replay_queue_is_empty (const PtoReplayQueue *queue)
{
  return queue->head == queue->tail;
}

static inline void
pto_replay_push_idle (const PtoReplayPlaces *places, guint32 core)
{
  PtoReplayQueue *idle = &places->idle[places->core_scheduler[core]][places->core_type[core]];

  idle->items[idle->tail] = core;
  idle->tail = idle->tail == places->n_cores ? 0 : idle->tail + 1;
}

static inline guint32
pto_replay_pop_idle (const PtoReplayPlaces *places, PtoReplayQueue *idle)
{
  guint32 core = idle->items[idle->head];

  idle->head = idle->head == places->n_cores ? 0 : idle->head + 1;
  return core;
}

/* All that follows is of places that have a line. Functions that give a guint64 give the schedulers
 * that are to look, a bit each. */

/* Can each task have what it needs? */
gboolean pto_replay_line_admits (const PtoReplayPlaces *places);
/* A task with members is ready. */
guint64 pto_replay_line_enter (PtoReplayPlaces *places, guint32 position);
/* Is a scheduler to look? */
gboolean pto_replay_line_calls (const PtoReplayPlaces *places, guint scheduler);
/* It looks. patient: cores that have just run a member are for others first. */
guint64 pto_replay_line_look (PtoReplayPlaces *places, guint scheduler, gboolean patient);
/* What came of it, one after the other: the run that begins on a core, or PTO_REPLAY_IDLE: that is
 * idle again. FALSE: that was all. */
gboolean pto_replay_line_take (PtoReplayPlaces *places, guint scheduler, guint32 *core,
                               guint32 *run);
/* A member has ended there; and all of its task's have. */
void pto_replay_line_leave (PtoReplayPlaces *places, guint32 core);
void pto_replay_line_complete (PtoReplayPlaces *places, guint32 position);
/* A task was submitted that is for a cluster of the orchestration's own. */
void pto_replay_line_submit (PtoReplayPlaces *places, guint32 position);
/* FALSE: no cluster is free just now. */
gboolean pto_replay_line_hold (PtoReplayPlaces *places, guint32 hold);
void pto_replay_line_let_go (PtoReplayPlaces *places, guint32 hold);

G_END_DECLS
