/* serve.h: what is the far end of a remote worker, to its parts?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Three files, one question each: how a process becomes a worker, and what comes
 * (serve.c); callables (-register.c); memory and tasks (-task.c).
 *
 * Thread safety: the serving thread, but where a word says so.
 */
#pragma once

#include "process/service.h"

#include "callable/identity.h"
#include "remote/wire/fabric.h"
#include "remote/wire/remote-messages.h"
#include "worker/child-server.h"
#include "worker/worker.h"

G_BEGIN_DECLS

/* Where the environment has this a worker says on standard error, before anything else, which one
 * it is. The same is in ../../programs/pto-remote/private.h. */
#define PTO_REMOTE_LISTENED "PTO_REMOTE_LISTENED"
#define PTO_REMOTE_IS "pto-remote: this is "

/* Memory for tensors, of one task or many: when it is not needed any more is for the other end to
 * say. */
typedef struct
{
  guint64 number;
  guint64 bytes;
  guint64 address; /* 0: of no bytes */
} PtoRemoteMemory;

typedef struct
{
  PtoRemoteStream *stream;     /* read by the reader, written by both */
  PtoRemoteFabric *fabric;     /* the same, of what is too large for a message; NULL: the stream */
  struct pto_mailbox *mailbox; /* cancel: W: reader, R: server; beat: the other way round */

  /* The serving thread's, and the reader's while n_open is 0. */
  PtoWorker *worker;
  PtoChild *child;
  struct pto_server server;
  GHashTable *blocks;          /* by their numbers */
  struct pto_failure *failure; /* of the task that was run last, or nothing */
  GError *unheard;             /* of what was put for the next: the first, as these have no reply */
  gboolean has_arena;
  gboolean takes_serialized; /* both ends have said so */
  GByteArray *contents;      /* of which parts have come */
  GByteArray *record;        /* of which parts are fetched; or NULL */
  guint8 contents_digest[PTO_DIGEST_SIZE];

  GMutex lock;
  GCond changed;
  GQueue calls; /* GDBusMessage; W: reader pushes, server pops */
  guint n_open; /* that were pushed and are not served yet */
  /* Tasks of the last Run that was pushed: those that may begin, W: reader; that have, W: server.
   */
  guint n_wanted;
  guint n_begun;
  gboolean has_ended;
} PtoFarEnd;

/* --- serve.c --- */

/* Is a function as bytes taken? Anything else is. */
gboolean pto_far_end_check_import (PtoFarEnd *session, const char *path, GError **error);
gboolean pto_far_end_wants_a_reply (GDBusMessage *call);
/* As request of the child, with what the mailbox would have; its status. */
guint32 pto_far_end_serve_call (PtoFarEnd *session, struct pto_call *call,
                                struct pto_failure *failure);
/* The same, of what succeeds or not. */
gboolean pto_far_end_ask (PtoFarEnd *session, struct pto_call *call, GError **error);
/* That argument of a message, which holder keeps; NULL: it is no digest. */
const guint8 *pto_far_end_get_digest (GVariant *body, guint child, GVariant **holder,
                                      GError **error);

/* --- serve-register.c: Has, Content, Register, Commit, Unregister --- */

GVariant *pto_far_end_tell_there (GVariant *body, GError **error);
gboolean pto_far_end_take_contents (PtoFarEnd *session, GVariant *body, GError **error);
gboolean pto_far_end_register (PtoFarEnd *session, GVariant *body, GError **error);
gboolean pto_far_end_commit (PtoFarEnd *session, GVariant *body, GError **error);
gboolean pto_far_end_unregister (PtoFarEnd *session, GVariant *body, GError **error);

/* --- serve-task.c: Begin, Put, Get, Copy, Run, Trace --- */

void pto_far_end_block_free (gpointer block);
gboolean pto_far_end_begin (PtoFarEnd *session, GVariant *body, GError **error);
/* By the reader, while nothing is served: the memory is that of who serves. FALSE: the connection
 * is lost, or it is not known any more where a message begins; refused: what is wrong is told. */
gboolean pto_far_end_put_bytes (PtoFarEnd *session, GVariant *body, GError **refused,
                                GError **error);
/* Answers by itself. */
gboolean pto_far_end_send_contents (PtoFarEnd *session, GDBusMessage *message, GError **error);
gboolean pto_far_end_copy (PtoFarEnd *session, GVariant *body, GError **error);
GVariant *pto_far_end_run_tasks (PtoFarEnd *session, GVariant *body, GError **error);
GVariant *pto_far_end_tell_record (PtoFarEnd *session, GVariant *body, GError **error);

G_END_DECLS
