/* perfetto.c: how does ui.perfetto.dev see a trace, in its own format?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Messages of Protocol Buffers, as perfetto's repository describes them below
 * protos/perfetto/trace: a Trace is a list of TracePacket. The first says that nothing was before
 * it and names all strings that the others mean by number; then come the clock, the tracks, and the
 * events in the order of their times.
 */
#include "config.h"

#include "perfetto.h"

#include "common/save-file.h"

static const char *const categories[N_CATEGORIES]
    = { "run", "submit", "scope", "stall", "scheduler", "trace", "transfer" };

static const char *const keys[N_KEYS]
    = { "task",      "ring",      "waited_for", "submitted_at", "arguments", "block",
        "waited_ns", "submit_ns", "ready_ns",   "dispatch_ns",  "ack_ns",    "complete_ns",
        "retire_ns", "critical",  "failed",     "depth",        "opened_at", "title",
        "clock",     "recorded",  "dropped",    "tasks",        "edges",     "sha256",
        "priority",  "bytes",     "saved" };

/* --- annotations --- */

/* field: ANNOTATION_, of what its value is. */
static void
put_annotation (PtoProto *proto, Key key, guint field, guint64 value)
{
  gsize annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);

  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + key);
  pto_proto_put_uint (proto, field, value);
  pto_proto_end (proto, annotation);
}

static void
put_uint (PtoProto *proto, Key key, guint64 value)
{
  put_annotation (proto, key, ANNOTATION_UINT_VALUE, value);
}

static void
put_bool (PtoProto *proto, Key key, gboolean value)
{
  put_annotation (proto, key, ANNOTATION_BOOL_VALUE, value != FALSE);
}

static void
put_string (PtoProto *proto, Key key, guint64 iid)
{
  put_annotation (proto, key, ANNOTATION_STRING_VALUE_IID, iid);
}

/* "1:3", as pictures name a task; in an annotation, or a value of one. */
static void
put_label (PtoProto *proto, guint64 id)
{
  g_autofree char *label = pto_trace_dup_task_label (id);

  pto_proto_put_string (proto, ANNOTATION_STRING_VALUE, label);
}

static void
put_task_label (PtoProto *proto, guint64 id)
{
  gsize annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);

  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + KEY_TASK);
  put_label (proto, id);
  pto_proto_end (proto, annotation);
}

/* Left out where nobody recorded it. */
static void
put_time (Part *part, PtoProto *proto, Key key, guint64 time)
{
  if (time != PTO_TRACE_NEVER)
    put_uint (proto, key, pto_trace_part_time (part->of, time));
}

static void
put_producers (Part *part, PtoProto *proto, const PtoTraceEntry *task)
{
  gsize annotation;

  if (task->n_deps == 0)
    return;
  annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);
  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + KEY_WAITED_FOR);
  for (guint k = 0; k < task->n_deps; k++)
    {
      gsize value = pto_proto_begin (proto, ANNOTATION_ARRAY_VALUES);

      put_label (proto, part->analysis->deps[task->first_dep + k].producer);
      pto_proto_end (proto, value);
    }
  pto_proto_end (proto, annotation);
}

static void
put_arguments (Part *part, PtoProto *proto, const PtoTraceEntry *task)
{
  g_autoptr (GString) text = NULL;
  gsize annotation;

  if (task->n_args == 0)
    return;
  text = g_string_new (NULL);
  annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);
  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + KEY_ARGUMENTS);
  for (guint i = 0; i < task->n_args; i++)
    {
      gsize value = pto_proto_begin (proto, ANNOTATION_ARRAY_VALUES);

      pto_trace_print_argument (text, &part->analysis->args[task->first_arg + i]);
      pto_proto_put_uint (proto, ANNOTATION_STRING_VALUE_IID,
                          pto_perfetto_intern (&part->output->strings, text->str));
      pto_proto_end (proto, value);
    }
  pto_proto_end (proto, annotation);
}

/* --- what happened --- */

static void
put_task (Part *part, PtoProto *proto, const PtoTraceEntry *task)
{
  put_task_label (proto, task->id);
  put_uint (proto, KEY_RING, PTO_TASK_RING (task->id));
  if (task->terms.priority > 0)
    put_uint (proto, KEY_PRIORITY, task->terms.priority);
  put_producers (part, proto, task);
  if (task->file != PTO_TRACE_NOWHERE)
    put_string (proto, KEY_SUBMITTED_AT, pto_perfetto_intern_place (part, task->file, task->line));
}

/* Where both of an edge are, if the first begins before the second, as its arrow is drawn. */
static gboolean
has_flow (const Part *part, const PtoTraceDep *dep)
{
  const PtoTraceEntry *tasks = part->analysis->tasks;
  guint32 from = dep->producer_index;
  guint32 to = dep->consumer;

  if (from == PTO_TRACE_NOWHERE || tasks[from].core == PTO_TRACE_NOWHERE
      || tasks[to].core == PTO_TRACE_NOWHERE)
    return FALSE;
  if (part->starts[from] != part->starts[to])
    return part->starts[from] < part->starts[to];
  /* Both at once: the producer has no length. */
  return part->ends[from] == part->starts[from] && (part->ends[to] > part->starts[to] || from < to);
}

static void
put_flows (Part *part, PtoProto *proto, guint32 position)
{
  const PtoTraceEntry *task = &part->analysis->tasks[position];

  if (position >= part->analysis->n_tasks)
    return;
  for (guint32 i = part->first_out[position]; i < part->first_out[position + 1]; i++)
    pto_proto_put_fixed64 (proto, EVENT_FLOW_IDS, part->output->n_flows + 1 + part->outgoing[i]);
  for (guint k = 0; k < task->n_deps; k++)
    if (has_flow (part, &part->analysis->deps[task->first_dep + k]))
      pto_proto_put_fixed64 (proto, EVENT_TERMINATING_FLOW_IDS,
                             part->output->n_flows + 1 + task->first_dep + k);
}

/* Edges by producer. */
static void
sort_flows (Part *part)
{
  const PtoTraceAnalysis *analysis = part->analysis;

  part->first_out = g_new0 (guint32, (gsize) analysis->n_tasks + 2);
  part->outgoing = g_new (guint32, MAX (analysis->n_deps, 1));
  for (guint i = 0; i < analysis->n_deps; i++)
    if (has_flow (part, &analysis->deps[i]))
      part->first_out[analysis->deps[i].producer_index + 2]++;
  for (guint i = 2; i <= analysis->n_tasks; i++)
    part->first_out[i] += part->first_out[i - 1];
  for (guint i = 0; i < analysis->n_deps; i++)
    if (has_flow (part, &analysis->deps[i]))
      part->outgoing[part->first_out[analysis->deps[i].producer_index + 1]++] = i;
}

/* By begin, what lasts longer first. */
static gint
compare_starts (gconstpointer a, gconstpointer b, gpointer data)
{
  const Part *part = data;
  guint32 x = *(const guint32 *) a;
  guint32 y = *(const guint32 *) b;

  return 4 * pto_trace_order (part->starts[x], part->starts[y])
         + 2 * pto_trace_order (part->ends[y], part->ends[x]) + pto_trace_order (x, y);
}

static void
put_run (Part *part, guint32 position)
{
  Output *output = part->output;
  PtoProto *proto = &output->packets;
  const PtoTraceEntry *task = &part->analysis->tasks[position];
  Row *row = g_ptr_array_index (part->rows->cores, task->core);
  guint64 start = part->starts[position];
  guint64 end = part->ends[position];
  OpenEvent event = pto_perfetto_begin_slice (output, row, start, end);

  pto_perfetto_name_event (output, CATEGORY_RUN, pto_perfetto_intern_kernel (part, task->kernel));
  put_flows (part, proto, position);
  put_task (part, proto, task);
  if (task->block != PTO_TRACE_NOWHERE)
    put_uint (proto, KEY_BLOCK, task->block);
  if (task->waited > 0)
    put_uint (proto, KEY_WAITED_NS, task->waited);
  put_time (part, proto, KEY_SUBMIT_NS, task->submit);
  put_time (part, proto, KEY_READY_NS, task->ready);
  put_time (part, proto, KEY_DISPATCH_NS, task->dispatch);
  put_time (part, proto, KEY_ACK_NS, task->ack);
  put_time (part, proto, KEY_COMPLETE_NS, task->complete);
  put_time (part, proto, KEY_RETIRE_NS, task->retire);
  put_bool (proto, KEY_CRITICAL, task->critical);
  put_bool (proto, KEY_FAILED, task->failed);
  put_arguments (part, proto, task);
  pto_perfetto_end_slice (output, event, start, end);
}

static void
put_runs (Part *part)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  g_autofree guint32 *runs = g_new (guint32, MAX (analysis->n_entries, 1));
  guint n = 0;

  part->starts = g_new (guint64, MAX (analysis->n_entries, 1));
  part->ends = g_new (guint64, MAX (analysis->n_entries, 1));
  for (guint i = 0; i < analysis->n_entries; i++)
    {
      part->starts[i] = pto_trace_part_time (part->of, analysis->tasks[i].start);
      part->ends[i] = pto_trace_part_time (part->of, analysis->tasks[i].end);
      if (analysis->tasks[i].core != PTO_TRACE_NOWHERE)
        runs[n++] = i;
    }
  sort_flows (part);
  g_qsort_with_data (runs, (gint) n, sizeof *runs, compare_starts, part);
  for (guint i = 0; i < n; i++)
    put_run (part, runs[i]);
  part->output->n_flows += analysis->n_deps;
  g_free (part->starts);
  g_free (part->ends);
  g_free (part->first_out);
  g_free (part->outgoing);
}

static void
put_scope (Part *part, const PtoTraceSpan *scope)
{
  Output *output = part->output;
  guint64 start = pto_trace_part_time (part->of, scope->start);
  guint64 end = pto_trace_part_time (part->of, scope->end);
  OpenEvent event = pto_perfetto_begin_slice (output, part->rows->orchestrator, start, end);

  pto_perfetto_name_event (output, CATEGORY_SCOPE, pto_perfetto_intern (&output->names, "scope"));
  put_uint (&output->packets, KEY_DEPTH, scope->what);
  if (scope->file != PTO_TRACE_NOWHERE)
    put_string (&output->packets, KEY_OPENED_AT,
                pto_perfetto_intern_place (part, scope->file, scope->line));
  pto_perfetto_end_slice (output, event, start, end);
}

static void
put_submit (Part *part, const PtoTraceEntry *task)
{
  Output *output = part->output;
  guint64 start = pto_trace_part_time (part->of, task->submit);
  guint64 end = pto_trace_part_time (part->of, MAX (task->submit_end, task->submit));
  OpenEvent event = pto_perfetto_begin_slice (output, part->rows->orchestrator, start, end);

  pto_perfetto_name_event (output, CATEGORY_SUBMIT,
                           pto_perfetto_intern_kernel (part, task->kernel));
  put_task (part, &output->packets, task);
  put_arguments (part, &output->packets, task);
  pto_perfetto_end_slice (output, event, start, end);
}

static gint
compare_submits (gconstpointer a, gconstpointer b, gpointer data)
{
  const PtoTraceEntry *tasks = data;
  guint32 x = *(const guint32 *) a;
  guint32 y = *(const guint32 *) b;

  return 2 * pto_trace_order (tasks[x].submit, tasks[y].submit) + pto_trace_order (x, y);
}

/* Scopes, and in them submits. */
static void
put_orchestrator (Part *part)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  g_autofree guint32 *submits = g_new (guint32, MAX (analysis->n_tasks, 1));
  guint n = 0;
  guint s = 0;

  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].submit != PTO_TRACE_NEVER)
      submits[n++] = i;
  g_qsort_with_data (submits, (gint) n, sizeof *submits, compare_submits, analysis->tasks);
  for (guint i = 0; i < n; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[submits[i]];

      for (; s < analysis->scopes->len
             && g_array_index (analysis->scopes, PtoTraceSpan, s).start <= task->submit;
           s++)
        put_scope (part, &g_array_index (analysis->scopes, PtoTraceSpan, s));
      put_submit (part, task);
    }
  for (; s < analysis->scopes->len; s++)
    put_scope (part, &g_array_index (analysis->scopes, PtoTraceSpan, s));
}

static void
put_stalls (Part *part)
{
  Output *output = part->output;

  if (part->analysis->stalls->len > 0 && part->rows->stalls == NULL)
    part->rows->stalls = pto_perfetto_add_control_row (part, TID_STALLS, "orchestrator: stalls");
  for (guint i = 0; i < part->analysis->stalls->len; i++)
    {
      const PtoTraceSpan *stall = &g_array_index (part->analysis->stalls, PtoTraceSpan, i);
      g_autofree char *what = pto_trace_dup_stall_name (stall->what);
      g_autofree char *name = g_strdup_printf ("wait for %s", what);
      guint64 start = pto_trace_part_time (part->of, stall->start);
      guint64 end = pto_trace_part_time (part->of, stall->end);
      OpenEvent event = pto_perfetto_begin_slice (output, part->rows->stalls, start, end);

      pto_perfetto_name_event (output, CATEGORY_STALL, pto_perfetto_intern (&output->names, name));
      put_uint (&output->packets, KEY_RING, stall->what & 0xff);
      pto_perfetto_end_slice (output, event, start, end);
    }
}

static void
put_instant (Part *part, guint scheduler, guint64 time, const char *name, guint64 task)
{
  Output *output = part->output;
  const Row *row = g_ptr_array_index (part->rows->schedulers, scheduler);
  const Lane *lane = g_ptr_array_index (row->lanes, 0);
  OpenEvent event = pto_perfetto_begin_event (output, pto_trace_part_time (part->of, time),
                                              ORDER_BETWEEN, TYPE_INSTANT, lane->uuid);

  pto_perfetto_name_event (output, CATEGORY_SCHEDULER, pto_perfetto_intern (&output->names, name));
  put_task_label (&output->packets, task);
  pto_perfetto_end_event (output, event);
}

static void
put_schedulers (Part *part)
{
  const PtoTraceAnalysis *analysis = part->analysis;

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      if (task->scheduler == PTO_TRACE_NOWHERE)
        continue;
      if (task->dispatch != PTO_TRACE_NEVER && !pto_trace_entry_shares_dispatch (analysis, task))
        put_instant (part, task->scheduler, task->dispatch, "dispatch", task->id);
      if (task->complete != PTO_TRACE_NEVER && i < analysis->n_tasks)
        put_instant (part, task->scheduler, task->complete, "complete", task->id);
    }
}

static void
put_counter (gpointer data, const char *name, const char *unit, const GArray *steps)
{
  Part *part = data;
  guint64 track;

  if (steps->len == 0)
    return;
  track = pto_perfetto_get_counter (part, name,
                                    g_str_equal (unit, "bytes") ? UNIT_SIZE_BYTES : UNIT_COUNT);
  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);
      OpenEvent event
          = pto_perfetto_begin_event (part->output, pto_trace_part_time (part->of, step->time),
                                      ORDER_BETWEEN, TYPE_COUNTER, track);

      pto_proto_put_uint (&part->output->packets, EVENT_COUNTER_VALUE, step->value);
      pto_perfetto_end_event (part->output, event);
    }
}

/* How many cores of a type run something. */
static void
put_busy (Part *part, guint core_type)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  g_autofree char *name
      = g_strdup_printf ("busy %s", pto_trace_get_type_name (part->trace, core_type, 2));
  GArray *changes = pto_trace_changes_new ();
  g_autoptr (GArray) steps = NULL;

  for (guint c = 0; c < analysis->n_cores; c++)
    {
      guint cluster, type;

      pto_trace_locate_core (part->trace, c, &cluster, &type);
      for (guint i = 0; type == core_type && i < analysis->n_core_runs[c]; i++)
        {
          const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[c][i]];

          pto_trace_add_change (changes, task->start, 1);
          pto_trace_add_change (changes, task->end, -1);
        }
    }
  steps = pto_trace_integrate (changes);
  /* A first run of no time is none. */
  if (steps->len > 0 && g_array_index (steps, PtoTraceStep, 0).value == 0)
    g_array_remove_index (steps, 0);
  put_counter (part, name, "cores", steps);
}

static Row *
find_tensor_row (Part *part, guint core)
{
  Row *row = g_hash_table_lookup (part->rows->tensors, GUINT_TO_POINTER (core));

  if (row == NULL)
    {
      g_autofree char *child = pto_trace_dup_core_name (part->trace, core);
      g_autofree char *name = g_strdup_printf ("%s: tensors", child);

      row = pto_perfetto_add_control_row (part, TID_TENSORS + core, name);
      g_hash_table_insert (part->rows->tensors, GUINT_TO_POINTER (core), row);
    }
  return row;
}

static void
put_transfer (Part *part, const PtoTraceTransfer *transfer)
{
  Output *output = part->output;
  PtoProto *proto = &output->packets;
  Row *row = find_tensor_row (part, transfer->core);
  guint64 start = pto_trace_part_time (part->of, transfer->start);
  guint64 end = pto_trace_part_time (part->of, transfer->end);
  OpenEvent event = pto_perfetto_begin_slice (output, row, start, end);

  pto_perfetto_name_event (output, CATEGORY_TRANSFER,
                           pto_perfetto_intern (&output->names, pto_trace_get_way (transfer)));
  if (transfer->task != PTO_TASK_NONE)
    put_task_label (proto, transfer->task);
  put_uint (proto, KEY_BYTES, transfer->bytes);
  if (!transfer->is_back)
    put_uint (proto, KEY_SAVED, transfer->saved);
  pto_perfetto_end_slice (output, event, start, end);
}

static void
put_transfers (Part *part)
{
  for (guint c = 0; part->analysis->transfers->len > 0 && c < part->analysis->n_cores; c++)
    {
      g_autoptr (GPtrArray) list = pto_trace_list_transfers (part->analysis, c);

      for (guint i = 0; i < list->len; i++)
        put_transfer (part, g_ptr_array_index (list, i));
    }
}

/* --- all of it --- */

/* What the trace is, at its begin. */
static void
put_head (Part *part)
{
  Output *output = part->output;
  PtoProto *proto = &output->packets;
  PtoTrace *trace = part->trace;
  const Lane *lane = g_ptr_array_index (part->rows->orchestrator->lanes, 0);
  OpenEvent event = pto_perfetto_begin_event (output, 0, ORDER_BETWEEN, TYPE_INSTANT, lane->uuid);

  pto_perfetto_name_event (output, CATEGORY_TRACE, pto_perfetto_intern (&output->names, "trace"));
  put_string (proto, KEY_TITLE, pto_perfetto_intern (&output->strings, trace->title));
  put_string (
      proto, KEY_CLOCK,
      pto_perfetto_intern (&output->strings, trace->topology.virtual_clock ? "virtual" : "wall"));
  put_uint (proto, KEY_RECORDED, pto_trace_get_recorded (trace));
  put_uint (proto, KEY_DROPPED, pto_trace_get_dropped (trace));
  put_uint (proto, KEY_TASKS, pto_trace_get_n_tasks (trace));
  put_uint (proto, KEY_EDGES, pto_trace_get_n_edges (trace));
  put_string (proto, KEY_SHA256,
              pto_perfetto_intern (&output->strings, pto_trace_get_sha256 (trace)));
  pto_perfetto_end_event (output, event);
}

static void
put_part (Output *output, const PtoTracePart *of)
{
  Part part = { .output = output,
                .of = of,
                .trace = of->trace,
                .analysis = of->analysis,
                .kernels = g_hash_table_new (NULL, NULL),
                .places = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL) };

  pto_perfetto_find_rows (&part);
  if (of->parent == NULL)
    put_head (&part);
  put_orchestrator (&part);
  put_stalls (&part);
  put_schedulers (&part);
  put_runs (&part);
  put_transfers (&part);
  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    put_busy (&part, type);
  pto_track_each_counter (part.trace, put_counter, &part);
  g_hash_table_unref (part.kernels);
  g_hash_table_unref (part.places);
}

static void
put_names (PtoProto *proto, guint field, const char *const *names, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      gsize name = pto_proto_begin (proto, field);

      pto_proto_put_uint (proto, INTERNED_IID, 1 + i);
      pto_proto_put_string (proto, INTERNED_STRING, names[i]);
      pto_proto_end (proto, name);
    }
}

/* The first packet: nothing was before, and these are the names. */
static void
put_interned (PtoProto *proto, const Output *output)
{
  gsize packet = pto_proto_begin (proto, TRACE_PACKET);
  gsize interned;

  pto_proto_put_uint (proto, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  pto_proto_put_uint (proto, PACKET_SEQUENCE_FLAGS, SEQ_INCREMENTAL_STATE_CLEARED);
  pto_proto_put_uint (proto, PACKET_FIRST_PACKET_ON_SEQUENCE, TRUE);
  interned = pto_proto_begin (proto, PACKET_INTERNED_DATA);
  put_names (proto, INTERNED_EVENT_CATEGORIES, categories, N_CATEGORIES);
  put_names (proto, INTERNED_EVENT_NAMES, (const char *const *) output->names.strings->pdata,
             output->names.strings->len);
  put_names (proto, INTERNED_DEBUG_ANNOTATION_NAMES, keys, N_KEYS);
  put_names (proto, INTERNED_DEBUG_ANNOTATION_STRING_VALUES,
             (const char *const *) output->strings.strings->pdata, output->strings.strings->len);
  pto_proto_end (proto, interned);
  pto_proto_end (proto, packet);
}

/* Where time 0 of the trace lies on the clock that other traces of the machine have. */
static void
put_clock (PtoProto *proto, PtoTrace *trace)
{
  const guint64 clocks[][2]
      = { { CLOCK_IS_BOOTTIME, 0 },
          { CLOCK_IS_MONOTONIC,
            trace->topology.begin_ns + pto_trace_get_analysis (trace)->first } };
  gsize packet, snapshot;

  if (trace->topology.virtual_clock || trace->topology.begin_ns == 0)
    return;
  packet = pto_proto_begin (proto, TRACE_PACKET);
  pto_proto_put_uint (proto, PACKET_TIMESTAMP, 0);
  pto_proto_put_uint (proto, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  snapshot = pto_proto_begin (proto, PACKET_CLOCK_SNAPSHOT);
  for (guint i = 0; i < G_N_ELEMENTS (clocks); i++)
    {
      gsize clock = pto_proto_begin (proto, SNAPSHOT_CLOCKS);

      pto_proto_put_uint (proto, CLOCK_ID, clocks[i][0]);
      pto_proto_put_uint (proto, CLOCK_TIMESTAMP, clocks[i][1]);
      pto_proto_end (proto, clock);
    }
  pto_proto_end (proto, snapshot);
  pto_proto_end (proto, packet);
}

static gint
compare_events (gconstpointer a, gconstpointer b)
{
  const Event *x = a;
  const Event *y = b;

  return 2 * pto_trace_order (x->time, y->time) + pto_trace_order (x->order, y->order);
}

/**
 * pto_trace_to_perfetto:
 * @self: a trace
 *
 * Writes the trace in Perfetto's own format, TrackEvent messages of Protocol Buffers, which
 * ui.perfetto.dev and its trace processor open.
 *
 * There is a track for each control thread and each core, as in [method@Pto.Trace.to_json]. A run
 * of a kernel is a slice, flows are dependencies, and annotations name the task, its producers, the
 * line of its submit, the times of its life and, of a run of trace level 4, its arguments. Counters
 * show busy cores, ready tasks, live tasks of each ring, open scopes and, of trace level 4, what
 * heaps, dependency pools and the TensorMap held. Times are nanoseconds since the first record; on
 * the wall clock the trace says where that lies on `CLOCK_MONOTONIC`. A file of it is about half as
 * large as one of JSON. The bytes depend on nothing but the records.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a `Trace` message
 *
 * Since: 0.1
 */
GBytes *
pto_trace_to_perfetto (PtoTrace *self)
{
  const GPtrArray *parts;
  Output output = { 0 };
  PtoProto proto = { 0 };

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  output.events = g_array_new (FALSE, FALSE, sizeof (Event));
  pto_perfetto_names_init (&output.names);
  pto_perfetto_names_init (&output.strings);
  output.rows = g_ptr_array_new_with_free_func (pto_perfetto_row_free);
  output.all_rows = g_ptr_array_new_with_free_func (pto_perfetto_rows_free);
  parts = pto_trace_get_parts (self);
  for (guint i = 0; i < parts->len; i++)
    put_part (&output, g_ptr_array_index (parts, i));
  pto_perfetto_close_rows (&output);
  g_array_sort (output.events, compare_events);

  put_interned (&proto, &output);
  put_clock (&proto, self);
  memcpy (pto_proto_extend (&proto, output.tracks.size), output.tracks.data, output.tracks.size);
  for (guint i = 0; i < output.events->len; i++)
    {
      const Event *event = &g_array_index (output.events, Event, i);

      memcpy (pto_proto_extend (&proto, event->length), output.packets.data + event->offset,
              event->length);
    }
  pto_proto_clear (&output.tracks);
  pto_proto_clear (&output.packets);
  g_ptr_array_unref (output.all_rows);
  g_ptr_array_unref (output.rows);
  g_array_unref (output.events);
  pto_perfetto_names_clear (&output.names);
  pto_perfetto_names_clear (&output.strings);
  return g_bytes_new_take (proto.data, proto.size);
}

/**
 * pto_trace_save_perfetto:
 * @self: a trace
 * @path: (type filename): where to
 * @error: return location for an error
 *
 * Saves the trace in Perfetto's own format, see [method@Pto.Trace.to_perfetto].
 *
 * Thread safety: any thread.
 *
 * Returns: whether the file was written
 *
 * Since: 0.1
 */
gboolean
pto_trace_save_perfetto (PtoTrace *self, const char *path, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;
  const char *data;
  gsize size;

  g_return_val_if_fail (PTO_IS_TRACE (self), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  bytes = pto_trace_to_perfetto (self);
  data = g_bytes_get_data (bytes, &size);
  return pto_save (path, data, size, 0666, error);
}
