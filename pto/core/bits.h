/* bits.h: small arithmetic.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdint.h>

#define PTO_LIKELY(x) __builtin_expect (!!(x), 1)
#define PTO_UNLIKELY(x) __builtin_expect (!!(x), 0)

/* Each is looked at twice. */
#define max_of(a, b) ((a) > (b) ? (a) : (b))
#define min_of(a, b) ((a) < (b) ? (a) : (b))

/* How many of the numbers i below n come before a place, all of which are the first ones:
 * comes_before names i. */
#define pto_bisect(i, n, comes_before)          \
  (__extension__({                              \
    uint32_t low_ = 0;                          \
    uint32_t high_ = (n);                       \
                                                \
    while (low_ < high_)                        \
      {                                         \
        uint32_t i = low_ + (high_ - low_) / 2; \
                                                \
        if (comes_before)                       \
          low_ = i + 1;                         \
        else                                    \
          high_ = i;                            \
      }                                         \
    low_;                                       \
  }))

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

static inline uint64_t
greatest_common_divisor (uint64_t a, uint64_t b)
{
  while (b != 0)
    {
      uint64_t rest = a % b;

      a = b;
      b = rest;
    }
  return a;
}
