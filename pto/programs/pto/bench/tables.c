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

/* A table of one metric, W1 to W6 against the runtimes: rows of cells, each a new string; NULL when
 * nothing was measured. */
static GPtrArray *
make_table (const BenchResults *results, const char *metric, gboolean with_spread)
{
  g_autoptr (GPtrArray) table = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);
  double product = 1;
  guint n_ratios = 0;
  gboolean any = FALSE;

  g_ptr_array_add (cells, g_strdup (""));
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    g_ptr_array_add (cells, g_strdup_printf ("%s %s", bench_workloads[w].name,
                                             _ (bench_workloads[w].description)));
  g_ptr_array_add (cells, g_strdup (_ ("geometric mean")));
  g_ptr_array_add (table, cells);

  for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
    {
      double mean = geometric_mean (results, bench_runtimes[i].name, metric);
      gboolean measured = FALSE;

      cells = g_ptr_array_new_with_free_func (g_free);
      g_ptr_array_add (cells, g_strdup_printf ("%s%s", bench_runtimes[i].name,
                                               bench_runtimes[i].infers ? "" : " *"));
      for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
        {
          const BenchRow *row = bench_results_find (results, bench_workloads[w].name,
                                                    bench_runtimes[i].name, metric);
          g_autofree char *median
              = row != NULL ? bench_dup_number (bench_row_median (row)) : g_strdup ("-");

          measured = measured || row != NULL;
          if (row != NULL && with_spread)
            {
              g_autofree char *min = bench_dup_number (bench_row_min (row));
              g_autofree char *max = bench_dup_number (bench_row_max (row));

              g_ptr_array_add (cells, g_strdup_printf (_ ("%s (%s to %s)"), median, min, max));
            }
          else
            g_ptr_array_add (cells, g_steal_pointer (&median));
        }
      g_ptr_array_add (cells, mean > 0 ? bench_dup_number (mean) : g_strdup ("-"));
      any = any || measured;
      if (measured)
        g_ptr_array_add (table, cells);
      else
        g_ptr_array_unref (cells);
    }

  cells = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (cells, g_strdup (_ ("pto / best inferring")));
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *ours = bench_results_find (results, bench_workloads[w].name,
                                                 bench_runtimes[BENCH_PTO].name, metric);
      const BenchRow *best = best_peer (results, bench_workloads[w].name, metric);

      if (ours != NULL && best != NULL)
        {
          double ratio = bench_row_median (ours) / bench_row_median (best);

          product *= ratio;
          n_ratios++;
          g_ptr_array_add (cells, g_strdup_printf ("%.2f %s", ratio, best->runtime));
        }
      else
        g_ptr_array_add (cells, g_strdup ("-"));
    }
  g_ptr_array_add (cells, n_ratios == BENCH_N_WORKLOADS
                              ? g_strdup_printf ("%.2f", pow (product, 1.0 / BENCH_N_WORKLOADS))
                              : g_strdup ("-"));
  if (n_ratios > 0)
    g_ptr_array_add (table, cells);
  else
    g_ptr_array_unref (cells);
  return any ? g_steal_pointer (&table) : NULL;
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
static GPtrArray *
make_figures (const BenchResults *results, gboolean levels)
{
  g_autoptr (GPtrArray) table = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (cells, g_strdup (""));
  g_ptr_array_add (cells, g_strdup (_ ("median")));
  g_ptr_array_add (cells, g_strdup (_ ("min")));
  g_ptr_array_add (cells, g_strdup (_ ("max")));
  g_ptr_array_add (cells, g_strdup (_ ("what")));
  g_ptr_array_add (table, cells);
  for (guint i = 0; i < results->rows->len; i++)
    {
      const BenchRow *row = g_ptr_array_index (results->rows, i);
      const BenchFigure *figure = bench_find_figure (row->workload);

      if (figure == NULL || (figure->means == BENCH_BY_LEVEL) != levels)
        continue;
      cells = g_ptr_array_new_with_free_func (g_free);
      if (strcmp (row->metric, "growth") == 0)
        g_ptr_array_add (cells, g_strdup_printf ("%s, %s", row->workload, _ ("growth")));
      else
        g_ptr_array_add (cells, g_strdup (row->workload));
      g_ptr_array_add (cells, dup_value (bench_row_median (row), row->unit));
      g_ptr_array_add (cells, dup_value (bench_row_min (row), row->unit));
      g_ptr_array_add (cells, dup_value (bench_row_max (row), row->unit));
      g_ptr_array_add (cells, g_strdup (_ (figure->description)));
      g_ptr_array_add (table, cells);
    }
  return table->len > 1 ? g_steal_pointer (&table) : NULL;
}

static void
print_table (GPtrArray *table, gboolean last_is_text)
{
  GPtrArray *head = g_ptr_array_index (table, 0);
  g_autofree guint *widths = g_new0 (guint, head->len);

  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        widths[c] = MAX (widths[c], pto_count_columns (g_ptr_array_index (cells, c)));
    }
  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        {
          const char *cell = g_ptr_array_index (cells, c);
          guint padding = widths[c] - pto_count_columns (cell);

          if (c == 0)
            g_print ("  %s%*s", cell, (int) padding, "");
          else if (last_is_text && c + 1 == cells->len)
            g_print ("  %s", cell);
          else
            g_print ("  %*s%s", (int) padding, "", cell);
        }
      g_print ("\n");
    }
}

void
bench_print_text (const BenchResults *results)
{
  g_autoptr (GPtrArray) times = make_table (results, "ns_per_task", FALSE);
  g_autoptr (GPtrArray) metg = make_table (results, "metg50_us", FALSE);

  if (times != NULL)
    {
      g_print (_ ("ns per task, empty bodies, %d workers, median\n"), BENCH_WORKERS);
      print_table (times, FALSE);
      g_print ("\n");
    }
  if (metg != NULL)
    {
      g_print (
          _ ("METG(50%%): the smallest task, in us, that keeps %d workers half busy, median\n"),
          BENCH_WORKERS);
      print_table (metg, FALSE);
      g_print ("\n");
    }
  if (times != NULL || metg != NULL)
    g_print (_ ("* is told the edges, which were found before the clock started\n\n"));
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autoptr (GPtrArray) figures = make_figures (results, parts[i].levels);

      if (figures == NULL)
        continue;
      g_print ("%s\n", _ (parts[i].text_title));
      print_table (figures, TRUE);
      g_print ("\n");
    }
  for (guint i = 0; i < results->gaps->len; i++)
    {
      g_autofree char *gap = bench_gap_dup_text (g_ptr_array_index (results->gaps, i));

      g_print (_ ("left out: %s\n"), gap);
    }
}

static void
append_table (GString *text, GPtrArray *table, gboolean last_is_text)
{
  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        g_string_append_printf (text, "| %s ", (const char *) g_ptr_array_index (cells, c));
      g_string_append (text, "|\n");
      for (guint c = 0; r == 0 && c < cells->len; c++)
        g_string_append (text, c == 0 || (last_is_text && c + 1 == cells->len) ? "|---" : "|---:");
      if (r == 0)
        g_string_append (text, "|\n");
    }
}

gboolean
bench_save_markdown (const BenchResults *results, const char *file, GError **error)
{
  g_autoptr (GPtrArray) times = make_table (results, "ns_per_task", TRUE);
  g_autoptr (GPtrArray) metg = make_table (results, "metg50_us", TRUE);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *machine = bench_dup_machine ();

  g_string_append_printf (text, _ ("Measured on: %s. Medians, in parentheses the spread.\n"),
                          machine);
  if (times != NULL)
    {
      g_string_append_printf (text, _ ("\n**ns per task**, empty bodies, %d workers\n\n"),
                              BENCH_WORKERS);
      append_table (text, times, FALSE);
    }
  if (metg != NULL)
    {
      g_string_append_printf (
          text,
          _ ("\n**METG(50%%)**: the smallest task, in us, that keeps %d workers half busy\n\n"),
          BENCH_WORKERS);
      append_table (text, metg, FALSE);
    }
  if (times != NULL || metg != NULL)
    g_string_append (text,
                     _ ("\n\\* is told the edges, which were found before the clock started.\n"));
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autoptr (GPtrArray) figures = make_figures (results, parts[i].levels);

      if (figures == NULL)
        continue;
      g_string_append_printf (text, "\n**%s**\n\n", _ (parts[i].markdown_title));
      append_table (text, figures, TRUE);
    }
  for (guint i = 0; i < results->gaps->len; i++)
    {
      g_autofree char *gap = bench_gap_dup_text (g_ptr_array_index (results->gaps, i));

      g_string_append_printf (text, _ ("\nLeft out: %s.\n"), gap);
    }
  return pto_save (file, text->str, text->len, 0666, error);
}
