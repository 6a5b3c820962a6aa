/* trace-event-json.c: how does ui.perfetto.dev see a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Trace Event format, object form. All runs of a worker below a level have one set of rows, on the
 * clock of the outermost. Written by hand, not through a tree: a run of 100 000 tasks is 100 MB of
 * text, and its order must be the same every time. Numbers of threads are unique over all
 * processes.
 */
#include "config.h"

#include "tracks.h"

/* What a worker's rows have. */
typedef struct
{
  gboolean is_named;
  gboolean has_stalls;
  GHashTable *tensors; /* children that have a row for those */
} Rows;

typedef struct
{
  const PtoTracePart *part;
  PtoTrace *trace; /* the part's, as what follows */
  const PtoTraceAnalysis *analysis;
  Rows *rows;
  GPtrArray *names; /* of kernels, quoted for JSON */
  GString *text;
  guint64 n_flows;
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

static guint
number_pid (const Writer *writer, guint pid)
{
  return pid + writer->part->worker * PID_STRIDE;
}

/* 0 is a whole process. */
static guint
number_tid (const Writer *writer, guint tid)
{
  return tid > 0 ? tid + writer->part->worker * TID_STRIDE : 0;
}

/* Starts an event: {"ph":"X","pid":..,"tid":..,"ts":.. and leaves it open. */
static void
begin (Writer *writer, char phase, guint pid, guint tid, guint64 time)
{
  g_string_append (writer->text, writer->first ? "\n" : ",\n");
  writer->first = FALSE;
  g_string_append_printf (writer->text, "{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":", phase,
                          number_pid (writer, pid), number_tid (writer, tid));
  pto_trace_append_us (writer->text, pto_trace_part_time (writer->part, time));
}

static void
append_duration (Writer *writer, guint64 from, guint64 to)
{
  g_string_append (writer->text, ",\"dur\":");
  pto_trace_append_us (writer->text, pto_trace_part_time (writer->part, to)
                                         - pto_trace_part_time (writer->part, from));
}

/* An argument that is a time; nothing when it was not recorded. */
static void
append_time (Writer *writer, const char *key, guint64 time)
{
  if (time == PTO_TRACE_NEVER)
    return;
  g_string_append_printf (writer->text, ",\"%s\":", key);
  pto_trace_append_us (writer->text, pto_trace_part_time (writer->part, time));
}

static void
append_metadata (Writer *writer, const char *what, guint pid, guint tid, const char *name,
                 guint order)
{
  pid = number_pid (writer, pid);
  tid = number_tid (writer, tid);
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
append_stall_row (Writer *writer)
{
  if (writer->rows->has_stalls || writer->analysis->stalls->len == 0)
    return;
  writer->rows->has_stalls = TRUE;
  append_metadata (writer, "thread", PID_CONTROL, TID_STALLS, "orchestrator: stalls", 1);
}

/* Once for each worker. */
static void
append_rows (Writer *writer)
{
  PtoTrace *trace = writer->trace;
  guint first = writer->part->worker * PID_STRIDE;
  g_autofree char *control = NULL;
  guint last = G_MAXUINT;

  if (writer->rows->is_named)
    {
      append_stall_row (writer);
      return;
    }
  writer->rows->is_named = TRUE;
  control = pto_track_dup_control_name (writer->part);
  append_metadata (writer, "process", PID_CONTROL, 0, control, first);
  append_metadata (writer, "thread", PID_CONTROL, TID_ORCHESTRATOR, "orchestrator", 0);
  append_stall_row (writer);
  for (guint s = 0; s < trace->topology.n_schedulers; s++)
    {
      g_autofree char *name = g_strdup_printf ("scheduler %u", s);

      append_metadata (writer, "thread", PID_CONTROL, TID_SCHEDULER + s, name, 2 + s);
    }
  for (guint c = 0; c < trace->topology.n_cores; c++)
    {
      g_autofree char *name = pto_trace_dup_core_name (trace, c);
      guint cluster, type;

      pto_trace_locate_core (trace, c, &cluster, &type);
      if (pto_trace_is_level (trace))
        {
          append_metadata (writer, "thread", PID_CONTROL, TID_CORE + c, name,
                           2 + trace->topology.n_schedulers + c);
          continue;
        }
      if (cluster != last)
        {
          g_autofree char *title = pto_track_dup_cluster_name (writer->part, cluster);

          append_metadata (writer, "process", PID_CLUSTER + cluster, 0, title, first + 1 + cluster);
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
  else
    append_quoted (writer->text, pto_trace_get_kernel_name (writer->trace, kernel));
}

/* "1:3", as pictures name it. */
static void
append_label (Writer *writer, guint64 id)
{
  g_string_append_c (writer->text, '"');
  pto_trace_append_task_label (writer->text, id);
  g_string_append_c (writer->text, '"');
}

/* Appends the arguments of a task, if the trace level has them. */
static void
append_arguments (Writer *writer, const PtoTraceEntry *task)
{
  g_autoptr (GString) text = NULL;

  if (task->n_args == 0)
    return;
  text = g_string_new (NULL);
  g_string_append (writer->text, ",\"arguments\":[");
  for (guint i = 0; i < task->n_args; i++)
    {
      pto_trace_print_argument (text, &writer->analysis->args[task->first_arg + i]);
      g_string_append_printf (writer->text, "%s\"%s\"", i > 0 ? "," : "", text->str);
    }
  g_string_append_c (writer->text, ']');
}

/* The arguments that say who a task is and who it waited for. Leaves the object open. */
static void
append_task (Writer *writer, const PtoTraceEntry *task)
{
  g_string_append (writer->text, ",\"args\":{\"task\":");
  append_label (writer, task->id);
  g_string_append_printf (writer->text, ",\"ring\":%u,\"kernel\":", PTO_TASK_RING (task->id));
  append_kernel (writer, task->kernel);
  if (task->terms.priority > 0)
    g_string_append_printf (writer->text, ",\"priority\":%u", task->terms.priority);
  g_string_append (writer->text, ",\"waited_for\":[");
  for (guint k = 0; k < task->n_deps; k++)
    {
      g_string_append (writer->text, k > 0 ? "," : "");
      append_label (writer, writer->analysis->deps[task->first_dep + k].producer);
    }
  g_string_append_c (writer->text, ']');
  append_arguments (writer, task);
}

static void
append_runs (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  for (guint c = 0; c < analysis->n_cores; c++)
    for (guint i = 0; i < analysis->n_core_runs[c]; i++)
      {
        const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[c][i]];

        begin (writer, 'X', pto_track_get_pid (writer->trace, c), TID_CORE + c, task->start);
        append_duration (writer, task->start, task->end);
        g_string_append (writer->text, ",\"name\":");
        append_kernel (writer, task->kernel);
        g_string_append (writer->text, pto_trace_is_level (writer->trace) ? ",\"cat\":\"task\""
                                                                          : ",\"cat\":\"kernel\"");
        append_task (writer, task);
        if (task->block != PTO_TRACE_NOWHERE)
          g_string_append_printf (writer->text, ",\"block\":%u", task->block);
        if (task->waited > 0)
          append_time (writer, "waited_us", task->waited);
        append_time (writer, "submit_us", task->submit);
        append_time (writer, "ready_us", task->ready);
        append_time (writer, "dispatch_us", task->dispatch);
        append_time (writer, "complete_us", task->complete);
        append_time (writer, "retire_us", task->retire);
        g_string_append_printf (writer->text, ",\"critical\":%s,\"failed\":%s}}",
                                task->critical ? "true" : "false", task->failed ? "true" : "false");
      }
}

/* On a row of its own: it may overlap with what runs. */
static void
append_transfers (Writer *writer)
{
  PtoTrace *trace = writer->trace;

  for (guint c = 0; writer->analysis->transfers->len > 0 && c < writer->analysis->n_cores; c++)
    {
      g_autoptr (GPtrArray) list = pto_trace_list_transfers (writer->analysis, c);

      if (list->len > 0 && g_hash_table_add (writer->rows->tensors, GUINT_TO_POINTER (c)))
        {
          g_autofree char *core = pto_trace_dup_core_name (trace, c);
          g_autofree char *name = g_strdup_printf ("%s: tensors", core);

          append_metadata (writer, "thread", PID_CONTROL, TID_TENSORS + c, name,
                           2 + trace->topology.n_schedulers + trace->topology.n_cores + c);
        }
      for (guint i = 0; i < list->len; i++)
        {
          const PtoTraceTransfer *transfer = g_ptr_array_index (list, i);

          begin (writer, 'X', PID_CONTROL, TID_TENSORS + c, transfer->start);
          append_duration (writer, transfer->start, transfer->end);
          g_string_append_printf (writer->text,
                                  ",\"name\":\"%s\",\"cat\":\"transfer\",\"args\":{\"bytes\":"
                                  "%" G_GUINT64_FORMAT,
                                  pto_trace_get_way (transfer), transfer->bytes);
          if (!transfer->is_back)
            g_string_append_printf (writer->text, ",\"saved\":%" G_GUINT64_FORMAT, transfer->saved);
          if (transfer->task != PTO_TASK_NONE)
            {
              g_string_append (writer->text, ",\"task\":");
              append_label (writer, transfer->task);
            }
          g_string_append (writer->text, "}}");
        }
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
      append_duration (writer, scope->start, scope->end);
      g_string_append_printf (writer->text,
                              ",\"name\":\"scope\",\"cat\":\"scope\",\"args\":{\"depth\":%u}}",
                              scope->what);
    }
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->submit == PTO_TRACE_NEVER)
        continue;
      begin (writer, 'X', PID_CONTROL, TID_ORCHESTRATOR, task->submit);
      append_duration (writer, task->submit, MAX (task->submit_end, task->submit));
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
      append_duration (writer, stall->start, stall->end);
      g_string_append_printf (writer->text,
                              ",\"name\":\"wait for %s\",\"cat\":\"stall\",\"args\":{\"ring\":%u}}",
                              name, stall->what & 0xff);
    }
}

static void
append_instant (Writer *writer, const PtoTraceEntry *task, guint64 time, const char *name)
{
  begin (writer, 'i', PID_CONTROL, TID_SCHEDULER + task->scheduler, time);
  g_string_append_printf (
      writer->text, ",\"s\":\"t\",\"name\":\"%s\",\"cat\":\"scheduler\",\"args\":{\"task\":", name);
  append_label (writer, task->id);
  g_string_append (writer->text, "}}");
}

static void
append_schedulers (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  /* Tasks, and behind them parts of some. */
  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->scheduler == PTO_TRACE_NOWHERE)
        continue;
      if (task->dispatch != PTO_TRACE_NEVER && !pto_trace_entry_shares_dispatch (analysis, task))
        append_instant (writer, task, task->dispatch, "dispatch");
      if (task->complete != PTO_TRACE_NEVER && i < analysis->n_tasks)
        append_instant (writer, task, task->complete, "complete");
    }
}

/* What the edge keeps apart, or that it was asked for; a question mark where an overlap was
 * assumed, not proved. */
static void
append_hazards (Writer *writer, guint32 kinds)
{
  static const struct
  {
    guint32 kind;
    const char *name;
  } names[] = { { PTO_HAZARD_RAW, "RAW" },
                { PTO_HAZARD_WAW, "WAW" },
                { PTO_HAZARD_WAR, "WAR" },
                { PTO_HAZARD_EXPLICIT, "explicit" } };
  const char *separator = "";

  g_string_append (writer->text, ",\"name\":\"");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if ((kinds & names[i].kind) != 0)
      {
        g_string_append_printf (writer->text, "%s%s", separator, names[i].name);
        separator = "+";
      }
  g_string_append (writer->text, (kinds & PTO_HAZARD_UNSURE) != 0 ? "?\"" : "\"");
}

/* One end of an arrow. */
static void
append_flow (Writer *writer, char phase, const PtoTraceEntry *task, guint64 time, guint32 kinds)
{
  begin (writer, phase, pto_track_get_pid (writer->trace, task->core), TID_CORE + task->core, time);
  g_string_append_printf (writer->text, ",\"id\":%" G_GUINT64_FORMAT "%s,\"cat\":\"dep\"",
                          writer->n_flows, phase == 'f' ? ",\"bp\":\"e\"" : "");
  append_hazards (writer, kinds);
  g_string_append_c (writer->text, '}');
}

/* One arrow for an edge. It leaves the producer's slice one ns before its end: at the end itself
 * the slice is closed already and the arrow would hang on nothing. */
static void
append_flows (Writer *writer)
{
  const PtoTraceAnalysis *analysis = writer->analysis;

  for (guint i = 0; i < analysis->n_deps; i++)
    {
      const PtoTraceDep *dep = &analysis->deps[i];
      const PtoTraceEntry *task = &analysis->tasks[dep->consumer];
      const PtoTraceEntry *producer;

      if (task->core == PTO_TRACE_NOWHERE || dep->producer_index == PTO_TRACE_NOWHERE)
        continue;
      producer = &analysis->tasks[dep->producer_index];
      if (producer->core == PTO_TRACE_NOWHERE)
        continue;
      writer->n_flows++;
      append_flow (writer, 's', producer,
                   producer->end > producer->start ? producer->end - 1 : producer->start,
                   dep->kinds);
      append_flow (writer, 'f', task, task->start, dep->kinds);
    }
}

static void
append_counter (gpointer data, const char *name, const char *unit, const GArray *steps)
{
  Writer *writer = data;

  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);

      begin (writer, 'C', PID_CONTROL, 0, step->time);
      g_string_append_printf (writer->text,
                              ",\"name\":\"%s\",\"args\":{\"%s\":%" G_GUINT64_FORMAT "}}", name,
                              unit, step->value);
    }
}

static void
rows_free (gpointer data)
{
  Rows *rows = data;

  g_hash_table_unref (rows->tensors);
  g_free (rows);
}

/* all_rows: by the number of a worker. */
static void
append_part (Writer *writer, const PtoTracePart *part, GPtrArray *all_rows)
{
  if (part->worker == all_rows->len)
    {
      Rows *rows = g_new0 (Rows, 1);

      rows->tensors = g_hash_table_new (NULL, NULL);
      g_ptr_array_add (all_rows, rows);
    }
  writer->part = part;
  writer->trace = part->trace;
  writer->analysis = part->analysis;
  writer->rows = g_ptr_array_index (all_rows, part->worker);
  writer->names = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < part->trace->n_kernel_names; i++)
    {
      GString *quoted = g_string_new (NULL);

      append_quoted (quoted, part->trace->kernel_names[i]);
      g_ptr_array_add (writer->names, g_string_free (quoted, FALSE));
    }
  append_rows (writer);
  append_orchestrator (writer);
  append_schedulers (writer);
  append_runs (writer);
  append_transfers (writer);
  append_flows (writer);
  pto_track_each_counter (part->trace, append_counter, writer);
  g_ptr_array_unref (writer->names);
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
 * assumed, not proved; explicit: the submit named the producer); counters show ready tasks, live
 * tasks of each ring and open scopes. A run of trace level 4 also has the arguments of each task,
 * and counters of what each ring's heap and dependency pool and the TensorMap held. What of tensors
 * travelled to a worker that shares no memory with the run, and back, is on a row of its own,
 * `L3/0: tensors`, with bytes and task, and summed up by counters. Of a worker of level 3 or up
 * there is a row for each child, and below them those of each worker that did something inside of
 * its tasks, at the time that it did it; where a chip has a virtual clock, its times are stretched
 * over the run that it took. Times are microseconds with three decimals; a task is named as in
 * [method@Pto.Trace.to_svg] and for [method@Pto.Trace.explain], `17`, or `1:17` of ring 1. The text
 * depends on nothing but the records.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): one JSON object
 *
 * Since: 0.1
 */
char *
pto_trace_to_json (PtoTrace *self)
{
  g_autoptr (GPtrArray) all_rows = g_ptr_array_new_with_free_func (rows_free);
  const GPtrArray *parts;
  Writer writer = { .first = TRUE };

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  parts = pto_trace_get_parts (self);
  writer.text = g_string_new (NULL);
  g_string_append (writer.text, "{\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"title\":");
  append_quoted (writer.text, self->title);
  g_string_append_printf (
      writer.text,
      ",\"clock\":\"%s\",\"recorded\":%" G_GUINT64_FORMAT ",\"dropped\":%" G_GUINT64_FORMAT
      ",\"tasks\":%u,\"edges\":%u,\"sha256\":\"%s\"},\n\"traceEvents\":[",
      self->topology.virtual_clock ? "virtual" : "wall", pto_trace_get_recorded (self),
      self->dropped, pto_trace_get_analysis (self)->n_tasks, pto_trace_get_analysis (self)->n_deps,
      pto_trace_get_sha256 (self));
  for (guint i = 0; i < parts->len; i++)
    append_part (&writer, g_ptr_array_index (parts, i), all_rows);
  g_string_append (writer.text, "\n]}\n");
  return g_string_free (writer.text, FALSE);
}
