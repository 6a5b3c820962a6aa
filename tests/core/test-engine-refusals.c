/* test-engine-refusals.c: what does the engine refuse, and in which words?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

static void
test_tensor_of_an_ended_scope (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  pto_engine_scope_end (machine->engine);
  SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
  machine_expect_error (
      machine, PTO_STATUS_INVALID_ARGS,
      "task 1 (nothing): argument 0: the tensor was made in a scope that has ended");
  /* A record that is in use again is not mistaken for the one before. */
  machine_begin (machine);
  machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_NOTHING, output (&tensor));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "made in a scope that has ended");
  machine_free (machine);
}

/* Stays until the scope that it was made in ends, and no longer. */
static void
test_output_of_an_ended_scope (gconstpointer backend)
{
  for (uint32_t depth = 2; depth < 8; depth++)
    {
      struct machine *machine = machine_new_for (backend);
      struct expectation expectation = { .byte = 1 };
      Tensor tensor;

      machine_begin (machine);
      for (uint32_t i = 1; i < depth; i++)
        pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 10);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      pto_engine_scope_end (machine->engine);
      SUBMIT (machine, KERNEL_CHECK, input (&tensor), scalar (&expectation));
      pto_engine_scope_end (machine->engine);
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                            "task 4 (nothing): argument 0: the tensor was made in a scope that has "
                            "ended: to keep a tensor longer, make it before the scope");
      g_assert_cmpuint (expectation.wrong, ==, 0);
      machine_free (machine);
    }
}

static void
test_tensor_without_memory (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;

  machine_begin (machine);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "no memory yet: no task has output it");
  machine_begin (machine);
  tensor = machine_tensor (machine, 10);
  tensor.status = PTO2_TENSOR_OUT_OF_BOUNDS;
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (1), output (&tensor));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "argument 1: the view reaches beyond its tensor");
  machine_free (machine);
}

static void
test_too_many_arguments (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  PTOParam params[PTO_ARGS_MAX + 1];

  for (uint32_t i = 0; i <= PTO_ARGS_MAX; i++)
    params[i] = make_scalar_param (i);
  machine_begin (machine);
  machine_submit (machine, KERNEL_NOTHING, 0, params, PTO_ARGS_MAX);
  machine_end_ok (machine);
  machine_begin (machine);
  machine_submit (machine, KERNEL_NOTHING, 0, params, PTO_ARGS_MAX + 1);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "1025 arguments; a task takes at most 1024");
  machine_free (machine);
}

static void
test_scope_overflow (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;

  machine_begin (machine);
  for (uint32_t i = 1; i < PTO_SCOPE_MAX; i++)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  g_assert_false (pto_engine_has_failed (machine->engine));
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  g_assert_true (pto_engine_has_failed (machine->engine));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  tensor = machine_tensor (machine, 10);
  SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
  /* Their ends find their begins. */
  for (uint32_t i = 0; i < PTO_SCOPE_MAX + 1; i++)
    pto_engine_scope_end (machine->engine);
  g_assert_cmpuint (machine->engine->depth, ==, 1);
  machine_expect_error (machine, PTO_STATUS_SCOPE_OVERFLOW, "more than 64 deep");
  machine_begin (machine);
  SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
  machine_end_ok (machine);
  machine_free (machine);
}

static void
test_scope_end_without_begin (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);

  machine_begin (machine);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  pto_engine_scope_end (machine->engine);
  g_assert_false (pto_engine_has_failed (machine->engine));
  pto_engine_scope_end (machine->engine);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "scope_end without a scope_begin");
  machine_free (machine);
}

/* Scopes left open are ended by the run's end. */
static void
test_open_scopes_are_closed (gconstpointer backend)
{
  struct machine *machine = machine_new_for (backend);
  Tensor tensor;

  machine_begin (machine);
  for (uint32_t i = 1; i < 10; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 10);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
    }
  machine_end_ok (machine);
  machine_free (machine);
}

static void
add_tests (void)
{
  machine_add ("engine-refusals", "tensor-of-an-ended-scope", test_tensor_of_an_ended_scope);
  machine_add ("engine-refusals", "output-of-an-ended-scope", test_output_of_an_ended_scope);
  machine_add ("engine-refusals", "tensor-without-memory", test_tensor_without_memory);
  machine_add ("engine-refusals", "too-many-arguments", test_too_many_arguments);
  machine_add ("engine-refusals", "scope-overflow", test_scope_overflow);
  machine_add ("engine-refusals", "scope-end-without-begin", test_scope_end_without_begin);
  machine_add ("engine-refusals", "open-scopes-are-closed", test_open_scopes_are_closed);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
