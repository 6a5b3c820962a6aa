/* test-engine-wake.c: is somebody called for everything that is left to do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks that end only when others run beside them, which only another scheduler can see to; and
 * waits that only a cancel ends. Whoever is forgotten here hangs, and is told so: det proves it,
 * elsewhere kernels give up after a long time.
 */
#include "engine-test.h"

#include <sched.h>

#define PATIENCE_NS UINT64_C (20000000000)

static _Atomic uint32_t met, given_up;

/* Waits for a second one; the thread that runs it is free meanwhile. */
static void
kernel_meet (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct gate *gate = (struct gate *) (uintptr_t) args[slot->payload->n_args - 1];

  /* Only the first one parks. */
  if (atomic_fetch_add (&gate->reached, 1) == 1)
    gate_open (machine, gate);
  else
    while (pto_word_get (&gate->open) == 0)
      pto_park (machine->exec, &gate->open, 0, PTO_NEVER);
  atomic_fetch_add (&met, 1);
}

/* Waits for a second one, and keeps the thread. */
static void
kernel_meet_busy (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct gate *gate = (struct gate *) (uintptr_t) args[slot->payload->n_args - 1];
  uint64_t end = pto_now (machine->exec) + PATIENCE_NS;

  atomic_fetch_add (&gate->reached, 1);
  while (atomic_load (&gate->reached) < 2)
    {
      if (pto_now (machine->exec) > end)
        {
          atomic_fetch_add (&given_up, 1);
          return;
        }
      sched_yield ();
    }
  atomic_fetch_add (&met, 1);
}

enum
{
  KERNEL_MEET = KERNEL_OWN,
  KERNEL_MEET_BUSY
};

static const machine_kernel kernels[] = { kernel_meet, kernel_meet_busy };

static struct machine_config
two_schedulers (enum pto_backend backend)
{
  return (struct machine_config){
    .backend = backend, .seed = 1, .schedulers = 2, .endpoints = 1, .kernels = kernels
  };
}

/* Two consumers of one producer: its scheduler has an endpoint for one of them. */
static void
leftovers (enum pto_backend backend, uint32_t kernel)
{
  struct machine_config config = two_schedulers (backend);
  struct machine *machine = machine_new (&config);
  static uint8_t memory[8];

  atomic_store (&given_up, 0);
  for (uint32_t round = 0; round < 50; round++)
    {
      Tensor tensor = machine_external (memory, sizeof memory);
      struct gate first, both;

      gate_init (&first);
      gate_init (&both);
      atomic_store (&met, 0);
      machine_begin (machine);
      SUBMIT (machine, KERNEL_GATE, existing (&tensor), scalar (&first));
      SUBMIT (machine, kernel, input (&tensor), scalar (&both));
      SUBMIT (machine, kernel, input (&tensor), scalar (&both));
      gate_wait_reached (machine, &first);
      gate_open (machine, &first);
      machine_end_ok (machine);
      g_assert_cmpuint (atomic_load (&given_up), ==, 0);
      g_assert_cmpuint (atomic_load (&met), ==, 2);
    }
  machine_free (machine);
}

static void
test_leftovers (gconstpointer backend)
{
  leftovers (BACKEND (backend), KERNEL_MEET);
}

/* det has one thread. */
static void
test_leftovers_beside_busy_ones (void)
{
  leftovers (PTO_BACKEND_PAR, KERNEL_MEET_BUSY);
  leftovers (PTO_BACKEND_THREADS, KERNEL_MEET_BUSY);
}

static void
add_tests (void)
{
  machine_add ("engine-wake", "leftovers", test_leftovers);
  g_test_add_func ("/pto/engine-wake/leftovers-beside-busy-ones", test_leftovers_beside_busy_ones);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
