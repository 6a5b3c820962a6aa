/* engine-private.h: what the files of the engine share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

#define STORAGE_ALIGN 64u /* of a task's arguments */

static inline uint64_t
align_up (uint64_t value, uint64_t unit)
{
  return (value + unit - 1) / unit * unit;
}

static inline uint32_t
power_of_two_at_least (uint64_t value)
{
  uint32_t power = 1;

  while (power < value && power < (1u << 31))
    power *= 2;
  return power;
}

/* For messages; never NULL. */
static inline const char *
pto_engine_kernel_name (const struct pto_engine *engine, uint32_t kernel)
{
  if (kernel == PTO_KERNEL_NONE)
    return "no kernel";
  return engine->config.kernel_name (engine->config.kernel_name_data, kernel);
}

/* The submitter needs room in a ring, and nobody will ever make any. Latches the error. */
void pto_engine_prove_deadlock (struct pto_engine *engine, enum pto_status what,
                                uint32_t ring_index, uint32_t need, uint32_t used);
/* Replaces its text by the final one, once the orchestration has been counted to its end. */
void pto_engine_report_deadlock (struct pto_engine *engine);
