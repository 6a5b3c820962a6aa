/* stdout.c: how does a program end whose standard output cannot be written?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static FILE *own;               /* what the program prints to instead of stdout; NULL: stdout */
static _Atomic int first_error; /* errno; W: main thread; R: any thread that logs; no order */

void
pto_stdout_begin (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0)
      (void) open ("/dev/null", O_RDONLY); /* gets the lowest number that is free: this one */
  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN);
}

static FILE *
get_stream (void)
{
  return own != NULL ? own : stdout;
}

static int
get_error (void)
{
  return atomic_load_explicit (&first_error, memory_order_relaxed);
}

static void
set_error (int code)
{
  if (get_error () == 0)
    atomic_store_explicit (&first_error, code, memory_order_relaxed);
}

void
pto_stdout_divert (void)
{
  int fd;

  if (own != NULL)
    return;
  if (fflush (stdout) != 0)
    set_error (errno);
  fd = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  own = fd >= 0 ? fdopen (fd, "w") : NULL;
  if (own == NULL)
    /* The stand-in for a stream that was closed can only be read. */
    set_error (errno == EINVAL ? EBADF : errno);
  else if (dup2 (STDERR_FILENO, STDOUT_FILENO) < 0)
    set_error (errno);
}

void
pto_stdout_print (const char *text)
{
  FILE *stream = get_stream ();

  if (get_error () == 0 && (fputs (text, stream) < 0 || fflush (stream) != 0))
    set_error (errno);
}

static gboolean
reader_has_gone (void)
{
  struct pollfd polled = { .fd = fileno (get_stream ()), .events = POLLOUT };

  return poll (&polled, 1, 0) == 1 && (polled.revents & POLLERR) != 0;
}

void
pto_stdout_look (void)
{
  if (reader_has_gone ())
    set_error (EPIPE);
}

int
pto_stdout_finish (void)
{
  FILE *stream = get_stream ();

  if (fflush (stream) != 0)
    set_error (errno);
  /* An error of a printf() elsewhere, whose errno is lost. */
  if (ferror (stream) != 0)
    set_error (reader_has_gone () ? EPIPE : EIO);
  return get_error ();
}

gboolean
pto_stdout_is_cut (void)
{
  return get_error () == EPIPE;
}

void
pto_stdout_end_by_pipe (void)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGPIPE);
  signal (SIGPIPE, SIG_DFL);
  pthread_sigmask (SIG_UNBLOCK, &set, NULL);
  raise (SIGPIPE);
  _exit (128 + SIGPIPE); /* the first process of a container dies of no signal */
}
