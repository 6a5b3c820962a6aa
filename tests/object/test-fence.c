/* test-fence.c: is a kernel that writes past a buffer of the program found, wherever it runs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>

#define N 64u /* elements of the buffer */

typedef struct
{
  char *dir;
  PtoBuffer *buffer;
  PtoTensor *tensor;
  PtoCallable *callable;
  PtoCallableHandle *handle;
  guint64 elements; /* that the kernel writes */
} Test;

static PtoBuffer *
make_buffer (void)
{
  g_autoptr (GError) error = NULL;
  PtoBuffer *buffer = pto_buffer_new (N * sizeof (guint64), &error);

  g_assert_no_error (error);
  return buffer;
}

static void
begin (Test *test)
{
  memset (test, 0, sizeof *test);
  test->dir = object_test_make_dir ();
}

static void
give_buffer (Test *test)
{
  g_autoptr (GError) error = NULL;
  guint64 shape = N;

  test->buffer = make_buffer ();
  test->tensor = pto_tensor_new_for_buffer (test->buffer, 0, PTO_DTYPE_UINT64, 1, &shape, &error);
  g_assert_no_error (error);
}

static void
end (Test *test)
{
  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  g_clear_object (&test->callable);
  g_clear_pointer (&test->tensor, pto_tensor_unref);
  g_clear_pointer (&test->buffer, pto_buffer_unref);
  object_test_remove_dir (test->dir);
}

static void
assert_values (Test *test, guint64 value)
{
  const guint64 *values = (const guint64 *) (guintptr) pto_buffer_get_address (test->buffer);

  for (guint i = 0; i < N; i++)
    g_assert_cmpuint (values[i], ==, value);
}

/* args: out, how many elements are written */
static const char overshoot[] = "#include \"tensor.h\"\n"
                                "void kernel_entry (int64_t *args)\n"
                                "{\n"
                                "  const TensorData *out = (const TensorData *) args[0];\n"
                                "  uint64_t *p = (uint64_t *) out->buffer.addr;\n"
                                "  for (int64_t i = 0; i < args[1]; i++)\n"
                                "    p[i] = (uint64_t) args[1];\n"
                                "}\n";

static gboolean
run_kernel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) kernel_args = pto_task_args_new ();

  pto_task_args_add_tensor (kernel_args, test->tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (kernel_args, test->elements);
  return pto_orchestrator_submit (orchestrator, test->callable, kernel_args, error);
}

static const char *const backends[] = { "par", "det", "threads" };

static void
test_function (gconstpointer backend)
{
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, NULL);
  g_autoptr (GError) error = NULL;
  Test test;

  begin (&test);
  give_buffer (&test);
  test.callable = object_test_kernel (test.dir, "overshoot.c", overshoot);
  pto_worker_set_parameter (chip, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_start (chip, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    {
      test.elements = N + 1 + i;
      g_assert_false (pto_worker_run (chip, run_kernel, &test, NULL, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
      object_test_assert_contains (error->message, "task 0 of ring 0 (overshoot) on core AIV");
      object_test_assert_contains (error->message,
                                   i == 0   ? "wrote 8 bytes past the buffer of 512 bytes"
                                   : i == 1 ? "wrote 16 bytes past the buffer of 512 bytes"
                                            : "wrote 24 bytes past the buffer of 512 bytes");
      g_clear_error (&error);
      /* The next run is not blamed for it. */
      test.elements = N;
      g_assert_true (pto_worker_run (chip, run_kernel, &test, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      assert_values (&test, N);
    }
  end (&test);
}

/* --- chips below a worker of level 3 --- */

static gboolean
run_chip (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) chip_args = pto_task_args_new ();

  pto_task_args_add_tensor (chip_args, test->tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (chip_args, 5);
  pto_task_args_add_scalar (chip_args, test->elements);
  return pto_orchestrator_submit_next_level (orchestrator, test->handle, chip_args, NULL, -1,
                                             error);
}

/* The chip is told of one element too many. Buffers made before and after its process. */
static void
test_level (gconstpointer mode)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host;
  LevelTestState state;
  Test test;

  level_test_begin (&state);
  begin (&test);
  host = g_object_new (
      PTO_TYPE_WORKER, "level", 3, "child-mode", GPOINTER_TO_INT (mode), "device-ids",
      g_variant_new_fixed_array (G_VARIANT_TYPE_UINT32, (guint32[]){ 0 }, 1, 4), NULL);
  test.callable = level_test_fill (test.dir);
  test.handle = pto_worker_register (host, test.callable, NULL, &error);
  g_assert_no_error (error);
  for (guint round = 0; round < 2; round++)
    {
      give_buffer (&test);
      if (round == 0)
        pto_worker_start (host, NULL, &error);
      g_assert_no_error (error);
      test.elements = N + 1;
      g_assert_false (pto_worker_run (host, run_chip, &test, NULL, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
      object_test_assert_contains (error->message, "(fill) on core AIV");
      object_test_assert_contains (error->message, "wrote 8 bytes past the buffer of 512 bytes");
      g_clear_error (&error);
      test.elements = N;
      g_assert_true (pto_worker_run (host, run_chip, &test, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      assert_values (&test, 5);
      g_clear_pointer (&test.tensor, pto_tensor_unref);
      g_clear_pointer (&test.buffer, pto_buffer_unref);
    }
  pto_worker_close (host);
  g_assert_finalize_object (host);
  end (&test);
  level_test_end (&state);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/fence/function/", backends[i], NULL);

      g_test_add_data_func (path, backends[i], test_function);
    }
  g_test_add_data_func ("/pto/fence/level/process", GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS),
                        test_level);
  g_test_add_data_func ("/pto/fence/level/thread", GINT_TO_POINTER (PTO_CHILD_MODE_THREAD),
                        test_level);
  return g_test_run ();
}
