/* needed-calls.c: is there every system call without which no program with threads goes on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Only a filter (seccomp) refuses these calls. The C library ends the program where futex() fails,
 * takes the error of brk() for an address, and tries exit() again for ever. So where there is a
 * filter, each call is made once before threads are. A child that shares the memory makes those
 * from which nothing returns.
 */
#include "needed-calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK ((size_t) 16 << 10)

#ifdef SYS_rseq
/* 0, or no such symbol: the C library does not use the call. */
extern const unsigned int __rseq_size __attribute__ ((weak));
#endif

struct trial
{
  const char *volatile name; /* of the call that is tried */
  volatile int error;        /* 0: it was not refused, or did not return */
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void
ignore (int signo)
{
  (void) signo;
}

static void
refuse (struct trial *trial)
{
  trial->error = errno;
  kill (getpid (), SIGKILL);
}

/* In the child. Its handlers, limits and exit are its own, the memory is the parent's. */
static int
try_thread_ends (void *data)
{
  struct trial *trial = data;
  struct sigaction action;

  setrlimit (RLIMIT_CORE, &(struct rlimit){ 0, 0 });
  memset (&action, 0, sizeof action);
  sigemptyset (&action.sa_mask);
  action.sa_handler = SIG_DFL;
  sigaction (SIGSEGV, &action, NULL);
  sigaction (SIGILL, &action, NULL);
  action.sa_handler = ignore;
  if (sigaction (SIGUSR1, &action, NULL) == 0)
    {
      trial->name = "rt_sigreturn";
      /* All are blocked: it comes when this returns, and then the mask is as it was. */
      kill (getpid (), SIGUSR1);
      sigdelset (&action.sa_mask, SIGUSR1);
      sigaddset (&action.sa_mask, SIGUSR2);
      sigprocmask (SIG_SETMASK, &action.sa_mask, NULL);
    }
  trial->name = "exit";
  syscall (SYS_exit, 0);
  refuse (trial);
  return 0;
}

/* The same for the end of a process. */
static int
try_exit_group (void *data)
{
  struct trial *trial = data;

  trial->name = "exit_group";
  syscall (SYS_exit_group, 0);
  refuse (trial);
  return 0;
}

/* clone() is not told to send SIGCHLD: no handler of the program runs, and none of its waits sees
 * the child. */
static void
try_in_child (int (*fn) (void *data), struct trial *trial)
{
  _Alignas(16) char stack[STACK];
  sigset_t all, mask;
  int status = 0;
  pid_t pid;

  sigfillset (&all);
  sigprocmask (SIG_SETMASK, &all, &mask);
  pid = clone (fn, stack + sizeof stack, CLONE_VM | CLONE_VFORK, trial);
  if (pid > 0)
    while (waitpid (pid, &status, __WALL) < 0 && errno == EINTR)
      ;
  sigprocmask (SIG_SETMASK, &mask, NULL);
  /* It has not said why: the return from its handler has crashed. */
  if (trial->error == 0 && WIFSIGNALED (status))
    trial->error = EPERM;
}

static bool
try_ends (struct trial *trial)
{
  try_in_child (try_thread_ends, trial);
  if (trial->error == 0)
    try_in_child (try_exit_group, trial);
  return trial->error == 0;
}
#else
/* A sanitizer does not know of a child that shares the memory. */
static bool
try_ends (struct trial *trial)
{
  (void) trial;
  return true;
}
#endif

/* A call that asks for nothing, and cannot fail otherwise. */
static bool
is_refused (long result, const char *name, struct trial *trial)
{
  if (result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS))
    return false;
  trial->name = name;
  trial->error = errno;
  return true;
}

static bool
is_one_refused (struct trial *trial)
{
  static uint32_t word;

  return is_refused (syscall (SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0), "futex", trial)
         || is_refused (syscall (SYS_brk, 0), "brk", trial)
#ifdef SYS_rseq
         /* Another error says what is wrong with these arguments. */
         || (&__rseq_size != NULL && __rseq_size != 0
             && is_refused (syscall (SYS_rseq, NULL, 0, 0, 0), "rseq", trial))
#endif
         || is_refused (syscall (SYS_getpid), "getpid", trial)
         || is_refused (syscall (SYS_getppid), "getppid", trial)
         || is_refused (syscall (SYS_gettid), "gettid", trial)
         || is_refused (syscall (SYS_rt_sigaction, SIGUSR1, NULL, NULL, sizeof (uint64_t)),
                        "rt_sigaction", trial)
         || is_refused (syscall (SYS_rt_sigprocmask, SIG_SETMASK, NULL, NULL, sizeof (uint64_t)),
                        "rt_sigprocmask", trial);
}

static bool
has_filter (void)
{
  return prctl (PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

bool
pto_needed_calls_are_there (char text[PTO_REFUSAL_BYTES])
{
  static _Atomic bool has_ends; /* nothing else is read because of it: relaxed */
  struct trial trial = { NULL, 0 };

  if (!has_filter ())
    return true;
  if (!is_one_refused (&trial) && !atomic_load_explicit (&has_ends, memory_order_relaxed))
    atomic_store_explicit (&has_ends, try_ends (&trial), memory_order_relaxed);
  if (trial.error == 0)
    return true;
  snprintf (text, PTO_REFUSAL_BYTES,
            "the system refuses %s (%s), without which no program with threads works", trial.name,
            trial.error == ENOSYS ? "Function not implemented" : "Operation not permitted");
  return false;
}

static void *
do_nothing (void *data)
{
  return data;
}

int
pto_try_thread (void)
{
  pthread_t thread;
  int error;

  if (!has_filter ())
    return 0;
  error = pthread_create (&thread, NULL, do_nothing, NULL);
  if (error == 0)
    pthread_join (thread, NULL);
  return error;
}
