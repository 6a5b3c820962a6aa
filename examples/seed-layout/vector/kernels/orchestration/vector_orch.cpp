// vector_orch.cpp: which tasks compute f = (a + b + 1)(a + b + 2) + (a + b)?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
//   t0: c = a + b   t1: d = c + 1   t2: e = c + 2   t3: g = d * e   t4: f = g + c
//
// With four tasks t3 writes f and t4 is left out.

#include "pto_orchestration_api.h"

#define FUNC_ADD 0
#define FUNC_ADD_SCALAR 1
#define FUNC_MUL 2

static uint64_t
float_to_u64 (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static void
add_scalar (PTO2Runtime *rt, const Tensor &x, float value, const Tensor &out)
{
  PTOParam params[] = {
    make_input_param (x),
    make_output_param (out),
    make_scalar_param (float_to_u64 (value)),
  };

  pto2_rt_submit_task (rt, FUNC_ADD_SCALAR, PTO2_WORKER_VECTOR, params, 3);
}

static void
binary (PTO2Runtime *rt, int32_t kernel, const Tensor &x, const Tensor &y, const Tensor &out)
{
  PTOParam params[] = { make_input_param (x), make_input_param (y), make_output_param (out) };

  pto2_rt_submit_task (rt, kernel, PTO2_WORKER_VECTOR, params, 3);
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

  uint64_t shapes[1] = { args[3] };
  bool five = args[4] == 5;
  Tensor a = make_tensor_external ((void *) args[0], shapes, 1, DataType::FLOAT32);
  Tensor b = make_tensor_external ((void *) args[1], shapes, 1, DataType::FLOAT32);
  Tensor f = make_tensor_external ((void *) args[2], shapes, 1, DataType::FLOAT32);

  LOG_INFO (rt, "vector: %d tasks on %llu elements", five ? 5 : 4, (unsigned long long) shapes[0]);
  PTO2_SCOPE (rt)
  {
    Tensor c = make_tensor (shapes, 1, DataType::FLOAT32);
    Tensor d = make_tensor (shapes, 1, DataType::FLOAT32);
    Tensor e = make_tensor (shapes, 1, DataType::FLOAT32);

    binary (rt, FUNC_ADD, a, b, c);
    add_scalar (rt, c, 1.0f, d);
    add_scalar (rt, c, 2.0f, e);
    if (five)
      {
        Tensor g = make_tensor (shapes, 1, DataType::FLOAT32);

        binary (rt, FUNC_MUL, d, e, g);
        binary (rt, FUNC_ADD, g, c, f);
      }
    else
      {
        binary (rt, FUNC_MUL, d, e, f);
      }
  }
  return 0;
}
