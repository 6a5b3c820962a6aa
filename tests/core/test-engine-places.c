/* test-engine-places.c: do the members of a task run where they are to, all at once, and does
 * nobody wait for ever?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Members of one task meet: none of them goes on before all have begun. So a task whose members do
 * not begin at once never ends.
 */
#include "engine-test.h"

#include "../../pto/exec/pto_atomic.h"

#include <sched.h>

#define MEMBERS_MAX 16u
/* Others that may come meanwhile: many more than it takes, where CPUs are scarce, too. */
#define FLOOD_MAX 300000u

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

static _Atomic uint64_t wrong;

static void
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
    atomic_fetch_add (&wrong, 1);
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
    atomic_fetch_add (&wrong, 1);
  pto_yield (machine->exec);
  atomic_fetch_add ((_Atomic uint32_t *) (uintptr_t) args[0], 1);
}

static void
kernel_polite (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  if (machine_here ()->queue != pto_slot_kind (slot) || machine_here ()->member != 0)
    atomic_fetch_add (&wrong, 1);
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

static const machine_kernel kernels[]
    = { kernel_meet,   kernel_meet_too, kernel_meet_and_fail, kernel_named,
        kernel_polite, kernel_busy,     kernel_place };

/* Two schedulers, each with two cohorts of two places of both kinds: 0 and 2 (2 and 4 of the second
 * kind), 1 and 3, ... */
static struct machine *
machine_of (enum pto_backend backend, uint64_t seed)
{
  return machine_new (&(struct machine_config){ .backend = backend,
                                                .seed = seed,
                                                .schedulers = 2,
                                                .endpoints = 4,
                                                .queues = 2,
                                                .cohorts = 2,
                                                .window = 32,
                                                .kernels = kernels });
}

/* Two places, both of one scheduler or one of each of two: the window is so much larger that
 * somebody always waits for one. */
static struct machine *
small_machine (gconstpointer backend, uint32_t schedulers, uint64_t seed)
{
  return machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                .seed = seed,
                                                .schedulers = schedulers,
                                                .endpoints = 2 / schedulers,
                                                .cohorts = 1,
                                                .kernels = kernels });
}

static pto_task_id
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

/* Place 0 is busy until the gate opens. */
static void
submit_gate (struct machine *machine, struct gate *gate)
{
  submit_wish (machine,
               &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                   .n_members = 1,
                                   .members = &(struct pto_need){ 0, 0, KERNEL_GATE } },
               gate, NULL, 0);
}

/* n[0] members on places of the first kind and n[1] on such of the second meet. */
static pto_task_id
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

static pto_task_id
submit_named (struct machine *machine, uint32_t queue, uint32_t place, _Atomic uint32_t *ran)
{
  return submit_wish (
      machine,
      &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                          .n_members = 1,
                          .members = &(struct pto_need){ queue, place, KERNEL_NAMED } },
      ran, NULL, 0);
}

static void
assert_met (const struct meeting *meeting)
{
  g_assert_cmpuint (meeting->gone, ==, meeting->n);
  g_assert_cmpuint (__builtin_popcount (meeting->places), ==, meeting->n);
  g_assert_cmphex (meeting->members, ==, (1u << meeting->n) - 1);
}

static uint32_t
queue_of_place (uint32_t place)
{
  return place % 8 / 4;
}

/* --- each shape --- */

static void
test_named_place (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1);
  _Atomic uint32_t named = 0;
  _Atomic uint32_t others = 0;

  machine_begin (machine);
  for (uint32_t i = 0; i < 200; i++)
    {
      uint32_t place = i * 7 % 16;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      submit_named (machine, queue_of_place (place), place, &named);
      SUBMIT_TO (machine, KERNEL_POLITE, i % 2, scalar (&others));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (named, ==, 200);
  g_assert_cmpuint (others, ==, 200);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

static void
test_in_one_cohort (gconstpointer backend)
{
  static const uint32_t shapes[][2] = { { 0, 2 }, { 1, 1 }, { 1, 2 }, { 2, 2 } };
  struct machine *machine = machine_of (BACKEND (backend), 1);
  static struct meeting meetings[240];
  _Atomic uint32_t others = 0;
  uint32_t seen = 0;

  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    {
      const uint32_t *shape = shapes[i % 4];

      pto_engine_scope_begin (machine->engine, NULL, 0);
      submit_meeting (machine, &meetings[i], shape[0], shape[1], true,
                      i % 3 == 0 ? i % 4 : PTO_COHORT_NONE);
      SUBMIT_TO (machine, KERNEL_POLITE, i % 2, scalar (&others));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    {
      const uint32_t *shape = shapes[i % 4];

      assert_met (&meetings[i]);
      g_assert_cmpuint (__builtin_popcount (meetings[i].cohorts), ==, 1);
      if (i % 3 == 0)
        g_assert_cmphex (meetings[i].cohorts, ==, 1u << i % 4);
      g_assert_cmphex (meetings[i].kernels, ==, (shape[0] > 0) | (shape[1] > 0) << 1);
      seen |= meetings[i].cohorts;
    }
  /* All of them are of use. */
  g_assert_cmphex (seen, ==, 0xf);
  g_assert_cmpuint (others, ==, G_N_ELEMENTS (meetings));
  g_assert_cmpuint (wrong, ==, 0);

  /* One member on any place of a kind is what other tasks are. */
  machine_begin (machine);
  for (uint32_t i = 0; i < 2; i++)
    submit_wish (
        machine,
        &(struct pto_wish){ .together = true,
                            .cohort = PTO_COHORT_NONE,
                            .n_members = 1,
                            .members = &(struct pto_need){ i, PTO_PLACE_ANY, KERNEL_POLITE } },
        &others, NULL, 0);
  machine_end_ok (machine);
  g_assert_cmpuint (others, ==, G_N_ELEMENTS (meetings) + 2);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

static void
test_all_at_once (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1);
  static struct meeting meetings[200];
  _Atomic uint32_t others = 0;

  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    {
      /* Of both schedulers, up to all that there are. */
      pto_engine_scope_begin (machine->engine, NULL, 0);
      submit_meeting (machine, &meetings[i], 1 + i % 8, 1 + i / 2 % 8, false, PTO_COHORT_NONE);
      SUBMIT_TO (machine, KERNEL_POLITE, i % 2, scalar (&others));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    assert_met (&meetings[i]);
  g_assert_cmpuint (others, ==, G_N_ELEMENTS (meetings));
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* Some members name their places, the others take what is left. */
static void
test_some_named_at_once (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1);
  static struct meeting meetings[100];

  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    {
      struct pto_need needs[8];

      for (uint32_t m = 0; m < 8; m++)
        needs[m] = (struct pto_need){ .queue = 0, .place = PTO_PLACE_ANY, .kernel = KERNEL_MEET };
      needs[7].place = i % 4;
      needs[3].place = 8 + i % 4;
      pto_engine_scope_begin (machine->engine, NULL, 0);
      meeting_init (&meetings[i], 1 + 7 * (i % 2));
      submit_wish (machine,
                   &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                       .n_members = meetings[i].n,
                                       .members = needs + 8 - meetings[i].n },
                   &meetings[i], NULL, 0);
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    assert_met (&meetings[i]);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

static void
settle (struct machine *machine)
{
  while (pto_exec_help (machine->exec))
    ;
}

/* All on places of their names, of the first kind. */
static void
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

/* Who names its places waits for nobody else's; who shares one with somebody who came before waits
 * behind him, and keeps nothing meanwhile from those who take any. */
static void
test_waits_where_named (void)
{
  static const uint32_t first[] = { 1, 0 };
  static const uint32_t apart[] = { 2, 3 };
  static const uint32_t shares[] = { 1, 2 };
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = PTO_BACKEND_DET, .seed = 1, .endpoints = 4, .kernels = kernels });
  static struct meeting meetings[4];
  _Atomic uint32_t ran = 0;
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  submit_gate (machine, &gate);
  gate_wait_reached (machine, &gate);
  submit_at (machine, &meetings[0], 2, first);
  submit_at (machine, &meetings[1], 2, apart);
  settle (machine);
  g_assert_cmpuint (meetings[0].arrived, ==, 0);
  assert_met (&meetings[1]);
  submit_at (machine, &meetings[2], 2, shares);
  submit_at (machine, &meetings[3], 1, &apart[1]);
  settle (machine);
  g_assert_cmpuint (meetings[2].arrived, ==, 0);
  assert_met (&meetings[3]);
  /* On 3: 1 and 2 are kept, which nobody else waits for. */
  SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  settle (machine);
  g_assert_cmpuint (ran, ==, 1);
  submit_meeting (machine, &meetings[1], 2, 0, false, PTO_COHORT_NONE);
  settle (machine);
  g_assert_cmpuint (meetings[1].arrived, ==, 0);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  for (uint32_t i = 0; i < 4; i++)
    assert_met (&meetings[i]);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* --- places come and go --- */

static void
go (struct machine *machine, uint32_t place)
{
  pto_scheduler_withdraw (&machine->endpoints[0][place]->endpoint);
}

static void
come (struct machine *machine, uint32_t place)
{
  pto_scheduler_put_back (&machine->endpoints[0][place]->endpoint);
}

/* Who needs a place that is away waits until it is back; the others go on. */
static void
test_away (void)
{
  struct machine *machine = small_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 1, 1);
  static struct meeting meeting;
  _Atomic uint32_t ran = 0;
  _Atomic uint32_t named = 0;
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  settle (machine);
  go (machine, 1);
  submit_named (machine, 0, 1, &named);
  for (uint32_t i = 0; i < 5; i++)
    SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  settle (machine);
  g_assert_cmpuint (ran, ==, 5);
  g_assert_cmpuint (named, ==, 0);
  come (machine, 1);
  settle (machine);
  g_assert_cmpuint (named, ==, 1);
  /* Kept, and away: kept no more. */
  submit_gate (machine, &gate);
  submit_meeting (machine, &meeting, 2, 0, false, PTO_COHORT_NONE);
  settle (machine);
  g_assert_true (machine->schedulers[0]->places.berths[1].kept);
  go (machine, 1);
  g_assert_false (machine->schedulers[0]->places.berths[1].kept);
  gate_open (machine, &gate);
  settle (machine);
  g_assert_cmpuint (meeting.arrived, ==, 0);
  come (machine, 1);
  settle (machine);
  assert_met (&meeting);
  /* While it runs something: that ends, and then it is away. */
  gate_init (&gate);
  submit_gate (machine, &gate);
  gate_wait_reached (machine, &gate);
  go (machine, 0);
  submit_named (machine, 0, 0, &named);
  gate_open (machine, &gate);
  settle (machine);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 9);
  g_assert_cmpuint (named, ==, 1);
  come (machine, 0);
  machine_end_ok (machine);
  g_assert_cmpuint (named, ==, 2);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

static void
pass_time (struct machine *machine)
{
  struct pto_word never;

  pto_word_init (&never, 0, false);
  pto_park (machine->exec, &never, 0, pto_now (machine->exec) + 1);
}

/* A place that goes, and perhaps comes back, while its scheduler tells the consumers of what has
 * just run there: it has nothing to do and is not idle. */
static void
test_away_between (gconstpointer comes_back)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = PTO_BACKEND_DET, .seed = 1, .fanout_cost = 1000, .kernels = kernels });
  const struct pto_endpoint *place = machine->pointers[0][0];
  struct gate gates[3];
  _Atomic uint32_t where = 0;
  _Atomic uint32_t named = 0;
  PTOParam param = scalar (&where);
  pto_task_id id;

  gate_init (&gates[0]);
  machine_begin (machine);
  id = submit_wish (machine,
                    &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                        .n_members = 1,
                                        .members = &(struct pto_need){ 0, 0, KERNEL_GATE } },
                    &gates[0], NULL, 0);
  gate_wait_reached (machine, &gates[0]);
  pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_PLACE,
                                                            .params = &param,
                                                            .n_params = 1,
                                                            .producers = &id,
                                                            .n_producers = 1 });
  gate_open (machine, &gates[0]);
  while (!place->between)
    pass_time (machine);
  g_assert_null (place->running);
  go (machine, 0);
  if (comes_back != NULL)
    come (machine, 0);
  while (pto_engine_completed (machine->engine) < 2)
    pass_time (machine);
  /* What follows runs where it came to be ready, unless that is away. */
  g_assert_cmpuint (where, ==, comes_back != NULL ? 1 : 2);
  submit_named (machine, 0, 0, &named);
  settle (machine);
  g_assert_cmpuint (named, ==, comes_back != NULL);
  come (machine, 0);
  settle (machine);
  /* Each place is there once. */
  for (uint32_t i = 0; i < 3; i++)
    {
      gate_init (&gates[i]);
      SUBMIT (machine, KERNEL_GATE, scalar (&gates[i]));
    }
  settle (machine);
  g_assert_cmpuint (gates[0].reached + gates[1].reached + gates[2].reached, ==, 2);
  for (uint32_t i = 0; i < 3; i++)
    gate_open (machine, &gates[i]);
  machine_end_ok (machine);
  g_assert_cmpuint (named, ==, 1);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* Who needs one that never comes back fails, and it is told for which; those who take any fail when
 * none is left. */
static void
test_gone (void)
{
  static const uint32_t both[] = { 0, 1 };
  struct machine *machine = small_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 1, 1);
  struct machine_endpoint **endpoints = machine->endpoints[0];
  static struct meeting meetings[4];
  _Atomic uint32_t ran = 0;
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  submit_gate (machine, &gate);
  gate_wait_reached (machine, &gate);
  go (machine, 1);
  submit_named (machine, 0, 1, &ran);
  submit_at (machine, &meetings[0], 2, both);
  submit_meeting (machine, &meetings[1], 2, 0, false, PTO_COHORT_NONE);
  settle (machine);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 0);
  endpoints[1]->gone = true;
  pto_scheduler_forget (&endpoints[1]->endpoint);
  settle (machine);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, 3);
  g_assert_cmpuint (endpoints[1]->refused, ==, 3);
  /* Who comes later, too. */
  submit_at (machine, &meetings[2], 2, both);
  submit_meeting (machine, &meetings[3], 2, 0, false, PTO_COHORT_NONE);
  SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  settle (machine);
  g_assert_cmpuint (endpoints[1]->refused, ==, 5);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 5);
  gate_open (machine, &gate);
  settle (machine);
  g_assert_cmpuint (ran, ==, 1);
  go (machine, 0);
  SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  settle (machine);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 7);
  endpoints[0]->gone = true;
  pto_scheduler_forget (&endpoints[0]->endpoint);
  SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  submit_named (machine, 0, 0, &ran);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 1);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, 8);
  for (uint32_t i = 0; i < 4; i++)
    g_assert_cmpuint (meetings[i].arrived, ==, 0);
  machine_free (machine);
}

/* --- nobody waits for ever --- */

/* Others come as long as it takes. */
static void
flood_until (struct machine *machine, const _Atomic uint32_t *gone, uint32_t n,
             void (*submit) (struct machine *machine, uint32_t i))
{
  for (uint32_t i = 0; atomic_load (gone) < n; i++)
    {
      g_assert_cmpuint (i, <, FLOOD_MAX);
      g_assert_false (pto_engine_has_failed (machine->engine));
      pto_engine_scope_begin (machine->engine, NULL, 0);
      submit (machine, i);
      pto_engine_scope_end (machine->engine);
    }
}

static _Atomic uint32_t flood;
static uint8_t chain[8];

static void
submit_single (struct machine *machine, uint32_t i)
{
  SUBMIT (machine, KERNEL_POLITE, scalar (&flood));
}

/* Each second one is a successor of another, so that one endpoint could run them all without an
 * end, while the other one takes its tasks from the queue. */
static void
submit_link (struct machine *machine, uint32_t i)
{
  Tensor tensor = machine_external (chain, sizeof chain);

  if (i % 2 == 0)
    SUBMIT (machine, KERNEL_POLITE, inout (&tensor), scalar (&flood));
  else
    submit_single (machine, i);
}

static void
submit_to_named (struct machine *machine, uint32_t i)
{
  submit_named (machine, 0, 0, &flood);
}

static struct meeting parties[64];

static void
submit_party (struct machine *machine, uint32_t i)
{
  struct meeting *meeting = &parties[i % G_N_ELEMENTS (parties)];

  while (atomic_load (&meeting->gone) < meeting->n)
    pto_exec_help (machine->exec);
  submit_meeting (machine, meeting, 2, 0, i % 3 == 0 && machine->config.schedulers == 1,
                  PTO_COHORT_NONE);
}

/* Whoever needs several places gets them though others come for each, and whoever needs one though
 * others take all; those who name theirs, and those who take any. */
static void
test_nobody_waits_for_ever (gconstpointer backend)
{
  void (*const submits[]) (struct machine *, uint32_t)
      = { submit_single, submit_link, submit_to_named, submit_party };

  for (uint32_t i = 0; i < 4 * G_N_ELEMENTS (submits) * 2; i++)
    {
      void (*submit) (struct machine *, uint32_t) = submits[i / 4 % 4];
      struct machine *machine = small_machine (backend, 1 + i / 16, 1 + i);
      static struct meeting meeting;
      _Atomic uint32_t ran = 0;

      g_test_message ("case %u", i);
      memset (parties, 0, sizeof parties);
      machine_begin (machine);
      for (uint32_t k = 0; k < 40; k++)
        submit (machine, k);
      meeting_init (&meeting, 0);
      switch (i % 4)
        {
        case 0:
          SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
          break;
        case 1:
          submit_named (machine, 0, 0, &ran);
          submit_named (machine, 0, 1, &ran);
          break;
        default:
          submit_meeting (machine, &meeting, 2, 0, i % 4 == 3 && machine->config.schedulers == 1,
                          PTO_COHORT_NONE);
          break;
        }
      flood_until (machine, meeting.n == 0 ? &ran : &meeting.gone, i % 4 == 0 ? 1 : 2, submit);
      machine_end_ok (machine);
      g_assert_cmpuint (wrong, ==, 0);
      machine_free (machine);
    }
}

/* A place that is kept is not idle: its scheduler says of none that it is hungry, and a task that
 * comes for it does not get it. */
static void
test_kept_is_not_hungry (void)
{
  struct machine *machine = small_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 1, 1);
  static struct meeting meeting;
  _Atomic uint32_t ran = 0;
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, scalar (&gate));
  gate_wait_reached (machine, &gate);
  g_assert_cmphex (machine->engine->hungry[0], ==, 1);
  submit_meeting (machine, &meeting, 2, 0, false, PTO_COHORT_NONE);
  settle (machine);
  g_assert_cmphex (machine->engine->hungry[0], ==, 0);
  SUBMIT (machine, KERNEL_POLITE, scalar (&ran));
  settle (machine);
  g_assert_cmpuint (ran, ==, 0);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  assert_met (&meeting);
  g_assert_cmpuint (ran, ==, 1);
  machine_free (machine);
}

/* --- what goes wrong --- */

static void
test_member_fails (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1);
  struct pto_need needs[] = { { 0, PTO_PLACE_ANY, KERNEL_MEET },
                              { 1, PTO_PLACE_ANY, KERNEL_MEET_AND_FAIL },
                              { 1, PTO_PLACE_ANY, KERNEL_MEET_TOO } };
  struct pto_wish wish = { .n_members = 3, .members = needs, .cohort = PTO_COHORT_NONE };
  static struct meeting meetings[4];
  _Atomic uint32_t ran = 0;
  pto_task_id first;
  pto_task_id second;

  machine_begin (machine);
  for (uint32_t i = 0; i < 4; i++)
    meeting_init (&meetings[i], 3);
  first = submit_wish (machine, &wish, &meetings[0], NULL, 0);
  /* Those behind it do not run: with a party, or without. */
  second = submit_wish (machine, &wish, &meetings[1], &first, 1);
  wish.together = true;
  submit_wish (machine, &wish, &meetings[2], &second, 1);
  machine_submit_after (machine, &second, 1, &ran);
  machine_submit_after (machine, &first, 1, &ran);
  machine_wait_completed (machine, 5);
  submit_wish (machine, &wish, &meetings[3], &first, 1);
  machine_end_ok (machine);
  assert_met (&meetings[0]);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, 6);
  for (uint32_t i = 1; i < 4; i++)
    g_assert_cmpuint (meetings[i].arrived, ==, 0);
  g_assert_cmpuint (ran, ==, 0);
  machine_free (machine);
}

/* A run that fails while tasks wait for places: they do not run, what is kept for them is given
 * back, and the next run has all places. */
static void
wait_and_fail (struct machine *machine, bool cancel)
{
  static struct meeting meetings[3];
  _Atomic uint32_t ran = 0;
  struct gate gate;
  struct pto_endpoint *at = NULL;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT_TO (machine, KERNEL_GATE, 1, scalar (&gate));
  gate_wait_reached (machine, &gate);
  for (uint32_t p = 0; p < machine->engine->line.n_places; p++)
    if (machine->engine->line.places[p]->endpoint->running != NULL)
      at = machine->engine->line.places[p]->endpoint;
  g_assert_nonnull (at);
  submit_meeting (machine, &meetings[0], 8, 8, false, PTO_COHORT_NONE);
  submit_meeting (machine, &meetings[1], 2, 2, true, at->cohort);
  submit_meeting (machine, &meetings[2], 1, 1, true, PTO_COHORT_NONE);
  submit_named (machine, at->queue, at->number, &ran);
  settle (machine);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 0);
  if (cancel)
    g_assert_true (pto_engine_cancel (machine->engine));
  else
    pto_engine_fail (machine->engine, PTO_STATUS_EXPLICIT, "enough");
  gate_open (machine, &gate);
  g_assert_cmpint (machine_end (machine, NULL), ==,
                   cancel ? PTO_STATUS_CANCELLED : PTO_STATUS_EXPLICIT);
  g_assert_false (pto_engine_is_lost (machine->engine));
  for (uint32_t i = 0; i < 3; i++)
    g_assert_cmpuint (meetings[i].arrived, ==, 0);
  g_assert_cmpuint (ran, ==, 0);
  machine_begin (machine);
  submit_meeting (machine, &meetings[0], 8, 8, false, PTO_COHORT_NONE);
  machine_end_ok (machine);
  assert_met (&meetings[0]);
}

static void
test_run_fails_meanwhile (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1);

  for (uint32_t i = 0; i < 10; i++)
    wait_and_fail (machine, i % 2 == 0);
  machine_free (machine);
}

static void
test_what_can_never_be (gconstpointer backend)
{
  static const struct
  {
    uint32_t n[2];
    bool together;
    uint32_t cohort;
    uint32_t places[2]; /* of the first two members, + 1 */
    enum pto_status status;
    const char *text;
  } cases[] = {
    { { 9, 0 },
      false,
      0,
      { 0 },
      PTO_STATUS_SYNC_START,
      "task 0 (own): 9 members need first at once; this machine has 8: ask for less" },
    { { 1, 9 },
      false,
      0,
      { 0 },
      PTO_STATUS_SYNC_START,
      "9 members need second at once; this machine has 8" },
    { { 3, 1 },
      true,
      PTO_COHORT_NONE,
      { 0 },
      PTO_STATUS_INVALID_ARGS,
      "no cohort has 3 first and 1 second: ask for less" },
    { { 1, 1 },
      true,
      4,
      { 0 },
      PTO_STATUS_INVALID_ARGS,
      "it is for cohort 4; this machine has 4: ask for less" },
    { { 3, 0 }, true, 3, { 0 }, PTO_STATUS_INVALID_ARGS, "no cohort has 3 first" },
    { { 1, 1 },
      true,
      3,
      { 1 },
      PTO_STATUS_INVALID_ARGS,
      "member 0 names its place, but members in one cohort name the cohort" },
    { { 2, 0 },
      false,
      0,
      { 3, 3 },
      PTO_STATUS_INVALID_ARGS,
      "members 0 and 1 are both for place 2 and begin at once" },
    { { 1, 0 },
      false,
      0,
      { 17 },
      PTO_STATUS_INVALID_ARGS,
      "member 0 is for place 16, which is no first of this machine" },
    { { 1, 0 },
      false,
      0,
      { 6 },
      PTO_STATUS_INVALID_ARGS,
      "member 0 is for place 5, which is no first of this machine" },
    { { 0, 0 }, false, 0, { 0 }, PTO_STATUS_INVALID_ARGS, "a task has at least one member" },
  };
  struct machine *machine = machine_of (BACKEND (backend), 1);
  struct pto_need odd = { 7, PTO_PLACE_ANY, KERNEL_NOTHING };
  struct pto_need named = { 0, 1, KERNEL_NOTHING };
  uint8_t off[8] = { 0 };
  Tensor tensor = machine_external (off, sizeof off);
  PTOParam condition = pto2_make_param (PTO_PARAM_INPUT, &tensor);

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      uint32_t n = cases[i].n[0] + cases[i].n[1];
      struct pto_need needs[MEMBERS_MAX];

      for (uint32_t m = 0; m < n; m++)
        needs[m] = (struct pto_need){ m >= cases[i].n[0],
                                      m < 2 && cases[i].places[m] > 0 ? cases[i].places[m] - 1
                                                                      : PTO_PLACE_ANY,
                                      KERNEL_OWN };
      machine_begin (machine);
      g_assert_cmphex (submit_wish (machine,
                                    &(struct pto_wish){ .together = cases[i].together,
                                                        .cohort = cases[i].cohort,
                                                        .n_members = n,
                                                        .members = needs },
                                    NULL, NULL, 0),
                       ==, PTO_TASK_NONE);
      machine_expect_error (machine, cases[i].status, cases[i].text);
    }
  machine_begin (machine);
  submit_wish (machine, &(struct pto_wish){ .n_members = 1, .members = &odd }, NULL, NULL, 0);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "member 0 is for places of kind 7; there are 2 kinds");
  /* Nobody would look at it. */
  machine_begin (machine);
  g_assert_cmphex (
      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){ .params = &condition,
                                .n_params = 1,
                                .conditional = true,
                                .wish = &(struct pto_wish){ .n_members = 1,
                                                            .members = &named,
                                                            .cohort = PTO_COHORT_NONE } }),
      ==, PTO_TASK_NONE);
  machine_expect_error (
      machine, PTO_STATUS_INVALID_ARGS,
      "task 0 (nothing): a task that says where its members run has no condition");
  machine_free (machine);
}

/* --- beside the rest of the engine --- */

static void
test_extra_is_kept (gconstpointer backend)
{
  static const char text[] = "what the endpoint wants to know";
  struct machine *machine = machine_of (BACKEND (backend), 1);
  struct pto_need need = { 0, 3, KERNEL_NAMED };
  _Atomic uint32_t ran = 0;
  PTOParam param = scalar (&ran);

  for (uint32_t n = 0; n < sizeof text; n++)
    {
      pto_task_id id;
      struct pto_slot *slot;

      machine_begin (machine);
      id = pto_engine_submit (
          machine->engine, &(struct pto_submit){
                               .params = &param,
                               .n_params = 1,
                               .extra = text,
                               .extra_bytes = n,
                               .wish = &(struct pto_wish){
                                   .cohort = PTO_COHORT_NONE, .n_members = 1, .members = &need } });
      slot = pto_ring_slot (&machine->engine->rings[0], PTO_TASK_LOCAL (id));
      g_assert_cmpmem (pto_payload_extra (slot->payload), n, text, n);
      g_assert_cmpuint ((uintptr_t) slot->party % alignof (struct pto_party), ==, 0);
      machine_end_ok (machine);
    }
  g_assert_cmpuint (ran, ==, sizeof text);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* While the submitter runs each task itself: a party goes to the schedulers. */
static void
test_while_direct (void)
{
  struct machine *machine = machine_of (PTO_BACKEND_PAR, 1);
  static struct meeting meeting;
  _Atomic uint32_t ran = 0;

  machine_begin (machine);
  for (uint32_t i = 0; i < 50; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      machine_go_direct (machine);
      switch (i % 3)
        {
        case 0:
          submit_meeting (machine, &meeting, 8, 8, false, PTO_COHORT_NONE);
          break;
        case 1:
          submit_meeting (machine, &meeting, 2, 2, true, i % 4);
          break;
        default:
          submit_named (machine, 1, 4 + i % 4, &ran);
          break;
        }
      g_assert_false (machine->engine->direct);
      pto_engine_scope_end (machine->engine);
      machine_wait_completed (machine, machine->engine->submitted);
      if (i % 3 < 2)
        assert_met (&meeting);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 16);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* A scheduler that the submitter visits goes to wait after a pass: who waits for the same place
 * then does not wait for the next bell, which may never come. */
static void
test_while_visited (void)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                                   .seed = 1,
                                                                   .carriers = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 1,
                                                                   .timeout_ns = 250000000,
                                                                   .kernels = kernels });
  _Atomic uint32_t phase = 0;
  _Atomic uint32_t ran = 0;

  machine_begin (machine);
  submit_wish (machine,
               &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                   .n_members = 1,
                                   .members = &(struct pto_need){ 0, 0, KERNEL_BUSY } },
               &phase, NULL, 0);
  while (atomic_load (&phase) == 0)
    sched_yield ();
  /* From here on nobody carries the other scheduler but the submitter. */
  for (uint32_t i = 0; i < 5; i++)
    submit_wish (machine,
                 &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                     .n_members = 1,
                                     .members = &(struct pto_need){ 0, 1, KERNEL_COUNT } },
                 &ran, NULL, 0);
  g_assert_true (pto_exec_carry (machine->exec, 1, &machine->engine->words[1]->bell));
  g_assert_cmpuint (ran, >=, 1);
  atomic_store (&phase, 2);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 5);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* --- all together, at random --- */

static void
random_parties (enum pto_backend backend, uint64_t seed)
{
  struct machine *machine = machine_of (backend, seed);
  static struct meeting meetings[60];
  pto_task_id ids[60];
  _Atomic uint32_t ran = 0;
  uint64_t random = seed;
  uint32_t n_single = 0;

  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    {
      uint32_t place = machine_below (&random, 16);
      struct pto_need needs[MEMBERS_MAX];
      struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .members = needs };
      uint32_t first = machine_below (&random, 9);
      uint32_t second = machine_below (&random, 9);
      pto_task_id producers[2];
      uint32_t n = i == 0 ? 0 : machine_below (&random, 3);
      PTOParam count = scalar (&ran);
      struct pto_submit submit
          = { .params = &count, .n_params = 1, .producers = producers, .n_producers = n };

      for (uint32_t k = 0; k < n; k++)
        producers[k] = ids[machine_below (&random, i)];
      pto_engine_scope_begin (machine->engine, NULL, 0);
      meeting_init (&meetings[i], 0);
      switch (machine_below (&random, 4))
        {
        case 0:
          /* Blocks, of one kernel or of neighbours. */
          submit.kernel = KERNEL_POLITE;
          submit.queue = place % 2;
          submit.n_blocks = place / 2;
          if (place % 4 == 3)
            {
              wish.together = true;
              wish.cohort = first < 4 ? first : PTO_COHORT_NONE;
              wish.n_members = 1 + second % 2;
              needs[0] = (struct pto_need){ 0, PTO_PLACE_ANY, KERNEL_COUNT };
              needs[1] = (struct pto_need){ second % 4 == 1, PTO_PLACE_ANY, KERNEL_COUNT };
              submit.wish = &wish;
            }
          ids[i] = pto_engine_submit (machine->engine, &submit);
          n_single += (place / 2 > 1 ? place / 2 : 1) * (place % 4 == 3 ? wish.n_members : 1);
          break;
        case 1:
          wish.n_members = 1;
          needs[0] = (struct pto_need){ queue_of_place (place), place, KERNEL_NAMED };
          ids[i] = submit_wish (machine, &wish, &ran, producers, n);
          n_single++;
          break;
        case 2:
          wish.together = true;
          if (place % 2 == 0)
            wish.cohort = place % 4;
          first %= 3;
          second %= 3;
          /* Several neighbours at once, each in a cohort. */
          if (wish.cohort == PTO_COHORT_NONE && place % 3 == 0)
            {
              wish.n_at_once = 1 + place / 4;
              wish.n_members = 2 * wish.n_at_once;
              for (uint32_t m = 0; m < wish.n_members; m++)
                needs[m] = (struct pto_need){ m % 2, PTO_PLACE_ANY, KERNEL_MEET };
              meeting_init (&meetings[i], wish.n_members);
              ids[i] = submit_wish (machine, &wish, &meetings[i], producers, n);
              break;
            }
          G_GNUC_FALLTHROUGH;
        default:
          if (first + second < 2)
            first = second = 1;
          wish.n_members = first + second;
          for (uint32_t m = 0; m < wish.n_members; m++)
            needs[m] = (struct pto_need){ m >= first, PTO_PLACE_ANY, KERNEL_MEET };
          if (!wish.together && first > 0 && place % 3 == 0)
            needs[first - 1].place = place % 4;
          /* All of one kind, and each by its name. */
          else if (!wish.together && first > 1 && place % 3 == 1)
            {
              wish.n_members = first;
              for (uint32_t m = 0; m < first; m++)
                needs[m].place = (place + m) % 8 / 4 * 8 + (place + m) % 4;
            }
          meeting_init (&meetings[i], wish.n_members);
          ids[i] = submit_wish (machine, &wish, &meetings[i], producers, n);
          break;
        }
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (meetings); i++)
    assert_met (&meetings[i]);
  g_assert_cmpuint (ran, ==, n_single);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

static void
test_random_parties (gconstpointer backend)
{
  uint64_t seeds = SCALE (BACKEND (backend) == PTO_BACKEND_DET ? 3000 : 200);

  for (uint64_t seed = 1; seed <= seeds; seed++)
    {
      g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      random_parties (BACKEND (backend), seed);
    }
}

static void
add_tests (void)
{
  machine_add ("engine-places", "named-place", test_named_place);
  machine_add ("engine-places", "in-one-cohort", test_in_one_cohort);
  machine_add ("engine-places", "all-at-once", test_all_at_once);
  machine_add ("engine-places", "some-named-at-once", test_some_named_at_once);
  g_test_add_func ("/pto/engine-places/waits-where-named", test_waits_where_named);
  g_test_add_func ("/pto/engine-places/away", test_away);
  g_test_add_data_func ("/pto/engine-places/away-between", NULL, test_away_between);
  g_test_add_data_func ("/pto/engine-places/away-and-back-between", "", test_away_between);
  g_test_add_func ("/pto/engine-places/gone", test_gone);
  machine_add ("engine-places", "nobody-waits-for-ever", test_nobody_waits_for_ever);
  g_test_add_func ("/pto/engine-places/kept-is-not-hungry", test_kept_is_not_hungry);
  machine_add ("engine-places", "member-fails", test_member_fails);
  machine_add ("engine-places", "run-fails-meanwhile", test_run_fails_meanwhile);
  machine_add ("engine-places", "what-can-never-be", test_what_can_never_be);
  machine_add ("engine-places", "extra-is-kept", test_extra_is_kept);
  g_test_add_func ("/pto/engine-places/while-direct", test_while_direct);
  g_test_add_func ("/pto/engine-places/while-visited", test_while_visited);
  machine_add ("engine-places", "random", test_random_parties);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
