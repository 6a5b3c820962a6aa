/* partial_sum_orch.c: which tasks add up one chip's part of a vector?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One task for each tile, all independent, then one that adds their results. The chip gets
 * two vectors: x, and out of one element.
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
  Tensor x = pto2_rt_arg_tensor (rt, ARG_X);
  Tensor out = pto2_rt_arg_tensor (rt, ARG_OUT);
  uint64_t one[1] = { 1 };
  uint64_t tiles[1] = { TILES };
  uint64_t tile[1] = { x.shapes[0] / TILES };

  (void) args;
  (void) arg_count;
  if (x.shapes[0] % TILES != 0)
    {
      LOG_ERROR (rt, "partial sum: %llu elements: a multiple of %d wanted",
                 (unsigned long long) x.shapes[0], TILES);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  PTO2_SCOPE (rt)
  {
    Tensor sums[TILES];
    Tensor parts = make_tensor (tiles, 1, x.dtype);

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
