/* tensor-dump-filter.h: of which tasks and arguments is there a dump?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include <glib.h>

#include "core/memory-observer.h"

G_BEGIN_DECLS

/* Terms; none: everything. */
typedef GPtrArray PtoDumpFilter;

/* Which of the terms in text is none, as a message; NULL: all are. Freed by the caller. */
char *pto_dump_check_filter (const char *text);
/* why: as pto_dump_check_filter() gives it; may be NULL. */
PtoDumpFilter *pto_dump_filter_new (const char *text, char **why);
/* Whoever submits. */
gboolean pto_dump_filter_has (PtoDumpFilter *filter, const struct pto_watched *task,
                              guint argument);
/* Is it already known by the kernel's name, before there is a task? */
gboolean pto_dump_filter_may_have (const PtoDumpFilter *filter, const char *kernel, guint argument);
/* The run is over: of terms that no task had. */
void pto_dump_filter_warn (const PtoDumpFilter *filter);

G_END_DECLS
