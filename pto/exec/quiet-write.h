/* quiet-write.h: how does a write that finds no reader, or no room, come to an error and to no
 * signal?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * SIGPIPE (nobody reads) and SIGXFSZ (a limit of file sizes) are sent to the thread that writes,
 * and would end a program that has never heard of what this library writes. Between begin and end
 * they wait, and what this thread has brought about by then is taken away; a signal that waited
 * before is somebody else's, and stays. Any thread; not nested in a handler.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

struct pto_quiet
{
  sigset_t taken; /* those that did not wait already */
  sigset_t before;
};

static inline void
pto_quiet_begin (struct pto_quiet *quiet)
{
  static const int signals[] = { SIGPIPE, SIGXFSZ };
  sigset_t pending;

  sigemptyset (&quiet->taken);
  sigemptyset (&pending);
  sigpending (&pending);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (sigismember (&pending, signals[i]) != 1)
      sigaddset (&quiet->taken, signals[i]);
  pthread_sigmask (SIG_BLOCK, &quiet->taken, &quiet->before);
}

/* errno stays. */
static inline void
pto_quiet_end (const struct pto_quiet *quiet)
{
  static const struct timespec at_once = { 0, 0 };
  int saved = errno;
  int signal;

  do
    signal = sigtimedwait (&quiet->taken, NULL, &at_once);
  while (signal > 0 || errno == EINTR);
  pthread_sigmask (SIG_SETMASK, &quiet->before, NULL);
  errno = saved;
}
