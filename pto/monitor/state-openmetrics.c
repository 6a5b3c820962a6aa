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
  const char *member; /* what write looks at */
};

/* --- samples --- */

static void
append_label (GString *text, const char *name, const char *value, gboolean is_first)
{
  g_string_append_printf (text, "%s%s=\"", is_first ? "" : ",", name);
  for (; value != NULL && *value != '\0'; value++)
    switch (*value)
      {
      case '\\':
        g_string_append (text, "\\\\");
        break;
      case '"':
        g_string_append (text, "\\\"");
        break;
      case '\n':
        g_string_append (text, "\\n");
        break;
      default:
        g_string_append_c (text, *value);
      }
  g_string_append_c (text, '"');
}

/* label: one more, or NULL. */
static void
begin_sample (Writer *writer, JsonObject *worker, const char *label, const char *value)
{
  g_autofree char *number
      = g_strdup_printf ("%" G_GUINT64_FORMAT, pto_state_get_number (worker, "number"));

  g_string_append (writer->text, writer->metric->name);
  if (strcmp (writer->metric->type, "counter") == 0)
    g_string_append (writer->text, "_total");
  g_string_append_c (writer->text, '{');
  append_label (writer->text, "worker", pto_state_get_text (worker, "path"), TRUE);
  append_label (writer->text, "number", number, FALSE);
  if (label != NULL)
    append_label (writer->text, label, value, FALSE);
  g_string_append (writer->text, "} ");
}

static void
write_sample (Writer *writer, JsonObject *worker, const char *label, const char *label_value,
              guint64 value)
{
  begin_sample (writer, worker, label, label_value);
  g_string_append_printf (writer->text, "%" G_GUINT64_FORMAT "\n", value);
}

static void
write_seconds (Writer *writer, JsonObject *worker, const char *label, const char *label_value,
               guint64 ns)
{
  begin_sample (writer, worker, label, label_value);
  g_string_append_printf (writer->text, "%" G_GUINT64_FORMAT ".%09" G_GUINT64_FORMAT "\n",
                          ns / 1000000000, ns % 1000000000);
}

/* --- what is counted --- */

static void
write_total (Writer *writer, JsonObject *worker)
{
  JsonObject *totals = pto_state_get_object (worker, "totals");

  if (totals != NULL)
    write_sample (writer, worker, NULL, NULL,
                  pto_state_get_number (totals, writer->metric->member));
}

/* Of the runs that are over, and of the one under way. */
static void
write_count (Writer *writer, JsonObject *worker)
{
  JsonObject *totals = pto_state_get_object (worker, "totals");
  const char *member = writer->metric->member;

  if (totals != NULL)
    write_sample (writer, worker, NULL, NULL,
                  pto_state_get_number (totals, member)
                      + pto_state_get_number (pto_state_get_object (worker, "run"), member));
}

/* When a run is over all its tasks are. */
static void
write_retired (Writer *writer, JsonObject *worker)
{
  JsonObject *totals = pto_state_get_object (worker, "totals");

  if (totals != NULL)
    write_sample (writer, worker, NULL, NULL,
                  pto_state_get_number (totals, "completed")
                      + pto_state_get_number (pto_state_get_object (worker, "run"), "retired"));
}

static void
write_run_seconds (Writer *writer, JsonObject *worker)
{
  JsonObject *totals = pto_state_get_object (worker, "totals");

  if (totals != NULL)
    write_seconds (writer, worker, NULL, NULL,
                   pto_state_get_number (totals, "run_ns")
                       + pto_state_get_number (pto_state_get_object (worker, "run"), "for_ns"));
}

static void
write_core_seconds (Writer *writer, JsonObject *worker)
{
  JsonArray *cores = pto_state_get_array (worker, "cores");

  for (guint i = 0; i < pto_state_get_length (cores); i++)
    {
      JsonObject *core = pto_state_get_element (cores, i);

      if (core != NULL && json_object_has_member (core, "busy_ns"))
        write_seconds (writer, worker, "core", pto_state_get_text (core, "core"),
                       pto_state_get_number (core, "busy_ns"));
    }
}

static void
write_scheduler (Writer *writer, JsonObject *worker)
{
  JsonArray *schedulers = pto_state_get_array (worker, "schedulers");

  for (guint i = 0; i < pto_state_get_length (schedulers); i++)
    {
      JsonObject *scheduler = pto_state_get_element (schedulers, i);

      if (scheduler != NULL)
        write_sample (writer, worker, "scheduler", pto_state_get_text (scheduler, "scheduler"),
                      pto_state_get_number (scheduler, writer->metric->member));
    }
}

static void
write_restarts (Writer *writer, JsonObject *worker)
{
  if (json_object_has_member (worker, writer->metric->member))
    write_sample (writer, worker, NULL, NULL,
                  pto_state_get_number (worker, writer->metric->member));
}

/* Of each worker below that shares no memory. */
static void
write_remote (Writer *writer, JsonObject *worker)
{
  JsonArray *children = pto_state_get_array (worker, "children");

  for (guint i = 0; i < pto_state_get_length (children); i++)
    {
      JsonObject *child = pto_state_get_element (children, i);

      if (child != NULL && json_object_has_member (child, writer->metric->member))
        write_sample (writer, worker, "child", pto_state_get_text (child, "path"),
                      pto_state_get_number (child, writer->metric->member));
    }
}

/* --- what there is just now --- */

static void
write_is_running (Writer *writer, JsonObject *worker)
{
  if (json_object_has_member (worker, "run"))
    write_sample (writer, worker, NULL, NULL, pto_state_get_object (worker, "run") != NULL);
}

static void
write_tasks (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "running", "ready", "blocked" };
  JsonObject *run = pto_state_get_object (worker, "run");

  for (guint i = 0; i < G_N_ELEMENTS (states) && json_object_has_member (worker, "run"); i++)
    write_sample (writer, worker, "state", states[i], pto_state_get_number (run, states[i]));
}

static void
write_waits (Writer *writer, JsonObject *worker)
{
  JsonObject *run = pto_state_get_object (worker, "run");
  JsonObject *submitter = run != NULL ? pto_state_get_object (run, "submitter") : NULL;

  if (json_object_has_member (worker, "run"))
    write_sample (writer, worker, NULL, NULL,
                  submitter != NULL
                      && g_strcmp0 (pto_state_get_text (submitter, "doing"), "room") == 0);
}

static void
write_ring (Writer *writer, JsonObject *worker)
{
  JsonArray *rings = pto_state_get_array (worker, "rings");

  for (guint i = 0; i < pto_state_get_length (rings); i++)
    {
      JsonObject *ring = pto_state_get_element (rings, i);
      g_autofree char *number = g_strdup_printf ("%u", i);

      if (ring != NULL)
        write_sample (writer, worker, "ring", number,
                      pto_state_get_number (ring, writer->metric->member));
    }
}

/* The most that a run has used. */
static void
write_heap_peak (Writer *writer, JsonObject *worker)
{
  JsonArray *rings = pto_state_get_array (worker, "rings");
  JsonObject *totals = pto_state_get_object (worker, "totals");
  JsonArray *before = totals != NULL ? pto_state_get_array (totals, "heap_peak") : NULL;

  for (guint i = 0; i < pto_state_get_length (rings); i++)
    {
      JsonObject *ring = pto_state_get_element (rings, i);
      g_autofree char *number = g_strdup_printf ("%u", i);
      guint64 peak = i < pto_state_get_length (before)
                         ? (guint64) json_array_get_int_element (before, i)
                         : 0;

      if (ring != NULL)
        write_sample (writer, worker, "ring", number,
                      MAX (peak, pto_state_get_number (ring, "heap_peak")));
    }
}

static void
write_peak_tasks (Writer *writer, JsonObject *worker)
{
  JsonObject *totals = pto_state_get_object (worker, "totals");

  if (totals != NULL)
    write_sample (
        writer, worker, NULL, NULL,
        MAX (pto_state_get_number (totals, writer->metric->member),
             pto_state_get_number (pto_state_get_object (worker, "run"), writer->metric->member)));
}

static void
write_map (Writer *writer, JsonObject *worker)
{
  JsonObject *map = pto_state_get_object (worker, "map");

  if (map != NULL)
    write_sample (writer, worker, NULL, NULL, pto_state_get_number (map, writer->metric->member));
}

static void
write_queues (Writer *writer, JsonObject *worker)
{
  JsonArray *queues = pto_state_get_array (worker, "queues");

  for (guint i = 0; i < pto_state_get_length (queues); i++)
    {
      JsonObject *queue = pto_state_get_element (queues, i);

      if (queue != NULL)
        write_sample (writer, worker, "for", pto_state_get_text (queue, "for"),
                      pto_state_get_number (queue, "ready"));
    }
}

static void
write_cores (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "idle", "runs", "waits" };
  guint n[G_N_ELEMENTS (states)] = { 0 };
  JsonArray *cores = pto_state_get_array (worker, "cores");

  if (cores == NULL)
    return;
  for (guint i = 0; i < pto_state_get_length (cores); i++)
    {
      JsonObject *core = pto_state_get_element (cores, i);
      const char *doing = core != NULL ? pto_state_get_text (core, "doing") : NULL;

      if (g_strcmp0 (doing, "idle") == 0)
        n[0]++;
      else if (g_strcmp0 (doing, "runs") == 0 || g_strcmp0 (doing, "changing") == 0)
        n[1]++;
      else
        n[2]++;
    }
  for (guint i = 0; i < G_N_ELEMENTS (states); i++)
    write_sample (writer, worker, "state", states[i], n[i]);
}

static void
write_children (Writer *writer, JsonObject *worker)
{
  static const char *const states[] = { "idle", "busy", "away" };
  guint n[G_N_ELEMENTS (states)] = { 0 };
  JsonArray *children = pto_state_get_array (worker, "children");

  if (children == NULL)
    return;
  for (guint i = 0; i < pto_state_get_length (children); i++)
    {
      JsonObject *child = pto_state_get_element (children, i);
      const char *life = child != NULL ? pto_state_get_text (child, "life") : NULL;

      if (g_strcmp0 (life, "idle") == 0 && !pto_state_has_flag (child, "is_suspect"))
        n[0]++;
      else if (g_strcmp0 (life, "busy") == 0 || g_strcmp0 (life, "asked to stop") == 0)
        n[1]++;
      else
        n[2]++;
    }
  for (guint i = 0; i < G_N_ELEMENTS (states); i++)
    write_sample (writer, worker, "state", states[i], n[i]);
}

/* --- all of it --- */

static const Metric metrics[] = {
  { "pto_runs", "counter", NULL, "Runs that are over.", write_total, "runs" },
  { "pto_failed_runs", "counter", NULL, "Runs that failed or were cancelled.", write_total,
    "failed_runs" },
  { "pto_run_seconds", "counter", "seconds", "Time in runs, by the wall clock.", write_run_seconds,
    NULL },
  { "pto_run_active", "gauge", NULL, "Whether a run is under way.", write_is_running, NULL },
  { "pto_tasks_submitted", "counter", NULL, "Tasks submitted.", write_count, "submitted" },
  { "pto_tasks_completed", "counter", NULL, "Tasks that are over, well or not.", write_count,
    "completed" },
  { "pto_tasks_retired", "counter", NULL, "Tasks whose slot and memory can be had again.",
    write_retired, NULL },
  { "pto_tasks_failed", "counter", NULL, "Tasks that did not run to their end.", write_count,
    "failed" },
  { "pto_edges", "counter", NULL, "Pairs of tasks that wait for each other.", write_count,
    "edges" },
  { "pto_backpressure_waits", "counter", NULL,
    "Times that the submitter waited for room, a task or a cluster.", write_count, "stalls" },
  { "pto_backpressure_active", "gauge", NULL, "Whether the submitter waits for room.", write_waits,
    NULL },
  { "pto_tasks", "gauge", NULL, "Tasks of the run under way that are not over.", write_tasks,
    NULL },
  { "pto_live_tasks_peak", "gauge", NULL, "Most slots taken at one time.", write_peak_tasks,
    "peak_live_tasks" },
  { "pto_ready_tasks", "gauge", NULL, "Length of the queues of ready tasks.", write_queues, NULL },
  { "pto_ring_tasks", "gauge", NULL, "Slots of a ring in use.", write_ring, "tasks" },
  { "pto_ring_window_tasks", "gauge", NULL, "Slots of a ring; one of them stays free.", write_ring,
    "window" },
  { "pto_ring_heap_used_bytes", "gauge", "bytes", "Output memory of a ring in use.", write_ring,
    "heap_used" },
  { "pto_ring_heap_bytes", "gauge", "bytes", "Output memory of a ring.", write_ring, "heap" },
  { "pto_ring_heap_peak_bytes", "gauge", "bytes", "Most that a run has used of it.",
    write_heap_peak, NULL },
  { "pto_ring_edges", "gauge", NULL, "Edges of a ring in use.", write_ring, "edges" },
  { "pto_ring_edge_pool", "gauge", NULL, "Edges of a ring.", write_ring, "edge_pool" },
  { "pto_map_nodes", "gauge", NULL, "Nodes of the TensorMap in use.", write_map, "used" },
  { "pto_map_capacity_nodes", "gauge", NULL, "Nodes of the TensorMap.", write_map, "capacity" },
  { "pto_core_busy_seconds", "counter", "seconds",
    "Time in kernels, without their waits; where kernels are timed.", write_core_seconds, NULL },
  { "pto_cores", "gauge", NULL, "Cores by what they do.", write_cores, NULL },
  { "pto_scheduler_busy_cores", "gauge", NULL, "Cores of a scheduler that run a kernel.",
    write_scheduler, "busy" },
  { "pto_children", "gauge", NULL, "Children by what they do.", write_children, NULL },
  { "pto_child_restarts", "counter", NULL, "Children that were begun again.", write_restarts,
    "restarts" },
  { "pto_retried_tasks", "counter", NULL, "Tasks that were lost with a child and run again.",
    write_restarts, "retried_tasks" },
  { "pto_remote_sent_bytes", "counter", "bytes",
    "Contents of tensors that went to a remote worker.", write_remote, "bytes_sent" },
  { "pto_remote_received_bytes", "counter", "bytes", "Contents of tensors that came back from it.",
    write_remote, "bytes_received" },
  { "pto_remote_saved_bytes", "counter", "bytes",
    "Contents of tensors that it had already, and that were not sent again.", write_remote,
    "bytes_saved" },
  { "pto_remote_silences", "counter", NULL,
    "Times that nothing was heard of it for remote-suspect, and it got no task.", write_remote,
    "silences" },
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
