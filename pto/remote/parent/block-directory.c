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

struct _PtoDirectory
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

  pto_spans_clear (&block->good);
  g_free (block);
}

PtoDirectory *
pto_directory_new (guint64 limit)
{
  PtoDirectory *directory = g_new0 (PtoDirectory, 1);

  directory->limit = limit;
  directory->blocks = g_ptr_array_new_with_free_func (block_free);
  directory->owned = g_ptr_array_new_with_free_func (block_free);
  directory->dropped = g_array_new (FALSE, FALSE, sizeof (guint64));
  directory->begun = g_ptr_array_new ();
  return directory;
}

void
pto_directory_free (PtoDirectory *directory)
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
find_first (const PtoDirectory *directory, guint64 begin)
{
  return find_index (directory->blocks,
                     begin > directory->longest ? begin - directory->longest : 0);
}

/* --- what is good --- */

/* As bits, so that a change can be about several. */
enum
{
  IS_COPY = 1,   /* what is here is there, too */
  IS_LEFT = 2,   /* it is nowhere else, for a while */
  IS_STAYING = 4 /* and for good */
};

static void
set_span (PtoRemoteBlock *block, guint64 begin, guint64 end, guint64 what)
{
  if (!pto_spans_set (&block->good, begin, end, what))
    g_error ("no memory to note what is at the other end");
}

void
pto_directory_add (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  set_span (block, begin, end, IS_COPY);
}

void
pto_directory_add_left (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  set_span (block, begin, end, IS_LEFT);
}

void
pto_directory_add_staying (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  set_span (block, begin, end, IS_STAYING);
}

/* In all blocks: of the range, what is one of those. */
static void
remove_good (PtoDirectory *directory, guint64 begin, guint64 end, guint64 what)
{
  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);
      struct pto_spans *good = &block->good;

      if (block->begin >= end)
        return;
      if (!pto_spans_reserve (good, 2))
        g_error ("no memory to note what is at the other end");
      pto_spans_cut (good, begin, end);
      for (guint k = pto_spans_find (good, begin); k < good->n && good->list[k].begin < end;)
        if ((good->list[k].tag & what) != 0)
          pto_spans_drop (good, k);
        else
          k++;
    }
}

void
pto_directory_remove (PtoDirectory *directory, guint64 begin, guint64 end)
{
  remove_good (directory, begin, end, IS_COPY | IS_LEFT | IS_STAYING);
}

void
pto_directory_remove_copies (PtoDirectory *directory, guint64 begin, guint64 end)
{
  remove_good (directory, begin, end, IS_COPY);
}

void
pto_directory_remove_only (PtoDirectory *directory, guint64 begin, guint64 end)
{
  remove_good (directory, begin, end, IS_LEFT | IS_STAYING);
}

GArray *
pto_directory_list_left (PtoDirectory *directory, guint64 begin, guint64 end)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof (PtoRemoteLeft));

  for (guint i = find_first (directory, begin); i < directory->blocks->len; i++)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i);

      if (block->begin >= end)
        break;
      PTO_SPANS_EACH (k, &block->good, begin, end)
      {
        const struct pto_span *span = &block->good.list[k];
        PtoRemoteLeft left = { block, MAX (span->begin, begin), MIN (span->end, end) };

        if (span->tag == IS_LEFT)
          g_array_append_val (list, left);
      }
    }
  return list;
}

GArray *
pto_directory_list_missing (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  GArray *missing = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));

  PTO_SPANS_EACH (i, &block->good, begin, end)
  {
    const struct pto_span *span = &block->good.list[i];
    PtoRemoteSpan gap = { begin, span->begin };

    if (gap.begin < gap.end)
      g_array_append_val (missing, gap);
    begin = span->end;
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

  PTO_SPANS_EACH (i, &block->good, begin, end)
  {
    const struct pto_span *span = &block->good.list[i];

    n += MIN (span->end, end) - MAX (span->begin, begin);
  }
  return n;
}

guint64
pto_directory_count_missing (PtoRemoteBlock *block, guint64 begin, guint64 end)
{
  return end - begin - count_good (block, begin, end);
}

/* --- blocks --- */

/* Of one that the other end has never heard of it need not hear. */
static void
note_dropped (PtoDirectory *directory, PtoRemoteBlock *block)
{
  if (!g_ptr_array_remove (directory->begun, block))
    g_array_append_val (directory->dropped, block->number);
}

static void
drop (PtoDirectory *directory, PtoRemoteBlock *block)
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
  gboolean may = block->users == 0;

  for (guint i = 0; may && i < block->good.n; i++)
    may = block->good.list[i].tag == IS_COPY;
  return may;
}

/* Those that were not used for longest go first. */
static void
make_room (PtoDirectory *directory, guint64 bytes)
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
block_new (PtoDirectory *directory, guint64 begin, guint64 end)
{
  PtoRemoteBlock *block = g_new0 (PtoRemoteBlock, 1);

  block->begin = begin;
  block->end = end;
  block->link.data = block;
  block->number = ++directory->number;
  g_ptr_array_add (directory->begun, block);
  return block;
}

static PtoRemoteBlock *
begin_block (PtoDirectory *directory, guint64 begin, guint64 end)
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
pto_directory_own (PtoDirectory *directory, guint64 begin, guint64 end)
{
  PtoRemoteBlock *block = block_new (directory, begin, end);

  pto_directory_add (block, begin, end);
  directory->owned_bytes += get_bytes (block);
  g_ptr_array_insert (directory->owned, (int) find_index (directory->owned, begin), block);
}

gboolean
pto_directory_disown (PtoDirectory *directory, guint64 begin)
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
pto_directory_find_owned (PtoDirectory *directory, guint64 begin, guint64 end)
{
  guint i = begin < G_MAXUINT64 ? find_index (directory->owned, begin + 1) : 0;
  PtoRemoteBlock *block = i > 0 ? g_ptr_array_index (directory->owned, i - 1) : NULL;

  return block != NULL && end <= block->end ? block : NULL;
}

guint
pto_directory_get_n_owned (PtoDirectory *directory)
{
  return directory->owned->len;
}

/* --- what tasks use --- */

/* Of those that have all of the range, the one with most of it; NULL: there is none. */
static PtoRemoteBlock *
find_best (PtoDirectory *directory, guint64 begin, guint64 end, guint64 *most)
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
pto_directory_find_missing (PtoDirectory *directory, guint64 begin, guint64 end)
{
  guint64 most;

  if (pto_directory_find_owned (directory, begin, end) != NULL)
    return 0;
  find_best (directory, begin, end, &most);
  return end - begin - most;
}

PtoRemoteBlock *
pto_directory_use (PtoDirectory *directory, guint64 begin, guint64 end)
{
  guint64 most;
  PtoRemoteBlock *best = pto_directory_find_owned (directory, begin, end);

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
pto_directory_let_go (PtoRemoteBlock *block)
{
  block->users--;
}

void
pto_directory_drop_all (PtoDirectory *directory)
{
  for (guint i = directory->blocks->len; i > 0; i--)
    {
      PtoRemoteBlock *block = g_ptr_array_index (directory->blocks, i - 1);

      if (may_go (block))
        drop (directory, block);
    }
}

GArray *
pto_directory_steal_dropped (PtoDirectory *directory)
{
  GArray *dropped = directory->dropped;

  directory->dropped = g_array_new (FALSE, FALSE, sizeof (guint64));
  return dropped;
}

GPtrArray *
pto_directory_steal_begun (PtoDirectory *directory)
{
  GPtrArray *begun = directory->begun;

  directory->begun = g_ptr_array_new ();
  return begun;
}

guint64
pto_directory_get_bytes (PtoDirectory *directory)
{
  return directory->bytes;
}
