/* cholesky_orch.c: which tasks factorize a symmetric matrix tile by tile, and which of them first?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Step k factorizes the tile on the diagonal, solves for the tiles below it, and takes what they
 * contribute from all tiles to the right of them. The chain from one diagonal tile to the next one
 * (potrf, the first trsm, its syrk, potrf) is the critical path. In the order of their submission
 * it waits behind all updates of the step before, of which there are many more than cores. A
 * priority says how soon somebody needs what a task gives: the chain itself, then what the next
 * step begins with, then what other tiles of the step wait for, then the rest.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_POTRF,
  KERNEL_TRSM,
  KERNEL_SYRK,
  KERNEL_GEMM
};

enum
{
  ARG_A,
  ARG_TILE,
  ARG_PRIORITIES,
  ARG_COUNT
};

enum
{
  REST,
  SOME_TILE,
  NEXT_STEP,
  CHAIN
};

static Tensor
tile_of (const Tensor *a, uint64_t i, uint64_t j, uint64_t tile)
{
  uint64_t shape[2] = { tile, tile };
  uint64_t offset[2] = { i * tile, j * tile };

  return pto2_tensor_view (a, shape, offset);
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
  Tensor a = pto2_rt_arg_tensor (rt, ARG_A);
  uint64_t tile = args[ARG_TILE];
  uint64_t n = a.shapes[0] / tile;
  int used = args[ARG_PRIORITIES] != 0;

  (void) arg_count;
  for (uint64_t k = 0; k < n; k++)
    {
      PTOParam potrf[] = { make_inout_param (tile_of (&a, k, k, tile)) };

      pto2_rt_submit_task_with_priority (rt, KERNEL_POTRF, PTO2_WORKER_VECTOR, potrf, 1,
                                         used ? CHAIN : 0);
      for (uint64_t i = k + 1; i < n; i++)
        {
          PTOParam trsm[] = { make_input_param (tile_of (&a, k, k, tile)),
                              make_inout_param (tile_of (&a, i, k, tile)) };

          pto2_rt_submit_task_with_priority (rt, KERNEL_TRSM, PTO2_WORKER_VECTOR, trsm, 2,
                                             used ? (i == k + 1 ? CHAIN : SOME_TILE) : 0);
        }
      for (uint64_t i = k + 1; i < n; i++)
        {
          PTOParam syrk[] = { make_input_param (tile_of (&a, i, k, tile)),
                              make_inout_param (tile_of (&a, i, i, tile)) };

          for (uint64_t j = k + 1; j < i; j++)
            {
              PTOParam gemm[] = { make_input_param (tile_of (&a, i, k, tile)),
                                  make_input_param (tile_of (&a, j, k, tile)),
                                  make_inout_param (tile_of (&a, i, j, tile)) };

              pto2_rt_submit_task_with_priority (rt, KERNEL_GEMM, PTO2_WORKER_CUBE, gemm, 3,
                                                 used ? (j == k + 1 ? NEXT_STEP : REST) : 0);
            }
          pto2_rt_submit_task_with_priority (rt, KERNEL_SYRK, PTO2_WORKER_CUBE, syrk, 2,
                                             used ? (i == k + 1 ? CHAIN : REST) : 0);
        }
    }
  return 0;
}
