/* state-openmetrics.c: what do workers count and hold, as OpenMetrics text?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A counter is what all runs have counted that are over, and what the run under way has by now: one
 * look reads both while no run begins or ends (../core/inspect.h), so that counters never go back.
 * All samples of a metric stand together, whosever they are, as the format has it.
 */
#include "config.h"

#include "state.h"

#include <string.h>

typedef struct Metric Metric;

typedef struct
{
  GString *text;
  const Metric *metric;
} Writer;

struct Metric
{
  const char *name;
  const char *type;
  const char *unit; /* with which the name ends; NULL: none */
  const char *help;
  void (*write) (Writer *writer, JsonObject *worker);
  /* What write looks at: a member, of what a worker has by the name of from, and of its run. */
  const char *member;
  const char *from;
  const char *of_run;
  /* Of a list: the label, and the member that is its value. */
  const char *label;
  const char *key;
};

/* --- samples --- */

static void
append_label (GString *text, const char *name, const char *value, gboolean is_first)
{
  g_string_append_printf (text, "%s%s=\"", is_first ? "" : ",", name);
  for (; *value != '\0'; value++)
    if (*value == '\n')
      g_string_append (text, "\\n");
    else
      {
        if (*value == '\\' || *value == '"')
          g_string_append_c (text, '\\');
        g_string_append_c (text, *value);
      }
  g_string_append_c (text, '"');
}

/* label: one more, or NULL. What counts seconds is given ns. */
static void
write_sample (Writer *writer, JsonObject *worker, const char *label, const char *label_value,
              guint64 value)
{
  g_autofree char *number
      = g_strdup_printf ("%" G_GUINT64_FORMAT, member_number (worker, "number"));

  g_string_append (writer->text, writer->metric->name);
  if (strcmp (writer->metric->type, "counter") == 0)
    g_string_append (writer->text, "_total");
  g_string_append_c (writer->text, '{');
  append_label (writer->text, "worker", member_text (worker, "path"), TRUE);
  append_label (writer->text, "number", number, FALSE);
  if (label != NULL)
    append_label (writer->text, label, label_value, FALSE);
  if (g_strcmp0 (writer->metric->unit, "seconds") == 0)
    g_string_append_printf (writer->text, "} %" G_GUINT64_FORMAT ".%09" G_GUINT64_FORMAT "\n",
                            value / 1000000000, value % 1000000000);
  else
    g_string_append_printf (writer->text, "} %" G_GUINT64_FORMAT "\n", value);
}

/* --- what is counted --- */

/* Of what the worker has by that name, and of the run under way. */
static void
write_sum (Writer *writer, JsonObject *worker)
{
  const Metric *metric = writer->metric;
  JsonObject *from = member_object (worker, metric->from);
  guint64 now
      = metric->of_run != NULL ? member_number (member_object (worker, "run"), metric->of_run) : 0;

  if (from != NULL)
    write_sample (writer, worker, NULL, NULL, member_number (from, metric->member) + now);
}

static void
write_peak (Writer *writer, JsonObject *worker)
{
  const Metric *metric = writer->metric;
  JsonObject *from = member_object (worker, metric->from);

  if (from != NULL)
    write_sample (writer, worker, NULL, NULL,
                  MAX (member_number (from, metric->member),
                       member_number (member_object (worker, "run"), metric->of_run)));
}

static void
write_own (Writer *writer, JsonObject *worker)
{
  if (json_object_has_member (worker, writer->metric->member))
    write_sample (writer, worker, NULL, NULL, member_number (worker, writer->metric->member));
}

/* Of each object of a list that has it. */
static void
write_each (Writer *writer, JsonObject *worker)
{
  const Metric *metric = writer->metric;
  JsonObject *one;

  for (guint i = 0; (one = member_next (worker, metric->from, &i)) != NULL;)
    if (json_object_has_member (one, metric->member))
      write_sample (writer, worker, metric->label, member_text (one, metric->key),
                    member_number (one, metric->member));
}

/* --- what there is just now --- */

static void
write_is_running (Writer *writer, JsonObject *worker)
{
  if (json_object_has_member (worker, "run"))
    write_sample (writer, worker, NULL, NULL, member_object (worker, "run") != NULL);
}

static void
write_tasks (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "running", "ready", "blocked" };
  JsonObject *run = member_object (worker, "run");

  for (guint i = 0; i < G_N_ELEMENTS (states) && json_object_has_member (worker, "run"); i++)
    write_sample (writer, worker, "state", states[i], member_number (run, states[i]));
}

static void
write_waits (Writer *writer, JsonObject *worker)
{
  JsonObject *submitter = member_object (member_object (worker, "run"), "submitter");

  if (json_object_has_member (worker, "run"))
    write_sample (writer, worker, NULL, NULL, member_is (submitter, "doing", "room"));
}

/* Of a ring by its number; its peak: the most that a run has used. */
static void
write_ring (Writer *writer, JsonObject *worker)
{
  const char *member = writer->metric->member;
  JsonArray *before = member_array (member_object (worker, "totals"), "heap_peak");

  for (guint i = 0; i < member_length (worker, "rings"); i++)
    {
      JsonObject *ring = member_element (worker, "rings", i);
      g_autofree char *number = g_strdup_printf ("%u", i);
      guint64 value = member_number (ring, member);

      if (strcmp (member, "heap_peak") == 0 && before != NULL && i < json_array_get_length (before))
        value = MAX (value, (guint64) json_array_get_int_element (before, i));
      if (ring != NULL)
        write_sample (writer, worker, "ring", number, value);
    }
}

static void
write_states (Writer *writer, JsonObject *worker, const char *const *states, const guint *n)
{
  if (member_array (worker, writer->metric->from) != NULL)
    for (guint i = 0; states[i] != NULL; i++)
      write_sample (writer, worker, "state", states[i], n[i]);
}

static void
write_cores (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "idle", "runs", "waits", NULL };
  guint n[3] = { 0 };
  JsonObject *core;

  for (guint i = 0; (core = member_next (worker, "cores", &i)) != NULL;)
    if (member_is (core, "doing", "idle"))
      n[0]++;
    else if (member_is (core, "doing", "runs") || member_is (core, "doing", "changing"))
      n[1]++;
    else
      n[2]++;
  write_states (writer, worker, states, n);
}

static void
write_children (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "idle", "busy", "away", NULL };
  guint n[3] = { 0 };
  JsonObject *child;

  for (guint i = 0; (child = member_next (worker, "children", &i)) != NULL;)
    if (member_is (child, "life", "idle") && !member_flag (child, "is_suspect"))
      n[0]++;
    else if (member_is (child, "life", "busy") || member_is (child, "life", "asked to stop"))
      n[1]++;
    else
      n[2]++;
  write_states (writer, worker, states, n);
}

/* --- all of it --- */

/* What a counter has: the member of all runs that are over, and that of the run under way. */
#define COUNTED(member, of_run) write_sum, member, "totals", of_run
#define EACH(member, list, label, key) write_each, member, list, NULL, label, key

static const Metric metrics[] = {
  { "pto_runs", "counter", NULL, "Runs that are over.", COUNTED ("runs", NULL) },
  { "pto_failed_runs", "counter", NULL, "Runs that failed or were cancelled.",
    COUNTED ("failed_runs", NULL) },
  { "pto_run_seconds", "counter", "seconds", "Time in runs, by the wall clock.",
    COUNTED ("run_ns", "for_ns") },
  { "pto_run_active", "gauge", NULL, "Whether a run is under way.", write_is_running },
  { "pto_tasks_submitted", "counter", NULL, "Tasks submitted.",
    COUNTED ("submitted", "submitted") },
  { "pto_tasks_completed", "counter", NULL, "Tasks that are over, well or not.",
    COUNTED ("completed", "completed") },
  { "pto_tasks_retired", "counter", NULL, "Tasks whose slot and memory can be had again.",
    COUNTED ("completed", "retired") },
  { "pto_tasks_failed", "counter", NULL, "Tasks that did not run to their end.",
    COUNTED ("failed", "failed") },
  { "pto_edges", "counter", NULL, "Pairs of tasks that wait for each other.",
    COUNTED ("edges", "edges") },
  { "pto_backpressure_waits", "counter", NULL,
    "Times that the submitter waited for room, a task or a cluster.",
    COUNTED ("stalls", "stalls") },
  { "pto_backpressure_active", "gauge", NULL, "Whether the submitter waits for room.",
    write_waits },
  { "pto_tasks", "gauge", NULL, "Tasks of the run under way that are not over.", write_tasks },
  { "pto_live_tasks_peak", "gauge", NULL, "Most slots taken at one time.", write_peak,
    "peak_live_tasks", "totals", "peak_live_tasks" },
  { "pto_ready_tasks", "gauge", NULL, "Length of the queues of ready tasks.",
    EACH ("ready", "queues", "for", "for") },
  { "pto_ring_tasks", "gauge", NULL, "Slots of a ring in use.", write_ring, "tasks" },
  { "pto_ring_window_tasks", "gauge", NULL, "Slots of a ring; one of them stays free.", write_ring,
    "window" },
  { "pto_ring_heap_used_bytes", "gauge", "bytes", "Output memory of a ring in use.", write_ring,
    "heap_used" },
  { "pto_ring_heap_bytes", "gauge", "bytes", "Output memory of a ring.", write_ring, "heap" },
  { "pto_ring_heap_peak_bytes", "gauge", "bytes", "Most that a run has used of it.", write_ring,
    "heap_peak" },
  { "pto_ring_edges", "gauge", NULL, "Edges of a ring in use.", write_ring, "edges" },
  { "pto_ring_edge_pool", "gauge", NULL, "Edges of a ring.", write_ring, "edge_pool" },
  { "pto_map_nodes", "gauge", NULL, "Nodes of the TensorMap in use.", write_sum, "used", "map" },
  { "pto_map_capacity_nodes", "gauge", NULL, "Nodes of the TensorMap.", write_sum, "capacity",
    "map" },
  { "pto_core_busy_seconds", "counter", "seconds",
    "Time in kernels, without their waits; where kernels are timed.",
    EACH ("busy_ns", "cores", "core", "core") },
  { "pto_cores", "gauge", NULL, "Cores by what they do.", write_cores, NULL, "cores" },
  { "pto_scheduler_busy_cores", "gauge", NULL, "Cores of a scheduler that run a kernel.",
    EACH ("busy", "schedulers", "scheduler", "scheduler") },
  { "pto_children", "gauge", NULL, "Children by what they do.", write_children, NULL, "children" },
  { "pto_child_restarts", "counter", NULL, "Children that were begun again.", write_own,
    "restarts" },
  { "pto_retried_tasks", "counter", NULL, "Tasks that were lost with a child and run again.",
    write_own, "retried_tasks" },
  { "pto_remote_sent_bytes", "counter", "bytes",
    "Contents of tensors that went to a remote worker.",
    EACH ("bytes_sent", "children", "child", "path") },
  { "pto_remote_received_bytes", "counter", "bytes", "Contents of tensors that came back from it.",
    EACH ("bytes_received", "children", "child", "path") },
  { "pto_remote_saved_bytes", "counter", "bytes",
    "Contents of tensors that it had already, and that were not sent again.",
    EACH ("bytes_saved", "children", "child", "path") },
  { "pto_remote_silences", "counter", NULL,
    "Times that nothing was heard of it for remote-suspect, and it got no task.",
    EACH ("silences", "children", "child", "path") },
};

static void
write_worker (JsonObject *worker, gpointer data)
{
  Writer *writer = data;

  writer->metric->write (writer, worker);
}

char *
pto_state_to_metrics (JsonObject *state)
{
  Writer writer = { .text = g_string_new (NULL) };

  for (guint i = 0; i < G_N_ELEMENTS (metrics); i++)
    {
      const Metric *metric = &metrics[i];

      g_string_append_printf (writer.text, "# TYPE %s %s\n", metric->name, metric->type);
      if (metric->unit != NULL)
        g_string_append_printf (writer.text, "# UNIT %s %s\n", metric->name, metric->unit);
      g_string_append_printf (writer.text, "# HELP %s %s\n", metric->name, metric->help);
      writer.metric = metric;
      pto_state_visit_workers (state, write_worker, &writer);
    }
  g_string_append (writer.text, "# EOF\n");
  return g_string_free (writer.text, FALSE);
}
