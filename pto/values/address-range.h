/* address-range.h: by which addresses does a program know memory that it can not see?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory of a remote worker has an address here, so that tensors lie in it, overlap and depend on
 * each other as in any other memory. These addresses are reserved, and nothing is behind them: who
 * touches one faults. They are all of one region, and so everybody can tell whether an address is
 * one of them; whose it is its machine knows (machine/machine-level-remote-memory.c).
 *
 * Thread safety: any thread. A fork inherits the region, and what a child gives out is its own.
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/* So many bytes, page by page; 0: there is no room. */
guint64 pto_remote_range_reserve (guint64 bytes);
void pto_remote_range_release (guint64 address, guint64 bytes);
/* Takes no lock. */
gboolean pto_remote_range_has (guint64 address);
/* As struct pto_server has it: takes the lock, and gives it back. */
void pto_remote_range_probe (void);

G_END_DECLS
