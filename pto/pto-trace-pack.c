/* pto-trace-pack.c: how does a trace come from the process that made it?
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

#include "pto-trace-private.h"

#include <string.h>

typedef struct
{
  guint64 n_schedulers; /* to run_ns as in struct pto_trace_topology */
  guint64 n_cores;
  guint64 n_clusters;
  guint64 aic_per_cluster;
  guint64 aiv_per_cluster;
  guint64 level;
  guint64 n_workers;
  guint64 recorded;
  guint64 virtual_clock;
  guint64 counter_hz;
  guint64 begin_ns;
  guint64 end_ns;
  guint64 run_ns;
  guint64 n_buffers;
  guint64 n_names;
  guint64 n_files;
  guint64 n_records;
  guint64 n_rows;
  guint64 n_text;   /* bytes */
  guint64 n_pieces; /* bytes, after n_text rounded up */
} Head;

typedef struct
{
  guint64 n;
  guint64 n_left_out;
  guint64 records_left_out;
} PiecesHead;

typedef struct
{
  guint64 child;
  guint64 task;
  guint64 size; /* a multiple of 8 */
} PieceHead;

G_STATIC_ASSERT (G_BYTE_ORDER == G_LITTLE_ENDIAN);
G_STATIC_ASSERT (sizeof (Head) == 20 * sizeof (guint64));

/* Deeper than any tree of workers. */
#define DEPTH_MAX 16

static gsize
round_up (gsize size)
{
  return (size + 7) & ~(gsize) 7;
}

static gsize
get_text_size (PtoTrace *trace)
{
  gsize text = strlen (trace->title) + 1;

  for (guint i = 0; i < trace->n_kernel_names; i++)
    text += strlen (trace->kernel_names[i]) + 1;
  for (guint i = 0; i < trace->n_files; i++)
    text += strlen (trace->files[i]) + 1;
  if (!pto_trace_is_level (trace))
    return text;
  text += strlen (trace->path) + 1;
  for (guint i = 0; i < trace->topology.n_cores; i++)
    text += strlen (trace->rows[i]) + 1;
  return text;
}

gsize
pto_trace_get_packed_size (PtoTrace *trace)
{
  return sizeof (Head) + (2 * (gsize) trace->n_buffers + 1) * sizeof (guint64)
         + trace->starts[trace->n_buffers] * sizeof (struct pto_trace_record)
         + round_up (get_text_size (trace)) + pto_trace_pieces_get_packed_size (&trace->pieces);
}

static guint8 *
put (guint8 *to, gconstpointer from, gsize size)
{
  if (size > 0)
    memcpy (to, from, size);
  return to + size;
}

void
pto_trace_pack (PtoTrace *trace, guint8 *bytes)
{
  guint8 *at = bytes;
  const struct pto_trace_topology *topology = &trace->topology;
  Head head = { .n_schedulers = topology->n_schedulers,
                .n_cores = topology->n_cores,
                .n_clusters = topology->n_clusters,
                .aic_per_cluster = topology->aic_per_cluster,
                .aiv_per_cluster = topology->aiv_per_cluster,
                .level = topology->level,
                .n_workers = topology->n_workers,
                .recorded = topology->recorded,
                .virtual_clock = topology->virtual_clock,
                .counter_hz = topology->counter_hz,
                .begin_ns = topology->begin_ns,
                .end_ns = topology->end_ns,
                .run_ns = topology->run_ns,
                .n_buffers = trace->n_buffers,
                .n_names = trace->n_kernel_names,
                .n_files = trace->n_files,
                .n_records = trace->starts[trace->n_buffers],
                .n_rows = pto_trace_is_level (trace) ? trace->topology.n_cores : 0,
                .n_text = get_text_size (trace),
                .n_pieces = pto_trace_pieces_get_packed_size (&trace->pieces) };
  static const guint8 zeros[8];

  at = put (at, &head, sizeof head);
  at = put (at, trace->starts, (head.n_buffers + 1) * sizeof (guint64));
  at = put (at, trace->drops, head.n_buffers * sizeof (guint64));
  at = put (at, trace->records, head.n_records * sizeof (struct pto_trace_record));
  for (guint i = 0; i < trace->n_kernel_names; i++)
    at = put (at, trace->kernel_names[i], strlen (trace->kernel_names[i]) + 1);
  for (guint i = 0; i < trace->n_files; i++)
    at = put (at, trace->files[i], strlen (trace->files[i]) + 1);
  at = put (at, trace->title, strlen (trace->title) + 1);
  if (pto_trace_is_level (trace))
    at = put (at, trace->path, strlen (trace->path) + 1);
  for (guint i = 0; i < head.n_rows; i++)
    at = put (at, trace->rows[i], strlen (trace->rows[i]) + 1);
  at = put (at, zeros, round_up (head.n_text) - head.n_text);
  pto_trace_pieces_pack (&trace->pieces, at);
}

gsize
pto_trace_pieces_get_packed_size (const PtoTracePieces *pieces)
{
  gsize size = sizeof (PiecesHead);

  for (guint i = 0; i < pieces->list->len; i++)
    size += sizeof (PieceHead)
            + pto_trace_get_packed_size (
                ((const PtoTracePiece *) g_ptr_array_index (pieces->list, i))->trace);
  return size;
}

void
pto_trace_pieces_pack (const PtoTracePieces *pieces, guint8 *bytes)
{
  PiecesHead head = { pieces->list->len, pieces->n_left_out, pieces->records_left_out };

  bytes = put (bytes, &head, sizeof head);
  for (guint i = 0; i < pieces->list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (pieces->list, i);
      PieceHead own = { piece->child, piece->task, pto_trace_get_packed_size (piece->trace) };

      bytes = put (bytes, &own, sizeof own);
      pto_trace_pack (piece->trace, bytes);
      bytes += own.size;
    }
}

static gconstpointer
take (const guint8 **at, gsize *left, guint64 n, gsize size)
{
  gconstpointer taken = *at;

  if (n > *left / size)
    return NULL;
  *at += n * size;
  *left -= n * size;
  return taken;
}

static char *
take_text (const guint8 **at, gsize *left)
{
  const guint8 *end = memchr (*at, 0, *left);
  const char *text = (const char *) *at;

  if (end == NULL)
    return NULL;
  *left -= (gsize) (end + 1 - *at);
  *at = end + 1;
  return g_utf8_make_valid (text, -1);
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

/* n texts, ended by NULL; NULL: there are not so many. */
static char **
take_texts (const guint8 **at, gsize *left, guint64 n)
{
  g_auto (GStrv) texts = NULL;

  if (n > *left)
    return NULL;
  texts = g_new0 (char *, n + 1);
  for (guint64 i = 0; i < n; i++)
    {
      texts[i] = take_text (at, left);
      if (texts[i] == NULL)
        return NULL;
    }
  return g_steal_pointer (&texts);
}

/* FALSE: it is none. */
static gboolean
read_topology (const Head *head, struct pto_trace_topology *topology)
{
  const guint64 *numbers = &head->n_schedulers;

  for (guint i = 0; i < 9; i++) /* to virtual_clock */
    if (numbers[i] > G_MAXUINT32)
      return FALSE;
  *topology = (struct pto_trace_topology){ .n_schedulers = (guint32) head->n_schedulers,
                                           .n_cores = (guint32) head->n_cores,
                                           .n_clusters = (guint32) head->n_clusters,
                                           .aic_per_cluster = (guint32) head->aic_per_cluster,
                                           .aiv_per_cluster = (guint32) head->aiv_per_cluster,
                                           .level = (guint32) head->level,
                                           .n_workers = (guint32) head->n_workers,
                                           .recorded = (guint32) head->recorded,
                                           .virtual_clock = head->virtual_clock != 0,
                                           .counter_hz = head->counter_hz,
                                           .begin_ns = head->begin_ns,
                                           .end_ns = head->end_ns,
                                           .run_ns = head->run_ns };
  return TRUE;
}

/* A trace that a language's binding has made has none. */
static gboolean
check_n_buffers (const Head *head)
{
  guint64 n_actors = head->n_schedulers + head->n_cores;

  return head->n_buffers == 1 + n_actors || (head->n_buffers == 0 && n_actors == 0);
}

static gboolean unpack_pieces (PtoTracePieces *pieces, const guint32 *child, const guint8 *bytes,
                               gsize size, guint depth);

static PtoTrace *
unpack_trace (const guint8 *bytes, gsize size, guint depth)
{
  g_autoptr (PtoTrace) self = NULL;
  const guint64 *starts, *drops;
  gconstpointer records;
  const guint8 *pieces;
  struct pto_trace_topology topology;
  Head head;

  if (size < sizeof head)
    return NULL;
  memcpy (&head, bytes, sizeof head);
  bytes += sizeof head;
  size -= sizeof head;
  if (!read_topology (&head, &topology) || head.n_buffers > G_MAXUINT32
      || head.n_names > G_MAXUINT32 || head.n_files > PTO_TRACE_FILES_MAX || depth > DEPTH_MAX
      || head.n_rows != (topology.level > 2 ? topology.n_cores : 0))
    return NULL;
  starts = take (&bytes, &size, head.n_buffers + 1, sizeof *starts);
  drops = starts != NULL ? take (&bytes, &size, head.n_buffers, sizeof *drops) : NULL;
  records = drops != NULL ? take (&bytes, &size, head.n_records, sizeof (struct pto_trace_record))
                          : NULL;
  if (records == NULL || !check_starts (starts, head.n_buffers, head.n_records)
      || !check_n_buffers (&head))
    return NULL;

  self = g_object_new (PTO_TYPE_TRACE, NULL);
  self->topology = topology;
  self->n_buffers = (guint) head.n_buffers;
  g_free (self->starts);
  self->starts = g_memdup2 (starts, (head.n_buffers + 1) * sizeof *starts);
  self->drops = g_renew (guint64, self->drops, MAX (head.n_buffers, 1));
  put ((guint8 *) self->drops, drops, head.n_buffers * sizeof *drops);
  for (guint64 b = 0; b < head.n_buffers; b++)
    self->dropped += self->drops[b];
  self->records = g_renew (struct pto_trace_record, self->records, MAX (head.n_records, 1));
  put ((guint8 *) self->records, records, head.n_records * sizeof (struct pto_trace_record));
  if (head.n_text > size || round_up (head.n_text) > size
      || head.n_pieces > size - round_up (head.n_text))
    return NULL;
  pieces = bytes + round_up (head.n_text);
  size = head.n_text;
  g_strfreev (self->kernel_names);
  self->kernel_names = take_texts (&bytes, &size, head.n_names);
  if (self->kernel_names == NULL)
    return NULL;
  self->n_kernel_names = (guint) head.n_names;
  g_strfreev (self->files);
  self->files = take_texts (&bytes, &size, head.n_files);
  if (self->files == NULL)
    return NULL;
  self->n_files = (guint) head.n_files;
  g_free (self->title);
  self->title = take_text (&bytes, &size);
  if (self->title == NULL)
    return NULL;
  if (pto_trace_is_level (self))
    {
      self->path = take_text (&bytes, &size);
      if (self->path != NULL)
        self->rows = take_texts (&bytes, &size, head.n_rows);
      if (self->rows == NULL)
        return NULL;
    }
  if (!unpack_pieces (&self->pieces, NULL, pieces, head.n_pieces, depth + 1))
    return NULL;
  for (guint i = 0; i < self->pieces.list->len; i++)
    if (((const PtoTracePiece *) g_ptr_array_index (self->pieces.list, i))->child >= head.n_rows)
      return NULL;
  pto_trace_settle (self);
  return g_steal_pointer (&self);
}

/* child: whose all of them are; NULL: each says so. */
static gboolean
unpack_pieces (PtoTracePieces *pieces, const guint32 *child, const guint8 *bytes, gsize size,
               guint depth)
{
  PiecesHead head;

  if (size < sizeof head)
    return FALSE;
  memcpy (&head, bytes, sizeof head);
  bytes += sizeof head;
  size -= sizeof head;
  pieces->n_left_out += head.n_left_out;
  pieces->records_left_out += head.records_left_out;
  for (guint64 i = 0; i < head.n; i++)
    {
      PieceHead own;
      PtoTrace *trace;

      if (size < sizeof own)
        return FALSE;
      memcpy (&own, bytes, sizeof own);
      bytes += sizeof own;
      size -= sizeof own;
      if (own.size > size || own.size % 8 != 0)
        return FALSE;
      trace = unpack_trace (bytes, own.size, depth);
      if (trace == NULL)
        return FALSE;
      pto_trace_pieces_take (pieces, child != NULL ? *child : (guint32) own.child, own.task, trace);
      bytes += own.size;
      size -= own.size;
    }
  return TRUE;
}

PtoTrace *
pto_trace_new_from_packed (const guint8 *bytes, gsize size)
{
  return unpack_trace (bytes, size, 0);
}

gboolean
pto_trace_pieces_unpack (PtoTracePieces *pieces, guint32 child, const guint8 *bytes, gsize size)
{
  return unpack_pieces (pieces, &child, bytes, size, 1);
}
