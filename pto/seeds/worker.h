/* worker.h: how does a C++ program that was written after seed 001 run tasks on workers of all
 * levels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A cover of PtoWorker and what goes with it, with the seed's names. Functions are of C++:
 * std::function, called with what they are given; what they throw is the run's error. Every failure
 * throws WorkerError, whose text is one line; nothing is thrown through C. Threads, forks and
 * lifetimes are as pto/pto.h has them.
 */
#pragma once

#include "pto_runtime_c_api.h"
#include "remote.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <pto/pto.h>
#include <string>
#include <vector>

enum ChildMode
{
  THREAD,
  PROCESS
};

using CallableKind = PtoCallableKind;
using TargetNamespace = PtoTargetNamespace;

/* Seed 001, section 2. */
struct CallableIdentity
{
  std::array<uint8_t, 32> digest;
  CallableKind kind;
  TargetNamespace target_namespace;
};

class Orchestrator;
/* An orchestration of level 3 or up, and a function of a SUB worker. */
using OrchestrationFn = std::function<void (Orchestrator *, TaskArgsView, const CallConfig &)>;
using SubFn = std::function<void (TaskArgsView)>;

namespace pto_seeds
{
/* Calls what may throw for C, which gets an error instead. */
template <typename Call>
gboolean
call_for_c (GError **error, Call call)
{
  try
    {
      call ();
      return TRUE;
    }
  catch (const std::exception &thrown)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, thrown.what ());
    }
  catch (...)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT,
                           "something was thrown that is no std::exception");
    }
  return FALSE;
}

/* What a function is given: a TaskArgs of its own. */
inline TaskArgs
read (PtoTaskArgs *given)
{
  TaskArgs args;

  for (guint i = 0; given != nullptr && i < pto_task_args_get_n_args (given); i++)
    {
      if (pto_task_args_get_direction (given, i) == PTO_DIRECTION_SCALAR)
        {
          args.add_scalar (pto_task_args_get_scalar (given, i));
          continue;
        }
      PtoTensor *tensor = pto_task_args_get_tensor (given, i);
      gsize n_dims;
      const guint64 *shape = pto_tensor_get_shape (tensor, &n_dims);
      ContinuousTensor plain = { pto_tensor_get_address (tensor),
                                 {},
                                 static_cast<uint32_t> (n_dims),
                                 static_cast<uint32_t> (pto_tensor_get_dtype (tensor)),
                                 0 };
      for (gsize k = 0; k < n_dims; k++)
        plain.shapes[k] = static_cast<uint32_t> (shape[k]);
      args.add_tensor (plain, TensorArgType::NO_DEP);
    }
  return args;
}

inline CallConfig
read (const PtoCallConfig *given)
{
  CallConfig config;
  const char *prefix = given != nullptr ? pto_call_config_get_output_prefix (given) : nullptr;

  if (given == nullptr)
    return config;
  config.block_dim = pto_call_config_get_block_dim (given);
  config.aicpu_thread_num = pto_call_config_get_aicpu_thread_num (given);
  config.enable_l2_swimlane = pto_call_config_get_enable_l2_swimlane (given);
  config.enable_dump_tensor = pto_call_config_get_enable_dump_tensor (given);
  config.enable_pmu = pto_call_config_get_enable_pmu (given);
  config.enable_dep_gen = pto_call_config_get_enable_dep_gen (given);
  config.enable_scope_stats = pto_call_config_get_enable_scope_stats (given);
  config.enable_access_check = pto_call_config_get_enable_access_check (given);
  if (prefix != nullptr)
    {
      if (std::strlen (prefix) >= sizeof config.output_prefix)
        throw WorkerError ("output_prefix is longer than "
                           + std::to_string (sizeof config.output_prefix - 1) + " bytes");
      std::strcpy (config.output_prefix, prefix);
    }
  return config;
}

/* One that is as it was made says nothing: what is above chips has no threads to choose, either. */
inline Choices
write (const CallConfig &config)
{
  const CallConfig untouched;

  if (std::memcmp (&config, &untouched, sizeof config) == 0)
    return nullptr;
  Choices choices (simpler_read_config (&config));
  if (choices == nullptr)
    throw WorkerError (simpler_last_error ());
  return choices;
}

/* Tensors that the runtime made are the handles that it gave, those with a sidecar memory of a
 * remote worker; all others are memory of the caller's. */
inline Arguments
write (const TaskArgs &args, const std::map<uint64_t, TensorValue> *made,
       const RemoteTaskArgs *remote = nullptr)
{
  Arguments written (pto_task_args_new ());
  TaskArgsView view = args.view ();

  for (int32_t i = 0; i < view.tensor_count; i++)
    {
      const ContinuousTensor &plain = view.tensors[i];
      const RemoteTensorRef *sidecar = remote != nullptr ? remote->sidecar (i) : nullptr;
      auto direction = static_cast<PtoDirection> (args.tag (i));
      if (sidecar != nullptr)
        {
          pto_task_args_add_tensor (written.get (), sidecar->tensor ().get (), direction);
          continue;
        }
      guint64 shape[PTO_TENSOR_MAX_DIMS];
      std::string where = "argument " + std::to_string (i) + ": ";
      if (plain.ndims < 1 || plain.ndims > PTO_TENSOR_MAX_DIMS)
        throw WorkerError (where + "a tensor has 1 to " + std::to_string (PTO_TENSOR_MAX_DIMS)
                           + " dimensions, not " + std::to_string (plain.ndims));
      if (plain.dtype > PTO_DTYPE_INT4)
        throw WorkerError (where + "there is no element type " + std::to_string (plain.dtype));
      bool is_new = plain.data == 0 && made != nullptr && direction == PTO_DIRECTION_OUTPUT;
      if (plain.data == 0 && !is_new)
        throw WorkerError (where
                           + "a tensor without memory: Orchestrator::alloc() gives one that has "
                             "some, and a submit gives some to an OUTPUT");
      for (uint32_t k = 0; k < plain.ndims; k++)
        shape[k] = plain.shapes[k];
      auto found = made != nullptr ? made->find (plain.data)
                                   : std::map<uint64_t, TensorValue>::const_iterator ();
      if (!is_new && made != nullptr && found != made->end ())
        {
          pto_task_args_add_tensor (written.get (), found->second.get (), direction);
          continue;
        }
      auto dtype = static_cast<PtoDtype> (plain.dtype);
      TensorValue tensor (is_new ? pto_tensor_new (dtype, plain.ndims, shape)
                                 : pto_tensor_new_external (plain.data, dtype, plain.ndims, shape));
      pto_task_args_add_tensor (written.get (), tensor.get (), direction);
    }
  for (int32_t i = 0; i < view.scalar_count; i++)
    pto_task_args_add_scalar (written.get (), view.scalars[i]);
  return written;
}

inline Arguments
write (const RemoteTaskArgs &args, const std::map<uint64_t, TensorValue> *made)
{
  return write (args.args (), made, &args);
}
} // namespace pto_seeds

/* What Worker::register_callable() gives. */
class CallableHandle
{
  std::shared_ptr<PtoCallableHandle> handle_;

public:
  explicit CallableHandle (PtoCallableHandle *handle) : handle_ (handle, pto_callable_handle_unref)
  {
  }

  PtoCallableHandle *
  get () const
  {
    return handle_.get ();
  }

  CallableIdentity
  identity () const
  {
    CallableIdentity identity = { {},
                                  pto_callable_handle_get_kind (get ()),
                                  pto_callable_handle_get_target_namespace (get ()) };
    pto_seeds::Bytes digest (pto_callable_handle_dup_digest_bytes (get ()));

    std::memcpy (identity.digest.data (), g_bytes_get_data (digest.get (), nullptr),
                 identity.digest.size ());
    return identity;
  }
};

/* An orchestration of a chip with its kernels: a directory, or built of parts with pto/pto.h. */
class ChipCallable
{
  std::shared_ptr<PtoCallable> callable_;

public:
  explicit ChipCallable (const std::string &directory)
  {
    callable_ = std::shared_ptr<PtoCallable> (
        pto_seeds::must (pto_chip_orchestration_new_for_directory, directory.c_str ()),
        g_object_unref);
  }

  PtoCallable *
  get () const
  {
    return callable_.get ();
  }
};

/* What an orchestration function is given. The functions throw when they refuse; a task that fails
 * is the run's error. */
class Orchestrator
{
  PtoOrchestrator *orchestrator_;
  std::map<uint64_t, pto_seeds::TensorValue> made_; /* by their addresses */

  /* The program's line, not that of this file. */
  PtoOrchestrator *
  at (const char *file, int line) const
  {
    return pto_orchestrator_at (orchestrator_, file, static_cast<guint> (line));
  }

  template <typename Args>
  std::vector<pto_seeds::Arguments>
  list (const std::vector<Args> &args_list, std::vector<PtoTaskArgs *> &plain) const
  {
    std::vector<pto_seeds::Arguments> written;

    for (const Args &args : args_list)
      {
        written.push_back (pto_seeds::write (args, &made_));
        plain.push_back (written.back ().get ());
      }
    return written;
  }

  template <typename Args>
  void
  submit_group (const CallableHandle &handle, const std::vector<Args> &args_list,
                const CallConfig &config, const std::vector<int> &workers, const char *file,
                int line)
  {
    std::vector<PtoTaskArgs *> plain;
    auto written = list (args_list, plain);

    pto_seeds::must (pto_orchestrator_submit_next_level_group, at (file, line), handle.get (),
                     plain.data (), plain.size (), pto_seeds::write (config).get (),
                     workers.data (), workers.size ());
  }

public:
  explicit Orchestrator (PtoOrchestrator *orchestrator) : orchestrator_ (orchestrator) {}

  PtoOrchestrator *
  get () const
  {
    return orchestrator_;
  }

  /* Args: TaskArgs or RemoteTaskArgs. */
  template <typename Args = TaskArgs>
  void
  submit_next_level (const CallableHandle &handle, const Args &args,
                     const CallConfig &config = CallConfig{}, int worker = -1,
                     const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    pto_seeds::must (pto_orchestrator_submit_next_level, at (file, line), handle.get (),
                     pto_seeds::write (args, &made_).get (), pto_seeds::write (config).get (),
                     worker);
  }

  void
  submit_next_level_group (const CallableHandle &handle, const std::vector<TaskArgs> &args_list,
                           const CallConfig &config = CallConfig{},
                           const std::vector<int> &workers = {},
                           const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    submit_group (handle, args_list, config, workers, file, line);
  }

  void
  submit_next_level_group (const CallableHandle &handle,
                           const std::vector<RemoteTaskArgs> &args_list,
                           const CallConfig &config = CallConfig{},
                           const std::vector<int> &workers = {},
                           const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    submit_group (handle, args_list, config, workers, file, line);
  }

  void
  submit_sub (const CallableHandle &handle, const TaskArgs &args = TaskArgs (),
              const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    pto_seeds::must (pto_orchestrator_submit_sub, at (file, line), handle.get (),
                     pto_seeds::write (args, &made_).get (), -1);
  }

  void
  submit_sub_group (const CallableHandle &handle, const std::vector<TaskArgs> &args_list,
                    const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    std::vector<PtoTaskArgs *> plain;
    auto written = list (args_list, plain);

    pto_seeds::must (pto_orchestrator_submit_sub_group, at (file, line), handle.get (),
                     plain.data (), plain.size (), nullptr, 0);
  }

  /* Memory of the runtime's, until the scope has ended and its last user is done. */
  ContinuousTensor
  alloc (const std::vector<uint32_t> &shape, DataType dtype = DataType::FLOAT32,
         const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    std::vector<guint64> extents (shape.begin (), shape.end ());
    PtoTensor *made
        = pto_seeds::must (pto_orchestrator_alloc, at (file, line), static_cast<PtoDtype> (dtype),
                           extents.size (), extents.data ());
    uint64_t address = pto_tensor_get_address (made);
    made_[address] = pto_seeds::TensorValue (made);
    ContinuousTensor plain = { address, {}, 0, static_cast<uint32_t> (dtype), 0 };
    for (uint32_t extent : shape)
      plain.shapes[plain.ndims++] = extent;
    return plain;
  }

  /* The same at a remote worker, for its tasks: its elements stay there until the next run. */
  RemoteTensorRef
  make_tensor_at (int worker, const std::vector<uint32_t> &shape,
                  DataType dtype = DataType::FLOAT32)
  {
    std::vector<guint64> extents (shape.begin (), shape.end ());

    return RemoteTensorRef (pto_seeds::must (pto_orchestrator_make_tensor_at, orchestrator_, worker,
                                             static_cast<PtoDtype> (dtype), extents.size (),
                                             extents.data ()),
                            shape, dtype);
  }

  /* What is registered on the orchestration's own worker: of a remote one, on Worker::child(). */
  CallableHandle
  lookup (const std::string &name) const
  {
    return CallableHandle (pto_seeds::must (
        pto_worker_lookup, pto_orchestrator_get_worker (orchestrator_), name.c_str ()));
  }

  void
  scope_begin (const char *file = __builtin_FILE(), int line = __builtin_LINE())
  {
    pto_seeds::must (pto_orchestrator_begin_scope,
                     pto_orchestrator_scope_at (orchestrator_, file, static_cast<guint> (line)));
  }

  void
  scope_end ()
  {
    pto_seeds::must (pto_orchestrator_end_scope, orchestrator_);
  }
};

namespace pto_seeds
{
inline gboolean
call (const OrchestrationFn &function, PtoOrchestrator *orchestrator, PtoTaskArgs *args,
      PtoCallConfig *config, GError **error)
{
  return call_for_c (error, [&] {
    Orchestrator given (orchestrator);
    TaskArgs all = read (args);

    function (&given, all.view (), read (config));
  });
}

inline gboolean
call (const SubFn &function, PtoTaskArgs *args, GError **error)
{
  return call_for_c (error, [&] {
    TaskArgs all = read (args);

    function (all.view ());
  });
}
} // namespace pto_seeds

/* What a library has for RemoteCallable ("library:symbol", RemoteCallableKind::LIBRARY_SYMBOL): an
 * orchestration, or a function of a SUB worker. */
#define REMOTE_ORCHESTRATION(symbol, function)                                              \
  extern "C" __attribute__ ((visibility ("default"))) gboolean symbol (                     \
      PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer,    \
      GError **error)                                                                       \
  {                                                                                         \
    return pto_seeds::call (OrchestrationFn (function), orchestrator, args, config, error); \
  }
#define REMOTE_SUB(symbol, function)                                                             \
  extern "C" __attribute__ ((visibility ("default"))) gboolean symbol (PtoTaskArgs *args,        \
                                                                       gpointer, GError **error) \
  {                                                                                              \
    return pto_seeds::call (SubFn (function), args, error);                                      \
  }

/* A worker of any level: Worker (2), or Worker (3, 1) with one SUB worker. */
class Worker
{
  std::shared_ptr<PtoWorker> worker_;

  static gboolean
  call_orchestration (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                      gpointer data, GError **error)
  {
    return pto_seeds::call (*static_cast<OrchestrationFn *> (data), orchestrator, args, config,
                            error);
  }

  static gboolean
  call_sub (PtoTaskArgs *args, gpointer data, GError **error)
  {
    return pto_seeds::call (*static_cast<SubFn *> (data), args, error);
  }

  explicit Worker (PtoWorker *worker)
      : worker_ (static_cast<PtoWorker *> (g_object_ref (worker)), g_object_unref)
  {
  }

  PtoWorker *
  find_remote (int id) const
  {
    PtoWorker *found = id >= 0 ? pto_worker_get_child (get (), static_cast<guint> (id)) : nullptr;
    char *address = found != nullptr ? pto_worker_dup_remote_address (found) : nullptr;

    g_free (address);
    if (address == nullptr)
      throw WorkerError (path (get ()) + " has no remote worker " + std::to_string (id)
                         + ": add_remote_worker() gives an id");
    return found;
  }

  static std::string
  path (PtoWorker *worker)
  {
    char *path = pto_worker_dup_path (worker);
    std::string copy = path;

    g_free (path);
    return copy;
  }

  PtoBuffer *
  find_buffer (const RemoteBufferHandle &handle) const
  {
    PtoBuffer *buffer = handle.get ();
    PtoWorker *owner = pto_buffer_get_worker (buffer);

    if (owner != pto_worker_get_child (get (), static_cast<guint> (handle.worker_id ())))
      throw WorkerError ("that memory is not of " + path (get ()) + ", but of " + path (owner));
    return buffer;
  }

  /* workers: none: all who can run it. */
  CallableHandle
  register_it (PtoCallable *callable, const std::vector<int> &workers = {})
  {
    return CallableHandle (pto_seeds::must (pto_worker_register_on, get (), callable,
                                            workers.data (), workers.size (), nullptr));
  }

  /* For the chips of each of them, or of none. */
  CallableHandle
  register_below (PtoCallable *callable, const std::vector<int> &workers)
  {
    std::vector<std::pair<Worker, CallableHandle>> done;

    try
      {
        for (int id : workers)
          {
            Worker remote (find_remote (id));
            done.emplace_back (remote, remote.register_it (callable));
          }
      }
    catch (...)
      {
        for (auto &one : done)
          pto_worker_unregister (one.first.get (), one.second.get (), nullptr);
        throw;
      }
    return done.front ().second;
  }

public:
  explicit Worker (int level, int num_sub_workers = 0, ChildMode child_mode = PROCESS,
                   const std::string &platform = "a2a3sim", int device_id = 0)
  {
    if (level < 2 || num_sub_workers < 0 || device_id < 0)
      throw WorkerError ("Worker: level " + std::to_string (level) + ", "
                         + std::to_string (num_sub_workers) + " SUB workers, device "
                         + std::to_string (device_id) + ": levels begin with 2, the others with 0");
    auto *worker = static_cast<PtoWorker *> (g_object_new (
        PTO_TYPE_WORKER, "level", static_cast<guint> (level), "n-sub-workers",
        static_cast<guint> (num_sub_workers), "child-mode",
        child_mode == THREAD ? PTO_CHILD_MODE_THREAD : PTO_CHILD_MODE_PROCESS, "platform",
        platform.c_str (), "device-id", static_cast<guint> (device_id), nullptr));
    worker_ = std::shared_ptr<PtoWorker> (worker, g_object_unref);
  }

  PtoWorker *
  get () const
  {
    return worker_.get ();
  }

  /* SUB workers are said when a worker is made. */
  void
  add_worker (WorkerType type, const Worker &child)
  {
    if (type != NEXT_LEVEL)
      throw WorkerError ("add_worker: SUB workers are said when a worker is made: Worker (3, 1)");
    pto_seeds::must (pto_worker_add_worker, get (), child.get ());
  }

  void
  add_worker (const Worker &child)
  {
    add_worker (NEXT_LEVEL, child);
  }

  /* Gives the worker's id. */
  int
  add_remote_worker (const RemoteWorkerSpec &spec)
  {
    PtoWorker *added = pto_seeds::must (pto_worker_add_remote_worker, get (),
                                        spec.endpoint.c_str (), spec.options ());

    return static_cast<int> (pto_worker_get_id (added));
  }

  /* The remote worker with that id, to register on it what its orchestrations look up. */
  Worker
  child (int id) const
  {
    return Worker (find_remote (id));
  }

  CallableHandle
  register_callable (const ChipCallable &callable)
  {
    return register_it (callable.get ());
  }

  /* workers: the ids of those that are to have it; what is for chips is registered on each of them
   * itself. */
  CallableHandle
  register_callable (const RemoteCallable &callable, const std::vector<int> &workers = {})
  {
    if (callable.kind () == RemoteCallableKind::CHIP_CALLABLE && !workers.empty ())
      return register_below (callable.get (), workers);
    return register_it (callable.get (), workers);
  }

  /* Memory of a remote worker, of zeros. */
  RemoteBufferHandle
  remote_malloc (int worker, uint64_t nbytes)
  {
    return RemoteBufferHandle (
        worker, pto_seeds::must (pto_worker_alloc_buffer, find_remote (worker), nbytes));
  }

  /* Gives it back, when the tasks that use it are done, and no graph that was captured with it is
   * left. */
  void
  remote_free (RemoteBufferHandle handle)
  {
    find_buffer (handle);
    handle.release ();
  }

  void
  remote_copy_to (const RemoteBufferHandle &handle, const void *host, uint64_t nbytes,
                  uint64_t offset = 0)
  {
    PtoBuffer *buffer = find_buffer (handle);
    pto_seeds::Bytes bytes (g_bytes_new_static (host, nbytes));

    pto_seeds::must (pto_buffer_write, buffer, offset, bytes.get ());
  }

  void
  remote_copy_from (const RemoteBufferHandle &handle, void *host, uint64_t nbytes,
                    uint64_t offset = 0)
  {
    pto_seeds::Bytes bytes (
        pto_seeds::must (pto_buffer_read, find_buffer (handle), offset, nbytes));

    if (nbytes > 0)
      std::memcpy (host, g_bytes_get_data (bytes.get (), nullptr), nbytes);
  }

  /* The name tells functions apart: two of one name are one. */
  CallableHandle
  register_orchestration (const std::string &name, OrchestrationFn function)
  {
    std::unique_ptr<PtoCallable, void (*) (gpointer)> callable (
        pto_orchestration_function_new (
            name.c_str (), call_orchestration, new OrchestrationFn (std::move (function)),
            [] (gpointer data) { delete static_cast<OrchestrationFn *> (data); }),
        g_object_unref);

    return register_it (callable.get ());
  }

  CallableHandle
  register_sub (const std::string &name, SubFn function)
  {
    std::unique_ptr<PtoCallable, void (*) (gpointer)> callable (
        pto_sub_function_new (name.c_str (), call_sub, new SubFn (std::move (function)),
                              [] (gpointer data) { delete static_cast<SubFn *> (data); }),
        g_object_unref);

    return register_it (callable.get ());
  }

  void
  init ()
  {
    pto_seeds::must (pto_worker_start, get (), nullptr);
  }

  void
  run (OrchestrationFn function, const TaskArgs &args = TaskArgs (),
       const CallConfig &config = CallConfig{})
  {
    pto_seeds::must (pto_worker_run, get (), call_orchestration, &function,
                     pto_seeds::write (args, nullptr).get (), pto_seeds::write (config).get (),
                     nullptr);
  }

  void
  run (const CallableHandle &handle, const TaskArgs &args = TaskArgs (),
       const CallConfig &config = CallConfig{})
  {
    pto_seeds::must (pto_worker_run_callable, get (), handle.get (),
                     pto_seeds::write (args, nullptr).get (), pto_seeds::write (config).get (),
                     nullptr);
  }

  void
  close ()
  {
    pto_worker_close (worker_.get ());
  }
};

/* Seed 001, section 5: a chip that runs what it is told by number. */
class ChipWorker
{
  DeviceContextHandle ctx_ = create_device_context ();

  static void
  check (int status)
  {
    if (status != 0)
      throw WorkerError (simpler_last_error ());
  }

public:
  ChipWorker () = default;
  ~ChipWorker () { destroy_device_context (ctx_); }
  ChipWorker (const ChipWorker &) = delete;
  ChipWorker &operator= (const ChipWorker &) = delete;

  void
  init (int device_id = 0, const std::string &aicpu = "", const std::string &aicore = "")
  {
    check (simpler_init (ctx_, device_id, aicpu.data (), aicpu.size (), aicore.data (),
                         aicore.size ()));
  }

  void
  register_callable (int32_t local_slot, const ChipCallable &callable)
  {
    check (::register_callable (ctx_, local_slot, callable.get ()));
  }

  void
  run (int32_t local_slot, TaskArgsView view, const CallConfig &config)
  {
    auto storage = std::make_unique<ChipStorageTaskArgs> ();

    if (view.tensor_count > PTO_MAX_KERNEL_ARGS || view.scalar_count > PTO_MAX_KERNEL_ARGS)
      throw WorkerError ("ChipWorker::run: " + std::to_string (view.tensor_count) + " tensors and "
                         + std::to_string (view.scalar_count) + " scalars: there are up to "
                         + std::to_string (PTO_MAX_KERNEL_ARGS) + " of each");
    storage->tensor_count_ = view.tensor_count;
    storage->scalar_count_ = view.scalar_count;
    std::copy_n (view.tensors, view.tensor_count, storage->tensors_);
    std::copy_n (view.scalars, view.scalar_count, storage->scalars_);
    check (simpler_run (ctx_, nullptr, local_slot, storage.get (), &config));
  }

  void
  finalize ()
  {
    check (finalize_device (ctx_));
  }
};
