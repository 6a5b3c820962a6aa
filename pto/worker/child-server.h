/* child-server.h: what does a child of a worker do with the requests of its parent?
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

#include "machine/child-protocol.h"

G_BEGIN_DECLS

typedef struct _PtoChild PtoChild;

/* worker: a worker that runs what it is asked to, of level 2 with run_callable, of another level as
 * an orchestration; NULL: a SUB child. path: for messages. */
PtoChild *pto_child_new (PtoWorker *worker, const char *path, const PtoChildParent *parent);
void pto_child_free (PtoChild *child);
/* serve() and its data; is_orphan is left to the level. */
void pto_child_get_server (PtoChild *child, struct pto_server *server);

/* Of a far one, which shares no memory: what it would answer, as bytes, once; NULL: nothing. */
GByteArray *pto_child_take_record (PtoChild *child);

G_END_DECLS
