/* feed_forward_orch.c: which tasks compute one chip's share of a feed-forward layer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * out = max (x W, 0) V with this chip's columns of W and its rows of V: a partial result, to be
 * added to the other chips'. A few rows of x make one chain of three tasks; chains are independent.
 * The chip gets four matrices: x, w, v, out.
 */
#include "pto_orchestration_api.h"

enum
{
  KERNEL_GEMM,
  KERNEL_RELU
};

enum
{
  ARG_X,
  ARG_W,
  ARG_V,
  ARG_OUT,
  ARG_COUNT
};

#define ROWS_A_TASK 8

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
  Tensor w = pto2_rt_arg_tensor (rt, ARG_W);
  Tensor v = pto2_rt_arg_tensor (rt, ARG_V);
  Tensor out = pto2_rt_arg_tensor (rt, ARG_OUT);

  (void) args;
  (void) arg_count;
  pto2_rt_init_tensor_pool (rt);

  for (uint64_t first = 0; first < x.shapes[0]; first += ROWS_A_TASK)
    PTO2_SCOPE (rt)
    {
      uint64_t left = x.shapes[0] - first;
      uint64_t rows = left < ROWS_A_TASK ? left : ROWS_A_TASK;
      uint64_t shape[2] = { rows, w.shapes[1] };
      Tensor hidden = make_tensor (shape, 2, x.dtype);
      PTOParam relu[] = { make_inout_param (hidden) };

      submit_gemm (rt, rows_of (&x, first, rows), w, hidden);
      pto2_rt_submit_task (rt, KERNEL_RELU, PTO2_WORKER_VECTOR, relu, 1);
      submit_gemm (rt, hidden, v, rows_of (&out, first, rows));
    }
  return 0;
}
