/* worker-tree.c: where in the record of a run are the runs of the workers below it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A level's task on a worker is a run there, with a record of its own. All of them know where both
 * ends of their run lie on the one clock that all processes share.
 */
#include "config.h"

#include "trace.h"

static void
piece_free (gpointer data)
{
  PtoTracePiece *piece = data;

  g_object_unref (piece->trace);
  g_free (piece);
}

void
pto_trace_pieces_init (PtoTracePieces *pieces)
{
  *pieces = (PtoTracePieces){ .list = g_ptr_array_new_with_free_func (piece_free) };
}

void
pto_trace_pieces_clear (PtoTracePieces *pieces)
{
  g_clear_pointer (&pieces->list, g_ptr_array_unref);
}

void
pto_trace_pieces_take (PtoTracePieces *pieces, guint32 child, guint64 task, PtoTrace *trace)
{
  PtoTracePiece *piece = g_new (PtoTracePiece, 1);

  *piece = (PtoTracePiece){ child, task, trace };
  g_ptr_array_add (pieces->list, piece);
}

static guint64
set_back (guint64 time, gint64 ahead)
{
  return ahead > 0 && (guint64) ahead > time ? 0 : time - (guint64) ahead;
}

void
pto_trace_pieces_set_back (PtoTracePieces *pieces, gint64 ahead)
{
  for (guint i = 0; i < pieces->list->len; i++)
    {
      PtoTrace *trace = ((const PtoTracePiece *) g_ptr_array_index (pieces->list, i))->trace;

      trace->topology.begin_ns = set_back (trace->topology.begin_ns, ahead);
      trace->topology.end_ns = set_back (trace->topology.end_ns, ahead);
      pto_trace_pieces_set_back (&trace->pieces, ahead);
    }
}

void
pto_trace_settle (PtoTrace *trace)
{
  trace->dropped += trace->pieces.records_left_out;
  for (guint i = 0; i < trace->pieces.list->len; i++)
    trace->dropped
        += ((const PtoTracePiece *) g_ptr_array_index (trace->pieces.list, i))->trace->dropped;
}

guint64
pto_trace_count_records (PtoTrace *trace)
{
  guint64 n = trace->starts[trace->n_buffers];

  for (guint i = 0; i < trace->pieces.list->len; i++)
    n += pto_trace_count_records (
        ((const PtoTracePiece *) g_ptr_array_index (trace->pieces.list, i))->trace);
  return n;
}

char *
pto_trace_dup_child_path (const char *path, PtoTrace *trace, guint child)
{
  return g_strdup_printf ("%s/%s", path, trace->rows[child]);
}

/* A child has a task once. */
static gint64
make_key (guint32 child, guint64 task)
{
  return (gint64) ((guint64) child << 40 ^ task);
}

void
pto_trace_link_pieces (PtoTraceAnalysis *analysis, PtoTrace *trace)
{
  g_autoptr (GHashTable) entries
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  guint n_workers = MIN (trace->topology.n_workers, analysis->n_cores);
  guint n_runs = 0;

  if (!pto_trace_is_level (trace))
    return;
  for (guint c = 0; c < n_workers; c++)
    for (guint i = 0; i < analysis->n_core_runs[c]; i++, n_runs++)
      {
        guint32 entry = analysis->core_runs[c][i];
        gint64 *key = g_new (gint64, 1);

        *key = make_key (c, analysis->tasks[entry].id);
        g_hash_table_replace (entries, key, GUINT_TO_POINTER (entry));
      }
  analysis->piece_entries = g_new (guint32, MAX (trace->pieces.list->len, 1));
  for (guint i = 0; i < trace->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (trace->pieces.list, i);
      gint64 key = make_key (piece->child, piece->task);
      gpointer entry;
      gboolean found = g_hash_table_lookup_extended (entries, &key, NULL, &entry);

      analysis->piece_entries[i] = found ? GPOINTER_TO_UINT (entry) : PTO_TRACE_NOWHERE;
      n_runs -= found;
    }
  analysis->n_unseen = n_runs;
}

/* A time of the shared clock in a trace. */
static guint64
from_wall (PtoTrace *trace, guint64 wall)
{
  guint64 zero = trace->topology.begin_ns + pto_trace_get_analysis (trace)->first;

  return wall > zero ? wall - zero : 0;
}

void
pto_trace_view_init (PtoTraceView *view, const PtoTraceView *parent, guint number)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (parent->trace);
  const PtoTracePiece *piece = g_ptr_array_index (parent->trace->pieces.list, number);
  guint32 entry = analysis->piece_entries[number];
  guint64 start = entry != PTO_TRACE_NOWHERE ? analysis->tasks[entry].start : 0;
  guint64 end = entry != PTO_TRACE_NOWHERE ? analysis->tasks[entry].end : analysis->last;
  guint64 length = piece->trace->topology.end_ns - piece->trace->topology.begin_ns;

  view->trace = piece->trace;
  view->parent = parent;
  view->from = piece->trace->topology.run_ns;
  /* Where another machine's clock is not known well the run is moved into its task: how long it
   * took is known better than when. */
  view->to = MIN (length, end - start);
  view->begin
      = CLAMP (from_wall (parent->trace, piece->trace->topology.begin_ns), start, end - view->to);
}

guint64
pto_trace_view_time (const PtoTraceView *view, guint64 time)
{
  if (time == PTO_TRACE_NEVER)
    return time;
  for (; view->parent != NULL; view = view->parent)
    {
      const struct pto_scale scale = { .from = view->from, .to = view->to };
      guint64 since = MIN (time + pto_trace_get_analysis (view->trace)->first, view->from);

      time = view->begin + pto_scale (since, &scale);
    }
  return time;
}
