/* bridge-parts.h: what do the parts of the process behind a remote worker's
 * mailbox know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Six files, one question each: the connection, its begin and end, and calls (bridge.c);
 * what is sent of callables (-register.c), of tasks (-task.c), what is left there (-left.c), of
 * memory that the program has there
 * (-memory.c) and of records (-record.c).
 *
 * Thread safety: the serving thread, but where a word says so.
 */
#pragma once

#include "core/task.h"
#include "process/service.h"
#include "process/write-log.h"

#include "callable/identity.h"
#include "machine/machine.h"
#include "remote/wire/fabric.h"
#include "remote/wire/liveness.h"
#include "remote/wire/remote-messages.h"
#include "trace/model/trace.h"
#include "block-directory.h"

G_BEGIN_DECLS

/* bridge.h */
typedef struct _PtoBridge PtoBridge;

/* Tasks of one request that are in one message. */
typedef struct
{
  /* Of each of them in the request, which may have others, and of the first that is not sent yet
   * (G_MAXUINT: there is none). */
  guint numbers[PTO_TOGETHER_MAX + 1];
  guint n;
  /* The others begin there, or have. G_MAXUINT: they were not recalled. */
  guint kept;
  gboolean is_recalled;
} PtoRemoteBatch;

struct _PtoBridge
{
  /* Immutable. */
  PtoTreeNode *node; /* of the worker, which is owned */
  char *path;
  PtoChildParent parent;
  GVariant *parameters; /* of the worker, and of each of its chips */
  GVariant *chips;
  guint32 life; /* of the child, that this process is; 0: not connected yet */

  /* The serving thread's. */
  const struct pto_call *call; /* the request that is served */
  PtoRemoteStream *stream;     /* NULL: not connected */
  GPid process;                /* that was launched; 0: none */
  PtoRemoteFabric *fabric; /* for what is too large for a message; NULL: it goes over the stream */
  gboolean sends_serialized; /* both ends have said so */
  GHashTable *refused;       /* digest -> GError: why a function of this process can not be there */
  /* Digests of functions that were made after this process. They are not forgotten with their
   * registration: when others are begun again to have one, it is first taken back here. */
  GHashTable *late;
  GHashTable *digests;     /* of what was sent -> that by which the other end knows it */
  GHashTable *collectives; /* digests of those that ranks of the worker's job run together */
  PtoDirectory *directory; /* of what is there; NULL: not connected */
  struct pto_spans stash;  /* bridge-results.c's */
  guint64 read_writes;     /* so far the log was read ... */
  gboolean has_missed;     /* ... and not all of it was */
  struct pto_traffic *traffic;
  guint32 progress;        /* of the other end, as it was told last */
  guint32 record;          /* of the tasks that were run last; 0: of none, or it was told */
  gboolean has_pieces;     /* that record was fetched */
  PtoTracePieces pieces;   /* of it */
  PtoRemoteHealth *health; /* of the connection; NULL: not connected */
  PtoRemoteBatch *batch;   /* of the Run under way, if it may be recalled; or NULL */
  struct pto_call birth;   /* START: of the mailbox. W: before there is health; R: its thread */
  int ending;              /* atomic: somebody ends the process. W, R: both threads */
};

/* Relaxed: a count. */
static inline void
pto_bridge_count (_Atomic uint64_t *counter, guint64 n)
{
  atomic_fetch_add_explicit (counter, n, memory_order_relaxed);
}

/* --- bridge.c --- */

/* A connection that is lost was a worker: this process is nobody without it. Its last words say
 * what its death was. */
_Noreturn void pto_bridge_end_with_connection (PtoBridge *self, const GError *error);
/* The reply of a call, whose type is that of its body; NULL: it was refused. Does not return when
 * the connection is lost, unless it has not served yet (START). */
GVariant *pto_bridge_call (PtoBridge *self, const char *method, GVariant *arguments,
                           const char *type, GError **error);
/* data (or NULL): what follows the message, or goes past it by the fabric: a part. */
void pto_bridge_tell (PtoBridge *self, const char *method, GVariant *arguments, gconstpointer data,
                      gsize size);

/* --- bridge-register.c --- */

/* below: for what is below the worker; otherwise it is one of its tasks. FALSE without an error: it
 * can not be sent. */
gboolean pto_bridge_send_registration (PtoBridge *self, PtoRegistration *registration,
                                       gboolean below, GError **error);
/* All of those orchestrations (PtoRegistration), from the start: they can be run after it. */
gboolean pto_bridge_offer_all (PtoBridge *self, GPtrArray *list, GError **error);
/* REGISTER, COMMIT and UNREGISTER. */
gboolean pto_bridge_register (PtoBridge *self, const struct pto_call *call, GError **error);
gboolean pto_bridge_commit (PtoBridge *self, const struct pto_call *call, GError **error);
void pto_bridge_unregister (PtoBridge *self, const struct pto_call *call);

/* --- bridge-task.c --- */

/* TASK and TASKS: a status and then failure, of the first that has failed. */
guint32 pto_bridge_run_tasks (PtoBridge *self, const struct pto_call *call,
                              struct pto_failure *failure);

/* What the directory has to tell: the arguments of Begin. */
GVariant *pto_bridge_make_begin (PtoBridge *self);
/* Contents, in parts, ahead of what needs them. FALSE: they are not wanted any more. */
gboolean pto_bridge_put (PtoBridge *self, guint64 block, guint64 offset, gconstpointer data,
                         guint64 bytes, GError **error);
/* What is there comes to that address here. */
gboolean pto_bridge_fetch (PtoBridge *self, guint64 block, guint64 offset, guint64 to,
                           guint64 bytes, GError **error);

/* --- bridge-results.c --- */

void pto_bridge_drop_stash (PtoBridge *self, guint64 begin, guint64 end);
/* Where what belongs to the address is, if it is not at the other end; *end: no farther than so. */
gconstpointer pto_bridge_find_source (PtoBridge *self, guint64 address, guint64 *end);
/* Of the range, how much is at the other end, or was, and is not where it belongs. */
guint64 pto_bridge_count_left (PtoBridge *self, guint64 begin, guint64 end);
/* The other end makes room: all of that has a source. */
gboolean pto_bridge_spill (PtoBridge *self, GError **error);
/* A task is about to read the range: what of it no block has with all else has a source. */
gboolean pto_bridge_gather (PtoBridge *self, guint64 begin, guint64 end, GError **error);
/* FETCH. */
gboolean pto_bridge_fetch_left (PtoBridge *self, const struct pto_call *call, GError **error);

/* --- bridge-memory.c --- */

/* MEMORY. */
gboolean pto_bridge_use_memory (PtoBridge *self, const struct pto_call *call, GError **error);

/* --- bridge-trace.c --- */

/* Tasks of another recorded run come from here on. */
void pto_bridge_begin_record (PtoBridge *self, guint32 record);
/* TRACE: as a child whose memory is shared would. */
gboolean pto_bridge_tell_record (PtoBridge *self, const struct pto_call *call, GError **error);

G_END_DECLS
