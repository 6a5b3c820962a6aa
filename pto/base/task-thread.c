/* task-thread.c: on which threads does work run whose result is waited for elsewhere?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "task-thread.h"

#include "common/text.h"
#include "error.h"
#include "locks.h"

#include "exec/needed-calls.h"

#define THREADS_MAX 10

/* References: the queue's or the thread's, and the source's. */
typedef struct
{
  GTask *task;
  PtoTaskWork work;
  GSource *cancelled; /* in the task's context; NULL: it has no cancellable */
} Job;

/* Under PTO_LOCK_TASKS. Threads end when there is no job, so each job that is kept has a thread. A
 * job belongs to what has taken it from here: a thread, or its cancel. */
static GQueue jobs = G_QUEUE_INIT;
static guint n_threads;
static guint home; /* pto_count_forks() of the process that they belong to */

static void
clear_job (gpointer data)
{
  Job *job = data;

  g_object_unref (job->task);
  g_clear_pointer (&job->cancelled, g_source_unref);
}

static void
unref_job (gpointer job)
{
  g_atomic_rc_box_release_full (job, clear_job);
}

/* In the task's context, where its callback is called. */
static gboolean
leave_queue (GCancellable *cancellable, gpointer data)
{
  Job *job = data;
  gboolean is_mine;

  pto_lock (PTO_LOCK_TASKS);
  is_mine = g_queue_remove (&jobs, job);
  pto_unlock (PTO_LOCK_TASKS);
  if (!is_mine)
    return G_SOURCE_REMOVE;
  /* Also where the cancellable has been reset since. */
  g_task_return_new_error (job->task, G_IO_ERROR, G_IO_ERROR_CANCELLED, "%s", _ ("cancelled"));
  unref_job (job);
  return G_SOURCE_REMOVE;
}

static Job *
new_job (GTask *task, PtoTaskWork work)
{
  Job *job = g_atomic_rc_box_new0 (Job);
  GCancellable *cancellable = g_task_get_cancellable (task);

  job->task = g_object_ref (task);
  job->work = work;
  if (cancellable == NULL)
    return job;
  job->cancelled = g_cancellable_source_new (cancellable);
  g_source_set_name (job->cancelled, "pto-task");
  g_source_set_priority (job->cancelled, g_task_get_priority (task));
  g_source_set_callback (job->cancelled, G_SOURCE_FUNC (leave_queue), g_atomic_rc_box_acquire (job),
                         unref_job);
  return job;
}

GThread *
pto_thread_try_new (const char *name, GThreadFunc func, gpointer data, GError **error)
{
  int code = pto_try_thread ();

  if (code == 0)
    return g_thread_try_new (name, func, data, error);
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("No thread for %s: %s"), name,
               g_strerror (code));
  return NULL;
}

static gpointer
do_jobs (gpointer data)
{
  Job *job;

  do
    {
      pto_lock (PTO_LOCK_TASKS);
      job = g_queue_pop_head (&jobs);
      if (job == NULL)
        n_threads--;
      pto_unlock (PTO_LOCK_TASKS);
      if (job != NULL)
        {
          /* From here on the work hears the cancel. */
          if (job->cancelled != NULL)
            g_source_destroy (job->cancelled);
          job->work (job->task);
          unref_job (job);
        }
    }
  while (job != NULL);
  return NULL;
}

void
pto_task_run (GTask *task, PtoTaskWork work)
{
  Job *job = new_job (task, work);
  GError *error = NULL;
  gboolean is_kept = TRUE;

  /* Before it is in the queue: a thread destroys it. It finds no job until then. */
  if (job->cancelled != NULL)
    g_source_attach (job->cancelled, g_task_get_context (task));
  pto_lock (PTO_LOCK_TASKS);
  if (home != pto_count_forks ())
    {
      /* A fork copies no thread. The jobs are those of the parent, which runs them. */
      g_queue_init (&jobs);
      n_threads = 0;
      home = pto_count_forks ();
    }
  g_queue_push_tail (&jobs, job);
  if (n_threads < THREADS_MAX)
    {
      GThread *thread = pto_thread_try_new ("pto-task", do_jobs, NULL, &error);

      if (thread != NULL)
        {
          n_threads++;
          g_thread_unref (thread);
        }
      else if (n_threads == 0)
        {
          g_queue_pop_tail (&jobs);
          is_kept = FALSE;
        }
    }
  pto_unlock (PTO_LOCK_TASKS);
  if (!is_kept)
    {
      if (job->cancelled != NULL)
        g_source_destroy (job->cancelled);
      g_task_return_error (task, g_steal_pointer (&error));
      unref_job (job);
    }
  g_clear_error (&error);
}
