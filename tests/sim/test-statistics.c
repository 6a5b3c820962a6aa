/* test-statistics.c: are the figures of a run those that the test counts itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A random program over all rings. Kernels count their runs and the time that they spend; the test
 * knows rings and sizes; the order in which slots were taken and given back is that of the
 * submitter's records.
 */
#include "sim-test.h"

#include <stdatomic.h>
#include <string.h>

enum
{
  N_TASKS = 400,
  WINDOW = 32,
  GUARD = 64,
  HEAP_ALIGN = 1024,
  SPIN_NS = 20000
};

enum
{
  CUBE, /* costs 5000 ns */
  WIDE, /* costs 3000 ns */
  SPIN, /* costs what it takes */
  CRASH,
  N_KERNELS
};

static _Atomic uint64_t runs[N_KERNELS];
static uint8_t cells[16][64];

static void
kernel_cube (int64_t *args)
{
  atomic_fetch_add (&runs[CUBE], 1);
}

static void
kernel_wide (int64_t *args)
{
  atomic_fetch_add (&runs[WIDE], 1);
}

static void
kernel_spin (int64_t *args)
{
  sim_spend_ns (SPIN_NS);
  atomic_fetch_add (&runs[SPIN], 1);
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = (volatile int *) (uintptr_t) 8;

  atomic_fetch_add (&runs[CRASH], 1);
  *nowhere = 1;
}

static const struct pto_kernel kernels[] = {
  [CUBE] = { "cube", kernel_cube, PTO_CORE_TYPE_AIC, { .base_ns = 5000 } },
  [WIDE] = { "wide", kernel_wide, PTO_CORE_TYPE_AIV, { .base_ns = 3000 } },
  [SPIN] = { "spin", kernel_spin, PTO_CORE_TYPE_AIV, { .model = PTO_COST_MEASURE } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* What the test knows of its program. */
struct plan
{
  uint32_t seed;
  uint32_t n;
  uint64_t bytes[PTO_RINGS][N_TASKS]; /* that the runtime allocates for a task, by number */
  uint32_t tasks[PTO_RINGS];
  uint64_t of[N_KERNELS];
};

static void
submit (PTO2Runtime *rt, struct plan *plan, GRand *random, uint32_t ring)
{
  int32_t kernel = g_rand_boolean (random) ? CUBE : WIDE;
  uint64_t shape[1] = { sizeof cells[0] };
  PTOParam params[4];
  int32_t n = 0;
  uint64_t taken = 0;

  params[n++] = make_inout_param (make_tensor_external (
      cells[g_rand_int_range (random, 0, G_N_ELEMENTS (cells))], shape, 1, PTO_DTYPE_UINT8));
  for (uint32_t outputs = (uint32_t) g_rand_int_range (random, 0, 3); outputs > 0; outputs--)
    {
      uint64_t bytes = (uint64_t) g_rand_int_range (random, 1, 3000 * ((int32_t) ring + 1));

      params[n++] = make_output_param (make_tensor (&bytes, 1, PTO_DTYPE_UINT8));
      taken += (bytes + GUARD + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
    }
  plan->bytes[ring][plan->tasks[ring]++] = taken;
  plan->of[kernel]++;
  pto2_rt_submit_task (rt, kernel, (int32_t) kernels[kernel].core_type, params, n);
}

/* Some in ring 0, then scopes of one to four deep, each with less than a window. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct plan *plan = data;
  GRand *random = g_rand_new_with_seed (plan->seed);
  uint32_t n = 0;

  pto2_rt_init_tensor_pool (rt);
  for (; n < 11; n++)
    submit (rt, plan, random, 0);
  while (n < plan->n)
    {
      uint32_t depth = (uint32_t) g_rand_int_range (random, 1, 5);

      for (uint32_t d = 1; d <= depth; d++)
        {
          pto2_rt_scope_begin (rt);
          for (uint32_t i = (uint32_t) g_rand_int_range (random, 0, 12); i > 0 && n < plan->n; i--)
            {
              submit (rt, plan, random, MIN (d, PTO_RINGS - 1));
              n++;
            }
        }
      while (depth-- > 0)
        pto2_rt_scope_end (rt);
    }
  g_rand_free (random);
  return 0;
}

static struct plan
new_plan (uint32_t seed, uint32_t n)
{
  memset (runs, 0, sizeof runs);
  return (struct plan){ .seed = seed, .n = n };
}

/* Goes through what the submitter did: slots and memory taken and given back. */
struct walk
{
  const struct plan *plan;
  uint64_t live, most_live;
  uint64_t heap[PTO_RINGS], most_heap[PTO_RINGS];
  uint64_t retired[PTO_RINGS];
  uint64_t stalls, edges;
  uint64_t busy[PTO_N_CORE_TYPES];
};

static void
walk (struct pto_chip *chip, const struct pto_trace *trace, struct walk *w)
{
  struct pto_trace_topology topology;

  pto_chip_trace_topology (chip, &topology);
  g_assert_cmpuint (trace->n_buffers, ==, 1 + topology.n_schedulers + topology.n_cores);
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      {
        const struct pto_trace_record *record = &trace->buffers[b].records[i];
        uint32_t ring = PTO_TASK_RING (record->task);
        uint32_t local = PTO_TASK_LOCAL (record->task);

        switch (record->kind)
          {
          case PTO_TRACE_SUBMIT:
            w->live++;
            w->heap[ring] += w->plan->bytes[ring][local];
            w->most_live = MAX (w->most_live, w->live);
            w->most_heap[ring] = MAX (w->most_heap[ring], w->heap[ring]);
            break;
          case PTO_TRACE_RETIRE:
            g_assert_cmpuint (local, ==, w->retired[ring]); /* in order */
            w->retired[ring] += pto_trace_n_tasks (record);
            w->live -= pto_trace_n_tasks (record);
            for (; local < w->retired[ring]; local++)
              w->heap[ring] -= w->plan->bytes[ring][local];
            break;
          case PTO_TRACE_STALL:
            w->stalls++;
            break;
          case PTO_TRACE_DEP:
            w->edges++;
            break;
          case PTO_TRACE_RUN:
            w->busy[record->detail % 3 == 0 ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV]
                += record->extra - record->time;
            g_assert_cmpuint (b, ==, 1 + topology.n_schedulers + record->detail);
            break;
          default:
            break;
          }
      }
}

static void
assert_figures (struct pto_chip *chip, const struct plan *plan, const struct pto_run_stats *stats,
                enum pto_backend backend, uint64_t outside)
{
  struct walk w = { .plan = plan };
  uint64_t recycled = 0;

  walk (chip, pto_chip_trace (chip), &w);
  g_assert_cmpuint (stats->tasks, ==, plan->n);
  g_assert_cmpuint (stats->completed, ==, plan->n);
  g_assert_cmpuint (stats->failed, ==, 0);
  g_assert_cmpuint (atomic_load (&runs[CUBE]), ==, plan->of[CUBE]);
  g_assert_cmpuint (atomic_load (&runs[WIDE]), ==, plan->of[WIDE]);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      g_assert_cmpuint (stats->ring_tasks[r], ==, plan->tasks[r]);
      g_assert_cmpuint (stats->last_task_alive[r], ==, plan->tasks[r]);
      g_assert_cmpuint (w.retired[r], ==, plan->tasks[r]);
      g_assert_cmpuint (stats->heap_peak[r], ==, w.most_heap[r]);
      recycled += plan->tasks[r] > WINDOW ? plan->tasks[r] - WINDOW : 0;
    }
  g_assert_cmpuint (stats->recycled, ==, recycled);
  g_assert_cmpuint (stats->peak_live_tasks, ==, w.most_live);
  g_assert_cmpuint (stats->stalls, ==, w.stalls);
  g_assert_cmpuint (stats->edges, ==, w.edges);
  for (uint32_t t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      /* Each record is scaled on its own. */
      g_assert_cmpuint (stats->busy_ns[t], <=, w.busy[t] + plan->n);
      g_assert_cmpuint (stats->busy_ns[t] + plan->n, >=, w.busy[t]);
      g_assert_cmpuint (stats->busy_ns[t], <=, stats->elapsed_ns * stats->cores[t]);
      if (backend == PTO_BACKEND_DET)
        g_assert_cmpuint (stats->busy_ns[t], ==,
                          t == PTO_CORE_TYPE_AIC ? 5000 * plan->of[CUBE] : 3000 * plan->of[WIDE]);
    }
  g_assert_cmpuint (stats->run_ns, >, 0);
  g_assert_cmpuint (stats->run_ns, <=, outside);
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (stats->virtual_ns, ==, stats->elapsed_ns);
  else
    g_assert_cmpuint (stats->virtual_ns, ==, 0);
}

static void
test_random (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=32 guard=64 clusters=3 aicpu-threads=3");
  uint64_t stalls = 0, recycled = 0;

  for (uint32_t seed = 1; seed <= 8; seed++)
    {
      struct plan plan = new_plan (seed, seed % 2 == 0 ? 20 : N_TASKS);
      struct pto_run_stats stats;
      uint64_t start = pto_wall_clock ();

      sim_record (chip, &program, orchestrate, &plan, &stats);
      assert_figures (chip, &plan, &stats, backend, pto_wall_clock () - start);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, 3);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 6);
      stalls += stats.stalls;
      recycled += stats.recycled;
      if (plan.n == 20)
        {
          g_assert_cmpuint (stats.stalls, ==, 0);
          g_assert_cmpuint (stats.recycled, ==, 0);
        }
    }
  g_assert_cmpuint (recycled, >, stalls);
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (stalls, >, 0);
  pto_chip_free (chip);
}

/* --- time --- */

enum
{
  N_CHAIN = 50
};

static int
chain (PTO2Runtime *rt, void *data)
{
  const int32_t *kernel = data;
  uint64_t shape[1] = { sizeof cells[0] };

  for (int i = 0; i < N_CHAIN; i++)
    {
      PTOParam params[]
          = { make_inout_param (make_tensor_external (cells[0], shape, 1, PTO_DTYPE_UINT8)) };

      pto2_rt_submit_task (rt, *kernel, AIV, params, 1);
    }
  return 0;
}

/* Kernels one after the other take at least what they spend; the run takes no longer than the test
 * sees pass. Whether somebody measures how busy cores are is asked for. */
static void
test_times (enum pto_backend backend)
{
  const uint64_t spent = (uint64_t) N_CHAIN * SPIN_NS;
  int32_t kernel = SPIN;

  for (int measured = 0; measured <= 1; measured++)
    {
      struct pto_chip *chip
          = sim_chip (backend, measured ? "utilization=1 clusters=4" : "utilization=0 clusters=4");

      for (int i = 0; i < 3; i++)
        {
          struct pto_run_stats stats;
          uint64_t start = pto_wall_clock ();
          uint64_t outside;

          sim_run (chip, &program, chain, &kernel, &stats);
          outside = pto_wall_clock () - start;
          g_assert_cmpuint (stats.run_ns, >=, spent);
          g_assert_cmpuint (stats.run_ns, <=, outside);
          g_assert_cmpuint (stats.elapsed_ns, >=, spent * 99 / 100);
          g_assert_cmpuint (stats.edges, <=, N_CHAIN - 1);
          g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIC], ==, 0);
          g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, 4);
          g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 8);
          g_assert_null (pto_chip_trace (chip));
          if (backend == PTO_BACKEND_DET)
            {
              g_assert_cmpuint (stats.virtual_ns, ==, stats.elapsed_ns);
              g_assert_cmpuint (stats.virtual_ns, !=, stats.run_ns);
            }
          else
            {
              g_assert_cmpuint (stats.virtual_ns, ==, 0);
              g_assert_cmpuint (stats.elapsed_ns, <=, outside + outside / 100);
            }
          if (!measured && backend != PTO_BACKEND_DET)
            g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], ==, 0);
          else
            {
              /* One after the other: never more than the run. */
              g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], >=, spent * 99 / 100);
              g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], <=, stats.elapsed_ns);
            }
        }
      pto_chip_free (chip);
    }
}

/* --- failures --- */

#ifndef SIM_SANITIZED
struct breaking
{
  int before, after; /* of the chain, of which one crashes */
  int apart;         /* that need nothing */
};

static int
orchestrate_breaking (PTO2Runtime *rt, void *data)
{
  const struct breaking *b = data;
  uint64_t shape[1] = { sizeof cells[0] };

  for (int i = 0; i < b->before + 1 + b->after + b->apart; i++)
    {
      int32_t kernel = i == b->before ? CRASH : WIDE;
      uint8_t *cell = i < b->before + 1 + b->after ? cells[0] : cells[1 + i % 8];
      PTOParam params[]
          = { make_inout_param (make_tensor_external (cell, shape, 1, PTO_DTYPE_UINT8)) };

      pto2_rt_submit_task (rt, kernel, AIV, params, 1);
    }
  return 0;
}

/* What failed and what did not run for it are counted, everything has ended. */
static void
test_failed (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3");
  const struct breaking rows[] = { { 0, 0, 0 }, { 0, 3, 0 }, { 4, 2, 0 } };

  for (uint32_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      struct breaking b = rows[i];
      struct pto_run_stats stats;
      struct pto_report report = { 0 };

      new_plan (0, 0);
      g_assert_cmpint (
          pto_chip_run (chip, &program, NULL, orchestrate_breaking, &b, &stats, &report), !=,
          PTO_OK);
      g_assert_cmpuint (atomic_load (&runs[CRASH]), ==, 1);
      g_assert_cmpuint (atomic_load (&runs[WIDE]), ==, (uint64_t) b.before);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      g_assert_cmpuint (stats.failed, ==, stats.tasks - (uint64_t) b.before);
      g_assert_cmpuint (stats.failed, >=, 1);
      g_assert_cmpuint (stats.failed, <=, 1 + (uint64_t) b.after);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}
#endif

/* --- what is recorded --- */

/* Buffers that are too small lose records and say how many: with room for all there are as many. */
static void
test_dropped (enum pto_backend backend)
{
  uint64_t produced[2] = { 0 };
  const char *const settings[] = { "clusters=3 task-window=32 trace-records=16",
                                   "clusters=3 task-window=32 trace-records=4096" };

  for (int i = 0; i < 2; i++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[i]);

      for (int again = 0; again < 2; again++)
        {
          struct plan plan = new_plan (3, N_TASKS);
          const struct pto_trace *trace = sim_record (chip, &program, orchestrate, &plan, NULL);
          uint64_t n = 0, dropped = 0;

          for (uint32_t b = 0; b < trace->n_buffers; b++)
            {
              g_assert_cmpuint (trace->buffers[b].capacity, ==, i == 0 ? 16 : 4096);
              g_assert_cmpuint (trace->buffers[b].count, <=, trace->buffers[b].capacity);
              n += trace->buffers[b].count + trace->buffers[b].dropped;
              dropped += trace->buffers[b].dropped;
            }
          g_assert_true (i == 0 ? dropped > 0 : dropped == 0);
          produced[i] = n;
          /* Every task at least its submit, its run and three more; a second run begins anew. */
          g_assert_cmpuint (n, >=, 5 * N_TASKS);
          g_assert_cmpuint (n, <, 16 * N_TASKS);
        }
      pto_chip_free (chip);
    }
  if (backend == PTO_BACKEND_DET)
    g_assert_cmpuint (produced[0], ==, produced[1]);
}

/* A run of other size than the one before: as many buffers as it has schedulers and cores, and
 * figures of that run alone. */
static void
test_geometry (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=6 aicpu-threads=4 task-window=32 guard=64");
  const uint32_t rows[][4] = { { 0, 0, 6, 3 }, { 2, 2, 2, 1 }, { 5, 3, 5, 2 },
                               { 1, 4, 1, 1 }, { 5, 3, 5, 2 }, { 0, 2, 6, 1 } };

  for (uint32_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      struct pto_run_config config = { .block_dim = rows[i][0],
                                       .aicpu_threads = rows[i][1],
                                       .record = i % 2 == 0 ? PTO_TRACE_LEVEL_GRAPH : 0 };
      struct plan plan = new_plan (i, 60);
      struct pto_trace_topology topology;
      struct pto_report report = { 0 };
      struct pto_run_stats stats;
      uint64_t start = pto_wall_clock ();

      g_assert_cmpint (pto_chip_run (chip, &program, &config, orchestrate, &plan, &stats, &report),
                       ==, PTO_OK);
      pto_chip_trace_topology (chip, &topology);
      g_assert_cmpuint (topology.n_clusters, ==, rows[i][2]);
      g_assert_cmpuint (topology.n_schedulers, ==, rows[i][3]);
      g_assert_cmpuint (topology.n_cores, ==, 3 * rows[i][2]);
      g_assert_cmpuint (topology.aic_per_cluster, ==, 1);
      g_assert_cmpuint (topology.aiv_per_cluster, ==, 2);
      g_assert_true (topology.virtual_clock == (backend == PTO_BACKEND_DET));
      g_assert_cmpuint (topology.counter_hz, ==, pto_chip_platform (chip)->counter_hz);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIC], ==, rows[i][2]);
      g_assert_cmpuint (stats.cores[PTO_CORE_TYPE_AIV], ==, 2 * rows[i][2]);
      if (config.record > 0)
        assert_figures (chip, &plan, &stats, backend, pto_wall_clock () - start);
      else
        g_assert_null (pto_chip_trace (chip));
      /* Times are scaled once, however often somebody looks. */
      if (config.record > 0)
        {
          struct walk once = { .plan = &plan }, twice = { .plan = &plan };

          walk (chip, pto_chip_trace (chip), &once);
          walk (chip, pto_chip_trace (chip), &twice);
          g_assert_cmpuint (once.busy[0] + once.busy[1], ==, twice.busy[0] + twice.busy[1]);
        }
    }
  pto_chip_free (chip);
}

/* --- jitter --- */

enum
{
  JITTER_CHAINS = 6,
  JITTER_LENGTH = 20,
  JITTER_SEEDS = 8
};

/* Chains of tasks that differ in length of time, on cores enough for all of them. */
static int
orchestrate_chains (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[1] = { sizeof cells[0] };

  for (uint32_t i = 0; i < JITTER_LENGTH; i++)
    for (uint32_t c = 0; c < JITTER_CHAINS; c++)
      {
        PTOParam params[]
            = { make_inout_param (make_tensor_external (cells[c], shape, 1, PTO_DTYPE_UINT8)) };

        pto2_rt_submit_task (rt, c % 2 == 0 ? CUBE : WIDE, c % 2 == 0 ? AIC : AIV, params, 1);
      }
  return 0;
}

static const struct pto_kernel jitter_kernels[]
    = { [CUBE] = { "cube", kernel_cube, PTO_CORE_TYPE_AIC, { .base_ns = 500000 } },
        [WIDE] = { "wide", kernel_wide, PTO_CORE_TYPE_AIV, { .base_ns = 300000 } } };
static const struct pto_program jitter_program = { jitter_kernels, G_N_ELEMENTS (jitter_kernels) };

/* What all kernels took; order: a number for the order in which they ended. */
static uint64_t
run_with_jitter (guint seed, guint percent, uint64_t *order, uint64_t *elapsed)
{
  g_autofree char *settings = g_strdup_printf ("seed=%u jitter=%u", seed, percent);
  struct pto_chip *chip = sim_chip (PTO_BACKEND_DET, settings);
  struct pto_run_stats stats;
  const struct pto_trace *trace
      = sim_record (chip, &jitter_program, orchestrate_chains, NULL, &stats);
  g_autofree uint64_t *ends = g_new0 (uint64_t, JITTER_CHAINS * JITTER_LENGTH);
  uint64_t sum = 0;

  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      {
        const struct pto_trace_record *record = &trace->buffers[b].records[i];
        uint64_t ns = record->extra - record->time;
        uint64_t base;

        if (record->kind != PTO_TRACE_RUN)
          continue;
        base = PTO_TASK_LOCAL (record->task) % 2 == 0 ? 500000 : 300000;
        g_assert_cmpuint (ns, >=, base);
        g_assert_cmpuint (ns, <=, base + base * percent / 100);
        ends[PTO_TASK_LOCAL (record->task)] = record->extra;
        sum += ns;
      }
  *order = 0;
  for (uint32_t i = 0; i < JITTER_CHAINS * JITTER_LENGTH; i++)
    for (uint32_t j = 0; j < i; j++)
      *order = *order * 31 + (ends[i] < ends[j]);
  *elapsed = stats.virtual_ns;
  pto_chip_free (chip);
  return sum;
}

/* Each seed is another order, and the same one again; without jitter all are one. */
static void
test_jitter (enum pto_backend backend)
{
  const uint64_t base = (uint64_t) JITTER_CHAINS / 2 * JITTER_LENGTH * (500000 + 300000);
  g_autoptr (GHashTable) orders = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  uint64_t order, again, elapsed, elapsed_again;

  (void) backend;
  for (guint seed = 1; seed <= JITTER_SEEDS; seed++)
    {
      uint64_t sum = run_with_jitter (seed, 20, &order, &elapsed);

      /* 120 draws from 0 to 20 percent. */
      g_assert_cmpuint (sum, >, base + base / 100 * 7);
      g_assert_cmpuint (sum, <, base + base / 100 * 13);
      g_assert_cmpuint (run_with_jitter (seed, 20, &again, &elapsed_again), ==, sum);
      g_assert_cmpuint (again, ==, order);
      g_assert_cmpuint (elapsed_again, ==, elapsed);
      g_hash_table_add (orders, g_memdup2 (&order, sizeof order));
      g_assert_cmpuint (run_with_jitter (seed, 0, &again, &elapsed_again), ==, base);
    }
  g_assert_cmpuint (g_hash_table_size (orders), ==, JITTER_SEEDS);
}

static void
add_tests (void)
{
  sim_add_once ("statistics/jitter", test_jitter);
  sim_add ("statistics/random", test_random);
  sim_add ("statistics/times", test_times);
#ifndef SIM_SANITIZED
  sim_add ("statistics/failed", test_failed);
#endif
  sim_add ("statistics/dropped", test_dropped);
  sim_add ("statistics/geometry", test_geometry);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
