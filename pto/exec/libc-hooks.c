/* libc-hooks.c: what do the functions of libc do that must not do their work within a guarded call?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A shared object that holds foreign code is adopted after it was loaded: where it calls one of the
 * functions below, it calls ours. Outside of guarded calls they are the same. What the object calls
 * through another library is not touched, nor are system calls of its own.
 */
#include "libc-hooks.h"

#include "exec-private.h"
#include "guard-signals.h"
#include "guarded-call.h"
#include "sent-signals.h"
#include "translate.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fenv.h>
#include <link.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* --- ends --- */

static void
leave_with_status (const char *function, int status)
{
  char what[48];

  snprintf (what, sizeof what, "%s(%d)", function, status);
  pto_guard_leave (what);
}

static _Noreturn void
foreign_exit (int status)
{
  leave_with_status ("exit", status);
  exit (status);
}

static _Noreturn void
foreign_exit_now (int status)
{
  leave_with_status ("_exit", status);
  _exit (status);
}

static _Noreturn void
foreign_quick_exit (int status)
{
  leave_with_status ("quick_exit", status);
  quick_exit (status);
}

static _Noreturn void
foreign_pthread_exit (void *result)
{
  pto_guard_leave ("pthread_exit()");
  pthread_exit (result);
}

/* libc blocks all signals before it reads what it keeps of the thread: a fault there, where there
 * is no such thread, would end the program. Here it ends the call. */
static void
touch_thread (pthread_t thread)
{
#ifdef __GLIBC__
  const volatile char *kept = (const volatile char *) thread; /* some 2 KiB */

  (void) kept[0];
  (void) kept[1023];
#else
  (void) thread;
#endif
}

/* A cancel of oneself waits for the next call that can be cancelled, which would be somebody
 * else's. */
static int
foreign_pthread_cancel (pthread_t thread)
{
  if (pthread_equal (thread, pthread_self ()))
    pto_guard_leave (_ ("pthread_cancel() for its own thread"));
  touch_thread (thread);
  return pthread_cancel (thread);
}

static pid_t foreign_fork (void);
static int foreign_tgkill (pid_t process, pid_t thread, int signo);
static int foreign_tgsigqueueinfo (pid_t process, pid_t thread, int signo, void *info);

static long
foreign_syscall (long number, ...)
{
  long a[6];
  va_list args;

  va_start (args, number);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg (args, long);
  va_end (args);
  if (number == SYS_exit)
    pto_guard_leave (_ ("exit(2) for its thread"));
  if (number == SYS_exit_group)
    leave_with_status ("exit_group", (int) a[0]);
#ifdef SYS_fork
  if (number == SYS_fork || number == SYS_vfork)
    return foreign_fork ();
#endif
  if (number == SYS_tgkill)
    return foreign_tgkill ((pid_t) a[0], (pid_t) a[1], (int) a[2]);
  if (number == SYS_tkill)
    return foreign_tgkill (getpid (), (pid_t) a[0], (int) a[1]);
  if (number == SYS_rt_tgsigqueueinfo)
    return foreign_tgsigqueueinfo ((pid_t) a[0], (pid_t) a[1], (int) a[2], (void *) a[3]);
  return syscall (number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- copies --- */

/* An interrupt must not cut it off: the handlers of forks hold locks by then, of this library, too.
 * Nor is the copy to go on where the call was made, in an engine of which it has one thread. */
static pid_t
foreign_fork (void)
{
  bool has_mask = pto_guard_has_mask ();
  struct pto_guard *guard = pto_guard_pause ();
  pid_t pid = fork ();
  int error = errno;

  if (pid == 0 && guard != NULL)
    {
      const sigset_t *mask = pto_thread_self ()->program_mask;

      /* A mask that the code has set itself goes with it. */
      if (mask != NULL && !has_mask)
        pthread_sigmask (SIG_SETMASK, mask, NULL);
      pto_guard_end_with_call (guard);
    }
  else
    pto_guard_resume (guard);
  errno = error;
  return pid;
}

void
pto_foreign_end_copy (const char *what)
{
  dprintf (STDERR_FILENO,
           _ ("pto: %s returned in a copy of the process, which fork() has made: its caller is in "
              "the process itself, and the copy ends; call _exit() in it before that, or exec()\n"),
           what);
  _exit (EXIT_FAILURE);
}

/* --- signals --- */

static const sigset_t *
without_ours (int how, const sigset_t *set, sigset_t *copy)
{
  if (set == NULL || how == SIG_UNBLOCK || !pto_guard_is_inside ())
    return set;
  *copy = *set;
  pto_guard_unblock (copy);
  return copy;
}

static void
leave_with_signal (const char *function, int signo)
{
  char what[48];

  pto_sent_describe (function, signo, what, sizeof what);
  pto_guard_leave (what);
}

/* Foreign code is about to open these signals, or all but these. One that it has sent itself before
 * would end the program. */
static void
meet_signals (int how, const sigset_t *set)
{
  struct pto_guard *guard = pto_guard_now ();

  for (int signo = 1;
       guard != NULL && set != NULL && signo <= 64 && guard->sent >> (signo - 1) != 0; signo++)
    if ((guard->sent >> (signo - 1) & 1) != 0 && how != SIG_BLOCK
        && sigismember (set, signo) == (how == SIG_UNBLOCK) && pto_sent_ends_program (signo)
        && pto_sent_take_one (signo))
      leave_with_signal (guard->sent_by, signo);
}

static int
foreign_pthread_sigmask (int how, const sigset_t *set, sigset_t *old)
{
  sigset_t copy;

  if (set != NULL)
    pto_guard_note_mask ();
  meet_signals (how, set);
  return pthread_sigmask (how, without_ours (how, set, &copy), old);
}

static int
foreign_sigprocmask (int how, const sigset_t *set, sigset_t *old)
{
  sigset_t copy;

  if (set != NULL)
    pto_guard_note_mask ();
  meet_signals (how, set);
  return sigprocmask (how, without_ours (how, set, &copy), old);
}

static int
foreign_sigsuspend (const sigset_t *set)
{
  sigset_t copy;

  meet_signals (SIG_SETMASK, set);
  return sigsuspend (without_ours (SIG_SETMASK, set, &copy));
}

/* Calls that open signals while they wait. */

static int
foreign_ppoll (struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *set)
{
  sigset_t copy;

  meet_signals (SIG_SETMASK, set);
  return ppoll (fds, n, timeout, without_ours (SIG_SETMASK, set, &copy));
}

/* What ppoll() is with _FORTIFY_SOURCE. */
static int
foreign_ppoll_checked (struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                       const sigset_t *set, size_t room)
{
  if (room / sizeof *fds < n)
    abort ();
  return foreign_ppoll (fds, n, timeout, set);
}

static int
foreign_pselect (int n, fd_set *reads, fd_set *writes, fd_set *excepts,
                 const struct timespec *timeout, const sigset_t *set)
{
  sigset_t copy;

  meet_signals (SIG_SETMASK, set);
  return pselect (n, reads, writes, excepts, timeout, without_ours (SIG_SETMASK, set, &copy));
}

static int
foreign_epoll_pwait (int fd, struct epoll_event *events, int n, int timeout, const sigset_t *set)
{
  sigset_t copy;

  meet_signals (SIG_SETMASK, set);
  return epoll_pwait (fd, events, n, timeout, without_ours (SIG_SETMASK, set, &copy));
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
static int
foreign_epoll_pwait2 (int fd, struct epoll_event *events, int n, const struct timespec *timeout,
                      const sigset_t *set)
{
  sigset_t copy;

  meet_signals (SIG_SETMASK, set);
  return epoll_pwait2 (fd, events, n, timeout, without_ours (SIG_SETMASK, set, &copy));
}
#endif

/* Jumps that put back a mask. */

static void
meet_jump (const struct __jmp_buf_tag *to)
{
#ifdef __GLIBC__
  if (to->__mask_was_saved != 0)
    meet_signals (SIG_SETMASK, &to->__saved_mask);
#else
  (void) to;
#endif
}

static _Noreturn void
foreign_longjmp (struct __jmp_buf_tag *to, int value)
{
  meet_jump (to);
  siglongjmp (to, value);
}

#ifdef __GLIBC__
_Noreturn void __longjmp_chk (struct __jmp_buf_tag *to, int value);

/* What longjmp() is with _FORTIFY_SOURCE. */
static _Noreturn void
foreign_longjmp_checked (struct __jmp_buf_tag *to, int value)
{
  meet_jump (to);
  __longjmp_chk (to, value);
}
#endif

static int
foreign_setcontext (const ucontext_t *to)
{
  meet_signals (SIG_SETMASK, &to->uc_sigmask);
  return setcontext (to);
}

/* Foreign code is about to send its own thread a signal. A thread of the engine has it blocked, so
 * that it would be lost there, and only there. One that would end the program ends the call; for
 * another one the thread is open until close_signal(). Where the code has set a mask itself, one
 * that is blocked waits until the code opens or takes it, at most to the end of the call. */
static bool
open_signal (const char *function, int signo, sigset_t *before)
{
  bool has_mask = pto_guard_has_mask ();
  struct sigaction now;
  sigset_t set;

  pto_guard_signals (&set);
  if (!pto_guard_is_inside () || signo < 1 || signo >= _NSIG || sigismember (&set, signo)
      || sigaction (signo, NULL, &now) != 0)
    return false;
  if (has_mask && pthread_sigmask (SIG_BLOCK, NULL, &set) == 0 && sigismember (&set, signo) == 1)
    {
      pto_guard_note_sent (function, signo);
      return false;
    }
  if (pto_sent_ends_program (signo))
    leave_with_signal (function, signo);
  if (has_mask)
    return false;
  sigemptyset (&set);
  sigaddset (&set, signo);
  pthread_sigmask (SIG_UNBLOCK, &set, before);
  return true;
}

static void
close_signal (bool is_open, const sigset_t *before)
{
  if (is_open)
    pthread_sigmask (SIG_SETMASK, before, NULL);
}

static int
foreign_raise (int signo)
{
  sigset_t before;
  bool is_open = open_signal ("raise", signo, &before);
  int result = raise (signo);

  close_signal (is_open, &before);
  return result;
}

static int
foreign_pthread_kill (pthread_t thread, int signo)
{
  sigset_t before;
  bool is_open
      = pthread_equal (thread, pthread_self ()) && open_signal ("pthread_kill", signo, &before);
  int result;

  touch_thread (thread);
  result = pthread_kill (thread, signo);
  close_signal (is_open, &before);
  return result;
}

static int
foreign_pthread_sigqueue (pthread_t thread, int signo, const union sigval value)
{
  sigset_t before;
  bool is_open
      = pthread_equal (thread, pthread_self ()) && open_signal ("pthread_sigqueue", signo, &before);
  int result;

  touch_thread (thread);
  result = pthread_sigqueue (thread, signo, value);
  close_signal (is_open, &before);
  return result;
}

static int
foreign_tgkill (pid_t process, pid_t thread, int signo)
{
  sigset_t before;
  bool is_open = process == getpid () && thread == pto_thread_self ()->tid
                 && open_signal ("tgkill", signo, &before);
  int result = (int) syscall (SYS_tgkill, process, thread, signo);

  close_signal (is_open, &before);
  return result;
}

static int
foreign_tgsigqueueinfo (pid_t process, pid_t thread, int signo, void *info)
{
  sigset_t before;
  bool is_open = process == getpid () && thread == pto_thread_self ()->tid
                 && open_signal ("rt_tgsigqueueinfo", signo, &before);
  int result = (int) syscall (SYS_rt_tgsigqueueinfo, process, thread, signo, info);

  close_signal (is_open, &before);
  return result;
}

/* A program that foreign code begins has signals blocked as the program, not as the engine's
 * thread; so has that thread meanwhile. false: they are already. */
static bool
open_as_program (sigset_t *before)
{
  const sigset_t *mask = pto_thread_self ()->program_mask;
  sigset_t open;

  if (mask == NULL || !pto_guard_is_inside () || pto_guard_has_mask ())
    return false;
  /* A call that does not return is ended by a signal. */
  open = *mask;
  pto_guard_unblock (&open);
  return pthread_sigmask (SIG_SETMASK, &open, before) == 0;
}

static FILE *
foreign_popen (const char *command, const char *type)
{
  sigset_t before;
  bool is_open = open_as_program (&before);
  FILE *result = popen (command, type);

  close_signal (is_open, &before);
  return result;
}

static int
spawn (int (*how) (pid_t *, const char *, const posix_spawn_file_actions_t *,
                   const posix_spawnattr_t *, char *const[], char *const[]),
       pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
       const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
  sigset_t before;
  bool is_open = open_as_program (&before);
  int result = how (pid, file, actions, attributes, argv, environment);

  close_signal (is_open, &before);
  return result;
}

static int
foreign_posix_spawn (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[],
                     char *const environment[])
{
  return spawn (posix_spawn, pid, file, actions, attributes, argv, environment);
}

static int
foreign_posix_spawnp (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const argv[],
                      char *const environment[])
{
  return spawn (posix_spawnp, pid, file, actions, attributes, argv, environment);
}

static int
foreign_sigaltstack (const stack_t *stack, stack_t *old)
{
  if (stack == NULL || !pto_guard_is_inside ())
    return sigaltstack (stack, old);
  errno = EPERM;
  return -1;
}

/* Guards the dispositions and the sealed pages of modules; innermost. A fork waits for it: a child
 * of the program's own runs foreign code, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The dispositions that foreign code has changed, by runs that go on: those of a signal lie on each
 * other, and before is what the program had. Each run has one of each signal, the last that it has
 * set. Under the mutex. */
static struct
{
  struct pto_disposition *top;
  struct sigaction before;
} dispositions[_NSIG];

/* Blocks all signals meanwhile: their handlers may be foreign code, which comes here, too. */
static void
lock_signals (sigset_t *before)
{
  sigset_t all;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, before);
  pthread_mutex_lock (&lock);
}

static void
unlock_signals (const sigset_t *before)
{
  pthread_mutex_unlock (&lock);
  pthread_sigmask (SIG_SETMASK, before, NULL);
}

/* Is what is there now what was set? Otherwise the program has set another one since. With
 * SA_RESETHAND the kernel itself takes it away. */
static bool
is_still_there (const struct pto_disposition *set, const struct sigaction *now)
{
  return now->sa_handler == set->action.sa_handler
         || ((set->action.sa_flags & (int) SA_RESETHAND) != 0 && now->sa_handler == SIG_DFL);
}

/* Under the mutex. */
static void
forget_all (int signo)
{
  while (dispositions[signo].top != NULL)
    {
      dispositions[signo].top->is_there = false;
      dispositions[signo].top = dispositions[signo].top->below;
    }
}

/* Under the mutex. */
static void
take_out (int signo, struct pto_disposition *set)
{
  struct pto_disposition **at = &dispositions[signo].top;

  while (*at != set)
    at = &(*at)->below;
  *at = set->below;
  set->is_there = false;
}

/* What a process ignores while it waits for a shell, and what the program had. */
static struct
{
  const int signo;
  struct sigaction before;
} ignored[] = { { .signo = SIGINT }, { .signo = SIGQUIT } };
#define IGNORED (sizeof ignored / sizeof *ignored)
/* Calls of system() that have begun, by runs that go on. Under the mutex. */
static unsigned int shells;

/* Under the mutex. The program, or a run that goes on, may have set another one since. */
static void
leave_shells (unsigned int n)
{
  struct sigaction now;

  shells -= n;
  for (size_t i = 0; i < IGNORED && n > 0 && shells == 0; i++)
    if (sigaction (ignored[i].signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
      sigaction (ignored[i].signo, &ignored[i].before, NULL);
}

/* Under the mutex: the run has set action where before was. */
static void
note (struct pto_foreign_run *run, int signo, const struct sigaction *action,
      const struct sigaction *before)
{
  struct pto_disposition *set = &run->signals[signo];

  for (size_t i = 0; i < IGNORED; i++)
    if (shells > 0 && signo == ignored[i].signo && before->sa_handler == SIG_IGN)
      before = &ignored[i].before;
  if (dispositions[signo].top != NULL && !is_still_there (dispositions[signo].top, before))
    forget_all (signo);
  if (dispositions[signo].top == NULL)
    dispositions[signo].before = *before;
  if (set->is_there)
    take_out (signo, set);
  *set = (struct pto_disposition){ dispositions[signo].top, true, *action };
  dispositions[signo].top = set;
  /* Relaxed: what a kernel does is ordered before the end of its run by the engine. One that is
   * given up (a chip that is lost) changes what nothing puts back. */
  atomic_store_explicit (&run->changed, 1, memory_order_relaxed);
}

static int
foreign_sigaction (int signo, const struct sigaction *action, struct sigaction *old)
{
  struct sigaction before, wanted;
  sigset_t ours, mask;
  struct pto_guard *guard;
  int result;
  int error;

  if (action == NULL || signo < 1 || signo >= _NSIG || !pto_guard_is_inside ())
    return sigaction (signo, action, old);
  pto_guard_signals (&ours);
  if (sigismember (&ours, signo))
    {
      /* Guarded calls rest on these: said to be done, and left out. */
      if (old != NULL)
        {
          memset (old, 0, sizeof *old);
          old->sa_handler = SIG_DFL;
        }
      return 0;
    }
  /* A fault at its own memory is the code's, and must not come with the mutex held. */
  wanted = *action;
  guard = pto_guard_pause ();
  lock_signals (&mask);
  result = sigaction (signo, &wanted, &before);
  error = errno;
  if (result == 0 && guard != NULL && guard->run != NULL)
    note (guard->run, signo, &wanted, &before);
  unlock_signals (&mask);
  pto_guard_resume (guard);
  if (result == 0 && old != NULL)
    *old = before;
  errno = error;
  return result;
}

static void (*set_handler (int signo, void (*handler) (int), int flags)) (int)
{
  struct sigaction action, old;

  memset (&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  return foreign_sigaction (signo, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

static void (*foreign_signal (int signo, void (*handler) (int))) (int)
{
  return set_handler (signo, handler, SA_RESTART);
}

/* What signal() is in a program in plain ISO C. */
static void (*foreign_sysv_signal (int signo, void (*handler) (int))) (int)
{
  return set_handler (signo, handler, (int) (SA_RESETHAND | SA_NODEFER));
}

/* The functions of System V for the same. */

static int
change_one (int how, int signo, sigset_t *before)
{
  sigset_t set;

  sigemptyset (&set);
  return sigaddset (&set, signo) == 0 ? foreign_sigprocmask (how, &set, before) : -1;
}

static int
foreign_sighold (int signo)
{
  return change_one (SIG_BLOCK, signo, NULL);
}

static int
foreign_sigrelse (int signo)
{
  return change_one (SIG_UNBLOCK, signo, NULL);
}

static int
foreign_sigignore (int signo)
{
  return set_handler (signo, SIG_IGN, 0) != SIG_ERR ? 0 : -1;
}

static void (*foreign_sigset (int signo, void (*handler) (int))) (int)
{
  bool holds = handler == SIG_HOLD;
  struct sigaction now;
  sigset_t before;

  if (sigaction (signo, NULL, &now) != 0 || (!holds && set_handler (signo, handler, 0) == SIG_ERR)
      || change_one (holds ? SIG_BLOCK : SIG_UNBLOCK, signo, &before) != 0)
    return SIG_ERR;
  return sigismember (&before, signo) == 1 ? SIG_HOLD : now.sa_handler;
}

static int
foreign_sigpause (int signo)
{
  sigset_t set;

  if (pthread_sigmask (SIG_BLOCK, NULL, &set) != 0 || sigdelset (&set, signo) != 0)
    return -1;
  return foreign_sigsuspend (&set);
}

/* Begins to ignore, or ends it. *interactive: what the shell takes as any program does. */
static void
count_shell (struct pto_guard *guard, bool begins, sigset_t *interactive)
{
  struct sigaction ignore = { .sa_handler = SIG_IGN };
  sigset_t mask;

  lock_signals (&mask);
  if (begins)
    {
      for (size_t i = 0; i < IGNORED && shells == 0; i++)
        sigaction (ignored[i].signo, &ignore, &ignored[i].before);
      shells++;
      guard->run->shells++;
      /* Relaxed: note() says why. */
      atomic_store_explicit (&guard->run->changed, 1, memory_order_relaxed);
    }
  else
    {
      leave_shells (1);
      guard->run->shells--;
    }
  sigemptyset (interactive);
  for (size_t i = 0; i < IGNORED; i++)
    if (ignored[i].before.sa_handler != SIG_IGN)
      sigaddset (interactive, ignored[i].signo);
  unlock_signals (&mask);
}

/* As libc's, which would ignore these signals for ever after a call that was cut off. */
static int
wait_for_shell (const char *command, struct pto_guard *guard)
{
  char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *) command, NULL };
  sigset_t interactive, child, before, now;
  posix_spawnattr_t attributes;
  int status = -1;
  int error;
  pid_t pid;
  bool is_open;

  count_shell (guard, true, &interactive);
  pto_guard_resume (guard);
  is_open = open_as_program (&before);
  sigemptyset (&child);
  sigaddset (&child, SIGCHLD);
  pthread_sigmask (SIG_BLOCK, &child, &now);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigdefault (&attributes, &interactive);
  posix_spawnattr_setsigmask (&attributes, &now);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  error = posix_spawn (&pid, "/bin/sh", NULL, &attributes, argv, environ);
  posix_spawnattr_destroy (&attributes);
  if (error != 0)
    status = 127 << 8; /* as of a shell that finds no program */
  while (error == 0 && waitpid (pid, &status, 0) != pid)
    if (errno != EINTR)
      {
        error = errno;
        status = -1;
      }
  pthread_sigmask (SIG_SETMASK, &now, NULL);
  close_signal (is_open, &before);
  guard = pto_guard_pause ();
  count_shell (guard, false, &interactive);
  pto_guard_resume (guard);
  if (error != 0)
    errno = error;
  return status;
}

static int
foreign_system (const char *command)
{
  struct pto_guard *guard = pto_guard_pause ();

  if (guard == NULL || guard->run == NULL)
    {
      pto_guard_resume (guard);
      return system (command);
    }
  return command != NULL ? wait_for_shell (command, guard) : wait_for_shell ("exit 0", guard) == 0;
}

void
pto_foreign_put_back (struct pto_foreign_run *run)
{
  struct sigaction now;
  sigset_t mask;

  /* Relaxed: note() says why. */
  if (atomic_load_explicit (&run->changed, memory_order_relaxed) == 0)
    return;
  lock_signals (&mask);
  for (int signo = 1; signo < _NSIG; signo++)
    {
      struct pto_disposition *set = &run->signals[signo];
      bool is_top = set->is_there && dispositions[signo].top == set;

      if (!set->is_there)
        continue;
      take_out (signo, set);
      if (!is_top || sigaction (signo, NULL, &now) != 0)
        continue;
      if (is_still_there (set, &now))
        sigaction (signo, set->below != NULL ? &set->below->action : &dispositions[signo].before,
                   NULL);
      else
        forget_all (signo);
    }
  leave_shells (run->shells);
  run->shells = 0;
  atomic_store_explicit (&run->changed, 0, memory_order_relaxed);
  unlock_signals (&mask);
}

void
pto_foreign_after_fork (void)
{
  struct sigaction now;

  for (int signo = 1; signo < _NSIG; signo++)
    if (dispositions[signo].top != NULL)
      {
        if (sigaction (signo, NULL, &now) == 0 && is_still_there (dispositions[signo].top, &now))
          sigaction (signo, &dispositions[signo].before, NULL);
        forget_all (signo);
      }
  leave_shells (shells);
}

/* --- loading --- */

void *
pto_foreign_load (const char *path, int mode)
{
  fenv_t environment;
  void *module;

  fegetenv (&environment);
  module = dlopen (path, mode);
  fesetenv (&environment);
  return module;
}

/* --- adoption --- */

static const struct
{
  const char *name;
  void (*function) (void);
} replacements[] = {
#define REPLACE(name, function)      \
  {                                  \
    name, (void (*) (void)) function \
  }
  REPLACE ("exit", foreign_exit),
  REPLACE ("_exit", foreign_exit_now),
  REPLACE ("_Exit", foreign_exit_now),
  REPLACE ("quick_exit", foreign_quick_exit),
  REPLACE ("pthread_exit", foreign_pthread_exit),
  REPLACE ("pthread_cancel", foreign_pthread_cancel),
  REPLACE ("syscall", foreign_syscall),
  REPLACE ("fork", foreign_fork),
  REPLACE ("_Fork", foreign_fork),
  /* A copy made by vfork() would run on this stack, with all signals blocked. */
  REPLACE ("vfork", foreign_fork),
  REPLACE ("system", foreign_system),
  REPLACE ("popen", foreign_popen),
  REPLACE ("posix_spawn", foreign_posix_spawn),
  REPLACE ("posix_spawnp", foreign_posix_spawnp),
  REPLACE ("raise", foreign_raise),
  REPLACE ("pthread_kill", foreign_pthread_kill),
  REPLACE ("pthread_sigqueue", foreign_pthread_sigqueue),
  REPLACE ("tgkill", foreign_tgkill),
  REPLACE ("pthread_sigmask", foreign_pthread_sigmask),
  REPLACE ("sigprocmask", foreign_sigprocmask),
  REPLACE ("sigsuspend", foreign_sigsuspend),
  REPLACE ("ppoll", foreign_ppoll),
  REPLACE ("__ppoll_chk", foreign_ppoll_checked),
  REPLACE ("pselect", foreign_pselect),
  REPLACE ("epoll_pwait", foreign_epoll_pwait),
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
  REPLACE ("epoll_pwait2", foreign_epoll_pwait2),
#endif
  REPLACE ("longjmp", foreign_longjmp),
  REPLACE ("_longjmp", foreign_longjmp),
  REPLACE ("siglongjmp", foreign_longjmp),
#ifdef __GLIBC__
  REPLACE ("__longjmp_chk", foreign_longjmp_checked),
#endif
  REPLACE ("setcontext", foreign_setcontext),
  REPLACE ("sigaltstack", foreign_sigaltstack),
  REPLACE ("sigaction", foreign_sigaction),
  REPLACE ("signal", foreign_signal),
  REPLACE ("bsd_signal", foreign_signal),
  REPLACE ("ssignal", foreign_signal),
  REPLACE ("sysv_signal", foreign_sysv_signal),
  REPLACE ("__sysv_signal", foreign_sysv_signal),
  REPLACE ("sighold", foreign_sighold),
  REPLACE ("sigrelse", foreign_sigrelse),
  REPLACE ("sigignore", foreign_sigignore),
  REPLACE ("sigset", foreign_sigset),
  REPLACE ("__xpg_sigpause", foreign_sigpause),
#undef REPLACE
};

/* What the loader keeps of an object. */
struct object
{
  uintptr_t base;
  const ElfW (Sym) * symbols;
  const char *strings;
  const ElfW (Rela) * relocations, *jumps;
  size_t bytes, jump_bytes; /* of the two */
  /* made read-only by the loader when it had relocated the object; empty: nothing */
  uintptr_t sealed, sealed_end;
};

static bool
is_pointer (uint64_t type)
{
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
#else
  return false;
#endif
}

/* With the lock: the page is open for a moment, and others of the module's places are in it. */
static void
patch (const struct object *object, uintptr_t place, uintptr_t value)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  void *start = (void *) (place & ~(page - 1));
  bool is_sealed = place >= object->sealed && place < object->sealed_end;

  if (*(const uintptr_t *) place == value)
    return;
  if (is_sealed && mprotect (start, page, PROT_READ | PROT_WRITE) != 0)
    return;
  *(uintptr_t *) place = value;
  if (is_sealed)
    mprotect (start, page, PROT_READ);
}

static void
replace (const struct object *object, const ElfW (Rela) * relocation, const char *name, void *data)
{
  (void) data;
  if (relocation->r_addend != 0 || !is_pointer (ELF64_R_TYPE (relocation->r_info)))
    return;
  for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++)
    if (strcmp (name, replacements[i].name) == 0)
      patch (object, object->base + relocation->r_offset, (uintptr_t) replacements[i].function);
}

static void
watch_cxx (const struct object *object, const ElfW (Rela) * relocation, const char *name,
           void *data)
{
  void *const *place = (void *const *) (object->base + relocation->r_offset);
  void *watcher = NULL;

  (void) name;
  if (relocation->r_addend == 0 && is_pointer (ELF64_R_TYPE (relocation->r_info)))
    watcher = pto_guard_watch_cxx (data, *place);
  if (watcher != NULL)
    patch (object, (uintptr_t) place, (uintptr_t) watcher);
}

static int
find_sealed (struct dl_phdr_info *info, size_t size, void *data)
{
  struct object *object = data;
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);

  (void) size;
  if (info->dlpi_addr != object->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
      {
        object->sealed = (object->base + info->dlpi_phdr[i].p_vaddr) & ~(page - 1);
        object->sealed_end
            = (object->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz)
              & ~(page - 1);
      }
  return 1;
}

/* Loaders differ in whether they have made addresses of what the file says. */
static const void *
address_of (const struct object *object, uintptr_t pointer)
{
  return (const void *) (pointer < object->base ? object->base + pointer : pointer);
}

/* The signal mask of the thread that forks, under the mutex. Signals are blocked from here to the
 * end of the fork: an interrupt would drop frames that are to unlock this lock and those of the
 * handlers after this one, where a library forks without the pause of foreign_fork(). Before and
 * after that an interrupt finds the thread inside fork() and is put off (inside-libc.c). If it is
 * asked for once more there, a handler of somebody else hangs: ours wait for nothing. */
static sigset_t fork_mask;
/* A library forks that foreign code calls, which has set no mask itself; under the mutex. */
static bool fork_is_foreign;

static void
before_fork (void)
{
  sigset_t mask;

  lock_signals (&mask);
  fork_mask = mask;
  fork_is_foreign = pto_guard_is_inside () && !pto_guard_has_mask ();
}

static void
after_fork (void)
{
  sigset_t mask = fork_mask;

  unlock_signals (&mask);
}

/* What foreign code forks has signals blocked as the program, not as the engine's thread. */
static void
after_fork_in_child (void)
{
  const sigset_t *mask = pto_thread_self ()->program_mask;

  if (fork_is_foreign && mask != NULL)
    fork_mask = *mask;
  after_fork ();
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, after_fork, after_fork_in_child);
}

/* The tables of an object that is loaded. false: it has none. */
static bool
find_tables (void *module, struct object *object)
{
  struct link_map *map;

  memset (object, 0, sizeof *object);
  if (dlinfo (module, RTLD_DI_LINKMAP, &map) != 0)
    return false;
  object->base = map->l_addr;
  for (const ElfW (Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
    switch (entry->d_tag)
      {
      case DT_SYMTAB:
        object->symbols = address_of (object, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        object->strings = address_of (object, entry->d_un.d_ptr);
        break;
      case DT_RELA:
        object->relocations = address_of (object, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        object->bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        object->jumps = address_of (object, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        object->jump_bytes = entry->d_un.d_val;
        break;
      default:
        break;
      }
  return object->symbols != NULL && object->strings != NULL;
}

/* Calls visit with each relocation that takes a function or a variable of another object. */
static void
visit_imports (const struct object *object,
               void (*visit) (const struct object *object, const ElfW (Rela) * relocation,
                              const char *name, void *data),
               void *data)
{
  const struct
  {
    const ElfW (Rela) * first;
    size_t bytes;
  } tables[] = { { object->relocations, object->bytes }, { object->jumps, object->jump_bytes } };

  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (size_t i = 0; tables[t].first != NULL && i < tables[t].bytes / sizeof (ElfW (Rela)); i++)
      {
        const ElfW (Rela) *relocation = &tables[t].first[i];
        uint64_t index = ELF64_R_SYM (relocation->r_info);
        const ElfW (Sym) *symbol = &object->symbols[index];

        if (index != 0 && symbol->st_shndx == SHN_UNDEF)
          visit (object, relocation, object->strings + symbol->st_name, data);
      }
}

/* -fno-sanitize-recover. */
static void
foreign_die (void)
{
  pto_guard_leave (_ ("exit() through its sanitizer, which says why on standard error"));
}

/* UBSan's runtime calls this before it ends the process. Runtimes of other sanitizers would call it
 * too, but with locks held, and so does this one where its options ask for the end. */
static void
watch_sanitizer (void *module)
{
  void (*set_callback) (void (*callback) (void));
  const char *options = getenv ("UBSAN_OPTIONS");

  if (options != NULL && strstr (options, "halt_on_error=1") != NULL)
    return;
  *(void **) &set_callback = dlsym (module, "__sanitizer_set_death_callback");
  if (set_callback != NULL && dlsym (module, "__ubsan_handle_add_overflow_abort") != NULL
      && dlsym (module, "__asan_init") == NULL && dlsym (module, "__tsan_init") == NULL)
    set_callback (foreign_die);
}

void
pto_foreign_adopt (void *module)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct object object;
  struct pto_cxx cxx;
  bool is_cxx = pto_guard_find_cxx (module, &cxx);
  sigset_t mask;

  pthread_once (&once, watch_forks);
  watch_sanitizer (module);
  if (!find_tables (module, &object))
    return;
  dl_iterate_phdr (find_sealed, &object);
  /* A kernel's dlopen() comes here, too: no interrupt ends it while it holds the lock. */
  lock_signals (&mask);
  visit_imports (&object, replace, NULL);
  if (is_cxx)
    visit_imports (&object, watch_cxx, &cxx);
  unlock_signals (&mask);
}

/* Functions that begin threads or make thread-specific data; where an entry ends with '*', all
 * whose names begin so: those of OpenMP, and std::thread of libstdc++. */
static const char *const lasting[]
    = { "pthread_create", "pthread_key_create", "thrd_create",  "tss_create", "GOMP_*",
        "omp_*",          "__kmpc_*",           "_ZNSt6thread*" };

static bool
is_among (const char *name, const char *const *names, size_t n)
{
  for (size_t i = 0; i < n; i++)
    {
      size_t length = strlen (names[i]);
      bool is_prefix = names[i][length - 1] == '*';

      if (is_prefix ? strncmp (name, names[i], length - 1) == 0 : strcmp (name, names[i]) == 0)
        return true;
    }
  return false;
}

static void
find_lasting (const struct object *object, const ElfW (Rela) * relocation, const char *name,
              void *found)
{
  (void) object;
  (void) relocation;
  if (is_among (name, lasting, sizeof lasting / sizeof *lasting))
    *(bool *) found = true;
}

bool
pto_foreign_outlives (void *module)
{
  struct object object;
  bool found = false;

  if (find_tables (module, &object))
    visit_imports (&object, find_lasting, &found);
  return found;
}

/* Functions whose results are the thread's. The compiler believes that errno has one address in a
 * function. */
static const char *const per_thread[]
    = { "__errno_location", "pthread_getspecific", "pthread_setspecific", "tss_get", "tss_set" };

static void
find_per_thread (const struct object *object, const ElfW (Rela) * relocation, const char *name,
                 void *found)
{
  const ElfW (Sym) *symbol = &object->symbols[ELF64_R_SYM (relocation->r_info)];

  if (ELF64_ST_TYPE (symbol->st_info) == STT_TLS
      || is_among (name, per_thread, sizeof per_thread / sizeof *per_thread))
    *(bool *) found = true;
}

struct own_variables
{
  uintptr_t base;
  bool found;
};

static int
find_own_variables (struct dl_phdr_info *info, size_t size, void *data)
{
  struct own_variables *own = data;

  (void) size;
  if (info->dlpi_addr != own->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_phdr[i].p_memsz > 0)
      own->found = true;
  return 1;
}

bool
pto_foreign_has_thread_locals (void *module)
{
  struct object object;
  struct own_variables own = { 0 };
  bool found = false;

  if (!find_tables (module, &object))
    return false;
  own.base = object.base;
  dl_iterate_phdr (find_own_variables, &own);
  visit_imports (&object, find_per_thread, &found);
  return own.found || found;
}

/* --- thread-local variables without a thread --- */

#ifdef __x86_64__

/* What the loader makes new blocks of; by the number of the object. Under the mutex. */
static struct image
{
  const void *start;
  size_t filled, size; /* size 0: not such an object */
} * images;
static size_t n_images;

/* What code is compiled to pass to the loader's function. */
struct tls_index
{
  size_t module;
  size_t offset;
};

void *__tls_get_addr (struct tls_index *index);

/* A page that cannot be accessed is on each side of a block: an array of the program may lie
 * there, and a check of accesses would take one for the other. */
static size_t
get_page (void)
{
  return (size_t) sysconf (_SC_PAGESIZE);
}

static size_t
get_room (const struct image *image)
{
  size_t page = get_page ();

  return (image->size + page - 1) / page * page + 2 * page;
}

/* A block like that of the loader's; NULL: there is no memory. */
static void *
add_block (struct pto_locals *locals, size_t module, const struct image *image)
{
  void *room, *block;

  if (module >= locals->n)
    {
      void **blocks = realloc (locals->blocks, (module + 1) * sizeof *blocks);

      if (blocks == NULL)
        return NULL;
      memset (blocks + locals->n, 0, (module + 1 - locals->n) * sizeof *blocks);
      locals->blocks = blocks;
      locals->n = module + 1;
    }
  room = mmap (NULL, get_room (image), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return NULL;
  block = (char *) room + get_page ();
  if (mprotect (block, image->size, PROT_READ | PROT_WRITE) != 0)
    {
      munmap (room, get_room (image));
      return NULL;
    }
  memcpy (block, image->start, image->filled);
  return locals->blocks[module] = block;
}

/* The first use by this actor. NULL: the variables are another object's. */
static __attribute__ ((noinline, cold)) void *
make_block (struct pto_locals *locals, size_t module)
{
  struct pto_guard *guard = pto_guard_pause ();
  struct image image = { 0 };
  void *block = NULL;
  sigset_t mask;

  lock_signals (&mask);
  if (module < n_images)
    image = images[module];
  unlock_signals (&mask);
  if (image.size > 0)
    block = add_block (locals, module, &image);
  pto_guard_resume (guard);
  /* So does the loader. It is a fault of the call. */
  if (image.size > 0 && block == NULL)
    abort ();
  return block;
}

/* The block is the actor's, so that the code may keep the address where it goes on on another
 * thread. */
static void *
foreign_tls_get_addr (struct tls_index *index)
{
  const struct pto_thread *thread = pto_thread_self ();
  const struct pto_guard *guard = thread->current != NULL ? thread->current->guard : thread->guard;
  struct pto_locals *locals = guard != NULL ? guard->locals : NULL;
  char *block = NULL;

  if (PTO_LIKELY (locals != NULL && index->module < locals->n))
    block = locals->blocks[index->module];
  if (PTO_UNLIKELY (block == NULL) && locals != NULL)
    block = make_block (locals, index->module);
  return PTO_LIKELY (block != NULL) ? block + index->offset : __tls_get_addr (index);
}

/* An object's variables, and why they cannot be kept so. */
struct kept
{
  uintptr_t base;
  size_t module;
  struct image image;
  bool is_called; /* by the loader's function */
  bool is_refused;
};

static int
find_image (struct dl_phdr_info *info, size_t size, void *data)
{
  struct kept *kept = data;

  (void) size;
  if (info->dlpi_addr != kept->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    {
      const ElfW (Phdr) *header = &info->dlpi_phdr[i];
      size_t align = header->p_align > 0 ? header->p_align : 1;

      if (header->p_type != PT_TLS)
        continue;
      kept->image = (struct image){ (const void *) (kept->base + header->p_vaddr), header->p_filesz,
                                    header->p_memsz };
      kept->is_refused = kept->is_refused || (header->p_vaddr & (align - 1)) != 0
                         || align > (size_t) sysconf (_SC_PAGESIZE);
    }
  return 1;
}

static void
find_kept (const struct object *object, const ElfW (Rela) * relocation, const char *name,
           void *data)
{
  /* Destructors, exceptions of C++ that a thread is handling, and questions which thread it is. */
  static const char *const asks[] = { "__cxa_thread_atexit",
                                      "__cxa_thread_atexit_impl",
                                      "__cxa_begin_catch",
                                      "__cxa_get_globals",
                                      "__cxa_rethrow",
                                      "_ZSt17current_exceptionv",
                                      "_ZSt18uncaught_exceptionv",
                                      "_ZSt19uncaught_exceptionsv",
                                      "pthread_self",
                                      "thrd_current",
                                      "gettid",
                                      "syscall" };
  struct kept *kept = data;

  find_per_thread (object, relocation, name, &kept->is_refused);
  find_lasting (object, relocation, name, &kept->is_refused);
  kept->is_called = kept->is_called || strcmp (name, "__tls_get_addr") == 0;
  kept->is_refused = kept->is_refused || is_among (name, asks, sizeof asks / sizeof *asks);
}

/* Ways past the loader's function, and variables of other objects. */
static void
look_at_relocations (const struct object *object, struct kept *kept)
{
  for (size_t t = 0; t < 2; t++)
    {
      const ElfW (Rela) *relocations = t == 0 ? object->relocations : object->jumps;
      size_t bytes = t == 0 ? object->bytes : object->jump_bytes;

      for (size_t i = 0; relocations != NULL && i < bytes / sizeof *relocations; i++)
        switch (ELF64_R_TYPE (relocations[i].r_info))
          {
          case R_X86_64_TPOFF64:
          case R_X86_64_TPOFF32:
          case R_X86_64_TLSDESC:
            kept->is_refused = true;
            break;
          case R_X86_64_DTPMOD64:
            if (*(const size_t *) (object->base + relocations[i].r_offset) != kept->module)
              kept->is_refused = true;
            break;
          default:
            break;
          }
    }
}

static void
replace_tls (const struct object *object, const ElfW (Rela) * relocation, const char *name,
             void *data)
{
  (void) data;
  if (strcmp (name, "__tls_get_addr") == 0 && is_pointer (ELF64_R_TYPE (relocation->r_info)))
    patch (object, object->base + relocation->r_offset, (uintptr_t) foreign_tls_get_addr);
}

bool
pto_foreign_keep_locals (void *module)
{
  struct object object;
  struct kept kept = { 0 };
  struct image *more;
  sigset_t mask;

  if (!find_tables (module, &object) || dlinfo (module, RTLD_DI_TLS_MODID, &kept.module) != 0
      || kept.module == 0)
    return false;
  kept.base = object.base;
  dl_iterate_phdr (find_image, &kept);
  dl_iterate_phdr (find_sealed, &object);
  visit_imports (&object, find_kept, &kept);
  look_at_relocations (&object, &kept);
  if (kept.is_refused || !kept.is_called || kept.image.size == 0)
    return false;
  lock_signals (&mask);
  more = kept.module < n_images ? images : realloc (images, (kept.module + 1) * sizeof *images);
  if (more != NULL)
    {
      for (images = more; n_images <= kept.module; n_images++)
        images[n_images].size = 0;
      images[kept.module] = kept.image;
      visit_imports (&object, replace_tls, NULL);
    }
  unlock_signals (&mask);
  return more != NULL;
}

void
pto_locals_clear (struct pto_locals *locals)
{
  sigset_t mask;

  if (locals->n == 0)
    return;
  lock_signals (&mask);
  for (size_t i = 0; i < locals->n; i++)
    if (locals->blocks[i] != NULL)
      munmap ((char *) locals->blocks[i] - get_page (), get_room (&images[i]));
  unlock_signals (&mask);
  free (locals->blocks);
  *locals = (struct pto_locals){ 0 };
}

#else

bool
pto_foreign_keep_locals (void *module)
{
  (void) module;
  return false;
}

void
pto_locals_clear (struct pto_locals *locals)
{
  (void) locals;
}

#endif

/* --- forks --- */

#define OPENMP_MAX 8u
#define OPENMP_SOFT 1 /* omp_pause_soft */

/* Packages for Python bring copies of their own, under longer names. */
struct openmp
{
  char *paths[OPENMP_MAX];
  unsigned int n;
};

static int
find_openmp (struct dl_phdr_info *info, size_t size, void *data)
{
  struct openmp *openmp = data;
  const char *file = strrchr (info->dlpi_name, '/');

  (void) size;
  file = file != NULL ? file + 1 : info->dlpi_name;
  if (strncmp (file, "libgomp", strlen ("libgomp")) == 0 && openmp->n < OPENMP_MAX)
    openmp->paths[openmp->n++] = strdup (info->dlpi_name);
  return 0;
}

void
pto_foreign_before_fork (void)
{
  struct openmp openmp = { .n = 0 };

  dl_iterate_phdr (find_openmp, &openmp);
  for (unsigned int i = 0; i < openmp.n; i++)
    {
      void *library
          = openmp.paths[i] != NULL ? dlopen (openmp.paths[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
      int (*pause) (int kind) = NULL;

      if (library != NULL)
        *(void **) &pause = dlsym (library, "omp_pause_resource_all");
      if (pause != NULL)
        pause (OPENMP_SOFT);
      if (library != NULL)
        dlclose (library);
      free (openmp.paths[i]);
    }
}

/* --- calls outside of runs --- */

struct call
{
  void (*fn) (void *data);
  void *data;
};

static void
call_it (int64_t *args)
{
  struct call *call = (struct call *) args;

  call->fn (call->data);
}

bool
pto_foreign_call (void (*fn) (void *data), void *data, char *why, size_t size)
{
  struct call call = { fn, data };
  struct pto_foreign_run run;
  struct pto_guard guard;
  struct pto_fault fault;
  sigset_t mask;

  if (pto_guard_init () != 0)
    {
      snprintf (why, size, _ ("can not be called: sigaction: %s"), strerror (errno));
      return false;
    }
  pto_guard_refresh ();
  memset (&run, 0, sizeof run);
  memset (&guard, 0, sizeof guard);
  guard.run = &run;
  pthread_sigmask (SIG_SETMASK, NULL, &mask);
  pto_guard_call (&guard, call_it, (int64_t *) &call, &fault);
  pthread_sigmask (SIG_SETMASK, &mask, NULL);
  pto_foreign_put_back (&run);
  pto_guard_shutdown ();
  if (fault.kind == PTO_FAULT_NONE)
    return true;
  pto_guard_explain (&guard, &fault, why, size);
  return false;
}
