/* machine-level-graph.c: how does a worker of level 3 or up capture a graph, and launch one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "machine-level.h"

#include "base/error.h"
#include "common/text.h"
#include "values/address-range.h"
#include "values/call-config.h"

int
pto_machine_level_capture (PTO2Runtime *rt, void *data)
{
  LevelMachine *self = data;
  const PtoMachineRun *run = self->run;

  for (guint i = 0; i < self->n_given; i++)
    {
      struct pto_plan_param param = pto_chip_arg_param (&self->given[i]);

      param.owned = param.tensor.ndims > 0 && pto_remote_range_has (param.word);
      pto_plan_add_param (run->capture, &param);
    }
  if (!pto_level_begin_capture (self->level, run->capture))
    return 1;
  return run->orchestrate (rt, run->data);
}

/* What was to be seen of a run that was recorded need not be seen of this one. */
static gboolean
check_switches (LevelMachine *self, const struct pto_plan *plan, GError **error)
{
  for (guint t = 0; t < plan->n_tasks; t++)
    {
      g_autoptr (PtoCallConfig) config = NULL;
      const struct pto_level_task *task = pto_level_graph_task (plan, t);

      if (task == NULL)
        continue;
      config = pto_call_config_new_from_wire (&task->config);
      if (task->kind == PTO_CHILD_NEXT
          && !pto_machine_level_check_switches (self, task->name, task->serves == 2, config, error))
        return FALSE;
    }
  return TRUE;
}

/* A graph may have been captured where all have what its tasks run. */
static gboolean
check_targets (LevelMachine *self, const struct pto_plan *plan, GError **error)
{
  for (guint t = 0; t < plan->n_tasks; t++)
    {
      const struct pto_level_task *task = pto_level_graph_task (plan, t);
      const struct pto_member *members;
      const PtoTargets *targets;
      PtoTargets copy;

      if (task == NULL)
        continue;
      members = pto_level_graph_members (task);
      targets = pto_machine_level_find_targets (self, task->digest, &copy);
      for (guint m = 0; targets != NULL && m < task->n_members; m++)
        if (members[m].worker == PTO_WORKER_ANY || !pto_targets_have (targets, members[m].worker))
          return pto_refuse (
              error, PTO_ERROR_INVALID_ARGS,
              _ ("task %u of the graph is of \"%s\", which is not registered on all "
                 "workers that it may go to: register it on all, or capture the graph "
                 "as it is now"),
              t, task->name);
    }
  return TRUE;
}

void
pto_machine_level_launch (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
                          const guint32 *kernels)
{
  LevelMachine *self = (LevelMachine *) machine;
  guint n = pto_plan_n_given (plan);
  g_autofree struct pto_plan_given *given
      = g_new0 (struct pto_plan_given, MAX (self->n_given, n) + plan->n_kept + 1);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < self->n_given; i++)
    given[i] = pto_chip_arg_given (&self->given[i]);
  /* The level refuses a launch with too few arguments, or too many. */
  for (guint i = n; i < plan->n_params && self->n_given == n; i++)
    given[i] = (struct pto_plan_given){ .word = plan->params[i].first,
                                        .tensor = &plan->params[i].tensor };
  if (!check_switches (self, plan, &error) || !check_targets (self, plan, &error)
      || !pto_machine_level_find_owned (self, plan, given, self->n_given, &error))
    pto_machine_fail_run (rt,
                          g_error_matches (error, PTO_ERROR, PTO_ERROR_WORKER_LOST)
                              ? PTO_STATUS_WORKER_LOST
                              : PTO_STATUS_INVALID_ARGS,
                          error->message);
  else
    pto_level_launch (self->level, plan, given, self->n_given, kernels);
}
