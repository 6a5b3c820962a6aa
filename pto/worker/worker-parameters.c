/* worker-parameters.c: how is a worker's machine chosen by name and text?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "core/forced-order-text.h"

#include "worker.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

int
pto_worker_find_parameter (const char *name)
{
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    if (strcmp (name, pto_param_name ((enum pto_param) i)) == 0)
      return i;
  return -1;
}

gboolean
pto_worker_check_schedule (PtoWorker *worker, GError **error)
{
  if (worker->schedule == NULL || worker->node.level > 2)
    return TRUE;
  if (strcmp (pto_params_choice (&worker->params, PTO_PARAMETER_BACKEND), "det") == 0)
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("parameter schedule needs the back end det, on which alone one task can run after "
         "the other, and that of this worker is %s: set backend to det"),
      pto_params_choice (&worker->params, PTO_PARAMETER_BACKEND));
}

/* The one that can be set between runs. */
static gboolean
set_schedule (PtoWorker *worker, const char *value, GError **error)
{
  g_autofree char *before = NULL;
  gboolean ok = TRUE;

  if (value[0] != '\0')
    {
      struct pto_report report = { 0 };
      struct pto_schedule schedule;
      enum pto_status status
          = pto_schedule_parse (&schedule, value, pto_param_name (PTO_PARAMETER_SCHEDULE), &report);

      if (status != PTO_OK)
        {
          pto_error_set_from_report (error, status, &report);
          return FALSE;
        }
      pto_schedule_clear (&schedule);
    }
  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      pto_refuse (error, PTO_ERROR_CLOSED,
                  _ ("the worker is closed: parameter schedule can be set on a new one"));
      ok = FALSE;
    }
  else
    {
      before = g_steal_pointer (&worker->schedule);
      if (value[0] != '\0')
        worker->schedule = g_strdup (value);
      /* Of a new worker the back end may change before it starts, which asks again. */
      if ((worker->state != PTO_WORKER_STATE_NEW || worker->starting != NULL)
          && !pto_worker_check_schedule (worker, error))
        {
          g_free (worker->schedule);
          worker->schedule = g_steal_pointer (&before);
          ok = FALSE;
        }
    }
  g_mutex_unlock (&worker->lock);
  return ok;
}

/* What is below a worker is made when that starts, as it is then. */
static gboolean
check_not_made (PtoWorker *worker, const char *name, GError **error)
{
  g_autofree char *path = NULL;
  g_autofree char *above = NULL;

  if (worker->node.parent == NULL || worker->serves
      || pto_worker_get_state (worker) != PTO_WORKER_STATE_NEW
      || !pto_worker_is_made (worker->node.parent->worker))
    return TRUE;
  path = pto_worker_dup_path (worker);
  above = pto_tree_node_dup_path (worker->node.parent);
  return pto_refuse (
      error, PTO_ERROR_BUSY,
      _ ("parameter %s of %s can be set only before %s, the worker above it, starts: by "
         "start(), its first run or the first memory (alloc_buffer(), malloc())"),
      name, path, above);
}

/**
 * pto_worker_set_parameter:
 * @worker: a worker that has not started, unless the parameter is `schedule`
 * @name: a name of [func@Pto.Worker.list_parameters]
 * @value: its value as text; sizes may end in `K`, `M` or `G`
 * @error: where to say why not
 *
 * Sets a parameter of the worker: a ring size, the back end, the number of control threads. One of
 * them, `schedule`, can also be set when the worker has started, for the runs that begin from then
 * on: it says in which order their tasks run, and needs the back end `det`.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, naming the parameter and its range, or that a worker of this
 * level does not look at it (chips have a back end, hosts have time limits of tasks), with
 * %PTO_ERROR_BUSY when the worker, or one above it, has started already, and with
 * %PTO_ERROR_CLOSED when it is closed. Source: seed 000 section 14. Thread safety: any thread.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_worker_set_parameter (PtoWorker *worker, const char *name, const char *value, GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status = PTO_OK;
  struct pto_params before;
  PtoWorkerState state;
  const char *why;
  int i;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (value != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  i = pto_worker_find_parameter (name);
  why = i >= 0 ? pto_param_no_effect ((enum pto_param) i, worker->node.level) : NULL;
  /* What an isolated chip shares with its program lies there. */
  if (i == PTO_PARAMETER_ARENA && pto_worker_get_isolate (worker))
    why = NULL;
  if (why != NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("parameter %s has no effect on a worker of level %u: %s%s"), name,
                       worker->node.level, why,
                       worker->node.level > 2 && i != PTO_PARAMETER_ISOLATE
                           ? _ ("; set it on those below, see pto_worker_get_child(), or in "
                                "the environment")
                           : "");
  if (i >= 0 && !check_not_made (worker, name, error))
    return FALSE;
  if (i == PTO_PARAMETER_SCHEDULE)
    return set_schedule (worker, value, error);
  g_mutex_lock (&worker->lock);
  state = worker->state;
  if (state == PTO_WORKER_STATE_NEW && worker->starting != NULL)
    state = PTO_WORKER_STATE_READY;
  before = worker->params;
  /* One that there is not changes nothing: that is what is wrong, whenever it is asked for. */
  if (state == PTO_WORKER_STATE_NEW || i < 0)
    status = pto_params_set (&worker->params, name, value, &report);
  if (status == PTO_OK && !pto_worker_choose_machine (worker))
    status = pto_report_set (&report, PTO_STATUS_INVALID_ARGS,
                             _ ("isolate is chosen before anything is registered on the worker"));
  if (status != PTO_OK)
    worker->params = before;
  g_mutex_unlock (&worker->lock);
  if (state == PTO_WORKER_STATE_CLOSED && i >= 0)
    return pto_refuse (error, PTO_ERROR_CLOSED,
                       _ ("the worker is closed: parameter %s can be set on a new one"), name);
  if (state != PTO_WORKER_STATE_NEW && i >= 0)
    return pto_refuse (
        error, PTO_ERROR_BUSY,
        _ ("parameter %s can be set only before the worker starts: by start(), its first run or, of a "
           "chip or a remote worker below it, the first device memory (alloc_buffer(), malloc())"),
        name);
  if (status != PTO_OK)
    pto_error_set_from_report (error, status, &report);
  return status == PTO_OK;
}

/**
 * pto_worker_dup_parameter:
 * @worker: a worker
 * @name: a name of [func@Pto.Worker.list_parameters]
 * @error: where to say why not
 *
 * Gives the value of a parameter.
 *
 * Fails with %PTO_ERROR_NOT_FOUND. Thread safety: any thread.
 *
 * Returns: (transfer full): its value as text
 *
 * Since: 0.1
 */
char *
pto_worker_dup_parameter (PtoWorker *worker, const char *name, GError **error)
{
  char text[256] = "";
  char *value = NULL;
  gboolean found;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  g_mutex_lock (&worker->lock);
  found = pto_params_get (&worker->params, name, text, sizeof text);
  if (found && worker->schedule != NULL
      && strcmp (name, pto_param_name (PTO_PARAMETER_SCHEDULE)) == 0)
    value = g_strdup (worker->schedule);
  g_mutex_unlock (&worker->lock);
  if (!found)
    {
      g_auto (GStrv) names = pto_worker_list_parameters ();
      g_autofree char *all = g_strjoinv (", ", names);
      char question[200];

      pto_refuse (error, PTO_ERROR_NOT_FOUND,
                  _ ("there is no parameter \"%s\": choose one of %s%s"), name, all,
                  pto_params_ask (name, 0, question, sizeof question));
      return NULL;
    }
  return value != NULL ? value : g_strdup (text);
}

/**
 * pto_worker_list_parameters:
 *
 * Gives the names of all parameters.
 *
 * Thread safety: any thread.
 *
 * Returns: (array zero-terminated=1) (transfer full): names
 *
 * Since: 0.1
 */
char **
pto_worker_list_parameters (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    g_strv_builder_add (builder, pto_param_name ((enum pto_param) i));
  return g_strv_builder_end (builder);
}

GVariant *
pto_worker_pack_parameters (PtoWorker *worker)
{
  GVariantBuilder values;

  g_variant_builder_init (&values, G_VARIANT_TYPE ("a{ss}"));
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    if (pto_param_no_effect ((enum pto_param) i, worker->node.level) == NULL)
      {
        const char *name = pto_param_name ((enum pto_param) i);
        g_autofree char *value = pto_worker_dup_parameter (worker, name, NULL);

        g_variant_builder_add (&values, "{ss}", name, value);
      }
  return g_variant_builder_end (&values);
}

gboolean
pto_worker_unpack_parameters (PtoWorker *worker, GVariant *values, GError **error)
{
  GVariantIter iter;
  const char *name;
  const char *value;

  g_variant_iter_init (&iter, values);
  while (g_variant_iter_next (&iter, "{&s&s}", &name, &value))
    {
      g_autofree char *own = pto_worker_dup_parameter (worker, name, error);

      /* What it is by itself need not be a value that can be set. */
      if (own == NULL
          || (strcmp (own, value) != 0 && !pto_worker_set_parameter (worker, name, value, error)))
        return FALSE;
    }
  return TRUE;
}

/**
 * pto_worker_describe_parameter:
 * @name: a name of [func@Pto.Worker.list_parameters]
 *
 * Describes a parameter in one line.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): text; %NULL when there is no such parameter
 *
 * Since: 0.1
 */
const char *
pto_worker_describe_parameter (const char *name)
{
  int i;

  g_return_val_if_fail (name != NULL, NULL);

  i = pto_worker_find_parameter (name);
  return i >= 0 ? pto_param_description ((enum pto_param) i) : NULL;
}

/**
 * pto_worker_get_parameter_variable:
 * @name: a name of [func@Pto.Worker.list_parameters]
 *
 * Gives the environment variable that a new worker takes a parameter from.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): a name; %NULL when there is none
 *
 * Since: 0.1
 */
const char *
pto_worker_get_parameter_variable (const char *name)
{
  int i;

  g_return_val_if_fail (name != NULL, NULL);

  i = pto_worker_find_parameter (name);
  return i >= 0 ? pto_param_variable ((enum pto_param) i) : NULL;
}
