/* test-members.c: do the members of a task get the cores of one cluster, or several at once?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Members of one task meet: none of their kernels returns before all have begun.
 */
#include "sim-test.h"

#include "../../pto/core/submit.h"
#include "../../pto/exec/exec-private.h"
#include "../../sim/chip-private.h"

#define CLUSTERS 6u
#define CORES (3 * CLUSTERS)
#define MEETINGS 200u

struct meeting
{
  struct pto_chip *chip;
  uint32_t n;
  _Atomic uint32_t arrived;
  _Atomic uint32_t gone;
  _Atomic uint32_t cores; /* a bit each */
  _Atomic uint32_t clusters;
  _Atomic uint32_t cubes;
  _Atomic uint32_t vectors;
  bool fails; /* the run, as soon as one of them has begun */
  struct pto_word open[CORES];
};

static void
meet (int64_t *args, _Atomic uint32_t *of_type, struct meeting *meeting)
{
  const struct pto_core *core = pto_thread_self ()->current->arg;
  struct pto_word *open = &meeting->open[core->endpoint.member];
  struct pto_exec *exec = meeting->chip->machine.engine.exec;

  if (meeting->fails)
    pto_engine_fail (&meeting->chip->machine.engine, PTO_STATUS_EXPLICIT, "enough");
  atomic_fetch_add (of_type, 1);
  atomic_fetch_or (&meeting->cores, 1u << core->endpoint.number);
  atomic_fetch_or (&meeting->clusters, 1u << core->cluster);
  if (atomic_fetch_add (&meeting->arrived, 1) + 1 == meeting->n)
    for (uint32_t i = 0; i < meeting->n; i++)
      pto_word_set (exec, &meeting->open[i], 1);
  while (pto_word_get (open) == 0)
    pto_park (exec, open, 0, PTO_NEVER);
  atomic_fetch_add (&meeting->gone, 1);
}

static void
kernel_cube (int64_t *args)
{
  struct meeting *meeting = (struct meeting *) (uintptr_t) args[0];

  meet (args, &meeting->cubes, meeting);
}

static void
kernel_vector (int64_t *args)
{
  struct meeting *meeting = (struct meeting *) (uintptr_t) args[0];

  meet (args, &meeting->vectors, meeting);
}

static _Atomic uint32_t singles;

static void
kernel_single (int64_t *args)
{
  atomic_fetch_add (&singles, 1);
}

enum
{
  CUBE,
  VECTOR,
  SINGLE
};

static const struct pto_kernel kernels[] = {
  [CUBE] = { "cube", kernel_cube, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [VECTOR] = { "vector", kernel_vector, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SINGLE] = { "single", kernel_single, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct plan
{
  struct pto_chip *chip;
  bool together;
  bool fails;
  const uint32_t (*shapes)[2]; /* AICs and AIVs */
  uint32_t n_shapes;
  uint32_t n;
  struct meeting meetings[MEETINGS];
};

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct plan *plan = data;

  singles = 0;
  for (uint32_t i = 0; i < plan->n; i++)
    {
      const uint32_t *shape = plan->shapes[i % plan->n_shapes];
      struct meeting *meeting = &plan->meetings[i];
      PTOParam param = make_scalar_param ((uint64_t) (uintptr_t) meeting);
      struct pto_need needs[CORES + 1];

      memset (meeting, 0, sizeof *meeting);
      meeting->chip = plan->chip;
      meeting->fails = plan->fails;
      meeting->n = shape[0] + shape[1];
      for (uint32_t m = 0; m < meeting->n; m++)
        needs[m] = m < shape[0] ? (struct pto_need){ PTO_CORE_TYPE_AIC, PTO_PLACE_ANY, CUBE }
                                : (struct pto_need){ PTO_CORE_TYPE_AIV, PTO_PLACE_ANY, VECTOR };
      for (uint32_t m = 0; m < CORES; m++)
        pto_word_init (&meeting->open[m], 0, false);
      PTO2_SCOPE (rt)
      {
        pto_engine_submit (
            &plan->chip->machine.engine,
            &(struct pto_submit){ .params = &param,
                                  .n_params = 1,
                                  .wish = &(struct pto_wish){ .together = plan->together,
                                                              .cohort = PTO_COHORT_NONE,
                                                              .n_members = meeting->n,
                                                              .members = needs } });
        pto2_rt_submit_task (rt, SINGLE, AIV, NULL, 0);
      }
    }
  return 0;
}

static struct plan *
make_plan (enum pto_backend backend, bool together, const uint32_t (*shapes)[2], uint32_t n_shapes,
           uint32_t n)
{
  struct plan *plan = g_new0 (struct plan, 1);

  plan->chip = sim_chip (backend, "clusters=6 task-window=64");
  plan->together = together;
  plan->shapes = shapes;
  plan->n_shapes = n_shapes;
  plan->n = n;
  return plan;
}

static void
plan_free (struct plan *plan)
{
  pto_chip_free (plan->chip);
  g_free (plan);
}

/* All have met, each shape on the cores that it names. */
static void
check (const struct plan *plan)
{
  g_assert_cmpuint (singles, ==, plan->n);
  for (uint32_t i = 0; i < plan->n; i++)
    {
      const uint32_t *shape = plan->shapes[i % plan->n_shapes];
      const struct meeting *meeting = &plan->meetings[i];

      g_assert_cmpuint (meeting->gone, ==, shape[0] + shape[1]);
      g_assert_cmpuint (meeting->cubes, ==, shape[0]);
      g_assert_cmpuint (meeting->vectors, ==, shape[1]);
      g_assert_cmpint (__builtin_popcount (meeting->cores), ==, meeting->n);
      if (plan->together)
        g_assert_cmpint (__builtin_popcount (meeting->clusters), ==, 1);
    }
}

static void
test_mixed_tasks (enum pto_backend backend)
{
  static const uint32_t shapes[][2] = { { 1, 0 }, { 0, 1 }, { 0, 2 }, { 1, 1 }, { 1, 2 } };
  struct plan *plan = make_plan (backend, true, shapes, G_N_ELEMENTS (shapes), MEETINGS);
  struct pto_run_stats stats;

  for (uint32_t round = 0; round < 3; round++)
    {
      sim_run (plan->chip, &program, orchestrate, plan, &stats);
      check (plan);
      g_assert_cmpuint (stats.tasks, ==, 2 * MEETINGS);
      g_assert_cmpuint (stats.completed, ==, 2 * MEETINGS);
    }
  plan_free (plan);
}

/* More than any of the three schedulers has, up to all cores of the chip. */
static void
test_all_at_once (enum pto_backend backend)
{
  static const uint32_t shapes[][2] = { { 6, 12 }, { 0, 12 }, { 6, 0 }, { 3, 5 }, { 5, 7 } };
  struct plan *plan = make_plan (backend, false, shapes, G_N_ELEMENTS (shapes), MEETINGS);

  for (uint32_t round = 0; round < 3; round++)
    {
      sim_run (plan->chip, &program, orchestrate, plan, NULL);
      check (plan);
    }
  plan_free (plan);
}

/* A machine of another size is another one for the next run. */
static void
test_other_geometry (enum pto_backend backend)
{
  static const uint32_t small[][2] = { { 2, 4 } };
  struct plan *plan = make_plan (backend, false, small, 1, 20);
  struct pto_report report = { 0 };

  for (uint32_t i = 0; i < 3; i++)
    {
      struct pto_run_config config = { .block_dim = i == 1 ? 2 : 0 };

      g_assert_cmpint (
          pto_chip_run (plan->chip, &program, &config, orchestrate, plan, NULL, &report), ==,
          PTO_OK);
      check (plan);
    }
  plan_free (plan);
}

static void
test_never (enum pto_backend backend)
{
  static const uint32_t wide[][2] = { { 1, 3 } };
  static const uint32_t many[][2] = { { 7, 0 } };
  struct plan *plan = make_plan (backend, true, wide, 1, 1);

  sim_run_fails (plan->chip, &program, orchestrate, plan, PTO_STATUS_INVALID_ARGS, "task 0 (cube)",
                 "no cluster has 1 AIC and 3 AIV", "choose a platform with larger clusters", NULL);
  plan->together = false;
  plan->shapes = many;
  sim_run_fails (plan->chip, &program, orchestrate, plan, PTO_STATUS_SYNC_START, "task 0 (cube)",
                 "7 members need AIC at once; this machine has 6", "set clusters to more", NULL);
  plan_free (plan);
}

/* The run fails when one of them has begun: so have the others, or nobody would come for it. */
static void
test_run_fails (enum pto_backend backend)
{
  static const uint32_t shapes[][2] = { { 6, 12 }, { 3, 5 } };
  struct plan *plan = make_plan (backend, false, shapes, G_N_ELEMENTS (shapes), 4);

  plan->fails = true;
  for (uint32_t round = 0; round < 10; round++)
    {
      uint32_t n_met = 0;

      sim_run_fails (plan->chip, &program, orchestrate, plan, PTO_STATUS_EXPLICIT, "enough", NULL);
      for (uint32_t i = 0; i < plan->n; i++)
        if (plan->meetings[i].arrived > 0)
          {
            g_assert_cmpuint (plan->meetings[i].gone, ==, plan->meetings[i].n);
            n_met++;
          }
      g_assert_cmpuint (n_met, >, 0);
    }
  plan_free (plan);
}

struct seen
{
  uint32_t members; /* a bit each */
  uint64_t cores;
  uint32_t n;
};

static void
note_member (const struct pto_trace_record *record, void *data)
{
  struct seen *seen = data;

  if (PTO_TASK_LOCAL (record->task) % 2 != 0)
    return;
  if (record->kind != PTO_TRACE_RUN)
    seen->members |= 1u << (record->extra >> 32);
  seen->cores |= UINT64_C (1) << record->detail;
  seen->n++;
}

/* What a trace says of a task: each member, and the core that it was on. */
static void
test_trace (enum pto_backend backend)
{
  static const uint32_t shapes[][2] = { { 1, 2 } };
  static const uint32_t kinds[] = { PTO_TRACE_DISPATCH, PTO_TRACE_ACK, PTO_TRACE_RUN };
  struct plan *plan = make_plan (backend, true, shapes, 1, 1);
  const struct pto_trace *trace = sim_record (plan->chip, &program, orchestrate, plan, NULL);

  for (uint32_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      struct seen seen = { 0 };

      sim_trace_each (trace, kinds[i], note_member, &seen);
      g_assert_cmpuint (seen.n, ==, 3);
      g_assert_cmphex (seen.cores, ==, plan->meetings[0].cores);
      g_assert_cmphex (seen.members, ==, kinds[i] == PTO_TRACE_RUN ? 0 : 7);
    }
  plan_free (plan);
}

static void
add_tests (void)
{
  sim_add ("members/mixed-tasks", test_mixed_tasks);
  sim_add ("members/all-at-once", test_all_at_once);
  sim_add ("members/other-geometry", test_other_geometry);
  sim_add ("members/never", test_never);
  sim_add ("members/run-fails", test_run_fails);
  sim_add ("members/trace", test_trace);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
