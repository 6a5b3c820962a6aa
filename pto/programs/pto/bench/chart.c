/* chart.c: what do the figures look like as a picture?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"
#include "tool.h"

#include "common/save-file.h"

#include <glib/gi18n.h>
#include <math.h>
#include <string.h>

#define CHART_WIDTH 1240.0
#define CHART_LEFT 64.0
#define CHART_RIGHT 20.0
#define LEGEND_TOP 62.0
#define PANEL_TOP 134.0
#define PANEL_HEIGHT 270.0
#define PANEL_PITCH 358.0
#define GROUP_GAP 22.0

static void
append_text (GString *svg, const char *style, double x, double y, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);

  g_string_append_printf (svg, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", style, x, y,
                          escaped);
}

/* Short enough to stand above a bar. */
static char *
dup_label (double value)
{
  if (value >= 9950)
    return g_strdup_printf ("%.0fk", value / 1e3);
  if (value >= 999.5)
    return g_strdup_printf ("%.1fk", value / 1e3);
  if (value >= 9.95)
    return g_strdup_printf ("%.0f", value);
  return g_strdup_printf (value >= 0.995 ? "%.1f" : value >= 0.00995 ? "%.2f" : "%.3f", value);
}

/* One metric: a group of bars for each workload, on a logarithmic scale. */
typedef struct
{
  const char *metric;
  const char *title;
  double top;
  double low; /* the lowest power of ten */
  double decades;
  gboolean has_gaps; /* there is something to explain */
} Panel;

static double
panel_y (const Panel *panel, double value)
{
  return panel->top + PANEL_HEIGHT
         - CLAMP ((log10 (value) - panel->low) / panel->decades, 0, 1) * PANEL_HEIGHT;
}

static void
panel_fit (Panel *panel, const BenchResults *results)
{
  double lowest = INFINITY, highest = 0;

  for (guint i = 0; i < results->rows->len; i++)
    {
      const BenchRow *row = g_ptr_array_index (results->rows, i);

      if (strcmp (row->metric, panel->metric) != 0 || bench_find_figure (row->workload) != NULL)
        continue;
      lowest = MIN (lowest, bench_row_min (row));
      highest = MAX (highest, bench_row_max (row));
    }
  panel->low = floor (log10 (lowest));
  panel->decades = MAX (ceil (log10 (highest)) - panel->low, 1);
}

static void
append_scale (GString *svg, const Panel *panel)
{
  double last = panel->low + panel->decades;

  append_text (svg, "head", CHART_LEFT, panel->top - 18, panel->title);
  for (double decade = panel->low; decade <= last; decade++)
    {
      g_autofree char *label = decade >= 3 ? g_strdup_printf ("%.0fk", pow (10, decade - 3))
                                           : g_strdup_printf ("%g", pow (10, decade));
      double y = panel_y (panel, pow (10, decade));

      for (int k = 2; k < 10 && decade < last; k++)
        g_string_append_printf (svg, "<path class=\"minor\" d=\"M%.1f %.1fH%.1f\"/>\n", CHART_LEFT,
                                panel_y (panel, k * pow (10, decade)), CHART_WIDTH - CHART_RIGHT);
      g_string_append_printf (svg, "<path class=\"major\" d=\"M%.1f %.1fH%.1f\"/>\n", CHART_LEFT, y,
                              CHART_WIDTH - CHART_RIGHT);
      append_text (svg, "tick", CHART_LEFT - 8, y + 4, label);
    }
}

static void
append_bar (GString *svg, const Panel *panel, const BenchRow *row, guint runtime, double x,
            double width)
{
  double bottom = panel->top + PANEL_HEIGHT;
  double y = panel_y (panel, bench_row_median (row));
  g_autofree char *label = dup_label (bench_row_median (row));
  g_autofree char *median = bench_dup_number (bench_row_median (row));
  g_autofree char *min = bench_dup_number (bench_row_min (row));
  g_autofree char *max = bench_dup_number (bench_row_max (row));

  g_string_append_printf (
      svg,
      "<g><title>%s, %s: %s %s (%s to %s)</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
      "height=\"%.1f\" fill=\"%s\"/>",
      row->workload, row->runtime, median, row->unit, min, max, x + 1, y, width - 2, bottom - y,
      bench_runtimes[runtime].colour);
  if (!bench_runtimes[runtime].infers)
    g_string_append_printf (
        svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"url(#told)\"/>",
        x + 1, y, width - 2, bottom - y);
  g_string_append_printf (svg, "<path class=\"spread\" d=\"M%.1f %.1fV%.1f\"/></g>\n",
                          x + width / 2, panel_y (panel, bench_row_min (row)),
                          panel_y (panel, bench_row_max (row)));
  append_text (svg, runtime == BENCH_PTO ? "value ours" : "value", x + width / 2,
               panel_y (panel, bench_row_max (row)) - 4, label);
}

/* Why a runtime that takes part has no value here: what it said of this, or how it came to be left
 * out before. */
static const BenchGap *
find_gap (const BenchResults *results, const char *workload, const char *runtime,
          const char *metric)
{
  const BenchGap *found = NULL;

  for (guint i = 0; i < results->gaps->len; i++)
    {
      const BenchGap *gap = g_ptr_array_index (results->gaps, i);

      if (strcmp (gap->runtime, runtime) != 0)
        continue;
      found = gap;
      if (g_strcmp0 (gap->workload, workload) == 0 && g_strcmp0 (gap->metric, metric) == 0)
        break;
    }
  return found;
}

/* As high as the panel: a value would lie beyond what was tried, or there is none at all. */
static void
append_gap (GString *svg, Panel *panel, const BenchGap *gap, guint runtime, double x, double width)
{
  g_autofree char *text = bench_gap_dup_text (gap);
  g_autofree char *title = g_markup_escape_text (text, -1);

  g_string_append_printf (svg,
                          "<g><title>%s</title><rect class=\"gap\" x=\"%.1f\" y=\"%.1f\" "
                          "width=\"%.1f\" height=\"%.1f\" stroke=\"%s\"/></g>\n",
                          title, x + 1.5, panel->top, width - 3, PANEL_HEIGHT,
                          bench_runtimes[runtime].colour);
  append_text (svg, "value", x + width / 2, panel->top - 4, "none");
  panel->has_gaps = TRUE;
}

static void
append_panel (const BenchResults *results, GString *svg, Panel *panel)
{
  double group = (CHART_WIDTH - CHART_LEFT - CHART_RIGHT) / BENCH_N_WORKLOADS;
  double bar = (group - GROUP_GAP) / BENCH_N_RUNTIMES;

  panel_fit (panel, results);
  append_scale (svg, panel);
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchWorkload *workload = &bench_workloads[w];
      g_autofree char *name = g_strdup_printf ("%s %s", workload->name, workload->description);
      double left = CHART_LEFT + w * group + GROUP_GAP / 2;

      append_text (svg, "group", left + (group - GROUP_GAP) / 2, panel->top + PANEL_HEIGHT + 20,
                   name);
      for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
        {
          const char *runtime = bench_runtimes[i].name;
          const BenchRow *row
              = bench_results_find (results, workload->name, runtime, panel->metric);
          const BenchGap *gap
              = row == NULL && bench_results_find (results, NULL, runtime, NULL) != NULL
                        && bench_results_find (results, workload->name, NULL, panel->metric) != NULL
                    ? find_gap (results, workload->name, runtime, panel->metric)
                    : NULL;

          if (row != NULL)
            append_bar (svg, panel, row, i, left + i * bar, bar);
          else if (gap != NULL)
            append_gap (svg, panel, gap, i, left + i * bar, bar);
        }
    }
}

/* Who is who, how to read it, and who is not there. */
static void
append_legend (const BenchResults *results, GString *svg, gboolean has_gaps)
{
  g_autoptr (GString) absent = g_string_new (NULL);
  double x = CHART_LEFT;

  for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
    {
      const char *name = bench_runtimes[i].name;

      if (bench_results_find (results, NULL, name, NULL) == NULL)
        {
          if (find_gap (results, NULL, name, NULL) != NULL)
            g_string_append_printf (absent, "%s%s", absent->len > 0 ? ", " : "", name);
          continue;
        }
      g_string_append_printf (
          svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" fill=\"%s\"/>\n", x,
          LEGEND_TOP, bench_runtimes[i].colour);
      if (!bench_runtimes[i].infers)
        g_string_append_printf (
            svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" fill=\"url(#told)\"/>\n",
            x, LEGEND_TOP);
      append_text (svg, "legend", x + 18, LEGEND_TOP + 11, name);
      x += 18 + 8.2 * strlen (name) + 20;
    }
  append_text (svg, "note", x + 6, LEGEND_TOP + 11, "hatched: is told the edges; line: min to max");
  x = CHART_LEFT;
  if (has_gaps)
    {
      append_text (svg, "note", x, LEGEND_TOP + 29,
                   "dashed, none: no task that was tried is long enough, or it failed");
      x += 420;
    }
  if (absent->len > 0)
    {
      g_autofree char *text = g_strdup_printf ("left out: %s", absent->str);

      append_text (svg, "note", x, LEGEND_TOP + 29, text);
    }
}

gboolean
bench_save_chart (const BenchResults *results, const char *file, GError **error)
{
  Panel all[] = {
    { "ns_per_task", "ns per task, empty bodies (less is better)" },
    { "metg50_us",
      "METG(50%): the smallest task, in us, that keeps the workers half busy (less is better)" },
  };
  g_autoptr (GPtrArray) panels = g_ptr_array_new ();
  g_autoptr (GString) svg = g_string_new (NULL);
  g_autofree char *machine = bench_dup_machine ();
  g_autofree char *title
      = g_strdup_printf ("Task runtimes on the same graphs, %d workers each", BENCH_WORKERS);
  gboolean has_gaps = FALSE;
  double height;

  for (guint p = 0; p < G_N_ELEMENTS (all); p++)
    if (bench_results_find (results, NULL, NULL, all[p].metric) != NULL)
      {
        all[p].top = PANEL_TOP + panels->len * PANEL_PITCH;
        g_ptr_array_add (panels, &all[p]);
      }
  if (panels->len == 0)
    return tool_fail (error, _ ("%s: a chart needs one of W1 to W6"), file);
  height = PANEL_TOP + panels->len * PANEL_PITCH - 40;
  g_string_append_printf (
      svg,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\">\n<title>%s</title>\n",
      CHART_WIDTH, height, CHART_WIDTH, height, title);
  g_string_append (
      svg,
      "<style>\n"
      ".title{font-size:19px;font-weight:bold}.note{font-size:12px;fill:#555}\n"
      ".head{font-size:14px;font-weight:bold}.legend{font-size:13px}\n"
      ".tick{font-size:11px;text-anchor:end;fill:#555}.group{font-size:13px;text-anchor:middle}\n"
      ".value{font-size:10px;text-anchor:middle;fill:#333;stroke:#fff;stroke-width:2.5;"
      "paint-order:stroke}.ours{font-weight:bold;fill:#000}\n"
      ".major{stroke:#c4c4c4;stroke-width:1}.minor{stroke:#ededed;stroke-width:1}\n"
      ".spread{stroke:#222;stroke-width:1.2}\n"
      ".gap{fill:none;stroke-width:1.2;stroke-dasharray:4 4}\n"
      "</style>\n"
      "<defs><pattern id=\"told\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
      "<path d=\"M-1.5 1.5L1.5 -1.5M0 6L6 0M4.5 7.5L7.5 4.5\" stroke=\"#fff\" stroke-width=\"1.6\"/>"
      "</pattern></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  append_text (svg, "title", CHART_LEFT, 30, title);
  append_text (svg, "note", CHART_LEFT, 49, machine);
  for (guint p = 0; p < panels->len; p++)
    {
      append_panel (results, svg, g_ptr_array_index (panels, p));
      has_gaps = has_gaps || ((Panel *) g_ptr_array_index (panels, p))->has_gaps;
    }
  append_legend (results, svg, has_gaps);
  g_string_append (svg, "</svg>\n");
  return pto_save (file, svg->str, svg->len, 0666, error);
}
