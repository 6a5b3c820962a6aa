/* pto-trace-json.c: how does ui.perfetto.dev see a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Trace Event format, object form. One process for the control threads, one for every cluster; one
 * thread for each core. Written by hand, not through a tree: a run of 100 000 tasks is 100 MB of
 * text, and its order must be the same every time. Numbers of threads are unique over all
 * processes.
 */
#include "config.h"

#include "pto-trace-private.h"

enum
{
  PID_CONTROL = 1,
  PID_CLUSTER = 10, /* + cluster */
  TID_ORCHESTRATOR = 1,
  TID_STALLS = 2,
  TID_SCHEDULER = 10, /* + scheduler */
  TID_CORE = 1000     /* + core */
};

typedef struct
{
  PtoTrace *trace;
  const PtoTraceAnalysis *analysis;
  GString *text;
  GPtrArray *names; /* of kernels, quoted for JSON */
  gboolean first;
} Writer;

/* The text must be UTF-8. */
static void
append_quoted (GString *text, const char *string)
{
  g_string_append_c (text, '"');
  for (const char *c = string; *c != '\0'; c++)
    {
      guchar byte = (guchar) *c;

      if (byte == '"' || byte == '\\')
        {
          g_string_append_c (text, '\\');
          g_string_append_c (text, *c);
        }
      else if (byte < 0x20 || byte == 0x7f)
        g_string_append_printf (text, "\\u%04x", byte);
      else
        g_string_append_c (text, *c);
    }
  g_string_append_c (text, '"');
}

/* Starts an event: {"ph":"X","pid":..,"tid":..,"ts":.. and leaves it open. */
static void
begin (Writer *writer, char phase, guint pid, guint tid, guint64 time)
{
  g_string_append (writer->text, writer->first ? "\n" : ",\n");
  writer->first = FALSE;
  g_string_append_printf (writer->text, "{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":", phase, pid,
                          tid);
  pto_trace_append_us (writer->text, time);
}

static void
append_duration (Writer *writer, guint64 ns)
{
  g_string_append (writer->text, ",\"dur\":");
  pto_trace_append_us (writer->text, ns);
}

/* An argument that is a time; nothing when it was not recorded. */
static void
append_time (Writer *writer, const char *key, guint64 time)
{
  if (time == PTO_TRACE_NEVER)
    return;
  g_string_append_printf (writer->text, ",\"%s\":", key);
  pto_trace_append_us (writer->text, time);
}

static void
append_metadata (Writer *writer, const char *what, guint pid, guint tid, const char *name,
                 guint order)
{
  g_string_append (writer->text, writer->first ? "\n" : ",\n");
  writer->first = FALSE;
  g_string_append_printf (writer->text,
                          "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_name\","
                          "\"args\":{\"name\":",
                          pid, tid, what);
  append_quoted (writer->text, name);
  g_string_append_printf (writer->text,
                          "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_sort_index\","
                          "\"args\":{\"sort_index\":%u}}",
                          pid, tid, what, order);
}

static void
append_rows (Writer *writer)
{
  PtoTrace *trace = writer->trace;
  guint last = G_MAXUINT;

  append_metadata (writer, "process", PID_CONTROL, 0, "AICPU", 0);
  append_metadata (writer, "thread", PID_CONTROL, TID_ORCHESTRATOR, "orchestrator", 0);
  if (writer->analysis->stalls->len > 0)
    append_metadata (writer, "thread", PID_CONTROL, TID_STALLS, "orchestrator: stalls", 1);
  for (guint s = 0; s < trace->topology.n_schedulers; s++)
    {
      g_autofree char *name = g_strdup_printf ("scheduler %u", s);

      append_metadata (writer, "thread", PID_CONTROL, TID_SCHEDULER + s, name, 2 + s);
    }
  for (guint c = 0; c < trace->topology.n_cores; c++)
    {
      g_autofree char *name = pto_trace_get_core_name (trace, c);
      guint cluster, type, number;

      pto_trace_locate_core (trace, c, &cluster, &type, &number);
      if (cluster != last)
        {
          g_autofree char *title = g_strdup_printf ("cluster %u", cluster);

          append_metadata (writer, "process", PID_CLUSTER + cluster, 0, title, 1 + cluster);
          last = cluster;
        }
      append_metadata (writer, "thread", PID_CLUSTER + cluster, TID_CORE + c, name, c);
    }
}

static void
append_kernel (Writer *writer, guint32 kernel)
{
  if (kernel < writer->names->len)
    g_string_append (writer->text, g_ptr_array_index (writer->names, kernel));
  else if ((gint32) kernel < 0)
    g_string_append (writer->text, "\"no kernel\"");
  else
    g_string_append_printf (writer->text, "\"kernel %u\"", kernel);
}

/* The arguments that say who a task is and who it waited for. Leaves the object open. */
static void
append_task (Writer *writer, const PtoTraceTask *task)
{
  g_string_append_printf (writer->text,
                          ",\"args\":{\"task\":\"%" G_GUINT64_FORMAT "\",\"ring\":%u,\"kernel\":",
                          task->id, PTO_TASK_RING (task->id));
  append_kernel (writer, task->kernel);
  g_string_append (writer->text, ",\"waited_for\":[");
  for (guint k = 0; k < task->n_deps; k++)
    g_string_append_printf (writer->text, "%s\"%" G_GUINT64_FORMAT "\"", k > 0 ? "," : "",
                            writer->analysis->deps[task->first_dep + k].producer);
  g_string_append_c (writer->text, ']');
}

static guint
core_pid (Writer *writer, guint core)
{
  guint cluster, type, number;

  pto_trace_locate_core (writer->trace, core, &cluster, &type, &number);
  return PID_CLUSTER + cluster;
}

static void
append_runs (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  for (guint c = 0; c < analysis->n_cores; c++)
    for (guint i = 0; i < analysis->n_core_runs[c]; i++)
      {
        const PtoTraceTask *task = &analysis->tasks[analysis->core_runs[c][i]];

        begin (writer, 'X', core_pid (writer, c), TID_CORE + c, task->start);
        append_duration (writer, task->end - task->start);
        g_string_append (writer->text, ",\"name\":");
        append_kernel (writer, task->kernel);
        g_string_append (writer->text, ",\"cat\":\"kernel\"");
        append_task (writer, task);
        append_time (writer, "submit_us", task->submit);
        append_time (writer, "ready_us", task->ready);
        append_time (writer, "dispatch_us", task->dispatch);
        append_time (writer, "complete_us", task->complete);
        append_time (writer, "retire_us", task->retire);
        g_string_append_printf (writer->text, ",\"critical\":%s,\"failed\":%s}}",
                                task->critical ? "true" : "false", task->failed ? "true" : "false");
      }
}

static void
append_orchestrator (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  for (guint i = 0; i < analysis->scopes->len; i++)
    {
      const PtoTraceSpan *scope = &g_array_index (analysis->scopes, PtoTraceSpan, i);

      begin (writer, 'X', PID_CONTROL, TID_ORCHESTRATOR, scope->start);
      append_duration (writer, scope->end - scope->start);
      g_string_append_printf (writer->text,
                              ",\"name\":\"scope\",\"cat\":\"scope\",\"args\":{\"depth\":%u}}",
                              scope->what);
    }
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceTask *task = &analysis->tasks[i];

      if (task->submit == PTO_TRACE_NEVER)
        continue;
      begin (writer, 'X', PID_CONTROL, TID_ORCHESTRATOR, task->submit);
      append_duration (writer, MAX (task->submit_end, task->submit) - task->submit);
      g_string_append (writer->text, ",\"name\":");
      append_kernel (writer, task->kernel);
      g_string_append (writer->text, ",\"cat\":\"submit\"");
      append_task (writer, task);
      g_string_append (writer->text, "}}");
    }
  for (guint i = 0; i < analysis->stalls->len; i++)
    {
      const PtoTraceSpan *stall = &g_array_index (analysis->stalls, PtoTraceSpan, i);
      g_autofree char *name = pto_trace_dup_stall_name (stall->what);

      begin (writer, 'X', PID_CONTROL, TID_STALLS, stall->start);
      append_duration (writer, stall->end - stall->start);
      g_string_append_printf (writer->text,
                              ",\"name\":\"wait for %s\",\"cat\":\"stall\",\"args\":{\"ring\":%u}}",
                              name, stall->what & 0xff);
    }
}

static void
append_schedulers (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceTask *task = &analysis->tasks[i];

      if (task->scheduler == PTO_TRACE_NOWHERE)
        continue;
      if (task->dispatch != PTO_TRACE_NEVER)
        {
          begin (writer, 'i', PID_CONTROL, TID_SCHEDULER + task->scheduler, task->dispatch);
          g_string_append_printf (writer->text,
                                  ",\"s\":\"t\",\"name\":\"dispatch\",\"cat\":\"scheduler\","
                                  "\"args\":{\"task\":\"%" G_GUINT64_FORMAT "\"}}",
                                  task->id);
        }
      if (task->complete != PTO_TRACE_NEVER)
        {
          begin (writer, 'i', PID_CONTROL, TID_SCHEDULER + task->scheduler, task->complete);
          g_string_append_printf (writer->text,
                                  ",\"s\":\"t\",\"name\":\"complete\",\"cat\":\"scheduler\","
                                  "\"args\":{\"task\":\"%" G_GUINT64_FORMAT "\"}}",
                                  task->id);
        }
    }
}

/* What the edge keeps apart; a question mark where an overlap was assumed, not proved. */
static void
append_hazards (Writer *writer, guint32 kinds)
{
  static const char *const names[] = { "RAW", "WAW", "WAR" };
  const char *separator = "";

  g_string_append (writer->text, ",\"name\":\"");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if ((kinds & 1u << i) != 0)
      {
        g_string_append_printf (writer->text, "%s%s", separator, names[i]);
        separator = "+";
      }
  g_string_append (writer->text, (kinds & PTO_HAZARD_UNSURE) != 0 ? "?\"" : "\"");
}

/* One arrow for an edge. It leaves the producer's slice one ns before its end: at the end itself
 * the slice is closed already and the arrow would hang on nothing. */
static void
append_flows (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;
  guint64 id = 0;

  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceTask *task = &analysis->tasks[i];

      if (task->core == PTO_TRACE_NOWHERE)
        continue;
      for (guint k = 0; k < task->n_deps; k++)
        {
          const PtoTraceDep *dep = &analysis->deps[task->first_dep + k];
          const PtoTraceTask *producer;

          if (dep->producer_index == PTO_TRACE_NOWHERE)
            continue;
          producer = &analysis->tasks[dep->producer_index];
          if (producer->core == PTO_TRACE_NOWHERE)
            continue;
          id++;
          begin (writer, 's', core_pid (writer, producer->core), TID_CORE + producer->core,
                 producer->end > producer->start ? producer->end - 1 : producer->start);
          g_string_append_printf (writer->text, ",\"id\":%" G_GUINT64_FORMAT ",\"cat\":\"dep\"",
                                  id);
          append_hazards (writer, dep->kinds);
          g_string_append_c (writer->text, '}');
          begin (writer, 'f', core_pid (writer, task->core), TID_CORE + task->core, task->start);
          g_string_append_printf (writer->text,
                                  ",\"id\":%" G_GUINT64_FORMAT ",\"bp\":\"e\",\"cat\":\"dep\"", id);
          append_hazards (writer, dep->kinds);
          g_string_append_c (writer->text, '}');
        }
    }
}

static void
append_counter (Writer *writer, const char *name, const char *key, const GArray *steps)
{
  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);

      begin (writer, 'C', PID_CONTROL, 0, step->time);
      g_string_append_printf (writer->text, ",\"name\":\"%s\",\"args\":{\"%s\":%u}}", name, key,
                              step->value);
    }
}

/**
 * pto_trace_to_json:
 * @self: a trace
 *
 * Writes the trace in the Trace Event format, which ui.perfetto.dev opens.
 *
 * There is a row for each control thread and each core. A run of a kernel is a slice whose
 * arguments name the task, its ring, the tasks it waited for and the times of its life; arrows are
 * dependencies, named by what they order (RAW, WAW, WAR, with a question mark where an overlap was
 * assumed, not proved); counters show ready tasks, live tasks of each ring and open scopes. Times
 * are microseconds with three decimals; ids of tasks are strings, because a JavaScript number does
 * not hold them. The text depends on nothing but the records.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): one JSON object
 */
char *
pto_trace_to_json (PtoTrace *self)
{
  Writer writer;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  writer = (Writer){ self, pto_trace_get_analysis (self), g_string_new (NULL),
                     g_ptr_array_new_with_free_func (g_free), TRUE };
  for (guint i = 0; i < self->n_kernel_names; i++)
    {
      GString *quoted = g_string_new (NULL);

      append_quoted (quoted, self->kernel_names[i]);
      g_ptr_array_add (writer.names, g_string_free (quoted, FALSE));
    }

  g_string_append (writer.text, "{\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"title\":");
  append_quoted (writer.text, self->title);
  g_string_append_printf (writer.text,
                          ",\"clock\":\"%s\",\"recorded\":%" G_GUINT64_FORMAT
                          ",\"dropped\":%" G_GUINT64_FORMAT
                          ",\"tasks\":%u,\"edges\":%u,\"sha256\":\"%s\"},\n\"traceEvents\":[",
                          self->topology.virtual_clock ? "virtual" : "wall",
                          pto_trace_get_recorded (self), self->dropped, writer.analysis->n_tasks,
                          writer.analysis->n_deps, pto_trace_get_sha256 (self));
  append_rows (&writer);
  append_orchestrator (&writer);
  append_schedulers (&writer);
  append_runs (&writer);
  append_flows (&writer);
  append_counter (&writer, "ready AIC tasks", "tasks", writer.analysis->ready[PTO_CORE_TYPE_AIC]);
  append_counter (&writer, "ready AIV tasks", "tasks", writer.analysis->ready[PTO_CORE_TYPE_AIV]);
  for (guint r = 0; r < writer.analysis->rings; r++)
    {
      g_autofree char *name = g_strdup_printf ("live tasks, ring %u", r);

      append_counter (&writer, name, "tasks", writer.analysis->live[r]);
    }
  append_counter (&writer, "open scopes", "scopes", writer.analysis->depth);
  g_string_append (writer.text, "\n]}\n");

  g_ptr_array_unref (writer.names);
  return g_string_free (writer.text, FALSE);
}
