/* test-order.c: do tasks run in the order that a schedule says, and does every schedule end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/graph-plan.h"
#include "../../pto/core/forced-order-text.h"

#include <string.h>

#define TASKS_MAX 64u
#define CELLS 6u
#define ACCESSES_MAX 3u

/* What ran: numbers of tasks, in their order. A task of several parts is there once for each. */
struct log
{
  uint32_t n;
  uint32_t order[1024];
};

enum
{
  NOTE, /* args[1] to the log args[0] */
  NOTE_CUBE,
  NOTE_BLOCK,
  PEEK,  /* args[1][0] = args[0][0], which it outputs */
  STORE, /* args[0][0] = args[1] */
  CRASH
};

static void
kernel_note (int64_t *args)
{
  struct log *log = (struct log *) (uintptr_t) args[0];

  if (log->n < G_N_ELEMENTS (log->order))
    log->order[log->n++] = (uint32_t) args[1];
}

static void
kernel_peek (int64_t *args)
{
  *(uint64_t *) sim_data (args, 1) = *(uint64_t *) sim_data (args, 0);
}

static void
kernel_store (int64_t *args)
{
  *(uint64_t *) sim_data (args, 0) = (uint64_t) args[1];
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = NULL;

  *nowhere = 1;
}

static struct log block_log;

/* Its block to the log args[0]. */
static void
kernel_note_block (int64_t *args)
{
  struct log *log = (struct log *) (uintptr_t) args[0];

  if (log->n < G_N_ELEMENTS (log->order))
    log->order[log->n++] = get_block_idx (args);
}

static const struct pto_kernel kernels[] = {
  [NOTE_BLOCK] = { "note a block", kernel_note_block, PTO_CORE_TYPE_AIV, { .base_ns = 700 } },
  [NOTE] = { "note", kernel_note, PTO_CORE_TYPE_AIV, { .base_ns = 700 } },
  [NOTE_CUBE] = { "note on a cube", kernel_note, PTO_CORE_TYPE_AIC, { .base_ns = 90000 } },
  [PEEK] = { "peek", kernel_peek, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [STORE] = { "store", kernel_store, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static const uint64_t one[1] = { 1 };

static enum pto_status
try (struct pto_chip *chip, const char *text, SimOrchestration orchestrate, void *data,
     struct pto_run_stats *stats, struct pto_report *report)
{
  struct pto_schedule schedule = { 0 };
  struct pto_run_config config = { .schedule = text != NULL ? &schedule : NULL };
  struct pto_report own = { 0 };
  enum pto_status status;

  if (text != NULL)
    g_assert_cmpint (pto_schedule_parse (&schedule, text, "schedule", &own), ==, PTO_OK);
  *report = own;
  status = pto_chip_run (chip, &program, &config, orchestrate, data, stats, report);
  pto_schedule_clear (&schedule);
  return status;
}

static void
run (struct pto_chip *chip, const char *text, SimOrchestration orchestrate, void *data)
{
  struct pto_report report;
  struct pto_run_stats stats;

  g_assert_cmpint (try (chip, text, orchestrate, data, &stats, &report), ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (stats.completed, ==, stats.tasks);
}

/* --- random graphs --- */

struct access
{
  uint32_t cell;
  PTOParamType type;
};

struct task
{
  struct access accesses[ACCESSES_MAX];
  uint32_t n_accesses;
  uint32_t n_blocks; /* 0: it is none of blocks */
  uint32_t priority;
  bool cube;
  bool is_waited; /* the orchestration reads a cell behind it */
};

struct graph
{
  uint32_t n;
  bool in_scopes; /* each task in one of its own, and so in ring 1 */
  struct task tasks[TASKS_MAX];
  uint64_t cells[CELLS];
  struct log log;
};

static const PTOParamType ordered_types[]
    = { PTO_PARAM_INPUT, PTO_PARAM_INPUT, PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING };

/* mixed: with all that a task can be, and so that a window of any size does. */
static void
make_graph (GRand *rand, bool mixed, struct graph *graph)
{
  memset (graph, 0, sizeof *graph);
  graph->in_scopes = mixed;
  graph->n = (uint32_t) g_rand_int_range (rand, 2, mixed ? 40 : 24);
  for (uint32_t t = 0; t < graph->n; t++)
    {
      struct task *task = &graph->tasks[t];
      uint32_t cell = (uint32_t) g_rand_int_range (rand, 0, CELLS);

      task->n_accesses = (uint32_t) g_rand_int_range (rand, 0, ACCESSES_MAX + 1);
      for (uint32_t a = 0; a < task->n_accesses; a++)
        {
          task->accesses[a].cell = (cell + a) % CELLS;
          task->accesses[a].type = ordered_types[g_rand_int_range (rand, 0, 4)];
          if (mixed && g_rand_int_range (rand, 0, 3) == 0)
            task->accesses[a].type = PTO_PARAM_COMMUTATIVE;
        }
      task->cube = g_rand_boolean (rand);
      if (!mixed)
        continue;
      task->n_blocks
          = g_rand_int_range (rand, 0, 4) == 0 ? (uint32_t) g_rand_int_range (rand, 2, 9) : 0;
      task->priority = g_rand_int_range (rand, 0, 4) == 0 ? 1 : 0;
      task->is_waited = g_rand_int_range (rand, 0, 12) == 0;
    }
}

static void
submit_task (PTO2Runtime *rt, struct graph *graph, uint32_t t)
{
  const struct task *task = &graph->tasks[t];
  PTOParam params[2 + ACCESSES_MAX]
      = { make_scalar_param ((uint64_t) (uintptr_t) &graph->log), make_scalar_param (t) };
  PTO2Submit submit = { .size = sizeof submit,
                        .kernel_id = task->cube ? NOTE_CUBE : NOTE,
                        .worker_type = task->cube ? AIC : AIV,
                        .params = params,
                        .n_params = 2 + (int32_t) task->n_accesses,
                        .block_dim = (int32_t) task->n_blocks,
                        .priority = (int32_t) task->priority };

  for (uint32_t a = 0; a < task->n_accesses; a++)
    {
      Tensor cell
          = make_tensor_external (&graph->cells[task->accesses[a].cell], one, 1, PTO_DTYPE_UINT64);

      params[2 + a] = pto2_make_param (task->accesses[a].type, &cell);
    }
  pto2_rt_submit (rt, &submit);
}

static int
orchestrate_graph (PTO2Runtime *rt, void *data)
{
  static const uint64_t first[1] = { 0 };
  struct graph *graph = data;

  graph->log.n = 0;
  for (uint32_t t = 0; t < graph->n; t++)
    {
      if (graph->in_scopes)
        PTO2_SCOPE (rt)
        {
          submit_task (rt, graph, t);
        }
      else
        submit_task (rt, graph, t);
      if (graph->tasks[t].is_waited)
        {
          Tensor cell = make_tensor_external (&graph->cells[t % CELLS], one, 1, PTO_DTYPE_UINT64);
          uint64_t value;

          pto2_rt_get_element (rt, &cell, first, &value);
        }
    }
  return 0;
}

/* --- what the order ought to be --- */

struct oracle
{
  bool deps[TASKS_MAX][TASKS_MAX]; /* [t][u]: t waits for u */
  bool before[TASKS_MAX][TASKS_MAX];
};

static void
find_deps (const struct graph *graph, uint32_t without, struct oracle *oracle)
{
  int writer[CELLS];
  bool reads[CELLS][TASKS_MAX] = { 0 };

  memset (oracle, 0, sizeof *oracle);
  for (uint32_t c = 0; c < CELLS; c++)
    writer[c] = -1;
  for (uint32_t t = 0; t < graph->n; t++)
    {
      const struct task *task = &graph->tasks[t];

      for (uint32_t a = 0; a < task->n_accesses; a++)
        {
          uint32_t c = task->accesses[a].cell;
          PTOParamType type = task->accesses[a].type;
          uint32_t of_writer = type == PTO_PARAM_INPUT   ? PTO_HAZARD_RAW
                               : type == PTO_PARAM_INOUT ? PTO_HAZARD_RAW | PTO_HAZARD_WAW
                                                         : PTO_HAZARD_WAW;

          if (writer[c] >= 0 && (of_writer & ~without) != 0)
            oracle->deps[t][writer[c]] = true;
          if (type == PTO_PARAM_INPUT)
            {
              reads[c][t] = true;
              continue;
            }
          for (uint32_t u = 0; u < t; u++)
            if (reads[c][u] && (PTO_HAZARD_WAR & ~without) != 0)
              oracle->deps[t][u] = true;
          memset (reads[c], 0, sizeof reads[c]);
          writer[c] = (int) t;
        }
      for (uint32_t u = 0; u < t; u++)
        if (oracle->deps[t][u])
          {
            oracle->before[t][u] = true;
            for (uint32_t v = 0; v < u; v++)
              oracle->before[t][v] = oracle->before[t][v] || oracle->before[u][v];
          }
    }
}

/* 0: not; 1: for as long as can be; 2: by another one. */
static int
is_held (const struct pto_schedule *schedule, uint32_t t, const bool *done)
{
  int held = 0;

  for (uint32_t d = 0; d < schedule->n_delays; d++)
    if (schedule->delays[d].task != PTO_TASK_ID (0, t))
      continue;
    else if (schedule->delays[d].until == PTO_TASK_NONE)
      held = MAX (held, 1);
    else if (!done[PTO_TASK_LOCAL (schedule->delays[d].until)])
      held = 2;
  return held;
}

/* The next one of those that were submitted; -1: none. */
static int
find_next (const struct oracle *oracle, const struct pto_schedule *schedule, uint32_t n, bool must,
           const bool *done)
{
  int held[3] = { -1, -1, -1 };

  for (uint32_t t = 0; t < n; t++)
    {
      bool ready = !done[t];
      int *first = &held[is_held (schedule, t, done)];

      for (uint32_t u = 0; u < t; u++)
        ready = ready && (!oracle->deps[t][u] || done[u]);
      if (ready && *first < 0)
        *first = (int) t;
    }
  return held[0] >= 0 ? held[0] : !must ? -1 : held[1] >= 0 ? held[1] : held[2];
}

static void
expect_order (const struct graph *graph, const char *text, uint32_t order[])
{
  struct pto_schedule schedule;
  struct oracle oracle;
  bool done[TASKS_MAX] = { false };
  uint32_t n = 0;
  int next;

  g_assert_cmpint (pto_schedule_parse (&schedule, text, "schedule", NULL), ==, PTO_OK);
  find_deps (graph, schedule.without, &oracle);
  for (uint32_t t = 1; t <= graph->n; t++)
    while ((next = find_next (&oracle, &schedule, t, t == graph->n, done)) >= 0)
      {
        order[n++] = (uint32_t) next;
        done[next] = true;
      }
  g_assert_cmpuint (n, ==, graph->n);
  pto_schedule_clear (&schedule);
}

/* Each task of a graph without blocks once, behind all that it depends on. */
static void
assert_is_order (const struct graph *graph)
{
  struct oracle oracle;
  uint32_t position[TASKS_MAX];

  g_assert_cmpuint (graph->log.n, ==, graph->n);
  memset (position, 0xff, sizeof position);
  for (uint32_t i = 0; i < graph->n; i++)
    {
      g_assert_cmpuint (graph->log.order[i], <, graph->n);
      g_assert_cmpuint (position[graph->log.order[i]], ==, UINT32_MAX);
      position[graph->log.order[i]] = i;
    }
  find_deps (graph, 0, &oracle);
  for (uint32_t t = 0; t < graph->n; t++)
    for (uint32_t u = 0; u < t; u++)
      if (oracle.deps[t][u])
        g_assert_cmpuint (position[u], <, position[t]);
}

/* Any delays: of tasks by tasks before and behind them, and some for as long as can be. */
static char *
make_schedule (GRand *rand, uint32_t ring, uint32_t n)
{
  static const char *const without[] = { "", "", "", "without-raw", "without-waw", "without-war" };
  GString *text = g_string_new (without[g_rand_int_range (rand, 0, 6)]);
  int n_delays = g_rand_int_range (rand, text->len > 0 ? 0 : 1, 7);

  for (int d = 0; d < n_delays; d++)
    {
      uint32_t t = (uint32_t) g_rand_int_range (rand, 0, (int) n);
      uint32_t u = (t + (uint32_t) g_rand_int_range (rand, 1, (int) n)) % n;

      g_string_append (text, text->len > 0 ? "," : "");
      if (g_rand_int_range (rand, 0, 3) == 0)
        g_string_append_printf (text, "%u:%u-last", ring, t);
      else
        g_string_append_printf (text, "%u:%u-after-%u:%u", ring, t, ring, u);
    }
  return g_string_free (text, FALSE);
}

/* Thousands of graphs and schedules, each in just the order that it says. */
static void
test_delays (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);
  uint32_t expected[TASKS_MAX];

  for (uint32_t round = 0; round < SCALE (4000); round++)
    {
      g_autofree char *text = NULL;

      make_graph (rand, false, graph);
      text = make_schedule (rand, graph->in_scopes, graph->n);
      expect_order (graph, text, expected);
      run (chip, text, orchestrate_graph, graph);
      if (memcmp (graph->log.order, expected, graph->n * sizeof expected[0]) != 0
          || graph->log.n != graph->n)
        {
          for (uint32_t t = 0; t < graph->n; t++)
            g_printerr ("# %u instead of %u\n", graph->log.order[t], expected[t]);
          g_error ("%s", text);
        }
    }
  g_free (graph);
  g_rand_free (rand);
  pto_chip_free (chip);
}

/* Without delays tasks run as they were submitted, whatever cores and kernels cost. */
static void
test_in_order (enum pto_backend backend)
{
  static const char *const settings[]
      = { "", "clusters=1 aicpu-threads=2", "task-window=32", "seed=9 jitter=300" };
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);

  for (gsize s = 0; s < G_N_ELEMENTS (settings); s++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[s]);

      for (uint32_t round = 0; round < SCALE (100); round++)
        {
          make_graph (rand, false, graph);
          run (chip, "in-order", orchestrate_graph, graph);
          g_assert_cmpuint (graph->log.n, ==, graph->n);
          for (uint32_t t = 0; t < graph->n; t++)
            g_assert_cmpuint (graph->log.order[t], ==, t);
        }
      pto_chip_free (chip);
    }
  g_free (graph);
  g_rand_free (rand);
}

/* A seed is an order that dependencies allow, the same each time; seeds are different ones. */
static void
test_random (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  struct pto_chip *other = sim_chip (backend, "seed=4 jitter=80");
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);
  GHashTable *orders
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);

  /* None waits for another. */
  memset (graph, 0, sizeof *graph);
  graph->n = 12;
  for (uint32_t seed = 0; seed < 64; seed++)
    {
      g_autofree char *text = g_strdup_printf ("random-%u", seed);

      run (chip, text, orchestrate_graph, graph);
      g_hash_table_add (orders, g_bytes_new (graph->log.order, sizeof (uint32_t) * graph->n));
    }
  g_assert_cmpuint (g_hash_table_size (orders), >, 48);
  for (uint32_t round = 0; round < SCALE (1000); round++)
    {
      g_autofree char *text = g_strdup_printf ("random-%u", round);
      uint32_t order[TASKS_MAX];

      make_graph (rand, false, graph);
      run (chip, text, orchestrate_graph, graph);
      assert_is_order (graph);
      memcpy (order, graph->log.order, sizeof order);
      run (other, text, orchestrate_graph, graph);
      g_assert_cmpmem (order, graph->n * sizeof order[0], graph->log.order,
                       graph->n * sizeof order[0]);
    }
  g_hash_table_unref (orders);
  g_free (graph);
  g_rand_free (rand);
  pto_chip_free (chip);
  pto_chip_free (other);
}

/* Holding each back as long as can be, one at a time, runs every two that are in no order in both
 * orders. */
static void
test_pairs (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);
  struct oracle *oracle = g_new (struct oracle, 1);

  for (uint32_t round = 0; round < SCALE (60); round++)
    {
      make_graph (rand, false, graph);
      find_deps (graph, 0, oracle);
      for (uint32_t held = 0; held < graph->n; held++)
        {
          g_autofree char *text = g_strdup_printf ("0:%u-last", held);
          bool seen = false;

          run (chip, text, orchestrate_graph, graph);
          assert_is_order (graph);
          for (uint32_t i = 0; i < graph->n; i++)
            {
              uint32_t t = graph->log.order[i];

              seen = seen || t == held;
              /* All that do not come after it ran before it. */
              g_assert_cmpint (seen, ==, t == held || (t > held && oracle->before[t][held]));
            }
        }
    }
  g_free (oracle);
  g_free (graph);
  g_rand_free (rand);
  pto_chip_free (chip);
}

/* Small windows, blocks, updates in any order, scopes, priorities, an orchestration that waits: all
 * of it ends, with every part once. */
static void
test_no_deadlock (enum pto_backend backend)
{
  static const char *const settings[]
      = { "clusters=2 aicpu-threads=2 task-window=4 dep-pool=16",
          "clusters=4 aicpu-threads=3 task-window=16", "clusters=1 aicpu-threads=2 heap=4096" };
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);

  for (gsize s = 0; s < G_N_ELEMENTS (settings); s++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[s]);

      for (uint32_t round = 0; round < SCALE (1200); round++)
        {
          g_autofree char *text = NULL;
          uint32_t counts[TASKS_MAX] = { 0 };

          make_graph (rand, true, graph);
          if (round % 4 == 0)
            text = g_strdup_printf ("random-%u", round);
          else
            text = make_schedule (rand, graph->in_scopes, graph->n);
          run (chip, text, orchestrate_graph, graph);
          for (uint32_t i = 0; i < graph->log.n; i++)
            counts[graph->log.order[i]]++;
          for (uint32_t t = 0; t < graph->n; t++)
            g_assert_cmpuint (counts[t], ==, MAX (graph->tasks[t].n_blocks, 1));
        }
      pto_chip_free (chip);
    }
  g_free (graph);
  g_rand_free (rand);
}

/* --- single things --- */

static void
assert_log (const struct log *log, uint32_t n, ...)
{
  va_list numbers;

  g_assert_cmpuint (log->n, ==, n);
  va_start (numbers, n);
  for (uint32_t i = 0; i < n; i++)
    g_assert_cmpuint (log->order[i], ==, va_arg (numbers, unsigned int));
  va_end (numbers);
}

static struct graph *
independent (uint32_t n)
{
  struct graph *graph = g_new0 (struct graph, 1);

  graph->n = n;
  return graph;
}

static void
test_single (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  struct graph *graph = independent (5);

  run (chip, "0:1-after-0:3", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 2, 3, 1, 4);
  run (chip, "0:0-last", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 1, 2, 3, 4, 0);
  /* Of two that are held for ever the older one goes first, unless it waits for the other. */
  run (chip, "0:0-last,0:2-last", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 1, 3, 4, 0, 2);
  run (chip, "0:0-after-0:2,0:2-last", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 1, 3, 4, 2, 0);
  run (chip, "0:2-last,0:4-after-0:2", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 1, 3, 2, 4);
  /* Both of its delays hold; each waits for the other; who waits for what comes after it. */
  run (chip, "0:1-after-0:2,0:1-after-0:4", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 2, 3, 4, 1);
  run (chip, "0:1-after-0:2,0:2-after-0:1", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 3, 4, 1, 2);
  graph->tasks[1].n_accesses = graph->tasks[3].n_accesses = 1;
  graph->tasks[1].accesses[0].type = PTO_PARAM_OUTPUT_EXISTING;
  graph->tasks[3].accesses[0].type = PTO_PARAM_INPUT;
  run (chip, "0:1-after-0:3", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 2, 4, 1, 3);
  run (chip, "0:1-after-0:3,without-raw", orchestrate_graph, graph);
  assert_log (&graph->log, 5, 0, 2, 3, 1, 4);
  /* An ordinary run, after these. */
  run (chip, NULL, orchestrate_graph, graph);
  g_assert_cmpuint (graph->log.n, ==, 5);
  g_free (graph);
  pto_chip_free (chip);
}

/* Somebody waits for one that is held: it is let go. */
static void
test_waited (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct graph *graph = independent (4);

  graph->tasks[1].n_accesses = 1;
  graph->tasks[1].accesses[0] = (struct access){ 1, PTO_PARAM_INOUT };
  graph->tasks[1].is_waited = true;
  run (chip, "0:1-after-0:3", orchestrate_graph, graph);
  assert_log (&graph->log, 4, 0, 1, 2, 3);
  g_free (graph);
  pto_chip_free (chip);
}

/* Blocks of a task run together, whoever is ready meanwhile. */
static void
test_blocks (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct graph *graph = independent (4);

  graph->tasks[1].n_blocks = 7;
  run (chip, "0:1-after-0:2", orchestrate_graph, graph);
  assert_log (&graph->log, 10, 0, 2, 1, 1, 1, 1, 1, 1, 1, 3);
  g_free (graph);
  pto_chip_free (chip);
}

/* Those that update in any order do so as they are let go. */
static void
test_turns (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct graph *graph = independent (4);

  for (uint32_t t = 0; t < 3; t++)
    {
      graph->tasks[t].n_accesses = 1;
      graph->tasks[t].accesses[0] = (struct access){ 2, PTO_PARAM_COMMUTATIVE };
    }
  run (chip, "in-order", orchestrate_graph, graph);
  assert_log (&graph->log, 4, 0, 1, 2, 3);
  run (chip, "0:0-last", orchestrate_graph, graph);
  assert_log (&graph->log, 4, 1, 2, 3, 0);
  g_free (graph);
  pto_chip_free (chip);
}

static void
test_unknown (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct graph *graph = independent (3);
  struct pto_report report;

  try (chip, "0:3-last", orchestrate_graph, graph, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "schedule: there was no task 0:3 in this run",
                   "ring 0 had 3", NULL);
  /* It has run all the same. */
  assert_log (&graph->log, 3, 0, 1, 2);
  try (chip, "0:1-after-2:7", orchestrate_graph, graph, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "no task 2:7", "ring 2 had 0", NULL);
  run (chip, "0:2-last", orchestrate_graph, graph);
  g_free (graph);
  pto_chip_free (chip);
}

/* Elsewhere nobody knows when nothing else goes on. */
static void
test_back_ends (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct graph *graph = independent (3);
  struct pto_report report;
  enum pto_status status = try (chip, "in-order", orchestrate_graph, graph, NULL, &report);

  if (backend == PTO_BACKEND_DET)
    g_assert_cmpint (status, ==, PTO_OK);
  else
    sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "schedule", "back end det", NULL);
  g_free (graph);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* --- memory --- */

struct memory
{
  uint64_t seen;
  uint64_t read;
};

static int
orchestrate_memory (PTO2Runtime *rt, void *data)
{
  struct memory *memory = data;
  uint64_t *device = rt->ops->device_malloc (rt, sizeof *device);
  Tensor seen = make_tensor_external (&memory->seen, one, 1, PTO_DTYPE_UINT64);
  Tensor made;

  memory->read = device != NULL ? *device : 0;
  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (one, 1, PTO_DTYPE_UINT64);
  {
    PTOParam params[] = { make_output_param (made), make_output_existing_param (seen) };
    PTOParam store[] = { make_inout_param (made), make_scalar_param (77) };

    pto2_rt_submit_task (rt, PEEK, AIV, params, 2);
    pto2_rt_submit_task (rt, STORE, AIV, store, 2);
  }
  return 0;
}

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

/* What nobody has written is the same in every run, whatever was there before. */
static void
test_memory (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct memory memory = { 0, 0 };

  for (int round = 0; round < 3; round++)
    {
      run (chip, round == 1 ? NULL : "in-order", orchestrate_memory, &memory);
      if (round == 1)
        continue;
      g_assert_cmphex (memory.seen, ==, UINT64_C (0xa5a5a5a5a5a5a5a5));
      g_assert_cmphex (memory.read, ==, UINT64_MAX);
    }
  pto_chip_free (chip);
}

/* --- other runs --- */

/* A graph that is launched runs in the same orders. */
static void
test_launch (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  GRand *rand = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  struct graph *graph = g_new (struct graph, 1);
  struct pto_chip_arg args[CELLS] = { 0 };
  uint32_t expected[TASKS_MAX];

  for (uint32_t round = 0; round < SCALE (300); round++)
    {
      struct pto_plan *plan = pto_plan_new ();
      g_autofree char *text = NULL;
      struct pto_schedule schedule;
      struct pto_run_config config = { .args = args, .n_args = CELLS, .capture = plan };
      struct pto_report report = { 0 };

      make_graph (rand, false, graph);
      text = make_schedule (rand, graph->in_scopes, graph->n);
      for (uint32_t c = 0; c < CELLS; c++)
        {
          args[c].tensor = make_tensor_external (&graph->cells[c], one, 1, PTO_DTYPE_UINT64);
          args[c].word = args[c].tensor.buffer.addr;
        }
      g_assert_cmpint (
          pto_chip_run (chip, &program, &config, orchestrate_graph, graph, NULL, &report), ==,
          PTO_OK);
      expect_order (graph, text, expected);
      g_assert_cmpint (pto_schedule_parse (&schedule, text, "schedule", NULL), ==, PTO_OK);
      config = (struct pto_run_config){ .args = args, .n_args = CELLS, .schedule = &schedule };
      graph->log.n = 0;
      g_assert_cmpint (pto_chip_run (chip, &program, &config, launch, plan, NULL, &report), ==,
                       PTO_OK);
      g_test_message ("%s", text);
      g_assert_cmpmem (graph->log.order, graph->log.n * sizeof expected[0], expected,
                       graph->n * sizeof expected[0]);
      pto_schedule_clear (&schedule);
      pto_plan_free (plan);
    }
  g_free (graph);
  g_rand_free (rand);
  pto_chip_free (chip);
}

/* A record has the order as ascending times, and is the same each time. */
static void
note_start (const struct pto_trace_record *record, void *data)
{
  ((uint64_t *) data)[PTO_TASK_LOCAL (record->task)] = record->time;
}

static void
test_record (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=4 aicpu-threads=3");
  struct graph *graph = independent (8);
  struct pto_schedule schedule;
  struct pto_run_config config = { .schedule = &schedule, .record = PTO_TRACE_LEVEL_GRAPH };
  uint64_t starts[8];

  g_assert_cmpint (pto_schedule_parse (&schedule, "0:2-after-0:5", "schedule", NULL), ==, PTO_OK);
  g_assert_cmpint (pto_chip_run (chip, &program, &config, orchestrate_graph, graph, NULL, NULL), ==,
                   PTO_OK);
  sim_trace_each (pto_chip_trace (chip), PTO_TRACE_RUN, note_start, starts);
  assert_log (&graph->log, 8, 0, 1, 3, 4, 5, 2, 6, 7);
  for (uint32_t i = 1; i < 8; i++)
    g_assert_cmpuint (starts[graph->log.order[i - 1]], <, starts[graph->log.order[i]]);
  pto_schedule_clear (&schedule);
  g_free (graph);
  pto_chip_free (chip);
}

static int
orchestrate_crash (PTO2Runtime *rt, void *data)
{
  struct graph *graph = data;

  orchestrate_graph (rt, graph);
  pto2_rt_submit_task (rt, CRASH, AIV, NULL, 0);
  return 0;
}

/* A run that fails lets go of all that are held, and the next one has its own order. */
static void
test_failure (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct graph *graph = independent (6);
  struct pto_report report;
  struct pto_run_stats stats;

  g_assert_cmpint (try (chip, "0:1-last,0:3-last", orchestrate_crash, graph, &stats, &report), ==,
                   PTO_STATUS_KERNEL_FAULT);
  sim_assert_says (&report, PTO_STATUS_KERNEL_FAULT, "task 6 of ring 0 (crash)", NULL);
  assert_log (&graph->log, 4, 0, 2, 4, 5);
  g_assert_cmpuint (stats.completed, ==, stats.tasks);
  run (chip, "0:1-last", orchestrate_graph, graph);
  assert_log (&graph->log, 6, 0, 2, 3, 4, 5, 1);
  g_free (graph);
  pto_chip_free (chip);
}

#define BLOCKS 6

static int
submit_blocks (PTO2Runtime *rt, void *data)
{
  const bool at_once = *(const bool *) data;
  PTOParam params[] = { make_scalar_param ((uint64_t) (uintptr_t) &block_log) };

  if (at_once)
    pto2_rt_submit_sync_task (rt, NOTE_BLOCK, AIV, params, 1, BLOCKS);
  else
    pto2_rt_submit_block_task (rt, NOTE_BLOCK, AIV, params, 1, BLOCKS);
  return 0;
}

/* Blocks go in their order unless priorities are random; each of them runs once, every two in both
 * orders, and the same text gives the same order. */
static void
test_order_of_blocks (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  const guint seeds = RUN_SHORT ? 20 : 200;

  for (int at_once = 0; at_once < 2; at_once++)
    {
      bool together = at_once != 0;
      bool first[BLOCKS][BLOCKS] = { { false } };

      for (guint seed = 0; seed <= seeds; seed++)
        {
          g_autofree char *text
              = seed == 0 ? g_strdup ("in-order") : g_strdup_printf ("random-%u", seed);
          struct log before;
          guint position[BLOCKS];

          memset (position, 0xff, sizeof position);
          for (guint again = 0; again < 2; again++)
            {
              before = block_log;
              block_log.n = 0;
              run (chip, text, submit_blocks, &together);
              g_assert_cmpuint (block_log.n, ==, BLOCKS);
            }
          g_assert_cmpmem (before.order, BLOCKS * sizeof before.order[0], block_log.order,
                           BLOCKS * sizeof block_log.order[0]);
          for (guint b = 0; b < BLOCKS; b++)
            {
              g_assert_cmpuint (block_log.order[b], <, BLOCKS);
              g_assert_cmpuint (position[block_log.order[b]], ==, G_MAXUINT);
              position[block_log.order[b]] = b;
              if (seed == 0 && !together)
                g_assert_cmpuint (block_log.order[b], ==, b);
            }
          for (guint a = 0; a < BLOCKS; a++)
            for (guint b = 0; b < BLOCKS; b++)
              first[a][b] = first[a][b] || (seed > 0 && position[a] < position[b]);
        }
      for (guint a = 0; a < BLOCKS; a++)
        for (guint b = 0; b < BLOCKS; b++)
          g_assert_true (a == b || first[a][b]);
    }
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add_once ("order/in-order", test_in_order);
  sim_add_once ("order/single", test_single);
  sim_add_once ("order/delays", test_delays);
  sim_add_once ("order/random", test_random);
  sim_add_once ("order/pairs", test_pairs);
  sim_add_once ("order/no-deadlock", test_no_deadlock);
  sim_add_once ("order/waited", test_waited);
  sim_add_once ("order/blocks", test_blocks);
  sim_add_once ("order/of-blocks", test_order_of_blocks);
  sim_add_once ("order/turns", test_turns);
  sim_add_once ("order/unknown", test_unknown);
  sim_add ("order/back-ends", test_back_ends);
  sim_add_once ("order/memory", test_memory);
  sim_add_once ("order/launch", test_launch);
  sim_add_once ("order/record", test_record);
  sim_add_once ("order/failure", test_failure);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
