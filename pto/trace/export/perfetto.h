/* perfetto.h: what is a trace made of in Perfetto's format?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. Numbers of fields, as perfetto's .proto files have them, and what is kept while
 * a trace is written.
 */
#pragma once

#include "protobuf-writer.h"
#include "tracks.h"

G_BEGIN_DECLS

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
  ANNOTATION_STRING_VALUE = 6,
  ANNOTATION_ARRAY_VALUES = 12,
  ANNOTATION_STRING_VALUE_IID = 17
};

/* All of one writer. */
#define SEQUENCE 1u

/* Names that are always there: iid - 1. */
typedef enum
{
  CATEGORY_RUN,
  CATEGORY_SUBMIT,
  CATEGORY_SCOPE,
  CATEGORY_STALL,
  CATEGORY_SCHEDULER,
  CATEGORY_TRACE,
  CATEGORY_TRANSFER,
  N_CATEGORIES
} Category;
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
  KEY_PRIORITY,
  KEY_BYTES,
  KEY_SAVED,
  N_KEYS
} Key;
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
  guint64 control; /* uuid of the process */
  Row *orchestrator;
  Row *stalls;           /* NULL: it has none yet */
  GHashTable *tensors;   /* child -> Row of what travels to it and back */
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
  GPtrArray *rows;     /* Row, all of them */
  GPtrArray *all_rows; /* Rows, by the number of a worker */
  guint64 n_tracks;
  guint64 n_flows;
  guint64 n_written; /* events; makes their order */
} Output;

/* One part of a trace on its way out. */
typedef struct
{
  Output *output;
  const PtoTracePart *of;
  PtoTrace *trace; /* its own, as what follows */
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

typedef struct
{
  gsize packet;
  gsize event;
  Lane *lane; /* of a slice */
} OpenEvent;

/* --- perfetto-tracks.c --- */

void pto_perfetto_row_free (gpointer data);
void pto_perfetto_rows_free (gpointer data);
guint64 pto_perfetto_intern (Names *names, const char *string);
void pto_perfetto_names_init (Names *names);
void pto_perfetto_names_clear (Names *names);
guint64 pto_perfetto_intern_kernel (Part *part, guint32 kernel);
guint64 pto_perfetto_intern_place (Part *part, guint32 file, guint32 line);
OpenEvent pto_perfetto_begin_event (Output *output, guint64 time, guint order, guint type,
                                    guint64 track);
void pto_perfetto_name_event (Output *output, Category category, guint64 name);
void pto_perfetto_end_event (Output *output, OpenEvent open);
guint64 pto_perfetto_get_counter (Part *part, const char *name, guint unit);
Row *pto_perfetto_add_control_row (Part *part, guint tid, const char *name);
/* Of the part's worker: fills in part->rows, and adds those that are not there yet. */
void pto_perfetto_find_rows (Part *part);
OpenEvent pto_perfetto_begin_slice (Output *output, Row *row, guint64 start, guint64 end);
void pto_perfetto_end_slice (Output *output, OpenEvent event, guint64 start, guint64 end);
void pto_perfetto_close_rows (Output *output);

G_END_DECLS
