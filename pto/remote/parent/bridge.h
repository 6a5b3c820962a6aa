/* bridge.h: what does the process behind a remote worker's mailbox do?
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
#include "process/write-log.h"

#include "machine/machine.h"
#include "remote/wire/remote-messages.h"

G_BEGIN_DECLS

typedef struct _PtoBridge PtoBridge;

/* node: of a worker that was added with an address (worker/worker-remote.c); parameters: a{ss}, its
 * own; chips: aa{ss}, those of each of its chips. */
PtoBridge *pto_bridge_new (PtoTreeNode *node, const char *path, const PtoChildParent *parent,
                           GVariant *parameters, GVariant *chips);
void pto_bridge_free (PtoBridge *child);
/* serve() and its data; is_orphan is left to the level. */
void pto_bridge_get_server (PtoBridge *child, struct pto_server *server);

G_END_DECLS
