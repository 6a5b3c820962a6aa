/* process-test.c: what do the tests of child processes share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "process-test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- nothing left behind --- */

guint
count_entries (const char *path)
{
  DIR *directory = opendir (path);
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
  guint fds = count_entries ("/proc/self/fd");
  sigset_t before, after;

  alarm (DEADLINE_S);
  pthread_sigmask (SIG_SETMASK, NULL, &before);
  ((void (*) (void)) (uintptr_t) data) ();
  pthread_sigmask (SIG_SETMASK, NULL, &after);
  for (int signo = 1; signo < SIGRTMAX; signo++)
    g_assert_cmpint (sigismember (&before, signo), ==, sigismember (&after, signo));
  g_assert_cmpint (waitpid (-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint (errno, ==, ECHILD);
  g_assert_cmpuint (count_entries ("/proc/self/fd"), ==, fds);
  alarm (0);
}

void
add (const char *path, void (*test) (void))
{
  g_test_add_data_func (path, (gconstpointer) (uintptr_t) test, run_test);
}

/* --- helpers --- */

void
begin_with (struct pto_process *process, const char *path, int (*function) (void *), void *data,
            struct pto_process_config config)
{
  struct pto_report report = { 0 };

  config.main = function;
  config.data = data;
  pto_process_init (process, path);
  g_assert_cmpint (pto_process_begin (process, &config, &report), ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpint (process->pid, >, 0);
}

void
begin (struct pto_process *process, int (*function) (void *), void *data)
{
  begin_with (process, "L3/0/sub0", function, data, (struct pto_process_config){ 0 });
}

struct pto_words words;

void
take_words (struct pto_process *process)
{
  pto_process_take_words (process, &words);
  g_assert_cmpuint (words.n, <=, sizeof words.bytes);
  pto_words_pass_on (&words);
  g_assert_cmpuint (words.n, ==, 0);
}

void
wait_dead (struct pto_process *process)
{
  for (;;)
    {
      struct pollfd fds[2] = { { .fd = process->pidfd, .events = POLLIN },
                               { .fd = process->words, .events = POLLIN } };

      if (poll (fds, 2, -1) < 0)
        continue;
      if (fds[1].revents != 0)
        take_words (process);
      if (fds[0].revents == 0)
        continue;
      g_assert_true (pto_process_reap (process));
      g_assert_false (pto_process_reap (process));
      take_words (process);
      return;
    }
}

void
assert_described (const struct pto_process *process, const char *expected)
{
  char text[200];

  pto_process_describe (process, text, sizeof text);
  g_assert_cmpstr (text, ==, expected);
}

void
assert_last_line (const struct pto_process *process, const char *expected)
{
  char text[200];

  pto_process_last_line (process, text, sizeof text);
  g_assert_cmpstr (text, ==, expected);
}

void
expect_success (struct pto_process *process)
{
  wait_dead (process);
  assert_last_line (process, "");
  assert_described (process, "exited with status 0");
  pto_process_end (process);
}

struct stand_in
put_in_place (int target, int file)
{
  struct stand_in s = { .target = target, .saved = fcntl (target, F_DUPFD_CLOEXEC, 10) };

  fflush (NULL);
  g_assert_cmpint (s.saved, >=, 0);
  s.file = file >= 0 ? file : memfd_create ("stand-in", MFD_CLOEXEC);
  g_assert_cmpint (dup2 (s.file, target), ==, target);
  return s;
}

char *
take_out (struct stand_in s)
{
  char *text = g_malloc0 (65536);

  fflush (NULL);
  g_assert_cmpint (dup2 (s.saved, s.target), ==, s.target);
  close (s.saved);
  if (lseek (s.file, 0, SEEK_SET) == 0)
    g_assert_cmpint (read (s.file, text, 65535), >=, 0);
  close (s.file);
  return text;
}

int
wait_for_ever (void *data)
{
  (void) data;
  while (true)
    pause ();
  return 0;
}

int
return_data (void *data)
{
  return GPOINTER_TO_INT (data);
}

pid_t
fork_and_watch (void *data)
{
  pid_t pid = fork ();
  char path[32], *state = data, text[64];
  ssize_t n;
  int fd;

  if (pid == 0)
    return 0;
  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  do
    {
      fd = open (path, O_RDONLY | O_CLOEXEC);
      n = fd >= 0 ? read (fd, text, sizeof text - 1) : 0;
      text[MAX (n, 0)] = '\0';
      if (fd >= 0)
        close (fd);
      *state = strstr (text, ") ") != NULL ? strstr (text, ") ")[2] : 'Z';
    }
  while (*state != 'Z' && (*state != 'S' || strstr (text, "(pto-sub0)") == NULL));
  return pid;
}
