/* tables.c: what do the figures look like as text and as Markdown?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"
#include "tool.h"

#include "common/printable.h"
#include "common/save-file.h"

#include <glib/gi18n.h>
#include <math.h>
#include <string.h>

static char *
dup_value (double value, const char *unit)
{
  if (strcmp (unit, "bytes") == 0)
    return g_strdup_printf ("%.1f MiB", value / (1 << 20));
  if (fabs (value) >= 10000)
    {
      g_autofree char *digits = tool_group_digits ((guint64) fabs (value));

      return g_strdup_printf ("%s%s%s%s", value < 0 ? "-" : "", digits, *unit != '\0' ? " " : "",
                              unit);
    }
  else
    {
      g_autofree char *number = bench_dup_number (value);

      return g_strdup_printf ("%s%s%s", number, *unit != '\0' ? " " : "", unit);
    }
}

/* The geometric mean over W1 to W6 of the medians; 0 when one is missing. */
static double
geometric_mean (const BenchResults *results, const char *runtime, const char *metric)
{
  double sum = 0;

  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *row = bench_results_find (results, bench_workloads[w].name, runtime, metric);

      if (row == NULL)
        return 0;
      sum += log (bench_row_median (row));
    }
  return exp (sum / BENCH_N_WORKLOADS);
}

/* The fastest other runtime that infers dependencies. */
static const BenchRow *
best_peer (const BenchResults *results, const char *workload, const char *metric)
{
  const BenchRow *best = NULL;

  for (guint i = BENCH_PTO + 1; i < BENCH_N_RUNTIMES; i++)
    {
      const BenchRow *row
          = bench_runtimes[i].infers
                ? bench_results_find (results, workload, bench_runtimes[i].name, metric)
                : NULL;

      if (row != NULL && (best == NULL || bench_row_median (row) < bench_row_median (best)))
        best = row;
    }
  return best;
}

/* --- a table: a line for each row, its cells apart by tabs --- */

#define COLUMNS_MAX (BENCH_N_WORKLOADS + 2)

/* The medians of a runtime, and their mean. */
static void
add_runtime (GString *table, const BenchResults *results, const BenchRuntime *runtime,
             const char *metric, gboolean with_spread)
{
  double mean = geometric_mean (results, runtime->name, metric);
  g_autofree char *mean_text = mean > 0 ? bench_dup_number (mean) : g_strdup ("-");

  g_string_append_printf (table, "%s%s", runtime->name, runtime->infers ? "" : " *");
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *row
          = bench_results_find (results, bench_workloads[w].name, runtime->name, metric);
      g_autofree char *median = row != NULL ? bench_dup_number (bench_row_median (row)) : NULL;
      g_autofree char *min = row != NULL ? bench_dup_number (bench_row_min (row)) : NULL;
      g_autofree char *max = row != NULL ? bench_dup_number (bench_row_max (row)) : NULL;

      g_string_append_c (table, '\t');
      if (row != NULL && with_spread)
        g_string_append_printf (table, _ ("%s (%s to %s)"), median, min, max);
      else
        g_string_append (table, row != NULL ? median : "-");
    }
  g_string_append_printf (table, "\t%s\n", mean_text);
}

/* How many times the fastest other one this runtime takes, if there is something to compare. */
static void
add_ratios (GString *table, const BenchResults *results, const char *metric)
{
  gsize before = table->len;
  double product = 1;
  guint n_ratios = 0;

  g_string_append (table, _ ("pto / best inferring"));
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *ours = bench_results_find (results, bench_workloads[w].name,
                                                 bench_runtimes[BENCH_PTO].name, metric);
      const BenchRow *best = best_peer (results, bench_workloads[w].name, metric);
      double ratio
          = ours != NULL && best != NULL ? bench_row_median (ours) / bench_row_median (best) : 0;

      if (ratio > 0)
        g_string_append_printf (table, "\t%.2f %s", ratio, best->runtime);
      else
        g_string_append (table, "\t-");
      product *= ratio > 0 ? ratio : 1;
      n_ratios += ratio > 0;
    }
  if (n_ratios == BENCH_N_WORKLOADS)
    g_string_append_printf (table, "\t%.2f\n", pow (product, 1.0 / BENCH_N_WORKLOADS));
  else
    g_string_append (table, "\t-\n");
  if (n_ratios == 0)
    g_string_truncate (table, before);
}

/* One metric, W1 to W6 against the runtimes; NULL when nothing was measured. */
static char *
make_table (const BenchResults *results, const char *metric, gboolean with_spread)
{
  GString *table;

  if (bench_results_find (results, NULL, NULL, metric) == NULL)
    return NULL;
  table = g_string_new (NULL);
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    g_string_append_printf (table, "\t%s %s", bench_workloads[w].name,
                            _ (bench_workloads[w].description));
  g_string_append_printf (table, "\t%s\n", _ ("geometric mean"));
  for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
    if (bench_results_find (results, NULL, bench_runtimes[i].name, metric) != NULL)
      add_runtime (table, results, &bench_runtimes[i], metric, with_spread);
  add_ratios (table, results, metric);
  return g_string_free (table, FALSE);
}

/* What is told together. */
static const struct
{
  gboolean levels;
  const char *text_title;
  const char *markdown_title;
} parts[] = {
  { FALSE, N_ ("pto"), N_ ("This runtime on its own") },
  { TRUE, N_ ("pto, workers with children (levels 3 and 4)"),
    N_ ("Workers with children (levels 3 and 4)") },
};

/* The figures of one part; NULL when none was measured. */
static char *
make_figures (const BenchResults *results, gboolean levels)
{
  g_autoptr (GString) table = g_string_new (NULL);
  guint n = 0;

  g_string_append_printf (table, "\t%s\t%s\t%s\t%s\n", _ ("median"), _ ("min"), _ ("max"),
                          _ ("what"));
  for (guint i = 0; i < results->rows->len; i++)
    {
      const BenchRow *row = g_ptr_array_index (results->rows, i);
      const BenchFigure *figure = bench_find_figure (row->workload);
      gboolean is_growth = strcmp (row->metric, "growth") == 0;
      g_autofree char *median = dup_value (bench_row_median (row), row->unit);
      g_autofree char *min = dup_value (bench_row_min (row), row->unit);
      g_autofree char *max = dup_value (bench_row_max (row), row->unit);

      if (figure == NULL || (figure->means == BENCH_BY_LEVEL) != levels)
        continue;
      g_string_append_printf (table, "%s%s%s\t%s\t%s\t%s\t%s\n", row->workload,
                              is_growth ? ", " : "", is_growth ? _ ("growth") : "", median, min,
                              max, _ (figure->description));
      n++;
    }
  return n > 0 ? g_string_free (g_steal_pointer (&table), FALSE) : NULL;
}

/* last_is_text: in each row. */
static void
append_text (GString *text, const char *table, gboolean last_is_text)
{
  g_auto (GStrv) lines = g_strsplit (table, "\n", -1);
  int widths[COLUMNS_MAX] = { 0 };

  for (guint r = 0; lines[r][0] != '\0'; r++)
    {
      g_auto (GStrv) cells = g_strsplit (lines[r], "\t", COLUMNS_MAX);

      for (guint c = 0; cells[c] != NULL; c++)
        widths[c] = MAX (widths[c], (int) pto_count_columns (cells[c]));
    }
  for (guint r = 0; lines[r][0] != '\0'; r++)
    {
      g_auto (GStrv) cells = g_strsplit (lines[r], "\t", COLUMNS_MAX);

      for (guint c = 0; cells[c] != NULL; c++)
        {
          gboolean is_text = last_is_text && cells[c + 1] == NULL;

          g_string_append (text, "  ");
          pto_append_padded (text, cells[c], c == 0 ? -widths[c] : is_text ? 0 : widths[c]);
        }
      g_string_append_c (text, '\n');
    }
  g_string_append_c (text, '\n');
}

static void
append_markdown (GString *text, const char *table, gboolean last_is_text)
{
  g_auto (GStrv) lines = g_strsplit (table, "\n", -1);

  for (guint r = 0; lines[r][0] != '\0'; r++)
    {
      g_auto (GStrv) cells = g_strsplit (lines[r], "\t", COLUMNS_MAX);

      for (guint c = 0; cells[c] != NULL; c++)
        g_string_append_printf (text, "| %s ", cells[c]);
      g_string_append (text, "|\n");
      for (guint c = 0; r == 0 && cells[c] != NULL; c++)
        g_string_append (text, c == 0 || (last_is_text && cells[c + 1] == NULL) ? "|---" : "|---:");
      if (r == 0)
        g_string_append (text, "|\n");
    }
}

static GString *
tell (const BenchResults *results, gboolean is_markdown)
{
  g_autofree char *times = make_table (results, "ns_per_task", is_markdown);
  g_autofree char *metg = make_table (results, "metg50_us", is_markdown);
  void (*append) (GString * text, const char *table, gboolean last_is_text)
      = is_markdown ? append_markdown : append_text;
  GString *text = g_string_new (NULL);

  if (times != NULL)
    {
      g_string_append_printf (text,
                              is_markdown ? _ ("\n**ns per task**, empty bodies, %d workers\n\n")
                                          : _ ("ns per task, empty bodies, %d workers, median\n"),
                              BENCH_WORKERS);
      append (text, times, FALSE);
    }
  if (metg != NULL)
    {
      g_string_append_printf (
          text,
          is_markdown
              ? _ (
                  "\n**METG(50%%)**: the smallest task, in us, that keeps %d workers half busy\n\n")
              : _ (
                  "METG(50%%): the smallest task, in us, that keeps %d workers half busy, median\n"),
          BENCH_WORKERS);
      append (text, metg, FALSE);
    }
  if (times != NULL || metg != NULL)
    g_string_append (
        text, is_markdown
                  ? _ ("\n\\* is told the edges, which were found before the clock started.\n")
                  : _ ("* is told the edges, which were found before the clock started\n\n"));
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autofree char *figures = make_figures (results, parts[i].levels);

      if (figures == NULL)
        continue;
      if (is_markdown)
        g_string_append_printf (text, "\n**%s**\n\n", _ (parts[i].markdown_title));
      else
        g_string_append_printf (text, "%s\n", _ (parts[i].text_title));
      append (text, figures, TRUE);
    }
  for (guint i = 0; i < results->gaps->len; i++)
    {
      g_autofree char *gap = bench_gap_dup_text (g_ptr_array_index (results->gaps, i));

      g_string_append_printf (text, is_markdown ? _ ("\nLeft out: %s.\n") : _ ("left out: %s\n"),
                              gap);
    }
  return text;
}

void
bench_print_text (const BenchResults *results)
{
  g_autoptr (GString) text = tell (results, FALSE);

  g_print ("%s", text->str);
}

gboolean
bench_save_markdown (const BenchResults *results, const char *file, GError **error)
{
  g_autoptr (GString) text = tell (results, TRUE);
  g_autofree char *machine = bench_dup_machine ();
  g_autofree char *whole
      = g_strdup_printf (_ ("Measured on: %s. Medians, in parentheses the spread.\n"), machine);

  g_string_prepend (text, whole);
  return pto_save (file, text->str, text->len, 0666, error);
}
