/* pto-trace-items.h: what can be asked of a task, an edge or a core of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/**
 * PtoHazards:
 * @PTO_HAZARDS_RAW: the second reads what the first has written
 * @PTO_HAZARDS_WAW: both write
 * @PTO_HAZARDS_WAR: the second writes what the first has read
 * @PTO_HAZARDS_UNSURE: an overlap was assumed, not proved
 * @PTO_HAZARDS_EXPLICIT: the submit of the second named the first
 *
 * Why one task waits for another.
 *
 * Since: 0.1
 */
typedef enum /*< flags >*/
{
  PTO_HAZARDS_RAW = 1 << 0,
  PTO_HAZARDS_WAW = 1 << 1,
  PTO_HAZARDS_WAR = 1 << 2,
  PTO_HAZARDS_UNSURE = 1 << 3,
  PTO_HAZARDS_EXPLICIT = 1 << 4
} PtoHazards;

/**
 * PtoTraceCoreKind:
 * @PTO_TRACE_CORE_AIC: a cube core of a chip
 * @PTO_TRACE_CORE_AIV: a vector core of a chip
 * @PTO_TRACE_CORE_WORKER: a worker below one of level 3 or up
 * @PTO_TRACE_CORE_SUB_WORKER: a SUB worker below one of level 3 or up
 *
 * What tasks run on.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_TRACE_CORE_AIC = 0,
  PTO_TRACE_CORE_AIV = 1,
  PTO_TRACE_CORE_WORKER = 2,
  PTO_TRACE_CORE_SUB_WORKER = 3
} PtoTraceCoreKind;

#define PTO_TYPE_TRACE_TASK (pto_trace_task_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoTraceTask, pto_trace_task, PTO, TRACE_TASK, GObject)

PTO_AVAILABLE_IN_0_1
guint64 pto_trace_task_get_id (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_task_dup_label (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
const char *pto_trace_task_get_name (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
const char *pto_trace_task_get_path (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
guint pto_trace_task_get_level (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
int pto_trace_task_get_core (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
guint pto_trace_task_get_priority (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_submit_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_ready_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_dispatch_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_start_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_end_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_complete_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gint64 pto_trace_task_get_retire_ns (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_task_get_bytes_sent (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_task_get_bytes_received (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_task_get_bytes_saved (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_task_has_failed (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_task_is_critical (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
GListModel *pto_trace_task_list_members (PtoTraceTask *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_task_to_string (PtoTraceTask *self);

#define PTO_TYPE_TRACE_EDGE (pto_trace_edge_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoTraceEdge, pto_trace_edge, PTO, TRACE_EDGE, GObject)

PTO_AVAILABLE_IN_0_1
int pto_trace_edge_get_producer (PtoTraceEdge *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_edge_get_producer_id (PtoTraceEdge *self);
PTO_AVAILABLE_IN_0_1
guint pto_trace_edge_get_consumer (PtoTraceEdge *self);
PTO_AVAILABLE_IN_0_1
PtoHazards pto_trace_edge_get_hazards (PtoTraceEdge *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_edge_to_string (PtoTraceEdge *self);

#define PTO_TYPE_TRACE_CORE (pto_trace_core_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoTraceCore, pto_trace_core, PTO, TRACE_CORE, GObject)

PTO_AVAILABLE_IN_0_1
const char *pto_trace_core_get_name (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
const char *pto_trace_core_get_path (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
PtoTraceCoreKind pto_trace_core_get_kind (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
guint pto_trace_core_get_index (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
int pto_trace_core_get_cluster (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_core_get_busy_ns (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_core_get_bytes_sent (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_core_get_bytes_received (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_core_get_bytes_saved (PtoTraceCore *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_core_to_string (PtoTraceCore *self);

G_END_DECLS
