/* worker-register.c: how does a worker come to what it can run, and lose it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "worker.h"

#include "base/error.h"
#include "callable/callable-handle.h"
#include "callable/callable.h"
#include "callable/function.h"
#include "callable/identity.h"
#include "common/text.h"

GPtrArray *
pto_worker_steal_retired (PtoWorker *self)
{
  GPtrArray *retired = self->retired;

  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  return retired;
}

void
pto_worker_remove_retired (PtoWorker *self, GPtrArray *retired)
{
  for (guint i = 0; i < retired->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (retired, i);

      self->node.machine->ops->remove (self->node.machine, registration);
      pto_registry_forget (self->node.registry, registration);
    }
  g_ptr_array_unref (retired);
}

/* What is told to the machine once for all that have the same digest. */
static gboolean
add_first (PtoWorker *self, PtoRegistration *registration, GCancellable *cancellable,
           GError **error)
{
  gboolean added
      = self->node.machine->ops->add (self->node.machine, registration, cancellable, error);
  gboolean is_open = TRUE;

  g_mutex_lock (&self->lock);
  if (added)
    is_open = pto_worker_check_open (self, error);
  /* With the lock, so that a close takes what was added before it and nothing is added after it.
   */
  if (added && is_open)
    pto_registry_commit (self->node.registry, registration, TRUE);
  g_mutex_unlock (&self->lock);
  if (added && is_open)
    return TRUE;
  if (added)
    self->node.machine->ops->remove (self->node.machine, registration);
  pto_registry_commit (self->node.registry, registration, FALSE);
  return FALSE;
}

/* Also in a handler of run-progress, when the orchestration has ended. */
static gboolean
is_on_thread_of_run (PtoWorker *self)
{
  gboolean has_machine;

  g_mutex_lock (&self->lock);
  has_machine = self->in_use && self->user == g_thread_self ();
  g_mutex_unlock (&self->lock);
  return has_machine || pto_worker_get_own_orchestrator (self) != NULL;
}

/* Who has it, besides those that it was registered on before. */
static gboolean
extend_known (PtoWorker *self, PtoRegistration *known, const PtoRegistration *fresh,
              GCancellable *cancellable, GError **error)
{
  const PtoTargets *targets = pto_registration_peek_targets (fresh);

  if (self->node.machine->ops->extend == NULL || pto_registration_peek_targets (known) == NULL
      || self->node.machine->ops->extend (self->node.machine, known, targets, cancellable, error))
    return TRUE;
  /* It was counted. */
  pto_worker_unregister (self, known->handle, NULL);
  return FALSE;
}

/* Was it registered on remote workers, and nowhere else? */
static gboolean
is_remote_only (PtoWorker *self, const PtoRegistration *registration)
{
  const PtoTargets *targets = pto_registration_peek_targets (registration);

  if (targets == NULL || registration->callable->kind != PTO_CALLABLE_ORCHESTRATION)
    return FALSE;
  for (guint i = 0; i < pto_worker_get_n_workers (self); i++)
    if (pto_targets_have (targets, i) && pto_worker_peek_child (self, i)->node.remote == NULL)
      return FALSE;
  return TRUE;
}

static PtoCallableHandle *
add_registration (PtoWorker *self, PtoRegistration *fresh, GCancellable *cancellable,
                  GError **error)
{
  PtoCallableHandle *handle = NULL;
  PtoRegistration *registration;
  /* Who adds it may need the thread that runs the machine. */
  gboolean may_wait = self->node.level == 2 || !is_on_thread_of_run (self);
  gboolean is_first;

  registration
      = pto_registry_begin (self->node.registry, fresh, may_wait, cancellable, &is_first, error);
  if (registration == NULL)
    return NULL;
  if (is_first ? add_first (self, registration, cancellable, error)
               : extend_known (self, registration, fresh, cancellable, error))
    {
      handle = pto_callable_handle_ref (registration->handle);
      /* With the lock the last one to say it has seen the last change. */
      g_mutex_lock (&self->lock);
      pto_callable_handle_set_remote (handle, is_remote_only (self, registration));
      g_mutex_unlock (&self->lock);
    }
  pto_registration_unref (registration);
  return handle;
}

PtoCallableHandle *
pto_worker_adopt (PtoWorker *self, PtoRegistration *registration, GError **error)
{
  return add_registration (self, registration, NULL, error);
}

/* What children are told: of a function of this process those that are there its import path, if it
 * has one and they have not inherited it. A reference. */
static PtoCallable *
choose (PtoWorker *self, PtoCallable *callable, gboolean has_children)
{
  const PtoClosure *closure = pto_callable_get_closure (callable);
  PtoCallable *chosen;
  guint index;

  if (!has_children || closure == NULL || closure->import_path == NULL
      || g_str_has_prefix (closure->import_path, PTO_SERIALIZED_PYTHON)
      || pto_registry_find_callable (self->node.registry, callable, &index))
    return g_object_ref (callable);
  chosen = pto_imported_function_new (callable->kind, closure->import_path, NULL);
  if (chosen != NULL)
    chosen->idempotent = callable->idempotent;
  return chosen;
}

static gboolean
name_targets (PtoWorker *self, PtoCallable *callable, const int *workers, gsize n_workers,
              PtoTargets *targets, GError **error)
{
  if (self->node.machine->ops->name_targets != NULL)
    return self->node.machine->ops->name_targets (self->node.machine, callable, workers, n_workers,
                                                  targets, error);
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("\"%s\" is registered on a chip, which has no workers below it that could be "
         "named"),
      callable->name);
}

/* Nobody would tell one that runs elsewhere. */
static gboolean
check_here (PtoWorker *self, GError **error)
{
  g_autofree char *path = NULL;

  if (self->node.parent == NULL || self->serves || pto_worker_is_foreign (self->node.parent->worker)
      || pto_worker_get_state (self) != PTO_WORKER_STATE_NEW
      || !pto_worker_is_made (self->node.parent->worker))
    return TRUE;
  path = pto_worker_dup_path (self);
  return pto_refuse (
      error, PTO_ERROR_BUSY,
      _ ("%s runs elsewhere since the worker above it was started: register on it before "
         "that, for what its orchestrations look up, or on the one above"),
      path);
}

static PtoCallableHandle *
register_callable (PtoWorker *self, PtoCallable *callable, const int *workers, gsize n_workers,
                   GCancellable *cancellable, GError **error)
{
  g_autoptr (PtoCallable) chosen = NULL;
  PtoTargets targets;
  PtoRegistration *fresh;
  PtoCallableHandle *handle;
  gboolean has_children;
  gboolean ok;

  if (!pto_worker_check_process (self, error) || !check_here (self, error))
    return NULL;
  g_mutex_lock (&self->lock);
  ok = pto_worker_check_open (self, error);
  has_children = self->node.level > 2 && self->state == PTO_WORKER_STATE_READY;
  g_mutex_unlock (&self->lock);
  if (!ok || !pto_worker_check_level (self->node.level, error)
      || !self->node.machine->ops->accepts (self->node.machine, callable, error)
      || (n_workers > 0 && !name_targets (self, callable, workers, n_workers, &targets, error)))
    return NULL;

  chosen = choose (self, callable, has_children);
  fresh = pto_worker_register_ahead (self, chosen);
  if (fresh == NULL)
    fresh = pto_registration_new (chosen, self->node.platform,
                                  self->params.values[PTO_PARAMETER_CHECK] == PTO_CHECK_ACCESS,
                                  pto_worker_report_progress, self, cancellable, error);
  if (fresh == NULL)
    return NULL;
  if (n_workers > 0)
    pto_registration_set_targets (fresh, &targets);
  handle = add_registration (self, fresh, cancellable, error);
  pto_registration_unref (fresh);
  return handle;
}

/**
 * pto_worker_register:
 * @worker: a worker
 * @callable: what it is to run
 * @cancellable: (nullable): ends compilers, and waiting for children
 * @error: where to say why not
 *
 * Builds and loads a callable with all its kernels, several at once, and gives it a name.
 *
 * A worker of level 3 or up tells every child that can run it, also while it runs, and returns when
 * all of them have checked and loaded it; those that are forked later have it from birth. A
 * function of this program that was made after the children can not be sent: they import it if it
 * has a path ([method@Pto.SubFunction.set_import_path]), or are forked again, each when it is idle.
 * That is in two phases: when one child refuses, or dies before all have agreed, nothing is
 * registered on any.
 *
 * An orchestration function can register too: it then waits for what the children are doing just
 * now, and the end of its run ends the waiting. A task that waits for the function to go on would
 * wait for ever: register before the run what such a graph needs.
 *
 * What is in the user's cache is not built again. Registrations are counted: the same content
 * gives the same handle, and [method@Pto.Worker.unregister] has to be called as often. Emits
 * [signal@Pto.Worker::progress] for each object.
 *
 * Fails with %PTO_ERROR_COMPILE (with the compiler's own text), %PTO_ERROR_LOAD (naming file and
 * missing function), %PTO_ERROR_TAMPERED, %PTO_ERROR_WORKER_LOST, %G_IO_ERROR_CANCELLED,
 * %PTO_ERROR_SYSTEM, %PTO_ERROR_CLOSED, or %PTO_ERROR_BUSY (from an orchestration function, while
 * another thread registers the same; or the worker is below one that has started); then nothing is
 * registered. Source: seed 001 section 2.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): the name of the callable on this worker
 *
 * Since: 0.1
 */
PtoCallableHandle *
pto_worker_register (PtoWorker *worker, PtoCallable *callable, GCancellable *cancellable,
                     GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return register_callable (worker, callable, NULL, 0, cancellable, error);
}

/**
 * pto_worker_register_on:
 * @worker: a worker of level 3 or more
 * @callable: what some of those below it are to run
 * @workers: (array length=n_workers): their ids ([method@Pto.Worker.get_id]); of a SUB function the
 *   numbers of SUB workers
 * @n_workers: how many; with 0 it is [method@Pto.Worker.register]
 * @cancellable: (nullable): ends compilers, and waiting for children
 * @error: where to say why not
 *
 * Does the same as [method@Pto.Worker.register], for those workers only.
 *
 * Tasks of it go to them and nobody else: one that names another worker is refused when it is
 * submitted, and one that names none is for the worker, among those that have it, that fewest tasks
 * of the run were bound to by then. Registered again it is known to those that are named now, too,
 * or to all.
 *
 * A function of this process can not be sent to a remote worker. One that is named is refused here,
 * or when it is started, and not when a task of it comes.
 *
 * Fails like [method@Pto.Worker.register], with %PTO_ERROR_NOT_FOUND when there is no such worker,
 * with %PTO_ERROR_NOT_SUPPORTED for a function of this process and a remote worker, and with
 * %PTO_ERROR_INVALID_ARGS when it could not run the callable: then nothing is registered. Source:
 * seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer full): the name of the callable on this worker
 *
 * Since: 0.1
 */
PtoCallableHandle *
pto_worker_register_on (PtoWorker *worker, PtoCallable *callable, const int *workers,
                        gsize n_workers, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);
  g_return_val_if_fail (workers != NULL || n_workers == 0, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return register_callable (worker, callable, workers, n_workers, cancellable, error);
}

/**
 * pto_worker_lookup:
 * @worker: a worker
 * @name: of something that is registered on it
 * @error: where to say why there is none
 *
 * Finds what is registered on the worker by its name: for functions that did not register it
 * themselves, as orchestrations of a remote worker ([method@Pto.Worker.add_remote_worker]).
 *
 * Fails with %PTO_ERROR_NOT_FOUND, and with %PTO_ERROR_INVALID_ARGS when several have that name.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): its handle
 *
 * Since: 0.1
 */
PtoCallableHandle *
pto_worker_lookup (PtoWorker *worker, const char *name, GError **error)
{
  PtoCallableHandle *handle;
  g_autofree char *path = NULL;
  guint n;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  handle = pto_registry_ref_by_name (worker->node.registry, name, &n);
  if (handle != NULL)
    return handle;
  path = pto_worker_dup_path (worker);
  if (n == 0)
    pto_refuse (error, PTO_ERROR_NOT_FOUND, _ ("nothing named \"%s\" is registered on %s"), name,
                path);
  else
    pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                _ ("%u callables named \"%s\" are registered on %s: use the handle of one"), n,
                name, path);
  return NULL;
}

/**
 * pto_worker_unregister:
 * @worker: a worker
 * @handle: what [method@Pto.Worker.register] gave
 * @error: where to say why not
 *
 * Takes back one registration; the last one unloads the callable, at the end of a run that uses
 * it.
 *
 * Fails with %PTO_ERROR_NOT_FOUND, or %PTO_ERROR_CLOSED: close() has taken all of them back.
 * Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: %TRUE if it was registered
 *
 * Since: 0.1
 */
gboolean
pto_worker_unregister (PtoWorker *worker, PtoCallableHandle *handle, GError **error)
{
  GPtrArray *retired = NULL;
  PtoRegistration *registration;
  GError *failure = NULL;
  gboolean is_last = FALSE;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_worker_check_process (worker, error))
    return FALSE;
  g_mutex_lock (&worker->lock);
  registration = pto_registry_release (worker->node.registry, handle, &is_last, &failure);
  /* close() has taken all of them back. */
  if (registration == NULL && !pto_worker_check_open (worker, error))
    g_clear_error (&failure);
  if (is_last)
    {
      g_ptr_array_add (worker->retired, pto_registration_ref (registration));
      if (!worker->in_use)
        retired = pto_worker_steal_retired (worker);
    }
  g_mutex_unlock (&worker->lock);
  if (retired != NULL)
    pto_worker_remove_retired (worker, retired);
  if (failure != NULL)
    g_propagate_error (error, failure);
  if (registration == NULL)
    return FALSE;
  pto_registration_unref (registration);
  return TRUE;
}

/* That of the run under way; NULL: it has none. */
static GCancellable *
dup_cancellable (PtoWorker *self)
{
  GCancellable *cancellable = NULL;

  g_mutex_lock (&self->lock);
  g_set_object (&cancellable, self->cancellable);
  g_mutex_unlock (&self->lock);
  return cancellable;
}

/* The worker's own reference: once registered, it stays so. */
PtoCallableHandle *
pto_worker_find_collective (PtoWorker *self, guint which, PtoCallable *function, GError **error)
{
  PtoCallableHandle *handle = g_atomic_pointer_get (&self->collectives[which]);

  if (handle != NULL)
    return handle;
  handle = pto_worker_register (self, function, NULL, error);
  if (handle != NULL)
    g_atomic_pointer_set (&self->collectives[which], handle);
  return handle;
}

gboolean
pto_worker_instrument_kernel (PtoWorker *self, PtoCallable *kernel, GError **error)
{
  PtoRegistration *registration = pto_registry_ref_by_callable (self->node.registry, kernel);
  g_autoptr (GCancellable) cancellable = NULL;
  gboolean ok;

  if (registration == NULL)
    return pto_refuse (error, PTO_ERROR_NOT_FOUND, _ ("kernel \"%s\" is not registered any more"),
                       kernel->name);
  cancellable = dup_cancellable (self);
  ok = self->node.machine->ops->instrument (self->node.machine, registration, cancellable, error);
  pto_registration_unref (registration);
  return ok;
}

gboolean
pto_worker_find_kernel (PtoWorker *self, PtoCallable *kernel, gint32 *id, GError **error)
{
  if (kernel->kind != PTO_CALLABLE_KERNEL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("\"%s\" is an orchestration: a task runs a kernel"), kernel->name);
  for (gboolean retry = FALSE;; retry = TRUE)
    {
      g_autoptr (PtoCallableHandle) handle = NULL;
      g_autoptr (GCancellable) cancellable = NULL;
      guint index;

      if (pto_registry_find_callable (self->node.registry, kernel, &index))
        {
          *id = (gint32) index;
          return TRUE;
        }
      if (retry)
        {
          /* Registered here and unregistered by another thread before it could be used. */
          return pto_refuse (error, PTO_ERROR_NOT_FOUND,
                             _ ("kernel \"%s\" is not registered any more"), kernel->name);
        }
      /* This registration is taken back by closing the worker. */
      cancellable = dup_cancellable (self);
      handle = register_callable (self, kernel, NULL, 0, cancellable, error);
      if (handle == NULL)
        return FALSE;
    }
}
