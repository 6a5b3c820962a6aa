/* test-api-cpp.cpp: does an orchestration in C++17 do what the same one in C does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "api-test.h"

extern "C" const char api_language[] = "cpp.cpp";

namespace
{

constexpr uint64_t square[] = { API_SIDE, API_SIDE };
constexpr uint64_t half[] = { 4, API_SIDE };

Tensor
argument (uint64_t *args, int index)
{
  uint64_t shapes[2] = { API_SIDE, API_SIDE };

  return make_tensor_external (reinterpret_cast<void *> (args[index]), shapes, 2,
                               DataType::FLOAT32);
}

uint64_t
float_bits (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

void
submit_one (PTO2Runtime *rt, uint64_t *args)
{
  Tensor a = argument (args, API_ARG_A);
  Tensor b = argument (args, API_ARG_B);
  Tensor out = argument (args, API_ARG_OUT);
  PTOParam add[] = { make_input_param (a), make_input_param (b), make_inout_param (out) };

  pto2_rt_submit_task (rt, API_ADD, PTO2_WORKER_VECTOR, add, 3);
}

/* In C++ a scope is no loop: break and continue are those of the loop around it. */
void
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

} // namespace

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *, int)
{
  return PTO2OrchestrationConfig{ API_N_ARGS };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  if (arg_count != API_N_ARGS)
    return -1;
  pto2_rt_init_tensor_pool (rt);
  Tensor a = argument (args, API_ARG_A);
  Tensor b = argument (args, API_ARG_B);
  Tensor out = argument (args, API_ARG_OUT);
  LOG_INFO (rt, "%d rounds in %s", static_cast<int> (args[API_ARG_N]), "scopes");
  for (uint64_t i = 0; i < args[API_ARG_N]; i++)
    {
      PTO2_SCOPE (rt)
      {
        Tensor p = make_tensor (square, 2, DataType::FLOAT32);
        PTOParam matmul[] = { make_input_param (a.transpose (0, 1)), make_input_param (b),
                              make_output_param (p) };

        pto2_rt_submit_task (rt, API_MATMUL, PTO2_WORKER_CUBE, matmul, 3);

        uint64_t flat_shape[] = { p.numel () };
        uint64_t flat_half[] = { p.numel () / 2 };
        uint64_t rows_2[] = { 2, 0 };
        uint64_t rows_0[] = { 0, 0 };
        uint64_t rows_4[] = { 4, 0 };
        Tensor lower = p.reshape (flat_shape, 1).view (flat_half, flat_half).reshape (half, 2);
        Tensor top = out.view (half, rows_0);
        Tensor bottom = out.view (half, rows_4);
        PTOParam add[] = { make_input_param (lower), make_input_param (b.view (half, rows_2)),
                           make_output_param (top) };

        pto2_rt_submit_task (rt, API_ADD, PTO2_WORKER_VECTOR, add, 3);
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

extern "C" int
api_leave_scopes (PTO2Runtime *rt, uint64_t *args, int how)
{
  /* Three rounds, as the C form has it: there break leaves its scope only. */
  if (how == 0)
    for (int i = 0; i < 2; i++)
      leave (rt, args, how);
  leave (rt, args, how);
  submit_one (rt, args);
  return 0;
}

extern "C" int
api_every_type (PTO2Runtime *rt, uint64_t *, int)
{
  static const DataType types[]
      = { DataType::FLOAT32, DataType::FLOAT16,       DataType::BFLOAT16,    DataType::INT8,
          DataType::INT16,   DataType::INT32,         DataType::INT64,       DataType::UINT8,
          DataType::UINT16,  DataType::UINT32,        DataType::UINT64,      DataType::BOOL,
          DataType::FLOAT64, DataType::FLOAT8_E4M3FN, DataType::FLOAT8_E5M2, DataType::INT4 };
  static const uint64_t shape[] = { 1, 2, 1, 1, 3 };
  PTOParam params[1 + PTO_DTYPE_COUNT];

  pto2_rt_init_tensor_pool (rt);
  params[0] = make_scalar_param (PTO_DTYPE_COUNT);
  for (int i = 0; i < PTO_DTYPE_COUNT; i++)
    params[1 + i] = make_output_param (make_tensor (shape, 5, types[i]));
  pto2_rt_submit_task (rt, API_TYPES, PTO2_WORKER_VECTOR, params, 1 + PTO_DTYPE_COUNT);
  return 0;
}

extern "C" int
api_commute (PTO2Runtime *rt, uint64_t *args, int n)
{
  const uint64_t side[] = { API_SIDE };

  for (int i = 0; i < n; i++)
    {
      PTOParam params[] = { make_commutative_param (argument (args, API_ARG_OUT)),
                            make_input_param (argument (args, API_ARG_A)),
                            make_commutative_param (argument (args, API_ARG_OUT)),
                            make_scratch_param (side, 1, DataType::FLOAT32) };

      if (pto2_rt_submit_task_with_priority (rt, API_ADD, PTO2_WORKER_VECTOR, params, 4, i % 4)
          == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

extern "C" int
api_reduce (PTO2Runtime *rt, uint64_t *args, int n)
{
  const float nothing = 0;

  for (int i = 0; i < n; i++)
    {
      PTOParam params[]
          = { i < n / 2
                  ? make_reduction_param (argument (args, API_ARG_OUT), API_TAKE_IN, &nothing)
                  : make_reduction_param (argument (args, API_ARG_OUT), PTO2_KERNEL_SUM, nullptr),
              make_input_param (argument (args, API_ARG_A)) };

      if (pto2_rt_submit_task (rt, API_TAKE_IN, PTO2_WORKER_VECTOR, params, 2) == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

extern "C" uint32_t
api_bad_tensor (uint64_t *args, int which)
{
  static const uint64_t five[] = { 5, 5 }, at_4[] = { 4, 4 }, seven[] = { 7 }, zero[] = { 0, 8 },
                        origin[] = { 0, 0 };
  static const uint64_t column[] = { 8, 1 }, all_64[] = { 64 }, all_8[] = { 8 };
  Tensor a = argument (args, API_ARG_A);

  switch (which)
    {
    case 0:
      return a.view (five, at_4).status;
    case 1:
      return a.reshape (seven, 1).status;
    case 2:
      return a.view (column, origin).reshape (all_8, 1).status;
    case 3:
      return a.transpose (0, 2).status;
    case 4:
      return make_tensor_external (nullptr, zero, 2, DataType::FLOAT32).status;
    case 5:
      return a.view (zero, origin).status;
    default:
      return a.is_contiguous () ? a.reshape (all_64, 1).status : UINT32_MAX;
    }
}

extern "C" uint64_t
api_describe (uint64_t *args, char text[], size_t size)
{
  static const uint64_t rows[] = { 2, API_SIDE }, at[] = { 3, 0 };
  Tensor view = argument (args, API_ARG_A).view (rows, at);
  std::string said = view.dump ();

  snprintf (text, size, "%s", said.c_str ());
  return view.get_element_size ();
}

extern "C" int
api_hold (PTO2Runtime *rt, uint64_t *args, int)
{
  uint64_t *line = reinterpret_cast<uint64_t *> (args[0]);
  uint64_t matrices[] = { args[API_ARG_B], args[API_ARG_B], args[API_ARG_OUT] };

  *line = __LINE__ + 1;
  PTO2_SCOPE (rt)
  {
    for (int i = 0; i < 40; i++)
      submit_one (rt, matrices);
  }
  return 0;
}
