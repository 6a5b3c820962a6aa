/* attention_orch.c: which tasks attend to all blocks of a request at once?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Four tasks a request, unrolled over its blocks: QK on a cube core, SF on a vector core, PV on a
 * cube core, UP on a vector core; each waits for the one before it, and UP for SF, too. No request
 * waits for another. The requests have the same few caches, as requests with one beginning do.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_QK,
  KERNEL_SF,
  KERNEL_PV,
  KERNEL_UP
};

enum
{
  ARG_QUERY,
  ARG_KEYS,
  ARG_VALUES,
  ARG_OUT,
  ARG_REQUESTS,
  ARG_CACHES,
  ARG_HEADS,
  ARG_TOKENS,
  ARG_DIM,
  ARG_SCALE,
  ARG_COMPUTE,
  ARG_COUNT
};

/* The number-th matrix behind an address. */
static Tensor
matrix_of (uint64_t address, const uint64_t *shape, DataType dtype, uint64_t number)
{
  uint64_t bytes = shape[0] * shape[1] * pto_dtype_size ((uint32_t) dtype);

  return make_tensor_external ((void *) (uintptr_t) (address + number * bytes), shape, 2, dtype);
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
  uint64_t rows[1] = { args[ARG_HEADS] };
  uint64_t wide[2] = { args[ARG_HEADS], args[ARG_DIM] };
  uint64_t cache[2] = { args[ARG_TOKENS], args[ARG_DIM] };
  uint64_t scores[2] = { args[ARG_HEADS], args[ARG_TOKENS] };
  uint64_t compute = args[ARG_COMPUTE];

  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);
  for (uint64_t r = 0; r < args[ARG_REQUESTS]; r++)
    PTO2_SCOPE (rt)
    {
      uint64_t own = r % args[ARG_CACHES];
      Tensor q = matrix_of (args[ARG_QUERY], wide, PTO_DTYPE_BFLOAT16, own);
      Tensor k = matrix_of (args[ARG_KEYS], cache, PTO_DTYPE_BFLOAT16, own);
      Tensor v = matrix_of (args[ARG_VALUES], cache, PTO_DTYPE_BFLOAT16, own);
      Tensor s = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor p = make_tensor (scores, 2, PTO_DTYPE_FLOAT32);
      Tensor m = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor l = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor o = make_tensor (wide, 2, PTO_DTYPE_FLOAT32);
      Tensor mi = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor li = make_tensor (rows, 1, PTO_DTYPE_FLOAT32);
      Tensor oi = make_tensor (wide, 2, PTO_DTYPE_FLOAT32);
      PTOParam qk[] = { make_input_param (q), make_input_param (k), make_output_param (s),
                        make_scalar_param (compute) };
      PTOParam sf[] = { make_input_param (s),
                        make_output_param (p),
                        make_output_param (m),
                        make_output_param (l),
                        make_scalar_param (args[ARG_SCALE]),
                        make_scalar_param (compute) };
      PTOParam pv[] = { make_input_param (p), make_input_param (v), make_output_param (o),
                        make_scalar_param (compute) };
      PTOParam up[] = { make_input_param (m),
                        make_input_param (l),
                        make_input_param (o),
                        make_output_param (mi),
                        make_output_param (li),
                        make_output_param (oi),
                        make_output_param (matrix_of (args[ARG_OUT], wide, PTO_DTYPE_FLOAT32, r)),
                        make_scalar_param (compute) };

      pto2_rt_submit_task (rt, KERNEL_QK, PTO2_WORKER_CUBE, qk, 4);
      pto2_rt_submit_task (rt, KERNEL_SF, PTO2_WORKER_VECTOR, sf, 6);
      pto2_rt_submit_task (rt, KERNEL_PV, PTO2_WORKER_CUBE, pv, 4);
      pto2_rt_submit_task (rt, KERNEL_UP, PTO2_WORKER_VECTOR, up, 8);
    }
  return 0;
}
