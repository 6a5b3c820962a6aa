/* summary.c: how is a run told in a few lines?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "common/printable.h"
#include "common/text.h"
#include "trace-answers.h"

#include <string.h>

static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  const PtoAnswerKernel *x = a;
  const PtoAnswerKernel *y = b;

  return 2 * pto_trace_order (y->busy - y->waited, x->busy - x->waited)
         + pto_trace_order (x->kernel, y->kernel);
}

/* Without what kernels waited for others. */
static void
append_kernel_table (PtoTrace *self, GString *text)
{
  g_autoptr (GArray) kernels = pto_answer_list_kernels (self);
  PtoAnswerTable *table = pto_answer_table_new ();
  guint width
      = MAX (pto_count_columns (P_ ("run", "runs", 1)), pto_count_columns (P_ ("run", "runs", 2)));
  guint64 all = 0;

  table->widest = 16;
  g_array_sort (kernels, compare_kernels);
  for (guint i = 0; i < kernels->len; i++)
    all += g_array_index (kernels, PtoAnswerKernel, i).busy
           - g_array_index (kernels, PtoAnswerKernel, i).waited;
  for (guint i = 0; i < kernels->len; i++)
    {
      const PtoAnswerKernel *kernel = &g_array_index (kernels, PtoAnswerKernel, i);
      double busy = (double) (kernel->busy - kernel->waited);
      g_autoptr (GString) mean = g_string_new (NULL);
      g_autofree char *share
          = g_strdup_printf ("%5.0f %%", all > 0 ? 100.0 * busy / (double) all : 0.0);

      pto_trace_append_fixed (mean, busy / (double) kernel->runs / 1000.0, 3);
      pto_answer_table_begin_row (
          table, pto_trace_tell_kernel (pto_trace_get_kernel_name (self, kernel->kernel)));
      pto_answer_table_add_number (table, 10, kernel->runs);
      pto_answer_table_add (table, -(int) width, P_ ("run", "runs", kernel->runs));
      pto_answer_table_add (table, 12, mean->str);
      pto_answer_table_add (table, 0, _ ("us each"));
      pto_answer_table_add (table, 0, share);
    }
  pto_answer_table_end (table, text);
}

/* What a worker did inside of its tasks, of all that it was given. */
static void
append_worker (PtoTrace *self, guint child, GString *text)
{
  g_autofree char *runs = NULL;
  g_autofree char *tasks = NULL;
  guint64 n_tasks = 0, elapsed = 0;
  double busy = 0;
  guint n_runs = 0;

  for (guint i = 0; i < self->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (self->pieces.list, i);
      const PtoTraceAnalysis *inner;

      if (piece->child != child)
        continue;
      inner = pto_trace_get_analysis (piece->trace);
      n_runs++;
      n_tasks += inner->n_tasks;
      elapsed += inner->elapsed;
      for (guint c = 0; c < inner->n_cores; c++)
        busy += (double) inner->core_busy[c] / inner->n_cores;
    }
  if (n_runs == 0)
    return;
  runs = pto_trace_count_runs (n_runs);
  tasks = g_strdup_printf (P_ ("%" PRIu64 " task inside", "%" PRIu64 " tasks inside", n_tasks),
                           n_tasks);
  g_string_append_printf (
      text,
      strncmp (self->rows[child], "L2/", 3) == 0 ? _ ("%s: %s, %s, cores busy %.0f %%\n")
                                                 : _ ("%s: %s, %s, children busy %.0f %%\n"),
      self->rows[child], runs, tasks, elapsed > 0 ? 100.0 * busy / (double) elapsed : 0.0);
}

/* What travelled to a child, and from there. */
static void
append_moved (PtoTrace *self, const PtoTraceAnalysis *analysis, guint child, GString *text)
{
  guint64 sum[PTO_TRACE_N_MOVED];

  pto_trace_sum_core (analysis, child, sum);
  if (sum[PTO_TRACE_SENT] == 0 && sum[PTO_TRACE_RECEIVED] == 0 && sum[PTO_TRACE_SAVED] == 0)
    return;
  g_string_append_printf (
      text,
      _ ("%s: %" PRIu64 " bytes sent, %" PRIu64 " received, %" PRIu64 " were there already\n"),
      self->rows[child], sum[PTO_TRACE_SENT], sum[PTO_TRACE_RECEIVED], sum[PTO_TRACE_SAVED]);
}

static void
append_workers (PtoTrace *self, const PtoTraceAnalysis *analysis, GString *text)
{
  guint n = analysis->n_unseen;

  if (!pto_trace_is_level (self))
    return;
  for (guint c = 0; c < MIN (self->topology.n_workers, analysis->n_cores); c++)
    {
      append_worker (self, c, text);
      append_moved (self, analysis, c, text);
    }
  if (self->pieces.n_left_out > 0)
    g_string_append_printf (text,
                            P_ ("%" PRIu64 " run of workers left out, with %" PRIu64
                                " records: set trace-records to more\n",
                                "%" PRIu64 " runs of workers left out, with %" PRIu64
                                " records: set trace-records to more\n",
                                self->pieces.n_left_out),
                            self->pieces.n_left_out, self->pieces.records_left_out);
  n -= (guint) MIN (self->pieces.n_left_out, n);
  if (n > 0)
    g_string_append_printf (text,
                            P_ ("%u run of workers without a record of its own: cancelled, or lost "
                                "with the worker\n",
                                "%u runs of workers without a record of their own: cancelled, or "
                                "lost with the worker\n",
                                n),
                            n);
}

static void
append_summary_of_path (PtoTrace *self, const PtoTraceAnalysis *analysis, GString *text)
{
  g_autofree char *begin = NULL;
  g_autofree char *all = pto_trace_dup_us (analysis->critical_ns);
  g_autofree char *run = pto_trace_dup_us (analysis->critical_run_ns);
  guint n = analysis->n_critical_tasks;

  if (pto_trace_knows_critical_submit (analysis))
    {
      g_autofree char *submit = pto_trace_dup_us (analysis->critical_submit);

      begin = g_strdup_printf (_ ("critical path: submitted at %s us"), submit);
    }
  else
    begin = g_strdup (_ ("critical path: its begin was not recorded"));
  g_string_append_printf (text,
                          pto_trace_is_level (self)
                              ? P_ ("%s, then %u task in %s us, of which %s us in tasks\n",
                                    "%s, then %u tasks in %s us, of which %s us in tasks\n", n)
                              : P_ ("%s, then %u task in %s us, of which %s us in kernels\n",
                                    "%s, then %u tasks in %s us, of which %s us in kernels\n", n),
                          begin, n, all, run);
}

/**
 * pto_trace_summarize:
 * @self: a trace
 *
 * Tells the run in a few lines of text: tasks, edges, time, how busy cores or workers were, the
 * critical path, how the time went to the kernels, and what workers did inside of their tasks.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each
 *
 * Since: 0.1
 */
char *
pto_trace_summarize (PtoTrace *self)
{
  g_autofree char *tasks = NULL;
  g_autofree char *edges = NULL;
  g_autofree char *elapsed = NULL;
  const PtoTraceAnalysis *analysis;
  GString *text;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  analysis = pto_trace_get_analysis (self);
  text = g_string_new (NULL);
  tasks = pto_trace_count_tasks (analysis->n_tasks);
  edges = pto_trace_count_edges (analysis->n_deps);
  elapsed = pto_trace_tell_elapsed (analysis->elapsed, self->topology.virtual_clock);
  if (self->title[0] != '\0')
    g_string_append_printf (text, "%s\n", self->title);
  g_string_append_printf (text, _ ("%s, %s, %s\n"), tasks, edges, elapsed);
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      guint n = pto_trace_get_n_of_type (self, t);

      if (n > 0)
        {
          g_autofree char *busy = pto_trace_tell_busy (pto_trace_get_type_name (self, t, 1), n,
                                                       pto_trace_get_type_utilization (self, t));

          g_string_append_printf (text, "%s\n", busy);
        }
    }
  if (analysis->n_critical > 0)
    append_summary_of_path (self, analysis, text);
  if (analysis->n_failed > 0)
    g_string_append_printf (text, P_ ("%u task failed\n", "%u tasks failed\n", analysis->n_failed),
                            analysis->n_failed);
  append_kernel_table (self, text);
  append_workers (self, analysis, text);
  if (analysis->stalls->len > 0)
    {
      g_autofree char *us = NULL;
      guint64 stalled = 0;

      for (guint i = 0; i < analysis->stalls->len; i++)
        {
          const PtoTraceSpan *span = &g_array_index (analysis->stalls, PtoTraceSpan, i);

          stalled += span->end - span->start;
        }
      us = pto_trace_dup_us (stalled);
      g_string_append_printf (text,
                              P_ ("the submitter waited for a ring %u time, %s us in all\n",
                                  "the submitter waited for a ring %u times, %s us in all\n",
                                  analysis->stalls->len),
                              analysis->stalls->len, us);
    }
  if (self->dropped > 0)
    g_string_append_printf (
        text, _ ("%" PRIu64 " records were dropped: set trace-records to more than they are\n"),
        self->dropped);
  return g_string_free (text, FALSE);
}
