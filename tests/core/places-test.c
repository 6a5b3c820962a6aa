/* places-test.c: what do the tests of members on places share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "places-test.h"

#include "../../pto/exec/pto-atomic.h"

#include <sched.h>

_Atomic uint64_t places_wrong;

void
meeting_init (struct meeting *meeting, uint32_t n)
{
  memset (meeting, 0, sizeof *meeting);
  meeting->n = n;
  for (uint32_t i = 0; i < MEMBERS_MAX; i++)
    pto_word_init (&meeting->open[i], 0, false);
}

static void
meet (struct machine *machine, const struct pto_slot *slot, int64_t *args, uint32_t kernel)
{
  const struct pto_endpoint *place = machine_here ();
  uint32_t member = place->member;
  const struct pto_need *need = &slot->party->members[member].need;
  struct meeting *meeting = (struct meeting *) (uintptr_t) args[slot->payload->n_args - 1];

  if (place->queue != need->queue || (need->place != PTO_PLACE_ANY && need->place != place->number))
    atomic_fetch_add (&places_wrong, 1);
  atomic_fetch_or (&meeting->places, 1u << place->number);
  atomic_fetch_or (&meeting->members, 1u << member);
  atomic_fetch_or (&meeting->kernels, 1u << kernel);
  if (place->cohort != PTO_COHORT_NONE)
    atomic_fetch_or (&meeting->cohorts, 1u << place->cohort);
  if (atomic_fetch_add (&meeting->arrived, 1) + 1 == meeting->n)
    for (uint32_t i = 0; i < meeting->n; i++)
      pto_word_set (machine->exec, &meeting->open[i], 1);
  while (pto_word_get (&meeting->open[member]) == 0)
    pto_park (machine->exec, &meeting->open[member], 0, PTO_NEVER);
  atomic_fetch_add (&meeting->gone, 1);
}

static void
kernel_meet (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  meet (machine, slot, args, 0);
}

static void
kernel_meet_too (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  meet (machine, slot, args, 1);
}

static void
kernel_meet_and_fail (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                      bool *failed)
{
  meet (machine, slot, args, 2);
  *failed = true;
}

/* A task of one member at a place of its name. */
static void
kernel_named (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const struct pto_endpoint *place = machine_here ();

  if (place->number != slot->party->members[0].need.place || place->member != 0)
    atomic_fetch_add (&places_wrong, 1);
  pto_yield (machine->exec);
  atomic_fetch_add ((_Atomic uint32_t *) (uintptr_t) args[0], 1);
}

static void
kernel_polite (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  if (machine_here ()->queue != pto_slot_kind (slot) || machine_here ()->member != 0)
    atomic_fetch_add (&places_wrong, 1);
  pto_yield (machine->exec);
  atomic_fetch_add ((_Atomic uint32_t *) (uintptr_t) args[0], 1);
}

/* Notes where it runs, from 1. */
static void
kernel_place (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_store ((_Atomic uint32_t *) (uintptr_t) args[0], 1 + machine_here ()->number);
}

/* Keeps its thread. */
static void
kernel_busy (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  _Atomic uint32_t *phase = (_Atomic uint32_t *) (uintptr_t) args[0];

  atomic_store (phase, 1);
  while (atomic_load (phase) == 1)
    sched_yield ();
}

const machine_kernel places_kernels[]
    = { kernel_meet,   kernel_meet_too, kernel_meet_and_fail, kernel_named,
        kernel_polite, kernel_busy,     kernel_place };

struct machine *
machine_of (enum pto_backend backend, uint64_t seed)
{
  return machine_new (&(struct machine_config){ .backend = backend,
                                                .seed = seed,
                                                .schedulers = 2,
                                                .endpoints = 4,
                                                .queues = 2,
                                                .cohorts = 2,
                                                .window = 32,
                                                .kernels = places_kernels });
}

struct machine *
small_machine (gconstpointer backend, uint32_t schedulers, uint64_t seed)
{
  return machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                .seed = seed,
                                                .schedulers = schedulers,
                                                .endpoints = 2 / schedulers,
                                                .cohorts = 1,
                                                .kernels = places_kernels });
}

pto_task_id
submit_wish (struct machine *machine, const struct pto_wish *wish, const void *last,
             const pto_task_id *producers, uint32_t n_producers)
{
  PTOParam param = scalar (last);

  return pto_engine_submit (machine->engine, &(struct pto_submit){ .params = &param,
                                                                   .n_params = 1,
                                                                   .wish = wish,
                                                                   .producers = producers,
                                                                   .n_producers = n_producers });
}

void
submit_gate (struct machine *machine, struct gate *gate)
{
  submit_wish (machine,
               &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                   .n_members = 1,
                                   .members = &(struct pto_need){ 0, 0, KERNEL_GATE } },
               gate, NULL, 0);
}

pto_task_id
submit_meeting (struct machine *machine, struct meeting *meeting, uint32_t first, uint32_t second,
                bool together, uint32_t cohort)
{
  struct pto_need needs[MEMBERS_MAX];

  g_assert_cmpuint (first + second, <=, MEMBERS_MAX);
  for (uint32_t i = 0; i < first + second; i++)
    needs[i] = (struct pto_need){ .queue = i < first ? 0 : 1,
                                  .place = PTO_PLACE_ANY,
                                  .kernel = i < first ? KERNEL_MEET : KERNEL_MEET_TOO };
  meeting_init (meeting, first + second);
  return submit_wish (
      machine,
      &(struct pto_wish){
          .together = together, .cohort = cohort, .n_members = first + second, .members = needs },
      meeting, NULL, 0);
}

pto_task_id
submit_named (struct machine *machine, uint32_t queue, uint32_t place, _Atomic uint32_t *ran)
{
  return submit_wish (
      machine,
      &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                          .n_members = 1,
                          .members = &(struct pto_need){ queue, place, KERNEL_NAMED } },
      ran, NULL, 0);
}

void
assert_met (const struct meeting *meeting)
{
  g_assert_cmpuint (meeting->gone, ==, meeting->n);
  g_assert_cmpuint (__builtin_popcount (meeting->places), ==, meeting->n);
  g_assert_cmphex (meeting->members, ==, (1u << meeting->n) - 1);
}

void
settle (struct machine *machine)
{
  while (pto_exec_help (machine->exec))
    ;
}

void
submit_at (struct machine *machine, struct meeting *meeting, uint32_t n, const uint32_t *places)
{
  struct pto_need needs[MEMBERS_MAX];

  for (uint32_t m = 0; m < n; m++)
    needs[m] = (struct pto_need){ .queue = 0, .place = places[m], .kernel = KERNEL_MEET };
  meeting_init (meeting, n);
  submit_wish (machine,
               &(struct pto_wish){ .cohort = PTO_COHORT_NONE, .n_members = n, .members = needs },
               meeting, NULL, 0);
}
