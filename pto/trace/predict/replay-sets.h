/* replay-sets.h: what becomes of a graph that reduces on another chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "what-if.h"

G_BEGIN_DECLS

/* What the record says of them, behind all else: what is an edge among tasks of one set goes, and
 * tasks come for the copies that there may be on a larger chip. n_recorded: cores of each type that
 * this one has. */
void pto_replay_sets_read (PtoReplay *replay, PtoTrace *trace, const guint *n_recorded);
/* Makes a graph with as many copies as a chip with so many cores of each type has; NULL: it is as
 * it is. It shares what it can with the other. */
PtoReplay *pto_replay_sets_derive (const PtoReplay *replay, const guint *n_cores,
                                   const guint *n_recorded);
void pto_replay_sets_free_derived (PtoReplay *derived);

G_END_DECLS
