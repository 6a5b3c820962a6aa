/* worker-life.c: when is there a machine behind a worker, and whose is it just now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "worker.h"

#include "process/process.h"

#include "base/error.h"
#include "base/log.h"
#include "common/text.h"
#include "monitor/answer.h"
#include "orchestrator/orchestrator.h"
#include "pto-platform.h"

#include <unistd.h>

/* --- taking the machine --- */

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  PtoWorker *self = data;

  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

gboolean
pto_worker_is_foreign (PtoWorker *self)
{
  int process = g_atomic_int_get (&self->process);

  return process != 0 && process != getpid ();
}

gboolean
pto_worker_check_process (PtoWorker *self, GError **error)
{
  g_autofree char *path = NULL;

  if (!pto_worker_is_foreign (self))
    return TRUE;
  path = pto_worker_dup_path (self);
  return pto_refuse (
      error, PTO_ERROR_BUSY,
      _ ("worker %s belongs to process %d, and this one is a copy of it: use it there"), path,
      g_atomic_int_get (&self->process));
}

gboolean
pto_worker_check_open (PtoWorker *self, GError **error)
{
  if (self->state != PTO_WORKER_STATE_CLOSED && !g_atomic_int_get (&self->closing))
    return TRUE;
  return pto_refuse (error, PTO_ERROR_CLOSED, _ ("the worker is closed"));
}

/* With the lock. */
static PtoOrchestrator *
get_own_orchestrator (PtoWorker *self)
{
  return self->current != NULL && pto_orchestrator_is_own_thread (self->current) ? self->current
                                                                                 : NULL;
}

PtoOrchestrator *
pto_worker_get_own_orchestrator (PtoWorker *self)
{
  PtoOrchestrator *orchestrator;

  g_mutex_lock (&self->lock);
  orchestrator = get_own_orchestrator (self);
  g_mutex_unlock (&self->lock);
  return orchestrator;
}

/* With the lock: the machine, or why it can not be had. */
static gboolean
take_locked (PtoWorker *self, gboolean is_asynchronous, GCancellable *cancellable, GError **error)
{
  for (;;)
    {
      if (!pto_worker_check_open (self, error) || pto_error_set_if_cancelled (cancellable, error))
        return FALSE;
      if (!self->in_use)
        break;
      if (self->user == g_thread_self () || get_own_orchestrator (self) != NULL)
        return pto_refuse (error, PTO_ERROR_BUSY, "%s", PTO_WORKER_OWN_RUN);
      if (!is_asynchronous && self->waiting_functions > 0)
        return pto_refuse (
            error, PTO_ERROR_BUSY,
            _ ("an asynchronous run whose orchestration function may need this thread is under way: "
               "wait for it to finish first"));
      g_cond_wait (&self->idle, &self->lock);
    }
  self->in_use = TRUE;
  self->user = g_thread_self ();
  self->cancellable = cancellable;
  return TRUE;
}

gboolean
pto_worker_take (PtoWorker *self, gboolean is_asynchronous, GCancellable *cancellable,
                 GError **error)
{
  gulong handler = 0;
  gboolean taken;

  if (!pto_worker_check_process (self, error)
      || (pto_worker_get_state (self) == PTO_WORKER_STATE_NEW
          && !pto_worker_start (self, cancellable, error)))
    return FALSE;
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), self, NULL);
  g_mutex_lock (&self->lock);
  taken = take_locked (self, is_asynchronous, cancellable, error);
  g_mutex_unlock (&self->lock);
  g_cancellable_disconnect (cancellable, handler);
  return taken;
}

/* Is something that processes below wrote lost? No lock is held. */
static void
tell_unheard (PtoWorker *self)
{
  int error = pto_process_take_unheard ();

  if (error != 0)
    {
      g_autofree char *path = pto_worker_dup_path (self);

      pto_log (G_LOG_LEVEL_WARNING,
               "%s: not all that the processes of workers write to standard error can be passed on "
               "to ours, the rest is left out: %s",
               path, g_strerror (error));
    }
}

void
pto_worker_give_back (PtoWorker *self)
{
  GPtrArray *retired;
  gboolean close_now;

  g_mutex_lock (&self->lock);
  retired = pto_worker_steal_retired (self);
  pto_worker_free_unused_blocks (self);
  self->in_use = FALSE;
  self->user = NULL;
  self->cancellable = NULL;
  close_now = self->close_when_idle;
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
  pto_worker_remove_retired (self, retired);
  tell_unheard (self);
  if (close_now)
    pto_worker_close (self);
}

/* --- life --- */

static void
cancel_start (GCancellable *cancellable, gpointer data)
{
  g_cancellable_cancel (data);
}

/* What was closed before can not be brought up with it. */
static gboolean
check_children (PtoWorker *worker, GError **error)
{
  for (guint i = 0; i < worker->node.children->len; i++)
    {
      PtoWorker *child = pto_worker_peek_child (worker, i);
      g_autofree char *path = NULL;

      if (pto_worker_get_state (child) != PTO_WORKER_STATE_CLOSED)
        continue;
      path = pto_worker_dup_path (child);
      return pto_refuse (
          error, PTO_ERROR_CLOSED,
          _ ("%s was closed before the worker above it has started: close that one instead, "
             "which closes all below it"),
          path);
    }
  return TRUE;
}

/* Without the lock: a machine may fork. Parameters are not set meanwhile. */
static gboolean
start_machine (PtoWorker *worker, GCancellable *starting, GCancellable *cancellable, GError **error)
{
  PtoMachine *machine = worker->node.machine;
  gulong handler = 0;
  gboolean ok;

  g_mutex_lock (&worker->lock);
  ok = pto_worker_check_schedule (worker, error);
  g_mutex_unlock (&worker->lock);
  if (!ok)
    return FALSE;
  g_atomic_int_set (&worker->process, getpid ());
  pto_answer_look_at_environment ();
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (cancel_start), starting, NULL);
  ok = check_children (worker, error)
       && (machine->ops->prepare == NULL || machine->ops->prepare (machine, error));
  /* A thread more, behind all forks: a start that takes long can be asked, too. A chip forks when
   * it starts. */
  if (ok && worker->node.level > 2)
    pto_answer_start_if_wanted ();
  ok = ok && machine->ops->start (machine, starting, error);
  g_cancellable_disconnect (cancellable, handler);
  /* It may have been too fast to notice. */
  if (ok && pto_error_set_if_cancelled (starting, error))
    {
      machine->ops->stop (machine);
      ok = FALSE;
    }
  if (ok)
    pto_answer_start_if_wanted ();
  return ok;
}

static gboolean
bring_up (PtoWorker *worker, GCancellable *cancellable, GError **error)
{
  g_autoptr (PtoPlatform) description = NULL;
  g_autoptr (GCancellable) starting = NULL;
  GError *failure = NULL;
  gulong handler = 0;
  gboolean is_ready = FALSE;

  if (pto_error_set_if_cancelled (cancellable, error) || !pto_worker_check_process (worker, error)
      || !pto_worker_check_level (worker->node.level, error))
    return FALSE;
  description = pto_platform_lookup (worker->node.platform, error);
  if (description == NULL)
    return FALSE;

  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), worker, NULL);
  g_mutex_lock (&worker->lock);
  while (worker->starting != NULL && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&worker->idle, &worker->lock);
  if (!pto_worker_check_open (worker, error) || pto_error_set_if_cancelled (cancellable, error))
    ;
  else if (worker->state == PTO_WORKER_STATE_READY)
    is_ready = TRUE;
  else if (worker->params_error != NULL)
    g_propagate_error (error, g_error_copy (worker->params_error));
  else
    worker->starting = starting = g_cancellable_new ();
  g_mutex_unlock (&worker->lock);
  g_cancellable_disconnect (cancellable, handler);
  if (starting == NULL)
    return is_ready;

  is_ready = start_machine (worker, starting, cancellable, &failure);
  g_mutex_lock (&worker->lock);
  worker->starting = NULL;
  /* It is told that it was closed, unless it was somebody else who gave it up. */
  if ((is_ready || !g_cancellable_is_cancelled (cancellable))
      && !pto_worker_check_open (worker, error))
    {
      g_clear_error (&failure);
      is_ready = FALSE;
    }
  else if (is_ready)
    worker->state = PTO_WORKER_STATE_READY;
  g_cond_broadcast (&worker->idle);
  g_mutex_unlock (&worker->lock);
  if (failure != NULL)
    g_propagate_error (error, failure);
  if (is_ready)
    pto_worker_notify_state (worker);
  return is_ready;
}

gboolean
pto_worker_is_made (PtoWorker *self)
{
  PtoWorker *at = self;
  gboolean is_new;

  for (;;)
    {
      g_mutex_lock (&at->lock);
      is_new = at->state == PTO_WORKER_STATE_NEW && at->starting == NULL;
      g_mutex_unlock (&at->lock);
      if (!is_new || at->node.parent == NULL || at->serves)
        return !is_new;
      at = pto_worker_peek_parent (at);
    }
}

/**
 * pto_worker_start:
 * @worker: a new worker
 * @cancellable: (nullable): ends what takes time
 * @error: where to say why not
 *
 * Makes the machine: its threads, rings and memory, and the processes of all workers below it,
 * which are up when this returns. Does nothing when that is done already; what needs the machine, a
 * run for instance, does it by itself.
 *
 * Child processes are forked first of all. They see what the program has registered and shared by
 * then; later registrations are sent to them. It is best called before the program has threads.
 *
 * Of several that start one worker at a time, one does it, and the others wait for that; when it
 * fails, or is cancelled, one of them tries again. [method@Pto.Worker.close] ends a start that is
 * under way, which then fails with %PTO_ERROR_CLOSED.
 *
 * The first failure in the tree is reported with its place in it. Fails with
 * %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_SUPPORTED, %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NO_MEMORY,
 * %PTO_ERROR_SYSTEM, %PTO_ERROR_WORKER_LOST, %PTO_ERROR_LOAD, %PTO_ERROR_TAMPERED,
 * %G_IO_ERROR_CANCELLED or %PTO_ERROR_CLOSED; then everything is taken down again, and it can be
 * called again. Fails with %PTO_ERROR_BUSY for a worker that is below another one. Source: seed 001
 * section 9, seed 003. Thread safety: any thread.
 *
 * Returns: %TRUE if the worker is ready
 *
 * Since: 0.1
 */
gboolean
pto_worker_start (PtoWorker *worker, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (worker->node.parent == NULL || worker->serves)
    return bring_up (worker, cancellable, error);
  path = pto_worker_dup_path (worker);
  return pto_refuse (
      error, PTO_ERROR_BUSY,
      _ ("%s is brought up by the worker above it, in its own process: start that one, and "
         "submit to this one"),
      path);
}

gboolean
pto_worker_bring_up (PtoWorker *self, GError **error)
{
  self->serves = TRUE;
  return bring_up (self, NULL, error);
}

void
pto_worker_take_down (PtoWorker *worker, PtoWorkerState state, gboolean and_children)
{
  GPtrArray *retired;
  GThread *thread;

  if (pto_worker_is_foreign (worker))
    {
      worker->state = PTO_WORKER_STATE_CLOSED;
      return;
    }
  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      g_mutex_unlock (&worker->lock);
      return;
    }
  g_atomic_int_set (&worker->closing, TRUE);
  g_cond_broadcast (&worker->idle);
  if (worker->gate != NULL)
    pto_gate_abandon (worker->gate);
  if (worker->in_use && (worker->user == g_thread_self () || get_own_orchestrator (worker) != NULL))
    {
      worker->close_when_idle = TRUE;
      g_mutex_unlock (&worker->lock);
      return;
    }
  if (worker->in_use)
    worker->node.machine->ops->cancel (worker->node.machine);
  /* It is asked, and has no handlers. */
  if (worker->starting != NULL)
    g_cancellable_cancel (worker->starting);
  while (worker->in_use || worker->starting != NULL)
    g_cond_wait (&worker->idle, &worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      /* Another thread was faster. */
      g_mutex_unlock (&worker->lock);
      return;
    }
  if (worker->state == PTO_WORKER_STATE_READY)
    pto_worker_release_blocks (worker);
  worker->state = state;
  thread = g_steal_pointer (&worker->thread);
  retired = pto_worker_steal_retired (worker);
  pto_registry_clear (worker->node.registry, retired);
  g_mutex_unlock (&worker->lock);

  if (thread != NULL)
    pto_worker_end_jobs (worker, thread);
  /* The machine first: nothing in it holds a callable then. */
  if (worker->node.machine != NULL)
    worker->node.machine->ops->stop (worker->node.machine);
  pto_worker_remove_retired (worker, retired);
  tell_unheard (worker);
  if (state == PTO_WORKER_STATE_NEW)
    {
      g_atomic_int_set (&worker->process, 0);
      worker->serves = FALSE;
      g_atomic_int_set (&worker->closing, FALSE);
    }
  else
    {
      g_mutex_lock (&worker->lock);
      worker->is_down = TRUE;
      g_cond_broadcast (&worker->idle);
      g_mutex_unlock (&worker->lock);
      if (and_children)
        pto_worker_close_children (worker);
      pto_worker_notify_state (worker);
    }
}

void
pto_worker_close_wholly (PtoWorker *self)
{
  pto_worker_take_down (self, PTO_WORKER_STATE_CLOSED, TRUE);
  if (pto_worker_is_foreign (self))
    return;
  g_mutex_lock (&self->lock);
  while (!self->is_down)
    g_cond_wait (&self->idle, &self->lock);
  g_mutex_unlock (&self->lock);
}

/**
 * pto_worker_close:
 * @worker: a worker
 *
 * Ends the worker: cancels and waits for what it runs, unloads what it has, ends its threads and
 * all processes below it. Can be called twice.
 *
 * Called inside an orchestration function, it cancels the run and takes effect when that has
 * ended. Runs that it has cancelled, and those that have not begun, fail with %PTO_ERROR_CLOSED;
 * %G_IO_ERROR_CANCELLED means that somebody has cancelled that very run. The workers below it are
 * closed with it. The last reference to a worker closes it too, but not those below it to which
 * somebody else has a reference: they are nobody's then.
 *
 * Source: seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_close (PtoWorker *worker)
{
  g_return_if_fail (PTO_IS_WORKER (worker));

  pto_worker_take_down (worker, PTO_WORKER_STATE_CLOSED, TRUE);
}
