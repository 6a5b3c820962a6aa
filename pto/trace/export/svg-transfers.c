/* svg-transfers.c: how is what travels to a worker and back drawn?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On the row of its child, which does nothing else meanwhile, as half a bar: the upper half is what
 * is sent, the lower what comes back. Narrow ones that are close are one, as runs are. What did not
 * have to travel takes no time, and is in words only.
 */
#include "config.h"

#include "svg.h"

void
pto_svg_collect_transfers (PtoPicture *picture)
{
  for (guint c = 0; picture->analysis->transfers->len > 0 && c < picture->analysis->n_cores; c++)
    {
      g_autoptr (GPtrArray) list = pto_trace_list_transfers (picture->analysis, c);
      /* There and back. */
      PtoSvgRow *ways[]
          = { pto_svg_rows_add (picture->transfers, c), pto_svg_rows_add (picture->transfers, c) };

      for (guint i = 0; i < list->len; i++)
        {
          const PtoTraceTransfer *transfer = g_ptr_array_index (list, i);
          PtoSvgBar bar = { .start = transfer->start, .end = transfer->end, .transfer = transfer };

          if (transfer->bytes > 0)
            g_array_append_val (ways[transfer->is_back ? 1 : 0]->bars, bar);
        }
    }
}

void
pto_svg_append_moved (GString *text, const guint64 sum[PTO_TRACE_N_MOVED])
{
  pto_svg_append_grouped (text, sum[PTO_TRACE_SENT]);
  g_string_append (text, " bytes sent, ");
  pto_svg_append_grouped (text, sum[PTO_TRACE_RECEIVED]);
  g_string_append (text, " received, ");
  pto_svg_append_grouped (text, sum[PTO_TRACE_SAVED]);
  g_string_append (text, " were there already");
}

static void
draw (PtoPicture *picture, const PtoSvgRow *row, const PtoSvgBar *bars, guint n)
{
  const PtoTraceTransfer *from = bars[0].transfer;
  GString *text = picture->text;
  g_autofree char *core = pto_trace_dup_core_name (picture->trace, row->core);
  double height = (picture->row - 3) / 2;
  double top = picture->core_top[row->core] + 1 + (from->is_back ? height + 1 : 0);
  guint64 bytes = 0;
  guint64 end = 0;

  for (guint i = 0; i < n; i++)
    {
      bytes += bars[i].transfer->bytes;
      end = MAX (end, bars[i].end);
    }
  pto_svg_append_rect (text, pto_trace_get_way (from), pto_svg_x (picture, from->start), top,
                       MAX ((double) (end - from->start) * picture->scale, 0.5), height);
  g_string_append (text, "><title>");
  pto_svg_append_grouped (text, bytes);
  g_string_append (text, bytes == 1 ? " byte " : " bytes ");
  g_string_append (text, from->is_back ? "received from " : "sent to ");
  pto_svg_append_escaped (text, core);
  if (n > 1)
    g_string_append_printf (text, ", %u times", n);
  else if (from->task != PTO_TASK_NONE)
    {
      g_string_append (text, " for task ");
      pto_trace_append_task_label (text, from->task);
    }
  g_string_append_c (text, '\n');
  pto_svg_append_stretch (text, from->start, end);
  g_string_append (text, "</title></rect>\n");
}

void
pto_svg_append_transfers (PtoPicture *picture)
{
  for (guint r = 0; r < picture->transfers->len; r++)
    {
      const PtoSvgRow *row = g_ptr_array_index (picture->transfers, r);

      if (!picture->is_folded[row->core])
        pto_svg_append_bars (picture, row, picture->narrow, draw);
    }
}
