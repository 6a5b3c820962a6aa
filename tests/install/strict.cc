/* strict.cc: do macros and inline functions of the headers for orchestrations and kernels warn of
 * nothing where C++ uses them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Compiled with all warnings as errors, never run. Outside of extern "C": casts in there are let
 * pass by compilers.
 */
#include "pto_build_graph.h"
#include "pto_orchestration_api.h"
#include "pto_reference.h"

int submit_all (PTO2Runtime *rt);
float work (const int64_t *args);

int
submit_all (PTO2Runtime *rt)
{
  Tensor x = pto2_rt_arg_tensor (rt, 0);
  Tensor y = make_tensor (x.shapes, x.ndims, x.dtype);
  const uint64_t first[1] = { 0 };
  float zero = 0;
  PTOParam params[]
      = { make_input_param (x),          make_output_param (y),
          make_inout_param (x),          make_signed_param (-2),
          make_float_param (2.5f),       make_double_param (2.5),
          make_commutative_param (x),    make_scratch_param (first, 1, DataType::INT8),
          make_output_existing_param (x) };
  PTOParam sum[]
      = { make_reduction_param (x, PTO2_KERNEL_SUM, nullptr), make_reduction_param (y, 1, &zero) };

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 9);
    PTO2_MANUAL_SCOPE (rt)
    {
      pto2_rt_submit_task_with_priority (rt, 0, PTO2_WORKER_CUBE, params, 9, 2);
    }
    pto2_rt_submit_task (rt, 1, PTO2_WORKER_VECTOR, sum, 2);
  }
  pto2_rt_add_task (rt, 0, PTO2_WORKER_VECTOR, params, 9);
  pto2_rt_get_element (rt, &x, first, &zero);
  LOG_ERROR (rt, "%s", pto_dtype_name (x.dtype));
  LOG_INFO (rt, "%d dimensions", static_cast<int> (x.view (first, first).ndims));
  return pto_dtype_is_float (x.dtype) ? 0 : -1;
}

float
work (const int64_t *args)
{
  float value = 0;

  TPUSH (args, 0, &value, sizeof value);
  TPOP (args, 0, &value, sizeof value);
  pto_sync_all (args);
  pto_relax (args);
  pto_writes_all (args);
  return pto_scalar_float (args[0]) + static_cast<float> (get_block_idx (args)) + value;
}
