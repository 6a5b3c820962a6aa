/* test-engine-turns.c: do tasks that update a region in any order do so one at a time, without
 * waiting on a core, and between those who read or write it otherwise?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/core/commutative.h"

#include <string.h>

#define REGIONS 6u

/* What is updated: nothing here is atomic. */
struct region
{
  uint32_t value;
  uint32_t inside;
};

static struct region regions[REGIONS];
/* Which task, from 1, has how many of its parts at it: by slot's name << 8. */
static _Atomic uint64_t held[REGIONS];
static _Atomic uint32_t wrong;
static _Atomic uint32_t ran;

/* Adds 1 to each tensor, slowly; the last argument is a scalar. */
static void
kernel_update (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint32_t n = slot->payload->n_args - 1;
  uint32_t values[REGIONS];

  for (uint32_t i = 0; i < n; i++)
    {
      struct region *region
          = (struct region *) (uintptr_t) ((const TensorData *) (uintptr_t) args[i])->buffer.addr;

      values[i] = region->value;
      if (region->inside++ != 0)
        atomic_fetch_add (&wrong, 1);
    }
  pto_yield (machine->exec);
  for (uint32_t i = 0; i < n; i++)
    {
      struct region *region
          = (struct region *) (uintptr_t) ((const TensorData *) (uintptr_t) args[i])->buffer.addr;

      region->value = values[i] + 1;
      region->inside--;
    }
  atomic_fetch_add (&ran, 1);
}

/* The tensor is as the scalar says. */
static void
kernel_expect (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const struct region *region
      = (const struct region *) (uintptr_t) ((const TensorData *) (uintptr_t) args[0])->buffer.addr;

  if (region->value != (uint32_t) args[1] || region->inside != 0)
    atomic_fetch_add (&wrong, 1);
  atomic_fetch_add (&ran, 1);
}

/* A part of a task that has its turn as a whole: others of the same one may be here, too. Each adds
 * 1 to each tensor. */
static void
kernel_part (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint32_t n = slot->payload->n_args - 1;

  for (uint32_t i = 0; i < n; i++)
    {
      struct region *region
          = (struct region *) (uintptr_t) ((const TensorData *) (uintptr_t) args[i])->buffer.addr;
      _Atomic uint64_t *holder = &held[region - regions];
      uint64_t before = atomic_load (holder);

      do
        if (before != 0 && before >> 8 != slot->id + 1)
          atomic_fetch_add (&wrong, 1);
      while (!atomic_compare_exchange_weak (holder, &before,
                                            (slot->id + 1) << 8 | ((before & 255) + 1)));
      __atomic_fetch_add (&region->value, 1, __ATOMIC_RELAXED);
    }
  pto_yield (machine->exec);
  for (uint32_t i = 0; i < n; i++)
    {
      const struct region *region
          = (struct region *) (uintptr_t) ((const TensorData *) (uintptr_t) args[i])->buffer.addr;
      _Atomic uint64_t *holder = &held[region - regions];
      uint64_t before = atomic_load (holder);

      while (!atomic_compare_exchange_weak (holder, &before, (before & 255) == 1 ? 0 : before - 1))
        ;
    }
  atomic_fetch_add (&ran, 1);
}

enum
{
  KERNEL_UPDATE = KERNEL_OWN,
  KERNEL_EXPECT,
  KERNEL_PART
};

static const machine_kernel kernels[] = { kernel_update, kernel_expect, kernel_part };

static struct machine *
machine_of (gconstpointer backend, uint32_t schedulers, uint32_t endpoints)
{
  memset (regions, 0, sizeof regions);
  atomic_store (&wrong, 0);
  atomic_store (&ran, 0);
  return machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                .seed = 1,
                                                .schedulers = schedulers,
                                                .endpoints = endpoints,
                                                .kernels = kernels });
}

static Tensor
tensor_of (uint32_t region)
{
  return machine_external (&regions[region], sizeof (struct region));
}

static PTOParam
commutes (uint32_t region)
{
  Tensor tensor = tensor_of (region);

  return pto2_make_param (PTO_PARAM_COMMUTATIVE, &tensor);
}

static PTOParam
reads (uint32_t region)
{
  Tensor tensor = tensor_of (region);

  return input (&tensor);
}

static void
assert_nobody_waits (const struct machine *machine)
{
  for (uint32_t i = 0; i < PTO_TURNS; i++)
    g_assert_null (machine->engine->turns.last[i]);
}

static void
test_one_at_a_time (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 2, 4);
  uint32_t n = SCALE (2000);

  for (uint32_t round = 0; round < 3; round++)
    {
      machine_begin (machine);
      for (uint32_t i = 0; i < n; i++)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          SUBMIT (machine, KERNEL_UPDATE, commutes (i % 2), make_scalar_param (0));
          if (i % 100 == 99)
            SUBMIT (machine, KERNEL_EXPECT, reads (0),
                    make_scalar_param (round * (n / 2) + i / 2 + 1));
          pto_engine_scope_end (machine->engine);
        }
      machine_end_ok (machine);
      g_assert_cmpuint (regions[0].value + regions[1].value, ==, (round + 1) * n);
      g_assert_cmpuint (wrong, ==, 0);
      assert_nobody_waits (machine);
    }
  machine_free (machine);
}

/* Who was submitted last goes first, if the others wait for something else. */
static void
test_any_order (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 1, 2);
  static uint8_t memory[8];
  Tensor other = machine_external (memory, sizeof memory);
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&other), scalar (&gate));
  gate_wait_reached (machine, &gate);
  /* After the one at the gate, which is named. */
  pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_UPDATE,
                            .params = (PTOParam[]){ commutes (0), make_scalar_param (0) },
                            .n_params = 2,
                            .producers = (pto_task_id[]){ 0 },
                            .n_producers = 1 });
  for (uint32_t i = 0; i < 5; i++)
    SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
  machine_wait_completed (machine, 5);
  g_assert_cmpuint (regions[0].value, ==, 5);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (regions[0].value, ==, 6);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* One that waits for its turn keeps no place from others. */
static void
test_waits_without_a_place (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 1, 2);
  struct gate gate;
  _Atomic uint32_t others = 0;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, commutes (0), scalar (&gate));
  gate_wait_reached (machine, &gate);
  for (uint32_t i = 0; i < 5; i++)
    SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
  for (uint32_t i = 0; i < 5; i++)
    SUBMIT (machine, KERNEL_COUNT, scalar (&others));
  machine_wait_completed (machine, 5);
  g_assert_cmpuint (others, ==, 5);
  g_assert_cmpuint (ran, ==, 0);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 5);
  assert_nobody_waits (machine);
  machine_free (machine);
}

/* Each needs some of the regions at once, by different orders; some name places, some are urgent.
 */
static void
test_several (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 2, 4);
  uint64_t random = 5;
  uint32_t expected[REGIONS] = { 0 };
  uint32_t n = SCALE (2000);

  machine_begin (machine);
  for (uint32_t i = 0; i < n; i++)
    {
      PTOParam params[REGIONS + 1];
      uint32_t chosen[REGIONS] = { 0, 1, 2, 3, 4, 5 };
      uint32_t n_regions = 1 + machine_below (&random, 4);
      struct pto_need need = { 0, machine_below (&random, 8), KERNEL_UPDATE };

      for (uint32_t k = 0; k < n_regions; k++)
        {
          uint32_t at = k + machine_below (&random, REGIONS - k);
          uint32_t region = chosen[at];

          chosen[at] = chosen[k];
          params[k] = commutes (region);
          expected[region]++;
        }
      params[n_regions] = make_scalar_param (0);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){ .kernel = KERNEL_UPDATE,
                                .params = params,
                                .n_params = n_regions + 1,
                                .terms.priority = machine_below (&random, 2),
                                .wish = i % 3 == 0 ? &(struct pto_wish){ .cohort = PTO_COHORT_NONE,
                                                                         .n_members = 1,
                                                                         .members = &need }
                                                   : NULL });
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  for (uint32_t i = 0; i < REGIONS; i++)
    g_assert_cmpuint (regions[i].value, ==, expected[i]);
  g_assert_cmpuint (wrong, ==, 0);
  assert_nobody_waits (machine);
  machine_free (machine);
}

/* Blocks, members of a cohort, members anywhere, all of them urgent or not: each task has its turns
 * as a whole, and waits for places behind them. */
static void
test_parts (gconstpointer backend)
{
  static const struct pto_need needs[] = { { 0, PTO_PLACE_ANY, KERNEL_PART },
                                           { 1, PTO_PLACE_ANY, KERNEL_PART },
                                           { 0, PTO_PLACE_ANY, KERNEL_PART } };
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .queues = 2,
                                                                   .cohorts = 2,
                                                                   .kernels = kernels });
  uint32_t expected[REGIONS] = { 0 };
  uint64_t random = 11;
  uint32_t n = SCALE (3000);
  uint32_t parts = 0;

  memset (regions, 0, sizeof regions);
  atomic_store (&wrong, 0);
  atomic_store (&ran, 0);
  machine_begin (machine);
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t first = machine_below (&random, REGIONS);
      uint32_t second = (first + 1 + machine_below (&random, REGIONS - 1)) % REGIONS;
      PTOParam params[] = { commutes (first), commutes (second), make_scalar_param (0) };
      uint32_t shape = machine_below (&random, 6);
      struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .members = needs };
      struct pto_submit submit = { .kernel = KERNEL_PART,
                                   .params = params,
                                   .n_params = 3,
                                   .terms.priority = machine_below (&random, 2),
                                   .wish = &wish };

      switch (shape)
        {
        case 0: /* blocks, anywhere */
          submit.wish = NULL;
          submit.n_blocks = 1 + machine_below (&random, 12);
          wish.n_members = 1;
          break;
        case 1: /* neighbours */
          wish.together = true;
          wish.n_members = 2 + machine_below (&random, 2);
          break;
        case 2: /* blocks of neighbours, perhaps in one cohort */
          wish.together = true;
          wish.cohort = i % 2 == 0 ? i / 2 % 4 : PTO_COHORT_NONE;
          wish.n_members = 2;
          submit.n_blocks = 1 + machine_below (&random, 5);
          break;
        case 3: /* several, at once */
          wish.n_members = 3;
          break;
        case 4: /* blocks of neighbours, at once */
          wish.together = true;
          wish.n_at_once = 1;
          wish.n_members = 2;
          break;
        default: /* one of a kind, as any other */
          submit.wish = NULL;
          wish.n_members = 1;
          break;
        }
      parts += wish.n_members * (submit.n_blocks > 1 ? submit.n_blocks : 1);
      expected[first] += wish.n_members * (submit.n_blocks > 1 ? submit.n_blocks : 1);
      expected[second] += wish.n_members * (submit.n_blocks > 1 ? submit.n_blocks : 1);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      pto_engine_submit (machine->engine, &submit);
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, parts);
  for (uint32_t i = 0; i < REGIONS; i++)
    {
      g_assert_cmpuint (regions[i].value, ==, expected[i]);
      g_assert_cmpuint (held[i], ==, 0);
    }
  g_assert_cmpuint (wrong, ==, 0);
  assert_nobody_waits (machine);
  machine_free (machine);
}

static void
test_edges (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 1, 2);
  struct gate gate;
  Tensor whole = tensor_of (0);
  Tensor half = machine_part (&whole, 0, sizeof (uint32_t));

  gate_init (&gate);
  machine_record (machine);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&whole), scalar (&gate));
  SUBMIT (machine, KERNEL_NOTHING, reads (0));
  SUBMIT (machine, KERNEL_NOTHING, commutes (0), commutes (0));
  SUBMIT (machine, KERNEL_NOTHING, commutes (0));
  SUBMIT (machine, KERNEL_NOTHING, input (&half));
  SUBMIT (machine, KERNEL_NOTHING, commutes (0));
  SUBMIT (machine, KERNEL_NOTHING, pto2_make_param (PTO_PARAM_COMMUTATIVE, &half));
  SUBMIT (machine, KERNEL_NOTHING, inout (&whole));
  gate_open (machine, &gate);
  machine_end_ok (machine);
  for (pto_task_id i = 2; i < 6; i++)
    {
      if (i == 4)
        continue;
      g_assert_cmphex (machine_edge (machine, i, 0), ==, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
      g_assert_cmphex (machine_edge (machine, i, 1), ==, PTO_HAZARD_WAR);
      for (pto_task_id k = 2; k < i; k++)
        g_assert_cmphex (machine_edge (machine, i, k), ==, k == 4 ? PTO_HAZARD_WAR : 0);
      g_assert_cmphex (machine_edge (machine, 6, i), ==, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
      g_assert_cmphex (machine_edge (machine, 7, i), ==, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
    }
  g_assert_cmphex (machine_edge (machine, 4, 2), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 4, 3), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 7, 6), ==, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  machine_free (machine);
}

/* Others that update it run; who reads it does not. */
static void
test_failure (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 1, 2);
  _Atomic uint32_t failures = 0;

  machine_begin (machine);
  SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
  SUBMIT (machine, KERNEL_FAIL, commutes (0), scalar (&failures));
  SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
  SUBMIT (machine, KERNEL_EXPECT, reads (0), make_scalar_param (0));
  machine_end_ok (machine);
  g_assert_cmpuint (failures, ==, 1);
  g_assert_cmpuint (ran, ==, 2);
  g_assert_cmpuint (pto_engine_failures (machine->engine), ==, 2);

  machine_begin (machine);
  for (uint32_t i = 0; i < 20; i++)
    SUBMIT (machine, i == 5 ? KERNEL_FATAL : KERNEL_UPDATE, commutes (0), scalar (&failures));
  machine_expect_error (machine, PTO_STATUS_KERNEL_FAULT, "crashed");
  assert_nobody_waits (machine);
  machine_free (machine);
}

/* A task that runs nothing stands in nobody's way, and one of a manual scope has no turns to take.
 */
static void
test_without_turns (gconstpointer backend)
{
  struct machine *machine = machine_of (backend, 1, 1);
  PTOParam unknown = commutes (0);
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, commutes (0), scalar (&gate));
  SUBMIT (machine, PTO_KERNEL_NONE, commutes (0));
  machine_wait_completed (machine, 1);
  gate_open (machine, &gate);
  machine_end_ok (machine);
  machine_begin (machine);
  pto_engine_manual_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
  pto_engine_scope_end (machine->engine);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 0: updates do not take turns");
  machine_begin (machine);
  unknown.type = (PTOParamType) 99;
  SUBMIT (machine, KERNEL_UPDATE, unknown);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 0: unknown kind");
  machine_free (machine);
}

/* The submitter runs each task itself, these not. */
static void
test_direct (void)
{
  struct machine *machine = machine_of (GINT_TO_POINTER (PTO_BACKEND_PAR), 1, 2);

  machine_begin (machine);
  for (uint32_t i = 0; i < 10; i++)
    {
      machine_go_direct (machine);
      SUBMIT (machine, KERNEL_UPDATE, commutes (0), make_scalar_param (0));
    }
  machine_end_ok (machine);
  g_assert_cmpuint (regions[0].value, ==, 10);
  assert_nobody_waits (machine);
  machine_free (machine);
}

/* Small pools: what groups keep is given back. */
static void
test_pool (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 16, .map_pool = 16, .kernels = kernels });
  uint32_t n = SCALE (4000);

  memset (regions, 0, sizeof regions);
  machine_begin (machine);
  for (uint32_t i = 0; i < n; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      if (i % 3 < 2)
        SUBMIT (machine, KERNEL_UPDATE, commutes (i % REGIONS), make_scalar_param (0));
      else
        SUBMIT (machine, KERNEL_NOTHING, reads (i % REGIONS), reads ((i + 1) % REGIONS));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  machine_free (machine);
}

static void
add_tests (void)
{
  machine_add ("turns", "one-at-a-time", test_one_at_a_time);
  machine_add ("turns", "any-order", test_any_order);
  machine_add ("turns", "waits-without-a-place", test_waits_without_a_place);
  machine_add ("turns", "several", test_several);
  machine_add ("turns", "parts", test_parts);
  machine_add ("turns", "edges", test_edges);
  machine_add ("turns", "failure", test_failure);
  machine_add ("turns", "without-turns", test_without_turns);
  machine_add ("turns", "pool", test_pool);
  g_test_add_func ("/pto/turns/par/direct", test_direct);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
