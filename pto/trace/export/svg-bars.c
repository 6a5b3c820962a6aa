/* svg-bars.c: how is what cores ran drawn?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A bar for each run; runs that are narrow and close are one, as many as it takes to keep the
 * picture small. Such a bar is as high as its runs took a share of its width: a core that was busy
 * for 8 % of the time looks so, however many runs that were.
 */
#include "config.h"

#include "svg.h"

#define MAX_BARS 6000
#define MAX_NAMED_WAITS 6
#define LEAST_HEIGHT 1 /* of what ran in a bar of many */

/* The story of one task. */
static void
append_story (PtoPicture *picture, const PtoTraceEntry *task)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  GString *text = picture->text;
  g_autofree char *label = pto_trace_dup_task_label (task->id);
  g_autofree char *core = pto_trace_dup_core_name (picture->trace, task->core);
  guint64 sum[PTO_TRACE_N_MOVED];

  g_string_append (text, "task ");
  pto_svg_append_escaped (text, g_array_index (picture->legend, PtoLegendEntry,
                                               pto_svg_get_style (picture, task->kernel))
                                    .name);
  g_string_append_printf (text, " %s", label);
  if (task->block != PTO_TRACE_NOWHERE)
    g_string_append_printf (text, ", block %u", task->block);
  if (task->terms.priority > 0)
    g_string_append_printf (text, ", priority %u", task->terms.priority);
  g_string_append (text, " on ");
  pto_svg_append_escaped (text, core);
  g_string_append_printf (text, "%s\nruns ", task->failed ? ", failed" : "");
  pto_trace_append_us (text, task->start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, task->end);
  g_string_append (text, " \302\265s (");
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
          g_autofree char *kernel = pto_trace_dup_kernel_name (
              picture->trace, analysis->tasks[dep->producer_index].kernel);

          pto_svg_append_escaped (text, kernel);
          g_string_append_c (text, ' ');
        }
      g_string_append (text, producer);
    }
  if (task->n_deps > MAX_NAMED_WAITS)
    g_string_append_printf (text, " and %u more", task->n_deps - MAX_NAMED_WAITS);
}

gboolean
pto_svg_joins (double start, double end, double next, double next_end, double narrow)
{
  return next_end - next < narrow && next - end <= MAX (narrow / 2, 2)
         && next_end - start <= MAX (2 * narrow, 4);
}

void
pto_svg_append_joined (PtoPicture *picture, const guint64 *parts, guint64 took, double x,
                       double width, double top, double height)
{
  GString *text = picture->text;
  guint64 total = 0;
  double filled, y = top + height;

  for (guint k = 0; k < picture->legend->len; k++)
    total += parts[k];
  filled = CLAMP ((double) took * picture->scale / width * height, LEAST_HEIGHT, height);
  pto_svg_append_rect (text, "joined", x, top, width, height);
  g_string_append (text, "/>");
  for (guint k = 0; k < picture->legend->len; k++)
    {
      double share = (double) parts[k] / (double) MAX (total, 1) * filled;
      g_autofree char *style = g_strdup_printf ("k%u", k);

      if (parts[k] == 0)
        continue;
      y -= share;
      pto_svg_append_rect (text, style, x, y, width, share);
      g_string_append (text, "/>");
    }
}

void
pto_svg_append_share (GString *text, guint64 busy, guint64 from, guint64 to)
{
  if (to <= from)
    return;
  g_string_append (text, ", ");
  pto_trace_append_fixed (text, MIN (100.0 * (double) busy / (double) (to - from), 100), 0);
  g_string_append (text, " % of it");
}

/* How many of the runs from first on share one bar: those that are narrow and close. */
static guint
clump_length (const PtoPicture *picture, guint core, guint first, double narrow)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  const guint32 *runs = analysis->core_runs[core];
  const PtoTraceEntry *task = &analysis->tasks[runs[first]];
  double start = pto_svg_x (picture, task->start);
  double end = pto_svg_x (picture, task->end);
  guint n = 1;

  if (end - start >= narrow)
    return 1;
  for (; first + n < analysis->n_core_runs[core]; n++)
    {
      const PtoTraceEntry *next = &analysis->tasks[runs[first + n]];

      if (!pto_svg_joins (start, end, pto_svg_x (picture, next->start),
                          pto_svg_x (picture, next->end), narrow))
        break;
      end = pto_svg_x (picture, next->end);
    }
  return n;
}

static guint
count_bars (const PtoPicture *picture, double narrow)
{
  guint n = 0;

  for (guint c = 0; c < picture->analysis->n_cores; c++)
    for (guint i = 0; i < picture->analysis->n_core_runs[c]; n++)
      i += clump_length (picture, c, i, narrow);
  return n;
}

/* Several runs in one bar. */
static void
append_clump (PtoPicture *picture, guint core, guint first, guint n)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  GString *text = picture->text;
  g_autofree guint64 *busy = g_new0 (guint64, picture->legend->len);
  g_autofree guint *count = g_new0 (guint, picture->legend->len);
  const PtoTraceEntry *from = &analysis->tasks[analysis->core_runs[core][first]];
  const PtoTraceEntry *to = &analysis->tasks[analysis->core_runs[core][first + n - 1]];
  double width = MAX ((double) (to->end - from->start) * picture->scale, 0.5);
  guint64 total = 0;

  for (guint i = 0; i < n; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[core][first + i]];
      guint k = pto_svg_get_style (picture, task->kernel);

      busy[k] += task->end - task->start;
      total += task->end - task->start;
      count[k]++;
    }
  g_string_append_printf (text, "<g><title>%u tasks:", n);
  for (guint k = 0; k < picture->legend->len; k++)
    if (count[k] > 0)
      {
        g_string_append_printf (text, " %u ", count[k]);
        pto_svg_append_escaped (text, g_array_index (picture->legend, PtoLegendEntry, k).name);
        /* A run of no time still counts. */
        busy[k] = MAX (busy[k], 1);
      }
  g_string_append_c (text, '\n');
  pto_trace_append_us (text, from->start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, to->end);
  g_string_append (text, " \302\265s");
  pto_svg_append_share (text, total, from->start, to->end);
  g_string_append (text, "</title>");
  pto_svg_append_joined (picture, busy, total, pto_svg_x (picture, from->start), width,
                         picture->core_top[core] + 1, picture->row - 2);
  g_string_append (text, "</g>\n");
}

static void
append_bar (PtoPicture *picture, const PtoTraceEntry *task)
{
  GString *text = picture->text;
  guint look = pto_svg_get_style (picture, task->kernel);
  const char *name = g_array_index (picture->legend, PtoLegendEntry, look).name;
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
  append_story (picture, task);
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
      g_string_append_printf (text, "<text class=\"in t%u\" font-size=\"%d\"", look, (int) size);
      pto_svg_append_attribute (text, "x", x + width / 2);
      pto_svg_append_attribute (text, "y", top + picture->row / 2 + size * 0.36);
      g_string_append_c (text, '>');
      pto_svg_append_escaped (text, letters);
      g_string_append (text, "</text>");
    }
  g_string_append_c (text, '\n');
}

void
pto_svg_measure_bars (PtoPicture *picture)
{
  guint n = 0;

  picture->narrow = 1;
  while (count_bars (picture, picture->narrow) + pto_svg_count_transfers (picture, picture->narrow)
             > MAX_BARS
         && picture->narrow < 1000)
    picture->narrow *= 1.5;
  for (guint c = 0; c < picture->analysis->n_cores; c++)
    n += picture->analysis->n_core_runs[c];
  picture->has_joined = count_bars (picture, picture->narrow) < n;
}

void
pto_svg_append_bars (PtoPicture *picture)
{
  const PtoTraceAnalysis *analysis = picture->analysis;

  for (guint c = 0; c < analysis->n_cores; c++)
    for (guint i = 0; i < analysis->n_core_runs[c];)
      {
        guint n = clump_length (picture, c, i, picture->narrow);

        if (n == 1)
          append_bar (picture, &analysis->tasks[analysis->core_runs[c][i]]);
        else
          append_clump (picture, c, i, n);
        i += n;
      }
}
