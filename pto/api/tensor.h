/* tensor.h: what a kernel sees of its tensors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A kernel is `extern "C" void kernel_entry(int64_t *args)`. A tensor argument arrives as a pointer
 * to TensorData, a scalar argument arrives by value in its 64 bits:
 *
 *   given as           args[i] is                                 a kernel reads it by
 *   signed integer     the integer                                args[i]
 *   unsigned integer   the integer, modulo 2^64                   (uint64_t) args[i]
 *   float              the bits of a float, in the lower half     pto_scalar_float (args[i])
 *   double             the bits of a double                       pto_scalar_double (args[i])
 *
 * Nothing converts between them: (float) args[i] is right for an integer only. Valid C17 and C++17;
 * depends on the C library only. Source: seed 000 section 11.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pto_block.h"
#include "pto_limits.h"

/* Address-space and function qualifiers of the device compiler mean nothing on a host. */
#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif

/* The most dimensions a tensor has. */
#define PTO2_TENSOR_MAX_DIMS PTO_TENSOR_MAX_DIMS

enum pto_dtype
{
  PTO_DTYPE_FLOAT32 = 0,
  PTO_DTYPE_FLOAT16 = 1,
  PTO_DTYPE_BFLOAT16 = 2,
  PTO_DTYPE_INT8 = 3,
  PTO_DTYPE_INT16 = 4,
  PTO_DTYPE_INT32 = 5,
  PTO_DTYPE_INT64 = 6,
  PTO_DTYPE_UINT8 = 7,
  PTO_DTYPE_UINT16 = 8,
  PTO_DTYPE_UINT32 = 9,
  PTO_DTYPE_UINT64 = 10,
  PTO_DTYPE_BOOL = 11,
  PTO_DTYPE_FLOAT64 = 12,
  PTO_DTYPE_FLOAT8_E4M3FN = 13, /* no infinities */
  PTO_DTYPE_FLOAT8_E5M2 = 14,
  PTO_DTYPE_INT4 = 15, /* one a byte, in its lower half */
  PTO_DTYPE_COUNT = 16
};

#ifdef __cplusplus
enum class DataType : uint32_t
{
  FLOAT32 = PTO_DTYPE_FLOAT32,
  FLOAT16 = PTO_DTYPE_FLOAT16,
  BFLOAT16 = PTO_DTYPE_BFLOAT16,
  INT8 = PTO_DTYPE_INT8,
  INT16 = PTO_DTYPE_INT16,
  INT32 = PTO_DTYPE_INT32,
  INT64 = PTO_DTYPE_INT64,
  UINT8 = PTO_DTYPE_UINT8,
  UINT16 = PTO_DTYPE_UINT16,
  UINT32 = PTO_DTYPE_UINT32,
  UINT64 = PTO_DTYPE_UINT64,
  BOOL = PTO_DTYPE_BOOL,
  FLOAT64 = PTO_DTYPE_FLOAT64,
  FLOAT8_E4M3FN = PTO_DTYPE_FLOAT8_E4M3FN,
  FLOAT8_E5M2 = PTO_DTYPE_FLOAT8_E5M2,
  INT4 = PTO_DTYPE_INT4
};
static inline uint32_t
pto_dtype_number (DataType dtype)
{
  return static_cast<uint32_t> (dtype);
}
#else
typedef uint32_t DataType;

static inline uint32_t
pto_dtype_number (DataType dtype)
{
  return dtype;
}
#endif

/* Size of one element in bytes; 0 for an unknown type. */
static inline uint32_t
pto_dtype_size (DataType dtype)
{
  static const uint8_t sizes[PTO_DTYPE_COUNT] = { 4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 1, 1, 1 };
  return pto_dtype_number (dtype) < PTO_DTYPE_COUNT ? sizes[pto_dtype_number (dtype)] : 0;
}

/* As NumPy calls it; "unknown" for an unknown type. */
static inline const char *
pto_dtype_name (DataType dtype)
{
  static const char *const names[PTO_DTYPE_COUNT]
      = { "float32", "float16",       "bfloat16",    "int8",   "int16",  "int32",
          "int64",   "uint8",         "uint16",      "uint32", "uint64", "bool",
          "float64", "float8_e4m3fn", "float8_e5m2", "int4" };
  return pto_dtype_number (dtype) < PTO_DTYPE_COUNT ? names[pto_dtype_number (dtype)] : "unknown";
}

static inline bool
pto_dtype_is_float (DataType dtype)
{
  uint32_t number = pto_dtype_number (dtype);

  return number <= PTO_DTYPE_BFLOAT16
         || (number >= PTO_DTYPE_FLOAT64 && number <= PTO_DTYPE_FLOAT8_E5M2);
}

/* A scalar argument that was given as a float. A Python float is one. */
static inline float
pto_scalar_float (int64_t arg)
{
  uint32_t bits = arg & 0xffffffff;
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

/* A scalar argument that was given as a double. */
static inline double
pto_scalar_double (int64_t arg)
{
  double value;

  memcpy (&value, &arg, sizeof value);
  return value;
}

/* A piece of device memory: address and size, both in bytes. */
typedef struct PTOBufferHandle
{
  uint64_t addr;
  uint64_t size;
} PTOBufferHandle;

/* A tensor as a kernel sees it. Element (i0, i1, ...) is at
 * buffer.addr + (start_offset + i0 * strides[0] + i1 * strides[1] + ...) * element size. */
typedef struct TensorData
{
  PTOBufferHandle buffer;
  uint64_t start_offset; /* in elements, from buffer.addr */
  uint32_t ndims;        /* 1 to 5 */
  DataType dtype;
  uint64_t shapes[PTO2_TENSOR_MAX_DIMS];
  uint64_t strides[PTO2_TENSOR_MAX_DIMS]; /* in elements */
} TensorData;
