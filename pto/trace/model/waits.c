/* waits.c: what did a task wait for before it started?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The time from some moment to the start of a task is cut where its records say that something
 * changed: submitted, last producer over, ready, dispatched. Each piece has one reason, and all of
 * them together are that time.
 */
#include "config.h"

#include "core/bits.h"

#include "trace.h"

/* Stretches in which no core of a type was free. A core is taken when it is given a task. */
static GArray *
find_full (const PtoTraceAnalysis *analysis, PtoTrace *trace, guint core_type)
{
  GArray *full = g_array_new (FALSE, FALSE, sizeof (PtoTraceFull));
  GArray *changes = pto_trace_changes_new ();
  g_autoptr (GArray) taken = NULL;
  guint n_cores = pto_trace_get_n_of_type (trace, core_type);
  gboolean is_full = n_cores == 0;
  guint64 before = 0;

  for (guint core = 0; core < analysis->n_cores; core++)
    {
      guint cluster, type;
      guint64 left = 0;

      pto_trace_locate_core (trace, core, &cluster, &type);
      for (guint i = 0; type == core_type && i < analysis->n_core_runs[core]; i++)
        {
          const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[core][i]];

          /* Not while it has another one: it may be given a task before that is over. */
          pto_trace_add_change (changes,
                                CLAMP (task->dispatch, MIN (left, task->start), task->start), 1);
          pto_trace_add_change (changes, task->end, -1);
          left = task->end;
        }
    }
  /* A core that is left and taken at one time was not free. */
  taken = pto_trace_integrate (changes);
  for (guint i = 0; i < taken->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (taken, PtoTraceStep, i);

      if (is_full == (step->value >= n_cores))
        continue;
      is_full = !is_full;
      if (is_full)
        {
          PtoTraceFull stretch = { step->time, step->time, before };

          g_array_append_val (full, stretch);
        }
      else
        {
          PtoTraceFull *stretch = &g_array_index (full, PtoTraceFull, full->len - 1);

          stretch->end = step->time;
          before += stretch->end - stretch->start;
        }
    }
  return full;
}

void
pto_trace_find_full (PtoTraceAnalysis *analysis, PtoTrace *trace)
{
  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    analysis->full[type] = find_full (analysis, trace, type);
}

/* How long no core was free until then. */
static guint64
get_full_until (const GArray *full, guint64 time)
{
  guint low = pto_bisect (i, full->len, g_array_index (full, PtoTraceFull, i).start <= time);
  const PtoTraceFull *last;

  if (low == 0)
    return 0;
  last = &g_array_index (full, PtoTraceFull, low - 1);
  return last->before + MIN (time, last->end) - last->start;
}

/* How long the submitter stood still for want of room. It waits for one thing at a time. */
static guint64
get_stalled (const PtoTraceAnalysis *analysis, guint64 from, guint64 to)
{
  guint64 stalled = 0;
  guint low = pto_bisect (i, from < to ? analysis->stalls->len : 0,
                          g_array_index (analysis->stalls, PtoTraceSpan, i).start < to);

  for (; low > 0; low--)
    {
      const PtoTraceSpan *span = &g_array_index (analysis->stalls, PtoTraceSpan, low - 1);

      if (span->end <= from)
        break;
      stalled += MIN (span->end, to) - MAX (span->start, from);
    }
  return stalled;
}

guint64
pto_trace_get_data_ready (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task)
{
  guint64 last = 0;

  for (guint k = 0; k < task->n_deps; k++)
    {
      guint32 producer = analysis->deps[task->first_dep + k].producer_index;
      const PtoTraceEntry *other;

      if (producer == PTO_TRACE_NOWHERE)
        continue;
      other = &analysis->tasks[producer];
      /* What ran nothing was over when that was seen. */
      if (other->end != PTO_TRACE_NEVER)
        last = MAX (last, other->end);
      else if (other->complete != PTO_TRACE_NEVER)
        last = MAX (last, other->complete);
    }
  return last;
}

gboolean
pto_trace_get_waits (const PtoTraceAnalysis *analysis, PtoTrace *trace, const PtoTraceEntry *task,
                     guint64 from, PtoTraceWaits *waits)
{
  guint64 at = from;
  guint64 submit, data, ready, dispatch, full;
  guint cluster, type;

  *waits = (PtoTraceWaits){ 0 };
  if (trace->topology.recorded == PTO_TRACE_LEVEL_RUNS || task->start == PTO_TRACE_NEVER
      || task->core == PTO_TRACE_NOWHERE || from > task->start)
    return FALSE;
  pto_trace_locate_core (trace, task->core, &cluster, &type);
  submit = task->submit == PTO_TRACE_NEVER ? at : CLAMP (task->submit, at, task->start);
  data = CLAMP (pto_trace_get_data_ready (analysis, task), submit, task->start);
  dispatch = CLAMP (task->dispatch, data, task->start);
  ready = task->ready == PTO_TRACE_NEVER ? data : CLAMP (task->ready, data, dispatch);
  /* Whose end it was is not known: that somebody saw it is. */
  if (trace->topology.recorded == PTO_TRACE_LEVEL_SCHEDULE)
    data = ready;

  waits->room = get_stalled (analysis, at, submit);
  waits->submitter = submit - at - MIN (waits->room, submit - at);
  waits->data = data - submit;
  full = get_full_until (analysis->full[type], dispatch)
         - get_full_until (analysis->full[type], ready);
  waits->core = MIN (full, dispatch - ready);
  waits->scheduler = (ready - data) + (dispatch - ready - waits->core) + (task->start - dispatch);
  return TRUE;
}
