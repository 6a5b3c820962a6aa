/* pto-task-args.c: which arguments does a task or an orchestration get?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-task-args-private.h"

#include "pto-tensor.h"

#include <string.h>

/**
 * PtoTaskArgs:
 *
 * The arguments of a task or of an orchestration, in the order they are added.
 *
 * A kernel receives a tensor as a pointer to its description and a scalar by value in 64 bits; an
 * orchestration that is a shared object receives a tensor as the address of its first element.
 * Reuse one builder with [method@Pto.TaskArgs.reset]: it keeps its memory.
 *
 * Source: seed 001 section 3. Thread safety: one thread at a time. A fork copies the value.
 */
struct _PtoTaskArgs
{
  gatomicrefcount ref_count;
  guint n_tensors;
  GArray *args; /* of PtoArg */
};

G_DEFINE_BOXED_TYPE (PtoTaskArgs, pto_task_args, pto_task_args_ref, pto_task_args_unref)

static void
clear_arg (gpointer data)
{
  PtoArg *arg = data;

  g_clear_pointer (&arg->tensor, pto_tensor_unref);
}

/**
 * pto_task_args_new: (constructor)
 *
 * Makes an empty list of arguments.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a builder
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
 */
PtoTaskArgs *
pto_task_args_ref (PtoTaskArgs *args)
{
  g_return_val_if_fail (args != NULL, NULL);

  g_atomic_ref_count_inc (&args->ref_count);
  return args;
}

/**
 * pto_task_args_unref:
 * @args: (transfer full): a builder
 *
 * Releases a reference.
 *
 * Thread safety: any thread.
 */
void
pto_task_args_unref (PtoTaskArgs *args)
{
  g_return_if_fail (args != NULL);

  if (!g_atomic_ref_count_dec (&args->ref_count))
    return;
  g_array_unref (args->args);
  g_free (args);
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
    }
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
 * @direction: what the task does with it; not %PTO_DIRECTION_SCALAR
 *
 * Appends a tensor.
 *
 * Thread safety: one thread at a time.
 */
void
pto_task_args_add_tensor (PtoTaskArgs *args, PtoTensor *tensor, PtoDirection direction)
{
  PtoArg arg = { .direction = direction };

  g_return_if_fail (args != NULL);
  g_return_if_fail (tensor != NULL);
  g_return_if_fail ((guint) direction < PTO_DIRECTION_SCALAR);

  arg.tensor = pto_tensor_ref (tensor);
  g_array_append_val (args->args, arg);
  args->n_tensors++;
}

/**
 * pto_task_args_add_scalar:
 * @args: a builder
 * @value: a number, or the bits of one
 *
 * Appends a number.
 *
 * Thread safety: one thread at a time.
 */
void
pto_task_args_add_scalar (PtoTaskArgs *args, guint64 value)
{
  PtoArg arg = { .direction = PTO_DIRECTION_SCALAR, .scalar = value };

  g_return_if_fail (args != NULL);

  g_array_append_val (args->args, arg);
}

/**
 * pto_task_args_add_scalar_double:
 * @args: a builder
 * @value: a number
 *
 * Appends the 64 bits of a `double`.
 *
 * Thread safety: one thread at a time.
 */
void
pto_task_args_add_scalar_double (PtoTaskArgs *args, double value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof bits);
  pto_task_args_add_scalar (args, bits);
}

/**
 * pto_task_args_add_scalar_float:
 * @args: a builder
 * @value: a number
 *
 * Appends the 32 bits of a `float`, in the low half of the 64.
 *
 * Thread safety: one thread at a time.
 */
void
pto_task_args_add_scalar_float (PtoTaskArgs *args, float value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof bits);
  pto_task_args_add_scalar (args, bits);
}

/**
 * pto_task_args_reset:
 * @args: a builder
 *
 * Removes all arguments and keeps the memory for the next ones.
 *
 * Thread safety: one thread at a time.
 */
void
pto_task_args_reset (PtoTaskArgs *args)
{
  g_return_if_fail (args != NULL);

  g_array_set_size (args->args, 0);
  args->n_tensors = 0;
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
 */
guint
pto_task_args_get_n_args (PtoTaskArgs *args)
{
  g_return_val_if_fail (args != NULL, 0);

  return args->args->len;
}

/**
 * pto_task_args_get_n_tensors:
 * @args: a builder
 *
 * Gives the number of arguments that are tensors.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: tensors
 */
guint
pto_task_args_get_n_tensors (PtoTaskArgs *args)
{
  g_return_val_if_fail (args != NULL, 0);

  return args->n_tensors;
}

/**
 * pto_task_args_get_n_scalars:
 * @args: a builder
 *
 * Gives the number of arguments that are scalars.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: scalars
 */
guint
pto_task_args_get_n_scalars (PtoTaskArgs *args)
{
  g_return_val_if_fail (args != NULL, 0);

  return args->args->len - args->n_tensors;
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
 * Returns: %PTO_DIRECTION_SCALAR for a number
 */
PtoDirection
pto_task_args_get_direction (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, PTO_DIRECTION_SCALAR);
  g_return_val_if_fail (index < args->args->len, PTO_DIRECTION_SCALAR);

  return g_array_index (args->args, PtoArg, index).direction;
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
 * Returns: (transfer none) (nullable): a tensor; %NULL for a scalar
 */
PtoTensor *
pto_task_args_get_tensor (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, NULL);
  g_return_val_if_fail (index < args->args->len, NULL);

  return g_array_index (args->args, PtoArg, index).tensor;
}

/**
 * pto_task_args_get_scalar:
 * @args: a builder
 * @index: an argument, from 0
 *
 * Gives an argument that is a scalar.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: its 64 bits; 0 for a tensor
 */
guint64
pto_task_args_get_scalar (PtoTaskArgs *args, guint index)
{
  g_return_val_if_fail (args != NULL, 0);
  g_return_val_if_fail (index < args->args->len, 0);

  return g_array_index (args->args, PtoArg, index).scalar;
}
