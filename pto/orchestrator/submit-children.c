/* submit-children.c: how does an orchestration function submit tasks to workers below?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "orchestrator.h"

#include "base/error.h"
#include "callable/callable-handle.h"
#include "callable/callable.h"
#include "common/text.h"
#include "graph/graph.h"
#include "values/call-config.h"
#include "values/task-args.h"
#include "values/tensor.h"

typedef struct
{
  PtoOrchestratorCall base;
  PtoMachineTask task;
} Call;

static void
call_submit_task (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->base.self;

  call->base.failed
      = pto_orchestrator_has_failed (self)
        || !self->machine->ops->submit (self->machine, self->rt, &call->task, &call->base.error);
}

static gboolean
check_workers (PtoCallable *callable, const int *workers, gsize n_workers, GError **error)
{
  for (gsize i = 0; i < n_workers; i++)
    if (workers[i] < -1)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("task of \"%s\": there is no worker %d: give its number, or -1 for any"),
                     callable->name, workers[i]);
        return FALSE;
      }
  return TRUE;
}

static gboolean
check_kind (PtoOrchestrator *self, PtoCallable *callable, gboolean is_sub, GError **error)
{
  const char *why = NULL;

  if (self->machine->ops->submit == NULL)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
          _ ("a task of a chip runs a kernel: use submit, or submit_group for several at once; %s is "
             "for workers of level 3 and up"),
          is_sub ? "submit_sub" : "submit_next_level");
      return FALSE;
    }
  if (is_sub && callable->kind != PTO_CALLABLE_SUB)
    why = _ ("is no SUB function: use submit_next_level");
  else if (!is_sub && callable->kind == PTO_CALLABLE_SUB)
    why = _ ("is a SUB function: use submit_sub");
  if (why != NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "\"%s\" %s", callable->name, why);
  return why == NULL;
}

static guint
find_reduced (PtoTaskArgs *args)
{
  guint i = 0;

  while (pto_task_args_get_direction (args, i) != PTO_DIRECTION_REDUCTION)
    i++;
  return i;
}

/* What members say beside their arguments: of all of them together, as the task is one. */
static gboolean
collect_after (PtoCallable *callable, PtoTaskArgs *const *args, gsize n_args, GArray **after,
               GError **error)
{
  for (gsize i = 0; i < n_args; i++)
    {
      const PtoTaskTerms *terms = pto_task_args_get_terms (args[i]);

      if (terms->condition != NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                       _ ("task of \"%s\": a condition is for kernels, on a chip"), callable->name);
          return FALSE;
        }
      if (pto_task_terms_is_several (terms))
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
              _ ("task of \"%s\": %s, which is for kernels, on a chip: a group runs a callable "
                 "on several workers at once, and a submit names the worker that it is for"),
              callable->name, pto_task_terms_describe_several (terms));
          return FALSE;
        }
      if (terms->n_reductions > 0)
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
              _ ("task of \"%s\": argument %u is reduced, which kernels of a chip do: reduce "
                 "in the orchestrations of chips, or give a commutative update, which one "
                 "task makes at a time"),
              callable->name, find_reduced (args[i]));
          return FALSE;
        }
      if (terms->after == NULL)
        continue;
      if (*after == NULL)
        *after = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_array_append_vals (*after, terms->after->data, terms->after->len);
    }
  return TRUE;
}

/* What stays at one worker is for that one: worker, or -1 for another. */
static gboolean
check_homes (const PtoArg *args, guint n_args, int worker, GError **error)
{
  for (guint i = 0; i < n_args; i++)
    {
      int home = args[i].tensor != NULL ? pto_tensor_get_worker (args[i].tensor) : -1;

      if (home < 0 || home == worker)
        continue;
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("argument %u stays at worker %d (make_tensor_at): name that worker, or let a "
                      "task there copy it into a tensor that does not stay"),
                   i, home);
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_members (PtoOrchestrator *self, PtoCallable *callable, PtoTaskArgs *const *args, gsize n_args,
               const int *workers, GError **error)
{
  for (gsize i = 0; i < n_args; i++)
    {
      const PtoArg *list = NULL;
      guint n = 0;

      if (args[i] != NULL)
        list = pto_task_args_peek (args[i], &n);
      if (pto_args_admit (
              list, n, callable->kind == PTO_CALLABLE_CHIP ? PTO_ARGS_OF_CHIP : PTO_ARGS_OF_WORKER,
              self->run, &self->kept, error)
          && check_homes (list, n, workers != NULL ? workers[i] : -1, error))
        continue;
      if (n_args > 1)
        g_prefix_error (error, _ ("member %zu of group of \"%s\": "), i, callable->name);
      else
        g_prefix_error (error, _ ("task of \"%s\": "), callable->name);
      return FALSE;
    }
  return TRUE;
}

static gboolean
submit_task (PtoOrchestrator *self, PtoCallableHandle *handle, PtoTaskArgs *const *args,
             gsize n_args, const PtoCallConfig *config, const int *workers, gsize n_workers,
             gboolean is_sub, GError **error)
{
  Call call = { .base.self = self };
  PtoCallable *callable = pto_callable_handle_get_callable (handle);
  g_autoptr (GArray) after = NULL;
  PtoRegistration *registration;
  gboolean ok;

  if (!pto_orchestrator_check_usable (self, error) || !check_kind (self, callable, is_sub, error)
      || (config != NULL && !pto_call_config_check (config, error)))
    return FALSE;
  if (n_args == 0 || (n_workers != 0 && n_workers != n_args))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a group of \"%s\" has %zu members and names %zu workers: it needs a member, and as many workers or none"),
          callable->name, n_args, n_workers);
      return FALSE;
    }
  if (!check_workers (callable, workers, n_workers, error))
    return FALSE;
  if (!check_members (self, callable, args, n_args, is_sub || n_workers == 0 ? NULL : workers,
                      error)
      || !collect_after (callable, args, n_args, &after, error))
    return FALSE;
  registration = pto_registry_lookup (self->node->registry, handle, error);
  if (registration == NULL)
    return FALSE;
  call.task.registration = registration;
  call.task.args = args;
  call.task.n_members = (guint) MIN (n_args, G_MAXUINT);
  call.task.workers = n_workers > 0 ? workers : NULL;
  call.task.config = config;
  call.task.run = self->run;
  call.task.submit.terms = self->terms;
  if (after != NULL)
    {
      call.task.submit.producers = (const guint64 *) (gpointer) after->data;
      call.task.submit.n_producers = after->len;
    }
  /* It may be taken back at once: the worker keeps what a run uses until that has ended. */
  ok = pto_orchestrator_make_call (self, call_submit_task, &call.base, error);
  if (ok)
    self->last_task = call.task.id;
  if (ok && self->captured != NULL)
    pto_graph_keep_registration (self->captured, registration);
  pto_registration_unref (registration);
  return ok;
}

/**
 * pto_orchestrator_submit_next_level:
 * @orchestrator: an orchestrator
 * @handle: a chip callable or an orchestration that is registered on the worker
 * @args: (nullable): its arguments: tensors, then numbers
 * @config: (nullable): choices of the call
 * @worker: the id of a worker, or -1 for any that is idle
 * @error: where to say why not
 *
 * Submits a task: one run of a callable on a worker below this one, after all tasks that its
 * arguments make it wait for.
 *
 * A chip callable runs on a chip, an orchestration on a worker of level 3 or up. Returns as soon as
 * the task is in its ring, or waits for a slot. @args and @config are copied.
 *
 * An argument lies where the other worker sees it: in a [struct@Pto.Buffer], in memory that the
 * runtime gives ([method@Pto.Orchestrator.make_tensor], [method@Pto.Orchestrator.alloc]), or in
 * memory that was shared before [method@Pto.Worker.start].
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NOT_SHARED or
 * %PTO_ERROR_NOT_SUPPORTED, naming callable, argument or worker: then nothing was submitted and the
 * run goes on. Fails with %PTO_ERROR_RUN_FAILED, %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD like
 * [method@Pto.Orchestrator.submit]. Source: seed 001 section 6. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_next_level (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                    PtoTaskArgs *args, PtoCallConfig *config, int worker,
                                    GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, &args, 1, config, &worker, 1, FALSE, error);
}

/**
 * pto_orchestrator_submit_next_level_group:
 * @orchestrator: an orchestrator
 * @handle: a chip callable or an orchestration that is registered on the worker
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: how many members there are
 * @config: (nullable): choices of the call, the same for all members
 * @workers: (array length=n_workers) (nullable): the id of a worker for each member, -1 for any
 * @n_workers: 0 or @n_args
 * @error: where to say why not
 *
 * Submits a group: one task whose members run at the same time on different workers.
 *
 * It is done when all members are, and failed when one has failed: then the others are asked to
 * stop. Otherwise like [method@Pto.Orchestrator.submit_next_level]. Fails with
 * %PTO_ERROR_INVALID_ARGS also when there are more members than workers, or when a worker is named
 * twice. Source: seed 001 section 6, seed 002. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_next_level_group (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                          PtoTaskArgs *const *args_list, gsize n_args,
                                          PtoCallConfig *config, const int *workers,
                                          gsize n_workers, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (args_list != NULL || n_args == 0, FALSE);
  g_return_val_if_fail (workers != NULL || n_workers == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, args_list, n_args, config, workers, n_workers, FALSE,
                      error);
}

/**
 * pto_orchestrator_submit_sub:
 * @orchestrator: an orchestrator
 * @handle: a SUB function that is registered on the worker
 * @args: (nullable): its arguments: tensors, then numbers
 * @worker: the number of a SUB worker, or -1 for any that is idle
 * @error: where to say why not
 *
 * Submits a task: one call of a function in a SUB worker, after all tasks that its arguments make
 * it wait for.
 *
 * Otherwise like [method@Pto.Orchestrator.submit_next_level]. Source: seed 001 section 6. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_sub (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                             PtoTaskArgs *args, int worker, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, &args, 1, NULL, &worker, 1, TRUE, error);
}

/**
 * pto_orchestrator_submit_sub_group:
 * @orchestrator: an orchestrator
 * @handle: a SUB function that is registered on the worker
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: how many members there are
 * @workers: (array length=n_workers) (nullable): the number of a SUB worker for each member, -1 for
 *   any
 * @n_workers: 0 or @n_args
 * @error: where to say why not
 *
 * Submits a group: one task whose members are called at the same time in different SUB workers.
 *
 * Otherwise like [method@Pto.Orchestrator.submit_next_level_group]. Source: seed 001 section 6.
 * Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_sub_group (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                   PtoTaskArgs *const *args_list, gsize n_args, const int *workers,
                                   gsize n_workers, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (args_list != NULL || n_args == 0, FALSE);
  g_return_val_if_fail (workers != NULL || n_workers == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, args_list, n_args, NULL, workers, n_workers, TRUE,
                      error);
}
