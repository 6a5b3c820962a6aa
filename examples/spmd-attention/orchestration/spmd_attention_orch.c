/* spmd_attention_orch.c: which tasks compute attention over all queries? One: a mixed task, of
 * which every block takes 32 queries to a cluster, its cube core and both of its vector cores.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto_orchestration_api.h"

#include "../attention.h"

enum
{
  KERNEL_PRODUCTS,
  KERNEL_SOFTMAX
};

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = 4 };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor queries = pto2_rt_arg_tensor (rt, ARG_QUERIES);
  PTOParam params[]
      = { make_input_param (queries), make_input_param (pto2_rt_arg_tensor (rt, ARG_KEYS)),
          make_input_param (pto2_rt_arg_tensor (rt, ARG_VALUES)),
          make_output_param (pto2_rt_arg_tensor (rt, ARG_OUT)) };

  (void) args;
  (void) arg_count;
  pto2_rt_submit_mixed_task (rt, KERNEL_PRODUCTS, KERNEL_SOFTMAX, KERNEL_SOFTMAX, params, 4,
                             (int32_t) (queries.shapes[0] / QUERIES));
  return 0;
}
