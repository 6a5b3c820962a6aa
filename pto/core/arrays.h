/* arrays.h: where do arrays of the engine get their memory from?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Doubles an array until it has room for item n. false: no memory, and all is as it was. */
static inline __attribute__ ((cold)) bool
pto_array_grow (void **items, uint32_t n, uint32_t *capacity, size_t size)
{
  uint64_t more = 16;
  void *grown;

  while (more <= n)
    more *= 2;
  grown = more <= UINT32_MAX ? realloc (*items, more * size) : NULL;
  if (grown == NULL)
    return false;
  *items = grown;
  *capacity = (uint32_t) more;
  return true;
}

/* Has the array room for item n? Makes some where it has not. false: no memory. */
#define pto_array_has_room(items, n, capacity)                               \
  (__extension__({                                                           \
    bool room_ = __builtin_expect ((n) < (capacity), 1);                     \
                                                                             \
    if (!room_)                                                              \
      {                                                                      \
        void *grown_ = (items);                                              \
                                                                             \
        room_ = pto_array_grow (&grown_, (n), &(capacity), sizeof *(items)); \
        (items) = grown_;                                                    \
      }                                                                      \
    room_;                                                                   \
  }))

/* Zeroed pages, which cost nothing until they are touched. flags: MAP_PRIVATE, which is cheaper to
 * touch first, or MAP_SHARED, which processes that are forked later see as well. NULL: no address
 * space. */
static inline void *
pto_pages_new (uint64_t bytes, int flags)
{
  void *pages
      = mmap (NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return pages != MAP_FAILED ? pages : NULL;
}

static inline void
pto_pages_free (void *pages, uint64_t bytes)
{
  if (pages != NULL)
    munmap (pages, bytes);
}
