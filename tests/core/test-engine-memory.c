/* test-engine-memory.c: does a task's memory stay as long as somebody may use it, and no longer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/core/fence.h"

static void
test_inner_scope_flows (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 8,
                                                                   .heap = 65536 });
  struct expectation outer_bytes = { .byte = 7 };
  struct expectation inner_bytes = { .byte = 9 };
  struct gate gate;
  Tensor outer;
  uint32_t rounds = 400; /* 16 KiB each: 100 times the heap */

  gate_init (&gate);
  machine_begin (machine);
  outer = machine_tensor (machine, 60000);
  SUBMIT (machine, KERNEL_FILL, output (&outer), byte (7));
  SUBMIT (machine, KERNEL_GATE, input (&outer), scalar (&gate));
  for (uint32_t i = 0; i < rounds; i++)
    {
      Tensor inner;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      inner = machine_tensor (machine, 16384);
      SUBMIT (machine, KERNEL_FILL, output (&inner), byte (9));
      SUBMIT (machine, KERNEL_CHECK, input (&inner), scalar (&inner_bytes));
      pto_engine_scope_end (machine->engine);
    }
  /* The outer task has been alive all the time. */
  g_assert_cmpint (pto_engine_task_state (machine->engine, PTO_TASK_ID (0, 1)), <,
                   PTO_TASK_COMPLETED);
  g_assert_cmpuint (machine->engine->tails[0], ==, 0);
  SUBMIT (machine, KERNEL_CHECK, input (&outer), scalar (&outer_bytes));
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (inner_bytes.right, ==, rounds);
  g_assert_cmpuint (inner_bytes.wrong, ==, 0);
  g_assert_cmpuint (outer_bytes.right, ==, 1);
  machine_free (machine);
}

static void
test_pending_consumer_keeps_buffer (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  struct expectation expectation = { .byte = 3 };
  struct gate gate;
  Tensor kept;
  uint8_t elsewhere[64];
  Tensor external = machine_external (elsewhere, sizeof elsewhere);
  pto_task_id producer;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&external), scalar (&gate));
  gate_wait_reached (machine, &gate);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  kept = machine_tensor (machine, 256 * 1024);
  producer = SUBMIT (machine, KERNEL_FILL, output (&kept), byte (3));
  SUBMIT (machine, KERNEL_CHECK, input (&kept), input (&external), scalar (&expectation));
  pto_engine_scope_end (machine->engine);
  /* The heap goes round once and a half; the producer is done, its scope has ended, its memory is
   * not for others. */
  for (uint32_t i = 0; i < 4; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      for (uint32_t j = 0; j < 2; j++)
        {
          Tensor other = machine_tensor (machine, 150 * 1024);

          SUBMIT (machine, KERNEL_FILL, output (&other), byte (0xee));
        }
      if (i == 1)
        {
          while (pto_engine_completed (machine->engine) < 5)
            pto_exec_help (machine->exec);
          g_assert_cmpint (pto_engine_task_state (machine->engine, producer), ==,
                           PTO_TASK_COMPLETED);
          gate_open (machine, &gate);
        }
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, 1);
  g_assert_cmpuint (expectation.wrong, ==, 0);
  machine_free (machine);
}

/* Reclaims as far as it goes; submits do it now and then. */
static void
sweep (struct machine *machine, uint32_t ring)
{
  pto_ring_reclaim (&machine->engine->rings[ring], &machine->engine->tails[ring]);
}

static void
test_scope_holds_its_tasks (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;
  pto_task_id task;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 100);
  task = SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  machine_wait_completed (machine, 1);
  sweep (machine, 1);
  g_assert_cmpint (pto_engine_task_state (machine->engine, task), ==, PTO_TASK_COMPLETED);
  g_assert_cmpuint (machine->engine->rings[1].heap.used, ==, 1024);
  pto_engine_scope_end (machine->engine);
  sweep (machine, 1);
  g_assert_cmpint (pto_engine_task_state (machine->engine, task), ==, PTO_TASK_CONSUMED);
  g_assert_cmpuint (machine->engine->rings[1].heap.used, ==, 0);
  machine_end_ok (machine);
  machine_free (machine);
}

static void
retain_with (gconstpointer backend, PTOParamType type)
{
  struct machine *machine = machine_new_for (backend);
  struct gate gate;
  Tensor tensor;
  PTOParam use;
  pto_task_id producer;
  pto_task_id user;

  gate_init (&gate);
  machine_record (machine);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 100);
  producer = SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  use = pto2_make_param (type, &tensor);
  user = SUBMIT (machine, KERNEL_GATE, use, scalar (&gate));
  pto_engine_scope_end (machine->engine);
  gate_wait_reached (machine, &gate);
  machine_wait_completed (machine, 1);
  sweep (machine, 1);
  g_assert_cmpint (pto_engine_task_state (machine->engine, producer), ==, PTO_TASK_COMPLETED);
  g_assert_cmpuint (machine->engine->tails[1], ==, 0);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (machine_edge (machine, user, producer), ==,
                    type == PTO_PARAM_NO_DEP ? 0 : PTO_HAZARD_RAW);
  machine_free (machine);
}

static void
test_input_retains (gconstpointer backend)
{
  retain_with (backend, PTO_PARAM_INPUT);
}

static void
test_no_dep_retains (gconstpointer backend)
{
  retain_with (backend, PTO_PARAM_NO_DEP);
}

/* NO_DEP does not wait: the user runs while the producer does. */
static void
test_no_dep_does_not_wait (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  _Atomic uint32_t ran = 0;
  struct gate gate;
  Tensor tensor;

  gate_init (&gate);
  machine_begin (machine);
  tensor = machine_tensor (machine, 100);
  SUBMIT (machine, KERNEL_GATE, output (&tensor), scalar (&gate));
  SUBMIT (machine, KERNEL_COUNT, no_dep (&tensor), scalar (&ran));
  machine_wait_completed (machine, 1);
  g_assert_cmpuint (ran, ==, 1);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  machine_free (machine);
}

/* Scopes deeper than the fourth share its ring and give back in order, when every scope before them
 * lets go. */
static void
test_deep_scopes_share_a_ring (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  struct pto_engine *engine = machine->engine;
  Tensor tensor;
  uint32_t expected = 0;

  machine_begin (machine);
  for (uint32_t depth = 1; depth < PTO_SCOPE_MAX; depth++)
    {
      pto_engine_scope_begin (engine, NULL, 0);
      if (depth % 3 == 0 || depth < PTO_RINGS)
        {
          tensor = machine_tensor (machine, 10);
          SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
          expected += depth >= PTO_RINGS - 1;
        }
    }
  g_assert_cmpuint (engine->depth, ==, PTO_SCOPE_MAX);
  g_assert_cmpuint (engine->rings[0].head, ==, 0);
  g_assert_cmpuint (engine->rings[1].head, ==, 1);
  g_assert_cmpuint (engine->rings[2].head, ==, 1);
  g_assert_cmpuint (engine->rings[3].head, ==, expected);
  machine_wait_completed (machine, engine->submitted);
  while (engine->depth > PTO_RINGS)
    {
      pto_engine_scope_end (engine);
      sweep (machine, 3);
      /* The scope at depth 3 holds the first task of the ring: nothing behind it can go. */
      g_assert_cmpuint (engine->tails[3], ==, 0);
    }
  pto_engine_scope_end (engine);
  sweep (machine, 3);
  g_assert_cmpuint (engine->tails[3], ==, expected);
  g_assert_cmpuint (engine->tails[2], ==, 0);
  machine_end_ok (machine);
  machine_free (machine);
}

/* Without a task in the outer scopes of the shared ring, an inner scope's tasks go at its end. */
static void
test_deep_scopes_reclaim_at_their_end (gconstpointer backend)
{
  struct machine *machine = machine_new (
      &(struct machine_config){ .backend = BACKEND (backend), .seed = 1, .window = 4 });

  machine_begin (machine);
  for (uint32_t depth = 1; depth < 20; depth++)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  for (uint32_t i = 0; i < 100; i++)
    {
      Tensor tensor;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 10);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  machine_free (machine);
}

/* Positions wrap at 32 bits. */
static void
test_positions_wrap (gconstpointer backend)
{
  for (uint32_t window = 4; window <= 16; window *= 2)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                       .seed = 1,
                                                                       .window = window,
                                                                       .heap = 65536,
                                                                       .edge_pool = 16 });
      struct pto_engine *engine = machine->engine;
      struct expectation expectation = { .byte = 1 };
      uint32_t n = 40 * window;

      machine_begin (machine);
      for (uint32_t r = 0; r < PTO_RINGS; r++)
        {
          engine->rings[r].head = engine->rings[r].floor = engine->tails[r]
              = UINT32_MAX - 2 * window + 1;
          engine->rings[r].edge_head = engine->rings[r].edge_tail = UINT32_MAX - 7;
        }
      engine->scopes[0].first = engine->rings[0].head;
      for (uint32_t depth = 1; depth < 6; depth++)
        {
          for (uint32_t i = 0; i < n; i++)
            {
              Tensor tensor;

              pto_engine_scope_begin (engine, NULL, 0);
              tensor = machine_tensor (machine, 3000);
              SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
              SUBMIT (machine, KERNEL_CHECK, inout (&tensor), scalar (&expectation));
              SUBMIT (machine, KERNEL_CHECK, input (&tensor), scalar (&expectation));
              pto_engine_scope_end (engine);
            }
          pto_engine_scope_begin (engine, NULL, 0);
        }
      machine_end_ok (machine);
      g_assert_cmpuint (expectation.right, ==, 5 * 2 * n);
      g_assert_cmpuint (expectation.wrong, ==, 0);
      g_assert_cmpuint (engine->rings[1].head, <, UINT32_MAX / 2);
      machine_free (machine);
    }
}

/* --- guards of memory that was there before --- */

static void
assert_fences (struct machine *machine, pto_task_id task, const struct pto_fence *expected,
               uint32_t n)
{
  const struct pto_slot *slot
      = pto_ring_slot (&machine->engine->rings[PTO_TASK_RING (task)], PTO_TASK_LOCAL (task));

  g_assert_cmpuint (slot->payload->n_fences, ==, n);
  for (uint32_t i = 0; i < n; i++)
    g_assert_cmpmem (&pto_payload_fences (slot->payload)[i], sizeof *expected, &expected[i],
                     sizeof *expected);
}
#define FENCES(machine, task, ...)                                       \
  assert_fences ((machine), (task), (struct pto_fence[]){ __VA_ARGS__ }, \
                 sizeof ((struct pto_fence[]){ __VA_ARGS__ }) / sizeof (struct pto_fence))

static struct pto_fence
fence_of (uint8_t *memory, uint64_t bytes)
{
  struct pto_fence fence
      = { .address = (uint64_t) (uintptr_t) memory, .bytes = bytes, .guard = 64 };

  g_assert_true (pto_fence_add (&fence));
  return fence;
}

/* A task lists what stands behind the memory that it writes, each once: as the list of fences is at
 * its submit, whatever was found before. */
static void
test_fences_of_a_task (gconstpointer backend)
{
  static uint8_t memory[4 * 256];
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .guard_bytes = 64, .window = 256 });
  struct pto_fence a = fence_of (memory, 100);
  struct pto_fence b = fence_of (memory + 256, 50);
  Tensor of_a = machine_external (memory, 100);
  Tensor in_a = machine_external (memory + 70, 20);
  Tensor of_b = machine_external (memory + 256, 50);
  Tensor behind_a = machine_external (memory + 100, 20);
  Tensor before_b = machine_external (memory + 255, 1);
  struct pto_fence c;
  Tensor own;

#define TASK(...) SUBMIT (machine, KERNEL_NOTHING, __VA_ARGS__)
  machine_begin (machine);
  for (uint32_t round = 0; round < 3; round++)
    {
      FENCES (machine, TASK (existing (&of_a)), a);
      assert_fences (machine, TASK (existing (&behind_a)), NULL, 0);
      FENCES (machine, TASK (existing (&of_b)), b);
      FENCES (machine, TASK (inout (&in_a)), a);
      FENCES (machine, TASK (no_dep (&of_b), existing (&in_a), inout (&of_a)), b, a);
      FENCES (machine, TASK (input (&in_a), output (&of_b)), b);
      assert_fences (machine, TASK (input (&of_a), byte (1)), NULL, 0);
      assert_fences (machine, TASK (existing (&before_b), existing (&behind_a)), NULL, 0);

      FENCES (machine, TASK (existing (&in_a)), a);
      pto_fence_remove (a.address);
      assert_fences (machine, TASK (existing (&in_a)), NULL, 0);
      FENCES (machine, TASK (existing (&in_a), existing (&of_b)), b);
      /* Other memory in the same place. */
      c = fence_of (memory, 80);
      FENCES (machine, TASK (existing (&in_a)), c);
      pto_fence_remove (c.address);
      c = fence_of (memory + 80, 10);
      FENCES (machine, TASK (existing (&of_b)), b);
      assert_fences (machine, TASK (existing (&in_a)), NULL, 0);
      pto_fence_remove (c.address);
      a = fence_of (memory, 100);

      /* The runtime's: who writes after the task that made it. */
      own = machine_tensor (machine, 40);
      assert_fences (machine, TASK (output (&own)), NULL, 0);
      assert_fences (machine, TASK (input (&own)), NULL, 0);
      assert_fences (machine, TASK (no_dep (&own)), NULL, 0);
      c = (struct pto_fence){ .address = (uint64_t) (uintptr_t) machine_address (&own),
                              .bytes = 40,
                              .guard = 64 };
      FENCES (machine, TASK (inout (&own)), c);
      FENCES (machine, TASK (existing (&of_a), existing (&own)), a, c);
    }
#undef TASK
  machine_end_ok (machine);
  machine_free (machine);
  pto_fence_remove (a.address);
  pto_fence_remove (b.address);
}

static void
add_tests (void)
{
  machine_add ("engine-memory", "inner-scope-flows", test_inner_scope_flows);
  machine_add ("engine-memory", "pending-consumer-keeps-buffer",
               test_pending_consumer_keeps_buffer);
  machine_add ("engine-memory", "scope-holds-its-tasks", test_scope_holds_its_tasks);
  machine_add ("engine-memory", "input-retains", test_input_retains);
  machine_add ("engine-memory", "no-dep-retains", test_no_dep_retains);
  machine_add ("engine-memory", "no-dep-does-not-wait", test_no_dep_does_not_wait);
  machine_add ("engine-memory", "deep-scopes-share-a-ring", test_deep_scopes_share_a_ring);
  machine_add ("engine-memory", "deep-scopes-reclaim-at-their-end",
               test_deep_scopes_reclaim_at_their_end);
  machine_add ("engine-memory", "positions-wrap", test_positions_wrap);
  machine_add ("engine-memory", "fences-of-a-task", test_fences_of_a_task);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
