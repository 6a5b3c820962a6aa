/* graph-task.c: how does a program add tasks to a graph by hand?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "graph.h"

#include "base/error.h"
#include "base/getter.h"
#include "callable/kernel.h"
#include "values/task-args.h"
#include "values/tensor.h"

#include "common/text.h"
#include "core/bits.h"
#include "core/region.h"
#include "core/submission.h"
#include "sim/builtin-kernels.h"

#include <string.h>

static const PtoGraphMade *
find_made (PtoGraph *self, const Tensor *tensor)
{
  const PtoGraphMade *made = (const PtoGraphMade *) (gconstpointer) self->made->data;
  guint n = pto_bisect (i, self->made->len, made[i].address <= tensor->buffer.addr);

  return n > 0 && tensor->buffer.addr - made[n - 1].address < made[n - 1].bytes ? &made[n - 1]
                                                                                : NULL;
}

static gboolean
is_of_graph (PtoGraph *self, PtoTensor *of)
{
  const Tensor *tensor = pto_tensor_peek (of);
  guint64 offset;

  return find_made (self, tensor) != NULL
         || pto_plan_find_param (self->plan, tensor, &offset) != UINT32_MAX;
}

/* what: such as "kernel \"add\"". */
static gboolean
check_tensors (PtoGraph *self, const char *what, const PtoArg *args, guint n_args, GError **error)
{
  for (guint i = 0; i < n_args; i++)
    {
      if (args[i].tensor == NULL)
        continue;
      if (args[i].direction != PTO_DIRECTION_SCRATCH)
        {
          if (!is_of_graph (self, args[i].tensor))
            return pto_refuse (
                error, PTO_ERROR_INVALID_ARGS,
                _ ("%s: argument %u is no tensor of this graph: take one of add_argument() or "
                   "make_tensor(), or a view of one"),
                what, i);
        }
      else if (pto_tensor_get_first_address (args[i].tensor) != 0
               || pto_tensor_get_refusal (args[i].tensor) != NULL)
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("%s: argument %u is scratch memory, which each launch makes: give a tensor "
               "that has a type and a shape only"),
            what, i);
    }
  return TRUE;
}

/* At which token those take turns that update the tensor. What overlaps in part takes turns with
 * both, so two tokens become one. */
static guint32
find_token (PtoGraph *self, const Tensor *tensor)
{
  PtoGraphTurn turn = { .token = self->turns->len };

  turn.begin
      = tensor->buffer.addr + tensor->start_offset * (guint64) pto_dtype_size (tensor->dtype);
  turn.end = turn.begin + pto_tensor_extent (tensor);
  for (guint i = 0; i < self->turns->len; i++)
    {
      const PtoGraphTurn *other = &g_array_index (self->turns, PtoGraphTurn, i);
      guint32 token = other->token;

      if (other->begin == turn.begin && other->end == turn.end)
        return token;
      if (other->begin >= turn.end || other->end <= turn.begin || token == turn.token)
        continue;
      for (guint k = 0; k < self->turns->len; k++)
        if (g_array_index (self->turns, PtoGraphTurn, k).token == turn.token)
          g_array_index (self->turns, PtoGraphTurn, k).token = token;
      pto_plan_merge_tokens (self->plan, turn.token, token);
      turn.token = token;
    }
  g_array_append_val (self->turns, turn);
  return turn.token;
}

/* One that nobody else has. */
static guint32
make_token (PtoGraph *self)
{
  PtoGraphTurn turn = { .token = self->turns->len };

  g_array_append_val (self->turns, turn);
  return turn.token;
}

static guint
number_kernel (PtoGraph *self, PtoCallable *kernel)
{
  guint index;

  if (g_ptr_array_find (self->kernels, kernel, &index))
    return index;
  g_ptr_array_add (self->kernels, g_object_ref (kernel));
  return self->kernels->len - 1;
}

static guint32
get_queue (PtoCallable *kernel)
{
  return ((PtoKernel *) kernel)->core_type == PTO_CORE_AIC ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
}

/* Are they apart, or reduced in the same way? */
static gboolean
check_apart (const PtoArg *one, const PtoArg *other)
{
  const Tensor *a = pto_tensor_peek (one->tensor);
  const Tensor *b = pto_tensor_peek (other->tensor);
  struct pto_region first, second;
  bool unsure = false;

  pto_region_init (&first, a);
  pto_region_init (&second, b);
  if (first.hi <= second.lo || second.hi <= first.lo
      || !pto_region_overlaps (&first, &second, &unsure))
    return TRUE;
  return one->operation == other->operation
         && (one->combine != NULL ? one->combine->combine : NULL)
                == (other->combine != NULL ? other->combine->combine : NULL)
         && a->dtype == b->dtype && a->start_offset == b->start_offset && a->ndims == b->ndims
         && memcmp (a->shapes, b->shapes, a->ndims * sizeof *a->shapes) == 0
         && memcmp (a->strides, b->strides, a->ndims * sizeof *a->strides) == 0;
}

/* What is reduced, and how. FALSE with an error. */
static gboolean
check_reduction (const PtoArg *args, guint index, GError **error)
{
  const PtoArg taken[]
      = { { .direction = PTO_DIRECTION_INOUT }, { .direction = PTO_DIRECTION_INPUT } };
  PtoCallable *combine = args[index].combine != NULL ? args[index].combine->combine : NULL;
  gint32 number;
  guint64 initial;

  if (!pto_arg_find_reduction (&args[index], index, &number, &initial, error))
    return FALSE;
  for (guint other = 0; other < index; other++)
    if (args[other].direction == PTO_DIRECTION_REDUCTION
        && !check_apart (&args[other], &args[index]))
      return pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("argument %u overlaps argument %u, which the task reduces into in another "
             "way: one task reduces into tensors that are apart, or are the same"),
          index, other);
  if (combine == NULL)
    return TRUE;
  if (combine->kind != PTO_CALLABLE_KERNEL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("argument %u is combined by \"%s\", which is %s: a kernel combines"),
                       index, combine->name, pto_callable_describe_kind (combine->kind));
  if (pto_kernel_check_args (combine, taken, G_N_ELEMENTS (taken), error))
    return TRUE;
  g_prefix_error (error,
                  _ ("argument %u is combined by two tensors, one that takes in (inout) and one "
                     "that is taken in (input): "),
                  index);
  return FALSE;
}

static gboolean
check_reductions (PtoCallable *kernel, const PtoArg *args, guint n_args, GError **error)
{
  for (guint i = 0; i < n_args; i++)
    if (args[i].direction == PTO_DIRECTION_REDUCTION && !check_reduction (args, i, error))
      {
        g_prefix_error (error, _ ("kernel \"%s\": "), kernel->name);
        return FALSE;
      }
  return TRUE;
}

static void
add_reduction (PtoGraph *self, const PtoArg *arg)
{
  const Tensor *tensor = pto_tensor_peek (arg->tensor);
  const PtoGraphMade *made = find_made (self, tensor);
  struct pto_plan_reduction reduction = { .tensor = *tensor,
                                          .is_memory = made != NULL,
                                          .turn = find_token (self, tensor),
                                          .token = make_token (self),
                                          .fill = PTO_KERNEL_FILL,
                                          .fill_queue = PTO_CORE_TYPE_AIV,
                                          .combine_queue = PTO_CORE_TYPE_AIV };
  gint32 number;

  pto_arg_find_reduction (arg, 0, &number, &reduction.initial, NULL);
  if (arg->combine == NULL)
    reduction.combine = PTO_KERNEL_SUM - arg->operation;
  else
    {
      reduction.combine = number_kernel (self, arg->combine->combine);
      reduction.combine_queue = get_queue (arg->combine->combine);
    }
  if (made != NULL)
    reduction.index = made->memory;
  else
    reduction.index = pto_plan_find_param (self->plan, tensor, &reduction.offset);
  pto_plan_add_reduction (self->plan, &reduction);
}

/* One kernel of a task that is added, with its arguments. */
typedef struct
{
  PtoCallable *kernel;
  const PtoArg *args;
  guint n_args;
  guint32 sub; /* of struct pto_need */
} Member;

/* What is added: kernels, of which each but for those of a group gets the same arguments. */
typedef struct
{
  const Member *all;
  guint n;
  gboolean together; /* in one cluster */
  gboolean is_group;
  const PtoTaskTerms *terms;
} Addition;

static gboolean
check_kernel (PtoGraph *self, const Member *member, GError **error)
{
  g_autofree char *what = g_strdup_printf (_ ("kernel \"%s\""), member->kernel->name);

  if (member->kernel->kind != PTO_CALLABLE_KERNEL)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("\"%s\" is %s, and a task that is added by hand runs a kernel: capture a function of a "
           "worker of level 3 or up that submits it"),
        member->kernel->name, pto_callable_describe_kind (member->kernel->kind));
  return pto_kernel_check_args (member->kernel, member->args, member->n_args, error)
         && check_tensors (self, what, member->args, member->n_args, error)
         && check_reductions (member->kernel, member->args, member->n_args, error);
}

/* An element that there is, of a tensor of this graph. */
static gboolean
check_condition (PtoGraph *self, const Addition *addition, GError **error)
{
  const PtoTaskTerms *terms = addition->terms;
  const guint64 *shape;
  gsize n_dims;
  gboolean ok;

  if (terms->condition == NULL)
    return TRUE;
  if (!is_of_graph (self, terms->condition))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("its condition is no tensor of this graph: take one of add_argument() "
                          "or make_tensor(), or a view of one"));
  shape = pto_tensor_get_shape (terms->condition, &n_dims);
  ok = terms->n_index == n_dims;
  for (gsize i = 0; i < n_dims && ok; i++)
    ok = terms->index[i] < shape[i];
  return ok
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        _ ("its condition names an element that its tensor does not have"));
}

/* What goes with the arguments. */
static gboolean
check_terms (PtoGraph *self, const Addition *addition, GError **error)
{
  const PtoTaskTerms *terms = addition->terms;

  if (terms->after != NULL)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("the arguments say which tasks it comes after: only a submit has that, and "
           "add_successor() says it here"));
  if (terms->has_cluster)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("the arguments are for a cluster: in a graph nobody allocates one; kernels "
           "that are to share one are a mixed task"));
  if (addition->is_group && pto_task_terms_is_several (terms))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("%s, but it is of a group, whose kernels are its blocks: leave that out"),
                       pto_task_terms_describe_several (terms));
  if (terms->has_block_dim && (terms->block_dim < 1 || terms->block_dim > PTO_MAX_BLOCKS))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("block_dim is %d: a task has 1 to %d blocks"), terms->block_dim,
                       PTO_MAX_BLOCKS);
  return check_condition (self, addition, error);
}

/* Puts before what is wrong with a task which it would be, and where. Returns -1. */
static int
refuse_task (PtoGraph *self, GError **error)
{
  if (self->line > 0 && self->file != NULL)
    g_prefix_error (error, _ ("%s:%u: task %u: "), self->file, self->line, self->plan->n_tasks);
  else
    g_prefix_error (error, _ ("task %u: "), self->plan->n_tasks);
  return -1;
}

/* An argument that is memory of the graph, or is given to a launch. ordered: it comes after the
 * task that makes the memory; fenced: as pto_plan_add_tensor() has it. */
static void
add_access (PtoGraph *self, const Tensor *tensor, gboolean makes, gboolean writes, gboolean fenced)
{
  const PtoGraphMade *made = find_made (self, tensor);
  guint64 offset;
  guint32 param;

  if (made != NULL)
    {
      pto_plan_add_use (self->plan, made->memory, 0, tensor, makes, writes, writes);
      return;
    }
  param = pto_plan_find_param (self->plan, tensor, &offset);
  pto_plan_add_tensor (self->plan, param, offset, tensor, writes, fenced);
}

static void
add_tensor (PtoGraph *self, const PtoArg *arg)
{
  const Tensor *tensor = pto_tensor_peek (arg->tensor);
  guint32 memory;

  if (arg->direction == PTO_DIRECTION_SCRATCH)
    {
      memory = pto_plan_add_memory (self->plan, pto_tensor_get_n_bytes (arg->tensor));
      pto_plan_add_use (self->plan, memory, 0, tensor, true, false, true);
      return;
    }
  if (arg->direction == PTO_DIRECTION_COMMUTATIVE)
    pto_plan_add_token (self->plan, find_token (self, tensor));
  add_access (self, tensor, arg->direction == PTO_DIRECTION_OUTPUT,
              pto_direction_writes (arg->direction), TRUE);
}

static void
add_arg (PtoGraph *self, const PtoArg *arg)
{
  if (arg->tensor == NULL)
    {
      pto_plan_add_number (self->plan, pto_arg_get_word (arg));
      return;
    }
  /* What is reduced into is a copy, which says itself what it is. */
  if (arg->direction == PTO_DIRECTION_REDUCTION)
    {
      add_reduction (self, arg);
      return;
    }
  add_tensor (self, arg);
  /* Directions are types. */
  pto_plan_set_type (self->plan, (guint32) arg->direction);
}

/* The element that decides is one more argument, which the task reads. */
static void
add_condition (PtoGraph *self, const PtoTaskTerms *terms)
{
  Tensor element = *pto_tensor_peek (terms->condition);

  for (gsize i = 0; i < terms->n_index; i++)
    element.start_offset += terms->index[i] * element.strides[i];
  element.ndims = 1;
  element.shapes[0] = 1;
  element.strides[0] = 1;
  add_access (self, &element, FALSE, FALSE, FALSE);
}

/* How often its kernels run, and on what places: members of the wish, of which some are given. */
static void
set_parts (PtoGraph *self, const Addition *addition, struct pto_submit *submit,
           struct pto_wish *wish, struct pto_need **members)
{
  const PtoTaskTerms *terms = addition->terms;
  guint n_blocks = terms->has_block_dim ? (guint) terms->block_dim : 1;
  gboolean at_once = terms->sync_start && n_blocks > 1;
  guint16 first = 0;
  struct pto_need *needs;

  submit->n_blocks = at_once ? 1 : n_blocks;
  if (!addition->together && !at_once && (!addition->is_group || addition->n == 1))
    return;
  *wish = (struct pto_wish){ .together = addition->together,
                             .cohort = PTO_COHORT_NONE,
                             .n_at_once = at_once              ? n_blocks
                                          : addition->is_group ? addition->n
                                                               : 0,
                             .n_members = addition->n * (at_once ? n_blocks : 1) };
  submit->wish = wish;
  wish->members = *members = needs = g_new0 (struct pto_need, wish->n_members);
  for (guint i = 0; i < addition->n; i++)
    {
      const Member *member = &addition->all[i];

      needs[i] = (struct pto_need){ .queue = get_queue (member->kernel),
                                    .place = PTO_PLACE_ANY,
                                    .kernel = number_kernel (self, member->kernel),
                                    .sub = member->sub };
      if (!addition->is_group)
        continue;
      needs[i].first_arg = first;
      needs[i].n_args_plus_1 = (guint16) (member->n_args + 1);
      first = (guint16) (first + member->n_args);
    }
  for (guint i = addition->n; i < wish->n_members; i++)
    needs[i] = needs[i % addition->n];
}

/* How many lists of arguments there are: a group has one for each kernel. */
static guint
count_lists (const Addition *addition)
{
  return addition->is_group ? addition->n : 1;
}

static gboolean
check (PtoGraph *self, const Addition *addition, GError **error)
{
  guint n_args = 0;

  for (guint i = 0; i < addition->n; i++)
    {
      n_args += i < count_lists (addition) ? addition->all[i].n_args : 0;
      if (check_kernel (self, &addition->all[i], error))
        continue;
      if (addition->is_group)
        g_prefix_error (error, _ ("member %u of a group: "), i);
      return FALSE;
    }
  if (n_args > PTO_MAX_KERNEL_ARGS)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("the members of a group have %u arguments together; a task takes at most %u"), n_args,
        PTO_MAX_KERNEL_ARGS);
  return check_terms (self, addition, error);
}

static int
add (PtoGraph *self, const Addition *addition, GError **error)
{
  g_autofree struct pto_need *members = NULL;
  struct pto_wish wish;
  struct pto_submit submit = { .terms = self->terms };
  guint task;

  if (!check (self, addition, error))
    return refuse_task (self, error);
  submit.kernel = number_kernel (self, addition->all[0].kernel);
  submit.queue = get_queue (addition->all[0].kernel);
  submit.conditional = addition->terms->condition != NULL;
  set_parts (self, addition, &submit, &wish, &members);
  task = pto_plan_add_task (self->plan, &submit, 0);
  pto_plan_set_place (self->plan, self->file, self->line);
  for (guint i = 0; i < count_lists (addition); i++)
    for (guint k = 0; k < addition->all[i].n_args; k++)
      add_arg (self, &addition->all[i].args[k]);
  if (addition->terms->condition != NULL)
    add_condition (self, addition->terms);
  return (int) task;
}

static void
member_init (Member *member, PtoCallable *kernel, PtoTaskArgs *args)
{
  member->kernel = kernel;
  if (args != NULL)
    member->args = pto_task_args_peek (args, &member->n_args);
}

/**
 * pto_graph_add_task:
 * @graph: a graph that is not complete
 * @kernel: a kernel
 * @args: (nullable): its arguments, in order: tensors of this graph, or views of them, and numbers
 * @error: where to say why not
 *
 * Adds a task: one run of a kernel in each launch.
 *
 * What it comes after is said by [method@Pto.Graph.add_successor], whatever its tensors are; tasks
 * that update the same memory, or parts of it that overlap (%PTO_DIRECTION_COMMUTATIVE), and are
 * not ordered so, run one at a time, in any order. Those that reduce into the same tensor in the
 * same way ([method@Pto.TaskArgs.add_reduction]) update copies of it, at the same time; the copies
 * are combined before whatever comes after one of these tasks and does not go on with the
 * reduction, and at the latest by the end of the launch. The tasks that fill and combine them are
 * there when the graph is complete. A kernel that a worker does not have is built
 * and loaded by the first launch there. A task has the priority that
 * [method@Pto.Graph.set_priority] has said last. What @args says of blocks
 * ([method@Pto.TaskArgs.set_block_dim], [method@Pto.TaskArgs.set_sync_start]) and of a condition
 * ([method@Pto.TaskArgs.set_condition]) holds as in a submit; scratch memory is a tensor that has a
 * type and a shape only. @args can be reset and used again at once. Fails with
 * %PTO_ERROR_INVALID_ARGS, naming task, file and line of this call where they are known.
 *
 * Source: seed 000 sections 1.1 and 1.2. Thread safety: the thread that builds the graph.
 *
 * Returns: the task's number, from 0; -1 on failure
 *
 * Since: 0.1
 */
int
pto_graph_add_task (PtoGraph *graph, PtoCallable *kernel, PtoTaskArgs *args, GError **error)
{
  Member member = { 0 };
  Addition addition = { .all = &member, .n = 1, .terms = pto_task_args_get_terms (args) };

  g_return_val_if_fail (PTO_IS_GRAPH (graph), -1);
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (!pto_graph_check_open (graph, error))
    return -1;
  member_init (&member, kernel, args);
  return add (graph, &addition, error);
}

/**
 * pto_graph_add_mixed:
 * @graph: a graph that is not complete
 * @aic: (nullable): a kernel for the cube core of a cluster; %NULL for none
 * @aiv0: (nullable): a kernel for a vector core of the same cluster
 * @aiv1: (nullable): a kernel for another one
 * @args: (nullable): the arguments of all of them, in order
 * @error: where to say why not
 *
 * Adds a mixed task: kernels that begin at once on the cores of one cluster, as
 * [method@Pto.Orchestrator.submit_mixed] submits them.
 *
 * Otherwise like [method@Pto.Graph.add_task]. Source: seed 000 sections 1.1 and 18. Thread safety:
 * the thread that builds the graph.
 *
 * Returns: the task's number, from 0; -1 on failure
 *
 * Since: 0.1
 */
int
pto_graph_add_mixed (PtoGraph *graph, PtoCallable *aic, PtoCallable *aiv0, PtoCallable *aiv1,
                     PtoTaskArgs *args, GError **error)
{
  static const PtoCoreType types[] = { PTO_CORE_AIC, PTO_CORE_AIV, PTO_CORE_AIV };
  static const char *const names[] = { "aic", "aiv0", "aiv1" };
  PtoCallable *kernels[] = { aic, aiv0, aiv1 };
  Member members[3] = { 0 };
  Addition addition = { .all = members, .together = TRUE, .terms = pto_task_args_get_terms (args) };

  g_return_val_if_fail (PTO_IS_GRAPH (graph), -1);
  g_return_val_if_fail (aic == NULL || PTO_IS_CALLABLE (aic), -1);
  g_return_val_if_fail (aiv0 == NULL || PTO_IS_CALLABLE (aiv0), -1);
  g_return_val_if_fail (aiv1 == NULL || PTO_IS_CALLABLE (aiv1), -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (!pto_graph_check_open (graph, error))
    return -1;
  for (guint i = 0; i < G_N_ELEMENTS (kernels); i++)
    {
      if (kernels[i] == NULL)
        continue;
      if (kernels[i]->kind == PTO_CALLABLE_KERNEL
          && ((PtoKernel *) kernels[i])->core_type != types[i])
        {
          pto_refuse (
              error, PTO_ERROR_INVALID_ARGS,
              _ ("kernel \"%s\" is for the %s, but it is given as %s of a mixed task: a kernel's "
                 "core is said where it is made"),
              kernels[i]->name, types[i] == PTO_CORE_AIC ? "AIV" : "AIC", names[i]);
          return refuse_task (graph, error);
        }
      members[addition.n].sub = i > 1 ? 1 : 0;
      member_init (&members[addition.n++], kernels[i], args);
    }
  if (addition.n > 0)
    return add (graph, &addition, error);
  pto_refuse (error, PTO_ERROR_INVALID_ARGS,
              _ ("a mixed task has at least one kernel: for the AIC, an AIV or both"));
  return refuse_task (graph, error);
}

/**
 * pto_graph_add_group:
 * @graph: a graph that is not complete
 * @kernels: (array length=n_kernels): the kernel of each member, the same or others, for cube or
 *   vector cores
 * @n_kernels: how many members there are
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: the same number
 * @error: where to say why not
 *
 * Adds a group: one task whose members begin at once on different cores, each with arguments of its
 * own, as [method@Pto.Orchestrator.submit_group_members] submits them.
 *
 * A graph knows no chip, so its members name no cores. Otherwise like [method@Pto.Graph.add_task].
 * Source: seed 000 section 1.1, seed 001 section 6. Thread safety: the thread that builds the
 * graph.
 *
 * Returns: the task's number, from 0; -1 on failure
 *
 * Since: 0.1
 */
int
pto_graph_add_group (PtoGraph *graph, PtoCallable *const *kernels, gsize n_kernels,
                     PtoTaskArgs *const *args_list, gsize n_args, GError **error)
{
  g_autofree Member *members = NULL;
  Addition addition = { .is_group = TRUE, .terms = pto_task_args_get_terms (NULL) };
  PtoTaskTerms all = { 0 };

  g_return_val_if_fail (PTO_IS_GRAPH (graph), -1);
  g_return_val_if_fail (kernels != NULL || n_kernels == 0, -1);
  g_return_val_if_fail (args_list != NULL || n_args == 0, -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (!pto_graph_check_open (graph, error))
    return -1;
  if (n_kernels == 0 || n_args != n_kernels || n_kernels > PTO_MAX_BLOCKS)
    {
      pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("a group has %zu kernels and %zu lists of arguments: it needs a kernel, and a list for each"),
          n_kernels, n_args);
      return refuse_task (graph, error);
    }
  addition.all = members = g_new0 (Member, n_kernels);
  addition.n = (guint) n_kernels;
  for (gsize i = 0; i < n_kernels; i++)
    {
      const PtoTaskTerms *terms = pto_task_args_get_terms (args_list[i]);

      g_return_val_if_fail (PTO_IS_CALLABLE (kernels[i]), -1);
      member_init (&members[i], kernels[i], args_list[i]);
      if (!pto_task_terms_take_condition (&all, terms, error))
        return refuse_task (graph, error);
      if (terms->after != NULL || pto_task_terms_is_several (terms)
          || (terms->condition != NULL && addition.terms->after == NULL
              && !pto_task_terms_is_several (addition.terms)))
        addition.terms = terms;
    }
  return add (graph, &addition, error);
}

static gboolean
check_order (const PtoArg *args, guint n_args, GError **error)
{
  for (guint i = 0; i < n_args; i++)
    if (args[i].tensor == NULL || args[i].direction == PTO_DIRECTION_SCRATCH
        || args[i].direction == PTO_DIRECTION_COMMUTATIVE || n_args > PTO_MAX_KERNEL_ARGS)
      return pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("a task that only orders: argument %u of %u is nothing that it uses: it has "
             "tensors that it reads or outputs, %d at most"),
          i, n_args, PTO_MAX_KERNEL_ARGS);
  return TRUE;
}

/**
 * pto_graph_add_order:
 * @graph: a graph that is not complete
 * @args: (nullable): tensors of this graph, of which those that it outputs get memory
 * @error: where to say why not
 *
 * Adds a task that runs nothing, and takes no core: others come after it, and it after others
 * ([method@Pto.Graph.add_successor]), as [method@Pto.Orchestrator.submit_order] submits them.
 *
 * Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: the task's number, from 0; -1 on failure
 *
 * Since: 0.1
 */
int
pto_graph_add_order (PtoGraph *graph, PtoTaskArgs *args, GError **error)
{
  const PtoArg *list = NULL;
  guint n_args = 0;
  guint task;

  g_return_val_if_fail (PTO_IS_GRAPH (graph), -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (args != NULL)
    list = pto_task_args_peek (args, &n_args);
  if (!pto_graph_check_open (graph, error))
    return -1;
  if (!pto_task_args_check_terms (args, FALSE, error)
      || !check_tensors (graph, _ ("a task that only orders"), list, n_args, error)
      || !check_order (list, n_args, error))
    return refuse_task (graph, error);
  task = pto_plan_add_task (graph->plan, &(struct pto_submit){ .kernel = PTO_KERNEL_NONE }, 0);
  pto_plan_set_place (graph->plan, graph->file, graph->line);
  for (guint i = 0; i < n_args; i++)
    add_arg (graph, &list[i]);
  return (int) task;
}

/**
 * pto_graph_set_priority:
 * @graph: a graph that is not complete
 * @priority: 0 to %PTO_MAX_PRIORITY
 * @error: where to say why not
 *
 * Gives tasks that are added from now on a priority, as [method@Pto.Orchestrator.set_priority] does
 * with those that are submitted; 0 before the first call.
 *
 * Source: seed 000 section 1.1. Thread safety: the thread that builds the graph.
 *
 * Returns: %TRUE if there is such a priority
 *
 * Since: 0.1
 */
gboolean
pto_graph_set_priority (PtoGraph *graph, guint priority, GError **error)
{
  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (priority > PTO_MAX_PRIORITY)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("there is no priority %u: a task has one of 0 to %d, which goes first"),
                       priority, PTO_MAX_PRIORITY);
  graph->terms.priority = priority;
  return TRUE;
}

/**
 * pto_graph_get_priority:
 * @graph: a graph
 *
 * Gives the priority of tasks that are added next.
 *
 * Thread safety: the thread that builds the graph.
 *
 * Returns: a priority, 0 to %PTO_MAX_PRIORITY
 *
 * Since: 0.1
 */
PTO_DEFINE_OBJECT_GETTER (guint, pto_graph_get_priority, PtoGraph, PTO_IS_GRAPH, graph,
                          graph->terms.priority)
