/* evil.h: what may foreign code do that it should not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The rows for test-foreign.c; what they do is in the kernel and the orchestration that it has
 * built.
 */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __cplusplus
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
  /* These return. */
  EVIL_BLOCK,
  EVIL_IGNORE_SIGINT,
  EVIL_DIRECTION,
  EVIL_ALIGNMENT,
  EVIL_ROUNDING,
  EVIL_EXCEPTIONS,
  EVIL_MXCSR,
  EVIL_ARGUMENTS,
  EVIL_FORK,
  /* These are beyond what a process can hold. */
  EVIL_RAW_EXIT,
  EVIL_RAW_BLOCK_AND_CRASH,
  EVIL_THREAD,
  EVIL_KILL,
  EVIL_NO_TLS
};

#ifdef __cplusplus
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
    case EVIL_BLOCK:
      pthread_sigmask (SIG_SETMASK, &all, NULL);
      break;
    case EVIL_IGNORE_SIGINT:
      signal (SIGINT, SIG_IGN);
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
      {
        pid_t pid = fork ();
        int status = -1;

        if (pid != 0 && (pid < 0 || waitpid (pid, &status, 0) != pid || status != 0))
          abort ();
        break;
      }
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
