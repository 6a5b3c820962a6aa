/* test-engine-places-gone.c: what becomes of tasks with members when places go, and when members or
 * runs fail?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "places-test.h"

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
  g_assert_cmpuint (places_wrong, ==, 0);
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
      .backend = PTO_BACKEND_DET, .seed = 1, .fanout_cost = 1000, .kernels = places_kernels });
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
  g_assert_cmpuint (places_wrong, ==, 0);
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
  machine_begin (machine);
  g_assert_cmphex (
      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){ .kernel = KERNEL_NOTHING,
                                .n_blocks = 3,
                                .wish = &(struct pto_wish){ .n_members = 1,
                                                            .members = &named,
                                                            .cohort = PTO_COHORT_NONE } }),
      ==, PTO_TASK_NONE);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "task 0 (nothing): member 0 names its place, but the task has 3 blocks");
  machine_free (machine);
}
static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-places-gone/away", test_away);
  g_test_add_data_func ("/pto/engine-places-gone/away-between", NULL, test_away_between);
  g_test_add_data_func ("/pto/engine-places-gone/away-and-back-between", "", test_away_between);
  g_test_add_func ("/pto/engine-places-gone/gone", test_gone);
  machine_add ("engine-places-gone", "member-fails", test_member_fails);
  machine_add ("engine-places-gone", "run-fails-meanwhile", test_run_fails_meanwhile);
  machine_add ("engine-places-gone", "what-can-never-be", test_what_can_never_be);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
