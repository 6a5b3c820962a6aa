/* pto-callable-closure.c: how does a function of this process become a callable?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-callable-private.h"

#include "pto-lock-private.h"

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

static void
add_closure (PtoCallable *self)
{
  /* The kernel's generator, which a fork does not copy. */
  while (getentropy (self->closure, PTO_CLOSURE_SIZE) != 0 && errno == EINTR)
    ;
  pto_lock (PTO_LOCK_CLOSURES);
  if (closures == NULL)
    closures = g_hash_table_new (closure_hash, closure_equal);
  g_hash_table_insert (closures, self->closure, self);
  pto_unlock (PTO_LOCK_CLOSURES);
}

PtoCallable *
pto_callable_find_closure (const guint8 *closure)
{
  PtoCallable *callable;

  pto_lock (PTO_LOCK_CLOSURES);
  callable = closures != NULL ? g_hash_table_lookup (closures, closure) : NULL;
  if (callable != NULL)
    g_object_ref (callable);
  pto_unlock (PTO_LOCK_CLOSURES);
  return callable;
}

void
pto_callable_hide_closure (PtoCallable *self)
{
  pto_lock (PTO_LOCK_CLOSURES);
  g_hash_table_remove (closures, self->closure);
  pto_unlock (PTO_LOCK_CLOSURES);
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

void
pto_callable_destroy_closure (PtoCallable *self)
{
  GSource *source;
  Destruction *destruction;

  if (self->destroy == NULL || self->process != getpid ())
    return;
  if (self->owner == g_thread_self ())
    {
      self->destroy (self->func_data);
      return;
    }
  destruction = g_new (Destruction, 1);
  destruction->destroy = self->destroy;
  destruction->data = self->func_data;
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_static_name (source, "pto closure");
  /* Destroyed with the source: also when the context goes without calling it. */
  g_source_set_callback (source, end_source, destruction, destruction_free);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

static PtoCallable *
closure_new (PtoCallableKind kind, const char *name, gpointer user_data, GDestroyNotify destroy)
{
  PtoCallable *callable = g_object_new (PTO_TYPE_CALLABLE, NULL);

  callable->kind = kind;
  callable->source = PTO_CALLABLE_SOURCE_CLOSURE;
  callable->name = g_utf8_make_valid (name, -1);
  callable->func_data = user_data;
  callable->destroy = destroy;
  callable->context = g_main_context_ref_thread_default ();
  callable->owner = g_thread_ref (g_thread_self ());
  callable->process = getpid ();
  add_closure (callable);
  return callable;
}

/**
 * pto_callable_new_sub: (constructor)
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
pto_callable_new_sub (const char *name, PtoSubFunc func, gpointer user_data, GDestroyNotify destroy)
{
  PtoCallable *callable;

  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (func != NULL, NULL);

  callable = closure_new (PTO_CALLABLE_SUB, name, user_data, destroy);
  callable->sub = func;
  return callable;
}

/**
 * pto_callable_new_orchestration: (constructor)
 * @name: what messages and traces call it
 * @func: (scope notified) (closure user_data) (destroy destroy): a function of this process
 * @user_data: for @func
 * @destroy: (nullable): for @user_data
 *
 * Makes an orchestration for workers of level 3 and up of a function of this process.
 *
 * Otherwise like [ctor@Pto.Callable.new_sub]. Source: seed 001 section 9. Thread safety: any
 * thread.
 *
 * Returns: (transfer full): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_callable_new_orchestration (const char *name, PtoOrchestrationFunc func, gpointer user_data,
                                GDestroyNotify destroy)
{
  PtoCallable *callable;

  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (func != NULL, NULL);

  callable = closure_new (PTO_CALLABLE_ORCHESTRATION, name, user_data, destroy);
  callable->orchestration = func;
  return callable;
}
