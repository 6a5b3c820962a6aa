/* task-format.h: how do tasks, and what has become of them, lie in a message?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The bytes of Run and of its reply (contract.c), packed (core/pack.h), each structure and each
 * array from a multiple of 8 on. They are the hottest that there are.
 *
 *     Run:    head, dropped (guint64), begun (block), and for each task: a call's head
 *             (pto_call_pack_head()), pieces, each with its spans, each with its contents, and the
 *             call's arguments
 *     reply:  head, and for each of these tasks: done, domain, text, detail, and, if
 *             has_written, the contents of all pieces that are written
 *
 * In the words of seed 001 Run is its TASK, for several at once, and the reply its COMPLETION; the
 * configuration, a struct pto_call_config without what is empty at its end, is CallConfigWire, and
 * what a RemoteTensorDescWire has of its memory, which others may overlap, says its piece. Both
 * ends agree on the form by PTO_REMOTE_PROTOCOL, which Hello compares.
 *
 * Thread safety: one thread each.
 */
#pragma once

#include "core/pack.h"

#include "remote-messages.h"

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

/* One of them. Its fields lie as they are declared, with nothing between them. */
#define pto_remote_pack(pack, structure) (pto_pack_align (pack), PTO_PACK ((pack), *(structure)))
G_STATIC_ASSERT (sizeof (PtoRemoteRunHead) == 16);
G_STATIC_ASSERT (sizeof (PtoRemoteRunBlock) == 16);
G_STATIC_ASSERT (sizeof (PtoRemoteRunPiece) == 32);
G_STATIC_ASSERT (sizeof (PtoRemoteRunSpan) == 16);
G_STATIC_ASSERT (sizeof (PtoRemoteDoneHead) == 16);
G_STATIC_ASSERT (sizeof (PtoRemoteDone) == 40);

/* Bytes, or a reader's where they lie; NULL: there are none, or not so many. */
static inline const guint8 *
pto_remote_pack_bytes (struct pto_pack *pack, gconstpointer bytes, guint64 n)
{
  return pto_pack_array (pack, bytes, n, 1);
}

/* A message of type (ay) that is written. */
static inline GVariant *
pto_remote_take_packed (struct pto_pack *pack)
{
  g_autoptr (GBytes) bytes = NULL;

  pto_pack_align (pack);
  bytes = g_bytes_new_with_free_func (pack->bytes, pack->at, free, pack->bytes);
  return g_variant_new ("(@ay)", g_variant_new_from_bytes (G_VARIANT_TYPE ("ay"), bytes, TRUE));
}

G_END_DECLS
