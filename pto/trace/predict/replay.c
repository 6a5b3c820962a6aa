/* replay.c: what of a record is needed to run its graph again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks, their edges, what they run and for how long, where that is to be, what the orchestration
 * did between two submits, and what the chip's own steps take.
 */
#include "config.h"

#include "core/bits.h"

#include "base/error.h"
#include "common/text.h"
#include "replay-sets.h"

#include <string.h>

/* --- what was recorded --- */

/* On a virtual clock the least, which is what it costs where nothing is waited for; on a wall clock
 * what is usual. */
static guint64
get_usual (GArray *times, gboolean is_virtual)
{
  if (times->len == 0)
    return 0;
  g_array_sort (times, pto_trace_compare_times);
  return g_array_index (times, guint64, is_virtual ? 0 : times->len / 4);
}

static void
add_time (GArray *times, guint64 from, guint64 to)
{
  guint64 time = to - from;

  if (from != PTO_TRACE_NEVER && to != PTO_TRACE_NEVER && to >= from)
    g_array_append_val (times, time);
}

/* As the record says; FALSE: it does not. */
static gboolean
read_costs (PtoReplay *replay, PtoTrace *trace)
{
  guint n = 0;

  for (guint64 i = trace->starts[0];
       n < PTO_TRACE_N_COSTS && i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];

      if (record->kind != PTO_TRACE_COST || record->detail != n)
        return FALSE;
      replay->costs[n++] = record->extra;
    }
  return n == PTO_TRACE_N_COSTS;
}

static void
find_costs (PtoReplay *replay, PtoTrace *trace)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  g_autofree guint32 *n_consumers = NULL;
  guint64 *costs = replay->costs;
  guint64 *begin = &costs[PTO_TRACE_COST_DISPATCH];
  guint64 *each = &costs[PTO_TRACE_COST_FANOUT];
  gboolean is_virtual = trace->topology.virtual_clock;
  g_autoptr (GArray) dispatch = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) start = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) finish = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) fanout = g_array_new (FALSE, FALSE, sizeof (guint64));
  guint64 over;

  if (read_costs (replay, trace))
    return;
  n_consumers = g_new0 (guint32, replay->n_tasks);
  for (guint i = 0; i < replay->edges->len; i++)
    n_consumers[pto_replay_pair (replay->edges, i)->task]++;
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
               && n_consumers[task->last_producer] == 1)
        add_time (fanout, task->ready, task->dispatch);
    }
  over = get_usual (finish, is_virtual);
  costs[PTO_TRACE_COST_START] = get_usual (start, is_virtual);
  costs[PTO_TRACE_COST_POLL] = over / 6;
  costs[PTO_TRACE_COST_FINISH] = over - over / 6;
  *begin = get_usual (dispatch, is_virtual);
  *each = get_usual (fanout, is_virtual);
  if (*begin == 0 || *begin > *each)
    *begin = *each * 10 / 13;
  *each -= MIN (*each, *begin);
}

static void
list_edges (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  for (guint i = 0; i < analysis->n_deps; i++)
    if (analysis->deps[i].producer_index != PTO_TRACE_NOWHERE)
      pto_replay_add_pair (replay->edges, analysis->deps[i].producer_index,
                           analysis->deps[i].consumer);
  replay->n_edges = replay->edges->len;
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
  return pto_trace_compare_times (a, b);
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
  Made *other;

  *item = (Made){ arg->word, arg->word + MAX (pto_trace_arg_bytes (arg), 1), arg->task };
  /* What was there has been given back. */
  while ((other = find_made (made, item->end - 1)) != NULL && other->end > item->begin)
    g_tree_remove (made, other);
  g_tree_insert (made, item, item);
}

/* Who keeps which slot: at level 4 all who are given memory that its task has made; otherwise, as
 * far as is known, its consumers. */
static void
list_users (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GTree) made = g_tree_new_full (compare_made, NULL, g_free, NULL);

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
      if (item != NULL && arg->word < item->end && item->task < arg->task)
        pto_replay_add_pair (replay->users, item->task, arg->task);
    }
  if (analysis->n_args == 0)
    g_array_append_vals (replay->users, replay->edges->data, replay->edges->len);
}

static gboolean refuse (GError **error, const char *message);

/* --- runs, and where they are to be --- */

/* Does it say of itself how its parts are to be placed? */
static gboolean
is_in_parts (const PtoTraceEntry *task)
{
  return task->n_members > 0 || task->block != PTO_TRACE_NOWHERE;
}

static void
add_parts (PtoReplay *replay, const struct pto_trace_record *record, guint32 position,
           const guint32 *holders, guint n_clusters)
{
  guint32 cluster = PTO_TRACE_PARTS_COHORT (record->extra);
  guint32 nowhere = PTO_TRACE_NOWHERE;
  PtoReplayParts item = { .task = position,
                          .n_blocks = (guint32) MIN (record->time, G_MAXINT32),
                          .n_members = PTO_TRACE_PARTS_MEMBERS (record->extra),
                          .block = MAX (PTO_TRACE_PARTS_BLOCK (record->extra), 1),
                          .hold = cluster < n_clusters ? holders[cluster] : PTO_TRACE_NOWHERE,
                          .first_member = replay->names->len,
                          .together = PTO_TRACE_PARTS_TOGETHER (record->extra) };

  for (guint32 m = 0; m < item.n_members; m++)
    g_array_append_val (replay->names, nowhere);
  replay->tasks[position].parts = replay->parts->len;
  replay->tasks[position].flags |= PTO_REPLAY_PARTS;
  g_array_append_val (replay->parts, item);
}

/* Once, by task. */
static void
add_claim (PtoReplay *replay, guint32 task, guint32 token)
{
  GArray *claims = replay->claims;

  for (guint k = claims->len; k-- > 0 && pto_replay_pair (claims, k)->task == task;)
    if (pto_replay_pair (claims, k)->other == token)
      return;
  replay->n_commuting += (replay->tasks[task].flags & PTO_REPLAY_CLAIMS) == 0;
  replay->tasks[task].flags |= PTO_REPLAY_CLAIMS;
  replay->n_tokens = MAX (replay->n_tokens, token + 1);
  pto_replay_add_pair (claims, task, token);
}

/* What the orchestrator said besides, in the order of its records. */
static void
read_wishes (PtoReplay *replay, PtoTrace *trace)
{
  guint n_clusters = MAX (trace->topology.n_clusters, 1);
  g_autofree guint32 *holders = g_new (guint32, n_clusters);
  guint32 position = 0; /* of the next submit */

  memset (holders, 0xff, n_clusters * sizeof *holders);
  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint32 cluster = (guint32) record->extra;

      if (record->kind == PTO_TRACE_SUBMIT && position < replay->n_tasks)
        position++;
      else if (record->kind == PTO_TRACE_PARTS && position > 0)
        add_parts (replay, record, position - 1, holders, n_clusters);
      else if (record->kind == PTO_TRACE_PLACE && replay->parts->len > 0)
        {
          const PtoReplayParts *last
              = &g_array_index (replay->parts, PtoReplayParts, replay->parts->len - 1);

          if (record->detail < last->n_members)
            g_array_index (replay->names, guint32, last->first_member + record->detail) = cluster;
        }
      else if (record->kind == PTO_TRACE_CLAIM && position > 0)
        add_claim (replay, position - 1, (guint32) (record->extra % G_MAXUINT16));
      else if (record->kind == PTO_TRACE_HOLD && cluster < n_clusters)
        {
          PtoReplayHold hold = { position, holders[cluster], record->detail != 0 };

          if (hold.held)
            hold.hold = holders[cluster] = replay->n_held++;
          else
            holders[cluster] = PTO_TRACE_NOWHERE;
          if (hold.hold != PTO_TRACE_NOWHERE)
            g_array_append_val (replay->holds, hold);
        }
    }
}

/* Of a record that has arguments and does not say who takes turns: those that update what begins at
 * one address. */
static void
guess_claims (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GHashTable) tokens = g_hash_table_new (g_int64_hash, g_int64_equal);

  if (replay->claims->len > 0)
    return;
  for (guint a = 0; a < analysis->n_args; a++)
    {
      const PtoTraceArg *arg = &analysis->args[a];
      gpointer token;

      if (arg->type != PTO_PARAM_COMMUTATIVE)
        continue;
      if (!g_hash_table_lookup_extended (tokens, &arg->word, NULL, &token))
        {
          token = GUINT_TO_POINTER (replay->n_tokens);
          g_hash_table_insert (tokens, (gpointer) &arg->word, token);
        }
      add_claim (replay, arg->task, GPOINTER_TO_UINT (token));
    }
}

/* Where a run of a task stands among its runs; PTO_TRACE_NOWHERE: nowhere, by what the task says.
 */
static guint32
place_run (const PtoReplay *replay, const PtoReplayTask *task, const PtoTraceEntry *entry)
{
  const PtoReplayParts *parts;
  guint64 at;

  if ((task->flags & PTO_REPLAY_PARTS) == 0)
    return entry->block == PTO_TRACE_NOWHERE ? 0 : PTO_TRACE_NOWHERE;
  parts = pto_replay_parts (replay, task);
  if (parts->n_members == 0)
    at = entry->block;
  else
    /* Of those that begin at once each member's block is its own. */
    at = (guint64) entry->block * parts->block / parts->n_members * parts->n_members
         + entry->member;
  return at < task->n_runs ? (guint32) at : PTO_TRACE_NOWHERE;
}

static gboolean
list_runs (PtoReplay *replay, PtoTrace *trace, const PtoTraceAnalysis *analysis, guint64 **starts,
           GError **error)
{
  guint64 n_runs = 0;

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *entry = &analysis->tasks[i];
      PtoReplayTask *task = &replay->tasks[i];
      const PtoReplayParts *parts
          = (task->flags & PTO_REPLAY_PARTS) != 0 ? pto_replay_parts (replay, task) : NULL;

      if (is_in_parts (entry) && parts == NULL)
        return refuse (error, _ ("tasks of it run in several parts, and the record is of a version "
                                 "that did not say where these are to be: record it again"));
      task->n_runs = entry->core != PTO_TRACE_NOWHERE ? entry->n_members + 1 : 0;
      /* It has a kernel, which did not run. */
      if (task->n_runs == 0 && entry->kernel < PTO_TRACE_ALLOC
          && entry->core_type < PTO_N_CORE_TYPES)
        {
          task->flags |= PTO_REPLAY_OFF;
          task->n_runs = 1;
        }
      else if (parts != NULL && task->n_runs != parts->n_blocks * MAX (parts->n_members, 1))
        return refuse (error, _ ("parts of its tasks are not in the record"));
      task->first_run = (guint32) n_runs;
      n_runs += task->n_runs;
    }
  replay->n_runs = (guint) n_runs;
  replay->runs = g_new0 (PtoReplayRun, MAX (n_runs, 1));
  *starts = g_new0 (guint64, MAX (n_runs, 1));
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *entry = &analysis->tasks[i];
      const PtoReplayTask *task = &replay->tasks[i];

      if ((task->flags & PTO_REPLAY_OFF) != 0)
        {
          replay->runs[task->first_run]
              = (PtoReplayRun){ .task = i, .kernel = G_MAXUINT32, .type = entry->core_type };
          continue;
        }
      for (guint k = 0; k < task->n_runs; k++)
        {
          const PtoTraceEntry *part
              = k == 0 ? entry : &analysis->tasks[entry->first_member + k - 1];
          guint32 at = place_run (replay, task, part);
          guint cluster, type;

          if (at == PTO_TRACE_NOWHERE)
            return refuse (error,
                           _ ("parts of its tasks are not those that their submits ask for"));
          pto_trace_locate_core (trace, part->core, &cluster, &type);
          replay->runs[task->first_run + at]
              = (PtoReplayRun){ .task = i,
                                .kernel = part->kernel,
                                .type = type,
                                .ns = part->end - part->start - part->waited,
                                .waited = part->waited };
          (*starts)[task->first_run + at] = part->start;
          replay->n_kernels = MAX (replay->n_kernels,
                                   (gint32) part->kernel < 0 ? 0 : MIN (part->kernel, 4095) + 1);
        }
    }
  return TRUE;
}

/* --- kernels that wait for each other --- */

typedef struct
{
  guint32 hold;
  guint32 run;
  guint64 start;
} HeldRun;

static gint
compare_held (gconstpointer a, gconstpointer b)
{
  const HeldRun *x = a;
  const HeldRun *y = b;

  if (x->hold != y->hold)
    return x->hold < y->hold ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->run < y->run ? -1 : x->run > y->run;
}

/* n runs from that one on, if one of them waited. At a barrier all do; at a pipe those that did. */
static void
add_meeting (PtoReplay *replay, const guint64 *starts, guint32 first, guint32 n,
             gboolean is_barrier)
{
  PtoReplayMeeting meeting = { replay->meets->len, n };
  gboolean waits = FALSE;
  guint64 last = 0;

  for (guint32 r = first; r < first + n; r++)
    {
      waits = waits || replay->runs[r].waited > 0;
      last = MAX (last, starts[r]);
    }
  if (!waits || n < 2)
    return;
  for (guint32 r = first; r < first + n; r++)
    {
      PtoReplayMeet meet = { r, replay->meetings->len, is_barrier || replay->runs[r].waited > 0,
                             replay->runs[r].waited, last - starts[r] };

      g_array_append_val (replay->meets, meet);
      replay->runs[r].waited = 0;
    }
  g_array_append_val (replay->meetings, meeting);
}

/* Tasks in a cluster of the orchestration's own share its pipes: who waited there did so for the
 * last one that began meanwhile. */
static void
add_partners (PtoReplay *replay, GArray *held)
{
  const HeldRun *runs = (const HeldRun *) (void *) held->data;

  g_array_sort (held, compare_held);
  for (guint i = 0; i < held->len; i++)
    {
      PtoReplayRun *run = &replay->runs[runs[i].run];
      guint partner = i;

      for (guint k = i + 1; run->waited > 0 && k < held->len && runs[k].hold == runs[i].hold
                            && runs[k].start <= runs[i].start + run->waited;
           k++)
        partner = k;
      if (partner != i)
        {
          PtoReplayMeeting meeting = { replay->meets->len, 2 };
          PtoReplayMeet both[] = { { runs[i].run, replay->meetings->len, TRUE, run->waited,
                                     runs[partner].start - runs[i].start },
                                   { runs[partner].run, replay->meetings->len, FALSE, 0, 0 } };

          g_array_append_vals (replay->meets, both, 2);
          g_array_append_val (replay->meetings, meeting);
          run->waited = 0;
        }
    }
}

static void
find_meetings (PtoReplay *replay, const guint64 *starts)
{
  g_autoptr (GArray) held = g_array_new (FALSE, FALSE, sizeof (HeldRun));
  guint32 *first_meet;

  for (guint p = 0; p < replay->parts->len; p++)
    {
      const PtoReplayParts *parts = &g_array_index (replay->parts, PtoReplayParts, p);
      const PtoReplayTask *task = &replay->tasks[parts->task];

      for (guint32 b = 0; parts->n_members > 1 && b < parts->n_blocks; b++)
        add_meeting (replay, starts, task->first_run + b * parts->n_members, parts->n_members,
                     parts->n_members > parts->block);
      for (guint32 r = 0; parts->hold != PTO_TRACE_NOWHERE && r < task->n_runs; r++)
        {
          HeldRun item = { parts->hold, task->first_run + r, starts[task->first_run + r] };

          g_array_append_val (held, item);
        }
    }
  add_partners (replay, held);
  if (replay->meetings->len == 0)
    return;
  replay->first_meet = first_meet = g_new0 (guint32, (gsize) replay->n_runs + 2);
  replay->run_meets = g_new (guint32, replay->meets->len);
  for (guint i = 0; i < replay->meets->len; i++)
    first_meet[g_array_index (replay->meets, PtoReplayMeet, i).run + 2]++;
  for (guint r = 2; r < replay->n_runs + 2; r++)
    first_meet[r] += first_meet[r - 1];
  for (guint i = 0; i < replay->meets->len; i++)
    replay->run_meets[first_meet[g_array_index (replay->meets, PtoReplayMeet, i).run + 1]++] = i;
}

/* --- what the orchestration did --- */

/* When a task was seen to be over. */
typedef struct
{
  guint64 time;
  guint32 task;
} Completion;

/* The task whose completion was the last one seen before that time. */
static guint32
find_completed (const GArray *completions, guint64 time)
{
  guint low
      = pto_bisect (i, completions->len, g_array_index (completions, Completion, i).time <= time);

  return low > 0 ? g_array_index (completions, Completion, low - 1).task : PTO_TRACE_NOWHERE;
}

/* Waits of the submitter: for a task ring they are found again, with its size; for anything else it
 * waits until the same task is over. The rest of the time between two submits is its own. */
static void
find_gaps (PtoReplay *replay, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) completions = g_array_new (FALSE, FALSE, sizeof (Completion));
  guint64 before = 0;
  guint s = 0;

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      Completion completion = { analysis->tasks[i].complete, i };

      if (completion.time != PTO_TRACE_NEVER)
        g_array_append_val (completions, completion);
    }
  g_array_sort (completions, pto_trace_compare_times);
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      PtoReplayTask *task = &replay->tasks[i];
      guint64 submit = analysis->tasks[i].submit;
      guint64 stalled = 0;

      task->awaits = PTO_TRACE_NOWHERE;
      for (; s < analysis->stalls->len; s++)
        {
          const PtoTraceSpan *stall = &g_array_index (analysis->stalls, PtoTraceSpan, s);

          /* What begins at that moment comes before the next one. */
          if (stall->start >= submit)
            break;
          stalled += MIN (stall->end, submit) - MIN (MAX (stall->start, before), submit);
          /* That one waits for a cluster is found again. */
          if (stall->what >> 8 == PTO_STALL_COHORT && replay->holds->len > 0)
            continue;
          if (stall->what >> 8 != PTO_STALL_TASK)
            {
              task->awaits = find_completed (completions, stall->end);
              task->what = stall->what;
              if (task->awaits != PTO_TRACE_NOWHERE && task->awaits >= i)
                task->awaits = PTO_TRACE_NOWHERE;
            }
          else if ((stall->what & 0xff) < PTO_RINGS)
            {
              guint ring = stall->what & 0xff;
              const GArray *live = analysis->live[ring];
              guint at = pto_bisect (k, live->len,
                                     g_array_index (live, PtoTraceStep, k).time <= stall->start);

              /* A ring is full with one slot less than it has. */
              replay->windows[ring] = power_of_two_at_least (
                  at > 0 ? g_array_index (live, PtoTraceStep, at - 1).value + 1 : 1);
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
      guint low = pto_bisect (k, analysis->n_tasks, analysis->tasks[k].submit <= scope->end);

      if (scope->number < replay->n_scopes)
        replay->scope_ends[scope->number] = low;
    }
}

static gboolean
refuse (GError **error, const char *message)
{
  return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "%s", message);
}

static gboolean
can_replay (PtoTrace *trace, const PtoTraceAnalysis *analysis, GError **error)
{
  if (pto_trace_is_level (trace))
    return refuse (error, _ ("a run of a chip can be predicted, and this is one of level 3 or up"));
  if (trace->topology.recorded != 0 && trace->topology.recorded < PTO_TRACE_LEVEL_GRAPH)
    return refuse (error, _ ("dependencies were not recorded: trace-level must be 3 or 4"));
  if (pto_trace_get_dropped (trace) > 0)
    return refuse (error, _ ("records were dropped: set trace-records to more"));
  if (analysis->n_failed > 0)
    return refuse (error, _ ("tasks of the run have failed"));
  if (analysis->n_tasks == 0)
    return refuse (error, _ ("it has no tasks"));
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].submit == PTO_TRACE_NEVER
        || (i > 0 && analysis->tasks[i].submit < analysis->tasks[i - 1].submit))
      return refuse (error, _ ("its submits are not all there, in their order"));
  return TRUE;
}

void
pto_replay_count_cores (PtoTrace *trace, guint clusters, guint *n_cores)
{
  n_cores[PTO_CORE_TYPE_AIC] = clusters * trace->topology.aic_per_cluster;
  n_cores[PTO_CORE_TYPE_AIV] = clusters * trace->topology.aiv_per_cluster;
}

PtoReplay *
pto_replay_new (PtoTrace *trace, GError **error)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  g_autofree guint64 *starts = NULL;
  guint n_cores[PTO_N_CORE_TYPES];
  PtoReplay *replay;

  if (!can_replay (trace, analysis, error))
    return NULL;
  replay = g_new0 (PtoReplay, 1);
  replay->n_tasks = analysis->n_tasks;
  replay->tasks = g_new0 (PtoReplayTask, analysis->n_tasks);
  replay->edges = g_array_new (FALSE, FALSE, sizeof (PtoReplayPair));
  replay->users = g_array_new (FALSE, FALSE, sizeof (PtoReplayPair));
  replay->claims = g_array_new (FALSE, FALSE, sizeof (PtoReplayPair));
  replay->parts = g_array_new (FALSE, FALSE, sizeof (PtoReplayParts));
  replay->names = g_array_new (FALSE, FALSE, sizeof (guint32));
  replay->holds = g_array_new (FALSE, FALSE, sizeof (PtoReplayHold));
  replay->meetings = g_array_new (FALSE, FALSE, sizeof (PtoReplayMeeting));
  replay->meets = g_array_new (FALSE, FALSE, sizeof (PtoReplayMeet));
  for (guint r = 0; r < PTO_RINGS; r++)
    replay->windows[r] = PTO_REPLAY_UNLIMITED;
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      PtoReplayTask *task = &replay->tasks[i];

      task->ring = (guint8) MIN (PTO_TASK_RING (analysis->tasks[i].id), PTO_RINGS - 1);
      task->scope = analysis->tasks[i].scope;
      task->terms.priority = MIN (analysis->tasks[i].terms.priority, PTO_MAX_PRIORITY);
    }
  read_wishes (replay, trace);
  if (!list_runs (replay, trace, analysis, &starts, error))
    {
      pto_replay_free (replay);
      return NULL;
    }
  guess_claims (replay, analysis);
  find_meetings (replay, starts);
  list_edges (replay, analysis);
  list_users (replay, analysis);
  find_gaps (replay, analysis);
  find_scopes (replay, analysis);
  find_costs (replay, trace);
  pto_replay_count_cores (trace, trace->topology.n_clusters, n_cores);
  pto_replay_sets_read (replay, trace, n_cores);
  return replay;
}

void
pto_replay_free (PtoReplay *replay)
{
  GArray *const arrays[] = { replay->edges, replay->users, replay->claims,   replay->parts,
                             replay->names, replay->holds, replay->meetings, replay->meets };

  g_free (replay->tasks);
  g_free (replay->runs);
  g_free (replay->scope_ends);
  g_free (replay->first_meet);
  g_free (replay->run_meets);
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    g_array_unref (arrays[i]);
  g_clear_pointer (&replay->engine, pto_replay_engine_free);
  g_clear_pointer (&replay->sets, g_ptr_array_unref);
  g_free (replay);
}
