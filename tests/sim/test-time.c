/* test-time.c: is the virtual clock exact, and are the figures of a run right?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Hand-computed from the steps of a2a3sim, in ns: submit 430 + 110 a tensor, dispatch 200, start
 * 150, the kernel, finish 500, poll 100, and 60 for each consumer told.
 */
#include "sim-test.h"

#include <stdatomic.h>
#include <string.h>

enum
{
  SUBMIT = 430,
  ARGUMENT = 110,
  DISPATCH = 200,
  START = 150,
  FINISH = 500,
  POLL = 100,
  FANOUT = 60
};
/* From the end of its submit until a task is complete, without the kernel. */
#define AROUND (DISPATCH + START + FINISH + POLL)

#define MEASURED_NS 200000

static uint64_t data[256];

static void
kernel_none (int64_t *args)
{
}

static void
kernel_spend (int64_t *args)
{
  sim_spend_ns (MEASURED_NS);
}

/* What it is given is its own to spoil. */
static void
kernel_spoil (int64_t *args)
{
  TensorData *tensor = (TensorData *) (uintptr_t) args[0];

  memset (tensor, 0x5a, sizeof *tensor);
  args[0] = 0;
}

static const struct pto_cost_point points[] = { { 64, 1000 }, { 128, 3000 }, { 1024, 3448 } };

enum
{
  NONE,
  LINEAR,
  TABLE,
  MEASURE,
  CUBE,
  NO_POINTS,
  SPOIL,
  LONG,
  ENDLESS,
  STEEP,
  HIGH
};

static const struct pto_cost_point high_points[] = { { 64, 1e18 }, { 128, 1e300 } };

static const struct pto_kernel kernels[] = {
  [NONE] = { "none", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = 0 } },
  [LINEAR] = { "linear", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = 1000, .ns_per_byte = 2.5 } },
  [TABLE] = { "table",
              kernel_none,
              PTO_CORE_TYPE_AIV,
              { .model = PTO_COST_TABLE, .points = points, .n_points = 3 } },
  [MEASURE] = { "measure", kernel_spend, PTO_CORE_TYPE_AIV, { .model = PTO_COST_MEASURE } },
  [CUBE] = { "cube", kernel_none, PTO_CORE_TYPE_AIC, { .base_ns = 4000 } },
  [NO_POINTS] = { "no-points", kernel_none, PTO_CORE_TYPE_AIV, { .model = PTO_COST_TABLE } },
  [SPOIL] = { "spoil", kernel_spoil, PTO_CORE_TYPE_AIV, { .base_ns = 1000, .ns_per_byte = 2.5 } },
  [LONG] = { "long", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = PTO_COST_MOST_NS } },
  [ENDLESS] = { "endless", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = 1.8e19 } },
  [STEEP] = { "steep", kernel_none, PTO_CORE_TYPE_AIV, { .ns_per_byte = 1e300 } },
  [HIGH] = { "high",
             kernel_none,
             PTO_CORE_TYPE_AIV,
             { .model = PTO_COST_TABLE, .points = high_points, .n_points = 2 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct one
{
  int32_t kernel;
  uint32_t n_tensors;
  uint64_t bytes; /* of each */
  uint32_t n_scalars;
};

static int
submit_one (PTO2Runtime *rt, void *arg)
{
  const struct one *one = arg;
  uint64_t shape[] = { one->bytes };
  PTOParam params[16];
  uint32_t n = 0;

  for (uint32_t i = 0; i < one->n_tensors; i++)
    params[n++] = make_input_param (make_tensor_external (data, shape, 1, PTO_DTYPE_UINT8));
  for (uint32_t i = 0; i < one->n_scalars; i++)
    params[n++] = make_scalar_param (i);
  pto2_rt_submit_task (rt, one->kernel, (int32_t) kernels[one->kernel].core_type, params,
                       (int32_t) n);
  return 0;
}

static void
assert_one (struct pto_chip *chip, struct one one, uint64_t cost)
{
  struct pto_run_stats stats;

  for (int i = 0; i < 2; i++)
    {
      sim_run (chip, &program, submit_one, &one, &stats);
      g_assert_cmpuint (stats.virtual_ns, ==, SUBMIT + one.n_tensors * ARGUMENT + AROUND + cost);
      g_assert_cmpuint (stats.elapsed_ns, ==, stats.virtual_ns);
      g_assert_cmpuint (stats.busy_ns[kernels[one.kernel].core_type], ==, cost);
      g_assert_cmpuint (stats.busy_ns[1 - kernels[one.kernel].core_type], ==, 0);
    }
}

static void
test_cost_models (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  assert_one (chip, (struct one){ NONE, 0, 0, 0 }, 0);
  assert_one (chip, (struct one){ NONE, 0, 0, 9 }, 0); /* scalars are free */
  assert_one (chip, (struct one){ NONE, 3, 8, 2 }, 0);
  assert_one (chip, (struct one){ LINEAR, 1, 100, 0 }, 1000 + 250);
  assert_one (chip, (struct one){ LINEAR, 4, 100, 1 }, 1000 + 1000);
  assert_one (chip, (struct one){ LINEAR, 0, 0, 0 }, 1000);
  assert_one (chip, (struct one){ CUBE, 1, 8, 0 }, 4000);
  assert_one (chip, (struct one){ TABLE, 1, 1, 0 }, 1000);  /* before the first */
  assert_one (chip, (struct one){ TABLE, 1, 64, 0 }, 1000); /* on a point */
  assert_one (chip, (struct one){ TABLE, 1, 96, 0 }, 2000); /* half way */
  assert_one (chip, (struct one){ TABLE, 2, 64, 0 }, 3000);
  assert_one (chip, (struct one){ TABLE, 4, 144, 0 }, 3000 + 224);
  assert_one (chip, (struct one){ TABLE, 2, 512, 0 }, 3448);
  assert_one (chip, (struct one){ TABLE, 8, 2000, 0 }, 3448); /* after the last */
  assert_one (chip, (struct one){ NO_POINTS, 1, 64, 0 }, 0);
  assert_one (chip, (struct one){ SPOIL, 1, 100, 0 }, 1000 + 250);
  pto_chip_free (chip);
}

/* Tasks one after the other. */
static int
submit_chain (PTO2Runtime *rt, void *arg)
{
  const uint32_t *n = arg;
  uint64_t shape[] = { 8 };

  for (uint32_t i = 0; i < *n; i++)
    {
      PTOParam param = make_inout_param (make_tensor_external (data, shape, 1, PTO_DTYPE_UINT8));

      pto2_rt_submit_task (rt, LONG, PTO_CORE_TYPE_AIV, &param, 1);
    }
  return 0;
}

/* Who would pass the end of the clock fails the run, whose clock does not turn over; the next run
 * begins at 0. */
static void
test_end_of_clock (enum pto_backend backend)
{
  static const struct one rows[] = { { ENDLESS, 0, 0, 0 },
                                     { STEEP, 1, 8, 0 },
                                     { HIGH, 1, 64, 0 },
                                     { HIGH, 1, 100, 0 },
                                     { HIGH, 1, 200, 0 } };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_stats stats;
  uint32_t n = 4;

  for (uint32_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      struct one one = rows[i];

      sim_run_fails (chip, &program, submit_one, &one, PTO_STATUS_INVALID_ARGS,
                     kernels[one.kernel].name,
                     "than the virtual clock goes: to 4503599627370496 ns (52 days)", NULL);
    }
  sim_run (chip, &program, submit_chain, &n, &stats);
  g_assert_cmpuint (stats.virtual_ns, >, 4 * (uint64_t) PTO_COST_MOST_NS);
  g_assert_cmpuint (stats.virtual_ns, <, 4 * (uint64_t) PTO_COST_MOST_NS + 100000);
  n = 7;
  sim_run_fails (chip, &program, submit_chain, &n, PTO_STATUS_INVALID_ARGS,
                 "task 4 of ring 0 (long) on core AIV", NULL);
  assert_one (chip, (struct one){ LINEAR, 1, 100, 0 }, 1000 + 250);
  pto_chip_free (chip);
}

/* At least what the kernel spends, to the clock that it looks at. */
static void
test_measured (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct one one = { MEASURE, 0, 0, 0 };
  struct pto_run_stats stats;

  sim_run (chip, &program, submit_one, &one, &stats);
  g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], >=, MEASURED_NS);
  g_assert_cmpuint (stats.virtual_ns, ==, SUBMIT + AROUND + stats.busy_ns[PTO_CORE_TYPE_AIV]);
  g_assert_cmpuint (stats.run_ns, >=, MEASURED_NS);
  pto_chip_free (chip);
}

/* The times of every record of one task. */
static void
test_steps (enum pto_backend backend)
{
  static const struct
  {
    uint32_t kind;
    uint64_t time;
  } expected[] = {
    { PTO_TRACE_SUBMIT, SUBMIT + ARGUMENT },
    { PTO_TRACE_READY, SUBMIT + ARGUMENT },
    { PTO_TRACE_DISPATCH, SUBMIT + ARGUMENT + DISPATCH },
    { PTO_TRACE_ACK, SUBMIT + ARGUMENT + DISPATCH + START },
    { PTO_TRACE_RUN, SUBMIT + ARGUMENT + DISPATCH + START },
    { PTO_TRACE_COMPLETE, SUBMIT + ARGUMENT + AROUND + 4000 },
    { PTO_TRACE_RETIRE, SUBMIT + ARGUMENT + AROUND + 4000 },
  };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct one one = { CUBE, 1, 8, 0 };
  struct pto_run_stats stats;
  const struct pto_trace *trace = sim_record (chip, &program, submit_one, &one, &stats);
  uint64_t n = 0;

  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      {
        const struct pto_trace_record *r = &trace->buffers[b].records[i];

        for (gsize k = 0; k < G_N_ELEMENTS (expected); k++)
          if (r->kind == expected[k].kind)
            {
              g_assert_cmpuint (r->time, ==, expected[k].time);
              if (r->kind == PTO_TRACE_RUN)
                g_assert_cmpuint (r->extra, ==, r->time + 4000);
              if (r->kind == PTO_TRACE_SUBMIT)
                {
                  g_assert_cmpuint (r->detail, ==, CUBE);
                  g_assert_cmpuint (r->extra & 0xffff, ==, 0 << 8 | AIC);
                }
              n++;
            }
      }
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (expected));
  pto_chip_free (chip);
}

/* A chain: the consumer is told, then runs on its producer's core. */
static int
chain (PTO2Runtime *rt, void *arg)
{
  static const uint64_t one[] = { 1 };

  for (uint32_t i = 0; i < *(uint32_t *) arg; i++)
    {
      PTOParam params[]
          = { make_inout_param (make_tensor_external (data, one, 1, PTO_DTYPE_UINT64)) };

      pto2_rt_submit_task (rt, CUBE, AIC, params, 1);
    }
  return 0;
}

static void
test_chain (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t n = 1; n < 6; n++)
    {
      struct pto_run_stats stats;

      sim_run (chip, &program, chain, &n, &stats);
      g_assert_cmpuint (stats.virtual_ns, ==,
                        SUBMIT + ARGUMENT + n * (AROUND + 4000) + (n - 1) * FANOUT);
      g_assert_cmpuint (stats.edges, ==, n - 1);
      g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIC], ==, n * 4000);
    }
  pto_chip_free (chip);
}

/* The vector example, step by step: t0 is complete at 2710 and tells t1 and t2; t2, told first,
 * goes on at 2830 where t0 was, t1 gets a core of its own 200 later; t3 is ready when t1 was seen
 * to end at 4980; t4 follows it. */
static void
test_vector (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "seed=5");
  struct sim_vector *v = g_new0 (struct sim_vector, 1);
  struct pto_run_stats stats;

  sim_run (chip, &sim_vector_program, sim_vector, v, &stats);
  g_assert_cmpuint (stats.virtual_ns, ==, 9000);
  g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], ==, 5000);
  g_free (v);
  pto_chip_free (chip);
}

/* 48 tasks on 48 cores end together; with 2 cores they take turns. */
static int
independent (PTO2Runtime *rt, void *arg)
{
  for (uint32_t i = 0; i < *(uint32_t *) arg; i++)
    pto2_rt_submit_task (rt, CUBE, AIC, NULL, 0);
  return 0;
}

static void
test_parallel (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_config one_cluster = { .block_dim = 1 };
  struct pto_report report = { 0 };
  struct pto_run_stats wide, narrow;
  uint32_t n = 4;

  sim_run (chip, &program, independent, &n, &wide);
  g_assert_cmpint (pto_chip_run (chip, &program, &one_cluster, independent, &n, &narrow, &report),
                   ==, PTO_OK);
  /* The last is submitted at 4 * 430 and finds an idle core and an idle scheduler. */
  g_assert_cmpuint (wide.virtual_ns, ==, 4 * SUBMIT + AROUND + 4000);
  g_assert_cmpuint (narrow.virtual_ns, ==, SUBMIT + 4 * (AROUND + 4000));
  g_assert_cmpuint (wide.busy_ns[PTO_CORE_TYPE_AIC], ==, 16000);
  g_assert_cmpuint (narrow.busy_ns[PTO_CORE_TYPE_AIC], ==, 16000);
  g_assert_cmpuint (wide.cores[PTO_CORE_TYPE_AIC], ==, 24);
  g_assert_cmpuint (wide.cores[PTO_CORE_TYPE_AIV], ==, 48);
  g_assert_cmpuint (narrow.cores[PTO_CORE_TYPE_AIC], ==, 1);
  g_assert_cmpuint (narrow.cores[PTO_CORE_TYPE_AIV], ==, 2);
  pto_chip_free (chip);
}

/* --- figures --- */

static int
three_scopes (PTO2Runtime *rt, void *arg)
{
  static const uint64_t kilo[] = { 1024 };

  pto2_rt_init_tensor_pool (rt);
  for (int s = 0; s < 3; s++)
    PTO2_SCOPE (rt)
    {
      for (int i = 0; i < 5; i++)
        {
          PTOParam params[] = { make_output_param (make_tensor (kilo, 1, PTO_DTYPE_UINT8)) };

          pto2_rt_submit_task (rt, NONE, AIV, params, 1);
        }
    }
  pto2_rt_submit_task (rt, CUBE, AIC, NULL, 0);
  return 0;
}

static void
test_stats (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=8 guard=0 utilization=1");

  for (int i = 0; i < 3; i++)
    {
      struct pto_run_stats stats;

      memset (&stats, 0xff, sizeof stats);
      sim_run (chip, &program, three_scopes, NULL, &stats);
      g_assert_cmpuint (stats.tasks, ==, 16);
      g_assert_cmpuint (stats.completed, ==, 16);
      g_assert_cmpuint (stats.failed, ==, 0);
      g_assert_cmpuint (stats.edges, ==, 0);
      g_assert_cmpuint (stats.ring_tasks[0], ==, 1);
      g_assert_cmpuint (stats.ring_tasks[1], ==, 15);
      g_assert_cmpuint (stats.ring_tasks[2], ==, 0);
      g_assert_cmpuint (stats.ring_tasks[3], ==, 0);
      g_assert_cmpuint (stats.last_task_alive[0], ==, 1);
      g_assert_cmpuint (stats.last_task_alive[1], ==, 15);
      g_assert_cmpuint (stats.recycled, ==, 15 - 8);
      g_assert_cmpuint (stats.peak_live_tasks, >=, 5);
      g_assert_cmpuint (stats.peak_live_tasks, <=, 8);
      g_assert_cmpuint (stats.heap_peak[1], >=, 5 * 1024);
      g_assert_cmpuint (stats.heap_peak[1], <=, 7 * 1024);
      g_assert_cmpuint (stats.heap_peak[0], ==, 0);
      g_assert_cmpuint (stats.stalls, <=, 15);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, 24);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 48);
      g_assert_cmpuint (stats.run_ns, >, 0);
      if (backend == PTO_BACKEND_DET)
        g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIC], ==, 4000);
      else
        {
          g_assert_cmpuint (stats.virtual_ns, ==, 0);
          g_assert_cmpuint (stats.elapsed_ns, >, 0);
          g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIC], <=, stats.elapsed_ns);
        }
    }
  pto_chip_free (chip);
}

static int
spend (PTO2Runtime *rt, void *arg)
{
  pto2_rt_submit_task (rt, MEASURE, AIV, NULL, 0);
  return 0;
}

/* Busy times cost a look at the clock, so they are there only when they are wanted. */
static void
test_utilization (enum pto_backend backend)
{
  static const char *const settings[] = { NULL, "utilization=1", "trace=1" };

  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[i]);
      struct pto_run_stats stats;

      sim_run (chip, &program, spend, NULL, &stats);
      g_assert_cmpuint (stats.run_ns, >=, MEASURED_NS);
      if (i == 0 && backend != PTO_BACKEND_DET)
        g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], ==, 0);
      else
        g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], >=, MEASURED_NS);
      pto_chip_free (chip);
    }
}

/* --- recording --- */

static void
test_recording (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "trace-records=16");
  struct pto_run_config record = { .record = PTO_TRACE_LEVEL_GRAPH };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  uint32_t n = 100;
  uint64_t produced = 0;
  uint64_t retired;
  /* On the virtual clock a trace begins with what the chip's own steps cost. */
  const uint64_t costs = backend == PTO_BACKEND_DET ? PTO_TRACE_N_COSTS : 0;
  const struct pto_trace *trace;

  /* Off unless it is asked for. */
  sim_run (chip, &program, independent, &n, NULL);
  g_assert_null (pto_chip_trace (chip));
  /* Full buffers count what they drop: 100 submits, 100 readies, the scope twice, and all retired
   * in one record or some. */
  g_assert_cmpint (pto_chip_run (chip, &program, &record, independent, &n, &stats, &report), ==,
                   PTO_OK);
  trace = pto_chip_trace (chip);
  g_assert_nonnull (trace);
  g_assert_cmpuint (trace->buffers[0].count, ==, 16);
  retired = trace->buffers[0].dropped + 16 - costs - 202;
  g_assert_cmpuint (retired, >=, 1);
  g_assert_cmpuint (retired, <=, 100);
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    produced += trace->buffers[b].count + trace->buffers[b].dropped;
  g_assert_cmpuint (produced, ==, costs + 100 * 6 + 2 + retired);
  /* The last run is the one that counts. */
  sim_run (chip, &program, independent, &n, NULL);
  g_assert_null (pto_chip_trace (chip));
  pto_chip_free (chip);
}

/* On par a core begins when it is told to: its scheduler has no hand-over to wait for. */
static void
test_attended (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_stats stats;
  uint32_t n = 100;
  uint32_t n_at_once = 0;
  uint64_t told[100] = { 0 };
  const struct pto_trace *trace = sim_record (chip, &program, independent, &n, &stats);

  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      {
        const struct pto_trace_record *r = &trace->buffers[b].records[i];

        if (r->kind == PTO_TRACE_DISPATCH)
          told[PTO_TASK_LOCAL (r->task)] = r->time;
        else if (r->kind == PTO_TRACE_RUN)
          n_at_once += told[PTO_TASK_LOCAL (r->task)] == r->time;
      }
  if (backend == PTO_BACKEND_PAR)
    g_assert_cmpuint (n_at_once, ==, n);
  else
    g_assert_cmpuint (n_at_once, <, n);
  pto_chip_free (chip);
}

/* --- platforms --- */

static void
test_platforms (enum pto_backend backend)
{
  static const struct
  {
    const char *name;
    uint32_t clusters, threads, aic, aiv;
    uint64_t hz;
  } rows[] = { { "a2a3sim", 24, 4, 24, 48, 50000000 }, { "a5sim", 36, 5, 36, 72, 1000000000 } };
  const struct pto_platform *const *all = pto_platform_all ();

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      const struct pto_platform *p = pto_platform_find (rows[i].name);
      struct pto_trace_topology topology;
      struct pto_run_stats stats;
      struct pto_chip *chip;
      uint32_t n = 1;

      g_assert_true (all[i] == p);
      g_assert_cmpstr (p->name, ==, rows[i].name);
      g_assert_cmpuint (p->clusters, ==, rows[i].clusters);
      g_assert_cmpuint (p->aic_per_cluster, ==, 1);
      g_assert_cmpuint (p->aiv_per_cluster, ==, 2);
      g_assert_cmpuint (p->aicpu_threads, ==, rows[i].threads);
      g_assert_cmpuint (p->counter_hz, ==, rows[i].hz);
      chip = sim_chip_on (p, backend, NULL);
      g_assert_cmpuint (pto_chip_platform (chip)->clusters, ==, p->clusters);
      g_assert_cmpmem (&pto_chip_platform (chip)->costs, sizeof p->costs, &p->costs,
                       sizeof p->costs);
      sim_run (chip, &program, independent, &n, &stats);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, rows[i].aic);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, rows[i].aiv);
      pto_chip_trace_topology (chip, &topology);
      g_assert_cmpuint (topology.n_schedulers, ==, rows[i].threads - 1);
      g_assert_cmpuint (topology.n_cores, ==, rows[i].aic + rows[i].aiv);
      g_assert_cmpuint (topology.n_clusters, ==, rows[i].clusters);
      g_assert_cmpuint (topology.aic_per_cluster, ==, 1);
      g_assert_cmpuint (topology.aiv_per_cluster, ==, 2);
      g_assert_cmpuint (topology.counter_hz, ==, rows[i].hz);
      g_assert_true (topology.virtual_clock == (backend == PTO_BACKEND_DET));
      sim_assert_well (chip);
      pto_chip_free (chip);
    }
  g_assert_null (all[G_N_ELEMENTS (rows)]);
  g_assert_null (pto_platform_find ("a6sim"));
}

static void
add_tests (void)
{
  sim_add_once ("time/cost-models", test_cost_models);
  sim_add_once ("time/end-of-clock", test_end_of_clock);
  sim_add_once ("time/measured", test_measured);
  sim_add_once ("time/steps", test_steps);
  sim_add_once ("time/chain", test_chain);
  sim_add_once ("time/vector", test_vector);
  sim_add_once ("time/parallel", test_parallel);
  sim_add ("time/stats", test_stats);
  sim_add ("time/utilization", test_utilization);
  sim_add ("time/recording", test_recording);
  sim_add ("time/attended", test_attended);
  sim_add ("time/platforms", test_platforms);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
