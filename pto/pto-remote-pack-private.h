/* pto-remote-pack-private.h: how do tasks, and what has become of them, lie in a message?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The bytes of Run and of its reply (pto-remote-contract.c). They are the hottest that there are,
 * and so are plain structures one after the other, each at a multiple of 8 from the first, in the
 * byte order and with the alignment of both ends: one of another order, or another libpto, is
 * refused by Hello.
 *
 *     Run:    head, dropped (guint64), begun (block), and for each task: task, configuration, cut,
 *             pieces, each with its spans, each with its contents, tensors, scalars, their kinds
 *     reply:  head, and for each of these tasks: done, domain, text, detail, and, if
 * has_written, the contents of all pieces that are written
 *
 * In the words of seed 001 Run is its TASK, for several at once, and the reply its COMPLETION; the
 * configuration, a struct pto_call_config without what is empty at its end, is CallConfigWire, and
 * what a RemoteTensorDescWire has of its memory, which others may overlap, says its piece.
 *
 * A reader believes nothing: whatever does not fit in what came makes it bad, and it gives zeros
 * from then on. Thread safety: one thread each.
 */
#pragma once

#include <glib.h>

#include <string.h>

G_BEGIN_DECLS

typedef struct
{
  guint32 n_tasks, n_dropped, n_begun;
  guint32 record; /* which recorded run of its parent it is of (PTO_RECORD()), or 0 */
} PtoRemoteRunHead;

typedef struct
{
  guint64 number, bytes;
} PtoRemoteRunBlock;

typedef struct
{
  guint8 digest[32];
  guint64 id; /* of the task there, if it is recorded */
  guint32 config_bytes;
  guint32 n_pieces, n_tensors, n_scalars;
  guint32 n_kinds; /* that of scalars, or 0 */
  guint32 reserved;
} PtoRemoteRunTask;

/* Memory of one or more tensors that overlap. What is not read begins as zeros. */
typedef struct
{
  guint64 block, offset, bytes;
  guint32 access; /* enum pto_wire_access */
  guint32 n_spans;
} PtoRemoteRunPiece;

/* What is not there yet. */
typedef struct
{
  guint64 offset; /* in the block */
  guint64 bytes;
} PtoRemoteRunSpan;

/* Where a tensor is: no address goes over the wire. */
typedef struct
{
  guint64 offset; /* in the piece */
  guint32 piece, dtype, n_dims;
  guint32 shape[5];
} PtoRemoteTensorDescWire;

typedef struct
{
  guint64 n_tasks; /* the first ones of those of Run; the others were recalled */
  guint64 ns;      /* from when the message was begun with, until the reply was ready */
} PtoRemoteDoneHead;

typedef struct
{
  guint64 began, ended; /* ns from when the message was begun with */
  guint32 status;       /* 0, or what follows says what went wrong */
  gint32 code;
  guint32 domain_bytes, text_bytes, detail_bytes;
  guint32 has_written; /* 0: they are too many, and are fetched */
} PtoRemoteDone;

/* --- writing --- */

static inline gsize
pto_remote_pack_padding (gsize bytes)
{
  return -bytes & 7;
}

static inline void
pto_remote_pack (GByteArray *to, gconstpointer data, gsize bytes)
{
  static const guint8 zeros[8];

  if (bytes > 0)
    g_byte_array_append (to, data, (guint) bytes);
  g_byte_array_append (to, zeros, (guint) pto_remote_pack_padding (bytes));
}

/* --- reading --- */

typedef struct
{
  const guint8 *at; /* a multiple of 8 */
  gsize left;
  gboolean is_bad;
} PtoRemoteReader;

/* n items of so many bytes, where they are; NULL: there are none, or not so many. */
static inline gconstpointer
pto_remote_read (PtoRemoteReader *reader, guint64 n, gsize size)
{
  const guint8 *at = reader->at;
  gsize bytes;

  if (n > reader->left / size)
    {
      reader->is_bad = TRUE;
      reader->left = 0;
      return NULL;
    }
  bytes = (gsize) n * size;
  bytes += MIN (pto_remote_pack_padding (bytes), reader->left - bytes);
  reader->at += bytes;
  reader->left -= bytes;
  return n > 0 ? at : NULL;
}

/* The next structure; zeros if there is none. */
#define pto_remote_read_one(reader, to)                               \
  G_STMT_START                                                        \
  {                                                                   \
    gconstpointer one_ = pto_remote_read ((reader), 1, sizeof *(to)); \
    if (one_ != NULL)                                                 \
      memcpy ((to), one_, sizeof *(to));                              \
    else                                                              \
      memset ((to), 0, sizeof *(to));                                 \
  }                                                                   \
  G_STMT_END

G_END_DECLS
