/* pto-orchestrator.c: how does an orchestration function submit tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-orchestrator-private.h"

#include "pto-call-config-private.h"
#include "pto-callable-handle-private.h"
#include "pto-callable-private.h"
#include "pto-error-private.h"
#include "pto-kernel-private.h"
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
 *
 * Since: 0.1
 */
struct _PtoOrchestrator
{
  GObject parent_instance;

  PtoWorker *worker;   /* function's thread; NULL once the run is over */
  PtoMachine *machine; /* the worker's; used on the thread that runs it */
  PtoGate *gate;       /* NULL: the function runs on the thread that runs the machine */
  guint64 run;
  bool (*is_cancelled) (void *data);
  gpointer data;
  guint scopes;      /* opened here and still open */
  guint priority;    /* of the tasks that are submitted now */
  guint64 last_task; /* function's thread; PTO2_TASK_NONE: none was submitted */
  /* Tensors whose memory belongs to somebody: a task may come to its turn when the program has let
   * go of what it was given. NULL: none was submitted. */
  GHashTable *kept;
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
  g_clear_pointer (&self->kept, g_hash_table_unref);
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
  self->machine = worker->machine;
  self->gate = gate != NULL ? pto_gate_ref (gate) : NULL;
  self->run = run;
  self->is_cancelled = is_cancelled;
  self->data = data;
  self->last_task = PTO2_TASK_NONE;
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

GHashTable *
pto_orchestrator_steal_kept (PtoOrchestrator *self)
{
  return g_steal_pointer (&self->kept);
}

gboolean
pto_orchestrator_is_own_thread (PtoOrchestrator *self)
{
  return g_atomic_pointer_get (&self->thread) == g_thread_self ();
}

gboolean
pto_orchestrator_is_cancelled (PtoOrchestrator *self)
{
  return self->is_cancelled (self->data);
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

/* A call on the thread that runs the machine. */
typedef struct
{
  PtoOrchestrator *self;
  gboolean failed;
  GError *error; /* why nothing was done, in a run that has not failed */

  /* submit */
  gint32 kernel;
  gint32 core_type;
  guint priority;
  const PtoArg *args;
  guint n_args;
  const PtoTaskTerms *terms;
  guint64 id; /* the result */

  /* submit to another worker */
  PtoMachineTask task;

  /* tensor */
  PtoTensor *tensor;
  Tensor handle;

  /* scopes */
  gboolean begin;
} Call;

/* The machine asks for cancellation where it waits; a function that never makes it wait is ended
 * here. */
static gboolean
has_failed (PtoOrchestrator *self)
{
  const PtoMachineOps *ops = self->machine->ops;

  if (self->is_cancelled (self->data))
    ops->fail (self->rt, PTO_STATUS_CANCELLED, "the run was cancelled");
  return ops->has_failed (self->rt);
}

/* The arguments as the runtime takes them; FALSE: the run has failed. */
static gboolean
prepare_params (const Call *call, PTOParam *params)
{
  for (guint i = 0; i < call->n_args; i++)
    {
      const PtoArg *arg = &call->args[i];

      if (arg->direction == PTO_DIRECTION_SCALAR)
        params[i] = make_scalar_param (pto_arg_get_word (arg));
      else
        {
          params[i].type = (PTOParamType) arg->direction;
          params[i].scalar = 0;
          if (!pto_tensor_prepare (arg->tensor, call->self->rt, call->self->run, &params[i].tensor))
            return FALSE;
        }
    }
  return TRUE;
}

static guint64
submit_more (const Call *call, PTOParam *params)
{
  const GArray *after = call->terms->after;
  PTO2Runtime *rt = call->self->rt;
  PTO2Submit submit = { .size = sizeof submit,
                        .kernel_id = call->kernel,
                        .worker_type = call->core_type,
                        .params = params,
                        .n_params = (int32_t) call->n_args,
                        .priority = (int32_t) call->priority };
  Tensor condition;

  if (after != NULL)
    {
      submit.after = (const PTO2TaskId *) (gpointer) after->data;
      submit.n_after = (int32_t) after->len;
    }
  if (call->terms->condition != NULL)
    {
      if (!pto_tensor_prepare (call->terms->condition, rt, call->self->run, &condition))
        return PTO2_TASK_NONE;
      submit.condition = &condition;
      submit.condition_index = call->terms->index;
    }
  return rt->ops->submit (rt, &submit);
}

static void
call_submit (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->self->rt;
  const PtoMachineOps *ops = call->self->machine->ops;
  const GArray *after = call->terms->after;
  PTOParam usual[USUAL_ARGS];
  PTOParam *params = call->n_args <= USUAL_ARGS ? usual : g_new (PTOParam, call->n_args);

  call->failed = has_failed (call->self) || !prepare_params (call, params);
  if (!call->failed)
    {
      if (call->kernel == PTO2_KERNEL_NONE && ops->order != NULL)
        call->id = ops->order (call->self->machine, rt, params, call->n_args,
                               after != NULL ? (const guint64 *) (gpointer) after->data : NULL,
                               after != NULL ? after->len : 0);
      else if (call->kernel == PTO2_KERNEL_NONE || after != NULL || call->terms->condition != NULL
               || call->priority > 0)
        call->id = submit_more (call, params);
      else
        /* Not the macro, which would note this place. */
        call->id = (pto2_rt_submit_task) (rt, call->kernel, call->core_type, params,
                                          (int32_t) call->n_args);
      call->failed = ops->has_failed (rt);
    }
  if (params != usual)
    g_free (params);
}

static void
call_submit_task (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->self;

  call->failed
      = has_failed (self)
        || !self->machine->ops->submit (self->machine, self->rt, &call->task, &call->error);
  call->id = call->task.id;
}

static void
call_tensor (gpointer data)
{
  Call *call = data;

  call->failed
      = has_failed (call->self)
        || !pto_tensor_prepare (call->tensor, call->self->rt, call->self->run, &call->handle);
}

static void
call_alloc (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->self;

  call_tensor (data);
  if (!call->failed)
    call->failed
        = !self->machine->ops->alloc (self->machine, self->rt, &call->handle, &call->error);
}

/* Makes a call; why it came to nothing is its own error, or that the run has failed. */
static gboolean
make_call (PtoOrchestrator *self, void (*func) (gpointer data), Call *call, GError **error)
{
  pto_orchestrator_call (self, func, call);
  if (!call->failed)
    return TRUE;
  if (call->error != NULL)
    g_propagate_error (error, call->error);
  else
    set_failed (error);
  return FALSE;
}

static gboolean
make_submit (PtoOrchestrator *self, void (*func) (gpointer data), Call *call, GError **error)
{
  if (!make_call (self, func, call, error))
    return FALSE;
  self->last_task = call->id;
  return TRUE;
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

static gboolean
check_args (PtoOrchestrator *self, PtoCallable *kernel, const PtoArg *args, guint n_args,
            GError **error)
{
  if (!pto_kernel_check_args (kernel, args, n_args, error))
    return FALSE;
  if (pto_args_admit (args, n_args, TRUE, self->run, &self->kept, error))
    return TRUE;
  g_prefix_error (error, "kernel \"%s\": ", kernel->name);
  return FALSE;
}

static gboolean
check_runs_kernels (PtoOrchestrator *self, GError **error)
{
  if (self->machine->ops->submit == NULL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               "a task of level %u runs a registered callable: use submit_next_level or submit_sub",
               self->worker->level);
  return FALSE;
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

/* An index that is as long as its tensor says. */
static gboolean
check_condition (PtoCallable *kernel, const PtoTaskTerms *terms, GError **error)
{
  gsize n_dims;

  if (terms->condition == NULL)
    return TRUE;
  n_dims = pto_tensor_get_n_dims (terms->condition);
  if (terms->n_index == n_dims)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "kernel \"%s\": its condition names an element by %" G_GSIZE_FORMAT
               " numbers, but the tensor has %" G_GSIZE_FORMAT " dimensions",
               kernel->name, terms->n_index, n_dims);
  return FALSE;
}

static gboolean
submit (PtoOrchestrator *self, PtoCallable *kernel, const PtoArg *args, guint n_args,
        const PtoTaskTerms *terms, GError **error)
{
  Call call = {
    .self = self, .args = args, .n_args = n_args, .terms = terms, .priority = self->priority
  };

  if (!check_usable (self, error) || !check_runs_kernels (self, error)
      || !find_kernel (self, kernel, &call.kernel, error)
      || !check_args (self, kernel, args, n_args, error) || !check_condition (kernel, terms, error))
    return FALSE;
  call.core_type = (gint32) ((PtoKernel *) kernel)->core_type;
  return make_submit (self, call_submit, &call, error);
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
 *   `PTO_SCALAR (integer)`, `PTO_SCALAR_SIGNED (integer)`, `PTO_SCALAR_FLOAT (number)`,
 * `PTO_SCALAR_DOUBLE (number)`, then %NULL
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
                       "kernel \"%s\": argument %u: \"%s\" does not say what it is: write "
                       "PTO_IN (tensor), PTO_SCALAR (number) or their like",
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
      if (arg.direction != PTO_DIRECTION_SCALAR && arg.tensor == NULL)
        {
          va_end (list);
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                       "kernel \"%s\": argument %u is no tensor, but NULL", kernel->name, n);
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
                 more != NULL ? (const PtoArg *) (gpointer) more->data : usual, n,
                 pto_task_args_get_terms (NULL), error);
}

/* --- tasks for children --- */

static gboolean
check_workers (PtoCallable *callable, const int *workers, gsize n_workers, GError **error)
{
  for (gsize i = 0; i < n_workers; i++)
    if (workers[i] < -1)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     "task of \"%s\": there is no worker %d: give its number, or -1 for any",
                     callable->name, workers[i]);
        return FALSE;
      }
  return TRUE;
}

static gboolean
check_kind (PtoOrchestrator *self, PtoCallable *callable, gboolean is_sub, GError **error)
{
  const char *why = NULL;

  if (self->machine->ops->submit == NULL)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
          "a task of a chip runs a kernel: use submit; %s is for workers of level 3 and up",
          is_sub ? "submit_sub" : "submit_next_level");
      return FALSE;
    }
  if (is_sub && callable->kind != PTO_CALLABLE_SUB)
    why = "is no SUB function: use submit_next_level";
  else if (!is_sub && callable->kind == PTO_CALLABLE_SUB)
    why = "is a SUB function: use submit_sub";
  if (why != NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "\"%s\" %s", callable->name, why);
  return why == NULL;
}

/* What members say beside their arguments: of all of them together, as the task is one. */
static gboolean
collect_after (PtoCallable *callable, PtoTaskArgs *const *args, gsize n_args, GArray **after,
               GError **error)
{
  for (gsize i = 0; i < n_args; i++)
    {
      const PtoTaskTerms *terms = pto_task_args_get_terms (args[i]);

      if (terms->condition != NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                       "task of \"%s\": a condition is for kernels, on a chip", callable->name);
          return FALSE;
        }
      if (terms->after == NULL)
        continue;
      if (*after == NULL)
        *after = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_array_append_vals (*after, terms->after->data, terms->after->len);
    }
  return TRUE;
}

static gboolean
check_members (PtoOrchestrator *self, PtoCallable *callable, PtoTaskArgs *const *args, gsize n_args,
               GError **error)
{
  for (gsize i = 0; i < n_args; i++)
    {
      const PtoArg *list = NULL;
      guint n = 0;

      if (args[i] != NULL)
        list = pto_task_args_peek (args[i], &n);
      if (pto_args_admit (list, n, callable->kind == PTO_CALLABLE_CHIP, self->run, &self->kept,
                          error))
        continue;
      if (n_args > 1)
        g_prefix_error (error, "member %" G_GSIZE_FORMAT " of group of \"%s\": ", i,
                        callable->name);
      else
        g_prefix_error (error, "task of \"%s\": ", callable->name);
      return FALSE;
    }
  return TRUE;
}

static gboolean
submit_task (PtoOrchestrator *self, PtoCallableHandle *handle, PtoTaskArgs *const *args,
             gsize n_args, const PtoCallConfig *config, const int *workers, gsize n_workers,
             gboolean is_sub, GError **error)
{
  Call call = { .self = self };
  PtoCallable *callable = pto_callable_handle_get_callable (handle);
  g_autoptr (GArray) after = NULL;
  PtoRegistration *registration;
  gboolean ok;

  if (!check_usable (self, error) || !check_kind (self, callable, is_sub, error)
      || (config != NULL && !pto_call_config_check (config, error)))
    return FALSE;
  if (n_args == 0 || (n_workers != 0 && n_workers != n_args))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "a group of \"%s\" has %" G_GSIZE_FORMAT " members and names %" G_GSIZE_FORMAT
                   " workers: it needs a member, and as many workers or none",
                   callable->name, n_args, n_workers);
      return FALSE;
    }
  if (!check_workers (callable, workers, n_workers, error))
    return FALSE;
  if (!check_members (self, callable, args, n_args, error)
      || !collect_after (callable, args, n_args, &after, error))
    return FALSE;
  registration = pto_registry_lookup (self->worker->registry, handle, error);
  if (registration == NULL)
    return FALSE;
  call.task.registration = registration;
  call.task.args = args;
  call.task.n_members = (guint) MIN (n_args, G_MAXUINT);
  call.task.workers = n_workers > 0 ? workers : NULL;
  call.task.config = config;
  call.task.run = self->run;
  call.task.priority = self->priority;
  if (after != NULL)
    {
      call.task.after = (const guint64 *) (gpointer) after->data;
      call.task.n_after = after->len;
    }
  /* It may be taken back at once: the worker keeps what a run uses until that has ended. */
  ok = make_submit (self, call_submit_task, &call, error);
  pto_registration_unref (registration);
  return ok;
}

/**
 * pto_orchestrator_submit_next_level:
 * @orchestrator: an orchestrator
 * @handle: a chip callable or an orchestration that is registered on the worker
 * @args: (nullable): its arguments: tensors, then numbers
 * @config: (nullable): choices of the call
 * @worker: the id of a worker, or -1 for any that is idle
 * @error: where to say why not
 *
 * Submits a task: one run of a callable on a worker below this one, after all tasks that its
 * arguments make it wait for.
 *
 * A chip callable runs on a chip, an orchestration on a worker of level 3 or up. Returns as soon as
 * the task is in its ring, or waits for a slot. @args and @config are copied.
 *
 * An argument lies where the other worker sees it: in a [struct@Pto.Buffer], in memory that the
 * runtime gives ([method@Pto.Orchestrator.make_tensor], [method@Pto.Orchestrator.alloc]), or in
 * memory that was shared before [method@Pto.Worker.start].
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NOT_SHARED or
 * %PTO_ERROR_NOT_SUPPORTED, naming callable, argument or worker: then nothing was submitted and the
 * run goes on. Fails with %PTO_ERROR_RUN_FAILED, %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD like
 * [method@Pto.Orchestrator.submit]. Source: seed 001 section 6. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_next_level (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                    PtoTaskArgs *args, PtoCallConfig *config, int worker,
                                    GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, &args, 1, config, &worker, 1, FALSE, error);
}

/**
 * pto_orchestrator_submit_next_level_group:
 * @orchestrator: an orchestrator
 * @handle: a chip callable or an orchestration that is registered on the worker
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: how many members there are
 * @config: (nullable): choices of the call, the same for all members
 * @workers: (array length=n_workers) (nullable): the id of a worker for each member, -1 for any
 * @n_workers: 0 or @n_args
 * @error: where to say why not
 *
 * Submits a group: one task whose members run at the same time on different workers.
 *
 * It is done when all members are, and failed when one has failed: then the others are asked to
 * stop. Otherwise like [method@Pto.Orchestrator.submit_next_level]. Fails with
 * %PTO_ERROR_INVALID_ARGS also when there are more members than workers, or when a worker is named
 * twice. Source: seed 001 section 6, seed 002. Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_next_level_group (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                          PtoTaskArgs *const *args_list, gsize n_args,
                                          PtoCallConfig *config, const int *workers,
                                          gsize n_workers, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (args_list != NULL || n_args == 0, FALSE);
  g_return_val_if_fail (workers != NULL || n_workers == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, args_list, n_args, config, workers, n_workers, FALSE,
                      error);
}

/**
 * pto_orchestrator_submit_sub:
 * @orchestrator: an orchestrator
 * @handle: a SUB function that is registered on the worker
 * @args: (nullable): its arguments: tensors, then numbers
 * @worker: the number of a SUB worker, or -1 for any that is idle
 * @error: where to say why not
 *
 * Submits a task: one call of a function in a SUB worker, after all tasks that its arguments make
 * it wait for.
 *
 * Otherwise like [method@Pto.Orchestrator.submit_next_level]. Source: seed 001 section 6. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if the task was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_sub (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                             PtoTaskArgs *args, int worker, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, &args, 1, NULL, &worker, 1, TRUE, error);
}

/**
 * pto_orchestrator_submit_sub_group:
 * @orchestrator: an orchestrator
 * @handle: a SUB function that is registered on the worker
 * @args_list: (array length=n_args): the arguments of each member
 * @n_args: how many members there are
 * @workers: (array length=n_workers) (nullable): the number of a SUB worker for each member, -1 for
 *   any
 * @n_workers: 0 or @n_args
 * @error: where to say why not
 *
 * Submits a group: one task whose members are called at the same time in different SUB workers.
 *
 * Otherwise like [method@Pto.Orchestrator.submit_next_level_group]. Source: seed 001 section 6.
 * Thread safety: orchestrator thread.
 *
 * Returns: %TRUE if the group was submitted
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_submit_sub_group (PtoOrchestrator *orchestrator, PtoCallableHandle *handle,
                                   PtoTaskArgs *const *args_list, gsize n_args, const int *workers,
                                   gsize n_workers, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (args_list != NULL || n_args == 0, FALSE);
  g_return_val_if_fail (workers != NULL || n_workers == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return submit_task (orchestrator, handle, args_list, n_args, NULL, workers, n_workers, TRUE,
                      error);
}

/* --- priorities --- */

/**
 * pto_orchestrator_set_priority:
 * @orchestrator: an orchestrator
 * @priority: 0, which is what tasks have otherwise, to %PTO_MAX_PRIORITY, which goes first
 * @error: where to say why not
 *
 * Says which priority the tasks have that are submitted from now on.
 *
 * Of the tasks that are ready for one kind of cores, or of workers, those with the highest priority
 * go first, strictly: a task of a lower one waits as long as there are others. Among equals the
 * first one that was ready goes first. What runs is not interrupted. A run that sets none pays
 * nothing.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such priority, with %PTO_ERROR_CLOSED or
 * %PTO_ERROR_WRONG_THREAD. Source: the clause `priority` of OpenMP. Thread safety: orchestrator
 * thread.
 *
 * Returns: %TRUE if they have
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_set_priority (PtoOrchestrator *orchestrator, guint priority, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_usable (orchestrator, error))
    return FALSE;
  if (priority > PTO_MAX_PRIORITY)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          "there is no priority %u: a task has one of 0, which is what others have, to %d, "
          "which goes first",
          priority, PTO_MAX_PRIORITY);
      return FALSE;
    }
  orchestrator->priority = priority;
  return TRUE;
}

/**
 * pto_orchestrator_get_priority:
 * @orchestrator: an orchestrator
 *
 * Gives the priority of the tasks that are submitted now.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: 0 to %PTO_MAX_PRIORITY
 *
 * Since: 0.1
 */
guint
pto_orchestrator_get_priority (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), 0);

  return orchestrator->priority;
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
  Call call = { .self = orchestrator,
                .kernel = PTO2_KERNEL_NONE,
                .terms = pto_task_args_get_terms (args) };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (args != NULL)
    call.args = pto_task_args_peek (args, &call.n_args);
  if (!check_usable (orchestrator, error))
    return FALSE;
  if (call.terms->condition != NULL || (args != NULL && pto_task_args_get_n_scalars (args) > 0))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "a task that only orders has %s: give it tensors, and tasks that it comes after",
                   call.terms->condition != NULL ? "no condition" : "no numbers");
      return FALSE;
    }
  if (!pto_args_admit (call.args, call.n_args, TRUE, orchestrator->run, &orchestrator->kept, error))
    {
      g_prefix_error (error, "a task that only orders: ");
      return FALSE;
    }
  return make_submit (orchestrator, call_submit, &call, error);
}

/**
 * pto_orchestrator_get_last_task:
 * @orchestrator: an orchestrator
 *
 * Gives the number of the task that was submitted last, of whatever kind, for
 * [method@Pto.TaskArgs.add_after]; traces have the same.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: a number, which may be 0; 2^64 - 1 when no task was submitted in this run
 *
 * Since: 0.1
 */
guint64
pto_orchestrator_get_last_task (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), PTO2_TASK_NONE);

  return orchestrator->last_task;
}

/* --- scopes and tensors --- */

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
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_begin_scope (PtoOrchestrator *orchestrator, GError **error)
{
  Call call = { .self = orchestrator, .begin = TRUE };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_usable (orchestrator, error))
    return FALSE;
  if (!make_call (orchestrator, call_scope, &call, error))
    return FALSE;
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
 *
 * Since: 0.1
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
  return make_call (orchestrator, call_scope, &call, error);
}

/**
 * pto_orchestrator_with_scope:
 * @orchestrator: an orchestrator
 * @func: (scope call) (closure user_data): submits what belongs into the scope
 * @user_data: for @func
 * @error: where to say why not
 *
 * Calls a function inside a scope of its own, which ends when it returns, however it does; as do
 * scopes that it has opened and left open.
 *
 * Fails as [method@Pto.Orchestrator.begin_scope], or with the error of @func. In C,
 * `g_autoptr (PtoScopeGuard)` does the same for a block. Source: seed 000 section 11. Thread
 * safety: orchestrator thread.
 *
 * Returns: %TRUE if @func has said so
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_with_scope (PtoOrchestrator *orchestrator, PtoScopeFunc func, gpointer user_data,
                             GError **error)
{
  GError *local = NULL;
  guint before;
  gboolean ok;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  before = orchestrator->scopes;
  if (!pto_orchestrator_begin_scope (orchestrator, error))
    return FALSE;
  ok = func (orchestrator, user_data, &local);
  if (!ok && local == NULL)
    g_set_error_literal (&local, PTO_ERROR, PTO_ERROR_EXPLICIT,
                         "the function of a scope failed and did not say why: it must return TRUE "
                         "when what belongs into the scope is submitted");
  if (local != NULL)
    {
      ok = FALSE;
      g_propagate_error (error, local);
    }
  while (orchestrator->scopes > before)
    {
      /* Whose error was first is told; in a run that has failed that is the run's. */
      if (!pto_orchestrator_end_scope (orchestrator, ok ? error : NULL))
        ok = FALSE;
    }
  return ok;
}

/* A tensor of the current scope, after what call does with it. */
static PtoTensor *
make_tensor_here (PtoOrchestrator *self, PtoDtype dtype, gsize n_dims, const guint64 *shape,
                  void (*func) (gpointer data), GError **error)
{
  g_autoptr (PtoTensor) tensor = NULL;
  Call call = { .self = self };

  if (!check_usable (self, error))
    return NULL;
  tensor = pto_tensor_new (dtype, n_dims, shape);
  if (pto_tensor_get_refusal (tensor) != NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           pto_tensor_get_refusal (tensor));
      return NULL;
    }
  call.tensor = tensor;
  if (!make_call (self, func, &call, error))
    return NULL;
  if (func == call_alloc)
    {
      GDestroyNotify release;
      gpointer owner = self->machine->ops->hold_memory (self->machine, &release);

      pto_tensor_set_allocated (tensor, call.handle.buffer.addr, owner, release);
    }
  return g_steal_pointer (&tensor);
}

/**
 * pto_orchestrator_make_tensor:
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
 *
 * Since: 0.1
 */
PtoTensor *
pto_orchestrator_make_tensor (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                              const guint64 *shape, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return make_tensor_here (orchestrator, dtype, n_dims, shape, call_tensor, error);
}

/**
 * pto_orchestrator_alloc:
 * @orchestrator: an orchestrator of a worker of level 3 or up
 * @dtype: type of the elements
 * @n_dims: number of dimensions, 1 to 5
 * @shape: (array length=n_dims): extent of each dimension, in elements
 * @error: where to say why there is none
 *
 * Makes a tensor that has memory at once, which this worker and those below it share.
 *
 * Its address, 1024-byte aligned, is that of [method@Pto.Tensor.get_address]. The memory lives
 * until the current scope has ended and the last task that uses it is done.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the shape is refused, with %PTO_ERROR_NOT_SUPPORTED on a
 * chip, and with %PTO_ERROR_RUN_FAILED when the ring stays full until the time-out. Source: seed
 * 002. Thread safety: orchestrator thread.
 *
 * Returns: (transfer full): a tensor
 *
 * Since: 0.1
 */
PtoTensor *
pto_orchestrator_alloc (PtoOrchestrator *orchestrator, PtoDtype dtype, gsize n_dims,
                        const guint64 *shape, GError **error)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_usable (orchestrator, error))
    return NULL;
  if (orchestrator->machine->ops->alloc == NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                           "a chip gives its tensors memory when they are output: use tensor()");
      return NULL;
    }
  return make_tensor_here (orchestrator, dtype, n_dims, shape, call_alloc, error);
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
 *
 * Since: 0.1
 */
PtoWorker *
pto_orchestrator_get_worker (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);

  return orchestrator->worker;
}

/**
 * pto_orchestrator_to_string:
 * @orchestrator: an orchestrator
 *
 * Says whose it is, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `of a run of L2/0`
 *
 * Since: 0.1
 */
char *
pto_orchestrator_to_string (PtoOrchestrator *orchestrator)
{
  g_autofree char *path = NULL;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);

  if (!pto_orchestrator_is_valid (orchestrator))
    return g_strdup ("of a run that is over");
  if (!pto_orchestrator_is_own_thread (orchestrator))
    return g_strdup ("of a run on another thread");
  path = pto_worker_dup_path (orchestrator->worker);
  return g_strdup_printf ("of a run of %s", path);
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
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_is_valid (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);

  return g_atomic_pointer_get (&orchestrator->rt) != NULL;
}
