/* orchestrator-submit.c: how does an orchestration function submit tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "orchestrator.h"

#include "base/error.h"
#include "base/source-place.h"
#include "callable/callable-handle.h"
#include "callable/callable.h"
#include "callable/kernel.h"
#include "common/text.h"
#include "values/call-config.h"
#include "values/task-args.h"
#include "values/tensor.h"
#include "pto-platform.h"

#include <string.h>

/* Arguments of a submit that need no memory from the heap. */
#define USUAL_ARGS 16

/* How an argument is reduced. */
typedef struct
{
  gint32 combine; /* the kernel's number */
  guint64 initial;
} Reduction;

typedef struct
{
  PtoOrchestratorCall base;

  PTO2Submit submit;           /* but for its parameters, and what terms say */
  const char *name;            /* of the kernel, or the first one */
  PtoCallable *const *kernels; /* of members that have arguments of their own */
  const PtoArg *args;
  guint n_args;
  const Reduction *reductions; /* of each of them that is reduced, in order */
  const PtoTaskTerms *terms;
  guint64 id; /* the result */
} Call;

/* Which of its kernel's arguments it is, and before what is wrong with it stands whose. */
static guint
find_own_index (const Call *call, guint index, guint *member)
{
  *member = 0;
  while (call->submit.group_params != NULL && index >= (guint) call->submit.group_params[*member])
    index -= (guint) call->submit.group_params[(*member)++];
  return index;
}

static void
prefix_kernel (const Call *call, guint member, GError **error)
{
  if (call->submit.group_params == NULL)
    g_prefix_error (error, _ ("kernel \"%s\": "), call->name);
  else
    g_prefix_error (error, _ ("member %u of a group: kernel \"%s\": "), member,
                    call->kernels[member]->name);
}

/* The arguments as the runtime takes them; FALSE: the run has failed, or with an error: one of them
 * is refused. */
static gboolean
prepare_params (Call *call, PTOParam *params)
{
  const Reduction *reduction = call->reductions;

  for (guint i = 0; i < call->n_args; i++)
    {
      const PtoArg *arg = &call->args[i];
      guint member;

      if (arg->direction == PTO_DIRECTION_SCALAR)
        params[i] = make_scalar_param (pto_arg_get_word (arg));
      else if (!pto_arg_prepare (arg, find_own_index (call, i, &member), call->base.self->rt,
                                 call->base.self->run, &params[i], &call->base.error))
        {
          prefix_kernel (call, member, &call->base.error);
          return FALSE;
        }
      else if (G_UNLIKELY (arg->direction == PTO_DIRECTION_REDUCTION))
        {
          params[i].combine = reduction->combine;
          params[i].scalar = reduction->initial;
          reduction++;
        }
    }
  return TRUE;
}

static guint64
submit_more (Call *call)
{
  const PtoTaskTerms *terms = call->terms;
  PTO2Runtime *rt = call->base.self->rt;
  PTO2Submit *submit = &call->submit;
  Tensor condition;

  submit->size = sizeof *submit;
  submit->block_dim = terms->has_block_dim ? terms->block_dim : 0;
  submit->sync_start = terms->sync_start;
  submit->in_cluster = terms->has_cluster;
  submit->cluster_id = terms->cluster;
  if (terms->after != NULL)
    {
      submit->after = (const PTO2TaskId *) (gpointer) terms->after->data;
      submit->n_after = (int32_t) terms->after->len;
    }
  if (terms->condition != NULL)
    {
      if (!pto_tensor_prepare (terms->condition, rt, call->base.self->run, TRUE, &condition,
                               &call->base.error))
        {
          g_prefix_error (&call->base.error, "%s", _ ("its condition: "));
          call->base.failed = TRUE;
          return PTO2_TASK_NONE;
        }
      submit->condition = &condition;
      submit->condition_index = terms->index;
    }
  return rt->ops->submit (rt, submit);
}

/* On a machine that has children. */
static guint64
submit_order (const Call *call)
{
  const GArray *after = call->terms->after;
  struct pto_submit submit
      = { .params = call->submit.params, .n_params = (guint32) call->submit.n_params };

  if (after != NULL)
    {
      submit.producers = (const guint64 *) (gpointer) after->data;
      submit.n_producers = after->len;
    }
  return call->base.self->machine->ops->order (call->base.self->machine, &submit);
}

static void
call_submit (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->base.self->rt;
  const PtoMachineOps *ops = call->base.self->machine->ops;
  PTO2Submit *submit = &call->submit;
  PTOParam usual[USUAL_ARGS];
  PTOParam *params = call->n_args <= USUAL_ARGS ? usual : g_new (PTOParam, call->n_args);

  call->base.failed
      = pto_orchestrator_has_failed (call->base.self) || !prepare_params (call, params);
  if (!call->base.failed)
    {
      submit->params = params;
      submit->n_params = (int32_t) call->n_args;
      if (submit->kernel_id == PTO2_KERNEL_NONE && ops->order != NULL)
        call->id = submit_order (call);
      else if (submit->kernel_id == PTO2_KERNEL_NONE || call->terms->after != NULL
               || call->terms->condition != NULL || !pto_terms_are_none (&call->base.self->terms)
               || pto_task_terms_is_several (call->terms))
        call->id = submit_more (call);
      else
        /* Not the macro, which would note this place. */
        call->id = (pto2_rt_submit_task) (rt, submit->kernel_id, submit->worker_type, params,
                                          submit->n_params);
      call->base.failed = call->base.failed || ops->has_failed (rt);
    }
  if (params != usual)
    g_free (params);
}

static gboolean
make_submit (PtoOrchestrator *self, Call *call, GError **error)
{
  if (!pto_orchestrator_make_call (self, call_submit, &call->base, error))
    return FALSE;
  self->last_task = call->id;
  return TRUE;
}

static gboolean
check_args (PtoOrchestrator *self, PtoCallable *kernel, const PtoArg *args, guint n_args,
            GError **error)
{
  if (!pto_kernel_check_args (kernel, args, n_args, error))
    return FALSE;
  if (pto_args_admit (args, n_args, PTO_ARGS_OF_CHIP, self->run, &self->kept, error))
    return TRUE;
  g_prefix_error (error, _ ("kernel \"%s\": "), kernel->name);
  return FALSE;
}

static gboolean
find_kernel (PtoOrchestrator *self, PtoCallable *kernel, gint32 *id, GError **error)
{
  guint i = (guint) (((guintptr) kernel >> 4) * 0x9e3779b1u >> 16) % PTO_RECENT_KERNELS;

  if (self->recent[i].kernel != kernel)
    {
      const PtoTreeNode *node = self->node;

      if (!node->ops->find_kernel (node->worker, kernel, id, error)
          || (self->checks && !node->ops->instrument_kernel (node->worker, kernel, error)))
        return FALSE;
      g_set_object (&self->recent[i].kernel, kernel);
      self->recent[i].id = *id;
    }
  *id = self->recent[i].id;
  return TRUE;
}

/* What its arguments are reduced with; NULL with an error. */
static Reduction *
find_reductions (PtoOrchestrator *self, const Call *call, GError **error)
{
  const PtoArg taken[]
      = { { .direction = PTO_DIRECTION_INOUT }, { .direction = PTO_DIRECTION_INPUT } };
  g_autofree Reduction *reductions = g_new (Reduction, call->n_args);
  guint n = 0;

  for (guint i = 0; i < call->n_args; i++)
    {
      const PtoArg *arg = &call->args[i];
      Reduction *reduction = &reductions[n];
      guint member;
      guint index = find_own_index (call, i, &member);

      if (arg->direction != PTO_DIRECTION_REDUCTION)
        continue;
      n++;
      if (!pto_arg_find_reduction (arg, index, &reduction->combine, &reduction->initial, error))
        ;
      else if (arg->combine == NULL)
        continue;
      else if (!pto_kernel_check_args (arg->combine->combine, taken, G_N_ELEMENTS (taken), error))
        g_prefix_error (
            error,
            _ ("argument %u is combined by two tensors, one that takes in (inout) and one "
               "that is taken in (input): "),
            index);
      else if (find_kernel (self, arg->combine->combine, &reduction->combine, error))
        continue;
      prefix_kernel (call, member, error);
      return NULL;
    }
  return g_steal_pointer (&reductions);
}

/* Memory, and an index that is as long as its tensor says. */
static gboolean
check_condition (PtoCallable *kernel, const PtoTaskTerms *terms, GError **error)
{
  const guint64 *shape;
  const char *refusal;
  gsize n_dims;

  if (terms->condition == NULL)
    return TRUE;
  refusal = pto_tensor_get_refusal (terms->condition);
  if (refusal != NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("kernel \"%s\": its condition: %s"),
                   kernel->name, refusal);
      return FALSE;
    }
  shape = pto_tensor_get_shape (terms->condition, &n_dims);
  for (gsize i = 0; i < n_dims && terms->n_index == n_dims; i++)
    if (terms->index[i] >= shape[i])
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("kernel \"%s\": its condition names element %" PRIu64
                        " of dimension %zu, which has %" PRIu64),
                     kernel->name, terms->index[i], i, shape[i]);
        return FALSE;
      }
  if (terms->n_index == n_dims)
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      _ ("kernel \"%s\": its condition names an element by %zu numbers, but the tensor has %zu dimensions"),
      kernel->name, terms->n_index, n_dims);
  return FALSE;
}

/* What a task of more than one kernel on one core needs at one time. */
typedef struct
{
  const char *name;           /* of the first kernel */
  guint n_of[PTO_CORE_TYPES]; /* cores, of each block, or of a whole group */
  gboolean together;          /* in one cluster */
  guint n_at_once;            /* blocks */
} Places;

/* The number of clusters in which all blocks begin at once; each kind of core is there. */
static guint64
clusters_for (PtoOrchestrator *self, const Places *places)
{
  guint64 n = 0;

  for (guint type = 0; type < PTO_CORE_TYPES; type++)
    if (places->n_of[type] > 0 && places->together)
      {
        guint64 blocks = self->n_cores[type] / places->n_of[type];

        n = MAX (n, (places->n_at_once - 1) / blocks + 1);
      }
    else if (places->n_of[type] > 0)
      n = MAX (n, ((guint64) places->n_at_once * places->n_of[type] - 1) / self->n_cores[type] + 1);
  return n;
}

/* Says how to have so many clusters. */
static char *
advise_clusters (PtoOrchestrator *self, guint64 n)
{
  g_autoptr (PtoPlatform) platform = pto_platform_lookup (self->node->platform, NULL);
  guint64 all = self->machine->params->values[PTO_PARAMETER_CLUSTERS];

  if (all == 0 && platform != NULL)
    all = pto_platform_get_n_clusters (platform);
  if (n > PTO_MAX_CLUSTERS)
    return g_strdup (_ ("ask for less"));
  return g_strdup_printf (self->n_clusters < all ? _ ("set block_dim to more, at least %" PRIu64)
                                                 : _ ("set clusters to more, at least %" PRIu64),
                          n);
}

static gboolean
check_places (PtoOrchestrator *self, const Places *places, gboolean in_one, GError **error)
{
  static const char *const names[PTO_CORE_TYPES] = { "AIC", "AIV" };
  guint64 n_fitting = G_MAXUINT64;
  g_autofree char *more = NULL;

  if (!pto_orchestrator_ask_clusters (self, error))
    return FALSE;
  for (guint type = 0; type < PTO_CORE_TYPES; type++)
    {
      guint64 n_cores = self->n_cores[type] * (guint64) (places->together ? 1 : self->n_clusters);

      if (places->n_of[type] == 0)
        continue;
      if (places->n_of[type] > n_cores)
        {
          g_autofree char *clusters = advise_clusters (
              self, self->n_cores[type] == 0 ? G_MAXUINT64
                                             : (places->n_of[type] - 1) / self->n_cores[type] + 1);
          g_autofree char *advice
              = places->together ? g_strdup (_ ("choose a platform with larger clusters"))
                                 : g_strdup_printf (_ ("name fewer kernels, or %s"), clusters);

          g_set_error (
              error, PTO_ERROR, places->together ? PTO_ERROR_INVALID_ARGS : PTO_ERROR_SYNC_START,
              _ ("kernel \"%s\": its task needs %u %s cores %s at once, which %s has %" PRIu64
                 " of: %s"),
              places->name, places->n_of[type], names[type],
              places->together ? _ ("of one cluster") : _ ("of the chip"),
              places->together ? _ ("each") : _ ("this one"), n_cores, advice);
          return FALSE;
        }
      n_fitting = MIN (n_fitting, n_cores / places->n_of[type]);
    }
  if (places->together && !in_one)
    n_fitting *= self->n_clusters;
  if (places->n_at_once <= n_fitting)
    return TRUE;
  if (!in_one)
    more = advise_clusters (self, clusters_for (self, places));
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_SYNC_START,
      _ ("kernel \"%s\": block_dim is %u, and with sync_start all blocks begin at once, but "
         "%s has cores for %" PRIu64 ": submit fewer blocks, leave sync_start out, "
         "or %s"),
      places->name, places->n_at_once, in_one ? _ ("the cluster") : _ ("this chip"), n_fitting,
      in_one ? _ ("submit them for no cluster") : more);
  return FALSE;
}

/* Kernels that run together, or what else a submit says of more than one, or of where. */
static gboolean
check_several (PtoOrchestrator *self, Places *places, const PtoTaskTerms *terms, gboolean is_group,
               GError **error)
{
  if (is_group && pto_task_terms_is_several (terms))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("kernel \"%s\": %s, but it is of a group, whose kernels are its blocks and begin "
             "at once wherever there are cores: leave that out"),
          places->name, pto_task_terms_describe_several (terms));
      return FALSE;
    }
  if (terms->has_block_dim && (terms->block_dim < 1 || terms->block_dim > PTO_MAX_BLOCKS))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("kernel \"%s\": block_dim is %d: a task has 1 to %d blocks"), places->name,
                   terms->block_dim, PTO_MAX_BLOCKS);
      return FALSE;
    }
  if (terms->has_cluster
      && !pto_orchestrator_check_cluster (self, places->name, terms->cluster, error))
    return FALSE;
  if (terms->sync_start && terms->has_block_dim)
    places->n_at_once = (guint) terms->block_dim;
  places->together = places->together || terms->has_cluster;
  return !(is_group || places->together || places->n_at_once > 1)
         || check_places (self, places, terms->has_cluster, error);
}

/* Of a task with kernels. */
static gboolean
make_kernel_submit (PtoOrchestrator *self, Call *call, GError **error)
{
  g_autofree Reduction *reductions = NULL;

  pto_terms_put (&self->terms, &call->submit);
  if (G_UNLIKELY (call->terms->n_reductions > 0))
    {
      call->reductions = reductions = find_reductions (self, call, error);
      if (reductions == NULL)
        return FALSE;
    }
  return make_submit (self, call, error);
}

static gboolean
submit (PtoOrchestrator *self, PtoCallable *kernel, const PtoArg *args, guint n_args,
        const PtoTaskTerms *terms, GError **error)
{
  Call call
      = { .base.self = self, .args = args, .n_args = n_args, .terms = terms, .name = kernel->name };

  if (!pto_orchestrator_check_usable (self, error) || !pto_orchestrator_check_kernels (self, error)
      || !find_kernel (self, kernel, &call.submit.kernel_id, error)
      || !check_args (self, kernel, args, n_args, error) || !check_condition (kernel, terms, error))
    return FALSE;
  call.submit.worker_type = (gint32) ((PtoKernel *) kernel)->core_type;
  if (pto_task_terms_is_several (terms))
    {
      Places places = { .name = kernel->name, .n_at_once = 1 };

      places.n_of[call.submit.worker_type] = 1;
      if (!check_several (self, &places, terms, FALSE, error))
        return FALSE;
    }
  return make_kernel_submit (self, &call, error);
}

/* A task of several kernels: of a cluster, some of which may be NULL, or a group. */
static gboolean
submit_several (PtoOrchestrator *self, PtoCallable *const *kernels, guint n_kernels,
                gboolean is_group, PtoTaskArgs *args, GError **error)
{
  static const PtoCoreType mixed[] = { PTO_CORE_AIC, PTO_CORE_AIV, PTO_CORE_AIV };
  static const char *const names[] = { "aic", "aiv0", "aiv1" };
  g_autofree gint32 *ids = g_new (gint32, MAX (n_kernels, 1));
  Places places = { .together = !is_group, .n_at_once = 1 };
  Call call = { .base.self = self,
                .submit.kernel_id = PTO2_KERNEL_NONE,
                .terms = pto_task_args_get_terms (args) };

  if (!pto_orchestrator_check_usable (self, error) || !pto_orchestrator_check_kernels (self, error))
    return FALSE;
  if (args != NULL)
    call.args = pto_task_args_peek (args, &call.n_args);
  for (guint i = 0; i < n_kernels; i++)
    {
      PtoCoreType type;

      ids[i] = PTO2_KERNEL_NONE;
      if (kernels[i] == NULL && is_group)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel %u of a group is none: leave it out"), i);
          return FALSE;
        }
      if (kernels[i] == NULL)
        continue;
      g_return_val_if_fail (PTO_IS_CALLABLE (kernels[i]), FALSE);
      if (!find_kernel (self, kernels[i], &ids[i], error)
          || !check_args (self, kernels[i], call.args, call.n_args, error)
          || !check_condition (kernels[i], call.terms, error))
        return FALSE;
      type = ((PtoKernel *) kernels[i])->core_type;
      if (!is_group && type != mixed[i])
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\" is for the %s, but it is given as %s of a mixed task: a "
                          "kernel's core is said where it is made"),
                       kernels[i]->name, type == PTO_CORE_AIC ? "AIC" : "AIV", names[i]);
          return FALSE;
        }
      places.n_of[type]++;
      if (places.name == NULL)
        places.name = kernels[i]->name;
    }
  if (places.name == NULL)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          is_group ? _ ("a group has at least one kernel")
                   : _ ("a mixed task has at least one kernel: for the AIC, an AIV or both"));
      return FALSE;
    }
  if (!check_several (self, &places, call.terms, is_group, error))
    return FALSE;
  call.name = places.name;
  call.submit.mixed = is_group ? NULL : ids;
  call.submit.group = is_group ? ids : NULL;
  call.submit.n_group = is_group ? (int32_t) n_kernels : 0;
  return make_kernel_submit (self, &call, error);
}

/**
 * pto_orchestrator_submit:
 * @orchestrator: an orchestrator
 * @kernel: a kernel
 * @args: (nullable): its arguments, in order
 * @error: where to say why not
 *
 * Submits a task: one run of a kernel on these arguments, after all tasks that its arguments make
 * it wait for.
 *
 * Returns as soon as the task is in its ring, or waits for a slot. A kernel that the worker does
 * not have is built and loaded here, and stays loaded until the worker is closed; register it
 * before the run to have that done, and to let go of it. @args can be reset and used again at once.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_COMPILE, %PTO_ERROR_LOAD, %PTO_ERROR_RUN_FAILED,
 * %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD. Source: seed 000 section 11. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit (PtoOrchestrator *orchestrator, PtoCallable *kernel, PtoTaskArgs *args,
                         GError **error)
{
  const PtoArg *list = NULL;
  guint n_args = 0;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (args != NULL)
    list = pto_task_args_peek (args, &n_args);
  return submit (orchestrator, kernel, list, n_args, pto_task_args_get_terms (args), error);
}

/**
 * pto_orchestrator_submit_full: (skip)
 * @orchestrator: an orchestrator
 * @kernel: a kernel
 * @error: where to say why not
 * @...: the arguments in order: `PTO_IN (tensor)`, `PTO_OUT (tensor)`, `PTO_INOUT (tensor)`,
 *   `PTO_OUT_EXISTING (tensor)`, `PTO_NO_DEP (tensor)`, `PTO_COMMUTATIVE (tensor)`,
 *   `PTO_REDUCE (tensor, operation)`, `PTO_SCRATCH (tensor)`, `PTO_SCALAR (integer)`,
 * `PTO_SCALAR_SIGNED (integer)`, `PTO_SCALAR_FLOAT (number)`, `PTO_SCALAR_DOUBLE (number)`, then
 * %NULL
 *
 * Submits a task with its arguments written in the call; otherwise like
 * [method@Pto.Orchestrator.submit].
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_full (PtoOrchestrator *orchestrator, PtoCallable *kernel, GError **error,
                              ...)
{
  PtoArg usual[USUAL_ARGS];
  g_autoptr (GArray) more = NULL;
  PtoTaskTerms terms = { 0 };
  const char *word;
  guint n = 0;
  va_list list;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  va_start (list, error);
  while ((word = va_arg (list, const char *)) != NULL)
    {
      PtoArg arg = { 0 };

      if (!pto_arg_set_word (&arg, word))
        {
          va_end (list);
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\": argument %u: \"%s\" does not say what it is: write "
                          "PTO_IN (tensor), PTO_SCALAR (number) or their like"),
                       kernel->name, n, word);
          return FALSE;
        }
      if (arg.direction == PTO_DIRECTION_SCALAR && arg.kind >= PTO_SCALAR_KIND_FLOAT)
        {
          double value = va_arg (list, double);

          memcpy (&arg.scalar, &value, sizeof value);
        }
      else if (arg.direction == PTO_DIRECTION_SCALAR)
        arg.scalar = va_arg (list, guint64);
      else
        arg.tensor = va_arg (list, PtoTensor *);
      if (arg.direction == PTO_DIRECTION_REDUCTION)
        {
          arg.operation = va_arg (list, guint);
          terms.n_reductions++;
        }
      if (arg.direction != PTO_DIRECTION_SCALAR && arg.tensor == NULL)
        {
          va_end (list);
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\": argument %u is no tensor, but NULL"), kernel->name, n);
          return FALSE;
        }
      if (n < USUAL_ARGS)
        usual[n] = arg;
      else
        {
          if (more == NULL)
            {
              more = g_array_new (FALSE, FALSE, sizeof (PtoArg));
              g_array_append_vals (more, usual, USUAL_ARGS);
            }
          g_array_append_val (more, arg);
        }
      n++;
    }
  va_end (list);
  return submit (orchestrator, kernel,
                 more != NULL ? (const PtoArg *) (gpointer) more->data : usual, n, &terms, error);
}

/**
 * pto_orchestrator_submit_mixed:
 * @orchestrator: an orchestrator of a chip
 * @aic: (nullable): a kernel for the cube core of a cluster; %NULL for none
 * @aiv0: (nullable): a kernel for a vector core of the same cluster
 * @aiv1: (nullable): a kernel for another one
 * @args: (nullable): the arguments of all of them, in order
 * @error: where to say why not
 *
 * Submits a mixed task: kernels that begin at once on the cores of one cluster and get the same
 * arguments.
 *
 * They may wait for each other through the cluster's pipes (`TPUSH()`, `TPOP()`);
 * `get_sub_block_id()` is 1 in the kernel of the second vector core. It is one task, done when all
 * are. With [method@Pto.TaskArgs.set_block_dim] each block is of these kernels, in a cluster.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for a kernel of the other type of core, for no kernel at all,
 * and where no cluster has as many cores; with %PTO_ERROR_NOT_SUPPORTED at level 3 and up;
 * otherwise like [method@Pto.Orchestrator.submit]. Source: seed 000 section 18. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_mixed (PtoOrchestrator *orchestrator, PtoCallable *aic, PtoCallable *aiv0,
                               PtoCallable *aiv1, PtoTaskArgs *args, GError **error)
{
  PtoCallable *kernels[] = { aic, aiv0, aiv1 };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (aic == NULL || PTO_IS_CALLABLE (aic), FALSE);
  g_return_val_if_fail (aiv0 == NULL || PTO_IS_CALLABLE (aiv0), FALSE);
  g_return_val_if_fail (aiv1 == NULL || PTO_IS_CALLABLE (aiv1), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_several (orchestrator, kernels, G_N_ELEMENTS (kernels), FALSE, args, error);
}

/**
 * pto_orchestrator_submit_group:
 * @orchestrator: an orchestrator of a chip
 * @kernels: (array length=n_kernels): the kernel of each member, the same or others, for cube or
 *   vector cores
 * @n_kernels: how many members there are
 * @args: (nullable): the arguments of all of them, in order
 * @error: where to say why not
 *
 * Submits a group: one task whose members begin at once on different cores, wherever on the chip,
 * and get the same arguments; [method@Pto.Orchestrator.submit_group_members] gives each its own.
 *
 * Each member is a block of the task: `get_block_idx()` is its index in @kernels. They may meet in
 * `pto_sync_all()`. It is done when all are, and failed when one has failed. Groups of level 3 and
 * up are [method@Pto.Orchestrator.submit_next_level_group] and
 * [method@Pto.Orchestrator.submit_sub_group].
 *
 * Fails with %PTO_ERROR_SYNC_START when there are more members than cores of their type; with
 * %PTO_ERROR_NOT_SUPPORTED at level 3 and up; otherwise like [method@Pto.Orchestrator.submit].
 * Source: seed 001 section 6, for a chip. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_group (PtoOrchestrator *orchestrator, PtoCallable *const *kernels,
                               gsize n_kernels, PtoTaskArgs *args, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (kernels != NULL || n_kernels == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_several (orchestrator, kernels, (guint) MIN (n_kernels, G_MAXINT32), TRUE, args,
                         error);
}

/* One member of a group, with arguments of its own. */
static gboolean
check_member (PtoOrchestrator *self, PtoCallable *kernel, PtoTaskArgs *args, gint32 *id,
              GError **error)
{
  const PtoTaskTerms *terms = pto_task_args_get_terms (args);
  const PtoArg *list = NULL;
  guint n = 0;

  if (args != NULL)
    list = pto_task_args_peek (args, &n);
  if (pto_task_terms_is_several (terms))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("kernel \"%s\": %s, but the members of a group begin at once, each once: leave "
             "that out"),
          kernel->name, pto_task_terms_describe_several (terms));
      return FALSE;
    }
  return find_kernel (self, kernel, id, error) && check_args (self, kernel, list, n, error);
}

/* Is there such a core, and for this member alone? */
static gboolean
check_core (PtoOrchestrator *self, PtoCallable *const *kernels, const int *cores, guint member,
            GError **error)
{
  PtoCoreType type = ((PtoKernel *) kernels[member])->core_type;
  const char *name = type == PTO_CORE_AIC ? "AIC" : "AIV";
  guint n_cores = self->n_cores[type] * self->n_clusters;

  if (cores[member] == -1)
    return TRUE;
  if (cores[member] < 0 || (guint) cores[member] >= n_cores)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("member %u of a group (kernel \"%s\") is for %s%d; this chip has %s0 to %s%u"), member,
          kernels[member]->name, name, cores[member], name, name, n_cores - 1);
      return FALSE;
    }
  for (guint other = 0; other < member; other++)
    if (cores[other] == cores[member] && ((PtoKernel *) kernels[other])->core_type == type)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("members %u and %u of a group are both for %s%d, and begin at once: name "
                        "another core, or -1 for any"),
                     other, member, name, cores[member]);
        return FALSE;
      }
  return TRUE;
}

/* Of members that are known to be kernels. */
static gboolean
submit_members (PtoOrchestrator *self, PtoCallable *const *kernels, guint n_kernels,
                PtoTaskArgs *const *args_list, const int *cores, GError **error)
{
  g_autoptr (GArray) args = g_array_new (FALSE, FALSE, sizeof (PtoArg));
  g_autoptr (GArray) after = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autofree gint32 *ids = g_new (gint32, n_kernels);
  g_autofree gint32 *n_params = g_new (gint32, n_kernels);
  PtoTaskTerms terms = { .after = NULL };
  Places places = { .name = kernels[0]->name, .n_at_once = 1 };
  Call call = { .base.self = self,
                .submit.kernel_id = PTO2_KERNEL_NONE,
                .submit.group = ids,
                .submit.n_group = (int32_t) n_kernels,
                .submit.group_params = n_params,
                .submit.group_cores = cores,
                .name = kernels[0]->name,
                .terms = &terms,
                .kernels = kernels };

  for (guint i = 0; i < n_kernels; i++)
    {
      const PtoTaskTerms *own = pto_task_args_get_terms (args_list[i]);
      const PtoArg *list = NULL;
      guint n = 0;

      if (!check_member (self, kernels[i], args_list[i], &ids[i], error)
          || !check_condition (kernels[i], own, error)
          || !pto_task_terms_take_condition (&terms, own, error))
        {
          g_prefix_error (error, _ ("member %u of a group: "), i);
          return FALSE;
        }
      if (args_list[i] != NULL)
        list = pto_task_args_peek (args_list[i], &n);
      n_params[i] = (gint32) n;
      g_array_append_vals (args, list, n);
      if (own->after != NULL)
        g_array_append_vals (after, own->after->data, own->after->len);
      terms.n_reductions += own->n_reductions;
      places.n_of[((PtoKernel *) kernels[i])->core_type]++;
    }
  if (args->len > PTO_MAX_KERNEL_ARGS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("the members of a group have %u arguments together; a task takes at most %u"),
                   args->len, PTO_MAX_KERNEL_ARGS);
      return FALSE;
    }
  terms.after = after->len > 0 ? after : NULL;
  call.args = (const PtoArg *) (gpointer) args->data;
  call.n_args = args->len;
  if (!check_places (self, &places, FALSE, error))
    return FALSE;
  for (guint i = 0; cores != NULL && i < n_kernels; i++)
    if (!check_core (self, kernels, cores, i, error))
      return FALSE;
  return make_kernel_submit (self, &call, error);
}

/**
 * pto_orchestrator_submit_group_members:
 * @orchestrator: an orchestrator of a chip
 * @kernels: (array length=n_kernels): the kernel of each member, the same or others, for cube or
 *   vector cores
 * @n_kernels: how many members there are
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: the same number
 * @cores: (array length=n_cores) (nullable): the core that each member runs on, by its number among
 *   those of its type (3 is AIV3 for a kernel of vector cores), -1 for any
 * @n_cores: 0 or the same number
 * @error: where to say why not
 *
 * Submits a group whose members have arguments of their own, and perhaps cores that are named.
 *
 * It is one task: it comes after what the arguments of any of its members make it wait for, and
 * what uses what one of them writes comes after all of them. All arguments together are no more
 * than a task takes (%PTO_MAX_KERNEL_ARGS). Otherwise like [method@Pto.Orchestrator.submit_group];
 * above chips it is [method@Pto.Orchestrator.submit_next_level_group]. A member that names its core
 * waits for that one, also while others are idle.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, naming the member, where there is no such core, where two
 * name the same one, or where the lists are not as many as the kernels. Source: seed 001 section 6,
 * for a chip. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_group_members (PtoOrchestrator *orchestrator, PtoCallable *const *kernels,
                                       gsize n_kernels, PtoTaskArgs *const *args_list, gsize n_args,
                                       const int *cores, gsize n_cores, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (kernels != NULL || n_kernels == 0, FALSE);
  g_return_val_if_fail (args_list != NULL || n_args == 0, FALSE);
  g_return_val_if_fail (cores != NULL || n_cores == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_orchestrator_check_usable (orchestrator, error)
      || !pto_orchestrator_check_kernels (orchestrator, error))
    return FALSE;
  if (n_kernels == 0 || n_args != n_kernels || (n_cores != 0 && n_cores != n_kernels)
      || n_kernels > PTO_MAX_BLOCKS)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a group has %zu kernels, %zu lists of arguments and %zu cores: it needs a kernel, a list "
             "for each, and as many cores or none"),
          n_kernels, n_args, n_cores);
      return FALSE;
    }
  for (gsize i = 0; i < n_kernels; i++)
    if (kernels[i] == NULL)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("kernel %zu of a group is none: leave it out"), i);
        return FALSE;
      }
  return submit_members (orchestrator, kernels, (guint) n_kernels, args_list,
                         n_cores > 0 ? cores : NULL, error);
}

/* --- where it is submitted --- */

/**
 * pto_orchestrator_set_place:
 * @orchestrator: an orchestrator
 * @file: (nullable): the name of a source, of which messages have what is behind the last slash;
 *   %NULL: it is not known
 * @line: a line of it, from 1
 *
 * Says where the program is that submits next, or opens a scope: records and errors of the run name
 * it.
 *
 * It holds until the next call. Nobody has to call it: in C and C++ each of these calls notes its
 * own place, and with the overrides those of Python and JavaScript do. On a thread that is not the
 * orchestrator's it does nothing. Source: seed 001 section 6. Thread safety: orchestrator thread.
 *
 * Since: 0.1
 */
void
pto_orchestrator_set_place (PtoOrchestrator *orchestrator, const char *file, guint line)
{
  g_return_if_fail (PTO_IS_ORCHESTRATOR (orchestrator));

  if (!pto_orchestrator_is_own_thread (orchestrator))
    return;
  orchestrator->file = pto_source_intern (orchestrator->file, file);
  orchestrator->line = line;
}

/**
 * pto_orchestrator_needs_place:
 * @orchestrator: an orchestrator
 *
 * Asks whether somebody looks at where each task is submitted.
 *
 * So it is in every run: what a kernel does wrong is told with the line of its submit. Source: seed
 * 001 section 6. Thread safety: any thread.
 *
 * Returns: %TRUE
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_needs_place (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);

  return TRUE;
}

/* --- order --- */

/**
 * pto_orchestrator_submit_order:
 * @orchestrator: an orchestrator
 * @args: (nullable): tensors, and tasks that it comes after
 * @error: where to say why not
 *
 * Submits a task that runs nothing and takes no core and no worker: it only orders.
 *
 * It comes after what its tensors and [method@Pto.TaskArgs.add_after] say, and others come after it
 * by the same. A tensor that it outputs gets its memory. Works at every level.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for arguments that are no tensors, and otherwise like
 * [method@Pto.Orchestrator.submit]. Source: seed 000 section 11. Thread safety: orchestrator
 * thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_order (PtoOrchestrator *orchestrator, PtoTaskArgs *args, GError **error)
{
  Call call = { .base.self = orchestrator,
                .submit.kernel_id = PTO2_KERNEL_NONE,
                .terms = pto_task_args_get_terms (args) };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (args != NULL)
    call.args = pto_task_args_peek (args, &call.n_args);
  if (!pto_orchestrator_check_usable (orchestrator, error))
    return FALSE;
  if (call.terms->condition != NULL || pto_task_terms_is_several (call.terms)
      || call.terms->n_reductions > 0 || (args != NULL && pto_task_args_get_n_scalars (args) > 0))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a task that only orders has %s: give it tensors, and tasks that it comes after"),
          call.terms->condition != NULL ? _ ("no condition")
          : pto_task_terms_is_several (call.terms)
              ? _ ("no blocks and no cluster, for it takes no core")
          : call.terms->n_reductions > 0 ? _ ("nothing to reduce, for it runs nothing")
                                         : _ ("no numbers"));
      return FALSE;
    }
  if (!pto_args_admit (call.args, call.n_args, PTO_ARGS_OF_CHIP, orchestrator->run,
                       &orchestrator->kept, error))
    {
      g_prefix_error (error, _ ("a task that only orders: "));
      return FALSE;
    }
  return make_submit (orchestrator, &call, error);
}
