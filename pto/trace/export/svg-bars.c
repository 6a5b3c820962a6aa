/* svg-bars.c: how is what ran drawn, and what travelled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A bar for each run on the row of its core; below the row of a worker narrower ones for what it
 * did inside of its tasks, a core each; half a bar for what travels to a worker, above, and back,
 * below. Bars that are narrow and close are one, as many as it takes to keep the picture small.
 * Such a bar is as high as its runs took a share of its width: a core that was busy for 8 % of the
 * time looks so, however many runs that were.
 */
#include "config.h"

#include "svg.h"

#define MAX_NAMED_WAITS 6
#define LEAST_HEIGHT 1 /* of what ran in a bar of many */

/* --- rows --- */

static void
row_free (gpointer data)
{
  PtoSvgRow *row = data;

  g_array_unref (row->bars);
  g_free (row);
}

GPtrArray *
pto_svg_rows_new (void)
{
  return g_ptr_array_new_with_free_func (row_free);
}

PtoSvgRow *
pto_svg_rows_add (GPtrArray *rows, guint core)
{
  PtoSvgRow *row = g_new0 (PtoSvgRow, 1);

  row->core = core;
  row->bars = g_array_new (FALSE, FALSE, sizeof (PtoSvgBar));
  g_ptr_array_add (rows, row);
  return row;
}

void
pto_svg_row_add_run (PtoPicture *picture, PtoSvgRow *row, const PtoTracePart *part,
                     const PtoTraceEntry *task)
{
  PtoSvgBar bar = { .start = pto_trace_part_time (part, task->start),
                    .end = pto_trace_part_time (part, task->end),
                    .task = task,
                    .style = pto_legend_find (picture->legend, part, task->kernel) };

  g_array_append_val (row->bars, bar);
}

/* How many of the bars from first on are drawn as one: those that are narrow and close. */
static guint
clump_length (const PtoPicture *picture, const PtoSvgRow *row, guint first, double narrow)
{
  const PtoSvgBar *bars = (const PtoSvgBar *) (gpointer) row->bars->data;
  double start = pto_svg_x (picture, bars[first].start);
  double end = pto_svg_x (picture, bars[first].end);
  guint n = 1;

  if (end - start >= narrow)
    return 1;
  for (; first + n < row->bars->len; n++)
    {
      double next = pto_svg_x (picture, bars[first + n].start);
      double next_end = pto_svg_x (picture, bars[first + n].end);

      if (next_end - next >= narrow || next - end > MAX (narrow / 2, 2)
          || next_end - start > MAX (2 * narrow, 4))
        break;
      end = MAX (end, next_end);
    }
  return n;
}

/* rows: NULL: none. */
static guint
count_bars (const PtoPicture *picture, const GPtrArray *rows, double narrow)
{
  guint n = 0;

  for (guint r = 0; rows != NULL && r < rows->len; r++)
    {
      const PtoSvgRow *row = g_ptr_array_index (rows, r);

      for (guint i = 0; i < row->bars->len; n++)
        i += clump_length (picture, row, i, narrow);
    }
  return n;
}

double
pto_svg_measure_bars (PtoPicture *picture, const GPtrArray *runs, const GPtrArray *others,
                      guint most)
{
  double narrow = 1;

  while (count_bars (picture, runs, narrow) + count_bars (picture, others, narrow) > most
         && narrow < 1000)
    narrow *= 1.5;
  picture->has_joined
      = picture->has_joined || count_bars (picture, runs, narrow) < count_bars (picture, runs, 0);
  return narrow;
}

void
pto_svg_append_bars (PtoPicture *picture, const PtoSvgRow *row, double narrow, PtoSvgDrawFunc draw)
{
  guint n;

  for (guint i = 0; i < row->bars->len; i += n)
    {
      n = clump_length (picture, row, i, narrow);
      draw (picture, row, &g_array_index (row->bars, PtoSvgBar, i), n);
    }
}

void
pto_svg_append_joined (PtoPicture *picture, const PtoSvgBar *bars, guint n, double x, double width,
                       double top, double height)
{
  g_autofree guint64 *busy = g_new0 (guint64, picture->legend->list->len);
  guint64 took = 0, total = 0;
  double filled, y = top + height;

  for (guint i = 0; i < n; i++)
    {
      busy[bars[i].style] += bars[i].end - bars[i].start;
      took += bars[i].end - bars[i].start;
    }
  /* A run of no time still counts. */
  for (guint i = 0; i < n; i++)
    busy[bars[i].style] = MAX (busy[bars[i].style], 1);
  for (guint k = 0; k < picture->legend->list->len; k++)
    total += busy[k];
  filled = CLAMP ((double) took * picture->scale / width * height, LEAST_HEIGHT, height);
  pto_svg_append_rect (picture->text, "joined", x, top, width, height);
  g_string_append (picture->text, "/>");
  for (guint k = 0; k < picture->legend->list->len; k++)
    {
      double share = (double) busy[k] / (double) MAX (total, 1) * filled;
      g_autofree char *style = g_strdup_printf ("k%u", k);

      if (busy[k] == 0)
        continue;
      y -= share;
      pto_svg_append_rect (picture->text, style, x, y, width, share);
      g_string_append (picture->text, "/>");
    }
}

/* --- runs of cores --- */

/* The story of one task. */
static void
append_story (PtoPicture *picture, const PtoTraceEntry *task, const char *kernel)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  GString *text = picture->text;
  g_autofree char *label = pto_trace_dup_task_label (task->id);
  g_autofree char *core = pto_trace_dup_core_name (picture->trace, task->core);
  guint64 sum[PTO_TRACE_N_MOVED];

  g_string_append (text, "task ");
  pto_svg_append_escaped (text, kernel);
  g_string_append_printf (text, " %s", label);
  if (task->block != PTO_TRACE_NOWHERE)
    g_string_append_printf (text, ", block %u", task->block);
  if (task->terms.priority > 0)
    g_string_append_printf (text, ", priority %u", task->terms.priority);
  g_string_append (text, " on ");
  pto_svg_append_escaped (text, core);
  g_string_append_printf (text, "%s\nruns ", task->failed ? ", failed" : "");
  pto_svg_append_stretch (text, task->start, task->end);
  g_string_append (text, " (");
  pto_svg_append_microseconds (text, task->end - task->start);
  g_string_append_c (text, ')');
  if (task->submit != PTO_TRACE_NEVER)
    {
      g_string_append (text, "\nsubmitted ");
      pto_trace_append_us (text, task->submit);
    }
  if (task->ready != PTO_TRACE_NEVER)
    {
      g_string_append (text, ", ready ");
      pto_trace_append_us (text, task->ready);
    }
  if (task->dispatch != PTO_TRACE_NEVER)
    {
      g_string_append (text, ", dispatched ");
      pto_trace_append_us (text, task->dispatch);
    }
  pto_trace_sum_entry (analysis, task, sum);
  if (sum[PTO_TRACE_SENT] > 0 || sum[PTO_TRACE_RECEIVED] > 0 || sum[PTO_TRACE_SAVED] > 0)
    {
      g_string_append (text, "\n");
      pto_svg_append_moved (text, sum);
    }
  if (task->n_deps > 0)
    g_string_append (text, "\nwaited for ");
  for (guint k = 0; k < task->n_deps && k < MAX_NAMED_WAITS; k++)
    {
      const PtoTraceDep *dep = &analysis->deps[task->first_dep + k];
      g_autofree char *producer = pto_trace_dup_task_label (dep->producer);

      g_string_append (text, k > 0 ? ", " : "");
      if (dep->producer_index != PTO_TRACE_NOWHERE
          && analysis->tasks[dep->producer_index].submit != PTO_TRACE_NEVER)
        {
          pto_svg_append_escaped (
              text, pto_trace_get_kernel_name (picture->trace,
                                               analysis->tasks[dep->producer_index].kernel));
          g_string_append_c (text, ' ');
        }
      g_string_append (text, producer);
    }
  if (task->n_deps > MAX_NAMED_WAITS)
    g_string_append_printf (text, " and %u more", task->n_deps - MAX_NAMED_WAITS);
}

void
pto_svg_append_share (GString *text, const PtoSvgBar *bars, guint n, guint64 end)
{
  guint64 busy = 0;

  for (guint i = 0; i < n; i++)
    busy += bars[i].end - bars[i].start;
  pto_svg_append_percent (text, busy, bars[0].start, end);
}

/* Several runs in one bar. */
static void
append_clump (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n)
{
  GString *text = picture->text;
  g_autofree guint *count = g_new0 (guint, picture->legend->list->len);
  guint64 start = bars[0].start;
  guint64 end = bars[n - 1].end;

  for (guint i = 0; i < n; i++)
    count[bars[i].style]++;
  g_string_append_printf (text, "<g><title>%u tasks:", n);
  for (guint k = 0; k < picture->legend->list->len; k++)
    if (count[k] > 0)
      {
        g_string_append_printf (text, " %u ", count[k]);
        pto_svg_append_escaped (text, pto_legend_get (picture->legend, k)->name);
      }
  g_string_append_c (text, '\n');
  pto_svg_append_stretch (text, start, end);
  pto_svg_append_share (text, bars, n, end);
  g_string_append (text, "</title>");
  pto_svg_append_joined (picture, bars, n, pto_svg_x (picture, start),
                         MAX ((double) (end - start) * picture->scale, 0.5),
                         picture->core_top[row->core] + 1, picture->row - 2);
  g_string_append (text, "</g>\n");
}

static void
append_bar (PtoPicture *picture, const PtoSvgBar *bar)
{
  GString *text = picture->text;
  const PtoTraceEntry *task = bar->task;
  guint look = bar->style;
  const char *name = pto_legend_get (picture->legend, look)->name;
  g_autofree char *style = g_strdup_printf ("k%u%s", look, task->failed ? " failed" : "");
  double x = pto_svg_x (picture, task->start);
  double width = (double) (task->end - task->start) * picture->scale;
  double top = picture->core_top[task->core];
  double size = CLAMP (picture->row - 3.5, 8, 11);
  g_autofree char *label = pto_trace_dup_task_label (task->id);
  g_autofree char *letters = NULL;

  /* A hair of paper between two bars that follow each other. */
  pto_svg_append_rect (text, style, x, top + 1, width > 3 ? width - 0.5 : MAX (width, 0.5),
                       picture->row - 2);
  g_string_append (text, "><title>");
  append_story (picture, task, name);
  g_string_append (text, "</title></rect>");

  letters = g_strdup_printf ("%s %s", name, label);
  if (pto_svg_text_width (letters, size) + 8 > width)
    {
      g_free (letters);
      letters = pto_svg_text_width (name, size) + 5 <= width ? g_strdup (name)
                                                             : g_utf8_substring (name, 0, 1);
    }
  if (pto_svg_text_width (letters, size) + 3 <= width)
    {
      g_autofree char *within = g_strdup_printf ("in t%u\" font-size=\"%d", look, (int) size);

      pto_svg_append_label (picture, within, x + width / 2, top + picture->row / 2 + size * 0.36,
                            letters);
    }
  else
    g_string_append_c (text, '\n');
}

static void
draw (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n)
{
  if (n == 1)
    append_bar (picture, bars);
  else
    append_clump (picture, row, bars, n);
}

void
pto_svg_collect_runs (PtoPicture *picture)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  const PtoTracePart *part = pto_trace_get_part (picture->trace, 0);

  for (guint c = 0; c < analysis->n_cores; c++)
    {
      PtoSvgRow *row = pto_svg_rows_add (picture->runs, c);

      for (guint i = 0; i < analysis->n_core_runs[c]; i++)
        pto_svg_row_add_run (picture, row, part, &analysis->tasks[analysis->core_runs[c][i]]);
    }
}

void
pto_svg_append_runs (PtoPicture *picture)
{
  for (guint r = 0; r < picture->runs->len; r++)
    pto_svg_append_bars (picture, g_ptr_array_index (picture->runs, r), picture->narrow, draw);
}
