/* builtin-kernels.h: which kernels does a chip have of its own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "kernel.h"

/* Above all function ids of programs, the last one first. */
#define PTO_KERNEL_FILL 0x3fffffffu
#define PTO_KERNEL_SUM (PTO_KERNEL_FILL - 1)
#define PTO_KERNEL_MAX (PTO_KERNEL_FILL - 4)
#define PTO_N_BUILTINS 5u

/* FILL: args[0] a tensor, args[1] the bits of a value of its type, for each of its elements. From
 * SUM to MAX: args[1] is taken into args[0] (reduction-operators.h). */
extern const struct pto_kernel pto_builtin_kernels[PTO_N_BUILTINS];

static inline bool
pto_kernel_is_builtin (uint32_t id)
{
  return PTO_KERNEL_FILL - id < PTO_N_BUILTINS;
}

/* Of one of them; here, for who only has records of a run. */
static inline const char *
pto_builtin_name (uint32_t id)
{
  static const char *const names[PTO_N_BUILTINS] = { "fill", "sum", "prod", "min", "max" };

  return names[PTO_KERNEL_FILL - id];
}

/* Of an id that a task has. */
static inline const struct pto_kernel *
pto_program_kernel (const struct pto_program *program, uint32_t id)
{
  return __builtin_expect (id < program->n_kernels, 1)
             ? &program->kernels[id]
             : &pto_builtin_kernels[pto_kernel_is_builtin (id) ? PTO_KERNEL_FILL - id : 0];
}
