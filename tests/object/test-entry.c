/* test-entry.c: does a worker run orchestrations in shared objects, and refuse what it can not run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "worker-test.h"

#include <string.h>

/* --- orchestrations in shared objects --- */

static gboolean
run_chip (WorkerTest *fixture, PtoCallable *chip, PtoTaskArgs *args, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (fixture->worker, chip, NULL, &local);
  gboolean ok;

  g_assert_no_error (local);
  ok = pto_worker_run_callable (fixture->worker, handle, args, NULL, NULL, error);
  g_assert_true (pto_worker_unregister (fixture->worker, handle, &local));
  g_assert_no_error (local);
  return ok;
}

static void
test_callable (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  run_chip (fixture, chip, args, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[999], ==, 7);
}

static char *
replace (const char *text, const char *from, const char *to)
{
  g_autoptr (GString) string = g_string_new (text);

  g_assert_cmpuint (g_string_replace (string, from, to, 0), >, 0);
  return g_string_free (g_steal_pointer (&string), FALSE);
}

static void
test_void_entry (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = replace (object_test_orchestration, "int aicpu_orchestration_entry",
                                   "void aicpu_orchestration_entry");
  g_autofree char *nothing = replace (text, "return 0;", "return;");
  g_autoptr (PtoCallable) chip = worker_test_new_chip (fixture, "orch.c", nothing, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  run_chip (fixture, chip, args, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[0], ==, 7);
}

static void
test_other_entry (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text
      = replace (object_test_orchestration, "aicpu_orchestration_entry", "build_my_graph");
  g_autoptr (PtoCallable) chip = worker_test_new_chip (fixture, "orch.c", text, "build_my_graph");
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  run_chip (fixture, chip, args, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->f)[0], ==, 7);
}

static void
test_entry_fails (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = replace (object_test_orchestration, "return 0;", "return -5;");
  g_autoptr (PtoCallable) chip = worker_test_new_chip (fixture, "orch.c", text, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  g_assert_false (run_chip (fixture, chip, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT);
  object_test_assert_contains (error->message, "-5");
  object_test_assert_contains (error->message, "\"orch\"");
  g_clear_error (&error);
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
}

static void
test_argument_count (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  pto_task_args_add_scalar (args, 1);
  g_assert_false (run_chip (fixture, chip, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "expects 2");
  object_test_assert_contains (error->message, "3 are given");
  g_clear_error (&error);
  g_assert_false (run_chip (fixture, chip, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "0 are given");
}

static void
test_argument_without_memory (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 8 });

  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_OUTPUT);
  pto_task_args_add_scalar (args, 8);
  g_assert_false (run_chip (fixture, chip, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "argument 0");
}

static void
test_unknown_function_id (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = replace (object_test_orchestration, "task (rt, 0,", "task (rt, 31,");
  g_autoptr (PtoCallable) chip = worker_test_new_chip (fixture, "orch.c", text, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  g_assert_false (run_chip (fixture, chip, args, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "31");
}

static void
test_log (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = replace (object_test_orchestration, "float value = 7;",
                                   "float value = 7; LOG_WARN (rt, \"%d beans\", 12);");
  g_autoptr (PtoCallable) chip = worker_test_new_chip (fixture, "beans.c", text, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);

  g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING, "beans: *12 beans*");
  run_chip (fixture, chip, args, &error);
  g_test_assert_expected_messages ();
  g_assert_no_error (error);
}

static void
test_registrations_counted (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) other = object_test_worker ();
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoTaskArgs) args = worker_test_chip_args (fixture);
  g_autoptr (PtoCallableHandle) first = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_autoptr (PtoCallableHandle) second = pto_worker_register (fixture->worker, chip, NULL, &error);
  g_autoptr (PtoCallableHandle) kernel
      = pto_worker_register (fixture->worker, fixture->fill, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (pto_callable_handle_equal (first, second));
  g_assert_true (pto_worker_unregister (fixture->worker, first, &error));
  g_assert_true (pto_worker_run_callable (fixture->worker, second, args, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (pto_worker_unregister (fixture->worker, second, &error));

  g_assert_false (pto_worker_run_callable (fixture->worker, second, args, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (pto_worker_unregister (fixture->worker, second, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);

  g_assert_false (pto_worker_run_callable (other, kernel, args, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "kernel");
  g_clear_error (&error);
  g_assert_false (pto_worker_unregister (other, kernel, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "another worker");
}

/* A kernel that is given back is built again by the next submit. */
static void
test_unregistered_kernel (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (fixture->worker, fixture->add, NULL, &error);

  g_assert_no_error (error);
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
  g_assert_true (pto_worker_unregister (fixture->worker, handle, &error));
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
}

/* --- errors --- */

static gboolean
fail_with_own_error (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                     gpointer data, GError **error)
{
  if (!worker_test_graph (orchestrator, args, config, data, error))
    return FALSE;
  g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "my own words");
  return FALSE;
}

static gboolean
leave_scope_open (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  return pto_orchestrator_begin_scope (orchestrator, error)
         && pto_orchestrator_begin_scope (orchestrator, error);
}

static gboolean
end_scope_only (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  return pto_orchestrator_end_scope (orchestrator, error);
}

static gboolean
submit_bad_shape (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) bad = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 0 });

  return pto_orchestrator_submit_full (orchestrator, fixture->fill, error, PTO_OUT (bad),
                                       PTO_SCALAR (0), NULL);
}

static gboolean
submit_orchestration (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                      gpointer data, GError **error)
{
  g_autoptr (PtoCallable) chip
      = worker_test_new_chip (data, "orch.c", object_test_orchestration, NULL);

  return pto_orchestrator_submit (orchestrator, chip, NULL, error);
}

static gboolean
submit_bad_kernel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoCallable) bad = object_test_kernel (fixture->dir, "bad.c", "no C at all");

  return pto_orchestrator_submit (orchestrator, bad, NULL, error);
}

static gboolean
read_before_write (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) empty = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 1000 });
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);

  return pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (empty),
                                       PTO_IN (empty), PTO_OUT (f), NULL);
}

static void
test_function_fails (WorkerTest *fixture, gconstpointer data)
{
  const struct
  {
    PtoOrchestrationFunc func;
    GQuark domain;
    int code;
    const char *part;
  } cases[] = {
    { fail_with_own_error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "my own words" },
    { worker_test_fail_silently, PTO_ERROR, PTO_ERROR_EXPLICIT, "did not say why" },
    { leave_scope_open, PTO_ERROR, PTO_ERROR_SCOPE_OVERFLOW, "2 scopes open" },
    { end_scope_only, PTO_ERROR, PTO_ERROR_SCOPE_OVERFLOW, "no scope is open" },
    { submit_bad_shape, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "kernel \"fill\": argument 0" },
    { submit_orchestration, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "\"orch\" is an orchestration" },
    { submit_bad_kernel, PTO_ERROR, PTO_ERROR_COMPILE, "kernel \"bad\"" },
    { read_before_write, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (
          pto_worker_run (fixture->worker, cases[i].func, fixture, NULL, NULL, NULL, &error));
      g_assert_error (error, cases[i].domain, cases[i].code);
      object_test_assert_contains (error->message, cases[i].part);
      g_clear_error (&error);
      /* The next run works. */
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      worker_test_check_graph (fixture);
    }
}

static void
test_signature (WorkerTest *fixture, gconstpointer data)
{
  const PtoDirection right[] = { PTO_DIRECTION_INPUT, PTO_DIRECTION_INPUT, PTO_DIRECTION_OUTPUT };
  const PtoDirection wrong[] = { PTO_DIRECTION_INPUT, PTO_DIRECTION_INOUT, PTO_DIRECTION_OUTPUT };
  const PtoDirection scaled[] = { PTO_DIRECTION_INPUT, PTO_DIRECTION_OUTPUT, PTO_DIRECTION_SCALAR };
  g_autoptr (GError) error = NULL;

  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (fixture->add), right, 3, &error));
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (fixture->add), wrong, 3, &error));
  g_assert_false (
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "argument 1 is an inout, but an input is given");
  g_clear_error (&error);
  /* Where its output goes is not said by the kernel: the second one's is memory that is there. */
  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (fixture->add), right, 3, &error));
  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (fixture->add_scalar), scaled, 3, &error));
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (fixture->add), right, 2, &error));
  g_assert_false (
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "takes 2 arguments, but 3 are given");
}

/* A kernel that is given too few would read what lies behind them. */
static void
test_number_of_arguments (WorkerTest *fixture, gconstpointer data)
{
  static const char *const backends[] = { "par", "det", "threads" };
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "counted.c", object_test_orchestration);
  guint line = 1;

  /* The submit's, not that of the scope that it is in. */
  for (const char *at = object_test_orchestration;
       at < strstr (object_test_orchestration, "submit_task"); at++)
    line += *at == '\n';
  g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (fixture->add), 3, &error));
  pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  worker_test_check_graph (fixture);
  g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (fixture->add), 4, &error));
  g_assert_false (
      pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "\"add\" takes 4 arguments, but 3 are given");
  g_clear_error (&error);

  /* The same for what a C orchestration submits: fill (f, 7). */
  for (guint i = 0; i < G_N_ELEMENTS (backends); i++)
    for (int n = 1; n <= 3; n++)
      {
        g_autoptr (PtoWorker) worker = pto_worker_new_chip (NULL, &error);
        g_autoptr (PtoCallable) fill
            = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
        g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
        g_autoptr (PtoCallableHandle) handle = NULL;
        g_autoptr (PtoBuffer) buffer = pto_buffer_new (64, &error);
        g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
        gboolean ok;

        g_assert_true (pto_worker_set_parameter (worker, "backend", backends[i], &error));
        g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (fill), n, &error));
        g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "fill",
                                                          fill, &error));
        g_assert_true (pto_worker_start (worker, NULL, &error));
        handle = pto_worker_register (worker, chip, NULL, &error);
        g_assert_no_error (error);
        pto_task_args_add_scalar (args, pto_buffer_get_address (buffer));
        pto_task_args_add_scalar (args, 4);
        ok = pto_worker_run_callable (worker, handle, args, NULL, NULL, &error);
        g_assert_cmpint (ok, ==, n == 2);
        if (n == 2)
          g_assert_cmpfloat (object_test_floats (buffer)[3], ==, 7);
        else
          {
            g_autofree char *says
                = g_strdup_printf ("task 0, submitted at counted.c:%u: kernel 0 (fill) takes %d "
                                   "argument%s, but 2 are given",
                                   line, n, n == 1 ? "" : "s");

            g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
            object_test_assert_contains (error->message, says);
            g_assert_cmpfloat (object_test_floats (buffer)[3], ==, 0);
          }
        g_clear_error (&error);
      }
}

static void
test_diagnostics_refused (WorkerTest *fixture, gconstpointer data)
{
  const struct
  {
    void (*set) (PtoCallConfig *config, int value);
    int value;
    PtoError code;
    const char *name;
  } cases[] = {
    { pto_call_config_set_enable_dump_tensor, 1, PTO_ERROR_INVALID_ARGS, "output_prefix" },
    { pto_call_config_set_enable_dump_tensor, 4, PTO_ERROR_INVALID_ARGS,
      "enable_dump_tensor is 4" },
    { pto_call_config_set_enable_pmu, 5, PTO_ERROR_INVALID_ARGS, "enable_pmu is 5" },
    { pto_call_config_set_enable_dep_gen, 2, PTO_ERROR_INVALID_ARGS, "enable_dep_gen is 2" },
    { pto_call_config_set_enable_scope_stats, -1, PTO_ERROR_INVALID_ARGS,
      "enable_scope_stats is -1" },
    { pto_call_config_set_enable_access_check, 2, PTO_ERROR_INVALID_ARGS,
      "enable_access_check is 2" },
    { pto_call_config_set_enable_l2_swimlane, 5, PTO_ERROR_INVALID_ARGS, "enable_l2_swimlane" },
    { pto_call_config_set_block_dim, -1, PTO_ERROR_INVALID_ARGS, "block_dim" },
    { pto_call_config_set_block_dim, 25, PTO_ERROR_INVALID_ARGS, "24 clusters" },
    { pto_call_config_set_aicpu_thread_num, -2, PTO_ERROR_INVALID_ARGS, "aicpu_thread_num" },
    { pto_call_config_set_aicpu_thread_num, 5, PTO_ERROR_INVALID_ARGS, "4 control threads" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallConfig) config = pto_call_config_new ();

      cases[i].set (config, cases[i].value);
      g_assert_false (
          pto_worker_run (fixture->worker, worker_test_graph, fixture, NULL, config, NULL, &error));
      g_assert_error (error, PTO_ERROR, (int) cases[i].code);
      object_test_assert_contains (error->message, cases[i].name);
    }
}

static gboolean
submit_nonsense (PtoOrchestrator *orchestrator, PtoTaskArgs *given, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (GError) local = NULL;

  g_assert_false (pto_orchestrator_submit_full (orchestrator, fixture->fill, &local,
                                                PTO_OUT_EXISTING (f), "in-out", f, NULL));
  g_assert_error (local, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (local->message, "\"fill\": argument 1: \"in-out\" does not say");
  g_clear_error (&local);
  g_assert_false (
      pto_orchestrator_submit_full (orchestrator, fixture->fill, &local, PTO_IN (NULL), NULL));
  g_assert_error (local, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (local->message, "\"fill\": argument 0 is no tensor");
  return TRUE;
}

static void
test_nonsense (WorkerTest *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, submit_nonsense, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  WORKER_TEST_ADD ("/pto/entry/nonsense", test_nonsense);
  WORKER_TEST_ADD ("/pto/entry/callable", test_callable);
  WORKER_TEST_ADD ("/pto/entry/void-entry", test_void_entry);
  WORKER_TEST_ADD ("/pto/entry/other-entry", test_other_entry);
  WORKER_TEST_ADD ("/pto/entry/entry-fails", test_entry_fails);
  WORKER_TEST_ADD ("/pto/entry/argument-count", test_argument_count);
  WORKER_TEST_ADD ("/pto/entry/argument-without-memory", test_argument_without_memory);
  WORKER_TEST_ADD ("/pto/entry/unknown-function-id", test_unknown_function_id);
  WORKER_TEST_ADD ("/pto/entry/log", test_log);
  WORKER_TEST_ADD ("/pto/entry/registrations-counted", test_registrations_counted);
  WORKER_TEST_ADD ("/pto/entry/unregistered-kernel", test_unregistered_kernel);
  WORKER_TEST_ADD ("/pto/entry/function-fails", test_function_fails);
  WORKER_TEST_ADD ("/pto/entry/signature", test_signature);
  WORKER_TEST_ADD ("/pto/entry/number-of-arguments", test_number_of_arguments);
  WORKER_TEST_ADD ("/pto/entry/diagnostics-refused", test_diagnostics_refused);
  return g_test_run ();
}
