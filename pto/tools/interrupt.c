/* interrupt.c: what does Ctrl-C do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It says so in one line, cancels what can be cancelled, and ends the program soon whatever that
 * does. A second one ends it at once.
 */
#include "config.h"

#include "terminal.h"
#include "tool.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* What is under way has so long to end by itself; children end with the program. */
#define GRACE_US G_USEC_PER_SEC

static GCancellable *cancellable;
static int wake[2]; /* from the handler to the thread, which may do more */
static int is_interrupted;
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

  g_mutex_lock (&lock);
  is_waiting = TRUE;
  g_cond_signal (&begun);
  g_mutex_unlock (&lock);
  while (read (wake[0], &byte, 1) < 0 && errno == EINTR)
    ;
  g_atomic_int_set (&is_interrupted, TRUE);
  terminal_end_line ();
  g_printerr (_ ("pto: cancelled\n"));
  g_cancellable_cancel (cancellable);
  g_usleep (GRACE_US);
  _exit (TOOL_INTERRUPTED);
}

void
tool_watch_interrupts (void)
{
  struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART | SA_RESETHAND };
  struct sigaction before;

  cancellable = g_cancellable_new ();
  /* Who was started to ignore it, in the background, does. */
  if (sigaction (SIGINT, NULL, &before) != 0 || before.sa_handler == SIG_IGN
      || !g_unix_open_pipe (wake, FD_CLOEXEC, NULL))
    return;
  g_thread_unref (g_thread_new ("pto-interrupt", wait_for_interrupt, NULL));
  /* A thread that begins holds locks of the C library's, which a child that is forked meanwhile
   * would find held for ever; one that reads holds none. */
  g_mutex_lock (&lock);
  while (!is_waiting)
    g_cond_wait (&begun, &lock);
  g_mutex_unlock (&lock);
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
