/* results.c: what was measured, and what could not be?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"
#include "tool.h"

#include "common/json.h"

#include <math.h>
#include <string.h>

static void
row_free (gpointer data)
{
  BenchRow *row = data;

  g_free (row->workload);
  g_free (row->metric);
  g_free (row->unit);
  g_array_unref (row->values);
  g_free (row);
}

static void
gap_free (gpointer data)
{
  BenchGap *gap = data;

  g_free (gap->reason);
  g_free (gap);
}

void
bench_results_init (BenchResults *results)
{
  results->rows = g_ptr_array_new_with_free_func (row_free);
  results->gaps = g_ptr_array_new_with_free_func (gap_free);
  results->failed = FALSE;
}

void
bench_results_clear (BenchResults *results)
{
  g_clear_pointer (&results->rows, g_ptr_array_unref);
  g_clear_pointer (&results->gaps, g_ptr_array_unref);
}

BenchRow *
bench_results_find (const BenchResults *results, const char *workload, const char *runtime,
                    const char *metric)
{
  for (guint i = 0; i < results->rows->len; i++)
    {
      BenchRow *row = g_ptr_array_index (results->rows, i);

      if ((workload != NULL ? strcmp (row->workload, workload) == 0
                            : bench_find_figure (row->workload) == NULL)
          && (runtime == NULL || strcmp (row->runtime, runtime) == 0)
          && (metric == NULL || strcmp (row->metric, metric) == 0))
        return row;
    }
  return NULL;
}

void
bench_results_add (BenchResults *results, const char *workload, const char *runtime,
                   const char *metric, double value, const char *unit)
{
  BenchRow *row = bench_results_find (results, workload, runtime, metric);

  if (row == NULL)
    {
      row = g_new (BenchRow, 1);
      row->workload = g_strdup (workload);
      row->runtime = runtime;
      row->metric = g_strdup (metric);
      row->unit = g_strdup (unit);
      row->values = g_array_new (FALSE, FALSE, sizeof (double));
      g_ptr_array_add (results->rows, row);
    }
  g_array_append_val (row->values, value);
}

void
bench_results_add_gap (BenchResults *results, const char *runtime, const char *workload,
                       const char *metric, char *reason)
{
  BenchGap *gap = g_new (BenchGap, 1);

  *gap = (BenchGap){ runtime, workload, metric, reason };
  g_ptr_array_add (results->gaps, gap);
}

char *
bench_gap_dup_text (const BenchGap *gap)
{
  return g_strjoin (": ", gap->runtime, gap->workload != NULL ? gap->workload : gap->reason,
                    gap->workload != NULL ? gap->reason : NULL, NULL);
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

void
bench_results_sort (BenchResults *results)
{
  for (guint i = 0; i < results->rows->len; i++)
    {
      BenchRow *row = g_ptr_array_index (results->rows, i);

      g_array_sort (row->values, compare_doubles);
    }
}

double
bench_row_min (const BenchRow *row)
{
  return g_array_index (row->values, double, 0);
}

double
bench_row_max (const BenchRow *row)
{
  return g_array_index (row->values, double, row->values->len - 1);
}

double
bench_row_median (const BenchRow *row)
{
  guint n = row->values->len;

  return (g_array_index (row->values, double, (n - 1) / 2)
          + g_array_index (row->values, double, n / 2))
         / 2;
}

char *
bench_dup_number (double value)
{
  double size = fabs (value);
  int decimals = size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;

  return g_strdup_printf ("%.*f", decimals, value);
}

void
bench_results_print_json (const BenchResults *results)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_array (builder);
  for (guint i = 0; i < results->rows->len; i++)
    {
      const BenchRow *row = g_ptr_array_index (results->rows, i);
      const BenchFigure *figure = bench_find_figure (row->workload);

      json_builder_begin_object (builder);
      pto_json_add_string (builder, "workload", row->workload);
      pto_json_add_string (builder, "runtime", row->runtime);
      pto_json_add_int (builder, "workers", figure != NULL ? figure->workers : BENCH_WORKERS);
      pto_json_add_string (builder, "metric", row->metric);
      pto_json_add_double (builder, "median", bench_row_median (row));
      pto_json_add_double (builder, "min", bench_row_min (row));
      pto_json_add_double (builder, "max", bench_row_max (row));
      pto_json_add_string (builder, "unit", row->unit);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
  tool_print_json (builder);
}
