/* evil.h: what may foreign code do that it should not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The rows for test-foreign.c; what they do is in the kernel and the orchestration that it has
 * built.
 */
#include <dlfcn.h>
#include <fenv.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __cplusplus
#include "tensor.h"
#include <stdexcept>
#include <string>
#endif

enum evil
{
  EVIL_NONE,
  EVIL_NULL,
  EVIL_WILD,
  EVIL_READ_ONLY,
  EVIL_DIVIDE,
  EVIL_TRAP,
  EVIL_BREAKPOINT,
  EVIL_SINGLE_STEP,
  EVIL_ABORT,
  EVIL_RAISE,
  EVIL_SYSTEM_CALL,
  EVIL_JUMP,
  EVIL_LONGJMP,
  EVIL_OVERFLOW,
  EVIL_WIDE,
  EVIL_LOOP,
  EVIL_EXIT,
  EVIL_EXIT_NOW,
  EVIL_QUICK_EXIT,
  EVIL_PTHREAD_EXIT,
  EVIL_PTHREAD_CANCEL,
  EVIL_SYS_EXIT,
  EVIL_SYS_EXIT_GROUP,
  EVIL_BLOCK_AND_CRASH,
  EVIL_BLOCK_AND_LOOP,
  EVIL_DEFAULT_AND_CRASH,
  EVIL_NO_STACK_AND_OVERFLOW,
  EVIL_THROW,
  EVIL_THROW_INT,
  EVIL_THROW_NOEXCEPT,
  EVIL_THROW_LOST,
  EVIL_RAISE_FATAL,
  EVIL_PTHREAD_KILL,
  EVIL_PTHREAD_KILL_NOBODY,
  EVIL_TGKILL,
  EVIL_SYS_TKILL,
  EVIL_RAISE_BLOCKED,
  EVIL_RAISE_BESIDE,
  EVIL_PTHREAD_KILL_BLOCKED,
  EVIL_TGKILL_BLOCKED,
  EVIL_SYS_QUEUE_BLOCKED,
  EVIL_SIGQUEUE_BLOCKED,
  EVIL_RAISE_SUSPENDED,
  EVIL_RAISE_POLLED,
  EVIL_RAISE_SELECTED,
  EVIL_RAISE_EPOLLED,
  EVIL_RAISE_JUMPED,
  EVIL_RAISE_CONTEXT,
  EVIL_RAISE_RELEASED,
  EVIL_RAISE_SIGSET,
  EVIL_RAISE_PAUSED,
  /* These return. */
  EVIL_RAISE_HANDLED,
  EVIL_RAISE_POLLED_HANDLED,
  EVIL_RAISE_JUMPED_HANDLED,
  EVIL_RAISE_PENDING,
  EVIL_RAISE_LEFT,
  EVIL_RAISE_IGNORED,
  EVIL_FORK_AND_RAISE,
  EVIL_BEGIN_PROGRAM,
  EVIL_BLOCK,
  EVIL_IGNORE_SIGINT,
  EVIL_SIGSET_SIGINT,
  EVIL_DIRECTION,
  EVIL_ALIGNMENT,
  EVIL_ROUNDING,
  EVIL_EXCEPTIONS,
  EVIL_MXCSR,
  EVIL_ARGUMENTS,
  EVIL_FORK,
  EVIL_FORK_UNSEEN,
  EVIL_FORK_UNSEEN_AND_LOOP,
  EVIL_FORK_AND_WAIT,
  EVIL_SHELL_AND_WAIT,
  /* These are for two runs at one time. */
  EVIL_HOLD_HANDLER,
  EVIL_HOLD_IGNORED,
  EVIL_TAKE_SIGNALS,
  /* These are beyond what a process can hold. */
  EVIL_RAW_EXIT,
  EVIL_RAW_BLOCK_AND_CRASH,
  EVIL_THREAD,
  EVIL_KILL,
  EVIL_NO_TLS,
  /* Plus another: that is done by a destructor, when the thread ends. */
  EVIL_BY_OBJECT = 1000,
  EVIL_BY_KEY = 2000
};

#ifdef __cplusplus
/* Functions of System V are among what it does. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static volatile int evil_zero;
static volatile int evil_for_ever = 1;
static const char evil_constant[] = "written once";
static jmp_buf evil_jump;

static void
evil_crash (void)
{
  *(volatile int *) (uintptr_t) (8 + evil_zero) = 1;
}

static void
evil_loop (void)
{
  while (evil_for_ever)
    ;
}

static __attribute__ ((noinline)) int
evil_recurse (volatile char *above)
{
  volatile char here[512];

  here[0] = above[0];
  return (evil_for_ever ? evil_recurse (here) : 0) + here[0];
}

static __attribute__ ((noinline)) void
evil_overflow (void)
{
  volatile char here[1] = { 0 };

  evil_zero = evil_recurse (here) * 0;
}

static __attribute__ ((noinline)) void
evil_wide (void)
{
  volatile char tile[32 << 20];

  tile[0] = 1;
  tile[sizeof tile - 1] = tile[evil_zero];
}

/* A frame that is gone by then. */
static __attribute__ ((noinline)) int
evil_mark (void)
{
  return setjmp (evil_jump);
}

static void *
evil_thread (void *data)
{
  evil_crash ();
  return data;
}

static __attribute__ ((noinline)) void
evil_throw ()
{
  if (evil_for_ever)
    throw std::out_of_range ("not to be thrown");
}

static void
evil_noexcept () noexcept
{
  evil_throw ();
}

/* There is nothing where it says that its text is. */
struct EvilLost : std::exception
{
  const char *
  what () const noexcept override
  {
    return (const char *) (uintptr_t) (evil_for_ever * 16);
  }
};

struct EvilWitness
{
  static int gone;
  ~EvilWitness () { gone++; }
};
int EvilWitness::gone;

static volatile sig_atomic_t evil_handled;

static void
evil_handler (int signo)
{
  evil_handled = signo;
  evil_zero = signo * 0;
}

/* As a library would that the kernel calls. */
static pid_t
evil_fork_unseen (void)
{
  pid_t (*unseen) (void);

  *(void **) &unseen = dlsym (RTLD_DEFAULT, "fork");
  return unseen ();
}

/* Sets the disposition, says so, waits until it may go, and sees that it was there all the time. */
static void
evil_hold (void (*handler) (int), const int64_t *args)
{
  const TensorData *f = (const TensorData *) args[1];
  volatile float *said = (float *) f->buffer.addr + f->start_offset;
  struct sigaction now;

  signal (SIGUSR1, handler);
  said[0] = 1;
  do
    {
      usleep (1000);
      sigaction (SIGUSR1, NULL, &now);
      if (now.sa_handler != handler && said[2] == 0)
        abort ();
    }
  while (said[1] == 0);
}

static void
evil_block (int signo)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, signo);
  pthread_sigmask (SIG_BLOCK, &set, NULL);
}

static void
evil_unblock (int signo)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, signo);
  pthread_sigmask (SIG_UNBLOCK, &set, NULL);
}

/* Sends it while it is blocked, and jumps to where it was not. */
static __attribute__ ((noinline)) void
evil_jump_open (int signo)
{
  sigjmp_buf open;

  evil_unblock (signo);
  if (sigsetjmp (open, 1) == 0)
    {
      evil_block (signo);
      raise (signo);
      siglongjmp (open, 1);
    }
}

static __attribute__ ((noinline)) void
evil_context_open (int signo)
{
  volatile int n = 0;
  ucontext_t open;

  evil_unblock (signo);
  getcontext (&open);
  if (n++ == 0)
    {
      evil_block (signo);
      raise (signo);
      setcontext (&open);
    }
}

/* A program that sends itself SIGTERM, in each way to begin one: it hears that. */
static __attribute__ ((noinline)) void
evil_begin_program (void)
{
  char shell[] = "/bin/sh", option[] = "-c", command[] = "kill -TERM $$; exit 0";
  char *const argv[] = { shell, option, command, NULL };

  for (int how = 0; how < 4; how++)
    {
      int status = -1;
      pid_t pid = -1;

      if (how == 0)
        status = system (command);
      else if (how == 1)
        {
          FILE *output = popen (command, "r");

          status = output != NULL ? pclose (output) : -1;
        }
      else if ((how == 2 ? posix_spawn (&pid, shell, NULL, NULL, argv, environ)
                         : posix_spawnp (&pid, shell, NULL, NULL, argv, environ))
                   != 0
               || waitpid (pid, &status, 0) != pid)
        abort ();
      if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGTERM)
        abort ();
    }
}

/* The calls of the engine that a copy of the process tries, each in a copy of its own. */
#ifndef EVIL_ENGINE
#define EVIL_ENGINE(args, call)
#define EVIL_ENGINE_CALLS 0
#endif
/* The exit status of a copy that goes on with what it copies: it returns, or calls the engine. */
#ifndef EVIL_COPY_STATUS
#define EVIL_COPY_STATUS 0
#endif

static __attribute__ ((noinline)) void
evil_do (int what, int64_t *args)
{
  sigset_t all;
  stack_t off;
  pthread_t thread;

  sigfillset (&all);
  memset (&off, 0, sizeof off);
  off.ss_flags = SS_DISABLE;
  switch (what)
    {
    case EVIL_NULL:
      evil_crash ();
      break;
    case EVIL_WILD:
      *(volatile int *) (uintptr_t) (UINT64_C (0x6000123456000000) + (uint64_t) evil_zero) = 1;
      break;
    case EVIL_READ_ONLY:
      *(volatile char *) (uintptr_t) &evil_constant[evil_zero] = 2;
      break;
    case EVIL_DIVIDE:
#if defined(__x86_64__)
      evil_zero = 7 / evil_zero;
#else
      raise (SIGFPE);
#endif
      break;
    case EVIL_TRAP:
      __builtin_trap ();
      break;
    case EVIL_BREAKPOINT:
#if defined(__x86_64__)
      __asm__ volatile("int3");
#else
      raise (SIGTRAP);
#endif
      break;
    case EVIL_SINGLE_STEP:
#if defined(__x86_64__)
      __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tnop" ::: "memory", "cc");
#else
      raise (SIGTRAP);
#endif
      break;
    case EVIL_ABORT:
      abort ();
    case EVIL_RAISE:
      raise (SIGSEGV);
      break;
    case EVIL_SYSTEM_CALL:
      raise (SIGSYS);
      break;
    case EVIL_JUMP:
      ((void (*) (void)) (uintptr_t) (16 + evil_zero)) ();
      break;
    case EVIL_LONGJMP:
      if (evil_mark () == 0)
        {
          memset (&evil_jump, 0x5a, 64);
          longjmp (evil_jump, 1);
        }
      break;
    case EVIL_OVERFLOW:
      evil_overflow ();
      break;
    case EVIL_WIDE:
      evil_wide ();
      break;
    case EVIL_LOOP:
      evil_loop ();
      break;
    case EVIL_EXIT:
      exit (3);
    case EVIL_EXIT_NOW:
      _exit (3);
    case EVIL_QUICK_EXIT:
      quick_exit (3);
    case EVIL_PTHREAD_EXIT:
      pthread_exit (NULL);
    case EVIL_PTHREAD_CANCEL:
      pthread_cancel (pthread_self ());
      pthread_testcancel ();
      break;
    case EVIL_SYS_EXIT:
      syscall (SYS_exit, 3);
      break;
    case EVIL_SYS_EXIT_GROUP:
      syscall (SYS_exit_group, 3);
      break;
    case EVIL_BLOCK_AND_CRASH:
      sigprocmask (SIG_SETMASK, &all, NULL);
      evil_crash ();
      break;
    case EVIL_BLOCK_AND_LOOP:
      pthread_sigmask (SIG_BLOCK, &all, NULL);
      evil_loop ();
      break;
    case EVIL_DEFAULT_AND_CRASH:
      signal (SIGSEGV, SIG_DFL);
      evil_crash ();
      break;
    case EVIL_NO_STACK_AND_OVERFLOW:
      sigaltstack (&off, NULL);
      evil_overflow ();
      break;
    case EVIL_THROW:
      {
        EvilWitness witness;

        throw std::runtime_error ("no row " + std::to_string (17));
      }
    case EVIL_THROW_INT:
      throw 42;
    case EVIL_THROW_NOEXCEPT:
      evil_noexcept ();
      break;
    case EVIL_THROW_LOST:
      throw EvilLost ();
    case EVIL_RAISE_FATAL:
      raise (SIGTERM);
      break;
    case EVIL_PTHREAD_KILL:
      pthread_kill (pthread_self (), SIGUSR1);
      break;
    case EVIL_PTHREAD_KILL_NOBODY:
      pthread_kill ((pthread_t) (uintptr_t) (16 + evil_zero), SIGUSR1);
      break;
    case EVIL_TGKILL:
      tgkill (getpid (), gettid (), SIGALRM);
      break;
    case EVIL_SYS_TKILL:
      syscall (SYS_tkill, syscall (SYS_gettid), SIGHUP);
      break;
    case EVIL_RAISE_BLOCKED:
      evil_block (SIGTERM);
      raise (SIGTERM);
      break;
    case EVIL_RAISE_BESIDE:
      evil_block (SIGUSR1);
      raise (SIGTERM);
      break;
    case EVIL_PTHREAD_KILL_BLOCKED:
      evil_block (SIGUSR2);
      pthread_kill (pthread_self (), SIGUSR2);
      pthread_sigmask (SIG_UNBLOCK, &all, NULL);
      break;
    case EVIL_TGKILL_BLOCKED:
      evil_block (SIGALRM);
      tgkill (getpid (), gettid (), SIGALRM);
      sigemptyset (&all);
      pthread_sigmask (SIG_SETMASK, &all, NULL);
      break;
    case EVIL_SYS_QUEUE_BLOCKED:
      {
        siginfo_t info;

        memset (&info, 0, sizeof info);
        info.si_code = SI_QUEUE;
        info.si_pid = getpid ();
        evil_block (SIGUSR1);
        syscall (SYS_rt_tgsigqueueinfo, getpid (), gettid (), SIGUSR1, &info);
        break;
      }
    case EVIL_SIGQUEUE_BLOCKED:
      {
        union sigval value;

        value.sival_int = 3;
        evil_block (SIGRTMIN + 9);
        for (int i = 0; i < 3; i++)
          pthread_sigqueue (pthread_self (), SIGRTMIN + 9, value);
        break;
      }
    case EVIL_RAISE_SUSPENDED:
      evil_block (SIGHUP);
      raise (SIGHUP);
      sigemptyset (&all);
      sigsuspend (&all);
      break;
    case EVIL_RAISE_POLLED:
      evil_block (SIGTERM);
      raise (SIGTERM);
      sigemptyset (&all);
      ppoll (NULL, 0, NULL, &all);
      break;
    case EVIL_RAISE_SELECTED:
      evil_block (SIGUSR1);
      raise (SIGUSR1);
      sigemptyset (&all);
      pselect (0, NULL, NULL, NULL, NULL, &all);
      break;
    case EVIL_RAISE_EPOLLED:
      {
        int fd = epoll_create1 (EPOLL_CLOEXEC);
        struct epoll_event event;

        evil_block (SIGUSR2);
        raise (SIGUSR2);
        sigemptyset (&all);
        /* Without waiting: what is there comes. */
        epoll_pwait (fd, &event, 1, 0, &all);
        close (fd);
        break;
      }
    case EVIL_RAISE_JUMPED:
      evil_jump_open (SIGTERM);
      break;
    case EVIL_RAISE_CONTEXT:
      evil_context_open (SIGTERM);
      break;
    case EVIL_RAISE_RELEASED:
      sighold (SIGTERM);
      raise (SIGTERM);
      sigrelse (SIGTERM);
      break;
    case EVIL_RAISE_SIGSET:
      sigset (SIGTERM, SIG_HOLD);
      raise (SIGTERM);
      sigset (SIGTERM, SIG_DFL);
      break;
    case EVIL_RAISE_PAUSED:
      sighold (SIGHUP);
      raise (SIGHUP);
      sigpause (SIGHUP);
      break;
    case EVIL_RAISE_POLLED_HANDLED:
      evil_handled = 0;
      signal (SIGUSR1, evil_handler);
      evil_block (SIGUSR1);
      raise (SIGUSR1);
      if (evil_handled != 0)
        abort ();
      sigemptyset (&all);
      if (ppoll (NULL, 0, NULL, &all) != -1 || evil_handled != SIGUSR1)
        abort ();
      signal (SIGUSR1, SIG_DFL);
      break;
    case EVIL_RAISE_JUMPED_HANDLED:
      evil_handled = 0;
      signal (SIGUSR1, evil_handler);
      evil_jump_open (SIGUSR1);
      if (evil_handled != SIGUSR1)
        abort ();
      signal (SIGUSR1, SIG_DFL);
      break;
    case EVIL_RAISE_LEFT:
      signal (SIGUSR1, evil_handler);
      evil_block (SIGUSR1);
      evil_block (SIGTSTP);
      raise (SIGUSR1);
      raise (SIGTSTP);
      break;
    case EVIL_RAISE_HANDLED:
      evil_handled = 0;
      signal (SIGUSR1, evil_handler);
      raise (SIGUSR1);
      if (evil_handled != SIGUSR1)
        abort ();
      pthread_kill (pthread_self (), SIGUSR1);
      signal (SIGUSR1, SIG_DFL);
      break;
    case EVIL_RAISE_PENDING:
      {
        int found = 0;

        sigemptyset (&all);
        sigaddset (&all, SIGUSR1);
        pthread_sigmask (SIG_BLOCK, &all, NULL);
        raise (SIGUSR1);
        if (sigwait (&all, &found) != 0 || found != SIGUSR1)
          abort ();
        pthread_sigmask (SIG_UNBLOCK, &all, NULL);
        break;
      }
    case EVIL_RAISE_IGNORED:
      raise (SIGWINCH);
      signal (SIGUSR1, SIG_IGN);
      raise (SIGUSR1);
      signal (SIGUSR1, SIG_DFL);
      break;
    case EVIL_BEGIN_PROGRAM:
      evil_begin_program ();
      break;
    case EVIL_FORK_AND_RAISE:
      for (int unseen = 0; unseen < 2; unseen++)
        {
          pid_t pid = unseen ? evil_fork_unseen () : fork ();
          int status = -1;

          if (pid == 0)
            {
              raise (SIGINT);
              _exit (0);
            }
          if (pid < 0 || waitpid (pid, &status, 0) != pid || !WIFSIGNALED (status)
              || WTERMSIG (status) != SIGINT)
            abort ();
        }
      break;
    case EVIL_BLOCK:
      pthread_sigmask (SIG_SETMASK, &all, NULL);
      break;
    case EVIL_IGNORE_SIGINT:
      signal (SIGINT, SIG_IGN);
      break;
    case EVIL_SIGSET_SIGINT:
      sigset (SIGINT, SIG_HOLD);
      if (sigset (SIGINT, evil_handler) != SIG_HOLD || sigset (SIGINT, SIG_IGN) != evil_handler)
        abort ();
      sigignore (SIGINT);
      break;
    case EVIL_DIRECTION:
#if defined(__x86_64__)
      __asm__ volatile("std" ::: "cc");
#endif
      break;
    case EVIL_ALIGNMENT:
#if defined(__x86_64__)
      __asm__ volatile("pushfq\n\torq $0x40000, (%%rsp)\n\tpopfq" ::: "memory", "cc");
#endif
      break;
    case EVIL_ROUNDING:
      fesetround (FE_UPWARD);
      break;
    case EVIL_EXCEPTIONS:
      feclearexcept (FE_ALL_EXCEPT);
      feenableexcept (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
      break;
    case EVIL_MXCSR:
#if defined(__x86_64__)
      __builtin_ia32_ldmxcsr (0x9fc0); /* small numbers are 0 */
#endif
      break;
    case EVIL_ARGUMENTS:
      if (args != NULL)
        for (int i = 0; i < 8; i++)
          args[i] = (int64_t) UINT64_C (0x5a5a5a5a5a5a5a5a);
      break;
    case EVIL_FORK:
    case EVIL_FORK_UNSEEN:
    case EVIL_FORK_UNSEEN_AND_LOOP:
      {
        pid_t pid = what == EVIL_FORK ? fork () : evil_fork_unseen ();
        int status = -1;

        if (what == EVIL_FORK_UNSEEN_AND_LOOP && pid > 0)
          evil_loop ();

        if (pid != 0
            && (pid < 0 || waitpid (pid, &status, 0) != pid || !WIFEXITED (status)
                || WEXITSTATUS (status) != EVIL_COPY_STATUS))
          abort ();
        break;
      }
    case EVIL_FORK_AND_WAIT:
      {
        /* The copy calls the engine, which is not in it. */
        for (int call = 0; call < EVIL_ENGINE_CALLS; call++)
          {
            /* The other ways to fork are tried as well. */
            pid_t pid = call % 3 == 1 ? vfork () : call % 3 == 2 ? _Fork () : fork ();
            int status = -1;

            if (pid == 0)
              {
                /* It does not wait for ever. */
                alarm (30);
                EVIL_ENGINE (args, call);
                /* Not a copy that has ended as it should. */
                _exit (2);
              }
            if (pid < 0 || waitpid (pid, &status, 0) != pid || !WIFEXITED (status)
                || WEXITSTATUS (status) != 1)
              abort ();
          }
        break;
      }
    case EVIL_SHELL_AND_WAIT:
      system ("exec cat \"$EVIL_FIFO\"");
      break;
    case EVIL_HOLD_HANDLER:
      evil_hold (evil_handler, args);
      break;
    case EVIL_HOLD_IGNORED:
      evil_hold (SIG_IGN, args);
      break;
    case EVIL_TAKE_SIGNALS:
      signal (SIGUSR1, SIG_IGN);
      signal (SIGUSR2, SIG_IGN);
      break;
    case EVIL_RAW_EXIT:
#if defined(__x86_64__)
      __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(3) : "rcx", "r11", "memory");
#endif
      break;
    case EVIL_RAW_BLOCK_AND_CRASH:
#if defined(__x86_64__)
      {
        long number = SYS_rt_sigprocmask;
        uint64_t every = ~UINT64_C (0);
        register long size __asm__("r10") = 8;

        __asm__ volatile("syscall"
                         : "+a"(number)
                         : "D"(SIG_SETMASK), "S"(&every), "d"(0L), "r"(size)
                         : "rcx", "r11", "memory");
      }
      evil_crash ();
#endif
      break;
    case EVIL_THREAD:
      if (pthread_create (&thread, NULL, evil_thread, NULL) == 0)
        pthread_join (thread, NULL);
      break;
    case EVIL_KILL:
      kill (getpid (), SIGKILL);
      break;
    case EVIL_NO_TLS:
#if defined(__x86_64__)
      syscall (SYS_arch_prctl, 0x1002, 0L);
#endif
      break;
    default:
      break;
    }
}
#endif
