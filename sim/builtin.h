/* builtin.h: which kernels does a chip have of its own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "chip.h"

/* Above all function ids of programs. */
#define PTO_KERNEL_FILL 0x3fffffffu
#define PTO_KERNEL_FILL_NAME "fill"

/* args[0] a tensor, args[1] the bits of a value of its type, for each of its elements. */
extern const struct pto_kernel pto_fill_kernel;

static inline const struct pto_kernel *
pto_program_kernel (const struct pto_program *program, uint32_t id)
{
  return __builtin_expect (id < program->n_kernels, 1) ? &program->kernels[id] : &pto_fill_kernel;
}
