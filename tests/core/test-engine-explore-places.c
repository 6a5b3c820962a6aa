/* test-engine-explore-places.c: do the parts of tasks get their places, once each, whichever way
 * the steps of submitter and schedulers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As test-engine-explore.c, in a program of its own.
 */
#include "engine-explore.h"

#include "../../pto/exec/pto-atomic.h"
#include "../weak/sides.h"

/* --- tasks with several members, whose places two schedulers own --- */

/* Two members at once, on any place of the first kind, or one of each in one cohort. */
static pto_task_id
submit_two (struct machine *machine, bool together, const Tensor *tensor, uint32_t number)
{
  struct pto_need needs[]
      = { { 0, PTO_PLACE_ANY, KERNEL_NOTE }, { together, PTO_PLACE_ANY, KERNEL_NOTE } };
  PTOParam params[] = { input (tensor), make_scalar_param (number) };

  return pto_engine_submit (
      machine->engine, &(struct pto_submit){ .params = params,
                                             .n_params = 2,
                                             .wish = &(struct pto_wish){ .together = together,
                                                                         .cohort = PTO_COHORT_NONE,
                                                                         .n_members = 2,
                                                                         .members = needs } });
}

/* What both members read is written before and behind them. */
static void
members_between (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  submit_two (machine, false, &tensor, 1);
  SUBMIT (machine, KERNEL_NOTE, inout (&tensor), make_scalar_param (2 | WRITES (0)));
}

static void
check_members_between (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 4);
  g_assert_cmpuint (place (0), ==, 0);
  g_assert_cmpuint (place (2), ==, 3);
  assert_ran (1, 2);
}

static void
test_members_between (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 2000,
      .body = members_between,
      .check = check_members_between });
}

/* Each needs all places, and somebody else needs one. */
static void
two_parties (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  submit_two (machine, false, &tensor, 1);
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  submit_two (machine, false, &tensor, 2);
}

static void
check_two_parties (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 5);
  assert_ran (0, 1);
  assert_ran (1, 2);
  assert_ran (2, 2);
}

static void
test_two_parties (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 2000,
      .body = two_parties,
      .check = check_two_parties });
}

/* By the names of their places, one of each scheduler: in the order in which they came, behind
 * somebody who takes any two and before one who wants a place of it. */
static void
named_parties (struct machine *machine)
{
  struct pto_need needs[] = { { 0, 1, KERNEL_NOTE }, { 0, 0, KERNEL_NOTE } };
  struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .n_members = 2, .members = needs };
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  submit_two (machine, false, &tensor, 0);
  for (uint32_t i = 1; i < 4; i++)
    {
      PTOParam param = make_scalar_param (i);

      wish.n_members = i < 3 ? 2 : 1;
      pto_engine_submit (machine->engine,
                         &(struct pto_submit){ .params = &param, .n_params = 1, .wish = &wish });
    }
}

static void
check_named_parties (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 7);
  for (uint32_t i = 0; i < 3; i++)
    assert_ran (i, 2);
  assert_ran (3, 1);
}

static void
test_named_parties (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 2000,
      .body = named_parties,
      .check = check_named_parties });
}

/* Who comes last goes first, and takes back what those before it keep: all of them need both. */
static void
outranked_parties (struct machine *machine)
{
  struct pto_need named[] = { { 0, 1, KERNEL_NOTE }, { 0, 0, KERNEL_NOTE } };
  struct pto_need any[] = { { 0, PTO_PLACE_ANY, KERNEL_NOTE }, { 0, PTO_PLACE_ANY, KERNEL_NOTE } };

  n_order = 0;
  start ();
  for (uint32_t i = 0; i < 3; i++)
    {
      PTOParam param = make_scalar_param (i);

      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){ .params = &param,
                                .n_params = 1,
                                .terms.priority = i,
                                .wish = &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                                            .n_members = 2,
                                                            .members = i == 1 ? any : named } });
    }
}

static void
check_outranked_parties (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 6);
  for (uint32_t i = 0; i < 3; i++)
    assert_ran (i, 2);
}

static void
test_outranked_parties (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (2),
      .at_least = SCALE (1000),
      .body = outranked_parties,
      .check = check_outranked_parties });
}

/* Neighbours, whichever cohort they are of, while others come for one place of it, one by name. */
static void
neighbours (struct machine *machine)
{
  struct pto_need need = { 1, 3, KERNEL_NOTE };
  Tensor tensor = machine_external (memory, 8);
  PTOParam param = make_scalar_param (2);

  n_order = 0;
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  start ();
  submit_two (machine, true, &tensor, 1);
  pto_engine_submit (machine->engine,
                     &(struct pto_submit){ .params = &param,
                                           .n_params = 1,
                                           .wish = &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                                                       .n_members = 1,
                                                                       .members = &need } });
}

static void
check_neighbours (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 4);
  assert_ran (0, 1);
  assert_ran (1, 2);
  assert_ran (2, 1);
}

static void
test_neighbours (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .endpoints = 1,
                                           .queues = 2,
                                           .cohorts = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = neighbours,
                               .check = check_neighbours });
}

/* --- tasks of several blocks --- */

static void
submit_blocks (struct machine *machine, uint32_t n_blocks, const struct pto_wish *wish,
               const Tensor *tensor, uint32_t number)
{
  PTOParam params[] = { input (tensor), make_scalar_param (number) };

  pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTE,
                                                            .params = params,
                                                            .n_params = 2,
                                                            .wish = wish,
                                                            .n_blocks = n_blocks });
}

/* Claimed by whoever comes, behind what they read and before what writes it again. */
static void
blocks_between (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  submit_blocks (machine, 3, NULL, &tensor, 1);
  SUBMIT (machine, KERNEL_NOTE, inout (&tensor), make_scalar_param (2 | WRITES (0)));
}

static void
check_blocks_between (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 5);
  g_assert_cmpuint (place (0), ==, 0);
  g_assert_cmpuint (place (2), ==, 4);
  assert_ran (1, 3);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 3);
}

static void
test_blocks_between (void)
{
  for (uint32_t attends = 0; attends < 2; attends++)
    explore (&(struct scenario){ .config = { .immediate = true,
                                             .attends = attends != 0,
                                             .schedulers = 2,
                                             .endpoints = 1,
                                             .kernels = explored_kernels },
                                 .bound = THOROUGH (2),
                                 .at_least = SCALE (1000),
                                 .body = blocks_between,
                                 .check = check_blocks_between });
}

/* The run is cancelled at any time: what nobody has claimed passes by, and the task is over once.
 */
static void
blocks_and_cancel (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  submit_blocks (machine, 3, NULL, &tensor, 1);
  explorer_point ();
  pto_engine_cancel (machine->engine);
}

static void
check_blocks_and_cancel (struct machine *machine)
{
  g_assert_cmpuint (n_order, <=, 3);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, machine->engine->submitted);
  early += n_order > 0 && n_order < 3;
}

static void
test_blocks_and_cancel (void)
{
  early = 0;
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (3),
      .at_least = SCALE (1000),
      .may_end_as = PTO_STATUS_CANCELLED,
      .body = blocks_and_cancel,
      .check = check_blocks_and_cancel });
  explorer_assert_cmpuint (early, >, 0);
}

/* Blocks of neighbours in any cohort; neighbours of one cohort; and two that need all places of a
 * kind. */
static void
bound_parties (struct machine *machine)
{
  struct pto_need needs[]
      = { { 0, PTO_PLACE_ANY, KERNEL_NOTE }, { 1, PTO_PLACE_ANY, KERNEL_NOTE } };
  struct pto_wish wish
      = { .together = true, .cohort = PTO_COHORT_NONE, .n_members = 2, .members = needs };
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  submit_blocks (machine, 2, &wish, &tensor, 0);
  wish.cohort = 1;
  submit_blocks (machine, 1, &wish, &tensor, 1);
  submit_two (machine, false, &tensor, 2);
}

static void
check_bound_parties (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 8);
  assert_ran (0, 4);
  assert_ran (1, 2);
  assert_ran (2, 2);
  for (uint32_t c = 0; c < machine->engine->line.n_cohorts; c++)
    g_assert_cmpuint (atomic_load (&machine->engine->line.cohorts[c].open), ==, 0);
}

static void
test_bound_parties (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .endpoints = 1,
                                           .queues = 2,
                                           .cohorts = 1,
                                           .kernels = explored_kernels },
                               .bound = THOROUGH (2),
                               .at_least = SCALE (2000),
                               .body = bound_parties,
                               .check = check_bound_parties });
}

/* --- members, and a run that is cancelled --- */

/* A cancel at any time: either all members run, or none, and what was kept is given back. */
static void
cancelled_parties (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  begin_to_cancel (machine);
  submit_two (machine, false, &tensor, 1);
  submit_two (machine, false, &tensor, 2);
}

static void
check_cancelled_parties (struct machine *machine)
{
  uint32_t n[3] = { 0 };

  for (uint32_t i = 0; i < n_order; i++)
    n[order[i]]++;
  for (uint32_t i = 1; i < 3; i++)
    g_assert_true (n[i] == 0 || n[i] == 2);
  if (n_order == 4)
    late++;
  else
    early++;
}

static void
test_cancelled_parties (void)
{
  early = late = 0;
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 1,
      .at_least = 200,
      .may_end_as = PTO_STATUS_CANCELLED,
      .body = cancelled_parties,
      .check = check_cancelled_parties });
  explorer_assert_cmpuint (early, >, 10);
  explorer_assert_cmpuint (late, >, 0);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-explore-places/members-between", test_members_between);
  g_test_add_func ("/pto/engine-explore-places/two-parties", test_two_parties);
  g_test_add_func ("/pto/engine-explore-places/named-parties", test_named_parties);
  g_test_add_func ("/pto/engine-explore-places/outranked-parties", test_outranked_parties);
  g_test_add_func ("/pto/engine-explore-places/neighbours", test_neighbours);
  g_test_add_func ("/pto/engine-explore-places/blocks-between", test_blocks_between);
  g_test_add_func ("/pto/engine-explore-places/blocks-and-cancel", test_blocks_and_cancel);
  g_test_add_func ("/pto/engine-explore-places/bound-parties", test_bound_parties);
  g_test_add_func ("/pto/engine-explore-places/cancelled-parties", test_cancelled_parties);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
