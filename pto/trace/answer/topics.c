/* topics.c: which questions does a trace answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An answer is made once, as JSON. Its text says the same in words for people: it is made of that
 * JSON, so that the two can not disagree.
 */
#include "config.h"

#include "common/json.h"
#include "common/text.h"
#include "pto-trace-topics.h"
#include "trace-answers.h"

static void
add_task (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task)
{
  pto_answer_add_task (json, trace, task);
  pto_answer_add_core (json, trace, task);
  if (task->terms.priority > 0)
    pto_json_add_int (json, "priority", task->terms.priority);
}

/* What went by, by reason. */
static void
add_waits (JsonBuilder *json, const PtoTraceWaits *waits)
{
  pto_json_begin_object (json, "waits");
  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    pto_json_add_int (json, pto_answer_reasons[i].name, pto_answer_get_wait (waits, i));
  json_builder_end_object (json);
}

static void
add_kernel (JsonBuilder *json, PtoTrace *trace, const PtoAnswerKernel *kernel)
{
  pto_json_add_string (json, "kernel", pto_trace_get_kernel_name (trace, kernel->kernel));
  pto_json_add_int (json, "runs", kernel->runs);
  pto_json_add_int (json, "busy_ns", kernel->busy);
}

/* --- topics --- */

static void
add_summary (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) kernels = pto_answer_list_kernels (trace);

  pto_json_add_int (json, "level", MAX (trace->topology.level, 2));
  pto_json_add_int (json, "tasks", analysis->n_tasks);
  pto_json_add_int (json, "edges", analysis->n_deps);
  pto_json_add_int (json, "failed", analysis->n_failed);
  pto_json_add_int (json, "elapsed_ns", analysis->elapsed);
  pto_json_add_int (json, "critical_path_ns", analysis->critical_ns);
  pto_json_add_int (json, "recorded", pto_trace_get_recorded (trace));
  if (pto_trace_is_level (trace))
    {
      guint64 sum[PTO_TRACE_N_MOVED];

      pto_trace_sum_core (analysis, PTO_TRACE_NOWHERE, sum);
      pto_answer_add_moved (json, sum);
    }
  pto_json_begin_array (json, "cores");
  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    if (pto_trace_get_n_of_type (trace, type) > 0)
      {
        guint n = pto_trace_get_n_of_type (trace, type);

        json_builder_begin_object (json);
        pto_json_add_string (json, "type", pto_trace_get_type_name (trace, type, 1));
        pto_json_add_int (json, "n", n);
        pto_json_add_double (json, "utilization", pto_trace_get_type_utilization (trace, type));
        json_builder_end_object (json);
      }
  json_builder_end_array (json);
  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < kernels->len; i++)
    {
      json_builder_begin_object (json);
      add_kernel (json, trace, &g_array_index (kernels, PtoAnswerKernel, i));
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

static gboolean
is_producer (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task, guint32 other)
{
  guint64 last = pto_trace_get_data_ready (analysis, task);

  for (guint k = 0; k < task->n_deps; k++)
    if (analysis->deps[task->first_dep + k].producer_index == other)
      return TRUE;
  /* It stands for producers that ran nothing. */
  return task->n_deps > 0 && last >= analysis->tasks[other].end;
}

static void
add_critical_path (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  PtoTraceWaits sum = { 0 };
  guint64 begin = 0;

  pto_json_begin_array (json, "path");
  for (guint i = 0; i < analysis->n_critical; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[analysis->critical[i]];
      gboolean has_cause = task->cause != PTO_TRACE_NOWHERE;
      PtoTraceWaits waits;

      json_builder_begin_object (json);
      add_task (json, trace, task);
      pto_answer_add_place (json, "submitted_at", trace, task->file, task->line);
      pto_json_add_int (json, "start_ns", task->start);
      pto_json_add_int (json, "end_ns", task->end);
      if (has_cause)
        {
          pto_answer_add_id (json, "after", analysis->tasks[task->cause].id);
          begin = analysis->tasks[task->cause].end;
        }
      pto_json_add_string (json, "because",
                           !has_cause                                  ? "submitter"
                           : is_producer (analysis, task, task->cause) ? "data"
                                                                       : "core");
      if (pto_trace_get_waits (analysis, trace, task, begin, &waits))
        {
          add_waits (json, &waits);
          pto_answer_sum_waits (&sum, &waits);
        }
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  pto_json_add_int (json, "tasks", analysis->n_critical_tasks);
  pto_json_add_int (json, "elapsed_ns", analysis->elapsed);
  pto_json_add_int (json, "kernels_ns", analysis->critical_run_ns);
  add_waits (json, &sum);
}

static void
add_overhead (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  g_autoptr (GArray) kernels = pto_answer_list_kernels (trace);
  PtoTraceWaits sum = { 0 };
  guint64 busy = 0;

  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < kernels->len; i++)
    {
      const PtoAnswerKernel *kernel = &g_array_index (kernels, PtoAnswerKernel, i);

      json_builder_begin_object (json);
      add_kernel (json, trace, kernel);
      add_waits (json, &kernel->waits);
      json_builder_end_object (json);
      pto_answer_sum_waits (&sum, &kernel->waits);
      busy += kernel->busy;
    }
  json_builder_end_array (json);
  pto_json_add_int (json, "busy_ns", busy);
  add_waits (json, &sum);
}

/* --- as text --- */

static char *
tell_task (JsonObject *task)
{
  const char *core = json_object_get_string_member_with_default (task, "core", NULL);
  g_autofree char *name = pto_answer_dup_task_name (task);
  const char *kernel = pto_answer_get_name (task, "kernel");
  guint64 priority = pto_answer_get_number (task, "priority");

  if (core != NULL && priority > 0)
    return g_strdup_printf (_ ("task %s (%s on %s, priority %" PRIu64 ")"), name, kernel, core,
                            priority);
  if (core != NULL)
    return g_strdup_printf (_ ("task %s (%s on %s)"), name, kernel, core);
  if (priority > 0)
    return g_strdup_printf (_ ("task %s (%s, priority %" PRIu64 ")"), name, kernel, priority);
  return g_strdup_printf (_ ("task %s (%s)"), name, kernel);
}

/* A line: the task, and where it was submitted. */
static void
append_task (GString *text, JsonObject *task)
{
  g_autofree char *words = tell_task (task);

  g_string_append (text, words);
  pto_answer_append_place (text, task);
  g_string_append_c (text, '\n');
}

/* A line for each reason that there was. */
static void
append_waits (GString *text, JsonObject *object, const char *before)
{
  JsonObject *waits;

  if (!json_object_has_member (object, "waits"))
    return;
  waits = json_object_get_object_member (object, "waits");
  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    {
      guint64 ns = pto_answer_get_number (waits, pto_answer_reasons[i].name);
      g_autofree char *us = pto_trace_dup_us (ns);

      if (ns > 0)
        g_string_append_printf (text, "%s%12s us %s\n", before, us, _ (pto_answer_reasons[i].text));
    }
}

static void
append_critical_path (GString *text, JsonObject *object)
{
  JsonArray *path = json_object_get_array_member (object, "path");
  guint64 n = pto_answer_get_number (object, "tasks");
  g_autofree char *kernels = pto_trace_dup_us (pto_answer_get_number (object, "kernels_ns"));
  g_autofree char *until = NULL;
  guint64 end = 0;

  for (guint i = 0; i < json_array_get_length (path); i++)
    {
      JsonObject *task = json_array_get_object_element (path, i);
      g_autofree char *us = NULL;

      append_waits (text, task, "  ");
      end = pto_answer_get_number (task, "end_ns");
      us = pto_trace_dup_us (end - pto_answer_get_number (task, "start_ns"));
      g_string_append_printf (text, "%12s us ", us);
      append_task (text, task);
    }
  until = pto_trace_dup_us (end);
  g_string_append_printf (text,
                          P_ ("%" PRIu64 " task until %s us, of which\n",
                              "%" PRIu64 " tasks until %s us, of which\n", n),
                          n, until);
  g_string_append_printf (text, "%12s us %s\n", kernels, _ ("in kernels"));
  append_waits (text, object, "");
}

static void
add_overhead_row (PtoAnswerTable *table, const char *name, JsonObject *object)
{
  static const char *const members[] = { "data_ns", "core_ns", "scheduler_ns" };
  JsonObject *waits = json_object_get_object_member (object, "waits");

  pto_answer_table_begin_row (table, name);
  if (json_object_has_member (object, "runs"))
    pto_answer_table_add_number (table, 10, pto_answer_get_number (object, "runs"));
  else
    pto_answer_table_add (table, 10, "");
  pto_answer_table_add_us (table, 14, pto_answer_get_number (object, "busy_ns"));
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    pto_answer_table_add_us (table, 14, pto_answer_get_number (waits, members[i]));
}

static void
append_overhead (GString *text, JsonObject *object)
{
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  const char *const headings[]
      = { _ ("in kernels"), _ ("for data"), _ ("for a core"), _ ("for scheduler") };
  PtoAnswerTable *table = pto_answer_table_new ();

  pto_answer_table_begin_row (table, "");
  pto_answer_table_add (table, 10, C_ ("column", "runs"));
  for (guint i = 0; i < G_N_ELEMENTS (headings); i++)
    pto_answer_table_add (table, 14, headings[i]);
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *kernel = json_array_get_object_element (kernels, i);

      add_overhead_row (table, pto_answer_get_name (kernel, "kernel"), kernel);
    }
  add_overhead_row (table, _ ("all"), object);
  pto_answer_table_end (table, text);
  g_string_append (text, _ ("us in all, from the submit of each task on\n"));
}

/* Whom it waited for, and why. */
static void
append_producer (GString *text, JsonObject *producer)
{
  JsonArray *hazards = json_object_get_array_member (producer, "hazards");
  g_autofree char *task = tell_task (producer);

  g_string_append_printf (text,
                          json_object_get_boolean_member_with_default (producer, "last", FALSE)
                              ? _ ("made ready by %s")
                              : _ ("waited for %s"),
                          task);
  if (json_object_has_member (producer, "end_ns"))
    {
      g_autofree char *us = pto_trace_dup_us (pto_answer_get_number (producer, "end_ns"));

      g_string_append_printf (text, _ (", over at %s us"), us);
    }
  for (guint h = 0; h < json_array_get_length (hazards); h++)
    g_string_append_printf (text, "%s%s", h == 0 ? _ (": ") : _ (", "),
                            json_array_get_string_element (hazards, h));
  if (json_object_has_member (producer, "argument"))
    g_string_append_printf (
        text, _ (", its argument %" PRIu64 " and %" PRIu64 " of this task share %" PRIu64 " bytes"),
        pto_answer_get_number (producer, "producer_argument"),
        pto_answer_get_number (producer, "argument"), pto_answer_get_number (producer, "bytes"));
  g_string_append_c (text, '\n');
}

static void
append_transfers (GString *text, JsonObject *object)
{
  JsonArray *transfers;

  if (!json_object_has_member (object, "transfers"))
    return;
  transfers = json_object_get_array_member (object, "transfers");
  for (guint i = 0; i < json_array_get_length (transfers); i++)
    {
      JsonObject *transfer = json_array_get_object_element (transfers, i);
      const char *core = json_object_get_string_member (transfer, "core");
      guint64 bytes = pto_answer_get_number (transfer, "bytes");
      guint64 start = pto_answer_get_number (transfer, "start_ns");
      g_autofree char *at = pto_trace_dup_us (start);
      g_autofree char *took = pto_trace_dup_us (pto_answer_get_number (transfer, "end_ns") - start);

      if (json_object_has_member (transfer, "saved"))
        g_string_append_printf (text,
                                _ ("%" PRIu64 " bytes sent to %s from %s us on, in %s us; %" PRIu64
                                   " were there already\n"),
                                bytes, core, at, took, pto_answer_get_number (transfer, "saved"));
      else
        g_string_append_printf (text,
                                _ ("%" PRIu64 " bytes received from %s from %s us on, in %s us\n"),
                                bytes, core, at, took);
    }
}

static void
append_explanation (GString *text, JsonObject *object)
{
  JsonArray *producers = json_object_get_array_member (object, "producers");

  append_task (text, object);
  if (json_object_has_member (object, "inside_of"))
    g_string_append_printf (text,
                            _ ("inside of task %s, on %s: times are those of its run there\n"),
                            json_object_get_string_member (object, "inside_of"),
                            json_object_get_string_member (object, "path"));
  if (json_object_has_member (object, "start_ns"))
    {
      guint64 start = pto_answer_get_number (object, "start_ns");
      g_autofree char *at = pto_trace_dup_us (start);
      g_autofree char *since
          = pto_trace_dup_us (start - pto_answer_get_number (object, "submit_ns"));

      g_string_append_printf (text, _ ("started at %s us, %s us after its submit:\n"), at, since);
      append_waits (text, object, "");
    }
  else if (json_object_has_member (object, "runs_nothing")
           && !json_object_has_member (object, "failed"))
    {
      g_autofree char *at = pto_trace_dup_us (pto_answer_get_number (object, "complete_ns"));

      if (json_object_has_member (object, "complete_ns"))
        g_string_append_printf (text, _ ("runs nothing: complete at %s us\n"), at);
      else
        g_string_append (text, _ ("runs nothing\n"));
    }
  else
    g_string_append (text, json_object_has_member (object, "failed")
                               ? _ ("never started: a task that it waited for has failed\n")
                               : _ ("never started\n"));
  for (guint i = 0; i < json_array_get_length (producers); i++)
    append_producer (text, json_array_get_object_element (producers, i));
  append_transfers (text, object);
  if (json_object_has_member (object, "failed") && json_object_has_member (object, "start_ns"))
    g_string_append (text, _ ("failed\n"));
  if (json_array_get_length (producers) == 0
      && (pto_answer_get_number (object, "trace_level") == 0
          || pto_answer_get_number (object, "trace_level") >= PTO_TRACE_LEVEL_GRAPH))
    g_string_append (text, _ ("waited for no task\n"));
}

/* What an answer can not say for want of records. */
static void
append_limits (GString *text, JsonObject *object)
{
  guint64 level = pto_answer_get_number (object, "trace_level");
  guint64 dropped = pto_answer_get_number (object, "dropped");

  if (level == PTO_TRACE_LEVEL_RUNS)
    g_string_append (text, _ ("waits were not recorded, nor dependencies: trace-level was 1\n"));
  else if (level == PTO_TRACE_LEVEL_SCHEDULE)
    g_string_append (text, _ ("dependencies were not recorded: trace-level was 2\n"));
  if (dropped > 0)
    g_string_append_printf (text,
                            _ ("%" PRIu64 " records were dropped, and what they said is not in "
                               "this: set trace-records to more\n"),
                            dropped);
}

/* --- the calls --- */

static JsonBuilder *
begin_answer (PtoTrace *trace)
{
  JsonBuilder *json = json_builder_new_immutable ();

  json_builder_begin_object (json);
  pto_json_add_string (json, "title", trace->title);
  pto_json_add_string (json, "clock", trace->topology.virtual_clock ? "virtual" : "wall");
  pto_json_add_int (json, "trace_level", trace->topology.recorded);
  pto_json_add_int (json, "dropped", pto_trace_get_dropped (trace));
  return json;
}

static JsonNode *
end_answer (JsonBuilder *json)
{
  JsonNode *root;

  json_builder_end_object (json);
  root = json_builder_get_root (json);
  g_object_unref (json);
  return root;
}

static void
add_counters (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  pto_trace_add_counters (json, trace, analysis, PTO_TRACE_COUNT_ALL);
}

/* What is said of each, as JSON, and how that is told. */
static const struct
{
  void (*add) (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis);
  void (*append) (GString *text, JsonObject *object);
} topics[] = {
  [PTO_TRACE_TOPIC_SUMMARY] = { add_summary, NULL },
  [PTO_TRACE_TOPIC_CRITICAL_PATH] = { add_critical_path, append_critical_path },
  [PTO_TRACE_TOPIC_OVERHEAD] = { add_overhead, append_overhead },
  [PTO_TRACE_TOPIC_SCOPES] = { pto_trace_add_scopes, pto_trace_append_scopes },
  [PTO_TRACE_TOPIC_DEPS] = { pto_trace_add_deps, pto_trace_append_deps },
  [PTO_TRACE_TOPIC_COUNTERS] = { add_counters, pto_trace_append_counters },
};

/* One that is not known is the summary. */
static JsonNode *
answer (PtoTrace *trace, PtoTraceTopic topic)
{
  JsonBuilder *json = begin_answer (trace);
  guint known = topic < G_N_ELEMENTS (topics) ? topic : PTO_TRACE_TOPIC_SUMMARY;

  topics[known].add (json, trace, pto_trace_get_analysis (trace));
  return end_answer (json);
}

static char *
print (JsonNode *node)
{
  g_autoptr (JsonNode) owned = node;

  return json_to_string (owned, TRUE);
}

char *
pto_trace_count_json (PtoTrace *trace, guint events)
{
  JsonBuilder *json = begin_answer (trace);

  pto_trace_add_counters (json, trace, pto_trace_get_analysis (trace), events);
  return print (end_answer (json));
}

/**
 * pto_trace_describe_json:
 * @self: a trace
 * @topic: what is asked
 *
 * Answers as JSON what [method@Pto.Trace.describe] answers as text: an object whose members are
 * named for what they are, those that end in `_ns` are nanoseconds, ids of tasks are strings.
 * doc/traces.md lists them.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON
 *
 * Since: 0.1
 */
char *
pto_trace_describe_json (PtoTrace *self, PtoTraceTopic topic)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  return print (answer (self, topic));
}

/**
 * pto_trace_describe:
 * @self: a trace
 * @topic: what is asked
 *
 * Answers a question in a few lines for people. Of a worker of level 3 or up it tells of the
 * worker's own tasks. What a run of a low trace level did not record is left out.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each
 *
 * Since: 0.1
 */
char *
pto_trace_describe (PtoTrace *self, PtoTraceTopic topic)
{
  g_autoptr (JsonNode) root = NULL;
  GString *text;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  if (topic >= G_N_ELEMENTS (topics) || topics[topic].append == NULL)
    return pto_trace_summarize (self);
  root = answer (self, topic);
  text = g_string_new (NULL);
  topics[topic].append (text, json_node_get_object (root));
  if (topic != PTO_TRACE_TOPIC_DEPS)
    append_limits (text, json_node_get_object (root));
  return g_string_free (text, FALSE);
}

static const PtoTraceEntry *
find_task (PtoTrace *trace, guint64 id, GError **error)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  g_autoptr (GString) others = g_string_new (NULL);
  g_autofree char *name = NULL;
  g_autofree char *there = NULL;

  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].id == id)
      return &analysis->tasks[i];
  name = pto_trace_dup_task_name (id);
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (PTO_TASK_LOCAL (analysis->tasks[i].id) == id)
      g_string_append_printf (others, "%s%u:%u", others->len > 0 ? ", " : "",
                              PTO_TASK_RING (analysis->tasks[i].id), (guint) id);
  there = others->len > 0 ? g_strdup_printf (_ ("; there is %s"), others->str) : g_strdup ("");
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
               _ ("task %s: no such task is in the trace, which has %u%s%s"), name,
               analysis->n_tasks,
               pto_trace_get_dropped (trace) > 0 ? _ ("; some may have been dropped") : "", there);
  return NULL;
}

static void
add_producers (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);

  pto_json_begin_array (json, "producers");
  for (guint k = 0; k < task->n_deps; k++)
    {
      const PtoTraceDep *dep = &analysis->deps[task->first_dep + k];

      json_builder_begin_object (json);
      if (dep->producer_index != PTO_TRACE_NOWHERE)
        {
          const PtoTraceEntry *producer = &analysis->tasks[dep->producer_index];

          add_task (json, trace, producer);
          pto_answer_add_time (json, "end_ns", producer->end);
          if (dep->producer_index == task->last_producer)
            pto_json_add_boolean (json, "last", TRUE);
        }
      else
        {
          pto_answer_add_id (json, "task", dep->producer);
          pto_json_add_string (json, "kernel", "not recorded");
        }
      pto_trace_add_hazards (json, dep->kinds);
      if (dep->consumer_arg != PTO_TRACE_NOWHERE)
        {
          pto_json_add_int (json, "argument", dep->consumer_arg);
          pto_json_add_int (json, "producer_argument", dep->producer_arg);
          pto_json_add_int (json, "from", dep->from);
          pto_json_add_int (json, "bytes", dep->bytes);
        }
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

/* What travelled for it, if anything did or would have. */
static void
add_transfers (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task)
{
  const PtoTraceTransfer *transfers;
  guint n;

  transfers
      = pto_trace_find_transfers (pto_trace_get_analysis (trace), task->id, PTO_TRACE_NOWHERE, &n);
  if (n == 0)
    return;
  pto_json_begin_array (json, "transfers");
  for (guint i = 0; i < n; i++)
    {
      const PtoTraceTransfer *transfer = &transfers[i];
      g_autofree char *core = pto_trace_dup_core_name (trace, transfer->core);

      json_builder_begin_object (json);
      pto_json_add_string (json, "core", core);
      pto_json_add_string (json, "way", transfer->is_back ? "received" : "sent");
      pto_json_add_int (json, "bytes", transfer->bytes);
      if (!transfer->is_back)
        pto_json_add_int (json, "saved", transfer->saved);
      pto_json_add_int (json, "start_ns", transfer->start);
      pto_json_add_int (json, "end_ns", transfer->end);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

static JsonNode *
explain (const PtoTraceFound *found, GError **error)
{
  PtoTrace *trace = found->trace;
  const PtoTraceEntry *task = find_task (trace, found->id, error);
  PtoTraceWaits waits;
  JsonBuilder *json;

  if (task == NULL)
    return NULL;
  json = begin_answer (trace);
  if (found->within != NULL)
    {
      pto_json_add_string (json, "path", found->path);
      pto_json_add_string (json, "inside_of", found->within);
    }
  add_task (json, trace, task);
  pto_answer_add_place (json, "submitted_at", trace, task->file, task->line);
  pto_answer_add_time (json, "submit_ns", task->submit);
  pto_answer_add_time (json, "ready_ns", task->ready);
  pto_answer_add_time (json, "dispatch_ns", task->dispatch);
  pto_answer_add_time (json, "start_ns", task->start);
  pto_answer_add_time (json, "end_ns", task->end);
  pto_answer_add_time (json, "complete_ns", task->complete);
  pto_answer_add_time (json, "retire_ns", task->retire);
  if ((gint32) task->kernel < 0)
    pto_json_add_boolean (json, "runs_nothing", TRUE);
  if (task->failed)
    pto_json_add_boolean (json, "failed", TRUE);
  if (task->start != PTO_TRACE_NEVER
      && pto_trace_get_waits (pto_trace_get_analysis (trace), trace, task,
                              MIN (task->submit, task->start), &waits))
    add_waits (json, &waits);
  add_transfers (json, trace, task);
  add_producers (json, trace, task);
  return end_answer (json);
}

/* As JSON or as text. Takes what was asked. */
static char *
tell (PtoTraceFound *found, gboolean as_json, GError **error)
{
  g_autoptr (JsonNode) root = explain (found, error);
  GString *text;

  pto_trace_found_clear (found);
  if (root == NULL || as_json)
    return root != NULL ? json_to_string (root, TRUE) : NULL;
  text = g_string_new (NULL);
  append_explanation (text, json_node_get_object (root));
  append_limits (text, json_node_get_object (root));
  return g_string_free (text, FALSE);
}

static char *
find_and_tell (PtoTrace *trace, const char *task, gboolean as_json, GError **error)
{
  PtoTraceFound found;

  if (pto_trace_find_label (trace, task, &found, error))
    return tell (&found, as_json, error);
  pto_trace_found_clear (&found);
  return NULL;
}

/**
 * pto_trace_explain_task_json:
 * @self: a trace
 * @id: of a task of the worker itself: ring << 32 | position in that ring
 * @error: return location for an error
 *
 * Answers as JSON what [method@Pto.Trace.explain_task] answers as text.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON; %NULL with %G_IO_ERROR_NOT_FOUND when there is no
 *   such task
 *
 * Since: 0.1
 */
char *
pto_trace_explain_task_json (PtoTrace *self, guint64 id, GError **error)
{
  PtoTraceFound found = { .trace = self, .id = id };

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return tell (&found, TRUE, error);
}

/**
 * pto_trace_explain_task:
 * @self: a trace
 * @id: of a task of the worker itself: ring << 32 | position in that ring
 * @error: return location for an error
 *
 * Tells why a task started when it did: what went by since its submit, which tasks it waited for,
 * for which hazard, and which of them was over last. A run of trace level 4 also has the arguments
 * that are why, and how many bytes they share.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each; %NULL with %G_IO_ERROR_NOT_FOUND when
 *   there is no such task
 *
 * Since: 0.1
 */
char *
pto_trace_explain_task (PtoTrace *self, guint64 id, GError **error)
{
  PtoTraceFound found = { .trace = self, .id = id };

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return tell (&found, FALSE, error);
}

/**
 * pto_trace_explain_json:
 * @self: a trace
 * @task: a task, as for [method@Pto.Trace.explain]
 * @error: return location for an error
 *
 * Answers as JSON what [method@Pto.Trace.explain] answers as text.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON; %NULL with the errors of that
 *
 * Since: 0.1
 */
char *
pto_trace_explain_json (PtoTrace *self, const char *task, GError **error)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (task != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return find_and_tell (self, task, TRUE, error);
}

/**
 * pto_trace_explain:
 * @self: a trace
 * @task: a task: `17`, `1:17` of ring 1, its id in decimal, or, inside of task 7 of a worker of
 *   level 3 or up, `7/1:17`, and `7.1/1:17` on the second of the workers that ran that: as
 *   [method@Pto.TraceTask.dup_label] gives it
 * @error: return location for an error
 *
 * Tells why a task started when it did, as [method@Pto.Trace.explain_task], also of one that a
 * worker below ran inside of a task: then on the clock of its run there.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each; %NULL with %G_IO_ERROR_NOT_FOUND when
 *   there is no such task, with %G_IO_ERROR_INVALID_ARGUMENT when that names none
 *
 * Since: 0.1
 */
char *
pto_trace_explain (PtoTrace *self, const char *task, GError **error)
{
  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (task != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return find_and_tell (self, task, FALSE, error);
}
