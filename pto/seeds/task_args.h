/* task_args.h: in which shapes do the arguments of a task travel, as seed 001 has them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Plain structs for C and C++, and the builder of C++. A view points into a builder and owns
 * nothing: it is as good as the builder, until that is changed.
 */
#pragma once

#include "../api/pto_limits.h"
#include "../api/tensor.h"

#include <stdint.h>

#ifdef __cplusplus
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>
#define PTO_SEEDS_DEFAULT(value) = value
extern "C"
{
#else
#define PTO_SEEDS_DEFAULT(value)
#endif

  /* 40 bytes, as in the blob of pto_task_args_to_blob(): dtype is an enum pto_dtype, access is 0.
   */
  typedef struct ContinuousTensor
  {
    uint64_t data;
    uint32_t shapes[PTO_TENSOR_MAX_DIMS];
    uint32_t ndims;
    uint32_t dtype;
    uint32_t access;
  } ContinuousTensor;

  typedef struct TaskArgsView
  {
    int32_t tensor_count;
    int32_t scalar_count;
    const ContinuousTensor *tensors;
    const uint64_t *scalars;
  } TaskArgsView;

  /* What an orchestration of a chip is given: no tags. */
  typedef struct ChipStorageTaskArgs
  {
    int32_t tensor_count_;
    int32_t scalar_count_;
    ContinuousTensor tensors_[PTO_MAX_KERNEL_ARGS];
    uint64_t scalars_[PTO_MAX_KERNEL_ARGS];
  } ChipStorageTaskArgs;

  /* In C aicpu_thread_num begins with what it is set to, in C++ with 3: 0 is as many as the chip
   * has. */
  typedef struct CallConfig
  {
    int32_t block_dim PTO_SEEDS_DEFAULT (0);
    int32_t aicpu_thread_num PTO_SEEDS_DEFAULT (3);
    int32_t enable_l2_swimlane PTO_SEEDS_DEFAULT (0);
    int32_t enable_dump_tensor PTO_SEEDS_DEFAULT (0);
    int32_t enable_pmu PTO_SEEDS_DEFAULT (0);
    int32_t enable_dep_gen PTO_SEEDS_DEFAULT (0);
    int32_t enable_scope_stats PTO_SEEDS_DEFAULT (0);
    char output_prefix[1024] PTO_SEEDS_DEFAULT ({});
    /* Not in the seed; behind its fields, which may be given in their order. */
    int32_t enable_access_check PTO_SEEDS_DEFAULT (0);
  } CallConfig;

#ifdef __cplusplus
}

static_assert (sizeof (ContinuousTensor) == 40, "as in a blob");
static_assert (sizeof (TaskArgsView) == 24, "passed by value");

/* As PtoDirection has them. */
enum class TensorArgType : int32_t
{
  INPUT = 0,
  OUTPUT = 1,
  INOUT = 2,
  OUTPUT_EXISTING = 3,
  NO_DEP = 4
};

/* A tensor in memory of the caller's. */
inline ContinuousTensor
make_ct (void *data, std::initializer_list<uint32_t> shape, DataType dtype = DataType::FLOAT32)
{
  ContinuousTensor tensor
      = { reinterpret_cast<uintptr_t> (data), {}, 0, static_cast<uint32_t> (dtype), 0 };

  if (shape.size () < 1 || shape.size () > PTO_TENSOR_MAX_DIMS)
    throw std::invalid_argument ("make_ct: " + std::to_string (shape.size ())
                                 + " dimensions: there are 1 to "
                                 + std::to_string (PTO_TENSOR_MAX_DIMS));
  for (uint32_t extent : shape)
    tensor.shapes[tensor.ndims++] = extent;
  return tensor;
}

class TaskArgs
{
  std::vector<ContinuousTensor> tensors_;
  std::vector<TensorArgType> tags_;
  std::vector<uint64_t> scalars_;

public:
  void
  add_tensor (const ContinuousTensor &tensor, TensorArgType tag = TensorArgType::INPUT)
  {
    tensors_.push_back (tensor);
    tags_.push_back (tag);
  }

  void
  add_scalar (uint64_t value)
  {
    scalars_.push_back (value);
  }

  /* Its pointers are never null, so that a listing may give them to memcpy() whatever the counts
   * are. */
  TaskArgsView
  view () const
  {
    static const ContinuousTensor no_tensor = {};
    static const uint64_t no_scalar = 0;

    return TaskArgsView{ tensor_count (), scalar_count (),
                         tensors_.empty () ? &no_tensor : tensors_.data (),
                         scalars_.empty () ? &no_scalar : scalars_.data () };
  }

  int32_t
  tensor_count () const
  {
    return static_cast<int32_t> (tensors_.size ());
  }

  int32_t
  scalar_count () const
  {
    return static_cast<int32_t> (scalars_.size ());
  }

  TensorArgType
  tag (int32_t i) const
  {
    if (i < 0 || i >= tensor_count ())
      throw std::out_of_range ("tag: tensor " + std::to_string (i) + " of "
                               + std::to_string (tensor_count ()));
    return tags_[static_cast<size_t> (i)];
  }
};
#endif

#undef PTO_SEEDS_DEFAULT
