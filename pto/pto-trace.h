/* pto-trace.h: what happened to every task of a run, and how is it looked at?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_TRACE (pto_trace_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoTrace, pto_trace, PTO, TRACE, GObject)

PTO_AVAILABLE_IN_0_1
PtoTrace *pto_trace_new_from_file (const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_save (PtoTrace *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_save_html (PtoTrace *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_save_json (PtoTrace *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_save_perfetto (PtoTrace *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_save_svg (PtoTrace *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_to_html (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_to_json (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
GBytes *pto_trace_to_perfetto (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_to_svg (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_summarize (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
const char *pto_trace_get_title (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
const char *pto_trace_get_sha256 (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
gboolean pto_trace_is_virtual (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_recorded (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_dropped (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_bytes_sent (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_bytes_received (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_bytes_saved (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_n_tasks (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_n_edges (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_elapsed_ns (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint64 *pto_trace_dup_critical_path (PtoTrace *self, gsize *n_tasks);
PTO_AVAILABLE_IN_0_1
guint64 pto_trace_get_critical_path_ns (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
guint pto_trace_get_n_cores (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_dup_core_name (PtoTrace *self, guint core);
PTO_AVAILABLE_IN_0_1
double pto_trace_get_core_utilization (PtoTrace *self, guint core);
PTO_AVAILABLE_IN_0_1
GListModel *pto_trace_list_tasks (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
GListModel *pto_trace_list_edges (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
GListModel *pto_trace_list_cores (PtoTrace *self);
PTO_AVAILABLE_IN_0_1
char *pto_trace_to_string (PtoTrace *self);

G_END_DECLS
