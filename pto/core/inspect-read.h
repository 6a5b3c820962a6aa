/* inspect-read.h: how is memory read that somebody else writes just now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What tasks run through is written with plain stores by whoever owns it at the time. Somebody who
 * has no part in a run reads it word by word, each with one relaxed load, so that no word is torn;
 * whether the words belong together is his to find out: by a number that its writers change, read
 * before (acquire) and after (behind an acquire fence).
 */
#pragma once

#include <stddef.h>

/* Both are aligned as what they hold is; words of 8 or 4 bytes are read as a whole. The memory is
 * there. */
void pto_peek_copy (void *to, const void *from, size_t bytes);

/* The value of one object that is not atomic. The comma drops its qualifiers. */
#define pto_peek(p)                                \
  (__extension__({                                 \
    __typeof__ (((void) 0, *(p))) peeked_;         \
    pto_peek_copy (&peeked_, (p), sizeof peeked_); \
    peeked_;                                       \
  }))
