/* test-blocked.c: is somebody told of a submit that waits for room?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task stays until it was told so often that submits behind it wait; on det for a time of the
 * virtual clock.
 */
#include "sim-test.h"

#include "../../sim/chip-private.h"

#define HOLD_NS 3e9

static struct
{
  struct pto_chip *chip;
  struct pto_word open;
  guint open_at; /* so many lines */
  GPtrArray *lines;
} shared;

static uint64_t words[64];
static _Atomic uint32_t counted;

static void
kernel_hold (int64_t *args)
{
  struct pto_exec *exec = shared.chip->machine.engine.exec;

  while (shared.open_at > 0 && pto_word_get (&shared.open) == 0)
    pto_park (exec, &shared.open, 0, PTO_NEVER);
}

static void
kernel_count (int64_t *args)
{
  atomic_fetch_add (&counted, 1);
}

enum
{
  HOLD,
  COUNT
};

static const struct pto_kernel kernels[] = {
  [HOLD] = { "hold", kernel_hold, PTO_CORE_TYPE_AIV, { .base_ns = HOLD_NS } },
  [COUNT] = { "count", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static void
hear (void *data, int32_t severity, const char *message)
{
  g_assert_cmpint (severity, ==, PTO2_LOG_WARN);
  g_test_message ("%s", message);
  g_ptr_array_add (shared.lines, g_strdup (message));
  if (shared.lines->len == shared.open_at)
    pto_word_set (shared.chip->machine.engine.exec, &shared.open, 1);
}

/* open_at 0: the task holds what it has for its cost alone. */
static struct pto_chip *
chip_with (enum pto_backend backend, const char *settings, guint open_at)
{
  shared.chip = sim_chip (backend, settings);
  shared.open_at = backend == PTO_BACKEND_DET ? 0 : open_at;
  shared.lines = g_ptr_array_new_with_free_func (g_free);
  pto_word_init (&shared.open, 0, false);
  pto_chip_set_log (shared.chip, hear, NULL);
  atomic_store (&counted, 0);
  return shared.chip;
}

static void
free_chip (void)
{
  pto_chip_free (shared.chip);
  g_ptr_array_unref (shared.lines);
}

/* --- what runs short --- */

#define BEHIND 40u

static void
submit_scoped (PTO2Runtime *rt, int32_t kernel, PTOParam *params, int32_t n)
{
  pto2_rt_scope_begin (rt);
  pto2_rt_submit_task (rt, kernel, AIV, params, n);
  pto2_rt_scope_end (rt);
}

static int
nothing_else (PTO2Runtime *rt, void *data)
{
  submit_scoped (rt, HOLD, NULL, 0);
  for (uint32_t i = 0; i < BEHIND; i++)
    submit_scoped (rt, COUNT, NULL, 0);
  return 0;
}

static int
outputs (PTO2Runtime *rt, void *data)
{
  static const uint64_t kib[] = { 1024 };

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i <= BEHIND; i++)
    {
      PTOParam param;

      pto2_rt_scope_begin (rt);
      param = make_output_param (make_tensor (kib, 1, PTO_DTYPE_UINT8));
      pto2_rt_submit_task (rt, i == 0 ? HOLD : COUNT, AIV, &param, 1);
      pto2_rt_scope_end (rt);
    }
  return 0;
}

/* More is free than there was at one time, but not enough. */
static int
larger_outputs (PTO2Runtime *rt, void *data)
{
  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i <= BEHIND; i++)
    {
      const uint64_t bytes[] = { i == 0 ? 4096 : i == 1 ? 3072 : 2048 };
      PTOParam param;

      pto2_rt_scope_begin (rt);
      param = make_output_param (make_tensor (bytes, 1, PTO_DTYPE_UINT8));
      pto2_rt_submit_task (rt, i == 1 ? HOLD : COUNT, AIV, &param, 1);
      pto2_rt_scope_end (rt);
    }
  return 0;
}

static int
readers (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 };
  Tensor word = make_tensor_external (words, one, 1, PTO_DTYPE_UINT64);
  PTOParam write = make_output_existing_param (word);
  PTOParam read = make_input_param (word);

  submit_scoped (rt, HOLD, &write, 1);
  for (uint32_t i = 0; i < BEHIND; i++)
    submit_scoped (rt, COUNT, &read, 1);
  return 0;
}

static int
writers (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 };

  for (uint32_t i = 0; i <= BEHIND; i++)
    {
      PTOParam write
          = make_output_existing_param (make_tensor_external (&words[i], one, 1, PTO_DTYPE_UINT64));

      submit_scoped (rt, i == 0 ? HOLD : COUNT, &write, 1);
    }
  return 0;
}

/* Of the one cluster there is. */
static int
clusters (PTO2Runtime *rt, void *data)
{
  for (uint32_t i = 0; i <= BEHIND; i++)
    {
      int32_t cluster = pto2_rt_allocate_cluster (rt);

      if (cluster < 0)
        return 1;
      pto2_rt_submit_task_clustered (rt, i == 0 ? HOLD : COUNT, AIV, NULL, 0, cluster);
      pto2_rt_free_cluster (rt, cluster);
    }
  return 0;
}

static const struct
{
  const char *settings;
  SimOrchestration orchestrate;
  const char *begin;
  const char *end;
  bool timed; /* in real time other waits could be long enough, too */
} shortages[] = {
  { "task-window=4", nothing_else,
    "[TaskRing] BLOCKED (Flow Control): ring=1, current=3, last_alive=0, active=3/3 (100.0%), "
    "waited=",
    " ms: for submits to go on, set task-window to 8 or more" },
  { "guard=0 heap=4K", outputs,
    "[HeapRing] BLOCKED: ring=1, requesting 1024 bytes, available=0, top=4096, tail=0, "
    "active=4096/4096 (100.0%), waited=",
    " ms: for submits to go on, set heap to 8192 or more" },
  { "guard=0 heap=4K", larger_outputs,
    "[HeapRing] BLOCKED: ring=1, requesting 2048 bytes, available=1024, top=3072, tail=0, "
    "active=3072/4096 (75.0%), waited=",
    " ms: for submits to go on, set heap to 8192 or more", true },
  { "dep-pool=16", readers,
    "[DepPool] BLOCKED: ring=1, requesting 1 of 16 edges, active=16/16 (100.0%), waited=",
    " ms: for submits to go on, set dep-pool to 32 or more" },
  { "map-pool=16", writers,
    "[TensorMap] BLOCKED: requesting 1 of 16 nodes, active=16/16 (100.0%), waited=",
    " ms: for submits to go on, set map-pool to 32 or more" },
  { "clusters=1 aicpu-threads=2", clusters,
    "[Cluster] BLOCKED: no free cluster, held=0, active=1/1 (100.0%), waited=",
    " ms: for submits to go on, set clusters to more" },
};

/* How long it says, in ms. */
static uint64_t
waited (guint line)
{
  return g_ascii_strtoull (strstr (g_ptr_array_index (shared.lines, line), "waited=") + 7, NULL,
                           10);
}

static void
test_every_ring (enum pto_backend backend)
{
  for (gsize i = 0; i < G_N_ELEMENTS (shortages); i++)
    {
      g_autofree char *settings = g_strconcat ("blocked-notice=10 ", shortages[i].settings, NULL);
      struct pto_chip *chip;

      if (shortages[i].timed && backend != PTO_BACKEND_DET)
        continue;
      chip = chip_with (backend, settings, 3);
      sim_run (chip, &program, shortages[i].orchestrate, NULL, NULL);
      g_assert_cmpuint (atomic_load (&counted), ==, BEHIND);
      /* A virtual clock passes all at once; otherwise after each line the next one takes twice as
       * long. */
      if (backend == PTO_BACKEND_DET)
        g_assert_cmpuint (shared.lines->len, ==, 1);
      else
        g_assert_cmpuint (shared.lines->len, >=, 3);
      for (guint n = 0; n < shared.lines->len; n++)
        {
          const char *line = g_ptr_array_index (shared.lines, n);

          /* Later submits wait for so long on a busy machine only. */
          if (n >= 3 && !g_str_has_prefix (line, shortages[i].begin))
            break;
          if (!g_str_has_prefix (line, shortages[i].begin))
            g_assert_cmpstr (line, ==, shortages[i].begin);
          if (!g_str_has_suffix (line, shortages[i].end))
            g_assert_cmpstr (line, ==, shortages[i].end);
          g_assert_cmpuint (waited (n), >=, UINT64_C (10) << n);
        }
      free_chip ();
    }
}

/* --- by the virtual clock, to the millisecond --- */

static int
twice (PTO2Runtime *rt, void *data)
{
  nothing_else (rt, NULL);
  return nothing_else (rt, NULL);
}

static void
test_once (enum pto_backend backend)
{
  struct pto_chip *chip = chip_with (backend, "task-window=4", 0);

  /* One second by default. What comes later in the run must be longer than twice, but not in the
   * next run. */
  for (guint run = 1; run <= 2; run++)
    {
      sim_run (chip, &program, twice, NULL, NULL);
      g_assert_cmpuint (shared.lines->len, ==, run);
      g_assert_cmpuint (waited (run - 1), ==, 2999);
    }
  free_chip ();
}

static void
test_limit (enum pto_backend backend)
{
  static const struct
  {
    const char *settings;
    guint lines;
  } cases[] = { { "task-window=4 blocked-notice=2999", 1 },
                { "task-window=4 blocked-notice=3000", 0 },
                { "task-window=4 blocked-notice=0", 0 },
                { "task-window=64", 0 } };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      struct pto_chip *chip = chip_with (backend, cases[i].settings, 0);

      sim_run (chip, &program, nothing_else, NULL, NULL);
      g_assert_cmpuint (shared.lines->len, ==, cases[i].lines);
      free_chip ();
    }
}

/* Nobody will ever make room: told before the run is given up. */
static void
test_proved (enum pto_backend backend)
{
  struct pto_chip *chip = chip_with (backend, "task-window=4", 0);

  shared.open_at = G_MAXUINT;
  sim_run_fails (chip, &program, nothing_else, NULL, PTO_STATUS_SCHEDULER_TIMEOUT, "deadlock",
                 NULL);
  g_assert_cmpuint (shared.lines->len, ==, 1);
  g_assert_true (g_str_has_prefix (g_ptr_array_index (shared.lines, 0), shortages[0].begin));
  free_chip ();
}

static void
add (void)
{
  sim_add ("blocked/every-ring", test_every_ring);
  sim_add_once ("blocked/once", test_once);
  sim_add_once ("blocked/limit", test_limit);
  sim_add_once ("blocked/proved", test_proved);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
