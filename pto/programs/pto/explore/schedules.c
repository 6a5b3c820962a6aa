/* schedules.c: what does an example give when its tasks run in another order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "schedules.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <string.h>

#define IN_ORDER "in-order"

static void
task_clear (gpointer data)
{
  g_free (((ScheduledTask *) data)->kernel);
}

void
schedules_clear (Schedules *schedules)
{
  g_clear_pointer (&schedules->buffers, g_ptr_array_unref);
  g_clear_pointer (&schedules->expected, g_ptr_array_unref);
  g_free (schedules->scratch);
  g_free (schedules->first_bad);
  g_clear_pointer (&schedules->args, pto_task_args_unref);
  g_clear_pointer (&schedules->tasks, g_array_unref);
  g_clear_pointer (&schedules->numbers, g_hash_table_unref);
}

void
schedule_result_clear (ScheduleResult *result)
{
  g_free (result->text);
  *result = (ScheduleResult){ .verdict = VERDICT_SAME };
}

gboolean
schedule_result_is_other (const ScheduleResult *result)
{
  return result->verdict >= VERDICT_CHANGED;
}

/* --- one run --- */

static guint
count_arguments (const Schedules *schedules)
{
  return reference_get_n_arguments (schedules->example->reference);
}

static const ReferenceArgument *
get_argument (const Schedules *schedules, guint i)
{
  return reference_get_argument (schedules->example->reference, i);
}

static guint64
get_address (const Schedules *schedules, guint i)
{
  return pto_buffer_get_address (g_ptr_array_index (schedules->buffers, i));
}

/* Each argument as the reference has made it, whatever the run before has left there. */
static gboolean
fill_arguments (Schedules *schedules, GError **error)
{
  for (guint i = 0; i < count_arguments (schedules); i++)
    {
      const ReferenceArgument *argument = get_argument (schedules, i);

      if (!argument->is_scalar
          && !pto_worker_copy_to_address (schedules->example->worker, get_address (schedules, i),
                                          (guintptr) argument->data, argument->n_bytes, error))
        return FALSE;
    }
  return TRUE;
}

/* Its bits, to scratch. */
static gboolean
read_output (Schedules *schedules, guint i, GError **error)
{
  return pto_worker_copy_from_address (schedules->example->worker, (guintptr) schedules->scratch,
                                       get_address (schedules, i),
                                       get_argument (schedules, i)->n_bytes, error);
}

/* Is what has failed the example's doing? */
static gboolean
is_of_example (const GError *error)
{
  return error->domain == PTO_ERROR && !g_error_matches (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS)
         && !g_error_matches (error, PTO_ERROR, PTO_ERROR_CLOSED)
         && !g_error_matches (error, PTO_ERROR, PTO_ERROR_NO_MEMORY)
         && !g_error_matches (error, PTO_ERROR, PTO_ERROR_SYSTEM);
}

static gboolean
run (Schedules *schedules, const char *schedule, ScheduleResult *result, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (!pto_worker_set_parameter (schedules->example->worker, "schedule", schedule, error)
      || !fill_arguments (schedules, error))
    return FALSE;
  if (pto_worker_run_callable (schedules->example->worker, schedules->example->handle,
                               schedules->args, NULL, tool_get_cancellable (), &local))
    return TRUE;
  if (!is_of_example (local))
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  result->verdict = VERDICT_FAILED;
  result->text = g_strdup (local->message);
  return TRUE;
}

/* The first byte of scratch that is another one. */
static guint64
find_difference (const guint8 *got, const guint8 *expected, guint64 n)
{
  guint64 i = 0;

  while (i < n && got[i] == expected[i])
    i++;
  return i;
}

static void
compare_output (Schedules *schedules, guint i, ScheduleResult *result)
{
  const ReferenceArgument *argument = get_argument (schedules, i);
  const guint8 *expected = g_ptr_array_index (schedules->expected, i);
  Verdict verdict = VERDICT_CHANGED;
  guint64 index;

  if (memcmp (schedules->scratch, expected, argument->n_bytes) == 0)
    return;
  /* What is wrong already has no tolerance. */
  if (!schedules->is_exact && schedules->passed)
    {
      Comparison comparison;

      reference_compare (argument, schedules->scratch, &schedules->example->item->tolerance,
                         &comparison);
      if (comparison.passed)
        verdict = VERDICT_ROUNDED;
      comparison_clear (&comparison);
    }
  if (result->verdict >= verdict)
    return;
  index = find_difference (schedules->scratch, expected, argument->n_bytes)
          / (argument->n_bytes / argument->n_elements);
  g_free (result->text);
  *result = (ScheduleResult){
    .verdict = verdict,
    .output = argument,
    .index = index,
    .text = reference_describe (argument, schedules->scratch, expected, index),
  };
}

gboolean
schedules_try (Schedules *schedules, const char *schedule, ScheduleResult *result, GError **error)
{
  *result = (ScheduleResult){ .verdict = VERDICT_SAME };
  if (!run (schedules, schedule, result, error))
    return FALSE;
  for (guint i = 0; result->verdict != VERDICT_FAILED && i < count_arguments (schedules); i++)
    {
      if (!get_argument (schedules, i)->is_output)
        continue;
      if (!read_output (schedules, i, error))
        {
          schedule_result_clear (result);
          return FALSE;
        }
      compare_output (schedules, i, result);
    }
  return TRUE;
}

/* --- orders --- */

static gint
compare_starts (gconstpointer a, gconstpointer b)
{
  const ScheduledTask *x = a;
  const ScheduledTask *y = b;

  return x->start < y->start ? -1 : x->start > y->start;
}

/* What the last run ran, in its order. One task runs after the other, so no two have begun at the
 * same time. NULL: that is not known. */
static GArray *
dup_ran (Schedules *schedules)
{
  g_autoptr (PtoTrace) trace = pto_worker_ref_trace (schedules->example->worker);
  g_autoptr (GListModel) tasks = trace != NULL ? pto_trace_list_tasks (trace) : NULL;
  GArray *ran;

  if (trace == NULL || pto_trace_get_dropped (trace) > 0)
    return NULL;
  ran = g_array_new (FALSE, FALSE, sizeof (ScheduledTask));
  g_array_set_clear_func (ran, task_clear);
  for (guint i = 0; tasks != NULL && i < g_list_model_get_n_items (tasks); i++)
    {
      g_autoptr (PtoTraceTask) task = g_list_model_get_item (tasks, i);
      ScheduledTask item
          = { .start = pto_trace_task_get_start_ns (task), .id = pto_trace_task_get_id (task) };

      if (item.start < 0)
        continue;
      item.kernel = g_strdup (pto_trace_task_get_name (task));
      g_array_append_val (ran, item);
    }
  g_array_sort (ran, compare_starts);
  return ran;
}

GArray *
schedules_dup_order (Schedules *schedules)
{
  g_autoptr (GArray) ran = dup_ran (schedules);
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autofree gboolean *has_run = g_new0 (gboolean, MAX (schedules->tasks->len, 1));

  for (guint i = 0; ran != NULL && i < ran->len; i++)
    {
      guint number = GPOINTER_TO_UINT (
          g_hash_table_lookup (schedules->numbers, &g_array_index (ran, ScheduledTask, i).id));

      if (number == 0)
        return NULL;
      number--;
      has_run[number] = TRUE;
      g_array_append_val (order, number);
    }
  for (guint number = 0; number < schedules->tasks->len; number++)
    if (!has_run[number])
      g_array_append_val (order, number);
  return ran != NULL ? g_steal_pointer (&order) : NULL;
}

static gboolean
note_tasks (Schedules *schedules)
{
  GArray *tasks = schedules->tasks = dup_ran (schedules);

  if (tasks == NULL)
    return FALSE;
  schedules->numbers = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint i = 0; i < tasks->len; i++)
    g_hash_table_insert (schedules->numbers, &g_array_index (tasks, ScheduledTask, i).id,
                         GUINT_TO_POINTER (i + 1));
  return TRUE;
}

char *
schedules_name (const Schedules *schedules, guint task)
{
  guint64 id = g_array_index (schedules->tasks, ScheduledTask, task).id;

  return g_strdup_printf ("%u:%u", (guint) (id >> 32), (guint) id);
}

char *
schedules_print (const Schedules *schedules, const char *without, const GArray *delays)
{
  GString *text = g_string_new (without);

  for (guint i = 0; i < delays->len; i++)
    {
      const Delay *delay = &g_array_index (delays, Delay, i);
      g_autofree char *task = schedules_name (schedules, delay->task);
      g_autofree char *until
          = delay->until != DELAY_LAST ? schedules_name (schedules, delay->until) : NULL;

      g_string_append_printf (text, "%s%s%s%s", text->len > 0 ? "," : "", task,
                              until != NULL ? "-after-" : "-last", until != NULL ? until : "");
    }
  if (text->len == 0)
    g_string_append (text, IN_ORDER);
  return g_string_free (text, FALSE);
}

GArray *
schedules_find_delays (const GArray *order)
{
  GArray *delays = g_array_new (FALSE, FALSE, sizeof (Delay));
  g_autofree guint *last = g_new (guint, MAX (order->len, 1));
  guint n = 0; /* of last: descending numbers, each the latest one of those that are higher */

  /* Whoever was submitted before somebody who ran before it was held back: until the last one of
   * those has run. They are on a stack: what ran later and has a higher number hides what ran
   * before. */
  for (guint i = 0; i < order->len; i++)
    {
      Delay delay = { .task = g_array_index (order, guint, i) };

      while (n > 0 && last[n - 1] < delay.task)
        n--;
      if (n > 0)
        {
          delay.until = last[n - 1];
          g_array_append_val (delays, delay);
        }
      last[n++] = delay.task;
    }
  return delays;
}

/* --- the order of submits --- */

static gboolean
keep_outputs (Schedules *schedules, GError **error)
{
  schedules->passed = TRUE;
  schedules->expected = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < count_arguments (schedules); i++)
    {
      const ReferenceArgument *argument = get_argument (schedules, i);
      Comparison comparison;

      g_ptr_array_add (schedules->expected, NULL);
      if (!argument->is_output)
        continue;
      if (!read_output (schedules, i, error))
        return FALSE;
      schedules->expected->pdata[i] = g_memdup2 (schedules->scratch, argument->n_bytes);
      reference_compare (argument, schedules->scratch, &schedules->example->item->tolerance,
                         &comparison);
      schedules->max_abs_error = MAX (schedules->max_abs_error, comparison.max_abs_error);
      not_finite_add (&schedules->differing, &comparison.differing);
      if (!comparison.passed && schedules->passed)
        {
          schedules->passed = FALSE;
          schedules->first_bad = g_steal_pointer (&comparison.first_bad);
        }
      comparison_clear (&comparison);
    }
  return TRUE;
}

static gboolean
make_arguments (Schedules *schedules, GError **error)
{
  guint64 largest = 1;

  schedules->args = pto_task_args_new ();
  schedules->buffers = example_add_arguments (schedules->example, schedules->args, error);
  for (guint i = 0; i < count_arguments (schedules); i++)
    largest = MAX (largest, get_argument (schedules, i)->n_bytes);
  schedules->scratch = g_malloc (largest);
  return schedules->buffers != NULL;
}

gboolean
schedules_open (Schedules *schedules, const Example *example, gboolean is_exact, GError **error)
{
  g_auto (ScheduleResult) result = { .verdict = VERDICT_SAME };

  schedules->example = example;
  schedules->is_exact = is_exact;
  if (!make_arguments (schedules, error) || !run (schedules, IN_ORDER, &result, error))
    return FALSE;
  if (result.verdict == VERDICT_FAILED)
    return tool_fail (error, _ ("in the order of its submits it fails already: %s"), result.text);
  if (!note_tasks (schedules))
    return tool_fail (error, _ ("which tasks have run is not known: set trace-records higher"));
  if (!keep_outputs (schedules, error))
    return FALSE;
  schedules->is_exact = TRUE;
  if (!schedules_try (schedules, IN_ORDER, &result, error))
    return FALSE;
  schedules->is_exact = is_exact;
  if (result.verdict == VERDICT_SAME)
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
               _ ("two runs in the order of its submits differ, so nothing can be said of other "
                  "orders: %s (a kernel that keeps something in static variables, or asks for "
                  "the time?)"),
               result.text);
  return FALSE;
}
