/* mutate.h: how are bytes changed that a reader is to be right about?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "short.h"

#include <string.h>

#define MUTATIONS 4000u

/* How many are changed: PTO_TEST_TIMES as many as the suite does. */
static inline guint
mutate_get_n (void)
{
  const char *times = g_getenv ("PTO_TEST_TIMES");

  return SCALE_SHORT (MUTATIONS)
         * (times != NULL ? (guint) MAX (g_ascii_strtoull (times, NULL, 10), 1) : 1);
}

/* All of it can be read. */
static inline void
mutate_look_at (const void *data, gsize size)
{
  const volatile guint8 *bytes = data;

  for (gsize i = 0; i < size; i++)
    (void) bytes[i];
}

/* One to three changes; gives how many bytes are left. */
static inline gsize
mutate (GRand *random, guint8 *bytes, gsize size)
{
  static const guint32 edges[] = { 0, 1, 2, 255, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

  for (gint k = g_rand_int_range (random, 1, 4); k > 0 && size > 8; k--)
    {
      gsize at = (gsize) g_rand_int_range (random, 0, (gint32) size);
      gsize from = (gsize) g_rand_int_range (random, 0, (gint32) size);
      gsize n = MIN (MIN (size - at, size - from), 64);

      switch (g_rand_int_range (random, 0, 8))
        {
        case 0:
          size = at;
          break;
        case 1:
          bytes[at] = (guint8) g_rand_int (random);
          break;
        case 2:
        case 3:
          memcpy (&bytes[MIN (at, size - 4) & ~(gsize) 3],
                  &edges[g_rand_int_range (random, 0, G_N_ELEMENTS (edges))], 4);
          break;
        case 4:
          memmove (bytes + at, bytes + from, n);
          break;
        default:
          bytes[at] ^= (guint8) (1u << g_rand_int_range (random, 0, 8));
        }
    }
  return size;
}
