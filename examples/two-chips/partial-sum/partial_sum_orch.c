/* partial_sum_orch.c: which tasks add up one chip's part of a vector?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One task for each tile, all independent, then one that adds their results. The chip gets
 * addresses and numbers: x, out, elements.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_SUM
};

enum
{
  ARG_X,
  ARG_OUT,
  ARG_ELEMENTS,
  ARG_COUNT
};

#define TILES 16

static void
submit_sum (PTO2Runtime *rt, Tensor x, Tensor out)
{
  PTOParam params[] = { make_input_param (x), make_output_param (out) };

  pto2_rt_submit_task (rt, KERNEL_SUM, PTO2_WORKER_VECTOR, params, 2);
}

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
  uint64_t shape[1] = { args[ARG_ELEMENTS] };
  uint64_t one[1] = { 1 };
  uint64_t tiles[1] = { TILES };
  uint64_t tile[1] = { args[ARG_ELEMENTS] / TILES };
  Tensor x = make_tensor_external ((void *) (uintptr_t) args[ARG_X], shape, 1, PTO_DTYPE_FLOAT32);
  Tensor out = make_tensor_external ((void *) (uintptr_t) args[ARG_OUT], one, 1, PTO_DTYPE_FLOAT32);

  (void) arg_count;
  if (args[ARG_ELEMENTS] == 0 || args[ARG_ELEMENTS] % TILES != 0)
    {
      LOG_ERROR (rt, "partial sum: %llu elements: a multiple of %d wanted",
                 (unsigned long long) args[ARG_ELEMENTS], TILES);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  PTO2_SCOPE (rt)
  {
    Tensor sums[TILES];
    Tensor parts = make_tensor (tiles, 1, PTO_DTYPE_FLOAT32);

    for (uint64_t i = 0; i < TILES; i++)
      {
        uint64_t from[1] = { i * tile[0] };
        uint64_t place[1] = { i };

        sums[i] = pto2_tensor_view (&parts, one, place);
        submit_sum (rt, pto2_tensor_view (&x, tile, from), sums[i]);
      }
    submit_sum (rt, parts, out);
  }
  return 0;
}
