/* worker-progress.c: how far is a run, and who is told while it lasts?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing runs for it: no thread, no timer. The machine asks the thread of a run now and then
 * whether that was cancelled, among submits and while it waits, and there it is looked at whether
 * it is time to tell. A run that nobody listened to when it began has nothing to look at.
 *
 * Handlers are called where whoever began the run is at home, so that no language is entered on a
 * thread that it does not know. Of a run that the caller waits for that is the caller's thread, in
 * between: there is no context that would go on meanwhile. Of one that goes on by itself it is the
 * caller's main context, like its callback, and before that.
 */
#include "config.h"

#include "worker.h"

#include "machine/machine.h"
#include "orchestrator/orchestrator.h"

#define SIGNAL "run-progress"

/* Those of one run; lives until the last source is gone. */
struct _PtoTeller
{
  gatomicrefcount ref_count;
  PtoWorker *worker;     /* owned */
  GThread *thread;       /* the run's: where the machine is asked */
  GMainContext *context; /* owned; NULL: handlers are called on that thread */
  int priority;
  gint64 told_at;   /* thread's; us */
  gboolean is_busy; /* thread's: a handler is being called there */

  GMutex lock; /* guards what follows */
  PtoMachineCounts counts;
  gboolean is_pending; /* a source is on its way, which takes what counts says then */
};

static void
teller_unref (gpointer data)
{
  PtoTeller *teller = data;

  if (!g_atomic_ref_count_dec (&teller->ref_count))
    return;
  g_object_unref (teller->worker);
  g_clear_pointer (&teller->context, g_main_context_unref);
  g_mutex_clear (&teller->lock);
  g_free (teller);
}

PtoTeller *
pto_teller_new (PtoWorker *worker, GMainContext *context, int priority)
{
  guint signal = g_signal_lookup (SIGNAL, PTO_TYPE_WORKER);
  PtoTeller *teller;

  if (!g_signal_has_handler_pending (worker, signal, 0, FALSE))
    return NULL;
  teller = g_new0 (PtoTeller, 1);
  g_atomic_ref_count_init (&teller->ref_count);
  g_mutex_init (&teller->lock);
  teller->worker = g_object_ref (worker);
  teller->thread = g_thread_self ();
  teller->context = context != NULL ? g_main_context_ref (context) : NULL;
  teller->priority = priority;
  teller->told_at = g_get_monotonic_time ();
  return teller;
}

/* In the midst of a call of the orchestrator there can be no other one: NULL where handlers are
 * called in the midst of none. */
static void
emit (PtoWorker *worker, PtoOrchestrator *orchestrator, const PtoMachineCounts *counts)
{
  if (orchestrator != NULL)
    orchestrator->is_telling = TRUE;
  /* No more are done than were submitted, though one of the two was read later. */
  g_signal_emit_by_name (worker, SIGNAL, counts->completed,
                         MAX (counts->submitted, counts->completed), counts->failures);
  if (orchestrator != NULL)
    orchestrator->is_telling = FALSE;
}

/* Caller's context. The function may be there, too, in a call that waits and lets the main loop
 * run. */
static gboolean
emit_there (gpointer data)
{
  PtoTeller *teller = data;
  PtoOrchestrator *own = pto_worker_is_foreign (teller->worker)
                             ? NULL
                             : pto_worker_get_own_orchestrator (teller->worker);
  PtoMachineCounts counts;

  g_mutex_lock (&teller->lock);
  counts = teller->counts;
  teller->is_pending = FALSE;
  g_mutex_unlock (&teller->lock);
  emit (teller->worker, own != NULL && own->is_waiting ? own : NULL, &counts);
  return G_SOURCE_REMOVE;
}

static void
tell (PtoTeller *teller, PtoOrchestrator *orchestrator, const PtoMachineCounts *counts)
{
  gboolean was_pending;
  GSource *source;

  if (teller->context == NULL)
    {
      teller->is_busy = TRUE;
      emit (teller->worker, orchestrator, counts);
      teller->is_busy = FALSE;
      return;
    }
  g_mutex_lock (&teller->lock);
  was_pending = teller->is_pending;
  teller->is_pending = TRUE;
  teller->counts = *counts;
  g_mutex_unlock (&teller->lock);
  if (was_pending)
    return;
  g_atomic_ref_count_inc (&teller->ref_count);
  source = g_idle_source_new ();
  g_source_set_priority (source, teller->priority);
  g_source_set_static_name (source, "pto run progress");
  g_source_set_callback (source, emit_there, teller, teller_unref);
  g_source_attach (source, teller->context);
  g_source_unref (source);
}

void
pto_teller_look (PtoTeller *teller, PtoOrchestrator *orchestrator)
{
  PtoMachine *machine = teller->worker->node.machine;
  PtoMachineCounts counts;
  gint64 now;

  if (g_thread_self () != teller->thread || teller->is_busy)
    return;
  now = g_get_monotonic_time ();
  if (now - teller->told_at < g_atomic_int_get (&teller->worker->progress_ms) * (gint64) 1000
      || !machine->ops->count (machine, TRUE, &counts))
    return;
  tell (teller, orchestrator, &counts);
  /* Behind it: handlers that take long do not take all of the time. */
  teller->told_at = g_get_monotonic_time ();
}

void
pto_teller_end (PtoTeller *teller, gboolean has_run)
{
  PtoMachine *machine = teller->worker->node.machine;
  PtoMachineCounts counts = { 0 };
  gboolean is_known;

  g_mutex_lock (&machine->lock);
  is_known = has_run && machine->has_statistics;
  if (is_known)
    counts = (PtoMachineCounts){ .submitted = machine->statistics.tasks,
                                 .completed = machine->statistics.completed,
                                 .failures = machine->statistics.failed };
  g_mutex_unlock (&machine->lock);
  if (is_known)
    tell (teller, NULL, &counts);
  teller_unref (teller);
}

typedef struct
{
  PtoMachineCounts counts;
  gboolean is_running;
} Look;

static void
look (PtoMachine *machine, gpointer data)
{
  Look *found = data;

  found->is_running = machine->ops->count (machine, FALSE, &found->counts);
}

/**
 * pto_worker_get_progress:
 * @worker: a worker
 * @done: (out) (optional): tasks that have ended, also those that have failed or were not run
 * @submitted: (out) (optional): tasks that were submitted so far
 * @failed: (out) (optional): of the done ones those that have failed, or were not run for that
 *
 * Tells how far the run under way is.
 *
 * How many tasks there will be nobody knows before the orchestration has ended. A run does nothing
 * for it; of a chip in a process of its own the numbers are up to 10 ms old. Thread safety: any
 * thread, also the one that runs.
 *
 * Returns: %FALSE if no run is under way, or that can not be known just now; then all are 0
 *
 * Since: 0.1
 */
gboolean
pto_worker_get_progress (PtoWorker *worker, guint64 *done, guint64 *submitted, guint64 *failed)
{
  Look found = { 0 };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);

  if (worker->node.machine != NULL)
    pto_machine_visit (worker->node.machine, look, &found);
  if (!found.is_running)
    found.counts = (PtoMachineCounts){ 0 };
  if (done != NULL)
    *done = found.counts.completed;
  if (submitted != NULL)
    *submitted = MAX (found.counts.submitted, found.counts.completed);
  if (failed != NULL)
    *failed = found.counts.failures;
  return found.is_running;
}

/**
 * pto_worker_set_progress_interval:
 * @worker: a worker
 * @interval: ms, at least 1
 *
 * Says how much time goes by, at least, between two emissions of [signal@Pto.Worker::run-progress].
 *
 * Thread safety: any thread; also of a run under way.
 *
 * Since: 0.1
 */
void
pto_worker_set_progress_interval (PtoWorker *worker, guint interval)
{
  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (interval >= 1 && interval <= G_MAXINT);

  g_atomic_int_set (&worker->progress_ms, (int) interval);
}

/**
 * pto_worker_get_progress_interval:
 * @worker: a worker
 *
 * Gives how much time goes by, at least, between two emissions of
 * [signal@Pto.Worker::run-progress].
 *
 * Thread safety: any thread.
 *
 * Returns: ms
 *
 * Since: 0.1
 */
guint
pto_worker_get_progress_interval (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return (guint) g_atomic_int_get (&worker->progress_ms);
}
