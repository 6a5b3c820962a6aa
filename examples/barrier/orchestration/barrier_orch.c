/* barrier_orch.c: which tasks compute many steps? One, whose blocks begin at once: there is a
 * barrier in the kernel after each step instead of a task for each.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto_orchestration_api.h"

enum
{
  ARG_ROWS,
  ARG_OUT,
  ARG_STEPS,
  ARG_BLOCKS,
  ARG_COUNT
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
  PTOParam params[]
      = { make_inout_param (pto2_rt_arg_tensor (rt, ARG_ROWS)), make_scalar_param (args[ARG_STEPS]),
          make_output_param (pto2_rt_arg_tensor (rt, ARG_OUT)) };

  (void) arg_count;
  pto2_rt_submit_sync_task (rt, 0, PTO2_WORKER_VECTOR, params, 3, (int32_t) args[ARG_BLOCKS]);
  return 0;
}
