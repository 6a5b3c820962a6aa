/* test-process-child.c: what does a child find when it begins, and what does its parent keep?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "process-test.h"

#include "../../pto/exec/pto-exec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int
print (void *data)
{
  printf ("child%d ", GPOINTER_TO_INT (data));
  if (GPOINTER_TO_INT (data) == 2)
    exit (0);
  return 0;
}

static pid_t
print_and_fork (void *data)
{
  /* As another thread may, after the buffers were flushed. */
  printf ("%s", (const char *) data);
  return fork ();
}

static void
test_output_is_written_once (void)
{
  struct stand_in out = put_in_place (STDOUT_FILENO, -1);
  struct pto_process process;
  char *text;

  printf ("parent ");
  begin (&process, print, GINT_TO_POINTER (1));
  wait_dead (&process);
  pto_process_end (&process);
  printf ("again ");
  begin_with (&process, "L3/0/sub1", print, GINT_TO_POINTER (2),
              (struct pto_process_config){ .fork = print_and_fork, .fork_data = (char *) "late " });
  wait_dead (&process);
  pto_process_end (&process);
  text = take_out (out);
  g_assert_cmpstr (text, ==, "parent child1 again child2 late ");
  g_free (text);
}

/* Shared with children. */
static _Atomic int *counters;

static void
parents_exit_handler (void)
{
  counters[0]++;
}

static void
childs_exit_handler (void)
{
  counters[1]++;
}

static int
exit_with_handler (void *data)
{
  atexit (childs_exit_handler);
  exit (GPOINTER_TO_INT (data));
}

static int
quick_exit_with_handler (void *data)
{
  at_quick_exit (childs_exit_handler);
  quick_exit (GPOINTER_TO_INT (data));
}

static void *
exit_on_a_thread (void *data)
{
  (void) data;
  exit (5);
}

static int
exit_by_thread (void *data)
{
  pthread_t thread;

  pthread_create (&thread, NULL, exit_on_a_thread, data);
  return wait_for_ever (NULL);
}

static int
child_of_a_child (void *data)
{
  struct pto_process process;
  struct pto_process_config config = { .main = exit_with_handler, .data = data };

  pto_process_init (&process, "L4/0/L3/0/sub0");
  CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
  while (!pto_process_reap (&process))
    sched_yield ();
  CHECK (process.status == GPOINTER_TO_INT (data));
  pto_process_end (&process);
  return 0;
}

static void
test_exit_handlers_are_the_parents (void)
{
  struct pto_process process;

  counters = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  g_assert_true (counters != MAP_FAILED);
  atexit (parents_exit_handler);
  at_quick_exit (parents_exit_handler);

  begin (&process, return_data, NULL);
  expect_success (&process);
  begin (&process, exit_with_handler, GINT_TO_POINTER (4));
  wait_dead (&process);
  assert_described (&process, "exited with status 4");
  pto_process_end (&process);
  g_assert_cmpint (counters[1], ==, 1);
  begin (&process, exit_by_thread, NULL);
  wait_dead (&process);
  assert_described (&process, "exited with status 5");
  pto_process_end (&process);
  begin (&process, child_of_a_child, GINT_TO_POINTER (6));
  expect_success (&process);
  g_assert_cmpint (counters[1], ==, 2);
  begin (&process, quick_exit_with_handler, GINT_TO_POINTER (6));
  wait_dead (&process);
  assert_described (&process, "exited with status 1");
  pto_process_end (&process);
  g_assert_cmpint (counters[1], ==, 3);
  g_assert_cmpint (counters[0], ==, 0);
  /* Not unmapped: the handler runs at the end. */
}

static void *
sleep_on_a_thread (void *data)
{
  (void) data;
  while (true)
    pause ();
  return NULL;
}

static int
end_the_thread (void *data)
{
  pthread_t thread;

#ifndef __SANITIZE_THREAD__ /* has a thread of its own, which stays */
  int status;
  pid_t pid = fork ();

  /* A process of the function's own: nobody's business. */
  if (pid == 0)
    pthread_exit (NULL);
  CHECK (waitpid (pid, &status, 0) == pid && status == 0);
#endif
  CHECK (pthread_create (&thread, NULL, sleep_on_a_thread, data) == 0);
  pthread_exit (NULL);
}

/* Another thread goes on. */
static void
test_thread_of_the_child_ends (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  struct pto_process process;

  begin (&process, end_the_thread, NULL);
  wait_dead (&process);
  g_free (take_out (err));
  assert_described (&process, "exited with status 1");
  assert_last_line (&process, "pto: the thread that runs tasks has ended (pthread_exit)");
  pto_process_end (&process);
}

static int
check_descriptors (void *data)
{
  const bool *known = data;
  DIR *directory = opendir ("/proc/self/fd");
  struct dirent *entry;
  int n_lines = 0;

  CHECK (directory != NULL);
  while ((entry = readdir (directory)) != NULL)
    {
      int fd = atoi (entry->d_name);

      if (entry->d_name[0] == '.' || fd == dirfd (directory) || (fd < 256 && known[fd]))
        continue;
      CHECK (fcntl (fd, F_GETSIG) == SIGKILL && fcntl (fd, F_GETOWN) == getpid ());
      CHECK (fcntl (fd, F_GETFD) == FD_CLOEXEC);
      n_lines++;
    }
  closedir (directory);
  /* Its own, not also its parent's. */
  CHECK (n_lines == 1);
  return 0;
}

static int
check_descriptors_of_a_child (void *data)
{
  struct pto_process_config config = { .main = check_descriptors, .data = data };
  struct pto_process process;
  int status;

  pto_process_init (&process, "L3/0/sub0");
  CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
  CHECK (fcntl (process.line, F_GETFD) == FD_CLOEXEC);
  while (!pto_process_reap (&process))
    sched_yield ();
  status = process.status;
  pto_process_end (&process);
  return status;
}

static void
test_descriptors (void)
{
  struct pto_process first, second, third;
  bool known[256];

  for (int fd = 0; fd < 256; fd++)
    known[fd] = fcntl (fd, F_GETFD) >= 0;
  begin (&first, wait_for_ever, NULL);
  g_assert_cmpint (fcntl (first.pidfd, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint (fcntl (first.words, F_GETFD), ==, FD_CLOEXEC);
  begin (&second, check_descriptors, known);
  expect_success (&second);
  pto_process_end (&first);
  begin (&third, check_descriptors_of_a_child, known);
  expect_success (&third);
}

static void (*handler_of (int signo)) (int)
{
  struct sigaction action;

  CHECK (sigaction (signo, NULL, &action) == 0);
  return action.sa_handler;
}

static void
some_handler (int signo)
{
  (void) signo;
}

static int
check_signals (void *data)
{
  sigset_t mask;

  /* Neither the parent's, nor the default, nor what exec() hands on; but what it ignores itself, as
   * what a shell has put into the background does, is handed on. */
  CHECK (handler_of (SIGINT) != some_handler && handler_of (SIGINT) != SIG_DFL);
  CHECK ((handler_of (SIGINT) == SIG_IGN) == (data != NULL));
  CHECK (handler_of (SIGQUIT) != SIG_IGN && handler_of (SIGQUIT) != SIG_DFL);
  raise (SIGINT);
  raise (SIGQUIT);
  CHECK (handler_of (SIGCHLD) == SIG_DFL);
  CHECK (handler_of (SIGPIPE) == (data != NULL ? SIG_IGN : SIG_DFL));
  CHECK (handler_of (SIGTSTP) == SIG_DFL);
  CHECK (handler_of (SIGUSR1) == some_handler);
  CHECK (sigprocmask (SIG_SETMASK, NULL, &mask) == 0);
  for (int signo = 1; signo < SIGRTMAX; signo++)
    CHECK (sigismember (&mask, signo) != 1);
  return 0;
}

static void
test_signals_of_the_child (void)
{
  struct pto_process process;
  sigset_t mask, old;
  /* Tests may run in the background of a shell, which ignores both. */
  void (*quit) (int) = signal (SIGQUIT, SIG_DFL);
  void (*interrupt) (int) = signal (SIGINT, some_handler);

  signal (SIGCHLD, some_handler);
  signal (SIGPIPE, some_handler);
  signal (SIGUSR1, some_handler);
  sigfillset (&mask);
  sigdelset (&mask, SIGALRM);
  pthread_sigmask (SIG_SETMASK, &mask, &old);
  begin (&process, check_signals, NULL);
  expect_success (&process);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  g_assert_true (handler_of (SIGINT) == some_handler);
  /* A program that wants EPIPE gets it in its functions, too. */
  signal (SIGPIPE, SIG_IGN);
  signal (SIGINT, SIG_IGN);
  begin (&process, check_signals, GINT_TO_POINTER (1));
  expect_success (&process);
  signal (SIGINT, interrupt);
  signal (SIGQUIT, quit);
  signal (SIGCHLD, SIG_DFL);
  signal (SIGPIPE, SIG_DFL);
  signal (SIGUSR1, SIG_DFL);
}

static void
kernel_abort (int64_t *args)
{
  (void) args;
  raise (SIGABRT);
}

static int
check_guard (void *data)
{
  struct pto_guard guard = { 0 };
  struct pto_fault fault;
  int64_t args[1] = { 0 };

  (void) data;
  CHECK (handler_of (SIGSEGV) == SIG_DFL);
  CHECK (handler_of (SIGABRT) == SIG_DFL);
  /* Its own users, its own handlers. */
  CHECK (pto_guard_init () == 0);
  pto_guard_call (&guard, kernel_abort, args, &fault);
  CHECK (fault.kind == PTO_FAULT_SIGNAL && fault.signo == SIGABRT);
  pto_guard_shutdown ();
  CHECK (handler_of (SIGABRT) == SIG_DFL);
  return 0;
}

/* The parent has guarded calls, twice, and its thread is the guest of an executor: the child was
 * begun in the middle of a run. */
static void
test_guard_of_the_child (void)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_DET, .domains = 1 };
  void (*before) (int) = handler_of (SIGSEGV);
  struct pto_guard guard = { 0 };
  struct pto_process process;
  struct pto_fault fault;
  struct pto_exec *exec;
  int64_t args[1] = { 0 };
  char error[200];

  signal (SIGSEGV, SIG_DFL);
  g_assert_cmpint (pto_guard_init (), ==, 0);
  g_assert_cmpint (pto_guard_init (), ==, 0);
  exec = pto_exec_new (&config, error, sizeof error);
  pto_exec_enter (exec);
  begin (&process, check_guard, NULL);
  expect_success (&process);
  pto_guard_call (&guard, kernel_abort, args, &fault);
  g_assert_cmpint (fault.signo, ==, SIGABRT);
  pto_exec_leave (exec);
  pto_exec_free (exec);
  pto_guard_shutdown ();
  pto_guard_shutdown ();
  signal (SIGSEGV, before);
}

static int
check_name (void *data)
{
  char name[16];

  prctl (PR_GET_NAME, (unsigned long) name, 0ul, 0ul, 0ul);
  CHECK (strcmp (name, data) == 0);
  return 0;
}

static void
test_name (void)
{
  static const char *const names[][2] = {
    { "L4/0/L3/1/sub0", "pto-sub0" },
    { "L3/0/L2/11", "pto-L2/11" },
    { "sub3", "pto-sub3" },
    { "7", "pto-7" },
    { "L3/0/a-name-that-is-too-long", "pto-a-name-that" },
  };
  struct pto_process process;

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      begin_with (&process, names[i][0], check_name, (char *) names[i][1],
                  (struct pto_process_config){ 0 });
      expect_success (&process);
    }
}

static int
check_generation (void *data)
{
  uint32_t parent = GPOINTER_TO_UINT (data);
  int status;
  pid_t pid;

  CHECK (pto_process_generation () == parent + 1);
  pid = fork ();
  if (pid == 0)
    {
      /* Not one of ours: nobody is its parent. */
      CHECK (!pto_process_is_orphan ());
      _exit (pto_process_generation () == parent + 2 ? 0 : 1);
    }
  CHECK (waitpid (pid, &status, 0) == pid && status == 0);
  CHECK (pto_process_generation () == parent + 1);
  CHECK (!pto_process_is_orphan ());
  return 0;
}

static void
test_generation (void)
{
  uint32_t generation = pto_process_generation ();
  struct pto_process process;

  g_assert_false (pto_process_is_orphan ());
  for (int i = 0; i < 2; i++)
    {
      begin (&process, check_generation, GUINT_TO_POINTER (generation));
      expect_success (&process);
    }
  g_assert_cmpuint (pto_process_generation (), ==, generation);
}

/* A fork closes what its parent hung on, and nothing else that has that number by then. */
static int
fork_twice (void *data)
{
  pid_t pid = fork ();
  int status;

  if (pid == 0)
    {
      int files[64];

      for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
        files[i] = open ("/dev/null", O_RDONLY | O_CLOEXEC);
      pid = fork ();
      if (pid == 0)
        {
          for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
            CHECK (fcntl (files[i], F_GETFD) == FD_CLOEXEC);
          _exit (0);
        }
      _exit (waitpid (pid, &status, 0) == pid && status == 0 ? 0 : 1);
    }
  CHECK (waitpid (pid, &status, 0) == pid && status == 0);
  return 0;
}

static void
test_fork_of_a_fork (void)
{
  struct pto_process process;

  begin (&process, fork_twice, NULL);
  expect_success (&process);
}

static void
test_environment (void)
{
  if (g_test_subprocess ())
    {
      setenv ("MKL_NUM_THREADS", "7", 1);
      unsetenv ("OMP_NUM_THREADS");
      unsetenv ("OPENBLAS_NUM_THREADS");
      setenv ("BLIS_NUM_THREADS", "", 1);
      pto_process_hygiene_once ();
      g_assert_cmpstr (getenv ("MKL_NUM_THREADS"), ==, "7");
      g_assert_cmpstr (getenv ("OMP_NUM_THREADS"), ==, "1");
      g_assert_cmpstr (getenv ("OPENBLAS_NUM_THREADS"), ==, "1");
      g_assert_cmpstr (getenv ("BLIS_NUM_THREADS"), ==, "");
      unsetenv ("OMP_NUM_THREADS");
      pto_process_hygiene_once ();
      g_assert_null (getenv ("OMP_NUM_THREADS"));
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  add ("/pto/process-child/output-is-written-once", test_output_is_written_once);
  add ("/pto/process-child/exit-handlers-are-the-parents", test_exit_handlers_are_the_parents);
  add ("/pto/process-child/thread-of-the-child-ends", test_thread_of_the_child_ends);
  add ("/pto/process-child/descriptors", test_descriptors);
  add ("/pto/process-child/signals-of-the-child", test_signals_of_the_child);
  add ("/pto/process-child/guard-of-the-child", test_guard_of_the_child);
  add ("/pto/process-child/name", test_name);
  add ("/pto/process-child/generation", test_generation);
  add ("/pto/process-child/fork-of-a-fork", test_fork_of_a_fork);
  g_test_add_func ("/pto/process-child/environment", test_environment);
  return g_test_run ();
}
