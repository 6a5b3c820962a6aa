/* progress.h: how far is a run, for who looks on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <pto/pto.h>

G_BEGIN_DECLS

typedef struct Progress Progress;

/* From now on a line on the terminal tells how far the worker's runs are; NULL: there is no
 * terminal that can take it back. The worker has started: what it forks has no part of this. */
Progress *progress_begin (PtoWorker *worker);
/* The line is gone. Takes it; it may be NULL. */
void progress_end (Progress *progress);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Progress, progress_end)

G_END_DECLS
