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
#include <stdexcept>

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

static int n_destroyed;

struct Destroyed
{
  ~Destroyed () { n_destroyed++; }
};

static gboolean
throw_it (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
          gpointer user_data, GError **error)
{
  Destroyed guard;

  (void) args;
  (void) config;
  (void) user_data;
  pto_orchestrator_begin_scope (orchestrator, error);
  throw std::runtime_error ("no such graph");
}

static gboolean
submit_nothing (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer user_data, GError **error)
{
  (void) orchestrator;
  (void) args;
  (void) config;
  (void) user_data;
  (void) error;
  return TRUE;
}

static gboolean
throw_number (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  (void) args;
  (void) user_data;
  (void) error;
  throw 7;
}

static void
note_result (GObject *source, GAsyncResult *result, gpointer user_data)
{
  auto **error = static_cast<GError **> (user_data);

  pto_worker_run_finish (PTO_WORKER (source), result, error);
  g_assert_nonnull (*error);
}

static void
assert_threw (GError **error)
{
  g_assert_error (*error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT);
  g_assert_nonnull (
      strstr ((*error)->message, "the orchestration threw std::runtime_error: no such graph"));
  g_clear_error (error);
}

/* What a function of the program throws is an error of the run, and the next run is right. */
static void
test_exceptions (void)
{
  static const char *const backends[] = { "par", "det", "threads" };
  g_autoptr (GError) error = nullptr;

  for (const char *backend : backends)
    {
      g_autoptr (PtoWorker) chip = pto_worker_new_chip ("a2a3sim", &error);

      n_destroyed = 0;
      pto_worker_set_parameter (chip, "backend", backend, &error);
      g_assert_no_error (error);
      g_assert_false (pto_worker_run (chip, throw_it, nullptr, nullptr, nullptr, nullptr, &error));
      assert_threw (&error);
      g_assert_null (
          pto_worker_capture (chip, throw_it, nullptr, nullptr, nullptr, nullptr, &error));
      assert_threw (&error);
      pto_worker_run_async (chip, throw_it, nullptr, nullptr, nullptr, nullptr, nullptr,
                            note_result, &error);
      while (error == nullptr)
        g_main_context_iteration (nullptr, TRUE);
      assert_threw (&error);
      g_assert_cmpint (n_destroyed, ==, 3);
      pto_worker_run (chip, submit_nothing, nullptr, nullptr, nullptr, nullptr, &error);
      g_assert_no_error (error);
    }
}

static void
test_exceptions_above_chips (void)
{
  g_autoptr (GError) error = nullptr;
  g_autoptr (PtoWorker) host = static_cast<PtoWorker *> (
      g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 1, nullptr));
  g_autoptr (PtoCallable) function
      = pto_sub_function_new ("thrower", throw_number, nullptr, nullptr);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (host, function, nullptr, &error);

  g_assert_no_error (error);
  g_assert_false (pto_worker_run (host, throw_it, nullptr, nullptr, nullptr, nullptr, &error));
  assert_threw (&error);
  /* The child lives on, and says so of the next one, too. */
  for (int i = 0; i < 2; i++)
    {
      g_assert_false (pto_worker_run (host, submit_it, handle, nullptr, nullptr, nullptr, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT);
      g_assert_nonnull (strstr (error->message, "on L3/0/sub0"));
      g_assert_nonnull (strstr (error->message, "thrower threw int"));
      g_clear_error (&error);
    }
}

/* Of each block the cube part sends what it has to both vector parts, each of which gives its
 * answer back; whoever waits does so with an object that is still to be destroyed. */
static const char parts_text[] = R"(
#include "pto_block.h"
#include "tensor.h"
#include <array>
#include <cstdint>
template <typename T> static T *cells (int64_t arg)
{
  auto *tensor = reinterpret_cast<TensorData *> (arg);
  return reinterpret_cast<T *> (tensor->buffer.addr) + tensor->start_offset;
}
struct Sum
{
  int32_t &to, value = 0;
  explicit Sum (int32_t &cell) : to (cell) {}
  ~Sum () { to += value; }
};
using Message = std::array<int32_t, 3>;
extern "C" __aicore__ void kernel_entry (__gm__ int64_t *args)
{
  const auto block = static_cast<int32_t> (get_block_idx (args));
#ifdef CUBE
  Sum sum (cells<int32_t> (args[0])[block]);
  for (uint32_t sub = 0; sub < 2; sub++)
    {
      Message message{ block, static_cast<int32_t> (get_block_num (args)), 100 };
      TPUSH (args, sub, message.data (), sizeof message);
    }
  for (uint32_t sub = 0; sub < 2; sub++)
    {
      int32_t answer;
      TPOP (args, 2 + sub, &answer, sizeof answer);
      sum.value += answer;
    }
#else
  const auto sub = get_sub_block_id (args);
  Message message;
  TPOP (args, sub, message.data (), sizeof message);
  int32_t answer = message[0] == block ? message[1] * message[2] * static_cast<int32_t> (1 + 2 * sub) + block : -1;
  TPUSH (args, 2 + sub, &answer, sizeof answer);
#endif
}
)";

static gboolean
submit_parts (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer user_data, GError **error)
{
  (void) config;
  auto *kernels = static_cast<PtoCallable **> (user_data);
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  pto_task_args_add_tensor (own, pto_task_args_get_tensor (args, 0), PTO_DIRECTION_INOUT);
  pto_task_args_set_block_dim (own, 40);
  return pto_orchestrator_submit_mixed (orchestrator, kernels[0], kernels[1], kernels[1], own,
                                        error);
}

static void
test_parts (gconstpointer backend)
{
  static const char *const cube[] = { "-DCUBE", nullptr };
  const guint64 n = 40;
  g_autoptr (GError) error = nullptr;
  g_autofree char *dir = g_dir_make_tmp ("pto-object-XXXXXX", &error);
  g_autofree char *path = g_build_filename (dir, "part.cpp", nullptr);
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (n * sizeof (int32_t), &error);
  auto *sums = reinterpret_cast<int32_t *> (pto_buffer_get_address (buffer));

  g_assert_true (g_file_set_contents (path, parts_text, -1, &error));
  g_autoptr (PtoCallable) aic = pto_kernel_new (PTO_CORE_AIC, path, nullptr, &error);
  g_autoptr (PtoCallable) aiv = pto_kernel_new (PTO_CORE_AIV, path, nullptr, &error);
  g_assert_true (pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (aic), cube, &error));
  PtoCallable *kernels[] = { aic, aiv };
  g_autoptr (PtoWorker) worker = pto_worker_new_chip ("a2a3sim", &error);
  pto_worker_set_parameter (worker, "backend", static_cast<const char *> (backend), &error);
  g_assert_no_error (error);
  g_autoptr (PtoTensor) tensor
      = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_INT32, 1, &n, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  for (int round = 1; round <= 2; round++)
    {
      pto_worker_run (worker, submit_parts, kernels, args, nullptr, nullptr, &error);
      g_assert_no_error (error);
      for (int32_t block = 0; block < 40; block++)
        g_assert_cmpint (sums[block], ==, round * (4 * 40 * 100 + 2 * block));
    }
  g_unlink (path);
  g_rmdir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, nullptr);
  g_test_add_func ("/pto/c++/types", test_types);
  g_test_add_func ("/pto/c++/int-entry", test_int_entry);
  g_test_add_func ("/pto/c++/void-entry", test_void_entry);
  g_test_add_func ("/pto/c++/place", test_place);
  g_test_add_func ("/pto/c++/exceptions", test_exceptions);
  g_test_add_func ("/pto/c++/exceptions-above-chips", test_exceptions_above_chips);
  g_test_add_data_func ("/pto/c++/parts/par", "par", test_parts);
  g_test_add_data_func ("/pto/c++/parts/det", "det", test_parts);
  g_test_add_data_func ("/pto/c++/parts/threads", "threads", test_parts);
  return g_test_run ();
}
