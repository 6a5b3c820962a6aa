/* test-process.c: does a child begin clean, tell how it ended, and leave nothing behind?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is to be seen in a child is checked there and told by its exit status or by what it writes.
 * Every test has a deadline: alarm() ends the program, and the children go with it.
 */
#include "../../pto/exec/pto_exec.h"
#include "../../pto/process/process.h"

#include <glib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define DEADLINE_S 60

/* In a child: no framework there. */
#define CHECK(condition)                                                        \
  do                                                                            \
    if (!(condition))                                                           \
      {                                                                         \
        dprintf (STDERR_FILENO, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        _exit (99);                                                             \
      }                                                                         \
  while (0)

/* --- nothing left behind --- */

static guint
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

static void
add (const char *path, void (*test) (void))
{
  g_test_add_data_func (path, (gconstpointer) (uintptr_t) test, run_test);
}

/* --- helpers --- */

static void
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

static void
begin (struct pto_process *process, int (*function) (void *), void *data)
{
  begin_with (process, "L3/0/sub0", function, data, (struct pto_process_config){ 0 });
}

static struct pto_words words;

static void
take_words (struct pto_process *process)
{
  pto_process_take_words (process, &words);
  g_assert_cmpuint (words.n, <=, sizeof words.bytes);
  pto_words_pass_on (&words);
  g_assert_cmpuint (words.n, ==, 0);
}

/* As a keeper does: looks at both descriptors until the child is dead. */
static void
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

static void
assert_described (const struct pto_process *process, const char *expected)
{
  char text[200];

  pto_process_describe (process, text, sizeof text);
  g_assert_cmpstr (text, ==, expected);
}

static void
assert_last_line (const struct pto_process *process, const char *expected)
{
  char text[200];

  pto_process_last_line (process, text, sizeof text);
  g_assert_cmpstr (text, ==, expected);
}

/* The child has found everything right. */
static void
expect_success (struct pto_process *process)
{
  wait_dead (process);
  assert_last_line (process, "");
  assert_described (process, "exited with status 0");
  pto_process_end (process);
}

/* A file that stands in for a standard descriptor. */
struct stand_in
{
  int target, saved, file;
};

static struct stand_in
put_in_place (int target, int file)
{
  struct stand_in s = { .target = target, .saved = fcntl (target, F_DUPFD_CLOEXEC, 10) };

  fflush (NULL);
  g_assert_cmpint (s.saved, >=, 0);
  s.file = file >= 0 ? file : memfd_create ("stand-in", MFD_CLOEXEC);
  g_assert_cmpint (dup2 (s.file, target), ==, target);
  return s;
}

static char *
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

static int
wait_for_ever (void *data)
{
  (void) data;
  while (true)
    pause ();
  return 0;
}

static int
return_data (void *data)
{
  return GPOINTER_TO_INT (data);
}

/* --- how it ends --- */

static int
raise_data (void *data)
{
  signal (GPOINTER_TO_INT (data), SIG_DFL);
  raise (GPOINTER_TO_INT (data));
  return 98;
}

static void
test_status (void)
{
  struct pto_process process;

  for (int status = 0; status < 256; status += 51)
    {
      char *expected = g_strdup_printf ("exited with status %d", status);

      begin (&process, return_data, GINT_TO_POINTER (status));
      wait_dead (&process);
      g_assert_cmpint (process.code, ==, CLD_EXITED);
      assert_described (&process, expected);
      pto_process_end (&process);
      g_assert_cmpint (process.pidfd, ==, -1);
      g_assert_cmpint (process.words, ==, -1);
      g_free (expected);
    }
}

static void
test_signals (void)
{
  static const int signals[] = { SIGKILL, SIGSEGV, SIGABRT, SIGTERM };
  struct pto_process process;

  for (gsize i = 0; i < G_N_ELEMENTS (signals); i++)
    {
      char *expected = g_strdup_printf ("died (signal %d, %s)", signals[i], strsignal (signals[i]));

      begin (&process, raise_data, GINT_TO_POINTER (signals[i]));
      wait_dead (&process);
      assert_described (&process, expected);
      pto_process_end (&process);
      g_free (expected);
    }
}

static void
test_kill (void)
{
  struct pto_process process;

  begin (&process, wait_for_ever, NULL);
  assert_described (&process, "is alive");
  g_assert_false (pto_process_reap (&process));
  pto_process_kill (&process, "stopped for 2 s");
  pto_process_kill (&process, "another reason");
  wait_dead (&process);
  assert_described (&process, "was ended: stopped for 2 s");
  pto_process_kill (&process, "too late");
  pto_process_end (&process);
  assert_described (&process, "was ended: stopped for 2 s");

  /* It was faster: its own end counts. */
  begin (&process, return_data, GINT_TO_POINTER (7));
  g_assert_cmpint (poll (&(struct pollfd){ .fd = process.pidfd, .events = POLLIN }, 1, -1), ==, 1);
  pto_process_kill (&process, "did not answer");
  wait_dead (&process);
  assert_described (&process, "exited with status 7");
  pto_process_end (&process);

  /* Straight to the end. */
  begin (&process, wait_for_ever, NULL);
  pto_process_end (&process);
  g_assert_true (process.dead);
  assert_described (&process, "was ended: not needed any more");
  pto_process_end (&process);
}

static void
test_begin_again (void)
{
  struct pto_process_config config = { .main = return_data, .data = GINT_TO_POINTER (2) };
  struct pto_report report = { 0 };
  struct pto_process process;

  begin (&process, wait_for_ever, NULL);
  pto_process_kill (&process, "to begin again");
  wait_dead (&process);
  g_assert_cmpint (pto_process_begin (&process, &config, &report), ==, PTO_OK);
  g_assert_false (process.dead);
  g_assert_cmpstr (process.path, ==, "L3/0/sub0");
  wait_dead (&process);
  assert_described (&process, "exited with status 2");
  pto_process_end (&process);
}

static void
wait_look (const struct pto_process *process, bool stopped)
{
  while (pto_process_look (process) != stopped)
    sched_yield ();
}

static void
test_stopped (void)
{
  struct pto_process process;

  begin (&process, wait_for_ever, NULL);
  g_assert_false (pto_process_look (&process));
  kill (process.pid, SIGSTOP);
  wait_look (&process, true);
  /* Asked again and again. */
  g_assert_true (pto_process_look (&process));
  g_assert_false (pto_process_reap (&process));
  kill (process.pid, SIGCONT);
  wait_look (&process, false);
  kill (process.pid, SIGSTOP);
  wait_look (&process, true);
  pto_process_kill (&process, "stopped");
  wait_dead (&process);
  g_assert_false (pto_process_look (&process));
  assert_described (&process, "was ended: stopped");
  pto_process_end (&process);
}

/* The program does not leave its children to us. */
static void
test_somebody_else_waits (void)
{
  struct pto_process process;

  begin (&process, return_data, GINT_TO_POINTER (3));
  g_assert_cmpint (waitpid (-1, NULL, 0), ==, process.pid);
  wait_dead (&process);
  assert_described (&process, "died (somebody else has waited for it: how is not known)");
  pto_process_end (&process);

  signal (SIGCHLD, SIG_IGN);
  begin (&process, return_data, GINT_TO_POINTER (3));
  wait_dead (&process);
  assert_described (&process, "died (somebody else has waited for it: how is not known)");
  pto_process_end (&process);
  begin (&process, wait_for_ever, NULL);
  pto_process_end (&process);
  g_assert_true (process.dead);
  signal (SIGCHLD, SIG_DFL);
}

/* Gives the child's state when it sleeps, all set up, or is dead. */
static pid_t
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

/* It does not run before it is watched: its number could be somebody else's by then. */
static void
test_waits_to_be_watched (void)
{
  struct pto_process process;
  char state;

  begin_with (&process, "L3/0/sub0", return_data, NULL,
              (struct pto_process_config){ .fork = fork_and_watch, .fork_data = &state });
  g_assert_cmpint (state, ==, 'S');
  expect_success (&process);
}

static pid_t
fork_refused (void *data)
{
  errno = GPOINTER_TO_INT (data);
  return -1;
}

/* What a binding gives for a function of its language that raised. */
static pid_t
fork_raised (void *data)
{
  (void) data;
  errno = ENOENT; /* of its own business */
  return 0;
}

static void
test_fork_refused (void)
{
  struct pto_process_config config
      = { .main = wait_for_ever, .fork = fork_refused, .fork_data = GINT_TO_POINTER (EAGAIN) };
  struct pto_report report = { 0 };
  struct pto_process process;

  pto_process_init (&process, "L4/0/L3/1/sub0");
  g_assert_cmpint (pto_process_begin (&process, &config, &report), ==, PTO_STATUS_SYSTEM);
  g_assert_cmpstr (report.message, ==,
                   "L4/0/L3/1/sub0 can not be started: fork: Resource temporarily unavailable");
  config.fork_data = GINT_TO_POINTER (0);
  report.status = PTO_OK;
  g_assert_cmpint (pto_process_begin (&process, &config, &report), ==, PTO_STATUS_SYSTEM);
  g_assert_cmpstr (report.message, ==,
                   "L4/0/L3/1/sub0 can not be started: fork: no reason was given");
  config.fork = fork_raised;
  report.status = PTO_OK;
  g_assert_cmpint (pto_process_begin (&process, &config, &report), ==, PTO_STATUS_SYSTEM);
  g_assert_cmpstr (report.message, ==,
                   "L4/0/L3/1/sub0 can not be started: fork: no reason was given");
  g_assert_false (pto_process_reap (&process));
  pto_process_end (&process);
}

/* A copy of the parent does not touch what is not its. */
static void
test_copy_of_the_parent (void)
{
  struct pto_process process;
  pid_t copy;
  int status;

  begin (&process, wait_for_ever, NULL);
  copy = fork ();
  if (copy == 0)
    {
      pto_process_kill (&process, "wrongly");
      CHECK (!process.killed);
      CHECK (!pto_process_look (&process));
      CHECK (!pto_process_reap (&process));
      pto_process_end (&process);
      CHECK (process.pidfd == -1 && process.words == -1 && !process.dead);
      _exit (0);
    }
  g_assert_cmpint (waitpid (copy, &status, 0), ==, copy);
  g_assert_cmpint (status, ==, 0);
  kill (process.pid, SIGSTOP);
  /* Alive, or it could not be stopped. */
  wait_look (&process, true);
  pto_process_end (&process);
}

/* --- last words --- */

static int
speak (void *data)
{
  const char *text = data;

  for (size_t n = strlen (text), done = 0; done < n;)
    {
      ssize_t written = write (STDERR_FILENO, text + done, n - done);

      CHECK (written > 0);
      done += (size_t) written;
    }
  return 3;
}

static void
test_words_are_passed_on_and_kept (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  struct pto_process process;
  char *text;

  begin (&process, speak, (char *) "first\nthe last \x1b[31mword\xff\n\n  \n");
  wait_dead (&process);
  text = take_out (err);
  g_assert_cmpstr (text, ==, "first\nthe last \x1b[31mword\xff\n\n  \n");
  assert_last_line (&process, "the last ?[31mword?");
  pto_process_end (&process);
  assert_last_line (&process, "the last ?[31mword?");
  g_free (text);
}

/* More than is kept, and more than the pipe holds. */
static void
test_many_words (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, open ("/dev/null", O_RDWR | O_CLOEXEC));
  GString *text = g_string_new (NULL);
  struct pto_process process;

  for (guint i = 0; i < 20000; i++)
    g_string_append_printf (text, "line %u of many\n", i);
  begin (&process, speak, text->str);
  wait_dead (&process);
  g_free (take_out (err));
  assert_last_line (&process, "line 19999 of many");
  g_assert_cmpuint (process.last_bytes, ==, PTO_LAST_WORDS);
  g_assert_cmpmem (process.last, PTO_LAST_WORDS, text->str + text->len - PTO_LAST_WORDS,
                   PTO_LAST_WORDS);
  pto_process_end (&process);
  g_string_free (text, TRUE);
}

static int
leave_a_grandchild (void *data)
{
  int *release = data;
  char byte;

  if (fork () == 0)
    {
      /* Holds standard error, and so the pipe, longer than its parent lives. */
      close (release[1]);
      CHECK (read (release[0], &byte, 1) == 0);
      _exit (0);
    }
  return speak ((char *) "left\n");
}

static void
test_words_of_who_leaves_a_grandchild (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  struct pto_process process;
  int release[2], status;
  char *text;

  /* So that it can be waited for. */
  prctl (PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  g_assert_cmpint (pipe2 (release, O_CLOEXEC), ==, 0);
  begin (&process, leave_a_grandchild, release);
  wait_dead (&process);
  assert_last_line (&process, "left");
  pto_process_end (&process);
  close (release[1]);
  g_assert_cmpint (waitpid (-1, &status, 0), >, 0);
  g_assert_cmpint (status, ==, 0);
  close (release[0]);
  prctl (PR_SET_CHILD_SUBREAPER, 0ul, 0ul, 0ul, 0ul);
  text = take_out (err);
  g_assert_cmpstr (text, ==, "left\n");
  g_free (text);
}

static int
close_stderr (void *data)
{
  (void) data;
  close (STDERR_FILENO);
  return wait_for_ever (NULL);
}

static void
test_stderr_closed_early (void)
{
  struct pto_process process;

  begin (&process, close_stderr, NULL);
  while (process.words >= 0)
    {
      /* Readable: the end of the file. */
      g_assert_cmpint (poll (&(struct pollfd){ .fd = process.words, .events = POLLIN }, 1, -1), ==,
                       1);
      take_words (&process);
    }
  g_assert_false (pto_process_reap (&process));
  pto_process_end (&process);
  assert_last_line (&process, "");
}

/* Somewhere to write to; fds[0] reads it. It has no room, or only so much. */
enum outlet
{
  PIPE,
  TERMINAL,
  SOCKET
};

static void
outlet_open (enum outlet outlet, int fds[2])
{
  struct termios raw;

  if (outlet == PIPE)
    g_assert_cmpint (pipe2 (fds, O_CLOEXEC), ==, 0);
  else if (outlet == SOCKET)
    g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  else
    {
      fds[0] = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC);
      g_assert_cmpint (fds[0], >=, 0);
      g_assert_cmpint (grantpt (fds[0]) | unlockpt (fds[0]), ==, 0);
      fds[1] = open (ptsname (fds[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
      g_assert_cmpint (fds[1], >=, 0);
      g_assert_cmpint (tcgetattr (fds[1], &raw), ==, 0);
      cfmakeraw (&raw);
      g_assert_cmpint (tcsetattr (fds[1], TCSANOW, &raw), ==, 0);
    }
  fcntl (fds[0], F_SETFL, O_NONBLOCK);
}

static void
outlet_fill (const int fds[2], gsize room)
{
  char filling[4096];

  memset (filling, '.', sizeof filling);
  fcntl (fds[1], F_SETFL, O_NONBLOCK);
  while (write (fds[1], filling, sizeof filling) > 0)
    ;
  fcntl (fds[1], F_SETFL, 0);
  if (room > 0)
    g_assert_cmpint (read (fds[0], filling, room), >, 0);
}

/* What is there to be read, without the filling; so much at least, a terminal takes its time. */
static GString *
outlet_read (const int fds[2], gsize wanted)
{
  struct pollfd pollfd = { .fd = fds[0], .events = POLLIN };
  GString *text = g_string_new (NULL);
  char bytes[4096];

  for (;;)
    {
      ssize_t n = read (fds[0], bytes, sizeof bytes);

      for (ssize_t i = 0; i < n; i++)
        if (bytes[i] != '.')
          g_string_append_c (text, bytes[i]);
      if (n > 0)
        continue;
      if (text->len >= wanted)
        return text;
      g_assert_cmpint (poll (&pollfd, 1, -1), ==, 1);
    }
}

/* Nobody reads our own standard error: what it has no room for is left out, and the keeper is not
 * kept by it. */
static void
test_own_stderr_is_full (void)
{
  for (guint i = 0; i < 6; i++)
    {
      GString *expected = g_string_new (NULL), *text;
      struct pto_process process;
      struct stand_in err;
      guint64 left_out;
      int fds[2];

      /* Longer than any room, without being one line. */
      for (guint n = 0; n < 3000; n++)
        g_string_append_printf (expected, "number %u\n", n);
      outlet_open ((enum outlet) (i / 2), fds);
      outlet_fill (fds, i % 2 == 0 ? 0 : 300);
      err = put_in_place (STDERR_FILENO, fcntl (fds[1], F_DUPFD_CLOEXEC, 0));
      begin (&process, speak, expected->str);
      wait_dead (&process);
      assert_last_line (&process, "number 2999");
      pto_process_end (&process);
      g_assert_true (words.deaf);
      left_out = words.left_out;
      g_assert_cmpuint (left_out, >, 0);
      g_assert_cmpuint (left_out, <=, expected->len);
      /* Where a terminal has its bytes is its own business. */
      if (i % 2 == 0 && i / 2 != TERMINAL)
        g_assert_cmpuint (left_out, ==, expected->len);
      /* The flags are everybody's who has the terminal. */
      g_assert_cmpint (fcntl (STDERR_FILENO, F_GETFL) & O_NONBLOCK, ==, 0);
      text = outlet_read (fds, expected->len - left_out);
      g_assert_cmpuint (text->len, ==, expected->len - left_out);
      g_assert_cmpint (strncmp (text->str, expected->str, text->len), ==, 0);
      g_string_free (text, TRUE);
      /* Somebody reads again. */
      begin (&process, speak, (char *) "and then\n");
      wait_dead (&process);
      pto_process_end (&process);
      g_assert_false (words.deaf);
      g_assert_cmpuint (words.left_out, ==, 0);
      g_string_printf (expected,
                       "\npto: here %" G_GUINT64_FORMAT
                       " bytes that workers wrote are left out\nand then\n",
                       left_out);
      text = outlet_read (fds, expected->len);
      g_assert_cmpstr (text->str, ==, expected->str);
      g_string_free (text, TRUE);
      g_string_free (expected, TRUE);
      g_free (take_out (err));
      close (fds[0]);
      close (fds[1]);
    }
}

/* Runs a function in a process of its own, for what is told once a process. */
static void
in_own_process (void (*function) (const void *), const void *data)
{
  pid_t pid = fork ();
  int status;

  if (pid == 0)
    {
      alarm (DEADLINE_S);
      function (data);
      _exit (0);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
}

/* Where nothing can be written to. Signals do by default what ends a program. */
struct dead_end
{
  int error;
  int fd;
  struct stand_in err;
};

static void
speak_to_dead_end (const void *data)
{
  const struct dead_end *end = data;
  struct rlimit before, limit;
  struct pto_process process;
  sigset_t pending;

  CHECK (signal (SIGPIPE, SIG_DFL) != SIG_ERR && signal (SIGXFSZ, SIG_DFL) != SIG_ERR);
  CHECK (getrlimit (RLIMIT_FSIZE, &before) == 0);
  limit = (struct rlimit){ .rlim_cur = 7, .rlim_max = before.rlim_max };
  for (guint i = 1; i <= 2; i++)
    {
      begin (&process, speak, (char *) "nobody hears this\n");
      CHECK (setrlimit (RLIMIT_FSIZE, &limit) == 0);
      wait_dead (&process);
      CHECK (setrlimit (RLIMIT_FSIZE, &before) == 0);
      assert_last_line (&process, "nobody hears this");
      pto_process_end (&process);
      CHECK (words.left_out == (end->error == EFBIG ? i * 18 - 7 : i * 18));
      /* Told once. */
      CHECK (pto_process_take_unheard () == (i == 1 ? end->error : 0));
      CHECK (pto_process_take_unheard () == 0);
    }
  /* A signal that the program has caused and waits for is its own. */
  sigemptyset (&pending);
  sigaddset (&pending, SIGPIPE);
  CHECK (pthread_sigmask (SIG_BLOCK, &pending, NULL) == 0);
  CHECK (raise (SIGPIPE) == 0);
  begin (&process, speak, (char *) "nobody hears this\n");
  CHECK (setrlimit (RLIMIT_FSIZE, &limit) == 0);
  wait_dead (&process);
  CHECK (setrlimit (RLIMIT_FSIZE, &before) == 0);
  pto_process_end (&process);
  CHECK (sigpending (&pending) == 0);
  CHECK (sigismember (&pending, SIGPIPE) == 1 && sigismember (&pending, SIGXFSZ) == 0);
}

static void
test_own_stderr_is_dead_end (void)
{
  static const int errors[] = { EPIPE, EIO, EPIPE, ENOSPC, EFBIG, EBADF };

  for (guint i = 0; i < G_N_ELEMENTS (errors); i++)
    {
      struct dead_end end = { .error = errors[i] };
      g_autofree char *text = NULL;
      int fds[2];

      if (i <= SOCKET)
        {
          outlet_open ((enum outlet) i, fds);
          close (fds[0]);
          end.err = put_in_place (STDERR_FILENO, fds[1]);
        }
      else if (errors[i] == EFBIG)
        end.err = put_in_place (STDERR_FILENO, -1);
      else
        end.err = put_in_place (
            STDERR_FILENO,
            open ("/dev/full", (errors[i] == EBADF ? O_RDONLY : O_RDWR) | O_CLOEXEC));
      in_own_process (speak_to_dead_end, &end);
      text = take_out (end.err);
      if (errors[i] == EFBIG)
        g_assert_cmpstr (text, ==, "nobody ");
    }
}

static void
test_stderr_inherited (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  struct pto_process process;
  char *text;

  begin_with (&process, "L3/0/sub0", speak, (char *) "straight\n",
              (struct pto_process_config){ .inherit_stderr = true });
  g_assert_cmpint (process.words, ==, -1);
  wait_dead (&process);
  text = take_out (err);
  g_assert_cmpstr (text, ==, "straight\n");
  assert_last_line (&process, "");
  pto_process_end (&process);
  g_free (text);
}

/* A program without standard descriptors, from the given one on: ours must not slip into their
 * places. */
static int
live_without (int first)
{
  struct pto_process_config config = { .main = speak, .data = (char *) "heard\n" };
  struct pto_process process;
  char text[64];

  alarm (DEADLINE_S);
  for (int fd = first; fd <= 2; fd++)
    close (fd);
  pto_process_init (&process, "L3/0/sub0");
  if (pto_process_begin (&process, &config, NULL) != PTO_OK || process.pidfd <= 2
      || process.words <= 2)
    return 1;
  while (!pto_process_reap (&process))
    sched_yield ();
  pto_process_take_words (&process, &words);
  pto_process_last_line (&process, text, sizeof text);
  if (strcmp (text, "heard") != 0 || process.status != 3)
    return 2;
  pto_process_end (&process);
  for (int fd = first; fd <= 2; fd++)
    if (fcntl (fd, F_GETFD) >= 0)
      return 3;
  return 0;
}

static void
test_without_standard_descriptors (void)
{
  for (int first = 0; first <= 2; first++)
    {
      pid_t root = fork ();
      int status;

      if (root == 0)
        _exit (live_without (first));
      g_assert_cmpint (waitpid (root, &status, 0), ==, root);
      g_assert_cmpint (status, ==, 0);
    }
}

/* --- hygiene --- */

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

/* --- the parent dies --- */

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
  return 1;
}

/* or has closed what it does not know, and sleeps where it is asked whether it is an orphan. */
static int
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

static int
parent_of_deaf (void *data)
{
  struct pto_process_config config[] = { { .main = run_for_ever, .data = data },
                                         { .main = parent_of_one_who_runs, .data = data },
                                         { .main = close_all_and_sleep, .data = data },
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
  wait_up (&tree, 5);
  kill (root, SIGKILL);
  wait_gone (&tree, root, 5);
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
  add ("/pto/process/status", test_status);
  add ("/pto/process/signals", test_signals);
  add ("/pto/process/kill", test_kill);
  add ("/pto/process/begin-again", test_begin_again);
  add ("/pto/process/stopped", test_stopped);
  add ("/pto/process/somebody-else-waits", test_somebody_else_waits);
  add ("/pto/process/waits-to-be-watched", test_waits_to_be_watched);
  add ("/pto/process/fork-refused", test_fork_refused);
  add ("/pto/process/copy-of-the-parent", test_copy_of_the_parent);
  add ("/pto/process/words-are-passed-on-and-kept", test_words_are_passed_on_and_kept);
  add ("/pto/process/many-words", test_many_words);
  add ("/pto/process/words-of-who-leaves-a-grandchild", test_words_of_who_leaves_a_grandchild);
  add ("/pto/process/stderr-closed-early", test_stderr_closed_early);
  add ("/pto/process/own-stderr-is-full", test_own_stderr_is_full);
  add ("/pto/process/own-stderr-is-dead-end", test_own_stderr_is_dead_end);
  add ("/pto/process/stderr-inherited", test_stderr_inherited);
  add ("/pto/process/without-standard-descriptors", test_without_standard_descriptors);
  add ("/pto/process/output-is-written-once", test_output_is_written_once);
  add ("/pto/process/exit-handlers-are-the-parents", test_exit_handlers_are_the_parents);
  add ("/pto/process/thread-of-the-child-ends", test_thread_of_the_child_ends);
  add ("/pto/process/descriptors", test_descriptors);
  add ("/pto/process/signals-of-the-child", test_signals_of_the_child);
  add ("/pto/process/guard-of-the-child", test_guard_of_the_child);
  add ("/pto/process/name", test_name);
  add ("/pto/process/generation", test_generation);
  add ("/pto/process/fork-of-a-fork", test_fork_of_a_fork);
  g_test_add_func ("/pto/process/environment", test_environment);
  add ("/pto/process/parent-killed", test_parent_killed);
  add ("/pto/process/parent-ends", test_parent_ends);
  add ("/pto/process/parent-dies-while-forking", test_parent_dies_while_forking);
  add ("/pto/process/parent-killed-children-deaf", test_parent_killed_children_deaf);
  add ("/pto/process/parent-killed-strangers-stay", test_parent_killed_strangers_stay);
  add ("/pto/process/forking-thread-ends", test_forking_thread_ends);
  return g_test_run ();
}
