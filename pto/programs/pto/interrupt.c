/* interrupt.c: what does Ctrl-C do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It says so in one line, cancels what can be cancelled, and ends the program soon whatever that
 * does. A second one ends it at once.
 */
#include "config.h"

#include "exec/needed-calls.h"
#include "terminal.h"
#include "tool.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* What is under way has so long to end by itself; children end with the program. */
#define GRACE_US G_USEC_PER_SEC

static GCancellable *cancellable;
static int wake[2]; /* from the handler to the thread, which may do more */
static int is_interrupted;
static struct sigaction original; /* what SIGINT did before */
static GMutex lock;
static GCond begun;
static gboolean is_waiting; /* under the lock */

static void
on_interrupt (int number)
{
  int before = errno;
  ssize_t written = write (wake[1], "", 1);

  (void) written; /* nobody could be told */
  errno = before;
}

static gpointer
wait_for_interrupt (gpointer data)
{
  char byte;
  gssize n;

  g_mutex_lock (&lock);
  is_waiting = TRUE;
  g_cond_signal (&begun);
  g_mutex_unlock (&lock);
  do
    n = read (wake[0], &byte, 1);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    {
      /* Nothing is heard of a signal here: it ends the program. */
      signal (SIGINT, SIG_DFL);
      return NULL;
    }
  g_atomic_int_set (&is_interrupted, TRUE);
  terminal_end_line ();
  g_printerr (_ ("pto: cancelled\n"));
  g_cancellable_cancel (cancellable);
  g_usleep (GRACE_US);
  _exit (TOOL_INTERRUPTED);
}

/* A child that an example forks: its Ctrl-C is not to cancel what its parent does. */
static void
forget_interrupts (void)
{
  struct sigaction now;

  if (sigaction (SIGINT, NULL, &now) == 0 && now.sa_handler == on_interrupt)
    sigaction (SIGINT, &original, NULL);
}

void
tool_watch_interrupts (void)
{
  struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART | SA_RESETHAND };
  GThread *thread;

  cancellable = g_cancellable_new ();
  /* Who was started to ignore it, in the background, does. */
  if (sigaction (SIGINT, NULL, &original) != 0 || original.sa_handler == SIG_IGN
      || !g_unix_open_pipe (wake, FD_CLOEXEC, NULL))
    return;
  thread = pto_try_thread () == 0
               ? g_thread_try_new ("pto-interrupt", wait_for_interrupt, NULL, NULL)
               : NULL;
  if (thread == NULL)
    return;
  g_thread_unref (thread);
  /* A thread that begins holds locks of the C library's, which a child that is forked meanwhile
   * would find held for ever; one that reads holds none. */
  g_mutex_lock (&lock);
  while (!is_waiting)
    g_cond_wait (&begun, &lock);
  g_mutex_unlock (&lock);
  pthread_atfork (NULL, NULL, forget_interrupts);
  sigaction (SIGINT, &action, NULL);
}

GCancellable *
tool_get_cancellable (void)
{
  return cancellable;
}

gboolean
tool_was_interrupted (void)
{
  return g_atomic_int_get (&is_interrupted);
}
