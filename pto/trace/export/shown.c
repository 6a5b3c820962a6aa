/* shown.c: which rows and kernels do pictures and reports show of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Kernels are told apart by colour and by hatching, so that a picture survives a colour-blind
 * reader and a printer without colours. Those of inner workers are one kernel if they have one
 * name.
 */
#include "config.h"

#include "shown.h"

/* --- rows --- */

static void
row_free (gpointer data)
{
  PtoShownRow *row = data;

  g_free (row->name);
  g_ptr_array_unref (row->parts);
  g_free (row);
}

static void
add_row (GPtrArray *rows, const GPtrArray *parts, guint core, gint parent, guint depth)
{
  PtoShownRow *row = g_new0 (PtoShownRow, 1);
  guint type;

  row->core = core;
  row->parent = parent;
  row->depth = depth;
  row->parts = g_ptr_array_new ();
  for (guint i = 0; i < parts->len; i++)
    {
      PtoTracePart *part = g_ptr_array_index (parts, i);

      if (core >= part->analysis->n_cores)
        continue;
      if (row->name == NULL)
        {
          row->name = pto_trace_dup_core_name (part->trace, core);
          row->path = part->path;
          pto_trace_locate_core (part->trace, core, &row->cluster, &type);
          row->kind = pto_trace_get_type_name (part->trace, type, 1);
        }
      g_ptr_array_add (row->parts, part);
    }
  g_ptr_array_add (rows, row);
}

/* Runs of one worker: a row for each core, or child; below another worker, for each that did
 * something. What is inside of a child comes behind its row. */
static void
add_rows (GPtrArray *rows, const GPtrArray *parts, gint parent, guint depth)
{
  guint n_cores = 0;

  for (guint i = 0; i < parts->len; i++)
    n_cores
        = MAX (n_cores, ((const PtoTracePart *) g_ptr_array_index (parts, i))->analysis->n_cores);
  for (guint core = 0; core < n_cores; core++)
    {
      g_autoptr (GPtrArray) inner = g_ptr_array_new ();
      gboolean is_used = depth == 0;

      for (guint i = 0; i < parts->len; i++)
        {
          const PtoTracePart *part = g_ptr_array_index (parts, i);

          is_used = is_used
                    || (core < part->analysis->n_cores && part->analysis->n_core_runs[core] > 0);
          for (guint k = 0; k < part->inner->len; k++)
            if (((const PtoTracePart *) g_ptr_array_index (part->inner, k))->child == core)
              g_ptr_array_add (inner, g_ptr_array_index (part->inner, k));
        }
      if (!is_used && inner->len == 0)
        continue;
      add_row (rows, parts, core, parent, depth);
      if (inner->len > 0)
        add_rows (rows, inner, (gint) rows->len - 1, depth + 1);
    }
}

GPtrArray *
pto_shown_list_rows (PtoTrace *trace)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func (row_free);
  g_autoptr (GPtrArray) whole = g_ptr_array_new ();

  g_ptr_array_add (whole, g_ptr_array_index (pto_trace_get_parts (trace), 0));
  add_rows (rows, whole, -1, 0);
  return rows;
}

/* --- kernels --- */

/* Light enough for black letters; no red, which is the critical path's. */
static const char *const colours[]
    = { "#7cc0ee", "#f4b548", "#56b894", "#d9a0c4", "#f3ea84", "#5b95cf", "#c3c8cf", "#c19a6b" };
/* What is drawn on a 6 x 6 cell; the n-th kernel takes the n-th colour and the n-th hatching. */
static const char *const hatchings[] = {
  NULL,
  "M-1.5 1.5L1.5-1.5M0 6L6 0M4.5 7.5L7.5 4.5",
  "M1.5 1.1v.8M4.5 4.1v.8",
  "M-1.5 4.5L1.5 7.5M0 0L6 6M4.5-1.5L7.5 1.5",
  "M0 1.5H6M0 4.5H6",
  "M1.5 0V6M4.5 0V6",
  "M0 0L6 6M0 6L6 0",
  "M3 0V6M0 3H6",
};

const char *
pto_legend_get_colour (guint position)
{
  return colours[position % G_N_ELEMENTS (colours)];
}

const char *
pto_legend_get_hatching (guint position)
{
  guint n = G_N_ELEMENTS (hatchings);

  return hatchings[(position + position / n * 3) % n];
}

static void
kernel_clear (gpointer data)
{
  g_free (((PtoShownKernel *) data)->name);
}

static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  const PtoShownKernel *x = a;
  const PtoShownKernel *y = b;

  return pto_trace_order (x->kernel, y->kernel);
}

static void
add_kernel (PtoLegend *legend, guint32 number, guint64 runs, const char *name)
{
  PtoShownKernel kernel = { number, runs, g_strdup (name) };

  g_array_append_val (legend->list, kernel);
}

static void
index_kernel (PtoLegend *legend, guint position)
{
  const PtoShownKernel *kernel = pto_legend_get (legend, position);

  if (kernel->kernel != PTO_TRACE_NOWHERE)
    g_hash_table_insert (legend->numbers, GUINT_TO_POINTER (kernel->kernel),
                         GUINT_TO_POINTER (position + 1));
  g_hash_table_insert (legend->names, g_strdup (kernel->name), GUINT_TO_POINTER (position + 1));
}

/* Of the outermost trace, those that ran. */
static void
add_kernels (PtoLegend *legend, PtoTrace *trace)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  g_autoptr (GHashTable) runs = g_hash_table_new (NULL, NULL);
  GHashTableIter iter;
  gpointer kernel, n;

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      gpointer key = GUINT_TO_POINTER (analysis->tasks[i].kernel);

      if (analysis->tasks[i].core != PTO_TRACE_NOWHERE)
        g_hash_table_insert (
            runs, key, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (runs, key)) + 1));
    }
  g_hash_table_iter_init (&iter, runs);
  while (g_hash_table_iter_next (&iter, &kernel, &n))
    add_kernel (legend, GPOINTER_TO_UINT (kernel), GPOINTER_TO_UINT (n),
                pto_trace_get_kernel_name (trace, GPOINTER_TO_UINT (kernel)));
  g_array_sort (legend->list, compare_kernels);
  for (guint i = 0; i < legend->list->len; i++)
    index_kernel (legend, i);
}

PtoLegend *
pto_legend_new (PtoTrace *trace, const GPtrArray *rows)
{
  PtoLegend *legend = g_new (PtoLegend, 1);

  legend->list = g_array_new (FALSE, FALSE, sizeof (PtoShownKernel));
  g_array_set_clear_func (legend->list, kernel_clear);
  legend->numbers = g_hash_table_new (NULL, NULL);
  legend->names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  add_kernels (legend, trace);
  for (guint r = 0; r < rows->len; r++)
    {
      const PtoShownRow *row = g_ptr_array_index (rows, r);

      for (guint i = 0; row->depth > 0 && i < row->parts->len; i++)
        {
          const PtoTracePart *part = g_ptr_array_index (row->parts, i);
          const guint32 *runs = part->analysis->core_runs[row->core];

          for (guint k = 0; k < part->analysis->n_core_runs[row->core]; k++)
            {
              guint at = pto_legend_find (legend, part, part->analysis->tasks[runs[k]].kernel);

              g_array_index (legend->list, PtoShownKernel, at).runs++;
            }
        }
    }
  return legend;
}

void
pto_legend_free (PtoLegend *legend)
{
  g_array_unref (legend->list);
  g_hash_table_unref (legend->numbers);
  g_hash_table_unref (legend->names);
  g_free (legend);
}

guint
pto_legend_find (PtoLegend *legend, const PtoTracePart *part, guint32 kernel)
{
  const char *name = pto_trace_get_kernel_name (part->trace, kernel);
  guint position = 0;

  if (part->parent == NULL)
    position = GPOINTER_TO_UINT (g_hash_table_lookup (legend->numbers, GUINT_TO_POINTER (kernel)));
  if (position == 0)
    position = GPOINTER_TO_UINT (g_hash_table_lookup (legend->names, name));
  if (position > 0)
    return position - 1;
  add_kernel (legend, PTO_TRACE_NOWHERE, 0, name);
  index_kernel (legend, legend->list->len - 1);
  return legend->list->len - 1;
}
