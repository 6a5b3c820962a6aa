/* machine-level-submit.c: how does a task of the object layer become one of a level?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "machine-level.h"

#include "base/error.h"
#include "callable/callable.h"
#include "common/text.h"
#include "values/address-range.h"
#include "values/call-config.h"
#include "values/task-args.h"
#include "values/tensor.h"
#include "run-outputs.h"

#include <string.h>

/* Arguments and members of a submit that need no memory from the heap. */
#define USUAL_ARGS 16
#define USUAL_MEMBERS 8

const char *
pto_machine_level_describe_kind (PtoCallableKind kind)
{
  return kind == PTO_CALLABLE_CHIP  ? _ ("for chips")
         : kind == PTO_CALLABLE_SUB ? _ ("a SUB function")
                                    : _ ("an orchestration for workers of level 3 and up");
}

/* As bits: of those, or of all that run orchestrations. */
static guint64
get_levels (LevelMachine *self, const PtoTargets *targets)
{
  guint64 levels = 0;

  for (guint i = 0; i < self->parent.node->children->len; i++)
    {
      guint level = pto_tree_node_peek_child (self->parent.node, i)->level;

      if (targets != NULL ? pto_targets_have (targets, i) : level > 2)
        levels |= G_GUINT64_CONSTANT (1) << level;
    }
  return levels;
}

/* Which children can run it: their kind, and the level that workers among them must have. */
static gboolean
choose_children (LevelMachine *self, const PtoMachineTask *submit, const PtoTargets *targets,
                 struct pto_level_task *task, GError **error)
{
  PtoCallable *callable = submit->registration->callable;

  task->kind = callable->kind == PTO_CALLABLE_SUB ? PTO_CHILD_SUB : PTO_CHILD_NEXT;
  task->serves = callable->kind == PTO_CALLABLE_CHIP ? 2 : 0;
  if (task->kind == PTO_CHILD_SUB)
    return TRUE;
  for (guint i = 0; submit->workers != NULL && i < submit->n_members; i++)
    {
      int id = submit->workers[i];
      guint number;
      guint level;

      /* The pool has words for one that is not there. */
      if (id < 0 || !pto_tree_node_find_child (self->parent.node, (guint) id, &number))
        continue;
      level = pto_tree_node_peek_child (self->parent.node, number)->level;
      if ((callable->kind == PTO_CALLABLE_CHIP) != (level == 2))
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                           _ ("\"%s\" is %s, worker %d of %s is of level %u"), callable->name,
                           pto_machine_level_describe_kind (callable->kind), id,
                           pto_tree_node_get_path (self->parent.node).text, level);
      if (task->serves != 0 && task->serves != level)
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("a group of \"%s\" names workers of level %u and of level %u: its members "
               "run on workers of one level"),
            callable->name, task->serves, level);
      task->serves = level;
    }
  if (task->serves == 0)
    {
      guint64 levels = get_levels (self, targets);

      /* The highest there is: the nearest below this one. */
      task->serves
          = levels != 0 ? 63 - (guint) __builtin_clzll (levels) : self->parent.node->level - 1;
    }
  return TRUE;
}

/* Arguments of all members as the engine takes them: tensors, then numbers. */
typedef struct
{
  PTOParam *params;
  PTOParam usual_params[USUAL_ARGS];
  struct pto_member *members;
  struct pto_member usual_members[USUAL_MEMBERS];
  guint n_params;
  /* PtoScalarKind of each scalar; NULL as long as all are unsigned. */
  guint8 *kinds;
  guint8 usual_kinds[USUAL_ARGS];
  /* Of each tensor, as struct pto_level_task has it; NULL as long as none stays where it is. */
  guint8 *stays;
  guint8 usual_stays[USUAL_ARGS];
} Packing;

/* Can these arguments go to another worker? */
static gboolean
check_args (const PtoMachineTask *submit, guint member, GError **error)
{
  PtoTaskArgs *args = submit->args[member];
  const char *name = submit->registration->callable->name;
  guint n_tensors = pto_task_args_get_n_tensors (args);
  gboolean ok = pto_task_args_check_order (args, error);

  for (guint i = 0; i < n_tensors && ok; i++)
    {
      struct pto_continuous_tensor packed;

      ok = pto_task_args_pack_tensor (args, i, &packed, error);
    }
  if (!ok && submit->n_members > 1)
    g_prefix_error (error, _ ("member %u of group of \"%s\": "), member, name);
  else if (!ok)
    g_prefix_error (error, _ ("task of \"%s\": "), name);
  return ok;
}

static gboolean
count_args (const PtoMachineTask *submit, Packing *packing, guint *n_tensors, GError **error)
{
  guint tensors = 0;
  guint scalars = 0;

  for (guint i = 0; i < submit->n_members; i++)
    {
      struct pto_member *member = &packing->members[i];
      PtoTaskArgs *args = submit->args[i];
      guint own_tensors = args != NULL ? pto_task_args_get_n_tensors (args) : 0;
      guint own_scalars = args != NULL ? pto_task_args_get_n_scalars (args) : 0;

      if (args != NULL && !check_args (submit, i, error))
        return FALSE;
      if (tensors + own_tensors > G_MAXUINT16 || scalars + own_scalars > G_MAXUINT16)
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("task of \"%s\": %u tensors and %u numbers are more than a task takes"),
            submit->registration->callable->name, tensors + own_tensors, scalars + own_scalars);
      member->first_tensor = (uint16_t) tensors;
      member->n_tensors = (uint16_t) own_tensors;
      member->first_scalar = (uint16_t) scalars;
      member->n_scalars = (uint16_t) own_scalars;
      member->worker = submit->workers != NULL && submit->workers[i] >= 0
                           ? (uint32_t) submit->workers[i]
                           : PTO_WORKER_ANY;
      tensors += own_tensors;
      scalars += own_scalars;
    }
  *n_tensors = tensors;
  packing->n_params = tensors + scalars;
  return TRUE;
}

static void
set_kind (Packing *packing, guint scalar, guint n_scalars, PtoScalarKind kind)
{
  if (packing->kinds == NULL)
    {
      if (kind == PTO_SCALAR_KIND_UNSIGNED)
        return;
      packing->kinds = n_scalars <= USUAL_ARGS ? packing->usual_kinds : g_new (guint8, n_scalars);
      memset (packing->kinds, PTO_SCALAR_KIND_UNSIGNED, n_scalars);
    }
  packing->kinds[scalar] = (guint8) kind;
}

static void
set_stays (Packing *packing, guint tensor, guint n_tensors, guint8 stays)
{
  if (packing->stays == NULL)
    {
      packing->stays = n_tensors <= USUAL_ARGS ? packing->usual_stays : g_new (guint8, n_tensors);
      memset (packing->stays, 0, n_tensors);
    }
  packing->stays[tensor] = stays;
}

/* A dump reads what is here. */
static gboolean
check_dump (LevelMachine *self, const PtoMachineTask *submit, guint index, guint tensor,
            GError **error)
{
  if (!pto_dump_reads (self->dump, submit->registration->callable->name, tensor))
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("argument %u stays in the memory of a remote worker, which a dump of tensors "
         "(enable_dump_tensor) cannot read: leave it out by naming others (dump_filter)"),
      index);
}

/* Where it stays, if it does. */
static gboolean
fill_stays (LevelMachine *self, const PtoMachineTask *submit, Packing *packing, guint member,
            const PtoArg *arg, guint index, guint tensor, guint n_tensors, GError **error)
{
  guint64 address = pto_tensor_get_address (arg->tensor);

  if (pto_tensor_get_worker (arg->tensor) >= 0)
    set_stays (packing, tensor, n_tensors, PTO_WIRE_STAYS);
  if ((pto_tensor_get_worker (arg->tensor) >= 0 || pto_remote_range_has (address))
      && !check_dump (self, submit, index, tensor, error))
    return FALSE;
  if (!pto_remote_range_has (address))
    return TRUE;
  set_stays (packing, tensor, n_tensors, PTO_WIRE_STAYS | PTO_WIRE_OWNED);
  if (!pto_machine_level_check_memory (
          self, address, pto_tensor_extent (pto_tensor_peek (arg->tensor)), index,
          submit->registration->callable->kind != PTO_CALLABLE_SUB && submit->workers != NULL
              ? submit->workers[member]
              : -1,
          error))
    return FALSE;
  if (self->run->capture != NULL)
    pto_machine_level_keep_memory (self, pto_tensor_peek (arg->tensor), self->run->capture);
  return TRUE;
}

/* Its place among all children. */
static guint
get_child_index (LevelMachine *self, const struct pto_level_task *task, guint number)
{
  return task->kind == PTO_CHILD_SUB ? self->parent.node->children->len + number : number;
}

static guint
count_kind (LevelMachine *self, const struct pto_level_task *task)
{
  return task->kind == PTO_CHILD_SUB ? self->parent.node->n_sub_workers
                                     : self->parent.node->children->len;
}

/* Could it run it, if it had it? */
static gboolean
is_of_class (LevelMachine *self, const struct pto_level_task *task, guint number)
{
  return task->kind == PTO_CHILD_SUB
         || pto_tree_node_peek_child (self->parent.node, number)->level == task->serves;
}

/* The number of a worker that is named; one that is not there is told of by the pool, unless
 * workers have ids that were given to them. */
static gboolean
find_named (LevelMachine *self, const struct pto_level_task *task, int id, guint32 *number,
            GError **error)
{
  g_autofree char *ids = NULL;

  *number = (guint32) id;
  if (task->kind == PTO_CHILD_SUB
      || pto_tree_node_find_child (self->parent.node, (guint) id, number))
    return TRUE;
  *number = (guint32) id;
  if (!self->has_given_ids)
    return TRUE;
  ids = pto_tree_node_describe_ids (self->parent.node);
  return pto_refuse (error, PTO_ERROR_NOT_FOUND,
                     _ ("%s has no worker %d: the ids of its workers are %s"),
                     pto_tree_node_get_path (self->parent.node).text, id, ids);
}

static gboolean
refuse_worker (LevelMachine *self, const struct pto_level_task *task, const PtoTargets *targets,
               int id, GError **error)
{
  g_autoptr (GString) others = g_string_new (NULL);

  for (guint i = 0; i < count_kind (self, task); i++)
    if (pto_targets_have (targets, i))
      g_string_append_printf (
          others, "%s%u", others->len > 0 ? ", " : "",
          task->kind == PTO_CHILD_SUB ? i : pto_tree_node_peek_child (self->parent.node, i)->id);
  return pto_refuse (
      error, PTO_ERROR_NOT_FOUND,
      _ ("\"%s\" is not registered on worker %d of %s, but on %s: register it there, too, or "
         "name one of those"),
      task->name, id, pto_tree_node_get_path (self->parent.node).text, others->str);
}

/* Of those that have it the one that fewest tasks of the run were bound to, so that the same graph
 * goes to the same workers each time; -1: there are no more. */
static int
choose_number (LevelMachine *self, const struct pto_level_task *task, const PtoTargets *targets,
               const PtoTargets *taken)
{
  int found = -1;
  int gone = -1;

  for (guint i = 0; i < count_kind (self, task); i++)
    {
      guint index = get_child_index (self, task, i);

      if (!pto_targets_have (targets, i) || pto_targets_have (taken, i)
          || !is_of_class (self, task, i))
        continue;
      if (pto_level_is_gone (self->level, index))
        gone = gone < 0 ? (int) i : gone;
      else if (found < 0
               || self->bound[index] < self->bound[get_child_index (self, task, (guint) found)])
        found = (int) i;
    }
  return found >= 0 ? found : gone;
}

/* Who is named has it, and who is not is one that has it, if not all do. */
static gboolean
place_members (LevelMachine *self, const PtoMachineTask *submit, const PtoTargets *targets,
               const struct pto_level_task *task, struct pto_member *members, GError **error)
{
  PtoTargets taken = { { 0 } };
  gboolean has_rest = FALSE;

  for (guint i = 0; i < submit->n_members; i++)
    {
      int id = submit->workers != NULL ? submit->workers[i] : -1;

      if (id < 0)
        {
          has_rest = TRUE;
          continue;
        }
      if (!find_named (self, task, id, &members[i].worker, error))
        return FALSE;
      if (members[i].worker >= count_kind (self, task))
        continue;
      if (targets != NULL && !pto_targets_have (targets, members[i].worker))
        return refuse_worker (self, task, targets, id, error);
      if (pto_targets_have (&taken, members[i].worker))
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("worker %u is named twice in a group: its members run at the same time"),
            (guint) id);
      pto_targets_add (&taken, members[i].worker);
      self->bound[get_child_index (self, task, members[i].worker)]++;
    }
  if (targets == NULL || !has_rest)
    return TRUE;
  for (guint i = 0; i < submit->n_members; i++)
    {
      int number;

      if (members[i].worker != PTO_WORKER_ANY)
        continue;
      number = choose_number (self, task, targets, &taken);
      if (number < 0)
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("a group of %u needs %u workers at one time; \"%s\" is registered on fewer"),
            submit->n_members, submit->n_members, task->name);
      members[i].worker = (guint32) number;
      pto_targets_add (&taken, (guint) number);
      self->bound[get_child_index (self, task, (guint) number)]++;
    }
  return TRUE;
}

/* What stays has its memory there from its first task, which is given all of it: of a view the
 * worker would have just that part. */
static gboolean
check_whole (LevelMachine *self, const PtoArg *arg, const PTOParam *param, guint index,
             GError **error)
{
  PtoTensor *tensor = arg->tensor;
  guint64 bytes = pto_tensor_get_n_bytes (tensor);
  guint64 all = param->tensor.buffer.size;

  if (pto_tensor_get_worker (tensor) < 0 || arg->direction != PTO_DIRECTION_OUTPUT || bytes >= all
      || pto_level_has_memory (&param->tensor))
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("argument %u is %" PRIu64 " of the %" PRIu64
         " bytes of a tensor that stays at worker %d (make_tensor_at), of which no task "
         "has written anything yet: the first one is given all of it, later ones may have "
         "views"),
      index, bytes, all, pto_tensor_get_worker (tensor));
}

/* FALSE with an error: refused; without: the run has failed. */
static gboolean
fill_args (LevelMachine *self, const PtoMachineTask *submit, Packing *packing, guint n_tensors,
           PTO2Runtime *rt, GError **error)
{
  guint tensor = 0;
  guint scalar = n_tensors;

  for (guint i = 0; i < submit->n_members; i++)
    {
      const PtoArg *args = NULL;
      guint n_args = 0;

      if (submit->args[i] != NULL)
        args = pto_task_args_peek (submit->args[i], &n_args);
      for (guint k = 0; k < n_args; k++)
        if (args[k].tensor == NULL)
          {
            set_kind (packing, scalar - n_tensors, packing->n_params - n_tensors, args[k].kind);
            packing->params[scalar++] = make_scalar_param (args[k].scalar);
          }
        else
          {
            if (!fill_stays (self, submit, packing, i, &args[k], k, tensor, n_tensors, error)
                || !pto_arg_prepare (&args[k], k, rt, submit->run, &packing->params[tensor], error)
                || !check_whole (self, &args[k], &packing->params[tensor++], k, error))
              {
                g_prefix_error (error, _ ("task of \"%s\": "),
                                submit->registration->callable->name);
                return FALSE;
              }
          }
    }
  return TRUE;
}

/* A chip in this process keeps its record where it can be asked for. */
gboolean
pto_machine_level_check_switches (LevelMachine *self, const char *name, gboolean is_for_chips,
                                  const PtoCallConfig *config, GError **error)
{
  int value;
  const char *found = pto_call_config_find_switch (config, &value);

  if (found == NULL || pto_call_config_get_output_prefix (config)[0] != '\0'
      || (config->enable_dump_tensor == 0
          && (self->recording
              || (is_for_chips && self->parent.node->child_mode != PTO_CHILD_MODE_PROCESS))))
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("task of \"%s\": %s = %d has no effect without an "
                        "output_prefix: the record is made in another process, and is seen only as "
                        "a file, or in the record of a run that has a swimlane, or trace, itself"),
                     name, config->enable_dump_tensor != 0 ? "enable_dump_tensor" : found,
                     config->enable_dump_tensor != 0 ? config->enable_dump_tensor : value);
}

/* The configuration of a task is the whole of a chip's run. */
static gboolean
fill_config (LevelMachine *self, const PtoMachineTask *submit, struct pto_level_task *task,
             GError **error)
{
  g_autoptr (PtoCallConfig) config = NULL;
  const PtoCallable *callable = submit->registration->callable;

  if (submit->config != NULL)
    {
      /* What is captured is not of this run. */
      config = self->run->capture != NULL
                   ? pto_call_config_copy (submit->config)
                   : pto_run_outputs_claim_for (submit->config, self->run->number);
      self->passed_on = self->passed_on || pto_call_config_find_choice (config) != NULL;
      if (callable->kind != PTO_CALLABLE_SUB
          && !pto_machine_level_check_switches (self, callable->name,
                                                callable->kind == PTO_CALLABLE_CHIP, config, error))
        return FALSE;
      pto_call_config_extend_prefix (config, "task", self->n_tasks);
      if (!pto_call_config_check (config, error))
        return FALSE;
    }
  pto_call_config_to_wire (config, &task->config);
  return TRUE;
}

gboolean
pto_machine_level_submit (PtoMachine *machine, PTO2Runtime *rt, PtoMachineTask *submit,
                          GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_level_task task;
  struct pto_report report = { 0 };
  enum pto_status status = PTO_OK;
  const PtoTargets *targets = pto_registration_peek_targets (submit->registration);
  Packing packing;
  guint n_tensors;
  gboolean ok;

  task.digest = submit->registration->digest;
  /* A program may rename the callable, while a graph goes on. */
  task.name = submit->registration->name;
  task.idempotent = g_atomic_int_get (&submit->registration->idempotent) != 0;
  task.n_members = submit->n_members;
  if (!choose_children (self, submit, targets, &task, error))
    return FALSE;
  packing.members = submit->n_members <= USUAL_MEMBERS
                        ? packing.usual_members
                        : g_new (struct pto_member, submit->n_members);
  packing.params = packing.usual_params;
  ok = count_args (submit, &packing, &n_tensors, error)
       && place_members (self, submit, targets, &task, packing.members, error)
       && fill_config (self, submit, &task, error);
  if (ok)
    {
      if (packing.n_params > USUAL_ARGS)
        packing.params = g_new (PTOParam, packing.n_params);
      task.members = packing.members;
      packing.kinds = NULL;
      packing.stays = NULL;
      ok = fill_args (self, submit, &packing, n_tensors, rt, error);
      if (ok)
        {
          task.kinds = packing.kinds;
          task.stays = packing.stays;
          submit->submit.kernel = submit->registration->index;
          submit->submit.params = packing.params;
          submit->submit.n_params = packing.n_params;
          status = pto_level_submit (self->level, &submit->submit, &task, &submit->id, &report);
          ok = !pto_runtime_has_failed (rt) && pto_error_set_from_report (error, status, &report);
          self->n_tasks += ok;
        }
      if (packing.kinds != packing.usual_kinds)
        g_free (packing.kinds);
      if (packing.stays != packing.usual_stays)
        g_free (packing.stays);
    }
  if (packing.params != packing.usual_params)
    g_free (packing.params);
  if (packing.members != packing.usual_members)
    g_free (packing.members);
  return ok;
}

guint64
pto_machine_level_order (PtoMachine *machine, const struct pto_submit *submit)
{
  return pto_level_order (((LevelMachine *) machine)->level, submit);
}

gboolean
pto_machine_level_alloc (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  struct pto_report report = { 0 };
  enum pto_status status = pto_level_alloc (self->level, tensor, &report);

  return !pto_runtime_has_failed (rt) && pto_error_set_from_report (error, status, &report);
}
