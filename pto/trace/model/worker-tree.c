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

/* Where its piece lies in its parent. Always inside of its task there: two clocks may disagree by a
 * moment; a virtual one has its own pace. */
static void
place_part (PtoTracePart *part)
{
  const PtoTracePart *parent = part->parent;
  const struct pto_trace_topology *topology = &part->trace->topology;
  guint32 entry = parent->analysis->piece_entries[part->piece];
  guint64 start = 0;
  guint64 end = parent->analysis->last;

  if (entry != PTO_TRACE_NOWHERE)
    {
      part->task = parent->first_entry + entry;
      start = parent->analysis->tasks[entry].start;
      end = parent->analysis->tasks[entry].end;
    }
  part->from = topology->run_ns;
  /* Where another machine's clock is not known well the run is moved into its task: how long it
   * took is known better than when. */
  part->to = MIN (topology->end_ns - topology->begin_ns, end - start);
  part->begin = CLAMP (from_wall (parent->trace, topology->begin_ns), start, end - part->to);
}

static void
part_free (gpointer data)
{
  PtoTracePart *part = data;

  g_ptr_array_unref (part->inner);
  g_free (part->path);
  g_free (part);
}

/* path: taken. workers: the number of each, by its path. */
static PtoTracePart *
add_part (GPtrArray *parts, GHashTable *workers, PtoTrace *trace, char *path)
{
  const PtoTracePart *last = parts->len > 0 ? g_ptr_array_index (parts, parts->len - 1) : NULL;
  PtoTracePart *part = g_new (PtoTracePart, 1);

  *part = (PtoTracePart){ .trace = trace,
                          .analysis = pto_trace_get_analysis (trace),
                          .path = path,
                          .number = parts->len,
                          .worker = g_hash_table_size (workers),
                          .task = PTO_TRACE_NOWHERE,
                          .inner = g_ptr_array_new () };
  if (last != NULL)
    {
      part->first_entry = last->first_entry + last->analysis->n_entries;
      part->first_task = last->first_task + last->analysis->n_tasks;
      part->first_edge = last->first_edge + last->analysis->n_deps;
    }
  if (g_hash_table_contains (workers, path))
    part->worker = GPOINTER_TO_UINT (g_hash_table_lookup (workers, path));
  else
    g_hash_table_insert (workers, path, GUINT_TO_POINTER (part->worker));
  g_ptr_array_add (parts, part);
  return part;
}

static void
add_inner_parts (GPtrArray *parts, GHashTable *workers, const PtoTracePart *parent)
{
  const GPtrArray *pieces = parent->trace->pieces.list;

  for (guint i = 0; i < pieces->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (pieces, i);
      PtoTracePart *part
          = add_part (parts, workers, piece->trace,
                      pto_trace_dup_child_path (parent->path, parent->trace, piece->child));

      part->parent = parent;
      part->piece = i;
      part->child = piece->child;
      place_part (part);
      g_ptr_array_add (parent->inner, part);
      add_inner_parts (parts, workers, part);
    }
}

const GPtrArray *
pto_trace_get_parts (PtoTrace *trace)
{
  if (g_once_init_enter (&trace->parts))
    {
      GPtrArray *parts = g_ptr_array_new_with_free_func (part_free);
      g_autoptr (GHashTable) workers = g_hash_table_new (g_str_hash, g_str_equal);
      char *path = g_strdup (trace->path != NULL ? trace->path : "");

      add_inner_parts (parts, workers, add_part (parts, workers, trace, path));
      g_once_init_leave (&trace->parts, parts);
    }
  return trace->parts;
}

guint64
pto_trace_part_time (const PtoTracePart *part, guint64 time)
{
  if (time == PTO_TRACE_NEVER)
    return time;
  for (; part->parent != NULL; part = part->parent)
    {
      const struct pto_scale scale = { .from = part->from, .to = part->to };
      guint64 since = MIN (time + part->analysis->first, part->from);

      time = part->begin + pto_scale (since, &scale);
    }
  return time;
}
