/* test-engine-priorities.c: do tasks of a higher priority go first, wherever they wait, and does
 * everybody run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where one place is busy until all tasks are ready, the order in which they run is known on every
 * back end.
 */
#include "engine-test.h"

#define N 48u

static uint32_t order[N];
static _Atomic uint32_t n_order;

/* Its last argument is its number. */
static void
kernel_note (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  order[atomic_fetch_add (&n_order, 1)] = (uint32_t) args[slot->payload->n_args - 1];
}

static void
kernel_polite (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  pto_yield (machine->exec);
  atomic_fetch_add ((_Atomic uint32_t *) (uintptr_t) args[slot->payload->n_args - 1], 1);
}

enum
{
  KERNEL_NOTE = KERNEL_OWN,
  KERNEL_POLITE
};

static const machine_kernel kernels[] = { kernel_note, kernel_polite };

static struct machine *
machine_of (enum pto_backend backend, uint32_t schedulers, uint32_t endpoints)
{
  return machine_new (&(struct machine_config){ .backend = backend,
                                                .seed = 1,
                                                .schedulers = schedulers,
                                                .endpoints = endpoints,
                                                .shards = 1,
                                                .kernels = kernels });
}

static pto_task_id
submit (struct machine *machine, uint32_t kernel, uint32_t priority, PTOParam *params,
        uint32_t n_params)
{
  return pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = kernel,
                                                                   .params = params,
                                                                   .n_params = n_params,
                                                                   .terms.priority = priority });
}

static pto_task_id
submit_number (struct machine *machine, uint32_t priority, uint32_t number)
{
  PTOParam param = make_scalar_param (number);

  return submit (machine, KERNEL_NOTE, priority, &param, 1);
}

/* After the one before it. */
static pto_task_id
submit_link (struct machine *machine, uint32_t priority, const Tensor *chain, uint32_t number)
{
  PTOParam params[2] = { inout (chain), make_scalar_param (number) };

  return submit (machine, KERNEL_NOTE, priority, params, 2);
}

/* Members on the places of these numbers, which are all there are. */
static pto_task_id
submit_named (struct machine *machine, uint32_t priority, uint32_t places, uint32_t number)
{
  struct pto_need needs[MACHINE_ENDPOINTS_MAX];
  PTOParam param = make_scalar_param (number);
  uint32_t n = 0;

  for (; places != 0; places &= places - 1)
    needs[n++] = (struct pto_need){ 0, (uint32_t) __builtin_ctz (places), KERNEL_NOTE };
  return pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .params = &param,
                            .n_params = 1,
                            .terms.priority = priority,
                            .wish = &(struct pto_wish){
                                .cohort = PTO_COHORT_NONE, .n_members = n, .members = needs } });
}

/* On any so many places at once. */
static pto_task_id
submit_any (struct machine *machine, uint32_t priority, uint32_t n, uint32_t number)
{
  struct pto_need needs[MACHINE_ENDPOINTS_MAX];
  PTOParam param = make_scalar_param (number);

  for (uint32_t i = 0; i < n; i++)
    needs[i] = (struct pto_need){ 0, PTO_PLACE_ANY, KERNEL_NOTE };
  return pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .params = &param,
                            .n_params = 1,
                            .terms.priority = priority,
                            .wish = &(struct pto_wish){
                                .cohort = PTO_COHORT_NONE, .n_members = n, .members = needs } });
}

static void
assert_order (const uint32_t *expected, uint32_t n)
{
  g_assert_cmpuint (n_order, ==, n);
  for (uint32_t i = 0; i < n; i++)
    g_assert_cmpuint (order[i], ==, expected[i]);
}

/* The one place there is, busy until the gate opens. */
static void
begin_busy (struct machine *machine, struct gate *gate)
{
  n_order = 0;
  gate_init (gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, scalar (gate));
  gate_wait_reached (machine, gate);
}

/* Who is far away is given what is ready before what its last task was for is looked at, and after
 * it where a priority may have to be kept. */
static void
test_far (gconstpointer backend)
{
  for (uint32_t round = 0; round < 6; round++)
    {
      bool far = round % 2 == 1;
      uint32_t priority = round / 2 == 1 ? PTO_MAX_PRIORITY : 0;
      struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                       .seed = 1,
                                                                       .endpoints = 1,
                                                                       .shards = 1,
                                                                       .far = far,
                                                                       .kernels = kernels });
      uint32_t memory[1] = { 0 };
      Tensor tensor = machine_external (memory, sizeof memory);
      struct gate gate;

      n_order = 0;
      gate_init (&gate);
      machine_begin (machine);
      SUBMIT (machine, KERNEL_GATE, inout (&tensor), scalar (&gate));
      gate_wait_reached (machine, &gate);
      submit_link (machine, priority, &tensor, 0);
      submit_number (machine, 0, 1);
      /* A second one, so that a place that is refilled is refilled again. */
      submit_number (machine, 0, 2);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      assert_order (far && priority == 0 && BACKEND (backend) != PTO_BACKEND_PAR
                        ? (uint32_t[]){ 1, 2, 0 }
                        : (uint32_t[]){ 0, 1, 2 },
                    3);
      machine_free (machine);
    }
}

static void
test_order (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1, 1);

  for (uint32_t round = 0; round < 3; round++)
    {
      uint32_t expected[N];
      uint32_t n = 0;
      struct gate gate;

      begin_busy (machine, &gate);
      for (uint32_t i = 0; i < N; i++)
        g_assert_cmpuint (submit_number (machine, i * 7 / 3 % (PTO_MAX_PRIORITY + 1), i), !=,
                          PTO_TASK_NONE);
      for (uint32_t p = PTO_MAX_PRIORITY + 1; p-- > 0;)
        for (uint32_t i = 0; i < N; i++)
          if (i * 7 / 3 % (PTO_MAX_PRIORITY + 1) == p)
            expected[n++] = i;
      g_assert_cmpuint (pto_engine_backlog (machine->engine), ==, N);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      assert_order (expected, N);
      g_assert_cmpuint (pto_engine_backlog (machine->engine), ==, 0);
    }
  machine_free (machine);
}

/* One after the other of a chain is handed on to the place where the one before has run: not past
 * somebody who goes first, and past those who do not. */
static void
test_chain_is_outranked (gconstpointer backend)
{
  static const uint32_t expected[] = { 6, 5, 0, 1, 2, 3, 4, 7 };
  struct machine *machine = machine_of (BACKEND (backend), 1, 1);
  static uint8_t memory[8];
  Tensor chain = machine_external (memory, sizeof memory);
  PTOParam params[2];
  struct gate gate;

  n_order = 0;
  gate_init (&gate);
  machine_begin (machine);
  params[0] = inout (&chain);
  params[1] = scalar (&gate);
  submit (machine, KERNEL_GATE, 1, params, 2);
  gate_wait_reached (machine, &gate);
  for (uint32_t i = 0; i < 5; i++)
    submit_link (machine, 1, &chain, i);
  submit_number (machine, 2, 5);
  submit_number (machine, 3, 6);
  submit_number (machine, 0, 7);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  assert_order (expected, G_N_ELEMENTS (expected));
  machine_free (machine);
}

/* Of several that one task has held up the highest is the next, whichever is found first. */
static void
test_successors (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1, 1);
  static uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);
  PTOParam params[2];
  struct gate gate;

  n_order = 0;
  gate_init (&gate);
  machine_begin (machine);
  params[0] = output (&tensor);
  params[1] = scalar (&gate);
  submit (machine, KERNEL_GATE, 0, params, 2);
  gate_wait_reached (machine, &gate);
  for (uint32_t i = 0; i < 6; i++)
    {
      params[0] = input (&tensor);
      params[1] = make_scalar_param (i);
      submit (machine, KERNEL_NOTE, 2 - i % 3, params, 2);
    }
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (n_order, ==, 6);
  for (uint32_t i = 0; i < 6; i++)
    g_assert_cmpuint (order[i] % 3, ==, i / 2);
  machine_free (machine);
}

/* Who sleeps is woken by a task of any priority. */
static void
test_wakes (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 2, 2);
  _Atomic uint32_t ran = 0;
  PTOParam param = scalar (&ran);

  for (uint32_t i = 0; i < SCALE (2000) / 8 * 8; i++)
    {
      if (i % 8 == 0)
        machine_begin (machine);
      submit (machine, KERNEL_POLITE, (i + i / 8) % (PTO_MAX_PRIORITY + 1), &param, 1);
      if (i % 3 == 0)
        machine_wait_completed (machine, i % 8 + 1);
      if (i % 8 == 7)
        {
          machine_end_ok (machine);
          g_assert_cmpuint (ran, ==, i + 1);
        }
    }
  machine_free (machine);
}

static void
test_many (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 4, 4);
  uint64_t random = 7;
  static uint8_t memory[16][8];
  _Atomic uint32_t ran = 0;

  for (uint32_t round = 0; round < 4; round++)
    {
      machine_begin (machine);
      for (uint32_t i = 0; i < SCALE (4000); i++)
        {
          Tensor read = machine_external (memory[machine_below (&random, 16)], 8);
          Tensor written = machine_external (memory[machine_below (&random, 16)], 8);
          PTOParam params[3] = { input (&read), inout (&written), scalar (&ran) };

          pto_engine_scope_begin (machine->engine, NULL, 0);
          submit (machine, KERNEL_POLITE, machine_below (&random, 3 * round + 1) % 4, params, 3);
          pto_engine_scope_end (machine->engine);
        }
      machine_end_ok (machine);
      g_assert_cmpuint (ran, ==, (round + 1) * SCALE (4000));
    }
  machine_free (machine);
}

/* --- tasks with a party --- */

static void
test_named_place (gconstpointer backend)
{
  static const uint32_t expected[] = { 3, 7, 2, 6, 1, 5, 0, 4 };
  struct machine *machine = machine_of (BACKEND (backend), 1, 1);
  struct gate gate;

  begin_busy (machine, &gate);
  for (uint32_t i = 0; i < 8; i++)
    submit_named (machine, i % 4, 1, i);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  assert_order (expected, 8);
  machine_free (machine);
}

/* Who has come first keeps place 1 while place 0 is busy; who comes later, with a higher priority,
 * needs both as well. Each of the two would wait for the other's place. */
static void
test_groups (gconstpointer backend)
{
  for (uint32_t named = 0; named < 2; named++)
    {
      struct machine *machine = machine_of (BACKEND (backend), 1, 2);
      PTOParam param;
      struct gate gate;

      n_order = 0;
      gate_init (&gate);
      machine_begin (machine);
      param = scalar (&gate);
      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){
              .params = &param,
              .n_params = 1,
              .wish = &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                          .n_members = 1,
                                          .members = &(struct pto_need){ 0, 0, KERNEL_GATE } } });
      gate_wait_reached (machine, &gate);
      for (uint32_t i = 0; i < 6; i++)
        {
          if (named != 0)
            submit_named (machine, i % 3, 3, i);
          else
            submit_any (machine, i % 3, 2, i);
          while (pto_exec_help (machine->exec))
            ;
        }
      gate_open (machine, &gate);
      machine_end_ok (machine);
      g_assert_cmpuint (n_order, ==, 12);
      for (uint32_t i = 0; i < 12; i += 2)
        {
          g_assert_cmpuint (order[i], ==, order[i + 1]);
          g_assert_cmpuint (order[i] % 3, ==, 2 - i / 4);
          g_assert_cmpuint (order[i] / 3, ==, i / 2 % 2);
        }
      machine_free (machine);
    }
}

/* Some name places, some need several, some any one; all of them get on. */
static void
test_parties (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 2, 3);
  uint64_t random = 3;

  for (uint32_t round = 0; round < SCALE (400); round++)
    {
      uint32_t expected = 0;

      n_order = 0;
      machine_begin (machine);
      for (uint32_t i = 0; i < 8; i++)
        {
          uint32_t priority = machine_below (&random, PTO_MAX_PRIORITY + 1);
          uint32_t places = 1 + machine_below (&random, 63);
          uint32_t n = 1 + machine_below (&random, 6);

          if (i % 2 == 0)
            submit_named (machine, priority, places, i);
          else
            submit_any (machine, priority, n, i);
          expected += i % 2 == 0 ? (uint32_t) __builtin_popcount (places) : n;
        }
      machine_end_ok (machine);
      g_assert_cmpuint (n_order, ==, expected);
    }
  machine_free (machine);
}

/* --- refusals --- */

static void
test_no_such_priority (gconstpointer backend)
{
  struct machine *machine = machine_of (BACKEND (backend), 1, 1);

  machine_begin (machine);
  g_assert_cmpuint (submit_number (machine, PTO_MAX_PRIORITY + 1, 0), ==, PTO_TASK_NONE);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "there is no priority 4");
  machine_begin (machine);
  g_assert_cmpuint (submit_number (machine, (uint32_t) -1, 0), ==, PTO_TASK_NONE);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "there is no priority -1");
  machine_free (machine);
}

static void
add_tests (void)
{
  machine_add ("priorities", "far", test_far);
  machine_add ("priorities", "order", test_order);
  machine_add ("priorities", "chain-is-outranked", test_chain_is_outranked);
  machine_add ("priorities", "successors", test_successors);
  machine_add ("priorities", "wakes", test_wakes);
  machine_add ("priorities", "many", test_many);
  machine_add ("priorities", "named-place", test_named_place);
  machine_add ("priorities", "groups", test_groups);
  machine_add ("priorities", "parties", test_parties);
  machine_add ("priorities", "no-such-priority", test_no_such_priority);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
