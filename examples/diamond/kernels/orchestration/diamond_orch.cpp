// diamond_orch.cpp: which tasks compute F = exp(sqrt(log A) W1 + sqrt(log A) W2)?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
//                    ┌─ MATMUL: c = b W1 ─┐
//   LOG ── SQRT: b ──┤                    ├── ADD ── EXP: F
//                    └─ MATMUL: d = b W2 ─┘
//
// for each tile of rows, which depend on no others. Nothing here says which task waits for which.

#include "pto_orchestration_api.h"

enum
{
  FUNC_LOG,
  FUNC_SQRT,
  FUNC_MATMUL,
  FUNC_ADD,
  FUNC_EXP
};

static void
map (PTO2Runtime *rt, int32_t kernel, const Tensor &x, const Tensor &out)
{
  PTOParam params[] = { make_input_param (x), make_output_param (out) };

  pto2_rt_submit_task (rt, kernel, PTO2_WORKER_VECTOR, params, 2);
}

static void
combine (PTO2Runtime *rt, int32_t kernel, int32_t worker_type, const Tensor &x, const Tensor &y,
         const Tensor &out)
{
  PTOParam params[] = { make_input_param (x), make_input_param (y), make_output_param (out) };

  pto2_rt_submit_task (rt, kernel, worker_type, params, 3);
}

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ 5 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int)
{
  pto2_rt_init_tensor_pool (rt);

  Tensor a = pto2_rt_arg_tensor (rt, 0);
  Tensor w1 = pto2_rt_arg_tensor (rt, 1);
  Tensor w2 = pto2_rt_arg_tensor (rt, 2);
  Tensor f = pto2_rt_arg_tensor (rt, 3);
  uint64_t tile = args[4];
  uint64_t columns = a.shapes[1];

  for (uint64_t row = 0; row < a.shapes[0]; row += tile)
    {
      uint64_t shape[2] = { a.shapes[0] - row < tile ? a.shapes[0] - row : tile, columns };
      uint64_t offset[2] = { row, 0 };

      PTO2_SCOPE (rt)
      {
        Tensor log_a = make_tensor (shape, 2, DataType::FLOAT32);
        Tensor b = make_tensor (shape, 2, DataType::FLOAT32);
        Tensor c = make_tensor (shape, 2, DataType::FLOAT32);
        Tensor d = make_tensor (shape, 2, DataType::FLOAT32);
        Tensor sum = make_tensor (shape, 2, DataType::FLOAT32);

        map (rt, FUNC_LOG, a.view (shape, offset), log_a);
        map (rt, FUNC_SQRT, log_a, b);
        combine (rt, FUNC_MATMUL, PTO2_WORKER_CUBE, b, w1, c);
        combine (rt, FUNC_MATMUL, PTO2_WORKER_CUBE, b, w2, d);
        combine (rt, FUNC_ADD, PTO2_WORKER_VECTOR, c, d, sum);
        map (rt, FUNC_EXP, sum, f.view (shape, offset));
      }
    }
  return 0;
}
