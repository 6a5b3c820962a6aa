/* test-engine-limits.c: does a full ring or pool stall the submitter, and is a wait that can never
 * end told as such?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/core/manual-build.h"
#include "../../pto/core/manual-tasks.h"

#include <string.h>

#define KIB 1024u

/* Waits until the submitter waits, then opens the gate it is given. */
static void
kernel_opener (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct gate *gate = (struct gate *) (uintptr_t) args[0];

  while (atomic_load (&machine->engine->waiting) == 0)
    pto_yield (machine->exec);
  gate_open (machine, gate);
}

enum
{
  KERNEL_OPENER = KERNEL_OWN
};

static const machine_kernel kernels[] = { kernel_opener };

static struct machine_config
limits (enum pto_backend backend)
{
  return (struct machine_config){ .backend = backend,
                                  .seed = 1,
                                  .schedulers = 2,
                                  .endpoints = 2,
                                  .window = 1024,
                                  .heap = 1u << 20,
                                  .edge_pool = 4096,
                                  .map_pool = 4096,
                                  .kernels = kernels };
}

/* --- stalls --- */

/* A task stands at a gate, in front of everything else, until the submitter waits: so it does wait.
 */
static void
stall (struct machine *machine, void (*round) (struct machine *machine, uint32_t i),
       uint32_t rounds, uint64_t tasks)
{
  struct gate gate;

  gate_init (&gate);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  pto_engine_scope_end (machine->engine);
  gate_wait_reached (machine, &gate);
  SUBMIT (machine, KERNEL_OPENER, scalar (&gate));
  for (uint32_t i = 0; i < rounds; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      round (machine, i);
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  g_assert_cmpuint (machine->engine->stats.stalls, >, 0);
  g_assert_cmpuint (machine->engine->submitted, ==, tasks + 2);
  machine_free (machine);
}

static void
one_task (struct machine *machine, uint32_t i)
{
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (i));
}

static void
test_task_ring_stalls (gconstpointer backend)
{
  for (uint32_t window = 4; window <= 16; window *= 2)
    {
      struct machine_config config = limits (BACKEND (backend));

      config.window = window;
      stall (machine_new (&config), one_task, 500, 500);
    }
}

static void
one_output (struct machine *machine, uint32_t i)
{
  Tensor tensor = machine_tensor (machine, 1 + i % (4 * KIB));

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

static void
test_heap_ring_stalls (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));

  config.heap = 8 * KIB;
  stall (machine_new (&config), one_output, 500, 500);
}

static void
many_edges (struct machine *machine, uint32_t i)
{
  Tensor tensors[4];

  for (uint32_t t = 0; t < 4; t++)
    {
      tensors[t] = machine_tensor (machine, 8);
      SUBMIT (machine, KERNEL_NOTHING, output (&tensors[t]));
    }
  SUBMIT (machine, KERNEL_NOTHING, input (&tensors[0]), input (&tensors[1]), input (&tensors[2]),
          input (&tensors[3]));
}

static void
test_dependency_pool_stalls (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));

  config.edge_pool = 16;
  stall (machine_new (&config), many_edges, 100, 500);
}

static void
new_region (struct machine *machine, uint32_t i)
{
  static uint8_t memory[1000 * 16];
  Tensor tensor = machine_external (memory + i * 16, 8);

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

static void
test_map_pool_stalls (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));

  config.map_pool = 16;
  stall (machine_new (&config), new_region, 500, 500);
}

static void
many_arguments (struct machine *machine, uint32_t i)
{
  PTOParam params[PTO_ARGS_MAX];
  static uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);

  for (uint32_t p = 0; p < PTO_ARGS_MAX; p++)
    params[p] = no_dep (&tensor);
  machine_submit (machine, KERNEL_NOTHING, 0, params, PTO_ARGS_MAX);
}

static void
test_argument_storage_stalls (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));

  config.window = 64;
  stall (machine_new (&config), many_arguments, 200, 200);
}

/* The heap is as large as one task's outputs: exactly one at a time. */
static void
test_heap_of_one_output (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));
  struct machine *machine;

  config.heap = 3 * KIB;
  machine = machine_new (&config);
  machine_begin (machine);
  for (uint32_t i = 0; i < 100; i++)
    {
      Tensor tensor;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 3 * KIB);
      SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  machine_free (machine);
}

/* Small scopes, then a large one: the early turns of the small ones leave no memory behind. */
static void
test_large_scope_after_small_ones (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));
  struct machine *machine = machine_new (&config);

  machine_begin (machine);
  for (uint32_t i = 0; i < 300; i++)
    {
      Tensor tensor;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, KIB);
      SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
      pto_engine_scope_end (machine->engine);
      if (i % 100 < 98)
        continue;
      pto_engine_scope_begin (machine->engine, NULL, 0);
      for (uint32_t j = 0; j < 100; j++)
        {
          tensor = machine_tensor (machine, 9 * KIB);
          SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
        }
      pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  machine_free (machine);
}

/* --- deadlocks --- */

struct program
{
  void (*body) (struct machine *machine);
  struct machine_config config;
};

static enum pto_status
run (const struct program *program, const char **message)
{
  struct machine *machine = machine_new (&program->config);
  static char text[sizeof ((struct pto_report *) NULL)->message];
  enum pto_status status;
  _Atomic uint32_t ran = 0;

  machine_begin (machine);
  program->body (machine);
  status = machine_end (machine, message);
  g_strlcpy (text, *message, sizeof text);
  *message = text;
  /* At once: nobody waited for a clock. */
  g_assert_cmpuint (pto_now (machine->exec), ==, 0);
  g_assert_false (pto_engine_is_lost (machine->engine));
  /* The next run on it succeeds. */
  machine_begin (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, 1);
  machine_free (machine);
  return status;
}

static void
expect_ok (const struct program *program)
{
  const char *message;
  enum pto_status status = run (program, &message);

  g_assert_cmpstr (message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
}

/* The message of the run, which fails with the given code. */
static const char *
expect_deadlock (const struct program *program, enum pto_status expected)
{
  const char *message;
  enum pto_status status = run (program, &message);

  g_test_message ("%s", message);
  g_assert_cmpint (status, ==, expected);
  machine_assert_names (message, "deadlock");
  return message;
}

/* The run fails with the given code and says all of the words, up to NULL; with what it recommends
 * for the knob the program passes. Gives that. */
static uint64_t G_GNUC_NULL_TERMINATED
expect_advice (struct program *program, enum pto_status expected, const char *knob, ...)
{
  const char *message, *word;
  enum pto_status status = run (program, &message);
  uint64_t value;
  va_list words;

  g_test_message ("%s", message);
  g_assert_cmpint (status, ==, expected);
  va_start (words, knob);
  while ((word = va_arg (words, const char *)) != NULL)
    machine_assert_names (message, word);
  va_end (words);
  value = machine_follow (&program->config, message, knob);
  expect_ok (program);
  return value;
}

static void
chain_of_20 (struct machine *machine)
{
  static uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);

  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  pto_engine_scope_begin (machine->engine, "/somewhere/program.c", 42);
  for (uint32_t i = 0; i < 20; i++)
    {
      SUBMIT (machine, KERNEL_NOTHING, inout (&tensor));
      /* Scopes within take from another ring. */
      pto_engine_scope_begin (machine->engine, "/somewhere/else.c", 1);
      SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
  pto_engine_scope_end (machine->engine);
}

static void
test_task_ring_deadlock (void)
{
  struct program program = { chain_of_20, limits (PTO_BACKEND_DET) };

  program.config.window = 8;
  g_assert_cmpuint (expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", "deadlock",
                                   "task ring 1", "all 7 usable slots", "window 8", "tasks 0 to 6",
                                   "the scope opened at program.c:42",
                                   "task 0 of ring 1 (nothing) is", "at most 20 tasks", NULL),
                    ==, 32);
  program.config.window /= 2;
  expect_deadlock (&program, PTO_STATUS_TASK_RING);
}

static void
twenty (struct machine *machine)
{
  for (uint32_t i = 0; i < 20; i++)
    SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
}

static void
test_outermost_scope_deadlock (void)
{
  struct program program = { twenty, limits (PTO_BACKEND_DET) };

  program.config.window = 4;
  expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", "deadlock", "task ring 0",
                 "the outermost scope (the orchestration itself), which",
                 "Set task-window to 32 or more (all that was submitted holds at most 20 tasks",
                 NULL);
}

/* A task of the fourth ring that an outer scope holds keeps all behind it, ended scopes or not. */
static void
shared_ring (struct machine *machine)
{
  for (uint32_t depth = 1; depth < PTO_RINGS; depth++)
    pto_engine_scope_begin (machine->engine, "outer.c", (int32_t) depth);
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  for (uint32_t i = 0; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, "inner.c", 1);
      pto_engine_scope_begin (machine->engine, "innermost.c", 1);
      for (uint32_t j = 0; j < 3; j++)
        {
          Tensor tensor = machine_tensor (machine, 2 * KIB);

          SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
        }
      pto_engine_scope_end (machine->engine);
      pto_engine_scope_end (machine->engine);
    }
}

/* Whose is the oldest task: of the scope that it was submitted in, though the next one begins right
 * behind it. */
static void
beside_a_scope (struct machine *machine)
{
  for (uint32_t depth = 1; depth < PTO_RINGS; depth++)
    pto_engine_scope_begin (machine->engine, "outer.c", (int32_t) depth);
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  pto_engine_scope_begin (machine->engine, "inner.c", 1);
  for (uint32_t i = 0; i < 10; i++)
    SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
}

static void
inside_a_scope (struct machine *machine)
{
  for (uint32_t depth = 1; depth < PTO_RINGS; depth++)
    pto_engine_scope_begin (machine->engine, "outer.c", (int32_t) depth);
  pto_engine_scope_begin (machine->engine, "inner.c", 1);
  for (uint32_t i = 0; i < 10; i++)
    SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
}

static void
test_scope_of_the_oldest (void)
{
  struct program beside = { beside_a_scope, limits (PTO_BACKEND_DET) };
  struct program inside = { inside_a_scope, limits (PTO_BACKEND_DET) };

  beside.config.window = inside.config.window = 4;
  machine_assert_names (expect_deadlock (&beside, PTO_STATUS_TASK_RING), "outer.c:3");
  machine_assert_names (expect_deadlock (&inside, PTO_STATUS_TASK_RING), "inner.c:1");
}

static void
test_shared_ring_deadlock (void)
{
  struct program program = { shared_ring, limits (PTO_BACKEND_DET) };

  program.config.window = 8;
  g_assert_cmpuint (expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", "deadlock",
                                   "task ring 3", "outer.c:3", NULL),
                    ==, 32);
  program.config.heap = 16 * KIB;
  expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", "deadlock", "heap ring 3", NULL);
}

/* With nothing in the outer scopes of the shared ring the demand is that of one inner scope. */
static void
shared_ring_free (struct machine *machine)
{
  for (uint32_t depth = 1; depth < PTO_RINGS + 2; depth++)
    pto_engine_scope_begin (machine->engine, "outer.c", (int32_t) depth);
  for (uint32_t i = 0; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, "inner.c", 1);
      for (uint32_t j = 0; j < 10; j++)
        SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
}

static void
test_shared_ring_demand (void)
{
  struct program program = { shared_ring_free, limits (PTO_BACKEND_DET) };

  program.config.window = 8;
  g_assert_cmpuint (
      expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", "deadlock", "inner.c:1", NULL),
      ==, 16);
}

static void
twenty_outputs (struct machine *machine)
{
  Tensor tensor;

  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 3 * KIB);
  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  pto_engine_scope_end (machine->engine);
  pto_engine_scope_begin (machine->engine, "program.c", 7);
  for (uint32_t i = 0; i < 20; i++)
    {
      tensor = machine_tensor (machine, 4 * KIB);
      SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
      SUBMIT (machine, KERNEL_NOTHING, inout (&tensor));
    }
  pto_engine_scope_end (machine->engine);
}

static void
test_heap_ring_deadlock (void)
{
  struct program program = { twenty_outputs, limits (PTO_BACKEND_DET) };

  program.config.heap = 32 * KIB;
  /* Seven outputs of 4 KiB and what is left of the task before the scope. */
  g_assert_null (strstr (expect_deadlock (&program, PTO_STATUS_HEAP_RING), " 0 of 32768 bytes"));
  g_assert_cmpuint (expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", "heap ring 1",
                                   "of 32768 bytes", "program.c:7", "at most 81920 bytes", NULL),
                    ==, 128 * KIB);
  /* What it holds at most is what it needs at least. */
  program.config.heap = 81920 - 1024;
  expect_deadlock (&program, PTO_STATUS_HEAP_RING);
}

/* The same tensor named by several tasks is counted once, guards are counted. */
static void
test_heap_demand_with_guards (void)
{
  struct program program = { twenty_outputs, limits (PTO_BACKEND_DET) };

  program.config.heap = 32 * KIB;
  program.config.guard_bytes = 64;
  expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", "deadlock", "at most 102400 bytes", NULL);
}

static void
one_large_output (struct machine *machine)
{
  Tensor tensor = machine_tensor (machine, 100 * KIB);

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

static void
test_output_larger_than_heap (void)
{
  struct program program = { one_large_output, limits (PTO_BACKEND_DET) };

  program.config.heap = 99 * KIB;
  expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", "needs 102400 bytes", "has 101376", NULL);
  program.config.heap = 100 * KIB;
  expect_ok (&program);
}

/* One large output at a time is what one task takes; together with what the scope holds already it
 * is more. */
static void
held_and_large (struct machine *machine)
{
  Tensor tensor = machine_tensor (machine, 60 * KIB);

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  tensor = machine_tensor (machine, 100 * KIB);
  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  tensor = machine_tensor (machine, 80 * KIB);
  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

static void
test_large_output_beside_held_ones (void)
{
  struct program program = { held_and_large, limits (PTO_BACKEND_DET) };

  program.config.heap = 90 * KIB;
  expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", NULL);
}

#define LARGEST (UINT64_C (1) << 40)

/* n outputs that the outermost scope holds, which are 5/16 of the largest heap. */
static void
outputs_of_most (struct machine *machine, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor tensor = machine_tensor (machine, LARGEST / 16 * 5);

      SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
    }
}

static void
three_outputs_of_most (struct machine *machine)
{
  outputs_of_most (machine, 3);
}

static void
four_outputs_of_most (struct machine *machine)
{
  outputs_of_most (machine, 4);
}

static void
output_of_all (struct machine *machine)
{
  Tensor tensor = machine_tensor (machine, LARGEST + 1);

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

/* Only what is taken is advised. */
static void
test_more_than_the_largest_heap (void)
{
  struct program three = { three_outputs_of_most, limits (PTO_BACKEND_DET) };
  struct program four = { four_outputs_of_most, limits (PTO_BACKEND_DET) };
  struct program one = { output_of_all, limits (PTO_BACKEND_DET) };
  const char *message;

  three.config.heap = four.config.heap = one.config.heap = 64 * KIB;
  g_assert_cmpint (run (&three, &message), ==, PTO_STATUS_HEAP_RING);
  g_assert_cmpuint (machine_advice (message, "heap"), ==, LARGEST);
  g_assert_cmpint (run (&four, &message), ==, PTO_STATUS_HEAP_RING);
  g_assert_cmpuint (machine_advice (message, "heap"), ==, 0);
  machine_assert_names (message, "more than the largest heap, 1099511627776: end scopes");
  g_assert_cmpint (run (&one, &message), ==, PTO_STATUS_HEAP_RING);
  machine_assert_names (message, "task 0 needs more than the largest heap, 1099511627776");
}

static void
edges_in_one_scope (struct machine *machine)
{
  pto_engine_scope_begin (machine->engine, "edges.c", 3);
  for (uint32_t i = 0; i < 10; i++)
    many_edges (machine, i);
  pto_engine_scope_end (machine->engine);
}

static void
test_dependency_pool_deadlock (void)
{
  struct program program = { edges_in_one_scope, limits (PTO_BACKEND_DET) };

  program.config.edge_pool = 16;
  g_assert_cmpuint (
      expect_advice (&program, PTO_STATUS_DEP_POOL, "dep-pool", "deadlock", "dependency pool 1",
                     "16 of 16 edges are in use, 4 more are needed", "edges.c:3", NULL),
      >, 16);
}

/* Edges of tasks that are over are not in use. */
static void
edges_after_others (struct machine *machine)
{
  pto_engine_scope_begin (machine->engine, "before.c", 1);
  for (uint32_t i = 0; i < 4; i++)
    many_edges (machine, i);
  pto_engine_scope_end (machine->engine);
  edges_in_one_scope (machine);
}

static void
test_dependency_pool_deadlock_after_others (void)
{
  struct program program = { edges_after_others, limits (PTO_BACKEND_DET) };

  program.config.edge_pool = 16;
  expect_advice (&program, PTO_STATUS_DEP_POOL, "dep-pool", "deadlock", "dependency pool 1",
                 "16 of 16 edges are in use, 4 more are needed", "edges.c:3", NULL);
}

/* Task i depends on all i before it: what is to come needs more than what was. */
static void
growing_edges (struct machine *machine)
{
  static uint8_t memory[40];
  Tensor all = machine_external (memory, sizeof memory);

  for (uint32_t i = 0; i < 40; i++)
    {
      Tensor before = machine_part (&all, 0, i + 1);
      Tensor own = machine_part (&all, i, 1);

      SUBMIT (machine, KERNEL_NOTHING, input (&before), existing (&own));
    }
}

static void
test_dependency_pool_growing (void)
{
  struct program program = { growing_edges, limits (PTO_BACKEND_DET) };

  program.config.edge_pool = 64;
  expect_advice (&program, PTO_STATUS_DEP_POOL, "dep-pool", "deadlock", NULL);
}

static void
one_wide_task (struct machine *machine)
{
  static uint8_t memory[100];
  Tensor all = machine_external (memory, sizeof memory);

  for (uint32_t i = 0; i < 100; i++)
    {
      Tensor part = machine_part (&all, i, 1);

      SUBMIT (machine, KERNEL_NOTHING, output (&part));
    }
  SUBMIT (machine, KERNEL_NOTHING, input (&all));
}

static void
test_more_edges_than_the_pool (void)
{
  struct program program = { one_wide_task, limits (PTO_BACKEND_DET) };

  program.config.edge_pool = 64;
  g_assert_cmpuint (expect_advice (&program, PTO_STATUS_DEP_POOL, "dep-pool",
                                   "task 100 depends on 100 tasks", NULL),
                    ==, 128);
}

static void
many_regions (struct machine *machine)
{
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  pto_engine_scope_begin (machine->engine, "regions.c", 11);
  for (uint32_t i = 0; i < 200; i++)
    new_region (machine, i);
  pto_engine_scope_end (machine->engine);
}

static void
test_map_deadlock (void)
{
  struct program program = { many_regions, limits (PTO_BACKEND_DET) };

  program.config.map_pool = 16;
  g_assert_cmpuint (expect_advice (&program, PTO_STATUS_MAP_OVERFLOW, "map-pool", "deadlock",
                                   "of 16 nodes are in use, 1 more", "regions.c:11", NULL),
                    >, 16);
}

/* What is to come needs twice as much as what was. */
static void
growing_regions (struct machine *machine)
{
  static uint8_t memory[400 * 16];

  pto_engine_scope_begin (machine->engine, "growing.c", 12);
  for (uint32_t i = 0; i < 200; i++)
    {
      Tensor one = machine_external (memory + 2 * i * 16, 8);
      Tensor two = machine_external (memory + (2 * i + 1) * 16, 8);

      if (i < 16)
        SUBMIT (machine, KERNEL_NOTHING, output (&one));
      else
        SUBMIT (machine, KERNEL_NOTHING, output (&one), output (&two));
    }
  pto_engine_scope_end (machine->engine);
}

static void
test_map_deadlock_growing (void)
{
  struct program program = { growing_regions, limits (PTO_BACKEND_DET) };

  program.config.map_pool = 16;
  expect_advice (&program, PTO_STATUS_MAP_OVERFLOW, "map-pool", "deadlock", NULL);
}

/* The tasks that hold the nodes are of an outer scope; the inner one, which wants more, has none
 * yet. */
static void
regions_of_outer_scope (struct machine *machine)
{
  pto_engine_scope_begin (machine->engine, "holder.c", 5);
  for (uint32_t i = 0; i < 16; i++)
    new_region (machine, i);
  pto_engine_scope_begin (machine->engine, "inner.c", 6);
  new_region (machine, 16);
  pto_engine_scope_end (machine->engine);
  pto_engine_scope_end (machine->engine);
}

static void
test_map_deadlock_names_the_holder (void)
{
  struct program program = { regions_of_outer_scope, limits (PTO_BACKEND_DET) };

  program.config.map_pool = 16;
  g_assert_null (strstr (expect_deadlock (&program, PTO_STATUS_MAP_OVERFLOW), "is free;"));
  expect_advice (&program, PTO_STATUS_MAP_OVERFLOW, "map-pool", "holder.c:5", NULL);
}

/* Argument storage goes with the window: a full one asks for a window that has room for it. */
static void
large_arguments_in_one_scope (struct machine *machine)
{
  pto_engine_scope_begin (machine->engine, "arguments.c", 9);
  for (uint32_t i = 0; i < 100; i++)
    many_arguments (machine, i);
  pto_engine_scope_end (machine->engine);
}

static void
test_argument_storage_deadlock (void)
{
  struct program program = { large_arguments_in_one_scope, limits (PTO_BACKEND_DET) };

  program.config.window = 256;
  g_assert_null (strstr (expect_deadlock (&program, PTO_STATUS_TASK_RING), "all 255 usable slots"));
  g_assert_cmpuint (
      expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", "arguments.c:9", NULL), >, 256);
}

/* What a run needs is counted alike by those that get it and, after a deadlock, by those that do
 * not. */
static void
many_outputs (struct machine *machine)
{
  Tensor before[8];

  pto_engine_scope_begin (machine->engine, "outputs.c", 1);
  for (uint32_t i = 0; i < 40; i++)
    {
      PTOParam params[16];
      Tensor tensors[8];

      for (uint32_t k = 0; k < 8; k++)
        {
          tensors[k] = machine_tensor (machine, 1024);
          params[k] = output (&tensors[k]);
          params[8 + k] = i > 0 ? inout (&before[k]) : make_scalar_param (k);
        }
      machine_submit (machine, KERNEL_NOTHING, 0, params, 16);
      memcpy (before, tensors, sizeof before);
    }
  pto_engine_scope_end (machine->engine);
}

static void
test_demand_either_way (void)
{
  for (uint32_t guard = 0; guard <= 64; guard += 64)
    {
      struct pto_demand demand[2][PTO_RINGS];

      for (uint32_t stuck = 0; stuck < 2; stuck++)
        {
          struct machine_config config = limits (PTO_BACKEND_DET);
          struct machine *machine;
          const char *message;

          config.guard_bytes = guard;
          config.window = stuck ? 8 : 1024;
          machine = machine_new (&config);
          machine_begin (machine);
          many_outputs (machine);
          g_assert_cmpint (machine_end (machine, &message), ==,
                           stuck ? PTO_STATUS_TASK_RING : PTO_OK);
          memcpy (demand[stuck], machine->engine->demand, sizeof demand[stuck]);
          machine_free (machine);
        }
      for (uint32_t r = 0; r < PTO_RINGS; r++)
        {
          g_assert_cmpuint (demand[1][r].peak[PTO_GOOD_TASKS], ==,
                            demand[0][r].peak[PTO_GOOD_TASKS]);
          g_assert_cmpuint (demand[1][r].peak[PTO_GOOD_HEAP], ==, demand[0][r].peak[PTO_GOOD_HEAP]);
          g_assert_cmpuint (demand[1][r].largest[PTO_GOOD_HEAP], ==,
                            demand[0][r].largest[PTO_GOOD_HEAP]);
          g_assert_cmpuint (demand[1][r].peak[PTO_GOOD_STORAGE], ==,
                            demand[0][r].peak[PTO_GOOD_STORAGE]);
          g_assert_cmpuint (demand[1][r].largest[PTO_GOOD_STORAGE], ==,
                            demand[0][r].largest[PTO_GOOD_STORAGE]);
          /* Nobody has more than the one that has most. */
          g_assert_cmpuint (demand[0][r].peak[PTO_GOOD_STORAGE], <=,
                            demand[0][r].peak[PTO_GOOD_TASKS]
                                * demand[0][r].largest[PTO_GOOD_STORAGE]);
          g_assert_cmpuint (demand[0][r].peak[PTO_GOOD_HEAP], <=,
                            demand[0][r].peak[PTO_GOOD_TASKS]
                                * demand[0][r].largest[PTO_GOOD_HEAP]);
          g_assert_cmpuint (demand[0][r].largest[PTO_GOOD_STORAGE], <=,
                            demand[0][r].peak[PTO_GOOD_STORAGE]);
          g_assert_cmpuint (demand[0][r].largest[PTO_GOOD_HEAP], <=,
                            demand[0][r].peak[PTO_GOOD_HEAP]);
        }
    }
}

/* A ring whose oldest task belongs to an ended scope is no deadlock, however long it takes. */
static void
test_ended_scope_is_no_deadlock (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));
  struct machine *machine;
  struct gate gate;

  config.window = 4;
  machine = machine_new (&config);
  for (uint32_t round = 0; round < 20; round++)
    {
      gate_init (&gate);
      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
      pto_engine_scope_end (machine->engine);
      gate_wait_reached (machine, &gate);
      SUBMIT (machine, KERNEL_OPENER, scalar (&gate));
      pto_engine_scope_begin (machine->engine, NULL, 0);
      for (uint32_t i = 0; i < 3; i++)
        SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
      machine_end_ok (machine);
    }
  machine_free (machine);
}

/* --- tasks that were added --- */

#define ADDED 900u

/* Says that the run is wanted no more once some of the tasks that were added are let go. */
static bool
is_cancelled (void *data)
{
  const struct machine *machine = data;
  uint32_t held = machine->engine->build.n_held;

  return held > 0 && held < ADDED;
}

static pto_task_id
submit_after (struct machine *machine, const pto_task_id *before, uint32_t n)
{
  return pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_NOTHING, .producers = before, .n_producers = n });
}

/* A submit that looks for room lets many tasks go, and hears a cancel among them. */
static void
test_cancelled_among_held (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));
  struct machine *machine;
  pto_task_id last = 0;

  config.build_first = true;
  machine = machine_new (&config);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  for (uint32_t i = 0; i < ADDED; i++)
    {
      pto_added_begin (machine->engine);
      last = submit_after (machine, &last, i > 0);
      pto_added_end (machine->engine);
    }
  machine->engine->cancelled = is_cancelled;
  machine->engine->cancelled_data = machine;
  for (uint32_t i = 0; i < config.window && !pto_engine_has_failed (machine->engine); i++)
    {
      g_assert_cmpuint (machine->engine->build.n_held, ==, ADDED);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      submit_after (machine, &last, 1);
      pto_engine_scope_end (machine->engine);
    }
  g_assert_cmpuint (machine->engine->build.n_held, >, 0);
  g_assert_cmpuint (machine->engine->build.n_held, <, ADDED);
  pto_engine_scope_end (machine->engine);
  machine_expect_error (machine, PTO_STATUS_CANCELLED, "the run was cancelled");
  machine_free (machine);
}

/* Tasks of scopes that have ended keep their edges while they come after one that is not published:
 * the first advice is enough. */
static void
test_edges_after_unpublished (gconstpointer backend)
{
  struct machine_config config = limits (BACKEND (backend));

  config.edge_pool = 16;
  for (uint32_t again = 0; again < 2; again++)
    {
      struct machine *machine = machine_new (&config);
      pto_task_id before[2];
      const char *message;

      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      pto_added_begin (machine->engine);
      before[0] = before[1] = submit_after (machine, NULL, 0);
      pto_added_end (machine->engine);
      for (uint32_t i = 0; i < 23; i++)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          before[1] = submit_after (machine, before, i > 0 ? 2 : 1);
          pto_engine_scope_end (machine->engine);
        }
      pto_build_publish (machine->engine, before[0]);
      pto_engine_scope_end (machine->engine);
      if (again)
        machine_end_ok (machine);
      else
        {
          g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_DEP_POOL);
          /* 45 are needed. */
          g_assert_cmpuint (machine_advice (message, "dep-pool"), ==, 64);
          config.edge_pool = 64;
        }
      machine_free (machine);
    }
}

static void
add_tests (void)
{
  machine_add ("engine-limits", "task-ring-stalls", test_task_ring_stalls);
  machine_add ("engine-limits", "heap-ring-stalls", test_heap_ring_stalls);
  machine_add ("engine-limits", "dependency-pool-stalls", test_dependency_pool_stalls);
  machine_add ("engine-limits", "map-pool-stalls", test_map_pool_stalls);
  machine_add ("engine-limits", "argument-storage-stalls", test_argument_storage_stalls);
  machine_add ("engine-limits", "heap-of-one-output", test_heap_of_one_output);
  machine_add ("engine-limits", "large-scope-after-small-ones", test_large_scope_after_small_ones);
  machine_add ("engine-limits", "cancelled-among-held", test_cancelled_among_held);
  machine_add ("engine-limits", "edges-after-unpublished", test_edges_after_unpublished);
  machine_add ("engine-limits", "ended-scope-is-no-deadlock", test_ended_scope_is_no_deadlock);
  g_test_add_func ("/pto/engine-limits/task-ring-deadlock", test_task_ring_deadlock);
  g_test_add_func ("/pto/engine-limits/outermost-scope-deadlock", test_outermost_scope_deadlock);
  g_test_add_func ("/pto/engine-limits/shared-ring-deadlock", test_shared_ring_deadlock);
  g_test_add_func ("/pto/engine-limits/scope-of-the-oldest", test_scope_of_the_oldest);
  g_test_add_func ("/pto/engine-limits/shared-ring-demand", test_shared_ring_demand);
  g_test_add_func ("/pto/engine-limits/heap-ring-deadlock", test_heap_ring_deadlock);
  g_test_add_func ("/pto/engine-limits/heap-demand-with-guards", test_heap_demand_with_guards);
  g_test_add_func ("/pto/engine-limits/output-larger-than-heap", test_output_larger_than_heap);
  g_test_add_func ("/pto/engine-limits/large-output-beside-held-ones",
                   test_large_output_beside_held_ones);
  g_test_add_func ("/pto/engine-limits/more-than-the-largest-heap",
                   test_more_than_the_largest_heap);
  g_test_add_func ("/pto/engine-limits/dependency-pool-deadlock", test_dependency_pool_deadlock);
  g_test_add_func ("/pto/engine-limits/dependency-pool-deadlock-after-others",
                   test_dependency_pool_deadlock_after_others);
  g_test_add_func ("/pto/engine-limits/dependency-pool-growing", test_dependency_pool_growing);
  g_test_add_func ("/pto/engine-limits/more-edges-than-the-pool", test_more_edges_than_the_pool);
  g_test_add_func ("/pto/engine-limits/map-deadlock", test_map_deadlock);
  g_test_add_func ("/pto/engine-limits/map-deadlock-growing", test_map_deadlock_growing);
  g_test_add_func ("/pto/engine-limits/map-deadlock-names-the-holder",
                   test_map_deadlock_names_the_holder);
  g_test_add_func ("/pto/engine-limits/demand-either-way", test_demand_either_way);
  g_test_add_func ("/pto/engine-limits/argument-storage-deadlock", test_argument_storage_deadlock);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
