/* det-world-private.h: what do the parts of the world of virtual time know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * det-world.c has the processes and their actors, det-link.c the descriptors and what is between
 * them, det-calls.c what the code under test calls.
 */
#pragma once

#include "det-world.h"

#include "../../pto/exec/pto-exec.h"

#include <setjmp.h>
#include <sys/uio.h>

#define FIRST_PID 40000000
#define WHATS 3

struct actor
{
  char name[40]; /* first: how the executor gives it back */
  struct process *process;
  struct pto_word word;
  const void *whats[WHATS];   /* that it waits for */
  struct pto_word *parked_on; /* of somebody else's */
  jmp_buf end;
  GThreadFunc func;
  gpointer data;
  gpointer result;
  bool is_over;
  struct actor *next;
};

struct block
{
  void *memory;
  size_t size;
};

struct process
{
  char name[24];
  void (*main) (void *data);
  void *data;
  int pid;
  int status;
  bool is_dead;
  uint32_t n_live;
  uint32_t n_threads;
  bool is_far;
  int stdio; /* descriptor of its connection; -1: none, or not any more */
  struct actor *actors;
  struct process *next;
  GHashTable *blocks; /* memory -> its size */
  size_t allocated;
};

struct world
{
  struct pto_exec *exec;
  uint64_t rng;
  struct process *processes;
  int next_pid;
  uint32_t n_lines;
  char last_line[1024];
};

extern struct world world;

/* NULL: the program itself, which sees what the system has. */
struct actor *world_self (void);
/* Does not return to one whose process is no more. */
void actor_check_alive (struct actor *actor);
/* The actor waits until one of three is woken; false: the time came. */
bool world_wait (const void *a, const void *b, const void *c, uint64_t until);
void world_wake (const void *what);
uint64_t world_roll (void);
struct actor *actor_new (struct process *process, const char *name, GThreadFunc func,
                         gpointer data);
void process_end (struct process *process, int status);

/* --- descriptors --- */

/* Descriptors of this world begin there: the system has none of these. */
#define FIRST_FD (1 << 24)

enum fd_kind
{
  FD_FREE,
  FD_LINK,
  FD_EVENT,
  FD_NOTHING
};

struct fd
{
  enum fd_kind kind;
  struct process *process;
  struct link *link;
  int side;
  uint64_t event;
};

void fd_begin (void);
/* Asserts that none is open. */
void fd_end (void);
int fd_add (enum fd_kind kind, struct process *process, struct link *link, int side);
/* NULL: of the system. */
struct fd *fd_get (int number);
bool fd_is_open (int number);
void fd_close (int number);
void fd_close_all (struct process *process);

/* --- links: a side is 0 near, 1 far --- */

gssize link_read (struct link *link, int side, void *to, size_t size);
gssize link_write (struct link *link, int side, const struct iovec *parts, int n_parts);
/* The process has closed its end for the last time, or has shut it. */
void link_shut (struct link *link, int side);
/* Of what there is for a side, how much has arrived; next: when more does, or the end. */
size_t link_arrived (const struct link *link, int to, uint64_t *next);
size_t link_room (const struct link *link, int to);
bool link_has_ended (const struct link *link, int to);
bool link_is_closed (const struct link *link, int to);
/* Whoever waits for a side to read, or to have something, waits for that. */
const void *link_what (const struct link *link, int to);
