/* test-engine-explore.c: is no wake-up lost or doubled, whichever way the steps of submitter and
 * schedulers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * explorer.h says how they are tried, in a build with sequentially consistent interleavings and in
 * one where every load may give what the orders in the source allow it to.
 */
#include "engine-explore.h"

#include "../../pto/core/manual-tasks.h"
#include "../../pto/core/manual-build.h"
#include "../../pto/core/graph-launch.h"
#include "../../pto/exec/pto-atomic.h"
#include "../weak/sides.h"

/* --- a producer that completes before, while and after its two consumers are wired --- */

static void
three_tasks (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), make_scalar_param (1));
  SUBMIT_TO (machine, KERNEL_NOTE, 1, input (&tensor), make_scalar_param (2));
}

static void
check_three_tasks (struct machine *machine)
{
  assert_once (3);
  g_assert_cmpuint (place (0), ==, 0);
  if (was_ready_at_submit (machine, 1))
    early++;
  else
    late++;
}

static void
test_three_tasks (void)
{
  early = late = 0;
  explore (&(struct scenario){
      .config = { .immediate = true, .queues = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 3,
      .at_least = 10000,
      .body = three_tasks,
      .check = check_three_tasks });
  explorer_assert_cmpuint (early, >, 100);
  explorer_assert_cmpuint (late, >, 100);
}

static void
test_three_tasks_two_schedulers (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .queues = 2,
                                           .endpoints = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = three_tasks,
                               .check = check_three_tasks });
}

/* The producer may end while its consumer is wired, and another scheduler run that. */
static void
two_tasks (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), make_scalar_param (1));
}

static void
check_two_in_order (struct machine *machine)
{
  assert_once (2);
  g_assert_cmpuint (place (0), ==, 0);
}

static void
test_two_tasks_two_schedulers (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 3,
      .at_least = 10000,
      .body = two_tasks,
      .check = check_two_in_order });
}

/* --- the first tasks with a priority, for schedulers that fall asleep --- */

static void
two_priorities (struct machine *machine)
{
  n_order = 0;
  start ();
  for (uint32_t i = 0; i < 2; i++)
    {
      PTOParam param = make_scalar_param (i);

      pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTE,
                                                                .params = &param,
                                                                .n_params = 1,
                                                                .terms.priority = 2 - i });
    }
}

static void
check_two (struct machine *machine)
{
  assert_once (2);
}

static void
test_two_priorities (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (2),
      .at_least = SCALE (1000),
      .body = two_priorities,
      .check = check_two });
}

/* --- a task that is given its predecessors after its submit, while they end --- */

static void
built_by_hand (struct machine *machine)
{
  struct pto_engine *engine = machine->engine;
  pto_task_id ids[3];

  n_order = 0;
  start ();
  ids[0] = SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  for (uint32_t i = 1; i < 3; i++)
    {
      pto_added_begin (engine);
      ids[i] = SUBMIT (machine, KERNEL_NOTE, make_scalar_param (i));
      pto_added_end (engine);
    }
  pto_build_publish (engine, ids[1]);
  for (uint32_t i = 0; i < 2; i++)
    pto_build_add_successor (engine, ids[i], ids[2]);
  pto_build_publish (engine, ids[2]);
}

static void
check_built_by_hand (struct machine *machine)
{
  assert_once (3);
  g_assert_cmpuint (place (2), ==, 2);
}

static void
test_built_by_hand (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = THOROUGH (2),
      .at_least = SCALE (1000),
      .body = built_by_hand,
      .check = check_built_by_hand });
}

/* --- a graph that is larger than the ring: tasks that are linked before any is let go --- */

static struct pto_plan *plan;

static void
add_planned (uint32_t number, uint32_t made, const Tensor *tensor, bool makes, bool uses)
{
  pto_plan_add_task (plan, &(struct pto_submit){ .kernel = KERNEL_NOTE }, 0);
  if (makes || uses)
    pto_plan_add_use (plan, made, 0, tensor, makes, false, false);
  pto_plan_add_number (plan, makes ? number | WRITES (0) : number);
}

/* 0 makes what 1 and 2 read; 3 waits for nobody but a slot; 4 comes after 2 and 3. */
static void
make_plan (void)
{
  Tensor tensor = machine_external (NULL, 8);
  struct pto_report report = { 0 };
  uint32_t made;

  plan = pto_plan_new ();
  made = pto_plan_add_memory (plan, 8);
  for (uint32_t i = 0; i < 5; i++)
    add_planned (i, made, &tensor, i == 0, i == 1 || i == 2);
  pto_plan_add_edge (plan, 0, 1, PTO_HAZARD_RAW);
  pto_plan_add_edge (plan, 0, 2, PTO_HAZARD_RAW);
  pto_plan_add_edge (plan, 2, 4, PTO_HAZARD_EXPLICIT);
  pto_plan_add_edge (plan, 3, 4, PTO_HAZARD_EXPLICIT);
  g_assert_cmpint (pto_plan_complete (plan, &report), ==, PTO_OK);
}

static void
launched_graph (struct machine *machine)
{
  n_order = 0;
  start ();
  g_assert_true (pto_engine_launch (machine->engine, &(struct pto_launch){ .graph = plan }));
}

static void
check_launched_graph (struct machine *machine)
{
  assert_once (5);
  g_assert_cmpuint (place (0), <, place (1));
  g_assert_cmpuint (place (0), <, place (2));
  g_assert_cmpuint (place (2), <, place (4));
  g_assert_cmpuint (place (3), <, place (4));
}

static void
test_launched_graph (void)
{
  make_plan ();
  for (uint32_t schedulers = 1; schedulers <= 2; schedulers++)
    explore (&(struct scenario){ .config = { .immediate = true,
                                             .window = 4,
                                             .schedulers = schedulers,
                                             .endpoints = 1,
                                             .kernels = explored_kernels },
                                 .bound = 3 - schedulers,
                                 .at_least = 100,
                                 .body = launched_graph,
                                 .check = check_launched_graph });
  pto_plan_free (plan);
}

/* --- who sees that a task is complete sees what it wrote --- */

static void
one_watched_task (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);
  pto_task_id task;

  n_order = 0;
  start ();
  task = SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  explorer_point ();
  if (pto_engine_task_state (machine->engine, task) == PTO_TASK_COMPLETED)
    {
      weak_read (memory, 8);
      early++;
    }
  else
    late++;
}

static void
check_one (struct machine *machine)
{
  assert_once (1);
}

static void
test_watched_task (void)
{
  early = late = 0;
  explore (&(struct scenario){ .config
                               = { .immediate = true, .endpoints = 1, .kernels = explored_kernels },
                               .bound = 3,
                               .at_least = 200,
                               .body = one_watched_task,
                               .check = check_one });
  explorer_assert_cmpuint (early, >, 0);
  explorer_assert_cmpuint (late, >, 0);
}

/* --- a producer that fails before, while and after its consumer is wired --- */

static void
failing_producer (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);
  Tensor other = machine_external (memory + 8, 8);

  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE_AND_FAIL, output (&tensor), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), output (&other),
          make_scalar_param (1 | WRITES (1)));
  SUBMIT (machine, KERNEL_NOTE, input (&other), make_scalar_param (2));
}

static void
check_failing_producer (struct machine *machine)
{
  assert_once (1);
  g_assert_cmpuint (atomic_load (&machine->schedulers[0]->words.failed), ==, 3);
}

static void
test_failing_producer (void)
{
  explore (&(struct scenario){ .config
                               = { .immediate = true, .endpoints = 1, .kernels = explored_kernels },
                               .bound = 3,
                               .at_least = 10000,
                               .body = failing_producer,
                               .check = check_failing_producer });
}

/* --- a run behind one that has failed, whose schedulers may still be in its last pass --- */

static void
two_runs (struct machine *machine)
{
  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  pto_engine_fail (machine->engine, PTO_STATUS_EXPLICIT, "enough");
  g_assert_cmpint (machine_end (machine, NULL), ==, PTO_STATUS_EXPLICIT);
  n_order = 0;
  machine_begin (machine);
  for (uint32_t i = 0; i < 3; i++)
    SUBMIT (machine, KERNEL_NOTE, make_scalar_param (i));
}

static void
check_two_runs (struct machine *machine)
{
  assert_once (3);
}

static void
test_two_runs (void)
{
  for (uint32_t schedulers = 1; schedulers <= 2; schedulers++)
    explore (&(struct scenario){ .config = { .immediate = true,
                                             .schedulers = schedulers,
                                             .endpoints = 1,
                                             .kernels = explored_kernels },
                                 .bound = 3 - schedulers,
                                 .at_least = 100,
                                 .body = two_runs,
                                 .check = check_two_runs });
}

/* --- a kernel that ends the run --- */

static void
start_early (struct machine *machine)
{
  start ();
}

static void
fatal_task (struct machine *machine)
{
  n_order = 0;
  SUBMIT (machine, KERNEL_END_RUN, make_scalar_param (0));
  SUBMIT (machine, KERNEL_END_RUN, make_scalar_param (0));
}

static void
check_fatal_task (struct machine *machine)
{
  g_assert_false (ended_well);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, machine->engine->submitted);
}

static void
test_fatal_task (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 500,
      .may_end_as = PTO_STATUS_EXPLICIT,
      .before = start_early,
      .body = fatal_task,
      .check = check_fatal_task });
}

/* --- a full ring: the submitter goes to wait while the scheduler completes --- */

static void
full_ring (struct machine *machine)
{
  n_order = 0;
  for (uint32_t i = 0; i < 3; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTE, make_scalar_param (i));
      pto_engine_scope_end (machine->engine);
    }
  start ();
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (3));
  pto_engine_scope_end (machine->engine);
}

static void
check_full_ring (struct machine *machine)
{
  assert_once (4);
  if (machine->engine->stats.stalls > 0)
    late++;
}

static void
test_full_ring (void)
{
  late = 0;
  explore (&(struct scenario){
      .config = { .immediate = true, .window = 4, .endpoints = 1, .kernels = explored_kernels },
      .bound = 3,
      .at_least = 5000,
      .body = full_ring,
      .check = check_full_ring });
  explorer_assert_cmpuint (late, >, 100);
}

/* A consumer's reference is the last thing that holds the ring. */
static void
full_ring_of_references (struct machine *machine)
{
  Tensor tensor;
  Tensor other;

  n_order = 0;
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 8);
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, no_dep (&tensor), make_scalar_param (1 | LEAVES));
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), make_scalar_param (2));
  pto_engine_scope_end (machine->engine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  other = machine_tensor (machine, 8);
  start ();
  /* Has nowhere to write but where the consumer reads. */
  SUBMIT (machine, KERNEL_NOTE, output (&other), make_scalar_param (3 | WRITES (0)));
  pto_engine_scope_end (machine->engine);
}

static void
test_full_ring_of_references (void)
{
  late = 0;
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .window = 4,
                                           .heap = PTO_HEAP_ALIGN,
                                           .endpoints = 1,
                                           .schedulers = 2,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = full_ring_of_references,
                               .check = check_full_ring });
  explorer_assert_cmpuint (late, >, 100);
}

/* A reference that is given back by a consumer that is not complete yet. */
static void
heap_of_references (struct machine *machine)
{
  Tensor tensor;
  Tensor other;

  n_order = 0;
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 8);
  SUBMIT (machine, KERNEL_NOTE, output (&tensor), make_scalar_param (WRITES (0)));
  machine_wait_completed (machine, 1);
  SUBMIT (machine, KERNEL_NOTE, input (&tensor), make_scalar_param (1));
  pto_engine_scope_end (machine->engine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  other = machine_tensor (machine, 8);
  start ();
  SUBMIT (machine, KERNEL_NOTE, output (&other), make_scalar_param (2 | WRITES (0)));
  pto_engine_scope_end (machine->engine);
}

static void
check_three (struct machine *machine)
{
  assert_once (3);
}

static void
test_heap_of_references (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .heap = PTO_HEAP_ALIGN,
                                           .endpoints = 1,
                                           .schedulers = 2,
                                           .kernels = explored_kernels },
                               .bound = 3,
                               .at_least = 5000,
                               .body = heap_of_references,
                               .check = check_three });
}

/* --- a scheduler that goes to rest while tasks are pushed --- */

static void
push_while_parking (struct machine *machine)
{
  n_order = 0;
  for (uint32_t s = 0; s < machine->config.schedulers; s++)
    pto_engine_wake (machine->engine, s);
  start ();
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (1));
}

static void
test_push_while_parking (void)
{
  explore (&(struct scenario){ .config
                               = { .immediate = true, .endpoints = 1, .kernels = explored_kernels },
                               .bound = 3,
                               .at_least = 5000,
                               .body = push_while_parking,
                               .check = check_two });
}

static void
test_push_while_two_park (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .schedulers = 2, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 2000,
      .body = push_while_parking,
      .check = check_two });
}

/* Schedulers that linger before they announce hunger: who pushes meanwhile rings nobody. They may
 * have long done so when somebody pushes who has not heard of it. */
static void
test_push_while_lingering (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .attends = true, .endpoints = 1, .kernels = explored_kernels },
      .bound = 3,
      .at_least = 5000,
      .body = push_while_parking,
      .check = check_two });
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .attends = true,
                                           .schedulers = 2,
                                           .endpoints = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = push_while_parking,
                               .check = check_two });
  yields_on = true;
  explore (&(struct scenario){
      .config = { .immediate = true, .attends = true, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 500,
      .body = push_while_parking,
      .check = check_two });
  yields_on = false;
}

/* --- two schedulers complete the two producers of one consumer --- */

static void
two_producers (struct machine *machine)
{
  Tensor a = machine_external (memory, 8);
  Tensor b = machine_external (memory + 8, 8);

  n_order = 0;
  SUBMIT (machine, KERNEL_NOTE, output (&a), make_scalar_param (WRITES (0)));
  SUBMIT_TO (machine, KERNEL_NOTE, 1, output (&b), make_scalar_param (1 | WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&a), input (&b), make_scalar_param (2));
  start ();
}

static void
check_two_producers (struct machine *machine)
{
  assert_once (3);
  g_assert_cmpuint (place (2), ==, 2);
  if (atomic_load (&machine->schedulers[0]->words.completed) > 0
      && atomic_load (&machine->schedulers[1]->words.completed) > 0)
    late++;
}

static void
test_two_producers (void)
{
  late = 0;
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .queues = 2,
                                           .endpoints = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = two_producers,
                               .check = check_two_producers });
  /* They do it side by side. */
  explorer_assert_cmpuint (late, >, 100);
}

/* --- the edge of a consumer that runs, ends and is retired while its producer's list is still
 * walked --- */

static void
edge_reuse (struct machine *machine)
{
  Tensor a = machine_external (memory, 8);
  Tensor b = machine_external (memory + 8, 8);

  n_order = 0;
  /* Producer and first consumer in the outer ring, the newest consumer, at the head of the list, in
   * the inner one. */
  SUBMIT (machine, KERNEL_NOTE, output (&a), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, input (&a), make_scalar_param (1));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT_TO (machine, KERNEL_NOTE, 1, input (&a), make_scalar_param (2));
  pto_engine_scope_end (machine->engine);
  start ();
  /* Behind the newest consumer in its queue: not done when the next one is wired to it. */
  SUBMIT_TO (machine, KERNEL_NOTE, 1, output (&b), make_scalar_param (3 | WRITES (0)));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  /* Takes the one edge of the inner ring. */
  SUBMIT (machine, KERNEL_NOTE, input (&b), make_scalar_param (4));
  pto_engine_scope_end (machine->engine);
}

static void
check_edge_reuse (struct machine *machine)
{
  assert_once (5);
  g_assert_cmpuint (place (0), <, place (1));
  g_assert_cmpuint (place (0), <, place (2));
  g_assert_cmpuint (place (3), <, place (4));
}

static void
test_edge_reuse (void)
{
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .queues = 2,
                                           .endpoints = 1,
                                           .edge_pool = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = edge_reuse,
                               .check = check_edge_reuse });
}

/* --- a consumer that is retired, and its edge taken again, as soon as it counts as completed ---
 */

static void
reference_reuse (struct machine *machine)
{
  Tensor a;
  Tensor b;

  n_order = 0;
  a = machine_tensor (machine, 8);
  b = machine_tensor (machine, 8);
  SUBMIT (machine, KERNEL_NOTE, output (&a), make_scalar_param (WRITES (0)));
  SUBMIT (machine, KERNEL_NOTE, output (&b), make_scalar_param (1 | WRITES (0)));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_NOTE, input (&a), make_scalar_param (2));
  pto_engine_scope_end (machine->engine);
  start ();
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_NOTE, input (&b), make_scalar_param (3));
  pto_engine_scope_end (machine->engine);
}

static void
check_reference_reuse (struct machine *machine)
{
  assert_once (4);
  g_assert_cmpuint (place (0), <, place (2));
  g_assert_cmpuint (place (1), <, place (3));
}

static void
test_reference_reuse (void)
{
  explore (&(struct scenario){
      .config = { .immediate = true, .endpoints = 1, .edge_pool = 1, .kernels = explored_kernels },
      .bound = 3,
      .at_least = 5000,
      .body = reference_reuse,
      .check = check_reference_reuse });
}

/* --- an endpoint's signal while its scheduler goes to rest --- */

static void
one_actor_task (struct machine *machine)
{
  n_order = 0;
  start ();
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (1));
}

static void
test_signal_while_parking (void)
{
  explore (&(struct scenario){ .config = { .endpoints = 1, .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = one_actor_task,
                               .check = check_two });
}

/* --- a cancel at any time between begin and end of a run --- */

static uint32_t n_told_early;

static void
cancelled_chain (struct machine *machine)
{
  Tensor tensor = machine_external (memory, 8);

  begin_to_cancel (machine);
  for (uint32_t i = 0; i < 3; i++)
    SUBMIT (machine, KERNEL_NOTE, inout (&tensor), make_scalar_param (i));
  /* The guest asks why before the end, perhaps while it is still being written. */
  if (pto_engine_has_failed (machine->engine))
    {
      struct pto_report told = { 0 };

      g_assert_cmpint (pto_engine_tell (machine->engine, &told), ==, PTO_STATUS_CANCELLED);
      g_assert_cmpstr (told.message, ==, "the run was cancelled");
      n_told_early++;
    }
}

static void
cancelled_full_ring (struct machine *machine)
{
  begin_to_cancel (machine);
  for (uint32_t i = 0; i < 4; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTE, make_scalar_param (i));
      pto_engine_scope_end (machine->engine);
    }
}

/* What the run says is what whoever cancelled was told. A success is a whole one; after the cancel
 * each scheduler begins one more task at most, and another one when it hears of it late. */
static void
check_cancelled (struct machine *machine, uint32_t n)
{
  g_assert_true (ended_well == !was_told);
  if (ended_well)
    {
      assert_once (n);
      early++;
    }
  else
    late++;
  if (n_noted_then != UINT32_MAX)
    g_assert_cmpuint (n_order, <=,
                      n_noted_then + machine->config.schedulers + explorer.stale_bound);
  g_assert_cmpuint (n_order + pto_engine_failures (machine->engine), ==,
                    machine->engine->submitted);
}

static void
check_cancelled_chain (struct machine *machine)
{
  check_cancelled (machine, 3);
}

static void
check_cancelled_full_ring (struct machine *machine)
{
  check_cancelled (machine, 4);
}

static void
test_cancelled_chain (void)
{
  early = late = n_told_early = 0;
  explore (&(struct scenario){ .config = { .immediate = true,
                                           .schedulers = 2,
                                           .queues = 1,
                                           .endpoints = 1,
                                           .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .may_end_as = PTO_STATUS_CANCELLED,
                               .body = cancelled_chain,
                               .check = check_cancelled_chain });
  explorer_assert_cmpuint (n_told_early, >, AT_LEAST (100));
  explorer_assert_cmpuint (early, >, AT_LEAST (100));
  explorer_assert_cmpuint (late, >, AT_LEAST (100));
}

/* Before the run begins it is asked itself, and neither misses the other. */
static bool
is_asked (void *data)
{
  return weak_load (&asked) != 0;
}

static void
begin_to_cancel_early (struct machine *machine)
{
  machine->engine->cancelled = is_asked;
  begin_to_cancel (machine);
}

static void
two_early (struct machine *machine)
{
  machine->engine->cancelled = NULL;
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (1));
}

static void
check_cancelled_early (struct machine *machine)
{
  if (was_told)
    g_assert_false (ended_well);
  if (ended_well)
    {
      assert_once (2);
      /* It came when all was over. */
      if (n_noted_then != UINT32_MAX)
        g_assert_cmpuint (n_noted_then, ==, 2);
      early++;
    }
  else
    late++;
}

static void
test_cancelled_early (void)
{
  early = late = 0;
  explore (&(struct scenario){ .config
                               = { .immediate = true, .endpoints = 1, .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 500,
                               .may_end_as = PTO_STATUS_CANCELLED,
                               .before = begin_to_cancel_early,
                               .body = two_early,
                               .check = check_cancelled_early });
  explorer_assert_cmpuint (early, >, 0);
  explorer_assert_cmpuint (late, >, 10);
}

static void
test_cancelled_full_ring (void)
{
  early = late = 0;
  explore (&(struct scenario){
      .config = { .immediate = true, .window = 4, .endpoints = 1, .kernels = explored_kernels },
      .bound = 2,
      .at_least = 5000,
      .may_end_as = PTO_STATUS_CANCELLED,
      .body = cancelled_full_ring,
      .check = check_cancelled_full_ring });
  explorer_assert_cmpuint (early, >, 100);
  explorer_assert_cmpuint (late, >, 100);
}

/* --- somebody who looks at a ring's shared memory --- */

static void
observe (void *data)
{
  struct machine *machine = data;
  const struct pto_ring *ring = &machine->engine->rings[0];
  bool is_over = weak_load (&ring->shared->orchestrator_done) != 0;
  uint32_t n = weak_load (&ring->shared->current_task_index);

  for (uint32_t i = 0; i < n; i++)
    weak_read (&ring->slots[i].id,
               offsetof (struct pto_slot, mark) - offsetof (struct pto_slot, id));
  if (is_over)
    {
      g_assert_cmpuint (n, ==, 2);
      late++;
    }
  else
    early++;
}

static void
two_observed_tasks (struct machine *machine)
{
  n_order = 0;
  spawn_other (machine, "observe", observe);
  start ();
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (0));
  SUBMIT (machine, KERNEL_NOTE, make_scalar_param (1));
}

static void
test_observer (void)
{
  early = late = 0;
  explore (&(struct scenario){ .config
                               = { .immediate = true, .endpoints = 1, .kernels = explored_kernels },
                               .bound = 2,
                               .at_least = 2000,
                               .body = two_observed_tasks,
                               .check = check_two });
  explorer_assert_cmpuint (early, >, AT_LEAST (100));
  explorer_assert_cmpuint (late, >, 0);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-explore/observer", test_observer);
  g_test_add_func ("/pto/engine-explore/cancelled-chain", test_cancelled_chain);
  g_test_add_func ("/pto/engine-explore/cancelled-early", test_cancelled_early);
  g_test_add_func ("/pto/engine-explore/cancelled-full-ring", test_cancelled_full_ring);
  g_test_add_func ("/pto/engine-explore/three-tasks", test_three_tasks);
  g_test_add_func ("/pto/engine-explore/three-tasks-two-schedulers",
                   test_three_tasks_two_schedulers);
  g_test_add_func ("/pto/engine-explore/two-tasks-two-schedulers", test_two_tasks_two_schedulers);
  g_test_add_func ("/pto/engine-explore/launched-graph", test_launched_graph);
  g_test_add_func ("/pto/engine-explore/two-runs", test_two_runs);
  g_test_add_func ("/pto/engine-explore/watched-task", test_watched_task);
  g_test_add_func ("/pto/engine-explore/failing-producer", test_failing_producer);
  g_test_add_func ("/pto/engine-explore/fatal-task", test_fatal_task);
  g_test_add_func ("/pto/engine-explore/full-ring", test_full_ring);
  g_test_add_func ("/pto/engine-explore/full-ring-of-references", test_full_ring_of_references);
  g_test_add_func ("/pto/engine-explore/heap-of-references", test_heap_of_references);
  g_test_add_func ("/pto/engine-explore/push-while-parking", test_push_while_parking);
  g_test_add_func ("/pto/engine-explore/push-while-two-park", test_push_while_two_park);
  g_test_add_func ("/pto/engine-explore/push-while-lingering", test_push_while_lingering);
  g_test_add_func ("/pto/engine-explore/two-producers", test_two_producers);
  g_test_add_func ("/pto/engine-explore/edge-reuse", test_edge_reuse);
  g_test_add_func ("/pto/engine-explore/reference-reuse", test_reference_reuse);
  g_test_add_func ("/pto/engine-explore/signal-while-parking", test_signal_while_parking);
  g_test_add_func ("/pto/engine-explore/two-priorities", test_two_priorities);
  g_test_add_func ("/pto/engine-explore/built-by-hand", test_built_by_hand);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
