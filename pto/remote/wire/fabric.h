/* fabric.h: how do large tensors go past the connection of a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where both ends say that the network between them is trusted, contents that are too large for a
 * message do not follow it on the connection: they go from memory to memory by an engine that knows
 * the machine's fabric. Which one, its addresses and the key by which parts are told from what
 * anybody else could send are said in Hello, which the connection vouches for; what a part is, and
 * that there is one, is said by its message (Put, Get) as ever. So nothing is received that was not
 * announced, into memory that was checked, and of another size than was announced nothing is taken.
 *
 * An engine is a module (common/fabric-module.h): it is loaded into the two processes at the ends
 * only, after they have forked what they fork for a start. What goes wrong with it ends the
 * connection.
 *
 * Thread safety: as each function says.
 */
#pragma once

#include "common/fabric-module.h"
#include "remote-messages.h"

G_BEGIN_DECLS

/* Contents go in such parts: between two of them they can be left off. */
#define PTO_REMOTE_FABRIC_BYTES (G_GUINT64_CONSTANT (8) << 20)

/* --- fabric.c --- */

typedef struct _PtoRemoteFabric PtoRemoteFabric;

/* Is it the name of one? Any thread. */
gboolean pto_remote_fabric_check_name (const char *name, GError **error);
/* Of the near end: what Hello says of it is added to its options. One thread. */
PtoRemoteFabric *pto_remote_fabric_new (const char *name, GVariantDict *options, GError **error);
/* What the other end has answered. */
gboolean pto_remote_fabric_connect (PtoRemoteFabric *fabric, GVariant *answer, GError **error);
/* Of the far end, before it starts: does this end trust what Hello asks it to? name: NULL: it asks
 * for nothing. Before there is another thread. */
gboolean pto_remote_fabric_check (GVariant *options, const char **name, GError **error);
/* The same, once nothing is forked any more. */
PtoRemoteFabric *pto_remote_fabric_accept (const char *name, GVariant *options,
                                           GVariantDict *answer, GError **error);
void pto_remote_fabric_free (PtoRemoteFabric *fabric);

/* One part each, in the order in which they are announced. An end of the connection is
 * G_IO_ERROR_CLOSED, as of the stream. Any thread, one at a time each way. */
gboolean pto_remote_fabric_send (PtoRemoteFabric *fabric, PtoRemoteStream *stream,
                                 gconstpointer data, gsize size, GError **error);
gboolean pto_remote_fabric_receive (PtoRemoteFabric *fabric, PtoRemoteStream *stream, gpointer to,
                                    gsize size, GError **error);

G_END_DECLS
