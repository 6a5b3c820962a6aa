/* synthetic-trace.c: how does a test get the records of a run without a run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "synthetic-trace.h"

#include <stdarg.h>

enum
{
  SUBMIT_NS = 140,
  SCOPE_NS = 40, /* between the end of a scope and the first submit of the next */
  DISPATCH_NS = 60,
  START_NS = 30,
  FINISH_NS = 25,
  EPOCH_NS = 1000000 /* no clock starts at 0 */
};

typedef struct
{
  guint64 id;
  guint64 cost;
  guint kernel;
  guint core_type;
  guint depth;
  guint scope; /* tasks with one number share their innermost scope */
  guint ring;
  guint first_dep;
  guint n_deps;
  guint pending;
  gboolean submitted;
  gboolean done;
} Task;

struct _SyntheticGraph
{
  GArray *tasks; /* Task */
  GArray *deps;  /* guint */
  guint depth;
  guint scope;
  guint next[PTO_RINGS];
};

const char *const synthetic_attention_kernels[5] = { "QK", "SF", "PV", "UP", "HUB" };

SyntheticGraph *
synthetic_graph_new (void)
{
  SyntheticGraph *graph = g_new0 (SyntheticGraph, 1);

  graph->tasks = g_array_new (FALSE, TRUE, sizeof (Task));
  graph->deps = g_array_new (FALSE, TRUE, sizeof (guint));
  return graph;
}

void
synthetic_graph_free (SyntheticGraph *graph)
{
  g_array_unref (graph->tasks);
  g_array_unref (graph->deps);
  g_free (graph);
}

void
synthetic_graph_set_depth (SyntheticGraph *graph, guint depth)
{
  graph->depth = depth;
  graph->scope++;
}

guint
synthetic_graph_add (SyntheticGraph *graph, guint kernel, guint core_type, guint64 cost_ns,
                     guint n_deps, ...)
{
  Task task = { .cost = cost_ns,
                .kernel = kernel,
                .core_type = core_type,
                .depth = graph->depth,
                .scope = graph->scope,
                .ring = MIN (graph->depth, PTO_RINGS - 1),
                .first_dep = graph->deps->len,
                .n_deps = n_deps };
  va_list list;

  va_start (list, n_deps);
  for (guint i = 0; i < n_deps; i++)
    {
      guint dep = va_arg (list, guint);

      g_assert_cmpuint (dep, <, graph->tasks->len);
      g_array_append_val (graph->deps, dep);
    }
  va_end (list);
  task.id = PTO_TASK_ID (task.ring, graph->next[task.ring]++);
  g_array_append_val (graph->tasks, task);
  return graph->tasks->len - 1;
}

guint
synthetic_graph_length (SyntheticGraph *graph)
{
  return graph->tasks->len;
}

guint64
synthetic_graph_get_id (SyntheticGraph *graph, guint task)
{
  return g_array_index (graph->tasks, Task, task).id;
}

SyntheticGraph *
synthetic_graph_new_attention (guint chunks, guint blocks)
{
  SyntheticGraph *graph = synthetic_graph_new ();
  enum
  {
    QK,
    SF,
    PV,
    UP,
    HUB
  };

  for (guint c = 0; c < chunks; c++)
    {
      /* Costs differ a little from chunk to chunk, as those of real sequences do. */
      guint64 more = (c * 37) % 11 * 90;
      guint last;

      synthetic_graph_set_depth (graph, 1);
      last = synthetic_graph_add (graph, HUB, PTO_CORE_TYPE_AIV, 700, 0);
      for (guint b = 0; b < blocks; b++)
        {
          guint qk = synthetic_graph_add (graph, QK, PTO_CORE_TYPE_AIC, 4200 + more, 0);
          guint sf = synthetic_graph_add (graph, SF, PTO_CORE_TYPE_AIV, 3100 + more, 1, qk);
          guint pv = synthetic_graph_add (graph, PV, PTO_CORE_TYPE_AIC, 3900 + more, 1, sf);

          last = synthetic_graph_add (graph, UP, PTO_CORE_TYPE_AIV, 1500 + more / 2, 3, sf, pv,
                                      last);
        }
    }
  return graph;
}

void
synthetic_topology (struct pto_trace_topology *topology, guint n_clusters)
{
  *topology = (struct pto_trace_topology){ .n_schedulers = 3,
                                           .n_cores = 3 * n_clusters,
                                           .n_clusters = n_clusters,
                                           .aic_per_cluster = 1,
                                           .aiv_per_cluster = 2,
                                           .virtual_clock = true,
                                           .counter_hz = 50000000 };
}

/* What is on its way: everything that changes from event to event. */
typedef struct
{
  SyntheticGraph *graph;
  const struct pto_trace_topology *topology;
  GArray **buffers; /* struct pto_trace_record */
  GQueue *ready[PTO_N_CORE_TYPES];
  guint64 *core_end; /* G_MAXUINT64: idle */
  guint *core_task;
  guint64 *scheduler_free;
  guint retired[PTO_RINGS];
  guint live[PTO_RINGS];
} Run;

static void
record (Run *run, guint buffer, guint32 kind, guint64 time, guint64 task, guint32 detail,
        guint64 extra)
{
  struct pto_trace_record item = { time, task, kind, detail, extra };

  g_array_append_val (run->buffers[buffer], item);
}

static Task *
task_at (Run *run, guint position)
{
  return &g_array_index (run->graph->tasks, Task, position);
}

/* last: whose end it waited for; NULL: nobody's. */
static void
make_ready (Run *run, guint buffer, guint position, guint64 now, const Task *last)
{
  Task *task = task_at (run, position);

  record (run, buffer, PTO_TRACE_READY, now, task->id, last != NULL, last != NULL ? last->id : 0);
  g_queue_push_tail (run->ready[task->core_type], GUINT_TO_POINTER (position));
}

static guint
core_type (Run *run, guint core)
{
  guint per_cluster = run->topology->aic_per_cluster + run->topology->aiv_per_cluster;

  return core % per_cluster < run->topology->aic_per_cluster ? PTO_CORE_TYPE_AIC
                                                             : PTO_CORE_TYPE_AIV;
}

static guint
scheduler_of (Run *run, guint core)
{
  guint per_cluster = run->topology->aic_per_cluster + run->topology->aiv_per_cluster;

  return core / per_cluster % run->topology->n_schedulers;
}

static void
dispatch (Run *run, guint64 now)
{
  for (guint c = 0; c < run->topology->n_cores; c++)
    {
      GQueue *ready = run->ready[core_type (run, c)];
      guint s = scheduler_of (run, c);
      guint64 time, start;
      Task *task;

      if (run->core_end[c] != G_MAXUINT64 || g_queue_is_empty (ready))
        continue;
      run->core_task[c] = GPOINTER_TO_UINT (g_queue_pop_head (ready));
      task = task_at (run, run->core_task[c]);
      time = MAX (now, run->scheduler_free[s]);
      run->scheduler_free[s] = time + DISPATCH_NS;
      start = time + DISPATCH_NS + START_NS;
      record (run, 1 + s, PTO_TRACE_DISPATCH, time, task->id, c, 1);
      record (run, 1 + run->topology->n_schedulers + c, PTO_TRACE_ACK, start, task->id, c, 1);
      record (run, 1 + run->topology->n_schedulers + c, PTO_TRACE_RUN, start, task->id, c,
              start + task->cost);
      run->core_end[c] = start + task->cost + FINISH_NS;
    }
}

static void
complete (Run *run, guint core, guint64 now)
{
  guint position = run->core_task[core];
  guint s = scheduler_of (run, core);
  GArray *tasks = run->graph->tasks;

  run->core_end[core] = G_MAXUINT64;
  task_at (run, position)->done = TRUE;
  record (run, 1 + s, PTO_TRACE_COMPLETE, now, task_at (run, position)->id, core, 0);
  for (guint i = position + 1; i < tasks->len; i++)
    {
      Task *consumer = task_at (run, i);

      if (!consumer->submitted)
        break;
      for (guint k = 0; k < consumer->n_deps; k++)
        if (g_array_index (run->graph->deps, guint, consumer->first_dep + k) == position
            && --consumer->pending == 0)
          make_ready (run, 1 + s, i, now, task_at (run, position));
    }
  /* In order, ring by ring. */
  for (guint r = 0; r < PTO_RINGS; r++)
    for (guint i = run->retired[r]; i < tasks->len; i++)
      {
        Task *task = task_at (run, i);

        if (task->ring == r && !task->done)
          break;
        if (task->ring == r)
          {
            record (run, 0, PTO_TRACE_RETIRE, now, task->id, 0, 0);
            run->live[r]--;
          }
        run->retired[r] = i + 1;
      }
}

static void
submit (Run *run, guint position, guint *depth, guint64 now)
{
  Task *task = task_at (run, position);

  if (position > 0 && task_at (run, position - 1)->scope != task->scope)
    for (; *depth > 0 && *depth >= task->depth; (*depth)--)
      record (run, 0, PTO_TRACE_SCOPE, now - SCOPE_NS, PTO_TASK_NONE, *depth, 0);
  for (; *depth < task->depth; (*depth)++)
    record (run, 0, PTO_TRACE_SCOPE, now, PTO_TASK_NONE, *depth + 1, 1);
  record (run, 0, PTO_TRACE_SUBMIT, now, task->id, task->kernel,
          (guint64) task->ring << 8 | task->core_type);
  run->live[task->ring]++;
  task->submitted = TRUE;
  for (guint k = 0; k < task->n_deps; k++)
    {
      guint dep = g_array_index (run->graph->deps, guint, task->first_dep + k);

      record (run, 0, PTO_TRACE_DEP, now + 10 * (k + 1), task->id, PTO_HAZARD_RAW,
              task_at (run, dep)->id);
      if (!task_at (run, dep)->done)
        task->pending++;
    }
  if (task->pending == 0)
    make_ready (run, 0, position, now + 10 * (task->n_deps + 1), NULL);
}

struct pto_trace *
synthetic_graph_run (SyntheticGraph *graph, const struct pto_trace_topology *topology, guint window)
{
  struct pto_trace *records = g_new0 (struct pto_trace, 1);
  guint n_buffers = 1 + topology->n_schedulers + topology->n_cores;
  Run run = { .graph = graph, .topology = topology };
  guint64 now = EPOCH_NS, next_submit = EPOCH_NS, stalled_since = G_MAXUINT64;
  guint next = 0, depth = 0;

  run.buffers = g_new (GArray *, n_buffers);
  for (guint b = 0; b < n_buffers; b++)
    run.buffers[b] = g_array_new (FALSE, FALSE, sizeof (struct pto_trace_record));
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    run.ready[t] = g_queue_new ();
  run.core_end = g_new (guint64, topology->n_cores);
  run.core_task = g_new0 (guint, topology->n_cores);
  run.scheduler_free = g_new0 (guint64, topology->n_schedulers);
  for (guint c = 0; c < topology->n_cores; c++)
    run.core_end[c] = G_MAXUINT64;
  for (guint i = 0; i < graph->tasks->len; i++)
    {
      task_at (&run, i)->submitted = task_at (&run, i)->done = FALSE;
      task_at (&run, i)->pending = 0;
    }

  for (;;)
    {
      gboolean full = next < graph->tasks->len && run.live[task_at (&run, next)->ring] >= window;
      guint64 earliest = next < graph->tasks->len && !full ? MAX (next_submit, now) : G_MAXUINT64;
      guint core = G_MAXUINT;

      if (full && stalled_since == G_MAXUINT64)
        stalled_since = MAX (next_submit, now);
      for (guint c = 0; c < topology->n_cores; c++)
        if (run.core_end[c] < earliest)
          {
            earliest = run.core_end[c];
            core = c;
          }
      if (earliest == G_MAXUINT64)
        break;
      now = earliest;
      if (core != G_MAXUINT)
        complete (&run, core, now);
      else
        {
          if (stalled_since != G_MAXUINT64)
            record (&run, 0, PTO_TRACE_STALL, stalled_since, PTO_TASK_NONE,
                    task_at (&run, next)->ring, MAX (now, stalled_since));
          stalled_since = G_MAXUINT64;
          submit (&run, next++, &depth, now);
          next_submit = now + SUBMIT_NS;
        }
      dispatch (&run, now);
    }
  for (; depth > 0; depth--)
    record (&run, 0, PTO_TRACE_SCOPE, next_submit, PTO_TASK_NONE, depth, 0);

  records->n_buffers = n_buffers;
  records->buffers = g_new0 (struct pto_trace_buffer, n_buffers);
  for (guint b = 0; b < n_buffers; b++)
    {
      records->buffers[b].count = records->buffers[b].capacity = run.buffers[b]->len;
      records->buffers[b].records
          = (struct pto_trace_record *) (void *) g_array_free (run.buffers[b], FALSE);
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    g_queue_free (run.ready[t]);
  g_free (run.buffers);
  g_free (run.core_end);
  g_free (run.core_task);
  g_free (run.scheduler_free);
  return records;
}

void
synthetic_records_free (struct pto_trace *records)
{
  for (guint b = 0; b < records->n_buffers; b++)
    g_free (records->buffers[b].records);
  g_free (records->buffers);
  g_free (records);
}
