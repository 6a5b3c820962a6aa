/* test-schedule.c: does a worker run its tasks in the order that its parameter says, and refuse
 * what is none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>

#define N 5

/* x = 10 x + number: the digits are the order. */
static const char append[] = "#include \"tensor.h\"\n"
                             "void kernel_entry (int64_t *args)\n"
                             "{\n"
                             "  const TensorData *t = (const TensorData *) args[0];\n"
                             "  float *x = (float *) (uintptr_t) t->buffer.addr;\n"
                             "  *x = 10 * *x + args[1];\n"
                             "}\n";

static const char append_often[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig\n"
      "aicpu_orchestration_config (uint64_t *args, int arg_count)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ .expected_arg_count = 1 };\n"
      "}\n"
      "int\n"
      "aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)\n"
      "{\n"
      "  for (int i = 1; i <= 5; i++)\n"
      "    {\n"
      "      PTOParam params[] = { make_no_dep_param (pto2_rt_arg_tensor (rt, 0)),\n"
      "                            make_scalar_param (i) };\n"
      "      pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);\n"
      "    }\n"
      "  return 0;\n"
      "}\n";

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *append;
  PtoCallable *chip;
  PtoBuffer *buffer;
  PtoTensor *tensor;
  PtoTaskArgs *args;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;

  fixture->dir = object_test_make_dir ();
  path = object_test_write (fixture->dir, "append_orch.c", append_often);
  fixture->append = object_test_kernel (fixture->dir, "append.c", append);
  fixture->chip = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (fixture->chip), 0, NULL,
                                     fixture->append, &error);
  g_assert_no_error (error);
  fixture->worker = g_object_new (PTO_TYPE_WORKER, "isolate", GPOINTER_TO_INT (data), NULL);
  pto_worker_set_parameter (fixture->worker, "backend", "det", &error);
  g_assert_no_error (error);
  fixture->buffer = pto_buffer_new (16, &error);
  g_assert_no_error (error);
  fixture->tensor = object_test_vector (fixture->buffer);
  fixture->args = pto_task_args_new ();
  pto_task_args_add_tensor (fixture->args, fixture->tensor, PTO_DIRECTION_INOUT);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  pto_worker_close (fixture->worker);
  g_assert_finalize_object (fixture->worker);
  g_clear_pointer (&fixture->args, pto_task_args_unref);
  g_clear_pointer (&fixture->tensor, pto_tensor_unref);
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  g_clear_object (&fixture->chip);
  g_clear_object (&fixture->append);
  object_test_remove_dir (g_steal_pointer (&fixture->dir));
}

static void
set (Fixture *fixture, const char *schedule)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *value = NULL;

  pto_worker_set_parameter (fixture->worker, "schedule", schedule, &error);
  g_assert_no_error (error);
  value = pto_worker_dup_parameter (fixture->worker, "schedule", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (value, ==, schedule);
}

static gboolean
submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Fixture *fixture = data;

  for (guint i = 1; i <= N; i++)
    if (!pto_orchestrator_submit_full (orchestrator, fixture->append, error,
                                       PTO_NO_DEP (fixture->tensor), PTO_SCALAR (i), NULL))
      return FALSE;
  return TRUE;
}

static void
run_function (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;

  object_test_floats (fixture->buffer)[0] = 0;
  pto_worker_run (fixture->worker, submit, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

#define assert_order(fixture, digits) \
  g_assert_cmpfloat (object_test_floats ((fixture)->buffer)[0], ==, (digits))

/* The same on a chip in this process and in one of its own; set before the start and between runs.
 */
static void
test_function (Fixture *fixture, gconstpointer data)
{
  set (fixture, "0:0-last");
  run_function (fixture);
  assert_order (fixture, 23451);
  set (fixture, "0:1-after-0:3");
  run_function (fixture);
  assert_order (fixture, 13425);
  run_function (fixture);
  assert_order (fixture, 13425);
  set (fixture, "in-order");
  run_function (fixture);
  assert_order (fixture, 12345);
  set (fixture, "");
  run_function (fixture);
  g_assert_cmpfloat (object_test_floats (fixture->buffer)[0], >, 11111);
}

static void
test_registered (Fixture *fixture, gconstpointer data)
{
  static const struct
  {
    const char *schedule;
    float digits;
  } runs[] = { { "0:4-last,0:0-after-0:2", 23145 }, { "0:3-after-0:4", 12354 } };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (fixture->worker, fixture->chip, NULL, &error);

  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (runs); i++)
    {
      set (fixture, runs[i].schedule);
      object_test_floats (fixture->buffer)[0] = 0;
      pto_worker_run_callable (fixture->worker, handle, fixture->args, NULL, NULL, &error);
      g_assert_no_error (error);
      assert_order (fixture, runs[i].digits);
    }
}

/* A graph is captured in no order, and launched in that of the launch. */
static void
test_graph (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (fixture->worker, fixture->chip, NULL, &error);
  g_autoptr (PtoGraph) graph = NULL;

  g_assert_no_error (error);
  set (fixture, "0:2-last");
  graph = pto_worker_capture_callable (fixture->worker, handle, fixture->args, NULL, NULL, &error);
  g_assert_no_error (error);
  object_test_floats (fixture->buffer)[0] = 0;
  pto_worker_run_graph (fixture->worker, graph, fixture->args, NULL, NULL, &error);
  g_assert_no_error (error);
  assert_order (fixture, 12453);
  set (fixture, "0:0-after-0:1");
  object_test_floats (fixture->buffer)[0] = 0;
  pto_worker_run_graph (fixture->worker, graph, fixture->args, NULL, NULL, &error);
  g_assert_no_error (error);
  assert_order (fixture, 21345);
}

/* Very long ones, too: each task behind the one before it and the one behind it. */
static void
test_long (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GString) text = g_string_new ("0:0-last");

  while (text->len < 100000)
    g_string_append (text, ",0:1-after-0:3");
  set (fixture, text->str);
  run_function (fixture);
  assert_order (fixture, 34251);
}

/* One line that names what is wrong; what was there stays. */
static void
test_garbled (Fixture *fixture, gconstpointer data)
{
  static const char *const bad[]
      = { "0:1-after",   "0:1-after-0:1",     "7:1-last",  "random-x",
          "without-rar", "in-order,0:1-last", "0:1-last,", "0:1-after-0:2;0:3-last" };

  set (fixture, "0:0-last");
  for (guint round = 0; round < 2; round++)
    {
      for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
        {
          g_autoptr (GError) error = NULL;
          g_autofree char *value = NULL;

          g_assert_false (pto_worker_set_parameter (fixture->worker, "schedule", bad[i], &error));
          g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
          g_assert_true (g_str_has_prefix (error->message, "schedule: "));
          g_assert_null (strchr (error->message, '\n'));
          value = pto_worker_dup_parameter (fixture->worker, "schedule", NULL);
          g_assert_cmpstr (value, ==, "0:0-last");
        }
      run_function (fixture);
      assert_order (fixture, 23451);
    }
}

static void
test_unknown_task (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  set (fixture, "0:5-last");
  g_assert_false (pto_worker_run (fixture->worker, submit, fixture, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "schedule: there was no task 0:5 in this run");
  set (fixture, "0:4-last");
  run_function (fixture);
  assert_order (fixture, 12345);
}

/* Other back ends say so, when the worker starts and afterwards. */
static void
test_back_ends (Fixture *fixture, gconstpointer data)
{
  static const char *const others[] = { "par", "threads" };

  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoWorker) worker = pto_worker_new (2, NULL, &error);
      g_autofree char *value = NULL;

      pto_worker_set_parameter (worker, "backend", others[i], &error);
      g_assert_no_error (error);
      pto_worker_set_parameter (worker, "schedule", "in-order", &error);
      g_assert_no_error (error);
      g_assert_false (pto_worker_start (worker, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "schedule needs the back end det");
      object_test_assert_contains (error->message, others[i]);
      g_clear_error (&error);
      pto_worker_set_parameter (worker, "schedule", "", &error);
      g_assert_no_error (error);
      pto_worker_start (worker, NULL, &error);
      g_assert_no_error (error);
      g_assert_false (pto_worker_set_parameter (worker, "schedule", "in-order", &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "schedule needs the back end det");
      value = pto_worker_dup_parameter (worker, "schedule", NULL);
      g_assert_cmpstr (value, ==, "");
      pto_worker_close (worker);
    }
}

static void
test_closed (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  pto_worker_close (fixture->worker);
  g_assert_false (pto_worker_set_parameter (fixture->worker, "schedule", "in-order", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
}

static void
test_environment (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = NULL;
  g_autofree char *value = NULL;

  g_setenv ("PTO_SCHEDULE", "0:3-after-0:4", TRUE);
  worker = g_object_new (PTO_TYPE_WORKER, NULL);
  g_setenv ("PTO_SCHEDULE", "0:3-after", TRUE);
  g_assert_null (pto_worker_new (2, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "PTO_SCHEDULE: \"0:3-after\": ");
  g_clear_error (&error);
  g_unsetenv ("PTO_SCHEDULE");
  value = pto_worker_dup_parameter (worker, "schedule", NULL);
  g_assert_cmpstr (value, ==, "0:3-after-0:4");
  pto_worker_set_parameter (worker, "backend", "det", &error);
  g_assert_no_error (error);
  object_test_floats (fixture->buffer)[0] = 0;
  pto_worker_run (worker, submit, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  assert_order (fixture, 12354);
  pto_worker_close (worker);
}

#define ADD(name, test)                                                                        \
  G_STMT_START                                                                                 \
  {                                                                                            \
    g_test_add ("/pto/schedule/" name, Fixture, GINT_TO_POINTER (0), set_up, test, tear_down); \
    g_test_add ("/pto/schedule/" name "/isolated", Fixture, GINT_TO_POINTER (1), set_up, test, \
                tear_down);                                                                    \
  }                                                                                            \
  G_STMT_END

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("function", test_function);
  ADD ("registered", test_registered);
  ADD ("graph", test_graph);
  ADD ("long", test_long);
  ADD ("garbled", test_garbled);
  ADD ("unknown-task", test_unknown_task);
  g_test_add ("/pto/schedule/back-ends", Fixture, NULL, set_up, test_back_ends, tear_down);
  g_test_add ("/pto/schedule/closed", Fixture, NULL, set_up, test_closed, tear_down);
  g_test_add ("/pto/schedule/environment", Fixture, NULL, set_up, test_environment, tear_down);
  return g_test_run ();
}
