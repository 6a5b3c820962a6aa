/* object-test.c: what do the tests of the object layer share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>

const char object_test_add[]
    = "#include \"tensor.h\"\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *a = (const TensorData *) args[0];\n"
      "  const TensorData *b = (const TensorData *) args[1];\n"
      "  const TensorData *f = (const TensorData *) args[2];\n"
      "  const float *p = (const float *) a->buffer.addr + a->start_offset;\n"
      "  const float *q = (const float *) b->buffer.addr + b->start_offset;\n"
      "  float *r = (float *) f->buffer.addr + f->start_offset;\n"
      "  for (uint64_t i = 0; i < f->shapes[0]; i++)\n"
      "    r[i] = p[i] + q[i];\n"
      "}\n";

const char object_test_add_scalar[]
    = "#include \"tensor.h\"\n"
      "#include <string.h>\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *a = (const TensorData *) args[0];\n"
      "  const TensorData *f = (const TensorData *) args[1];\n"
      "  const float *p = (const float *) a->buffer.addr + a->start_offset;\n"
      "  float *r = (float *) f->buffer.addr + f->start_offset;\n"
      "  float value;\n"
      "  memcpy (&value, &args[2], sizeof value);\n"
      "  for (uint64_t i = 0; i < f->shapes[0]; i++)\n"
      "    r[i] = p[i] + value;\n"
      "}\n";

const char object_test_fill[] = "#include \"tensor.h\"\n"
                                "#include <string.h>\n"
                                "void kernel_entry (int64_t *args)\n"
                                "{\n"
                                "  const TensorData *f = (const TensorData *) args[0];\n"
                                "  float *r = (float *) f->buffer.addr + f->start_offset;\n"
                                "  float value;\n"
                                "  memcpy (&value, &args[1], sizeof value);\n"
                                "  for (uint64_t i = 0; i < f->shapes[0]; i++)\n"
                                "    r[i] = value;\n"
                                "}\n";

const char object_test_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ 2 };\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  float value = 7;\n"
      "  uint32_t bits;\n"
      "  Tensor f = make_tensor_external ((void *) args[0], &args[1], 1, PTO_DTYPE_FLOAT32);\n"
      "  memcpy (&bits, &value, sizeof bits);\n"
      "  PTOParam params[] = { make_output_existing_param (f), make_scalar_param (bits) };\n"
      "  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);\n"
      "  return 0;\n"
      "}\n";

char *
object_test_make_dir (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = g_dir_make_tmp ("pto-object-XXXXXX", &error);

  g_assert_no_error (error);
  return dir;
}

void
object_test_remove_dir (char *dir)
{
  g_autoptr (GDir) entries = g_dir_open (dir, 0, NULL);
  const char *name;

  while (entries != NULL && (name = g_dir_read_name (entries)) != NULL)
    {
      g_autofree char *path = g_build_filename (dir, name, NULL);

      if (g_file_test (path, G_FILE_TEST_IS_DIR) && !g_file_test (path, G_FILE_TEST_IS_SYMLINK))
        object_test_remove_dir (g_steal_pointer (&path));
      else
        g_assert_cmpint (g_unlink (path), ==, 0);
    }
  g_assert_cmpint (g_rmdir (dir), ==, 0);
  g_free (dir);
}

char *
object_test_write (const char *dir, const char *name, const char *text)
{
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (dir, name, NULL);

  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
  return path;
}

PtoCallable *
object_test_kernel (const char *dir, const char *name, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (dir, name, text);
  PtoCallable *kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);

  g_assert_no_error (error);
  g_assert_nonnull (kernel);
  return kernel;
}

PtoWorker *
object_test_worker (void)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  return worker;
}

PtoTensor *
object_test_vector (PtoBuffer *buffer)
{
  g_autoptr (GError) error = NULL;
  guint64 shape = pto_buffer_get_size (buffer) / sizeof (float);
  PtoTensor *tensor = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, &shape, &error);

  g_assert_no_error (error);
  return tensor;
}

float *
object_test_floats (PtoBuffer *buffer)
{
  return (float *) (guintptr) pto_buffer_get_address (buffer);
}
