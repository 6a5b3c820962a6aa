/* pto-remote.h: how does a process become a worker of somebody else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-worker.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_0_1
PtoWorker *pto_worker_add_remote_worker (PtoWorker *worker, const char *address, GVariant *options,
                                         GError **error);
PTO_AVAILABLE_IN_0_1
PtoWorker **pto_worker_add_remote_job (PtoWorker *worker, const char *const *addresses,
                                       GVariant *options, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_worker_dup_remote_address (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
gboolean pto_remote_serve (GError **error);

G_END_DECLS
