/* pto-callable.h: what can a worker run: a kernel, or an orchestration with its kernels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-orchestrator.h"

G_BEGIN_DECLS

#define PTO_TYPE_CALLABLE (pto_callable_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoCallable, pto_callable, PTO, CALLABLE, GObject)

/**
 * PtoSubFunc:
 * @args: the arguments of the task: tensors first, then scalars; no directions; valid during the
 * call
 * @user_data: (closure): what was given to the callable
 * @error: where to say why it failed
 *
 * What a SUB worker runs.
 *
 * Tensors are memory that this process shares with its parent: what is written there is seen there.
 * Thread safety: called on the main thread of a child process, or on the thread of a thread child.
 *
 * Returns: %TRUE; %FALSE fails the task with @error
 *
 * Since: 0.1
 */
typedef gboolean (*PtoSubFunc) (PtoTaskArgs *args, gpointer user_data, GError **error);

PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_sub (const char *name, PtoSubFunc func, gpointer user_data,
                                   GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_orchestration (const char *name, PtoOrchestrationFunc func,
                                             gpointer user_data, GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_symbol (PtoCallableKind kind, const char *library_and_symbol,
                                      GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_import (PtoCallableKind kind, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallableSource pto_callable_get_source (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_kernel (PtoCoreType core_type, const char *path, const char *symbol,
                                      GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_chip (const char *path, const char *function, GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_new_for_directory (const char *directory, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_add_kernel (PtoCallable *chip, guint func_id, const char *name,
                                  PtoCallable *kernel, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_set_cost (PtoCallable *kernel, const char *cost, GError **error);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_cost (PtoCallable *kernel);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_set_signature (PtoCallable *kernel, const PtoDirection *directions,
                                     gsize n_directions, GError **error);
PTO_AVAILABLE_IN_0_1
const PtoDirection *pto_callable_get_signature (PtoCallable *kernel, gsize *n_directions);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_set_n_args (PtoCallable *kernel, int n_args, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_callable_get_n_args (PtoCallable *kernel);
PTO_AVAILABLE_IN_0_1
PtoCallableKind pto_callable_get_kind (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
PtoCoreType pto_callable_get_core_type (PtoCallable *kernel);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_path (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_symbol (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_name (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
void pto_callable_set_name (PtoCallable *callable, const char *name);
PTO_AVAILABLE_IN_0_1
guint pto_callable_get_n_kernels (PtoCallable *chip);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_get_kernel (PtoCallable *chip, guint func_id);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_kernel_name (PtoCallable *chip, guint func_id);

G_END_DECLS
