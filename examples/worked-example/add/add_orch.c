/* add_orch.c: which tasks compute c = a + b on a chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One for each tile, all independent. The chip gets addresses and a number: a, b, c, elements.
 */
#include "pto_orchestration_api.h"

enum
{
  ARG_A,
  ARG_B,
  ARG_C,
  ARG_ELEMENTS,
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
  uint64_t whole[1] = { args[ARG_ELEMENTS] };
  Tensor tensors[3];

  (void) arg_count;
  for (int i = 0; i < 3; i++)
    tensors[i] = make_tensor_external ((void *) (uintptr_t) args[i], whole, 1, PTO_DTYPE_FLOAT32);
  for (uint64_t first = 0; first < whole[0]; first += TILE)
    {
      uint64_t left = whole[0] - first;
      uint64_t shape[1] = { left < TILE ? left : TILE };
      uint64_t offset[1] = { first };
      PTOParam params[] = { make_input_param (pto2_tensor_view (&tensors[0], shape, offset)),
                            make_input_param (pto2_tensor_view (&tensors[1], shape, offset)),
                            make_output_param (pto2_tensor_view (&tensors[2], shape, offset)) };

      pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 3);
    }
  return 0;
}
