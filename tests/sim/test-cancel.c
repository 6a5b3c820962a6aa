/* test-cancel.c: does a cancelled run end soon, wherever its submitter is, and never say success?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * No test measures time. A kernel that begins looks whether the cancel was over by then: those that
 * do are as many at most as can have had their last look before it, one for each that runs kernels.
 * That somebody looks often enough is tested by kernels that wait for it.
 */
#include "sim-test.h"

#include "../../pto/core/completion.h"
#include "../../sim/chip-private.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SPEND_NS 20000u
#define GIVE_UP_NS UINT64_C (20000000000)
#define KERNEL_NS 10000u /* on the virtual clock */

/* --- what happened in a run --- */

static struct pto_chip *chip;
static _Atomic uint32_t began;
static _Atomic uint32_t ended;
static _Atomic uint32_t cancelled; /* the call that cancels has returned */
static _Atomic uint32_t late;      /* kernels that began after that */
static _Atomic uint32_t wanted_no_more;
static _Atomic uint32_t unasked; /* kernels that gave up waiting to be seen */
static uint32_t at;              /* the kernel that cancels, or after whose begin it is done */
static uint64_t last_begin;      /* on the virtual clock */
static uint64_t patience_ns;
static _Atomic uint32_t order; /* to the thread that cancels */

enum
{
  REST,
  GO,
  CANCELS,
  STOP
};

static void
forget (void)
{
  atomic_store (&began, 0);
  atomic_store (&ended, 0);
  atomic_store (&cancelled, 0);
  atomic_store (&late, 0);
  atomic_store (&wanted_no_more, 0);
  atomic_store (&unasked, 0);
  last_begin = 0;
  patience_ns = GIVE_UP_NS;
}

static uint32_t
begin (void)
{
  if (atomic_load (&cancelled) != 0)
    atomic_fetch_add (&late, 1);
  return atomic_fetch_add (&began, 1);
}

static void
cancel (void)
{
  pto_chip_cancel (chip);
  atomic_store (&cancelled, 1);
}

/* One of them waits until the thread that cancels is about to. */
static void
kernel_spend (int64_t *args)
{
  if (begin () == at)
    while (atomic_load (&order) == GO)
      sched_yield ();
  sim_spend_ns (SPEND_NS);
  atomic_fetch_add (&ended, 1);
}

/* One of them cancels. */
static void
kernel_cancel (int64_t *args)
{
  if (begin () == at)
    cancel ();
  atomic_fetch_add (&ended, 1);
}

static void
kernel_time (int64_t *args)
{
  begin ();
  last_begin = pto_now (chip->machine.engine.exec);
  atomic_fetch_add (&ended, 1);
}

/* One of them is not wanted any more from its begin on, and waits until somebody has seen that. */
static void
kernel_wait_to_be_seen (int64_t *args)
{
  uint64_t end = pto_wall_clock () + patience_ns;

  if (begin () == at)
    {
      atomic_store (&wanted_no_more, 1);
      while (!pto_engine_has_failed (&chip->machine.engine) && pto_wall_clock () < end)
        sched_yield ();
      if (!pto_engine_has_failed (&chip->machine.engine))
        atomic_fetch_add (&unasked, 1);
      atomic_store (&cancelled, 1);
    }
  atomic_fetch_add (&ended, 1);
}

static NOT_SANITIZED void
kernel_hang (int64_t *args)
{
  volatile bool forever = true;

  begin ();
  cancel ();
  while (forever)
    ;
}

static void
kernel_nothing (int64_t *args)
{
}

enum
{
  SPEND,
  CANCEL,
  TIME,
  WAIT_TO_BE_SEEN,
  HANG,
  NOTHING,
  CANCEL_WAITING
};

/* Cancels when the submitter waits for a cluster. */
static void
kernel_cancel_waiting (int64_t *args)
{
  uint64_t end = pto_wall_clock () + GIVE_UP_NS;

  while (atomic_load (&chip->machine.engine.wait_cohort) == 0 && pto_wall_clock () < end)
    pto_relax (args);
  cancel ();
}

static const struct pto_kernel kernels[] = {
  [SPEND] = { "spend", kernel_spend, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [CANCEL] = { "cancel", kernel_cancel, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [TIME] = { "time", kernel_time, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [WAIT_TO_BE_SEEN]
  = { "wait", kernel_wait_to_be_seen, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [HANG] = { "hang", kernel_hang, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [NOTHING] = { "nothing", kernel_nothing, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
  [CANCEL_WAITING]
  = { "cancel waiting", kernel_cancel_waiting, PTO_CORE_TYPE_AIV, { .base_ns = KERNEL_NS } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* Who runs kernels: each may have had its last look before the cancel, and begin one after it. */
static uint32_t
who_may_be_late (enum pto_backend backend)
{
  return backend == PTO_BACKEND_PAR   ? 1 + pto_exec_carriers (chip->machine.engine.exec)
         : backend == PTO_BACKEND_DET ? 1
                                      : chip->n_cores;
}

/* --- where the submitter is --- */

enum place
{
  WAITS,   /* at the end, carries */
  STALLS,  /* before a full ring, carries */
  SUBMITS, /* for ever, and never waits */
  RUNS,    /* each task itself, as it submits it */
  AWAY,    /* in the orchestration's own code */
  N_PLACES
};

struct graph
{
  enum place place;
  int kernel;
  uint32_t n;
  bool chain;
  bool deaf; /* the fault: nobody but the submitter asks whether the run is wanted */
  uint64_t word;
};

static void
submit (PTO2Runtime *rt, struct graph *graph)
{
  static const uint64_t one[] = { 1 };
  PTOParam param = make_inout_param (make_tensor_external (&graph->word, one, 1, PTO_DTYPE_UINT64));

  pto2_rt_submit_task (rt, graph->kernel, AIV, &param, graph->chain ? 1 : 0);
}

/* From here on tasks are run as they are submitted. Submits some of another kernel. */
static void
go_direct (PTO2Runtime *rt)
{
  struct pto_engine *engine = &chip->machine.engine;
  uint64_t all = (UINT64_C (1) << chip->n_schedulers) - 1;

  engine->direct_limit = UINT64_MAX;
  while (!engine->direct && !pto_engine_has_failed (engine))
    {
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
    }
}

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct graph *graph = data;

  if (graph->deaf)
    pto_ticker_disarm (chip->ticker);
  if (graph->place == RUNS)
    go_direct (rt);
  if (graph->place == SUBMITS)
    while (!pto_runtime_has_failed (rt))
      PTO2_SCOPE (rt)
      {
        submit (rt, graph);
      }
  for (uint32_t i = 0; i < graph->n && graph->place != SUBMITS; i++)
    PTO2_SCOPE (rt)
    {
      submit (rt, graph);
    }
  if (graph->place == AWAY)
    while (!pto_runtime_has_failed (rt) && atomic_load (&ended) < graph->n)
      sched_yield ();
  return 0;
}

static bool
place_is_on (enum place place, enum pto_backend backend)
{
  return (place != RUNS || backend == PTO_BACKEND_PAR)
         /* Nobody else runs kernels. */
         && (place != AWAY || backend != PTO_BACKEND_DET);
}

static struct pto_chip *
small_chip (enum pto_backend backend, const char *more)
{
  g_autofree char *settings = g_strdup_printf ("clusters=4 aicpu-threads=3 %s", more);

  chip = sim_chip (backend, settings);
  return chip;
}

static const char *
settings_of (enum place place)
{
  /* A kernel may wait for the thread that cancels on a busy machine, and then must not be cut off.
   */
  return place == STALLS ? "task-window=8 timeout=120000" : "task-window=1024 timeout=120000";
}

static bool
ask (void *data)
{
  return atomic_load (&wanted_no_more) != 0;
}

static enum pto_status
run (struct graph *graph, bool asks, bool trace, struct pto_run_stats *stats)
{
  struct pto_run_config config
      = { .record = trace ? PTO_TRACE_LEVEL_GRAPH : 0, .cancelled = asks ? ask : NULL };
  struct pto_report report = { 0 };
  enum pto_status status
      = pto_chip_run (chip, &program, &config, orchestrate, graph, stats, &report);

  if (status != PTO_OK)
    sim_assert_says (&report, PTO_STATUS_CANCELLED, "the run was cancelled", NULL);
  return status;
}

/* --- cancelled by another thread, 1000 times --- */

static _Atomic uint32_t began_then; /* when the cancel was over */
static _Atomic uint32_t ended_then;

/* Cancels when as many kernels have begun as it was told. */
static void *
canceller_main (void *data)
{
  for (;;)
    {
      uint32_t now = atomic_load (&order);

      if (now == STOP)
        return NULL;
      if (now == GO && atomic_load (&began) > at)
        {
          atomic_store (&order, CANCELS);
          cancel ();
          atomic_store (&began_then, atomic_load (&began));
          atomic_store (&ended_then, atomic_load (&ended));
          atomic_store (&order, REST);
        }
      sched_yield ();
    }
}

static void
cancel_from_outside (enum pto_backend backend, enum place place, bool chain, uint32_t rounds)
{
  struct graph graph = { .place = place, .kernel = SPEND, .n = 30, .chain = chain };
  GRand *random = g_rand_new_with_seed ((guint32) (place * 8 + backend));
  uint32_t n_cancelled = 0;
  pthread_t canceller;

  small_chip (backend, settings_of (place));
  atomic_store (&order, REST);
  g_assert_cmpint (pthread_create (&canceller, NULL, canceller_main, NULL), ==, 0);
  for (uint32_t round = 0; round < rounds; round++)
    {
      struct pto_run_stats stats;
      enum pto_status status;

      forget ();
      at = (uint32_t) g_rand_int_range (random, 0, 29);
      atomic_store (&order, GO);
      status = run (&graph, false, false, &stats);
      while (atomic_load (&order) != REST)
        sched_yield ();
      /* Before the last one began: no success, and hardly any begins after it. */
      if (place == SUBMITS || atomic_load (&began_then) < graph.n)
        g_assert_cmpint (status, ==, PTO_STATUS_CANCELLED);
      if (status == PTO_OK)
        g_assert_cmpuint (atomic_load (&ended_then), ==, graph.n);
      n_cancelled += status == PTO_STATUS_CANCELLED;
      g_assert_cmpuint (atomic_load (&late), <=, chain ? 1 : who_may_be_late (backend));
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      g_assert_cmpuint (atomic_load (&began), ==, atomic_load (&ended));
      if (place != RUNS)
        g_assert_cmpuint (stats.completed - stats.failed, ==, atomic_load (&ended));
    }
  g_assert_cmpuint (n_cancelled, >, rounds / 4);
  atomic_store (&order, STOP);
  pthread_join (canceller, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
  g_rand_free (random);
}

static void
test_chain (enum pto_backend backend)
{
  for (enum place place = 0; place < N_PLACES; place++)
    if (place_is_on (place, backend))
      cancel_from_outside (backend, place, true, SCALE (250));
}

static void
test_wide (enum pto_backend backend)
{
  for (enum place place = 0; place < N_PLACES; place++)
    if (place_is_on (place, backend))
      cancel_from_outside (backend, place, false, SCALE (100));
}

/* --- cancelled by a kernel --- */

static void
test_kernel (enum pto_backend backend)
{
  for (enum place place = 0; place < N_PLACES; place++)
    {
      struct graph graph = { .place = place, .kernel = CANCEL, .n = 200, .chain = true };

      if (!place_is_on (place, backend))
        continue;
      small_chip (backend, settings_of (place));
      for (at = 0; at < graph.n; at += 13)
        {
          struct pto_run_stats stats;

          forget ();
          g_assert_cmpint (run (&graph, false, true, &stats), ==, PTO_STATUS_CANCELLED);
          /* Also while the last one runs. */
          g_assert_cmpuint (atomic_load (&began), ==, at + 1);
          g_assert_cmpuint (atomic_load (&late), ==, 0);
          g_assert_cmpuint (stats.completed, ==, stats.tasks);
          if (place != RUNS)
            g_assert_cmpuint (sim_trace_count (pto_chip_trace (chip), PTO_TRACE_RUN), ==, at + 1);
          g_assert_cmpuint (sim_trace_count (pto_chip_trace (chip), PTO_TRACE_SUBMIT), ==,
                            stats.tasks);
        }
      forget ();
      at = UINT32_MAX;
      if (place != SUBMITS)
        {
          g_assert_cmpint (run (&graph, false, false, NULL), ==, PTO_OK);
          g_assert_cmpuint (atomic_load (&ended), ==, graph.n);
        }
      pto_chip_free (chip);
    }
}

/* --- a run that only says so when it is asked --- */

static void
test_asked (enum pto_backend backend)
{
  for (enum place place = 0; place < N_PLACES; place++)
    {
      struct graph graph = { .place = place, .kernel = WAIT_TO_BE_SEEN, .n = 40, .chain = true };

      if (!place_is_on (place, backend))
        continue;
      small_chip (backend, settings_of (place));
      for (at = 0; at < 40; at += 39)
        {
          forget ();
          g_assert_cmpint (run (&graph, true, false, NULL), ==, PTO_STATUS_CANCELLED);
          g_assert_cmpuint (atomic_load (&unasked), ==, 0);
          g_assert_cmpuint (atomic_load (&began), ==, at + 1);
        }
      sim_assert_well (chip);
      pto_chip_free (chip);
    }
}

/* The test sees it when somebody looks too seldom; and still it is no success. */
static void
test_nobody_asks (enum pto_backend unused)
{
  struct graph graph
      = { .place = WAITS, .kernel = WAIT_TO_BE_SEEN, .n = 40, .chain = true, .deaf = true };

  small_chip (PTO_BACKEND_DET, settings_of (WAITS));
  forget ();
  patience_ns = 100000000;
  at = 3;
  g_assert_cmpint (run (&graph, true, false, NULL), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (atomic_load (&unasked), ==, 1);
  g_assert_cmpuint (atomic_load (&began), ==, graph.n);
  g_assert_cmpuint (atomic_load (&late), ==, graph.n - 4);
  pto_chip_free (chip);
}

/* Cancelled before it: the orchestration is called, nothing is run. */
static void
test_before (enum pto_backend backend)
{
  struct graph graph = { .place = WAITS, .kernel = SPEND, .n = 30 };
  struct pto_run_stats stats;

  small_chip (backend, "");
  forget ();
  atomic_store (&wanted_no_more, 1);
  g_assert_cmpint (run (&graph, true, false, &stats), ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (atomic_load (&began), ==, 0);
  g_assert_cmpuint (stats.tasks, ==, 0);
  /* Between runs a cancel is of no run. */
  forget ();
  pto_chip_cancel (chip);
  g_assert_cmpint (run (&graph, true, false, &stats), ==, PTO_OK);
  pto_chip_cancel (chip);
  g_assert_cmpint (run (&graph, true, false, &stats), ==, PTO_OK);
  g_assert_cmpuint (atomic_load (&ended), ==, 2 * graph.n);
  pto_chip_free (chip);
}

/* --- on the virtual clock --- */

struct alarm_clock
{
  struct pto_word word;
  uint64_t time;
};

static void
cancel_at (void *data)
{
  struct alarm_clock *clock = data;

  pto_park (chip->machine.engine.exec, &clock->word, 0, clock->time);
  cancel ();
}

struct timed
{
  struct graph graph;
  struct alarm_clock clock;
};

static int
orchestrate_timed (PTO2Runtime *rt, void *data)
{
  struct timed *timed = data;
  char error[256];

  /* The alarm of the run before may have gone off while its machine was taken down. */
  forget ();
  pto_word_init (&timed->clock.word, 0, false);
  timed->clock.time += pto_now (chip->machine.engine.exec);
  g_assert_cmpint (pto_exec_spawn (chip->machine.engine.exec, 0, "alarm", cancel_at, &timed->clock,
                                   error, sizeof error),
                   ==, 0);
  return orchestrate (rt, &timed->graph);
}

/* Cancelled at any time: within one kernel and what it costs to pass by the others. */
static void
test_virtual_time (enum pto_backend unused)
{
  GRand *random = g_rand_new_with_seed (1);
  /* Each as long as its alarm, which may be longer than the run. */
  struct timed *all = g_new0 (struct timed, SCALE (400));
  uint32_t n_cancelled = 0;

  for (uint32_t round = 0; round < SCALE (400); round++)
    {
      struct timed *timed = &all[round];
      bool chain = round % 2 == 0;
      uint64_t wait = (uint64_t) g_rand_int_range (random, 1, chain ? 500000 : 150000);
      struct pto_report report = { 0 };
      struct pto_run_stats stats;
      enum pto_status status;

      if (round % 100 == 0)
        small_chip (PTO_BACKEND_DET, "");
      timed->graph
          = (struct graph){ .place = WAITS, .kernel = TIME, .n = chain ? 30 : 100, .chain = chain };
      timed->clock.time = wait;
      status = pto_chip_run (chip, &program, NULL, orchestrate_timed, timed, &stats, &report);
      if (status == PTO_OK)
        {
          g_assert_cmpuint (atomic_load (&ended), ==, timed->graph.n);
          g_assert_cmpuint (stats.virtual_ns, <=, wait);
        }
      else
        {
          sim_assert_says (&report, PTO_STATUS_CANCELLED, "the run was cancelled", NULL);
          n_cancelled++;
          g_assert_cmpuint (stats.virtual_ns, <, wait + KERNEL_NS + 100000);
        }
      if (last_begin > timed->clock.time || atomic_load (&began) < timed->graph.n)
        g_assert_cmpint (status, ==, PTO_STATUS_CANCELLED);
      g_assert_cmpuint (atomic_load (&late), ==, 0);
      if (round % 100 == 99 || round + 1 == SCALE (400))
        pto_chip_free (chip);
    }
  g_assert_cmpuint (n_cancelled, >, SCALE (400) / 3);
  g_assert_cmpuint (n_cancelled, <, SCALE (400));
  g_free (all);
  g_rand_free (random);
}

/* --- cancels that come at any time --- */

static void *
storm_main (void *data)
{
  while (atomic_load (&order) != STOP)
    {
      pto_chip_cancel (chip);
      for (uint32_t i = 0; i < 50; i++)
        sched_yield ();
    }
  return NULL;
}

static void
test_storm (enum pto_backend backend)
{
  struct graph graph = { .place = WAITS, .kernel = CANCEL, .n = 20, .chain = true };
  pthread_t storm;

  small_chip (backend, "");
  at = UINT32_MAX;
  atomic_store (&order, GO);
  g_assert_cmpint (pthread_create (&storm, NULL, storm_main, NULL), ==, 0);
  for (uint32_t round = 0; round < SCALE (1000); round++)
    {
      struct pto_run_stats stats;

      forget ();
      /* A success is a whole one, and the chip is as it was. */
      if (run (&graph, false, false, &stats) == PTO_OK)
        g_assert_cmpuint (atomic_load (&ended), ==, graph.n);
      g_assert_cmpuint (stats.completed - stats.failed, ==, atomic_load (&ended));
    }
  atomic_store (&order, STOP);
  pthread_join (storm, NULL);
  forget ();
  g_assert_cmpint (run (&graph, false, false, NULL), ==, PTO_OK);
  pto_chip_free (chip);
}

/* --- a kernel that does not return --- */

/* It is ended after an eighth of the time-out; the run stays cancelled. */
static void
test_hang (enum pto_backend backend)
{
  struct graph graph = { .place = WAITS, .kernel = HANG, .n = 3, .chain = true };
  struct pto_run_stats stats;

  small_chip (backend, "timeout=400");
  for (uint32_t round = 0; round < 3; round++)
    {
      forget ();
      g_assert_cmpint (run (&graph, false, false, &stats), ==, PTO_STATUS_CANCELLED);
      g_assert_cmpuint (atomic_load (&began), ==, 1);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      g_assert_cmpuint (stats.failed, ==, stats.tasks);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

static int
wait_for_a_cluster (PTO2Runtime *rt, void *given)
{
  int32_t *got = given;
  int32_t cluster = pto2_rt_allocate_cluster (rt);

  pto2_rt_submit_task_clustered (rt, CANCEL_WAITING, AIV, NULL, 0, cluster);
  pto2_rt_free_cluster (rt, cluster);
  *got = pto2_rt_allocate_cluster (rt);
  return 0;
}

/* Who waits for a cluster hears of a cancel. */
static void
test_cluster (enum pto_backend backend)
{
  struct pto_run_config config = { 0 };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  int32_t got = 0;

  forget ();
  chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
  g_assert_cmpint (
      pto_chip_run (chip, &program, &config, wait_for_a_cluster, &got, &stats, &report), ==,
      PTO_STATUS_CANCELLED);
  g_assert_cmpint (got, ==, -1);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("cancel/chain", test_chain);
  sim_add ("cancel/wide", test_wide);
  sim_add ("cancel/kernel", test_kernel);
  sim_add ("cancel/asked", test_asked);
  sim_add_once ("cancel/nobody-asks", test_nobody_asks);
  sim_add ("cancel/before", test_before);
  sim_add_once ("cancel/virtual-time", test_virtual_time);
  sim_add ("cancel/storm", test_storm);
  sim_add ("cancel/hang", test_hang);
  sim_add ("cancel/cluster", test_cluster);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
