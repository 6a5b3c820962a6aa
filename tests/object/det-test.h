/* det-test.h: what do the parts of the test of remote workers in virtual time know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * test-remote-det.c has the seeds and the program, det-lives.c those who run its tasks, and what is
 * done to them, det-witness.c what the pool says of each task.
 */
#pragma once

#include "../../pto/process/pool-private.h"
#include "../process/pool-test.h"
#include "det-ends.h"
#include "det-world.h"

#define SECOND UINT64_C (1000000000)
#define REMOTES_MAX 4u
#define CHILDREN_MAX (REMOTES_MAX + 1) /* the last shares our memory */
#define TASKS_MAX 96u
#define ARGS_MAX 4u
#define BOARD 768u /* elements */
/* And behind them, where there are large tensors: of more bytes than go in one message. */
#define LARGE 200000u
#define LIVES_MAX 512u

enum use
{
  USE_READ,
  USE_UPDATE, /* what is read is written */
  USE_WRITE   /* all of it, whatever was there */
};

/* What a task is to do there. */
enum plan
{
  PLAN_WELL,
  PLAN_FAIL,
  PLAN_CRASH, /* once */
};

struct arg
{
  enum use use;
  uint32_t first, n;
};

struct task
{
  uint32_t run;
  uint32_t n_args;
  struct arg args[ARGS_MAX];
  enum plan plan;
  uint32_t worker;
  uint64_t takes;
  uint64_t sum; /* of what it is to read */
  /* What became of it: where it ran, and for the pool. */
  uint32_t n_begun;
  uint32_t n_again; /* it was lost so often when it had begun, and is run once more */
  bool has_worked;
  bool is_over;
  bool has_failed;
  enum pto_failure_kind kind;
  bool may_be_lost; /* something was done to who had it */
};

/* A process that serves child's mailbox, or the far end of one. */
struct life
{
  uint32_t child;
  struct process *process;
  struct bridge *bridge; /* NULL: it is the local one */
  struct link *link;
  struct far *far;
  struct process *far_process;
  uint64_t frozen_at; /* 0: it is not */
  uint64_t thawed_at;
  bool is_touched; /* something was done from which it may die */
  bool is_found;   /* dead */
};

/* What a seed does. */
struct profile
{
  uint32_t n_remotes;
  uint32_t n_tasks;
  uint32_t faults; /* at most */
  bool cuts, freezes, kills, crashes;
  uint32_t fails; /* of so many tasks one; 0: none */
  bool cancels;
  bool idles; /* nothing is to be done for a while, and some tasks take long */
  bool large;
  bool damages; /* what is said is not what is heard: numbers mean nothing */
  uint32_t retries;
  uint64_t leaves; /* what has so many bytes is left there; 0: nothing is */
  struct ends_config ends;
  struct link_config link;
};

struct det_test
{
  uint32_t seed;
  struct pool_test own;
  struct pto_writes *writes;
  struct profile profile;
  enum pto_pace pace;
  struct life lives[LIVES_MAX];
  uint32_t n_lives;
  struct life *current[CHILDREN_MAX];
  struct task tasks[2 * TASKS_MAX];
  uint32_t n_tasks;
  uint32_t run;
  uint32_t first_of_run;
  bool is_cancelled;
  bool stops; /* who looks after things */
  bool closes;
  bool calms; /* nothing is done to anybody any more */
  uint64_t n_failed;
};

extern struct det_test test;

extern uint64_t board[BOARD + LARGE];
extern uint64_t model[BOARD + LARGE];
/* Elements that were left with somebody who is lost, and that nobody has written since. */
extern bool gone[BOARD + LARGE];

/* What all seeds came to. */
struct det_total
{
  uint64_t tasks, failed, lost, again, never, lives, faults, cancelled, silences, left, gone;
};

extern struct det_total total;

#define fail_seed(...)                                                                             \
  G_STMT_START                                                                                     \
  {                                                                                                \
    g_autofree char *text_ = g_strdup_printf (__VA_ARGS__);                                        \
    g_error ("seed %u, at %" G_GUINT64_FORMAT " us: %s (%s)", test.seed, world_now () / US, text_, \
             world_last_line ());                                                                  \
  }                                                                                                \
  G_STMT_END

/* --- what a task does --- */

/* Of all that it reads; at: where each argument is. */
uint64_t sum_up (uint32_t number, uint64_t *const at[ARGS_MAX]);
void write_all (uint32_t number, uint64_t sum, uint64_t *const at[ARGS_MAX]);

/* --- lives --- */

extern const struct pto_child_ops det_child_ops;

void begin_life (uint32_t child);
void free_life (struct life *life);
bool is_ever_touched (uint32_t child);

/* Actors: the pool's clock, who finds the dead, and who does something to the living. */
void tick (void *data);
void patrol (void *data);
void harm (void *data);
