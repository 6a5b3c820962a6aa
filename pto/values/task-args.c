/* task-args.c: which arguments does a task or an orchestration get?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "task-args.h"

#include "process/call-format.h"

#include "base/binding.h"
#include "base/error.h"
#include "base/getter.h"
#include "common/text.h"
#include "address-range.h"
#include "tensor.h"

#include <math.h>
#include <string.h>

/**
 * PtoTaskArgs:
 *
 * The arguments of a task or of an orchestration, in the order they are added.
 *
 * A kernel receives a tensor as a pointer to its description and a scalar by value in 64 bits; an
 * orchestration that is a shared object receives a tensor as the address of its first element.
 * A scalar is what it was added as ([enum@Pto.ScalarKind]), also at functions of other workers.
 * Reuse one builder with [method@Pto.TaskArgs.reset]: it keeps its memory.
 *
 * On the way to another worker the arguments are a blob ([method@Pto.TaskArgs.to_blob]): tensors
 * first, then scalars in 64 bits each, and no directions, which have served their purpose when the
 * task is submitted. What kind the scalars are is not in a blob; a task brings it along.
 *
 * Source: seed 001 section 3. Thread safety: one thread at a time. A fork copies the value.
 *
 * Since: 0.1
 */
struct _PtoTaskArgs
{
  gatomicrefcount ref_count;
  guint n_tensors;
  GArray *args;                      /* of PtoArg */
  bool (*is_cancelled) (void *data); /* of the call that these are the arguments of, or NULL */
  gpointer cancelled_data;
  PtoTaskTerms terms;
};

G_DEFINE_BOXED_TYPE_WITH_CODE (PtoTaskArgs, pto_task_args, pto_task_args_ref, pto_task_args_unref,
                               pto_override_look ())

guint64
pto_arg_get_word (const PtoArg *arg)
{
  double value;
  float narrow;
  guint32 bits;

  if (arg->kind != PTO_SCALAR_KIND_FLOAT)
    return arg->scalar;
  memcpy (&value, &arg->scalar, sizeof value);
  narrow = (float) value;
  memcpy (&bits, &narrow, sizeof bits);
  return bits;
}

const char *
pto_direction_describe (PtoDirection direction)
{
  static const char *const names[] = { N_ ("an input"),
                                       N_ ("an output"),
                                       N_ ("an inout"),
                                       N_ ("an existing output"),
                                       N_ ("a tensor without dependencies"),
                                       N_ ("a scalar"),
                                       N_ ("a commutative update"),
                                       N_ ("scratch memory"),
                                       N_ ("a reduction") };

  return (guint) direction < G_N_ELEMENTS (names) ? _ (names[direction]) : _ ("nothing known");
}

gboolean
pto_arg_set_word (PtoArg *arg, const char *word)
{
  static const struct
  {
    const char *word;
    PtoDirection direction;
    PtoScalarKind kind;
  } words[] = {
    { "in", PTO_DIRECTION_INPUT },
    { "out", PTO_DIRECTION_OUTPUT },
    { "inout", PTO_DIRECTION_INOUT },
    { "out-existing", PTO_DIRECTION_OUTPUT_EXISTING },
    { "no-dep", PTO_DIRECTION_NO_DEP },
    { "commutative", PTO_DIRECTION_COMMUTATIVE },
    { "scratch", PTO_DIRECTION_SCRATCH },
    { "reduce", PTO_DIRECTION_REDUCTION },
    { "scalar", PTO_DIRECTION_SCALAR, PTO_SCALAR_KIND_UNSIGNED },
    { "signed", PTO_DIRECTION_SCALAR, PTO_SCALAR_KIND_SIGNED },
    { "float", PTO_DIRECTION_SCALAR, PTO_SCALAR_KIND_FLOAT },
    { "double", PTO_DIRECTION_SCALAR, PTO_SCALAR_KIND_DOUBLE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strcmp (word, words[i].word) == 0)
      {
        arg->direction = words[i].direction;
        arg->kind = words[i].kind;
        return TRUE;
      }
  return FALSE;
}

static void
clear_terms (PtoTaskTerms *terms)
{
  g_clear_pointer (&terms->after, g_array_unref);
  g_clear_pointer (&terms->condition, pto_tensor_unref);
  *terms = (PtoTaskTerms){ 0 };
}

static void
clear_arg (gpointer data)
{
  PtoArg *arg = data;

  g_clear_pointer (&arg->tensor, pto_tensor_unref);
  g_clear_pointer (&arg->combine, pto_arg_combine_release);
}

/**
 * pto_task_args_new: (constructor)
 *
 * Makes an empty list of arguments.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a builder
 *
 * Since: 0.1
 */
PtoTaskArgs *
pto_task_args_new (void)
{
  PtoTaskArgs *args = g_new0 (PtoTaskArgs, 1);

  g_atomic_ref_count_init (&args->ref_count);
  args->args = g_array_sized_new (FALSE, FALSE, sizeof (PtoArg), 8);
  g_array_set_clear_func (args->args, clear_arg);
  return args;
}

/**
 * pto_task_args_ref:
 * @args: a builder
 *
 * Takes a reference.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): @args
 *
 * Since: 0.1
 */
PTO_DEFINE_REF (PtoTaskArgs, pto_task_args_ref, args)

/**
 * pto_task_args_unref:
 * @args: (transfer full): a builder
 *
 * Releases a reference.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_task_args_unref (PtoTaskArgs *args)
{
  g_return_if_fail (args != NULL);

  if (!g_atomic_ref_count_dec (&args->ref_count))
    return;
  g_array_unref (args->args);
  clear_terms (&args->terms);
  g_free (args);
}

const PtoTaskTerms *
pto_task_args_get_terms (const PtoTaskArgs *args)
{
  static const PtoTaskTerms none;

  return args != NULL ? &args->terms : &none;
}

gboolean
pto_task_args_check_terms (const PtoTaskArgs *args, gboolean may_reduce, GError **error)
{
  const char *what = NULL;

  if (args == NULL)
    return TRUE;
  if (args->terms.after != NULL)
    what = _ ("the arguments say which tasks it comes after");
  else if (args->terms.condition != NULL)
    what = _ ("the arguments have a condition");
  else if (args->terms.n_reductions > 0 && !may_reduce)
    what = _ ("one of the arguments is reduced");
  else
    what = pto_task_terms_describe_several (&args->terms);
  return what == NULL
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        _ ("%s: only a submit has that, give its list without it"), what);
}

gboolean
pto_task_terms_take_condition (PtoTaskTerms *group, const PtoTaskTerms *member, GError **error)
{
  if (member->condition == NULL)
    return TRUE;
  if (group->condition != NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("the arguments of two members have a condition: a group runs as a "
                          "whole, so one says it for all"));
  group->condition = member->condition;
  group->n_index = member->n_index;
  memcpy (group->index, member->index, sizeof group->index);
  return TRUE;
}

const char *
pto_task_terms_describe_several (const PtoTaskTerms *terms)
{
  return terms->has_block_dim ? _ ("the arguments have a block_dim")
         : terms->sync_start  ? _ ("the arguments have a sync_start")
         : terms->has_cluster ? _ ("the arguments are for a cluster")
                              : NULL;
}

PtoTaskArgs *
pto_task_args_copy (const PtoTaskArgs *args)
{
  PtoTaskArgs *copy = pto_task_args_new ();

  g_array_append_vals (copy->args, args->args->data, args->args->len);
  copy->n_tensors = args->n_tensors;
  for (guint i = 0; i < copy->args->len; i++)
    {
      PtoArg *arg = &g_array_index (copy->args, PtoArg, i);

      if (arg->tensor != NULL)
        pto_tensor_ref (arg->tensor);
      if (arg->combine != NULL)
        g_atomic_rc_box_acquire (arg->combine);
    }
  copy->terms = args->terms;
  if (copy->terms.after != NULL)
    copy->terms.after = g_array_copy (copy->terms.after);
  if (copy->terms.condition != NULL)
    pto_tensor_ref (copy->terms.condition);
  return copy;
}

const PtoArg *
pto_task_args_peek (const PtoTaskArgs *args, guint *n_args)
{
  *n_args = args->args->len;
  return (const PtoArg *) (gpointer) args->args->data;
}

/**
 * pto_task_args_add_tensor:
 * @args: a builder
 * @tensor: a tensor
 * @direction: what the task does with it; not %PTO_DIRECTION_SCALAR, and not
 *   %PTO_DIRECTION_REDUCTION: [method@Pto.TaskArgs.add_reduction] says with which operator
 *
 * Appends a tensor.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_tensor (PtoTaskArgs *args, PtoTensor *tensor, PtoDirection direction)
{
  PtoArg arg = { .direction = direction, .operation = PTO_ARG_UNSAID };

  g_return_if_fail (args != NULL);
  g_return_if_fail (tensor != NULL);
  g_return_if_fail (direction != PTO_DIRECTION_SCALAR
                    && (guint) direction <= PTO_DIRECTION_REDUCTION);

  arg.tensor = pto_tensor_ref (tensor);
  pto_task_args_append (args, &arg);
}

void
pto_task_args_append (PtoTaskArgs *args, const PtoArg *arg)
{
  g_array_append_vals (args->args, arg, 1);
  args->n_tensors++;
  args->terms.n_reductions += arg->direction == PTO_DIRECTION_REDUCTION;
}

static void
add_scalar (PtoTaskArgs *args, PtoScalarKind kind, guint64 value)
{
  PtoArg arg = { .direction = PTO_DIRECTION_SCALAR, .kind = kind, .scalar = value };

  g_return_if_fail (args != NULL);

  g_array_append_val (args->args, arg);
}

/**
 * pto_task_args_add_scalar:
 * @args: a builder
 * @value: a number, or the bits of one
 *
 * Appends an unsigned integer.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_scalar (PtoTaskArgs *args, guint64 value)
{
  add_scalar (args, PTO_SCALAR_KIND_UNSIGNED, value);
}

/**
 * pto_task_args_add_scalar_signed:
 * @args: a builder
 * @value: a number
 *
 * Appends a signed integer.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_scalar_signed (PtoTaskArgs *args, gint64 value)
{
  add_scalar (args, PTO_SCALAR_KIND_SIGNED, (guint64) value);
}

/**
 * pto_task_args_add_scalar_double:
 * @args: a builder
 * @value: a number
 *
 * Appends a `double`: a kernel gets its 64 bits.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_scalar_double (PtoTaskArgs *args, double value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof bits);
  add_scalar (args, PTO_SCALAR_KIND_DOUBLE, bits);
}

/**
 * pto_task_args_add_scalar_float:
 * @args: a builder
 * @value: a number
 *
 * Appends a number that a kernel, or an orchestration in a shared object, gets as the 32 bits of
 * the nearest `float`, in the low half of the 64. Functions get it as it is here.
 *
 * One that is too large for a `float` is refused where it would become one. Thread safety: one
 * thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_scalar_float (PtoTaskArgs *args, double value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof bits);
  add_scalar (args, PTO_SCALAR_KIND_FLOAT, bits);
}

/**
 * pto_task_args_add_after:
 * @args: a builder
 * @task: what [method@Pto.Orchestrator.get_last_task] gave for a task of the same run
 *
 * Says that a task which is submitted with these arguments comes after that one, whatever their
 * tensors are.
 *
 * It keeps no memory of that one. One that is done is no trouble, one that has failed fails it. For
 * submits only: elsewhere such arguments are refused. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_after (PtoTaskArgs *args, guint64 task)
{
  g_return_if_fail (args != NULL);

  if (args->terms.after == NULL)
    args->terms.after = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_array_append_val (args->terms.after, task);
}

/**
 * pto_task_args_set_condition:
 * @args: a builder
 * @tensor: a tensor that an earlier task may write
 * @n_index: its number of dimensions
 * @index: (array length=n_index): which element of it
 *
 * Says that a kernel which is submitted with these arguments runs only where that element is not 0
 * by then.
 *
 * The task waits for whoever writes the element. Where it is 0 the memory of its outputs is there
 * all the same, with whatever it held, and tasks that depend on it go on. A task of several blocks
 * or kernels runs as a whole, and takes no core where it does not run; of a group one member has
 * the condition. For kernels only; elsewhere such arguments are refused. Source: seed 000
 * section 11. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_set_condition (PtoTaskArgs *args, PtoTensor *tensor, gsize n_index,
                             const guint64 *index)
{
  PtoTaskTerms *terms;

  g_return_if_fail (args != NULL);
  g_return_if_fail (tensor != NULL);
  g_return_if_fail (index != NULL || n_index == 0);

  terms = &args->terms;
  pto_tensor_ref (tensor);
  g_clear_pointer (&terms->condition, pto_tensor_unref);
  terms->condition = tensor;
  /* Of how many dimensions it is, is told where it is submitted. */
  terms->n_index = n_index;
  if (n_index > 0)
    memcpy (terms->index, index, MIN (n_index, PTO2_TENSOR_MAX_DIMS) * sizeof *index);
}

/**
 * pto_task_args_set_block_dim:
 * @args: a builder
 * @block_dim: how many blocks, 1 to %PTO_MAX_BLOCKS
 *
 * Says that a kernel which is submitted with these arguments runs so often, as one task.
 *
 * Each block gets the same arguments and asks `get_block_idx()` which one it is, and
 * `get_block_num()` how many there are. They run on as many cores as are idle; there may be more
 * blocks than cores. For kernels only; elsewhere such arguments are refused, as is another number.
 * Source: seed 000 section 17. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_set_block_dim (PtoTaskArgs *args, int block_dim)
{
  g_return_if_fail (args != NULL);

  args->terms.has_block_dim = TRUE;
  args->terms.block_dim = block_dim;
}

/**
 * pto_task_args_set_sync_start:
 * @args: a builder
 * @sync_start: do they?
 *
 * Says that all blocks of a task which is submitted with these arguments begin at once.
 *
 * They may wait for each other (`pto_sync_all()`), so there are to be cores for all of them. For
 * kernels only; elsewhere such arguments are refused. Source: seed 000 section 17. Thread safety:
 * one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_set_sync_start (PtoTaskArgs *args, gboolean sync_start)
{
  g_return_if_fail (args != NULL);

  args->terms.sync_start = sync_start;
}

/**
 * pto_task_args_set_cluster:
 * @args: a builder
 * @cluster: what [method@Pto.Orchestrator.allocate_cluster] gave in the same run
 *
 * Says that a task which is submitted with these arguments runs on the cores of that cluster.
 *
 * For kernels only; elsewhere such arguments are refused, as is a cluster that is not allocated.
 * Source: seed 000 section 16. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_set_cluster (PtoTaskArgs *args, int cluster)
{
  g_return_if_fail (args != NULL);

  args->terms.has_cluster = TRUE;
  args->terms.cluster = cluster;
}

/**
 * pto_task_args_reset:
 * @args: a builder
 *
 * Removes all arguments, and what else was said of the task, and keeps the memory for the next
 * ones.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_reset (PtoTaskArgs *args)
{
  g_return_if_fail (args != NULL);

  g_array_set_size (args->args, 0);
  args->n_tensors = 0;
  clear_terms (&args->terms);
}

/**
 * pto_task_args_get_n_args:
 * @args: a builder
 *
 * Gives the number of arguments.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: tensors and scalars
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint, pto_task_args_get_n_args, PtoTaskArgs, args, args->args->len)

/**
 * pto_task_args_get_n_tensors:
 * @args: a builder
 *
 * Gives the number of arguments that are tensors.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: tensors
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint, pto_task_args_get_n_tensors, PtoTaskArgs, args, args->n_tensors)

/**
 * pto_task_args_get_n_scalars:
 * @args: a builder
 *
 * Gives the number of arguments that are scalars.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: scalars
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint, pto_task_args_get_n_scalars, PtoTaskArgs, args,
                   args->args->len - args->n_tensors)

/* Where there is none of that number, an unsigned 0. */
static const PtoArg *
find_arg (const PtoTaskArgs *args, guint index)
{
  static const PtoArg none = { .direction = PTO_DIRECTION_SCALAR };

  return index < args->args->len ? &g_array_index (args->args, PtoArg, index) : &none;
}

/**
 * pto_task_args_get_direction:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives the tag of an argument.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %PTO_DIRECTION_SCALAR for a number, and when there is no such argument
 *
 * Since: 0.1
 */
PtoDirection
pto_task_args_get_direction (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, PTO_DIRECTION_SCALAR);

  return find_arg (args, index)->direction;
}

/**
 * pto_task_args_get_tensor:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives an argument that is a tensor.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a tensor; %NULL for a scalar, and when there is no such
 *   argument
 *
 * Since: 0.1
 */
PtoTensor *
pto_task_args_get_tensor (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, NULL);

  return find_arg (args, index)->tensor;
}

/**
 * pto_task_args_get_scalar:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives the 64 bits that a kernel gets of an argument that is a scalar: an integer itself, or the
 * bits of a `float` or `double`.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: bits; 0 for a tensor, and when there is no such argument
 *
 * Since: 0.1
 */
guint64
pto_task_args_get_scalar (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, 0);

  return pto_arg_get_word (find_arg (args, index));
}

/**
 * pto_task_args_get_scalar_kind:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives what an argument that is a scalar was added as.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: a kind; %PTO_SCALAR_KIND_UNSIGNED for a tensor, and when there is no such argument
 *
 * Since: 0.1
 */
PtoScalarKind
pto_task_args_get_scalar_kind (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, PTO_SCALAR_KIND_UNSIGNED);

  return find_arg (args, index)->kind;
}

/**
 * pto_task_args_get_scalar_double:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives the value of an argument that is a scalar of any kind.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: a number, of an integer beyond 2⁵³ the nearest; 0 for a tensor, and when there is no
 *   such argument
 *
 * Since: 0.1
 */
double
pto_task_args_get_scalar_double (PtoTaskArgs *args, guint index)
{
  const PtoArg *arg;
  double value;

  g_return_val_if_fail (args != NULL, 0);

  arg = find_arg (args, index);
  if (arg->kind == PTO_SCALAR_KIND_UNSIGNED)
    return (double) arg->scalar;
  if (arg->kind == PTO_SCALAR_KIND_SIGNED)
    return (double) (gint64) arg->scalar;
  memcpy (&value, &arg->scalar, sizeof value);
  return value;
}

/**
 * pto_task_args_get_scalar_value:
 * @args: a builder
 * @index: an argument, from 0
 * @value: (out caller-allocates): where to put a `guint64`, a `gint64` or a `double`; a `guint64`
 *   of 0 for a tensor, and when there is no such argument
 *
 * Gives an argument that is a scalar as what it was added as: in Python and JavaScript the number
 * itself.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_get_scalar_value (PtoTaskArgs *args, guint index, GValue *value)
{
  const PtoArg *arg;

  g_return_if_fail (args != NULL);
  g_return_if_fail (value != NULL);

  arg = find_arg (args, index);
  if (arg->kind == PTO_SCALAR_KIND_SIGNED)
    g_value_set_int64 (g_value_init (value, G_TYPE_INT64), (gint64) arg->scalar);
  else if (arg->kind == PTO_SCALAR_KIND_UNSIGNED)
    g_value_set_uint64 (g_value_init (value, G_TYPE_UINT64), arg->scalar);
  else
    g_value_set_double (g_value_init (value, G_TYPE_DOUBLE),
                        pto_task_args_get_scalar_double (args, index));
}

/**
 * pto_task_args_is_cancelled:
 * @args: what a function for a SUB worker was given
 *
 * Asks whether the result of this call is still wanted: a long function looks now and then, and
 * fails with %G_IO_ERROR_CANCELLED when it is not.
 *
 * Thread safety: any thread, during the call.
 *
 * Returns: %TRUE if the run was cancelled; always %FALSE for arguments that the program made
 *
 * Since: 0.1
 */
gboolean
pto_task_args_is_cancelled (PtoTaskArgs *args)
{
  g_return_val_if_fail (args != NULL, FALSE);

  return args->is_cancelled != NULL && args->is_cancelled (args->cancelled_data);
}

void
pto_task_args_set_cancelled (PtoTaskArgs *args, bool (*is_cancelled) (void *data), gpointer data)
{
  args->is_cancelled = is_cancelled;
  args->cancelled_data = data;
}

gboolean
pto_task_args_is_shared (PtoTaskArgs *args)
{
  return !g_atomic_ref_count_compare (&args->ref_count, 1);
}

/* A number that is no float, for a kernel that gets one. */
static gboolean
check_number (const PtoArg *arg, guint index, GError **error)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  double value;

  memcpy (&value, &arg->scalar, sizeof value);
  return (!isfinite (value) || isfinite ((float) value))
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        _ ("argument %u: %s is too large for a float: give a double"), index,
                        g_ascii_formatd (text, sizeof text, "%g", value));
}

gboolean
pto_args_admit (const PtoArg *args, guint n_args, PtoArgsUse use, guint64 run, GHashTable **kept,
                GError **error)
{
  for (guint i = 0; i < n_args; i++)
    {
      const PtoArg *arg = &args[i];
      const char *refusal;

      if (arg->tensor == NULL)
        {
          if (arg->kind == PTO_SCALAR_KIND_FLOAT && use != PTO_ARGS_OF_WORKER
              && !check_number (arg, i, error))
            return FALSE;
          continue;
        }
      if (use == PTO_ARGS_OF_CHIP && pto_remote_range_has (pto_tensor_get_address (arg->tensor)))
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("argument %u is memory of a remote worker, which is for tasks of that worker, "
               "not for chips here: let such a task copy it into a buffer"),
            i);
      if (pto_tensor_admit (arg->tensor, pto_direction_writes (arg->direction), run, kept))
        continue;
      refusal = pto_tensor_get_refusal (arg->tensor);
      if (refusal != NULL)
        pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("argument %u: %s"), i, refusal);
      else
        pto_args_set_not_writable (i, arg->direction, error);
      return FALSE;
    }
  return TRUE;
}

gboolean
pto_arg_prepare_scratch (const PtoArg *arg, guint index, PTO2Runtime *rt, guint64 run,
                         PTOParam *param, GError **error)
{
  param->tensor = *pto_tensor_peek (arg->tensor);
  return pto_tensor_is_shape (arg->tensor, rt, run)
         || pto_refuse (
             error, PTO_ERROR_INVALID_ARGS,
             _ ("argument %u is scratch memory, which is the task's alone, but its tensor is of "
                "memory that others see: give it one that says a type and a shape only"),
             index);
}

gboolean
pto_arg_name_error (guint index, GError **error)
{
  g_prefix_error (error, _ ("argument %u: "), index);
  return FALSE;
}

void
pto_args_set_not_writable (guint index, PtoDirection direction, GError **error)
{
  pto_refuse (error, PTO_ERROR_INVALID_ARGS,
              _ ("argument %u is %s, but its memory can only be read: bytes, a mapping or an array "
                 "that is not writable, or the copy of a list"),
              index, pto_direction_describe (direction));
}

/* --- on the way to another worker --- */

gboolean
pto_task_args_pack_tensor (const PtoTaskArgs *args, guint index,
                           struct pto_continuous_tensor *packed, GError **error)
{
  PtoTensor *tensor = g_array_index (args->args, PtoArg, index).tensor;
  const char *refusal = pto_tensor_get_refusal (tensor);
  const guint64 *shape;
  gsize n_dims;

  if (refusal == NULL && !pto_tensor_is_contiguous (tensor))
    refusal
        = _ ("another worker gets whole tensors only, and this view is not contiguous: copy it, "
             "or give the tensor and an offset");
  if (refusal != NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("argument %u: %s"), index, refusal);
  memset (packed, 0, sizeof *packed);
  shape = pto_tensor_get_shape (tensor, &n_dims);
  for (gsize i = 0; i < n_dims; i++)
    {
      if (shape[i] > G_MAXUINT32)
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                           _ ("argument %u: extent %" PRIu64
                              " is too large for another worker: at most %u, split the dimension"),
                           index, shape[i], G_MAXUINT32);
      packed->shapes[i] = (uint32_t) shape[i];
    }
  packed->data = pto_tensor_get_address (tensor);
  packed->ndims = (uint32_t) n_dims;
  packed->dtype = pto_tensor_get_dtype (tensor);
  return TRUE;
}

gboolean
pto_task_args_check_order (const PtoTaskArgs *args, GError **error)
{
  for (guint i = args->n_tensors; i < args->args->len; i++)
    if (g_array_index (args->args, PtoArg, i).tensor != NULL)
      return pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("argument %u is a tensor behind a scalar: another worker gets tensors first, "
             "then scalars"),
          i);
  return TRUE;
}

/**
 * pto_task_args_to_blob:
 * @args: a builder
 * @error: where to say why not
 *
 * Writes the arguments as they travel to another worker: two 32-bit counts, of tensors and of
 * scalars, then 40 bytes for each tensor and 8 for each scalar.
 *
 * A tensor is its address in 8 bytes, five extents, the number of dimensions, the type and a zero
 * in 4 each; all in the order of this machine's bytes. Directions are not in it.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for a tensor behind a scalar, one without memory, one that is
 * not contiguous, and an extent of 2³² or more. Source: seed 001 section 3. Thread safety: one
 * thread at a time.
 *
 * Returns: (transfer full): bytes
 *
 * Since: 0.1
 */
GBytes *
pto_task_args_to_blob (PtoTaskArgs *args, GError **error)
{
  struct pto_continuous_tensor *tensors;
  g_autofree guint8 *blob = NULL;
  uint64_t *scalars;
  guint n_scalars;
  guint64 size;

  g_return_val_if_fail (args != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!pto_task_args_check_order (args, error))
    return NULL;
  n_scalars = args->args->len - args->n_tensors;
  size = pto_blob_size ((int32_t) args->n_tensors, (int32_t) n_scalars);
  blob = g_malloc (size);
  pto_blob_begin (blob, (int32_t) args->n_tensors, (int32_t) n_scalars, &tensors, &scalars);
  for (guint i = 0; i < args->n_tensors; i++)
    {
      if (!pto_task_args_pack_tensor (args, i, &tensors[i], error))
        return NULL;
      if (tensors[i].data == 0)
        {
          pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                      _ ("argument %u is a tensor without memory: only a submit gives it some"), i);
          return NULL;
        }
    }
  for (guint i = 0; i < n_scalars; i++)
    scalars[i] = pto_arg_get_word (&g_array_index (args->args, PtoArg, args->n_tensors + i));
  return g_bytes_new_take (g_steal_pointer (&blob), size);
}

void
pto_task_args_set_view (PtoTaskArgs *args, const struct pto_args_view *view)
{
  pto_task_args_reset (args);
  for (int32_t i = 0; i < view->tensor_count; i++)
    {
      const struct pto_continuous_tensor *packed = &view->tensors[i];
      PtoArg arg = { .direction = PTO_DIRECTION_NO_DEP };
      guint64 shape[PTO2_TENSOR_MAX_DIMS];

      for (guint k = 0; k < PTO2_TENSOR_MAX_DIMS; k++)
        shape[k] = packed->shapes[k];
      arg.tensor = pto_tensor_new_external (packed->data, packed->dtype, packed->ndims, shape);
      g_array_append_val (args->args, arg);
    }
  args->n_tensors = (guint) view->tensor_count;
  for (int32_t i = 0; i < view->scalar_count; i++)
    pto_task_args_add_scalar (args, view->scalars[i]);
}

void
pto_task_args_set_kinds (PtoTaskArgs *args, const guint8 *kinds)
{
  for (guint i = args->n_tensors; kinds != NULL && i < args->args->len; i++, kinds++)
    if (*kinds <= PTO_SCALAR_KIND_DOUBLE)
      g_array_index (args->args, PtoArg, i).kind = (PtoScalarKind) *kinds;
}

/* Is it what pto_task_args_to_blob() writes, and nothing else? */
static gboolean
check_view (const struct pto_args_view *view, gsize size, GError **error)
{
  if (pto_blob_size (view->tensor_count, view->scalar_count) != size)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("no blob of arguments: %d tensors and %d scalars are %" PRIu64 " bytes, not %zu"),
        view->tensor_count, view->scalar_count,
        (guint64) pto_blob_size (view->tensor_count, view->scalar_count), size);
  for (int32_t i = 0; i < view->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &view->tensors[i];
      gboolean ok = tensor->data != 0 && tensor->ndims >= 1 && tensor->ndims <= PTO2_TENSOR_MAX_DIMS
                    && pto_dtype_size (tensor->dtype) != 0 && tensor->access == 0;

      for (guint k = 0; ok && k < PTO2_TENSOR_MAX_DIMS; k++)
        ok = (tensor->shapes[k] != 0) == (k < tensor->ndims);
      if (!ok)
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                           _ ("no blob of arguments: what it has for tensor %d is none"), i);
    }
  return TRUE;
}

/**
 * pto_task_args_new_from_blob: (constructor)
 * @blob: what [method@Pto.TaskArgs.to_blob] gave
 * @error: where to say why not
 *
 * Reads arguments as they travel to another worker. Their addresses mean the same only in processes
 * that share the memory; directions are %PTO_DIRECTION_NO_DEP.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for other bytes. Source: seed 001 section 3. Thread safety:
 * any thread.
 *
 * Returns: (transfer full): a builder
 *
 * Since: 0.1
 */
PtoTaskArgs *
pto_task_args_new_from_blob (GBytes *blob, GError **error)
{
  g_autofree gpointer aligned = NULL;
  struct pto_args_view view;
  PtoTaskArgs *args;
  gsize size;

  g_return_val_if_fail (blob != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  size = g_bytes_get_size (blob);
  aligned = g_memdup2 (g_bytes_get_data (blob, NULL), size);
  if (!pto_args_view_init (&view, aligned, size))
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("no blob of arguments: %zu bytes do not hold what it says"), size);
      return NULL;
    }
  if (!check_view (&view, size, error))
    return NULL;
  args = pto_task_args_new ();
  pto_task_args_set_view (args, &view);
  return args;
}

/**
 * pto_task_args_to_string:
 * @args: arguments
 *
 * Describes it in words, for a person: `an input float32 [4], an output float32 [4], 2.5`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_task_args_to_string (PtoTaskArgs *args)
{
  GString *text;

  g_return_val_if_fail (args != NULL, NULL);

  text = g_string_new (NULL);
  for (guint i = 0; i < args->args->len; i++)
    {
      const PtoArg *arg = &g_array_index (args->args, PtoArg, i);

      if (i > 0)
        g_string_append (text, ", ");
      if (arg->direction != PTO_DIRECTION_SCALAR)
        {
          g_autofree char *tensor = pto_tensor_to_string (arg->tensor);

          g_string_append_printf (text, "%s %s", pto_direction_describe (arg->direction), tensor);
        }
      else if (arg->kind == PTO_SCALAR_KIND_UNSIGNED)
        g_string_append_printf (text, "%" G_GUINT64_FORMAT, arg->scalar);
      else if (arg->kind == PTO_SCALAR_KIND_SIGNED)
        g_string_append_printf (text, "%" G_GINT64_FORMAT, (gint64) arg->scalar);
      else
        {
          char number[G_ASCII_DTOSTR_BUF_SIZE];

          g_string_append (text, g_ascii_formatd (number, sizeof number, "%.9g",
                                                  pto_task_args_get_scalar_double (args, i)));
        }
    }
  return g_string_free (text->len > 0 ? text : g_string_append (text, "no arguments"), FALSE);
}
