/* test-priorities.c: do tasks of a chip that are ready run by their priorities, as an orchestration
 * says them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/graph-plan.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define N 24u

enum
{
  NOTE, /* its number is args[0] */
  HOLD, /* until all is submitted */
};

static uint32_t order[N];
static _Atomic uint32_t n_order;
/* On det the orchestrator gets on when this one's time has come: it needs not be waited for. */
static _Atomic bool may_end;
static _Atomic bool holds;

static void
kernel_note (int64_t *args)
{
  order[atomic_fetch_add (&n_order, 1)] = (uint32_t) args[0];
}

static void
kernel_hold (int64_t *args)
{
  atomic_store (&holds, true);
  while (!atomic_load (&may_end))
    sched_yield ();
}

/* The core is taken: what is submitted from now on waits. */
static void
submit_hold (PTO2Runtime *rt)
{
  pto2_rt_submit_task (rt, HOLD, AIC, NULL, 0);
  while (!atomic_load (&holds))
    sched_yield ();
}

static const struct pto_kernel kernels[] = {
  [NOTE] = { "note", kernel_note, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [HOLD] = { "hold", kernel_hold, PTO_CORE_TYPE_AIC, { .base_ns = 1e6 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* One cube core. */
static struct pto_chip *
chip_of (enum pto_backend backend)
{
  atomic_store (&n_order, 0);
  atomic_store (&may_end, backend == PTO_BACKEND_DET);
  atomic_store (&holds, backend == PTO_BACKEND_DET);
  return sim_chip (backend, "clusters=1 aicpu-threads=2");
}

/* As another version of the header might know it: so many bytes of it. */
struct foreign_submit
{
  PTO2Submit known;
  uint64_t more[2];
};

static PTO2TaskId
submit (PTO2Runtime *rt, uint32_t number, int32_t priority)
{
  PTOParam param = make_scalar_param (number);

  return pto2_rt_submit_task_with_priority (rt, NOTE, AIC, &param, 1, priority);
}

static int
submit_notes (PTO2Runtime *rt, void *data)
{
  for (uint32_t i = 0; i < N; i++)
    if (submit (rt, i, (int32_t) (i * 5 / 2 % (PTO_MAX_PRIORITY + 1))) == PTO2_TASK_NONE)
      return 1;
  return 0;
}

static int
submit_all (PTO2Runtime *rt, void *data)
{
  int status;

  submit_hold (rt);
  status = submit_notes (rt, data);
  atomic_store (&may_end, true);
  return status;
}

static void
test_order (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend);
  struct pto_run_stats stats;
  uint32_t n = 0;

  sim_run (chip, &program, submit_all, NULL, &stats);
  g_assert_cmpuint (stats.tasks, ==, N + 1);
  g_assert_cmpuint (n_order, ==, N);
  for (int32_t p = PTO_MAX_PRIORITY; p >= 0; p--)
    for (uint32_t i = 0; i < N; i++)
      if ((int32_t) (i * 5 / 2 % (PTO_MAX_PRIORITY + 1)) == p)
        g_assert_cmpuint (order[n++], ==, i);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static int
launch_all (PTO2Runtime *rt, void *graph)
{
  bool ok;

  submit_hold (rt);
  ok = pto_chip_launch (rt, graph, NULL);
  atomic_store (&may_end, true);
  return ok ? 0 : 1;
}

/* A graph keeps them, also where its launch is the first run with some. */
static void
test_order_launched (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend);
  struct pto_plan *graph = pto_plan_new ();
  struct pto_run_config config = { .capture = graph };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  uint32_t n = 0;

  pto_chip_run (chip, &program, &config, submit_notes, NULL, &stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (graph->n_tasks, ==, N);
  g_assert_cmpuint (n_order, ==, 0);
  pto_chip_free (chip);
  chip = chip_of (backend);
  sim_run (chip, &program, launch_all, graph, &stats);
  g_assert_cmpuint (n_order, ==, N);
  for (int32_t p = PTO_MAX_PRIORITY; p >= 0; p--)
    for (uint32_t i = 0; i < N; i++)
      if ((int32_t) (i * 5 / 2 % (PTO_MAX_PRIORITY + 1)) == p)
        g_assert_cmpuint (order[n++], ==, i);
  sim_assert_well (chip);
  pto_plan_free (graph);
  pto_chip_free (chip);
}

/* A task of blocks goes first with all of them, though it goes back to its queue after each. */
static int
submit_blocks (PTO2Runtime *rt, void *data)
{
  PTOParam number = make_scalar_param (0);
  PTOParam block = make_scalar_param (1);
  PTO2Submit blocks = pto2_make_submit (NOTE, AIC, &block, 1);

  submit_hold (rt);
  for (uint32_t i = 0; i < 4; i++)
    pto2_rt_submit_task_with_priority (rt, NOTE, AIC, &number, 1, 1);
  blocks.block_dim = 8;
  blocks.priority = 2;
  if (pto2_rt_submit (rt, &blocks) == PTO2_TASK_NONE)
    return 1;
  atomic_store (&may_end, true);
  return 0;
}

static void
test_blocks (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend);

  sim_run (chip, &program, submit_blocks, NULL, NULL);
  g_assert_cmpuint (n_order, ==, 12);
  for (uint32_t i = 0; i < 12; i++)
    g_assert_cmpuint (order[i], ==, i < 8);
  pto_chip_free (chip);
}

/* Who was built before there were priorities has none, whatever lies behind what it knows. */
static int
submit_as_others (PTO2Runtime *rt, void *data)
{
  static const size_t sizes[]
      = { offsetof (PTO2Submit, priority), sizeof (PTO2Submit), sizeof (struct foreign_submit) };

  submit_hold (rt);
  for (uint32_t i = 0; i < 3; i++)
    {
      PTOParam param = make_scalar_param (i);
      struct foreign_submit foreign = { .known = { .size = sizes[i],
                                                   .kernel_id = NOTE,
                                                   .worker_type = AIC,
                                                   .params = &param,
                                                   .n_params = 1,
                                                   .priority = i == 0 ? 99 : 2 } };

      if (rt->ops->submit (rt, &foreign.known) == PTO2_TASK_NONE)
        return 1;
    }
  atomic_store (&may_end, true);
  return 0;
}

static void
test_sizes (enum pto_backend backend)
{
  static const uint32_t expected[] = { 1, 2, 0 };
  struct pto_chip *chip = chip_of (backend);

  sim_run (chip, &program, submit_as_others, NULL, NULL);
  g_assert_cmpuint (n_order, ==, 3);
  for (uint32_t i = 0; i < 3; i++)
    g_assert_cmpuint (order[i], ==, expected[i]);
  pto_chip_free (chip);
}

/* --- refusals --- */

static int
submit_with_priority (PTO2Runtime *rt, void *data)
{
  return submit (rt, 0, *(int32_t *) data) != PTO2_TASK_NONE;
}

static int
submit_nothing (PTO2Runtime *rt, void *data)
{
  PTO2Submit nothing
      = { .size = sizeof nothing, .kernel_id = PTO2_KERNEL_NONE, .priority = *(int32_t *) data };

  return rt->ops->submit (rt, &nothing) != PTO2_TASK_NONE;
}

static int
submit_unknown (PTO2Runtime *rt, void *data)
{
  struct foreign_submit foreign = { .known = { .kernel_id = NOTE, .worker_type = AIC } };

  foreign.more[1] = 1;
  foreign.known.size = *(int32_t *) data == 0 ? sizeof foreign : sizeof (size_t);
  return rt->ops->submit (rt, &foreign.known) != PTO2_TASK_NONE;
}

static void
test_refusals (enum pto_backend backend)
{
  struct pto_chip *chip = chip_of (backend);
  int32_t number = PTO_MAX_PRIORITY + 1;

  sim_run_fails (chip, &program, submit_with_priority, &number, PTO_STATUS_INVALID_ARGS,
                 "task 0 (note), submitted at test-priorities.c:", "there is no priority 4", NULL);
  number = -1;
  sim_run_fails (chip, &program, submit_with_priority, &number, PTO_STATUS_INVALID_ARGS,
                 "task 0 (note)", "there is no priority -1", NULL);
  number = 1;
  sim_run_fails (chip, &program, submit_nothing, &number, PTO_STATUS_INVALID_ARGS, "task 0",
                 "runs nothing has no priority", NULL);
  number = 0;
  sim_run_fails (chip, &program, submit_unknown, &number, PTO_STATUS_INVALID_ARGS, "PTO2Submit",
                 "built for another version", NULL);
  number = 1;
  sim_run_fails (chip, &program, submit_unknown, &number, PTO_STATUS_INVALID_ARGS, "PTO2Submit",
                 "has 8 bytes", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("priorities/order", test_order);
  sim_add ("priorities/order-launched", test_order_launched);
  sim_add ("priorities/blocks", test_blocks);
  sim_add ("priorities/sizes", test_sizes);
  sim_add ("priorities/refusals", test_refusals);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
