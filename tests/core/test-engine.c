/* test-engine.c: do submitted tasks run in order, once, and with their memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define BACKEND(data) ((enum pto_backend) GPOINTER_TO_INT (data))

/* Writes a byte, the last scalar, all over its first tensor. */
static void
kernel_fill (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *data = (const TensorData *) (uintptr_t) args[0];

  memset ((uint8_t *) (uintptr_t) data->buffer.addr + data->start_offset,
          (int) args[slot->payload->n_args - 1], data->shapes[0]);
}

struct expectation
{
  uint8_t byte;
  _Atomic uint32_t right;
  _Atomic uint32_t wrong;
};

/* Every byte of its first tensor is the expected one. */
static void
kernel_check (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *data = (const TensorData *) (uintptr_t) args[0];
  const uint8_t *bytes = (const uint8_t *) (uintptr_t) data->buffer.addr + data->start_offset;
  struct expectation *expectation
      = (struct expectation *) (uintptr_t) args[slot->payload->n_args - 1];
  bool right = true;

  for (uint64_t i = 0; i < data->shapes[0]; i++)
    right = right && bytes[i] == expectation->byte;
  atomic_fetch_add (right ? &expectation->right : &expectation->wrong, 1);
}

/* Ends the run a while later (det). */
static void
kernel_late_fatal (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                   bool *failed)
{
  pto_charge (machine->exec, (uint64_t) args[0]);
  pto_engine_fail (machine->engine, PTO_STATUS_KERNEL_FAULT, "late");
  *failed = true;
}

enum
{
  KERNEL_FILL = KERNEL_OWN,
  KERNEL_CHECK,
  KERNEL_LATE_FATAL
};

static const machine_kernel kernels[] = { kernel_fill, kernel_check, kernel_late_fatal };

static PTOParam
byte (uint8_t value)
{
  return make_scalar_param (value);
}

static struct machine *
new_machine (gconstpointer backend)
{
  return machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                .seed = 1,
                                                .schedulers = 2,
                                                .endpoints = 4,
                                                .kernels = kernels });
}

/* --- memory and scopes --- */

static void
test_inner_scope_flows (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 8,
                                                                   .heap = 65536,
                                                                   .kernels = kernels });
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
  struct machine *machine = new_machine (backend);
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
wait_completed (struct machine *machine, uint64_t n)
{
  while (pto_engine_completed (machine->engine) < n)
    pto_exec_help (machine->exec);
}

static void
test_scope_holds_its_tasks (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;
  pto_task_id task;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 100);
  task = SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  wait_completed (machine, 1);
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
  struct machine *machine = new_machine (backend);
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
  wait_completed (machine, 1);
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
  struct machine *machine = new_machine (backend);
  _Atomic uint32_t ran = 0;
  struct gate gate;
  Tensor tensor;

  gate_init (&gate);
  machine_begin (machine);
  tensor = machine_tensor (machine, 100);
  SUBMIT (machine, KERNEL_GATE, output (&tensor), scalar (&gate));
  SUBMIT (machine, KERNEL_COUNT, no_dep (&tensor), scalar (&ran));
  wait_completed (machine, 1);
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
  struct machine *machine = new_machine (backend);
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
  wait_completed (machine, engine->submitted);
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
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 4, .kernels = kernels });

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

/* --- edges --- */

struct tag_pair
{
  PTOParamType first;
  PTOParamType second;
  uint32_t seeds;    /* with raw,waw */
  uint32_t standard; /* with raw,waw,war */
};

/* "raw,waw" gives the seeds' exact edges: OUTPUT looks nothing up. */
static const struct tag_pair tag_pairs[] = {
  { PTO_PARAM_OUTPUT, PTO_PARAM_INPUT, PTO_HAZARD_RAW, PTO_HAZARD_RAW },
  { PTO_PARAM_OUTPUT, PTO_PARAM_OUTPUT, 0, PTO_HAZARD_WAW },
  { PTO_PARAM_OUTPUT, PTO_PARAM_OUTPUT_EXISTING, 0, PTO_HAZARD_WAW },
  { PTO_PARAM_OUTPUT, PTO_PARAM_INOUT, PTO_HAZARD_RAW | PTO_HAZARD_WAW,
    PTO_HAZARD_RAW | PTO_HAZARD_WAW },
  { PTO_PARAM_OUTPUT, PTO_PARAM_NO_DEP, 0, 0 },
  { PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_INPUT, PTO_HAZARD_RAW, PTO_HAZARD_RAW },
  { PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_INOUT, PTO_HAZARD_RAW | PTO_HAZARD_WAW,
    PTO_HAZARD_RAW | PTO_HAZARD_WAW },
  { PTO_PARAM_INOUT, PTO_PARAM_INPUT, PTO_HAZARD_RAW, PTO_HAZARD_RAW },
  { PTO_PARAM_INOUT, PTO_PARAM_INOUT, PTO_HAZARD_RAW | PTO_HAZARD_WAW,
    PTO_HAZARD_RAW | PTO_HAZARD_WAW },
  { PTO_PARAM_INPUT, PTO_PARAM_INPUT, 0, 0 },
  { PTO_PARAM_INPUT, PTO_PARAM_INOUT, 0, PTO_HAZARD_WAR },
  { PTO_PARAM_INPUT, PTO_PARAM_OUTPUT, 0, PTO_HAZARD_WAR },
  { PTO_PARAM_INPUT, PTO_PARAM_OUTPUT_EXISTING, 0, PTO_HAZARD_WAR },
  { PTO_PARAM_INPUT, PTO_PARAM_NO_DEP, 0, 0 },
  { PTO_PARAM_NO_DEP, PTO_PARAM_INPUT, 0, 0 },
  { PTO_PARAM_NO_DEP, PTO_PARAM_INOUT, 0, 0 },
};

static void
check_tags (uint32_t hazards)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = PTO_BACKEND_DET, .seed = 1, .hazards = hazards, .kernels = kernels });
  bool seeds = (hazards & PTO_HAZARD_WAR) == 0;

  machine_record (machine);
  for (gsize i = 0; i < G_N_ELEMENTS (tag_pairs); i++)
    {
      const struct tag_pair *pair = &tag_pairs[i];
      uint8_t memory[64];
      Tensor tensor = machine_external (memory, sizeof memory);
      struct gate gate;
      pto_task_id first;
      pto_task_id second;
      uint32_t expected = seeds ? pair->seeds : pair->standard;

      g_test_message ("tag %d, then %d", (int) pair->first, (int) pair->second);
      gate_init (&gate);
      machine_begin (machine);
      first = SUBMIT (machine, KERNEL_GATE, pto2_make_param (pair->first, &tensor), scalar (&gate));
      second = SUBMIT (machine, KERNEL_NOTHING, pto2_make_param (pair->second, &tensor));
      /* An edge is an order: the second can not have run before the first ends, and does run
       * without one. */
      gate_wait_reached (machine, &gate);
      while (pto_exec_help (machine->exec))
        ;
      g_assert_cmpint (pto_engine_task_state (machine->engine, second) >= PTO_TASK_COMPLETED, ==,
                       expected == 0);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      g_assert_cmphex (machine_edge (machine, second, first), ==, expected);
    }
  machine_free (machine);
}

static void
test_tags_all_hazards (void)
{
  check_tags (PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR);
}

static void
test_tags_of_the_seeds (void)
{
  check_tags (PTO_HAZARD_RAW | PTO_HAZARD_WAW);
}

static void
test_fan_in_of_5000 (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 16384,
                                                                   .edge_pool = 65536,
                                                                   .map_pool = 65536,
                                                                   .kernels = kernels });
  static uint8_t memory[5000];
  Tensor all = machine_external (memory, sizeof memory);
  struct expectation expectation = { .byte = 5 };
  struct gate gate;
  pto_task_id join;

  memset (memory, 0, sizeof memory);
  machine_record (machine);
  gate_init (&gate);
  machine_begin (machine);
  /* Nobody completes before all is wired. */
  SUBMIT (machine, KERNEL_GATE, output (&all), scalar (&gate));
  for (uint32_t i = 0; i < 5000; i++)
    {
      Tensor part = machine_part (&all, i, 1);

      SUBMIT (machine, KERNEL_FILL, inout (&part), byte (5));
    }
  join = SUBMIT (machine, KERNEL_CHECK, input (&all), scalar (&expectation));
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, 1);
  for (pto_task_id i = join - 5000; i < join; i++)
    g_assert_cmpuint (machine_edge (machine, join, i), ==, PTO_HAZARD_RAW);
  machine_free (machine);
}

static void
test_fan_in_64_by_64 (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 1024,
                                                                   .edge_pool = 16384,
                                                                   .map_pool = 16384,
                                                                   .kernels = kernels });
  static uint8_t memory[64];
  static uint8_t results[64];
  Tensor all = machine_external (memory, sizeof memory);
  Tensor outputs = machine_external (results, sizeof results);
  struct expectation expectation = { .byte = 5 };
  struct gate gate;

  memset (memory, 0, sizeof memory);
  gate_init (&gate);
  machine_record (machine);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&all), scalar (&gate));
  for (uint32_t i = 0; i < 64; i++)
    {
      Tensor part = machine_part (&all, i, 1);

      SUBMIT (machine, KERNEL_FILL, output (&part), byte (5));
    }
  for (uint32_t i = 0; i < 64; i++)
    {
      Tensor part = machine_part (&outputs, i, 1);

      SUBMIT (machine, KERNEL_CHECK, input (&all), output (&part), scalar (&expectation));
    }
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, 64);
  for (uint32_t consumer = 65; consumer < 129; consumer++)
    for (uint32_t producer = 1; producer < 65; producer++)
      g_assert_cmpuint (machine_edge (machine, consumer, producer), ==, PTO_HAZARD_RAW);
  machine_free (machine);
}

static void
test_producer_counts_once (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  _Atomic uint32_t ran = 0;
  struct gate gate;
  Tensor a;
  Tensor b;
  Tensor half;

  gate_init (&gate);
  machine_record (machine);
  machine_begin (machine);
  a = machine_tensor (machine, 64);
  b = machine_tensor (machine, 64);
  SUBMIT (machine, KERNEL_GATE, output (&a), output (&b), scalar (&gate));
  half = machine_part (&a, 32, 32);
  SUBMIT (machine, KERNEL_COUNT, input (&a), input (&a), inout (&half), input (&b), no_dep (&b),
          scalar (&ran));
  gate_wait_reached (machine, &gate);
  g_assert_cmpint (machine->engine->rings[0].slots[1].fanin, ==, 1);
  g_assert_cmpuint (machine->engine->rings[0].slots[0].taken, ==, 1);
  g_assert_cmpuint (ran, ==, 0);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 1);
  g_assert_cmpuint (machine_n_edges (machine), ==, 1);
  g_assert_cmpuint (machine_edge (machine, 1, 0), ==, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  machine_free (machine);
}

/* One region in and out of one task: no edge to itself. */
static void
test_no_edge_to_itself (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;
  _Atomic uint32_t ran = 0;

  machine_record (machine);
  machine_begin (machine);
  tensor = machine_tensor (machine, 64);
  SUBMIT (machine, KERNEL_COUNT, output (&tensor), output (&tensor), scalar (&ran));
  SUBMIT (machine, KERNEL_COUNT, input (&tensor), existing (&tensor), scalar (&ran));
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 2);
  g_assert_cmpuint (machine_n_edges (machine), ==, 1);
  machine_free (machine);
}

/* Tasks without a kernel order those around them, on whatever queue. */
static void
test_task_without_kernel_orders (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .queues = 2, .kernels = kernels });
  struct expectation expectation = { .byte = 4 };
  uint8_t memory[16];
  uint8_t token[1];
  Tensor data = machine_external (memory, sizeof memory);
  Tensor order = machine_external (token, sizeof token);
  struct gate gate;

  memset (memory, 0, sizeof memory);
  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&data), scalar (&gate));
  SUBMIT (machine, KERNEL_FILL, existing (&data), byte (4));
  SUBMIT_TO (machine, PTO_KERNEL_NONE, 1, input (&data), output (&order));
  SUBMIT_TO (machine, KERNEL_CHECK, 1, no_dep (&data), input (&order), scalar (&expectation));
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (expectation.right, ==, 1);
  machine_free (machine);
}

/* --- what is refused --- */

static void
expect_error (struct machine *machine, enum pto_status expected, const char *text)
{
  const char *message;
  enum pto_status status = machine_end (machine, &message);

  g_assert_cmpint (status, ==, expected);
  machine_assert_names (message, text);
}

static void
test_tensor_of_an_ended_scope (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  pto_engine_scope_end (machine->engine);
  SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
  expect_error (machine, PTO_STATUS_INVALID_ARGS,
                "task 1 (nothing): argument 0: the tensor was made in a scope that has ended");
  /* A record that is in use again is not mistaken for the one before. */
  machine_begin (machine);
  machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  expect_error (machine, PTO_STATUS_INVALID_ARGS, "made in a scope that has ended");
  machine_free (machine);
}

static void
test_output_of_an_ended_scope (gconstpointer backend)
{
  for (uint32_t depth = 1; depth < 8; depth++)
    {
      struct machine *machine = new_machine (backend);
      Tensor tensor;

      machine_begin (machine);
      for (uint32_t i = 1; i < depth; i++)
        pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 10);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      pto_engine_scope_end (machine->engine);
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      expect_error (machine, PTO_STATUS_INVALID_ARGS,
                    "task 2 (nothing): argument 0: the tensor was output in a scope");
      machine_free (machine);
    }
}

static void
test_tensor_without_memory (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;

  machine_begin (machine);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
  expect_error (machine, PTO_STATUS_INVALID_ARGS, "no memory yet: no task has output it");
  machine_begin (machine);
  tensor = machine_tensor (machine, 10);
  tensor.status = PTO2_TENSOR_OUT_OF_BOUNDS;
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (1), output (&tensor));
  expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 1: the view reaches beyond its tensor");
  machine_free (machine);
}

static void
test_too_many_arguments (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  PTOParam params[PTO_ARGS_MAX + 1];

  for (uint32_t i = 0; i <= PTO_ARGS_MAX; i++)
    params[i] = make_scalar_param (i);
  machine_begin (machine);
  machine_submit (machine, KERNEL_NOTHING, 0, params, PTO_ARGS_MAX);
  machine_end_ok (machine);
  machine_begin (machine);
  machine_submit (machine, KERNEL_NOTHING, 0, params, PTO_ARGS_MAX + 1);
  expect_error (machine, PTO_STATUS_INVALID_ARGS, "1025 arguments; a task takes at most 1024");
  machine_free (machine);
}

static void
test_scope_overflow (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;

  machine_begin (machine);
  for (uint32_t i = 1; i < PTO_SCOPE_MAX; i++)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  g_assert_false (pto_engine_has_failed (machine->engine));
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  g_assert_true (pto_engine_has_failed (machine->engine));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  /* Their ends find their begins. */
  for (uint32_t i = 0; i < PTO_SCOPE_MAX + 1; i++)
    pto_engine_scope_end (machine->engine);
  g_assert_cmpuint (machine->engine->depth, ==, 1);
  expect_error (machine, PTO_STATUS_SCOPE_OVERFLOW, "more than 64 deep");
  machine_begin (machine);
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  machine_end_ok (machine);
  machine_free (machine);
}

static void
test_scope_end_without_begin (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  pto_engine_scope_end (machine->engine);
  g_assert_false (pto_engine_has_failed (machine->engine));
  pto_engine_scope_end (machine->engine);
  expect_error (machine, PTO_STATUS_INVALID_ARGS, "scope_end without a scope_begin");
  machine_free (machine);
}

/* Scopes left open are ended by the run's end. */
static void
test_open_scopes_are_closed (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  Tensor tensor;

  machine_begin (machine);
  for (uint32_t i = 1; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 10);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
    }
  machine_end_ok (machine);
  machine_free (machine);
}

/* --- failures --- */

static void
test_first_error_latches (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  _Atomic uint32_t crashed = 0;
  _Atomic uint32_t ran = 0;
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);
  const char *message;

  for (uint32_t round = 0; round < 20; round++)
    {
      crashed = ran = 0;
      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_FATAL, inout (&tensor), scalar (&crashed));
      for (uint32_t i = 0; i < 10; i++)
        SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
      while (!pto_engine_has_failed (machine->engine))
        pto_exec_help (machine->exec);
      {
        uint64_t submitted = machine->engine->submitted;

        /* Nothing happens any more, and nothing else is heard of. */
        pto_engine_fail (machine->engine, PTO_STATUS_EXPLICIT, "second");
        pto_engine_scope_begin (machine->engine, NULL, 0);
        SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
        pto_engine_scope_end (machine->engine);
        pto_engine_scope_end (machine->engine);
        pto_engine_scope_end (machine->engine);
        g_assert_cmpuint (machine->engine->submitted, ==, submitted);
      }
      g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_KERNEL_FAULT);
      g_assert_cmpstr (message, ==, "task 0 of ring 1 crashed");
      g_assert_cmpuint (crashed, ==, 1);
      g_assert_cmpuint (ran, ==, 0);
      g_assert_false (pto_engine_is_lost (machine->engine));
      /* The next run succeeds. */
      machine_begin (machine);
      SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
      machine_end_ok (machine);
      g_assert_cmpuint (ran, ==, 1);
    }
  machine_free (machine);
}

/* Which error wins is the one whose status is reported: its text with it. */
static void
test_text_belongs_to_status (void)
{
  uint32_t faults = 0;
  uint32_t deadlocks = 0;

  for (uint32_t late = 0; late < 600; late += 10)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET,
                                                                       .seed = 1,
                                                                       .window = 4,
                                                                       .submit_cost = 100,
                                                                       .kernels = kernels });
      const char *message;
      enum pto_status status;

      machine_begin (machine);
      SUBMIT (machine, KERNEL_LATE_FATAL, make_scalar_param (late));
      /* The window is full at the third of them: the run ends for one reason or the other. */
      for (uint32_t i = 0; i < 4; i++)
        SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      status = machine_end (machine, &message);
      if (status == PTO_STATUS_KERNEL_FAULT)
        {
          g_assert_cmpstr (message, ==, "late");
          faults++;
        }
      else
        {
          g_assert_cmpint (status, ==, PTO_STATUS_TASK_RING);
          machine_assert_names (message, "deadlock in task ring");
          deadlocks++;
        }
      machine_free (machine);
    }
  g_assert_cmpuint (faults, >, 0);
  g_assert_cmpuint (deadlocks, >, 0);
}

/* A failed task fails everything behind it, once each, and nothing else; all of it is given back.
 */
static void
poison (struct machine *machine, bool wired_before)
{
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  _Atomic uint32_t fine = 0;
  struct gate gate;
  Tensor source;
  Tensor chain[20];
  Tensor other;
  uint8_t before[1];
  Tensor barrier = machine_external (before, 1);

  gate_init (&gate);
  if (!wired_before)
    gate_open (machine, &gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&barrier), scalar (&gate));
  if (wired_before)
    gate_wait_reached (machine, &gate);
  source = machine_tensor (machine, 64);
  other = machine_tensor (machine, 64);
  SUBMIT (machine, KERNEL_FAIL, input (&barrier), output (&source), scalar (&failed));
  SUBMIT (machine, KERNEL_COUNT, input (&barrier), output (&other), scalar (&fine));
  if (!wired_before)
    wait_completed (machine, 3);
  for (uint32_t i = 0; i < G_N_ELEMENTS (chain); i++)
    {
      chain[i] = machine_tensor (machine, 64);
      SUBMIT_TO (machine, KERNEL_COUNT, i % 2, input (i < 5 ? &source : &chain[i - 5]),
                 input (&other), output (&chain[i]), scalar (&poisoned));
      SUBMIT_TO (machine, PTO_KERNEL_NONE, i % 2, input (&chain[i]));
      SUBMIT_TO (machine, KERNEL_COUNT, i % 2, inout (&other), scalar (&poisoned));
      other = machine_tensor (machine, 64);
      SUBMIT (machine, KERNEL_COUNT, output (&other), scalar (&fine));
    }
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  g_assert_cmpuint (fine, ==, 1 + G_N_ELEMENTS (chain));
  {
    uint64_t sum = 0;

    for (uint32_t s = 0; s < machine->config.schedulers; s++)
      sum += atomic_load (&machine->schedulers[s]->failed);
    g_assert_cmpuint (sum, ==, 1 + 3 * G_N_ELEMENTS (chain));
  }
}

static void
test_failure_poisons_consumers (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 2,
                                                                   .queues = 2,
                                                                   .window = 256,
                                                                   .kernels = kernels });

  for (uint32_t i = 0; i < 20; i++)
    {
      poison (machine, true);
      poison (machine, false);
    }
  machine_free (machine);
}

/* A consumer that comes when its failed producer is long retired is poisoned all the same. */
static void
test_failure_outlives_its_slot (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 4, .kernels = kernels });
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_FAIL, output (&tensor), scalar (&failed));
  pto_engine_scope_end (machine->engine);
  for (uint32_t i = 0; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
  SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&poisoned));
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  machine_free (machine);
}

/* The same when the producer is retired while the consumer's submit waits for room. */
static void
test_failure_outlives_a_wait (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 4, .kernels = kernels });
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);

  machine_begin (machine);
  for (uint32_t i = 0; i < 3; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      if (i == 0)
        SUBMIT (machine, KERNEL_FAIL, output (&tensor), scalar (&failed));
      else
        SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&poisoned));
  pto_engine_scope_end (machine->engine);
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  machine_free (machine);
}

static bool
cancelled (void *data)
{
  return atomic_load ((_Atomic uint32_t *) data) != 0;
}

static void
test_cancel (gconstpointer backend)
{
  struct machine *machine = new_machine (backend);
  _Atomic uint32_t flag = 0;
  _Atomic uint32_t ran = 0;

  machine->engine->cancelled = cancelled;
  machine->engine->cancelled_data = &flag;
  machine_begin (machine);
  for (uint32_t i = 0; i < 1000; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
      pto_engine_scope_end (machine->engine);
      if (i == 500)
        flag = 1;
    }
  expect_error (machine, PTO_STATUS_CANCELLED, "cancelled");
  g_assert_cmpuint (ran, <, 600);
  flag = 0;
  machine_begin (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
  machine_end_ok (machine);
  machine_free (machine);
}

/* det: tasks that can never end are told as such, at once. */
static void
test_stuck_run_is_proved (void)
{
  struct machine *machine
      = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET, .seed = 1 });
  struct gate gate;
  const char *message;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_SCHEDULER_TIMEOUT);
  machine_assert_names (message, "0 of 1 tasks are done and nothing can run");
  g_assert_true (pto_engine_is_lost (machine->engine));
  g_assert_cmpuint (pto_now (machine->exec), ==, 0);
  /* Let it end after all, so that the machine can be taken apart. */
  pto_exec_enter (machine->exec);
  gate_open (machine, &gate);
  while (pto_exec_help (machine->exec))
    ;
  pto_exec_leave (machine->exec);
  machine_free (machine);
}

/* Without progress for eight times the time-out the run is given up; with progress never. */
static void
test_timeout (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .timeout_ns = 20000000, .kernels = kernels });
  struct gate gate;
  const char *message;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  /* On par the guest would carry the task itself and never come back from it: not a matter of the
   * engine. */
  g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_SCHEDULER_TIMEOUT);
  machine_assert_names (message, BACKEND (backend) == PTO_BACKEND_DET
                                     ? "nothing can run any more"
                                     : "no task finished for 160 ms");
  pto_exec_enter (machine->exec);
  gate_open (machine, &gate);
  while (pto_engine_completed (machine->engine) == 0)
    pto_exec_help (machine->exec);
  pto_exec_leave (machine->exec);
  machine_free (machine);
}

/* --- cost of a run --- */

static uint64_t
resident_pages (const void *memory, uint64_t bytes)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  uint64_t n = (bytes + page - 1) / page;
  uint8_t *map = g_malloc (n);
  uint64_t count = 0;

  if (mincore ((void *) (uintptr_t) memory, bytes, map) != 0)
    g_error ("mincore (%p, %" G_GUINT64_FORMAT "): %s", memory, bytes, g_strerror (errno));
  for (uint64_t i = 0; i < n; i++)
    count += map[i] & 1;
  g_free (map);
  return count;
}

static uint64_t
resident_of (struct machine *machine)
{
  uint64_t sum = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      struct pto_ring *ring = &machine->engine->rings[r];

      sum += resident_pages (ring->shared, ring->shared_size)
             + resident_pages (ring->storage.base, ring->storage.size)
             + resident_pages (ring->heap.base, ring->heap.size);
    }
  for (uint32_t shard = 0; shard < machine->engine->config.n_shards; shard++)
    sum += resident_pages (machine->engine->ready[0][shard].cells,
                           (uint64_t) machine->engine->ready[0][shard].capacity
                               * sizeof (uint64_t));
  return sum;
}

/* Pages that one engine of that size has touched after some small runs. */
static uint64_t
touched (uint32_t window, uint64_t heap)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET,
                                                                   .seed = 1,
                                                                   .immediate = true,
                                                                   .window = window,
                                                                   .heap = heap,
                                                                   .edge_pool = window,
                                                                   .kernels = kernels });
  uint64_t pages;

  /* Before the first submit nothing but the headers. */
  machine_begin (machine);
  pages = resident_of (machine);
  machine_end_ok (machine);
  g_assert_cmpuint (pages, <=, PTO_RINGS);
  for (uint32_t round = 0; round < 100; round++)
    {
      Tensor tensor;

      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 100);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      pto_engine_scope_end (machine->engine);
      machine_end_ok (machine);
    }
  pages = resident_of (machine);
  machine_free (machine);
  return pages;
}

static void
test_set_up_does_not_grow (void)
{
  uint64_t small = touched (64, 1u << 20);
  uint64_t large = touched (1u << 20, UINT64_C (1) << 30);

  g_test_message ("%" G_GUINT64_FORMAT " pages with a small window, %" G_GUINT64_FORMAT
                  " with a large one",
                  small, large);
  g_assert_cmpuint (small, <=, 16);
  g_assert_cmpuint (large, <=, small);
}

static uint64_t
resident_process (void)
{
  FILE *file = fopen ("/proc/self/statm", "r");
  unsigned long size = 0;
  unsigned long resident = 0;

  g_assert_nonnull (file);
  g_assert_cmpint (fscanf (file, "%lu %lu", &size, &resident), ==, 2);
  fclose (file);
  return resident * (uint64_t) sysconf (_SC_PAGESIZE);
}

static void
flow (struct machine *machine, uint32_t n, _Atomic uint32_t *ran)
{
  static uint8_t memory[64];

  for (uint32_t i = 0; i < n; i += 4)
    {
      Tensor tensor;
      Tensor external = machine_external (memory + i % 64, 1);

      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 1000);
      SUBMIT (machine, KERNEL_COUNT, output (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, input (&tensor), existing (&external), scalar (ran));
      pto_engine_scope_end (machine->engine);
    }
}

static void
test_a_million_tasks_stay_flat (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .immediate = true,
                                                                   .window = 64,
                                                                   .heap = 65536,
                                                                   .kernels = kernels });
  _Atomic uint32_t ran = 0;
  uint32_t warm = 10000;
  uint32_t n = SCALE (1000000);
  uint64_t before;

  machine_begin (machine);
  flow (machine, warm, &ran);
  before = resident_process ();
  flow (machine, n, &ran);
  g_assert_cmpuint (resident_process (), <, before + (SCALE (20) == 20 ? 1u : 64u) * 512 * 1024);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, warm + n);
  g_assert_cmpuint (pto_engine_recycled (machine->engine), >=, n - n / 10);
  machine_free (machine);
}

/* --- positions wrap at 32 bits --- */

static void
test_positions_wrap (gconstpointer backend)
{
  for (uint32_t window = 4; window <= 16; window *= 2)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                       .seed = 1,
                                                                       .window = window,
                                                                       .heap = 65536,
                                                                       .edge_pool = 16,
                                                                       .kernels = kernels });
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
add_tests (void)
{
  machine_add ("engine", "inner-scope-flows", test_inner_scope_flows);
  machine_add ("engine", "pending-consumer-keeps-buffer", test_pending_consumer_keeps_buffer);
  machine_add ("engine", "scope-holds-its-tasks", test_scope_holds_its_tasks);
  machine_add ("engine", "input-retains", test_input_retains);
  machine_add ("engine", "no-dep-retains", test_no_dep_retains);
  machine_add ("engine", "no-dep-does-not-wait", test_no_dep_does_not_wait);
  machine_add ("engine", "deep-scopes-share-a-ring", test_deep_scopes_share_a_ring);
  machine_add ("engine", "deep-scopes-reclaim-at-their-end", test_deep_scopes_reclaim_at_their_end);
  g_test_add_func ("/pto/engine/tags-all-hazards", test_tags_all_hazards);
  g_test_add_func ("/pto/engine/tags-of-the-seeds", test_tags_of_the_seeds);
  machine_add ("engine", "fan-in-64-by-64", test_fan_in_64_by_64);
  machine_add ("engine", "fan-in-of-5000", test_fan_in_of_5000);
  machine_add ("engine", "producer-counts-once", test_producer_counts_once);
  machine_add ("engine", "no-edge-to-itself", test_no_edge_to_itself);
  machine_add ("engine", "task-without-kernel-orders", test_task_without_kernel_orders);
  machine_add ("engine", "tensor-of-an-ended-scope", test_tensor_of_an_ended_scope);
  machine_add ("engine", "output-of-an-ended-scope", test_output_of_an_ended_scope);
  machine_add ("engine", "tensor-without-memory", test_tensor_without_memory);
  machine_add ("engine", "too-many-arguments", test_too_many_arguments);
  machine_add ("engine", "scope-overflow", test_scope_overflow);
  machine_add ("engine", "scope-end-without-begin", test_scope_end_without_begin);
  machine_add ("engine", "open-scopes-are-closed", test_open_scopes_are_closed);
  machine_add ("engine", "first-error-latches", test_first_error_latches);
  g_test_add_func ("/pto/engine/text-belongs-to-status", test_text_belongs_to_status);
  machine_add ("engine", "failure-poisons-consumers", test_failure_poisons_consumers);
  machine_add ("engine", "failure-outlives-its-slot", test_failure_outlives_its_slot);
  machine_add ("engine", "failure-outlives-a-wait", test_failure_outlives_a_wait);
  machine_add ("engine", "cancel", test_cancel);
  g_test_add_func ("/pto/engine/stuck-run-is-proved", test_stuck_run_is_proved);
  machine_add ("engine", "timeout", test_timeout);
  g_test_add_func ("/pto/engine/set-up-does-not-grow", test_set_up_does_not_grow);
  machine_add ("engine", "a-million-tasks-stay-flat", test_a_million_tasks_stay_flat);
  machine_add ("engine", "positions-wrap", test_positions_wrap);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
