/* head_orch.c: which tasks compute one head of attention, and its part of the result?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * out = attention (x Wq, x Wk, x Wv) Wo with one head's weights: a partial result, to be added to
 * the other heads'. Some rows are one chain of two tasks; chains are independent. The chip gets six
 * matrices: x, wq, wk, wv, wo, out.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_GEMM,
  KERNEL_ATTEND
};

enum
{
  ARG_X,
  ARG_Q,
  ARG_K,
  ARG_V,
  ARG_O,
  ARG_OUT,
  ARG_COUNT
};

#define ROWS_A_TASK 8
#define KEYS_MAX 256 /* of attend.c */

static Tensor
rows_of (const Tensor *tensor, uint64_t first, uint64_t rows)
{
  uint64_t shape[2] = { rows, tensor->shapes[1] };
  uint64_t offset[2] = { first, 0 };

  return pto2_tensor_view (tensor, shape, offset);
}

static void
submit_gemm (PTO2Runtime *rt, Tensor a, Tensor b, Tensor p)
{
  PTOParam params[] = { make_input_param (a), make_input_param (b), make_output_param (p) };

  pto2_rt_submit_task (rt, KERNEL_GEMM, PTO2_WORKER_CUBE, params, 3);
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
  Tensor x = pto2_rt_arg_tensor (rt, ARG_X);
  Tensor wo = pto2_rt_arg_tensor (rt, ARG_O);
  Tensor out = pto2_rt_arg_tensor (rt, ARG_OUT);
  Tensor made[3]; /* queries, keys, values */

  (void) args;
  (void) arg_count;
  if (x.shapes[0] > KEYS_MAX)
    {
      LOG_ERROR (rt, "head: %llu rows: no more than %d wanted", (unsigned long long) x.shapes[0],
                 KEYS_MAX);
      return -1;
    }
  pto2_rt_init_tensor_pool (rt);

  PTO2_SCOPE (rt)
  {
    for (int i = 0; i < 3; i++)
      {
        Tensor w = pto2_rt_arg_tensor (rt, ARG_Q + i);
        uint64_t shape[2] = { x.shapes[0], w.shapes[1] };

        made[i] = make_tensor (shape, 2, x.dtype);
        submit_gemm (rt, x, w, made[i]);
      }
    for (uint64_t first = 0; first < x.shapes[0]; first += ROWS_A_TASK)
      {
        uint64_t left = x.shapes[0] - first;
        uint64_t rows = left < ROWS_A_TASK ? left : ROWS_A_TASK;
        uint64_t shape[2] = { rows, wo.shapes[0] };
        Tensor o = make_tensor (shape, 2, x.dtype);
        PTOParam params[]
            = { make_input_param (rows_of (&made[0], first, rows)), make_input_param (made[1]),
                make_input_param (made[2]), make_output_param (o) };

        pto2_rt_submit_task (rt, KERNEL_ATTEND, PTO2_WORKER_VECTOR, params, 4);
        submit_gemm (rt, o, wo, rows_of (&out, first, rows));
      }
  }
  return 0;
}
