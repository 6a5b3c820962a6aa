/* test-api-c.c: does an orchestration in C do what the same one in C++ does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "api-test.h"

const char api_language[] = "c.c";

static const uint64_t square[] = { API_SIDE, API_SIDE };
static const uint64_t half[] = { 4, API_SIDE };

static Tensor
argument (uint64_t *args, int index)
{
  return make_tensor_external ((void *) (uintptr_t) args[index], square, 2, PTO_DTYPE_FLOAT32);
}

static uint64_t
float_bits (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  (void) args;
  (void) arg_count;
  return (PTO2OrchestrationConfig){ .expected_arg_count = API_N_ARGS };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor a, b, out;

  if (arg_count != API_N_ARGS)
    return -1;
  pto2_rt_init_tensor_pool (rt);
  a = argument (args, API_ARG_A);
  b = argument (args, API_ARG_B);
  out = argument (args, API_ARG_OUT);
  LOG_INFO (rt, "%d rounds in %s", (int) args[API_ARG_N], "scopes");
  for (uint64_t i = 0; i < args[API_ARG_N]; i++)
    {
      PTO2_SCOPE (rt)
      {
        Tensor p = make_tensor (square, 2, PTO_DTYPE_FLOAT32);
        Tensor turned = pto2_tensor_transpose (&a, 0, 1);
        PTOParam matmul[]
            = { make_input_param (turned), make_input_param (b), make_output_param (p) };
        uint64_t flat_shape[] = { API_SIDE * API_SIDE };
        uint64_t flat_half[] = { API_SIDE * API_SIDE / 2 };
        uint64_t flat_offset[] = { API_SIDE * API_SIDE / 2 };
        uint64_t rows_2[] = { 2, 0 };
        uint64_t rows_0[] = { 0, 0 };
        uint64_t rows_4[] = { 4, 0 };
        Tensor flat, second, lower, middle, top, bottom;

        pto2_rt_submit_task (rt, API_MATMUL, PTO2_WORKER_CUBE, matmul, 3);
        flat = pto2_tensor_reshape (&p, flat_shape, 1);
        second = pto2_tensor_view (&flat, flat_half, flat_offset);
        lower = pto2_tensor_reshape (&second, half, 2);
        middle = pto2_tensor_view (&b, half, rows_2);
        top = pto2_tensor_view (&out, half, rows_0);
        bottom = pto2_tensor_view (&out, half, rows_4);
        {
          PTOParam add[]
              = { make_input_param (lower), make_input_param (middle), make_output_param (top) };

          pto2_rt_submit_task (rt, API_ADD, PTO2_WORKER_VECTOR, add, 3);
        }
        PTO2_SCOPE (rt)
        {
          PTOParam scale[] = { make_input_param (top), make_output_existing_param (bottom),
                               make_scalar_param (float_bits (0.5f)) };

          pto2_rt_submit_task (rt, API_SCALE, PTO2_WORKER_VECTOR, scale, 3);
        }
      }
    }
  return 0;
}

static void
submit_one (PTO2Runtime *rt, uint64_t *args)
{
  PTOParam add[] = { make_input_param (argument (args, API_ARG_A)),
                     make_input_param (argument (args, API_ARG_B)),
                     make_inout_param (argument (args, API_ARG_OUT)) };

  pto2_rt_submit_task (rt, API_ADD, PTO2_WORKER_VECTOR, add, 3);
}

static void
leave (PTO2Runtime *rt, uint64_t *args, int how)
{
  for (int i = 0; i < 3; i++)
    {
      PTO2_SCOPE (rt)
      {
        PTO2_SCOPE (rt)
        {
          submit_one (rt, args);
          if (how == 0)
            break;
          if (how == 1)
            continue;
          if (how == 2)
            goto out;
          return;
        }
      }
    }
out:
  return;
}

int
api_leave_scopes (PTO2Runtime *rt, uint64_t *args, int how)
{
  leave (rt, args, how);
  submit_one (rt, args);
  return 0;
}

int
api_every_type (PTO2Runtime *rt, uint64_t *args, int unused)
{
  static const DataType types[]
      = { PTO_DTYPE_FLOAT32, PTO_DTYPE_FLOAT16,       PTO_DTYPE_BFLOAT16,    PTO_DTYPE_INT8,
          PTO_DTYPE_INT16,   PTO_DTYPE_INT32,         PTO_DTYPE_INT64,       PTO_DTYPE_UINT8,
          PTO_DTYPE_UINT16,  PTO_DTYPE_UINT32,        PTO_DTYPE_UINT64,      PTO_DTYPE_BOOL,
          PTO_DTYPE_FLOAT64, PTO_DTYPE_FLOAT8_E4M3FN, PTO_DTYPE_FLOAT8_E5M2, PTO_DTYPE_INT4 };
  static const uint64_t shape[] = { 1, 2, 1, 1, 3 };
  PTOParam params[1 + PTO_DTYPE_COUNT];

  (void) args;
  (void) unused;
  pto2_rt_init_tensor_pool (rt);
  params[0] = make_scalar_param (PTO_DTYPE_COUNT);
  for (int i = 0; i < PTO_DTYPE_COUNT; i++)
    params[1 + i] = make_output_param (make_tensor (shape, 5, types[i]));
  pto2_rt_submit_task (rt, API_TYPES, PTO2_WORKER_VECTOR, params, 1 + PTO_DTYPE_COUNT);
  return 0;
}

int
api_commute (PTO2Runtime *rt, uint64_t *args, int n)
{
  const uint64_t side[] = { API_SIDE };

  for (int i = 0; i < n; i++)
    {
      PTOParam params[] = { make_commutative_param (argument (args, API_ARG_OUT)),
                            make_input_param (argument (args, API_ARG_A)),
                            make_commutative_param (argument (args, API_ARG_OUT)),
                            make_scratch_param (side, 1, PTO_DTYPE_FLOAT32) };

      if (pto2_rt_submit_task_with_priority (rt, API_ADD, PTO2_WORKER_VECTOR, params, 4, i % 4)
          == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

int
api_reduce (PTO2Runtime *rt, uint64_t *args, int n)
{
  const float nothing = 0;

  for (int i = 0; i < n; i++)
    {
      PTOParam params[]
          = { i < n / 2
                  ? make_reduction_param (argument (args, API_ARG_OUT), API_TAKE_IN, &nothing)
                  : make_reduction_param (argument (args, API_ARG_OUT), PTO2_KERNEL_SUM, NULL),
              make_input_param (argument (args, API_ARG_A)) };

      if (pto2_rt_submit_task (rt, API_TAKE_IN, PTO2_WORKER_VECTOR, params, 2) == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

uint32_t
api_bad_tensor (uint64_t *args, int which)
{
  static const uint64_t five[] = { 5, 5 }, at_4[] = { 4, 4 }, seven[] = { 7 }, zero[] = { 0, 8 },
                        origin[] = { 0, 0 };
  static const uint64_t column[] = { 8, 1 }, all_64[] = { 64 }, all_8[] = { 8 };
  Tensor a = argument (args, API_ARG_A);
  Tensor b = pto2_tensor_view (&a, column, origin);

  switch (which)
    {
    case 0:
      return pto2_tensor_view (&a, five, at_4).status;
    case 1:
      return pto2_tensor_reshape (&a, seven, 1).status;
    case 2:
      return pto2_tensor_reshape (&b, all_8, 1).status;
    case 3:
      return pto2_tensor_transpose (&a, 0, 2).status;
    case 4:
      return make_tensor_external (NULL, zero, 2, PTO_DTYPE_FLOAT32).status;
    case 5:
      return pto2_tensor_view (&a, zero, origin).status;
    default:
      return pto2_tensor_reshape (&a, all_64, 1).status;
    }
}

uint64_t
api_describe (uint64_t *args, char text[], size_t size)
{
  static const uint64_t rows[] = { 2, API_SIDE }, at[] = { 3, 0 };
  Tensor a = argument (args, API_ARG_A);
  Tensor view = pto2_tensor_view (&a, rows, at);
  size_t length = pto2_tensor_dump (&view, text, size);

  return length == pto2_tensor_dump (&view, NULL, 0) ? pto2_tensor_element_size (&view) : 0;
}

int
api_hold (PTO2Runtime *rt, uint64_t *args, int unused)
{
  uint64_t *line = (uint64_t *) (uintptr_t) args[0];
  uint64_t matrices[] = { args[API_ARG_B], args[API_ARG_B], args[API_ARG_OUT] };

  (void) unused;
  *line = __LINE__ + 1;
  PTO2_SCOPE (rt)
  {
    for (int i = 0; i < 40; i++)
      submit_one (rt, matrices);
  }
  return 0;
}
