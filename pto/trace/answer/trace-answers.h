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

/* Were dependencies and retirement recorded? Of records made by hand nothing is said. */
static inline gboolean
pto_answer_has_edges (PtoTrace *trace)
{
  return trace->topology.recorded == 0 || trace->topology.recorded >= PTO_TRACE_LEVEL_GRAPH;
}

G_END_DECLS
