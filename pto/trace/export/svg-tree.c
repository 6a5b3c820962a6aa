/* svg-tree.c: how does a picture show what workers did inside of their tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Below the row of a worker, narrower ones: a core each, or for a worker of level 3 and up a child
 * each with its own below it. Only those that did something, and only so many.
 */
#include "config.h"

#include "svg.h"

#define ROW 8.5
#define GAP 3 /* below the last */
#define MAX_ROWS_A_WORKER 48
#define MAX_ROWS 240
#define MAX_BARS 3000

typedef struct
{
  guint64 start; /* in the time of the picture */
  guint64 end;
  guint64 own_start; /* and of the chip, or level, itself */
  guint64 own_end;
  guint64 task;
  guint32 style; /* position in the legend */
  gboolean failed;
} Bar;

typedef struct
{
  char *name;
  GArray *bars; /* Bar, by start */
  gboolean is_virtual;
} PtoInnerRow;

static void
row_free (gpointer data)
{
  PtoInnerRow *row = data;

  g_array_unref (row->bars);
  g_free (row->name);
  g_free (row);
}

/* --- collecting --- */

typedef struct
{
  PtoPicture *picture;
  GHashTable *names; /* of kernels -> position in the legend + 1 */
  GPtrArray *rows;   /* of the child that is looked at */
  guint n_rows;      /* of all */
} Collector;

static guint
find_style (Collector *collector, PtoTrace *trace, guint32 kernel)
{
  GArray *legend = collector->picture->legend;
  char *name = pto_trace_dup_kernel_name (trace, kernel);
  guint position = GPOINTER_TO_UINT (g_hash_table_lookup (collector->names, name));

  if (position == 0)
    {
      /* No number of a kernel of the level's own. */
      PtoLegendEntry entry = { G_MAXUINT32, 0, g_strdup (name) };

      g_array_append_val (legend, entry);
      position = legend->len;
      g_hash_table_insert (collector->names, g_strdup (name), GUINT_TO_POINTER (position));
    }
  g_free (name);
  return position - 1;
}

static void
add_bars (Collector *collector, const PtoTraceView *view, guint core, PtoInnerRow *row)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (view->trace);

  for (guint i = 0; i < analysis->n_core_runs[core]; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[core][i]];
      Bar bar = { .start = pto_trace_view_time (view, task->start),
                  .end = pto_trace_view_time (view, task->end),
                  .own_start = task->start,
                  .own_end = task->end,
                  .task = task->id,
                  .style = find_style (collector, view->trace, task->kernel),
                  .failed = task->failed };

      g_array_index (collector->picture->legend, PtoLegendEntry, bar.style).runs++;
      g_array_append_val (row->bars, bar);
    }
  row->is_virtual = row->is_virtual || view->trace->topology.virtual_clock;
}

/* The views of one child's pieces among those of several runs of its parent. */
static GPtrArray *
look_into (const GPtrArray *views, guint child)
{
  GPtrArray *inner = g_ptr_array_new_with_free_func (g_free);

  for (guint v = 0; v < views->len; v++)
    {
      const PtoTraceView *view = g_ptr_array_index (views, v);

      for (guint i = 0; i < view->trace->pieces.list->len; i++)
        {
          const PtoTracePiece *piece = g_ptr_array_index (view->trace->pieces.list, i);
          PtoTraceView *own;

          if (piece->child != child)
            continue;
          own = g_new (PtoTraceView, 1);
          pto_trace_view_init (own, view, i);
          g_ptr_array_add (inner, own);
        }
    }
  return inner;
}

/* Runs of one worker: a row for each core, or child, that did something. */
static void
collect_rows (Collector *collector, const GPtrArray *views)
{
  PtoPicture *picture = collector->picture;
  guint n_cores = 0;

  for (guint v = 0; v < views->len; v++)
    n_cores = MAX (n_cores,
                   ((const PtoTraceView *) g_ptr_array_index (views, v))->trace->topology.n_cores);
  for (guint c = 0; c < n_cores; c++)
    {
      PtoInnerRow *row = g_new0 (PtoInnerRow, 1);
      g_autoptr (GPtrArray) inner = look_into (views, c);

      row->bars = g_array_new (FALSE, FALSE, sizeof (Bar));
      for (guint v = 0; v < views->len; v++)
        {
          const PtoTraceView *view = g_ptr_array_index (views, v);

          if (c >= view->trace->topology.n_cores)
            continue;
          if (row->name == NULL)
            row->name = pto_trace_dup_core_name (view->trace, c);
          add_bars (collector, view, c, row);
        }
      if (row->bars->len == 0)
        row_free (row);
      else if (collector->rows->len < MAX_ROWS_A_WORKER && collector->n_rows < MAX_ROWS)
        {
          collector->n_rows++;
          picture->is_stretched = picture->is_stretched || row->is_virtual;
          g_ptr_array_add (collector->rows, row);
        }
      else
        {
          picture->n_inner_left_out++;
          row_free (row);
        }
      if (inner->len > 0)
        collect_rows (collector, inner);
    }
}

void
pto_svg_collect_inner (PtoPicture *picture)
{
  guint n_cores = picture->analysis->n_cores;
  const PtoTraceView whole = { .trace = picture->trace };
  g_autoptr (GPtrArray) views = g_ptr_array_new ();
  Collector collector = { .picture = picture };

  picture->inner = g_new0 (GPtrArray *, MAX (n_cores, 1));
  if (!pto_trace_is_level (picture->trace))
    return;
  collector.names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < picture->legend->len; i++)
    g_hash_table_insert (collector.names,
                         g_strdup (g_array_index (picture->legend, PtoLegendEntry, i).name),
                         GUINT_TO_POINTER (i + 1));
  g_ptr_array_add (views, (gpointer) &whole);
  for (guint c = 0; c < n_cores; c++)
    {
      g_autoptr (GPtrArray) inner = look_into (views, c);

      if (inner->len == 0)
        continue;
      collector.rows = g_ptr_array_new_with_free_func (row_free);
      collect_rows (&collector, inner);
      picture->inner[c] = collector.rows;
    }
  g_hash_table_unref (collector.names);
}

void
pto_svg_clear_inner (PtoPicture *picture)
{
  for (guint c = 0; c < picture->analysis->n_cores; c++)
    g_clear_pointer (&picture->inner[c], g_ptr_array_unref);
  g_free (picture->inner);
}

double
pto_svg_get_inner_height (const PtoPicture *picture, guint child)
{
  return picture->inner[child] != NULL && picture->inner[child]->len > 0
             ? picture->inner[child]->len * ROW + GAP
             : 0;
}

/* --- drawing --- */

/* How many of the bars from first on are drawn as one: those that are narrow and close. */
static guint
clump_length (const PtoPicture *picture, const PtoInnerRow *row, guint first, double narrow)
{
  const Bar *bars = (const Bar *) (gpointer) row->bars->data;
  double start = pto_svg_x (picture, bars[first].start);
  double end = pto_svg_x (picture, bars[first].end);
  guint n = 1;

  if (end - start >= narrow)
    return 1;
  for (; first + n < row->bars->len; n++)
    {
      double next = pto_svg_x (picture, bars[first + n].start);
      double next_end = pto_svg_x (picture, bars[first + n].end);

      if (!pto_svg_joins (start, end, next, next_end, narrow))
        break;
      end = MAX (end, next_end);
    }
  return n;
}

static guint
count_bars (const PtoPicture *picture, double narrow)
{
  guint n = 0;

  for (guint c = 0; c < picture->analysis->n_cores; c++)
    for (guint r = 0; picture->inner[c] != NULL && r < picture->inner[c]->len; r++)
      {
        const PtoInnerRow *row = g_ptr_array_index (picture->inner[c], r);

        for (guint i = 0; i < row->bars->len; n++)
          i += clump_length (picture, row, i, narrow);
      }
  return n;
}

static const char *
get_name (const PtoPicture *picture, const Bar *bar)
{
  return g_array_index (picture->legend, PtoLegendEntry, bar->style).name;
}

/* When, and where the chip has a clock of its own, when on that. */
static void
append_times (PtoPicture *picture, const PtoInnerRow *row, const Bar *bars, guint n, guint64 end)
{
  GString *text = picture->text;

  g_string_append_c (text, '\n');
  pto_trace_append_us (text, bars[0].start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, end);
  g_string_append (text, " \302\265s");
  if (row->is_virtual)
    {
      g_string_append (text, ", of its virtual time ");
      pto_trace_append_us (text, bars[0].own_start);
      g_string_append (text, " to ");
      pto_trace_append_us (text, bars[n - 1].own_end);
    }
}

static void
append_bar (PtoPicture *picture, const PtoInnerRow *row, const Bar *bar, double top)
{
  GString *text = picture->text;
  g_autofree char *label = pto_trace_dup_task_label (bar->task);
  g_autofree char *style = g_strdup_printf ("k%u%s", bar->style, bar->failed ? " failed" : "");
  double x = pto_svg_x (picture, bar->start);

  pto_svg_append_rect (text, style, x, top + 0.5, MAX (pto_svg_x (picture, bar->end) - x, 0.5),
                       ROW - 1);
  g_string_append (text, "><title>task ");
  pto_svg_append_escaped (text, get_name (picture, bar));
  g_string_append_printf (text, " %s on ", label);
  pto_svg_append_escaped (text, row->name);
  g_string_append (text, bar->failed ? ", failed" : "");
  append_times (picture, row, bar, 1, bar->end);
  g_string_append (text, "</title></rect>\n");
}

static void
append_clump (PtoPicture *picture, const PtoInnerRow *row, const Bar *bars, guint n, double top)
{
  GString *text = picture->text;
  g_autofree guint64 *busy = g_new0 (guint64, picture->legend->len);
  const Bar *longest = bars;
  guint64 end = 0, total = 0;
  double x = pto_svg_x (picture, bars[0].start);

  for (guint i = 0; i < n; i++)
    {
      guint64 took = bars[i].end - bars[i].start;

      end = MAX (end, bars[i].end);
      busy[bars[i].style] += took;
      total += took;
      if (took > longest->end - longest->start)
        longest = &bars[i];
    }
  /* A run of no time still counts. */
  for (guint i = 0; i < n; i++)
    busy[bars[i].style] = MAX (busy[bars[i].style], 1);
  g_string_append_printf (text, "<g><title>%u tasks, among them ", n);
  pto_svg_append_escaped (text, get_name (picture, longest));
  g_string_append (text, " on ");
  pto_svg_append_escaped (text, row->name);
  append_times (picture, row, bars, n, end);
  pto_svg_append_share (text, total, bars[0].start, end);
  g_string_append (text, "</title>");
  pto_svg_append_joined (picture, busy, total, x, MAX (pto_svg_x (picture, end) - x, 0.5),
                         top + 0.5, ROW - 1);
  g_string_append (text, "</g>\n");
}

void
pto_svg_measure_inner (PtoPicture *picture)
{
  guint n = 0;

  picture->inner_narrow = 1;
  while (count_bars (picture, picture->inner_narrow) > MAX_BARS && picture->inner_narrow < 1000)
    picture->inner_narrow *= 1.5;
  for (guint c = 0; c < picture->analysis->n_cores; c++)
    for (guint r = 0; picture->inner[c] != NULL && r < picture->inner[c]->len; r++)
      n += ((const PtoInnerRow *) g_ptr_array_index (picture->inner[c], r))->bars->len;
  picture->has_joined = picture->has_joined || count_bars (picture, picture->inner_narrow) < n;
}

void
pto_svg_append_inner (PtoPicture *picture)
{
  g_autoptr (GString) note = g_string_new (NULL);

  for (guint c = 0; c < picture->analysis->n_cores; c++)
    for (guint r = 0; picture->inner[c] != NULL && r < picture->inner[c]->len; r++)
      {
        const PtoInnerRow *row = g_ptr_array_index (picture->inner[c], r);
        double top = picture->core_top[c] + picture->row + r * ROW;

        pto_svg_append_label (picture, "row\" font-size=\"7", picture->left - 8, top + ROW - 1.8,
                              row->name);
        for (guint i = 0; i < row->bars->len;)
          {
            guint n = clump_length (picture, row, i, picture->inner_narrow);

            if (n == 1)
              append_bar (picture, row, &g_array_index (row->bars, Bar, i), top);
            else
              append_clump (picture, row, &g_array_index (row->bars, Bar, i), n, top);
            i += n;
          }
      }
  if (picture->n_inner_left_out > 0)
    g_string_append_printf (note, "%u rows more inside of workers are in the JSON",
                            picture->n_inner_left_out);
  if (picture->is_stretched)
    g_string_append_printf (note, "%s%s", note->len > 0 ? "; " : "",
                            "chips with a virtual clock: stretched over the time that a run took");
  if (note->len > 0)
    pto_svg_append_label (picture, "right", picture->right, picture->rows_bottom + 30, note->str);
}
