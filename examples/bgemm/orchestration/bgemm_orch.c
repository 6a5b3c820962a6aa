/* bgemm_orch.c: which tasks compute C += A B tile by tile?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For every tile of C and every k one gemm on a cube core, which writes a tile P that the runtime
 * allocates, and one add on a vector core, which updates the tile of C in place. All gemms are
 * independent; the adds of one tile of C form a chain because each reads and writes (INOUT) the
 * same view. Views of different tiles do not overlap, so different chains never wait for each
 * other.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_GEMM,
  KERNEL_ADD
};

enum
{
  ARG_A,
  ARG_B,
  ARG_C,
  ARG_TILES_M,
  ARG_TILES_N,
  ARG_TILES_K,
  ARG_TILE,
  ARG_COUNT
};

static Tensor
matrix (uint64_t address, uint64_t rows, uint64_t columns)
{
  uint64_t shape[2] = { rows, columns };

  return make_tensor_external ((void *) (uintptr_t) address, shape, 2, PTO_DTYPE_FLOAT32);
}

static Tensor
tile_of (const Tensor *tensor, uint64_t i, uint64_t j, uint64_t tile)
{
  uint64_t shape[2] = { tile, tile };
  uint64_t offset[2] = { i * tile, j * tile };

  return pto2_tensor_view (tensor, shape, offset);
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
  uint64_t tile = args[ARG_TILE];
  uint64_t tile_shape[2] = { tile, tile };
  Tensor a = matrix (args[ARG_A], args[ARG_TILES_M] * tile, args[ARG_TILES_K] * tile);
  Tensor b = matrix (args[ARG_B], args[ARG_TILES_K] * tile, args[ARG_TILES_N] * tile);
  Tensor c = matrix (args[ARG_C], args[ARG_TILES_M] * tile, args[ARG_TILES_N] * tile);

  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);

  for (uint64_t m = 0; m < args[ARG_TILES_M]; m++)
    for (uint64_t n = 0; n < args[ARG_TILES_N]; n++)
      PTO2_SCOPE (rt)
      {
        Tensor c_tile = tile_of (&c, m, n, tile);

        for (uint64_t k = 0; k < args[ARG_TILES_K]; k++)
          {
            Tensor p = make_tensor (tile_shape, 2, PTO_DTYPE_FLOAT32);
            PTOParam gemm[]
                = { make_input_param (tile_of (&a, m, k, tile)),
                    make_input_param (tile_of (&b, k, n, tile)), make_output_param (p) };
            PTOParam add[] = { make_inout_param (c_tile), make_input_param (p) };

            pto2_rt_submit_task (rt, KERNEL_GEMM, PTO2_WORKER_CUBE, gemm, 3);
            pto2_rt_submit_task (rt, KERNEL_ADD, PTO2_WORKER_VECTOR, add, 2);
          }
      }
  return 0;
}
