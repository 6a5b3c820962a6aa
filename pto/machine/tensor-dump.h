/* tensor-dump.h: what was in the tensors of a run before and after each task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. One for a run. Each tensor is a file of NumPy's,
 * PREFIXdump-RING-POSITION-KERNEL- argN-before.npy or -after.npy; PREFIXdump.json lists them.
 */
#pragma once

#include "values/call-config.h"

#include "core/memory-observer.h"

G_BEGIN_DECLS

typedef struct _PtoDump PtoDump;

/* What the configuration asks for; *dump: NULL, nothing. FALSE: the configuration is refused. */
gboolean pto_dump_open (const PtoCallConfig *config, PtoDump **dump, GError **error);
/* For the machine; may be NULL. */
struct pto_watch *pto_dump_get_watch (PtoDump *dump);
/* Will it read that argument of tasks of a kernel, as far as is known before there are some? dump
 * may be NULL. */
gboolean pto_dump_reads (const PtoDump *dump, const char *kernel, guint argument);
/* The run is over: writes the list. FALSE: something could not be written. dump may be NULL. */
gboolean pto_dump_finish (PtoDump *dump, const char *title, GError **error);
void pto_dump_free (PtoDump *dump);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoDump, pto_dump_free)

G_END_DECLS
