/* orchestrator.c: what does an orchestration function ask of its run, besides its tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "orchestrator.h"

#include "base/error.h"
#include "base/locks.h"
#include "common/text.h"
#include "values/tensor.h"

/**
 * PtoOrchestrator:
 *
 * Where an orchestration function submits the tasks of its graph.
 *
 * It is valid during the call of the function only; afterwards every call fails with
 * %PTO_ERROR_CLOSED. Dependencies are found from the tags of the arguments. When the run has
 * failed, every call fails with %PTO_ERROR_RUN_FAILED: return %FALSE with that error, and the run
 * reports what went wrong first.
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread, which is the one the function is
 * called on; another thread gets %PTO_ERROR_WRONG_THREAD. A fork leaves it unusable in the child,
 * which gets %PTO_ERROR_BUSY.
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoOrchestrator, pto_orchestrator, G_TYPE_OBJECT)

static void
pto_orchestrator_finalize (GObject *object)
{
  PtoOrchestrator *self = PTO_ORCHESTRATOR (object);

  g_clear_pointer (&self->gate, pto_gate_unref);
  g_clear_pointer (&self->kept, g_hash_table_unref);
  g_free (self->clusters);
  G_OBJECT_CLASS (pto_orchestrator_parent_class)->finalize (object);
}

static void
pto_orchestrator_class_init (PtoOrchestratorClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_orchestrator_finalize;
}

static void
pto_orchestrator_init (PtoOrchestrator *self)
{
}

PtoOrchestrator *
pto_orchestrator_new (PtoTreeNode *node, PtoGate *gate, guint64 run,
                      bool (*is_cancelled) (void *data), gpointer data)
{
  PtoOrchestrator *self = g_object_new (PTO_TYPE_ORCHESTRATOR, NULL);

  self->node = node;
  self->machine = node->machine;
  self->gate = gate != NULL ? pto_gate_ref (gate) : NULL;
  self->run = run;
  self->is_cancelled = is_cancelled;
  self->data = data;
  self->last_task = PTO2_TASK_NONE;
  self->forks = pto_count_forks ();
  return self;
}

void
pto_orchestrator_begin (PtoOrchestrator *self, PTO2Runtime *rt)
{
  g_atomic_pointer_set (&self->thread, g_thread_self ());
  g_atomic_pointer_set (&self->rt, rt);
}

guint
pto_orchestrator_end (PtoOrchestrator *self)
{
  g_atomic_pointer_set (&self->rt, NULL);
  g_atomic_pointer_set (&self->thread, NULL);
  self->node = NULL;
  for (guint i = 0; i < PTO_RECENT_KERNELS; i++)
    g_clear_object (&self->recent[i].kernel);
  return self->scopes;
}

GHashTable *
pto_orchestrator_steal_kept (PtoOrchestrator *self)
{
  return g_steal_pointer (&self->kept);
}

gboolean
pto_orchestrator_is_own_thread (PtoOrchestrator *self)
{
  return g_atomic_pointer_get (&self->thread) == g_thread_self ();
}

gboolean
pto_orchestrator_is_cancelled (PtoOrchestrator *self)
{
  return self->is_cancelled (self->data);
}

void
pto_orchestrator_call (PtoOrchestrator *self, void (*call) (gpointer data), gpointer data)
{
  if (self->gate != NULL)
    pto_gate_call (self->gate, call, data, FALSE);
  else
    call (data);
}

/* The same for a call that may have to wait for tasks. */
static void
call_and_wait (PtoOrchestrator *self, void (*call) (gpointer data), gpointer data)
{
  if (self->gate == NULL)
    {
      call (data);
      return;
    }
  self->is_waiting = TRUE;
  pto_gate_call (self->gate, call, data, TRUE);
  self->is_waiting = FALSE;
}

gboolean
pto_orchestrator_check_usable (PtoOrchestrator *self, GError **error)
{
  if (g_atomic_pointer_get (&self->rt) == NULL)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_CLOSED,
          _ ("the run of this orchestrator is over: it can be used inside its orchestration "
             "function only"));
      return FALSE;
    }
  if (self->forks != pto_count_forks ())
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_BUSY,
          _ ("the run of this orchestrator is in another process, and this one is a copy of it: use "
             "it there, or a worker of this process's own"));
      return FALSE;
    }
  if (!pto_orchestrator_is_own_thread (self))
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_WRONG_THREAD,
          _ ("an orchestrator can be used only on the thread that its orchestration function runs on"));
      return FALSE;
    }
  if (self->is_telling)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_BUSY,
          _ ("a handler of run-progress is called in the midst of a call of this orchestrator, and can "
             "make no other one: submit from the orchestration function"));
      return FALSE;
    }
  if (self->is_waiting)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_BUSY,
          _ ("a call of this orchestrator waits for tasks and lets the main loop run meanwhile: what "
             "the loop calls cannot make another one; submit from the orchestration function"));
      return FALSE;
    }
  return TRUE;
}

static void
set_failed (PtoOrchestrator *self, GError **error)
{
  g_autofree char *why = self->machine->ops->dup_failure (self->rt);

  if (why != NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_RUN_FAILED, _ ("the run has failed: %s"), why);
  else
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_RUN_FAILED,
                         _ ("the run has failed already; the call that runs it reports why"));
}

gboolean
pto_orchestrator_has_failed (PtoOrchestrator *self)
{
  const PtoMachineOps *ops = self->machine->ops;

  if (self->is_cancelled (self->data))
    ops->fail (self->rt, PTO_STATUS_CANCELLED, "the run was cancelled");
  return ops->has_failed (self->rt);
}

gboolean
pto_orchestrator_make_call (PtoOrchestrator *self, void (*func) (gpointer data),
                            PtoOrchestratorCall *call, GError **error)
{
  PTO2Runtime *rt = self->rt;

  /* As the calls of an orchestration in C note theirs. */
  rt->file = self->file;
  rt->line = (int32_t) self->line;
  call_and_wait (self, func, call);
  rt->line = 0;
  if (!call->failed)
    return TRUE;
  if (call->error != NULL)
    g_propagate_error (error, call->error);
  else
    set_failed (self, error);
  return FALSE;
}

typedef struct
{
  PtoOrchestratorCall base;

  /* tensor */
  PtoTensor *tensor;
  Tensor handle;

  /* scopes */
  enum
  {
    END,
    BEGIN,
    BEGIN_MANUAL
  } what;
} Call;

static void
call_tensor (gpointer data)
{
  Call *call = data;

  call->base.failed
      = pto_orchestrator_has_failed (call->base.self)
        || !pto_tensor_prepare (call->tensor, call->base.self->rt, call->base.self->run, FALSE,
                                &call->handle, &call->base.error);
}

static void
call_alloc (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->base.self;

  call_tensor (data);
  if (!call->base.failed)
    call->base.failed
        = !self->machine->ops->alloc (self->machine, self->rt, &call->handle, &call->base.error);
}

static void
call_scope (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->base.self->rt;

  if (call->what == BEGIN)
    pto2_rt_scope_begin_at (rt, rt->file, rt->line);
  else if (call->what == BEGIN_MANUAL)
    pto2_rt_manual_scope_begin_at (rt, rt->file, rt->line);
  else
    (pto2_rt_scope_end) (rt);
  call->base.failed = pto_orchestrator_has_failed (call->base.self);
}

/* --- priorities --- */

/**
 * pto_orchestrator_set_priority:
 * @orchestrator: an orchestrator
 * @priority: 0, which is what tasks have otherwise, to %PTO_MAX_PRIORITY, which goes first
 * @error: where to say why not
 *
 * Says which priority the tasks have that are submitted from now on.
 *
 * Of the tasks that are ready for one kind of cores, or of workers, those with the highest priority
 * go first, strictly: a task of a lower one waits as long as there are others. Among equals the
 * first one that was ready goes first. What runs is not interrupted. A run that sets none pays
 * nothing.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such priority, with %PTO_ERROR_CLOSED or
 * %PTO_ERROR_WRONG_THREAD. Source: the clause `priority` of OpenMP. Thread safety: orchestrator
 * thread.
 *
 * Returns: %TRUE if they have
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_set_priority (PtoOrchestrator *orchestrator, guint priority, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_orchestrator_check_usable (orchestrator, error))
    return FALSE;
  if (priority > PTO_MAX_PRIORITY)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("there is no priority %u: a task has one of 0, which is what others have, to %d, "
             "which goes first"),
          priority, PTO_MAX_PRIORITY);
      return FALSE;
    }
  orchestrator->terms.priority = priority;
  return TRUE;
}

/**
 * pto_orchestrator_get_priority:
 * @orchestrator: an orchestrator
 *
 * Gives the priority of the tasks that are submitted now.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: 0 to %PTO_MAX_PRIORITY
 *
 * Since: 0.1
 */
guint
pto_orchestrator_get_priority (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), 0);

  return orchestrator->terms.priority;
}

/**
 * pto_orchestrator_get_last_task:
 * @orchestrator: an orchestrator
 *
 * Gives the number of the task that was submitted last, of whatever kind, for
 * [method@Pto.TaskArgs.add_after]; traces have the same.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: a number, which may be 0; -1 before the first task of the run
 *
 * Since: 0.1
 */
gint64
pto_orchestrator_get_last_task (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), -1);

  return (gint64) orchestrator->last_task; /* PTO2_TASK_NONE is -1 */
}

/* --- scopes and tensors --- */

static gboolean
begin_scope (PtoOrchestrator *self, gboolean manual, GError **error)
{
  Call call = { .base.self = self, .what = manual ? BEGIN_MANUAL : BEGIN };
  gboolean ok;

  if (!pto_orchestrator_check_usable (self, error))
    return FALSE;
  ok = pto_orchestrator_make_call (self, call_scope, &call.base, error);
  self->scopes += ok;
  return ok;
}

/**
 * pto_orchestrator_begin_scope:
 * @orchestrator: an orchestrator
 * @error: where to say why not
 *
 * Opens a scope: tensors made by the runtime inside it give back their memory when it has ended and
 * their last consumer is done.
 *
 * Fails with %PTO_ERROR_RUN_FAILED, among others when scopes are nested too deeply.
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if it is open
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_begin_scope (PtoOrchestrator *orchestrator, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return begin_scope (orchestrator, FALSE, error);
}

/**
 * pto_orchestrator_begin_manual_scope:
 * @orchestrator: an orchestrator
 * @error: where to say why not
 *
 * Opens a scope whose tasks come after those that they name ([method@Pto.TaskArgs.add_after]), and
 * after no others.
 *
 * Nothing is looked up for them and nothing is recorded, not for tasks behind the scope either.
 * Where tasks have reduced before it, they come after what combines that. Memory that the runtime
 * makes for them stays as long as anywhere else. Scopes inside are to be manual, too. It is ended
 * by [method@Pto.Orchestrator.end_scope].
 *
 * Fails like [method@Pto.Orchestrator.begin_scope]. Source: seed 000 section 11. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if it is open
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_begin_manual_scope (PtoOrchestrator *orchestrator, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return begin_scope (orchestrator, TRUE, error);
}

/**
 * pto_orchestrator_end_scope:
 * @orchestrator: an orchestrator
 * @error: where to say why not
 *
 * Ends the scope that was opened last. It does not wait for its tasks.
 *
 * Fails with %PTO_ERROR_SCOPE_OVERFLOW when none is open. Source: seed 000 section 11. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if it has ended
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_end_scope (PtoOrchestrator *orchestrator, GError **error)
{
  Call call = { .base.self = orchestrator, .what = END };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_orchestrator_check_usable (orchestrator, error))
    return FALSE;
  if (orchestrator->scopes == 0)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SCOPE_OVERFLOW,
                           _ ("no scope is open: every end of a scope needs a begin before it"));
      return FALSE;
    }
  /* Its clusters are let go of with it. */
  for (guint i = 0; i < orchestrator->n_clusters; i++)
    if (orchestrator->clusters[i] > orchestrator->scopes)
      orchestrator->clusters[i] = 0;
  orchestrator->scopes--;
  return pto_orchestrator_make_call (orchestrator, call_scope, &call.base, error);
}

static gboolean
with_scope (PtoOrchestrator *orchestrator, gboolean manual, PtoScopeFunc func, gpointer user_data,
            GError **error)
{
  guint before = orchestrator->scopes;
  GError *local = NULL;
  gboolean ok;

  if (!begin_scope (orchestrator, manual, error))
    return FALSE;
  ok = func (orchestrator, user_data, &local);
  if (!ok && local == NULL)
    g_set_error_literal (
        &local, PTO_ERROR, PTO_ERROR_EXPLICIT,
        _ ("the function of a scope failed and did not say why: it must return TRUE "
           "when what belongs into the scope is submitted"));
  if (local != NULL)
    {
      ok = FALSE;
      g_propagate_error (error, local);
    }
  while (orchestrator->scopes > before)
    {
      /* Whose error was first is told; in a run that has failed that is the run's. */
      if (!pto_orchestrator_end_scope (orchestrator, ok ? error : NULL))
        ok = FALSE;
    }
  return ok;
}

/**
 * pto_orchestrator_with_scope:
 * @orchestrator: an orchestrator
 * @func: (scope call) (closure user_data): submits what belongs into the scope
 * @user_data: for @func
 * @error: where to say why not
 *
 * Calls a function inside a scope of its own, which ends when it returns, however it does; as do
 * scopes that it has opened and left open.
 *
 * Fails as [method@Pto.Orchestrator.begin_scope], or with the error of @func. In C,
 * `g_autoptr (PtoScopeGuard)` does the same for a block. Source: seed 000 section 11. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if @func has said so
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_with_scope (PtoOrchestrator *orchestrator, PtoScopeFunc func, gpointer user_data,
                             GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return with_scope (orchestrator, FALSE, func, user_data, error);
}

/**
 * pto_orchestrator_with_manual_scope:
 * @orchestrator: an orchestrator
 * @func: (scope call) (closure user_data): submits what belongs into the scope
 * @user_data: for @func
 * @error: where to say why not
 *
 * Calls a function inside a scope of [method@Pto.Orchestrator.begin_manual_scope]; otherwise like
 * [method@Pto.Orchestrator.with_scope].
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if @func has said so
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_with_manual_scope (PtoOrchestrator *orchestrator, PtoScopeFunc func,
                                    gpointer user_data, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return with_scope (orchestrator, TRUE, func, user_data, error);
}

/* A tensor of the current scope, after what call does with it. */
static PtoTensor *
make_tensor_here (PtoOrchestrator *self, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                  void (*func) (gpointer data), GError **error)
{
  g_autoptr (PtoTensor) tensor = NULL;
  Call call = { .base.self = self };

  if (!pto_orchestrator_check_usable (self, error))
    return NULL;
  tensor = pto_tensor_new (dtype, n_dims, shape);
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           pto_tensor_get_refusal (tensor));
      return NULL;
    }
  call.tensor = tensor;
  if (!pto_orchestrator_make_call (self, func, &call.base, error))
    return NULL;
  /* Of a graph it has one when that is launched. */
  if (func == call_alloc && self->captured == NULL)
    {
      GDestroyNotify release;
      gpointer owner = pto_machine_hold_heaps (self->machine, &release);

      pto_tensor_set_allocated (tensor, call.handle.buffer.addr, owner, release);
    }
  return g_steal_pointer (&tensor);
}

/**
 * pto_orchestrator_make_tensor:
 * @orchestrator: an orchestrator
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor that belongs to the current scope and that the runtime gives memory at the submit
 * that outputs it.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused. Source: seed 000 section 11,
 * `make_tensor()`. Thread safety: orchestrator thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_orchestrator_make_tensor (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                              const guint64 *shape, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return make_tensor_here (orchestrator, dtype, n_dims, shape, call_tensor, error);
}

/**
 * pto_orchestrator_make_tensor_at:
 * @orchestrator: an orchestrator of a worker of level 3 or up
 * @worker: the id of a worker below it
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor that stays at one worker: what a task writes there is read by later tasks of that
 * worker, and by nobody else.
 *
 * So nothing of it is copied from or to a remote worker
 * ([method@Pto.Worker.add_remote_worker]), which holds it in its own memory (its parameter `arena`)
 * until the next run. The first task that writes it is given all of it, later ones may have views:
 * a submit that is given a view first fails with %PTO_ERROR_INVALID_ARGS.
 * Each names @worker; one that is given another tensor, too, copies what is wanted elsewhere.
 * Otherwise it is a tensor of [method@Pto.Orchestrator.make_tensor]. When its worker is lost, so
 * are its contents: a task that reads them fails with %PTO_ERROR_WORKER_LOST. Tensors at the ranks
 * of a job are combined where they are ([method@Pto.Orchestrator.allreduce]).
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such worker or the shape is refused, and with
 * %PTO_ERROR_NOT_SUPPORTED on a chip. Thread safety: orchestrator thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_orchestrator_make_tensor_at (PtoOrchestrator *orchestrator, int worker, PtoDtype dtype,
                                 gsize n_dims, const guint64 *shape, GError **error)
{
  PtoTensor *tensor;
  guint number;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!pto_orchestrator_check_usable (orchestrator, error))
    return NULL;
  if (orchestrator->machine->ops->submit == NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                           _ ("a chip has no workers below it that a tensor could stay at"));
      return NULL;
    }
  if (worker < 0 || !pto_tree_node_find_child (orchestrator->node, (guint) worker, &number))
    {
      g_autofree char *path = pto_tree_node_dup_path (orchestrator->node);
      g_autofree char *ids = pto_tree_node_describe_ids (orchestrator->node);

      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a tensor can not stay at worker %d: %s has no such worker, the ids of its workers are %s"),
          worker, path, ids[0] != '\0' ? ids : _ ("none"));
      return NULL;
    }
  tensor = make_tensor_here (orchestrator, dtype, n_dims, shape, call_tensor, error);
  if (tensor != NULL)
    pto_tensor_set_worker (tensor, (guint) worker);
  return tensor;
}

/**
 * pto_orchestrator_alloc:
 * @orchestrator: an orchestrator
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor that has memory at once, which this worker and those below it share, with whatever
 * it held.
 *
 * Its address, 1024-byte aligned, is that of [method@Pto.Tensor.get_address]; the function may
 * write there until it submits the first task that uses it. The memory lives until the current
 * scope has ended and the last task that uses it is done. It is the output of a task that runs
 * nothing, on every worker: it takes a slot and room of its ring.
 *
 * A graph has memory only when it is launched. So in a capture the address is 0, for tasks only; on
 * a chip, where any task can output memory, it fails.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused or the run is a capture of a chip's,
 * and with %PTO_ERROR_RUN_FAILED when the ring stays full until the time-out. Source: seed 002, and
 * seed 000 section 11 for a chip. Thread safety: orchestrator thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_orchestrator_alloc (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                        const guint64 *shape, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!pto_orchestrator_check_usable (orchestrator, error))
    return NULL;
  if (orchestrator->captured != NULL && orchestrator->machine->ops->submit == NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           _ ("alloc() gives memory at once, which a graph has only when it is "
                              "launched: use a tensor that a task outputs, of make_tensor()"));
      return NULL;
    }
  return make_tensor_here (orchestrator, dtype, n_dims, shape, call_alloc, error);
}

/**
 * pto_orchestrator_get_worker:
 * @orchestrator: an orchestrator
 *
 * Gives the worker that runs the tasks.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: (transfer none) (nullable): a worker; %NULL once the run is over
 *
 * Since: 0.1
 */
PtoWorker *
pto_orchestrator_get_worker (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);

  return orchestrator->node != NULL ? orchestrator->node->worker : NULL;
}

/**
 * pto_orchestrator_to_string:
 * @orchestrator: an orchestrator
 *
 * Says whose it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `of a run of L2/0`
 *
 * Since: 0.1
 */
char *
pto_orchestrator_to_string (PtoOrchestrator *orchestrator)
{
  g_autofree char *path = NULL;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);

  if (!pto_orchestrator_is_valid (orchestrator))
    return g_strdup ("of a run that is over");
  if (!pto_orchestrator_is_own_thread (orchestrator))
    return g_strdup ("of a run on another thread");
  path = pto_tree_node_dup_path (orchestrator->node);
  return g_strdup_printf ("of a run of %s", path);
}

/**
 * pto_orchestrator_is_valid:
 * @orchestrator: an orchestrator
 *
 * Asks whether its orchestration function is still running, in this process.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE during the function
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_is_valid (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);

  return g_atomic_pointer_get (&orchestrator->rt) != NULL
         && orchestrator->forks == pto_count_forks ();
}
