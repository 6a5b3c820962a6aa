/* html-transfers.c: what does a report know of tensors that travelled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "html.h"

typedef struct
{
  guint64 start, end; /* on the clock of the page */
  const PtoTraceTransfer *transfer;
  guint32 row;
  gint64 entry; /* of the page, or -1 */
} Item;

/* The one that ran where it travelled, of a group; -1: no task, or it never ran there. */
static gint64
find_entry (const PtoTracePart *part, GHashTable *by_id, const PtoTraceTransfer *transfer)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  guint32 position = pto_trace_find_position (by_id, transfer->task);
  const PtoTraceEntry *task;

  if (position == PTO_TRACE_NOWHERE)
    return -1;
  task = &analysis->tasks[position];
  if (task->core == transfer->core)
    return part->first_entry + position;
  for (guint i = 0; i < task->n_members; i++)
    if (analysis->tasks[task->first_member + i].core == transfer->core)
      return part->first_entry + task->first_member + i;
  return -1;
}

static void
collect (GArray *items, const PtoHtmlSection *section)
{
  const PtoTraceAnalysis *analysis = section->part->analysis;
  g_autoptr (GHashTable) by_id = NULL;

  if (analysis->transfers->len == 0)
    return;
  by_id = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint i = 0; i < analysis->n_tasks; i++)
    g_hash_table_insert (by_id, &analysis->tasks[i].id, GUINT_TO_POINTER (i));
  for (guint i = 0; i < analysis->transfers->len; i++)
    {
      const PtoTraceTransfer *transfer = &g_array_index (analysis->transfers, PtoTraceTransfer, i);
      Item item = { .start = pto_trace_part_time (section->part, transfer->start),
                    .end = pto_trace_part_time (section->part, transfer->end),
                    .transfer = transfer,
                    .row = section->rows[transfer->core],
                    .entry = find_entry (section->part, by_id, transfer) };

      g_array_append_val (items, item);
    }
}

static gint
compare_items (gconstpointer a, gconstpointer b)
{
  const Item *x = a;
  const Item *y = b;

  return 4 * pto_trace_order (x->row, y->row) + 2 * pto_trace_order (x->start, y->start)
         + pto_trace_order (x->end, y->end);
}

void
pto_html_append_transfers (PtoHtmlPage *page)
{
  static const char *const names[]
      = { "row", "start", "length", "bytes", "saved", "entry", "is_back" };
  g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (Item));
  PtoHtmlTable *table;

  for (guint s = 0; s < page->n_sections; s++)
    collect (items, &page->sections[s]);
  if (items->len == 0)
    return;
  g_array_sort (items, compare_items);
  table = pto_html_table_new (names, G_N_ELEMENTS (names));
  for (guint i = 0; i < items->len; i++)
    {
      const Item *item = &g_array_index (items, Item, i);
      const gint64 values[] = { item->row,
                                (gint64) item->start,
                                (gint64) (item->end - item->start),
                                (gint64) item->transfer->bytes,
                                (gint64) item->transfer->saved,
                                item->entry,
                                item->transfer->is_back };

      pto_html_table_add (table, values);
    }
  pto_html_table_end_object (table, page->text, "transfers", 0);
}
