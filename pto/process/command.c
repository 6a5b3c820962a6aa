/* command.c: how is another program run, fed, heard and ended?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec/translate.h"
#include "command.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define SHELL "/bin/sh"
/* The command has the standard descriptors of the shell, not those by which the status is told and
 * by which the shell hangs on us. It begins when it is told to, for then it hangs on us: if we end
 * before that, it never begins. */
#define SCRIPT "read PTO_GO <&3 && \"$@\" 3>&- 4<&-; echo $? >&3"
/* Descriptors below this one are where the command's own are put. */
#define FIRST_FD 10
/* Of what a command complains of so much is kept: nobody reads more. */
#define COMPLAINTS_MAX ((size_t) 1 << 20)
#define STEP ((size_t) 16 << 10)
#define TURNS 100
/* So long a shell has to exit: it may have been stopped. */
#define LAST_MS 1000

enum
{
  INPUT,
  OUTPUT,
  COMPLAINTS,
  STATUS,
  LINE, /* nothing is said by it; its end, when this process ends, is that of the group */
  PIPES
};

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

/* --- beginning --- */

/* Two ends of a way to or from the command; ours does not wait. */
static bool
make_way (int *ours, int *theirs, int which, const char **call)
{
  int fds[2], moved[2];

  *call = which == INPUT || which == STATUS ? "socketpair: " : "pipe2: ";
  /* A socket for its input: to write where nobody reads is then no signal. One for its status, by
   * which it is told to begin, too. */
  if ((which == INPUT || which == STATUS ? socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)
                                         : pipe2 (fds, O_CLOEXEC))
      != 0)
    return false;
  *call = "fcntl: ";
  for (int i = 0; i < 2; i++)
    {
      moved[i] = fcntl (fds[i], F_DUPFD_CLOEXEC, FIRST_FD);
      close (fds[i]);
      /* No number from FIRST_FD on is allowed. */
      if (moved[i] < 0 && errno == EINVAL)
        errno = EMFILE;
    }
  *ours = moved[which == LINE];
  *theirs = moved[which != LINE];
  return *ours >= 0 && *theirs >= 0 && fcntl (*ours, F_SETFL, O_NONBLOCK) == 0;
}

static int
set_actions (posix_spawn_file_actions_t *actions, const int theirs[PIPES])
{
  static const char null[] = "/dev/null";
  int error = 0;

  for (int i = 0; i < PIPES && error == 0; i++)
    error = theirs[i] >= 0 ? posix_spawn_file_actions_adddup2 (actions, theirs[i], i)
                           : posix_spawn_file_actions_addopen (actions, i, null,
                                                               i == INPUT ? O_RDONLY : O_WRONLY, 0);
#ifdef HAVE_SPAWN_CLOSEFROM
  if (error == 0)
    error = posix_spawn_file_actions_addclosefrom_np (actions, PIPES);
#endif
  return error;
}

static int
set_attributes (posix_spawnattr_t *attributes)
{
  sigset_t none, defaults;
  int error;

  sigemptyset (&none);
  /* Compilers wait for children of their own; and where a signal is ignored, so it is in programs
   * that are begun. */
  sigemptyset (&defaults);
  sigaddset (&defaults, SIGCHLD);
  sigaddset (&defaults, SIGPIPE);
  error = posix_spawnattr_setsigmask (attributes, &none);
  if (error == 0)
    error = posix_spawnattr_setsigdefault (attributes, &defaults);
  if (error == 0)
    error = posix_spawnattr_setpgroup (attributes, 0);
  if (error == 0)
    error = posix_spawnattr_setflags (attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
                                                      | POSIX_SPAWN_SETPGROUP);
  return error;
}

/* The kernel ends the group when nobody holds our end any more while the shell has its. */
static int
tie (pid_t group, int line, int status)
{
  fcntl (line, F_SETOWN, -group);
  fcntl (line, F_SETSIG, SIGKILL);
  fcntl (line, F_SETFL, O_ASYNC);
  /* A shell that is gone already reads nothing: its status says so. */
  if (send (status, "\n", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE || errno == ECONNRESET)
    return 0;
  return errno;
}

/* No handler of the program for forks runs, and nothing of its memory is copied. */
static int
spawn (struct pto_command *command, const struct pto_command_config *config,
       const int theirs[PIPES])
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  const char **argv;
  size_t n = 0;
  int error;

  while (config->argv[n] != NULL)
    n++;
  argv = calloc (n + 5, sizeof *argv);
  if (argv == NULL)
    return ENOMEM;
  argv[0] = "sh";
  argv[1] = "-c";
  argv[2] = SCRIPT;
  argv[3] = "sh";
  memcpy (argv + 4, config->argv, n * sizeof *argv);
  error = posix_spawn_file_actions_init (&actions);
  if (error == 0)
    {
      error = posix_spawnattr_init (&attributes);
      if (error == 0)
        {
          error = set_actions (&actions, theirs);
          if (error == 0)
            error = set_attributes (&attributes);
          if (error == 0)
            error = posix_spawn (&command->pid, SHELL, &actions, &attributes, (char **) argv,
                                 (char **) config->environment);
          posix_spawnattr_destroy (&attributes);
        }
      posix_spawn_file_actions_destroy (&actions);
    }
  free (argv);
  return error;
}

/* Names the file that every command needs and that is not there: "/dev/null: ", or the call. */
static const char *
find_missing (const char *call)
{
  return access ("/dev/null", R_OK | W_OK) != 0 && errno == ENOENT ? "/dev/null: "
         : access (SHELL, X_OK) != 0 && errno == ENOENT            ? SHELL ": "
                                                                   : call;
}

enum pto_status
pto_command_begin (struct pto_command *command, const struct pto_command_config *config,
                   struct pto_report *report)
{
  const char *call = "";
  int theirs[PIPES];
  int error = 0;

  assert (!command->begun);
  memset (command, 0, sizeof *command);
  command->begun = true;
  command->status = command->pidfd = -1;
  for (int i = 0; i < PIPES; i++)
    command->pipes[i] = theirs[i] = -1;
  command->input = config->input;
  command->input_size = config->input_size;
  for (int i = 0; i < PIPES && error == 0; i++)
    if ((i != INPUT || config->input != NULL) && (i != OUTPUT || config->wants_output)
        && !make_way (&command->pipes[i], &theirs[i], i, &call))
      error = errno;
  if (error == 0)
    {
      call = "posix_spawn: ";
      error = spawn (command, config, theirs);
      if (error != 0)
        command->pid = 0;
    }
  if (error == 0)
    {
      call = "send: ";
      error = tie (command->pid, theirs[LINE], command->pipes[STATUS]);
    }
  for (int i = 0; i < PIPES; i++)
    close_fd (&theirs[i]);
  if (error != 0)
    {
      pto_command_end (command);
      return pto_report_set (
          report, PTO_STATUS_SYSTEM, _ ("%s can not be run: %s%s"), config->argv[0],
          find_missing (error == EMFILE || error == ENFILE ? "" : call), strerror (error));
    }
  command->pidfd = (int) syscall (SYS_pidfd_open, command->pid, 0);
  return PTO_OK;
}

/* --- while it runs --- */

static void
write_input (struct pto_command *command)
{
  ssize_t n = send (command->pipes[INPUT], command->input, command->input_size, MSG_NOSIGNAL);

  if (n > 0)
    {
      command->input += n;
      command->input_size -= (size_t) n;
    }
  /* Who does not read it to its end has its reasons. */
  if (command->input_size == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
    {
      /* That is the end for who reads, also where a child that was forked meanwhile has our end. */
      shutdown (command->pipes[INPUT], SHUT_WR);
      close_fd (&command->pipes[INPUT]);
    }
}

/* Room for the next bytes; NULL: they are not kept. */
static char *
make_room (struct pto_output *output, size_t limit)
{
  size_t more = output->room * 2 + STEP;
  char *data;

  if (output->n < limit && output->n < output->room)
    return output->data + output->n;
  data = output->n < limit ? realloc (output->data, more) : NULL;
  if (data == NULL)
    {
      output->lost = true;
      return NULL;
    }
  output->data = data;
  output->room = more;
  return data + output->n;
}

/* What there is, to the end of the pipe or to where one would have to wait. Who writes without end
 * does not keep us from all else; a pipe that nobody writes to any more is emptied. */
static void
read_output (int *fd, struct pto_output *output, size_t limit, int *error)
{
  char rest[4096];

  for (int i = 0; *fd >= 0 && i < TURNS; i++)
    {
      char *to = make_room (output, limit);
      ssize_t n
          = to != NULL ? read (*fd, to, output->room - output->n) : read (*fd, rest, sizeof rest);

      if (n > 0)
        output->n += to != NULL ? (size_t) n : 0;
      else if (n < 0 && errno == EAGAIN)
        break;
      else if (n == 0 || errno != EINTR)
        {
          *error = n < 0 ? errno : *error;
          close_fd (fd);
        }
    }
}

static void
read_all (struct pto_command *command)
{
  read_output (&command->pipes[OUTPUT], &command->output, SIZE_MAX, &command->error);
  read_output (&command->pipes[COMPLAINTS], &command->complaints, COMPLAINTS_MAX, &command->error);
  read_output (&command->pipes[STATUS], &command->said, STEP, &command->error);
}

static void
close_all (struct pto_command *command)
{
  /* A shell that has told the status is about to exit. If our end of the line closed before that,
   * the kernel would kill the group, with what the command has left running. */
  if (command->pid != 0 && command->pidfd >= 0)
    poll (&(struct pollfd){ .fd = command->pidfd, .events = POLLIN }, 1, LAST_MS);

  for (int i = 0; i < PIPES; i++)
    close_fd (&command->pipes[i]);
  close_fd (&command->pidfd);
  /* Somebody else may have done it. The number is another's only if that was a while ago, and not
   * one that we could wait for. */
  if (command->pid != 0)
    while (waitpid (command->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  command->pid = 0;
}

/* The shell has said how it ended, or has ended. What still writes then (a server that a compiler
 * keeps) is not waited for. */
static void
look_for_end (struct pto_command *command, bool shell_is_gone)
{
  bool has_said = command->said.n > 0 && command->said.data[command->said.n - 1] == '\n';

  if (!has_said && !shell_is_gone && command->pipes[STATUS] >= 0)
    return;
  read_all (command);
  if (command->said.n > 0 && command->said.data[command->said.n - 1] == '\n')
    command->status = atoi (command->said.data);
  else
    /* Nobody waits for what it was to wait for. */
    kill (-command->pid, SIGKILL);
  command->over = true;
  close_all (command);
}

/* Descriptors of one command in a call of poll(). */
#define WATCHED (PIPES + 1)

void
pto_commands_wait (struct pto_command *const *commands, uint32_t n, int cancel_fd, int ms)
{
  struct pollfd watched[PTO_COMMANDS_MAX * WATCHED + 1];
  nfds_t used = n * WATCHED;
  bool found = false;

  assert (n <= PTO_COMMANDS_MAX);
  while (!found)
    {
      for (uint32_t i = 0; i < n; i++)
        {
          struct pollfd *of = &watched[i * WATCHED];

          for (int j = 0; j < PIPES; j++)
            of[j] = (struct pollfd){ .fd = j == LINE ? -1 : commands[i]->pipes[j],
                                     .events = j == INPUT ? POLLOUT : POLLIN };
          of[PIPES] = (struct pollfd){ .fd = commands[i]->pidfd, .events = POLLIN };
        }
      watched[used] = (struct pollfd){ .fd = cancel_fd, .events = POLLIN };
      int n_ready = poll (watched, used + 1, ms);

      if (n_ready < 0 && (errno == EINTR || errno == EAGAIN))
        continue;
      /* Without poll() they are asked again and again. */
      if (n_ready < 0)
        nanosleep (&(struct timespec){ .tv_nsec = 1000000 }, NULL);
      for (uint32_t w = 0; w < used && n_ready < 0; w++)
        watched[w].revents = 0;
      for (uint32_t i = 0; i < n && n_ready < 0; i++)
        if (!commands[i]->over)
          {
            siginfo_t info = { 0 };

            watched[i * WATCHED + INPUT].revents = watched[i * WATCHED + INPUT].fd >= 0;
            watched[i * WATCHED + PIPES].revents
                = waitid (P_PID, (id_t) commands[i]->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0
                  && info.si_pid != 0;
          }
      if (n_ready < 0)
        watched[used].revents = 0;
      found = n_ready == 0 || watched[used].revents != 0;
      for (uint32_t i = 0; i < n; i++)
        {
          const struct pollfd *of = &watched[i * WATCHED];

          if (commands[i]->over)
            continue;
          if (of[INPUT].revents != 0)
            write_input (commands[i]);
          read_all (commands[i]);
          look_for_end (commands[i], of[PIPES].revents != 0);
          found = found || commands[i]->over;
        }
    }
}

void
pto_command_end (struct pto_command *command)
{
  if (!command->begun)
    return;
  if (command->pid != 0 && !command->over)
    kill (-command->pid, SIGKILL);
  close_all (command);
  free (command->output.data);
  free (command->complaints.data);
  free (command->said.data);
  memset (command, 0, sizeof *command);
}
