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

static double
get_x (const PtoPicture *picture, const PtoTraceTransfer *transfer)
{
  return pto_svg_x (picture, transfer->start);
}

static double
get_end (const PtoPicture *picture, const PtoTraceTransfer *transfer)
{
  return pto_svg_x (picture, transfer->end);
}

/* Those of one way that take time. */
static GPtrArray *
list_one_way (const PtoPicture *picture, guint core, gboolean is_back)
{
  GPtrArray *list = pto_trace_list_transfers (picture->analysis, core);

  for (guint i = list->len; i-- > 0;)
    {
      const PtoTraceTransfer *transfer = g_ptr_array_index (list, i);

      if (transfer->bytes == 0 || transfer->is_back != is_back)
        g_ptr_array_remove_index (list, i);
    }
  return list;
}

static guint
clump_length (const PtoPicture *picture, const GPtrArray *list, guint first, double narrow)
{
  const PtoTraceTransfer *transfer = g_ptr_array_index (list, first);
  double start = get_x (picture, transfer);
  double end = get_end (picture, transfer);
  guint n = 1;

  if (end - start >= narrow)
    return 1;
  for (; first + n < list->len; n++)
    {
      const PtoTraceTransfer *next = g_ptr_array_index (list, first + n);

      if (!pto_svg_joins (start, end, get_x (picture, next), get_end (picture, next), narrow))
        break;
      end = MAX (end, get_end (picture, next));
    }
  return n;
}

guint
pto_svg_count_transfers (const PtoPicture *picture, double narrow)
{
  guint n = 0;

  for (guint c = 0; picture->analysis->transfers->len > 0 && c < picture->analysis->n_cores; c++)
    for (guint way = 0; way < 2; way++)
      {
        g_autoptr (GPtrArray) list = list_one_way (picture, c, way == 1);

        for (guint i = 0; i < list->len; n++)
          i += clump_length (picture, list, i, narrow);
      }
  return n;
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
append_transfers (PtoPicture *picture, const GPtrArray *list, guint first, guint n)
{
  const PtoTraceTransfer *from = g_ptr_array_index (list, first);
  GString *text = picture->text;
  g_autofree char *core = pto_trace_dup_core_name (picture->trace, from->core);
  double height = (picture->row - 3) / 2;
  double top = picture->core_top[from->core] + 1 + (from->is_back ? height + 1 : 0);
  guint64 bytes = 0;
  guint64 end = 0;

  for (guint i = first; i < first + n; i++)
    {
      const PtoTraceTransfer *transfer = g_ptr_array_index (list, i);

      bytes += transfer->bytes;
      end = MAX (end, transfer->end);
    }
  pto_svg_append_rect (text, pto_trace_get_way (from), get_x (picture, from), top,
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
      g_autofree char *label = pto_trace_dup_task_label (from->task);

      g_string_append_printf (text, " for task %s", label);
    }
  g_string_append_c (text, '\n');
  pto_trace_append_us (text, from->start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, end);
  g_string_append (text, " \302\265s</title></rect>\n");
}

void
pto_svg_append_transfers (PtoPicture *picture)
{
  for (guint c = 0; picture->analysis->transfers->len > 0 && c < picture->analysis->n_cores; c++)
    for (guint way = 0; way < 2 && !picture->is_folded[c]; way++)
      {
        g_autoptr (GPtrArray) list = list_one_way (picture, c, way == 1);
        guint n;

        for (guint i = 0; i < list->len; i += n)
          {
            n = clump_length (picture, list, i, picture->narrow);
            append_transfers (picture, list, i, n);
          }
      }
}
