/* worker-run.c: how does a worker run one graph after the other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A run takes the machine, lets it run, and gives it back. The function of an asynchronous run
 * (worker-async.c) is called in its owner's context, while the worker's own thread makes the
 * calls that it asks for (orchestrator/function-thread.h).
 */
#include "config.h"

#include "worker.h"

#include "base/error.h"
#include "callable/call-foreign.h"
#include "callable/callable.h"
#include "common/text.h"
#include "graph/graph.h"
#include "machine/run-outputs.h"
#include "orchestrator/orchestrator.h"
#include "values/call-config.h"
#include "values/task-args.h"
#include "pto-chip-orchestration.h"

/* One run under way. */
typedef struct
{
  PtoWorker *self;
  GCancellable *cancellable;
  GError *error;       /* of the orchestration itself */
  gboolean has_failed; /* the run, before the orchestration did */
  PtoMachineRun machine_run;
  PtoGraph *graph;                       /* that is launched or captured; NULL: neither */
  gboolean is_capture;                   /* captured */
  bool (*parent_cancelled) (void *data); /* of a child; or NULL */
  gpointer parent_data;

  /* A function. */
  PtoOrchestrationFunc func;
  gboolean is_native; /* see pto_function_is_native() */
  gpointer data;
  PtoTaskArgs *args;
  PtoCallConfig *config;
  PtoOrchestrator *orchestrator;
  GHashTable *kept; /* what its tasks were given, until it is over */
  PtoGate *gate;    /* NULL: call it here */
  GMainContext *context;
  int priority;
  PTO2Runtime *rt;
  PtoTeller *teller; /* NULL: nobody listens */
} Run;

static bool
is_unwanted (void *data)
{
  Run *run = data;

  return g_cancellable_is_cancelled (run->cancellable) || g_atomic_int_get (&run->self->closing)
         || (run->parent_cancelled != NULL && run->parent_cancelled (run->parent_data));
}

static bool
is_cancelled (void *data)
{
  Run *run = data;

  if (G_UNLIKELY (run->teller != NULL))
    pto_teller_look (run->teller, run->orchestrator);
  return is_unwanted (run);
}

typedef struct
{
  Run *run;
  gboolean ok;
} FunctionCall;

static void
call_it (gpointer data)
{
  FunctionCall *call = data;
  Run *run = call->run;

  call->ok = run->func (run->orchestrator, run->args, run->config, run->data, &run->error);
}

/* Function's thread. */
static void
call_function (Run *run)
{
  FunctionCall call = { run, FALSE };
  GError *thrown = NULL;
  gboolean ok;
  guint open;

  pto_orchestrator_begin (run->orchestrator, run->rt);
  if (!run->is_native)
    pto_call_other (call_it, &call, _ ("the orchestration"));
  else if (!pto_call_native (call_it, &call, _ ("the orchestration"), &run->error, &thrown))
    {
      g_clear_error (&run->error);
      run->error = thrown;
    }
  ok = call.ok;
  pto_error_make_valid (run->error);
  open = pto_orchestrator_end (run->orchestrator);
  if (ok && run->error == NULL && open > 0)
    pto_refuse (&run->error, PTO_ERROR_SCOPE_OVERFLOW,
                P_ ("the orchestration function returned with %u scope open: end what it begins",
                    "the orchestration function returned with %u scopes open: end what it begins",
                    open),
                open);
  if (!ok && run->error == NULL)
    pto_refuse (
        &run->error, PTO_ERROR_EXPLICIT,
        _ ("the orchestration function failed and did not say why: it must return TRUE when the "
           "graph is complete (in Python and JavaScript: anything but false)"));
}

/* What takes the function to its own context. */
typedef struct
{
  PtoGate *gate;
  Run *run; /* lives until the gate has ended or was abandoned */
} Visit;

static gboolean
visit_context (gpointer data)
{
  Visit *visit = data;

  if (pto_gate_begin (visit->gate))
    {
      call_function (visit->run);
      pto_gate_end (visit->gate);
    }
  return G_SOURCE_REMOVE;
}

static void
visit_free (gpointer data)
{
  Visit *visit = data;

  /* The context may have gone without calling it. */
  pto_gate_abandon (visit->gate);
  pto_gate_unref (visit->gate);
  g_free (visit);
}

static void
abandon_gate (GCancellable *cancellable, gpointer data)
{
  pto_gate_abandon (data);
}

static void
call_function_in_context (Run *run)
{
  Visit *visit = g_new (Visit, 1);
  GSource *source = g_idle_source_new ();
  gulong handler = 0;

  visit->gate = pto_gate_ref (run->gate);
  visit->run = run;
  g_source_set_priority (source, run->priority);
  g_source_set_static_name (source, "pto orchestration function");
  g_source_set_callback (source, visit_context, visit, visit_free);
  if (run->cancellable != NULL)
    handler = g_cancellable_connect (run->cancellable, G_CALLBACK (abandon_gate), run->gate, NULL);
  /* From here on a close abandons the gate; one that was before is seen at once. */
  g_mutex_lock (&run->self->lock);
  run->self->gate = run->gate;
  if (g_atomic_int_get (&run->self->closing))
    pto_gate_abandon (run->gate);
  g_mutex_unlock (&run->self->lock);
  g_source_attach (source, run->context);
  g_source_unref (source);

  if (!pto_gate_serve (run->gate))
    g_set_error_literal (&run->error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
                         _ ("the run was cancelled before its orchestration function was called"));

  g_mutex_lock (&run->self->lock);
  run->self->gate = NULL;
  g_mutex_unlock (&run->self->lock);
  g_cancellable_disconnect (run->cancellable, handler);
}

/* The orchestration has ended. A cancelled run fails even when the machine never had to wait. */
static void
check_end (Run *run, PTO2Runtime *rt)
{
  const PtoMachineOps *ops = run->self->node.machine->ops;

  /* Which was first, its own error or the run's? */
  if (run->error != NULL && ops->catch_up != NULL)
    ops->catch_up (rt);
  run->has_failed = ops->has_failed (rt);
  if (!run->has_failed && run->error == NULL && is_cancelled (run))
    ops->fail (rt, PTO_STATUS_CANCELLED, _ ("the run was cancelled"));
}

/* --- graphs --- */

/* Does the worker run what the graph's tasks are? kernel: one that they run; NULL: one of the
 * chip's own. */
static gboolean
check_runs (PtoWorker *self, gboolean is_of_level, PtoCallable *callable, GError **error)
{
  gboolean is_level = self->node.machine->ops->submit != NULL;
  g_autofree char *path = NULL;

  if (is_level == is_of_level)
    return TRUE;
  path = pto_worker_dup_path (self);
  if (is_level)
    return pto_refuse (
        error, PTO_ERROR_NOT_SUPPORTED,
        _ ("the tasks of this graph are kernels%s%s%s, which run on a chip, and %s has no "
           "cores: launch it on a worker of level 2, or capture a function of this worker's"),
        callable != NULL ? " (\"" : "", callable != NULL ? callable->name : "",
        callable != NULL ? "\")" : "", path);
  return pto_refuse (
      error, PTO_ERROR_NOT_SUPPORTED,
      _ ("the tasks of this graph are for workers (\"%s\" is %s), and %s is a chip, which "
         "has none below it: launch it on a worker of level 3 or up"),
      callable->name, pto_callable_describe_kind (callable->kind), path);
}

/* What the worker names one of the graph's kernels by, or of its callables for workers. Kernels
 * that it has not are built here. */
static gboolean
find_number (Run *run, guint32 number, guint32 *found)
{
  PtoWorker *self = run->self;
  PtoRegistration *registration = pto_graph_get_registration (run->graph, number);
  PtoCallable *callable
      = registration != NULL ? registration->callable : pto_graph_get_kernel (run->graph, number);
  gint32 id;

  *found = number;
  if (number == (guint32) PTO2_KERNEL_NONE)
    return TRUE;
  if (!check_runs (self, registration != NULL, callable, &run->error))
    return FALSE;
  if (registration != NULL)
    {
      g_autofree char *path = NULL;

      if (pto_registry_find_digest (self->node.registry, registration->digest, found))
        return TRUE;
      path = pto_worker_dup_path (self);
      return pto_refuse (
          &run->error, PTO_ERROR_NOT_FOUND,
          _ ("the graph has tasks of \"%s\", which is not registered on %s: register it there "
             "before the launch%s"),
          registration->name, path,
          callable->source == PTO_CALLABLE_SOURCE_CLOSURE
              ? _ (", the same callable, for two that are made of one function are two")
              : "");
    }
  if (callable == NULL)
    return TRUE; /* the chip's own */
  if (!pto_worker_find_kernel (self, callable, &id, &run->error)
      || (pto_machine_checks (self->node.machine, &run->machine_run)
          && !pto_worker_instrument_kernel (self, callable, &run->error)))
    return FALSE;
  *found = (guint32) id;
  return TRUE;
}

/* Submits what the graph has. */
static void
launch (Run *run, PTO2Runtime *rt)
{
  const struct pto_plan *plan = run->graph->plan;
  g_autofree guint32 *kernels = g_new (guint32, MAX (plan->n_kernels, 1));

  for (guint k = 0; k < plan->n_kernels; k++)
    if (!find_number (run, plan->kernels[k].kernel, &kernels[k]))
      return;
  run->self->node.machine->ops->launch (run->self->node.machine, rt, plan, kernels);
}

static PtoCallable *
find_worker_kernel (guint number, gpointer worker)
{
  return pto_registry_ref_kernel (((PtoWorker *) worker)->node.registry, number);
}

static PtoCallable *
find_chip_kernel (guint number, gpointer chip)
{
  PtoCallable *kernel = pto_chip_orchestration_get_kernel (chip, number);

  return kernel != NULL ? g_object_ref (kernel) : NULL;
}

/* The machine is taken, and the graph written: its numbers are those of the run. */
static gboolean
name_kernels (Run *run, GError **error)
{
  PtoRegistration *registration = run->machine_run.registration;

  if (!run->is_capture)
    return TRUE;
  if (run->self->node.machine->ops->submit != NULL)
    {
      pto_graph_name_registrations (run->graph);
      return TRUE;
    }
  return registration != NULL
             ? pto_graph_name_kernels (run->graph, find_chip_kernel, registration->callable, error)
             : pto_graph_name_kernels (run->graph, find_worker_kernel, run->self, error);
}

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  Run *run = data;
  PtoMachine *machine = run->self->node.machine;

  run->rt = rt;
  if (run->machine_run.is_launch)
    launch (run, rt);
  else if (run->func == NULL)
    machine->ops->enter (machine, &run->machine_run, rt, &run->error);
  else if (run->gate == NULL)
    call_function (run);
  else
    call_function_in_context (run);
  check_end (run, rt);
  return run->error == NULL ? 0 : 1;
}

static void
set_current (PtoWorker *self, PtoOrchestrator *orchestrator)
{
  g_mutex_lock (&self->lock);
  self->current = orchestrator;
  g_mutex_unlock (&self->lock);
}

/* The machine is taken. Consumes run->error. */
static gboolean
run_on_machine (Run *run, GError **error)
{
  PtoWorker *self = run->self;
  GError *failure = NULL;
  gboolean ok;

  run->machine_run.args = run->args;
  run->machine_run.config = run->config;
  run->machine_run.orchestrate = orchestrate;
  run->machine_run.is_cancelled = is_cancelled;
  run->machine_run.is_unwanted = is_unwanted;
  run->machine_run.data = run;
  run->machine_run.cancellable = run->cancellable;

  /* A child's are told of by its parent. */
  if (run->parent_cancelled == NULL)
    run->teller = pto_teller_new (self, run->context, run->priority);
  set_current (self, run->orchestrator);
  ok = self->node.machine->ops->run (self->node.machine, &run->machine_run, &failure);
  set_current (self, NULL);
  if (run->teller != NULL)
    pto_teller_end (g_steal_pointer (&run->teller), run->rt != NULL);

  /* The first error wins: the orchestration's own, unless the run had failed before it. */
  if (run->error != NULL && (!run->has_failed || ok))
    {
      g_clear_error (&failure);
      g_propagate_error (error, g_steal_pointer (&run->error));
      return FALSE;
    }
  g_clear_error (&run->error);
  if (!ok)
    g_propagate_error (error, failure);
  return ok;
}

/* The machine is taken. Writes what the run was asked to write. */
static gboolean
write_outputs (PtoWorker *self, const PtoCallConfig *config, GError **error)
{
  g_autoptr (PtoTrace) trace = NULL;

  if (pto_call_config_get_record_level (config) == 0)
    return TRUE;
  trace = self->node.machine->ops->get_trace (self->node.machine);
  return pto_run_outputs_write (config, trace, error);
}

/* Of all workers' runs together, so that what belongs to a run is never taken for another's. */
static guint64
count_run (void)
{
  static gsize runs; /* atomic */

  return (guint64) g_atomic_pointer_add (&runs, 1) + 1;
}

/* The machine is taken, the configuration checked. */
static gboolean
run_function (Run *run, GError **error)
{
  PtoWorker *self = run->self;
  gboolean ok;

  run->machine_run.title = "orchestration function";
  if (run->is_capture)
    run->machine_run.capture = run->graph->plan;
  run->orchestrator
      = pto_orchestrator_new (&self->node, run->gate, run->machine_run.number, is_cancelled, run);
  run->orchestrator->captured = run->is_capture ? run->graph : NULL;
  run->machine_run.config = run->config;
  run->orchestrator->checks = pto_machine_checks (self->node.machine, &run->machine_run);
  if (self->node.level == 2)
    pto_worker_compile_ahead (self, run->cancellable);
  ok = run_on_machine (run, error);
  pto_worker_forget_ahead (self);
  run->kept = pto_orchestrator_steal_kept (run->orchestrator);
  if (ok && run->is_capture)
    pto_graph_keep_memory (run->graph, run->kept);
  g_clear_object (&run->orchestrator);
  return ok && name_kernels (run, error) && write_outputs (self, run->config, error);
}

/* The machine is taken, the configuration checked. */
static gboolean
run_graph (Run *run, GError **error)
{
  gboolean ok;

  run->machine_run.title = "graph";
  run->machine_run.is_launch = TRUE;
  run->machine_run.tag = run->graph->tag;
  /* It may have been captured on another worker. */
  if (run->self->node.level == 2)
    pto_worker_compile_ahead (run->self, run->cancellable);
  ok = run_on_machine (run, error);
  pto_worker_forget_ahead (run->self);
  return ok && write_outputs (run->self, run->config, error);
}

static PtoCallable *
import_function (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  return pto_tree_node_import (data, kind, path, error);
}

/* The machine is taken, the configuration checked. */
static gboolean
run_registration (Run *run, PtoCallableHandle *handle, GError **error)
{
  PtoWorker *self = run->self;
  PtoRegistration *registration = pto_registry_lookup (self->node.registry, handle, error);
  gboolean ok;

  if (registration == NULL)
    return FALSE;
  if (registration->callable->kind == PTO_CALLABLE_CHIP)
    {
      run->machine_run.registration = registration;
      run->machine_run.title = registration->name;
      if (run->is_capture)
        run->machine_run.capture = run->graph->plan;
      ok = run_on_machine (run, error) && name_kernels (run, error)
           && write_outputs (self, run->config, error);
    }
  else
    {
      /* Whoever has taken the machine is the only one that resolves on it. */
      ok = pto_registration_resolve (registration, import_function, self, error);
      if (ok)
        {
          run->func = (PtoOrchestrationFunc) registration->function;
          run->is_native = registration->is_native;
          run->data = registration->function_data;
          ok = run_function (run, error);
        }
    }
  pto_registration_unref (registration);
  return ok;
}

/* Can this machine run it as a whole, not as a task? */
static gboolean
check_is_orchestration (PtoWorker *self, PtoCallableHandle *handle, GError **error)
{
  PtoCallableKind kind = pto_callable_handle_get_kind (handle);
  const char *name = pto_callable_get_name (pto_callable_handle_get_callable (handle));
  const char *why;

  if (kind == (self->node.level == 2 ? PTO_CALLABLE_CHIP : PTO_CALLABLE_ORCHESTRATION))
    return TRUE;
  if (kind == PTO_CALLABLE_KERNEL)
    why = _ ("is a kernel: submit it from an orchestration, which can be run");
  else if (kind == PTO_CALLABLE_SUB)
    why = _ ("is a SUB function: submit it from an orchestration, which can be run");
  else if (kind == PTO_CALLABLE_CHIP)
    why = _ (
        "is for chips: submit it with submit_next_level from an orchestration, which can be run");
  else
    why = _ ("is an orchestration for workers of level 3 and up");
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS, "\"%s\" %s", name, why);
}

static void
cancel_machine (GCancellable *cancellable, gpointer data)
{
  PtoMachine *machine = data;

  machine->ops->cancel (machine);
}

/* A run that close() has cancelled, and nobody else, says so, as one that comes too late does. */
static void
propagate_failure (const Run *run, GError *failure, GError **error)
{
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)
      && g_atomic_int_get (&run->self->closing) && !g_cancellable_is_cancelled (run->cancellable)
      && (run->parent_cancelled == NULL || !run->parent_cancelled (run->parent_data)))
    {
      g_error_free (failure);
      failure = g_error_new_literal (PTO_ERROR, PTO_ERROR_CLOSED,
                                     _ ("the worker was closed while the run was under way"));
    }
  g_propagate_error (error, failure);
}

/* Takes the machine, runs, gives it back. With a handle that orchestration, otherwise the run's
 * function. */
static gboolean
run_any (Run *run, gboolean is_asynchronous, PtoCallableHandle *handle, GError **error)
{
  PtoMachine *machine = run->self->node.machine;
  GError *failure = NULL;
  gulong handler = 0;
  gboolean ok;

  g_autoptr (PtoCallConfig) config = NULL;
  g_autofree char *schedule = NULL;

  run->machine_run.number = count_run ();
  /* What a parent gives has a name of its own. */
  if (run->config != NULL && run->parent_cancelled == NULL)
    run->config = config = pto_run_outputs_claim_for (run->config, run->machine_run.number);
  if (run->config != NULL && !pto_call_config_check (run->config, error))
    return FALSE;
  if (handle != NULL && !check_is_orchestration (run->self, handle, error))
    return FALSE;
  if (!pto_worker_take (run->self, is_asynchronous, run->cancellable, error))
    return FALSE;
  g_mutex_lock (&run->self->lock);
  run->machine_run.schedule = schedule = g_strdup (run->self->schedule);
  g_mutex_unlock (&run->self->lock);
  if (run->cancellable != NULL)
    handler = g_cancellable_connect (run->cancellable, G_CALLBACK (cancel_machine), machine, NULL);
  if (handle != NULL)
    ok = run_registration (run, handle, &failure);
  else if (run->func != NULL)
    ok = run_function (run, &failure);
  else
    ok = run_graph (run, &failure);
  if (failure != NULL)
    propagate_failure (run, failure, error);
  g_cancellable_disconnect (run->cancellable, handler);
  pto_worker_give_back (run->self);
  /* Of an asynchronous run it is let go of where its function is at home. */
  if (!is_asynchronous)
    g_clear_pointer (&run->kept, g_hash_table_unref);
  return ok;
}

gboolean
pto_worker_run_for_parent (PtoWorker *self, PtoCallableHandle *handle,
                           const PtoRegistration *registration, PtoTaskArgs *args,
                           PtoCallConfig *config, guint record, bool (*cancelled) (void *data),
                           gpointer data, GError **error)
{
  Run run = { .self = self,
              .func = (PtoOrchestrationFunc) registration->function,
              .is_native = registration->is_native,
              .data = registration->function_data,
              .args = args,
              .config = config,
              .machine_run.record = record,
              .parent_cancelled = cancelled,
              .parent_data = data };

  return run_any (&run, FALSE, handle, error);
}

gboolean
pto_worker_run_apart (PtoWorker *self, PtoCallableHandle *handle, PtoRunApart *apart,
                      PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
                      GError **error)
{
  Run run = { .self = self,
              .cancellable = cancellable,
              .func = apart->func,
              .is_native = apart->func != NULL && pto_function_is_native (G_CALLBACK (apart->func)),
              .data = apart->data,
              .args = args,
              .config = config,
              .graph = apart->graph,
              .gate = apart->gate,
              .context = apart->context,
              .priority = apart->priority };
  gboolean ok = run_any (&run, TRUE, handle, error);

  apart->kept = run.kept;
  return ok;
}

/**
 * pto_worker_run:
 * @worker: a worker; one that was not started is started
 * @func: (scope call) (closure user_data): a function that submits the tasks
 * @user_data: for @func
 * @args: (nullable): for @func
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why it failed
 *
 * Runs a graph that a function submits, and waits until all its tasks are done.
 *
 * @func is called on this thread. An error that it returns ends the run and is the error of the
 * run, whatever its domain. A switch in @config that has no effect is refused with
 * %PTO_ERROR_NOT_SUPPORTED. When tasks have failed, the error is that of the first one, with the
 * place of the worker that ran it; those that needed it did not run, all others did. Other errors
 * are those of the machine, %PTO_ERROR_WORKER_LOST, %G_IO_ERROR_CANCELLED,
 * %PTO_ERROR_CLOSED and %PTO_ERROR_BUSY (called from an orchestration function, or while an
 * asynchronous run needs one), or those of [method@Pto.Worker.start].
 *
 * Source: seed 001 section 6, seed 003. Thread safety: any thread; a second run waits for the
 * first.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run (PtoWorker *worker, PtoOrchestrationFunc func, gpointer user_data, PtoTaskArgs *args,
                PtoCallConfig *config, GCancellable *cancellable, GError **error)
{
  Run run = { .self = worker,
              .cancellable = cancellable,
              .func = func,
              .is_native = pto_function_is_native (G_CALLBACK (func)),
              .data = user_data,
              .args = args,
              .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return run_any (&run, FALSE, NULL, error);
}

/**
 * pto_worker_run_callable:
 * @worker: a worker; one that was not started is started
 * @handle: an orchestration that is registered
 * @args: (nullable): its arguments: tensors become addresses
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why it failed
 *
 * Runs a registered orchestration, and waits until all its tasks are done.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the number of arguments is not the one that the
 * orchestration expects, with %PTO_ERROR_NOT_FOUND for a handle of another worker, with
 * %PTO_ERROR_EXPLICIT when its entry returns a value other than 0, and like
 * [method@Pto.Worker.run].
 *
 * Source: seed 000 section 11, seed 003. Thread safety: any thread; a second run waits for the
 * first.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run_callable (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                         PtoCallConfig *config, GCancellable *cancellable, GError **error)
{
  Run run = { .self = worker, .cancellable = cancellable, .args = args, .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return run_any (&run, FALSE, handle, error);
}

/* --- graphs --- */

static PtoGraph *
capture (Run *run, PtoCallableHandle *handle, GError **error)
{
  g_autoptr (PtoGraph) graph = pto_graph_new ();

  run->graph = graph;
  run->is_capture = TRUE;
  return run_any (run, FALSE, handle, error) ? g_steal_pointer (&graph) : NULL;
}

/**
 * pto_worker_capture:
 * @worker: a worker; one that was not started is started
 * @func: (scope call) (closure user_data): a function that submits the tasks
 * @user_data: for @func
 * @args: (nullable): what the graph is going to be launched with: the tensors that @func submits
 *   lie in these, or in memory of remote workers
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why there is no graph
 *
 * Writes down what a function submits, without running any of it.
 *
 * What the function finds in memory is what was there before. The graph has all tasks with what
 * they depend on, and is launched by [method@Pto.Worker.run_graph], here or on another worker, with
 * arguments of the same shapes and types; numbers among @args are a part of it. What it can not
 * keep fails the capture with %PTO_ERROR_INVALID_ARGS, and a sentence that names the call and its
 * place: an element that is read or written, a tensor in memory that is no argument, on a chip one
 * of [method@Pto.Orchestrator.alloc], a number that is an address. Memory of a remote worker need
 * not be an argument: the graph keeps it. Otherwise like [method@Pto.Worker.run].
 *
 * Source: seed 000 section 1.1. Thread safety: any thread; a second run waits for the first.
 *
 * Returns: (transfer full): a graph that is complete
 *
 * Since: 0.1
 */
PtoGraph *
pto_worker_capture (PtoWorker *worker, PtoOrchestrationFunc func, gpointer user_data,
                    PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
                    GError **error)
{
  Run run = { .self = worker,
              .cancellable = cancellable,
              .func = func,
              .is_native = pto_function_is_native (G_CALLBACK (func)),
              .data = user_data,
              .args = args,
              .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return capture (&run, NULL, error);
}

/**
 * pto_worker_capture_callable:
 * @worker: a worker; one that was not started is started
 * @handle: an orchestration that is registered
 * @args: (nullable): its arguments, and what the graph is going to be launched with
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why there is no graph
 *
 * Writes down what a registered orchestration submits, without running any of it.
 *
 * Otherwise like [method@Pto.Worker.capture] and [method@Pto.Worker.run_callable].
 *
 * Source: seed 000 section 1.1. Thread safety: any thread; a second run waits for the first.
 *
 * Returns: (transfer full): a graph that is complete
 *
 * Since: 0.1
 */
PtoGraph *
pto_worker_capture_callable (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                             PtoCallConfig *config, GCancellable *cancellable, GError **error)
{
  Run run = { .self = worker, .cancellable = cancellable, .args = args, .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (handle != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return capture (&run, handle, error);
}

/**
 * pto_worker_run_graph:
 * @worker: a worker; one that was not started is started
 * @graph: a graph; one that is not complete is completed
 * @args: (nullable): its arguments
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why it failed
 *
 * Launches a graph, and waits until all its tasks are done.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, naming the argument, where one is not of the shape and type
 * that the graph was made for, where a tensor that is written can only be read, or where two
 * overlap in another way than they did; with %PTO_ERROR_NOT_SUPPORTED where tasks are kernels and
 * the worker is no chip, or the other way; with %PTO_ERROR_NOT_FOUND where it has no workers for a
 * task, or has not registered what that runs; with %PTO_ERROR_NOT_SHARED where workers do not see
 * an argument; with %PTO_ERROR_INVALID_ARGS or %PTO_ERROR_WORKER_LOST, naming the task, where a
 * remote worker has not, or has no more, the memory that the task uses; and like
 * [method@Pto.Worker.run]. Several workers may run one graph at the same
 * time. A chip in a process of its own keeps a copy of it there as long as @graph lives, and of
 * memory that it does not see, one of what it is launched with, as [method@Pto.Worker.run_callable]
 * does.
 *
 * Source: seed 000 section 1.1. Thread safety: any thread; a second run waits for the first.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run_graph (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args, PtoCallConfig *config,
                      GCancellable *cancellable, GError **error)
{
  Run run = {
    .self = worker, .cancellable = cancellable, .graph = graph, .args = args, .config = config
  };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (PTO_IS_GRAPH (graph), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return pto_graph_complete (graph, error) && run_any (&run, FALSE, NULL, error);
}

/* --- after a run --- */

/**
 * pto_worker_dup_statistics:
 * @worker: a worker
 *
 * Gives the numbers of the last run, also of one that failed.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): numbers; %NULL before the first run
 *
 * Since: 0.1
 */
PtoRunStatistics *
pto_worker_dup_statistics (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return worker->node.machine != NULL ? pto_machine_dup_statistics (worker->node.machine) : NULL;
}

/**
 * pto_worker_ref_trace:
 * @worker: a worker
 *
 * Gives the record of the last run.
 *
 * A run is recorded when the parameter `trace` is 1 or its configuration asks for a swimlane. Of a
 * worker of level 3 or up that is its tasks on its children, and what workers below it did inside
 * of them; a worker in another process has no record of its own here. The record is copied, at the
 * latest on the first request, and outlives the worker. Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): a trace; %NULL when the last run was not recorded, while one
 * is under way, and when the worker is closed
 *
 * Since: 0.1
 */
PtoTrace *
pto_worker_ref_trace (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return worker->node.machine != NULL ? worker->node.machine->ops->get_trace (worker->node.machine)
                                      : NULL;
}
