/* test-engine-explore-updates.c: do tasks that update memory in any order, or in copies, do so one
 * at a time, whichever way the steps of submitter and schedulers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As test-engine-explore.c, in a program of its own.
 */
#include "engine-explore.h"

#include "../../pto/core/graph-launch.h"

/* Three that update two pieces of memory in any order, one of them both. What they write there is
 * not atomic. */
static void
turns (struct machine *machine)
{
  Tensor first = machine_external (memory, 8);
  Tensor second = machine_external (memory + 8, 8);
  PTOParam params[] = { pto2_make_param (PTO_PARAM_COMMUTATIVE, &first),
                        pto2_make_param (PTO_PARAM_COMMUTATIVE, &second), make_scalar_param (0) };

  n_order = 0;
  start ();
  params[2] = make_scalar_param (0 | WRITES (0) | WRITES (1));
  machine_submit (machine, KERNEL_NOTE, 0, params, 3);
  params[1] = make_scalar_param (1 | WRITES (0));
  machine_submit (machine, KERNEL_NOTE, 0, params, 2);
  params[0] = pto2_make_param (PTO_PARAM_COMMUTATIVE, &second);
  params[1] = make_scalar_param (2 | WRITES (0));
  machine_submit (machine, KERNEL_NOTE, 0, params, 2);
}

static void
check_turns (struct machine *machine)
{
  assert_once (3);
}

static void
test_turns (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (2),
      .at_least = SCALE (1000),
      .body = turns,
      .check = check_turns });
}

/* The same three as a graph that is launched. */
static struct pto_plan *plan;

static void
make_plan (void)
{
  const uint32_t updates[3][2] = { { 1, 1 }, { 1, 0 }, { 0, 1 } };
  struct pto_report report = { 0 };

  plan = pto_plan_new ();
  for (uint32_t p = 0; p < 2; p++)
    {
      struct pto_plan_param param = { .tensor = machine_external (memory + 8 * p, 8),
                                      .first = (uint64_t) (uintptr_t) memory + 8 * p,
                                      .extent = 8 };

      g_assert_cmpuint (pto_plan_add_param (plan, &param), ==, p);
    }
  for (uint32_t task = 0; task < 3; task++)
    {
      uint32_t n = 0;

      pto_plan_add_task (plan, &(struct pto_submit){ .kernel = KERNEL_NOTE }, 0);
      for (uint32_t p = 0; p < 2; p++)
        if (updates[task][p])
          {
            pto_plan_add_token (plan, p);
            pto_plan_add_tensor (plan, p, 0, &plan->params[p].tensor, true, false);
            n++;
          }
      pto_plan_add_number (plan, task | WRITES (0) | (n > 1 ? WRITES (1) : 0));
    }
  g_assert_cmpint (pto_plan_complete (plan, &report), ==, PTO_OK);
}

static void
launched_turns (struct machine *machine)
{
  const uint64_t words[] = { (uint64_t) (uintptr_t) memory, (uint64_t) (uintptr_t) (memory + 8) };

  n_order = 0;
  start ();
  g_assert_true (
      pto_engine_launch (machine->engine, &(struct pto_launch){ .graph = plan, .words = words }));
}

static void
test_launched_turns (void)
{
  make_plan ();
  for (uint32_t schedulers = 1; schedulers <= 2; schedulers++)
    explore (&(struct scenario){ .config = { .immediate = true,
                                             .schedulers = schedulers,
                                             .endpoints = 1,
                                             .kernels = explored_kernels },
                                 .bound = THOROUGH (2),
                                 .at_least = SCALE (schedulers == 2 ? 1000 : 20),
                                 .body = launched_turns,
                                 .check = check_turns });
  pto_plan_free (plan);
}

/* The same of tasks with two members, which need both places, and of one with two blocks: each has
 * its turn as a whole. Nobody waits for a place with somebody's turn in his hands who waits for
 * his.
 */
static void
turns_of_parts (struct machine *machine)
{
  struct pto_need needs[]
      = { { 0, PTO_PLACE_ANY, KERNEL_NOTE }, { 0, PTO_PLACE_ANY, KERNEL_NOTHING } };
  struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .n_members = 2, .members = needs };
  Tensor first = machine_external (memory, 8);
  PTOParam params[] = { pto2_make_param (PTO_PARAM_COMMUTATIVE, &first), make_scalar_param (0) };

  n_order = 0;
  start ();
  for (uint32_t i = 0; i < 3; i++)
    {
      params[1] = make_scalar_param (i | (i < 2 ? WRITES (0) : LEAVES));
      pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTE,
                                                                .params = params,
                                                                .n_params = 2,
                                                                .wish = i < 2 ? &wish : NULL,
                                                                .n_blocks = i < 2 ? 1 : 2 });
    }
}

static void
check_turns_of_parts (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 4);
  for (uint32_t i = 0; i < 3; i++)
    assert_ran (i, i < 2 ? 1 : 2);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 3);
}

static void
test_turns_of_parts (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (2),
      .at_least = SCALE (1000),
      .body = turns_of_parts,
      .check = check_turns_of_parts });
}

/* Two that reduce into the same memory, and one that reads what comes of it. The copies are filled
 * by tasks of number 3. */
static void
reducers (struct machine *machine)
{
  const uint64_t filled = 3 | WRITES (0);
  Tensor tensor = make_tensor_external (memory, (uint64_t[]){ 1 }, 1, PTO_DTYPE_UINT64);

  n_order = 0;
  start ();
  for (uint32_t i = 0; i < 2; i++)
    SUBMIT (machine, KERNEL_NOTE, pto2_make_reduction_param (&tensor, 0, &filled),
            make_scalar_param (i | WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), make_scalar_param (2));
}

static void
check_reducers (struct machine *machine)
{
  g_assert_cmpuint (n_order, ==, 5);
  assert_ran (3, 2);
  g_assert_cmpuint (place (2), ==, 4);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, 7);
}

static bool
take_in (void *data, const PTOParam *param, struct pto_reduction *reduction, char *why, size_t size)
{
  *reduction = (struct pto_reduction){ .fill = KERNEL_NOTE, .combine = KERNEL_TAKE_IN };
  return true;
}

static void
test_reducers (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .endpoints = 1,
                                           .kernels = explored_kernels,
                                           .reduction = take_in },
                               .bound = THOROUGH (2),
                               .at_least = SCALE (1000),
                               .body = reducers,
                               .check = check_reducers });
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-explore-updates/turns", test_turns);
  g_test_add_func ("/pto/engine-explore-updates/launched-turns", test_launched_turns);
  g_test_add_func ("/pto/engine-explore-updates/turns-of-parts", test_turns_of_parts);
  g_test_add_func ("/pto/engine-explore-updates/reducers", test_reducers);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
