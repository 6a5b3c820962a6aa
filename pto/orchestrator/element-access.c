/* element-access.c: how does an orchestration function read and write what tasks work on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "orchestrator.h"

#include "base/error.h"
#include "common/text.h"
#include "values/address-range.h"
#include "values/element.h"
#include "values/tensor.h"

typedef struct
{
  PtoOrchestratorCall base;

  PtoTensor *tensor;
  const guint64 *index;
  gboolean write;
  guint64 bits; /* little endian, as all of this machine is */
} Call;

static void
call_element (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->base.self;
  Tensor handle;

  call->base.failed
      = pto_orchestrator_has_failed (self)
        || !pto_tensor_prepare (call->tensor, self->rt, self->run, TRUE, &handle, &call->base.error)
        || !self->machine->ops->element (self->machine, self->rt, &handle, call->index, call->write,
                                         &call->bits);
}

/* An element that there is. */
static gboolean
check_element (PtoOrchestrator *self, PtoTensor *tensor, gsize n_index, const guint64 *index,
               gboolean write, GError **error)
{
  gsize n_dims;
  const guint64 *shape = pto_tensor_get_shape (tensor, &n_dims);

  if (!pto_orchestrator_check_usable (self, error))
    return FALSE;
  if (self->machine->ops->element == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   _ ("a function of level %u does not wait for what its tasks write: let a SUB "
                      "function, which comes after them, look at the element"),
                   self->node->level);
      return FALSE;
    }
  if (self->captured != NULL)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          write ? _ (
              "set_element() writes an element at once, and while a graph is captured no task has "
              "run: let a task do that")
                : _ (
                    "get_element() reads an element at once, and while a graph is captured no task has "
                    "run: let a task do that"));
      return FALSE;
    }
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           pto_tensor_get_refusal (tensor));
      return FALSE;
    }
  if (pto_remote_range_has (pto_tensor_get_address (tensor)))
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("the tensor is memory of a remote worker, which nobody sees here: let "
             "a task of that worker copy it into a buffer"));
      return FALSE;
    }
  if (n_index != n_dims)
    {
      g_autofree char *dimensions
          = g_strdup_printf (P_ ("%zu dimension", "%zu dimensions", n_dims), n_dims);

      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   P_ ("an element is named by %zu number, but the tensor has %s",
                       "an element is named by %zu numbers, but the tensor has %s", n_index),
                   n_index, dimensions);
      return FALSE;
    }
  for (gsize i = 0; i < n_dims; i++)
    if (index[i] >= shape[i])
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("there is no element %" PRIu64
                        " in dimension %zu of the tensor, which has %" PRIu64),
                     index[i], i, shape[i]);
        return FALSE;
      }
  if (pto_tensor_admit (tensor, write, self->run, &self->kept))
    return TRUE;
  g_set_error_literal (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      _ ("the element can not be written: the memory of its tensor can only be read"));
  return FALSE;
}

/**
 * pto_orchestrator_get_element:
 * @orchestrator: an orchestrator of a chip
 * @tensor: a tensor
 * @n_index: its number of dimensions
 * @index: (array length=n_index): which element of it
 * @value: (out caller-allocates): where to put a `gint64`, a `guint64`, a `gboolean` or a `double`;
 *   a `gboolean` when there is none
 * @error: where to say why there is none
 *
 * Reads one element: waits for the tasks that write it.
 *
 * Of any type: integers, also of 4 bits, are a `gint64` or a `guint64`, and floating point of 8,
 * 16, 32 or 64 bits is a `double`. Fails with %PTO_ERROR_INVALID_ARGS when there is no such
 * element, with %PTO_ERROR_NOT_SUPPORTED at level 3 and up, with %PTO_ERROR_RUN_FAILED, among
 * others where nobody has given the tensor memory, with %PTO_ERROR_CLOSED or
 * %PTO_ERROR_WRONG_THREAD. Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: (skip): %TRUE if it was read
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_get_element (PtoOrchestrator *orchestrator, PtoTensor *tensor, gsize n_index,
                              const guint64 *index, GValue *value, GError **error)
{
  Call call = { .base.self = orchestrator, .tensor = tensor, .index = index };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensor != NULL, FALSE);
  g_return_val_if_fail (index != NULL || n_index == 0, FALSE);
  g_return_val_if_fail (value != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_element (orchestrator, tensor, n_index, index, FALSE, error)
      || !pto_orchestrator_make_call (orchestrator, call_element, &call.base, error))
    {
      /* GJS looks at it before it looks at the error. */
      g_value_init (value, G_TYPE_BOOLEAN);
      return FALSE;
    }
  pto_element_to_value (pto_tensor_get_dtype (tensor), call.bits, value);
  return TRUE;
}

/**
 * pto_orchestrator_set_element:
 * @orchestrator: an orchestrator of a chip
 * @tensor: a tensor
 * @n_index: its number of dimensions
 * @index: (array length=n_index): which element of it
 * @value: a number that the type of its elements has; of floating point the nearest is written
 * @error: where to say why not
 *
 * Writes one element: waits for the tasks that write it and for those that read it.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS also for another number, and for memory that can only be read;
 * otherwise like [method@Pto.Orchestrator.get_element]. Source: seed 000 section 11. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if it was written
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_set_element (PtoOrchestrator *orchestrator, PtoTensor *tensor, gsize n_index,
                              const guint64 *index, const GValue *value, GError **error)
{
  Call call = { .base.self = orchestrator, .tensor = tensor, .index = index, .write = TRUE };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensor != NULL, FALSE);
  g_return_val_if_fail (index != NULL || n_index == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_element (orchestrator, tensor, n_index, index, TRUE, error))
    return FALSE;
  if (!pto_element_from_value (pto_tensor_get_dtype (tensor), value, _ ("the value of an element"),
                               &call.bits, error))
    return FALSE;
  return pto_orchestrator_make_call (orchestrator, call_element, &call.base, error);
}

typedef struct
{
  PtoOrchestratorCall base;

  PtoTensor *tensor;
  guint64 value;
  const guint64 *after;
  gsize n_after;
  guint64 id; /* the result */
} FillCall;

static void
call_fill (gpointer data)
{
  FillCall *call = data;
  PtoOrchestrator *self = call->base.self;
  PTOParam params[2] = { { .type = PTO_PARAM_OUTPUT }, make_scalar_param (call->value) };
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_FILL, 0, params, G_N_ELEMENTS (params));

  pto_terms_put (&self->terms, &submit);
  submit.after = call->after;
  submit.n_after = (int32_t) MIN (call->n_after, G_MAXINT32);
  call->base.failed = pto_orchestrator_has_failed (self)
                      || !pto_tensor_prepare (call->tensor, self->rt, self->run, FALSE,
                                              &params[0].tensor, &call->base.error);
  if (!call->base.failed)
    {
      call->id = self->rt->ops->submit (self->rt, &submit);
      call->base.failed = self->machine->ops->has_failed (self->rt);
    }
}

/**
 * pto_orchestrator_fill:
 * @orchestrator: an orchestrator of a chip
 * @tensor: a tensor
 * @value: a number that the type of its elements has
 * @error: where to say why not
 *
 * Submits a task that gives each element of a tensor that value, on a vector core.
 *
 * The tensor is an output of the task: it gets memory if it has none yet, and begins with the value
 * for a task that reads and writes it. Fails with %PTO_ERROR_INVALID_ARGS for another number, and
 * for memory that can only be read, with %PTO_ERROR_NOT_SUPPORTED at level 3 and up, and otherwise
 * like [method@Pto.Orchestrator.submit]. Source: seed 000 section 11. Thread safety: orchestrator
 * thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_fill (PtoOrchestrator *orchestrator, PtoTensor *tensor, const GValue *value,
                       GError **error)
{
  return pto_orchestrator_fill_after (orchestrator, tensor, value, NULL, 0, error);
}

/**
 * pto_orchestrator_fill_after:
 * @orchestrator: an orchestrator of a chip
 * @tensor: a tensor
 * @value: a number that the type of its elements has
 * @after: (array length=n_after) (nullable): tasks that it comes after, whatever their tensors are:
 *   numbers of [method@Pto.Orchestrator.get_last_task]
 * @n_after: how many
 * @error: where to say why not
 *
 * The same as [method@Pto.Orchestrator.fill], and the task comes after those, too: in a manual
 * scope it comes after no others.
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_fill_after (PtoOrchestrator *orchestrator, PtoTensor *tensor, const GValue *value,
                             const guint64 *after, gsize n_after, GError **error)
{
  FillCall call
      = { .base.self = orchestrator, .tensor = tensor, .after = after, .n_after = n_after };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (tensor != NULL, FALSE);
  g_return_val_if_fail (after != NULL || n_after == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_orchestrator_check_usable (orchestrator, error)
      || !pto_orchestrator_check_kernels (orchestrator, error))
    return FALSE;
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("a tensor is to be filled: %s"),
                   pto_tensor_get_refusal (tensor));
      return FALSE;
    }
  if (!pto_element_from_value (pto_tensor_get_dtype (tensor), value,
                               _ ("what a tensor is filled with"), &call.value, error))
    return FALSE;
  if (!pto_tensor_admit (tensor, TRUE, orchestrator->run, &orchestrator->kept))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           _ ("a tensor can not be filled whose memory can only be read"));
      return FALSE;
    }
  if (!pto_orchestrator_make_call (orchestrator, call_fill, &call.base, error))
    return FALSE;
  orchestrator->last_task = call.id;
  return TRUE;
}
