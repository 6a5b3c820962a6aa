/* histogram_orch.c: how do tasks that add to the same memory run at the same time? Each reduces
 * into a copy; what the copies hold is combined before somebody reads the result.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto_orchestration_api.h"

enum
{
  ARG_VALUES,
  ARG_COUNTS,
  ARG_TILE,
  ARG_COUNT
};

enum
{
  KERNEL_COUNT,
  KERNEL_ADD
};

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = ARG_COUNT };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor values = pto2_rt_arg_tensor (rt, ARG_VALUES);
  Tensor counts = pto2_rt_arg_tensor (rt, ARG_COUNTS);
  const int32_t zero = 0; /* what each element of a copy begins with */

  (void) arg_count;
  pto2_rt_fill (rt, &counts, &zero);
  for (uint64_t begin = 0; begin < values.shapes[0]; begin += args[ARG_TILE])
    {
      uint64_t left = values.shapes[0] - begin;
      uint64_t n = left < args[ARG_TILE] ? left : args[ARG_TILE];
      PTOParam params[] = { make_input_param (pto2_tensor_view (&values, &n, &begin)),
                            make_reduction_param (counts, KERNEL_ADD, &zero) };

      pto2_rt_submit_task (rt, KERNEL_COUNT, PTO2_WORKER_VECTOR, params, 2);
    }
  return 0; /* the end of the scope has the copies combined */
}
