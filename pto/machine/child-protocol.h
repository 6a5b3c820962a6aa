/* child-protocol.h: what do a worker and its children say to each other, whatever they are?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For a child of a level (worker/child-server.c), the process behind a remote worker
 * (remote/parent/bridge.c) and a chip in a process (machine-isolated-child.c).
 */
#pragma once

#include "process/service.h"
#include "process/write-log.h"

#include "callable/identity.h"
#include "trace/model/trace.h"
#include "pto-worker.h"

G_BEGIN_DECLS

/* What a parent knows and a child asks. */
typedef struct
{
  /* Of START: what the parent has registered, PtoRegistration. In a process child the copy that was
   * made just before its fork; otherwise the caller's thread may take a new one. Transfer full. */
  GPtrArray *(*list) (gpointer data, guint index);
  PtoImportFunc import; /* for import paths */
  gpointer data;
  guint index;                      /* which of its children this is */
  struct pto_writes *const *writes; /* what is written on this side; set before the fork */
  gboolean is_far; /* on another machine, where contents of exceptions are not believed */
} PtoChildParent;

/* The body of PTO_REQUEST_MEMORY. */
typedef struct
{
  guint32 what;    /* as PtoMachineMemory has it */
  guint32 life;    /* of the worker, that the memory is of; MALLOC: 0; FREE: 0: of any */
  guint64 address; /* by which it is known here */
  guint64 target;  /* the same, of the same worker and life: what COPY writes */
  guint64 bytes;
  /* In the arena: what is copied, or where to; MALLOC: where to say which life it is of. */
  guint64 staging;
} PtoRemoteMemoryRequest;

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

/* Notes the size, and gives where so much is to be written; NULL: nowhere, or nothing. */
guint8 *pto_child_offer (PtoChildTrace *entry, guint64 size);
/* Answers TRACE with such pieces; TRUE: all of them were written. child: its number. */
gboolean pto_child_tell_pieces (const struct pto_call *call, guint child,
                                const PtoTracePieces *pieces);
/* The body of REGISTER, and back: descriptor and sources, each behind its length. is_named: just
 * some workers were named to have it: one that can not have it says so, where it might otherwise
 * wait for a task. */
GBytes *pto_child_pack_registration (GBytes *descriptor, GBytes *sources, gboolean is_named);
gboolean pto_child_unpack_registration (const guint8 *body, guint64 bytes, GBytes **descriptor,
                                        GBytes **sources, gboolean *is_named);

/* A GError as a child says it, with the contents of an exception or without, and as its parent
 * raises it. The first frees it, and gives what a server answers: 0 without one. */
guint32 pto_failure_take_error (struct pto_failure *failure, GError *error, gboolean with_contents);
void pto_failure_propagate (const struct pto_failure *failure, GError **error);

G_END_DECLS
