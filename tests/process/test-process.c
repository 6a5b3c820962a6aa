/* test-process.c: does a child tell how it ended and what it said, and leave nothing behind?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "process-test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

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

/* Whoever has several far away is told which of them says it: each line once, whatever the pieces
 * that it comes in, and none that says so itself. */
static void
test_labels (void)
{
  static const char *const given[]
      = { "one\ntw", "o\n\nL3/0/sub0: says it\n", "L3/0/sub0/L2/0: too\nL3/0/sub00: not\n",
          "L3/0/sub0", " neither\nno end" };
  static const char wanted[] = "L3/0/sub0: one\nL3/0/sub0: two\nL3/0/sub0: \nL3/0/sub0: says it\n"
                               "L3/0/sub0/L2/0: too\nL3/0/sub0: L3/0/sub00: not\n"
                               "L3/0/sub0: L3/0/sub0 neither\nL3/0/sub0: no end";
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  struct pto_process process;
  int ends[2];
  char *text;

  pto_process_init (&process, "L3/0/sub0");
  process.labels = true;
  g_assert_cmpint (pipe2 (ends, O_CLOEXEC | O_NONBLOCK), ==, 0);
  process.words = ends[0];
  for (guint i = 0; i < G_N_ELEMENTS (given); i++)
    {
      CHECK (write (ends[1], given[i], strlen (given[i])) == (ssize_t) strlen (given[i]));
      take_words (&process);
    }
  text = take_out (err);
  g_assert_cmpstr (text, ==, wanted);
  g_free (text);
  assert_last_line (&process, "no end");
  close (ends[0]);
  close (ends[1]);
}

static void
test_many_labels (void)
{
  struct stand_in err = put_in_place (STDERR_FILENO, -1);
  GString *given = g_string_new (NULL);
  GString *wanted = g_string_new (NULL);
  struct pto_process process;
  int ends[2];
  char *text;

  for (guint i = 0; given->len < 60000; i++)
    {
      g_string_append_printf (given, "%*u\n", (int) (i * 7919 % 5000), i);
      g_string_append_printf (wanted, "L3/0/sub0: %*u\n", (int) (i * 7919 % 5000), i);
    }
  pto_process_init (&process, "L3/0/sub0");
  process.labels = true;
  g_assert_cmpint (pipe2 (ends, O_CLOEXEC | O_NONBLOCK), ==, 0);
  process.words = ends[0];
  CHECK (write (ends[1], given->str, given->len) == (ssize_t) given->len);
  take_words (&process);
  text = take_out (err);
  g_assert_cmpstr (text, ==, wanted->str);
  g_free (text);
  g_string_free (given, TRUE);
  g_string_free (wanted, TRUE);
  close (ends[0]);
  close (ends[1]);
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
  add ("/pto/process/labels", test_labels);
  add ("/pto/process/many-labels", test_many_labels);
  add ("/pto/process/many-words", test_many_words);
  add ("/pto/process/words-of-who-leaves-a-grandchild", test_words_of_who_leaves_a_grandchild);
  add ("/pto/process/stderr-closed-early", test_stderr_closed_early);
  add ("/pto/process/own-stderr-is-full", test_own_stderr_is_full);
  add ("/pto/process/own-stderr-is-dead-end", test_own_stderr_is_dead_end);
  add ("/pto/process/without-standard-descriptors", test_without_standard_descriptors);
  return g_test_run ();
}
