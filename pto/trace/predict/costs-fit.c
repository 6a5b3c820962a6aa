/* costs-fit.c: which cost says best what a kernel was seen to take?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of each size the median counts, so that a few times that something else made long change nothing.
 * The simplest of the costs that kernels can have is taken: a constant where no size is off by
 * much, a line by the median of all slopes (Theil and Sen), of which a few bad sizes change nothing
 * either, and otherwise the medians themselves.
 */
#include "config.h"

#include "costs.h"

#include <math.h>

/* As shares of what was measured, on average over all sizes. */
#define CONSTANT_ENOUGH 0.02
#define LINEAR_ENOUGH 0.10

enum
{
  MOST_POINTS = 64 /* of a table */
};

/* Sorts them. */
static double
find_median (GArray *values)
{
  guint n = values->len;

  g_array_sort (values, pto_costs_compare_times);
  return n % 2 == 1
             ? g_array_index (values, double, n / 2)
             : (g_array_index (values, double, n / 2 - 1) + g_array_index (values, double, n / 2))
                   / 2;
}

static const PtoCostsPoint *
get_point (const PtoCostsFit *fit, guint i)
{
  return &g_array_index (fit->points, PtoCostsPoint, i);
}

static double
predict (const PtoCostsFit *fit, guint64 bytes)
{
  const PtoCostsPoint *before, *after;
  guint i = 0;

  if (fit->model[0] != 't')
    return fit->base_ns + (fit->ns_per_byte > 0 ? fit->ns_per_byte * (double) bytes : 0);
  while (i < fit->points->len && get_point (fit, i)->bytes < bytes)
    i++;
  if (i == 0 || i == fit->points->len)
    return get_point (fit, i == 0 ? 0 : i - 1)->ns;
  before = get_point (fit, i - 1);
  after = get_point (fit, i);
  return before->ns
         + (double) (bytes - before->bytes) / (double) (after->bytes - before->bytes)
               * (after->ns - before->ns);
}

static double
find_error (double ns, double predicted)
{
  return fabs (predicted - ns) / ns;
}

static double
find_mean_error (const PtoCostsFit *fit)
{
  double sum = 0;

  for (guint i = 0; i < fit->points->len; i++)
    sum += find_error (get_point (fit, i)->ns, predict (fit, get_point (fit, i)->bytes));
  return sum / fit->points->len;
}

static void
try_constant (PtoCostsFit *fit)
{
  g_autoptr (GArray) medians = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < fit->points->len; i++)
    g_array_append_val (medians, get_point (fit, i)->ns);
  fit->model = "constant";
  fit->base_ns = find_median (medians);
  fit->ns_per_byte = 0;
}

/* FALSE: it would fall, or take less than nothing. */
static gboolean
try_line (PtoCostsFit *fit)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  double slope, base;

  for (guint i = 0; i < fit->points->len; i++)
    for (guint j = i + 1; j < fit->points->len; j++)
      {
        double bytes = (double) (get_point (fit, j)->bytes - get_point (fit, i)->bytes);

        slope = (get_point (fit, j)->ns - get_point (fit, i)->ns) / bytes;
        g_array_append_val (values, slope);
      }
  if (values->len == 0)
    return FALSE;
  slope = find_median (values);
  if (slope <= 0)
    return FALSE;
  g_array_set_size (values, 0);
  for (guint i = 0; i < fit->points->len; i++)
    {
      base = get_point (fit, i)->ns - slope * (double) get_point (fit, i)->bytes;
      g_array_append_val (values, base);
    }
  base = find_median (values);
  if (base < 0)
    {
      /* Through nothing at no bytes: what a byte takes, of the sizes that have some. */
      g_array_set_size (values, 0);
      for (guint i = 0; i < fit->points->len; i++)
        if (get_point (fit, i)->bytes > 0)
          {
            slope = get_point (fit, i)->ns / (double) get_point (fit, i)->bytes;
            g_array_append_val (values, slope);
          }
      slope = find_median (values);
      base = 0;
    }
  fit->model = "linear";
  fit->base_ns = base;
  fit->ns_per_byte = slope;
  return TRUE;
}

static void
choose_model (PtoCostsFit *fit)
{
  double constant_error;

  try_constant (fit);
  constant_error = find_mean_error (fit);
  if (fit->points->len < 2 || constant_error <= CONSTANT_ENOUGH)
    return;
  if (try_line (fit) && find_mean_error (fit) <= LINEAR_ENOUGH)
    return;
  fit->model = "table";
  fit->base_ns = fit->ns_per_byte = 0;
}

static char *
dup_cost (const PtoCostsFit *fit)
{
  GString *text = g_string_new (fit->model);
  guint n = fit->points->len;
  guint shown = MIN (n, MOST_POINTS);

  if (fit->model[0] != 't')
    {
      g_string_append_c (text, ':');
      pto_costs_append_number (text, "%.10g", fit->base_ns, "");
    }
  if (fit->model[0] == 'l')
    {
      g_string_append_c (text, ':');
      pto_costs_append_number (text, "%.10g", fit->ns_per_byte, "");
    }
  for (guint i = 0; fit->model[0] == 't' && i < shown; i++)
    {
      const PtoCostsPoint *point = get_point (fit, shown == n ? i : i * (n - 1) / (shown - 1));

      g_string_append_printf (text, "%c%" G_GUINT64_FORMAT ":", i == 0 ? ':' : ',', point->bytes);
      pto_costs_append_number (text, "%.10g", point->ns, "");
    }
  return g_string_free (text, FALSE);
}

void
pto_costs_fit (const PtoCostsKernel *kernel, PtoCostsFit *fit)
{
  g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));
  guint n = kernel->sizes->len;

  *fit = (PtoCostsFit){ .points = g_array_new (FALSE, FALSE, sizeof (PtoCostsPoint)) };
  /* Sizes are in order: one that is not known is the last, and counts where it is the only one. */
  if (n > 1
      && ((PtoCostsSize *) g_ptr_array_index (kernel->sizes, n - 1))->bytes == PTO_COSTS_NO_SIZE)
    n--;
  for (guint i = 0; i < n; i++)
    {
      const PtoCostsSize *size = g_ptr_array_index (kernel->sizes, i);
      g_autoptr (GArray) ns = g_array_copy (size->ns);
      PtoCostsPoint point = { size->bytes, find_median (ns), size->seen };

      fit->seen += size->seen;
      g_array_append_val (fit->points, point);
    }
  choose_model (fit);
  for (guint i = 0; i < n; i++)
    {
      const PtoCostsSize *size = g_ptr_array_index (kernel->sizes, i);
      double predicted = predict (fit, size->bytes);

      fit->worst_error = MAX (fit->worst_error, find_error (get_point (fit, i)->ns, predicted));
      for (guint t = 0; t < size->ns->len; t++)
        {
          double error = find_error (g_array_index (size->ns, double, t), predicted);

          g_array_append_val (errors, error);
        }
    }
  fit->median_error = find_median (errors);
  fit->cost = dup_cost (fit);
}

void
pto_costs_fit_clear (PtoCostsFit *fit)
{
  g_clear_pointer (&fit->points, g_array_unref);
  g_clear_pointer (&fit->cost, g_free);
}
