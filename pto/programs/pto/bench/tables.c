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

/* A table is rows of cells. */
static GPtrArray *
add_row (GPtrArray *table)
{
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (table, cells);
  return cells;
}

G_GNUC_PRINTF (2, 3)
static void
add_cell (GPtrArray *cells, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_ptr_array_add (cells, g_strdup_vprintf (format, args));
  va_end (args);
}

static GPtrArray *
table_new (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
}

static const char *
get_cell (const GPtrArray *table, guint row, guint column)
{
  return g_ptr_array_index ((const GPtrArray *) g_ptr_array_index (table, row), column);
}

/* The medians of a runtime, and their mean. */
static void
add_runtime (GPtrArray *table, const BenchResults *results, const BenchRuntime *runtime,
             const char *metric, gboolean with_spread)
{
  double mean = geometric_mean (results, runtime->name, metric);
  GPtrArray *cells = add_row (table);

  add_cell (cells, "%s%s", runtime->name, runtime->infers ? "" : " *");
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *row
          = bench_results_find (results, bench_workloads[w].name, runtime->name, metric);
      g_autofree char *median = row != NULL ? bench_dup_number (bench_row_median (row)) : NULL;
      g_autofree char *min = row != NULL ? bench_dup_number (bench_row_min (row)) : NULL;
      g_autofree char *max = row != NULL ? bench_dup_number (bench_row_max (row)) : NULL;

      if (row != NULL && with_spread)
        add_cell (cells, _ ("%s (%s to %s)"), median, min, max);
      else
        add_cell (cells, "%s", row != NULL ? median : "-");
    }
  g_ptr_array_add (cells, mean > 0 ? bench_dup_number (mean) : g_strdup ("-"));
}

/* How many times the fastest other one this runtime takes. FALSE: there is nothing to compare. */
static gboolean
add_ratios (GPtrArray *table, const BenchResults *results, const char *metric)
{
  GPtrArray *cells = add_row (table);
  double product = 1;
  guint n_ratios = 0;

  add_cell (cells, "%s", _ ("pto / best inferring"));
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    {
      const BenchRow *ours = bench_results_find (results, bench_workloads[w].name,
                                                 bench_runtimes[BENCH_PTO].name, metric);
      const BenchRow *best = best_peer (results, bench_workloads[w].name, metric);
      double ratio
          = ours != NULL && best != NULL ? bench_row_median (ours) / bench_row_median (best) : 0;

      if (ratio > 0)
        add_cell (cells, "%.2f %s", ratio, best->runtime);
      else
        add_cell (cells, "-");
      product *= ratio > 0 ? ratio : 1;
      n_ratios += ratio > 0;
    }
  if (n_ratios == BENCH_N_WORKLOADS)
    add_cell (cells, "%.2f", pow (product, 1.0 / BENCH_N_WORKLOADS));
  else
    add_cell (cells, "-");
  return n_ratios > 0;
}

/* One metric, W1 to W6 against the runtimes; NULL when nothing was measured. */
static GPtrArray *
make_table (const BenchResults *results, const char *metric, gboolean with_spread)
{
  GPtrArray *table, *cells;

  if (bench_results_find (results, NULL, NULL, metric) == NULL)
    return NULL;
  table = table_new ();
  cells = add_row (table);
  add_cell (cells, "%s", "");
  for (guint w = 0; w < BENCH_N_WORKLOADS; w++)
    add_cell (cells, "%s %s", bench_workloads[w].name, _ (bench_workloads[w].description));
  add_cell (cells, "%s", _ ("geometric mean"));
  for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
    if (bench_results_find (results, NULL, bench_runtimes[i].name, metric) != NULL)
      add_runtime (table, results, &bench_runtimes[i], metric, with_spread);
  if (!add_ratios (table, results, metric))
    g_ptr_array_remove_index (table, table->len - 1);
  return table;
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
  const char *const head[] = { "", _ ("median"), _ ("min"), _ ("max"), _ ("what") };
  g_autoptr (GPtrArray) table = table_new ();
  GPtrArray *cells = add_row (table);

  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    add_cell (cells, "%s", head[i]);
  for (guint i = 0; i < results->rows->len; i++)
    {
      const BenchRow *row = g_ptr_array_index (results->rows, i);
      const BenchFigure *figure = bench_find_figure (row->workload);

      if (figure == NULL || (figure->means == BENCH_BY_LEVEL) != levels)
        continue;
      cells = add_row (table);
      if (strcmp (row->metric, "growth") == 0)
        add_cell (cells, "%s, %s", row->workload, _ ("growth"));
      else
        add_cell (cells, "%s", row->workload);
      g_ptr_array_add (cells, dup_value (bench_row_median (row), row->unit));
      g_ptr_array_add (cells, dup_value (bench_row_min (row), row->unit));
      g_ptr_array_add (cells, dup_value (bench_row_max (row), row->unit));
      add_cell (cells, "%s", _ (figure->description));
    }
  return table->len > 1 ? g_steal_pointer (&table) : NULL;
}

static void
append_text (GString *text, const GPtrArray *table, gboolean last_is_text)
{
  const GPtrArray *head = g_ptr_array_index (table, 0);
  g_autofree int *widths = g_new0 (int, head->len);

  for (guint r = 0; r < table->len; r++)
    for (guint c = 0; c < head->len; c++)
      widths[c] = MAX (widths[c], (int) pto_count_columns (get_cell (table, r, c)));
  for (guint r = 0; r < table->len; r++)
    {
      for (guint c = 0; c < head->len; c++)
        {
          gboolean is_text = last_is_text && c + 1 == head->len;

          g_string_append (text, "  ");
          pto_append_padded (text, get_cell (table, r, c),
                             c == 0    ? -widths[c]
                             : is_text ? 0
                                       : widths[c]);
        }
      g_string_append_c (text, '\n');
    }
  g_string_append_c (text, '\n');
}

static void
append_markdown (GString *text, const GPtrArray *table, gboolean last_is_text)
{
  const GPtrArray *head = g_ptr_array_index (table, 0);

  for (guint r = 0; r < table->len; r++)
    {
      for (guint c = 0; c < head->len; c++)
        g_string_append_printf (text, "| %s ", get_cell (table, r, c));
      g_string_append (text, "|\n");
      for (guint c = 0; r == 0 && c < head->len; c++)
        g_string_append (text, c == 0 || (last_is_text && c + 1 == head->len) ? "|---" : "|---:");
      if (r == 0)
        g_string_append (text, "|\n");
    }
}

static GString *
tell (const BenchResults *results, gboolean is_markdown)
{
  g_autoptr (GPtrArray) times = make_table (results, "ns_per_task", is_markdown);
  g_autoptr (GPtrArray) metg = make_table (results, "metg50_us", is_markdown);
  void (*append) (GString * text, const GPtrArray *table, gboolean last_is_text)
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
      g_autoptr (GPtrArray) figures = make_figures (results, parts[i].levels);

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
