/* gradient_orch.c: which tasks make the gradient of one chip's rows?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One task for each tile of rows, all independent; then one for each that adds its gradient to the
 * first. The chip gets x (rows, columns), y (rows), w (columns) and g (columns), which it writes.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_GRADIENT,
  KERNEL_ADD
};

enum
{
  ARG_X,
  ARG_Y,
  ARG_W,
  ARG_G,
  ARG_COUNT
};

#define TILES 4

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
  Tensor y = pto2_rt_arg_tensor (rt, ARG_Y);
  Tensor w = pto2_rt_arg_tensor (rt, ARG_W);
  Tensor g = pto2_rt_arg_tensor (rt, ARG_G);
  uint64_t rows = x.shapes[0] / TILES;
  uint64_t tile[2] = { rows, x.shapes[1] };

  (void) args;
  (void) arg_count;
  if (x.shapes[0] % TILES != 0)
    {
      LOG_ERROR (rt, "gradient: %llu rows: a multiple of %d wanted",
                 (unsigned long long) x.shapes[0], TILES);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  PTO2_SCOPE (rt)
  {
    Tensor parts[TILES];

    for (uint64_t i = 0; i < TILES; i++)
      {
        uint64_t from[2] = { i * rows, 0 };

        parts[i] = i == 0 ? g : make_tensor (w.shapes, 1, w.dtype);
        PTOParam params[]
            = { make_input_param (pto2_tensor_view (&x, tile, from)),
                make_input_param (pto2_tensor_view (&y, tile, from)), make_input_param (w),
                i == 0 ? make_output_existing_param (g) : make_output_param (parts[i]) };

        pto2_rt_submit_task (rt, KERNEL_GRADIENT, PTO2_WORKER_VECTOR, params, 4);
      }
    for (uint64_t i = 1; i < TILES; i++)
      {
        PTOParam params[] = { make_input_param (parts[i]), make_inout_param (g) };

        pto2_rt_submit_task (rt, KERNEL_ADD, PTO2_WORKER_VECTOR, params, 2);
      }
  }
  return 0;
}
