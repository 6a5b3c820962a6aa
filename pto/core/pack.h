/* pack.h: how do values become bytes for another process or machine, and values again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One function names the fields of a value in order, for both ways, so what is read is what was
 * written. Numbers are little endian and have the widths that they have in memory; nothing lies
 * between them but what pto_pack_align() says. A reader believes nothing: what does not fit makes
 * it bad, and from then on it gives zeros.
 *
 * Thread safety: one thread each. Another process may write to what is read: each byte is read
 * once.
 */
#pragma once

#include "bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");

enum pto_pack_way
{
  PTO_PACK_COUNTS, /* how many bytes it is */
  PTO_PACK_WRITES,
  PTO_PACK_GROWS, /* writes, to memory of free() that grows */
  PTO_PACK_READS
};

struct pto_pack
{
  enum pto_pack_way way;
  bool bad;       /* there is not so much, or no memory, or a value that cannot be */
  uint8_t *bytes; /* at a multiple of 8 */
  uint64_t size;
  uint64_t at; /* how many are done */
};

static inline struct pto_pack
pto_pack_count (void)
{
  return (struct pto_pack){ .way = PTO_PACK_COUNTS, .size = UINT64_MAX };
}

static inline struct pto_pack
pto_pack_write (void *bytes, uint64_t size)
{
  return (struct pto_pack){ .way = PTO_PACK_WRITES, .bytes = (uint8_t *) bytes, .size = size };
}

static inline struct pto_pack
pto_pack_read (const void *bytes, uint64_t size)
{
  return (struct pto_pack){ .way = PTO_PACK_READS, .bytes = (uint8_t *) bytes, .size = size };
}

static inline void
pto_pack_refuse (struct pto_pack *pack)
{
  pack->bad = true;
  pack->size = pack->at;
}

static inline bool
pto_pack_grow (struct pto_pack *pack, uint64_t n)
{
  uint64_t size = 2 * (pack->at + n) + 64;
  uint8_t *bytes = pack->way == PTO_PACK_GROWS && !pack->bad ? realloc (pack->bytes, size) : NULL;

  if (bytes == NULL)
    return false;
  pack->bytes = bytes;
  pack->size = size;
  return true;
}

/* The next n bytes; NULL: they are only counted, or are not there. */
static inline uint8_t *
pto_pack_next (struct pto_pack *pack, uint64_t n)
{
  uint64_t at = pack->at;

  if (PTO_UNLIKELY (n > pack->size - at) && !pto_pack_grow (pack, n))
    {
      pto_pack_refuse (pack);
      return NULL;
    }
  pack->at = at + n;
  return pack->bytes != NULL ? pack->bytes + at : NULL;
}

static inline void
pto_pack_value (struct pto_pack *pack, void *value, uint64_t n)
{
  uint8_t *at = pto_pack_next (pack, n);

  if (pack->way != PTO_PACK_READS)
    {
      if (at != NULL && n > 0)
        memcpy (at, value, n);
    }
  else if (at != NULL)
    memcpy (value, at, n);
  else
    memset (value, 0, n);
}
/* A number, or an array of them. */
#define PTO_PACK(pack, lvalue) pto_pack_value ((pack), &(lvalue), sizeof (lvalue))

static inline void
pto_pack_flag (struct pto_pack *pack, bool *flag)
{
  uint8_t byte = pack->way != PTO_PACK_READS && *flag;

  PTO_PACK (pack, byte);
  if (byte > 1)
    pto_pack_refuse (pack);
  if (pack->way == PTO_PACK_READS)
    *flag = byte == 1;
}

/* What follows begins at a multiple of 8. */
static inline void
pto_pack_align (struct pto_pack *pack)
{
  uint64_t n = -pack->at & 7;
  uint8_t *at = pto_pack_next (
      pack, n <= pack->size - pack->at || pack->way == PTO_PACK_GROWS ? n : pack->size - pack->at);

  if (at != NULL && pack->way != PTO_PACK_READS)
    memset (at, 0, n);
}

/* n items of so many bytes, from a multiple of 8 on. Returns them; for a reader where they lie, or
 * NULL: there are none, or not so many. */
static inline const void *
pto_pack_array (struct pto_pack *pack, const void *items, uint64_t n, uint64_t size)
{
  uint8_t *at = NULL;

  pto_pack_align (pack);
  if (n > (pack->size - pack->at) / size && pack->way != PTO_PACK_GROWS)
    pto_pack_refuse (pack);
  else if (n > 0)
    at = pto_pack_next (pack, n * size);
  if (pack->way == PTO_PACK_READS)
    return at;
  if (at != NULL && items != NULL)
    memcpy (at, items, n * size);
  return items;
}
#define PTO_PACK_ARRAY(pack, items, n) \
  ((items) = pto_pack_array ((pack), (items), (n), sizeof *(items)))
