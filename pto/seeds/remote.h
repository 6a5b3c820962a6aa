/* remote.h: how does a C++ program that was written after seed 001 say what is remote?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which workers there are elsewhere, what they are to run, and which tensors of a task are memory
 * of theirs. worker.h has what is done with these.
 */
#pragma once

#include "task_args.h"
#include "worker_error.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/* What Worker::add_remote_worker() is told of a worker: as pto_worker_add_remote_worker() has
 * addresses and options. Chips are as many as there are device_ids. */
struct RemoteWorkerSpec
{
  std::string endpoint = "local:";
  std::string platform = "a2a3sim";
  std::vector<int> device_ids = {};
  int num_sub_workers = 0;
  int worker_id = -1;                  /* -1: the lowest that is free */
  std::vector<std::string> roots = {}; /* directories there that functions are imported from */
  std::string python = {};             /* that imports them; "": nothing is imported */
  std::string program = {};
  std::string certificates = {};
  std::vector<std::string> launcher = {};
  bool shell = false;
  std::string trusted_fabric = {};

  GVariant *
  options () const
  {
    GVariantBuilder builder;

    if (num_sub_workers < 0 || worker_id < -1)
      throw WorkerError ("RemoteWorkerSpec: " + std::to_string (num_sub_workers)
                         + " SUB workers, worker_id " + std::to_string (worker_id)
                         + ": both begin with 0, and -1 is any id");
    for (size_t i = 0; i < device_ids.size (); i++)
      for (size_t k = 0; k <= i; k++)
        if (device_ids[i] < 0 || (k < i && device_ids[k] == device_ids[i]))
          throw WorkerError ("RemoteWorkerSpec: device " + std::to_string (device_ids[i])
                             + ": each is there once, from 0 on");
    g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
    add (&builder, "devices", g_variant_new_uint32 (static_cast<guint32> (device_ids.size ())));
    add (&builder, "sub-workers", g_variant_new_uint32 (static_cast<guint32> (num_sub_workers)));
    if (worker_id >= 0)
      add (&builder, "id", g_variant_new_uint32 (static_cast<guint32> (worker_id)));
    add (&builder, "platform", platform);
    add (&builder, "roots", roots);
    add (&builder, "python", python);
    add (&builder, "program", program);
    add (&builder, "certificates", certificates);
    add (&builder, "launcher", launcher);
    if (shell)
      add (&builder, "shell", g_variant_new_boolean (TRUE));
    add (&builder, "trusted-fabric", trusted_fabric);
    return g_variant_builder_end (&builder);
  }

private:
  static void
  add (GVariantBuilder *builder, const char *name, GVariant *value)
  {
    g_variant_builder_add (builder, "{sv}", name, value);
  }

  static void
  add (GVariantBuilder *builder, const char *name, const std::string &text)
  {
    if (!text.empty ())
      add (builder, name, g_variant_new_string (text.c_str ()));
  }

  static void
  add (GVariantBuilder *builder, const char *name, const std::vector<std::string> &texts)
  {
    std::vector<const char *> plain;

    for (const std::string &text : texts)
      plain.push_back (text.c_str ());
    if (!texts.empty ())
      add (builder, name, g_variant_new_strv (plain.data (), static_cast<gssize> (plain.size ())));
  }
};

/* Functions of Python as bytes are made by Python. */
enum class RemoteCallableKind
{
  PYTHON_IMPORT, /* "module:qualname", in the roots of the worker */
  CHIP_CALLABLE, /* the directory of a chip's orchestration, which is sent, for its chips */
  LIBRARY_SYMBOL /* "library:symbol", a library that is sent: REMOTE_ORCHESTRATION() */
};

enum WorkerType
{
  NEXT_LEVEL,
  SUB
};

/* What remote workers are to run. */
class RemoteCallable
{
  std::shared_ptr<PtoCallable> callable_;
  RemoteCallableKind kind_;

  static PtoCallable *
  make (const std::string &target, RemoteCallableKind kind, WorkerType worker_type)
  {
    auto runs_as = worker_type == SUB ? PTO_CALLABLE_SUB : PTO_CALLABLE_ORCHESTRATION;

    switch (kind)
      {
      case RemoteCallableKind::PYTHON_IMPORT:
        return pto_seeds::must (pto_imported_function_new, runs_as, target.c_str ());
      case RemoteCallableKind::CHIP_CALLABLE:
        return pto_seeds::must (pto_chip_orchestration_new_for_directory, target.c_str ());
      case RemoteCallableKind::LIBRARY_SYMBOL:
        return pto_seeds::must (pto_imported_function_new_for_symbol, runs_as, target.c_str ());
      }
    throw WorkerError ("RemoteCallable: there is no kind "
                       + std::to_string (static_cast<int> (kind))
                       + ": PYTHON_IMPORT, CHIP_CALLABLE and LIBRARY_SYMBOL are");
  }

public:
  explicit RemoteCallable (const std::string &target,
                           RemoteCallableKind kind = RemoteCallableKind::PYTHON_IMPORT,
                           WorkerType worker_type = NEXT_LEVEL)
      : callable_ (make (target, kind, worker_type), g_object_unref), kind_ (kind)
  {
  }

  PtoCallable *
  get () const
  {
    return callable_.get ();
  }

  RemoteCallableKind
  kind () const
  {
    return kind_;
  }
};

/* Memory of a remote worker, until Worker::remote_free(); all copies are of the same. */
class RemoteBufferHandle
{
  struct State
  {
    int worker_id;
    uint64_t nbytes;
    pto_seeds::Value<PtoBuffer, pto_buffer_unref> buffer;
  };
  std::shared_ptr<State> state_;

  friend class Worker;

  void
  release ()
  {
    state_->buffer = nullptr;
  }

public:
  RemoteBufferHandle (int worker_id, PtoBuffer *buffer)
      : state_ (new State{ worker_id, pto_buffer_get_size (buffer),
                           pto_seeds::Value<PtoBuffer, pto_buffer_unref> (buffer) })
  {
  }

  int
  worker_id () const
  {
    return state_->worker_id;
  }

  uint64_t
  nbytes () const
  {
    return state_->nbytes;
  }

  bool
  released () const
  {
    return state_->buffer == nullptr;
  }

  PtoBuffer *
  get () const
  {
    if (released ())
      throw WorkerError (std::to_string (nbytes ()) + " bytes at remote worker "
                         + std::to_string (worker_id ()) + ": they were freed by remote_free()");
    return state_->buffer.get ();
  }
};

/* A tensor in memory of a remote worker: where it is, not what is in it. */
class RemoteTensorRef
{
  std::optional<RemoteBufferHandle> handle_;
  uint64_t offset_ = 0;
  std::vector<uint32_t> shape_;
  DataType dtype_;
  std::shared_ptr<PtoTensor> made_; /* by the runtime, for a run */

  friend class Orchestrator;

  RemoteTensorRef (PtoTensor *made, std::vector<uint32_t> shape, DataType dtype)
      : shape_ (std::move (shape)), dtype_ (dtype), made_ (made, pto_tensor_unref)
  {
  }

public:
  RemoteTensorRef (RemoteBufferHandle handle, uint64_t offset, std::vector<uint32_t> shape,
                   DataType dtype = DataType::FLOAT32)
      : handle_ (std::move (handle)), offset_ (offset), shape_ (std::move (shape)), dtype_ (dtype)
  {
    tensor ();
  }

  /* What was freed, or does not fit, is refused. */
  pto_seeds::TensorValue
  tensor () const
  {
    std::vector<guint64> shape (shape_.begin (), shape_.end ());

    if (made_ != nullptr)
      return pto_seeds::TensorValue (pto_tensor_ref (made_.get ()));
    return pto_seeds::TensorValue (pto_seeds::must (pto_tensor_new_for_buffer, handle_->get (),
                                                    offset_, static_cast<PtoDtype> (dtype_),
                                                    shape.size (), shape.data ()));
  }

  /* What it is among TaskArgs: nothing is at an address of this process. */
  ContinuousTensor
  metadata () const
  {
    ContinuousTensor plain = { 0, {}, 0, static_cast<uint32_t> (dtype_), 0 };

    for (uint32_t extent : shape_)
      plain.shapes[plain.ndims++] = extent;
    return plain;
  }

  /* nullptr: the runtime has made it. */
  const RemoteBufferHandle *
  handle () const
  {
    return handle_.has_value () ? &*handle_ : nullptr;
  }

  uint64_t
  offset () const
  {
    return offset_;
  }
};

/* TaskArgs with RemoteTensorRefs: each is a tensor whose data is 0, with a sidecar at the same
 * index. Other tensors are copied there, as ever. */
class RemoteTaskArgs
{
  TaskArgs args_;
  std::vector<std::optional<RemoteTensorRef>> sidecars_;

public:
  void
  add_tensor (const RemoteTensorRef &ref, TensorArgType tag = TensorArgType::INPUT)
  {
    args_.add_tensor (ref.metadata (), tag);
    sidecars_.emplace_back (ref);
  }

  void
  add_tensor (const ContinuousTensor &tensor, TensorArgType tag = TensorArgType::INPUT)
  {
    args_.add_tensor (tensor, tag);
    sidecars_.emplace_back ();
  }

  void
  add_scalar (uint64_t value)
  {
    args_.add_scalar (value);
  }

  const TaskArgs &
  args () const
  {
    return args_;
  }

  TaskArgsView
  view () const
  {
    return args_.view ();
  }

  int32_t
  tensor_count () const
  {
    return args_.tensor_count ();
  }

  int32_t
  scalar_count () const
  {
    return args_.scalar_count ();
  }

  TensorArgType
  tag (int32_t i) const
  {
    return args_.tag (i);
  }

  /* nullptr: that tensor is here. */
  const RemoteTensorRef *
  sidecar (int32_t i) const
  {
    args_.tag (i);
    auto &found = sidecars_[static_cast<size_t> (i)];
    return found.has_value () ? &*found : nullptr;
  }
};
