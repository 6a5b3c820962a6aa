/* critical-path.c: what do the records say about tasks, cores and rings?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One pass over all buffers makes a table of tasks; everything else is derived from that table.
 * Records may be missing (a buffer was full, the run failed): whatever is not there is
 * PTO_TRACE_NEVER and is left out of what needs it.
 */
#include "config.h"

#include "core/bits.h"

#include "trace.h"

/* Whose end made a task ready. */
typedef struct
{
  guint32 task; /* its position in the table */
  guint64 producer;
} Last;

/* A DEP record on its way into the table: sorted by consumer, then in order of submit. */
typedef struct
{
  guint32 consumer;
  guint32 order;
  guint64 producer;
  guint32 kinds;
} Edge;

/* A part of a task, or several that a core was given at once. */
typedef struct
{
  guint32 task; /* its position in the table */
  guint32 core;
  guint32 scheduler;
  guint32 member;
  gboolean is_taken; /* a part has it */
  guint64 time;
} Dispatch;

/* Where a member of a group, or a part of a task, ran; task: its position in the table. */
typedef struct
{
  guint32 task;
  guint32 core;
  guint32 kernel;
  guint32 block; /* PTO_TRACE_NOWHERE: it is no part */
  guint64 start;
  guint64 end;
  guint64 waited;
} Member;

/* What is read of the records. */
typedef struct
{
  PtoTrace *trace;
  PtoTraceAnalysis *analysis;
  GArray *tasks;      /* PtoTraceEntry */
  GHashTable *index;  /* id -> position in tasks */
  GArray *edges;      /* Edge */
  GArray *members;    /* Member */
  GArray *dispatches; /* Dispatch */
  GArray *lasts;      /* Last */
} Reader;

guint32
pto_trace_find_position (GHashTable *index, guint64 id)
{
  gpointer position;

  return g_hash_table_lookup_extended (index, &id, NULL, &position) ? GPOINTER_TO_UINT (position)
                                                                    : PTO_TRACE_NOWHERE;
}

static PtoTraceEntry *
get_task (const Reader *reader, guint32 position)
{
  return &g_array_index (reader->tasks, PtoTraceEntry, position);
}

/* The position of a task, which is there from now on. */
static guint32
find_or_add (Reader *reader, guint64 id)
{
  guint32 position = pto_trace_find_position (reader->index, id);
  PtoTraceEntry task = {
    .id = id,
    .submit = PTO_TRACE_NEVER,
    .submit_end = PTO_TRACE_NEVER,
    .ready = PTO_TRACE_NEVER,
    .dispatch = PTO_TRACE_NEVER,
    .ack = PTO_TRACE_NEVER,
    .start = PTO_TRACE_NEVER,
    .end = PTO_TRACE_NEVER,
    .complete = PTO_TRACE_NEVER,
    .retire = PTO_TRACE_NEVER,
    .kernel = PTO_TRACE_UNKNOWN,
    .core = PTO_TRACE_NOWHERE,
    .scheduler = PTO_TRACE_NOWHERE,
    .cause = PTO_TRACE_NOWHERE,
    .last_producer = PTO_TRACE_NOWHERE,
    .file = PTO_TRACE_NOWHERE,
    .core_type = PTO_N_CORE_TYPES,
    .block = PTO_TRACE_NOWHERE,
  };

  if (position != PTO_TRACE_NOWHERE)
    return position;
  g_hash_table_insert (reader->index, g_memdup2 (&id, sizeof id),
                       GUINT_TO_POINTER (reader->tasks->len));
  g_array_append_val (reader->tasks, task);
  return reader->tasks->len - 1;
}

static gint
compare_dispatches (gconstpointer a, gconstpointer b)
{
  const Dispatch *x = a;
  const Dispatch *y = b;

  return 4 * pto_trace_order (x->task, y->task) + 2 * pto_trace_order (x->core, y->core)
         + pto_trace_order (x->time, y->time);
}

/* The last one there before it began: each part has the dispatch of its own range. */
static void
find_dispatch (GArray *dispatches, guint32 position, PtoTraceEntry *entry)
{
  Dispatch wanted = { position, entry->core, 0, 0, FALSE, entry->start };
  guint low
      = pto_bisect (i, dispatches->len,
                    compare_dispatches (&g_array_index (dispatches, Dispatch, i), &wanted) <= 0);
  Dispatch *found;

  entry->dispatch = entry->ack = PTO_TRACE_NEVER;
  if (low == 0)
    return;
  found = &g_array_index (dispatches, Dispatch, low - 1);
  if (found->task != position || found->core != entry->core)
    return;
  entry->dispatch = found->time;
  entry->scheduler = found->scheduler;
  entry->member = found->member;
  entry->shares_dispatch = found->is_taken;
  found->is_taken = TRUE;
}

static gint
compare_edges (gconstpointer a, gconstpointer b)
{
  const Edge *x = a;
  const Edge *y = b;

  return 2 * pto_trace_order (x->consumer, y->consumer) + pto_trace_order (x->order, y->order);
}

typedef struct
{
  guint64 time;
  gint change;
} Change;

static gint
compare_changes (gconstpointer a, gconstpointer b)
{
  const Change *x = a;
  const Change *y = b;

  return x->time != y->time ? pto_trace_order (x->time, y->time) : y->change - x->change;
}

GArray *
pto_trace_changes_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (Change));
}

void
pto_trace_add_change (GArray *changes, guint64 time, gint change)
{
  Change item = { time, change };

  g_array_append_val (changes, item);
}

GArray *
pto_trace_integrate (GArray *changes)
{
  GArray *steps = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
  gint64 value = 0;

  g_array_sort (changes, compare_changes);
  for (guint i = 0; i < changes->len; i++)
    {
      const Change *change = &g_array_index (changes, Change, i);

      value += change->change;
      /* The last change of a moment decides; clocks of two threads may disagree by a moment. */
      if (i + 1 == changes->len || g_array_index (changes, Change, i + 1).time != change->time)
        pto_trace_add_step (steps, change->time, (guint64) MAX (value, 0));
    }
  g_array_unref (changes);
  return steps;
}

void
pto_trace_add_step (GArray *steps, guint64 time, guint64 value)
{
  PtoTraceStep step = { time, value };
  PtoTraceStep *last = steps->len > 0 ? &g_array_index (steps, PtoTraceStep, steps->len - 1) : NULL;

  if (last != NULL && last->value == value)
    return;
  if (last != NULL && last->time >= time)
    last->value = value;
  else
    g_array_append_val (steps, step);
}

static gint
compare_spans (gconstpointer a, gconstpointer b)
{
  const PtoTraceSpan *x = a;
  const PtoTraceSpan *y = b;

  return 8 * pto_trace_order (x->start, y->start) + 4 * pto_trace_order (x->number, y->number)
         + 2 * pto_trace_order (y->end, x->end) + pto_trace_order (x->what, y->what);
}

static gint
compare_runs (gconstpointer a, gconstpointer b, gpointer data)
{
  const PtoTraceEntry *tasks = data;
  const PtoTraceEntry *x = &tasks[*(const guint32 *) a];
  const PtoTraceEntry *y = &tasks[*(const guint32 *) b];

  return 4 * pto_trace_order (x->start, y->start) + 2 * pto_trace_order (x->end, y->end)
         + pto_trace_order (x->id, y->id);
}

static void
read_source (PtoTrace *trace, guint64 extra, guint32 *file, guint32 *line)
{
  guint32 number = PTO_TRACE_FILE (extra);

  *file = number > 0 && number <= trace->n_files ? number - 1 : PTO_TRACE_NOWHERE;
  *line = *file != PTO_TRACE_NOWHERE ? PTO_TRACE_LINE (extra) : 0;
}

/* Opens and closes scopes in the order of the orchestrator's records. What is still open when the
 * records end is open until the last one. */
static void
read_scopes (Reader *reader)
{
  PtoTraceAnalysis *analysis = reader->analysis;
  PtoTrace *trace = reader->trace;
  GArray *changes = pto_trace_changes_new ();
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint64 time = record->time - analysis->first;

      /* By their order: a scope may begin the moment that one before it ends. */
      if (record->kind == PTO_TRACE_SUBMIT && open->len > 0)
        get_task (reader, find_or_add (reader, record->task))->scope
            = 1 + g_array_index (open, guint, open->len - 1);
      if (record->kind != PTO_TRACE_SCOPE)
        continue;
      if ((record->extra & 1) != 0)
        {
          PtoTraceSpan span = { .start = time, .end = analysis->last, .what = record->detail };
          guint position = analysis->scopes->len;

          span.number = position;
          read_source (trace, record->extra, &span.file, &span.line);
          g_array_append_val (analysis->scopes, span);
          g_array_append_val (open, position);
          pto_trace_add_change (changes, time, 1);
        }
      else if (open->len > 0)
        {
          guint position = g_array_index (open, guint, open->len - 1);

          g_array_index (analysis->scopes, PtoTraceSpan, position).end = time;
          g_array_set_size (open, open->len - 1);
          pto_trace_add_change (changes, time, -1);
        }
    }
  analysis->depth = pto_trace_integrate (changes);
}

static void
read_occupancy (PtoTraceAnalysis *analysis, PtoTrace *trace)
{
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      analysis->heap[r] = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
      analysis->edges[r] = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
    }
  analysis->nodes = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint64 time = record->time - analysis->first;

      if (record->kind != PTO_TRACE_OCCUPANCY || record->detail >= PTO_RINGS)
        continue;
      pto_trace_add_step (analysis->heap[record->detail], time, record->task);
      pto_trace_add_step (analysis->edges[record->detail], time, record->extra >> 32);
      pto_trace_add_step (analysis->nodes, time, record->extra & 0xffffffffu);
    }
}

/* A task ran once, but for one of several members: of them the table has the one that ends last. */
static void
read_run (Reader *reader, const Member *run)
{
  PtoTraceEntry *task = get_task (reader, run->task);
  Member other
      = { run->task, task->core, task->kernel, task->block, task->start, task->end, task->waited };

  if (other.core == PTO_TRACE_NOWHERE || run->end >= other.end)
    {
      task->core = run->core;
      task->kernel = run->kernel;
      task->block = run->block;
      task->start = run->start;
      task->end = run->end;
      task->waited = run->waited;
    }
  else
    other = *run;
  if (other.core != PTO_TRACE_NOWHERE)
    g_array_append_val (reader->members, other);
}

/* Those behind the first were submitted before: a record of more than there are is none of ours. */
static void
read_retired (Reader *reader, const struct pto_trace_record *record, guint64 time,
              guint64 *n_retired)
{
  *n_retired += record->detail;
  if (*n_retired >= reader->tasks->len)
    return;
  for (guint i = 1; i <= record->detail; i++)
    {
      guint32 position
          = pto_trace_find_position (reader->index, PTO_TRACE_RETIRED (record->task, i));

      if (position != PTO_TRACE_NOWHERE)
        get_task (reader, position)->retire = time;
    }
}

static void
read_records (Reader *reader)
{
  PtoTrace *trace = reader->trace;
  guint n_schedulers = trace->topology.n_schedulers;
  guint64 first = reader->analysis->first;
  const guint32 of_tasks = 1u << PTO_TRACE_SUBMIT | 1u << PTO_TRACE_DEP | 1u << PTO_TRACE_READY
                           | 1u << PTO_TRACE_DISPATCH | 1u << PTO_TRACE_ACK | 1u << PTO_TRACE_RUN
                           | 1u << PTO_TRACE_COMPLETE | 1u << PTO_TRACE_RETIRE;
  const struct pto_trace_record *part = NULL;
  const struct pto_trace_record *wait = NULL;
  guint64 n_retired = 0;

  for (guint b = 0; b < trace->n_buffers; b++)
    for (guint64 i = trace->starts[b]; i < trace->starts[b + 1]; i++)
      {
        const struct pto_trace_record *record = &trace->records[i];
        guint64 time = record->time - first;
        guint32 position = PTO_TRACE_NOWHERE;
        PtoTraceEntry *task = NULL;

        if (record->kind < 32 && (of_tasks & 1u << record->kind) != 0)
          {
            position = find_or_add (reader, record->task);
            task = get_task (reader, position);
          }
        switch (record->kind)
          {
          case PTO_TRACE_SUBMIT:
            task->submit = task->submit_end = time;
            task->kernel = record->detail;
            /* Of a level there is one kind of ready tasks. */
            task->core_type = pto_trace_is_level (trace) ? 0 : (guint8) (record->extra & 0xff);
            task->terms.priority = PTO_TRACE_PRIORITY (record->extra);
            read_source (trace, record->extra, &task->file, &task->line);
            break;
          case PTO_TRACE_DEP:
            {
              Edge edge = { position, reader->edges->len, record->extra, record->detail };

              if (task->submit == PTO_TRACE_NEVER || time > task->submit_end)
                task->submit_end = time;
              g_array_append_val (reader->edges, edge);
              break;
            }
          case PTO_TRACE_READY:
            task->ready = time;
            /* Its id, until all tasks are in the table. */
            if (record->detail == 1)
              {
                Last last = { position, record->extra };

                g_array_append_val (reader->lasts, last);
              }
            break;
          case PTO_TRACE_DISPATCH:
            task->dispatch = time;
            if (b >= 1 && b <= n_schedulers)
              {
                Dispatch dispatch = { .task = position,
                                      .core = record->detail,
                                      .scheduler = b - 1,
                                      .member = (guint32) (record->extra >> 32),
                                      .time = time };

                task->scheduler = b - 1;
                g_array_append_val (reader->dispatches, dispatch);
              }
            break;
          case PTO_TRACE_ACK:
            task->ack = time;
            break;
          case PTO_TRACE_RUN:
            if (record->detail < trace->topology.n_cores && record->extra >= record->time)
              {
                Member run = { .task = position,
                               .core = record->detail,
                               .kernel = task->kernel,
                               .block = PTO_TRACE_NOWHERE,
                               .start = time,
                               .end = record->extra - first };

                if (part != NULL && part->task == record->task && part->time == record->time)
                  {
                    run.kernel = part->detail;
                    run.block = (guint32) part->extra;
                  }
                /* A core has every task once, but for its parts: of two records of it the last
                 * counts. */
                else if (!pto_trace_is_level (trace) && task->core == record->detail)
                  task->core = PTO_TRACE_NOWHERE;
                if (wait != NULL && wait->task == record->task && wait->time == record->time)
                  run.waited = MIN (wait->extra, run.end - run.start);
                read_run (reader, &run);
              }
            part = wait = NULL;
            break;
          case PTO_TRACE_WAIT:
            wait = record;
            break;
          case PTO_TRACE_PART:
            part = record;
            break;
          case PTO_TRACE_COMPLETE:
            task->complete = time;
            if (record->extra == 1)
              task->failed = 1;
            break;
          case PTO_TRACE_RETIRE:
            task->retire = time;
            read_retired (reader, record, time, &n_retired);
            break;
          case PTO_TRACE_STALL:
            {
              PtoTraceSpan span = { .start = time,
                                    .end = MAX (record->extra, record->time) - first,
                                    .what = record->detail,
                                    .file = PTO_TRACE_NOWHERE };

              g_array_append_val (reader->analysis->stalls, span);
              break;
            }
          default:
            break;
          }
      }
}

/* Sorts the edges by consumer and merges those that name one producer more than once. */
static void
link_edges (const Reader *reader)
{
  PtoTraceAnalysis *analysis = reader->analysis;

  analysis->deps = g_new (PtoTraceDep, MAX (reader->edges->len, 1));
  g_array_sort (reader->edges, compare_edges);
  for (guint i = 0; i < reader->edges->len; i++)
    {
      const Edge *edge = &g_array_index (reader->edges, Edge, i);
      PtoTraceEntry *task = &analysis->tasks[edge->consumer];
      PtoTraceDep *dep = NULL;

      if (task->n_deps == 0)
        task->first_dep = analysis->n_deps;
      for (guint k = 0; k < task->n_deps && dep == NULL; k++)
        if (analysis->deps[task->first_dep + k].producer == edge->producer)
          dep = &analysis->deps[task->first_dep + k];
      if (dep != NULL)
        {
          dep->kinds |= edge->kinds;
          continue;
        }
      analysis->deps[analysis->n_deps++]
          = (PtoTraceDep){ .consumer = edge->consumer,
                           .producer = edge->producer,
                           .producer_index
                           = pto_trace_find_position (reader->index, edge->producer),
                           .kinds = edge->kinds,
                           .consumer_arg = PTO_TRACE_NOWHERE,
                           .producer_arg = PTO_TRACE_NOWHERE };
      task->n_deps++;
    }
}

static void
link_lasts (const Reader *reader)
{
  for (guint i = 0; i < reader->lasts->len; i++)
    {
      const Last *last = &g_array_index (reader->lasts, Last, i);

      reader->analysis->tasks[last->task].last_producer
          = pto_trace_find_position (reader->index, last->producer);
    }
}

static gint
compare_members (gconstpointer a, gconstpointer b)
{
  const Member *x = a;
  const Member *y = b;

  return 4 * pto_trace_order (x->task, y->task) + 2 * pto_trace_order (x->start, y->start)
         + pto_trace_order (x->core, y->core);
}

static void
add_members (const Reader *reader)
{
  PtoTraceAnalysis *analysis = reader->analysis;
  GArray *members = reader->members;
  GArray *dispatches = reader->dispatches;

  g_array_sort (members, compare_members);
  g_array_sort (dispatches, compare_dispatches);
  analysis->n_entries = analysis->n_tasks + members->len;
  analysis->tasks = g_renew (PtoTraceEntry, analysis->tasks, MAX (analysis->n_entries, 1));
  for (guint i = 0; i < members->len; i++)
    {
      const Member *member = &g_array_index (members, Member, i);
      PtoTraceEntry *entry = &analysis->tasks[analysis->n_tasks + i];
      PtoTraceEntry *task = &analysis->tasks[member->task];

      if (task->n_members++ == 0)
        task->first_member = analysis->n_tasks + i;
      *entry = *task;
      entry->n_members = 0;
      entry->core = member->core;
      entry->kernel = member->kernel;
      entry->block = member->block;
      entry->start = member->start;
      entry->end = member->end;
      entry->waited = member->waited;
      if (entry->block != PTO_TRACE_NOWHERE)
        find_dispatch (dispatches, member->task, entry);
    }
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].block != PTO_TRACE_NOWHERE)
      find_dispatch (dispatches, i, &analysis->tasks[i]);
}

static void
sort_runs (PtoTraceAnalysis *analysis)
{
  guint n_cores = analysis->n_cores;

  analysis->core_runs = g_new0 (guint32 *, MAX (n_cores, 1));
  analysis->n_core_runs = g_new0 (guint, MAX (n_cores, 1));
  analysis->core_busy = g_new0 (guint64, MAX (n_cores, 1));

  for (guint i = 0; i < analysis->n_entries; i++)
    if (analysis->tasks[i].core != PTO_TRACE_NOWHERE)
      analysis->n_core_runs[analysis->tasks[i].core]++;
  for (guint c = 0; c < n_cores; c++)
    {
      analysis->core_runs[c] = g_new (guint32, MAX (analysis->n_core_runs[c], 1));
      analysis->n_core_runs[c] = 0;
    }
  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->core == PTO_TRACE_NOWHERE)
        continue;
      analysis->core_runs[task->core][analysis->n_core_runs[task->core]++] = i;
      analysis->core_busy[task->core] += task->end - task->start - task->waited;
    }
  for (guint c = 0; c < n_cores; c++)
    g_qsort_with_data (analysis->core_runs[c], (gint) analysis->n_core_runs[c], sizeof (guint32),
                       compare_runs, analysis->tasks);
}

/* Who has run, where a consumer names this one: itself; or, since it ran nothing and was over with
 * its producers, the last of these to end. */
static guint32
stand_in_of (const PtoTraceAnalysis *analysis, const guint32 *stand_ins, guint32 position)
{
  const PtoTraceEntry *task = &analysis->tasks[position];
  guint32 best = PTO_TRACE_NOWHERE;

  if (task->end != PTO_TRACE_NEVER)
    return position;
  for (guint k = 0; k < task->n_deps; k++)
    {
      guint32 other = analysis->deps[task->first_dep + k].producer_index;

      /* Producers are submitted before. */
      if (other == PTO_TRACE_NOWHERE || other >= position || stand_ins[other] == PTO_TRACE_NOWHERE)
        continue;
      other = stand_ins[other];
      if (best == PTO_TRACE_NOWHERE || analysis->tasks[other].end > analysis->tasks[best].end)
        best = other;
    }
  return best;
}

/* What kept a task from starting earlier: the producer that ended last; or the task before it on
 * its core, if the core was still busy when the task was ready; or, when all of them had ended
 * before it was submitted, the submitter: PTO_TRACE_NOWHERE. */
static guint32
find_cause (PtoTraceAnalysis *analysis, const guint32 *stand_ins, guint32 position,
            guint32 before_on_core)
{
  const PtoTraceEntry *task = &analysis->tasks[position];
  guint32 best = PTO_TRACE_NOWHERE;
  guint64 ready = task->ready != PTO_TRACE_NEVER ? task->ready : task->submit;

  for (guint k = 0; k <= task->n_deps; k++)
    {
      gboolean is_dep = k < task->n_deps;
      guint32 other = is_dep ? analysis->deps[task->first_dep + k].producer_index : before_on_core;
      const PtoTraceEntry *candidate;

      if (is_dep && other != PTO_TRACE_NOWHERE)
        other = stand_ins[other];
      if (other == PTO_TRACE_NOWHERE)
        continue;
      candidate = &analysis->tasks[other];
      if (candidate->end == PTO_TRACE_NEVER || candidate->end > task->start || candidate->critical)
        continue;
      if (!is_dep && ready != PTO_TRACE_NEVER && candidate->end < ready)
        continue;
      /* A producer wins over the core's last task: it is what the program says. */
      if (best == PTO_TRACE_NOWHERE || candidate->end > analysis->tasks[best].end)
        best = other;
    }
  if (best != PTO_TRACE_NOWHERE && task->submit != PTO_TRACE_NEVER
      && analysis->tasks[best].end < task->submit)
    return PTO_TRACE_NOWHERE;
  return best;
}

static guint
count_tasks (const PtoTraceAnalysis *analysis, const GArray *path)
{
  g_autoptr (GHashTable) ids = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint i = 0; i < path->len; i++)
    g_hash_table_add (ids, &analysis->tasks[g_array_index (path, guint32, i)].id);
  return g_hash_table_size (ids);
}

/* From the task that ended last, cause by cause, back to one that the submitter was late with. Each
 * step goes back in time. */
static void
find_critical_path (PtoTraceAnalysis *analysis)
{
  g_autofree guint32 *before = g_new (guint32, MAX (analysis->n_entries, 1));
  g_autofree guint32 *stand_ins = g_new (guint32, MAX (analysis->n_entries, 1));
  g_autoptr (GArray) path = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint32 at = PTO_TRACE_NOWHERE;

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      before[i] = PTO_TRACE_NOWHERE;
      stand_ins[i] = stand_in_of (analysis, stand_ins, i);
      if (analysis->tasks[i].end != PTO_TRACE_NEVER
          && (at == PTO_TRACE_NOWHERE || analysis->tasks[i].end > analysis->tasks[at].end))
        at = i;
    }
  for (guint c = 0; c < analysis->n_cores; c++)
    for (guint i = 1; i < analysis->n_core_runs[c]; i++)
      before[analysis->core_runs[c][i]] = analysis->core_runs[c][i - 1];

  while (at != PTO_TRACE_NOWHERE)
    {
      PtoTraceEntry *task = &analysis->tasks[at];

      task->critical = 1;
      analysis->critical_run_ns += task->end - task->start;
      g_array_append_val (path, at);
      at = task->cause = find_cause (analysis, stand_ins, at, before[at]);
    }

  analysis->n_critical = path->len;
  analysis->n_critical_tasks = count_tasks (analysis, path);
  analysis->critical = g_new (guint32, MAX (path->len, 1));
  for (guint i = 0; i < path->len; i++)
    analysis->critical[i] = g_array_index (path, guint32, path->len - 1 - i);
  if (path->len > 0)
    {
      const PtoTraceEntry *first = &analysis->tasks[analysis->critical[0]];

      analysis->critical_ns = analysis->tasks[analysis->critical[path->len - 1]].end - first->start;
      analysis->critical_submit = first->submit != PTO_TRACE_NEVER ? first->submit : 0;
    }
}

static void
make_charts (PtoTraceAnalysis *analysis)
{
  GArray *ready[PTO_N_CORE_TYPES];
  GArray *live[PTO_RINGS];

  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    ready[t] = pto_trace_changes_new ();
  for (guint r = 0; r < PTO_RINGS; r++)
    live[r] = pto_trace_changes_new ();

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];
      guint32 ring = PTO_TASK_RING (task->id);
      guint64 taken = MIN (task->dispatch, task->start);

      if (task->submit != PTO_TRACE_NEVER && ring < PTO_RINGS)
        {
          pto_trace_add_change (live[ring], task->submit, 1);
          if (task->retire != PTO_TRACE_NEVER)
            pto_trace_add_change (live[ring], MAX (task->retire, task->submit), -1);
          analysis->rings = MAX (analysis->rings, ring + 1);
        }
      /* A task without kernel completes the moment that it is ready. */
      if (task->core_type < PTO_N_CORE_TYPES && task->ready != PTO_TRACE_NEVER
          && taken != PTO_TRACE_NEVER)
        {
          pto_trace_add_change (ready[task->core_type], MIN (task->ready, taken), 1);
          pto_trace_add_change (ready[task->core_type], taken, -1);
        }
      analysis->n_failed += task->failed;
    }

  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    analysis->ready[t] = pto_trace_integrate (ready[t]);
  for (guint r = 0; r < PTO_RINGS; r++)
    analysis->live[r] = pto_trace_integrate (live[r]);
}

PtoTraceAnalysis *
pto_trace_analysis_new (PtoTrace *trace)
{
  PtoTraceAnalysis *analysis = g_new0 (PtoTraceAnalysis, 1);
  g_autoptr (GArray) edges = g_array_new (FALSE, FALSE, sizeof (Edge));
  g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (Member));
  g_autoptr (GArray) dispatches = g_array_new (FALSE, FALSE, sizeof (Dispatch));
  g_autoptr (GArray) lasts = g_array_new (FALSE, FALSE, sizeof (Last));
  g_autoptr (GHashTable) index = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  Reader reader = { .trace = trace,
                    .analysis = analysis,
                    .tasks = g_array_new (FALSE, FALSE, sizeof (PtoTraceEntry)),
                    .index = index,
                    .edges = edges,
                    .members = members,
                    .dispatches = dispatches,
                    .lasts = lasts };
  guint64 n_records = trace->starts[trace->n_buffers];

  analysis->first = n_records > 0 ? G_MAXUINT64 : 0;
  for (guint64 i = 0; i < n_records; i++)
    if (!PTO_TRACE_IS_WORDS (trace->records[i].kind))
      analysis->first = MIN (analysis->first, trace->records[i].time);
  for (guint64 i = 0; i < n_records; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint64 time = record->time;

      if (PTO_TRACE_IS_WORDS (record->kind))
        continue;
      if (PTO_TRACE_HAS_END (record->kind))
        time = MAX (time, record->extra);
      analysis->last = MAX (analysis->last, time - analysis->first);
    }

  analysis->scopes = g_array_new (FALSE, FALSE, sizeof (PtoTraceSpan));
  analysis->stalls = g_array_new (FALSE, FALSE, sizeof (PtoTraceSpan));
  read_records (&reader);
  read_scopes (&reader);
  read_occupancy (analysis, trace);
  pto_trace_read_transfers (analysis, trace);
  g_array_sort (analysis->scopes, compare_spans);
  g_array_sort (analysis->stalls, compare_spans);

  analysis->n_tasks = reader.tasks->len;
  analysis->tasks = (PtoTraceEntry *) (void *) g_array_free (reader.tasks, FALSE);
  link_edges (&reader);
  link_lasts (&reader);
  pto_trace_read_args (analysis, trace, index);
  add_members (&reader);
  analysis->n_cores = trace->topology.n_cores;
  sort_runs (analysis);
  pto_trace_find_full (analysis, trace);
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->end != PTO_TRACE_NEVER)
        analysis->elapsed = MAX (analysis->elapsed, task->end);
    }
  if (analysis->elapsed == 0)
    analysis->elapsed = analysis->last;
  find_critical_path (analysis);
  make_charts (analysis);
  pto_trace_link_pieces (analysis, trace);
  return analysis;
}

void
pto_trace_analysis_free (PtoTraceAnalysis *analysis)
{
  if (analysis == NULL)
    return;
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      g_array_unref (analysis->ready[t]);
      g_array_unref (analysis->full[t]);
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      g_array_unref (analysis->live[r]);
      g_array_unref (analysis->heap[r]);
      g_array_unref (analysis->edges[r]);
    }
  g_array_unref (analysis->nodes);
  g_array_unref (analysis->transfers);
  for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
    g_array_unref (analysis->moved[i]);
  g_array_unref (analysis->depth);
  g_array_unref (analysis->scopes);
  g_array_unref (analysis->stalls);
  for (guint c = 0; c < analysis->n_cores; c++)
    g_free (analysis->core_runs[c]);
  g_free (analysis->core_runs);
  g_free (analysis->n_core_runs);
  g_free (analysis->core_busy);
  g_free (analysis->critical);
  g_free (analysis->piece_entries);
  g_free (analysis->deps);
  g_free (analysis->args);
  g_free (analysis->tasks);
  g_free (analysis);
}

static void
append_dimensions (GString *text, const PtoTraceArg *arg, const guint64 *dimensions)
{
  g_string_append_c (text, '[');
  for (guint d = 0; d < arg->n_dims; d++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "", dimensions[d]);
  g_string_append_c (text, ']');
}

void
pto_trace_print_argument (GString *text, const PtoTraceArg *arg)
{
  static const char *const types[]
      = { "input", "output",      "inout",   "existing output", "no dependency",
          "",      "commutative", "scratch", "reduction" };

  g_string_printf (text, "%u: ", arg->index);
  if (arg->type == PTO_PARAM_SCALAR)
    {
      g_string_append_printf (text, "%" G_GUINT64_FORMAT, arg->word);
      return;
    }
  g_string_append_printf (text, "%s %s ", arg->type < G_N_ELEMENTS (types) ? types[arg->type] : "?",
                          arg->dtype < PTO_DTYPE_COUNT ? pto_dtype_name ((DataType) arg->dtype)
                                                       : "?");
  append_dimensions (text, arg, arg->shape);
  g_string_append (text, " strides ");
  append_dimensions (text, arg, arg->strides);
  g_string_append_printf (text, " at 0x%" G_GINT64_MODIFIER "x", arg->word);
}
