/* test-cplusplus.cc: can the headers be used from C++, and orchestrations and kernels be written in
 * it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The texts below are written as the seeds write them: nothing in them is made for this library.
 */
#include <pto/api/pto_orchestration_api.h>
#include <pto/pto.h>

#include <cmath>
#include <glib/gstdio.h>

static const char kernel_text[] = R"(
#include <cstdint>
#include "tensor.h"
template <typename T> static T scaled (T value, T factor) { return value * factor; }
extern "C" __aicore__ void kernel_entry (__gm__ int64_t *args)
{
  auto *in = reinterpret_cast<TensorData *> (args[0]);
  auto *out = reinterpret_cast<TensorData *> (args[1]);
  union { uint32_t bits; float value; } factor = { static_cast<uint32_t> (args[2]) };
  auto *src = reinterpret_cast<float *> (in->buffer.addr) + in->start_offset;
  auto *dst = reinterpret_cast<float *> (out->buffer.addr) + out->start_offset;
  for (uint64_t i = 0; i < out->shapes[0]; i++)
    dst[i] = scaled (src[i], factor.value);
}
)";

static const char orchestration_text[] = R"(
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args; (void) arg_count;
  return PTO2OrchestrationConfig{ .expected_arg_count = 3 };
}
extern "C" %s aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  pto2_rt_init_tensor_pool (rt);
  uint64_t n = args[2];
  uint64_t shapes[1] = { n };
  uint64_t half[1] = { n / 2 };
  Tensor ext_in = make_tensor_external (reinterpret_cast<void *> (args[0]), shapes, 1, DataType::FLOAT32);
  Tensor ext_out = make_tensor_external (reinterpret_cast<void *> (args[1]), shapes, 1, DataType::FLOAT32);
  LOG_INFO (rt, "n = %%d", (int) n);
  for (uint64_t part = 0; part < 2; part++)
    {
      PTO2_SCOPE (rt)
        {
          uint64_t offsets[1] = { part * (n / 2) };
          Tensor twice = make_tensor (half, 1, DataType::FLOAT32);
          PTOParam first[] = { make_input_param (ext_in.view (half, offsets)), make_output_param (twice),
                               make_scalar_param (0x40000000) };
          pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, first, 3);
          PTOParam second[] = { make_input_param (twice), make_output_param (ext_out.view (half, offsets)),
                                make_scalar_param (0x40400000) };
          pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, second, 3);
        }
    }
  %s
}
)";

static void
test_types (void)
{
  static_assert (static_cast<uint32_t> (DataType::BFLOAT16) == PTO_DTYPE_BFLOAT16, "one numbering");
  const uint64_t shapes[2] = { 4, 6 };
  const uint64_t part[2] = { 2, 3 };
  const uint64_t offsets[2] = { 1, 2 };
  Tensor tensor = make_tensor_external (nullptr, shapes, 2, DataType::INT8);
  Tensor view = tensor.view (part, offsets).transpose (0, 1);
  PTOParam param = make_inout_param (view);

  g_assert_cmpuint (view.start_offset, ==, 8);
  g_assert_cmpuint (view.shapes[0], ==, 3);
  g_assert_cmpuint (view.numel (), ==, 6);
  g_assert_false (view.is_contiguous ());
  g_assert_cmpint (param.type, ==, PTO_PARAM_INOUT);
  g_assert_cmpuint (tensor.reshape (shapes, 2).status, ==, PTO2_TENSOR_OK);
}

static void
run_orchestration (const char *type, const char *result)
{
  const guint n = 64;
  g_autoptr (GError) error = nullptr;
  g_autofree char *dir = g_dir_make_tmp ("pto-object-XXXXXX", &error);
  g_autofree char *orchestration = g_build_filename (dir, "orch.cpp", nullptr);
  g_autofree char *kernel = g_build_filename (dir, "kernel.cc", nullptr);
  g_autofree char *text = g_strdup_printf (orchestration_text, type, result);
  g_autoptr (PtoBuffer) in = pto_buffer_new (n * sizeof (float), &error);
  g_autoptr (PtoBuffer) out = pto_buffer_new (n * sizeof (float), &error);
  auto *x = reinterpret_cast<float *> (pto_buffer_get_address (in));
  auto *y = reinterpret_cast<float *> (pto_buffer_get_address (out));

  g_assert_true (g_file_set_contents (orchestration, text, -1, &error));
  g_assert_true (g_file_set_contents (kernel, kernel_text, -1, &error));
  g_autoptr (PtoWorker) worker = pto_worker_new_chip ("a2a3sim", &error);
  pto_worker_start (worker, nullptr, &error);
  g_assert_no_error (error);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (orchestration, nullptr, &error);
  g_assert_no_error (error);
  g_autoptr (PtoCallable) scale = pto_kernel_new (PTO_CORE_AIV, kernel, nullptr, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "scale", scale, &error);
  g_assert_no_error (error);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, chip, nullptr, &error);
  g_assert_no_error (error);

  for (guint i = 0; i < n; i++)
    x[i] = static_cast<float> (i);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  pto_task_args_add_scalar (args, pto_buffer_get_address (in));
  pto_task_args_add_scalar (args, pto_buffer_get_address (out));
  pto_task_args_add_scalar (args, n);
  pto_worker_run_callable (worker, handle, args, nullptr, nullptr, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat (y[i], ==, 6 * x[i]);

  g_unlink (orchestration);
  g_unlink (kernel);
  g_rmdir (dir);
}

static void
test_int_entry (void)
{
  run_orchestration ("int", "return 0;");
}

static void
test_void_entry (void)
{
  run_orchestration ("void", "(void) arg_count;");
}

static gboolean
fail (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  (void) args;
  (void) user_data;
  g_set_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "my own words");
  return FALSE;
}

static int submit_line;

static gboolean
submit_it (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
           gpointer user_data, GError **error)
{
  (void) args;
  (void) config;
  auto *handle = static_cast<PtoCallableHandle *> (user_data);
  submit_line = __LINE__ + 1;
  return pto_orchestrator_submit_sub (orchestrator, handle, nullptr, -1, error);
}

static void
test_place (void)
{
  g_autoptr (GError) error = nullptr;
  g_autoptr (PtoWorker) host = static_cast<PtoWorker *> (
      g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 1, nullptr));
  g_autofree char *place = nullptr;

  g_autoptr (PtoCallable) function = pto_sub_function_new ("fail", fail, nullptr, nullptr);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (host, function, nullptr, &error);
  g_assert_no_error (error);
  g_assert_false (pto_worker_run (host, submit_it, handle, nullptr, nullptr, nullptr, &error));
  place = g_strdup_printf ("task 0 (\"fail\"), submitted at test-cplusplus.cc:%d, on L3/0/sub0",
                           submit_line);
  g_assert_nonnull (strstr (error->message, place));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, nullptr);
  g_test_add_func ("/pto/c++/types", test_types);
  g_test_add_func ("/pto/c++/int-entry", test_int_entry);
  g_test_add_func ("/pto/c++/void-entry", test_void_entry);
  g_test_add_func ("/pto/c++/place", test_place);
  return g_test_run ();
}
