/* vector_orch.c: which tasks compute f = (a + b + 1)(a + b + 2) + (a + b)?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *   t0: c = a + b   t1: d = c + 1   t2: e = c + 2   t3: g = d * e   t4: f = g + c
 *
 * No dependency is written down: the runtime finds t0-t1, t0-t2, t0-t4, t1-t3, t2-t3 and t3-t4 from
 * the tensors. The four-task form leaves t4 out and lets t3 write f.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_ADD,
  KERNEL_ADD_SCALAR,
  KERNEL_MUL
};

enum
{
  ARG_A,
  ARG_B,
  ARG_F,
  ARG_ELEMENTS,
  ARG_FORM, /* 5 or 4: how many tasks */
  ARG_COUNT
};

static void
submit_binary (PTO2Runtime *rt, int32_t kernel, Tensor x, Tensor y, Tensor out)
{
  PTOParam params[] = { make_input_param (x), make_input_param (y), make_output_param (out) };

  pto2_rt_submit_task (rt, kernel, PTO2_WORKER_VECTOR, params, 3);
}

static void
submit_add_scalar (PTO2Runtime *rt, Tensor x, float value, Tensor out)
{
  uint32_t bits;
  PTOParam params[3];

  memcpy (&bits, &value, sizeof bits);
  params[0] = make_input_param (x);
  params[1] = make_output_param (out);
  params[2] = make_scalar_param (bits);
  pto2_rt_submit_task (rt, KERNEL_ADD_SCALAR, PTO2_WORKER_VECTOR, params, 3);
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
  uint64_t shape[1] = { args[ARG_ELEMENTS] };
  Tensor a = make_tensor_external ((void *) (uintptr_t) args[ARG_A], shape, 1, PTO_DTYPE_FLOAT32);
  Tensor b = make_tensor_external ((void *) (uintptr_t) args[ARG_B], shape, 1, PTO_DTYPE_FLOAT32);
  Tensor f = make_tensor_external ((void *) (uintptr_t) args[ARG_F], shape, 1, PTO_DTYPE_FLOAT32);

  (void) arg_count;
  if (args[ARG_FORM] != 4 && args[ARG_FORM] != 5)
    {
      LOG_ERROR (rt, "form %llu: 4 or 5 wanted", (unsigned long long) args[ARG_FORM]);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  PTO2_SCOPE (rt)
  {
    Tensor c = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
    Tensor d = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
    Tensor e = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);

    submit_binary (rt, KERNEL_ADD, a, b, c);
    submit_add_scalar (rt, c, 1.0f, d);
    submit_add_scalar (rt, c, 2.0f, e);
    if (args[ARG_FORM] == 4)
      {
        submit_binary (rt, KERNEL_MUL, d, e, f);
      }
    else
      {
        Tensor g = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);

        submit_binary (rt, KERNEL_MUL, d, e, g);
        submit_binary (rt, KERNEL_ADD, g, c, f);
      }
  }
  return 0;
}
