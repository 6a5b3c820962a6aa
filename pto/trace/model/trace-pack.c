/* trace-pack.c: how does a trace come from the process that made it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A head of 20 numbers, then starts, drops and records as they lie in a trace, then the names of
 * kernels and of files and the title, each ended by 0; of a level also its path and rows. All
 * numbers are little endian. Behind that, at a multiple of 8, its pieces: how
 * many, how many were left out, and each as child, task, size and a trace. Bytes come from a file,
 * or from a process that may have written anything into them. doc/traces.md tells of it.
 */
#include "config.h"

#include "core/pack.h"

#include "trace.h"

#include <string.h>

/* Deeper than any tree of workers. */
#define DEPTH_MAX 16

static void pack_pieces (struct pto_pack *pack, PtoTracePieces *pieces, const guint32 *child,
                         guint depth);

static guint64
count_pieces (const PtoTracePieces *pieces)
{
  struct pto_pack pack = pto_pack_count ();

  pack_pieces (&pack, (PtoTracePieces *) pieces, NULL, 0);
  return pack.at;
}

/* A number of 32 bits, of which there are 64. */
static void
pack_number (struct pto_pack *pack, guint32 *number)
{
  guint64 wide = *number;

  PTO_PACK (pack, wide);
  if (wide > G_MAXUINT32)
    pto_pack_refuse (pack);
  *number = (guint32) wide;
}

/* Items that a reader gets a copy of. */
static void
pack_items (struct pto_pack *pack, gpointer *items, guint64 n, gsize size)
{
  const void *at = pto_pack_array (pack, *items, n, size);

  if (pack->way != PTO_PACK_READS || pack->bad)
    return;
  g_free (*items);
  *items = g_malloc0 (MAX (n, 1) * size);
  if (at != NULL)
    memcpy (*items, at, n * size);
}

static void
pack_text (struct pto_pack *pack, char **text)
{
  const guint8 *at = pack->bytes + pack->at;
  const guint8 *end;

  if (pack->way != PTO_PACK_READS)
    {
      pto_pack_value (pack, *text, strlen (*text) + 1);
      return;
    }
  end = memchr (at, 0, pack->size - pack->at);
  if (end == NULL)
    {
      pto_pack_refuse (pack);
      return;
    }
  g_free (*text);
  *text = g_utf8_make_valid ((const char *) at, -1);
  pto_pack_next (pack, (guint64) (end + 1 - at));
}

/* n texts, ended by NULL. */
static void
pack_texts (struct pto_pack *pack, char ***texts, guint n)
{
  if (pack->way == PTO_PACK_READS)
    {
      if (n > pack->size - pack->at)
        pto_pack_refuse (pack);
      g_strfreev (*texts);
      *texts = g_new0 (char *, pack->bad ? 1 : (gsize) n + 1);
    }
  for (guint i = 0; i < n && !pack->bad; i++)
    pack_text (pack, &(*texts)[i]);
}

static void
pack_all_texts (struct pto_pack *pack, PtoTrace *self)
{
  pack_texts (pack, &self->kernel_names, self->n_kernel_names);
  pack_texts (pack, &self->files, self->n_files);
  pack_text (pack, &self->title);
  if (!pto_trace_is_level (self))
    return;
  pack_text (pack, &self->path);
  pack_texts (pack, &self->rows, self->topology.n_cores);
}

static guint64
count_texts (PtoTrace *self)
{
  struct pto_pack pack = pto_pack_count ();

  pack_all_texts (&pack, self);
  return pack.at;
}

/* Every buffer's records lie behind those of the one before it. */
static gboolean
check_starts (const guint64 *starts, guint64 n_buffers, guint64 n_records)
{
  if (starts[0] != 0 || starts[n_buffers] != n_records)
    return FALSE;
  for (guint64 b = 0; b < n_buffers; b++)
    if (starts[b] > starts[b + 1])
      return FALSE;
  return TRUE;
}

/* A trace that a language's binding has made has none. */
static gboolean
check_n_buffers (const PtoTrace *self)
{
  guint64 n_actors = (guint64) self->topology.n_schedulers + self->topology.n_cores;

  return self->n_buffers == 1 + n_actors || (self->n_buffers == 0 && n_actors == 0);
}

static void
pack_trace (struct pto_pack *pack, PtoTrace *self, guint depth)
{
  struct pto_trace_topology *topology = &self->topology;
  gboolean reads = pack->way == PTO_PACK_READS;
  guint32 virtual_clock = topology->virtual_clock;
  guint32 n_rows = pto_trace_is_level (self) ? topology->n_cores : 0;
  guint64 n_records = self->starts[self->n_buffers];
  /* Counting needs no numbers. With them each depth would be counted twice as often. */
  guint64 n_text = pack->way == PTO_PACK_WRITES ? count_texts (self) : 0;
  guint64 n_pieces = pack->way == PTO_PACK_WRITES ? count_pieces (&self->pieces) : 0;
  guint64 text;

  pack_number (pack, &topology->n_schedulers);
  pack_number (pack, &topology->n_cores);
  pack_number (pack, &topology->n_clusters);
  pack_number (pack, &topology->aic_per_cluster);
  pack_number (pack, &topology->aiv_per_cluster);
  pack_number (pack, &topology->level);
  pack_number (pack, &topology->n_workers);
  pack_number (pack, &topology->recorded);
  pack_number (pack, &virtual_clock);
  topology->virtual_clock = virtual_clock != 0;
  PTO_PACK (pack, topology->counter_hz);
  PTO_PACK (pack, topology->begin_ns);
  PTO_PACK (pack, topology->end_ns);
  PTO_PACK (pack, topology->run_ns);
  pack_number (pack, &self->n_buffers);
  pack_number (pack, &self->n_kernel_names);
  pack_number (pack, &self->n_files);
  PTO_PACK (pack, n_records);
  pack_number (pack, &n_rows);
  PTO_PACK (pack, n_text);
  PTO_PACK (pack, n_pieces);
  if (reads
      && (self->n_files > PTO_TRACE_FILES_MAX || depth > DEPTH_MAX || !check_n_buffers (self)
          || n_rows != (pto_trace_is_level (self) ? topology->n_cores : 0)))
    pto_pack_refuse (pack);
  pack_items (pack, (gpointer *) &self->starts, (guint64) self->n_buffers + 1, sizeof (guint64));
  pack_items (pack, (gpointer *) &self->drops, self->n_buffers, sizeof (guint64));
  pack_items (pack, (gpointer *) &self->records, n_records, sizeof (struct pto_trace_record));
  if (pack->bad || (reads && !check_starts (self->starts, self->n_buffers, n_records)))
    {
      pto_pack_refuse (pack);
      return;
    }
  text = pack->at;
  pack_all_texts (pack, self);
  if (reads && pack->at - text != n_text)
    pto_pack_refuse (pack);
  pto_pack_align (pack);
  if (reads && n_pieces > pack->size - pack->at)
    pto_pack_refuse (pack);
  pack_pieces (pack, &self->pieces, NULL, depth + 1);
}

static PtoTrace *
read_trace (const guint8 *bytes, guint64 size, guint depth)
{
  g_autoptr (PtoTrace) self = g_object_new (PTO_TYPE_TRACE, NULL);
  struct pto_pack pack = pto_pack_read (bytes, size);

  pack_trace (&pack, self, depth);
  for (guint i = 0; i < self->pieces.list->len && !pack.bad; i++)
    if (((const PtoTracePiece *) g_ptr_array_index (self->pieces.list, i))->child
        >= (pto_trace_is_level (self) ? self->topology.n_cores : 0))
      pto_pack_refuse (&pack);
  if (pack.bad)
    return NULL;
  for (guint b = 0; b < self->n_buffers; b++)
    self->dropped += self->drops[b];
  pto_trace_settle (self);
  return g_steal_pointer (&self);
}

/* child: whose all of them are, for a reader; NULL: each says so. */
static void
pack_pieces (struct pto_pack *pack, PtoTracePieces *pieces, const guint32 *child, guint depth)
{
  guint64 n = pieces->list->len;
  guint64 n_left_out = pieces->n_left_out;
  guint64 records_left_out = pieces->records_left_out;

  PTO_PACK (pack, n);
  PTO_PACK (pack, n_left_out);
  PTO_PACK (pack, records_left_out);
  if (pack->way == PTO_PACK_READS)
    {
      pieces->n_left_out += n_left_out;
      pieces->records_left_out += records_left_out;
    }
  for (guint64 i = 0; i < n && !pack->bad; i++)
    {
      PtoTracePiece *piece
          = pack->way != PTO_PACK_READS ? g_ptr_array_index (pieces->list, i) : NULL;
      guint64 number = piece != NULL ? piece->child : 0;
      guint64 task = piece != NULL ? piece->task : 0;
      guint64 size = pack->way == PTO_PACK_WRITES ? pto_trace_get_packed_size (piece->trace) : 0;
      const guint8 *bytes;
      PtoTrace *trace;

      PTO_PACK (pack, number);
      PTO_PACK (pack, task);
      PTO_PACK (pack, size);
      if (piece != NULL)
        {
          pack_trace (pack, piece->trace, depth);
          continue;
        }
      bytes = pto_pack_array (pack, NULL, size, 1);
      trace = bytes != NULL && size % 8 == 0 ? read_trace (bytes, size, depth) : NULL;
      if (trace == NULL)
        pto_pack_refuse (pack);
      else
        pto_trace_pieces_take (pieces, child != NULL ? *child : (guint32) number, task, trace);
    }
}

gsize
pto_trace_get_packed_size (PtoTrace *trace)
{
  struct pto_pack pack = pto_pack_count ();

  pack_trace (&pack, trace, 0);
  return pack.at;
}

void
pto_trace_pack (PtoTrace *trace, guint8 *bytes)
{
  struct pto_pack pack = pto_pack_write (bytes, G_MAXSIZE);

  pack_trace (&pack, trace, 0);
}

gsize
pto_trace_pieces_get_packed_size (const PtoTracePieces *pieces)
{
  return count_pieces (pieces);
}

void
pto_trace_pieces_pack (const PtoTracePieces *pieces, guint8 *bytes)
{
  struct pto_pack pack = pto_pack_write (bytes, G_MAXSIZE);

  pack_pieces (&pack, (PtoTracePieces *) pieces, NULL, 0);
}

PtoTrace *
pto_trace_new_from_packed (const guint8 *bytes, gsize size)
{
  return read_trace (bytes, size, 0);
}

gboolean
pto_trace_pieces_unpack (PtoTracePieces *pieces, guint32 child, const guint8 *bytes, gsize size)
{
  struct pto_pack pack = pto_pack_read (bytes, size);

  pack_pieces (&pack, pieces, &child, 1);
  return !pack.bad;
}
