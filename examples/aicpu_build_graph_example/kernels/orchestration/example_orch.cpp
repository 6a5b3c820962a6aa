// example_orch.cpp: how are the four tasks of f = (a + b + 1)(a + b + 2) built by hand?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
//   t0: c = a + b   t1: d = c + 1   t2: e = c + 2   t3: f = d * e

#include "pto_build_graph.h"

#define FUNC_ADD 0
#define FUNC_ADD_SCALAR 1
#define FUNC_MUL 2

static PTO2TaskId
add (const AicpuBuildApi &api, int32_t kernel, PTOParam x, PTOParam y, PTOParam z)
{
  PTOParam params[] = { x, y, z };

  return api.add_task (kernel, PTO2_WORKER_VECTOR, params, 3);
}

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ 4 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int)
{
  AicpuBuildApi api (rt);
  uint64_t shapes[1] = { args[3] };
  Tensor a = make_tensor_external ((void *) args[0], shapes, 1, DataType::FLOAT32);
  Tensor b = make_tensor_external ((void *) args[1], shapes, 1, DataType::FLOAT32);
  Tensor f = make_tensor_external ((void *) args[2], shapes, 1, DataType::FLOAT32);
  // One tensor in memory of the device, two that the tasks output.
  void *memory = api.device_malloc (shapes[0] * sizeof (float));
  Tensor c = make_tensor_external (memory, shapes, 1, DataType::FLOAT32);
  Tensor d = make_tensor (shapes, 1, DataType::FLOAT32);
  Tensor e = make_tensor (shapes, 1, DataType::FLOAT32);
  PTO2TaskId t0, t1, t2, t3;

  t0 = add (api, FUNC_ADD, make_input_param (a), make_input_param (b),
            make_output_existing_param (c));
  t1 = add (api, FUNC_ADD_SCALAR, make_input_param (c), make_output_param (d),
            make_float_param (1));
  t2 = add (api, FUNC_ADD_SCALAR, make_input_param (c), make_output_param (e),
            make_float_param (2));
  t3 = add (api, FUNC_MUL, make_input_param (d), make_input_param (e),
            make_output_existing_param (f));
  api.add_successor_conditional (t0, t1);
  api.add_successor_conditional (t0, t2);
  api.add_successor_conditional (t1, t3);
  api.add_successor_conditional (t2, t3);
  for (PTO2TaskId task : { t0, t1, t2, t3 })
    api.publish_task (task);
  return 0;
}
