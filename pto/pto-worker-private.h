/* pto-worker-private.h: what does an orchestrator ask of its worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-worker.h"

G_BEGIN_DECLS

/* The number that tasks of a running orchestration function name a kernel by; builds and loads it
 * on first use. */
gboolean pto_worker_find_kernel (PtoWorker *worker, PtoCallable *kernel, gint32 *id,
                                 GError **error);

G_END_DECLS
