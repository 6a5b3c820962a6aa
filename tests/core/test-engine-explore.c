/* test-engine-explore.c: is no wake-up lost or doubled, whichever way the steps of submitter and
 * schedulers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * explorer.h says how they are tried, in a build with sequentially consistent interleavings and in
 * one where every load may give what the orders in the source allow it to.
 */
#include "engine-explore.h"

/* A preemption less where every access is checked: each multiplies the schedules. */
#define THOROUGH(n) (SCALE (20) > 1 ? (n) : (n) -1)

#include "../../pto/exec/pto_atomic.h"
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
  g_assert_cmpuint (early, >, 100);
  g_assert_cmpuint (late, >, 100);
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
                                                                .priority = 2 - i });
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
  g_assert_cmpuint (early, >, 0);
  g_assert_cmpuint (late, >, 0);
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
  g_assert_cmpuint (late, >, 100);
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
  g_assert_cmpuint (late, >, 100);
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
  g_assert_cmpuint (late, >, 100);
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

static bool was_told;
static uint32_t n_told_early;
static uint32_t n_noted_then;
static _Atomic uint32_t asked;

static void
cancel (void *data)
{
  struct machine *machine = data;

  weak_add (&asked, 1);
  was_told = pto_engine_cancel (machine->engine);
  n_noted_then = n_order;
}

static void
begin_to_cancel (struct machine *machine)
{
  n_order = 0;
  atomic_store (&asked, 0);
  was_told = false;
  n_noted_then = UINT32_MAX;
  spawn_other (machine, "cancel", cancel);
  start ();
}

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
  g_assert_cmpuint (n_told_early, >, AT_LEAST (100));
  g_assert_cmpuint (early, >, AT_LEAST (100));
  g_assert_cmpuint (late, >, AT_LEAST (100));
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
  g_assert_cmpuint (early, >, 0);
  g_assert_cmpuint (late, >, 10);
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
  g_assert_cmpuint (early, >, 100);
  g_assert_cmpuint (late, >, 100);
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
  g_assert_cmpuint (early, >, AT_LEAST (100));
  g_assert_cmpuint (late, >, 0);
}

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

static void
assert_ran (uint32_t number, uint32_t times)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < n_order; i++)
    n += order[i] == number;
  g_assert_cmpuint (n, ==, times);
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
                                .priority = i,
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
  g_assert_cmpuint (early, >, 0);
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
  g_assert_cmpuint (early, >, 10);
  g_assert_cmpuint (late, >, 0);
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
  g_test_add_func ("/pto/engine-explore/members-between", test_members_between);
  g_test_add_func ("/pto/engine-explore/two-parties", test_two_parties);
  g_test_add_func ("/pto/engine-explore/named-parties", test_named_parties);
  g_test_add_func ("/pto/engine-explore/outranked-parties", test_outranked_parties);
  g_test_add_func ("/pto/engine-explore/two-priorities", test_two_priorities);
  g_test_add_func ("/pto/engine-explore/turns", test_turns);
  g_test_add_func ("/pto/engine-explore/neighbours", test_neighbours);
  g_test_add_func ("/pto/engine-explore/blocks-between", test_blocks_between);
  g_test_add_func ("/pto/engine-explore/blocks-and-cancel", test_blocks_and_cancel);
  g_test_add_func ("/pto/engine-explore/bound-parties", test_bound_parties);
  g_test_add_func ("/pto/engine-explore/cancelled-parties", test_cancelled_parties);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
