/* test-engine-stuck.c: what is told when a full ring or pool does not move for too long?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task stands at a gate that opens when everything is submitted. As long as the ring of its scope
 * has room the program passes; once it is full, nothing moves any more, and no scope is to blame.
 */
#include "engine-test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define KIB 1024u
#define PATIENCE_NS UINT64_C (20000000)

struct program
{
  struct machine_config config;
  void (*round) (struct machine *machine, uint32_t i);
  uint32_t rounds;
  uint32_t depth; /* of the scopes that the tasks are submitted in */
  uint32_t early; /* tasks that are done before the one at the gate comes */
};

static uint8_t memory[1000 * 16];

static struct program
program_on (gconstpointer backend, void (*round) (struct machine *machine, uint32_t i),
            uint32_t rounds)
{
  return (struct program){ .config = { .backend = BACKEND (backend),
                                       .seed = 1,
                                       .schedulers = 2,
                                       .endpoints = 2,
                                       .window = 1024,
                                       .edge_pool = 4096,
                                       .map_pool = 4096,
                                       .ring_patience_ns = PATIENCE_NS },
                           .round = round,
                           .rounds = rounds,
                           .depth = 1 };
}

static void
in_scope (struct program *program, struct machine *machine, uint32_t i)
{
  pto_engine_scope_begin (machine->engine, "stuck.c", (int32_t) i);
  program->round (machine, i);
  pto_engine_scope_end (machine->engine);
}

static enum pto_status
run (struct program *program, const char **message)
{
  static char text[sizeof ((struct pto_report *) NULL)->message];
  struct machine *machine = machine_new (&program->config);
  Tensor first = machine_external (memory, 8);
  struct gate gate;
  enum pto_status status;

  gate_init (&gate);
  machine_begin (machine);
  for (uint32_t depth = 1; depth < program->depth; depth++)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  for (uint32_t i = 0; i < program->early; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (i));
      pto_engine_scope_end (machine->engine);
    }
  machine_wait_completed (machine, program->early);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_GATE, output (&first), scalar (&gate));
  pto_engine_scope_end (machine->engine);
  gate_wait_reached (machine, &gate);
  for (uint32_t i = 0; i < program->rounds; i++)
    in_scope (program, machine, i);
  gate_open (machine, &gate);
  status = machine_end (machine, message);
  g_strlcpy (text, *message, sizeof text);
  *message = text;
  g_assert_false (pto_engine_is_lost (machine->engine));
  machine_free (machine);
  return status;
}

static void
expect_ok (struct program *program)
{
  const char *message;
  enum pto_status status = run (program, &message);

  g_assert_cmpstr (message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
}

/* The run is given up and says what is full, and what of it is held; with that value of the knob it
 * passes. On det it is proved that nothing moves. */
static void
expect_advice (struct program *program, enum pto_status expected, const char *knob, uint64_t value,
               const char *full, const char *held)
{
  g_autofree char *oldest
      = g_strdup_printf ("the oldest, task %u of ring %u (gate), is running: ", program->early,
                         CLAMP (program->depth, 1, PTO_RINGS - 1));
  const char *message;
  enum pto_status status = run (program, &message);

  g_test_message ("%s", message);
  if (program->config.backend == PTO_BACKEND_DET)
    {
      g_assert_cmpint (status, ==, PTO_STATUS_SCHEDULER_TIMEOUT);
      machine_assert_names (message, "tasks are done and nothing can run any more");
      machine_assert_names (message, "while a submit waits: [");
    }
  else
    {
      g_assert_cmpint (status, ==, expected);
      machine_assert_names (message, full);
      machine_assert_names (message, "full for 20 ms");
      machine_assert_names (message, held);
      machine_assert_names (message, "none has finished meanwhile");
      machine_assert_names (message, oldest);
      machine_assert_names (message, ", or timeout to more if it needs longer");
    }
  g_assert_cmpuint (machine_follow (&program->config, message, knob), ==, value);
  expect_ok (program);
}

/* Also where scopes share a ring. */
static void
one_task (struct machine *machine, uint32_t i)
{
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (i));
}

static void
test_task_ring (gconstpointer backend)
{
  for (uint32_t depth = 1; depth <= PTO_RINGS + 1; depth++)
    {
      struct program program = program_on (backend, one_task, 12);
      g_autofree char *ring = g_strdup_printf ("task ring %u has been", MIN (depth, PTO_RINGS - 1));

      program.depth = depth;
      program.early = 3 * (depth - 1);
      program.config.window = 8;
      expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", 16, ring,
                     "7 of 7 usable slots are held by 7 tasks");
    }
}

static void
one_output (struct machine *machine, uint32_t i)
{
  Tensor tensor = machine_tensor (machine, KIB);

  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
}

static void
test_heap_ring (gconstpointer backend)
{
  struct program program = program_on (backend, one_output, 12);

  program.depth = 2;
  program.config.heap = 8 * KIB;
  expect_advice (&program, PTO_STATUS_HEAP_RING, "heap", 16 * KIB, "heap ring 2 has been",
                 " of 8192 bytes are held by ");
}

/* Each waits for the task at the gate. */
static void
one_edge (struct machine *machine, uint32_t i)
{
  Tensor first = machine_external (memory, 8);

  SUBMIT (machine, KERNEL_NOTHING, input (&first));
}

static void
test_dependency_pool (gconstpointer backend)
{
  struct program program = program_on (backend, one_edge, 24);

  program.depth = 3;
  program.config.edge_pool = 16;
  expect_advice (&program, PTO_STATUS_DEP_POOL, "dep-pool", 32, "dependency pool 3 has been",
                 "16 of 16 edges are held by 17 tasks");
}

/* Of their own memory, but they read what the task at the gate writes: none of them ends. */
static void
one_region (struct machine *machine, uint32_t i)
{
  Tensor first = machine_external (memory, 8);
  Tensor own = machine_external (memory + 16 * (i + 1), 8);

  SUBMIT (machine, KERNEL_NOTHING, input (&first), output (&own));
}

static void
test_map_pool (gconstpointer backend)
{
  struct program program = program_on (backend, one_region, 20);

  program.config.map_pool = 16;
  expect_advice (&program, PTO_STATUS_MAP_OVERFLOW, "map-pool", 32, "the TensorMap has been",
                 " of 16 nodes are held by ");
}

/* Argument storage goes with the window, but a small one has as much as one of 128. */
static void
many_arguments (struct machine *machine, uint32_t i)
{
  Tensor tensor = machine_external (memory, 8);
  PTOParam params[256];

  for (uint32_t p = 0; p < G_N_ELEMENTS (params); p++)
    params[p] = no_dep (&tensor);
  machine_submit (machine, KERNEL_NOTHING, 0, params, G_N_ELEMENTS (params));
}

static void
test_argument_storage (gconstpointer backend)
{
  for (uint32_t window = 32; window <= 128; window *= 2)
    {
      struct program program = program_on (backend, many_arguments, 12);

      program.config.window = window;
      /* Not of slots. */
      expect_advice (&program, PTO_STATUS_TASK_RING, "task-window", 256, "task ring 1 has been",
                     " of 262144 bytes of arguments are held by ");
    }
}

/* --- progress --- */

struct beats
{
  struct machine *machine;
  struct gate gate;
  uint64_t n;
};

/* Asked at each end of the patience; after a while the gate opens. */
static uint64_t
beat (void *data)
{
  struct beats *beats = data;

  if (++beats->n == 10)
    gate_open (beats->machine, &beats->gate);
  return beats->n;
}

/* As long as something gets on, however slowly, the submitter waits. */
static void
test_progress_renews_patience (void)
{
  static const enum pto_backend backends[] = { PTO_BACKEND_PAR, PTO_BACKEND_THREADS };

  for (gsize b = 0; b < G_N_ELEMENTS (backends); b++)
    {
      struct beats beats = { 0 };
      struct machine *machine = machine_new (&(struct machine_config){
          .backend = backends[b], .seed = 1, .window = 4, .ring_patience_ns = PATIENCE_NS / 10 });

      beats.machine = machine;
      gate_init (&beats.gate);
      machine->engine->config.beats = beat;
      machine->engine->config.beats_data = &beats;
      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&beats.gate));
      pto_engine_scope_end (machine->engine);
      for (uint32_t i = 0; i < 10; i++)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          one_task (machine, i);
          pto_engine_scope_end (machine->engine);
        }
      g_assert_false (pto_engine_has_failed (machine->engine));
      machine_end_ok (machine);
      g_assert_cmpuint (beats.n, >=, 10);
      machine_free (machine);
    }
}

/* --- a run that has failed --- */

/* Relaxed, as in the engine: says that the submitter waits, or is about to. */
static bool
submitter_waits (struct machine *machine)
{
  return atomic_load_explicit (&machine->engine->waiting, memory_order_relaxed) != 0;
}

static void *
cancel_once_it_waits (void *data)
{
  struct machine *machine = data;

  while (!submitter_waits (machine))
    sched_yield ();
  g_assert_true (pto_engine_cancel (machine->engine));
  return NULL;
}

static void
kernel_fail_once_it_waits (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                           bool *failed)
{
  while (!submitter_waits (machine))
    pto_yield (machine->exec);
  pto_engine_fail (machine->engine, PTO_STATUS_KERNEL_FAULT, "failed while the submitter waited");
  *failed = true;
}

/* A ring of three tasks is full, and the oldest one ends when the submitter waits no more. Nothing
 * but the failure of the run ends that wait: the patience is for ever. */
static void
fail_while_it_waits (enum pto_backend backend, bool cancel)
{
  static const machine_kernel kernels[] = { kernel_fail_once_it_waits };
  struct machine *machine = machine_new (&(struct machine_config){ .backend = backend,
                                                                   .seed = 1,
                                                                   .window = 4,
                                                                   .endpoints = 2,
                                                                   .ring_patience_ns = PTO_NEVER,
                                                                   .kernels = kernels });
  struct gate gate;
  pthread_t thread;

  gate_init (&gate);
  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  pto_engine_scope_end (machine->engine);
  gate_wait_reached (machine, &gate);
  if (cancel)
    pthread_create (&thread, NULL, cancel_once_it_waits, machine);
  else
    SUBMIT (machine, KERNEL_OWN, make_scalar_param (0));
  for (uint32_t i = 0; i < 3; i++)
    {
      g_assert_false (pto_engine_has_failed (machine->engine));
      pto_engine_scope_begin (machine->engine, NULL, 0);
      one_task (machine, i);
      pto_engine_scope_end (machine->engine);
    }
  g_assert_true (pto_engine_has_failed (machine->engine));
  if (cancel)
    pthread_join (thread, NULL);
  gate_open (machine, &gate);
  if (cancel)
    machine_expect_error (machine, PTO_STATUS_CANCELLED, "the run was cancelled");
  else
    machine_expect_error (machine, PTO_STATUS_KERNEL_FAULT, "failed while the submitter waited");
  g_assert_false (pto_engine_is_lost (machine->engine));
  machine_free (machine);
}

static void
test_cancelled (gconstpointer backend)
{
  /* There is no other thread on det. */
  if (BACKEND (backend) != PTO_BACKEND_DET)
    fail_while_it_waits (BACKEND (backend), true);
}

static void
test_failed (gconstpointer backend)
{
  fail_while_it_waits (BACKEND (backend), false);
}

static void
add_tests (void)
{
  machine_add ("engine-stuck", "task-ring", test_task_ring);
  machine_add ("engine-stuck", "heap-ring", test_heap_ring);
  machine_add ("engine-stuck", "dependency-pool", test_dependency_pool);
  machine_add ("engine-stuck", "map-pool", test_map_pool);
  machine_add ("engine-stuck", "argument-storage", test_argument_storage);
  machine_add ("engine-stuck", "cancelled", test_cancelled);
  machine_add ("engine-stuck", "failed", test_failed);
  g_test_add_func ("/pto/engine-stuck/progress-renews-patience", test_progress_renews_patience);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
