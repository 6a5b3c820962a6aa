/* pto-orchestrator.h: how does an orchestration function submit tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_ORCHESTRATOR (pto_orchestrator_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoOrchestrator, pto_orchestrator, PTO, ORCHESTRATOR, GObject)

/**
 * PtoScopeFunc:
 * @orchestrator: an orchestrator
 * @user_data: (closure): what was given with it
 * @error: where to say why it failed
 *
 * The part of a task graph that belongs into one scope.
 *
 * Thread safety: called on the thread that calls [method@Pto.Orchestrator.with_scope], during the
 * call.
 *
 * Returns: %TRUE when it is complete; %FALSE: with @error
 *
 * Since: 0.1
 */
typedef gboolean (*PtoScopeFunc) (PtoOrchestrator *orchestrator, gpointer user_data,
                                  GError **error);

/**
 * PTO_IN: (skip)
 * @tensor: a [struct@Pto.Tensor] that the task reads
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_IN(tensor) ((const char *) "in"), ((PtoTensor *) (tensor))
/**
 * PTO_OUT: (skip)
 * @tensor: a [struct@Pto.Tensor] that the task writes
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_OUT(tensor) ((const char *) "out"), ((PtoTensor *) (tensor))
/**
 * PTO_INOUT: (skip)
 * @tensor: a [struct@Pto.Tensor] that the task reads, then writes
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_INOUT(tensor) ((const char *) "inout"), ((PtoTensor *) (tensor))
/**
 * PTO_OUT_EXISTING: (skip)
 * @tensor: a [struct@Pto.Tensor] in existing memory that the task writes
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_OUT_EXISTING(tensor) ((const char *) "out-existing"), ((PtoTensor *) (tensor))
/**
 * PTO_NO_DEP: (skip)
 * @tensor: a [struct@Pto.Tensor] that takes no part in dependencies
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_NO_DEP(tensor) ((const char *) "no-dep"), ((PtoTensor *) (tensor))
/**
 * PTO_COMMUTATIVE: (skip)
 * @tensor: a [struct@Pto.Tensor] that the task updates, in any order with others that do
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_COMMUTATIVE(tensor) ((const char *) "commutative"), ((PtoTensor *) (tensor))
/**
 * PTO_REDUCE: (skip)
 * @tensor: a [struct@Pto.Tensor] that the task reduces into, at the same time as others that do
 * @operation: a [enum@Pto.Reduction]
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_REDUCE(tensor, operation) \
  ((const char *) "reduce"), ((PtoTensor *) (tensor)), ((int) (operation))
/**
 * PTO_SCRATCH: (skip)
 * @tensor: a [struct@Pto.Tensor] without memory: type and shape of what the task has for itself
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_SCRATCH(tensor) ((const char *) "scratch"), ((PtoTensor *) (tensor))
/**
 * PTO_SCALAR: (skip)
 * @value: an integer, passed to the kernel in 64 bits; a `float` or `double` does not compile here
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_SCALAR(value) ((const char *) "scalar"), ((guint64) ((value) | 0))
/**
 * PTO_SCALAR_SIGNED: (skip)
 * @value: an integer with a sign, passed to the kernel in 64 bits
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_SCALAR_SIGNED(value) ((const char *) "signed"), ((gint64) ((value) | 0))
/**
 * PTO_SCALAR_FLOAT: (skip)
 * @value: a number, passed to the kernel as the bits of a `float`
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_SCALAR_FLOAT(value) ((const char *) "float"), ((double) (value))
/**
 * PTO_SCALAR_DOUBLE: (skip)
 * @value: a number, passed to the kernel as the bits of a `double`
 *
 * An argument of [method@Pto.Orchestrator.submit_full].
 *
 * Since: 0.1
 */
#define PTO_SCALAR_DOUBLE(value) ((const char *) "double"), ((double) (value))

PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit (PtoOrchestrator *orchestrator, PtoCallable *kernel,
                                  PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_full (PtoOrchestrator *orchestrator, PtoCallable *kernel,
                                       GError **error, ...) G_GNUC_NULL_TERMINATED;
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_mixed (PtoOrchestrator *orchestrator, PtoCallable *aic,
                                        PtoCallable *aiv0, PtoCallable *aiv1, PtoTaskArgs *args,
                                        GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_group (PtoOrchestrator *orchestrator, PtoCallable *const *kernels,
                                        gsize n_kernels, PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_group_members (PtoOrchestrator *orchestrator,
                                                PtoCallable *const *kernels, gsize n_kernels,
                                                PtoTaskArgs *const *args_list, gsize n_args,
                                                const int *cores, gsize n_cores, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_orchestrator_set_place (PtoOrchestrator *orchestrator, const char *file, guint line);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_needs_place (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_next_level (PtoOrchestrator *orchestrator,
                                             PtoCallableHandle *handle, PtoTaskArgs *args,
                                             PtoCallConfig *config, int worker, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_next_level_group (PtoOrchestrator *orchestrator,
                                                   PtoCallableHandle *handle,
                                                   PtoTaskArgs *const *args_list, gsize n_args,
                                                   PtoCallConfig *config, const int *workers,
                                                   gsize n_workers, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_sub (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                      PtoTaskArgs *args, int worker, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_sub_group (PtoOrchestrator *orchestrator,
                                            PtoCallableHandle *handle,
                                            PtoTaskArgs *const *args_list, gsize n_args,
                                            const int *workers, gsize n_workers, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_set_priority (PtoOrchestrator *orchestrator, guint priority,
                                        GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_orchestrator_get_priority (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_submit_order (PtoOrchestrator *orchestrator, PtoTaskArgs *args,
                                        GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_allreduce (PtoOrchestrator *orchestrator, PtoTensor *const *tensors,
                                     gsize n_tensors, PtoReduction operation, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_broadcast (PtoOrchestrator *orchestrator, PtoTensor *const *tensors,
                                     gsize n_tensors, guint root, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_alltoall (PtoOrchestrator *orchestrator, PtoTensor *const *from,
                                    gsize n_from, PtoTensor *const *to, gsize n_to, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_barrier (PtoOrchestrator *orchestrator, PtoTensor *const *tensors,
                                   gsize n_tensors, GError **error);
PTO_AVAILABLE_IN_0_1
gint64 pto_orchestrator_get_last_task (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
int pto_orchestrator_allocate_cluster (PtoOrchestrator *orchestrator, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_free_cluster (PtoOrchestrator *orchestrator, int cluster, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_orchestrator_get_n_clusters (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
guint *pto_orchestrator_dup_cluster_cores (PtoOrchestrator *orchestrator, int cluster,
                                           PtoCoreType core_type, gsize *n_cores, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_get_element (PtoOrchestrator *orchestrator, PtoTensor *tensor,
                                       gsize n_index, const guint64 *index, GValue *value,
                                       GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_set_element (PtoOrchestrator *orchestrator, PtoTensor *tensor,
                                       gsize n_index, const guint64 *index, const GValue *value,
                                       GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_orchestrator_alloc (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                                   const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_fill (PtoOrchestrator *orchestrator, PtoTensor *tensor,
                                const GValue *value, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_fill_after (PtoOrchestrator *orchestrator, PtoTensor *tensor,
                                      const GValue *value, const guint64 *after, gsize n_after,
                                      GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_begin_manual_scope (PtoOrchestrator *orchestrator, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_with_manual_scope (PtoOrchestrator *orchestrator, PtoScopeFunc func,
                                             gpointer user_data, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_begin_scope (PtoOrchestrator *orchestrator, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_end_scope (PtoOrchestrator *orchestrator, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_with_scope (PtoOrchestrator *orchestrator, PtoScopeFunc func,
                                      gpointer user_data, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_orchestrator_make_tensor (PtoOrchestrator *orchestrator, PtoDtype dtype,
                                         gsize n_dims, const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_orchestrator_make_tensor_at (PtoOrchestrator *orchestrator, int worker,
                                            PtoDtype dtype, gsize n_dims, const guint64 *shape,
                                            GError **error);
PTO_AVAILABLE_IN_0_1
PtoWorker *pto_orchestrator_get_worker (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
char *pto_orchestrator_to_string (PtoOrchestrator *orchestrator);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestrator_is_valid (PtoOrchestrator *orchestrator);

#ifndef __GI_SCANNER__

/* An open scope in C, as GMutexLocker is a mutex: g_autoptr (PtoScopeGuard) ends it at the end of
 * its block, also in a run that has failed, which tells why itself. Orchestrator thread. */
typedef void PtoScopeGuard;

/* As pto_orchestrator_begin_scope(); NULL with an error. */
static inline PtoScopeGuard *
pto_scope_guard_new (PtoOrchestrator *orchestrator, GError **error)
{
  return (pto_orchestrator_begin_scope) (orchestrator, error) ? orchestrator : NULL;
}

/* As pto_orchestrator_begin_manual_scope(); NULL with an error. */
static inline PtoScopeGuard *
pto_manual_scope_guard_new (PtoOrchestrator *orchestrator, GError **error)
{
  return (pto_orchestrator_begin_manual_scope) (orchestrator, error) ? orchestrator : NULL;
}

static inline void
pto_scope_guard_free (PtoScopeGuard *guard)
{
  pto_orchestrator_end_scope (PTO_ORCHESTRATOR (guard), NULL);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoScopeGuard, pto_scope_guard_free)

#ifndef PTO_COMPILATION

static inline PtoOrchestrator *
pto_orchestrator_at (PtoOrchestrator *orchestrator, const char *file, guint line)
{
  if (orchestrator != NULL && pto_orchestrator_needs_place (orchestrator))
    pto_orchestrator_set_place (orchestrator, file, line);
  return orchestrator;
}

static inline PtoOrchestrator *
pto_orchestrator_scope_at (PtoOrchestrator *orchestrator, const char *file, guint line)
{
  if (orchestrator != NULL)
    pto_orchestrator_set_place (orchestrator, file, line);
  return orchestrator;
}

/* Each notes its place. The name without parentheses behind it is the function above. */
#define pto_orchestrator_submit(orchestrator, ...) \
  (pto_orchestrator_submit) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_submit_full(orchestrator, ...)                                     \
  (pto_orchestrator_submit_full) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                  __VA_ARGS__)
#define pto_orchestrator_submit_mixed(orchestrator, ...)                                     \
  (pto_orchestrator_submit_mixed) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                   __VA_ARGS__)
#define pto_orchestrator_submit_group(orchestrator, ...)                                     \
  (pto_orchestrator_submit_group) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                   __VA_ARGS__)
#define pto_orchestrator_submit_group_members(orchestrator, ...) \
  (pto_orchestrator_submit_group_members) (                      \
      pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_submit_next_level(orchestrator, ...)                                     \
  (pto_orchestrator_submit_next_level) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                        __VA_ARGS__)
#define pto_orchestrator_submit_next_level_group(orchestrator, ...) \
  (pto_orchestrator_submit_next_level_group) (                      \
      pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_submit_sub(orchestrator, ...)                                     \
  (pto_orchestrator_submit_sub) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                 __VA_ARGS__)
#define pto_orchestrator_submit_sub_group(orchestrator, ...)                                     \
  (pto_orchestrator_submit_sub_group) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                       __VA_ARGS__)
#define pto_orchestrator_submit_order(orchestrator, ...)                                     \
  (pto_orchestrator_submit_order) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                   __VA_ARGS__)
#define pto_orchestrator_allreduce(orchestrator, ...)                                     \
  (pto_orchestrator_allreduce) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                __VA_ARGS__)
#define pto_orchestrator_broadcast(orchestrator, ...)                                     \
  (pto_orchestrator_broadcast) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                __VA_ARGS__)
#define pto_orchestrator_alltoall(orchestrator, ...)                                     \
  (pto_orchestrator_alltoall) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                               __VA_ARGS__)
#define pto_orchestrator_barrier(orchestrator, ...) \
  (pto_orchestrator_barrier) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_allocate_cluster(orchestrator, ...)                                     \
  (pto_orchestrator_allocate_cluster) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                       __VA_ARGS__)
#define pto_orchestrator_get_element(orchestrator, ...)                                     \
  (pto_orchestrator_get_element) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                  __VA_ARGS__)
#define pto_orchestrator_set_element(orchestrator, ...)                                     \
  (pto_orchestrator_set_element) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                  __VA_ARGS__)
#define pto_orchestrator_alloc(orchestrator, ...) \
  (pto_orchestrator_alloc) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_fill(orchestrator, ...) \
  (pto_orchestrator_fill) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_fill_after(orchestrator, ...)                                     \
  (pto_orchestrator_fill_after) (pto_orchestrator_at ((orchestrator), __FILE__, __LINE__), \
                                 __VA_ARGS__)
#define pto_orchestrator_begin_scope(orchestrator, ...)                                           \
  (pto_orchestrator_begin_scope) (pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), \
                                  __VA_ARGS__)
#define pto_orchestrator_begin_manual_scope(orchestrator, ...) \
  (pto_orchestrator_begin_manual_scope) (                      \
      pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_orchestrator_with_scope(orchestrator, ...)                                           \
  (pto_orchestrator_with_scope) (pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), \
                                 __VA_ARGS__)
#define pto_orchestrator_with_manual_scope(orchestrator, ...) \
  (pto_orchestrator_with_manual_scope) (                      \
      pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), __VA_ARGS__)
#define pto_scope_guard_new(orchestrator, ...)                                           \
  (pto_scope_guard_new) (pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), \
                         __VA_ARGS__)
#define pto_manual_scope_guard_new(orchestrator, ...)                                           \
  (pto_manual_scope_guard_new) (pto_orchestrator_scope_at ((orchestrator), __FILE__, __LINE__), \
                                __VA_ARGS__)

#endif

#endif

G_END_DECLS
