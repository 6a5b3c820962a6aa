/* trace-items.h: what do others see of the items of a trace?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "pto-trace-items.h"
#include "trace.h"

G_BEGIN_DECLS

/* Of a task: its id, and where it is. */
const PtoTracePart *pto_trace_task_peek (PtoTraceTask *task, guint64 *id);

/* The one of that number of a worker's trace. trace, which it keeps, keeps the path. */
PtoTraceCore *pto_trace_core_make (PtoTrace *trace, const char *path, PtoTrace *of, guint number,
                                   guint64 busy, const guint64 moved[PTO_TRACE_N_MOVED]);

G_END_DECLS
