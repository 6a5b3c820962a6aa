/* progress.c: how far is a run, for who looks on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A thread asks the worker what `pto top` asks it, some times a second. A run that is over before
 * the first time is not asked at all, and one that nobody looks at never is.
 */
#include "config.h"

#include "progress.h"

#include "exec/needed-calls.h"
#include "terminal.h"
#include "tool.h"

#include "common/members.h"

#include <glib/gi18n.h>
#include <unistd.h>

/* At most five times a second. */
#define PERIOD_US (G_USEC_PER_SEC / 5)
/* When nothing has been complete for so long, it is told why. */
#define STALL_US G_USEC_PER_SEC

/* The rate is that of about the last second. */
#define N_LOOKS 6u

typedef struct
{
  gint64 us;
  guint64 completed; /* of all runs */
} Look;

struct Progress
{
  PtoWorker *worker;
  GThread *thread;
  GMutex lock;
  GCond wake;
  gboolean is_over; /* under the lock */

  /* The thread's own. */
  Look looks[N_LOOKS]; /* the last ones, by n_looks modulo N_LOOKS */
  guint64 n_looks;
  gint64 last_change_us; /* when another number of tasks was seen to be complete */
};

/* --- what it waits for --- */

/* "task 1:17 (mul)" */
static char *
dup_task (JsonObject *of)
{
  return *member_text (of, "kernel") != '\0'
             ? g_strdup_printf (_ ("task %s (%s)"), member_text (of, "task"),
                                member_text (of, "kernel"))
             : g_strdup_printf (_ ("task %s"), member_text (of, "task"));
}

/* The kernel that is longest under way, and on what else. */
static char *
dup_running (JsonObject *worker)
{
  JsonObject *oldest = NULL;
  JsonObject *core;
  g_autofree char *which = NULL;
  g_autofree char *others = NULL;
  guint n = 0;

  for (guint i = 0; (core = member_next (worker, "cores", &i)) != NULL;)
    {
      if (*member_text (core, "task") == '\0')
        continue;
      n++;
      if (oldest == NULL || member_number (core, "for_ns") > member_number (oldest, "for_ns"))
        oldest = core;
    }
  if (oldest == NULL)
    return NULL;
  which = dup_task (oldest);
  if (n > 1)
    others = g_strdup_printf (
        g_dngettext (GETTEXT_PACKAGE, ", and %u more core", ", and %u more cores", n - 1), n - 1);
  return g_strdup_printf (_ ("%s on %s%s"), which, member_text (oldest, "core"),
                          others != NULL ? others : "");
}

static char *
dup_submitter (JsonObject *submitter)
{
  if (member_is (submitter, "doing", "orchestration"))
    return g_strdup (_ ("the orchestration, which submits nothing"));
  if (member_is (submitter, "doing", "room"))
    return g_strdup_printf (_ ("room: %s"), member_text (submitter, "short_of"));
  if (member_is (submitter, "doing", "cluster"))
    return g_strdup (_ ("a cluster that is free"));
  return member_is (submitter, "doing", "await") ? dup_task (submitter) : NULL;
}

static char *
dup_waiting (JsonObject *run)
{
  JsonObject *first = member_element (run, "waiting", 0);
  g_autofree char *which = first != NULL ? dup_task (first) : NULL;
  g_autofree char *cause = NULL;

  if (first == NULL)
    return NULL;
  if (member_element (first, "after", 0) == NULL)
    return g_strdup_printf (_ ("places for %s"), which);
  cause = dup_task (member_element (first, "after", 0));
  return g_strdup_printf (_ ("%s, for %s"), cause, which);
}

/* What runs is what others wait for; where nothing runs, who submits, and then a task. */
static char *
dup_reason (JsonObject *worker, JsonObject *run)
{
  char *reason = dup_running (worker);

  if (reason == NULL)
    reason = dup_submitter (member_object (run, "submitter"));
  if (reason == NULL)
    reason = dup_waiting (run);
  return reason;
}

/* --- the line --- */

/* NULL: no run is under way. */
static char *
dup_line (Progress *progress, JsonObject *worker, gint64 now)
{
  JsonObject *run = member_object (worker, "run");
  guint64 completed = member_number (member_object (worker, "totals"), "completed")
                      + member_number (run, "completed");
  g_autofree char *done = tool_group_digits (member_number (run, "completed"));
  g_autofree char *submitted = tool_group_digits (member_number (run, "submitted"));
  guint64 n = progress->n_looks++;
  const Look *first = &progress->looks[n < N_LOOKS ? 0 : n % N_LOOKS];
  const Look *last = &progress->looks[(n + N_LOOKS - 1) % N_LOOKS];
  char *line = NULL;

  if (n == 0 || completed != last->completed)
    progress->last_change_us = now;
  if (run != NULL && now - progress->last_change_us >= STALL_US)
    {
      g_autofree char *reason = dup_reason (worker, run);

      line = g_strdup_printf (_ ("pto: %s of %s tasks, none for %.0f s%s%s"), done, submitted,
                              (double) (now - progress->last_change_us) / G_USEC_PER_SEC,
                              reason != NULL ? _ (": waits for ") : "",
                              reason != NULL ? reason : "");
    }
  else if (run != NULL && n > 0)
    {
      double seconds = (double) MAX (now - first->us, 1) / G_USEC_PER_SEC;
      g_autofree char *rate
          = tool_group_digits ((guint64) ((double) (completed - first->completed) / seconds + 0.5));

      line = g_strdup_printf (_ ("pto: %s of %s tasks, %s/s"), done, submitted, rate);
    }
  progress->looks[n % N_LOOKS] = (Look){ now, completed };
  return line;
}

static void
look (Progress *progress)
{
  g_autofree char *json = pto_worker_describe_state_json (progress->worker);
  g_autoptr (JsonNode) root = json != NULL ? json_from_string (json, NULL) : NULL;
  JsonObject *worker = root != NULL && JSON_NODE_HOLDS_OBJECT (root)
                           ? member_element (json_node_get_object (root), "workers", 0)
                           : NULL;
  g_autofree char *line
      = worker != NULL ? dup_line (progress, worker, g_get_monotonic_time ()) : NULL;

  if (line != NULL)
    terminal_show_line (line);
  else
    terminal_hide_line ();
}

static gpointer
run_thread (gpointer data)
{
  Progress *progress = data;
  gint64 next = g_get_monotonic_time () + PERIOD_US;

  g_mutex_lock (&progress->lock);
  while (!progress->is_over)
    if (!g_cond_wait_until (&progress->wake, &progress->lock, next))
      {
        g_mutex_unlock (&progress->lock);
        look (progress);
        /* Between the end of one look and the next one: a state that takes long is not asked for
         * all the time. */
        next = g_get_monotonic_time () + PERIOD_US;
        g_mutex_lock (&progress->lock);
      }
  g_mutex_unlock (&progress->lock);
  return NULL;
}

static void
progress_free (Progress *progress)
{
  g_mutex_clear (&progress->lock);
  g_cond_clear (&progress->wake);
  g_object_unref (progress->worker);
  g_free (progress);
}

Progress *
progress_begin (PtoWorker *worker)
{
  Progress *progress;

  if (!terminal_is (STDERR_FILENO))
    return NULL;
  progress = g_new0 (Progress, 1);
  progress->worker = g_object_ref (worker);
  g_mutex_init (&progress->lock);
  g_cond_init (&progress->wake);
  if (pto_try_thread () == 0)
    progress->thread = g_thread_try_new ("pto-progress", run_thread, progress, NULL);
  if (progress->thread == NULL)
    g_clear_pointer (&progress, progress_free);
  return progress;
}

void
progress_end (Progress *progress)
{
  if (progress == NULL)
    return;
  g_mutex_lock (&progress->lock);
  progress->is_over = TRUE;
  g_cond_signal (&progress->wake);
  g_mutex_unlock (&progress->lock);
  g_thread_join (progress->thread);
  terminal_hide_line ();
  progress_free (progress);
}
