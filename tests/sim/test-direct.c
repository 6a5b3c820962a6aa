/* test-direct.c: does a chip keep its word when the orchestration's thread runs each task as it is
 * submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/completion.h"
#include "../../sim/chip-private.h"

#include <sched.h>
#include <stdatomic.h>

static _Atomic uint32_t runs;
static _Atomic uint32_t cancel;

/* args: tensor, value. Not commutative. */
static void
kernel_step (int64_t *args)
{
  uint64_t *word = sim_data (args, 0);

  *word = *word * 31 + (uint64_t) args[1];
  atomic_fetch_add (&runs, 1);
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = (volatile int *) (uintptr_t) 8;

  *nowhere = 1;
}

static void
kernel_cancel (int64_t *args)
{
  atomic_store (&cancel, 1);
}

static void
kernel_nothing (int64_t *args)
{
}

enum
{
  STEP,
  CRASH,
  CANCEL,
  NOTHING
};

static const struct pto_kernel kernels[] = {
  [STEP] = { "step", kernel_step, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [CANCEL] = { "cancel", kernel_cancel, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [NOTHING] = { "nothing", kernel_nothing, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct work
{
  struct pto_chip *chip;
  uint64_t word;
  uint32_t steps;
};

/* From here on tasks are run as they are submitted, however long they take. Submits some. */
static void
go_direct (PTO2Runtime *rt, struct pto_chip *chip)
{
  struct pto_engine *engine = &chip->machine.engine;
  uint64_t all = (UINT64_C (1) << chip->n_schedulers) - 1;

  engine->direct_limit = UINT64_MAX;
  while (!engine->direct)
    {
      /* None of them is in the hands of another thread then. */
      while (pto_engine_completed (engine) < engine->submitted
             || atomic_load (&engine->lingering) > 0
             || (atomic_load (&engine->hungry[AIV]) & all) != all)
        if (!pto_exec_help (chip->machine.engine.exec))
          sched_yield ();
      engine->resume = true;
      engine->unswept = UINT32_MAX - 1;
      PTO2_SCOPE (rt)
      {
        pto2_rt_submit_task (rt, NOTHING, AIV, NULL, 0);
      }
      g_assert_false (pto_engine_has_failed (engine));
    }
}

static void
step (PTO2Runtime *rt, struct work *work, int kernel, uint64_t value)
{
  static const uint64_t one[] = { 1 };
  PTOParam params[]
      = { make_inout_param (make_tensor_external (&work->word, one, 1, PTO_DTYPE_UINT64)),
          make_scalar_param (value) };

  pto2_rt_submit_task (rt, kernel, AIV, params, 2);
}

/* --- schedulers come and go --- */

static int
steps_directly (PTO2Runtime *rt, void *data)
{
  struct work *work = data;

  go_direct (rt, work->chip);
  for (uint32_t i = 0; i < work->steps; i++)
    step (rt, work, STEP, i);
  g_assert_true (work->chip->machine.engine.direct);
  return 0;
}

static int
steps (PTO2Runtime *rt, void *data)
{
  struct work *work = data;

  work->chip->machine.engine.direct_limit = UINT64_MAX;
  for (uint32_t i = 0; i < work->steps; i++)
    step (rt, work, STEP, i);
  return 0;
}

static uint64_t
after_steps (uint32_t n)
{
  uint64_t word = 0;

  for (uint32_t i = 0; i < n; i++)
    word = word * 31 + i;
  return word;
}

/* A run begins as the one before it ended, but the scheduler that ran its tasks may be no more. */
static void
test_fewer_schedulers (enum pto_backend unused)
{
  struct pto_chip *chip = sim_chip (PTO_BACKEND_PAR, NULL);
  struct pto_run_config wide = { .aicpu_threads = 5 };
  struct pto_run_config narrow = { .block_dim = 1, .aicpu_threads = 2 };

  for (uint32_t round = 0; round < 10; round++)
    {
      struct work first = { .chip = chip, .steps = 20 };
      struct work second = { .chip = chip, .steps = 20 };
      struct pto_report report = { 0 };

      g_assert_cmpint (pto_chip_run (chip, &program, &wide, steps_directly, &first, NULL, &report),
                       ==, PTO_OK);
      g_assert_cmpuint (first.word, ==, after_steps (20));
      g_assert_cmpuint (chip->n_schedulers, ==, 4);
      g_assert_true (chip->machine.engine.resume);
      /* It may have been any of the four. */
      chip->machine.engine.carry = 2 + round % 2;
      g_assert_cmpint (pto_chip_run (chip, &program, &narrow, steps, &second, NULL, &report), ==,
                       PTO_OK);
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (chip->n_schedulers, ==, 1);
      /* The only one, or, if another thread had it in hand, the one after that. */
      g_assert_cmpuint (chip->machine.engine.carry, <=, 1);
      g_assert_cmpuint (second.word, ==, after_steps (20));
    }
  pto_chip_free (chip);
}

/* --- failures --- */

static int
crash_in_scopes (PTO2Runtime *rt, void *data)
{
  struct work *work = data;

  go_direct (rt, work->chip);
  PTO2_SCOPE (rt)
  {
    step (rt, work, STEP, 1);
    PTO2_SCOPE (rt)
    {
      step (rt, work, STEP, 2);
      step (rt, work, STEP, 3);
      step (rt, work, CRASH, 4);
      step (rt, work, STEP, 5);
    }
    step (rt, work, STEP, 6);
  }
  step (rt, work, STEP, 7);
  return 0;
}

/* The message is of the task that crashed, and nothing that needed it is run. */
static void
test_crash (enum pto_backend unused)
{
  struct pto_chip *chip = sim_chip (PTO_BACKEND_PAR, NULL);

  for (uint32_t round = 0; round < 10; round++)
    {
      struct work work = { .chip = chip };
      struct pto_run_config config = { 0 };
      struct pto_report report = { 0 };
      struct pto_run_stats stats;

      atomic_store (&runs, 0);
      g_assert_cmpint (
          pto_chip_run (chip, &program, &config, crash_in_scopes, &work, &stats, &report), ==,
          PTO_STATUS_KERNEL_FAULT);
      sim_assert_says (&report, PTO_STATUS_KERNEL_FAULT, "task 2 of ring 2 (crash) on core AIV",
                       "signal 11", NULL);
      g_assert_cmpuint (atomic_load (&runs), ==, 3);
      g_assert_cmpuint (work.word, ==, (1 * 31 + 2) * 31 + 3);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      g_assert_cmpuint (stats.failed, ==, 1);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* --- cancellation --- */

static bool
is_cancelled (void *data)
{
  return atomic_load (&cancel) != 0;
}

static int
cancel_and_go_on (PTO2Runtime *rt, void *data)
{
  struct work *work = data;

  go_direct (rt, work->chip);
  pto2_rt_submit_task (rt, CANCEL, AIV, NULL, 0);
  g_assert_cmpuint (atomic_load (&cancel), ==, 1);
  for (uint32_t i = 0; i < 1000; i++)
    PTO2_SCOPE (rt)
    {
      step (rt, work, STEP, i);
    }
  return 0;
}

/* A kernel runs within the submit when the cancel comes: no more tasks than until the next look. */
static void
test_cancel (enum pto_backend unused)
{
  struct pto_chip *chip = sim_chip (PTO_BACKEND_PAR, NULL);

  for (uint32_t round = 0; round < 10; round++)
    {
      struct work work = { .chip = chip };
      struct pto_run_config config = { .cancelled = is_cancelled };
      struct pto_report report = { 0 };

      atomic_store (&runs, 0);
      atomic_store (&cancel, 0);
      g_assert_cmpint (
          pto_chip_run (chip, &program, &config, cancel_and_go_on, &work, NULL, &report), ==,
          PTO_STATUS_CANCELLED);
      sim_assert_says (&report, PTO_STATUS_CANCELLED, "the run was cancelled", NULL);
      g_assert_cmpuint (atomic_load (&runs), <, 64);
      g_assert_cmpuint (work.word, ==, after_steps (atomic_load (&runs)));
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add_once ("direct/fewer-schedulers", test_fewer_schedulers);
  sim_add_once ("direct/crash", test_crash);
  sim_add_once ("direct/cancel", test_cancel);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
