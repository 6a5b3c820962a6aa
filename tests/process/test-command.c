/* test-command.c: is a program heard to its end, whatever this one does with its children?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every test has a deadline: alarm() ends the program.
 */
#include "../../pto/process/command.h"

#include <glib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 60

static guint
count_descriptors (void)
{
  DIR *directory = opendir ("/proc/self/fd");
  guint n = 0;

  g_assert_nonnull (directory);
  while (readdir (directory) != NULL)
    n++;
  closedir (directory);
  return n;
}

static void
run_test (gconstpointer data)
{
  guint before = count_descriptors ();

  alarm (DEADLINE_S);
  ((void (*) (void)) data) ();
  alarm (0);
  g_assert_cmpuint (count_descriptors (), ==, before);
}

static void
begin (struct pto_command *command, const char *script, const char *input, gsize size)
{
  const char *const argv[] = { "/bin/sh", "-c", script, NULL };
  struct pto_report report = { 0 };

  memset (command, 0, sizeof *command);
  g_assert_cmpint (
      pto_command_begin (command,
                         &(struct pto_command_config){ .argv = argv,
                                                       .environment = (const char *const *) environ,
                                                       .input = input,
                                                       .input_size = size,
                                                       .wants_output = true },
                         &report),
      ==, PTO_OK);
}

static void
finish (struct pto_command *command)
{
  while (!command->over)
    pto_commands_wait (&command, 1, -1, -1);
}

static void
assert_text (const struct pto_output *output, const char *text)
{
  g_autofree char *found = g_strndup (output->n > 0 ? output->data : "", output->n);

  g_assert_cmpstr (found, ==, text);
  g_assert_false (output->lost);
}

static void
expect (const char *script, int status, const char *output, const char *complaints)
{
  struct pto_command command;

  begin (&command, script, NULL, 0);
  finish (&command);
  g_assert_cmpint (command.status, ==, status);
  assert_text (&command.output, output);
  assert_text (&command.complaints, complaints);
  pto_command_end (&command);
}

static bool
is_alive (pid_t pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/stat", (int) pid);
  g_autofree char *text = NULL;

  return g_file_get_contents (path, &text, NULL, NULL) && strstr (text, ") Z ") == NULL;
}

static void
test_ends (void)
{
  expect ("echo out; echo err >&2", 0, "out\n", "err\n");
  expect ("exit 3", 3, "", "");
  expect ("cat", 0, "", "");
}

static void
test_killed (void)
{
  struct pto_command command;
  pid_t left;

  begin (&command, "kill -SEGV $$", NULL, 0);
  finish (&command);
  g_assert_cmpint (command.status, ==, 128 + SIGSEGV);
  pto_command_end (&command);
  /* The shell that would have said it: the rest ends, too. */
  begin (&command, "echo $$; kill -KILL $PPID; sleep 1000", NULL, 0);
  finish (&command);
  g_assert_cmpint (command.status, ==, -1);
  left = atoi (command.output.data);
  while (is_alive (left))
    g_usleep (1000);
  pto_command_end (&command);
}

static void
test_missing (void)
{
  const char *const argv[] = { "/nonexistent/such/program", NULL };
  struct pto_command command = { 0 };
  struct pto_report report = { 0 };
  struct pto_command_config config = { .argv = argv, .environment = (const char *const *) environ };

  g_assert_cmpint (pto_command_begin (&command, &config, &report), ==, PTO_OK);
  finish (&command);
  g_assert_cmpint (command.status, ==, 127);
  g_assert_nonnull (strstr (command.complaints.data, "/nonexistent/such/program"));
  pto_command_end (&command);
  pto_command_end (&command);
}

/* More than any pipe holds, both ways. */
static void
test_much (void)
{
  const gsize size = 5 << 20;
  g_autofree char *input = g_malloc (size);
  struct pto_command command;

  for (gsize i = 0; i < size; i++)
    input[i] = (char) ('a' + i % 23);
  begin (&command, "tee /dev/stderr", input, size);
  finish (&command);
  g_assert_cmpint (command.status, ==, 0);
  g_assert_cmpmem (command.output.data, command.output.n, input, size);
  g_assert_true (command.complaints.lost);
  g_assert_cmpuint (command.complaints.n, >=, 1 << 20);
  pto_command_end (&command);
  /* It does not read what it is given, which is no signal to this program. */
  begin (&command, "exit 4", input, size);
  finish (&command);
  g_assert_cmpint (command.status, ==, 4);
  pto_command_end (&command);
}

static void
expect_all (void)
{
  expect ("echo out; echo err >&2; exit 5", 5, "out\n", "err\n");
  expect ("(exit 6) & wait $!", 6, "", "");
  expect ("sleep 0.01; exit 7", 7, "", "");
}

static void
reap (int signo)
{
  int saved = errno;

  while (waitpid (-1, NULL, WNOHANG) > 0)
    ;
  errno = saved;
}

static _Atomic bool stop_reaping;

static void *
reap_all (void *data)
{
  while (!stop_reaping)
    if (waitpid (-1, NULL, 0) < 0)
      g_usleep (50);
  return NULL;
}

static void
test_not_waited_for (void)
{
  struct sigaction action = { .sa_handler = SIG_IGN }, before;
  pthread_t thread;

  sigaction (SIGCHLD, &action, &before);
  for (guint i = 0; i < 20; i++)
    expect_all ();
  action.sa_handler = reap;
  sigaction (SIGCHLD, &action, NULL);
  for (guint i = 0; i < 20; i++)
    expect_all ();
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDWAIT;
  sigaction (SIGCHLD, &action, NULL);
  expect_all ();
  sigaction (SIGCHLD, &before, NULL);
  g_assert_cmpint (pthread_create (&thread, NULL, reap_all, NULL), ==, 0);
  for (guint i = 0; i < 20; i++)
    expect_all ();
  stop_reaping = true;
  pthread_join (thread, NULL);
}

/* What is ignored or blocked here is not there; nor are descriptors. */
static void
test_begins_clean (void)
{
  /* The last three are ignored where tests run in the background of a shell, and then stay so. */
  static const int numbers[] = { SIGCHLD, SIGPIPE, SIGHUP, SIGINT, SIGQUIT };
  struct sigaction ignore = { .sa_handler = SIG_IGN }, otherwise = { .sa_handler = SIG_DFL };
  struct sigaction before[G_N_ELEMENTS (numbers)];
  /* Above those that a command has for a moment. */
  int fd = fcntl (STDIN_FILENO, F_DUPFD, 100);
  sigset_t all, mask;

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    sigaction (numbers[i], i < 2 ? &ignore : &otherwise, &before[i]);
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &mask);
  expect ("grep -c -E '^SigBlk:.0*$' /proc/self/status", 0, "1\n", "");
  expect ("grep SigIgn /proc/self/status | tail -c 6", 0, "00000\n", "");
#ifdef HAVE_SPAWN_CLOSEFROM
  expect ("ls /proc/self/fd", 0, "0\n1\n2\n3\n", ""); /* the last is of ls itself */
#endif
  pthread_sigmask (SIG_SETMASK, &mask, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    sigaction (numbers[i], &before[i], NULL);
  close (fd);
}

/* A child that was forked meanwhile has the same descriptors, and keeps them. */
static void
test_forked_meanwhile (void)
{
  struct pto_command command;
  pid_t child;

  begin (&command, "cat", "all of it\n", 10);
  child = fork ();
  if (child == 0)
    for (;;)
      pause ();
  g_assert_cmpint (child, >, 0);
  finish (&command);
  g_assert_cmpint (command.status, ==, 0);
  assert_text (&command.output, "all of it\n");
  pto_command_end (&command);
  g_assert_cmpint (kill (child, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (child, NULL, 0), ==, child);
}

/* Its end is not that of all that it has begun. */
static void
test_background (void)
{
  struct pto_command command;
  pid_t left;

  begin (&command, "sleep 1000 & echo $!", NULL, 0);
  finish (&command);
  g_assert_cmpint (command.status, ==, 0);
  g_assert_cmpuint (command.output.n, >, 1);
  left = atoi (command.output.data);
  g_assert_cmpint (kill (left, SIGKILL), ==, 0);
  pto_command_end (&command);
}

static void *
write_when_told (void *data)
{
  const int *fds = data;
  char byte;

  g_assert_cmpint (read (fds[0], &byte, 1), ==, 1);
  g_usleep (10000);
  g_assert_cmpint (write (fds[1], "", 1), ==, 1);
  return NULL;
}

/* All of its processes end, also while it writes without end. */
static void
test_cancel (void)
{
  static const char *const scripts[]
      = { "sh -c 'echo $$; sleep 1000' & wait", "echo $$; yes; true", "echo $$; yes >&2; true" };

  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++)
    {
      struct pto_command command, *one = &command;
      int told[2], cancel[2];
      pthread_t thread;
      pid_t pid;

      g_assert_cmpint (pipe (told), ==, 0);
      g_assert_cmpint (pipe (cancel), ==, 0);
      begin (&command, scripts[i], NULL, 0);
      pthread_create (&thread, NULL, write_when_told, (int[]){ told[0], cancel[1] });
      g_assert_cmpint (write (told[1], "", 1), ==, 1);
      pto_commands_wait (&one, 1, cancel[0], -1);
      pthread_join (thread, NULL);
      /* Cancelled already: it comes back at once, and what was written by then is read. */
      while (command.output.n == 0 || memchr (command.output.data, '\n', command.output.n) == NULL)
        {
          g_usleep (1000);
          pto_commands_wait (&one, 1, cancel[0], -1);
        }
      g_assert_false (command.over);
      pid = atoi (command.output.data);
      g_assert_true (is_alive (pid));
      pto_command_end (&command);
      while (is_alive (pid))
        g_usleep (1000);
      for (guint j = 0; j < 2; j++)
        {
          close (told[j]);
          close (cancel[j]);
        }
    }
}

/* Nothing of it is left when the process that began it is killed. */
static void
test_orphan (void)
{
  g_autofree char *dir = g_dir_make_tmp (NULL, NULL);
  g_autofree char *file = g_build_filename (dir, "pid", NULL);
  g_autofree char *script = g_strdup_printf (
      "sh -c 'echo $$ > %s.new; mv %s.new %s; sleep 1000' & wait", file, file, file);
  g_autofree char *text = NULL;
  pid_t parent = fork (), pid;

  if (parent == 0)
    {
      struct pto_command command;

      begin (&command, script, NULL, 0);
      finish (&command);
      _exit (1);
    }
  while (!g_file_get_contents (file, &text, NULL, NULL))
    g_usleep (1000);
  pid = atoi (text);
  g_assert_true (is_alive (pid));
  g_assert_cmpint (kill (parent, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (parent, NULL, 0), ==, parent);
  while (is_alive (pid))
    g_usleep (1000);
  g_assert_cmpint (unlink (file), ==, 0);
  g_assert_cmpint (rmdir (dir), ==, 0);
}

static void
test_several (void)
{
  enum
  {
    N = 12
  };
  struct pto_command commands[N], *all[N];
  guint over = 0;

  for (guint i = 0; i < N; i++)
    {
      g_autofree char *script
          = g_strdup_printf ("sleep 0.%02u; echo %u; exit %u", 24 - 2 * i, i, i);

      all[i] = &commands[i];
      begin (&commands[i], script, NULL, 0);
    }
  while (over < N)
    {
      guint before = over;

      pto_commands_wait (all, N, -1, -1);
      over = 0;
      for (guint i = 0; i < N; i++)
        over += commands[i].over;
      g_assert_cmpuint (over, >, before);
    }
  for (guint i = 0; i < N; i++)
    {
      g_assert_cmpint (commands[i].status, ==, (int) i);
      g_assert_cmpint (atoi (commands[i].output.data), ==, (int) i);
      pto_command_end (&commands[i]);
    }
}

/* The first waits for the second, which waits until what it says and is told has been passed on. */
static void
test_one_waits_for_another (void)
{
  enum
  {
    SIZE = 300000
  };
  g_autofree char *dir = g_dir_make_tmp (NULL, NULL);
  g_autofree char *fifo = g_build_filename (dir, "fifo", NULL);
  g_autofree char *waits = g_strdup_printf ("cat %s", fifo);
  g_autofree char *works = g_strdup_printf ("cat; echo done > %s", fifo);
  g_autofree char *input = g_strnfill (SIZE, 'x');
  struct pto_command commands[2], *all[2];

  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  for (guint i = 0; i < 2; i++)
    {
      all[i] = &commands[i];
      begin (&commands[i], i == 0 ? waits : works, i == 0 ? NULL : input, i == 0 ? 0 : SIZE);
    }
  while (!commands[0].over || !commands[1].over)
    pto_commands_wait (all, 2, -1, -1);
  assert_text (&commands[0].output, "done\n");
  g_assert_cmpmem (commands[1].output.data, commands[1].output.n, input, SIZE);
  for (guint i = 0; i < 2; i++)
    pto_command_end (&commands[i]);
  g_assert_cmpint (unlink (fifo), ==, 0);
  g_assert_cmpint (rmdir (dir), ==, 0);
}

/* Where standard descriptors are closed, the command's own take their places. */
static void
test_no_standard_descriptors (void)
{
  pid_t pid = fork ();
  int status;

  if (pid == 0)
    {
      struct pto_command command = { 0 }, *one = &command;
      struct pto_report report = { 0 };

      for (int fd = 0; fd < 10; fd++)
        close (fd);
      if (pto_command_begin (
              &command,
              &(struct pto_command_config){
                  .argv = (const char *const[]){ "/bin/sh", "-c", "cat; echo err >&2", NULL },
                  .environment = (const char *const *) environ,
                  .input = "in",
                  .input_size = 2,
                  .wants_output = true },
              &report)
          != PTO_OK)
        _exit (1);
      while (!command.over)
        pto_commands_wait (&one, 1, -1, -1);
      _exit (command.status == 0 && command.output.n == 2 && command.complaints.n == 4 ? 0 : 2);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
}

/* The message names descriptors, at whichever limit they run out. */
static void
test_no_descriptors (void)
{
  const char *const argv[] = { "/bin/true", NULL };
  struct rlimit before;

  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &before), ==, 0);
  for (rlim_t n = 3; n < 14; n++)
    {
      struct rlimit limit = { n, before.rlim_max };
      struct pto_command command = { 0 };
      struct pto_report report = { 0 };

      g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &limit), ==, 0);
      g_assert_cmpint (
          pto_command_begin (&command,
                             &(struct pto_command_config){
                                 .argv = argv, .environment = (const char *const *) environ },
                             &report),
          !=, PTO_OK);
      g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &before), ==, 0);
      g_assert_cmpstr (report.message, ==, "/bin/true can not be run: Too many open files");
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(path, test) g_test_add_data_func (path, (gconstpointer) test, run_test)
  ADD ("/pto/command/ends", test_ends);
  ADD ("/pto/command/killed", test_killed);
  ADD ("/pto/command/missing", test_missing);
  ADD ("/pto/command/much", test_much);
  ADD ("/pto/command/not-waited-for", test_not_waited_for);
  ADD ("/pto/command/begins-clean", test_begins_clean);
  ADD ("/pto/command/forked-meanwhile", test_forked_meanwhile);
  ADD ("/pto/command/background", test_background);
  ADD ("/pto/command/cancel", test_cancel);
  ADD ("/pto/command/orphan", test_orphan);
  ADD ("/pto/command/several", test_several);
  ADD ("/pto/command/one-waits-for-another", test_one_waits_for_another);
  ADD ("/pto/command/no-standard-descriptors", test_no_standard_descriptors);
  ADD ("/pto/command/no-descriptors", test_no_descriptors);
#undef ADD
  return g_test_run ();
}
