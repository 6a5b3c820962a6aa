/* test-shelf.c: are tasks that were taken together with one that takes long taken back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The one that takes long waits for the others: it does not end as long as they stand behind it.
 */
#include "sim-test.h"

#include "../../pto/core/completion.h"
#include "../../sim/chip-private.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define ROUNDS 40u
#define TOGETHER 8u
#define QUICK_ONES 300u
#define PATIENCE_NS 10000000000u

enum
{
  SHUT,
  HELD,
  OPEN
};

static _Atomic uint32_t n_quick;
static _Atomic uint32_t n_gave_up;
static _Atomic uint32_t gate; /* SHUT, HELD: its task runs, OPEN */

static uint64_t
now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static void
kernel_quick (int64_t *args)
{
  atomic_fetch_add (&n_quick, 1);
}

static void
kernel_gate (int64_t *args)
{
  atomic_store (&gate, HELD);
  while (atomic_load (&gate) == HELD)
    sched_yield ();
}

/* args: the word that it comes after, how many quick ones there are to be. */
static void
kernel_long (int64_t *args)
{
  uint64_t end = now_ns () + PATIENCE_NS;

  while (atomic_load (&n_quick) < (uint32_t) args[1])
    {
      if (now_ns () > end)
        {
          atomic_fetch_add (&n_gave_up, 1);
          return;
        }
      nanosleep (&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
}

enum
{
  QUICK,
  GATE,
  LONG
};

static const struct pto_kernel kernels[] = {
  [QUICK] = { "quick", kernel_quick, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [GATE] = { "gate", kernel_gate, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [LONG] = { "long", kernel_long, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct work
{
  struct pto_chip *chip;
  uint64_t word;
};

/* Nobody is about to say what tasks took, either. */
static void
await_all (struct pto_chip *chip)
{
  struct pto_engine *engine = &chip->machine.engine;
  uint64_t all = (UINT64_C (1) << chip->n_schedulers) - 1;

  while (pto_engine_completed (engine) < engine->submitted
         || (atomic_load (&engine->hungry[AIV]) & all) != all)
    if (!pto_exec_help (chip->machine.engine.exec))
      sched_yield ();
}

/* In each round all become ready at once, the one that takes long at another place among them. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 };
  struct work *work = data;
  struct pto_engine *engine = &work->chip->machine.engine;
  PTOParam in[2];
  PTOParam out[]
      = { make_inout_param (make_tensor_external (&work->word, one, 1, PTO_DTYPE_UINT64)) };
  uint32_t n = 0;

  engine->direct_limit = 0;
  in[0] = make_input_param (make_tensor_external (&work->word, one, 1, PTO_DTYPE_UINT64));
  for (uint32_t round = 0; round < ROUNDS; round++)
    {
      for (uint32_t i = 0; i < QUICK_ONES; i++, n++)
        pto2_rt_submit_task (rt, QUICK, AIV, NULL, 0);
      await_all (work->chip);
      /* What is submitted now is run by others. */
      engine->direct_limit = 0;
      engine->unshared = engine->indirect = 0;
      atomic_store (&gate, SHUT);
      /* Tasks are known to be short, and then taken several at a time. */
      atomic_store (&engine->task_ns, 1);
      pto2_rt_submit_task (rt, GATE, AIV, out, 1);
      while (atomic_load (&gate) != HELD)
        sched_yield ();
      for (uint32_t i = 0; i < TOGETHER; i++)
        {
          in[1] = make_scalar_param (n + TOGETHER - 1);
          pto2_rt_submit_task (rt, i == round % TOGETHER ? LONG : QUICK, AIV, in,
                               i == round % TOGETHER ? 2 : 1);
        }
      n += TOGETHER - 1;
      atomic_store (&gate, OPEN);
      await_all (work->chip);
    }
  return 0;
}

static void
test_long_one (enum pto_backend backend)
{
  struct work work = { .chip = sim_chip (backend, NULL) };

  /* One thread runs one task at a time. */
  if (backend == PTO_BACKEND_DET || (backend == PTO_BACKEND_PAR && g_get_num_processors () < 2))
    {
      g_test_skip ("there is one thread");
      pto_chip_free (work.chip);
      return;
    }
  atomic_store (&n_quick, 0);
  atomic_store (&n_gave_up, 0);
  sim_run (work.chip, &program, orchestrate, &work, NULL);
  g_assert_cmpuint (atomic_load (&n_gave_up), ==, 0);
  g_assert_cmpuint (atomic_load (&n_quick), ==, ROUNDS * (QUICK_ONES + TOGETHER - 1));
  pto_chip_free (work.chip);
}

static void
add (void)
{
  sim_add ("shelf/long-one", test_long_one);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
