/* test-statistics.c: does every figure of a run say what its name says?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the test knows: how many tasks it submits, in which ring, how much each outputs, how long
 * its kernels run at least, and how long the run took at most.
 */
#include "config.h"

#include "level-test.h"

#include "../../pto/values/run-statistics.h"
#include "../../pto/process/arena.h"

#include <string.h>

enum
{
  SPIN_NS = 100000,
  N_CHAIN = 10,
  N_SCOPES = 6,
  PER_SCOPE = 10,
  WINDOW = 16,
  GUARD = 64
};

/* --- one figure each --- */

static const struct pto_run_stats distinct = { .tasks = 101,
                                               .completed = 102,
                                               .failed = 103,
                                               .edges = 104,
                                               .run_ns = 105,
                                               .virtual_ns = 106,
                                               .busy_ns = { 3000, 7000 },
                                               .cores = { 2, 5 },
                                               .elapsed_ns = 10000,
                                               .peak_live_tasks = 107,
                                               .recycled = 108,
                                               .last_task_alive = { 11, 12, 13, 14 },
                                               .ring_tasks = { 21, 22, 23, 24 },
                                               .heap_peak = { 31, 32, 33, 34 },
                                               .stalls = 109,
                                               .bytes_sent = 110,
                                               .bytes_received = 111,
                                               .bytes_saved = 112 };

static void
test_to_string (void)
{
  static const char *const expected[]
      = { "0 tasks, 0 edges, 3 failed, 7 ns", "1 task, 0 edges, 3 failed, 7 ns",
          "2 tasks, 1 edge, 3 failed, 7 ns" };

  for (guint n = 0; n < G_N_ELEMENTS (expected); n++)
    {
      struct pto_run_stats stats = { .tasks = n, .edges = n / 2, .failed = 3, .run_ns = 7 };
      g_autoptr (PtoRunStatistics) statistics = pto_run_statistics_new (&stats);
      g_autofree char *text = pto_run_statistics_to_string (statistics);

      g_assert_cmpstr (text, ==, expected[n]);
    }
}

static void
test_getters (void)
{
  PtoRunStatistics *made = pto_run_statistics_new (&distinct);
  g_autoptr (PtoRunStatistics) s = pto_run_statistics_copy (made);

  pto_run_statistics_free (made);
  g_assert_cmpuint (pto_run_statistics_get_tasks (s), ==, 101);
  g_assert_cmpuint (pto_run_statistics_get_completed (s), ==, 102);
  g_assert_cmpuint (pto_run_statistics_get_failed (s), ==, 103);
  g_assert_cmpuint (pto_run_statistics_get_edges (s), ==, 104);
  g_assert_cmpuint (pto_run_statistics_get_run_ns (s), ==, 105);
  g_assert_cmpuint (pto_run_statistics_get_virtual_ns (s), ==, 106);
  g_assert_cmpuint (pto_run_statistics_get_elapsed_ns (s), ==, 10000);
  g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), ==, 107);
  g_assert_cmpuint (pto_run_statistics_get_recycled (s), ==, 108);
  g_assert_cmpuint (pto_run_statistics_get_stalls (s), ==, 109);
  g_assert_cmpuint (pto_run_statistics_get_bytes_sent (s), ==, 110);
  g_assert_cmpuint (pto_run_statistics_get_bytes_received (s), ==, 111);
  g_assert_cmpuint (pto_run_statistics_get_bytes_saved (s), ==, 112);
  g_assert_cmpuint (pto_run_statistics_get_busy_ns (s, PTO_CORE_AIC), ==, 3000);
  g_assert_cmpuint (pto_run_statistics_get_busy_ns (s, PTO_CORE_AIV), ==, 7000);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (s, PTO_CORE_AIC), ==, 2);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (s, PTO_CORE_AIV), ==, 5);
  g_assert_cmpfloat_with_epsilon (pto_run_statistics_get_utilization (s, PTO_CORE_AIC), 0.15, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_run_statistics_get_utilization (s, PTO_CORE_AIV), 0.14, 1e-9);
  for (guint r = 0; r < PTO_N_RINGS; r++)
    {
      g_assert_cmpuint (pto_run_statistics_get_last_task_alive (s, r), ==, 11 + r);
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, r), ==, 21 + r);
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, r), ==, 31 + r);
    }
}

/* What is not there is 0, and not what lies beside it. */
static void
test_indices (void)
{
  static const guint others[] = { PTO_N_RINGS, PTO_N_RINGS + 1, 1 << 20, G_MAXUINT };
  struct pto_run_stats stats = distinct;
  g_autoptr (PtoRunStatistics) s = NULL;

  stats.cut_off = G_MAXUINT64;
  s = pto_run_statistics_new (&stats);
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      PtoCoreType type = (PtoCoreType) (others[i] == PTO_N_RINGS ? 2 : others[i]);

      g_assert_cmpuint (pto_run_statistics_get_last_task_alive (s, others[i]), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, others[i]), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, others[i]), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_busy_ns (s, type), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_n_cores (s, type), ==, 0);
      g_assert_cmpfloat (pto_run_statistics_get_utilization (s, type), ==, 0);
    }
}

/* Nothing to divide by is a share of nothing. */
static void
test_empty (void)
{
  struct pto_run_stats stats = distinct;

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoRunStatistics) s = NULL;

      stats.elapsed_ns = i == 0 ? 0 : 10000;
      stats.cores[PTO_CORE_AIV] = 0;
      s = pto_run_statistics_new (&stats);
      g_assert_cmpfloat (pto_run_statistics_get_utilization (s, PTO_CORE_AIV), ==, 0);
      g_assert_cmpfloat_with_epsilon (pto_run_statistics_get_utilization (s, PTO_CORE_AIC),
                                      i == 0 ? 0 : 0.15, 1e-9);
    }
}

static void
test_boxed (void)
{
  g_auto (GValue) value = G_VALUE_INIT;
  PtoRunStatistics *s = pto_run_statistics_new (&distinct);

  g_value_init (&value, PTO_TYPE_RUN_STATISTICS);
  g_value_take_boxed (&value, s);
  s = g_value_dup_boxed (&value);
  g_assert_cmpuint (pto_run_statistics_get_stalls (s), ==, 109);
  pto_run_statistics_free (s);
}

/* --- of a chip --- */

static const char spin_kernel[] = "#include \"tensor.h\"\n"
                                  "#include <time.h>\n"
                                  "static uint64_t now (void)\n"
                                  "{\n"
                                  "  struct timespec t;\n"
                                  "  clock_gettime (CLOCK_MONOTONIC, &t);\n"
                                  "  return (uint64_t) t.tv_sec * 1000000000u + t.tv_nsec;\n"
                                  "}\n"
                                  "void kernel_entry (int64_t *args)\n"
                                  "{\n"
                                  "  const TensorData *out = (const TensorData *) args[0];\n"
                                  "  uint64_t *word = (uint64_t *) out->buffer.addr;\n"
                                  "  uint64_t end = now () + (uint64_t) args[1];\n"
                                  "  while (now () < end)\n"
                                  "    ;\n"
                                  "  word[0] = word[0] + 1;\n"
                                  "}\n";

typedef struct
{
  PtoCallable *spin;
  PtoTensor *word;
  PtoBuffer *buffer;
} Chip;

static gboolean
spin (PtoOrchestrator *orchestrator, Chip *chip, PtoTensor *tensor, PtoDirection direction,
      guint64 ns, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, tensor, direction);
  pto_task_args_add_scalar (args, ns);
  return pto_orchestrator_submit (orchestrator, chip->spin, args, error);
}

/* One after the other, in ring 0; then one task in each ring, of 10000 bytes more each time. */
static gboolean
chain (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Chip *chip = data;

  for (guint i = 0; i < N_CHAIN; i++)
    if (!spin (orchestrator, chip, chip->word, PTO_DIRECTION_INOUT, SPIN_NS, error))
      return FALSE;
  for (guint64 ring = 0; ring < PTO_N_RINGS; ring++)
    {
      guint64 shape = 10000 * (ring + 1);
      g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_UINT8, 1, &shape);

      if (!spin (orchestrator, chip, tensor, PTO_DIRECTION_OUTPUT, 0, error)
          || (ring + 1 < PTO_N_RINGS && !pto_orchestrator_begin_scope (orchestrator, error)))
        return FALSE;
    }
  for (guint ring = 1; ring < PTO_N_RINGS; ring++)
    if (!pto_orchestrator_end_scope (orchestrator, error))
      return FALSE;
  return TRUE;
}

/* Scopes of ten through a window of sixteen. */
static gboolean
scopes (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  for (guint s = 0; s < N_SCOPES; s++)
    {
      if (!pto_orchestrator_begin_scope (orchestrator, error))
        return FALSE;
      for (guint i = 0; i < PER_SCOPE; i++)
        {
          guint64 shape = 1000;
          g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_UINT8, 1, &shape);

          if (!spin (orchestrator, data, tensor, PTO_DIRECTION_OUTPUT, 0, error))
            return FALSE;
        }
      if (!pto_orchestrator_end_scope (orchestrator, error))
        return FALSE;
    }
  return TRUE;
}

static guint
count_words (const char *text, const char *word)
{
  guint n = 0;

  for (const char *p = strstr (text, word); p != NULL; p = strstr (p + 1, word))
    n++;
  return n;
}

static PtoRunStatistics *
run (PtoWorker *worker, PtoOrchestrationFunc graph, gpointer data, guint64 *outside)
{
  g_autoptr (GError) error = NULL;
  gint64 start = g_get_monotonic_time ();

  pto_worker_run (worker, graph, data, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  /* Microseconds, of which the first and the last are cut off. */
  *outside = (guint64) (g_get_monotonic_time () - start + 1) * 1000;
  return pto_worker_dup_statistics (worker);
}

static guint64
in_heap (guint64 bytes)
{
  return (bytes + GUARD + 1023) / 1024 * 1024;
}

static void
check_chain (PtoWorker *worker, Chip *chip, gboolean is_virtual)
{
  const guint64 spent = (guint64) N_CHAIN * SPIN_NS;
  guint64 outside;
  g_autoptr (PtoRunStatistics) s = run (worker, chain, chip, &outside);
  guint64 elapsed = pto_run_statistics_get_elapsed_ns (s);
  guint64 busy = pto_run_statistics_get_busy_ns (s, PTO_CORE_AIV);

  g_assert_cmpuint (pto_run_statistics_get_tasks (s), ==, N_CHAIN + PTO_N_RINGS);
  g_assert_cmpuint (pto_run_statistics_get_completed (s), ==, N_CHAIN + PTO_N_RINGS);
  g_assert_cmpuint (pto_run_statistics_get_failed (s), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_edges (s), ==, N_CHAIN - 1);
  g_assert_cmpuint (pto_run_statistics_get_recycled (s), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_stalls (s), ==, 0);
  /* All are held by open scopes until the last one is submitted. */
  g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), ==, N_CHAIN + PTO_N_RINGS);
  for (guint r = 0; r < PTO_N_RINGS; r++)
    {
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, r), ==, r == 0 ? N_CHAIN + 1 : 1);
      g_assert_cmpuint (pto_run_statistics_get_last_task_alive (s, r), ==,
                        r == 0 ? N_CHAIN + 1 : 1);
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, r), ==, in_heap (10000 * (r + 1)));
    }
  g_assert_cmpuint (pto_run_statistics_get_run_ns (s), >=, spent);
  g_assert_cmpuint (pto_run_statistics_get_run_ns (s), <=, outside);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (s, PTO_CORE_AIC), ==, 4);
  g_assert_cmpuint (pto_run_statistics_get_n_cores (s, PTO_CORE_AIV), ==, 8);
  g_assert_cmpuint (pto_run_statistics_get_busy_ns (s, PTO_CORE_AIC), ==, 0);
  if (is_virtual)
    {
      /* What a kernel costs there was set, whatever it takes here. */
      g_assert_cmpuint (busy, ==, (N_CHAIN + PTO_N_RINGS) * 7000);
      g_assert_cmpuint (pto_run_statistics_get_virtual_ns (s), ==, elapsed);
      g_assert_cmpuint (elapsed, >=, N_CHAIN * 7000);
      g_assert_cmpuint (elapsed, <, spent);
    }
  else
    {
      g_assert_cmpuint (busy, >=, spent * 99 / 100);
      g_assert_cmpuint (pto_run_statistics_get_virtual_ns (s), ==, 0);
      g_assert_cmpuint (elapsed, >=, spent * 99 / 100);
      g_assert_cmpuint (elapsed, <=, outside + outside / 100);
    }
  g_assert_cmpfloat_with_epsilon (pto_run_statistics_get_utilization (s, PTO_CORE_AIV),
                                  (double) busy / (double) elapsed / 8, 1e-9);
  g_assert_cmpfloat (pto_run_statistics_get_utilization (s, PTO_CORE_AIC), ==, 0);
}

static void
check_scopes (PtoWorker *worker, Chip *chip)
{
  guint64 outside;
  g_autoptr (PtoRunStatistics) s = run (worker, scopes, chip, &outside);
  g_autoptr (PtoTrace) trace = pto_worker_ref_trace (worker);
  g_autofree char *json = pto_trace_to_json (trace);

  g_assert_cmpuint (pto_run_statistics_get_tasks (s), ==, N_SCOPES * PER_SCOPE);
  g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, 1), ==, N_SCOPES * PER_SCOPE);
  g_assert_cmpuint (pto_run_statistics_get_last_task_alive (s, 1), ==, N_SCOPES * PER_SCOPE);
  g_assert_cmpuint (pto_run_statistics_get_recycled (s), ==, N_SCOPES * PER_SCOPE - WINDOW);
  g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), >=, PER_SCOPE);
  g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), <, WINDOW);
  g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, 1), ==,
                    pto_run_statistics_get_peak_live_tasks (s) * in_heap (1000));
  g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, 0), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_edges (s), ==, 0);
  g_assert_cmpuint (pto_run_statistics_get_stalls (s), ==, count_words (json, "\"cat\":\"stall\""));
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, N_SCOPES * PER_SCOPE);
  g_assert_cmpuint (count_words (json, "\"cat\":\"kernel\""), ==, N_SCOPES * PER_SCOPE);
}

static void
test_chip (gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  Chip chip = { .buffer = pto_buffer_new (4096, NULL) };
  char *dir = object_test_make_dir ();
  const char *const settings[]
      = { "backend", backend,       "clusters", "4",     "utilization", "1", "guard",
          "64",      "task-window", "16",       "trace", "1",           NULL };
  PtoWorker *worker = pto_worker_new_chip (NULL, &error);
  guint64 shape = 1;

  g_assert_no_error (error);
  for (guint i = 0; settings[i] != NULL; i += 2)
    g_assert_true (pto_worker_set_parameter (worker, settings[i], settings[i + 1], &error));
  chip.spin = object_test_kernel (dir, "spin.c", spin_kernel);
  g_assert_true (pto_kernel_set_cost (PTO_KERNEL (chip.spin), "constant:7000", &error));
  g_assert_no_error (error);
  chip.word = pto_tensor_new_for_buffer (chip.buffer, 0, PTO_DTYPE_UINT64, 1, &shape, &error);
  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);

  g_assert_null (pto_worker_dup_statistics (worker));
  for (guint i = 0; i < 3; i++)
    check_chain (worker, &chip, strcmp (backend, "det") == 0);
  g_assert_cmpuint (*(guint64 *) (guintptr) pto_buffer_get_address (chip.buffer), ==, 3 * N_CHAIN);
  check_scopes (worker, &chip);

  g_assert_finalize_object (worker);
  pto_tensor_unref (chip.word);
  pto_buffer_unref (chip.buffer);
  g_assert_finalize_object (chip.spin);
  object_test_remove_dir (dir);
}

/* --- of a level --- */

typedef struct
{
  LevelTestBoard board;
  PtoCallableHandle *handle;
  gboolean fails;
} Level;

/* Waits so many ns, counts itself; fails when it is told to. */
static gboolean
work (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  g_usleep (pto_task_args_get_scalar (args, 1) / 1000);
  if (atomic_fetch_add (&words[0], 1) + 1 != atomic_load (&words[1]))
    return TRUE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "it was to fail");
  return FALSE;
}

static gboolean
level_chain (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Level *level = data;

  for (guint i = 0; i < N_CHAIN; i++)
    if (!level_test_submit (orchestrator, level->handle, level->board.tensor, PTO_DIRECTION_INOUT,
                            SPIN_NS, -1, error))
      return FALSE;
  for (guint s = 0; s < N_SCOPES; s++)
    {
      guint64 shape = 3000;
      g_autoptr (PtoTensor) tensor = NULL;

      if (!pto_orchestrator_begin_scope (orchestrator, error))
        return FALSE;
      tensor = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_UINT8, 1, &shape, error);
      if (tensor == NULL || !pto_orchestrator_end_scope (orchestrator, error))
        return FALSE;
    }
  return TRUE;
}

static void
test_level (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Level level = { 0 };
  PtoWorker *worker;

  level_test_begin (&state);
  level_test_board_init (&level.board);
  worker = level_test_host (3, 0, 2);
  g_assert_true (pto_worker_set_parameter (worker, "task-window", "16", &error));
  level.handle = level_test_register (worker, "work", work);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  for (guint64 failing = 0; failing <= 4; failing += 4)
    {
      guint64 failed = failing > 0 ? N_CHAIN - failing + 1 : 0;
      gint64 start = g_get_monotonic_time ();
      g_autoptr (PtoRunStatistics) s = NULL;
      guint64 outside, run_ns;

      level.board.words[0] = 0;
      level.board.words[1] = failing;
      g_assert_true (pto_worker_run (worker, level_chain, &level, NULL, NULL, NULL, &error)
                     == (failing == 0));
      g_clear_error (&error);
      outside = (guint64) (g_get_monotonic_time () - start + 1) * 1000;
      s = pto_worker_dup_statistics (worker);
      run_ns = pto_run_statistics_get_run_ns (s);
      g_assert_cmpuint (level.board.words[0], ==, N_CHAIN - (failed > 0 ? failed - 1 : 0));
      g_assert_cmpuint (pto_run_statistics_get_tasks (s), ==, pto_run_statistics_get_completed (s));
      g_assert_cmpuint (pto_run_statistics_get_failed (s), ==, failed);
      g_assert_cmpuint (pto_run_statistics_get_edges (s), ==, N_CHAIN - 1);
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, 0), ==, N_CHAIN);
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, 1), ==,
                        pto_run_statistics_get_tasks (s) - N_CHAIN);
      g_assert_cmpuint (pto_run_statistics_get_ring_tasks (s, 2), ==, 0);
      for (guint r = 0; r < PTO_N_RINGS; r++)
        g_assert_cmpuint (pto_run_statistics_get_last_task_alive (s, r), ==,
                          pto_run_statistics_get_ring_tasks (s, r));
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, 0), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, 1), >=, 3072);
      g_assert_cmpuint (pto_run_statistics_get_heap_peak (s, 1) % 1024, ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), >=, N_CHAIN);
      g_assert_cmpuint (pto_run_statistics_get_peak_live_tasks (s), <=,
                        pto_run_statistics_get_tasks (s));
      g_assert_cmpuint (pto_run_statistics_get_recycled (s), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_stalls (s), ==, 0);
      g_assert_cmpuint (run_ns, >=, (N_CHAIN - failed) * SPIN_NS);
      g_assert_cmpuint (run_ns, <=, outside);
      g_assert_cmpuint (pto_run_statistics_get_elapsed_ns (s), ==, run_ns);
      g_assert_cmpuint (pto_run_statistics_get_virtual_ns (s), ==, 0);
      for (PtoCoreType t = PTO_CORE_AIC; t <= PTO_CORE_AIV; t++)
        {
          g_assert_cmpuint (pto_run_statistics_get_n_cores (s, t), ==, 0);
          g_assert_cmpuint (pto_run_statistics_get_busy_ns (s, t), ==, 0);
          g_assert_cmpfloat (pto_run_statistics_get_utilization (s, t), ==, 0);
        }
    }
  pto_callable_handle_unref (level.handle);
  g_assert_finalize_object (worker);
  level_test_board_clear (&level.board);
  level_test_end (&state);
}

/* Where the next small piece of the memory that children see would lie. */
static guint64
next_of_arena (void)
{
  guint64 address = pto_arena_alloc (64);

  g_assert_cmpuint (address, !=, 0);
  pto_arena_free (address, 64);
  return address;
}

/* What a level asks its workers for, with the answers, is given back. */
static void
test_level_memory (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Level level = { 0 };
  PtoWorker *worker;
  guint64 next = 0;

  level_test_begin (&state);
  level_test_board_init (&level.board);
  worker = level_test_host (3, 2, 1);
  g_assert_true (pto_worker_set_parameter (worker, "trace", "1", &error));
  level.handle = level_test_register (worker, "work", work);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (PtoTrace) trace = NULL;

      pto_worker_run (worker, level_chain, &level, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      trace = pto_worker_ref_trace (worker);
      g_assert_nonnull (trace);
      if (i == 0)
        next = next_of_arena ();
      else
        g_assert_cmphex (next_of_arena (), ==, next);
    }
  pto_callable_handle_unref (level.handle);
  g_assert_finalize_object (worker);
  level_test_board_clear (&level.board);
  level_test_end (&state);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/statistics/to-string", test_to_string);
  g_test_add_func ("/pto/statistics/getters", test_getters);
  g_test_add_func ("/pto/statistics/indices", test_indices);
  g_test_add_func ("/pto/statistics/empty", test_empty);
  g_test_add_func ("/pto/statistics/boxed", test_boxed);
  g_test_add_data_func ("/pto/statistics/chip/par", "par", test_chip);
  g_test_add_data_func ("/pto/statistics/chip/det", "det", test_chip);
  g_test_add_data_func ("/pto/statistics/chip/threads", "threads", test_chip);
  g_test_add_func ("/pto/statistics/level", test_level);
  g_test_add_func ("/pto/statistics/level/memory", test_level_memory);
  return g_test_run ();
}
