/* engine-explore.h: how is every interleaving of an engine's submitter and schedulers run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A machine (engine-test.h) on the det back end, whose choices are the explorer's; it is used for
 * all paths of a scenario.
 */
#pragma once

#include "engine-test.h"

#include "../../pto/core/engine.h"
#include "../weak/explorer.h"

#ifdef PTO_WEAK
/* An old value stands for a preemption, and more happens where there is a switch point. */
#define BOUND(n) ((n) -1)
#define STALE 1
#define AT_LEAST(n) ((n) / 10)
#else
#define BOUND(n) (n)
#define STALE 0
#define AT_LEAST(n) (n)
#endif

/* A preemption less where every access is checked: each multiplies the schedules. */
#define THOROUGH(n) (SCALE (20) > 1 ? (n) : (n) -1)

struct scenario
{
  struct machine_config config;
  uint32_t bound;
  uint64_t at_least;
  enum pto_status may_end_as; /* PTO_OK: it ends well */
  /* Before the run begins, where that is a part of what is explored. */
  void (*before) (struct machine *machine);
  /* Calls start() where it gets interesting; the run is ended by the explorer. */
  void (*body) (struct machine *machine);
  /* After each run. */
  void (*check) (struct machine *machine);
};

void explore (const struct scenario *scenario);
/* From here on. */
void start (void);
/* Somebody who is neither submitter nor scheduler; one in a scenario. */
void spawn_other (struct machine *machine, const char *name, void (*fn) (void *data));
/* Those who yield may go on themselves; otherwise the one that has waited longest does. */
extern bool yields_on;
extern bool ended_well; /* the last run */

/* Somebody cancels the run at any time from here on: whether a run was told so, and how many tasks
 * had noted themselves by then. */
void begin_to_cancel (struct machine *machine);
extern bool was_told;
extern uint32_t n_noted_then;
extern _Atomic uint32_t asked;

/* --- what happened --- */

extern uint32_t order[16];
extern uint32_t n_order;
extern uint8_t memory[64];
extern uint64_t early, late; /* a scenario's own */

/* With the task's number: it writes its nth tensor; it leaves the first alone. It reads the others.
 */
#define WRITES(n) (256u << (n))
#define LEAVES 128u

enum
{
  KERNEL_NOTE = KERNEL_OWN,
  KERNEL_NOTE_AND_FAIL,
  KERNEL_END_RUN,
  KERNEL_TAKE_IN
};

extern const machine_kernel explored_kernels[];

void assert_ran (uint32_t number, uint32_t times);
/* Each of the n ran once. */
void assert_once (uint32_t n);
uint32_t place (uint32_t number);
/* The task was made ready by the submitter: its producers were done when it was wired. */
bool was_ready_at_submit (struct machine *machine, pto_task_id task);
