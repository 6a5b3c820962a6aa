/* test-engine-direct.c: what is different when the submitter runs each task at once, and what is
 * not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/exec/pto-atomic.h"

#include <string.h>

#define N_BYTES 3000u
/* Of a processor's counter: many tasks of no length fit into it. */
#define LONG_TICKS 400000u

/* --- kernels --- */

struct step
{
  uint8_t before; /* every byte of the first argument */
  uint8_t after;
  struct gate *gate; /* waited for first, if there is one */
  uint32_t right;
  uint32_t wrong;
};

static void
wait_at (struct machine *machine, struct gate *gate)
{
  if (gate == NULL)
    return;
  atomic_fetch_add (&gate->reached, 1);
  while (pto_word_get (&gate->open) == 0)
    pto_park (machine->exec, &gate->open, 0, PTO_NEVER);
}

/* args: tensor, step */
static void
kernel_step (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct step *step = (struct step *) (uintptr_t) args[1];
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];
  uint8_t *bytes = (uint8_t *) (uintptr_t) tensor->buffer.addr;
  bool right = true;

  (void) slot;
  (void) failed;
  wait_at (machine, step->gate);
  for (uint64_t i = 0; i < tensor->buffer.size; i++)
    right = right && bytes[i] == step->before;
  if (right)
    step->right++;
  else
    step->wrong++;
  memset (bytes, step->after, tensor->buffer.size);
}

static void
kernel_extra (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  char **into = (char **) (uintptr_t) args[0];

  (void) machine;
  g_assert_cmpuint ((uintptr_t) pto_payload_extra (slot->payload) % 8, ==, 0);
  *into = g_strdup (pto_payload_extra (slot->payload));
  *failed = false;
}

/* args: _Atomic uint32_t that it sets */
static void
kernel_cancel (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_store ((_Atomic uint32_t *) (uintptr_t) args[0], 1);
}

/* Until the run has failed; lets others run meanwhile. */
static void
kernel_until_failed (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                     bool *failed)
{
  while (!pto_engine_has_failed (machine->engine))
    pto_yield (machine->exec);
}

/* args: ticks */
static void
kernel_spend (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint64_t begin = pto_ticks ();

  while (pto_ticks () - begin < (uint64_t) args[0])
    ;
}

enum
{
  KERNEL_STEP = KERNEL_OWN,
  KERNEL_CANCEL,
  KERNEL_UNTIL_FAILED,
  KERNEL_SPEND,
  KERNEL_EXTRA
};
static const machine_kernel kernels[]
    = { kernel_step, kernel_cancel, kernel_until_failed, kernel_spend, kernel_extra };

/* --- a machine that runs tasks at once, however long they take --- */

static struct machine *
new_machine (uint32_t schedulers, uint32_t window)
{
  return machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                .seed = 1,
                                                .schedulers = schedulers,
                                                .endpoints = 2,
                                                .queues = 2,
                                                .window = window,
                                                .guard_bytes = 64,
                                                .kernels = kernels });
}

/* --- tests --- */

static void
test_runs_at_once (void)
{
  struct machine *machine = new_machine (2, 16);
  struct pto_engine *engine = machine->engine;
  _Atomic uint32_t count = 0;

  for (uint32_t run = 0; run < 3; run++)
    {
      uint32_t before = count;

      machine_begin (machine);
      pto_engine_scope_begin (engine, NULL, 0);
      machine_go_direct (machine);
      for (uint32_t i = 0; i < 5; i++)
        {
          SUBMIT_TO (machine, KERNEL_COUNT, i % 2, make_scalar_param (0), scalar (&count));
          g_assert_cmpuint (count, ==, before + i + 1);
          SUBMIT_TO (machine, PTO_KERNEL_NONE, i % 2, make_scalar_param (0));
          g_assert_cmpuint (pto_engine_completed (engine), ==, engine->submitted);
        }
      g_assert_true (engine->direct);
      pto_engine_scope_end (engine);
      machine_end_ok (machine);
      g_assert_false (engine->direct);
    }
  machine_free (machine);
}

/* A run that ended so is followed by one that begins so. */
static void
test_next_run_begins_so (void)
{
  struct machine *machine = new_machine (1, 64);

  machine_begin (machine);
  machine_go_direct (machine);
  machine_end_ok (machine);
  machine_begin (machine);
  machine->engine->direct_limit = UINT64_MAX;
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  g_assert_true (machine->engine->direct);
  machine_end_ok (machine);
  machine_free (machine);
}

/* Long tasks end it; nothing is lost. */
static void
test_long_tasks_end_it (void)
{
  struct machine *machine = new_machine (2, 64);
  _Atomic uint32_t count = 0;

  machine_begin (machine);
  machine_go_direct (machine);
  machine->engine->direct_limit = 0;
  for (uint32_t i = 0; i < 1000; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
      pto_engine_scope_end (machine->engine);
    }
  g_assert_false (machine->engine->direct);
  machine_end_ok (machine);
  g_assert_cmpuint (count, ==, 1000);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
  g_assert_false (machine->engine->direct);
  machine_end_ok (machine);
  machine_free (machine);
}

/* Also when they come in a rhythm: some of them are timed before long. */
static void
test_long_tasks_in_a_rhythm (void)
{
  struct machine *machine = new_machine (2, 64);
  struct pto_engine *engine = machine->engine;

  for (uint32_t period = 2; period <= 8; period++)
    for (uint32_t place = 0; place < period; place++)
      {
        uint32_t n_long = 0;

        machine_begin (machine);
        machine_go_direct (machine);
        engine->direct_ticks = 0;
        engine->direct_limit = LONG_TICKS / 2;
        while (engine->direct && n_long < 256)
          {
            bool is_long = (engine->submitted + 1) % period == place;

            n_long += is_long;
            pto_engine_scope_begin (engine, NULL, 0);
            SUBMIT (machine, KERNEL_SPEND, make_scalar_param (is_long ? LONG_TICKS : 0));
            pto_engine_scope_end (engine);
          }
        g_assert_false (engine->direct);
        machine_end_ok (machine);
      }
  machine_free (machine);
}

/* The graph that is found is the same: each edge, and how many. */
static void
test_same_edges (void)
{
  struct machine *machine = new_machine (2, 64);
  uint32_t found[2];

  machine_record (machine);
  for (uint32_t direct = 0; direct < 2; direct++)
    {
      uint8_t memory[2][16] = { { 0 } };
      struct step step = { 0 };
      Tensor a = machine_external (memory[0], 16);
      Tensor b = machine_external (memory[1], 16);
      Tensor made;
      pto_task_id tasks[5];
      struct gate gate;

      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      gate_init (&gate);
      if (direct)
        machine_go_direct (machine);
      made = machine_tensor (machine, 64);
      tasks[0] = SUBMIT (machine, KERNEL_STEP, inout (&a), scalar (&step));
      tasks[1] = SUBMIT (machine, KERNEL_NOTHING, input (&a), output (&made));
      tasks[2] = SUBMIT (machine, KERNEL_NOTHING, input (&a), output (&b));
      tasks[3] = SUBMIT (machine, KERNEL_NOTHING, inout (&a), input (&made));
      tasks[4] = SUBMIT (machine, KERNEL_NOTHING, output (&b), input (&a));
      g_assert_true (machine->engine->direct == (direct != 0));
      pto_engine_scope_end (machine->engine);
      machine_end_ok (machine);
      g_assert_cmphex (machine_edge (machine, tasks[1], tasks[0]), ==, PTO_HAZARD_RAW);
      g_assert_cmphex (machine_edge (machine, tasks[2], tasks[0]), ==, PTO_HAZARD_RAW);
      g_assert_cmphex (machine_edge (machine, tasks[3], tasks[1]), ==,
                       PTO_HAZARD_RAW | PTO_HAZARD_WAR);
      g_assert_cmphex (machine_edge (machine, tasks[3], tasks[2]), ==, PTO_HAZARD_WAR);
      g_assert_cmphex (machine_edge (machine, tasks[4], tasks[2]), ==, PTO_HAZARD_WAW);
      g_assert_cmphex (machine_edge (machine, tasks[4], tasks[3]), ==, PTO_HAZARD_RAW);
      found[direct] = machine_n_edges (machine);
      g_assert_cmpuint (machine->engine->stats.edges, ==, found[direct]);
    }
  g_assert_cmpuint (found[0], ==, found[1]);
  machine_free (machine);
}

/* A task that waits is left to the schedulers: its memory stays, its consumers wait. */
static void
test_a_task_that_waits (void)
{
  for (uint32_t schedulers = 1; schedulers <= 2; schedulers++)
    {
      struct machine *machine = new_machine (schedulers, 64);
      struct pto_engine *engine = machine->engine;
      struct gate gate;
      struct step first = { .before = 1, .after = 2, .gate = &gate };
      struct step second = { .before = 2, .after = 3 };
      _Atomic uint32_t others = 0;

      gate_init (&gate);
      machine_begin (machine);
      pto_engine_scope_begin (engine, NULL, 0);
      machine_go_direct (machine);
      {
        Tensor made = machine_tensor (machine, N_BYTES);

        SUBMIT (machine, KERNEL_FILL, output (&made), make_scalar_param (1));
        SUBMIT (machine, KERNEL_STEP, inout (&made), scalar (&first));
        g_assert_cmpuint (gate.reached, ==, 1);
        g_assert_false (engine->direct);
        SUBMIT (machine, KERNEL_STEP, inout (&made), scalar (&second));
      }
      pto_engine_scope_end (engine);
      /* These would take the memory if it were free. */
      for (uint32_t i = 0; i < 30; i++)
        {
          Tensor made;

          pto_engine_scope_begin (engine, NULL, 0);
          made = machine_tensor (machine, N_BYTES);
          SUBMIT (machine, KERNEL_FILL, output (&made), make_scalar_param (9));
          SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&others));
          pto_engine_scope_end (engine);
        }
      g_assert_cmpuint (second.right + second.wrong, ==, 0);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      g_assert_cmpuint (first.right, ==, 1);
      g_assert_cmpuint (second.right, ==, 1);
      g_assert_cmpuint (others, ==, 30);
      machine_free (machine);
    }
}

/* Whatever it uses of another task's memory is still there. */
static void
test_a_task_that_waits_retains (void)
{
  static const PTOParamType types[] = { PTO_PARAM_INPUT, PTO_PARAM_INOUT, PTO_PARAM_NO_DEP };

  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    {
      struct machine *machine = new_machine (2, 64);
      struct pto_engine *engine = machine->engine;
      struct gate gate;
      pto_task_id filled;
      Tensor made;

      gate_init (&gate);
      machine_begin (machine);
      machine_go_direct (machine);
      pto_engine_scope_begin (engine, NULL, 0);
      made = machine_tensor (machine, N_BYTES);
      filled = SUBMIT (machine, KERNEL_FILL, output (&made), byte (1));
      g_assert_true (engine->direct);
      SUBMIT (machine, KERNEL_GATE, pto2_make_param (types[i], &made), scalar (&gate));
      g_assert_false (engine->direct);
      pto_engine_scope_end (engine);
      pto_ring_reclaim (&engine->rings[1], &engine->tails[1]);
      g_assert_cmpint (pto_engine_task_state (engine, filled), ==, PTO_TASK_COMPLETED);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      machine_free (machine);
    }
}

/* A failure ends it: whoever needs the task is not run. */
static void
test_a_task_that_fails (void)
{
  struct machine *machine = new_machine (2, 64);
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  _Atomic uint32_t fine = 0;

  for (uint32_t run = 0; run < 2; run++)
    {
      uint8_t memory[1];
      Tensor tensor = machine_external (memory, 1);

      machine_begin (machine);
      machine_go_direct (machine);
      SUBMIT (machine, KERNEL_FAIL, output (&tensor), scalar (&failed));
      g_assert_false (machine->engine->direct);
      SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&poisoned));
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&fine));
      machine_end_ok (machine);
      g_assert_cmpuint (failed, ==, run + 1);
      g_assert_cmpuint (poisoned, ==, 0);
      g_assert_cmpuint (fine, ==, run + 1);
      g_assert_cmpuint (pto_engine_completed (machine->engine), ==, machine->engine->submitted);
    }
  machine_free (machine);
}

/* Whoever needs it, itself or through others, in whatever scope, is told which task it was. */
static void
test_a_failure_has_its_name (void)
{
  struct machine *machine = new_machine (2, 64);
  struct pto_engine *engine = machine->engine;
  uint8_t memory[4];
  Tensor tensors[4];
  struct gate gate;
  pto_task_id failed;
  pto_task_id consumers[3];
  pto_task_id other;
  _Atomic uint32_t count = 0;
  _Atomic uint32_t fine = 0;

  for (uint32_t i = 0; i < 4; i++)
    tensors[i] = machine_external (&memory[i], 1);
  gate_init (&gate);
  machine_begin (machine);
  machine_go_direct (machine);
  /* Retires nothing meanwhile. */
  pto_engine_scope_begin (engine, NULL, 0);
  pto_engine_scope_begin (engine, NULL, 0);
  SUBMIT (machine, KERNEL_COUNT, output (&tensors[0]), scalar (&fine));
  failed
      = SUBMIT (machine, KERNEL_FAIL, inout (&tensors[0]), output (&tensors[1]), scalar (&count));
  g_assert_cmpuint (count, ==, 1);
  g_assert_false (engine->direct);
  consumers[0]
      = SUBMIT (machine, KERNEL_COUNT, input (&tensors[1]), output (&tensors[2]), scalar (&count));
  pto_engine_scope_begin (engine, NULL, 0);
  consumers[1] = SUBMIT (machine, KERNEL_COUNT, inout (&tensors[2]), scalar (&count));
  consumers[2] = SUBMIT (machine, PTO_KERNEL_NONE, input (&tensors[2]), output (&tensors[1]));
  other = SUBMIT (machine, KERNEL_COUNT, output (&tensors[3]), scalar (&fine));
  machine_wait_completed (machine, engine->submitted);
  for (uint32_t i = 0; i < 3; i++)
    {
      struct pto_slot *slot = pto_ring_slot (&engine->rings[PTO_TASK_RING (consumers[i])],
                                             PTO_TASK_LOCAL (consumers[i]));

      g_assert_cmphex (slot->id, ==, consumers[i]);
      g_assert_cmpint (slot->state, ==, PTO_TASK_FAILED);
      g_assert_cmphex (slot->poison, ==, failed);
    }
  g_assert_cmpint (pto_engine_task_state (engine, other), ==, PTO_TASK_COMPLETED);
  g_assert_cmpint (pto_engine_task_state (engine, failed), ==, PTO_TASK_FAILED);
  pto_engine_scope_end (engine);
  pto_engine_scope_end (engine);
  pto_engine_scope_end (engine);
  machine_end_ok (machine);
  g_assert_cmpuint (count, ==, 1);
  g_assert_cmpuint (fine, ==, 2);
  machine_free (machine);
}

static void
test_a_task_that_ends_the_run (void)
{
  struct machine *machine = new_machine (2, 64);
  _Atomic uint32_t count = 0;
  const char *message;

  machine_begin (machine);
  machine_go_direct (machine);
  SUBMIT (machine, KERNEL_FATAL, make_scalar_param (0), scalar (&count));
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
  g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_KERNEL_FAULT);
  g_assert_cmpuint (count, ==, 1);
  machine_begin (machine);
  machine_go_direct (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
  machine_end_ok (machine);
  g_assert_cmpuint (count, ==, 2);
  machine_free (machine);
}

/* The same deep in scopes: the message is of the task that did it. */
static void
test_a_task_that_ends_the_run_in_scopes (void)
{
  struct machine *machine = new_machine (2, 64);

  for (uint32_t depth = 1; depth <= PTO_RINGS + 2; depth++)
    {
      g_autofree char *text = NULL;
      _Atomic uint32_t count = 0;
      pto_task_id task;

      machine_begin (machine);
      machine_go_direct (machine);
      for (uint32_t i = 0; i < depth; i++)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
        }
      g_assert_true (machine->engine->direct);
      task = SUBMIT (machine, KERNEL_FATAL, make_scalar_param (0), scalar (&count));
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&count));
      text = g_strdup_printf ("task %u of ring %u crashed", PTO_TASK_LOCAL (task),
                              MIN (depth, PTO_RINGS - 1));
      machine_expect_error (machine, PTO_STATUS_KERNEL_FAULT, text);
      g_assert_cmpuint (count, ==, depth + 1);
    }
  machine_free (machine);
}

static bool
cancelled (void *data)
{
  return atomic_load ((_Atomic uint32_t *) data) != 0;
}

/* The cancel comes while a kernel runs within its submit: seen at the next look. */
static void
test_cancel (void)
{
  struct machine *machine = new_machine (2, 64);
  struct pto_engine *engine = machine->engine;
  _Atomic uint32_t flag = 0;
  _Atomic uint32_t ran = 0;

  engine->cancelled = cancelled;
  engine->cancelled_data = &flag;
  machine_begin (machine);
  machine_go_direct (machine);
  SUBMIT (machine, KERNEL_CANCEL, scalar (&flag));
  g_assert_cmpuint (flag, ==, 1);
  for (uint32_t i = 0; i < 1000; i++)
    {
      pto_engine_scope_begin (engine, NULL, 0);
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
      pto_engine_scope_end (engine);
    }
  g_assert_true (pto_engine_has_failed (engine));
  machine_expect_error (machine, PTO_STATUS_CANCELLED, "the run was cancelled");
  g_assert_cmpuint (ran, <, 64);
  g_assert_false (engine->direct);
  flag = 0;
  machine_begin (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
  machine_end_ok (machine);
  machine_free (machine);
}

/* The same, and the submitter comes to wait: for the end, or for room. */
static void
test_cancel_seen_while_waiting (void)
{
  for (uint32_t window = 8; window <= 64; window += 56)
    {
      struct machine *machine = new_machine (2, window);
      struct pto_engine *engine = machine->engine;
      _Atomic uint32_t flag = 0;
      _Atomic uint32_t ran = 0;
      uint8_t memory[1];
      Tensor tensor = machine_external (memory, 1);

      engine->cancelled = cancelled;
      engine->cancelled_data = &flag;
      machine_begin (machine);
      machine_go_direct (machine);
      /* Not the sweep is to see it. */
      engine->unswept = 0;
      SUBMIT (machine, KERNEL_CANCEL, scalar (&flag));
      g_assert_true (engine->direct);
      pto_engine_scope_begin (engine, NULL, 0);
      SUBMIT (machine, KERNEL_UNTIL_FAILED, output (&tensor));
      pto_engine_scope_end (engine);
      g_assert_false (engine->direct);
      for (uint32_t i = 0; i < 10; i++)
        {
          pto_engine_scope_begin (engine, NULL, 0);
          SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&ran));
          pto_engine_scope_end (engine);
        }
      g_assert_cmpint (pto_engine_has_failed (engine), ==, window == 8);
      machine_expect_error (machine, PTO_STATUS_CANCELLED, "the run was cancelled");
      g_assert_cmpuint (ran, ==, 0);
      machine_free (machine);
    }
}

/* Goes down, and on the way back finds what it had written. */
static void
nest (struct machine *machine, uint32_t depth, struct expectation *expectations, uint64_t *n_tasks)
{
  struct pto_engine *engine = machine->engine;
  Tensor made;

  pto_engine_scope_begin (engine, NULL, 0);
  made = machine_tensor (machine, 3 * N_BYTES);
  SUBMIT (machine, KERNEL_FILL, output (&made), byte ((uint8_t) depth));
  *n_tasks += 1;
  if (depth > 1)
    for (uint32_t i = 0; i < 2; i++)
      {
        Tensor part = machine_part (&made, i * N_BYTES, N_BYTES);

        nest (machine, depth - 1, expectations, n_tasks);
        SUBMIT (machine, KERNEL_CHECK, input (&part), scalar (&expectations[depth]));
        *n_tasks += 1;
      }
  g_assert_true (engine->direct);
  pto_engine_scope_end (engine);
}

/* Memory of ended scopes goes to others, that of open ones stays; rings wrap. */
static void
test_nested_scopes (void)
{
  const uint32_t depth = 6;
  struct machine *machine = new_machine (2, 32);
  struct expectation expectations[7] = { { 0 } };
  uint64_t n_tasks = 0;
  uint64_t before;

  for (uint32_t i = 0; i <= depth; i++)
    expectations[i].byte = (uint8_t) i;
  machine_begin (machine);
  machine_go_direct (machine);
  before = machine->engine->submitted;
  nest (machine, depth, expectations, &n_tasks);
  g_assert_cmpuint (machine->engine->submitted, ==, before + n_tasks);
  g_assert_cmpuint (pto_engine_completed (machine->engine), ==, before + n_tasks);
  g_assert_cmpuint (machine->engine->n_buffers, ==, 0);
  g_assert_cmpuint (pto_engine_recycled (machine->engine), >, 0);
  machine_end_ok (machine);
  for (uint32_t i = 2; i <= depth; i++)
    {
      g_assert_cmpuint (expectations[i].right, ==, 1u << (depth - i + 1));
      g_assert_cmpuint (expectations[i].wrong, ==, 0);
    }
  machine_free (machine);
}

/* What an endpoint is told besides goes with the slot, also round the ring. */
static void
test_extra (void)
{
  struct machine *machine = new_machine (1, 8);
  char *seen = NULL;

  machine_begin (machine);
  for (uint32_t i = 0; i < 100; i++)
    {
      g_autofree char *text = g_strnfill (i * 7, (char) ('a' + i % 26));
      PTOParam params[] = { scalar (&seen) };
      struct pto_submit submit = { .kernel = KERNEL_EXTRA,
                                   .params = params,
                                   .n_params = 1,
                                   .extra = text,
                                   .extra_bytes = i * 7 + 1 };

      pto_engine_scope_begin (machine->engine, NULL, 0);
      pto_engine_submit (machine->engine, &submit);
      pto_engine_scope_end (machine->engine);
      while (pto_engine_completed (machine->engine) <= i)
        pto_exec_help (machine->exec);
      g_assert_cmpstr (seen, ==, text);
      g_clear_pointer (&seen, g_free);
    }
  machine_end_ok (machine);
  machine_free (machine);
}

static void
assert_retains (struct machine *machine, pto_task_id task, uint32_t n)
{
  const struct pto_slot *slot
      = pto_ring_slot (&machine->engine->rings[PTO_TASK_RING (task)], PTO_TASK_LOCAL (task));

  g_assert_true (machine->engine->direct);
  g_assert_cmpuint (slot->n_retained, ==, n);
  g_assert_cmpuint (slot->n_edges, ==, n);
}

/* It takes an edge for each task whose memory it uses, in whatever order and however often its
 * arguments name that. */
static void
test_one_edge_for_each_producer (void)
{
  struct machine *machine = new_machine (1, 256);
  static uint8_t memory[64];
  Tensor external = machine_external (memory, sizeof memory);
  Tensor a;
  Tensor b;
  Tensor half;

#define TASK(...) SUBMIT (machine, KERNEL_NOTHING, __VA_ARGS__)
  machine_begin (machine);
  machine_go_direct (machine);
  for (uint32_t i = 0; i < 5; i++)
    {
      a = machine_tensor (machine, 64);
      b = machine_tensor (machine, 64);
      assert_retains (machine, TASK (output (&a), existing (&external)), 0);
      half = machine_part (&a, 32, 32);
      assert_retains (machine, TASK (output (&b)), 0);
      assert_retains (machine, TASK (input (&external)), 0);
      assert_retains (machine, TASK (input (&external), input (&a)), 1);
      assert_retains (machine, TASK (input (&a), input (&external)), 1);
      assert_retains (machine, TASK (input (&a), input (&half), input (&a)), 1);
      assert_retains (machine, TASK (no_dep (&a), input (&a), no_dep (&half)), 1);
      assert_retains (machine, TASK (input (&b), input (&a), input (&b), input (&half)), 2);
    }
#undef TASK
  machine_end_ok (machine);
  machine_free (machine);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-direct/one-edge-for-each-producer",
                   test_one_edge_for_each_producer);
  g_test_add_func ("/pto/engine-direct/runs-at-once", test_runs_at_once);
  g_test_add_func ("/pto/engine-direct/next-run-begins-so", test_next_run_begins_so);
  g_test_add_func ("/pto/engine-direct/long-tasks-end-it", test_long_tasks_end_it);
  g_test_add_func ("/pto/engine-direct/long-tasks-in-a-rhythm", test_long_tasks_in_a_rhythm);
  g_test_add_func ("/pto/engine-direct/same-edges", test_same_edges);
  g_test_add_func ("/pto/engine-direct/a-task-that-waits", test_a_task_that_waits);
  g_test_add_func ("/pto/engine-direct/a-task-that-waits-retains", test_a_task_that_waits_retains);
  g_test_add_func ("/pto/engine-direct/a-task-that-fails", test_a_task_that_fails);
  g_test_add_func ("/pto/engine-direct/a-task-that-ends-the-run", test_a_task_that_ends_the_run);
  g_test_add_func ("/pto/engine-direct/a-task-that-ends-the-run-in-scopes",
                   test_a_task_that_ends_the_run_in_scopes);
  g_test_add_func ("/pto/engine-direct/a-failure-has-its-name", test_a_failure_has_its_name);
  g_test_add_func ("/pto/engine-direct/cancel", test_cancel);
  g_test_add_func ("/pto/engine-direct/cancel-seen-while-waiting", test_cancel_seen_while_waiting);
  g_test_add_func ("/pto/engine-direct/nested-scopes", test_nested_scopes);
  g_test_add_func ("/pto/engine-direct/extra", test_extra);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
