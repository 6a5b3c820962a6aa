/* add_orch.c: which tasks compute c = a + b on a chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One for each tile, all independent. The chip gets three vectors: a, b, c.
 */
#include "pto_orchestration_api.h"

enum
{
  ARG_A,
  ARG_B,
  ARG_C,
  ARG_COUNT
};

#define TILE 1024

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
  Tensor a = pto2_rt_arg_tensor (rt, ARG_A);
  Tensor b = pto2_rt_arg_tensor (rt, ARG_B);
  Tensor c = pto2_rt_arg_tensor (rt, ARG_C);

  (void) args;
  (void) arg_count;
  for (uint64_t first = 0; first < c.shapes[0]; first += TILE)
    {
      uint64_t left = c.shapes[0] - first;
      uint64_t shape[1] = { left < TILE ? left : TILE };
      uint64_t offset[1] = { first };
      PTOParam params[] = { make_input_param (pto2_tensor_view (&a, shape, offset)),
                            make_input_param (pto2_tensor_view (&b, shape, offset)),
                            make_output_param (pto2_tensor_view (&c, shape, offset)) };

      pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 3);
    }
  return 0;
}
