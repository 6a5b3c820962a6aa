/* pto-trace-topics.h: which questions does a trace answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-trace.h"

G_BEGIN_DECLS

/**
 * PtoTraceTopic:
 * @PTO_TRACE_TOPIC_SUMMARY: how long it took, how busy cores were, and where the time went
 * @PTO_TRACE_TOPIC_CRITICAL_PATH: the tasks that made the run as long as it was, and what went by
 *   between them
 * @PTO_TRACE_TOPIC_OVERHEAD: what the tasks of each kernel waited for, from their submit on
 * @PTO_TRACE_TOPIC_SCOPES: what the scopes of each line held at most, and what sizes of rings would
 * do
 * @PTO_TRACE_TOPIC_DEPS: which task waits for which, and why; as text in the language of Graphviz
 * @PTO_TRACE_TOPIC_COUNTERS: what each task and each core was busy with and waited for, and the
 * bytes that went in and out
 *
 * What can be asked of a trace.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_TRACE_TOPIC_SUMMARY,
  PTO_TRACE_TOPIC_CRITICAL_PATH,
  PTO_TRACE_TOPIC_OVERHEAD,
  PTO_TRACE_TOPIC_SCOPES,
  PTO_TRACE_TOPIC_DEPS,
  PTO_TRACE_TOPIC_COUNTERS
} PtoTraceTopic;

PTO_AVAILABLE_IN_0_1
char *pto_trace_describe (PtoTrace *self, PtoTraceTopic topic);
PTO_AVAILABLE_IN_0_1
char *pto_trace_describe_json (PtoTrace *self, PtoTraceTopic topic);
PTO_AVAILABLE_IN_0_1
char *pto_trace_explain_task (PtoTrace *self, guint64 id, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_explain_task_json (PtoTrace *self, guint64 id, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_compare (PtoTrace *self, PtoTrace *other);
PTO_AVAILABLE_IN_0_1
char *pto_trace_compare_json (PtoTrace *self, PtoTrace *other);
PTO_AVAILABLE_IN_0_1
char *pto_trace_explain (PtoTrace *self, const char *task, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_explain_json (PtoTrace *self, const char *task, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_predict (PtoTrace *self, const char *const *settings, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_trace_predict_json (PtoTrace *self, const char *const *settings, GError **error);

G_END_DECLS
