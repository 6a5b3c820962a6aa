/* pto-trace-replay.c: when would a recorded graph have been over on another chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tasks, their edges, the times of their kernels and what the orchestration did between two
 * submits are as recorded; who runs what, and when, is decided again, in virtual time, as
 * schedulers do: first what has signalled, then what is ready, first come, first served, of each
 * type of core. A successor of the task that ended runs next on its core, if it fits there.
 *
 * Tasks that run on several cores at once are refused, and so are reductions, whose graph depends
 * on the chip. Commuting tasks keep the order that they had.
 */
#include "config.h"

#include "pto-trace-whatif-private.h"

#include <string.h>

/* --- what was recorded --- */

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a;
  guint64 y = *(const guint64 *) b;

  return x < y ? -1 : x > y;
}

/* On a virtual clock the least, which is what it costs where nothing is waited for; on a wall clock
 * what is usual. */
static guint64
get_usual (GArray *times, gboolean is_virtual)
{
  if (times->len == 0)
    return 0;
  g_array_sort (times, compare_numbers);
  return g_array_index (times, guint64, is_virtual ? 0 : times->len / 4);
}

static void
add_time (GArray *times, guint64 from, guint64 to)
{
  guint64 time = to - from;

  if (from != PTO_TRACE_NEVER && to != PTO_TRACE_NEVER && to >= from)
    g_array_append_val (times, time);
}

static void
find_costs (PtoReplay *replay, PtoTrace *trace)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  gboolean is_virtual = trace->topology.virtual_clock;
  g_autoptr (GArray) dispatch = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) start = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) finish = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) fanout = g_array_new (FALSE, FALSE, sizeof (guint64));
  guint64 over;

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->core == PTO_TRACE_NOWHERE || task->n_members > 0)
        continue;
      add_time (start, task->dispatch, task->start);
      add_time (finish, task->end, task->complete);
      if (task->last_producer == PTO_TRACE_NOWHERE)
        add_time (dispatch, task->ready, task->dispatch);
      /* Its producer had one consumer, on whose core it runs next. */
      else if (analysis->tasks[task->last_producer].core == task->core
               && replay->tasks[task->last_producer + 1].first_out
                          - replay->tasks[task->last_producer].first_out
                      == 1)
        add_time (fanout, task->ready, task->dispatch);
    }
  over = get_usual (finish, is_virtual);
  replay->start = get_usual (start, is_virtual);
  replay->poll = over / 6;
  replay->finish = over - replay->poll;
  replay->dispatch = get_usual (dispatch, is_virtual);
  replay->fanout = get_usual (fanout, is_virtual);
  if (replay->dispatch == 0 || replay->dispatch > replay->fanout)
    replay->dispatch = replay->fanout * 10 / 13;
  replay->fanout -= MIN (replay->fanout, replay->dispatch);
}

/* Who commutes keeps the order of the record: one edge from each to the next at the same memory. */
static void
add_commuting (PtoReplay *replay, const PtoTraceAnalysis *analysis, GArray *edges)
{
  g_autoptr (GHashTable) last = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (GArray) updates = g_array_new (FALSE, FALSE, sizeof (guint64) * 3);

  for (guint i = 0; i < analysis->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[i];
      guint64 update[] = { analysis->tasks[arg->task].start, arg->task, arg->word };

      if (arg->type == PTO_PARAM_COMMUTATIVE)
        g_array_append_val (updates, update);
    }
  g_array_sort (updates, compare_numbers);
  for (guint i = 0; i < updates->len; i++)
    {
      const guint64 *update = (const guint64 *) (void *) (updates->data + i * sizeof (guint64) * 3);
      gint64 *key = g_new (gint64, 1);
      gpointer before;

      *key = (gint64) update[2];
      if (g_hash_table_lookup_extended (last, key, NULL, &before)
          && GPOINTER_TO_UINT (before) != update[1])
        {
          guint32 edge[] = { GPOINTER_TO_UINT (before), (guint32) update[1] };

          g_array_append_val (edges, edge);
          replay->n_commuting++;
        }
      g_hash_table_replace (last, key, GUINT_TO_POINTER ((guint) update[1]));
    }
}

/* Consumers by producer. */
static void
link_tasks (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) edges = g_array_new (FALSE, FALSE, sizeof (guint32) * 2);
  const guint32 *edge;

  for (guint i = 0; i < analysis->n_deps; i++)
    {
      guint32 pair[] = { analysis->deps[i].producer_index, analysis->deps[i].consumer };

      if (pair[0] != PTO_TRACE_NOWHERE)
        g_array_append_val (edges, pair);
    }
  add_commuting (replay, analysis, edges);
  edge = (const guint32 *) (void *) edges->data;
  replay->n_out = edges->len;
  replay->out = g_new (guint32, MAX (replay->n_out, 1));
  for (guint i = 0; i < replay->n_out; i++)
    {
      if (edge[2 * i] + 2 <= replay->n_tasks)
        replay->tasks[edge[2 * i] + 2].first_out++;
      replay->tasks[edge[2 * i + 1]].n_producers++;
    }
  for (guint i = 2; i <= replay->n_tasks; i++)
    replay->tasks[i].first_out += replay->tasks[i - 1].first_out;
  for (guint i = 0; i < replay->n_out; i++)
    replay->out[replay->tasks[edge[2 * i] + 1].first_out++] = edge[2 * i + 1];
}

/* Memory that a task has made, from its address on. */
typedef struct
{
  guint64 begin;
  guint64 end;
  guint32 task;
} Made;

static gint
compare_made (gconstpointer a, gconstpointer b, gpointer data)
{
  (void) data;
  return compare_numbers (a, b);
}

/* What lies at that address, or before it. */
static Made *
find_made (GTree *made, guint64 address)
{
  GTreeNode *node = g_tree_upper_bound (made, &address);

  node = node != NULL ? g_tree_node_previous (node) : g_tree_node_last (made);
  return node != NULL ? g_tree_node_value (node) : NULL;
}

static void
add_made (GTree *made, const PtoTraceArg *arg)
{
  Made *item = g_new (Made, 1);
  guint64 elements = 1;
  Made *other;

  for (guint d = 0; d < arg->n_dims; d++)
    elements *= arg->shape[d];
  *item = (Made){ arg->word, arg->word + MAX (elements * pto_dtype_size ((DataType) arg->dtype), 1),
                  arg->task };
  /* What was there has been given back. */
  while ((other = find_made (made, item->end - 1)) != NULL && other->end > item->begin)
    g_tree_remove (made, other);
  g_tree_insert (made, item, item);
}

/* Who keeps which slot: at level 4 all who are given memory that its task has made; otherwise, as
 * far as is known, its consumers. FALSE: some of it are copies that a reduction made. */
static gboolean
list_users (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) pairs = g_array_new (FALSE, FALSE, sizeof (guint32) * 2);
  g_autoptr (GTree) made = g_tree_new_full (compare_made, NULL, g_free, NULL);
  const guint32 *pair;

  for (guint i = 0; i < analysis->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[i];
      const Made *item;

      if (arg->type == PTO_PARAM_SCALAR)
        continue;
      if (arg->type == PTO_PARAM_OUTPUT)
        {
          add_made (made, arg);
          continue;
        }
      item = find_made (made, arg->word);
      if (item != NULL && arg->word < item->end && item->task != arg->task)
        {
          guint32 use[] = { item->task, arg->task };

          if (arg->type == PTO_PARAM_COMMUTATIVE)
            return FALSE;
          g_array_append_val (pairs, use);
        }
    }
  for (guint i = 0; analysis->n_args == 0 && i < replay->n_tasks; i++)
    for (guint32 k = replay->tasks[i].first_out; k < replay->tasks[i + 1].first_out; k++)
      {
        guint32 use[] = { i, replay->out[k] };

        g_array_append_val (pairs, use);
      }
  pair = (const guint32 *) (void *) pairs->data;
  replay->users = g_new (guint32, MAX (pairs->len, 1));
  for (guint i = 0; i < pairs->len; i++)
    if (pair[2 * i] + 2 <= replay->n_tasks)
      replay->tasks[pair[2 * i] + 2].first_user++;
  for (guint i = 2; i <= replay->n_tasks; i++)
    replay->tasks[i].first_user += replay->tasks[i - 1].first_user;
  for (guint i = 0; i < pairs->len; i++)
    replay->users[replay->tasks[pair[2 * i] + 1].first_user++] = pair[2 * i + 1];
  return TRUE;
}

static void
list_runs (PtoReplay *replay, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  replay->runs = g_new0 (PtoReplayRun, MAX (analysis->n_entries, 1));
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      replay->tasks[i].first_run = replay->n_runs;
      for (guint k = 0; task->core != PTO_TRACE_NOWHERE && k <= task->n_members; k++)
        {
          const PtoTraceEntry *entry = k == 0 ? task : &analysis->tasks[task->first_member + k - 1];
          PtoReplayRun *run = &replay->runs[replay->n_runs++];
          guint cluster, type;

          pto_trace_locate_core (trace, entry->core, &cluster, &type);
          *run = (PtoReplayRun){ i, entry->kernel, type, entry->end - entry->start };
          replay->n_kernels = MAX (replay->n_kernels,
                                   (gint32) entry->kernel < 0 ? 0 : MIN (entry->kernel, 4095) + 1);
        }
      replay->tasks[i].n_runs = replay->n_runs - replay->tasks[i].first_run;
    }
}

/* The task whose completion was the last one seen before that time. */
static guint32
find_completed (const PtoTraceAnalysis *analysis, const guint32 *by_end, guint n, guint64 time)
{
  guint low = 0;
  guint high = n;

  while (low < high)
    {
      guint middle = low + (high - low) / 2;

      if (analysis->tasks[by_end[middle]].complete <= time)
        low = middle + 1;
      else
        high = middle;
    }
  return low > 0 ? by_end[low - 1] : PTO_TRACE_NOWHERE;
}

static gint
compare_completions (gconstpointer a, gconstpointer b, gpointer data)
{
  const PtoTraceEntry *tasks = data;
  guint32 x = *(const guint32 *) a;
  guint32 y = *(const guint32 *) b;

  if (tasks[x].complete != tasks[y].complete)
    return tasks[x].complete < tasks[y].complete ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* Waits of the submitter: for a task ring they are found again, with its size; for anything else it
 * waits until the same task is over. The rest of the time between two submits is its own. */
static void
find_gaps (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autofree guint32 *by_end = g_new (guint32, MAX (analysis->n_tasks, 1));
  guint64 before = 0;
  guint n = 0;
  guint s = 0;

  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].complete != PTO_TRACE_NEVER)
      by_end[n++] = i;
  g_qsort_with_data (by_end, (gint) n, sizeof *by_end, compare_completions, analysis->tasks);
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      PtoReplayTask *task = &replay->tasks[i];
      guint64 submit = analysis->tasks[i].submit;
      guint64 stalled = 0;

      task->awaits = PTO_TRACE_NOWHERE;
      for (; s < analysis->stalls->len; s++)
        {
          const PtoTraceSpan *stall = &g_array_index (analysis->stalls, PtoTraceSpan, s);

          if (stall->start > submit)
            break;
          stalled += MIN (stall->end, submit) - MIN (MAX (stall->start, before), submit);
          if (stall->what >> 8 != PTO_STALL_TASK)
            {
              task->awaits = find_completed (analysis, by_end, n, stall->end);
              task->what = stall->what;
              if (task->awaits != PTO_TRACE_NOWHERE && task->awaits >= i)
                task->awaits = PTO_TRACE_NOWHERE;
            }
          else if ((stall->what & 0xff) < PTO_RINGS)
            {
              guint ring = stall->what & 0xff;
              guint64 live = 1;

              for (guint k = 0; k < analysis->live[ring]->len; k++)
                {
                  const PtoTraceStep *step = &g_array_index (analysis->live[ring], PtoTraceStep, k);

                  if (step->time > stall->start)
                    break;
                  live = step->value + 1;
                }
              /* A ring is full with one slot less than it has. */
              for (replay->windows[ring] = 1; replay->windows[ring] < live;)
                replay->windows[ring] *= 2;
            }
        }
      task->gap = submit - before - MIN (stalled, submit - before);
      before = submit;
    }
}

static void
find_scopes (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  replay->n_scopes = analysis->scopes->len;
  replay->scope_ends = g_new0 (guint32, MAX (replay->n_scopes, 1));
  for (guint i = 0; i < analysis->scopes->len; i++)
    {
      const PtoTraceSpan *scope = &g_array_index (analysis->scopes, PtoTraceSpan, i);
      guint low = 0;
      guint high = analysis->n_tasks;

      while (low < high)
        {
          guint middle = low + (high - low) / 2;

          if (analysis->tasks[middle].submit <= scope->end)
            low = middle + 1;
          else
            high = middle;
        }
      if (scope->number < replay->n_scopes)
        replay->scope_ends[scope->number] = low;
    }
}

static gboolean
refuse (GError **error, const char *message)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, message);
  return FALSE;
}

static gboolean
can_replay (PtoTrace *trace, const PtoTraceAnalysis *analysis, GError **error)
{
  if (pto_trace_is_level (trace))
    return refuse (error, "a run of a chip can be predicted, and this is one of level 3 or up");
  if (trace->topology.recorded != 0 && trace->topology.recorded < PTO_TRACE_LEVEL_GRAPH)
    return refuse (error, "dependencies were not recorded: trace-level must be 3 or 4");
  if (pto_trace_get_dropped (trace) > 0)
    return refuse (error, "records were dropped: set trace-records to more");
  if (analysis->n_failed > 0)
    return refuse (error, "tasks of the run have failed");
  if (analysis->n_tasks == 0)
    return refuse (error, "it has no tasks");
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].n_members > 0 || analysis->tasks[i].block != PTO_TRACE_NOWHERE)
      return refuse (error, "tasks of it run on several cores at once, or in blocks");
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].submit == PTO_TRACE_NEVER
        || (i > 0 && analysis->tasks[i].submit < analysis->tasks[i - 1].submit))
      return refuse (error, "its submits are not all there, in their order");
  return TRUE;
}

PtoReplay *
pto_replay_new (PtoTrace *trace, GError **error)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  PtoReplay *replay;

  if (!can_replay (trace, analysis, error))
    return NULL;
  replay = g_new0 (PtoReplay, 1);
  replay->n_tasks = analysis->n_tasks;
  replay->tasks = g_new0 (PtoReplayTask, (gsize) analysis->n_tasks + 1);
  for (guint r = 0; r < PTO_RINGS; r++)
    replay->windows[r] = PTO_REPLAY_UNLIMITED;
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      replay->tasks[i].ring = MIN (PTO_TASK_RING (analysis->tasks[i].id), PTO_RINGS - 1);
      replay->tasks[i].scope = analysis->tasks[i].scope;
    }
  list_runs (replay, trace, analysis);
  link_tasks (replay, analysis);
  if (!list_users (replay, analysis))
    {
      refuse (error, "tasks of it reduce, or commute, in memory of the runtime: how many copies of "
                     "that there are depends on the chip");
      pto_replay_free (replay);
      return NULL;
    }
  find_gaps (replay, analysis);
  find_scopes (replay, analysis);
  find_costs (replay, trace);
  return replay;
}

void
pto_replay_free (PtoReplay *replay)
{
  g_free (replay->tasks);
  g_free (replay->runs);
  g_free (replay->out);
  g_free (replay->users);
  g_free (replay->scope_ends);
  g_free (replay);
}

/* --- again --- */

enum
{
  IDLE = G_MAXUINT32
};

/* Who does something next, and when. The submitter is 0, then come schedulers, then cores. */
typedef struct
{
  guint64 time;
  guint64 order; /* of those at one time: who was there first */
  guint32 actor;
} Event;

typedef struct
{
  guint32 *items;
  guint head;
  guint tail;
} Queue;

/* What a scheduler does at its event. */
typedef enum
{
  LOOKS,  /* at the next thing */
  POLLS,  /* a core has signalled */
  BEGINS, /* a run is handed to a core */
  N_STEPS
} Step;

typedef struct
{
  Queue signals; /* cores whose run is over: going round, as the next */
  Queue idle[PTO_N_CORE_TYPES];
  guint64 busy; /* ns */
  gboolean is_awake;
  gboolean dispatches; /* signals were all looked at in this pass */
  Step step;
  guint32 run;
  guint32 core;
} Scheduler;

typedef struct
{
  const PtoReplay *replay;
  const PtoReplaySettings *settings;
  PtoReplayResult *result;
  guint64 now;
  Event *heap;
  guint n_events;
  guint64 n_pushed;
  Scheduler *schedulers;
  guint n_cores;
  guint32 *core_scheduler;
  guint32 *core_type;
  guint32 *core_run;             /* IDLE */
  Queue ready[PTO_N_CORE_TYPES]; /* runs */
  guint32 *waits;                /* of tasks: producers that are not over */
  guint32 *runs_left;
  guint8 *is_over;
  guint64 *run_ns;
  /* The submitter. */
  guint next; /* task */
  guint64 waits_since;
  gboolean is_waiting;
  guint target;        /* of live: what it waits for */
  gboolean is_charged; /* its gap */
  /* Tasks of each ring that hold a slot, in their order. */
  Queue live[PTO_RINGS];
} Replay;

static inline gboolean
comes_before (const Event *a, const Event *b)
{
  return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void
push_event (Replay *run, guint64 time, guint32 actor)
{
  Event event = { time, run->n_pushed++, actor };
  guint i = run->n_events++;

  while (i > 0 && comes_before (&event, &run->heap[(i - 1) / 2]))
    {
      run->heap[i] = run->heap[(i - 1) / 2];
      i = (i - 1) / 2;
    }
  run->heap[i] = event;
}

static Event
pop_event (Replay *run)
{
  Event first = run->heap[0];
  Event last = run->heap[--run->n_events];
  guint i = 0;

  for (;;)
    {
      guint child = 2 * i + 1;

      if (child >= run->n_events)
        break;
      if (child + 1 < run->n_events && comes_before (&run->heap[child + 1], &run->heap[child]))
        child++;
      if (!comes_before (&run->heap[child], &last))
        break;
      run->heap[i] = run->heap[child];
      i = child;
    }
  run->heap[i] = last;
  return first;
}

static inline gboolean
is_empty (const Queue *queue)
{
  return queue->head == queue->tail;
}

/* Of cores, each of which is there once at most. */
static inline void
push_core (const Replay *run, Queue *queue, guint32 core)
{
  queue->items[queue->tail] = core;
  queue->tail = queue->tail == run->n_cores ? 0 : queue->tail + 1;
}

static inline guint32
pop_core (const Replay *run, Queue *queue)
{
  guint32 core = queue->items[queue->head];

  queue->head = queue->head == run->n_cores ? 0 : queue->head + 1;
  return core;
}

static void
wake (Replay *run, guint s)
{
  if (run->schedulers[s].is_awake)
    return;
  run->schedulers[s].is_awake = TRUE;
  push_event (run, run->now, 1 + s);
}

/* For what is ready somebody comes who has a free core for it. */
static void
ring (Replay *run, guint32 type)
{
  if (is_empty (&run->ready[type]))
    return;
  for (guint s = 0; s < run->settings->schedulers; s++)
    if (!run->schedulers[s].is_awake && !is_empty (&run->schedulers[s].idle[type]))
      {
        wake (run, s);
        return;
      }
}

/* All of its producers are over. Gives its only run, if that fits a core of that type and nobody
 * took it before; otherwise its runs are queued. */
static guint32
make_ready (Replay *run, guint32 position, guint32 type)
{
  const PtoReplayTask *task = &run->replay->tasks[position];

  if (task->n_runs == 1 && run->replay->runs[task->first_run].type == type)
    return task->first_run;
  for (guint k = 0; k < task->n_runs; k++)
    {
      guint32 of = run->replay->runs[task->first_run + k].type;

      run->ready[of].items[run->ready[of].tail++] = task->first_run + k;
    }
  return IDLE;
}

/* A task is over, and those that only order behind it. Gives a run that follows on a core of that
 * type. */
static guint32
complete (Replay *run, guint32 position, guint32 type, guint64 *n_released)
{
  guint32 next = IDLE;
  guint32 first = run->replay->tasks[position].first_out;
  guint32 end = run->replay->tasks[position + 1].first_out;

  run->is_over[position] = TRUE;
  for (guint32 k = first; k < end; k++)
    {
      guint32 consumer = run->replay->out[k];
      guint32 found;

      run->waits[consumer]--;
      /* Later submits find it over. */
      if (consumer >= run->next)
        continue;
      ++*n_released;
      if (run->waits[consumer] > 0)
        continue;
      if (run->replay->tasks[consumer].n_runs == 0)
        found = complete (run, consumer, next == IDLE ? type : IDLE, n_released);
      else
        found = make_ready (run, consumer, next == IDLE ? type : IDLE);
      if (found != IDLE)
        next = found;
    }
  return next;
}

/* --- the submitter --- */

/* Over, with all who use what it made. */
static gboolean
is_done (const Replay *run, guint32 position)
{
  const PtoReplayTask *task = &run->replay->tasks[position];

  if (!run->is_over[position])
    return FALSE;
  for (guint32 k = task->first_user; k < run->replay->tasks[position + 1].first_user; k++)
    if (run->replay->users[k] < run->next && !run->is_over[run->replay->users[k]])
      return FALSE;
  return TRUE;
}

/* Does an open scope hold it? */
static gboolean
is_held (const Replay *run, guint32 position)
{
  guint32 scope = run->replay->tasks[position].scope;

  return scope > 0 && run->replay->scope_ends[scope - 1] > run->next;
}

/* Is there a slot in a ring? Those that can be had are taken back, oldest first; if there is none,
 * the submitter waits for a quarter of the ring, or for as many as no open scope holds. */
static gboolean
has_room (Replay *run, guint32 ring)
{
  Queue *live = &run->live[ring];
  guint32 window = run->settings->windows[ring];

  if (window == PTO_REPLAY_UNLIMITED || live->tail - live->head < window - 1)
    return TRUE;
  if (run->is_waiting
      && !(is_done (run, live->items[run->target]) && is_done (run, live->items[live->head])))
    return FALSE;
  for (guint head = live->head;; live->head++)
    if (live->head == live->tail || is_held (run, live->items[live->head])
        || !is_done (run, live->items[live->head]))
      {
        if (live->head > head)
          return TRUE;
        break;
      }
  for (run->target = live->head; run->target + 1 < live->tail
                                 && run->target + 1 - live->head < window / 4
                                 && !is_held (run, live->items[run->target + 1]);)
    run->target++;
  return FALSE;
}

static void
submit (Replay *run)
{
  const PtoReplay *replay = run->replay;

  while (run->next < replay->n_tasks)
    {
      const PtoReplayTask *task = &replay->tasks[run->next];
      guint32 position = run->next;
      guint64 released = 0;
      gboolean waits_for_task;

      if (!run->is_charged)
        {
          run->is_charged = TRUE;
          run->result->submitter += task->gap;
          if (task->gap > 0)
            {
              push_event (run, run->now + task->gap, 0);
              return;
            }
        }
      waits_for_task = task->awaits != PTO_TRACE_NOWHERE && !run->is_over[task->awaits];
      if (waits_for_task || !has_room (run, task->ring))
        {
          if (!run->is_waiting)
            run->waits_since = run->now;
          run->is_waiting = TRUE;
          return;
        }
      if (run->is_waiting)
        {
          if (task->awaits != PTO_TRACE_NOWHERE)
            {
              run->result->awaited += run->now - run->waits_since;
              run->result->awaited_what = task->what;
            }
          else
            run->result->stalled[task->ring] += run->now - run->waits_since;
        }
      run->is_waiting = run->is_charged = FALSE;
      run->live[task->ring].items[run->live[task->ring].tail++] = position;
      run->next++;
      if (run->waits[position] > 0)
        continue;
      if (task->n_runs == 0)
        complete (run, position, IDLE, &released);
      else
        make_ready (run, position, IDLE);
      for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
        ring (run, type);
    }
}

static void
tell_submitter (Replay *run)
{
  if (run->is_waiting)
    submit (run);
}

/* --- schedulers and cores --- */

/* Goes on at that time. */
static void
go_on (Replay *run, guint s, Step step, guint64 after)
{
  run->schedulers[s].step = step;
  run->schedulers[s].busy += after;
  push_event (run, run->now + after, 1 + s);
}

static void
begin (Replay *run, const Scheduler *scheduler)
{
  run->core_run[scheduler->core] = scheduler->run;
  push_event (run,
              run->now + run->replay->start + run->run_ns[scheduler->run] + run->replay->finish,
              1 + run->settings->schedulers + scheduler->core);
}

/* The core that has signalled is looked at: what follows runs there, or it is idle. */
static void
finish (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];
  guint32 core = scheduler->core;
  guint32 position = run->replay->runs[run->core_run[core]].task;
  guint64 released = 0;
  guint32 next = IDLE;

  run->core_run[core] = IDLE;
  if (--run->runs_left[position] == 0)
    {
      next = complete (run, position, run->core_type[core], &released);
      tell_submitter (run);
    }
  scheduler->run = next;
  if (next == IDLE)
    push_core (run, &scheduler->idle[run->core_type[core]], core);
  go_on (run, s, next != IDLE ? BEGINS : LOOKS,
         released * run->replay->fanout + (next != IDLE ? run->replay->dispatch : 0));
}

/* In passes: all that has signalled, then all that is ready, as long as there are cores. */
static void
schedule (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];

  if (scheduler->step == POLLS)
    {
      finish (run, s);
      return;
    }
  if (scheduler->step == BEGINS)
    begin (run, scheduler);
  scheduler->step = LOOKS;
  do
    {
      if (!scheduler->dispatches && !is_empty (&scheduler->signals))
        {
          scheduler->core = pop_core (run, &scheduler->signals);
          go_on (run, s, POLLS, run->replay->poll);
          return;
        }
      scheduler->dispatches = TRUE;
      for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
        if (!is_empty (&run->ready[type]) && !is_empty (&scheduler->idle[type]))
          {
            scheduler->run = run->ready[type].items[run->ready[type].head++];
            scheduler->core = pop_core (run, &scheduler->idle[type]);
            go_on (run, s, BEGINS, run->replay->dispatch);
            return;
          }
      scheduler->dispatches = FALSE;
      for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
        ring (run, type);
    }
  while (!is_empty (&scheduler->signals));
  scheduler->is_awake = FALSE;
}

static void
end_run (Replay *run, guint32 core)
{
  guint s = run->core_scheduler[core];
  Scheduler *scheduler = &run->schedulers[s];

  run->result->makespan = MAX (run->result->makespan, run->now - run->replay->finish);
  push_core (run, &scheduler->signals, core);
  wake (run, s);
}

/* --- all of it --- */

static void
prepare_cores (Replay *run, PtoTrace *trace)
{
  guint aic = trace->topology.aic_per_cluster;
  guint per_cluster = MAX (aic + trace->topology.aiv_per_cluster, 1);
  guint n_schedulers = run->settings->schedulers;

  run->n_cores = run->settings->clusters * per_cluster;
  run->core_scheduler = g_new (guint32, run->n_cores);
  run->core_type = g_new (guint32, run->n_cores);
  run->core_run = g_new (guint32, run->n_cores);
  run->schedulers = g_new0 (Scheduler, n_schedulers);
  for (guint s = 0; s < n_schedulers; s++)
    {
      Scheduler *scheduler = &run->schedulers[s];
      guint first = run->settings->clusters * s / n_schedulers;
      guint end = run->settings->clusters * (s + 1) / n_schedulers;

      scheduler->run = IDLE;
      scheduler->signals.items = g_new (guint32, (gsize) run->n_cores + 1);
      for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
        scheduler->idle[t].items = g_new (guint32, (gsize) run->n_cores + 1);
      for (guint c = first * per_cluster; c < end * per_cluster; c++)
        {
          Queue *idle;

          run->core_scheduler[c] = s;
          run->core_run[c] = IDLE;
          run->core_type[c] = c % per_cluster < aic ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
          idle = &scheduler->idle[run->core_type[c]];
          push_core (run, idle, c);
        }
    }
}

/* How long what runs takes now, the longest chain of that, and what each type of core has to do. */
static void
weigh (Replay *run, PtoTrace *trace)
{
  const PtoReplay *replay = run->replay;
  g_autofree guint64 *ends = g_new0 (guint64, replay->n_tasks);
  guint n_cores[PTO_N_CORE_TYPES]
      = { [PTO_CORE_TYPE_AIC] = run->settings->clusters * trace->topology.aic_per_cluster,
          [PTO_CORE_TYPE_AIV] = run->settings->clusters * trace->topology.aiv_per_cluster };

  for (guint i = 0; i < replay->n_runs; i++)
    {
      const PtoReplayRun *recorded = &replay->runs[i];
      guint64 time = recorded->ns;

      if (recorded->kernel < replay->n_kernels)
        time = run->settings->times[recorded->kernel] != PTO_TRACE_NEVER
                   ? run->settings->times[recorded->kernel]
                   : (guint64) ((double) time * run->settings->factors[recorded->kernel] + 0.5);
      run->run_ns[i] = time;
      run->result->work[recorded->type] += time;
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    run->result->work[t] /= MAX (n_cores[t], 1);
  /* Producers are submitted before, but for edges of commuting tasks: these are left out. */
  for (guint i = 0; i < replay->n_tasks; i++)
    {
      guint64 longest = 0;

      for (guint k = 0; k < replay->tasks[i].n_runs; k++)
        longest = MAX (longest, run->run_ns[replay->tasks[i].first_run + k]);
      ends[i] += longest;
      run->result->critical_path = MAX (run->result->critical_path, ends[i]);
      for (guint32 k = replay->tasks[i].first_out; k < replay->tasks[i + 1].first_out; k++)
        if (replay->out[k] > i)
          ends[replay->out[k]] = MAX (ends[replay->out[k]], ends[i]);
    }
}

void
pto_replay_run (const PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
                PtoReplayResult *result)
{
  Replay run = { .replay = replay, .settings = settings, .result = result };

  *result = (PtoReplayResult){ 0 };
  prepare_cores (&run, trace);
  run.heap = g_new (Event, (gsize) run.n_cores + settings->schedulers + 4);
  run.waits = g_new (guint32, replay->n_tasks);
  run.runs_left = g_new (guint32, replay->n_tasks);
  run.is_over = g_new0 (guint8, replay->n_tasks);
  run.run_ns = g_new (guint64, MAX (replay->n_runs, 1));
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    run.ready[t].items = g_new (guint32, MAX (replay->n_runs, 1));
  for (guint r = 0; r < PTO_RINGS; r++)
    run.live[r].items = g_new (guint32, replay->n_tasks);
  for (guint i = 0; i < replay->n_tasks; i++)
    {
      run.waits[i] = replay->tasks[i].n_producers;
      run.runs_left[i] = replay->tasks[i].n_runs;
    }
  weigh (&run, trace);

  push_event (&run, 0, 0);
  while (run.n_events > 0)
    {
      Event event = pop_event (&run);

      run.now = event.time;
      if (event.actor == 0)
        submit (&run);
      else if (event.actor <= settings->schedulers)
        schedule (&run, event.actor - 1);
      else
        end_run (&run, event.actor - 1 - settings->schedulers);
    }
  if (run.next < replay->n_tasks)
    {
      result->is_stuck = TRUE;
      result->stuck_ring = replay->tasks[run.next].ring;
    }
  for (guint s = 0; s < settings->schedulers; s++)
    {
      result->scheduler = MAX (result->scheduler, run.schedulers[s].busy);
      g_free (run.schedulers[s].signals.items);
      for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
        g_free (run.schedulers[s].idle[t].items);
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    g_free (run.ready[t].items);
  for (guint r = 0; r < PTO_RINGS; r++)
    g_free (run.live[r].items);
  g_free (run.schedulers);
  g_free (run.core_scheduler);
  g_free (run.core_type);
  g_free (run.core_run);
  g_free (run.heap);
  g_free (run.waits);
  g_free (run.runs_left);
  g_free (run.is_over);
  g_free (run.run_ns);
}
