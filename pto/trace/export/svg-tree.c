/* svg-tree.c: how does a picture show what workers did inside of their tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Below the row of a worker, narrower ones: a core each, or for a worker of level 3 and up a child
 * each with its own below it. Only those that did something, and only so many.
 */
#include "config.h"

#include "svg.h"

#define ROW 8.5
#define GAP 3 /* below the last */
#define MAX_ROWS_A_WORKER 48
#define MAX_ROWS 240

void
pto_svg_collect_inner (PtoPicture *picture)
{
  guint child = 0;

  picture->n_inner = g_new0 (guint, MAX (picture->analysis->n_cores, 1));
  for (guint r = 0; r < picture->shown->len; r++)
    {
      const PtoShownRow *shown = g_ptr_array_index (picture->shown, r);
      PtoSvgRow *row;

      if (shown->depth == 0)
        {
          child = shown->core;
          continue;
        }
      row = pto_svg_rows_add (picture->inner, child);
      row->name = shown->name;
      for (guint i = 0; i < shown->parts->len; i++)
        {
          const PtoTracePart *part = g_ptr_array_index (shown->parts, i);
          const guint32 *runs = part->analysis->core_runs[shown->core];

          for (guint k = 0; k < part->analysis->n_core_runs[shown->core]; k++)
            pto_svg_row_add_run (picture, row, part, &part->analysis->tasks[runs[k]]);
          row->is_virtual = row->is_virtual || part->trace->topology.virtual_clock;
        }
      if (row->bars->len > 0 && picture->n_inner[child] < MAX_ROWS_A_WORKER
          && picture->inner->len <= MAX_ROWS)
        {
          picture->n_inner[child]++;
          picture->is_stretched = picture->is_stretched || row->is_virtual;
          continue;
        }
      picture->n_inner_left_out += row->bars->len > 0;
      g_ptr_array_set_size (picture->inner, (gint) picture->inner->len - 1);
    }
}

double
pto_svg_get_inner_height (const PtoPicture *picture, guint child)
{
  return picture->n_inner[child] > 0 ? picture->n_inner[child] * ROW + GAP : 0;
}

/* When, and where the chip has a clock of its own, when on that. */
static void
append_times (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n,
              guint64 end)
{
  GString *text = picture->text;

  g_string_append_c (text, '\n');
  pto_svg_append_stretch (text, bars[0].start, end);
  if (!row->is_virtual)
    return;
  g_string_append (text, ", of its virtual time ");
  pto_trace_append_us (text, bars[0].task->start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, bars[n - 1].task->end);
}

static void
append_bar (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bar)
{
  GString *text = picture->text;
  const PtoTraceEntry *task = bar->task;
  g_autofree char *style = g_strdup_printf ("k%u%s", bar->style, task->failed ? " failed" : "");
  double x = pto_svg_x (picture, bar->start);

  pto_svg_append_rect (text, style, x, row->top + 0.5, MAX (pto_svg_x (picture, bar->end) - x, 0.5),
                       ROW - 1);
  g_string_append (text, "><title>task ");
  pto_svg_append_escaped (text, pto_legend_get (picture->legend, bar->style)->name);
  g_string_append_c (text, ' ');
  pto_trace_append_task_label (text, task->id);
  g_string_append (text, " on ");
  pto_svg_append_escaped (text, row->name);
  g_string_append (text, task->failed ? ", failed" : "");
  append_times (picture, row, bar, 1, bar->end);
  g_string_append (text, "</title></rect>\n");
}

static void
append_clump (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n)
{
  GString *text = picture->text;
  const PtoSvgBar *longest = bars;
  guint64 end = 0;
  double x = pto_svg_x (picture, bars[0].start);

  for (guint i = 0; i < n; i++)
    {
      end = MAX (end, bars[i].end);
      if (bars[i].end - bars[i].start > longest->end - longest->start)
        longest = &bars[i];
    }
  g_string_append_printf (text, "<g><title>%u tasks, among them ", n);
  pto_svg_append_escaped (text, pto_legend_get (picture->legend, longest->style)->name);
  g_string_append (text, " on ");
  pto_svg_append_escaped (text, row->name);
  append_times (picture, row, bars, n, end);
  pto_svg_append_share (text, bars, n, end);
  g_string_append (text, "</title>");
  pto_svg_append_joined (picture, bars, n, x, MAX (pto_svg_x (picture, end) - x, 0.5),
                         row->top + 0.5, ROW - 1);
  g_string_append (text, "</g>\n");
}

static void
draw (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n)
{
  if (n == 1)
    append_bar (picture, row, bars);
  else
    append_clump (picture, row, bars, n);
}

void
pto_svg_append_inner (PtoPicture *picture)
{
  g_autoptr (GString) note = g_string_new (NULL);
  guint child = G_MAXUINT, below = 0;

  for (guint r = 0; r < picture->inner->len; r++)
    {
      PtoSvgRow *row = g_ptr_array_index (picture->inner, r);

      below = row->core == child ? below + 1 : 0;
      child = row->core;
      row->top = picture->core_top[row->core] + picture->row + below * ROW;
      pto_svg_append_label (picture, "row\" font-size=\"7", picture->left - 8, row->top + ROW - 1.8,
                            row->name);
      pto_svg_append_bars (picture, row, picture->inner_narrow, draw);
    }
  if (picture->n_inner_left_out > 0)
    g_string_append_printf (note, "%u rows more inside of workers are in the JSON",
                            picture->n_inner_left_out);
  if (picture->is_stretched)
    g_string_append_printf (note, "%s%s", note->len > 0 ? "; " : "",
                            "chips with a virtual clock: stretched over the time that a run took");
  if (note->len > 0)
    pto_svg_append_label (picture, "right", picture->right, picture->rows_bottom + 30, note->str);
}
