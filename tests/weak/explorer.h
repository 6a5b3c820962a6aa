/* explorer.h: how is every way tried in which the steps of a few actors may follow each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The code under test is built with a switch point at every atomic operation, at which another
 * actor may go on. A small program is run again and again on the det back end, each time along
 * another path, depth first, until there is none left. The full trees are too large: no path has
 * more than a given number of preemptions (an actor that could go on is made to wait); who goes
 * next when an actor parks is always tried in every way. If PTO_TEST_SHORT is set, only a few
 * paths run, each chosen at random.
 *
 * There are two builds of each program. One has PTO_EXPLORE, and its interleavings are sequentially
 * consistent ones. The other has PTO_WEAK, and runs on the machine of weak.h: in each path, loads
 * give an old value up to a given number of times.
 */
#pragma once

#include "../../pto/exec/pto-exec.h"

#ifdef PTO_WEAK
#include "weak.h"
#else
#define weak_read(memory, size) ((void) (memory))
#define weak_write(memory, size) ((void) (memory))
#endif

#define EXPLORER_STEPS_MAX 8192u

struct explorer
{
  struct pto_exec *exec;
  bool on;
  bool yielding;
  bool pausing;
  uint32_t bound, preemptions;
  uint32_t stale_bound, stale;
  uint32_t depth;
  uint32_t length;
  uint16_t path[EXPLORER_STEPS_MAX];
  uint16_t width[EXPLORER_STEPS_MAX];
  uint64_t schedules;
  bool few; /* only FEW_PATHS paths run, chosen at random */
};

extern struct explorer explorer;

/* Paths with at most bound preemptions, and stale_bound old values. */
void explorer_init (uint32_t bound, uint32_t stale_bound);
/* The next path begins, or goes on. self: the number of the thread that runs. */
void explorer_start (uint32_t (*self) (void));
void explorer_stop (void);
/* The next path; false: that was the last. */
bool explorer_advance (void);
/* Compares a count over all paths, unless only a few paths run. */
#define explorer_assert_cmpuint(a, op, b) \
  do                                      \
    {                                     \
      if (!explorer.few)                  \
        g_assert_cmpuint (a, op, b);      \
    }                                     \
  while (0)
/* For pto_exec_config: who goes next; the one that yields is the last of the n. */
uint32_t explorer_choose (void *data, uint32_t n);
/* The switch point. */
void explorer_point (void);
/* Whoever has waited longest goes next: for one who would look for the same thing again and again.
 */
void explorer_pause (void);
