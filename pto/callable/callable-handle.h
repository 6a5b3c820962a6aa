/* callable-handle.h: how does a worker recognize its handles?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-callable-handle.h"

G_BEGIN_DECLS

/* owner: the serial number of the worker. digest: 32 bytes. */
PtoCallableHandle *pto_callable_handle_new (guint64 owner, PtoCallable *callable,
                                            const guint8 *digest);
guint64 pto_callable_handle_get_owner (const PtoCallableHandle *handle);
/* The digest's 32 bytes. */
const guint8 *pto_callable_handle_peek (const PtoCallableHandle *handle);
/* Is it for remote workers and nobody else? Any thread. */
void pto_callable_handle_set_remote (PtoCallableHandle *handle, gboolean is_remote);

G_END_DECLS
