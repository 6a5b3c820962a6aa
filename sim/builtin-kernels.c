/* builtin-kernels.c: which kernels does a chip have of its own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "builtin-kernels.h"

#include "pto/core/engine.h"
#include "reduction-operators.h"

#include <string.h>

_Static_assert(PTO_KERNEL_FILL < PTO_KERNEL_PARTS, "a kernel as others");

/* Elements that lie one behind the other. */
static void
fill_run (uint8_t *to, uint64_t n, uint32_t size, const void *value)
{
  uint64_t done = n > 0;

  if (n == 0)
    return;
  memcpy (to, value, size);
  while (done < n)
    {
      uint64_t more = done < n - done ? done : n - done;

      memcpy (to + done * size, to, more * size);
      done += more;
    }
}

static void
fill (const TensorData *tensor, uint32_t dimension, uint8_t *to, uint32_t size, const void *value)
{
  uint64_t n = tensor->shapes[dimension];
  uint64_t stride = tensor->strides[dimension];
  /* No tensor has more, as compilers are to know. */
  bool is_last = dimension + 1 == tensor->ndims || dimension + 1 == PTO2_TENSOR_MAX_DIMS;

  if (is_last && stride == 1)
    fill_run (to, n, size, value);
  else
    for (uint64_t i = 0; i < n; i++, to += stride * size)
      if (is_last)
        memcpy (to, value, size);
      else
        fill (tensor, dimension + 1, to, size, value);
}

static void
fill_entry (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];
  uint32_t size = pto_dtype_size (tensor->dtype);

  fill (tensor, 0, (uint8_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset * size, size,
        &args[1]);
}

#define DEFINE_COMBINE(name, operation)                               \
  static void name##_entry (int64_t *args)                            \
  {                                                                   \
    pto_combine (operation, (const TensorData *) (uintptr_t) args[0], \
                 (const TensorData *) (uintptr_t) args[1]);           \
  }

DEFINE_COMBINE (sum, PTO_OPERATOR_SUM)
DEFINE_COMBINE (prod, PTO_OPERATOR_PROD)
DEFINE_COMBINE (min, PTO_OPERATOR_MIN)
DEFINE_COMBINE (max, PTO_OPERATOR_MAX)

/* As long as going through that much takes at 100 bytes a ns. */
#define BUILTIN(what, func)                                      \
  {                                                              \
    .name = what, .entry = func, .core_type = PTO_CORE_TYPE_AIV, \
    .cost                                                        \
        = {.model = PTO_COST_LINEAR,                             \
           .base_ns = 1000,                                      \
           .ns_per_byte = 0.01 }                                 \
  }

/* In the order of pto_builtin_name(). */
const struct pto_kernel pto_builtin_kernels[PTO_N_BUILTINS]
    = { BUILTIN ("fill", fill_entry), BUILTIN ("sum", sum_entry), BUILTIN ("prod", prod_entry),
        BUILTIN ("min", min_entry), BUILTIN ("max", max_entry) };
