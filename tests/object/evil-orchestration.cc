/* evil-orchestration.cc: submits evil kernels, or is evil itself.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arguments: address of a vector, its length, how often, what the kernel does, what the
 * orchestration does before and after its first submit, what its configuration does.
 */
#include "pto_orchestration_api.h"

#include "evil.h"

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int n)
{
  if (n > 6)
    evil_do ((int) args[6], NULL);
  return { 7 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)
{
  Tensor f = make_tensor_external ((void *) args[0], &args[1], 1, DataType::FLOAT32);

  evil_do ((int) args[4], NULL);
  PTO2_SCOPE (rt)
  {
    for (uint64_t i = 0; i < args[2]; i++)
      {
        PTOParam params[] = { make_scalar_param (args[3]), make_output_existing_param (f) };

        pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2); /* the submit */
        if (i == 0)
          evil_do ((int) args[5], NULL);
      }
  }
  return 0;
}
