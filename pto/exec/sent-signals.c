/* sent-signals.c: what becomes of a signal that guarded code has sent its own thread?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sent-signals.h"

#include "pto-exec.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Does it end the program where nothing handles it? SIGKILL and what stops a process do what they
 * always do. */
static bool
is_fatal (int signo)
{
  switch (signo)
    {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
      return false;
    default:
      return true;
    }
}

void
pto_sent_describe (const char *function, int signo, char *what, size_t size)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  const char *name = sigabbrev_np (signo);
#else
  const char *name = NULL;
#endif

  if (name != NULL)
    snprintf (what, size, "%s(SIG%s)", function, name);
  else
    snprintf (what, size, "%s(%d)", function, signo);
}

bool
pto_sent_ends_program (int signo)
{
  struct sigaction now;

  return is_fatal (signo) && sigaction (signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0
         && now.sa_handler == SIG_DFL;
}

bool
pto_sent_take_one (int signo)
{
  const struct timespec at_once = { 0 };
  uint64_t set = (uint64_t) 1 << (signo - 1);
  siginfo_t info;

  /* libc's sigtimedwait() says SI_USER for SI_TKILL. */
  if (syscall (SYS_rt_sigtimedwait, &set, &info, &at_once, sizeof set) != signo)
    return false;
  if (info.si_code == SI_TKILL || (info.si_code == SI_QUEUE && info.si_pid == getpid ()))
    return true;
  syscall (SYS_rt_sigqueueinfo, getpid (), signo, &info);
  return false;
}

bool
pto_sent_take (struct pto_guard *guard, bool fails)
{
  int error = errno;
  bool ends = false;

  for (int signo = 1; guard->sent != 0; signo++, guard->sent >>= 1)
    while ((guard->sent & 1) != 0 && pto_sent_take_one (signo))
      if (fails && !ends && pto_sent_ends_program (signo))
        {
          pto_sent_describe (guard->sent_by, signo, guard->text, sizeof guard->text);
          ends = true;
        }
  errno = error;
  return ends;
}
