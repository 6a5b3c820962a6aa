/* test-engine-edges.c: whom does a task wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include <string.h>

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
  struct machine *machine = machine_new (
      &(struct machine_config){ .backend = PTO_BACKEND_DET, .seed = 1, .hazards = hazards });
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
                                                                   .map_pool = 65536 });
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
                                                                   .map_pool = 16384 });
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
  struct machine *machine = machine_new_for (backend);
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
  struct machine *machine = machine_new_for (backend);
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
  struct machine *machine = machine_new (
      &(struct machine_config){ .backend = BACKEND (backend), .seed = 1, .queues = 2 });
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

/* --- producers that the submit names --- */

/* Tasks without a tensor: the edge is there because it was asked for, once however often, and goes
 * with what the tensors say. */
static void
test_named_producer_orders (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);
  PTOParam param = input (&tensor);
  _Atomic uint32_t ran = 0;
  struct gate gates[2];
  pto_task_id producers[4];
  pto_task_id last;
  pto_task_id reader;

  machine_record (machine);
  gate_init (&gates[0]);
  gate_init (&gates[1]);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  producers[0] = SUBMIT (machine, KERNEL_GATE, scalar (&gates[0]));
  pto_engine_scope_end (machine->engine);
  producers[1] = SUBMIT (machine, KERNEL_GATE, output (&tensor), scalar (&gates[1]));
  producers[2] = producers[0];
  producers[3] = producers[1];
  g_assert_cmphex (producers[0], ==, PTO_TASK_ID (1, 0));
  g_assert_cmphex (producers[1], ==, PTO_TASK_ID (0, 0));
  last = machine_submit_after (machine, producers, 4, &ran);
  reader = pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTHING,
                                                                     .params = &param,
                                                                     .n_params = 1,
                                                                     .producers = &last,
                                                                     .n_producers = 1 });
  /* It only waits: nobody's memory is kept for it. */
  for (uint32_t ring = 0; ring < 2; ring++)
    g_assert_cmpuint (pto_ring_slot (&machine->engine->rings[ring], 0)->taken, ==, 0);
  for (uint32_t i = 0; i < 2; i++)
    {
      gate_wait_reached (machine, &gates[i]);
      g_assert_cmpint (pto_engine_task_state (machine->engine, last), ==, PTO_TASK_PENDING);
      gate_open (machine, &gates[i]);
      machine_wait_completed (machine, 1 + i);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 1);
  g_assert_cmphex (machine_edge (machine, last, producers[0]), ==, PTO_HAZARD_EXPLICIT);
  g_assert_cmphex (machine_edge (machine, last, producers[1]), ==, PTO_HAZARD_EXPLICIT);
  g_assert_cmphex (machine_edge (machine, reader, last), ==, PTO_HAZARD_EXPLICIT);
  g_assert_cmphex (machine_edge (machine, reader, producers[1]), ==, PTO_HAZARD_RAW);
  g_assert_cmpuint (machine_n_edges (machine), ==, 4);
  g_assert_cmpuint (machine->engine->stats.edges, ==, 4);

  /* For both reasons: one edge. */
  machine_begin (machine);
  last = SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  reader = pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTHING,
                                                                     .params = &param,
                                                                     .n_params = 1,
                                                                     .producers = &last,
                                                                     .n_producers = 1 });
  machine_end_ok (machine);
  g_assert_cmphex (machine_edge (machine, reader, last), ==, PTO_HAZARD_RAW | PTO_HAZARD_EXPLICIT);
  g_assert_cmpuint (machine_n_edges (machine), ==, 1);
  machine_free (machine);
}

/* A name stays good for the whole run, however often its slot has been used since. */
static void
test_named_producer_has_retired (gconstpointer backend)
{
  struct machine *machine
      = machine_new (&(struct machine_config){ .backend = BACKEND (backend), .window = 4 });
  _Atomic uint32_t ran = 0;
  pto_task_id producers[20];

  machine_record (machine);
  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (producers); i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      producers[i] = SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
  g_assert_cmpuint (machine->engine->tails[1], >, 0);
  machine_submit_after (machine, producers, G_N_ELEMENTS (producers), &ran);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 1);
  g_assert_cmpuint (machine_n_edges (machine), <, 4);
  machine_free (machine);
}

/* What fails before it is named, while it is waited for, and long before: none of those behind it
 * runs. */
static void
test_named_producer_fails (gconstpointer backend)
{
  struct machine *machine
      = machine_new (&(struct machine_config){ .backend = BACKEND (backend), .window = 4 });
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  _Atomic uint32_t fine = 0;
  struct gate gate;
  pto_task_id first;
  pto_task_id other;

  gate_init (&gate);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  first = SUBMIT (machine, KERNEL_GATE, scalar (&gate));
  first = pto_engine_submit (machine->engine,
                             &(struct pto_submit){ .kernel = KERNEL_FAIL,
                                                   .params = (PTOParam[]){ scalar (&failed) },
                                                   .n_params = 1,
                                                   .producers = &first,
                                                   .n_producers = 1 });
  machine_submit_after (machine, &first, 1, &poisoned);
  gate_open (machine, &gate);
  pto_engine_scope_end (machine->engine);
  machine_wait_completed (machine, 3);
  machine_submit_after (machine, &first, 1, &poisoned);
  for (uint32_t i = 0; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      other = machine_submit_after (machine, NULL, 0, &fine);
      pto_engine_scope_end (machine->engine);
    }
  g_assert_true (pto_task_is_retired (machine->engine->tails, first));
  machine_submit_after (machine, &first, 1, &poisoned);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  machine_submit_after (machine, &other, 1, &fine);
  pto_engine_scope_end (machine->engine);
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  g_assert_cmpuint (fine, ==, 11);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, 4);
  machine_free (machine);
}

static void
test_named_producer_is_unknown (gconstpointer backend)
{
  static const pto_task_id unknown[]
      = { PTO_TASK_NONE, PTO_TASK_ID (0, 1), PTO_TASK_ID (1, 0), PTO_TASK_ID (PTO_RINGS, 0) };
  struct machine *machine = machine_new_for (backend);
  _Atomic uint32_t ran = 0;

  for (uint32_t i = 0; i < G_N_ELEMENTS (unknown); i++)
    {
      pto_task_id producers[2];
      char *text = g_strdup_printf ("task 1 (count): it comes after task %" G_GUINT64_FORMAT
                                    " (number 1 of those that it names), which is no task of this "
                                    "run",
                                    unknown[i]);

      machine_begin (machine);
      producers[0] = machine_submit_after (machine, NULL, 0, &ran);
      producers[1] = unknown[i];
      g_assert_cmphex (producers[0], ==, 0);
      g_assert_cmphex (machine_submit_after (machine, producers, 2, &ran), ==, PTO_TASK_NONE);
      /* The run has failed. */
      g_assert_cmphex (machine_submit_after (machine, NULL, 0, &ran), ==, PTO_TASK_NONE);
      machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, text);
      g_free (text);
    }
  g_assert_cmpuint (ran, <=, G_N_ELEMENTS (unknown));
  machine_free (machine);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-edges/tags-all-hazards", test_tags_all_hazards);
  g_test_add_func ("/pto/engine-edges/tags-of-the-seeds", test_tags_of_the_seeds);
  machine_add ("engine-edges", "fan-in-64-by-64", test_fan_in_64_by_64);
  machine_add ("engine-edges", "fan-in-of-5000", test_fan_in_of_5000);
  machine_add ("engine-edges", "producer-counts-once", test_producer_counts_once);
  machine_add ("engine-edges", "no-edge-to-itself", test_no_edge_to_itself);
  machine_add ("engine-edges", "task-without-kernel-orders", test_task_without_kernel_orders);
  machine_add ("engine-edges", "named-producer-orders", test_named_producer_orders);
  machine_add ("engine-edges", "named-producer-has-retired", test_named_producer_has_retired);
  machine_add ("engine-edges", "named-producer-fails", test_named_producer_fails);
  machine_add ("engine-edges", "named-producer-is-unknown", test_named_producer_is_unknown);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
