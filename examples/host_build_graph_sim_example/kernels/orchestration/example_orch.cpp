// example_orch.cpp: which four tasks compute f = (a + b + 1)(a + b + 2)?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
//   t0: c = a + b   t1: d = c + 1   t2: e = c + 2   t3: f = d * e

#include "pto_orchestration_api.h"

#define FUNC_ADD 0
#define FUNC_ADD_SCALAR 1
#define FUNC_MUL 2

static void
submit (PTO2Runtime *rt, int32_t kernel, PTOParam x, PTOParam y, const Tensor &out)
{
  PTOParam params[] = { x, y, make_output_param (out) };

  pto2_rt_submit_task (rt, kernel, PTO2_WORKER_VECTOR, params, 3);
}

static void
add_scalar (PTO2Runtime *rt, const Tensor &x, float value, const Tensor &out)
{
  PTOParam params[] = { make_input_param (x), make_output_param (out), make_float_param (value) };

  pto2_rt_submit_task (rt, FUNC_ADD_SCALAR, PTO2_WORKER_VECTOR, params, 3);
}

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ 4 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int)
{
  uint64_t shapes[1] = { args[3] };
  Tensor a = make_tensor_external ((void *) args[0], shapes, 1, DataType::FLOAT32);
  Tensor b = make_tensor_external ((void *) args[1], shapes, 1, DataType::FLOAT32);
  Tensor f = make_tensor_external ((void *) args[2], shapes, 1, DataType::FLOAT32);
  Tensor c = make_tensor (shapes, 1, DataType::FLOAT32);
  Tensor d = make_tensor (shapes, 1, DataType::FLOAT32);
  Tensor e = make_tensor (shapes, 1, DataType::FLOAT32);

  submit (rt, FUNC_ADD, make_input_param (a), make_input_param (b), c);
  add_scalar (rt, c, 1.0f, d);
  add_scalar (rt, c, 2.0f, e);
  submit (rt, FUNC_MUL, make_input_param (d), make_input_param (e), f);
  return 0;
}
