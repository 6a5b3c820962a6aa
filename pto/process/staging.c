/* staging.c: where does memory go that a child does not see?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "staging.h"

#include "core/memory-guards.h"
#include "exec/translate.h"
#include "spans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is compared, and copied back as a whole when it differs. */
#define CHUNK 4096u
/* Stand-ins that hold less keep their pages for the next run. */
#define KEPT_BYTES (UINT64_C (8) << 20)

/* What stands in for a part of the address space; no two for the same byte. */
struct stand_in
{
  uint64_t begin, end;
  uint64_t base;                       /* in the arena: of begin */
  uint64_t piece, piece_bytes;         /* of the arena */
  uint64_t checked_begin, checked_end; /* found readable in this run */
  bool writable;                       /* all of that */
};

/* Bytes that were copied for tasks which say that they only read them. */
struct only_read
{
  uint64_t begin, end;
  uint64_t sum; /* of what they were */
};

struct pto_stage
{
  struct pto_shared_map *map;
  uint64_t arena, arena_size;
  uint32_t guard;
  struct stand_in *stand_ins;
  uint32_t n, size;
  struct pto_spans copied;  /* into stand-ins */
  struct pto_spans written; /* to be copied back */
  struct only_read *only_read;
  uint32_t n_only_read, only_read_size;
  bool is_fenced; /* what was copied is in the list of fences */
};

struct pto_stage *
pto_stage_new (uint32_t guard)
{
  struct pto_stage *stage = calloc (1, sizeof *stage);

  if (stage != NULL)
    stage->guard = guard;
  return stage;
}

static void
drop (struct stand_in *stand_in)
{
  pto_arena_free (stand_in->piece, stand_in->piece_bytes);
}

void
pto_stage_free (struct pto_stage *stage)
{
  if (stage == NULL)
    return;
  for (uint32_t i = 0; i < stage->n; i++)
    drop (&stage->stand_ins[i]);
  free (stage->stand_ins);
  pto_spans_clear (&stage->copied);
  pto_spans_clear (&stage->written);
  free (stage->only_read);
  free (stage);
}

void
pto_stage_begin (struct pto_stage *stage, struct pto_shared_map *map)
{
  stage->map = map;
  pto_shared_map_look_again (map);
  pto_arena_range (&stage->arena, &stage->arena_size);
  stage->copied.n = stage->written.n = stage->n_only_read = 0;
  for (uint32_t i = 0; i < stage->n; i++)
    stage->stand_ins[i].checked_begin = stage->stand_ins[i].checked_end = 0;
}

/* Makes room for one more item of a list. Returns NULL without memory; the list stays. */
static void *
grow (void *list, uint32_t *size, size_t item)
{
  uint32_t more = 2 * *size + 16;
  void *larger = realloc (list, more * item);

  if (larger != NULL)
    *size = more;
  return larger;
}

/* --- stand-ins --- */

static bool
contains (const struct stand_in *stand_in, uint64_t begin, uint64_t end)
{
  return stand_in->begin <= begin && end <= stand_in->end;
}

static struct stand_in *
find_stand_in (const struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  for (uint32_t i = 0; i < stage->n; i++)
    if (contains (&stage->stand_ins[i], begin, end))
      return &stage->stand_ins[i];
  return NULL;
}

/* Begins as far behind the begin of a page as the range does. */
static struct stand_in *
add_stand_in (struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  uint64_t offset = begin % CHUNK, bytes = offset + (end - begin) + stage->guard;
  uint64_t piece = pto_arena_alloc (bytes);

  if (piece == 0)
    return NULL;
  if (stage->n == stage->size)
    {
      struct stand_in *list = grow (stage->stand_ins, &stage->size, sizeof *list);

      if (list == NULL)
        {
          pto_arena_free (piece, bytes);
          return NULL;
        }
      stage->stand_ins = list;
    }
  stage->stand_ins[stage->n] = (struct stand_in){
    .begin = begin, .end = end, .base = piece + offset, .piece = piece, .piece_bytes = bytes
  };
  return &stage->stand_ins[stage->n++];
}

/* Has a part of the range been copied? */
static bool
is_copied (const struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  uint32_t i = pto_spans_find (&stage->copied, begin);

  return i < stage->copied.n && stage->copied.list[i].begin < end;
}

/* Nothing of the range has been copied: those that lie across one of its ends, or inside, shrink.
 */
static void
make_way (struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  for (uint32_t i = 0; i < stage->n; i++)
    {
      struct stand_in *other = &stage->stand_ins[i];

      if (other->end <= begin || end <= other->begin)
        continue;
      if (other->begin < begin)
        other->end = begin;
      else
        {
          uint64_t cut = end < other->end ? end : other->end;

          other->base += cut - other->begin;
          other->begin = cut;
        }
    }
}

/* For as much of the mapping as has none, around the range; where there is no room for that, and
 * where a mapping has grown and the range lies across its former end, for the range alone. NULL: no
 * room; torn: a part of the range has been copied to another one. */
static struct stand_in *
make_stand_in (struct pto_stage *stage, uint64_t begin, uint64_t end,
               const struct pto_mapping *mapping, bool *torn)
{
  uint64_t lower = mapping->begin, upper = mapping->end;
  struct stand_in *made = NULL;
  bool across = false;

  for (uint32_t i = 0; i < stage->n; i++)
    {
      const struct stand_in *other = &stage->stand_ins[i];

      if (other->end <= begin)
        lower = other->end > lower ? other->end : lower;
      else if (other->begin >= end)
        upper = other->begin < upper ? other->begin : upper;
      else
        across = true;
    }
  *torn = across && is_copied (stage, begin, end);
  if (*torn)
    return NULL;
  if (across)
    make_way (stage, begin, end);
  else
    made = add_stand_in (stage, lower, upper);
  return made != NULL ? made : add_stand_in (stage, begin, end);
}

/* Another number when any of the bytes changes, but for one time in 2^64. */
static uint64_t
sum_of (const void *data, uint64_t bytes)
{
  const uint8_t *at = data;
  uint64_t lanes[4] = { 1, 2, 3, 4 };
  uint64_t words[4];
  uint64_t sum = bytes;

  for (; bytes > 0; at += sizeof words)
    {
      uint64_t n = bytes < sizeof words ? bytes : sizeof words;

      if (n < sizeof words)
        memset (words, 0, sizeof words);
      memcpy (words, at, n);
      for (uint32_t i = 0; i < 4; i++)
        {
          lanes[i] = (lanes[i] ^ words[i]) * UINT64_C (0x9e3779b97f4a7c15);
          lanes[i] ^= lanes[i] >> 29;
        }
      bytes -= n;
    }
  for (uint32_t i = 0; i < 4; i++)
    sum = (sum ^ lanes[i]) * UINT64_C (0xbf58476d1ce4e5b9);
  return sum;
}

/* false: no memory. */
static bool
add_only_read (struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  if (stage->n_only_read == stage->only_read_size)
    {
      struct only_read *list = grow (stage->only_read, &stage->only_read_size, sizeof *list);

      if (list == NULL)
        return false;
      stage->only_read = list;
    }
  stage->only_read[stage->n_only_read++]
      = (struct only_read){ begin, end, sum_of ((const void *) (uintptr_t) begin, end - begin) };
  return true;
}

/* Copies what has not been copied yet. Returns false without memory. */
static bool
copy_in (struct pto_stage *stage, const struct stand_in *stand_in, uint64_t begin, uint64_t end,
         bool written)
{
  uint32_t i = pto_spans_find (&stage->copied, begin);
  bool ok = true;

  while (begin < end)
    {
      bool more = i < stage->copied.n;
      uint64_t until
          = more && stage->copied.list[i].begin < end ? stage->copied.list[i].begin : end;

      if (until > begin)
        {
          memcpy ((void *) (uintptr_t) (stand_in->base + (begin - stand_in->begin)),
                  (const void *) (uintptr_t) begin, until - begin);
          ok = (written || add_only_read (stage, begin, until)) && ok;
        }
      begin = more && stage->copied.list[i].end > until ? stage->copied.list[i].end : until;
      i++;
    }
  return ok;
}

/* What may be looked at behind the end of something copied: up to what else was copied. */
static struct pto_fence
fence_behind (const struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  const struct stand_in *stand_in = find_stand_in (stage, end - 1, end);
  uint64_t address = stand_in->base + (end - stand_in->begin);
  uint64_t room = stand_in->piece + stand_in->piece_bytes - address;
  uint32_t next = pto_spans_find (&stage->copied, end);

  if (room > stage->guard)
    room = stage->guard;
  if (next < stage->copied.n && stage->copied.list[next].begin < end + room)
    room = stage->copied.list[next].begin > end ? stage->copied.list[next].begin - end : 0;
  return (
      struct pto_fence){ .address = address - (end - begin), .bytes = end - begin, .guard = room };
}

/* Notes what was copied. The guard is written when its place is found, and then no more: a kernel
 * may have been there. Returns false without memory. */
static bool
add_copied (struct pto_stage *stage, uint64_t begin, uint64_t end)
{
  uint32_t i = pto_spans_find (&stage->copied, end - 1);
  struct pto_fence fence;

  if (stage->guard > 0 && (i == stage->copied.n || end < stage->copied.list[i].begin))
    {
      fence = fence_behind (stage, begin, end);
      pto_fence_mend (&fence);
    }
  return pto_spans_set (&stage->copied, begin, end, 0);
}

uint64_t
pto_stage_place (struct pto_stage *stage, uint64_t address, uint64_t bytes, bool written,
                 struct pto_report *report)
{
  uint64_t end = address + bytes;
  struct pto_mapping mapping;
  struct stand_in *stand_in;
  bool torn = false;

  if (bytes == 0
      || (address - stage->arena < stage->arena_size
          && bytes <= stage->arena_size - (address - stage->arena)))
    return address;
  if (end < address || pto_shared_map_check (stage->map, address, bytes, false) == PTO_VISIBLE)
    return address;
  stand_in = find_stand_in (stage, address, end);
  if (stand_in == NULL || stand_in->checked_begin > address || stand_in->checked_end < end)
    {
      if (!pto_mapping_around (address, bytes, &mapping))
        {
          if (mapping.trouble == 0)
            return address;
          /* The child would write to a copy of its own. */
          pto_report_set (report, PTO_STATUS_SYSTEM,
                          _ ("whether the chip's process sees %" PRIu64 " bytes at 0x%" PRIx64
                             " can not be known: /proc/self/maps: %s%s"),
                          bytes, address, strerror (mapping.trouble),
                          mapping.trouble == EMFILE ? _ (": close some, or raise ulimit -n") : "");
          return 0;
        }
      if (stand_in == NULL)
        stand_in = make_stand_in (stage, address, end, &mapping, &torn);
      if (torn)
        {
          pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                          _ ("%" PRIu64 " bytes at 0x%" PRIx64
                             " overlap others of this run, and their memory was mapped anew in "
                             "between: keep it as it is until the run has ended"),
                          bytes, address);
          return 0;
        }
      if (stand_in == NULL)
        {
          pto_report_set (report, PTO_STATUS_NO_MEMORY,
                          _ ("no room for a copy of %" PRIu64 " bytes at 0x%" PRIx64
                             ", which the chip's process does not see: set arena to more, or use a "
                             "buffer"),
                          bytes, address);
          return 0;
        }
      stand_in->checked_begin = mapping.begin;
      stand_in->checked_end = mapping.end;
      stand_in->writable = mapping.writable;
    }
  if (!copy_in (stage, stand_in, address, end, written) || !add_copied (stage, address, end)
      || (written && !pto_spans_set (&stage->written, address, end, 0)))
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory to note what is copied"));
      return 0;
    }
  return stand_in->base + (address - stand_in->begin);
}

uint64_t
pto_stage_find (const struct pto_stage *stage, uint64_t address)
{
  const struct stand_in *stand_in;

  if (!is_copied (stage, address, address + 1))
    return address;
  stand_in = find_stand_in (stage, address, address + 1);
  return stand_in->base + (address - stand_in->begin);
}

bool
pto_stage_has (const struct pto_stage *stage, uint64_t address, uint64_t bytes)
{
  return is_copied (stage, address, address + bytes);
}

/* false: it can not be written. */
static bool
copy_back (const struct stand_in *stand_in, uint64_t begin, uint64_t end)
{
  while (begin < end)
    {
      uint64_t bytes = end - begin < CHUNK ? end - begin : CHUNK;
      const void *from = (const void *) (uintptr_t) (stand_in->base + (begin - stand_in->begin));
      void *to = (void *) (uintptr_t) begin;

      if (memcmp (to, from, bytes) != 0)
        {
          if (!stand_in->writable)
            return false;
          memcpy (to, from, bytes);
        }
      begin += bytes;
    }
  return true;
}

static enum pto_status
refuse_write (uint64_t begin, uint64_t end, struct pto_report *report)
{
  return pto_report_set (
      report, PTO_STATUS_INVALID_ARGS,
      _ ("a kernel wrote into memory that can only be read (0x%" PRIx64 " to 0x%" PRIx64 ")"),
      begin, end);
}

/* What the tasks of a run have written to bytes that they said they only read goes back, too: it
 * would be there if they had been given the memory itself. */
static enum pto_status
copy_only_read_back (const struct pto_stage *stage, struct pto_report *report)
{
  enum pto_status status = PTO_OK;

  for (uint32_t i = 0; i < stage->n_only_read; i++)
    {
      const struct only_read *piece = &stage->only_read[i];
      const struct stand_in *stand_in = find_stand_in (stage, piece->begin, piece->end);
      uint64_t bytes = piece->end - piece->begin;
      const void *copy
          = (const void *) (uintptr_t) (stand_in->base + piece->begin - stand_in->begin);

      if (sum_of (copy, bytes) != piece->sum && !copy_back (stand_in, piece->begin, piece->end)
          && status == PTO_OK)
        status = refuse_write (piece->begin, piece->end, report);
    }
  return status;
}

/* Of a span that lies across several stand-ins, what lies in the last: any address there finds it.
 */
static struct pto_fence
last_fence (const struct pto_stage *stage, const struct pto_span *span)
{
  const struct stand_in *stand_in = find_stand_in (stage, span->end - 1, span->end);

  return fence_behind (stage, span->begin > stand_in->begin ? span->begin : stand_in->begin,
                       span->end);
}

void
pto_stage_fence (struct pto_stage *stage)
{
  stage->is_fenced = stage->guard > 0;
  for (uint32_t i = 0; stage->is_fenced && i < stage->copied.n; i++)
    {
      struct pto_fence fence = last_fence (stage, &stage->copied.list[i]);

      if (fence.guard > 0)
        (void) pto_fence_add (&fence);
    }
}

static void
remove_fences (struct pto_stage *stage)
{
  for (uint32_t i = 0; stage->is_fenced && i < stage->copied.n; i++)
    pto_fence_remove (last_fence (stage, &stage->copied.list[i]).address);
  stage->is_fenced = false;
}

/* Also where two stand-ins lie side by side: each has its own room behind it. */
static enum pto_status
check_guards (const struct pto_stage *stage, struct pto_overrun *overrun, struct pto_report *report)
{
  for (uint32_t i = 0; stage->guard > 0 && i < stage->copied.n; i++)
    {
      uint64_t begin = stage->copied.list[i].begin, end = stage->copied.list[i].end;
      struct pto_fence fence = fence_behind (stage, begin, end);
      uint64_t n = pto_fence_damage (&fence);

      if (n == 0)
        continue;
      if (overrun != NULL)
        *overrun = (struct pto_overrun){ .begin = begin, .end = end, .bytes = n };
      return pto_report_set (
          report, PTO_STATUS_OUT_OF_BOUNDS,
          P_ ("a kernel of this run wrote at least %" PRIu64 " byte past the %" PRIu64
              " bytes at 0x%" PRIx64 " that it was given",
              "a kernel of this run wrote at least %" PRIu64 " bytes past the %" PRIu64
              " bytes at 0x%" PRIx64 " that it was given",
              n),
          n, end - begin, begin);
    }
  return PTO_OK;
}

enum pto_status
pto_stage_end (struct pto_stage *stage, struct pto_overrun *overrun, struct pto_report *report)
{
  enum pto_status refused;
  enum pto_status status;
  uint64_t held = 0;

  remove_fences (stage);
  status = check_guards (stage, overrun, report);

  for (uint32_t i = 0; i < stage->written.n; i++)
    {
      uint64_t begin = stage->written.list[i].begin, end = stage->written.list[i].end;

      /* Tensors side by side may have melted together though they lie in two. */
      while (begin < end)
        {
          const struct stand_in *stand_in = find_stand_in (stage, begin, begin + 1);
          uint64_t until = stand_in->end < end ? stand_in->end : end;

          if (!copy_back (stand_in, begin, until) && status == PTO_OK)
            status = refuse_write (begin, until, report);
          begin = until;
        }
    }
  refused = copy_only_read_back (stage, report);
  if (status == PTO_OK)
    status = refused;
  for (uint32_t i = 0; i < stage->copied.n; i++)
    held += stage->copied.list[i].end - stage->copied.list[i].begin;
  stage->copied.n = stage->written.n = stage->n_only_read = 0;
  if (held > KEPT_BYTES)
    {
      for (uint32_t i = 0; i < stage->n; i++)
        drop (&stage->stand_ins[i]);
      stage->n = 0;
    }
  return status;
}
