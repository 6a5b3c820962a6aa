/* pool-bench.h: a pool on the det back end whose children are answered by hand.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The test is the children: it looks into their mailboxes, answers, declares them dead and lets
 * time pass. Everything else parks in between, so nothing depends on chance.
 */
#pragma once

#include "level-test.h"
#include "pool-test.h"

#define CHILDREN 4u
#define NEVER_MIND 99u /* a number that no child has */

struct bench
{
  struct pool_test own;
  enum pto_pace pace;
  char killed[CHILDREN][160];
  uint32_t lost[CHILDREN];
  char refused[CHILDREN][64];
  struct pto_control *asked; /* while a child is made; NULL: nothing */
  struct pto_writes *writes;
  /* Of what is submitted: to run it once more does no harm, it has these tensors of two words. */
  bool idempotent;
  uint32_t n_tensors;
  PTOParamType types[2];
  uint64_t *words[2];
};

void settle (struct bench *bench);
void answer_with (struct bench *bench, uint32_t child, uint32_t status, const char *text);
void answer (struct bench *bench, uint32_t child);
void take (struct bench *bench, uint32_t child);
void die (struct bench *bench, uint32_t child);
void revive (struct bench *bench, uint32_t child);
void pass_time (struct bench *bench, uint64_t ns);
/* The request that the child, if it is there, has to answer; 0: none. */
uint32_t request_of (const struct bench *bench, uint32_t child);
/* The numbers of the tasks that the child has; gives how many. */
uint32_t tasks_of (const struct bench *bench, uint32_t child, uint64_t numbers[PTO_TOGETHER_MAX]);
/* That of the first, or NEVER_MIND. */
uint64_t task_of (const struct bench *bench, uint32_t child);
void assert_tasks (const struct bench *bench, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
struct bench *bench_new (bool again);
void begin_run (struct bench *bench);
/* Started, and a run has begun. */
struct bench *bench_ready (bool again);
/* All tasks are done: ends the run. */
void end_run (struct bench *bench, uint64_t n_tasks, uint64_t roots);
/* It is not wanted any more: as a level says it. */
void cancel (struct bench *bench, uint64_t patience);
void end_cancelled (struct bench *bench, uint64_t n_tasks);
void bench_free (struct bench *bench);
/* Tasks are numbered by the test. */
void submit (struct bench *bench, uint64_t number, uint32_t n, const uint32_t *workers);
void submit_to (struct bench *bench, uint64_t number, uint32_t worker);
void set_silent (struct bench *bench, uint32_t child, bool silent);
struct bench *bench_far (void);
/* As a bridge says it. */
void answer_tasks (struct bench *bench, uint32_t child, uint64_t failed, uint64_t busy);
void assert_has (const struct bench *bench, uint32_t child, uint64_t first, uint32_t n);
/* What tasks take there is known, of all but the last child: tasks 0 to 2 have been run. */
struct bench *bench_known (uint64_t busy);
