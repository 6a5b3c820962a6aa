/* transfers.c: what of tensors travelled to workers that share no memory, and came back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "core/bits.h"

#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* By task and core; those of no task come last. */
static gint
compare_transfers (gconstpointer a, gconstpointer b)
{
  const PtoTraceTransfer *x = a;
  const PtoTraceTransfer *y = b;

  return 8 * pto_trace_order (x->task, y->task) + 4 * pto_trace_order (x->core, y->core)
         + 2 * pto_trace_order (x->start, y->start) + x->is_back - y->is_back;
}

static gint
compare_ends (gconstpointer a, gconstpointer b)
{
  const PtoTraceTransfer *x = *(const PtoTraceTransfer *const *) a;
  const PtoTraceTransfer *y = *(const PtoTraceTransfer *const *) b;

  return pto_trace_order (x->end, y->end);
}

static void
add_bytes (GArray *steps, guint64 time, guint64 more)
{
  guint64 until = steps->len > 0 ? g_array_index (steps, PtoTraceStep, steps->len - 1).value : 0;

  if (more > 0)
    pto_trace_add_step (steps, time, until + more);
}

/* How many bytes had travelled until then: what travels has when it is over. */
static void
make_steps (PtoTraceAnalysis *analysis)
{
  guint n = analysis->transfers->len;
  g_autofree const PtoTraceTransfer **by_end = g_new (const PtoTraceTransfer *, MAX (n, 1));

  for (guint i = 0; i < G_N_ELEMENTS (analysis->moved); i++)
    analysis->moved[i] = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
  for (guint i = 0; i < n; i++)
    by_end[i] = &g_array_index (analysis->transfers, PtoTraceTransfer, i);
  qsort (by_end, n, sizeof *by_end, compare_ends);
  for (guint i = 0; i < n; i++)
    {
      add_bytes (analysis->moved[by_end[i]->is_back ? PTO_TRACE_RECEIVED : PTO_TRACE_SENT],
                 by_end[i]->end, by_end[i]->bytes);
      add_bytes (analysis->moved[PTO_TRACE_SAVED], by_end[i]->end, by_end[i]->saved);
    }
}

void
pto_trace_read_transfers (PtoTraceAnalysis *analysis, PtoTrace *trace)
{
  analysis->transfers = g_array_new (FALSE, FALSE, sizeof (PtoTraceTransfer));
  for (guint b = 0; b < trace->n_buffers; b++)
    for (guint64 i = trace->starts[b]; i + 1 < trace->starts[b + 1]; i++)
      {
        const struct pto_trace_record *record = &trace->records[i];
        const struct pto_trace_record *bytes = record + 1;
        guint32 core = record->detail & ~PTO_TRACE_TRANSFER_BACK;
        PtoTraceTransfer transfer = { .core = core, .task = record->task };

        if (record->kind != PTO_TRACE_TRANSFER || bytes->kind != PTO_TRACE_BYTES
            || core >= trace->topology.n_cores || record->extra < record->time)
          continue;
        transfer.start = record->time - analysis->first;
        transfer.end = record->extra - analysis->first;
        transfer.bytes = bytes->time;
        transfer.saved = bytes->extra;
        transfer.is_back = (record->detail & PTO_TRACE_TRANSFER_BACK) != 0;
        g_array_append_val (analysis->transfers, transfer);
      }
  g_array_sort (analysis->transfers, compare_transfers);
  make_steps (analysis);
}

static void
add_moved (guint64 *sum, const PtoTraceTransfer *transfer)
{
  sum[transfer->is_back ? PTO_TRACE_RECEIVED : PTO_TRACE_SENT] += transfer->bytes;
  sum[PTO_TRACE_SAVED] += transfer->saved;
}

const PtoTraceTransfer *
pto_trace_find_transfers (const PtoTraceAnalysis *analysis, guint64 task, guint core, guint *n)
{
  const PtoTraceTransfer *all
      = (const PtoTraceTransfer *) (gconstpointer) analysis->transfers->data;
  gboolean of_all = core == PTO_TRACE_NOWHERE;
  PtoTraceTransfer wanted = { .task = task, .core = of_all ? 0 : core };
  guint low = pto_bisect (i, analysis->transfers->len, compare_transfers (&all[i], &wanted) < 0);

  *n = 0;
  while (low + *n < analysis->transfers->len && all[low + *n].task == task
         && (of_all || all[low + *n].core == core))
    (*n)++;
  return all + low;
}

void
pto_trace_sum_entry (const PtoTraceAnalysis *analysis, const PtoTraceEntry *entry,
                     guint64 sum[PTO_TRACE_N_MOVED])
{
  guint n;
  const PtoTraceTransfer *transfers
      = pto_trace_find_transfers (analysis, entry->id, entry->core, &n);

  memset (sum, 0, PTO_TRACE_N_MOVED * sizeof *sum);
  for (guint i = 0; i < n; i++)
    add_moved (sum, &transfers[i]);
}

void
pto_trace_sum_core (const PtoTraceAnalysis *analysis, guint core, guint64 sum[PTO_TRACE_N_MOVED])
{
  memset (sum, 0, PTO_TRACE_N_MOVED * sizeof *sum);
  for (guint i = 0; i < analysis->transfers->len; i++)
    {
      const PtoTraceTransfer *transfer = &g_array_index (analysis->transfers, PtoTraceTransfer, i);

      if (core == PTO_TRACE_NOWHERE || transfer->core == core)
        add_moved (sum, transfer);
    }
}

const char *
pto_trace_get_way (const PtoTraceTransfer *transfer)
{
  return transfer->is_back ? "received" : "sent";
}

const char *
pto_trace_get_moved_name (guint which)
{
  static const char *const names[] = { "bytes sent", "bytes received", "bytes saved" };

  return names[which];
}

static gint
compare_starts (gconstpointer a, gconstpointer b)
{
  const PtoTraceTransfer *x = *(const PtoTraceTransfer *const *) a;
  const PtoTraceTransfer *y = *(const PtoTraceTransfer *const *) b;

  /* What lasts longer comes first, and is around the others. */
  return 2 * pto_trace_order (x->start, y->start) + pto_trace_order (y->end, x->end);
}

GPtrArray *
pto_trace_list_transfers (const PtoTraceAnalysis *analysis, guint core)
{
  GPtrArray *list = g_ptr_array_new ();

  for (guint i = 0; i < analysis->transfers->len; i++)
    {
      PtoTraceTransfer *transfer = &g_array_index (analysis->transfers, PtoTraceTransfer, i);

      if (transfer->core == core)
        g_ptr_array_add (list, transfer);
    }
  g_ptr_array_sort (list, compare_starts);
  return list;
}

static guint64
sum_all (PtoTrace *trace, guint which)
{
  guint64 sum[PTO_TRACE_N_MOVED];

  pto_trace_sum_core (pto_trace_get_analysis (trace), PTO_TRACE_NOWHERE, sum);
  return sum[which];
}

/**
 * pto_trace_get_bytes_sent:
 * @self: a trace
 *
 * Gives how many bytes of tensors the run sent to workers that do not share its memory; as
 * [method@Pto.RunStatistics.get_bytes_sent] does if no record was dropped. Of workers below, their
 * own traces tell.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_bytes_sent, PtoTrace, PTO_IS_TRACE, 0,
                  sum_all (self, PTO_TRACE_SENT))

/**
 * pto_trace_get_bytes_received:
 * @self: a trace
 *
 * Gives how many bytes of tensors came back from workers that do not share the run's memory; as
 * [method@Pto.RunStatistics.get_bytes_received] does if no record was dropped.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_bytes_received, PtoTrace, PTO_IS_TRACE, 0,
                  sum_all (self, PTO_TRACE_RECEIVED))

/**
 * pto_trace_get_bytes_saved:
 * @self: a trace
 *
 * Gives how many bytes of tensors would have been sent, and were there already; as
 * [method@Pto.RunStatistics.get_bytes_saved] does if no record was dropped.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_TRACE_GETTER (guint64, pto_trace_get_bytes_saved, PtoTrace, PTO_IS_TRACE, 0,
                  sum_all (self, PTO_TRACE_SAVED))
