/* test-engine-memory.c: does a task's memory stay as long as somebody may use it, and no longer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/core/memory-guards.h"

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

static void
go_to_depth (struct machine *machine, uint32_t depth)
{
  while (machine->engine->depth < depth)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  while (machine->engine->depth > depth)
    pto_engine_scope_end (machine->engine);
}

/* A tensor is made at one depth and output at another; scopes as deep come and go before it is
 * read. Its memory stays, and goes with the scope that it was made in. */
static void
output_deeper (gconstpointer backend, uint32_t made, uint32_t deeper)
{
  struct machine *machine = machine_new (
      &(struct machine_config){ .backend = BACKEND (backend), .seed = 1, .window = 256 });
  struct pto_engine *engine = machine->engine;
  struct expectation expectation = { .byte = 7 };
  uint32_t ring = MIN (made - 1, PTO_RINGS - 1);
  Tensor kept;

  machine_begin (machine);
  go_to_depth (machine, made);
  kept = machine_tensor (machine, 5000);
  go_to_depth (machine, deeper);
  SUBMIT (machine, KERNEL_FILL, output (&kept), byte (7));
  for (uint32_t depth = deeper; depth-- > made;)
    {
      go_to_depth (machine, depth);
      for (uint32_t i = 0; i < 20; i++)
        {
          Tensor other;

          pto_engine_scope_begin (engine, NULL, 0);
          other = machine_tensor (machine, 5000);
          SUBMIT (machine, KERNEL_FILL, output (&other), byte (9));
          pto_engine_scope_end (engine);
        }
      SUBMIT (machine, KERNEL_CHECK, input (&kept), scalar (&expectation));
    }
  machine_wait_completed (machine, engine->submitted);
  sweep (machine, ring);
  g_assert_cmpuint (engine->rings[ring].heap.used, >, 0);
  if (made > 1)
    {
      pto_engine_scope_end (engine);
      sweep (machine, ring);
      g_assert_cmpuint (engine->rings[ring].heap.used, ==, 0);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, deeper - made);
  g_assert_cmpuint (expectation.wrong, ==, 0);
  machine_free (machine);
}

static void
test_output_deeper (gconstpointer backend)
{
  for (uint32_t made = 1; made < 8; made++)
    for (uint32_t deeper = made + 1; deeper < 9; deeper++)
      output_deeper (backend, made, deeper);
}

/* The same in a manual scope, where nothing is looked up. */
static void
test_output_in_a_manual_scope (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  struct expectation expectation = { .byte = 7 };
  Tensor kept;
  pto_task_id writer;

  machine_begin (machine);
  kept = machine_tensor (machine, 5000);
  pto_engine_manual_scope_begin (machine->engine, NULL, 0);
  writer = SUBMIT (machine, KERNEL_FILL, output (&kept), byte (7));
  pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_CHECK,
                            .params = (PTOParam[]){ input (&kept), scalar (&expectation) },
                            .n_params = 2,
                            .producers = &writer,
                            .n_producers = 1 });
  pto_engine_scope_end (machine->engine);
  machine_wait_completed (machine, machine->engine->submitted);
  SUBMIT (machine, KERNEL_CHECK, input (&kept), scalar (&expectation));
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, 2);
  machine_free (machine);
}

/* --- memory of the runtime that is named by its address --- */

static Tensor
by_address (const Tensor *tensor, uint64_t begin, uint64_t n)
{
  return machine_external ((void *) (uintptr_t) (tensor->storage->addr + begin), n);
}

/* Returns what is recorded between a task and the writer of a part that the task uses. */
static uint32_t
edge_of_use (gconstpointer backend, PTOParamType type, uint64_t begin, uint64_t n, bool named)
{
  struct machine *machine = machine_new_for (backend);
  struct gate gate;
  Tensor tensor;
  Tensor part;
  PTOParam use;
  pto_task_id writer;
  pto_task_id user;
  uint32_t edge;

  gate_init (&gate);
  machine_record (machine);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 5000);
  writer = SUBMIT (machine, KERNEL_GATE, output (&tensor), scalar (&gate));
  part = named ? by_address (&tensor, begin, n) : machine_part (&tensor, begin, n);
  use = pto2_make_param (type, &part);
  user = SUBMIT (machine, KERNEL_NOTHING, use);
  g_assert_cmpuint (pto_ring_slot (&machine->engine->rings[1], PTO_TASK_LOCAL (user))->n_retained,
                    ==, 1);
  pto_engine_scope_end (machine->engine);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  edge = machine_edge (machine, user, writer);
  machine_free (machine);
  return edge;
}

/* The edges that the handle has. */
static void
test_address_orders (gconstpointer backend)
{
  static const struct
  {
    PTOParamType type;
    uint32_t edge;
  } uses[] = { { PTO_PARAM_INPUT, PTO_HAZARD_RAW },
               { PTO_PARAM_INOUT, PTO_HAZARD_RAW | PTO_HAZARD_WAW },
               { PTO_PARAM_OUTPUT, PTO_HAZARD_WAW },
               { PTO_PARAM_OUTPUT_EXISTING, PTO_HAZARD_WAW },
               { PTO_PARAM_COMMUTATIVE, PTO_HAZARD_RAW | PTO_HAZARD_WAW },
               { PTO_PARAM_NO_DEP, 0 } };
  static const struct
  {
    uint64_t begin;
    uint64_t n;
  } parts[] = { { 0, 5000 }, { 0, 100 }, { 4900, 100 }, { 1024, 2048 } };

  for (gsize u = 0; u < G_N_ELEMENTS (uses); u++)
    for (gsize p = 0; p < G_N_ELEMENTS (parts); p++)
      for (guint named = 0; named < 2; named++)
        g_assert_cmpuint (
            edge_of_use (backend, uses[u].type, parts[p].begin, parts[p].n, named != 0), ==,
            uses[u].edge);
}

static void
refuse_address (gconstpointer backend, uint64_t begin, uint64_t n, bool ended, const char *says)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;
  Tensor named;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 5000);
  SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  named = by_address (&tensor, begin, n);
  if (ended)
    pto_engine_scope_end (machine->engine);
  SUBMIT (machine, KERNEL_NOTHING, input (&named));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, says);
  machine_free (machine);
}

static void
test_address_refused (gconstpointer backend)
{
  refuse_address (backend, 0, 5001, false,
                  "argument 0: the tensor is named by an address in "
                  "memory of the runtime, and reaches beyond");
  refuse_address (backend, 4900, 200, false, "reaches beyond");
  refuse_address (backend, 5064, 8, false, "memory of the runtime that no tensor has");
  refuse_address (backend, 0, 5000, true, "memory of the runtime that no tensor has");
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
    {
      struct pto_fence found = pto_payload_fences (slot->payload)[i];

      /* A fence in the list says at which version of the list it was there. */
      if ((expected[i].guard & PTO_FENCE_PERHAPS) == 0)
        found.guard ^= (pto_fence_version () & PTO_FENCE_VERSION_MASK) << PTO_FENCE_VERSION_SHIFT;
      g_assert_cmpmem (&found, sizeof found, &expected[i], sizeof *expected);
    }
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

/* A task looks at one guard of the runtime's, and at no other one. */
static void
assert_guards (struct machine *machine, pto_task_id task, const Tensor *tensor, bool others)
{
  uint64_t end = (uint64_t) (uintptr_t) machine_address (tensor) + tensor->buffer.size;
  const struct pto_slot *slot
      = pto_ring_slot (&machine->engine->rings[PTO_TASK_RING (task)], PTO_TASK_LOCAL (task));

  g_assert_cmpuint (slot->payload->n_guards, ==, 1);
  g_assert_cmphex (slot->payload->guards[0], ==, end | (others ? PTO_GUARD_OTHERS : 0));
  assert_fences (machine, task, NULL, 0);
}

/* A task lists what stands behind memory of the program that it is given, each once: as the list of
 * fences is at its submit, whatever was found before. */
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
      FENCES (machine, TASK (input (&in_a), output (&of_b)), a, b);
      FENCES (machine, TASK (input (&of_a), byte (1)), a);
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

      /* The runtime's: where the task comes after the one that makes it, the guard is there. */
      own = machine_tensor (machine, 40);
      assert_guards (machine, TASK (output (&own)), &own, false);
      assert_guards (machine, TASK (input (&own)), &own, true);
      assert_guards (machine, TASK (inout (&own)), &own, true);
      FENCES (machine, TASK (existing (&of_a), existing (&own)), a);
      c = (struct pto_fence){ .address = (uint64_t) (uintptr_t) machine_address (&own),
                              .bytes = 40,
                              .guard = 64 | PTO_FENCE_PERHAPS };
      FENCES (machine, TASK (no_dep (&own)), c);
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
  machine_add ("engine-memory", "output-deeper", test_output_deeper);
  machine_add ("engine-memory", "output-in-a-manual-scope", test_output_in_a_manual_scope);
  machine_add ("engine-memory", "address-orders", test_address_orders);
  machine_add ("engine-memory", "address-refused", test_address_refused);
  machine_add ("engine-memory", "fences-of-a-task", test_fences_of_a_task);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
