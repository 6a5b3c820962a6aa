/* pto-function.h: which functions does a worker call?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-callable.h"

G_BEGIN_DECLS

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

/**
 * PtoOrchestrationFunc:
 * @orchestrator: where tasks are submitted; valid during the call only
 * @args: (nullable): what was given to the run
 * @config: (nullable): what was given to the run
 * @user_data: (closure): what was given to the run
 * @error: where to say why it failed
 *
 * A task graph written as a function.
 *
 * Thread safety: called on the thread that calls [method@Pto.Worker.run]; for an asynchronous run,
 * in the main context that was the thread's default when [method@Pto.Worker.run_async] was called.
 *
 * Returns: %TRUE when the graph is complete; %FALSE fails the run with @error
 *
 * Since: 0.1
 */
typedef gboolean (*PtoOrchestrationFunc) (PtoOrchestrator *orchestrator, PtoTaskArgs *args,
                                          PtoCallConfig *config, gpointer user_data,
                                          GError **error);

/**
 * PtoImportFunc:
 * @kind: %PTO_CALLABLE_SUB or %PTO_CALLABLE_ORCHESTRATION
 * @path: `module:qualname`
 * @user_data: (closure): what was given with it
 * @error: where to say why there is none
 *
 * Imports a function. Called in the process that is to run it.
 *
 * Returns: (transfer full) (nullable): a callable made of a function of this process
 *
 * Since: 0.1
 */
typedef PtoCallable *(*PtoImportFunc) (PtoCallableKind kind, const char *path, gpointer user_data,
                                       GError **error);

#define PTO_TYPE_SUB_FUNCTION (pto_sub_function_get_type ())

typedef struct _PtoSubFunction PtoSubFunction;
typedef struct _PtoSubFunctionClass PtoSubFunctionClass;

PTO_AVAILABLE_IN_0_1
GType pto_sub_function_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_sub_function_new (const char *name, PtoSubFunc func, gpointer user_data,
                                   GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
gboolean pto_sub_function_set_import_path (PtoSubFunction *function, const char *path,
                                           GError **error);
PTO_AVAILABLE_IN_0_1
const char *pto_sub_function_get_import_path (PtoSubFunction *function);

static inline PtoSubFunction *
PTO_SUB_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_SUB_FUNCTION, PtoSubFunction);
}

static inline gboolean
PTO_IS_SUB_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_SUB_FUNCTION);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoSubFunction, g_object_unref)

#define PTO_TYPE_ORCHESTRATION_FUNCTION (pto_orchestration_function_get_type ())

typedef struct _PtoOrchestrationFunction PtoOrchestrationFunction;
typedef struct _PtoOrchestrationFunctionClass PtoOrchestrationFunctionClass;

PTO_AVAILABLE_IN_0_1
GType pto_orchestration_function_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_orchestration_function_new (const char *name, PtoOrchestrationFunc func,
                                             gpointer user_data, GDestroyNotify destroy);
PTO_AVAILABLE_IN_0_1
gboolean pto_orchestration_function_set_import_path (PtoOrchestrationFunction *function,
                                                     const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
const char *pto_orchestration_function_get_import_path (PtoOrchestrationFunction *function);

static inline PtoOrchestrationFunction *
PTO_ORCHESTRATION_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_ORCHESTRATION_FUNCTION,
                                     PtoOrchestrationFunction);
}

static inline gboolean
PTO_IS_ORCHESTRATION_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_ORCHESTRATION_FUNCTION);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoOrchestrationFunction, g_object_unref)

#define PTO_TYPE_IMPORTED_FUNCTION (pto_imported_function_get_type ())

typedef struct _PtoImportedFunction PtoImportedFunction;
typedef struct _PtoImportedFunctionClass PtoImportedFunctionClass;

PTO_AVAILABLE_IN_0_1
GType pto_imported_function_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_imported_function_new_for_symbol (PtoCallableKind kind,
                                                   const char *library_and_symbol, GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_imported_function_new (PtoCallableKind kind, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
const char *pto_imported_function_get_symbol (PtoImportedFunction *function);

static inline PtoImportedFunction *
PTO_IMPORTED_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_IMPORTED_FUNCTION, PtoImportedFunction);
}

static inline gboolean
PTO_IS_IMPORTED_FUNCTION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_IMPORTED_FUNCTION);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoImportedFunction, g_object_unref)

G_END_DECLS
