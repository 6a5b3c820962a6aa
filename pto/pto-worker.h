/* pto-worker.h: how does a program hold a simulated chip and run task graphs on it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-callable-handle.h"
#include "pto-function.h"
#include "pto-graph.h"

G_BEGIN_DECLS

#define PTO_TYPE_WORKER (pto_worker_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoWorker, pto_worker, PTO, WORKER, GObject)

/**
 * PtoForkFunc:
 * @user_data: (closure): what was given with it
 *
 * Makes a copy of this process, like fork(2). A language whose interpreter must know of forks gives
 * its own; Python's is `os.fork`.
 *
 * Returns: 0 in the child, its process id in the parent, -1 on failure
 *
 * Since: 0.1
 */
typedef int (*PtoForkFunc) (gpointer user_data);

PTO_AVAILABLE_IN_0_1
PtoWorker *pto_worker_new_host (guint level, guint n_devices, guint n_sub_workers,
                                const char *platform, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_add_worker (PtoWorker *worker, PtoWorker *child, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_n_workers (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_id (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoWorker *pto_worker_get_child (PtoWorker *worker, guint id);
PTO_AVAILABLE_IN_0_1
GListModel *pto_worker_get_children (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_n_sub_workers (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
guint64 pto_worker_get_heap_ring_size (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_get_progress (PtoWorker *worker, guint64 *done, guint64 *submitted,
                                  guint64 *failed);
PTO_AVAILABLE_IN_0_1
void pto_worker_set_progress_interval (PtoWorker *worker, guint interval);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_progress_interval (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_get_isolate (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoChildMode pto_worker_get_child_mode (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoRestart pto_worker_get_restart (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
char *pto_worker_dup_path (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
void pto_worker_set_fork_func (PtoWorker *worker, PtoForkFunc func, gpointer user_data,
                               GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
void pto_worker_set_import_func (PtoWorker *worker, PtoImportFunc func, gpointer user_data,
                                 GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
void pto_worker_set_default_fork_func (PtoForkFunc func, gpointer user_data,
                                       GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
void pto_worker_set_default_import_func (PtoImportFunc func, gpointer user_data,
                                         GDestroyNotify destroy);

PTO_AVAILABLE_IN_0_1
PtoWorker *pto_worker_new (guint level, const char *platform, GError **error);
PTO_AVAILABLE_IN_0_1
PtoWorker *pto_worker_new_chip (const char *platform, GError **error);

PTO_AVAILABLE_IN_0_1
char *pto_worker_to_string (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_level (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
const char *pto_worker_get_platform (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
guint pto_worker_get_device_id (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoWorkerState pto_worker_get_state (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoBackend pto_worker_get_backend (PtoWorker *worker);

PTO_AVAILABLE_IN_0_1
gboolean pto_worker_set_parameter (PtoWorker *worker, const char *name, const char *value,
                                   GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_worker_dup_parameter (PtoWorker *worker, const char *name, GError **error);
PTO_AVAILABLE_IN_0_1
char **pto_worker_list_parameters (void);
PTO_AVAILABLE_IN_0_1
const char *pto_worker_describe_parameter (const char *name);
PTO_AVAILABLE_IN_0_1
const char *pto_worker_get_parameter_variable (const char *name);

PTO_AVAILABLE_IN_0_1
gboolean pto_worker_start (PtoWorker *worker, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_start_async (PtoWorker *worker, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_start_finish (PtoWorker *worker, GAsyncResult *result, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_close (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
void pto_worker_close_async (PtoWorker *worker, GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_close_finish (PtoWorker *worker, GAsyncResult *result, GError **error);

PTO_AVAILABLE_IN_0_1
PtoCallableHandle *pto_worker_register (PtoWorker *worker, PtoCallable *callable,
                                        GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallableHandle *pto_worker_register_on (PtoWorker *worker, PtoCallable *callable,
                                           const int *workers, gsize n_workers,
                                           GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_register_async (PtoWorker *worker, PtoCallable *callable, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
PtoCallableHandle *pto_worker_register_finish (PtoWorker *worker, GAsyncResult *result,
                                               GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallableHandle *pto_worker_lookup (PtoWorker *worker, const char *name, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_unregister (PtoWorker *worker, PtoCallableHandle *handle, GError **error);

PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run (PtoWorker *worker, PtoOrchestrationFunc func, gpointer user_data,
                         PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
                         GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run_callable (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                                  PtoCallConfig *config, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_run_async (PtoWorker *worker, PtoOrchestrationFunc func, gpointer func_data,
                           GDestroyNotify func_data_destroy, PtoTaskArgs *args,
                           PtoCallConfig *config, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run_finish (PtoWorker *worker, GAsyncResult *result, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_run_callable_async (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                                    PtoCallConfig *config, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run_callable_finish (PtoWorker *worker, GAsyncResult *result, GError **error);

PTO_AVAILABLE_IN_0_1
PtoGraph *pto_worker_capture (PtoWorker *worker, PtoOrchestrationFunc func, gpointer user_data,
                              PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
                              GError **error);
PTO_AVAILABLE_IN_0_1
PtoGraph *pto_worker_capture_callable (PtoWorker *worker, PtoCallableHandle *handle,
                                       PtoTaskArgs *args, PtoCallConfig *config,
                                       GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run_graph (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args,
                               PtoCallConfig *config, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_worker_run_graph_async (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args,
                                 PtoCallConfig *config, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_run_graph_finish (PtoWorker *worker, GAsyncResult *result, GError **error);

PTO_AVAILABLE_IN_0_1
PtoRunStatistics *pto_worker_dup_statistics (PtoWorker *worker);
PTO_AVAILABLE_IN_0_1
PtoTrace *pto_worker_ref_trace (PtoWorker *worker);

PTO_AVAILABLE_IN_0_1
PtoBuffer *pto_worker_alloc_buffer (PtoWorker *worker, guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
PtoBuffer *pto_worker_import_buffer (PtoWorker *worker, const char *token, GError **error);
PTO_AVAILABLE_IN_0_1
guint64 pto_worker_malloc (PtoWorker *worker, guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_free (PtoWorker *worker, guint64 address, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_copy_to (PtoWorker *worker, guint64 address, GBytes *bytes, GError **error);
PTO_AVAILABLE_IN_0_1
GBytes *pto_worker_copy_from (PtoWorker *worker, guint64 address, guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_copy_to_address (PtoWorker *worker, guint64 address, guint64 host, guint64 size,
                                     GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_worker_copy_from_address (PtoWorker *worker, guint64 host, guint64 address,
                                       guint64 size, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_worker_dup_last_writer (PtoWorker *worker, guint64 address);

G_END_DECLS
