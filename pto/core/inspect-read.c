/* inspect-read.c: how is memory read that somebody else writes just now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "inspect-read.h"

#include <stdint.h>

/* The thread sanitizer sees a plain store on the other side, and is not asked. Not inlined, so that
 * it stays so. */
__attribute__ ((no_sanitize ("thread"), noinline)) void
pto_peek_copy (void *to, const void *from, size_t bytes)
{
  uint8_t *at = to;
  const uint8_t *source = from;
  size_t words = ((uintptr_t) source & 7) == 0 && ((uintptr_t) at & 7) == 0 ? bytes / 8 : 0;

  for (; words > 0; words--, at += 8, source += 8, bytes -= 8)
    *(uint64_t *) (void *) at
        = __atomic_load_n ((const uint64_t *) (const void *) source, __ATOMIC_RELAXED);
  if (((uintptr_t) source & 3) == 0 && ((uintptr_t) at & 3) == 0)
    for (; bytes >= 4; at += 4, source += 4, bytes -= 4)
      *(uint32_t *) (void *) at
          = __atomic_load_n ((const uint32_t *) (const void *) source, __ATOMIC_RELAXED);
  for (; bytes > 0; at++, source++, bytes--)
    *at = __atomic_load_n (source, __ATOMIC_RELAXED);
}
