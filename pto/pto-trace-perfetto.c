/* pto-trace-perfetto.c: how does ui.perfetto.dev see a trace, in its own format?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Messages of Protocol Buffers, as perfetto's repository describes them below
 * protos/perfetto/trace: a Trace is a list of TracePacket. The first says that nothing was before
 * it and names all strings that the others mean by number; then come the clock, the tracks, and the
 * events in the order of their times. One process for the control threads, one for every cluster, a
 * thread for each core, as in pto-trace-json.c.
 *
 * On a track slices nest: an end closes the last one that is open. Slices that overlap otherwise,
 * which records of a good run have none of, go to a track of their own.
 */
#include "config.h"

#include "pto-proto-private.h"
#include "pto-save-private.h"
#include "pto-trace-private.h"

/* trace.proto, trace_packet.proto */
enum
{
  TRACE_PACKET = 1,

  PACKET_CLOCK_SNAPSHOT = 6,
  PACKET_TIMESTAMP = 8, /* ns */
  PACKET_TRUSTED_PACKET_SEQUENCE_ID = 10,
  PACKET_TRACK_EVENT = 11,
  PACKET_INTERNED_DATA = 12,
  PACKET_SEQUENCE_FLAGS = 13,
  PACKET_TRACK_DESCRIPTOR = 60,
  PACKET_FIRST_PACKET_ON_SEQUENCE = 87,

  SEQ_INCREMENTAL_STATE_CLEARED = 1,
  SEQ_NEEDS_INCREMENTAL_STATE = 2
};

/* clock_snapshot.proto: ClockSnapshot, ClockSnapshot.Clock, BuiltinClock */
enum
{
  SNAPSHOT_CLOCKS = 1,
  CLOCK_ID = 1,
  CLOCK_TIMESTAMP = 2,
  CLOCK_IS_MONOTONIC = 3,
  CLOCK_IS_BOOTTIME = 6 /* of packets that name none */
};

/* interned_data.proto; of all that it has: iid = 1, and the string = 2 */
enum
{
  INTERNED_EVENT_CATEGORIES = 1,
  INTERNED_EVENT_NAMES = 2,
  INTERNED_DEBUG_ANNOTATION_NAMES = 3,
  INTERNED_DEBUG_ANNOTATION_STRING_VALUES = 29,
  INTERNED_IID = 1,
  INTERNED_STRING = 2
};

/* track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto,
 * counter_descriptor.proto */
enum
{
  TRACK_UUID = 1,
  TRACK_NAME = 2,
  TRACK_PROCESS = 3,
  TRACK_THREAD = 4,
  TRACK_PARENT_UUID = 5,
  TRACK_COUNTER = 8,
  TRACK_CHILD_ORDERING = 11,
  TRACK_SIBLING_ORDER_RANK = 12,
  CHILD_ORDERING_EXPLICIT = 3,

  PROCESS_PID = 1,
  PROCESS_NAME = 6,

  THREAD_PID = 1,
  THREAD_TID = 2,
  THREAD_NAME = 5,

  COUNTER_UNIT = 3,
  UNIT_COUNT = 2,
  UNIT_SIZE_BYTES = 3
};

/* track_event.proto: TrackEvent */
enum
{
  EVENT_CATEGORY_IIDS = 3,
  EVENT_DEBUG_ANNOTATIONS = 4,
  EVENT_TYPE = 9,
  EVENT_NAME_IID = 10,
  EVENT_TRACK_UUID = 11,
  EVENT_COUNTER_VALUE = 30,
  EVENT_FLOW_IDS = 47,
  EVENT_TERMINATING_FLOW_IDS = 48,

  TYPE_SLICE_BEGIN = 1,
  TYPE_SLICE_END = 2,
  TYPE_INSTANT = 3,
  TYPE_COUNTER = 4
};

/* debug_annotation.proto: DebugAnnotation */
enum
{
  ANNOTATION_NAME_IID = 1,
  ANNOTATION_BOOL_VALUE = 2,
  ANNOTATION_UINT_VALUE = 3,
  ANNOTATION_ARRAY_VALUES = 12,
  ANNOTATION_STRING_VALUE_IID = 17
};

/* All of one writer. */
#define SEQUENCE 1u

/* Numbers as in Trace Event JSON. */
enum
{
  PID_CONTROL = 1,
  PID_CLUSTER = 10,
  TID_ORCHESTRATOR = 1,
  TID_STALLS = 2,
  TID_SCHEDULER = 10,
  TID_CORE = 1000,
  PID_STRIDE = 4096,
  TID_STRIDE = 16384
};

/* Names that are always there: iid - 1. */
typedef enum
{
  CATEGORY_RUN,
  CATEGORY_SUBMIT,
  CATEGORY_SCOPE,
  CATEGORY_STALL,
  CATEGORY_SCHEDULER,
  CATEGORY_TRACE,
  N_CATEGORIES
} Category;
static const char *const categories[N_CATEGORIES]
    = { "run", "submit", "scope", "stall", "scheduler", "trace" };

typedef enum
{
  KEY_TASK,
  KEY_RING,
  KEY_WAITED_FOR,
  KEY_SUBMITTED_AT,
  KEY_ARGUMENTS,
  KEY_BLOCK,
  KEY_WAITED_NS,
  KEY_SUBMIT_NS,
  KEY_READY_NS,
  KEY_DISPATCH_NS,
  KEY_ACK_NS,
  KEY_COMPLETE_NS,
  KEY_RETIRE_NS,
  KEY_CRITICAL,
  KEY_FAILED,
  KEY_DEPTH,
  KEY_OPENED_AT,
  KEY_TITLE,
  KEY_CLOCK,
  KEY_RECORDED,
  KEY_DROPPED,
  KEY_TASKS,
  KEY_EDGES,
  KEY_SHA256,
  N_KEYS
} Key;
static const char *const keys[N_KEYS]
    = { "task",      "ring",      "waited_for", "submitted_at", "arguments", "block",
        "waited_ns", "submit_ns", "ready_ns",   "dispatch_ns",  "ack_ns",    "complete_ns",
        "retire_ns", "critical",  "failed",     "depth",        "opened_at", "title",
        "clock",     "recorded",  "dropped",    "tasks",        "edges",     "sha256" };

/* Strings by number, from 1 on. */
typedef struct
{
  GHashTable *numbers;
  GPtrArray *strings; /* owned by numbers */
} Names;

/* A packet that was written, and where it comes: by time, of one time by order. */
typedef struct
{
  guint64 time;
  guint64 order;
  gsize offset;
  gsize length;
} Event;

typedef struct
{
  guint64 uuid;
  GArray *open; /* ends of slices that are open, innermost last */
  guint64 last; /* the last begin or end */
} Lane;

/* A thread: one lane, and more where slices do not nest. */
typedef struct
{
  guint64 process; /* uuid */
  char *name;
  GPtrArray *lanes;
  gboolean is_core;
} Row;

/* A worker's rows, and its counters. */
typedef struct
{
  guint number;    /* in the order of appearance; 0: the worker that ran */
  char *path;      /* of it; NULL: a chip without a parent */
  guint64 control; /* uuid of the process */
  Row *orchestrator;
  Row *stalls;           /* NULL: it has none yet */
  GHashTable *clusters;  /* number -> uuid of the process */
  GPtrArray *schedulers; /* Row */
  GPtrArray *cores;      /* Row */
  GHashTable *counters;  /* name -> uuid */
} Rows;

/* What all parts of a trace share. */
typedef struct
{
  PtoProto tracks; /* packets of descriptors */
  PtoProto packets;
  GArray *events;
  Names names;
  Names strings;
  GPtrArray *rows;      /* Row, all of them */
  GHashTable *all_rows; /* path -> Rows */
  guint64 n_tracks;
  guint64 n_flows;
  guint64 n_written; /* events; makes their order */
} Output;

/* One trace on its way out. */
typedef struct
{
  Output *output;
  const PtoTraceView *view;
  PtoTrace *trace; /* the view's, as what follows */
  const PtoTraceAnalysis *analysis;
  Rows *rows;
  GHashTable *kernels; /* number -> iid of its name */
  GHashTable *places;  /* file << 32 | line -> iid */
  guint64 *starts;     /* of entries, on the outermost clock */
  guint64 *ends;
  guint32 *first_out; /* of tasks: in outgoing, n_tasks + 1 */
  guint32 *outgoing;  /* edges by producer */
} Part;

/* The order of what happens at one time, on cores: ends, slices without a length, begins. So a task
 * begins after its producer, whatever tracks they are on. */
enum
{
  ORDER_ENDS,
  ORDER_BETWEEN,
  ORDER_BEGINS
};

/* --- strings --- */

static guint64
intern (Names *names, const char *string)
{
  gpointer number = g_hash_table_lookup (names->numbers, string);
  char *copy;

  if (number != NULL)
    return GPOINTER_TO_UINT (number);
  copy = g_strdup (string);
  g_ptr_array_add (names->strings, copy);
  g_hash_table_insert (names->numbers, copy, GUINT_TO_POINTER (names->strings->len));
  return names->strings->len;
}

static void
names_init (Names *names)
{
  names->numbers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  names->strings = g_ptr_array_new ();
}

static void
names_clear (Names *names)
{
  g_ptr_array_unref (names->strings);
  g_hash_table_unref (names->numbers);
}

static guint64
intern_kernel (Part *part, guint32 kernel)
{
  gpointer number = g_hash_table_lookup (part->kernels, GUINT_TO_POINTER (kernel));

  if (number == NULL)
    {
      const char *name = pto_trace_get_kernel_name (part->trace, kernel);

      number = GUINT_TO_POINTER ((guint) intern (&part->output->names, name));
      g_hash_table_insert (part->kernels, GUINT_TO_POINTER (kernel), number);
    }
  return GPOINTER_TO_UINT (number);
}

static guint64
intern_place (Part *part, guint32 file, guint32 line)
{
  gint64 key = (gint64) ((guint64) file << 32 | line);
  gpointer number = g_hash_table_lookup (part->places, &key);

  if (number == NULL)
    {
      g_autofree char *place = g_strdup_printf ("%s:%u", part->trace->files[file], line);
      gint64 *stored = g_new (gint64, 1);

      *stored = key;
      number = GUINT_TO_POINTER ((guint) intern (&part->output->strings, place));
      g_hash_table_insert (part->places, stored, number);
    }
  return GPOINTER_TO_UINT (number);
}

/* --- annotations --- */

static void
put_uint (PtoProto *proto, Key key, guint64 value)
{
  gsize annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);

  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + key);
  pto_proto_put_uint (proto, ANNOTATION_UINT_VALUE, value);
  pto_proto_end (proto, annotation);
}

static void
put_bool (PtoProto *proto, Key key, gboolean value)
{
  gsize annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);

  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + key);
  pto_proto_put_uint (proto, ANNOTATION_BOOL_VALUE, value != FALSE);
  pto_proto_end (proto, annotation);
}

static void
put_string (PtoProto *proto, Key key, guint64 iid)
{
  gsize annotation = pto_proto_begin (proto, EVENT_DEBUG_ANNOTATIONS);

  pto_proto_put_uint (proto, ANNOTATION_NAME_IID, 1 + key);
  pto_proto_put_uint (proto, ANNOTATION_STRING_VALUE_IID, iid);
  pto_proto_end (proto, annotation);
}

/* Left out where nobody recorded it. */
static void
put_time (Part *part, PtoProto *proto, Key key, guint64 time)
{
  if (time != PTO_TRACE_NEVER)
    put_uint (proto, key, pto_trace_view_time (part->view, time));
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

      pto_proto_put_uint (proto, ANNOTATION_UINT_VALUE,
                          part->analysis->deps[task->first_dep + k].producer);
      pto_proto_end (proto, value);
    }
  pto_proto_end (proto, annotation);
}

static void
append_dimensions (GString *text, const PtoTraceArg *arg, const guint64 *dimensions)
{
  g_string_append_c (text, '[');
  for (guint d = 0; d < arg->n_dims; d++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "", dimensions[d]);
  g_string_append_c (text, ']');
}

/* "0: input float32 [4, 8] at 0x1000", "1: 7" */
static void
append_argument (GString *text, const PtoTraceArg *arg)
{
  static const char *const types[]
      = { "input", "output",      "inout",   "existing output", "no dependency",
          "",      "commutative", "scratch", "reduction" };

  g_string_printf (text, "%u: ", arg->index);
  if (arg->type == PTO_PARAM_SCALAR)
    {
      g_string_append_printf (text, "%" G_GUINT64_FORMAT, arg->word);
      return;
    }
  g_string_append_printf (text, "%s %s ", arg->type < G_N_ELEMENTS (types) ? types[arg->type] : "?",
                          arg->dtype < PTO_DTYPE_COUNT ? pto_dtype_name ((DataType) arg->dtype)
                                                       : "?");
  append_dimensions (text, arg, arg->shape);
  g_string_append (text, " strides ");
  append_dimensions (text, arg, arg->strides);
  g_string_append_printf (text, " at 0x%" G_GINT64_MODIFIER "x", arg->word);
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

      append_argument (text, &part->analysis->args[task->first_arg + i]);
      pto_proto_put_uint (proto, ANNOTATION_STRING_VALUE_IID,
                          intern (&part->output->strings, text->str));
      pto_proto_end (proto, value);
    }
  pto_proto_end (proto, annotation);
}

/* --- packets --- */

typedef struct
{
  gsize packet;
  gsize event;
  Lane *lane; /* of a slice */
} OpenEvent;

/* Leaves the packet and its TrackEvent open. */
static OpenEvent
begin_event (Output *output, guint64 time, guint order, guint type, guint64 track)
{
  PtoProto *proto = &output->packets;
  Event event = { time, (guint64) order << 60 | output->n_written++, proto->size, 0 };
  OpenEvent open = { 0 };

  g_array_append_val (output->events, event);
  open.packet = pto_proto_begin (proto, TRACE_PACKET);
  pto_proto_put_uint (proto, PACKET_TIMESTAMP, time);
  pto_proto_put_uint (proto, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  pto_proto_put_uint (proto, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_INCREMENTAL_STATE);
  open.event = pto_proto_begin (proto, PACKET_TRACK_EVENT);
  pto_proto_put_uint (proto, EVENT_TYPE, type);
  pto_proto_put_uint (proto, EVENT_TRACK_UUID, track);
  return open;
}

static void
name_event (Output *output, Category category, guint64 name)
{
  pto_proto_put_uint (&output->packets, EVENT_CATEGORY_IIDS, 1 + category);
  pto_proto_put_uint (&output->packets, EVENT_NAME_IID, name);
}

static void
end_event (Output *output, OpenEvent open)
{
  Event *event = &g_array_index (output->events, Event, output->events->len - 1);

  pto_proto_end (&output->packets, open.event);
  pto_proto_end (&output->packets, open.packet);
  event->length = output->packets.size - event->offset;
}

/* A track of the output: what it is follows, until end_track(). */
static gsize
begin_track (Output *output, guint64 *uuid, gsize *packet)
{
  gsize track;

  *uuid = ++output->n_tracks;
  *packet = pto_proto_begin (&output->tracks, TRACE_PACKET);
  pto_proto_put_uint (&output->tracks, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
  track = pto_proto_begin (&output->tracks, PACKET_TRACK_DESCRIPTOR);
  pto_proto_put_uint (&output->tracks, TRACK_UUID, *uuid);
  return track;
}

static void
end_track (Output *output, gsize track, gsize packet)
{
  pto_proto_end (&output->tracks, track);
  pto_proto_end (&output->tracks, packet);
}

/* --- tracks --- */

static guint64
add_process (Output *output, guint pid, const char *name)
{
  PtoProto *proto = &output->tracks;
  guint64 uuid;
  gsize packet;
  gsize track = begin_track (output, &uuid, &packet);
  gsize process;

  pto_proto_put_string (proto, TRACK_NAME, name);
  pto_proto_put_uint (proto, TRACK_CHILD_ORDERING, CHILD_ORDERING_EXPLICIT);
  process = pto_proto_begin (proto, TRACK_PROCESS);
  pto_proto_put_uint (proto, PROCESS_PID, pid);
  pto_proto_put_string (proto, PROCESS_NAME, name);
  pto_proto_end (proto, process);
  end_track (output, track, packet);
  return uuid;
}

static Lane *
add_lane (Row *row, guint64 uuid)
{
  Lane *lane = g_new (Lane, 1);

  *lane = (Lane){ uuid, g_array_new (FALSE, FALSE, sizeof (guint64)), 0 };
  g_ptr_array_add (row->lanes, lane);
  return lane;
}

static void
lane_free (gpointer data)
{
  Lane *lane = data;

  g_array_unref (lane->open);
  g_free (lane);
}

static void
row_free (gpointer data)
{
  Row *row = data;

  g_ptr_array_unref (row->lanes);
  g_free (row->name);
  g_free (row);
}

static Row *
add_thread (Output *output, guint64 process, guint pid, guint tid, const char *name,
            gboolean is_core)
{
  PtoProto *proto = &output->tracks;
  Row *row = g_new0 (Row, 1);
  guint64 uuid;
  gsize packet;
  gsize track = begin_track (output, &uuid, &packet);
  gsize thread;

  pto_proto_put_uint (proto, TRACK_PARENT_UUID, process);
  pto_proto_put_string (proto, TRACK_NAME, name);
  pto_proto_put_uint (proto, TRACK_SIBLING_ORDER_RANK, tid);
  thread = pto_proto_begin (proto, TRACK_THREAD);
  pto_proto_put_uint (proto, THREAD_PID, pid);
  pto_proto_put_uint (proto, THREAD_TID, tid);
  pto_proto_put_string (proto, THREAD_NAME, name);
  pto_proto_end (proto, thread);
  end_track (output, track, packet);

  row->process = process;
  row->name = g_strdup (name);
  row->lanes = g_ptr_array_new_with_free_func (lane_free);
  row->is_core = is_core;
  add_lane (row, uuid);
  g_ptr_array_add (output->rows, row);
  return row;
}

/* For what overlaps. */
static Lane *
add_second_lane (Output *output, Row *row)
{
  guint64 uuid;
  gsize packet;
  gsize track = begin_track (output, &uuid, &packet);

  pto_proto_put_uint (&output->tracks, TRACK_PARENT_UUID, row->process);
  pto_proto_put_string (&output->tracks, TRACK_NAME, row->name);
  end_track (output, track, packet);
  return add_lane (row, uuid);
}

static guint64
get_counter (Part *part, const char *name, guint unit)
{
  Output *output = part->output;
  guint64 *known = g_hash_table_lookup (part->rows->counters, name);
  guint64 uuid;
  gsize packet, track, counter;

  if (known != NULL)
    return *known;
  track = begin_track (output, &uuid, &packet);
  pto_proto_put_uint (&output->tracks, TRACK_PARENT_UUID, part->rows->control);
  pto_proto_put_string (&output->tracks, TRACK_NAME, name);
  pto_proto_put_uint (&output->tracks, TRACK_SIBLING_ORDER_RANK,
                      g_hash_table_size (part->rows->counters));
  counter = pto_proto_begin (&output->tracks, TRACK_COUNTER);
  pto_proto_put_uint (&output->tracks, COUNTER_UNIT, unit);
  pto_proto_end (&output->tracks, counter);
  end_track (output, track, packet);
  known = g_new (guint64, 1);
  *known = uuid;
  g_hash_table_insert (part->rows->counters, g_strdup (name), known);
  return uuid;
}

static void
rows_free (gpointer data)
{
  Rows *rows = data;

  g_ptr_array_unref (rows->schedulers);
  g_ptr_array_unref (rows->cores);
  g_hash_table_unref (rows->clusters);
  g_hash_table_unref (rows->counters);
  g_free (rows->path);
  g_free (rows);
}

/* What stands before the name of a process of a chip below others. */
static char *
name_process (const Rows *rows, const char *name)
{
  return rows->path != NULL ? g_strdup_printf ("%s %s", rows->path, name) : g_strdup (name);
}

static guint64
get_cluster (Output *output, Rows *rows, guint cluster)
{
  guint64 *known = g_hash_table_lookup (rows->clusters, GUINT_TO_POINTER (cluster));
  g_autofree char *title = NULL;
  g_autofree char *whole = NULL;

  if (known != NULL)
    return *known;
  title = g_strdup_printf ("cluster %u", cluster);
  whole = name_process (rows, title);
  known = g_new (guint64, 1);
  *known = add_process (output, rows->number * PID_STRIDE + PID_CLUSTER + cluster, whole);
  g_hash_table_insert (rows->clusters, GUINT_TO_POINTER (cluster), known);
  return *known;
}

static Row *
add_control_row (Output *output, Rows *rows, guint tid, const char *name)
{
  return add_thread (output, rows->control, rows->number * PID_STRIDE + PID_CONTROL,
                     rows->number * TID_STRIDE + tid, name, FALSE);
}

/* Those that are not there yet: a run of a worker may have more of them than one before it. */
static void
add_rows (Output *output, Rows *rows, PtoTrace *trace)
{
  guint pid = rows->number * PID_STRIDE;
  guint tid = rows->number * TID_STRIDE;
  gboolean is_level = pto_trace_is_level (trace);

  if (rows->orchestrator == NULL)
    {
      g_autofree char *control = is_level ? g_strdup (rows->path) : name_process (rows, "AICPU");

      rows->control = add_process (output, pid + PID_CONTROL, control != NULL ? control : "");
      rows->orchestrator = add_control_row (output, rows, TID_ORCHESTRATOR, "orchestrator");
    }
  for (guint s = rows->schedulers->len; s < trace->topology.n_schedulers; s++)
    {
      g_autofree char *name = g_strdup_printf ("scheduler %u", s);

      g_ptr_array_add (rows->schedulers, add_control_row (output, rows, TID_SCHEDULER + s, name));
    }
  for (guint c = rows->cores->len; c < trace->topology.n_cores; c++)
    {
      g_autofree char *name = pto_trace_dup_core_name (trace, c);
      guint cluster, type;

      pto_trace_locate_core (trace, c, &cluster, &type);
      g_ptr_array_add (rows->cores, is_level
                                        ? add_thread (output, rows->control, pid + PID_CONTROL,
                                                      tid + TID_CORE + c, name, TRUE)
                                        : add_thread (output, get_cluster (output, rows, cluster),
                                                      pid + PID_CLUSTER + cluster,
                                                      tid + TID_CORE + c, name, TRUE));
    }
}

/* path: taken; NULL: of a chip that is below nobody. */
static Rows *
find_rows (Output *output, char *path, PtoTrace *trace)
{
  const char *key = path != NULL ? path : "";
  Rows *rows = g_hash_table_lookup (output->all_rows, key);

  if (rows != NULL)
    {
      g_free (path);
      add_rows (output, rows, trace);
      return rows;
    }
  rows = g_new0 (Rows, 1);
  rows->number = g_hash_table_size (output->all_rows);
  rows->path = path;
  rows->schedulers = g_ptr_array_new ();
  rows->cores = g_ptr_array_new ();
  rows->clusters = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  rows->counters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_hash_table_insert (output->all_rows, g_strdup (key), rows);
  add_rows (output, rows, trace);
  return rows;
}

/* --- slices --- */

static void
put_end (Output *output, Lane *lane, guint64 time, guint order)
{
  end_event (output, begin_event (output, time, order, TYPE_SLICE_END, lane->uuid));
  lane->last = time;
}

static void
close_slices (Output *output, const Row *row, Lane *lane, guint64 until)
{
  while (lane->open->len > 0)
    {
      guint64 end = g_array_index (lane->open, guint64, lane->open->len - 1);

      if (end > until)
        return;
      put_end (output, lane, end, row->is_core ? ORDER_ENDS : ORDER_BETWEEN);
      g_array_set_size (lane->open, lane->open->len - 1);
    }
}

/* Begins a slice of a row, which are begun by their starts, longer ones first. Its event is left
 * open. */
static OpenEvent
begin_slice (Output *output, Row *row, guint64 start, guint64 end)
{
  Lane *lane = NULL;
  OpenEvent open;

  for (guint i = 0; i < row->lanes->len && lane == NULL; i++)
    {
      Lane *candidate = g_ptr_array_index (row->lanes, i);
      guint n_open;

      close_slices (output, row, candidate, start);
      n_open = candidate->open->len;
      if (candidate->last <= start
          && (n_open == 0 || g_array_index (candidate->open, guint64, n_open - 1) >= end))
        lane = candidate;
    }
  if (lane == NULL)
    lane = add_second_lane (output, row);
  lane->last = start;
  if (end > start)
    g_array_append_val (lane->open, end);
  open = begin_event (output, start, row->is_core && end > start ? ORDER_BEGINS : ORDER_BETWEEN,
                      TYPE_SLICE_BEGIN, lane->uuid);
  open.lane = lane;
  return open;
}

/* One without a length ends at once; the others when it is their time. */
static void
end_slice (Output *output, OpenEvent event, guint64 start, guint64 end)
{
  end_event (output, event);
  if (end == start)
    put_end (output, event.lane, end, ORDER_BETWEEN);
}

static void
close_rows (Output *output)
{
  for (guint i = 0; i < output->rows->len; i++)
    {
      const Row *row = g_ptr_array_index (output->rows, i);

      for (guint l = 0; l < row->lanes->len; l++)
        close_slices (output, row, g_ptr_array_index (row->lanes, l), PTO_TRACE_NEVER);
    }
}

/* --- what happened --- */

static void
put_task (Part *part, PtoProto *proto, const PtoTraceEntry *task)
{
  put_uint (proto, KEY_TASK, task->id);
  put_uint (proto, KEY_RING, PTO_TASK_RING (task->id));
  put_producers (part, proto, task);
  if (task->file != PTO_TRACE_NOWHERE)
    put_string (proto, KEY_SUBMITTED_AT, intern_place (part, task->file, task->line));
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

  if (part->starts[x] != part->starts[y])
    return part->starts[x] < part->starts[y] ? -1 : 1;
  if (part->ends[x] != part->ends[y])
    return part->ends[x] > part->ends[y] ? -1 : 1;
  return x < y ? -1 : x > y;
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
  OpenEvent event = begin_slice (output, row, start, end);

  name_event (output, CATEGORY_RUN, intern_kernel (part, task->kernel));
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
  end_slice (output, event, start, end);
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
      part->starts[i] = pto_trace_view_time (part->view, analysis->tasks[i].start);
      part->ends[i] = pto_trace_view_time (part->view, analysis->tasks[i].end);
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
  guint64 start = pto_trace_view_time (part->view, scope->start);
  guint64 end = pto_trace_view_time (part->view, scope->end);
  OpenEvent event = begin_slice (output, part->rows->orchestrator, start, end);

  name_event (output, CATEGORY_SCOPE, intern (&output->names, "scope"));
  put_uint (&output->packets, KEY_DEPTH, scope->what);
  if (scope->file != PTO_TRACE_NOWHERE)
    put_string (&output->packets, KEY_OPENED_AT, intern_place (part, scope->file, scope->line));
  end_slice (output, event, start, end);
}

static void
put_submit (Part *part, const PtoTraceEntry *task)
{
  Output *output = part->output;
  guint64 start = pto_trace_view_time (part->view, task->submit);
  guint64 end = pto_trace_view_time (part->view, MAX (task->submit_end, task->submit));
  OpenEvent event = begin_slice (output, part->rows->orchestrator, start, end);

  name_event (output, CATEGORY_SUBMIT, intern_kernel (part, task->kernel));
  put_task (part, &output->packets, task);
  put_arguments (part, &output->packets, task);
  end_slice (output, event, start, end);
}

static gint
compare_submits (gconstpointer a, gconstpointer b, gpointer data)
{
  const PtoTraceEntry *tasks = data;
  guint32 x = *(const guint32 *) a;
  guint32 y = *(const guint32 *) b;

  if (tasks[x].submit != tasks[y].submit)
    return tasks[x].submit < tasks[y].submit ? -1 : 1;
  return x < y ? -1 : x > y;
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
    part->rows->stalls = add_control_row (output, part->rows, TID_STALLS, "orchestrator: stalls");
  for (guint i = 0; i < part->analysis->stalls->len; i++)
    {
      const PtoTraceSpan *stall = &g_array_index (part->analysis->stalls, PtoTraceSpan, i);
      g_autofree char *what = pto_trace_dup_stall_name (stall->what);
      g_autofree char *name = g_strdup_printf ("wait for %s", what);
      guint64 start = pto_trace_view_time (part->view, stall->start);
      guint64 end = pto_trace_view_time (part->view, stall->end);
      OpenEvent event = begin_slice (output, part->rows->stalls, start, end);

      name_event (output, CATEGORY_STALL, intern (&output->names, name));
      put_uint (&output->packets, KEY_RING, stall->what & 0xff);
      end_slice (output, event, start, end);
    }
}

static void
put_instant (Part *part, guint scheduler, guint64 time, const char *name, guint64 task)
{
  Output *output = part->output;
  const Row *row = g_ptr_array_index (part->rows->schedulers, scheduler);
  const Lane *lane = g_ptr_array_index (row->lanes, 0);
  OpenEvent event = begin_event (output, pto_trace_view_time (part->view, time), ORDER_BETWEEN,
                                 TYPE_INSTANT, lane->uuid);

  name_event (output, CATEGORY_SCHEDULER, intern (&output->names, name));
  put_uint (&output->packets, KEY_TASK, task);
  end_event (output, event);
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
put_value (Part *part, guint64 track, guint64 time, guint64 value)
{
  OpenEvent event = begin_event (part->output, pto_trace_view_time (part->view, time),
                                 ORDER_BETWEEN, TYPE_COUNTER, track);

  pto_proto_put_uint (&part->output->packets, EVENT_COUNTER_VALUE, value);
  end_event (part->output, event);
}

static void
put_counter (Part *part, const char *name, guint unit, const GArray *steps)
{
  guint64 track;

  if (steps->len == 0)
    return;
  track = get_counter (part, name, unit);
  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);

      put_value (part, track, step->time, step->value);
    }
}

static void
put_ring_counter (Part *part, const char *name, guint ring, guint unit, const GArray *steps)
{
  g_autofree char *whole = g_strdup_printf ("%s, ring %u", name, ring);

  put_counter (part, whole, unit, steps);
}

typedef struct
{
  guint64 time;
  gint change;
} Change;

static gint
compare_changes (gconstpointer a, gconstpointer b)
{
  const Change *x = a;
  const Change *y = b;

  return x->time < y->time ? -1 : x->time > y->time;
}

/* How many cores of a type run something. */
static void
put_busy (Part *part, guint core_type)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  g_autoptr (GArray) changes = g_array_new (FALSE, FALSE, sizeof (Change));
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (PtoTraceStep));
  g_autofree char *name = NULL;
  gint64 value = 0;
  guint64 before = 0;

  for (guint c = 0; c < analysis->n_cores; c++)
    {
      guint cluster, type;

      pto_trace_locate_core (part->trace, c, &cluster, &type);
      for (guint i = 0; type == core_type && i < analysis->n_core_runs[c]; i++)
        {
          const PtoTraceEntry *task = &analysis->tasks[analysis->core_runs[c][i]];
          Change begin = { task->start, 1 };
          Change end = { task->end, -1 };

          g_array_append_val (changes, begin);
          g_array_append_val (changes, end);
        }
    }
  g_array_sort (changes, compare_changes);
  for (guint i = 0; i < changes->len; i++)
    {
      PtoTraceStep step = { g_array_index (changes, Change, i).time, 0 };

      value += g_array_index (changes, Change, i).change;
      if (i + 1 < changes->len && g_array_index (changes, Change, i + 1).time == step.time)
        continue;
      step.value = (guint64) value;
      if (step.value != before)
        g_array_append_val (steps, step);
      before = step.value;
    }
  name = g_strdup_printf ("busy %s", pto_trace_get_type_name (part->trace, core_type, 2));
  put_counter (part, name, UNIT_COUNT, steps);
}

/* Of a level there is one kind of ready tasks. */
static void
put_counters (Part *part)
{
  const PtoTraceAnalysis *analysis = part->analysis;
  gboolean is_level = pto_trace_is_level (part->trace);

  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    put_busy (part, type);
  put_counter (part, is_level ? "ready tasks" : "ready AIC tasks", UNIT_COUNT,
               analysis->ready[PTO_CORE_TYPE_AIC]);
  if (!is_level)
    put_counter (part, "ready AIV tasks", UNIT_COUNT, analysis->ready[PTO_CORE_TYPE_AIV]);
  for (guint r = 0; r < analysis->rings; r++)
    {
      put_ring_counter (part, "live tasks", r, UNIT_COUNT, analysis->live[r]);
      put_ring_counter (part, "heap", r, UNIT_SIZE_BYTES, analysis->heap[r]);
      put_ring_counter (part, "dependency pool", r, UNIT_COUNT, analysis->edges[r]);
    }
  put_counter (part, "TensorMap", UNIT_COUNT, analysis->nodes);
  put_counter (part, "open scopes", UNIT_COUNT, analysis->depth);
}

/* --- all of it --- */

static void
put_part (Output *output, const PtoTraceView *view, Rows *rows)
{
  Part part = { .output = output,
                .view = view,
                .trace = view->trace,
                .analysis = pto_trace_get_analysis (view->trace),
                .rows = rows,
                .kernels = g_hash_table_new (NULL, NULL),
                .places = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL) };

  put_orchestrator (&part);
  put_stalls (&part);
  put_schedulers (&part);
  put_runs (&part);
  put_counters (&part);
  g_hash_table_unref (part.kernels);
  g_hash_table_unref (part.places);

  for (guint i = 0; i < view->trace->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (view->trace->pieces.list, i);
      char *path = pto_trace_dup_child_path (rows->path, view->trace, piece->child);
      PtoTraceView inner;

      pto_trace_view_init (&inner, view, i);
      put_part (output, &inner, find_rows (output, path, inner.trace));
    }
}

/* What the trace is, at its begin. */
static void
put_head (Output *output, PtoTrace *trace, const Rows *rows)
{
  PtoProto *proto = &output->packets;
  const Lane *lane = g_ptr_array_index (rows->orchestrator->lanes, 0);
  OpenEvent event = begin_event (output, 0, ORDER_BETWEEN, TYPE_INSTANT, lane->uuid);

  name_event (output, CATEGORY_TRACE, intern (&output->names, "trace"));
  put_string (proto, KEY_TITLE, intern (&output->strings, trace->title));
  put_string (proto, KEY_CLOCK,
              intern (&output->strings, trace->topology.virtual_clock ? "virtual" : "wall"));
  put_uint (proto, KEY_RECORDED, pto_trace_get_recorded (trace));
  put_uint (proto, KEY_DROPPED, pto_trace_get_dropped (trace));
  put_uint (proto, KEY_TASKS, pto_trace_get_n_tasks (trace));
  put_uint (proto, KEY_EDGES, pto_trace_get_n_edges (trace));
  put_string (proto, KEY_SHA256, intern (&output->strings, pto_trace_get_sha256 (trace)));
  end_event (output, event);
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

  if (x->time != y->time)
    return x->time < y->time ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
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
  const PtoTraceView view = { .trace = self };
  Output output = { 0 };
  PtoProto proto = { 0 };
  Rows *rows;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  output.events = g_array_new (FALSE, FALSE, sizeof (Event));
  names_init (&output.names);
  names_init (&output.strings);
  output.rows = g_ptr_array_new_with_free_func (row_free);
  output.all_rows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, rows_free);
  rows = find_rows (&output, g_strdup (self->path), self);
  put_head (&output, self, rows);
  put_part (&output, &view, rows);
  close_rows (&output);
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
  g_hash_table_unref (output.all_rows);
  g_ptr_array_unref (output.rows);
  g_array_unref (output.events);
  names_clear (&output.names);
  names_clear (&output.strings);
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
