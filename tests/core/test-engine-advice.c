/* test-engine-advice.c: is the setting that a message recommends enough, and not more than it
 * takes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Random programs of nested scopes, whose tasks have outputs of any size, arguments and
 * dependencies. With plenty of everything each of them passes. Then one setting at a time is made
 * too small, and the program is run again with what the message says. Each seed is a program: 150
 * of them, or as many as PTO_TEST_SEEDS says, beginning with PTO_TEST_SEED.
 */
#include "engine-test.h"

#include "../../pto/core/retire.h"

#include <string.h>

#define SEEDS 150u
#define KIB 1024u
#define ALIVE 24u

struct program
{
  uint64_t seed;
  uint64_t random;
  uint32_t left;      /* tasks to come */
  uint32_t largest;   /* of an output, in KiB */
  uint32_t many_args; /* one in so many tasks has a lot of arguments; 0: none */
  bool wide;          /* tasks read all that is alive, update, and output again */
  uint32_t patience;  /* after so many of 4 tasks it waits for all, and retires what it can */
  uint64_t waits;     /* a generator for that alone */
};

static uint32_t
below (struct program *program, uint32_t n)
{
  return machine_below (&program->random, n);
}

/* More arguments of a task whose program is wide. */
static uint32_t
add_wide (struct program *program, PTOParam *params, uint32_t n_params, Tensor *alive,
          uint32_t n_alive)
{
  static uint8_t memory[8 * 64];
  uint32_t kind = below (program, 4);

  if (kind == 0)
    for (uint32_t i = 0; i < n_alive; i++)
      params[n_params++] = input (&alive[i]);
  else if (kind == 1 && n_alive > 0)
    params[n_params++] = output (&alive[below (program, n_alive)]);
  else if (kind == 2)
    for (uint32_t i = 1 + below (program, 8); i > 0; i--)
      {
        Tensor part = machine_external (memory + 64 * (i - 1), 8 + below (program, 56));

        params[n_params++] = below (program, 2) == 0
                                 ? pto2_make_param (PTO_PARAM_COMMUTATIVE, &part)
                                 : input (&part);
      }
  return n_params;
}

static void
wait_and_retire (struct machine *machine)
{
  struct pto_engine *engine = machine->engine;

  while (pto_engine_completed (engine) < engine->submitted && !pto_engine_has_failed (engine))
    pto_exec_help (machine->exec);
  for (uint32_t ring = 0; ring < PTO_RINGS && !pto_engine_has_failed (engine); ring++)
    pto_engine_retire (engine, ring);
}

/* Tensors that this scope may read are those of the scopes around it, too. */
static void
scope (struct machine *machine, struct program *program, Tensor *alive, uint32_t n_alive,
       uint32_t depth)
{
  static uint8_t memory[64 * 8];
  uint32_t n = 1 + below (program, 12);

  pto_engine_scope_begin (machine->engine, "random.c", (int32_t) depth + 1);
  while (n-- > 0 && program->left > 0)
    {
      PTOParam params[PTO_ARGS_MAX];
      uint32_t n_params = 0;
      Tensor output_tensor;
      bool made = false;

      if (depth < 5 && below (program, 4) == 0)
        {
          scope (machine, program, alive, n_alive, depth + 1);
          continue;
        }
      program->left--;
      for (uint32_t i = below (program, 4); i > 0 && n_alive > 0; i--)
        params[n_params++] = input (&alive[below (program, n_alive)]);
      if (below (program, 3) == 0)
        {
          Tensor external = machine_external (memory + 8 * below (program, 64), 8);

          params[n_params++] = below (program, 2) == 0 ? inout (&external) : existing (&external);
        }
      if (below (program, 3) > 0)
        {
          output_tensor = machine_tensor (machine, 1 + below (program, program->largest * KIB));
          params[n_params++] = output (&output_tensor);
          made = true;
        }
      if (program->many_args > 0 && below (program, program->many_args) == 0)
        {
          Tensor external = machine_external (memory, 8);

          while (n_params < PTO_ARGS_MAX)
            params[n_params++] = no_dep (&external);
        }
      if (program->wide && n_params < PTO_ARGS_MAX)
        n_params = add_wide (program, params, n_params, alive, n_alive);
      if (n_params == 0)
        params[n_params++] = make_scalar_param (0);
      machine_submit (machine, KERNEL_NOTHING, 0, params, n_params);
      if (machine_below (&program->waits, 4) < program->patience)
        wait_and_retire (machine);
      if (made && n_alive < ALIVE)
        alive[n_alive++] = output_tensor;
    }
  pto_engine_scope_end (machine->engine);
}

static struct machine_config
plenty (void)
{
  return (struct machine_config){ .backend = PTO_BACKEND_DET,
                                  .seed = 1,
                                  .window = 4096,
                                  .heap = 256u << 20,
                                  .edge_pool = 16384,
                                  .map_pool = 16384 };
}

static enum pto_status
run_timed (uint64_t seed, bool wide, bool rename, uint32_t patience,
           const struct machine_config *config, const char **message)
{
  static char text[sizeof ((struct pto_report *) NULL)->message];
  struct machine *machine = machine_new (config);
  struct program program = { .seed = seed,
                             .random = seed * 7919 + 1,
                             .wide = wide,
                             .patience = patience,
                             .waits = seed * 104729 + 1 };
  Tensor alive[ALIVE];
  enum pto_status status;

  program.left = 20 + below (&program, 100);
  program.largest = 1u << below (&program, 9);
  program.many_args = below (&program, 2) == 0 ? 0 : 1 + below (&program, 4);
  machine->engine->config.rename = rename;
  machine_begin (machine);
  while (program.left > 0)
    scope (machine, &program, alive, 0, 0);
  status = machine_end (machine, message);
  g_strlcpy (text, *message, sizeof text);
  *message = text;
  machine_free (machine);
  return status;
}

static enum pto_status
run_renaming (uint64_t seed, bool wide, bool rename, const struct machine_config *config,
              const char **message)
{
  return run_timed (seed, wide, rename, 0, config, message);
}

static enum pto_status
run_program (uint64_t seed, bool wide, const struct machine_config *config, const char **message)
{
  return run_renaming (seed, wide, wide && seed % 2 == 0, config, message);
}

static enum pto_status
run (uint64_t seed, const struct machine_config *config, const char **message)
{
  return run_program (seed, false, config, message);
}

static void
expect_ok (uint64_t seed, const struct machine_config *config)
{
  const char *message;

  if (run (seed, config, &message) != PTO_OK)
    g_error ("seed %" G_GUINT64_FORMAT ": %s", seed, message);
}

/* The number in front of some words of a message. */
static uint64_t
number_before (const char *message, const char *words)
{
  const char *end = strstr (message, words);

  g_assert_nonnull (end);
  while (end > message && g_ascii_isdigit (end[-1]))
    end--;
  return g_ascii_strtoull (end, NULL, 10);
}

static uint32_t n_windows, n_storages, n_heaps, n_pools, n_maps, n_followed;
static uint32_t n_time_firsts, n_time_seconds;

static void
try_windows (uint64_t seed)
{
  struct machine_config config = plenty ();
  uint32_t advice = 0;
  const char *message;

  for (config.window = 4; run (seed, &config, &message) != PTO_OK; config.window *= 2)
    {
      /* All too small ones are told the same: it is the program's, not the ring's. */
      if (advice != 0)
        g_assert_cmpuint (machine_advice (message, "task-window"), ==, advice);
      advice = (uint32_t) machine_advice (message, "task-window");
      g_assert_cmpuint (advice, >, config.window);
      if (strstr (message, "usable slots") != NULL)
        {
          /* What it holds at most is what it needs at least: a power of two, one slot is lost. */
          g_assert_cmpuint (advice, >, number_before (message, " tasks in that ring"));
          n_windows++;
        }
      else
        n_storages++;
    }
  if (advice == 0)
    return;
  config.window = advice;
  expect_ok (seed, &config);
}

static void
try_heaps (uint64_t seed)
{
  struct machine_config config = plenty ();
  const char *message;
  uint64_t advice, most;

  config.heap = 4 * KIB;
  if (run (seed, &config, &message) == PTO_OK)
    return;
  n_heaps++;
  advice = machine_advice (message, "heap");
  most = number_before (message, " bytes in that ring");
  g_assert_cmpuint (advice, >=, most);
  config.heap = advice;
  expect_ok (seed, &config);
  /* A little less than what one ring holds at one time, and it is told the same. The largest
   * advice is for the ring that needs most: that one is looked for. */
  for (config.heap = advice; config.heap > 2 * KIB;)
    {
      config.heap -= config.heap > 64 * KIB ? 16 * KIB : KIB;
      if (run (seed, &config, &message) == PTO_OK)
        {
          g_assert_cmpuint (config.heap, >=, most);
          continue;
        }
      g_assert_cmpuint (machine_advice (message, "heap"), ==, advice);
      break;
    }
}

/* The first advice is enough. */
static void
try_pool (uint64_t seed, const uint32_t *pool, struct machine_config *config, const char *knob,
          uint32_t *count)
{
  const char *message;
  uint32_t rounds = 0;

  while (run (seed, config, &message) != PTO_OK)
    {
      uint32_t before = *pool;

      (*count)++;
      if (machine_follow (config, message, knob) <= before)
        g_error ("seed %" G_GUINT64_FORMAT ": %s", seed, message);
      g_assert_cmpuint (++rounds, <=, 1);
    }
}

static void
try_pools (uint64_t seed)
{
  struct machine_config config = plenty ();

  config.edge_pool = 4;
  try_pool (seed, &config.edge_pool, &config, "dep-pool", &n_pools);
  config = plenty ();
  config.map_pool = 16;
  try_pool (seed, &config.map_pool, &config, "map-pool", &n_maps);
}

static uint64_t
number (const char *variable, uint64_t fallback)
{
  const char *text = g_getenv (variable);

  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : fallback;
}

static void
test_random (void)
{
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_SEEDS", MAX (SCALE (SEEDS), 5));
  struct machine_config config = plenty ();

  for (uint64_t seed = first; seed < first + n; seed++)
    {
      expect_ok (seed, &config);
      try_windows (seed);
      try_heaps (seed);
      try_pools (seed);
    }
  g_test_message ("windows %u, storage %u, heaps %u, edges %u, nodes %u", n_windows, n_storages,
                  n_heaps, n_pools, n_maps);
  if (n >= SEEDS)
    {
      g_assert_cmpuint (n_windows, >=, SEEDS);
      g_assert_cmpuint (n_storages, >, 0);
      g_assert_cmpuint (n_heaps, >=, SEEDS / 2);
      g_assert_cmpuint (n_pools, >=, SEEDS / 4);
      g_assert_cmpuint (n_maps, >, 0);
    }
}

/* Everything is too small, and each message is followed: none names the setting of the one before
 * it, or a value that is set, and after a few runs it passes. A map that is too small hides what
 * tasks depend on, so that a pool may be named again after the map. */
static void
follow (uint64_t seed, enum pto_backend backend)
{
  static const char *const knobs[] = { "task-window", "heap", "dep-pool", "map-pool" };
  struct machine_config config = { .backend = backend,
                                   .seed = seed,
                                   .window = 4,
                                   .heap = 4 * KIB,
                                   .edge_pool = 16,
                                   .map_pool = 16,
                                   .guard_bytes = seed % 3 == 0 ? 0 : 64 };
  guint before = G_N_ELEMENTS (knobs);
  guint n = 0;
  const char *message;

  while (run_program (seed, true, &config, &message) != PTO_OK)
    {
      guint i = 0;

      while (i < G_N_ELEMENTS (knobs) && machine_advice (message, knobs[i]) == 0)
        i++;
      if (i == G_N_ELEMENTS (knobs) || i == before || ++n > 2 * G_N_ELEMENTS (knobs))
        g_error ("seed %" G_GUINT64_FORMAT ": %s", seed, message);
      before = i;
      n_followed++;
      machine_follow (&config, message, knobs[i]);
    }
}

/* Which outputs get new memory depends on which tasks are done by then. The advice on a pool is
 * enough if none does in the next run. */
static void
test_rename (void)
{
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_SEEDS", MAX (SCALE (SEEDS), 5));
  uint32_t n_more = 0;

  for (uint64_t seed = first; seed < first + n; seed++)
    {
      struct machine_config config = plenty ();
      const char *message;
      uint32_t advice;

      config.edge_pool = 16;
      if (run_renaming (seed, true, true, &config, &message) == PTO_OK)
        continue;
      advice = machine_follow (&config, message, "dep-pool");
      if (run_renaming (seed, true, false, &config, &message) != PTO_OK)
        g_error ("seed %" G_GUINT64_FORMAT ": dep-pool %u: %s", seed, advice, message);
      n_more++;
    }
  g_test_message ("%u pools", n_more);
  if (n >= SEEDS)
    g_assert_cmpuint (n_more, >=, SEEDS / 2);
}

/* The program with one timing after the other: what one run says is enough for all that come after
 * it, or the next advice is larger and is. */
static void
try_time (uint64_t seed, bool rename, const uint32_t patience[3], const char *knob,
          struct machine_config config)
{
  uint64_t last = 0;
  guint rounds = 0;
  const char *message;

  for (guint i = 0; i < 3;)
    {
      uint64_t advice;

      if (run_timed (seed, true, rename, patience[i], &config, &message) == PTO_OK)
        {
          i++;
          continue;
        }
      /* Arguments take more than a window that is plenty for others. */
      if (machine_advice (message, knob) == 0 && config.window < 8192)
        {
          machine_follow (&config, message, "task-window");
          continue;
        }
      advice = machine_advice (message, knob);
      if (advice <= last || ++rounds > 2)
        g_error ("seed %" G_GUINT64_FORMAT ", %s %" G_GUINT64_FORMAT ": %s", seed, knob, last,
                 message);
      last = machine_follow (&config, message, knob);
    }
  n_time_firsts += rounds > 0;
  n_time_seconds += rounds > 1;
}

/* What a task depends upon depends on which tasks are retired by its submit: all that can be, some,
 * or none before it has to be. */
static void
test_time (void)
{
  static const uint32_t patience[][3] = { { 4, 2, 0 }, { 0, 2, 4 }, { 1, 4, 0 } };
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_SEEDS", MAX (SCALE (SEEDS), 5));

  for (uint64_t seed = first; seed < first + n; seed++)
    {
      const uint32_t *order = patience[seed % 3];
      bool rename = seed % 2 == 1;
      struct machine_config config = plenty ();

      config.window = 8;
      try_time (seed, rename, order, "task-window", config);
      config = plenty ();
      config.heap = 4 * KIB;
      try_time (seed, rename, order, "heap", config);
      config = plenty ();
      config.edge_pool = 16;
      try_time (seed, rename, order, "dep-pool", config);
      config = plenty ();
      config.map_pool = 16;
      try_time (seed, rename, order, "map-pool", config);
    }
  g_test_message ("%u settings, %u of them twice", n_time_firsts, n_time_seconds);
  if (n >= SEEDS)
    g_assert_cmpuint (n_time_firsts, >=, 2 * SEEDS);
}

static void
test_follow (gconstpointer backend)
{
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_SEEDS", MAX (SCALE (SEEDS), 5));

  n_followed = 0;
  for (uint64_t seed = first; seed < first + n; seed++)
    follow (seed, BACKEND (backend));
  g_test_message ("%u messages followed", n_followed);
  if (n >= SEEDS)
    g_assert_cmpuint (n_followed, >=, 2 * SEEDS);
}

/* One scope of so many tasks; from the 17th on each has two pieces of memory, before that one. */
static enum pto_status
run_scope (uint32_t n, const struct machine_config *config, char *text, gsize size)
{
  static uint8_t memory[2 * 256 * 8];
  struct machine *machine = machine_new (config);
  enum pto_status status;
  const char *message;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, "scope.c", 1);
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor one = machine_external (memory + 16 * i, 8);
      Tensor other = machine_external (memory + 16 * i + 8, 8);
      PTOParam params[] = { inout (&one), inout (&other) };

      machine_submit (machine, KERNEL_NOTHING, 0, params, i < 16 ? 1 : 2);
    }
  pto_engine_scope_end (machine->engine);
  status = machine_end (machine, &message);
  g_strlcpy (text, message, size);
  machine_free (machine);
  return status;
}

/* The smallest power of two with a slot to spare, for every number of tasks. */
static void
test_window (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];

  for (uint32_t n = 4; n <= 130; n++)
    {
      struct machine_config config = plenty ();
      config.window = 4;
      g_assert_cmpint (run_scope (n, &config, text, sizeof text), ==, PTO_STATUS_TASK_RING);
      machine_follow (&config, text, "task-window");
      g_assert_cmpuint (config.window, >, n);
      g_assert_cmpuint (config.window / 2, <=, n);
      g_assert_cmpuint (number_before (text, " tasks in that ring"), ==, n);
      g_assert_cmpint (run_scope (n, &config, text, sizeof text), ==, PTO_OK);
    }
}

/* Later tasks may take twice as many nodes each as those so far: the first advice is enough. */
static void
test_map (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];

  for (uint32_t n = 17; n <= 250; n++)
    {
      struct machine_config config = plenty ();

      config.map_pool = 16;
      g_assert_cmpint (run_scope (n, &config, text, sizeof text), ==, PTO_STATUS_MAP_OVERFLOW);
      machine_follow (&config, text, "map-pool");
      g_assert_cmpuint (config.map_pool, <=, 16 * n);
      g_assert_cmpint (run_scope (n, &config, text, sizeof text), ==, PTO_OK);
    }
}

/* One scope of n tasks; each depends on one before it, those from the 17th on upon four. */
static enum pto_status
run_edges (uint32_t n, const struct machine_config *config, char *text, gsize size)
{
  static uint8_t memory[256 * 8];
  struct machine *machine = machine_new (config);
  enum pto_status status;
  const char *message;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, "scope.c", 1);
  for (uint32_t i = 0; i < n; i++)
    {
      PTOParam params[5];
      uint32_t n_params = 0;

      for (uint32_t back = 1; back <= i && back <= (i < 16 ? 1 : 4); back++)
        {
          Tensor tensor = machine_external (memory + 8 * (i - back), 8);

          params[n_params++] = input (&tensor);
        }
      {
        Tensor tensor = machine_external (memory + 8 * i, 8);

        params[n_params++] = existing (&tensor);
      }
      machine_submit (machine, KERNEL_NOTHING, 0, params, n_params);
    }
  pto_engine_scope_end (machine->engine);
  status = machine_end (machine, &message);
  g_strlcpy (text, message, size);
  machine_free (machine);
  return status;
}

/* Later tasks may depend on four times as many others as those so far: the first advice is enough,
 * and no more than a few times what is needed. */
static void
test_pool (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];

  for (uint32_t n = 18; n <= 250; n++)
    {
      struct machine_config config = plenty ();
      uint32_t needed = 15 + 4 * (n - 16);

      config.edge_pool = 16;
      g_assert_cmpint (run_edges (n, &config, text, sizeof text), ==, PTO_STATUS_DEP_POOL);
      machine_follow (&config, text, "dep-pool");
      g_assert_cmpuint (config.edge_pool, >=, needed);
      g_assert_cmpuint (config.edge_pool, <=, 4 * needed + 64);
      g_assert_cmpint (run_edges (n, &config, text, sizeof text), ==, PTO_OK);
    }
}

/* A scope whose n tasks write a piece each, and one whose m tasks read all pieces, one task after
 * the other. late: the first scope's tasks are retired before the second begins. */
static enum pto_status
run_readers (uint32_t n, uint32_t m, bool late, const struct machine_config *config, char *text,
             gsize size)
{
  static uint8_t memory[8 * 64];
  struct machine *machine = machine_new (config);
  Tensor all = machine_external (memory, 8 * (uint64_t) n);
  Tensor chain = machine_external (memory + 8 * n, 8);
  enum pto_status status;
  const char *message;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, "writers.c", 1);
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor piece = machine_external (memory + 8 * i, 8);

      SUBMIT (machine, KERNEL_NOTHING, existing (&piece));
    }
  pto_engine_scope_end (machine->engine);
  if (late)
    wait_and_retire (machine);
  pto_engine_scope_begin (machine->engine, "readers.c", 1);
  for (uint32_t i = 0; i < m; i++)
    SUBMIT (machine, KERNEL_NOTHING, input (&all), inout (&chain));
  pto_engine_scope_end (machine->engine);
  status = machine_end (machine, &message);
  g_strlcpy (text, message, size);
  machine_free (machine);
  return status;
}

/* A run that finds no task retired needs many times the advice of a run that finds all of them
 * retired. Its own advice is enough for both. */
static void
test_retired (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];

  for (uint32_t n = 8; n <= 56; n += 8)
    for (uint32_t m = 20; m <= 60; m += 20)
      {
        struct machine_config config = plenty ();
        uint32_t needed = m * (n + 1) - 1;
        uint32_t first;

        config.edge_pool = 16;
        g_assert_cmpint (run_readers (n, m, true, &config, text, sizeof text), ==,
                         PTO_STATUS_DEP_POOL);
        first = (uint32_t) machine_follow (&config, text, "dep-pool");
        g_assert_cmpint (run_readers (n, m, true, &config, text, sizeof text), ==, PTO_OK);
        if (run_readers (n, m, false, &config, text, sizeof text) != PTO_OK)
          {
            machine_follow (&config, text, "dep-pool");
            g_assert_cmpuint (config.edge_pool, >, first);
            g_assert_cmpint (run_readers (n, m, false, &config, text, sizeof text), ==, PTO_OK);
            g_assert_cmpint (run_readers (n, m, true, &config, text, sizeof text), ==, PTO_OK);
          }
        g_assert_cmpuint (config.edge_pool, <=, 16 * needed);
      }
}

/* Two scopes one after the other, the second in a scope of its own, of n tasks each with so many
 * scalars and an output of so many KiB. */
static enum pto_status
run_pieces (uint32_t n, uint32_t n_scalars, uint32_t kib, const struct machine_config *config,
            char *text, gsize size)
{
  struct machine *machine = machine_new (config);
  enum pto_status status;
  const char *message;

  machine_begin (machine);
  for (uint32_t depth = 1; depth <= 2; depth++)
    {
      for (uint32_t d = 0; d < depth; d++)
        pto_engine_scope_begin (machine->engine, "scope.c", 1);
      for (uint32_t i = 0; i < n; i++)
        {
          PTOParam params[PTO_ARGS_MAX];
          uint32_t n_params = 0;
          Tensor tensor;

          if (kib > 0)
            {
              tensor = machine_tensor (machine, (uint64_t) kib * KIB);
              params[n_params++] = output (&tensor);
            }
          while (n_params < n_scalars)
            params[n_params++] = make_scalar_param (0);
          machine_submit (machine, KERNEL_NOTHING, 0, params, n_params);
        }
      for (uint32_t d = 0; d < depth; d++)
        pto_engine_scope_end (machine->engine);
    }
  status = machine_end (machine, &message);
  g_strlcpy (text, message, size);
  machine_free (machine);
  return status;
}

static uint64_t
rounded (uint64_t n, uint64_t unit)
{
  return (n + unit - 1) / unit * unit;
}

/* What is held at one time, and one piece more, which may be skipped at the turn: neither less nor
 * more, to the unit of the setting. */
static void
test_heap (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];

  for (uint32_t n = 2; n <= 40; n++)
    for (uint32_t kib = 7; kib <= 64; kib += 19)
      {
        struct machine_config config = plenty ();
        uint64_t most = (uint64_t) n * kib * KIB;

        config.heap = 8 * KIB;
        g_assert_cmpint (run_pieces (n, 1, kib, &config, text, sizeof text), ==,
                         PTO_STATUS_HEAP_RING);
        g_assert_cmpuint (number_before (text, " bytes in that ring"), ==, most);
        machine_follow (&config, text, "heap");
        g_assert_cmpuint (config.heap, ==, rounded (most + kib * KIB, 64 * KIB));
        g_assert_cmpint (run_pieces (n, 1, kib, &config, text, sizeof text), ==, PTO_OK);
      }
  /* A single one is never skipped for. */
  for (uint32_t kib = 63; kib <= 66; kib++)
    {
      struct machine_config config = plenty ();

      config.heap = 8 * KIB;
      g_assert_cmpint (run_pieces (1, 1, kib, &config, text, sizeof text), ==,
                       PTO_STATUS_HEAP_RING);
      machine_follow (&config, text, "heap");
      g_assert_cmpuint (config.heap, ==, rounded (kib * KIB, 64 * KIB));
      g_assert_cmpint (run_pieces (1, 1, kib, &config, text, sizeof text), ==, PTO_OK);
    }
}

/* As many slots as tasks, and one; or as many as have that much memory for arguments. */
static void
test_storage (void)
{
  char text[sizeof ((struct pto_report *) NULL)->message];
  uint32_t exact = 0;

  for (uint32_t n_scalars = 480; n_scalars <= 512; n_scalars += 8)
    for (uint32_t n = 63; n <= 520; n = n % 2 == 1 ? n + 1 : 2 * n - 1)
      {
        struct machine_config config = plenty ();
        uint64_t most, all;
        uint32_t slots = n + 1;

        config.window = 128;
        if (run_pieces (n, n_scalars, 0, &config, text, sizeof text) == PTO_OK)
          continue;
        most = number_before (text, " bytes of arguments in that ring");
        g_assert_cmpuint (most % n, ==, 0);
        all = most + most / n;
        if (all > PTO_STORAGE_MIN)
          slots = MAX (slots,
                       (uint32_t) (rounded (all, PTO_STORAGE_PER_SLOT) / PTO_STORAGE_PER_SLOT));
        exact += all == (uint64_t) slots * PTO_STORAGE_PER_SLOT && (slots & (slots - 1)) == 0;
        while ((slots & (slots - 1)) != 0)
          slots++;
        config.window = (uint32_t) machine_advice (text, "task-window");
        g_assert_cmpuint (config.window, ==, slots);
        g_assert_cmpint (run_pieces (n, n_scalars, 0, &config, text, sizeof text), ==, PTO_OK);
      }
  g_assert_cmpuint (exact, >, 1);
}

static void
add_tests (void)
{
  if (!SHOWS_NOTHING (PTO_BACKEND_DET))
    {
      g_test_add_func ("/pto/engine-advice/pool", test_pool);
      g_test_add_func ("/pto/engine-advice/heap", test_heap);
      g_test_add_func ("/pto/engine-advice/storage", test_storage);
      g_test_add_func ("/pto/engine-advice/window", test_window);
      g_test_add_func ("/pto/engine-advice/map", test_map);
      g_test_add_func ("/pto/engine-advice/random", test_random);
      g_test_add_func ("/pto/engine-advice/rename", test_rename);
      g_test_add_func ("/pto/engine-advice/retired", test_retired);
      g_test_add_func ("/pto/engine-advice/time", test_time);
    }
  machine_add ("engine-advice", "follow", test_follow);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
