/* closure.c: how does a function of this process become a callable?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "function.h"

#include "base/binding.h"
#include "base/locks.h"
#include "call-foreign.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static GHashTable *closures; /* by their bytes, not owned; PTO_LOCK_CLOSURES */

static guint
closure_hash (gconstpointer key)
{
  guint hash;

  memcpy (&hash, key, sizeof hash);
  return hash;
}

static gboolean
closure_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, PTO_CLOSURE_SIZE) == 0;
}

PtoClosure *
pto_callable_get_closure (PtoCallable *self)
{
  if (PTO_IS_SUB_FUNCTION (self))
    return &PTO_SUB_FUNCTION (self)->closure;
  return PTO_IS_ORCHESTRATION_FUNCTION (self) ? &PTO_ORCHESTRATION_FUNCTION (self)->closure : NULL;
}

static void
add_closure (PtoCallable *self, PtoClosure *closure)
{
  /* The kernel's generator, which a fork does not copy. */
  while (getentropy (closure->id, PTO_CLOSURE_SIZE) != 0 && errno == EINTR)
    ;
  pto_lock (PTO_LOCK_CLOSURES);
  if (closures == NULL)
    closures = g_hash_table_new (closure_hash, closure_equal);
  g_hash_table_insert (closures, closure->id, self);
  pto_unlock (PTO_LOCK_CLOSURES);
}

PtoCallable *
pto_callable_find_closure (const guint8 *id)
{
  PtoCallable *callable;

  pto_lock (PTO_LOCK_CLOSURES);
  callable = closures != NULL ? g_hash_table_lookup (closures, id) : NULL;
  if (callable != NULL)
    g_object_ref (callable);
  pto_unlock (PTO_LOCK_CLOSURES);
  return callable;
}

/* What destroys a closure's data in the context where it is at home. */
typedef struct
{
  GDestroyNotify destroy;
  gpointer data;
} Destruction;

static void
destruction_free (gpointer data)
{
  Destruction *destruction = data;

  destruction->destroy (destruction->data);
  g_free (destruction);
}

static gboolean
end_source (gpointer data)
{
  return G_SOURCE_REMOVE;
}

static void
destroy_data (const PtoClosure *closure)
{
  GSource *source;
  Destruction *destruction;

  if (closure->destroy == NULL || closure->process != getpid ())
    return;
  if (closure->owner == g_thread_self ())
    {
      closure->destroy (closure->data);
      return;
    }
  destruction = g_new (Destruction, 1);
  destruction->destroy = closure->destroy;
  destruction->data = closure->data;
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_static_name (source, "pto closure");
  /* Destroyed with the source: also when the context goes without calling it. */
  g_source_set_callback (source, end_source, destruction, destruction_free);
  g_source_attach (source, closure->context);
  g_source_unref (source);
}

/* --- the two types --- */

/**
 * PtoSubFunction:
 *
 * A function of this process for SUB workers.
 *
 * Made by [ctor@Pto.SubFunction.new]. Source: seed 001 section 5. Thread safety: as
 * [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoSubFunction, pto_sub_function, PTO_TYPE_CALLABLE)

/**
 * PtoOrchestrationFunction:
 *
 * A function of this process that submits tasks on workers of level 3 and up.
 *
 * Made by [ctor@Pto.OrchestrationFunction.new]. Source: seed 001 section 9. Thread safety: as
 * [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoOrchestrationFunction, pto_orchestration_function, PTO_TYPE_CALLABLE)

static GObjectClass *
get_parent_class (GObject *object)
{
  return g_type_class_peek_parent (G_OBJECT_GET_CLASS (object));
}

/* A reference that was found before this keeps it from being finalized, and none can be found
 * afterwards. */
static void
dispose (GObject *object)
{
  PtoClosure *closure = pto_callable_get_closure (PTO_CALLABLE (object));

  if (closure->func != NULL)
    {
      pto_lock (PTO_LOCK_CLOSURES);
      g_hash_table_remove (closures, closure->id);
      pto_unlock (PTO_LOCK_CLOSURES);
    }
  get_parent_class (object)->dispose (object);
}

static void
finalize (GObject *object)
{
  PtoClosure *closure = pto_callable_get_closure (PTO_CALLABLE (object));

  destroy_data (closure);
  g_clear_pointer (&closure->context, g_main_context_unref);
  g_clear_pointer (&closure->owner, g_thread_unref);
  g_free (closure->import_path);
  get_parent_class (object)->finalize (object);
}

static void
pto_sub_function_class_init (PtoSubFunctionClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = dispose;
  G_OBJECT_CLASS (klass)->finalize = finalize;
}

static void
pto_sub_function_init (PtoSubFunction *self)
{
}

static void
pto_orchestration_function_class_init (PtoOrchestrationFunctionClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = dispose;
  G_OBJECT_CLASS (klass)->finalize = finalize;
}

static void
pto_orchestration_function_init (PtoOrchestrationFunction *self)
{
}

static PtoCallable *
closure_new (GType type, PtoCallableKind kind, const char *name, GCallback func, gpointer user_data,
             GDestroyNotify destroy)
{
  PtoCallable *callable = pto_callable_make (type, kind, PTO_CALLABLE_SOURCE_CLOSURE, name);
  PtoClosure *closure = pto_callable_get_closure (callable);

  closure->func = func;
  closure->data = user_data;
  closure->destroy = destroy;
  /* Who has nothing to destroy keeps nobody's context. */
  if (destroy != NULL)
    closure->context = g_main_context_ref_thread_default ();
  closure->owner = g_thread_ref (g_thread_self ());
  closure->process = getpid ();
  closure->is_javascript = pto_override_is_javascript () && !pto_function_is_native (func);
  add_closure (callable, closure);
  return callable;
}

/**
 * pto_sub_function_new: (constructor)
 * @name: what messages and traces call it
 * @func: (scope notified) (closure user_data) (destroy destroy): a function of this process
 * @user_data: for @func
 * @destroy: (nullable): for @user_data
 *
 * Makes a function for SUB workers of a function of this process.
 *
 * Child processes have it if they were forked later; a worker that has its children already begins
 * those anew that are to run it. Two callables are never the same, even of one function. @destroy
 * is called when the callable goes, in the main context that is this thread's default, and in no
 * other process.
 *
 * Source: seed 001 section 5. Thread safety: any thread.
 *
 * Returns: (transfer full): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_sub_function_new (const char *name, PtoSubFunc func, gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (func != NULL, NULL);

  return closure_new (PTO_TYPE_SUB_FUNCTION, PTO_CALLABLE_SUB, name, G_CALLBACK (func), user_data,
                      destroy);
}

/**
 * pto_orchestration_function_new: (constructor)
 * @name: what messages and traces call it
 * @func: (scope notified) (closure user_data) (destroy destroy): a function of this process
 * @user_data: for @func
 * @destroy: (nullable): for @user_data
 *
 * Makes an orchestration for workers of level 3 and up of a function of this process.
 *
 * Otherwise like [ctor@Pto.SubFunction.new]. Source: seed 001 section 9. Thread safety: any
 * thread.
 *
 * Returns: (transfer full): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_orchestration_function_new (const char *name, PtoOrchestrationFunc func, gpointer user_data,
                                GDestroyNotify destroy)
{
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (func != NULL, NULL);

  return closure_new (PTO_TYPE_ORCHESTRATION_FUNCTION, PTO_CALLABLE_ORCHESTRATION, name,
                      G_CALLBACK (func), user_data, destroy);
}

gboolean
pto_callable_is_javascript (PtoCallable *callable)
{
  const PtoClosure *closure = pto_callable_get_closure (callable);

  return closure != NULL && closure->is_javascript;
}

static gboolean
set_import_path (PtoCallable *callable, const char *path, GError **error)
{
  PtoClosure *closure = pto_callable_get_closure (callable);

  if (path != NULL && !pto_callable_check_import_path (path, error))
    return FALSE;
  g_free (closure->import_path);
  closure->import_path = g_strdup (path);
  return TRUE;
}

/**
 * pto_sub_function_set_import_path:
 * @function: a function
 * @path: (nullable): `module:qualname` by which an interpreter finds the same function
 * @error: where to say why not
 *
 * Says that the function can be imported, too.
 *
 * A worker that has its children already is then registered the path, so that they import the
 * function and need not begin anew; otherwise the function itself, which they have from birth. For
 * the binding of a language. Fails with %PTO_ERROR_INVALID_ARGS for a path of another form. Thread
 * safety: one thread at a time.
 *
 * Returns: %TRUE if it is so
 *
 * Since: 0.1
 */
gboolean
pto_sub_function_set_import_path (PtoSubFunction *function, const char *path, GError **error)
{
  g_return_val_if_fail (PTO_IS_SUB_FUNCTION (function), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return set_import_path ((PtoCallable *) function, path, error);
}

/**
 * pto_sub_function_get_import_path:
 * @function: a function
 *
 * Gives what children that are there import it by.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a path; %NULL: they begin anew
 *
 * Since: 0.1
 */
const char *
pto_sub_function_get_import_path (PtoSubFunction *function)
{
  g_return_val_if_fail (PTO_IS_SUB_FUNCTION (function), NULL);

  return function->closure.import_path;
}

/**
 * pto_orchestration_function_set_import_path:
 * @function: a function
 * @path: (nullable): `module:qualname` by which an interpreter finds the same function
 * @error: where to say why not
 *
 * Says that the function can be imported, too, as [method@Pto.SubFunction.set_import_path].
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for a path of another form. Thread safety: one thread at a
 * time.
 *
 * Returns: %TRUE if it is so
 *
 * Since: 0.1
 */
gboolean
pto_orchestration_function_set_import_path (PtoOrchestrationFunction *function, const char *path,
                                            GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATION_FUNCTION (function), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return set_import_path ((PtoCallable *) function, path, error);
}

/**
 * pto_orchestration_function_get_import_path:
 * @function: a function
 *
 * Gives what children that are there import it by.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a path; %NULL: they begin anew
 *
 * Since: 0.1
 */
const char *
pto_orchestration_function_get_import_path (PtoOrchestrationFunction *function)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATION_FUNCTION (function), NULL);

  return function->closure.import_path;
}
