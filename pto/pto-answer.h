/* pto-answer.h: how is a process asked what its workers do, and what they wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-worker.h"

G_BEGIN_DECLS

/**
 * PtoAnswerFormat:
 * @PTO_ANSWER_FORMAT_TEXT: lines for people
 * @PTO_ANSWER_FORMAT_JSON: one object, whose members doc/asking.md lists
 * @PTO_ANSWER_FORMAT_METRICS: counters and gauges as OpenMetrics text
 *
 * In which form it is told what workers do.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_ANSWER_FORMAT_TEXT,
  PTO_ANSWER_FORMAT_JSON,
  PTO_ANSWER_FORMAT_METRICS
} PtoAnswerFormat;

PTO_AVAILABLE_IN_0_1
gboolean pto_answer_start (GError **error);
PTO_AVAILABLE_IN_0_1
void pto_answer_stop (void);
PTO_AVAILABLE_IN_0_1
gboolean pto_answer_is_on (void);
PTO_AVAILABLE_IN_0_1
char *pto_worker_ask_process (gint64 process, PtoAnswerFormat format, GCancellable *cancellable,
                              GError **error);

PTO_AVAILABLE_IN_0_1
char *pto_worker_describe_state (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
char *pto_worker_describe_state_json (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
char *pto_worker_dup_metrics (PtoWorker *worker);

G_END_DECLS
