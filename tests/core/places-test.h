/* places-test.h: what do the tests of members on places share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Members of one task meet: none of them goes on before all have begun. So a task whose members do
 * not begin at once never ends.
 */
#pragma once

#include "engine-test.h"

#define MEMBERS_MAX 16u

/* Members of a task that meet. */
struct meeting
{
  uint32_t n;
  _Atomic uint32_t arrived;
  _Atomic uint32_t gone;
  _Atomic uint32_t places; /* a bit a place, by number */
  _Atomic uint32_t cohorts;
  _Atomic uint32_t members;
  _Atomic uint32_t kernels;
  struct pto_word open[MEMBERS_MAX];
};

enum
{
  KERNEL_MEET = KERNEL_OWN,
  KERNEL_MEET_TOO,
  KERNEL_MEET_AND_FAIL,
  KERNEL_NAMED,
  KERNEL_POLITE,
  KERNEL_BUSY,
  KERNEL_PLACE
};

extern const machine_kernel places_kernels[];
/* Members that ran where they were not to, or as who they were not. */
extern _Atomic uint64_t places_wrong;

void meeting_init (struct meeting *meeting, uint32_t n);
/* Two schedulers, each with two cohorts of two places of both kinds: 0 and 2 (2 and 4 of the second
 * kind), 1 and 3, ... */
struct machine *machine_of (enum pto_backend backend, uint64_t seed);
/* Two places, both of one scheduler or one of each of two: the window is so much larger that
 * somebody always waits for one. */
struct machine *small_machine (gconstpointer backend, uint32_t schedulers, uint64_t seed);
pto_task_id submit_wish (struct machine *machine, const struct pto_wish *wish, const void *last,
                         const pto_task_id *producers, uint32_t n_producers);
/* Place 0 is busy until the gate opens. */
void submit_gate (struct machine *machine, struct gate *gate);
/* n[0] members on places of the first kind and n[1] on such of the second meet. */
pto_task_id submit_meeting (struct machine *machine, struct meeting *meeting, uint32_t first,
                            uint32_t second, bool together, uint32_t cohort);
pto_task_id submit_named (struct machine *machine, uint32_t queue, uint32_t place,
                          _Atomic uint32_t *ran);
void assert_met (const struct meeting *meeting);
void settle (struct machine *machine);
/* All on places of their names, of the first kind. */
void submit_at (struct machine *machine, struct meeting *meeting, uint32_t n,
                const uint32_t *places);
