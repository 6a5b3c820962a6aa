/* block-directory.c: which memory of this side is copied at the other end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "block-directory.h"

#include "core/bits.h"

/* The other end has memory by pages (../../process/arena.c). */
#define PAGE_BYTES G_GUINT64_CONSTANT (4096)
/* So many blocks nobody looks through before each task. */
#define BLOCKS_MAX 1024u

struct _PtoRemoteDirectory
{
  guint64 limit;
  guint64 bytes;     /* of all blocks */
  guint64 number;    /* that was given last */
  guint64 longest;   /* no block is longer */
  GPtrArray *blocks; /* by address */
  GPtrArray *owned;  /* the program's, apart from those, by address; none overlaps another */
  guint64 owned_bytes;
  GQueue used; /* the last ones longest ago */
  GArray *dropped;
  GPtrArray *begun;
};

static void
block_free (gpointer data)
{
  PtoRemoteBlock *block = data;

  g_array_unref (block->good);
  g_array_unref (block->left);
  g_array_unref (block->stays);
  g_free (block);
}

PtoRemoteDirectory *
pto_remote_directory_new (guint64 limit)
{
  PtoRemoteDirectory *directory = g_new0 (PtoRemoteDirectory, 1);

  directory->limit = limit;
  directory->blocks = g_ptr_array_new_with_free_func (block_free);
  directory->owned = g_ptr_array_new_with_free_func (block_free);
  directory->dropped = g_array_new (FALSE, FALSE, sizeof (guint64));
  directory->begun = g_ptr_array_new ();
  return directory;
}

void
pto_remote_directory_free (PtoRemoteDirectory *directory)
{
  g_ptr_array_unref (directory->blocks);
  g_ptr_array_unref (directory->owned);
  g_ptr_array_unref (directory->begun);
  g_array_unref (directory->dropped);
  g_free (directory);
}

static guint64
get_bytes (const PtoRemoteBlock *block)
{
  return (block->end - block->begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* The first of those blocks that begins at the address or behind it. */
static guint
find_index (const GPtrArray *blocks, guint64 address)
{
  return pto_bisect (i, blocks->len,
                     ((const PtoRemoteBlock *) g_ptr_array_index (blocks, i))->begin < address);
}

/* The first that may reach into a range that begins there. */
static guint
find_first (const PtoRemoteDirectory *directory, guint64 begin)
{
  return find_index (directory->blocks,
                     begin > directory->longest ? begin - directory->longest : 0);
}

/* --- what is good --- */

/* Of the good spans, the first that ends behind the address. */
static guint
find_span (const GArray *good, guint64 address)
{
  return pto_bisect (i, good->len, g_array_index (good, PtoRemoteSpan, i).end <= address);
}

static void
add_span (GArray *spans, guint64 begin, guint64 end)
{
  PtoRemoteSpan span = { begin, end };
  guint first, last;

  if (begin >= end)
    return;
  /* Those that it touches become one with it. */
  first = begin > 0 ? find_span (spans, begin - 1) : 0;
  for (last = first; last < spans->len; last++)
    {
      const PtoRemoteSpan *other = &g_array_index (spans, PtoRemoteSpan, last);

      if (other->begin > end)
        break;
      span.begin = MIN (span.begin, other->begin);
      span.end = MAX (span.end, other->end);
    }
  if (last > first)
    g_array_remove_range (spans, first, last - first);
  g_array_insert_val (spans, first, span);
}

static void
remove_span (GArray *spans, guint64 begin, guint64 end)
{
  guint i = find_span (spans, begin);

  while (i < spans->len)
    {
      PtoRemoteSpan *span = &g_array_index (spans, PtoRemoteSpan, i);
      PtoRemoteSpan rest = { end, span->end };

      if (span->begin >= end)
        return;
      if (span->begin < begin)
        {
          span->end = begin;
          i++;
          if (rest.begin < rest.end)
            g_array_insert_val (spans, i, rest);
        }
      else if (rest.begin < rest.end)
        span->begin = end;
      else
        {
          g_array_remove_index (spans, i);
          continue;
        }
      if (rest.begin < rest.end)
        return;
    }
}

void
pto_remote_directory_add (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  add_span (block->good, begin, end);
  remove_span (block->left, begin, end);
  remove_span (block->stays, begin, end);
}

void
pto_remote_directory_add_left (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  pto_remote_directory_add (block, begin, end);
  add_span (block->left, begin, end);
}

void
pto_remote_directory_add_staying (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  pto_remote_directory_add (block, begin, end);
  add_span (block->stays, begin, end);
}

void
pto_remote_directory_remove (PtoRemoteDirectory *directory, guint64 begin, guint64 end,
                             const PtoRemoteBlock *but)
{
  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);

      if (block->begin >= end)
        return;
      if (block == but)
        continue;
      remove_span (block->good, begin, end);
      remove_span (block->left, begin, end);
      remove_span (block->stays, begin, end);
    }
}

/* Of the spans, what is in the range is good. */
static void
keep_good (PtoRemoteBlock *block, const GArray *spans, guint64 begin, guint64 end)
{
  for (guint i = find_span (spans, begin); i < spans->len; i++)
    {
      const PtoRemoteSpan *span = &g_array_index (spans, PtoRemoteSpan, i);

      if (span->begin >= end)
        return;
      add_span (block->good, MAX (span->begin, begin), MIN (span->end, end));
    }
}

void
pto_remote_directory_remove_copies (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);

      if (block->begin >= end)
        return;
      remove_span (block->good, begin, end);
      keep_good (block, block->left, begin, end);
      keep_good (block, block->stays, begin, end);
    }
}

/* What is in the range is neither one of the spans any more, nor good. */
static void
remove_both (PtoRemoteBlock *block, GArray *spans, guint64 begin, guint64 end)
{
  guint i;

  while ((i = find_span (spans, begin)) < spans->len)
    {
      PtoRemoteSpan span = g_array_index (spans, PtoRemoteSpan, i);

      if (span.begin >= end)
        return;
      span.begin = MAX (span.begin, begin);
      span.end = MIN (span.end, end);
      remove_span (spans, span.begin, span.end);
      remove_span (block->good, span.begin, span.end);
    }
}

void
pto_remote_directory_remove_only (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);

      if (block->begin >= end)
        return;
      remove_both (block, block->left, begin, end);
      remove_both (block, block->stays, begin, end);
    }
}

GArray *
pto_remote_directory_list_left (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof (PtoRemoteLeft));

  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);

      if (block->begin >= end)
        break;
      for (guint k = find_span (block->left, begin); k < block->left->len; k++)
        {
          const PtoRemoteSpan *span = &g_array_index (block->left, PtoRemoteSpan, k);
          PtoRemoteLeft left = { block, MAX (span->begin, begin), MIN (span->end, end) };

          if (left.begin >= left.end)
            break;
          g_array_append_val (list, left);
        }
    }
  return list;
}

GArray *
pto_remote_directory_list_missing (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  GArray *missing = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));

  for (guint i = find_span (block->good, begin); i < block->good->len && begin < end; i++)
    {
      const PtoRemoteSpan *span = &g_array_index (block->good, PtoRemoteSpan, i);
      PtoRemoteSpan gap = { begin, MIN (span->begin, end) };

      if (gap.begin < gap.end)
        g_array_append_val (missing, gap);
      begin = MAX (begin, span->end);
    }
  if (begin < end)
    {
      PtoRemoteSpan gap = { begin, end };

      g_array_append_val (missing, gap);
    }
  return missing;
}

static guint64
count_good (const PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  guint64 n = 0;

  for (guint i = find_span (block->good, begin); i < block->good->len; i++)
    {
      const PtoRemoteSpan *span = &g_array_index (block->good, PtoRemoteSpan, i);

      if (span->begin >= end)
        break;
      n += MIN (span->end, end) - MAX (span->begin, begin);
    }
  return n;
}

guint64
pto_remote_directory_count_missing (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  return end - begin - count_good (block, begin, end);
}

/* --- blocks --- */

/* Of one that the other end has never heard of it need not hear. */
static void
note_dropped (PtoRemoteDirectory *directory, PtoRemoteBlock *block)
{
  if (!g_ptr_array_remove (directory->begun, block))
    g_array_append_val (directory->dropped, block->number);
}

static void
drop (PtoRemoteDirectory *directory, PtoRemoteBlock *block)
{
  guint i = find_index (directory->blocks, block->begin);

  while (g_ptr_array_index (directory->blocks, i) != block)
    i++;
  note_dropped (directory, block);
  directory->bytes -= get_bytes (block);
  g_queue_unlink (&directory->used, &block->link);
  g_ptr_array_remove_index (directory->blocks, i);
}

/* Does no task need it, and is there nothing in it that is nowhere else? */
static gboolean
may_go (const PtoRemoteBlock *block)
{
  return block->users == 0 && block->left->len == 0 && block->stays->len == 0;
}

/* Those that were not used for longest go first. */
static void
make_room (PtoRemoteDirectory *directory, guint64 bytes)
{
  guint64 limit = directory->limit - MIN (directory->limit, directory->owned_bytes / 2);
  GList *next;

  for (GList *link = directory->used.tail; link != NULL; link = next)
    {
      PtoRemoteBlock *block = link->data;

      next = link->prev;
      if (directory->blocks->len < BLOCKS_MAX && bytes <= limit
          && directory->bytes <= limit - bytes)
        return;
      if (may_go (block))
        drop (directory, block);
    }
}

/* In no list yet but that of those that are new. */
static PtoRemoteBlock *
block_new (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  PtoRemoteBlock *block = g_new0 (PtoRemoteBlock, 1);

  block->begin = begin;
  block->end = end;
  block->good = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));
  block->left = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));
  block->stays = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));
  block->link.data = block;
  block->number = ++directory->number;
  g_ptr_array_add (directory->begun, block);
  return block;
}

static PtoRemoteBlock *
begin_block (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  PtoRemoteBlock *block = block_new (directory, begin, end);

  make_room (directory, get_bytes (block));
  directory->bytes += get_bytes (block);
  directory->longest = MAX (directory->longest, end - begin);
  g_ptr_array_insert (directory->blocks, (int) find_index (directory->blocks, begin), block);
  g_queue_push_head_link (&directory->used, &block->link);
  return block;
}

/* --- what the program has --- */

void
pto_remote_directory_own (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  PtoRemoteBlock *block = block_new (directory, begin, end);

  pto_remote_directory_add (block, begin, end);
  directory->owned_bytes += get_bytes (block);
  g_ptr_array_insert (directory->owned, (int) find_index (directory->owned, begin), block);
}

gboolean
pto_remote_directory_disown (PtoRemoteDirectory *directory, guint64 begin)
{
  guint i = find_index (directory->owned, begin);
  PtoRemoteBlock *block
      = i < directory->owned->len ? g_ptr_array_index (directory->owned, i) : NULL;

  if (block == NULL || block->begin != begin)
    return FALSE;
  note_dropped (directory, block);
  directory->owned_bytes -= get_bytes (block);
  g_ptr_array_remove_index (directory->owned, i);
  return TRUE;
}

PtoRemoteBlock *
pto_remote_directory_find_owned (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  guint i = begin < G_MAXUINT64 ? find_index (directory->owned, begin + 1) : 0;
  PtoRemoteBlock *block = i > 0 ? g_ptr_array_index (directory->owned, i - 1) : NULL;

  return block != NULL && end <= block->end ? block : NULL;
}

guint
pto_remote_directory_get_n_owned (PtoRemoteDirectory *directory)
{
  return directory->owned->len;
}

/* --- what tasks use --- */

/* Of those that have all of the range, the one with most of it; NULL: there is none. */
static PtoRemoteBlock *
find_best (PtoRemoteDirectory *directory, guint64 begin, guint64 end, guint64 *most)
{
  PtoRemoteBlock *best = NULL;

  *most = 0;
  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);
      guint64 n;

      if (block->begin > begin)
        break;
      if (block->end < end)
        continue;
      n = count_good (block, begin, end);
      if (best != NULL && n <= *most)
        continue;
      best = block;
      *most = n;
    }
  return best;
}

guint64
pto_remote_directory_find_missing (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  guint64 most;

  if (pto_remote_directory_find_owned (directory, begin, end) != NULL)
    return 0;
  find_best (directory, begin, end, &most);
  return end - begin - most;
}

PtoRemoteBlock *
pto_remote_directory_use (PtoRemoteDirectory *directory, guint64 begin, guint64 end)
{
  guint64 most;
  PtoRemoteBlock *best = pto_remote_directory_find_owned (directory, begin, end);

  if (best != NULL)
    {
      best->users++;
      return best;
    }
  best = find_best (directory, begin, end, &most);
  if (best == NULL)
    best = begin_block (directory, begin, end);
  else
    {
      g_queue_unlink (&directory->used, &best->link);
      g_queue_push_head_link (&directory->used, &best->link);
    }
  best->users++;
  return best;
}

void
pto_remote_directory_let_go (PtoRemoteDirectory *directory, PtoRemoteBlock *block)
{
  block->users--;
}

void
pto_remote_directory_drop_all (PtoRemoteDirectory *directory)
{
  for (guint i = directory->blocks->len; i > 0; i--)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i - 1);

      if (may_go (block))
        drop (directory, block);
    }
}

GArray *
pto_remote_directory_steal_dropped (PtoRemoteDirectory *directory)
{
  GArray *dropped = directory->dropped;

  directory->dropped = g_array_new (FALSE, FALSE, sizeof (guint64));
  return dropped;
}

GPtrArray *
pto_remote_directory_steal_begun (PtoRemoteDirectory *directory)
{
  GPtrArray *begun = directory->begun;

  directory->begun = g_ptr_array_new ();
  return begun;
}

guint64
pto_remote_directory_get_bytes (PtoRemoteDirectory *directory)
{
  return directory->bytes;
}
