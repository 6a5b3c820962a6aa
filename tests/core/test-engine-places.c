/* test-engine-places.c: do the members of a task run where they are to, all at once, and does
 * nobody wait for ever?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "places-test.h"

#include "../../pto/exec/pto-atomic.h"

#include <sched.h>

/* Others that may come meanwhile: many more than it takes, where CPUs are scarce, too. */
#define FLOOD_MAX 300000u

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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  g_assert_cmpuint (places_wrong, ==, 0);

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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  g_assert_cmpuint (places_wrong, ==, 0);
  machine_free (machine);
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
      .backend = PTO_BACKEND_DET, .seed = 1, .endpoints = 4, .kernels = places_kernels });
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
      g_assert_cmpuint (places_wrong, ==, 0);
      machine_free (machine);
    }
}

static _Atomic uint32_t n_noted;

static void
kernel_note (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_store ((_Atomic uint32_t *) (uintptr_t) args[slot->payload->n_args - 1],
                atomic_fetch_add (&n_noted, 1) + 1);
}

/* A chain of tasks, which one place would run to its end, lets whoever waits for that place have it
 * before its next link. */
static void
test_chain_makes_way (void)
{
  static const machine_kernel kernels[] = { kernel_note };
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = PTO_BACKEND_DET, .seed = 1, .endpoints = 1, .kernels = kernels });
  Tensor tensor = machine_external (chain, sizeof chain);
  _Atomic uint32_t links[8], named = 0;
  struct gate gate;

  gate_init (&gate);
  atomic_store (&n_noted, 0);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, existing (&tensor), scalar (&gate));
  gate_wait_reached (machine, &gate);
  for (uint32_t i = 0; i < G_N_ELEMENTS (links); i++)
    SUBMIT (machine, KERNEL_OWN, inout (&tensor), scalar (&links[i]));
  submit_wish (machine,
               &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                   .n_members = 1,
                                   .members = &(struct pto_need){ 0, 0, KERNEL_OWN } },
               &named, NULL, 0);
  settle (machine);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (named, ==, 1);
  for (uint32_t i = 0; i < G_N_ELEMENTS (links); i++)
    g_assert_cmpuint (links[i], ==, 2 + i);
  machine_free (machine);
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
                                                                   .kernels = places_kernels });
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  machine_add ("engine-places", "nobody-waits-for-ever", test_nobody_waits_for_ever);
  g_test_add_func ("/pto/engine-places/chain-makes-way", test_chain_makes_way);
  g_test_add_func ("/pto/engine-places/kept-is-not-hungry", test_kept_is_not_hungry);
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
