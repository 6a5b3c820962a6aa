/* tracks.c: which processes, threads and counters does ui.perfetto.dev see of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tracks.h"

guint
pto_track_get_pid (PtoTrace *trace, guint core)
{
  guint cluster, type;

  if (pto_trace_is_level (trace))
    return PID_CONTROL;
  pto_trace_locate_core (trace, core, &cluster, &type);
  return PID_CLUSTER + cluster;
}

/* Of a chip below others its path stands before. */
static char *
dup_process_name (const PtoTracePart *part, const char *name)
{
  return g_strdup_printf ("%s%s%s", part->path, part->path[0] != '\0' ? " " : "", name);
}

char *
pto_track_dup_control_name (const PtoTracePart *part)
{
  return pto_trace_is_level (part->trace) ? g_strdup (part->path)
                                          : dup_process_name (part, "AICPU");
}

char *
pto_track_dup_cluster_name (const PtoTracePart *part, guint cluster)
{
  g_autofree char *name = g_strdup_printf ("cluster %u", cluster);

  return dup_process_name (part, name);
}

void
pto_track_each_counter (PtoTrace *trace, PtoTrackCounterFunc func, gpointer data)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  gboolean is_level = pto_trace_is_level (trace);

  /* Of a level there is one kind of ready tasks. */
  func (data, is_level ? "ready tasks" : "ready AIC tasks", "tasks",
        analysis->ready[PTO_CORE_TYPE_AIC]);
  if (!is_level)
    func (data, "ready AIV tasks", "tasks", analysis->ready[PTO_CORE_TYPE_AIV]);
  for (guint r = 0; r < analysis->rings; r++)
    {
      const struct
      {
        const char *name;
        const char *unit;
        const GArray *steps;
      } counters[] = { { "live tasks", "tasks", analysis->live[r] },
                       { "heap", "bytes", analysis->heap[r] },
                       { "dependency pool", "edges", analysis->edges[r] } };

      for (guint i = 0; i < G_N_ELEMENTS (counters); i++)
        {
          g_autofree char *name = g_strdup_printf ("%s, ring %u", counters[i].name, r);

          func (data, name, counters[i].unit, counters[i].steps);
        }
    }
  func (data, "TensorMap", "nodes", analysis->nodes);
  func (data, "open scopes", "scopes", analysis->depth);
  for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
    func (data, pto_trace_get_moved_name (i), "bytes", analysis->moved[i]);
}
