/* scopes.c: what did scopes hold, and what sizes of rings would do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scopes that were opened in one line are one row. What a scope held is what its ring did while it
 * was open, with the tasks of scopes around it that share the ring.
 */
#include "config.h"

#include "common/json.h"
#include "common/text.h"
#include "trace-answers.h"

#include "core/bits.h"
#include "core/parameters.h"

#include <string.h>

typedef struct
{
  guint32 file;
  guint32 line;
  guint32 depth;
  guint64 n;
  guint64 tasks;
  guint64 peaks[3]; /* of live, heap and edges of its ring */
} Scopes;

static guint
get_ring (guint depth)
{
  return MIN (depth, PTO_RINGS - 1);
}

/* The largest value from start to end. */
static guint64
find_peak (const GArray *steps, guint64 start, guint64 end)
{
  guint low = pto_bisect (i, steps->len, g_array_index (steps, PtoTraceStep, i).time <= start);
  guint64 peak = 0;

  for (guint i = low > 0 ? low - 1 : 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);

      if (step->time > end)
        break;
      peak = MAX (peak, step->value);
    }
  return peak;
}

static Scopes *
find_or_add (GArray *rows, const PtoTraceSpan *span)
{
  Scopes fresh = { .file = span->file, .line = span->line, .depth = span->what };

  for (guint i = 0; i < rows->len; i++)
    {
      Scopes *row = &g_array_index (rows, Scopes, i);

      if (row->file == span->file && row->line == span->line && row->depth == span->what)
        return row;
    }
  g_array_append_val (rows, fresh);
  return &g_array_index (rows, Scopes, rows->len - 1);
}

static GArray *
list_scopes (const PtoTraceAnalysis *analysis)
{
  GArray *rows = g_array_new (FALSE, TRUE, sizeof (Scopes));
  g_autofree guint64 *n = g_new0 (guint64, MAX (analysis->scopes->len, 1));

  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].scope > 0)
      n[analysis->tasks[i].scope - 1]++;
  for (guint i = 0; i < analysis->scopes->len; i++)
    {
      const PtoTraceSpan *span = &g_array_index (analysis->scopes, PtoTraceSpan, i);
      Scopes *row = find_or_add (rows, span);
      guint ring = get_ring (span->what);
      const GArray *const charts[]
          = { analysis->live[ring], analysis->heap[ring], analysis->edges[ring] };

      row->n++;
      row->tasks += n[span->number];
      for (guint k = 0; k < G_N_ELEMENTS (charts); k++)
        row->peaks[k] = MAX (row->peaks[k], find_peak (charts[k], span->start, span->end));
    }
  return rows;
}

/* The least power of two that is more than n. */
static guint64
get_power_above (guint64 n)
{
  guint64 power = 1;

  while (power <= n)
    power *= 2;
  return power;
}

/* The most slots of a ring that were taken, also for no time at all: by the order of records. */
static guint64
count_slots (PtoTrace *trace, guint ring)
{
  gint64 n = 0, most = 0;

  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];

      if ((record->kind != PTO_TRACE_SUBMIT && record->kind != PTO_TRACE_RETIRE)
          || PTO_TASK_RING (record->task) != ring)
        continue;
      n += (record->kind == PTO_TRACE_SUBMIT ? 1 : -1) * (gint64) pto_trace_n_tasks (record);
      most = MAX (most, n);
    }
  return (guint64) most;
}

/* What no run of these tasks that holds as much as this one at a time waits with. */
static void
add_ring (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis, guint ring,
          gboolean is_full)
{
  guint64 tasks = count_slots (trace, ring);
  guint64 heap = find_peak (analysis->heap[ring], 0, G_MAXUINT64);
  guint64 edges = find_peak (analysis->edges[ring], 0, G_MAXUINT64);

  json_builder_begin_object (json);
  pto_json_add_int (json, "ring", ring);
  pto_json_add_int (json, "tasks", tasks);
  pto_json_add_int (json, "task_window", MAX (get_power_above (tasks), 4));
  if (is_full)
    {
      pto_json_add_int (json, "heap_bytes", heap);
      pto_json_add_int (json, "dep_entries", edges);
      pto_json_add_int (json, "dep_pool", MAX (get_power_above (edges), 16));
    }
  json_builder_end_object (json);
}

void
pto_trace_add_scopes (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) rows = list_scopes (analysis);
  static const char *const peaks[] = { "peak_tasks", "peak_heap_bytes", "peak_dep_entries" };
  gboolean is_full = analysis->nodes->len > 0;

  pto_json_begin_array (json, "scopes");
  for (guint i = 0; i < rows->len; i++)
    {
      const Scopes *row = &g_array_index (rows, Scopes, i);

      json_builder_begin_object (json);
      pto_answer_add_place (json, "opened_at", trace, row->file, row->line);
      pto_json_add_int (json, "depth", row->depth);
      pto_json_add_int (json, "ring", get_ring (row->depth));
      pto_json_add_int (json, "n", row->n);
      pto_json_add_int (json, "submits", row->tasks);
      for (guint k = 0; k < (is_full ? G_N_ELEMENTS (peaks) : 1); k++)
        pto_json_add_int (json, peaks[k], row->peaks[k]);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  pto_json_begin_array (json, "rings");
  for (guint ring = 0;
       pto_answer_has_level (trace, PTO_TRACE_LEVEL_GRAPH) && ring < analysis->rings; ring++)
    add_ring (json, trace, analysis, ring, is_full);
  json_builder_end_array (json);
  if (is_full)
    pto_json_add_int (json, "map_nodes", find_peak (analysis->nodes, 0, G_MAXUINT64));
}

static const char *
get_name (JsonObject *scope)
{
  const char *place = json_object_get_string_member_with_default (
      scope, "opened_at", pto_answer_get_number (scope, "depth") == 0 ? _ ("the run") : "?");
  const char *name = strrchr (place, '/');

  return name != NULL ? name + 1 : place;
}

void
pto_trace_append_scopes (GString *text, JsonObject *object)
{
  JsonArray *scopes = json_object_get_array_member (object, "scopes");
  JsonArray *rings = json_object_get_array_member (object, "rings");
  gboolean is_full = json_object_has_member (object, "map_nodes");
  const struct
  {
    const char *words;
    int width;
    const char *member;
  } columns[] = { { _ ("depth"), 5, "depth" },
                  { _ ("times"), 8, "n" },
                  { C_ ("column", "submits"), 8, "submits" },
                  { _ ("held tasks"), 10, "peak_tasks" },
                  { _ ("heap bytes"), 12, "peak_heap_bytes" },
                  { _ ("dep entries"), 11, "peak_dep_entries" } };
  guint n_columns = is_full ? G_N_ELEMENTS (columns) : 4;
  PtoAnswerTable *table = pto_answer_table_new ();

  pto_answer_table_begin_row (table, _ ("opened at"));
  for (guint c = 0; c < n_columns; c++)
    pto_answer_table_add (table, columns[c].width, columns[c].words);
  for (guint i = 0; i < json_array_get_length (scopes); i++)
    {
      JsonObject *scope = json_array_get_object_element (scopes, i);

      pto_answer_table_begin_row (table, get_name (scope));
      for (guint c = 0; c < n_columns; c++)
        pto_answer_table_add_number (table, columns[c].width,
                                     pto_answer_get_number (scope, columns[c].member));
    }
  pto_answer_table_end (table, text);
  for (guint i = 0; i < json_array_get_length (rings); i++)
    {
      JsonObject *ring = json_array_get_object_element (rings, i);
      guint64 number = pto_answer_get_number (ring, "ring");
      guint64 tasks = pto_answer_get_number (ring, "tasks");
      guint64 window = pto_answer_get_number (ring, "task_window");

      if (is_full)
        g_string_append_printf (
            text,
            P_ ("ring %" PRIu64 ": %" PRIu64 " task at most: task-window=%" PRIu64 "; %" PRIu64
                " bytes of heap; %" PRIu64 " entries of the dependency pool: dep-pool=%" PRIu64
                " would do\n",
                "ring %" PRIu64 ": %" PRIu64 " tasks at most: task-window=%" PRIu64 "; %" PRIu64
                " bytes of heap; %" PRIu64 " entries of the dependency pool: dep-pool=%" PRIu64
                " would do\n",
                tasks),
            number, tasks, window, pto_answer_get_number (ring, "heap_bytes"),
            pto_answer_get_number (ring, "dep_entries"), pto_answer_get_number (ring, "dep_pool"));
      else
        g_string_append_printf (
            text,
            P_ ("ring %" PRIu64 ": %" PRIu64 " task at most: task-window=%" PRIu64 " would do\n",
                "ring %" PRIu64 ": %" PRIu64 " tasks at most: task-window=%" PRIu64 " would do\n",
                tasks),
            number, tasks, window);
    }
  if (is_full)
    g_string_append_printf (text, _ ("%" PRIu64 " nodes of the TensorMap at most\n"),
                            pto_answer_get_number (object, "map_nodes"));
}
