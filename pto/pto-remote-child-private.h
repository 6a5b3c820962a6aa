/* pto-remote-child-private.h: what does the process behind a remote worker's mailbox do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Made in the parent, before the fork, as PtoChild is, and serves in the child. It begins the
 * worker at the other end when it is started, says on what it is asked, and takes inputs there and
 * outputs back. It ends when the other end does: whoever watches it finds that, and begins it again
 * if the worker above is to do so.
 *
 * Thread safety: served by one thread; everything else by its parent, before and after that.
 */
#pragma once

#include "process/service.h"
#include "process/writes.h"

#include "pto-child-private.h"
#include "pto-machine-private.h"
#include "pto-remote-wire-private.h"

G_BEGIN_DECLS

typedef struct _PtoRemoteChild PtoRemoteChild;

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

/* worker: one that was added with an address (pto-worker-remote.c); list_own: what is registered on
 * itself, as of PtoChildParent. */
PtoRemoteChild *pto_remote_child_new (PtoWorker *worker, const char *path,
                                      const PtoChildParent *parent,
                                      GPtrArray *(*list_own) (PtoMachine *machine));
void pto_remote_child_free (PtoRemoteChild *child);
/* Why a function of this process can not be at that address. */
GError *pto_remote_child_make_refusal (const char *address, const char *name);
/* Before the fork: what is written on this side, and which of the children it is. */
void pto_remote_child_set_writes (PtoRemoteChild *child, struct pto_writes *writes, guint index);
/* serve() and its data; is_orphan is left to the level. */
void pto_remote_child_get_server (PtoRemoteChild *child, struct pto_server *server);

G_END_DECLS
