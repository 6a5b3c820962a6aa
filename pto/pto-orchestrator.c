/* pto-orchestrator.c: how does an orchestration function submit tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-orchestrator-private.h"

#include "../sim/chip.h"

#include "pto-callable-private.h"
#include "pto-error.h"
#include "pto-task-args-private.h"
#include "pto-tensor-private.h"
#include "pto-worker-private.h"

#include <string.h>

/* Arguments of a submit that need no memory from the heap. */
#define USUAL_ARGS 16
/* Kernels whose numbers are found without asking the worker, a power of two. */
#define RECENT_KERNELS 16

/**
 * PtoOrchestrator:
 *
 * Where an orchestration function submits the tasks of its graph.
 *
 * It is valid during the call of the function only; afterwards every call fails with
 * %PTO_ERROR_CLOSED. Dependencies are found from the tags of the arguments. When the run has
 * failed, every call fails with %PTO_ERROR_RUN_FAILED: return %FALSE with that error, and the run
 * reports what went wrong first.
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread, which is the one the function is
 * called on; another thread gets %PTO_ERROR_WRONG_THREAD. A fork leaves it unusable in the child.
 */
struct _PtoOrchestrator
{
  GObject parent_instance;

  PtoWorker *worker; /* function's thread; NULL once the run is over */
  PtoGate *gate;     /* NULL: the function runs on the thread that runs the chip */
  guint64 run;
  bool (*is_cancelled) (void *data);
  gpointer data;
  guint scopes; /* opened here and still open */
  /* A number stays good for the run, also when the kernel is unregistered meanwhile. */
  struct
  {
    PtoCallable *kernel; /* owned, so that no other one has its address */
    gint32 id;
  } recent[RECENT_KERNELS];
  GThread
      *thread; /* atomic; W: the function's thread, before the function; NULL before and after it */
  PTO2Runtime *rt; /* atomic; W: the function's thread; NULL once the run is over */
};

G_DEFINE_FINAL_TYPE (PtoOrchestrator, pto_orchestrator, G_TYPE_OBJECT)

static void
pto_orchestrator_finalize (GObject *object)
{
  PtoOrchestrator *self = PTO_ORCHESTRATOR (object);

  g_clear_pointer (&self->gate, pto_gate_unref);
  G_OBJECT_CLASS (pto_orchestrator_parent_class)->finalize (object);
}

static void
pto_orchestrator_class_init (PtoOrchestratorClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_orchestrator_finalize;
}

static void
pto_orchestrator_init (PtoOrchestrator *self)
{
}

PtoOrchestrator *
pto_orchestrator_new (PtoWorker *worker, PtoGate *gate, guint64 run,
                      bool (*is_cancelled) (void *data), gpointer data)
{
  PtoOrchestrator *self = g_object_new (PTO_TYPE_ORCHESTRATOR, NULL);

  self->worker = worker;
  self->gate = gate != NULL ? pto_gate_ref (gate) : NULL;
  self->run = run;
  self->is_cancelled = is_cancelled;
  self->data = data;
  return self;
}

void
pto_orchestrator_begin (PtoOrchestrator *self, PTO2Runtime *rt)
{
  g_atomic_pointer_set (&self->thread, g_thread_self ());
  g_atomic_pointer_set (&self->rt, rt);
}

guint
pto_orchestrator_end (PtoOrchestrator *self)
{
  g_atomic_pointer_set (&self->rt, NULL);
  g_atomic_pointer_set (&self->thread, NULL);
  self->worker = NULL;
  for (guint i = 0; i < RECENT_KERNELS; i++)
    g_clear_object (&self->recent[i].kernel);
  return self->scopes;
}

gboolean
pto_orchestrator_is_own_thread (PtoOrchestrator *self)
{
  return g_atomic_pointer_get (&self->thread) == g_thread_self ();
}

void
pto_orchestrator_call (PtoOrchestrator *self, void (*call) (gpointer data), gpointer data)
{
  if (self->gate != NULL)
    pto_gate_call (self->gate, call, data);
  else
    call (data);
}

static gboolean
check_usable (PtoOrchestrator *self, GError **error)
{
  if (g_atomic_pointer_get (&self->rt) == NULL)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_CLOSED,
          "the run of this orchestrator is over: it can be used inside its orchestration "
          "function only");
      return FALSE;
    }
  if (!pto_orchestrator_is_own_thread (self))
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_WRONG_THREAD,
          "an orchestrator can be used only on the thread that its orchestration function runs on");
      return FALSE;
    }
  return TRUE;
}

static void
set_failed (GError **error)
{
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_RUN_FAILED,
                       "the run has failed already; the call that runs it reports why");
}

/* A call on the thread that runs the chip. */
typedef struct
{
  PtoOrchestrator *self;
  gboolean failed;

  /* submit */
  gint32 kernel;
  gint32 core_type;
  const PtoArg *args;
  guint n_args;

  /* tensor */
  PtoTensor *tensor;

  /* scopes */
  gboolean begin;
} Call;

/* The chip asks for cancellation where it waits; a function that never makes it wait is ended here.
 */
static gboolean
has_failed (PtoOrchestrator *self)
{
  if (self->is_cancelled (self->data))
    pto_chip_fail (self->rt, PTO_STATUS_CANCELLED, "the run was cancelled");
  return pto_chip_has_failed (self->rt);
}

static void
call_submit (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->self->rt;
  PTOParam usual[USUAL_ARGS];
  PTOParam *params = call->n_args <= USUAL_ARGS ? usual : g_new (PTOParam, call->n_args);

  call->failed = has_failed (call->self);
  for (guint i = 0; i < call->n_args && !call->failed; i++)
    {
      const PtoArg *arg = &call->args[i];

      if (arg->direction == PTO_DIRECTION_SCALAR)
        params[i] = make_scalar_param (arg->scalar);
      else
        {
          params[i].type = (PTOParamType) arg->direction;
          params[i].scalar = 0;
          call->failed = !pto_tensor_prepare (arg->tensor, rt, call->self->run, &params[i].tensor);
        }
    }
  if (!call->failed)
    {
      pto2_rt_submit_task (rt, call->kernel, call->core_type, params, (int32_t) call->n_args);
      call->failed = pto_chip_has_failed (rt);
    }
  if (params != usual)
    g_free (params);
}

static void
call_tensor (gpointer data)
{
  Call *call = data;
  Tensor handle;

  call->failed = has_failed (call->self)
                 || !pto_tensor_prepare (call->tensor, call->self->rt, call->self->run, &handle);
}

static void
call_scope (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->self->rt;

  if (call->begin)
    pto2_rt_scope_begin (rt);
  else
    pto2_rt_scope_end (rt);
  call->failed = has_failed (call->self);
}

static const char *
direction_name (PtoDirection direction)
{
  static const char *const names[] = {
    "an input", "an output", "an inout", "an existing output", "a tensor without dependencies",
    "a scalar"
  };

  return (guint) direction < G_N_ELEMENTS (names) ? names[direction] : "nothing known";
}

static gboolean
check_args (PtoCallable *kernel, const PtoArg *args, guint n_args, GError **error)
{
  const PtoDirection *expected = kernel->signature != NULL
                                     ? (const PtoDirection *) (gpointer) kernel->signature->data
                                     : NULL;

  if (expected != NULL && kernel->signature->len != n_args)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "kernel \"%s\" takes %u arguments, but %u are given", kernel->name,
                   kernel->signature->len, n_args);
      return FALSE;
    }
  for (guint i = 0; i < n_args; i++)
    {
      if (expected != NULL && expected[i] != args[i].direction)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       "kernel \"%s\": argument %u is %s, but %s is given", kernel->name, i,
                       direction_name (expected[i]), direction_name (args[i].direction));
          return FALSE;
        }
      if (args[i].tensor != NULL && pto_tensor_get_refusal (args[i].tensor) != NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "kernel \"%s\": argument %u: %s",
                       kernel->name, i, pto_tensor_get_refusal (args[i].tensor));
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
find_kernel (PtoOrchestrator *self, PtoCallable *kernel, gint32 *id, GError **error)
{
  guint i = (guint) (((guintptr) kernel >> 4) * 0x9e3779b1u >> 16) % RECENT_KERNELS;

  if (self->recent[i].kernel != kernel)
    {
      if (!pto_worker_find_kernel (self->worker, kernel, id, error))
        return FALSE;
      g_set_object (&self->recent[i].kernel, kernel);
      self->recent[i].id = *id;
    }
  *id = self->recent[i].id;
  return TRUE;
}

static gboolean
submit (PtoOrchestrator *self, PtoCallable *kernel, const PtoArg *args, guint n_args,
        GError **error)
{
  Call call = { .self = self, .args = args, .n_args = n_args };

  if (!check_usable (self, error) || !find_kernel (self, kernel, &call.kernel, error)
      || !check_args (kernel, args, n_args, error))
    return FALSE;
  call.core_type = (gint32) kernel->core_type;
  pto_orchestrator_call (self, call_submit, &call);
  if (call.failed)
    set_failed (error);
  return !call.failed;
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
 * not have is built and loaded here; register it before the run to have that done. @args can be
 * reset and used again at once.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_COMPILE, %PTO_ERROR_LOAD, %PTO_ERROR_RUN_FAILED,
 * %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD. Source: seed 000 section 11. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
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
  return submit (orchestrator, kernel, list, n_args, error);
}

static gboolean
find_direction (const char *word, PtoDirection *direction)
{
  static const char *const words[] = { "in", "out", "inout", "out-existing", "no-dep", "scalar" };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strcmp (word, words[i]) == 0)
      {
        *direction = (PtoDirection) i;
        return TRUE;
      }
  return FALSE;
}

/**
 * pto_orchestrator_submit_full: (skip)
 * @orchestrator: an orchestrator
 * @kernel: a kernel
 * @error: where to say why not
 * @...: the arguments in order: `PTO_IN (tensor)`, `PTO_OUT (tensor)`, `PTO_INOUT (tensor)`,
 *   `PTO_OUT_EXISTING (tensor)`, `PTO_NO_DEP (tensor)`, `PTO_SCALAR (value)`, then %NULL
 *
 * Submits a task with its arguments written in the call; otherwise like
 * [method@Pto.Orchestrator.submit].
 *
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 */
gboolean
pto_orchestrator_submit_full (PtoOrchestrator *orchestrator, PtoCallable *kernel, GError **error,
                              ...)
{
  PtoArg usual[USUAL_ARGS];
  g_autoptr (GArray) more = NULL;
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

      if (!find_direction (word, &arg.direction))
        {
          va_end (list);
          g_return_val_if_reached (FALSE);
        }
      if (arg.direction == PTO_DIRECTION_SCALAR)
        arg.scalar = va_arg (list, guint64);
      else
        arg.tensor = va_arg (list, PtoTensor *);
      if (arg.direction != PTO_DIRECTION_SCALAR && arg.tensor == NULL)
        {
          va_end (list);
          g_return_val_if_reached (FALSE);
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
                 more != NULL ? (const PtoArg *) (gpointer) more->data : usual, n, error);
}

/**
 * pto_orchestrator_begin_scope:
 * @orchestrator: an orchestrator
 * @error: where to say why not
 *
 * Opens a scope: tensors made by the runtime inside it give back their memory when it has ended and
 * their last consumer is done.
 *
 * Fails with %PTO_ERROR_RUN_FAILED, among others when scopes are nested too deeply.
 * Source: seed 000 section 11. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if it is open
 */
gboolean
pto_orchestrator_begin_scope (PtoOrchestrator *orchestrator, GError **error)
{
  Call call = { .self = orchestrator, .begin = TRUE };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_usable (orchestrator, error))
    return FALSE;
  pto_orchestrator_call (orchestrator, call_scope, &call);
  if (call.failed)
    {
      set_failed (error);
      return FALSE;
    }
  orchestrator->scopes++;
  return TRUE;
}

/**
 * pto_orchestrator_end_scope:
 * @orchestrator: an orchestrator
 * @error: where to say why not
 *
 * Ends the scope that was opened last. It does not wait for its tasks.
 *
 * Fails with %PTO_ERROR_SCOPE_OVERFLOW when none is open. Source: seed 000 section 11. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if it has ended
 */
gboolean
pto_orchestrator_end_scope (PtoOrchestrator *orchestrator, GError **error)
{
  Call call = { .self = orchestrator, .begin = FALSE };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_usable (orchestrator, error))
    return FALSE;
  if (orchestrator->scopes == 0)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SCOPE_OVERFLOW,
                           "no scope is open: every end of a scope needs a begin before it");
      return FALSE;
    }
  orchestrator->scopes--;
  pto_orchestrator_call (orchestrator, call_scope, &call);
  if (call.failed)
    set_failed (error);
  return !call.failed;
}

/**
 * pto_orchestrator_tensor:
 * @orchestrator: an orchestrator
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor that belongs to the current scope and that the runtime gives memory at the submit
 * that outputs it.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused. Source: seed 000 section 11,
 * `make_tensor()`. Thread safety: orchestrator thread.
 *
 * Returns: (transfer full): a tensor
 */
PtoTensor *
pto_orchestrator_tensor (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                         const guint64 *shape, GError **error)
{
  g_autoptr (PtoTensor) tensor = NULL;
  Call call = { .self = orchestrator };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_usable (orchestrator, error))
    return NULL;
  tensor = pto_tensor_new (dtype, n_dims, shape);
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           pto_tensor_get_refusal (tensor));
      return NULL;
    }
  call.tensor = tensor;
  pto_orchestrator_call (orchestrator, call_tensor, &call);
  if (call.failed)
    {
      set_failed (error);
      return NULL;
    }
  return g_steal_pointer (&tensor);
}

/**
 * pto_orchestrator_get_worker:
 * @orchestrator: an orchestrator
 *
 * Gives the worker that runs the tasks.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: (transfer none) (nullable): a worker; %NULL once the run is over
 */
PtoWorker *
pto_orchestrator_get_worker (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);

  return orchestrator->worker;
}

/**
 * pto_orchestrator_is_valid:
 * @orchestrator: an orchestrator
 *
 * Asks whether its orchestration function is still running.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE during the function
 */
gboolean
pto_orchestrator_is_valid (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);

  return g_atomic_pointer_get (&orchestrator->rt) != NULL;
}
