/* exception.h: how does an exception travel between processes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-exception.h"

G_BEGIN_DECLS

/* An error of what arrived; exception may be NULL. */
GError *pto_exception_make_error (PtoException *exception, const char *message);
/* At most so many bytes: of what is too long, traces go first, then contents, words and members.
 * Without contents, neither its own nor those of its members, there is more room for the rest.
 * Gives their number; 0: not even that. */
gsize pto_exception_pack (PtoException *exception, gboolean with_contents, guint8 *bytes,
                          gsize size);
/* Of bytes that another process wrote; NULL: those are no exception. */
PtoException *pto_exception_unpack (const guint8 *bytes, gsize size);

G_END_DECLS
