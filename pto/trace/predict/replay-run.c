/* replay-run.c: when would a recorded graph have been over on another chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tasks, their edges, the times of their kernels and what the orchestration did between two
 * submits are as recorded: a graph of them is launched on a chip on the virtual clock, so that the
 * engine decides again which core runs what, and when.
 */
#include "config.h"

#include "sim/chip-given-times.h"

#include "base/error.h"
#include "core/bits.h"
#include "core/graph-plan.h"
#include "core/submission.h"
#include "replay-sets.h"

#include <string.h>

/* A graph, and what goes with its tasks. */
typedef struct
{
  struct pto_plan *plan;
  struct pto_given_task *tasks;
} Launch;

static void
launch_clear (Launch *launch)
{
  g_clear_pointer (&launch->plan, pto_plan_free);
  g_clear_pointer (&launch->tasks, g_free);
}

static void
set_parts (const PtoReplay *replay, const PtoReplayTask *task, struct pto_submit *submit,
           struct pto_wish *wish, struct pto_need **members)
{
  const PtoReplayParts *parts = pto_replay_parts (replay, task);

  submit->n_blocks = parts->n_blocks;
  if (parts->n_members == 0)
    return;
  *members = g_new0 (struct pto_need, parts->n_members);
  *wish = (struct pto_wish){
    .together = parts->together,
    .cohort = parts->hold,
    /* 0: block by block */
    .n_at_once = parts->n_members > parts->block ? parts->n_members / parts->block : 0,
    .n_members = parts->n_members,
    .members = *members,
  };
  submit->wish = wish;
  for (guint32 m = 0; m < parts->n_members; m++)
    {
      guint32 type = replay->runs[task->first_run + m].type;

      (*members)[m] = (struct pto_need){ .queue = type,
                                         .kernel = type,
                                         .place = g_array_index (replay->names, guint32,
                                                                 parts->first_member + m) };
    }
}

static void
launch_add_task (Launch *launch, const PtoReplay *replay, guint32 position, guint32 *numbers,
                 const Tensor *never)
{
  const PtoReplayTask *task = &replay->tasks[position];
  gboolean is_off = (task->flags & PTO_REPLAY_OFF) != 0;
  guint32 type = task->n_runs > 0 ? replay->runs[task->first_run].type : 0;
  g_autofree struct pto_need *members = NULL;
  struct pto_wish wish;
  struct pto_submit submit = { .kernel = task->n_runs > 0 ? type : PTO_KERNEL_NONE,
                               .queue = type,
                               .conditional = is_off,
                               .terms = task->terms };
  guint32 number;

  if ((task->flags & PTO_REPLAY_PARTS) != 0)
    set_parts (replay, task, &submit, &wish, &members);
  numbers[position] = number = pto_plan_add_task (launch->plan, &submit, task->ring);
  launch->tasks[number] = (struct pto_given_task){
    .gap = task->gap,
    .first_run = task->first_run,
    .awaits = task->awaits != PTO_TRACE_NOWHERE ? numbers[task->awaits] : PTO_GIVEN_NONE,
    .why = task->what,
  };
  if (is_off)
    pto_plan_add_tensor (launch->plan, 0, 0, never, FALSE, FALSE);
}

/* Scopes, not later uses, hold the tasks of a run that is no launch, and all of its edges are
 * wired. positions: of its tasks. */
static void
launch_set_floors (Launch *launch, const PtoReplay *replay, const guint32 *positions)
{
  struct pto_plan *plan = launch->plan;
  guint32 floors[PTO_RINGS] = { 0 };

  for (guint32 t = 0; t < plan->n_tasks; t++)
    {
      struct pto_plan_task *task = &plan->tasks[t];
      guint32 *floor = &floors[task->ring];

      for (; *floor < task->position; ++*floor)
        {
          guint32 scope = replay->tasks[positions[plan->rings[task->ring][*floor]]].scope;

          if (scope > 0 && replay->scope_ends[scope - 1] > positions[t])
            break;
        }
      task->floor = *floor;
      task->n_needed = task->n_deps;
    }
}

static inline gboolean
is_left_out (const PtoReplay *replay, guint32 position)
{
  return (replay->tasks[position].flags & PTO_REPLAY_LEFT_OUT) != 0;
}

static void
launch_add_edges (Launch *launch, const PtoReplay *replay, const GArray *edges,
                  const guint32 *numbers, guint32 kinds)
{
  for (guint i = 0; i < edges->len; i++)
    {
      const PtoReplayPair *edge = pto_replay_pair (edges, i);

      if (!is_left_out (replay, edge->task) && !is_left_out (replay, edge->other))
        pto_plan_add_edge (launch->plan, numbers[edge->task], numbers[edge->other], kinds);
    }
}

static gboolean
refuse (GError **error, const struct pto_report *report)
{
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NO_MEMORY, report->message);
  return FALSE;
}

static gboolean
launch_make (Launch *launch, const PtoReplay *replay, GError **error)
{
  /* A condition that is 0. */
  static const Tensor never
      = { .ndims = 1, .dtype = PTO_DTYPE_INT32, .shapes = { 1 }, .strides = { 1 } };
  struct pto_report report = { .message = "" };
  g_autofree guint32 *positions = g_new (guint32, replay->n_tasks);
  g_autofree guint32 *numbers = g_new (guint32, replay->n_tasks);
  guint hold = 0;
  guint claim = 0;

  launch_clear (launch);
  launch->plan = pto_plan_new ();
  launch->tasks = g_new0 (struct pto_given_task, replay->n_tasks);
  if (launch->plan == NULL)
    return refuse (error, &report);
  pto_plan_add_param (launch->plan,
                      &(struct pto_plan_param){ .tensor = never, .extent = sizeof (gint32) });
  for (guint32 i = 0; i < replay->n_tasks; i++)
    {
      guint32 number = launch->plan->n_tasks;

      if (is_left_out (replay, i))
        continue;
      for (; hold < replay->holds->len; hold++)
        {
          const PtoReplayHold *item = &g_array_index (replay->holds, PtoReplayHold, hold);

          if (item->before > i)
            break;
          pto_plan_add_hold (launch->plan, item->hold, item->held);
        }
      positions[number] = i;
      launch_add_task (launch, replay, i, numbers, &never);
      for (; claim < replay->claims->len && pto_replay_pair (replay->claims, claim)->task == i;
           claim++)
        pto_plan_add_token (launch->plan, pto_replay_pair (replay->claims, claim)->other);
    }
  launch_add_edges (launch, replay, replay->edges, numbers, PTO_HAZARD_RAW);
  launch_add_edges (launch, replay, replay->users, numbers, PTO_DEP_RETAIN);
  if (pto_plan_complete (launch->plan, &report) != PTO_OK)
    return refuse (error, &report);
  launch_set_floors (launch, replay, positions);
  return TRUE;
}

/* --- the chip --- */

/* A chip, which is made anew where its rings are others, and the graph that was launched last. */
struct _PtoReplayEngine
{
  Launch launch;
  gboolean is_whole; /* the launch is of the record; otherwise of as many copies as a chip has */
  struct pto_chip *chip;
  guint32 windows[PTO_RINGS];
  guint64 *run_ns;
  struct pto_given_begin *begins;
  struct pto_given_wait *waits;
};

void
pto_replay_engine_free (PtoReplayEngine *engine)
{
  launch_clear (&engine->launch);
  pto_chip_free (engine->chip);
  g_free (engine->run_ns);
  g_free (engine->begins);
  g_free (engine->waits);
  g_free (engine);
}

static PtoReplayEngine *
engine_new (const PtoReplay *replay)
{
  PtoReplayEngine *engine = g_new0 (PtoReplayEngine, 1);

  engine->run_ns = g_new (guint64, MAX (replay->n_runs, 1));
  engine->begins = g_new (struct pto_given_begin, replay->meetings->len > 0 ? replay->n_runs : 1);
  engine->waits = g_new (struct pto_given_wait, MAX (replay->meetings->len, 1));
  return engine;
}

static void
ignore_log (void *data, int32_t level, const char *message)
{
  (void) data;
  (void) level;
  (void) message;
}

/* With rings of those sizes, and room for all else. */
static struct pto_chip *
engine_new_chip (const PtoReplayEngine *engine, const PtoReplay *replay, PtoTrace *trace,
                 struct pto_report *report)
{
  const guint64 *costs = replay->costs;
  const struct pto_platform platform = {
    .name = "recorded",
    .description = "",
    .clusters = trace->topology.n_clusters,
    .aic_per_cluster = trace->topology.aic_per_cluster,
    .aiv_per_cluster = trace->topology.aiv_per_cluster,
    .aicpu_threads = trace->topology.n_schedulers + 1,
    .costs = { .dispatch = (guint32) MIN (costs[PTO_TRACE_COST_DISPATCH], G_MAXINT32),
               .poll = (guint32) MIN (costs[PTO_TRACE_COST_POLL], G_MAXINT32),
               .fanout = (guint32) MIN (costs[PTO_TRACE_COST_FANOUT], G_MAXINT32),
               .start = (guint32) MIN (costs[PTO_TRACE_COST_START], G_MAXINT32),
               .finish = (guint32) MIN (costs[PTO_TRACE_COST_FINISH], G_MAXINT32) },
  };
  struct pto_params params;
  struct pto_chip *chip;

  pto_params_init (&params, 2);
  params.values[PTO_PARAMETER_BACKEND] = PTO_BACKEND_DET;
  /* Also where tasks that reduce have more copies than the record. */
  params.values[PTO_PARAMETER_DEP_POOL] = power_of_two_at_least (
      2 * ((guint64) replay->n_edges + replay->users->len) + 8 * (guint64) replay->n_tasks + 64);
  params.values[PTO_PARAMETER_BLOCKED_NOTICE] = 0;
  params.values[PTO_PARAMETER_TASK_WINDOW] = 0;
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      params.of_rings[0][r] = engine->windows[r];
      params.values[PTO_PARAMETER_TASK_WINDOW]
          = MAX (params.values[PTO_PARAMETER_TASK_WINDOW], engine->windows[r]);
    }
  chip = pto_chip_new (&platform, &params, report);
  if (chip != NULL)
    pto_chip_set_log (chip, ignore_log, NULL);
  return chip;
}

static gboolean
engine_set_windows (PtoReplayEngine *engine, const PtoReplay *replay, PtoTrace *trace,
                    const guint32 *asked, GError **error)
{
  struct pto_report report = { .message = "" };
  guint32 windows[PTO_RINGS];

  for (guint r = 0; r < PTO_RINGS; r++)
    windows[r] = asked[r] != PTO_REPLAY_UNLIMITED
                     ? asked[r]
                     : MAX (power_of_two_at_least ((guint64) replay->n_tasks + 2), 4);
  if (engine->chip != NULL && memcmp (windows, engine->windows, sizeof windows) == 0)
    return TRUE;
  memcpy (engine->windows, windows, sizeof windows);
  g_clear_pointer (&engine->chip, pto_chip_free);
  engine->chip = engine_new_chip (engine, replay, trace, &report);
  return engine->chip != NULL || refuse (error, &report);
}

/* How long what runs takes now, the longest chain of that, and what each type of core has to do. */
static void
weigh (const PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings, guint64 *run_ns,
       PtoReplayResult *result)
{
  g_autofree guint64 *ends = g_new0 (guint64, replay->n_tasks);
  guint edge = 0;
  guint n_cores[PTO_N_CORE_TYPES];

  pto_replay_count_cores (trace, settings->clusters, n_cores);
  for (guint i = 0; i < replay->n_runs; i++)
    {
      const PtoReplayRun *recorded = &replay->runs[i];
      guint64 time = recorded->ns;

      if (is_left_out (replay, recorded->task))
        {
          run_ns[i] = 0;
          continue;
        }
      if (recorded->kernel < replay->n_kernels)
        time = settings->times[recorded->kernel] != PTO_TRACE_NEVER
                   ? settings->times[recorded->kernel]
                   : (guint64) ((double) time * settings->factors[recorded->kernel] + 0.5);
      run_ns[i] = time + recorded->waited;
      result->work[recorded->type] += time;
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    result->work[t] /= MAX (n_cores[t], 1);
  /* Producers are submitted before. */
  for (guint i = 0; i < replay->n_tasks; i++)
    {
      guint64 longest = 0;

      for (; edge < replay->edges->len && pto_replay_pair (replay->edges, edge)->other == i; edge++)
        {
          guint32 producer = pto_replay_pair (replay->edges, edge)->task;

          if (producer < i && !is_left_out (replay, producer))
            ends[i] = MAX (ends[i], ends[producer]);
        }
      for (guint k = 0; k < replay->tasks[i].n_runs; k++)
        longest = MAX (longest, run_ns[replay->tasks[i].first_run + k]);
      ends[i] += longest;
      result->critical_path = MAX (result->critical_path, ends[i]);
    }
}

static gboolean
engine_run (PtoReplayEngine *engine, const PtoReplay *replay, const PtoReplaySettings *settings,
            PtoReplayResult *result, GError **error)
{
  struct pto_report report = { .message = "" };
  struct pto_given given = { .graph = engine->launch.plan,
                             .tasks = engine->launch.tasks,
                             .run_ns = engine->run_ns,
                             .clusters = settings->clusters,
                             .schedulers = settings->schedulers,
                             .seed = settings->draw + 1,
                             .meetings = (gpointer) replay->meetings->data,
                             .meets = (gpointer) replay->meets->data,
                             .run_meets = replay->run_meets,
                             .first_meet = replay->first_meet,
                             .n_meetings = replay->meetings->len,
                             .begins = engine->begins,
                             .waits = engine->waits };

  switch (pto_given_run (engine->chip, &given, &report))
    {
    case PTO_OK:
      break;
    case PTO_STATUS_TASK_RING:
      result->end = PTO_REPLAY_NO_ROOM;
      break;
    case PTO_STATUS_SCOPE_DEADLOCK:
      result->end = PTO_REPLAY_NO_CLUSTERS;
      break;
    case PTO_STATUS_INVALID_ARGS:
    case PTO_STATUS_SYNC_START:
    case PTO_STATUS_SCHEDULER_TIMEOUT:
      result->end = PTO_REPLAY_NO_CORES;
      break;
    default:
      return refuse (error, &report);
    }
  result->makespan = given.makespan;
  result->submitter = given.submitter;
  result->scheduler = given.scheduler;
  memcpy (result->stalled, given.stalled, sizeof result->stalled);
  result->awaited = given.awaited + given.stalled_clusters;
  result->awaited_what = given.stalled_clusters > given.awaited ? PTO_STALL_COHORT << 8 : given.why;
  result->stuck_ring = given.last_ring;
  return TRUE;
}

gboolean
pto_replay_run (PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
                PtoReplayResult *result, GError **error)
{
  guint n_cores[PTO_N_CORE_TYPES];
  guint n_recorded[PTO_N_CORE_TYPES];
  PtoReplay *derived;
  const PtoReplay *played;
  PtoReplayEngine *engine;
  gboolean ok;

  *result = (PtoReplayResult){ 0 };
  if (replay->engine == NULL)
    replay->engine = engine_new (replay);
  engine = replay->engine;
  pto_replay_count_cores (trace, settings->clusters, n_cores);
  pto_replay_count_cores (trace, trace->topology.n_clusters, n_recorded);
  derived = pto_replay_sets_derive (replay, n_cores, n_recorded);
  played = derived != NULL ? derived : replay;
  weigh (played, trace, settings, engine->run_ns, result);
  ok = (engine->is_whole || launch_make (&engine->launch, played, error))
       && engine_set_windows (engine, replay, trace, settings->windows, error)
       && engine_run (engine, played, settings, result, error);
  engine->is_whole = ok && derived == NULL;
  if (derived != NULL)
    pto_replay_sets_free_derived (derived);
  return ok;
}
