/* trace-answers.h: what are the answers of a trace made of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. Each topic adds its members to an object of JSON, and makes its text of that.
 */
#pragma once

#include "trace/model/trace.h"

#include "common/json.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* task-label.c: what a label names, "7.1/1:17". */
typedef struct
{
  PtoTrace *trace; /* where the task is; not owned */
  guint64 id;      /* of it there */
  char *path;      /* of the worker; NULL of a chip that is below nobody */
  char *within;    /* "7.1": of the task that it is inside of; NULL: none */
} PtoTraceFound;

/* G_IO_ERROR_INVALID_ARGUMENT: it is no label. In any case found is to be cleared. */
gboolean pto_trace_find_label (PtoTrace *trace, const char *label, PtoTraceFound *found,
                               GError **error);
void pto_trace_found_clear (PtoTraceFound *found);

/* scopes.c */
void pto_trace_add_scopes (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis);
void pto_trace_append_scopes (GString *text, JsonObject *object);
/* dependencies.c */
void pto_trace_add_hazards (JsonBuilder *json, guint32 kinds);
void pto_trace_add_deps (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis);
void pto_trace_append_deps (GString *text, JsonObject *object);

/* counters.c; events: which of them */
enum
{
  PTO_TRACE_COUNT_TIME = 1,
  PTO_TRACE_COUNT_MEMORY = 2,
  PTO_TRACE_COUNT_PIPES = 4,
  PTO_TRACE_COUNT_ALL = 7
};
void pto_trace_add_counters (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis,
                             guint events);
void pto_trace_append_counters (GString *text, JsonObject *object);

/* Why a task waited, in PtoTraceWaits. */
typedef struct
{
  const char *name; /* of its member in JSON */
  gsize offset;
  const char *heading; /* of a column; not translated yet, as what follows */
  const char *text;    /* "12.500 us for data" */
} PtoAnswerReason;
#define PTO_ANSWER_REASONS 5
extern const PtoAnswerReason pto_answer_reasons[PTO_ANSWER_REASONS];

static inline guint64
pto_answer_get_wait (const PtoTraceWaits *waits, guint reason)
{
  return G_STRUCT_MEMBER (guint64, waits, pto_answer_reasons[reason].offset);
}
void pto_answer_sum_waits (PtoTraceWaits *sum, const PtoTraceWaits *waits);

/* Members of an object: which task it is, where it ran, where it was submitted. */
void pto_answer_add_task (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task);
void pto_answer_add_core (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task);
void pto_answer_add_place (JsonBuilder *json, const char *name, PtoTrace *trace, guint32 file,
                           guint32 line);
void pto_answer_add_moved (JsonBuilder *json, const guint64 sum[PTO_TRACE_N_MOVED]);

/* What the object's kernel, or core, is called for people; and the name of its task. */
const char *pto_answer_get_name (JsonObject *object, const char *member);
char *pto_answer_dup_task_name (JsonObject *task);
/* ", submitted at a.c:7": of the file only its name, a line is for people. */
void pto_answer_append_place (GString *text, JsonObject *task);

/* Kernels by time in them, longest first. A part of a task, or a member of a group, is a run; what
 * its task waited for counts once. */
typedef struct
{
  guint32 kernel;
  guint64 runs;
  guint64 busy;
  guint64 waited; /* of that: for other kernels */
  PtoTraceWaits waits;
} PtoAnswerKernel;
GArray *pto_answer_list_kernels (PtoTrace *trace);

/* A table for people, made row by row: names at the left, which get the room that they take, and
 * cells at the right of their columns. */
typedef struct
{
  guint widest;
  GPtrArray *names;
  GPtrArray *cells; /* GString: those of a row */
} PtoAnswerTable;

PtoAnswerTable *pto_answer_table_new (void);
/* There is room for that name, whether it gets a row or not. */
void pto_answer_table_reserve (PtoAnswerTable *table, const char *name);
void pto_answer_table_begin_row (PtoAnswerTable *table, const char *name);
void pto_answer_table_add (PtoAnswerTable *table, int width, const char *words);
void pto_answer_table_add_number (PtoAnswerTable *table, int width, guint64 number);
void pto_answer_table_add_us (PtoAnswerTable *table, int width, guint64 ns);
/* Frees it. */
void pto_answer_table_end (PtoAnswerTable *table, GString *text);

/* Left out where nobody recorded it. */
static inline void
pto_answer_add_time (JsonBuilder *json, const char *name, guint64 time)
{
  if (time != PTO_TRACE_NEVER)
    pto_json_add_int (json, name, time);
}

/* As text: a number of JSON may have 53 bits only. */
static inline void
pto_answer_add_id (JsonBuilder *json, const char *name, guint64 id)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, id);

  pto_json_add_string (json, name, text);
}

static inline guint64
pto_answer_get_number (JsonObject *object, const char *name)
{
  return (guint64) json_object_get_int_member_with_default (object, name, 0);
}

/* Was as much recorded? Of records made by hand nothing is said. */
static inline gboolean
pto_answer_has_level (PtoTrace *trace, guint level)
{
  return trace->topology.recorded == 0 || trace->topology.recorded >= level;
}

G_END_DECLS
