# sources_helper.py: which sources do several tests build?
# SPDX-License-Identifier: LGPL-2.1-or-later

_ONE_TASK = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ .expected_arg_count = 2 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  PTOParam params[] = { make_input_param (pto2_rt_arg_tensor (rt, 0)), make_output_existing_param (pto2_rt_arg_tensor (rt, 1)),
                        make_scalar_param (SCALAR) };

  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 3);
  return 0;
}
"""


def one_task(scalar):
    """An orchestration in C: kernel 0 on vector cores, of its first argument and the second, which is written, and that number."""
    return _ONE_TASK.replace("SCALAR", str(scalar))
