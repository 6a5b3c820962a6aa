/* fill_orch.c: which task fills a tensor?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto_orchestration_api.h"

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = 3 };
}

/* args: address of out, its number of elements, the bits of a float. */
void
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor out = make_tensor_external ((void *) (uintptr_t) args[0], &args[1], 1, PTO_DTYPE_FLOAT32);
  PTOParam params[] = { make_output_existing_param (out), make_scalar_param (args[2]) };

  (void) arg_count;
  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);
}
