/* alternating_orch.c: which tasks multiply and add batches of tiles in turn?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A matmul on a cube core and an add on a vector core, in turn; no task waits for another. Inputs
 * are shared, which orders nothing. The first results are the caller's, who compares them; the
 * others are in memory of the runtime.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_MATMUL,
  KERNEL_ADD
};

enum
{
  ARG_A,
  ARG_B,
  ARG_PRODUCTS,
  ARG_SUMS,
  ARG_BATCHES,
  ARG_INPUTS,
  ARG_OUTPUTS,
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

static Tensor
result_of (uint64_t address, const uint64_t *shape, uint64_t number, uint64_t n_outputs)
{
  return number < n_outputs ? batch_of (address, shape, number)
                            : make_tensor (shape, 3, PTO_DTYPE_FLOAT32);
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
  PTO2_SCOPE (rt)
  {
    for (uint64_t i = 0; i < args[ARG_BATCHES]; i++)
      {
        Tensor a = batch_of (args[ARG_A], shape, i % args[ARG_INPUTS]);
        Tensor b = batch_of (args[ARG_B], shape, i % args[ARG_INPUTS]);
        Tensor product = result_of (args[ARG_PRODUCTS], shape, i, args[ARG_OUTPUTS]);
        Tensor sum = result_of (args[ARG_SUMS], shape, i, args[ARG_OUTPUTS]);
        PTOParam matmul[] = { make_input_param (a), make_input_param (b),
                              make_output_param (product), make_scalar_param (compute) };
        PTOParam add[] = { make_input_param (a), make_input_param (b), make_output_param (sum),
                           make_scalar_param (compute) };

        pto2_rt_submit_task (rt, KERNEL_MATMUL, PTO2_WORKER_CUBE, matmul, 4);
        pto2_rt_submit_task (rt, KERNEL_ADD, PTO2_WORKER_VECTOR, add, 4);
      }
  }
  return 0;
}
