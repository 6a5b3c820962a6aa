/* svg-rows.c: where has each core its row in a picture, and which have none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One row per core, grouped by cluster. Clusters in which nothing ran are one line below the rows,
 * which says how many they are and which: of a run that uses two clusters of 24 the picture is of
 * those two.
 */
#include "config.h"

#include "svg.h"

#define CLUSTER_GAP 4
#define FOLD 16
#define MAX_FOLDED_LENGTH 150 /* characters: what has room in one line */

static double
core_row_height (guint n_cores)
{
  return n_cores <= 6 ? 24 : n_cores <= 24 ? 18 : n_cores <= 48 ? 13 : 11.5;
}

static guint
get_cluster (const PtoPicture *picture, guint core)
{
  guint cluster, type;

  pto_trace_locate_core (picture->trace, core, &cluster, &type);
  return cluster;
}

/* The first core behind those of its cluster. */
static guint
get_cluster_end (const PtoPicture *picture, guint core)
{
  guint cluster = get_cluster (picture, core);

  while (core < picture->analysis->n_cores && get_cluster (picture, core) == cluster)
    core++;
  return core;
}

static gboolean
has_work (const PtoPicture *picture, guint first, guint end)
{
  for (guint c = first; c < end; c++)
    if (picture->analysis->n_core_runs[c] > 0 || picture->n_inner[c] > 0)
      return TRUE;
  for (guint i = 0; i < picture->analysis->transfers->len; i++)
    {
      guint core = g_array_index (picture->analysis->transfers, PtoTraceTransfer, i).core;

      if (core >= first && core < end)
        return TRUE;
    }
  return FALSE;
}

static void
fold (PtoPicture *picture)
{
  guint n_cores = picture->analysis->n_cores;

  picture->is_folded = g_new0 (gboolean, MAX (n_cores, 1));
  for (guint first = 0; first < n_cores;)
    {
      guint end = get_cluster_end (picture, first);

      if (has_work (picture, first, end))
        picture->n_shown_cores += end - first;
      else
        {
          picture->n_folded_clusters++;
          for (guint c = first; c < end; c++)
            picture->is_folded[c] = TRUE;
        }
      first = end;
    }
}

double
pto_svg_place_cores (PtoPicture *picture, double y)
{
  guint last = G_MAXUINT;

  fold (picture);
  picture->row = core_row_height (picture->n_shown_cores);
  picture->core_top = g_new0 (double, MAX (picture->analysis->n_cores, 1));
  picture->rows_top = y;
  for (guint c = 0; c < picture->analysis->n_cores; c++)
    {
      guint cluster = get_cluster (picture, c);

      if (picture->is_folded[c])
        continue;
      if (cluster != last)
        y += last == G_MAXUINT ? CLUSTER_GAP / 2.0 : CLUSTER_GAP;
      last = cluster;
      picture->core_top[c] = y;
      y += picture->row + pto_svg_get_inner_height (picture, c);
    }
  y += CLUSTER_GAP / 2.0;
  if (picture->n_folded_clusters > 0)
    {
      y += CLUSTER_GAP / 2.0;
      picture->fold_top = y;
      y += FOLD + CLUSTER_GAP / 2.0;
    }
  picture->rows_bottom = y;
  return y;
}

/* "22 clusters without work: 0, 2-22"; of a level what it has no tasks for. */
static char *
dup_folded (const PtoPicture *picture)
{
  GString *text = g_string_new (NULL);
  guint n_cores = picture->analysis->n_cores;
  gsize end_of_all;

  if (pto_trace_is_level (picture->trace))
    {
      for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
        {
          guint n = 0;

          for (guint c = 0; c < n_cores; c++)
            n += picture->is_folded[c] && get_cluster (picture, c) == type;
          if (n > 0)
            g_string_append_printf (text, "%s%u %s", text->len > 0 ? ", " : "", n,
                                    pto_trace_get_type_name (picture->trace, type, n));
        }
      g_string_append (text, " without work");
      return g_string_free (text, FALSE);
    }

  g_string_append_printf (text, "%u cluster%s without work", picture->n_folded_clusters,
                          picture->n_folded_clusters == 1 ? "" : "s");
  end_of_all = text->len;
  for (guint first = 0; first < n_cores;)
    {
      guint end = get_cluster_end (picture, first);
      guint cluster = get_cluster (picture, first);

      if (!picture->is_folded[first])
        {
          first = end;
          continue;
        }
      while (end < n_cores && picture->is_folded[end])
        end = get_cluster_end (picture, end);
      if (text->len > MAX_FOLDED_LENGTH)
        {
          g_string_append (text, ", \342\200\246");
          break;
        }
      g_string_append_printf (text, "%s%u", text->len > end_of_all ? ", " : ": ", cluster);
      if (get_cluster (picture, end - 1) > cluster)
        g_string_append_printf (text, "\342\200\223%u", get_cluster (picture, end - 1));
      first = end;
    }
  return g_string_free (text, FALSE);
}

/* Below the last row of the cluster that begins with this core. */
static double
get_cluster_bottom (const PtoPicture *picture, guint core)
{
  core = get_cluster_end (picture, core) - 1;
  return picture->core_top[core] + picture->row + pto_svg_get_inner_height (picture, core);
}

static char *
dup_cluster_name (const PtoPicture *picture, guint cluster)
{
  if (pto_trace_is_level (picture->trace))
    return g_strdup (cluster == 0 ? "workers" : "SUB");
  return g_strdup_printf ("cluster %u", cluster);
}

static void
append_cluster (PtoPicture *picture, guint core, guint number)
{
  double top = picture->core_top[core];
  double height = get_cluster_bottom (picture, core) - top;
  g_autofree char *title = dup_cluster_name (picture, get_cluster (picture, core));

  if (number % 2 == 0)
    {
      pto_svg_append_box (picture, "band", PTO_SVG_MARGIN, top - CLUSTER_GAP / 2.0,
                          PTO_SVG_WIDTH - 2 * PTO_SVG_MARGIN, height + CLUSTER_GAP);
    }
  pto_svg_append_label (picture, "cluster", PTO_SVG_MARGIN + 4, top + height / 2 + 3.5, title);
}

void
pto_svg_append_core_labels (PtoPicture *picture)
{
  GString *text = picture->text;
  guint last = G_MAXUINT;
  guint n_clusters = 0;
  double size = CLAMP (picture->row - 3, 8, 11);
  double track = picture->right + 10;
  double track_width = 38;

  if (picture->n_shown_cores > 0)
    pto_svg_append_label (picture, "right", PTO_SVG_WIDTH - PTO_SVG_MARGIN, picture->rows_top - 6,
                          "busy");
  for (guint c = 0; c < picture->analysis->n_cores; c++)
    {
      g_autofree char *name = pto_trace_dup_core_name (picture->trace, c);
      g_autofree char *style = g_strdup_printf ("row\" font-size=\"%d", (int) size);
      g_autoptr (GString) share = g_string_new (NULL);
      double busy = MIN (pto_trace_get_core_utilization (picture->trace, c), 1.0);
      double top = picture->core_top[c];
      guint cluster = get_cluster (picture, c);

      if (picture->is_folded[c])
        continue;
      if (cluster != last)
        append_cluster (picture, c, n_clusters++);
      last = cluster;
      pto_svg_append_label (picture, style, picture->left - 8, top + picture->row / 2 + size * 0.36,
                            name);

      pto_svg_append_rect (text, "track", track, top + picture->row / 2 - 2.5, track_width, 5);
      g_string_append (text, "/>");
      pto_svg_append_box (picture, "busy", track, top + picture->row / 2 - 2.5, track_width * busy,
                          5);
      pto_trace_append_fixed (share, 100.0 * busy, 0);
      g_string_append (share, " %");
      pto_svg_append_label (picture, style, PTO_SVG_WIDTH - PTO_SVG_MARGIN,
                            top + picture->row / 2 + size * 0.36, share->str);
    }
}

void
pto_svg_append_fold (PtoPicture *picture)
{
  g_autofree char *text = NULL;

  if (picture->n_folded_clusters == 0)
    return;
  text = dup_folded (picture);
  pto_svg_append_box (picture, "fold", PTO_SVG_MARGIN, picture->fold_top,
                      PTO_SVG_WIDTH - 2 * PTO_SVG_MARGIN, FOLD);
  pto_svg_append_label (picture, "cluster", PTO_SVG_MARGIN + 4, picture->fold_top + FOLD / 2 + 3.5,
                        text);
}
