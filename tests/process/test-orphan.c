/* test-orphan.c: do children end with their parent, whatever they do and wherever it dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "process-test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every process of the tree holds an end of alive and says on up that it is there. */
struct tree
{
  int up[2], alive[2];
  int stay[2]; /* of strangers */
  int depth;
};

static void
say_up (const struct tree *tree)
{
  CHECK (write (tree->up[1], "u", 1) == 1);
}

static int
tree_main (void *data)
{
  struct tree *tree = data;

  if (tree->depth-- > 0)
    for (int i = 0; i < 2; i++)
      {
        struct pto_process_config config = { .main = tree_main, .data = tree };
        struct pto_process process;

        pto_process_init (&process, "L3/0/sub0");
        CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
      }
  say_up (tree);
  return wait_for_ever (NULL);
}

static void
tree_init (struct tree *tree, int depth)
{
  prctl (PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  g_assert_cmpint (pipe2 (tree->up, O_CLOEXEC), ==, 0);
  g_assert_cmpint (pipe2 (tree->alive, O_CLOEXEC), ==, 0);
  tree->depth = depth;
}

static void
wait_up (const struct tree *tree, int n)
{
  char byte;

  while (n-- > 0)
    g_assert_cmpint (read (tree->up[0], &byte, 1), ==, 1);
}

/* All are gone, by themselves or by the kernel, but the root, which was killed or has ended. */
static void
wait_gone (struct tree *tree, pid_t root, int n)
{
  int status, left_alone = 0;
  char byte;
  pid_t pid;

  close (tree->alive[1]);
  /* The end of the file: nobody holds the other end any more. */
  g_assert_cmpint (read (tree->alive[0], &byte, 1), ==, 0);
  while ((pid = waitpid (-1, &status, 0)) > 0)
    if (pid != root)
      {
        if (WIFEXITED (status))
          g_assert_cmpint (WEXITSTATUS (status), ==, PTO_EXIT_ORPHAN);
        else
          g_assert_cmpint (WTERMSIG (status), ==, SIGKILL);
        left_alone++;
      }
  g_assert_cmpint (left_alone, ==, n);
  close (tree->alive[0]);
  close (tree->up[0]);
  close (tree->up[1]);
  prctl (PR_SET_CHILD_SUBREAPER, 0ul, 0ul, 0ul, 0ul);
}

static pid_t
fork_root (int (*function) (void *), struct tree *tree)
{
  pid_t root = fork ();

  if (root == 0)
    {
      alarm (DEADLINE_S);
      _exit (function (tree));
    }
  return root;
}

/* 1 + 2 + 4 + 8 processes. */
static void
test_parent_killed (void)
{
  struct tree tree;
  pid_t root;

  tree_init (&tree, 3);
  root = fork_root (tree_main, &tree);
  wait_up (&tree, 15);
  kill (root, SIGKILL);
  wait_gone (&tree, root, 14);
}

static int
exit_at_once (void *data)
{
  struct tree *tree = data;
  struct pto_process_config config = { .main = tree_main, .data = tree };
  struct pto_process process;
  char byte;

  tree->depth = 0;
  pto_process_init (&process, "L3/0/sub0");
  CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
  CHECK (read (tree->up[0], &byte, 1) == 1);
  return 0;
}

static void
test_parent_ends (void)
{
  struct tree tree;

  tree_init (&tree, 0);
  wait_gone (&tree, fork_root (exit_at_once, &tree), 1);
}

/* The parent dies in the moment between the fork and the child's first line. */
static pid_t
fork_and_die (void *data)
{
  pid_t parent = getpid (), pid = fork ();

  (void) data;
  if (pid != 0)
    _exit (0);
  while (getppid () == parent)
    sched_yield ();
  return 0;
}

/* Or a little later: when the child waits for it. */
static pid_t
fork_and_die_at_the_gate (void *data)
{
  pid_t pid = fork_and_watch (data);

  if (pid != 0)
    _exit (0);
  return 0;
}

static int
die_while_forking (void *data)
{
  struct pto_process_config config = { .main = tree_main, .data = data, .fork = fork_and_die };
  struct pto_process process;
  char state;

  if (((struct tree *) data)->depth == 1)
    {
      config.fork = fork_and_die_at_the_gate;
      config.fork_data = &state;
    }
  pto_process_init (&process, "L3/0/sub0");
  pto_process_begin (&process, &config, NULL);
  return 1;
}

static void
test_parent_dies_while_forking (void)
{
  struct tree tree;

  for (int depth = 0; depth < 2; depth++)
    {
      tree_init (&tree, depth);
      wait_gone (&tree, fork_root (die_while_forking, &tree), 1);
    }
}

/* Foreign code has blocked everything, and goes on for ever, */
static void
block_signals (void)
{
  sigset_t all;

  sigfillset (&all);
  sigprocmask (SIG_SETMASK, &all, NULL);
}

static int
run_for_ever (void *data)
{
  volatile bool on = true;

  /* Should it stay, the kernel ends it some time. */
  setrlimit (RLIMIT_CPU, &(struct rlimit){ DEADLINE_S / 2, DEADLINE_S / 2 });
  block_signals ();
  say_up (data);
  while (on)
    ;
  return 1;
}

/* has children that do so, */
static int
parent_of_one_who_runs (void *data)
{
  struct pto_process_config config = { .main = run_for_ever, .data = data };
  struct pto_process process;

  pto_process_init (&process, "L3/0/sub0");
  CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
  return run_for_ever (data);
}

/* was stopped, */
static int
stop (void *data)
{
  raise (SIGSTOP);
  /* Continued: what ends it may come a moment later. */
  return wait_for_ever (NULL);
}

/* or has closed what it does not know, and sleeps where it is asked whether it is an orphan. */
static __attribute__ ((unused)) int
close_all_and_sleep (void *data)
{
  struct tree *tree = data;
  char byte;

  for (int fd = 3; fd < 1000; fd++)
    if (fd != tree->up[1] && fd != tree->alive[0] && fd != tree->alive[1])
      close (fd);
  block_signals ();
  CHECK (!pto_process_is_orphan ());
  say_up (tree);
  CHECK (read (tree->alive[0], &byte, 1) == -1);
  return 1;
}

#ifdef __SANITIZE_THREAD__
#define DEAF 3
#else
#define DEAF 4
#endif

static int
parent_of_deaf (void *data)
{
  struct pto_process_config config[] = { { .main = run_for_ever, .data = data },
                                         { .main = parent_of_one_who_runs, .data = data },
#ifndef __SANITIZE_THREAD__
                                         /* The sanitizer interrupts its sleep too early. */
                                         { .main = close_all_and_sleep, .data = data },
#endif
                                         { .main = stop, .data = data } };
  struct pto_process process;

  for (gsize i = 0; i < G_N_ELEMENTS (config); i++)
    {
      pto_process_init (&process, "L3/0/sub0");
      CHECK (pto_process_begin (&process, &config[i], NULL) == PTO_OK);
    }
  /* The last one can not say so itself. */
  while (!pto_process_look (&process))
    sched_yield ();
  say_up (data);
  return wait_for_ever (NULL);
}

static void
test_parent_killed_children_deaf (void)
{
  struct tree tree;
  pid_t root;

  tree_init (&tree, 0);
  root = fork_root (parent_of_deaf, &tree);
  wait_up (&tree, DEAF + 1);
  kill (root, SIGKILL);
  wait_gone (&tree, root, DEAF + 1);
}

/* The thread that forked is gone, the process is not: the signal comes and means nothing, also when
 * it is blocked. */
struct asked
{
  struct pto_process process;
  int question[2], answer[2];
  bool deaf;
};

static int
answer_questions (void *data)
{
  struct asked *asked = data;
  char byte = 'u';

  close (asked->question[1]);
  if (asked->deaf)
    block_signals ();
  CHECK (write (asked->answer[1], &byte, 1) == 1);
  while (read (asked->question[0], &byte, 1) == 1)
    CHECK (write (asked->answer[1], &byte, 1) == 1);
  return 0;
}

static void *
begin_on_a_thread (void *data)
{
  struct asked *asked = data;
  char byte;

  begin (&asked->process, answer_questions, asked);
  /* It listens for the death from now on. */
  g_assert_cmpint (read (asked->answer[0], &byte, 1), ==, 1);
  return NULL;
}

static void
check_forking_thread_ends (bool deaf)
{
  struct asked asked = { .deaf = deaf };
  pthread_t thread;
  guint before = count_entries ("/proc/self/task");
  char byte = '?';

  g_assert_cmpint (pipe2 (asked.question, O_CLOEXEC), ==, 0);
  g_assert_cmpint (pipe2 (asked.answer, O_CLOEXEC), ==, 0);
  pthread_create (&thread, NULL, begin_on_a_thread, &asked);
  pthread_join (thread, NULL);
  /* It has handed on its children when the kernel has forgotten it. */
  while (count_entries ("/proc/self/task") > before)
    sched_yield ();
  g_assert_cmpint (write (asked.question[1], &byte, 1), ==, 1);
  g_assert_cmpint (read (asked.answer[0], &byte, 1), ==, 1);
  g_assert_cmpint (byte, ==, '?');
  close (asked.question[1]);
  expect_success (&asked.process);
  close (asked.question[0]);
  close (asked.answer[0]);
  close (asked.answer[1]);
}

static void
test_forking_thread_ends (void)
{
#ifdef __SANITIZE_THREAD__
  g_test_skip ("no fork of many threads under the thread sanitizer");
  return;
#endif
  check_forking_thread_ends (false);
  check_forking_thread_ends (true);
}

/* Who is forked otherwise, and stays, keeps no child alive. */
static int
fork_a_stranger (void *data)
{
  struct tree *tree = data;
  struct pto_process_config config = { .main = run_for_ever, .data = tree };
  struct pto_process process;

  pto_process_init (&process, "L3/0/sub0");
  CHECK (pto_process_begin (&process, &config, NULL) == PTO_OK);
  if (fork () == 0)
    {
      char byte;

      close (tree->alive[0]);
      close (tree->alive[1]);
      /* Until the test program closes its end. */
      close (tree->stay[1]);
      _exit (read (tree->stay[0], &byte, 1) == 0 ? 0 : 1);
    }
  say_up (tree);
  return wait_for_ever (NULL);
}

static void
test_parent_killed_strangers_stay (void)
{
  struct tree tree;
  pid_t root, pid;
  int status;
  char byte;

  tree_init (&tree, 0);
  g_assert_cmpint (pipe2 (tree.stay, O_CLOEXEC), ==, 0);
  root = fork_root (fork_a_stranger, &tree);
  wait_up (&tree, 2);
  kill (root, SIGKILL);
  close (tree.alive[1]);
  g_assert_cmpint (read (tree.alive[0], &byte, 1), ==, 0);
  /* The root and its child; the stranger goes when it is told. */
  for (int i = 0; i < 2; i++)
    g_assert_cmpint (waitpid (-1, &status, 0), >, 0);
  g_assert_cmpint (waitpid (-1, &status, WNOHANG), ==, 0);
  close (tree.stay[1]);
  pid = waitpid (-1, &status, 0);
  g_assert_cmpint (pid, >, 0);
  g_assert_cmpint (status, ==, 0);
  close (tree.stay[0]);
  close (tree.alive[0]);
  close (tree.up[0]);
  close (tree.up[1]);
  prctl (PR_SET_CHILD_SUBREAPER, 0ul, 0ul, 0ul, 0ul);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  add ("/pto/orphan/parent-killed", test_parent_killed);
  add ("/pto/orphan/parent-ends", test_parent_ends);
  add ("/pto/orphan/parent-dies-while-forking", test_parent_dies_while_forking);
  add ("/pto/orphan/parent-killed-children-deaf", test_parent_killed_children_deaf);
  add ("/pto/orphan/parent-killed-strangers-stay", test_parent_killed_strangers_stay);
  add ("/pto/orphan/forking-thread-ends", test_forking_thread_ends);
  return g_test_run ();
}
