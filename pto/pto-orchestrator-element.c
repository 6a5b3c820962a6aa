/* pto-orchestrator-element.c: how does an orchestration function read and write what tasks work on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-orchestrator-private.h"

#include "pto-element-private.h"
#include "pto-error-private.h"
#include "pto-tensor-private.h"
#include "pto-worker-private.h"

typedef struct
{
  PtoOrchestratorCall base;

  PtoTensor *tensor;
  const guint64 *index;
  gboolean write;
  union
  {
    guint64 all;
    gint8 int8;
    gint16 int16;
    gint32 int32;
    gint64 int64;
    guint8 uint8;
    guint16 uint16;
    guint32 uint32;
    float float32;
    double float64;
  } element;
} Call;

static void
call_element (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->base.self;
  Tensor handle;

  call->base.failed = pto_orchestrator_has_failed (self)
                      || !pto_tensor_prepare (call->tensor, self->rt, self->run, &handle)
                      || !self->machine->ops->element (self->machine, self->rt, &handle,
                                                       call->index, call->write, &call->element);
}

/* An element that there is, of a type that numbers of C are of. */
static gboolean
check_element (PtoOrchestrator *self, PtoTensor *tensor, gsize n_index, const guint64 *index,
               gboolean write, GError **error)
{
  gsize n_dims;
  const guint64 *shape = pto_tensor_get_shape (tensor, &n_dims);
  PtoDtype dtype = pto_tensor_get_dtype (tensor);
  long double least, most;

  if (!pto_orchestrator_check_usable (self, error))
    return FALSE;
  if (self->machine->ops->element == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   "a function of level %u does not wait for what its tasks write: let a SUB "
                   "function, which comes after them, look at the element",
                   self->worker->level);
      return FALSE;
    }
  if (self->captured != NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "%s_element() %s an element at once, and while a graph is captured no task has "
                   "run: let a task do that",
                   write ? "set" : "get", write ? "writes" : "reads");
      return FALSE;
    }
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           pto_tensor_get_refusal (tensor));
      return FALSE;
    }
  if (n_index != n_dims)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "an element is named by %" G_GSIZE_FORMAT " number%s, but the tensor has "
                   "%" G_GSIZE_FORMAT " dimension%s",
                   n_index, n_index == 1 ? "" : "s", n_dims, n_dims == 1 ? "" : "s");
      return FALSE;
    }
  for (gsize i = 0; i < n_dims; i++)
    if (index[i] >= shape[i])
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     "there is no element %" G_GUINT64_FORMAT " in dimension %" G_GSIZE_FORMAT
                     " of the tensor, which has %" G_GUINT64_FORMAT,
                     index[i], i, shape[i]);
        return FALSE;
      }
  if (dtype != PTO_DTYPE_FLOAT32 && dtype != PTO_DTYPE_FLOAT64
      && (dtype == PTO_DTYPE_INT4 || !pto_element_get_limits (dtype, &least, &most)))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   "elements of the type %s are no numbers here: let a task make float32 of them",
                   pto_dtype_name ((DataType) dtype));
      return FALSE;
    }
  if (pto_tensor_admit (tensor, write, self->run, &self->kept))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       "the element can not be written: the memory of its tensor can only be read");
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
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such element, with %PTO_ERROR_NOT_SUPPORTED
 * at level 3 and up and for types that are neither integers nor float32 or float64, with
 * %PTO_ERROR_RUN_FAILED, among others where nobody has given the tensor memory, with
 * %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD. Source: seed 000 section 11. Thread safety:
 * orchestrator thread.
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
  PtoDtype dtype;

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
  dtype = pto_tensor_get_dtype (tensor);
  switch (dtype)
    {
    case PTO_DTYPE_FLOAT32:
    case PTO_DTYPE_FLOAT64:
      g_value_set_double (g_value_init (value, G_TYPE_DOUBLE), dtype == PTO_DTYPE_FLOAT32
                                                                   ? (double) call.element.float32
                                                                   : call.element.float64);
      break;
    case PTO_DTYPE_BOOL:
      g_value_set_boolean (g_value_init (value, G_TYPE_BOOLEAN), call.element.uint8 != 0);
      break;
    case PTO_DTYPE_UINT8:
    case PTO_DTYPE_UINT16:
    case PTO_DTYPE_UINT32:
    case PTO_DTYPE_UINT64:
      g_value_set_uint64 (g_value_init (value, G_TYPE_UINT64),
                          dtype == PTO_DTYPE_UINT8    ? call.element.uint8
                          : dtype == PTO_DTYPE_UINT16 ? call.element.uint16
                          : dtype == PTO_DTYPE_UINT32 ? call.element.uint32
                                                      : call.element.all);
      break;
    default:
      g_value_set_int64 (g_value_init (value, G_TYPE_INT64),
                         dtype == PTO_DTYPE_INT8    ? call.element.int8
                         : dtype == PTO_DTYPE_INT16 ? call.element.int16
                         : dtype == PTO_DTYPE_INT32 ? call.element.int32
                                                    : call.element.int64);
      break;
    }
  return TRUE;
}

/**
 * pto_orchestrator_set_element:
 * @orchestrator: an orchestrator of a chip
 * @tensor: a tensor
 * @n_index: its number of dimensions
 * @index: (array length=n_index): which element of it
 * @value: a number that the type of its elements has
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
  if (!pto_element_from_value (pto_tensor_get_dtype (tensor), value, "the value of an element",
                               &call.element.all, error))
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

  submit.priority = (int32_t) self->priority;
  submit.after = call->after;
  submit.n_after = (int32_t) MIN (call->n_after, G_MAXINT32);
  call->base.failed = pto_orchestrator_has_failed (self)
                      || !pto_tensor_prepare (call->tensor, self->rt, self->run, &params[0].tensor);
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
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "a tensor is to be filled: %s",
                   pto_tensor_get_refusal (tensor));
      return FALSE;
    }
  if (!pto_element_from_value (pto_tensor_get_dtype (tensor), value, "what a tensor is filled with",
                               &call.value, error))
    return FALSE;
  if (!pto_tensor_admit (tensor, TRUE, orchestrator->run, &orchestrator->kept))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           "a tensor can not be filled whose memory can only be read");
      return FALSE;
    }
  if (!pto_orchestrator_make_call (orchestrator, call_fill, &call.base, error))
    return FALSE;
  orchestrator->last_task = call.id;
  return TRUE;
}
