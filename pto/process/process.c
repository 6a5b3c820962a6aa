/* process.c: how is a child process begun, watched and ended, so that nothing of it stays?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A child ends with its parent, level by level down the tree, each process being the parent of the
 * next. Two things see to it, both the kernel's, in every phase of the child:
 *
 * - its line: a pipe whose only writer is the parent, and whose end kills the child (F_SETSIG),
 *   whatever it does, blocks, or has stopped for. Nothing is ever written there: the kernel signals
 *   a byte when it may have been read already, and would kill a child that has gone on meanwhile.
 *   The parent-death signal can not be SIGKILL: it comes when the thread that forked ends as well,
 *   and then the child is to live.
 * - the parent-death signal, for who has closed descriptors that are not its own. It comes again
 *   for each thread that the child is handed on to, the last time when the whole process is gone.
 *   The handler asks who the parent is now and leaves if it is another.
 */
#include "process.h"

#include "exec/fiber.h"
#include "exec/guarded-call.h"
#include "exec/libc-hooks.h"
#include "exec/quiet-write.h"
#include "exec/translate.h"
#include "call-format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Not in the C library's headers everywhere. */
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A write of so many bytes to a pipe that poll() calls writable does not wait, unless others write
 * there, too. */
#define CHUNK 4096u
/* Who has not read our standard error for so long is not waited for any more. */
#define PATIENCE_MS 20

static int
death_signal (void)
{
  /* SIGRTMIN + 5 is the interrupt of guarded calls. */
  return SIGRTMIN + 6;
}

/* --- which process is this? --- */

/* Forks since the count began. W: the forked thread, when it is the only one; R: any thread. */
static _Atomic uint32_t generation;
/* Who forked us by pto_process_begin(); 0: nobody. W: the forked thread, when it is the only one;
 * R: any thread, the handler. */
static _Atomic pid_t parent_pid;
static pthread_once_t count_once = PTHREAD_ONCE_INIT;
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

/* What this process holds of its children: ends of lines (who has one keeps others alive), pidfds,
 * the ends of words that are read. No child may have any, also none of a fork that is not ours. */
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static int *held; /* under held_lock, as the two below */
static uint32_t n_held;
static uint32_t max_held;
/* What this process hangs on, a child; -1: none. W: the forked thread, when it is the only one. */
static int own_line = -1;
/* The signals of the terminal that a child leaves to the root, and what they did before. W: the
 * forked thread, when it is the only one. */
static const int left_to_root[] = { SIGINT, SIGQUIT };
#define LEFT_TO_ROOT (sizeof left_to_root / sizeof *left_to_root)
static struct sigaction before_child[LEFT_TO_ROOT];
/* Why something that children wrote is left out, an errno; 0: nothing was; TOLD: whoever asked
 * knows. It says nothing of other memory: relaxed. W: who passes on, who asks, the forked thread.
 */
static _Atomic int unheard;
#define TOLD (-1)

static void
before_fork (void)
{
  pthread_mutex_lock (&held_lock);
}

static void
after_fork_in_parent (void)
{
  pthread_mutex_unlock (&held_lock);
}

static void
do_nothing (int signo)
{
  (void) signo;
}

static bool
is_ignored (const struct sigaction *action)
{
  return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_IGN;
}

/* A child that a function forks is not ours: it hears the terminal as without the library. */
static void
hear_terminal (void)
{
  struct sigaction now;

  for (size_t i = 0; i < LEFT_TO_ROOT; i++)
    if (sigaction (left_to_root[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0
        && now.sa_handler == do_nothing)
      sigaction (left_to_root[i], &before_child[i], NULL);
}

/* Runs in the child of every fork of this process, ours or not. Of the other locks of the library
 * none is held across a fork of ours; their order is worker > registry > gate, the token of a
 * level's executor innermost. Relaxed: there is one thread. */
static void
after_fork_in_child (void)
{
  for (uint32_t i = 0; i < n_held; i++)
    close (held[i]);
  n_held = 0;
  if (own_line >= 0)
    close (own_line);
  own_line = -1;
  hear_terminal ();
  pthread_mutex_unlock (&held_lock);
  atomic_fetch_add_explicit (&generation, 1, memory_order_relaxed);
  atomic_store_explicit (&parent_pid, 0, memory_order_relaxed);
  atomic_store_explicit (&unheard, 0, memory_order_relaxed);
}

static void
count_forks (void)
{
  pthread_atfork (before_fork, after_fork_in_parent, after_fork_in_child);
}

uint32_t
pto_process_generation (void)
{
  pthread_once (&count_once, count_forks);
  return atomic_load_explicit (&generation, memory_order_relaxed);
}

/* Libraries with thread pools would each make as many threads as there are CPUs, in every child. */
static void
set_environment (void)
{
  static const char *const names[]
      = { "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS" };

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    setenv (names[i], "1", 0);
}

void
pto_process_hygiene_once (void)
{
  pthread_once (&count_once, count_forks);
  pthread_once (&environment_once, set_environment);
}

static bool
parent_is_gone (void)
{
  pid_t parent = atomic_load_explicit (&parent_pid, memory_order_relaxed);

  return parent != 0 && getppid () != parent;
}

bool
pto_process_is_orphan (void)
{
  sigset_t set;

  if (atomic_load_explicit (&parent_pid, memory_order_relaxed) == 0)
    return false;
  /* A signal that waits is delivered here and does not return. */
  sigemptyset (&set);
  sigaddset (&set, death_signal ());
  pthread_sigmask (SIG_UNBLOCK, &set, NULL);
  return parent_is_gone ();
}

/* --- in the child --- */

static void
on_parent_death (int signo)
{
  int saved = errno;

  (void) signo;
  if (parent_is_gone ())
    _exit (PTO_EXIT_ORPHAN);
  errno = saved;
}

/* Prints what is ours to print, and ends without a look at what the parent wanted done at its own
 * end. */
static _Noreturn void
leave (int status)
{
  fflush (stdout);
  fflush (stderr);
  _exit (status);
}

/* Functions at exit are called last in, first out: this one before all that the parent had, behind
 * those that the child itself has added. */
#ifdef __GLIBC__
static void
at_exit (int status, void *data)
{
  (void) data;
  leave (status);
}
#else
static void
at_exit (void)
{
  leave (EXIT_FAILURE); /* the status is not told */
}
#endif

/* The status is not told. */
static void
at_quick_exit_too (void)
{
  _exit (EXIT_FAILURE);
}

/* pthread_exit() in a function: nobody serves any more, but other threads would keep the process
 * alive. data: of which process; a fork of a function's own has it, too. */
static void
on_end_of_server (void *data)
{
  if ((pid_t) (intptr_t) data != getpid ())
    return;
  fprintf (stderr, "pto: the thread that runs tasks has ended (pthread_exit)\n");
  leave (EXIT_FAILURE);
}

static pthread_key_t server_key;
static pthread_once_t server_once = PTHREAD_ONCE_INIT;

static void
make_server_key (void)
{
  pthread_key_create (&server_key, on_end_of_server);
}

static void
set_handler (int signo, void (*handler) (int))
{
  struct sigaction action;

  memset (&action, 0, sizeof action);
  action.sa_handler = handler;
#ifndef PTO_TSAN
  /* Foreign code that sleeps goes on sleeping when the signal means nothing. The thread sanitizer
   * puts handlers off until the sleep is over: there it must end, and who sleeps asks again. */
  action.sa_flags = SA_RESTART;
#endif
  sigemptyset (&action.sa_mask);
  sigaction (signo, &action, NULL);
}

static void
set_signals (void)
{
  struct sigaction pipe;

  pto_guard_after_fork ();
  pto_foreign_after_fork ();
  /* The terminal sends these to all of the group: they are the root's to handle, which cancels its
   * run. SIGTSTP is not: the group stops and goes on as one. A handler that does nothing, since
   * programs that functions start inherit what is ignored, and are to hear it. */
  for (size_t i = 0; i < LEFT_TO_ROOT; i++)
    if (sigaction (left_to_root[i], NULL, &before_child[i]) == 0 && !is_ignored (&before_child[i]))
      set_handler (left_to_root[i], do_nothing);
  set_handler (SIGCHLD, SIG_DFL);
  /* Where it is ignored (Python), functions are written for the error instead. */
  if (sigaction (SIGPIPE, NULL, &pipe) != 0 || !is_ignored (&pipe))
    set_handler (SIGPIPE, SIG_DFL);
}

/* For ps and top: "pto-sub0", "pto-L2/1". */
static void
set_name (const char *path)
{
  const char *tail = path + strlen (path);
  bool number = false;
  char name[16];

  for (; tail > path; tail--)
    if (tail[-1] == '/')
      {
        if (number || *tail < '0' || *tail > '9')
          break;
        number = true;
      }
  snprintf (name, sizeof name, "pto-%s", tail);
  prctl (PR_SET_NAME, (unsigned long) name, 0ul, 0ul, 0ul);
}

/* These are its last words, which the parent tells. */
static _Noreturn void
leave_for (const char *call)
{
  dprintf (STDERR_FILENO, "%s: %s\n", call, strerror (errno));
  _exit (PTO_EXIT_ORPHAN);
}

/* Waits until the parent is ready, and ends with it from then on. */
static void
take_line (int go, int line)
{
  struct pollfd end = { .fd = line };
  const char *call = "read";
  ssize_t n;
  char ready;

  do
    n = read (go, &ready, 1);
  while (n < 0 && errno == EINTR);
  if (n == 0)
    _exit (PTO_EXIT_ORPHAN);
  if (n == 1)
    call = "fcntl";
  if (n != 1 || fcntl (line, F_SETOWN, getpid ()) != 0 || fcntl (line, F_SETSIG, SIGKILL) != 0
      || fcntl (line, F_SETFL, O_ASYNC) != 0)
    leave_for (call);
  close (go);
  /* It may have ended before the line above. */
  if (poll (&end, 1, 0) > 0)
    _exit (PTO_EXIT_ORPHAN);
  own_line = line;
}

/* All signals are blocked. */
static _Noreturn void
child_main (const struct pto_process *process, const struct pto_process_config *config,
            pid_t parent, int words, int go, int line)
{
  sigset_t none;

  /* What another thread of the parent wrote there since the flush is the parent's to print. */
  __fpurge (stdout);
  __fpurge (stderr);
  set_signals ();
  atomic_store_explicit (&parent_pid, parent, memory_order_relaxed);
  set_handler (death_signal (), on_parent_death);
  prctl (PR_SET_PDEATHSIG, (unsigned long) death_signal (), 0ul, 0ul, 0ul);
  /* It may have ended before the line above. */
  if (parent_is_gone ())
    _exit (PTO_EXIT_ORPHAN);

  if (dup2 (words, STDERR_FILENO) < 0)
    {
      dprintf (words, "dup2: %s\n", strerror (errno));
      _exit (PTO_EXIT_ORPHAN);
    }
  close (words);
  set_name (process->path);
#ifdef __GLIBC__
  on_exit (at_exit, NULL);
#else
  atexit (at_exit);
#endif
  at_quick_exit (at_quick_exit_too);
  pthread_once (&server_once, make_server_key);
  pthread_setspecific (server_key, (void *) (intptr_t) getpid ());
  sigemptyset (&none);
  pthread_sigmask (SIG_SETMASK, &none, NULL);
  /* Until then the parent has nothing but our number, which must not become another's. */
  take_line (go, line);
  leave (config->main (config->data));
}

/* --- in the parent --- */

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

void
pto_process_init (struct pto_process *process, const char *path)
{
  memset (process, 0, sizeof *process);
  pto_text_copy (process->path, sizeof process->path, path, strlen (path));
  process->pidfd = process->words = process->line = -1;
}

/* Where a program has closed its standard descriptors, ours must not take their places: the child
 * puts its own there. */
static int
move_up (int fd)
{
  int moved;

  if (fd < 0 || fd > STDERR_FILENO)
    return fd;
  moved = fcntl (fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved >= 0)
    close (fd);
  return moved >= 0 ? moved : fd;
}

static bool
make_pipe (int pipe_fds[2])
{
  if (pipe2 (pipe_fds, O_CLOEXEC) != 0)
    {
      pipe_fds[0] = pipe_fds[1] = -1;
      return false;
    }
  pipe_fds[0] = move_up (pipe_fds[0]);
  pipe_fds[1] = move_up (pipe_fds[1]);
  return true;
}

/* held_lock, since before it was opened: no fork of another thread comes between. On failure it is
 * closed. */
static bool
hold (int *fd)
{
  if (n_held == max_held)
    {
      int *more = realloc (held, (max_held + 64) * sizeof *held);

      if (more == NULL)
        {
          close_fd (fd);
          errno = ENOMEM;
          return false;
        }
      held = more;
      max_held += 64;
    }
  held[n_held++] = *fd;
  return true;
}

/* In a copy that a fork made it is closed already, and the number may be another's. */
static void
let_go (int *fd)
{
  pthread_mutex_lock (&held_lock);
  for (uint32_t i = 0; i < n_held; i++)
    if (held[i] == *fd)
      {
        close (*fd);
        held[i] = held[--n_held];
        break;
      }
  pthread_mutex_unlock (&held_lock);
  *fd = -1;
}

/* What a fork needs beside the process; -1: none. */
struct openings
{
  int pipe[2]; /* standard error of the child */
  int go[2];   /* a byte: the child may go on */
  int line[2]; /* its end: that of the child */
};

static bool
make_openings (struct openings *openings)
{
  bool ok;

  pthread_mutex_lock (&held_lock);
  ok = make_pipe (openings->pipe) && hold (&openings->pipe[0]) && make_pipe (openings->go)
       && hold (&openings->go[1]) && make_pipe (openings->line) && hold (&openings->line[1]);
  pthread_mutex_unlock (&held_lock);
  /* Only our end: the child waits for room. */
  if (ok)
    fcntl (openings->pipe[0], F_SETFL, O_NONBLOCK);
  return ok;
}

static int
open_pidfd (pid_t pid)
{
  int fd;

  pthread_mutex_lock (&held_lock);
  fd = move_up ((int) syscall (SYS_pidfd_open, pid, 0));
  if (fd >= 0)
    hold (&fd);
  pthread_mutex_unlock (&held_lock);
  return fd;
}

static enum pto_status
fail (const struct pto_process *process, struct openings *openings, const char *what, int error,
      struct pto_report *report)
{
  let_go (&openings->pipe[0]);
  close_fd (&openings->pipe[1]);
  close_fd (&openings->go[0]);
  let_go (&openings->go[1]);
  close_fd (&openings->line[0]);
  let_go (&openings->line[1]);
  return pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: %s: %s"),
                         process->path, what,
                         error != 0 ? strerror (error) : _ ("no reason was given"));
}

enum pto_status
pto_process_begin (struct pto_process *process, const struct pto_process_config *config,
                   struct pto_report *report)
{
  struct openings openings = { .pipe = { -1, -1 }, .go = { -1, -1 }, .line = { -1, -1 } };
  pid_t parent = getpid (), pid;
  char path[sizeof process->path];
  struct pto_quiet quiet;
  sigset_t all, mask;
  int error;

  assert ((process->pid == 0 || process->dead) && "one child at a time");
  pto_process_hygiene_once ();
  pto_process_end (process);
  memcpy (path, process->path, sizeof path);
  pto_process_init (process, path);
  process->generation = pto_process_generation ();
  process->labels = config->labels;
  if (!make_openings (&openings))
    return fail (process, &openings, "pipe2", errno, report);

  /* Or the child would print them once more. The program finds an error in its stream. */
  pto_quiet_begin (&quiet);
  fflush (stdout);
  fflush (stderr);
  pto_quiet_end (&quiet);
  pto_foreign_before_fork ();
  /* No handler of the parent runs in the child before the child has chosen which may. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &mask);
  errno = 0;
  pid = config->fork != NULL ? config->fork (config->fork_data) : fork ();
  error = errno;
  /* What a binding answers for a function that raised, in the parent: nobody has become a child. */
  if (pid == 0 && getpid () == parent)
    {
      pid = -1;
      error = 0;
    }
  if (pid == 0)
    child_main (process, config, parent, openings.pipe[1], openings.go[0], openings.line[0]);
  pthread_sigmask (SIG_SETMASK, &mask, NULL);
  if (pid < 0)
    return fail (process, &openings, "fork", error, report);

  process->pid = pid;
  /* It waits for the byte, so the number is still its own, even where the program has the system or
   * another thread reap all children. */
  process->pidfd = open_pidfd (pid);
  if (process->pidfd < 0)
    {
      error = errno;
      kill (pid, SIGKILL);
      while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
      process->pid = 0;
      return fail (process, &openings,
                   error == ENOSYS ? _ ("pidfd_open (Linux 5.4 or newer is needed)") : "pidfd_open",
                   error, report);
    }
  process->words = openings.pipe[0];
  process->line = openings.line[1];
  close_fd (&openings.pipe[1]);
  close_fd (&openings.line[0]);
  /* Its own end is still open here: no signal tells of a pipe without a reader. */
  while (write (openings.go[1], "", 1) < 0 && errno == EINTR)
    ;
  close_fd (&openings.go[0]);
  let_go (&openings.go[1]);
  return PTO_OK;
}

static bool
is_ours (const struct pto_process *process)
{
  return process->pid != 0 && process->generation == pto_process_generation ();
}

/* options: WNOHANG, or 0 and then it is dead on return. */
static bool
wait_for_death (struct pto_process *process, int options)
{
  struct pollfd watched = { .fd = process->pidfd, .events = POLLIN };
  siginfo_t info;

  for (;;)
    {
      memset (&info, 0, sizeof info);
      if (waitid ((idtype_t) P_PIDFD, (id_t) process->pidfd, &info, WEXITED | options) == 0)
        break;
      if (errno == EINTR)
        continue;
      /* Somebody else waits for our children, or the system reaps them for the program, which
       * ignores SIGCHLD: how it ended is not known, that it ended is. */
      while (poll (&watched, 1, options == WNOHANG ? 0 : -1) < 0 && errno == EINTR)
        ;
      return watched.revents != 0;
    }
  if (info.si_pid == 0)
    return false;
  process->code = info.si_code;
  process->status = info.si_status;
  return true;
}

bool
pto_process_reap (struct pto_process *process)
{
  if (!is_ours (process) || process->dead || !wait_for_death (process, WNOHANG))
    return false;
  process->dead = true;
  return true;
}

static void
keep (struct pto_process *process, const char *bytes, size_t n)
{
  size_t kept = process->last_bytes;

  if (n >= sizeof process->last)
    {
      bytes += n - sizeof process->last;
      n = sizeof process->last;
    }
  if (kept > sizeof process->last - n)
    {
      size_t gone = kept - (sizeof process->last - n);

      memmove (process->last, process->last + gone, kept - gone);
      kept -= gone;
    }
  memcpy (process->last + kept, bytes, n);
  process->last_bytes = (uint32_t) (kept + n);
}

void
pto_process_take_words (struct pto_process *process, struct pto_words *words)
{
  if (words->n == 0)
    {
      snprintf (words->label, sizeof words->label, "%s%s", process->labels ? process->path : "",
                process->labels ? ": " : "");
      words->mid_line = process->mid_line;
    }
  /* Not for ever: a child that does nothing but write must not keep its keeper from the others. */
  while (process->words >= 0 && words->n < sizeof words->bytes)
    {
      char *bytes = words->bytes + words->n;
      ssize_t n = read (process->words, bytes, sizeof words->bytes - words->n);

      if (n > 0)
        {
          keep (process, bytes, (size_t) n);
          words->n += (uint32_t) n;
          process->mid_line = bytes[n - 1] != '\n';
        }
      else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        let_go (&process->words);
      else if (errno == EAGAIN)
        break;
    }
}

/* Our own standard error, opened once more, so that writes do not wait: the descriptor that we have
 * may be shared with programs that are not prepared for that. -1: not to be had. */
static int
open_stderr (void)
{
  static const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = open ("/proc/self/fd/2", flags);

  /* After su(1) the terminal is somebody else's, but still the session's. */
  if (fd < 0 && isatty (STDERR_FILENO) && tcgetsid (STDERR_FILENO) == getsid (0))
    fd = open ("/dev/tty", flags);
  return fd;
}

/* As write(2), to our own standard error; where that would have to wait, EAGAIN. */
static ssize_t
write_at_once (const char *bytes, size_t n)
{
  struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
  int flags = fcntl (STDERR_FILENO, F_GETFL), fd, error;
  struct stat info;
  ssize_t written;

  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat (STDERR_FILENO, &info) != 0)
    {
      errno = EBADF;
      return -1;
    }
  if (S_ISSOCK (info.st_mode))
    return send (STDERR_FILENO, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (S_ISREG (info.st_mode) || (flags & O_NONBLOCK) != 0)
    return write (STDERR_FILENO, bytes, n);
  fd = open_stderr ();
  error = errno;
  if (fd >= 0)
    {
      written = write (fd, bytes, n);
      error = errno;
      close (fd);
      errno = error;
      return written;
    }
  if (S_ISFIFO (info.st_mode) && poll (&room, 1, 0) > 0)
    return write (STDERR_FILENO, bytes, n < CHUNK ? n : CHUNK);
  /* EIO: the terminal is gone. */
  errno = error == EIO ? EIO : EAGAIN;
  return -1;
}

static uint64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

static void
note_unheard (int error)
{
  int nothing = 0;

  atomic_compare_exchange_strong_explicit (&unheard, &nothing, error, memory_order_relaxed,
                                           memory_order_relaxed);
}

/* How many bytes have found room. */
static size_t
write_or_drop (struct pto_words *words, const char *bytes, size_t n, uint64_t until)
{
  struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
  bool asked = false;
  size_t done = 0;

  while (done < n)
    {
      ssize_t written = write_at_once (bytes + done, n - done);
      uint64_t now = now_ms ();

      if (written > 0)
        {
          done += (size_t) written;
          asked = false;
        }
      else if (written < 0 && errno != EINTR && errno != EAGAIN)
        {
          note_unheard (errno);
          return done;
        }
      else if (written == 0 || errno == EAGAIN)
        {
          words->deaf = words->deaf || now >= until;
          if (words->deaf)
            return done;
          /* A terminal with little room says that it has some: the second time only for a while. */
          poll (&room, !asked, asked ? 1 : (int) (until - now));
          asked = true;
        }
    }
  words->deaf = false;
  return done;
}

/* Does it say already who says it, or who of those below? */
static bool
is_labelled (const char *line, size_t n, const char *label, size_t label_bytes)
{
  size_t path = label_bytes - 2;

  return n > path && memcmp (line, label, path) == 0 && (line[path] == ':' || line[path] == '/');
}

/* Puts a label before each line that has none, as far as all of that takes no more than limit
 * bytes: *size. to: where it is written; or NULL. Returns how many bytes of the words it is. */
static size_t
add_labels (const struct pto_words *words, char *to, size_t limit, size_t *size)
{
  size_t label_bytes = strlen (words->label);
  bool begins = !words->mid_line;

  *size = 0;
  for (size_t done = 0, n; done < words->n; done += n)
    {
      const char *line = words->bytes + done;
      const char *end = memchr (line, '\n', words->n - done);
      size_t before;

      n = end != NULL ? (size_t) (end + 1 - line) : words->n - done;
      before = begins && !is_labelled (line, n, words->label, label_bytes) ? label_bytes : 0;
      if (before + n > limit - *size)
        return done;
      if (to != NULL)
        {
          memcpy (to + *size, words->label, before);
          memcpy (to + *size + before, line, n);
        }
      *size += before + n;
      begins = true;
    }
  return words->n;
}

/* As write_or_drop(), of all lines: of a line that found room in part nothing is counted. */
static size_t
write_labelled (struct pto_words *words, uint64_t until)
{
  size_t size, done;
  char *text;

  add_labels (words, NULL, SIZE_MAX, &size);
  text = malloc (size);
  if (text == NULL)
    return 0;
  add_labels (words, text, size, &size);
  done = add_labels (words, NULL, write_or_drop (words, text, size, until), &size);
  free (text);
  return done;
}

void
pto_words_pass_on (struct pto_words *words)
{
  uint64_t until = now_ms () + PATIENCE_MS;
  struct pto_quiet quiet;
  size_t done = 0;
  char text[96];
  int n;

  if (words->n == 0 && words->left_out == 0)
    return;
  pto_quiet_begin (&quiet);
  if (words->left_out > 0)
    {
      n = snprintf (text, sizeof text, "\npto: here %llu bytes that workers wrote are left out\n",
                    (unsigned long long) words->left_out);
      if (write_or_drop (words, text, (size_t) n, until) == (size_t) n)
        words->left_out = 0;
    }
  if (words->left_out == 0)
    done = words->label[0] != '\0' ? write_labelled (words, until)
                                   : write_or_drop (words, words->bytes, words->n, until);
  words->left_out += words->n - done;
  words->n = 0;
  pto_quiet_end (&quiet);
}

int
pto_process_take_unheard (void)
{
  int error = atomic_load_explicit (&unheard, memory_order_relaxed);

  /* Of several that ask one is told. */
  if (error <= 0
      || !atomic_compare_exchange_strong_explicit (&unheard, &error, TOLD, memory_order_relaxed,
                                                   memory_order_relaxed))
    return 0;
  return error;
}

bool
pto_process_look (const struct pto_process *process)
{
  siginfo_t info;

  if (!is_ours (process) || process->dead)
    return false;
  memset (&info, 0, sizeof info);
  /* Left as it is for the next look. A process in a debugger is not stopped to its parent. */
  return waitid ((idtype_t) P_PIDFD, (id_t) process->pidfd, &info, WSTOPPED | WNOHANG | WNOWAIT)
             == 0
         && info.si_pid != 0;
}

void
pto_process_kill (struct pto_process *process, const char *why)
{
  if (!is_ours (process) || process->dead)
    return;
  if (!process->killed)
    process->why = why;
  process->killed = true;
  syscall (SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);
}

void
pto_process_end (struct pto_process *process)
{
  struct pto_words words;

  if (is_ours (process) && !process->dead && !pto_process_reap (process))
    {
      pto_process_kill (process, _ ("not needed any more"));
      wait_for_death (process, 0);
      process->dead = true;
    }
  if (is_ours (process) && process->words >= 0)
    {
      words.n = 0;
      words.left_out = 0;
      words.deaf = false;
      pto_process_take_words (process, &words);
      pto_words_pass_on (&words);
      /* Nobody is there to tell it later. */
      if (words.left_out > 0)
        note_unheard (ETIMEDOUT);
    }
  let_go (&process->pidfd);
  let_go (&process->words);
  let_go (&process->line);
}

void
pto_process_describe (const struct pto_process *process, char *text, size_t size)
{
  if (!process->dead)
    snprintf (text, size, _ ("is alive"));
  else if (process->killed && process->code == CLD_KILLED && process->status == SIGKILL)
    snprintf (text, size, _ ("was ended: %s"), process->why);
  else if (process->code == CLD_EXITED)
    snprintf (text, size, _ ("exited with status %d"), process->status);
  else if (process->code == CLD_KILLED || process->code == CLD_DUMPED)
    snprintf (text, size, _ ("died (signal %d, %s)"), process->status, strsignal (process->status));
  else
    snprintf (text, size, _ ("died (somebody else has waited for it: how is not known)"));
}

void
pto_process_last_line (const struct pto_process *process, char *text, size_t size)
{
  uint32_t end = process->last_bytes, begin;

  while (end > 0 && (unsigned char) process->last[end - 1] <= ' ')
    end--;
  /* Behind a carriage return a terminal begins anew. */
  for (begin = end;
       begin > 0 && process->last[begin - 1] != '\n' && process->last[begin - 1] != '\r'; begin--)
    ;
  pto_text_copy (text, size, process->last + begin, end - begin);
}
