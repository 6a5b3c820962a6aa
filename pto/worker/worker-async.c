/* worker-async.c: how does a worker do something while its caller's main loop goes on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each call is a job: the synchronous function of the same name on a thread of the worker's own,
 * then its result in the caller's context. Runs are one after the other, on one thread that lives
 * until the worker is closed. All others have a thread each, so that what is registered, or closed,
 * need not wait for runs. These threads are not GTask's, whose pool does not work in a process that
 * somebody forked.
 *
 * Such a thread may fork, like any other that starts, registers or runs. The child is a copy of
 * this thread alone, whose stack it goes on with. It lives as long as the process, not as this
 * thread (../process/process.c). What other threads hold just then, it finds held for ever: so
 * whoever forks waits a moment until they sleep, as the thread of a main loop mostly does, and a
 * child that is caught all the same is ended and forked again (machine/machine-level.c).
 */
#include "config.h"

#include "worker.h"

#include "base/error.h"
#include "base/task-thread.h"
#include "common/text.h"
#include "orchestrator/orchestrator.h"
#include "values/call-config.h"
#include "values/task-args.h"

typedef struct _Job Job;

struct _Job
{
  GTask *task; /* owned; its source is the worker */
  void (*work) (Job *job, PtoWorker *worker);
  GThread *thread; /* its own, or NULL */
  GError *error;

  /* A run. */
  PtoOrchestrationFunc func; /* NULL: a registered orchestration, or a graph */
  gpointer data;
  GDestroyNotify destroy;
  PtoGate *gate;
  PtoGraph *graph;
  PtoTaskArgs *args;
  PtoCallConfig *config;
  GHashTable *kept; /* what the run's tasks were given */

  PtoCallable *callable;     /* to be registered */
  PtoCallableHandle *handle; /* to be run, or what was registered */
};

/* Tells the thread of runs to end. */
static Job end_of_jobs;

static void
job_free (gpointer data)
{
  Job *job = data;

  /* In the caller's context: the function's data may belong to a language that is at home there. */
  if (job->destroy != NULL)
    job->destroy (job->data);
  g_clear_pointer (&job->gate, pto_gate_unref);
  g_clear_pointer (&job->kept, g_hash_table_unref);
  g_clear_object (&job->callable);
  g_clear_object (&job->graph);
  g_clear_pointer (&job->handle, pto_callable_handle_unref);
  g_clear_pointer (&job->args, pto_task_args_unref);
  g_clear_pointer (&job->config, pto_call_config_free);
  g_clear_error (&job->error);
  g_object_unref (job->task);
  g_free (job);
}

/* Caller's context. */
static gboolean
job_return (gpointer data)
{
  Job *job = data;

  /* Nothing of it is left when the callback is called. It has nothing to do any more. */
  if (job->thread != NULL)
    g_thread_join (g_steal_pointer (&job->thread));
  if (job->destroy != NULL)
    {
      GDestroyNotify destroy = g_steal_pointer (&job->destroy);

      destroy (job->data);
    }
  if (job->error != NULL)
    g_task_return_error (job->task, g_steal_pointer (&job->error));
  else if (job->callable != NULL)
    g_task_return_pointer (job->task, g_steal_pointer (&job->handle),
                           (GDestroyNotify) pto_callable_handle_unref);
  else
    g_task_return_boolean (job->task, TRUE);
  return G_SOURCE_REMOVE;
}

static void
job_do (Job *job)
{
  GMainContext *context = g_main_context_ref (g_task_get_context (job->task));
  GSource *source = g_idle_source_new ();

  job->work (job, g_task_get_source_object (job->task));
  g_source_set_priority (source, g_task_get_priority (job->task));
  g_source_set_name (source, g_task_get_name (job->task));
  g_source_set_callback (source, job_return, job, job_free);
  g_source_attach (source, context);
  g_source_unref (source);
  g_main_context_unref (context);
}

static gpointer
do_runs (gpointer data)
{
  GAsyncQueue *queue = data;
  Job *job;

  while ((job = g_async_queue_pop (queue)) != &end_of_jobs)
    job_do (job);
  g_async_queue_unref (queue);
  return NULL;
}

static gpointer
do_one (gpointer data)
{
  Job *job = data;

  job->thread = g_thread_ref (g_thread_self ());
  job_do (job);
  return NULL;
}

/* It is not begun: the callback is called all the same, and not from here. */
static void
job_refuse (Job *job, GError *error)
{
  job->error = error;
  job_return (job);
  job_free (job);
}

/* What the main loop calls while a submit waits is not the function's. */
static gboolean
is_inside (PtoWorker *self)
{
  const PtoOrchestrator *own
      = pto_worker_is_foreign (self) ? NULL : pto_worker_get_own_orchestrator (self);

  return own != NULL && !own->is_waiting;
}

/* What needs the machine has to wait for the function that would wait for it. */
static gboolean
refuse_inside (Job *job, const char *message)
{
  if (!is_inside (g_task_get_source_object (job->task)))
    return FALSE;
  job_refuse (job, g_error_new_literal (PTO_ERROR, PTO_ERROR_BUSY, message));
  return TRUE;
}

static void
queue_run (Job *job)
{
  PtoWorker *self = g_task_get_source_object (job->task);
  GError *error = NULL;

  if (refuse_inside (job, PTO_WORKER_OWN_RUN))
    return;
  g_mutex_lock (&self->lock);
  if (pto_worker_check_open (self, &error) && self->thread == NULL)
    {
      self->thread
          = pto_thread_try_new ("pto-runs", do_runs, g_async_queue_ref (self->queue), &error);
      if (self->thread == NULL)
        g_async_queue_unref (self->queue);
    }
  if (error == NULL)
    {
      if (job->func != NULL)
        self->waiting_functions++;
      g_async_queue_push (self->queue, job);
    }
  g_mutex_unlock (&self->lock);
  if (error != NULL)
    job_refuse (job, error);
}

static void
begin_job (Job *job)
{
  GError *error = NULL;
  GThread *thread = pto_thread_try_new (g_task_get_name (job->task), do_one, job, &error);

  if (thread != NULL)
    g_thread_unref (thread);
  else
    job_refuse (job, error);
}

void
pto_worker_end_jobs (PtoWorker *self, GThread *thread)
{
  g_async_queue_push (self->queue, &end_of_jobs);
  if (thread == g_thread_self ())
    g_thread_unref (thread);
  else
    g_thread_join (thread);
}

static Job *
job_new (PtoWorker *self, const char *name, void (*work) (Job *job, PtoWorker *worker),
         gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job = g_new0 (Job, 1);

  job->task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_name (job->task, name);
  job->work = work;
  g_task_set_source_tag (job->task, tag);
  /* Whether it was cancelled is the synchronous function's to say. */
  g_task_set_check_cancellable (job->task, FALSE);
  return job;
}

/* --- life --- */

static void
work_start (Job *job, PtoWorker *worker)
{
  pto_worker_start (worker, g_task_get_cancellable (job->task), &job->error);
}

/**
 * pto_worker_start_async:
 * @worker: a new worker
 * @cancellable: (nullable): ends what takes time
 * @callback: (scope async) (closure user_data): called when it has started, or can not
 * @user_data: for @callback
 *
 * Makes the machine on a thread of the worker's own, as [method@Pto.Worker.start] does.
 *
 * @callback is called in the main context that is this thread's default, which goes on meanwhile.
 * Any number can be under way; a run beside it, whatever its kind, waits for the machine;
 * [method@Pto.Worker.close] ends it with %PTO_ERROR_CLOSED. Child processes are forked on that
 * thread. Source: seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_start_async (PtoWorker *worker, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data)
{
  g_return_if_fail (PTO_IS_WORKER (worker));

  begin_job (job_new (worker, "pto-start", work_start, (gpointer) pto_worker_start_async,
                      cancellable, callback, user_data));
}

/**
 * pto_worker_start_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why not
 *
 * Gives the result of [method@Pto.Worker.start_async], with the errors of
 * [method@Pto.Worker.start].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if the worker is ready
 *
 * Since: 0.1
 */
gboolean
pto_worker_start_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_start_async),
                        FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

static void
work_close (Job *job, PtoWorker *worker)
{
  pto_worker_close_wholly (worker);
}

/**
 * pto_worker_close_async:
 * @worker: a worker
 * @callback: (scope async) (closure user_data): called when nothing of the machine is left
 * @user_data: for @callback
 *
 * Ends the worker as [method@Pto.Worker.close] does, on a thread of its own.
 *
 * Runs, starts and registrations that are under way fail, and call their callbacks, with
 * %PTO_ERROR_CLOSED. Any number can be under way: each is called back when the worker is down,
 * whoever has closed it. There is no way back, so that it takes no cancellable. @callback is called
 * in the main context that is this thread's default, which goes on meanwhile.
 *
 * Inside an orchestration function of the worker it fails with %PTO_ERROR_BUSY, as the worker is
 * not down before that has returned: there it is [method@Pto.Worker.close].
 *
 * Source: seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_close_async (PtoWorker *worker, GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));

  job = job_new (worker, "pto-close", work_close, (gpointer) pto_worker_close_async, NULL, callback,
                 user_data);
  if (!refuse_inside (job,
                      _ ("an orchestration function can not wait until its own worker is closed: "
                         "close() ends the run, and the worker when the function has returned")))
    begin_job (job);
}

/**
 * pto_worker_close_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why not
 *
 * Gives the result of [method@Pto.Worker.close_async].
 *
 * Fails when there is no thread to be had, and inside an orchestration function of the worker; then
 * nothing was done. Thread safety: any thread.
 *
 * Returns: %TRUE if the worker is closed
 *
 * Since: 0.1
 */
gboolean
pto_worker_close_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_close_async),
                        FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- registrations --- */

static void
work_register (Job *job, PtoWorker *worker)
{
  job->handle = pto_worker_register (worker, job->callable, g_task_get_cancellable (job->task),
                                     &job->error);
}

/**
 * pto_worker_register_async:
 * @worker: a worker
 * @callable: what it is to run
 * @cancellable: (nullable): ends compilers, and waiting for children
 * @callback: (scope async) (closure user_data): called when it is registered, or can not be
 * @user_data: for @callback
 *
 * Builds, loads and names a callable on a thread of the worker's own, as
 * [method@Pto.Worker.register] does.
 *
 * Any number can be under way, also while the worker starts or runs; those of the same content
 * build it once, and have the same handle. [method@Pto.Worker.close] ends it with
 * %PTO_ERROR_CLOSED. @callback is called in the main context that is this thread's default, which
 * goes on meanwhile. Inside an orchestration function of the worker it is registered by this call.
 *
 * Source: seed 001 section 2. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_register_async (PtoWorker *worker, PtoCallable *callable, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (PTO_IS_CALLABLE (callable));

  job = job_new (worker, "pto-register", work_register, (gpointer) pto_worker_register_async,
                 cancellable, callback, user_data);
  job->callable = g_object_ref (callable);
  /* It may need the thread of the run, which a function that waits for it would keep. */
  if (is_inside (worker))
    {
      work_register (job, worker);
      job_return (job);
      job_free (job);
    }
  else
    begin_job (job);
}

/**
 * pto_worker_register_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why not
 *
 * Gives the result of [method@Pto.Worker.register_async], with the errors of
 * [method@Pto.Worker.register].
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): the name of the callable on this worker
 *
 * Since: 0.1
 */
PtoCallableHandle *
pto_worker_register_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (g_task_is_valid (result, worker), NULL);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_register_async),
                        NULL);

  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- runs --- */

static void
work_run (Job *job, PtoWorker *worker)
{
  PtoRunApart run = { .func = job->func,
                      .data = job->data,
                      .graph = job->graph,
                      .gate = job->gate,
                      .context = g_task_get_context (job->task),
                      .priority = g_task_get_priority (job->task) };

  pto_worker_run_apart (worker, job->handle, &run, job->args, job->config,
                        g_task_get_cancellable (job->task), &job->error);
  job->kept = run.kept;
  if (job->func == NULL)
    return;
  g_mutex_lock (&worker->lock);
  worker->waiting_functions--;
  g_mutex_unlock (&worker->lock);
}

static Job *
job_new_run (PtoWorker *self, gpointer tag, PtoTaskArgs *args, PtoCallConfig *config,
             GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job = job_new (self, "pto-run", work_run, tag, cancellable, callback, user_data);

  job->args = args != NULL ? pto_task_args_copy (args) : NULL;
  job->config = config != NULL ? pto_call_config_copy (config) : NULL;
  return job;
}

/**
 * pto_worker_run_async:
 * @worker: a worker
 * @func: (scope notified) (closure func_data) (destroy func_data_destroy): a function that submits
 * the tasks
 * @func_data: for @func
 * @func_data_destroy: for @func_data
 * @args: (nullable): for @func; copied
 * @config: (nullable): choices of this run; copied
 * @cancellable: (nullable): ends the run
 * @callback: (scope async) (closure user_data): called when the run has ended
 * @user_data: for @callback
 *
 * Runs a graph that a function submits, on the worker's own thread.
 *
 * Both functions are called, and @func_data is destroyed, in the main context that is this thread's
 * default: @func first. Each submit then goes to the worker's thread and back, which takes
 * microseconds: large graphs are better submitted by [method@Pto.Worker.run_callable_async]. No
 * kernel runs on the thread of that context. A call of the orchestrator that has to wait lets the
 * context run meanwhile, after 2 ms: what it calls then is called inside the call of @func, and
 * every call of this orchestrator fails there with %PTO_ERROR_BUSY. Asynchronous runs of one worker
 * happen one after the other, in the order of these calls; the first starts a worker that was not
 * started. Inside an orchestration function of the same worker each fails with %PTO_ERROR_BUSY;
 * what the context calls while that waits is not inside.
 *
 * Source: seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_run_async (PtoWorker *worker, PtoOrchestrationFunc func, gpointer func_data,
                      GDestroyNotify func_data_destroy, PtoTaskArgs *args, PtoCallConfig *config,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (func != NULL);

  job = job_new_run (worker, (gpointer) pto_worker_run_async, args, config, cancellable, callback,
                     user_data);
  job->func = func;
  job->data = func_data;
  job->destroy = func_data_destroy;
  job->gate = pto_gate_new ();
  queue_run (job);
}

/**
 * pto_worker_run_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why it failed
 *
 * Gives the result of [method@Pto.Worker.run_async], with the errors of [method@Pto.Worker.run].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_run_async), FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * pto_worker_run_callable_async:
 * @worker: a worker
 * @handle: an orchestration that is registered
 * @args: (nullable): its arguments: tensors become addresses; copied
 * @config: (nullable): choices of this run; copied
 * @cancellable: (nullable): ends the run
 * @callback: (scope async) (closure user_data): called when the run has ended
 * @user_data: for @callback
 *
 * Runs a registered orchestration on the worker's own thread.
 *
 * Asynchronous runs of one worker happen one after the other, in the order of these calls. Source:
 * seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_run_callable_async (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                               PtoCallConfig *config, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (handle != NULL);

  job = job_new_run (worker, (gpointer) pto_worker_run_callable_async, args, config, cancellable,
                     callback, user_data);
  job->handle = pto_callable_handle_ref (handle);
  queue_run (job);
}

/**
 * pto_worker_run_callable_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why it failed
 *
 * Gives the result of [method@Pto.Worker.run_callable_async], with the errors of
 * [method@Pto.Worker.run_callable].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run_callable_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_run_callable_async),
                        FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * pto_worker_run_graph_async:
 * @worker: a worker
 * @graph: a graph; one that is not complete is completed
 * @args: (nullable): its arguments; copied
 * @config: (nullable): choices of this run; copied
 * @cancellable: (nullable): ends the run
 * @callback: (scope async) (closure user_data): called when the run has ended
 * @user_data: for @callback
 *
 * Launches a graph on the worker's own thread.
 *
 * Asynchronous runs of one worker happen one after the other, in the order of these calls. Source:
 * seed 000 section 1.1, seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_run_graph_async (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args,
                            PtoCallConfig *config, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
  GError *error = NULL;
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (PTO_IS_GRAPH (graph));

  job = job_new_run (worker, (gpointer) pto_worker_run_graph_async, args, config, cancellable,
                     callback, user_data);
  job->graph = g_object_ref (graph);
  /* Here, where it is at home: it is not written to from another thread. */
  if (pto_graph_complete (graph, &error))
    queue_run (job);
  else
    job_refuse (job, error);
}

/**
 * pto_worker_run_graph_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why it failed
 *
 * Gives the result of [method@Pto.Worker.run_graph_async], with the errors of
 * [method@Pto.Worker.run_graph].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if all tasks completed
 *
 * Since: 0.1
 */
gboolean
pto_worker_run_graph_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_run_graph_async),
                        FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}
