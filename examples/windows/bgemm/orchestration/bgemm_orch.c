/* bgemm_orch.c: which tasks add up products of batches of tiles?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For each batch of tiles of C, depth times a gemm on a cube core, which writes products that the
 * runtime allocates, and an add on a vector core, which updates C in place: a chain
 * gemm, add, gemm, add, ... of which gemms wait for nobody. The k-th products of the i-th batch are
 * of the inputs (i depth + k) modulo the number of inputs: they are shared, which orders nothing.
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
  ARG_BATCHES,
  ARG_DEPTH,
  ARG_INPUTS,
  ARG_TILES,
  ARG_SIZE,
  ARG_COMPUTE,
  ARG_COUNT
};

/* The number-th batch of tiles. */
static Tensor
batch_of (uint64_t address, const uint64_t *shape, uint64_t number)
{
  uint64_t bytes = shape[0] * shape[1] * shape[2] * sizeof (float);

  return make_tensor_external ((void *) (uintptr_t) (address + number * bytes), shape, 3,
                               PTO_DTYPE_FLOAT32);
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
  uint64_t shape[3] = { args[ARG_TILES], args[ARG_SIZE], args[ARG_SIZE] };
  uint64_t compute = args[ARG_COMPUTE];

  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);
  for (uint64_t i = 0; i < args[ARG_BATCHES]; i++)
    PTO2_SCOPE (rt)
    {
      Tensor c = batch_of (args[ARG_C], shape, i);

      for (uint64_t k = 0; k < args[ARG_DEPTH]; k++)
        {
          uint64_t input = (i * args[ARG_DEPTH] + k) % args[ARG_INPUTS];
          Tensor p = make_tensor (shape, 3, PTO_DTYPE_FLOAT32);
          PTOParam gemm[] = { make_input_param (batch_of (args[ARG_A], shape, input)),
                              make_input_param (batch_of (args[ARG_B], shape, input)),
                              make_output_param (p), make_scalar_param (compute) };
          PTOParam add[]
              = { make_inout_param (c), make_input_param (p), make_scalar_param (compute) };

          pto2_rt_submit_task (rt, KERNEL_GEMM, PTO2_WORKER_CUBE, gemm, 4);
          pto2_rt_submit_task (rt, KERNEL_ADD, PTO2_WORKER_VECTOR, add, 3);
        }
    }
  return 0;
}
