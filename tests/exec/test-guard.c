/* test-guard.c: does the engine get its thread back from a kernel that crashes or never returns?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-test.h"

#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- kernels --- */

static NOT_SANITIZED void
kernel_good (int64_t *args)
{
  args[1] = args[0] + 1;
}

static NOT_SANITIZED void
kernel_segv (int64_t *args)
{
  *(volatile int *) (uintptr_t) args[0] = 1;
}

static NOT_SANITIZED void
kernel_divide (int64_t *args)
{
#if defined(__x86_64__)
  volatile int zero = 0;

  args[1] = (int) args[0] / zero;
#else
  (void) args;
  raise (SIGFPE);
#endif
}

static NOT_SANITIZED void
kernel_illegal (int64_t *args)
{
  (void) args;
#if defined(__x86_64__)
  __asm__ volatile("ud2");
#elif defined(__aarch64__)
  __asm__ volatile("udf #0");
#else
  raise (SIGILL);
#endif
}

static NOT_SANITIZED void
kernel_abort (int64_t *args)
{
  (void) args;
  abort ();
}

/* No memory has this address: the processor does not say which it was. */
static NOT_SANITIZED void
kernel_wild (int64_t *args)
{
  (void) args;
  *(volatile int *) 0x1234567890abcdefu = 1;
}

static NOT_SANITIZED void
kernel_bus (int64_t *args)
{
  (void) args;
  raise (SIGBUS);
}

static NOT_SANITIZED int64_t
recurse (volatile int64_t *above, int64_t depth)
{
  volatile int64_t frame[64];

  frame[0] = above[0] + 1;
  if (depth == 0)
    return frame[0];
  return recurse (frame, depth - 1) + frame[0];
}

static NOT_SANITIZED void
kernel_overflow (int64_t *args)
{
  args[1] = recurse (args, INT64_MAX);
}

static NOT_SANITIZED void
kernel_loop (int64_t *args)
{
  volatile int64_t *counter = args;

  for (;;)
    counter[1]++;
}

/* Turns every floating-point setting upside down, then crashes with an exception pending. */
static NOT_SANITIZED void
kernel_float (int64_t *args)
{
  volatile double zero = 0.0;

  fesetround (FE_UPWARD);
  feenableexcept (FE_DIVBYZERO | FE_INVALID);
#if defined(__x86_64__)
  __asm__ volatile("std");
#endif
  zero = 1.0 / zero;
  /* Where floating-point traps do not exist. */
  kernel_segv (args);
}

/* The same, but it returns. */
static NOT_SANITIZED void
kernel_turned (int64_t *args)
{
  (void) args;
  fesetround (FE_UPWARD);
#if defined(__x86_64__)
  __asm__ volatile("std");
#endif
}

/* --- each of them on an actor of each back end --- */

struct job
{
  struct pto_exec *exec;
  struct pto_guard guard;
  struct pto_word word;
  struct pto_fault fault;
  bool intact;
};

static void
call (struct job *job, void (*fn) (int64_t *), int64_t argument)
{
  int64_t args[2] = { argument, 0 };
  double x = 1.5;
  uint64_t a = 1, b = 2, c = 3, d = 4;

  __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+m"(x));
  pto_guard_call (&job->guard, fn, args, &job->fault);
  if (a + 10 * b + 100 * c + 1000 * d != 4321 || x != 1.5 || fegetround () != FE_TONEAREST
      || fegetexcept () != 0 || (job->guard.call & 1) != 0)
    job->intact = false;
  if (job->fault.kind == PTO_FAULT_NONE && fn == kernel_good && args[1] != argument + 1)
    job->intact = false;
}

static void
call_good (struct job *job)
{
  call (job, kernel_good, 41);
  if (job->fault.kind != PTO_FAULT_NONE)
    job->intact = false;
}

static void
expect_signal (struct job *job, void (*fn) (int64_t *), int64_t argument, int signo)
{
  g_autofree char *said = g_strdup_printf ("crashed: %s (signal %d)", strsignal (signo), signo);
  char text[128];

  for (int i = 0; i < 3; i++)
    {
      call (job, fn, argument);
      g_assert_cmpint (job->fault.kind, ==, PTO_FAULT_SIGNAL);
      g_assert_cmpint (job->fault.signo, ==, signo);
      /* Only what is about an address names one. */
      pto_guard_explain (&job->guard, &job->fault, text, sizeof text);
      if (fn == kernel_segv)
        g_assert_cmpstr (strstr (text, " at address "), ==, " at address 0x40");
      else if (!job->fault.has_address)
        g_assert_cmpstr (text, ==, said);
      else
        g_assert_true (g_str_has_prefix (text, said) && fn != kernel_abort && fn != kernel_wild);
      call_good (job);
    }
}

/* Who has been in the engine is guarded again when it comes back. */
static struct pto_exec *crash_exec;

static NOT_SANITIZED void
kernel_after_engine (int64_t *args)
{
  int64_t wild[2] = { 0x40, 0 };
  struct pto_word word;

  pto_word_init (&word, 1, true);
  if (args[0] == 0)
    pto_charge (crash_exec, 10);
  else if (args[0] == 1)
    pto_yield (crash_exec);
  else
    pto_park (crash_exec, &word, 0, PTO_NEVER);
  kernel_segv (wild);
}

static void
crash_main (void *arg)
{
  struct job *job = arg;

  job->intact = true;
  call_good (job);
  expect_signal (job, kernel_segv, 0x40, SIGSEGV);
  call (job, kernel_segv, 0x48);
  g_assert_cmphex (job->fault.address, ==, 0x48);
  for (int64_t i = 0; i < 3; i++)
    expect_signal (job, kernel_after_engine, i, SIGSEGV);
  expect_signal (job, kernel_divide, 1, SIGFPE);
  expect_signal (job, kernel_illegal, 0, SIGILL);
  expect_signal (job, kernel_abort, 0, SIGABRT);
#ifdef __x86_64__
  expect_signal (job, kernel_wild, 0, SIGSEGV);
#endif
  expect_signal (job, kernel_bus, 0, SIGBUS);
  call (job, kernel_float, 0x40);
  g_assert_cmpint (job->fault.kind, ==, PTO_FAULT_SIGNAL);
  call_good (job);
  /* What is put back was saved now, and then the first time. */
  call (job, kernel_turned, 0);
  job->guard.steady = true;
  call (job, kernel_turned, 0);
  call (job, kernel_turned, 0);
  for (int i = 0; i < 3; i++)
    {
      call (job, kernel_overflow, 0);
      g_assert_cmpint (job->fault.kind, ==, PTO_FAULT_STACK_OVERFLOW);
      g_assert_cmpint (job->fault.signo, ==, SIGSEGV);
      call_good (job);
    }
}

static void
test_crashes (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct job *jobs = g_new0 (struct job, 4);

  crash_exec = exec;
  g_assert_cmpint (pto_guard_init (), ==, 0);
  for (uint32_t i = 0; i < 4; i++)
    {
      jobs[i].exec = exec;
      spawn (exec, i % 2, crash_main, &jobs[i]);
    }
  pto_exec_join (exec);
  for (uint32_t i = 0; i < 4; i++)
    g_assert_true (jobs[i].intact);
  pto_exec_free (exec);
  pto_guard_shutdown ();
  g_free (jobs);
}

/* A thread that is no actor may make guarded calls as well. */
static void
test_plain_thread (void)
{
  struct job job = { .intact = true };

  g_assert_cmpint (pto_guard_init (), ==, 0);
  call_good (&job);
  expect_signal (&job, kernel_segv, 0x40, SIGSEGV);
  expect_signal (&job, kernel_abort, 0, SIGABRT);
  g_assert_true (job.intact);
  pto_guard_shutdown ();
}

/* A guarded call inside of a guarded call: only the inner one is given up. */
static struct pto_guard inner_guard;
static struct pto_fault inner_fault;

static void
kernel_nested (int64_t *args)
{
  int64_t inner[2] = { 0x40, 0 };

  pto_guard_call (&inner_guard, kernel_segv, inner, &inner_fault);
  kernel_good (args);
}

static void
test_nested (void)
{
  struct job job = { .intact = true };
  int64_t args[2] = { 41, 0 };

  g_assert_cmpint (pto_guard_init (), ==, 0);
  pto_guard_call (&job.guard, kernel_nested, args, &job.fault);
  g_assert_cmpint (job.fault.kind, ==, PTO_FAULT_NONE);
  g_assert_cmpint (args[1], ==, 42);
  g_assert_cmpint (inner_fault.signo, ==, SIGSEGV);
  pto_guard_shutdown ();
}

/* --- interrupts --- */

static void *
interrupter_main (void *arg)
{
  struct job *job = arg;

  for (int i = 0; i < 5; i++)
    {
      uint64_t running;

      while (((running = atomic_load (&job->guard.call)) & 1) == 0)
        sched_yield ();
      pto_guard_interrupt (&job->guard, running);
      while (atomic_load (&job->guard.call) == running)
        sched_yield ();
    }
  return NULL;
}

static void
loop_main (void *arg)
{
  struct job *job = arg;

  job->intact = true;
  for (int i = 0; i < 5; i++)
    {
      call (job, kernel_loop, 0);
      g_assert_cmpint (job->fault.kind, ==, PTO_FAULT_INTERRUPTED);
    }
  call_good (job);
}

static void
test_interrupt (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct job job = { .exec = exec };
  pthread_t thread;

  g_assert_cmpint (pto_guard_init (), ==, 0);
  spawn (exec, 1, loop_main, &job);
  g_assert_cmpint (pthread_create (&thread, NULL, interrupter_main, &job), ==, 0);
  pto_exec_join (exec);
  pthread_join (thread, NULL);
  g_assert_true (job.intact);
  pto_exec_free (exec);
  pto_guard_shutdown ();
}

/* Interrupts that come just when the call ends by itself hit that call or none, never the next. */
#define BRIEF_CALLS SCALE (4000)

struct brief
{
  struct job job;
  _Atomic uint32_t over;
  uint32_t interrupted;
};

static NOT_SANITIZED void
kernel_brief (int64_t *args)
{
  for (volatile int64_t i = args[0]; i > 0; i--)
    ;
}

static void *
brief_interrupter (void *arg)
{
  struct brief *brief = arg;

  while (atomic_load (&brief->over) == 0)
    {
      uint64_t running = atomic_load (&brief->job.guard.call);

      /* Every other call is let alone. */
      if ((running & 3) == 1)
        pto_guard_interrupt (&brief->job.guard, running);
    }
  return NULL;
}

static void
brief_main (void *arg)
{
  struct brief *brief = arg;

  brief->job.intact = true;
  for (uint32_t i = 0; i < BRIEF_CALLS; i++)
    {
      uint64_t number = atomic_load (&brief->job.guard.call) + 1;

      call (&brief->job, kernel_brief, i * 3701 % 200000);
      if (brief->job.fault.kind == PTO_FAULT_INTERRUPTED)
        {
          g_assert_cmpuint (number & 3, ==, 1);
          brief->interrupted++;
        }
      else
        g_assert_cmpint (brief->job.fault.kind, ==, PTO_FAULT_NONE);
    }
  atomic_store (&brief->over, 1);
}

static void
test_interrupt_races (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct brief brief = { .job.exec = exec };
  pthread_t thread;

  g_assert_cmpint (pto_guard_init (), ==, 0);
  spawn (exec, 1, brief_main, &brief);
  g_assert_cmpint (pthread_create (&thread, NULL, brief_interrupter, &brief), ==, 0);
  pto_exec_join (exec);
  pthread_join (thread, NULL);
  g_assert_true (brief.job.intact);
  g_test_message ("%u of %u calls interrupted", brief.interrupted, (unsigned int) BRIEF_CALLS);
  pto_exec_free (exec);
  pto_guard_shutdown ();
}

/* A kernel that waits inside of the engine: the interrupt lets the engine finish, then ends the
 * call. */
static struct job *parked_job;

static void
kernel_parks (int64_t *args)
{
  (void) args;
  wait_for (parked_job->exec, &parked_job->word, 1000000);
}

static void
parks_main (void *arg)
{
  struct job *job = arg;
  int64_t args[2] = { 0, 0 };

  pto_guard_call (&job->guard, kernel_parks, args, &job->fault);
  job->intact = true;
  call_good (job);
}

static void
test_interrupt_parked (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct job job = { .exec = exec };
  struct pto_word own;
  uint64_t running;

  g_assert_cmpint (pto_guard_init (), ==, 0);
  pto_word_init (&job.word, 0, false);
  pto_word_init (&own, 0, false);
  parked_job = &job;
  spawn (exec, 1, parks_main, &job);
  pto_exec_enter (exec);
  while (((running = atomic_load (&job.guard.call)) & 1) == 0)
    pto_park (exec, &own, 0, pto_now (exec) + 1000);
  pto_park (exec, &own, 0, pto_now (exec) + 1000000);
  pto_guard_interrupt (&job.guard, running);
  pto_word_set (exec, &job.word, 1);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  g_assert_true (job.intact);
  g_assert_cmpint (job.fault.kind, ==, PTO_FAULT_NONE); /* of the good call that followed */
  g_assert_cmpuint (job.guard.call, ==, 4);
  g_assert_cmpuint (job.word.value, ==, 1);
  pto_exec_free (exec);
  pto_guard_shutdown ();
}

/* Two kernels of one domain park inside of their calls: each fault ends its own. */
static struct pto_exec *cross_exec;
static struct pto_word cross_word;

static NOT_SANITIZED void
kernel_waits_then_crashes (int64_t *args)
{
  wait_for (cross_exec, &cross_word, 1);
  kernel_segv (args);
}

static NOT_SANITIZED void
kernel_wakes_then_yields (int64_t *args)
{
  pto_word_set (cross_exec, &cross_word, 1);
  for (int i = 0; i < 10; i++)
    pto_yield (cross_exec);
  kernel_good (args);
}

static void
crosser_main (void *arg)
{
  struct job *job = arg;
  int64_t args[2] = { 0x40, 0 };

  pto_guard_call (&job->guard, kernel_waits_then_crashes, args, &job->fault);
}

static void
waker_main (void *arg)
{
  struct job *job = arg;
  int64_t args[2] = { 0x40, 0 };

  pto_guard_call (&job->guard, kernel_wakes_then_yields, args, &job->fault);
  job->intact = args[1] == 0x41;
}

static void
test_guards_follow_fibers (gconstpointer backend)
{
  struct job waiter = { 0 }, waker = { 0 };

  cross_exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  pto_word_init (&cross_word, 0, false);
  g_assert_cmpint (pto_guard_init (), ==, 0);
  spawn (cross_exec, 1, crosser_main, &waiter);
  spawn (cross_exec, 1, waker_main, &waker);
  pto_exec_join (cross_exec);
  g_assert_cmpint (waiter.fault.kind, ==, PTO_FAULT_SIGNAL);
  g_assert_cmpint (waker.fault.kind, ==, PTO_FAULT_NONE);
  g_assert_true (waker.intact);
  pto_exec_free (cross_exec);
  pto_guard_shutdown ();
}

/* --- what is not ours --- */

static sigjmp_buf chained;
static volatile int chained_signo;

static void
previous_handler (int signo)
{
  chained_signo = signo;
  siglongjmp (chained, 1);
}

static void
test_chain (void)
{
  struct sigaction action = { .sa_handler = previous_handler }, old, now;
  struct job job = { .intact = true };

  sigaction (SIGSEGV, &action, &old);
  g_assert_cmpint (pto_guard_init (), ==, 0);
  g_assert_cmpint (pto_guard_init (), ==, 0); /* counted */
  pto_guard_shutdown ();
  expect_signal (&job, kernel_segv, 0x40, SIGSEGV);
  g_assert_cmpint (chained_signo, ==, 0);
  if (sigsetjmp (chained, 1) == 0)
    {
      int64_t args[2] = { 0x40, 0 };

      kernel_segv (args);
      g_assert_not_reached ();
    }
  g_assert_cmpint (chained_signo, ==, SIGSEGV);
  expect_signal (&job, kernel_segv, 0x40, SIGSEGV);
  pto_guard_shutdown ();
  sigaction (SIGSEGV, NULL, &now);
  g_assert_true (now.sa_handler == previous_handler);
  sigaction (SIGSEGV, &old, NULL);
}

/* Handlers that came on top are looked at before the next guarded call, whichever thread makes it,
 * and not before. */
static gpointer
call_badly (gpointer data)
{
  expect_signal (data, kernel_segv, 0x40, SIGSEGV);
  return NULL;
}

static void
test_expect (void)
{
  struct sigaction action = { .sa_handler = previous_handler }, old, now;
  struct job job = { .intact = true };

  sigaction (SIGSEGV, NULL, &old);
  g_assert_cmpint (pto_guard_init (), ==, 0);
  for (int round = 0; round < 4; round++)
    {
      call_good (&job);
      sigaction (SIGSEGV, &action, NULL);
      pto_guard_expect ();
      pto_guard_expect ();
      sigaction (SIGSEGV, NULL, &now);
      g_assert_true (now.sa_handler == previous_handler);
      chained_signo = 0;
      if (round % 2 == 0)
        g_thread_join (g_thread_new ("caller", call_badly, &job));
      call_badly (&job);
      g_assert_cmpint (chained_signo, ==, 0);
      sigaction (SIGSEGV, NULL, &now);
      g_assert_false (now.sa_handler == previous_handler);
      /* It is under ours now. */
      if (sigsetjmp (chained, 1) == 0)
        {
          int64_t args[2] = { 0x40, 0 };

          kernel_segv (args);
          g_assert_not_reached ();
        }
      g_assert_cmpint (chained_signo, ==, SIGSEGV);
    }
  pto_guard_shutdown ();
  sigaction (SIGSEGV, NULL, &now);
  g_assert_true (now.sa_handler == previous_handler);
  sigaction (SIGSEGV, &old, NULL);
}

/* The default action is the honest one. */
static int
status_of_child (void (*fn) (int64_t *))
{
  int status;
  pid_t pid = fork ();

  g_assert_cmpint (pid, >=, 0);
  if (pid == 0)
    {
      int64_t args[2] = { 0x40, 0 };

      alarm (10);
      if (freopen ("/dev/null", "w", stderr) == NULL || pto_guard_init () != 0)
        _exit (100);
      fn (args);
      _exit (101);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  return status;
}

#if !defined(PTO_ASAN) && !defined(PTO_TSAN)
/* After these two the code would go on. */
static void
meet_breakpoint (int64_t *args)
{
  (void) args;
#if defined(__x86_64__)
  __asm__ volatile("int3");
#else
  raise (SIGTRAP);
#endif
}

static void
be_refused (int64_t *args)
{
  struct sock_filter filter[]
      = { BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
          BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
          BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_TRAP),
          BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
  struct sock_fprog program = { G_N_ELEMENTS (filter), filter };

  (void) args;
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
      || prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    raise (SIGSYS); /* not here */
  syscall (SYS_getpriority, 0, 0);
}
#endif

static void
test_default_action (void)
{
  int status = status_of_child (kernel_segv);

#if defined(PTO_ASAN) || defined(PTO_TSAN)
  /* There the handler that was there before is the sanitizer's, which reports and exits. */
  g_assert_false (WIFEXITED (status) && (WEXITSTATUS (status) == 0 || WEXITSTATUS (status) >= 100));
#else
  g_assert_true (WIFSIGNALED (status));
  g_assert_cmpint (WTERMSIG (status), ==, SIGSEGV);
  status = status_of_child (kernel_abort);
  g_assert_true (WIFSIGNALED (status));
  g_assert_cmpint (WTERMSIG (status), ==, SIGABRT);
  status = status_of_child (meet_breakpoint);
  g_assert_true (WIFSIGNALED (status));
  g_assert_cmpint (WTERMSIG (status), ==, SIGTRAP);
  status = status_of_child (be_refused);
  g_assert_true (WIFSIGNALED (status));
  g_assert_cmpint (WTERMSIG (status), ==, SIGSYS);
#endif
}

#ifndef PTO_TSAN
/* The thread sanitizer keeps a lock for each lock: a child has what another thread held of those
 * for ever. */
static _Atomic bool stop_taking;

static void *
take_and_give_back (void *data)
{
  while (!atomic_load_explicit (&stop_taking, memory_order_relaxed))
    {
      g_assert_cmpint (pto_guard_init (), ==, 0);
      pto_guard_shutdown ();
    }
  return data;
}

/* Whatever another thread was at: a child of the program's own has guards. */
static void
test_fork_while_taken (void)
{
  pthread_t thread;

  g_assert_cmpint (pthread_create (&thread, NULL, take_and_give_back, NULL), ==, 0);
  for (int i = 0; i < 200; i++)
    {
      pid_t pid = fork ();
      int status;

      if (pid == 0)
        {
          alarm (10);
          if (pto_guard_init () != 0)
            _exit (1);
          pto_guard_shutdown ();
          _exit (0);
        }
      g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
      g_assert_cmpint (status, ==, 0);
    }
  atomic_store_explicit (&stop_taking, true, memory_order_relaxed);
  pthread_join (thread, NULL);
}
#endif

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/guard/default-action", test_default_action);
#ifndef PTO_TSAN
  g_test_add_func ("/pto/guard/fork-while-taken", test_fork_while_taken);
#endif
  g_test_add_func ("/pto/guard/chain", test_chain);
  g_test_add_func ("/pto/guard/expect", test_expect);
  g_test_add_func ("/pto/guard/plain-thread", test_plain_thread);
  g_test_add_func ("/pto/guard/nested", test_nested);
  add_for_backends ("guard/crashes", test_crashes);
  add_for_backends ("guard/interrupt", test_interrupt);
  add_for_backends ("guard/interrupt-races", test_interrupt_races);
  add_for_backends ("guard/interrupt-parked", test_interrupt_parked);
  add_for_backends ("guard/follow-fibers", test_guards_follow_fibers);
  return g_test_run ();
}
