/* task-args-reduction.c: with what are the arguments of a task combined that it reduces into?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "task-args.h"

#include "sim/builtin-kernels.h"
#include "sim/reduction-operators.h"

#include "base/error.h"
#include "common/text.h"
#include "element.h"
#include "tensor.h"

static void
clear_combine (gpointer data)
{
  PtoArgCombine *combine = data;

  g_object_unref (combine->combine);
  g_value_unset (&combine->initial);
}

void
pto_arg_combine_release (PtoArgCombine *combine)
{
  g_atomic_rc_box_release_full (combine, clear_combine);
}

/**
 * pto_task_args_add_reduction:
 * @args: a builder
 * @tensor: a tensor
 * @operation: how what tasks reduce into it is combined
 *
 * Appends a tensor that the task reduces into, by an operator that every chip has.
 *
 * The task gets a copy of it, each element of which begins with what changes nothing (0 for a sum),
 * or with what other tasks of the same reduction have made of that; it takes into the copy what it
 * has. So all tasks that reduce into this tensor in this way run at the same time. When a task
 * accesses the tensor in another way, and when the scope ends, the copies are combined, and what
 * has come of it with what the tensor held before. Floating point numbers may be combined in
 * another order each time.
 *
 * For kernels only; elsewhere such arguments are refused, as is a type that has no such operator.
 * Source: the clause `reduction` of OpenMP. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_reduction (PtoTaskArgs *args, PtoTensor *tensor, PtoReduction operation)
{
  PtoArg arg = { .direction = PTO_DIRECTION_REDUCTION, .operation = (guint) operation };

  g_return_if_fail (args != NULL);
  g_return_if_fail (tensor != NULL);

  arg.tensor = pto_tensor_ref (tensor);
  pto_task_args_append (args, &arg);
}

/**
 * pto_task_args_add_reduction_kernel:
 * @args: a builder
 * @tensor: a tensor
 * @combine: a kernel that takes two tensors of that shape: what takes in (an inout), and what is
 *   taken in (an input)
 * @initial: a number that the type of the elements has, which changes nothing when it is combined
 *
 * Appends a tensor that the task reduces into, combined by a kernel of the program: in any order,
 * and in any pairs.
 *
 * Otherwise like [method@Pto.TaskArgs.add_reduction]. A kernel that says that it takes other
 * arguments is refused where this is submitted, as is another number. Source: `declare reduction`
 * of OpenMP. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_task_args_add_reduction_kernel (PtoTaskArgs *args, PtoTensor *tensor, PtoCallable *combine,
                                    const GValue *initial)
{
  PtoArg arg = { .direction = PTO_DIRECTION_REDUCTION };

  g_return_if_fail (args != NULL);
  g_return_if_fail (tensor != NULL);
  g_return_if_fail (combine != NULL);
  g_return_if_fail (G_IS_VALUE (initial));

  arg.tensor = pto_tensor_ref (tensor);
  arg.combine = g_atomic_rc_box_new0 (PtoArgCombine);
  arg.combine->combine = g_object_ref (combine);
  g_value_init (&arg.combine->initial, G_VALUE_TYPE (initial));
  g_value_copy (initial, &arg.combine->initial);
  pto_task_args_append (args, &arg);
}

gboolean
pto_arg_find_reduction (const PtoArg *arg, guint index, gint32 *combine, guint64 *initial,
                        GError **error)
{
  PtoDtype dtype = pto_tensor_get_dtype (arg->tensor);

  if (arg->combine != NULL)
    {
      g_autofree char *what
          = g_strdup_printf (_ ("argument %u is reduced, and what its copies begin with"), index);

      return pto_element_from_value (dtype, &arg->combine->initial, what, initial, error);
    }
  if (arg->operation >= PTO_N_OPERATORS)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("argument %u is reduced, but nothing says how: add it by add_reduction() with an "
           "operator (sum, prod, min or max), or by add_reduction_kernel()"),
        index);
  if (!pto_combine_knows ((enum pto_operator) arg->operation, dtype))
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("argument %u: the chip has no %s of %s elements: it has one of integers, "
           "float64, float32, float16 and bfloat16; give a kernel that combines these"),
        index, pto_builtin_name (PTO_KERNEL_SUM - arg->operation),
        pto_dtype_name ((DataType) dtype));
  *combine = PTO2_KERNEL_SUM - (gint32) arg->operation;
  *initial = pto2_reduction_neutral (*combine, dtype);
  return TRUE;
}
