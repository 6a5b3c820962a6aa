/* test-engine-failures.c: what becomes of a run in which something fails?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

/* Ends the run a while later (det). */
static void
kernel_late_fatal (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                   bool *failed)
{
  pto_charge (machine->exec, (uint64_t) args[0]);
  pto_engine_fail (machine->engine, PTO_STATUS_KERNEL_FAULT, "late");
  *failed = true;
}

enum
{
  KERNEL_LATE_FATAL = KERNEL_OWN
};

static const machine_kernel kernels[] = { kernel_late_fatal };

static void
test_first_error_latches (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  _Atomic uint32_t crashed = 0;
  _Atomic uint32_t ran = 0;
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);
  const char *message;

  for (uint32_t round = 0; round < 20; round++)
    {
      crashed = ran = 0;
      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_FATAL, inout (&tensor), scalar (&crashed));
      for (uint32_t i = 0; i < 10; i++)
        SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
      while (!pto_engine_has_failed (machine->engine))
        pto_exec_help (machine->exec);
      {
        uint64_t submitted = machine->engine->submitted;

        /* Nothing happens any more, and nothing else is heard of. */
        pto_engine_fail (machine->engine, PTO_STATUS_EXPLICIT, "second");
        pto_engine_scope_begin (machine->engine, NULL, 0);
        SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
        pto_engine_scope_end (machine->engine);
        pto_engine_scope_end (machine->engine);
        pto_engine_scope_end (machine->engine);
        g_assert_cmpuint (machine->engine->submitted, ==, submitted);
      }
      g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_KERNEL_FAULT);
      g_assert_cmpstr (message, ==, "task 0 of ring 1 crashed");
      g_assert_cmpuint (crashed, ==, 1);
      g_assert_cmpuint (ran, ==, 0);
      g_assert_false (pto_engine_is_lost (machine->engine));
      /* The next run succeeds. */
      machine_begin (machine);
      SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (&ran));
      machine_end_ok (machine);
      g_assert_cmpuint (ran, ==, 1);
    }
  machine_free (machine);
}

/* Which error wins is the one whose status is reported: its text with it. */
static void
test_text_belongs_to_status (void)
{
  uint32_t faults = 0;
  uint32_t deadlocks = 0;

  for (uint32_t late = 0; late < 600; late += 10)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET,
                                                                       .seed = 1,
                                                                       .window = 4,
                                                                       .submit_cost = 100,
                                                                       .kernels = kernels });
      const char *message;
      enum pto_status status;

      machine_begin (machine);
      SUBMIT (machine, KERNEL_LATE_FATAL, make_scalar_param (late));
      /* The window is full at the third of them: the run ends for one reason or the other. */
      for (uint32_t i = 0; i < 4; i++)
        SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      status = machine_end (machine, &message);
      if (status == PTO_STATUS_KERNEL_FAULT)
        {
          g_assert_cmpstr (message, ==, "late");
          faults++;
        }
      else
        {
          g_assert_cmpint (status, ==, PTO_STATUS_TASK_RING);
          machine_assert_names (message, "deadlock in task ring");
          deadlocks++;
        }
      machine_free (machine);
    }
  g_assert_cmpuint (faults, >, 0);
  g_assert_cmpuint (deadlocks, >, 0);
}

/* A failed task fails everything behind it, once each, and nothing else; all of it is given back.
 */
static void
poison (struct machine *machine, bool wired_before)
{
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  _Atomic uint32_t fine = 0;
  struct gate gate;
  Tensor source;
  Tensor chain[20];
  Tensor other;
  uint8_t before[1];
  Tensor barrier = machine_external (before, 1);

  gate_init (&gate);
  if (!wired_before)
    gate_open (machine, &gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, output (&barrier), scalar (&gate));
  if (wired_before)
    gate_wait_reached (machine, &gate);
  source = machine_tensor (machine, 64);
  other = machine_tensor (machine, 64);
  SUBMIT (machine, KERNEL_FAIL, input (&barrier), output (&source), scalar (&failed));
  SUBMIT (machine, KERNEL_COUNT, input (&barrier), output (&other), scalar (&fine));
  if (!wired_before)
    machine_wait_completed (machine, 3);
  for (uint32_t i = 0; i < G_N_ELEMENTS (chain); i++)
    {
      chain[i] = machine_tensor (machine, 64);
      SUBMIT_TO (machine, KERNEL_COUNT, i % 2, input (i < 5 ? &source : &chain[i - 5]),
                 input (&other), output (&chain[i]), scalar (&poisoned));
      SUBMIT_TO (machine, PTO_KERNEL_NONE, i % 2, input (&chain[i]));
      SUBMIT_TO (machine, KERNEL_COUNT, i % 2, inout (&other), scalar (&poisoned));
      other = machine_tensor (machine, 64);
      SUBMIT (machine, KERNEL_COUNT, output (&other), scalar (&fine));
    }
  gate_open (machine, &gate);
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  g_assert_cmpuint (fine, ==, 1 + G_N_ELEMENTS (chain));
  {
    uint64_t sum = 0;

    for (uint32_t s = 0; s < machine->config.schedulers; s++)
      sum += atomic_load (&machine->schedulers[s]->words.failed);
    g_assert_cmpuint (sum, ==, 1 + 3 * G_N_ELEMENTS (chain));
  }
}

static void
test_failure_poisons_consumers (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                                   .seed = 1,
                                                                   .schedulers = 2,
                                                                   .endpoints = 2,
                                                                   .queues = 2,
                                                                   .window = 256,
                                                                   .kernels = kernels });

  for (uint32_t i = 0; i < 20; i++)
    {
      poison (machine, true);
      poison (machine, false);
    }
  machine_free (machine);
}

/* A consumer that comes when its failed producer is long retired is poisoned all the same. */
static void
test_failure_outlives_its_slot (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 4, .kernels = kernels });
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  uint8_t memory[8];
  Tensor tensor = machine_external (memory, sizeof memory);

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_FAIL, output (&tensor), scalar (&failed));
  pto_engine_scope_end (machine->engine);
  for (uint32_t i = 0; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (machine->engine);
    }
  SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&poisoned));
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  machine_free (machine);
}

/* The same when the producer is retired while the consumer's submit waits for room; and who depends
 * on a good one is fine, though others have failed. */
static void
test_failure_outlives_a_wait (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .window = 4, .kernels = kernels });
  _Atomic uint32_t failed = 0;
  _Atomic uint32_t poisoned = 0;
  _Atomic uint32_t ran = 0;
  _Atomic uint32_t fine = 0;
  uint8_t memory[8];
  uint8_t others[8];
  Tensor tensor = machine_external (memory, sizeof memory);
  Tensor good = machine_external (others, sizeof others);

  machine_begin (machine);
  for (uint32_t i = 0; i < 7; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      switch (i)
        {
        case 0:
          SUBMIT (machine, KERNEL_FAIL, output (&tensor), scalar (&failed));
          break;
        case 3:
          SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (&poisoned));
          break;
        case 4:
          SUBMIT (machine, KERNEL_COUNT, output (&good), scalar (&ran));
          break;
        default:
          SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
          break;
        }
      pto_engine_scope_end (machine->engine);
    }
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_COUNT, input (&good), scalar (&fine));
  pto_engine_scope_end (machine->engine);
  machine_end_ok (machine);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (poisoned, ==, 0);
  g_assert_cmpuint (ran, ==, 1);
  g_assert_cmpuint (fine, ==, 1);
  machine_free (machine);
}

static bool
cancelled (void *data)
{
  return atomic_load ((_Atomic uint32_t *) data) != 0;
}

static void
test_cancel (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  _Atomic uint32_t flag = 0;
  _Atomic uint32_t ran = 0;

  machine->engine->cancelled = cancelled;
  machine->engine->cancelled_data = &flag;
  machine_begin (machine);
  for (uint32_t i = 0; i < 1000; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
      pto_engine_scope_end (machine->engine);
      if (i == 500)
        flag = 1;
    }
  machine_expect_error (machine, PTO_STATUS_CANCELLED, "cancelled");
  g_assert_cmpuint (ran, <, 600);
  flag = 0;
  machine_begin (machine);
  SUBMIT (machine, KERNEL_COUNT, make_scalar_param (0), scalar (&ran));
  machine_end_ok (machine);
  machine_free (machine);
}

/* det: tasks that can never end are told as such, at once. */
static void
test_stuck_run_is_proved (void)
{
  struct machine *machine
      = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET, .seed = 1 });
  struct gate gate;
  const char *message;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_SCHEDULER_TIMEOUT);
  machine_assert_names (message, "0 of 1 tasks are done and nothing can run");
  g_assert_true (pto_engine_is_lost (machine->engine));
  g_assert_cmpuint (pto_now (machine->exec), ==, 0);
  /* Let it end after all, so that the machine can be taken apart. */
  pto_exec_enter (machine->exec);
  gate_open (machine, &gate);
  while (pto_exec_help (machine->exec))
    ;
  pto_exec_leave (machine->exec);
  machine_free (machine);
}

/* Without progress for eight times the time-out the run is given up; with progress never. */
static void
test_timeout (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .timeout_ns = 20000000, .kernels = kernels });
  struct gate gate;
  const char *message;

  gate_init (&gate);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_GATE, make_scalar_param (0), scalar (&gate));
  /* On par the guest would carry the task itself and never come back from it: not a matter of the
   * engine. */
  g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_SCHEDULER_TIMEOUT);
  machine_assert_names (message, BACKEND (backend) == PTO_BACKEND_DET
                                     ? "nothing can run any more"
                                     : "no task finished for 160 ms");
  pto_exec_enter (machine->exec);
  gate_open (machine, &gate);
  while (pto_engine_completed (machine->engine) == 0)
    pto_exec_help (machine->exec);
  pto_exec_leave (machine->exec);
  machine_free (machine);
}

/* What is said behind a text that fills the report is left out, and what follows it is let be. */
static void
test_full_report (void)
{
  struct
  {
    struct pto_report report;
    char behind[32];
  } full = { .report.message = "begin" };
  const gsize size = sizeof full.report.message;

  memset (full.behind, 'x', sizeof full.behind);
  pto_report_append (&full.report, "%0*d", (int) size - 10, 1);
  g_assert_cmpuint (strlen (full.report.message), ==, size - 5);
  for (int i = 0; i < 3; i++)
    pto_report_append (&full.report, "%s", "the end");
  g_assert_cmpuint (strlen (full.report.message), ==, size - 1);
  g_assert_true (g_str_has_prefix (full.report.message, "begin00"));
  g_assert_true (g_str_has_suffix (full.report.message, "01the "));
  for (gsize i = 0; i < sizeof full.behind; i++)
    g_assert_cmpint (full.behind[i], ==, 'x');
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-failures/full-report", test_full_report);
  machine_add ("engine-failures", "first-error-latches", test_first_error_latches);
  g_test_add_func ("/pto/engine-failures/text-belongs-to-status", test_text_belongs_to_status);
  machine_add ("engine-failures", "failure-poisons-consumers", test_failure_poisons_consumers);
  machine_add ("engine-failures", "failure-outlives-its-slot", test_failure_outlives_its_slot);
  machine_add ("engine-failures", "failure-outlives-a-wait", test_failure_outlives_a_wait);
  machine_add ("engine-failures", "cancel", test_cancel);
  g_test_add_func ("/pto/engine-failures/stuck-run-is-proved", test_stuck_run_is_proved);
  machine_add ("engine-failures", "timeout", test_timeout);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
