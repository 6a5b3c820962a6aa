/* device_runner.h: how does a C++ program that was written after seed 003 or 004 hold a chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Layer 1 of both: seed 003 has a runner for each chip, with names in small letters, seed 004 one
 * for the process, Get(), with capitals. Both are this class, a cover of a context of
 * pto_runtime_c_api.h, which goes with it.
 *
 * What fails throws DeviceError, whose text is one line. Nothing is thrown through C. A runner
 * belongs to one thread at a time.
 */
#pragma once

#include "pto_runtime_c_api.h"
#include "runtime.h"
#include "worker_error.h"

#include <map>
#include <memory>
#include <pto/pto.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

class DeviceError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

static_assert (PTO_CORE_AIC == 0 && PTO_CORE_AIV == 1, "core_type is a number in the seeds");

namespace pto_seeds
{
/* What stands for a program of a simulated chip (see simpler_init()): a text, or the bytes of one.
 */
using Binary = std::string;

inline Binary
binary (const std::vector<uint8_t> &bytes)
{
  return Binary (bytes.begin (), bytes.end ());
}

/* An error of libpto's as an exception. */
[[noreturn]] inline void
raise (const std::string &where, GError *error)
{
  std::string text = where + ": " + (error != nullptr ? error->message : "failed");

  g_clear_error (&error);
  throw DeviceError (text);
}

} // namespace pto_seeds

class DeviceRunner
{
public:
  DeviceRunner () : ctx_ (create_device_context ()) {}
  ~DeviceRunner () { destroy_device_context (ctx_); }
  DeviceRunner (const DeviceRunner &) = delete;
  DeviceRunner &operator= (const DeviceRunner &) = delete;

  /* Seed 004: the process's own. */
  static DeviceRunner &
  Get ()
  {
    static DeviceRunner runner;

    return runner;
  }

  /* Once, at init time: which runtime, and which platform. Who allocates before that has an
   * a2a3sim, which is the device that is named then. */
  void
  set_executors (const pto_seeds::Binary &aicpu_binary, const pto_seeds::Binary &aicore_binary,
                 int device_id = 0)
  {
    std::string platform = first_line (aicore_binary);

    if (device_id < 0 || device_id >= N_DEVICES)
      throw DeviceError ("set_executors: device_id " + std::to_string (device_id)
                         + ": there are 0 to " + std::to_string (N_DEVICES - 1));
    if (state_ != NONE && (platform != platform_ || (state_ == NAMED && device_id != device_id_)))
      throw DeviceError ("set_executors: the chip is device " + std::to_string (device_id_) + ", a "
                         + platform_ + ", already: Finalize() gives it back");
    read_directories (aicore_binary);
    if (state_ == NONE)
      check (simpler_init (ctx_, device_id, aicpu_binary.data (), aicpu_binary.size (),
                           platform.data (), platform.size ()));
    state_ = NAMED;
    device_id_ = device_id;
    platform_ = platform;
  }

  void *
  allocate_tensor (size_t bytes)
  {
    start ();
    void *device = device_malloc (ctx_, bytes);
    if (device == nullptr)
      throw DeviceError (simpler_last_error ());
    tensors_.insert (device);
    return device;
  }

  void
  free_tensor (void *device)
  {
    check (device_free (ctx_, device));
    tensors_.erase (device);
  }

  /* Forgets all kernels and gives back all tensors, as the end of a runtime does; the chip stays.
   */
  void
  release ()
  {
    kernels_.clear ();
    while (!tensors_.empty ())
      free_tensor (*tensors_.begin ());
  }

  void
  copy_to_device (void *device, const void *host, size_t bytes)
  {
    check (::copy_to_device (ctx_, device, host, bytes));
  }

  void
  copy_from_device (void *host, const void *device, size_t bytes)
  {
    check (::copy_from_device (ctx_, host, device, bytes));
  }

  /* Which kernel a function id means. It is built where it is first run; a path that is not found
   * as it stands is looked for in the directories that the aicore binary names. */
  void
  compile_and_load_kernel (int func_id, const std::string &path, int core_type)
  {
    if (func_id < 0)
      throw DeviceError ("kernel " + std::to_string (func_id) + " (" + path
                         + "): function ids begin with 0");
    if (path.empty ())
      throw DeviceError ("kernel " + std::to_string (func_id) + ": its path is empty");
    if (core_type != PTO_CORE_AIC && core_type != PTO_CORE_AIV)
      throw DeviceError ("kernel " + std::to_string (func_id) + " (" + path + "): core_type "
                         + std::to_string (core_type) + ": 0 is AIC, 1 is AIV");
    if (!kernels_.emplace (func_id, Kernel{ path, core_type, nullptr }).second)
      throw DeviceError ("kernel " + std::to_string (func_id) + " (" + path
                         + "): there is one already, " + kernels_.at (func_id).path);
  }

  /* Builds the graph, launches it, and waits. */
  void
  run (const Runtime &runtime, const CallConfig &config = CallConfig{})
  {
    start ();
    GError *error = nullptr;
    std::unique_ptr<PtoGraph, void (*) (gpointer)> graph (pto_graph_new (), g_object_unref);
    pto_seeds::Arguments args (pto_task_args_new ());
    for (int task = 0; task < runtime.get_task_count (); task++)
      {
        pto_task_args_reset (args.get ());
        for (uint64_t word : runtime.get_task (task).args)
          pto_task_args_add_scalar (args.get (), word);
        if (pto_graph_add_task (graph.get (), kernel (task, runtime.get_task (task).func_id),
                                args.get (), &error)
            < 0)
          pto_seeds::raise ("run", error);
      }
    for (int task = 0; task < runtime.get_task_count (); task++)
      for (int successor : runtime.get_task (task).successors)
        if (!pto_graph_add_successor (graph.get (), static_cast<guint> (task),
                                      static_cast<guint> (successor), &error))
          pto_seeds::raise ("run", error);
    pto_seeds::Choices choices (simpler_read_config (&config));
    if (choices == nullptr)
      throw DeviceError (simpler_last_error ());
    if (!pto_worker_run_graph (simpler_get_worker (ctx_), graph.get (), nullptr, choices.get (),
                               nullptr, &error))
      pto_seeds::raise ("run", error);
  }

  void
  finalize ()
  {
    kernels_.clear ();
    tensors_.clear ();
    state_ = NONE;
    if (isa_root_before_ != nullptr && isa_root_before_->empty ())
      g_unsetenv ("PTO_ISA_ROOT");
    else if (isa_root_before_ != nullptr)
      g_setenv ("PTO_ISA_ROOT", isa_root_before_->c_str (), TRUE);
    isa_root_before_.reset ();
    check (finalize_device (ctx_));
  }

  DeviceContextHandle
  context () const
  {
    return ctx_;
  }

  /* Seed 004. num_cores is a multiple of 3, a cube core and two vector cores for each block. */
  void
  Init (int device_id, int num_cores, const pto_seeds::Binary &aicpu_binary,
        const pto_seeds::Binary &aicore_binary, const std::string &pto_isa_root = "")
  {
    if (num_cores <= 0 || num_cores % 3 != 0)
      throw DeviceError ("Init: num_cores " + std::to_string (num_cores)
                         + ": a multiple of 3 is wanted, 1 AIC and 2 AIV for each block");
    if (!pto_isa_root.empty () && !g_file_test (pto_isa_root.c_str (), G_FILE_TEST_IS_DIR))
      throw DeviceError ("Init: pto_isa_root " + pto_isa_root + ": no such directory");
    /* As the seed's own programs do: what this process compiles until Finalize() finds the headers
     * there. */
    if (!pto_isa_root.empty ())
      {
        const char *before = g_getenv ("PTO_ISA_ROOT");
        if (isa_root_before_ == nullptr)
          isa_root_before_ = std::make_unique<std::string> (before != nullptr ? before : "");
        g_setenv ("PTO_ISA_ROOT", pto_isa_root.c_str (), TRUE);
      }
    set_executors (aicpu_binary, aicore_binary, device_id);
    block_dim_ = num_cores / 3;
  }

  void *
  AllocateTensor (size_t bytes)
  {
    return allocate_tensor (bytes);
  }

  void
  FreeTensor (void *device)
  {
    free_tensor (device);
  }

  void
  CopyToDevice (void *device, const void *host, size_t bytes)
  {
    copy_to_device (device, host, bytes);
  }

  void
  CopyFromDevice (void *host, const void *device, size_t bytes)
  {
    copy_from_device (host, device, bytes);
  }

  void
  CompileAndLoadKernel (int func_id, const std::string &path, int core_type)
  {
    compile_and_load_kernel (func_id, path, core_type);
  }

  /* The graph is the host's, so all threads schedule: the one that orchestrates at level 2 comes on
   * top of them. */
  void
  Run (const Runtime &runtime, int launch_aicpu_num = 1)
  {
    CallConfig config;

    if (launch_aicpu_num < 1)
      throw DeviceError ("Run: launch_aicpu_num " + std::to_string (launch_aicpu_num)
                         + ": at least 1 is wanted");
    config.block_dim = block_dim_;
    config.aicpu_thread_num = launch_aicpu_num + 1;
    run (runtime, config);
  }

  void
  Finalize ()
  {
    finalize ();
  }

private:
  static constexpr int N_DEVICES = 16; /* as simpler_init() has it */

  struct Kernel
  {
    std::string path;
    int core_type;
    std::shared_ptr<PtoCallable> made; /* once it was asked for */
  };

  DeviceContextHandle ctx_;
  enum
  {
    NONE,
    BEGUN, /* by whoever needed one */
    NAMED
  } state_
      = NONE;
  int device_id_ = 0;
  int block_dim_ = 0;
  std::string platform_ = "a2a3sim";
  std::unique_ptr<std::string>
      isa_root_before_; /* of the environment, while Init() has changed it */
  std::vector<std::string> include_dirs_, source_dirs_;
  std::map<int, Kernel> kernels_;
  std::set<void *> tensors_;

  static void
  check (int status)
  {
    if (status != 0)
      throw DeviceError (simpler_last_error ());
  }

  static std::string
  first_line (const pto_seeds::Binary &binary)
  {
    return binary.empty () ? "a2a3sim" : binary.substr (0, binary.find ('\n'));
  }

  void
  start ()
  {
    if (state_ != NONE)
      return;
    set_executors ("", "");
    state_ = BEGUN;
  }

  /* The lines behind the first: "include DIRECTORY" and "source DIRECTORY". */
  void
  read_directories (const pto_seeds::Binary &binary)
  {
    std::istringstream lines (binary);
    std::string line;

    include_dirs_.clear ();
    source_dirs_.clear ();
    for (std::getline (lines, line); std::getline (lines, line);)
      if (line.rfind ("include ", 0) == 0)
        include_dirs_.push_back (line.substr (8));
      else if (line.rfind ("source ", 0) == 0)
        source_dirs_.push_back (line.substr (7));
      else
        throw DeviceError ("set_executors: aicore_binary: \"" + line
                           + "\" is neither include nor source");
  }

  std::string
  find (const std::string &path) const
  {
    if (!g_file_test (path.c_str (), G_FILE_TEST_EXISTS))
      for (const std::string &directory : source_dirs_)
        if (g_file_test ((directory + "/" + path).c_str (), G_FILE_TEST_EXISTS))
          return directory + "/" + path;
    return path;
  }

  PtoCallable *
  kernel (int task, int func_id)
  {
    auto found = kernels_.find (func_id);
    GError *error = nullptr;

    if (found == kernels_.end ())
      throw DeviceError ("run: task " + std::to_string (task) + ": there is no kernel "
                         + std::to_string (func_id) + ": CompileAndLoadKernel() says which it is");
    Kernel &kernel = found->second;
    if (kernel.made != nullptr)
      return kernel.made.get ();
    PtoCallable *made = pto_kernel_new (static_cast<PtoCoreType> (kernel.core_type),
                                        find (kernel.path).c_str (), nullptr, &error);
    if (made == nullptr)
      pto_seeds::raise ("kernel " + std::to_string (func_id), error);
    kernel.made = std::shared_ptr<PtoCallable> (made, g_object_unref);
    std::vector<const char *> dirs;
    for (const std::string &directory : include_dirs_)
      dirs.push_back (directory.c_str ());
    dirs.push_back (nullptr);
    if (!include_dirs_.empty ()
        && !pto_device_code_set_include_dirs (PTO_DEVICE_CODE (made), dirs.data (), &error))
      pto_seeds::raise ("kernel " + std::to_string (func_id), error);
    return made;
  }
};
