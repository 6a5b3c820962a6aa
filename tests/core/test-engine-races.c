/* test-engine-races.c: is every wake-up there once, whoever comes first?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include <sched.h>
#include <string.h>

/* What producers and consumers of the races tell each other: plain memory, ordered by the edge
 * alone. */
struct cell
{
  uint64_t value;
  _Atomic uint64_t runs;
  _Atomic uint64_t wrong;
};

/* Stores its number. */
static void
kernel_produce (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct cell *cell = (struct cell *) (uintptr_t) args[1];

  cell->value = (uint64_t) args[2];
}

/* Finds the number of its producer. */
static void
kernel_consume (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct cell *cell = (struct cell *) (uintptr_t) args[1];

  if (cell->value != (uint64_t) args[2])
    atomic_fetch_add_explicit (&cell->wrong, 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&cell->runs, 1, memory_order_relaxed);
}

struct spin
{
  _Atomic uint32_t started;
  _Atomic uint32_t go_on;
  _Atomic uint32_t in_vain;
};

/* Keeps its carrier, as a kernel does, until it is told to go on. */
static void
kernel_spin (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct spin *spin = (struct spin *) (uintptr_t) args[slot->payload->n_args - 1];
  uint64_t deadline = pto_wall_clock () + UINT64_C (10000000000);

  atomic_store (&spin->started, 1);
  while (atomic_load (&spin->go_on) == 0 && pto_wall_clock () < deadline)
    sched_yield ();
  if (atomic_load (&spin->go_on) == 0)
    atomic_store (&spin->in_vain, 1);
}

/* Lets it go on. */
static void
kernel_unspin (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct spin *spin = (struct spin *) (uintptr_t) args[slot->payload->n_args - 1];

  atomic_store (&spin->go_on, 1);
}

/* Keeps its carrier until another scheduler sleeps, ready for tasks of the same queue. */
static void
kernel_await_hunger (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                     bool *failed)
{
  struct pto_engine *engine = machine->engine;
  struct spin *spin = (struct spin *) (uintptr_t) args[slot->payload->n_args - 1];
  uint64_t deadline = pto_wall_clock () + UINT64_C (10000000000);

  while (atomic_load (&engine->hungry[slot->queue]) == 0 || atomic_load (&engine->lingering) != 0)
    {
      if (pto_wall_clock () > deadline)
        {
          atomic_store (&spin->in_vain, 1);
          return;
        }
      sched_yield ();
    }
}

enum
{
  KERNEL_PRODUCE = KERNEL_OWN,
  KERNEL_CONSUME,
  KERNEL_SPIN,
  KERNEL_UNSPIN,
  KERNEL_AWAIT_HUNGER
};

static const machine_kernel kernels[]
    = { kernel_produce, kernel_consume, kernel_spin, kernel_unspin, kernel_await_hunger };

/* One producer, and consumers wired to it while it completes: on the producer's queue, which may
 * take it over directly, and on another one. */
static void
race (gconstpointer backend, uint32_t schedulers, uint32_t pairs)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = schedulers,
                                                                   .endpoints = 1,
                                                                   .queues = 2,
                                                                   .immediate = true,
                                                                   .window = 256,
                                                                   .edge_pool = 1024,
                                                                   .kernels = kernels });
  static struct cell cells[64];

  memset (cells, 0, sizeof cells);
  machine_begin (machine);
  for (uint32_t i = 0; i < pairs; i++)
    {
      struct cell *cell = &cells[i % 64];
      Tensor tensor = machine_external (cell, 8);

      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT_TO (machine, KERNEL_PRODUCE, 0, output (&tensor), scalar (cell),
                 make_scalar_param (i));
      SUBMIT_TO (machine, KERNEL_CONSUME, i % 2, input (&tensor), scalar (cell),
                 make_scalar_param (i));
      /* Now and then the producer is long done, mostly it is not. */
      if (i % 8 == 0)
        pto_exec_help (machine->exec);
      if (i % 4 == 0)
        SUBMIT_TO (machine, KERNEL_CONSUME, 1, input (&tensor), scalar (cell),
                   make_scalar_param (i));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  {
    uint64_t runs = 0;

    for (uint32_t i = 0; i < 64; i++)
      {
        g_assert_cmpuint (cells[i].wrong, ==, 0);
        runs += cells[i].runs;
      }
    g_assert_cmpuint (runs, ==, pairs + (pairs + 3) / 4);
  }
  machine_free (machine);
}

static void
test_million_races (gconstpointer backend)
{
  race (backend, 1, SCALE (700000));
  race (backend, 2, SCALE (300000));
}

/* Two producers that end at the same time, one consumer. */
static void
test_two_producers (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 1,
                                                                   .immediate = true,
                                                                   .window = 256,
                                                                   .kernels = kernels });
  static struct cell cells[2];
  uint32_t n = SCALE (200000);

  memset (cells, 0, sizeof cells);
  machine_begin (machine);
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor a = machine_external (&cells[0], 8);
      Tensor b = machine_external (&cells[1], 8);

      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_PRODUCE, output (&a), scalar (&cells[0]), make_scalar_param (i));
      SUBMIT (machine, KERNEL_PRODUCE, output (&b), scalar (&cells[1]), make_scalar_param (i));
      SUBMIT (machine, KERNEL_CONSUME, input (&a), scalar (&cells[0]), make_scalar_param (i),
              input (&b));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (cells[0].runs, ==, n);
  g_assert_cmpuint (cells[0].wrong, ==, 0);
  machine_free (machine);
}

/* Many short runs: each begins with schedulers that have just gone to rest. */
static void
test_many_runs (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 3,
                                                                   .endpoints = 2,
                                                                   .window = 16,
                                                                   .kernels = kernels });
  uint32_t runs = SCALE (20000);
  _Atomic uint32_t ran = 0;

  for (uint32_t i = 0; i < runs; i++)
    {
      machine_begin (machine);
      for (uint32_t j = 0; j < 1 + i % 7; j++)
        SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
      machine_end_ok (machine);
      ran -= 1 + i % 7;
      g_assert_cmpuint (ran, ==, 0);
    }
  machine_free (machine);
}

/* A scheduler whose endpoints are all busy is not the one to call: the other takes the task. */
static void
test_idle_scheduler_takes_over (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 3,
                                                                   .endpoints = 1,
                                                                   .window = 16,
                                                                   .kernels = kernels });

  for (uint32_t round = 0; round < 50; round++)
    {
      struct gate gates[3];

      machine_begin (machine);
      for (uint32_t i = 0; i < 3; i++)
        {
          gate_init (&gates[i]);
          SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gates[i]));
          /* Three tasks, three endpoints: each starts though none of the others has ended. */
          gate_wait_reached (machine, &gates[i]);
        }
      for (uint32_t i = 0; i < 3; i++)
        gate_open (machine, &gates[i]);
      machine_end_ok (machine);
    }
  machine_free (machine);
}

/* The same with endpoints of two kinds: idle ones of the other kind are of no use. */
static void
test_idle_endpoint_of_the_right_kind (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 1,
                                                                   .queues = 2,
                                                                   .window = 16,
                                                                   .kernels = kernels });

  for (uint32_t round = 0; round < 50; round++)
    {
      struct gate gates[2];

      machine_begin (machine);
      for (uint32_t i = 0; i < 2; i++)
        {
          gate_init (&gates[i]);
          SUBMIT_TO (machine, KERNEL_GATE, round % 2, make_scalar_param (0), scalar (&gates[i]));
          gate_wait_reached (machine, &gates[i]);
        }
      for (uint32_t i = 0; i < 2; i++)
        gate_open (machine, &gates[i]);
      machine_end_ok (machine);
    }
  machine_free (machine);
}

/* Successors that several endpoints could run are not left to the one that made them ready. */
static void
test_successors_spread (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 1,
                                                                   .window = 16,
                                                                   .kernels = kernels });

  for (uint32_t round = 0; round < 50; round++)
    {
      struct gate gates[3];
      uint8_t memory[1];
      Tensor tensor = machine_external (memory, 1);

      for (uint32_t i = 0; i < 3; i++)
        gate_init (&gates[i]);
      machine_begin (machine);
      SUBMIT (machine, KERNEL_GATE, output (&tensor), scalar (&gates[2]));
      for (uint32_t i = 0; i < 2; i++)
        SUBMIT (machine, KERNEL_GATE, input (&tensor), scalar (&gates[i]));
      gate_open (machine, &gates[2]);
      gate_wait_reached (machine, &gates[0]);
      gate_wait_reached (machine, &gates[1]);
      gate_open (machine, &gates[0]);
      gate_open (machine, &gates[1]);
      machine_end_ok (machine);
    }
  machine_free (machine);
}

/* A scheduler whose carrier is in a kernel can not come: the one that can is called, whatever the
 * first had announced for its other endpoints before. */
static void
test_busy_carrier_is_not_called (gconstpointer backend)
{
  struct machine *machine;

  if (BACKEND (backend) == PTO_BACKEND_DET)
    {
      g_test_skip ("one thread: a kernel that spins would spin for ever");
      return;
    }
  machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                   .seed = 1,
                                                   .schedulers = 2,
                                                   .endpoints = 1,
                                                   .queues = 2,
                                                   .window = 16,
                                                   .kernels = kernels });
  for (uint32_t round = 0; round < 20; round++)
    {
      struct spin spin = { 0 };
      _Atomic uint32_t ran = 0;

      machine_begin (machine);
      SUBMIT_TO (machine, KERNEL_SPIN, 0, scalar (&spin));
      /* Carriers other than this one: here it would spin, too. */
      while (atomic_load (&spin.started) == 0)
        sched_yield ();
      /* In turn, so that each scheduler is the next one once. */
      for (uint32_t i = 1; i <= 3; i++)
        {
          SUBMIT_TO (machine, KERNEL_COUNT, 1, make_scalar_param (0), scalar (&ran));
          while (atomic_load (&ran) < i && atomic_load (&spin.in_vain) == 0)
            pto_exec_help (machine->exec);
        }
      SUBMIT_TO (machine, KERNEL_UNSPIN, 1, scalar (&spin));
      machine_end_ok (machine);
      g_assert_cmpuint (spin.in_vain, ==, 0);
    }
  machine_free (machine);
}

/* par: a task makes others ready, and a long one of them is run right after it. The scheduler that
 * sleeps is told of the rest before, not after. */
static void
test_successors_of_a_long_one (void)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 16,
                                                                   .kernels = kernels });

  for (uint32_t round = 0; round < 20; round++)
    {
      struct spin spin = { 0 };
      uint8_t memory[1];
      Tensor tensor = machine_external (memory, 1);

      machine_begin (machine);
      SUBMIT (machine, KERNEL_AWAIT_HUNGER, output (&tensor), scalar (&spin));
      SUBMIT (machine, KERNEL_UNSPIN, input (&tensor), scalar (&spin));
      /* The last one is the first to be made ready. */
      SUBMIT (machine, KERNEL_SPIN, input (&tensor), scalar (&spin));
      machine_end_ok (machine);
      g_assert_cmpuint (spin.in_vain, ==, 0);
    }
  machine_free (machine);
}

/* par: as long as nobody knows how long tasks take, a scheduler takes one at a time: the others may
 * have to go on meanwhile. */
static void
test_first_tasks_one_at_a_time (void)
{
  for (uint32_t round = 0; round < 20; round++)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                                       .seed = 1,
                                                                       .schedulers = 2,
                                                                       .endpoints = 4,
                                                                       .window = 16,
                                                                       .kernels = kernels });
      struct spin spin = { 0 };
      uint8_t memory[1];
      Tensor tensor = machine_external (memory, 1);

      machine_begin (machine);
      g_assert_cmpuint (machine->engine->task_ns, ==, 0);
      SUBMIT (machine, KERNEL_AWAIT_HUNGER, output (&tensor), scalar (&spin));
      /* The first one goes on at once, the others stand in the queue in this order. */
      SUBMIT (machine, KERNEL_UNSPIN, input (&tensor), scalar (&spin));
      SUBMIT (machine, KERNEL_SPIN, input (&tensor), scalar (&spin));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      machine_end_ok (machine);
      g_assert_cmpuint (spin.in_vain, ==, 0);
      machine_free (machine);
    }
}

/* par: who submits leaves everything to a scheduler that looks for work. That one begins with what
 * may take long, and sees to the rest first. */
static void
test_rest_of_a_burst (void)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 4,
                                                                   .window = 16,
                                                                   .kernels = kernels });

  for (uint32_t round = 0; round < 20; round++)
    {
      struct spin spin = { 0 };

      machine_begin (machine);
      while (atomic_load (&machine->engine->hungry[0]) != 3)
        pto_yield (machine->exec);
      atomic_store (&machine->engine->task_ns, 1000000000);
      /* As if one were looking. */
      atomic_fetch_add (&machine->engine->lingering, 1);
      SUBMIT (machine, KERNEL_SPIN, scalar (&spin));
      SUBMIT (machine, KERNEL_UNSPIN, scalar (&spin));
      atomic_fetch_sub (&machine->engine->lingering, 1);
      atomic_fetch_and (&machine->engine->hungry[0], ~UINT64_C (1));
      pto_engine_wake (machine->engine, 0);
      machine_end_ok (machine);
      g_assert_cmpuint (spin.in_vain, ==, 0);
    }
  machine_free (machine);
}

static void
add_tests (void)
{
  machine_add ("engine-races", "million-races", test_million_races);
  machine_add ("engine-races", "two-producers", test_two_producers);
  machine_add ("engine-races", "many-runs", test_many_runs);
  machine_add ("engine-races", "idle-scheduler-takes-over", test_idle_scheduler_takes_over);
  machine_add ("engine-races", "idle-endpoint-of-the-right-kind",
               test_idle_endpoint_of_the_right_kind);
  machine_add ("engine-races", "busy-carrier-is-not-called", test_busy_carrier_is_not_called);
  machine_add ("engine-races", "successors-spread", test_successors_spread);
  g_test_add_func ("/pto/engine-races/successors-of-a-long-one", test_successors_of_a_long_one);
  g_test_add_func ("/pto/engine-races/first-tasks-one-at-a-time", test_first_tasks_one_at_a_time);
  g_test_add_func ("/pto/engine-races/rest-of-a-burst", test_rest_of_a_burst);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
