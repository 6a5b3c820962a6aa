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
      object_test_assert_contains (
          error->message, i == 0   ? "wrote at least 8 bytes past the buffer of 512 bytes"
                          : i == 1 ? "wrote at least 16 bytes past the buffer of 512 bytes"
                                   : "wrote at least 24 bytes past the buffer of 512 bytes");
      g_clear_error (&error);
      /* The next run is not blamed for it. */
      test.elements = N;
      g_assert_true (pto_worker_run (chip, run_kernel, &test, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      assert_values (&test, N);
    }
  end (&test);
}

/* --- a kernel that copies too much, from one guard to another --- */

/* args: in, out, how many elements are copied */
static const char copies[] = "#include \"tensor.h\"\n"
                             "void kernel_entry (int64_t *args)\n"
                             "{\n"
                             "  const TensorData *in = (const TensorData *) args[0];\n"
                             "  const TensorData *out = (const TensorData *) args[1];\n"
                             "  const float *from = (const float *) in->buffer.addr;\n"
                             "  float *to = (float *) out->buffer.addr;\n"
                             "  for (int64_t i = 0; i < args[2]; i++)\n"
                             "    to[i] = from[i];\n"
                             "}\n";

enum placement
{
  RING,
  BUFFER,
  DEVICE,
  ARRAY, /* guarded with isolate */
  N_PLACEMENTS
};

typedef struct
{
  PtoCallable *overshoot;
  PtoCallable *copies;
  PtoTensor *from;
  PtoTensor *to;
  gboolean is_made; /* from, by a task of the run */
  guint64 elements;
} CopyTest;

static gboolean
run_copies (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  CopyTest *test = data;
  g_autoptr (PtoTaskArgs) fill_args = pto_task_args_new ();
  g_autoptr (PtoTaskArgs) copy_args = pto_task_args_new ();

  pto_task_args_add_tensor (fill_args, test->from,
                            test->is_made ? PTO_DIRECTION_OUTPUT : PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (fill_args, N / 2);
  pto_task_args_add_tensor (copy_args, test->from, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (copy_args, test->to,
                            pto_tensor_get_address (test->to) == 0 ? PTO_DIRECTION_OUTPUT
                                                                   : PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (copy_args, test->elements);
  return pto_orchestrator_submit (orchestrator, test->overshoot, fill_args, error)
         && pto_orchestrator_submit (orchestrator, test->copies, copy_args, error);
}

static PtoTensor *
place (enum placement placement, PtoBuffer *buffer, guint64 device, float *array)
{
  g_autoptr (GError) error = NULL;
  guint64 shape = N;
  PtoTensor *tensor
      = placement == RING ? pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &shape)
        : placement == BUFFER
            ? pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, &shape, &error)
            : pto_tensor_new_external (placement == DEVICE ? device : (guint64) (guintptr) array,
                                       PTO_DTYPE_FLOAT32, 1, &shape);

  g_assert_no_error (error);
  return tensor;
}

typedef struct
{
  const char *backend;
  gboolean isolate;
  const char *guard;
} CopyMode;

static const CopyMode copy_modes[]
    = { { "par", FALSE, "64" },     { "det", FALSE, "64" }, { "threads", FALSE, "64" },
        { "det", FALSE, "24" },     { "par", TRUE, "64" },  { "det", TRUE, "64" },
        { "threads", TRUE, "1000" } };

/* Sources and targets in all memory that has guards. */
static void
test_copies (gconstpointer data)
{
  const CopyMode *mode = data;
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, NULL);
  char *dir = object_test_make_dir ();
  g_autoptr (GError) error = NULL;
  CopyTest test = { 0 };
  float *arrays[2];
  PtoBuffer *buffers[2];
  guint64 devices[2];

  test.overshoot = object_test_kernel (dir, "overshoot.c", overshoot);
  test.copies = object_test_kernel (dir, "copies.c", copies);
  pto_worker_set_parameter (chip, "backend", mode->backend, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (chip, "isolate", mode->isolate ? "1" : "0", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (chip, "guard", mode->guard, &error);
  g_assert_no_error (error);
  pto_worker_start (chip, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      arrays[i] = g_new0 (float, 2 * N);
      buffers[i] = pto_buffer_new (N * sizeof (float), &error);
      g_assert_no_error (error);
      devices[i] = pto_worker_malloc (chip, N * sizeof (float), &error);
      g_assert_no_error (error);
    }
  for (enum placement from = RING; from < (mode->isolate ? N_PLACEMENTS : ARRAY); from++)
    for (enum placement to = RING; to < (mode->isolate ? N_PLACEMENTS : ARRAY); to++)
      for (guint64 more = 0; more <= 2; more++)
        {
          gboolean ok;

          test.from = place (from, buffers[0], devices[0], arrays[0]);
          test.to = place (to, buffers[1], devices[1], arrays[1]);
          test.is_made = from == RING;
          test.elements = N + more;
          ok = pto_worker_run (chip, run_copies, &test, NULL, NULL, NULL, &error);
          if (more == 0)
            {
              g_assert_no_error (error);
              g_assert_true (ok);
            }
          else
            {
              g_assert_error (error, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS);
              object_test_assert_contains (error->message, "task 1 of ring 0 (copies)");
              object_test_assert_contains (error->message, " past ");
              g_clear_error (&error);
            }
          g_clear_pointer (&test.from, pto_tensor_unref);
          g_clear_pointer (&test.to, pto_tensor_unref);
        }
  for (guint i = 0; i < 2; i++)
    {
      g_free (arrays[i]);
      pto_buffer_unref (buffers[i]);
      g_assert_true (pto_worker_free (chip, devices[i], &error));
    }
  g_object_unref (test.overshoot);
  g_object_unref (test.copies);
  object_test_remove_dir (dir);
}

/* --- a buffer that is gone --- */

static const char ignores[] = "#include \"tensor.h\"\n"
                              "void kernel_entry (int64_t *args)\n"
                              "{\n"
                              "}\n";

typedef struct
{
  PtoCallable *overshoot;
  PtoCallable *ignores;
  PtoTensor *kept;
} GoneTest;

/* The task is given an address, which keeps nothing. It waits for another one meanwhile. */
static gboolean
run_gone (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  GoneTest *test = data;
  g_autoptr (PtoTaskArgs) fill_args = pto_task_args_new ();
  g_autoptr (PtoTaskArgs) gone_args = pto_task_args_new ();
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (1 << 16, error);
  guint64 shape = N;
  g_autoptr (PtoTensor) gone
      = pto_tensor_new_external (pto_buffer_get_address (buffer), PTO_DTYPE_FLOAT32, 1, &shape);
  gboolean ok;

  pto_task_args_add_tensor (fill_args, test->kept, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (fill_args, N);
  pto_task_args_add_tensor (gone_args, test->kept, PTO_DIRECTION_INOUT);
  pto_task_args_add_tensor (gone_args, gone, PTO_DIRECTION_INPUT);
  ok = pto_orchestrator_submit (orchestrator, test->overshoot, fill_args, error);
  for (guint i = 0; ok && i < 2; i++)
    ok = pto_orchestrator_submit (orchestrator, test->ignores, gone_args, error);
  return ok;
}

static gboolean
run_freed (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
           GError **error)
{
  GoneTest *test = data;
  g_autoptr (PtoTaskArgs) gone_args = pto_task_args_new ();

  pto_task_args_add_tensor (gone_args, test->kept, PTO_DIRECTION_NO_DEP);
  return pto_orchestrator_submit (orchestrator, test->ignores, gone_args, error);
}

static void
test_gone (gconstpointer backend)
{
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, NULL);
  g_autoptr (GError) error = NULL;
  GoneTest gone = { 0 };
  Test test;

  begin (&test);
  give_buffer (&test);
  gone.overshoot = object_test_kernel (test.dir, "overshoot.c", overshoot);
  gone.ignores = object_test_kernel (test.dir, "ignores.c", ignores);
  gone.kept = test.tensor;
  pto_worker_set_parameter (chip, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_start (chip, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 5; i++)
    {
      gboolean ok = pto_worker_run (chip, run_gone, &gone, NULL, NULL, NULL, &error);
      /* The tasks may have run before. On det none has. */
      if (!ok || g_str_equal (backend, "det"))
        {
          g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
          object_test_assert_contains (error->message, "of ring 0 (ignores) on core AIV");
          object_test_assert_contains (
              error->message, ": the buffer of 65536 bytes of argument 1 (declared float32 [64]) "
                              "was freed before the task had run: keep it until the run has ended");
          g_clear_error (&error);
        }
    }
  /* Device memory that was given back before the run. */
  {
    guint64 device = pto_worker_malloc (chip, N * sizeof (float), &error);
    guint64 shape = N;
    g_autoptr (PtoTensor) gone_tensor
        = pto_tensor_new_external (device, PTO_DTYPE_FLOAT32, 1, &shape);

    g_assert_true (pto_worker_free (chip, device, &error));
    gone.kept = gone_tensor;
    g_assert_false (pto_worker_run (chip, run_freed, &gone, NULL, NULL, NULL, &error));
    g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
    object_test_assert_contains (error->message, "task 0 of ring 0 (ignores) on core AIV");
    object_test_assert_contains (
        error->message, ": the buffer of 256 bytes of argument 0 (declared float32 [64]) was freed "
                        "before the task had run");
  }
  g_object_unref (gone.overshoot);
  g_object_unref (gone.ignores);
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
      object_test_assert_contains (error->message,
                                   "wrote at least 8 bytes past the buffer of 512 bytes");
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
  for (gsize i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/fence/gone/", backends[i], NULL);

      g_test_add_data_func (path, backends[i], test_gone);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (copy_modes); i++)
    {
      const CopyMode *mode = &copy_modes[i];
      g_autofree char *path = g_strdup_printf ("/pto/fence/copies/%s/%s%s", mode->backend,
                                               mode->guard, mode->isolate ? "/isolate" : "");

      g_test_add_data_func (path, mode, test_copies);
    }
  g_test_add_data_func ("/pto/fence/level/process", GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS),
                        test_level);
  g_test_add_data_func ("/pto/fence/level/thread", GINT_TO_POINTER (PTO_CHILD_MODE_THREAD),
                        test_level);
  return g_test_run ();
}
