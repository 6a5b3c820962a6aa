/* answers.c: what do several answers of a trace say, and how are their tables made?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "trace-answers.h"

#include "common/printable.h"
#include "common/text.h"

#include <string.h>

const PtoAnswerReason pto_answer_reasons[PTO_ANSWER_REASONS] = {
  { "submitter_ns", G_STRUCT_OFFSET (PtoTraceWaits, submitter), N_ ("submitter"),
    N_ ("until it was submitted") },
  { "room_ns", G_STRUCT_OFFSET (PtoTraceWaits, room), N_ ("room"),
    N_ ("while the submitter waited for room") },
  { "data_ns", G_STRUCT_OFFSET (PtoTraceWaits, data), N_ ("data"), N_ ("for data") },
  { "core_ns", G_STRUCT_OFFSET (PtoTraceWaits, core), N_ ("core"), N_ ("for a core") },
  { "scheduler_ns", G_STRUCT_OFFSET (PtoTraceWaits, scheduler), N_ ("scheduler"),
    N_ ("for the scheduler") },
};

void
pto_answer_sum_waits (PtoTraceWaits *sum, const PtoTraceWaits *waits)
{
  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    G_STRUCT_MEMBER (guint64, sum, pto_answer_reasons[i].offset) += pto_answer_get_wait (waits, i);
}

/* --- as JSON --- */

void
pto_answer_add_task (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task)
{
  pto_answer_add_id (json, "task", task->id);
  pto_json_add_string (json, "kernel", pto_trace_get_kernel_name (trace, task->kernel));
}

void
pto_answer_add_core (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task)
{
  g_autofree char *core = NULL;

  if (task->core == PTO_TRACE_NOWHERE)
    return;
  core = pto_trace_dup_core_name (trace, task->core);
  pto_json_add_string (json, "core", core);
}

void
pto_answer_add_place (JsonBuilder *json, const char *name, PtoTrace *trace, guint32 file,
                      guint32 line)
{
  g_autofree char *place = NULL;

  if (file == PTO_TRACE_NOWHERE)
    return;
  place = g_strdup_printf ("%s:%u", trace->files[file], line);
  pto_json_add_string (json, name, place);
}

void
pto_answer_add_moved (JsonBuilder *json, const guint64 sum[PTO_TRACE_N_MOVED])
{
  pto_json_add_int (json, "bytes_sent", sum[PTO_TRACE_SENT]);
  pto_json_add_int (json, "bytes_received", sum[PTO_TRACE_RECEIVED]);
  pto_json_add_int (json, "bytes_saved", sum[PTO_TRACE_SAVED]);
}

/* --- kernels --- */

static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  const PtoAnswerKernel *x = a;
  const PtoAnswerKernel *y = b;

  return 2 * pto_trace_order (y->busy, x->busy) + pto_trace_order (x->kernel, y->kernel);
}

GArray *
pto_answer_list_kernels (PtoTrace *trace)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  GArray *kernels = g_array_new (FALSE, TRUE, sizeof (PtoAnswerKernel));
  g_autoptr (GHashTable) index = g_hash_table_new (NULL, NULL);

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];
      PtoTraceWaits waits;
      PtoAnswerKernel *kernel;
      gpointer position;

      if (task->end == PTO_TRACE_NEVER)
        continue;
      if (!g_hash_table_lookup_extended (index, GUINT_TO_POINTER (task->kernel), NULL, &position))
        {
          PtoAnswerKernel fresh = { .kernel = task->kernel };

          position = GUINT_TO_POINTER (kernels->len);
          g_hash_table_insert (index, GUINT_TO_POINTER (task->kernel), position);
          g_array_append_val (kernels, fresh);
        }
      kernel = &g_array_index (kernels, PtoAnswerKernel, GPOINTER_TO_UINT (position));
      kernel->runs++;
      kernel->busy += task->end - task->start;
      kernel->waited += task->waited;
      if (i < analysis->n_tasks && task->submit != PTO_TRACE_NEVER
          && pto_trace_get_waits (analysis, trace, task, task->submit, &waits))
        pto_answer_sum_waits (&kernel->waits, &waits);
    }
  g_array_sort (kernels, compare_kernels);
  return kernels;
}

/* --- as text --- */

const char *
pto_answer_get_name (JsonObject *object, const char *member)
{
  return pto_trace_tell_kernel (json_object_get_string_member (object, member));
}

char *
pto_answer_dup_task_name (JsonObject *task)
{
  return pto_trace_dup_task_name (
      g_ascii_strtoull (json_object_get_string_member (task, "task"), NULL, 10));
}

void
pto_answer_append_place (GString *text, JsonObject *task)
{
  const char *place = json_object_get_string_member_with_default (task, "submitted_at", NULL);
  const char *name = place != NULL ? strrchr (place, '/') : NULL;

  if (place != NULL)
    g_string_append_printf (text, _ (", submitted at %s"), name != NULL ? name + 1 : place);
}

static void
free_cells (gpointer data)
{
  g_string_free (data, TRUE);
}

PtoAnswerTable *
pto_answer_table_new (void)
{
  PtoAnswerTable *table = g_new (PtoAnswerTable, 1);

  *table = (PtoAnswerTable){ 0, g_ptr_array_new_with_free_func (g_free),
                             g_ptr_array_new_with_free_func (free_cells) };
  return table;
}

void
pto_answer_table_reserve (PtoAnswerTable *table, const char *name)
{
  table->widest = MAX (table->widest, pto_count_columns (name));
}

void
pto_answer_table_begin_row (PtoAnswerTable *table, const char *name)
{
  pto_answer_table_reserve (table, name);
  g_ptr_array_add (table->names, g_strdup (name));
  g_ptr_array_add (table->cells, g_string_new (NULL));
}

void
pto_answer_table_add (PtoAnswerTable *table, int width, const char *words)
{
  GString *cells = g_ptr_array_index (table->cells, table->cells->len - 1);

  g_string_append_c (cells, ' ');
  pto_append_padded (cells, words, width);
}

void
pto_answer_table_add_number (PtoAnswerTable *table, int width, guint64 number)
{
  g_autofree char *words = g_strdup_printf ("%" G_GUINT64_FORMAT, number);

  pto_answer_table_add (table, width, words);
}

void
pto_answer_table_add_us (PtoAnswerTable *table, int width, guint64 ns)
{
  g_autofree char *words = pto_trace_dup_us (ns);

  pto_answer_table_add (table, width, words);
}

void
pto_answer_table_end (PtoAnswerTable *table, GString *text)
{
  for (guint i = 0; i < table->names->len; i++)
    {
      g_string_append (text, "  ");
      pto_append_padded (text, g_ptr_array_index (table->names, i), -(int) table->widest);
      g_string_append_printf (text, "%s\n", ((GString *) g_ptr_array_index (table->cells, i))->str);
    }
  g_ptr_array_unref (table->names);
  g_ptr_array_unref (table->cells);
  g_free (table);
}
