/* process.h: how is a child process begun, watched and ended, so that nothing of it stays?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Knows processes: fork, descriptors, signals, exit status, last words. Does not know mailboxes or
 * tasks. One pidfd tells of a death, whatever its cause and moment; nothing else is asked. Needs
 * Linux 5.4. Thread safety: the parent's functions on one thread at a time for one struct
 * pto_process; pto_process_begin() on a native stack, never on a fiber.
 */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Like fork(2), called on the thread that begins children: 0 in the child, where it returns into
 * the caller as well. A language with an interpreter lock gives its own (Python: os.fork). */
typedef pid_t (*pto_fork_func) (void *data);

#define PTO_LAST_WORDS 2048u

struct pto_process
{
  char path[96];       /* "L4/0/L3/1/sub0": of the worker in the tree */
  pid_t pid;           /* 0: none */
  int pidfd;           /* close-on-exec, readable when it is dead; -1: none */
  int words;           /* the read end of its standard error; -1: it has closed it */
  int line;            /* it ends when nobody holds this any more; -1: none */
  uint32_t generation; /* of the process that begins it (pto_process_generation()) */
  bool dead;           /* reaped; code and status below are final */
  bool killed;         /* by us; why says what for */
  const char *why;
  int code;   /* si_code: CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: somebody else has reaped it */
  int status; /* exit status or signal */
  char last[PTO_LAST_WORDS]; /* the end of what it wrote to standard error */
  uint32_t last_bytes;
  bool labels;   /* its lines are passed on with its path before each */
  bool mid_line; /* what was taken of them so far ends within one */
};

/* What children write, on its way; zeros at first. As much as a pipe holds, and a look at its end.
 */
struct pto_words
{
  uint32_t n;
  bool deaf;         /* nobody has read for a while */
  uint64_t left_out; /* bytes that found no room or no reader, not told yet */
  char label[100];   /* goes before each line, but where mid_line says that the first goes on */
  bool mid_line;
  char bytes[68 << 10];
};

struct pto_process_config
{
  pto_fork_func fork; /* NULL: fork(2) */
  void *fork_data;
  /* What runs in the child, on the forking thread's stack; its return is the exit status. */
  int (*main) (void *data);
  void *data;
  bool labels; /* what it writes is passed on with its path before each line */
};

/* Exit status of a child that found itself without a parent: nobody is there to read it. */
#define PTO_EXIT_ORPHAN 125

/* Once a process, before its first fork (pto_process_begin() does it, too): environment of thread
 * pools (seed 002 section 8c; nothing that is set is changed), fork generation. The environment
 * must not be read by another thread meanwhile. */
void pto_process_hygiene_once (void);

/* Nothing begun yet; path is cut to fit. */
void pto_process_init (struct pto_process *process, const char *path);
/* Flushes standard output and error, forks, and returns in the parent only. The child: its line and
 * the parent-death signal (and a look whether the parent is still there), SIGINT and SIGQUIT
 * without effect, SIGCHLD default, SIGPIPE default where the parent catches it, faults and the
 * interrupt of the engine's guard as they were before the guard, all others as they were; no signal
 * blocked; descriptors closed, standard error into the pipe, own name, then main(), flush, _exit().
 * exit() or quick_exit() called in it ends it the same way: no exit handler of the parent runs and
 * no buffer of the parent is printed again. So does the end of its thread (pthread_exit()).
 *
 * A process that is dead and reaped may be begun again. On failure there is no child. */
enum pto_status pto_process_begin (struct pto_process *process,
                                   const struct pto_process_config *config,
                                   struct pto_report *report);
/* pidfd is readable: reaps. true the first time: then its last words are there to be taken. */
bool pto_process_reap (struct pto_process *process);
/* words is readable: keeps the end of what there is, and adds all of it to words, which has
 * nothing of another process, as far as there is room. Somebody must take them while the child
 * runs, or it waits when 64 KiB are full. */
void pto_process_take_words (struct pto_process *process, struct pto_words *words);
/* Onto our own standard error. Nobody may read that (a stopped terminal, a pager), so it waits for
 * a moment only, and not again until somebody reads: what finds no room is left out, and that is
 * said when there is some. A full disk, a limit of file sizes and a closed pipe leave it out at
 * once, and no signal comes of them. Without the lock that guards the processes. */
void pto_words_pass_on (struct pto_words *words);
/* Why something was left out for an error, or for good: an errno, told once a process; 0: nothing
 * was, or it has been told. Any thread. */
int pto_process_take_unheard (void);
/* Is it stopped (SIGSTOP, not by a debugger)? Asked by the keeper while it has a request. */
bool pto_process_look (const struct pto_process *process);
/* SIGKILL by pidfd: never another process. why: a literal for messages, "did not answer for 10 s".
 */
void pto_process_kill (struct pto_process *process, const char *why);
/* Kills if needed, waits for the death, reaps, passes on its last words, closes descriptors. In a
 * process that did not begin it (a copy that a fork made): closes descriptors only. */
void pto_process_end (struct pto_process *process);
/* "died (signal 9, Killed)", "exited with status 3", "was ended: stopped for 2 s". */
void pto_process_describe (const struct pto_process *process, char *text, size_t size);
/* The last line that is not empty of what it wrote to standard error; "": none. UTF-8. */
void pto_process_last_line (const struct pto_process *process, char *text, size_t size);

/* In a child, on the thread that serves: is the process that forked us gone? Before it says no it
 * sees to it that the death would be heard, whatever foreign code has blocked. The root of a tree
 * is no orphan. */
bool pto_process_is_orphan (void);
/* Forks that lie between this process and the one that asked first: an object made under another
 * number belongs to another process and is not to be touched. Any thread. */
uint32_t pto_process_generation (void);
