/* test-cplusplus-seeds.cc: does the C++ of seeds 001, 003 and 004 run as it is written there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A listing stands between two lines of dashes; what it leaves out stands before it.
 */
#include <device_runner.h>
#include <worker.h>

#include <type_traits>
#include <unistd.h>

static const uint32_t N = 3000;

static std::string
example (const char *name)
{
  return std::string (g_getenv ("PTO_TEST_EXAMPLES")) + "/" + name;
}

static std::string
own (const char *name)
{
  return std::string (g_getenv ("PTO_TEST_SEEDS")) + "/" + name;
}

template <typename Error, typename Call>
static void
assert_throws (Call call, const std::string &part)
{
  try
    {
      call ();
    }
  catch (const Error &error)
    {
      std::string text = error.what ();
      if (text.find (part) == std::string::npos || text.find ('\n') != std::string::npos)
        g_error ("\"%s\" does not contain \"%s\" in one line", text.c_str (), part.c_str ());
      return;
    }
  g_error ("nothing was thrown: \"%s\" was expected", part.c_str ());
}

/* Seed 001, sections 2 to 4: the declarations, which are compared with what is there by their
 * types. */
static void
test_shapes (void)
{
  static_assert (std::is_same_v<decltype (CallableIdentity::digest), std::array<uint8_t, 32>>,
                 "section 2");
  static_assert (std::is_same_v<decltype (CallableIdentity::kind), CallableKind>, "section 2");
  static_assert (std::is_same_v<decltype (CallableIdentity::target_namespace), TargetNamespace>,
                 "section 2");
  void (TaskArgs::*add_tensor) (const ContinuousTensor &, TensorArgType) = &TaskArgs::add_tensor;
  void (TaskArgs::*add_scalar) (uint64_t) = &TaskArgs::add_scalar;
  TaskArgsView (TaskArgs::*view) () const = &TaskArgs::view;
  int32_t (TaskArgs::*tensor_count) () const = &TaskArgs::tensor_count;
  int32_t (TaskArgs::*scalar_count) () const = &TaskArgs::scalar_count;
  TensorArgType (TaskArgs::*tag) (int32_t i) const = &TaskArgs::tag;
  static_assert (std::is_trivially_copyable_v<TaskArgsView> && sizeof (TaskArgsView) == 24,
                 "section 3");
  static_assert (std::is_trivially_copyable_v<CallConfig>, "section 4");
  float values[6];
  TaskArgs args;

  args.add_tensor (make_ct (values, { 2, 3 }));
  (args.*add_tensor) (make_ct (values, { 6 }, DataType::INT32), TensorArgType::OUTPUT_EXISTING);
  (args.*add_scalar) (UINT64_MAX);
  TaskArgsView seen = (args.*view) ();
  g_assert_cmpint ((args.*tensor_count) (), ==, 2);
  g_assert_cmpint ((args.*scalar_count) (), ==, 1);
  g_assert_true ((args.*tag) (0) == TensorArgType::INPUT);
  g_assert_true ((args.*tag) (1) == TensorArgType::OUTPUT_EXISTING);
  g_assert_cmpint (seen.tensor_count, ==, 2);
  g_assert_cmpuint (seen.tensors[0].data, ==, reinterpret_cast<uintptr_t> (values));
  g_assert_cmpuint (seen.tensors[0].ndims, ==, 2);
  g_assert_cmpuint (seen.tensors[0].shapes[1], ==, 3);
  g_assert_cmpuint (seen.tensors[1].dtype, ==, PTO_DTYPE_INT32);
  g_assert_cmpuint (seen.scalars[0], ==, UINT64_MAX);
  g_assert_cmpint (static_cast<int> (TensorArgType::NO_DEP), ==, PTO_DIRECTION_NO_DEP);
  g_assert_cmpint (static_cast<int> (TensorArgType::INOUT), ==, PTO_DIRECTION_INOUT);
  g_assert_cmpint (CallConfig ().aicpu_thread_num, ==, 3);
  assert_throws<std::out_of_range> ([&] { args.tag (2); }, "tag: tensor 2 of 2");
  assert_throws<std::out_of_range> ([&] { args.tag (-1); }, "tag: tensor -1 of 2");
  assert_throws<std::invalid_argument> ([&] { make_ct (values, {}); },
                                        "make_ct: 0 dimensions: there are 1 to 5");
}

/* Memory that children see. */
class Shared
{
  PtoBuffer *buffer_ = pto_buffer_new (N * sizeof (float), nullptr);

public:
  float *values = reinterpret_cast<float *> (pto_buffer_get_address (buffer_));

  explicit Shared (float value)
  {
    for (uint32_t i = 0; i < N; i++)
      values[i] = value * static_cast<float> (i);
  }

  ~Shared () { pto_buffer_unref (buffer_); }
};

static void
assert_times (const Shared &shared, float factor)
{
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpfloat (shared.values[i], ==, factor * static_cast<float> (i));
}

/* Seed 001, section 5, with a class of its own around it, since the header has one, too. */
namespace listed
{
class ChipWorker
{
public:
  void run (int32_t local_slot, TaskArgsView view, const CallConfig &config);
};

/* clang-format off */
/* --- Seed 001, section 5. --- */
void ChipWorker::run(int32_t local_slot, TaskArgsView view, const CallConfig &config) {
    ChipStorageTaskArgs chip_storage;
    chip_storage.tensor_count_ = view.tensor_count;
    chip_storage.scalar_count_ = view.scalar_count;
    memcpy(chip_storage.tensors_, view.tensors, view.tensor_count * sizeof(ContinuousTensor));
    memcpy(chip_storage.scalars_, view.scalars, view.scalar_count * sizeof(uint64_t));
    pto2_run_runtime(local_slot, &chip_storage, &config);
}
/* --- */
/* clang-format on */
}

static void
test_chip_worker (void)
{
  Shared a (2), b (3), c (0), d (0);
  ChipCallable add (example ("worked-example/add"));
  ChipWorker chip;
  TaskArgs args;

  args.add_tensor (make_ct (a.values, { N }));
  args.add_tensor (make_ct (b.values, { N }));
  TaskArgs other = args;
  args.add_tensor (make_ct (c.values, { N }), TensorArgType::OUTPUT_EXISTING);
  other.add_tensor (make_ct (d.values, { N }), TensorArgType::OUTPUT_EXISTING);
  assert_throws<WorkerError> ([&] { chip.register_callable (4, add); }, "the context has no chip");
  chip.init (2, "host_build_graph", "a5sim");
  chip.register_callable (4, add);
  listed::ChipWorker ().run (4, args.view (), CallConfig{});
  assert_times (c, 5);
  chip.run (4, other.view (), CallConfig{});
  assert_times (d, 5);
  assert_throws<WorkerError> ([&] { chip.run (5, args.view (), CallConfig{}); },
                              "simpler_run: there is no callable 5");
  TaskArgs many;
  for (int i = 0; i < 129; i++)
    many.add_scalar (0);
  assert_throws<WorkerError> (
      [&] { chip.run (4, many.view (), CallConfig{}); },
      "ChipWorker::run: 0 tensors and 129 scalars: there are up to 128 of each");
  chip.finalize ();
}

/* Seed 001, section 9, in C++: the seed has it in Python. */
static void
test_recursion (void)
{
  PtoBuffer *notes = pto_buffer_new (16, nullptr);
  auto *words = reinterpret_cast<int64_t *> (pto_buffer_get_address (notes));
  Worker l3 (3, 1);
  auto l3_sub_handle = l3.register_sub ("verify_result", [=] (TaskArgsView view) {
    words[0] += view.scalar_count == 0 ? 1 : 100;
    words[1] = getpid ();
  });
  Worker w4 (4);
  auto l3_handle = w4.register_orchestration (
      "my_l3_orch", [=] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
        orch->submit_sub (l3_sub_handle);
      });
  w4.add_worker (NEXT_LEVEL, l3);
  w4.init ();
  w4.run ([=] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    orch->submit_next_level (l3_handle, TaskArgs (), CallConfig ());
  });
  w4.close ();
  g_assert_cmpint (words[0], ==, 1);
  g_assert_cmpint (words[1], !=, 0);
  g_assert_cmpint (words[1], !=, getpid ());
  g_assert_cmpint (l3_handle.identity ().kind, ==, PTO_CALLABLE_ORCHESTRATION);
  g_assert_true (l3_handle.identity ().digest != l3_sub_handle.identity ().digest);
  pto_buffer_unref (notes);
}

/* Seed 001, section 10, in C++; what the chip adds is added once more by a SUB function, from
 * memory of the runtime's. */
static void
test_one_chip_task (void)
{
  Shared a (2), b (3), c (0);
  TaskArgs args;
  Worker w3 (3, 1, PROCESS), chip_worker_0 (2);

  args.add_tensor (make_ct (a.values, { N }), TensorArgType::INPUT);
  args.add_tensor (make_ct (b.values, { N }), TensorArgType::INPUT);
  args.add_tensor (make_ct (c.values, { N }), TensorArgType::OUTPUT_EXISTING);
  w3.add_worker (NEXT_LEVEL, chip_worker_0);
  auto chip_kernel_handle = w3.register_callable (ChipCallable (example ("worked-example/add")));
  auto twice = w3.register_sub ("twice", [] (TaskArgsView view) {
    auto *from = reinterpret_cast<float *> (view.tensors[0].data);
    auto *to = reinterpret_cast<float *> (view.tensors[1].data);
    if (view.tensors[0].shapes[0] != N || view.scalar_count != 1)
      throw std::runtime_error ("other arguments than were submitted");
    for (uint32_t i = 0; i < N; i++)
      to[i] = static_cast<float> (view.scalars[0]) * from[i];
  });
  w3.init ();
  CallConfig config;
  config.block_dim = 3;
  config.enable_access_check = 1;
  w3.run (
      [&] (Orchestrator *orch, TaskArgsView view, const CallConfig &cfg) {
        TaskArgs chip_args, sub_args;
        ContinuousTensor sum = orch->alloc ({ N });
        g_assert_cmpint (cfg.block_dim, ==, 3);
        g_assert_cmpint (cfg.enable_access_check, ==, 1);
        for (int i = 0; i < 2; i++)
          chip_args.add_tensor (view.tensors[i], TensorArgType::INPUT);
        chip_args.add_tensor (sum, TensorArgType::OUTPUT);
        orch->submit_next_level (chip_kernel_handle, chip_args, cfg);
        sub_args.add_tensor (sum, TensorArgType::INPUT);
        sub_args.add_tensor (view.tensors[2], TensorArgType::OUTPUT_EXISTING);
        sub_args.add_scalar (2);
        orch->submit_sub (twice, sub_args);
      },
      args, config);
  assert_times (c, 10);
  w3.close ();
}

/* An OUTPUT without memory gets some at the submit; other tensors are refused. A part of alloc() is
 * named by its address. */
static void
test_output_is_allocated (void)
{
  constexpr uint32_t n = 1024;
  Worker w3 (3, 2);
  PtoBuffer *sum = pto_buffer_new (8, nullptr);
  auto *seen = reinterpret_cast<float *> (pto_buffer_get_address (sum));
  auto fill = w3.register_sub ("fill", [] (TaskArgsView view) {
    auto *to = reinterpret_cast<float *> (view.tensors[0].data);
    g_usleep (20000);
    for (uint32_t i = 0; i < view.tensors[0].shapes[0]; i++)
      to[i] = 7;
  });
  auto take = w3.register_sub ("take", [=] (TaskArgsView view) {
    seen[view.scalars[0]] = *reinterpret_cast<float *> (view.tensors[0].data);
  });
  w3.init ();
  w3.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    TaskArgs made, whole, part, refused;
    ContinuousTensor all = orch->alloc ({ n });
    made.add_tensor (make_ct (nullptr, { n }), TensorArgType::OUTPUT);
    orch->submit_sub (fill, made);
    whole.add_tensor (all, TensorArgType::OUTPUT);
    orch->submit_sub (fill, whole);
    part.add_tensor (make_ct (reinterpret_cast<void *> (all.data + 4 * (n - 1)), { 1 }));
    part.add_scalar (1);
    orch->submit_sub (take, part);
    refused.add_tensor (make_ct (nullptr, { n }), TensorArgType::OUTPUT_EXISTING);
    assert_throws<WorkerError> ([&] { orch->submit_sub (fill, refused); },
                                "argument 0: a tensor without memory");
  });
  g_assert_cmpfloat (seen[1], ==, 7);
  w3.close ();
  pto_buffer_unref (sum);
}

/* The program's, not one of these headers. */
static void
test_lines (void)
{
  Worker host (3, 1);
  auto fails
      = host.register_sub ("fails", [] (TaskArgsView) { throw std::runtime_error ("mine"); });
  const std::vector<std::function<void (Orchestrator *)>> ways = {
    [&] (Orchestrator *orch) { orch->submit_sub (fails); },
    [&] (Orchestrator *orch) { orch->submit_sub_group (fails, { TaskArgs () }); },
  };

  for (const auto &way : ways)
    assert_throws<WorkerError> (
        [&] {
          host.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) { way (orch); });
        },
        "submitted at test-cplusplus-seeds.cc:");
  host.close ();
}

static void
test_groups (void)
{
  PtoBuffer *notes = pto_buffer_new (16, nullptr);
  auto *words = reinterpret_cast<uint64_t *> (pto_buffer_get_address (notes));
  Worker host (3, 2);
  auto note = host.register_sub (
      "note", [=] (TaskArgsView view) { words[view.scalars[0]] = view.scalars[0] + 5; });
  std::vector<TaskArgs> members (2);

  members[0].add_scalar (0);
  members[1].add_scalar (1);
  host.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    orch->scope_begin ();
    orch->submit_sub_group (note, members);
    orch->scope_end ();
  });
  g_assert_cmpuint (words[0], ==, 5);
  g_assert_cmpuint (words[1], ==, 6);
  host.close ();
  pto_buffer_unref (notes);
}

static void
test_worker_refused (void)
{
  Worker host (3, 1), chip (2);
  TaskArgs args;
  auto fails = host.register_sub ("fails",
                                  [] (TaskArgsView) { throw std::runtime_error ("my own words"); });
  auto submit
      = [&] (Orchestrator *orch, TaskArgsView, const CallConfig &) { orch->submit_sub (fails); };

  assert_throws<WorkerError> ([] { Worker (1); },
                              "Worker: level 1, 0 SUB workers, device 0: levels begin with 2");
  assert_throws<WorkerError> ([&] { host.add_worker (SUB, chip); },
                              "SUB workers are said when a worker is made");
  assert_throws<WorkerError> ([] { ChipCallable ("/nonexistent/nowhere"); },
                              "/nonexistent/nowhere");
  assert_throws<WorkerError> ([&] { host.run (submit); }, "my own words");
  assert_throws<WorkerError> (
      [&] {
        host.run ([] (Orchestrator *, TaskArgsView, const CallConfig &) {
          throw std::runtime_error ("thrown");
        });
      },
      "thrown");
  assert_throws<WorkerError> (
      [&] { host.run ([] (Orchestrator *, TaskArgsView, const CallConfig &) { throw 3; }); },
      "something was thrown that is no std::exception");
  args.add_tensor (ContinuousTensor{ 0, { 3 }, 1, 0, 0 });
  assert_throws<WorkerError> (
      [&] { host.run (submit, args); },
      "argument 0: a tensor without memory: Orchestrator::alloc() gives one that has some");
  TaskArgs other;
  other.add_tensor (ContinuousTensor{ 64, { 3 }, 6, 0, 0 });
  assert_throws<WorkerError> ([&] { host.run (submit, other); },
                              "argument 0: a tensor has 1 to 5 dimensions, not 6");
  host.close ();
}

static std::vector<uint8_t>
device_result (DeviceRunner &runner, void *device, size_t size)
{
  std::vector<uint8_t> bytes (size);

  runner.copy_from_device (bytes.data (), device, size);
  return bytes;
}

/* Seed 003, layer 1. */
static void
test_runner_003 (void)
{
  size_t bytes = N * sizeof (float);
  std::vector<float> values (N, 4);
  const void *host_ptr = values.data ();
  const std::string aicpu_binary = "host_build_graph",
                    aicore_binary = "a2a3sim\ninclude " + own ("include");
  Runtime runtime;
  CallConfig config;

  config.block_dim = 1;
  {
    /* clang-format off */
    /* --- Seed 003, "Layer 1: C++ API", its first two lines. --- */
DeviceRunner runner;
void *ptr = runner.allocate_tensor(bytes);
    /* --- What they leave open: which tensor is dev_ptr, and what the runtime has to do. --- */
    void *dev_ptr = ptr;
    runner.compile_and_load_kernel (0, own ("kernels/add.cpp"), PTO_CORE_AIV);
    uint64_t address = reinterpret_cast<uintptr_t> (dev_ptr);
    for (int i = 0; i < 3; i++)
      runtime.add_task ({ address, address, address, N }, 0);
    runtime.add_successor (0, 1);
    runtime.add_successor (1, 2);
    /* --- The others. --- */
runner.copy_to_device(dev_ptr, host_ptr, bytes);
runner.set_executors(aicpu_binary, aicore_binary);   // once, at init time
runner.run(runtime, config);                         // config carries block_dim, aicpu_thread_num, diagnostics
    /* --- Before it is over. --- */
    std::vector<uint8_t> result = device_result (runner, ptr, bytes);
    /* --- */
runner.finalize();
    /* --- */
    /* clang-format on */
    for (uint32_t i = 0; i < N; i++)
      g_assert_cmpfloat (reinterpret_cast<float *> (result.data ())[i], ==, 32);
  }
}

/* Seed 004, layer 1. */
static void
test_runner_004 (void)
{
  size_t bytes = N * sizeof (float);
  std::vector<float> values (N, 4);
  const void *host_ptr = values.data ();
  int device_id = 9, num_cores = 3, func_id = 0, core_type = 1;
  const std::string aicpu_bin = "host_build_graph",
                    aicore_bin = "a2a3sim\ninclude " + own ("include"),
                    pto_isa_root = std::string (g_getenv ("PTO_TEST_TILE_HEADERS"));
  Runtime runtime;

  /* clang-format off */
  /* --- Seed 004, "Layer 1: C++ API". --- */
DeviceRunner& runner = DeviceRunner::Get();
runner.Init(device_id, num_cores, aicpu_bin, aicore_bin, pto_isa_root);
  /* --- */
  void *device_ptr =
runner.AllocateTensor(bytes);
  /* --- */
runner.CopyToDevice(device_ptr, host_ptr, bytes);
  /* --- "Dynamic Kernel Compilation", with a path that is there. --- */
runner.CompileAndLoadKernel(func_id, own ("kernels/mul.cpp"), core_type);
  /* --- */
  uint64_t address = reinterpret_cast<uintptr_t> (device_ptr);
  runtime.add_task ({ address, address, address, N }, func_id);
  /* --- */
runner.Run(runtime);
  /* --- */
  std::vector<uint8_t> result = device_result (runner, device_ptr, bytes);
  g_assert_cmpuint (pto_worker_get_device_id (simpler_get_worker (runner.context ())), ==, 9);
  /* --- */
runner.Finalize();
  /* --- */
  /* clang-format on */
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpfloat (reinterpret_cast<float *> (result.data ())[i], ==, 16);
  g_assert_null (g_getenv ("PTO_ISA_ROOT"));
}

/* Seed 004, layer 2, as a program of C++ has it that is compiled with host_binary.cpp. */
static void
test_layer_2 (void)
{
  const char *aicpu_binary = "host_build_graph", *pto_isa_root = nullptr;
  const std::string image = "a2a3sim\ninclude " + own ("include") + "\nsource " + own ("kernels");
  const char *aicore_binary = image.c_str ();
  size_t aicpu_size = strlen (aicpu_binary), aicore_size = image.size ();
  int device_id = 0, num_cores = 3, launch_aicpu_num = 1;
  std::vector<uint64_t> memory (GetRuntimeSize () / 8 + 1);
  void *runtime_handle = memory.data ();

  for (int round = 0; round < 2; round++)
    {
      /* clang-format off */
      /* --- Seed 004, "Layer 2: C API", as calls, in the order of its "Execution Flow". --- */
      g_assert_cmpint (0, ==,
DeviceRunner_Init(device_id, num_cores, aicpu_binary, aicpu_size,
                      aicore_binary, aicore_size, pto_isa_root));
      g_assert_cmpint (0, ==,
InitRuntime(runtime_handle));
      g_assert_cmpint (0, ==,
DeviceRunner_Run(runtime_handle, launch_aicpu_num));
      g_assert_cmpint (0, ==,
FinalizeRuntime(runtime_handle));
      g_assert_cmpint (0, ==,
DeviceRunner_Finalize());
      /* --- */
      /* clang-format on */
    }

  /* What has not run fails where it is verified, and leaves nothing. */
  g_assert_cmpint (InitRuntime (runtime_handle), ==, 0);
  g_assert_cmpint (FinalizeRuntime (runtime_handle), ==, -1);
  g_assert_cmpstr (simpler_last_error (), ==, "FinalizeRuntime: FinalizeRuntimeImpl() has given 1");
  g_assert_cmpint (InitRuntime (nullptr), ==, -1);
  g_assert_cmpstr (simpler_last_error (), ==, "InitRuntime: there is no runtime");
  g_assert_cmpint (DeviceRunner_Init (0, 4, nullptr, 0, nullptr, 0, nullptr), ==, -1);
  g_assert_cmpstr (
      simpler_last_error (), ==,
      "DeviceRunner_Init: Init: num_cores 4: a multiple of 3 is wanted, 1 AIC and 2 AIV for each block");
  g_assert_cmpint (DeviceRunner_Finalize (), ==, 0);
}

static void
test_runner_refused (void)
{
  DeviceRunner runner;
  Runtime runtime, circle;

  assert_throws<DeviceError> ([&] { runner.set_executors ("other", ""); },
                              "there is no runtime \"other\"");
  assert_throws<DeviceError> ([&] { runner.set_executors ("", "a2a3sim\nlibrary x"); },
                              "aicore_binary: \"library x\" is neither include nor source");
  void *device = runner.allocate_tensor (64);
  assert_throws<DeviceError> (
      [&] { runner.set_executors ("", "a5sim"); },
      "set_executors: the chip is device 0, a a2a3sim, already: Finalize() gives it back");
  for (int device_id : { -1, 16, 99 })
    assert_throws<DeviceError> ([&] { runner.set_executors ({}, {}, device_id); },
                                "set_executors: device_id " + std::to_string (device_id)
                                    + ": there are 0 to 15");
  runner.set_executors ("", "a2a3sim", 9);
  assert_throws<DeviceError> ([&] { runner.set_executors ("", "a2a3sim", 8); },
                              "the chip is device 9, a a2a3sim, already");
  runner.free_tensor (device);
  assert_throws<DeviceError> ([&] { runner.free_tensor (device); }, "device_free: ");
  assert_throws<DeviceError> ([&] { runner.compile_and_load_kernel (0, "add.cpp", 2); },
                              "kernel 0 (add.cpp): core_type 2: 0 is AIC, 1 is AIV");
  assert_throws<DeviceError> ([&] { runner.compile_and_load_kernel (-1, "add.cpp", 1); },
                              "kernel -1 (add.cpp): function ids begin with 0");
  assert_throws<DeviceError> ([&] { runner.compile_and_load_kernel (0, "", 1); },
                              "kernel 0: its path is empty");
  runner.compile_and_load_kernel (0, "nowhere.cpp", 1);
  assert_throws<DeviceError> ([&] { runner.compile_and_load_kernel (0, "add.cpp", 1); },
                              "kernel 0 (add.cpp): there is one already, nowhere.cpp");
  runtime.add_task ({}, 1);
  assert_throws<DeviceError> (
      [&] { runner.run (runtime); },
      "run: task 0: there is no kernel 1: CompileAndLoadKernel() says which it is");
  circle.add_task ({}, 0);
  assert_throws<DeviceError> ([&] { runner.run (circle); }, "nowhere.cpp");
  assert_throws<std::invalid_argument> ([&] { circle.add_successor (0, 0); },
                                        "task 0 can not come after itself");
  assert_throws<std::out_of_range> ([&] { circle.add_successor (0, 3); },
                                    "there is no task 3 of 1");
  assert_throws<std::invalid_argument> ([&] { circle.add_task (nullptr, 2, 0); },
                                        "task 1: 2 arguments at no address");
  assert_throws<DeviceError> ([&] { runner.Run (runtime, 0); }, "launch_aicpu_num 0");
  assert_throws<DeviceError> ([&] { runner.Init (0, 3, "", "", "/nonexistent/nowhere"); },
                              "pto_isa_root /nonexistent/nowhere: no such directory");
  runner.release ();
  DeviceRunner loop;
  Runtime both;
  loop.compile_and_load_kernel (0, own ("kernels/add.cpp"), 1);
  loop.set_executors ("", "a2a3sim\ninclude " + own ("include"));
  both.add_task ({ 0, 0, 0, 0 }, 0);
  both.add_task ({ 0, 0, 0, 0 }, 0);
  both.add_successor (0, 1);
  both.add_successor (1, 0);
  g_assert_true (both.get_initial_ready_tasks ().empty ());
  assert_throws<DeviceError> ([&] { loop.run (both); }, "run: ");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, nullptr);
  simpler_log_init (4, 0);
  g_test_add_func ("/pto/c++-seeds/shapes", test_shapes);
  g_test_add_func ("/pto/c++-seeds/chip-worker", test_chip_worker);
  g_test_add_func ("/pto/c++-seeds/recursion", test_recursion);
  g_test_add_func ("/pto/c++-seeds/one-chip-task", test_one_chip_task);
  g_test_add_func ("/pto/c++-seeds/output-is-allocated", test_output_is_allocated);
  g_test_add_func ("/pto/c++-seeds/lines", test_lines);
  g_test_add_func ("/pto/c++-seeds/groups", test_groups);
  g_test_add_func ("/pto/c++-seeds/worker-refused", test_worker_refused);
  g_test_add_func ("/pto/c++-seeds/runner-003", test_runner_003);
  g_test_add_func ("/pto/c++-seeds/runner-004", test_runner_004);
  g_test_add_func ("/pto/c++-seeds/layer-2-004", test_layer_2);
  g_test_add_func ("/pto/c++-seeds/runner-refused", test_runner_refused);
  return g_test_run ();
}
