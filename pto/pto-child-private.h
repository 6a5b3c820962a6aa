/* pto-child-private.h: what does a child of a worker do with the requests of its parent?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Made in the parent, before the fork; serves in the child, where it has been copied, or on the
 * thread of a thread child. It keeps a table of its own of what it can run, by digest: filled at
 * START from what the parent had registered when it was forked, changed by REGISTER and UNREGISTER
 * afterwards. The parent's registry is never asked: another thread of the parent may have held its
 * lock when the fork was made.
 *
 * Thread safety: served by one thread; everything else by its parent, before and after that.
 */
#pragma once

#include "process/service.h"

#include "pto-identity-private.h"
#include "pto-trace-private.h"
#include "pto-worker.h"

G_BEGIN_DECLS

typedef struct _PtoChild PtoChild;

/* What a parent knows and a child asks. */
typedef struct
{
  /* Of START: what the parent has registered, PtoRegistration. In a process child the copy that was
   * made just before its fork; otherwise the caller's thread may take a new one. Transfer full. */
  GPtrArray *(*list) (gpointer data, guint index);
  PtoImportFunc import; /* for import paths */
  gpointer data;
  guint index;     /* which of its children this is */
  gboolean is_far; /* on another machine, where contents of exceptions are not believed */
} PtoChildParent;

/* worker: a worker that runs what it is asked to, of level 2 with run_callable, of another level as
 * an orchestration; NULL: a SUB child. path: for messages. */
PtoChild *pto_child_new (PtoWorker *worker, const char *path, const PtoChildParent *parent);
void pto_child_free (PtoChild *child);
/* serve() and its data; is_orphan is left to the level. */
void pto_child_get_server (PtoChild *child, struct pto_server *server);

/* As the probe of a server: uses GLib's locks that code without an object of its own comes to. */
void pto_child_probe (void *data);

/* What is asked for by TRACE, whose body is the address of an array of these in memory that all
 * see: one for each worker, by its number. */
typedef struct
{
  guint64 address; /* in: where to; 0: only how large */
  guint64 room;
  guint64 size; /* out: of what there is, or was written; 0: nothing */
} PtoChildTrace;

/* Answers TRACE with such pieces; TRUE: all of them were written. child: its number. */
gboolean pto_child_tell_pieces (const struct pto_call *call, guint child,
                                const PtoTracePieces *pieces);
/* Of a far one, which shares no memory: what it would answer, as bytes, once; NULL: nothing. */
GByteArray *pto_child_take_record (PtoChild *child);

/* The body of REGISTER, and back: descriptor and sources, each behind its length. is_named: just
 * some workers were named to have it: one that can not have it says so, where it might otherwise
 * wait for a task. */
GBytes *pto_child_pack_registration (GBytes *descriptor, GBytes *sources, gboolean is_named);
gboolean pto_child_unpack_registration (const guint8 *body, guint64 bytes, GBytes **descriptor,
                                        GBytes **sources, gboolean *is_named);

/* Nothing is known of that digest. path: of whom it was asked. */
void pto_child_report_unknown (const guint8 *digest, const char *path, GError **error);

/* A GError as a child says it, with the contents of an exception or without, and as its parent
 * raises it. The first frees it, and gives what a server answers: 0 without one. */
guint32 pto_failure_take_error (struct pto_failure *failure, GError *error, gboolean with_contents);
void pto_failure_propagate (const struct pto_failure *failure, GError **error);

G_END_DECLS
