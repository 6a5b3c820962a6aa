/* bits.h: small arithmetic.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdint.h>

#define PTO_LIKELY(x) __builtin_expect (!!(x), 1)
#define PTO_UNLIKELY(x) __builtin_expect (!!(x), 0)

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
