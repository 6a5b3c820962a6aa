/* pto-cluster-file.h: which remote workers does a file name?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-worker.h"

G_BEGIN_DECLS

#define PTO_TYPE_CLUSTER_FILE (pto_cluster_file_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoClusterFile, pto_cluster_file, PTO, CLUSTER_FILE, GObject)

PTO_AVAILABLE_IN_0_1
PtoClusterFile *pto_cluster_file_new (const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_cluster_file_get_deadline (PtoClusterFile *self);
PTO_AVAILABLE_IN_0_1
guint pto_cluster_file_get_n_places (PtoClusterFile *self);
PTO_AVAILABLE_IN_0_1
char *pto_cluster_file_dup_name (PtoClusterFile *self, guint place);
PTO_AVAILABLE_IN_0_1
char *pto_cluster_file_dup_address (PtoClusterFile *self, guint place);
PTO_AVAILABLE_IN_0_1
char **pto_cluster_file_dup_command (PtoClusterFile *self, guint place);
PTO_AVAILABLE_IN_0_1
guint pto_cluster_file_get_n_workers (PtoClusterFile *self, guint place);
PTO_AVAILABLE_IN_0_1
char *pto_cluster_file_dup_job (PtoClusterFile *self, guint place, guint *rank);
PTO_AVAILABLE_IN_0_1
char *pto_cluster_file_to_string (PtoClusterFile *self);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_add_cluster (PtoWorker *worker, PtoClusterFile *file, GError **error);

G_END_DECLS
