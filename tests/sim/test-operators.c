/* test-operators.c: do the chip's own operators combine what tasks reduce, in every type?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../sim/builtin-kernels.h"
#include "../../sim/reduction-operators.h"

#include <math.h>
#include <string.h>

#define N 40u     /* elements, in rows of 8, of a matrix with rows of 11 */
#define TASKS 60u /* more than there are cores of a type */

static const int32_t operators[]
    = { PTO2_KERNEL_SUM, PTO2_KERNEL_PROD, PTO2_KERNEL_MIN, PTO2_KERNEL_MAX };
static const DataType types[]
    = { PTO_DTYPE_FLOAT32, PTO_DTYPE_FLOAT16, PTO_DTYPE_BFLOAT16, PTO_DTYPE_FLOAT64,
        PTO_DTYPE_INT8,    PTO_DTYPE_INT16,   PTO_DTYPE_INT32,    PTO_DTYPE_INT64,
        PTO_DTYPE_UINT8,   PTO_DTYPE_UINT16,  PTO_DTYPE_UINT32,   PTO_DTYPE_UINT64 };

/* Whole numbers that every type here has, as elements: what the chip has must be the same. */
static uint64_t
encode (DataType dtype, int64_t value)
{
  float as_float = (float) value;
  double as_double = (double) value;
  uint32_t magnitude = (uint32_t) llabs (value);
  uint32_t exponent = 0;
  uint64_t bits = 0;

  switch (dtype)
    {
    case PTO_DTYPE_FLOAT32:
      memcpy (&bits, &as_float, sizeof as_float);
      return bits;
    case PTO_DTYPE_FLOAT64:
      memcpy (&bits, &as_double, sizeof as_double);
      return bits;
    case PTO_DTYPE_BFLOAT16:
      memcpy (&bits, &as_float, sizeof as_float);
      return bits >> 16;
    case PTO_DTYPE_FLOAT16:
      while (magnitude >> exponent > 1)
        exponent++;
      if (magnitude == 0)
        return 0;
      return (value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10
             | ((magnitude << (10 - exponent)) & 0x3ff);
    default:
      bits = (uint64_t) value;
      return pto_dtype_size (dtype) < 8 ? bits & ((UINT64_C (1) << 8 * pto_dtype_size (dtype)) - 1)
                                        : bits;
    }
}

static bool
is_signed (DataType dtype)
{
  return dtype < PTO_DTYPE_UINT8 || dtype > PTO_DTYPE_UINT64;
}

/* What task t takes into element i: products stay where all types are exact. */
static int64_t
value_of (int32_t operation, DataType dtype, uint32_t t, uint32_t i)
{
  uint32_t x = (t * 7 + i * 3) % 11;

  if (operation == PTO2_KERNEL_PROD)
    return t % 12 == 5 ? 2 : is_signed (dtype) && x % 2 == 0 ? -1 : 1;
  return is_signed (dtype) ? (int64_t) x % 7 - 3 : (int64_t) (x % 7);
}

static int64_t
apply (int32_t operation, int64_t a, int64_t b)
{
  return operation == PTO2_KERNEL_SUM    ? a + b
         : operation == PTO2_KERNEL_PROD ? a * b
         : operation == PTO2_KERNEL_MIN  ? MIN (a, b)
                                         : MAX (a, b);
}

/* args[0]: 5 x 8; args[1]: the operator; args[2]: the task. What it takes in it has as a tensor. */
static void
kernel_apply (int64_t *args)
{
  const TensorData *to = sim_tensor (args, 0);
  uint32_t size = pto_dtype_size (to->dtype);
  int32_t operation = (int32_t) args[1];
  uint64_t values[N];
  TensorData from = *to;

  memset (values, 0, sizeof values);
  for (uint32_t i = 0; i < N; i++)
    {
      uint64_t bits = encode (to->dtype, value_of (operation, to->dtype, (uint32_t) args[2], i));

      memcpy ((char *) values + i * size, &bits, size);
    }
  from.buffer.addr = (uint64_t) (uintptr_t) values;
  from.start_offset = 0;
  from.strides[0] = 8;
  from.strides[1] = 1;
  pto_combine ((enum pto_operator) (PTO2_KERNEL_SUM - operation), to, &from);
}

static const struct pto_kernel kernels[]
    = { { "apply", kernel_apply, PTO_CORE_TYPE_AIV, { .base_ns = 10000 } },
        { "apply_cube", kernel_apply, PTO_CORE_TYPE_AIC, { .base_ns = 10000 } },
        { "never", kernel_apply, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, .never_combines = true } };
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

struct reduce
{
  int32_t operation;
  DataType dtype;
  uint64_t memory[5 * 11];
};

static Tensor
tensor_of (struct reduce *reduce)
{
  const uint64_t whole[2] = { 5, 11 };
  const uint64_t part[2] = { 5, 8 };
  const uint64_t at[2] = { 0, 2 };
  Tensor matrix = make_tensor_external (reduce->memory, whole, 2, reduce->dtype);

  return pto2_tensor_view (&matrix, part, at);
}

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct reduce *reduce = data;
  Tensor total = tensor_of (reduce);
  PTOParam params[3];

  for (uint32_t t = 0; t < TASKS; t++)
    {
      params[0] = make_reduction_param (total, reduce->operation, NULL);
      params[1] = make_signed_param (reduce->operation);
      params[2] = make_scalar_param (t);
      if (pto2_rt_submit_task (rt, t % 3 == 1, t % 3 == 1 ? AIC : AIV, params, 3) == PTO2_TASK_NONE)
        return 1;
    }
  return 0;
}

static void
check (struct pto_chip *chip, struct reduce *reduce)
{
  uint32_t size = pto_dtype_size (reduce->dtype);
  char *memory = (char *) reduce->memory;
  int64_t begin = reduce->operation == PTO2_KERNEL_PROD ? 1 : 2;

  memset (reduce->memory, 0x5a, sizeof reduce->memory);
  for (uint32_t i = 0; i < N; i++)
    {
      uint64_t bits = encode (reduce->dtype, begin);

      memcpy (memory + (i / 8 * 11 + 2 + i % 8) * size, &bits, size);
    }
  sim_run (chip, &program, orchestrate, reduce, NULL);
  for (uint32_t i = 0; i < N; i++)
    {
      int64_t expected = begin;
      uint64_t bits = 0;

      for (uint32_t t = 0; t < TASKS; t++)
        expected = apply (reduce->operation, expected,
                          value_of (reduce->operation, reduce->dtype, t, i));
      memcpy (&bits, memory + (i / 8 * 11 + 2 + i % 8) * size, size);
      g_assert_cmphex (bits, ==, encode (reduce->dtype, expected));
    }
  /* Beside the rows nothing was written. */
  for (uint32_t row = 0; row < 5; row++)
    for (uint32_t column = 0; column < 11; column++)
      if (column < 2 || column >= 10)
        for (uint32_t byte = 0; byte < size; byte++)
          g_assert_cmphex ((uint8_t) memory[(row * 11 + column) * size + byte], ==, 0x5a);
}

static void
test_types (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t o = 0; o < G_N_ELEMENTS (operators); o++)
    for (uint32_t d = 0; d < G_N_ELEMENTS (types); d++)
      {
        struct reduce reduce = { .operation = operators[o], .dtype = types[d] };

        g_test_message ("%s of %s", pto_builtin_name (PTO_KERNEL_SUM - o),
                        pto_dtype_name (types[d]));
        check (chip, &reduce);
      }
  pto_chip_free (chip);
}

/* Copies are few. */
static void
test_few_cores (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2 task-window=128 heap=64K");
  struct reduce reduce = { .operation = PTO2_KERNEL_SUM, .dtype = PTO_DTYPE_INT32 };

  check (chip, &reduce);
  pto_chip_free (chip);
}

/* --- numbers of 16 bits --- */

static uint16_t
combined (enum pto_operator operation, DataType dtype, uint16_t a, uint16_t b)
{
  TensorData to = { .buffer = { (uint64_t) (uintptr_t) &a, 2 },
                    .ndims = 1,
                    .dtype = dtype,
                    .shapes = { 1 },
                    .strides = { 1 } };
  TensorData from = to;

  from.buffer.addr = (uint64_t) (uintptr_t) &b;
  pto_combine (operation, &to, &from);
  return a;
}

/* Every one of them is what it was after a sum with 0, and a product with 1. */
static void
test_every_number (enum pto_backend backend)
{
  static const struct
  {
    DataType dtype;
    uint16_t one, infinity;
  } cases[] = { { PTO_DTYPE_FLOAT16, 0x3c00, 0x7c00 }, { PTO_DTYPE_BFLOAT16, 0x3f80, 0x7f80 } };

  for (uint32_t c = 0; c < G_N_ELEMENTS (cases); c++)
    for (uint32_t bits = 0; bits < 0x10000; bits++)
      {
        uint16_t number = (uint16_t) bits;
        bool is_none = (number & 0x7fff) > cases[c].infinity;
        uint16_t sum = combined (PTO_OPERATOR_SUM, cases[c].dtype, number, 0x8000);
        uint16_t product = combined (PTO_OPERATOR_PROD, cases[c].dtype, number, cases[c].one);
        uint16_t least = combined (PTO_OPERATOR_MIN, cases[c].dtype, number, cases[c].infinity);

        if (is_none)
          {
            g_assert_cmphex (sum & 0x7fff, >, cases[c].infinity);
            g_assert_cmphex (least & 0x7fff, >, cases[c].infinity);
            least = combined (PTO_OPERATOR_MAX, cases[c].dtype, 0, number);
            g_assert_cmphex (least & 0x7fff, >, cases[c].infinity);
            continue;
          }
        g_assert_cmphex (sum, ==, number);
        g_assert_cmphex (product, ==, number);
        g_assert_cmphex (least, ==, number);
      }
}

static void
test_rounding (enum pto_backend backend)
{
  static const struct
  {
    enum pto_operator operation;
    DataType dtype;
    uint16_t a, b, result;
  } cases[] = {
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x6800, 0x3c00, 0x6800 }, /* 2048 + 1: even */
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x6800, 0x4200, 0x6802 }, /* + 3: even */
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x7bff, 0x4b80, 0x7bff }, /* 65504 + 15 */
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x7bff, 0x4c00, 0x7c00 }, /* + 16: too large */
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x7bff, 0x7bff, 0x7c00 },
    { PTO_OPERATOR_PROD, PTO_DTYPE_FLOAT16, 0x0001, 0x3800, 0x0000 }, /* half of the least */
    { PTO_OPERATOR_PROD, PTO_DTYPE_FLOAT16, 0x8003, 0x3800, 0x8002 },
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x03ff, 0x0001, 0x0400 },
    { PTO_OPERATOR_SUM, PTO_DTYPE_FLOAT16, 0x7c00, 0xfc00, 0x7e00 },  /* no number */
    { PTO_OPERATOR_SUM, PTO_DTYPE_BFLOAT16, 0x4380, 0x3f80, 0x4380 }, /* 256 + 1: even */
    { PTO_OPERATOR_SUM, PTO_DTYPE_BFLOAT16, 0x4380, 0x4040, 0x4382 }, /* + 3 */
    { PTO_OPERATOR_SUM, PTO_DTYPE_BFLOAT16, 0x7f7f, 0x7f7f, 0x7f80 },
  };

  for (uint32_t c = 0; c < G_N_ELEMENTS (cases); c++)
    {
      uint16_t result = combined (cases[c].operation, cases[c].dtype, cases[c].a, cases[c].b);

      /* The sign of what is no number is anybody's. */
      g_assert_cmphex (result & (cases[c].result == 0x7e00 ? 0x7fff : 0xffff), ==, cases[c].result);
    }
}

/* --- what is refused --- */

struct bad
{
  int32_t combine;
  DataType dtype;
  bool has_initial;
  bool submits_it;
};

static int
reduce_badly (PTO2Runtime *rt, void *data)
{
  static uint64_t memory[8];
  const uint64_t shape[1] = { 8 };
  const uint64_t seven = 7;
  const struct bad *bad = data;
  Tensor tensor = make_tensor_external (memory, shape, 1, bad->dtype);
  PTOParam params[3]
      = { make_reduction_param (tensor, bad->combine, bad->has_initial ? &seven : NULL),
          make_scalar_param (0), make_scalar_param (0) };

  pto2_rt_submit_task (rt, bad->submits_it ? bad->combine : 0, AIV, params, 3);
  return 0;
}

static void
test_refused (enum pto_backend backend)
{
  static const struct
  {
    struct bad bad;
    const char *words;
  } cases[] = {
    { { PTO2_KERNEL_SUM, PTO_DTYPE_BOOL }, "argument 0: the chip has no sum of bool elements: " },
    { { PTO2_KERNEL_MAX, PTO_DTYPE_FLOAT8_E5M2 }, "the chip has no max of float8_e5m2 elements" },
    { { PTO2_KERNEL_MIN, PTO_DTYPE_INT4 }, "the chip has no min of int4 elements" },
    { { PTO2_KERNEL_SUM, PTO_DTYPE_INT32, true }, "argument 0: a sum begins with what changes" },
    { { PTO2_KERNEL_PROD, PTO_DTYPE_INT32, true }, "argument 0: a prod begins with what changes" },
    { { PTO2_KERNEL_MAX - 1, PTO_DTYPE_INT32 }, "kernel -7 is to combine, but there is none" },
    { { PTO2_KERNEL_FILL, PTO_DTYPE_INT32 }, "kernel -2 is to combine, but there is none" },
    { { 2, PTO_DTYPE_INT32, true }, "kernel 2 (never) is to combine, but says that it takes" },
    { { 0, PTO_DTYPE_INT32 }, "argument 0: a kernel of the program combines what is reduced" },
    { { PTO2_KERNEL_PROD, PTO_DTYPE_INT32, false, true },
      "kernel -4 (prod) is the chip's own, and combines what tasks reduce" },
  };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t c = 0; c < G_N_ELEMENTS (cases); c++)
    sim_run_fails (chip, &program, reduce_badly, (void *) &cases[c].bad, PTO_STATUS_INVALID_ARGS,
                   "test-operators.c:", cases[c].words, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("operators/types", test_types);
  sim_add ("operators/few-cores", test_few_cores);
  sim_add_once ("operators/every-number", test_every_number);
  sim_add_once ("operators/rounding", test_rounding);
  sim_add ("operators/refused", test_refused);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
