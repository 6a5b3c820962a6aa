/* command.h: how is another program run, fed, heard and ended?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing here depends on how the program around it treats its children: it may ignore SIGCHLD, or
 * reap whatever ends, and other threads may fork. The exit status comes through a pipe, from a
 * shell that waits for the command, and the end of that shell from a pidfd. When this process ends,
 * however it does, so does the command.
 *
 * Thread safety: one thread at a time for one struct pto_command.
 */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As many as one pto_commands_wait() waits for. */
#define PTO_COMMANDS_MAX 64u

/* What a pipe has given; data is NULL while there is nothing. */
struct pto_output
{
  char *data;
  size_t n;
  size_t room;
  bool lost; /* not all of it is here: there was no memory, or it is more than is of use */
};

/* Zeros at first. */
struct pto_command
{
  bool begun; /* there is something to end */
  pid_t pid;  /* of the shell, and of the process group that all of it is in; 0: none */
  int pidfd;  /* -1: none, also when the kernel has none to give */
  int pipes[5];
  const char *input; /* what is left of it */
  size_t input_size;
  bool over;                    /* it has ended, and all that it wrote is here */
  int status;                   /* an exit status, 128 and a signal, or -1: nobody said */
  int error;                    /* of a read() that was refused; 0: of none */
  struct pto_output output;     /* standard output, if it was asked for */
  struct pto_output complaints; /* standard error; of very much the beginning */
  struct pto_output said;       /* the status, as it comes */
};

struct pto_command_config
{
  const char *const *argv;        /* a path, and arguments; NULL behind the last */
  const char *const *environment; /* NULL behind the last */
  const char *input;              /* for standard input; must live until it is over; or NULL */
  size_t input_size;
  bool wants_output;
};

/* It runs when this returns PTO_OK. SIGCHLD and SIGPIPE do there what they do by default, no signal
 * is blocked, and only the standard descriptors are open. On failure there is nothing to end. */
enum pto_status pto_command_begin (struct pto_command *command,
                                   const struct pto_command_config *config,
                                   struct pto_report *report);
/* Until one of them is over that was not, cancel_fd (-1: none) can be read, or nothing was heard of
 * them for so many ms (-1: as long as it takes). At least one is not over; n is at most
 * PTO_COMMANDS_MAX. */
void pto_commands_wait (struct pto_command *const *commands, uint32_t n, int cancel_fd, int ms);
/* Ends it with all its processes, if it is not over, and frees what it has. */
void pto_command_end (struct pto_command *command);
